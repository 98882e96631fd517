/* Names of the ONNX dialect. A version of an operator that reads like the next newer one (the same
 * inputs, attributes and defaults, perhaps fewer) shares its name; the newest form has the
 * operator's own name, and older ones end in V and the newest version they stand for: as ONNX-MLIR
 * calls them. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/dialect/dialect_names.h"

static const char *const elements[CM_DTYPE_COUNT] = {
    [CM_FLOAT] = "f32",
    [CM_UINT8] = "ui8",
    [CM_INT8] = "i8",
    [CM_UINT16] = "ui16",
    [CM_INT16] = "i16",
    [CM_INT32] = "i32",
    [CM_INT64] = "i64",
    [CM_STRING] = CM_DIALECT_STRING,
    [CM_BOOL] = "i1",
    [CM_FLOAT16] = "f16",
    [CM_DOUBLE] = "f64",
    [CM_UINT32] = "ui32",
    [CM_UINT64] = "ui64",
    [CM_COMPLEX64] = "complex<f32>",
    [CM_COMPLEX128] = "complex<f64>",
    [CM_BFLOAT16] = "bf16",
    [CM_FLOAT8E4M3FN] = "f8E4M3FN",
    [CM_FLOAT8E4M3FNUZ] = "f8E4M3FNUZ",
    [CM_FLOAT8E5M2] = "f8E5M2",
    [CM_FLOAT8E5M2FNUZ] = "f8E5M2FNUZ",
    [CM_UINT4] = "ui4",
    [CM_INT4] = "i4",
    [CM_FLOAT4E2M1] = "f4E2M1FN",
    [CM_FLOAT8E8M0] = "f8E8M0FNU",
    [CM_UINT2] = "ui2",
    [CM_INT2] = "i2",
    [CM_FLOAT6E2M3] = "f6E2M3FN",
    [CM_FLOAT6E3M2] = "f6E3M2FN",
};

const char *cm_dialect_element(int64_t type)
{
    return cm_dtype_is_valid(type) ? elements[type] : NULL;
}

bool cm_dialect_element_parse(struct cm_str name, enum cm_dtype *out)
{
    if (name.size > 2 && name.data[0] == 's' && name.data[1] == 'i')
        name = (struct cm_str){name.data + 1, name.size - 1};
    for (int i = 1; i < CM_DTYPE_COUNT; i++) {
        if (cm_str_is(name, elements[i])) {
            *out = (enum cm_dtype)i;
            return true;
        }
    }
    return false;
}

/* Their operators share the dialect: no two have a name in common. */
static const char *const domains[] = {"", "ai.onnx.ml", "ai.onnx.training",
                                      "ai.onnx.preview.training"};

static bool same_default(const struct cm_schema_attr *a, const struct cm_schema_attr *b)
{
    const struct cm_schema_default *x = a->preset, *y = b->preset;

    if (!x || !y)
        return !x && !y;
    if (x->i != y->i || x->f != y->f || x->count != y->count || !x->s != !y->s)
        return false;
    if (x->s && strcmp(x->s, y->s) != 0)
        return false;
    for (size_t i = 0; i < x->count; i++) {
        if ((x->ints && x->ints[i] != y->ints[i]) || (x->floats && x->floats[i] != y->floats[i]) ||
            (x->strings && strcmp(x->strings[i], y->strings[i]) != 0))
            return false;
    }
    return true;
}

static bool attributes_read_alike(const struct cm_schema *older, const struct cm_schema *newer)
{
    for (size_t i = 0; i < older->attr_count; i++) {
        const struct cm_schema_attr *a = &older->attrs[i];
        const struct cm_schema_attr *b = cm_schema_find_attr(newer, cm_str(a->name));
        if (!b || b->kind != a->kind || (b->required && !a->required) || !same_default(a, b))
            return false;
    }
    for (size_t i = 0; i < newer->attr_count; i++) {
        const struct cm_schema_attr *b = &newer->attrs[i];
        if (b->required && !cm_schema_find_attr(older, cm_str(b->name)))
            return false;
    }
    return true;
}

/* Is a node that is legal in the older version legal in the newer one, with the same meaning as far
 * as facts can tell? */
static bool read_alike(const struct cm_schema *older, const struct cm_schema *newer)
{
    if (older->deprecated != newer->deprecated || older->input_count > newer->input_count ||
        older->output_count > newer->output_count)
        return false;
    for (size_t i = 0; i < newer->input_count; i++) {
        const struct cm_schema_param *b = &newer->inputs[i];
        if (i >= older->input_count) {
            if (b->kind == CM_PARAM_SINGLE || (b->kind == CM_PARAM_VARIADIC && b->min_arity))
                return false;
            continue;
        }
        const struct cm_schema_param *a = &older->inputs[i];
        if (strcmp(a->name, b->name) != 0 || (b->kind == CM_PARAM_SINGLE && a->kind != b->kind))
            return false;
    }
    return attributes_read_alike(older, newer);
}

/* The form in force at an opset: versions are looked at from the newest on. */
static bool find_form(const struct cm_schema *newest, int64_t opset,
                      struct cm_dialect_operator *out)
{
    const struct cm_schema *top = newest; /* the newest version of the form */
    int64_t last = INT64_MAX;

    *out = (struct cm_dialect_operator){.domain = cm_str(newest->domain),
                                        .name = cm_str(newest->name)};
    for (const struct cm_schema *at = newest; at;) {
        const struct cm_schema *older =
            cm_schema_find(out->domain, out->name, at->since_version - 1);
        if (older && read_alike(older, at)) {
            at = older;
            continue;
        }
        out->version = top == newest ? 0 : top->since_version;
        out->first = at->since_version;
        out->last = last;
        if (opset >= out->first)
            return true;
        last = at->since_version - 1;
        at = top = older;
    }
    return false;
}

static const struct cm_schema *newest_named(struct cm_str name)
{
    for (size_t i = 0; i < CM_COUNT(domains); i++) {
        const struct cm_schema *found = cm_schema_newest(cm_str(domains[i]), name);
        if (found)
            return found;
    }
    return NULL;
}

bool cm_dialect_operator_of(struct cm_str domain, struct cm_str name, int64_t opset,
                            struct cm_dialect_operator *out)
{
    const struct cm_schema *newest = cm_schema_newest(domain, name);

    if (!newest || !cm_schema_find(domain, name, opset))
        return false;
    const struct cm_schema *meant = newest_named(name);
    return meant && strcmp(meant->domain, newest->domain) == 0 && find_form(newest, opset, out);
}

bool cm_dialect_operator_named(struct cm_str name, struct cm_dialect_operator *out)
{
    const struct cm_schema *newest = newest_named(name);
    size_t digits = name.size;
    int64_t version = INT64_MAX;

    if (!newest) {
        while (digits > 0 && name.data[digits - 1] >= '0' && name.data[digits - 1] <= '9')
            digits--;
        if (digits < 2 || digits == name.size || name.data[digits - 1] != 'V' ||
            !cm_str_to_int64((struct cm_str){name.data + digits, name.size - digits}, &version) ||
            version < 1)
            return false;
        newest = newest_named((struct cm_str){name.data, digits - 1});
    }
    return newest && find_form(newest, version, out);
}
