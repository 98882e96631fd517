/* Is this model legal ONNX? Reads the messages as the file has them and lists every violation it
 * finds, each with a rule id of docs/check-rules.md, a place and a reason: structure and names
 * (cm_check_model), types and shapes (cm_check_types). cm_check_add_inferred adds findings of other
 * engines. Nothing is changed. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CHECK_CHECK_H
#define CM_CHECK_CHECK_H

#include "base/diagnostics.h"
#include "graph/import.h"
#include "onnx/model_file.h"

enum {
    CM_CHECK_STRICT = 1, /* the ST rules are violations rather than warnings */
    CM_CHECK_CUSTOM_DOMAINS =
        2, /* operators of domains we do not know must be functions of the model */
    CM_CHECK_SKIP_OPSETS = 4, /* functions may import other versions than the model does */
    CM_CHECK_FOR_RUNTIME = 8, /* what ONNX forbids and ONNX Runtime accepts is a note */
};

struct cm_external_files; /* onnx/external.h */

/* Everything is in arena. files are those beside the model, which are opened when tensors are in
 * them; NULL: they are not looked at. */
enum cm_status cm_check_model(const struct cm_model_proto *model, struct cm_external_files *files,
                              unsigned flags, struct cm_arena *arena, struct cm_findings *out,
                              struct cm_error *err) CM_MUST_CHECK;

/* Adds what inference finds wrong with the same model, whose GraphCalls of ONNX 1.7 were replaced:
 * the working copy is built with these operators, by import. scratch is free for reuse on return.
 */
enum cm_status cm_check_types(const struct cm_model_file *file, const struct cm_registry *registry,
                              cm_import_fn *import, unsigned flags, struct cm_arena *scratch,
                              struct cm_findings *findings, struct cm_error *err) CM_MUST_CHECK;

/* Adds what others found about the same model, by the rules and the subjects that their findings
 * name: in the order of the model, with their places. Left out: what has a violation already, and
 * what is merely unsupported. */
void cm_check_add_inferred(const struct cm_model_proto *model, unsigned flags,
                           const struct cm_findings *inferred, struct cm_findings *findings);

/* What surrounds a message that is checked by itself. Zeroed: the newest IR version, and the newest
 * default operator set as the only import. */
struct cm_check_context {
    int64_t ir_version;
    struct cm_opsets imports;
    struct cm_external_files *files;
    unsigned flags;
};

/* Checks a graph (as a main graph), a node (without looking at what defines its inputs), an
 * attribute, a tensor, a sparse tensor, a function or a value info by itself. */
enum cm_status cm_check_message(const struct cm_message_info *info, const void *message,
                                const struct cm_check_context *context, struct cm_arena *arena,
                                struct cm_findings *out, struct cm_error *err) CM_MUST_CHECK;

/* The rules, for listings. */
struct cm_check_rule {
    const char *id;
    enum cm_severity severity, strict_severity;
    const char *text; /* what is wrong when it is broken */
    const char *help; /* what to do about it */
};

size_t cm_check_rule_count(void);
const struct cm_check_rule *cm_check_rule_at(size_t index);

#endif
