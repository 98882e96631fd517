/* TIFF through libtiff: the first image of a file. */
// SPDX-License-Identifier: Apache-2.0
#include "codec/module/codec_module.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>

/* From 4.5.0 on a file can have handlers of its own; before, the process has one for all. */
#define HAS_OPEN_OPTIONS (TIFFLIB_VERSION >= 20221213)

/* Beside the raster, a strip or tile as it was read and as it is decoded. */
enum { RASTER_BYTES = 4, STRIP_BYTES_MAX = 1 << 28 };

struct source {
    const uint8_t *bytes;
    size_t size, at;
};

static tmsize_t read_some(thandle_t handle, void *to, tmsize_t count)
{
    struct source *s = handle;
    const size_t left = s->at < s->size ? s->size - s->at : 0;
    const size_t most = count > 0 && (size_t)count < left ? (size_t)count : count > 0 ? left : 0;
    if (most)
        memcpy(to, s->bytes + s->at, most);
    s->at += most;
    return (tmsize_t)most;
}

static tmsize_t write_nothing(thandle_t handle, void *from, tmsize_t count)
{
    (void)handle;
    (void)from;
    (void)count;
    return -1;
}

static toff_t seek_to(thandle_t handle, toff_t offset, int from)
{
    struct source *s = handle;
    const uint64_t base = from == SEEK_CUR ? s->at : from == SEEK_END ? s->size : 0;
    const uint64_t to = base + offset;
    if (to > s->size)
        return (toff_t)-1;
    s->at = (size_t)to;
    return to;
}

static int close_nothing(thandle_t handle)
{
    (void)handle;
    return 0;
}

static toff_t size_of(thandle_t handle)
{
    return ((const struct source *)handle)->size;
}

#if HAS_OPEN_OPTIONS
static int hear_nothing(TIFF *tiff, void *user, const char *module, const char *format,
                        va_list args)
{
    (void)tiff;
    (void)user;
    (void)module;
    (void)format;
    (void)args;
    return 1; /* nobody else need hear it */
}

static TIFF *open_source(struct source *source)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options)
        return NULL;
    TIFFOpenOptionsSetErrorHandlerExtR(options, hear_nothing, NULL);
    TIFFOpenOptionsSetWarningHandlerExtR(options, hear_nothing, NULL);
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, STRIP_BYTES_MAX);
    TIFF *tiff = TIFFClientOpenExt("image", "rm", source, read_some, write_nothing, seek_to,
                                   close_nothing, size_of, NULL, NULL, options);
    TIFFOpenOptionsFree(options);
    return tiff;
}
#else
static TIFF *open_source(struct source *source)
{
    TIFFSetErrorHandler(NULL);
    TIFFSetWarningHandler(NULL);
    return TIFFClientOpen("image", "rm", source, read_some, write_nothing, seek_to, close_nothing,
                          size_of, NULL, NULL);
}
#endif

static bool read_size(TIFF *tiff, struct cm_image_size *out)
{
    uint32_t width = 0, height = 0;
    char why[1024];
    const uint64_t strip = TIFFIsTiled(tiff) ? TIFFTileSize64(tiff) : TIFFStripSize64(tiff);
    if (!TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width) ||
        !TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height) || !width || !height ||
        strip > STRIP_BYTES_MAX || !TIFFRGBAImageOK(tiff, why))
        return false;
    *out = (struct cm_image_size){.width = width, .height = height, .work = 2 * strip};
    if (width <= CM_IMAGE_SIDE_MAX / height) /* else it is too large in any case */
        out->work += (uint64_t)width * height * RASTER_BYTES;
    return true;
}

static enum cm_codec_result tiff_measure(const uint8_t *bytes, size_t size,
                                         struct cm_image_size *out)
{
    struct source source = {bytes, size, 0};
    TIFF *tiff = open_source(&source);
    const bool good = tiff && read_size(tiff, out);
    if (tiff)
        TIFFClose(tiff);
    return good ? CM_CODEC_DONE : CM_CODEC_BROKEN;
}

/* The usual case, bytes of red, green and blue in rows; with alpha, libtiff would blend it in. */
static bool is_plain(TIFF *tiff, uint16_t *lanes)
{
    uint16_t bits = 0, photometric = 0, planar = 0, orientation = 0;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &bits);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, lanes);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_PLANARCONFIG, &planar);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_ORIENTATION, &orientation);
    return TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &photometric) &&
           photometric == PHOTOMETRIC_RGB && bits == 8 && *lanes >= 3 && *lanes <= 4 &&
           planar == PLANARCONFIG_CONTIG && orientation == ORIENTATION_TOPLEFT &&
           !TIFFIsTiled(tiff);
}

static enum cm_codec_result decode_plain(TIFF *tiff, const struct cm_image_size *image,
                                         unsigned lanes, uint8_t *rgb)
{
    const size_t needs = (size_t)image->width * lanes;
    if (TIFFScanlineSize64(tiff) != needs)
        return CM_CODEC_BROKEN;
    uint8_t *line = malloc(needs);
    if (!line)
        return CM_CODEC_NO_MEMORY;
    bool good = true;
    for (int64_t y = 0; good && y < image->height; y++) {
        good = TIFFReadScanline(tiff, line, (uint32_t)y, 0) == 1;
        for (int64_t x = 0; good && x < image->width; x++, rgb += 3)
            memcpy(rgb, line + (size_t)x * lanes, 3);
    }
    free(line);
    return good ? CM_CODEC_DONE : CM_CODEC_BROKEN;
}

static enum cm_codec_result decode_any(TIFF *tiff, const struct cm_image_size *image, uint8_t *rgb)
{
    const size_t pixels = (size_t)image->width * (size_t)image->height;
    uint32_t *raster = malloc(pixels * RASTER_BYTES);
    if (!raster)
        return CM_CODEC_NO_MEMORY;
    const bool good =
        TIFFReadRGBAImageOriented(tiff, (uint32_t)image->width, (uint32_t)image->height, raster,
                                  ORIENTATION_TOPLEFT, 1) == 1;
    for (size_t i = 0; good && i < pixels; i++, rgb += 3) {
        rgb[0] = (uint8_t)TIFFGetR(raster[i]);
        rgb[1] = (uint8_t)TIFFGetG(raster[i]);
        rgb[2] = (uint8_t)TIFFGetB(raster[i]);
    }
    free(raster);
    return good ? CM_CODEC_DONE : CM_CODEC_BROKEN;
}

static enum cm_codec_result tiff_decode(const uint8_t *bytes, size_t size,
                                        const struct cm_image_size *image, uint8_t *rgb)
{
    struct source source = {bytes, size, 0};
    struct cm_image_size again;
    enum cm_codec_result result = CM_CODEC_BROKEN;
    uint16_t lanes = 0;
    TIFF *tiff = open_source(&source);
    if (tiff && read_size(tiff, &again) && again.width == image->width &&
        again.height == image->height)
        result = is_plain(tiff, &lanes) ? decode_plain(tiff, image, lanes, rgb)
                                        : decode_any(tiff, image, rgb);
    if (tiff)
        TIFFClose(tiff);
    return result;
}

/* "LIBTIFF, Version 4.5.0" and a notice behind it. */
static void tiff_version(char *text, size_t size)
{
    const char *at = strstr(TIFFGetVersion(), "Version ");
    const char *number = at ? at + strlen("Version ") : "?";
    snprintf(text, size, "%.*s", (int)strcspn(number, "\n "), number);
}

const struct cm_codec cm_codec_tiff = {.format = "TIFF",
                                       .library = "libtiff",
                                       .version = tiff_version,
                                       .measure = tiff_measure,
                                       .decode = tiff_decode};
