/* Encoded images, whatever their bytes are, given to every decoder: ours and those of the module.
 */
// SPDX-License-Identifier: Apache-2.0
#include "codec/image.h"
#include "codec/module/codec_module.h"
#include "target.h"

#include <stdlib.h>

enum { PIXELS_MAX = 1 << 18, WORK_MAX = 1 << 24 };

static volatile unsigned kept; /* so that nothing is optimized away */

static void decode(const struct cm_codec *codec, const uint8_t *data, size_t size)
{
    struct cm_image_size image = {0};

    if (codec->measure(data, size, &image) != CM_CODEC_DONE || image.width < 1 ||
        image.height < 1 || image.width > PIXELS_MAX / image.height || image.work > WORK_MAX)
        return;
    const size_t length = (size_t)(image.width * image.height * 3);
    uint8_t *rgb = malloc(length); /* exactly as large, so that a sanitizer sees a byte too many */
    if (rgb && codec->decode(data, size, &image, rgb) == CM_CODEC_DONE)
        kept += rgb[0] + rgb[length - 1];
    free(rgb);
}

static void run_input(const uint8_t *data, size_t size)
{
    decode(&cm_codec_bmp, data, size);
    decode(&cm_codec_pnm, data, size);
#ifdef CM_WITH_CODECS
    const struct cm_codec_module *module = cameo_codec_module();
    for (uint32_t i = 0; i < module->count; i++)
        decode(module->codecs[i], data, size);
#endif
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    /* what `work` estimates, the pixels, and what decoders hold in any case */
    .memory_base = 32 * FUZZ_MIB,
    .memory_per_byte = 64,
};
