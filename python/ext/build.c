/* What results are built from, and lists of names. */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

#include <string.h>

bool ext_append(PyObject *list, PyObject *item)
{
    const bool done = item && PyList_Append(list, item) == 0;

    Py_XDECREF(item);
    return done;
}

PyObject *ext_texts(const struct cameo_text *texts, size_t count)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < count; i++)
        if (!ext_append(list, ext_text(texts[i])))
            Py_CLEAR(list);
    return list;
}

PyObject *ext_findings(const struct cameo_findings *findings)
{
    PyObject *list = PyList_New(0);
    const struct cameo_finding *found;

    for (size_t i = 0; list && findings && (found = cameo_findings_at(findings, i)); i++) {
        PyObject *item =
            Py_BuildValue("(NiNNNNNN)", ext_text(found->rule), (int)found->severity,
                          ext_text(found->place), ext_text(found->reason), ext_text(found->help),
                          ext_text(found->node), ext_text(found->op_type), ext_text(found->value));

        if (!ext_append(list, item))
            Py_CLEAR(list);
    }
    return list;
}

PyObject *ext_raise_with(const struct ext_state *state, const struct cameo_error *err,
                         const struct cameo_findings *findings)
{
    if (ext_raise_held(err))
        return NULL;
    PyObject *type = ext_error_type(state, err);
    PyObject *text = ext_text((struct cameo_text){err->message, strlen(err->message)});
    PyObject *raised = text ? PyObject_CallFunctionObjArgs(type, text, NULL) : NULL;
    PyObject *list = raised ? ext_findings(findings) : NULL;

    if (list && PyObject_SetAttrString(raised, "_rows", list) == 0)
        PyErr_SetObject(type, raised);
    Py_XDECREF(list);
    Py_XDECREF(raised);
    Py_XDECREF(text);
    return NULL;
}

PyObject *ext_raise_listed(const struct ext_state *state, const struct cameo_error *err,
                           struct cameo_findings *findings)
{
    ext_raise_with(state, err, findings);
    cameo_findings_free(findings);
    return NULL;
}

long long ext_whole(PyObject *number)
{
    if (PyLong_Check(number)) /* of others, an __index__ could change what is being read */
        return PyLong_AsLongLong(number);
    PyErr_Format(PyExc_TypeError, "an int is wanted, not %R", (PyObject *)Py_TYPE(number));
    return 0;
}

bool ext_names(PyObject *list, struct ext_names *out)
{
    *out = (struct ext_names){0};
    if (list == Py_None)
        return true;
    out->kept = PySequence_List(list);
    if (!out->kept)
        return false;
    const size_t count = (size_t)PyList_Size(out->kept);
    out->items = PyMem_Calloc(count + 1, sizeof *out->items);
    if (!out->items)
        PyErr_NoMemory();
    for (size_t i = 0; out->items && !PyErr_Occurred() && i < count; i++) {
        PyObject *item = PyList_GetItem(out->kept, (Py_ssize_t)i);
        if (PyUnicode_Check(item))
            out->items[out->count++] = PyUnicode_AsUTF8AndSize(item, NULL);
        else
            PyErr_Format(PyExc_TypeError, "names are texts, not %R", (PyObject *)Py_TYPE(item));
    }
    if (!PyErr_Occurred())
        return true;
    ext_names_end(out);
    return false;
}

void ext_names_end(struct ext_names *names)
{
    PyMem_Free(names->items);
    Py_XDECREF(names->kept);
    *names = (struct ext_names){0};
}
