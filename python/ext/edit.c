/* Models made of models. Whatever changes one works on a copy, and gives that back. */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

#include <string.h>

static PyObject *choices_of(const struct cameo_preparation *report)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < report->choice_count; i++) {
        const struct cameo_choice *row = report->choices[i];
        if (!ext_append(list, Py_BuildValue("(NON)", ext_text(row->name),
                                            row->trained ? Py_True : Py_False,
                                            ext_text(row->reason))))
            Py_CLEAR(list);
    }
    return list;
}

/* prepare(model, **options): (Model, choices, changes, target, loss) */
static PyObject *prepare(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"model",      "loss",          "output",         "target",
                            "optimizer",  "lr",            "momentum",       "weight_decay",
                            "beta1",      "beta2",         "epsilon",        "schedule",
                            "warmup",     "schedule_steps", "schedule_factor", "clip_norm",
                            "accumulate", "train",         "freeze",         "keep_opset",
                            "class_axis", "keep_tied",     NULL};
    struct ext_state *state = ext_state(module);
    struct cameo_prepare_options o = CAMEO_PREPARE_OPTIONS_INIT;
    const struct cameo_preparation *report = NULL;
    struct cameo_error err;
    PyObject *object;
    int schedule = 0, keep_opset = 0, keep_tied = 0;
    long long warmup = o.warmup, steps = o.schedule_steps, accumulate = o.accumulate,
              axis = o.class_axis;
    enum cameo_status status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$zzzzddddddiLLddLzzpLp", names, &object,
                                     &o.loss, &o.output, &o.target, &o.optimizer, &o.lr, &o.momentum,
                                     &o.weight_decay, &o.beta1, &o.beta2, &o.epsilon, &schedule,
                                     &warmup, &steps, &o.schedule_factor, &o.clip_norm, &accumulate,
                                     &o.train, &o.freeze, &keep_opset, &axis, &keep_tied))
        return NULL;
    o.schedule = (enum cameo_schedule)schedule;
    o.warmup = warmup;
    o.schedule_steps = steps;
    o.accumulate = accumulate;
    o.keep_opset = keep_opset;
    o.class_axis = axis;
    o.keep_tied = keep_tied;
    struct ext_model *self = ext_model_of(state, object);
    struct cameo_model *copy = self ? ext_model_edit(state, self) : NULL;
    if (!copy)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_model_prepare(copy, &o, &report, &err);
    Py_END_ALLOW_THREADS;
    PyObject *made = ext_model_edited(state, self, copy, status, &err);
    if (!made)
        return NULL;
    return Py_BuildValue("(NNNNN)", made, choices_of(report),
                         ext_texts(report->changes, report->change_count),
                         ext_text(report->target), ext_text(report->loss));
}

/* gradient(model, of, wrt, portable): a Model */
static PyObject *gradient(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    struct cameo_model *made = NULL;
    struct cameo_error err;
    struct ext_names wrt;
    PyObject *object, *list;
    const char *of;
    int portable = 0;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "OsO|p", &object, &of, &list, &portable))
        return NULL;
    struct ext_model *self = ext_model_of(state, object);
    if (!self || !ext_names(list, &wrt))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_model_gradient(self->model, of, wrt.items, wrt.count, portable, &made, &err);
    Py_END_ALLOW_THREADS;
    ext_names_end(&wrt);
    return ext_model_edited(state, self, made, status, &err);
}

PyMethodDef ext_edit_functions[] = {
    {"prepare", (PyCFunction)(void (*)(void))prepare, METH_VARARGS | METH_KEYWORDS,
     "prepare(model, **options): (Model, choices, changes, target, loss)"},
    {"gradient", gradient, METH_VARARGS, "gradient(model, of, wrt, portable): a Model"},
    {0},
};
