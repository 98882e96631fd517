/* Sessions: a model made ready, and runs of it without the interpreter lock. */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

struct ext_session {
    PyObject_HEAD
    struct cameo_session *session;
    PyObject *model;
};

static PyObject *session_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"model", "threads", "memory_limit", "backend", "seed", "without", "expand",
                            NULL};
    struct ext_state *state = ext_state_of(type);
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_error err;
    struct cameo_session *session = NULL;
    PyObject *model;
    int threads = 0, expand = 0;
    Py_ssize_t limit = 0;
    unsigned long long seed = 0;
    enum cameo_status status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!|$inzKzp", names, state->model_type, &model,
                                     &threads, &limit, &options.backend, &seed,
                                     &options.without_passes, &expand))
        return NULL;
    options.threads = threads;
    options.memory_limit = (size_t)limit;
    options.seed = seed;
    options.expand = expand;
    const struct cameo_model *inside = ((struct ext_model *)model)->model;
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_session_new(inside, &options, &session, &err);
    Py_END_ALLOW_THREADS;
    if (status != CAMEO_OK)
        return ext_raise(state, &err);
    const allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct ext_session *self = (struct ext_session *)alloc(type, 0);
    if (!self) {
        cameo_session_free(session);
        return NULL;
    }
    self->session = session;
    self->model = ext_model_use((struct ext_model *)model);
    return (PyObject *)self;
}

static void session_dealloc(PyObject *object)
{
    struct ext_session *self = (struct ext_session *)object;
    PyTypeObject *type = Py_TYPE(object);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    cameo_session_free(self->session);
    ext_model_leave(self->model);
    release(object);
    Py_DECREF(type);
}

/* Results as Python has them, in the order asked for; every value is given up either way. */
static PyObject *results(struct ext_state *state, struct cameo_fetch *fetches, Py_ssize_t count)
{
    PyObject *list = PyList_New(0);

    for (Py_ssize_t i = 0; i < count; i++) {
        struct cameo_value *value = fetches[i].value;
        PyObject *item = NULL;

        if (list && value && cameo_value_kind(value) == CAMEO_KIND_TENSOR &&
            cameo_value_dtype(value) != CAMEO_STRING) {
            item = ext_value_new(state, value, NULL);
            value = NULL;
        } else if (list)
            item = ext_from_value(state, value);
        cameo_value_free(value);
        if (list && (!item || PyList_Append(list, item) < 0))
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

/* run(feeds, names of outputs or None) */
static PyObject *session_run(PyObject *object, PyObject *args)
{
    struct ext_session *self = (struct ext_session *)object;
    struct ext_state *state = ext_state_of(Py_TYPE(object));
    struct ext_feeds feeds;
    struct cameo_error err;
    PyObject *inputs, *names = Py_None, *out = NULL;
    enum cameo_status status = CAMEO_OK;

    if (!PyArg_ParseTuple(args, "O|O", &inputs, &names) || !ext_feeds(state, inputs, &feeds))
        return NULL;
    const bool all = names == Py_None;
    PyObject *wanted = all ? NULL : PySequence_List(names);
    const Py_ssize_t count = all      ? (Py_ssize_t)cameo_session_output_count(self->session)
                             : wanted ? PyList_Size(wanted)
                                      : 0;
    struct cameo_fetch *fetches = PyMem_Calloc((size_t)count + 1, sizeof *fetches);
    for (Py_ssize_t i = 0; fetches && i < count; i++) {
        fetches[i] = (struct cameo_fetch)CAMEO_FETCH_INIT;
        fetches[i].index = (size_t)i;
        if (wanted)
            fetches[i].name = PyUnicode_AsUTF8AndSize(PyList_GetItem(wanted, i), NULL);
    }
    if (!fetches)
        PyErr_NoMemory();
    if (!PyErr_Occurred()) {
        struct cameo_session *session = self->session;
        struct cameo_run_options options = CAMEO_RUN_OPTIONS_INIT;
        struct ext_watch watch;

        ext_watch_begin(&watch);
        options.cancel = watch.cancel;
        Py_BEGIN_ALLOW_THREADS;
        status = cameo_session_run(session, feeds.feeds, (size_t)feeds.count, fetches, (size_t)count,
                                   &options, &err);
        Py_END_ALLOW_THREADS;
        if (status == CAMEO_OK)
            out = results(state, fetches, count);
        if (!ext_watch_end(&watch, status) && status != CAMEO_OK)
            ext_raise(state, &err);
    }
    PyMem_Free(fetches);
    Py_XDECREF(wanted);
    ext_feeds_end(&feeds);
    return out;
}

typedef const struct cameo_value_info *info_fn(const struct cameo_session *, size_t);

static PyObject *infos(PyObject *object, info_fn *get)
{
    PyObject *list = PyList_New(0);
    const struct cameo_value_info *info;

    for (size_t i = 0; list && (info = get(((struct ext_session *)object)->session, i)); i++) {
        PyObject *item = ext_value_info(info);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *session_inputs(PyObject *self, PyObject *unused)
{
    (void)unused;
    return infos(self, cameo_session_input);
}

static PyObject *session_outputs(PyObject *self, PyObject *unused)
{
    (void)unused;
    return infos(self, cameo_session_output);
}

static PyMethodDef session_methods[] = {
    {"run", session_run, METH_VARARGS, "run(inputs, names of outputs): a list of results"},
    {"inputs", session_inputs, METH_NOARGS, "[(name, type, dtype, shape, kind, has default)]"},
    {"outputs", session_outputs, METH_NOARGS, "The same of outputs."},
    {0},
};

static PyType_Slot session_slots[] = {
    {Py_tp_doc, "A model made ready to run."},
    {Py_tp_new, session_new},
    {Py_tp_dealloc, session_dealloc},
    {Py_tp_methods, session_methods},
    {0, NULL},
};

PyType_Spec ext_session_spec = {"cameo._cameo.Session", sizeof(struct ext_session), 0,
                                Py_TPFLAGS_DEFAULT, session_slots};
