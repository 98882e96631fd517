/* What outlives a trainer: its state in the model's messages, its random state as bytes. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/tensor_data.h"
#include "train/trainer_parts.h"

/* ---- values ---- */

/* A tensor whose values are what they were keeps its bytes. */
static enum cm_status find_change(const struct cm_trainer *trainer,
                                  const struct cm_variable *variable, bool *changed,
                                  struct cm_error *err)
{
    const size_t bytes = cm_tensor_bytes(&variable->now);
    struct cm_tensor stored;

    CM_TRY(cm_variable_load(trainer, variable, &stored, err));
    *changed = bytes && memcmp(stored.data, variable->now.data, bytes) != 0;
    cm_variable_forget(trainer, &stored);
    return CM_OK;
}

static enum cm_status store_variable(const struct cm_trainer *trainer, struct cm_variable *variable,
                                     struct cm_arena *arena, struct cm_error *err)
{
    struct cm_tensor_proto *proto = variable->proto;
    size_t room;
    bool changed;

    CM_TRY(find_change(trainer, variable, &changed, err));
    if (!changed)
        return CM_OK;
    if (!cm_tensor_proto_room(proto, &variable->now, &room))
        return cm_fail(err, CM_LIMIT, "tensor '%.*s' is too large", CM_STR_FMT(proto->name));
    cm_tensor_proto_replace(proto, &variable->now, room ? cm_arena_alloc(arena, room) : NULL);
    return CM_OK;
}

enum cm_status cm_trainer_save(struct cm_trainer *trainer, struct cm_arena *scratch,
                               struct cm_model_file *file, const char *path,
                               const struct cm_save_options *options, struct cm_save_report *report,
                               struct cm_error *err)
{
    enum cm_status status = CM_OK;

    if (file != trainer->file)
        return cm_fail(err, CM_BAD_ARGUMENT, "the model is not the one that was trained");
    struct cm_tensor_proto *before =
        CM_NEW_ARRAY(scratch, struct cm_tensor_proto, trainer->n_variables);
    struct cm_tensor_proto *changed =
        CM_NEW_ARRAY(scratch, struct cm_tensor_proto, trainer->n_variables);
    /* All memory first: from here to the end nothing may unwind and leave the messages changed. */
    for (size_t i = 0; i < trainer->n_variables && !status; i++) {
        struct cm_variable *variable = &trainer->variables[i];

        before[i] = *variable->proto;
        status = store_variable(trainer, variable, scratch, err);
        changed[i] = *variable->proto;
        *variable->proto = before[i];
    }
    if (status)
        return status;
    for (size_t i = 0; i < trainer->n_variables; i++)
        *trainer->variables[i].proto = changed[i];
    status = cm_model_save(file, path, options, report, err);
    for (size_t i = 0; i < trainer->n_variables; i++)
        *trainer->variables[i].proto = before[i];
    return status;
}

/* ---- random state ---- */

/* Per entry: 8 bytes of length, then what the session gave; at the end what the second half of a
 * step has, as a rule nothing. Initialization is not part of it: it runs before the first step. */
enum cm_status cm_trainer_random(const struct cm_trainer *trainer, struct cm_arena *arena,
                                 struct cm_str *out, struct cm_error *err)
{
    struct cm_str *parts = CM_NEW_ARRAY(arena, struct cm_str, trainer->n_entries);
    size_t size = 0, at = 0;

    for (size_t k = 0; k < trainer->n_entries; k++) {
        struct cm_session *session = trainer->entries[k].step.session;

        if (session)
            CM_TRY(cm_session_random(session, arena, &parts[k], err));
        size += sizeof(uint64_t) + parts[k].size;
    }
    struct cm_str half = CM_STR_NONE;
    if (trainer->options.split)
        CM_TRY(cm_session_random(trainer->entries[0].update.session, arena, &half, err));
    size += half.size;
    char *bytes = cm_arena_alloc(arena, size);
    for (size_t k = 0; k < trainer->n_entries; k++) {
        const uint64_t length = parts[k].size;

        memcpy(bytes + at, &length, sizeof length);
        at += sizeof length;
        if (length)
            memcpy(bytes + at, parts[k].data, length);
        at += parts[k].size;
    }
    if (half.size)
        memcpy(bytes + at, half.data, half.size);
    *out = (struct cm_str){bytes, size};
    return CM_OK;
}

static bool next_part(struct cm_str bytes, size_t *at, struct cm_str *part)
{
    uint64_t length;

    if (bytes.size - *at < sizeof length)
        return false;
    memcpy(&length, bytes.data + *at, sizeof length);
    *at += sizeof length;
    if (length > bytes.size - *at)
        return false;
    *part = (struct cm_str){bytes.data + *at, (size_t)length};
    *at += (size_t)length;
    return true;
}

static enum cm_status set_parts(struct cm_trainer *trainer, struct cm_str bytes,
                                struct cm_error *err)
{
    size_t at = 0;

    for (size_t k = 0; k < trainer->n_entries; k++) {
        struct cm_session *session = trainer->entries[k].step.session;
        struct cm_str part;

        if (!next_part(bytes, &at, &part) || (!session && part.size))
            return cm_fail(err, CM_BAD_ARGUMENT, "the random state is of another training");
        if (session)
            CM_TRY(cm_session_set_random(session, part, err));
    }
    if (trainer->options.split) {
        const struct cm_str half = {bytes.data + at, bytes.size - at};
        return cm_session_set_random(trainer->entries[0].update.session, half, err);
    }
    return at == bytes.size
               ? CM_OK
               : cm_fail(err, CM_BAD_ARGUMENT, "the random state is of another training");
}

/* Each session looks at its own part only: when one refuses, those before it get back theirs. */
enum cm_status cm_trainer_set_random(struct cm_trainer *trainer, struct cm_arena *scratch,
                                     struct cm_str bytes, struct cm_error *err)
{
    struct cm_error unused;
    struct cm_str before;

    CM_TRY(cm_trainer_random(trainer, scratch, &before, err));
    const enum cm_status status = set_parts(trainer, bytes, err);
    if (status)
        (void)!set_parts(trainer, before, &unused);
    else
        cm_trainer_abandon(trainer); /* a half of a step that drew from another state */
    return status;
}
