/* Pictures of models, as `cameo graph` draws them. */
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

PyMethodDef ext_draw_functions[] = {
    {"draw", draw, METH_VARARGS, "draw(model, folds): (SVG, number of boxes)"},
    {0},
};
