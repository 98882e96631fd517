/* Derives the block size of blocked weights from the shapes of a file. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/nchwc_blocks.h"

#include "base/machine.h"
#include "base/map.h"

enum { SMALL = 8, LARGE = 16 };

const char cm_nchwc_domain[] = "com.microsoft.nchwc";

struct survey {
    struct cm_arena *scratch;
    struct cm_map weights;  /* initializers by name */
    struct cm_map declared; /* value infos by name */
    struct cm_map blocked;  /* values that are stored in blocks: their channels, 0 if not known */
    bool is_used, small, large;
};

static int64_t int_attribute(const struct cm_node_proto *node, const char *name, int64_t preset)
{
    const struct cm_attribute_proto *attribute = cm_node_attribute(node, cm_str(name));

    return attribute ? attribute->i : preset;
}

static struct cm_str input(const struct cm_node_proto *node, size_t i)
{
    return i < node->input.count ? node->input.items[i] : CM_STR("");
}

static void set_blocked(struct survey *s, const struct cm_node_proto *node, uint64_t channels)
{
    if (node->output.count)
        *cm_map_insert(&s->blocked, s->scratch, node->output.items[0], NULL) = channels;
}

/* Channels that the file declares of a value; 0: it does not say. */
static int64_t declared_channels(const struct survey *s, struct cm_str name, size_t axis)
{
    const struct cm_value_info_proto *info =
        (const struct cm_value_info_proto *)(uintptr_t)cm_map_get(&s->declared, name, 0);
    if (!info || !info->type || !info->type->tensor_type || !info->type->tensor_type->shape)
        return 0;
    const struct cm_shape_proto *shape = info->type->tensor_type->shape;
    return axis < shape->dim.count ? shape->dim.items[axis].dim_value : 0;
}

/* ONNX Runtime pads `channels` to whole blocks, which gave `padded`. */
static void note_padding(struct survey *s, int64_t channels, int64_t padded)
{
    s->small |= padded % LARGE != 0;
    s->large |= channels > 0 && padded - channels >= SMALL;
}

/* The weights (M, C/group, ..) have M padded. They are in blocks of both channels, except where C
 * is smaller than a block: then the operand is not in blocks, or the convolution is depthwise. */
static void see_conv(struct survey *s, const struct cm_node_proto *node)
{
    const struct cm_tensor_proto *w =
        (const struct cm_tensor_proto *)(uintptr_t)cm_map_get(&s->weights, input(node, 1), 0);
    if (!w || w->dims.count < 2) {
        set_blocked(s, node, 0);
        return;
    }
    const int64_t outputs = w->dims.items[0], inputs = w->dims.items[1];
    const uint64_t *given = cm_map_find(&s->blocked, input(node, 0));
    note_padding(s, 0, outputs);
    if (!given)
        s->large |= inputs >= SMALL; /* fewer than a block of them */
    else if (inputs > 1)
        s->small |= inputs % LARGE != 0;
    if (given && *given && int_attribute(node, "group", 1) == 1)
        note_padding(s, (int64_t)*given, inputs);
    set_blocked(s, node, (uint64_t)outputs);
}

/* What follows the channels of its operands: all else that ONNX Runtime leaves between blocks. */
static void see_other(struct survey *s, const struct cm_node_proto *node)
{
    const bool joins = cm_str_is(node->op_type, "Concat");
    uint64_t channels = 0;
    bool any = false, all = true;
    for (size_t i = 0; i < node->input.count; i++) {
        const uint64_t *found = cm_map_find(&s->blocked, node->input.items[i]);
        any |= found != NULL;
        all &= found && *found;
        channels = found && joins ? channels + *found : found ? *found : channels;
    }
    if (any)
        set_blocked(s, node, joins && !all ? 0 : channels);
}

static void see_blocked_node(struct survey *s, const struct cm_node_proto *node)
{
    s->is_used = true;
    if (cm_str_is(node->op_type, "Conv")) {
        see_conv(s, node);
    } else if (cm_str_is(node->op_type, "ReorderInput")) {
        /* its result has the padded count, which the weights that read it tell */
        const bool last = int_attribute(node, "channels_last", 0) != 0;
        const int64_t channels = declared_channels(s, input(node, 0), last ? 3 : 1);
        set_blocked(s, node, channels > 0 ? (uint64_t)channels : 0);
    } else if (cm_str_is(node->op_type, "ReorderOutput")) {
        const uint64_t padded = cm_map_get(&s->blocked, input(node, 0), 0);
        if (padded)
            note_padding(s, int_attribute(node, "channels", 0), (int64_t)padded);
    } else {
        see_other(s, node);
    }
}

static void see_graph(struct survey *s, const struct cm_graph_proto *graph);

static void see_nodes(struct survey *s, const struct cm_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++) {
        const struct cm_node_proto *node = &nodes->items[i];
        if (cm_str_is(node->domain, cm_nchwc_domain))
            see_blocked_node(s, node);
        else
            see_other(s, node);
        for (size_t a = 0; a < node->attribute.count; a++)
            if (node->attribute.items[a].g)
                see_graph(s, node->attribute.items[a].g);
    }
}

static void declare(struct survey *s, const struct cm_value_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++)
        *cm_map_insert(&s->declared, s->scratch, infos->items[i].name, NULL) =
            (uint64_t)(uintptr_t)&infos->items[i];
}

/* Recursion is as deep as graphs nest, which the readers of both forms bound. */
static void see_graph(struct survey *s, const struct cm_graph_proto *graph)
{
    declare(s, &graph->input);
    declare(s, &graph->value_info);
    for (size_t i = 0; i < graph->initializer.count; i++)
        *cm_map_insert(&s->weights, s->scratch, graph->initializer.items[i].name, NULL) =
            (uint64_t)(uintptr_t)&graph->initializer.items[i];
    see_nodes(s, &graph->node);
}

static bool imports_domain(const struct cm_model_proto *model)
{
    for (size_t i = 0; i < model->opset_import.count; i++)
        if (cm_str_is(model->opset_import.items[i].domain, cm_nchwc_domain))
            return true;
    return false;
}

/* What ONNX Runtime takes on this machine, whatever the file holds. */
static int64_t size_here(void)
{
#if defined(__x86_64__)
    return cm_this_machine() == CM_AVX512 ? LARGE : SMALL;
#else
    return LARGE;
#endif
}

struct cm_channel_blocks cm_channel_blocks_find(struct cm_arena *scratch,
                                                const struct cm_model_proto *model)
{
    struct survey s = {.scratch = scratch};
    if (!model->graph || !imports_domain(model))
        return (struct cm_channel_blocks){.size = size_here()};
    see_graph(&s, model->graph);
    return (struct cm_channel_blocks){.is_used = s.is_used,
                                      .is_known = s.small != s.large,
                                      .is_at_odds = s.small && s.large,
                                      .size = s.small   ? SMALL
                                              : s.large ? LARGE
                                                        : size_here()};
}
