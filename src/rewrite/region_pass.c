/* The pass that makes regions: first products with what follows them, then groups of the
 * elementwise nodes that are left. */
// SPDX-License-Identifier: Apache-2.0
#include "rewrite/region_pass.h"

#include "base/array.h"
#include "rewrite/pass.h"

/* ---- questions ---- */

/* The types that the region operators are declared for. */
static bool is_region_dtype(enum cm_dtype dtype)
{
    const struct cm_dtype_info *info = cm_dtype_info(dtype);
    switch (info->kind) {
    case CM_CLASS_BOOL:
    case CM_CLASS_SIGNED:
    case CM_CLASS_UNSIGNED:
        return info->bits >= 8;
    case CM_CLASS_FLOAT:
        return info->bits >= 16;
    case CM_CLASS_NONE:
    case CM_CLASS_COMPLEX:
        break;
    }
    return false;
}

static bool is_region_type(const struct cm_type *type)
{
    return type->kind == CM_KIND_TENSOR && is_region_dtype(type->dtype);
}

bool cm_region_is_elementwise(const struct cm_node *node)
{
    enum cm_dtype in[CM_REGION_OPERANDS];
    struct cm_element_loop loop;

    if (!node->op || !node->op->elementwise || node->function || node->n_bodies ||
        node->n_outputs != 1 || node->n_inputs > CM_REGION_OPERANDS)
        return false;
    for (int i = 0; i < node->n_inputs; i++) {
        const cm_value value = node->inputs[i].value;
        in[i] = CM_UNDEFINED;
        if (!value)
            continue;
        const struct cm_type *type = cm_value_get(node->module, value)->fact.type;
        if (!is_region_type(type))
            return false;
        in[i] = type->dtype;
    }
    const struct cm_type *out = cm_value_get(node->module, node->outputs[0])->fact.type;
    return is_region_type(out) && out->rank >= 0 &&
           node->op->elementwise(node, in, out->dtype, &loop);
}

bool cm_region_is_number(const struct cm_module *module, cm_value value)
{
    const struct cm_value_def *def = cm_value_get(module, value);
    const struct cm_type *type = def->fact.type;
    return def->role == CM_ROLE_INITIALIZER && !def->is_state && type->kind == CM_KIND_TENSOR &&
           cm_type_is_single(type);
}

void cm_region_mark(const struct cm_region_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        cm_mark_set(group->marks, group->members[i], (uint32_t)i);
}

bool cm_region_is_member(const struct cm_region_group *group, const struct cm_node *node)
{
    const uint32_t place = node ? cm_mark_get(group->marks, node) : 0;

    return node && place < group->count && group->members[place] == node;
}

bool cm_region_is_result(const struct cm_region_group *group, const struct cm_node *member)
{
    const struct cm_use *use = cm_value_get(member->module, member->outputs[0])->uses;
    while (use && cm_region_is_member(group, use->node))
        use = use->next;
    return use != NULL;
}

/* ---- making a region ---- */

/* A value outside the body and the one that stands for it inside. */
struct region_entry {
    cm_value outside, inside;
};

struct region_entries {
    CM_ARRAY(struct region_entry);
};

struct region_result {
    cm_value inside;
    struct cm_str name;
};

struct region_draft {
    struct cm_region_work *work;
    const struct cm_region_group *group;
    struct cm_graph *body;
    struct region_entries operands; /* in the order of the body's inputs */
    struct region_entries numbers;  /* constants of the body */
    struct region_result *results;
    size_t n_results;
};

static cm_value find_entry(const struct region_entries *entries, cm_value outside)
{
    for (size_t i = 0; i < entries->count; i++)
        if (entries->items[i].outside == outside)
            return entries->items[i].inside;
    return 0;
}

static cm_value add_entry(struct region_draft *draft, struct region_entries *entries,
                          cm_value outside, cm_value inside)
{
    *CM_PUSH(draft->work->scratch, entries) = (struct region_entry){outside, inside};
    return inside;
}

static cm_value operand_inside(struct region_draft *draft, cm_value outside)
{
    struct cm_module *module = draft->body->module;
    const struct cm_value_def *def = cm_value_get(module, outside);
    cm_value inside = find_entry(&draft->operands, outside);

    if (inside)
        return inside;
    inside = cm_graph_add_input(draft->body, CM_STR_NONE, def->fact.type);
    /* As typing the region will set it: what a state variable holds is not for ever. */
    struct cm_fact *fact = &cm_value_get(module, inside)->fact;
    *fact = def->fact;
    if (def->is_state)
        fact->constant = NULL;
    return add_entry(draft, &draft->operands, outside, inside);
}

static enum cm_status number_inside(struct region_draft *draft, cm_value outside, cm_value *inside)
{
    const struct cm_tensor *tensor;

    *inside = find_entry(&draft->numbers, outside);
    if (*inside)
        return CM_OK;
    CM_TRY(cm_value_constant(draft->body->module, outside, &tensor, draft->work->err));
    *inside = add_entry(draft, &draft->numbers, outside,
                        cm_graph_add_constant(draft->body, CM_STR_NONE, tensor));
    return CM_OK;
}

/* Moves a member into the body. What it reads is known as well there, so types stay as they are. */
static enum cm_status move_in(struct region_draft *draft, struct cm_node *member, bool as_operands)
{
    struct cm_module *module = draft->body->module;
    for (int i = 0; i < member->n_inputs; i++) {
        const cm_value outside = member->inputs[i].value;
        cm_value inside;
        if (!outside || cm_region_is_member(draft->group, cm_value_get(module, outside)->node))
            continue;
        if (!as_operands && cm_region_is_number(module, outside))
            CM_TRY(number_inside(draft, outside, &inside));
        else
            inside = operand_inside(draft, outside);
        cm_use_redirect(module, &member->inputs[i], inside);
    }
    cm_node_move_to(member, draft->body);
    return CM_OK;
}

static void find_results(struct region_draft *draft)
{
    const struct cm_region_group *group = draft->group;
    draft->results = CM_NEW_ARRAY(draft->work->scratch, struct region_result, group->count);
    for (size_t m = 0; m < group->count; m++) {
        if (!cm_region_is_result(group, group->members[m]))
            continue;
        const cm_value value = group->members[m]->outputs[0];
        draft->results[draft->n_results++] =
            (struct region_result){value, cm_value_get(draft->body->module, value)->name};
    }
}

static enum cm_status add_region(struct region_draft *draft, const char *op_type,
                                 struct cm_node *before, struct cm_node **out)
{
    const struct cm_node *last = draft->group->members[draft->group->count - 1];
    struct cm_arena *scratch = draft->work->scratch;
    cm_value *inputs = CM_NEW_ARRAY(scratch, cm_value, draft->operands.count);
    cm_value *outputs = CM_NEW_ARRAY(scratch, cm_value, draft->n_results);

    for (size_t i = 0; i < draft->operands.count; i++)
        inputs[i] = draft->operands.items[i].outside;
    for (size_t o = 0; o < draft->n_results; o++)
        outputs[o] = draft->results[o].inside;
    cm_graph_set_outputs(draft->body, outputs, draft->n_results);
    struct cm_body_ref body = {.attribute = CM_STR("body"), .graph = draft->body};
    const struct cm_node_spec spec = {.domain = CM_STR("ai.cameo"),
                                      .op_type = cm_str(op_type),
                                      .name = last->name,
                                      .inputs = inputs,
                                      .n_inputs = draft->operands.count,
                                      .n_outputs = draft->n_results,
                                      .bodies = &body,
                                      .n_bodies = 1,
                                      .phase = last->phase};
    CM_TRY(cm_graph_add_node(draft->work->graph, before, &spec, out, draft->work->err));
    (*out)->part_of = last->part_of;
    return CM_OK;
}

/* Who read a member reads the region, by the name and the type that the file gave the value. */
static void hand_over(const struct region_draft *draft, const struct cm_node *region)
{
    struct cm_module *module = region->module;
    for (size_t o = 0; o < draft->n_results; o++) {
        const cm_value outside = region->outputs[o];
        const struct cm_value_def *inside = cm_value_get(module, draft->results[o].inside);
        cm_value_get(module, outside)->declared = inside->declared;
        cm_value_set_name(module, outside, draft->results[o].name);
        for (struct cm_use *use = inside->uses, *next; use; use = next) {
            next = use->next;
            if (use->graph != draft->body)
                cm_use_redirect(module, use, outside);
        }
    }
}

enum cm_status cm_region_make(struct cm_region_work *work, const char *op_type,
                              const struct cm_region_group *group, size_t kept)
{
    struct cm_module *module = work->graph->module;
    const struct cm_node *last = group->members[group->count - 1];
    struct cm_node *after = last->next, *region;
    const uint32_t mark = cm_mark_get(&work->marks, last);

    if (!cm_module_room(module)) {
        work->full = true;
        return CM_OK;
    }
    struct region_draft draft = {
        .work = work, .group = group, .body = cm_graph_new(module, NULL, CM_STR("region"))};
    cm_region_mark(group);
    find_results(&draft);
    for (size_t m = 0; m < group->count; m++)
        CM_TRY(move_in(&draft, group->members[m], m < kept));
    CM_TRY(add_region(&draft, op_type, after, &region));
    cm_mark_set(&work->marks, region, mark);
    hand_over(&draft, region);
    work->made++;
    return CM_OK;
}

/* ---- the pass ---- */

static enum cm_status fuse(struct cm_graph *graph, struct cm_arena *scratch, struct cm_error *err)
{
    for (struct cm_node *node = graph->first; node; node = node->next) {
        if (node->op && node->op->effects & CM_REGION)
            continue;
        for (size_t i = 0; i < node->n_bodies; i++)
            if (node->bodies[i].graph)
                CM_TRY(fuse(node->bodies[i].graph, scratch, err));
    }
    struct cm_region_work work = {.graph = graph, .scratch = scratch, .err = err};
    CM_TRY(cm_region_products(&work));
    CM_TRY(cm_region_elementwise(&work));
    return cm_graph_retype(graph, err);
}

enum cm_status cm_pass_regions(struct cm_graph *graph, const struct cm_pass_options *options,
                               struct cm_error *err)
{
    struct cm_arena scratch;
    (void)options; /* weights that change are operands like others */

    cm_arena_init(&scratch, cm_module_arena(graph->module)->guard);
    const enum cm_status status = fuse(graph, &scratch, err);
    cm_arena_release(&scratch);
    return status;
}
