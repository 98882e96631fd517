/* What the files of graph/ share about a module. Not for other folders. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_MODULE_H
#define CM_GRAPH_MODULE_H

#include "base/array.h"
#include "graph/graph.h"
#include "graph/module_counts.h"
#include "graph/op.h"

enum { VALUES_PER_CHUNK = 256, OPERATORS_KEPT = 64 };

struct cm_value_chunk {
    struct cm_value_def items[VALUES_PER_CHUNK];
};

/* What a name and a version of its domain stand for. */
struct cm_operator {
    int64_t version;                /* 0: the newest */
    const struct cm_schema *schema; /* NULL: there is none */
    const struct cm_schema *newest;
    const struct cm_op *op;
};

struct cm_import_context;

/* Builds a body from its message, its inputs being of these types; given by the importer. */
typedef enum cm_status cm_build_body_fn(struct cm_import_context *context, struct cm_node *node,
                                        struct cm_body_ref *body, const struct cm_fact *args,
                                        size_t n_args, struct cm_error *err);

struct cm_module {
    struct cm_arena *arena;
    const struct cm_registry *registry;
    struct cm_external_files *files;
    struct cm_symbols *symbols;
    CM_ARRAY(struct cm_value_chunk *) chunks; /* values never move, so pointers to them stay good */
    size_t n_values;                          /* value 0 included */
    size_t n_nodes, node_budget;
    int call_depth; /* function bodies being expanded inside each other */
    bool is_widened;
    bool computes_contents;
    bool lenient;
    CM_ARRAY(struct cm_node *)
    unread;       /* nodes that nobody may read: new ones, and those that lost a reader */
    unsigned had; /* enum cm_module_fact */
    struct cm_operator operators[OPERATORS_KEPT]; /* looked up lately */
    cm_build_body_fn *build_body;
    struct cm_import_context *context;  /* of the import under way; NULL otherwise */
    const struct cm_model_proto *model; /* imported last; NULL: none */
    int64_t channel_block;              /* 0: not asked for */
    uint32_t n_marks;                   /* passes that have begun marks */
    struct cm_module_counts counts;
};

/* Looks an operator up in the module's registry. A model has few kinds of nodes, and many of each:
 * what was found lately is found at once. */
struct cm_operator cm_module_operator(struct cm_module *module, struct cm_str domain,
                                      struct cm_str name, int64_t version);

/* Types a node by its operator's rule or its function body, and stores what changed. */
enum cm_status cm_node_infer(struct cm_node *node, struct cm_error *err) CM_MUST_CHECK;
/* Types a copy like the node that it is a copy of, which is done where operands are known alike;
 * false: its rule may say something else. Declared types are taken over in any case. */
bool cm_node_take_facts(struct cm_node *node, const struct cm_node *other);
/* Runs a node whose operands are small constants: its results are constants then. */
void cm_node_infer_contents(struct cm_node *node, struct cm_fact *facts);
/* Does the node keep its schema's rules: operand counts and types, attributes? */
enum cm_status cm_node_conforms(const struct cm_node *node, struct cm_error *err) CM_MUST_CHECK;
/* May output o be of this type, which its rule found? Rules take element types from attributes that
 * no schema constrains. */
enum cm_status cm_node_check_result(const struct cm_node *node, int o, const struct cm_type *type,
                                    struct cm_error *err) CM_MUST_CHECK;

/* Gives each unknown dimension of a value's type a symbol of its own, so that what is computed from
 * it is known to have the same size. */
const struct cm_type *cm_value_symbolic(struct cm_module *module, cm_value value,
                                        const struct cm_type *type);

/* A value that nobody makes and that is no input of its graph: it takes the place of one that could
 * not be made, in a graph that is only looked at. */
cm_value cm_graph_add_stand_in(struct cm_graph *graph, const struct cm_type *type);

/* Says that the node, as it is now, means what proto does. */
void cm_node_set_origin(struct cm_node *node, const struct cm_node_proto *proto);
/* Says that the nodes from first to the one before `before`, which compute outputs from given, mean
 * what proto does in that version of its operator. */
void cm_group_set_origin(struct cm_node *first, const struct cm_node *before,
                         const struct cm_node_proto *proto, int64_t version, const cm_value *given,
                         const cm_value *outputs);

/* Expands a body that is messages before `before` in graph, reading actuals; results has
 * call->n_outputs values. */
enum cm_status cm_import_function(struct cm_graph *graph, struct cm_node *before,
                                  const struct cm_function_proto *function,
                                  const struct cm_node *call, const cm_value *actuals,
                                  cm_value *results, struct cm_error *err) CM_MUST_CHECK;

#endif
