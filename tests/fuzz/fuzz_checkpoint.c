/* Any bytes as a checkpoint: its notes are read, and a small training is told to go on from it.
 * What is refused must leave the training as it was. */
// SPDX-License-Identifier: Apache-2.0
#include "in_file.h"
#include "target.h"
#include "train/checkpoint.h"
#include "train/prepare/prepare.h"

static const char model[] = "<ir_version: 8, opset_import: [\"\" : 15]>\n"
                            "g (float[N,2] x) => (float[N,1] y) <float[2,1] W = {1, 2}>\n"
                            "{ t = MatMul(x, W) y = Dropout(t) }\n";

/* One training for all inputs: making it takes ten times as long as reading a checkpoint. Each
 * input finds it as it was at first. */
static struct {
    struct cm_arena arena;
    struct cm_trainer *trainer; /* NULL: not made yet */
    struct cm_tensor *states;
    struct cm_str random;
} training;

struct input {
    const char *path;
    struct cm_error err;
};

static void make_training(struct cm_guard *guard, struct cm_error *err)
{
    const struct cm_load_options text = {.format = CM_FORMAT_TEXT};
    const struct cm_trainer_options options = {.threads = 1};
    struct cm_prepare_options flags = CM_PREPARE_OPTIONS;
    struct cm_prepare_report report = {0};
    struct cm_arena *arena = &training.arena;
    struct cm_model_file *file;
    struct cm_trainer *trainer;

    flags.loss = "mse";
    flags.optimizer = "adam";
    cm_arena_init(arena, guard);
    fuzz_require(!cm_model_parse(arena, cm_str(model), &text, &file, err));
    fuzz_require(!cm_prepare(arena, file, &flags, &report, err));
    fuzz_require(!cm_trainer_new(arena, file, &options, &trainer, err));
    fuzz_require(!cm_trainer_initialize(trainer, err));
    training.states = CM_NEW_ARRAY(arena, struct cm_tensor, cm_trainer_state_count(trainer));
    for (size_t i = 0; i < cm_trainer_state_count(trainer); i++) {
        const struct cm_tensor *state = cm_trainer_state(trainer, i);
        const size_t bytes = cm_tensor_bytes(state);

        training.states[i] = *state;
        training.states[i].data = cm_arena_alloc(arena, bytes);
        if (bytes)
            memcpy(training.states[i].data, state->data, bytes);
    }
    fuzz_require(!cm_trainer_random(trainer, arena, &training.random, err));
    training.trainer = trainer;
}

static void require_first_state(struct cm_arena *arena, struct cm_error *err)
{
    const struct cm_trainer *trainer = training.trainer;
    struct cm_str random;

    for (size_t i = 0; i < cm_trainer_state_count(trainer); i++) {
        const struct cm_tensor *now = cm_trainer_state(trainer, i), *first = &training.states[i];
        const size_t bytes = cm_tensor_bytes(first);

        fuzz_require(now->type == first->type && cm_shape_equal(&now->shape, &first->shape));
        fuzz_require(!bytes || !memcmp(now->data, first->data, bytes));
    }
    fuzz_require(!cm_trainer_random(trainer, arena, &random, err));
    fuzz_require(cm_str_equal(random, training.random) && !cm_trainer_steps(trainer));
}

static void put_first_state_back(struct cm_arena *arena, struct cm_error *err)
{
    struct cm_trainer *trainer = training.trainer;

    for (size_t i = 0; i < cm_trainer_state_count(trainer); i++)
        fuzz_require(!cm_trainer_set_state(trainer, i, &training.states[i], err));
    fuzz_require(!cm_trainer_set_random(trainer, arena, training.random, err));
    cm_trainer_set_steps(trainer, 0);
}

/* What was read must be fit to go on with. */
static void step(struct cm_trainer *trainer, struct cm_error *err)
{
    static float x[] = {1, 2, 3, 4}, target[] = {1, 2};
    const struct cm_tensor in[] = {cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(2, 2), x),
                                   cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(2, 1), target)};
    const struct cm_tensor *list[] = {&in[0], &in[1]};
    struct cm_trainer_scalar scalars[8];

    fuzz_require(cm_trainer_input_count(trainer) == 2 && cm_trainer_scalar_count(trainer) <= 8);
    (void)!cm_trainer_step(trainer, list, scalars, err);
}

static enum cm_status go_on(struct cm_guard *guard, void *arg)
{
    const struct cm_resume_options options = {.anyway = true};
    struct input *input = arg;
    struct cm_error *err = &input->err;
    struct cm_checkpoint checkpoint;
    struct cm_arena arena;

    if (training.trainer)
        cm_arena_lend(&training.arena, guard);
    else
        make_training(guard, err);
    cm_arena_init(&arena, guard);
    if (!cm_checkpoint_open(&arena, input->path, &checkpoint, err) &&
        !cm_checkpoint_resume(&checkpoint, &options, training.trainer, &arena, err)) {
        step(training.trainer, err);
        put_first_state_back(&arena, err);
    }
    require_first_state(&arena, err);
    cm_arena_release(&arena);
    return CM_OK;
}

static void run_input(const uint8_t *data, size_t size)
{
    struct input input = {.path = in_file(data, size)};

    if (!input.path || !cm_guarded((size_t)256 << 20, &input.err, go_on, &input))
        return;
    cm_arena_release(&training.arena); /* memory ran out somewhere on the way */
    training.trainer = NULL;
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    .mutate = mutate_file,
    .memory_base = 8 * FUZZ_MIB,
    .memory_per_byte = 1024,
};
