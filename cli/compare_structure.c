/* What two models are made of, side by side: graphs by the names of values, weights by their own.
 */
// SPDX-License-Identifier: Apache-2.0
#include "compare.h"

#include <stdlib.h>
#include <string.h>

static bool same_text(struct cameo_text a, struct cameo_text b)
{
    return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

static void changed(struct comparison *c, const char *what, struct cameo_text was,
                    struct cameo_text is)
{
    if (!same_text(was, is))
        compare_add(c, COMPARE_STRUCTURE, "changed", what, NULL, "'%.200s' became '%.200s'",
                    was.data, is.data);
}

/* ---- attributes ---- */

static void compare_graphs(struct comparison *c, const char *place, const struct cameo_graph *a,
                           const struct cameo_graph *b, int depth);

static bool same_bytes(const void *a, size_t n, const void *b, size_t m, size_t size)
{
    return n == m && (!n || memcmp(a, b, n * size) == 0);
}

static bool same_tensors(struct comparison *c, const struct cameo_node_attribute *a,
                         const struct cameo_node_attribute *b)
{
    bool same = a->tensor_count == b->tensor_count;

    for (size_t i = 0; same && i < a->tensor_count; i++) {
        struct cameo_difference difference = CAMEO_DIFFERENCE_INIT;
        struct cameo_value *x = NULL, *y = NULL;

        same = cameo_attribute_tensor(c->a, a, i, &x, NULL) == CAMEO_OK &&
               cameo_attribute_tensor(c->b, b, i, &y, NULL) == CAMEO_OK &&
               cameo_value_difference(y, x, 0, 0, &difference, NULL) == CAMEO_OK &&
               !difference.differing;
        cameo_value_free(x);
        cameo_value_free(y);
    }
    return same;
}

static bool same_texts(const struct cameo_text *a, size_t n, const struct cameo_text *b, size_t m)
{
    bool same = n == m;

    for (size_t i = 0; same && i < n; i++)
        same = same_text(a[i], b[i]);
    return same;
}

static bool same_attribute(struct comparison *c, const struct cameo_node_attribute *a,
                           const struct cameo_node_attribute *b)
{
    return a->kind == b->kind && same_text(a->refers_to, b->refers_to) && a->i == b->i &&
           memcmp(&a->f, &b->f, sizeof a->f) == 0 && same_text(a->s, b->s) &&
           same_bytes(a->floats, a->float_count, b->floats, b->float_count, sizeof *a->floats) &&
           same_bytes(a->ints, a->int_count, b->ints, b->int_count, sizeof *a->ints) &&
           same_texts(a->strings, a->string_count, b->strings, b->string_count) &&
           same_texts(a->types, a->type_count, b->types, b->type_count) &&
           a->graph_count == b->graph_count && same_tensors(c, a, b);
}

/* "3", "0.5", "'mean'", "[1, 2]", or what kind of thing it is. */
static const char *attribute_text(char *text, size_t size, const struct cameo_node_attribute *a)
{
    size_t used = 0;

    switch (a->kind) {
    case CAMEO_ATTRIBUTE_INT:
        snprintf(text, size, "%lld", (long long)a->i);
        break;
    case CAMEO_ATTRIBUTE_FLOAT:
        snprintf(text, size, "%.9g", (double)a->f);
        break;
    case CAMEO_ATTRIBUTE_STRING:
        snprintf(text, size, "'%.60s'", a->s.data);
        break;
    case CAMEO_ATTRIBUTE_INTS:
        used = (size_t)snprintf(text, size, "[");
        for (size_t i = 0; i < a->int_count && i < 8; i++)
            used += (size_t)snprintf(text + used, size - used, "%s%lld", i ? ", " : "",
                                     (long long)a->ints[i]);
        snprintf(text + used, size - used, "%s]", a->int_count > 8 ? ", .." : "");
        break;
    default:
        snprintf(text, size, "%s", a->tensor_count ? "a tensor" : "another value");
    }
    return text;
}

static const struct cameo_node_attribute *find_attribute(const struct cameo_node *node,
                                                         struct cameo_text name)
{
    for (size_t i = 0; i < node->attribute_count; i++)
        if (same_text(node->attributes[i]->name, name))
            return node->attributes[i];
    return NULL;
}

static void compare_attributes(struct comparison *c, const char *place, const struct cameo_node *a,
                               const struct cameo_node *b, int depth)
{
    char was[260], is[260];

    for (size_t i = 0; i < a->attribute_count; i++) {
        const struct cameo_node_attribute *x = a->attributes[i], *y = find_attribute(b, x->name);

        if (!y) {
            compare_add(c, COMPARE_STRUCTURE, "changed", place, NULL,
                        "attribute '%.60s' is gone, was %s", x->name.data,
                        attribute_text(was, sizeof was, x));
            continue;
        }
        if (!same_attribute(c, x, y))
            compare_add(c, COMPARE_STRUCTURE, "changed", place, NULL,
                        "attribute '%.60s' is %s, was %s", x->name.data,
                        attribute_text(is, sizeof is, y), attribute_text(was, sizeof was, x));
        for (size_t g = 0; g < x->graph_count && g < y->graph_count; g++) {
            char inside[300];
            snprintf(inside, sizeof inside, "%.200s, %.60s", place, x->name.data);
            compare_graphs(c, inside, x->graphs[g], y->graphs[g], depth + 1);
        }
    }
    for (size_t i = 0; i < b->attribute_count; i++)
        if (!find_attribute(a, b->attributes[i]->name))
            compare_add(c, COMPARE_STRUCTURE, "changed", place, NULL,
                        "attribute '%.60s' is new: %s", b->attributes[i]->name.data,
                        attribute_text(is, sizeof is, b->attributes[i]));
}

/* ---- nodes ---- */

static const char *node_place(char *text, size_t size, const char *around,
                              const struct cameo_node *node)
{
    const char *before = around[0] ? ", " : "";

    if (node->name.size)
        snprintf(text, size, "%s%snode '%.100s' (%.60s)", around, before, node->name.data,
                 node->op_type.data);
    else
        snprintf(text, size, "%s%snode %zu (%.60s)", around, before, node->index,
                 node->op_type.data);
    return text;
}

static void compare_operands(struct comparison *c, const char *place, const char *what,
                             const struct cameo_text *a, size_t n, const struct cameo_text *b,
                             size_t m)
{
    if (n != m)
        compare_add(c, COMPARE_STRUCTURE, "changed", place, NULL, "has %zu %ss, had %zu", m, what,
                    n);
    for (size_t i = 0; i < n && i < m; i++)
        if (!same_text(a[i], b[i]))
            compare_add(c, COMPARE_STRUCTURE, "changed", place, NULL,
                        "%s %zu is '%.100s', was '%.100s'", what, i, b[i].data, a[i].data);
}

static void compare_nodes(struct comparison *c, const char *place, const struct cameo_node *a,
                          const struct cameo_node *b, int depth)
{
    const size_t before = c->count;

    if (!same_text(a->op_type, b->op_type) || !same_text(a->domain, b->domain))
        compare_add(c, COMPARE_STRUCTURE, "changed", place, NULL, "operator is %.60s, was %.60s",
                    b->op_type.data, a->op_type.data);
    if (!same_text(a->name, b->name))
        compare_add(c, COMPARE_STRUCTURE, "changed", place, NULL, "name is '%.100s'", b->name.data);
    compare_operands(c, place, "input", a->inputs, a->input_count, b->inputs, b->input_count);
    compare_operands(c, place, "output", a->outputs, a->output_count, b->outputs, b->output_count);
    compare_attributes(c, place, a, b, depth);
    c->differing[COMPARE_STRUCTURE] += c->count > before;
}

/* The node of graph that makes the first result of node. */
static const struct cameo_node *counterpart(const struct cameo_graph *graph,
                                            const struct cameo_node *node)
{
    for (size_t i = 0; i < node->output_count; i++) {
        const struct cameo_edge *edge =
            node->outputs[i].size ? cameo_graph_find_edge(graph, node->outputs[i].data) : NULL;
        if (edge && edge->maker && edge->maker->graph == graph)
            return edge->maker;
    }
    return NULL;
}

static void compare_graphs(struct comparison *c, const char *place, const struct cameo_graph *a,
                           const struct cameo_graph *b, int depth)
{
    const size_t n = cameo_graph_node_count(a), m = cameo_graph_node_count(b);
    char text[500];

    if (depth > 30)
        return;
    bool *met = cli_alloc(m, sizeof *met);
    for (size_t i = 0; i < n; i++) {
        const struct cameo_node *node = cameo_graph_node(a, i), *other = counterpart(b, node);

        c->looked[COMPARE_STRUCTURE]++;
        node_place(text, sizeof text, place, node);
        if (other && !met[other->index]) {
            met[other->index] = true;
            compare_nodes(c, text, node, other, depth);
        } else {
            c->differing[COMPARE_STRUCTURE]++;
            compare_add(c, COMPARE_STRUCTURE, "removed", text, NULL, NULL);
        }
    }
    for (size_t i = 0; i < m; i++)
        if (!met[i]) {
            c->looked[COMPARE_STRUCTURE]++;
            c->differing[COMPARE_STRUCTURE]++;
            compare_add(c, COMPARE_STRUCTURE, "added",
                        node_place(text, sizeof text, place, cameo_graph_node(b, i)), NULL, NULL);
        }
    free(met);
}

/* ---- the model around them ---- */

typedef const struct cameo_value_info *value_at_fn(const struct cameo_model *model, size_t index);

static const struct cameo_value_info *find_value(const struct cameo_model *model, value_at_fn *at,
                                                 struct cameo_text name)
{
    const struct cameo_value_info *value;

    for (size_t i = 0; (value = at(model, i)) != NULL; i++)
        if (same_text(value->name, name))
            return value;
    return NULL;
}

static void compare_ends(struct comparison *c, const char *what, value_at_fn *at)
{
    const struct cameo_value_info *value, *other;
    char place[300];

    for (size_t i = 0; (value = at(c->a, i)) != NULL; i++) {
        snprintf(place, sizeof place, "%s '%.200s'", what, value->name.data);
        other = find_value(c->b, at, value->name);
        if (!other)
            compare_add(c, COMPARE_STRUCTURE, "removed", place, NULL, NULL);
        else
            changed(c, place, value->type, other->type);
    }
    for (size_t i = 0; (value = at(c->b, i)) != NULL; i++)
        if (!find_value(c->a, at, value->name)) {
            snprintf(place, sizeof place, "%s '%.200s'", what, value->name.data);
            compare_add(c, COMPARE_STRUCTURE, "added", place, NULL, "%.200s", value->type.data);
        }
}

static int64_t opset_of(const struct cameo_model *model, struct cameo_text domain)
{
    const struct cameo_opset *opset;

    for (size_t i = 0; (opset = cameo_model_opset(model, i)) != NULL; i++)
        if (same_text(opset->domain, domain))
            return opset->version;
    return 0;
}

static void compare_opsets(struct comparison *c, const struct cameo_model *a,
                           const struct cameo_model *b, bool other_way)
{
    const struct cameo_opset *opset;
    char place[200];

    for (size_t i = 0; (opset = cameo_model_opset(a, i)) != NULL; i++) {
        const int64_t is = opset_of(b, opset->domain);
        snprintf(place, sizeof place, "opset %.100s",
                 opset->domain.size ? opset->domain.data : "ai.onnx");
        if (!is)
            compare_add(c, COMPARE_STRUCTURE, other_way ? "added" : "removed", place, NULL, NULL);
        else if (!other_way && is != opset->version)
            compare_add(c, COMPARE_STRUCTURE, "changed", place, NULL, "%lld became %lld",
                        (long long)opset->version, (long long)is);
    }
}

static const struct cameo_entry *find_entry(const struct cameo_model *model, struct cameo_text key)
{
    const struct cameo_entry *entry;

    for (size_t i = 0; (entry = cameo_model_metadata(model, i)) != NULL; i++)
        if (same_text(entry->key, key))
            return entry;
    return NULL;
}

static void compare_metadata(struct comparison *c)
{
    const struct cameo_entry *entry, *other;
    char place[200];

    for (size_t i = 0; (entry = cameo_model_metadata(c->a, i)) != NULL; i++) {
        snprintf(place, sizeof place, "metadata '%.100s'", entry->key.data);
        other = find_entry(c->b, entry->key);
        if (other)
            changed(c, place, entry->value, other->value);
        else
            compare_add(c, COMPARE_STRUCTURE, "removed", place, NULL, NULL);
    }
    for (size_t i = 0; (entry = cameo_model_metadata(c->b, i)) != NULL; i++)
        if (!find_entry(c->a, entry->key)) {
            snprintf(place, sizeof place, "metadata '%.100s'", entry->key.data);
            compare_add(c, COMPARE_STRUCTURE, "added", place, NULL, "'%.100s'", entry->value.data);
        }
}

/* Bodies by their number: functions and entries of training info keep their order. */
static void compare_bodies(struct comparison *c, enum cameo_graph_kind kind, const char *what,
                           size_t n, size_t m)
{
    const struct cameo_graph *a, *b;
    char place[200];

    if (n != m)
        compare_add(c, COMPARE_STRUCTURE, "changed", what, NULL, "there are %zu, were %zu", m, n);
    for (size_t i = 0; i < n && i < m; i++) {
        const bool has_a = cameo_model_graph(c->a, kind, i, &a, NULL) == CAMEO_OK;
        const bool has_b = cameo_model_graph(c->b, kind, i, &b, NULL) == CAMEO_OK;

        snprintf(place, sizeof place, "%s %zu", what, i);
        if (has_a && has_b)
            compare_graphs(c, place, a, b, 0);
        else if (has_a || has_b)
            compare_add(c, COMPARE_STRUCTURE, has_a ? "removed" : "added", place, NULL, NULL);
    }
}

void compare_structure(struct comparison *c)
{
    const struct cameo_summary *a = cameo_model_summary(c->a), *b = cameo_model_summary(c->b);
    const struct cameo_graph *x, *y;
    struct cameo_error err;

    if (a->ir_version != b->ir_version)
        compare_add(c, COMPARE_STRUCTURE, "changed", "IR version", NULL, "%lld became %lld",
                    (long long)a->ir_version, (long long)b->ir_version);
    changed(c, "producer", a->producer_name, b->producer_name);
    changed(c, "producer version", a->producer_version, b->producer_version);
    changed(c, "graph name", a->graph_name, b->graph_name);
    compare_opsets(c, c->a, c->b, false);
    compare_opsets(c, c->b, c->a, true);
    compare_ends(c, "input", cameo_model_input);
    compare_ends(c, "output", cameo_model_output);
    if (cameo_model_graph(c->a, CAMEO_GRAPH_MAIN, 0, &x, &err) == CAMEO_OK &&
        cameo_model_graph(c->b, CAMEO_GRAPH_MAIN, 0, &y, &err) == CAMEO_OK)
        compare_graphs(c, "", x, y, 0);
    compare_bodies(c, CAMEO_GRAPH_FUNCTION, "function", a->function_count, b->function_count);
    compare_bodies(c, CAMEO_GRAPH_INITIALIZATION, "initialization of training info",
                   a->training_count, b->training_count);
    compare_bodies(c, CAMEO_GRAPH_ALGORITHM, "algorithm of training info", a->training_count,
                   b->training_count);
    compare_metadata(c);
}

/* ---- weights ---- */

static const char *shape_text(char *text, size_t size, const struct cameo_initializer *row)
{
    size_t used = (size_t)snprintf(text, size, "%s[", cameo_dtype_name(row->dtype));

    for (size_t i = 0; i < row->rank && used + 24 < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i ? "," : "",
                                 (long long)row->dims[i]);
    snprintf(text + used, size - used, "]");
    return text;
}

static bool same_type(const struct cameo_initializer *a, const struct cameo_initializer *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && a->sparse == b->sparse &&
           (!a->rank || memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0);
}

static void compare_tensor(struct comparison *c, size_t i, size_t k)
{
    const struct cameo_initializer *a = cameo_model_initializer(c->a, i);
    const struct cameo_initializer *b = cameo_model_initializer(c->b, k);
    struct cameo_difference difference = CAMEO_DIFFERENCE_INIT;
    struct cameo_error err;
    char was[200], is[200];

    if (!same_type(a, b)) {
        compare_add(c, COMPARE_WEIGHTS, "changed", a->name.data, NULL, "%s became %s",
                    shape_text(was, sizeof was, a), shape_text(is, sizeof is, b));
    } else if (cameo_initializer_difference(c->b, k, c->a, i, c->tolerant ? c->relative : 0,
                                            c->tolerant ? c->absolute : 0, &difference,
                                            &err) != CAMEO_OK) {
        compare_add(c, COMPARE_WEIGHTS, "note", a->name.data, NULL, "not compared: %.300s",
                    err.message);
        return;
    } else if (difference.differing) {
        compare_add(c, COMPARE_WEIGHTS, "changed", a->name.data, &difference, NULL);
    } else {
        return;
    }
    c->differing[COMPARE_WEIGHTS]++;
}

void compare_weights(struct comparison *c)
{
    const struct cameo_initializer *row;
    size_t at;

    for (size_t i = 0; (row = cameo_model_initializer(c->a, i)) != NULL; i++) {
        c->looked[COMPARE_WEIGHTS]++;
        if (cameo_model_find_initializer(c->b, row->name.data, &at)) {
            compare_tensor(c, i, at);
            continue;
        }
        c->differing[COMPARE_WEIGHTS]++;
        compare_add(c, COMPARE_WEIGHTS, "removed", row->name.data, NULL, NULL);
    }
    for (size_t i = 0; (row = cameo_model_initializer(c->b, i)) != NULL; i++)
        if (!cameo_model_find_initializer(c->a, row->name.data, &at)) {
            c->looked[COMPARE_WEIGHTS]++;
            c->differing[COMPARE_WEIGHTS]++;
            compare_add(c, COMPARE_WEIGHTS, "added", row->name.data, NULL, NULL);
        }
}
