/* A step in two halves, with the gradients between them: the first computes them and all that does
 * not follow from them, the second the rest. Where the cut runs is found in the entry's graph, so
 * that any training may be split whose Gradient nodes feed its update. */
// SPDX-License-Identifier: Apache-2.0
#include "autodiff/gradient_nodes.h"
#include "base/array.h"
#include "graph/clone.h"
#include "graph/op.h"
#include "train/trainer_parts.h"

/* Outputs of a half: each value once. */
struct half {
    CM_ARRAY(cm_value) values;
    size_t *places; /* by value number, plus one */
};

struct split {
    struct cm_trainer *trainer;
    struct cm_training_entry *entry;
    struct cm_findings *findings;
    struct cm_arena *arena;
    const struct cm_module *module;
    const char *place;
    bool *late; /* by value number: follows from gradients, these included */
    struct half first, second;
};

static size_t want(struct split *s, struct half *half, cm_value value)
{
    if (!half->places[value]) {
        *CM_PUSH(s->arena, &half->values) = value;
        half->places[value] = half->values.count;
    }
    return half->places[value] - 1;
}

/* ---- gradients ---- */

size_t cm_gradient_variable(const struct cm_trainer *trainer, const struct cm_node *node, int o)
{
    const cm_value by = node->outputs[o] ? cm_gradient_of(node, o) : 0;

    if (!by || !cm_value_is_variable(node->module, by))
        return SIZE_MAX;
    const uint64_t *index = cm_map_find(&trainer->by_name, cm_value_get(node->module, by)->name);
    return index && trainer->variables[*index].updated ? (size_t)*index : SIZE_MAX;
}

static struct cm_handover *add_handover(struct split *s, cm_value value)
{
    struct cm_handover *handover = CM_PUSH(s->arena, &s->entry->handovers);

    *handover = (struct cm_handover){.source = value, .variable = SIZE_MAX};
    handover->output = want(s, &s->first, value);
    return handover;
}

static void take_gradient(struct split *s, bool *seen, size_t variable, cm_value value)
{
    const struct cm_variable *of = &s->trainer->variables[variable];
    struct cm_error err = {0};

    if (seen[variable]) {
        cm_findings_add(s->findings, CM_UNSUPPORTED, cm_str(s->place),
                        "several Gradient nodes differentiate by '%.*s', so it has more than one "
                        "gradient",
                        CM_STR_FMT(of->name));
        return;
    }
    seen[variable] = true;
    struct cm_handover *handover = add_handover(s, value);
    handover->variable = variable;
    if (cm_tensor_new(of->now.type, &of->now.shape, &handover->memory, &err))
        cm_findings_add(s->findings, err.status, CM_STR_NONE, "%s", err.text);
    s->late[value] = true;
}

static void find_gradients(struct split *s)
{
    bool *seen = CM_NEW_ARRAY(s->arena, bool, s->trainer->n_variables);

    for (const struct cm_node *node = s->entry->graph->first; node; node = node->next)
        for (int o = 0; cm_node_is_gradient(node) && o < node->n_outputs; o++) {
            const size_t variable = cm_gradient_variable(s->trainer, node, o);

            if (variable != SIZE_MAX)
                take_gradient(s, seen, variable, node->outputs[o]);
        }
}

/* ---- the cut ---- */

static bool is_constant(const struct cm_value_def *def)
{
    return def->role == CM_ROLE_INITIALIZER ||
           (def->node && def->node->op && def->node->op->values.is_constant);
}

/* What the second half reads and cannot have of itself: not variables, nor constants. */
static void carry(struct split *s, cm_value value, bool *carried)
{
    if (!value || s->late[value] || carried[value] || cm_value_is_variable(s->module, value) ||
        is_constant(cm_value_get(s->module, value)))
        return;
    carried[value] = true;
    add_handover(s, value);
}

/* Nodes come in an order in which what they read is there already. */
static void find_cut(struct split *s, const bool *needed)
{
    bool *carried = CM_NEW_ARRAY(s->arena, bool, cm_module_value_count(s->module));

    for (struct cm_node *node = s->entry->graph->first; node; node = node->next) {
        bool is_late = false;
        cm_value *captured = NULL;
        const size_t n_captured = node->n_bodies ? cm_node_captured(node, s->arena, &captured) : 0;

        for (int i = 0; i < node->n_inputs; i++)
            is_late = is_late || s->late[node->inputs[i].value];
        for (size_t i = 0; i < n_captured; i++)
            is_late = is_late || s->late[captured[i]];
        if (!is_late || !cm_node_is_needed(node, needed, NULL))
            continue;
        if (cm_node_is_gradient(node))
            cm_findings_add(s->findings, CM_UNSUPPORTED, cm_str(s->place),
                            "Gradient node '%.*s' differentiates a value that depends on other "
                            "gradients, so the step cannot be split into gradients and update",
                            CM_STR_FMT(node->name));
        for (int o = 0; o < node->n_outputs; o++)
            s->late[node->outputs[o]] = node->outputs[o] != 0;
        for (int i = 0; i < node->n_inputs; i++)
            carry(s, node->inputs[i].value, carried);
        for (size_t i = 0; i < n_captured; i++)
            carry(s, captured[i], carried);
    }
}

/* Each output and each binding to the half that computes it. */
static void share_out(struct split *s, const cm_value *values, size_t n_values)
{
    struct cm_program *first = &s->entry->step, *second = &s->entry->update;
    const struct cm_program_binding *bindings = first->bindings;
    const size_t count = first->n_bindings;

    first->bindings = CM_NEW_ARRAY(s->arena, struct cm_program_binding, count);
    second->bindings = CM_NEW_ARRAY(s->arena, struct cm_program_binding, count);
    first->n_bindings = 0;
    for (size_t i = 0; i < count; i++) {
        const cm_value value = values[bindings[i].output];
        struct cm_program *half = s->late[value] ? second : first;

        half->bindings[half->n_bindings++] = (struct cm_program_binding){
            .variable = bindings[i].variable,
            .output = want(s, s->late[value] ? &s->second : &s->first, value)};
    }
    for (size_t i = 0; i < n_values; i++)
        want(s, s->late[values[i]] ? &s->second : &s->first, values[i]);
    if (s->entry->handovers.count && !second->n_bindings)
        cm_findings_add(s->findings, CM_UNSUPPORTED, cm_str(s->place),
                        "no updated variable depends on a gradient");
}

/* ---- the halves ---- */

static bool make(struct split *s, struct cm_program *program, const struct half *half,
                 const struct cm_given_value *given, size_t n_given, uint64_t number)
{
    const struct cm_cut cut = {.graph = s->entry->graph,
                               .outputs = half->values.items,
                               .n_outputs = half->values.count,
                               .given = given,
                               .n_given = n_given};
    struct cm_error err = {0};
    const enum cm_status status = cm_program_make(s->trainer, program, &cut, number, NULL, &err);

    if (status)
        cm_findings_add(s->findings, status, cm_str(program->place), "%s", err.text);
    return status == CM_OK;
}

static const struct cm_given_value *describe_given(struct split *s)
{
    const size_t count = s->entry->handovers.count;
    struct cm_given_value *given = CM_NEW_ARRAY(s->arena, struct cm_given_value, count);

    for (size_t i = 0; i < count; i++) {
        const struct cm_handover *handover = &s->entry->handovers.items[i];
        const bool is_gradient = handover->variable != SIZE_MAX;

        given[i] = (struct cm_given_value){
            handover->source, is_gradient ? cm_type_of_tensor(s->arena, &handover->memory)
                                          : cm_value_get(s->module, handover->source)->fact.type};
    }
    return given;
}

void cm_split_step(struct cm_trainer *trainer, size_t k, const cm_value *values, size_t n_values,
                   struct cm_findings *findings)
{
    struct cm_training_entry *entry = &trainer->entries[k];
    struct split s = {.trainer = trainer,
                      .entry = entry,
                      .findings = findings,
                      .arena = trainer->arena,
                      .module = entry->graph->module,
                      .place = entry->step.place};
    const size_t count = cm_module_value_count(s.module), known = findings->total;

    s.late = CM_NEW_ARRAY(s.arena, bool, count);
    s.first.places = CM_NEW_ARRAY(s.arena, size_t, count);
    s.second.places = CM_NEW_ARRAY(s.arena, size_t, count);
    find_gradients(&s);
    find_cut(&s, cm_training_needed(entry->graph, s.arena, values, n_values, NULL, false));
    share_out(&s, values, n_values);
    entry->step.entry = entry;
    if (findings->total > known || !make(&s, &entry->step, &s.first, NULL, 0, 2 * k) ||
        !entry->handovers.count)
        return;
    entry->update.place = s.place;
    entry->update.entry = entry;
    make(&s, &entry->update, &s.second, describe_given(&s), entry->handovers.count,
         2 * trainer->n_entries + 2 + k);
}
