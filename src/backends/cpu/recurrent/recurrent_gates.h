/* What LSTM, GRU and RNN compute between two products of a step, for a slice of the hidden state:
 * the gates of every sample and the next states; and the same backwards. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BACKENDS_CPU_RECURRENT_RECURRENT_GATES_H
#define CM_BACKENDS_CPU_RECURRENT_RECURRENT_GATES_H

#include "graph/recurrent_form.h"

enum cm_cell_kind { CM_LSTM, CM_GRU, CM_RNN };

/* Elements of the hidden state that are computed together: a panel of the product. */
enum { CM_CELL_SLICE = 16 };

/* A slice at one step: `columns` of the elements of a state, of `rows` samples. Rows of a state
 * follow each other by state_row, pointers are to the first element of the slice. */
struct cm_gate_slice {
    enum cm_cell_kind kind;
    const struct cm_recurrent_activation *activations; /* of the direction */
    bool is_usual; /* the usual activations, nothing clipped, no peepholes, no coupled gates */
    bool has_clip;
    float clip;
    bool coupled; /* LSTM: the forget gate is 1 less the input gate */
    bool linear;  /* GRU: linear before reset */
    int64_t rows;
    int columns;
    float *sums; /* (gates, CM_CELL_SLICE) a row: H R, with X W added but for a GRU's */
    int64_t sums_row;
    const float *input; /* GRU: X W */
    int64_t input_row;
    const float *h; /* state before */
    float *next_h;
    float *c;     /* LSTM: becomes the next */
    float *reset; /* GRU, not linear: r * H, which is multiplied with R then */
    int64_t state_row;
    const float *peepholes; /* of i, o, f, `hidden` apart; NULL: none */
    int64_t hidden;
    float *y; /* NULL: not wanted */
    int64_t y_row;
    float *kept; /* parts `hidden` apart; NULL: not wanted */
    int64_t kept_row;
    const int32_t *lengths; /* of the rows' sequences; NULL: all are whole */
    int64_t position;
};

/* All of the slice, where it is a GRU's that is not linear before reset as far as r * H. */
void cm_gates_forward(const struct cm_gate_slice *slice);
/* The rest of that, when sums hold (r * H) R for the last gate. */
void cm_gates_candidate(const struct cm_gate_slice *slice);

/* The same on the way back, of any number of slices side by side. */
struct cm_gate_slice_back {
    enum cm_cell_kind kind;
    bool is_relu; /* RNN: not a tanh */
    int64_t rows;
    int64_t columns;
    int64_t hidden;
    const float *dy; /* NULL: none */
    int64_t y_row;   /* of dy and y */
    float *d_h; /* gradient of H' but for dy; becomes what reaches H beside the product with R */
    float *d_c; /* LSTM: gradient of C'; becomes that of C */
    const float *h; /* state before: GRU */
    int64_t h_row;
    const float *c; /* LSTM: likewise, rows c_row apart */
    int64_t c_row;
    const float *y;    /* state after: RNN */
    int64_t state_row; /* of d_h and d_c */
    const float *kept; /* parts `hidden` apart */
    int64_t kept_row;
    /* Parts `hidden` apart. Of a GRU one more: the candidate's of H R, z, r, the candidate's of X
     * W. */
    float *d_gates;
    int64_t gates_row;
    double
        *totals; /* over samples, parts `hidden` apart: those of the rows are added; NULL: none */
};

void cm_gates_backward(const struct cm_gate_slice_back *slice);

#endif
