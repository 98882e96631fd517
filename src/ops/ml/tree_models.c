/* TreeEnsembleClassifier and TreeEnsembleRegressor. Where ONNX's text leaves open what becomes of
 * the sums of the leaves, they do as ONNX Runtime does. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/common/reals.h"
#include "ops/ml/class_labels.h"
#include "ops/ml/forest_walk.h"
#include "ops/ml/scores.h"
#include "ops/ml/tree_lists.h"

struct tree_model {
    struct cm_real_list base; /* none, one for all, or one per target */
    enum cm_scores finish;
    int32_t n_targets;
    struct cm_labels labels;
    bool one_class; /* two classes, but all weights are for one of them */
    bool positive;  /* no weight is negative */
};

/* A vector is one row. */
static enum cm_status infer_rows(struct cm_infer *in, struct cm_dim *rows)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const struct cm_str finish = cm_node_str(in->node, "post_transform");
    enum cm_scores ignored;
    if (!cm_scores_parse(finish, &ignored))
        return cm_infer_fail(in, "attribute 'post_transform' is '%.*s', which is not known",
                             CM_STR_FMT(finish));
    CM_TRY(cm_infer_rank(in, 0, 1, 2));
    *rows = x->rank == 2 ? x->dims[0] : x->rank == 1 ? CM_DIM(1) : CM_DIM_ANY;
    return CM_OK;
}

static void drop_base(void *what)
{
    cm_real_list_drop(what);
}

static enum cm_status load_base(struct cm_call *call, struct tree_model *m)
{
    cm_call_defer(call, drop_base, &m->base);
    CM_TRY(cm_real_list_load(call, "base_values", &m->base));
    if (m->base.count > 1 && m->base.count != (size_t)m->n_targets)
        return cm_call_fail(call, CM_BAD_MODEL, "there are %zu base values for %d scores",
                            m->base.count, (int)m->n_targets);
    return CM_OK;
}

static double base_of(const struct tree_model *m, int64_t target)
{
    return m->base.count ? cm_real_list_at(&m->base, m->base.count > 1 ? (size_t)target : 0) : 0;
}

/* ---- TreeEnsembleRegressor ---- */

static bool parse_join(struct cm_str name, enum cm_tree_join *out)
{
    static const char *const names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    for (size_t i = 0; i < CM_COUNT(names); i++) {
        *out = (enum cm_tree_join)i;
        if (cm_str_is(name, names[i]))
            return true;
    }
    return false;
}

static enum cm_status regressor_infer(struct cm_infer *in)
{
    const int64_t targets = cm_node_int(in->node, "n_targets");
    const struct cm_str join = cm_node_str(in->node, "aggregate_function");
    enum cm_tree_join ignored;
    struct cm_dim dims[2];
    CM_TRY(infer_rows(in, &dims[0]));
    if (targets < 1 || targets > INT32_MAX)
        return cm_infer_fail(in, "attribute 'n_targets' is %lld, expected 1 or more",
                             (long long)targets);
    if (!parse_join(join, &ignored))
        return cm_infer_fail(
            in,
            "attribute 'aggregate_function' is '%.*s', expected 'AVERAGE', 'SUM', 'MIN' or 'MAX'",
            CM_STR_FMT(join));
    dims[1] = CM_DIM(targets);
    return cm_infer_set_tensor(in, 0, CM_FLOAT, 2, dims);
}

static enum cm_status read_regressor(struct cm_call *call, const void *model,
                                     struct cm_trees *trees)
{
    static const struct cm_weight_names names = {"target_treeids", "target_nodeids", "target_ids",
                                                 "target_weights"};
    const struct tree_model *m = model;
    CM_TRY(cm_tree_lists_read(call, &names, m->n_targets, trees));
    parse_join(cm_node_str(call->node, "aggregate_function"), &trees->join);
    return CM_OK;
}

static enum cm_status begin_regressor(struct cm_call *call, void *model)
{
    struct tree_model *m = model;
    m->n_targets = (int32_t)cm_node_int(call->node, "n_targets");
    cm_scores_parse(cm_node_str(call->node, "post_transform"), &m->finish);
    return load_base(call, m);
}

/* Targets that no leaf has a weight for stay 0, but a single one gets its base value. */
static void regress_row(void *arg, int64_t row, double *scores, const bool *has_score)
{
    const struct cm_forest_use *use = arg;
    const struct tree_model *m = use->model;
    for (int32_t t = 0; t < m->n_targets; t++)
        if (has_score[t] || m->n_targets == 1)
            scores[t] += base_of(m, t);
    cm_scores_finish_targets(m->finish, m->n_targets, scores);
    cm_reals_store(CM_FLOAT, use->call->out[0]->data, row * m->n_targets, m->n_targets, scores);
}

static const struct cm_forest_rule regressor = {sizeof(struct tree_model), begin_regressor,
                                                read_regressor, regress_row};

CM_OP_IN(ml, "ai.onnx.ml", TreeEnsembleRegressor, .infer = regressor_infer,
         .prepare = cm_forest_op_prepare, .run = cm_forest_op_run, .grad = cm_grad_none,
         .arg = &regressor);

/* ---- TreeEnsembleClassifier ---- */

static enum cm_status classifier_infer(struct cm_infer *in)
{
    const struct cm_labels labels = cm_labels_read(in->node, "classlabels_int64s");
    struct cm_dim dims[2];
    CM_TRY(infer_rows(in, &dims[0]));
    if (labels.count < 1 || labels.count > INT32_MAX)
        return cm_infer_fail(in, "it has %zu class labels, needs 1 or more", labels.count);
    dims[1] = CM_DIM((int64_t)labels.count);
    CM_TRY(cm_infer_set_tensor(in, 0, cm_labels_type(&labels), 1, dims));
    return cm_infer_set_tensor(in, 1, CM_FLOAT, 2, dims);
}

static enum cm_status read_classifier(struct cm_call *call, const void *model,
                                      struct cm_trees *trees)
{
    static const struct cm_weight_names names = {"class_treeids", "class_nodeids", "class_ids",
                                                 "class_weights"};
    const struct tree_model *m = model;
    CM_TRY(cm_tree_lists_read(call, &names, m->n_targets, trees));
    trees->join = CM_TREE_SUM;
    return CM_OK;
}

/* What the weights are like decides how two classes are told apart. */
static enum cm_status look_at_weights(struct cm_call *call, struct tree_model *m)
{
    const struct cm_int64s classes = cm_node_ints(call->node, "class_ids");
    struct cm_real_list weights;
    const enum cm_status status = cm_real_list_load(call, "class_weights", &weights);
    m->positive = true;
    m->one_class = m->n_targets == 2 && classes.count > 0;
    for (size_t i = 0; i < classes.count; i++)
        m->one_class = m->one_class && classes.items[i] == classes.items[0];
    for (size_t i = 0; i < weights.count; i++)
        m->positive = m->positive && cm_real_list_at(&weights, i) >= 0;
    cm_real_list_drop(&weights);
    return status;
}

static enum cm_status begin_classifier(struct cm_call *call, void *model)
{
    struct tree_model *m = model;
    m->labels = cm_labels_read(call->node, "classlabels_int64s");
    m->n_targets = (int32_t)m->labels.count;
    cm_scores_parse(cm_node_str(call->node, "post_transform"), &m->finish);
    CM_TRY(load_base(call, m));
    return look_at_weights(call, m);
}

/* Three classes and more: the largest score wins, of those that have one. */
static size_t choose_class(const struct tree_model *m, double *scores, const bool *has_score)
{
    int32_t best = -1;
    for (int32_t c = 0; c < m->n_targets; c++) {
        scores[c] += base_of(m, c);
        if ((has_score[c] || m->base.count) && (best < 0 || scores[c] > scores[best]))
            best = c;
    }
    cm_scores_finish(m->finish, m->n_targets, scores);
    return best < 0 ? 0 : (size_t)best;
}

/* Two classes. If only the first has a score, that counts for the second: it is a
 * probability where no weight is negative, else its distance from the border. One base value is for
 * the first. */
static size_t choose_of_two(const struct tree_model *m, double *scores, const bool *has_score)
{
    const bool probability = m->one_class && m->positive;
    if (has_score[0] && m->base.count)
        scores[0] += base_of(m, 0);
    if (has_score[1] && m->base.count == 2)
        scores[1] += base_of(m, 1);
    const double score = has_score[1] ? scores[1] : scores[0];
    if (has_score[1] || m->base.count == 2)
        cm_scores_finish(m->finish, 2, scores);
    else
        cm_scores_finish_pair(m->finish, probability, score, scores);
    return score > (probability ? 0.5 : 0);
}

static void classify_row(void *arg, int64_t row, double *scores, const bool *has_score)
{
    const struct cm_forest_use *use = arg;
    const struct tree_model *m = use->model;
    const size_t label = m->n_targets == 2 ? choose_of_two(m, scores, has_score)
                                           : choose_class(m, scores, has_score);
    cm_labels_store(use->call, &m->labels, row, label);
    if (use->call->n_out > 1 && use->call->out[1])
        cm_reals_store(CM_FLOAT, use->call->out[1]->data, row * m->n_targets, m->n_targets, scores);
}

static const struct cm_forest_rule classifier = {sizeof(struct tree_model), begin_classifier,
                                                 read_classifier, classify_row};

CM_OP_IN(ml, "ai.onnx.ml", TreeEnsembleClassifier, .infer = classifier_infer,
         .prepare = cm_forest_op_prepare, .run = cm_forest_op_run, .grad = cm_grad_none,
         .arg = &classifier);
