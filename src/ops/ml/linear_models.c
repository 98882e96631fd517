/* LinearRegressor and LinearClassifier: products of features and coefficients. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"
#include "graph/op.h"
#include "ops/common/reals.h"
#include "ops/ml/class_labels.h"
#include "ops/ml/scores.h"

/* Rows of scores and what is done to them. */
struct model {
    struct cm_floats coefficients, intercepts;
    int64_t outputs, features;
    struct cm_score_rows rows;
    enum cm_scores finish;
    struct cm_labels labels; /* of a classifier */
};

static enum cm_status read_model(const struct cm_node *node, int64_t outputs, struct model *m,
                                 struct cm_error *err)
{
    m->coefficients = cm_node_floats(node, "coefficients");
    m->intercepts = cm_node_floats(node, "intercepts");
    m->outputs = outputs;
    if (!cm_scores_parse(cm_node_str(node, "post_transform"), &m->finish))
        return cm_fail(err, CM_BAD_MODEL,
                       "attribute 'post_transform' is '%.*s', expected 'NONE', 'SOFTMAX', "
                       "'LOGISTIC', 'SOFTMAX_ZERO' or 'PROBIT'",
                       CM_STR_FMT(cm_node_str(node, "post_transform")));
    if (outputs < 1 || (uint64_t)outputs > m->coefficients.count ||
        m->coefficients.count % (size_t)outputs != 0)
        return cm_fail(err, CM_BAD_MODEL, "%zu coefficients are not a multiple of %lld results",
                       m->coefficients.count, (long long)outputs);
    if (m->intercepts.count && m->intercepts.count != (size_t)outputs)
        return cm_fail(err, CM_BAD_MODEL, "there are %zu intercepts for %lld results",
                       m->intercepts.count, (long long)outputs);
    m->features = (int64_t)m->coefficients.count / outputs;
    return CM_OK;
}

static enum cm_status reserve(struct cm_call *call, struct model *m)
{
    return cm_score_rows_prepare(call, (size_t)m->features + (size_t)m->outputs + 2,
                                 m->outputs * m->features, &m->rows);
}

/* The scores of a row, which follow its features in scratch memory. */
static double *score_row(const struct model *m, const struct cm_tensor *x, int64_t row,
                         double *scratch)
{
    double *scores = scratch + m->features;
    cm_reals_load(x->type, x->data, row * m->features, m->features, scratch);
    for (int64_t o = 0; o < m->outputs; o++) {
        const float *weights = m->coefficients.items + o * m->features;
        double sum = m->intercepts.count ? (double)m->intercepts.items[o] : 0;
        for (int64_t i = 0; i < m->features; i++)
            sum += scratch[i] * (double)weights[i];
        scores[o] = sum;
    }
    return scores;
}

static cm_value constant(struct cm_grad *g, const float *items, const struct cm_shape *shape)
{
    const struct cm_tensor tensor = cm_tensor_borrow(CM_FLOAT, shape, (void *)(uintptr_t)items);
    return cm_build_tensor(&g->build, &tensor);
}

/* From the finished scores y, output number o, back to those before. Of a probit: by probabilities
 * p whose normal quantiles are y, 1 / density(y). */
static cm_value unfinish(struct cm_grad *g, const struct model *m, int o)
{
    const cm_value y = cm_grad_output(g, o), dy = cm_grad_incoming(g, o);
    if (m->finish == CM_SCORES_LOGISTIC)
        return cm_emit_formula(g, "y, dy: dy * (y * (1 - y))", y, dy);
    if (m->finish == CM_SCORES_PLAIN)
        return dy;
    if (m->finish != CM_SCORES_PROBIT)
        return cm_emit_formula(g, "y, dy: y * (dy - ReduceSum(dy * y, [1]))", y, dy);
    const cm_value shift =
        m->intercepts.count ? constant(g, m->intercepts.items, &CM_SHAPE(m->outputs)) : 0;
    const struct cm_str text = cm_arena_printf(
        cm_builder_arena(&g->build),
        "x, y, dy, weights, shift: zero = float(0); one = float(1);"
        "p = MatMul(float(Reshape(x, [-1, %lld])), Transpose(weights)) + shift;"
        "p = %d ? Concat<axis=1>(one - p, p) : p; slope = Exp(y * y * 0.5) * %.17g;"
        "dy * Where(And(Greater(p, zero), Less(p, one)), slope, zero)",
        (long long)m->features, m->outputs < cm_builder_type(&g->build, y)->dims[1].value,
        2.50662827463100050242);
    return cm_emit_formula(g, cm_str_text(text), cm_grad_input(g, 0), y, dy,
                           constant(g, m->coefficients.items, &CM_SHAPE(m->outputs, m->features)),
                           shift);
}

/* ds: the gradient of the rows of scores before they are finished. */
static enum cm_status set_features(struct cm_grad *g, const struct model *m, cm_value ds)
{
    const cm_value x = cm_grad_input(g, 0);
    const cm_value weights = constant(g, m->coefficients.items, &CM_SHAPE(m->outputs, m->features));
    return cm_grad_set(g, 0,
                       cm_emit_formula(g, "x, ds, w: CastLike(Reshape(MatMul(ds, w), Shape(x)), x)",
                                       x, ds, weights));
}

/* ---- LinearRegressor ---- */

/* A single target is not transformed, see cm_scores_finish_targets. */
static enum cm_status read_regressor(const struct cm_node *node, struct model *m,
                                     struct cm_error *err)
{
    CM_TRY(read_model(node, cm_node_int(node, "targets"), m, err));
    if (m->outputs == 1 && m->finish != CM_SCORES_PROBIT)
        m->finish = CM_SCORES_PLAIN;
    return CM_OK;
}

static enum cm_status regressor_infer(struct cm_infer *in)
{
    struct model m;
    struct cm_dim dims[2];
    CM_TRY(read_regressor(in->node, &m, in->err));
    CM_TRY(cm_infer_feature_rows(in, m.features, &dims[0]));
    dims[1] = CM_DIM(m.outputs);
    return cm_infer_set_tensor(in, 0, CM_FLOAT, 2, dims);
}

static enum cm_status regressor_prepare(struct cm_call *call)
{
    struct model *m = cm_call_state(call, sizeof *m);
    CM_TRY(read_regressor(call->node, m, call->err));
    return reserve(call, m);
}

static void regress_row(const void *model, struct cm_call *call, int64_t row, double *scratch)
{
    const struct model *m = model;
    double *scores = score_row(m, call->in[0], row, scratch);
    cm_scores_finish(m->finish, m->outputs, scores);
    cm_reals_store(CM_FLOAT, call->out[0]->data, row * m->outputs, m->outputs, scores);
}

static enum cm_status regressor_run(struct cm_call *call)
{
    const struct model *m = call->state;
    cm_score_rows_run(&m->rows, call, regress_row, m);
    return CM_OK;
}

static enum cm_status regressor_grad(struct cm_grad *g)
{
    struct model m;
    if (!cm_grad_wants(g, 0))
        return CM_OK;
    CM_TRY(read_regressor(g->node, &m, g->build.err));
    return set_features(g, &m, unfinish(g, &m, 0));
}

CM_OP_IN(ml, "ai.onnx.ml", LinearRegressor, .infer = regressor_infer, .prepare = regressor_prepare,
         .run = regressor_run, .grad = regressor_grad);

/* ---- LinearClassifier ---- */

static size_t class_count(const struct cm_node *node)
{
    return cm_labels_read(node, "classlabels_ints").count;
}

/* Two classes may share one row of coefficients, see cm_scores_finish_pair: then softmax does not
 * act. features are those of the input, below 0 when they are not known. */
static enum cm_status read_classifier(const struct cm_node *node, int64_t features, struct model *m,
                                      struct cm_error *err)
{
    const size_t rows = cm_node_floats(node, "intercepts").count, classes = class_count(node);
    const bool one_row =
        rows == 1 || (rows == 0 && (int64_t)cm_node_floats(node, "coefficients").count == features);
    if (classes < 2)
        return cm_fail(err, CM_BAD_MODEL, "it has %zu class labels, needs 2 or more", classes);
    CM_TRY(read_model(node, classes == 2 && one_row ? 1 : (int64_t)classes, m, err));
    if (m->outputs == 1 && (m->finish == CM_SCORES_SOFTMAX || m->finish == CM_SCORES_SOFTMAX_ZERO))
        m->finish = CM_SCORES_PLAIN;
    return CM_OK;
}

static enum cm_status classifier_infer(struct cm_infer *in)
{
    const bool text = cm_node_strs(in->node, "classlabels_strings").count > 0;
    struct model m;
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_dim dims[2];
    CM_TRY(read_classifier(in->node, x->rank > 0 ? x->dims[x->rank - 1].value : -1, &m, in->err));
    CM_TRY(cm_infer_feature_rows(in, m.features, &dims[0]));
    dims[1] = CM_DIM((int64_t)class_count(in->node));
    CM_TRY(cm_infer_set_tensor(in, 0, text ? CM_STRING : CM_INT64, 1, dims));
    return cm_infer_set_tensor(in, 1, CM_FLOAT, 2, dims);
}

static enum cm_status classifier_prepare(struct cm_call *call)
{
    struct model *m = cm_call_state(call, sizeof *m);
    const struct cm_shape *x = &call->in[0]->shape;
    CM_TRY(read_classifier(call->node, x->rank ? x->dims[x->rank - 1] : 1, m, call->err));
    m->labels = cm_labels_read(call->node, "classlabels_ints");
    return reserve(call, m);
}

static void classify_row(const void *model, struct cm_call *call, int64_t row, double *scratch)
{
    const struct model *m = model;
    double *scores = score_row(m, call->in[0], row, scratch);
    const int64_t classes = (int64_t)m->labels.count;
    int64_t best = 0;
    if (m->outputs < classes) {
        best = scores[0] > 0;
        cm_scores_finish_pair(m->finish, true, scores[0], scores);
    } else {
        for (int64_t i = 1; i < classes; i++)
            best = scores[i] > scores[best] ? i : best;
        cm_scores_finish(m->finish, classes, scores);
    }
    cm_labels_store(call, &m->labels, row, (size_t)best);
    if (call->n_out > 1 && call->out[1])
        cm_reals_store(CM_FLOAT, call->out[1]->data, row * classes, classes, scores);
}

static enum cm_status classifier_run(struct cm_call *call)
{
    const struct model *m = call->state;
    cm_score_rows_run(&m->rows, call, classify_row, m);
    return CM_OK;
}

/* Of the scores; labels have none. */
static enum cm_status classifier_grad(struct cm_grad *g)
{
    const struct cm_type *x = cm_builder_type(&g->build, cm_grad_input(g, 0));
    struct model m;
    if (!cm_grad_wants(g, 0))
        return CM_OK;
    CM_TRY(
        read_classifier(g->node, x->rank > 0 ? x->dims[x->rank - 1].value : -1, &m, g->build.err));
    cm_value ds = unfinish(g, &m, 1);
    if (m.outputs < (int64_t)class_count(g->node)) /* -s and s */
        ds = cm_emit_formula(g,
                             "ds: axis = [1]; two = [2]; no = Slice(ds, [0], axis, axis);"
                             "Slice(ds, axis, two, axis) - no",
                             ds);
    return set_features(g, &m, ds);
}

CM_OP_IN(ml, "ai.onnx.ml", LinearClassifier, .infer = classifier_infer,
         .prepare = classifier_prepare, .run = classifier_run, .grad = classifier_grad);
