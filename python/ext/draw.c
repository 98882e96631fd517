/* Pictures of models and curves, as `cameo graph` and `cameo plot` draw them. */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

#include <stdlib.h>

/* draw(model, folds): (SVG, number of boxes) */
static PyObject *draw(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    struct cameo_drawing_options options = CAMEO_DRAWING_OPTIONS_INIT;
    struct cameo_drawing_report report = CAMEO_DRAWING_REPORT_INIT;
    struct ext_pieces pieces = {0};
    struct ext_names names;
    struct cameo_error err;
    enum cameo_status status;
    PyObject *object, *list, *out = NULL;

    if (!PyArg_ParseTuple(args, "OO", &object, &list) || !ext_names(list, &names))
        return NULL;
    options.folds = names.items;
    options.fold_count = names.count;
    struct ext_model *self = ext_model_of(state, object);
    struct cameo_model *copy = self ? ext_model_edit(state, self) : NULL;
    if (copy) {
        PyObject *used = ext_model_use(self);
        Py_BEGIN_ALLOW_THREADS;
        cameo_model_infer(copy, NULL, NULL, NULL); /* where it fails, there are fewer shapes */
        status = cameo_model_draw(copy, &options, ext_take_piece, &pieces, &report, &err);
        Py_END_ALLOW_THREADS;
        cameo_model_free(copy);
        ext_model_leave(used);
        out = status == CAMEO_OK
                  ? Py_BuildValue("(Nn)", ext_text((struct cameo_text){pieces.bytes, pieces.size}),
                                  (Py_ssize_t)report.boxes)
                  : ext_raise(state, &err);
        free(pieces.bytes);
    }
    ext_names_end(&names);
    return out;
}

/* Adds (name, steps, values), sequences of numbers. False after an exception. */
static bool add_curve(const struct ext_state *state, struct cameo_curves *curves, PyObject *row)
{
    PyObject *steps, *values;
    const char *name;
    struct cameo_error err;

    if (!PyTuple_Check(row)) {
        PyErr_SetString(PyExc_TypeError, "expected a list of tuples (name, steps, values)");
        return false;
    }
    if (!PyArg_ParseTuple(row, "sOO", &name, &steps, &values))
        return false;
    const Py_ssize_t count = PySequence_Size(values);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *x = PySequence_GetItem(steps, i), *y = PySequence_GetItem(values, i);
        const double step = x ? PyFloat_AsDouble(x) : 0;
        const double value = y && !PyErr_Occurred() ? PyFloat_AsDouble(y) : 0;

        Py_XDECREF(x);
        Py_XDECREF(y);
        if (PyErr_Occurred())
            return false;
        if (cameo_curves_add(curves, name, step, value, &err) != CAMEO_OK) {
            ext_raise(state, &err);
            return false;
        }
    }
    return count >= 0;
}

/* draw_curves([(name, steps, values)], what is counted): SVG, all curves, without smoothing */
static PyObject *draw_curves(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    struct cameo_curves_options options = CAMEO_CURVES_OPTIONS_INIT;
    struct ext_pieces pieces = {0};
    struct cameo_curves *curves;
    struct cameo_error err;
    PyObject *list, *out = NULL;

    if (!PyArg_ParseTuple(args, "Os", &list, &options.steps))
        return NULL;
    if (cameo_curves_new(&curves, &err) != CAMEO_OK)
        return ext_raise(state, &err);
    options.only = "*";
    options.window = -1;
    bool fine = true;
    const Py_ssize_t count = PySequence_Size(list);
    for (Py_ssize_t i = 0; i < count && fine; i++) {
        PyObject *row = PySequence_GetItem(list, i);
        fine = row && add_curve(state, curves, row);
        Py_XDECREF(row);
    }
    if (fine && count >= 0)
        out = cameo_curves_draw(curves, &options, ext_take_piece, &pieces, &err) == CAMEO_OK
                  ? ext_text((struct cameo_text){pieces.bytes, pieces.size})
                  : ext_raise(state, &err);
    free(pieces.bytes);
    cameo_curves_free(curves);
    return out;
}

PyMethodDef ext_draw_functions[] = {
    {"draw", draw, METH_VARARGS, "draw(model, folds): (SVG, number of boxes)"},
    {"draw_curves", draw_curves, METH_VARARGS,
     "draw_curves([(name, steps, values)], what steps are): SVG"},
    {0},
};
