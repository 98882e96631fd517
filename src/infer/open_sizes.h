/* Sizes for the dimensions of inputs that a model leaves open. The first guess comes from names and
 * places ("batch", the last axes of an image); where inference then refuses a node, other sizes are
 * tried, those that the refused node mentions first, within a fixed amount of work. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_INFER_OPEN_SIZES_H
#define CM_INFER_OPEN_SIZES_H

#include "base/array.h"
#include "graph/graph.h"

/* What a dimension seems to be for. */
enum cm_size_role {
    CM_SIZE_OTHER,
    CM_SIZE_BATCH,
    CM_SIZE_CHANNELS,
    CM_SIZE_SPATIAL, /* of an image */
    CM_SIZE_LENGTH,  /* of a text, or frames */
    CM_SIZE_SAMPLES, /* of a sound */
};

struct cm_open_size {
    struct cm_str symbol; /* "" when it has no name */
    uint32_t number;      /* of the symbol; 0: none */
    size_t input;         /* where it stands first */
    int axis;
    enum cm_size_role role;
    int64_t size;
    bool is_given;   /* by the caller: never changed */
    bool is_formula; /* the symbol is an expression of others: "past + sequence" */
};

/* What is known beforehand of an input of the graph. */
struct cm_size_input {
    bool is_open;                 /* its sizes are to be found; inputs with a default may stay */
    const struct cm_shape *shape; /* what it will be; NULL: as its type says */
};

struct cm_size_setting {
    struct cm_str symbol;
    int64_t size;
};

struct cm_size_options {
    const struct cm_size_input *inputs; /* one for each input of the graph */
    const struct cm_size_setting *settings;
    size_t n_settings;
    int64_t batch;    /* the guess for batches */
    unsigned attempt; /* 0: the best guesses; 1, 2, ..: others, for when those did not run */
};

struct cm_open_sizes {
    CM_ARRAY(struct cm_open_size);
    const struct cm_type **types; /* per input: with every size known; NULL: was not open */
    bool fits;                    /* inference accepts every node */
    char refusal[400];            /* what it says otherwise */
};

/* graph is left typed with what was found. Fails for a setting whose symbol no input has, or a
 * shape that an input cannot have; that no sizes fit is no failure. */
enum cm_status cm_open_sizes_find(struct cm_graph *graph, const struct cm_size_options *options,
                                  struct cm_open_sizes *out, struct cm_error *err) CM_MUST_CHECK;

/* The first guess: what the dimension is for. input is the name of the input, type the tensor. */
enum cm_size_role cm_size_role(struct cm_str symbol, struct cm_str input,
                               const struct cm_type *type, int axis);
int64_t cm_size_guess(enum cm_size_role role, int rank, int64_t batch);
/* Does one of the words of name ("pixel_values": pixel, values) begin with this one? */
bool cm_name_has_word(struct cm_str name, const char *word);
/* The value of a symbol that is an expression of the others; false when it is none. */
bool cm_size_formula(const struct cm_open_sizes *sizes, size_t index, int64_t *out);

enum { CM_SIZE_CANDIDATES_MAX = 160 };

struct cm_size_candidates {
    int64_t items[CM_SIZE_CANDIDATES_MAX];
    size_t count;
};

/* Other values for a size, now `size`, where a node was refused, likely ones first: those that its
 * operands have; what makes one of these another, by proportion or by difference; what is usual. */
void cm_size_candidates(const struct cm_node *refused, int64_t size,
                        struct cm_size_candidates *out);

#endif
