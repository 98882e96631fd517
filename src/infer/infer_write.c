/* Inferred types into messages: what the file says is kept, what it leaves open is filled. */
// SPDX-License-Identifier: Apache-2.0
#include "infer/infer_write.h"

#include "base/array.h"

#define FRESH "unk__" /* how dimensions are called that are unknown but the same, as onnx does */

enum { DEPTH_MAX = 64 };

/* ---- one type ---- */

/* Names the dimensions that nobody has named, and counts what is known. */
static void settle_dims(struct cm_inferring *i, const struct cm_type *type, size_t *unknown)
{
    struct cm_infer_report *report = i->report;
    struct cm_symbols *symbols = cm_module_symbols(i->module);
    if (type->rank == CM_RANK_UNKNOWN)
        ++*unknown;
    for (int d = 0; d < type->rank; d++) {
        const struct cm_dim dim = type->dims[d];
        report->dims++;
        if (cm_dim_known(dim)) {
            report->numbers++;
        } else if (dim.symbol && !cm_symbol_is_fresh(symbols, dim.symbol)) {
            report->symbolic++;
        } else {
            ++*unknown;
            report->unknown++;
            cm_symbol_name_fresh(symbols, dim.symbol, FRESH);
        }
    }
}

static size_t settle(struct cm_inferring *i, const struct cm_type *type)
{
    size_t unknown = 0;
    for (; type; type = type->elem)
        if (type->kind == CM_KIND_TENSOR || type->kind == CM_KIND_SPARSE)
            settle_dims(i, type, &unknown);
    return unknown;
}

static void refine_dims(struct cm_shape_proto *to, const struct cm_shape_proto *from)
{
    for (size_t d = 0; d < to->dim.count; d++) {
        struct cm_dim_proto *dim = &to->dim.items[d];
        const struct cm_dim_proto *known = &from->dim.items[d];
        const bool has_number = cm_msg_has(&dim->msg, CM_DIM_VALUE) && dim->dim_value >= 0;
        if (has_number)
            continue;
        if (cm_msg_has(&known->msg, CM_DIM_VALUE)) {
            dim->dim_value = known->dim_value;
            cm_msg_set(&dim->msg, CM_DIM_VALUE);
            if (cm_msg_has(&dim->msg, CM_DIM_PARAM))
                cm_msg_clear(&dim->msg, CM_DIM_PARAM);
        } else if (known->dim_param.size && !dim->dim_param.size) {
            dim->dim_param = known->dim_param;
            cm_msg_set(&dim->msg, CM_DIM_PARAM);
            if (cm_msg_has(&dim->msg, CM_DIM_VALUE))
                cm_msg_clear(&dim->msg, CM_DIM_VALUE);
        }
    }
}

static void refine_tensor(struct cm_tensor_type_proto *to, const struct cm_tensor_type_proto *from)
{
    if (!to->elem_type && from->elem_type) {
        to->elem_type = from->elem_type;
        cm_msg_set(&to->msg, CM_TENSOR_TYPE_ELEM_TYPE);
    }
    if (!from->shape)
        return;
    if (!to->shape) {
        to->shape = from->shape;
        cm_msg_set(&to->msg, CM_TENSOR_TYPE_SHAPE);
    } else if (to->shape->dim.count == from->shape->dim.count) {
        refine_dims(to->shape, from->shape);
    }
}

/* Fills what `to` leaves open. They do not contradict each other. */
static void refine(struct cm_type_proto *to, const struct cm_type_proto *from)
{
    if (to->tensor_type && from->tensor_type)
        refine_tensor(to->tensor_type, from->tensor_type);
    if (to->sparse_tensor_type && from->sparse_tensor_type)
        refine_tensor(to->sparse_tensor_type, from->sparse_tensor_type);
    struct cm_wrap_type_proto *const wraps[] = {to->sequence_type, to->optional_type};
    const struct cm_wrap_type_proto *const others[] = {from->sequence_type, from->optional_type};
    for (size_t w = 0; w < CM_COUNT(wraps); w++)
        if (wraps[w] && others[w] && wraps[w]->elem_type && others[w]->elem_type)
            refine(wraps[w]->elem_type, others[w]->elem_type);
}

static void set_info(struct cm_inferring *i, struct cm_value_info_proto *info,
                     const struct cm_type *type)
{
    struct cm_type_proto *made = CM_NEW(i->arena, struct cm_type_proto);
    cm_type_to_proto(i->arena, cm_module_symbols(i->module), type, made);
    if (info->type && info->type->msg.has) {
        refine(info->type, made);
        return;
    }
    info->type = made;
    cm_msg_set(&info->msg, CM_VALUE_INFO_TYPE);
}

/* Does the file say all of it? */
static bool is_whole(const struct cm_value_info_proto *info)
{
    const struct cm_tensor_type_proto *tensor = info && info->type ? info->type->tensor_type : NULL;
    if (!tensor || !tensor->shape)
        return false;
    for (size_t d = 0; d < tensor->shape->dim.count; d++)
        if (!cm_msg_has(&tensor->shape->dim.items[d].msg, CM_DIM_VALUE) &&
            !tensor->shape->dim.items[d].dim_param.size)
            return false;
    return true;
}

/* ---- the values of a graph or function ---- */

struct writing {
    struct cm_inferring *i;
    const void *owner;
    struct cm_str place;
    struct cm_map declared; /* by name: address of its info */
    struct cm_value_infos *infos;
    CM_ARRAY(struct cm_value_info_proto) added;
};

static void note_declared(struct writing *w, const struct cm_value_infos *infos)
{
    for (size_t k = 0; k < infos->count; k++)
        *cm_map_insert(&w->declared, w->i->scratch, infos->items[k].name, NULL) =
            (uint64_t)(uintptr_t)&infos->items[k];
}

static void tell(struct writing *w, struct cm_str name, const struct cm_type *type, size_t unknown)
{
    struct cm_inferring *i = w->i;
    struct cm_infer_report *report = i->report;
    report->n_typed += type != NULL;
    report->n_complete += type && unknown == 0;
    if (!i->options->list_values)
        return;
    *CM_PUSH(i->arena, &report->values) = (struct cm_inferred_value){
        cm_arena_str(i->arena, w->place), cm_arena_str(i->arena, name),
        cm_arena_str(i->arena, type ? cm_type_print(i->scratch, cm_module_symbols(i->module), type)
                                    : CM_STR("?")),
        unknown};
}

static void write_value(struct writing *w, struct cm_str name)
{
    struct cm_inferring *i = w->i;
    const struct cm_type *type = cm_inferring_type(i, w->owner, name);
    struct cm_value_info_proto *info =
        (struct cm_value_info_proto *)(uintptr_t)cm_map_get(&w->declared, name, 0);

    i->report->n_values++;
    i->report->n_declared += is_whole(info);
    const size_t unknown = type ? settle(i, type) : 0;
    tell(w, name, type, unknown);
    if (!type)
        return;
    if (!info) {
        info = CM_PUSH(i->scratch, &w->added);
        *info = (struct cm_value_info_proto){.name = name};
        cm_msg_set(&info->msg, CM_VALUE_INFO_NAME);
    }
    set_info(i, info, type);
}

/* Appends what is new; false: nothing is. */
static bool add_infos(struct writing *w)
{
    const size_t count = w->infos->count;
    if (!w->added.count)
        return false;
    w->infos->items = cm_list_extended_by(w->i->arena, w->infos->items, count, w->added.count,
                                          sizeof *w->infos->items);
    memcpy(w->infos->items + count, w->added.items, w->added.count * sizeof *w->added.items);
    w->infos->count = count + w->added.count;
    return true;
}

static void write_bodies(struct cm_inferring *i, const struct cm_node_proto *node,
                         struct cm_str place, int depth)
{
    for (size_t a = 0; a < node->attribute.count; a++) {
        const struct cm_attribute_proto *attr = &node->attribute.items[a];
        if (!attr->g)
            continue;
        const struct cm_str who =
            node->name.size || !node->output.count ? node->name : node->output.items[0];
        cm_infer_write_graph(
            i, attr->g,
            cm_arena_printf(i->scratch, "%.*snode '%.*s' (%.*s): body '%.*s': ", CM_STR_FMT(place),
                            CM_STR_FMT(who), CM_STR_FMT(node->op_type), CM_STR_FMT(attr->name)),
            depth + 1);
    }
}

static void write_nodes(struct writing *w, const struct cm_nodes *nodes, int depth)
{
    for (size_t n = 0; n < nodes->count; n++) {
        const struct cm_node_proto *node = &nodes->items[n];
        for (size_t o = 0; w->infos && o < node->output.count; o++)
            if (node->output.items[o].size)
                write_value(w, node->output.items[o]);
        write_bodies(w->i, node, w->place, depth);
    }
}

void cm_infer_write_graph(struct cm_inferring *i, struct cm_graph_proto *graph, struct cm_str place,
                          int depth)
{
    struct writing w = {.i = i, .owner = graph, .place = place, .infos = &graph->value_info};
    if (depth > DEPTH_MAX)
        return;
    note_declared(&w, &graph->value_info);
    note_declared(&w, &graph->output); /* an output is described there */
    write_nodes(&w, &graph->node, depth);
    for (size_t k = 0; depth > 0 && k < graph->input.count; k++) {
        const struct cm_type *type = cm_inferring_type(i, graph, graph->input.items[k].name);
        if (type)
            set_info(i, &graph->input.items[k], type);
    }
    if (add_infos(&w))
        cm_msg_set(&graph->msg, CM_GRAPH_VALUE_INFO);
}

void cm_infer_write_function(struct cm_inferring *i, struct cm_function_proto *function, bool types)
{
    const struct cm_str place =
        cm_arena_printf(i->scratch, "function '%.*s': ", CM_STR_FMT(function->name));
    struct writing w = {
        .i = i, .owner = function, .place = place, .infos = types ? &function->value_info : NULL};
    note_declared(&w, &function->value_info);
    for (size_t k = 0; types && k < function->input.count; k++)
        write_value(&w, function->input.items[k]);
    write_nodes(&w, &function->node, 0);
    if (types && add_infos(&w))
        cm_msg_set(&function->msg, CM_FUNCTION_VALUE_INFO);
}
