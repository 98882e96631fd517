/* Inlining the functions of a model, and all that goes with it. */
// SPDX-License-Identifier: Apache-2.0
#include "models/expansion.h"

#include "base/diagnostics.h"
#include "graph/called_functions.h"
#include "graph/function.h"
#include "graph/registry.h"
#include "models/write_model.h"
#include "schema/levels.h"
#include "versions/portable.h"

enum { NODES_MAX = 2000000, DEPTH_MAX = 64 };

/* ---- names ---- */

static enum cm_status read_names(struct cm_expansion *x, const char *list, const char *what,
                                 struct cm_expand_names *out)
{
    for (list = list ? list + strspn(list, ", ") : ""; *list; list += strspn(list, ", ")) {
        const struct cm_str word = {list, strcspn(list, ", ")};
        struct cm_expand_name *name = CM_PUSH(x->arena, out);
        const char *colons = NULL;

        for (size_t i = 0; i + 1 < word.size && !colons; i++)
            if (word.data[i] == ':' && word.data[i + 1] == ':')
                colons = word.data + i;
        *name = (struct cm_expand_name){.name = word, .any_domain = !colons};
        if (colons) {
            const size_t n = (size_t)(colons - word.data);
            name->domain = cm_domain_plain((struct cm_str){word.data, n});
            name->name = (struct cm_str){colons + 2, word.size - n - 2};
        }
        if (!name->name.size || (name->any_domain && cm_str_is(name->name, "*")))
            return cm_fail(x->err, CM_BAD_ARGUMENT,
                           "%s: '%.*s' names nothing, expected NAME, DOMAIN::NAME or DOMAIN::*",
                           what, CM_STR_FMT(word));
        list += word.size;
    }
    return CM_OK;
}

/* All names that fit are noted as met. */
static bool lists(struct cm_expand_names *names, struct cm_str domain, struct cm_str name)
{
    bool found = false;

    domain = cm_domain_plain(domain);
    for (size_t i = 0; i < names->count; i++) {
        struct cm_expand_name *one = &names->items[i];
        if ((one->any_domain || cm_str_equal(one->domain, domain)) &&
            (cm_str_is(one->name, "*") || cm_str_equal(one->name, name)))
            found = one->met = true;
    }
    return found;
}

bool cm_expansion_must(const struct cm_expansion *x)
{
    return x->options->core || x->only.count;
}

bool cm_expansion_picks(struct cm_expansion *x, struct cm_str domain, struct cm_str name,
                        bool is_function)
{
    const bool excepted = lists(&x->except, domain, name);

    if (x->only.count)
        return lists(&x->only, domain, name) && !excepted;
    if (excepted)
        return false;
    if (is_function || x->options->operators)
        return true;
    return x->options->core && cm_level_of(domain, name) != CM_LEVEL_CORE;
}

static enum cm_status refuse_unmet(struct cm_expansion *x, const struct cm_expand_names *names,
                                   const char *what)
{
    for (size_t i = 0; i < names->count; i++) {
        const struct cm_expand_name *name = &names->items[i];
        if (name->met)
            continue;
        return cm_fail(x->err, CM_BAD_ARGUMENT, "%s: no node of the model is a '%.*s%s%.*s'", what,
                       CM_STR_FMT(name->domain),
                       name->any_domain ? "" : "::", CM_STR_FMT(name->name));
    }
    return CM_OK;
}

/* ---- functions of the model ---- */

const struct cm_function_proto *cm_expansion_function(const struct cm_expansion *x,
                                                      const struct cm_node_proto *node)
{
    if (!x->functions.count)
        return NULL;
    const size_t number = (size_t)cm_map_get(&x->functions, cm_call_key(x->arena, node), 0);
    return number ? &x->file->model.functions.items[number - 1] : NULL;
}

enum cm_status cm_expansion_spend(struct cm_expansion *x, size_t nodes)
{
    if (nodes > x->room)
        return cm_fail(x->err, CM_LIMIT, "expanding its functions would make more than %d nodes",
                       NODES_MAX);
    x->room -= nodes;
    return CM_OK;
}

/* Does a node of a function mean the same under the imports of the model? */
static bool node_fits(const struct cm_expansion *x, const struct cm_function_proto *function,
                      const struct cm_node_proto *node)
{
    const struct cm_str domain = cm_domain_plain(node->domain);
    const struct cm_opset_proto *here = cm_opsets_find(&x->model->opset_import, domain),
                                *there = cm_opsets_find(&function->opset_import, domain);

    if (!here || !there || here->version == there->version || cm_expansion_function(x, node))
        return true;
    const struct cm_schema *schema =
        cm_registry_schema(x->registry, domain, node->op_type, there->version);
    return schema && cm_operator_means_same(x->registry, domain, node->op_type,
                                            schema->since_version, here->version);
}

static bool nodes_fit(const struct cm_expansion *x, const struct cm_function_proto *function,
                      const struct cm_nodes *nodes, int depth)
{
    for (size_t n = 0; n < nodes->count; n++) {
        const struct cm_node_proto *node = &nodes->items[n];
        if (!node_fits(x, function, node))
            return false;
        for (size_t a = 0; a < node->attribute.count && depth < DEPTH_MAX; a++)
            if (node->attribute.items[a].g &&
                !nodes_fit(x, function, &node->attribute.items[a].g->node, depth + 1))
                return false;
    }
    return true;
}

/* Domains that only the function imported. */
static void take_imports(struct cm_expansion *x, const struct cm_function_proto *function)
{
    for (size_t i = 0; i < function->opset_import.count; i++) {
        const struct cm_opset_proto *import = &function->opset_import.items[i];
        if (cm_opsets_find(&x->model->opset_import, cm_domain_plain(import->domain)))
            continue;
        *CM_LIST_ADD(x->arena, &x->model->opset_import) = *import;
        cm_msg_set(&x->model->msg, CM_MODEL_OPSET_IMPORT);
    }
}

static enum cm_status replace_call(struct cm_expansion *x, const struct cm_graph *graph,
                                   const struct cm_node_proto *node, struct cm_replacement *out)
{
    const struct cm_function_proto *function = cm_expansion_function(x, node);

    (void)graph;
    if (!function || !cm_expansion_picks(x, node->domain, node->op_type, true) ||
        !nodes_fit(x, function, &function->node, 0))
        return CM_OK; /* one that does not fit is converted with types, like an operator */
    take_imports(x, function);
    x->report->calls++;
    *out = (struct cm_replacement){function, node, true};
    return CM_OK;
}

/* How many nodes a list comes to: a chain of functions that each call the next one twice doubles
 * with every line of the file, so that is found out before any is made. Sizes stop growing past the
 * limit. */
static size_t measure(struct cm_expansion *x, struct cm_map *sizes, const struct cm_nodes *nodes,
                      int depth)
{
    size_t total = nodes->count;

    for (size_t n = 0; n < nodes->count && total <= NODES_MAX; n++) {
        const struct cm_node_proto *node = &nodes->items[n];
        const struct cm_function_proto *function = cm_expansion_function(x, node);

        for (size_t a = 0; a < node->attribute.count && depth < CM_CALL_DEPTH; a++)
            if (node->attribute.items[a].g)
                total += measure(x, sizes, &node->attribute.items[a].g->node, depth + 1);
        if (!function || depth >= CM_CALL_DEPTH ||
            !cm_expansion_picks(x, node->domain, node->op_type, true))
            continue;
        const struct cm_str key = cm_call_key(x->arena, node);
        const uint64_t *known = cm_map_find(sizes, key);
        const size_t size = known ? (size_t)*known : measure(x, sizes, &function->node, depth + 1);
        if (!known)
            *cm_map_insert(sizes, x->arena, key, NULL) = size;
        total += size;
    }
    return total > NODES_MAX ? NODES_MAX + 1 : total;
}

static enum cm_status measure_model(struct cm_expansion *x)
{
    const struct cm_model_proto *model = x->model;
    const struct cm_graph_proto *graph;
    struct cm_map sizes = {0};
    size_t total = 0;

    if (!x->functions.count)
        return CM_OK;
    for (size_t at = 0; (graph = cm_model_next_graph(model, &at));)
        total += measure(x, &sizes, &graph->node, 0);
    for (size_t i = 0; i < model->functions.count; i++)
        total += measure(x, &sizes, &model->functions.items[i].node, 1);
    return total > NODES_MAX
               ? cm_fail(x->err, CM_LIMIT, "expanding its functions would make more than %d nodes",
                         NODES_MAX)
               : CM_OK;
}

/* ---- the whole model ---- */

static enum cm_status walk_training(struct cm_expansion *x, struct cm_training_proto *entry)
{
    struct cm_graph_proto *const before[] = {entry->initialization, entry->algorithm};

    if (entry->initialization)
        CM_TRY(cm_expansion_walk_graph(x, replace_call, NULL, &entry->initialization));
    if (entry->algorithm)
        CM_TRY(cm_expansion_walk_graph(x, replace_call, NULL, &entry->algorithm));
    if (entry->initialization != before[0])
        cm_msg_set(&entry->msg, CM_TRAINING_INITIALIZATION);
    if (entry->algorithm != before[1])
        cm_msg_set(&entry->msg, CM_TRAINING_ALGORITHM);
    return CM_OK;
}

static enum cm_status inline_calls(struct cm_expansion *x)
{
    struct cm_model_proto *model = x->model;

    CM_TRY(cm_expansion_walk_graph(x, replace_call, NULL, &model->graph));
    for (size_t i = 0; i < model->training_info.count; i++)
        CM_TRY(walk_training(x, &model->training_info.items[i]));
    for (size_t i = 0; i < model->functions.count; i++) {
        struct cm_function_proto *function = &model->functions.items[i];
        bool changed;
        if (cm_expansion_picks(x, function->domain, function->name, true))
            continue; /* calls of it are gone, or converted with all that it calls */
        CM_TRY(cm_expansion_walk(x, replace_call, NULL, &function->node, &changed));
        if (changed)
            cm_msg_set(&function->msg, CM_FUNCTION_NODE);
    }
    return CM_OK;
}

static void note_uses(const struct cm_expansion *x, const struct cm_nodes *nodes,
                      struct cm_map *called, struct cm_map *domains)
{
    for (size_t n = 0; n < nodes->count; n++) {
        const struct cm_node_proto *node = &nodes->items[n];

        cm_map_insert(domains, x->arena, cm_domain_plain(node->domain), NULL);
        if (x->functions.count)
            cm_map_insert(called, x->arena, cm_call_key(x->arena, node), NULL);
        for (size_t a = 0; a < node->attribute.count; a++)
            if (node->attribute.items[a].g)
                note_uses(x, &node->attribute.items[a].g->node, called, domains);
    }
}

static bool is_imported_for(const struct cm_map *domains, const struct cm_map *gone,
                            struct cm_str domain)
{
    domain = cm_domain_plain(domain);
    return !domain.size || !cm_map_find(gone, domain) || cm_map_find(domains, domain);
}

/* Functions that were inlined everywhere go, and so do imports of domains that only they were of.
 */
static void drop_functions(struct cm_expansion *x)
{
    struct cm_model_proto *model = x->model;
    const struct cm_graph_proto *graph;
    struct cm_map called = {0}, domains = {0}, gone = {0};
    size_t kept = 0;

    if (!model->functions.count)
        return;
    for (size_t at = 0; (graph = cm_model_next_graph(model, &at));)
        note_uses(x, &graph->node, &called, &domains);
    for (size_t i = 0; i < model->functions.count; i++) {
        const struct cm_function_proto *f = &model->functions.items[i];
        if (!cm_expansion_picks(x, f->domain, f->name, true))
            note_uses(x, &f->node, &called, &domains);
    }
    for (size_t i = 0; i < model->functions.count; i++) {
        const struct cm_function_proto *f = &model->functions.items[i];
        if (cm_expansion_picks(x, f->domain, f->name, true) &&
            !cm_map_find(&called, cm_function_key(x->arena, f->domain, f->name, f->overload))) {
            cm_map_insert(&gone, x->arena, cm_domain_plain(f->domain), NULL);
            continue;
        }
        cm_map_insert(&domains, x->arena, cm_domain_plain(f->domain), NULL);
        model->functions.items[kept++] = *f;
    }
    x->report->functions = model->functions.count - kept;
    if (!x->report->functions)
        return;
    model->functions.count = kept;
    cm_msg_set(&model->msg, CM_MODEL_FUNCTIONS);
    CM_LIST_KEEP(model, CM_MODEL_OPSET_IMPORT, &model->opset_import,
                 is_imported_for(&domains, &gone, model->opset_import.items[i].domain));
}

static size_t count_nodes(const struct cm_nodes *nodes)
{
    size_t count = nodes->count;

    for (size_t n = 0; n < nodes->count; n++)
        for (size_t a = 0; a < nodes->items[n].attribute.count; a++)
            if (nodes->items[n].attribute.items[a].g)
                count += count_nodes(&nodes->items[n].attribute.items[a].g->node);
    return count;
}

static size_t count_model(const struct cm_model_proto *model)
{
    const struct cm_graph_proto *graph;
    size_t count = 0;

    for (size_t at = 0; (graph = cm_model_next_graph(model, &at));)
        count += count_nodes(&graph->node);
    return count;
}

/* A copy of what may be changed; items of lists are the copy's own. */
static struct cm_model_proto copy_model(struct cm_arena *arena, const struct cm_model_proto *from)
{
    struct cm_model_proto model = *from;

    CM_LIST_OWN(arena, &model.opset_import);
    CM_LIST_OWN(arena, &model.training_info);
    CM_LIST_OWN(arena, &model.functions);
    return model;
}

static void set_versions(struct cm_expansion *x)
{
    struct cm_model_proto *model = x->model;
    struct cm_expand_report *report = x->report;

    if (x->opset > report->opset_before) {
        cm_portable_label(x->arena, &model->opset_import, x->opset);
        cm_msg_set(&model->msg, CM_MODEL_OPSET_IMPORT);
        if (model->ir_version < cm_ir_of_opset(x->opset) && report->opset_before) {
            model->ir_version = cm_ir_of_opset(x->opset);
            cm_msg_set(&model->msg, CM_MODEL_IR_VERSION);
        }
    }
    report->opset = x->opset;
    report->ir = model->ir_version;
    report->raised_for = x->needed_by;
}

/* Until every node has a form under the opset. */
static enum cm_status expand_operators(struct cm_expansion *x)
{
    const struct cm_model_proto before = *x->model;
    struct cm_findings *const list = x->findings;
    const struct cm_expand_report so_far = *x->report;

    if (!x->opset)
        x->opset = CM_PORTABLE_OPSET;

    for (;;) {
        struct cm_findings found = {.arena = list->arena, .rule = list->rule, .what = list->what};
        *x->model = copy_model(x->arena, &before);
        *x->report = so_far;
        x->findings = &found;
        x->needed = x->opset;
        x->failed = false;
        CM_TRY(cm_expansion_operators(x));
        if (x->needed > x->opset) {
            x->opset = x->needed;
            continue;
        }
        *list = found;
        x->findings = list;
        return x->failed ? cm_findings_fail(list, x->err) : CM_OK;
    }
}

static enum cm_status begin(struct cm_expansion *x, struct cm_model_file *made)
{
    const struct cm_opset_proto *onnx = cm_opsets_find(&x->file->model.opset_import, CM_STR(""));

    if (!x->file->model.graph)
        return cm_fail(x->err, CM_BAD_MODEL, "the model has no graph");
    if (x->options->core && x->options->only)
        return cm_fail(x->err, CM_BAD_ARGUMENT, "only names cannot be expanded to core operators");
    *made = (struct cm_model_file){.arena = x->arena,
                                   .files = x->file->files,
                                   .path = x->file->path,
                                   .folder = x->file->folder,
                                   .model = copy_model(x->arena, &x->file->model)};
    x->model = &made->model;
    x->opset = onnx ? onnx->version : 0;
    *x->report = (struct cm_expand_report){.opset_before = x->opset,
                                           .ir_before = x->model->ir_version,
                                           .nodes_before = count_model(x->model)};
    x->functions = cm_functions_by_key(x->arena, &x->file->model);
    CM_TRY(read_names(x, x->options->only, "only", &x->only));
    CM_TRY(read_names(x, x->options->except, "except", &x->except));
    if (x->options->only && !x->only.count)
        return cm_fail(x->err, CM_BAD_ARGUMENT, "only: nothing is named");
    CM_TRY(measure_model(x));
    cm_splice_take_model(&x->splicer, x->model);
    return CM_OK;
}

enum cm_status cm_expand_model(const struct cm_model_file *file,
                               const struct cm_expand_options *options, struct cm_arena *arena,
                               struct cm_model_file **out, struct cm_expand_report *report,
                               struct cm_findings *findings, struct cm_error *err)
{
    struct cm_expansion x = {.arena = arena,
                             .options = options,
                             .registry =
                                 options->registry ? options->registry : cm_registry_builtin(),
                             .file = file,
                             .splicer = {.arena = arena},
                             .report = report,
                             .findings = findings,
                             .room = NODES_MAX,
                             .err = err};
    struct cm_model_file *made = CM_NEW(arena, struct cm_model_file);

    CM_TRY(begin(&x, made));
    CM_TRY(inline_calls(&x));
    const bool typed = cm_expansion_has_operators(&x);
    CM_TRY(refuse_unmet(&x, &x.only, "only"));
    CM_TRY(refuse_unmet(&x, &x.except, "except"));
    if (typed)
        CM_TRY(expand_operators(&x));
    drop_functions(&x);
    set_versions(&x);
    report->nodes = count_model(x.model);
    *out = made;
    return CM_OK;
}
