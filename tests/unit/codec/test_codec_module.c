/* The codec module, linked in: every form of the picture, whole and broken. Codecs that it was
 * built without are left out. */
// SPDX-License-Identifier: Apache-2.0
#include "codec/module/codec_module.h"

#include "check.h"
#include "codec/picture.h"

#include <string.h>

static const struct cm_codec *find(const char *format)
{
    const struct cm_codec_module *module = cameo_codec_module();
    for (uint32_t i = 0; i < module->count; i++)
        if (strcmp(module->codecs[i]->format, format) == 0)
            return module->codecs[i];
    return NULL;
}

static int bits_of_gray(int x, int y, int k)
{
    return picture_gray(x, y, k) > 100 ? 255 : 0;
}

static const struct {
    const char *format, *file;
    picture_fn *expected;
    int off; /* what a lossy code may lose */
} files[] = {
    {"PNG", "rgb.png", picture_rgb, 0},         {"PNG", "gray.png", picture_gray, 0},
    {"PNG", "alpha.png", picture_rgb, 0},       {"PNG", "palette.png", picture_rgb, 0},
    {"PNG", "bits.png", bits_of_gray, 0},       {"JPEG", "rgb.jpg", picture_rgb, 3},
    {"JPEG", "halved.jpg", picture_rgb, 60},    {"JPEG", "progressive.jpg", picture_rgb, 3},
    {"JPEG", "gray.jpg", picture_gray, 2},      {"JPEG", "cmyk.jpg", picture_rgb, 4},
    {"WebP", "lossless.webp", picture_rgb, 0},  {"WebP", "alpha.webp", picture_rgb, 0},
    {"WebP", "lossy.webp", picture_rgb, 60},    {"JPEG 2000", "rgb.jp2", picture_rgb, 0},
    {"JPEG 2000", "gray.j2k", picture_gray, 0}, {"JPEG 2000", "tiles.jp2", picture_rgb, 0},
    {"TIFF", "rgb.tif", picture_rgb, 0},        {"TIFF", "lzw.tif", picture_rgb, 0},
    {"TIFF", "alpha.tif", picture_rgb, 0},      {"TIFF", "gray.tif", picture_gray, 0},
};

void test_codec_module__every_form_of_the_picture_is_decoded(void)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (find(files[i].format))
            picture_check(find(files[i].format), files[i].file, files[i].expected, files[i].off);
}

void test_codec_module__broken_files_are_decoded_or_refused(void)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (find(files[i].format))
            picture_break(find(files[i].format), files[i].file);
}

/* An image that ends early is none, wherever its pixels begin. */
void test_codec_module__an_image_that_is_cut_short_is_broken(void)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const struct cm_codec *codec = find(files[i].format);
        uint8_t bytes[PICTURE_FILE_MAX], rgb[PICTURE_BYTES];
        const size_t size = picture_read(files[i].file, bytes);
        struct cm_image_size image = {PICTURE_WIDTH, PICTURE_HEIGHT, 0};
        if (!codec || strcmp(files[i].format, "TIFF") == 0) /* its folder is at the end */
            continue;
        if (codec->decode(bytes, size / 2, &image, rgb) != CM_CODEC_BROKEN)
            fail_msg("%s is decoded from its first half", files[i].file);
    }
}

void test_codec_module__says_which_libraries_it_links(void)
{
    const struct cm_codec_module *module = cameo_codec_module();
    CHECK_INT(module->abi, CM_CODEC_ABI);
    CHECK(module->count > 0);
    for (uint32_t i = 0; i < module->count; i++) {
        char version[32] = "";
        module->codecs[i]->version(version, sizeof version);
        if (version[0] < '0' || version[0] > '9')
            fail_msg("%s has version '%s'", module->codecs[i]->library, version);
    }
}

/* A codestream of a few bytes can speak of a million tiles, for each of which OpenJPEG allocates.
 */
void test_codec_module__tiles_count_as_work(void)
{
    const struct cm_codec *codec = find("JPEG 2000");
    uint8_t bytes[PICTURE_FILE_MAX];
    const size_t size = picture_read("gray.j2k", bytes);
    struct cm_image_size image = {0};
    if (!codec)
        return;
    bytes[8 + 2] = bytes[12 + 2] = 1; /* 262 x 260 pixels */
    memset(bytes + 24, 0, 8);
    bytes[24 + 3] = bytes[28 + 3] = 1; /* in tiles of one */
    CHECK_INT(codec->measure(bytes, size, &image), CM_CODEC_BROKEN);
    bytes[24 + 3] = 2;
    CHECK_INT(codec->measure(bytes, size, &image), CM_CODEC_DONE);
    CHECK(image.work > 131 * 260 * 8000);
}
