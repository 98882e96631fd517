/* Flatbuffers without a schema compiler: tables whose fields are asked for by number, all positions
 * checked against the buffer; and the same written front to back. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BYTES_FLATBUFFER_H
#define CM_BYTES_FLATBUFFER_H

#include "bytes/byte_buffer.h"

/* ---- reading ---- */

struct cm_flatbuffer {
    const uint8_t *bytes;
    size_t size;
    size_t asked; /* tables so far: no more than there are bytes, since tables may be shared */
    bool broken;  /* a position led out of the buffer; what was asked for since means nothing */
};

struct cm_fb_table {
    struct cm_flatbuffer *buffer;
    size_t at; /* 0: there is none, and all its fields are absent */
};

struct cm_fb_vector {
    struct cm_flatbuffer *buffer;
    size_t at, count;
};

struct cm_fb_table cm_fb_root(struct cm_flatbuffer *buffer);
/* A number of `width` bytes (1, 4 or 8), with its sign; `otherwise` where the field is absent. */
int64_t cm_fb_int(struct cm_fb_table table, int field, size_t width, int64_t otherwise);
double cm_fb_float(struct cm_fb_table table, int field);
struct cm_str cm_fb_text(struct cm_fb_table table, int field); /* empty where it is absent */
struct cm_fb_table cm_fb_child(struct cm_fb_table table, int field);
/* A vector whose entries have `width` bytes; empty where it is absent. */
struct cm_fb_vector cm_fb_vector(struct cm_fb_table table, int field, size_t width);
struct cm_fb_table cm_fb_entry(struct cm_fb_vector vector, size_t index); /* of tables */

/* ---- writing ---- */

struct cm_fb_field {
    size_t width; /* 0: absent */
    uint64_t value;
};
#define CM_FB_ABSENT  ((struct cm_fb_field){0, 0})
#define CM_FB_OFFSET  ((struct cm_fb_field){4, 0}) /* set later by cm_fb_point */
#define CM_FB_INT(n)  ((struct cm_fb_field){4, (uint32_t)(n)})
#define CM_FB_LONG(n) ((struct cm_fb_field){8, (uint64_t)(n)})
#define CM_FB_BOOL(n) ((struct cm_fb_field){1, (n) ? 1 : 0})
enum { CM_FB_FIELDS_MAX = 8 };

/* A table; places[i] is where field i lies. Returns its position. */
size_t cm_fb_put_table(struct cm_bytes *out, const struct cm_fb_field *fields, size_t count,
                       size_t *places);
size_t cm_fb_put_text(struct cm_bytes *out, struct cm_str text);
size_t cm_fb_put_longs(struct cm_bytes *out, const int64_t *values, size_t count);
/* A vector of offsets; entry i lies at the position that is returned + 4 + 4 * i. */
size_t cm_fb_put_offsets(struct cm_bytes *out, size_t count);
/* The field at `place` refers to `target`, which comes later. */
void cm_fb_point(struct cm_bytes *out, size_t place, size_t target);

#endif
