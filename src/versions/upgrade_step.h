/* What the files of the version rules share: the node on its way up or down, ways to change it, and
 * the tables of rows, one per family. Not for other folders. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_VERSIONS_UPGRADE_STEP_H
#define CM_VERSIONS_UPGRADE_STEP_H

#include "graph/builder.h"
#include "graph/registry.h"

struct cm_upgrade;
typedef enum cm_status cm_upgrade_step_fn(struct cm_upgrade *up);

/* A node in the form of another version, which no graph can hold: graphs know the newest only. */
struct cm_version_form {
    struct cm_node_spec spec;
    const struct cm_schema *schema;
    cm_value *outputs;     /* values of the graph without a maker, spec.n_outputs; 0: not wanted */
    struct cm_node *after; /* the last node of the graph that comes before it; NULL: none */
    struct cm_str notes;   /* those of the rows that were used */
};

/* A node on its way up or down. Steps read attributes from `node`, which has the defaults of the
 * version it is leaving, and change `spec` through the functions below, which keep both in step.
 * What they emit is of the newest version. */
struct cm_upgrade {
    struct cm_builder build; /* cm_emit works on it; a failed emit is noticed after the step */
    struct cm_node_spec *spec;
    struct cm_node node; /* a view for reading: spec under the schema it has reached */
    const struct cm_schema *next, *goal;
    cm_value *outputs; /* what takes the place of the node's outputs */
    size_t n_outputs;
    bool done;                    /* the outputs are there, no step is left */
    bool wrapped;                 /* a step works on the outputs of what is left */
    int64_t opset;                /* to reach; 0: the newest */
    cm_upgrade_step_fn *walk;     /* takes the steps that are left */
    struct cm_version_form *form; /* where the node goes; NULL: into the graph */
};

/* How version `to` of an operator differs from the one before it. */
struct cm_upgrade_row {
    const char *op;
    int to;
    cm_upgrade_step_fn *step;
    const char *note;
};

/* Versions of an operator in which old nodes mean what they meant. */
struct cm_upgrade_same {
    const char *op;
    int to[10]; /* ascending, zeros at the end */
};

/* Rows are sorted by operator, then version. */
struct cm_upgrade_table {
    const char *domain;
    const struct cm_upgrade_row *rows;
    size_t count;
};
extern const struct cm_upgrade_table cm_upgrade_elementwise, cm_upgrade_shape, cm_upgrade_reduce,
    cm_upgrade_nn, cm_upgrade_resize, cm_upgrade_ml;
/* The same for the way down: `to` is the version that the step leaves for the one before it. */
extern const struct cm_upgrade_table cm_downgrade_elementwise, cm_downgrade_shape,
    cm_downgrade_reduce, cm_downgrade_nn, cm_downgrade_resize, cm_downgrade_ml;
const struct cm_upgrade_row *cm_upgrade_find_row(const struct cm_upgrade_table *const *tables,
                                                 size_t count, struct cm_str domain,
                                                 struct cm_str op, int to);
extern const struct cm_upgrade_same cm_upgrade_unchanged[];
extern const size_t cm_upgrade_unchanged_count;

struct cm_arena *cm_upgrade_arena(const struct cm_upgrade *up);
enum cm_status cm_upgrade_fail(struct cm_upgrade *up, enum cm_status status, const char *format,
                               ...) CM_PRINTF(3, 4);

/* Attributes: given says whether the file had it. */
bool cm_upgrade_given(const struct cm_upgrade *up, const char *name);
void cm_upgrade_drop(struct cm_upgrade *up, const char *name);
void cm_upgrade_set(struct cm_upgrade *up, struct cm_attribute_proto attr); /* adds or replaces */
void cm_upgrade_rename(struct cm_upgrade *up, const char *name, const char *to);

/* Operands. */
cm_value cm_upgrade_input(const struct cm_upgrade *up, size_t i); /* 0: absent */
void cm_upgrade_set_input(struct cm_upgrade *up, size_t i, cm_value value);
const struct cm_type *cm_upgrade_type(const struct cm_upgrade *up, size_t i); /* NULL: absent */
int cm_upgrade_rank(const struct cm_upgrade *up, size_t i); /* may be CM_RANK_UNKNOWN */
bool cm_upgrade_wants(const struct cm_upgrade *up, size_t o);
/* Exactly these outputs of the node in its new version. */
void cm_upgrade_set_outputs(struct cm_upgrade *up, size_t count, const bool *wanted);

/* An attribute that became a constant input: a list, or one number of rank 0. */
cm_value cm_upgrade_int64s(struct cm_upgrade *up, size_t count, const int64_t *values);
void cm_upgrade_ints_to_input(struct cm_upgrade *up, const char *name, size_t input);

/* From here on the node is this version of another operator. For use as the last thing of a step.
 */
enum cm_status cm_upgrade_become(struct cm_upgrade *up, const char *op, int version);
/* The node, as this step leaves it, goes through the steps that are left and is added; then
 * up->outputs can be worked on. */
enum cm_status cm_upgrade_rest(struct cm_upgrade *up);

/* The value takes the place of the node, which has one output. For use as the last thing of a step.
 */
enum cm_status cm_upgrade_give(struct cm_upgrade *up, cm_value value);

/* Value with the shape of `like`, its elements in the same order. */
cm_value cm_upgrade_reshape_like(struct cm_upgrade *up, cm_value value, cm_value like);
cm_value cm_upgrade_cast(struct cm_upgrade *up, cm_value value, enum cm_dtype to);

/* What an operator of another runtime stands for. */
struct cm_adoption {
    const char *op;
    int n_inputs;        /* that there must be */
    const char *becomes; /* of ai.onnx, with the same attributes and operands; NULL: other nodes */
    cm_upgrade_step_fn *step;
};
extern const struct cm_adoption cm_upgrade_nchwc[];
extern const size_t cm_upgrade_nchwc_count;

/* The node becomes what cm_upgrade_adopts promised. */
enum cm_status cm_upgrade_adopt(struct cm_upgrade *up);

/* Does version `to` only add to what the one before it can say, but for hints? */
bool cm_upgrade_changes_little(struct cm_str domain, struct cm_str op, int to);
/* Of the node's operator; NULL: it is younger. */
const struct cm_schema *cm_upgrade_schema_at(const struct cm_upgrade *up, int64_t opset);
/* Calls the step, if its operands are tensors. */
enum cm_status cm_upgrade_take_step(struct cm_upgrade *up, cm_upgrade_step_fn *step);
/* Remembers what a row did, for people. */
void cm_upgrade_note_row(struct cm_upgrade *up, const char *note);
/* The end of the way: the node is added, or becomes up->form where it is legal in that version. */
enum cm_status cm_upgrade_add(struct cm_upgrade *up);

/* The node spec, of version from, as this opset of its domain has it, which may be newer or older.
 * outputs has its results as they are typed elsewhere, and receives what takes their place. What
 * else is needed is emitted with builder. */
enum cm_status cm_convert_node(struct cm_builder *builder, struct cm_node_spec *spec,
                               const struct cm_schema *from, int64_t opset, cm_value *outputs,
                               struct cm_version_form *form) CM_MUST_CHECK;

/* Steps that several families use. */
cm_upgrade_step_fn cm_upgrade_drop_consumed, cm_upgrade_axes_to_input, cm_upgrade_through_double;

/* Down, from the version of the node to up->opset (downgrade.c). */
cm_upgrade_step_fn cm_downgrade_walk;

/* The steps that are long. */
cm_upgrade_step_fn cm_upgrade_scan_8, cm_upgrade_batchnorm_7, cm_upgrade_batchnorm_9;

#define CM_UPGRADE_TABLE(domain_, rows_)                                                           \
    {                                                                                              \
        (domain_), (rows_), sizeof(rows_) / sizeof((rows_)[0])                                     \
    }

#endif
