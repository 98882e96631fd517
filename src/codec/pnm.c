/* PBM, PGM and PPM, as text (P1 to P3) and as bytes (P4 to P6). */
// SPDX-License-Identifier: Apache-2.0
#include "codec/image.h"

#include <string.h>

struct pnm {
    const uint8_t *bytes;
    size_t size, at;
    int kind; /* the digit behind P */
    int64_t width, height, most;
};

static int is_space(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Space and comments, which go to the end of a line. */
static void skip_space(struct pnm *p)
{
    while (p->at < p->size) {
        if (p->bytes[p->at] == '#')
            while (p->at < p->size && p->bytes[p->at] != '\n' && p->bytes[p->at] != '\r')
                p->at++;
        else if (is_space(p->bytes[p->at]))
            p->at++;
        else
            return;
    }
}

static bool read_number(struct pnm *p, int64_t most, int64_t *out)
{
    skip_space(p);
    const size_t start = p->at;
    *out = 0;
    for (; p->at < p->size && p->bytes[p->at] >= '0' && p->bytes[p->at] <= '9'; p->at++) {
        *out = *out * 10 + (p->bytes[p->at] - '0');
        if (*out > most)
            return false;
    }
    return p->at > start;
}

static bool has_most(int kind)
{
    return kind != 1 && kind != 4;
}

static int lanes_of(int kind)
{
    return kind == 3 || kind == 6 ? 3 : 1;
}

static bool read_header(const uint8_t *bytes, size_t size, struct pnm *p)
{
    if (size < 3 || bytes[1] < '1' || bytes[1] > '6')
        return false;
    *p = (struct pnm){.bytes = bytes, .size = size, .at = 2, .kind = bytes[1] - '0', .most = 1};
    if (!read_number(p, CM_IMAGE_SIDE_MAX, &p->width) ||
        !read_number(p, CM_IMAGE_SIDE_MAX, &p->height) ||
        (has_most(p->kind) && !read_number(p, 65535, &p->most)) || p->most < 1)
        return false;
    if (p->kind < 4)
        return true;
    return p->at < size && is_space(bytes[p->at++]); /* one, then bytes */
}

/* Could the bytes behind the header hold that many pixels? */
static bool has_room(const struct pnm *p)
{
    const size_t numbers = (size_t)p->width * (size_t)lanes_of(p->kind); /* of a row */
    const bool wide =
        p->kind < 4 ? p->kind != 1 : p->most > 255; /* a digit and a space, or 16 bits */
    const size_t row = p->kind == 4 ? (numbers + 7) / 8 : wide ? numbers * 2 : numbers;
    return row > 0 && (p->size - p->at + 1) / row >= (size_t)p->height;
}

static enum cm_codec_result pnm_measure(const uint8_t *bytes, size_t size,
                                        struct cm_image_size *out)
{
    struct pnm p;
    if (!read_header(bytes, size, &p) || !has_room(&p))
        return CM_CODEC_BROKEN;
    *out = (struct cm_image_size){.width = p.width, .height = p.height};
    return CM_CODEC_DONE;
}

/* 0 to most becomes 0 to 255; halves go to the even number, as in ONNX's reference. */
static uint8_t scaled(int64_t value, int64_t most)
{
    const int64_t product = value * 255, low = product / most, rest = product % most * 2;
    return (uint8_t)(low + (rest > most || (rest == most && low % 2 == 1)));
}

/* One number of the text forms. Bits of P1 need no space between them. */
static bool next_number(struct pnm *p, int64_t *out)
{
    if (p->kind != 1)
        return read_number(p, p->most, out);
    skip_space(p);
    if (p->at == p->size || (p->bytes[p->at] != '0' && p->bytes[p->at] != '1'))
        return false;
    *out = p->bytes[p->at++] == '0'; /* 1 is black */
    return true;
}

static bool read_text(struct pnm *p, int64_t count, uint8_t *out)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t value;
        if (!next_number(p, &value))
            return false;
        out[i] = scaled(value, p->most);
    }
    return true;
}

static bool read_bits(struct pnm *p, uint8_t *out)
{
    const size_t row = ((size_t)p->width + 7) / 8;
    if ((p->size - p->at) / row < (size_t)p->height)
        return false;
    for (int64_t y = 0; y < p->height; y++)
        for (int64_t x = 0; x < p->width; x++)
            *out++ = p->bytes[p->at + (size_t)y * row + (size_t)x / 8] >> (7 - x % 8) & 1 ? 0 : 255;
    return true;
}

static bool read_bytes(struct pnm *p, int64_t count, uint8_t *out)
{
    const size_t width = p->most > 255 ? 2 : 1;
    const uint8_t *from = p->bytes + p->at;
    if ((p->size - p->at) / width < (size_t)count)
        return false;
    for (int64_t i = 0; i < count; i++, from += width) {
        const int64_t value = width == 2 ? from[0] << 8 | from[1] : from[0];
        out[i] = scaled(value < p->most ? value : p->most, p->most);
    }
    return true;
}

static enum cm_codec_result pnm_decode(const uint8_t *bytes, size_t size,
                                       const struct cm_image_size *image, uint8_t *rgb)
{
    struct pnm p;
    if (!read_header(bytes, size, &p) || p.width != image->width || p.height != image->height)
        return CM_CODEC_BROKEN;
    const int64_t pixels = p.width * p.height, lanes = lanes_of(p.kind);
    uint8_t *gray = rgb + pixels * (3 - lanes); /* at the end, to be spread from there */
    const bool good = p.kind < 4    ? read_text(&p, pixels * lanes, gray)
                      : p.kind == 4 ? read_bits(&p, gray)
                                    : read_bytes(&p, pixels * lanes, gray);
    for (int64_t i = 0; good && lanes == 1 && i < pixels; i++)
        memset(rgb + 3 * i, gray[i], 3);
    return good ? CM_CODEC_DONE : CM_CODEC_BROKEN;
}

const struct cm_codec cm_codec_pnm = {
    .format = "PNM", .measure = pnm_measure, .decode = pnm_decode};
