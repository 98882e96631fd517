/* Trainers through the public API: steps, variables, data sets, checkpoints, saving. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api_case.h"
#include "api/lend.h"
#include "base/memory.h"
#include "cameo.h"
#include "onnx/model_case.h"

#include <math.h>

/* y = w x, loss (y - t)^2 / 2 summed, one step of size 1/10; noise keeps the random state busy. */
static const char line[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.preview.training\" : 1]>\n"
    "line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {1}>\n"
    "{ y = MatMul(x, w) }\n"
    "training {\n"
    "  initialization: first () => (float[1,1] w0) <float[1,1] two = {2}> { w0 = Identity(two) },\n"
    "  initialization_binding: [\"w\": \"w0\"],\n"
    "  algorithm: step (float[N,1] t) => (float loss, float[1,1] w_new, int64 n_new, float[1] "
    "r_new)"
    "\n  <float rate = {0.1}, float half = {0.5}, int64 n = {0}, int64 one = {1}, float[1] r = {0}>"
    "\n  { d = Sub(y, t)\n    s = Mul(d, d)\n    h = Mul(s, half)\n"
    "    loss = ReduceSum<keepdims = 0>(h)\n"
    "    g = ai.onnx.preview.training.Gradient<xs = [\"w\"], zs = [\"x\", \"t\"], y = \"loss\">"
    "(w, x, t)\n    m = Mul(g, rate)\n    w_new = Sub(w, m)\n    n_new = Add(n, one)\n"
    "    r_new = RandomNormal<shape = [1]>() },\n"
    "  update_binding: [\"w\": \"w_new\", \"n\": \"n_new\", \"r\": \"r_new\"]\n}\n";

static struct cameo_trainer *open_trainer(struct cameo_model *model)
{
    struct cameo_trainer_options options = CAMEO_TRAINER_OPTIONS_INIT;
    struct cameo_trainer *trainer;
    struct cameo_error err;

    options.threads = 1;
    if (cameo_trainer_new(model, &options, &trainer, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    return trainer;
}

static const int64_t dims[] = {2, 1};
static const float xs[] = {1, 2}, ts[] = {3, 6};

static struct cameo_feed feed(const char *name, const float *values)
{
    return cameo_feed_tensor(name, lend(CAMEO_FLOAT, 2, dims, values, 2 * sizeof *values));
}

static float weight(const struct cameo_trainer *trainer)
{
    struct cameo_error err;
    float w;

    OK(cameo_trainer_read_variable(trainer, cameo_trainer_find_variable(trainer, "w"), &w, sizeof w,
                                   &err));
    return w;
}

void test_training__steps_change_variables_and_give_scalars(void)
{
    struct cameo_model *model = load_text(line);
    struct cameo_trainer *trainer = open_trainer(model);
    const struct cameo_feed feeds[] = {feed("t", ts), feed("x", xs)};
    struct cameo_error err;
    double scalars[2];
    const float four = 4;

    CHECK_INT(cameo_trainer_input_count(trainer), 2);
    CHECK_STRING(cameo_trainer_input(trainer, 0)->name.data, "x");
    CHECK_STRING(cameo_trainer_input(trainer, 0)->type.data, "float[?,1]");
    CHECK(cameo_trainer_input(trainer, 2) == NULL);
    CHECK_INT(cameo_trainer_variable_count(trainer), 3);
    CHECK_INT(cameo_trainer_scalar_count(trainer), 1); /* n is counted, not measured */
    CHECK_STRING(cameo_trainer_scalar_name(trainer, cameo_trainer_loss(trainer)), "loss");
    OK(cameo_trainer_step(trainer, feeds, 2, scalars, &err));
    /* w 1: loss ((1 - 3)^2 + (2 - 6)^2) / 2, gradient -2 * 1 - 4 * 2 */
    CHECK(fabs(scalars[cameo_trainer_loss(trainer)] - 10) < 1e-6);
    CHECK(fabsf(weight(trainer) - 2) < 1e-6f);
    CHECK_INT(cameo_trainer_steps(trainer), 1);
    OK(cameo_trainer_initialize(trainer, &err));
    CHECK(weight(trainer) == 2);
    CHECK_INT(cameo_trainer_steps(trainer), 0);
    OK(cameo_trainer_set_variable(trainer, cameo_trainer_find_variable(trainer, "w"), &four,
                                  sizeof four, &err));
    CHECK(weight(trainer) == 4);
    cameo_trainer_free(trainer);
    cameo_model_free(model);
}

/* A program that was compiled when they were shorter, and one that forgot the macro. */
void test_training__structs_for_results_are_filled_as_far_as_they_go(void)
{
    struct cameo_model *model = load_text(line);
    struct cameo_trainer *trainer = open_trainer(model);
    struct cameo_feed feeds[] = {feed("t", NULL), feed("x", NULL)};
    struct cameo_memory memory = CAMEO_MEMORY_INIT;
    struct cameo_backend backend = CAMEO_BACKEND_INIT;
    struct cameo_measure measure = {0};
    struct cameo_error err;

    memory.struct_size = offsetof(struct cameo_memory, state);
    memory.state = 77;
    OK(cameo_trainer_memory(trainer, feeds, 2, &memory, &err));
    CHECK_INT(memory.struct_size, offsetof(struct cameo_memory, state));
    CHECK_INT(memory.weights, sizeof(float));
    CHECK_INT(memory.state, 77);
    memory.struct_size = 0;
    CHECK(cameo_trainer_memory(trainer, feeds, 2, &memory, &err) == CAMEO_BAD_ARGUMENT);
    CHECK_STRING(err.message,
                 "a struct for results has struct_size 0; make it with its _INIT macro");
    CHECK(cameo_trainer_evaluate(trainer, feeds, 2, &measure, &err) == CAMEO_BAD_ARGUMENT);
    CHECK(!cameo_backend(1000, &backend));
    CHECK(backend.name[0] == 0 && backend.struct_size == sizeof backend);
    backend.struct_size = 0;
    CHECK(!cameo_backend(0, &backend));
    cameo_trainer_free(trainer);
    cameo_model_free(model);
}

void test_training__memory_of_a_step_is_told_from_shapes_alone(void)
{
    struct cameo_model *model = load_text(line);
    struct cameo_trainer *trainer = open_trainer(model);
    struct cameo_feed feeds[] = {feed("t", NULL), feed("x", NULL)};
    struct cameo_memory memory = CAMEO_MEMORY_INIT, larger = CAMEO_MEMORY_INIT;
    struct cameo_error err;
    const int64_t many[] = {1000, 1}, wrong[] = {2, 3};

    OK(cameo_trainer_memory(trainer, feeds, 2, &memory, &err));
    CHECK_INT(memory.weights, sizeof(float));                 /* w */
    CHECK_INT(memory.state, sizeof(int64_t) + sizeof(float)); /* n and r */
    CHECK_INT(memory.updates, sizeof(float)); /* r, which no step reads; the others are in place */
    CHECK_INT(memory.batch, 4 * sizeof(float));
    CHECK(memory.work > 0);
    CHECK_INT(memory.late, 0);
    feeds[0].tensor = feeds[1].tensor = lend(CAMEO_FLOAT, 2, many, NULL, 0);
    OK(cameo_trainer_memory(trainer, feeds, 2, &larger, &err));
    CHECK_INT(larger.batch, 2000 * sizeof(float));
    CHECK(larger.work >= 1000 * sizeof(float) && larger.updates == memory.updates);
    CHECK_INT(cameo_trainer_steps(trainer), 0);
    CHECK(weight(trainer) == 1);
    feeds[1].tensor = lend(CAMEO_FLOAT, 2, wrong, NULL, 0);
    CHECK(cameo_trainer_memory(trainer, feeds, 2, &memory, &err) == CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "input 'x' has shape 2x3, needs float[N,1]"));
    cameo_trainer_free(trainer);
    cameo_model_free(model);
}

void test_training__wrong_feeds_and_sizes_are_sentences(void)
{
    struct cameo_model *model = load_text(line);
    struct cameo_trainer *trainer = open_trainer(model);
    struct cameo_feed feeds[] = {feed("t", ts), feed("q", xs)};
    struct cameo_error err;
    float w;

    CHECK(cameo_trainer_step(trainer, feeds, 2, NULL, &err) == CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "no input 'q'; a step takes 'x', 't'"));
    CHECK(cameo_trainer_step(trainer, feeds, 1, NULL, &err) == CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "missing: 'x' (float[?,1])"));
    feeds[1] = feeds[0];
    CHECK(cameo_trainer_step(trainer, feeds, 2, NULL, &err) == CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "'t' is fed twice"));
    feeds[1] = feed("x", xs);
    feeds[1].tensor = lend(CAMEO_FLOAT, 2, dims, xs, 4);
    CHECK(cameo_trainer_step(trainer, feeds, 2, NULL, &err) == CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "4 bytes, its shape 2x1 needs 8"));
    CHECK(cameo_trainer_read_variable(trainer, 0, &w, 3, &err) == CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "'w' has 4 bytes"));
    CHECK(cameo_trainer_read_variable(trainer, 9, &w, 4, &err) == CAMEO_BAD_ARGUMENT);
    CHECK(weight(trainer) == 1);
    cameo_trainer_free(trainer);
    cameo_model_free(model);
}

void test_training__evaluation_and_prediction_leave_everything_alone(void)
{
    struct cameo_model *model = load_text(line);
    struct cameo_trainer *trainer = open_trainer(model);
    const struct cameo_feed feeds[] = {feed("x", xs), feed("t", ts)};
    struct cameo_fetch fetch = cameo_fetch_value("y");
    struct cameo_measure measure = CAMEO_MEASURE_INIT;
    struct cameo_error err;

    OK(cameo_trainer_step(trainer, feeds, 2, NULL, &err));
    OK(cameo_trainer_evaluate(trainer, feeds, 2, &measure, &err));
    CHECK(fabs(measure.loss - 2.5) < 1e-5); /* w 2: (1 + 4) / 2 */
    CHECK_INT(measure.samples, 2);
    CHECK_INT(measure.judged, 0);
    CHECK_INT(measure.compared, 2); /* 2 and 4 for 3 and 6 */
    CHECK(fabs(measure.absolute - 3) < 1e-5 && fabs(measure.squared - 5) < 1e-5);
    CHECK(measure.targets == 9 && measure.target_squares == 45);
    CHECK(isnan(measure.accuracy) && fabs(measure.mae - 1.5) < 1e-5);
    CHECK(fabs(measure.mse - 2.5) < 1e-5 && fabs(measure.r2 + 1.0 / 9) < 1e-5);
    OK(cameo_trainer_predict(trainer, feeds, 1, &fetch, 1, &err));
    CHECK(fabs(cameo_value_real(fetch.value, 1) - 4) < 1e-5);
    cameo_value_free(fetch.value);
    CHECK(fabsf(weight(trainer) - 2) < 1e-6f);
    CHECK(cameo_trainer_predict(trainer, feeds, 2, &fetch, 1, &err) == CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "reads no input 't'"));
    cameo_trainer_free(trainer);
    cameo_model_free(model);
}

/* ---- what is in the way ---- */

static const char two_strangers[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"my\" : 1, \"ai.onnx.preview.training\" : 1]>\n"
    "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}>\n"
    "{ p = Mul(x, w)\n  [one] q = my.Alpha(p)\n  [two] y = my.Beta(q) }\n"
    "training {\n"
    "  algorithm: step () => (float[2] g) {\n"
    "    g = ai.onnx.preview.training.Gradient<xs = [\"w\"], zs = [\"x\"], y = \"y\">(w, x) },\n"
    "  update_binding: [\"w\": \"g\"]\n}\n";

static enum cameo_status copy_run(struct cameo_call *call, void *arg)
{
    struct cameo_tensor in = CAMEO_TENSOR_INIT, out = CAMEO_TENSOR_INIT;

    (void)arg;
    if (cameo_call_input(call, 0, &in) && cameo_call_output(call, 0, &out))
        memcpy(out.data, in.data, in.bytes);
    return CAMEO_OK;
}

void test_training__all_operators_without_a_gradient_are_named_at_once(void)
{
    static const struct cameo_operand operand = {sizeof(struct cameo_operand), "v", NULL, 0,
                                                 CAMEO_OPERAND_SINGLE};
    struct cameo_custom_operator op = CAMEO_CUSTOM_OPERATOR_INIT;
    struct cameo_trainer_options options = CAMEO_TRAINER_OPTIONS_INIT;
    struct cameo_load_options text = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_registry *registry;
    struct cameo_trainer *trainer;
    struct cameo_model *model;
    struct cameo_error err;

    text.format = CAMEO_FORMAT_TEXT;
    OK(cameo_registry_new(&registry, &err));
    op.domain = "my";
    op.inputs = op.outputs = &operand;
    op.input_count = op.output_count = 1;
    op.run = copy_run;
    op.name = "Alpha";
    OK(cameo_registry_add(registry, &op, &err));
    op.name = "Beta";
    OK(cameo_registry_add(registry, &op, &err));
    OK(cameo_model_load_memory(two_strangers, strlen(two_strangers), &text, &model, &err));
    options.registry = registry;
    CHECK(cameo_trainer_new(model, &options, &trainer, &err) == CAMEO_UNSUPPORTED);
    CHECK(trainer == NULL);
    CHECK(strstr(err.message, "'one' (my.Alpha)") || strstr(err.message, "'one' (Alpha)"));
    CHECK(strstr(err.message, "'two' (my.Beta)") || strstr(err.message, "'two' (Beta)"));
    CHECK(strstr(err.message, "no gradient is known for them"));
    cameo_model_free(model);
    cameo_registry_free(registry);
}

/* Of as many as no message has room for. */
void test_training__all_blockers_are_listed(void)
{
    enum { COUNT = 300 };
    static char model_text[COUNT * 60 + 1000];
    struct cameo_load_options load_options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_findings *findings;
    struct cameo_model *model;
    struct cameo_error err;
    int used = snprintf(model_text, sizeof model_text,
                        "<ir_version: 8, opset_import: [\"\" : 17, \"my\" : 1]>\n"
                        "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }\n"
                        "training {\n  algorithm: step () => (float[2] a300) {\n a0 = Neg(w)\n");

    for (int i = 0; i < COUNT; i++)
        used += snprintf(model_text + used, sizeof model_text - (size_t)used,
                         "b%d = my.T%d(w)\n a%d = Add(a%d, b%d)\n", i, i, i + 1, i, i);
    snprintf(model_text + used, sizeof model_text - (size_t)used,
             "},\n  update_binding: [\"w\": \"a%d\", \"nobody\": \"a%d\"]\n}\n", COUNT, COUNT);
    load_options.format = CAMEO_FORMAT_TEXT;
    OK(cameo_model_load_memory(model_text, strlen(model_text), &load_options, &model, &err));
    OK(cameo_model_training_blockers(model, NULL, &findings, &err));
    CHECK_INT(cameo_findings_count(findings), COUNT + 1);
    CHECK(strstr(cameo_findings_at(findings, 0)->reason.data, "'nobody' is not an initializer"));
    CHECK(strstr(cameo_findings_at(findings, COUNT)->place.data, "my.T299"));
    CHECK_STRING(cameo_findings_at(findings, 0)->place.data, "training_info[0].update_binding");
    CHECK_STRING(cameo_findings_at(findings, 0)->rule.data, "train");
    cameo_findings_free(findings);
    struct cameo_trainer_options options = CAMEO_TRAINER_OPTIONS_INIT;
    struct cameo_trainer *trainer;
    options.findings = &findings;
    CHECK(cameo_trainer_new(model, &options, &trainer, &err) != CAMEO_OK);
    CHECK_INT(cameo_findings_count(findings), COUNT + 1);
    cameo_findings_free(findings);
    cameo_model_free(model);

    model = load_text(line);
    OK(cameo_model_training_blockers(model, NULL, &findings, &err));
    CHECK(cameo_findings_count(findings) == 0);
    cameo_findings_free(findings);
    cameo_model_free(model);
}

/* ---- files ---- */

static void keep_note(void *arg, const char *key, const char *value)
{
    CHECK_STRING(key, "who \"it\" was");
    CHECK_STRING(value, "me\n");
    (*(int *)arg)++;
}

static void checkpoint(struct cm_arena *arena)
{
    const char *folder = case_folder(arena);
    const char *path = case_path(arena, folder, "a.safetensors");
    const struct cameo_feed feeds[] = {feed("x", xs), feed("t", ts)};
    const struct cameo_note note = {sizeof note, {"who \"it\" was", 12}, {"me\n", 3}};
    struct cameo_model *model = load_text(line);
    struct cameo_trainer *first = open_trainer(model), *second = open_trainer(model);
    struct cameo_error err;
    float a[3], b[3];
    int notes = 0;

    for (int i = 0; i < 3; i++)
        OK(cameo_trainer_step(first, feeds, 2, NULL, &err));
    OK(cameo_checkpoint_save(first, path, &note, 1, &err));
    OK(cameo_checkpoint_notes(path, keep_note, &notes, &err));
    CHECK_INT(notes, 1);
    OK(cameo_checkpoint_resume(second, path, NULL, &err));
    CHECK_INT(cameo_trainer_steps(second), 3);
    for (int i = 0; i < 4; i++) {
        OK(cameo_trainer_step(first, feeds, 2, NULL, &err));
        OK(cameo_trainer_step(second, feeds, 2, NULL, &err));
        for (int v = 0; v < 2; v++) {
            const size_t index = cameo_trainer_find_variable(first, v ? "r" : "w");
            OK(cameo_trainer_read_variable(first, index, &a[v], 4, &err));
            OK(cameo_trainer_read_variable(second, index, &b[v], 4, &err));
        }
        CHECK(memcmp(a, b, 8) == 0);
    }
    case_write(path, "nonsense", 8);
    CHECK(cameo_checkpoint_resume(second, path, NULL, &err) != CAMEO_OK);
    CHECK(cameo_checkpoint_save(first, case_path(arena, folder, "no/where.safetensors"), &note, 1,
                                &err) != CAMEO_OK);
    cameo_trainer_free(first);
    cameo_trainer_free(second);
    cameo_model_free(model);
}

void test_training__a_checkpoint_goes_on_with_the_same_bits(void)
{
    check_in_arena(checkpoint);
}

static void list_difference(void *arg, const char *condition, const char *was, const char *now)
{
    const size_t used = strlen(arg);

    snprintf((char *)arg + used, 200 - used, "%s: %s -> %s\n", condition, was, now);
}

/* By hand, and of a run, which adds conditions of the data and of the caller's. */
static void other_conditions(struct cm_arena *arena)
{
    const char *folder = case_folder(arena), *path = case_path(arena, folder, "a.safetensors");
    struct cameo_resume_options resuming = CAMEO_RESUME_OPTIONS_INIT;
    struct cameo_trainer_options options = CAMEO_TRAINER_OPTIONS_INIT;
    char backend[] = "reference", list[200] = "";
    struct cameo_model *model = load_text(line);
    struct cameo_trainer *first = open_trainer(model), *second;
    struct cameo_error err;

    options.threads = 1;
    options.seed = 3;
    options.backend = backend;
    OK(cameo_trainer_new(model, &options, &second, &err));
    memset(backend, '?', sizeof backend - 1); /* it was copied */
    OK(cameo_checkpoint_save(first, path, NULL, 0, &err));
    CHECK(cameo_checkpoint_resume(second, path, NULL, &err) == CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "was written under other conditions"));
    CHECK(strstr(err.message, "now it is reference; seed was 0, now it is 3"));
    CHECK_INT(cameo_trainer_steps(second), 0);
    resuming.anyway = true;
    resuming.difference = list_difference;
    resuming.difference_arg = list;
    OK(cameo_checkpoint_resume(second, path, &resuming, &err));
    CHECK(strstr(list, "-> reference\nseed: 0 -> 3\n"));
    cameo_trainer_free(first);
    cameo_trainer_free(second);
    cameo_model_free(model);
}

void test_training__a_checkpoint_of_other_conditions_is_refused_unless_told_otherwise(void)
{
    check_in_arena(other_conditions);
}

static const char csv[] = "x,t\n1,3\n2,6\n3,9\n4,12\n5,15\n";

static void batches(struct cm_arena *arena)
{
    const char *folder = case_folder(arena);
    const char *path = case_path(arena, folder, "data.csv");
    static const int64_t sizes[] = {2, 2, 1, 0};
    struct cameo_dataset_options options = CAMEO_DATASET_OPTIONS_INIT;
    struct cameo_batches_options how = CAMEO_BATCHES_OPTIONS_INIT;
    struct cameo_model *model = load_text(line);
    struct cameo_trainer *trainer = open_trainer(model);
    struct cameo_dataset_field field = CAMEO_DATASET_FIELD_INIT;
    struct cameo_batches_position position = CAMEO_BATCHES_POSITION_INIT;
    struct cameo_dataset *dataset;
    struct cameo_batches *all;
    const struct cameo_feed *feeds;
    struct cameo_error err;
    int64_t rows;

    case_write(path, csv, sizeof csv - 1);
    options.columns = "x=x label=t";
    OK(cameo_dataset_open(path, &options, &dataset, &err));
    CHECK_INT(cameo_dataset_samples(dataset), 5);
    CHECK_INT(cameo_dataset_field_count(dataset), 2);
    CHECK(cameo_dataset_field(dataset, 1, &field));
    CHECK_STRING(field.name.data, "label");
    how.batch_size = 2;
    OK(cameo_batches_new(dataset, trainer, &how, &all, &err));
    CHECK_INT(cameo_batches_per_epoch(all), 3);
    for (int i = 0; i < 4; i++) {
        OK(cameo_batches_next(all, &feeds, &rows, &err));
        CHECK_INT(rows, sizes[i]);
        if (rows) /* the label, left over, went to the input without an array: in its shape */
            CHECK(feeds[1].tensor->rank == 2 && feeds[1].tensor->dims[1] == 1 &&
                  feeds[1].tensor->dtype == CAMEO_FLOAT &&
                  ((const float *)feeds[1].tensor->data)[0] == (float)(6 * i + 3));
    }
    OK(cameo_batches_next(all, &feeds, &rows, &err));
    OK(cameo_trainer_step(trainer, feeds, 2, NULL, &err));
    CHECK(weight(trainer) == 2);
    cameo_batches_tell(all, &position);
    CHECK_INT(position.epoch, 1);
    CHECK_INT(position.sample, 2);
    cameo_batches_free(all);
    how.target = "nobody";
    CHECK(cameo_batches_new(dataset, trainer, &how, &all, &err) == CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "no array 'nobody'; left over are 'label'"));
    cameo_dataset_free(dataset);
    cameo_trainer_free(trainer);
    cameo_model_free(model);
}

void test_training__batches_meet_inputs_by_name(void)
{
    check_in_arena(batches);
}

/* Batches of two fixed rows for five samples: the fifth is dropped, or said to be left over. */
static void fixed_batch(struct cm_arena *arena)
{
    const char *path = case_path(arena, case_folder(arena), "d.csv");
    struct cameo_prepare_options prepare = CAMEO_PREPARE_OPTIONS_INIT;
    struct cameo_batches_options how = CAMEO_BATCHES_OPTIONS_INIT;
    struct cameo_model *model = load_text(
        "<ir_version: 8, opset_import: [\"\" : 17]> fixed (float[2,1] x) => (float[2,1] y)\n"
        "<float[1,1] w = {1}> { y = MatMul(x, w) }");
    struct cameo_dataset *dataset;
    struct cameo_batches *all = NULL;
    struct cameo_error err;

    case_write(path, csv, sizeof csv - 1);
    OK(cameo_dataset_open(path, NULL, &dataset, &err));
    prepare.loss = "mse";
    prepare.optimizer = "sgd";
    prepare.schedule = CAMEO_SCHEDULE_COSINE;
    prepare.run_samples = cameo_dataset_samples(dataset);
    prepare.run_epochs = 2;
    OK(cameo_model_prepare(model, &prepare, NULL, &err));
    struct cameo_trainer *trainer = open_trainer(model);
    CHECK(cameo_batches_new(dataset, trainer, &how, &all, &err) == CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "5 samples leave a shorter one"));
    how.last = CAMEO_LAST_AUTO;
    OK(cameo_batches_new(dataset, trainer, &how, &all, &err));
    CHECK_INT(cameo_batches_last(all), CAMEO_LAST_DROP);
    CHECK_INT(cameo_batches_per_epoch(all), 2);
    cameo_batches_free(all);
    cameo_dataset_free(dataset);
    cameo_trainer_free(trainer);
    cameo_model_free(model);
}

void test_training__a_model_that_fixes_its_batch_may_drop_the_last(void)
{
    check_in_arena(fixed_batch);
}

static void run_folder(struct cm_arena *arena)
{
    const char *folder = case_folder(arena), *data = case_path(arena, folder, "data.csv");
    const char *checkpoints = case_path(arena, folder, "checkpoints");
    struct cameo_loop_options options = CAMEO_LOOP_OPTIONS_INIT;
    struct cameo_note condition = {sizeof condition, {"rate", 4}, {"0.1", 3}};
    struct cameo_loop_result result = CAMEO_LOOP_RESULT_INIT;
    struct cameo_dataset *dataset;
    struct cameo_batches *all;
    struct cameo_model *model = load_text(line);
    struct cameo_trainer *trainer = open_trainer(model);
    struct cameo_error err;
    char newest[400], small[8];

    case_write(data, csv, sizeof csv - 1);
    OK(cameo_dataset_open(data, NULL, &dataset, &err));
    OK(cameo_batches_new(dataset, trainer, NULL, &all, &err));
    CHECK(!cameo_batches_scales(all, 0) && !cameo_batches_scales(all, 9));
    OK(cameo_checkpoint_newest(checkpoints, newest, sizeof newest, &err));
    CHECK_STRING(newest, "");
    options.steps = 7;
    options.checkpoint = checkpoints;
    options.checkpoint_every = 2;
    options.keep = 2;
    options.conditions = &condition;
    options.condition_count = 1;
    OK(cameo_trainer_run(trainer, all, &options, &result, &err));
    CHECK(result.first_loss > 0 && result.loss > 0);
    CHECK_INT(case_count_files(checkpoints), 2);
    OK(cameo_checkpoint_newest(checkpoints, newest, sizeof newest, &err));
    CHECK_STRING(newest, case_path(arena, checkpoints, "step-0000000007.safetensors"));
    CHECK(cameo_checkpoint_newest(checkpoints, small, sizeof small, &err) == CAMEO_BAD_ARGUMENT);
    CHECK(cameo_checkpoint_newest(data, newest, sizeof newest, &err) == CAMEO_NOT_FOUND);
    CHECK(cameo_trainer_run(trainer, all, &options, NULL, &err) == CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "holds checkpoints of another run"));
    options.resume = true;
    condition.value = (struct cameo_text){"0.2", 3};
    CHECK(cameo_trainer_run(trainer, all, &options, NULL, &err) == CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "rate was 0.1, now it is 0.2"));
    /* The last one by hand: its conditions of the data and the caller's do not count then. */
    OK(cameo_checkpoint_newest(checkpoints, newest, sizeof newest, &err));
    OK(cameo_trainer_initialize(trainer, &err));
    OK(cameo_checkpoint_resume(trainer, newest, NULL, &err));
    CHECK_INT(cameo_trainer_steps(trainer), 7);
    cameo_batches_free(all);
    cameo_dataset_free(dataset);
    cameo_trainer_free(trainer);
    cameo_model_free(model);
}

void test_training__a_run_keeps_its_newest_checkpoints_in_a_folder(void)
{
    check_in_arena(run_folder);
}
/* ---- memory ---- */

/* Everything once, in whole steps or by halves; true when it came through. */
static bool whole_life(const char *path, bool gradients)
{
    struct cameo_trainer_options options = CAMEO_TRAINER_OPTIONS_INIT;
    struct cameo_load_options text = CAMEO_LOAD_OPTIONS_INIT;
    const struct cameo_feed feeds[] = {feed("x", xs), feed("t", ts)};
    struct cameo_trainer *trainer = NULL;
    struct cameo_model *model = NULL;
    struct cameo_measure measure = CAMEO_MEASURE_INIT;
    struct cameo_error err;
    bool done = false;
    float g;

    options.threads = 1;
    options.gradients = gradients;
    text.format = CAMEO_FORMAT_TEXT;
    if (cameo_model_load_memory(line, strlen(line), &text, &model, &err) == CAMEO_OK &&
        cameo_trainer_new(model, &options, &trainer, &err) == CAMEO_OK)
        done = cameo_trainer_initialize(trainer, &err) == CAMEO_OK &&
               cameo_trainer_step(trainer, feeds, 2, NULL, &err) == CAMEO_OK &&
               cameo_trainer_evaluate(trainer, feeds, 2, &measure, &err) == CAMEO_OK &&
               cameo_checkpoint_save(trainer, path, NULL, 0, &err) == CAMEO_OK &&
               cameo_checkpoint_resume(trainer, path, NULL, &err) == CAMEO_OK;
    if (done && gradients)
        done = cameo_trainer_compute(trainer, feeds, 2, NULL, &err) == CAMEO_OK &&
               cameo_trainer_read_gradients(trainer, &g, sizeof g, &err) == CAMEO_OK &&
               cameo_trainer_apply(trainer, NULL, &err) == CAMEO_OK;
    if (!done && err.status != CAMEO_NO_MEMORY)
        fail_msg("%s", err.message);
    cameo_trainer_free(trainer);
    cameo_model_free(model);
    return done;
}

static void exhaust(struct cm_arena *arena)
{
    const char *path = case_path(arena, case_folder(arena), "a.safetensors");

    for (int gradients = 0; gradients < 2; gradients++) {
        bool done = false;

        for (uint64_t n = 1; !done; n++) {
            cm_memory_fail_after(n);
            done = whole_life(path, gradients);
            cm_memory_fail_after(0);
            CHECK(n < 100000);
        }
    }
}

void test_training__every_allocation_may_fail(void)
{
    check_in_arena(exhaust);
}
