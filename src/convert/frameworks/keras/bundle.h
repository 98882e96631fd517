/* Checkpoints of TensorFlow: an index (a table of names) and files of data beside it, and in it a
 * graph of Python's objects that says which variable is whose. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_BUNDLE_H
#define CM_CONVERT_BUNDLE_H

#include "base/array.h"
#include "convert/format.h"
#include "onnx/wire.h"

#define CM_BUNDLE_GRAPH_KEY "_CHECKPOINTABLE_OBJECT_GRAPH"
#define CM_BUNDLE_SUFFIX    "/.ATTRIBUTES/VARIABLE_VALUE"

/* ---- the index and its data ---- */

struct cm_bundle_entry {
    struct cm_str key;
    uint64_t type;                  /* TensorFlow's number */
    struct cm_saved_tensor *tensor; /* NULL: texts, or a type that is not read */
    struct cm_str text;             /* of a single text */
};

struct cm_bundle {
    CM_ARRAY(struct cm_bundle_entry) entries;
    struct cm_map keys;
    uint64_t shards;
};

/* prefix is the name of the index without ".index", in the place. The check sums of the index are
 * looked at, and those of texts and single numbers, which are read here; those of weights are not:
 * reading all bytes of a checkpoint only to list it would take as long as copying it. */
enum cm_status cm_bundle_read(struct cm_saved_place *place, struct cm_str prefix,
                              struct cm_bundle *out, struct cm_error *err) CM_MUST_CHECK;
/* The entry of key, or NULL. */
const struct cm_bundle_entry *cm_bundle_find(const struct cm_bundle *bundle, struct cm_str key);
/* TensorFlow's number of a type, 0 when it has none. */
uint64_t cm_bundle_type(enum cm_dtype dtype);

/* A message of numbers and texts: fields 1 to 3, the last of each. false: it is broken. */
struct cm_bundle_fields {
    uint64_t numbers[4];
    struct cm_str texts[4];
};
bool cm_bundle_read_fields(struct cm_str message, struct cm_bundle_fields *out);
/* The contents of a field. */
static inline struct cm_str cm_bundle_field_text(const struct cm_wire_field *field)
{
    return (struct cm_str){(const char *)field->data, field->size};
}

/* ---- the graph of objects ---- */

struct cm_bundle_child {
    struct cm_str name;
    size_t node;
};
struct cm_bundle_slot {
    size_t weight, slot; /* nodes */
    struct cm_str name;
};

struct cm_bundle_node {
    CM_ARRAY(struct cm_bundle_child) children;
    CM_ARRAY(struct cm_bundle_slot) slots;
    struct cm_str full_name, key; /* of a variable; no key: it is none */
    struct cm_str path;           /* the shortest one from the root: names joined by '/' */
    bool is_reached;              /* from the root */
};

struct cm_bundle_graph {
    struct cm_bundle_node *nodes;
    size_t count;
};

enum cm_status cm_bundle_graph_parse(struct cm_arena *arena, struct cm_str bytes,
                                     struct cm_bundle_graph *out,
                                     struct cm_error *err) CM_MUST_CHECK;
struct cm_str cm_bundle_graph_encode(struct cm_arena *arena, const struct cm_bundle_graph *graph);
/* The child of that name, or NULL. */
const struct cm_bundle_node *cm_bundle_child(const struct cm_bundle_graph *graph,
                                             const struct cm_bundle_node *node, const char *name);
/* The graph as a fact that a model can keep, and back. false: the item is no such fact. */
const struct cm_item *cm_bundle_graph_item(struct cm_arena *arena,
                                           const struct cm_bundle_graph *graph);
bool cm_bundle_graph_from_item(struct cm_arena *arena, const struct cm_item *item,
                               struct cm_bundle_graph *out);

/* ---- what the variables of a graph are ---- */

enum cm_bundle_use {
    CM_USE_NONE, /* no variable, or one that is not in the files */
    CM_USE_WEIGHT,
    CM_USE_SLOT,
    CM_USE_AVERAGE,
    CM_USE_STEP,
    CM_USE_RATE,
    CM_USE_SETTING, /* of an optimizer, one that is a variable: beta_1 */
    CM_USE_OTHER
};

struct cm_bundle_variable {
    enum cm_bundle_use use;
    struct cm_str name; /* of the weight; of a slot, of the weight it is for */
    struct cm_str slot;
    size_t weight;   /* of a slot: the node of its weight */
    size_t position; /* among the trained ones; SIZE_MAX: not trained, or not known */
};

struct cm_bundle_roles {
    struct cm_bundle_variable *variables;   /* by node */
    const struct cm_bundle_node *optimizer; /* NULL: none */
    struct cm_str optimizer_name;           /* "adam"; empty: not known */
    bool by_hand;                           /* the optimizer is none of Keras's */
    size_t optimizers;
};

/* shape_of(arg, key): the shape of a variable, or NULL when there is none of that key. */
typedef const struct cm_shape *cm_bundle_shape_fn(const void *arg, struct cm_str key);
void cm_bundle_roles(struct cm_arena *arena, const struct cm_bundle_graph *graph,
                     cm_bundle_shape_fn *shape_of, const void *arg, struct cm_bundle_roles *out);

/* The row's write: a folder with one checkpoint. */
enum cm_status cm_bundle_write(const struct cm_saved *saved, const char *path,
                               struct cm_error *err);

#endif
