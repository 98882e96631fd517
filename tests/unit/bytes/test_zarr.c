/* Arrays of zarr: chunks at the edge, in columns, in shards, missing ones; and packed bytes. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/zarr.h"
#include "bytes/zstd.h"
#include "check.h"

struct value {
    const char *key;
    struct cm_str bytes;
};

static enum cm_status get(void *arg, struct cm_str key, bool *found, struct cm_str *bytes,
                          struct cm_str *file, struct cm_error *err)
{
    (void)err;
    *found = false;
    for (const struct value *value = arg; value->key && !*found; value++)
        if (cm_str_is(key, value->key)) {
            *found = true;
            *bytes = value->bytes;
            *file = key;
        }
    return CM_OK;
}

#define BYTES(text) ((struct cm_str){"" text, sizeof(text) - 1})

/* Reads an array of bytes and compares. */
static void check_array(struct cm_arena *arena, struct value *values, int version,
                        const char *description, const char *wanted)
{
    struct cm_zarr_store store = {.get = get, .arg = values, .pieces_left = 100};
    struct cm_saved_reader reader = {0};
    struct cm_saved_tensor *tensor;
    struct cm_error err;
    char out[64] = "";

    CHECK_OK(cm_zarr_read(arena, &store, CM_STR("a"), cm_str(description), version, &tensor, &err),
             &err);
    CHECK_INT(cm_shape_elements(&tensor->shape), strlen(wanted));
    const enum cm_status status =
        cm_saved_tensor_read(&reader, tensor, 0, (int64_t)strlen(wanted), out, &err);
    cm_saved_reader_release(&reader);
    if (status == CM_UNSUPPORTED) { /* only where a library is not installed, and it says which */
        CHECK(strstr(err.text, "is not available") != NULL);
        return;
    }
    CHECK_OK(status, &err);
    for (size_t i = 0; i < strlen(wanted); i++)
        CHECK_INT(out[i] ? out[i] : '0', wanted[i]);
}

#define TWO(shape, chunks, more)                                                                   \
    "{\"shape\": " shape ", \"chunks\": " chunks ", \"dtype\": \"|u1\", \"fill_value\": null" more \
    "}"
#define THREE(shape, chunks, codecs)                                                               \
    "{\"shape\": " shape ", \"data_type\": \"uint8\", \"fill_value\": 0, \"chunk_grid\": "         \
    "{\"name\": \"regular\", \"configuration\": {\"chunk_shape\": " chunks "}}, "                  \
    "\"chunk_key_encoding\": {\"name\": \"default\"}, \"codecs\": " codecs "}"

static void arrays(struct cm_arena *arena)
{
    /* 3x3 in chunks of 2x2; what sticks out is stored as x */
    struct value edges[] = {{"a/0.0", BYTES("1245")},
                            {"a/0.1", BYTES("3x6x")},
                            {"a/1.0", BYTES("78xx")},
                            {"a/1.1", BYTES("9xxx")},
                            {0}};
    struct value holes[] = {{"a/0.1", BYTES("3x6x")}, {0}};
    struct value scalar[] = {{"a/0", BYTES("7")}, {0}};
    struct value columns[] = {{"a/0/0", BYTES("142536")}, {0}};
    struct value three[] = {{"a/c/0", BYTES("12")}, {"a/c/1", BYTES("3x")}, {0}};
    /* chunks 1 and 0 of two, then the index */
    struct value shard[] = {{"a/c/0", BYTES("3412\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"
                                            "\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0")},
                            {0}};

    check_array(arena, edges, 2, TWO("[3, 3]", "[2, 2]", ""), "123456789");
    check_array(arena, holes, 2, TWO("[3, 3]", "[2, 2]", ""), "003006000");
    check_array(arena, scalar, 2, TWO("[]", "[]", ""), "7");
    check_array(arena, columns, 2,
                TWO("[2, 3]", "[2, 3]", ", \"order\": \"F\", \"dimension_separator\": \"/\""),
                "123456");
    check_array(arena, three, 3, THREE("[3]", "[2]", "[{\"name\": \"bytes\"}]"), "123");
    check_array(arena, shard, 3,
                THREE("[3]", "[4]",
                      "[{\"name\": \"sharding_indexed\", \"configuration\": {\"chunk_shape\": [2], "
                      "\"codecs\": [{\"name\": \"bytes\"}]}}]"),
                "123");
}

void test_zarr__chunks_become_one_tensor(void)
{
    check_in_arena(arrays);
}

static void packed(struct cm_arena *arena)
{
    struct value gzip[] = {{"a/0", BYTES("\x1f\x8b\x08\0\0\0\0\0\x02\xff\x33\x34\x32\x36\x01\0\xa3"
                                         "\xe0\xe3\x9b\x04\0\0\0")},
                           {0}};
    struct value zlib[] = {{"a/0", BYTES("\x78\x9c\x33\x34\x32\x36\x01\0\x01\xf8\0\xcb")}, {0}};
    struct value zstd[] = {{"a/0", BYTES("\x28\xb5\x2f\xfd\x20\x04\x21\0\0"
                                         "1234")},
                           {0}};
    struct cm_str out;
    struct cm_error err;

    check_array(arena, gzip, 2, TWO("[4]", "[4]", ", \"compressor\": {\"id\": \"gzip\"}"), "1234");
    check_array(arena, zlib, 2, TWO("[4]", "[4]", ", \"compressor\": {\"id\": \"zlib\"}"), "1234");
    if (cm_zstd_read(arena, zstd[0].bytes, 4, &out, &err) == CM_UNSUPPORTED)
        return; /* not installed */
    CHECK_STR(out, "1234");
    check_array(arena, zstd, 2, TWO("[4]", "[4]", ", \"compressor\": {\"id\": \"zstd\"}"), "1234");
    CHECK_FAILS(cm_zstd_read(arena, zstd[0].bytes, 3, &out, &err), CM_LIMIT, &err, "more than 3");
    CHECK_FAILS(cm_zstd_read(arena, (struct cm_str){zstd[0].bytes.data, 10}, 4, &out, &err),
                CM_BAD_MODEL, &err, "end too early");
    CHECK_FAILS(cm_zstd_read(arena, BYTES("no frame"), 4, &out, &err), CM_BAD_MODEL, &err,
                "broken");
}

void test_zarr__chunks_may_be_packed(void)
{
    check_in_arena(packed);
}

static void refusals(struct cm_arena *arena)
{
    struct value short_one[] = {{"a/0", BYTES("123")}, {0}};
    struct value packed_one[] = {{"a/0", BYTES("\x28\xb5\x2f\xfd\x20\x04\x21\0\0"
                                               "1234")},
                                 {0}};
    static const struct {
        const char *description;
        enum cm_status status;
        const char *why;
    } wrong[] = {
        {"", CM_BAD_MODEL, "empty"},
        {TWO("[4]", "[4]", ""), CM_BAD_MODEL, "has 3 bytes, needs 4"},
        {TWO("[4]", "[0]", ""), CM_BAD_MODEL, "shape of the array"},
        {TWO("[4]", "[4, 4]", ""), CM_BAD_MODEL, "shape of the array"},
        {TWO("[1000000000]", "[1]", ""), CM_LIMIT, "chunks"},
        {TWO("[4]", "[4]", ", \"compressor\": {\"id\": \"blosc\"}"), CM_UNSUPPORTED, "'blosc'"},
        {TWO("[4]", "[4]", ", \"filters\": [{}]"), CM_UNSUPPORTED, "filters"},
        {"{\"shape\": [1], \"chunks\": [1], \"dtype\": \">f4\"}", CM_UNSUPPORTED, "'>f4'"},
    };
    struct cm_saved_tensor *tensor;
    struct cm_error err;

    for (size_t i = 0; i < CM_COUNT(wrong); i++) {
        struct cm_zarr_store store = {.get = get, .arg = short_one, .pieces_left = 100};

        CHECK_FAILS(cm_zarr_read(arena, &store, CM_STR("a"), cm_str(wrong[i].description), 2,
                                 &tensor, &err),
                    wrong[i].status, &err, wrong[i].why);
    }
    struct cm_zarr_store store = {.get = get, .arg = packed_one, .pieces_left = 100};
    CHECK_FAILS(cm_zarr_read(arena, &store, CM_STR("a"),
                             CM_STR(TWO("[5]", "[5]", ", \"compressor\": {\"id\": \"zstd\"}")), 2,
                             &tensor, &err),
                CM_BAD_MODEL, &err, "decompresses to 4 bytes, expected 5");
    CHECK_FAILS(cm_packed_check(CM_PACKED_GZIP, BYTES("1234567890"), (size_t)1 << 40, &err),
                CM_BAD_MODEL, &err, "cannot hold");
}

void test_zarr__wrong_arrays_are_refused(void)
{
    check_in_arena(refusals);
}
