/* The pass `merge`: nodes that compute the same from the same, and equal constants, become one.
 *
 * Nodes are visited in order. All that a node's results depend on is written down as bytes: the
 * operator, its attributes, its operands, the outputs it has. A node whose bytes were met before,
 * in the same graph or one around it, is replaced by the earlier one; since its operands were
 * merged before it, one walk finds everything. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "onnx/tensor_data.h"
#include "rewrite/simplify.h"

enum {
    CONSTANT_MAX = 64 << 10, /* bytes of constants that are compared: weights are not read */
    IN_KEY_MAX = 256,        /* bytes of contents that are written down; of more, their hash */
    ATTRIBUTE_MAX = 4096,    /* bytes of a tensor in an attribute, items of a list */
    ATTRIBUTES_MAX = 64,
};

struct merger {
    struct cm_module *module;
    struct cm_arena scratch;
    struct cm_map met; /* by key: a node, or the number of a constant */
    struct cm_named named;
    bool *seen; /* by value: a constant that was looked at */
    size_t n_seen;
    CM_ARRAY(char) key; /* the key being written */
    bool changed;
};

/* ---- keys ---- */

static void write_bytes(struct merger *m, const void *bytes, size_t size)
{
    CM_PUSH_ALL(&m->scratch, &m->key, bytes, size);
}

static void write_number(struct merger *m, uint64_t number)
{
    write_bytes(m, &number, sizeof number);
}

static void write_str(struct merger *m, struct cm_str text)
{
    write_number(m, text.size);
    write_bytes(m, text.data, text.size);
}

static void write_tensor(struct merger *m, const struct cm_tensor *tensor)
{
    const struct cm_str bytes = {tensor->data, cm_tensor_bytes(tensor)};
    write_number(m, tensor->type);
    write_number(m, (uint64_t)tensor->shape.rank);
    write_bytes(m, tensor->shape.dims, (size_t)tensor->shape.rank * sizeof tensor->shape.dims[0]);
    if (bytes.size <= IN_KEY_MAX)
        write_bytes(m, bytes.data, bytes.size);
    else
        write_number(m, cm_hash(bytes));
}

/* The value met under the key, made 0 when it is new. */
static uint64_t *met(struct merger *m)
{
    const struct cm_str key = {m->key.items, m->key.count};
    uint64_t *found = cm_map_find(&m->met, key);
    return found ? found
                 : cm_map_insert(&m->met, &m->scratch, cm_arena_str(&m->scratch, key), NULL);
}

/* Is `outer` the graph itself or one around it? Only then can its values be read there. */
static bool is_visible(const struct cm_graph *outer, const struct cm_graph *from)
{
    while (from && from != outer)
        from = from->parent;
    return from != NULL;
}

/* ---- constants ---- */

static bool same_contents(const struct cm_tensor *a, const struct cm_tensor *b)
{
    const size_t size = cm_tensor_bytes(a);
    return a->type == b->type && cm_shape_equal(&a->shape, &b->shape) &&
           (!size || a->data == b->data || memcmp(a->data, b->data, size) == 0);
}

/* Small enough to be compared, by its type: it is not read for that. */
static bool is_comparable(const struct merger *m, cm_value value)
{
    const struct cm_value_def *def = cm_value_get(m->module, value);
    struct cm_shape shape;
    int64_t count;
    size_t bytes;
    return def->role == CM_ROLE_INITIALIZER && !def->is_state && !cm_named_has(&m->named, value) &&
           def->fact.type->dtype != CM_STRING && cm_type_shape(def->fact.type, &shape) &&
           cm_shape_count(&shape, &count) && cm_dtype_bytes(def->fact.type->dtype, count, &bytes) &&
           bytes <= CONSTANT_MAX;
}

/* Puts an equal constant that was met before in the place of this one. */
static enum cm_status merge_constant(struct merger *m, cm_value value, struct cm_error *err)
{
    if (!value || value >= m->n_seen || m->seen[value])
        return CM_OK;
    m->seen[value] = true;
    if (!is_comparable(m, value))
        return CM_OK;
    const struct cm_tensor *constant, *other;
    CM_TRY(cm_value_constant(m->module, value, &constant, err));
    if (!constant || !constant->data)
        return CM_OK;
    m->key.count = 0;
    write_bytes(m, "c", 1);
    write_tensor(m, constant);
    uint64_t *earlier = met(m);
    struct cm_graph *graph = cm_value_get(m->module, value)->graph;
    if (!*earlier || !is_visible(cm_value_get(m->module, (cm_value)*earlier)->graph, graph)) {
        *earlier = value;
        return CM_OK;
    }
    CM_TRY(cm_value_constant(m->module, (cm_value)*earlier, &other, err));
    if (same_contents(constant, other))
        m->changed = cm_replace_value(graph, value, (cm_value)*earlier) || m->changed;
    return CM_OK;
}

/* ---- attributes ---- */

static bool write_tensor_attribute(struct merger *m, const struct cm_tensor_proto *proto)
{
    uint64_t bytes;
    if (!proto || proto->data_type == CM_STRING || cm_tensor_proto_bytes(proto, &bytes, NULL) ||
        bytes > ATTRIBUTE_MAX)
        return false;
    struct cm_tensor *tensor = CM_NEW(&m->scratch, struct cm_tensor);
    cm_tensor_defer(&m->scratch, tensor);
    if (cm_tensor_proto_load(proto, NULL, tensor, NULL))
        return false;
    write_tensor(m, tensor);
    if (bytes > IN_KEY_MAX)
        write_bytes(m, tensor->data, (size_t)bytes);
    return true;
}

static bool write_attribute(struct merger *m, const struct cm_attribute_proto *attr)
{
    write_str(m, attr->name);
    write_number(m, (uint64_t)(int64_t)attr->type);
    switch (attr->type) {
    case CM_ATTR_FLOAT:
        write_bytes(m, &attr->f, sizeof attr->f);
        return true;
    case CM_ATTR_INT:
        write_number(m, (uint64_t)attr->i);
        return true;
    case CM_ATTR_STRING:
        write_str(m, attr->s);
        return true;
    case CM_ATTR_FLOATS:
        if (attr->floats.count > ATTRIBUTE_MAX)
            return false;
        write_number(m, attr->floats.count);
        write_bytes(m, attr->floats.items, attr->floats.count * sizeof(float));
        return true;
    case CM_ATTR_INTS:
        if (attr->ints.count > ATTRIBUTE_MAX)
            return false;
        write_number(m, attr->ints.count);
        write_bytes(m, attr->ints.items, attr->ints.count * sizeof(int64_t));
        return true;
    case CM_ATTR_STRINGS:
        if (attr->strings.count > ATTRIBUTE_MAX)
            return false;
        write_number(m, attr->strings.count);
        for (size_t i = 0; i < attr->strings.count; i++)
            write_str(m, attr->strings.items[i]);
        return true;
    case CM_ATTR_TENSOR:
        return write_tensor_attribute(m, attr->t);
    default:
        return false; /* graphs, types, sparse tensors: no two are taken for equal */
    }
}

/* Does the attribute say what the schema says where it is left out? */
static bool is_default(const struct cm_node *node, const struct cm_attribute_proto *attr)
{
    const struct cm_schema_attr *known = cm_schema_find_attr(node->schema, attr->name);
    const struct cm_schema_default *preset = known ? known->preset : NULL;
    if (!preset || (int)known->kind != attr->type)
        return false;
    switch (attr->type) {
    case CM_ATTR_FLOAT:
        return memcmp(&attr->f, &preset->f, sizeof attr->f) == 0;
    case CM_ATTR_INT:
        return attr->i == preset->i;
    case CM_ATTR_STRING:
        return cm_str_is(attr->s, preset->s);
    default:
        return false;
    }
}

/* In the order of their names, which says nothing in a file. */
static bool write_attributes(struct merger *m, const struct cm_node *node)
{
    const struct cm_attribute_proto *sorted[ATTRIBUTES_MAX];
    size_t count = 0;
    if (node->n_attributes > ATTRIBUTES_MAX)
        return false;
    for (size_t i = 0; i < node->n_attributes; i++) {
        const struct cm_attribute_proto *attr = &node->attributes[i];
        if (is_default(node, attr))
            continue;
        size_t at = count++;
        for (; at > 0 && cm_str_compare(attr->name, sorted[at - 1]->name) < 0; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = attr;
    }
    write_number(m, count);
    for (size_t i = 0; i < count; i++)
        if (!write_attribute(m, sorted[i]))
            return false;
    return true;
}

/* ---- nodes ---- */

/* May another node of the same key stand for this one? */
static bool is_pure(const struct cm_node *node)
{
    return node->op && node->schema && !node->function && !node->n_bodies &&
           !(node->op->effects & (CM_RANDOM | CM_REPLACED | CM_REGION)) &&
           node->schema->determinism != CM_RANDOM_OUTPUT;
}

static bool write_node(struct merger *m, const struct cm_node *node)
{
    m->key.count = 0;
    write_bytes(m, "n", 1);
    write_bytes(m, &node->schema, sizeof node->schema);
    write_number(m, (uint64_t)node->n_inputs);
    for (int i = 0; i < node->n_inputs; i++)
        write_bytes(m, &node->inputs[i].value, sizeof node->inputs[i].value);
    write_number(m, (uint64_t)node->n_outputs);
    for (int o = 0; o < node->n_outputs; o++)
        write_bytes(m, node->outputs[o] ? "1" : "0", 1);
    return write_attributes(m, node);
}

static bool makes_named(const struct merger *m, const struct cm_node *node)
{
    for (int o = 0; o < node->n_outputs; o++)
        if (node->outputs[o] && cm_named_has(&m->named, node->outputs[o]))
            return true;
    return false;
}

static void merge_node(struct merger *m, struct cm_node *node)
{
    if (!is_pure(node) || makes_named(m, node) || !write_node(m, node))
        return;
    uint64_t *place = met(m);
    const struct cm_node *earlier = (const struct cm_node *)(uintptr_t)*place;
    if (!earlier || !is_visible(earlier->graph, node->graph)) {
        *place = (uint64_t)(uintptr_t)node;
        return;
    }
    for (int o = 0; o < node->n_outputs; o++)
        if (node->outputs[o] &&
            cm_replace_value(node->graph, node->outputs[o], earlier->outputs[o]))
            m->changed = true;
}

static enum cm_status merge_graph(struct merger *m, struct cm_graph *graph, struct cm_error *err)
{
    for (struct cm_node *node = graph->first; node; node = node->next) {
        for (int i = 0; i < node->n_inputs; i++)
            CM_TRY(merge_constant(m, node->inputs[i].value, err));
        for (size_t b = 0; b < node->n_bodies; b++)
            if (node->bodies[b].graph)
                CM_TRY(merge_graph(m, node->bodies[b].graph, err));
        merge_node(m, node);
    }
    return CM_OK;
}

enum cm_status cm_pass_merge(struct cm_graph *graph, const struct cm_pass_options *options,
                             struct cm_error *err)
{
    (void)options;
    struct merger m = {.module = graph->module, .n_seen = cm_module_value_count(graph->module)};
    cm_arena_init(&m.scratch, cm_module_arena(graph->module)->guard);
    m.seen = CM_NEW_ARRAY(&m.scratch, bool, m.n_seen);
    if (cm_module_had(graph->module, CM_HAD_REPLACED))
        for (struct cm_node *node = NULL; (node = cm_graph_next_node(graph, node));)
            cm_named_note(&m.named, &m.scratch, node);
    cm_map_reserve(&m.met, &m.scratch, graph->n_nodes);
    enum cm_status status = merge_graph(&m, graph, err);
    if (!status && m.changed) {
        cm_graph_remove_dead(graph);
        status = cm_graph_retype(graph, err);
    }
    cm_arena_release(&m.scratch);
    return status;
}
