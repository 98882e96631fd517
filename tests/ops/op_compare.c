/* Comparing values, element by element. */
// SPDX-License-Identifier: Apache-2.0
#include "op_compare.h"

#include <math.h>

double tolerance_of(enum cm_dtype type)
{
    switch (type) {
    case CM_DOUBLE:
    case CM_COMPLEX128:
        return 1e-9; /* expected values are decimal texts */
    case CM_FLOAT:
    case CM_COMPLEX64:
        return 2e-6;
    case CM_FLOAT16:
        return 1e-3;
    case CM_BFLOAT16:
        return 8e-3;
    default:
        return 0;
    }
}

enum cm_status tensor_compare_type(const struct cm_tensor *got, const struct cm_tensor *want,
                                   struct cm_error *err)
{
    char a[200], b[200];

    if (got->type != want->type)
        return cm_fail(err, CM_BAD_ARGUMENT, "element type is %s, expected %s",
                       cm_dtype_name(got->type), cm_dtype_name(want->type));
    if (!cm_shape_equal(&got->shape, &want->shape))
        return cm_fail(err, CM_BAD_ARGUMENT, "shape is %s, expected %s",
                       cm_shape_print(&got->shape, a, sizeof a),
                       cm_shape_print(&want->shape, b, sizeof b));
    return CM_OK;
}

/* Complex numbers count as two. */
static double real_at(const struct cm_tensor *tensor, int64_t i)
{
    if (tensor->type == CM_COMPLEX64)
        return (double)((const float *)tensor->data)[i];
    if (tensor->type == CM_COMPLEX128)
        return ((const double *)tensor->data)[i];
    return cm_tensor_real(tensor, i);
}

static bool reals_match(double got, double want, double tol, double largest)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got))
        return want == got;
    if (want == 0 && signbit(want) && got == 0)
        return signbit(got);
    return fabs(got - want) <= tol * fmax(fabs(want), largest / 10);
}

static enum cm_status compare_reals(const struct cm_tensor *got, const struct cm_tensor *want,
                                    double tol, struct cm_error *err)
{
    const bool pairs = cm_dtype_info(want->type)->kind == CM_CLASS_COMPLEX;
    const int64_t count = cm_tensor_count(want) * (pairs ? 2 : 1);
    double largest = 0;

    if (tol < 0)
        tol = tolerance_of(want->type);
    for (int64_t i = 0; i < count; i++)
        if (isfinite(real_at(want, i)))
            largest = fmax(largest, fabs(real_at(want, i)));
    for (int64_t i = 0; i < count; i++) {
        const double a = real_at(got, i), b = real_at(want, i);
        if (!reals_match(a, b, tol, largest))
            return cm_fail(err, CM_BAD_ARGUMENT, "element %lld is %.17g, expected %.17g",
                           (long long)i, a, b);
    }
    return CM_OK;
}

static enum cm_status compare_strings(const struct cm_tensor *got, const struct cm_tensor *want,
                                      struct cm_error *err)
{
    const struct cm_str *a = got->data, *b = want->data;

    for (int64_t i = 0; i < cm_tensor_count(want); i++)
        if (!cm_str_equal(a[i], b[i]))
            return cm_fail(err, CM_BAD_ARGUMENT, "element %lld is \"%.*s\", expected \"%.*s\"",
                           (long long)i, CM_STR_FMT(a[i]), CM_STR_FMT(b[i]));
    return CM_OK;
}

static enum cm_status compare_tensors(const struct cm_tensor *got, const struct cm_tensor *want,
                                      double tol, struct cm_error *err)
{
    const enum cm_dtype_class kind = cm_dtype_info(want->type)->kind;

    CM_TRY(tensor_compare_type(got, want, err));
    if (want->type == CM_STRING)
        return compare_strings(got, want, err);
    if (kind == CM_CLASS_FLOAT || kind == CM_CLASS_COMPLEX)
        return compare_reals(got, want, tol, err);
    for (int64_t i = 0; i < cm_tensor_count(want); i++) {
        const int64_t a = cm_tensor_int(got, i), b = cm_tensor_int(want, i);
        if (a != b)
            return cm_fail(err, CM_BAD_ARGUMENT, "element %lld is %lld, expected %lld",
                           (long long)i, (long long)a, (long long)b);
        if (want->type == CM_BOOL && ((const uint8_t *)got->data)[i] > 1)
            return cm_fail(err, CM_BAD_ARGUMENT, "element %lld is a byte that is no bool",
                           (long long)i);
    }
    return CM_OK;
}

enum cm_status value_compare(const struct cm_datum *got, const struct cm_datum *want, double tol,
                             struct cm_error *err)
{
    if (got->kind != want->kind)
        return cm_fail(err, CM_BAD_ARGUMENT, "it is a value of kind %d, expected kind %d",
                       (int)got->kind, (int)want->kind);
    if (got->n_items != want->n_items)
        return cm_fail(err, CM_BAD_ARGUMENT, "it has %zu items, expected %zu", got->n_items,
                       want->n_items);
    for (size_t i = 0; i < want->n_items; i++)
        CM_TRY(cm_error_context(err, value_compare(&got->items[i], &want->items[i], tol, err),
                                "item %zu", i));
    if (want->kind == CM_KIND_TENSOR || want->kind == CM_KIND_MAP)
        return compare_tensors(&got->tensor, &want->tensor, tol, err);
    return CM_OK;
}

static enum cm_status same_tensors(const struct cm_tensor *got, const struct cm_tensor *want,
                                   struct cm_error *err)
{
    const enum cm_dtype_class kind = cm_dtype_info(want->type)->kind;
    const bool pairs = kind == CM_CLASS_COMPLEX;

    CM_TRY(compare_tensors(got, want, 0, err));
    if (kind != CM_CLASS_FLOAT && !pairs)
        return CM_OK;
    for (int64_t i = 0, n = cm_tensor_count(want) * (pairs ? 2 : 1); i < n; i++)
        if (real_at(want, i) == 0 && signbit(real_at(want, i)) != signbit(real_at(got, i)))
            return cm_fail(err, CM_BAD_ARGUMENT, "element %lld is %g, expected %g", (long long)i,
                           real_at(got, i), real_at(want, i));
    return CM_OK;
}

enum cm_status value_same(const struct cm_datum *got, const struct cm_datum *want,
                          struct cm_error *err)
{
    CM_TRY(value_compare(got, want, 0, err));
    for (size_t i = 0; i < want->n_items; i++)
        CM_TRY(
            cm_error_context(err, value_same(&got->items[i], &want->items[i], err), "item %zu", i));
    return want->kind == CM_KIND_TENSOR ? same_tensors(&got->tensor, &want->tensor, err) : CM_OK;
}

static bool dim_admits(const struct cm_symbols *symbols, struct cm_dim dim, int64_t size)
{
    if (cm_dim_known(dim))
        return dim.value == size;
    if (!dim.symbol)
        return true;
    const struct cm_str name = cm_symbol_name(symbols, dim.symbol);
    int64_t meant;
    if (!cm_str_starts(name, "size") ||
        !cm_str_to_int64((struct cm_str){name.data + 4, name.size - 4}, &meant))
        return true;
    return meant == size;
}

static bool tensor_admits(const struct cm_symbols *symbols, const struct cm_type *type,
                          const struct cm_tensor *tensor)
{
    if (type->dtype != tensor->type)
        return false;
    if (type->rank == CM_RANK_UNKNOWN)
        return true;
    if (type->rank != tensor->shape.rank)
        return false;
    for (int i = 0; i < type->rank; i++)
        if (!dim_admits(symbols, type->dims[i], tensor->shape.dims[i]))
            return false;
    return true;
}

static bool admits(const struct cm_symbols *symbols, const struct cm_type *type,
                   const struct cm_datum *datum)
{
    if (!type)
        return false;
    if (type->kind == CM_KIND_OPTIONAL)
        return datum->kind == CM_KIND_NONE || admits(symbols, type->elem, datum);
    if (type->kind != datum->kind)
        return false;
    if (type->kind == CM_KIND_TENSOR)
        return tensor_admits(symbols, type, &datum->tensor);
    if (type->kind == CM_KIND_MAP && type->dtype != datum->tensor.type)
        return false;
    for (size_t i = 0; i < datum->n_items; i++)
        if (!admits(symbols, type->elem, &datum->items[i]))
            return false;
    return true;
}

enum cm_status type_admits(struct cm_arena *arena, const struct cm_symbols *symbols,
                           const struct cm_type *type, const struct cm_datum *datum,
                           struct cm_error *err)
{
    if (admits(symbols, type, datum))
        return CM_OK;
    const struct cm_type *actual = cm_type_of_datum(arena, datum);
    return cm_fail(err, CM_BAD_ARGUMENT, "the inferred type is %.*s, but the value is %.*s",
                   CM_STR_FMT(type ? cm_type_print(arena, symbols, type) : CM_STR("none")),
                   CM_STR_FMT(cm_type_print(arena, symbols, actual)));
}
