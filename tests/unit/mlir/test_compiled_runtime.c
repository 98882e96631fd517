/* The part that all compiled models share, built for this machine around a model made up here: its
 * first output is twice its first input, its second one as many elements of that as its second
 * input says. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "mlir/runtime/compiled.h"

#include <string.h>

enum { N_INPUTS = 2, N_OUTPUTS = 2, N_EQUAL = 1, N_CHECKS = 1, FLOAT = 1, INT64 = 7 };
#define PLANNED_BYTES  ((size_t)64)
#define WEIGHT_BYTES   ((size_t)4)
#define WEIGHTS_INSIDE 0
#define STATE_BYTES    ((size_t)128)
#define CHANGED_BYTES  ((size_t)64)

static const int64_t open_dims[] = {2, -1, -1}, scalar_dims[] = {0}, many_dims[] = {-1};
static const struct cm_compiled_port inputs[] = {
    {"x", "x is wrong", FLOAT, 4, 3, 0, open_dims, NULL},
    {"n", "n is wrong", INT64, 8, 0, 1, scalar_dims, NULL},
};
static const struct cm_compiled_port outputs[] = {
    {"y", "y is wrong", FLOAT, 4, 0, 1, scalar_dims, NULL},
    {"some", "some is wrong", FLOAT, 4, 1, 0, many_dims, NULL},
};
static const uint16_t equal_dims[][4] = {{0, 1, 0, 2}};
static const char *const checks[] = {"n is above the number of elements"};

static void call_main(const struct cm_compiled_call *call, intptr_t context, void *arena,
                      void *next);

#include "mlir/runtime/runtime.c"

static void call_main(const struct cm_compiled_call *call, intptr_t context, void *arena,
                      void *next)
{
    const float *x = call->inputs[0].data;
    const int64_t n = *(const int64_t *)call->inputs[1].data;
    const int64_t edge = call->inputs[0].shape[1], count = 2 * edge * edge;
    const float *scale = call->weights;

    CHECK((uintptr_t)arena % CM_COMPILED_ALIGNMENT == 0);
    memset(arena, 0xa5, PLANNED_BYTES);
    memset(next, 7, CHANGED_BYTES);
    if (!cm_require(context, n <= count, 0))
        return;
    float *doubled = (float *)cm_allocate(context, n * 4);
    if (!doubled)
        return;
    for (int64_t i = 0; i < n; i++)
        doubled[i] = *scale * x[i];
    if (!cm_output(context, 1, (intptr_t)doubled, 1, (intptr_t)&n))
        return;
    cm_release(context, (intptr_t)doubled);
    *(float *)call->outputs[0].data = *scale * x[0];
}

/* A call that runs, for tests to spoil. */
struct subject {
    float x[8], y, some[8];
    int64_t n, shape[3], some_shape[1];
    struct cm_compiled_tensor in[2], out[2];
    struct cm_compiled_call call;
};

static _Alignas(64) float weights[16] = {2.0F};
static _Alignas(64) unsigned char state[128], arena_memory[1024];

static void begin(struct subject *s)
{
    *s = (struct subject){.n = 3, .shape = {2, 2, 2}};
    for (int i = 0; i < 8; i++)
        s->x[i] = (float)(i + 1);
    s->in[0] = (struct cm_compiled_tensor){s->x, s->shape, sizeof s->x};
    s->in[1] = (struct cm_compiled_tensor){&s->n, NULL, sizeof s->n};
    s->out[0] = (struct cm_compiled_tensor){&s->y, NULL, sizeof s->y};
    s->out[1] = (struct cm_compiled_tensor){s->some, s->some_shape, sizeof s->some};
    s->call = (struct cm_compiled_call){.inputs = s->in,
                                        .outputs = s->out,
                                        .arena = arena_memory + 1,
                                        .arena_bytes = sizeof arena_memory - 1,
                                        .weights = weights,
                                        .state = state};
    memset(state, 1, sizeof state);
}

void test_compiled_runtime__a_run_gives_outputs_and_their_shapes(void)
{
    struct subject s;

    begin(&s);
    CHECK_INT(run(&s.call), 0);
    CHECK(s.y == 2.0F && s.some[2] == 6.0F && s.some[3] == 0.0F);
    CHECK_INT(s.some_shape[0], 3);
    CHECK_STRING(error_text(0), "it ran");
}

void test_compiled_runtime__state_changes_only_when_a_step_succeeds(void)
{
    struct subject s;

    begin(&s);
    s.n = 9;
    CHECK_INT(run(&s.call), CM_COMPILED_CHECK);
    CHECK_STRING(error_text(CM_COMPILED_CHECK), "n is above the number of elements");
    CHECK_INT(state[0], 1);
    s.n = 8;
    CHECK_INT(run(&s.call), 0);
    CHECK_INT(state[0], 7);
    CHECK_INT(state[63], 7);
    CHECK_INT(state[64], 1); /* not one of those that a step changes */
}

void test_compiled_runtime__tensors_that_do_not_fit_are_refused(void)
{
    struct subject s;

    begin(&s);
    s.shape[0] = 3; /* declared as 2 */
    CHECK_INT(run(&s.call), CM_COMPILED_INPUT);
    CHECK_STRING(error_text(CM_COMPILED_INPUT), "x is wrong");
    begin(&s);
    s.shape[2] = 1; /* both dimensions have one name */
    CHECK_INT(run(&s.call), CM_COMPILED_INPUT);
    begin(&s);
    s.shape[1] = s.shape[2] = -1;
    CHECK_INT(run(&s.call), CM_COMPILED_INPUT);
    begin(&s);
    s.shape[1] = s.shape[2] = INT64_MAX;
    CHECK_INT(run(&s.call), CM_COMPILED_INPUT);
    begin(&s);
    s.in[0].shape = NULL;
    CHECK_INT(run(&s.call), CM_COMPILED_INPUT);
    begin(&s);
    s.in[0].size--;
    CHECK_INT(run(&s.call), CM_COMPILED_INPUT);
    begin(&s);
    s.in[1].data = (char *)&s.n + 1; /* not aligned */
    CHECK_INT(run(&s.call), CM_COMPILED_INPUT + 1);
    begin(&s);
    s.in[1].data = NULL;
    CHECK_INT(run(&s.call), CM_COMPILED_INPUT + 1);
    begin(&s);
    s.out[0].size = 3;
    CHECK_INT(run(&s.call), CM_COMPILED_OUTPUT);
    begin(&s);
    s.call.weights = (char *)weights + 4;
    CHECK_INT(run(&s.call), CM_COMPILED_WEIGHTS);
    begin(&s);
    s.call.state = NULL;
    CHECK_INT(run(&s.call), CM_COMPILED_STATE);
    CHECK_STRING(error_text(12345), "this number is not the result of a run");
}

void test_compiled_runtime__an_output_that_is_too_large_says_its_shape(void)
{
    struct subject s;

    begin(&s);
    s.out[1].size = 8;
    CHECK_INT(run(&s.call), CM_COMPILED_OUTPUT + 1);
    CHECK_INT(s.some_shape[0], 3);
    CHECK(s.some[0] == 0.0F);
    begin(&s);
    s.out[1].shape = NULL;
    CHECK_INT(run(&s.call), CM_COMPILED_OUTPUT + 1);
    begin(&s);
    s.n = 0; /* nothing comes out, so nothing is needed */
    s.out[1].data = NULL;
    s.out[1].size = 0;
    CHECK_INT(run(&s.call), 0);
    CHECK_INT(s.some_shape[0], 0);
}

static float placed[8];

static void *place(void *arg, size_t output, const int64_t *shape, size_t bytes)
{
    CHECK_INT(output, 1);
    CHECK_INT(bytes, 4 * shape[0]);
    return *(bool *)arg ? placed : NULL;
}

void test_compiled_runtime__outputs_can_be_placed_once_their_size_is_known(void)
{
    struct subject s;
    bool has_memory = true;

    begin(&s);
    s.out[1] = (struct cm_compiled_tensor){NULL, NULL, 0};
    s.call.place = place;
    s.call.place_arg = &has_memory;
    CHECK_INT(run(&s.call), 0);
    CHECK(placed[2] == 6.0F);
    has_memory = false;
    CHECK_INT(run(&s.call), CM_COMPILED_OUTPUT + 1);
}

void test_compiled_runtime__the_least_arena_is_what_the_header_says(void)
{
    struct subject s;

    begin(&s);
    s.call.arena = arena_memory; /* aligned: planned part and new state, no heap */
    s.call.arena_bytes = PLANNED_BYTES + CHANGED_BYTES - 1;
    CHECK_INT(run(&s.call), CM_COMPILED_ARENA);
    s.call.arena_bytes++;
    CHECK_INT(run(&s.call), CM_COMPILED_ARENA); /* the program allocates */
    s.call.arena_bytes += 128;
    CHECK_INT(run(&s.call), 0);
    s.call.arena = NULL;
    CHECK_INT(run(&s.call), CM_COMPILED_ARENA);
}

/* ---- the allocator ---- */

void test_compiled_runtime__allocated_blocks_are_aligned_and_apart(void)
{
    struct cm_run now = {.status = 0};
    intptr_t blocks[4];

    open_heap(&now, arena_memory, arena_memory + sizeof arena_memory);
    for (int i = 0; i < 4; i++) {
        blocks[i] = cm_allocate((intptr_t)&now, 100);
        CHECK(blocks[i] && blocks[i] % CM_COMPILED_ALIGNMENT == 0);
        memset((void *)blocks[i], i + 1, 100);
    }
    for (int i = 0; i < 4; i++)
        CHECK_INT(((unsigned char *)blocks[i])[99], i + 1);
    CHECK_INT(now.status, 0);
    CHECK_INT(cm_allocate((intptr_t)&now, 1000), 0);
    CHECK_INT(now.status, CM_COMPILED_ARENA);
    CHECK_INT(cm_allocate((intptr_t)&now, -1), 0);
    CHECK_INT(cm_allocate((intptr_t)&now, INTPTR_MAX), 0);
}

/* Released in any order, everything becomes one block again. */
void test_compiled_runtime__released_neighbours_become_one_block(void)
{
    static const int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}, {2, 0, 3, 1}};

    for (size_t o = 0; o < CM_COUNT(orders); o++) {
        struct cm_run now = {.status = 0};
        intptr_t blocks[4];

        open_heap(&now, arena_memory, arena_memory + sizeof arena_memory);
        for (int i = 0; i < 4; i++)
            blocks[i] = cm_allocate((intptr_t)&now, 64 * (i + 1));
        for (int i = 0; i < 4; i++)
            cm_release((intptr_t)&now, blocks[orders[o][i]]);
        cm_release((intptr_t)&now, 0);
        CHECK(cm_allocate((intptr_t)&now, sizeof arena_memory - 64) != 0);
        CHECK_INT(now.status, 0);
    }
}

void test_compiled_runtime__a_heap_without_room_gives_nothing(void)
{
    struct cm_run now = {.status = 0};

    open_heap(&now, arena_memory, arena_memory + 100);
    CHECK_INT(cm_allocate((intptr_t)&now, 0), 0);
    CHECK_INT(now.status, CM_COMPILED_ARENA);
}
