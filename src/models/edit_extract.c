/* Parts of a graph: what leads from some values to others, and values made outputs. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "models/edit.h"

#include "graph/called_functions.h"
#include "graph/node_order.h"

/* What a name of the main graph is. */
enum definition { IS_NODE = 1, IS_INPUT = 2, IS_INITIALIZER = 3, IS_SPARSE = 4 };

struct place {
    enum definition kind;
    size_t index;
};

struct cut {
    struct cm_model_proto *model;
    struct cm_graph_proto *graph;
    struct cm_arena *scratch;
    struct cm_findings *findings;
    struct cm_map definitions; /* name to 1 + index of places */
    CM_ARRAY(struct place) places;
    struct cm_map wanted;         /* inputs of the part: name to 1, 2 once something reads it */
    struct cm_map reached;        /* every name that is in the part */
    struct cm_map quantized;      /* a value with an annotation: 1 + index of that */
    struct cm_map missing;        /* inputs of the model that were found to be needed */
    CM_ARRAY(struct cm_str) open; /* names still to be followed */
    bool *keeps_node, *keeps_initializer, *keeps_sparse, *keeps_entry;
    bool own_inputs; /* those of the model that are needed */
};

static void define(struct cut *c, struct cm_str name, enum definition kind, size_t index)
{
    bool added;
    uint64_t *slot = cm_map_insert(&c->definitions, c->scratch, name, &added);

    /* An initializer is what gives an input its value: it comes along like a constant. */
    if (!added && (kind != IS_INITIALIZER && kind != IS_SPARSE))
        return;
    *CM_PUSH(c->scratch, &c->places) = (struct place){kind, index};
    *slot = c->places.count;
}

static void define_all(struct cut *c)
{
    const struct cm_graph_proto *g = c->graph;

    for (size_t i = 0; i < g->input.count; i++)
        define(c, g->input.items[i].name, IS_INPUT, i);
    for (size_t i = 0; i < g->initializer.count; i++)
        define(c, g->initializer.items[i].name, IS_INITIALIZER, i);
    for (size_t i = 0; i < g->sparse_initializer.count; i++)
        if (g->sparse_initializer.items[i].values)
            define(c, g->sparse_initializer.items[i].values->name, IS_SPARSE, i);
    for (size_t n = 0; n < g->node.count; n++)
        for (size_t o = 0; o < g->node.items[n].output.count; o++)
            if (g->node.items[n].output.items[o].size)
                define(c, g->node.items[n].output.items[o], IS_NODE, n);
    for (size_t i = 0; i < g->quantization_annotation.count; i++)
        *cm_map_insert(&c->quantized, c->scratch, g->quantization_annotation.items[i].tensor_name,
                       NULL) = i + 1;
}

static const struct place *find(const struct cut *c, struct cm_str name)
{
    const uint64_t at = cm_map_get(&c->definitions, name, 0);

    return at ? &c->places.items[at - 1] : NULL;
}

/* Names that are not there, with the nearest one that is. */
static void refuse_unknown(struct cut *c, const char *what, struct cm_str name)
{
    struct cm_nearest nearest = {.typed = name};

    for (size_t n = 0; n < c->graph->node.count; n++)
        for (size_t o = 0; o < c->graph->node.items[n].output.count; o++)
            cm_nearest_try(&nearest, c->graph->node.items[n].output.items[o]);
    cm_findings_refuse(c->findings, "%s '%.*s' is not a value of the graph%s", what,
                       CM_STR_FMT(name), cm_nearest_hint(&nearest, c->scratch));
}

static bool follow(void *arg, struct cm_str name)
{
    struct cut *c = arg;

    if (cm_map_add(&c->reached, c->scratch, name))
        *CM_PUSH(c->scratch, &c->open) = name;
    return true;
}

static void reach(struct cut *c, struct cm_str name)
{
    uint64_t *wanted = cm_map_find(&c->wanted, name);
    const struct place *place = find(c, name);
    const uint64_t annotated = cm_map_get(&c->quantized, name, 0);

    if (annotated) {
        const struct cm_entries *names =
            &c->graph->quantization_annotation.items[annotated - 1].quant_parameter_tensor_names;
        for (size_t i = 0; i < names->count; i++)
            follow(c, names->items[i].value);
    }
    if (wanted) {
        *wanted = 2;
    } else if (!place) {
        cm_findings_refuse(c->findings, "'%.*s' is read, but nothing in the graph defines it",
                           CM_STR_FMT(name));
    } else if (place->kind == IS_INITIALIZER) {
        c->keeps_initializer[place->index] = true;
    } else if (place->kind == IS_SPARSE) {
        c->keeps_sparse[place->index] = true;
    } else if (place->kind == IS_INPUT) {
        *cm_map_insert(&c->missing, c->scratch, name, NULL) = 1;
        if (!c->own_inputs)
            cm_findings_refuse(
                c->findings,
                "input '%.*s' of the model is needed as well: add it to the inputs, or "
                "a value between it and the outputs",
                CM_STR_FMT(name));
    } else if (!c->keeps_node[place->index]) {
        c->keeps_node[place->index] = true;
        cm_node_each_read(c->scratch, &c->graph->node.items[place->index], follow, c);
    }
}

static void reach_all(struct cut *c)
{
    while (c->open.count)
        reach(c, c->open.items[--c->open.count]);
}

/* ---- training info ---- */

struct entry_reads {
    struct cut *c;
    struct cm_name_set own;          /* what the algorithm defines itself */
    struct cm_map read_before;       /* names that nodes of the whole main graph read */
    CM_ARRAY(struct cm_str) carried; /* initializers that only training reads */
    struct cm_str gone;
};

static bool note_read(void *arg, struct cm_str name)
{
    struct entry_reads *e = arg;

    cm_map_insert(&e->read_before, e->c->scratch, name, NULL);
    return true;
}

static bool check_read(void *arg, struct cm_str name)
{
    struct entry_reads *e = arg;
    const struct place *place = find(e->c, name);

    if (!name.size || cm_name_set_has(&e->own, name) || !place ||
        cm_map_find(&e->c->reached, name) || cm_map_find(&e->c->wanted, name))
        return true;
    if ((place->kind == IS_INITIALIZER || place->kind == IS_SPARSE) &&
        !cm_map_find(&e->read_before, name)) {
        *CM_PUSH(e->c->scratch, &e->carried) = name;
        return true;
    }
    if (!e->gone.size)
        e->gone = name;
    return true;
}

static void check_graph(struct entry_reads *e, const struct cm_graph_proto *graph)
{
    if (!graph)
        return;
    for (size_t n = 0; n < graph->node.count; n++)
        cm_node_each_read(e->c->scratch, &graph->node.items[n], check_read, e);
    for (size_t o = 0; o < graph->output.count; o++)
        check_read(e, graph->output.items[o].name);
}

static void check_bindings(struct entry_reads *e, const struct cm_entries *bindings)
{
    for (size_t i = 0; i < bindings->count; i++) {
        check_read(e, bindings->items[i].key);
        check_read(e, bindings->items[i].value);
    }
}

static void choose_entries(struct cut *c)
{
    struct cm_map read_before = {0};

    for (size_t i = 0; i < c->model->training_info.count; i++) {
        const struct cm_training_proto *entry = &c->model->training_info.items[i];
        struct entry_reads e = {.c = c, .own.arena = c->scratch, .read_before = read_before};

        for (size_t n = 0; !i && n < c->graph->node.count; n++)
            cm_node_each_read(c->scratch, &c->graph->node.items[n], note_read, &e);
        read_before = e.read_before;
        if (entry->algorithm)
            cm_graph_each_defined(entry->algorithm, cm_name_set_add, &e.own);
        if (entry->initialization)
            cm_graph_each_defined(entry->initialization, cm_name_set_add, &e.own);
        check_graph(&e, entry->algorithm);
        check_graph(&e, entry->initialization);
        check_bindings(&e, &entry->initialization_binding);
        check_bindings(&e, &entry->update_binding);
        c->keeps_entry[i] = !e.gone.size;
        for (size_t k = 0; !e.gone.size && k < e.carried.count; k++)
            follow(c, e.carried.items[k]);
        if (e.gone.size)
            cm_findings_note(
                c->findings,
                "training info %zu is dropped: it needs '%.*s', which is not in the part", i,
                CM_STR_FMT(e.gone));
    }
    reach_all(c);
}

/* ---- types of the new inputs and outputs ---- */

static bool says_shape(const struct cm_value_info_proto *info)
{
    return info && info->type && (!info->type->tensor_type || info->type->tensor_type->shape);
}

static void note_infos(struct cm_map *map, struct cm_arena *scratch,
                       const struct cm_value_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++) {
        uint64_t *slot = cm_map_insert(map, scratch, infos->items[i].name, NULL);
        if (!*slot || !says_shape((struct cm_value_info_proto *)(uintptr_t)*slot))
            *slot = (uint64_t)(uintptr_t)&infos->items[i];
    }
}

static struct cm_value_info_proto made_info(struct cm_str name, struct cm_type_proto *type)
{
    struct cm_value_info_proto info = {.name = name, .type = type};

    cm_msg_set(&info.msg, CM_VALUE_INFO_NAME);
    if (type)
        cm_msg_set(&info.msg, CM_VALUE_INFO_TYPE);
    return info;
}

/* The infos of names: as the file has them, else inferred. */
static enum cm_status describe(struct cut *c, struct cm_str_list names, const char *what,
                               const struct cm_edit_types *types, struct cm_value_info_proto *out,
                               struct cm_error *err)
{
    struct cm_map infos = {0};
    struct cm_str *asked = CM_NEW_ARRAY(c->scratch, struct cm_str, names.count);
    struct cm_type_proto **found = CM_NEW_ARRAY(c->scratch, struct cm_type_proto *, names.count);
    size_t n_asked = 0;

    note_infos(&infos, c->scratch, &c->graph->input);
    note_infos(&infos, c->scratch, &c->graph->output);
    note_infos(&infos, c->scratch, &c->graph->value_info);
    for (size_t i = 0; i < names.count; i++) {
        const struct cm_value_info_proto *info =
            (const void *)(uintptr_t)cm_map_get(&infos, names.items[i], 0);
        if (!says_shape(info))
            asked[n_asked++] = names.items[i];
    }
    if (n_asked)
        CM_TRY(types->infer(types->arg, c->model, asked, n_asked, found, NULL, err));
    for (size_t i = 0, a = 0; i < names.count; i++) {
        const struct cm_value_info_proto *info =
            (const void *)(uintptr_t)cm_map_get(&infos, names.items[i], 0);
        struct cm_type_proto *type = says_shape(info) ? NULL : found[a++];

        if (info && (!type || says_shape(info)))
            out[i] = *info;
        else
            out[i] = made_info(names.items[i], type);
        if (!out[i].type)
            cm_findings_refuse(
                c->findings, "the type of %s '%.*s' is neither in the file nor can it be inferred",
                what, CM_STR_FMT(names.items[i]));
    }
    return CM_OK;
}

/* ---- doing it ---- */

static void put_count(struct cm_msg *msg, int field, size_t now, size_t *count)
{
    *count = now;
    if (now)
        cm_msg_set(msg, field);
    else
        cm_msg_clear(msg, field);
}

static void put_infos(struct cm_graph_proto *graph, int field, struct cm_value_infos *list,
                      struct cm_value_info_proto *items, size_t count)
{
    bool same = list->count == count;

    for (size_t i = 0; same && i < count; i++)
        same = cm_str_equal(list->items[i].name, items[i].name) &&
               list->items[i].type == items[i].type;
    if (same)
        return;
    list->items = items;
    put_count(&graph->msg, field, count, &list->count);
}

/* Intermediate values keep their types, those that were outputs before included. */
static void keep_value_infos(struct cut *c, struct cm_str_list inputs, struct cm_str_list outputs)
{
    struct cm_graph_proto *g = c->graph;
    struct cm_name_set taken = {.arena = c->scratch};
    size_t demoted = 0;

    for (size_t i = 0; i < inputs.count; i++)
        cm_name_set_add(&taken, inputs.items[i]);
    for (size_t i = 0; i < outputs.count; i++)
        cm_name_set_add(&taken, outputs.items[i]);
    CM_LIST_KEEP(g, CM_GRAPH_VALUE_INFO, &g->value_info,
                 cm_map_find(&c->reached, g->value_info.items[i].name) &&
                     !cm_name_set_has(&taken, g->value_info.items[i].name));
    for (size_t i = 0; i < g->value_info.count; i++)
        cm_name_set_add(&taken, g->value_info.items[i].name);
    struct cm_value_info_proto *items =
        cm_list_extended_by(c->findings->arena, g->value_info.items, g->value_info.count,
                            g->output.count, sizeof *items);
    for (size_t i = 0; i < g->output.count; i++)
        if (cm_map_find(&c->reached, g->output.items[i].name) && g->output.items[i].type &&
            !cm_name_set_has(&taken, g->output.items[i].name))
            items[g->value_info.count + demoted++] = g->output.items[i];
    if (!demoted)
        return;
    g->value_info.items = items;
    g->value_info.count += demoted;
    cm_msg_set(&g->msg, CM_GRAPH_VALUE_INFO);
}

static void drop_functions(struct cut *c)
{
    const size_t count = c->model->functions.count;
    bool *called = CM_NEW_ARRAY(c->scratch, bool, count);
    const struct cm_graph_proto *graph;

    for (size_t at = 0; (graph = cm_model_next_graph(c->model, &at));) {
        const bool *by_graph = cm_called_functions(c->scratch, c->model, &graph->node);
        for (size_t f = 0; f < count; f++)
            called[f] = called[f] || by_graph[f];
    }
    CM_LIST_KEEP(c->model, CM_MODEL_FUNCTIONS, &c->model->functions, called[i]);
}

static void apply(struct cut *c, struct cm_str_list inputs, struct cm_value_info_proto *in_infos,
                  struct cm_str_list outputs, struct cm_value_info_proto *out_infos)
{
    struct cm_graph_proto *g = c->graph;
    size_t n_inputs = inputs.count;

    keep_value_infos(c, inputs, outputs);
    /* Inputs whose initializer comes along stay, for it gives them their value. */
    for (size_t i = 0; i < g->input.count; i++) {
        const struct place *place = find(c, g->input.items[i].name);
        if (place->kind == IS_INITIALIZER && c->keeps_initializer[place->index] &&
            !cm_map_find(&c->wanted, g->input.items[i].name))
            in_infos[n_inputs++] = g->input.items[i];
    }
    put_infos(g, CM_GRAPH_INPUT, &g->input, in_infos, n_inputs);
    put_infos(g, CM_GRAPH_OUTPUT, &g->output, out_infos, outputs.count);
    CM_LIST_KEEP(g, CM_GRAPH_NODE, &g->node, c->keeps_node[i]);
    CM_LIST_KEEP(g, CM_GRAPH_INITIALIZER, &g->initializer, c->keeps_initializer[i]);
    CM_LIST_KEEP(g, CM_GRAPH_SPARSE_INITIALIZER, &g->sparse_initializer, c->keeps_sparse[i]);
    CM_LIST_KEEP(g, CM_GRAPH_QUANTIZATION_ANNOTATION, &g->quantization_annotation,
                 cm_map_find(&c->reached, g->quantization_annotation.items[i].tensor_name));
    CM_LIST_KEEP(c->model, CM_MODEL_TRAINING_INFO, &c->model->training_info, c->keeps_entry[i]);
    if (c->model->functions.count)
        drop_functions(c);
}

/* Names as asked for: each once, and each there. */
static void take_names(struct cut *c, const char *what, struct cm_str_list names)
{
    struct cm_name_set seen = {.arena = c->scratch};

    for (size_t i = 0; i < names.count; i++) {
        if (cm_name_set_has(&seen, names.items[i]))
            cm_findings_refuse(c->findings, "%s '%.*s' is named twice", what,
                               CM_STR_FMT(names.items[i]));
        else if (!find(c, names.items[i]))
            refuse_unknown(c, what, names.items[i]);
        cm_name_set_add(&seen, names.items[i]);
    }
}

static struct cm_str_list names_of(struct cm_arena *arena, const struct cm_value_infos *infos,
                                   const struct cm_map *only)
{
    struct cm_str *names = CM_NEW_ARRAY(arena, struct cm_str, infos->count);
    size_t count = 0;

    for (size_t i = 0; i < infos->count; i++)
        if (!only || cm_map_find(only, infos->items[i].name))
            names[count++] = infos->items[i].name;
    return (struct cm_str_list){names, count};
}

static void begin(struct cut *c)
{
    const struct cm_graph_proto *g = c->graph;

    c->keeps_node = CM_NEW_ARRAY(c->scratch, bool, g->node.count);
    c->keeps_initializer = CM_NEW_ARRAY(c->scratch, bool, g->initializer.count);
    c->keeps_sparse = CM_NEW_ARRAY(c->scratch, bool, g->sparse_initializer.count);
    c->keeps_entry = CM_NEW_ARRAY(c->scratch, bool, c->model->training_info.count);
    define_all(c);
}

enum cm_status cm_edit_extract(struct cm_model_file *file, struct cm_str_list inputs,
                               struct cm_str_list outputs, const struct cm_edit_types *types,
                               struct cm_arena *scratch, struct cm_findings *findings,
                               struct cm_error *err)
{
    struct cut c = {.model = &file->model,
                    .graph = file->model.graph,
                    .scratch = scratch,
                    .findings = findings,
                    .own_inputs = inputs.count == 0};

    if (!c.graph)
        return cm_fail(err, CM_BAD_MODEL, "the model has no graph");
    begin(&c);
    if (!outputs.count)
        outputs = names_of(scratch, &c.graph->output, NULL);
    take_names(&c, "input", inputs);
    take_names(&c, "output", outputs);
    for (size_t i = 0; i < inputs.count; i++)
        *cm_map_insert(&c.wanted, scratch, inputs.items[i], NULL) = 1;
    for (size_t i = 0; i < outputs.count; i++)
        if (find(&c, outputs.items[i]))
            follow(&c, outputs.items[i]);
    reach_all(&c);
    for (size_t i = 0; i < inputs.count; i++)
        if (find(&c, inputs.items[i]) && cm_map_get(&c.wanted, inputs.items[i], 0) == 1)
            cm_findings_refuse(findings, "input '%.*s' leads to none of the outputs: leave it out",
                               CM_STR_FMT(inputs.items[i]));
    if (c.own_inputs)
        inputs = names_of(scratch, &c.graph->input, &c.missing);
    CM_TRY(cm_findings_fail(findings, err));
    choose_entries(&c);
    struct cm_value_info_proto *in_infos = CM_NEW_ARRAY(findings->arena, struct cm_value_info_proto,
                                                        inputs.count + c.graph->input.count);
    struct cm_value_info_proto *out_infos =
        CM_NEW_ARRAY(findings->arena, struct cm_value_info_proto, outputs.count);
    CM_TRY(describe(&c, inputs, "input", types, in_infos, err));
    CM_TRY(describe(&c, outputs, "output", types, out_infos, err));
    CM_TRY(cm_findings_fail(findings, err));
    apply(&c, inputs, in_infos, outputs, out_infos);
    return CM_OK;
}

/* ---- values made outputs ---- */

enum cm_status cm_edit_expose(struct cm_model_file *file, struct cm_str_list names,
                              struct cm_arena *scratch, struct cm_findings *findings,
                              struct cm_error *err)
{
    struct cut c = {.model = &file->model,
                    .graph = file->model.graph,
                    .scratch = scratch,
                    .findings = findings};
    struct cm_name_set given = {.arena = scratch};
    struct {
        CM_ARRAY(struct cm_str);
    } more = {0};

    if (!c.graph)
        return cm_fail(err, CM_BAD_MODEL, "the model has no graph");
    begin(&c);
    take_names(&c, "value", names);
    CM_TRY(cm_findings_fail(findings, err));
    struct cm_graph_proto *g = c.graph;
    for (size_t i = 0; i < g->output.count; i++)
        cm_name_set_add(&given, g->output.items[i].name);
    for (size_t i = 0; i < names.count; i++)
        if (!cm_name_set_has(&given, names.items[i]))
            *CM_PUSH(scratch, &more) = names.items[i];
    for (size_t n = 0; !names.count && n < g->node.count; n++)
        for (size_t o = 0; o < g->node.items[n].output.count; o++) {
            const struct cm_str name = g->node.items[n].output.items[o];
            if (name.size && !cm_name_set_has(&given, name))
                *CM_PUSH(scratch, &more) = name;
        }
    if (!more.count)
        return CM_OK;
    struct cm_map infos = {0};
    note_infos(&infos, scratch, &g->input);
    note_infos(&infos, scratch, &g->value_info);
    struct cm_value_info_proto *items = cm_list_extended_by(
        findings->arena, g->output.items, g->output.count, more.count, sizeof *items);
    for (size_t i = 0; i < more.count; i++) {
        const struct cm_value_info_proto *info =
            (const void *)(uintptr_t)cm_map_get(&infos, more.items[i], 0);
        items[g->output.count + i] = info ? *info : made_info(more.items[i], NULL);
    }
    g->output.items = items;
    g->output.count += more.count;
    cm_msg_set(&g->msg, CM_GRAPH_OUTPUT);
    return CM_OK;
}
