/* Inference models made trainable: their losses follow PyTorch's, step by step; every flag does
 * what it says; what stands in the way is named. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "io/arrays.h"
#include "onnx/syntax.h"
#include "train/prepare/prepare.h"
#include "train/trainer.h"

#include <math.h>

enum { STEPS = 24, BATCH = 16 };

/* ---- following PyTorch ---- */

struct setting {
    const char *optimizer;
    double lr, momentum;
};

static const struct setting settings[] = {
    {"sgd", 0.05, NAN},   {"momentum", 0.02, 0.9}, {"nesterov", 0.02, 0.9}, {"adam", 2e-3, NAN},
    {"adamw", 2e-3, NAN}, {"adagrad", 0.02, NAN},  {"rmsprop", 1e-3, NAN},
};

static const char *model_name;
static const char *model_file;

/* The list of numbers after "name": in the file of expected losses. */
static void read_losses(struct cm_arena *arena, const char *name, double *out)
{
    struct cm_error err = {0};
    struct cm_mapping mapping;
    const struct cm_str path =
        cm_arena_printf(arena, TESTS_DIR "/models/train/%s/trajectory.json", model_name);
    CHECK_OK(cm_file_map(path.data, false, &mapping, &err), &err);
    const struct cm_str text =
        cm_arena_str(arena, (struct cm_str){(const char *)mapping.data, mapping.size});
    const char *at = strstr(text.data, cm_arena_printf(arena, "\"%s\":", name).data);
    CHECK(at != NULL);
    at = strchr(at, '[') + 1;
    for (size_t i = 0; i < STEPS; i++) {
        char *end;
        out[i] = strtod(at, &end);
        CHECK(end != at);
        at = strchr(end, i + 1 < STEPS ? ',' : ']') + 1;
    }
    cm_mapping_release(&mapping);
}

static const struct cm_tensor *array_named(const struct cm_arrays *arrays, const char *name)
{
    for (size_t i = 0; i < arrays->count; i++)
        if (cm_str_is(arrays->items[i].name, name))
            return &arrays->items[i].value.tensor;
    fail_msg("the data has no '%s'", name);
    return NULL;
}

/* Rows [from, from + BATCH), wrapping around. */
static struct cm_tensor rows(struct cm_arena *arena, const struct cm_tensor *all, int64_t from)
{
    struct cm_tensor batch = *all;
    const size_t row = cm_tensor_bytes(all) / (size_t)all->shape.dims[0];
    batch.shape.dims[0] = BATCH;
    batch.buffer = NULL;
    batch.data = cm_arena_alloc(arena, row * BATCH);
    for (int64_t i = 0; i < BATCH; i++)
        memcpy((char *)batch.data + (size_t)i * row,
               (const char *)all->data + (size_t)((from + i) % all->shape.dims[0]) * row, row);
    return batch;
}

static double step(struct cm_arena *arena, struct cm_trainer *trainer,
                   const struct cm_prepare_report *report, const struct cm_arrays *data,
                   int64_t number)
{
    struct cm_error err = {0};
    const size_t n = cm_trainer_input_count(trainer), n_out = cm_trainer_scalar_count(trainer);
    const struct cm_tensor **in = CM_NEW_ARRAY(arena, const struct cm_tensor *, n);
    struct cm_trainer_scalar *out = CM_NEW_ARRAY(arena, struct cm_trainer_scalar, n_out);
    for (size_t i = 0; i < n; i++) {
        const struct cm_str name = cm_trainer_input(trainer, i)->name;
        struct cm_tensor *batch = CM_NEW(arena, struct cm_tensor);
        *batch = rows(arena, array_named(data, cm_str_equal(name, report->target_name) ? "y" : "x"),
                      number * BATCH);
        in[i] = batch;
    }
    CHECK_OK(cm_trainer_step(trainer, in, out, &err), &err);
    for (size_t i = 0; i < n_out; i++)
        if (cm_str_equal(out[i].name, report->loss_name))
            return out[i].value;
    fail_msg("the step has no loss");
    return NAN;
}

static void follow_one(struct cm_arena *arena, const struct setting *setting)
{
    struct cm_error err = {0};
    struct cm_model_file *file;
    struct cm_prepare_report report;
    struct cm_prepare_options options = CM_PREPARE_OPTIONS;
    const struct cm_trainer_options trainer_options = {.threads = 1, .check_finite = true};
    struct cm_trainer *trainer;
    struct cm_arrays data = {0};
    double expected[STEPS];
    const struct cm_str folder = cm_arena_printf(arena, TESTS_DIR "/models/train/%s", model_name);

    read_losses(arena, setting->optimizer, expected);
    CHECK_OK(cm_model_open(arena, cm_arena_printf(arena, "%s/%s", folder.data, model_file).data,
                           NULL, &file, &err),
             &err);
    options.loss = strcmp(model_name, "regress") == 0 ? "mse" : "cross-entropy";
    options.optimizer = setting->optimizer;
    options.lr = setting->lr;
    options.momentum = setting->momentum;
    CHECK_OK(cm_prepare(arena, file, &options, &report, &err), &err);
    CHECK_OK(cm_trainer_new(arena, file, &trainer_options, &trainer, &err), &err);
    CHECK_OK(cm_arrays_open(arena, cm_arena_printf(arena, "%s/data.npz", folder.data).data, NULL,
                            &data, &err),
             &err);
    for (int64_t i = 0; i < STEPS; i++) {
        const double loss = step(arena, trainer, &report, &data, i);
        if (!(fabs(loss - expected[i]) <= 1e-3 * fabs(expected[i])))
            fail_msg("%s/%s, %s, step %d: loss %g, PyTorch has %g", model_name, model_file,
                     setting->optimizer, (int)i, loss, expected[i]);
    }
    cm_trainer_free(trainer);
}

static const struct setting *current;

static void follow_current(struct cm_arena *arena)
{
    follow_one(arena, current);
}

static void follow(const char *name, const char *file)
{
    model_name = name;
    model_file = file;
    for (size_t i = 0; i < CM_COUNT(settings); i++) {
        current = &settings[i];
        check_in_arena(follow_current);
    }
}

void test_prepare__mlp_follows_pytorch_with_seven_optimizers(void)
{
    follow("mlp", "model.onnx");
    follow("mlp", "model_eval.onnx");
}

void test_prepare__lenet_follows_pytorch_with_seven_optimizers(void)
{
    follow("lenet", "model.onnx");
    follow("lenet", "model_eval.onnx");
}

void test_prepare__lstm_follows_pytorch_with_seven_optimizers(void)
{
    follow("lstm", "model.onnx");
    follow("lstm", "model_eval.onnx");
}

void test_prepare__regression_follows_pytorch_with_seven_optimizers(void)
{
    follow("regress", "model.onnx");
    follow("regress", "model_eval.onnx");
}
