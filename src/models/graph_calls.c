/* Calls of the inference graph become the graph, or copies of its nodes. */
// SPDX-License-Identifier: Apache-2.0
#include "models/graph_calls.h"

#include "base/array.h"
#include "graph/node_order.h"
#include "models/edit.h"
#include "onnx/decode.h"
#include "onnx/encode.h"

enum { COPIED_NODES_MAX = 1 << 20 };

/* Names to names. */
struct name_map {
    struct cm_map places; /* 1 + number */
    CM_ARRAY(struct cm_str) to;
};

struct calls {
    struct cm_arena *arena;
    const struct cm_model_proto *model;
    const struct cm_graph_proto *graph, *algorithm;
    size_t entry;
    struct cm_name_set theirs, own, nested; /* defined by the graph, the algorithm, graphs in it */
    struct cm_map constants;                /* initializers of the graph */
    struct cm_map taken;                    /* every name there is */
    struct cm_map plain; /* inputs of the algorithm that are fed: 1 + the call that was given it */
    struct name_map names;   /* of the algorithm */
    size_t n_calls, primary; /* nodes; SIZE_MAX: no call is the graph itself */
    size_t copied;
    struct cm_error *err;
};

/* ---- names ---- */

static void map_name(struct calls *c, struct name_map *map, struct cm_str from, struct cm_str to)
{
    bool added;
    uint64_t *place = cm_map_insert(&map->places, c->arena, from, &added);

    if (!added) {
        map->to.items[*place - 1] = to;
        return;
    }
    *CM_PUSH(c->arena, &map->to) = to;
    *place = map->to.count;
}

static struct cm_str mapped(const struct name_map *map, struct cm_str name)
{
    const uint64_t place = cm_map_get(&map->places, name, 0);

    return place ? map->to.items[place - 1] : name;
}

static bool is_mapped(const struct name_map *map, struct cm_str name)
{
    return cm_map_find(&map->places, name) != NULL;
}

static bool put_name(void *arg, struct cm_str *name)
{
    const struct cm_str to = mapped(arg, *name);

    if (cm_str_equal(to, *name))
        return false;
    *name = to;
    return true;
}

static bool note_taken(void *arg, struct cm_str *name)
{
    struct calls *c = arg;

    cm_map_insert(&c->taken, c->arena, *name, NULL);
    return false;
}

static struct cm_str fresh(struct calls *c, struct cm_str name)
{
    for (size_t i = 1;; i++) {
        const struct cm_str made = cm_arena_printf(c->arena, "%.*s.%zu", CM_STR_FMT(name), i);

        if (cm_map_add(&c->taken, c->arena, made))
            return made;
    }
}

/* ---- calls ---- */

bool cm_calls_graph(const struct cm_model_proto *model)
{
    for (size_t k = 0; k < model->training_info.count; k++)
        if (cm_has_graph_call(model->training_info.items[k].algorithm))
            return true;
    return false;
}

struct call_count {
    size_t calls;
    struct cm_name_set *nested;
    const struct cm_graph_proto *outer;
};

static enum cm_status count_call(void *arg, const struct cm_message_info *info, struct cm_msg *msg)
{
    struct call_count *count = arg;
    void *any = msg;

    if (info == &cm_node_info)
        count->calls += cm_is_graph_call(any);
    if (info == &cm_graph_info && count->nested && any != (const void *)count->outer)
        cm_graph_each_defined(any, cm_name_set_add, count->nested);
    return CM_OK;
}

/* Of a graph and the graphs in it. */
static size_t calls_in(const struct cm_graph_proto *graph, struct cm_name_set *nested)
{
    struct call_count count = {.nested = nested, .outer = graph};

    if (graph && cm_message_walk(&cm_graph_info, (void *)(uintptr_t)graph, count_call, &count))
        return SIZE_MAX;
    return count.calls;
}

static struct cm_str argument(const struct cm_node_proto *node, size_t i)
{
    return i < node->input.count ? node->input.items[i] : CM_STR_NONE;
}

static enum cm_status refuse(const struct calls *c, size_t node, const char *format, ...)
    CM_PRINTF(3, 4);

static enum cm_status refuse(const struct calls *c, size_t node, const char *format, ...)
{
    char why[400];
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    if (node == SIZE_MAX)
        return cm_fail(c->err, CM_BAD_MODEL, "training_info[%zu]: %s", c->entry, why);
    return cm_fail(c->err, CM_BAD_MODEL, "training_info[%zu].algorithm, node %zu (GraphCall): %s",
                   c->entry, node, why);
}

static enum cm_status check_call(const struct calls *c, size_t n)
{
    const struct cm_node_proto *node = &c->algorithm->node.items[n];
    const struct cm_attribute_proto *name = cm_node_attribute(node, CM_STR("graph_name"));

    if (!name)
        return refuse(c, n, "attribute 'graph_name' is missing");
    if (!cm_str_equal(name->s, c->graph->name))
        return refuse(c, n, "calls graph '%.*s', but the inference graph is called '%.*s'",
                      CM_STR_FMT(name->s), CM_STR_FMT(c->graph->name));
    if (node->input.count > c->graph->input.count)
        return refuse(c, n, "has %zu inputs, but graph '%.*s' takes %zu", node->input.count,
                      CM_STR_FMT(c->graph->name), c->graph->input.count);
    if (node->output.count > c->graph->output.count)
        return refuse(c, n, "has %zu outputs, but graph '%.*s' gives %zu", node->output.count,
                      CM_STR_FMT(c->graph->name), c->graph->output.count);
    for (size_t i = 0; i < c->graph->input.count; i++)
        if (!argument(node, i).size && !cm_map_find(&c->constants, c->graph->input.items[i].name))
            return refuse(c, n, "leaves out input '%.*s' of the graph, which has no initializer",
                          CM_STR_FMT(c->graph->input.items[i].name));
    return CM_OK;
}

/* An algorithm sees what it defines, and initializers. */
static enum cm_status check_reads(const struct calls *c)
{
    for (size_t n = 0; n < c->algorithm->node.count; n++) {
        const struct cm_strs *inputs = &c->algorithm->node.items[n].input;

        for (size_t i = 0; i < inputs->count; i++)
            if (inputs->items[i].size && !cm_name_set_has(&c->own, inputs->items[i]) &&
                !cm_map_find(&c->constants, inputs->items[i]))
                return refuse(c, SIZE_MAX,
                              "node %zu of the algorithm reads '%.*s', which the algorithm does "
                              "not define: with GraphCall it sees only its own values and the "
                              "model's initializers",
                              n, CM_STR_FMT(inputs->items[i]));
    }
    for (size_t i = 0; i < c->algorithm->initializer.count; i++)
        if (cm_name_set_has(&c->theirs, c->algorithm->initializer.items[i].name))
            return refuse(c, SIZE_MAX,
                          "initializer '%.*s' of the algorithm has the name of something in the "
                          "inference graph",
                          CM_STR_FMT(c->algorithm->initializer.items[i].name));
    return CM_OK;
}

static enum cm_status gather(struct calls *c)
{
    const struct cm_training_proto *entry = &c->model->training_info.items[c->entry];

    c->theirs.arena = c->own.arena = c->nested.arena = c->arena;
    cm_graph_each_defined(c->graph, cm_name_set_add, &c->theirs);
    cm_graph_each_defined(c->algorithm, cm_name_set_add, &c->own);
    cm_graph_add_initializers(c->arena, c->graph, &c->constants);
    CM_TRY(cm_edit_names((struct cm_graph_proto *)(uintptr_t)c->graph, note_taken, c));
    CM_TRY(cm_edit_names((struct cm_graph_proto *)(uintptr_t)c->algorithm, note_taken, c));
    for (size_t n = 0; n < c->algorithm->node.count; n++) {
        if (!cm_is_graph_call(&c->algorithm->node.items[n]))
            continue;
        c->n_calls++;
        CM_TRY(check_call(c, n));
    }
    if (calls_in(c->graph, NULL))
        return refuse(c, SIZE_MAX, "the inference graph calls itself with GraphCall");
    if (calls_in(entry->initialization, NULL))
        return refuse(c, SIZE_MAX, "GraphCall is for algorithms, not for initializations");
    if (calls_in(c->algorithm, &c->nested) != c->n_calls)
        return refuse(c, SIZE_MAX,
                      "GraphCall stands in a graph inside a node, which is not "
                      "supported");
    return check_reads(c);
}

/* ---- the call that becomes the graph itself ---- */

/* Of the algorithm: inputs without an initializer. */
static void list_plain_inputs(struct calls *c)
{
    for (size_t i = 0; i < c->algorithm->input.count; i++)
        cm_map_insert(&c->plain, c->arena, c->algorithm->input.items[i].name, NULL);
    for (size_t i = 0; i < c->algorithm->initializer.count; i++)
        cm_map_remove(&c->plain, c->algorithm->initializer.items[i].name);
}

static bool may_be_primary(const struct calls *c, size_t n)
{
    const struct cm_node_proto *node = &c->algorithm->node.items[n];

    for (size_t i = 0; i < node->input.count; i++) {
        const struct cm_str name = node->input.items[i];
        uint64_t *last = cm_map_find(&c->plain, name);

        if (!name.size)
            continue;
        if (!last || *last == n + 1 || cm_map_find(&c->constants, c->graph->input.items[i].name))
            return false;
        *last = n + 1; /* each may stand for one input */
    }
    return true;
}

static void choose_primary(struct calls *c)
{
    c->primary = SIZE_MAX;
    list_plain_inputs(c);
    for (size_t n = 0; n < c->algorithm->node.count && c->primary == SIZE_MAX; n++)
        if (cm_is_graph_call(&c->algorithm->node.items[n]) && may_be_primary(c, n))
            c->primary = n;
    if (c->primary == SIZE_MAX)
        return;
    const struct cm_node_proto *node = &c->algorithm->node.items[c->primary];
    for (size_t i = 0; i < c->graph->input.count; i++)
        if (argument(node, i).size)
            map_name(c, &c->names, argument(node, i), c->graph->input.items[i].name);
    for (size_t i = 0; i < node->output.count; i++)
        if (node->output.items[i].size)
            map_name(c, &c->names, node->output.items[i], c->graph->output.items[i].name);
}

static void avoid(struct calls *c, const struct cm_name_set *names)
{
    for (size_t i = 0; i < names->count; i++)
        if (cm_name_set_has(&c->theirs, names->items[i]) && !is_mapped(&c->names, names->items[i]))
            map_name(c, &c->names, names->items[i], fresh(c, names->items[i]));
}

/* ---- copies ---- */

/* A copy that may be changed, without the tensors: those are shared, or not needed. */
static enum cm_status copy_graph(const struct calls *c, const struct cm_graph_proto *from,
                                 struct cm_graph_proto *out)
{
    struct cm_graph_proto bare = *from;
    struct cm_str bytes;

    bare.initializer.count = bare.sparse_initializer.count = 0;
    cm_msg_clear(&bare.msg, CM_GRAPH_INITIALIZER);
    cm_msg_clear(&bare.msg, CM_GRAPH_SPARSE_INITIALIZER);
    CM_TRY(cm_encode(&cm_graph_info, &bare, c->arena, &bytes, c->err));
    return cm_decode(&cm_graph_info, bytes, c->arena, out, c->err);
}

struct node_list {
    CM_ARRAY(struct cm_node_proto);
};

/* What the names of the graph become in a copy for this call. */
static void map_copy(struct calls *c, const struct cm_node_proto *node, struct name_map *map)
{
    for (size_t i = 0; i < c->graph->input.count; i++)
        if (argument(node, i).size)
            map_name(c, map, c->graph->input.items[i].name, mapped(&c->names, argument(node, i)));
    for (size_t n = 0; n < c->graph->node.count; n++)
        for (size_t o = 0; o < c->graph->node.items[n].output.count; o++) {
            const struct cm_str name = c->graph->node.items[n].output.items[o];

            if (name.size)
                map_name(c, map, name, fresh(c, name));
        }
}

static enum cm_status add_copy(struct calls *c, const struct cm_node_proto *node,
                               struct name_map *map, struct node_list *list)
{
    struct cm_graph_proto *copy = CM_NEW(c->arena, struct cm_graph_proto);

    c->copied += c->graph->node.count;
    if (c->copied > COPIED_NODES_MAX)
        return cm_fail(
            c->err, CM_LIMIT,
            "training_info[%zu]: calls of the inference graph come to more than %d nodes", c->entry,
            COPIED_NODES_MAX);
    CM_TRY(copy_graph(c, c->graph, copy));
    CM_TRY(cm_edit_names(copy, put_name, map));
    for (size_t i = 0; i < copy->node.count; i++)
        *CM_PUSH(c->arena, list) = copy->node.items[i];
    for (size_t i = 0; i < node->output.count; i++)
        if (node->output.items[i].size)
            *CM_PUSH(c->arena, list) =
                cm_identity_proto(c->arena, mapped(map, c->graph->output.items[i].name),
                                  mapped(&c->names, node->output.items[i]));
    return CM_OK;
}

/* A Gradient may name values inside the graph that is called: which, must be clear. */
static void map_inside(struct calls *c, const struct name_map *copy)
{
    for (size_t i = 0; i < c->theirs.count; i++) {
        const struct cm_str name = c->theirs.items[i];

        if (!cm_name_set_has(&c->own, name) && !cm_map_find(&c->constants, name) &&
            !is_mapped(&c->names, name) && is_mapped(copy, name))
            map_name(c, &c->names, name, mapped(copy, name));
    }
}

struct inside {
    const struct calls *c;
    struct cm_str found;
};

static bool find_inside(void *arg, struct cm_str *name)
{
    struct inside *inside = arg;
    const struct calls *c = inside->c;

    if (!inside->found.size && cm_name_set_has(&c->theirs, *name) &&
        !cm_name_set_has(&c->own, *name) && !cm_name_set_has(&c->nested, *name) &&
        !cm_map_find(&c->constants, *name))
        inside->found = *name;
    return false;
}

/* ---- all of it ---- */

static enum cm_status rebuild_nodes(struct calls *c, struct name_map *maps,
                                    struct cm_graph_proto *out)
{
    struct node_list list = {0};
    size_t call = 0;

    for (size_t n = 0; n < c->algorithm->node.count; n++) {
        const struct cm_node_proto *node = &c->algorithm->node.items[n];

        if (!cm_is_graph_call(node))
            *CM_PUSH(c->arena, &list) = out->node.items[n];
        else if (n != c->primary)
            CM_TRY(add_copy(c, node, &maps[call], &list));
        call += cm_is_graph_call(node);
    }
    out->node.items = list.items;
    out->node.count = list.count;
    cm_msg_set(&out->msg, CM_GRAPH_NODE);
    return CM_OK;
}

/* Inputs that are the inference graph's now, and what the file says about values of that. */
static void drop_theirs(const struct calls *c, struct cm_graph_proto *out,
                        struct cm_value_infos *list, int field)
{
    CM_LIST_KEEP(out, field, list, !cm_name_set_has(&c->theirs, list->items[i].name));
}

static void rename_bindings(struct calls *c, struct cm_training_proto *out)
{
    struct cm_entry_proto *items =
        CM_NEW_ARRAY(c->arena, struct cm_entry_proto, out->update_binding.count + 1);

    for (size_t i = 0; i < out->update_binding.count; i++) {
        items[i] = out->update_binding.items[i];
        if (put_name(&c->names, &items[i].value))
            cm_msg_set(&items[i].msg, CM_ENTRY_VALUE);
    }
    out->update_binding.items = items;
}

static enum cm_status convert(struct calls *c, struct cm_training_proto *out)
{
    struct cm_graph_proto *algorithm = CM_NEW(c->arena, struct cm_graph_proto);
    struct inside inside = {.c = c};

    CM_TRY(gather(c));
    choose_primary(c);
    avoid(c, &c->own);
    avoid(c, &c->nested);
    CM_TRY(cm_edit_names((struct cm_graph_proto *)(uintptr_t)c->algorithm, find_inside, &inside));
    if (inside.found.size && c->n_calls > 1)
        return refuse(c, SIZE_MAX,
                      "'%.*s' is a value inside the inference graph, which is called %zu times: "
                      "which one is meant cannot be told",
                      CM_STR_FMT(inside.found), c->n_calls);
    struct name_map *maps = CM_NEW_ARRAY(c->arena, struct name_map, c->n_calls);
    for (size_t n = 0, call = 0; n < c->algorithm->node.count; n++) {
        if (cm_is_graph_call(&c->algorithm->node.items[n]) && n != c->primary)
            map_copy(c, &c->algorithm->node.items[n], &maps[call]);
        call += cm_is_graph_call(&c->algorithm->node.items[n]);
    }
    if (c->n_calls == 1 && c->primary == SIZE_MAX)
        map_inside(c, &maps[0]);
    CM_TRY(copy_graph(c, c->algorithm, algorithm));
    CM_TRY(cm_edit_names(algorithm, put_name, &c->names));
    CM_TRY(rebuild_nodes(c, maps, algorithm));
    drop_theirs(c, algorithm, &algorithm->input, CM_GRAPH_INPUT);
    drop_theirs(c, algorithm, &algorithm->value_info, CM_GRAPH_VALUE_INFO);
    if (c->algorithm->initializer.count) {
        algorithm->initializer = c->algorithm->initializer;
        cm_msg_set(&algorithm->msg, CM_GRAPH_INITIALIZER);
    }
    if (c->algorithm->sparse_initializer.count) {
        algorithm->sparse_initializer = c->algorithm->sparse_initializer;
        cm_msg_set(&algorithm->msg, CM_GRAPH_SPARSE_INITIALIZER);
    }
    out->algorithm = algorithm;
    cm_msg_set(&out->msg, CM_TRAINING_ALGORITHM);
    rename_bindings(c, out);
    return CM_OK;
}

enum cm_status cm_edit_graph_calls(const struct cm_model_proto *model, struct cm_arena *arena,
                                   struct cm_model_proto *out, size_t *converted,
                                   struct cm_error *err)
{
    const size_t count = model->training_info.count;
    size_t done = 0;

    *out = *model;
    if (converted)
        *converted = 0;
    if (!cm_calls_graph(model))
        return CM_OK;
    if (!model->graph)
        return cm_fail(err, CM_BAD_MODEL, "the model has no graph to call");
    struct cm_training_proto *items = CM_NEW_ARRAY(arena, struct cm_training_proto, count);
    for (size_t k = 0; k < count; k++) {
        struct calls c = {.arena = arena,
                          .model = model,
                          .graph = model->graph,
                          .algorithm = model->training_info.items[k].algorithm,
                          .entry = k,
                          .err = err};

        items[k] = model->training_info.items[k];
        if (!cm_has_graph_call(c.algorithm))
            continue;
        CM_TRY(convert(&c, &items[k]));
        done++;
    }
    out->training_info.items = items;
    if (converted)
        *converted = done;
    return CM_OK;
}
