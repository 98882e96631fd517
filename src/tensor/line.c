/* Loops over runs of elements. */
// SPDX-License-Identifier: Apache-2.0
#include "tensor/line.h"

#include "tensor/half.h"

enum { CHUNK = 256 }; /* narrow elements converted at a time */

enum cm_dtype cm_line_wide(enum cm_dtype type)
{
    return type == CM_DOUBLE ? CM_DOUBLE : CM_FLOAT;
}

struct cm_line cm_line_at(const struct cm_tensor *tensor, int64_t at)
{
    return (struct cm_line){tensor->type, tensor->data, at};
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#define T         float
#define FOR(name) name##_FLOAT
#include "tensor/line_type.inc"
#define T         double
#define FOR(name) name##_DOUBLE
#include "tensor/line_type.inc"

double cm_line_sum(struct cm_line x, int64_t count)
{
    if (x.type == CM_FLOAT)
        return sum_FLOAT((const float *)x.data + x.at, count);
    if (x.type == CM_DOUBLE)
        return sum_DOUBLE((const double *)x.data + x.at, count);
    double sum = 0;
    for (int64_t done = 0; done < count; done += CHUNK) {
        float chunk[CHUNK];
        const int64_t n = least(CHUNK, count - done);
        cm_narrow_load(x.type, x.data, x.at + done, n, chunk);
        sum += sum_FLOAT(chunk, n);
    }
    return sum;
}

double cm_line_square_sum(struct cm_line x, int64_t count, double mean)
{
    if (x.type == CM_FLOAT)
        return square_sum_FLOAT((const float *)x.data + x.at, count, mean);
    if (x.type == CM_DOUBLE)
        return square_sum_DOUBLE((const double *)x.data + x.at, count, mean);
    double sum = 0;
    for (int64_t done = 0; done < count; done += CHUNK) {
        float chunk[CHUNK];
        const int64_t n = least(CHUNK, count - done);
        cm_narrow_load(x.type, x.data, x.at + done, n, chunk);
        sum += square_sum_FLOAT(chunk, n, mean);
    }
    return sum;
}

void cm_line_affine(struct cm_line x, struct cm_line y, int64_t count, double mean, double factor,
                    double shift)
{
    if (x.type == CM_FLOAT) {
        affine_FLOAT((const float *)x.data + x.at, (float *)y.data + y.at, count, mean, factor,
                     shift);
        return;
    }
    if (x.type == CM_DOUBLE) {
        affine_DOUBLE((const double *)x.data + x.at, (double *)y.data + y.at, count, mean, factor,
                      shift);
        return;
    }
    for (int64_t done = 0; done < count; done += CHUNK) {
        float chunk[CHUNK];
        const int64_t n = least(CHUNK, count - done);
        cm_narrow_load(x.type, x.data, x.at + done, n, chunk);
        affine_FLOAT(chunk, chunk, n, mean, factor, shift);
        cm_narrow_store(y.type, y.data, y.at + done, n, chunk);
    }
}

void cm_line_affine_each(struct cm_line x, struct cm_line y, int64_t count, double mean,
                         double factor, const double *scale, const double *shift)
{
    if (x.type == CM_FLOAT && y.type == CM_FLOAT) {
        affine_each_FLOAT((const float *)x.data + x.at, (float *)y.data + y.at, count, mean, factor,
                          scale, shift);
        return;
    }
    if (x.type == CM_DOUBLE && y.type == CM_DOUBLE) {
        affine_each_DOUBLE((const double *)x.data + x.at, (double *)y.data + y.at, count, mean,
                           factor, scale, shift);
        return;
    }
    for (int64_t done = 0; done < count; done += CHUNK) { /* the two types may differ */
        double chunk[CHUNK];
        const int64_t n = least(CHUNK, count - done);
        x.at += done ? CHUNK : 0;
        y.at += done ? CHUNK : 0;
        cm_line_load(x, 1, n, CM_DOUBLE, chunk);
        affine_each_DOUBLE(chunk, chunk, n, mean, factor, scale + done,
                           shift ? shift + done : NULL);
        cm_line_save(y, 1, n, CM_DOUBLE, chunk);
    }
}

void cm_line_store(struct cm_line y, double value)
{
    cm_line_save(y, 1, 1, CM_DOUBLE, &value);
}

static float load_one(struct cm_line x, int64_t at)
{
    float value;
    if (x.type == CM_FLOAT)
        return ((const float *)x.data)[x.at + at];
    cm_narrow_load(x.type, x.data, x.at + at, 1, &value);
    return value;
}

static void save_one(struct cm_line y, int64_t at, float value)
{
    if (y.type == CM_FLOAT)
        ((float *)y.data)[y.at + at] = value;
    else
        cm_narrow_store(y.type, y.data, y.at + at, 1, &value);
}

void cm_line_load(struct cm_line x, int64_t step, int64_t count, enum cm_dtype wide, void *to)
{
    if (x.type == wide && wide == CM_FLOAT)
        load_FLOAT((const float *)x.data + x.at, step, count, to);
    else if (x.type == wide)
        load_DOUBLE((const double *)x.data + x.at, step, count, to);
    else if (wide == CM_FLOAT && x.type == CM_DOUBLE)
        for (int64_t i = 0; i < count; i++)
            ((float *)to)[i] = (float)((const double *)x.data)[x.at + i * step];
    else if (wide == CM_FLOAT && step == 1)
        cm_narrow_load(x.type, x.data, x.at, count, to);
    else if (wide == CM_FLOAT)
        for (int64_t i = 0; i < count; i++)
            ((float *)to)[i] = load_one(x, i * step);
    else
        for (int64_t i = 0; i < count; i++)
            ((double *)to)[i] = (double)load_one(x, i * step);
}

void cm_line_save(struct cm_line y, int64_t step, int64_t count, enum cm_dtype wide,
                  const void *from)
{
    if (y.type == wide && wide == CM_FLOAT)
        save_FLOAT((float *)y.data + y.at, step, count, from);
    else if (y.type == wide)
        save_DOUBLE((double *)y.data + y.at, step, count, from);
    else if (wide == CM_FLOAT && y.type == CM_DOUBLE)
        for (int64_t i = 0; i < count; i++)
            ((double *)y.data)[y.at + i * step] = (double)((const float *)from)[i];
    else if (wide == CM_FLOAT && step == 1)
        cm_narrow_store(y.type, y.data, y.at, count, from);
    else if (wide == CM_FLOAT)
        for (int64_t i = 0; i < count; i++)
            save_one(y, i * step, ((const float *)from)[i]);
    else
        for (int64_t i = 0; i < count; i++)
            save_one(y, i * step, (float)((const double *)from)[i]);
}

void cm_line_round(enum cm_dtype type, int64_t count, float *values)
{
    uint32_t chunk[CHUNK]; /* no narrow element is larger */
    for (int64_t done = 0; done < count; done += CHUNK) {
        const int64_t n = least(CHUNK, count - done);
        cm_narrow_store(type, chunk, 0, n, values + done);
        cm_narrow_load(type, chunk, 0, n, values + done);
    }
}
