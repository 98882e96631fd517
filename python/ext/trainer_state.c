/* What a trainer holds: its inputs, variables and parameters, and files of them. */
// SPDX-License-Identifier: Apache-2.0
#include "training.h"

#include <stdio.h>
#include <string.h>

/* memory(feeds, of which only types and shapes count): a dict of bytes */
PyObject *ext_trainer_memory(PyObject *object, PyObject *inputs)
{
    struct ext_trainer *self = (struct ext_trainer *)object;
    struct cameo_memory m = CAMEO_MEMORY_INIT;
    struct ext_feeds feeds;
    struct ext_use use;
    struct cameo_error err;
    enum cameo_status status;

    if (!ext_trainer_feed(self, inputs, false, &feeds, &use))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_trainer_memory(self->trainer, feeds.feeds, (size_t)feeds.count, &m, &err);
    Py_END_ALLOW_THREADS;
    ext_feeds_end(&feeds);
    if (!ext_trainer_leave(self, &use, status, &err))
        return NULL;
    const struct {
        const char *name;
        uint64_t bytes;
    } rows[] = {
        {"weights", m.weights},         {"state", m.state},         {"updates", m.updates},
        {"constants", m.constants},     {"batch", m.batch},         {"work", m.work},
        {"activations", m.activations}, {"gradients", m.gradients}, {"arithmetic", m.arithmetic},
        {"scratch", m.scratch},         {"limited", m.limited},     {"late_nodes", m.late},
    };
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < sizeof rows / sizeof *rows; i++)
        if (!ext_put_whole(dict, rows[i].name, rows[i].bytes))
            Py_CLEAR(dict);
    return dict;
}

PyObject *ext_trainer_inputs(PyObject *object, PyObject *unused)
{
    const struct cameo_trainer *trainer = ((struct ext_trainer *)object)->trainer;
    const struct cameo_value_info *info;
    PyObject *list = PyList_New(0);

    (void)unused;
    for (size_t i = 0; list && (info = cameo_trainer_input(trainer, i)); i++)
        if (!ext_append(list, ext_value_info(info)))
            Py_CLEAR(list);
    return list;
}

/* variables(): [(name, dtype, shape, bytes)] */
PyObject *ext_trainer_variables(PyObject *object, PyObject *unused)
{
    const struct cameo_trainer *trainer = ((struct ext_trainer *)object)->trainer;
    const struct cameo_initializer *row;
    PyObject *list = PyList_New(0);

    (void)unused;
    for (size_t i = 0; list && (row = cameo_trainer_variable(trainer, i)); i++) {
        PyObject *shape = PyTuple_New((Py_ssize_t)row->rank);
        for (size_t axis = 0; shape && axis < row->rank; axis++) {
            PyObject *size = PyLong_FromLongLong(row->dims[axis]);
            if (!size || PyTuple_SetItem(shape, (Py_ssize_t)axis, size) < 0)
                Py_CLEAR(shape);
        }
        if (!shape ||
            !ext_append(list, Py_BuildValue("(NiNK)", ext_text(row->name), (int)row->dtype, shape,
                                            (unsigned long long)row->bytes)))
            Py_CLEAR(list);
    }
    return list;
}

/* parameters(): [(name, number of the variable, dtype, elements, offset, bytes)] */
PyObject *ext_trainer_parameters(PyObject *object, PyObject *unused)
{
    const struct cameo_trainer *trainer = ((struct ext_trainer *)object)->trainer;
    const struct cameo_parameter *row;
    PyObject *list = PyList_New(0);

    (void)unused;
    for (size_t i = 0; list && (row = cameo_trainer_parameter(trainer, i)); i++)
        if (!ext_append(list,
                        Py_BuildValue("(NniLnn)", ext_text(row->name), (Py_ssize_t)row->variable,
                                      (int)row->dtype, (long long)row->elements,
                                      (Py_ssize_t)row->offset, (Py_ssize_t)row->bytes)))
            Py_CLEAR(list);
    return list;
}

PyObject *ext_trainer_facts(PyObject *object, PyObject *unused)
{
    const struct cameo_trainer *trainer = ((struct ext_trainer *)object)->trainer;
    const size_t count = cameo_trainer_scalar_count(trainer), loss = cameo_trainer_loss(trainer);
    PyObject *names = PyList_New(0);

    (void)unused;
    for (size_t i = 0; names && i < count; i++)
        if (!ext_append(names, PyUnicode_FromString(cameo_trainer_scalar_name(trainer, i))))
            Py_CLEAR(names);
    if (!names)
        return NULL;
    return Py_BuildValue("{s:N,s:z,s:n}", "scalars", names, "loss",
                         loss < count ? cameo_trainer_scalar_name(trainer, loss) : NULL, "entries",
                         (Py_ssize_t)cameo_trainer_entry_count(trainer));
}

PyObject *ext_trainer_steps(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLongLong(
        cameo_trainer_steps(((struct ext_trainer *)object)->trainer));
}

PyObject *ext_trainer_add_validation(PyObject *object, PyObject *number)
{
    struct ext_trainer *self = (struct ext_trainer *)object;
    const double loss = PyFloat_AsDouble(number);
    struct ext_use use;
    struct cameo_error err;

    if ((loss == -1 && PyErr_Occurred()) || !ext_trainer_enter(self, false, &use))
        return NULL;
    const enum cameo_status status = cameo_trainer_add_validation(self->trainer, loss, &err);
    if (!ext_trainer_leave(self, &use, status, &err))
        return NULL;
    Py_RETURN_NONE;
}

/* ---- values ---- */

enum values_of { OF_VARIABLE, OF_PARAMETERS, OF_GRADIENTS };

static enum cameo_status move_values(struct cameo_trainer *t, enum values_of what, size_t index,
                                     bool set, void *values, size_t size, struct cameo_error *err)
{
    switch (what) {
    case OF_VARIABLE:
        return set ? cameo_trainer_set_variable(t, index, values, size, err)
                   : cameo_trainer_read_variable(t, index, values, size, err);
    case OF_PARAMETERS:
        return set ? cameo_trainer_set_parameters(t, values, size, err)
                   : cameo_trainer_read_parameters(t, values, size, err);
    default:
        return set ? cameo_trainer_set_gradients(t, values, size, err)
                   : cameo_trainer_read_gradients(t, values, size, err);
    }
}

static PyObject *move(PyObject *object, PyObject *args, bool set)
{
    struct ext_trainer *self = (struct ext_trainer *)object;
    struct ext_use use;
    struct cameo_error err;
    PyObject *memory;
    Py_buffer view;
    Py_ssize_t index;
    int what;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "inO", &what, &index, &memory) ||
        PyObject_GetBuffer(memory, &view, set ? PyBUF_SIMPLE : PyBUF_WRITABLE) < 0)
        return NULL;
    const bool entered = ext_trainer_enter(self, false, &use);
    if (entered) {
        Py_BEGIN_ALLOW_THREADS;
        status = move_values(self->trainer, (enum values_of)what, (size_t)index, set, view.buf,
                             (size_t)view.len, &err);
        Py_END_ALLOW_THREADS;
    }
    PyBuffer_Release(&view);
    if (!entered || !ext_trainer_leave(self, &use, status, &err))
        return NULL;
    Py_RETURN_NONE;
}

PyObject *ext_trainer_read(PyObject *self, PyObject *args)
{
    return move(self, args, false);
}

PyObject *ext_trainer_set(PyObject *self, PyObject *args)
{
    return move(self, args, true);
}

/* ---- saving ---- */

PyObject *ext_trainer_save(PyObject *object, PyObject *args)
{
    struct ext_trainer *self = (struct ext_trainer *)object;
    struct cameo_save_options options = CAMEO_SAVE_OPTIONS_INIT;
    struct ext_use use;
    struct cameo_error err;
    PyObject *path = NULL;
    int placement = CAMEO_PLACE_AUTO;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "O&|iz", PyUnicode_FSConverter, &path, &placement,
                          &options.external_name))
        return NULL;
    if (!ext_trainer_enter(self, false, &use)) {
        Py_DECREF(path);
        return NULL;
    }
    options.placement = (enum cameo_placement)placement;
    options.cancel = use.watch.cancel;
    const char *text = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_trainer_save(self->trainer, text, &options, NULL, &err);
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    if (!ext_trainer_leave(self, &use, status, &err))
        return NULL;
    Py_RETURN_NONE;
}

PyObject *ext_trainer_to_model(PyObject *object, PyObject *unused)
{
    struct ext_trainer *self = (struct ext_trainer *)object;
    struct cameo_model *made = NULL;
    struct ext_use use;
    struct cameo_error err;
    enum cameo_status status;

    (void)unused;
    if (!ext_trainer_enter(self, false, &use))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_trainer_copy_model(self->trainer, &made, &err);
    Py_END_ALLOW_THREADS;
    if (!ext_trainer_leave(self, &use, status, &err))
        return NULL;
    return ext_model_new(ext_state_of(Py_TYPE(object)), made, self->model);
}

/* ---- checkpoints ---- */

/* checkpoint_save(path, keys, values) */
PyObject *ext_trainer_checkpoint_save(PyObject *object, PyObject *args)
{
    struct ext_trainer *self = (struct ext_trainer *)object;
    struct ext_names keys = {0}, values = {0};
    struct cameo_note *notes = NULL;
    struct ext_use use;
    struct cameo_error err;
    PyObject *path = NULL, *key_list, *value_list;
    enum cameo_status status;
    bool done = false;

    if (!PyArg_ParseTuple(args, "O&OO", PyUnicode_FSConverter, &path, &key_list, &value_list))
        return NULL;
    if (ext_names(key_list, &keys) && ext_names(value_list, &values) &&
        !(notes = PyMem_Calloc(keys.count + 1, sizeof *notes)))
        PyErr_NoMemory();
    if (notes && keys.count != values.count)
        PyErr_SetString(PyExc_ValueError, "there are not as many values as keys");
    if (notes && keys.count == values.count && ext_trainer_enter(self, false, &use)) {
        const char *text = PyBytes_AsString(path);

        for (size_t i = 0; i < keys.count; i++) {
            notes[i] = (struct cameo_note)CAMEO_NOTE_INIT;
            notes[i].key = (struct cameo_text){keys.items[i], strlen(keys.items[i])};
            notes[i].value = (struct cameo_text){values.items[i], strlen(values.items[i])};
        }
        Py_BEGIN_ALLOW_THREADS;
        status = cameo_checkpoint_save(self->trainer, text, notes, keys.count, &err);
        Py_END_ALLOW_THREADS;
        done = ext_trainer_leave(self, &use, status, &err);
    }
    PyMem_Free(notes);
    ext_names_end(&keys);
    ext_names_end(&values);
    Py_DECREF(path);
    if (!done)
        return NULL;
    Py_RETURN_NONE;
}

/* Conditions that differ, noted without the interpreter lock. */
struct differences {
    char text[4096];
    size_t used;
};

static void note_difference(void *arg, const char *condition, const char *was, const char *now)
{
    struct differences *d = arg;

    if (d->used < sizeof d->text)
        d->used += (size_t)snprintf(d->text + d->used, sizeof d->text - d->used, "%s%s: %s, now %s",
                                    d->used ? "\n" : "", condition, was, now);
}

/* checkpoint_resume(path, anyway): what differs, in lines */
PyObject *ext_trainer_checkpoint_resume(PyObject *object, PyObject *args)
{
    struct ext_trainer *self = (struct ext_trainer *)object;
    struct cameo_resume_options options = CAMEO_RESUME_OPTIONS_INIT;
    struct differences differences = {{0}, 0};
    struct ext_use use;
    struct cameo_error err;
    PyObject *path = NULL;
    int anyway = 0;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "O&|p", PyUnicode_FSConverter, &path, &anyway))
        return NULL;
    if (!ext_trainer_enter(self, true, &use)) {
        Py_DECREF(path);
        return NULL;
    }
    options.anyway = anyway;
    options.difference = note_difference;
    options.difference_arg = &differences;
    const char *text = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_checkpoint_resume(self->trainer, text, &options, &err);
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    if (!ext_trainer_leave(self, &use, status, &err))
        return NULL;
    return PyUnicode_DecodeUTF8(differences.text, (Py_ssize_t)strlen(differences.text), "replace");
}
