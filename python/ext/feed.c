/* Feeding: arrays of Python's as the library reads them, in place wherever it can. */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

#include "cameo_dlpack.h"

/* ---- NumPy, when it is first needed ---- */

static void drop_numpy(struct ext_numpy *numpy)
{
    if (!numpy)
        return;
    Py_XDECREF(numpy->ndarray);
    Py_XDECREF(numpy->to_feed);
    Py_XDECREF(numpy->from_value);
    Py_XDECREF(numpy->dtypes);
    PyMem_Free(numpy);
}

static struct ext_numpy *find_numpy(void)
{
    PyObject *module = PyImport_ImportModule("cameo._arrays");
    struct ext_numpy *numpy = module ? PyMem_Calloc(1, sizeof *numpy) : NULL;

    if (numpy) {
        numpy->ndarray = PyObject_GetAttrString(module, "ndarray");
        numpy->to_feed = PyObject_GetAttrString(module, "to_feed");
        numpy->from_value = PyObject_GetAttrString(module, "from_value");
        numpy->dtypes = PyObject_GetAttrString(module, "DTYPES");
        if (!numpy->ndarray || !numpy->to_feed || !numpy->from_value || !numpy->dtypes) {
            drop_numpy(numpy);
            numpy = NULL;
        }
    } else if (module)
        PyErr_NoMemory();
    Py_XDECREF(module);
    return numpy;
}

const struct ext_numpy *ext_numpy(struct ext_state *state)
{
    struct ext_numpy *known = atomic_load(&state->numpy);

    if (known)
        return known;
    struct ext_numpy *numpy = find_numpy();
    if (numpy && !atomic_compare_exchange_strong(&state->numpy, &known, numpy)) {
        drop_numpy(numpy); /* another thread was faster */
        return known;
    }
    return numpy;
}

void ext_numpy_end(struct ext_state *state)
{
    drop_numpy(atomic_exchange(&state->numpy, NULL));
}

/* ---- what a model declares ---- */

bool ext_slots(const void *holder, ext_info_fn *info, size_t count, struct ext_slots *out)
{
    *out = (struct ext_slots){PyMem_Calloc(count + 1, sizeof *out->items), count};
    if (!out->items) {
        PyErr_NoMemory();
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const struct cameo_value_info *declared = info(holder, i);
        struct ext_slot *slot = &out->items[i];

        slot->dtype = declared->dtype;
        slot->kind = declared->kind;
        slot->row = ext_value_info(declared);
        slot->name = slot->row ? PyTuple_GetItem(slot->row, 0) : NULL;
        if (!slot->name)
            return false;
        Py_INCREF(slot->name);
        PyUnicode_InternInPlace(&slot->name); /* names in programs are: most compare by address */
    }
    return true;
}

void ext_slots_end(struct ext_slots *slots)
{
    for (size_t i = 0; slots->items && i < slots->count; i++) {
        Py_XDECREF(slots->items[i].row);
        Py_XDECREF(slots->items[i].name);
    }
    PyMem_Free(slots->items);
    *slots = (struct ext_slots){0};
}

size_t ext_slot_find(const struct ext_slots *slots, PyObject *name)
{
    for (size_t i = 0; i < slots->count; i++)
        if (slots->items[i].name == name)
            return i;
    for (size_t i = 0; i < slots->count; i++)
        if (PyUnicode_Compare(slots->items[i].name, name) == 0)
            return i;
    return slots->count;
}

/* ---- memory of others ---- */

/* A tensor of another library, taken over. */
static struct cameo_value *take_dlpack(struct ext_state *state, PyObject *object)
{
    struct cameo_value *value = NULL;
    struct cameo_error err;
    PyObject *arguments = PyTuple_New(0);
    PyObject *keywords = Py_BuildValue("{s:(ii)}", "max_version", 1, 1);
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    PyObject *capsule = NULL;

    if (arguments && keywords && method) {
        capsule = PyObject_Call(method, arguments, keywords);
        if (!capsule &&
            PyErr_ExceptionMatches(PyExc_TypeError)) { /* it knows the older form only */
            PyErr_Clear();
            capsule = PyObject_CallNoArgs(method);
        }
    }
    enum cameo_status status = CAMEO_OK;
    bool is_tensor = true;
    if (capsule && PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        status = cameo_value_from_dlpack(PyCapsule_GetPointer(capsule, "dltensor_versioned"),
                                         &value, &err);
        if (status == CAMEO_OK)
            PyCapsule_SetName(capsule, "used_dltensor_versioned");
    } else if (capsule && PyCapsule_IsValid(capsule, "dltensor")) {
        status = cameo_value_from_dlpack_unversioned(PyCapsule_GetPointer(capsule, "dltensor"),
                                                     &value, &err);
        if (status == CAMEO_OK)
            PyCapsule_SetName(capsule, "used_dltensor");
    } else
        is_tensor = false;
    const bool wrong = capsule && !is_tensor;
    Py_XDECREF(capsule); /* before an exception is set: it may run code of its maker */
    if (wrong)
        PyErr_SetString(PyExc_TypeError, "__dlpack__ gave no capsule");
    if (status != CAMEO_OK)
        ext_raise(state, &err);
    Py_XDECREF(method);
    Py_XDECREF(keywords);
    Py_XDECREF(arguments);
    return value;
}

/* Memory with any strides but such as go backwards: those are for whoever has a copy made. */
static bool lease_buffer(PyObject *object, int flags, struct ext_lease *out)
{
    Py_buffer *view = &out->buffer;

    if (PyObject_GetBuffer(object, view, PyBUF_STRIDES | PyBUF_FORMAT | flags) < 0)
        return false;
    out->has_buffer = true;
    const enum cameo_dtype dtype = ext_dtype_of(view->format, view->itemsize);
    /* Some exporters leave out what they were asked for, as NumPy does of a single date. */
    const bool told = view->ndim == 0 || (view->shape && view->strides);
    if (dtype == CAMEO_UNDEFINED || view->ndim > 64 || !told) {
        PyErr_Format(PyExc_TypeError, "cannot feed a buffer of '%s' with %d axes",
                     view->format ? view->format : "B", view->ndim);
        return false;
    }
    bool dense = true;
    Py_ssize_t step = view->itemsize;
    for (int i = view->ndim - 1; i >= 0; i--) {
        const bool moves = view->shape[i] > 1; /* else nobody follows the stride */

        out->dims[i] = view->shape[i];
        if (moves && view->strides[i] != step)
            dense = false;
        if (moves && (view->strides[i] < 0 || view->strides[i] % view->itemsize)) {
            PyErr_SetString(PyExc_ValueError,
                            "an array whose axes go backwards, or not by whole elements, must be "
                            "copied first (numpy.ascontiguousarray)");
            return false;
        }
        out->strides[i] = moves ? view->strides[i] / view->itemsize : 0;
        if (__builtin_mul_overflow(step, view->shape[i], &step))
            dense = false; /* of an array without elements */
    }
    out->tensor = cameo_tensor_of(dtype, view->ndim, out->dims, view->buf, (size_t)view->len);
    if (!dense && view->len) {
        int64_t reach = 1, far;
        bool fits = true;
        for (int i = 0; i < view->ndim; i++)
            fits = fits && !__builtin_mul_overflow(out->dims[i] - 1, out->strides[i], &far) &&
                   !__builtin_add_overflow(reach, far, &reach);
        if (!fits || __builtin_mul_overflow(reach, (int64_t)view->itemsize, &reach)) {
            PyErr_SetString(PyExc_ValueError, "the strides of a buffer lead out of all memory");
            return false;
        }
        out->tensor.strides = out->strides;
        out->tensor.bytes = (size_t)reach;
    }
    return true;
}

static void lease_init(struct ext_lease *out)
{
    out->made = NULL;
    out->value = NULL;
    out->kept = out->name = NULL;
    out->has_buffer = false;
}

bool ext_lease(struct ext_state *state, PyObject *object, struct ext_lease *out)
{
    lease_init(out);
    if (PyObject_TypeCheck(object, (PyTypeObject *)state->value_type)) {
        out->value = ((struct ext_value *)object)->value;
        out->kept = object;
        Py_INCREF(object);
        return true;
    }
    if (PyObject_CheckBuffer(object)) {
        if (lease_buffer(object, 0, out))
            return true;
        ext_lease_end(out);
        return false;
    }
    if (!PyObject_HasAttr(object, state->dlpack_name)) {
        PyErr_Format(PyExc_TypeError, "%R is not an array: it has neither a buffer nor __dlpack__",
                     (PyObject *)Py_TYPE(object));
        return false;
    }
    /* Lent as plain memory: what a value owns, results may share, and others may write to this. */
    out->made = take_dlpack(state, object);
    if (!out->made)
        return false;
    out->tensor = cameo_tensor_of(cameo_value_dtype(out->made), cameo_value_rank(out->made),
                                  cameo_value_dims(out->made), cameo_value_data(out->made),
                                  cameo_value_bytes(out->made));
    return true;
}

void ext_lease_end(struct ext_lease *lease)
{
    ext_value_free(lease->made);
    lease->made = NULL;
    if (lease->has_buffer)
        PyBuffer_Release(&lease->buffer);
    lease->has_buffer = false;
    Py_CLEAR(lease->kept);
    Py_CLEAR(lease->name);
}

/* Memory is of the declared type, or becomes it, where the buffer protocol has no word for it. */
static bool is_declared(const struct ext_slot *slot, struct ext_lease *lease)
{
    if (slot->kind != CAMEO_KIND_TENSOR || lease->value)
        return false;
    if (lease->tensor.dtype == slot->dtype)
        return true;
    if (!lease->has_buffer || ext_dtype_as(slot->dtype) != lease->tensor.dtype)
        return false;
    lease->tensor.dtype = slot->dtype;
    return true;
}

/* What another library says of its array, as an error of ours that names the input. */
static void name_input(const struct ext_state *state, const struct ext_slot *slot)
{
    PyObject *type, *value, *trace;

    if (PyErr_ExceptionMatches(state->errors[0]) ||
        !(PyErr_ExceptionMatches(PyExc_BufferError) || PyErr_ExceptionMatches(PyExc_TypeError) ||
          PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_RuntimeError)))
        return;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyErr_Format(state->errors[CAMEO_BAD_ARGUMENT], "input '%U': %S", slot->name, value);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

/* An array as it is, where it is what is declared; else what cameo._arrays makes of the object. */
static bool lease_for(struct ext_state *state, const struct ext_numpy *numpy, PyObject *object,
                      const struct ext_slot *slot, struct ext_lease *out)
{
    lease_init(out);
    if ((PyObject *)Py_TYPE(object) == numpy->ndarray && slot->kind == CAMEO_KIND_TENSOR) {
        if (lease_buffer(object, 0, out) && is_declared(slot, out))
            return true;
        PyErr_Clear();
        ext_lease_end(out);
    }
    PyObject *made = PyObject_CallFunctionObjArgs(numpy->to_feed, object, slot->row, NULL);
    if (!made)
        return false;
    const bool good = ext_lease(state, made, out);
    Py_DECREF(made); /* what is lent holds on to it by itself */
    if (good)
        (void)is_declared(slot, out); /* the library says what is wrong with others */
    else
        name_input(state, slot);
    return good;
}

bool ext_lease_room(PyObject *object, const struct ext_slot *slot, struct ext_lease *out)
{
    lease_init(out);
    if (!lease_buffer(object, PyBUF_WRITABLE, out)) {
        ext_lease_end(out);
        return false;
    }
    (void)is_declared(slot, out);
    return true;
}

/* ---- feeds ---- */

static bool begin_feeds(PyObject *dict, struct ext_feeds *out)
{
    out->count = 0;
    out->kept = false;
    out->feeds = out->few_feeds;
    out->leases = out->few_leases;
    if (!PyDict_Check(dict)) {
        PyErr_SetString(PyExc_TypeError, "inputs are a dict of names to arrays");
        return false;
    }
    const size_t room = (size_t)PyDict_Size(dict);
    if (room <= EXT_FEW)
        return true;
    out->feeds = PyMem_Calloc(room, sizeof *out->feeds);
    out->leases = PyMem_Calloc(room, sizeof *out->leases);
    if (out->feeds && out->leases)
        return true;
    PyErr_NoMemory();
    ext_feeds_end(out);
    return false;
}

static bool fill_feeds(struct ext_state *state, PyObject *dict, const struct ext_slots *slots,
                       struct ext_feeds *out)
{
    const struct ext_numpy *numpy = slots ? ext_numpy(state) : NULL;
    Py_ssize_t at = 0;
    PyObject *name, *object;

    if ((slots && !numpy) || !begin_feeds(dict, out))
        return false;
    const Py_ssize_t room = PyDict_Size(dict);
    while (out->count < room && PyDict_Next(dict, &at, &name, &object)) {
        struct ext_lease *lease = &out->leases[out->count];
        struct cameo_feed *feed = &out->feeds[out->count];
        bool good = PyUnicode_Check(name);

        if (!good)
            PyErr_SetString(PyExc_TypeError, "names of inputs are texts");
        *feed = (struct cameo_feed)CAMEO_FEED_INIT;
        const size_t index = good && slots ? ext_slot_find(slots, name) : 0;
        if (good && (!slots || index == slots->count)) {
            feed->name = PyUnicode_AsUTF8AndSize(name, NULL);
            good = feed->name != NULL;
        }
        feed->index = index;
        /* Conversions, and other threads during the run, may change the dict. */
        Py_INCREF(name);
        Py_INCREF(object);
        lease_init(lease);
        if (good && !slots)
            good = ext_lease(state, object, lease);
        else if (good && !feed->name)
            good = lease_for(state, numpy, object, &slots->items[index], lease);
        Py_DECREF(object);
        if (!good) {
            Py_DECREF(name);
            ext_feeds_end(out);
            return false;
        }
        lease->name = name;
        feed->value = lease->value;
        feed->tensor = lease->value || (slots && feed->name) ? NULL : &lease->tensor;
        out->count++;
    }
    return true;
}

bool ext_feeds_for(struct ext_state *state, PyObject *dict, const struct ext_slots *slots,
                   struct ext_feeds *out)
{
#ifdef Py_GIL_DISABLED /* another thread may change the dict at any time: a copy is walked through \
                        */
    PyObject *own = PyDict_Check(dict) ? PyDict_Copy(dict) : Py_NewRef(dict);
    const bool good = own && fill_feeds(state, own, slots, out);

    Py_XDECREF(own);
    return good;
#else
    return fill_feeds(state, dict, slots, out);
#endif
}

bool ext_feeds(struct ext_state *state, PyObject *dict, struct ext_feeds *out)
{
    return ext_feeds_for(state, dict, NULL, out);
}

void ext_feeds_end(struct ext_feeds *feeds)
{
    for (Py_ssize_t i = 0; i < feeds->count && !feeds->kept; i++)
        ext_lease_end(&feeds->leases[i]);
    if (feeds->leases != feeds->few_leases)
        PyMem_Free(feeds->leases);
    if (feeds->feeds != feeds->few_feeds)
        PyMem_Free(feeds->feeds);
    feeds->count = 0;
    feeds->kept = false;
    feeds->leases = feeds->few_leases;
    feeds->feeds = feeds->few_feeds;
}
