/* Stored models and hand-made bytes for the tests of onnx/. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/wire_case.h"

#include "base/file.h"

/* The last two are written as no official writer would. */
const char *const wire_models[] = {
    "branches.onnx",
    "elements.onnx",
    "every_field.onnx",
    "external.onnx",
    "functions.onnx",
    "linear.onnx",
    "sparse.onnx",
    "strings.onnx",
    "training_gradient_at.onnx",
    "training_gradient_penalty.onnx",
    "training_linreg_sgd.onnx",
    "training_mlp_adam_initialized.onnx",
    "training_softmax_momentum_standard.onnx",
    "types.onnx",
    "foreign.onnx",
    "unpacked.onnx",
};
const size_t wire_model_count = CM_COUNT(wire_models);
const size_t wire_canonical_model_count = CM_COUNT(wire_models) - 2;

struct cm_str wire_file(struct cm_arena *arena, const char *name)
{
    char path[1024];
    struct cm_mapping mapping = {0};
    struct cm_error err = {0};

    snprintf(path, sizeof path, "%s/models/%s", TESTS_DIR, name);
    CHECK_OK(cm_file_map(path, true, &mapping, &err), &err);
    const struct cm_str bytes =
        cm_arena_str(arena, (struct cm_str){(const char *)mapping.data, mapping.size});
    cm_mapping_release(&mapping);
    CHECK(bytes.size > 0);
    return bytes;
}

void *wire_decode(struct cm_arena *arena, const struct cm_message_info *info, struct cm_str bytes)
{
    void *const msg = cm_arena_alloc(arena, info->size);
    struct cm_error err = {0};

    CHECK_OK(cm_decode(info, bytes, arena, msg, &err), &err);
    return msg;
}

struct cm_model_proto *wire_model(struct cm_arena *arena, struct cm_str bytes)
{
    return wire_decode(arena, &cm_model_info, bytes);
}

struct cm_str wire_encode(struct cm_arena *arena, const struct cm_message_info *info,
                          const void *msg)
{
    struct cm_str bytes = CM_STR_NONE;
    struct cm_error err = {0};

    CHECK_OK(cm_encode(info, msg, arena, &bytes, &err), &err);
    return bytes;
}

void wire_refuse(struct cm_arena *arena, const struct cm_message_info *info, struct cm_str bytes,
                 enum cm_status status, const char *part)
{
    void *const msg = cm_arena_alloc(arena, info->size);
    struct cm_error err = {0};

    CHECK_FAILS(cm_decode(info, bytes, arena, msg, &err), status, &err, part);
}

static enum cm_status forget(void *arg, const struct cm_message_info *info, struct cm_msg *msg)
{
    (void)arg, (void)info;
    msg->source = CM_STR_NONE;
    msg->changed = msg->has;
    return CM_OK;
}

void wire_forget(const struct cm_message_info *info, void *msg)
{
    CHECK_INT(cm_message_walk(info, msg, forget, NULL), CM_OK);
}

void wire_same_bytes(struct cm_str actual, struct cm_str expected)
{
    CHECK_INT(actual.size, expected.size);
    if (expected.size)
        assert_memory_equal(actual.data, expected.data, expected.size);
}

struct cm_str wire_varint(struct cm_arena *arena, uint64_t value, int padding)
{
    char *const out = cm_arena_alloc(arena, 24);
    size_t size = 0;

    for (; value > 0x7f; value >>= 7)
        out[size++] = (char)(value | 0x80);
    out[size++] = (char)value;
    while (padding-- > 0) {
        out[size - 1] = (char)(out[size - 1] | 0x80);
        out[size++] = 0;
    }
    return (struct cm_str){out, size};
}

struct cm_str wire_number(struct cm_arena *arena, uint32_t field, uint64_t value)
{
    return WIRE_JOIN(arena, wire_varint(arena, (uint64_t)field << 3, 0),
                     wire_varint(arena, value, 0));
}

struct cm_str wire_field(struct cm_arena *arena, uint32_t field, struct cm_str contents)
{
    return WIRE_JOIN(arena, wire_varint(arena, (uint64_t)field << 3 | 2, 0),
                     wire_varint(arena, contents.size, 0), contents);
}

struct cm_str wire_padded(struct cm_arena *arena, uint32_t field, struct cm_str contents)
{
    return WIRE_JOIN(arena, wire_varint(arena, (uint64_t)field << 3 | 2, 1),
                     wire_varint(arena, contents.size, 2), contents);
}

struct cm_str wire_repeat(struct cm_arena *arena, struct cm_str piece, size_t times)
{
    char *const out = cm_arena_alloc(arena, piece.size * times);

    for (size_t i = 0; i < times; i++)
        memcpy(out + i * piece.size, piece.data, piece.size);
    return (struct cm_str){out, piece.size * times};
}

struct cm_str wire_join(struct cm_arena *arena, const struct cm_str *pieces)
{
    size_t size = 0, at = 0;

    for (const struct cm_str *piece = pieces; piece->data; piece++)
        size += piece->size;
    char *const out = cm_arena_alloc(arena, size);
    for (const struct cm_str *piece = pieces; piece->data; piece++) {
        if (piece->size)
            memcpy(out + at, piece->data, piece->size);
        at += piece->size;
    }
    return (struct cm_str){out, size};
}
