/* BMP: headers from OS/2's on, palettes, 16, 24 and 32 bits by masks, and both run-length codes. */
// SPDX-License-Identifier: Apache-2.0
#include "codec/image.h"

#include <string.h>

enum { FILE_HEADER = 14, CORE_HEADER = 12, INFO_HEADER = 40, MASKED_HEADER = 52, ENTRIES = 256 };
enum { BMP_PLAIN = 0, BMP_RLE8 = 1, BMP_RLE4 = 2, BMP_MASKS = 3, BMP_ALPHA_MASKS = 6 };

struct bmp {
    const uint8_t *bytes;
    size_t size;
    int64_t width, height;
    bool top_down;
    unsigned bits;
    uint32_t coding;
    size_t data;       /* where pixels start */
    size_t row;        /* bytes of one, without run-length code */
    uint32_t masks[3]; /* red, green, blue */
    uint8_t palette[ENTRIES][3];
};

static uint32_t u16_at(const struct bmp *b, size_t at)
{
    return (uint32_t)b->bytes[at] | (uint32_t)b->bytes[at + 1] << 8;
}

static uint32_t u32_at(const struct bmp *b, size_t at)
{
    return u16_at(b, at) | u16_at(b, at + 2) << 16;
}

/* Entries that the file does not have stay black. */
static void read_palette(struct bmp *b, size_t at, size_t count, size_t width)
{
    for (size_t i = 0; i < count && i < ENTRIES && b->size - at >= 3; i++) {
        for (size_t k = 0; k < 3; k++)
            b->palette[i][k] = b->bytes[at + 2 - k]; /* blue comes first */
        at += width < b->size - at ? width : b->size - at;
    }
}

static bool read_masks(struct bmp *b, size_t at)
{
    if (b->size < at || b->size - at < sizeof b->masks)
        return false;
    for (size_t i = 0; i < 3; i++)
        b->masks[i] = u32_at(b, at + 4 * i);
    return true;
}

static bool read_layout(struct bmp *b, size_t header)
{
    static const uint32_t by_default[2][3] = {{0x7C00, 0x3E0, 0x1F}, {0xFF0000, 0xFF00, 0xFF}};
    const size_t behind = FILE_HEADER + header;
    const bool masked = b->coding == BMP_MASKS || b->coding == BMP_ALPHA_MASKS;
    memcpy(b->masks, by_default[b->bits != 16], sizeof b->masks);
    switch (b->bits) {
    case 1:
    case 4:
    case 8:
        return b->coding == BMP_PLAIN || (b->coding == BMP_RLE8 && b->bits == 8) ||
               (b->coding == BMP_RLE4 && b->bits == 4);
    case 16:
    case 24:
    case 32:
        /* Behind the oldest header, inside all others: the same place. */
        if (masked && !read_masks(b, FILE_HEADER + INFO_HEADER))
            return false;
        if (!(b->masks[0] | b->masks[1] | b->masks[2]))
            memcpy(b->masks, by_default[b->bits != 16], sizeof b->masks);
        return (b->coding == BMP_PLAIN || masked) && behind <= b->size;
    default:
        return false;
    }
}

static bool read_header(const uint8_t *bytes, size_t size, struct bmp *b)
{
    *b = (struct bmp){.bytes = bytes, .size = size};
    if (size < FILE_HEADER + CORE_HEADER)
        return false;
    const size_t header = u32_at(b, FILE_HEADER), info = FILE_HEADER;
    size_t colours = 0;
    b->data = u32_at(b, 10);
    if (header == CORE_HEADER) {
        b->width = u16_at(b, info + 4);
        b->height = u16_at(b, info + 6);
        b->bits = u16_at(b, info + 10);
    } else {
        if (header < INFO_HEADER || header > size - info)
            return false;
        const int64_t height = (int32_t)u32_at(b, info + 8);
        b->width = (int32_t)u32_at(b, info + 4);
        b->height = height < 0 ? -height : height;
        b->top_down = height < 0;
        b->bits = u16_at(b, info + 14);
        b->coding = u32_at(b, info + 16);
        colours = u32_at(b, info + 32);
    }
    if (b->width < 1 || b->height < 1 || b->height > CM_IMAGE_SIDE_MAX || !read_layout(b, header))
        return false;
    b->row = ((size_t)b->width * b->bits + 31) / 32 * 4;
    if (b->bits <= 8)
        read_palette(b, info + header, colours ? colours : (size_t)1 << b->bits,
                     header == CORE_HEADER ? 3 : 4);
    return b->data <= size;
}

static bool is_coded(const struct bmp *b)
{
    return b->coding == BMP_RLE8 || b->coding == BMP_RLE4;
}

static bool has_rows(const struct bmp *b)
{
    return (b->size - b->data) / b->row >= (size_t)b->height;
}

static enum cm_codec_result bmp_measure(const uint8_t *bytes, size_t size,
                                        struct cm_image_size *out)
{
    struct bmp b;
    if (!read_header(bytes, size, &b) || (!is_coded(&b) && !has_rows(&b)))
        return CM_CODEC_BROKEN;
    *out = (struct cm_image_size){.width = b.width, .height = b.height};
    return CM_CODEC_DONE;
}

/* Where row y of the file, counted from its first, belongs. */
static uint8_t *place_of_row(const struct bmp *b, uint8_t *rgb, int64_t y)
{
    return rgb + (b->top_down ? y : b->height - 1 - y) * b->width * 3;
}

/* ---- without a code ---- */

struct lane {
    unsigned shift;
    uint32_t most; /* what all bits of the mask make */
};

static struct lane lane_of(uint32_t mask)
{
    struct lane lane = {0, mask};
    while (lane.most && !(lane.most & 1)) {
        lane.most >>= 1;
        lane.shift++;
    }
    return lane;
}

static void decode_row(const struct bmp *b, const struct lane *lanes, const uint8_t *from,
                       uint8_t *to)
{
    const unsigned bits = b->bits;
    for (int64_t x = 0; x < b->width; x++, to += 3) {
        if (bits <= 8) {
            const unsigned at = (unsigned)(x * bits % 8), byte = from[x * bits / 8];
            memcpy(to, b->palette[byte >> (8 - bits - at) & ((1U << bits) - 1)], 3);
            continue;
        }
        const uint8_t *pixel = from + x * (bits / 8);
        uint32_t value = 0;
        for (unsigned k = 0; k < bits / 8; k++)
            value |= (uint32_t)pixel[k] << 8 * k;
        for (int k = 0; k < 3; k++) {
            const struct lane *lane = &lanes[k];
            const uint64_t part = value >> lane->shift & lane->most;
            to[k] = lane->most ? (uint8_t)(part * 255 / lane->most) : 0;
        }
    }
}

static bool decode_plain(const struct bmp *b, uint8_t *rgb)
{
    struct lane lanes[3];
    if (!has_rows(b))
        return false;
    for (int k = 0; k < 3; k++)
        lanes[k] = lane_of(b->masks[k]);
    for (int64_t y = 0; y < b->height; y++)
        decode_row(b, lanes, b->bytes + b->data + (size_t)y * b->row, place_of_row(b, rgb, y));
    return true;
}

/* ---- run-length codes ---- */

struct runs {
    const struct bmp *b;
    uint8_t *rgb;
    size_t at;
    int64_t x, y; /* of the next pixel */
};

/* Pixels behind the end of a row are left out. */
static void put_pixel(struct runs *r, unsigned colour)
{
    if (r->x < r->b->width && r->y < r->b->height)
        memcpy(place_of_row(r->b, r->rgb, r->y) + 3 * r->x, r->b->palette[colour], 3);
    r->x += r->x < r->b->width;
}

/* Pixel i of bytes with one or two each. */
static unsigned pixel_of(const struct runs *r, const uint8_t *bytes, size_t i)
{
    if (r->b->bits == 8)
        return bytes[i];
    return i % 2 ? bytes[i / 2] & 15 : bytes[i / 2] >> 4;
}

static bool put_literal(struct runs *r, size_t count)
{
    const size_t length = r->b->bits == 8 ? count : (count + 1) / 2;
    if (r->b->size - r->at < length)
        return false;
    for (size_t i = 0; i < count; i++)
        put_pixel(r, pixel_of(r, r->b->bytes + r->at, i));
    r->at += length;
    r->at += length % 2 && r->at < r->b->size; /* to an even place */
    return true;
}

static void put_run(struct runs *r, size_t count, uint8_t byte)
{
    for (size_t i = 0; i < count; i++)
        put_pixel(r, r->b->bits == 8 ? byte : i % 2 ? byte & 15 : byte >> 4);
}

static bool skip_ahead(struct runs *r)
{
    if (r->b->size - r->at < 2)
        return false;
    r->x += r->b->bytes[r->at];
    r->y += r->b->bytes[r->at + 1];
    r->x = r->x < r->b->width ? r->x : r->b->width;
    r->at += 2;
    return true;
}

/* What no run reaches has the first colour. */
static bool decode_runs(const struct bmp *b, uint8_t *rgb)
{
    struct runs r = {.b = b, .rgb = rgb, .at = b->data};
    for (int64_t i = 0; i < b->width * b->height; i++)
        memcpy(rgb + 3 * i, b->palette[0], 3);
    while (r.y < b->height && b->size - r.at >= 2) {
        const uint8_t count = b->bytes[r.at], byte = b->bytes[r.at + 1];
        r.at += 2;
        if (count) {
            put_run(&r, count, byte);
        } else if (byte == 0) {
            r.x = 0;
            r.y++;
        } else if (byte == 1) {
            return true;
        } else if (byte == 2 ? !skip_ahead(&r) : !put_literal(&r, byte)) {
            return false;
        }
    }
    return r.y >= b->height || (r.y == b->height - 1 && r.x == b->width);
}

static enum cm_codec_result bmp_decode(const uint8_t *bytes, size_t size,
                                       const struct cm_image_size *image, uint8_t *rgb)
{
    struct bmp b;
    if (!read_header(bytes, size, &b) || b.width != image->width || b.height != image->height)
        return CM_CODEC_BROKEN;
    return (is_coded(&b) ? decode_runs(&b, rgb) : decode_plain(&b, rgb)) ? CM_CODEC_DONE
                                                                         : CM_CODEC_BROKEN;
}

const struct cm_codec cm_codec_bmp = {
    .format = "BMP", .measure = bmp_measure, .decode = bmp_decode};
