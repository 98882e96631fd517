/* What the parts of the code writer share. Not for other folders.
 *
 * Lines hold references instead of names until they are printed: a byte that says what is meant, a
 * number, and a byte that ends it. Neither byte can come out of a model: escape.c lets no control
 * character through. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_CODE_STATE_H
#define CM_CONVERT_CODE_STATE_H

#include "base/diagnostics.h"
#include "convert/code/code.h"
#include "graph/graph.h"

#define CM_CODE_VAR    '\1' /* a variable, by its number */
#define CM_CODE_TENSOR '\2' /* a tensor of the model */
#define CM_CODE_LAYER  '\4' /* a layer of the framework */
#define CM_CODE_END    '\3'
#define CM_CODE_CUT    ".cut" /* ends the name of an input of the loss that the model computes */

/* A variable of the generated function. */
struct cm_code_var {
    struct cm_str hint; /* what it would like to be called: an identifier */
    struct cm_str name; /* once that is settled; unique */
    size_t defs, uses;  /* lines that assign it, readings; set by cm_code_tidy */
    cm_value value;     /* that it holds; 0: it is of a row */
    bool is_live;       /* lines needed it before they were tidied */
};

/* A tensor that the generated module holds. */
struct cm_code_tensor {
    cm_value value;
    struct cm_str path;               /* "layers.0.weight": its name in the framework; unique */
    bool is_parameter;                /* is trained */
    bool is_turned;                   /* the framework's tensor is the transposed one */
    bool is_inside;                   /* its few elements are written into the code */
    bool is_used;                     /* lines read it */
    enum cm_dtype dtype;              /* of the model */
    struct cm_shape shape;            /* as the framework has it */
    const struct cm_tensor *contents; /* of one that is inside, or was computed here; or NULL */
    struct cm_saved_tensor *saved;    /* of all others */
};

/* A layer of the framework, which holds tensors of the model under its own names. */
struct cm_code_layer {
    struct cm_str path; /* "encoder.fc1" */
    struct cm_str made; /* the expression that makes it: "nn.Linear(4, 3)" */
    size_t *tensors;
    size_t n_tensors;
    bool is_used;
    bool is_block; /* of a class of ours */
    bool is_list;  /* a list of such, which a loop reads */
};

struct cm_code_line {
    int indent;         /* spaces */
    struct cm_str text; /* with references */
    bool is_gone;
};

struct cm_code_lines {
    CM_ARRAY(struct cm_code_line);
};

/* A part of the network that occurs several times, with other tensors: a class. */
struct cm_code_class {
    struct cm_str name;
    struct cm_str prefix; /* of the first one's tensors: "layers.0." */
    struct cm_code_lines lines;
    CM_ARRAY(size_t) inputs;      /* variables */
    CM_ARRAY(struct cm_str) args; /* of the constructor: names */
    struct cm_code_made {
        size_t layer;
        struct cm_str how; /* the layer is made, with names of args */
    } * made;
    size_t n_made;
};

struct cm_code {
    struct cm_arena *arena;
    const struct cm_code_framework *to;
    const struct cm_code_options *options;
    const struct cm_model_file *file;
    struct cm_module *module;
    struct cm_graph *graph;
    struct cm_originals *originals;
    struct cm_saved *saved;        /* as a checkpoint of PyTorch would be: names of the network */
    struct cm_saved_texts notes;   /* for people */
    struct cm_saved_index network; /* tensors of the network that was exported */
    bool has_network;
    struct cm_map gate_tensors; /* their names to numbers of tensors */

    CM_ARRAY(struct cm_code_var) vars;
    struct cm_map var_of;   /* cm_value to number + 1 */
    struct cm_map own_vars; /* names of templates to number + 1 */
    struct cm_map names;    /* identifiers that are taken */
    CM_ARRAY(struct cm_code_tensor) tensors;
    struct cm_map tensor_of; /* cm_value to number + 1 */
    CM_ARRAY(struct cm_code_layer) layers;
    struct cm_map layer_of; /* path to number + 1 */
    struct cm_map moved;    /* initializers that training updates */
    struct cm_map *lists;   /* of writers: modules that are lists 1, others 2 */
    struct cm_map alike;    /* contents of small constants to the first value that holds them */
    struct cm_map paths;    /* of tensors, and of what they are in: 1 a tensor, 2 a module */
    struct cm_code_lines lines;
    CM_ARRAY(struct cm_code_class) classes;
    const struct cm_code_class *within; /* the class that is printed; NULL: the model itself */
    CM_ARRAY(struct cm_str) helpers;    /* names, in the order of their first use */
    CM_ARRAY(size_t) inputs;            /* variables */
    struct cm_str result;               /* what is returned, with references */
    int indent;                         /* of the node at hand */
    size_t n_uses;                      /* of rows */
    int depth;                          /* of bodies in bodies */
    const struct cm_node *node;         /* the node at hand */
    bool expands;                       /* its row wants the function body in its place */
    bool has_training;                  /* the writer wrote what trains it on */
    bool is_function; /* not a module: tensors of the model are written where they are read */
    struct cm_error *err;
};

/* ---- escape.c: names and texts of models in Python ---- */

/* An identifier of ASCII letters, digits and '_' made of any text; never empty, never a keyword,
 * at most 60 characters. */
struct cm_str cm_code_identifier(struct cm_arena *arena, struct cm_str text);
/* What no variable may be called although attributes may: ends with NULL. */
extern const char *const cm_code_builtins[];
/* Is it one as it stands, and no keyword? */
bool cm_code_is_identifier(struct cm_str text);
bool cm_code_is_number(struct cm_str text); /* digits only, at most 6, no leading zero */
/* A literal of Python in ASCII. is_bytes: of type bytes. */
struct cm_str cm_code_string(struct cm_arena *arena, struct cm_str text, bool is_bytes);
/* Numbers as Python literals: float("inf"), -1.5e-07, True. */
struct cm_str cm_code_float(struct cm_arena *arena, double value, bool is_single);
struct cm_str cm_code_element(struct cm_arena *arena, const struct cm_tensor *tensor, int64_t i);
/* The elements of a tensor as nested lists. */
struct cm_str cm_code_nested(struct cm_arena *arena, const struct cm_tensor *tensor);
/* What people may be shown of a text in a comment: printable ASCII, at most 200 characters. */
struct cm_str cm_code_comment(struct cm_arena *arena, struct cm_str text);

/* ---- code_vars.c: variables and references ---- */

/* A text that grows. */
struct cm_code_text {
    CM_ARRAY(char);
};
void cm_code_put(struct cm_code *code, struct cm_code_text *text, struct cm_str more);
void cm_code_putf(struct cm_code *code, struct cm_code_text *text, const char *format, ...)
    CM_PRINTF(3, 4);
static inline struct cm_str cm_code_text_str(const struct cm_code_text *text)
{
    return (struct cm_str){text->items, text->count};
}

size_t cm_code_new_var(struct cm_code *code, struct cm_str hint);
struct cm_str cm_code_ref(struct cm_code *code, char kind, size_t number);
/* The reference that text has at *at, which then moves past it. False: there is none. */
bool cm_code_read_ref(struct cm_str text, size_t *at, char *kind, size_t *number);
/* How lines read a value: a variable or a tensor of the model. */
struct cm_str cm_code_value(struct cm_code *code, cm_value value);
/* The contents that never change, of a value that is not trained; NULL: it has none. */
const struct cm_tensor *cm_code_contents(struct cm_code *code, cm_value value);
const struct cm_type *cm_code_type_of(const struct cm_code *code, cm_value value);
/* The framework's type for elements; NULL: it has none. */
const char *cm_code_type(const struct cm_code *code, enum cm_dtype dtype);
/* An identifier that nothing else has: hint, hint_2, .. */
struct cm_str cm_code_unique(struct cm_code *code, struct cm_map *names, struct cm_str hint);
/* The line with names in the place of references. */
struct cm_str cm_code_named(struct cm_code *code, struct cm_str text);

/* code.c: the lines of the graph, tidied, with a return. */
enum cm_status cm_code_make_lines(struct cm_code *code, struct cm_error *err) CM_MUST_CHECK;
/* code.c: takes the names that code of the framework needs itself. */
void cm_code_reserve_names(struct cm_code *code);

/* ---- code_tensors.c ---- */

/* Which initializers are parameters and what they are called; before any pass. */
enum cm_status cm_code_take_tensors(struct cm_code *code, struct cm_error *err) CM_MUST_CHECK;
/* The number of the tensor that a constant is. */
size_t cm_code_tensor(struct cm_code *code, cm_value value);
/* The layer that holds exactly these tensors, under these names: "weight", "bias"; -1: there is
 * none. made: how it is made. */
struct cm_code_held {
    struct cm_str name;
    cm_value value; /* 0: the layer has no such tensor */
    bool is_turned; /* as the framework has it, the tensor is the transposed one of the value */
};
int64_t cm_code_layer(struct cm_code *code, const struct cm_code_held *held, size_t count);
/* The tensors of the network that the operands of a recurrent node were made of, in PyTorch's
 * order; at most 8. 0: that is not known. layer: the layer that holds just these, -1: there is
 * none. */
size_t cm_code_gates(struct cm_code *code, const cm_value *values, size_t count, size_t *tensors,
                     int64_t *layer);
/* Names and contents of those that lines read. */
enum cm_status cm_code_settle_tensors(struct cm_code *code, struct cm_error *err) CM_MUST_CHECK;

/* ---- code_nodes.c ---- */

/* The lines of a graph's nodes; adds a finding for each node that has no form. */
enum cm_status cm_code_nodes(struct cm_code *code, struct cm_graph *graph,
                             struct cm_error *err) CM_MUST_CHECK;
/* Is there a row for the operator? */
const struct cm_template_text *cm_code_row(const struct cm_code_framework *to, struct cm_str domain,
                                           struct cm_str op_type);
/* The text "torch/KIND/NAME"; NULL: there is none. */
const struct cm_template_text *cm_code_text_of(const struct cm_code_framework *to, const char *kind,
                                               struct cm_str name);
void cm_code_line(struct cm_code *code, int indent, struct cm_str text);

/* code_host.c; its arg is the struct cm_code. */
extern const struct cm_template_host cm_code_host;

/* ---- code_tidy.c: lines that are not needed go, short ones go into the line that reads them ----
 */
void cm_code_tidy(struct cm_code *code);
/* The first half of it. */
void cm_code_remove_dead(struct cm_code *code);
/* Marks the variables that are left. */
void cm_code_note_live(struct cm_code *code);
/* The variables that a line assigns, "a, b = VALUE"; count 0: it is no such line. */
struct cm_code_assignment {
    size_t targets[16];
    size_t count;
    struct cm_str value;
};
struct cm_code_assignment cm_code_assignment(struct cm_str text);

/* ---- code_blocks.c: parts that occur several times become classes ---- */
void cm_code_find_blocks(struct cm_code *code);

/* ---- code_print.c ---- */

/* Puts a statement at an indentation, broken into lines of at most 88 columns as formatters of
 * Python do. */
void cm_code_statement(struct cm_code *code, struct cm_code_text *out, int indent,
                       struct cm_str text);
/* The helpers in use and what they need themselves, in order, each after two empty lines. */
void cm_code_helpers(struct cm_code *code, struct cm_code_text *out);

#endif
