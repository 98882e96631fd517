/* A trainer of the graph that a preparation made: the same bits as of the file that it wrote, from
 * one import. The passes of a preparation, left out and stopped after. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/module_counts.h"
#include "lower/lower.h"
#include "onnx/model_case.h"
#include "train/rules.h"
#include "train/trainer_parts.h"
#include "train_case.h"

enum { ROWS = 6, STEPS = 5 };

static const char *const models[] = {
    "<ir_version: 8, opset_import: [\"\" : 17]> mlp (float[N,3] x) => (float[N,2] y)\n"
    "<float[3,4] w = {0.1, -0.2, 0.3, 0.4, 0.5, 0.6, -0.7, 0.8, 0.9, 1, 0.1, 0.2},\n"
    " float[4] b = {0, 0, 0, 0}, float[4,2] v = {0.1, 0.2, -0.3, 0.4, 0.5, -0.6, 0.7, 0.8}>\n"
    "{ h = MatMul (x, w) a = Add (h, b) r = Relu (a) s = MatMul (r, v)\n"
    "  y = Softmax <axis = 1> (s) }",
    /* in training mode: masks, and statistics that go on */
    "<ir_version: 8, opset_import: [\"\" : 17]> modes (float[N,2,2] x) => (float[N,2] y)\n"
    "<float[2] s = {1, 2}, float[2] o = {0.5, 0}, float[2] m = {0, 0.1}, float[2] v = {1, 2},\n"
    " float[2,2] w = {0.3, -0.4, 0.5, 0.6}, float ratio = {0.5}>\n"
    "{ n = BatchNormalization <momentum = 0.5> (x, s, o, m, v) d = Dropout (n, ratio)\n"
    "  r = ReduceMean <axes = [2], keepdims = 0> (d) y = MatMul (r, w) }",
    /* of an old opset: all of it is written anew */
    "<ir_version: 4, opset_import: [\"\" : 9]> old (float[N,3] x) => (float[N,2] y)\n"
    "<float[3,2] w = {0.1, -0.2, 0.3, 0.4, 0.5, 0.6}, float[2] b = {0, 0.25}>\n"
    "{ h = MatMul (x, w) a = Add (h, b) d = Dropout <ratio = 0.25> (a) y = Sigmoid (d) }",
    /* weights in a function, in a body and in a Constant; one merged with another */
    "<ir_version: 8, opset_import: [\"\" : 17, \"f\" : 1]> held (float[N,2] x) => (float[N,2] y)\n"
    "<float[2,2] w = {0.1, -0.2, 0.3, 0.4}, float[2] zeros = {0, 0}, bool yes = {1}>\n"
    "{ h = MatMul (x, w) a = Add (h, zeros) k = f.layer (a)\n"
    "  t = If (yes) <then_branch = g () => (float[N,2] p)\n"
    "    <float[2,2] u = {0.5, 0.1, -0.1, 0.5}> { p = MatMul (k, u) },\n"
    "    else_branch = e () => (float[N,2] q) { q = Identity (k) }> y = Add (t, zeros) }\n"
    "<domain: \"f\", opset_import: [\"\" : 17]> layer (i) => (o)\n"
    "{ c = Constant <value = float[2,2] {0.2, 0.3, -0.3, 0.2}> () z = MatMul (i, c) o = Tanh (z) }",
};

/* Numbers that differ from step to step; labels of two classes. */
static const struct cm_tensor *batch(struct cm_arena *arena, const struct cm_type *type, int step)
{
    struct cm_shape shape = {.rank = 0};
    struct cm_tensor *made = CM_NEW(arena, struct cm_tensor);

    for (int d = 0; d < type->rank; d++)
        CHECK(cm_shape_insert(&shape, d, cm_dim_known(type->dims[d]) ? type->dims[d].value : ROWS));
    *made = cm_tensor_borrow(type->dtype, &shape,
                             cm_arena_alloc(arena, 8 * (size_t)cm_shape_elements(&shape)));
    for (int64_t i = 0; i < cm_shape_elements(&shape); i++)
        if (cm_dtype_is_float(type->dtype))
            cm_tensor_set_real(made, i, sin((double)(7 * i + 3 * step)));
        else
            ((int64_t *)made->data)[i] = (i + step) % 2;
    return made;
}

static void run(struct cm_arena *arena, struct cm_trainer *trainer, int steps)
{
    const size_t n = cm_trainer_input_count(trainer);
    const struct cm_tensor **in = CM_NEW_ARRAY(arena, const struct cm_tensor *, n);
    struct cm_trainer_scalar *scalars =
        CM_NEW_ARRAY(arena, struct cm_trainer_scalar, cm_trainer_scalar_count(trainer));
    struct cm_error err = {0};

    CHECK_OK(cm_trainer_initialize(trainer, &err), &err);
    for (int s = 0; s < steps; s++) {
        for (size_t i = 0; i < n; i++)
            in[i] = batch(arena, cm_trainer_input(trainer, i)->type, s);
        if (trainer->options.split) {
            CHECK_OK(cm_trainer_compute(trainer, in, scalars, &err), &err);
            CHECK_OK(cm_trainer_apply(trainer, scalars, &err), &err);
        } else {
            CHECK_OK(cm_trainer_step(trainer, in, scalars, &err), &err);
        }
    }
}

static void same_state(const struct cm_trainer *a, const struct cm_trainer *b)
{
    CHECK_INT(cm_trainer_state_count(a), cm_trainer_state_count(b));
    CHECK_INT(cm_trainer_scalar_count(a), cm_trainer_scalar_count(b));
    for (size_t i = 0; i < cm_trainer_state_count(a); i++) {
        const struct cm_tensor *x = cm_trainer_state(a, i), *y = cm_trainer_state(b, i);

        CHECK(cm_str_equal(cm_trainer_state_name(a, i), cm_trainer_state_name(b, i)));
        CHECK_INT(cm_tensor_bytes(x), cm_tensor_bytes(y));
        CHECK(memcmp(x->data, y->data, cm_tensor_bytes(x)) == 0);
    }
}

/* How a trainer is made. */
struct way {
    bool split;
    const char *without, *with; /* passes */
};

static struct cm_trainer *open_with(struct cm_arena *arena, struct cm_model_file *file,
                                    const struct cm_prepared_training *made, struct way way)
{
    const struct cm_trainer_options options = {.threads = 1,
                                               .seed = 7,
                                               .check_finite = true,
                                               .split = way.split,
                                               .without_passes = way.without,
                                               .with_passes = way.with,
                                               .prepared = made};
    struct cm_trainer *trainer = NULL;
    struct cm_error err = {0};

    CHECK_OK(cm_trainer_new(arena, file, &options, &trainer, &err), &err);
    return trainer;
}

static struct cm_trainer *open_saved(struct cm_arena *arena, const struct cm_model_file *file,
                                     struct way way)
{
    const char *path = case_path(arena, case_folder(arena), "prepared.onnx");
    struct cm_model_file *loaded;
    struct cm_error err = {0};

    CHECK_OK(cm_model_save(file, path, NULL, NULL, &err), &err);
    CHECK_OK(cm_model_open(arena, path, NULL, &loaded, &err), &err);
    return open_with(arena, loaded, NULL, way);
}

struct variant {
    const char *loss, *optimizer;
    struct way way;
};
static const struct variant variants[] = {
    {"mse", "adamw", {false, NULL, NULL}},
    {"mse", "sgd", {true, NULL, NULL}},
    {"cross-entropy", "momentum", {false, NULL, NULL}},
    {"cross-entropy", "adam", {false, "transposes,merge", "recompute"}},
    {"mse", "adam", {false, "patterns", NULL}}};
static size_t at_model;
static const struct variant *at_variant;

static void trains_alike(struct cm_arena *arena)
{
    const struct variant *v = at_variant;
    struct cm_model_file *file = train_model(arena, models[at_model]);
    struct cm_prepare_options options = train_with(v->loss, v->optimizer, 0.05);
    struct cm_prepare_report report;
    struct cm_error err = {0};

    options.clip_norm = 1;
    options.warmup = 2;
    CHECK_OK(cm_prepare(arena, file, &options, &report, &err), &err);
    struct cm_trainer *saved = open_saved(arena, file, v->way);
    struct cm_trainer *made = open_with(arena, file, report.made, v->way);
    CHECK(made->entries[0].graph->module == report.made->inference->module);
    run(arena, saved, STEPS);
    run(arena, made, STEPS);
    same_state(saved, made);
    cm_trainer_free(saved);
    cm_trainer_free(made);
}

void test_prepared_training__what_was_saved_trains_as_what_was_prepared(void)
{
    for (at_model = 0; at_model < CM_COUNT(models); at_model++)
        for (size_t i = 0; i < CM_COUNT(variants); i++) {
            at_variant = &variants[i];
            check_in_arena(trains_alike);
        }
}

/* The update of a prepared step does not go through `patterns`: it must hold nothing for them. */
void test_prepared_training__the_update_of_every_optimizer_is_that_of_the_file(void)
{
    at_model = 0;
    for (size_t rule = CM_RULE_UNKNOWN + 1; rule < CM_RULES; rule++)
        for (const struct cm_optimizer_preset *p = cm_optimizer_rules[rule].presets; p->name; p++) {
            at_variant = &(const struct variant){"mse", p->name, {false, NULL, NULL}};
            check_in_arena(trains_alike);
        }
}

/* ---- how often ---- */

static struct way counted;

static void counts(struct cm_arena *arena)
{
    for (size_t m = 0; m < CM_COUNT(models); m++) {
        struct cm_model_file *file = train_model(arena, models[m]);
        const struct cm_prepare_options options = train_with("mse", "adam", 0.01);
        struct cm_prepare_report report;
        struct cm_error err = {0};

        CHECK_OK(cm_prepare(arena, file, &options, &report, &err), &err);
        const struct cm_module_counts *seen = cm_module_counts(report.made->inference->module);
        CHECK_INT(seen->imports, 1);
        CHECK_INT(seen->derivatives, 1);
        struct cm_trainer *trainer = open_with(arena, file, report.made, counted);
        run(arena, trainer, 1);
        CHECK(trainer->entries[0].step.graph->module == report.made->inference->module);
        CHECK(trainer->entries[0].initialization.graph->module == report.made->inference->module);
        CHECK_INT(seen->imports, 1);
        CHECK_INT(seen->derivatives, 1); /* the step has what the preparation differentiated */
        cm_trainer_free(trainer);
    }
}

void test_prepared_training__a_file_is_imported_and_differentiated_once_until_the_first_step(void)
{
    static const struct way ways[] = {{false, NULL, NULL}, {false, "regions", "recompute"}};

    for (size_t i = 0; i < CM_COUNT(ways); i++) {
        counted = ways[i];
        check_in_arena(counts);
    }
}

/* ---- passes ---- */

static enum cm_status prepare_until(struct cm_arena *arena, const char *text, const char *without,
                                    const char *until, struct cm_model_file **file,
                                    struct cm_error *err)
{
    struct cm_prepare_options options = train_with("mse", "sgd", 0.1);
    struct cm_prepare_report report;

    options.without = without;
    options.until = until;
    *file = train_model(arena, text);
    return cm_prepare(arena, *file, &options, &report, err);
}

static void stops(struct cm_arena *arena)
{
    for (size_t m = 0; m < CM_COUNT(models); m++)
        for (size_t i = 0; i < cm_prepare_passes.count; i++) {
            const char *until = cm_pass_at(&cm_prepare_passes, i)->name;
            struct cm_model_file *file;
            struct cm_graph *graph;
            struct cm_error err = {0};

            CHECK_OK(prepare_until(arena, models[m], NULL, until, &file, &err), &err);
            CHECK_INT(file->model.training_info.count, strcmp(until, "write") == 0);
            CHECK_OK(cm_lower_import(cm_module_new(arena, NULL), &file->model, NULL, &graph, &err),
                     &err);
        }
}

void test_prepared_training__after_every_pass_there_is_a_model(void)
{
    check_in_arena(stops);
}

static void refuses(struct cm_arena *arena)
{
    struct cm_model_file *file;
    struct cm_error err = {0};

    for (size_t i = 0; i < cm_prepare_passes.count; i++) {
        const struct cm_pass_row *pass = cm_pass_at(&cm_prepare_passes, i);

        err = (struct cm_error){0};
        if (pass->kind == CM_PASS_REQUIRED) {
            CHECK(pass->reason != NULL);
            CHECK_INT(prepare_until(arena, models[1], pass->name, NULL, &file, &err),
                      CM_BAD_ARGUMENT);
            CHECK(strstr(err.text, pass->reason) != NULL);
        } else {
            CHECK_OK(prepare_until(arena, models[1], pass->name, NULL, &file, &err), &err);
        }
    }
    CHECK_INT(prepare_until(arena, models[1], "untied", NULL, &file, &err), CM_BAD_ARGUMENT);
    CHECK(strstr(err.text, "there is no pass 'untied'; the passes are settings, modes") != NULL);
    CHECK_INT(prepare_until(arena, models[1], NULL, "los", &file, &err), CM_BAD_ARGUMENT);
}

void test_prepared_training__passes_that_decide_what_is_trained_stay(void)
{
    check_in_arena(refuses);
}

/* Statistics are no variables then, and no mask is drawn. */
static void without_modes(struct cm_arena *arena)
{
    struct cm_model_file *file;
    struct cm_error err = {0};

    CHECK_OK(prepare_until(arena, models[1], "training-mode", NULL, &file, &err), &err);
    struct cm_trainer *trainer = train_open(arena, file);
    CHECK_INT(cm_trainer_state_find(trainer, CM_STR("m")), -1);
    CHECK(cm_trainer_state_find(trainer, CM_STR("s")) >= 0);
    cm_trainer_free(trainer);
}

void test_prepared_training__without_training_mode_statistics_stay(void)
{
    check_in_arena(without_modes);
}
