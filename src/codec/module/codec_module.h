/* The decoders of the codec module, one for each library. Nothing of the library's own is included
 * or linked here: the module is loaded into whatever process asks for it. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CODEC_MODULE_CODEC_MODULE_H
#define CM_CODEC_MODULE_CODEC_MODULE_H

#include "codec/codec.h"

extern const struct cm_codec cm_codec_jpeg, cm_codec_png, cm_codec_webp, cm_codec_jpeg2000,
    cm_codec_tiff;

/* All that the module exports. */
__attribute__((visibility("default"))) const struct cm_codec_module *cameo_codec_module(void);

#endif
