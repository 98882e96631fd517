/* What follows from sizes of open dimensions: costs of a run, inputs made up. */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

/* Sizes out of a dict of names to numbers; texts stay those of the dict. */
static struct cameo_size *sizes_of(PyObject *dict, size_t *count)
{
    const size_t room = (size_t)PyDict_Size(dict);
    struct cameo_size *sizes = PyMem_Calloc(room + 1, sizeof *sizes);
    PyObject *name, *size;
    Py_ssize_t at = 0;

    *count = 0;
    if (!sizes) {
        PyErr_NoMemory();
        return NULL;
    }
    while (*count < room && !PyErr_Occurred() && PyDict_Next(dict, &at, &name, &size)) {
        struct cameo_size *row = &sizes[(*count)++];
        *row = (struct cameo_size)CAMEO_SIZE_INIT;
        row->symbol = PyUnicode_AsUTF8AndSize(name, NULL);
        row->size = row->symbol ? ext_whole(size) : 0;
    }
    if (!PyErr_Occurred())
        return sizes;
    PyMem_Free(sizes);
    return NULL;
}

static PyObject *costs_of(const struct cameo_costs *costs)
{
    PyObject *operators = PyList_New(0), *sizes = PyList_New(0);

    for (size_t i = 0; operators && i < costs->operator_count; i++) {
        const struct cameo_cost *row = costs->operators[i];
        if (!ext_append(operators,
                        Py_BuildValue("(NNndK)", ext_text(row->domain), ext_text(row->op),
                                      (Py_ssize_t)row->node_count, row->flops,
                                      (unsigned long long)row->output_bytes)))
            Py_CLEAR(operators);
    }
    for (size_t i = 0; sizes && i < costs->size_count; i++) {
        const struct cameo_assumed_size *row = costs->sizes[i];
        if (!ext_append(sizes, Py_BuildValue("(NLO)", ext_text(row->symbol), (long long)row->size,
                                             row->assumed ? Py_True : Py_False)))
            Py_CLEAR(sizes);
    }
    return Py_BuildValue("{s:d,s:K,s:K,s:n,s:n,s:O,s:N,s:N}", "flops", costs->flops,
                         "activation_bytes", (unsigned long long)costs->activation_bytes,
                         "peak_bytes", (unsigned long long)costs->peak_bytes, "unknown",
                         (Py_ssize_t)costs->unknown_count, "left_out", (Py_ssize_t)costs->left_out,
                         "has_bodies", costs->has_bodies ? Py_True : Py_False, "operators",
                         operators, "sizes", sizes);
}

/* costs(model, {name: size}) */
static PyObject *costs(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    const struct cameo_costs *found = NULL;
    struct cameo_error err;
    PyObject *object, *dict;
    size_t count;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "OO!", &object, &PyDict_Type, &dict))
        return NULL;
    struct ext_model *self = ext_model_of(state, object);
    struct cameo_size *sizes = self ? sizes_of(dict, &count) : NULL;
    if (!sizes)
        return NULL;
    PyObject *used = ext_model_use(self);
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_model_costs(self->model, sizes, count, &found, &err);
    Py_END_ALLOW_THREADS;
    PyMem_Free(sizes);
    PyObject *out = status == CAMEO_OK ? costs_of(found) : ext_raise(state, &err);
    ext_model_leave(used);
    return out;
}

/* Shapes out of a dict of names to tuples, as one block: the rows, then all dims. */
static struct cameo_input_shape *shapes_of(PyObject *dict, size_t *count)
{
    PyObject *name, *shape;
    Py_ssize_t at = 0;
    size_t all = 0;

    *count = 0;
    while (PyDict_Next(dict, &at, &name, &shape)) {
        if (!PyTuple_Check(shape)) {
            PyErr_SetString(PyExc_TypeError, "shapes are tuples of numbers");
            return NULL;
        }
        all += (size_t)PyTuple_Size(shape);
    }
    const size_t room = (size_t)PyDict_Size(dict) + 1;
    struct cameo_input_shape *shapes =
        PyMem_Calloc(1, room * sizeof *shapes + (all + 1) * sizeof(int64_t));
    if (!shapes) {
        PyErr_NoMemory();
        return NULL;
    }
    int64_t *dims = (int64_t *)(void *)(shapes + room);
    at = 0;
    while (*count + 1 < room && !PyErr_Occurred() && PyDict_Next(dict, &at, &name, &shape)) {
        struct cameo_input_shape *row = &shapes[(*count)++];
        *row = (struct cameo_input_shape)CAMEO_INPUT_SHAPE_INIT;
        row->input = PyUnicode_AsUTF8AndSize(name, NULL);
        row->rank = (int)PyTuple_Size(shape);
        row->dims = dims;
        for (int i = 0; row->input && i < row->rank; i++)
            *dims++ = ext_whole(PyTuple_GetItem(shape, i));
    }
    if (!PyErr_Occurred())
        return shapes;
    PyMem_Free(shapes);
    return NULL;
}

static PyObject *made_of(struct ext_state *state, const struct cameo_session *session,
                         const struct cameo_made_inputs *made)
{
    size_t count;
    const struct cameo_feed *feeds = cameo_made_inputs_feeds(made, &count);
    const struct cameo_made_size *size;
    PyObject *values = PyDict_New(), *sizes = PyList_New(0);

    for (size_t i = 0; values && i < count; i++) {
        const struct cameo_feed *feed = cameo_feed_at(feeds, i);
        PyObject *name = feed->name ? PyUnicode_FromString(feed->name)
                                    : ext_text(cameo_session_input(session, feed->index)->name);
        PyObject *value = name ? ext_from_value(state, feed->value) : NULL;
        if (!value || PyDict_SetItem(values, name, value) < 0)
            Py_CLEAR(values);
        Py_XDECREF(name);
        Py_XDECREF(value);
    }
    for (size_t i = 0; sizes && (size = cameo_made_inputs_size(made, i)); i++)
        if (!ext_append(sizes, Py_BuildValue("(NiNL)", ext_text(size->input), size->axis,
                                             ext_text(size->symbol), (long long)size->size)))
            Py_CLEAR(sizes);
    return Py_BuildValue("(NNs)", values, sizes, cameo_made_inputs_refusal(made));
}

/* make_inputs(model, seed, {name: size}, {input: shape}, inputs that are given): (values, sizes,
 * why the model will refuse them) */
static PyObject *make_inputs(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    struct cameo_make_options options = CAMEO_MAKE_OPTIONS_INIT;
    struct cameo_session *session = NULL;
    struct cameo_made_inputs *made = NULL;
    struct cameo_error err;
    struct ext_feeds feeds;
    PyObject *object, *sizes, *shapes, *given, *out = NULL;
    unsigned long long seed;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "OKO!O!O", &object, &seed, &PyDict_Type, &sizes, &PyDict_Type,
                          &shapes, &given))
        return NULL;
    struct ext_model *self = ext_model_of(state, object);
    if (!self || !ext_feeds(state, given, &feeds))
        return NULL;
    struct cameo_size *all_sizes = sizes_of(sizes, &options.size_count);
    struct cameo_input_shape *all_shapes =
        all_sizes ? shapes_of(shapes, &options.shape_count) : NULL;
    if (all_shapes) {
        options.seed = seed;
        options.sizes = all_sizes;
        options.shapes = all_shapes;
        PyObject *used = ext_model_use(self);
        Py_BEGIN_ALLOW_THREADS;
        status = cameo_session_new(self->model, NULL, &session, &err);
        if (status == CAMEO_OK)
            status = cameo_session_make_inputs(session, &options, feeds.feeds, (size_t)feeds.count,
                                               &made, &err);
        Py_END_ALLOW_THREADS;
        feeds.kept = ext_take_kept();
        out = status == CAMEO_OK ? made_of(state, session, made) : ext_raise(state, &err);
        cameo_made_inputs_free(made);
        cameo_session_free(session);
        ext_model_leave(used);
    }
    PyMem_Free(all_shapes);
    PyMem_Free(all_sizes);
    ext_feeds_end(&feeds);
    return out;
}

PyMethodDef ext_sizes_functions[] = {
    {"costs", costs, METH_VARARGS, "costs(model, sizes): a dict"},
    {"make_inputs", make_inputs, METH_VARARGS,
     "make_inputs(model, seed, sizes, shapes, given): (values, sizes, refusal)"},
    {0},
};
