/* Copying samples out of arrays: as they lie, or converted to what a model wants. */
// SPDX-License-Identifier: Apache-2.0
#include "io/rows.h"

#include "base/number.h"
#include "tensor/element_types.h"
#include "tensor/half.h"

#include <math.h>

/* Elements converted at a time; a multiple of 8, so that packed types are cut between bytes. */
enum { BLOCK = 256, WIDEST = 16 };

/* The largest whole number up to which doubles hold every one. */
static const double exact = 9007199254740992.0;

enum cm_status cm_rows_add(struct cm_arena *arena, struct cm_rows_list *list, struct cm_str name,
                           enum cm_dtype type, const struct cm_shape *shape, const uint8_t *data,
                           struct cm_rows **out, struct cm_error *err)
{
    struct cm_rows rows = {.name = name, .type = type, .data = data};

    if (type == CM_STRING)
        return cm_fail(err, CM_UNSUPPORTED, "it holds text, but training needs numbers");
    if (shape->rank == 0)
        return cm_fail(err, CM_BAD_MODEL, "it is a single number, without an axis of samples");
    rows.count = shape->dims[0];
    if (rows.count == 0)
        return cm_fail(err, CM_BAD_MODEL, "it has no samples: its first dimension is 0");
    rows.sample.rank = shape->rank - 1;
    memcpy(rows.sample.dims, shape->dims + 1, sizeof shape->dims - sizeof shape->dims[0]);
    rows.elements = cm_shape_elements(&rows.sample);
    if (!cm_dtype_bytes(type, rows.elements, &rows.stride))
        return cm_fail(err, CM_BAD_MODEL, "the size of its samples overflows");
    if (rows.elements % 8 * cm_dtype_info(type)->bits % 8 != 0)
        return cm_fail(err, CM_UNSUPPORTED,
                       "a sample of %lld elements of type %s does not fill whole bytes",
                       (long long)rows.elements, cm_dtype_name(type));
    rows.view = (struct cm_dataset_view){.type = type, .sample = rows.sample};
    *CM_PUSH(arena, list) = rows;
    *out = &list->items[list->count - 1];
    return CM_OK;
}

bool cm_rows_view_bytes(const struct cm_rows *rows, size_t *out)
{
    return cm_dtype_bytes(rows->view.type, rows->elements, out);
}

enum cm_status cm_rows_check_view(const struct cm_rows *rows, const struct cm_dataset_view *view,
                                  struct cm_error *err)
{
    char have[128], want[128];
    int64_t elements;
    size_t size;

    if (!cm_shape_count(&view->sample, &elements) || elements != rows->elements)
        return cm_fail(err, CM_BAD_ARGUMENT, "its samples of shape %s cannot be given as shape %s",
                       cm_shape_print(&rows->sample, have, sizeof have),
                       cm_shape_print(&view->sample, want, sizeof want));
    const bool same = view->type == rows->type && view->std == 0;
    if (!same && (!cm_dtype_is_real(rows->type) || !cm_dtype_is_real(view->type)))
        return cm_fail(err, CM_BAD_ARGUMENT, "its %s cannot be converted to %s",
                       cm_dtype_name(rows->type), cm_dtype_name(view->type));
    if (!cm_dtype_bytes(view->type, elements, &size) ||
        elements % 8 * cm_dtype_info(view->type)->bits % 8 != 0)
        return cm_fail(err, CM_BAD_ARGUMENT, "its samples of %lld elements do not fit %s",
                       (long long)elements, cm_dtype_name(view->type));
    return CM_OK;
}

/* Where element `first` of a column-major sample is, counted in elements, and how the index that
 * leads there reads. */
static int64_t seek_columns(const struct cm_rows *rows, int64_t i, int64_t first, int64_t *index,
                            int64_t *strides)
{
    int64_t offset = i, step = rows->count;

    for (int axis = 0; axis < rows->sample.rank; axis++) {
        strides[axis] = step;
        step *= rows->sample.dims[axis];
    }
    for (int axis = rows->sample.rank - 1; axis >= 0; axis--) {
        index[axis] = first % rows->sample.dims[axis];
        first /= rows->sample.dims[axis];
        offset += index[axis] * strides[axis];
    }
    return offset;
}

static void take_columns(const struct cm_rows *rows, int64_t i, int64_t first, size_t n,
                         uint8_t *to)
{
    const size_t width = cm_dtype_size(rows->type);
    int64_t index[CM_MAX_RANK], strides[CM_MAX_RANK];
    int64_t offset = seek_columns(rows, i, first, index, strides);

    for (size_t k = 0; k < n; k++) {
        memcpy(to + k * width, rows->data + (size_t)offset * width, width);
        for (int axis = rows->sample.rank - 1; axis >= 0; axis--) {
            offset += strides[axis];
            if (++index[axis] < rows->sample.dims[axis])
                break;
            offset -= strides[axis] * rows->sample.dims[axis];
            index[axis] = 0;
        }
    }
}

static void swap(uint8_t *bytes, size_t width, size_t count)
{
    for (; count > 0; count--, bytes += width)
        for (size_t a = 0, b = width - 1; a < b; a++, b--) {
            const uint8_t held = bytes[a];
            bytes[a] = bytes[b];
            bytes[b] = held;
        }
}

/* n elements of sample i from `first` on, as they are but little-endian and next to each other.
 * Where types are packed, first and n end between bytes. */
static void take(const struct cm_rows *rows, int64_t i, int64_t first, size_t n, uint8_t *to)
{
    size_t before = 0, size = 0;

    if (rows->column_major) {
        take_columns(rows, i, first, n, to);
        return;
    }
    /* Both are parts of a sample, whose size was checked. */
    (void)cm_dtype_bytes(rows->type, first, &before);
    (void)cm_dtype_bytes(rows->type, (int64_t)n, &size);
    memcpy(to, rows->data + (size_t)i * rows->stride + before, size);
    if (rows->big_endian)
        swap(to, cm_dtype_size(rows->type), n);
}

static enum cm_status check_bools(const struct cm_rows *rows, int64_t i, const uint8_t *bytes,
                                  size_t n, struct cm_error *err)
{
    for (size_t k = 0; k < n; k++)
        if (bytes[k] > 1)
            return cm_fail(err, CM_BAD_MODEL,
                           "array '%.*s': sample %lld holds %d, which is not a boolean",
                           CM_STR_FMT(rows->name), (long long)i, bytes[k]);
    return CM_OK;
}

#define LOAD(TAG, c_type, name, extra)                                                             \
    case CM_##TAG:                                                                                 \
        for (size_t k = 0; k < n; k++)                                                             \
            to[k] = (double)((const c_type *)from)[k];                                             \
        break;

/* from is aligned. */
static void load(enum cm_dtype type, const void *from, size_t n, double *to)
{
    float narrow[BLOCK];

    switch (type) {
        CM_NUMBER_TYPES(LOAD, , )
        CM_BOOL_TYPES(LOAD, , )
    default:
        cm_narrow_load(type, from, 0, (int64_t)n, narrow);
        for (size_t k = 0; k < n; k++)
            to[k] = (double)narrow[k];
    }
}

/* The numbers that an integer type can hold and a double counts exactly. */
static void integer_range(enum cm_dtype type, double *low, double *high)
{
    const struct cm_dtype_info *info = cm_dtype_info(type);
    const bool is_signed = info->kind == CM_CLASS_SIGNED;
    const int bits = info->kind == CM_CLASS_BOOL ? 1 : info->bits - is_signed;

    *high = bits > 53 ? exact : ldexp(1.0, bits) - 1;
    *low = !is_signed ? 0 : bits > 53 ? -exact : -ldexp(1.0, bits);
}

#define STORE(TAG, c_type, name, extra)                                                            \
    case CM_##TAG:                                                                                 \
        for (size_t k = 0; k < n; k++)                                                             \
            ((c_type *)to)[first + k] = (c_type)from[k];                                           \
        break;

/* Values are within the range of type. */
static void store(enum cm_dtype type, void *to, size_t first, size_t n, const double *from)
{
    float narrow[BLOCK];

    switch (type) {
        CM_NUMBER_TYPES(STORE, , )
        CM_BOOL_TYPES(STORE, , )
    default:
        for (size_t k = 0; k < n; k++)
            narrow[k] = (float)from[k];
        cm_narrow_store(type, to, (int64_t)first, (int64_t)n, narrow);
    }
}

/* What must become whole numbers has to be some, in range. */
static enum cm_status check_whole(const struct cm_rows *rows, int64_t i, const double *values,
                                  size_t n, struct cm_error *err)
{
    double low, high;

    integer_range(rows->view.type, &low, &high);
    for (size_t k = 0; k < n; k++)
        if (!(values[k] >= low && values[k] <= high && values[k] == floor(values[k])))
            return cm_fail(
                err, CM_BAD_MODEL, "array '%.*s': sample %lld holds %.17g, which %s cannot hold",
                CM_STR_FMT(rows->name), (long long)i, values[k], cm_dtype_name(rows->view.type));
    return CM_OK;
}

static enum cm_status convert(const struct cm_rows *rows, int64_t i, void *to, struct cm_error *err)
{
    const struct cm_dataset_view *view = &rows->view;
    const bool to_float = cm_dtype_info(view->type)->kind == CM_CLASS_FLOAT;
    _Alignas(16) uint8_t raw[BLOCK * WIDEST];
    double values[BLOCK];

    for (int64_t first = 0; first < rows->elements; first += BLOCK) {
        const size_t n = cm_min_size((size_t)(rows->elements - first), BLOCK);

        take(rows, i, first, n, raw);
        if (rows->type == CM_BOOL)
            CM_TRY(check_bools(rows, i, raw, n, err));
        load(rows->type, raw, n, values);
        for (size_t k = 0; view->std != 0 && k < n; k++)
            values[k] = (values[k] - view->mean) / view->std;
        if (!to_float)
            CM_TRY(check_whole(rows, i, values, n, err));
        store(view->type, to, (size_t)first, n, values);
    }
    return CM_OK;
}

static enum cm_status read_row(const struct cm_rows *rows, int64_t i, void *to,
                               struct cm_error *err)
{
    if (rows->elements == 0)
        return CM_OK;
    if (rows->view.type != rows->type || rows->view.std != 0)
        return convert(rows, i, to, err);
    take(rows, i, 0, (size_t)rows->elements, to);
    return rows->type == CM_BOOL ? check_bools(rows, i, to, (size_t)rows->elements, err) : CM_OK;
}

enum cm_status cm_rows_read(const struct cm_rows *rows, int64_t i, void *to, struct cm_error *err)
{
    const struct cm_rows *at = rows;

    while (at->next && i >= at->count) {
        i -= at->count;
        at = at->next;
    }
    if (at == rows)
        return read_row(rows, i, to, err);
    struct cm_rows part = *at; /* the view is that of the first file */
    part.view = rows->view;
    return read_row(&part, i, to, err);
}
