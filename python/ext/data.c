/* Data sets, in files and in memory. */
// SPDX-License-Identifier: Apache-2.0
#include "training.h"

/* ---- data sets ---- */

struct ext_data *ext_data_of(struct ext_state *state, PyObject *object)
{
    if (PyObject_TypeCheck(object, (PyTypeObject *)state->data_type))
        return (struct ext_data *)object;
    PyErr_Format(PyExc_TypeError, "%R is not a data set", (PyObject *)Py_TYPE(object));
    return NULL;
}

void ext_data_kept(struct ext_data *data, bool kept)
{
    if (data && kept)
        data->arrays.kept = true;
}

static void data_dealloc(PyObject *object)
{
    struct ext_data *self = (struct ext_data *)object;
    PyTypeObject *type = Py_TYPE(object);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    cameo_dataset_free(self->dataset);
    ext_feeds_end(&self->arrays);
    Py_XDECREF(self->kept);
    release(object);
    Py_DECREF(type);
}

/* Without data yet. Feeds are filled in place: they cannot be moved. */
static struct ext_data *data_new(struct ext_state *state)
{
    PyTypeObject *type = (PyTypeObject *)state->data_type;
    const allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);

    return (struct ext_data *)alloc(type, 0);
}

/* open_data(paths as a list of bytes, columns or None): a Data */
static PyObject *open_data(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    struct cameo_dataset_options options = CAMEO_DATASET_OPTIONS_INIT;
    struct cameo_error err;
    PyObject *list = NULL;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "O!|z", &PyList_Type, &list, &options.columns))
        return NULL;
    options.allow_links = true; /* the folder is the caller's own */
    const size_t count = (size_t)PyList_Size(list);
    const char **paths = PyMem_Calloc(count + 1, sizeof *paths);
    struct ext_data *self = NULL;
    bool good = paths != NULL;

    if (!good)
        PyErr_NoMemory();
    for (size_t i = 0; good && i < count; i++) /* the list holds the bytes */
        good = PyBytes_AsStringAndSize(PyList_GetItem(list, (Py_ssize_t)i), (char **)&paths[i],
                                       NULL) == 0;
    if (good)
        self = data_new(state);
    if (self) {
        Py_BEGIN_ALLOW_THREADS;
        status = cameo_dataset_open_files(paths, count, &options, &self->dataset, &err);
        Py_END_ALLOW_THREADS;
        if (status != CAMEO_OK) {
            Py_CLEAR(self);
            ext_raise(state, &err);
        }
    }
    PyMem_Free(paths);
    return (PyObject *)self;
}

/* What a feed was made of, as memory; false: it has none. */
static bool tensor_of(const struct ext_lease *lease, struct cameo_tensor *out)
{
    const struct cameo_value *value = lease->value;

    if (!value)
        *out = lease->tensor;
    else if (cameo_value_kind(value) == CAMEO_KIND_TENSOR)
        *out = cameo_tensor_of(cameo_value_dtype(value), cameo_value_rank(value),
                               cameo_value_dims(value), cameo_value_data(value),
                               cameo_value_bytes(value));
    return !value || cameo_value_kind(value) == CAMEO_KIND_TENSOR;
}

/* The data set of the arrays that were leased; false after an exception. */
static bool fill(struct ext_state *state, struct ext_data *self)
{
    const size_t count = (size_t)self->arrays.count;
    struct cameo_tensor *tensors = PyMem_Calloc(count + 1, sizeof *tensors);
    const char **names = PyMem_Calloc(count + 1, sizeof *names);
    struct cameo_error err;
    bool good = tensors && names;

    if (!good)
        PyErr_NoMemory();
    for (size_t i = 0; good && i < count; i++) {
        names[i] = self->arrays.feeds[i].name;
        good = tensor_of(&self->arrays.leases[i], &tensors[i]);
        if (!good)
            PyErr_Format(PyExc_TypeError, "array '%s' is not a tensor", names[i]);
    }
    if (good &&
        cameo_dataset_from_arrays(names, tensors, count, &self->dataset, &err) != CAMEO_OK) {
        ext_raise(state, &err);
        good = false;
    }
    PyMem_Free(tensors);
    PyMem_Free((void *)names);
    return good;
}

/* data_of(dict of arrays): a Data over their memory */
static PyObject *data_of(PyObject *module, PyObject *dict)
{
    struct ext_state *state = ext_state(module);
    struct ext_data *self = data_new(state);

    if (!self)
        return NULL;
    Py_INCREF(dict);
    self->kept = dict;
    if (!ext_feeds(state, dict, &self->arrays) || !fill(state, self))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static PyObject *data_samples(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLongLong(cameo_dataset_samples(((struct ext_data *)self)->dataset));
}

static PyObject *data_fields(PyObject *self, PyObject *unused)
{
    const struct cameo_dataset *dataset = ((struct ext_data *)self)->dataset;
    struct cameo_dataset_field field = CAMEO_DATASET_FIELD_INIT;
    PyObject *list = PyList_New(0);

    (void)unused;
    for (size_t i = 0; list && cameo_dataset_field(dataset, i, &field); i++)
        if (!ext_append(list, ext_text(field.name)))
            Py_CLEAR(list);
    return list;
}

static PyMethodDef data_methods[] = {
    {"samples", data_samples, METH_NOARGS, "How many samples it has."},
    {"fields", data_fields, METH_NOARGS, "Names of its arrays."},
    {0},
};

static PyType_Slot data_slots[] = {
    {Py_tp_doc, "A data set."},
    {Py_tp_dealloc, data_dealloc},
    {Py_tp_methods, data_methods},
    {0, NULL},
};

PyType_Spec ext_data_spec = {"cameo._cameo.Data", sizeof(struct ext_data), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, data_slots};

PyMethodDef ext_data_functions[] = {
    {"open_data", open_data, METH_VARARGS, "open_data(path, columns): a Data"},
    {"data_of", data_of, METH_O, "data_of(dict of arrays): a Data over their memory"},
    {0},
};
