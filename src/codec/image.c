/* Finding the decoder of an image, and the module that most of them are in. */
// SPDX-License-Identifier: Apache-2.0
#include "codec/image.h"

#include "base/library.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#ifndef CM_CODEC_FILE
#define CM_CODEC_FILE "libcameo_codecs.so"
#endif

/* ---- formats, by their first bytes ---- */

static int starts(const uint8_t *bytes, size_t size, const char *with, size_t count)
{
    return size >= count && memcmp(bytes, with, count) == 0;
}

static int is_jpeg(const uint8_t *bytes, size_t size)
{
    return starts(bytes, size, "\xFF\xD8\xFF", 3);
}

static int is_png(const uint8_t *bytes, size_t size)
{
    return starts(bytes, size, "\x89PNG\r\n\x1A\n", 8);
}

static int is_webp(const uint8_t *bytes, size_t size)
{
    return starts(bytes, size, "RIFF", 4) && size >= 12 && memcmp(bytes + 8, "WEBP", 4) == 0;
}

static int is_jpeg2000(const uint8_t *bytes, size_t size)
{
    return starts(bytes, size, "\0\0\0\x0CjP  \r\n\x87\n", 12) ||
           starts(bytes, size, "\xFF\x4F\xFF\x51", 4);
}

static int is_tiff(const uint8_t *bytes, size_t size)
{
    return starts(bytes, size, "II*\0", 4) || starts(bytes, size, "MM\0*", 4) ||
           starts(bytes, size, "II+\0", 4) || starts(bytes, size, "MM\0+", 4);
}

static int is_bmp(const uint8_t *bytes, size_t size)
{
    return starts(bytes, size, "BM", 2);
}

static int is_pnm(const uint8_t *bytes, size_t size)
{
    return size >= 3 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6' &&
           (bytes[2] == ' ' || bytes[2] == '#' || (bytes[2] >= '\t' && bytes[2] <= '\r'));
}

/* Those of the module come first. */
static const struct {
    const char *format, *library;
    int (*claims)(const uint8_t *bytes, size_t size);
    const struct cm_codec *own; /* NULL: the module's */
} formats[] = {
    {"JPEG", "libjpeg-turbo", is_jpeg, NULL}, {"PNG", "libpng", is_png, NULL},
    {"WebP", "libwebp", is_webp, NULL},       {"JPEG 2000", "OpenJPEG", is_jpeg2000, NULL},
    {"TIFF", "libtiff", is_tiff, NULL},       {"BMP", NULL, is_bmp, &cm_codec_bmp},
    {"PNM", NULL, is_pnm, &cm_codec_pnm},
};
enum { FORMATS = sizeof formats / sizeof formats[0], MODULE_FORMATS = 5 };

/* ---- the module ---- */

static struct {
    struct cm_library library;
    const struct cm_codec_module *content; /* NULL: there is none */
    char absent[MODULE_FORMATS][640];      /* why a format is missing from it */
} module;

static const struct cm_codec *find_codec(const char *format)
{
    for (uint32_t i = 0; module.content && i < module.content->count; i++)
        if (strcmp(module.content->codecs[i]->format, format) == 0)
            return module.content->codecs[i];
    return NULL;
}

static const struct cm_codec_module *open_content(void)
{
    static const char *const names[] = {CM_CODEC_FILE, NULL};
    cm_codec_entry_fn *entry = NULL;
    const struct cm_symbol symbols[] = {{CM_CODEC_ENTRY, &entry}};
    struct cm_library *library = &module.library;

    if (!cm_library_open("CAMEO_CODECS", names, library) || !cm_library_find(library, symbols, 1))
        return NULL;
    const struct cm_codec_module *content = entry();
    if (content->abi == CM_CODEC_ABI)
        return content;
    snprintf(library->why, sizeof library->why, "%.400s is of another version of Cameo",
             library->path);
    return NULL;
}

static void open_module(void)
{
    module.content = open_content();
    for (size_t i = 0; i < MODULE_FORMATS; i++) {
        if (!module.content)
            snprintf(module.absent[i], sizeof module.absent[i], "%s", module.library.why);
        else if (!find_codec(formats[i].format))
            snprintf(module.absent[i], sizeof module.absent[i], "%.500s was built without it",
                     module.library.path);
    }
}

static void need_module(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_module);
}

bool cm_codec_found(size_t index, struct cm_codec_found *out)
{
    need_module();
    if (index >= MODULE_FORMATS)
        return false;
    const struct cm_codec *codec = find_codec(formats[index].format);
    *out = (struct cm_codec_found){.library = formats[index].library,
                                   .path = codec ? module.library.path : "",
                                   .reason = module.absent[index]};
    if (codec && codec->version)
        codec->version(out->version, sizeof out->version);
    return true;
}

/* ---- images ---- */

static enum cm_status choose_codec(const uint8_t *bytes, size_t length, const struct cm_codec **out,
                                   struct cm_error *err)
{
    size_t i = 0;

    while (i < FORMATS && !formats[i].claims(bytes, length))
        i++;
    *out = i < FORMATS ? formats[i].own : NULL;
    if (i >= MODULE_FORMATS)
        return CM_OK;
    need_module();
    *out = find_codec(formats[i].format);
    if (*out)
        return CM_OK;
    return cm_fail(err, CM_UNSUPPORTED, "the image is %s, and its codec %s is not available (%s)",
                   formats[i].format, formats[i].library, module.absent[i]);
}

static enum cm_status no_memory(const struct cm_image *image, struct cm_error *err)
{
    return cm_fail(err, CM_NO_MEMORY, "no memory to decode a %s image of %lld x %lld pixels",
                   image->codec->format, (long long)image->size.width,
                   (long long)image->size.height);
}

enum cm_status cm_image_open(const uint8_t *bytes, size_t length, struct cm_image *out,
                             struct cm_error *err)
{
    *out = (struct cm_image){.bytes = bytes, .length = length};
    CM_TRY(choose_codec(bytes, length, &out->codec, err));
    if (!out->codec)
        return CM_OK;
    const struct cm_image_size *size = &out->size;
    const enum cm_codec_result result = out->codec->measure(bytes, length, &out->size);
    if (result == CM_CODEC_NO_MEMORY)
        return no_memory(out, err);
    if (result != CM_CODEC_DONE || size->width < 1 || size->height < 1 ||
        size->width > CM_IMAGE_SIDE_MAX || size->height > CM_IMAGE_SIDE_MAX) {
        out->codec = NULL;
        return CM_OK;
    }
    if (size->width > CM_IMAGE_PIXELS_MAX / size->height)
        return cm_fail(err, CM_LIMIT,
                       "a %s image of %lld x %lld pixels is beyond the limit of %lld pixels",
                       out->codec->format, (long long)size->width, (long long)size->height,
                       (long long)CM_IMAGE_PIXELS_MAX);
    return CM_OK;
}

enum cm_status cm_image_decode(const struct cm_image *image, uint8_t *rgb, bool *broken,
                               struct cm_error *err)
{
    const enum cm_codec_result result =
        image->codec->decode(image->bytes, image->length, &image->size, rgb);

    *broken = result == CM_CODEC_BROKEN;
    return result == CM_CODEC_NO_MEMORY ? no_memory(image, err) : CM_OK;
}
