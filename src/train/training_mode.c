/* The training step's own forward: from the first node whose training behaviour differs, the
 * algorithm holds copies of the nodes, with BatchNormalization and Dropout in training mode. They
 * read the same initializers; the inference graph stays as it is. */
// SPDX-License-Identifier: Apache-2.0
#include "train/draft.h"

#include "graph/builder.h"
#include "graph/node_order.h"
#include "graph/registry.h"
#include "onnx/tensor_data.h"

enum { DEPTH_MAX = 64 };

struct forward {
    struct cm_draft *draft;
    struct cm_map needed; /* names of values that y is computed from */
    struct cm_map
        statistics;   /* running statistics to the value that holds them now, struct cm_str * */
    struct cm_str on; /* a true scalar, once it is made */
};

/* ---- which nodes ---- */

static bool is_false(const struct cm_draft *draft, struct cm_str name)
{
    const struct cm_draft_source *source = name.size ? cm_draft_source(draft, name) : NULL;
    struct cm_tensor tensor;

    if (!name.size)
        return true;
    if (!source || !source->tensor || source->is_input ||
        cm_tensor_proto_load(source->tensor, draft->file->files, &tensor, NULL))
        return false;
    const bool off =
        tensor.type == CM_BOOL && cm_tensor_count(&tensor) == 1 && cm_tensor_int(&tensor, 0) == 0;
    cm_tensor_drop(&tensor);
    return off;
}

static struct cm_str input_of(const struct cm_node_proto *node, size_t index)
{
    return index < node->input.count ? node->input.items[index] : CM_STR_NONE;
}

static bool is_set(const struct cm_node_proto *node, const char *attribute)
{
    const struct cm_attribute_proto *mode = cm_node_find_attribute(node, attribute);
    return mode && mode->i != 0;
}

static bool gives_statistics(const struct cm_node_proto *node,
                             const struct cm_training_form *training)
{
    for (int i = 0; i < training->n_statistics; i++) {
        const size_t o = (size_t)(training->statistics_output + i);
        if (o >= node->output.count || !node->output.items[o].size)
            return false;
    }
    return true;
}

/* A node that is in training mode but keeps its statistics to itself counts too: they must be
 * updated. */
static bool differs(const struct cm_draft *draft, const struct cm_node_proto *node)
{
    const struct cm_training_form *training = cm_builtin_op(node)->training;

    if (!training)
        return false;
    if (training->mode_attribute && !is_set(node, training->mode_attribute))
        return true;
    if (training->mode_input && is_false(draft, input_of(node, (size_t)training->mode_input)))
        return true;
    return !gives_statistics(node, training);
}

/* Whether a mode is set in a function, and to what, is seen when it is expanded. */
bool cm_nodes_change_in_training(const struct cm_nodes *nodes, int depth)
{
    for (size_t i = 0; i < nodes->count && depth < DEPTH_MAX; i++) {
        const struct cm_node_proto *node = &nodes->items[i];
        const struct cm_graph_proto *body;

        if (cm_builtin_op(node)->training)
            return true;
        for (size_t b = 0; (body = cm_node_subgraph(node, b)); b++)
            if (cm_nodes_change_in_training(&body->node, depth + 1))
                return true;
    }
    return false;
}

/* ---- who needs what ---- */

static void need_graph(struct forward *f, const struct cm_graph_proto *graph, int depth);

static void need(struct forward *f, struct cm_str name)
{
    if (name.size)
        cm_map_insert(&f->needed, f->draft->arena, name, NULL);
}

static void need_node(struct forward *f, const struct cm_node_proto *node, int depth)
{
    const struct cm_graph_proto *body;

    for (size_t i = 0; i < node->input.count; i++)
        need(f, node->input.items[i]);
    for (size_t b = 0; depth < DEPTH_MAX && (body = cm_node_subgraph(node, b)); b++)
        need_graph(f, body, depth + 1);
}

static void need_graph(struct forward *f, const struct cm_graph_proto *graph, int depth)
{
    for (size_t i = 0; i < graph->node.count; i++)
        need_node(f, &graph->node.items[i], depth);
    for (size_t i = 0; i < graph->output.count; i++)
        need(f, graph->output.items[i].name);
}

static bool makes_needed(const struct forward *f, const struct cm_node_proto *node)
{
    for (size_t o = 0; o < node->output.count; o++)
        if (node->output.items[o].size && cm_map_find(&f->needed, node->output.items[o]))
            return true;
    return false;
}

/* ---- copies ---- */

/* Names that a body defines, and those around it. */
struct own {
    struct cm_map names;
    const struct own *outer;
};

static struct cm_str moved(const struct forward *f, const struct own *own, struct cm_str name)
{
    for (; own; own = own->outer)
        if (cm_map_find(&own->names, name))
            return name;
    return cm_draft_moved(f->draft, name);
}

static bool reads_moved(struct forward *f, const struct cm_node_proto *node, int depth)
{
    const struct cm_graph_proto *body;

    for (size_t i = 0; i < node->input.count; i++)
        if (cm_map_find(&f->draft->moved, node->input.items[i]))
            return true;
    for (size_t b = 0; depth < DEPTH_MAX && (body = cm_node_subgraph(node, b)); b++) {
        for (size_t i = 0; i < body->node.count; i++)
            if (reads_moved(f, &body->node.items[i], depth + 1) ||
                differs(f->draft, &body->node.items[i]))
                return true;
        for (size_t i = 0; i < body->output.count; i++)
            if (cm_map_find(&f->draft->moved, body->output.items[i].name))
                return true;
    }
    return false;
}

static void set_mode_input(struct forward *f, struct cm_node_proto *node, size_t index)
{
    struct cm_strs in = {CM_NEW_ARRAY(f->draft->arena, struct cm_str, index + 1), index + 1};

    if (!f->on.size)
        f->on = cm_draft_scalar(f->draft, "mode", CM_BOOL, 1);
    for (size_t i = 0; i < index; i++)
        in.items[i] = input_of(node, i);
    in.items[index] = f->on;
    node->input = in;
    cm_msg_set(&node->msg, CM_NODE_INPUT);
}

static void replace_attribute(struct cm_draft *draft, struct cm_node_proto *node,
                              struct cm_attribute_proto attribute)
{
    struct cm_attribute_proto *items =
        CM_NEW_ARRAY(draft->arena, struct cm_attribute_proto, node->attribute.count + 1);
    size_t count = 0;

    for (size_t i = 0; i < node->attribute.count; i++)
        if (!cm_str_equal(node->attribute.items[i].name, attribute.name))
            items[count++] = node->attribute.items[i];
    items[count++] = attribute;
    node->attribute.items = items;
    node->attribute.count = count;
    cm_msg_set(&node->msg, CM_NODE_ATTRIBUTE);
}

static void set_mode(struct forward *f, struct cm_node_proto *node,
                     const struct cm_training_form *training)
{
    if (training->mode_input)
        set_mode_input(f, node, (size_t)training->mode_input);
    if (training->mode_attribute)
        replace_attribute(f->draft, node,
                          cm_attr_int(f->draft->arena, training->mode_attribute, 1));
}

static void copy_body(struct forward *f, struct cm_graph_proto *graph, const struct own *outer,
                      int depth);

static void copy_bodies(struct forward *f, struct cm_node_proto *node, const struct own *outer,
                        int depth)
{
    struct cm_arena *arena = f->draft->arena;
    const size_t count = node->attribute.count;

    if (!cm_node_subgraph(node, 0) || depth >= DEPTH_MAX)
        return;
    struct cm_attribute_proto *items = CM_NEW_ARRAY(arena, struct cm_attribute_proto, count);
    for (size_t a = 0; a < count; a++) {
        items[a] = node->attribute.items[a];
        if (!items[a].g)
            continue;
        items[a].g = CM_NEW(arena, struct cm_graph_proto);
        *items[a].g = *node->attribute.items[a].g;
        copy_body(f, items[a].g, outer, depth + 1);
        cm_msg_set(&items[a].msg, CM_ATTRIBUTE_G);
    }
    node->attribute.items = items;
    cm_msg_set(&node->msg, CM_NODE_ATTRIBUTE);
}

static void copy_body(struct forward *f, struct cm_graph_proto *graph, const struct own *outer,
                      int depth)
{
    struct cm_arena *arena = f->draft->arena;
    struct own own = {.outer = outer};

    for (size_t i = 0; i < graph->input.count; i++)
        cm_map_insert(&own.names, arena, graph->input.items[i].name, NULL);
    for (size_t i = 0; i < graph->initializer.count; i++)
        cm_map_insert(&own.names, arena, graph->initializer.items[i].name, NULL);
    struct cm_node_proto *nodes = CM_NEW_ARRAY(arena, struct cm_node_proto, graph->node.count);
    for (size_t n = 0; n < graph->node.count; n++) {
        struct cm_node_proto *node = &nodes[n];
        *node = graph->node.items[n];
        const bool other = differs(f->draft, node);
        struct cm_strs in = {CM_NEW_ARRAY(arena, struct cm_str, node->input.count),
                             node->input.count};
        for (size_t i = 0; i < in.count; i++)
            in.items[i] = moved(f, &own, node->input.items[i]);
        node->input = in;
        cm_msg_set(&node->msg, CM_NODE_INPUT);
        const struct cm_training_form *training = cm_builtin_op(node)->training;
        if (other && !training->n_statistics)
            set_mode(f, node, training);
        else if (other)
            cm_draft_block(f->draft,
                           "node %s'%.*s' (%.*s) is inside a body of control flow, where its "
                           "running statistics cannot be updated",
                           node->name.size ? "" : "making ",
                           CM_STR_FMT(node->name.size      ? node->name
                                      : node->output.count ? node->output.items[0]
                                                           : CM_STR_NONE),
                           CM_STR_FMT(node->op_type));
        copy_bodies(f, node, &own, depth);
        for (size_t o = 0; o < node->output.count; o++)
            cm_map_insert(&own.names, arena, node->output.items[o], NULL);
    }
    graph->node.items = nodes;
    cm_msg_set(&graph->msg, CM_GRAPH_NODE);
    struct cm_value_info_proto *outputs =
        CM_NEW_ARRAY(arena, struct cm_value_info_proto, graph->output.count);
    for (size_t o = 0; o < graph->output.count; o++) {
        outputs[o] = graph->output.items[o];
        outputs[o].name = moved(f, &own, outputs[o].name);
        cm_msg_set(&outputs[o].msg, CM_VALUE_INFO_NAME);
    }
    graph->output.items = outputs;
    cm_msg_set(&graph->msg, CM_GRAPH_OUTPUT);
}

/* The value that holds a running statistic: itself, or what an earlier node made of it. */
static struct cm_str statistic_now(struct forward *f, struct cm_str name)
{
    const uint64_t *found = cm_map_find(&f->statistics, name);
    return found ? *(const struct cm_str *)(uintptr_t)*found : name;
}

static void keep_statistic(struct forward *f, struct cm_str name, struct cm_str value)
{
    struct cm_str *kept = CM_NEW(f->draft->arena, struct cm_str);
    *kept = value;
    *cm_map_insert(&f->statistics, f->draft->arena, name, NULL) = (uint64_t)(uintptr_t)kept;
}

static bool is_variable(const struct cm_draft *draft, struct cm_str name)
{
    const struct cm_draft_source *source = name.size ? cm_draft_source(draft, name) : NULL;
    return source && source->tensor && !source->node;
}

/* The outputs before the statistics stay; each statistic is given its next value. */
static void update_statistics(struct forward *f, struct cm_node_proto *node,
                              const struct cm_training_form *training)
{
    struct cm_draft *draft = f->draft;
    const size_t before = (size_t)training->statistics_output;
    const size_t count = (size_t)training->n_statistics;
    struct cm_strs out = {CM_NEW_ARRAY(draft->arena, struct cm_str, before + count),
                          before + count};

    for (size_t o = 0; o < before && o < node->output.count; o++)
        out.items[o] = node->output.items[o];
    for (size_t i = 0; i < count; i++) {
        const size_t input = (size_t)training->statistics_input + i;
        const struct cm_str statistic = input_of(node, input);
        out.items[before + i] = cm_draft_name(draft, "%.*s.next", CM_STR_FMT(statistic));
        if (is_variable(draft, statistic)) {
            node->input.items[input] = statistic_now(f, statistic);
            keep_statistic(f, statistic, out.items[before + i]);
        } else {
            cm_draft_note(draft, "'%.*s' is computed, so training does not update it",
                          CM_STR_FMT(statistic));
        }
    }
    node->output = out;
    cm_msg_set(&node->msg, CM_NODE_OUTPUT);
}

static void copy_node(struct forward *f, const struct cm_node_proto *from)
{
    struct cm_draft *draft = f->draft;
    struct cm_arena *arena = draft->arena;
    struct cm_node_proto node = *from;
    const bool other = differs(draft, from);
    struct cm_strs in = {CM_NEW_ARRAY(arena, struct cm_str, from->input.count), from->input.count};
    struct cm_strs out = {CM_NEW_ARRAY(arena, struct cm_str, from->output.count),
                          from->output.count};

    for (size_t i = 0; i < in.count; i++)
        in.items[i] = cm_draft_moved(draft, from->input.items[i]);
    node.input = in;
    if (from->name.size) {
        node.name = cm_arena_printf(arena, "%.*s.training", CM_STR_FMT(from->name));
        cm_msg_set(&node.msg, CM_NODE_NAME);
    }
    copy_bodies(f, &node, NULL, 0);
    for (size_t o = 0; o < out.count; o++) {
        if (!from->output.items[o].size)
            continue;
        struct cm_str *name = CM_NEW(arena, struct cm_str);
        *name = cm_draft_name(draft, "%.*s.training", CM_STR_FMT(from->output.items[o]));
        out.items[o] = *name;
        *cm_map_insert(&draft->moved, arena, from->output.items[o], NULL) =
            (uint64_t)(uintptr_t)name;
    }
    node.output = out;
    cm_msg_set(&node.msg, CM_NODE_INPUT);
    cm_msg_set(&node.msg, CM_NODE_OUTPUT);
    if (other) {
        const struct cm_training_form *training = cm_builtin_op(from)->training;
        if (training->n_statistics)
            update_statistics(f, &node, training);
        set_mode(f, &node, training);
    }
    *CM_PUSH(arena, &draft->nodes) = node;
}

/* A node that is in training mode in the inference graph already: its results are bound. */
static void bind_trained(struct forward *f, const struct cm_node_proto *node,
                         const struct cm_training_form *training)
{
    for (size_t i = 0; i < (size_t)training->n_statistics; i++) {
        const struct cm_str statistic = input_of(node, (size_t)training->statistics_input + i);
        if (!is_variable(f->draft, statistic))
            continue;
        const struct cm_str next = cm_draft_name(f->draft, "%.*s.next", CM_STR_FMT(statistic));
        cm_draft_node(f->draft, "", "Identity", 1,
                      &node->output.items[(size_t)training->statistics_output + i], 1, &next);
        keep_statistic(f, statistic, next);
    }
}

bool cm_draft_is_statistic(const struct cm_draft *draft, struct cm_str name)
{
    return name.size && cm_map_find(&draft->statistics, name);
}

void cm_draft_training_mode(struct cm_draft *draft, struct cm_str y)
{
    struct forward f = {.draft = draft};
    const struct cm_graph_proto *graph = draft->model->graph;
    const struct cm_nodes nodes = cm_nodes_sorted(draft->arena, &graph->node);
    size_t copies = 0;

    need(&f, y);
    for (size_t i = nodes.count; i-- > 0;)
        if (makes_needed(&f, &nodes.items[i]))
            need_node(&f, &nodes.items[i], 0);
    for (size_t i = 0; i < nodes.count; i++) {
        const struct cm_node_proto *node = &nodes.items[i];
        if (!makes_needed(&f, node))
            continue;
        if (differs(draft, node) || reads_moved(&f, node, 0)) {
            copy_node(&f, node);
            copies++;
        } else if (cm_builtin_op(node)->training) {
            bind_trained(&f, node, cm_builtin_op(node)->training);
        }
    }
    for (size_t i = 0; i < graph->initializer.count; i++) {
        const struct cm_tensor_proto *tensor = &graph->initializer.items[i];
        if (cm_map_find(&f.statistics, tensor->name))
            cm_draft_bind(draft, tensor->name, statistic_now(&f, tensor->name),
                          (enum cm_dtype)tensor->data_type, &tensor->dims);
    }
    if (copies)
        cm_draft_note(draft,
                      "%zu node%s computed by training itself, BatchNormalization and Dropout in "
                      "training mode",
                      copies, copies == 1 ? " is" : "s are");
}
