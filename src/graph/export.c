/* Graphs back to messages. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "graph/import.h"

#include "graph/module.h"
#include "graph/registry.h"
#include "onnx/tensor_data.h"

struct export
{
    const struct cm_module *module;
    struct cm_arena *arena;
    const struct cm_export_options *options; /* may be NULL */
    struct cm_str *names;    /* by value number; "" until it is read. NULL: few_names is used */
    struct cm_map few_names; /* the same for a function, which has few of a module's values */
    struct cm_map taken;
    size_t next;
    struct cm_map constants;         /* by graph: the first value that is a constant of it */
    cm_value *next_constant;         /* by value number: the one after it */
    const struct cm_graph *function; /* the graph that is written as a function; or NULL */
    CM_ARRAY(cm_value) read;         /* its constants, in the order they are read */
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
    for (size_t o = 0; o < graph->n_outputs; o++)
        cm_map_insert(&to->taken, to->arena,
                      cm_value_get(to->module, graph->outputs[o].value)->name, NULL);
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

static struct cm_str *name_slot(struct export *to, cm_value value)
{
    if (to->names)
        return &to->names[value];
    uint64_t *slot = cm_map_insert_number(&to->few_names, to->arena, value, NULL);
    if (!*slot)
        *slot = (uint64_t)(uintptr_t)CM_NEW(to->arena, struct cm_str);
    return (struct cm_str *)(uintptr_t)*slot;
}

static struct cm_str name_of(struct export *to, cm_value value)
{
    if (!value)
        return CM_STR_NONE;
    struct cm_str *name = name_slot(to, value);
    if (name->size)
        return *name;
    const struct cm_value_def *def = cm_value_get(to->module, value);
    if (!to->function)
        *name = def->name;
    else if (def->graph == to->function && def->role == CM_ROLE_INITIALIZER)
        *CM_PUSH(to->arena, &to->read) = value;
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
                                   const struct cm_graph_proto *origin, struct cm_graph_proto *out);

static enum cm_status export_body(struct export *to, const struct cm_body_ref *body,
                                  struct cm_attribute_proto *out)
{
    out->name = body->attribute;
    out->type = CM_ATTR_GRAPH;
    out->g = CM_NEW(to->arena, struct cm_graph_proto);
    cm_msg_set(&out->msg, CM_ATTRIBUTE_NAME);
    cm_msg_set(&out->msg, CM_ATTRIBUTE_TYPE);
    cm_msg_set(&out->msg, CM_ATTRIBUTE_G);
    return export_graph(to, body->graph, body->proto, out->g);
}

static enum cm_status export_attributes(struct export *to, const struct cm_node *node,
                                        const struct cm_node_form *form, struct cm_node_proto *out)
{
    const size_t n_bodies = form->without_bodies ? 0 : node->n_bodies;
    const size_t count = form->n_attributes + n_bodies;
    out->attribute.items = CM_NEW_ARRAY(to->arena, struct cm_attribute_proto, count);
    out->attribute.count = count;
    for (size_t i = 0; i < form->n_attributes; i++)
        out->attribute.items[i] = form->attributes[i];
    for (size_t i = 0; i < n_bodies; i++)
        CM_TRY(export_body(to, &node->bodies[i], &out->attribute.items[form->n_attributes + i]));
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

/* The form of a node that nobody changed. */
static void plain_form(struct export *to, const struct cm_node *node, struct cm_node_form *form)
{
    cm_value *inputs = CM_NEW_ARRAY(to->arena, cm_value, (size_t)node->n_inputs);
    for (int i = 0; i < node->n_inputs; i++)
        inputs[i] = node->inputs[i].value;
    *form = (struct cm_node_form){.domain = node->domain,
                                  .op_type = node->op_type,
                                  .overload = node->overload,
                                  .version = node->schema ? node->schema->since_version : 1,
                                  .inputs = inputs,
                                  .outputs = node->outputs,
                                  .n_inputs = (size_t)node->n_inputs,
                                  .n_outputs = (size_t)node->n_outputs,
                                  .attributes = node->attributes,
                                  .n_attributes = node->n_attributes};
}

/* The names of values, unless the message has just these already. */
static void put_names(struct export *to, const cm_value *values, size_t count, struct cm_msg *msg,
                      int field, struct cm_strs *list)
{
    bool same = list->count == count;
    struct cm_str *names = CM_NEW_ARRAY(to->arena, struct cm_str, count);
    for (size_t i = 0; i < count; i++) {
        names[i] = name_of(to, values[i]);
        same = same && cm_str_equal(names[i], list->items[i]);
    }
    if (same)
        return;
    *list = (struct cm_strs){names, count};
    cm_msg_set(msg, field);
}

static const struct cm_body_ref *find_body(const struct cm_node *node, struct cm_str attribute)
{
    for (size_t b = 0; b < node->n_bodies; b++)
        if (cm_str_equal(node->bodies[b].attribute, attribute))
            return &node->bodies[b];
    return NULL;
}

/* As the file had it, graphs in attributes excepted: they may have changed inside. A function keeps
 * nothing that only people read. */
static enum cm_status export_origin(struct export *to, const struct cm_node *node,
                                    const struct cm_node_proto *origin, struct cm_node_proto *out)
{
    *out = *origin;
    if (to->function) {
        out->msg = (struct cm_msg){0};
        out->input = out->output = (struct cm_strs){NULL, 0};
        out->name = out->doc_string = CM_STR_NONE;
        out->metadata_props = (struct cm_entries){NULL, 0};
        out->device_configurations.count = 0;
        set_str(&out->msg, CM_NODE_OP_TYPE, &out->op_type, origin->op_type);
        set_str(&out->msg, CM_NODE_DOMAIN, &out->domain, origin->domain);
        if (out->attribute.count)
            cm_msg_set(&out->msg, CM_NODE_ATTRIBUTE);
    } else if (!cm_str_equal(node->name, origin->name)) { /* a copy may have one of its own */
        set_str(&out->msg, CM_NODE_NAME, &out->name, node->name);
    }
    if (!node->n_bodies)
        return CM_OK;
    const size_t count = origin->attribute.count;
    out->attribute.items = CM_NEW_ARRAY(to->arena, struct cm_attribute_proto, count);
    for (size_t i = 0; i < count; i++) {
        struct cm_attribute_proto *attr = &out->attribute.items[i];
        const struct cm_body_ref *body = find_body(node, origin->attribute.items[i].name);
        if (!body)
            *attr = origin->attribute.items[i];
        else
            CM_TRY(export_body(to, body, attr));
    }
    cm_msg_set(&out->msg, CM_NODE_ATTRIBUTE);
    return CM_OK;
}

/* Moves *at on to the next node that is not written yet. */
static enum cm_status export_node(struct export *to, const struct cm_node **at,
                                  struct cm_node_proto *out)
{
    const struct cm_node *node = *at;
    struct cm_node_form form;
    *at = node->next;
    plain_form(to, node, &form);
    if (to->options && to->options->form)
        CM_TRY(to->options->form(to->options->form_arg, node, &form, to->err));
    for (size_t i = 1; i < form.n_nodes; i++)
        *at = (*at)->next;
    if (form.origin) {
        CM_TRY(export_origin(to, node, form.origin, out));
    } else {
        CM_TRY(export_attributes(to, node, &form, out));
        if (!to->function)
            set_str(&out->msg, CM_NODE_NAME, &out->name, node->name);
        set_str(&out->msg, CM_NODE_OP_TYPE, &out->op_type, form.op_type);
        set_str(&out->msg, CM_NODE_DOMAIN, &out->domain, form.domain);
        set_str(&out->msg, CM_NODE_OVERLOAD, &out->overload, form.overload);
        if (cm_str_is(form.op_type, "Gradient") &&
            cm_str_is(form.domain, "ai.onnx.preview.training"))
            form.n_inputs = name_gradient(to, node, out);
    }
    put_names(to, form.inputs, form.n_inputs, &out->msg, CM_NODE_INPUT, &out->input);
    put_names(to, form.outputs, form.n_outputs, &out->msg, CM_NODE_OUTPUT, &out->output);
    note_import(to, cm_domain_plain(form.origin ? form.origin->domain : form.domain), form.version);
    return CM_OK;
}

/* Written as the file had it, unless the name is another by now. */
static void export_info(struct export *to, cm_value value, struct cm_str name,
                        const struct cm_value_info_proto *origin, struct cm_value_info_proto *out)
{
    if (origin && origin->type && cm_str_equal(origin->name, name)) {
        *out = *origin;
        return;
    }
    const struct cm_type *type = cm_value_get(to->module, value)->fact.type;
    set_str(&out->msg, CM_VALUE_INFO_NAME, &out->name, name);
    out->type = CM_NEW(to->arena, struct cm_type_proto);
    cm_type_to_proto(to->arena, to->module->symbols, type, out->type);
    cm_msg_set(&out->msg, CM_VALUE_INFO_TYPE);
}

/* A file's inner graphs and functions must define what they give, and give nothing twice. */
static bool needs_copy(const struct export *to, const struct cm_graph *graph, size_t output)
{
    const cm_value value = graph->outputs[output].value;
    const struct cm_value_def *def = cm_value_get(to->module, value);
    if (!graph->parent && graph != to->function)
        return false;
    for (size_t o = 0; o < output; o++)
        if (graph->outputs[o].value == value)
            return true;
    return def->graph != graph || (graph == to->function && !def->node);
}

/* Gives value under another name, by an Identity node at the end. */
static struct cm_str export_copy(struct export *to, cm_value value, struct cm_node_proto *out)
{
    const struct cm_str from = name_of(to, value), name = new_name(to);

    *out = cm_identity_proto(to->arena, from, name);
    note_import(to, CM_STR(""), 16); /* the first that takes values of every kind */
    return name;
}

static const struct cm_value_info_proto *origin_info(const struct cm_value_infos *infos, size_t i)
{
    return infos && i < infos->count ? &infos->items[i] : NULL;
}

static void export_outputs(struct export *to, const struct cm_graph *graph,
                           const struct cm_graph_proto *origin, struct cm_graph_proto *out)
{
    out->output.count = graph->n_outputs;
    out->output.items = CM_NEW_ARRAY(to->arena, struct cm_value_info_proto, graph->n_outputs);
    for (size_t o = 0; o < graph->n_outputs; o++) {
        const cm_value value = graph->outputs[o].value;
        const struct cm_str name = needs_copy(to, graph, o)
                                       ? export_copy(to, value, &out->node.items[out->node.count++])
                                       : name_of(to, value);
        export_info(to, value, name, origin_info(origin ? &origin->output : NULL, o),
                    &out->output.items[o]);
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

static bool is_constant(const struct cm_value_def *def)
{
    return def->role == CM_ROLE_INITIALIZER || (def->role == CM_ROLE_INPUT && def->initializer);
}

/* Lists the constants of every graph, in ascending order, in one walk. */
static void list_constants(struct export *to)
{
    to->next_constant = CM_NEW_ARRAY(to->arena, cm_value, to->module->n_values);
    for (cm_value v = (cm_value)to->module->n_values - 1; v > 0; v--) {
        const struct cm_value_def *def = cm_value_get(to->module, v);
        if (!is_constant(def))
            continue;
        uint64_t *first =
            cm_map_insert_number(&to->constants, to->arena, CM_ADDRESS(def->graph), NULL);
        to->next_constant[v] = (cm_value)*first;
        *first = v;
    }
}

static bool is_read(struct export *to, cm_value value)
{
    return name_slot(to, value)->size || cm_value_get(to->module, value)->is_state;
}

/* Called when all that reads them is written. */
static enum cm_status export_constants(struct export *to, const struct cm_graph *graph,
                                       struct cm_graph_proto *out)
{
    const uint64_t *found = cm_map_find_number(&to->constants, CM_ADDRESS(graph));
    const cm_value first = found ? (cm_value)*found : 0;
    size_t count = 0;
    for (cm_value v = first; v; v = to->next_constant[v])
        count += is_read(to, v);
    out->initializer.items = CM_NEW_ARRAY(to->arena, struct cm_tensor_proto, count);
    for (cm_value v = first; v; v = to->next_constant[v])
        if (is_read(to, v))
            CM_TRY(export_constant(to, v, &out->initializer.items[out->initializer.count++]));
    if (count)
        cm_msg_set(&out->msg, CM_GRAPH_INITIALIZER);
    return CM_OK;
}

/* origin: the graph it came from, for what it says of inputs and outputs; NULL: none. */
static enum cm_status export_graph(struct export *to, const struct cm_graph *graph,
                                   const struct cm_graph_proto *origin, struct cm_graph_proto *out)
{
    set_str(&out->msg, CM_GRAPH_NAME, &out->name, graph->name.size ? graph->name : CM_STR("graph"));
    out->input.count = graph->n_inputs;
    out->input.items = CM_NEW_ARRAY(to->arena, struct cm_value_info_proto, graph->n_inputs);
    for (size_t i = 0; i < graph->n_inputs; i++)
        export_info(to, graph->inputs[i], name_of(to, graph->inputs[i]),
                    origin_info(origin ? &origin->input : NULL, i), &out->input.items[i]);
    out->node.items =
        CM_NEW_ARRAY(to->arena, struct cm_node_proto, graph->n_nodes + graph->n_outputs);
    for (const struct cm_node *node = graph->first; node;)
        CM_TRY(export_node(to, &node, &out->node.items[out->node.count++]));
    export_outputs(to, graph, origin, out);
    if (graph->n_inputs)
        cm_msg_set(&out->msg, CM_GRAPH_INPUT);
    if (out->node.count)
        cm_msg_set(&out->msg, CM_GRAPH_NODE);
    return export_constants(to, graph, out);
}

enum cm_status cm_graph_export(const struct cm_graph *graph, struct cm_arena *arena,
                               const struct cm_export_options *options, struct cm_graph_proto *out,
                               struct cm_opsets *imports, struct cm_error *err)
{
    struct export to = {.module = graph->module,
                        .arena = arena,
                        .options = options,
                        .imports = imports,
                        .err = err};
    to.names = CM_NEW_ARRAY(arena, struct cm_str, graph->module->n_values);
    collect_names(&to, graph);
    for (size_t i = 0; options && options->reserved && i < options->reserved->count; i++)
        cm_map_insert(&to.taken, arena, options->reserved->items[i].name, NULL);
    list_constants(&to);
    return export_graph(&to, graph, NULL, out);
}

/* ---- functions ---- */

static enum cm_status export_constant_node(struct export *to, cm_value value,
                                           struct cm_node_proto *out)
{
    struct cm_attribute_proto *attr = CM_NEW(to->arena, struct cm_attribute_proto);
    attr->t = CM_NEW(to->arena, struct cm_tensor_proto);
    CM_TRY(export_constant(to, value, attr->t));
    attr->t->name = CM_STR_NONE;
    cm_msg_clear(&attr->t->msg, CM_TENSOR_NAME);
    set_str(&attr->msg, CM_ATTRIBUTE_NAME, &attr->name, CM_STR("value"));
    attr->type = CM_ATTR_TENSOR;
    cm_msg_set(&attr->msg, CM_ATTRIBUTE_TYPE);
    cm_msg_set(&attr->msg, CM_ATTRIBUTE_T);
    out->attribute.items = attr;
    out->attribute.count = 1;
    cm_msg_set(&out->msg, CM_NODE_ATTRIBUTE);
    put_names(to, &value, 1, &out->msg, CM_NODE_OUTPUT, &out->output);
    set_str(&out->msg, CM_NODE_OP_TYPE, &out->op_type, CM_STR("Constant"));
    return CM_OK;
}

/* Constants stand before what reads them, and are known only when that is written. */
static enum cm_status put_constants_first(struct export *to, struct cm_nodes *nodes)
{
    struct cm_nodes all = {NULL, to->read.count + nodes->count};
    if (to->read.count == 0)
        return CM_OK;
    all.items = CM_NEW_ARRAY(to->arena, struct cm_node_proto, all.count);
    for (size_t i = 0; i < to->read.count; i++)
        CM_TRY(export_constant_node(to, to->read.items[i], &all.items[i]));
    for (size_t i = 0; i < nodes->count; i++)
        all.items[to->read.count + i] = nodes->items[i];
    *nodes = all;
    return CM_OK;
}

static bool has_bodies(const struct cm_graph *graph)
{
    for (const struct cm_node *node = graph->first; node; node = node->next)
        if (node->n_bodies)
            return true;
    return false;
}

enum cm_status cm_graph_export_function(const struct cm_graph *graph, struct cm_arena *arena,
                                        const struct cm_export_options *options, int64_t constant,
                                        struct cm_function_proto *out, struct cm_error *err)
{
    struct export to = {.module = graph->module,
                        .arena = arena,
                        .options = options,
                        .function = graph,
                        .imports = &out->opset_import,
                        .err = err};
    cm_value *outputs = CM_NEW_ARRAY(arena, cm_value, graph->n_outputs);

    if (has_bodies(graph))
        list_constants(&to);
    put_names(&to, graph->inputs, graph->n_inputs, &out->msg, CM_FUNCTION_INPUT, &out->input);
    out->node.items = CM_NEW_ARRAY(arena, struct cm_node_proto, graph->n_nodes + graph->n_outputs);
    for (const struct cm_node *node = graph->first; node;)
        CM_TRY(export_node(&to, &node, &out->node.items[out->node.count++]));
    for (size_t o = 0; o < graph->n_outputs; o++)
        outputs[o] = graph->outputs[o].value;
    put_names(&to, outputs, graph->n_outputs, &out->msg, CM_FUNCTION_OUTPUT, &out->output);
    for (size_t o = 0; o < graph->n_outputs; o++)
        if (needs_copy(&to, graph, o))
            out->output.items[o] =
                export_copy(&to, outputs[o], &out->node.items[out->node.count++]);
    CM_TRY(put_constants_first(&to, &out->node));
    if (to.read.count)
        note_import(&to, CM_STR(""), constant);
    cm_msg_set(&out->msg, CM_FUNCTION_NODE);
    cm_msg_set(&out->msg, CM_FUNCTION_OPSET_IMPORT);
    return CM_OK;
}
