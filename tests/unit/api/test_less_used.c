/* Public functions that examples have no use for: named arrays, values written in place, batches
 * that are sought and described, models stripped, stepped and checked by differences, cancelling.
 */
// SPDX-License-Identifier: Apache-2.0
#include "api/api_case.h"
#include "api/lend.h"
#include "cameo.h"
#include "onnx/model_case.h"

#include <math.h>

/* y = w x, the square of what it misses, one step of size 1/10. */
static const char line[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.preview.training\" : 1]>\n"
    "line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {1}> { y = MatMul(x, w) }\n"
    "training {\n"
    "  algorithm: step (float[N,1] t) => (float loss, float[1,1] w_new) <float rate = {0.1}>\n"
    "  { d = Sub(y, t) s = Mul(d, d) loss = ReduceSum<keepdims = 0>(s)\n"
    "    g = ai.onnx.preview.training.Gradient<xs = [\"w\"], zs = [\"x\", \"t\"], y = \"loss\">"
    "(w, x, t)\n    m = Mul(g, rate) w_new = Sub(w, m) },\n"
    "  update_binding: [\"w\": \"w_new\"]\n}\n";

static const int64_t column[] = {2, 1}, single[] = {1, 1};

static struct cameo_feed feed(const char *name, const int64_t *dims, const float *values)
{
    return cameo_feed_tensor(name,
                             lend(CAMEO_FLOAT, 2, dims, values, (size_t)dims[0] * sizeof *values));
}

static void name_arrays(struct cm_arena *arena)
{
    const char *path = case_path(arena, case_folder(arena), "a.npz");
    const char *const names[] = {"first", "second"};
    const int64_t three = 3;
    struct cameo_value *values[2];
    struct cameo_arrays *arrays;
    struct cameo_error err;

    OK(cameo_value_new(CAMEO_FLOAT, 1, &three, &values[0], &err));
    OK(cameo_value_new(CAMEO_INT64, 0, NULL, &values[1], &err));
    ((float *)cameo_value_mutable_data(values[0]))[2] = 2.5f;
    *(int64_t *)cameo_value_mutable_data(values[1]) = -7;
    OK(cameo_arrays_save(path, names, (const struct cameo_value *const *)values, 2, &err));
    OK(cameo_arrays_open(path, CAMEO_KIND_NONE, &arrays, &err));
    CHECK_INT(cameo_arrays_count(arrays), 2);
    for (size_t i = 0; i < 2; i++) {
        CHECK_STRING(cameo_arrays_name(arrays, i).data, names[i]);
        CHECK_INT(cameo_arrays_name(arrays, i).size, strlen(names[i]));
    }
    CHECK(cameo_arrays_name(arrays, 2).data == NULL);
    CHECK(cameo_value_real(cameo_arrays_at(arrays, 0), 2) == 2.5);
    CHECK_INT(cameo_value_integer(cameo_arrays_at(arrays, 1), 0), -7);
    cameo_arrays_free(arrays);
    cameo_value_free(values[0]);
    cameo_value_free(values[1]);
}

void test_less_used__arrays_have_names_and_values_are_written_in_place(void)
{
    check_in_arena(name_arrays);
}

/* Arrays that nobody asked for are listed but not made, and what is made counts. */
static void load_some(struct cm_arena *arena)
{
    const char *path = case_path(arena, case_folder(arena), "b.npz");
    const char *const names[] = {"small", "large"};
    const struct cameo_text small = {"small", 5}, none = {"none", 4};
    struct cameo_arrays_options options = CAMEO_ARRAYS_OPTIONS_INIT;
    const int64_t sizes[] = {3, 100000};
    struct cameo_value *values[2];
    struct cameo_arrays *arrays;
    struct cameo_error err;

    /* Strings are copied out of the file: their number costs, even of empty ones. */
    for (size_t i = 0; i < 2; i++)
        OK(cameo_value_new(CAMEO_STRING, 1, &sizes[i], &values[i], &err));
    OK(cameo_arrays_save(path, names, (const struct cameo_value *const *)values, 2, &err));
    options.memory_limit = 100000;
    CHECK_INT(cameo_arrays_load(path, &options, &arrays, &err), CAMEO_LIMIT);
    CHECK(strstr(err.message, "b.npz: array 'large'") && strstr(err.message, "memory limit"));
    CHECK(arrays == NULL);
    options.names = &small;
    options.name_count = 1;
    OK(cameo_arrays_load(path, &options, &arrays, &err));
    CHECK_INT(cameo_arrays_count(arrays), 2);
    CHECK_STRING(cameo_arrays_name(arrays, 1).data, "large");
    CHECK_INT(cameo_value_count(cameo_arrays_at(arrays, 0)), 3);
    CHECK(cameo_arrays_at(arrays, 1) == NULL);
    cameo_arrays_free(arrays);
    options.names = &none;
    options.memory_limit = 0;
    OK(cameo_arrays_save(path, names, (const struct cameo_value *const *)values, 1, &err));
    OK(cameo_arrays_load(path, &options, &arrays, &err));
    CHECK(cameo_arrays_at(arrays, 0) == NULL);
    cameo_arrays_free(arrays);
    options.or_alone = true;
    options.copy_files = true;
    OK(cameo_arrays_load(path, &options, &arrays, &err));
    CHECK_INT(cameo_value_count(cameo_arrays_at(arrays, 0)), 3);
    cameo_arrays_free(arrays);
    cameo_value_free(values[0]);
    cameo_value_free(values[1]);
}

void test_less_used__arrays_are_loaded_by_name_and_within_a_limit(void)
{
    check_in_arena(load_some);
}

static void seek_batches(struct cm_arena *arena)
{
    static const char csv[] = "x,t\n1,3\n2,6\n3,9\n4,12\n5,15\n";
    const char *path = case_path(arena, case_folder(arena), "d.csv");
    struct cameo_batches_options options = CAMEO_BATCHES_OPTIONS_INIT;
    struct cameo_model *model = load_text(line);
    struct cameo_trainer *trainer;
    struct cameo_dataset *dataset;
    struct cameo_batches *batches;
    struct cameo_memory memory = CAMEO_MEMORY_INIT;
    struct cameo_error err;
    const struct cameo_feed *feeds;
    int64_t rows;

    case_write(path, csv, strlen(csv));
    OK(cameo_trainer_new(model, NULL, &trainer, &err));
    OK(cameo_dataset_open(path, NULL, &dataset, &err));
    options.batch_size = 2;
    OK(cameo_batches_new(dataset, trainer, &options, &batches, &err));
    CHECK_INT(cameo_batches_size(batches), 2);
    CHECK_INT(cameo_batches_per_epoch(batches), 3);
    const struct cameo_feed *shapes = cameo_batches_shapes(batches);
    CHECK_INT(shapes[0].tensor->dims[0], 2);
    OK(cameo_trainer_memory(trainer, shapes, cameo_trainer_input_count(trainer), &memory, &err));
    CHECK_INT(memory.batch, 16);
    CHECK(memory.batch < cameo_free_memory(false));

    OK(cameo_batches_next(batches, &feeds, &rows, &err));
    OK(cameo_batches_next(batches, &feeds, &rows, &err));
    struct cameo_batches_position there = CAMEO_BATCHES_POSITION_INIT;
    cameo_batches_tell(batches, &there);
    OK(cameo_batches_next(batches, &feeds, &rows, &err));
    CHECK_INT(rows, 1);
    CHECK(((const float *)feeds[0].tensor->data)[0] == 5);
    OK(cameo_batches_seek(batches, NULL, &err));
    OK(cameo_batches_next(batches, &feeds, &rows, &err));
    CHECK(rows == 2 && ((const float *)feeds[0].tensor->data)[0] == 1);
    OK(cameo_batches_seek(batches, &there, &err));
    OK(cameo_batches_next(batches, &feeds, &rows, &err));
    CHECK(rows == 1 && ((const float *)feeds[0].tensor->data)[0] == 5);
    cameo_batches_free(batches);
    cameo_dataset_free(dataset);
    cameo_trainer_free(trainer);
    cameo_model_free(model);
}

void test_less_used__batches_are_described_and_sought(void)
{
    check_in_arena(seek_batches);
}

void test_less_used__a_step_is_a_plain_model(void)
{
    static const float x[] = {1, 2}, t[] = {3, 6}, w[] = {1};
    const struct cameo_feed feeds[] = {feed("w", single, w), feed("x", column, x),
                                       feed("t", column, t)};
    struct cameo_fetch fetches[] = {cameo_fetch_value("loss"), cameo_fetch_value("w.next")};
    struct cameo_model *model = load_text(line), *step;
    struct cameo_session *session;
    struct cameo_error err;

    OK(cameo_model_step(model, true, &step, &err));
    OK(cameo_session_new(step, NULL, &session, &err));
    OK(cameo_session_run(session, feeds, 3, fetches, 2, NULL, &err));
    /* (1 - 3)^2 + (2 - 6)^2; w less a tenth of 2 (-2 * 1 - 4 * 2) */
    CHECK(fabs(cameo_value_real(fetches[0].value, 0) - 20) < 1e-5);
    CHECK(fabs(cameo_value_real(fetches[1].value, 0) - 3) < 1e-5);
    cameo_value_free(fetches[0].value);
    cameo_value_free(fetches[1].value);
    cameo_session_free(session);
    cameo_model_free(step);

    OK(cameo_model_strip(model, &err));
    struct cameo_trainer *trainer = NULL;
    CHECK(cameo_trainer_new(model, NULL, &trainer, &err) != CAMEO_OK);
    CHECK(trainer == NULL);
    cameo_model_free(model);
}

struct seen {
    size_t rows;
    double worst;
    bool has_w;
};

static void note_row(void *arg, const struct cameo_gradcheck *row)
{
    struct seen *seen = arg;

    seen->rows++;
    seen->worst = row->worst > seen->worst ? row->worst : seen->worst;
    seen->has_w = seen->has_w || strcmp(row->name.data, "w") == 0;
    CHECK(row->reached);
    CHECK(row->checked > 0 && (int64_t)row->checked <= row->elements);
}

void test_less_used__gradients_are_compared_with_differences(void)
{
    struct cameo_model *model =
        load_text("<ir_version: 8, opset_import: [\"\" : 17]>\n"
                  "g (float[N,2] x) => (float[N,2] y) <float[2,2] w = {1, 2, 3, 4}>\n"
                  "{ m = MatMul(x, w) y = Tanh(m) }\n");
    struct seen seen = {0};
    struct cameo_error err;

    OK(cameo_model_gradcheck(model, NULL, NULL, 0, note_row, &seen, &err));
    CHECK_INT(seen.rows, 2);
    CHECK(seen.has_w);
    CHECK(seen.worst < 1e-4);
    cameo_model_free(model);
}

void test_less_used__a_step_that_is_cancelled_changes_nothing(void)
{
    static const float x[] = {1, 2}, t[] = {3, 6};
    const struct cameo_feed feeds[] = {feed("x", column, x), feed("t", column, t)};
    struct cameo_model *model = load_text(line);
    struct cameo_trainer *trainer;
    struct cameo_cancel *cancel;
    struct cameo_error err;
    float w;

    OK(cameo_trainer_new(model, NULL, &trainer, &err));
    OK(cameo_cancel_new(&cancel, &err));
    cameo_trainer_set_cancel(trainer, cancel);
    cameo_cancel_set(cancel);
    CHECK_INT(cameo_trainer_step(trainer, feeds, 2, NULL, &err), CAMEO_CANCELLED);
    OK(cameo_trainer_read_variable(trainer, 0, &w, sizeof w, &err));
    CHECK(w == 1);
    cameo_cancel_clear(cancel);
    OK(cameo_trainer_step(trainer, feeds, 2, NULL, &err));
    OK(cameo_trainer_read_variable(trainer, 0, &w, sizeof w, &err));
    CHECK(fabsf(w - 3) < 1e-5f);
    cameo_trainer_set_cancel(trainer, NULL);
    cameo_cancel_free(cancel);
    OK(cameo_trainer_step(trainer, feeds, 2, NULL, &err));
    cameo_trainer_free(trainer);
    cameo_model_free(model);
}

static void cancel_a_save(struct cm_arena *arena)
{
    const char *folder = case_folder(arena);
    struct cameo_save_options options = CAMEO_SAVE_OPTIONS_INIT;
    struct cameo_model *model = load_text(line);
    struct cameo_error err;

    OK(cameo_cancel_new(&options.cancel, &err));
    cameo_cancel_set(options.cancel);
    CHECK_INT(cameo_model_save(model, case_path(arena, folder, "m.onnx"), &options, NULL, &err),
              CAMEO_CANCELLED);
    CHECK_INT(case_count_files(folder), 0);
    cameo_cancel_clear(options.cancel);
    OK(cameo_model_save(model, case_path(arena, folder, "m.onnx"), &options, NULL, &err));
    cameo_cancel_free(options.cancel);
    cameo_model_free(model);
}

void test_less_used__a_save_that_is_cancelled_leaves_nothing(void)
{
    check_in_arena(cancel_a_save);
}
