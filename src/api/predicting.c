/* What a model predicts for a data set, written to a file or given as values. */
// SPDX-License-Identifier: Apache-2.0
#include "api/streaming.h"

#include "base/memory.h"
#include "base/number.h"
#include "io/arrays.h"
#include "io/spool.h"

/* An output on its way to the file. Arrays are gathered one after the other, in a temporary file
 * once they are large; rows of text are written as they come. */
struct column_group {
    struct cm_str name;
    size_t number;          /* of the model's outputs */
    enum cm_dtype type;     /* CM_UNDEFINED: none has come */
    struct cm_shape sample; /* shape of a row */
    struct cm_spool *spool;
    struct cm_tensor keys; /* of maps, lent by the batch at hand; none: no data */
};

struct predict_call {
    const struct cameo_model *model;
    struct cameo_dataset *dataset;
    const char *path; /* or NULL, and then: */
    cameo_output_fn *output;
    void *output_arg;
    struct cameo_predict_options options;
    struct cm_api_stream stream;
    struct cm_arena arena;
    struct column_group *groups;
    size_t n_groups;
    bool text;
    struct cm_save save;
    char note[700];
    struct cm_error err;
};

/* ---- text ---- */

static enum cm_status put(struct predict_call *call, const char *text, size_t size,
                          struct cm_error *err)
{
    return cm_save_write(&call->save, text, size, err);
}

/* Quoted where it must be. */
static enum cm_status put_cell(struct predict_call *call, struct cm_str text, struct cm_error *err)
{
    bool plain = true;

    for (size_t i = 0; i < text.size; i++)
        plain = plain && !strchr(",\"\r\n", text.data[i]) && text.data[i];
    if (plain)
        return put(call, text.data, text.size, err);
    CM_TRY(put(call, "\"", 1, err));
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '"')
            CM_TRY(put(call, "\"", 1, err));
        CM_TRY(put(call, text.data + i, 1, err));
    }
    return put(call, "\"", 1, err);
}

static enum cm_status put_element(struct predict_call *call, const struct cm_tensor *t, int64_t i,
                                  struct cm_error *err)
{
    const enum cm_dtype_class kind = cm_dtype_info(t->type)->kind;
    char text[64];

    if (t->type == CM_STRING)
        return put_cell(call, ((const struct cm_str *)t->data)[i], err);
    if (kind == CM_CLASS_FLOAT)
        snprintf(text, sizeof text, t->type == CM_DOUBLE ? "%.17g" : "%.9g", cm_tensor_real(t, i));
    else if (t->type == CM_UINT64)
        snprintf(text, sizeof text, "%llu", (unsigned long long)cm_tensor_int(t, i));
    else
        snprintf(text, sizeof text, "%lld", (long long)cm_tensor_int(t, i));
    return put(call, text, strlen(text), err);
}

/* "y", or "y_0", "y_1" and so on where a row has several numbers; of maps, the key. */
static enum cm_status put_heading(struct predict_call *call, const struct column_group *g,
                                  int64_t i, struct cm_error *err)
{
    char text[300];

    if (g->keys.data && g->keys.type == CM_STRING) {
        const struct cm_str key = ((const struct cm_str *)g->keys.data)[i];

        snprintf(text, sizeof text, "%.*s_%.*s", CM_STR_FMT(g->name), CM_STR_FMT(key));
    } else if (g->keys.data) {
        snprintf(text, sizeof text, "%.*s_%lld", CM_STR_FMT(g->name),
                 (long long)cm_tensor_int(&g->keys, i));
    } else if (cm_shape_elements(&g->sample) == 1) {
        return put_cell(call, g->name, err);
    } else {
        snprintf(text, sizeof text, "%.*s_%lld", CM_STR_FMT(g->name), (long long)i);
    }
    return put_cell(call, cm_str(text), err);
}

static enum cm_status put_headings(struct predict_call *call, struct cm_error *err)
{
    bool first = true;

    for (size_t k = 0; k < call->n_groups; k++)
        for (int64_t i = 0; i < cm_shape_elements(&call->groups[k].sample); i++) {
            if (!first)
                CM_TRY(put(call, ",", 1, err));
            first = false;
            CM_TRY(put_heading(call, &call->groups[k], i, err));
        }
    return put(call, "\n", 1, err);
}

static enum cm_status put_rows(struct predict_call *call, const struct cm_tensor *tensors,
                               struct cm_error *err)
{
    if (!call->stream.done)
        CM_TRY(put_headings(call, err));
    for (int64_t r = 0; r < call->stream.rows; r++) {
        bool first = true;

        for (size_t k = 0; k < call->n_groups; k++) {
            const int64_t size = cm_shape_elements(&call->groups[k].sample);

            for (int64_t i = 0; i < size; i++) {
                if (!first)
                    CM_TRY(put(call, ",", 1, err));
                first = false;
                CM_TRY(put_element(call, &tensors[k], r * size + i, err));
            }
        }
        CM_TRY(put(call, "\n", 1, err));
    }
    return CM_OK;
}

/* ---- arrays ---- */

static enum cm_status gather(struct predict_call *call, const struct cm_tensor *tensors,
                             struct cm_error *err)
{
    for (size_t k = 0; k < call->n_groups; k++) {
        const struct cm_tensor *t = &tensors[k];
        const int64_t count = call->stream.rows * cm_shape_elements(&call->groups[k].sample);
        size_t bytes;

        if (!cm_dtype_bytes(t->type, count, &bytes))
            return cm_fail(err, CM_LIMIT, "output '%.*s' is too large",
                           CM_STR_FMT(call->groups[k].name));
        CM_TRY(cm_spool_write(call->groups[k].spool, t->data, bytes, err));
    }
    return CM_OK;
}

static enum cm_status save_arrays(struct predict_call *call, struct cm_error *err)
{
    struct cm_array *items = CM_NEW_ARRAY(&call->arena, struct cm_array, call->n_groups);

    for (size_t k = 0; k < call->n_groups; k++) {
        struct column_group *g = &call->groups[k];
        struct cm_shape shape = {g->sample.rank + 1, {call->stream.samples}};
        struct cm_str bytes;

        memcpy(shape.dims + 1, g->sample.dims, sizeof shape.dims - sizeof shape.dims[0]);
        CM_TRY(cm_spool_finish(g->spool, &bytes, err));
        items[k].name = g->name;
        items[k].value.kind = CM_KIND_TENSOR;
        items[k].value.tensor = cm_tensor_borrow(g->type, &shape, (void *)(uintptr_t)bytes.data);
    }
    return cm_arrays_save(&call->arena, call->path, items, call->n_groups, err);
}

/* All are made before the first is given away. */
static enum cm_status give_values(struct predict_call *call, struct cm_error *err)
{
    struct cameo_value **values = CM_NEW_ARRAY(&call->arena, struct cameo_value *, call->n_groups);
    enum cm_status status = CM_OK;

    for (size_t k = 0; k < call->n_groups && !status; k++) {
        struct column_group *g = &call->groups[k];
        int64_t dims[CM_MAX_RANK] = {call->stream.samples};
        struct cameo_error why;
        struct cm_str bytes;

        memcpy(dims + 1, g->sample.dims, (size_t)g->sample.rank * sizeof *dims);
        status = cm_spool_finish(g->spool, &bytes, err);
        if (!status && cameo_value_new((enum cameo_dtype)g->type, g->sample.rank + 1, dims,
                                       &values[k], &why) != CAMEO_OK)
            status = cm_api_again(&why, err);
        if (!status && bytes.size)
            memcpy(cameo_value_mutable_data(values[k]), bytes.data, bytes.size);
    }
    for (size_t k = 0; k < call->n_groups; k++) {
        const struct cm_str name = call->groups[k].name;

        if (status)
            cameo_value_free(values[k]);
        else
            call->output(call->output_arg, (struct cameo_text){name.data, name.size}, values[k]);
    }
    return status;
}

/* ---- batches ---- */

static enum cm_status check_rows(const struct predict_call *call, struct column_group *g,
                                 const struct cm_tensor *t, struct cm_error *err)
{
    const int bits = cm_dtype_info(t->type)->bits;
    struct cm_shape sample = {t->shape.rank - 1, {0}};
    char text[200];

    if (t->shape.rank < 1 || t->shape.rank > CM_MAX_RANK - 1 ||
        t->shape.dims[0] != call->stream.batch[0]->shape.dims[0])
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "output '%.*s' has the shape %s for a batch of %lld rows: its first "
                       "dimension does not count them, leave it out",
                       CM_STR_FMT(g->name), cm_shape_print(&t->shape, text, sizeof text),
                       (long long)call->stream.batch[0]->shape.dims[0]);
    memcpy(sample.dims, t->shape.dims + 1, (size_t)sample.rank * sizeof *sample.dims);
    if (g->type && (g->type != t->type || !cm_shape_equal(&g->sample, &sample)))
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "output '%.*s' has rows of different shapes, which no array can hold",
                       CM_STR_FMT(g->name));
    if (t->type == CM_STRING ? !call->text : bits < 8 || (call->text && !bits))
        return cm_fail(err, CM_UNSUPPORTED, "output '%.*s' holds %s, which %s cannot hold%s",
                       CM_STR_FMT(g->name), cm_dtype_name(t->type),
                       call->text   ? "CSV"
                       : call->path ? "this kind of file"
                                    : "an array of samples",
                       t->type == CM_STRING && call->path ? ": write .csv" : "");
    if (call->text && cm_dtype_info(t->type)->kind == CM_CLASS_COMPLEX)
        return cm_fail(err, CM_UNSUPPORTED, "output '%.*s' holds complex numbers: write .npz",
                       CM_STR_FMT(g->name));
    g->type = t->type;
    g->sample = sample;
    return CM_OK;
}

static enum cm_status add_batch(struct predict_call *call, const struct cameo_fetch *fetches,
                                struct cm_tensor *tensors, struct cm_error *err)
{
    for (size_t k = 0; k < call->n_groups; k++) {
        struct column_group *g = &call->groups[k];
        const struct cm_tensor *keys;

        CM_TRY(cm_error_context(
            err, cm_api_matrix(cm_api_value(fetches[k].value), &tensors[k], &keys, err),
            "output '%.*s'", CM_STR_FMT(g->name)));
        g->keys =
            keys ? cm_tensor_borrow(keys->type, &keys->shape, keys->data) : (struct cm_tensor){0};
        CM_TRY(check_rows(call, g, &tensors[k], err));
    }
    return call->text ? put_rows(call, tensors, err) : gather(call, tensors, err);
}

static enum cm_status run_batches(struct predict_call *call, struct cm_error *err)
{
    const size_t n = call->n_groups;
    struct cameo_fetch *fetches = CM_NEW_ARRAY(&call->arena, struct cameo_fetch, n);
    struct cm_tensor *tensors = CM_NEW_ARRAY(&call->arena, struct cm_tensor, n);

    for (;;) {
        CM_TRY(cm_api_stream_next(&call->stream, err));
        if (!call->stream.rows)
            return CM_OK;
        for (size_t k = 0; k < n; k++) {
            fetches[k] = cameo_fetch_value(NULL);
            fetches[k].index = call->groups[k].number;
        }
        CM_TRY(cm_api_stream_run(&call->stream, fetches, n, err));
        memset(tensors, 0, n * sizeof *tensors);
        const enum cm_status status = add_batch(call, fetches, tensors, err);
        for (size_t k = 0; k < n; k++) {
            cm_tensor_drop(&tensors[k]);
            cameo_value_free(fetches[k].value);
        }
        CM_TRY(status);
    }
}

/* ---- all of it ---- */

static enum cm_status list_outputs(struct predict_call *call, struct cm_error *err)
{
    const struct cameo_session *session = call->stream.session;
    const char *list = call->options.outputs;
    char unknown[300] = "";
    size_t used = 0;

    size_t room = session->n_outputs;
    for (const char *at = list; at && *at; at++)
        room += *at == ',';
    call->groups = CM_NEW_ARRAY(&call->arena, struct column_group, room + 1);
    for (size_t i = 0; !list && i < session->n_outputs; i++)
        call->groups[call->n_groups++].number = i;
    while (list && *list) {
        const struct cm_str name = {list, strcspn(list, ",")};
        size_t i = 0;

        while (i < session->n_outputs && !cm_str_is(name, session->outputs[i].name.data))
            i++;
        if (i < session->n_outputs)
            call->groups[call->n_groups++].number = i;
        else if (used + name.size + 8 < sizeof unknown)
            used += (size_t)snprintf(unknown + used, sizeof unknown - used, "%s'%.*s'",
                                     used ? ", " : "", CM_STR_FMT(name));
        list += name.size + (list[name.size] == ',');
    }
    if (used)
        return cm_fail(err, CM_NOT_FOUND, "the model has no output %s", unknown);
    for (size_t k = 0; k < call->n_groups; k++) {
        const struct cameo_text name = session->outputs[call->groups[k].number].name;

        call->groups[k].name = (struct cm_str){name.data, name.size};
        call->groups[k].spool = cm_spool_new(&call->arena, 0);
    }
    return CM_OK;
}

static enum cm_status check_path(struct predict_call *call, struct cm_error *err)
{
    const enum cm_array_format format = cm_arrays_format(call->path);

    call->text = cm_str_ends(cm_str(call->path), ".csv");
    if (!call->text && (format == CM_ARRAYS_BY_NAME || format == CM_ARRAYS_PB))
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "'%s': expected a name that ends in .npz, .npy, .safetensors or .csv",
                       call->path);
    if (format == CM_ARRAYS_NPY && call->n_groups != 1)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "'%s': a .npy file holds one array, but there are %zu outputs: name one, or "
                       "write .npz",
                       call->path, call->n_groups);
    return CM_OK;
}

static enum cm_status predict(struct predict_call *call, struct cm_error *err)
{
    CM_TRY(cm_api_stream_open(call->model, call->options.stream, &call->stream, err));
    CM_TRY(list_outputs(call, err));
    if (call->path)
        CM_TRY(check_path(call, err));
    CM_TRY(cm_api_stream_feed(&call->stream, call->dataset, NULL, 0, err));
    cm_api_stream_note(&call->stream, call->note, sizeof call->note);
    if (call->text)
        CM_TRY(cm_save_begin(&call->save, call->path, err));
    CM_TRY(run_batches(call, err));
    if (!call->path)
        return give_values(call, err);
    return call->text ? cm_save_commit(&call->save, err) : save_arrays(call, err);
}

static enum cm_status predict_guarded(struct cm_guard *guard, void *arg)
{
    struct predict_call *call = arg;

    cm_arena_init(&call->arena, guard);
    const enum cm_status status = predict(call, &call->err);
    cm_arena_release(&call->arena);
    return status;
}

static enum cameo_status run_call(struct predict_call *call,
                                  const struct cameo_predict_options *options,
                                  struct cameo_prediction *report, struct cameo_error *err)
{
    enum cm_status status = cm_api_check_out(report, &call->err);

    call->options = (struct cameo_predict_options)CAMEO_PREDICT_OPTIONS_INIT;
    if (status == CM_OK)
        status = cm_api_options(&call->options, sizeof call->options, options, &call->err);
    if (status == CM_OK)
        status = cm_guarded(0, &call->err, predict_guarded, call);
    struct cameo_prediction all = {.samples = call->stream.samples, .output_count = call->n_groups};
    memcpy(all.note, call->note, sizeof all.note);
    cm_save_abandon(&call->save);
    cm_api_stream_close(&call->stream);
    if (report && status == CM_OK)
        cm_api_give(report, &all, sizeof all);
    return cm_api_done(status, &call->err, err);
}

enum cameo_status cameo_model_predict(const struct cameo_model *model,
                                      struct cameo_dataset *dataset, const char *path,
                                      const struct cameo_predict_options *options,
                                      struct cameo_prediction *report, struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(dataset, err);
    CM_API_NEED(path, err);
    struct predict_call call = {.model = model, .dataset = dataset, .path = path};

    return run_call(&call, options, report, err);
}

enum cameo_status cameo_model_predict_values(const struct cameo_model *model,
                                             struct cameo_dataset *dataset,
                                             const struct cameo_predict_options *options,
                                             cameo_output_fn *output, void *output_arg,
                                             struct cameo_prediction *report,
                                             struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED(dataset, err);
    CM_API_NEED(output, err);
    struct predict_call call = {
        .model = model, .dataset = dataset, .output = output, .output_arg = output_arg};

    return run_call(&call, options, report, err);
}
