/* Trainers: steps, halves of steps, evaluation, variables, what they save. */
// SPDX-License-Identifier: Apache-2.0
#include "training.h"

#include <stdio.h>
#include <string.h>

static PyObject *trainer_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"model",     "threads", "memory_limit", "backend", "seed",
                            "gradients", "without", "with_passes",  NULL};
    struct ext_state *state = ext_state_of(type);
    struct cameo_trainer_options options = CAMEO_TRAINER_OPTIONS_INIT;
    struct cameo_trainer *trainer = NULL;
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
        else if (trains || !self->running)
            PyErr_SetString(
                PyExc_RuntimeError,
                "this trainer is in a run: its callbacks may read, assign, evaluate and "
                "save, but not train");
        if (!use->inner || trains || !self->running)
            return false;
    }
    ext_watch_begin(&use->watch);
    if (!use->inner)
        cameo_trainer_set_cancel(self->trainer, use->watch.cancel);
    return true;
}

bool ext_trainer_leave(struct ext_trainer *self, struct ext_use *use, enum cameo_status status,
                       const struct cameo_error *err)
{
    if (!use->inner) {
        cameo_trainer_set_cancel(self->trainer, NULL);
        atomic_store(&self->owner, 0);
    }
    if (!ext_watch_end(&use->watch, status) && status != CAMEO_OK)
        ext_raise(ext_state_of(Py_TYPE((PyObject *)self)), err);
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

    if (done && m->loss == m->loss)
        done = ext_put_real(dict, "loss", m->loss);
    if (done && m->judged > 0)
        done = ext_put_real(dict, "accuracy", (double)m->correct / (double)m->judged);
    if (done && m->judged == 0 && m->compared > 0) {
        const double n = (double)m->compared,
                     spread = m->target_squares - m->targets * m->targets / n;

        done =
            ext_put_real(dict, "mae", m->absolute / n) && ext_put_real(dict, "mse", m->squared / n);
        if (done && spread > 0)
            done = ext_put_real(dict, "r2", 1 - m->squared / spread);
    }
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

    if (!ext_feeds(ext_state_of(Py_TYPE(object)), inputs, &feeds))
        return NULL;
    if (!ext_trainer_enter(self, true, &use)) {
        ext_feeds_end(&feeds);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = step(self->trainer, feeds.feeds, (size_t)feeds.count, self->scalars, &err);
    Py_END_ALLOW_THREADS;
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

    if (!ext_feeds(ext_state_of(Py_TYPE(object)), inputs, &feeds))
        return NULL;
    if (!ext_trainer_enter(self, false, &use)) {
        ext_feeds_end(&feeds);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status =
        cameo_trainer_evaluate(self->trainer, feeds.feeds, (size_t)feeds.count, &measure, &err);
    Py_END_ALLOW_THREADS;
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
        list = ext_trainer_leave(self, &use, status, &err) ? PyList_New(0) : NULL;
        for (size_t i = 0; i < names.count; i++) {
            if (list && !ext_append(list, ext_from_value(state, fetches[i].value)))
                Py_CLEAR(list);
            cameo_value_free(fetches[i].value);
        }
    }
    ext_feeds_end(&feeds);
    ext_names_end(&names);
    PyMem_Free(fetches);
    return list;
}

/* memory(feeds, of which only types and shapes count): a dict of bytes */
static PyObject *trainer_memory(PyObject *object, PyObject *inputs)
{
    struct ext_trainer *self = (struct ext_trainer *)object;
    struct cameo_memory m = CAMEO_MEMORY_INIT;
    struct ext_feeds feeds;
    struct ext_use use;
    struct cameo_error err;
    enum cameo_status status;

    if (!ext_feeds(ext_state_of(Py_TYPE(object)), inputs, &feeds))
        return NULL;
    if (!ext_trainer_enter(self, false, &use)) {
        ext_feeds_end(&feeds);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_trainer_memory(self->trainer, feeds.feeds, (size_t)feeds.count, &m, &err);
    Py_END_ALLOW_THREADS;
    ext_feeds_end(&feeds);
    if (!ext_trainer_leave(self, &use, status, &err))
        return NULL;
    const struct {
        const char *name;
        uint64_t bytes;
    } rows[] = {
        {"weights", m.weights},         {"state", m.state},         {"updates", m.updates},
        {"constants", m.constants},     {"batch", m.batch},         {"work", m.work},
        {"activations", m.activations}, {"gradients", m.gradients}, {"arithmetic", m.arithmetic},
        {"scratch", m.scratch},         {"limited", m.limited},     {"late_nodes", m.late},
    };
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < sizeof rows / sizeof *rows; i++)
        if (!ext_put_whole(dict, rows[i].name, rows[i].bytes))
            Py_CLEAR(dict);
    return dict;
}

static PyObject *trainer_inputs(PyObject *object, PyObject *unused)
{
    const struct cameo_trainer *trainer = ((struct ext_trainer *)object)->trainer;
    const struct cameo_value_info *info;
    PyObject *list = PyList_New(0);

    (void)unused;
    for (size_t i = 0; list && (info = cameo_trainer_input(trainer, i)); i++)
        if (!ext_append(list, ext_value_info(info)))
            Py_CLEAR(list);
    return list;
}

/* variables(): [(name, dtype, shape, is state, bytes)] */
static PyObject *trainer_variables(PyObject *object, PyObject *unused)
{
    const struct cameo_trainer *trainer = ((struct ext_trainer *)object)->trainer;
    const struct cameo_initializer *row;
    PyObject *list = PyList_New(0);

    (void)unused;
    for (size_t i = 0; list && (row = cameo_trainer_variable(trainer, i)); i++) {
        PyObject *shape = PyTuple_New((Py_ssize_t)row->rank);
        for (size_t axis = 0; shape && axis < row->rank; axis++) {
            PyObject *size = PyLong_FromLongLong(row->dims[axis]);
            if (!size || PyTuple_SetItem(shape, (Py_ssize_t)axis, size) < 0)
                Py_CLEAR(shape);
        }
        if (!shape ||
            !ext_append(list, Py_BuildValue("(NiNOK)", ext_text(row->name), (int)row->dtype, shape,
                                            row->is_state ? Py_True : Py_False,
                                            (unsigned long long)row->bytes)))
            Py_CLEAR(list);
    }
    return list;
}

/* parameters(): [(name, number of the variable, dtype, elements, offset, bytes)] */
static PyObject *trainer_parameters(PyObject *object, PyObject *unused)
{
    const struct cameo_trainer *trainer = ((struct ext_trainer *)object)->trainer;
    const struct cameo_parameter *row;
    PyObject *list = PyList_New(0);

    (void)unused;
    for (size_t i = 0; list && (row = cameo_trainer_parameter(trainer, i)); i++)
        if (!ext_append(list,
                        Py_BuildValue("(NniLnn)", ext_text(row->name), (Py_ssize_t)row->variable,
                                      (int)row->dtype, (long long)row->elements,
                                      (Py_ssize_t)row->offset, (Py_ssize_t)row->bytes)))
            Py_CLEAR(list);
    return list;
}

static PyObject *trainer_facts(PyObject *object, PyObject *unused)
{
    const struct cameo_trainer *trainer = ((struct ext_trainer *)object)->trainer;
    const size_t count = cameo_trainer_scalar_count(trainer), loss = cameo_trainer_loss(trainer);
    PyObject *names = PyList_New(0);

    (void)unused;
    for (size_t i = 0; names && i < count; i++)
        if (!ext_append(names, PyUnicode_FromString(cameo_trainer_scalar_name(trainer, i))))
            Py_CLEAR(names);
    if (!names)
        return NULL;
    return Py_BuildValue("{s:N,s:z,s:n}", "scalars", names, "loss",
                         loss < count ? cameo_trainer_scalar_name(trainer, loss) : NULL, "entries",
                         (Py_ssize_t)cameo_trainer_entry_count(trainer));
}

static PyObject *trainer_steps(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(
        cameo_trainer_steps(((struct ext_trainer *)object)->trainer));
}

/* ---- values ---- */

enum values_of { OF_VARIABLE, OF_PARAMETERS, OF_GRADIENTS };

static enum cameo_status move_values(struct cameo_trainer *t, enum values_of what, size_t index,
                                     bool set, void *values, size_t size, struct cameo_error *err)
{
    switch (what) {
    case OF_VARIABLE:
        return set ? cameo_trainer_set_variable(t, index, values, size, err)
                   : cameo_trainer_read_variable(t, index, values, size, err);
    case OF_PARAMETERS:
        return set ? cameo_trainer_set_parameters(t, values, size, err)
                   : cameo_trainer_read_parameters(t, values, size, err);
    default:
        return set ? cameo_trainer_set_gradients(t, values, size, err)
                   : cameo_trainer_read_gradients(t, values, size, err);
    }
}

static PyObject *move(PyObject *object, PyObject *args, bool set)
{
    struct ext_trainer *self = (struct ext_trainer *)object;
    struct ext_use use;
    struct cameo_error err;
    PyObject *memory;
    Py_buffer view;
    Py_ssize_t index;
    int what;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "inO", &what, &index, &memory) ||
        PyObject_GetBuffer(memory, &view, set ? PyBUF_SIMPLE : PyBUF_WRITABLE) < 0)
        return NULL;
    const bool entered = ext_trainer_enter(self, false, &use);
    if (entered) {
        Py_BEGIN_ALLOW_THREADS;
        status = move_values(self->trainer, (enum values_of)what, (size_t)index, set, view.buf,
                             (size_t)view.len, &err);
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&view);
    if (!entered || !ext_trainer_leave(self, &use, status, &err))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *trainer_read(PyObject *self, PyObject *args)
{
    return move(self, args, false);
}

static PyObject *trainer_set(PyObject *self, PyObject *args)
{
    return move(self, args, true);
}

/* ---- saving ---- */

static PyObject *trainer_save(PyObject *object, PyObject *args)
{
    struct ext_trainer *self = (struct ext_trainer *)object;
    struct cameo_save_options options = CAMEO_SAVE_OPTIONS_INIT;
    struct ext_use use;
    struct cameo_error err;
    PyObject *path = NULL;
    int placement = 0;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "O&|iz", PyUnicode_FSConverter, &path, &placement,
                          &options.external_name))
        return NULL;
    if (!ext_trainer_enter(self, false, &use)) {
        Py_DECREF(path);
        return NULL;
    }
    options.placement = (enum cameo_placement)placement;
    options.cancel = use.watch.cancel;
    const char *text = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_trainer_save(self->trainer, text, &options, NULL, &err);
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    if (!ext_trainer_leave(self, &use, status, &err))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *trainer_to_model(PyObject *object, PyObject *unused)
{
    struct ext_trainer *self = (struct ext_trainer *)object;
    struct cameo_model *made = NULL;
    struct ext_use use;
    struct cameo_error err;
    enum cameo_status status;

    (void)unused;
    if (!ext_trainer_enter(self, false, &use))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_trainer_copy_model(self->trainer, &made, &err);
    Py_END_ALLOW_THREADS;
    if (!ext_trainer_leave(self, &use, status, &err))
        return NULL;
    return ext_model_new(ext_state_of(Py_TYPE(object)), made, self->model);
}

/* ---- checkpoints ---- */

/* checkpoint_save(path, keys, values) */
static PyObject *trainer_checkpoint_save(PyObject *object, PyObject *args)
{
    struct ext_trainer *self = (struct ext_trainer *)object;
    struct ext_names keys = {0}, values = {0};
    struct cameo_note *notes = NULL;
    struct ext_use use;
    struct cameo_error err;
    PyObject *path = NULL, *key_list, *value_list;
    enum cameo_status status;
    bool done = false;

    if (!PyArg_ParseTuple(args, "O&OO", PyUnicode_FSConverter, &path, &key_list, &value_list))
        return NULL;
    if (ext_names(key_list, &keys) && ext_names(value_list, &values) &&
        !(notes = PyMem_Calloc(keys.count + 1, sizeof *notes)))
        PyErr_NoMemory();
    if (notes && keys.count == values.count && ext_trainer_enter(self, false, &use)) {
        const char *text = PyBytes_AsString(path);

        for (size_t i = 0; i < keys.count; i++) {
            notes[i] = (struct cameo_note)CAMEO_NOTE_INIT;
            notes[i].key = (struct cameo_text){keys.items[i], strlen(keys.items[i])};
            notes[i].value = (struct cameo_text){values.items[i], strlen(values.items[i])};
        }
        Py_BEGIN_ALLOW_THREADS;
        status = cameo_checkpoint_save(self->trainer, text, notes, keys.count, &err);
        Py_END_ALLOW_THREADS;
        done = ext_trainer_leave(self, &use, status, &err);
    }
    PyMem_Free(notes);
    ext_names_end(&keys);
    ext_names_end(&values);
    Py_DECREF(path);
    if (!done)
        return NULL;
    Py_RETURN_NONE;
}

/* Conditions that differ, noted without the interpreter lock. */
struct differences {
    char text[4096];
    size_t used;
};

static void note_difference(void *arg, const char *condition, const char *was, const char *now)
{
    struct differences *d = arg;

    if (d->used < sizeof d->text)
        d->used += (size_t)snprintf(d->text + d->used, sizeof d->text - d->used, "%s%s: %s, now %s",
                                    d->used ? "\n" : "", condition, was, now);
}

/* checkpoint_resume(path, anyway): what differs, in lines */
static PyObject *trainer_checkpoint_resume(PyObject *object, PyObject *args)
{
    struct ext_trainer *self = (struct ext_trainer *)object;
    struct cameo_resume_options options = CAMEO_RESUME_OPTIONS_INIT;
    struct differences differences = {{0}, 0};
    struct ext_use use;
    struct cameo_error err;
    PyObject *path = NULL;
    int anyway = 0;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "O&|p", PyUnicode_FSConverter, &path, &anyway))
        return NULL;
    if (!ext_trainer_enter(self, true, &use)) {
        Py_DECREF(path);
        return NULL;
    }
    options.anyway = anyway;
    options.difference = note_difference;
    options.difference_arg = &differences;
    const char *text = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_checkpoint_resume(self->trainer, text, &options, &err);
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    if (!ext_trainer_leave(self, &use, status, &err))
        return NULL;
    return PyUnicode_DecodeUTF8(differences.text, (Py_ssize_t)strlen(differences.text), "replace");
}

static PyMethodDef trainer_methods[] = {
    {"step", trainer_step, METH_O, "step(inputs): (loss, scalars)"},
    {"compute", trainer_compute, METH_O, "compute(inputs): (loss, scalars)"},
    {"apply", trainer_apply, METH_NOARGS, "apply(): (loss, scalars)"},
    {"initialize", trainer_initialize, METH_NOARGS, "Begins anew."},
    {"evaluate", trainer_evaluate, METH_O, "evaluate(inputs): a dict"},
    {"predict", trainer_predict, METH_VARARGS,
     "predict(inputs, names of outputs): a list of results"},
    {"memory", trainer_memory, METH_O, "memory(inputs): a dict of bytes"},
    {"inputs", trainer_inputs, METH_NOARGS, "[(name, type, dtype, shape, kind, has default)]"},
    {"variables", trainer_variables, METH_NOARGS, "[(name, dtype, shape, is state, bytes)]"},
    {"parameters", trainer_parameters, METH_NOARGS,
     "[(name, variable, dtype, elements, offset, bytes)]"},
    {"facts", trainer_facts, METH_NOARGS, "Names of scalars, of the loss, the number of entries."},
    {"steps", trainer_steps, METH_NOARGS, "Iterations so far."},
    {"read", trainer_read, METH_VARARGS,
     "read(0 variable, 1 parameters, 2 gradients; index; memory)"},
    {"set", trainer_set, METH_VARARGS, "The same, the other way."},
    {"save", trainer_save, METH_VARARGS, "save(path, placement, external name)"},
    {"to_model", trainer_to_model, METH_NOARGS, "A Model with the values as they are now."},
    {"checkpoint_save", trainer_checkpoint_save, METH_VARARGS,
     "checkpoint_save(path, keys, values)"},
    {"checkpoint_resume", trainer_checkpoint_resume, METH_VARARGS,
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
