/* What the library has to say, for Python's logger "cameo". */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

#include <string.h>

/* The lowest level that is wanted, of cameo.h. The interpreter lock is only asked for then: a
 * session of many nodes has much to tell that nobody may want to hear. */
static atomic_int wanted = CAMEO_LOG_WARNING;

/* logging.getLogger("cameo").log(level, "%s", message) */
static void tell(void *arg, enum cameo_log_level level, const char *message)
{
    static const int levels[] = {10, 20, 30}; /* of logging, by level of the library */

    (void)arg;
    if ((int)level < atomic_load(&wanted) || (unsigned)level > CAMEO_LOG_WARNING)
        return;
    struct ext_entry entry;
    ext_enter(&entry);
    PyObject *logging = PyImport_ImportModule("logging");
    PyObject *logger = logging ? PyObject_CallMethod(logging, "getLogger", "s", "cameo") : NULL;
    PyObject *text = logger ? ext_text((struct cameo_text){message, strlen(message)}) : NULL;
    PyObject *done =
        text ? PyObject_CallMethod(logger, "log", "isO", levels[level], "%s", text) : NULL;

    if (!done)
        PyErr_WriteUnraisable(logger); /* a handler's mistake does not stop the library */
    Py_XDECREF(done);
    Py_XDECREF(text);
    Py_XDECREF(logger);
    Py_XDECREF(logging);
    ext_leave(&entry);
}

void ext_log_to_python(struct cameo_model *model)
{
    if (model)
        cameo_model_set_log(model, tell, NULL);
}

/* log_level(level of logging): less is not told */
static PyObject *log_level(PyObject *module, PyObject *level)
{
    const long number = PyLong_AsLong(level);

    (void)module;
    if (number == -1 && PyErr_Occurred())
        return NULL;
    atomic_store(&wanted, number <= 10   ? CAMEO_LOG_DEBUG
                          : number <= 20 ? CAMEO_LOG_INFO
                          : number <= 30 ? CAMEO_LOG_WARNING
                                         : CAMEO_LOG_WARNING + 1);
    Py_RETURN_NONE;
}

PyMethodDef ext_log_functions[] = {
    {"log_level", log_level, METH_O, "log_level(level): what is less is not logged"},
    {0},
};
