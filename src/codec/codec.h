/* What an image decoder provides. The library has decoders of its own for simple formats; those
 * that need libraries of others are in a module that is opened at run time, and this header is all
 * that the two know of each other. It includes nothing of ours, so that the module links nothing of
 * ours. A decoder never prints, exits or keeps state between calls. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CODEC_CODEC_H
#define CM_CODEC_CODEC_H

#include <stddef.h>
#include <stdint.h>

enum cm_codec_result {
    CM_CODEC_DONE,
    CM_CODEC_BROKEN, /* no image of this format, or one that cannot be decoded */
    CM_CODEC_NO_MEMORY,
};

struct cm_image_size {
    int64_t width, height; /* 1 to CM_IMAGE_SIDE_MAX */
    uint64_t work;         /* bytes that decoding takes beside the pixels, roughly */
};

/* No format that is decoded here has longer sides, so that products fit in 64 bits. */
#define CM_IMAGE_SIDE_MAX INT64_C(0x7FFFFFFF)

struct cm_codec {
    const char *format;                       /* "JPEG" */
    const char *library;                      /* "libjpeg-turbo"; NULL: none is needed */
    void (*version)(char *text, size_t size); /* of the library; NULL: it has none */
    /* Reads the header alone. */
    enum cm_codec_result (*measure)(const uint8_t *bytes, size_t size, struct cm_image_size *out);
    /* Writes rows of red, green and blue from the top down, width * height * 3 bytes; alpha is left
     * out. image is what measure gave for the same bytes. */
    enum cm_codec_result (*decode)(const uint8_t *bytes, size_t size,
                                   const struct cm_image_size *image, uint8_t *rgb);
};

/* What the module's one function gives. */
struct cm_codec_module {
    uint32_t abi; /* CM_CODEC_ABI of when it was compiled */
    uint32_t count;
    const struct cm_codec *const *codecs;
};

enum { CM_CODEC_ABI = 1 };
#define CM_CODEC_ENTRY "cameo_codec_module"
typedef const struct cm_codec_module *cm_codec_entry_fn(void);

#endif
