/* Trainers: steps, evaluation, variables. */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

#include <stdlib.h>

struct ext_trainer {
    PyObject_HEAD
    struct cameo_trainer *trainer;
    PyObject *model;
    double *scalars;
    atomic_bool busy; /* a step is under way: one thread at a time */
};

static PyObject *trainer_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"model", "threads", "memory_limit", "backend", "seed", "gradients",
                            "without", "with_passes", NULL};
    struct ext_state *state = ext_state_of(type);
    struct cameo_trainer_options options = CAMEO_TRAINER_OPTIONS_INIT;
    struct cameo_trainer *trainer = NULL;
    struct cameo_error err;
    PyObject *model;
    int threads = 0, gradients = 0;
    Py_ssize_t limit = 0;
    unsigned long long seed = 0;
    enum cameo_status status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!|$inzKpzz", names, state->model_type, &model,
                                     &threads, &limit, &options.backend, &seed, &gradients,
                                     &options.without_passes, &options.with_passes))
        return NULL;
    options.threads = threads;
    options.memory_limit = (size_t)limit;
    options.seed = seed;
    options.gradients = gradients;
    struct cameo_model *inside = ((struct ext_model *)model)->model;
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_trainer_new(inside, &options, &trainer, &err);
    Py_END_ALLOW_THREADS;
    if (status != CAMEO_OK)
        return ext_raise(state, &err);
    const allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct ext_trainer *self = (struct ext_trainer *)alloc(type, 0);
    double *scalars = PyMem_Calloc(cameo_trainer_scalar_count(trainer) + 1, sizeof *scalars);
    if (!self || !scalars) {
        cameo_trainer_free(trainer);
        PyMem_Free(scalars);
        Py_XDECREF((PyObject *)self);
        return PyErr_NoMemory();
    }
    self->trainer = trainer;
    self->scalars = scalars;
    self->model = ext_model_use((struct ext_model *)model);
    return (PyObject *)self;
}

static void trainer_dealloc(PyObject *object)
{
    struct ext_trainer *self = (struct ext_trainer *)object;
    PyTypeObject *type = Py_TYPE(object);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    cameo_trainer_free(self->trainer);
    PyMem_Free(self->scalars);
    ext_model_leave(self->model);
    release(object);
    Py_DECREF(type);
}

/* One thread at a time. */
static bool enter(struct ext_trainer *self, struct ext_watch *watch)
{
    if (atomic_exchange(&self->busy, true)) {
        PyErr_SetString(PyExc_RuntimeError, "another thread is using this trainer");
        return false;
    }
    ext_watch_begin(watch);
    cameo_trainer_set_cancel(self->trainer, watch->cancel);
    return true;
}

/* Whether all is well; otherwise an exception is set. */
static bool leave(struct ext_trainer *self, struct ext_watch *watch, enum cameo_status status,
                  const struct cameo_error *err)
{
    cameo_trainer_set_cancel(self->trainer, NULL);
    atomic_store(&self->busy, false);
    if (!ext_watch_end(watch, status) && status != CAMEO_OK)
        ext_raise(ext_state_of(Py_TYPE((PyObject *)self)), err);
    return status == CAMEO_OK;
}

static PyObject *scalars_of(const struct ext_trainer *self)
{
    PyObject *dict = PyDict_New();

    for (size_t i = 0; dict && i < cameo_trainer_scalar_count(self->trainer); i++) {
        PyObject *number = PyFloat_FromDouble(self->scalars[i]);
        if (!number ||
            PyDict_SetItemString(dict, cameo_trainer_scalar_name(self->trainer, i), number) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(number);
    }
    return dict;
}

/* step(feeds): (loss or None, scalars) */
static PyObject *trainer_step(PyObject *object, PyObject *inputs)
{
    struct ext_trainer *self = (struct ext_trainer *)object;
    struct ext_state *state = ext_state_of(Py_TYPE(object));
    struct ext_feeds feeds;
    struct cameo_error err;
    enum cameo_status status;

    if (!ext_feeds(state, inputs, &feeds))
        return NULL;
    struct ext_watch watch;
    if (!enter(self, &watch)) {
        ext_feeds_end(&feeds);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_trainer_step(self->trainer, feeds.feeds, (size_t)feeds.count, self->scalars, &err);
    Py_END_ALLOW_THREADS;
    ext_feeds_end(&feeds);
    if (!leave(self, &watch, status, &err))
        return NULL;
    const size_t loss = cameo_trainer_loss(self->trainer);
    PyObject *scalars = scalars_of(self), *first;
    if (!scalars)
        return NULL;
    if (loss < cameo_trainer_scalar_count(self->trainer))
        first = PyFloat_FromDouble(self->scalars[loss]);
    else {
        first = Py_None;
        Py_INCREF(first);
    }
    return Py_BuildValue("(NN)", first, scalars);
}

static PyObject *trainer_save(PyObject *object, PyObject *args)
{
    struct ext_trainer *self = (struct ext_trainer *)object;
    struct cameo_error err;
    PyObject *path = NULL;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path))
        return NULL;
    struct ext_watch watch;
    if (!enter(self, &watch)) {
        Py_DECREF(path);
        return NULL;
    }
    const char *text = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_trainer_save(self->trainer, text, NULL, NULL, &err);
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    if (!leave(self, &watch, status, &err))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *trainer_inputs(PyObject *object, PyObject *unused)
{
    const struct cameo_trainer *trainer = ((struct ext_trainer *)object)->trainer;
    const struct cameo_value_info *info;
    PyObject *list = PyList_New(0);

    (void)unused;
    for (size_t i = 0; list && (info = cameo_trainer_input(trainer, i)); i++) {
        PyObject *item = ext_value_info(info);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *trainer_steps(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(
        cameo_trainer_steps(((struct ext_trainer *)object)->trainer));
}

static PyMethodDef trainer_methods[] = {
    {"step", trainer_step, METH_O, "step(inputs): (loss, scalars)"},
    {"save", trainer_save, METH_VARARGS, "save(path)"},
    {"inputs", trainer_inputs, METH_NOARGS, "[(name, type, dtype, shape, kind, has default)]"},
    {"steps", trainer_steps, METH_NOARGS, "Iterations so far."},
    {0},
};

static PyType_Slot trainer_slots[] = {
    {Py_tp_doc, "A training on its way."},
    {Py_tp_new, trainer_new},
    {Py_tp_dealloc, trainer_dealloc},
    {Py_tp_methods, trainer_methods},
    {0, NULL},
};

PyType_Spec ext_trainer_spec = {"cameo._cameo.Trainer", sizeof(struct ext_trainer), 0,
                                Py_TPFLAGS_DEFAULT, trainer_slots};
