/* Reads a checkpoint and touches every byte of it, so that sanitizers see what goes too far. */
// SPDX-License-Identifier: Apache-2.0
#include "touch_saved.h"

#include "convert/frameworks/jax/flax_state.h"

static volatile unsigned kept; /* so that nothing is optimized away */
enum { READ_MAX = 1 << 16 };

struct job {
    const struct cm_format *format;
    const char *path;
    struct cm_error err;
};

static void touch_tensor(const struct cm_saved_tensor *tensor)
{
    static uint8_t room[READ_MAX];
    const int64_t count = cm_shape_elements(&tensor->shape);
    struct cm_saved_reader reader = {0};
    size_t packed = 0;

    for (size_t i = 0; i < tensor->pieces.count; i++)
        packed += tensor->pieces.items[i].unpacked_size;
    if (count * (int64_t)cm_dtype_size(tensor->dtype) <= READ_MAX && packed <= READ_MAX &&
        cm_saved_tensor_read(&reader, tensor, 0, count, room, NULL) == CM_OK)
        for (size_t i = 0; i < (size_t)count * cm_dtype_size(tensor->dtype); i++)
            kept += room[i];
    cm_saved_reader_release(&reader);
}

static enum cm_status touch(struct cm_guard *guard, void *arg)
{
    struct job *job = arg;
    struct cm_saved_place place;
    struct cm_arena arena;

    cm_arena_init(&arena, guard);
    if (cm_place_open(&arena, job->path, 0, &place, &job->err) == CM_OK) {
        struct cm_saved *saved = cm_saved_new(&arena, place.path);
        const struct cm_item *tree;

        (void)job->format->recognize(&place);
        if (job->format->read(&place, saved, &job->err) == CM_OK) {
            for (size_t i = 0; i < saved->entries.count; i++)
                touch_tensor(saved->entries.items[i].tensor);
            for (size_t i = 0; i < saved->facts.count; i++)
                kept += (unsigned)cm_item_json(&arena, saved->facts.items[i].value, 0).size;
            (void)!cm_jax_tree(&arena, saved, &tree, &job->err);
        }
    }
    cm_arena_release(&arena);
    return CM_OK;
}

void touch_saved(const struct cm_format *format, const char *path)
{
    struct job job = {.format = format, .path = path};

    (void)!cm_guarded((size_t)256 << 20, &job.err, touch, &job);
}
