/* Fetching: what the library computed as Python has it, over the library's memory. */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

/* Bytes that are not UTF-8 come as lone surrogates, which feeding turns back into the same bytes.
 */
static PyObject *string_of(const struct cameo_value *value, int64_t index)
{
    const struct cameo_text text = cameo_value_string(value, index);
    return PyUnicode_DecodeUTF8(text.data ? text.data : "", (Py_ssize_t)text.size,
                                "surrogateescape");
}

static PyObject *shape_of(const struct cameo_value *value)
{
    const int rank = cameo_value_rank(value);
    const int64_t *dims = cameo_value_dims(value);
    PyObject *shape = PyTuple_New(rank);

    for (int i = 0; shape && i < rank; i++) {
        PyObject *size = PyLong_FromLongLong(dims[i]);
        if (!size || PyTuple_SetItem(shape, i, size) < 0)
            Py_CLEAR(shape);
    }
    return shape;
}

static PyObject *text_tensor(const struct cameo_value *value)
{
    const int64_t count = cameo_value_count(value);
    PyObject *list = PyList_New((Py_ssize_t)count);

    for (int64_t i = 0; list && i < count; i++) {
        PyObject *text = string_of(value, i);
        if (!text || PyList_SetItem(list, (Py_ssize_t)i, text) < 0)
            Py_CLEAR(list);
    }
    PyObject *shape = list ? shape_of(value) : NULL;
    PyObject *pair = shape ? PyTuple_Pack(2, shape, list) : NULL;
    Py_XDECREF(shape);
    Py_XDECREF(list);
    return pair;
}

/* A value of its own that shares the memory. */
static PyObject *share(struct ext_state *state, const struct cameo_value *value)
{
    struct cameo_value *own;
    struct cameo_error err;

    if (cameo_value_new_optional(value, &own, &err) != CAMEO_OK)
        return ext_raise(state, &err);
    return ext_value_new(state, own, NULL);
}

static PyObject *sequence_of(struct ext_state *state, const struct cameo_value *value)
{
    const size_t count = cameo_value_item_count(value);
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < count; i++) {
        PyObject *item = ext_from_value(state, cameo_value_item(value, i));
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

/* Maps have plain numbers, as classifiers give them: one for each class of each sample. */
static PyObject *number_of(const struct cameo_value *value)
{
    if (cameo_value_kind(value) != CAMEO_KIND_TENSOR || cameo_value_rank(value) != 0)
        return NULL;
    switch (cameo_value_dtype(value)) {
    case CAMEO_FLOAT:
    case CAMEO_DOUBLE:
    case CAMEO_FLOAT16:
        return PyFloat_FromDouble(cameo_value_real(value, 0));
    case CAMEO_INT64:
    case CAMEO_INT32:
        return PyLong_FromLongLong(cameo_value_integer(value, 0));
    case CAMEO_STRING:
        return string_of(value, 0);
    default:
        return NULL;
    }
}

static PyObject *map_of(struct ext_state *state, const struct cameo_value *value)
{
    const bool texts = cameo_value_dtype(value) == CAMEO_STRING;
    PyObject *map = PyDict_New();

    for (size_t i = 0; map && i < cameo_value_item_count(value); i++) {
        const struct cameo_value *inside = cameo_value_item(value, i);
        PyObject *key = texts ? string_of(value, (int64_t)i)
                              : PyLong_FromLongLong(cameo_value_integer(value, (int64_t)i));
        PyObject *item = key ? number_of(inside) : NULL;

        if (key && !item && !PyErr_Occurred())
            item = ext_from_value(state, inside);
        if (!item || PyDict_SetItem(map, key, item) < 0)
            Py_CLEAR(map);
        Py_XDECREF(key);
        Py_XDECREF(item);
    }
    return map;
}

PyObject *ext_from_value(struct ext_state *state, const struct cameo_value *value)
{
    switch (value ? cameo_value_kind(value) : CAMEO_KIND_NONE) {
    case CAMEO_KIND_NONE:
        Py_RETURN_NONE;
    case CAMEO_KIND_SEQUENCE:
        return sequence_of(state, value);
    case CAMEO_KIND_MAP:
        return map_of(state, value);
    default:
        break;
    }
    return cameo_value_dtype(value) == CAMEO_STRING ? text_tensor(value) : share(state, value);
}

/* An array over a tensor; NULL without an exception where NumPy has no such type. */
static PyObject *plain_array(struct ext_state *state, const struct ext_numpy *numpy,
                             struct cameo_value **value)
{
    const Py_ssize_t number = (Py_ssize_t)cameo_value_dtype(*value);
    PyObject *dtype =
        number < PyTuple_Size(numpy->dtypes) ? PyTuple_GetItem(numpy->dtypes, number) : Py_None;

    if (dtype == Py_None)
        return NULL;
    PyObject *shape = shape_of(*value);
    PyObject *inside = shape ? ext_value_new(state, *value, NULL) : NULL;
    if (shape)
        *value = NULL;
    PyObject *array =
        inside ? PyObject_CallFunctionObjArgs(numpy->ndarray, shape, dtype, inside, NULL) : NULL;
    Py_XDECREF(inside);
    Py_XDECREF(shape);
    return array;
}

PyObject *ext_array(struct ext_state *state, struct cameo_value *value)
{
    const struct ext_numpy *numpy = ext_numpy(state);
    PyObject *array = NULL;

    if (numpy && value && cameo_value_kind(value) == CAMEO_KIND_TENSOR)
        array = plain_array(state, numpy, &value);
    if (numpy && !array && !PyErr_Occurred()) {
        PyObject *inside = ext_from_value(state, value);
        array = inside ? PyObject_CallFunctionObjArgs(numpy->from_value, inside, NULL) : NULL;
        Py_XDECREF(inside);
    }
    ext_value_free(value);
    return array;
}
