/* Small inputs and short runs. */
// SPDX-License-Identifier: Apache-2.0
#include "small_run.h"

#include "exec/session.h"

#include <math.h>
#include <stdlib.h>

enum { MEMORY = 1 << 20, STEPS = 2000, OPERANDS = 16, MOST_ELEMENTS = 4096, ITEMS = 2 };

/* ---- inputs ---- */

static uint64_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static double small_number(uint64_t *state)
{
    const uint64_t draw = next(state) % 64;
    if (draw >= 60) {
        static const double odd[] = {NAN, INFINITY, -1e30, 1e30};
        return odd[draw - 60];
    }
    if (draw < 48) /* mostly what an index or a class may be */
        return (double)(draw % (draw < 36 ? 2 : 4));
    return (double)draw / 4 - 13; /* [-1, 1.75] */
}

static void put_number(enum cm_dtype dtype, uint8_t *room, size_t i, double value)
{
    const size_t size = cm_dtype_size(dtype);
    const float single = (float)value;
    const int64_t whole = isnan(value)   ? -2
                          : value > 1e9  ? INT64_MAX
                          : value < -1e9 ? INT64_MIN
                                         : (int64_t)value;

    if (dtype == CM_FLOAT)
        memcpy(room + i * size, &single, size);
    else if (dtype == CM_DOUBLE)
        memcpy(room + i * size, &value, size);
    else if (dtype == CM_BOOL)
        room[i] = whole & 1;
    else if (size <= sizeof whole) /* little-endian; narrow floats take any bits */
        memcpy(room + i * (size_t)cm_dtype_info(dtype)->bits / 8, &whole, size ? size : 1);
    else
        memcpy(room + i * size, &value, sizeof value);
}

static void put_string(struct cm_str *to, uint64_t draw)
{
    static const char *const words[] = {"a", "", "1", "b c", "-2.5", "\xc3\x84"};
    *to = cm_str(words[draw % CM_COUNT(words)]);
}

/* What the model leaves open: mostly small, at times nothing, or as many axes as there can be. No
 * inference rule has seen these. */
static struct cm_shape small_shape(const struct cm_type *type, uint64_t *state)
{
    static const int ranks[] = {0, 0, 1, 1, 2, 3, CM_MAX_RANK - 1, CM_MAX_RANK};
    static const int64_t sizes[] = {2, 2, 2, 2, 2, 0, 1, 3};
    const bool open = type->rank < 0;
    struct cm_shape shape = {.rank = open ? ranks[next(state) % CM_COUNT(ranks)] : type->rank};

    for (int i = 0; i < shape.rank; i++) {
        if (!open && cm_dim_known(type->dims[i]))
            shape.dims[i] = type->dims[i].value;
        else
            shape.dims[i] = open && shape.rank > 3 ? 1 : sizes[next(state) % CM_COUNT(sizes)];
    }
    return shape;
}

static bool small_tensor(const struct cm_type *type, uint64_t seed, struct cm_arena *arena,
                         struct cm_datum *out)
{
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15);
    const struct cm_shape shape = small_shape(type, &state);
    int64_t count;
    size_t bytes;

    if (!cm_shape_count(&shape, &count) || count > MOST_ELEMENTS ||
        !cm_dtype_bytes(type->dtype, count, &bytes))
        return false;
    uint8_t *room = cm_arena_alloc(arena, bytes + 16);
    for (size_t i = 0; i < (size_t)count; i++) {
        if (type->dtype == CM_STRING)
            put_string((struct cm_str *)(void *)room + i, next(&seed));
        else
            put_number(type->dtype, room, i, small_number(&seed));
    }
    *out = (struct cm_datum){.kind = CM_KIND_TENSOR,
                             .tensor = cm_tensor_borrow(type->dtype, &shape, room)};
    return true;
}

bool small_value(const struct cm_type *type, uint64_t seed, struct cm_arena *arena,
                 struct cm_datum *out)
{
    switch (type->kind) {
    case CM_KIND_TENSOR:
        return small_tensor(type, seed, arena, out);
    case CM_KIND_SEQUENCE:
        *out = (struct cm_datum){.kind = CM_KIND_SEQUENCE, .n_items = seed % (ITEMS + 1)};
        out->items = CM_NEW_ARRAY(arena, struct cm_datum, ITEMS);
        for (size_t i = 0; i < out->n_items; i++)
            if (!small_value(type->elem, seed + i, arena, &out->items[i]))
                return false;
        return true;
    case CM_KIND_OPTIONAL:
        *out = (struct cm_datum){.kind = CM_KIND_NONE};
        return seed % 3 == 0 || small_value(type->elem, seed, arena, out);
    case CM_KIND_MAP:
    case CM_KIND_SPARSE:
    case CM_KIND_OPAQUE:
    case CM_KIND_NONE:
        break;
    }
    return false;
}

/* ---- runs ---- */

struct count {
    atomic_bool cancel;
    int steps;
};

/* A mutated loop may go on for ever. */
static void count_step(void *arg, const struct cm_step_report *report)
{
    struct count *count = arg;
    (void)report;
    if (++count->steps > STEPS)
        atomic_store(&count->cancel, true);
}

/* A result is of the type that the graph says, and shows no memory behind its last element. */
static void check_result(const struct cm_graph *graph, size_t o, const struct cm_datum *result)
{
    const struct cm_type *type = cm_value_get(graph->module, graph->outputs[o].value)->fact.type;

    if (result->kind != CM_KIND_TENSOR || type->kind != CM_KIND_TENSOR)
        return;
    if (result->tensor.type != type->dtype || !cm_tensor_padding_is_clear(&result->tensor))
        abort();
}

void small_run(struct cm_graph *graph, struct cm_arena *arena, uint64_t seed)
{
    const struct cm_session_options options = {.threads = 1, .memory_limit = MEMORY};
    struct cm_datum in[OPERANDS] = {0}, out[OPERANDS] = {0};
    const struct cm_datum *args[OPERANDS] = {0};
    const size_t n_in = graph->n_inputs, n_out = graph->n_outputs;
    struct cm_session *session;
    struct count count = {.steps = 0};
    struct cm_error err = {0};

    if (n_in > OPERANDS || n_out > OPERANDS)
        return;
    for (size_t i = 0; i < n_in; i++)
        if (small_value(cm_value_get(graph->module, graph->inputs[i])->fact.type, seed + i, arena,
                        &in[i]))
            args[i] = &in[i];
    if (cm_session_new(graph, &options, &session, &err))
        return;
    atomic_init(&count.cancel, false);
    const struct cm_run_options limits = {
        .cancel = &count.cancel, .step = count_step, .step_arg = &count};
    for (int twice = 0; twice < 2; twice++)
        if (!cm_session_run(session, args, n_in, out, n_out, &limits, &err))
            for (size_t o = 0; o < n_out; o++) {
                check_result(graph, o, &out[o]);
                cm_datum_drop(&out[o]);
            }
    cm_session_free(session);
}
