/* A model with gradients, cut into a forward and a backward half. cameo.torch runs the halves as
 * those of an autograd function. */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum side { SIDE_NONE, SIDE_FORWARD, SIDE_BACKWARD };

/* The nodes of the main graph, what each reads, and to which side it belongs. */
struct cut {
    const struct cameo_graph *graph;
    size_t node_count;
    size_t *starts; /* node i reads reads[starts[i]] and on, up to starts[i + 1] */
    const struct cameo_edge **reads;
    unsigned char *sides;
    const struct cameo_edge **stack; /* edges that are still to be followed */
    size_t depth;
    PyObject *saved, *fed; /* names, without repetition: dicts */
};

/* A node of a body counts as the node of the main graph that the body belongs to. */
static size_t outermost(const struct cut *cut, const struct cameo_node *node)
{
    while (node->graph != cut->graph)
        node = cameo_graph_owner(node->graph);
    return node->index;
}

/* The main graph; false after an exception. */
static bool cut_begin(struct ext_state *state, const struct ext_model *model, struct cut *cut)
{
    struct cameo_error err;
    enum cameo_status status;

    /* Whoever holds the model may wait for the interpreter lock, in an operator written in Python.
     */
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_model_graph(model->model, CAMEO_GRAPH_MAIN, 0, &cut->graph, &err);
    Py_END_ALLOW_THREADS;
    if (status != CAMEO_OK)
        ext_raise(state, &err);
    return status == CAMEO_OK;
}

/* roots: how many edges are asked for at most. */
static bool cut_init(struct cut *cut, size_t roots)
{
    const size_t edges = cameo_graph_edge_count(cut->graph);
    size_t total = 0;

    cut->node_count = cameo_graph_node_count(cut->graph);
    cut->starts = calloc(cut->node_count + 2, sizeof *cut->starts);
    if (!cut->starts)
        return false;
    for (size_t i = 0; i < edges; i++) {
        const struct cameo_edge *edge = cameo_graph_edge(cut->graph, i);
        for (size_t r = 0; r < edge->reader_count; r++)
            cut->starts[outermost(cut, edge->readers[r]) + 2]++, total++;
    }
    for (size_t i = 2; i < cut->node_count + 2; i++)
        cut->starts[i] += cut->starts[i - 1];
    cut->reads = calloc(total + 1, sizeof(const struct cameo_edge *));
    cut->sides = calloc(cut->node_count + 1, 1);
    cut->stack = calloc(total + roots + 1, sizeof(const struct cameo_edge *));
    cut->saved = PyDict_New();
    cut->fed = PyDict_New();
    if (!cut->reads || !cut->sides || !cut->stack || !cut->saved || !cut->fed)
        return false;
    /* Starts move to the ends of their rows, which are the starts of the next ones. */
    for (size_t i = 0; i < edges; i++) {
        const struct cameo_edge *edge = cameo_graph_edge(cut->graph, i);
        for (size_t r = 0; r < edge->reader_count; r++)
            cut->reads[cut->starts[outermost(cut, edge->readers[r]) + 1]++] = edge;
    }
    return true;
}

static void cut_release(struct cut *cut)
{
    free(cut->starts);
    free(cut->reads);
    free(cut->sides);
    free(cut->stack);
    Py_XDECREF(cut->saved);
    Py_XDECREF(cut->fed);
}

static bool note(PyObject *dict, struct cameo_text name)
{
    PyObject *text = ext_text(name);
    const bool done = text && PyDict_SetItem(dict, text, Py_None) == 0;

    Py_XDECREF(text);
    return done;
}

static void push_reads(struct cut *cut, size_t node)
{
    for (size_t i = cut->starts[node]; i < cut->starts[node + 1]; i++)
        cut->stack[cut->depth++] = cut->reads[i];
}

/* Everything that the edges on the stack depend on is of the forward side. */
static void go_forward(struct cut *cut)
{
    while (cut->depth) {
        const struct cameo_edge *edge = cut->stack[--cut->depth];
        if (edge->origin != CAMEO_EDGE_NODE || cut->sides[edge->maker->index] == SIDE_FORWARD)
            continue;
        cut->sides[edge->maker->index] = SIDE_FORWARD;
        push_reads(cut, edge->maker->index);
    }
}

static bool is_operator(const struct cameo_node *node, const char *name)
{
    return !node->domain.size && strcmp(node->op_type.data, name) == 0;
}

/* A shape is all that the backward half needs to know of many values: then it is saved, and not the
 * value. */
static bool is_shape_of_forward(const struct cut *cut, const struct cameo_node *node)
{
    if (node->input_count != 1 || !(is_operator(node, "Shape") || is_operator(node, "Size")))
        return false;
    const struct cameo_edge *read = cameo_graph_find_edge(cut->graph, node->inputs[0].data);
    return read && read->origin == CAMEO_EDGE_NODE &&
           cut->sides[read->maker->index] == SIDE_FORWARD;
}

/* Constants are in both halves. */
static bool is_saved(const struct cut *cut, const struct cameo_node *node)
{
    return (cut->sides[node->index] == SIDE_FORWARD && !is_operator(node, "Constant")) ||
           is_shape_of_forward(cut, node);
}

/* What the backward half does not compute is saved by the forward half, or fed. */
static bool go_backward(struct cut *cut)
{
    while (cut->depth) {
        const struct cameo_edge *edge = cut->stack[--cut->depth];
        if (edge->origin == CAMEO_EDGE_INPUT && !note(cut->fed, edge->name))
            return false;
        if (edge->origin != CAMEO_EDGE_NODE || cut->sides[edge->maker->index] == SIDE_BACKWARD)
            continue;
        if (is_saved(cut, edge->maker)) {
            if (!note(cut->saved, edge->name))
                return false;
            continue;
        }
        cut->sides[edge->maker->index] = SIDE_BACKWARD;
        push_reads(cut, edge->maker->index);
    }
    return true;
}

/* Notes which of the values in stops the edges on the stack depend on. */
static bool go_down_to(struct cut *cut, PyObject *stops)
{
    while (cut->depth) {
        const struct cameo_edge *edge = cut->stack[--cut->depth];
        PyObject *name = ext_text(edge->name);
        const int stop = name ? PySequence_Contains(stops, name) : -1;
        const bool noted = stop != 1 || PyDict_SetItem(cut->fed, name, Py_None) == 0;

        Py_XDECREF(name);
        if (stop < 0 || !noted)
            return false;
        if (stop || edge->origin != CAMEO_EDGE_NODE || cut->sides[edge->maker->index])
            continue;
        cut->sides[edge->maker->index] = SIDE_BACKWARD;
        push_reads(cut, edge->maker->index);
    }
    return true;
}

static const struct cameo_edge *edge_of(struct ext_state *state, const struct cut *cut,
                                        const char *name)
{
    struct cameo_error err = {.status = CAMEO_NOT_FOUND};
    const struct cameo_edge *edge = cameo_graph_find_edge(cut->graph, name);

    if (!edge) {
        snprintf(err.message, sizeof err.message, "the model has no value '%s'", name);
        ext_raise(state, &err);
    }
    return edge;
}

static bool push(struct ext_state *state, struct cut *cut, const struct ext_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        if (!(cut->stack[cut->depth++] = edge_of(state, cut, names->items[i])))
            return false;
    return true;
}

/* Results by the names of what they are copies of, and by their own: {name: index}. */
static PyObject *copied(struct ext_state *state, struct cut *cut, const struct ext_names *results)
{
    PyObject *dict = PyDict_New();

    for (size_t i = 0; dict && i < results->count; i++) {
        const struct cameo_edge *edge = edge_of(state, cut, results->items[i]);
        while (edge) {
            PyObject *name = ext_text(edge->name), *index = PyLong_FromSize_t(i);
            const bool done = name && index && PyDict_SetItem(dict, name, index) == 0;

            Py_XDECREF(name);
            Py_XDECREF(index);
            if (!done)
                break;
            if (edge->origin != CAMEO_EDGE_NODE || !is_operator(edge->maker, "Identity"))
                edge = NULL;
            else
                edge = cameo_graph_find_edge(cut->graph, edge->maker->inputs[0].data);
        }
        if (PyErr_Occurred())
            Py_CLEAR(dict);
    }
    return dict;
}

/* Results are multiplied by weights before they are summed, so their gradients are the weights
 * times ones: the product that the backward half begins with. Its place is where the weights are
 * fed, under its name; nothing of the sum is then computed. */
static PyObject *given(struct ext_state *state, struct cut *cut, const struct ext_names *weights)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < weights->count; i++) {
        const struct cameo_edge *edge = edge_of(state, cut, weights->items[i]);
        struct cameo_text name = edge ? edge->name : (struct cameo_text){"", 0};
        if (edge && edge->reader_count == 2) {
            const struct cameo_node *a = edge->readers[0], *b = edge->readers[1];
            const struct cameo_node *last = a->index > b->index ? a : b;
            if (a->graph == cut->graph && b->graph == cut->graph && last->output_count == 1 &&
                is_operator(last, "Mul")) {
                name = last->outputs[0];
                cut->sides[last->index] = SIDE_BACKWARD;
            }
        }
        if (!edge || !ext_append(list, ext_text(name)))
            Py_CLEAR(list);
    }
    return list;
}

/* used(model, inputs, outputs): those of the values named as inputs that outputs depend on */
static PyObject *used(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    struct ext_names outputs = {0};
    struct cut cut = {0};
    PyObject *object, *inputs, *last, *made = NULL;

    if (!PyArg_ParseTuple(args, "OOO", &object, &inputs, &last))
        return NULL;
    struct ext_model *self = ext_model_of(state, object);
    if (!self || !ext_names(last, &outputs))
        return NULL;
    const bool begun = cut_begin(state, self, &cut);
    if (begun && !cut_init(&cut, outputs.count))
        PyErr_NoMemory();
    else if (begun && push(state, &cut, &outputs) && go_down_to(&cut, inputs))
        made = PyDict_Keys(cut.fed);
    cut_release(&cut);
    ext_names_end(&outputs);
    return made;
}

/* split(model, results, weights, gradients): (saved, fed, given, copied). Results and all that they
 * depend on are the forward half. Gradients are computed of values that it saves, of inputs of the
 * model that are fed again, and of what is given in place of the gradients of results. Copied are
 * the values that results are copies of: what is saved may be one of them. */
static PyObject *split(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    struct ext_names results = {0}, weights = {0}, gradients = {0};
    struct cut cut = {0};
    PyObject *object, *lists[3], *begun = NULL, *originals = NULL, *made = NULL;

    if (!PyArg_ParseTuple(args, "OOOO", &object, &lists[0], &lists[1], &lists[2]))
        return NULL;
    struct ext_model *self = ext_model_of(state, object);
    if (!self || !ext_names(lists[0], &results) || !ext_names(lists[1], &weights) ||
        !ext_names(lists[2], &gradients))
        goto done;
    if (!cut_begin(state, self, &cut))
        goto done;
    if (!cut_init(&cut, results.count + gradients.count)) {
        PyErr_NoMemory();
        goto done;
    }
    if (!push(state, &cut, &results))
        goto done;
    go_forward(&cut);
    begun = given(state, &cut, &weights);
    originals = begun ? copied(state, &cut, &results) : NULL;
    if (originals && push(state, &cut, &gradients) && go_backward(&cut))
        made =
            Py_BuildValue("(NNOO)", PyDict_Keys(cut.saved), PyDict_Keys(cut.fed), begun, originals);
done:
    Py_XDECREF(begun);
    Py_XDECREF(originals);
    cut_release(&cut);
    ext_names_end(&results);
    ext_names_end(&weights);
    ext_names_end(&gradients);
    return made;
}

/* random_operators(model): names of its operators that draw numbers */
static PyObject *random_operators(PyObject *module, PyObject *object)
{
    struct ext_model *self = ext_model_of(ext_state(module), object);
    PyObject *list = self ? PyList_New(0) : NULL;
    const struct cameo_operator *row;

    for (size_t i = 0; list && (row = cameo_model_operator(self->model, i)); i++)
        if (row->is_random && !ext_append(list, ext_text(row->name)))
            Py_CLEAR(list);
    return list;
}

PyMethodDef ext_vjp_functions[] = {
    {"used_values", used, METH_VARARGS, "used_values(model, values, outputs): [name]"},
    {"random_operators", random_operators, METH_O, "random_operators(model): [name]"},
    {"split_gradient", split, METH_VARARGS,
     "split_gradient(model, results, weights, gradients): (saved, fed, given, copied)"},
    {0},
};
