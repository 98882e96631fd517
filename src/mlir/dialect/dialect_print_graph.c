/* Graphs of the ONNX dialect: initializers, nodes, regions. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/dialect/dialect_names.h"
#include "mlir/dialect/dialect_print.h"
#include "onnx/syntax_names.h"

static const uint32_t told_fields = CM_BIT(CM_GRAPH_NODE) | CM_BIT(CM_GRAPH_INITIALIZER) |
                                    CM_BIT(CM_GRAPH_INPUT) | CM_BIT(CM_GRAPH_OUTPUT) |
                                    CM_BIT(CM_GRAPH_SPARSE_INITIALIZER);

/* For each input 1 + the initializer that gives its value, 0 for arguments. */
size_t *cm_dialect_match_inputs(struct cm_dialect_out *o, const struct cm_graph_proto *graph)
{
    size_t *const out = CM_NEW_ARRAY(o->arena, size_t, graph->input.count + 1);
    struct cm_map inputs = {0};
    bool added;

    for (size_t i = 0; i < graph->input.count; i++) {
        uint64_t *const at = cm_map_insert(&inputs, o->arena, graph->input.items[i].name, &added);
        if (added)
            *at = i + 1;
    }
    for (size_t i = 0; i < graph->initializer.count; i++) {
        const struct cm_str name = graph->initializer.items[i].name;
        const uint64_t at = name.size ? cm_map_get(&inputs, name, 0) : 0;
        if (at && !out[at - 1])
            out[at - 1] = i + 1;
    }
    return out;
}

static bool is_declared_as(struct cm_dialect_out *o, const struct cm_value_info_proto *value,
                           struct cm_str type)
{
    return value->msg.has == (CM_BIT(CM_VALUE_INFO_NAME) | CM_BIT(CM_VALUE_INFO_TYPE)) &&
           cm_dialect_type_is_whole(value->type) &&
           cm_str_equal(cm_dialect_type_text(o, value->type), type) &&
           cm_dialect_dim_params(o, value->type).size == 0;
}

/* What an initializer's operation does not say: its name, the input it belongs to, .. */
static void put_initializer_notes(struct cm_dialect_out *o, const struct cm_graph_proto *graph,
                                  size_t index, size_t input)
{
    const struct cm_tensor_proto *const tensor = &graph->initializer.items[index];
    const uint32_t name_bit = CM_BIT(CM_TENSOR_NAME), place_bit = CM_BIT(CM_TENSOR_EXTERNAL_DATA);
    struct cm_dialect_dict dict = {o, "", false};
    struct cm_tensor *values;
    const enum cm_dialect_tensor_form form = cm_dialect_tensor_form(o, tensor, &values);
    const uint32_t skipped = form == CM_DIALECT_EXTERNAL ? place_bit : 0;

    cm_dialect_drop(o, values);
    if (cm_msg_has(&tensor->msg, CM_TENSOR_NAME) && input == SIZE_MAX &&
        !cm_dialect_has_tensor_notes(tensor, form, skipped | name_bit)) {
        cm_dialect_put_quoted(o, tensor->name);
        return;
    }
    if (input != SIZE_MAX) {
        const struct cm_value_info_proto *const value = &graph->input.items[input];
        if (!is_declared_as(o, value, cm_dialect_tensor_type(o, tensor))) {
            cm_dialect_put_key(&dict, "declared");
            cm_dialect_put_message(o, &cm_value_info_info, value);
        }
        cm_dialect_put_key(&dict, "input");
        cm_put_uint64(&o->pen, input);
    }
    cm_dialect_put_tensor_notes(&dict, tensor, form, skipped);
    cm_dialect_end(&dict);
}

/* What is said of a graph beside its operations. */
void cm_dialect_put_graph_notes(struct cm_dialect_dict *dict, const struct cm_graph_proto *graph)
{
    struct cm_dialect_out *const o = dict->out;
    const size_t *const matched = cm_dialect_match_inputs(o, graph);
    size_t *const inputs = CM_NEW_ARRAY(o->arena, size_t, graph->initializer.count + 1);

    cm_dialect_put_fields(dict, &cm_graph_info, graph, told_fields);
    if (!graph->initializer.count)
        return;
    for (size_t i = 0; i < graph->input.count; i++)
        if (matched[i])
            inputs[matched[i] - 1] = i + 1;
    cm_dialect_put_key(dict, "initializers");
    cm_put_text(&o->pen, "[");
    for (size_t i = 0; i < graph->initializer.count && o->pen.status == CM_OK; i++) {
        cm_put_text(&o->pen, i ? ", " : "");
        put_initializer_notes(o, graph, i, inputs[i] ? inputs[i] - 1 : SIZE_MAX);
    }
    cm_put_text(&o->pen, "]");
}

void cm_dialect_put_region_notes(struct cm_dialect_dict *dict, const struct cm_graph_proto *graph)
{
    struct cm_dialect_out *const o = dict->out;
    const size_t *const matched = cm_dialect_match_inputs(o, graph);
    bool any = false;

    cm_dialect_put_graph_notes(dict, graph);
    for (size_t i = 0; i < graph->input.count && o->pen.status == CM_OK; i++) {
        if (matched[i])
            continue;
        if (any)
            cm_put_text(&o->pen, ", ");
        else
            cm_dialect_put_key(dict, "input");
        cm_put_text(&o->pen, any ? "" : "[");
        any = true;
        cm_dialect_put_message(o, &cm_value_info_info, &graph->input.items[i]);
    }
    cm_put_text(&o->pen, any ? "]" : "");
    if (graph->output.count) {
        cm_dialect_put_key(dict, "output");
        cm_dialect_put_field(o, &cm_graph_info.fields[CM_GRAPH_OUTPUT], graph);
    }
}

/* The types that value_info and the like have for names. */
void cm_dialect_note_types(struct cm_dialect_out *o, struct cm_dialect_scope *scope,
                           const struct cm_value_infos *values)
{
    for (size_t i = 0; i < values->count; i++) {
        const struct cm_value_info_proto *const value = &values->items[i];
        if (cm_msg_has(&value->msg, CM_VALUE_INFO_TYPE) && value->type)
            *cm_map_insert(&scope->types, o->arena, value->name, NULL) =
                (uint64_t)(uintptr_t)value->type;
    }
}

struct cm_str cm_dialect_type_of(struct cm_dialect_out *o, const struct cm_dialect_scope *scope,
                                 struct cm_str name)
{
    const uint64_t type = cm_map_get(&scope->types, name, 0);

    return cm_dialect_type_text(o, (const struct cm_type_proto *)(uintptr_t)type);
}

/* Begins the operation of a constant that is no node, and makes it known. */
static void begin_constant(struct cm_dialect_out *o, struct cm_dialect_scope *scope,
                           struct cm_str name, struct cm_str type)
{
    const struct cm_str ssa = cm_arena_printf(o->arena, "%%%zu", o->next_result++);

    cm_dialect_put_line(o);
    cm_put_str(&o->pen, ssa);
    cm_put_text(&o->pen, o->options->generic ? " = \"onnx.Constant\"()" : " = onnx.Constant");
    if (name.size)
        cm_dialect_define(o, scope, name, ssa, type);
}

static void end_constant(struct cm_dialect_out *o, struct cm_str type)
{
    cm_put_text(&o->pen, o->options->generic ? " : () -> " : " : ");
    cm_put_str(&o->pen, type);
}

static void put_initializer(struct cm_dialect_out *o, struct cm_dialect_scope *scope,
                            const struct cm_tensor_proto *tensor)
{
    const struct cm_str type = cm_dialect_tensor_type(o, tensor);
    struct cm_dialect_dict dict = {o, "", false}, outside = {o, "onnx.", false};
    struct cm_tensor *values;
    const enum cm_dialect_tensor_form form = cm_dialect_tensor_form(o, tensor, &values);

    begin_constant(o, scope, tensor->name, type);
    cm_put_text(&o->pen, form == CM_DIALECT_FIELDS ? "" : " ");
    if (form == CM_DIALECT_DENSE && !o->options->generic) {
        cm_dialect_put_dense(o, values);
        cm_dialect_drop(o, values);
        return;
    }
    if (form == CM_DIALECT_DENSE) {
        cm_dialect_put_key(&dict, "value");
        cm_dialect_put_dense(o, values);
        cm_dialect_end(&dict);
    } else if (form == CM_DIALECT_EXTERNAL) {
        cm_dialect_put_fields(&outside, &cm_tensor_info, tensor, ~CM_BIT(CM_TENSOR_EXTERNAL_DATA));
        cm_dialect_end(&outside);
    }
    end_constant(o, type);
    cm_dialect_drop(o, values);
}

static void put_sparse_initializer(struct cm_dialect_out *o, struct cm_dialect_scope *scope,
                                   const struct cm_sparse_proto *sparse)
{
    const struct cm_tensor_proto dense = {
        .dims = sparse->dims, .data_type = sparse->values ? sparse->values->data_type : 0};
    const struct cm_str type = cm_dialect_tensor_type(o, &dense);
    struct cm_dialect_dict dict = {o, "onnx.", false};

    begin_constant(o, scope, sparse->values ? sparse->values->name : CM_STR_NONE, type);
    cm_put_text(&o->pen, " ");
    cm_dialect_put_key(&dict, "sparse_initializer");
    cm_dialect_put_message(o, &cm_sparse_info, sparse);
    cm_dialect_end(&dict);
    end_constant(o, type);
}

void cm_dialect_put_nodes(struct cm_dialect_out *o, struct cm_dialect_scope *scope,
                          const struct cm_nodes *nodes, const struct cm_nodes *typed)
{
    for (size_t i = 0; i < nodes->count && o->pen.status == CM_OK; i++)
        cm_dialect_put_node(o, scope, &nodes->items[i],
                            typed && i < typed->count ? &typed->items[i] : NULL);
}

struct cm_strs cm_dialect_names_of(struct cm_dialect_out *o, const struct cm_value_infos *values)
{
    struct cm_strs out = {CM_NEW_ARRAY(o->arena, struct cm_str, values->count), values->count};

    for (size_t i = 0; i < values->count; i++)
        out.items[i] = values->items[i].name;
    return out;
}

void cm_dialect_put_body(struct cm_dialect_out *o, struct cm_dialect_scope *scope,
                         const struct cm_graph_proto *graph, const struct cm_graph_proto *typed,
                         const char *end)
{
    const struct cm_strs outputs = cm_dialect_names_of(o, &graph->output);

    for (size_t i = 0; i < graph->initializer.count && o->pen.status == CM_OK; i++)
        put_initializer(o, scope, &graph->initializer.items[i]);
    for (size_t i = 0; i < graph->sparse_initializer.count && o->pen.status == CM_OK; i++)
        put_sparse_initializer(o, scope, &graph->sparse_initializer.items[i]);
    cm_dialect_put_nodes(o, scope, &graph->node, typed ? &typed->node : NULL);
    if (o->pen.status == CM_OK)
        cm_dialect_put_end(o, scope, end, &outputs);
}

void cm_dialect_note_graph(struct cm_dialect_out *o, struct cm_dialect_scope *scope,
                           const struct cm_graph_proto *graph)
{
    cm_dialect_note_types(o, scope, &graph->value_info);
    cm_dialect_note_types(o, scope, &graph->output);
    cm_dialect_note_types(o, scope, &graph->input);
}

/* `%arg3: T`, and makes it known. */
struct cm_str cm_dialect_put_argument(struct cm_dialect_out *o, struct cm_dialect_scope *scope,
                                      struct cm_str name)
{
    const struct cm_str ssa = cm_arena_printf(o->arena, "%%arg%zu", o->next_argument++);
    const struct cm_str type = cm_dialect_type_of(o, scope, name);

    cm_put_str(&o->pen, ssa);
    cm_put_text(&o->pen, ": ");
    cm_put_str(&o->pen, type);
    if (name.size)
        cm_dialect_define(o, scope, name, ssa, type);
    return type;
}

void cm_dialect_put_region(struct cm_dialect_out *o, const struct cm_dialect_scope *outer,
                           const struct cm_graph_proto *graph, const struct cm_graph_proto *typed)
{
    struct cm_dialect_scope scope = {.outer = outer};
    const size_t results = o->next_result, arguments = o->next_argument;
    const size_t *const matched = cm_dialect_match_inputs(o, graph);
    bool any = false;

    if (!cm_print_enter(&o->pen))
        return;
    cm_dialect_note_graph(o, &scope, typed ? typed : graph);
    cm_put_text(&o->pen, "{");
    for (size_t i = 0; i < graph->input.count; i++) {
        if (matched[i])
            continue;
        if (!any)
            cm_dialect_put_line(o);
        cm_put_text(&o->pen, any ? ", " : "^bb0(");
        any = true;
        cm_dialect_put_argument(o, &scope, graph->input.items[i].name);
    }
    cm_put_text(&o->pen, any ? "):" : "");
    o->pen.indent += CM_DIALECT_STEP;
    cm_dialect_put_body(o, &scope, graph, typed, "Yield");
    o->pen.indent -= CM_DIALECT_STEP;
    cm_dialect_put_line(o);
    cm_put_text(&o->pen, "}");
    o->next_result = results;
    o->next_argument = arguments;
    o->pen.depth--;
}
