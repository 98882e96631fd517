/* Shapes of inputs, and of what follows from them. The messages that change are those of a copy of
 * the model, which takes its place when inference has refused nothing. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "models/edit.h"

#include "base/diagnostics.h"
#include "graph/node_order.h"
#include "onnx/descriptor.h"

#include <string.h>

struct shaping {
    struct cm_model_proto *model;
    struct cm_graph_proto *graph;
    struct cm_arena *scratch;
    struct cm_findings *findings;
    struct cm_name_set moved; /* values whose shape may be another now */
    bool inputs_changed;      /* not only dimensions by their names */
    bool rank_changed;        /* of one of them */
    size_t nested;            /* shapes forgotten inside bodies and functions */
};

/* ---- what is asked for ---- */

static bool next_item(struct cm_str *rest, struct cm_str *item)
{
    if (!rest->data)
        return false;
    const char *comma = rest->size ? memchr(rest->data, ',', rest->size) : NULL;
    const size_t size = comma ? (size_t)(comma - rest->data) : rest->size;
    *item = (struct cm_str){rest->data, size};
    *rest = comma ? (struct cm_str){comma + 1, rest->size - size - 1} : CM_STR_NONE;
    while (item->size && item->data[0] == ' ')
        item->data++, item->size--;
    while (item->size && item->data[item->size - 1] == ' ')
        item->size--;
    return true;
}

/* A number of at least 0, a name, or "?". */
static bool put_dim(struct shaping *s, struct cm_str text, struct cm_dim_proto *dim)
{
    int64_t number;

    cm_msg_clear(&dim->msg, CM_DIM_VALUE);
    cm_msg_clear(&dim->msg, CM_DIM_PARAM);
    dim->dim_value = 0;
    dim->dim_param = CM_STR_NONE;
    if (cm_str_is(text, "?"))
        return true;
    if (cm_str_to_int64(text, &number)) {
        dim->dim_value = number;
        cm_msg_set(&dim->msg, CM_DIM_VALUE);
        return number >= 0;
    }
    dim->dim_param = cm_arena_str(s->findings->arena, text);
    cm_msg_set(&dim->msg, CM_DIM_PARAM);
    return text.size > 0 && text.data[0] != '-' && !(text.data[0] >= '0' && text.data[0] <= '9');
}

static struct cm_value_info_proto *find_input(struct cm_graph_proto *graph, struct cm_str name)
{
    for (size_t i = 0; graph && i < graph->input.count; i++)
        if (cm_str_equal(graph->input.items[i].name, name))
            return &graph->input.items[i];
    return NULL;
}

static void set_input(struct shaping *s, struct cm_value_info_proto *info,
                      const struct cm_reshaping *change)
{
    struct cm_arena *arena = s->findings->arena;
    struct cm_str rest = change->dims, item;
    struct cm_shape_proto *shape = CM_NEW(arena, struct cm_shape_proto);
    struct cm_shape_proto *old = NULL;

    if (!info->type || !info->type->tensor_type) {
        cm_findings_refuse(s->findings, "input '%.*s' is not a tensor", CM_STR_FMT(change->name));
        return;
    }
    struct cm_tensor_type_proto *tensor = info->type->tensor_type;
    old = tensor->shape;
    while (change->dims.size && next_item(&rest, &item)) {
        struct cm_dim_proto *dim = CM_LIST_ADD(arena, &shape->dim);
        if (old && shape->dim.count <= old->dim.count) /* the denotation of an axis stays */
            *dim = old->dim.items[shape->dim.count - 1];
        if (!put_dim(s, item, dim)) {
            cm_findings_refuse(
                s->findings,
                "'%.*s' in the shape of '%.*s' is not a dimension: give a number, a name "
                "or ?",
                CM_STR_FMT(item), CM_STR_FMT(change->name));
            break;
        }
    }
    if (shape->dim.count)
        cm_msg_set(&shape->msg, CM_SHAPE_DIM);
    s->rank_changed = s->rank_changed || (old && old->dim.count != shape->dim.count);
    tensor->shape = shape;
    cm_msg_set(&tensor->msg, CM_TENSOR_TYPE_SHAPE);
    cm_name_set_add(&s->moved, change->name);
}

struct replacement {
    struct shaping *s;
    const struct cm_reshaping *change;
    size_t count;
    bool bad;
};

static void replace_dims(struct replacement *r, struct cm_tensor_type_proto *type)
{
    for (size_t i = 0; type && type->shape && i < type->shape->dim.count; i++) {
        struct cm_dim_proto *dim = &type->shape->dim.items[i];
        if (!cm_msg_has(&dim->msg, CM_DIM_PARAM) || !cm_str_equal(dim->dim_param, r->change->name))
            continue;
        r->bad = !put_dim(r->s, r->change->dims, dim) || r->bad;
        r->count++;
    }
}

static enum cm_status replace_dim(void *arg, const struct cm_message_info *info, struct cm_msg *msg)
{
    struct replacement *r = arg;
    void *any = msg;
    struct cm_value_info_proto *value = any;

    if (info == &cm_value_info_info && value->name.size) {
        const size_t before = r->count;
        if (value->type)
            CM_TRY(cm_message_walk(&cm_type_info, value->type, replace_dim, r));
        if (r->count > before)
            cm_name_set_add(&r->s->moved, value->name);
    } else if (info == &cm_type_info) {
        struct cm_type_proto *type = any;
        replace_dims(r, type->tensor_type);
        replace_dims(r, type->sparse_tensor_type);
    }
    return CM_OK;
}

static enum cm_status set_dim(struct shaping *s, const struct cm_reshaping *change)
{
    struct replacement r = {.s = s, .change = change};

    CM_TRY(cm_message_walk(&cm_model_info, s->model, replace_dim, &r));
    if (!r.count)
        cm_findings_refuse(s->findings, "no input and no dimension is called '%.*s'",
                           CM_STR_FMT(change->name));
    else if (r.bad)
        cm_findings_refuse(s->findings,
                           "'%.*s' is not a dimension for '%.*s': give a number, a name or ?",
                           CM_STR_FMT(change->dims), CM_STR_FMT(change->name));
    return CM_OK;
}

static enum cm_status set_one(struct shaping *s, const struct cm_reshaping *change)
{
    struct cm_value_info_proto *info = find_input(s->graph, change->name);

    for (size_t i = 0; !info && i < s->model->training_info.count; i++)
        info = find_input(s->model->training_info.items[i].algorithm, change->name);
    if (!info)
        return set_dim(s, change);
    s->inputs_changed = true;
    set_input(s, info, change);
    return CM_OK;
}

/* ---- what follows ---- */

struct reader {
    struct shaping *s;
    bool found;
};

static bool look(void *arg, struct cm_str name)
{
    struct reader *r = arg;

    r->found = cm_name_set_has(&r->s->moved, name);
    return !r->found;
}

/* A shape whose sizes are forgotten: names of dimensions stay, for they say nothing but that two
 * are equal. */
static struct cm_shape_proto *without_sizes(struct cm_arena *arena,
                                            const struct cm_shape_proto *from)
{
    struct cm_shape_proto *shape = CM_NEW(arena, struct cm_shape_proto);

    *shape = *from;
    shape->dim.items = CM_NEW_ARRAY(arena, struct cm_dim_proto, from->dim.count);
    for (size_t i = 0; i < from->dim.count; i++) {
        shape->dim.items[i] = from->dim.items[i];
        cm_msg_clear(&shape->dim.items[i].msg, CM_DIM_VALUE);
        shape->dim.items[i].dim_value = 0;
    }
    if (from->dim.count)
        cm_msg_set(&shape->msg, CM_SHAPE_DIM);
    return shape;
}

/* A type whose sizes, or whole shapes, are forgotten. */
static struct cm_type_proto *forgetful(const struct shaping *s, const struct cm_type_proto *from)
{
    struct cm_arena *arena = s->findings->arena;
    struct cm_type_proto *type = CM_NEW(arena, struct cm_type_proto);

    *type = *from;
    if (type->tensor_type && type->tensor_type->shape) {
        struct cm_tensor_type_proto *tensor = CM_NEW(arena, struct cm_tensor_type_proto);
        *tensor = *type->tensor_type;
        tensor->shape = s->rank_changed ? NULL : without_sizes(arena, tensor->shape);
        (tensor->shape ? cm_msg_set : cm_msg_clear)(&tensor->msg, CM_TENSOR_TYPE_SHAPE);
        type->tensor_type = tensor;
        cm_msg_set(&type->msg, CM_TYPE_TENSOR_TYPE);
    }
    struct cm_wrap_type_proto **wraps[] = {&type->sequence_type, &type->optional_type};
    static const int fields[] = {CM_TYPE_SEQUENCE_TYPE, CM_TYPE_OPTIONAL_TYPE};
    for (size_t i = 0; i < 2; i++) {
        if (!*wraps[i] || !(*wraps[i])->elem_type)
            continue;
        struct cm_wrap_type_proto *wrap = CM_NEW(arena, struct cm_wrap_type_proto);
        *wrap = **wraps[i];
        wrap->elem_type = forgetful(s, wrap->elem_type);
        cm_msg_set(&wrap->msg, CM_WRAP_TYPE_ELEM_TYPE);
        *wraps[i] = wrap;
        cm_msg_set(&type->msg, fields[i]);
    }
    return type;
}

/* Does the type say a size, or a rank where that counts? */
static bool says_sizes(const struct shaping *s, const struct cm_type_proto *type)
{
    const struct cm_shape_proto *shape =
        type && type->tensor_type ? type->tensor_type->shape : NULL;

    for (size_t i = 0; shape && i < shape->dim.count; i++)
        if (cm_msg_has(&shape->dim.items[i].msg, CM_DIM_VALUE))
            return true;
    /* Scalars stay: counters and conditions of loops, losses. */
    return type && ((shape && shape->dim.count && s->rank_changed) ||
                    (type->sequence_type && says_sizes(s, type->sequence_type->elem_type)) ||
                    (type->optional_type && says_sizes(s, type->optional_type->elem_type)));
}

static void erase(struct shaping *s, struct cm_value_info_proto *info)
{
    info->type = forgetful(s, info->type);
    cm_msg_set(&info->msg, CM_VALUE_INFO_TYPE);
}

static enum cm_status erase_nested(void *arg, const struct cm_message_info *info,
                                   struct cm_msg *msg)
{
    struct shaping *s = arg;
    void *any = msg;
    struct cm_value_info_proto *value = any;

    if (info == &cm_value_info_info && says_sizes(s, value->type)) {
        erase(s, value);
        s->nested++;
    }
    return CM_OK;
}

/* Follows the graph's nodes in order; what has changed is added to moved. */
static enum cm_status follow_nodes(struct shaping *s, struct cm_nodes *nodes)
{
    for (size_t n = 0; n < nodes->count; n++) {
        struct cm_node_proto *node = &nodes->items[n];
        struct reader reader = {s, false};

        cm_node_each_read(s->scratch, node, look, &reader);
        if (!reader.found)
            continue;
        for (size_t o = 0; o < node->output.count; o++)
            if (node->output.items[o].size)
                cm_name_set_add(&s->moved, node->output.items[o]);
        if (s->inputs_changed)
            CM_TRY(cm_message_walk(&cm_node_info, node, erase_nested, s));
    }
    return CM_OK;
}

/* Sizes that algorithms of training info declare and that may be others now. What is bound to a
 * variable has the shape of that. */
static enum cm_status follow_training(struct shaping *s)
{
    for (size_t i = 0; i < s->model->training_info.count; i++) {
        const struct cm_training_proto *entry = &s->model->training_info.items[i];
        struct cm_graph_proto *algorithm = entry->algorithm;
        struct cm_name_set bound = {.arena = s->scratch};

        if (!algorithm)
            continue;
        for (size_t k = 0; k < entry->update_binding.count; k++)
            cm_name_set_add(&bound, entry->update_binding.items[k].value);
        CM_TRY(follow_nodes(s, &algorithm->node));
        struct cm_value_infos *lists[] = {&algorithm->value_info, &algorithm->output};
        for (size_t k = 0; s->inputs_changed && k < 2; k++)
            for (size_t v = 0; v < lists[k]->count; v++) {
                struct cm_value_info_proto *info = &lists[k]->items[v];
                if (cm_name_set_has(&s->moved, info->name) && says_sizes(s, info->type) &&
                    !cm_name_set_has(&bound, info->name))
                    erase(s, info);
            }
    }
    return CM_OK;
}

/* ---- inferring again ---- */

/* With dimensions alone changed, what the file says holds where inference knows less. */
static void fill_gaps(struct cm_type_proto *type, const struct cm_type_proto *old)
{
    const struct cm_shape_proto *from = old->tensor_type ? old->tensor_type->shape : NULL;
    struct cm_tensor_type_proto *tensor = type->tensor_type;

    if (!tensor || !tensor->shape || !from || tensor->shape->dim.count != from->dim.count)
        return;
    for (size_t i = 0; i < from->dim.count; i++) {
        struct cm_dim_proto *dim = &tensor->shape->dim.items[i];
        if (!cm_msg_has(&dim->msg, CM_DIM_VALUE) &&
            !(cm_msg_has(&dim->msg, CM_DIM_PARAM) && dim->dim_param.size))
            *dim = from->dim.items[i];
    }
}

static bool is_typed(const struct cm_type_proto *type)
{
    return type && (!type->tensor_type || type->tensor_type->shape);
}

struct declared {
    struct cm_value_info_proto *info;
    const struct cm_type_proto *old;
};

struct declared_list {
    CM_ARRAY(struct declared);
};

static void erase_declared(struct shaping *s, struct cm_value_infos *infos,
                           struct declared_list *out)
{
    for (size_t i = 0; i < infos->count; i++) {
        struct cm_value_info_proto *info = &infos->items[i];
        if (!cm_name_set_has(&s->moved, info->name) || !info->type)
            continue;
        *CM_PUSH(s->scratch, out) = (struct declared){info, info->type};
        erase(s, info);
    }
}

/* What cannot be typed now and could before. */
static void report_new(struct shaping *s, struct cm_findings *before, const struct cm_findings *now)
{
    for (size_t i = 0; i < now->count; i++) {
        struct cm_finding item = now->items[i];

        item.status = CM_BAD_ARGUMENT;
        if (cm_findings_put(before, &item))
            cm_findings_put(s->findings, &item);
    }
}

static enum cm_status infer_again(struct shaping *s, const struct cm_edit_types *types,
                                  struct cm_findings *before, struct cm_error *err)
{
    struct declared_list list = {0};
    struct cm_findings now = {.arena = s->scratch};
    size_t dropped = 0;

    erase_declared(s, &s->graph->output, &list);
    const size_t n_outputs = list.count;
    erase_declared(s, &s->graph->value_info, &list);
    struct cm_str *names = CM_NEW_ARRAY(s->scratch, struct cm_str, list.count);
    struct cm_type_proto **found = CM_NEW_ARRAY(s->scratch, struct cm_type_proto *, list.count);
    for (size_t i = 0; i < list.count; i++)
        names[i] = list.items[i].info->name;
    CM_TRY(types->infer(types->arg, s->model, names, list.count, found, &now, err));
    report_new(s, before, &now);
    for (size_t i = 0; i < list.count; i++) {
        struct cm_value_info_proto *info = list.items[i].info;
        if (is_typed(found[i])) {
            if (!s->inputs_changed)
                fill_gaps(found[i], list.items[i].old);
            info->type = found[i];
        } else if (!s->inputs_changed) {
            info->type = (struct cm_type_proto *)(uintptr_t)list.items[i].old;
        } else if (i >= n_outputs && !is_typed(info->type)) {
            info->type = NULL;
            dropped++;
        }
    }
    if (dropped) { /* entries that say nothing any more */
        CM_LIST_KEEP(s->graph, CM_GRAPH_VALUE_INFO, &s->graph->value_info,
                     s->graph->value_info.items[i].type != NULL);
        cm_findings_note(s->findings, "value_info of %zu values was dropped: it cannot be inferred",
                         dropped);
    }
    if (s->nested)
        cm_findings_note(s->findings,
                         "sizes in %zu shapes inside bodies and functions were dropped", s->nested);
    return CM_OK;
}

static enum cm_status change_all(struct shaping *s, const struct cm_reshaping *changes,
                                 size_t count, const struct cm_edit_types *types,
                                 struct cm_findings *before, struct cm_error *err)
{
    for (size_t i = 0; i < count; i++)
        CM_TRY(set_one(s, &changes[i]));
    CM_TRY(cm_findings_fail(s->findings, err));
    struct cm_nodes sorted = cm_nodes_sorted(s->scratch, &s->graph->node);
    CM_TRY(follow_nodes(s, &sorted));
    CM_TRY(follow_training(s));
    for (size_t i = 0; s->inputs_changed && i < s->model->functions.count; i++)
        CM_TRY(cm_message_walk(&cm_function_info, &s->model->functions.items[i], erase_nested, s));
    CM_TRY(infer_again(s, types, before, err));
    return cm_findings_fail(s->findings, err);
}

enum cm_status cm_edit_set_shapes(struct cm_model_file *file, const struct cm_reshaping *changes,
                                  size_t count, const struct cm_edit_types *types,
                                  struct cm_arena *scratch, struct cm_findings *findings,
                                  struct cm_error *err)
{
    struct cm_model_file *changed = cm_model_copy(findings->arena, file);
    struct shaping s = {.model = &changed->model,
                        .graph = changed->model.graph,
                        .scratch = scratch,
                        .findings = findings,
                        .moved.arena = scratch};
    struct cm_findings before = {.arena = scratch};

    if (!s.graph)
        return cm_fail(err, CM_BAD_MODEL, "the model has no graph");
    CM_TRY(types->infer(types->arg, s.model, NULL, 0, NULL, &before, err));
    CM_TRY(change_all(&s, changes, count, types, &before, err));
    file->model = changed->model;
    return CM_OK;
}
