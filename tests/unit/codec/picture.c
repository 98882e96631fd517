/* Decoding the picture, whole and broken. */
// SPDX-License-Identifier: Apache-2.0
#include "codec/picture.h"

#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t picture_read(const char *name, uint8_t *out)
{
    char path[500];
    snprintf(path, sizeof path, "%s/fuzz/corpus/fuzz_image/%s", TESTS_DIR, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("cannot open %s", path);
    const size_t size = fread(out, 1, PICTURE_FILE_MAX, file);
    fclose(file);
    return size;
}

int picture_rgb(int x, int y, int k)
{
    return k == 0 ? 40 * x : k == 1 ? 60 * y : 255 - 40 * x;
}

int picture_gray(int x, int y, int k)
{
    (void)k;
    return (picture_rgb(x, y, 0) * 19595 + picture_rgb(x, y, 1) * 38470 +
            picture_rgb(x, y, 2) * 7471 + 0x8000) >>
           16;
}

void picture_check(const struct cm_codec *codec, const char *name, picture_fn *expected, int off)
{
    uint8_t bytes[PICTURE_FILE_MAX], rgb[PICTURE_BYTES];
    const size_t size = picture_read(name, bytes);
    struct cm_image_size image = {0};

    if (codec->measure(bytes, size, &image) != CM_CODEC_DONE || image.width != PICTURE_WIDTH ||
        image.height != PICTURE_HEIGHT)
        fail_msg("%s: measured as %d x %d", name, (int)image.width, (int)image.height);
    if (codec->decode(bytes, size, &image, rgb) != CM_CODEC_DONE)
        fail_msg("%s is not decoded", name);
    for (int i = 0; i < PICTURE_BYTES; i++) {
        const int wanted = expected(i / 3 % PICTURE_WIDTH, i / 3 / PICTURE_WIDTH, i % 3);
        if (abs(rgb[i] - wanted) > off)
            fail_msg("%s: byte %d is %d, expected %d", name, i, rgb[i], wanted);
    }
}

/* On the heap and exactly as large, so that a sanitizer sees what is read or written beside it. */
static void try_bytes(const struct cm_codec *codec, const uint8_t *bytes, size_t size)
{
    struct cm_image_size image = {0};
    uint8_t *copy = malloc(size ? size : 1);
    if (size)
        memcpy(copy, bytes, size);
    if (codec->measure(copy, size, &image) == CM_CODEC_DONE && image.width > 0 &&
        image.height > 0 && image.width < 1000 && image.height < 1000) {
        uint8_t *rgb = malloc((size_t)(image.width * image.height * 3));
        (void)codec->decode(copy, size, &image, rgb);
        free(rgb);
    }
    free(copy);
}

void picture_break(const struct cm_codec *codec, const char *name)
{
    static const uint8_t changes[] = {0x01, 0x80, 0xFF};
    uint8_t bytes[PICTURE_FILE_MAX];
    const size_t size = picture_read(name, bytes);

    for (size_t cut = 0; cut < size; cut++)
        try_bytes(codec, bytes, cut);
    for (size_t i = 0; i < size * sizeof changes; i++) {
        bytes[i / sizeof changes] ^= changes[i % sizeof changes];
        try_bytes(codec, bytes, size);
        bytes[i / sizeof changes] ^= changes[i % sizeof changes];
    }
}
