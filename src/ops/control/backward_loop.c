/* Building backward Scans and Loops. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/control/backward_loop.h"

#include "ops/control/branch.h"
#include "ops/sequence/sequence_grad.h"

void cm_backward_init(struct cm_backward *b, struct cm_builder *outer, cm_value trips)
{
    struct cm_arena *arena = cm_builder_arena(outer);
    *b = (struct cm_backward){.outer = outer, .arena = arena, .is_scan = !trips, .trips = trips};
    b->graph = cm_graph_new(outer->graph->module, outer->graph, CM_STR("backward"));
    b->build = (struct cm_builder){.graph = b->graph, .status = outer->status, .err = outer->err};
    if (b->is_scan)
        return;
    b->from_end =
        cm_graph_add_input(b->graph, CM_STR_NONE, cm_type_tensor(arena, CM_INT64, 0, NULL));
    b->go = cm_graph_add_input(b->graph, CM_STR_NONE, cm_type_tensor(arena, CM_BOOL, 0, NULL));
    const cm_value last = cm_emit(b, "Sub", trips, cm_build_int64(&b->build, 1));
    b->number = cm_emit(b, "Sub", last, b->from_end);
}

cm_value cm_backward_state(struct cm_backward *b, cm_value initial, const struct cm_type *type)
{
    *CM_PUSH(b->arena, &b->inputs) = initial;
    return cm_graph_add_input(b->graph, CM_STR_NONE, type);
}

static enum cm_dtype element_type(const struct cm_builder *build, cm_value value)
{
    const struct cm_type *type = cm_builder_type(build, value);
    while (type->elem)
        type = type->elem;
    return type->dtype;
}

void cm_backward_part(struct cm_backward *b, const struct cm_backward_part *part)
{
    struct cm_backward_part *added = CM_PUSH(b->arena, &b->parts);
    *added = *part;
    if (b->is_scan || b->outer->status)
        return;
    const struct cm_attribute_proto dtype =
        cm_attr_int(b->arena, "dtype", (int64_t)element_type(b->outer, part->like));
    const cm_value none = cm_build(
        b->outer,
        &(struct cm_emission){.op = "SequenceEmpty", .attributes = &dtype, .n_attributes = 1});
    if (!b->outer->status)
        added->state = cm_backward_state(b, none, cm_builder_type(b->outer, none));
}

cm_value cm_backward_slice(struct cm_backward *b, cm_value whole, int64_t axis, int64_t direction)
{
    if (!b->is_scan)
        return cm_emit_with(b, "Gather", CM_ATTRIBUTES(cm_attr_int(b->arena, "axis", axis)), whole,
                            direction ? b->from_end : b->number);
    const struct cm_type *type = cm_builder_type(b->outer, whole);
    int at = 0;
    if (type->rank != CM_RANK_UNKNOWN)
        cm_axis_fix(axis, type->rank, &at);
    *CM_PUSH(b->arena, &b->inputs) = whole;
    *CM_PUSH(b->arena, &b->axes) = axis;
    *CM_PUSH(b->arena, &b->directions) = 1 - direction;
    return cm_graph_add_input(b->graph, CM_STR_NONE, cm_type_without_axis(b->arena, type, at));
}

cm_value cm_backward_item(struct cm_backward *b, cm_value sequence)
{
    return cm_emit(b, "SequenceAt", sequence, b->number);
}

void cm_backward_return(struct cm_backward *b, cm_value value)
{
    const size_t n_states =
        b->is_scan ? b->inputs.count - b->axes.count : b->inputs.count - b->parts.count;
    const size_t at = b->outputs.count;
    if (b->is_scan || at < n_states) {
        value = cm_emit(b, "Identity", value); /* may be an output of a graph once */
    } else {
        const struct cm_backward_part *part = &b->parts.items[at - n_states];
        value = part->direction ? cm_emit(b, "SequenceInsert", part->state, value)
                                : cm_emit(b, "SequenceInsert", part->state, value,
                                          cm_build_int64(&b->build, 0));
    }
    *CM_PUSH(b->arena, &b->outputs) = value;
}

void cm_prune_body(struct cm_graph *graph)
{
    for (struct cm_node *node = graph->last, *before; node; node = before) {
        bool used = false;
        before = node->prev;
        for (int o = 0; o < node->n_outputs; o++)
            used =
                used || (node->outputs[o] && cm_value_get(graph->module, node->outputs[o])->n_uses);
        if (!used)
            cm_graph_remove_node(node);
    }
}

static void emit_scan(struct cm_backward *b, cm_value *results)
{
    const size_t n_parts = b->parts.count;
    int64_t *axes = CM_NEW_ARRAY(b->arena, int64_t, n_parts);
    int64_t *directions = CM_NEW_ARRAY(b->arena, int64_t, n_parts);
    for (size_t i = 0; i < n_parts; i++) {
        axes[i] = b->parts.items[i].axis;
        directions[i] = 1 - b->parts.items[i].direction;
    }
    const struct cm_attribute_proto attributes[] = {
        cm_attr_int(b->arena, "num_scan_inputs", (int64_t)b->axes.count),
        cm_attr_ints(b->arena, "scan_input_axes", b->axes.count, b->axes.items),
        cm_attr_ints(b->arena, "scan_input_directions", b->directions.count, b->directions.items),
        cm_attr_ints(b->arena, "scan_output_axes", n_parts, axes),
        cm_attr_ints(b->arena, "scan_output_directions", n_parts, directions),
    };
    cm_build(b->outer, &(struct cm_emission){.op = "Scan",
                                             .inputs = b->inputs.items,
                                             .n_inputs = b->inputs.count,
                                             .attributes = attributes,
                                             .n_attributes = n_parts ? 5 : 3,
                                             .body_graphs = &b->graph,
                                             .body_names = (const char *const[]){"body"},
                                             .n_bodies = 1,
                                             .n_outputs = b->outputs.count,
                                             .outputs = results});
}

static void emit_loop(struct cm_backward *b, cm_value *results)
{
    cm_value *inputs = CM_NEW_ARRAY(b->arena, cm_value, b->inputs.count + 2);
    inputs[0] = b->trips;
    memcpy(inputs + 2, b->inputs.items, b->inputs.count * sizeof *inputs);
    cm_build(b->outer, &(struct cm_emission){.op = "Loop",
                                             .inputs = inputs,
                                             .n_inputs = b->inputs.count + 2,
                                             .body_graphs = &b->graph,
                                             .body_names = (const char *const[]){"body"},
                                             .n_bodies = 1,
                                             .n_outputs = b->outputs.count,
                                             .outputs = results});
}

enum cm_status cm_backward_emit(struct cm_backward *b, cm_value *results)
{
    const size_t n_outputs = b->outputs.count;
    const size_t head = b->is_scan ? 0 : 1;
    cm_value *outputs = CM_NEW_ARRAY(b->arena, cm_value, n_outputs + 1);
    if (head)
        outputs[0] = cm_emit(b, "Identity", b->go);
    CM_TRY(b->build.status);
    if (n_outputs)
        memcpy(outputs + head, b->outputs.items, n_outputs * sizeof *outputs);
    cm_graph_set_outputs(b->graph, outputs, n_outputs + head);
    cm_prune_body(b->graph);
    if (b->is_scan)
        emit_scan(b, results);
    else
        emit_loop(b, results);
    const size_t first = n_outputs - b->parts.count;
    for (size_t i = 0; !b->is_scan && i < b->parts.count; i++) {
        const struct cm_backward_part *part = &b->parts.items[i];
        if (!part->items)
            results[first + i] =
                cm_build_joined(b->outer, results[first + i], part->axis, true, part->like);
    }
    return b->outer->status;
}
