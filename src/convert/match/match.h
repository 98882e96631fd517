/* Which tensors of a checkpoint the tensors of a model are, and how they are made of them.
 *
 * Evidence is tried from sure to weak, and a tensor that is found is not asked again: the user's
 * rules, names that the exporter recorded, names (as they are, without prefixes, spelled as another
 * framework does), gates of recurrent layers, the layer that a tensor is part of in the graph,
 * values (weights that were trained stay close to those they began with), and last that only one is
 * left that fits. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_MATCH_H
#define CM_CONVERT_MATCH_H

#include "base/array.h"
#include "convert/transfer/import_saved.h"
#include "graph/op.h"

struct cm_match_source {
    struct cm_str name;
    struct cm_str key; /* its name as all frameworks would spell it, convert/match/match_names.c */
    const struct cm_saved_tensor *tensor;
    enum cm_saved_role role;
    size_t uses;    /* tensors of the model that are made of it */
    size_t next;    /* index + 1 of the next source of its layer; 0: none */
    size_t same;    /* index + 1 of the source that it is tied to; 0: it stands for itself */
    bool is_misfit; /* it has the name of a tensor that it cannot be */
};

/* A node that reads a tensor: as its operand, or behind nodes that only turn or copy it. */
struct cm_match_reader {
    const struct cm_node_proto *node;
    const struct cm_op *op;
    int operand;
};

struct cm_match_target {
    struct cm_str name;
    struct cm_tensor_proto *tensor;
    struct cm_shape shape;
    bool is_constant;            /* held in a Constant node */
    bool is_needed;              /* a layer learns it: it must come from the checkpoint */
    struct cm_match_reader read; /* the first that reads it; node NULL: none */
    struct cm_parts parts;       /* none: not found */
    struct cm_str how;
    struct cm_str misfit; /* a tensor has its name, but cannot be it: why */
    bool is_computed;     /* of tensors of the network, in a way that cannot be followed */
    bool is_tied;         /* a node makes it of another tensor of the same source */
};

/* An element of a source, and where it is in the model's tensor. */
struct cm_match_element {
    const struct cm_saved_tensor *tensor;
    int64_t from, to;
};

struct cm_match_read {
    size_t node; /* of the graph */
    int operand;
    size_t next; /* index + 1 of another reading of the same value; 0: none */
};

struct cm_matching {
    struct cm_arena *arena;
    struct cm_model_file *file;
    const struct cm_saved *saved;
    CM_ARRAY(struct cm_match_source) sources;
    CM_ARRAY(struct cm_match_target) targets;
    struct cm_map source_names, target_names; /* to index + 1 */
    struct cm_map source_keys;                /* the same by key; 0: several have it */
    struct cm_map layers;                     /* layers to index + 1 of their last source */
    struct cm_map spelled;                    /* as source_keys, in words alone; see there */
    struct cm_map makers;                     /* values to the number of their node + 1 */
    struct cm_map readers;                    /* values to index + 1 in reads */
    CM_ARRAY(struct cm_match_read) reads;
    struct cm_saved_reader reader;
    struct cm_match_element *elements;    /* room for those that are compared */
    const struct cm_match_target *loaded; /* whose values are at hand; NULL: nobody's */
    struct cm_tensor values;
    size_t scores; /* comparisons so far */
    double scale;  /* of the last one: how much larger the tensor is than what it is made of */
    struct cm_findings problems; /* of the rules */
};

/* match.c: all of it; m lives in its arena. map: the text of the rules, or empty. */
enum cm_status cm_match(struct cm_matching *m, struct cm_str map,
                        struct cm_error *err) CM_MUST_CHECK;
struct cm_match_source *cm_match_find_source(const struct cm_matching *m, struct cm_str name);
struct cm_match_target *cm_match_find_target(const struct cm_matching *m, struct cm_str name);
const struct cm_saved_tensor *cm_match_tensor(void *matching, struct cm_str name);
/* Takes parts for a target and counts its sources as used. */
void cm_match_take(struct cm_matching *m, struct cm_match_target *target,
                   const struct cm_parts *parts, const char *how, ...) CM_PRINTF(4, 5);
/* Takes a source for a target in the layout that fits best; false: none does. */
bool cm_match_accept(struct cm_matching *m, struct cm_match_target *target,
                     struct cm_match_source *source, const char *how);
/* May a source be left over without an error: it is no weight, or shares its memory with one that
 * is used? */
bool cm_match_may_be_left(const struct cm_matching *m, const struct cm_match_source *source);

/* match_names.c: a name as every framework would spell it, "bn1.mean" for bn1/moving_mean:0;
 * is_traced: without the numbers that TensorFlow puts behind names when it traces a function. */
struct cm_str cm_match_key(struct cm_arena *arena, struct cm_str name, bool is_traced);
/* The key without its last part: the layer. And that part: "weight", "bias", "mean", "var". */
struct cm_str cm_match_layer(struct cm_str key);
void cm_match_by_name(struct cm_matching *m);
/* match_rules.c: "INITIALIZER = NAME", "/REGEX/ = REPLACEMENT" with \1 .. \9. */
void cm_match_by_rules(struct cm_matching *m, struct cm_str map);
/* match_originals.c: by the names that exporters recorded. */
void cm_match_by_original(struct cm_matching *m);
/* match_layers.c: by the layer that the graph has it in; layers that are alike, by their place. */
void cm_match_by_layer(struct cm_matching *m);
void cm_match_by_place(struct cm_matching *m);
/* The source that the exporter says a node reads at an operand of this shape; NULL: it does not. */
struct cm_match_source *cm_match_told_source(struct cm_matching *m,
                                             const struct cm_match_reader *read,
                                             const struct cm_shape *shape);
const char *cm_match_duty(const struct cm_match_reader *read);
/* match_merged.c: before matching, initializers that an exporter merged because they were equal are
 * taken apart; after it, those that are one in the framework become one. Both change the graph. */
void cm_match_split(struct cm_matching *m);
void cm_match_tie(struct cm_matching *m);
void cm_match_read_again(struct cm_matching *m);
/* match_gates.c: W, R and B of recurrent layers. */
void cm_match_gates(struct cm_matching *m);
/* match_values.c */
void cm_match_by_values(struct cm_matching *m);
void cm_match_the_rest(struct cm_matching *m);
bool cm_match_fits(struct cm_matching *m, const struct cm_match_source *source,
                   const struct cm_shape *shape);

/* How like each other the tensor and what the parts would make of it are: correlation of elements,
 * -1 to 1. *least: what chance alone would hardly give; above 1: too few elements to tell. NAN: the
 * tensor holds one repeated value. */
double cm_match_score(struct cm_matching *m, const struct cm_match_target *target,
                      const struct cm_parts *parts, double *least);

/* layouts.c: the ways in which exporters lay out a source as a tensor of this shape, likely ones
 * first; how many. */
enum { CM_LAYOUTS_MAX = 5 };
size_t cm_layouts(struct cm_arena *arena, struct cm_str source, const struct cm_shape *from,
                  const struct cm_shape *to, struct cm_parts out[CM_LAYOUTS_MAX]);
/* "", ", transposed", ", reshaped": what became of the source, for people. */
const char *cm_layout_word(const struct cm_parts *parts);

#endif
