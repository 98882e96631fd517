/* Regions of the ONNX dialect as graphs. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "mlir/dialect/dialect_read.h"
#include "onnx/syntax_names.h"

struct inputs {
    CM_ARRAY(struct cm_value_info_proto);
};

/* A region while it becomes a graph. */
struct graph_reading {
    struct cm_dialect_reader *r;
    const struct cm_dialect_region *region;
    const struct cm_dialect_op *function; /* NULL: it is a region of a node */
    const struct cm_dialect_entries *notes;
    const char *prefix;
    struct cm_graph_proto *out;
    struct cm_dialect_names names;
    const struct cm_dialect_attr
        *initializers; /* a list of what is said of each; NULL: nothing is */
    size_t n_initializers;
    struct inputs arguments;
    CM_ARRAY(struct cm_value_info_proto) given; /* inputs that initializers give the value of */
    CM_ARRAY(int64_t) places;                   /* of these among the inputs */
    CM_ARRAY(struct cm_node_proto) nodes;
    CM_ARRAY(struct cm_tensor_proto) tensors;
    CM_ARRAY(struct cm_sparse_proto) sparse;
    struct inputs value_info; /* of what another program wrote */
};

static const struct cm_dialect_attr *note(const struct graph_reading *g, const char *key)
{
    char name[64];

    snprintf(name, sizeof name, "%s%s", g->prefix, key);
    return cm_dialect_get(g->notes, name);
}

static struct cm_strs one_name(struct cm_dialect_reader *r, struct cm_str name)
{
    struct cm_strs out = {CM_NEW(r->arena, struct cm_str), 1};

    out.items[0] = name;
    return out;
}

static struct cm_str result_name(const struct cm_dialect_op *op)
{
    return op->results.count ? op->results.items[0].name : CM_STR_NONE;
}

static void define(struct graph_reading *g, const struct cm_dialect_op *op, struct cm_str name)
{
    const struct cm_str ssa = result_name(op);

    if (ssa.size)
        cm_dialect_name_values(g->r, &g->names, ssa, one_name(g->r, name));
}

/* An argument of a region: the list of inputs says what it is. */
static enum cm_status read_region_arguments(struct graph_reading *g)
{
    struct cm_dialect_reader *const r = g->r;
    const struct cm_dialect_arguments *const arguments = &g->region->arguments;
    const struct cm_dialect_attr *const list = note(g, "input");

    if (list && (list->kind != CM_DIALECT_ATTR_ARRAY || list->items.count != arguments->count))
        return cm_dialect_refuse(r, list->at, CM_BAD_MODEL, "expected a list of %zu inputs",
                                 arguments->count);
    for (size_t i = 0; i < arguments->count; i++) {
        const struct cm_dialect_argument *const argument = &arguments->items[i];
        struct cm_value_info_proto *const value = CM_PUSH(r->arena, &g->arguments);

        *value = (struct cm_value_info_proto){0};
        if (list) {
            CM_TRY(cm_dialect_read_message(r, &cm_value_info_info, &list->items.items[i], value));
        } else {
            value->name = cm_dialect_new_name(r, &g->names, argument->ssa.name, 0, 1);
            cm_msg_set(&value->msg, CM_VALUE_INFO_NAME);
            if (argument->type.kind == CM_DIALECT_TYPE_PROTO) {
                value->type = argument->type.proto;
                cm_msg_set(&value->msg, CM_VALUE_INFO_TYPE);
            }
        }
        cm_dialect_name_values(r, &g->names, argument->ssa.name, one_name(r, value->name));
    }
    return CM_OK;
}

static enum cm_status read_function_arguments(struct graph_reading *g)
{
    struct cm_dialect_reader *const r = g->r;
    const struct cm_dialect_arguments *const arguments = &g->region->arguments;

    for (size_t i = 0; i < arguments->count; i++) {
        const struct cm_dialect_argument *const argument = &arguments->items[i];
        struct cm_value_info_proto value = {0};

        CM_TRY(cm_dialect_read_declared(r, &argument->attrs, "onnx.", &argument->type, &value));
        if (r->foreign && !cm_msg_has(&value.msg, CM_VALUE_INFO_NAME)) {
            value.name = cm_dialect_new_name(r, &g->names, argument->ssa.name, 0, 1);
            cm_msg_set(&value.msg, CM_VALUE_INFO_NAME);
        }
        cm_dialect_name_values(r, &g->names, argument->ssa.name, one_name(r, value.name));
        if (!cm_dialect_get(&argument->attrs, "onnx.outer"))
            *CM_PUSH(r->arena, &g->arguments) = value;
    }
    return CM_OK;
}

/* An initializer that has been an input of the graph, at this place. */
static enum cm_status note_input(struct graph_reading *g, const struct cm_dialect_entries *notes,
                                 const struct cm_dialect_type *type, struct cm_str name)
{
    struct cm_dialect_reader *const r = g->r;
    const struct cm_dialect_attr *const place = cm_dialect_get(notes, "input");
    const struct cm_dialect_attr *const declared = cm_dialect_get(notes, "declared");
    int64_t index;

    if (!place)
        return CM_OK;
    CM_TRY(cm_dialect_read_int(r, place, &index));
    *CM_PUSH(r->arena, &g->places) = index;
    struct cm_value_info_proto *const value = CM_PUSH(r->arena, &g->given);
    *value = (struct cm_value_info_proto){0};
    if (declared)
        return cm_dialect_read_message(r, &cm_value_info_info, declared, value);
    value->name = name;
    cm_msg_set(&value->msg, CM_VALUE_INFO_NAME);
    if (type->kind == CM_DIALECT_TYPE_PROTO) {
        value->type = type->proto;
        cm_msg_set(&value->msg, CM_VALUE_INFO_TYPE);
    }
    return CM_OK;
}

static enum cm_status read_external(struct graph_reading *g, const struct cm_dialect_op *op,
                                    const struct cm_dialect_attr *place,
                                    struct cm_tensor_proto *out)
{
    struct cm_dialect_reader *const r = g->r;

    if (!op->result_types.count)
        return cm_dialect_refuse(r, op->at, CM_BAD_MODEL, "expected the type of the tensor");
    CM_TRY(cm_dialect_read_tensor_type(r, op->at, &op->result_types.items[0], out));
    CM_TRY(cm_dialect_read_field(r, &cm_tensor_info, CM_TENSOR_EXTERNAL_DATA, place, out));
    out->data_location = CM_LOCATION_EXTERNAL;
    cm_msg_set(&out->msg, CM_TENSOR_DATA_LOCATION);
    return CM_OK;
}

static enum cm_status read_initializer(struct graph_reading *g, const struct cm_dialect_op *op)
{
    static const struct cm_dialect_entries nothing;
    static const struct cm_dialect_type untyped;
    struct cm_dialect_reader *const r = g->r;
    const struct cm_dialect_attr *const dense = cm_dialect_get(&op->attrs, "value");
    const struct cm_dialect_attr *const place = cm_dialect_get(&op->attrs, "onnx.external_data");
    const struct cm_dialect_attr *about = NULL;
    struct cm_tensor_proto *const out = CM_PUSH(r->arena, &g->tensors);

    *out = (struct cm_tensor_proto){0};
    if (g->initializers && g->n_initializers < g->initializers->items.count)
        about = &g->initializers->items.items[g->n_initializers];
    g->n_initializers++;
    const struct cm_dialect_entries *const notes =
        about && about->kind == CM_DIALECT_ATTR_DICT ? &about->entries : &nothing;
    if (place)
        CM_TRY(read_external(g, op, place, out));
    CM_TRY(cm_dialect_read_tensor(r, dense, notes, out));
    if (about && about->kind == CM_DIALECT_ATTR_STRING) {
        out->name = about->text;
        cm_msg_set(&out->msg, CM_TENSOR_NAME);
    } else if (!about) {
        out->name = cm_dialect_new_name(r, &g->names, result_name(op), 0, 1);
        cm_msg_set(&out->msg, CM_TENSOR_NAME);
    }
    define(g, op, out->name);
    return note_input(g, notes, op->result_types.count ? &op->result_types.items[0] : &untyped,
                      out->name);
}

static enum cm_status read_sparse(struct graph_reading *g, const struct cm_dialect_op *op,
                                  const struct cm_dialect_attr *attr)
{
    struct cm_sparse_proto *const out = CM_PUSH(g->r->arena, &g->sparse);

    *out = (struct cm_sparse_proto){0};
    CM_TRY(cm_dialect_read_message(g->r, &cm_sparse_info, attr, out));
    define(g, op, out->values ? out->values->name : CM_STR_NONE);
    return CM_OK;
}

/* A constant of which nothing is said but its value is an initializer; nodes have names. */
static bool is_initializer(const struct cm_dialect_op *op)
{
    if (!cm_str_is(op->name, "onnx.Constant") || op->result_types.count != 1)
        return false;
    for (size_t i = 0; i < op->attrs.count; i++)
        if (!cm_str_is(op->attrs.items[i].key, "value") &&
            !cm_str_is(op->attrs.items[i].key, "onnx.external_data"))
            return false;
    return true;
}

static void note_types(struct graph_reading *g, const struct cm_dialect_op *op,
                       const struct cm_node_proto *node)
{
    for (size_t i = 0; g->r->foreign && i < op->result_types.count; i++) {
        if (op->result_types.items[i].kind != CM_DIALECT_TYPE_PROTO)
            continue;
        struct cm_value_info_proto *const value = CM_PUSH(g->r->arena, &g->value_info);
        *value = (struct cm_value_info_proto){.name = node->output.items[i],
                                              .type = op->result_types.items[i].proto};
        cm_msg_set(&value->msg, CM_VALUE_INFO_NAME);
        cm_msg_set(&value->msg, CM_VALUE_INFO_TYPE);
    }
}

static enum cm_status read_op(struct graph_reading *g, const struct cm_dialect_op *op)
{
    const struct cm_dialect_attr *const sparse =
        cm_dialect_get(&op->attrs, "onnx.sparse_initializer");

    if (cm_str_is(op->name, "onnx.NoValue")) {
        define(g, op, CM_STR(""));
        return CM_OK;
    }
    if (cm_str_is(op->name, "onnx.Constant") && sparse)
        return read_sparse(g, op, sparse);
    if (is_initializer(op))
        return read_initializer(g, op);
    struct cm_node_proto node = {0};
    CM_TRY(cm_dialect_read_node(g->r, &g->names, op, &node));
    *CM_PUSH(g->r->arena, &g->nodes) = node;
    note_types(g, op, &node);
    return CM_OK;
}

static bool is_end(const struct cm_dialect_op *op)
{
    return cm_str_is(op->name, "onnx.Return") || cm_str_is(op->name, "onnx.Yield") ||
           cm_str_is(op->name, "func.return");
}

/* Where a function's result has a name and the value it is has none, it gets that one. */
static void want_names(struct graph_reading *g, const struct cm_dialect_op *end)
{
    struct cm_dialect_reader *const r = g->r;

    for (size_t i = 0;
         r->foreign && g->function && i < end->operands.count && i < g->function->outputs.count;
         i++) {
        const struct cm_dialect_ssa *const ssa = &end->operands.items[i];
        const struct cm_dialect_attr *const name =
            cm_dialect_get(&g->function->outputs.items[i].attrs, "onnx.name");
        const struct cm_str key = ssa->index
                                      ? cm_arena_printf(r->arena, "%.*s#%zu", (int)ssa->name.size,
                                                        ssa->name.data, ssa->index)
                                      : ssa->name;
        bool added;

        if (!name || name->kind != CM_DIALECT_ATTR_STRING)
            continue;
        uint64_t *const wanted = cm_map_insert(&g->names.wanted, r->arena, key, &added);
        if (added)
            *wanted = (uint64_t)(uintptr_t)&name->text;
        cm_map_insert(&r->taken, r->arena, name->text, NULL);
    }
}

/* A result whose value has another name, as one that is returned twice, gets a node. */
static void add_identity(struct graph_reading *g, struct cm_str from, struct cm_str to)
{
    struct cm_node_proto *const node = CM_PUSH(g->r->arena, &g->nodes);

    *node = (struct cm_node_proto){
        .op_type = CM_STR("Identity"), .input = one_name(g->r, from), .output = one_name(g->r, to)};
    cm_msg_set(&node->msg, CM_NODE_OP_TYPE);
    cm_msg_set(&node->msg, CM_NODE_INPUT);
    cm_msg_set(&node->msg, CM_NODE_OUTPUT);
}

static enum cm_status read_outputs(struct graph_reading *g, const struct cm_dialect_op *end)
{
    struct cm_dialect_reader *const r = g->r;
    const struct cm_dialect_attr *const list = g->function ? NULL : note(g, "output");
    const size_t count = end->operands.count;
    struct cm_value_info_proto *const out =
        CM_NEW_ARRAY(r->arena, struct cm_value_info_proto, count);

    if (g->function && g->function->outputs.count != count)
        return cm_dialect_refuse(r, end->at, CM_BAD_MODEL,
                                 "%zu values are returned, but the function has %zu results", count,
                                 g->function->outputs.count);
    if (list && (list->kind != CM_DIALECT_ATTR_ARRAY || list->items.count != count))
        return cm_dialect_refuse(r, list->at, CM_BAD_MODEL, "expected a list of %zu outputs",
                                 count);
    for (size_t i = 0; i < count; i++) {
        struct cm_str name;
        CM_TRY(cm_dialect_name_of(r, &g->names, &end->operands.items[i], &name));
        if (g->function)
            CM_TRY(cm_dialect_read_declared(r, &g->function->outputs.items[i].attrs, "onnx.",
                                            &g->function->outputs.items[i].type, &out[i]));
        else if (list)
            CM_TRY(cm_dialect_read_message(r, &cm_value_info_info, &list->items.items[i], &out[i]));
        if (!cm_msg_has(&out[i].msg, CM_VALUE_INFO_NAME) &&
            (r->foreign || !(g->function || list))) {
            out[i].name = name;
            cm_msg_set(&out[i].msg, CM_VALUE_INFO_NAME);
        }
        if (r->foreign && !cm_str_equal(name, out[i].name))
            add_identity(g, name, out[i].name);
    }
    if (count) {
        g->out->output = (struct cm_value_infos){out, count};
        cm_msg_set(&g->out->msg, CM_GRAPH_OUTPUT);
    }
    return CM_OK;
}

/* Arguments in their order, around the inputs that have places. */
static enum cm_status join_inputs(struct graph_reading *g)
{
    struct cm_dialect_reader *const r = g->r;
    const size_t count = g->arguments.count + g->given.count;
    struct cm_value_info_proto *const out =
        CM_NEW_ARRAY(r->arena, struct cm_value_info_proto, count);
    bool *const used = CM_NEW_ARRAY(r->arena, bool, count);
    size_t next = 0;

    for (size_t i = 0; i < g->given.count; i++) {
        const int64_t place = g->places.items[i];
        if (place < 0 || (uint64_t)place >= count || used[place])
            return cm_dialect_refuse(r, g->initializers->at, CM_BAD_MODEL,
                                     "%lld is not a free place among %zu inputs", (long long)place,
                                     count);
        out[place] = g->given.items[i];
        used[place] = true;
    }
    for (size_t i = 0; i < count; i++)
        if (!used[i])
            out[i] = g->arguments.items[next++];
    if (count) {
        g->out->input = (struct cm_value_infos){out, count};
        cm_msg_set(&g->out->msg, CM_GRAPH_INPUT);
    }
    return CM_OK;
}

/* Outputs have their types already. */
static void forget_outputs(struct graph_reading *g)
{
    const struct cm_value_infos *const outputs = &g->out->output;
    struct cm_map names = {0};
    size_t kept = 0;

    for (size_t i = 0; i < outputs->count; i++)
        cm_map_insert(&names, g->r->arena, outputs->items[i].name, NULL);
    for (size_t i = 0; i < g->value_info.count; i++)
        if (!cm_map_find(&names, g->value_info.items[i].name))
            g->value_info.items[kept++] = g->value_info.items[i];
    g->value_info.count = kept;
}

static void store_lists(struct graph_reading *g)
{
    struct cm_graph_proto *const out = g->out;

    if (g->function)
        forget_outputs(g);
    if (g->nodes.count) {
        out->node = (struct cm_nodes){g->nodes.items, g->nodes.count};
        cm_msg_set(&out->msg, CM_GRAPH_NODE);
    }
    if (g->tensors.count) {
        out->initializer.items = g->tensors.items;
        out->initializer.count = g->tensors.count;
        cm_msg_set(&out->msg, CM_GRAPH_INITIALIZER);
    }
    if (g->sparse.count) {
        out->sparse_initializer.items = g->sparse.items;
        out->sparse_initializer.count = g->sparse.count;
        cm_msg_set(&out->msg, CM_GRAPH_SPARSE_INITIALIZER);
    }
    if (g->value_info.count && !cm_msg_has(&out->msg, CM_GRAPH_VALUE_INFO)) {
        out->value_info = (struct cm_value_infos){g->value_info.items, g->value_info.count};
        cm_msg_set(&out->msg, CM_GRAPH_VALUE_INFO);
    }
}

static enum cm_status read_notes(struct graph_reading *g)
{
    static const char *const own[] = {
        "initializers",           "input", "output",   "attribute", "graphs",
        "attribute_doc_string",   "role",  "function", "training",  "update_binding",
        "initialization_binding", NULL};
    const uint32_t told = CM_BIT(CM_GRAPH_NODE) | CM_BIT(CM_GRAPH_INITIALIZER) |
                          CM_BIT(CM_GRAPH_SPARSE_INITIALIZER) | CM_BIT(CM_GRAPH_INPUT) |
                          CM_BIT(CM_GRAPH_OUTPUT);

    g->initializers = note(g, "initializers");
    if (g->initializers && g->initializers->kind != CM_DIALECT_ATTR_ARRAY)
        return cm_dialect_refuse(g->r, g->initializers->at, CM_BAD_MODEL,
                                 "expected a list of initializers");
    return cm_dialect_read_fields(g->r, &cm_graph_info, g->notes, g->prefix, ~told, own, g->out);
}

enum cm_status cm_dialect_read_graph(struct cm_dialect_reader *r,
                                     const struct cm_dialect_names *outer,
                                     const struct cm_dialect_region *region,
                                     const struct cm_dialect_op *function,
                                     const struct cm_dialect_entries *notes, const char *prefix,
                                     struct cm_graph_proto *out)
{
    struct graph_reading g = {.r = r,
                              .region = region,
                              .function = function,
                              .notes = notes,
                              .prefix = prefix,
                              .out = out,
                              .names = {.outer = outer}};
    const size_t count = region->ops.count;

    if (!count || !is_end(&region->ops.items[count - 1]))
        return cm_dialect_refuse(r, region->at, CM_BAD_MODEL,
                                 "the region does not end with onnx.Return or onnx.Yield");
    const struct cm_dialect_op *const end = &region->ops.items[count - 1];
    CM_TRY(read_notes(&g));
    want_names(&g, end);
    CM_TRY(function ? read_function_arguments(&g) : read_region_arguments(&g));
    for (size_t i = 0; i + 1 < count; i++)
        CM_TRY(read_op(&g, &region->ops.items[i]));
    CM_TRY(read_outputs(&g, end));
    CM_TRY(join_inputs(&g));
    if (g.initializers && g.initializers->items.count != g.n_initializers)
        return cm_dialect_refuse(r, g.initializers->at, CM_BAD_MODEL,
                                 "%zu initializers are named, but there are %zu",
                                 g.initializers->items.count, g.n_initializers);
    store_lists(&g);
    return CM_OK;
}
