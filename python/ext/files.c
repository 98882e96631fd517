/* Files that the package's Python writes: whole or not at all, as all that the library writes. */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

static enum cameo_status write_whole(const char *path, const void *bytes, size_t size,
                                     struct cameo_error *err)
{
    struct cameo_file *file = NULL;
    enum cameo_status status = cameo_file_new(path, NULL, &file, err);

    if (status == CAMEO_OK)
        status = cameo_file_write(file, bytes, size, err);
    if (status == CAMEO_OK)
        status = cameo_file_commit(file, err);
    cameo_file_free(file);
    return status;
}

/* write_file(path, bytes) */
static PyObject *write_file(PyObject *module, PyObject *args)
{
    struct cameo_error err;
    enum cameo_status status;
    PyObject *path = NULL;
    Py_buffer bytes;

    if (!PyArg_ParseTuple(args, "O&y*", PyUnicode_FSConverter, &path, &bytes))
        return NULL;
    const char *name = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS;
    status = write_whole(name, bytes.buf, (size_t)bytes.len, &err);
    Py_END_ALLOW_THREADS;
    PyBuffer_Release(&bytes);
    Py_DECREF(path);
    if (status != CAMEO_OK)
        return ext_raise(ext_state(module), &err);
    Py_RETURN_NONE;
}

PyMethodDef ext_files_functions[] = {
    {"write_file", write_file, METH_VARARGS, "write_file(path, bytes): whole or not at all"},
    {0},
};
