/* A model as a function that can be differentiated: joined to a weighted sum of its results, cut
 * into a forward and a backward half. cameo.torch runs the halves as those of an autograd function.
 */
// SPDX-License-Identifier: Apache-2.0
#include "ext.h"

#include <stdlib.h>
#include <string.h>

/* ---- the cut between forward and backward ---- */

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
    for (size_t i = 0; i < edges;
         i++) { /* starts move to the ends of their rows, one place early */
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
    struct cameo_error err = {CAMEO_NOT_FOUND, "the model has no value of this name"};
    const struct cameo_edge *edge = cameo_graph_find_edge(cut->graph, name);

    if (!edge)
        ext_raise(state, &err);
    return edge;
}

static bool push(struct ext_state *state, struct cut *cut, const struct ext_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        if (!(cut->stack[cut->depth++] = edge_of(state, cut, names->items[i])))
            return false;
    return true;
}

/* The names of what results are copies of. */
static PyObject *copied(struct ext_state *state, struct cut *cut, const struct ext_names *results)
{
    PyObject *list = PyList_New(0);

    for (size_t i = 0; list && i < results->count; i++) {
        const struct cameo_edge *edge = edge_of(state, cut, results->items[i]);
        const bool is_copy =
            edge && edge->origin == CAMEO_EDGE_NODE && is_operator(edge->maker, "Identity");
        if (!edge || !ext_append(list, ext_text(is_copy ? edge->maker->inputs[0] : edge->name)))
            Py_CLEAR(list);
    }
    return list;
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

/* ---- models of models ---- */

static PyObject *taken_models(PyObject *first, PyObject *second)
{
    PyObject *pair = PyTuple_New(2);

    if (pair) {
        Py_INCREF(first);
        PyTuple_SetItem(pair, 0, first);
        PyTuple_SetItem(pair, 1, second);
    } else
        Py_DECREF(second);
    return pair;
}

/* Outputs in pairs: [(output of the model, input of the second), ..]. */
static bool pairs_of(PyObject *list, struct cameo_merge_pair **out, size_t *count)
{
    const Py_ssize_t size = PyList_Size(list);
    struct cameo_merge_pair *pairs = PyMem_Calloc((size_t)(size > 0 ? size : 1), sizeof *pairs);

    if (!pairs)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; pairs && !PyErr_Occurred() && i < size; i++) {
        pairs[i] = (struct cameo_merge_pair)CAMEO_MERGE_PAIR_INIT;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "ss", &pairs[i].output, &pairs[i].input))
            break;
    }
    *out = pairs;
    *count = (size_t)size;
    return !PyErr_Occurred();
}

/* The head of a text model that may be joined: its opset must be that of the model. */
static PyObject *with_head(const struct cameo_model *model, const char *graph)
{
    const struct cameo_opset *opset;
    long long version = 17;

    for (size_t i = 0; (opset = cameo_model_opset(model, i)); i++)
        if (!opset->domain.size || strcmp(opset->domain.data, "ai.onnx") == 0)
            version = opset->version;
    return PyUnicode_FromFormat("<ir_version: %lld, opset_import: [\"\" : %lld]>\n%s",
                                (long long)cameo_model_summary(model)->ir_version, version, graph);
}

/* join(model, graph, pairs): a Model in which outputs feed inputs of a graph in ONNX's text form */
static PyObject *join(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    struct cameo_load_options loading = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_merge_options merging = CAMEO_MERGE_OPTIONS_INIT;
    struct cameo_merge_pair *pairs = NULL;
    struct cameo_model *copy = NULL, *second = NULL;
    struct cameo_error err;
    PyObject *object, *list;
    const char *graph, *text = NULL;
    Py_ssize_t size = 0;
    enum cameo_status status;

    if (!PyArg_ParseTuple(args, "OsO!", &object, &graph, &PyList_Type, &list))
        return NULL;
    struct ext_model *self = ext_model_of(state, object);
    PyObject *whole = self ? with_head(self->model, graph) : NULL;
    if (whole)
        text = PyUnicode_AsUTF8AndSize(whole, &size);
    if (text && pairs_of(list, &pairs, &merging.pair_count))
        copy = ext_model_edit(state, self);
    if (!copy) {
        Py_XDECREF(whole);
        PyMem_Free(pairs);
        return NULL;
    }
    merging.pairs = pairs;
    loading.format = CAMEO_FORMAT_TEXT;
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_model_load_memory(text, (size_t)size, &loading, &second, &err);
    if (status == CAMEO_OK)
        status = cameo_model_merge(copy, second, &merging, NULL, &err);
    Py_END_ALLOW_THREADS;
    Py_DECREF(whole);
    PyMem_Free(pairs);
    if (status != CAMEO_OK) {
        cameo_model_free(copy);
        cameo_model_free(second);
        return ext_raise(state, &err);
    }
    /* What was merged refers to both, which live as long as it does. */
    PyObject *held = ext_model_new(state, second, NULL);
    PyObject *both = held ? taken_models(object, held) : NULL;
    if (!both) {
        cameo_model_free(copy);
        return NULL;
    }
    PyObject *made = ext_model_new(state, copy, both);
    Py_DECREF(both);
    return made;
}

/* step(model): the training step as a plain Model */
static PyObject *step(PyObject *module, PyObject *object)
{
    struct ext_state *state = ext_state(module);
    struct ext_model *self = ext_model_of(state, object);
    struct cameo_model *made = NULL;
    struct cameo_error err;
    enum cameo_status status;

    if (!self)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = cameo_model_step(self->model, false, &made, &err);
    Py_END_ALLOW_THREADS;
    return ext_model_edited(state, self, made, status, &err);
}

/* Those of the inputs that outputs depend on, as names in the same order; the others cannot be
 * inputs of the part. False after an exception. */
static bool inputs_in_use(struct ext_state *state, const struct cameo_model *model,
                          const struct ext_names *inputs, const struct ext_names *outputs,
                          const char **used, size_t *count)
{
    struct cut cut = {0};
    struct cameo_error err;
    bool done = false;

    *count = 0;
    if (cameo_model_graph(model, CAMEO_GRAPH_MAIN, 0, &cut.graph, &err) != CAMEO_OK)
        ext_raise(state, &err);
    else if (!cut_init(&cut, outputs->count))
        PyErr_NoMemory();
    else if (push(state, &cut, outputs))
        done = go_down_to(&cut, inputs->kept);
    for (size_t i = 0; done && i < inputs->count; i++)
        if (PyDict_GetItem(cut.fed, PyList_GetItem(inputs->kept, (Py_ssize_t)i)))
            used[(*count)++] = inputs->items[i];
    cut_release(&cut);
    return done;
}

static PyObject *part_of(struct ext_state *state, struct ext_model *self,
                         const struct ext_names *inputs, const struct ext_names *outputs)
{
    struct cameo_error err;
    const char **used = PyMem_Calloc(inputs->count + 1, sizeof(const char *));
    size_t count;
    struct cameo_model *copy = NULL;
    enum cameo_status status = CAMEO_OK;

    if (!used)
        return PyErr_NoMemory();
    if (inputs_in_use(state, self->model, inputs, outputs, used, &count))
        copy = ext_model_edit(state, self);
    if (copy) {
        Py_BEGIN_ALLOW_THREADS;
        if (cameo_model_summary(copy)->training_count)
            status = cameo_model_strip(copy, &err);
        if (status == CAMEO_OK)
            status =
                cameo_model_extract(copy, used, count, outputs->items, outputs->count, NULL, &err);
        Py_END_ALLOW_THREADS;
    }
    PyMem_Free(used);
    return copy ? ext_model_edited(state, self, copy, status, &err) : NULL;
}

/* part(model, inputs, outputs): what leads from ones to the others, without training, as a Model.
 * Of inputs it has those that outputs depend on. */
static PyObject *part(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    struct ext_names inputs, outputs;
    PyObject *object, *first, *last, *made = NULL;

    if (!PyArg_ParseTuple(args, "OO!O!", &object, &PyList_Type, &first, &PyList_Type, &last))
        return NULL;
    struct ext_model *self = ext_model_of(state, object);
    if (!self || !ext_names(first, &inputs))
        return NULL;
    if (ext_names(last, &outputs)) {
        made = part_of(state, self, &inputs, &outputs);
        ext_names_end(&outputs);
    }
    ext_names_end(&inputs);
    return made;
}

static bool store_one(struct ext_state *state, struct cameo_model *model, const char *name,
                      PyObject *array)
{
    struct cameo_error err = {CAMEO_NOT_FOUND, "the model has no initializer of this name"};
    Py_buffer view;
    size_t index;

    if (!name || PyObject_GetBuffer(array, &view, PyBUF_C_CONTIGUOUS) < 0)
        return false;
    const bool done =
        cameo_model_find_initializer(model, name, &index) &&
        cameo_model_set_initializer(model, index, view.buf, (size_t)view.len, &err) == CAMEO_OK;
    PyBuffer_Release(&view);
    if (!done)
        ext_raise(state, &err);
    return done;
}

/* store(model, {name: array}): a Model whose initializers have these values */
static PyObject *store(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    struct cameo_error err;
    PyObject *object, *dict, *name, *array;
    Py_ssize_t at = 0;

    if (!PyArg_ParseTuple(args, "OO!", &object, &PyDict_Type, &dict))
        return NULL;
    struct ext_model *self = ext_model_of(state, object);
    struct cameo_model *copy = self ? ext_model_edit(state, self) : NULL;
    if (!copy)
        return NULL;
    while (PyDict_Next(dict, &at, &name, &array))
        if (!store_one(state, copy, PyUnicode_AsUTF8AndSize(name, NULL), array)) {
            cameo_model_free(copy);
            return NULL;
        }
    return ext_model_edited(state, self, copy, CAMEO_OK, &err);
}

/* split(model, results, weights, gradients): (saved, fed, given, copied). Results and all that they
 * depend on are the forward half. Gradients are computed of values that it saves, of inputs of the
 * model that are fed again, and of what is given in place of the gradients of results. Copied are
 * the values that results are copies of: what is saved may be one of them. */
static PyObject *split(PyObject *module, PyObject *args)
{
    struct ext_state *state = ext_state(module);
    struct ext_names results = {0}, weights = {0}, gradients = {0};
    struct cameo_error err;
    struct cut cut = {0};
    PyObject *object, *lists[3], *begun = NULL, *originals = NULL, *made = NULL;

    if (!PyArg_ParseTuple(args, "OOOO", &object, &lists[0], &lists[1], &lists[2]))
        return NULL;
    struct ext_model *self = ext_model_of(state, object);
    if (!self || !ext_names(lists[0], &results) || !ext_names(lists[1], &weights) ||
        !ext_names(lists[2], &gradients))
        goto done;
    if (cameo_model_graph(self->model, CAMEO_GRAPH_MAIN, 0, &cut.graph, &err) != CAMEO_OK) {
        ext_raise(state, &err);
        goto done;
    }
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

/* values(model): the names of all values of its graph */
static PyObject *values(PyObject *module, PyObject *object)
{
    struct ext_state *state = ext_state(module);
    struct ext_model *self = ext_model_of(state, object);
    const struct cameo_graph *graph;
    const struct cameo_edge *edge;
    struct cameo_error err;

    if (!self)
        return NULL;
    if (cameo_model_graph(self->model, CAMEO_GRAPH_MAIN, 0, &graph, &err) != CAMEO_OK)
        return ext_raise(state, &err);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && (edge = cameo_graph_edge(graph, i)); i++)
        if (!ext_append(list, ext_text(edge->name)))
            Py_CLEAR(list);
    return list;
}

PyMethodDef ext_vjp_functions[] = {
    {"vjp_join", join, METH_VARARGS, "vjp_join(model, graph, [(output, input)]): a Model"},
    {"vjp_step", step, METH_O, "vjp_step(model): the training step as a Model"},
    {"vjp_part", part, METH_VARARGS, "vjp_part(model, inputs, outputs): a Model"},
    {"vjp_values", values, METH_O, "vjp_values(model): names of all values of its graph"},
    {"vjp_store", store, METH_VARARGS, "vjp_store(model, {name: array}): a Model"},
    {"vjp_split", split, METH_VARARGS,
     "vjp_split(model, results, weights, gradients): (saved, fed, given, copied)"},
    {0},
};
