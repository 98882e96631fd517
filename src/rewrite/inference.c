/* What may be computed once when weights do not change: scaling and shifting by constants moves
 * into the weights and the bias of the product before it, MatMul and Add become Gemm, what is left
 * of BatchNormalization becomes a product and a sum, and Dropout goes.
 *
 * New weights are computed in double and rounded once to the type of the old ones. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/inference_shuffles.h"

#include "base/number.h"

#include <math.h>

/* Bytes of constants made here, where the caller sets no limit. */
static const size_t OWN_LIMIT = (size_t)1 << 30;

struct inference {
    struct cm_module *module;
    struct cm_arena scratch; /* for one node */
    size_t bytes;            /* that new constants may still take */
    cm_value first;          /* values from here on were made by this pass */
    struct cm_error *err;
};

/* ---- products ---- */

/* A weight seen as [groups, outer, channels / groups, inner]: element (g, o, j, i) goes into
 * channel g * (channels / groups) + j of the result. */
struct weight_form {
    int64_t groups, outer, channels, inner;
    int from_end; /* the result's channel axis, counted from its last axis */
};

static bool form_conv(const struct cm_node *node, const struct cm_shape *w, struct weight_form *out)
{
    (void)node;
    *out = (struct weight_form){1, 1, w->dims[0], cm_shape_span(w, 1, w->rank), w->rank - 2};
    return w->rank >= 2;
}

static bool form_conv_transpose(const struct cm_node *node, const struct cm_shape *w,
                                struct weight_form *out)
{
    const int64_t groups = cm_node_int(node, "group");
    if (w->rank < 2 || groups < 1 || w->dims[0] % groups)
        return false;
    *out = (struct weight_form){groups, w->dims[0] / groups, groups * w->dims[1],
                                cm_shape_span(w, 2, w->rank), w->rank - 2};
    return true;
}

static bool form_matmul(const struct cm_node *node, const struct cm_shape *w,
                        struct weight_form *out)
{
    const bool turned = cm_str_is(node->op_type, "Gemm") && cm_node_int(node, "transB");
    *out = turned ? (struct weight_form){1, 1, w->dims[0], w->dims[1], 0}
                  : (struct weight_form){1, w->dims[0], w->dims[1], 1, 0};
    return w->rank == 2;
}

/* Operators that multiply by a weight, operand 1. */
static const struct product_row {
    const char *op;
    bool (*form)(const struct cm_node *node, const struct cm_shape *weight,
                 struct weight_form *out);
    bool has_bias; /* operand 2 is added per channel */
} product_rows[] = {
    {"Conv", form_conv, true},
    {"ConvTranspose", form_conv_transpose, true},
    {"Gemm", form_matmul, true},
    {"MatMul", form_matmul, false},
};

/* A product with constant weight and, where it has one, constant bias. */
struct product {
    struct cm_node *node;
    const struct product_row *row;
    struct weight_form form;
    const struct cm_tensor *weight;
    const struct cm_tensor *bias; /* NULL: none. One number, or one per channel */
    double bias_factor;           /* Gemm's beta */
};

static bool is_float(enum cm_dtype type)
{
    return type == CM_FLOAT || type == CM_DOUBLE || type == CM_FLOAT16 || type == CM_BFLOAT16;
}

/* Is a constant of this shape one number, or one per channel along the channel axis, for results
 * whose rank is `rank` (unknown: at least 1)? */
static bool is_per_channel(const struct cm_shape *shape, int rank, const struct weight_form *form)
{
    if (shape->rank > (rank == CM_RANK_UNKNOWN ? 1 : rank))
        return false;
    for (int a = 0; a < shape->rank; a++) {
        const bool channel = shape->rank - 1 - a == form->from_end;
        if (shape->dims[a] != 1 && !(channel && shape->dims[a] == form->channels))
            return false;
    }
    return true;
}

/* Float weights are read where they lie, whatever their alignment. */
static enum cm_status find_weight(struct inference *in, cm_value value,
                                  const struct cm_tensor **out)
{
    const struct cm_type *type = cm_value_get(in->module, value)->fact.type;
    return type->dtype == CM_FLOAT ? cm_value_constant_in_place(in->module, value, out, in->err)
                                   : cm_value_constant(in->module, value, out, in->err);
}

/* The product that computes value, when value is its only result and has no other reader. */
static enum cm_status find_product(struct inference *in, const struct cm_node *reader,
                                   cm_value value, struct product *out, bool *found)
{
    const struct cm_value_def *def = cm_value_get(in->module, value);
    struct cm_node *node = def->node;

    *found = false;
    *out = (struct product){.node = node, .bias_factor = 1};
    if (!node || node->graph != reader->graph || node->domain.size || def->n_uses != 1 ||
        !cm_node_is_current(node))
        return CM_OK;
    for (size_t i = 0; i < CM_COUNT(product_rows) && !out->row; i++)
        if (cm_str_is(node->op_type, product_rows[i].op))
            out->row = &product_rows[i];
    if (!out->row || !cm_node_input(node, 1))
        return CM_OK;
    CM_TRY(find_weight(in, cm_node_input(node, 1), &out->weight));
    if (!out->weight || !is_float(out->weight->type) || !cm_tensor_count(out->weight) ||
        !out->row->form(node, &out->weight->shape, &out->form))
        return CM_OK;
    if (cm_node_input(node, 2)) {
        CM_TRY(cm_value_constant(in->module, cm_node_input(node, 2), &out->bias, in->err));
        const struct weight_form last = {.channels = out->form.channels};
        if (!out->bias || !is_per_channel(&out->bias->shape, 2, &last))
            return CM_OK;
        if (cm_str_is(node->op_type, "Gemm"))
            out->bias_factor = (double)cm_node_float(node, "beta");
    }
    *found = true;
    return CM_OK;
}

/* ---- what is done to the channels ---- */

/* Channel c becomes x * scale[c] + shift[c]. */
struct affine {
    double *scale, *shift;
    int64_t count;
    bool scales, shifts;
};

static struct affine new_affine(struct inference *in, int64_t count)
{
    const struct affine out = {.scale = CM_NEW_ARRAY(&in->scratch, double, (size_t)count),
                               .shift = CM_NEW_ARRAY(&in->scratch, double, (size_t)count),
                               .count = count};
    return out;
}

static bool is_finite(const struct affine *affine)
{
    for (int64_t c = 0; c < affine->count; c++)
        if (!isfinite(affine->scale[c]) || !isfinite(affine->shift[c]))
            return false;
    return true;
}

/* y = x op constant, or constant op x, as x * scale + shift; false where it is not one. */
typedef bool affine_fn(double constant, bool constant_first, double *scale, double *shift);

static bool affine_add(double constant, bool constant_first, double *scale, double *shift)
{
    (void)constant_first;
    *scale = 1;
    *shift = constant;
    return true;
}

static bool affine_sub(double constant, bool constant_first, double *scale, double *shift)
{
    *scale = constant_first ? -1 : 1;
    *shift = constant_first ? constant : -constant;
    return true;
}

static bool affine_mul(double constant, bool constant_first, double *scale, double *shift)
{
    (void)constant_first;
    *scale = constant;
    *shift = 0;
    return true;
}

static bool affine_div(double constant, bool constant_first, double *scale, double *shift)
{
    *scale = 1 / constant;
    *shift = 0;
    return !constant_first;
}

static const struct {
    const char *op;
    affine_fn *of;
} affine_rows[] = {
    {"Add", affine_add},
    {"Sub", affine_sub},
    {"Mul", affine_mul},
    {"Div", affine_div},
};

/* BatchNormalization with constant parameters: (x - mean) / sqrt(variance + epsilon) * scale + bias
 */
static enum cm_status affine_of_norm(struct inference *in, const struct cm_node *node,
                                     struct affine *out, bool *found)
{
    const struct cm_tensor *p[5] = {0};

    *found = false;
    if (cm_node_int(node, "training_mode") || node->n_outputs != 1)
        return CM_OK;
    for (int i = 1; i < 5; i++) {
        CM_TRY(cm_value_constant(in->module, cm_node_input(node, i), &p[i], in->err));
        if (!p[i] || p[i]->shape.rank != 1 || p[i]->shape.dims[0] != p[1]->shape.dims[0])
            return CM_OK;
    }
    *out = new_affine(in, p[1]->shape.dims[0]);
    out->scales = out->shifts = true;
    for (int64_t c = 0; c < out->count; c++) {
        out->scale[c] = cm_tensor_real(p[1], c) /
                        sqrt(cm_tensor_real(p[4], c) + (double)cm_node_float(node, "epsilon"));
        out->shift[c] = cm_tensor_real(p[2], c) - cm_tensor_real(p[3], c) * out->scale[c];
    }
    *found = out->count > 0 && is_finite(out);
    return CM_OK;
}

static int rank_of(const struct cm_module *module, cm_value value)
{
    const struct cm_type *type = cm_value_get(module, value)->fact.type;
    return type->kind == CM_KIND_TENSOR ? type->rank : CM_RANK_UNKNOWN;
}

/* The product that node reads, and what node does to its channels. */
static enum cm_status match_norm(struct inference *in, const struct cm_node *node,
                                 struct product *product, struct affine *affine, bool *found)
{
    CM_TRY(find_product(in, node, cm_node_input(node, 0), product, found));
    /* Channels are axis 1 of what is normalized, the last axis of a matrix product. */
    if (!*found ||
        (product->form.from_end == 0 && rank_of(in->module, cm_node_input(node, 0)) != 2)) {
        *found = false;
        return CM_OK;
    }
    CM_TRY(affine_of_norm(in, node, affine, found));
    *found = *found && affine->count == product->form.channels;
    return CM_OK;
}

static enum cm_status match_arithmetic(struct inference *in, const struct cm_node *node,
                                       affine_fn *of, struct product *product,
                                       struct affine *affine, bool *found)
{
    for (int side = 0; side < 2; side++) {
        const struct cm_tensor *constant;
        const int rank = rank_of(in->module, cm_node_input(node, side));
        CM_TRY(cm_value_constant(in->module, cm_node_input(node, 1 - side), &constant, in->err));
        *found = false;
        if (!constant)
            continue;
        CM_TRY(find_product(in, node, cm_node_input(node, side), product, found));
        if (!*found || !is_per_channel(&constant->shape, rank, &product->form))
            continue;
        const int64_t step = cm_tensor_count(constant) == 1 ? 0 : 1;
        *affine = new_affine(in, product->form.channels);
        for (int64_t c = 0; c < affine->count && *found; c++) {
            *found = of(cm_tensor_real(constant, c * step), side == 1, &affine->scale[c],
                        &affine->shift[c]);
            affine->scales = affine->scales || affine->scale[c] != 1;
            affine->shifts = affine->shifts || affine->shift[c] != 0;
        }
        *found = *found && is_finite(affine);
        return CM_OK;
    }
    *found = false;
    return CM_OK;
}

/* ---- new constants ---- */

/* Half a unit in the last place of a number near 1. */
static double rounding(enum cm_dtype type)
{
    return type == CM_DOUBLE    ? 0x1p-53
           : type == CM_FLOAT   ? 0x1p-24
           : type == CM_FLOAT16 ? 0x1p-11
                                : 0x1p-8;
}

/* A tensor that lives in scratch, charged; NULL where it would pass the limit. */
static enum cm_status new_tensor(struct inference *in, enum cm_dtype type,
                                 const struct cm_shape *shape, struct cm_tensor **out)
{
    size_t bytes;

    *out = NULL;
    if (!cm_dtype_bytes(type, cm_shape_elements(shape), &bytes) || bytes > in->bytes)
        return CM_OK;
    struct cm_tensor *tensor = CM_NEW(&in->scratch, struct cm_tensor);
    CM_TRY(cm_tensor_new(type, shape, tensor, in->err));
    cm_tensor_defer(&in->scratch, tensor);
    *out = tensor;
    return CM_OK;
}

/* A constant that this pass made and nobody reads any more makes room. */
static void forget(struct inference *in, cm_value value)
{
    struct cm_value_def *def = value >= in->first ? cm_value_get(in->module, value) : NULL;
    if (!def || def->n_uses || def->role != CM_ROLE_INITIALIZER || !def->fact.constant)
        return;
    in->bytes += cm_tensor_bytes(def->fact.constant);
    cm_value_drop_constant(in->module, value);
}

static cm_value add_constant(struct inference *in, struct cm_graph *graph,
                             const struct cm_tensor *tensor)
{
    in->bytes -= cm_min_size(in->bytes, cm_tensor_bytes(tensor));
    return cm_graph_add_constant(graph, CM_STR_NONE, tensor);
}

/* Weights are many and mostly float, so that type has loops of its own. */
struct scaled_run {
    const struct cm_tensor *from;
    struct cm_tensor *to;
    int64_t at, count;
    double scale;
};

/* Scales; returns the largest magnitude. */
static double scale_run(const struct scaled_run *run)
{
    double largest = 0;
    if (run->from->type == CM_FLOAT) {
        const cm_loose_float *from = (const cm_loose_float *)run->from->data + run->at;
        float *to = (float *)run->to->data + run->at;
        for (int64_t k = 0; k < run->count; k++) {
            const double value = (double)from[k] * run->scale, size = fabs(value);
            to[k] = (float)value;
            largest = size > largest ? size : largest;
        }
        return largest;
    }
    for (int64_t i = run->at; i < run->at + run->count; i++) {
        const double value = cm_tensor_real(run->from, i) * run->scale;
        cm_tensor_set_real(run->to, i, value);
        largest = fmax(largest, fabs(value));
    }
    return largest;
}

/* Is every element stored as it should be, up to this? NaN and infinity are not. */
static bool holds_run(const struct scaled_run *run, double most)
{
    bool good = true;
    if (run->from->type == CM_FLOAT) {
        const cm_loose_float *from = (const cm_loose_float *)run->from->data + run->at;
        const float *to = (const float *)run->to->data + run->at;
        for (int64_t k = 0; k < run->count; k++)
            good &= fabs((double)to[k] - (double)from[k] * run->scale) <= most;
        return good;
    }
    for (int64_t i = run->at; i < run->at + run->count; i++) {
        const double value = cm_tensor_real(run->from, i) * run->scale;
        good &= fabs(cm_tensor_real(run->to, i) - value) <= most;
    }
    return good;
}

/* The weight times scale; false where its type cannot hold a channel to its usual precision:
 * numbers that overflow, or all of them so small that digits are lost. */
static bool scale_weight(const struct product *product, const struct affine *affine,
                         struct cm_tensor *out, double *largest)
{
    const struct weight_form *f = &product->form;
    const int64_t per_group = f->channels / f->groups;
    const double unit = rounding(out->type);
    struct scaled_run run = {.from = product->weight, .to = out, .count = f->inner};

    for (int pass = 0; pass < 2; pass++) {
        run.at = 0;
        for (int64_t row = 0; row < f->groups * f->outer; row++)
            for (int64_t j = 0; j < per_group; j++, run.at += run.count) {
                const int64_t c = row / f->outer * per_group + j;
                run.scale = affine->scale[c];
                if (pass == 0)
                    largest[c] = fmax(largest[c], scale_run(&run));
                else if (!holds_run(&run, unit * largest[c]))
                    return false;
            }
    }
    return true;
}

static bool shift_bias(const struct product *product, const struct affine *affine,
                       struct cm_tensor *out)
{
    const int64_t step = product->bias && cm_tensor_count(product->bias) > 1;
    for (int64_t c = 0; c < affine->count; c++) {
        const double old =
            product->bias ? cm_tensor_real(product->bias, c * step) * product->bias_factor : 0;
        cm_tensor_set_real(out, c, old * affine->scale[c] + affine->shift[c]);
        if (!isfinite(cm_tensor_real(out, c)))
            return false;
    }
    return true;
}

/* ---- rewriting ---- */

/* The product again, with another weight and bias (NULL: as they are). */
static enum cm_status rebuild(struct inference *in, const struct product *product,
                              const struct cm_tensor *weight, const struct cm_tensor *bias,
                              struct cm_node **out)
{
    static const char *const in_bias[] = {"beta", NULL};
    const struct cm_node *old = product->node;
    cm_value *operands;
    struct cm_node_spec spec = cm_spec_like(old, in_bias + !bias, 0, 3, &operands);

    if (bias && !product->row->has_bias) { /* MatMul: Gemm from here on */
        spec.op_type = CM_STR("Gemm");
        spec.version = spec.original_version = 0;
    }
    if (weight)
        operands[1] = add_constant(in, old->graph, weight);
    if (bias)
        operands[2] = add_constant(in, old->graph, bias);
    return cm_graph_add_node(old->graph, product->node, &spec, out, in->err);
}

/* Puts affine into the weight and bias of product, in the place of node. */
static enum cm_status absorb(struct inference *in, struct cm_node *node,
                             const struct product *product, const struct affine *affine, bool *done)
{
    const struct cm_shape row = CM_SHAPE(product->form.channels);
    const bool needs_bias = affine->shifts || (affine->scales && product->bias);
    struct cm_tensor *weight = NULL, *bias = NULL;

    *done = false;
    if (needs_bias && !product->row->has_bias &&
        rank_of(in->module, cm_node_input(product->node, 0)) != 2)
        return CM_OK; /* a batched MatMul has no bias; regions take the Add along */
    if (affine->scales) {
        CM_TRY(new_tensor(in, product->weight->type, &product->weight->shape, &weight));
        double *largest = CM_NEW_ARRAY(&in->scratch, double, (size_t)affine->count);
        if (!weight || !scale_weight(product, affine, weight, largest))
            return CM_OK;
    }
    if (needs_bias) {
        CM_TRY(new_tensor(in, product->weight->type, &row, &bias));
        if (!bias || !shift_bias(product, affine, bias))
            return CM_OK;
    }
    struct cm_node *made;
    struct cm_node *old = product->node;
    const cm_value old_weight = cm_node_input(old, 1), old_bias = cm_node_input(old, 2);
    CM_TRY(rebuild(in, product, weight, bias, &made));
    *done = cm_replace_value(node->graph, node->outputs[0], made->outputs[0]);
    if (!*done) {
        cm_graph_remove_node(made);
        return CM_OK;
    }
    cm_graph_remove_node(node);
    cm_graph_remove_node(old);
    forget(in, old_weight);
    if (old_bias)
        forget(in, old_bias);
    return CM_OK;
}

static bool is_elementwise(const struct cm_node *node)
{
    return node && node->op && node->op->elementwise;
}

/* Would a Mul and an Add in the place of node stand beside elementwise nodes, with which they make
 * one region? */
static bool joins_region(const struct cm_node *node)
{
    const struct cm_value_def *x = cm_value_get(node->module, cm_node_input(node, 0));
    const struct cm_value_def *y = cm_value_get(node->module, node->outputs[0]);

    if (x->graph == node->graph && x->n_uses == 1 && is_elementwise(x->node))
        return true;
    for (const struct cm_use *use = y->uses; use; use = use->next)
        if (use->graph != node->graph || !is_elementwise(use->node))
            return false;
    return y->uses != NULL;
}

/* A BatchNormalization that no product takes in: x * scale + shift, two nodes that regions fuse
 * with their neighbours. In float16 the product would be rounded too coarsely before the sum. */
static enum cm_status spell_out_norm(struct inference *in, struct cm_node *node)
{
    const struct cm_type *x = cm_value_get(in->module, cm_node_input(node, 0))->fact.type;
    struct cm_tensor *scale, *shift;
    struct affine affine;
    bool found;

    if ((x->dtype != CM_FLOAT && x->dtype != CM_DOUBLE) || x->rank < 2 || !joins_region(node))
        return CM_OK;
    CM_TRY(affine_of_norm(in, node, &affine, &found));
    if (!found || x->rank > CM_MAX_RANK)
        return CM_OK;
    struct cm_shape shape = {.rank = x->rank - 1};
    for (int a = 0; a < shape.rank; a++)
        shape.dims[a] = a ? 1 : affine.count;
    CM_TRY(new_tensor(in, x->dtype, &shape, &scale));
    CM_TRY(new_tensor(in, x->dtype, &shape, &shift));
    if (!scale || !shift)
        return CM_OK;
    const struct cm_tensor *mean, *bias;
    CM_TRY(cm_value_constant(in->module, cm_node_input(node, 2), &bias, in->err));
    CM_TRY(cm_value_constant(in->module, cm_node_input(node, 3), &mean, in->err));
    for (int64_t c = 0; c < affine.count; c++) {
        cm_tensor_set_real(scale, c, affine.scale[c]);
        /* by the scale as rounded, so that x = mean still gives the bias */
        cm_tensor_set_real(
            shift, c, cm_tensor_real(bias, c) - cm_tensor_real(mean, c) * cm_tensor_real(scale, c));
        if (!isfinite(cm_tensor_real(scale, c)) || !isfinite(cm_tensor_real(shift, c)))
            return CM_OK;
    }
    struct cm_builder build = {.graph = node->graph, .before = node, .err = in->err};
    const cm_value product =
        cm_build(&build, &(struct cm_emission){.op = "Mul",
                                               CM_INPUTS(cm_node_input(node, 0),
                                                         add_constant(in, node->graph, scale))});
    const cm_value sum = cm_build(
        &build, &(struct cm_emission){.op = "Add",
                                      CM_INPUTS(product, add_constant(in, node->graph, shift))});
    CM_TRY(build.status);
    if (cm_replace_value(node->graph, node->outputs[0], sum))
        cm_graph_remove_node(node);
    return CM_OK;
}

static enum cm_status is_zero(struct inference *in, cm_value value, bool *out)
{
    const struct cm_tensor *constant = NULL;
    if (value)
        CM_TRY(cm_value_constant(in->module, value, &constant, in->err));
    *out =
        !value || (constant && cm_tensor_count(constant) == 1 && cm_tensor_real(constant, 0) == 0);
    return CM_OK;
}

/* Dropout that the model does not put into training mode gives its operand, or drops none of it. */
static enum cm_status remove_dropout(struct inference *in, struct cm_node *node)
{
    bool idle, none = false;
    CM_TRY(is_zero(in, cm_node_input(node, 2), &idle));
    if (cm_node_input(node, 1))
        CM_TRY(is_zero(in, cm_node_input(node, 1), &none));
    const cm_value mask = cm_node_output(node, 1);
    if ((!idle && !none) || (mask && cm_value_get(in->module, mask)->n_uses))
        return CM_OK;
    if (cm_replace_value(node->graph, node->outputs[0], cm_node_input(node, 0)))
        cm_graph_remove_node(node);
    return CM_OK;
}

static enum cm_status visit(struct inference *in, struct cm_node *node)
{
    struct product product;
    struct affine affine;
    bool found = false, done = false;

    if (node->domain.size || !node->op || !cm_node_is_current(node))
        return CM_OK;
    if (cm_str_is(node->op_type, "Dropout"))
        return remove_dropout(in, node);
    if (cm_str_is(node->op_type, "Reshape"))
        return cm_inference_shuffle(node, in->err);
    if (cm_str_is(node->op_type, "BatchNormalization")) {
        CM_TRY(match_norm(in, node, &product, &affine, &found));
        if (found)
            CM_TRY(absorb(in, node, &product, &affine, &done));
        return done ? CM_OK : spell_out_norm(in, node);
    }
    for (size_t i = 0; i < CM_COUNT(affine_rows); i++)
        if (cm_str_is(node->op_type, affine_rows[i].op)) {
            CM_TRY(match_arithmetic(in, node, affine_rows[i].of, &product, &affine, &found));
            return found ? absorb(in, node, &product, &affine, &done) : CM_OK;
        }
    return CM_OK;
}

static enum cm_status walk(struct inference *in, struct cm_graph *graph)
{
    for (struct cm_node *node = graph->first, *next; node; node = next) {
        next = node->next;
        for (size_t i = 0; i < node->n_bodies; i++)
            if (node->bodies[i].graph)
                CM_TRY(walk(in, node->bodies[i].graph));
        CM_TRY(visit(in, node));
        cm_arena_reset(&in->scratch);
    }
    return CM_OK;
}

enum cm_status cm_pass_inference(struct cm_graph *graph, const struct cm_pass_options *options,
                                 struct cm_error *err)
{
    struct inference in = {.module = graph->module,
                           .bytes = options->memory_limit ? options->memory_limit : OWN_LIMIT,
                           .first = (cm_value)cm_module_value_count(graph->module),
                           .err = err};
    if (options->training)
        return CM_OK;
    cm_arena_init(&in.scratch, cm_module_arena(graph->module)->guard);
    enum cm_status status = walk(&in, graph);
    cm_arena_release(&in.scratch);
    CM_TRY(status);
    return cm_graph_retype(graph, err);
}
