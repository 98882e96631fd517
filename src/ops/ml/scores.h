/* What models that score rows of features share: their rows, and what is done to scores at the end.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_OPS_ML_SCORES_H
#define CM_OPS_ML_SCORES_H

#include "graph/op.h"

/* How many rows input 0 has: a vector is one. Refuses what surely has another number of features.
 */
enum cm_status cm_infer_feature_rows(struct cm_infer *in, int64_t features,
                                     struct cm_dim *rows) CM_MUST_CHECK;

/* Rows of a run that are scored one by one. Threads share them in parts. Each part has scratch
 * memory of its own. */
struct cm_score_rows {
    int64_t rows, parts;
    size_t doubles; /* of scratch memory of a part */
};
/* Scores a row with doubles of scratch memory; model and call are those of the run. */
typedef void cm_score_row_fn(const void *model, struct cm_call *call, int64_t row, double *scratch);
/* In prepare: for the rows of input 0, and about as many products in each. */
enum cm_status cm_score_rows_prepare(struct cm_call *call, size_t doubles, int64_t products,
                                     struct cm_score_rows *out) CM_MUST_CHECK;
void cm_score_rows_run(const struct cm_score_rows *rows, struct cm_call *call,
                       cm_score_row_fn *score, const void *model);

enum cm_scores {
    CM_SCORES_PLAIN,
    CM_SCORES_SOFTMAX,
    CM_SCORES_LOGISTIC,
    CM_SCORES_SOFTMAX_ZERO,
    CM_SCORES_PROBIT
};

/* By the name that attributes give it. */
bool cm_scores_parse(struct cm_str name, enum cm_scores *out);
void cm_scores_finish(enum cm_scores how, int64_t count, double *row);
/* The same for the targets of a regression: as in ONNX Runtime, a single one is not transformed,
 * but by PROBIT. */
void cm_scores_finish_targets(enum cm_scores how, int64_t count, double *row);
/* What two classes get of the one score s that a model gives for the second: -s and s, or 1 - s and
 * s if it counts as a probability. As in ONNX Runtime, softmax does not act on them, and LOGISTIC
 * acts on -s and s. */
void cm_scores_finish_pair(enum cm_scores how, bool probability, double s, double *row);

#endif
