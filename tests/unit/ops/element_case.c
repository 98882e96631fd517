/* Elementwise operators for tests. */
// SPDX-License-Identifier: Apache-2.0
#include "element_case.h"

#include "exec/random_graph.h"
#include "tensor/half.h"

#include <math.h>

static const struct element_use uses[] = {
    {.op = "BitShift", .attribute = "direction", .text = "LEFT"},
    {.op = "BitShift", .attribute = "direction", .text = "RIGHT"},
    {.op = "Cast", .attribute = "to", .number = ELEMENT_ANY_TYPE},
    {.op = "Clip", .shapes = ELEMENT_SCALARS},
    {.op = "DequantizeLinear", .shapes = ELEMENT_NUMBERS},
    {.op = "Gelu", .attribute = "approximate", .text = "none"},
    {.op = "Gelu", .attribute = "approximate", .text = "tanh"},
    {.op = "GeluGrad", .shapes = ELEMENT_EQUAL, .attribute = "approximate", .text = "none"},
    {.op = "GeluGrad", .shapes = ELEMENT_EQUAL, .attribute = "approximate", .text = "tanh"},
    {.op = "IsInf", .attribute = "detect_negative", .number = 0},
    {.op = "IsInf", .attribute = "detect_positive", .number = 0},
    {.op = "Mod", .attribute = "fmod", .number = 1},
    {.op = "Mod", .attribute = "fmod", .number = 0},
    {.op = "PRelu", .shapes = ELEMENT_FIRST},
    {.op = "QuantizeLinear", .shapes = ELEMENT_NUMBERS},
    {.op = "SwiGLU", .shapes = ELEMENT_EQUAL},
    {.op = "SwishGrad", .shapes = ELEMENT_EQUAL},
};

const struct element_use *element_uses(const struct cm_op *op, size_t *n)
{
    static const struct element_use plain;
    const struct element_use *first = NULL;
    *n = 0;
    for (size_t i = 0; i < CM_COUNT(uses); i++) {
        if (strcmp(uses[i].op, op->name) != 0)
            continue;
        first = first ? first : &uses[i];
        ++*n;
    }
    if (first)
        return first;
    *n = 1;
    return &plain;
}

const char *element_name(struct cm_arena *arena, const struct cm_op *op)
{
    if (!*op->domain)
        return op->name;
    return cm_arena_printf(arena, "%s::%s", op->domain, op->name).data;
}

bool element_is_common(enum cm_dtype type)
{
    const struct cm_dtype_info *info = cm_dtype_info(type);
    return type == CM_FLOAT16 || type == CM_BFLOAT16 || type == CM_BOOL ||
           (info->bits >= 8 &&
            (info->kind == CM_CLASS_SIGNED || info->kind == CM_CLASS_UNSIGNED)) ||
           type == CM_FLOAT || type == CM_DOUBLE;
}

const struct cm_schema_param *element_param(const struct cm_schema *schema, size_t i)
{
    const size_t last = (size_t)schema->input_count - 1;
    return &schema->inputs[i < last ? i : last];
}

uint64_t element_types(const struct cm_schema *schema, size_t i)
{
    const struct cm_type_set *set = cm_schema_types_of(schema, element_param(schema, i));
    for (size_t r = 0; r < set->row_count; r++)
        if (set->rows[r].form == CM_FORM_TENSOR)
            return set->rows[r].elements;
    return 0;
}

/* ---- elements ---- */

static double some_real(uint64_t *state)
{
    static const double edges[] = {0.0, -0.0, 1,  -1,       2,         0.5,   3,     -0.25, 1e-30,
                                   7.5, 88,   90, INFINITY, -INFINITY, 1e300, 65504, 1e10,  NAN};
    if (random_below(state, 3) == 0)
        return edges[random_below(state, CM_COUNT(edges))];
    return (double)random_below(state, 1 << 20) / (1 << 17) - 4;
}

static int64_t some_whole(uint64_t *state)
{
    static const int64_t edges[] = {0,    1,   -1,        2,         3,         7,        127,
                                    -128, 255, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    if (random_below(state, 2) == 0)
        return edges[random_below(state, CM_COUNT(edges))];
    return (int64_t)random_below(state, 200) - 100;
}

static void fill_one(uint64_t *state, enum cm_dtype type, char *to)
{
    const size_t width = cm_dtype_size(type);
    const int64_t whole = some_whole(state);
    const double real = some_real(state);
    const float single = (float)real;
    if (type == CM_BOOL)
        *to = (char)random_below(state, 3);
    else if (type == CM_DOUBLE)
        memcpy(to, &real, width);
    else if (type == CM_FLOAT)
        memcpy(to, &single, width);
    else if (cm_dtype_info(type)->kind == CM_CLASS_FLOAT)
        cm_narrow_store(type, to, 0, 1, &single);
    else
        memcpy(to, &whole, width < sizeof whole ? width : sizeof whole);
}

void element_fill(uint64_t *state, struct cm_tensor *tensor)
{
    const size_t width = cm_dtype_size(tensor->type);
    for (int64_t i = 0; i < cm_tensor_count(tensor); i++) {
        char *to = (char *)tensor->data + (size_t)i * width;
        fill_one(state, tensor->type, to);
        for (size_t b = 0; tensor->type != CM_BOOL && i % 8 == 7 && b < width; b++)
            to[b] = (char)random_below(state, 256);
    }
}

static bool is_nan(const struct cm_tensor *x, int64_t i)
{
    float single;
    if (cm_dtype_info(x->type)->kind != CM_CLASS_FLOAT)
        return false;
    if (x->type == CM_DOUBLE)
        return isnan(((const double *)x->data)[i]);
    if (x->type == CM_FLOAT)
        return isnan(((const float *)x->data)[i]);
    cm_narrow_load(x->type, x->data, i, 1, &single);
    return isnan(single);
}

bool element_same(const struct cm_tensor *a, const struct cm_tensor *b)
{
    const size_t width = cm_dtype_size(a->type);
    if (a->type != b->type || !cm_shape_equal(&a->shape, &b->shape))
        return false;
    for (int64_t i = 0; i < cm_tensor_count(a); i++) {
        const char *x = (const char *)a->data + (size_t)i * width;
        const char *y = (const char *)b->data + (size_t)i * width;
        if (memcmp(x, y, width) != 0 && !(is_nan(a, i) && is_nan(b, i)))
            return false;
    }
    return true;
}
