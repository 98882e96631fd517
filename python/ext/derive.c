/* Trainable models, training steps, gradients, and the check of gradients. */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

#include <stdlib.h>
#include <string.h>

PyObject *ext_preparation(const struct cameo_preparation *report)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < report->choice_count; i++) {
        const struct cameo_choice *row = report->choices[i];
        if (!ext_append(list,
                        Py_BuildValue("(NONNN)", ext_text(row->name),
                                      row->trained ? Py_True : Py_False, ext_text(row->reason),
                                      ext_text(row->original), ext_text(row->folding))))
            Py_CLEAR(list);
    }
    return Py_BuildValue("{s:N,s:N,s:N,s:N}", "choices", list, "changes",
                         ext_texts(report->changes, report->change_count), "target",
                         ext_text(report->target), "loss", ext_text(report->loss));
}

/* Options by the names of struct cameo_prepare_options, out of a dict. */
bool ext_prepare_options(PyObject *dict, struct cameo_prepare_options *o)
{
    static char *names[] = {"loss",
                            "output",
                            "target",
                            "optimizer",
                            "lr",
                            "momentum",
                            "weight_decay",
                            "beta1",
                            "beta2",
                            "epsilon",
                            "schedule",
                            "warmup",
                            "schedule_steps",
                            "schedule_factor",
                            "clip_norm",
                            "accumulate",
                            "train",
                            "freeze",
                            "keep_opset",
                            "class_axis",
                            "keep_tied",
                            "keep_untied",
                            "no_decay",
                            "lr_for",
                            "warmup_from",
                            "no_decay_vectors",
                            "settings",
                            "without",
                            "until",
                            "class_weights",
                            "warmup_epochs",
                            "schedule_epochs",
                            "updates_per_epoch",
                            "schedule_patience",
                            "schedule_threshold",
                            "schedule_cooldown",
                            "schedule_min_lr",
                            "run_samples",
                            "run_batch_size",
                            "run_epochs",
                            "run_steps",
                            NULL};
    int schedule = 0, keep_opset = 0, keep_tied = 0, keep_untied = 0, no_decay_vectors = 0;
    long long warmup = o->warmup, steps = o->schedule_steps, accumulate = o->accumulate,
              axis = o->class_axis, patience = o->schedule_patience,
              cooldown = o->schedule_cooldown, run[4] = {0};
    const char *weights = NULL; /* doubles */
    Py_ssize_t size = 0;
    PyObject *none = PyTuple_New(0);

    if (!none ||
        !PyArg_ParseTupleAndKeywords(
            none, dict, "|$zzzzddddddiLLddLzzpLppzzdpzzzy#dddLdLdLLLL", names, &o->loss, &o->output,
            &o->target, &o->optimizer, &o->lr, &o->momentum, &o->weight_decay, &o->beta1, &o->beta2,
            &o->epsilon, &schedule, &warmup, &steps, &o->schedule_factor, &o->clip_norm,
            &accumulate, &o->train, &o->freeze, &keep_opset, &axis, &keep_tied, &keep_untied,
            &o->no_decay, &o->lr_for, &o->warmup_from, &no_decay_vectors, &o->settings, &o->without,
            &o->until, &weights, &size, &o->warmup_epochs, &o->schedule_epochs,
            &o->updates_per_epoch, &patience, &o->schedule_threshold, &cooldown,
            &o->schedule_min_lr, &run[0], &run[1], &run[2], &run[3])) {
        Py_XDECREF(none);
        return false;
    }
    Py_DECREF(none);
    o->schedule = (enum cameo_schedule)schedule;
    o->warmup = warmup;
    o->schedule_steps = steps;
    o->schedule_patience = patience;
    o->schedule_cooldown = cooldown;
    o->accumulate = accumulate;
    o->run_samples = run[0];
    o->run_batch_size = run[1];
    o->run_epochs = run[2];
    o->run_steps = run[3];
    o->keep_opset = keep_opset;
    o->class_axis = axis;
    o->keep_tied = keep_tied;
    o->keep_untied = keep_untied;
    o->no_decay_vectors = no_decay_vectors;
    o->class_weights = (const double *)(const void *)weights;
    o->class_weight_count = (size_t)size / sizeof(double);
    return true;
}

/* prepare(model, options) */
static PyObject *prepare(PyObject *module, PyObject *args)
{
    struct cameo_prepare_options options = CAMEO_PREPARE_OPTIONS_INIT;
    const struct cameo_preparation *report = NULL;
    PyObject *object, *dict;
    struct ext_edit e;

    if (!PyArg_ParseTuple(args, "OO!", &object, &PyDict_Type, &dict) ||
        !ext_prepare_options(dict, &options) || !ext_edit_copy(&e, module, object))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    e.status = cameo_model_prepare(e.made, &options, &report, &e.err);
    Py_END_ALLOW_THREADS;
    return ext_edit_end(&e, e.status == CAMEO_OK ? ext_preparation(report) : NULL,
                        report ? report->findings : NULL);
}

/* step(model, portable) */
static PyObject *step(PyObject *module, PyObject *args)
{
    PyObject *object;
    struct ext_edit e;
    int portable = 0;

    if (!PyArg_ParseTuple(args, "O|p", &object, &portable) || !ext_edit_from(&e, module, object))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    e.status = cameo_model_step(e.from->model, portable, &e.made, &e.err);
    Py_END_ALLOW_THREADS;
    return ext_edit_end(&e, e.status == CAMEO_OK ? PyDict_New() : NULL, NULL);
}

/* gradient(model, of, wrt, portable) */
static PyObject *gradient(PyObject *module, PyObject *args)
{
    PyObject *object, *list;
    struct ext_names wrt;
    const char *of;
    struct ext_edit e;
    int portable = 0;

    if (!PyArg_ParseTuple(args, "OsO|p", &object, &of, &list, &portable) || !ext_names(list, &wrt))
        return NULL;
    if (!ext_edit_from(&e, module, object)) {
        ext_names_end(&wrt);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    e.status =
        cameo_model_gradient(e.from->model, of, wrt.items, wrt.count, portable, &e.made, &e.err);
    Py_END_ALLOW_THREADS;
    ext_names_end(&wrt);
    return ext_edit_end(&e, e.status == CAMEO_OK ? PyDict_New() : NULL, NULL);
}

/* Rows come while the interpreter lock is released: kept as they are, texts live with the model. */
struct gradcheck_rows {
    struct cameo_gradcheck *items;
    size_t count, room;
    bool failed;
};

static void take_row(void *arg, const struct cameo_gradcheck *row)
{
    struct gradcheck_rows *rows = arg;

    if (rows->count == rows->room) {
        const size_t room = rows->room * 2 + 16;
        void *grown = realloc(rows->items, room * sizeof *rows->items);
        if (!grown) {
            rows->failed = true;
            return;
        }
        rows->items = grown;
        rows->room = room;
    }
    rows->items[rows->count] = *row;
    char *name = malloc(row->name.size + 1);
    if (name)
        memcpy(name, row->name.data, row->name.size + 1);
    rows->failed = rows->failed || !name;
    rows->items[rows->count++].name.data = name;
}

static PyObject *gradcheck_of(const struct gradcheck_rows *rows)
{
    PyObject *list = rows->failed ? PyErr_NoMemory() : PyList_New(0);

    for (size_t i = 0; list && i < rows->count; i++) {
        const struct cameo_gradcheck *row = &rows->items[i];
        if (!ext_append(list,
                        Py_BuildValue("{s:N,s:L,s:n,s:d,s:d,s:d,s:L,s:O,s:d,s:d,s:n}", "name",
                                      ext_text(row->name), "elements", (long long)row->elements,
                                      "checked", (Py_ssize_t)row->checked, "worst", row->worst,
                                      "analytic", row->analytic, "numeric", row->numeric, "at",
                                      (long long)row->at, "reached",
                                      row->reached ? Py_True : Py_False, "below", row->below,
                                      "above", row->above, "kinks", (Py_ssize_t)row->kinks)))
            Py_CLEAR(list);
    }
    return list;
}

/* gradcheck(model, feeds, seed, samples): a list of dicts */
static PyObject *gradcheck(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    struct cameo_gradcheck_options options = CAMEO_GRADCHECK_OPTIONS_INIT;
    struct gradcheck_rows rows = {0};
    struct cameo_error err;
    struct ext_feeds feeds;
    PyObject *object, *dict;
    unsigned long long seed;
    Py_ssize_t samples;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "OOKn", &object, &dict, &seed, &samples))
        return NULL;
    struct ext_model *self = ext_model_of(state, object);
    if (!self || !ext_feeds(state, dict, &feeds))
        return NULL;
    options.seed = seed;
    options.samples = (size_t)samples;
    PyObject *used = ext_model_use(self);
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_model_gradcheck(self->model, &options, feeds.feeds, (size_t)feeds.count,
                                   take_row, &rows, &err);
    Py_END_ALLOW_THREADS;
    feeds.kept = ext_take_kept();
    ext_model_leave(used);
    PyObject *out = status == CAMEO_OK ? gradcheck_of(&rows) : ext_raise(state, &err);
    for (size_t i = 0; i < rows.count; i++)
        free((char *)(uintptr_t)rows.items[i].name.data);
    free(rows.items);
    ext_feeds_end(&feeds);
    return out;
}

PyMethodDef ext_derive_functions[] = {
    {"prepare", prepare, METH_VARARGS, "prepare(model, options): (Model, report)"},
    {"step", step, METH_VARARGS, "step(model, portable): (Model, report)"},
    {"gradient", gradient, METH_VARARGS, "gradient(model, of, wrt, portable): (Model, report)"},
    {"gradcheck", gradcheck, METH_VARARGS, "gradcheck(model, feeds, seed, samples): [dict]"},
    {0},
};
