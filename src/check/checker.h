/* What the files of check/ share: one run of the checker, the place it is at, and the names it can
 * see. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CHECK_CHECKER_H
#define CM_CHECK_CHECKER_H

#include "base/array.h"
#include "base/map.h"
#include "check/check.h"
#include "check/check_rules.h"

/* The newest IR version we know. */
enum { CM_IR_NEWEST = 14 };

/* Where the checker is, from the inside out; lives on the stack and is spelled out only in
 * findings. what is "graph", "node", or ".field" to be appended without a comma. Without a name the
 * index is shown, without either just what. */
struct cm_model_place {
    const struct cm_model_place *up;
    const char *what;
    struct cm_str name, op;
    size_t index;
    const void *subject; /* the message: a node, tensor, value info or binding; else NULL */
    bool is_value;       /* name is that of a value of a graph */
};

#define CM_PLACE(up, what, name, index)                                                            \
    ((struct cm_model_place){(up), (what), (name), CM_STR_NONE, (index), NULL, false})
#define CM_PLACE_FIELD(up, what) CM_PLACE(up, what, CM_STR_NONE, SIZE_MAX)
/* A value of a graph, that message speaks of. */
#define CM_PLACE_VALUE(up, what, name, index, message)                                             \
    ((struct cm_model_place){(up), (what), (name), CM_STR_NONE, (index), (message), true})
#define CM_PLACE_NODE(up, node, index)                                                             \
    ((struct cm_model_place){(up), "node", (node)->name,                                           \
                             (node)->op_type.size ? (node)->op_type : CM_STR(""), (index), (node), \
                             false})
#define CM_PLACE_ENTRY(up, what, index, entry)                                                     \
    ((struct cm_model_place){(up), (what), CM_STR_NONE, CM_STR_NONE, (index), (entry), false})

/* How a visible name came to be; bits. */
enum {
    CM_DEF_INPUT = 1,
    CM_DEF_INITIALIZER = 2,
    CM_DEF_SPARSE = 4,
    CM_DEF_NODE = 8,
    CM_DEF_LOOSE =
        16, /* may be read, and may be hidden: state variables seen by an initialization graph */
};

struct cm_def {
    struct cm_str name;
    size_t hidden; /* 1 + index of the definition in an outer graph that this one hides, or 0 */
    const struct cm_node_proto *producer; /* NULL unless a node's output */
    const void *declared; /* struct cm_tensor_proto or cm_sparse_proto of an initializer */
    const struct cm_type_proto *type; /* of an input */
    int depth;
    unsigned kind;
    uint32_t visited; /* by which walk of a Gradient node */
};

/* All names visible at one point, in all enclosing graphs. */
struct cm_scope {
    struct cm_map
        map; /* name -> 1 + index of the innermost definition; 0 when it went out of scope */
    CM_ARRAY(struct cm_def);
    int depth;
};

struct cm_imports {
    struct cm_map versions; /* domain ("" for ai.onnx) -> version, as int64_t */
};

/* What the nodes of a graph or function make, those further on included; found when first asked. */
struct cm_made {
    const struct cm_nodes *nodes;
    struct cm_made *outer; /* of the graph around it */
    struct cm_map names;
    bool is_body;  /* of a node or function, which ONNX Runtime does not sort */
    bool is_known; /* names and can_sort hold */
    bool can_sort; /* no nodes read each other's results in a circle */
};

struct cm_checker {
    struct cm_arena *arena;   /* for the findings */
    struct cm_arena *scratch; /* for the run */
    struct cm_findings *findings;
    struct cm_external_files *files; /* NULL: files are not looked at */
    struct cm_map unopened;          /* locations that were reported */
    unsigned flags;
    int64_t ir_version;

    const struct cm_imports *imports;         /* in force where we are */
    const struct cm_function_proto *function; /* whose body we are in; NULL outside functions */
    const struct cm_model_proto *model;       /* NULL when a message is checked by itself */
    struct cm_map functions;                  /* cm_function_key -> 1 + index in model->functions */
    struct cm_map configurations;             /* name -> 1 + index in model->configuration */
    struct cm_map
        *function_attributes;        /* of each function: name -> 1, or 2 + index of its default */
    const struct cm_map *attributes; /* those of the function we are in */
    char *key;                       /* room for one function key */
    size_t key_size;

    struct cm_scope *scope;
    struct cm_strs_list {
        CM_ARRAY(struct cm_str);
    } unresolved; /* what nodes of the main graph read in vain; for TR9 */
    /* In an algorithm of ONNX 1.7, which calls the inference graph: its names may be those of that
     * graph. */
    bool calls_graph;
    int calls_depth;
    const struct cm_scope *variables; /* initializers of the inference graph */
    bool unlooked;      /* here ONNX's checker does not look: what it would refuse counts as ST13 */
    bool names_ignored; /* a node is checked by itself: no scope to look into */
    uint64_t dtypes_seen, features_seen; /* ST4 is reported once each */
    struct cm_made *made;                /* of the graph or function at hand; NULL outside nodes */
    uint32_t walk;
    size_t walk_budget;
};

/* report.c */
void cm_report(struct cm_checker *c, enum cm_rule rule, const struct cm_model_place *place,
               const char *format, ...) CM_PRINTF(4, 5);
/* The same, and says after the reason that ONNX Runtime accepts it, where it does. */
void cm_report_accepted(struct cm_checker *c, enum cm_rule rule, const struct cm_model_place *place,
                        bool accepted, const char *format, ...) CM_PRINTF(5, 6);
/* Reports rule once for each key that is repeated. */
void cm_report_repeated_keys(struct cm_checker *c, enum cm_rule rule,
                             const struct cm_model_place *place, const struct cm_entries *entries);
/* ST4, once for each feature: needs is the IR version that brought it. */
void cm_report_newer(struct cm_checker *c, const struct cm_model_place *place, int needs,
                     const char *feature);
void cm_report_newer_dtype(struct cm_checker *c, const struct cm_model_place *place, int32_t type);

/* scope.c */
size_t cm_scope_enter(struct cm_scope *scope); /* returns what cm_scope_leave wants */
void cm_scope_leave(struct cm_scope *scope, size_t mark);
struct cm_def *cm_scope_find(const struct cm_scope *scope, struct cm_str name); /* or NULL */
struct cm_def *cm_scope_find_here(const struct cm_scope *scope, struct cm_str name);
/* Adds to the kinds of a definition that the innermost graph already has. */
struct cm_def *cm_scope_add(struct cm_checker *c, struct cm_str name, unsigned kind);

/* opset_imports.c */
struct cm_str cm_domain_normal(struct cm_str domain); /* "" for ai.onnx */
void cm_imports_fill(struct cm_checker *c, struct cm_imports *imports,
                     const struct cm_opsets *opsets);
/* The version imported for domain; false if none. */
bool cm_imports_find(const struct cm_imports *imports, struct cm_str domain, int64_t *version);
void cm_examine_imports(struct cm_checker *c, const struct cm_model_place *place,
                        const struct cm_opsets *opsets);

/* Each examines one message and reports what it finds. */
enum cm_graph_role {
    CM_MAIN_GRAPH,
    CM_NESTED_GRAPH,
    CM_ALGORITHM_GRAPH,     /* continues the main graph, whose scope is open around it */
    CM_INITIALIZATION_GRAPH /* runs alone but reads state variables */
};

void cm_examine_graph(struct cm_checker *c, const struct cm_model_place *up,
                      enum cm_graph_role role, const struct cm_graph_proto *graph);
/* Leaves the graph's names in scope; the caller leaves. */
void cm_examine_open_graph(struct cm_checker *c, const struct cm_model_place *up,
                           enum cm_graph_role role, const struct cm_graph_proto *graph);
void cm_examine_nodes(struct cm_checker *c, const struct cm_model_place *up,
                      enum cm_graph_role role, const struct cm_nodes *nodes);
void cm_examine_node(struct cm_checker *c, const struct cm_model_place *place,
                     const struct cm_node_proto *node);
void cm_examine_against_schema(struct cm_checker *c, const struct cm_model_place *place,
                               const struct cm_node_proto *node);
void cm_examine_attribute(struct cm_checker *c, const struct cm_model_place *up, size_t index,
                          const struct cm_attribute_proto *attribute);
void cm_examine_tensor(struct cm_checker *c, const struct cm_model_place *place,
                       const struct cm_tensor_proto *tensor);
void cm_examine_contents(struct cm_checker *c, const struct cm_model_place *place,
                         const struct cm_tensor_proto *tensor, int64_t count);
void cm_examine_external(struct cm_checker *c, const struct cm_model_place *place,
                         const struct cm_tensor_proto *tensor);
void cm_examine_sparse(struct cm_checker *c, const struct cm_model_place *place,
                       const struct cm_sparse_proto *sparse);
/* A type as a graph input declares it; complete: nothing may be left open but dimensions. */
void cm_examine_type(struct cm_checker *c, enum cm_rule rule, const struct cm_model_place *place,
                     const struct cm_type_proto *type, bool complete);
void cm_examine_value_info(struct cm_checker *c, const struct cm_model_place *place,
                           const struct cm_value_info_proto *value, bool complete);
/* Fills c->functions; before anything that calls them. */
void cm_map_functions(struct cm_checker *c);
void cm_examine_functions(struct cm_checker *c);
void cm_examine_function(struct cm_checker *c, const struct cm_model_place *up, size_t index,
                         const struct cm_function_proto *function,
                         const struct cm_imports *model_imports);
void cm_examine_call_graph(struct cm_checker *c);
void cm_examine_call(struct cm_checker *c, const struct cm_model_place *place,
                     const struct cm_node_proto *node, const struct cm_function_proto *function);
void cm_examine_training(struct cm_checker *c);
void cm_examine_gradient(struct cm_checker *c, const struct cm_model_place *place,
                         const struct cm_node_proto *node);
/* check_graph_call.c */
void cm_examine_graph_call(struct cm_checker *c, const struct cm_model_place *place,
                           const struct cm_node_proto *node);
/* What an algorithm with such calls reads; its scope is open. */
void cm_examine_self_contained(struct cm_checker *c, const struct cm_model_place *place,
                               const struct cm_graph_proto *algorithm);
void cm_examine_configurations(struct cm_checker *c);
void cm_examine_node_devices(struct cm_checker *c, const struct cm_model_place *place,
                             const struct cm_node_proto *node);

/* check_inferred.c */
void cm_place_inferred(struct cm_checker *c, const struct cm_findings *inferred);

/* check_function.c: the model's function that node calls, or NULL. */
const struct cm_function_proto *cm_called_function(struct cm_checker *c,
                                                   const struct cm_node_proto *node);

/* check_type.c. Conflict: both are known and differ. *why is a static text. */
bool cm_type_conflicts_with_tensor(const struct cm_type_proto *type, int32_t elem_type,
                                   const struct cm_int64s *dims, bool sparse, const char **why);
bool cm_types_conflict(const struct cm_type_proto *a, const struct cm_type_proto *b,
                       const char **why);

#endif
