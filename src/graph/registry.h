/* Every schema and operator lookup goes through a registry: the built-in tables plus the user's
 * rows. Rows are added while it is new; once frozen it is immutable and may be shared between
 * threads. A user's operator is registered just as ours are. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_REGISTRY_H
#define CM_GRAPH_REGISTRY_H

#include "graph/op.h"

struct cm_registry *cm_registry_new(struct cm_arena *arena);
/* A schema version and, unless NULL, what the operator means in its newest one. Both are borrowed
 * for the registry's life. Refuses a frozen registry, a version that exists, an operator whose name
 * is not the schema's. */
enum cm_status cm_registry_add(struct cm_registry *registry, const struct cm_schema *schema,
                               const struct cm_op *op, struct cm_error *err) CM_MUST_CHECK;
/* A body as ONNX text (one function, with its own opset_import) for a registered or built-in
 * operator without one. */
enum cm_status cm_registry_add_body(struct cm_registry *registry, struct cm_str text,
                                    struct cm_error *err) CM_MUST_CHECK;
void cm_registry_freeze(struct cm_registry *registry);

/* The built-in one, for calls that bring none. Never freed, always frozen. */
const struct cm_registry *cm_registry_builtin(void);

/* opset 0: the newest. */
const struct cm_schema *cm_registry_schema(const struct cm_registry *registry, struct cm_str domain,
                                           struct cm_str name, int64_t opset);
const struct cm_op *cm_registry_op(const struct cm_registry *registry, struct cm_str domain,
                                   struct cm_str name);
/* What the built-in registry has for a node of a file; where it has nothing, an operator of which
 * nothing is known. Never NULL. */
const struct cm_op *cm_builtin_op(const struct cm_node_proto *node);
/* The text body of an operator, or NULL: ours from data/bodies/ or the user's. */
const struct cm_function_proto *cm_registry_body(const struct cm_registry *registry,
                                                 struct cm_str domain, struct cm_str name);

/* "ai.onnx" and "" are one domain: the form used as key everywhere. */
struct cm_str cm_domain_plain(struct cm_str domain);
/* The import of a domain; NULL: there is none. And its version, or 0. */
struct cm_opset_proto *cm_opsets_find(const struct cm_opsets *imports, struct cm_str domain);
int64_t cm_opsets_version(const struct cm_opsets *imports, struct cm_str domain);

#endif
