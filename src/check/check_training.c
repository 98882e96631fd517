/* training_info: the algorithm as a continuation of the inference graph, the initialization graph,
 * and bindings. */
// SPDX-License-Identifier: Apache-2.0
#include "check/checker.h"
#include "graph/node_order.h"

/* What all entries of training_info share. */
struct training {
    struct cm_checker *c;
    struct cm_map unresolved;  /* what inference nodes read in vain */
    struct cm_map outputs;     /* of the inference graph: name -> 1 + index */
    struct cm_map bound;       /* keys of all bindings of the model */
    struct cm_map updated;     /* keys of the update_bindings so far */
    struct cm_map declared;    /* initializers of the algorithms so far */
    struct cm_scope variables; /* what initialization graphs can read */
};

static void map_outputs(struct cm_checker *c, struct cm_map *out,
                        const struct cm_graph_proto *graph)
{
    for (size_t i = 0; graph && i < graph->output.count; i++)
        *cm_map_insert(out, c->scratch, graph->output.items[i].name, NULL) = i + 1;
}

static const struct cm_value_info_proto *
find_output(const struct cm_graph_proto *graph, const struct cm_map *outputs, struct cm_str name)
{
    const uint64_t found = cm_map_get(outputs, name, 0);

    return found ? &graph->output.items[found - 1] : NULL;
}

/* Reads what the inference graph wants of names that only this algorithm has. */
static void examine_independence(struct training *t, const struct cm_model_place *place,
                                 const struct cm_graph_proto *algorithm)
{
    struct cm_checker *c = t->c;

    for (size_t i = 0; t->unresolved.count && i < algorithm->input.count; i++) {
        if (cm_map_find(&t->unresolved, algorithm->input.items[i].name))
            cm_report(c, CM_RULE_TR9, place, "an inference node reads its input '%.*s'",
                      CM_STR_FMT(algorithm->input.items[i].name));
    }
    for (size_t i = 0; t->unresolved.count && i < algorithm->node.count; i++) {
        const struct cm_strs *outputs = &algorithm->node.items[i].output;

        for (size_t k = 0; k < outputs->count; k++) {
            if (outputs->items[k].size && cm_map_find(&t->unresolved, outputs->items[k]))
                cm_report(c, CM_RULE_TR9, place, "an inference node reads its value '%.*s'",
                          CM_STR_FMT(outputs->items[k]));
        }
    }
}

static void examine_variables(struct training *t, const struct cm_model_place *place,
                              const struct cm_graph_proto *algorithm)
{
    struct cm_checker *c = t->c;

    for (size_t i = 0; i < algorithm->initializer.count; i++) {
        const struct cm_str name = algorithm->initializer.items[i].name;
        const struct cm_model_place here =
            CM_PLACE_VALUE(place, "initializer", name, i, &algorithm->initializer.items[i]);

        if (cm_map_add(&t->declared, c->scratch, name) || !name.size)
            continue;
        if (cm_map_find(&t->bound, name))
            cm_report(c, CM_RULE_TR17, &here,
                      "is a state variable that another entry declares too");
        else
            cm_report(c, CM_RULE_TR18, &here, "another entry has an initializer of this name");
    }
}

/* The key of a binding: the initializer it names, or NULL. The algorithm's scope is open. */
static const struct cm_tensor_proto *examine_key(struct training *t,
                                                 const struct cm_model_place *here,
                                                 enum cm_rule rule, struct cm_str key)
{
    struct cm_checker *c = t->c;
    const struct cm_def *def = cm_scope_find(c->scope, key);

    if (def && (def->kind & CM_DEF_SPARSE))
        cm_report(c, CM_RULE_TR14, here, "'%.*s' is a sparse initializer", CM_STR_FMT(key));
    else if (!def || !(def->kind & CM_DEF_INITIALIZER))
        cm_report(c, rule, here, "'%.*s' is not an initializer of the graph or of this algorithm",
                  CM_STR_FMT(key));
    else if (def->kind & CM_DEF_INPUT)
        cm_report(c, CM_RULE_TR16, here, "'%.*s' is also a graph input: a value fed there hides it",
                  CM_STR_FMT(key));
    return def && (def->kind & CM_DEF_INITIALIZER) && !(def->kind & CM_DEF_SPARSE) ? def->declared
                                                                                   : NULL;
}

static bool is_complete(struct cm_checker *c, const struct cm_model_place *here,
                        const struct cm_entry_proto *entry)
{
    if (!entry->key.size)
        cm_report(c, CM_RULE_TR15, here, "its key is empty");
    if (!entry->value.size)
        cm_report(c, CM_RULE_TR15, here, "its value is empty");
    return entry->key.size && entry->value.size;
}

static void examine_types(struct training *t, const struct cm_model_place *here,
                          const struct cm_entry_proto *entry,
                          const struct cm_tensor_proto *variable,
                          const struct cm_value_info_proto *value)
{
    const char *why;

    if (variable && value && value->type &&
        cm_type_conflicts_with_tensor(value->type, variable->data_type, &variable->dims, false,
                                      &why))
        cm_report(t->c, CM_RULE_TR12, here, "'%.*s' has another %s than '%.*s'",
                  CM_STR_FMT(entry->value), why, CM_STR_FMT(entry->key));
}

static void examine_initialization_bindings(struct training *t, const struct cm_model_place *place,
                                            const struct cm_training_proto *entry)
{
    struct cm_checker *c = t->c;
    const struct cm_entries *bindings = &entry->initialization_binding;
    const struct cm_model_place list = CM_PLACE_FIELD(place, ".initialization_binding");
    struct cm_map outputs = {0};

    map_outputs(c, &outputs, entry->initialization);
    cm_report_repeated_keys(c, CM_RULE_TR3, &list, bindings);
    if (bindings->count && !entry->initialization)
        cm_report(c, CM_RULE_TR7, place, "has initialization bindings but no initialization graph");
    for (size_t i = 0; i < bindings->count; i++) {
        const struct cm_entry_proto *binding = &bindings->items[i];
        const struct cm_model_place here =
            CM_PLACE_ENTRY(place, ".initialization_binding", i, binding);

        if (!is_complete(c, &here, binding))
            continue;
        const struct cm_tensor_proto *variable = examine_key(t, &here, CM_RULE_TR1, binding->key);
        const struct cm_value_info_proto *value =
            find_output(entry->initialization, &outputs, binding->value);
        if (!value && entry->initialization)
            cm_report(c, CM_RULE_TR2, &here, "'%.*s' is not an output of the initialization graph",
                      CM_STR_FMT(binding->value));
        examine_types(t, &here, binding, variable, value);
    }
}

static void examine_update_bindings(struct training *t, const struct cm_model_place *place,
                                    const struct cm_training_proto *entry)
{
    struct cm_checker *c = t->c;
    struct cm_map outputs = {0};

    map_outputs(c, &outputs, entry->algorithm);
    for (size_t i = 0; i < entry->update_binding.count; i++) {
        const struct cm_entry_proto *binding = &entry->update_binding.items[i];
        const struct cm_model_place here = CM_PLACE_ENTRY(place, ".update_binding", i, binding);

        if (!is_complete(c, &here, binding))
            continue;
        const struct cm_tensor_proto *variable = examine_key(t, &here, CM_RULE_TR4, binding->key);
        if (!cm_map_add(&t->updated, c->scratch, binding->key))
            cm_report(c, CM_RULE_TR6, &here, "'%.*s' is already assigned by another update binding",
                      CM_STR_FMT(binding->key));
        const struct cm_value_info_proto *value =
            find_output(entry->algorithm, &outputs, binding->value);
        if (!value)
            value = find_output(c->model->graph, &t->outputs, binding->value);
        if (!value)
            cm_report(c, CM_RULE_TR5, &here,
                      "'%.*s' is not an output of the algorithm or of the inference graph",
                      CM_STR_FMT(binding->value));
        examine_types(t, &here, binding, variable, value);
    }
}

/* Runs alone, but may read the variables of the model and of its own entry. */
static void examine_initialization(struct training *t, const struct cm_model_place *place,
                                   const struct cm_training_proto *entry)
{
    struct cm_checker *c = t->c;
    struct cm_scope *outer = c->scope;
    const struct cm_model_place here = CM_PLACE_FIELD(place, ".initialization");

    if (!entry->initialization || !entry->initialization->msg.has)
        return;
    if (entry->initialization->input.count)
        cm_report(c, CM_RULE_TR8, &here, "has %zu inputs, must have none",
                  entry->initialization->input.count);
    c->scope = &t->variables;
    const size_t mark = cm_scope_enter(c->scope);
    for (size_t i = 0; entry->algorithm && i < entry->algorithm->initializer.count; i++)
        cm_scope_add(c, entry->algorithm->initializer.items[i].name, CM_DEF_LOOSE);
    cm_examine_graph(c, &here, CM_INITIALIZATION_GRAPH, entry->initialization);
    cm_scope_leave(c->scope, mark);
    c->scope = outer;
}

static void examine_entry(struct training *t, size_t index, const struct cm_training_proto *entry)
{
    struct cm_checker *c = t->c;
    const struct cm_model_place place = CM_PLACE(NULL, "training_info", CM_STR_NONE, index);
    const struct cm_model_place here = CM_PLACE_FIELD(&place, ".algorithm");

    examine_initialization(t, &place, entry);
    const size_t mark = cm_scope_enter(c->scope);
    /* A graph of no fields at all is the default: it does nothing. */
    if (entry->algorithm && entry->algorithm->msg.has) {
        c->calls_graph = cm_has_graph_call(entry->algorithm);
        c->calls_depth = c->scope->depth;
        c->variables = &t->variables;
        if (!c->calls_graph)
            examine_independence(t, &here, entry->algorithm);
        examine_variables(t, &here, entry->algorithm);
        cm_examine_open_graph(c, &here, CM_ALGORITHM_GRAPH, entry->algorithm);
        if (c->calls_graph)
            cm_examine_self_contained(c, &here, entry->algorithm);
        c->calls_graph = false;
    }
    examine_initialization_bindings(t, &place, entry);
    examine_update_bindings(t, &place, entry);
    cm_scope_leave(c->scope, mark);
}

static void collect_keys(struct training *t, const struct cm_entries *bindings)
{
    for (size_t i = 0; i < bindings->count; i++)
        cm_map_insert(&t->bound, t->c->scratch, bindings->items[i].key, NULL);
}

static void collect_variables(struct training *t)
{
    struct cm_checker *c = t->c;
    struct cm_scope *outer = c->scope;
    const struct cm_graph_proto *graph = c->model->graph;

    c->scope = &t->variables;
    for (size_t i = 0; graph && i < graph->initializer.count; i++)
        cm_scope_add(c, graph->initializer.items[i].name, CM_DEF_LOOSE);
    c->scope = outer;
}

void cm_examine_training(struct cm_checker *c)
{
    const struct cm_model_proto *model = c->model;
    struct training t = {.c = c};

    if (!model->training_info.count)
        return;
    if (c->ir_version < 7)
        cm_report(c, CM_RULE_TR11, NULL, "has training_info, but its IR version is %lld",
                  (long long)c->ir_version);
    for (size_t i = 0; i < c->unresolved.count; i++)
        cm_map_insert(&t.unresolved, c->scratch, c->unresolved.items[i], NULL);
    map_outputs(c, &t.outputs, model->graph);
    collect_variables(&t);
    for (size_t i = 0; i < model->training_info.count; i++) {
        collect_keys(&t, &model->training_info.items[i].initialization_binding);
        collect_keys(&t, &model->training_info.items[i].update_binding);
    }
    for (size_t i = 0; i < model->training_info.count; i++)
        examine_entry(&t, i, &model->training_info.items[i]);
}
