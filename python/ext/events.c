/* Event files for TensorBoard. */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

#include <pthread.h>

struct ext_events {
    PyObject_HEAD struct cameo_events *events; /* NULL once closed */
    pthread_rwlock_t lock;                     /* who adds reads it, who closes writes it */
};

static PyObject *events_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"folder", NULL};
    struct ext_state *state = ext_state_of(type);
    struct cameo_events *events = NULL;
    struct cameo_error err;
    PyObject *folder = NULL;
    enum cameo_status status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&", names, PyUnicode_FSConverter, &folder))
        return NULL;
    const char *path = PyBytes_AsString(folder);
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_events_new(path, &events, &err);
    Py_END_ALLOW_THREADS;
    Py_DECREF(folder);
    if (status != CAMEO_OK)
        return ext_raise(state, &err);
    const allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct ext_events *self = (struct ext_events *)alloc(type, 0);
    if (!self) {
        cameo_events_free(events);
        return NULL;
    }
    pthread_rwlock_init(&self->lock, NULL); /* cannot fail without attributes */
    self->events = events;
    return (PyObject *)self;
}

static void events_dealloc(PyObject *object)
{
    struct ext_events *self = (struct ext_events *)object;
    PyTypeObject *type = Py_TYPE(object);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    cameo_events_free(self->events);
    pthread_rwlock_destroy(&self->lock);
    release(object);
    Py_DECREF(type);
}

/* What is added: a scalar, a text, or where a run goes on. */
struct event {
    const char *tag, *text;
    int64_t step;
    double time, value;
};

typedef enum cameo_status event_fn(struct cameo_events *, const struct event *,
                                   struct cameo_error *);

static enum cameo_status give_scalar(struct cameo_events *events, const struct event *e,
                                     struct cameo_error *err)
{
    return cameo_events_add_scalar(events, e->tag, e->step, e->time, e->value, err);
}

static enum cameo_status give_text(struct cameo_events *events, const struct event *e,
                                   struct cameo_error *err)
{
    return cameo_events_add_text(events, e->tag, e->step, e->time, e->text, err);
}

static enum cameo_status give_resume(struct cameo_events *events, const struct event *e,
                                     struct cameo_error *err)
{
    return cameo_events_resume(events, e->step, e->time, err);
}

static PyObject *add(PyObject *object, event_fn *fn, const struct event *event)
{
    struct ext_events *self = (struct ext_events *)object;
    struct cameo_error err;
    enum cameo_status status = CAMEO_OK;
    bool closed;

    Py_BEGIN_ALLOW_THREADS;
    pthread_rwlock_rdlock(&self->lock);
    closed = !self->events;
    if (!closed)
        status = fn(self->events, event, &err);
    pthread_rwlock_unlock(&self->lock);
    Py_END_ALLOW_THREADS;
    if (closed) {
        PyErr_SetString(PyExc_ValueError, "the event file is closed");
        return NULL;
    }
    if (status != CAMEO_OK)
        return ext_raise(ext_state_of(Py_TYPE(object)), &err);
    Py_RETURN_NONE;
}

static PyObject *events_scalar(PyObject *self, PyObject *args)
{
    struct event e = {0};
    long long step;

    if (!PyArg_ParseTuple(args, "sLdd", &e.tag, &step, &e.time, &e.value))
        return NULL;
    e.step = step;
    return add(self, give_scalar, &e);
}

static PyObject *events_text(PyObject *self, PyObject *args)
{
    struct event e = {0};
    long long step;

    if (!PyArg_ParseTuple(args, "sLds", &e.tag, &step, &e.time, &e.text))
        return NULL;
    e.step = step;
    return add(self, give_text, &e);
}

static PyObject *events_resume(PyObject *self, PyObject *args)
{
    struct event e = {0};
    long long step;

    if (!PyArg_ParseTuple(args, "Ld", &step, &e.time))
        return NULL;
    e.step = step;
    return add(self, give_resume, &e);
}

static PyObject *events_close(PyObject *object, PyObject *unused)
{
    struct ext_events *self = (struct ext_events *)object;
    struct cameo_events *events;
    struct cameo_error err;
    enum cameo_status status = CAMEO_OK;

    (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    pthread_rwlock_wrlock(&self->lock);
    events = self->events;
    self->events = NULL;
    pthread_rwlock_unlock(&self->lock);
    if (events)
        status = cameo_events_finish(events, &err);
    cameo_events_free(events);
    Py_END_ALLOW_THREADS;
    if (status != CAMEO_OK)
        return ext_raise(ext_state_of(Py_TYPE(object)), &err);
    Py_RETURN_NONE;
}

static PyObject *events_path(PyObject *object, void *unused)
{
    struct ext_events *self = (struct ext_events *)object;
    PyObject *path = NULL;

    (void)unused;
    pthread_rwlock_rdlock(&self->lock);
    if (self->events)
        path = PyUnicode_DecodeFSDefault(cameo_events_path(self->events));
    else
        PyErr_SetString(PyExc_ValueError, "the event file is closed");
    pthread_rwlock_unlock(&self->lock);
    return path;
}

static PyMethodDef events_methods[] = {
    {"scalar", events_scalar, METH_VARARGS, "scalar(tag, step, time, value)"},
    {"text", events_text, METH_VARARGS, "text(tag, step, time, text)"},
    {"resume", events_resume, METH_VARARGS, "resume(step, time)"},
    {"close", events_close, METH_NOARGS, "Ends the file."},
    {0},
};

static PyGetSetDef events_members[] = {
    {"path", events_path, NULL, "The file's name.", NULL},
    {0},
};

static PyType_Slot events_slots[] = {
    {Py_tp_doc, "Events(folder): an event file of TensorBoard."},
    {Py_tp_new, events_new},
    {Py_tp_dealloc, events_dealloc},
    {Py_tp_methods, events_methods},
    {Py_tp_getset, events_members},
    {0, NULL},
};

PyType_Spec ext_events_spec = {"cameo._cameo.Events", sizeof(struct ext_events), 0,
                               Py_TPFLAGS_DEFAULT, events_slots};
