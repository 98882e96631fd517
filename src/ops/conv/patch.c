/* Gathering and scattering of patches. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/patch.h"

#include "base/number.h"
#include "ops/common/move.h"

bool cm_patch_init(struct cm_patch *patch, const struct cm_window *window, const int64_t *image,
                   const int64_t *windows)
{
    memset(patch, 0, sizeof *patch);
    patch->rank = window->rank;
    patch->taps = patch->rows = patch->image_size = patch->columns = 1;
    for (int i = 0; i < window->rank; i++) {
        patch->image[i] = image[i];
        patch->windows[i] = windows[i];
        patch->kernel[i] = window->kernel[i];
        patch->stride[i] = window->stride[i];
        patch->dilation[i] = window->dilation[i];
        patch->pad[i] = window->pad_begin[i];
        patch->rows = patch->columns;
        if (!cm_dim_mul(patch->taps, window->kernel[i], &patch->taps) ||
            !cm_dim_mul(patch->image_size, image[i], &patch->image_size) ||
            !cm_dim_mul(patch->columns, windows[i], &patch->columns))
            return false;
    }
    patch->width = windows[window->rank - 1];
    return true;
}

bool cm_patch_is_trivial(const struct cm_patch *patch)
{
    for (int i = 0; i < patch->rank; i++)
        if (patch->kernel[i] != 1 || patch->stride[i] != 1 || patch->pad[i] != 0 ||
            patch->image[i] != patch->windows[i])
            return false;
    return true;
}

enum { CHUNK_ELEMENTS = 1 << 18 };

int64_t cm_patch_chunk(const struct cm_patch *patch, int64_t lines)
{
    const int64_t per_row =
        lines > 0 && patch->width > CHUNK_ELEMENTS / lines ? CHUNK_ELEMENTS : lines * patch->width;
    const int64_t rows = per_row > 0 ? CHUNK_ELEMENTS / per_row : 1;
    return rows < 1 ? 1 : rows < patch->rows ? rows : patch->rows > 0 ? patch->rows : 1;
}

/* One line of a matrix, one row of its windows: where they lie in the image. */
struct span {
    int64_t at;       /* the image element of window `from` */
    int64_t from, to; /* windows that see the image; the others see padding */
};

/* Smallest w >= 0 with w * stride + offset >= 0, at most limit. */
static int64_t first_inside(int64_t offset, int64_t stride, int64_t limit)
{
    const int64_t w = offset >= 0 ? 0 : -offset / stride + (-offset % stride != 0);
    return w < limit ? w : limit;
}

/* The first window past those with w * stride + offset < size, at most limit. */
static int64_t past_inside(int64_t offset, int64_t stride, int64_t size, int64_t limit)
{
    if (offset >= size)
        return 0;
    const int64_t w = (size - 1 - offset) / stride + 1;
    return w < limit ? w : limit;
}

/* index: of the row (rank - 1 entries); tap: of the kernel (rank entries). */
static struct span locate(const struct cm_patch *patch, const int64_t *index, const int64_t *tap)
{
    const int last = patch->rank - 1;
    int64_t at = 0;
    for (int i = 0; i < last; i++) {
        const int64_t x = index[i] * patch->stride[i] + tap[i] * patch->dilation[i] - patch->pad[i];
        if (x < 0 || x >= patch->image[i])
            return (struct span){0};
        at = at * patch->image[i] + x;
    }
    const int64_t offset = tap[last] * patch->dilation[last] - patch->pad[last];
    struct span span;
    span.from = first_inside(offset, patch->stride[last], patch->width);
    span.to = past_inside(offset, patch->stride[last], patch->image[last], patch->width);
    if (span.to <= span.from)
        return (struct span){0};
    span.at = at * patch->image[last] + span.from * patch->stride[last] + offset;
    return span;
}

static void unravel(int64_t at, int rank, const int64_t *dims, int64_t *index)
{
    for (int i = rank - 1; i >= 0; i--) {
        index[i] = at % dims[i];
        at /= dims[i];
    }
}

static void advance(int rank, const int64_t *dims, int64_t *index)
{
    for (int i = rank - 1; i >= 0; i--) {
        if (++index[i] < dims[i])
            return;
        index[i] = 0;
    }
}

void cm_patch_gather(const struct cm_patch *patch, enum cm_dtype type, const void *image,
                     int64_t image_at, int64_t first_row, int64_t n_rows, void *lines,
                     int64_t lines_at)
{
    const int64_t width = patch->width, step = patch->stride[patch->rank - 1];
    int64_t tap[CM_MAX_RANK] = {0}, row[CM_MAX_RANK];
    for (int64_t k = 0; k < patch->taps; k++) {
        unravel(first_row, patch->rank - 1, patch->windows, row);
        for (int64_t r = 0; r < n_rows; r++, lines_at += width) {
            const struct span span = locate(patch, row, tap);
            cm_move_zero(type, lines, lines_at, span.from);
            cm_move_row(type, image, image_at + span.at, step, lines, lines_at + span.from,
                        span.to - span.from);
            cm_move_zero(type, lines, lines_at + span.to, width - span.to);
            advance(patch->rank - 1, patch->windows, row);
        }
        advance(patch->rank, patch->kernel, tap);
    }
}

#define DEFINE_ADD(name, ctype)                                                                    \
    static void name(const void *from, int64_t from_at, int64_t count, void *to, int64_t to_at,    \
                     int64_t step)                                                                 \
    {                                                                                              \
        const ctype *x = (const ctype *)from + from_at;                                            \
        ctype *y = (ctype *)to + to_at;                                                            \
        for (int64_t i = 0; i < count; i++)                                                        \
            y[i * step] += x[i];                                                                   \
    }
DEFINE_ADD(add_floats, float)
DEFINE_ADD(add_doubles, double)

void cm_patch_scatter(const struct cm_patch *patch, enum cm_dtype type, const void *lines,
                      int64_t lines_at, int64_t first_row, int64_t n_rows, void *image,
                      int64_t image_at)
{
    const int64_t width = patch->width, step = patch->stride[patch->rank - 1];
    int64_t tap[CM_MAX_RANK] = {0}, row[CM_MAX_RANK];
    for (int64_t k = 0; k < patch->taps; k++) {
        unravel(first_row, patch->rank - 1, patch->windows, row);
        for (int64_t r = 0; r < n_rows; r++, lines_at += width) {
            const struct span span = locate(patch, row, tap);
            (type == CM_DOUBLE ? add_doubles : add_floats)(
                lines, lines_at + span.from, span.to - span.from, image, image_at + span.at, step);
            advance(patch->rank - 1, patch->windows, row);
        }
        advance(patch->rank, patch->kernel, tap);
    }
}
