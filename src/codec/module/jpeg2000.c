/* JPEG 2000 through OpenJPEG: JP2 files and bare codestreams. The sizes are read here: OpenJPEG
 * allocates for every tile that a header speaks of. */
// SPDX-License-Identifier: Apache-2.0
#include "codec/module/codec_module.h"

#include <openjpeg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { COMPONENTS_MAX = 4, TILE_BYTES = 8192, TILES_MAX = 65535 };
enum { SIZES_END = 45 }; /* markers, sizes, and one component */

struct source {
    const uint8_t *bytes;
    size_t size, at;
};

/* ---- the header ---- */

static uint32_t u32_at(const struct source *s, size_t at)
{
    return (uint32_t)s->bytes[at] << 24 | (uint32_t)s->bytes[at + 1] << 16 |
           (uint32_t)s->bytes[at + 2] << 8 | s->bytes[at + 3];
}

static bool is_codestream(const struct source *s, size_t at)
{
    return s->size - at >= 4 && memcmp(s->bytes + at, "\xFF\x4F\xFF\x51", 4) == 0;
}

/* Goes from box to box to the one that holds the codestream. */
static bool find_codestream(struct source *s)
{
    if (is_codestream(s, 0))
        return true;
    while (s->size - s->at >= 8) {
        uint64_t length = u32_at(s, s->at), header = 8;
        if (length == 1) {
            if (s->size - s->at < 16)
                return false;
            length = (uint64_t)u32_at(s, s->at + 8) << 32 | u32_at(s, s->at + 12);
            header = 16;
        }
        if (memcmp(s->bytes + s->at + 4, "jp2c", 4) == 0) {
            s->at += header;
            return is_codestream(s, s->at);
        }
        if (length < header || length > s->size - s->at)
            return false;
        s->at += length;
    }
    return false;
}

static uint64_t tiles_along(uint64_t end, uint64_t origin, uint64_t length)
{
    return (end - origin + length - 1) / length;
}

static enum cm_codec_result jpeg2000_measure(const uint8_t *bytes, size_t size,
                                             struct cm_image_size *out)
{
    struct source s = {bytes, size, 0};
    uint32_t siz[8]; /* ends, origins, tile lengths, tile origins: x and y of each */
    if (!find_codestream(&s) || s.size - s.at < SIZES_END)
        return CM_CODEC_BROKEN;
    for (size_t i = 0; i < 8; i++)
        siz[i] = u32_at(&s, s.at + 8 + 4 * i);
    const unsigned components = u32_at(&s, s.at + 40) >> 16;
    if (siz[0] <= siz[2] || siz[1] <= siz[3] || !siz[4] || !siz[5] || siz[6] >= siz[0] ||
        siz[7] >= siz[1] || components < 1 || components > COMPONENTS_MAX)
        return CM_CODEC_BROKEN;
    const uint64_t across = tiles_along(siz[0], siz[6], siz[4]);
    const uint64_t down = tiles_along(siz[1], siz[7], siz[5]);
    if (across > TILES_MAX || down > TILES_MAX || across * down > TILES_MAX)
        return CM_CODEC_BROKEN;
    out->width = siz[0] - siz[2];
    out->height = siz[1] - siz[3];
    out->work = across * down * TILE_BYTES;
    if (out->width <= CM_IMAGE_SIDE_MAX / out->height) /* else it is too large in any case */
        out->work += (uint64_t)out->width * (uint64_t)out->height * components * 8;
    return CM_CODEC_DONE;
}

/* ---- a stream over memory ---- */

static OPJ_SIZE_T read_some(void *to, OPJ_SIZE_T count, void *user)
{
    struct source *s = user;
    const size_t left = s->size - s->at, most = count < left ? count : left;
    if (!most)
        return (OPJ_SIZE_T)-1;
    memcpy(to, s->bytes + s->at, most);
    s->at += most;
    return most;
}

static OPJ_OFF_T skip_some(OPJ_OFF_T count, void *user)
{
    struct source *s = user;
    if (count < 0 || (uint64_t)count > s->size - s->at)
        return -1;
    s->at += (size_t)count;
    return count;
}

static OPJ_BOOL seek_to(OPJ_OFF_T to, void *user)
{
    struct source *s = user;
    if (to < 0 || (uint64_t)to > s->size)
        return OPJ_FALSE;
    s->at = (size_t)to;
    return OPJ_TRUE;
}

static void hear_nothing(const char *text, void *user)
{
    (void)text;
    (void)user;
}

/* ---- pixels ---- */

static uint8_t clipped(double value)
{
    return value <= 0 ? 0 : value >= 255 ? 255 : (uint8_t)(value + 0.5);
}

/* Component c at a pixel of the image, as 0 to 255. Components may be coarser than the image. */
static int sample(const opj_image_t *image, unsigned c, int64_t x, int64_t y)
{
    const opj_image_comp_t *comp = &image->comps[c];
    int64_t at_x = (image->x0 + x) / comp->dx - (image->x0 + comp->dx - 1) / comp->dx;
    int64_t at_y = (image->y0 + y) / comp->dy - (image->y0 + comp->dy - 1) / comp->dy;
    at_x = at_x < 0 ? 0 : at_x < comp->w ? at_x : comp->w - 1;
    at_y = at_y < 0 ? 0 : at_y < comp->h ? at_y : comp->h - 1;
    const int64_t most = (INT64_C(1) << comp->prec) - 1;
    int64_t value = comp->data[at_y * comp->w + at_x];
    value += comp->sgnd ? INT64_C(1) << (comp->prec - 1) : 0;
    value = value < 0 ? 0 : value > most ? most : value;
    return comp->prec == 8 ? (int)value : (int)((value * 255 + most / 2) / most);
}

static void put_pixel(const opj_image_t *image, int64_t x, int64_t y, uint8_t *to)
{
    int v[3];
    for (unsigned c = 0; c < 3; c++)
        v[c] = sample(image, image->numcomps < 3 ? 0 : c, x, y);
    if (image->color_space == OPJ_CLRSPC_SYCC && image->numcomps >= 3) {
        const double blue = v[1] - 128, red = v[2] - 128;
        to[0] = clipped(v[0] + 1.402 * red);
        to[1] = clipped(v[0] - 0.344136 * blue - 0.714136 * red);
        to[2] = clipped(v[0] + 1.772 * blue);
        return;
    }
    for (unsigned c = 0; c < 3; c++)
        to[c] = (uint8_t)v[c];
}

static bool is_usable(const opj_image_t *image, const struct cm_image_size *size)
{
    if (!image || image->x1 - image->x0 != size->width || image->y1 - image->y0 != size->height ||
        image->numcomps < 1 || image->numcomps > COMPONENTS_MAX)
        return false;
    for (unsigned c = 0; c < image->numcomps; c++) {
        const opj_image_comp_t *comp = &image->comps[c];
        if (!comp->data || !comp->w || !comp->h || !comp->dx || !comp->dy || comp->prec < 1 ||
            comp->prec > 31)
            return false;
    }
    return true;
}

static bool read_image(opj_codec_t *codec, opj_stream_t *stream, opj_image_t **out)
{
    opj_dparameters_t parameters;
    opj_set_default_decoder_parameters(&parameters);
    opj_set_info_handler(codec, hear_nothing, NULL);
    opj_set_warning_handler(codec, hear_nothing, NULL);
    opj_set_error_handler(codec, hear_nothing, NULL);
    return opj_setup_decoder(codec, &parameters) && opj_read_header(stream, codec, out) &&
           opj_decode(codec, stream, *out) && opj_end_decompress(codec, stream);
}

static enum cm_codec_result jpeg2000_decode(const uint8_t *bytes, size_t size,
                                            const struct cm_image_size *image, uint8_t *rgb)
{
    struct source source = {bytes, size, 0};
    struct cm_image_size again;
    opj_image_t *found = NULL;
    if (jpeg2000_measure(bytes, size, &again) || again.width != image->width ||
        again.height != image->height)
        return CM_CODEC_BROKEN;
    opj_codec_t *codec =
        opj_create_decompress(is_codestream(&source, 0) ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
    opj_stream_t *stream = opj_stream_default_create(OPJ_TRUE);
    bool good = codec && stream;
    const enum cm_codec_result otherwise = good ? CM_CODEC_BROKEN : CM_CODEC_NO_MEMORY;
    if (good) {
        opj_stream_set_read_function(stream, read_some);
        opj_stream_set_skip_function(stream, skip_some);
        opj_stream_set_seek_function(stream, seek_to);
        opj_stream_set_user_data(stream, &source, NULL);
        opj_stream_set_user_data_length(stream, size);
        good = read_image(codec, stream, &found) && is_usable(found, image);
    }
    for (int64_t y = 0; good && y < image->height; y++)
        for (int64_t x = 0; x < image->width; x++)
            put_pixel(found, x, y, rgb + 3 * (y * image->width + x));
    opj_image_destroy(found);
    opj_stream_destroy(stream);
    opj_destroy_codec(codec);
    return good ? CM_CODEC_DONE : otherwise;
}

static void jpeg2000_version(char *text, size_t size)
{
    snprintf(text, size, "%s", opj_version());
}

const struct cm_codec cm_codec_jpeg2000 = {.format = "JPEG 2000",
                                           .library = "OpenJPEG",
                                           .version = jpeg2000_version,
                                           .measure = jpeg2000_measure,
                                           .decode = jpeg2000_decode};
