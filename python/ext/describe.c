/* What a model is made of: initializers and their values. */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

/* initializers(model): {name: (number, dtype, shape, is state, training entry)} of the graph's and the training's */
static PyObject *initializers(PyObject *module, PyObject *object)
{
    struct ext_model *self = ext_model_of(ext_state(module), object);
    PyObject *list = self ? PyList_New(0) : NULL;
    const struct cameo_initializer *row;

    for (size_t i = 0; list && (row = cameo_model_initializer(self->model, i)); i++) {
        PyObject *shape = PyTuple_New((Py_ssize_t)row->rank);
        for (size_t axis = 0; shape && axis < row->rank; axis++)
            PyTuple_SetItem(shape, (Py_ssize_t)axis, PyLong_FromLongLong(row->dims[axis]));
        if (!shape || !ext_append(list, Py_BuildValue("(NiNOi)", ext_text(row->name),
                                                      (int)row->dtype, shape,
                                                      row->is_state ? Py_True : Py_False,
                                                      row->training)))
            Py_CLEAR(list);
    }
    return list;
}

/* view_initializer(model, index): a Value over the model's memory, or (shape, texts) */
static PyObject *view_initializer(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    struct cameo_value *value = NULL;
    struct cameo_error err;
    PyObject *object;
    Py_ssize_t index;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "On", &object, &index))
        return NULL;
    struct ext_model *self = ext_model_of(state, object);
    if (!self)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_model_view_initializer(self->model, (size_t)index, &value, &err);
    Py_END_ALLOW_THREADS;
    if (status != CAMEO_OK)
        return ext_raise(state, &err);
    if (cameo_value_dtype(value) != CAMEO_STRING)
        return ext_value_new(state, value, ext_model_use(self));
    PyObject *texts = ext_from_value(state, value);
    cameo_value_free(value);
    return texts;
}

PyMethodDef ext_describe_functions[] = {
    {"initializers", initializers, METH_O,
     "initializers(model): [(name, dtype, shape, is state, training entry or -1)]"},
    {"view_initializer", view_initializer, METH_VARARGS, "view_initializer(model, index): a Value"},
    {0},
};
