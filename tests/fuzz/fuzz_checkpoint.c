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

struct input {
    const char *path;
    struct cm_error err;
};

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

static void read(const struct input *input, struct cm_trainer *trainer, struct cm_arena *arena,
                 struct cm_error *err)
{
    const struct cm_resume_options options = {.anyway = true};
    struct cm_checkpoint checkpoint;
    const int weight = cm_trainer_state_find(trainer, CM_STR("W"));
    fuzz_require(weight >= 0);
    const struct cm_tensor *state = cm_trainer_state(trainer, (size_t)weight);

    if (cm_checkpoint_open(arena, input->path, &checkpoint, err) ||
        cm_checkpoint_resume(&checkpoint, &options, trainer, arena, err))
        fuzz_require(cm_tensor_real(state, 0) == 1 && cm_tensor_real(state, 1) == 2);
    else
        step(trainer, err);
}

static enum cm_status go_on(struct cm_guard *guard, void *arg)
{
    struct input *input = arg;
    const struct cm_load_options text = {.format = CM_FORMAT_TEXT};
    const struct cm_trainer_options options = {.threads = 1};
    struct cm_prepare_options flags = CM_PREPARE_OPTIONS;
    struct cm_prepare_report report = {0};
    struct cm_model_file *file;
    struct cm_trainer *trainer;
    struct cm_arena arena;

    flags.loss = "mse";
    flags.optimizer = "adam";
    cm_arena_init(&arena, guard);
    fuzz_require(!cm_model_parse(&arena, cm_str(model), &text, &file, &input->err));
    fuzz_require(!cm_prepare(&arena, file, &flags, &report, &input->err));
    fuzz_require(!cm_trainer_new(&arena, file, &options, &trainer, &input->err));
    fuzz_require(!cm_trainer_initialize(trainer, &input->err));
    read(input, trainer, &arena, &input->err);
    cm_arena_release(&arena);
    return CM_OK;
}

static void run_input(const uint8_t *data, size_t size)
{
    struct input input = {.path = in_file(data, size)};

    if (input.path)
        (void)!cm_guarded((size_t)256 << 20, &input.err, go_on, &input);
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    .mutate = mutate_file,
    .memory_base = 8 * FUZZ_MIB,
    .memory_per_byte = 1024,
};
