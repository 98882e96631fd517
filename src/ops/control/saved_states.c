/* Keeping the states of a loop for the way back. Those that keep their shapes are stacked by scan
 * outputs; other tensors are appended to sequences, which the loop carries. A sequence that the
 * body only puts an item into is had by taking the item out. Other sequences and optionals, which
 * cannot be items, are computed again, from the start of the loop, by a Loop inside the backward
 * body. What nothing reads is left out. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/clone.h"
#include "ops/control/iteration.h"

/* Types of states hold for every iteration: a dimension that is known by number or name stays. */
static bool keeps_shape(const struct cm_type *type)
{
    if (type->rank == CM_RANK_UNKNOWN)
        return false;
    for (int i = 0; i < type->rank; i++)
        if (!cm_dim_known(type->dims[i]) && !type->dims[i].symbol)
            return false;
    return true;
}

/* Is the state, after an iteration, what it was before with one item put in? *place counts from the
 * end of the longer sequence where it is negative. */
static bool only_grows(const struct cm_iteration *it, size_t s, int64_t *place)
{
    struct cm_module *module = it->body->module;
    const cm_value before = it->body->inputs[it->head_in + s];
    const struct cm_node *node =
        cm_value_get(module, it->body->outputs[it->head_out + s].value)->node;
    const struct cm_tensor *position = NULL;
    *place = -1;
    if (!node || node->graph != it->body || !cm_str_is(node->op_type, "SequenceInsert") ||
        node->domain.size || cm_node_input(node, 0) != before)
        return false;
    if (!cm_node_input(node, 2))
        return true;
    if (cm_value_constant(module, cm_node_input(node, 2), &position, it->g->build.err) ||
        !position || cm_tensor_count(position) != 1)
        return false;
    *place = cm_tensor_int(position, 0);
    if (*place < 0 && *place > INT64_MIN)
        --*place;
    return true;
}

static enum cm_keeping keeping_of(const struct cm_iteration *it, size_t s)
{
    const struct cm_type *type = cm_builder_type(&it->g->build, it->body->inputs[it->head_in + s]);
    if (type->kind == CM_KIND_TENSOR)
        return !it->is_loop || keeps_shape(type) ? CM_KEEP_STACKED : CM_KEEP_LISTED;
    return type->kind == CM_KIND_SEQUENCE && only_grows(it, s, &it->places[s]) ? CM_KEEP_LAST
                                                                               : CM_KEEP_NOTHING;
}

void cm_iteration_plan(struct cm_iteration *it)
{
    struct cm_arena *arena = cm_builder_arena(&it->g->build);
    it->keeping = CM_NEW_ARRAY(arena, enum cm_keeping, it->n_states);
    it->places = CM_NEW_ARRAY(arena, int64_t, it->n_states);
    it->after = CM_NEW_ARRAY(arena, cm_value, it->n_states);
    for (size_t s = 0; s < it->n_states; s++)
        it->keeping[s] = keeping_of(it, s);
}

/* ---- sequences ---- */

/* The body takes a sequence for each listed state and gives it back with the new state at its end.
 * Returns how many outputs it has then. */
static size_t list_in_body(struct cm_iteration *it, struct cm_graph *body, cm_value *outputs,
                           struct cm_builder *inside)
{
    struct cm_arena *arena = cm_builder_arena(inside);
    size_t n = 0;
    for (; n <= it->n_states; n++)
        outputs[n] = body->outputs[n].value;
    for (size_t s = 0; s < it->n_states; s++) {
        if (it->keeping[s] != CM_KEEP_LISTED)
            continue;
        const struct cm_type *state = cm_builder_type(inside, body->inputs[2 + s]);
        const cm_value list =
            cm_graph_add_input(body, CM_STR_NONE, cm_type_wrap(arena, CM_KIND_SEQUENCE, state));
        outputs[n++] = cm_build(
            inside, &(struct cm_emission){.op = "SequenceInsert", CM_INPUTS(list, outputs[1 + s])});
    }
    for (size_t o = it->n_states + 1; o < body->n_outputs; o++)
        outputs[n++] = body->outputs[o].value;
    return n;
}

/* The uses and the name of an output go to another. */
static void hand_over(struct cm_module *module, cm_value old, cm_value replacement)
{
    const struct cm_str name = cm_value_get(module, old)->name;
    cm_value_replace(module, old, replacement);
    cm_value_set_name(module, old, CM_STR_NONE);
    cm_value_set_name(module, replacement, name);
}

/* States come before scan outputs, so a loop with more of them is another node. */
static enum cm_status list_states(struct cm_iteration *it, size_t n_listed)
{
    struct cm_grad *g = it->g;
    struct cm_node *old = g->node, *node;
    struct cm_module *module = old->module;
    struct cm_arena *arena = cm_module_arena(module);
    struct cm_graph *body = cm_node_body(old, "body");
    struct cm_builder outside = {.graph = old->graph, .before = old, .err = g->build.err};
    struct cm_builder inside = {.graph = body, .err = g->build.err};
    const size_t n_inputs = it->n_states + 2, n_outputs = (size_t)old->n_outputs + n_listed;
    cm_value *inputs = CM_NEW_ARRAY(arena, cm_value, n_inputs + n_listed);
    cm_value *body_outputs = CM_NEW_ARRAY(arena, cm_value, n_outputs + 1);
    bool *wanted = CM_NEW_ARRAY(arena, bool, n_outputs);

    for (size_t i = 0, n = n_inputs; i < n_inputs; i++) {
        inputs[i] = cm_node_input(old, (int)i);
        if (i >= 2 && it->keeping[i - 2] == CM_KEEP_LISTED)
            inputs[n++] = cm_build(
                &outside, &(struct cm_emission){.op = "SequenceConstruct", CM_INPUTS(inputs[i])});
    }
    const size_t n_body_outputs = list_in_body(it, body, body_outputs, &inside);
    CM_TRY(outside.status);
    CM_TRY(inside.status);
    cm_graph_set_outputs(body, body_outputs, n_body_outputs);
    for (size_t o = 0; o < n_outputs; o++)
        wanted[o] = o < it->n_states + n_listed || old->outputs[o - n_listed];
    const struct cm_node_spec spec = {.domain = old->domain,
                                      .op_type = old->op_type,
                                      .name = old->name,
                                      .inputs = inputs,
                                      .n_inputs = n_inputs + n_listed,
                                      .n_outputs = n_outputs,
                                      .wanted = wanted,
                                      .attributes = old->attributes,
                                      .n_attributes = old->n_attributes,
                                      .bodies = old->bodies,
                                      .n_bodies = old->n_bodies,
                                      .original_version = old->original_version};
    CM_TRY(cm_graph_add_node(old->graph, old, &spec, &node, g->build.err));
    old->n_bodies = 0; /* the body is the new node's now */
    for (size_t o = 0; o < (size_t)old->n_outputs; o++)
        if (old->outputs[o])
            hand_over(module, old->outputs[o], node->outputs[o < it->n_states ? o : o + n_listed]);
    cm_graph_remove_node(old);
    g->node = node;
    for (size_t s = 0, n = it->n_states; s < it->n_states; s++)
        if (it->keeping[s] == CM_KEEP_LISTED)
            it->saved[s] = node->outputs[n++];
    return CM_OK;
}

/* ---- scan outputs ---- */

/* Attributes of a Scan list its outputs; the new ones are stacked in order along axis 0, as by
 * default. */
static void extend_attributes(struct cm_iteration *it, size_t extra)
{
    struct cm_node *node = it->g->node;
    struct cm_arena *arena = cm_module_arena(node->module);
    const size_t count = it->n_results + extra;
    for (size_t i = 0; i < node->n_attributes; i++) {
        struct cm_attribute_proto *attr = &node->attributes[i];
        if (!cm_str_is(attr->name, "scan_output_axes") &&
            !cm_str_is(attr->name, "scan_output_directions"))
            continue;
        struct cm_int64s more = {CM_NEW_ARRAY(arena, int64_t, count), count};
        for (size_t j = 0; j < count; j++)
            more.items[j] = cm_listed(attr->ints, j);
        attr->ints = more;
    }
}

static enum cm_status stack_states(struct cm_iteration *it)
{
    struct cm_grad *g = it->g;
    struct cm_node *node = g->node;
    struct cm_arena *arena = cm_module_arena(node->module);
    struct cm_graph *body = cm_node_body(node, "body");
    const size_t before = body->n_outputs;
    cm_value *outputs = CM_NEW_ARRAY(arena, cm_value, before + it->n_states + it->drawn.count + 1);
    size_t n = before;
    struct {
        struct cm_builder build;
    } inside = {{.graph = body, .err = g->build.err}};
    for (size_t o = 0; o < before; o++)
        outputs[o] = body->outputs[o].value;
    for (size_t s = 0; s < it->n_states; s++)
        if (it->keeping[s] == CM_KEEP_STACKED)
            outputs[n++] = cm_emit(&inside, "Identity", body->inputs[it->head_in + s]);
    for (size_t i = 0; i < it->drawn.count; i++)
        outputs[n++] = cm_emit(&inside, "Identity", it->drawn.items[i]);
    if (it->is_loop)
        outputs[n++] = cm_emit(&inside, "Identity", body->inputs[0]);
    CM_TRY(inside.build.status);
    cm_graph_set_outputs(body, outputs, n);
    extend_attributes(it, n - before);
    size_t at = (size_t)node->n_outputs;
    CM_TRY(cm_node_add_outputs(node, n - before, g->build.err));
    for (size_t s = 0; s < it->n_states; s++)
        if (it->keeping[s] == CM_KEEP_STACKED)
            it->saved[s] = node->outputs[at++];
    it->drawn_saved = CM_NEW_ARRAY(arena, cm_value, it->drawn.count);
    for (size_t i = 0; i < it->drawn.count; i++)
        it->drawn_saved[i] = node->outputs[at++];
    if (it->is_loop)
        it->numbers = node->outputs[at];
    return CM_OK;
}

enum cm_status cm_iteration_save(struct cm_iteration *it)
{
    size_t n_listed = 0;
    if (it->is_map && !it->drawn.count)
        return CM_OK;
    it->saved = CM_NEW_ARRAY(cm_builder_arena(&it->g->build), cm_value, it->n_states);
    for (size_t s = 0; s < it->n_states; s++)
        n_listed += it->keeping[s] == CM_KEEP_LISTED;
    if (n_listed)
        CM_TRY(list_states(it, n_listed));
    return stack_states(it);
}

/* ---- on the way back ---- */

/* The states after as many iterations as came before this one, from the start. The condition held
 * for these, so it is not asked. */
static enum cm_status compute_again(struct cm_iteration *it, struct cm_backward *b,
                                    cm_value *states)
{
    struct cm_module *module = b->graph->module;
    const size_t n = it->n_states;
    struct cm_graph *graph = cm_graph_new(module, b->graph, CM_STR("again"));
    struct cm_builder inside = {.graph = graph, .err = b->build.err};
    cm_value *inputs = CM_NEW_ARRAY(b->arena, cm_value, n + 2);
    cm_value *outputs = CM_NEW_ARRAY(b->arena, cm_value, n + 1);
    struct cm_clone clone;
    cm_clone_init(&clone, module);
    for (size_t i = 0; i < n + 2; i++) {
        const cm_value input =
            cm_graph_add_input(graph, CM_STR_NONE, cm_builder_type(&b->build, it->body->inputs[i]));
        cm_clone_map(&clone, it->body->inputs[i], input);
        inputs[i] = i < 2 ? 0 : cm_grad_input(it->g, (int)i);
    }
    inputs[0] = b->number;
    for (size_t i = 0; i < it->drawn.count; i++) {
        const cm_value slice = cm_build(
            &inside,
            &(struct cm_emission){.op = "Gather", CM_INPUTS(it->drawn_saved[i], graph->inputs[0])});
        cm_clone_map(&clone, it->body->inputs[n + 2 + i], slice);
    }
    CM_TRY(inside.status);
    CM_TRY(cm_clone_graph(&clone, &inside, it->body));
    for (size_t o = 0; o <= n; o++)
        outputs[o] = cm_clone_of(&clone, it->body->outputs[o].value);
    cm_graph_set_outputs(graph, outputs, n + 1);
    cm_prune_body(graph);
    cm_build(&b->build, &(struct cm_emission){.op = "Loop",
                                              .inputs = inputs,
                                              .n_inputs = n + 2,
                                              .body_graphs = &graph,
                                              .body_names = (const char *const[]){"body"},
                                              .n_bodies = 1,
                                              .n_outputs = n,
                                              .outputs = states});
    return b->build.status;
}

enum cm_status cm_iteration_restore(struct cm_iteration *it, struct cm_backward *b,
                                    cm_value *states)
{
    bool again = false;
    for (size_t s = 0; s < it->n_states; s++)
        again = again || it->keeping[s] == CM_KEEP_NOTHING;
    if (again)
        CM_TRY(compute_again(it, b, states));
    for (size_t s = 0; s < it->n_states; s++) {
        if (it->keeping[s] == CM_KEEP_STACKED)
            states[s] = cm_backward_slice(b, it->saved[s], 0, 0);
        else if (it->keeping[s] == CM_KEEP_LISTED)
            states[s] = cm_backward_item(b, it->saved[s]);
        else if (it->keeping[s] == CM_KEEP_LAST)
            states[s] =
                cm_emit(b, "SequenceErase", it->after[s], cm_build_int64(&b->build, it->places[s]));
    }
    return b->build.status;
}
