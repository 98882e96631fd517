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

/* An attribute of the older version that the newer one has as an operand. */
enum cm_moved_form {
    CM_MOVED_LIST,        /* integers */
    CM_MOVED_LIST_OR_ALL, /* the same, but none of them is as if it were not given */
    CM_MOVED_COUNT,       /* an integer, always given: a list of one */
    CM_MOVED_REAL,        /* a float: a scalar of the type of operand 0 */
    CM_MOVED_REAL_OR_0,   /* the same, but 0 is as if it were not given */
};
struct cm_moved {
    const char *attribute;
    size_t operand;
    enum cm_moved_form form;
};

/* How version `to` of some operators differs from the one before it. A step is taken after what the
 * members before it say. */
struct cm_version_row {
    const char *ops; /* in alphabetical order, one space between them */
    int to;
    const char *gone;         /* attribute that says nothing that is not known without it */
    struct cm_moved moved[3]; /* in both directions */
    cm_upgrade_step_fn *up;
    const char *up_note;   /* NULL: old nodes mean what they meant */
    bool same_where_legal; /* a node that is legal in both versions means the same in both */
    /* Absent: there is a way down if attributes moved, if nothing but `gone` differs, or if the
     * version is listed as unchanged. */
    cm_upgrade_step_fn *down;
    const char *down_note;
};
struct cm_version_table {
    const char *domain;
    const struct cm_version_row *rows;
    size_t count;
};
extern const struct cm_version_table cm_changes_elementwise, cm_changes_shape, cm_changes_reduce,
    cm_changes_nn, cm_changes_resize, cm_changes_ml;
extern const struct cm_version_table *const cm_version_tables[];
extern const size_t cm_version_table_count;
/* The row of one version of an operator, NULL: there is none. */
const struct cm_version_row *cm_version_find_row(struct cm_str domain, struct cm_str op, int to);

/* Operators in whose version `to` old nodes mean what they meant. */
struct cm_version_same {
    const char *domain;
    int to;
    const char *ops; /* as above */
};
extern const struct cm_version_same cm_version_unchanged[];
extern const size_t cm_version_unchanged_count;
/* Is it listed there? */
bool cm_version_is_unchanged(struct cm_str domain, struct cm_str op, int to);

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

/* Of the node's operator; NULL: it is younger. */
const struct cm_schema *cm_upgrade_schema_at(const struct cm_upgrade *up, int64_t opset);
/* Steps look at element types and dimensions: refuses operands that are no tensors. */
enum cm_status cm_upgrade_check_tensors(struct cm_upgrade *up) CM_MUST_CHECK;
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

/* Down, from the version of the node to up->opset. */
cm_upgrade_step_fn cm_downgrade_walk;
/* Is there a way from version `to` to the one before it? */
bool cm_downgrade_known(struct cm_str domain, struct cm_str op, int to);
/* A word that an attribute may hold since version `to` only. */
struct cm_new_word {
    const char *op;
    int to;
    const char *attribute, *word;
};
/* The one that the node holds; NULL: none. */
const struct cm_new_word *cm_version_new_word(const struct cm_node *node, int to);

enum { LIST_MAX = 4096 }; /* elements of an operand that may become an attribute */

/* The contents of an operand that the older version has as an attribute; NULL: it is absent.
 * Refuses what is not constant. */
enum cm_status cm_downgrade_constant(struct cm_upgrade *down, size_t i, const char *what,
                                     const struct cm_tensor **out) CM_MUST_CHECK;
enum cm_status cm_downgrade_ints(struct cm_upgrade *down, size_t i, const char *what,
                                 struct cm_int64s *out) CM_MUST_CHECK;
/* Constant operand i becomes a float attribute, if it is there. */
enum cm_status cm_downgrade_real(struct cm_upgrade *down, size_t i, const char *name) CM_MUST_CHECK;
/* Axes in an attribute, if it is there, are counted from the front, of input 0 with `extra` axes
 * more. */
enum cm_status cm_downgrade_axis(struct cm_upgrade *down, const char *name,
                                 int extra) CM_MUST_CHECK;

/* Steps of several families: down, the same for the attributes axis and axes; and nothing, where
 * what is legal in the older version means the same there. */
cm_upgrade_step_fn cm_upgrade_through_double, cm_downgrade_axes, cm_downgrade_nothing;

/* The steps that are long. */
cm_upgrade_step_fn cm_upgrade_scan_8;

#define CM_VERSION_TABLE(domain_, rows_)                                                           \
    {                                                                                              \
        (domain_), (rows_), CM_COUNT(rows_)                                                        \
    }

#endif
