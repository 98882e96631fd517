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

/* copied: what would be borrowed from the variable is copied into arena too. */
static enum cm_status store_variable(const struct cm_trainer *trainer, struct cm_variable *variable,
                                     bool copied, struct cm_arena *arena, struct cm_error *err)
{
    struct cm_tensor_proto *proto = variable->proto;
    struct cm_tensor values = variable->now;
    size_t room;
    bool changed;

    CM_TRY(find_change(trainer, variable, &changed, err));
    if (!changed)
        return CM_OK;
    if (!cm_tensor_proto_room(proto, &variable->now, &room))
        return cm_fail(err, CM_LIMIT, "tensor '%.*s' is too large", CM_STR_FMT(proto->name));
    if (copied && !room) {
        values.data = cm_arena_alloc(arena, cm_tensor_bytes(&values));
        memcpy(values.data, variable->now.data, cm_tensor_bytes(&values));
    }
    cm_tensor_proto_replace(proto, &values, room ? cm_arena_alloc(arena, room) : NULL);
    return CM_OK;
}

/* Messages of the variables that are others for a while. */
struct shown_state {
    struct cm_trainer *trainer;
    struct cm_tensor_proto *before, *changed;
};

static void exchange(const struct cm_trainer *trainer, const struct cm_tensor_proto *protos)
{
    for (size_t i = 0; i < trainer->n_variables; i++)
        *trainer->variables[i].proto = protos[i];
}

/* Everything that needs memory; the messages are as before. */
static enum cm_status make_changes(struct shown_state *state, bool copied, struct cm_arena *arena,
                                   struct cm_arena *scratch, struct cm_error *err)
{
    struct cm_trainer *trainer = state->trainer;
    enum cm_status status = CM_OK;

    state->before = CM_NEW_ARRAY(scratch, struct cm_tensor_proto, trainer->n_variables);
    state->changed = CM_NEW_ARRAY(scratch, struct cm_tensor_proto, trainer->n_variables);
    for (size_t i = 0; i < trainer->n_variables && !status; i++) {
        struct cm_variable *variable = &trainer->variables[i];

        state->before[i] = *variable->proto;
        status = store_variable(trainer, variable, copied, arena, err);
        state->changed[i] = *variable->proto;
        *variable->proto = state->before[i];
    }
    return status;
}

static void put_back(void *what)
{
    const struct shown_state *state = what;

    exchange(state->trainer, state->before);
}

enum cm_status cm_trainer_show_state(struct cm_trainer *trainer, struct cm_arena *arena,
                                     struct cm_arena *scratch, struct cm_error *err)
{
    struct shown_state *state = CM_NEW(scratch, struct shown_state);

    state->trainer = trainer;
    CM_TRY(make_changes(state, true, arena, scratch, err));
    cm_arena_defer(scratch, put_back, state);
    exchange(trainer, state->changed);
    return CM_OK;
}

enum cm_status cm_trainer_save(struct cm_trainer *trainer, struct cm_arena *scratch,
                               struct cm_model_file *file, const char *path,
                               const struct cm_save_options *options, struct cm_save_report *report,
                               struct cm_error *err)
{
    struct shown_state state = {.trainer = trainer};

    if (file->model.graph != trainer->file->model.graph)
        return cm_fail(err, CM_BAD_ARGUMENT, "the model is not the one that was trained");
    /* All memory first: from here to the end nothing may unwind and leave the messages changed. */
    CM_TRY(make_changes(&state, false, scratch, scratch, err));
    exchange(trainer, state.changed);
    const enum cm_status status = cm_model_save(file, path, options, report, err);
    exchange(trainer, state.before);
    return status;
}

/* ---- random state ---- */

/* The session that part i is of: those of steps, or of their halves. NULL: it has nothing to run.
 */
static struct cm_session *session_of(const struct cm_trainer *trainer, size_t i)
{
    const size_t k = i % trainer->n_entries;

    return i < trainer->n_entries ? trainer->entries[k].step.session
                                  : trainer->entries[k].update.session;
}

static size_t count_parts(const struct cm_trainer *trainer)
{
    return trainer->n_entries * (trainer->options.split ? 2 : 1);
}

void cm_trainer_draws(const struct cm_trainer *trainer, size_t entry, size_t *streams,
                      uint64_t *seed)
{
    const struct cm_graph *graph = trainer->entries[entry].step.graph;

    *streams = graph ? graph->n_streams : 0;
    *seed = cm_program_seed(trainer, 2 * entry);
}

/* Per session: 8 bytes of length, then what it gave. Initialization is not part of it: it runs
 * before the first step. */
enum cm_status cm_trainer_random(const struct cm_trainer *trainer, struct cm_arena *arena,
                                 struct cm_str *out, struct cm_error *err)
{
    const size_t n_parts = count_parts(trainer);
    struct cm_str *parts = CM_NEW_ARRAY(arena, struct cm_str, n_parts);
    size_t size = 0, at = 0;

    for (size_t i = 0; i < n_parts; i++) {
        struct cm_session *session = session_of(trainer, i);

        if (session)
            CM_TRY(cm_session_random(session, arena, &parts[i], err));
        size += sizeof(uint64_t) + parts[i].size;
    }
    char *bytes = cm_arena_alloc(arena, size);
    for (size_t i = 0; i < n_parts; i++) {
        const uint64_t length = parts[i].size;

        memcpy(bytes + at, &length, sizeof length);
        at += sizeof length;
        if (length)
            memcpy(bytes + at, parts[i].data, length);
        at += parts[i].size;
    }
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

    for (size_t i = 0; i < count_parts(trainer); i++) {
        struct cm_session *session = session_of(trainer, i);
        struct cm_str part;

        if (!next_part(bytes, &at, &part) || (!session && part.size))
            return cm_fail(err, CM_BAD_ARGUMENT, "the random state is of another training");
        if (session)
            CM_TRY(cm_session_set_random(session, part, err));
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
