/* PNG through libpng. */
// SPDX-License-Identifier: Apache-2.0
#include "codec/module/codec_module.h"

#include <png.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct png {
    png_structp read;
    png_infop info;
    const uint8_t *bytes;
    size_t left;
};

static void fail_quietly(png_structp png, png_const_charp text)
{
    (void)text;
    png_longjmp(png, 1);
}

static void warn_quietly(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void give_bytes(png_structp png, png_bytep to, size_t count)
{
    struct png *p = png_get_io_ptr(png);
    if (count > p->left)
        png_error(png, "cut short");
    memcpy(to, p->bytes, count);
    p->bytes += count;
    p->left -= count;
}

static bool begin(struct png *p, const uint8_t *bytes, size_t size)
{
    *p = (struct png){.bytes = bytes, .left = size};
    p->read = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, fail_quietly, warn_quietly);
    p->info = p->read ? png_create_info_struct(p->read) : NULL;
    if (!p->info) {
        png_destroy_read_struct(&p->read, NULL, NULL);
        return false;
    }
    png_set_read_fn(p->read, p, give_bytes);
    png_set_user_limits(p->read, PNG_UINT_31_MAX, PNG_UINT_31_MAX); /* the caller has a limit */
    return true;
}

static enum cm_codec_result finish(struct png *p, enum cm_codec_result result)
{
    png_destroy_read_struct(&p->read, &p->info, NULL);
    return result;
}

static enum cm_codec_result png_measure(const uint8_t *bytes, size_t size,
                                        struct cm_image_size *out)
{
    struct png p;
    if (!begin(&p, bytes, size))
        return CM_CODEC_NO_MEMORY;
    if (setjmp(png_jmpbuf(p.read)))
        return finish(&p, CM_CODEC_BROKEN);
    png_read_info(p.read, p.info);
    out->width = png_get_image_width(p.read, p.info);
    out->height = png_get_image_height(p.read, p.info);
    out->work = (uint64_t)png_get_rowbytes(p.read, p.info) * 4;
    return finish(&p, CM_CODEC_DONE);
}

/* Eight bits of red, green and blue, whatever the file has. Of 16 bits the upper ones are taken. */
static void want_rgb(struct png *p)
{
    const png_byte colour = png_get_color_type(p->read, p->info);
    png_set_strip_16(p->read);
    png_set_packing(p->read);
    if (colour == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(p->read);
    if (!(colour & PNG_COLOR_MASK_COLOR)) {
        png_set_expand_gray_1_2_4_to_8(p->read);
        png_set_gray_to_rgb(p->read);
    }
    png_set_strip_alpha(p->read);
}

static enum cm_codec_result png_decode(const uint8_t *bytes, size_t size,
                                       const struct cm_image_size *image, uint8_t *rgb)
{
    struct png p;
    const size_t row = (size_t)image->width * 3;
    if (!begin(&p, bytes, size))
        return CM_CODEC_NO_MEMORY;
    if (setjmp(png_jmpbuf(p.read)))
        return finish(&p, CM_CODEC_BROKEN);
    png_read_info(p.read, p.info);
    if (png_get_image_width(p.read, p.info) != image->width ||
        png_get_image_height(p.read, p.info) != image->height)
        return finish(&p, CM_CODEC_BROKEN);
    want_rgb(&p);
    const int passes = png_set_interlace_handling(p.read);
    png_read_update_info(p.read, p.info);
    if (png_get_rowbytes(p.read, p.info) != row)
        return finish(&p, CM_CODEC_BROKEN);
    for (int pass = 0; pass < passes; pass++)
        for (int64_t y = 0; y < image->height; y++)
            png_read_row(p.read, rgb + (size_t)y * row, NULL);
    return finish(&p, CM_CODEC_DONE);
}

static void png_version(char *text, size_t size)
{
    snprintf(text, size, "%s", png_get_libpng_ver(NULL));
}

const struct cm_codec cm_codec_png = {.format = "PNG",
                                      .library = "libpng",
                                      .version = png_version,
                                      .measure = png_measure,
                                      .decode = png_decode};
