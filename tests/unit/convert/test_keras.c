/* Files that Keras wrote: names, order of the optimizer's variables, settings and schedules. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "convert/find_saved.h"
#include "convert/frameworks/keras/keras_file.h"
#include "convert/frameworks/keras/keras_optimizer.h"

#define CHECKPOINTS TESTS_DIR "/checkpoints/"

static void check_ends(const struct cm_saved_entry *entry, double first, double last)
{
    struct cm_saved_reader reader = {0};
    struct cm_error err;
    float value;

    CHECK(entry != NULL);
    const struct cm_saved_tensor *tensor = entry->tensor;
    CHECK_OK(cm_saved_tensor_read(&reader, tensor, 0, 1, &value, &err), &err);
    CHECK(value == (float)first);
    CHECK_OK(cm_saved_tensor_read(&reader, tensor, cm_shape_elements(&tensor->shape) - 1, 1, &value,
                                  &err),
             &err);
    CHECK(value == (float)last);
}

static void reads_weights(struct cm_arena *arena)
{
    struct cm_saved *saved;
    struct cm_error err;

    CHECK_OK(cm_saved_open(arena, CHECKPOINTS "keras-adamw.weights.h5", 0, &saved, &err), &err);
    check_ends(find_saved(saved, CM_SAVED_WEIGHT, CM_STR("mlp/fc2/kernel"), NULL), 0x1.8debe8p-2,
               0x1.b9cff4p-2);
    check_ends(find_saved(saved, CM_SAVED_SLOT, CM_STR("mlp/fc2/kernel"), "exp_avg_sq"),
               0x1.671e6ap-14, 0x1.32a144p-16);
    CHECK_INT(saved->entries.count, 18);
    CHECK_INT(saved->step, 9);
    CHECK_STR(saved->optimizer, "AdamW");
    CHECK(saved->groups.items[0].settings.lr == 0.01F);
    CHECK_INT(saved->schedule_known, CM_SCHEDULE_NONE);
    CHECK_INT(saved->missing.count, 4);
}

void test_keras__a_weights_file_has_names_and_slots(void)
{
    check_in_arena(reads_weights);
}

static void reads_archive(struct cm_arena *arena)
{
    struct cm_saved *saved;
    struct cm_error err;

    CHECK_OK(cm_saved_open(arena, CHECKPOINTS "keras-sgd.keras", 0, &saved, &err), &err);
    check_ends(find_saved(saved, CM_SAVED_WEIGHT, CM_STR("conv2/kernel"), NULL), 0x1.bbe7b6p-3,
               0x1.3c11e0p-5);
    check_ends(find_saved(saved, CM_SAVED_SLOT, CM_STR("conv2/kernel"), "momentum_buffer"),
               0x1.0d7afcp-8, -0x1.93ca38p-11);
    CHECK(find_saved(saved, CM_SAVED_BUFFER, CM_STR("bn2/moving_variance"), NULL) != NULL);
    CHECK_INT(saved->step, 11);
    CHECK_INT(saved->rule, CM_RULE_SGD);
    CHECK(saved->groups.items[0].settings.momentum == 0.9);
    CHECK_INT(saved->groups.items[0].settings.nesterov, 1);
    CHECK(saved->clip.limit == 0);
    CHECK_STR(saved->version, "3.15.1");
    CHECK_INT(saved->missing.count, 0);
    CHECK_INT(saved->unknown.count, 0);
}

void test_keras__an_archive_tells_all_settings(void)
{
    check_in_arena(reads_archive);
}

/* ---- configurations ---- */

static struct cm_saved *configured(struct cm_arena *arena, const char *rate, const char *more,
                                   int64_t step)
{
    const struct cm_str text = cm_arena_printf(
        arena, "{\"class_name\": \"Adam\", \"config\": {\"learning_rate\": %s, \"beta_1\": 0.8%s}}",
        rate, more);
    struct cm_saved *saved = cm_saved_new(arena, CM_STR("test"));
    struct cm_item *config;
    struct cm_error err;

    CHECK_OK(cm_item_parse_json(arena, text, &config, &err), &err);
    saved->step = step;
    cm_saved_add_group(saved);
    cm_keras_configure(saved, config);
    return saved;
}

static void check_rate(struct cm_arena *arena, const char *class_name, const char *config,
                       int64_t step, double rate)
{
    const struct cm_saved *saved = configured(
        arena,
        cm_arena_printf(arena, "{\"class_name\": \"%s\", \"config\": {%s}}", class_name, config)
            .data,
        "", step);

    CHECK_INT(saved->schedule_known, CM_SCHEDULE_KNOWN);
    CHECK(fabs(saved->groups.items[0].settings.lr - rate) < 1e-12);
}

/* The numbers are those of keras.optimizers.schedules. */
static void has_rates(struct cm_arena *arena)
{
    check_rate(arena, "ExponentialDecay",
               "\"initial_learning_rate\": 0.02, \"decay_steps\": 5, \"decay_rate\": 0.8, "
               "\"staircase\": true",
               12, 0.0128);
    check_rate(arena, "InverseTimeDecay",
               "\"initial_learning_rate\": 0.5, \"decay_steps\": 10, \"decay_rate\": 2.0, "
               "\"staircase\": false",
               5, 0.25);
    check_rate(arena, "CosineDecay",
               "\"initial_learning_rate\": 0.0, \"decay_steps\": 100, \"alpha\": 0.1, "
               "\"warmup_target\": 0.5, \"warmup_steps\": 10",
               5, 0.25);
    check_rate(arena, "CosineDecay",
               "\"initial_learning_rate\": 0.0, \"decay_steps\": 100, \"alpha\": 0.1, "
               "\"warmup_target\": 0.5, \"warmup_steps\": 10",
               60, 0.275);
    check_rate(arena, "CosineDecay",
               "\"initial_learning_rate\": 1.0, \"decay_steps\": 100, \"alpha\": 0.25, "
               "\"warmup_target\": null, \"warmup_steps\": 0",
               1000, 0.25);
    check_rate(arena, "PolynomialDecay",
               "\"initial_learning_rate\": 1.0, \"decay_steps\": 10, \"end_learning_rate\": 0.5, "
               "\"power\": 2.0, \"cycle\": false",
               5, 0.625);
    check_rate(arena, "PiecewiseConstantDecay", "\"boundaries\": [3, 6], \"values\": [1, 0.5, 0.1]",
               3, 1);
    check_rate(arena, "PiecewiseConstantDecay", "\"boundaries\": [3, 6], \"values\": [1, 0.5, 0.1]",
               4, 0.5);
    check_rate(arena, "PiecewiseConstantDecay", "\"boundaries\": [3, 6], \"values\": [1, 0.5, 0.1]",
               7, 0.1);
}

void test_keras__schedules_are_phases(void)
{
    check_in_arena(has_rates);
}

static void takes_settings(struct cm_arena *arena)
{
    const struct cm_saved *saved = configured(
        arena, "0.25", ", \"clipnorm\": 2.0, \"weight_decay\": 0.5, \"amsgrad\": true", 3);

    CHECK(saved->groups.items[0].settings.lr == 0.25);
    CHECK(saved->groups.items[0].settings.beta1 == 0.8);
    CHECK(saved->groups.items[0].settings.weight_decay == 0.5);
    CHECK_INT(saved->groups.items[0].settings.amsgrad, 1);
    CHECK_INT(saved->clip.kind, CM_CLIP_EACH);
    CHECK(saved->clip.limit == 2);
    saved = configured(arena, "{\"class_name\": \"MySchedule\", \"config\": {}}",
                       ", \"gradient_accumulation_steps\": 4, \"global_clipnorm\": 1.5", 12);
    CHECK_INT(saved->schedule_known, CM_SCHEDULE_UNKNOWN);
    CHECK_INT(saved->missing.count, 1);
    CHECK_INT(saved->accumulate, 4);
    CHECK_INT(saved->step, 3);
    CHECK_INT(saved->clip.kind, CM_CLIP_GLOBAL_EXACT);
}

void test_keras__settings_are_taken_from_the_configuration(void)
{
    check_in_arena(takes_settings);
}

/* ---- variables ---- */

static struct cm_saved_tensor *tensor(struct cm_arena *arena, enum cm_dtype dtype, int64_t rows,
                                      int64_t columns)
{
    const struct cm_shape shape =
        rows ? columns ? CM_SHAPE(rows, columns) : CM_SHAPE(rows) : CM_SCALAR;
    const size_t size = cm_dtype_size(dtype) * (size_t)cm_shape_elements(&shape);
    struct cm_saved_tensor *out;
    struct cm_error err;

    CHECK_OK(cm_saved_tensor_new(arena, dtype, &shape,
                                 (struct cm_str){cm_arena_alloc(arena, size), size}, CM_STR("m"),
                                 &out, &err),
             &err);
    return out;
}

/* Adam with amsgrad for a, c and d of the weights a, b (frozen), c, d; moving averages first. */
static void sorts_variables(struct cm_arena *arena)
{
    struct cm_saved *saved = cm_saved_new(arena, CM_STR("test"));
    struct cm_saved_tensor *a = tensor(arena, CM_FLOAT, 2, 3), *c = tensor(arena, CM_FLOAT, 3, 0);
    struct cm_saved_tensor *b = tensor(arena, CM_FLOAT, 2, 2), *d = tensor(arena, CM_FLOAT, 3, 4);
    const struct cm_keras_weight weights[] = {{CM_STR("a"), a, false},
                                              {CM_STR("b"), b, false},
                                              {CM_STR("c"), c, false},
                                              {CM_STR("d"), d, false}};
    struct cm_saved_tensor *const variables[] = {tensor(arena, CM_INT64, 0, 0),
                                                 tensor(arena, CM_FLOAT, 0, 0),
                                                 a,
                                                 c,
                                                 d,
                                                 a,
                                                 a,
                                                 c,
                                                 c,
                                                 d,
                                                 d,
                                                 a,
                                                 c,
                                                 d};

    cm_saved_add_group(saved);
    cm_keras_set_optimizer(saved, CM_STR("adam_2"));
    cm_keras_take_variables(saved, variables, CM_COUNT(variables), weights, CM_COUNT(weights),
                            NULL);
    CHECK_INT(saved->missing.count, 0);
    cm_keras_missing(saved, "a test");
    CHECK_INT(saved->missing.count, 3);
    CHECK_INT(saved->entries.count, 12);
    CHECK_INT(saved->entries.items[0].role, CM_SAVED_AVERAGE);
    CHECK_STR(saved->entries.items[2].name, "d");
    CHECK_STRING(saved->entries.items[4].meaning, "exp_avg_sq");
    CHECK_STRING(saved->entries.items[9].meaning, "max_exp_avg_sq");
    CHECK_INT(saved->groups.items[0].settings.amsgrad, 1);
    CHECK_INT(saved->groups.items[0].names.count, 3);
    CHECK_INT(saved->step, 0);
}

void test_keras__variables_are_told_apart_by_order_and_shape(void)
{
    check_in_arena(sorts_variables);
}

static void says_what_does_not_fit(struct cm_arena *arena)
{
    struct cm_saved *saved = cm_saved_new(arena, CM_STR("test"));
    struct cm_saved_tensor *a = tensor(arena, CM_FLOAT, 2, 3), *b = tensor(arena, CM_FLOAT, 2, 2);
    const struct cm_keras_weight weights[] = {{CM_STR("a"), a, false}};
    struct cm_saved_tensor *const variables[] = {tensor(arena, CM_INT64, 0, 0),
                                                 tensor(arena, CM_FLOAT, 0, 0), a, b};

    cm_saved_add_group(saved);
    cm_keras_set_optimizer(saved, CM_STR("adam"));
    cm_keras_take_variables(saved, variables, CM_COUNT(variables), weights, 1, NULL);
    CHECK_INT(saved->missing.count, 1);
    CHECK(cm_str_starts(saved->missing.items[0], "which weights the 2 variables"));
}

void test_keras__variables_that_fit_nowhere_are_said(void)
{
    check_in_arena(says_what_does_not_fit);
}

/* ---- names ---- */

static void names_layers(struct cm_arena *arena)
{
    const struct cm_shape norm[] = {CM_SHAPE(8), CM_SHAPE(8), CM_SHAPE(8), CM_SHAPE(8)};
    const struct cm_shape lstm[] = {CM_SHAPE(3, 32), CM_SHAPE(8, 32), CM_SHAPE(32)};
    struct cm_str names[4];
    struct cm_item *config;
    struct cm_error err;
    bool is_cell;

    CHECK_INT(
        cm_keras_name_variables(arena, CM_STR("batch_normalization_12"), NULL, norm, 4, names), 2);
    CHECK_STR(names[3], "moving_variance");
    CHECK_OK(cm_item_parse_json(arena, CM_STR("{\"scale\": false}"), &config, &err), &err);
    CHECK_INT(cm_keras_name_variables(arena, CM_STR("batch_normalization"), config, norm, 3, names),
              1);
    CHECK_STR(names[0], "beta");
    CHECK_INT(cm_keras_name_variables(arena, CM_STR("cell"), NULL, lstm, 3, names), 3);
    CHECK_STR(names[1], "recurrent_kernel");
    CHECK_STRING(cm_keras_guess_class(names, lstm, 3, &is_cell), "lstm");
    CHECK(is_cell);
    CHECK_INT(cm_keras_name_variables(arena, CM_STR("my_layer"), NULL, lstm, 1, names), 1);
    CHECK_STR(names[0], "kernel");
    CHECK_INT(cm_keras_name_variables(arena, CM_STR("my_layer"), NULL, norm, 3, names), 3);
    CHECK_STR(names[2], "2");
}

void test_keras__variables_are_called_as_their_layer_has_them(void)
{
    check_in_arena(names_layers);
}

/* ---- variables that an export writes back as they were ---- */

static void kept_variables(struct cm_arena *arena)
{
    static const char bytes[16] = {1, 2};
    const struct cm_shape pair = CM_SHAPE(2);
    struct cm_saved_tensor *tensor;
    struct cm_error err = {0};

    CHECK_OK(cm_saved_tensor_new(arena, CM_INT64, &pair, (struct cm_str){bytes, 16}, CM_STR(""),
                                 &tensor, &err),
             &err);
    CHECK(cm_keras_keep(arena, tensor) != NULL);
    CHECK_OK(cm_saved_tensor_new(arena, CM_COMPLEX64, &pair, (struct cm_str){bytes, 16}, CM_STR(""),
                                 &tensor, &err),
             &err);
    CHECK(cm_keras_keep(arena, tensor) == NULL);
}

void test_keras__complex_variables_are_not_kept_as_whole_numbers(void)
{
    check_in_arena(kept_variables);
}
