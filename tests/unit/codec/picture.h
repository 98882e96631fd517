/* The picture that tests/fuzz/make_images.py writes in every form. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_CODEC_PICTURE_H
#define CM_TESTS_CODEC_PICTURE_H

#include "codec/codec.h"

enum { PICTURE_WIDTH = 6, PICTURE_HEIGHT = 4, PICTURE_BYTES = 6 * 4 * 3, PICTURE_FILE_MAX = 4096 };

/* Reads a file of the seeds of fuzz_image; its length. */
size_t picture_read(const char *name, uint8_t *out);
/* What channel k of pixel (x, y) must be: in colour, or as gray. */
int picture_rgb(int x, int y, int k);
int picture_gray(int x, int y, int k);
typedef int picture_fn(int x, int y, int k);
/* Decodes the file and compares with what is expected, up to `off`. */
void picture_check(const struct cm_codec *codec, const char *name, picture_fn *expected, int off);
/* Cut anywhere and with any byte changed, it is decoded, or refused. */
void picture_break(const struct cm_codec *codec, const char *name);

#endif
