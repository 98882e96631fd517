/* What a model is made of: counts, opsets, functions, training, initializers and their values. */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

/* ---- rows ---- */

/* A row of a list; NULL without an exception past its end. */
typedef PyObject *row_fn(const struct cameo_model *model, size_t index);

static PyObject *rows(PyObject *module, PyObject *object, row_fn *row)
{
    struct ext_model *self = ext_model_of(ext_state(module), object);
    PyObject *list = self ? PyList_New(0) : NULL, *item;

    for (size_t i = 0; list && (item = row(self->model, i)); i++)
        if (!ext_append(list, item))
            Py_CLEAR(list);
    if (PyErr_Occurred())
        Py_CLEAR(list);
    return list;
}

static PyObject *opset_row(const struct cameo_model *model, size_t index)
{
    const struct cameo_opset *row = cameo_model_opset(model, index);

    return row ? Py_BuildValue("(NL)", ext_text(row->domain), (long long)row->version) : NULL;
}

static PyObject *entry_of(const struct cameo_entry *entry)
{
    return Py_BuildValue("(NN)", ext_text(entry->key), ext_text(entry->value));
}

static PyObject *metadata_row(const struct cameo_model *model, size_t index)
{
    const struct cameo_entry *row = cameo_model_metadata(model, index);

    return row ? entry_of(row) : NULL;
}

static PyObject *operator_row(const struct cameo_model *model, size_t index)
{
    const struct cameo_operator *row = cameo_model_operator(model, index);

    return row ? Py_BuildValue("(NNn)", ext_text(row->domain), ext_text(row->name),
                               (Py_ssize_t)row->count)
               : NULL;
}

static PyObject *function_row(const struct cameo_model *model, size_t index)
{
    const struct cameo_function *row = cameo_model_function(model, index);

    return row ? Py_BuildValue("(NNNN)", ext_text(row->domain), ext_text(row->name),
                               ext_text(row->overload), ext_text(row->doc_string))
               : NULL;
}

static PyObject *file_row(const struct cameo_model *model, size_t index)
{
    const struct cameo_external_file *row = cameo_model_external_file(model, index);

    return row ? ext_text(row->location) : NULL;
}

static PyObject *note_row(const struct cameo_model *model, size_t index)
{
    const struct cameo_text *row;

    /* Whoever holds the model may wait for the interpreter lock, in an operator written in Python.
     */
    Py_BEGIN_ALLOW_THREADS;
    row = cameo_model_note(model, index);
    Py_END_ALLOW_THREADS;
    return row ? ext_text(*row) : NULL;
}

static PyObject *bindings(const struct cameo_entry *entries, size_t count)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < count; i++)
        if (!ext_append(list, entry_of(&entries[i])))
            Py_CLEAR(list);
    return list;
}

static PyObject *infos(const struct cameo_value_info *const *items, size_t count)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < count; i++)
        if (!ext_append(list, ext_value_info(items[i])))
            Py_CLEAR(list);
    return list;
}

static PyObject *training_row(const struct cameo_model *model, size_t index)
{
    const struct cameo_training *row = cameo_model_training(model, index);

    if (!row)
        return NULL;
    return Py_BuildValue(
        "(NNNNN)", bindings(row->initialization_bindings, row->initialization_binding_count),
        bindings(row->update_bindings, row->update_binding_count),
        infos(row->inputs, row->input_count), infos(row->outputs, row->output_count),
        ext_texts(row->states, row->state_count));
}

static PyObject *initializer_row(const struct cameo_model *model, size_t index)
{
    const struct cameo_initializer *row = cameo_model_initializer(model, index);

    if (!row)
        return NULL;
    PyObject *shape = PyTuple_New((Py_ssize_t)row->rank);
    for (size_t axis = 0; shape && axis < row->rank; axis++)
        PyTuple_SetItem(shape, (Py_ssize_t)axis, PyLong_FromLongLong(row->dims[axis]));
    return Py_BuildValue("(NiNOiONNN)", ext_text(row->name), (int)row->dtype, shape,
                         row->is_state ? Py_True : Py_False, row->training,
                         row->sparse ? Py_True : Py_False, ext_text(row->location),
                         ext_text(row->original), ext_text(row->folding));
}

#define ROWS(name)                                                                                 \
    static PyObject *name##_rows(PyObject *module, PyObject *object)                               \
    {                                                                                              \
        return rows(module, object, name##_row);                                                   \
    }
ROWS(opset)
ROWS(metadata)
ROWS(operator)
ROWS(function)
ROWS(file)
ROWS(note)
ROWS(training)
ROWS(initializer)

static PyObject *summary(PyObject *module, PyObject *object)
{
    struct ext_model *self = ext_model_of(ext_state(module), object);

    if (!self)
        return NULL;
    const struct cameo_summary *s = cameo_model_summary(self->model);
    return Py_BuildValue(
        "{s:L,s:L,s:N,s:N,s:N,s:N,s:N,s:N,s:n,s:n,s:n,s:n,s:n,s:n,s:n,s:K,s:K,s:K,s:K}",
        "ir_version", (long long)s->ir_version, "model_version", (long long)s->model_version,
        "producer_name", ext_text(s->producer_name), "producer_version",
        ext_text(s->producer_version), "domain", ext_text(s->domain), "graph",
        ext_text(s->graph_name), "doc_string", ext_text(s->doc_string), "graph_doc_string",
        ext_text(s->graph_doc_string), "nodes", (Py_ssize_t)s->node_count, "nested_nodes",
        (Py_ssize_t)s->nested_node_count, "function_nodes", (Py_ssize_t)s->function_node_count,
        "training_nodes", (Py_ssize_t)s->training_node_count, "initializer_count",
        (Py_ssize_t)s->initializer_count, "function_count", (Py_ssize_t)s->function_count,
        "training_count", (Py_ssize_t)s->training_count, "parameters",
        (unsigned long long)s->parameter_count, "parameter_bytes",
        (unsigned long long)s->parameter_bytes, "training_parameters",
        (unsigned long long)s->training_parameter_count, "training_parameter_bytes",
        (unsigned long long)s->training_parameter_bytes);
}

/* ---- values of initializers ---- */

/* view_initializer(model, index): a Value over the model's memory, or (shape, texts) */
static PyObject *view_initializer(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    struct cameo_value *value = NULL;
    struct cameo_error err;
    PyObject *object;
    Py_ssize_t index;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "On", &object, &index))
        return NULL;
    struct ext_model *self = ext_model_of(state, object);
    if (!self)
        return NULL;
    PyObject *used = ext_model_use(self), *texts = NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_model_view_initializer(self->model, (size_t)index, &value, &err);
    Py_END_ALLOW_THREADS;
    if (status == CAMEO_OK && cameo_value_dtype(value) != CAMEO_STRING)
        return ext_value_new(state, value, used);
    if (status == CAMEO_OK)
        texts = ext_from_value(state, value);
    else
        ext_raise(state, &err);
    ext_value_free(value);
    ext_model_leave(used);
    return texts;
}

/* from_dlpack(object): a Value over a tensor of another library */
static PyObject *from_dlpack(PyObject *module, PyObject *object)
{
    struct ext_state *state = ext_state(module);
    struct ext_lease lease;

    if (!ext_lease(state, object, &lease))
        return NULL;
    struct cameo_value *taken = lease.made;
    lease.made = NULL;
    ext_lease_end(&lease);
    if (taken)
        return ext_value_new(state, taken, NULL);
    PyErr_SetString(PyExc_TypeError, "an object with __dlpack__ alone is wanted");
    return NULL;
}

/* Nobody else uses it, and nobody can begin to for as long as the interpreter lock is held. */
static bool is_alone(const struct ext_model *model)
{
#ifdef Py_GIL_DISABLED
    (void)model;
    return false;
#else
    return atomic_load(&model->users) == 0;
#endif
}

/* set_initializer(model, index, bytes): a Model, which is model itself where nobody else uses it:
 * values that are set again and again then take no more memory than once. */
static PyObject *set_initializer(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    struct cameo_error err;
    PyObject *object;
    Py_ssize_t index;
    Py_buffer view;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "Ony*", &object, &index, &view))
        return NULL;
    struct ext_model *self = ext_model_of(state, object);
    const bool alone = self && is_alone(self);
    struct cameo_model *copy = self && !alone ? ext_model_edit(state, self) : NULL;
    PyObject *made = NULL;
    if (alone) { /* the lock is kept: who holds the model without using it does not wait for it */
        if (cameo_model_set_initializer(self->model, (size_t)index, view.buf, (size_t)view.len,
                                        &err) == CAMEO_OK)
            made = Py_NewRef(object);
        else
            ext_raise(state, &err);
    } else if (copy) {
        PyObject *used = ext_model_use(self);
        Py_BEGIN_ALLOW_THREADS;
        status = cameo_model_set_initializer(copy, (size_t)index, view.buf, (size_t)view.len, &err);
        Py_END_ALLOW_THREADS;
        made = ext_model_edited(state, self, copy, status, &err);
        ext_model_leave(used);
    }
    PyBuffer_Release(&view);
    return made;
}

/* ---- comparing ---- */

static const char *const kind_names[] = {"added", "removed", "changed", "value", "first", "note"};

static PyObject *compare_rows(const struct cameo_comparison *c)
{
    PyObject *list = PyList_New(0);
    const struct cameo_compare_row *row;

    for (size_t i = 0; list && (row = cameo_comparison_row(c, i)) != NULL; i++) {
        const struct cameo_difference *d = row->difference;
        PyObject *numbers =
            d ? Py_BuildValue("(LLLddd)", (long long)d->count, (long long)d->differing,
                              (long long)d->first, d->max_abs, d->norm, d->reference_norm)
              : Py_NewRef(Py_None);

        if (!numbers ||
            !ext_append(list, Py_BuildValue("(isNNN)", (int)row->part, kind_names[row->kind],
                                            ext_text(row->name), ext_text(row->text), numbers)))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *counts_of(const struct cameo_comparison *c, enum cameo_compare_part part)
{
    return Py_BuildValue("(nn)", (Py_ssize_t)cameo_comparison_compared(c, part),
                         (Py_ssize_t)cameo_comparison_differing(c, part));
}

/* compare(a, b, feeds, parts, relative, absolute, seed) */
static PyObject *compare(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    struct cameo_compare_options options = CAMEO_COMPARE_OPTIONS_INIT;
    struct cameo_make_options make = CAMEO_MAKE_OPTIONS_INIT;
    struct cameo_comparison *c = NULL;
    struct cameo_error err;
    struct ext_feeds feeds;
    PyObject *first, *second, *dict;
    unsigned long long seed;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "OOOIddK", &first, &second, &dict, &options.parts,
                          &options.relative, &options.absolute, &seed))
        return NULL;
    struct ext_model *a = ext_model_of(state, first), *b = a ? ext_model_of(state, second) : NULL;
    if (!b || !ext_feeds(state, dict, &feeds))
        return NULL;
    make.seed = seed;
    options.make = &make;
    options.feeds = feeds.feeds;
    options.feed_count = (size_t)feeds.count;
    PyObject *used[] = {ext_model_use(a), ext_model_use(b)};
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_model_compare(a->model, b->model, &options, &c, &err);
    Py_END_ALLOW_THREADS;
    feeds.kept = ext_take_kept();
    ext_model_leave(used[0]);
    ext_model_leave(used[1]);
    PyObject *out = status == CAMEO_OK
                        ? Py_BuildValue("(N[NNN]N)", PyBool_FromLong(cameo_comparison_same(c)),
                                        counts_of(c, CAMEO_COMPARE_STRUCTURE),
                                        counts_of(c, CAMEO_COMPARE_WEIGHTS),
                                        counts_of(c, CAMEO_COMPARE_RESULTS), compare_rows(c))
                        : ext_raise(state, &err);
    cameo_comparison_free(c);
    ext_feeds_end(&feeds);
    return out;
}

PyMethodDef ext_describe_functions[] = {
    {"summary", summary, METH_O, "summary(model): a dict"},
    {"opsets", opset_rows, METH_O, "opsets(model): [(domain, version)]"},
    {"metadata", metadata_rows, METH_O, "metadata(model): [(key, value)]"},
    {"operators", operator_rows, METH_O, "operators(model): [(domain, name, count)]"},
    {"functions", function_rows, METH_O,
     "functions(model): [(domain, name, overload, doc string)]"},
    {"files", file_rows, METH_O, "files(model): [location of external data]"},
    {"notes", note_rows, METH_O, "notes(model): [sentence]"},
    {"training", training_rows, METH_O,
     "training(model): [(initialization bindings, update bindings, inputs, outputs, states)]"},
    {"initializers", initializer_rows, METH_O,
     "initializers(model): [(name, dtype, shape, is state, training entry or -1, is sparse, "
     "file)]"},
    {"view_initializer", view_initializer, METH_VARARGS, "view_initializer(model, index): a Value"},
    {"from_dlpack", from_dlpack, METH_O, "from_dlpack(object): a Value"},
    {"set_initializer", set_initializer, METH_VARARGS,
     "set_initializer(model, index, bytes): a Model"},
    {"compare", compare, METH_VARARGS,
     "compare(a, b, feeds, parts, relative, absolute, seed): (same, [(compared, differing)], "
     "rows)"},
    {0},
};
