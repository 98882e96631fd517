/* Going over a model's messages, converting what must be, and putting it in place at the end. */
// SPDX-License-Identifier: Apache-2.0
#include "models/opset_change.h"

#include "base/array.h"
#include "graph/import_context.h"
#include "graph/registry.h"
#include "models/ir_version.h"
#include "models/opset_nodes.h"
#include "onnx/defined_names.h"
#include "onnx/descriptor.h"
#include "versions/upgrade.h"

#include <string.h>

enum { NESTING_MAX = 64 };

/* A list of nodes that takes the place of another, when all has gone well. */
struct edit {
    struct cm_graph_proto *graph;       /* or */
    struct cm_function_proto *function; /* the other is NULL */
    struct cm_nodes nodes;
    struct cm_tensor_proto *initializers; /* more of them */
    size_t n_initializers;
};

struct conversion {
    struct cm_arena *arena;
    struct cm_model_proto *model;
    const struct cm_registry *registry;
    struct cm_version_report *report;
    struct cm_map records;   /* by the address of a node: struct cm_node_record * */
    struct cm_map copies;    /* of nodes, by their address: that of the file's */
    struct cm_map functions; /* of the model: domain, a line, name */
    struct cm_map by_kind;   /* changes, by what they are about: the place in the list, from 1 */
    struct cm_map taken, file_graphs;
    struct cm_map broken;    /* places of nodes that could not be built: the reason */
    struct cm_map variables; /* initializers that training changes */
    struct cm_map *uses;     /* names and how often they are read; a function has its own */
    struct cm_map graph_uses;
    struct cm_map dropped; /* names that a converted node read no more */
    CM_ARRAY(struct edit) edits;
    struct cm_node_writer writer;
    const struct cm_opsets *imports; /* of the model, or of the function at work */
    struct cm_str place;             /* of the graph at work, for messages: "function 'f': " */
    struct cm_error *err;
};

/* ---- what is in the file ---- */

static void count_use(struct conversion *c, struct cm_str name)
{
    if (name.size)
        (*cm_map_insert(c->uses, c->arena, name, NULL))++;
}

static void take_name(void *arg, struct cm_str name)
{
    struct conversion *c = arg;

    cm_map_insert(&c->taken, c->arena, name, NULL);
}

static enum cm_status survey_nodes(struct conversion *c, const struct cm_nodes *nodes, int depth);

static enum cm_status survey_graph(struct conversion *c, const struct cm_graph_proto *graph,
                                   int depth)
{
    if (depth > NESTING_MAX)
        return cm_fail(c->err, CM_LIMIT, "graphs nest deeper than %d", NESTING_MAX);
    cm_map_insert_number(&c->file_graphs, c->arena, CM_ADDRESS(graph), NULL);
    cm_graph_each_defined(graph, take_name, c);
    for (size_t i = 0; i < graph->output.count; i++)
        count_use(c, graph->output.items[i].name);
    return survey_nodes(c, &graph->node, depth);
}

static enum cm_status survey_nodes(struct conversion *c, const struct cm_nodes *nodes, int depth)
{
    for (size_t n = 0; n < nodes->count; n++) {
        const struct cm_node_proto *node = &nodes->items[n];
        for (size_t i = 0; i < node->input.count; i++)
            count_use(c, node->input.items[i]);
        for (size_t o = 0; o < node->output.count; o++)
            take_name(c, node->output.items[o]);
        for (size_t a = 0; a < node->attribute.count; a++) {
            const struct cm_attribute_proto *attr = &node->attribute.items[a];
            count_use(c, attr->s); /* Gradient names values in attributes */
            for (size_t s = 0; s < attr->strings.count; s++)
                count_use(c, attr->strings.items[s]);
            if (attr->g)
                CM_TRY(survey_graph(c, attr->g, depth + 1));
        }
    }
    return CM_OK;
}

static void count_bindings(struct conversion *c, const struct cm_entries *bindings)
{
    for (size_t i = 0; i < bindings->count; i++) {
        count_use(c, bindings->items[i].key);
        count_use(c, bindings->items[i].value);
    }
}

static struct cm_str function_key(struct cm_arena *arena, struct cm_str domain, struct cm_str name)
{
    return cm_arena_printf(arena, "%.*s\n%.*s", CM_STR_FMT(cm_domain_plain(domain)),
                           CM_STR_FMT(name));
}

static enum cm_status survey(struct conversion *c)
{
    struct cm_model_proto *model = c->model;
    const struct cm_graph_proto *graph;
    c->uses = &c->graph_uses;
    for (size_t i = 0; i < model->functions.count; i++)
        cm_map_insert(&c->functions, c->arena,
                      function_key(c->arena, model->functions.items[i].domain,
                                   model->functions.items[i].name),
                      NULL);
    c->variables = cm_training_variables(c->arena, model);
    for (size_t at = 0; (graph = cm_model_next_graph(model, &at));)
        CM_TRY(survey_graph(c, graph, 0));
    for (size_t i = 0; i < model->training_info.count; i++) {
        count_bindings(c, &model->training_info.items[i].initialization_binding);
        count_bindings(c, &model->training_info.items[i].update_binding);
    }
    return CM_OK;
}

/* ---- types ---- */

static void note_node(void *arg, const struct cm_node_proto *proto, struct cm_graph *graph,
                      const struct cm_node *call, const cm_value *inputs, const cm_value *outputs)
{
    struct conversion *c = arg;
    const uint64_t *copied =
        c->copies.count ? cm_map_find_number(&c->copies, CM_ADDRESS(proto)) : NULL;
    if (copied)
        proto = (const struct cm_node_proto *)(uintptr_t)*copied;
    uint64_t *slot = cm_map_insert_number(&c->records, c->arena, CM_ADDRESS(proto), NULL);
    struct cm_node_record *first = (struct cm_node_record *)(uintptr_t)*slot, *record = first;
    while (record && record->call != call && record->call && call)
        record = record->next;
    if (!record || (record->call != call)) {
        record = CM_NEW(c->arena, struct cm_node_record);
        record->next = first;
        *slot = (uint64_t)(uintptr_t)record;
    }
    record->graph = graph;
    record->call = call;
    record->inputs = inputs;
    record->outputs = outputs;
}

/* Is it an operator that nobody knows, of which only the file can say what it gives? */
static bool is_unknown(const struct conversion *c, const struct cm_node_proto *node)
{
    const struct cm_str domain = cm_domain_plain(node->domain);
    if (cm_registry_schema(c->registry, domain, node->op_type, 0) ||
        cm_upgrade_adopts(domain, node->op_type))
        return false;
    return !cm_map_find(&c->functions, function_key(c->arena, domain, node->op_type));
}

/* The graph with inputs in the place of what operators give that nobody knows, as the file declares
 * them. */
static struct cm_graph_proto *without_unknown(struct conversion *c, struct cm_graph_proto *graph)
{
    struct cm_map unknown = {0};
    size_t n_inputs = graph->input.count;

    for (size_t n = 0; n < graph->node.count; n++)
        if (is_unknown(c, &graph->node.items[n]))
            for (size_t o = 0; o < graph->node.items[n].output.count; o++)
                cm_map_insert(&unknown, c->arena, graph->node.items[n].output.items[o], NULL);
    if (!unknown.count)
        return graph;
    struct cm_graph_proto *copy = CM_NEW(c->arena, struct cm_graph_proto);
    *copy = *graph;
    copy->input.items = cm_list_extended_by(c->arena, graph->input.items, n_inputs, unknown.count,
                                            sizeof *copy->input.items);
    copy->node.items = CM_NEW_ARRAY(c->arena, struct cm_node_proto, graph->node.count);
    copy->node.count = 0;
    for (size_t n = 0; n < graph->node.count; n++) {
        if (is_unknown(c, &graph->node.items[n]))
            continue;
        struct cm_node_proto *known = &copy->node.items[copy->node.count++];
        *known = graph->node.items[n];
        *cm_map_insert_number(&c->copies, c->arena, CM_ADDRESS(known), NULL) =
            CM_ADDRESS(&graph->node.items[n]);
    }
    const struct cm_value_infos *const lists[] = {&graph->value_info, &graph->output};
    for (size_t l = 0; l < CM_COUNT(lists); l++)
        for (size_t i = 0; i < lists[l]->count; i++)
            if (lists[l]->items[i].type && cm_map_remove(&unknown, lists[l]->items[i].name))
                copy->input.items[n_inputs++] = lists[l]->items[i];
    copy->input.count = n_inputs;
    return copy;
}

static enum cm_status import_part(struct conversion *c, const struct cm_model_proto *model,
                                  const struct cm_graph_proto *appended,
                                  const struct cm_graph_proto *const *around, size_t n_around,
                                  struct cm_findings *findings)
{
    const struct cm_import_options options = {.upgrade = cm_upgrade_node,
                                              .adopts = cm_upgrade_adopts,
                                              .findings = findings,
                                              .opens = cm_tensor_is_named,
                                              .opens_arg = &c->variables,
                                              .built = note_node,
                                              .built_arg = c,
                                              .appended = appended,
                                              .around = around,
                                              .n_around = n_around,
                                              .constant_defaults = true,
                                              .partial = true};
    struct cm_graph *graph;
    return cm_module_import(c->writer.module, model, &options, &graph, c->err);
}

/* Every graph of the model, typed as far as that can be. What is broken is told, and stays so where
 * the versions make no difference. */
static enum cm_status import_all(struct conversion *c)
{
    struct cm_model_proto *model = CM_NEW(c->arena, struct cm_model_proto);
    struct cm_findings found = {.arena = c->arena};

    *model = *c->model;
    model->graph = without_unknown(c, c->model->graph);
    if (!model->training_info.count)
        CM_TRY(import_part(c, model, NULL, NULL, 0, &found));
    for (size_t i = 0; i < model->training_info.count; i++) {
        const struct cm_training_proto *entry = &model->training_info.items[i];
        CM_TRY(import_part(c, model, entry->algorithm, NULL, 0, &found));
        if (!entry->initialization)
            continue;
        struct cm_model_proto *other = CM_NEW(c->arena, struct cm_model_proto);
        const struct cm_graph_proto *around[] = {model->graph, entry->algorithm};
        *other = *model;
        other->graph = entry->initialization;
        CM_TRY(import_part(c, other, NULL, around, entry->algorithm ? 2 : 1, &found));
    }
    for (size_t i = 0; i < found.count; i++)
        if (found.items[i].status != CM_UNSUPPORTED) {
            cm_findings_put(&c->report->broken, &found.items[i]);
            *cm_map_insert(&c->broken, c->arena, found.items[i].place, NULL) =
                (uint64_t)(uintptr_t)found.items[i].reason.data;
        }
    return CM_OK;
}

/* ---- nodes ---- */

static struct cm_str place_of(struct conversion *c, const struct cm_node_proto *node)
{
    return cm_arena_printf(c->arena, "%.*s%s", CM_STR_FMT(c->place),
                           cm_import_name_node(c->arena, node).data);
}

/* Goes on after a failure that says something of the model, which is listed. */
static enum cm_status list_failure(struct conversion *c, const struct cm_node_proto *node,
                                   enum cm_status status)
{
    if (status != CM_UNSUPPORTED && status != CM_BAD_MODEL && status != CM_BAD_ARGUMENT)
        return status;
    cm_findings_unsupported(&c->report->findings, place_of(c, node), "%s", c->err->text);
    *c->err = (struct cm_error){0};
    return CM_OK;
}

static void note_change(struct conversion *c, const struct cm_node_proto *node,
                        const struct cm_schema *from, const struct cm_schema *to)
{
    const int version = to ? to->since_version : 0;
    const struct cm_str key =
        cm_arena_printf(c->arena, "%s %s %d %d %.*s", from->domain, from->name, from->since_version,
                        version, CM_STR_FMT(c->writer.how));
    uint64_t *place = cm_map_insert(&c->by_kind, c->arena, key, NULL);
    if (!*place) {
        *CM_PUSH(c->arena, &c->report->changes) =
            (struct cm_version_change){.domain = cm_domain_plain(node->domain),
                                       .op = node->op_type,
                                       .how = c->writer.how,
                                       .from = from->since_version,
                                       .to = version};
        *place = c->report->changes.count;
    }
    c->report->changes.items[*place - 1].nodes++;
    c->report->changed++;
}

/* Does a node of this schema mean the same under a newer version? */
static bool stays(const struct cm_schema *from, const struct cm_schema *to, struct cm_str domain)
{
    const struct cm_schema *schema = to;
    if (to && to->since_version < from->since_version)
        return false;
    while (schema && schema != from) {
        if (cm_upgrade_known(domain, cm_str(schema->name), schema->since_version) !=
            CM_UPGRADE_SAME)
            return false;
        schema = cm_schema_find(domain, cm_str(schema->name), schema->since_version - 1);
    }
    return schema != NULL;
}

/* What the new nodes read no more may have lost its last reader. */
static void count_readers(struct conversion *c, const struct cm_node_proto *old, size_t first)
{
    struct cm_map now = {0};
    for (size_t n = first; n < c->writer.nodes.count; n++)
        for (size_t i = 0; i < c->writer.nodes.items[n].input.count; i++) {
            count_use(c, c->writer.nodes.items[n].input.items[i]);
            cm_map_insert(&now, c->arena, c->writer.nodes.items[n].input.items[i], NULL);
        }
    for (size_t i = 0; i < old->input.count; i++) {
        const struct cm_str name = old->input.items[i];
        uint64_t *uses = cm_map_find(c->uses, name);
        if (uses && *uses)
            (*uses)--;
        if (name.size && !cm_map_find(&now, name))
            cm_map_insert(&c->dropped, c->arena, name, NULL);
    }
}

static void forget_names(struct conversion *c)
{
    struct cm_node_writer *w = &c->writer;
    while (w->fresh.count)
        cm_map_remove(&c->taken, w->fresh.items[--w->fresh.count]);
}

/* The node for every call of the function that it is in, which must all give the same. */
static enum cm_status convert_for_calls(struct conversion *c, const struct cm_node_proto *node,
                                        const struct cm_schema *from,
                                        const struct cm_node_record *record, bool *same)
{
    struct cm_node_writer *w = &c->writer;
    const size_t first = w->nodes.count;
    struct cm_graph_proto before = {0};

    w->fresh.count = 0;
    for (const struct cm_node_record *one = record; one; one = one->next) {
        forget_names(c);
        w->nodes.count = first;
        CM_TRY(cm_write_converted(w, node, from, one, same));
        if (!record->next)
            break;
        struct cm_graph_proto now = {.node.count = w->nodes.count - first};
        now.node.items = CM_NEW_ARRAY(c->arena, struct cm_node_proto, now.node.count);
        for (size_t n = first; n < w->nodes.count; n++)
            now.node.items[n - first] = w->nodes.items[n];
        cm_msg_set(&now.msg, CM_GRAPH_NODE);
        if (one != record && !cm_message_equal(&cm_graph_info, &before, &now, c->arena, NULL))
            return cm_fail(c->err, CM_UNSUPPORTED,
                           "calls of the function differ in what the node would become");
        before = now;
    }
    return CM_OK;
}

static enum cm_status keep_node(struct conversion *c, const struct cm_node_proto *node)
{
    *CM_PUSH(c->arena, &c->writer.nodes) = *node;
    c->report->kept++;
    return CM_OK;
}

/* A name that nothing in the model defines. */
static void check_operands(struct conversion *c, const struct cm_node_proto *node)
{
    for (size_t i = 0; i < node->input.count; i++)
        if (node->input.items[i].size && !cm_map_find(&c->taken, node->input.items[i]))
            cm_findings_add(&c->report->findings, CM_BAD_MODEL, place_of(c, node),
                            "reads '%.*s', which nothing defines",
                            CM_STR_FMT(node->input.items[i]));
}

/* The node was not built: itself broken, or behind one that is, or that nobody knows. */
static enum cm_status fail_untyped(struct conversion *c, const struct cm_node_proto *node)
{
    const uint64_t *reason = cm_map_find(&c->broken, place_of(c, node));
    return cm_fail(c->err, CM_UNSUPPORTED, "%s",
                   reason ? (const char *)(uintptr_t)*reason
                   : c->writer.in_function
                       ? "no call tells the types of its operands, which its new form depends on"
                       : "the types of its operands are not known, which its new form depends on");
}

static enum cm_status convert_node(struct conversion *c, const struct cm_node_proto *node)
{
    const struct cm_str domain = cm_domain_plain(node->domain);
    const int64_t target = cm_target_version(c->writer.targets, domain);
    const int64_t source = cm_target_version(c->imports, domain);
    const struct cm_schema *from =
        source ? cm_registry_schema(c->registry, domain, node->op_type, source) : NULL;
    const struct cm_schema *to =
        target ? cm_registry_schema(c->registry, domain, node->op_type, target) : NULL;
    const size_t first = c->writer.nodes.count;
    bool same = false;

    if (!target || target == source || !from || from == to || stays(from, to, domain))
        return keep_node(c, node);
    const uint64_t *slot = cm_map_find_number(&c->records, CM_ADDRESS(node));
    enum cm_status status;
    if (slot)
        status = convert_for_calls(c, node, from, (struct cm_node_record *)(uintptr_t)*slot, &same);
    else
        status = fail_untyped(c, node);
    if (status) {
        c->writer.nodes.count = first;
        CM_TRY(list_failure(c, node, status));
        return keep_node(c, node);
    }
    if (same)
        return keep_node(c, node);
    count_readers(c, node, first);
    note_change(c, node, from, to);
    return CM_OK;
}

static enum cm_status convert_list(struct conversion *c, const struct cm_nodes *nodes,
                                   struct edit edit, int depth);

static enum cm_status convert_graph(struct conversion *c, struct cm_graph_proto *graph, int depth)
{
    return convert_list(c, &graph->node, (struct edit){.graph = graph}, depth);
}

static enum cm_status convert_bodies(struct conversion *c, const struct cm_node_proto *node,
                                     int depth)
{
    for (size_t a = 0; a < node->attribute.count; a++) {
        struct cm_graph_proto *body = node->attribute.items[a].g;
        if (!body)
            continue;
        const struct cm_str outer = c->place;
        c->place = cm_arena_printf(c->arena, "%s: body '%.*s': ", place_of(c, node).data,
                                   CM_STR_FMT(node->attribute.items[a].name));
        CM_TRY(convert_graph(c, body, depth + 1));
        c->place = outer;
    }
    return CM_OK;
}

/* The nodes of a graph or function. The list is replaced only if anything in it changed. */
static enum cm_status convert_list(struct conversion *c, const struct cm_nodes *nodes,
                                   struct edit edit, int depth)
{
    struct cm_node_writer *w = &c->writer;
    const struct cm_node_writer outer = *w;
    const size_t changed = c->report->changed;

    memset(&w->nodes, 0, sizeof w->nodes);
    memset(&w->initializers, 0, sizeof w->initializers);
    w->nodes.items = CM_NEW_ARRAY(c->arena, struct cm_node_proto, nodes->count);
    w->nodes.capacity = nodes->count;
    for (size_t n = 0; n < nodes->count; n++) {
        check_operands(c, &nodes->items[n]);
        CM_TRY(convert_bodies(c, &nodes->items[n], depth));
        CM_TRY(convert_node(c, &nodes->items[n]));
    }
    if (c->report->changed != changed) {
        edit.nodes = (struct cm_nodes){w->nodes.items, w->nodes.count};
        edit.initializers = w->initializers.items;
        edit.n_initializers = w->initializers.count;
        *CM_PUSH(c->arena, &c->edits) = edit;
    }
    memcpy(&w->nodes, &outer.nodes, sizeof w->nodes);
    memcpy(&w->initializers, &outer.initializers, sizeof w->initializers);
    return CM_OK;
}

static enum cm_status convert_function(struct conversion *c, struct cm_function_proto *function)
{
    struct cm_map uses = {0};

    c->uses = &uses;
    for (size_t i = 0; i < function->input.count; i++)
        cm_map_insert(&c->taken, c->arena, function->input.items[i], NULL);
    CM_TRY(survey_nodes(c, &function->node, 0));
    for (size_t o = 0; o < function->output.count; o++)
        count_use(c, function->output.items[o]);
    c->imports = &function->opset_import;
    c->writer.in_function = true;
    c->place = cm_arena_printf(c->arena, "function '%.*s': ", CM_STR_FMT(function->name));
    CM_TRY(convert_list(c, &function->node, (struct edit){.function = function}, 0));
    c->uses = &c->graph_uses;
    c->imports = &c->model->opset_import;
    c->writer.in_function = false;
    c->place = CM_STR("");
    return CM_OK;
}

static enum cm_status convert_all(struct conversion *c)
{
    struct cm_model_proto *model = c->model;

    CM_TRY(convert_graph(c, model->graph, 0));
    for (size_t i = 0; i < model->training_info.count; i++) {
        const struct cm_training_proto *entry = &model->training_info.items[i];
        c->place = CM_STR("initialization: ");
        if (entry->initialization)
            CM_TRY(convert_graph(c, entry->initialization, 0));
        c->place = CM_STR("algorithm: ");
        if (entry->algorithm)
            CM_TRY(convert_graph(c, entry->algorithm, 0));
    }
    c->place = CM_STR("");
    for (size_t i = 0; i < model->functions.count; i++)
        CM_TRY(convert_function(c, &model->functions.items[i]));
    return CM_OK;
}

/* ---- putting it in place ---- */

/* Was this constant read by nodes that were converted, and is by nobody now? */
static bool is_dropped(const struct conversion *c, struct cm_str name)
{
    const uint64_t *uses = cm_map_find(&c->graph_uses, name);
    return cm_map_find(&c->dropped, name) && (!uses || !*uses) && !cm_map_find(&c->variables, name);
}

/* Initializers that nobody reads any more, and inputs whose defaults they were. */
static void drop_initializers(struct conversion *c, struct cm_graph_proto *graph)
{
    struct cm_map gone = {0};
    for (size_t i = 0; i < graph->initializer.count; i++)
        if (is_dropped(c, graph->initializer.items[i].name))
            cm_map_insert(&gone, c->arena, graph->initializer.items[i].name, NULL);
    CM_LIST_KEEP(graph, CM_GRAPH_INITIALIZER, &graph->initializer,
                 !cm_map_find(&gone, graph->initializer.items[i].name));
    for (size_t i = 0; c->model->ir_version > 3 && i < graph->input.count; i++)
        if (cm_map_find(&gone, graph->input.items[i].name))
            *CM_LIST_ADD(c->arena, &c->report->fixed) = graph->input.items[i].name;
    CM_LIST_KEEP(graph, CM_GRAPH_INPUT, &graph->input,
                 !cm_map_find(&gone, graph->input.items[i].name));
}

static void drop_constants(struct conversion *c, struct cm_nodes *nodes, bool in_function)
{
    size_t kept = 0;
    for (size_t n = 0; n < nodes->count; n++) {
        const struct cm_node_proto *node = &nodes->items[n];
        if (in_function || !cm_str_is(node->op_type, "Constant") || node->output.count != 1 ||
            !is_dropped(c, node->output.items[0]))
            nodes->items[kept++] = *node;
    }
    nodes->count = kept;
}

static void apply(struct conversion *c, struct edit *edit)
{
    drop_constants(c, &edit->nodes, edit->function != NULL);
    if (edit->function) {
        edit->function->node = edit->nodes;
        cm_msg_set(&edit->function->msg, CM_FUNCTION_NODE);
        return;
    }
    struct cm_graph_proto *graph = edit->graph;
    graph->node = edit->nodes;
    cm_msg_set(&graph->msg, CM_GRAPH_NODE);
    if (c->dropped.count)
        drop_initializers(c, graph);
    if (!edit->n_initializers)
        return;
    graph->initializer.items =
        cm_list_extended_by(c->arena, graph->initializer.items, graph->initializer.count,
                            edit->n_initializers, sizeof *graph->initializer.items);
    memcpy(graph->initializer.items + graph->initializer.count, edit->initializers,
           edit->n_initializers * sizeof *edit->initializers);
    graph->initializer.count += edit->n_initializers;
    cm_msg_set(&graph->msg, CM_GRAPH_INITIALIZER);
}

static void set_imports(struct cm_opsets *imports, const struct cm_opsets *targets)
{
    for (size_t i = 0; i < imports->count; i++) {
        struct cm_opset_proto *import = &imports->items[i];
        const int64_t version = cm_target_version(targets, import->domain);
        if (!version || version == import->version)
            continue;
        import->version = version;
        cm_msg_set(&import->msg, CM_OPSET_VERSION);
    }
}

static enum cm_status put_in_place(struct conversion *c, const struct cm_opsets *targets)
{
    for (size_t i = 0; i < c->edits.count; i++)
        apply(c, &c->edits.items[i]);
    for (size_t i = 0; i < c->model->opset_import.count; i++) {
        const struct cm_opset_proto *import = &c->model->opset_import.items[i];
        const int64_t version = cm_target_version(targets, import->domain);
        if (version && version != import->version)
            *CM_LIST_ADD(c->arena, &c->report->before) = *import;
    }
    set_imports(&c->model->opset_import, targets);
    for (size_t i = 0; i < c->model->functions.count; i++)
        set_imports(&c->model->functions.items[i].opset_import, targets);
    c->report->ir_before = c->model->ir_version;
    CM_TRY(cm_fit_ir_version(c->arena, c->model, &c->report->before, c->err));
    c->report->ir = c->model->ir_version;
    return CM_OK;
}

enum cm_status cm_convert_version(struct cm_arena *arena, struct cm_model_file *file,
                                  const struct cm_opsets *targets, struct cm_version_report *report,
                                  struct cm_error *err)
{
    struct conversion c = {.arena = arena,
                           .model = &file->model,
                           .registry = file->registry ? file->registry : cm_registry_builtin(),
                           .report = report,
                           .imports = &file->model.opset_import,
                           .place = CM_STR(""),
                           .err = err};

    *report = (struct cm_version_report){
        .findings = {.arena = arena, .rule = "convert", .what = "the model cannot be converted"},
        .broken = {.arena = arena},
        .fixed = {NULL, 0}};
    if (!file->model.graph)
        return cm_fail(err, CM_BAD_MODEL, "the model has no graph");
    c.writer = (struct cm_node_writer){
        .arena = arena,
        .module = cm_module_new(
            arena, &(struct cm_module_options){.files = file->files, .registry = file->registry}),
        .targets = targets,
        .taken = &c.taken,
        .file_graphs = &c.file_graphs,
        .err = err};
    CM_TRY(survey(&c));
    CM_TRY(import_all(&c));
    CM_TRY(convert_all(&c));
    if (report->findings.count)
        return cm_findings_fail(&report->findings, err);
    CM_TRY(put_in_place(&c, targets));
    file->to_ship = true;
    return CM_OK;
}
