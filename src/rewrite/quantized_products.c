/* The pass `quantized`: where real numbers are codes times a scale, products are taken of the
 * codes.
 *
 * Quantized models spell that out in two ways. A static one has DequantizeLinear before and
 * QuantizeLinear after each operator; a dynamic one has DynamicQuantizeLinear, MatMulInteger, Cast
 * and the scales. Both become operators that multiply codes: QLinearConv, and com.microsoft's
 * MatMulIntegerToFloat, whose result is the real number, so that whatever follows may follow.
 * Operators that move or choose elements, between codes of the same scale, work on codes.
 *
 * Sums of codes are exact, so results are the same up to rounding; codes of a convolution are at
 * most one off, as its bias is rounded to the scale of the sums. This must come before constants
 * are folded, which would make floats of quantized weights. Training keeps the real numbers, and so
 * does a file, which any runtime shall read. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/pass.h"
#include "rewrite/patterns.h"

#include <math.h>

enum { MOST_TAPS = 256 }; /* of a kernel: what backends multiply */

static bool is_code(enum cm_dtype type)
{
    return type == CM_UINT8 || type == CM_INT8;
}

static const struct cm_node *node_of(const struct cm_group *m, const char *name)
{
    const cm_value value = cm_group_value(m, name);
    return value ? cm_value_get(m->graph->module, value)->node : NULL;
}

/* Is what a name stands for absent, or one number? */
static bool is_single(const struct cm_group *m, const char *name)
{
    const struct cm_type *type = cm_group_type(m, name);
    return !type || type->rank == 0 || (type->rank == 1 && type->dims[0].value == 1);
}

/* One number, or one for each of `channels` along `axis` of the codes; a node that dequantizes. */
static bool is_per_channel(const struct cm_group *m, const char *node, const char *scale,
                           int64_t axis, int rank, struct cm_dim channels)
{
    const struct cm_type *type = cm_group_type(m, scale);
    const int64_t given = cm_node_int(node_of(m, node), "axis");
    return is_single(m, scale) || (type->rank == 1 && cm_dim_same(type->dims[0], channels) &&
                                   (given == axis || given == axis - rank));
}

/* Does a node make float numbers of 8-bit codes, without blocks? */
static bool dequantizes(const struct cm_group *m, const char *node, const char *codes)
{
    return is_code(cm_group_type(m, codes)->dtype) && cm_group_type(m, node)->dtype == CM_FLOAT &&
           cm_node_int(node_of(m, node), "block_size") == 0;
}

/* Does the root make 8-bit codes of floats, with one scale? */
static bool quantizes(const struct cm_group *m)
{
    const struct cm_node *q = m->root;
    const int64_t precision = cm_node_int(q, "precision");
    const struct cm_type *y = cm_value_get(m->graph->module, q->outputs[0])->fact.type;
    return is_code(y->dtype) && is_single(m, "ys") && is_single(m, "yz") &&
           cm_group_type(m, "ys")->dtype == CM_FLOAT && cm_node_int(q, "block_size") == 0 &&
           (!precision || precision == CM_FLOAT);
}

/* The constant that a name stands for; NULL: none. */
static const struct cm_tensor *constant_of(const struct cm_group *m, const char *name)
{
    return cm_small_constant(m->graph->module, cm_group_value(m, name), INT64_MAX);
}

/* ---- Products of matrices ---- */

/* Does b have the batches of a, or none? Then kernels take the product. */
static bool are_matrices(const struct cm_type *a, const struct cm_type *b)
{
    return a->rank >= 2 && b->rank >= 2 && (b->rank == 2 || a->rank == b->rank) &&
           cm_dims_same(a->dims, b->dims, b->rank - 2);
}

/* One row of numbers, one for each column. */
static bool is_row(const struct cm_type *type, struct cm_dim columns)
{
    return type->dtype == CM_FLOAT && (type->rank == 1 || type->rank == 2) &&
           cm_dim_same(type->dims[type->rank - 1], columns) &&
           (type->rank == 1 || type->dims[0].value == 1);
}

static bool is_turned(const struct cm_group *m)
{
    const struct cm_node *gemm = node_of(m, "gemm");
    return gemm && cm_node_int(gemm, "transB");
}

/* A product of dequantized operands, by MatMul or Gemm. */
static bool is_product(const struct cm_group *m)
{
    const struct cm_type *a = cm_group_type(m, "a"), *b = cm_group_type(m, "b");
    const struct cm_type *bias = cm_group_type(m, "bias");
    const struct cm_node *gemm = node_of(m, "gemm");
    if (!dequantizes(m, "da", "a") || !dequantizes(m, "db", "b") || !is_single(m, "as") ||
        !is_single(m, "az") || !are_matrices(a, b))
        return false;
    if (gemm && (cm_node_int(gemm, "transA") || cm_node_float(gemm, "alpha") != 1 ||
                 (bias && cm_node_float(gemm, "beta") != 1)))
        return false;
    const int axis = is_turned(m) ? 0 : b->rank - 1;
    return (!bias || is_row(bias, b->dims[axis])) &&
           is_per_channel(m, "db", "bs", axis, b->rank, b->dims[axis]) &&
           is_per_channel(m, "db", "bz", axis, b->rank, b->dims[axis]);
}

static cm_value emit_product(struct cm_builder *build, cm_value a, cm_value b, cm_value a_scale,
                             cm_value b_scale, cm_value a_zero, cm_value b_zero, cm_value bias)
{
    const cm_value inputs[] = {a, b, a_scale, b_scale, a_zero, b_zero, bias};
    return cm_build(build, &(struct cm_emission){.op = "com.microsoft::MatMulIntegerToFloat",
                                                 .inputs = inputs,
                                                 .n_inputs = CM_COUNT(inputs)});
}

static cm_value build_product(const struct cm_group *m, struct cm_builder *build)
{
    cm_value b = cm_group_value(m, "b");
    if (is_turned(m)) {
        const struct cm_attribute_proto perm =
            cm_attr_ints(cm_builder_arena(build), "perm", 2, (const int64_t[]){1, 0});
        b = cm_build(build,
                     &(struct cm_emission){.op = "Transpose", CM_INPUTS(b), CM_ATTRIBUTES(perm)});
    }
    return emit_product(build, cm_group_value(m, "a"), b, cm_group_value(m, "as"),
                        cm_group_value(m, "bs"), cm_group_value(m, "az"), cm_group_value(m, "bz"),
                        cm_group_value(m, "bias"));
}

/* A product of codes that is made real by its scales. */
static bool is_integer_product(const struct cm_group *m)
{
    const struct cm_type *a = cm_group_type(m, "a"), *b = cm_group_type(m, "b");
    const struct cm_type *bias = cm_group_type(m, "bias"), *s = cm_group_type(m, "s");
    if (!is_code(a->dtype) || !is_code(b->dtype) || !is_single(m, "az") || !are_matrices(a, b))
        return false;
    const struct cm_dim columns = b->dims[b->rank - 1];
    if (bias && !is_row(bias, columns))
        return false;
    if (s)
        return s->dtype == CM_FLOAT && (is_single(m, "s") || is_row(s, columns));
    const char *const names[] = {"as", "bs"};
    for (int i = 0; i < 2; i++)
        if (cm_group_type(m, names[i])->dtype != CM_FLOAT ||
            (!is_single(m, names[i]) && !is_row(cm_group_type(m, names[i]), columns)))
            return false;
    return is_single(m, "as") || is_single(m, "bs");
}

static cm_value build_integer_product(const struct cm_group *m, struct cm_builder *build)
{
    const cm_value s = cm_group_value(m, "s");
    const bool swapped = !s && !is_single(m, "as");
    const cm_value one =
        s ? cm_build_scalar(build, CM_FLOAT, 1) : cm_group_value(m, swapped ? "bs" : "as");
    return emit_product(build, cm_group_value(m, "a"), cm_group_value(m, "b"), one,
                        s ? s : cm_group_value(m, swapped ? "as" : "bs"), cm_group_value(m, "az"),
                        cm_group_value(m, "bz"), cm_group_value(m, "bias"));
}

/* ---- Convolutions ---- */

/* The bias of channel c as a real number: of a constant, or of codes with a scale. */
static bool bias_at(const struct cm_group *m, int64_t c, double *out)
{
    const struct cm_tensor *real = constant_of(m, "bias"), *code = constant_of(m, "bq");
    const struct cm_tensor *scale = constant_of(m, "bqs"), *zero = constant_of(m, "bqz");
    if (real) {
        *out = cm_tensor_real(real, c);
        return true;
    }
    if (!code || !scale || (cm_group_value(m, "bqz") && !zero))
        return false;
    const double less = zero ? cm_tensor_real(zero, cm_tensor_count(zero) == 1 ? 0 : c) : 0;
    *out = (cm_tensor_real(code, c) - less) *
           cm_tensor_real(scale, cm_tensor_count(scale) == 1 ? 0 : c);
    return true;
}

/* The bias in units of the sums; 0 where it is not constant or does not fit. */
static cm_value build_bias(const struct cm_group *m, struct cm_builder *build, int64_t channels)
{
    const struct cm_tensor *xs = constant_of(m, "xs"), *ws = constant_of(m, "ws");
    const struct cm_shape shape = {.rank = 1, .dims = {channels}};
    struct cm_tensor tensor;
    bool fits = xs && ws;
    if (!fits || build->status)
        return 0;
    build->status = cm_tensor_new(CM_INT32, &shape, &tensor, build->err);
    if (build->status)
        return 0;
    for (int64_t c = 0; fits && c < channels; c++) {
        const double unit =
            cm_tensor_real(xs, 0) * cm_tensor_real(ws, cm_tensor_count(ws) == 1 ? 0 : c);
        double bias;
        fits = bias_at(m, c, &bias) && fabs(bias / unit) < (double)(1 << 30);
        if (fits)
            ((int32_t *)tensor.data)[c] = (int32_t)nearbyint(bias / unit);
    }
    const cm_value value = fits ? cm_build_tensor(build, &tensor) : 0;
    cm_tensor_drop(&tensor);
    return value;
}

/* Relu does nothing to codes whose lowest stands for 0. */
static bool is_without_relu(const struct cm_group *m)
{
    const struct cm_tensor *zero = constant_of(m, "yz");
    if (!cm_group_value(m, "relu"))
        return true;
    if (!cm_group_value(m, "yz"))
        return cm_value_get(m->graph->module, m->root->outputs[0])->fact.type->dtype == CM_UINT8;
    return zero && cm_tensor_int(zero, 0) == (zero->type == CM_UINT8 ? 0 : INT8_MIN);
}

static bool is_conv(const struct cm_group *m)
{
    const struct cm_type *x = cm_group_type(m, "x"), *w = cm_group_type(m, "w");
    int64_t taps = 1;
    if (!quantizes(m) || !dequantizes(m, "dx", "x") || !dequantizes(m, "dw", "w") ||
        !is_single(m, "xs") || !is_single(m, "xz") || x->rank < 3 || x->rank > 5 ||
        w->rank != x->rank || !cm_dim_known(w->dims[0]) || !is_without_relu(m))
        return false;
    for (int i = 2; i < w->rank; i++)
        if (!cm_dim_known(w->dims[i]) || w->dims[i].value > MOST_TAPS ||
            (taps *= w->dims[i].value) > MOST_TAPS)
            return false;
    return is_per_channel(m, "dw", "ws", 0, w->rank, w->dims[0]) &&
           is_per_channel(m, "dw", "wz", 0, w->rank, w->dims[0]);
}

/* A zero point that may be absent. */
static cm_value zero_of(const struct cm_group *m, struct cm_builder *build, const char *name,
                        enum cm_dtype type)
{
    const cm_value zero = cm_group_value(m, name);
    return zero ? zero : cm_build_scalar(build, type, 0);
}

static cm_value build_conv(const struct cm_group *m, struct cm_builder *build)
{
    const struct cm_type *w = cm_group_type(m, "w");
    const struct cm_type *y = cm_value_get(m->graph->module, m->root->outputs[0])->fact.type;
    const struct cm_node *conv = node_of(m, "conv");
    const bool biased = cm_group_value(m, "bias") || cm_group_value(m, "bq");
    const cm_value bias = biased ? build_bias(m, build, w->dims[0].value) : 0;
    if (biased && !bias)
        return 0;
    const cm_value inputs[] = {cm_group_value(m, "x"),
                               cm_group_value(m, "xs"),
                               zero_of(m, build, "xz", cm_group_type(m, "x")->dtype),
                               cm_group_value(m, "w"),
                               cm_group_value(m, "ws"),
                               zero_of(m, build, "wz", w->dtype),
                               cm_group_value(m, "ys"),
                               zero_of(m, build, "yz", y->dtype),
                               bias};
    return cm_build(build, &(struct cm_emission){.op = "QLinearConv",
                                                 .inputs = inputs,
                                                 .n_inputs = biased ? 9 : 8,
                                                 .attributes = conv->attributes,
                                                 .n_attributes = conv->n_attributes});
}

/* ---- What moves or chooses elements ---- */

/* Are two names the same value, or equal constants of one number? */
static bool is_same(const struct cm_group *m, const char *a, const char *b)
{
    const cm_value left = cm_group_value(m, a), right = cm_group_value(m, b);
    double x, y;
    if (left == right)
        return true;
    return left && right && cm_constant_number(m->graph->module, left, &x) &&
           cm_constant_number(m->graph->module, right, &y) && x == y;
}

/* From codes to codes of the same type, scale and zero point. */
static bool keeps_codes(const struct cm_group *m)
{
    const struct cm_type *y = cm_value_get(m->graph->module, m->root->outputs[0])->fact.type;
    const struct cm_node *move = node_of(m, "move");
    return quantizes(m) && dequantizes(m, "dx", "x") && is_single(m, "xs") && is_single(m, "xz") &&
           y->dtype == cm_group_type(m, "x")->dtype && is_same(m, "xs", "ys") &&
           is_same(m, "xz", "yz") && (!move || move->n_outputs == 1 || !move->outputs[1]);
}

static cm_value build_move(const struct cm_group *m, struct cm_builder *build)
{
    const struct cm_node *move = node_of(m, "move");
    const cm_value inputs[] = {cm_group_value(m, "x"), cm_group_value(m, "how")};
    if (!move)
        return inputs[0];
    char name[32];
    const size_t size = move->op_type.size < sizeof name ? move->op_type.size : sizeof name - 1;
    memcpy(name, move->op_type.data, size);
    name[size] = '\0';
    return cm_build(build, &(struct cm_emission){.op = name,
                                                 .inputs = inputs,
                                                 .n_inputs = inputs[1] ? 2 : 1,
                                                 .attributes = move->attributes,
                                                 .n_attributes = move->n_attributes});
}

#define A          "(DequantizeLinear!da a as az?)"
#define B          "(DequantizeLinear!db b bs bz?)"
#define X          "(DequantizeLinear!dx x xs xz?)"
#define CONV(bias) "(Conv@conv " X " (DequantizeLinear!dw w ws wz?) " bias ")"
#define REAL(sums) "(Mul (Cast to=1 " sums ") [(Mul as bs) s])"
#define SUMS       "(MatMulInteger a b az? bz?)"
#define BIAS_CODES "(DequantizeLinear!db bq bqs bqz?)"

const struct cm_pattern_row cm_quantized_patterns[] = {
    {"dynamic-product-bias", "(Add " REAL(SUMS) " bias)", is_integer_product,
     build_integer_product},
    {"dynamic-product", REAL(SUMS), is_integer_product, build_integer_product},
    {"product-bias", "(Add (MatMul " A " " B ") bias)", is_product, build_product},
    {"product", "(MatMul " A " " B ")", is_product, build_product},
    {"gemm", "(Gemm@gemm " A " " B " bias?)", is_product, build_product},
    {"conv-bias", "(QuantizeLinear [(Relu@relu " CONV(BIAS_CODES) ") " CONV(BIAS_CODES) "] ys yz?)",
     is_conv, build_conv},
    {"conv", "(QuantizeLinear [(Relu@relu " CONV("bias?") ") " CONV("bias?") "] ys yz?)", is_conv,
     build_conv},
    {"codes", "(QuantizeLinear " X " ys yz?)", keeps_codes, build_move},
    {"max-pool", "(QuantizeLinear (MaxPool@move " X ") ys yz?)", keeps_codes, build_move},
    {"reshape", "(QuantizeLinear (Reshape@move " X " how) ys yz?)", keeps_codes, build_move},
    {"flatten", "(QuantizeLinear (Flatten@move " X ") ys yz?)", keeps_codes, build_move},
    {"transpose", "(QuantizeLinear (Transpose@move " X ") ys yz?)", keeps_codes, build_move},
    {"squeeze", "(QuantizeLinear (Squeeze@move " X " how?) ys yz?)", keeps_codes, build_move},
    {"unsqueeze", "(QuantizeLinear (Unsqueeze@move " X " how) ys yz?)", keeps_codes, build_move},
    {0},
};

enum cm_status cm_pass_quantized(struct cm_graph *graph, const struct cm_pass_options *options,
                                 struct cm_error *err)
{
    static const struct cm_pattern_row *const tables[] = {cm_quantized_patterns};
    if (options->training || options->for_file)
        return CM_OK;
    return cm_patterns_apply(graph, tables, CM_COUNT(tables), false, err);
}
