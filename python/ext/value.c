/* Values: memory of the library for Python, and Python's for the library, without copies where both
 * agree on a layout. */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

#include "cameo_dlpack.h"

#include <string.h>

/* ---- types of elements ---- */

/* As the buffer protocol spells them; what it has no word for is seen as unsigned numbers of the
 * same width, or as bytes. */
static const struct element {
    enum cameo_dtype dtype;
    const char *format;
    int width; /* bytes; 0: several to a byte */
} elements[] = {
    {CAMEO_FLOAT, "f", 4},          {CAMEO_DOUBLE, "d", 8},         {CAMEO_FLOAT16, "e", 2},
    {CAMEO_BOOL, "?", 1},           {CAMEO_UINT8, "B", 1},          {CAMEO_INT8, "b", 1},
    {CAMEO_UINT16, "H", 2},         {CAMEO_INT16, "h", 2},          {CAMEO_UINT32, "I", 4},
    {CAMEO_INT32, "i", 4},          {CAMEO_UINT64, "Q", 8},         {CAMEO_INT64, "q", 8},
    {CAMEO_COMPLEX64, "Zf", 8},     {CAMEO_COMPLEX128, "Zd", 16},   {CAMEO_BFLOAT16, "H", 2},
    {CAMEO_FLOAT8E4M3FN, "B", 1},   {CAMEO_FLOAT8E4M3FNUZ, "B", 1}, {CAMEO_FLOAT8E5M2, "B", 1},
    {CAMEO_FLOAT8E5M2FNUZ, "B", 1}, {CAMEO_FLOAT8E8M0, "B", 1},
};

static const struct element *element_of(enum cameo_dtype dtype)
{
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        if (elements[i].dtype == dtype)
            return &elements[i];
    return NULL;
}

enum cameo_dtype ext_dtype_of(const char *format, Py_ssize_t width)
{
    if (!format)
        return width == 1 ? CAMEO_UINT8 : CAMEO_UNDEFINED;
    if (*format == '<' || *format == '=' || *format == '@' || *format == '|')
        format++;
    if (strcmp(format, "l") == 0 || strcmp(format, "n") == 0)
        format = width == 8 ? "q" : "i";
    if (strcmp(format, "L") == 0 || strcmp(format, "N") == 0)
        format = width == 8 ? "Q" : "I";
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        if (strcmp(elements[i].format, format) == 0 && elements[i].width == width)
            return elements[i].dtype;
    return CAMEO_UNDEFINED;
}

enum cameo_dtype ext_dtype_as(enum cameo_dtype dtype)
{
    const struct element *element = element_of(dtype);
    return element ? ext_dtype_of(element->format, element->width) : CAMEO_UNDEFINED;
}

/* ---- the type ---- */

/* How the memory looks through the buffer protocol; elements of less than a byte are bytes there.
 */
static bool fill_shape(struct ext_value *self)
{
    const struct element *element = element_of(cameo_value_dtype(self->value));
    const int rank = element ? cameo_value_rank(self->value) : 1;
    const int64_t *dims = cameo_value_dims(self->value);
    Py_ssize_t step = element ? element->width : 1;

    self->shape = self->room;
    if ((size_t)rank > sizeof self->room / sizeof *self->room / 2)
        self->shape = PyMem_Calloc((size_t)(2 * rank), sizeof *self->shape);
    if (!self->shape)
        return false;
    for (int i = rank - 1; i >= 0; i--) {
        self->shape[i] = element ? (Py_ssize_t)dims[i] : (Py_ssize_t)cameo_value_bytes(self->value);
        self->shape[rank + i] = step;
        step *= self->shape[i];
    }
    return true;
}

PyObject *ext_value_new(struct ext_state *state, struct cameo_value *value, PyObject *owner)
{
    struct ext_value *self = NULL;
    PyTypeObject *type = (PyTypeObject *)state->value_type;
    const allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);

    self = (struct ext_value *)alloc(type, 0);
    if (!self) {
        ext_value_free(value);
        ext_model_leave(owner);
        return NULL;
    }
    self->value = value;
    self->owner = owner;
    if (!fill_shape(self)) {
        Py_DECREF((PyObject *)self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void value_dealloc(PyObject *object)
{
    struct ext_value *self = (struct ext_value *)object;
    PyTypeObject *type = Py_TYPE(object);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    ext_value_free(self->value);
    ext_model_leave(self->owner);
    if (self->shape != self->room)
        PyMem_Free(self->shape);
    release(object);
    Py_DECREF(type);
}

static int value_getbuffer(PyObject *object, Py_buffer *view, int flags)
{
    struct ext_value *self = (struct ext_value *)object;
    const enum cameo_dtype dtype = cameo_value_dtype(self->value);
    const struct element *element = element_of(dtype);
    const int rank = element ? cameo_value_rank(self->value) : 1;
    void *data = cameo_value_mutable_data(self->value);
    const bool read_only = !data;

    view->obj = NULL;
    if (cameo_value_kind(self->value) != CAMEO_KIND_TENSOR || dtype == CAMEO_STRING) {
        PyErr_SetString(PyExc_BufferError, "only tensors of numbers are memory");
        return -1;
    }
    if (read_only && (flags & PyBUF_WRITABLE)) {
        PyErr_SetString(PyExc_BufferError, "this tensor is to be read only");
        return -1;
    }
    static char nothing;
    view->buf = data ? data : (void *)(uintptr_t)cameo_value_data(self->value);
    if (!view->buf)
        view->buf = &nothing;
    view->obj = object;
    Py_INCREF(object);
    view->len = (Py_ssize_t)cameo_value_bytes(self->value);
    view->readonly = read_only;
    view->itemsize = element ? element->width : 1;
    view->format =
        (flags & PyBUF_FORMAT) ? (char *)(uintptr_t)(element ? element->format : "B") : NULL;
    view->ndim = rank;
    view->shape = (flags & PyBUF_ND) == PyBUF_ND ? self->shape : NULL;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? self->shape + rank : NULL;
    view->suboffsets = NULL;
    view->internal = NULL;
    return 0;
}

static PyObject *value_dtype(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(
        cameo_dtype_name(cameo_value_dtype(((struct ext_value *)self)->value)));
}

static PyObject *value_number(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong((long)cameo_value_dtype(((struct ext_value *)self)->value));
}

static PyObject *value_shape(PyObject *object, void *unused)
{
    const struct cameo_value *value = ((struct ext_value *)object)->value;
    const int rank = cameo_value_rank(value);
    PyObject *shape = PyTuple_New(rank);

    (void)unused;
    for (int i = 0; shape && i < rank; i++) {
        PyObject *size = PyLong_FromLongLong(cameo_value_dims(value)[i]);
        if (!size || PyTuple_SetItem(shape, i, size) < 0) {
            Py_DECREF(shape);
            return NULL;
        }
    }
    return shape;
}

/* ---- code of others that runs while an exception is on its way ---- */

struct ext_pending ext_pending_take(void)
{
    struct ext_pending pending;

    PyErr_Fetch(&pending.type, &pending.value, &pending.traceback);
    return pending;
}

void ext_pending_give(struct ext_pending pending)
{
    PyErr_Restore(pending.type, pending.value, pending.traceback);
}

void ext_value_free(struct cameo_value *value)
{
    const struct ext_pending pending = ext_pending_take();

    cameo_value_free(value);
    ext_pending_give(pending);
}

/* ---- DLPack ---- */

static void drop_capsule(PyObject *capsule)
{
    const struct ext_pending pending = ext_pending_take();

    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        struct DLManagedTensorVersioned *tensor =
            PyCapsule_GetPointer(capsule, "dltensor_versioned");
        tensor->deleter(tensor);
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        struct DLManagedTensor *tensor = PyCapsule_GetPointer(capsule, "dltensor");
        tensor->deleter(tensor);
    }
    ext_pending_give(pending);
}

static PyObject *value_dlpack(PyObject *object, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    struct ext_value *self = (struct ext_value *)object;
    PyObject *stream = NULL, *version = NULL, *device = NULL, *copy = NULL;
    struct cameo_error err;
    long major = 0;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO", names, &stream, &version, &device,
                                     &copy))
        return NULL;
    if (version && version != Py_None) {
        PyObject *first = PySequence_GetItem(version, 0);
        major = first ? PyLong_AsLong(first) : -1;
        Py_XDECREF(first);
        if (PyErr_Occurred())
            return NULL;
    }
    if (self->owner) { /* whoever takes the memory would not keep the model */
        PyErr_SetString(PyExc_BufferError,
                        "memory of a model is not given away: take numpy.asarray of it");
        return NULL;
    }
    struct ext_state *state = ext_state_of(Py_TYPE(object));
    PyObject *capsule;
    if (major >= 1) {
        struct DLManagedTensorVersioned *tensor;
        if (cameo_value_to_dlpack(self->value, &tensor, &err) != CAMEO_OK)
            return ext_raise(state, &err);
        capsule = PyCapsule_New(tensor, "dltensor_versioned", drop_capsule);
        if (!capsule)
            tensor->deleter(tensor);
        return capsule;
    }
    struct DLManagedTensor *tensor;
    if (cameo_value_to_dlpack_unversioned(self->value, &tensor, &err) != CAMEO_OK)
        return ext_raise(state, &err);
    capsule = PyCapsule_New(tensor, "dltensor", drop_capsule);
    if (!capsule)
        tensor->deleter(tensor);
    return capsule;
}

static PyObject *value_dlpack_device(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    return Py_BuildValue("(ii)", 1, 0);
}

/* ---- values made by hand: what buffers cannot say ---- */

/* A list of str or bytes; lone surrogates that stand for bytes become them again. */
static struct cameo_value *strings_from(struct ext_state *state, int rank, const int64_t *dims,
                                        PyObject *data)
{
    PyObject *list = PySequence_List(data); /* a copy: its items become bytes */
    const Py_ssize_t count = list ? PyList_Size(list) : 0;
    struct cameo_text *texts = PyMem_Calloc((size_t)count + 1, sizeof *texts);
    struct cameo_value *value = NULL;
    struct cameo_error err;
    bool good = list && texts;

    for (Py_ssize_t i = 0; good && i < count; i++) {
        PyObject *item = PyList_GetItem(list, i);
        PyObject *bytes = PyBytes_Check(item)
                              ? Py_NewRef(item)
                              : PyUnicode_AsEncodedString(item, "utf-8", "surrogateescape");

        good = bytes && PyList_SetItem(list, i, bytes) == 0;
        if (good)
            texts[i] = (struct cameo_text){PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes)};
    }
    if (good) {
        const struct cameo_tensor tensor =
            cameo_tensor_of(CAMEO_STRING, rank, dims, texts, (size_t)count * sizeof *texts);
        if (cameo_value_from_tensor(&tensor, &value, &err) != CAMEO_OK)
            ext_raise(state, &err);
    } else if (!PyErr_Occurred())
        PyErr_NoMemory();
    Py_XDECREF(list);
    PyMem_Free(texts);
    return value;
}

/* value(dtype, shape, data): data is a buffer of bytes as ONNX has them, or a list of texts. */
static PyObject *make_value(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    int dtype;
    PyObject *shape, *data;
    int64_t dims[64];
    struct cameo_value *value = NULL;
    struct cameo_error err;

    if (!PyArg_ParseTuple(args, "iO!O", &dtype, &PyTuple_Type, &shape, &data))
        return NULL;
    const Py_ssize_t rank = PyTuple_Size(shape);
    if (rank > 64) {
        PyErr_SetString(PyExc_ValueError, "tensors have 64 axes at most");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < rank; i++)
        dims[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    if (PyErr_Occurred())
        return NULL;
    if (dtype == CAMEO_STRING) {
        value = strings_from(state, (int)rank, dims, data);
    } else {
        Py_buffer view;
        if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0)
            return NULL;
        if (cameo_value_new((enum cameo_dtype)dtype, (int)rank, dims, &value, &err) != CAMEO_OK)
            ext_raise(state, &err);
        else if ((size_t)view.len != cameo_value_bytes(value)) {
            PyErr_Format(PyExc_ValueError, "there are %zd bytes, type and shape need %zu", view.len,
                         cameo_value_bytes(value));
            ext_value_free(value);
            value = NULL;
        } else if (view.len)
            memcpy(cameo_value_mutable_data(value), view.buf, (size_t)view.len);
        PyBuffer_Release(&view);
    }
    return value ? ext_value_new(state, value, NULL) : NULL;
}

/* sequence(list of Values); map(keys, list of Values) */
static bool values_of(struct ext_state *state, PyObject *list, const struct cameo_value ***out)
{
    const Py_ssize_t count = PyList_Size(list);

    *out = PyMem_Calloc((size_t)(count > 0 ? count : 1), sizeof **out);
    for (Py_ssize_t i = 0; *out && i < count; i++) {
        PyObject *item = PyList_GetItem(list, i);
        if (!PyObject_TypeCheck(item, (PyTypeObject *)state->value_type)) {
            PyErr_SetString(PyExc_TypeError, "a list of Values is wanted");
            PyMem_Free(*out);
            *out = NULL;
            return false;
        }
        (*out)[i] = ((struct ext_value *)item)->value;
    }
    return *out != NULL;
}

static PyObject *make_sequence(PyObject *module, PyObject *list)
{
    struct ext_state *state = ext_state(module);
    const struct cameo_value **items;
    struct cameo_value *value;
    struct cameo_error err;

    if (!PyList_Check(list)) {
        PyErr_SetString(PyExc_TypeError, "a list is wanted");
        return NULL;
    }
    if (!values_of(state, list, &items))
        return NULL;
    const enum cameo_status status =
        cameo_value_new_sequence(items, (size_t)PyList_Size(list), &value, &err);
    PyMem_Free(items);
    return status == CAMEO_OK ? ext_value_new(state, value, NULL) : ext_raise(state, &err);
}

static PyObject *make_map(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    PyObject *keys, *list;
    const struct cameo_value **items;
    struct cameo_value *value;
    struct cameo_error err;

    if (!PyArg_ParseTuple(args, "O!O!", state->value_type, &keys, &PyList_Type, &list) ||
        !values_of(state, list, &items))
        return NULL;
    const enum cameo_status status =
        cameo_value_new_map(((struct ext_value *)keys)->value, items, &value, &err);
    PyMem_Free(items);
    return status == CAMEO_OK ? ext_value_new(state, value, NULL) : ext_raise(state, &err);
}

static PyObject *make_optional(PyObject *module, PyObject *content)
{
    struct ext_state *state = ext_state(module);
    const struct cameo_value *inside = NULL;
    struct cameo_value *value;
    struct cameo_error err;

    if (PyObject_TypeCheck(content, (PyTypeObject *)state->value_type))
        inside = ((struct ext_value *)content)->value;
    if (cameo_value_new_optional(inside, &value, &err) != CAMEO_OK)
        return ext_raise(state, &err);
    return ext_value_new(state, value, NULL);
}

static PyMethodDef value_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))value_dlpack, METH_VARARGS | METH_KEYWORDS,
     "The memory for another library, without a copy."},
    {"__dlpack_device__", value_dlpack_device, METH_NOARGS,
     "Where the memory is: (1, 0), the CPU."},
    {0},
};

static PyGetSetDef value_members[] = {
    {"dtype", value_dtype, NULL, "ONNX's name of the element type.", NULL},
    {"number", value_number, NULL, "ONNX's number of the element type.", NULL},
    {"shape", value_shape, NULL, "A tuple of sizes.", NULL},
    {0},
};

static PyType_Slot value_slots[] = {
    {Py_tp_doc, "A tensor of the library's; numpy.asarray sees its memory."},
    {Py_tp_dealloc, value_dealloc},
    {Py_tp_methods, value_methods},
    {Py_tp_getset, value_members},
    {Py_bf_getbuffer, value_getbuffer},
    {0, NULL},
};

PyType_Spec ext_value_spec = {"cameo._cameo.Value", sizeof(struct ext_value), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, value_slots};

PyMethodDef ext_value_functions[] = {
    {"value", make_value, METH_VARARGS, "value(dtype, shape, data): a Value"},
    {"sequence", make_sequence, METH_O, "sequence(list of Values): a Value"},
    {"map", make_map, METH_VARARGS, "map(keys, list of Values): a Value"},
    {"optional", make_optional, METH_O, "optional(Value or None): a Value"},
    {0},
};
