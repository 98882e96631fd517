/* The codec module: whatever decoders it was built with, behind one function. */
// SPDX-License-Identifier: Apache-2.0
#include "codec/module/codec_module.h"

static const struct cm_codec *const codecs[] = {
#ifdef CM_WITH_JPEG
    &cm_codec_jpeg,
#endif
#ifdef CM_WITH_PNG
    &cm_codec_png,
#endif
#ifdef CM_WITH_WEBP
    &cm_codec_webp,
#endif
#ifdef CM_WITH_JPEG2000
    &cm_codec_jpeg2000,
#endif
#ifdef CM_WITH_TIFF
    &cm_codec_tiff,
#endif
};

const struct cm_codec_module *cameo_codec_module(void)
{
    static const struct cm_codec_module module = {CM_CODEC_ABI, sizeof codecs / sizeof codecs[0],
                                                  codecs};

    return &module;
}
