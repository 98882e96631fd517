/* Models: loaded, described, checked, saved. */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

#include <stdlib.h>
#include <string.h>

PyObject *ext_model_use(struct ext_model *model)
{
    atomic_fetch_add(&model->users, 1);
    Py_INCREF((PyObject *)model);
    return (PyObject *)model;
}

void ext_model_leave(PyObject *model)
{
    if (model)
        atomic_fetch_sub(&((struct ext_model *)model)->users, 1);
    Py_XDECREF(model);
}

/* The model that another was made of, which its parent is or, beside a registry, contains. */
static struct ext_model *model_in(PyTypeObject *type, PyObject *parent)
{
    if (parent && PyTuple_Check(parent))
        parent = PyTuple_GetItem(parent, 1);
    return parent && PyObject_TypeCheck(parent, type) ? (struct ext_model *)parent : NULL;
}

PyObject *ext_model_new(struct ext_state *state, struct cameo_model *model, PyObject *parent)
{
    PyTypeObject *type = (PyTypeObject *)state->model_type;
    const allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct ext_model *self = (struct ext_model *)alloc(type, 0);

    if (!self) {
        cameo_model_free(model);
        return NULL;
    }
    self->model = model;
    struct ext_model *from = model_in(type, parent);
    if (from) {
        atomic_fetch_add(&from->users, 1);
        self->depth = from->depth + 1;
    }
    Py_XINCREF(parent);
    self->parent = parent;
    return (PyObject *)self;
}

static void model_dealloc(PyObject *object)
{
    struct ext_model *self = (struct ext_model *)object;
    PyTypeObject *type = Py_TYPE(object);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    cameo_model_free(self->model);
    struct ext_model *from = model_in(type, self->parent);
    if (from)
        atomic_fetch_sub(&from->users, 1);
    Py_XDECREF(self->parent);
    Py_XDECREF(self->merged);
    release(object);
    Py_DECREF(type);
}

struct ext_model *ext_model_of(struct ext_state *state, PyObject *object)
{
    if (PyObject_TypeCheck(object, (PyTypeObject *)state->model_type))
        return (struct ext_model *)object;
    PyErr_Format(PyExc_TypeError, "%R is not a model", (PyObject *)Py_TYPE(object));
    return NULL;
}

struct cameo_model *ext_model_edit(struct ext_state *state, struct ext_model *model)
{
    struct cameo_model *copy = NULL;
    struct cameo_error err;
    enum cameo_status status;

    PyObject *used = ext_model_use(model);
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_model_copy(model->model, &copy, &err);
    Py_END_ALLOW_THREADS;
    ext_model_leave(used);
    if (status != CAMEO_OK)
        ext_raise(state, &err);
    return copy;
}

/* The bytes of a model whose values are all inside; NULL, without an exception, where that is not
 * to be had. */
static PyObject *whole(const struct cameo_model *model)
{
    struct ext_pieces pieces = {0};
    enum cameo_status status = CAMEO_UNSUPPORTED;

    Py_BEGIN_ALLOW_THREADS;
    if (cameo_model_summary(model)->external_file_count == 0)
        status = cameo_model_write(model, NULL, ext_take_piece, &pieces, NULL);
    Py_END_ALLOW_THREADS;
    PyObject *bytes = status == CAMEO_OK
                          ? PyBytes_FromStringAndSize(pieces.bytes, (Py_ssize_t)pieces.size)
                          : NULL;
    free(pieces.bytes);
    PyErr_Clear();
    return bytes;
}

static enum cameo_status load_bytes(PyObject *bytes, enum cameo_format format,
                                    struct cameo_model **out, struct cameo_error *err)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    const char *data = PyBytes_AsString(bytes);
    const size_t size = (size_t)PyBytes_Size(bytes);
    enum cameo_status status;

    options.format = format;
    options.borrow_bytes = true; /* bytes do not change, and are kept */
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_model_load_memory(data, size, &options, out, err);
    Py_END_ALLOW_THREADS;
    ext_log_to_python(*out);
    return status;
}

/* Each edit keeps what it was made of. A model that is changed again and again, with sessions in
 * between, would keep them all: now and then it is written and read again, and stands alone. */
PyObject *ext_model_alone(struct ext_state *state, PyObject *made)
{
    enum { GENERATIONS = 8 };
    struct cameo_model *model = NULL;
    struct ext_model *self = (struct ext_model *)made;
    PyObject *bytes = made && self->depth >= GENERATIONS ? whole(self->model) : NULL;

    if (bytes && load_bytes(bytes, CAMEO_FORMAT_BINARY, &model, NULL) == CAMEO_OK) {
        PyObject *alone = ext_model_known(state, model, ext_registry_in(state, made), bytes);
        if (alone) {
            Py_DECREF(made);
            made = alone;
        }
        PyErr_Clear();
    }
    Py_XDECREF(bytes);
    return made;
}

PyObject *ext_model_edited(struct ext_state *state, struct ext_model *from,
                           struct cameo_model *edited, enum cameo_status status,
                           const struct cameo_error *err)
{
    if (status == CAMEO_OK)
        return ext_model_alone(state, ext_model_new(state, edited, (PyObject *)from));
    cameo_model_free(edited);
    return ext_raise(state, err);
}

static PyObject *load(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"source", "format", "copy", "links", NULL};
    struct ext_state *state = ext_state(module);
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model = NULL;
    struct cameo_error err;
    PyObject *source;
    int format = 0, copy = 0, links = 0;
    enum cameo_status status;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|ipp", names, &source, &format, &copy,
                                     &links))
        return NULL;
    options.format = (enum cameo_format)format;
    options.copy_files = copy;
    options.allow_links = links;
    if (PyUnicode_Check(source)) {
        PyObject *path = NULL;
        if (!PyUnicode_FSConverter(source, &path))
            return NULL;
        const char *text = PyBytes_AsString(path);
        Py_BEGIN_ALLOW_THREADS;
        status = cameo_model_load(text, &options, &model, &err);
        Py_END_ALLOW_THREADS;
        Py_DECREF(path);
        ext_log_to_python(model);
        return status == CAMEO_OK ? ext_model_new(state, model, NULL) : ext_raise(state, &err);
    }
    if (!PyBytes_Check(source)) {
        PyErr_SetString(PyExc_TypeError, "a model is loaded from a path or from bytes");
        return NULL;
    }
    status = load_bytes(source, options.format, &model, &err);
    return status == CAMEO_OK ? ext_model_new(state, model, source) : ext_raise(state, &err);
}

/* ---- describing ---- */

PyObject *ext_value_info(const struct cameo_value_info *info)
{
    PyObject *shape;

    if (info->rank < 0) {
        shape = Py_None;
        Py_INCREF(shape);
    } else {
        shape = PyTuple_New(info->rank);
        for (int i = 0; shape && i < info->rank; i++) {
            const struct cameo_dim *dim = &info->dims[i];
            PyObject *size;
            if (dim->size >= 0)
                size = PyLong_FromLongLong(dim->size);
            else if (dim->symbol.size)
                size = ext_text(dim->symbol);
            else {
                size = Py_None;
                Py_INCREF(size);
            }
            PyTuple_SetItem(shape, i, size);
        }
    }
    return Py_BuildValue("(NNiNiO)", ext_text(info->name), ext_text(info->type), (int)info->dtype,
                         shape, (int)info->kind, info->has_default ? Py_True : Py_False);
}

typedef const struct cameo_value_info *info_fn(const struct cameo_model *, size_t);

static PyObject *infos(const struct cameo_model *model, info_fn *get)
{
    PyObject *list = PyList_New(0);
    const struct cameo_value_info *info;

    for (size_t i = 0; list && (info = get(model, i)); i++) {
        PyObject *item = ext_value_info(info);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *model_inputs(PyObject *self, PyObject *unused)
{
    (void)unused;
    return infos(((struct ext_model *)self)->model, cameo_model_input);
}

static PyObject *model_outputs(PyObject *self, PyObject *unused)
{
    (void)unused;
    return infos(((struct ext_model *)self)->model, cameo_model_output);
}

static PyObject *model_check(PyObject *object, PyObject *args)
{
    struct ext_state *state = ext_state_of(Py_TYPE(object));
    struct cameo_check_options options = CAMEO_CHECK_OPTIONS_INIT;
    struct cameo_findings *findings = NULL;
    struct cameo_error err;
    int strict = 0;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "|pz", &strict, &options.tool))
        return NULL;
    options.strict = strict;
    PyObject *used = ext_model_use((struct ext_model *)object);
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_model_check(((struct ext_model *)object)->model, &options, &findings, &err);
    Py_END_ALLOW_THREADS;
    ext_model_leave(used);
    if (status != CAMEO_OK)
        return ext_raise(state, &err);
    const bool cut = cameo_findings_cut(findings);
    PyObject *list = ext_findings(findings);
    cameo_findings_free(findings);
    return list ? Py_BuildValue("(NO)", list, cut ? Py_True : Py_False) : NULL;
}

/* ---- writing ---- */

int ext_take_piece(void *to, const void *bytes, size_t size)
{
    struct ext_pieces *p = to;

    if (p->room - p->size < size) {
        const size_t room = 2 * p->room > p->size + size ? 2 * p->room : p->size + size;
        char *grown = realloc(p->bytes, room);
        if (!grown)
            return 1;
        p->bytes = grown;
        p->room = room;
    }
    memcpy(p->bytes + p->size, bytes, size);
    p->size += size;
    return 0;
}

static PyObject *model_write(PyObject *object, PyObject *args)
{
    struct ext_state *state = ext_state_of(Py_TYPE(object));
    struct cameo_write_options options = CAMEO_WRITE_OPTIONS_INIT;
    struct ext_pieces pieces = {0};
    struct cameo_error err;
    int as_text = 0;
    Py_ssize_t elide = 0;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "|pn", &as_text, &elide))
        return NULL;
    options.format = as_text ? CAMEO_FORMAT_TEXT : CAMEO_FORMAT_BINARY;
    options.elide = (size_t)elide;
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_model_write(((struct ext_model *)object)->model, &options, ext_take_piece,
                               &pieces, &err);
    Py_END_ALLOW_THREADS;
    PyObject *out = NULL;
    if (status != CAMEO_OK)
        ext_raise(state, &err);
    else
        out = as_text ? PyUnicode_DecodeUTF8(pieces.bytes, (Py_ssize_t)pieces.size, "replace")
                      : PyBytes_FromStringAndSize(pieces.bytes, (Py_ssize_t)pieces.size);
    free(pieces.bytes);
    return out;
}

static PyObject *model_save(PyObject *object, PyObject *args)
{
    struct ext_state *state = ext_state_of(Py_TYPE(object));
    struct cameo_save_options options = CAMEO_SAVE_OPTIONS_INIT;
    struct cameo_error err;
    PyObject *path = NULL;
    const char *external = NULL;
    int placement = CAMEO_PLACE_AUTO;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "O&|iz", PyUnicode_FSConverter, &path, &placement, &external))
        return NULL;
    options.placement = (enum cameo_placement)placement;
    options.external_name = external;
    const char *text = PyBytes_AsString(path);
    struct ext_watch watch;
    ext_watch_begin(&watch);
    options.cancel = watch.cancel;
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_model_save(((struct ext_model *)object)->model, text, &options, NULL, &err);
    Py_END_ALLOW_THREADS;
    Py_DECREF(path);
    if (ext_watch_end(&watch, status))
        return NULL;
    if (status != CAMEO_OK)
        return ext_raise(state, &err);
    Py_RETURN_NONE;
}

static PyMethodDef model_methods[] = {
    {"inputs", model_inputs, METH_NOARGS, "[(name, type, dtype, shape, kind, has default)]"},
    {"outputs", model_outputs, METH_NOARGS, "The same of outputs."},
    {"check", model_check, METH_VARARGS,
     "check(strict): [(rule, is violation, place, reason, help)]"},
    {"write", model_write, METH_VARARGS, "write(as text, elide): bytes, or text"},
    {"save", model_save, METH_VARARGS, "save(path, placement, external name)"},
    {0},
};

static PyType_Slot model_slots[] = {
    {Py_tp_doc, "A model as the library holds it."},
    {Py_tp_dealloc, model_dealloc},
    {Py_tp_methods, model_methods},
    {0, NULL},
};

PyType_Spec ext_model_spec = {"cameo._cameo.Model", sizeof(struct ext_model), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, model_slots};

PyMethodDef ext_model_functions[] = {
    {"load", (PyCFunction)(void (*)(void))load, METH_VARARGS | METH_KEYWORDS,
     "load(path or bytes, format, copy, links): a Model"},
    {0},
};
