/* LayerNormalization and RMSNormalization written as means, squares and roots. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/patterns.h"

#include "base/number.h"
#include "rewrite/pass.h"

/* Are these the trailing axes of x? Then *first becomes the first of them, counted from the end. */
static bool are_trailing(const struct cm_group *m, const struct cm_type *x, const char *name,
                         int *first)
{
    const cm_value value = cm_group_value(m, name);
    int64_t axes[CM_MAX_RANK];
    bool seen[CM_MAX_RANK] = {false};
    size_t count;
    int from = x->rank;
    if (!value) { /* GlobalAveragePool: all axes but batch and channels */
        *first = 2 - x->rank;
        return x->rank > 2;
    }
    if (!cm_constant_axes(m->graph->module, value, &count, axes) || count == 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        int axis;
        if (!cm_axis_fix(axes[i], x->rank, &axis) || seen[axis])
            return false;
        seen[axis] = true;
        from = axis < from ? axis : from;
    }
    *first = from - x->rank;
    return (int)count == x->rank - from;
}

/* Does p have one element for each that is normalized together, in their order? */
static bool lies_over(const struct cm_type *p, const struct cm_type *x, int first)
{
    const int n = -first;
    if (p->rank < n || p->rank > x->rank)
        return false;
    for (int d = 0; d < p->rank; d++) {
        const struct cm_dim have = p->dims[d], whole = x->dims[x->rank - p->rank + d];
        if (d < p->rank - n ? have.value != 1 : !cm_dim_same(have, whole))
            return false;
    }
    return true;
}

/* What is normalized: x, or what was cast to it where the result is cast back to that type. 0:
 * neither. */
static cm_value normalized(const struct cm_group *m)
{
    const struct cm_type *back = cm_group_type(m, "back"), *x = cm_group_type(m, "x");
    const struct cm_node *cast = cm_value_get(m->graph->module, cm_group_value(m, "x"))->node;
    if (x->kind != CM_KIND_TENSOR || x->dtype != CM_FLOAT || x->rank < 1)
        return 0;
    if (!back)
        return cm_group_value(m, "x");
    if (!cm_node_is(cast, "Cast"))
        return 0;
    const enum cm_dtype dtype =
        cm_value_get(m->graph->module, cast->inputs[0].value)->fact.type->dtype;
    return dtype == back->dtype && (dtype == CM_FLOAT16 || dtype == CM_BFLOAT16)
               ? cast->inputs[0].value
               : 0;
}

/* Means in float, over the same trailing axes; scale and bias as the operators take them. Narrow
 * types are left alone unless they are cast as the operators cast: these compute wider than such a
 * pattern does. */
static bool read_axis(const struct cm_group *m, int *first)
{
    const struct cm_type *x = cm_group_type(m, "x"), *scale = cm_group_type(m, "scale"),
                         *bias = cm_group_type(m, "bias"), *back = cm_group_type(m, "back");
    const enum cm_dtype dtype = back ? back->dtype : CM_FLOAT;
    double epsilon;
    int of_squares;
    if (!normalized(m) || !are_trailing(m, x, "axes", &of_squares))
        return false;
    *first = of_squares;
    if (cm_group_value(m, "mean") && !are_trailing(m, x, "mean_axes", first))
        return false;
    return *first == of_squares &&
           cm_constant_number(m->graph->module, cm_group_value(m, "epsilon"), &epsilon) &&
           epsilon >= 0 && (!scale || (scale->dtype == dtype && lies_over(scale, x, *first))) &&
           (!bias || (bias->dtype == dtype && lies_over(bias, x, *first)));
}

static bool is_norm(const struct cm_group *m)
{
    int first;
    return read_axis(m, &first);
}

/* Ones for a norm that scales nothing: the operators insist on a scale. */
static cm_value ones(struct cm_builder *build, const struct cm_type *x, int first)
{
    enum { MOST = 1 << 16 }; /* more is not worth the memory */
    struct cm_shape shape = {.rank = -first};
    struct cm_tensor tensor;
    int64_t count = 1;
    for (int d = 0; d < shape.rank; d++) {
        const struct cm_dim dim = x->dims[x->rank + first + d];
        if (!cm_dim_known(dim) || !cm_dim_mul(count, dim.value, &count) || count > MOST)
            return 0;
        shape.dims[d] = dim.value;
    }
    build->status = cm_tensor_new(CM_FLOAT, &shape, &tensor, build->err);
    if (build->status)
        return 0;
    for (int64_t i = 0; i < count; i++)
        ((float *)tensor.data)[i] = 1;
    const cm_value value = cm_build_tensor(build, &tensor);
    cm_tensor_drop(&tensor);
    return value;
}

static cm_value build_norm(const struct cm_group *m, struct cm_builder *build, const char *op)
{
    struct cm_arena *arena = cm_builder_arena(build);
    const cm_value bias = cm_group_value(m, "bias");
    cm_value scale = cm_group_value(m, "scale");
    double epsilon;
    int first;
    if (!read_axis(m, &first) ||
        !cm_constant_number(m->graph->module, cm_group_value(m, "epsilon"), &epsilon))
        return 0;
    if (!scale)
        scale = ones(build, cm_group_type(m, "x"), first);
    if (!scale)
        return 0;
    const struct cm_attribute_proto attributes[] = {
        cm_attr_int(arena, "axis", first), cm_attr_float(arena, "epsilon", (float)epsilon)};
    return cm_build(build, &(struct cm_emission){.op = op,
                                                 .inputs = (cm_value[]){normalized(m), scale, bias},
                                                 .n_inputs = bias ? 3 : 2,
                                                 .attributes = attributes,
                                                 .n_attributes = CM_COUNT(attributes)});
}

static cm_value build_layer_norm(const struct cm_group *m, struct cm_builder *build)
{
    return build_norm(m, build, "LayerNormalization");
}

static cm_value build_rms_norm(const struct cm_group *m, struct cm_builder *build)
{
    return build_norm(m, build, "RMSNormalization");
}

/* tf2onnx writes means over all but two axes as GlobalAveragePool. */
#define MEAN          "[(ReduceMean@mean keepdims=1 x mean_axes) (GlobalAveragePool@mean x)]"
#define MEAN_OF(v)    "[(ReduceMean keepdims=1 " v " axes) (GlobalAveragePool " v ")]"
#define SQUARE(v)     "[(Pow " v " 2) (Mul " v " " v ")]"
#define SPREAD(v)     "(Add " MEAN_OF(v) " epsilon)"
#define INVERSE(v)    "[(Reciprocal (Sqrt " v ")) (Div 1 (Sqrt " v ")) (Pow " v " -0.5)]"
#define BY_ROOT(x, v) "[(Div " x " (Sqrt " v ")) (Mul " x " " INVERSE(v) ")]"

/* The difference from the mean is found where it is divided; what is squared is that same value. */
#define LAYER BY_ROOT("(Sub@off x " MEAN ")", SPREAD(SQUARE("off")))
#define RMS   BY_ROOT("x", SPREAD(SQUARE("x")))

/* Keras multiplies x and the mean by scale / root, then takes the difference. */
#define OFF    "(Sub@off x " MEAN ")"
#define FACTOR "(Mul@factor " INVERSE(SPREAD("[(Mul " OFF " off) (Pow " OFF " 2)]")) " scale)"

const struct cm_pattern_row cm_norm_patterns[] = {
    {"layer-norm", "(Add (Mul " LAYER " scale) bias)", is_norm, build_layer_norm},
    {"layer-norm-cast", "(Add (Mul (Cast@back " LAYER ") scale) bias)", is_norm, build_layer_norm},
    {"layer-norm-unbiased", "(Mul " LAYER " scale)", is_norm, build_layer_norm},
    {"layer-norm-keras", "(Add (Mul x " FACTOR ") (Add (Mul (Neg mean) factor) bias))", is_norm,
     build_layer_norm},
    {"layer-norm-keras-unbiased", "(Add (Mul x " FACTOR ") (Mul (Neg mean) factor))", is_norm,
     build_layer_norm},
    {"layer-norm-tensorflow", "(Add (Mul x " FACTOR ") (Sub bias (Mul mean factor)))", is_norm,
     build_layer_norm},
    {"layer-norm-plain-div", "(Div (Sub@off x " MEAN ") (Sqrt " SPREAD(SQUARE("off")) "))", is_norm,
     build_layer_norm},
    {"layer-norm-plain-mul", "(Mul (Sub@off x " MEAN ") " INVERSE(SPREAD(SQUARE("off"))) ")",
     is_norm, build_layer_norm},
    {"rms-norm", "(Mul " RMS " scale)", is_norm, build_rms_norm},
    {"rms-norm-cast", "(Mul (Cast@back " RMS ") scale)", is_norm, build_rms_norm},
    {"rms-norm-plain-div", "(Div x (Sqrt " SPREAD(SQUARE("x")) "))", is_norm, build_rms_norm},
    {"rms-norm-plain-mul", "(Mul x " INVERSE(SPREAD(SQUARE("x"))) ")", is_norm, build_rms_norm},
    {0},
};
