/* Deflate through zlib, which is opened when a compressed file comes, and the check sum of zip
 * files. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/inflate.h"

#include "base/library.h"
#include "base/memory.h"
#include "base/number.h"

#include <pthread.h>

/* ---- zlib's interface as far as we use it; the same in all of 1.x ---- */

struct z_stream {
    const uint8_t *next_in;
    unsigned avail_in;
    unsigned long total_in;
    uint8_t *next_out;
    unsigned avail_out;
    unsigned long total_out;
    const char *msg;
    void *state;
    void *(*zalloc)(void *opaque, unsigned count, unsigned size);
    void (*zfree)(void *opaque, void *memory);
    void *opaque;
    int data_type;
    unsigned long adler, reserved;
};

enum {
    Z_NO_FLUSH = 0,
    Z_OK = 0,
    Z_STREAM_END = 1,
    Z_NEED_DICT = 2,
    Z_STREAM_ERROR = -2,
    Z_DATA_ERROR = -3,
    Z_MEM_ERROR = -4,
    Z_BUF_ERROR = -5,
    RAW_DEFLATE = -15, /* of the largest window, without zlib's own header */
};

static struct {
    struct cm_library library;
    bool usable;
    const char *(*version)(void);
    int (*inflate_init)(struct z_stream *, int window_bits, const char *version, int struct_size);
    int (*inflate)(struct z_stream *, int flush);
    int (*inflate_end)(struct z_stream *);
} zlib;

static void open_zlib(void)
{
    static const char *const names[] = {"libz.so.1", NULL};
    static const struct cm_symbol symbols[] = {
        {"zlibVersion", &zlib.version},
        {"inflateInit2_", &zlib.inflate_init},
        {"inflate", &zlib.inflate},
        {"inflateEnd", &zlib.inflate_end},
    };

    if (!cm_library_open("CAMEO_ZLIB", names, &zlib.library) ||
        !cm_library_find(&zlib.library, symbols, sizeof symbols / sizeof symbols[0]))
        return;
    zlib.usable = zlib.version()[0] == '1';
    if (!zlib.usable)
        snprintf(zlib.library.why, sizeof zlib.library.why, "%.400s is version %.20s, expected 1.x",
                 zlib.library.path, zlib.version());
}

struct cm_zlib_found cm_zlib_found(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_zlib);
    return (struct cm_zlib_found){.version = zlib.usable ? zlib.version() : "",
                                  .path = zlib.library.path,
                                  .why = zlib.library.why};
}

static enum cm_status need_zlib(struct cm_error *err)
{
    const struct cm_zlib_found found = cm_zlib_found();

    if (found.version[0])
        return CM_OK;
    return cm_fail(err, cm_library_status(&zlib.library),
                   "it is compressed, and zlib is not available (%s); install zlib, or save the "
                   "file with numpy.savez instead of savez_compressed",
                   found.why);
}

static int begin_inflate(struct z_stream *stream)
{
    return zlib.inflate_init(stream, RAW_DEFLATE, zlib.version(), (int)sizeof *stream);
}

/* ---- inflating ---- */

/* Our allocator, so that tests can make it fail. */
static void *zlib_malloc(void *opaque, unsigned count, unsigned size)
{
    (void)opaque;
    return cm_calloc(count, size);
}

static void zlib_free(void *opaque, void *memory)
{
    (void)opaque;
    cm_free(memory);
}

/* Feeds pieces, since zlib counts in 32 bits. *end says whether the stream came to its end. */
static int inflate_into(struct z_stream *stream, struct cm_str in, uint8_t *out, size_t room,
                        size_t *got, bool *end)
{
    const size_t piece = (size_t)1 << 30;
    size_t fed = 0;
    int code = Z_OK;

    *got = 0;
    while (code == Z_OK && *got < room) {
        const size_t give = cm_min_size(in.size - fed, piece);
        const size_t take = cm_min_size(room - *got, piece);

        stream->next_in = (const uint8_t *)in.data + fed;
        stream->avail_in = (unsigned)give;
        stream->next_out = out + *got;
        stream->avail_out = (unsigned)take;
        code = zlib.inflate(stream, Z_NO_FLUSH);
        fed += give - stream->avail_in;
        *got += take - stream->avail_out;
    }
    if (code == Z_OK) { /* room is full: is there more? */
        uint8_t extra;

        stream->next_in = (const uint8_t *)in.data + fed;
        stream->avail_in = (unsigned)cm_min_size(in.size - fed, piece);
        stream->next_out = &extra;
        stream->avail_out = 1;
        code = zlib.inflate(stream, Z_NO_FLUSH);
    }
    *end = code == Z_STREAM_END;
    return code;
}

static enum cm_status run_inflate(struct cm_str in, uint8_t *out, size_t room, size_t *got,
                                  bool *end, struct cm_error *err)
{
    struct z_stream stream = {.zalloc = zlib_malloc, .zfree = zlib_free};

    *got = 0;
    CM_TRY(need_zlib(err));
    if (begin_inflate(&stream) != Z_OK)
        return cm_fail(err, CM_NO_MEMORY, "no memory for decompression");
    const int code = inflate_into(&stream, in, out, room, got, end);
    zlib.inflate_end(&stream);
    if (code == Z_MEM_ERROR)
        return cm_fail(err, CM_NO_MEMORY, "no memory for decompression");
    if (code == Z_DATA_ERROR || code == Z_NEED_DICT || code == Z_STREAM_ERROR)
        return cm_fail(err, CM_BAD_MODEL, "its compressed bytes are broken");
    return CM_OK;
}

enum cm_status cm_inflate(struct cm_str in, uint8_t *out, size_t out_size, struct cm_error *err)
{
    uint8_t none[1];
    size_t got;
    bool end;

    CM_TRY(run_inflate(in, out_size ? out : none, out_size, &got, &end, err));
    if (got != out_size || !end)
        return cm_fail(err, CM_BAD_MODEL, "it decompresses to %s than the %zu bytes it should",
                       end              ? "less"
                       : got < out_size ? "less"
                                        : "more",
                       out_size);
    return CM_OK;
}

enum cm_status cm_inflate_head(struct cm_str in, uint8_t *out, size_t room, size_t *got,
                               struct cm_error *err)
{
    bool end;

    return run_inflate(in, out, room, got, &end, err);
}

enum { PIECE = 1 << 18 };

/* One piece out of the stream, which is fed as needed. */
static int inflate_piece(struct z_stream *stream, struct cm_str *in, uint8_t *out, size_t *got)
{
    const size_t give = cm_min_size(in->size, (size_t)1 << 30);

    stream->next_in = (const uint8_t *)in->data;
    stream->avail_in = (unsigned)give;
    stream->next_out = out;
    stream->avail_out = PIECE;
    const int code = zlib.inflate(stream, Z_NO_FLUSH);
    in->data += give - stream->avail_in;
    in->size -= give - stream->avail_in;
    *got = PIECE - stream->avail_out;
    return code;
}

static enum cm_status stream_pieces(struct z_stream *stream, struct cm_str in, size_t left,
                                    uint8_t *piece, cm_inflate_sink_fn *sink, void *arg,
                                    struct cm_error *err)
{
    int code = Z_OK;

    while (code == Z_OK) {
        size_t got;

        code = inflate_piece(stream, &in, piece, &got);
        if (got > left)
            return cm_fail(err, CM_BAD_MODEL, "it decompresses to more bytes than it should");
        left -= got;
        CM_TRY(sink(arg, piece, got, err));
    }
    if (code == Z_MEM_ERROR)
        return cm_fail(err, CM_NO_MEMORY, "no memory for decompression");
    if (code == Z_BUF_ERROR || (code == Z_STREAM_END && left > 0))
        return cm_fail(err, CM_BAD_MODEL, "it decompresses to %zu bytes less than it should", left);
    return code == Z_STREAM_END ? CM_OK
                                : cm_fail(err, CM_BAD_MODEL, "its compressed bytes are broken");
}

enum cm_status cm_inflate_stream(struct cm_str in, size_t out_size, cm_inflate_sink_fn *sink,
                                 void *arg, struct cm_error *err)
{
    struct z_stream stream = {.zalloc = zlib_malloc, .zfree = zlib_free};

    CM_TRY(need_zlib(err));
    uint8_t *piece = cm_malloc(PIECE);

    if (!piece || begin_inflate(&stream) != Z_OK) {
        cm_free(piece);
        return cm_fail(err, CM_NO_MEMORY, "no memory for decompression");
    }
    const enum cm_status status = stream_pieces(&stream, in, out_size, piece, sink, arg, err);
    zlib.inflate_end(&stream);
    cm_free(piece);
    return status;
}

uint32_t cm_crc32(uint32_t crc, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    uint32_t table[8][256]; /* eight bytes a step; made anew, which costs as much as a few KiB */

    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++)
            value = value >> 1 ^ (value & 1 ? UINT32_C(0xedb88320) : 0);
        table[0][i] = value;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 8; k++)
            table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 0xff];
    crc = ~crc;
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        word ^= crc;
        crc = table[7][word & 0xff] ^ table[6][word >> 8 & 0xff] ^ table[5][word >> 16 & 0xff] ^
              table[4][word >> 24 & 0xff] ^ table[3][word >> 32 & 0xff] ^
              table[2][word >> 40 & 0xff] ^ table[1][word >> 48 & 0xff] ^ table[0][word >> 56];
    }
    for (; size > 0; at++, size--)
        crc = crc >> 8 ^ table[0][(crc ^ *at) & 0xff];
    return ~crc;
}
