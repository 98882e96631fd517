/* Every public function that can fail, given NULL for what it cannot do without. */
// SPDX-License-Identifier: Apache-2.0
#include "cameo.h"
#include "cameo_dlpack.h"
#include "check.h"

#include "base/file.h"

static const char line[] =
    "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.preview.training\" : 1]>\n"
    "line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {1}> { y = MatMul(x, w) }\n"
    "training {\n"
    "  algorithm: step (float[N,1] t) => (float loss, float[1,1] w_new)\n"
    "  { d = Sub(y, t) s = Mul(d, d) loss = ReduceSum<keepdims = 0>(s)\n"
    "    g = ai.onnx.preview.training.Gradient<xs = [\"w\"], zs = [\"x\", \"t\"], y = \"loss\">"
    "(w, x, t)\n    w_new = Sub(w, g) },\n"
    "  update_binding: [\"w\": \"w_new\"]\n}\n";

/* One of each, good for everything. */
struct things {
    struct cameo_model *model;
    struct cameo_session *session;
    struct cameo_trainer *trainer;
    struct cameo_registry *registry;
    struct cameo_dataset *dataset; /* never looked at: another argument is missing */
    struct cameo_batches *batches;
    struct cameo_value *value;
    struct cameo_error err;
};

struct row {
    const char *name;
    void (*check)(struct things *t);
};

/* The call fails for the argument, with and without somewhere to say so. */
#define REFUSES(argument, ...)                                                                     \
    do {                                                                                           \
        struct cameo_error *err = &t->err;                                                         \
        t->err = (struct cameo_error){0};                                                          \
        CHECK_INT((__VA_ARGS__), CAMEO_BAD_ARGUMENT);                                              \
        CHECK_INT(t->err.status, CAMEO_BAD_ARGUMENT);                                              \
        if (!strstr(t->err.message, argument))                                                     \
            fail_msg("'%s' is not in '%s'", argument, t->err.message);                             \
        err = NULL;                                                                                \
        CHECK_INT((__VA_ARGS__), CAMEO_BAD_ARGUMENT);                                              \
    } while (0)

#define ROW(function, ...)                                                                         \
    static void check_##function(struct things *t)                                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static int no_write(void *to, const void *bytes, size_t size)
{
    (void)to, (void)bytes, (void)size;
    return 0;
}

static void no_row(void *arg, const struct cameo_gradcheck *row)
{
    (void)arg, (void)row;
}

static void no_note(void *arg, const char *key, const char *value)
{
    (void)arg, (void)key, (void)value;
}

static const struct cameo_custom_operator no_operator = CAMEO_CUSTOM_OPERATOR_INIT;
static struct cameo_model *model_out;
static struct cameo_findings *findings_out;
static struct cameo_value *value_out;
static struct cameo_arrays *arrays_out;
static struct cameo_saved *saved_out;
static struct cameo_dataset *dataset_out;
static const char *const no_path = NULL, *const a_path = "x";
static struct cameo_session *session_out;
static struct cameo_trainer *trainer_out;
static struct cameo_batches *batches_out;
static struct cameo_memory memory_out = CAMEO_MEMORY_INIT;
static struct cameo_measure measure_out = CAMEO_MEASURE_INIT;
static const struct cameo_feed *feeds_out;
static const struct cameo_graph *graph_out;
static const struct cameo_tensor no_tensor = CAMEO_TENSOR_INIT;
static const struct cameo_node_attribute no_attribute;
static struct DLManagedTensor *old_out, no_old;
static struct DLManagedTensorVersioned *versioned_out, no_versioned;
static int64_t rows_out;
static float number;

/* clang-format off */
ROW(cameo_model_load,
    REFUSES("path", cameo_model_load(NULL, NULL, &model_out, err));
    REFUSES("'out'", cameo_model_load("x", NULL, NULL, err));)
ROW(cameo_model_load_memory,
    REFUSES("bytes", cameo_model_load_memory(NULL, 1, NULL, &model_out, err));
    REFUSES("'out'", cameo_model_load_memory("x", 1, NULL, NULL, err));)
ROW(cameo_model_read_initializer,
    REFUSES("'model'", cameo_model_read_initializer(NULL, 0, &number, 4, err));
    REFUSES("'values'", cameo_model_read_initializer(t->model, 0, NULL, 4, err));)
ROW(cameo_model_view_initializer,
    REFUSES("'model'", cameo_model_view_initializer(NULL, 0, &value_out, err));
    REFUSES("'out'", cameo_model_view_initializer(t->model, 0, NULL, err));)
ROW(cameo_model_copy, REFUSES("'model'", cameo_model_copy(NULL, &model_out, err));
    REFUSES("'out'", cameo_model_copy(t->model, NULL, err));)
ROW(cameo_model_set_initializer,
    REFUSES("'model'", cameo_model_set_initializer(NULL, 0, &number, 4, err));
    REFUSES("'values'", cameo_model_set_initializer(t->model, 0, NULL, 4, err));)
ROW(cameo_model_save,
    REFUSES("'model'", cameo_model_save(NULL, "x", NULL, NULL, err));
    REFUSES("path", cameo_model_save(t->model, NULL, NULL, NULL, err));)
ROW(cameo_model_write,
    REFUSES("'model'", cameo_model_write(NULL, NULL, no_write, NULL, err));
    REFUSES("write", cameo_model_write(t->model, NULL, NULL, NULL, err));)
ROW(cameo_model_check,
    REFUSES("'model'", cameo_model_check(NULL, NULL, &findings_out, err));
    REFUSES("'out'", cameo_model_check(t->model, NULL, NULL, err));)
ROW(cameo_model_blockers,
    REFUSES("'model'", cameo_model_blockers(NULL, NULL, &findings_out, err));
    REFUSES("'out'", cameo_model_blockers(t->model, NULL, NULL, err));)
ROW(cameo_value_new,
    REFUSES("'out'", cameo_value_new(CAMEO_FLOAT, 0, NULL, NULL, err));
    REFUSES("rank 1", cameo_value_new(CAMEO_FLOAT, 1, NULL, &value_out, err));)
ROW(cameo_value_from_tensor,
    REFUSES("'tensor'", cameo_value_from_tensor(NULL, &value_out, err));
    REFUSES("'out'", cameo_value_from_tensor(&no_tensor, NULL, err));)
ROW(cameo_value_new_strings,
    REFUSES("'out'", cameo_value_new_strings(0, NULL, NULL, NULL, err));
    REFUSES("string 0", cameo_value_new_strings(0, NULL, NULL, &value_out, err));)
ROW(cameo_value_new_sequence,
    REFUSES("'items'", cameo_value_new_sequence(NULL, 1, &value_out, err));
    REFUSES("'out'", cameo_value_new_sequence(NULL, 0, NULL, err));)
ROW(cameo_value_new_map,
    REFUSES("'keys'", cameo_value_new_map(NULL, NULL, &value_out, err));
    REFUSES("'out'", cameo_value_new_map(t->value, NULL, NULL, err));)
ROW(cameo_value_new_optional, REFUSES("'out'", cameo_value_new_optional(NULL, NULL, err));)
ROW(cameo_value_from_dlpack,
    REFUSES("'tensor'", cameo_value_from_dlpack(NULL, &value_out, err));
    REFUSES("'out'", cameo_value_from_dlpack(&no_versioned, NULL, err));)
ROW(cameo_value_from_dlpack_unversioned,
    REFUSES("'tensor'", cameo_value_from_dlpack_unversioned(NULL, &value_out, err));
    REFUSES("'out'", cameo_value_from_dlpack_unversioned(&no_old, NULL, err));)
ROW(cameo_value_to_dlpack,
    REFUSES("'value'", cameo_value_to_dlpack(NULL, &versioned_out, err));
    REFUSES("'out'", cameo_value_to_dlpack(t->value, NULL, err));)
ROW(cameo_value_to_dlpack_unversioned,
    REFUSES("'value'", cameo_value_to_dlpack_unversioned(NULL, &old_out, err));
    REFUSES("'out'", cameo_value_to_dlpack_unversioned(t->value, NULL, err));)
ROW(cameo_model_graph,
    REFUSES("'model'", cameo_model_graph(NULL, CAMEO_GRAPH_MAIN, 0, &graph_out, err));
    REFUSES("'out'", cameo_model_graph(t->model, CAMEO_GRAPH_MAIN, 0, NULL, err));)
ROW(cameo_attribute_tensor,
    REFUSES("'model'", cameo_attribute_tensor(NULL, &no_attribute, 0, &value_out, err));
    REFUSES("'attribute'", cameo_attribute_tensor(t->model, NULL, 0, &value_out, err));
    REFUSES("'out'", cameo_attribute_tensor(t->model, &no_attribute, 0, NULL, err));)
ROW(cameo_arrays_open,
    REFUSES("'path'", cameo_arrays_open(NULL, CAMEO_KIND_NONE, &arrays_out, err));
    REFUSES("'out'", cameo_arrays_open("x.npy", CAMEO_KIND_NONE, NULL, err));)
ROW(cameo_arrays_load, REFUSES("'path'", cameo_arrays_load(NULL, NULL, &arrays_out, err));
    REFUSES("'out'", cameo_arrays_load("x.npy", NULL, NULL, err));)
ROW(cameo_arrays_save,
    REFUSES("'path'", cameo_arrays_save(NULL, NULL, NULL, 0, err));
    REFUSES("'values'", cameo_arrays_save("x.npy", NULL, NULL, 1, err));)
ROW(cameo_saved_open, REFUSES("'path'", cameo_saved_open(NULL, &saved_out, err));
    REFUSES("'out'", cameo_saved_open("x.pt", NULL, err));)
ROW(cameo_saved_open_with, REFUSES("'path'", cameo_saved_open_with(NULL, NULL, &saved_out, err));
    REFUSES("'out'", cameo_saved_open_with("x.pt", NULL, NULL, err));)
ROW(cameo_saved_read, REFUSES("'saved'", cameo_saved_read(NULL, 0, &value_out, err));)
ROW(cameo_registry_new, REFUSES("'out'", cameo_registry_new(NULL, err));)
ROW(cameo_registry_add,
    REFUSES("'registry'", cameo_registry_add(NULL, &no_operator, err));
    REFUSES("'op'", cameo_registry_add(t->registry, NULL, err));)
ROW(cameo_session_new,
    REFUSES("'model'", cameo_session_new(NULL, NULL, &session_out, err));
    REFUSES("'out'", cameo_session_new(t->model, NULL, NULL, err));)
ROW(cameo_cancel_new, REFUSES("'out'", cameo_cancel_new(NULL, err));)
ROW(cameo_session_run,
    REFUSES("'session'", cameo_session_run(NULL, NULL, 0, NULL, 0, NULL, err));
    REFUSES("'feeds'", cameo_session_run(t->session, NULL, 1, NULL, 0, NULL, err));
    REFUSES("'fetches'", cameo_session_run(t->session, NULL, 0, NULL, 1, NULL, err));)
ROW(cameo_session_check, REFUSES("'session'", cameo_session_check(NULL, NULL, 0, NULL, err));
    REFUSES("'feeds'", cameo_session_check(t->session, NULL, 1, NULL, err));)
ROW(cameo_dataset_open,
    REFUSES("'path'", cameo_dataset_open(NULL, NULL, &dataset_out, err));
    REFUSES("'out'", cameo_dataset_open("x", NULL, NULL, err));)
ROW(cameo_dataset_open_files,
    REFUSES("'paths'", cameo_dataset_open_files(NULL, 1, NULL, &dataset_out, err));
    REFUSES("path 0", cameo_dataset_open_files(&no_path, 1, NULL, &dataset_out, err));
    REFUSES("'out'", cameo_dataset_open_files(&a_path, 1, NULL, NULL, err));)
ROW(cameo_trainer_new,
    REFUSES("'model'", cameo_trainer_new(NULL, NULL, &trainer_out, err));
    REFUSES("'out'", cameo_trainer_new(t->model, NULL, NULL, err));)
ROW(cameo_model_training_blockers,
    REFUSES("'model'", cameo_model_training_blockers(NULL, NULL, &findings_out, err));
    REFUSES("'out'", cameo_model_training_blockers(t->model, NULL, NULL, err));)
ROW(cameo_trainer_read_variable,
    REFUSES("'trainer'", cameo_trainer_read_variable(NULL, 0, &number, 4, err));
    REFUSES("'values'", cameo_trainer_read_variable(t->trainer, 0, NULL, 4, err));)
ROW(cameo_trainer_set_variable,
    REFUSES("'trainer'", cameo_trainer_set_variable(NULL, 0, &number, 4, err));
    REFUSES("'values'", cameo_trainer_set_variable(t->trainer, 0, NULL, 4, err));)
ROW(cameo_trainer_add_validation,
    REFUSES("'trainer'", cameo_trainer_add_validation(NULL, 1, err));)
ROW(cameo_trainer_read_parameters,
    REFUSES("'trainer'", cameo_trainer_read_parameters(NULL, &number, 4, err));
    REFUSES("'values'", cameo_trainer_read_parameters(t->trainer, NULL, 4, err));)
ROW(cameo_trainer_set_parameters,
    REFUSES("'trainer'", cameo_trainer_set_parameters(NULL, &number, 4, err));
    REFUSES("'values'", cameo_trainer_set_parameters(t->trainer, NULL, 4, err));)
ROW(cameo_trainer_read_gradients,
    REFUSES("'trainer'", cameo_trainer_read_gradients(NULL, &number, 4, err));
    REFUSES("'values'", cameo_trainer_read_gradients(t->trainer, NULL, 4, err));)
ROW(cameo_trainer_set_gradients,
    REFUSES("'trainer'", cameo_trainer_set_gradients(NULL, &number, 4, err));
    REFUSES("'values'", cameo_trainer_set_gradients(t->trainer, NULL, 4, err));)
ROW(cameo_trainer_initialize, REFUSES("'trainer'", cameo_trainer_initialize(NULL, err));)
ROW(cameo_trainer_step,
    REFUSES("'trainer'", cameo_trainer_step(NULL, NULL, 0, NULL, err));
    REFUSES("'feeds'", cameo_trainer_step(t->trainer, NULL, 1, NULL, err));)
ROW(cameo_trainer_compute,
    REFUSES("'trainer'", cameo_trainer_compute(NULL, NULL, 0, NULL, err));
    REFUSES("'feeds'", cameo_trainer_compute(t->trainer, NULL, 1, NULL, err));)
ROW(cameo_trainer_apply, REFUSES("'trainer'", cameo_trainer_apply(NULL, NULL, err));)
ROW(cameo_trainer_memory,
    REFUSES("'trainer'", cameo_trainer_memory(NULL, NULL, 0, &memory_out, err));
    REFUSES("'feeds'", cameo_trainer_memory(t->trainer, NULL, 1, &memory_out, err));
    REFUSES("'out'", cameo_trainer_memory(t->trainer, NULL, 0, NULL, err));)
ROW(cameo_trainer_evaluate,
    REFUSES("'trainer'", cameo_trainer_evaluate(NULL, NULL, 0, &measure_out, err));
    REFUSES("'feeds'", cameo_trainer_evaluate(t->trainer, NULL, 1, &measure_out, err));
    REFUSES("'out'", cameo_trainer_evaluate(t->trainer, NULL, 0, NULL, err));)
ROW(cameo_trainer_predict,
    REFUSES("'trainer'", cameo_trainer_predict(NULL, NULL, 0, NULL, 0, err));
    REFUSES("'feeds'", cameo_trainer_predict(t->trainer, NULL, 1, NULL, 0, err));
    REFUSES("'fetches'", cameo_trainer_predict(t->trainer, NULL, 0, NULL, 1, err));)
ROW(cameo_trainer_save,
    REFUSES("'trainer'", cameo_trainer_save(NULL, "x", NULL, NULL, err));
    REFUSES("path", cameo_trainer_save(t->trainer, NULL, NULL, NULL, err));)
ROW(cameo_checkpoint_save,
    REFUSES("'trainer'", cameo_checkpoint_save(NULL, "x", NULL, 0, err));
    REFUSES("'path'", cameo_checkpoint_save(t->trainer, NULL, NULL, 0, err));
    REFUSES("'notes'", cameo_checkpoint_save(t->trainer, "x", NULL, 1, err));)
ROW(cameo_checkpoint_resume,
    REFUSES("'trainer'", cameo_checkpoint_resume(NULL, "x", NULL, err));
    REFUSES("'path'", cameo_checkpoint_resume(t->trainer, NULL, NULL, err));)
ROW(cameo_checkpoint_notes,
    REFUSES("'path'", cameo_checkpoint_notes(NULL, no_note, NULL, err));
    REFUSES("'note'", cameo_checkpoint_notes("x", NULL, NULL, err));)
ROW(cameo_checkpoint_newest, char path[100];
    REFUSES("'folder'", cameo_checkpoint_newest(NULL, path, sizeof path, err));
    REFUSES("'path'", cameo_checkpoint_newest("x", NULL, 0, err));)
ROW(cameo_batches_new,
    REFUSES("'dataset'", cameo_batches_new(NULL, t->trainer, NULL, &batches_out, err));
    REFUSES("'trainer'", cameo_batches_new(t->dataset, NULL, NULL, &batches_out, err));
    REFUSES("'out'", cameo_batches_new(t->dataset, t->trainer, NULL, NULL, err));)
ROW(cameo_batches_next,
    REFUSES("'batches'", cameo_batches_next(NULL, &feeds_out, &rows_out, err));
    REFUSES("'feeds'", cameo_batches_next(t->batches, NULL, &rows_out, err));
    REFUSES("'rows'", cameo_batches_next(t->batches, &feeds_out, NULL, err));)
ROW(cameo_batches_seek,
    REFUSES("'batches'", cameo_batches_seek(NULL, NULL, err));)
ROW(cameo_loop_check, struct cameo_loop_options unmade = {0};
    REFUSES("_INIT macro", cameo_loop_check(&unmade, false, NULL, err));)
ROW(cameo_trainer_run,
    REFUSES("'trainer'", cameo_trainer_run(NULL, t->batches, NULL, NULL, err));
    REFUSES("'batches'", cameo_trainer_run(t->trainer, NULL, NULL, NULL, err));)
ROW(cameo_file_new, struct cameo_file *file_out;
    REFUSES("'path'", cameo_file_new(NULL, NULL, &file_out, err));
    REFUSES("'out'", cameo_file_new("x", NULL, NULL, err));)
ROW(cameo_file_write,
    REFUSES("'file'", cameo_file_write(NULL, "x", 1, err));
    REFUSES("'bytes'", cameo_file_write((void *)t, NULL, 1, err));)
ROW(cameo_file_commit,
    REFUSES("'file'", cameo_file_commit(NULL, err));)
ROW(cameo_model_draw,
    REFUSES("'model'", cameo_model_draw(NULL, NULL, no_write, NULL, NULL, err));
    REFUSES("'write'", cameo_model_draw(t->model, NULL, NULL, NULL, NULL, err));)
ROW(cameo_curves_new, REFUSES("'out'", cameo_curves_new(NULL, err));)
ROW(cameo_curves_add, struct cameo_curves *curves;
    CHECK_INT(cameo_curves_new(&curves, NULL), CAMEO_OK);
    REFUSES("'curves'", cameo_curves_add(NULL, "loss", 1, 2, err));
    REFUSES("'name'", cameo_curves_add(curves, NULL, 1, 2, err));
    cameo_curves_free(curves);)
ROW(cameo_curves_read, struct cameo_curves *curves;
    CHECK_INT(cameo_curves_new(&curves, NULL), CAMEO_OK);
    REFUSES("'curves'", cameo_curves_read(NULL, "x", NULL, err));
    REFUSES("'path'", cameo_curves_read(curves, NULL, NULL, err));
    cameo_curves_free(curves);)
ROW(cameo_curves_draw, struct cameo_curves *curves;
    CHECK_INT(cameo_curves_new(&curves, NULL), CAMEO_OK);
    REFUSES("'curves'", cameo_curves_draw(NULL, NULL, no_write, NULL, err));
    REFUSES("'write'", cameo_curves_draw(curves, NULL, NULL, NULL, err));
    cameo_curves_free(curves);)
ROW(cameo_events_new, struct cameo_events *events_out;
    REFUSES("'folder'", cameo_events_new(NULL, &events_out, err));
    REFUSES("'out'", cameo_events_new("x", NULL, err));)
ROW(cameo_events_resume,
    REFUSES("'events'", cameo_events_resume(NULL, 0, 0, err));)
ROW(cameo_events_add_scalar,
    REFUSES("'events'", cameo_events_add_scalar(NULL, "x", 0, 0, 0, err));
    REFUSES("'tag'", cameo_events_add_scalar((void *)t, NULL, 0, 0, 0, err));)
ROW(cameo_events_add_text,
    REFUSES("'events'", cameo_events_add_text(NULL, "x", 0, 0, "", err));
    REFUSES("'tag'", cameo_events_add_text((void *)t, NULL, 0, 0, "", err));
    REFUSES("'text'", cameo_events_add_text((void *)t, "x", 0, 0, NULL, err));)
ROW(cameo_events_finish,
    REFUSES("'events'", cameo_events_finish(NULL, err));)
ROW(cameo_model_evaluate, struct cameo_evaluation *evaluation_out;
    REFUSES("'model'", cameo_model_evaluate(NULL, t->dataset, NULL, &evaluation_out, err));
    REFUSES("'dataset'", cameo_model_evaluate(t->model, NULL, NULL, &evaluation_out, err));
    REFUSES("'out'", cameo_model_evaluate(t->model, t->dataset, NULL, NULL, err));)
ROW(cameo_model_predict,
    REFUSES("'model'", cameo_model_predict(NULL, t->dataset, "x", NULL, NULL, err));
    REFUSES("'dataset'", cameo_model_predict(t->model, NULL, "x", NULL, NULL, err));
    REFUSES("'path'", cameo_model_predict(t->model, t->dataset, NULL, NULL, NULL, err));)
static enum cameo_status no_begin(void *arg, uint64_t epoch, int64_t skip, struct cameo_error *err)
{
    (void)arg, (void)epoch, (void)skip, (void)err;
    return CAMEO_OK;
}
static void no_output(void *arg, struct cameo_text name, struct cameo_value *value)
{
    (void)arg, (void)name, (void)value;
}
static const struct cameo_batch_source no_source = {sizeof no_source, no_begin, 0, 0, 0, 0, 0};
static const char *const one_name[] = {"x"};
ROW(cameo_dataset_from_arrays,
    const struct cameo_tensor tensor = CAMEO_TENSOR_INIT;
    REFUSES("'names'", cameo_dataset_from_arrays(NULL, &tensor, 1, &dataset_out, err));
    REFUSES("'tensors'", cameo_dataset_from_arrays(one_name, NULL, 1, &dataset_out, err));
    REFUSES("'out'", cameo_dataset_from_arrays(one_name, &tensor, 1, NULL, err));)
ROW(cameo_batches_from_function,
    REFUSES("'trainer'", cameo_batches_from_function(NULL, &no_source, &batches_out, err));
    REFUSES("'source'", cameo_batches_from_function(t->trainer, NULL, &batches_out, err));
    REFUSES("'out'", cameo_batches_from_function(t->trainer, &no_source, NULL, err));)
ROW(cameo_trainer_copy_model,
    REFUSES("'trainer'", cameo_trainer_copy_model(NULL, &model_out, err));
    REFUSES("'out'", cameo_trainer_copy_model(t->trainer, NULL, err));)
ROW(cameo_model_predict_values,
    REFUSES("'model'",
            cameo_model_predict_values(NULL, t->dataset, NULL, no_output, NULL, NULL, err));
    REFUSES("'dataset'",
            cameo_model_predict_values(t->model, NULL, NULL, no_output, NULL, NULL, err));
    REFUSES("'output'",
            cameo_model_predict_values(t->model, t->dataset, NULL, NULL, NULL, NULL, err));)
ROW(cameo_model_add_training, REFUSES("'model'", cameo_model_add_training(NULL, NULL, err));)
ROW(cameo_model_remove_training, REFUSES("'model'", cameo_model_remove_training(NULL, 0, err));)
ROW(cameo_model_set_training_graph,
    REFUSES("'model'",
            cameo_model_set_training_graph(NULL, 0, CAMEO_GRAPH_ALGORITHM, "", err));)
ROW(cameo_model_copy_training_graph,
    REFUSES("'model'",
            cameo_model_copy_training_graph(NULL, 0, CAMEO_GRAPH_ALGORITHM, t->model, err));
    REFUSES("'from'",
            cameo_model_copy_training_graph(t->model, 0, CAMEO_GRAPH_ALGORITHM, NULL, err));)
ROW(cameo_model_write_training_graph,
    REFUSES("'model'", cameo_model_write_training_graph(NULL, 0, CAMEO_GRAPH_ALGORITHM, no_write,
                                                        NULL, err));
    REFUSES("'write'", cameo_model_write_training_graph(t->model, 0, CAMEO_GRAPH_ALGORITHM, NULL,
                                                        NULL, err));)
ROW(cameo_model_set_training_bindings,
    REFUSES("'model'",
            cameo_model_set_training_bindings(NULL, 0, CAMEO_GRAPH_ALGORITHM, NULL, 0, err));
    REFUSES("'bindings'",
            cameo_model_set_training_bindings(t->model, 0, CAMEO_GRAPH_ALGORITHM, NULL, 1, err));)
ROW(cameo_model_bind_training,
    REFUSES("'model'",
            cameo_model_bind_training(NULL, 0, CAMEO_GRAPH_ALGORITHM, "w", "n", err));
    REFUSES("'variable'",
            cameo_model_bind_training(t->model, 0, CAMEO_GRAPH_ALGORITHM, NULL, "n", err));)
ROW(cameo_model_upgrade_training,
    REFUSES("'model'", cameo_model_upgrade_training(NULL, NULL, err));)
ROW(cameo_model_check_training, struct cameo_findings *list_out;
    REFUSES("'model'", cameo_model_check_training(NULL, 0, NULL, &list_out, err));
    REFUSES("'out'", cameo_model_check_training(t->model, 0, NULL, NULL, err));)
ROW(cameo_model_prepare, REFUSES("'model'", cameo_model_prepare(NULL, NULL, NULL, err));)
ROW(cameo_model_import, REFUSES("'model'", cameo_model_import(NULL, "x", NULL, NULL, err));
    REFUSES("'path'", cameo_model_import(t->model, NULL, NULL, NULL, err));)
ROW(cameo_model_export, REFUSES("'model'", cameo_model_export(NULL, "x", NULL, NULL, err));
    REFUSES("'options'", cameo_model_export(t->model, "x", NULL, NULL, err));)
ROW(cameo_model_strip, REFUSES("'model'", cameo_model_strip(NULL, err));)
ROW(cameo_model_strip_training,
    REFUSES("'model'", cameo_model_strip_training(NULL, NULL, err));)
ROW(cameo_model_step,
    REFUSES("'model'", cameo_model_step(NULL, false, &model_out, err));
    REFUSES("'out'", cameo_model_step(t->model, false, NULL, err));)
ROW(cameo_operator_gradient,
    REFUSES("'name'", cameo_operator_gradient(NULL, NULL, 0, no_write, NULL, err));
    REFUSES("'write'", cameo_operator_gradient(NULL, "Relu", 0, NULL, NULL, err));)
ROW(cameo_model_gradient,
    REFUSES("'model'", cameo_model_gradient(NULL, "y", NULL, 0, false, &model_out, err));
    REFUSES("'of'", cameo_model_gradient(t->model, NULL, NULL, 0, false, &model_out, err));
    REFUSES("'wrt'", cameo_model_gradient(t->model, "y", NULL, 1, false, &model_out, err));
    REFUSES("'out'", cameo_model_gradient(t->model, "y", NULL, 0, false, NULL, err));)
ROW(cameo_model_optimize,
    REFUSES("'model'", cameo_model_optimize(NULL, NULL, &model_out, NULL, err));
    REFUSES("'out'", cameo_model_optimize(t->model, NULL, NULL, NULL, err));)
ROW(cameo_model_infer, REFUSES("'model'", cameo_model_infer(NULL, NULL, NULL, err));)
ROW(cameo_model_erase_shapes, REFUSES("'model'", cameo_model_erase_shapes(NULL, true, err));)
ROW(cameo_model_compile,
    struct cameo_compile_options compile = CAMEO_COMPILE_OPTIONS_INIT; compile.path = "x.so";
    REFUSES("'model'", cameo_model_compile(NULL, &compile, NULL, err));
    REFUSES("'options'", cameo_model_compile(t->model, NULL, NULL, err));
    compile.path = NULL;
    REFUSES("neither a path nor a writer", cameo_model_compile(t->model, &compile, NULL, err));)
ROW(cameo_compiled_open, struct cameo_compiled * compiled;
    REFUSES("'path'", cameo_compiled_open(NULL, &compiled, err));
    REFUSES("'out'", cameo_compiled_open("x.so", NULL, err));)
ROW(cameo_model_expand,
    REFUSES("'model'", cameo_model_expand(NULL, NULL, &model_out, NULL, err));
    REFUSES("'out'", cameo_model_expand(t->model, NULL, NULL, NULL, err));)
ROW(cameo_model_extract,
    REFUSES("'model'", cameo_model_extract(NULL, NULL, 0, NULL, 0, NULL, err));
    REFUSES("'inputs'", cameo_model_extract(t->model, NULL, 1, NULL, 0, NULL, err));
    REFUSES("'outputs'", cameo_model_extract(t->model, NULL, 0, NULL, 1, NULL, err));)
ROW(cameo_model_expose,
    REFUSES("'model'", cameo_model_expose(NULL, NULL, 0, NULL, err));
    REFUSES("'names'", cameo_model_expose(t->model, NULL, 1, NULL, err));)
ROW(cameo_model_merge,
    REFUSES("'model'", cameo_model_merge(NULL, t->model, NULL, NULL, err));
    REFUSES("'second'", cameo_model_merge(t->model, NULL, NULL, NULL, err));)
ROW(cameo_model_rename,
    REFUSES("'model'", cameo_model_rename(NULL, NULL, 0, NULL, err));
    REFUSES("'renamings'", cameo_model_rename(t->model, NULL, 1, NULL, err));)
ROW(cameo_model_set_shapes,
    REFUSES("'model'", cameo_model_set_shapes(NULL, NULL, 0, NULL, err));
    REFUSES("'shapes'", cameo_model_set_shapes(t->model, NULL, 1, NULL, err));)
ROW(cameo_model_convert, REFUSES("'model'", cameo_model_convert(NULL, NULL, NULL, err));)
ROW(cameo_model_costs,
    const struct cameo_costs *costs;
    REFUSES("'model'", cameo_model_costs(NULL, NULL, 0, &costs, err));
    REFUSES("'sizes'", cameo_model_costs(t->model, NULL, 1, &costs, err));
    REFUSES("'out'", cameo_model_costs(t->model, NULL, 0, NULL, err));)
ROW(cameo_model_compare,
    struct cameo_comparison *comparison;
    REFUSES("'a'", cameo_model_compare(NULL, t->model, NULL, &comparison, err));
    REFUSES("'b'", cameo_model_compare(t->model, NULL, NULL, &comparison, err));
    REFUSES("'out'", cameo_model_compare(t->model, t->model, NULL, NULL, err));)
ROW(cameo_model_compare_values,
    struct cameo_comparison *comparison;
    const struct cameo_feed feed = cameo_feed_value("x", t->value);
    REFUSES("'model'", cameo_model_compare_values(NULL, &feed, 1, NULL, &comparison, err));
    REFUSES("'recorded'", cameo_model_compare_values(t->model, NULL, 1, NULL, &comparison, err));
    REFUSES("'out'", cameo_model_compare_values(t->model, &feed, 1, NULL, NULL, err));)
ROW(cameo_value_difference,
    struct cameo_difference apart = CAMEO_DIFFERENCE_INIT;
    REFUSES("'a'", cameo_value_difference(NULL, t->value, 0, 0, &apart, err));
    REFUSES("'b'", cameo_value_difference(t->value, NULL, 0, 0, &apart, err));
    REFUSES("'out'", cameo_value_difference(t->value, t->value, 0, 0, NULL, err));)
ROW(cameo_initializer_difference,
    struct cameo_difference apart = CAMEO_DIFFERENCE_INIT;
    REFUSES("'a'", cameo_initializer_difference(NULL, 0, t->model, 0, 0, 0, &apart, err));
    REFUSES("'b'", cameo_initializer_difference(t->model, 0, NULL, 0, 0, 0, &apart, err));
    REFUSES("'out'", cameo_initializer_difference(t->model, 0, t->model, 0, 0, 0, NULL, err));)
ROW(cameo_model_gradcheck,
    REFUSES("'model'", cameo_model_gradcheck(NULL, NULL, NULL, 0, no_row, NULL, err));
    REFUSES("'feeds'", cameo_model_gradcheck(t->model, NULL, NULL, 1, no_row, NULL, err));
    REFUSES("'row'", cameo_model_gradcheck(t->model, NULL, NULL, 0, NULL, NULL, err));)
ROW(cameo_session_make_inputs,
    struct cameo_made_inputs *made;
    REFUSES("'session'", cameo_session_make_inputs(NULL, NULL, NULL, 0, &made, err));
    REFUSES("'feeds'", cameo_session_make_inputs(t->session, NULL, NULL, 1, &made, err));
    REFUSES("'out'", cameo_session_make_inputs(t->session, NULL, NULL, 0, NULL, err));)
/* clang-format on */

#define LISTED(function)                                                                           \
    {                                                                                              \
#function, check_##function                                                                \
    }
static const struct row rows[] = {
    LISTED(cameo_value_from_tensor),
    LISTED(cameo_value_new_strings),
    LISTED(cameo_value_new_sequence),
    LISTED(cameo_value_new_map),
    LISTED(cameo_value_new_optional),
    LISTED(cameo_value_from_dlpack),
    LISTED(cameo_value_from_dlpack_unversioned),
    LISTED(cameo_value_to_dlpack),
    LISTED(cameo_value_to_dlpack_unversioned),
    LISTED(cameo_model_graph),
    LISTED(cameo_attribute_tensor),
    LISTED(cameo_model_load),
    LISTED(cameo_model_load_memory),
    LISTED(cameo_model_read_initializer),
    LISTED(cameo_model_view_initializer),
    LISTED(cameo_model_copy),
    LISTED(cameo_model_set_initializer),
    LISTED(cameo_model_save),
    LISTED(cameo_model_write),
    LISTED(cameo_model_check),
    LISTED(cameo_model_blockers),
    LISTED(cameo_value_new),
    LISTED(cameo_saved_open),
    LISTED(cameo_saved_open_with),
    LISTED(cameo_saved_read),
    LISTED(cameo_arrays_load),
    LISTED(cameo_arrays_open),
    LISTED(cameo_arrays_save),
    LISTED(cameo_registry_new),
    LISTED(cameo_registry_add),
    LISTED(cameo_session_new),
    LISTED(cameo_cancel_new),
    LISTED(cameo_session_run),
    LISTED(cameo_session_check),
    LISTED(cameo_dataset_open),
    LISTED(cameo_dataset_open_files),
    LISTED(cameo_trainer_new),
    LISTED(cameo_model_training_blockers),
    LISTED(cameo_trainer_read_variable),
    LISTED(cameo_trainer_set_variable),
    LISTED(cameo_trainer_add_validation),
    LISTED(cameo_trainer_read_parameters),
    LISTED(cameo_trainer_set_parameters),
    LISTED(cameo_trainer_read_gradients),
    LISTED(cameo_trainer_set_gradients),
    LISTED(cameo_trainer_initialize),
    LISTED(cameo_trainer_step),
    LISTED(cameo_trainer_compute),
    LISTED(cameo_trainer_apply),
    LISTED(cameo_trainer_memory),
    LISTED(cameo_trainer_evaluate),
    LISTED(cameo_trainer_predict),
    LISTED(cameo_trainer_save),
    LISTED(cameo_checkpoint_save),
    LISTED(cameo_checkpoint_resume),
    LISTED(cameo_checkpoint_notes),
    LISTED(cameo_checkpoint_newest),
    LISTED(cameo_batches_new),
    LISTED(cameo_batches_next),
    LISTED(cameo_batches_seek),
    LISTED(cameo_loop_check),
    LISTED(cameo_trainer_run),
    LISTED(cameo_file_new),
    LISTED(cameo_file_write),
    LISTED(cameo_file_commit),
    LISTED(cameo_model_draw),
    LISTED(cameo_curves_new),
    LISTED(cameo_curves_add),
    LISTED(cameo_curves_read),
    LISTED(cameo_curves_draw),
    LISTED(cameo_events_new),
    LISTED(cameo_events_resume),
    LISTED(cameo_events_add_scalar),
    LISTED(cameo_events_add_text),
    LISTED(cameo_events_finish),
    LISTED(cameo_model_evaluate),
    LISTED(cameo_model_predict),
    LISTED(cameo_dataset_from_arrays),
    LISTED(cameo_batches_from_function),
    LISTED(cameo_trainer_copy_model),
    LISTED(cameo_model_predict_values),
    LISTED(cameo_model_add_training),
    LISTED(cameo_model_remove_training),
    LISTED(cameo_model_set_training_graph),
    LISTED(cameo_model_copy_training_graph),
    LISTED(cameo_model_write_training_graph),
    LISTED(cameo_model_set_training_bindings),
    LISTED(cameo_model_bind_training),
    LISTED(cameo_model_upgrade_training),
    LISTED(cameo_model_check_training),
    LISTED(cameo_model_prepare),
    LISTED(cameo_model_import),
    LISTED(cameo_model_export),
    LISTED(cameo_model_strip),
    LISTED(cameo_model_strip_training),
    LISTED(cameo_model_step),
    LISTED(cameo_model_gradient),
    LISTED(cameo_operator_gradient),
    LISTED(cameo_model_optimize),
    LISTED(cameo_model_costs),
    LISTED(cameo_model_compare),
    LISTED(cameo_model_compare_values),
    LISTED(cameo_value_difference),
    LISTED(cameo_initializer_difference),
    LISTED(cameo_model_infer),
    LISTED(cameo_model_erase_shapes),
    LISTED(cameo_model_expand),
    LISTED(cameo_model_compile),
    LISTED(cameo_compiled_open),
    LISTED(cameo_model_extract),
    LISTED(cameo_model_expose),
    LISTED(cameo_model_merge),
    LISTED(cameo_model_rename),
    LISTED(cameo_model_set_shapes),
    LISTED(cameo_model_convert),
    LISTED(cameo_model_gradcheck),
    LISTED(cameo_session_make_inputs),
};

static void make(struct things *t)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    static char stand_in[64]; /* where a handle must not be NULL and is not looked at */

    options.format = CAMEO_FORMAT_TEXT;
    *t = (struct things){.dataset = (struct cameo_dataset *)(void *)stand_in,
                         .batches = (struct cameo_batches *)(void *)stand_in,
                         .value = (struct cameo_value *)(void *)stand_in};
    if (cameo_model_load_memory(line, strlen(line), &options, &t->model, &t->err) != CAMEO_OK ||
        cameo_session_new(t->model, NULL, &t->session, &t->err) != CAMEO_OK ||
        cameo_trainer_new(t->model, NULL, &t->trainer, &t->err) != CAMEO_OK ||
        cameo_registry_new(&t->registry, &t->err) != CAMEO_OK)
        fail_msg("%s", t->err.message);
}

void test_null_arguments__are_refused_with_their_names(void)
{
    struct things t;

    make(&t);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        rows[i].check(&t);
    cameo_registry_free(t.registry);
    cameo_trainer_free(t.trainer);
    cameo_session_free(t.session);
    cameo_model_free(t.model);
}

/* What the user's own callbacks call has a handle that we made. */
static bool is_for_callbacks(struct cm_str name)
{
    return cm_str_starts(name, "cameo_infer_") || cm_str_starts(name, "cameo_call_") ||
           cm_str_starts(name, "cameo_use_");
}

static bool is_listed(struct cm_str name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (cm_str_is(name, rows[i].name))
            return true;
    return false;
}

static void release_mapping(void *mapping)
{
    cm_mapping_release(mapping);
}

static void read_header(struct cm_arena *arena)
{
    static const char intro[] = "CAMEO_API enum cameo_status cameo_";
    struct cm_mapping *mapping = CM_NEW(arena, struct cm_mapping);
    struct cm_error err;
    size_t found = 0;

    CHECK_OK(cm_file_map(TESTS_DIR "/../include/cameo.h", true, mapping, &err), &err);
    cm_arena_defer(arena, release_mapping, mapping);
    const char *text =
        cm_arena_str(arena, (struct cm_str){(const char *)mapping->data, mapping->size}).data;
    for (const char *at = text; (at = strstr(at, intro)); at += sizeof intro) {
        const char *name = at + sizeof intro - sizeof "cameo_";
        const struct cm_str word = {name, strcspn(name, "(")};

        found++;
        if (!is_for_callbacks(word) && !is_listed(word))
            fail_msg("%.*s is not tried", CM_STR_FMT(word));
    }
    CHECK(found >= sizeof rows / sizeof *rows);
}

void test_null_arguments__are_tried_for_every_function_of_the_header(void)
{
    check_in_arena(read_header);
}

void test_null_arguments__do_no_harm_where_there_is_no_status(void)
{
    struct things t;

    make(&t);
    CHECK(!cameo_model_find_initializer(t.model, NULL, NULL));
    CHECK(cameo_model_find_initializer(t.model, "w", NULL));
    CHECK_INT(cameo_trainer_find_variable(t.trainer, NULL),
              cameo_trainer_variable_count(t.trainer));
    cameo_model_free(NULL);
    cameo_findings_free(NULL);
    cameo_value_free(NULL);
    cameo_arrays_free(NULL);
    cameo_session_free(NULL);
    cameo_made_inputs_free(NULL);
    cameo_cancel_free(NULL);
    cameo_dataset_free(NULL);
    cameo_batches_free(NULL);
    cameo_registry_free(t.registry);
    cameo_trainer_free(t.trainer);
    cameo_session_free(t.session);
    cameo_model_free(t.model);
    cameo_trainer_free(NULL);
    cameo_registry_free(NULL);
}
