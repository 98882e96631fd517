/* Gradients against central differences. */
// SPDX-License-Identifier: Apache-2.0
#include "train/gradcheck.h"

#include "autodiff/backward.h"
#include "autodiff/gradient_nodes.h"
#include "base/random.h"
#include "graph/eval.h"
#include "graph/function.h"
#include "graph/import.h"
#include "infer/invent.h"
#include "lower/lower.h"
#include "train/widen.h"

#include <math.h>

enum {
    SAMPLES = 20,
    BATCH_GUESS = 2,
    NARROWINGS = 3, /* widths of differences that are tried */
};
static const double SUSPICIOUS = 1e-5; /* agreement that is not looked into any further */

struct checking {
    struct cm_arena *arena;
    const struct cm_gradcheck_options *options;
    struct cm_graph *model; /* as the file has it, initializers of floats as inputs with defaults */
    struct cm_graph *forward, *backward; /* widened; backward: further inputs are seeds */
    struct cm_datum *inputs;             /* of forward, then seeds */
    const struct cm_datum **in;
    size_t n_inputs, n_seeds;
    size_t *seeded; /* outputs that have a seed */
    double here;    /* the objective of the inputs as they are */
    struct cm_random random;
    struct cm_error *err;
};

static bool is_double(const struct cm_type *type)
{
    return type->kind == CM_KIND_TENSOR && type->dtype == CM_DOUBLE;
}

/* ---- values ---- */

static enum cm_status new_value(struct checking *c, struct cm_datum *datum, enum cm_dtype dtype,
                                const struct cm_shape *shape)
{
    datum->kind = CM_KIND_TENSOR;
    return cm_tensor_new(dtype, shape, &datum->tensor, c->err);
}

/* Away from 0, where many functions have kinks. */
static void fill(struct checking *c, struct cm_tensor *tensor)
{
    double *values = tensor->data;
    for (int64_t i = 0, n = cm_tensor_count(tensor); i < n; i++) {
        const double x = 2 * cm_random_uniform(&c->random) - 1;
        values[i] = x < 0 ? x - 0.05 : x + 0.05;
    }
}

static enum cm_status copy_value(struct checking *c, const struct cm_tensor *from,
                                 const struct cm_type *type, struct cm_datum *out)
{
    out->kind = CM_KIND_TENSOR;
    return is_double(type) ? cm_tensor_widen(from, &out->tensor, c->err)
                           : cm_tensor_copy(from, &out->tensor, c->err);
}

/* Sets what is given or has a default; *is_set tells. */
static enum cm_status set_input(struct checking *c, size_t index, bool *is_set)
{
    struct cm_module *module = c->forward->module;
    const cm_value value = c->forward->inputs[index];
    const struct cm_value_def *def = cm_value_get(module, value);
    struct cm_datum *out = &c->inputs[index];
    const struct cm_tensor *preset;

    *is_set = true;
    for (size_t i = 0; i < c->options->n_feeds; i++)
        if (cm_str_equal(c->options->feeds[i].name, def->name))
            return copy_value(c, c->options->feeds[i].value, def->fact.type, out);
    CM_TRY(cm_value_default(module, value, &preset, c->err));
    *is_set = preset != NULL;
    return preset ? copy_value(c, preset, def->fact.type, out) : CM_OK;
}

static enum cm_status widen(struct checking *c, struct cm_graph **out);

/* Everything else is made up, in a graph of its own: finding sizes types it again and again. */
static enum cm_status set_inputs(struct checking *c)
{
    struct cm_size_input *inputs = CM_NEW_ARRAY(c->arena, struct cm_size_input, c->n_inputs);
    bool *wanted = CM_NEW_ARRAY(c->arena, bool, c->n_inputs);
    const struct cm_invent_options options = {.sizes = {.inputs = inputs, .batch = BATCH_GUESS},
                                              .wanted = wanted,
                                              .seed = c->options->seed,
                                              .both_signs = true};
    struct cm_open_sizes sizes;
    struct cm_graph *graph;
    bool any = false;

    for (size_t i = 0; i < c->n_inputs; i++) {
        bool is_set;

        CM_TRY(set_input(c, i, &is_set));
        inputs[i].is_open = true;
        inputs[i].shape = is_set ? &c->inputs[i].tensor.shape : NULL;
        wanted[i] = !is_set;
        any = any || !is_set;
    }
    if (!any)
        return CM_OK;
    CM_TRY(widen(c, &graph));
    return cm_invent(graph, &options, &sizes, c->inputs, c->err);
}

/* ---- graphs ---- */

/* Initializers of floats become inputs with defaults, so that they can be moved. */
static bool is_float(void *arg, const struct cm_tensor_proto *initializer)
{
    (void)arg;
    return cm_dtype_is_float(initializer->data_type);
}

static enum cm_status import(struct checking *c, const struct cm_model_file *file)
{
    const struct cm_module_options options = {
        .files = file->files, .registry = file->registry, .is_widened = true};
    const struct cm_import_options import = {.opens = is_float};

    CM_TRY(cm_lower_import_as(cm_module_new(c->arena, &options), &file->model, &import, &c->model,
                              c->err));
    return cm_graph_inline_calls(c->model, c->err);
}

static enum cm_status widen(struct checking *c, struct cm_graph **out)
{
    CM_TRY(cm_graph_widen(c->model, out, c->err));
    return cm_gradient_expand(*out, c->err);
}

/* What draws only in training is not random while nothing switches its training on. */
static bool may_draw(const struct cm_node *node)
{
    const struct cm_training_form *training = node->op ? node->op->training : NULL;

    return node->op && node->op->effects & CM_RANDOM &&
           !(training && training->mode_input && !cm_node_input(node, training->mode_input));
}

/* Differences of draws say nothing. */
static enum cm_status refuse_random(const struct cm_graph *graph, struct cm_error *err)
{
    for (const struct cm_node *node = NULL; (node = cm_graph_next_node(graph, node));)
        if (may_draw(node))
            return cm_fail(err, CM_UNSUPPORTED,
                           "%s is random, so gradients cannot be compared with differences",
                           cm_node_describe(node).text);
    return CM_OK;
}

/* The backward graph gives the gradient of each double input of the forward one, in order. */
static enum cm_status differentiate(struct checking *c, bool *reached)
{
    struct cm_graph *graph = c->backward;
    struct cm_module *module = graph->module;
    const size_t n = c->n_inputs;
    cm_value *ys = CM_NEW_ARRAY(c->arena, cm_value, graph->n_outputs);
    cm_value *seeds = CM_NEW_ARRAY(c->arena, cm_value, graph->n_outputs);
    cm_value *xs = CM_NEW_ARRAY(c->arena, cm_value, n),
             *grads = CM_NEW_ARRAY(c->arena, cm_value, n);
    size_t n_xs = 0;

    for (size_t i = 0; i < c->n_seeds; i++) {
        ys[i] = graph->outputs[c->seeded[i]].value;
        seeds[i] = cm_graph_add_input(graph, CM_STR_NONE, cm_value_get(module, ys[i])->fact.type);
    }
    for (size_t i = 0; i < n; i++)
        if (is_double(cm_value_get(module, graph->inputs[i])->fact.type))
            xs[n_xs++] = graph->inputs[i];
    const struct cm_autodiff what = {
        .graph = graph, .ys = ys, .seeds = seeds, .n_ys = c->n_seeds, .xs = xs, .n_xs = n_xs};
    CM_TRY(cm_autodiff_emit(&what, grads, c->err));
    for (size_t i = 0; i < n_xs; i++) {
        reached[i] = grads[i] != 0;
        if (!grads[i])
            grads[i] = xs[i]; /* something must stand there */
    }
    cm_graph_set_outputs(graph, grads, n_xs);
    return CM_OK;
}

/* ---- numbers ---- */

static void drop_all(struct cm_datum *data, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cm_datum_drop(&data[i]);
}

static enum cm_status objective(struct checking *c, double *out)
{
    const size_t n = c->forward->n_outputs;
    struct cm_datum *results = CM_NEW_ARRAY(c->arena, struct cm_datum, n);
    const struct cm_eval_options options = {.seed = c->options->seed};

    CM_TRY(cm_graph_eval(c->forward, c->in, c->n_inputs, results, &options, c->err));
    *out = 0;
    for (size_t s = 0; s < c->n_seeds; s++) {
        const double *values = results[c->seeded[s]].tensor.data;
        const struct cm_tensor *weights = &c->inputs[c->n_inputs + s].tensor;
        for (int64_t i = 0, count = cm_tensor_count(weights); i < count; i++)
            *out += values[i] * ((const double *)weights->data)[i];
    }
    drop_all(results, n);
    return CM_OK;
}

/* ---- differences ---- */

/* What differences say about one element. */
struct slope {
    double central, below, above; /* both sides; one side each */
    double off;                   /* of the gradient, as a part of the larger */
};

/* Differences lose digits: what is small beside the tensor's largest gradient is noise. */
static double part(double a, double b, double largest)
{
    const double scale = fmax(fmax(fabs(a), fabs(b)), fmax(1e-3 * largest, 1e-6));
    return fabs(a - b) / scale;
}

/* The same of a value beside, where the model may refuse what the value then leads to, such as an
 * index out of range: that is no number. */
static enum cm_status objective_beside(struct checking *c, double *out)
{
    const enum cm_status status = objective(c, out);

    if (status != CM_BAD_ARGUMENT && status != CM_BAD_MODEL)
        return status;
    *out = NAN;
    return CM_OK;
}

static enum cm_status measure(struct checking *c, double *value, double h, struct slope *out)
{
    const double kept = *value;
    double above, below;

    *value = kept + h;
    CM_TRY(objective_beside(c, &above));
    *value = kept - h;
    CM_TRY(objective_beside(c, &below));
    *value = kept;
    *out = (struct slope){.central = (above - below) / (2 * h),
                          .below = (c->here - below) / h,
                          .above = (above - c->here) / h};
    return CM_OK;
}

/* Do differences leave open what the slope is? They do where the outputs are no numbers beside the
 * point: a root of something negative, an index out of range. They do where the sides disagree with
 * the gradient between them: the point is a kink, or a jump, and any slope between is a right
 * answer. And they do where they change as they narrow, beside what they are off: then kinks lie
 * closer than differences can get, as those of millions of units that share a bound. */
static bool is_kink(const struct slope *wider, const struct slope *slope, double exact,
                    double largest)
{
    const double low = fmin(slope->below, slope->above), high = fmax(slope->below, slope->above);
    const double slack = SUSPICIOUS * fmax(fabs(exact), fmax(1e-3 * largest, 1e-6));

    if (part(low, high, largest) > 100 * SUSPICIOUS && exact >= low - slack &&
        exact <= high + slack)
        return true;
    return !isfinite(slope->central) ||
           fabs(slope->central - wider->central) > 0.1 * fabs(slope->central - exact);
}

/* A kink near the point spoils wide differences only: where they disagree with the gradient,
 * narrower ones are tried. The best agreement counts. */
static enum cm_status look_at(struct checking *c, double *value, double exact, double largest,
                              struct slope *out, bool *kink)
{
    double h = 1e-5 * fmax(1, fabs(*value));
    struct slope wider = {0};

    *kink = false;
    for (int i = 0; i < NARROWINGS; i++, h /= 16) {
        struct slope slope;

        CM_TRY(measure(c, value, h, &slope));
        slope.off = part(slope.central, exact, largest);
        if (isnan(slope.off))
            slope.off = INFINITY;
        if (i == 0 || slope.off < out->off)
            *out = slope;
        *kink = i > 0 && out->off > SUSPICIOUS && is_kink(&wider, &slope, exact, largest);
        wider = slope;
        if (out->off <= SUSPICIOUS)
            return CM_OK;
    }
    return CM_OK;
}

static enum cm_status compare(struct checking *c, struct cm_tensor *x, const double *analytic,
                              struct cm_gradcheck_row *row)
{
    const size_t samples = c->options->samples ? c->options->samples : SAMPLES;
    double *values = x->data, largest = 0;
    bool any = false;

    for (int64_t i = 0; analytic && i < row->elements; i++)
        largest = fmax(largest, fabs(analytic[i]));
    row->checked = (uint64_t)row->elements < samples ? (size_t)row->elements : samples;
    for (size_t s = 0; s < row->checked; s++) {
        const int64_t at = row->checked == (size_t)row->elements
                               ? (int64_t)s
                               : (int64_t)(cm_random_uniform(&c->random) * (double)row->elements);
        const double exact = analytic ? analytic[at] : 0;
        struct slope slope = {0};
        bool kink;

        CM_TRY(look_at(c, &values[at], exact, largest, &slope, &kink));
        row->kinks += kink;
        if (kink || (any && slope.off <= row->worst))
            continue;
        any = true;
        row->worst = slope.off;
        row->analytic = exact;
        row->numeric = slope.central;
        row->below = slope.below;
        row->above = slope.above;
        row->at = at;
    }
    return CM_OK;
}

static enum cm_status make_values(struct checking *c)
{
    const size_t n_outputs = c->forward->n_outputs;
    const struct cm_eval_options options = {.seed = c->options->seed};
    struct cm_datum *results = CM_NEW_ARRAY(c->arena, struct cm_datum, n_outputs);

    c->n_inputs = c->forward->n_inputs;
    c->inputs = CM_NEW_ARRAY(c->arena, struct cm_datum, c->n_inputs + n_outputs);
    c->in = CM_NEW_ARRAY(c->arena, const struct cm_datum *, c->n_inputs + n_outputs);
    c->seeded = CM_NEW_ARRAY(c->arena, size_t, n_outputs);
    for (size_t i = 0; i < c->n_inputs + n_outputs; i++) {
        c->in[i] = &c->inputs[i];
        cm_datum_defer(c->arena, &c->inputs[i]);
    }
    CM_TRY(set_inputs(c));
    CM_TRY(cm_graph_eval(c->forward, c->in, c->n_inputs, results, &options, c->err));
    enum cm_status status = CM_OK;
    for (size_t o = 0; o < n_outputs && !status; o++) {
        if (results[o].kind != CM_KIND_TENSOR || results[o].tensor.type != CM_DOUBLE)
            continue;
        struct cm_datum *seed = &c->inputs[c->n_inputs + c->n_seeds];
        c->seeded[c->n_seeds++] = o;
        status = new_value(c, seed, CM_DOUBLE, &results[o].tensor.shape);
        if (!status)
            fill(c, &seed->tensor);
    }
    drop_all(results, n_outputs);
    if (!status && !c->n_seeds)
        return cm_fail(c->err, CM_BAD_ARGUMENT, "the model has no output of floats");
    return status;
}

static enum cm_status check_all(struct checking *c, const bool *reached,
                                struct cm_gradcheck_row *rows, size_t *n_rows)
{
    const size_t n_grads = c->backward->n_outputs;
    const struct cm_eval_options options = {.seed = c->options->seed};
    struct cm_datum *grads = CM_NEW_ARRAY(c->arena, struct cm_datum, n_grads);
    enum cm_status status = CM_OK;

    CM_TRY(objective(c, &c->here));
    if (!isfinite(c->here))
        return cm_fail(c->err, CM_UNSUPPORTED,
                       "the outputs are not finite for these inputs, so gradients cannot be "
                       "compared with differences; give other inputs");
    CM_TRY(cm_graph_eval(c->backward, c->in, c->n_inputs + c->n_seeds, grads, &options, c->err));
    for (size_t i = 0; i < c->n_inputs && !status; i++) {
        const struct cm_value_def *def = cm_value_get(c->forward->module, c->forward->inputs[i]);
        struct cm_tensor *x = &c->inputs[i].tensor;

        if (!is_double(def->fact.type))
            continue;
        struct cm_gradcheck_row *row = &rows[*n_rows];
        *row = (struct cm_gradcheck_row){
            .name = def->name, .elements = cm_tensor_count(x), .reached = reached[*n_rows]};
        status = compare(c, x, row->reached ? grads[*n_rows].tensor.data : NULL, row);
        ++*n_rows;
        if (!status && c->options->tell)
            c->options->tell(c->options->tell_arg, row);
    }
    drop_all(grads, n_grads);
    return status;
}

enum cm_status cm_gradcheck(struct cm_arena *arena, const struct cm_model_file *file,
                            const struct cm_gradcheck_options *options,
                            struct cm_gradcheck_row **rows, size_t *n_rows, struct cm_error *err)
{
    struct checking c = {.arena = arena, .options = options, .err = err};

    cm_random_seed_philox(&c.random, options->seed, 0);
    CM_TRY(import(&c, file));
    CM_TRY(widen(&c, &c.forward));
    CM_TRY(refuse_random(c.forward, err));
    CM_TRY(make_values(&c));
    CM_TRY(widen(&c, &c.backward));
    bool *reached = CM_NEW_ARRAY(arena, bool, c.n_inputs);
    CM_TRY(differentiate(&c, reached));
    *rows = CM_NEW_ARRAY(arena, struct cm_gradcheck_row, c.n_inputs);
    *n_rows = 0;
    return check_all(&c, reached, *rows, n_rows);
}
