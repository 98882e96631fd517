/* Operators written in Python: registries of them, and the way from the library's calls to Python's
 * functions. The library calls on the thread that runs the session or the trainer, without the
 * interpreter lock. */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

#include <stdio.h>
#include <string.h>

/* ---- exceptions on their way through the library ---- */

/* Of the call that this thread is in: raised by a function of the user's, to be raised again when
 * the library returns. reason is how the library's message ends then. */
static _Thread_local struct {
    PyObject *exception;
    char reason[256];
} pending;

/* Takes the exception that is set over, and gives its reason. */
static const char *hold_exception(void)
{
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value && traceback)
        PyException_SetTraceback(value, traceback);
    PyObject *before = pending.exception; /* dropping it may call anything */
    pending.exception = value;
    Py_XDECREF(before);
    PyObject *text = value ? PyObject_Str(value) : NULL, *name = NULL;
    if (type)
        name = PyObject_GetAttrString(type, "__name__");
    PyObject *both = text && name ? PyUnicode_FromFormat("%U: %U", name, text) : NULL;
    PyObject *bytes = both ? PyUnicode_AsEncodedString(both, "utf-8", "replace") : NULL;
    const char *words = bytes ? PyBytes_AsString(bytes) : "an exception was raised";
    size_t size = strlen(words);
    if (size >= sizeof pending.reason)
        for (size = sizeof pending.reason - 1; size && ((unsigned char)words[size] & 0xc0) == 0x80;)
            size--; /* not in the middle of a character */
    memcpy(pending.reason, words, size);
    pending.reason[size] = 0;
    PyErr_Clear(); /* of making a text */
    Py_XDECREF(bytes);
    Py_XDECREF(both);
    Py_XDECREF(text);
    Py_XDECREF(name);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return pending.reason;
}

bool ext_raise_held(const struct cameo_error *err)
{
    PyObject *exception = pending.exception;
    const char *end = exception ? strstr(err->message, pending.reason) : NULL;

    pending.exception = NULL;
    if (!end) {
        Py_XDECREF(exception);
        return false;
    }
    while (end > err->message && (end[-1] == ' ' || end[-1] == ':'))
        end--;
    PyObject *place = PyUnicode_DecodeUTF8(err->message, end - err->message, "replace");
    PyObject *note = place ? PyUnicode_FromFormat("in %U", place) : NULL;
    PyObject *added =
        note && end > err->message ? PyObject_CallMethod(exception, "add_note", "O", note) : NULL;
    Py_XDECREF(added);
    Py_XDECREF(note);
    Py_XDECREF(place);
    PyErr_Clear();
    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_DECREF(exception);
    return true;
}

static _Thread_local bool has_kept;

bool ext_take_kept(void)
{
    const bool kept = has_kept;

    has_kept = false;
    return kept;
}

/* ---- operands of a call ---- */

/* Memory of the library's for as long as the call lasts, as bytes; Python's side knows the type. */
struct ext_operand {
    PyObject_HEAD void *data;
    size_t bytes;
    bool writable, open;
};

static void operand_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    release(object);
    Py_DECREF(type);
}

static int operand_getbuffer(PyObject *object, Py_buffer *view, int flags)
{
    static char nothing;
    struct ext_operand *self = (struct ext_operand *)object;

    if (!self->open) {
        view->obj = NULL;
        PyErr_SetString(PyExc_BufferError, "the call that this memory belongs to is over");
        return -1;
    }
    return PyBuffer_FillInfo(view, object, self->data ? self->data : &nothing,
                             (Py_ssize_t)self->bytes, !self->writable, flags);
}

static PyType_Slot operand_slots[] = {
    {Py_tp_doc, "Memory of a call."},
    {Py_tp_dealloc, operand_dealloc},
    {Py_bf_getbuffer, operand_getbuffer},
    {0, NULL},
};

PyType_Spec ext_operand_spec = {"cameo._cameo.Operand", sizeof(struct ext_operand), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                operand_slots};

static PyObject *shape_of(int rank, const int64_t *dims)
{
    PyObject *shape = PyTuple_New(rank);

    for (int i = 0; shape && i < rank; i++) {
        PyObject *size = PyLong_FromLongLong(dims[i]);
        if (!size)
            Py_CLEAR(shape);
        else
            PyTuple_SetItem(shape, i, size);
    }
    return shape;
}

static PyObject *strings_of(const struct cameo_tensor *tensor)
{
    const struct cameo_text *texts = tensor->data;
    PyObject *list = PyList_New(0);

    for (int64_t i = 0; list && i < cameo_tensor_count(tensor); i++)
        if (!ext_append(list, ext_text(texts[i])))
            Py_CLEAR(list);
    return list;
}

/* (number of the type, shape, memory or list of texts); the memory is noted in operands, too. */
static PyObject *operand_of(struct ext_state *state, const struct cameo_tensor *tensor,
                            bool writable, PyObject *operands)
{
    PyObject *content;

    if (tensor->dtype == CAMEO_STRING)
        content = strings_of(tensor);
    else {
        PyTypeObject *type = (PyTypeObject *)state->operand_type;
        const allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
        struct ext_operand *made = (struct ext_operand *)alloc(type, 0);

        if (made) {
            made->data = tensor->data;
            made->bytes = tensor->bytes;
            made->writable = writable;
            made->open = true;
            if (PyList_Append(operands, (PyObject *)made) < 0)
                Py_CLEAR(made);
        }
        content = (PyObject *)made;
    }
    PyObject *shape = content ? shape_of(tensor->rank, tensor->dims) : NULL;
    if (!shape) {
        Py_XDECREF(content);
        return NULL;
    }
    return Py_BuildValue("(iNN)", (int)tensor->dtype, shape, content);
}

/* ---- the operator ---- */

struct ext_operator {
    struct ext_state *state;
    PyObject *infer, *run, *gradient; /* borrowed from the definition, which the registry keeps */
    PyObject *attributes;             /* list of (name, kind, ..), borrowed as well */
};

/* What attributes are asked of. */
struct asked {
    const struct cameo_infer *in; /* or */
    const struct cameo_call *call;
};

static PyObject *list_of(const struct asked *from, const char *name, int kind)
{
    PyObject *list = PyList_New(0);
    struct cameo_text text;
    size_t count = 0;

    if (kind == CAMEO_ATTRIBUTE_STRINGS) {
        for (size_t i = 0; list && (from->call ? cameo_call_string_at(from->call, name, i, &text)
                                               : cameo_infer_string_at(from->in, name, i, &text));
             i++)
            if (!ext_append(list, ext_text(text)))
                Py_CLEAR(list);
    } else if (kind == CAMEO_ATTRIBUTE_INTS) {
        const int64_t *items = from->call ? cameo_call_ints(from->call, name, &count)
                                          : cameo_infer_ints(from->in, name, &count);
        for (size_t i = 0; list && i < count; i++)
            if (!ext_append(list, PyLong_FromLongLong(items[i])))
                Py_CLEAR(list);
    } else {
        const float *items = from->call ? cameo_call_floats(from->call, name, &count)
                                        : cameo_infer_floats(from->in, name, &count);
        for (size_t i = 0; list && i < count; i++)
            if (!ext_append(list, PyFloat_FromDouble((double)items[i])))
                Py_CLEAR(list);
    }
    return list;
}

static PyObject *attribute_of(const struct asked *from, const char *name, int kind)
{
    switch (kind) {
    case CAMEO_ATTRIBUTE_FLOAT:
        return PyFloat_FromDouble((double)(from->call ? cameo_call_float(from->call, name)
                                                      : cameo_infer_float(from->in, name)));
    case CAMEO_ATTRIBUTE_INT:
        return PyLong_FromLongLong(from->call ? cameo_call_int(from->call, name)
                                              : cameo_infer_int(from->in, name));
    case CAMEO_ATTRIBUTE_STRING:
        return ext_text(from->call ? cameo_call_string(from->call, name)
                                   : cameo_infer_string(from->in, name));
    default:
        return list_of(from, name, kind);
    }
}

/* A dict of those that the node has; the others are for Python's side to fill in. */
static PyObject *attributes_of(const struct ext_operator *op, const struct asked *from)
{
    PyObject *dict = PyDict_New();

    for (Py_ssize_t i = 0; dict && i < PyList_Size(op->attributes); i++) {
        PyObject *row = PyList_GetItem(op->attributes, i);
        const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(row, 0), NULL);
        const int kind = (int)PyLong_AsLong(PyTuple_GetItem(row, 1));

        if (!(from->call ? cameo_call_has(from->call, name) : cameo_infer_has(from->in, name)))
            continue;
        PyObject *value = attribute_of(from, name, kind);
        if (!value || PyDict_SetItemString(dict, name, value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

/* ---- computing ---- */

struct ext_call {
    PyObject_HEAD struct cameo_call *call; /* NULL once it is over */
    PyObject *operands;
};

static void call_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    Py_XDECREF(((struct ext_call *)object)->operands);
    release(object);
    Py_DECREF(type);
}

/* allocate(output, number of the type, shape): as outputs have it, or None when nobody wants it */
static PyObject *call_allocate(PyObject *object, PyObject *args)
{
    struct ext_call *self = (struct ext_call *)object;
    struct cameo_tensor tensor = CAMEO_TENSOR_INIT;
    int64_t dims[64];
    Py_ssize_t output;
    int number;
    PyObject *shape;

    if (!PyArg_ParseTuple(args, "niO!", &output, &number, &PyTuple_Type, &shape))
        return NULL;
    const Py_ssize_t rank = PyTuple_Size(shape);
    if (!self->call || output < 0 || rank > 64) {
        PyErr_SetString(PyExc_ValueError, "the call is over, or the output does not exist");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < rank; i++)
        dims[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    if (PyErr_Occurred())
        return NULL;
    if (cameo_call_allocate(self->call, (size_t)output, (enum cameo_dtype)number, (int)rank,
                            dims) != CAMEO_OK) {
        PyErr_NoMemory();
        return NULL;
    }
    if (!cameo_call_output(self->call, (size_t)output, &tensor))
        Py_RETURN_NONE;
    return operand_of(ext_state_of(Py_TYPE(object)), &tensor, true, self->operands);
}

static PyMethodDef call_methods[] = {
    {"allocate", call_allocate, METH_VARARGS, "allocate(output, number of the type, shape)"},
    {0},
};

static PyType_Slot call_slots[] = {
    {Py_tp_doc, "A node that is being computed."},
    {Py_tp_dealloc, call_dealloc},
    {Py_tp_methods, call_methods},
    {0, NULL},
};

PyType_Spec ext_call_spec = {"cameo._cameo.Call", sizeof(struct ext_call), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, call_slots};

/* All inputs, or all outputs: None where there is none. */
static PyObject *side_of(struct ext_call *self, struct ext_state *state, bool outputs)
{
    PyObject *list = PyList_New(0);
    const size_t count =
        outputs ? cameo_call_output_count(self->call) : cameo_call_input_count(self->call);

    for (size_t i = 0; list && i < count; i++) {
        struct cameo_tensor tensor = CAMEO_TENSOR_INIT;
        const bool there = outputs ? cameo_call_output(self->call, i, &tensor)
                                   : cameo_call_input(self->call, i, &tensor);
        PyObject *item = Py_None;

        if (there)
            item = operand_of(state, &tensor, outputs, self->operands);
        else
            Py_INCREF(item);
        if (!ext_append(list, item))
            Py_CLEAR(list);
    }
    return list;
}

/* Ends the operands of a call. Whether somebody still refers to one. */
static bool close_operands(PyObject *operands)
{
    bool kept = false;

    for (Py_ssize_t i = 0; i < PyList_Size(operands); i++) {
        struct ext_operand *operand = (struct ext_operand *)PyList_GetItem(operands, i);

        operand->open = false;
        kept = kept || Py_REFCNT((PyObject *)operand) > 1;
    }
    return kept;
}

static enum cameo_status compute(struct cameo_call *call, struct ext_operator *op,
                                 struct ext_call *self)
{
    PyObject *inputs = side_of(self, op->state, false), *outputs = side_of(self, op->state, true);
    PyObject *attributes = attributes_of(op, &(struct asked){.call = call});
    PyObject *done = NULL;

    if (inputs && outputs && attributes)
        done = PyObject_CallFunctionObjArgs(op->run, (PyObject *)self, inputs, outputs, attributes,
                                            NULL);
    Py_XDECREF(inputs);
    Py_XDECREF(outputs);
    Py_XDECREF(attributes);
    Py_XDECREF(done);
    return done ? CAMEO_OK : cameo_call_fail(call, CAMEO_BAD_ARGUMENT, hold_exception());
}

static enum cameo_status run_operator(struct cameo_call *call, void *arg)
{
    struct ext_operator *op = arg;
    struct ext_entry entry;

    ext_enter(&entry);
    PyTypeObject *type = (PyTypeObject *)op->state->call_type;
    const allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct ext_call *self = (struct ext_call *)alloc(type, 0);
    enum cameo_status status;

    if (self)
        self->operands = PyList_New(0);
    if (self && self->operands) {
        self->call = call;
        status = compute(call, op, self);
        self->call = NULL;
        if (close_operands(self->operands)) {
            cameo_call_pin(call); /* what is kept must not become other memory */
            has_kept = true;
            PyErr_SetString(PyExc_ValueError,
                            "the kernel keeps an array that it was given, or a view of one; its "
                            "memory is the library's again, so keep a copy");
            status = cameo_call_fail(call, CAMEO_BAD_ARGUMENT, hold_exception());
        }
    } else
        status = cameo_call_fail(call, CAMEO_NO_MEMORY, hold_exception());
    Py_XDECREF((PyObject *)self);
    ext_leave(&entry);
    return status;
}

/* ---- types and shapes ---- */

/* (number, shape with None for what is not known, or None); None for an absent input */
static PyObject *type_of(const struct cameo_infer *in, size_t input)
{
    const int number = (int)cameo_infer_dtype(in, input), rank = cameo_infer_rank(in, input);

    if (number == CAMEO_UNDEFINED)
        Py_RETURN_NONE;
    if (rank < 0)
        return Py_BuildValue("(iO)", number, Py_None);
    PyObject *shape = PyTuple_New(rank);
    for (int i = 0; shape && i < rank; i++) {
        const int64_t size = cameo_infer_dim(in, input, i);
        PyObject *item = size < 0 ? Py_None : PyLong_FromLongLong(size);

        if (!item) {
            Py_CLEAR(shape);
            break;
        }
        if (size < 0)
            Py_INCREF(item);
        PyTuple_SetItem(shape, i, item);
    }
    return shape ? Py_BuildValue("(iN)", number, shape) : NULL;
}

/* Sets the types that Python's side gave: a list of (number, tuple of sizes or -1, or None). */
static bool set_types(struct cameo_infer *in, PyObject *types, enum cameo_status *status)
{
    *status = CAMEO_OK;
    for (Py_ssize_t o = 0; *status == CAMEO_OK && o < PyList_Size(types); o++) {
        int64_t dims[64];
        int number, rank = -1;
        PyObject *shape;

        if (!PyArg_ParseTuple(PyList_GetItem(types, o), "iO", &number, &shape))
            return false;
        if (shape != Py_None) {
            rank = (int)PyTuple_Size(shape);
            for (int i = 0; i < rank && i < 64; i++)
                dims[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
        }
        if (PyErr_Occurred())
            return false;
        *status = cameo_infer_set(in, (size_t)o, (enum cameo_dtype)number, rank, dims);
    }
    return true;
}

static enum cameo_status infer_operator(struct cameo_infer *in, void *arg)
{
    const struct ext_operator *op = arg;
    struct ext_entry entry;

    ext_enter(&entry);
    PyObject *inputs = PyList_New(0), *types = NULL;
    PyObject *attributes = attributes_of(op, &(struct asked){.in = in});
    enum cameo_status status = CAMEO_OK;

    for (size_t i = 0; inputs && i < cameo_infer_input_count(in); i++)
        if (!ext_append(inputs, type_of(in, i)))
            Py_CLEAR(inputs);
    if (inputs && attributes)
        types = PyObject_CallFunctionObjArgs(op->infer, inputs, attributes, NULL);
    if (!types || !PyList_Check(types) || !set_types(in, types, &status))
        status = cameo_infer_fail(in, hold_exception());
    Py_XDECREF(types);
    Py_XDECREF(inputs);
    Py_XDECREF(attributes);
    ext_leave(&entry);
    return status;
}

/* ---- gradients ---- */

/* The text for a use with so many inputs. */
static enum cameo_status make_gradient(struct cameo_use *use, void *arg)
{
    const struct ext_operator *op = arg;
    struct ext_entry entry;

    ext_enter(&entry);
    PyObject *text =
        PyObject_CallFunction(op->gradient, "nn", (Py_ssize_t)cameo_use_input_count(use),
                              (Py_ssize_t)cameo_use_output_count(use));
    const char *words = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    const enum cameo_status status =
        words ? cameo_use_give(use, words)
              : cameo_use_fail(use, CAMEO_BAD_ARGUMENT, hold_exception());

    Py_XDECREF(text);
    ext_leave(&entry);
    return status;
}

/* ---- registries ---- */

struct ext_registry {
    PyObject_HEAD struct cameo_registry *registry;
    PyObject *definitions; /* a tuple: texts and functions */
    PyObject *owner;       /* Python's registry, of which it is one state */
    struct ext_operator *operators;
};

enum { OPERANDS_MAX = 64 };

static PyObject *row_of(PyObject *object)
{
    if (object && PyTuple_Check(object))
        return object;
    PyErr_SetString(PyExc_TypeError, "definitions of operators are tuples");
    return NULL;
}

static bool operands_of(PyObject *list, struct cameo_operand *out, size_t *count)
{
    *count = (size_t)PyList_Size(list);
    if (*count > OPERANDS_MAX) {
        PyErr_SetString(PyExc_ValueError, "an operator written in Python has 64 operands at most");
        return false;
    }
    for (size_t i = 0; i < *count; i++) {
        unsigned long long types;
        int kind;

        out[i] = (struct cameo_operand)CAMEO_OPERAND_INIT;
        PyObject *row = row_of(PyList_GetItem(list, (Py_ssize_t)i));
        if (!row || !PyArg_ParseTuple(row, "sKi", &out[i].name, &types, &kind))
            return false;
        out[i].types = types;
        out[i].kind = (enum cameo_operand_kind)kind;
    }
    return true;
}

/* [(name, kind, is required, default or None)] */
static bool attributes_in(PyObject *list, struct cameo_attribute *out, size_t *count)
{
    *count = (size_t)PyList_Size(list);
    if (*count > OPERANDS_MAX) {
        PyErr_SetString(PyExc_ValueError,
                        "an operator written in Python has 64 attributes at most");
        return false;
    }
    for (size_t i = 0; i < *count; i++) {
        int kind, required;
        PyObject *value;

        out[i] = (struct cameo_attribute)CAMEO_ATTRIBUTE_INIT;
        PyObject *row = row_of(PyList_GetItem(list, (Py_ssize_t)i));
        if (!row || !PyArg_ParseTuple(row, "sipO", &out[i].name, &kind, &required, &value))
            return false;
        out[i].kind = (enum cameo_attribute_kind)kind;
        out[i].required = required;
        out[i].has_default = value != Py_None;
        if (value == Py_None)
            continue;
        if (kind == CAMEO_ATTRIBUTE_FLOAT)
            out[i].f = (float)PyFloat_AsDouble(value);
        else if (kind == CAMEO_ATTRIBUTE_INT)
            out[i].i = PyLong_AsLongLong(value);
        else
            out[i].s = PyUnicode_AsUTF8AndSize(value, NULL);
        if (PyErr_Occurred())
            return false;
    }
    return true;
}

/* (domain, name, version, inputs, outputs, attributes, infer, run, body, text of the gradient,
 * function that makes it, whether sizes depend on values) */
static bool add_operator(struct ext_state *state, struct cameo_registry *registry,
                         PyObject *definition, struct ext_operator *op)
{
    struct cameo_operand inputs[OPERANDS_MAX], outputs[OPERANDS_MAX];
    struct cameo_attribute attributes[OPERANDS_MAX];
    struct cameo_custom_operator custom = CAMEO_CUSTOM_OPERATOR_INIT;
    struct cameo_error err;
    PyObject *in, *out;
    int sizes_at_run;

    if (!row_of(definition) ||
        !PyArg_ParseTuple(definition, "ssiO!O!O!OOzzOp", &custom.domain, &custom.name,
                          &custom.version, &PyList_Type, &in, &PyList_Type, &out, &PyList_Type,
                          &op->attributes, &op->infer, &op->run, &custom.body, &custom.gradient,
                          &op->gradient, &sizes_at_run) ||
        !operands_of(in, inputs, &custom.input_count) ||
        !operands_of(out, outputs, &custom.output_count) ||
        !attributes_in(op->attributes, attributes, &custom.attribute_count))
        return false;
    op->state = state;
    custom.inputs = inputs;
    custom.outputs = outputs;
    custom.attributes = attributes;
    custom.infer = op->infer != Py_None ? infer_operator : NULL;
    custom.run = op->run != Py_None ? run_operator : NULL;
    custom.make_gradient = op->gradient != Py_None ? make_gradient : NULL;
    custom.sizes_at_run = sizes_at_run;
    custom.arg = op;
    if (cameo_registry_add(registry, &custom, &err) == CAMEO_OK)
        return true;
    ext_raise(state, &err);
    return false;
}

static void registry_dealloc(PyObject *object)
{
    struct ext_registry *self = (struct ext_registry *)object;
    PyTypeObject *type = Py_TYPE(object);
    const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(object);
    cameo_registry_free(self->registry);
    PyMem_Free(self->operators);
    Py_XDECREF(self->definitions);
    Py_XDECREF(self->owner);
    release(object);
    Py_DECREF(type);
}

/* Python's registry refers to this one as its newest state. */
static int registry_traverse(PyObject *object, visitproc visit, void *arg)
{
    struct ext_registry *self = (struct ext_registry *)object;

    Py_VISIT((PyObject *)Py_TYPE(object));
    Py_VISIT(self->definitions);
    Py_VISIT(self->owner);
    return 0;
}

/* The functions of the definitions may still be called, by models that know the registry. */
static int registry_clear(PyObject *object)
{
    Py_CLEAR(((struct ext_registry *)object)->owner);
    return 0;
}

static PyObject *registry_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"definitions", "owner", NULL};
    struct ext_state *state = ext_state_of(type);
    struct cameo_error err;
    PyObject *definitions, *owner;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O", names, &PyTuple_Type, &definitions,
                                     &owner))
        return NULL;
    const allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    struct ext_registry *self = (struct ext_registry *)alloc(type, 0);
    if (!self)
        return NULL;
    const Py_ssize_t count = PyTuple_Size(definitions);
    Py_INCREF(definitions);
    Py_INCREF(owner);
    self->definitions = definitions;
    self->owner = owner;
    self->operators = PyMem_Calloc((size_t)count + 1, sizeof *self->operators);
    bool good = self->operators != NULL;
    if (!good)
        PyErr_NoMemory();
    else if (cameo_registry_new(&self->registry, &err) != CAMEO_OK) {
        ext_raise(state, &err);
        good = false;
    }
    for (Py_ssize_t i = 0; good && i < count; i++)
        good = add_operator(state, self->registry, PyTuple_GetItem(definitions, i),
                            &self->operators[i]);
    if (!good)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static PyObject *registry_owner(PyObject *object, void *unused)
{
    PyObject *owner = ((struct ext_registry *)object)->owner;

    (void)unused;
    if (!owner)
        owner = Py_None;
    Py_INCREF(owner);
    return owner;
}

static PyGetSetDef registry_members[] = {
    {"owner", registry_owner, NULL, "Python's registry.", NULL},
    {0},
};

static PyType_Slot registry_slots[] = {
    {Py_tp_doc, "Registry(definitions, owner): operators as the library knows them."},
    {Py_tp_new, registry_new},
    {Py_tp_dealloc, registry_dealloc},
    {Py_tp_traverse, registry_traverse},
    {Py_tp_clear, registry_clear},
    {Py_tp_getset, registry_members},
    {0, NULL},
};

PyType_Spec ext_registry_spec = {"cameo._cameo.Registry", sizeof(struct ext_registry), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, registry_slots};

/* ---- models and their registries ---- */

PyObject *ext_model_known(struct ext_state *state, struct cameo_model *model, PyObject *registry,
                          PyObject *parent)
{
    PyObject *both = PyTuple_Pack(2, registry, parent);

    if (!both) {
        cameo_model_free(model);
        return NULL;
    }
    cameo_model_set_registry(
        model, registry == Py_None ? NULL : ((struct ext_registry *)registry)->registry);
    PyObject *made = ext_model_new(state, model, both);
    Py_DECREF(both);
    return made;
}

/* with_registry(model, Registry or None): the model, which knows these operators. What it was made
 * of and the registry are kept, as its parent. */
static PyObject *with_registry(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    PyObject *object, *registry;

    if (!PyArg_ParseTuple(args, "OO", &object, &registry))
        return NULL;
    struct ext_model *model = ext_model_of(state, object);
    if (!model)
        return NULL;
    if (registry != Py_None &&
        !PyObject_TypeCheck(registry, (PyTypeObject *)state->registry_type)) {
        PyErr_SetString(PyExc_TypeError, "operators come in a Registry");
        return NULL;
    }
    struct cameo_model *copy = ext_model_edit(state, model);
    return copy ? ext_model_known(state, copy, registry, object) : NULL;
}

PyObject *ext_registry_in(struct ext_state *state, PyObject *model)
{
    while (model && PyObject_TypeCheck(model, (PyTypeObject *)state->model_type))
        model = ((struct ext_model *)model)->parent;
    return model && PyTuple_Check(model) ? PyTuple_GetItem(model, 0) : Py_None;
}

/* registry_of(model): the Registry that it knows, or None */
static PyObject *registry_of(PyObject *module, PyObject *object)
{
    struct ext_state *state = ext_state(module);

    if (!ext_model_of(state, object))
        return NULL;
    PyObject *registry = ext_registry_in(state, object);
    Py_INCREF(registry);
    return registry;
}

PyMethodDef ext_operator_functions[] = {
    {"with_registry", with_registry, METH_VARARGS,
     "with_registry(model, Registry or None): a Model"},
    {"registry_of", registry_of, METH_O, "registry_of(model): a Registry, or None"},
    {0},
};
