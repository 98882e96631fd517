/* Sessions: compiled graphs and the contexts that runs lease. */
// SPDX-License-Identifier: Apache-2.0
#include "exec/session.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/thread.h"
#include "exec/program.h"
#include "graph/feeds.h"

/* What the lock protects takes nanoseconds, so that a thread that waits longer than this waits for
 * a thread that the system has stopped. */
enum { LOCK_TRIES = 64 };

void cm_session_lock(struct cm_session *session)
{
    for (int tries = 0; atomic_flag_test_and_set_explicit(&session->busy, memory_order_acquire);
         tries++)
        if (tries >= LOCK_TRIES)
            cm_thread_yield();
}

void cm_session_unlock(struct cm_session *session)
{
    atomic_flag_clear_explicit(&session->busy, memory_order_release);
}

/* ---- contexts ---- */

static void context_free(struct cm_context *context)
{
    for (size_t i = 0; context->slots && i < context->session->n_slots; i++)
        if (!context->session->constants[i])
            cm_datum_drop(&context->slots[i].datum);
    for (size_t i = 0; context->blocks && i < context->session->n_blocks; i++)
        cm_block_state_release(&context->blocks[i]);
    cm_free(context->randoms);
    cm_free(context->before);
    cm_free(context->slots);
    cm_free(context->blocks);
    cm_free(context->given);
    cm_free(context->results);
    cm_free(context->facts);
    cm_pool_free(context->pool);
    cm_free(context);
}

enum { POPULATED_SLOTS = 4096 };

static bool fill_context(struct cm_context *context)
{
    const struct cm_session *session = context->session;
    context->slots = cm_calloc(session->n_slots + 1, sizeof *context->slots);
    context->blocks = cm_calloc(session->n_blocks + 1, sizeof *context->blocks);
    context->randoms = cm_calloc(session->random.count + 1, sizeof *context->randoms);
    context->before = cm_calloc(session->random.count + 1, sizeof *context->before);
    context->given = cm_calloc(session->main->n_outputs + 1, sizeof *context->given);
    if (session->n_updates)
        context->results = cm_calloc(session->main->n_outputs + 1, sizeof *context->results);
    context->pool = cm_pool_new(0); /* the context counts, blocks and pool together */
    if (!context->slots || !context->blocks || !context->randoms || !context->before ||
        !context->given || !context->pool || (session->n_updates && !context->results))
        return false;
    if (session->n_slots > POPULATED_SLOTS) /* binding writes them all, one after the other */
        cm_memory_populate(context->slots, (session->n_slots + 1) * sizeof *context->slots);
    for (size_t i = 0; i < session->n_slots; i++) {
        if (!session->constants[i])
            continue;
        struct cm_slot *slot = &context->slots[i];
        slot->datum = (struct cm_datum){.kind = CM_KIND_TENSOR, .tensor = *session->constants[i]};
        slot->datum.tensor.buffer = NULL; /* the session keeps it */
        if (!slot->datum.tensor.layout)   /* contents that rules may read */
            slot->known = session->constants[i];
        slot->storage = CM_STORAGE_FOREIGN;
        slot->type = session->constant_types[i];
    }
    /* Runs at the same time draw different numbers. */
    for (size_t i = 0; i < session->random.count; i++)
        cm_node_seed_random(session->random.items[i]->node, session->options.seed,
                            (uint64_t)context->number << 32 |
                                session->random.items[i]->node->stream,
                            &context->randoms[i]);
    return true;
}

static enum cm_status lease(struct cm_session *session, struct cm_context **out,
                            struct cm_error *err)
{
    cm_session_lock(session);
    struct cm_context *context = session->free_contexts;
    if (context)
        session->free_contexts = context->next;
    const uint32_t number = context ? context->number : session->n_contexts++;
    cm_session_unlock(session);
    if (!context) {
        context = cm_calloc(1, sizeof *context);
        if (!context)
            return cm_fail(err, CM_NO_MEMORY, "no memory for another run");
        context->session = session;
        context->number = number;
        if (!fill_context(context)) {
            context_free(context);
            return cm_fail(err, CM_NO_MEMORY, "no memory for another run");
        }
    }
    *out = context;
    return CM_OK;
}

static void give_back(struct cm_context *context)
{
    struct cm_session *session = context->session;
    cm_session_lock(session);
    context->next = session->free_contexts;
    session->free_contexts = context;
    cm_session_unlock(session);
}

/* ---- sessions ---- */

static void list_kernels_of(struct cm_session *session, const struct cm_backend *backend, bool last)
{
    for (const struct cm_kernel *const *kernel = backend->kernels; *kernel; kernel++)
        if (((*kernel)->turn == CM_TURN_LAST) == last)
            *CM_PUSH(session->arena, &session->kernels) = *kernel;
}

/* In the order in which they are asked. */
static void list_kernels(struct cm_session *session)
{
    const char *name = session->options.backend;
    const struct cm_backend *only = name ? cm_backend_find(name) : NULL;
    for (int last = 0; last < 2; last++)
        for (size_t b = 0; b < cm_backend_count; b++)
            if (!name || cm_backends[b] == only)
                list_kernels_of(session, cm_backends[b], last);
}

enum cm_status cm_session_new(struct cm_graph *graph, const struct cm_session_options *options,
                              struct cm_session **out, struct cm_error *err)
{
    struct cm_arena *arena = cm_module_arena(graph->module);
    struct cm_session *session = CM_NEW(arena, struct cm_session);
    session->module = graph->module;
    session->arena = arena;
    if (options)
        session->options = *options;
    atomic_flag_clear(&session->busy);
    list_kernels(session);
    CM_TRY(cm_compile(session, graph, err));
    session->constant_types = CM_NEW_ARRAY(arena, const struct cm_type *, session->n_slots);
    size_t n_constants = 0;
    for (size_t i = 0; i < session->n_slots; i++)
        if (session->constants[i]) {
            session->constant_types[i] = cm_type_of_tensor(arena, session->constants[i]);
            n_constants++;
        }
    session->packed = cm_pack_table_new(arena, n_constants);
    session->aligned = CM_NEW_ARRAY(arena, struct cm_datum *, session->n_slots);
    session->defaults = CM_NEW_ARRAY(arena, const struct cm_tensor *, session->main->n_inputs);
    for (size_t i = 0; i < session->main->n_inputs; i++)
        CM_TRY(cm_value_default(session->module, graph->inputs[i], &session->defaults[i], err));
    session->team = cm_team_new(session->options.threads);
    if (!session->team)
        return cm_fail(err, CM_NO_MEMORY, "no memory for threads");
    *out = session;
    return CM_OK;
}

void cm_session_free(struct cm_session *session)
{
    if (!session)
        return;
    for (struct cm_context *context = session->free_contexts, *next; context; context = next) {
        next = context->next;
        context_free(context);
    }
    session->free_contexts = NULL;
    cm_drop_aligned(session);
    cm_kept_states_free(&session->states);
    cm_team_free(session->team);
    session->team = NULL;
}

/* ---- a run ---- */

struct request {
    struct cm_session *session;
    struct cm_context *context;
    const struct cm_datum *const *in;
    size_t n_in;
    struct cm_datum *out;
    size_t n_out;
    bool only_shapes; /* there need be no data */
    const struct cm_datum *given;
    struct cm_session_memory *memory;
    struct cm_error *err;
};

/* Tensor data that are not there are refused here: elsewhere shapes may do. */
static enum cm_status check_data(const struct cm_value_def *def, const struct cm_datum *datum,
                                 struct cm_error *err)
{
    if (datum->kind == CM_KIND_TENSOR && !datum->tensor.data && cm_tensor_count(&datum->tensor) > 0)
        return cm_fail(err, CM_BAD_ARGUMENT, "input '%.*s' has no data", CM_STR_FMT(def->name));
    return CM_OK;
}

static enum cm_status feed(struct request *r)
{
    struct cm_context *context = r->context;
    const struct cm_block *main = r->session->main;
    if (r->n_in != main->n_inputs || r->n_out != main->n_outputs)
        return cm_fail(r->err, CM_BAD_ARGUMENT,
                       "the graph takes %zu inputs and gives %zu outputs, not %zu and %zu",
                       main->n_inputs, main->n_outputs, r->n_in, r->n_out);
    for (size_t i = 0; i < r->n_in; i++) {
        const struct cm_value_def *def = cm_value_get(r->session->module, main->graph->inputs[i]);
        struct cm_datum *to = &context->slots[main->inputs[i]].datum;
        const struct cm_tensor *by_default = r->session->defaults[i];
        if (r->in[i])
            *to = *r->in[i]; /* borrowed */
        else if (by_default)
            *to = (struct cm_datum){.kind = CM_KIND_TENSOR, .tensor = *by_default};
        else if (def->fact.type->kind != CM_KIND_OPTIONAL)
            return cm_feed_missing(main->graph, i, r->err);
        to->tensor.buffer = NULL;
        CM_TRY(cm_feed_check(main->graph, i, to, NULL, r->err));
        if (!r->only_shapes)
            CM_TRY(check_data(def, to, r->err));
    }
    return CM_OK;
}

static struct cm_str output_name(const struct cm_session *session, size_t o)
{
    return cm_value_get(session->module, session->main->graph->outputs[o].value)->name;
}

enum cm_status cm_refuse_room(const struct cm_session *session, size_t o,
                              const struct cm_tensor *given, enum cm_dtype dtype,
                              const struct cm_shape *shape, struct cm_error *err)
{
    char has[100], room[100];
    return cm_fail(err, CM_BAD_ARGUMENT,
                   "output '%.*s' is %s of shape %s, the memory given for it is for %s of shape %s",
                   CM_STR_FMT(output_name(session, o)), cm_dtype_name(dtype),
                   cm_shape_print(shape, has, sizeof has), cm_dtype_name(given->type),
                   cm_shape_print(&given->shape, room, sizeof room));
}

/* Copies a result into memory the caller gave, where the run did not write it there itself. */
static enum cm_status copy_out(const struct cm_session *session, const struct cm_tensor *from,
                               const struct cm_tensor *to, size_t o, struct cm_error *err)
{
    if (from->data == to->data)
        return CM_OK;
    if (from->type != to->type || !cm_shape_equal(&from->shape, &to->shape))
        return cm_refuse_room(session, o, to, from->type, &from->shape, err);
    memcpy(to->data, from->data, cm_tensor_bytes(from));
    return CM_OK;
}

/* Characters may be the caller's or the model's: a result that outlives the run has its own. */
static enum cm_status own_strings(struct cm_datum *datum, struct cm_error *err)
{
    if (!cm_datum_has_strings(datum))
        return CM_OK;
    CM_TRY(cm_datum_separate(datum, err));
    for (size_t i = 0; i < datum->n_items; i++)
        CM_TRY(own_strings(&datum->items[i], err));
    if (datum->tensor.type != CM_STRING || !datum->tensor.data)
        return CM_OK;
    struct cm_tensor own;
    CM_TRY(cm_tensor_copy(&datum->tensor, &own, err));
    cm_tensor_drop(&datum->tensor);
    datum->tensor = own;
    return CM_OK;
}

static enum cm_status copy_given(struct request *r, size_t o)
{
    const struct cm_datum *datum = &r->context->slots[r->session->main->outputs[o]].datum;
    if (datum->kind != CM_KIND_TENSOR)
        return cm_fail(r->err, CM_BAD_ARGUMENT, "output '%.*s' is not a tensor",
                       CM_STR_FMT(output_name(r->session, o)));
    if (datum->tensor.type == CM_STRING) /* nobody would own the characters */
        return cm_fail(r->err, CM_BAD_ARGUMENT,
                       "output '%.*s' holds strings, which cannot be put into given memory",
                       CM_STR_FMT(output_name(r->session, o)));
    const struct cm_datum *given = r->context->results ? r->context->results : r->out;
    return copy_out(r->session, &datum->tensor, &given[o].tensor, o, r->err);
}

static void drop_collected(const struct request *r, size_t count)
{
    for (size_t i = 0; i < count; i++) /* nothing is held after a failure */
        if (!r->context->given[i])
            cm_datum_drop(&r->out[i]);
}

static enum cm_status collect(struct request *r)
{
    struct cm_context *context = r->context;
    const struct cm_block *main = r->session->main;
    for (size_t o = 0; o < r->n_out; o++)
        if (context->given[o])
            CM_TRY(copy_given(r, o));
    for (size_t o = 0; o < r->n_out; o++) {
        if (context->given[o])
            continue;
        enum cm_status status =
            cm_share_result(context, &context->slots[main->outputs[o]], &r->out[o], r->err);
        if (!status)
            status = own_strings(&r->out[o], r->err);
        if (!status)
            continue;
        drop_collected(r, o + 1);
        return status;
    }
    return CM_OK;
}

static void keep_random(struct cm_context *context)
{
    memcpy(context->before, context->randoms,
           context->session->random.count * sizeof *context->before);
    context->has_before = true;
}

static enum cm_status guarded_run(struct cm_guard *guard, void *arg)
{
    struct request *r = arg;
    struct cm_context *context = r->context;
    context->guard = guard;
    keep_random(context);
    CM_TRY(feed(r));
    for (size_t o = 0; o < r->n_out; o++)
        context->given[o] = r->out[o].tensor.data != NULL ||
                            (r->session->update_of && r->session->update_of[o] != CM_NO_SLOT);
    CM_TRY(cm_run_block(context, r->session->main, r->out, r->err));
    CM_TRY(collect(r));
    const enum cm_status status = cm_updates_run(context, r->err);
    if (status)
        drop_collected(r, r->n_out);
    else
        atomic_store(&r->session->has_run, true);
    return status;
}

/* After a run: inputs are the caller's again, results have their holders, and what a failed run
 * left is dropped. */
static void clean(struct cm_context *context, bool failed)
{
    const struct cm_session *session = context->session;
    for (size_t b = 0; b < (failed ? session->n_blocks : 1); b++)
        for (size_t i = 0; i < session->blocks[b]->n_inputs; i++)
            context->slots[session->blocks[b]->inputs[i]].datum = (struct cm_datum){0};
    cm_drop_results(context, session->main);
    for (size_t b = 0; failed && b < session->n_blocks; b++)
        cm_arena_reset(&context->blocks[b].arena); /* the step that failed kept something there */
    for (size_t i = 0; failed && i < session->n_slots; i++)
        if (!session->constants[i] &&
            (context->slots[i].datum.tensor.buffer || context->slots[i].datum.items))
            cm_datum_drop(&context->slots[i].datum);
}

/* Gives up all that can be made again; random numbers go on where they were. */
static void shrink(struct cm_context *context)
{
    for (size_t b = 0; b < context->session->n_blocks; b++)
        cm_block_state_release(&context->blocks[b]);
    context->block_bytes = 0;
}

/* Leases a context for what body does with it. */
static enum cm_status with_context(struct request *r, const struct cm_run_options *options,
                                   cm_guarded_fn *body)
{
    static const struct cm_run_options none = {0};
    struct cm_session *session = r->session;
    CM_TRY(lease(session, &r->context, r->err));
    r->context->options = options ? options : &none;
    r->context->pool_before = cm_pool_used(r->context->pool);
    r->context->live_around = 0;
    r->context->began_ns = cm_clock_ns();
    struct cm_team *before = cm_team_enter(session->team);
    const struct cm_buffer_source source = {cm_context_buffer, r->context};
    const struct cm_buffer_source *source_before = cm_buffer_enter(&source);
    struct cm_block_state *main = &r->context->blocks[session->main->number];
    main->running = true;
    const enum cm_status status = cm_guarded(0, r->err, body, r);
    main->running = false;
    cm_buffer_enter(source_before);
    cm_team_enter(before);
    clean(r->context, status != CM_OK);
    if (status == CM_NO_MEMORY || status == CM_LIMIT)
        shrink(r->context); /* what was being made may have been left half way */
    give_back(r->context);
    return status;
}

enum cm_status cm_session_run(struct cm_session *session, const struct cm_datum *const *in,
                              size_t n_in, struct cm_datum *out, size_t n_out,
                              const struct cm_run_options *options, struct cm_error *err)
{
    struct cm_error own;
    struct request r = {.session = session,
                        .in = in,
                        .n_in = n_in,
                        .out = out,
                        .n_out = n_out,
                        .err = err ? err : &own};
    return with_context(&r, options, guarded_run);
}

/* ---- measuring ---- */

static enum cm_status measure_results(const struct request *r, const struct cm_binding *binding)
{
    for (size_t i = 0; i < binding->places.count; i++) {
        const struct cm_place *place = &binding->places.items[i];
        struct cm_shape shape;
        int64_t count;
        size_t bytes;
        if (place->kind != CM_PLACE_RESULT || (r->given && r->given[place->offset].tensor.data) ||
            (r->session->update_of && r->session->update_of[place->offset] != CM_NO_SLOT))
            continue;
        if (!cm_type_shape(place->type, &shape) || !cm_shape_count(&shape, &count) ||
            !cm_dtype_bytes(place->type->dtype, count, &bytes) ||
            !cm_size_add(r->memory->results, bytes, &r->memory->results))
            return cm_fail(r->err, CM_LIMIT, "the results are too large for any memory");
    }
    return CM_OK;
}

static enum cm_status guarded_measure(struct cm_guard *guard, void *arg)
{
    struct request *r = arg;
    const struct cm_session *session = r->session;
    struct cm_binding *binding;
    r->context->guard = guard;
    CM_TRY(feed(r));
    CM_TRY(cm_bind_decide(r->context, session->main, &binding, r->err));
    *r->memory = (struct cm_session_memory){.block = cm_binding_bytes(binding)};
    memcpy(r->memory->most, binding->most, sizeof r->memory->most);
    for (size_t s = 0; s < binding->steps.count; s++) {
        const struct cm_bound_step *bound = binding->steps.items[s];
        r->memory->late += bound->step && (bound->at_run ||
                                           (bound->step->node->n_bodies && !bound->step->n_parts));
    }
    for (size_t i = 0; i < session->n_slots; i++)
        if (session->constants[i])
            r->memory->constants += cm_tensor_bytes(session->constants[i]);
    r->memory->packed = cm_packed_bytes(r->session);
    r->memory->aligned = cm_aligned_bytes(r->session);
    return measure_results(r, binding);
}

enum cm_status cm_session_measure(struct cm_session *session, const struct cm_datum *const *in,
                                  size_t n_in, const struct cm_datum *given,
                                  struct cm_session_memory *out, struct cm_error *err)
{
    struct cm_error own;
    struct request r = {.session = session,
                        .in = in,
                        .n_in = n_in,
                        .n_out = session->main->n_outputs,
                        .only_shapes = true,
                        .given = given,
                        .memory = out,
                        .err = err ? err : &own};
    return with_context(&r, NULL, guarded_measure);
}

void cm_session_sort_memory(struct cm_session *session, cm_memory_kind_fn *kind, void *arg)
{
    for (size_t s = 0; s < session->main->n_steps; s++) {
        struct cm_step *step = &session->main->steps[s];
        step->kind = kind(arg, step->node);
        for (size_t i = 0; i < step->n_parts; i++)
            step->parts[i].kind = step->kind;
    }
}

/* ---- random state ---- */

/* One generator as fixed fields, so that neither padding nor what is unused gets into a file. */
struct random_record {
    uint32_t number, kind, mt_next, block_next, has_gauss, reserved;
    uint64_t key, stream, counter;
    uint32_t block[4];
    double gauss;
};
_Static_assert(sizeof(struct random_record) == 72, "records have no padding");

enum { MT_BYTES = CM_MT_WORDS * sizeof(uint32_t) };

static size_t record_bytes(const struct cm_random *random)
{
    return sizeof(struct random_record) + (random->kind == CM_RANDOM_MT19937 ? MT_BYTES : 0);
}

enum cm_status cm_session_random(struct cm_session *session, struct cm_arena *arena,
                                 struct cm_str *out, struct cm_error *err)
{
    struct cm_context *context;
    size_t size = 0, at = 0;
    CM_TRY(lease(session, &context, err));
    give_back(context); /* before the arena may unwind: nobody else is running */
    for (size_t i = 0; i < session->random.count; i++)
        size += record_bytes(&context->randoms[i]);
    char *bytes = cm_arena_alloc(arena, size);
    for (size_t i = 0; i < session->random.count; i++) {
        const struct cm_random *random = &context->randoms[i];
        struct random_record record = {.number = session->random.items[i]->node->stream,
                                       .kind = (uint32_t)random->kind,
                                       .has_gauss = random->has_gauss,
                                       .gauss = random->has_gauss ? random->gauss : 0};
        if (random->kind == CM_RANDOM_MT19937) {
            record.mt_next = (uint32_t)random->mt_next;
            memcpy(bytes + at + sizeof record, random->mt, MT_BYTES);
        } else {
            record.block_next = (uint32_t)random->block_next;
            record.key = random->key;
            record.stream = random->stream;
            record.counter = random->counter;
            memcpy(record.block, random->block, sizeof record.block);
        }
        memcpy(bytes + at, &record, sizeof record);
        at += record_bytes(random);
    }
    *out = (struct cm_str){bytes, size};
    return CM_OK;
}

/* Is this record one for the generator it would be given to? */
static bool record_fits(const struct random_record *record, const struct cm_random *random)
{
    return record->kind == (uint32_t)random->kind && record->has_gauss <= 1 &&
           record->mt_next <= CM_MT_WORDS && record->block_next <= 4;
}

static void take_record(struct cm_random *random, const struct random_record *record,
                        const char *words)
{
    random->has_gauss = record->has_gauss != 0;
    random->gauss = record->gauss;
    if (random->kind == CM_RANDOM_MT19937) {
        random->mt_next = (int)record->mt_next;
        memcpy(random->mt, words, MT_BYTES);
        return;
    }
    random->block_next = (int)record->block_next;
    random->key = record->key;
    random->stream = record->stream;
    random->counter = record->counter;
    memcpy(random->block, record->block, sizeof record->block);
}

/* Walks bytes beside the generators; changes them only when take is set. */
static bool walk_records(struct cm_context *context, struct cm_str bytes, bool take)
{
    size_t at = 0;
    for (size_t i = 0; i < context->session->random.count; i++) {
        struct cm_random *random = &context->randoms[i];
        struct random_record record;
        if (bytes.size - at < record_bytes(random))
            return false;
        memcpy(&record, bytes.data + at, sizeof record);
        if (record.number != context->session->random.items[i]->node->stream ||
            !record_fits(&record, random))
            return false;
        if (take)
            take_record(random, &record, bytes.data + at + sizeof record);
        at += record_bytes(random);
    }
    return at == bytes.size;
}

enum cm_status cm_session_set_random(struct cm_session *session, struct cm_str bytes,
                                     struct cm_error *err)
{
    struct cm_context *context;
    CM_TRY(lease(session, &context, err));
    const bool fits = walk_records(context, bytes, false);
    if (fits)
        walk_records(context, bytes, true);
    give_back(context);
    return fits ? CM_OK : cm_fail(err, CM_BAD_ARGUMENT, "the random state is of another graph");
}

void cm_session_rewind(struct cm_session *session)
{
    struct cm_context *context = session->free_contexts;
    if (context && context->has_before)
        memcpy(context->randoms, context->before, session->random.count * sizeof *context->before);
}
