/* Flatbuffers, read and written without a schema compiler. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/flatbuffer.h"

/* ---- reading ---- */

static uint64_t get(struct cm_flatbuffer *buffer, size_t at, size_t width)
{
    uint64_t value = 0;

    if (at > buffer->size || width > buffer->size - at)
        buffer->broken = true;
    else
        memcpy(&value, buffer->bytes + at, width);
    return value;
}

/* What the offset at `at` leads to. */
static size_t follow(struct cm_flatbuffer *buffer, size_t at)
{
    const size_t offset = get(buffer, at, 4);

    if (offset == 0 || offset > buffer->size - at) {
        buffer->broken = true;
        return 0;
    }
    return at + offset;
}

static struct cm_fb_table table_at(struct cm_flatbuffer *buffer, size_t at)
{
    if (++buffer->asked > buffer->size)
        buffer->broken = true;
    return (struct cm_fb_table){buffer, buffer->broken ? 0 : at};
}

struct cm_fb_table cm_fb_root(struct cm_flatbuffer *buffer)
{
    return table_at(buffer, follow(buffer, 0));
}

/* Where a field lies; 0: it is absent. */
static size_t place_of(struct cm_fb_table table, int field)
{
    struct cm_flatbuffer *buffer = table.buffer;
    const size_t index = 4 + 2 * (size_t)field;

    if (!table.at || buffer->broken)
        return 0;
    const int64_t back = (int32_t)get(buffer, table.at, 4);
    const int64_t fields = (int64_t)table.at - back;
    if (fields < 0 || (uint64_t)fields > buffer->size) {
        buffer->broken = true;
        return 0;
    }
    if (get(buffer, (size_t)fields, 2) < index + 2)
        return 0;
    const size_t offset = get(buffer, (size_t)fields + index, 2);
    return offset && !buffer->broken ? table.at + offset : 0;
}

int64_t cm_fb_int(struct cm_fb_table table, int field, size_t width, int64_t otherwise)
{
    const size_t at = place_of(table, field);

    if (!at)
        return otherwise;
    const uint64_t value = get(table.buffer, at, width);
    return width == 4 ? (int32_t)value : (int64_t)value;
}

double cm_fb_float(struct cm_fb_table table, int field)
{
    const uint32_t bits = (uint32_t)cm_fb_int(table, field, 4, 0);
    float value;

    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

struct cm_fb_vector cm_fb_vector(struct cm_fb_table table, int field, size_t width)
{
    struct cm_flatbuffer *buffer = table.buffer;
    const size_t place = place_of(table, field);
    const size_t at = place ? follow(buffer, place) : 0;
    const size_t count = at ? get(buffer, at, 4) : 0;

    if (at && (buffer->broken || count > (buffer->size - at - 4) / width)) {
        buffer->broken = true;
        return (struct cm_fb_vector){buffer, 0, 0};
    }
    return (struct cm_fb_vector){buffer, at + 4, count};
}

struct cm_str cm_fb_text(struct cm_fb_table table, int field)
{
    const struct cm_fb_vector text = cm_fb_vector(table, field, 1);

    return (struct cm_str){text.count ? (const char *)table.buffer->bytes + text.at : NULL,
                           text.count};
}

struct cm_fb_table cm_fb_child(struct cm_fb_table table, int field)
{
    const size_t place = place_of(table, field);

    return place ? table_at(table.buffer, follow(table.buffer, place))
                 : (struct cm_fb_table){table.buffer, 0};
}

struct cm_fb_table cm_fb_entry(struct cm_fb_vector vector, size_t index)
{
    return table_at(vector.buffer, follow(vector.buffer, vector.at + 4 * index));
}

/* ---- writing ---- */

/* Zeros until the end is `beyond` past a multiple of `alignment`. */
static void fb_align(struct cm_bytes *out, size_t alignment, size_t beyond)
{
    cm_bytes_put(out, NULL, (alignment + beyond % alignment - out->count % alignment) % alignment);
}

size_t cm_fb_put_table(struct cm_bytes *out, const struct cm_fb_field *fields, size_t count,
                       size_t *places)
{
    uint16_t head[2 + CM_FB_FIELDS_MAX] = {(uint16_t)(4 + 2 * count)};
    uint16_t size = 4;

    /* Wide fields first, so that each is aligned when the table begins 4 before a multiple of 8. */
    for (size_t width = 8; width > 0; width /= 2)
        for (size_t i = 0; i < count; i++)
            if (fields[i].width == width) {
                head[2 + i] = size;
                size = (uint16_t)(size + width);
            }
    head[1] = size;
    fb_align(out, 8, 4 + 8 - head[0] % 8);
    const int32_t back = head[0];
    cm_bytes_put(out, head, head[0]);
    const size_t at = out->count;
    cm_bytes_put(out, &back, sizeof back);
    cm_bytes_put(out, NULL, size - 4U);
    for (size_t i = 0; i < count; i++) {
        places[i] = at + head[2 + i];
        if (fields[i].width)
            memcpy(out->items + places[i], &fields[i].value, fields[i].width);
    }
    return at;
}

size_t cm_fb_put_text(struct cm_bytes *out, struct cm_str text)
{
    const uint32_t size = (uint32_t)text.size;

    fb_align(out, 4, 0);
    const size_t at = out->count;
    cm_bytes_put(out, &size, sizeof size);
    cm_bytes_put(out, text.data, text.size);
    cm_bytes_put(out, NULL, 1);
    return at;
}

size_t cm_fb_put_longs(struct cm_bytes *out, const int64_t *values, size_t count)
{
    const uint32_t size = (uint32_t)count;

    fb_align(out, 8, 4);
    const size_t at = out->count;
    cm_bytes_put(out, &size, sizeof size);
    cm_bytes_put(out, values, count * sizeof *values);
    return at;
}

size_t cm_fb_put_offsets(struct cm_bytes *out, size_t count)
{
    const uint32_t size = (uint32_t)count;

    fb_align(out, 4, 0);
    const size_t at = out->count;
    cm_bytes_put(out, &size, sizeof size);
    cm_bytes_put(out, NULL, 4 * count);
    return at;
}

void cm_fb_point(struct cm_bytes *out, size_t place, size_t target)
{
    const uint32_t offset = (uint32_t)(target - place);

    memcpy(out->items + place, &offset, sizeof offset);
}
