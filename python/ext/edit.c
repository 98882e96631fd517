/* Models made of models. Whatever changes one works on a copy, and gives that back with a report: a
 * dict of what was done beside what was asked for. What stands in the way is in the exception. */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

/* ---- edits ---- */

bool ext_edit_from(struct ext_edit *e, PyObject *module, PyObject *object)
{
    *e = (struct ext_edit){.state = ext_state(module)};
    e->from = ext_model_of(e->state, object);
    if (e->from)
        ext_model_use(e->from);
    return e->from != NULL;
}

bool ext_edit_copy(struct ext_edit *e, PyObject *module, PyObject *object)
{
    if (!ext_edit_from(e, module, object))
        return false;
    e->made = ext_model_edit(e->state, e->from);
    if (!e->made)
        ext_model_leave((PyObject *)e->from);
    return e->made != NULL;
}

PyObject *ext_edit_end(struct ext_edit *e, PyObject *report, const struct cameo_findings *findings)
{
    PyObject *out = NULL;

    if (e->status == CAMEO_OK && report) {
        PyObject *made = ext_model_new(e->state, e->made, (PyObject *)e->from);
        out = Py_BuildValue("(NN)", ext_model_alone(e->state, made), report);
    } else {
        if (e->status != CAMEO_OK)
            ext_raise_with(e->state, &e->err, findings);
        cameo_model_free(e->made);
        Py_XDECREF(report);
    }
    ext_model_leave((PyObject *)e->from);
    return out;
}

static PyObject *changes_of(const struct cameo_text *changes, size_t count)
{
    return Py_BuildValue("{s:N}", "changes", ext_texts(changes, count));
}

/* Of the edits of the section editing in cameo.h. */
static PyObject *edit_done(struct ext_edit *e, const struct cameo_edit *report)
{
    if (e->status != CAMEO_OK || !report)
        return ext_edit_end(e, e->status == CAMEO_OK ? PyDict_New() : NULL,
                            report ? report->findings : NULL);
    return ext_edit_end(e, changes_of(report->changes, report->change_count), NULL);
}

/* copy(model): a Model */
static PyObject *copy(PyObject *module, PyObject *object)
{
    struct ext_edit e;

    if (!ext_edit_copy(&e, module, object))
        return NULL;
    PyObject *made = ext_model_new(e.state, e.made, (PyObject *)e.from);
    ext_model_leave((PyObject *)e.from);
    return made;
}

/* infer(model, strict, partial, open_inputs) */
static PyObject *infer(PyObject *module, PyObject *args)
{
    struct cameo_infer_options options = CAMEO_INFER_OPTIONS_INIT;
    const struct cameo_inference *report = NULL;
    PyObject *object, *out = NULL;
    struct ext_edit e;
    int strict = 0, partial = 0, open_inputs = 0;

    if (!PyArg_ParseTuple(args, "O|ppp", &object, &strict, &partial, &open_inputs) ||
        !ext_edit_copy(&e, module, object))
        return NULL;
    options.strict = strict;
    options.partial = partial;
    options.open_inputs = open_inputs;
    Py_BEGIN_ALLOW_THREADS;
    e.status = cameo_model_infer(e.made, &options, &report, &e.err);
    Py_END_ALLOW_THREADS;
    if (e.status == CAMEO_OK)
        out = Py_BuildValue(
            "{s:n,s:n,s:n,s:n,s:n,s:n,s:n,s:n,s:N}", "values", (Py_ssize_t)report->value_count,
            "declared", (Py_ssize_t)report->declared_count, "typed",
            (Py_ssize_t)report->typed_count, "complete", (Py_ssize_t)report->complete_count,
            "dimensions", (Py_ssize_t)report->dim_count, "numbers",
            (Py_ssize_t)report->number_count, "symbolic", (Py_ssize_t)report->symbolic_count,
            "unknown", (Py_ssize_t)report->unknown_count, "findings",
            ext_findings(report->findings));
    return ext_edit_end(&e, out, report ? report->findings : NULL);
}

/* ---- opsets ---- */

static PyObject *conversion_of(const struct cameo_conversion *report)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < report->change_count; i++) {
        const struct cameo_version_change *row = report->changes[i];
        if (!ext_append(list, Py_BuildValue("(NNLLnN)", ext_text(row->domain), ext_text(row->op),
                                            (long long)row->from, (long long)row->to,
                                            (Py_ssize_t)row->nodes, ext_text(row->how))))
            Py_CLEAR(list);
    }
    return Py_BuildValue("{s:N,s:n,s:n,s:N}", "changes", list, "nodes_changed",
                         (Py_ssize_t)report->nodes_changed, "nodes_kept",
                         (Py_ssize_t)report->nodes_kept, "notes",
                         ext_texts(report->notes, report->note_count));
}

/* convert(model, {domain: version} or None, as_is) */
static PyObject *convert(PyObject *module, PyObject *args)
{
    struct cameo_convert_options options = CAMEO_CONVERT_OPTIONS_INIT;
    const struct cameo_conversion *report = NULL;
    struct cameo_target_opset *targets = NULL;
    PyObject *object, *dict, *domain, *version;
    Py_ssize_t at = 0;
    struct ext_edit e;
    int as_is;

    if (!PyArg_ParseTuple(args, "OOp", &object, &dict, &as_is))
        return NULL;
    options.as_is = as_is;
    if (dict != Py_None) {
        if (!PyDict_Check(dict)) {
            PyErr_SetString(PyExc_TypeError, "opsets are a dict of domains to versions, or None");
            return NULL;
        }
        const size_t count = (size_t)PyDict_Size(dict);
        targets = PyMem_Calloc(count + 1, sizeof *targets);
        if (!targets)
            return PyErr_NoMemory();
        while (options.opset_count < count && !PyErr_Occurred() &&
               PyDict_Next(dict, &at, &domain, &version)) {
            struct cameo_target_opset *row = &targets[options.opset_count++];
            *row = (struct cameo_target_opset)CAMEO_TARGET_OPSET_INIT;
            row->domain = PyUnicode_AsUTF8AndSize(domain, NULL);
            row->version = row->domain ? ext_whole(version) : 0;
        }
        options.opsets = targets;
    }
    if (PyErr_Occurred() || !ext_edit_copy(&e, module, object)) {
        PyMem_Free(targets);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    e.status = cameo_model_convert(e.made, &options, &report, &e.err);
    Py_END_ALLOW_THREADS;
    PyMem_Free(targets);
    return ext_edit_end(&e, e.status == CAMEO_OK ? conversion_of(report) : NULL,
                        report ? report->findings : NULL);
}

/* ---- parts ---- */

static PyObject *strip(PyObject *module, PyObject *object)
{
    const struct cameo_edit *report = NULL;
    struct ext_edit e;

    if (!ext_edit_copy(&e, module, object))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    e.status = cameo_model_strip_training(e.made, &report, &e.err);
    Py_END_ALLOW_THREADS;
    return edit_done(&e, report);
}

/* extract(model, inputs, outputs) */
static PyObject *extract(PyObject *module, PyObject *args)
{
    const struct cameo_edit *report = NULL;
    PyObject *object, *from, *to, *out = NULL;
    struct ext_names inputs, outputs;
    struct ext_edit e;

    if (!PyArg_ParseTuple(args, "OOO", &object, &from, &to) || !ext_names(from, &inputs))
        return NULL;
    if (ext_names(to, &outputs)) {
        if (ext_edit_copy(&e, module, object)) {
            Py_BEGIN_ALLOW_THREADS;
            e.status = cameo_model_extract(e.made, inputs.items, inputs.count, outputs.items,
                                           outputs.count, &report, &e.err);
            Py_END_ALLOW_THREADS;
            out = edit_done(&e, report);
        }
        ext_names_end(&outputs);
    }
    ext_names_end(&inputs);
    return out;
}

/* expose(model, names or None) */
static PyObject *expose(PyObject *module, PyObject *args)
{
    const struct cameo_edit *report = NULL;
    PyObject *object, *list, *out = NULL;
    struct ext_names names;
    struct ext_edit e;

    if (!PyArg_ParseTuple(args, "OO", &object, &list) || !ext_names(list, &names))
        return NULL;
    if (ext_edit_copy(&e, module, object)) {
        Py_BEGIN_ALLOW_THREADS;
        e.status = cameo_model_expose(e.made, names.items, names.count, &report, &e.err);
        Py_END_ALLOW_THREADS;
        out = edit_done(&e, report);
    }
    ext_names_end(&names);
    return out;
}

/* Rows of texts: items[0] and items[1] of each tuple of a list. */
struct pairs {
    struct ext_names first, second;
};

static bool pairs_of(PyObject *first, PyObject *second, struct pairs *out)
{
    if (!ext_names(first, &out->first))
        return false;
    if (ext_names(second, &out->second) && out->first.count == out->second.count)
        return true;
    if (!PyErr_Occurred()) {
        ext_names_end(&out->second);
        PyErr_SetString(PyExc_ValueError, "both lists must have as many names");
    }
    ext_names_end(&out->first);
    return false;
}

static void pairs_end(struct pairs *pairs)
{
    ext_names_end(&pairs->first);
    ext_names_end(&pairs->second);
}

/* Joins with a copy of second, which must outlive the merged model and is kept by it. */
static PyObject *merge_copies(struct ext_edit *e, struct ext_model *second,
                              const struct cameo_merge_options *options)
{
    const struct cameo_edit *report = NULL;
    struct cameo_model *other = ext_model_edit(e->state, second);
    PyObject *kept = other ? ext_model_new(e->state, other, (PyObject *)second) : NULL;

    if (!kept)
        return ext_edit_end(e, NULL, NULL);
    Py_BEGIN_ALLOW_THREADS;
    e->status = cameo_model_merge(e->made, other, options, &report, &e->err);
    Py_END_ALLOW_THREADS;
    PyObject *out = edit_done(e, report);
    if (out)
        ((struct ext_model *)PyTuple_GetItem(out, 0))->merged = kept;
    else
        Py_DECREF(kept);
    return out;
}

/* merge(first, second, outputs, inputs, prefix1, prefix2) */
static PyObject *merge(PyObject *module, PyObject *args)
{
    struct cameo_merge_options options = CAMEO_MERGE_OPTIONS_INIT;
    PyObject *first, *second, *from, *to, *out = NULL;
    struct pairs names;
    struct ext_edit e;

    if (!PyArg_ParseTuple(args, "OOOOzz", &first, &second, &from, &to, &options.prefix1,
                          &options.prefix2) ||
        !pairs_of(from, to, &names))
        return NULL;
    struct cameo_merge_pair *pairs = PyMem_Calloc(names.first.count + 1, sizeof *pairs);
    for (size_t i = 0; pairs && i < names.first.count; i++) {
        pairs[i] = (struct cameo_merge_pair)CAMEO_MERGE_PAIR_INIT;
        pairs[i].output = names.first.items[i];
        pairs[i].input = names.second.items[i];
    }
    options.pairs = pairs;
    options.pair_count = names.first.count;
    struct ext_model *other = ext_model_of(ext_state(module), second);
    if (!pairs)
        PyErr_NoMemory();
    else if (other && ext_edit_copy(&e, module, first))
        out = merge_copies(&e, other, &options);
    PyMem_Free(pairs);
    pairs_end(&names);
    return out;
}

/* rename(model, kind, from, to) */
static PyObject *rename_names(PyObject *module, PyObject *args)
{
    const struct cameo_edit *report = NULL;
    PyObject *object, *from, *to, *out = NULL;
    struct pairs names;
    struct ext_edit e;
    int kind;

    if (!PyArg_ParseTuple(args, "OiOO", &object, &kind, &from, &to) || !pairs_of(from, to, &names))
        return NULL;
    struct cameo_renaming *rows = PyMem_Calloc(names.first.count + 1, sizeof *rows);
    for (size_t i = 0; rows && i < names.first.count; i++) {
        rows[i] = (struct cameo_renaming)CAMEO_RENAMING_INIT;
        rows[i].kind = (enum cameo_renaming_kind)kind;
        rows[i].from = names.first.items[i];
        rows[i].to = names.second.items[i];
    }
    if (!rows)
        PyErr_NoMemory();
    else if (ext_edit_copy(&e, module, object)) {
        Py_BEGIN_ALLOW_THREADS;
        e.status = cameo_model_rename(e.made, rows, names.first.count, &report, &e.err);
        Py_END_ALLOW_THREADS;
        out = edit_done(&e, report);
    }
    PyMem_Free(rows);
    pairs_end(&names);
    return out;
}

/* set_shapes(model, names, shapes) */
static PyObject *set_shapes(PyObject *module, PyObject *args)
{
    const struct cameo_edit *report = NULL;
    PyObject *object, *from, *to, *out = NULL;
    struct pairs names;
    struct ext_edit e;

    if (!PyArg_ParseTuple(args, "OOO", &object, &from, &to) || !pairs_of(from, to, &names))
        return NULL;
    struct cameo_reshaping *rows = PyMem_Calloc(names.first.count + 1, sizeof *rows);
    for (size_t i = 0; rows && i < names.first.count; i++) {
        rows[i] = (struct cameo_reshaping)CAMEO_RESHAPING_INIT;
        rows[i].name = names.first.items[i];
        rows[i].dims = names.second.items[i];
    }
    if (!rows)
        PyErr_NoMemory();
    else if (ext_edit_copy(&e, module, object)) {
        Py_BEGIN_ALLOW_THREADS;
        e.status = cameo_model_set_shapes(e.made, rows, names.first.count, &report, &e.err);
        Py_END_ALLOW_THREADS;
        out = edit_done(&e, report);
    }
    PyMem_Free(rows);
    pairs_end(&names);
    return out;
}

/* ---- functions and passes ---- */

/* expand(model, only, except, operators, core) */
static PyObject *expand(PyObject *module, PyObject *args)
{
    struct cameo_expand_options options = CAMEO_EXPAND_OPTIONS_INIT;
    const struct cameo_expansion *report = NULL;
    struct cameo_findings *findings = NULL;
    PyObject *object, *out = NULL;
    struct ext_edit e;
    int operators, core;

    if (!PyArg_ParseTuple(args, "Ozzpp", &object, &options.only, &options.except, &operators,
                          &core) ||
        !ext_edit_from(&e, module, object))
        return NULL;
    options.operators = operators;
    options.core = core;
    options.findings = &findings;
    Py_BEGIN_ALLOW_THREADS;
    e.status = cameo_model_expand(e.from->model, &options, &e.made, &report, &e.err);
    Py_END_ALLOW_THREADS;
    if (e.status == CAMEO_OK)
        out = Py_BuildValue("{s:n,s:n,s:n,s:n,s:n,s:N,s:N}", "nodes_before",
                            (Py_ssize_t)report->nodes_before, "nodes", (Py_ssize_t)report->nodes,
                            "calls", (Py_ssize_t)report->call_count, "operators",
                            (Py_ssize_t)report->operator_count, "functions_removed",
                            (Py_ssize_t)report->function_count, "changes",
                            ext_texts(report->changes, report->change_count), "left",
                            ext_texts(report->left, report->left_count));
    out = ext_edit_end(&e, out, findings);
    cameo_findings_free(findings);
    return out;
}

static PyObject *optimization_of(const struct cameo_optimization *report)
{
    PyObject *passes = PyList_New(0);

    for (size_t i = 0; passes && i < report->pass_count; i++) {
        const struct cameo_pass_result *row = report->passes[i];
        if (!ext_append(passes,
                        Py_BuildValue("(sOnn)", row->name, row->skipped ? Py_True : Py_False,
                                      (Py_ssize_t)row->nodes_before, (Py_ssize_t)row->nodes_after)))
            Py_CLEAR(passes);
    }
    return Py_BuildValue("{s:N,s:n,s:n,s:n,s:n,s:N}", "passes", passes, "nodes_before",
                         (Py_ssize_t)report->nodes_before, "nodes", (Py_ssize_t)report->nodes,
                         "nodes_inlined", (Py_ssize_t)report->nodes_inlined, "functions",
                         (Py_ssize_t)report->function_count, "changes",
                         ext_texts(report->changes, report->change_count));
}

/* optimize(model, passes, without, until, portable, as_is) */
static PyObject *optimize(PyObject *module, PyObject *args)
{
    struct cameo_optimize_options options = CAMEO_OPTIMIZE_OPTIONS_INIT;
    const struct cameo_optimization *report = NULL;
    PyObject *object;
    struct ext_edit e;
    int portable, as_is;

    if (!PyArg_ParseTuple(args, "Ozzzpp", &object, &options.passes, &options.without,
                          &options.until, &portable, &as_is) ||
        !ext_edit_from(&e, module, object))
        return NULL;
    options.portable = portable;
    options.as_is = as_is;
    Py_BEGIN_ALLOW_THREADS;
    e.status = cameo_model_optimize(e.from->model, &options, &e.made, &report, &e.err);
    Py_END_ALLOW_THREADS;
    return ext_edit_end(&e, e.status == CAMEO_OK ? optimization_of(report) : NULL, NULL);
}

/* passes(): [(name, summary, required, on request)] */
static PyObject *passes(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    struct cameo_pass row = CAMEO_PASS_INIT;

    (void)module;
    (void)unused;
    for (size_t i = 0; list && cameo_pass(i, &row); i++)
        if (!ext_append(list, Py_BuildValue("(ssOO)", row.name, row.summary,
                                            row.required ? Py_True : Py_False,
                                            row.on_request ? Py_True : Py_False)))
            Py_CLEAR(list);
    return list;
}

PyMethodDef ext_edit_functions[] = {
    {"copy", copy, METH_O, "copy(model): a Model"},
    {"infer", infer, METH_VARARGS, "infer(model, strict): (Model, report)"},
    {"strip", strip, METH_O, "strip(model): (Model, report)"},
    {"convert", convert, METH_VARARGS, "convert(model, opsets, as_is): (Model, report)"},
    {"extract", extract, METH_VARARGS, "extract(model, inputs, outputs): (Model, report)"},
    {"expose", expose, METH_VARARGS, "expose(model, names): (Model, report)"},
    {"merge", merge, METH_VARARGS,
     "merge(a, b, outputs, inputs, prefix1, prefix2): (Model, report)"},
    {"rename", rename_names, METH_VARARGS, "rename(model, kind, from, to): (Model, report)"},
    {"set_shapes", set_shapes, METH_VARARGS, "set_shapes(model, names, shapes): (Model, report)"},
    {"expand", expand, METH_VARARGS,
     "expand(model, only, except, operators, core): (Model, report)"},
    {"optimize", optimize, METH_VARARGS,
     "optimize(model, passes, without, until, portable, as_is): (Model, report)"},
    {"passes", passes, METH_NOARGS, "passes(): [(name, summary, required, on request)]"},
    {0},
};
