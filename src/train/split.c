/* A step in two halves, with the gradients between them: the first computes them and all that does
 * not follow from them, the second the rest. Where the cut runs is found in the file's own graphs,
 * so that any training may be split whose Gradient nodes feed its update. */
// SPDX-License-Identifier: Apache-2.0
#include "train/trainer_parts.h"

struct split {
    struct cm_trainer *trainer;
    struct cm_training_entry *entry;
    struct cm_combine *what;
    struct cm_blockers *blockers;
    struct cm_arena *arena;
    const char *place;
    struct cm_map late;    /* names that follow from gradients, these included */
    struct cm_map early;   /* names that are computed or fed, and do not */
    struct cm_map carried; /* those of them that the second half reads */
    struct cm_wishes first, second;
};

/* ---- gradients ---- */

bool cm_node_is_gradient(const struct cm_node_proto *node)
{
    return cm_str_is(node->op_type, "Gradient") &&
           cm_str_is(node->domain, "ai.onnx.preview.training");
}

size_t cm_gradient_variable(const struct cm_trainer *trainer, const struct cm_node_proto *node,
                            size_t output)
{
    for (size_t i = 0; i < node->attribute.count; i++) {
        const struct cm_attribute_proto *xs = &node->attribute.items[i];

        if (!cm_str_is(xs->name, "xs") || output >= xs->strings.count ||
            output >= node->input.count || !node->output.items[output].size ||
            !cm_str_equal(xs->strings.items[output], node->input.items[output]))
            continue;
        const uint64_t *index = cm_map_find(&trainer->by_name, xs->strings.items[output]);
        return index && trainer->variables[*index].updated ? (size_t)*index : SIZE_MAX;
    }
    return SIZE_MAX;
}

static struct cm_handover *add_handover(struct split *s, struct cm_str name)
{
    struct cm_handover *handover = CM_PUSH(s->trainer->arena, &s->trainer->handovers);

    *handover = (struct cm_handover){.name = name};
    handover->output = cm_wish(&s->first, name);
    return handover;
}

static void take_gradient(struct split *s, struct cm_map *seen, size_t variable, struct cm_str name)
{
    struct cm_trainer *trainer = s->trainer;
    const struct cm_tensor *like = &trainer->variables[variable].now;
    struct cm_error err = {0};
    bool added;

    cm_map_insert(seen, s->arena, trainer->names[variable].name, &added);
    if (!added) {
        cm_block(s->blockers, CM_UNSUPPORTED,
                 "%s: several Gradient nodes differentiate by '%.*s', so that it has no one "
                 "gradient",
                 s->place, CM_STR_FMT(trainer->names[variable].name));
        return;
    }
    struct cm_handover *handover = add_handover(s, name);
    if (cm_tensor_new(like->type, &like->shape, &handover->memory, &err))
        cm_block(s->blockers, err.status, "%s", err.text);
    *CM_PUSH(s->arena, &trainer->parameters) =
        (struct cm_parameter_slot){.variable = variable, .handover = trainer->handovers.count - 1};
    cm_map_insert(&s->late, s->arena, name, NULL);
}

static void find_gradients(struct split *s, const struct cm_graph_proto *algorithm)
{
    struct cm_map seen = {0};

    for (size_t n = 0; n < algorithm->node.count; n++) {
        const struct cm_node_proto *node = &algorithm->node.items[n];

        for (size_t o = 0; cm_node_is_gradient(node) && o < node->output.count; o++) {
            const size_t variable = cm_gradient_variable(s->trainer, node, o);

            if (variable != SIZE_MAX)
                take_gradient(s, &seen, variable, node->output.items[o]);
        }
    }
    if (!s->trainer->parameters.count)
        cm_block(s->blockers, CM_UNSUPPORTED,
                 "%s: no Gradient node in it differentiates by a variable that it updates, so "
                 "there are no gradients to give out",
                 s->place);
}

/* ---- the cut ---- */

struct look {
    struct split *split;
    bool late;
};

static void see_late(void *arg, struct cm_str name)
{
    struct look *look = arg;

    look->late = look->late || (name.size && cm_map_find(&look->split->late, name));
}

static void carry(void *arg, struct cm_str name)
{
    struct split *s = arg;
    bool added;

    if (!name.size || !cm_map_find(&s->early, name))
        return;
    cm_map_insert(&s->carried, s->arena, name, &added);
    if (added)
        add_handover(s, name);
}

/* Nodes come in an order in which what they read is there already. */
static void find_cut(struct split *s, const struct cm_combined *whole)
{
    const struct cm_graph_proto *graph = &whole->graph;

    for (size_t i = whole->n_variables; i < graph->input.count; i++)
        cm_map_insert(&s->early, s->arena, graph->input.items[i].name, NULL);
    for (size_t n = 0; n < graph->node.count; n++) {
        const struct cm_node_proto *node = &graph->node.items[n];
        struct look look = {.split = s};

        cm_node_reads(node, see_late, &look);
        if (look.late && cm_node_is_gradient(node))
            cm_block(s->blockers, CM_UNSUPPORTED,
                     "%s: Gradient node '%.*s' differentiates what gradients were used for, so "
                     "that the step has no two halves",
                     s->place, CM_STR_FMT(node->name));
        for (size_t o = 0; o < node->output.count; o++)
            if (node->output.items[o].size && !cm_map_find(&s->late, node->output.items[o]))
                cm_map_insert(look.late ? &s->late : &s->early, s->arena, node->output.items[o],
                              NULL);
        if (look.late)
            cm_node_reads(node, carry, s);
    }
}

/* Each output and each binding to the half that computes it. */
static void share_out(struct split *s, const struct cm_wishes *wishes)
{
    struct cm_program *first = &s->entry->step, *second = &s->entry->update;
    const struct cm_program_binding *bindings = first->bindings;
    const size_t count = first->n_bindings;

    first->bindings = CM_NEW_ARRAY(s->arena, struct cm_program_binding, count);
    second->bindings = CM_NEW_ARRAY(s->arena, struct cm_program_binding, count);
    first->n_bindings = 0;
    for (size_t i = 0; i < count; i++) {
        const struct cm_str name = wishes->names.items[bindings[i].output];
        const bool late = cm_map_find(&s->late, name) != NULL;
        struct cm_program *half = late ? second : first;

        half->bindings[half->n_bindings++] =
            (struct cm_program_binding){.variable = bindings[i].variable,
                                        .output = cm_wish(late ? &s->second : &s->first, name)};
    }
    for (size_t i = 0; i < wishes->names.count; i++) {
        const struct cm_str name = wishes->names.items[i];
        cm_wish(cm_map_find(&s->late, name) ? &s->second : &s->first, name);
    }
    if (!second->n_bindings)
        cm_block(s->blockers, CM_UNSUPPORTED,
                 "%s: nothing that it updates follows from a gradient, so there is no use for one",
                 s->place);
}

/* ---- the halves ---- */

static bool make(struct split *s, struct cm_program *program, const struct cm_wishes *wishes,
                 uint64_t number)
{
    struct cm_combined combined;
    struct cm_error err = {0};

    s->what->outputs = wishes->names.items;
    s->what->n_outputs = wishes->names.count;
    cm_combine_step(s->what, &combined);
    const enum cm_status status =
        cm_program_make(s->trainer, program, &combined, number, NULL, &err);
    if (status)
        cm_block_program(s->blockers, program, status, &err);
    return status == CM_OK;
}

/* What the first half found out about the types of what it hands over. */
static void describe_given(struct split *s)
{
    const struct cm_program *first = &s->entry->step;
    const size_t count = s->trainer->handovers.count;
    struct cm_value_info_proto *given = CM_NEW_ARRAY(s->arena, struct cm_value_info_proto, count);

    for (size_t i = 0; i < count; i++) {
        const struct cm_handover *handover = &s->trainer->handovers.items[i];
        const struct cm_type *type = handover->memory.data || handover->memory.buffer
                                         ? cm_type_of_tensor(s->arena, &handover->memory)
                                         : first->types[handover->output];

        given[i].name = handover->name;
        given[i].type = CM_NEW(s->arena, struct cm_type_proto);
        cm_type_to_proto(s->arena, cm_module_symbols(first->graph->module), type, given[i].type);
    }
    s->what->given = given;
    s->what->n_given = count;
}

void cm_split_step(struct cm_trainer *trainer, size_t k, struct cm_combine *what,
                   const struct cm_wishes *wishes, struct cm_blockers *blockers)
{
    struct split s = {.trainer = trainer,
                      .entry = &trainer->entries[k],
                      .what = what,
                      .blockers = blockers,
                      .arena = trainer->arena,
                      .first = {.arena = trainer->arena},
                      .second = {.arena = trainer->arena}};
    const struct cm_graph_proto *algorithm =
        cm_training_algorithm(&what->model->training_info.items[k]);
    struct cm_combined whole;
    const size_t known = blockers->count;

    s.place = s.entry->step.place;
    if (trainer->n_entries > 1) {
        cm_block(blockers, CM_UNSUPPORTED,
                 "the model has %zu entries of training info: gradients between the halves of a "
                 "step are for one",
                 trainer->n_entries);
        return;
    }
    find_gradients(&s, algorithm);
    struct cm_wishes all = {.arena = trainer->arena};
    for (size_t i = 0; i < s.first.names.count; i++)
        cm_wish(&all, s.first.names.items[i]);
    for (size_t i = 0; i < wishes->names.count; i++)
        cm_wish(&all, wishes->names.items[i]);
    what->outputs = all.names.items;
    what->n_outputs = all.names.count;
    cm_combine_step(what, &whole);
    find_cut(&s, &whole);
    share_out(&s, wishes);
    if (blockers->count > known || !make(&s, &s.entry->step, &s.first, 2 * k))
        return;
    describe_given(&s);
    s.entry->update.place = s.place;
    make(&s, &s.entry->update, &s.second, 2 * trainer->n_entries + 2);
}
