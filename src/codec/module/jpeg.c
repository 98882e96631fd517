/* JPEG through libjpeg-turbo, or another library with libjpeg's interface. Colours are upsampled as
 * that does by default, which is what ONNX asks for. */
// SPDX-License-Identifier: Apache-2.0
#include "codec/module/codec_module.h"

#include <stdio.h>

#include <jerror.h>
#include <jpeglib.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A progressive image can ask for any number of scans, each of which costs a walk over all of it.
 */
enum { SCANS_MAX = 500, JPEG_WORK_BYTES = 8 };

struct jpeg {
    struct jpeg_decompress_struct info; /* first: libjpeg hands back pointers to it */
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf failed;
    bool cut_short, no_memory;
    uint8_t *row; /* of CMYK images */
};

static struct jpeg *jpeg_of(j_common_ptr info)
{
    return (struct jpeg *)info;
}

static void leave(j_common_ptr info)
{
    struct jpeg *j = jpeg_of(info);
    j->no_memory = info->err->msg_code == JERR_OUT_OF_MEMORY;
    longjmp(j->failed, 1);
}

/* Warnings come with a negative level. Broken data is decoded as far as it goes, but an image that
 * is cut short is none. */
static void hear(j_common_ptr info, int level)
{
    if (level < 0 && info->err->msg_code == JWRN_JPEG_EOF)
        jpeg_of(info)->cut_short = true;
}

static void say_nothing(j_common_ptr info)
{
    (void)info;
}

static void count_scans(j_common_ptr info)
{
    if (info->is_decompressor && ((j_decompress_ptr)info)->input_scan_number > SCANS_MAX)
        longjmp(jpeg_of(info)->failed, 1);
}

/* jpeg_create_decompress can fail too: call it behind setjmp. */
static void prepare(struct jpeg *j)
{
    memset(j, 0, sizeof *j);
    j->info.err = jpeg_std_error(&j->errors);
    j->errors.error_exit = leave;
    j->errors.emit_message = hear;
    j->errors.output_message = say_nothing;
}

static void begin(struct jpeg *j, const uint8_t *bytes, size_t size)
{
    jpeg_create_decompress(&j->info);
    j->progress.progress_monitor = count_scans;
    j->info.progress = &j->progress;
    jpeg_mem_src(&j->info, bytes, (unsigned long)size);
    jpeg_read_header(&j->info, TRUE);
}

static enum cm_codec_result finish(struct jpeg *j, bool good)
{
    jpeg_destroy_decompress(&j->info);
    free(j->row);
    return j->no_memory ? CM_CODEC_NO_MEMORY : good ? CM_CODEC_DONE : CM_CODEC_BROKEN;
}

static enum cm_codec_result jpeg_measure(const uint8_t *bytes, size_t size,
                                         struct cm_image_size *out)
{
    struct jpeg j;
    prepare(&j);
    if (setjmp(j.failed))
        return finish(&j, false);
    begin(&j, bytes, size);
    out->width = j.info.image_width;
    out->height = j.info.image_height;
    out->work = (uint64_t)j.info.image_width * j.info.image_height * JPEG_WORK_BYTES;
    return finish(&j, true);
}

/* a * b / 255, rounded. */
static int times(int a, int b)
{
    const int product = a * b + 128;
    return (product + (product >> 8)) >> 8;
}

/* Programs of Adobe store the complement. */
static void from_cmyk(const uint8_t *from, JDIMENSION count, bool inverted, uint8_t *to)
{
    for (JDIMENSION x = 0; x < count; x++, from += 4) {
        const int key = inverted ? from[3] : 255 - from[3];
        for (int k = 0; k < 3; k++) {
            const int ink = inverted ? 255 - from[k] : from[k];
            *to++ = (uint8_t)(key - times(ink, key));
        }
    }
}

static enum cm_codec_result jpeg_decode(const uint8_t *bytes, size_t size,
                                        const struct cm_image_size *image, uint8_t *rgb)
{
    struct jpeg j;
    prepare(&j);
    if (setjmp(j.failed))
        return finish(&j, false);
    begin(&j, bytes, size);
    if (j.info.image_width != image->width || j.info.image_height != image->height)
        return finish(&j, false);
    const bool inks = j.info.jpeg_color_space == JCS_CMYK || j.info.jpeg_color_space == JCS_YCCK;
    j.info.out_color_space = inks ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(&j.info);
    const size_t row = (size_t)j.info.output_width * 3;
    if (inks && !(j.row = malloc((size_t)j.info.output_width * 4))) {
        j.no_memory = true;
        return finish(&j, false);
    }
    while (j.info.output_scanline < j.info.output_height) {
        uint8_t *to = rgb + j.info.output_scanline * row;
        JSAMPROW line = inks ? j.row : to;
        jpeg_read_scanlines(&j.info, &line, 1);
        if (inks)
            from_cmyk(j.row, j.info.output_width, j.info.saw_Adobe_marker, to);
    }
    jpeg_finish_decompress(&j.info);
    return finish(&j, !j.cut_short);
}

static void jpeg_version(char *text, size_t size)
{
#ifdef LIBJPEG_TURBO_VERSION
#define TEXT(x)     #x
#define EXPANDED(x) TEXT(x)
    snprintf(text, size, "%s", EXPANDED(LIBJPEG_TURBO_VERSION));
#else
    snprintf(text, size, "%d (libjpeg)", JPEG_LIB_VERSION);
#endif
}

const struct cm_codec cm_codec_jpeg = {.format = "JPEG",
                                       .library = "libjpeg-turbo",
                                       .version = jpeg_version,
                                       .measure = jpeg_measure,
                                       .decode = jpeg_decode};
