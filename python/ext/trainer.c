/* Trainers: steps, halves of steps, evaluation. */
// SPDX-License-Identifier: Apache-2.0
#include "training.h"

static const struct cameo_value_info *input_info(const void *trainer, size_t index)
{
    return cameo_trainer_input(trainer, index);
}

static PyObject *trainer_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"model",     "threads", "memory_limit", "backend", "seed",
                            "gradients", "without", "with_passes",  NULL};
    struct ext_state *state = ext_state_of(type);
    struct cameo_trainer_options options = CAMEO_TRAINER_OPTIONS_INIT;
    struct cameo_trainer *trainer = NULL;
    struct cameo_findings *findings = NULL;
    struct cameo_error err;
    PyObject *model;
    int threads = 0, gradients = 0;
    Py_ssize_t limit = 0;
    unsigned long long seed = 0;
    enum cameo_status status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!|$inzKpzz", names, state->model_type,
                                     &model, &threads, &limit, &options.backend, &seed, &gradients,
                                     &options.without_passes, &options.with_passes))
        return NULL;
    options.threads = threads;
    options.memory_limit = (size_t)limit;
    options.findings = &findings;
    options.seed = seed;
    options.gradients = gradients;
    struct cameo_model *inside = ((struct ext_model *)model)->model;
    PyObject *used = ext_model_use((struct ext_model *)model);
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_trainer_new(inside, &options, &trainer, &err);
    Py_END_ALLOW_THREADS;
    if (ext_take_kept())
        Py_INCREF(model); /* for good: constants that a kernel was called with are its memory */
    if (status != CAMEO_OK) {
        ext_model_leave(used);
        return ext_raise_listed(state, &err, findings);
    }
    const allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct ext_trainer *self = (struct ext_trainer *)alloc(type, 0);
    if (!self) {
        cameo_trainer_free(trainer);
        ext_model_leave(used);
        return NULL;
    }
    self->trainer = trainer; /* from here on it goes with self */
    self->model = used;
    self->scalars = PyMem_Calloc(cameo_trainer_scalar_count(trainer) + 1, sizeof *self->scalars);
    if (self->scalars &&
        ext_slots(trainer, input_info, cameo_trainer_input_count(trainer), &self->inputs))
        return (PyObject *)self;
    if (!self->scalars)
        PyErr_NoMemory();
    Py_DECREF((PyObject *)self);
    return NULL;
}

static void trainer_dealloc(PyObject *object)
{
    struct ext_trainer *self = (struct ext_trainer *)object;
    PyTypeObject *type = Py_TYPE(object);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    cameo_trainer_free(self->trainer);
    PyMem_Free(self->scalars);
    ext_slots_end(&self->inputs);
    ext_model_leave(self->model);
    release(object);
    Py_DECREF(type);
}

/* ---- one thread at a time ---- */

struct ext_trainer *ext_trainer_of(struct ext_state *state, PyObject *object)
{
    if (PyObject_TypeCheck(object, (PyTypeObject *)state->trainer_type))
        return (struct ext_trainer *)object;
    PyErr_Format(PyExc_TypeError, "%R is not a trainer", (PyObject *)Py_TYPE(object));
    return NULL;
}

bool ext_trainer_enter(struct ext_trainer *self, bool trains, struct ext_use *use)
{
    const uintptr_t me = (uintptr_t)PyThread_get_thread_ident();
    uintptr_t owner = 0;

    *use = (struct ext_use){0};
    if (!atomic_compare_exchange_strong(&self->owner, &owner, me)) {
        use->inner = owner == me;
        if (!use->inner)
            PyErr_SetString(PyExc_RuntimeError, "another thread is using this trainer");
        else if (!self->running)
            PyErr_SetString(PyExc_RuntimeError, "this trainer is in use by the call that this "
                                                "function is called from");
        else if (trains)
            PyErr_SetString(
                PyExc_RuntimeError,
                "this trainer is in a run: its callbacks may read, assign, evaluate and "
                "save, but not train");
        if (!use->inner || trains || !self->running)
            return false;
        self->running = false; /* what is called while this use lasts may not even look */
    }
    ext_watch_begin(&use->watch);
    if (!use->inner)
        cameo_trainer_set_cancel(self->trainer, use->watch.cancel);
    return true;
}

bool ext_trainer_feed(struct ext_trainer *self, PyObject *inputs, bool trains,
                      struct ext_feeds *feeds, struct ext_use *use)
{
    struct ext_state *state = ext_state_of(Py_TYPE((PyObject *)self));

    if (!ext_feeds_for(state, inputs, &self->inputs, feeds))
        return false;
    if (ext_trainer_enter(self, trains, use))
        return true;
    ext_feeds_end(feeds);
    return false;
}

bool ext_trainer_leave(struct ext_trainer *self, struct ext_use *use, enum cameo_status status,
                       const struct cameo_error *err)
{
    if (!use->inner) {
        cameo_trainer_set_cancel(self->trainer, NULL);
        atomic_store(&self->owner, 0);
    } else
        self->running = true;
    if (!ext_watch_end(&use->watch, status) && status != CAMEO_OK)
        ext_raise_with(ext_state_of(Py_TYPE((PyObject *)self)), err, use->findings);
    return status == CAMEO_OK;
}

/* ---- results ---- */

static bool put(PyObject *dict, const char *name, PyObject *item)
{
    const bool done = item && PyDict_SetItemString(dict, name, item) == 0;

    Py_XDECREF(item);
    return done;
}

bool ext_put_real(PyObject *dict, const char *name, double number)
{
    return put(dict, name, PyFloat_FromDouble(number));
}

bool ext_put_whole(PyObject *dict, const char *name, uint64_t number)
{
    return put(dict, name, PyLong_FromUnsignedLongLong(number));
}

PyObject *ext_scalars(const struct cameo_trainer *trainer, const double *values)
{
    PyObject *dict = PyDict_New();

    for (size_t i = 0; dict && i < cameo_trainer_scalar_count(trainer); i++)
        if (!ext_put_real(dict, cameo_trainer_scalar_name(trainer, i), values[i]))
            Py_CLEAR(dict);
    return dict;
}

PyObject *ext_measure(const struct cameo_measure *m)
{
    PyObject *dict = PyDict_New();
    bool done = dict && ext_put_whole(dict, "samples", (uint64_t)m->samples);

    const struct {
        const char *name;
        double value; /* NaN: it does not apply */
    } scores[] = {{"loss", m->loss},
                  {"accuracy", m->accuracy},
                  {"mae", m->mae},
                  {"mse", m->mse},
                  {"r2", m->r2}};

    for (size_t i = 0; done && i < sizeof scores / sizeof *scores; i++)
        if (scores[i].value == scores[i].value)
            done = ext_put_real(dict, scores[i].name, scores[i].value);
    if (!done)
        Py_CLEAR(dict);
    return dict;
}

/* ---- steps ---- */

/* (loss or None, scalars) */
static PyObject *loss_and_scalars(const struct ext_trainer *self)
{
    const size_t loss = cameo_trainer_loss(self->trainer);
    PyObject *scalars = ext_scalars(self->trainer, self->scalars);

    if (!scalars)
        return NULL;
    if (loss < cameo_trainer_scalar_count(self->trainer))
        return Py_BuildValue("(dN)", self->scalars[loss], scalars);
    return Py_BuildValue("(ON)", Py_None, scalars);
}

typedef enum cameo_status step_fn(struct cameo_trainer *, const struct cameo_feed *, size_t,
                                  double *, struct cameo_error *);

static PyObject *feed_step(PyObject *object, PyObject *inputs, step_fn *step)
{
    struct ext_trainer *self = (struct ext_trainer *)object;
    struct ext_feeds feeds;
    struct ext_use use;
    struct cameo_error err;
    enum cameo_status status;

    if (!ext_trainer_feed(self, inputs, true, &feeds, &use))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = step(self->trainer, feeds.feeds, (size_t)feeds.count, self->scalars, &err);
    Py_END_ALLOW_THREADS;
    feeds.kept = ext_take_kept();
    ext_feeds_end(&feeds);
    PyObject *out = status == CAMEO_OK ? loss_and_scalars(self) : NULL;
    if (!ext_trainer_leave(self, &use, status, &err))
        Py_CLEAR(out);
    return out;
}

static PyObject *trainer_step(PyObject *self, PyObject *inputs)
{
    return feed_step(self, inputs, cameo_trainer_step);
}

static PyObject *trainer_compute(PyObject *self, PyObject *inputs)
{
    return feed_step(self, inputs, cameo_trainer_compute);
}

static PyObject *trainer_apply(PyObject *object, PyObject *unused)
{
    struct ext_trainer *self = (struct ext_trainer *)object;
    struct ext_use use;
    struct cameo_error err;
    enum cameo_status status;

    (void)unused;
    if (!ext_trainer_enter(self, true, &use))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_trainer_apply(self->trainer, self->scalars, &err);
    Py_END_ALLOW_THREADS;
    (void)ext_take_kept(); /* nothing was fed */
    PyObject *out = status == CAMEO_OK ? loss_and_scalars(self) : NULL;
    if (!ext_trainer_leave(self, &use, status, &err))
        Py_CLEAR(out);
    return out;
}

static PyObject *trainer_initialize(PyObject *object, PyObject *unused)
{
    struct ext_trainer *self = (struct ext_trainer *)object;
    struct ext_use use;
    struct cameo_error err;
    enum cameo_status status;

    (void)unused;
    if (!ext_trainer_enter(self, true, &use))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_trainer_initialize(self->trainer, &err);
    Py_END_ALLOW_THREADS;
    (void)ext_take_kept(); /* nothing was fed */
    if (!ext_trainer_leave(self, &use, status, &err))
        return NULL;
    Py_RETURN_NONE;
}

/* ---- looking ---- */

static PyObject *trainer_evaluate(PyObject *object, PyObject *inputs)
{
    struct ext_trainer *self = (struct ext_trainer *)object;
    struct cameo_measure measure = CAMEO_MEASURE_INIT;
    struct ext_feeds feeds;
    struct ext_use use;
    struct cameo_error err;
    enum cameo_status status;

    if (!ext_trainer_feed(self, inputs, false, &feeds, &use))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status =
        cameo_trainer_evaluate(self->trainer, feeds.feeds, (size_t)feeds.count, &measure, &err);
    Py_END_ALLOW_THREADS;
    feeds.kept = ext_take_kept();
    ext_feeds_end(&feeds);
    return ext_trainer_leave(self, &use, status, &err) ? ext_measure(&measure) : NULL;
}

/* predict(feeds, names of outputs): a list of results */
static PyObject *trainer_predict(PyObject *object, PyObject *args)
{
    struct ext_trainer *self = (struct ext_trainer *)object;
    struct ext_state *state = ext_state_of(Py_TYPE(object));
    struct cameo_fetch *fetches = NULL;
    struct ext_feeds feeds = {0};
    struct ext_names names;
    struct ext_use use;
    struct cameo_error err;
    PyObject *inputs, *wanted, *list = NULL;
    enum cameo_status status = CAMEO_OK;

    if (!PyArg_ParseTuple(args, "OO", &inputs, &wanted) || !ext_names(wanted, &names))
        return NULL;
    fetches = PyMem_Calloc(names.count + 1, sizeof *fetches);
    if (!fetches)
        PyErr_NoMemory();
    else if (ext_feeds(state, inputs, &feeds) && ext_trainer_enter(self, false, &use)) {
        for (size_t i = 0; i < names.count; i++)
            fetches[i] = cameo_fetch_value(names.items[i]);
        Py_BEGIN_ALLOW_THREADS;
        status = cameo_trainer_predict(self->trainer, feeds.feeds, (size_t)feeds.count, fetches,
                                       names.count, &err);
        Py_END_ALLOW_THREADS;
        feeds.kept = ext_take_kept();
        list = ext_trainer_leave(self, &use, status, &err) ? PyList_New(0) : NULL;
        for (size_t i = 0; i < names.count; i++) {
            if (list && !ext_append(list, ext_from_value(state, fetches[i].value)))
                Py_CLEAR(list);
            ext_value_free(fetches[i].value);
        }
    }
    ext_feeds_end(&feeds);
    ext_names_end(&names);
    PyMem_Free(fetches);
    return list;
}

static PyMethodDef trainer_methods[] = {
    {"step", trainer_step, METH_O, "step(inputs): (loss, scalars)"},
    {"compute", trainer_compute, METH_O, "compute(inputs): (loss, scalars)"},
    {"apply", trainer_apply, METH_NOARGS, "apply(): (loss, scalars)"},
    {"initialize", trainer_initialize, METH_NOARGS, "Begins anew."},
    {"evaluate", trainer_evaluate, METH_O, "evaluate(inputs): a dict"},
    {"predict", trainer_predict, METH_VARARGS,
     "predict(inputs, names of outputs): a list of results"},
    {"memory", ext_trainer_memory, METH_O, "memory(inputs): a dict of bytes"},
    {"inputs", ext_trainer_inputs, METH_NOARGS, "[(name, type, dtype, shape, kind, has default)]"},
    {"variables", ext_trainer_variables, METH_NOARGS, "[(name, dtype, shape, bytes)]"},
    {"parameters", ext_trainer_parameters, METH_NOARGS,
     "[(name, variable, dtype, elements, offset, bytes)]"},
    {"facts", ext_trainer_facts, METH_NOARGS,
     "Names of scalars, of the loss, the number of entries."},
    {"add_validation", ext_trainer_add_validation, METH_O, "add_validation(loss)"},
    {"steps", ext_trainer_steps, METH_NOARGS, "Iterations so far."},
    {"read", ext_trainer_read, METH_VARARGS,
     "read(0 variable, 1 parameters, 2 gradients; index; memory)"},
    {"set", ext_trainer_set, METH_VARARGS, "The same, the other way."},
    {"save", ext_trainer_save, METH_VARARGS, "save(path, placement, external name)"},
    {"to_model", ext_trainer_to_model, METH_NOARGS, "A Model with the values as they are now."},
    {"checkpoint_save", ext_trainer_checkpoint_save, METH_VARARGS,
     "checkpoint_save(path, keys, values)"},
    {"checkpoint_resume", ext_trainer_checkpoint_resume, METH_VARARGS,
     "checkpoint_resume(path, anyway): what differs"},
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
