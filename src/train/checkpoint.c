/* Checkpoints. */
// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint.h"

#include "base/crowd.h"
#include "base/machine.h"
#include "bytes/json_read.h"
#include "train/trainer_parts.h"

#include <inttypes.h>

/* Names in the file: "state/W", four that hold bytes and one of doubles. */
#define STATE      "state/"
#define RANDOM     "cameo/random"
#define CONDITIONS "cameo/conditions"
#define NOTES      "cameo/notes"
#define STEPS      "cameo/steps"
#define RECORD     "cameo/loop"
enum { N_OTHERS = 5 }; /* that are no state */

/* Only read, so casting const away is sound. */
static struct cm_array one_array(const char *name, enum cm_dtype type, const void *data,
                                 size_t count)
{
    const struct cm_shape shape = CM_SHAPE((int64_t)count);

    return (struct cm_array){
        .name = cm_str(name),
        .value = {.kind = CM_KIND_TENSOR,
                  .tensor = cm_tensor_borrow(type, &shape, (void *)(uintptr_t)data)}};
}

static struct cm_array text_array(const char *name, struct cm_str text)
{
    return one_array(name, CM_UINT8, text.data, text.size);
}

/* Types that the format has not, or that do not fill bytes, are stored as their bytes. */
static bool is_plain(enum cm_dtype type)
{
    return type == CM_FLOAT || type == CM_DOUBLE || type == CM_FLOAT16 || type == CM_BFLOAT16 ||
           type == CM_INT8 || type == CM_INT16 || type == CM_INT32 || type == CM_INT64 ||
           type == CM_UINT8 || type == CM_BOOL;
}

static struct cm_tensor stored_form(const struct cm_tensor *state)
{
    const struct cm_shape bytes = CM_SHAPE((int64_t)cm_tensor_bytes(state));

    return is_plain(state->type) ? *state : cm_tensor_borrow(CM_UINT8, &bytes, state->data);
}

/* ---- conditions ---- */

static const char *instruction_set(void)
{
#if defined(__x86_64__)
    static const char *const names[] = {
        [CM_PLAIN] = "sse2", [CM_AVX2] = "avx2", [CM_AVX512] = "avx512"};

    return names[cm_this_machine()];
#elif defined(__aarch64__)
    return "aarch64";
#else
    return "other";
#endif
}

/* Those of the trainer, then more. Which passes there are follows from the version. */
static struct cm_notes all_conditions(struct cm_arena *arena, const struct cm_trainer *trainer,
                                      const struct cm_notes *more)
{
    const struct cm_trainer_options *o = &trainer->options;
    const struct cm_note own[] = {
        {CM_STR("cameo"), cm_str(CM_VERSION_STRING)},
        {CM_STR("instructions"), cm_str(instruction_set())},
        {CM_STR("backend"), cm_str(o->backend_versions ? o->backend_versions : "reference")},
        {CM_STR("threads"), cm_arena_printf(arena, "%d", o->threads > 0 ? o->threads : cm_cores())},
        {CM_STR("passes"),
         cm_arena_printf(arena, "all%s%s%s%s", o->with_passes ? " with " : "",
                         o->with_passes ? o->with_passes : "", o->without_passes ? " without " : "",
                         o->without_passes ? o->without_passes : "")},
        {CM_STR("seed"), cm_arena_printf(arena, "%" PRIu64, o->seed)}};
    struct cm_notes all = {0};

    for (size_t i = 0; i < CM_COUNT(own); i++)
        *CM_PUSH(arena, &all) = own[i];
    for (size_t i = 0; i < more->count; i++)
        *CM_PUSH(arena, &all) = (struct cm_note){cm_arena_str(arena, more->items[i].key),
                                                 cm_arena_str(arena, more->items[i].value)};
    return all;
}

static struct cm_str find_note(const struct cm_notes *notes, struct cm_str key)
{
    for (size_t i = 0; i < notes->count; i++)
        if (cm_str_equal(notes->items[i].key, key))
            return notes->items[i].value;
    return CM_STR_NONE;
}

/* Every condition of now must be among those that were, with the same value. */
static enum cm_status compare(const struct cm_notes *were, const struct cm_notes *now,
                              const struct cm_resume_options *options, struct cm_error *err)
{
    char list[CM_ERROR_SIZE - 200] = "";
    size_t used = 0;

    for (size_t i = 0; i < now->count; i++) {
        const struct cm_str key = now->items[i].key, value = now->items[i].value;
        const struct cm_str was = find_note(were, key);

        if (!was.data && cm_str_is(key, "data"))
            continue; /* checkpoints have not always had it */
        if (!was.data)
            return cm_fail(err, CM_BAD_ARGUMENT,
                           "the checkpoint does not record the condition '%.*s': another kind of "
                           "run wrote it",
                           CM_STR_FMT(key));
        if (cm_str_equal(was, value))
            continue;
        if (options->difference)
            options->difference(options->difference_arg, cm_str_text(key), cm_str_text(was),
                                cm_str_text(value));
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used,
                                     "%s%.80s was %.80s, now it is %.80s", used ? "; " : "",
                                     cm_str_text(key), cm_str_text(was), cm_str_text(value));
    }
    if (!used || options->anyway)
        return CM_OK;
    return cm_fail(err, CM_BAD_ARGUMENT,
                   "the checkpoint was written under other conditions, the result would not be "
                   "that of one run: %s",
                   list);
}

/* ---- writing ---- */

static struct cm_str notes_text(struct cm_arena *arena, const struct cm_notes *notes)
{
    struct cm_str all = CM_STR("{");

    for (size_t i = 0; i < notes->count; i++)
        all = cm_arena_printf(arena, "%s%s%s:%s", cm_str_text(all), i ? "," : "",
                              cm_json_quote(arena, notes->items[i].key).data,
                              cm_json_quote(arena, notes->items[i].value).data);
    return cm_arena_printf(arena, "%s}", cm_str_text(all));
}

enum cm_status cm_checkpoint_write(const struct cm_checkpoint *checkpoint,
                                   const struct cm_trainer *trainer, struct cm_arena *scratch,
                                   struct cm_error *err)
{
    const size_t count = cm_trainer_state_count(trainer);
    const uint64_t steps = cm_trainer_steps(trainer);
    const struct cm_notes conditions = all_conditions(scratch, trainer, &checkpoint->conditions);
    struct cm_array *items = CM_NEW_ARRAY(scratch, struct cm_array, count + N_OTHERS);
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
    struct cm_array *others = items + count;
    others[0] = text_array(RANDOM, random);
    others[1] = text_array(CONDITIONS, notes_text(scratch, &conditions));
    others[2] = text_array(NOTES, notes_text(scratch, &checkpoint->notes));
    others[3] = one_array(STEPS, CM_UINT8, &steps, sizeof steps);
    others[4] = one_array(RECORD, CM_DOUBLE, checkpoint->record, checkpoint->n_record);
    return (checkpoint->in_folder ? cm_arrays_save_inside : cm_arrays_save)(
        scratch, checkpoint->path, items, count + N_OTHERS, err);
}

/* ---- reading ---- */

static const struct cm_tensor *find_array(const struct cm_arrays *arrays, const char *name,
                                          enum cm_dtype type)
{
    for (size_t i = 0; i < arrays->count; i++)
        if (cm_str_is(arrays->items[i].name, name) && arrays->items[i].value.tensor.type == type)
            return &arrays->items[i].value.tensor;
    return NULL;
}

static enum cm_status find_bytes(const struct cm_arrays *arrays, const char *name,
                                 struct cm_str *out, struct cm_error *err)
{
    const struct cm_tensor *tensor = find_array(arrays, name, CM_UINT8);

    if (!tensor)
        return cm_fail(err, CM_BAD_ARGUMENT, "not a checkpoint of Cameo: '%s' is missing", name);
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
static enum cm_status read_beside(struct cm_arena *arena, struct cm_checkpoint *out,
                                  struct cm_error *err)
{
    const struct cm_tensor *record = find_array(&out->arrays, RECORD, CM_DOUBLE);

    CM_TRY(read_notes(arena, &out->arrays, NOTES, &out->notes, err));
    if (!record || !find_array(&out->arrays, CONDITIONS, CM_UINT8))
        return cm_fail(err, CM_UNSUPPORTED,
                       "an older version of Cameo wrote this checkpoint and did not record the "
                       "conditions of the run: it cannot be resumed, train again from the start");
    out->record = record->data;
    out->n_record = (size_t)cm_tensor_count(record);
    return read_notes(arena, &out->arrays, CONDITIONS, &out->conditions, err);
}

enum cm_status cm_checkpoint_open(struct cm_arena *arena, const char *path,
                                  struct cm_checkpoint *out, struct cm_error *err)
{
    /* Copied: checkpoints are removed while others are written. */
    const struct cm_arrays_options options = {.format = CM_ARRAYS_SAFETENSORS, .copy = true};

    *out = (struct cm_checkpoint){.path = path};
    CM_TRY(cm_arrays_open(arena, path, &options, &out->arrays, err));
    return cm_error_context(err, read_beside(arena, out, err), "%s", path);
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
                              const struct cm_arrays *arrays, const struct cm_tensor *const *found,
                              struct cm_error *err)
{
    const size_t count = cm_trainer_state_count(trainer);
    struct cm_str random, steps;
    uint64_t number;

    CM_TRY(find_bytes(arrays, RANDOM, &random, err));
    CM_TRY(find_bytes(arrays, STEPS, &steps, err));
    if (steps.size != sizeof number)
        return cm_fail(err, CM_BAD_ARGUMENT, "its number of steps has %zu bytes", steps.size);
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

enum cm_status cm_checkpoint_resume(const struct cm_checkpoint *checkpoint,
                                    const struct cm_resume_options *options,
                                    struct cm_trainer *trainer, struct cm_arena *scratch,
                                    struct cm_error *err)
{
    const struct cm_notes now = all_conditions(scratch, trainer, &options->conditions);
    const struct cm_tensor **found =
        CM_NEW_ARRAY(scratch, const struct cm_tensor *, cm_trainer_state_count(trainer));
    enum cm_status status = check_states(trainer, scratch, &checkpoint->arrays, found, err);

    if (status == CM_OK)
        status = compare(&checkpoint->conditions, &now, options, err);
    if (status == CM_OK)
        status = restore(trainer, scratch, &checkpoint->arrays, found, err);
    return cm_error_context(err, status, "%s", checkpoint->path);
}
