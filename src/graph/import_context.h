/* What the files of the importer share: what names and versions mean where a node stands, and what
 * could not be built so far. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_IMPORT_CONTEXT_H
#define CM_GRAPH_IMPORT_CONTEXT_H

#include "base/diagnostics.h"
#include "graph/import.h"
#include "graph/module.h"

enum { CM_NESTING_MAX = 64 }; /* graphs inside each other */

/* Names inside a function body: they are not the caller's, so they are kept apart from the graph's.
 * Bodies of control flow in it nest. */
struct cm_import_scope {
    struct cm_map names; /* an absent operand's name is there with value 0 */
    struct cm_import_scope *outer;
    uintptr_t id; /* odd; told apart from others that an import meets, and from graphs */
};

/* What the import has found so far that cannot be built. A node that fails is left out and its
 * results are poisoned; what reads those is left out too, without a word. */
struct cm_import_report {
    struct cm_findings *findings;
    struct cm_map poisoned; /* address of a graph or id of a scope, then the name */
    struct cm_map visited;  /* addresses of the messages of bodies */
    struct cm_map missing;  /* and of the nodes that cm_import_list_missing has told of */
    uintptr_t scopes;       /* how many there were */
    size_t failures;        /* told or not */
    bool told;              /* the failure under way comes from what is in the list already */
    bool judge;             /* see struct cm_import_options */
    bool lists_unsupported; /* as there */
    const char *rule; /* of docs/check-rules.md that the failure under way breaks; NULL: TY2 */
};

/* What the graph or function at hand declares of its values, by name; filled when it is first asked
 * for. */
struct cm_import_declared {
    const struct cm_value_infos *infos[2];
    struct cm_map names; /* to the address of the value info */
    bool filled;
};

/* Where a body is built: in which node, for messages. */
struct cm_import_place {
    const struct cm_node_proto *node;
    struct cm_str attribute;
    const struct cm_import_place *outer;
};

/* What names and versions mean where a node stands. Functions bring their own; bodies inherit. */
struct cm_import_context {
    struct cm_module *module;
    const struct cm_model_proto *model;
    const struct cm_opsets *imports;
    struct cm_map *functions; /* of the model: cm_functions_by_key */
    cm_upgrade_fn *upgrade;
    cm_adopts_fn *adopts;
    const struct cm_import_options *options; /* while the main graph is imported; else NULL */
    struct cm_import_scope *scope; /* inside a function; NULL: names are those of the graphs */
    const struct cm_function_proto *function;
    const struct cm_node *call;
    int depth;                            /* of nested graphs */
    struct cm_import_report *report;      /* NULL: the first failure ends it */
    const struct cm_node_proto *node;     /* being added */
    const struct cm_import_place *place;  /* of the body being built; NULL: none */
    const struct cm_import_options *told; /* who is told of nodes, functions included; or NULL */
    struct cm_import_declared *declared;  /* while a model is judged; else NULL */
    size_t inner;                         /* number of the inner graph at hand, from 1; 0: none */
    const void *owner; /* message of the graph or function whose names are defined; NULL: ours */
    bool misses_name;  /* the node that was tried last reads what nothing before it defines */
};

/* The model's definition of what the node calls; NULL: it is an operator. */
const struct cm_function_proto *cm_import_find_function(const struct cm_import_context *context,
                                                        const struct cm_node_proto *proto);
/* Of the domain's opset; 0: it is not imported. */
int64_t cm_import_version(const struct cm_import_context *context, struct cm_str domain);
/* An id for a new scope. */
uintptr_t cm_import_next_scope(const struct cm_import_context *context);
/* Is this the first time that the body is looked at? */
bool cm_import_visits(const struct cm_import_context *context, const struct cm_graph_proto *body);
/* The name would be there, had everything been built. */
void cm_import_poison(struct cm_import_context *context, const struct cm_graph *graph,
                      struct cm_str name);
/* Is it such a name? Then the failure that follows is told already. */
bool cm_import_is_poisoned(const struct cm_import_context *context, const struct cm_graph *graph,
                           struct cm_str name);
/* "node 'x' (Op)", with its domain where that is not ai.onnx. */
struct cm_str cm_import_name_node(struct cm_arena *arena, const struct cm_node_proto *node);
/* Is it the model's fault, and nothing that ends everything? */
bool cm_import_is_listed(enum cm_status status);
/* May the rest still be looked at after this failure? Not when a budget or the machine gave out,
 * and not for ever: functions that call each other can fail any number of times. */
bool cm_import_may_go_on(const struct cm_import_context *context, enum cm_status status);
/* A new attempt begins: what was told of the last failure says nothing of the next. */
void cm_import_begin(const struct cm_import_context *context);
/* Does the upgrade take the node, whose operator its domain does not have? */
bool cm_import_adopts(const struct cm_import_context *context, const struct cm_node_proto *node);
/* Nobody knows the node's operator: the failure that follows is told already if the list has it. */
void cm_import_is_missing(const struct cm_import_context *context,
                          const struct cm_node_proto *node);
/* Adds what failed to the list, unless it only follows from what is there. */
void cm_import_note_failure(struct cm_import_context *context, enum cm_status status,
                            struct cm_str what, const char *reason, const void *subject);
/* The graphs that are imported: the model's, and what is appended to it. */
size_t cm_import_parts(const struct cm_import_context *context,
                       const struct cm_graph_proto *parts[2]);
/* Refuses a model whose functions would expand past the node budget, before anything is made. */
enum cm_status cm_import_measure(const struct cm_import_context *context,
                                 struct cm_error *err) CM_MUST_CHECK;
/* Adds every node of the model whose operator nobody knows. */
void cm_import_list_missing(struct cm_import_context *context);
/* Fills the attributes and bodies of spec. */
void cm_import_attributes(struct cm_import_context *context, const struct cm_node_proto *proto,
                          struct cm_node_spec *spec);
/* The value gets the name, in the function or graph at hand. */
void cm_import_define(struct cm_import_context *context, cm_value value, struct cm_str name);

/* Is the model only judged? Not in bodies of our own. */
static inline bool cm_import_judges(const struct cm_import_context *context)
{
    return context->report && context->report->judge;
}
/* Are the node's operands of types that its operator allows in the version of the file? */
enum cm_status cm_import_judge_operands(struct cm_import_context *context,
                                        const struct cm_node_proto *proto,
                                        const struct cm_node_spec *spec,
                                        const struct cm_schema *from,
                                        struct cm_error *err) CM_MUST_CHECK;
/* And its results? What is declared of them is held against them, and adds to what is known. */
enum cm_status cm_import_judge_results(struct cm_import_context *context,
                                       const struct cm_node_proto *proto,
                                       const struct cm_schema *from, const cm_value *outputs,
                                       struct cm_error *err) CM_MUST_CHECK;
/* What is declared of inputs and initializers. */
void cm_import_judge_declared(struct cm_import_context *context, struct cm_graph *graph,
                              const struct cm_value_infos *infos, const char *kind);
/* A body's input, that its node gives a value of this type. */
void cm_import_judge_argument(struct cm_import_context *context,
                              const struct cm_value_info_proto *input, const struct cm_type *type);
/* Defines a value of the type that is declared for the name, where one is. */
bool cm_import_stand_in(struct cm_import_context *context, struct cm_graph *graph,
                        struct cm_str name);

#endif
