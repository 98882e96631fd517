/* Data sets through a model: how good its predictions are, or the predictions themselves. */
// SPDX-License-Identifier: Apache-2.0
#include "training.h"

#include <stdlib.h>

/* What both take of a stream. */
struct stream {
    struct cameo_stream_options options;
    struct cameo_session_options session;
    struct ext_watch watch;
};

static void begin_stream(struct stream *s, long long batch_size, int threads, int raw_bytes,
                         int as_is)
{
    *s = (struct stream){CAMEO_STREAM_OPTIONS_INIT, CAMEO_SESSION_OPTIONS_INIT, {0}};
    s->session.threads = threads;
    s->options.batch_size = batch_size;
    s->options.raw_bytes = raw_bytes;
    s->options.as_is = as_is;
    s->options.session = &s->session;
    ext_watch_begin(&s->watch);
    s->options.cancel = s->watch.cancel;
}

static bool end_stream(struct ext_state *state, struct stream *s, enum cameo_status status,
                       const struct cameo_error *err)
{
    if (!ext_watch_end(&s->watch, status) && status != CAMEO_OK)
        ext_raise(state, err);
    return status == CAMEO_OK;
}

/* [(name, average, value, bound)], [notes], [(label, actual, predicted, correct)], confusion or
 * None */
static PyObject *report(const struct cameo_evaluation *e)
{
    PyObject *metrics = PyList_New(0), *notes = PyList_New(0), *classes = PyList_New(0);
    PyObject *confused = PyList_New(0);
    const struct cameo_metric *metric;
    const struct cameo_class_count *row;
    const char *note;
    bool done = metrics && notes && classes && confused;
    size_t count = 0;

    for (size_t i = 0; done && (metric = cameo_evaluation_metric(e, i)); i++)
        done = ext_append(metrics, Py_BuildValue("(ssdd)", metric->name, metric->average,
                                                 metric->value, metric->bound));
    for (size_t i = 0; done && (note = cameo_evaluation_note(e, i)); i++)
        done = ext_append(notes, PyUnicode_FromString(note));
    for (; done && (row = cameo_evaluation_class(e, count)); count++)
        done = ext_append(classes, Py_BuildValue("(LKKK)", (long long)row->label,
                                                 (unsigned long long)row->actual,
                                                 (unsigned long long)row->predicted,
                                                 (unsigned long long)row->correct));
    if (count && cameo_evaluation_confused(e, 0, 0) >= 0)
        for (size_t i = 0; done && i < count * count; i++)
            done = ext_append(
                confused, PyLong_FromLongLong(cameo_evaluation_confused(e, i / count, i % count)));
    if (done)
        return Py_BuildValue("(LNNNN)", (long long)cameo_evaluation_samples(e), metrics, notes,
                             classes, confused);
    Py_XDECREF(metrics);
    Py_XDECREF(notes);
    Py_XDECREF(classes);
    Py_XDECREF(confused);
    return NULL;
}

/* evaluate(model, data, **options): (samples, metrics, notes, classes, confusion) */
static PyObject *evaluate(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"model",     "data",       "metrics", "loss",       "output",
                            "target",    "class_axis", "ignored", "batch_size", "threads",
                            "raw_bytes", "as_is",      NULL};
    struct ext_state *state = ext_state(module);
    struct cameo_evaluate_options o = CAMEO_EVALUATE_OPTIONS_INIT;
    struct cameo_evaluation *evaluation = NULL;
    struct stream stream;
    struct cameo_error err;
    PyObject *model_object, *data_object;
    long long axis = o.class_axis, ignored = o.ignored, batch_size = 0;
    int threads = 0, raw = 0, as_is = 0;
    enum cameo_status status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO|$zzzzLLLipp", names, &model_object,
                                     &data_object, &o.metrics, &o.loss, &o.output, &o.target, &axis,
                                     &ignored, &batch_size, &threads, &raw, &as_is))
        return NULL;
    struct ext_model *model = ext_model_of(state, model_object);
    struct ext_data *data = model ? ext_data_of(state, data_object) : NULL;
    if (!data)
        return NULL;
    begin_stream(&stream, batch_size, threads, raw, as_is);
    o.class_axis = axis;
    o.ignored = ignored;
    o.stream = &stream.options;
    PyObject *used = ext_model_use(model);
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_model_evaluate(model->model, data->dataset, &o, &evaluation, &err);
    Py_END_ALLOW_THREADS;
    ext_data_kept(data, ext_take_kept());
    ext_model_leave(used);
    PyObject *out = end_stream(state, &stream, status, &err) ? report(evaluation) : NULL;
    cameo_evaluation_free(evaluation);
    return out;
}

/* What comes is kept until the interpreter lock is held again. */
struct outputs {
    struct cameo_value **values;
    size_t count;
    bool full; /* no memory: what comes is dropped */
};

static void take_output(void *arg, struct cameo_text name, struct cameo_value *value)
{
    struct outputs *o = arg;
    struct cameo_value **grown = realloc(o->values, (o->count + 1) * sizeof *grown);

    (void)name;
    if (grown)
        o->values = grown;
    if (!grown || o->full) {
        o->full = true;
        cameo_value_free(value);
        return;
    }
    o->values[o->count++] = value;
}

/* predict(model, data, outputs, **options): a list of Values */
static PyObject *predict(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"model",   "data",      "outputs", "batch_size",
                            "threads", "raw_bytes", "as_is",   NULL};
    struct ext_state *state = ext_state(module);
    struct cameo_predict_options o = CAMEO_PREDICT_OPTIONS_INIT;
    struct outputs outputs = {0};
    struct stream stream;
    struct cameo_error err;
    PyObject *model_object, *data_object;
    long long batch_size = 0;
    int threads = 0, raw = 0, as_is = 0;
    enum cameo_status status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OOz|$Lipp", names, &model_object,
                                     &data_object, &o.outputs, &batch_size, &threads, &raw, &as_is))
        return NULL;
    struct ext_model *model = ext_model_of(state, model_object);
    struct ext_data *data = model ? ext_data_of(state, data_object) : NULL;
    if (!data)
        return NULL;
    begin_stream(&stream, batch_size, threads, raw, as_is);
    o.stream = &stream.options;
    PyObject *used = ext_model_use(model);
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_model_predict_values(model->model, data->dataset, &o, take_output, &outputs,
                                        NULL, &err);
    Py_END_ALLOW_THREADS;
    ext_data_kept(data, ext_take_kept());
    ext_model_leave(used);
    PyObject *list = end_stream(state, &stream, status, &err) ? PyList_New(0) : NULL;
    if (list && outputs.full) {
        Py_CLEAR(list);
        PyErr_NoMemory();
    }
    for (size_t i = 0; i < outputs.count; i++) {
        if (!list)
            ext_value_free(outputs.values[i]);
        else if (!ext_append(list, ext_value_new(state, outputs.values[i], NULL)))
            Py_CLEAR(list);
    }
    free(outputs.values);
    return list;
}

PyMethodDef ext_evaluate_functions[] = {
    {"evaluate", (PyCFunction)(void (*)(void))evaluate, METH_VARARGS | METH_KEYWORDS,
     "evaluate(model, data, **options): (samples, metrics, notes, classes, confusion)"},
    {"predict", (PyCFunction)(void (*)(void))predict, METH_VARARGS | METH_KEYWORDS,
     "predict(model, data, names of outputs by commas, **options): a list of Values"},
    {0},
};
