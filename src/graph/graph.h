/* The editable working copy of a model.
 *
 * A struct cm_module owns everything: values, nodes, graphs, types, symbols. A graph is an ordered
 * list of nodes with inputs and outputs; the bodies of If, Loop and Scan are graphs whose parent is
 * the graph around them, and since a value's number is unique in the module a body names an outer
 * value just by its number. Values know who makes them and who uses them, in nested graphs too.
 *
 * No node is ever untyped: adding one runs its operator's inference rule (graph/op.h), and changing
 * what a value is marks its users, which cm_graph_retype brings up to date. Operators appear in the
 * version the registry has a meaning for; cm_module_import upgrades older ones while it builds. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_GRAPH_H
#define CM_GRAPH_GRAPH_H

#include "base/map.h"
#include "graph/type.h"
#include "onnx/external.h"
#include "schema/schema.h"

struct cm_graph;
struct cm_module;
struct cm_node;
struct cm_op;
struct cm_registry;

typedef uint32_t cm_value; /* 0: none, an absent optional operand */

/* One reading of a value: by input `index` of a node, or as output `index` of a graph when node is
 * NULL. */
struct cm_use {
    cm_value value;
    struct cm_node *node;
    struct cm_graph *graph; /* where the reading happens */
    int index;
    struct cm_use *next, *prev; /* other uses of the same value */
};

/* What is known of an integer tensor of rank 0 or 1 before it is computed: shape arithmetic. */
struct cm_known {
    int rank;
    size_t count;
    const struct cm_quantity *items;
};

/* All that is known of a value. type is never NULL in a graph, except for an absent operand. */
struct cm_fact {
    const struct cm_type *type;
    const struct cm_tensor *constant; /* its contents, when they can never change; else NULL */
    const struct cm_known *known;     /* part of its contents; else NULL */
};

enum cm_value_role {
    CM_ROLE_COMPUTED,
    CM_ROLE_INPUT,       /* of its graph; an input may have a default, see initializer */
    CM_ROLE_INITIALIZER, /* a constant, unless it is a state variable */
};

struct cm_value_def {
    struct cm_str name; /* "" when it has none yet; unique within its graph and those around it */
    struct cm_fact fact;
    enum cm_value_role role;
    bool is_state;          /* a training variable: never folded, never packed */
    int output;             /* which output of node */
    struct cm_node *node;   /* who computes it; NULL for inputs and initializers */
    struct cm_graph *graph; /* where it is defined */
    const struct cm_tensor_proto *initializer; /* default or constant, until loaded */
    const struct cm_type *declared;            /* what the file says its type is; NULL: nothing */
    struct cm_use *uses;
    size_t n_uses;
};

/* A graph-valued attribute. The body is built when its input types are first known. */
struct cm_body_ref {
    struct cm_str attribute;
    const struct cm_graph_proto *proto; /* NULL when made by a builder */
    struct cm_graph *graph;             /* NULL until built */
};

/* Input or output `index` of one of several nodes; node -1: none. */
struct cm_origin_place {
    int node, index;
};

/* The node of the file that a node was made of, for writing it as it came. A node that is changed
 * (its operator or attributes, not what it reads) must lose it. */
struct cm_origin {
    const struct cm_node_proto *proto;
    int64_t version;                             /* of its operator, as the file had it */
    const struct cm_attribute_proto *attributes; /* those of the node as it was built from it */
    size_t n_attributes;
    const cm_value *operands; /* the same of its operands: behind those of the file, constants that
                                 were attributes there */
    size_t n_operands;
    /* Where an upgrade made several nodes of it, or another operator: how many, one after the
     * other and each with this origin, and where among them its operands and results are. What is
     * above says nothing then. 0: one node became one. */
    size_t n_nodes;
    const struct cm_origin_place *inputs, *outputs;
};

/* What a node is for in a graph with gradients, as far as autodiff/ has said so. */
enum cm_node_phase {
    CM_PHASE_NONE,
    CM_PHASE_FORWARD,  /* something is differentiated that it leads to */
    CM_PHASE_BACKWARD, /* made by a gradient rule */
};

struct cm_node {
    /* What walks over all nodes look at comes first, in one line of the cache. */
    struct cm_node *next, *prev;
    const struct cm_op *op; /* what we know of it; NULL: only a function body, if anything */
    struct cm_use *inputs;
    cm_value *outputs; /* 0 where an optional output is not wanted */
    int n_inputs, n_outputs;
    uint32_t n_bodies;
    bool stale;                               /* an operand changed since it was typed */
    bool is_newest;                           /* schema is the newest version of the operator */
    bool is_gone;                             /* was removed */
    bool is_listed;                           /* among those that nobody may read */
    const struct cm_function_proto *function; /* its model-local body; NULL for operators */
    const struct cm_schema *schema; /* the version in use; NULL for a function of the model */
    struct cm_body_ref *bodies;     /* graph-valued attributes, in order */
    struct cm_module *module;
    struct cm_graph *graph;
    uint32_t mark;            /* read and written through struct cm_marks only */
    enum cm_node_phase phase; /* of a training step */
    struct cm_str name;
    struct cm_str part_of; /* "rnn (LSTM)": what it was put in the place of, for people; or "" */
    struct cm_str domain, op_type, overload;
    struct cm_attribute_proto *attributes; /* without graph-valued ones, references resolved */
    size_t n_attributes;
    struct cm_graph
        *instance; /* the function body for the types at hand, closed; NULL until asked for */
    int64_t original_version;       /* of the operator as the file had it */
    const struct cm_origin *origin; /* NULL: made here */
    uint32_t stream;    /* of a random node: which numbers it draws; 0: not numbered yet */
    uint32_t marked_by; /* whose mark it is: struct cm_marks */
};

struct cm_graph {
    struct cm_module *module;
    struct cm_graph *parent; /* NULL: closed (a main graph, a function instance) */
    struct cm_node *owner;   /* the node this is a body or an instance of; NULL for a main graph */
    struct cm_str name;
    struct cm_node *first, *last;
    size_t n_nodes;
    cm_value *inputs;
    size_t n_inputs, inputs_capacity;
    struct cm_use *outputs;
    size_t n_outputs;
    struct cm_map names; /* values defined here that have a name */
    bool has_stale;
    uint32_t n_streams; /* of a closed graph: numbers given to random nodes in it so far */
};

struct cm_module_options {
    const struct cm_registry *registry; /* NULL: the built-in operators */
    struct cm_external_files *files;    /* for initializers; NULL: external data is refused */
    size_t node_budget;     /* nodes that may exist, after all expansion; 0: 1,000,000 */
    bool computes_contents; /* nodes that read small constants only are run as they are typed */
    bool is_widened; /* what was float is double: schemas that allow the one allow the other */
};

/* Numbers that a pass writes on nodes. A pass begins its marks; until it sets one, a node's mark is
 * 0, whatever other passes left there. The marks of a pass end when another one begins marks in the
 * module; debug builds check that nobody uses them after that. */
struct cm_marks {
    struct cm_module *module;
    uint32_t number;
};

struct cm_marks cm_marks_begin(struct cm_module *module);
uint32_t cm_mark_get(const struct cm_marks *marks, const struct cm_node *node);
void cm_mark_set(const struct cm_marks *marks, struct cm_node *node, uint32_t mark);

/* Everything of a module lives in arena. */
struct cm_module *cm_module_new(struct cm_arena *arena, const struct cm_module_options *options);

struct cm_arena *cm_module_arena(const struct cm_module *module);
struct cm_symbols *cm_module_symbols(const struct cm_module *module);
const struct cm_registry *cm_module_registry(const struct cm_module *module);
size_t cm_module_value_count(const struct cm_module *module); /* value numbers are below this */
size_t cm_module_room(const struct cm_module *module);        /* nodes that may still be added */
struct cm_value_def *cm_value_get(const struct cm_module *module, cm_value value); /* not for 0 */

struct cm_graph *cm_graph_new(struct cm_module *module, struct cm_graph *parent,
                              struct cm_str name);

/* Values without a maker. The name may be empty; a name that is taken is refused by the importer,
 * not here. */
cm_value cm_graph_add_input(struct cm_graph *graph, struct cm_str name, const struct cm_type *type);
cm_value
cm_graph_add_constant(struct cm_graph *graph, struct cm_str name,
                      const struct cm_tensor *tensor); /* The same with a copy of the tensor. */
enum cm_status cm_graph_copy_constant(struct cm_graph *graph, struct cm_str name,
                                      const struct cm_tensor *tensor, cm_value *out,
                                      struct cm_error *err) CM_MUST_CHECK;
/* takes a reference */
/* Gives back what cm_graph_add_constant took, of a value that nobody uses any more. */
void cm_value_drop_constant(struct cm_module *module, cm_value value);
void cm_graph_set_outputs(struct cm_graph *graph, const cm_value *values, size_t count);
/* A value by name, here or in the graphs around; 0 when there is none. */
cm_value cm_graph_find(const struct cm_graph *graph, struct cm_str name);
void cm_value_set_name(struct cm_module *module, cm_value value, struct cm_str name);

/* What a node is made of. Absent trailing operands may be left out. */
struct cm_node_spec {
    struct cm_str domain, op_type, overload, name;
    int64_t version; /* of the operator; 0: the newest */
    const cm_value *inputs;
    size_t n_inputs;
    size_t n_outputs;
    const bool *wanted;                    /* which outputs; NULL: all */
    struct cm_attribute_proto *attributes; /* kept, not copied */
    size_t n_attributes;
    struct cm_body_ref *bodies; /* copied */
    size_t n_bodies;
    const struct cm_function_proto *function;
    int64_t original_version;
    const struct cm_origin *origin;
    uint32_t stream;
    enum cm_node_phase phase;
    const struct cm_node *alike; /* what it is a copy of: results have the declared types of that
                                    one's, and where the operands are known alike, so are they */
};

/* A node's operator, operands, results and attributes as a spec; lists of values are copied to
 * arena. */
struct cm_node_spec cm_node_spec_of(const struct cm_node *node, struct cm_arena *arena);

/* Adds a node before `before` (NULL: at the end) and types it. On failure the graph is as before.
 */
enum cm_status cm_graph_add_node(struct cm_graph *graph, struct cm_node *before,
                                 const struct cm_node_spec *spec, struct cm_node **out,
                                 struct cm_error *err) CM_MUST_CHECK;
/* Does anything read a result of the node? */
bool cm_node_is_read(const struct cm_node *node);
/* Its outputs must have no uses left. */
void cm_graph_remove_node(struct cm_node *node);
/* The nodes of a graph and of all bodies in it, a node before those of its bodies: the one after
 * node, or the first after NULL. */
struct cm_node *cm_graph_next_node(const struct cm_graph *graph, const struct cm_node *node);
void cm_node_move(struct cm_node *node, struct cm_node *before);
/* Can the node be written as the file had it? Its operands may be others by now. */
bool cm_node_has_origin(const struct cm_node *node);
/* Is the node one of a whole group that an upgrade made of one node of the file? Sets *first to the
 * group's first. What passes did inside it is for the caller to know. */
bool cm_node_in_group(const struct cm_node *node, const struct cm_node **first);
/* Of the first, or only, node that was made of one of the file: what that one's operand and result
 * are now. */
cm_value cm_origin_operand(const struct cm_node *first, size_t i);
cm_value cm_origin_result(const struct cm_node *first, size_t o);
/* Moves a node and what it computes to the end of another graph. The values lose their names; what
 * the node reads, and who reads it, is for the caller to set right with cm_use_redirect. */
void cm_node_move_to(struct cm_node *node, struct cm_graph *graph);
/* Reads another value, of which the same is known: nobody becomes stale. */
void cm_use_redirect(struct cm_module *module, struct cm_use *use, cm_value value);
/* Changes one operand; the node becomes stale. */
void cm_node_set_input(struct cm_node *node, int index, cm_value value);
/* Makes output `index` of a node wanted if it is not, and types it. An optional output the schema
 * has. */
enum cm_status cm_node_want_output(struct cm_node *node, int index, cm_value *out,
                                   struct cm_error *err) CM_MUST_CHECK;
/* Makes output `index`, which nobody reads, unwanted; false, and nothing changes, where it is read
 * or the schema does not call it optional. */
bool cm_node_drop_output(struct cm_node *node, int index);
/* Gives a node with bodies `count` more outputs; its bodies must have been given theirs. They are
 * typed. */
enum cm_status cm_node_add_outputs(struct cm_node *node, size_t count,
                                   struct cm_error *err) CM_MUST_CHECK;
/* Every use of old reads new instead, graph outputs included; users become stale when the types
 * differ. */
void cm_value_replace(struct cm_module *module, cm_value old, cm_value replacement);
/* Sets what is known of an input, a constant or a loop state; users become stale when that is a
 * change. */
void cm_value_set_fact(struct cm_module *module, cm_value value, const struct cm_fact *fact);

/* Sets what the file says the type of a computed value is (NULL: nothing), which adds to what is
 * inferred; the node that computes it becomes stale. */
void cm_value_declare(struct cm_module *module, cm_value value, const struct cm_type *declared);

/* Runs the inference rules of stale nodes, and of those that their results reach. */
enum cm_status cm_graph_retype(struct cm_graph *graph, struct cm_error *err) CM_MUST_CHECK;
/* The same for one node, if it is stale; what it reads must be up to date. For passes that walk a
 * graph in order. */
enum cm_status cm_node_retype(struct cm_node *node, struct cm_error *err) CM_MUST_CHECK;

/* While a module is lenient, a node in a body that a rule refuses with what is known by now keeps
 * the types it had: the body may be a branch that is never taken. Passes run so, since what they
 * compute early must not refuse what would have run. Returns what it was before. */
bool cm_module_be_lenient(struct cm_module *module, bool lenient);

/* Removes the nodes of graph and of its bodies whose results nobody reads. Costs no more than there
 * were nodes added, or results that lost their last reader, since the last time. */
void cm_graph_remove_dead(struct cm_graph *graph);

/* What there was in a module at some time; a pass that looks for nothing else may be spared. */
enum cm_module_fact {
    CM_HAD_CALLS = 1,        /* a node that calls a function */
    CM_HAD_RANDOM = 2,       /* a random node */
    CM_HAD_REPLACED = 4,     /* a node that a pass must put others in the place of (CM_REPLACED) */
    CM_HAD_MORE_OUTPUTS = 8, /* a node with more than one output */
    CM_HAD_BODIES_ONLY = 16, /* a node that only its function body can compute */
    CM_HAD_LATER_NODES = 32, /* a graph or function of a file whose nodes were not in order */
};
bool cm_module_had(const struct cm_module *module, enum cm_module_fact fact);

/* The model that was imported last; NULL: none. */
const struct cm_model_proto *cm_module_model(const struct cm_module *module);
/* Channels that are stored together in its blocked weights; 0 until an upgrade rule sets it. */
int64_t cm_module_channel_block(const struct cm_module *module);
void cm_module_set_channel_block(struct cm_module *module, int64_t size);

/* Numbers random nodes of graph and its bodies that have no number yet, in order: a node draws the
 * numbers of its stream whatever passes do to the nodes around it. */
void cm_graph_number_random(struct cm_graph *graph);

/* The contents of a value that never changes: an initializer (loaded on first use) or a constant;
 * NULL otherwise. */
enum cm_status cm_value_constant(struct cm_module *module, cm_value value,
                                 const struct cm_tensor **out, struct cm_error *err) CM_MUST_CHECK;

/* The same, but a large initializer that lies unaligned in its file is not copied: it comes where
 * it lies, with layout cm_unaligned (tensor/layout.h), for those who can read that. */
enum cm_status cm_value_constant_in_place(struct cm_module *module, cm_value value,
                                          const struct cm_tensor **out,
                                          struct cm_error *err) CM_MUST_CHECK;

/* The default of an input that has one, NULL otherwise; loaded on first use. */
enum cm_status cm_value_default(struct cm_module *module, cm_value value,
                                const struct cm_tensor **out, struct cm_error *err) CM_MUST_CHECK;

/* Attributes of a node, with the schema's default when the node has none. Kinds are checked when a
 * node is added, so a rule may rely on them; an attribute without value and default reads as 0,
 * empty or NULL: ask cm_node_has_attr where that matters. */
const struct cm_attribute_proto *cm_node_attr(const struct cm_node *node, const char *name);
bool cm_node_has_attr(const struct cm_node *node, const char *name); /* given or by default */
int64_t cm_node_int(const struct cm_node *node, const char *name);
float cm_node_float(const struct cm_node *node, const char *name);
struct cm_str cm_node_str(const struct cm_node *node, const char *name);
struct cm_int64s cm_node_ints(const struct cm_node *node, const char *name);
struct cm_floats cm_node_floats(const struct cm_node *node, const char *name);
struct cm_strs cm_node_strs(const struct cm_node *node, const char *name);
/* A tensor, the caller's to drop. One that is absent, or a message without contents, is empty: a
 * list of no floats, never NULL. */
/* A tensor out of an attribute, from the model's external files where it lies there. */
enum cm_status cm_node_load(const struct cm_node *node, const struct cm_tensor_proto *proto,
                            struct cm_tensor *out, struct cm_error *err);
enum cm_status cm_node_tensor(const struct cm_node *node, const char *name, struct cm_tensor *out,
                              struct cm_error *err) CM_MUST_CHECK;
struct cm_graph *cm_node_body(const struct cm_node *node, const char *name);
int cm_node_body_index(const struct cm_node *node,
                       const char *name); /* -1: it has none of that name */

static inline cm_value cm_node_input(const struct cm_node *node, int index)
{
    return index < node->n_inputs ? node->inputs[index].value : 0;
}

static inline cm_value cm_node_output(const struct cm_node *node, int index)
{
    return index < node->n_outputs ? node->outputs[index] : 0;
}

/* "node 'conv1' (Conv)" for messages. */
struct cm_node_text {
    char text[480];
};
struct cm_node_text cm_node_describe(const struct cm_node *node);

/* What is a bad argument to an operator is a bad model to everybody outside. Returns the status,
 * and err has it too. */
enum cm_status cm_node_outside(enum cm_status status, struct cm_error *err);

/* For a failure that leaves a node: that, and the text before the reason. Returns the status. */
enum cm_status cm_node_blame(const struct cm_node *node, enum cm_status status,
                             struct cm_error *err);

/* Is the operator's meaning that of the newest version, the one struct cm_op speaks of? */
bool cm_node_is_current(const struct cm_node *node);
/* Would the node be legal, as it stands, under this version of its operator? */
bool cm_node_fits(const struct cm_node *node, const struct cm_schema *schema);
/* The same with the reason why not. */
enum cm_status cm_node_check_version(const struct cm_node *node, const struct cm_schema *schema,
                                     struct cm_error *err) CM_MUST_CHECK;

/* Nodes of graph and the bodies in it; a region is one. */
size_t cm_graph_count(const struct cm_graph *graph);

#endif
