/* Checkpoints of other frameworks: looked into, brought into a model, written. */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

static const char capsule_name[] = "cameo.checkpoint";

static void drop(PyObject *capsule)
{
    cameo_saved_free(PyCapsule_GetPointer(capsule, capsule_name));
}

static struct cameo_saved *saved_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, capsule_name);
}

/* open_checkpoint(path, allow_links): a capsule */
static PyObject *open_checkpoint(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    struct cameo_saved_options options = CAMEO_SAVED_OPTIONS_INIT;
    struct cameo_saved *saved = NULL;
    struct cameo_error err;
    PyObject *path = NULL;
    enum cameo_status status;
    int links;

    if (!PyArg_ParseTuple(args, "O&p", PyUnicode_FSConverter, &path, &links)) {
        Py_XDECREF(path);
        return NULL;
    }
    options.allow_links = links;
    const char *text = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_saved_open_with(text, &options, &saved, &err);
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    if (status != CAMEO_OK)
        return ext_raise(state, &err);
    PyObject *capsule = PyCapsule_New(saved, capsule_name, drop);
    if (!capsule)
        cameo_saved_free(saved);
    return capsule;
}

/* ---- what it holds ---- */

static PyObject *tensors_of(const struct cameo_saved *saved)
{
    static const char *const roles[] = {"weight",  "buffer", "master copy", "slot",
                                        "average", "random", "other"};
    PyObject *list = PyList_New(0);
    const struct cameo_saved_tensor *row;

    for (size_t i = 0; list && (row = cameo_saved_tensor(saved, i)); i++) {
        PyObject *shape = PyTuple_New((Py_ssize_t)row->rank);
        for (size_t axis = 0; shape && axis < row->rank; axis++)
            PyTuple_SetItem(shape, (Py_ssize_t)axis, PyLong_FromLongLong(row->dims[axis]));
        const char *role = (unsigned)row->role <= CAMEO_SAVED_OTHER ? roles[row->role] : "other";
        if (!shape ||
            !ext_append(list, Py_BuildValue("(NNsssNnN)", ext_text(row->name), ext_text(row->slot),
                                            role, row->meaning, cameo_dtype_name(row->dtype), shape,
                                            (Py_ssize_t)row->piece_count, ext_text(row->file))))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *groups_of(const struct cameo_saved *saved)
{
    PyObject *list = PyList_New(0);
    const struct cameo_saved_group *row;

    for (size_t i = 0; list && (row = cameo_saved_group(saved, i)); i++) {
        PyObject *settings = PyDict_New();
        for (size_t k = 0; settings && k < row->setting_count; k++) {
            PyObject *value = PyFloat_FromDouble(row->settings[k].value);
            if (!value || PyDict_SetItemString(settings, row->settings[k].name, value) < 0)
                Py_CLEAR(settings);
            Py_XDECREF(value);
        }
        if (!settings || !ext_append(list, Py_BuildValue("(NN)", settings,
                                                         ext_texts(row->names, row->name_count))))
            Py_CLEAR(list);
    }
    return list;
}

typedef const struct cameo_text *sentence_fn(const struct cameo_saved *saved, size_t index);

static PyObject *sentences(const struct cameo_saved *saved, sentence_fn *get)
{
    PyObject *list = PyList_New(0);
    const struct cameo_text *text;

    for (size_t i = 0; list && (text = get(saved, i)); i++)
        if (!ext_append(list, ext_text(*text)))
            Py_CLEAR(list);
    return list;
}

static PyObject *facts_of(const struct cameo_saved *saved)
{
    PyObject *list = PyList_New(0);
    const struct cameo_entry *row;

    for (size_t i = 0; list && (row = cameo_saved_fact(saved, i)); i++)
        if (!ext_append(list, Py_BuildValue("(NN)", ext_text(row->key), ext_text(row->value))))
            Py_CLEAR(list);
    return list;
}

/* checkpoint_summary(capsule): a dict */
static PyObject *checkpoint_summary(PyObject *module, PyObject *capsule)
{
    const struct cameo_saved *saved = saved_of(capsule);

    (void)module;
    if (!saved)
        return NULL;
    const struct cameo_saved_summary *s = cameo_saved_summary(saved);
    return Py_BuildValue(
        "{s:s,s:s,s:N,s:O,s:N,s:s,s:s,s:s,s:d,s:d,s:L,s:L,s:L,s:L,s:N,s:s,s:N,s:N,s:N,s:N,s:N,s:N,"
        "s:N}",
        "system", s->system, "format", s->format, "version", ext_text(s->version), "has_optimizer",
        s->has_optimizer ? Py_True : Py_False, "optimizer", ext_text(s->optimizer), "rule", s->rule,
        "arithmetic", s->arithmetic, "clip", s->clip, "clip_limit", s->clip_limit, "loss_scale",
        s->loss_scale, "step", (long long)s->step, "epoch", (long long)s->epoch, "accumulate",
        (long long)s->accumulate, "ranks", (long long)s->ranks, "schedule", ext_text(s->schedule),
        "schedule_known", s->schedule_known, "phases", ext_text(s->phases), "tensors",
        tensors_of(saved), "groups", groups_of(saved), "facts", facts_of(saved), "files",
        sentences(saved, cameo_saved_file), "not_understood", sentences(saved, cameo_saved_unknown),
        "missing", sentences(saved, cameo_saved_missing));
}

/* checkpoint_tensor(capsule, index): a Value */
static PyObject *checkpoint_tensor(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    struct cameo_value *value = NULL;
    struct cameo_error err;
    PyObject *capsule;
    Py_ssize_t index;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "On", &capsule, &index))
        return NULL;
    const struct cameo_saved *saved = saved_of(capsule);
    if (!saved)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_saved_read(saved, (size_t)index, &value, &err);
    Py_END_ALLOW_THREADS;
    if (status != CAMEO_OK)
        return ext_raise(state, &err);
    if (cameo_value_dtype(value) != CAMEO_STRING)
        return ext_value_new(state, value, NULL);
    PyObject *texts = ext_from_value(state, value);
    ext_value_free(value);
    return texts;
}

/* ---- into a model ---- */

static PyObject *import_of(const struct cameo_import_report *report)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < report->match_count; i++) {
        const struct cameo_import_match *row = &report->matches[i];
        if (!ext_append(list, Py_BuildValue("(NNN)", ext_text(row->initializer),
                                            ext_text(row->source), ext_text(row->how))))
            Py_CLEAR(list);
    }
    PyObject *preparation =
        report->preparation ? ext_preparation(report->preparation) : Py_NewRef(Py_None);
    return Py_BuildValue("{s:s,s:s,s:N,s:N,s:N}", "system", report->system, "format",
                         report->format, "tensors", list, "notes",
                         ext_texts(report->notes, report->note_count), "preparation", preparation);
}

/* import_checkpoint(model, path, options of prepare, (schedule, clip_norm, accumulate count),
 * weights_only, partial, map, settings, allow_links) */
static PyObject *import_checkpoint(PyObject *module, PyObject *args)
{
    struct cameo_import_options options = CAMEO_IMPORT_OPTIONS_INIT;
    struct cameo_prepare_options prepare = CAMEO_PREPARE_OPTIONS_INIT;
    const struct cameo_import_report *report = NULL;
    PyObject *object, *path = NULL, *dict, *out = NULL;
    struct ext_edit e;
    int schedule, clip, accumulate, weights_only, partial, links;

    if (!PyArg_ParseTuple(args, "OO&O!(ppp)ppzzp", &object, PyUnicode_FSConverter, &path,
                          &PyDict_Type, &dict, &schedule, &clip, &accumulate, &weights_only,
                          &partial, &options.map, &options.settings, &links)) {
        Py_XDECREF(path);
        return NULL;
    }
    options.prepare = &prepare;
    options.use_schedule = schedule;
    options.use_clip_norm = clip;
    options.use_accumulate = accumulate;
    options.weights_only = weights_only;
    options.partial = partial;
    options.allow_links = links;
    if (ext_prepare_options(dict, &prepare) && ext_edit_copy(&e, module, object)) {
        const char *text = PyBytes_AsString(path);
        Py_BEGIN_ALLOW_THREADS;
        e.status = cameo_model_import(e.made, text, &options, &report, &e.err);
        Py_END_ALLOW_THREADS;
        out = ext_edit_end(&e, e.status == CAMEO_OK ? import_of(report) : NULL,
                           report ? report->findings : NULL);
    }
    Py_DECREF(path);
    return out;
}

/* ---- out of a model ---- */

static PyObject *exported_of(const struct cameo_exported *report)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < report->tensor_count; i++) {
        const struct cameo_exported_tensor *row = report->tensors[i];
        if (!ext_append(list, Py_BuildValue("(NNNN)", ext_text(row->name), ext_text(row->slot),
                                            ext_text(row->role), ext_text(row->type))))
            Py_CLEAR(list);
    }
    return Py_BuildValue("{s:N,s:N,s:L,s:K,s:N}", "tensors", list, "optimizer",
                         ext_text(report->optimizer), "step", (long long)report->step, "bytes",
                         (unsigned long long)report->bytes, "notes",
                         ext_texts(report->notes, report->note_count));
}

/* export_checkpoint(model, path, format, weights_only): a dict */
static PyObject *export_checkpoint(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    struct cameo_export_options options = CAMEO_EXPORT_OPTIONS_INIT;
    const struct cameo_exported *report = NULL;
    struct cameo_error err;
    PyObject *object, *path = NULL;
    int weights_only;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "OO&sp", &object, PyUnicode_FSConverter, &path, &options.to,
                          &weights_only)) {
        Py_XDECREF(path);
        return NULL;
    }
    options.weights_only = weights_only;
    struct ext_model *self = ext_model_of(state, object);
    PyObject *out = NULL;
    if (self) {
        const char *text = PyBytes_AsString(path);
        struct ext_watch watch;
        ext_watch_begin(&watch);
        options.cancel = watch.cancel;
        Py_BEGIN_ALLOW_THREADS;
        status = cameo_model_export(self->model, text, &options, &report, &err);
        Py_END_ALLOW_THREADS;
        if (!ext_watch_end(&watch, status))
            out = status == CAMEO_OK ? exported_of(report) : ext_raise(state, &err);
    }
    Py_DECREF(path);
    return out;
}

/* export_formats(): [(name, system, what is written)] */
static PyObject *export_formats(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    const struct cameo_export_format *row;

    (void)module;
    (void)unused;
    for (size_t i = 0; list && (row = cameo_export_format(i)); i++)
        if (!ext_append(list, Py_BuildValue("(NNN)", ext_text(row->name), ext_text(row->system),
                                            ext_text(row->what))))
            Py_CLEAR(list);
    return list;
}

PyMethodDef ext_checkpoint_functions[] = {
    {"open_checkpoint", open_checkpoint, METH_VARARGS, "open_checkpoint(path): a capsule"},
    {"checkpoint_summary", checkpoint_summary, METH_O, "checkpoint_summary(capsule): a dict"},
    {"checkpoint_tensor", checkpoint_tensor, METH_VARARGS,
     "checkpoint_tensor(capsule, index): a Value"},
    {"import_checkpoint", import_checkpoint, METH_VARARGS,
     "import_checkpoint(model, path, options, which of them count, weights only, partial, map, "
     "settings): (Model, report)"},
    {"export_checkpoint", export_checkpoint, METH_VARARGS,
     "export_checkpoint(model, path, format, weights only): a dict"},
    {"export_formats", export_formats, METH_NOARGS, "export_formats(): [(name, system, what)]"},
    {0},
};
