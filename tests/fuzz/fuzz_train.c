/* Any bytes as a model that is trained: prepared if it says nothing of training, with flags chosen
 * by its own version number, then initialized and stepped twice on small data, evaluated, and its
 * step written as a model. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "small_run.h"
#include "target.h"
#include "train/prepare/prepare.h"
#include "train/step.h"
#include "train/trainer.h"

#include <signal.h>
#include <sys/time.h>

enum { MEMORY = 1 << 20, INPUTS = 16, MOST_NODES = 40, MOST_SCALARS = 64, SECONDS = 2 };

struct input {
    struct cm_str bytes;
    struct cm_error err;
};

/* ---- loops that do not end ---- */

static atomic_bool too_long;

static void on_alarm(int signal)
{
    (void)signal;
    atomic_store(&too_long, true);
}

/* A step has no counter of ours: what it may take is counted in seconds of this process. */
static void set_alarm(int seconds)
{
    const struct itimerval timer = {.it_value.tv_sec = seconds};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};

    sigemptyset(&action.sa_mask);
    sigaction(SIGVTALRM, &action, NULL);
    atomic_store(&too_long, false);
    setitimer(ITIMER_VIRTUAL, &timer, NULL);
}

/* ---- training ---- */

static struct cm_prepare_options choose(const struct cm_model_proto *model, struct cm_arena *arena)
{
    static const char *const losses[] = {"mse",        "cross-entropy", "l1", "huber",
                                         "bce-logits", "nll",           "bce"};
    static const char *const optimizers[] = {"sgd",   "momentum", "nesterov", "adam",
                                             "adamw", "adagrad",  "rmsprop",  "sgd"};
    struct cm_prepare_options options = CM_PREPARE_OPTIONS;
    const uint64_t choice = (uint64_t)model->model_version;
    const size_t n_outputs = model->graph ? model->graph->output.count : 0;
    const char *output =
        n_outputs ? cm_arena_str(arena, model->graph->output.items[0].name).data : "y";

    if ((choice & 7) == 7)
        options.loss = cm_arena_printf(arena, "output:%s", output).data;
    else
        options.loss = losses[choice & 7];
    if (n_outputs > 1 && (choice & 7) != 7)
        options.output = output;
    options.optimizer = optimizers[choice >> 3 & 7];
    options.schedule = (enum cm_schedule)(choice >> 6 & 3);
    options.warmup = (int64_t)(choice >> 8 & 1);
    options.schedule_steps = 2 - (int64_t)(choice >> 9 & 1);
    options.clip_norm = choice >> 10 & 1 ? 1 : 0;
    options.accumulate = 1 + (int64_t)(choice >> 11 & 1);
    options.train = choice >> 12 & 1 ? "." : NULL;
    options.keep_opset = choice >> 13 & 1;
    if (choice >> 14 & 1)
        options.weight_decay = 0.1;
    return options;
}

static void measure(struct cm_trainer *trainer, const struct cm_tensor *const *in,
                    struct cm_error *err)
{
    struct cm_trainer_measure measured;
    struct cm_trainer_memory memory;

    (void)!cm_trainer_memory(trainer, in, &memory, err);
    if (!cm_trainer_prepare_evaluation(trainer, err))
        (void)!cm_trainer_evaluate(trainer, in, &measured, err);
}

static void train(struct cm_trainer *trainer, struct cm_arena *arena, uint64_t seed,
                  struct cm_error *err)
{
    struct cm_datum data[INPUTS] = {0};
    const struct cm_tensor *in[INPUTS] = {0};
    struct cm_trainer_scalar scalars[MOST_SCALARS];
    const size_t count = cm_trainer_input_count(trainer);

    if (count > INPUTS || cm_trainer_scalar_count(trainer) > MOST_SCALARS)
        return;
    for (size_t i = 0; i < count; i++) {
        const struct cm_type *type = cm_trainer_input(trainer, i)->type;
        if (type->kind != CM_KIND_TENSOR || !small_value(type, seed + i, arena, &data[i]))
            return;
        in[i] = &data[i].tensor;
    }
    if (cm_trainer_initialize(trainer, err))
        return;
    for (int step = 0; step < 2; step++)
        if (cm_trainer_step(trainer, in, scalars, err))
            break;
    measure(trainer, in, err);
}

static void whole_way(struct cm_model_file *file, struct cm_arena *arena, struct cm_error *err)
{
    const uint64_t choice = (uint64_t)file->model.model_version;
    const struct cm_trainer_options options = {
        .threads = 1, .memory_limit = MEMORY, .check_finite = choice >> 15 & 1};
    const struct cm_step_options step = {.portable = choice >> 16 & 1};
    const struct cm_prepare_options flags = choose(&file->model, arena);
    struct cm_prepare_report report = {0};
    struct cm_trainer *trainer;
    struct cm_model_file *made;

    if (file->model.graph && file->model.graph->node.count > MOST_NODES)
        return;
    if (!file->model.training_info.count && cm_prepare(arena, file, &flags, &report, err))
        return;
    if (choice >> 17 & 1)
        (void)!cm_step_model(arena, file, &step, &made, err);
    if (cm_trainer_new(arena, file, &options, &trainer, err))
        return;
    cm_trainer_set_cancel(trainer, &too_long);
    train(trainer, arena, choice, err);
    /* The values are put into messages; the name can be none of a file. */
    (void)!cm_trainer_save(trainer, arena, file, "/dev/null/none", NULL, NULL, err);
}

static enum cm_status train_guarded(struct cm_guard *guard, void *arg)
{
    struct input *input = arg;
    const struct cm_load_options options = {.format = CM_FORMAT_BINARY};
    struct cm_model_file *file;
    struct cm_arena arena;

    cm_arena_init(&arena, guard);
    if (!cm_model_parse(&arena, input->bytes, &options, &file, &input->err))
        whole_way(file, &arena, &input->err);
    cm_arena_release(&arena);
    return CM_OK;
}

static void run_input(const uint8_t *data, size_t size)
{
    struct input input = {.bytes = {(const char *)data, size}};

    set_alarm(SECONDS);
    (void)!cm_guarded((size_t)256 << 20, &input.err, train_guarded, &input);
    set_alarm(0);
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    .mutate = mutate_model,
    .most_bytes = 8 * FUZZ_KIB,
    .memory_base = 16 * FUZZ_MIB,
    .memory_per_byte = 4096,
};
