/* Nodes with their attributes, as tuples: graphs, the graphs inside their nodes, functions,
 * training. */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

static const char capsule_name[] = "cameo.attribute";

/* Any bytes may stand in a file; those that are not UTF-8 stay bytes. */
static PyObject *text_or_bytes(struct cameo_text text)
{
    PyObject *out = PyUnicode_DecodeUTF8(text.data, (Py_ssize_t)text.size, "strict");

    if (out || !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
        return out;
    PyErr_Clear();
    return PyBytes_FromStringAndSize(text.data, (Py_ssize_t)text.size);
}

/* The attribute itself, for attribute_tensor: tensors are read when somebody looks at them. */
static PyObject *capsule_of(const struct cameo_model *model, const struct cameo_node_attribute *a)
{
    PyObject *capsule = PyCapsule_New((void *)(uintptr_t)a, capsule_name, NULL);

    if (capsule && PyCapsule_SetContext(capsule, (void *)(uintptr_t)model) < 0)
        Py_CLEAR(capsule);
    return capsule ? Py_BuildValue("(Nn)", capsule, (Py_ssize_t)a->tensor_count) : NULL;
}

static PyObject *graph_of(const struct cameo_model *model, const struct cameo_graph *graph);

/* Files of the first versions of ONNX do not say the kind. */
static enum cameo_attribute_kind kind_of(const struct cameo_node_attribute *a)
{
    if (a->kind != CAMEO_ATTRIBUTE_NONE)
        return a->kind;
    return a->float_count    ? CAMEO_ATTRIBUTE_FLOATS
           : a->int_count    ? CAMEO_ATTRIBUTE_INTS
           : a->string_count ? CAMEO_ATTRIBUTE_STRINGS
           : a->tensor_count ? CAMEO_ATTRIBUTE_TENSOR
           : a->graph_count  ? CAMEO_ATTRIBUTE_GRAPH
           : a->type_count   ? CAMEO_ATTRIBUTE_TYPE
           : a->s.size       ? CAMEO_ATTRIBUTE_STRING
           : a->f != 0       ? CAMEO_ATTRIBUTE_FLOAT
                             : CAMEO_ATTRIBUTE_INT;
}

/* A list of count items; each as of(a, index). */
typedef PyObject *item_fn(const struct cameo_model *model, const struct cameo_node_attribute *a,
                          size_t index);

static PyObject *list_of(const struct cameo_model *model, const struct cameo_node_attribute *a,
                         size_t count, item_fn *item)
{
    PyObject *list = PyList_New((Py_ssize_t)count);

    for (size_t i = 0; list && i < count; i++) {
        PyObject *made = item(model, a, i);
        if (!made || PyList_SetItem(list, (Py_ssize_t)i, made) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *float_item(const struct cameo_model *model, const struct cameo_node_attribute *a,
                            size_t index)
{
    (void)model;
    return PyFloat_FromDouble((double)a->floats[index]);
}

static PyObject *int_item(const struct cameo_model *model, const struct cameo_node_attribute *a,
                          size_t index)
{
    (void)model;
    return PyLong_FromLongLong(a->ints[index]);
}

static PyObject *string_item(const struct cameo_model *model, const struct cameo_node_attribute *a,
                             size_t index)
{
    (void)model;
    return text_or_bytes(a->strings[index]);
}

static PyObject *type_item(const struct cameo_model *model, const struct cameo_node_attribute *a,
                           size_t index)
{
    (void)model;
    return ext_text(a->types[index]);
}

static PyObject *graph_item(const struct cameo_model *model, const struct cameo_node_attribute *a,
                            size_t index)
{
    return graph_of(model, a->graphs[index]);
}

static PyObject *attribute_value(const struct cameo_model *model,
                                 const struct cameo_node_attribute *a)
{
    switch (kind_of(a)) {
    case CAMEO_ATTRIBUTE_FLOAT:
        return PyFloat_FromDouble((double)a->f);
    case CAMEO_ATTRIBUTE_INT:
        return PyLong_FromLongLong(a->i);
    case CAMEO_ATTRIBUTE_STRING:
        return text_or_bytes(a->s);
    case CAMEO_ATTRIBUTE_FLOATS:
        return list_of(model, a, a->float_count, float_item);
    case CAMEO_ATTRIBUTE_INTS:
        return list_of(model, a, a->int_count, int_item);
    case CAMEO_ATTRIBUTE_STRINGS:
        return list_of(model, a, a->string_count, string_item);
    case CAMEO_ATTRIBUTE_TENSOR:
    case CAMEO_ATTRIBUTE_TENSORS:
        return capsule_of(model, a);
    case CAMEO_ATTRIBUTE_GRAPH:
    case CAMEO_ATTRIBUTE_GRAPHS:
        return list_of(model, a, a->graph_count, graph_item);
    case CAMEO_ATTRIBUTE_TYPE:
    case CAMEO_ATTRIBUTE_TYPES:
        return list_of(model, a, a->type_count, type_item);
    default: /* sparse tensors: the library does not hand them out */
        Py_RETURN_NONE;
    }
}

static PyObject *attributes_of(const struct cameo_model *model, const struct cameo_node *node)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < node->attribute_count; i++) {
        const struct cameo_node_attribute *a = node->attributes[i];
        PyObject *value = attribute_value(model, a);
        if (!value || !ext_append(list, Py_BuildValue("(NiNN)", ext_text(a->name), (int)kind_of(a),
                                                      ext_text(a->refers_to), value)))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *node_of(const struct cameo_model *model, const struct cameo_node *node)
{
    return Py_BuildValue("(NNNNNNNN)", ext_text(node->name), ext_text(node->op_type),
                         ext_text(node->domain), ext_text(node->overload),
                         ext_text(node->doc_string), ext_texts(node->inputs, node->input_count),
                         ext_texts(node->outputs, node->output_count), attributes_of(model, node));
}

/* What is known of an edge: its type, or its name alone. */
static PyObject *edge_of(const struct cameo_edge *edge)
{
    const struct cameo_value_info nothing = {
        .name = edge->name, .type = {"?", 1}, .rank = -1, .doc_string = {"", 0}};

    return ext_value_info(edge->info ? edge->info : &nothing);
}

typedef const struct cameo_edge *end_fn(const struct cameo_graph *graph, size_t index);

static PyObject *edges_of(const struct cameo_graph *graph, end_fn *end)
{
    PyObject *list = PyList_New(0);
    const struct cameo_edge *edge;

    for (size_t i = 0; list && (edge = end(graph, i)); i++)
        if (!ext_append(list, edge_of(edge)))
            Py_CLEAR(list);
    return list;
}

/* (name, inputs, outputs, edges, nodes). As deep as graphs nest, which the library limits. */
static PyObject *graph_of(const struct cameo_model *model, const struct cameo_graph *graph)
{
    const size_t count = cameo_graph_node_count(graph);
    PyObject *nodes = PyList_New(0);

    for (size_t i = 0; nodes && i < count; i++)
        if (!ext_append(nodes, node_of(model, cameo_graph_node(graph, i))))
            Py_CLEAR(nodes);
    return nodes ? Py_BuildValue("(NNNNN)", ext_text(cameo_graph_name(graph)),
                                 edges_of(graph, cameo_graph_input),
                                 edges_of(graph, cameo_graph_output),
                                 edges_of(graph, cameo_graph_edge), nodes)
                 : NULL;
}

/* graph(model, kind, index), None where there is none */
static PyObject *graph(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    const struct cameo_graph *found = NULL;
    struct cameo_error err;
    PyObject *object;
    int kind;
    Py_ssize_t index;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "Oin", &object, &kind, &index))
        return NULL;
    struct ext_model *self = ext_model_of(state, object);
    if (!self)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status =
        cameo_model_graph(self->model, (enum cameo_graph_kind)kind, (size_t)index, &found, &err);
    Py_END_ALLOW_THREADS;
    if (status == CAMEO_NOT_FOUND)
        Py_RETURN_NONE;
    return status == CAMEO_OK ? graph_of(self->model, found) : ext_raise(state, &err);
}

/* attribute_tensor(model, capsule, index): a Value, or (shape, texts) */
static PyObject *attribute_tensor(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    struct cameo_value *value = NULL;
    struct cameo_error err;
    PyObject *object, *capsule;
    Py_ssize_t index;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "OOn", &object, &capsule, &index))
        return NULL;
    struct ext_model *self = ext_model_of(state, object);
    const struct cameo_node_attribute *a =
        self ? PyCapsule_GetPointer(capsule, capsule_name) : NULL;
    if (!a)
        return NULL;
    if (PyCapsule_GetContext(capsule) != self->model) {
        PyErr_SetString(PyExc_ValueError, "the attribute belongs to another model");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_attribute_tensor(self->model, a, (size_t)index, &value, &err);
    Py_END_ALLOW_THREADS;
    if (status != CAMEO_OK)
        return ext_raise(state, &err);
    if (cameo_value_dtype(value) != CAMEO_STRING)
        return ext_value_new(state, value, NULL);
    PyObject *texts = ext_from_value(state, value);
    ext_value_free(value);
    return texts;
}

PyMethodDef ext_graph_functions[] = {
    {"graph", graph, METH_VARARGS,
     "graph(model, kind, index): (name, inputs, outputs, edges, nodes), or None"},
    {"attribute_tensor", attribute_tensor, METH_VARARGS,
     "attribute_tensor(model, attribute, index): a Value, or (shape, texts)"},
    {0},
};
