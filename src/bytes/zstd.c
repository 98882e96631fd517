/* Packed bytes: zstd, zlib, gzip. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/zstd.h"

#include "base/library.h"
#include "base/memory.h"
#include "base/number.h"
#include "bytes/inflate.h"

#include <pthread.h>

/* ---- zstd's interface as far as we use it; the same in all of 1.x ---- */

struct zstd_out {
    void *bytes;
    size_t size, at;
};

struct zstd_in {
    const void *bytes;
    size_t size, at;
};

static struct {
    struct cm_library library;
    bool usable;
    unsigned (*is_error)(size_t code);
    const char *(*error_name)(size_t code);
    size_t (*decompress)(void *out, size_t room, const void *in, size_t size);
    void *(*new_stream)(void);
    size_t (*free_stream)(void *stream);
    size_t (*stream)(void *stream, struct zstd_out *out, struct zstd_in *in);
} zstd;

static void open_zstd(void)
{
    static const char *const names[] = {"libzstd.so.1", NULL};
    static const struct cm_symbol symbols[] = {
        {"ZSTD_isError", &zstd.is_error},        {"ZSTD_getErrorName", &zstd.error_name},
        {"ZSTD_decompress", &zstd.decompress},   {"ZSTD_createDStream", &zstd.new_stream},
        {"ZSTD_freeDStream", &zstd.free_stream}, {"ZSTD_decompressStream", &zstd.stream},
    };

    zstd.usable = cm_library_open("CAMEO_ZSTD", names, &zstd.library) &&
                  cm_library_find(&zstd.library, symbols, CM_COUNT(symbols));
}

static enum cm_status need_zstd(struct cm_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_zstd);
    if (zstd.usable)
        return CM_OK;
    return cm_fail(err, cm_library_status(&zstd.library),
                   "it is compressed with zstd, which is not available (%s); install libzstd "
                   "(package libzstd1 or zstd)",
                   zstd.library.why);
}

static enum cm_status broken(size_t code, struct cm_error *err)
{
    return cm_fail(err, CM_BAD_MODEL, "its compressed bytes are broken (%s)",
                   zstd.error_name(code));
}

/* The frame is unpacked twice, first only to count: frames of unknown size are common, and memory
 * of an arena should be taken once. */
static enum cm_status count_frame(struct cm_str packed, size_t most, size_t *size,
                                  struct cm_error *err)
{
    enum { ROOM = 1 << 16 };
    void *stream = zstd.new_stream();
    uint8_t *room = cm_malloc(ROOM);
    struct zstd_in in = {packed.data, packed.size, 0};
    enum cm_status status = CM_OK;
    size_t code = 1;

    *size = 0;
    if (!stream || !room)
        status = cm_fail(err, CM_NO_MEMORY, "no memory for decompression");
    while (status == CM_OK && code != 0) {
        struct zstd_out out = {room, ROOM, 0};
        const size_t before = in.at;

        code = zstd.stream(stream, &out, &in);
        *size += out.at;
        if (zstd.is_error(code))
            status = broken(code, err);
        else if (*size > most)
            status = cm_fail(err, CM_LIMIT, "it decompresses to more than %zu bytes", most);
        else if (code != 0 && out.at == 0 && in.at == before)
            status = cm_fail(err, CM_BAD_MODEL, "its compressed bytes end too early");
    }
    if (stream)
        zstd.free_stream(stream);
    cm_free(room);
    return status;
}

static enum cm_status unpack_zstd(struct cm_str packed, uint8_t *out, size_t size,
                                  struct cm_error *err)
{
    CM_TRY(need_zstd(err));
    const size_t got = zstd.decompress(out, size, packed.data, packed.size);

    if (zstd.is_error(got))
        return broken(got, err);
    if (got != size)
        return cm_fail(err, CM_BAD_MODEL, "it decompresses to %zu bytes, expected %zu", got, size);
    return CM_OK;
}

enum cm_status cm_zstd_read(struct cm_arena *arena, struct cm_str packed, size_t most,
                            struct cm_str *out, struct cm_error *err)
{
    size_t size;

    CM_TRY(need_zstd(err));
    CM_TRY(count_frame(packed, most, &size, err));
    uint8_t *bytes = cm_arena_alloc(arena, size + 1);
    *out = (struct cm_str){(const char *)bytes, size};
    return unpack_zstd(packed, bytes, size, err);
}

/* The size that the head of a zstd frame says; false: it says none, or it is no frame. */
static bool frame_says(struct cm_str packed, uint64_t *size)
{
    const uint8_t *at = (const uint8_t *)packed.data;

    if (packed.size < 6 || memcmp(at, "\x28\xb5\x2f\xfd", 4) != 0)
        return false;
    const unsigned descriptor = at[4];
    const bool whole = descriptor >> 5 & 1; /* no window, so a size is there in any case */
    const unsigned number = descriptor & 3;
    const size_t skip = 5U + (whole ? 0U : 1U) + number + (number == 3 ? 1U : 0U);
    const size_t bytes = descriptor >> 6 ? (size_t)1 << (descriptor >> 6) : whole;

    *size = 0;
    if (bytes == 0 || skip + bytes > packed.size)
        return false;
    memcpy(size, at + skip, bytes);
    *size += bytes == 2 ? 256 : 0;
    return true;
}

enum cm_status cm_packed_check(enum cm_packing packing, struct cm_str packed, size_t unpacked,
                               struct cm_error *err)
{
    /* What a block of three bytes of zstd, or a byte of deflate, can stand for at most. */
    const size_t ratio = packing == CM_PACKED_ZSTD ? (size_t)1 << 16 : 1100;
    uint64_t said;

    if (unpacked / ratio > packed.size)
        return cm_fail(err, CM_BAD_MODEL, "%zu compressed bytes cannot hold %zu bytes", packed.size,
                       unpacked);
    if (packing == CM_PACKED_ZSTD && frame_says(packed, &said) && said != unpacked)
        return cm_fail(err, CM_BAD_MODEL, "it decompresses to %llu bytes, expected %zu",
                       (unsigned long long)said, unpacked);
    return CM_OK;
}

/* The deflated bytes of a gzip file: its head has a fixed part, extra bytes, two texts, a sum. */
static bool skip_gzip_head(struct cm_str *packed)
{
    const uint8_t *at = (const uint8_t *)packed->data;
    size_t skip = 10;

    if (packed->size < 18 || at[0] != 0x1f || at[1] != 0x8b || at[2] != 8)
        return false;
    if (at[3] & 4)
        skip += 2 + at[10] + 256U * at[11];
    for (unsigned flag = 8; flag <= 16; flag *= 2)
        if (at[3] & flag) {
            while (skip < packed->size && at[skip])
                skip++;
            skip++;
        }
    skip += at[3] & 2;
    if (skip >= packed->size)
        return false;
    *packed = (struct cm_str){packed->data + skip, packed->size - skip};
    return true;
}

static bool skip_zlib_head(struct cm_str *packed)
{
    if (packed->size < 6 || (packed->data[0] & 15) != 8 || packed->data[1] & 32)
        return false;
    *packed = (struct cm_str){packed->data + 2, packed->size - 2};
    return true;
}

enum cm_status cm_unpack(const struct cm_saved_piece *piece, uint8_t *out, struct cm_error *err)
{
    struct cm_str packed = piece->bytes;

    if (piece->packing == CM_PACKED_ZSTD)
        return unpack_zstd(packed, out, piece->unpacked_size, err);
    if (!(piece->packing == CM_PACKED_GZIP ? skip_gzip_head : skip_zlib_head)(&packed))
        return cm_fail(err, CM_BAD_MODEL, "its compressed bytes do not begin as %s",
                       piece->packing == CM_PACKED_GZIP ? "gzip" : "zlib");
    return cm_inflate(packed, out, piece->unpacked_size, err);
}
