/* Checkpoints. */
// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint.h"

#include "base/map.h"
#include "io/json_read.h"

/* Names in the file: "state/W", and some that hold bytes. */
#define STATE      "state/"
#define RANDOM     "cameo/random"
#define CONDITIONS "cameo/conditions"
#define NOTES      "cameo/notes"
#define STEPS      "cameo/steps"
enum { N_OTHERS = 4 }; /* that are no state */

static struct cm_array bytes_array(const char *name, struct cm_str bytes)
{
    struct cm_array array = {.name = cm_str(name), .value.kind = CM_KIND_TENSOR};
    struct cm_shape shape = CM_SHAPE((int64_t)bytes.size);

    /* Only read, so casting const away is sound. */
    array.value.tensor = cm_tensor_borrow(CM_UINT8, &shape, (void *)(uintptr_t)bytes.data);
    return array;
}

/* Types that the format has not, or that do not fill bytes, are stored as their bytes. */
static bool is_plain(enum cm_dtype type)
{
    switch (type) {
    case CM_FLOAT:
    case CM_DOUBLE:
    case CM_FLOAT16:
    case CM_BFLOAT16:
    case CM_INT8:
    case CM_INT16:
    case CM_INT32:
    case CM_INT64:
    case CM_UINT8:
    case CM_BOOL:
        return true;
    default:
        return false;
    }
}

static struct cm_tensor stored_form(const struct cm_tensor *state)
{
    const struct cm_shape bytes = CM_SHAPE((int64_t)cm_tensor_bytes(state));

    return is_plain(state->type) ? *state : cm_tensor_borrow(CM_UINT8, &bytes, state->data);
}

static struct cm_str notes_text(struct cm_arena *arena, const struct cm_notes *notes)
{
    size_t size = 2, at = 0;
    struct cm_str *parts = CM_NEW_ARRAY(arena, struct cm_str, notes->count);

    for (size_t i = 0; i < notes->count; i++) {
        const struct cm_str key = cm_json_quote(arena, notes->items[i].key);
        const struct cm_str value = cm_json_quote(arena, notes->items[i].value);
        char *text = cm_arena_alloc(arena, key.size + value.size + 2);

        memcpy(text, key.data, key.size);
        text[key.size] = ':';
        memcpy(text + key.size + 1, value.data, value.size);
        parts[i] = (struct cm_str){text, key.size + value.size + 1};
        size += parts[i].size + 1;
    }
    char *all = cm_arena_alloc(arena, size + 1);
    all[at++] = '{';
    for (size_t i = 0; i < notes->count; i++) {
        if (i)
            all[at++] = ',';
        memcpy(all + at, parts[i].data, parts[i].size);
        at += parts[i].size;
    }
    all[at++] = '}';
    return (struct cm_str){all, at};
}

enum cm_status cm_checkpoint_write(const struct cm_trainer *trainer, struct cm_arena *scratch,
                                   const char *path, const struct cm_notes *conditions,
                                   const struct cm_notes *notes, struct cm_error *err)
{
    const size_t count = cm_trainer_state_count(trainer);
    struct cm_array *items = CM_NEW_ARRAY(scratch, struct cm_array, count + N_OTHERS);
    uint64_t *steps = CM_NEW(scratch, uint64_t);
    struct cm_str random;

    if (cm_trainer_is_computed(trainer))
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "a step is half done: apply its gradients before a checkpoint");
    for (size_t i = 0; i < count; i++) {
        const struct cm_str name = cm_trainer_state_name(trainer, i);
        char *full = cm_arena_alloc(scratch, sizeof STATE + name.size);

        memcpy(full, STATE, sizeof STATE - 1);
        if (name.size)
            memcpy(full + sizeof STATE - 1, name.data, name.size);
        items[i].name = (struct cm_str){full, sizeof STATE - 1 + name.size};
        items[i].value.kind = CM_KIND_TENSOR;
        items[i].value.tensor = stored_form(cm_trainer_state(trainer, i));
    }
    CM_TRY(cm_trainer_random(trainer, scratch, &random, err));
    *steps = cm_trainer_steps(trainer);
    items[count] = bytes_array(RANDOM, random);
    items[count + 1] = bytes_array(CONDITIONS, notes_text(scratch, conditions));
    items[count + 2] = bytes_array(NOTES, notes_text(scratch, notes));
    items[count + 3] = bytes_array(STEPS, (struct cm_str){(const char *)steps, sizeof *steps});
    return cm_arrays_save(scratch, path, items, count + N_OTHERS, err);
}

/* ---- reading ---- */

static enum cm_status find_bytes(const struct cm_arrays *arrays, const char *name,
                                 struct cm_str *out, struct cm_error *err)
{
    const struct cm_tensor *tensor = NULL;

    for (size_t i = 0; i < arrays->count; i++)
        if (cm_str_is(arrays->items[i].name, name))
            tensor = &arrays->items[i].value.tensor;
    if (!tensor || tensor->type != CM_UINT8)
        return cm_fail(err, CM_BAD_ARGUMENT, "it is no checkpoint: '%s' is missing", name);
    *out = (struct cm_str){tensor->data, cm_tensor_bytes(tensor)};
    return CM_OK;
}

static enum cm_status read_notes(struct cm_arena *arena, const struct cm_arrays *arrays,
                                 const char *name, struct cm_notes *out, struct cm_error *err)
{
    struct cm_json json;
    struct cm_str text;
    bool more;

    CM_TRY(find_bytes(arrays, name, &text, err));
    cm_json_init(&json, arena, text, err);
    CM_TRY(cm_json_open(&json, '{'));
    CM_TRY(cm_json_more(&json, '}', true, &more));
    while (more) {
        struct cm_note *note = CM_PUSH(arena, out);

        CM_TRY(cm_json_key(&json, &note->key));
        CM_TRY(cm_json_string(&json, &note->value));
        note->key = cm_arena_str(arena, note->key);
        note->value = cm_arena_str(arena, note->value);
        CM_TRY(cm_json_more(&json, '}', false, &more));
    }
    return cm_json_end(&json);
}

/* Checkpoints have not always had conditions. */
static enum cm_status read_all_notes(struct cm_arena *arena, struct cm_checkpoint *checkpoint,
                                     struct cm_error *err)
{
    struct cm_error unused;
    struct cm_str text;

    CM_TRY(read_notes(arena, &checkpoint->arrays, NOTES, &checkpoint->notes, err));
    if (find_bytes(&checkpoint->arrays, CONDITIONS, &text, &unused))
        return cm_fail(err, CM_UNSUPPORTED,
                       "an older version of Cameo wrote this checkpoint and did not record the "
                       "conditions of the run: it cannot be resumed, train again from the start");
    return read_notes(arena, &checkpoint->arrays, CONDITIONS, &checkpoint->conditions, err);
}

enum cm_status cm_checkpoint_open(struct cm_arena *arena, const char *path,
                                  struct cm_checkpoint *out, struct cm_error *err)
{
    /* Copied: checkpoints are removed while others are written. */
    const struct cm_arrays_options options = {.format = CM_ARRAYS_SAFETENSORS, .copy = true};

    *out = (struct cm_checkpoint){.path = path};
    CM_TRY(cm_arrays_open(arena, path, &options, &out->arrays, err));
    return cm_error_context(err, read_all_notes(arena, out, err), "%s", path);
}

/* Everything is looked at before anything is changed. */
static enum cm_status check_states(const struct cm_trainer *trainer, struct cm_arena *scratch,
                                   const struct cm_arrays *arrays, const struct cm_tensor **found,
                                   struct cm_error *err)
{
    const size_t count = cm_trainer_state_count(trainer), prefix = sizeof STATE - 1;
    struct cm_map places = {0};

    for (size_t i = 0; i < arrays->count; i++) {
        const struct cm_str name = arrays->items[i].name;

        if (cm_str_starts(name, STATE))
            *cm_map_insert(&places, scratch,
                           (struct cm_str){name.data + prefix, name.size - prefix}, NULL) = i;
    }
    if (arrays->count != count + N_OTHERS)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "it holds %zu variables, the model has %zu: it is of another model",
                       arrays->count < N_OTHERS ? 0 : arrays->count - N_OTHERS, count);
    for (size_t i = 0; i < count; i++) {
        const struct cm_str name = cm_trainer_state_name(trainer, i);
        const struct cm_tensor wanted = stored_form(cm_trainer_state(trainer, i));

        const uint64_t *place = cm_map_find(&places, name);

        found[i] = place ? &arrays->items[*place].value.tensor : NULL;
        if (!found[i])
            return cm_fail(err, CM_BAD_ARGUMENT,
                           "it has no variable '%.*s': it is of another model", CM_STR_FMT(name));
        if (found[i]->type != wanted.type || !cm_shape_equal(&found[i]->shape, &wanted.shape))
            return cm_fail(err, CM_BAD_ARGUMENT,
                           "its variable '%.*s' has another type or shape: it is of another model",
                           CM_STR_FMT(name));
    }
    return CM_OK;
}

static enum cm_status restore(struct cm_trainer *trainer, struct cm_arena *scratch,
                              const struct cm_arrays *arrays, struct cm_error *err)
{
    const size_t count = cm_trainer_state_count(trainer);
    const struct cm_tensor **found = CM_NEW_ARRAY(scratch, const struct cm_tensor *, count);
    struct cm_str random, steps;
    uint64_t number;

    CM_TRY(find_bytes(arrays, RANDOM, &random, err));
    CM_TRY(find_bytes(arrays, STEPS, &steps, err));
    if (steps.size != sizeof number)
        return cm_fail(err, CM_BAD_ARGUMENT, "its number of steps has %zu bytes", steps.size);
    CM_TRY(check_states(trainer, scratch, arrays, found, err));
    CM_TRY(cm_trainer_set_random(trainer, scratch, random, err));
    for (size_t i = 0; i < count; i++) {
        struct cm_tensor value = *cm_trainer_state(trainer, i);

        value.data = found[i]->data;
        CM_TRY(cm_trainer_set_state(trainer, i, &value, err));
    }
    memcpy(&number, steps.data, sizeof number);
    cm_trainer_set_steps(trainer, number);
    return CM_OK;
}

enum cm_status cm_checkpoint_restore(const struct cm_checkpoint *checkpoint,
                                     struct cm_trainer *trainer, struct cm_arena *scratch,
                                     struct cm_error *err)
{
    return cm_error_context(err, restore(trainer, scratch, &checkpoint->arrays, err), "%s",
                            checkpoint->path);
}
