/* Encoded images to pixels: BMP and PNM by decoders of our own, JPEG, PNG, WebP, JPEG 2000 and TIFF
 * by the codec module, which is opened when the first such image comes. Sizes come from the header
 * and are for the caller to judge before anything is decoded. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CODEC_IMAGE_H
#define CM_CODEC_IMAGE_H

#include "base/status.h"
#include "codec/codec.h"

#include <stdbool.h>

/* Pixels that an image may have. Headers of a few bytes can ask for any number. */
#define CM_IMAGE_PIXELS_MAX (INT64_C(1) << 28)

/* An image whose header was read. */
struct cm_image {
    const uint8_t *bytes; /* borrowed */
    size_t length;
    const struct cm_codec *codec; /* NULL: it is no image, or its header is broken */
    struct cm_image_size size;
};

/* Reads the header. What is no image is no failure: out->codec is NULL then. Fails where the codec
 * for a format is missing, with what to install, and where the image has more pixels than
 * CM_IMAGE_PIXELS_MAX. */
enum cm_status cm_image_open(const uint8_t *bytes, size_t length, struct cm_image *out,
                             struct cm_error *err) CM_MUST_CHECK;
/* Writes height * width * 3 bytes: red, green, blue, row by row. *broken says that the data behind
 * the header cannot be decoded, which is no failure either; rgb then means nothing. */
enum cm_status cm_image_decode(const struct cm_image *image, uint8_t *rgb, bool *broken,
                               struct cm_error *err) CM_MUST_CHECK;

/* A format that the module is for, and the library that decodes it. */
struct cm_codec_found {
    const char *library;
    char version[32];   /* "": it is not there */
    const char *path;   /* of the module */
    const char *reason; /* why it is not there */
};
/* False past the last. */
bool cm_codec_found(size_t index, struct cm_codec_found *out);

extern const struct cm_codec cm_codec_bmp, cm_codec_pnm;

#endif
