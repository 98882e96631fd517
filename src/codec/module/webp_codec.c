/* WebP through libwebp: still images, lossy and lossless. */
// SPDX-License-Identifier: Apache-2.0
#include "codec/module/codec_module.h"

#include <stdio.h>
#include <webp/decode.h>

enum { WEBP_WORK_BYTES = 8 };

static enum cm_codec_result webp_measure(const uint8_t *bytes, size_t size,
                                         struct cm_image_size *out)
{
    WebPBitstreamFeatures features;
    const VP8StatusCode code = WebPGetFeatures(bytes, size, &features);
    if (code == VP8_STATUS_OUT_OF_MEMORY)
        return CM_CODEC_NO_MEMORY;
    if (code != VP8_STATUS_OK || features.has_animation)
        return CM_CODEC_BROKEN;
    out->width = features.width;
    out->height = features.height;
    out->work = (uint64_t)features.width * (uint64_t)features.height * WEBP_WORK_BYTES;
    return CM_CODEC_DONE;
}

static enum cm_codec_result webp_decode(const uint8_t *bytes, size_t size,
                                        const struct cm_image_size *image, uint8_t *rgb)
{
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config) ||
        WebPGetFeatures(bytes, size, &config.input) != VP8_STATUS_OK ||
        config.input.has_animation || config.input.width != image->width ||
        config.input.height != image->height || image->width > INT32_MAX / 3)
        return CM_CODEC_BROKEN;
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = rgb;
    config.output.u.RGBA.stride = (int)image->width * 3;
    config.output.u.RGBA.size = (size_t)image->width * (size_t)image->height * 3;
    const VP8StatusCode code = WebPDecode(bytes, size, &config);
    WebPFreeDecBuffer(&config.output);
    return code == VP8_STATUS_OK              ? CM_CODEC_DONE
           : code == VP8_STATUS_OUT_OF_MEMORY ? CM_CODEC_NO_MEMORY
                                              : CM_CODEC_BROKEN;
}

static void webp_version(char *text, size_t size)
{
    const int version = WebPGetDecoderVersion();
    snprintf(text, size, "%d.%d.%d", version >> 16, version >> 8 & 255, version & 255);
}

const struct cm_codec cm_codec_webp = {.format = "WebP",
                                       .library = "libwebp",
                                       .version = webp_version,
                                       .measure = webp_measure,
                                       .decode = webp_decode};
