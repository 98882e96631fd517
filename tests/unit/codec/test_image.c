/* Our own decoders, and what is said where one is missing. The module is switched off here. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "codec/image.h"

#include "check.h"
#include "codec/picture.h"

#include <stdlib.h>
#include <string.h>

static int bits_of_gray(int x, int y, int k)
{
    return picture_gray(x, y, k) > 100 ? 255 : 0;
}

/* Checkers, 0 being white. */
static int checkers(int x, int y, int k)
{
    (void)k;
    return (x + y) % 2 ? 0 : 255;
}

void test_pnm__text_and_bytes_of_all_three_kinds(void)
{
    picture_check(&cm_codec_pnm, "rgb.ppm", picture_rgb, 0);
    picture_check(&cm_codec_pnm, "text.ppm", picture_rgb, 0);
    picture_check(&cm_codec_pnm, "gray.pgm", picture_gray, 0);
    picture_check(&cm_codec_pnm, "bits.pbm", bits_of_gray, 0);
    picture_check(&cm_codec_pnm, "text.pbm", checkers, 0);
}

static int masked(int x, int y, int k)
{
    const int row = PICTURE_HEIGHT - 1 - y; /* from the bottom up */
    return k == 0 ? 5 * x * 255 / 31 : k == 1 ? 15 * row * 255 / 63 : x * 255 / 31;
}

void test_bmp__palettes_masks_and_bytes(void)
{
    picture_check(&cm_codec_bmp, "rgb.bmp", picture_rgb, 0);
    picture_check(&cm_codec_bmp, "alpha.bmp", picture_rgb, 0);
    picture_check(&cm_codec_bmp, "palette.bmp", picture_rgb, 0);
    picture_check(&cm_codec_bmp, "bits.bmp", bits_of_gray, 0);
    picture_check(&cm_codec_bmp, "masks.bmp", masked, 0);
}

/* Red is the number of the colour; rows are counted from the bottom. */
static int runs_of_8(int x, int y, int k)
{
    static const uint8_t numbers[4][6] = {
        {40, 40, 40, 40, 40, 40}, {1, 2, 3, 5, 5, 5}, {0, 0, 0, 0, 0, 0}, {0, 0, 7, 0, 0, 0}};
    const int number = numbers[PICTURE_HEIGHT - 1 - y][x];
    return k == 2 ? 255 - number : number;
}

static int runs_of_4(int x, int y, int k)
{
    static const uint8_t numbers[4][6] = {
        {1, 2, 1, 2, 1, 2}, {1, 2, 3, 4, 5, 7}, {15, 15, 15, 15, 15, 15}, {0, 0, 0, 0, 0, 0}};
    const int number = numbers[PICTURE_HEIGHT - 1 - y][x];
    return k == 2 ? 255 - number : number;
}

void test_bmp__run_length_codes(void)
{
    picture_check(&cm_codec_bmp, "runs8.bmp", runs_of_8, 0);
    picture_check(&cm_codec_bmp, "runs4.bmp", runs_of_4, 0);
}

void test_image__broken_files_are_decoded_or_refused(void)
{
    static const char *const bmps[] = {"rgb.bmp",   "alpha.bmp", "palette.bmp", "bits.bmp",
                                       "masks.bmp", "runs8.bmp", "runs4.bmp"};
    static const char *const pnms[] = {"rgb.ppm", "text.ppm", "gray.pgm", "bits.pbm", "text.pbm"};
    for (size_t i = 0; i < sizeof bmps / sizeof bmps[0]; i++)
        picture_break(&cm_codec_bmp, bmps[i]);
    for (size_t i = 0; i < sizeof pnms / sizeof pnms[0]; i++)
        picture_break(&cm_codec_pnm, pnms[i]);
}

static struct cm_image open_text(const char *text)
{
    struct cm_image image;
    struct cm_error err = {0};
    CHECK_OK(cm_image_open((const uint8_t *)text, strlen(text), &image, &err), &err);
    return image;
}

void test_image__what_is_no_image_has_no_codec(void)
{
    CHECK(open_text("").codec == NULL);
    CHECK(open_text("hello").codec == NULL);
    CHECK(open_text("P5 0 4 255\n").codec == NULL);
    CHECK(open_text("P5 4 4 0\n0123456789abcdef").codec == NULL);
    CHECK(open_text("P2 2 1 9\n1 2").codec == &cm_codec_pnm);
    /* no file of 20 bytes holds 10^10 pixels, so nothing is asked for */
    CHECK(open_text("P5 100000 100000 255\n").codec == NULL);
}

void test_image__a_number_beyond_the_largest_is_broken(void)
{
    const struct cm_image image = open_text("P2 2 1 9\n1 12");
    struct cm_error err = {0};
    uint8_t rgb[6];
    bool broken = false;
    CHECK_OK(cm_image_decode(&image, rgb, &broken, &err), &err);
    CHECK(broken);
}

/* Run-length codes can say much in few bytes, so there the limit decides. */
void test_image__pixels_have_a_limit(void)
{
    uint8_t bytes[PICTURE_FILE_MAX];
    const size_t size = picture_read("runs8.bmp", bytes);
    struct cm_image image;
    struct cm_error err = {0};
    bytes[18 + 2] = bytes[22 + 2] = 1; /* 65542 x 65540 */
    CHECK_FAILS(cm_image_open(bytes, size, &image, &err), CM_LIMIT, &err,
                "a BMP image of 65542 x 65540 pixels is beyond the limit of 268435456 pixels");
}

void test_image__a_codec_that_is_not_there_is_named(void)
{
    struct cm_image image;
    struct cm_error err = {0};
    struct cm_codec_found found;
    uint8_t bytes[PICTURE_FILE_MAX];
    size_t size = picture_read("rgb.png", bytes);
    setenv("CAMEO_CODECS", "off", 1);
    CHECK_FAILS(cm_image_open(bytes, size, &image, &err), CM_UNSUPPORTED, &err,
                "the image is PNG, and its codec libpng is not available (CAMEO_CODECS is off)");
    size = picture_read("gray.j2k", bytes);
    CHECK_FAILS(cm_image_open(bytes, size, &image, &err), CM_UNSUPPORTED, &err, "OpenJPEG");
    size = picture_read("lossy.webp", bytes);
    CHECK_FAILS(cm_image_open(bytes, size, &image, &err), CM_UNSUPPORTED, &err, "libwebp");
    size = picture_read("rgb.tif", bytes);
    CHECK_FAILS(cm_image_open(bytes, size, &image, &err), CM_UNSUPPORTED, &err, "libtiff");
    CHECK(cm_codec_found(0, &found) && !found.version[0]);
    CHECK_STRING(found.library, "libjpeg-turbo");
    CHECK_STRING(found.reason, "CAMEO_CODECS is off");
    CHECK(!cm_codec_found(5, &found));
}
