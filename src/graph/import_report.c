/* What an import finds that cannot be built, and going on without it. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/import_context.h"

#include "graph/called_functions.h"
#include "graph/registry.h"

const struct cm_function_proto *cm_import_find_function(const struct cm_import_context *context,
                                                        const struct cm_node_proto *proto)
{
    if (!context->functions || context->functions->count == 0)
        return NULL;
    const size_t number =
        (size_t)cm_map_get(context->functions, cm_call_key(context->module->arena, proto), 0);
    return number ? &context->model->functions.items[number - 1] : NULL;
}

int64_t cm_import_version(const struct cm_import_context *context, struct cm_str domain)
{
    domain = cm_domain_plain(domain);
    for (size_t i = 0; i < context->imports->count; i++)
        if (cm_str_equal(cm_domain_plain(context->imports->items[i].domain), domain))
            return context->imports->items[i].version;
    /* Before IR version 3 there were no imports, and one version of ONNX's own operators. */
    const struct cm_model_proto *model = context->model;
    const bool old = model && context->imports == &model->opset_import && model->ir_version > 0 &&
                     model->ir_version < 3 && !context->imports->count;
    return old && !domain.size ? 1 : 0;
}

/* ---- going on after a failure ---- */

uintptr_t cm_import_next_scope(const struct cm_import_context *context)
{
    return context->report ? context->report->scopes++ * 2 + 1 : 1;
}

bool cm_import_visits(const struct cm_import_context *context, const struct cm_graph_proto *body)
{
    struct cm_import_report *report = context->report;
    bool added = false;
    if (report)
        cm_map_insert_number(&report->visited, report->findings->arena, CM_ADDRESS(body), &added);
    return added;
}

static struct cm_str poison_key(struct cm_arena *arena, uintptr_t where, struct cm_str name)
{
    char *key = cm_arena_alloc(arena, sizeof where + name.size);
    memcpy(key, &where, sizeof where);
    if (name.size)
        memcpy(key + sizeof where, name.data, name.size);
    return (struct cm_str){key, sizeof where + name.size};
}

void cm_import_poison(struct cm_import_context *context, const struct cm_graph *graph,
                      struct cm_str name)
{
    struct cm_arena *arena = context->report->findings->arena;
    const uintptr_t where = context->scope ? context->scope->id : (uintptr_t)graph;
    if (name.size)
        cm_map_insert(&context->report->poisoned, arena, poison_key(arena, where, name), NULL);
}

bool cm_import_is_poisoned(const struct cm_import_context *context, const struct cm_graph *graph,
                           struct cm_str name)
{
    struct cm_import_report *report = context->report;
    bool found = false;
    if (!report || report->poisoned.count == 0)
        return false;
    struct cm_arena *arena = report->findings->arena;
    if (context->scope)
        for (const struct cm_import_scope *at = context->scope; at && !found; at = at->outer)
            found = cm_map_find(&report->poisoned, poison_key(arena, at->id, name)) != NULL;
    else
        for (const struct cm_graph *at = graph; at && !found; at = at->parent)
            found = cm_map_find(&report->poisoned, poison_key(arena, (uintptr_t)at, name)) != NULL;
    report->told = report->told || found;
    return found;
}

struct cm_str cm_import_name_node(struct cm_arena *arena, const struct cm_node_proto *node)
{
    const struct cm_str domain = cm_domain_plain(node->domain);
    const struct cm_str name =
        node->name.size || !node->output.count ? node->name : node->output.items[0];
    return cm_arena_printf(arena, "node %s'%.*s' (%.*s%s%.*s)", node->name.size ? "" : "making ",
                           CM_STR_FMT(name), CM_STR_FMT(domain), domain.size ? "." : "",
                           CM_STR_FMT(node->op_type));
}

static struct cm_str name_place(struct cm_arena *arena, const struct cm_import_place *place)
{
    if (!place)
        return CM_STR("");
    const struct cm_str outer = name_place(arena, place->outer);
    return cm_arena_printf(arena, "%s%s: body '%.*s': ", cm_str_text(outer),
                           cm_import_name_node(arena, place->node).data,
                           CM_STR_FMT(place->attribute));
}

bool cm_import_is_listed(enum cm_status status)
{
    return status == CM_BAD_MODEL || status == CM_UNSUPPORTED || status == CM_BAD_ARGUMENT ||
           status == CM_NOT_FOUND;
}

bool cm_import_may_go_on(const struct cm_import_context *context, enum cm_status status)
{
    enum { FAILURES_MAX = 2 * CM_FINDINGS_MAX };
    return context->report && cm_import_is_listed(status) &&
           (++context->report->failures <= FAILURES_MAX || context->report->judge);
}

void cm_import_begin(const struct cm_import_context *context)
{
    if (!context->report)
        return;
    context->report->told = false;
    context->report->rule = NULL;
}

void cm_import_is_missing(const struct cm_import_context *context, const struct cm_node_proto *node)
{
    struct cm_import_report *report = context->report;
    if (report && cm_map_find_number(&report->missing, CM_ADDRESS(node)))
        report->told = true;
}

void cm_import_note_failure(struct cm_import_context *context, enum cm_status status,
                            struct cm_str what, const char *reason, const void *subject)
{
    struct cm_import_report *report = context->report;
    struct cm_arena *arena = report->findings->arena;
    struct cm_findings *list = report->findings;
    const bool is_excused = report->judge && status == CM_UNSUPPORTED;
    const bool told = report->told && (report->judge || report->findings->total > 0);
    if (!told && (!is_excused || report->lists_unsupported)) { /* nothing fails without a word */
        const struct cm_str outer =
            !context->place && context->inner
                ? cm_arena_printf(arena, "inner graph %zu: ", context->inner)
                : name_place(arena, context->place);
        const struct cm_str function =
            context->function
                ? cm_arena_printf(arena, "function '%.*s': ", CM_STR_FMT(context->function->name))
                : CM_STR("");
        const struct cm_finding finding = {
            .status = status,
            .severity = is_excused ? CM_WARNING : CM_VIOLATION,
            .rule = status == CM_UNSUPPORTED ? NULL
                    : report->rule           ? report->rule
                                             : "TY2",
            .place = cm_arena_printf(arena, "%s%s%s", cm_str_text(function), cm_str_text(outer),
                                     cm_str_text(what)),
            .reason = cm_str(reason),
            .subject = subject};
        if (status != CM_UNSUPPORTED || !cm_findings_has(list, finding.place))
            cm_findings_put(list, &finding);
    }
    report->rule = NULL;
    report->told = false;
}

/* ---- operators that nobody knows ---- */

bool cm_import_adopts(const struct cm_import_context *context, const struct cm_node_proto *node)
{
    return context->upgrade && context->adopts &&
           context->adopts(cm_domain_plain(node->domain), node->op_type);
}

/* How many operators of a domain there are. */
static size_t count_operators(struct cm_str domain)
{
    const struct cm_schema *before = NULL, *schema;
    size_t count = 0;
    for (size_t i = 0; (schema = cm_schema_at(i)); before = schema, i++)
        count += cm_str_is(domain, schema->domain) &&
                 (!before || strcmp(before->name, schema->name) != 0);
    return count;
}

/* Why there is no such operator, or NULL when there is one. */
static const char *why_missing(const struct cm_import_context *context,
                               const struct cm_node_proto *node)
{
    const struct cm_registry *registry = context->module->registry;
    const struct cm_str plain = cm_domain_plain(node->domain);
    const struct cm_str domain = plain.size ? plain : CM_STR("ai.onnx");
    const int64_t version = cm_import_version(context, node->domain);
    struct cm_arena *arena = context->module->arena;

    if (cm_import_find_function(context, node))
        return NULL;
    if (!version)
        return cm_arena_printf(arena, "domain '%.*s' is not imported", CM_STR_FMT(domain)).data;
    if (cm_registry_schema(registry, node->domain, node->op_type, version) ||
        cm_import_adopts(context, node))
        return NULL;
    const struct cm_schema *newer = cm_registry_schema(registry, node->domain, node->op_type, 0);
    if (newer)
        return cm_arena_printf(arena,
                               "opset %lld of %.*s, which the model imports, does not have this "
                               "operator; a later opset does",
                               (long long)version, CM_STR_FMT(domain))
            .data;
    if (!plain.size)
        return cm_arena_printf(arena, "opset %lld of ai.onnx does not have this operator",
                               (long long)version)
            .data;
    const size_t others = count_operators(domain);
    return cm_arena_printf(arena, "operator '%.*s' of domain '%.*s' is not supported%s",
                           CM_STR_FMT(node->op_type), CM_STR_FMT(domain),
                           !others ? ""
                                   : cm_arena_printf(arena,
                                                     " (supported there: %zu operators, see "
                                                     "docs/operators.md)",
                                                     others)
                                         .data)
        .data;
}

static void note_missing(struct cm_import_context *context, const struct cm_node_proto *node,
                         const char *reason)
{
    struct cm_import_report *report = context->report;
    cm_map_insert_number(&report->missing, report->findings->arena, CM_ADDRESS(node), NULL);
    cm_import_note_failure(context, CM_UNSUPPORTED,
                           cm_import_name_node(context->module->arena, node), reason, node);
}

static void look_for_missing(struct cm_import_context *context, const struct cm_nodes *nodes,
                             int depth)
{
    for (size_t i = 0; i < nodes->count && depth <= CM_NESTING_MAX; i++) {
        const struct cm_node_proto *node = &nodes->items[i];
        const char *reason = why_missing(context, node);
        if (reason)
            note_missing(context, node, reason);
        for (size_t a = 0; a < node->attribute.count; a++) {
            if (!node->attribute.items[a].g)
                continue;
            const struct cm_import_place place = {node, node->attribute.items[a].name,
                                                  context->place};
            context->place = &place;
            look_for_missing(context, &node->attribute.items[a].g->node, depth + 1);
            context->place = place.outer;
        }
    }
}

void cm_import_list_missing(struct cm_import_context *context)
{
    const struct cm_model_proto *model = context->model;
    const struct cm_graph_proto *parts[2];
    const size_t n_parts = cm_import_parts(context, parts);

    for (size_t i = 0; i < n_parts; i++)
        look_for_missing(context, &parts[i]->node, 0);
    for (size_t i = 0; i < model->functions.count; i++) {
        const struct cm_function_proto *function = &model->functions.items[i];
        context->function = function;
        context->imports = &function->opset_import;
        look_for_missing(context, &function->node, 0);
        for (size_t a = 0; a < function->attribute_proto.count; a++)
            if (function->attribute_proto.items[a].g) /* what a call may leave as it is */
                look_for_missing(context, &function->attribute_proto.items[a].g->node, 1);
    }
    context->function = NULL;
    context->imports = &model->opset_import;
}
