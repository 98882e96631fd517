/* Trainers for tests. */
// SPDX-License-Identifier: Apache-2.0
#include "train_case.h"

struct cm_model_file *train_model(struct cm_arena *arena, const char *text)
{
    const struct cm_load_options options = {.format = CM_FORMAT_TEXT};
    struct cm_model_file *file = NULL;
    struct cm_error err = {0};

    CHECK_OK(cm_model_parse(arena, cm_str(text), &options, &file, &err), &err);
    return file;
}

static const struct cm_trainer_options options = {.threads = 1, .seed = 7, .check_finite = true};

struct cm_trainer *train_open(struct cm_arena *arena, struct cm_model_file *file)
{
    struct cm_trainer *trainer = NULL;
    struct cm_error err = {0};

    CHECK_OK(cm_trainer_new(arena, file, &options, &trainer, &err), &err);
    return trainer;
}

struct cm_trainer *train_of(struct cm_arena *arena, const char *text)
{
    return train_open(arena, train_model(arena, text));
}

enum cm_status train_try(struct cm_arena *arena, const char *text, struct cm_error *err)
{
    struct cm_trainer *trainer = NULL;

    return cm_trainer_new(arena, train_model(arena, text), &options, &trainer, err);
}

struct cm_prepare_options train_with(const char *loss, const char *optimizer, double lr)
{
    struct cm_prepare_options chosen = CM_PREPARE_OPTIONS;
    chosen.loss = loss;
    chosen.optimizer = optimizer;
    chosen.lr = lr;
    return chosen;
}

double train_value(const struct cm_trainer *trainer, const char *name, int64_t i)
{
    const int index = cm_trainer_state_find(trainer, cm_str(name));

    if (index < 0)
        fail_msg("there is no variable %s", name);
    return cm_tensor_real(cm_trainer_state(trainer, (size_t)index), i);
}

static const struct cm_tensor *find_array(const struct cm_arrays *data, struct cm_str name)
{
    for (size_t i = 0; i < data->count; i++)
        if (cm_str_equal(data->items[i].name, name))
            return &data->items[i].value.tensor;
    fail_msg("there is no array %.*s", CM_STR_FMT(name));
    return NULL;
}

void train_batch(struct cm_arena *arena, const struct cm_trainer *trainer,
                 const struct cm_arrays *data, int64_t first, int64_t count,
                 const struct cm_tensor **in)
{
    for (size_t i = 0; i < cm_trainer_input_count(trainer); i++) {
        const struct cm_tensor *all = find_array(data, cm_trainer_input(trainer, i)->name);
        const int64_t rows = all->shape.dims[0];
        const size_t row = cm_tensor_bytes(all) / (size_t)rows;
        struct cm_tensor *batch = CM_NEW(arena, struct cm_tensor);

        *batch =
            cm_tensor_borrow(all->type, &all->shape, cm_arena_alloc(arena, row * (size_t)count));
        batch->shape.dims[0] = count;
        for (int64_t r = 0; r < count; r++)
            memcpy((char *)batch->data + row * (size_t)r,
                   (const char *)all->data + row * (size_t)((first + r) % rows), row);
        in[i] = batch;
    }
}

size_t train_numbers(struct cm_str json, const char *key, double *out, size_t room)
{
    char quoted[100];
    size_t count = 0;
    int depth = 0;

    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    const char *at = strstr(json.data, quoted);
    if (!at)
        fail_msg("there is no %s in the expectations", key);
    at += strlen(quoted);
    do {
        char *end;
        const double number = strtod(at, &end);

        if (end != at) {
            CHECK(count < room);
            out[count++] = number;
            at = end;
            continue;
        }
        depth += *at == '[';
        depth -= *at == ']';
        at++;
    } while (depth > 0);
    return count;
}
