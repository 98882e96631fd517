/* Graphs back to messages. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/import.h"

#include "graph/module.h"
#include "graph/registry.h"
#include "onnx/tensor_data.h"

struct export
{
    const struct cm_module *module;
    struct cm_arena *arena;
    struct cm_str *names; /* by value number; made on first use */
    struct cm_map taken;
    size_t next;
    struct cm_opsets *imports;
    struct cm_error *err;
};

static void collect_names(struct export *to, const struct cm_graph *graph)
{
    for (const struct cm_node *node = graph->first; node; node = node->next) {
        for (int o = 0; o < node->n_outputs; o++)
            if (node->outputs[o])
                cm_map_insert(&to->taken, to->arena,
                              cm_value_get(to->module, node->outputs[o])->name, NULL);
        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i].value)
                cm_map_insert(&to->taken, to->arena,
                              cm_value_get(to->module, node->inputs[i].value)->name, NULL);
        for (size_t b = 0; b < node->n_bodies; b++)
            if (node->bodies[b].graph)
                collect_names(to, node->bodies[b].graph);
    }
    for (size_t i = 0; i < graph->n_inputs; i++)
        cm_map_insert(&to->taken, to->arena, cm_value_get(to->module, graph->inputs[i])->name,
                      NULL);
}

static struct cm_str new_name(struct export *to)
{
    struct cm_str name;
    bool added = false;
    do {
        name = cm_arena_printf(to->arena, "t%zu", ++to->next);
        cm_map_insert(&to->taken, to->arena, name, &added);
    } while (!added);
    return name;
}

static struct cm_str name_of(struct export *to, cm_value value)
{
    if (!value)
        return CM_STR_NONE;
    struct cm_str *name = &to->names[value];
    if (name->size)
        return *name;
    *name = cm_value_get(to->module, value)->name;
    if (!name->size)
        *name = new_name(to);
    return *name;
}

static void note_import(struct export *to, struct cm_str domain, int64_t needed)
{
    for (size_t i = 0; i < to->imports->count; i++) {
        struct cm_opset_proto *import = &to->imports->items[i];
        if (!cm_str_equal(cm_domain_plain(import->domain), domain))
            continue;
        if (import->version < needed) {
            import->version = needed;
            cm_msg_set(&import->msg, CM_OPSET_VERSION);
        }
        return;
    }
    struct cm_opset_proto *import = CM_LIST_ADD(to->arena, to->imports);
    import->domain = domain;
    import->version = needed;
    cm_msg_set(&import->msg, CM_OPSET_DOMAIN);
    cm_msg_set(&import->msg, CM_OPSET_VERSION);
}

static enum cm_status export_graph(struct export *to, const struct cm_graph *graph,
                                   struct cm_graph_proto *out);

static enum cm_status export_attributes(struct export *to, const struct cm_node *node,
                                        struct cm_node_proto *out)
{
    const size_t count = node->n_attributes + node->n_bodies;
    out->attribute.items = CM_NEW_ARRAY(to->arena, struct cm_attribute_proto, count);
    out->attribute.count = count;
    for (size_t i = 0; i < node->n_attributes; i++)
        out->attribute.items[i] = node->attributes[i];
    for (size_t i = 0; i < node->n_bodies; i++) {
        struct cm_attribute_proto *attr = &out->attribute.items[node->n_attributes + i];
        attr->name = node->bodies[i].attribute;
        attr->type = CM_ATTR_GRAPH;
        attr->g = CM_NEW(to->arena, struct cm_graph_proto);
        cm_msg_set(&attr->msg, CM_ATTRIBUTE_NAME);
        cm_msg_set(&attr->msg, CM_ATTRIBUTE_TYPE);
        cm_msg_set(&attr->msg, CM_ATTRIBUTE_G);
        CM_TRY(export_graph(to, node->bodies[i].graph, attr->g));
    }
    if (count)
        cm_msg_set(&out->msg, CM_NODE_ATTRIBUTE);
    return CM_OK;
}

static void set_str(struct cm_msg *msg, int field, struct cm_str *member, struct cm_str value)
{
    if (!value.size)
        return;
    *member = value;
    cm_msg_set(msg, field);
}

/* Gradient names values in attributes; the importer made them operands behind the given ones
 * (import.c), which here become names again, as they are called now. Returns how many operands the
 * file has. */
static size_t name_gradient(struct export *to, const struct cm_node *node,
                            struct cm_node_proto *out)
{
    const size_t n_xs = cm_node_strs(node, "xs").count;
    const size_t n = n_xs + cm_node_strs(node, "zs").count;
    for (size_t a = 0; a < out->attribute.count; a++) {
        struct cm_attribute_proto *attr = &out->attribute.items[a];
        if (cm_str_is(attr->name, "y")) {
            attr->s = name_of(to, node->inputs[n].value);
            cm_msg_set(&attr->msg, CM_ATTRIBUTE_S);
            continue;
        }
        const bool zs = cm_str_is(attr->name, "zs");
        if (!zs && !cm_str_is(attr->name, "xs"))
            continue;
        attr->strings.items = CM_NEW_ARRAY(to->arena, struct cm_str, attr->strings.count);
        for (size_t i = 0; i < attr->strings.count; i++)
            attr->strings.items[i] = name_of(to, node->inputs[n + 1 + (zs ? n_xs : 0) + i].value);
        cm_msg_set(&attr->msg, CM_ATTRIBUTE_STRINGS);
    }
    return n;
}

static enum cm_status export_node(struct export *to, const struct cm_node *node,
                                  struct cm_node_proto *out)
{
    CM_TRY(export_attributes(to, node, out));
    out->input.count = (size_t)node->n_inputs;
    if (cm_str_is(node->op_type, "Gradient") && cm_str_is(node->domain, "ai.onnx.preview.training"))
        out->input.count = name_gradient(to, node, out);
    out->input.items = CM_NEW_ARRAY(to->arena, struct cm_str, out->input.count);
    for (size_t i = 0; i < out->input.count; i++)
        out->input.items[i] = name_of(to, node->inputs[i].value);
    out->output.count = (size_t)node->n_outputs;
    out->output.items = CM_NEW_ARRAY(to->arena, struct cm_str, out->output.count);
    for (size_t o = 0; o < out->output.count; o++)
        out->output.items[o] = name_of(to, node->outputs[o]);
    if (out->input.count)
        cm_msg_set(&out->msg, CM_NODE_INPUT);
    if (out->output.count)
        cm_msg_set(&out->msg, CM_NODE_OUTPUT);
    set_str(&out->msg, CM_NODE_NAME, &out->name, node->name);
    set_str(&out->msg, CM_NODE_OP_TYPE, &out->op_type, node->op_type);
    set_str(&out->msg, CM_NODE_DOMAIN, &out->domain, node->domain);
    set_str(&out->msg, CM_NODE_OVERLOAD, &out->overload, node->overload);
    note_import(to, node->domain, node->schema ? node->schema->since_version : 1);
    return CM_OK;
}

static void export_info(struct export *to, cm_value value, struct cm_str name,
                        struct cm_value_info_proto *out)
{
    const struct cm_type *type = cm_value_get(to->module, value)->fact.type;
    set_str(&out->msg, CM_VALUE_INFO_NAME, &out->name, name);
    out->type = CM_NEW(to->arena, struct cm_type_proto);
    cm_type_to_proto(to->arena, to->module->symbols, type, out->type);
    cm_msg_set(&out->msg, CM_VALUE_INFO_TYPE);
}

/* A file's inner graphs must define what they give, and give nothing twice. */
static bool needs_copy(const struct export *to, const struct cm_graph *graph, size_t output)
{
    const cm_value value = graph->outputs[output].value;
    if (!graph->parent)
        return false;
    for (size_t o = 0; o < output; o++)
        if (graph->outputs[o].value == value)
            return true;
    return cm_value_get(to->module, value)->graph != graph;
}

/* Gives value under another name, by an Identity node at the end. */
static struct cm_str export_copy(struct export *to, cm_value value, struct cm_node_proto *out)
{
    struct cm_str *names = CM_NEW_ARRAY(to->arena, struct cm_str, 2);
    names[0] = name_of(to, value);
    names[1] = new_name(to);
    out->input = (struct cm_strs){.items = &names[0], .count = 1};
    out->output = (struct cm_strs){.items = &names[1], .count = 1};
    cm_msg_set(&out->msg, CM_NODE_INPUT);
    cm_msg_set(&out->msg, CM_NODE_OUTPUT);
    set_str(&out->msg, CM_NODE_OP_TYPE, &out->op_type, CM_STR("Identity"));
    note_import(to, CM_STR(""), 16); /* the first that takes values of every kind */
    return names[1];
}

static void export_outputs(struct export *to, const struct cm_graph *graph,
                           struct cm_graph_proto *out)
{
    out->output.count = graph->n_outputs;
    out->output.items = CM_NEW_ARRAY(to->arena, struct cm_value_info_proto, graph->n_outputs);
    for (size_t o = 0; o < graph->n_outputs; o++) {
        const cm_value value = graph->outputs[o].value;
        const struct cm_str name = needs_copy(to, graph, o)
                                       ? export_copy(to, value, &out->node.items[out->node.count++])
                                       : name_of(to, value);
        export_info(to, value, name, &out->output.items[o]);
    }
    if (graph->n_outputs)
        cm_msg_set(&out->msg, CM_GRAPH_OUTPUT);
}

/* A constant becomes an initializer of the graph that defines it, when something there or inside
 * reads it. */
static enum cm_status export_constant(struct export *to, cm_value value,
                                      struct cm_tensor_proto *out)
{
    struct cm_value_def *def = cm_value_get(to->module, value);
    if (def->initializer) {
        *out = *def->initializer;
    } else {
        CM_TRY(cm_tensor_proto_store(out, to->arena, def->fact.constant, to->err));
    }
    const struct cm_str name = name_of(to, value);
    if (!cm_str_equal(out->name, name)) {
        out->name = name;
        cm_msg_set(&out->msg, CM_TENSOR_NAME);
    }
    return CM_OK;
}

static enum cm_status export_constants(struct export *to, const struct cm_graph *graph,
                                       struct cm_graph_proto *out)
{
    size_t count = 0;
    for (int pass = 0; pass < 2; pass++) {
        count = 0;
        for (cm_value v = 1; v < to->module->n_values; v++) {
            const struct cm_value_def *def = cm_value_get(to->module, v);
            const bool constant = def->role == CM_ROLE_INITIALIZER ||
                                  (def->role == CM_ROLE_INPUT && def->initializer);
            if (def->graph != graph || !constant || (!def->n_uses && !def->is_state))
                continue;
            if (pass == 1)
                CM_TRY(export_constant(to, v, &out->initializer.items[count]));
            count++;
        }
        if (pass == 0)
            out->initializer.items = CM_NEW_ARRAY(to->arena, struct cm_tensor_proto, count);
    }
    out->initializer.count = count;
    if (count)
        cm_msg_set(&out->msg, CM_GRAPH_INITIALIZER);
    return CM_OK;
}

static enum cm_status export_graph(struct export *to, const struct cm_graph *graph,
                                   struct cm_graph_proto *out)
{
    set_str(&out->msg, CM_GRAPH_NAME, &out->name, graph->name.size ? graph->name : CM_STR("graph"));
    out->input.count = graph->n_inputs;
    out->input.items = CM_NEW_ARRAY(to->arena, struct cm_value_info_proto, graph->n_inputs);
    for (size_t i = 0; i < graph->n_inputs; i++)
        export_info(to, graph->inputs[i], name_of(to, graph->inputs[i]), &out->input.items[i]);
    out->node.items =
        CM_NEW_ARRAY(to->arena, struct cm_node_proto, graph->n_nodes + graph->n_outputs);
    for (const struct cm_node *node = graph->first; node; node = node->next)
        CM_TRY(export_node(to, node, &out->node.items[out->node.count++]));
    export_outputs(to, graph, out);
    if (graph->n_inputs)
        cm_msg_set(&out->msg, CM_GRAPH_INPUT);
    if (out->node.count)
        cm_msg_set(&out->msg, CM_GRAPH_NODE);
    return export_constants(to, graph, out);
}

enum cm_status cm_graph_export(const struct cm_graph *graph, struct cm_arena *arena,
                               struct cm_graph_proto *out, struct cm_opsets *imports,
                               struct cm_error *err)
{
    struct export to = {.module = graph->module, .arena = arena, .imports = imports, .err = err};
    to.names = CM_NEW_ARRAY(arena, struct cm_str, graph->module->n_values);
    collect_names(&to, graph);
    return export_graph(&to, graph, out);
}
