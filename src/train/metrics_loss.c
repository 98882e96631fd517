/* Losses of single predictions, as PyTorch has them. */
// SPDX-License-Identifier: Apache-2.0
#include "train/metrics_parts.h"

#include <float.h>
#include <math.h>

static double epsilon_of(const struct cm_tensor *scores)
{
    return scores->type == CM_DOUBLE ? DBL_EPSILON : (double)FLT_EPSILON;
}

double cm_score_at(const struct cm_score_position *p, int64_t column)
{
    return cm_tensor_real(p->scores, p->first + column * p->step);
}

bool cm_is_distribution(const struct cm_score_position *p)
{
    double sum = 0;

    for (int64_t c = 0; c < p->count; c++) {
        const double score = cm_score_at(p, c);

        if (!(score >= 0))
            return false;
        sum += score;
    }
    return fabs(sum - 1) < 1e-3;
}

double cm_loss_of_class(const struct cm_metrics *m, const struct cm_score_position *p,
                        int64_t column)
{
    const double score = cm_score_at(p, column);
    double most = -(double)INFINITY, sum = 0;

    if (m->loss == CM_LOSS_NLL)
        return -score;
    if (m->probabilities) {
        const double epsilon = epsilon_of(p->scores);

        return -log(score < epsilon ? epsilon : score > 1 - epsilon ? 1 - epsilon : score);
    }
    for (int64_t c = 0; c < p->count; c++)
        most = fmax(most, cm_score_at(p, c));
    for (int64_t c = 0; c < p->count; c++)
        sum += exp(cm_score_at(p, c) - most);
    return most + log(sum) - score;
}

/* Logarithms of probabilities end at -100, as in PyTorch. */
static double bounded_log(double p)
{
    return p > 0 ? fmax(log(p), -100) : -100;
}

double cm_loss_of_number(enum cm_metric_loss loss, double x, double target)
{
    const double error = x - target;

    switch (loss) {
    case CM_LOSS_MEAN_SQUARES:
        return error * error;
    case CM_LOSS_L1:
        return fabs(error);
    case CM_LOSS_HUBER:
        return fabs(error) < 1 ? error * error / 2 : fabs(error) - 0.5;
    case CM_LOSS_BCE:
        return -(target * bounded_log(x) + (1 - target) * bounded_log(1 - x));
    case CM_LOSS_BCE_LOGITS:
        return fmax(x, 0) - x * target + log1p(exp(-fabs(x)));
    default:
        return 0;
    }
}

void cm_metrics_lose(struct cm_metrics *m, double loss)
{
    m->loss_sum += loss;
    m->loss_weight += 1;
}

void cm_metrics_add_loss(struct cm_metrics *m, double loss, int64_t rows)
{
    m->loss_sum += loss * (double)rows;
    m->loss_weight += (double)rows;
}

void cm_metrics_add_rows(struct cm_metrics *m, int64_t rows)
{
    m->samples += rows;
}
