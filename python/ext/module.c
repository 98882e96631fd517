/* The module: its types, its exceptions, functions that belong to no model. */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

#include <stdio.h>
#include <string.h>

struct ext_state *ext_state(PyObject *module)
{
    return PyModule_GetState(module);
}

struct ext_state *ext_state_of(PyTypeObject *type)
{
    return PyType_GetModuleState(type);
}

void ext_enter(struct ext_entry *entry)
{
    entry->lock = PyGILState_Ensure();
    PyErr_Fetch(&entry->type, &entry->value, &entry->traceback);
}

void ext_leave(struct ext_entry *entry)
{
    if (!PyErr_Occurred())
        PyErr_Restore(entry->type, entry->value, entry->traceback);
    else {
        Py_XDECREF(entry->type);
        Py_XDECREF(entry->value);
        Py_XDECREF(entry->traceback);
    }
    PyGILState_Release(entry->lock);
}

PyObject *ext_text(struct cameo_text text)
{
    return PyUnicode_DecodeUTF8(text.data ? text.data : "", (Py_ssize_t)text.size, "replace");
}

PyObject *ext_error_type(const struct ext_state *state, const struct cameo_error *err)
{
    const int status = (int)err->status;

    return state->errors[status > 0 && status < EXT_STATUS_COUNT ? status : 0];
}

/* Messages have names from files, which may be any bytes. */
PyObject *ext_raise(const struct ext_state *state, const struct cameo_error *err)
{
    if (ext_raise_held(err))
        return NULL;
    PyObject *text = ext_text((struct cameo_text){err->message, strlen(err->message)});

    if (text)
        PyErr_SetObject(ext_error_type(state, err), text);
    Py_XDECREF(text);
    return NULL;
}

static PyObject *version(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyUnicode_FromString(cameo_version_string());
}

static PyObject *libraries(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    struct cameo_library row = CAMEO_LIBRARY_INIT;

    (void)module;
    (void)unused;
    for (size_t i = 0; list && cameo_library(i, &row); i++) {
        PyObject *item = Py_BuildValue("{s:s,s:s,s:s,s:s}", "name", row.name, "version",
                                       row.version, "path", row.path, "why", row.reason);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

/* free_memory(): bytes for a memory limit */
static PyObject *free_memory(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromSize_t(cameo_free_memory(false));
}

static PyMethodDef functions[] = {
    {"free_memory", free_memory, METH_NOARGS, "Bytes for a memory limit; 0: nobody knows."},
    {"version", version, METH_NOARGS, "The library's version."},
    {"libraries", libraries, METH_NOARGS,
     "Libraries of others that are used where they are found."},
    {0},
};

static PyMethodDef *const tables[] = {
    functions,
    ext_value_functions,
    ext_model_functions,
    ext_describe_functions,
    ext_edit_functions,
    ext_graph_functions,
    ext_derive_functions,
    ext_checkpoint_functions,
    ext_log_functions,
    ext_draw_functions,
    ext_files_functions,
    ext_sizes_functions,
    ext_vjp_functions,
    ext_data_functions,
    ext_evaluate_functions,
    ext_fit_functions,
    ext_operator_functions,
};

/* The exceptions by status, and which of Python's own each also is. */
static bool add_errors(PyObject *module, struct ext_state *state)
{
    const struct {
        const char *name;
        PyObject *also;
        const char *doc;
    } rows[EXT_STATUS_COUNT] = {
        {"Error", PyExc_Exception, "Everything that Cameo refuses, with its sentence."},
        {"ModelError", PyExc_ValueError, "The file, or data in it, breaks a rule."},
        {"ArgumentError", PyExc_ValueError, "An argument is not one the call takes."},
        {"NotFoundError", PyExc_LookupError, "A file or a name that is not there."},
        {"UnsupportedError", PyExc_NotImplementedError, "Legal, but not something Cameo can do."},
        {"LimitError", PyExc_RuntimeError, "A limit was passed."},
        {"OutOfMemoryError", PyExc_MemoryError, "There is not enough memory."},
        {"FileError", PyExc_OSError, "The operating system refused a read or a write."},
        {"CancelledError", PyExc_RuntimeError, "It was stopped."},
        {"DivergedError", PyExc_ArithmeticError, "Training left the finite numbers."},
    };

    for (int i = 0; i < EXT_STATUS_COUNT; i++) {
        char name[64];
        PyObject *bases =
            i ? PyTuple_Pack(2, state->errors[0], rows[i].also) : PyTuple_Pack(1, rows[i].also);

        snprintf(name, sizeof name, "cameo.%s", rows[i].name);
        PyObject *members = Py_BuildValue("{s:()}", "_rows"); /* ext_raise_with has them */
        state->errors[i] =
            bases ? PyErr_NewExceptionWithDoc(name, rows[i].doc, bases, i ? NULL : members) : NULL;
        Py_XDECREF(members);
        Py_XDECREF(bases);
        if (!state->errors[i] || PyModule_AddObjectRef(module, rows[i].name, state->errors[i]) < 0)
            return false;
    }
    return true;
}

static int fill(PyObject *module)
{
    struct ext_state *state = ext_state(module);
    const struct {
        PyType_Spec *spec;
        PyObject **type;
        const char *name;
    } rows[] = {
        {&ext_value_spec, &state->value_type, "Value"},
        {&ext_model_spec, &state->model_type, "Model"},
        {&ext_session_spec, &state->session_type, "Session"},
        {&ext_trainer_spec, &state->trainer_type, "Trainer"},
        {&ext_cancel_spec, &state->cancel_type, "Cancel"},
        {&ext_data_spec, &state->data_type, "Data"},
        {&ext_events_spec, &state->events_type, "Events"},
        {&ext_registry_spec, &state->registry_type, "Registry"},
        {&ext_call_spec, &state->call_type, "Call"},
        {&ext_operand_spec, &state->operand_type, "Operand"},
    };

    if (!add_errors(module, state))
        return -1;
    state->dlpack_name = PyUnicode_InternFromString("__dlpack__");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        *rows[i].type = PyType_FromModuleAndSpec(module, rows[i].spec, NULL);
        if (!*rows[i].type || PyModule_AddObjectRef(module, rows[i].name, *rows[i].type) < 0)
            return -1;
    }
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (PyModule_AddFunctions(module, tables[i]) < 0)
            return -1;
    return state->dlpack_name ? 0 : -1;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    struct ext_state *state = ext_state(module);

    for (int i = 0; i < EXT_STATUS_COUNT; i++)
        Py_VISIT(state->errors[i]);
    Py_VISIT(state->value_type);
    Py_VISIT(state->model_type);
    Py_VISIT(state->session_type);
    Py_VISIT(state->trainer_type);
    Py_VISIT(state->cancel_type);
    Py_VISIT(state->data_type);
    Py_VISIT(state->events_type);
    Py_VISIT(state->registry_type);
    Py_VISIT(state->call_type);
    Py_VISIT(state->operand_type);
    return 0;
}

static int clear(PyObject *module)
{
    struct ext_state *state = ext_state(module);

    for (int i = 0; i < EXT_STATUS_COUNT; i++)
        Py_CLEAR(state->errors[i]);
    Py_CLEAR(state->value_type);
    Py_CLEAR(state->model_type);
    Py_CLEAR(state->session_type);
    Py_CLEAR(state->trainer_type);
    Py_CLEAR(state->cancel_type);
    ext_numpy_end(state);
    Py_CLEAR(state->data_type);
    Py_CLEAR(state->events_type);
    Py_CLEAR(state->registry_type);
    Py_CLEAR(state->call_type);
    Py_CLEAR(state->operand_type);
    Py_CLEAR(state->dlpack_name);
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, fill},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "cameo._cameo",
    .m_doc = "Cameo's library as Python sees it; use the package cameo.",
    .m_size = sizeof(struct ext_state),
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
};

PyMODINIT_FUNC PyInit__cameo(void); /* by its name alone */

PyMODINIT_FUNC PyInit__cameo(void)
{
    return PyModuleDef_Init(&definition);
}
