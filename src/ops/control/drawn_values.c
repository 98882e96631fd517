/* What bodies draw, and copies of bodies that read it. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/control/drawn_values.h"

#include "graph/clone.h"

static bool is_dropout(const struct cm_node *node)
{
    return cm_str_is(node->op_type, "Dropout") && !node->domain.size;
}

/* A Dropout that does not train passes its input on. */
static enum cm_status node_draws(const struct cm_node *node, bool *out, struct cm_error *err)
{
    const struct cm_tensor *training = NULL;
    const cm_value mode = cm_node_input(node, 2);
    *out = node->op && node->op->effects & CM_RANDOM;
    if (!*out || !is_dropout(node))
        return CM_OK;
    if (mode)
        CM_TRY(cm_value_constant(node->module, mode, &training, err));
    *out = mode && !(training && cm_tensor_count(training) == 1 && !cm_tensor_int(training, 0));
    return CM_OK;
}

/* Nesting is limited where graphs are built. */
static enum cm_status graph_draws(const struct cm_graph *graph, bool *out, struct cm_error *err)
{
    for (const struct cm_node *node = graph->first; node && !*out; node = node->next) {
        CM_TRY(node_draws(node, out, err));
        for (size_t b = 0; b < node->n_bodies && !*out; b++)
            CM_TRY(graph_draws(node->bodies[b].graph, out, err));
    }
    return CM_OK;
}

/* ---- on the way there: nodes give what their bodies draw ---- */

static cm_value same_again(struct cm_builder *build, cm_value value)
{
    return cm_build(build, &(struct cm_emission){.op = "Identity", CM_INPUTS(value)});
}

/* What a branch gives in place of what the other one drew: of the same type, as far as that is
 * known. */
static cm_value stand_in(struct cm_builder *build, const struct cm_type *type)
{
    struct cm_shape shape = {.rank = type->rank > 0 ? type->rank : 0};
    struct cm_tensor tensor;
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = cm_dim_known(type->dims[i]) ? type->dims[i].value : 0;
    if (build->status)
        return 0;
    build->status = cm_tensor_new(type->dtype, &shape, &tensor, build->err);
    if (build->status)
        return 0;
    memset(tensor.data, 0, cm_tensor_bytes(&tensor));
    const cm_value constant = cm_build_tensor(build, &tensor);
    cm_tensor_drop(&tensor);
    return same_again(build, constant);
}

/* Adds outputs to a body. */
static void add_outputs(struct cm_graph *body, const cm_value *values, size_t count)
{
    const size_t before = body->n_outputs;
    cm_value *outputs = CM_NEW_ARRAY(cm_module_arena(body->module), cm_value, before + count);
    for (size_t o = 0; o < before; o++)
        outputs[o] = body->outputs[o].value;
    memcpy(outputs + before, values, count * sizeof *outputs);
    cm_graph_set_outputs(body, outputs, before + count);
}

enum cm_status cm_drawn_save_branches(struct cm_node *node, const struct cm_drawn drawn[2],
                                      cm_value *saved[2], struct cm_error *err)
{
    static const char *const names[] = {"then_branch", "else_branch"};
    const size_t n_drawn = drawn[0].count + drawn[1].count, before = (size_t)node->n_outputs;
    if (n_drawn == 0)
        return CM_OK;
    cm_value *outputs = CM_NEW_ARRAY(cm_module_arena(node->module), cm_value, n_drawn);
    for (int i = 0; i < 2; i++) {
        struct cm_graph *branch = cm_node_body(node, names[i]);
        struct cm_builder build = {.graph = branch, .err = err};
        for (size_t o = 0; o < n_drawn; o++) {
            const int from = o >= drawn[0].count;
            const cm_value value = drawn[from].items[from ? o - drawn[0].count : o];
            outputs[o] = from == i ? same_again(&build, value)
                                   : stand_in(&build, cm_builder_type(&build, value));
        }
        CM_TRY(build.status);
        add_outputs(branch, outputs, n_drawn);
    }
    CM_TRY(cm_node_add_outputs(node, n_drawn, err));
    saved[0] = node->outputs + before;
    saved[1] = saved[0] + drawn[0].count;
    return CM_OK;
}

static enum cm_status save_slices(struct cm_node *node, const struct cm_drawn *drawn,
                                  struct cm_error *err)
{
    struct cm_graph *body = cm_node_body(node, "body");
    struct cm_builder build = {.graph = body, .err = err};
    cm_value *outputs = CM_NEW_ARRAY(cm_module_arena(node->module), cm_value, drawn->count);
    for (size_t i = 0; i < drawn->count; i++)
        outputs[i] = same_again(&build, drawn->items[i]);
    CM_TRY(build.status);
    add_outputs(body, outputs, drawn->count);
    return cm_node_add_outputs(node, drawn->count, err);
}

/* What the bodies of a node draw becomes outputs of it. */
static enum cm_status find_inside(struct cm_grad *g, struct cm_node *node, struct cm_drawn *out)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    const bool branches = cm_str_is(node->op_type, "If"), loop = cm_str_is(node->op_type, "Loop");
    struct cm_drawn drawn[2] = {0};
    cm_value *saved[2];
    bool draws = false;
    for (size_t b = 0; b < node->n_bodies; b++)
        CM_TRY(graph_draws(node->bodies[b].graph, &draws, g->build.err));
    if (!draws)
        return CM_OK;
    if (node->domain.size || (!branches && !loop))
        return cm_builder_fail(&g->build, CM_UNSUPPORTED,
                               "%s in its body draws random numbers inside another body, and the "
                               "backward pass cannot repeat them",
                               cm_node_describe(node).text);
    const int before = node->n_outputs;
    if (branches) {
        CM_TRY(cm_drawn_find(g, cm_node_body(node, "then_branch"), &drawn[0]));
        CM_TRY(cm_drawn_find(g, cm_node_body(node, "else_branch"), &drawn[1]));
        CM_TRY(cm_drawn_save_branches(node, drawn, saved, g->build.err));
    } else {
        CM_TRY(cm_drawn_find(g, cm_node_body(node, "body"), &drawn[0]));
        CM_TRY(save_slices(node, &drawn[0], g->build.err));
    }
    for (int o = before; o < node->n_outputs; o++)
        *CM_PUSH(arena, out) = node->outputs[o];
    return CM_OK;
}

enum cm_status cm_drawn_find(struct cm_grad *g, struct cm_graph *body, struct cm_drawn *out)
{
    struct cm_arena *arena = cm_builder_arena(&g->build);
    *out = (struct cm_drawn){0};
    for (struct cm_node *node = body->first; node; node = node->next) {
        bool draws = false;
        cm_value value;
        CM_TRY(node_draws(node, &draws, g->build.err));
        CM_TRY(find_inside(g, node, out));
        if (!draws)
            continue;
        if (is_dropout(node)) {
            CM_TRY(cm_node_want_output(node, 1, &value, g->build.err));
            *CM_PUSH(arena, out) = value;
            continue;
        }
        for (int o = 0; o < node->n_outputs; o++)
            if (node->outputs[o])
                *CM_PUSH(arena, out) = node->outputs[o];
    }
    return CM_OK;
}

/* ---- on the way back: copies read it ---- */

/* What Dropout computes, its mask being given. */
static enum cm_status apply_mask(struct cm_node *node, cm_value mask, struct cm_error *err)
{
    struct {
        struct cm_builder build;
    } b = {{.graph = node->graph, .before = node, .err = err}};
    const cm_value x = cm_node_input(node, 0), ratio = cm_node_input(node, 1);
    const cm_value one = cm_emit_scalar_like(&b, x, 1.0), zero = cm_emit_scalar_like(&b, x, 0.0);
    const cm_value dropped =
        ratio ? cm_emit(&b, "CastLike", ratio, x) : cm_emit_scalar_like(&b, x, 0.5);
    const cm_value scale = cm_emit(&b, "Div", one, cm_emit(&b, "Sub", one, dropped));
    const cm_value factor = cm_emit(&b, "Where", cm_node_input(node, 2), scale, one);
    const cm_value y = cm_emit(&b, "Where", mask, cm_emit(&b, "Mul", x, factor), zero);
    CM_TRY(b.build.status);
    if (node->outputs[0])
        cm_value_replace(node->module, node->outputs[0], y);
    return CM_OK;
}

/* The bodies of a node that was made to give what they drew: an output is that, or a stand-in. In a
 * loop the slice of the iteration is given. */
static enum cm_status replace_inside(struct cm_node *node, int output, cm_value given,
                                     struct cm_error *err)
{
    const bool loop = cm_str_is(node->op_type, "Loop");
    for (size_t i = 0; i < node->n_bodies; i++) {
        struct cm_graph *body = node->bodies[i].graph;
        struct cm_builder build = {.graph = body, .before = body->first, .err = err};
        const cm_value out = body->outputs[output + loop].value;
        const cm_value drawn = cm_node_input(cm_value_get(node->module, out)->node, 0);
        if (!cm_value_get(node->module, drawn)->node)
            continue;
        const cm_value here =
            loop ? cm_build(&build, &(struct cm_emission){.op = "Gather",
                                                          CM_INPUTS(given, body->inputs[0])})
                 : given;
        CM_TRY(build.status);
        CM_TRY(cm_drawn_replace(node->module, drawn, here, err));
    }
    return CM_OK;
}

enum cm_status cm_drawn_replace(struct cm_module *module, cm_value drawn, cm_value given,
                                struct cm_error *err)
{
    struct cm_node *node = cm_value_get(module, drawn)->node;
    bool used = false;
    if (!node) /* gone with another output of its own */
        return CM_OK;
    if (node->n_bodies)
        CM_TRY(replace_inside(node, cm_value_get(module, drawn)->output, given, err));
    else if (is_dropout(node))
        CM_TRY(apply_mask(node, given, err));
    cm_value_replace(module, drawn, given);
    for (int o = 0; o < node->n_outputs; o++)
        used = used || (node->outputs[o] && cm_value_get(module, node->outputs[o])->n_uses);
    if (!used)
        cm_graph_remove_node(node);
    return CM_OK;
}
