/* Sessions: a model made ready, and runs of it without the interpreter lock. */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

struct ext_session {
    PyObject_HEAD struct cameo_session *session;
    PyObject *model;
    struct ext_slots inputs, outputs;
};

static const struct cameo_value_info *input_info(const void *session, size_t index)
{
    return cameo_session_input(session, index);
}

static const struct cameo_value_info *output_info(const void *session, size_t index)
{
    return cameo_session_output(session, index);
}

static PyObject *session_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"model", "threads", "memory_limit", "backend",
                            "seed",  "without", "expand",       NULL};
    struct ext_state *state = ext_state_of(type);
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_error err;
    struct cameo_session *session = NULL;
    PyObject *model;
    int threads = 0, expand = 0;
    Py_ssize_t limit = 0;
    unsigned long long seed = 0;
    struct cameo_findings *findings = NULL;
    enum cameo_status status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!|$inzKzp", names, state->model_type, &model,
                                     &threads, &limit, &options.backend, &seed,
                                     &options.without_passes, &expand))
        return NULL;
    options.threads = threads;
    options.memory_limit = (size_t)limit;
    options.findings = &findings;
    options.seed = seed;
    options.expand = expand;
    const struct cameo_model *inside = ((struct ext_model *)model)->model;
    PyObject *used = ext_model_use((struct ext_model *)model);
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_session_new(inside, &options, &session, &err);
    Py_END_ALLOW_THREADS;
    if (ext_take_kept())
        Py_INCREF(model); /* for good: constants that a kernel was called with are its memory */
    if (status != CAMEO_OK) {
        ext_model_leave(used);
        return ext_raise_listed(state, &err, findings);
    }
    const allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct ext_session *self = (struct ext_session *)alloc(type, 0);
    if (!self) {
        cameo_session_free(session);
        ext_model_leave(used);
        return NULL;
    }
    self->session = session;
    self->model = used;
    if (ext_slots(session, input_info, cameo_session_input_count(session), &self->inputs) &&
        ext_slots(session, output_info, cameo_session_output_count(session), &self->outputs))
        return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return NULL;
}

static void session_dealloc(PyObject *object)
{
    struct ext_session *self = (struct ext_session *)object;
    PyTypeObject *type = Py_TYPE(object);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    cameo_session_free(self->session);
    ext_slots_end(&self->inputs);
    ext_slots_end(&self->outputs);
    ext_model_leave(self->model);
    release(object);
    Py_DECREF(type);
}

/* ---- one run ---- */

/* What is fetched: all outputs, those of a list, or into memory of the caller's. */
struct fetching {
    struct cameo_fetch *fetches, few[EXT_FEW];
    struct ext_lease *leases; /* of the caller's memory; or NULL */
    PyObject *names;          /* a list; or NULL: all */
    Py_ssize_t count, leased;
};

/* kept: by a kernel, so that the memory is left alone for good */
static void end_fetching(struct fetching *out, bool kept)
{
    for (Py_ssize_t i = 0; i < out->leased && !kept; i++)
        ext_lease_end(&out->leases[i]);
    PyMem_Free(out->leases);
    if (out->fetches != out->few)
        PyMem_Free(out->fetches);
    Py_XDECREF(out->names);
}

static bool fetch_by_name(const struct ext_session *self, PyObject *name, struct cameo_fetch *out)
{
    if (!PyUnicode_Check(name)) {
        PyErr_SetString(PyExc_TypeError, "names of outputs are texts");
        return false;
    }
    out->index = ext_slot_find(&self->outputs, name);
    if (out->index == self->outputs.count) /* the library says which there are */
        out->name = PyUnicode_AsUTF8AndSize(name, NULL);
    return !PyErr_Occurred();
}

/* rooms: a dict of names to arrays, or to None for what the library finds memory for. */
static bool fetch_into(const struct ext_session *self, PyObject *rooms, struct fetching *out)
{
    out->leases = PyMem_Calloc((size_t)out->count + 1, sizeof *out->leases);
    if (!out->leases) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < out->count; i++) {
        struct cameo_fetch *fetch = &out->fetches[i];
        if (fetch->name)
            continue;
        /* A reference of our own: another thread may change the dict. */
        PyObject *room = PyObject_GetItem(rooms, PyList_GetItem(out->names, i));
        const bool is_none = room == Py_None;
        const bool good =
            is_none ||
            (room && ext_lease_room(room, &self->outputs.items[fetch->index], &out->leases[i]));
        Py_XDECREF(room);
        if (!good)
            return false;
        if (is_none)
            continue;
        out->leased = i + 1;
        fetch->tensor = &out->leases[i].tensor;
    }
    return true;
}

static bool begin_fetching(const struct ext_session *self, PyObject *names, PyObject *rooms,
                           struct fetching *out)
{
    out->fetches = out->few;
    out->leases = NULL;
    out->names = NULL;
    out->leased = 0;
    out->count = (Py_ssize_t)self->outputs.count;
    if (rooms && !PyDict_Check(rooms)) {
        PyErr_SetString(PyExc_TypeError, "the outputs to be filled are a dict of names to arrays");
        return false;
    }
    if (rooms || names != Py_None) {
        if (!rooms && PyUnicode_Check(names)) {
            PyErr_SetString(PyExc_TypeError, "outputs is a list of names, not one name");
            return false;
        }
        out->names = rooms ? PyDict_Keys(rooms) : PySequence_List(names);
        if (!out->names)
            return false;
        out->count = PyList_Size(out->names);
    }
    if (out->count > EXT_FEW)
        out->fetches = PyMem_Calloc((size_t)out->count, sizeof *out->fetches);
    if (!out->fetches) {
        PyErr_NoMemory();
        end_fetching(out, false);
        return false;
    }
    bool good = true;
    for (Py_ssize_t i = 0; good && i < out->count; i++) {
        out->fetches[i] = (struct cameo_fetch)CAMEO_FETCH_INIT;
        out->fetches[i].index = (size_t)i;
        good = !out->names || fetch_by_name(self, PyList_GetItem(out->names, i), &out->fetches[i]);
    }
    if (good && (!rooms || fetch_into(self, rooms, out)))
        return true;
    end_fetching(out, false);
    return false;
}

/* Results as Python has them, in the order asked for; every value is given up either way. */
static PyObject *results(struct ext_state *state, struct fetching *from)
{
    PyObject *list = PyList_New(from->count);

    for (Py_ssize_t i = 0; i < from->count; i++) {
        if (!list) {
            ext_value_free(from->fetches[i].value);
            continue;
        }
        PyObject *item = ext_array(state, from->fetches[i].value); /* None: it is in its room */
        if (!item || PyList_SetItem(list, i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* Rows of steps, noted as they end. */
struct steps {
    PyObject *list; /* or NULL: nobody asks */
    bool failed;    /* an exception is set */
};

static void note_step(void *arg, const struct cameo_step *step)
{
    struct steps *steps = arg;
    struct ext_entry entry;

    ext_enter(&entry);
    if (!steps->failed)
        steps->failed = !ext_append(
            steps->list,
            Py_BuildValue("{s:N,s:N,s:N,s:s,s:s,s:i,s:K,s:K,s:n,s:K,s:d}", "node",
                          ext_text(step->node), "domain", ext_text(step->domain), "op",
                          ext_text(step->op), "kernel", step->kernel, "declined", step->declined,
                          "depth", step->depth, "begin_ns", (unsigned long long)step->begin_ns,
                          "end_ns", (unsigned long long)step->end_ns, "live_bytes",
                          (Py_ssize_t)step->live_bytes, "id", (unsigned long long)step->id, "flops",
                          step->flops));
    ext_leave(&entry);
}

/* run(names or None, inputs, cancel or None, list for rows of steps or None, dict of outputs to be
 * filled): a list of results, None for those that are filled. */
static PyObject *session_run(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    struct ext_session *self = (struct ext_session *)object;
    struct ext_state *state = ext_state_of(Py_TYPE(object));
    struct cameo_run_options options = CAMEO_RUN_OPTIONS_INIT;
    struct cameo_findings *findings = NULL;
    struct cameo_cancel *cancel = NULL;
    struct steps steps = {NULL, false};
    struct ext_feeds feeds;
    struct fetching fetching;
    struct ext_watch watch;
    struct cameo_error err;
    PyObject *out = NULL;
    enum cameo_status status;

    if (count < 2 || count > 5) {
        PyErr_SetString(PyExc_TypeError, "run takes names of outputs and a dict of inputs");
        return NULL;
    }
    if (count > 2 && !ext_cancel_of(state, args[2], &cancel))
        return NULL;
    if (count > 3 && PyList_Check(args[3]))
        steps.list = args[3];
    PyObject *rooms = count > 4 ? args[4] : NULL;
    if (!ext_feeds_for(state, args[1], &self->inputs, &feeds))
        return NULL;
    if (!begin_fetching(self, args[0], rooms, &fetching)) {
        ext_feeds_end(&feeds);
        return NULL;
    }
    if (steps.list) {
        options.step = note_step;
        options.step_arg = &steps;
    }
    ext_watch_begin_with(&watch, cancel);
    options.cancel = watch.cancel;
    options.findings = &findings;
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_session_run(self->session, feeds.feeds, (size_t)feeds.count, fetching.fetches,
                               (size_t)fetching.count, &options, &err);
    Py_END_ALLOW_THREADS;
    feeds.kept = ext_take_kept();
    if (!ext_watch_end(&watch, status) && status != CAMEO_OK)
        ext_raise_with(state, &err, findings);
    cameo_findings_free(findings);
    if (status == CAMEO_OK && !steps.failed)
        out = results(state, &fetching);
    for (Py_ssize_t i = 0; status == CAMEO_OK && steps.failed && i < fetching.count; i++)
        ext_value_free(fetching.fetches[i].value);
    end_fetching(&fetching, feeds.kept);
    ext_feeds_end(&feeds);
    return out;
}

static PyObject *rows(const struct ext_slots *slots)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < slots->count; i++)
        if (PyList_Append(list, slots->items[i].row) < 0)
            Py_CLEAR(list);
    return list;
}

static PyObject *session_inputs(PyObject *self, PyObject *unused)
{
    (void)unused;
    return rows(&((struct ext_session *)self)->inputs);
}

static PyObject *session_outputs(PyObject *self, PyObject *unused)
{
    (void)unused;
    return rows(&((struct ext_session *)self)->outputs);
}

static PyMethodDef session_methods[] = {
    {"run", (PyCFunction)(void (*)(void))session_run, METH_FASTCALL,
     "run(names of outputs, inputs, cancel, steps, rooms): a list of results"},
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
