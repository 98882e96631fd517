/* Any bytes as a model: refused with a sentence, or read so that they come back the same, and can
 * be changed. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/decode.h"
#include "onnx/encode.h"
#include "target.h"

struct input {
    struct cm_str bytes;
    struct cm_error err;
};

/* Changes one thing in each message, chosen by what its bytes are. */
static enum cm_status change(void *arg, const struct cm_message_info *info, struct cm_msg *msg)
{
    size_t *const visited = arg;
    const int f = (int)((msg->source.size + *visited) % (size_t)info->n_fields);

    ++*visited;
    if (*visited % 3 == 0)
        cm_msg_clear(msg, f);
    else if (cm_msg_has(msg, f))
        cm_msg_set(msg, f);
    if (*visited % 7 == 0) {
        msg->changed |= msg->has;
        msg->source = CM_STR_NONE;
    }
    return CM_OK;
}

static enum cm_status turn(struct cm_guard *guard, void *arg)
{
    struct input *const input = arg;
    struct cm_arena arena;
    struct cm_model_proto model = {0}, again = {0};
    struct cm_str written, rewritten;
    size_t visited = 0;

    cm_arena_init(&arena, guard);
    enum cm_status status = cm_decode(&cm_model_info, input->bytes, &arena, &model, &input->err);
    if (status == CM_OK) {
        fuzz_require(cm_encode(&cm_model_info, &model, &arena, &written, &input->err) == CM_OK);
        fuzz_require(written.size == input->bytes.size &&
                     (!written.size || !memcmp(written.data, input->bytes.data, written.size)));
        fuzz_require(cm_message_walk(&cm_model_info, &model, change, &visited) == CM_OK);
        fuzz_require(cm_encode(&cm_model_info, &model, &arena, &written, &input->err) == CM_OK);
        /* What is left has as many messages or fewer, but a smaller file allows less memory. */
        status = cm_decode(&cm_model_info, written, &arena, &again, &input->err);
        fuzz_require(status == CM_OK || status == CM_LIMIT);
    }
    if (status == CM_OK) {
        fuzz_require(cm_encode(&cm_model_info, &again, &arena, &rewritten, &input->err) == CM_OK);
        fuzz_require(cm_str_equal(written, rewritten));
        fuzz_require(cm_message_equal(&cm_model_info, &model, &again, &arena, NULL));
    }
    cm_arena_release(&arena);
    return status;
}

static void run_input(const uint8_t *data, size_t size)
{
    struct input input = {.bytes = {(const char *)data, size}};
    const enum cm_status status = cm_guarded((size_t)256 << 20, &input.err, turn, &input);

    fuzz_require(status == CM_OK || input.err.text[0]);
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    .mutate = mutate_model,
    .most_bytes = 8 * FUZZ_KIB,
    .memory_base = 2 * FUZZ_MIB,
    .memory_per_byte = 1024,
};
