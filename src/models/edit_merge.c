/* Two models as one: outputs of the first feed inputs of the second. */
// SPDX-License-Identifier: Apache-2.0
#include "models/edit.h"

#include "graph/called_functions.h"
#include "graph/registry.h"
#include "onnx/descriptor.h"
#include "onnx/tensor_data.h"

#include <stdio.h>
#include <string.h>

enum { NAMED_MAX = 8 };

/* One of the two models: what its names become, and which it defines. */
struct side {
    struct cm_model_proto *model;
    struct cm_str prefix;
    struct cm_map connected; /* of the second: an input to 1 + its pair */
    struct cm_name_set outer,
        inner; /* new names that main and training graphs, or bodies, define */
    const struct cm_graph_proto *visited;
};

struct merge {
    struct side first, second;
    const struct cm_merge_options *options;
    struct cm_arena *scratch;
    struct cm_findings *findings;
};

static struct cm_str prefixed(struct cm_arena *arena, struct cm_str prefix, struct cm_str name)
{
    if (!prefix.size || !name.size)
        return name;
    char *text = cm_arena_alloc(arena, prefix.size + name.size + 1);
    memcpy(text, prefix.data, prefix.size);
    memcpy(text + prefix.size, name.data, name.size);
    return (struct cm_str){text, prefix.size + name.size};
}

/* ---- what stands in the way ---- */

static void check_pair(struct merge *m, const struct cm_merge_pair *pair)
{
    const struct cm_value_info_proto *output =
        cm_value_infos_find(&m->first.model->graph->output, pair->output);
    const struct cm_value_info_proto *input =
        cm_value_infos_find(&m->second.model->graph->input, pair->input);
    struct cm_symbols *symbols = cm_symbols_new(m->scratch);
    const struct cm_type *a, *b;

    if (!output)
        cm_findings_refuse(m->findings, "the first model has no output '%.*s'",
                           CM_STR_FMT(pair->output));
    if (!input)
        cm_findings_refuse(m->findings, "the second model has no input '%.*s'",
                           CM_STR_FMT(pair->input));
    if (!output || !input || !output->type || !input->type ||
        cm_type_from_proto(m->scratch, symbols, output->type, &a, NULL) != CM_OK ||
        cm_type_from_proto(m->scratch, symbols, input->type, &b, NULL) != CM_OK ||
        cm_type_meet(m->scratch, a, b))
        return;
    cm_findings_refuse(m->findings, "output '%.*s' is %.*s, but input '%.*s' is %.*s",
                       CM_STR_FMT(pair->output), CM_STR_FMT(cm_type_print(m->scratch, symbols, a)),
                       CM_STR_FMT(pair->input), CM_STR_FMT(cm_type_print(m->scratch, symbols, b)));
}

static void check_map(struct merge *m)
{
    for (size_t i = 0; i < m->options->n_map; i++) {
        const struct cm_merge_pair *pair = &m->options->map[i];
        bool added;
        *cm_map_insert(&m->second.connected, m->scratch, pair->input, &added) = i + 1;
        if (!added)
            cm_findings_refuse(m->findings, "input '%.*s' is connected twice",
                               CM_STR_FMT(pair->input));
        check_pair(m, pair);
    }
}

struct definer {
    struct merge *m;
    struct side *side;
};

static void define_name(void *arg, struct cm_str name)
{
    const struct definer *d = arg;
    const struct side *side = d->side;

    if (cm_map_find(&side->connected, name))
        return;
    cm_name_set_add(side->visited ? &d->side->inner : &d->side->outer,
                    prefixed(d->m->scratch, side->prefix, name));
}

static enum cm_status define_graph(void *arg, const struct cm_message_info *info,
                                   struct cm_msg *msg)
{
    struct definer *d = arg;

    if (info == &cm_graph_info) {
        cm_graph_each_defined((const struct cm_graph_proto *)(const void *)msg, define_name, d);
        d->side->visited = (const struct cm_graph_proto *)(const void *)msg;
    }
    return CM_OK;
}

static enum cm_status define_side(struct merge *m, struct side *side)
{
    struct definer d = {m, side};
    struct cm_graph_proto *graph;

    side->outer.arena = side->inner.arena = m->scratch;
    for (size_t at = 0; (graph = cm_model_next_graph(side->model, &at));) {
        side->visited = NULL; /* the graph itself comes first, then those inside it */
        CM_TRY(cm_message_walk(&cm_graph_info, graph, define_graph, &d));
    }
    return CM_OK;
}

/* Names of a set that another has too, in one list that is cut. */
static size_t list_common(const struct cm_name_set *a, const struct cm_name_set *b, size_t before,
                          char *text, size_t room)
{
    for (size_t i = 0; i < a->count; i++) {
        if (!cm_name_set_has(b, a->items[i]))
            continue;
        if (before++ < NAMED_MAX) {
            const size_t used = strlen(text);
            snprintf(text + used, room - used, "%s'%.*s'", used ? ", " : "",
                     CM_STR_FMT(a->items[i]));
        }
    }
    return before;
}

static void check_clashes(struct merge *m)
{
    char text[NAMED_MAX * 210] = "";
    size_t count = list_common(&m->second.outer, &m->first.outer, 0, text, sizeof text);

    count = list_common(&m->second.outer, &m->first.inner, count, text, sizeof text);
    count = list_common(&m->second.inner, &m->first.outer, count, text, sizeof text);
    if (count > NAMED_MAX)
        cm_findings_refuse(m->findings,
                           "both models have values called %.700s and %zu more: give one of them a "
                           "prefix",
                           text, count - NAMED_MAX);
    else if (count)
        cm_findings_refuse(m->findings,
                           "both models have %s called %.700s: give one of them a prefix",
                           count == 1 ? "a value" : "values", text);
}

static const struct cm_opset_proto *find_opset(const struct cm_opsets *list, struct cm_str domain)
{
    for (size_t i = 0; i < list->count; i++)
        if (cm_str_equal(cm_domain_plain(list->items[i].domain), cm_domain_plain(domain)))
            return &list->items[i];
    return NULL;
}

static void check_opsets(struct merge *m)
{
    const struct cm_opsets *a = &m->first.model->opset_import, *b = &m->second.model->opset_import;

    for (size_t i = 0; i < b->count; i++) {
        const struct cm_opset_proto *other = find_opset(a, b->items[i].domain);
        const struct cm_str domain = cm_domain_plain(b->items[i].domain);
        if (!other || other->version == b->items[i].version)
            continue;
        const bool first_is_older = other->version < b->items[i].version;
        cm_findings_refuse(m->findings,
                           "the models import different versions of %.*s, %lld and %lld: bring the "
                           "%s to the newer one with 'cameo upgrade'",
                           CM_STR_FMT(domain.size ? domain : CM_STR("ai.onnx")),
                           (long long)other->version, (long long)b->items[i].version,
                           first_is_older ? "first" : "second");
    }
}

static void check_metadata(struct merge *m, const struct cm_entries *a, const struct cm_entries *b,
                           const char *whose)
{
    for (size_t i = 0; i < b->count; i++) {
        const struct cm_entry_proto *other = cm_entries_get(a, b->items[i].key);
        if (other && !cm_str_equal(other->value, b->items[i].value))
            cm_findings_refuse(
                m->findings,
                "metadata '%.*s' of the %s is '%.*s' in the first model and '%.*s' in "
                "the second",
                CM_STR_FMT(other->key), whose, CM_STR_FMT(other->value),
                CM_STR_FMT(b->items[i].value));
    }
}

/* ---- functions ---- */

static void list_functions(struct merge *m, const struct side *side, struct cm_map *out)
{
    for (size_t i = 0; i < side->model->functions.count; i++) {
        const struct cm_function_proto *f = &side->model->functions.items[i];
        *cm_map_insert(out, m->scratch,
                       cm_function_key(m->scratch, f->domain,
                                       prefixed(m->scratch, side->prefix, f->name), f->overload),
                       NULL) = i + 1;
    }
}

/* A function that both have in the same words is kept once. Under a prefix, none is in both unless
 * the prefixes make it so. */
static bool *common_functions(struct merge *m)
{
    const size_t count = m->second.model->functions.count;
    struct cm_map of_first = {0};
    bool *common = CM_NEW_ARRAY(m->scratch, bool, count);

    list_functions(m, &m->first, &of_first);
    for (size_t i = 0; i < count; i++) {
        const struct cm_function_proto *g = &m->second.model->functions.items[i];
        const uint64_t other = cm_map_get(
            &of_first,
            cm_function_key(m->scratch, g->domain, prefixed(m->scratch, m->second.prefix, g->name),
                            g->overload),
            0);
        if (!other)
            continue;
        const struct cm_function_proto *f = &m->first.model->functions.items[other - 1];
        common[i] = cm_message_equal(&cm_function_info, f, g, m->scratch, NULL);
        if (!common[i])
            cm_findings_refuse(
                m->findings,
                "both models have a function '%.*s', and they differ: give one of the "
                "models a prefix",
                CM_STR_FMT(g->name));
    }
    return common;
}

struct callee_prefix {
    struct merge *m;
    const struct side *side;
    struct cm_map functions; /* under their old names */
};

static enum cm_status prefix_call(void *arg, const struct cm_message_info *info, struct cm_msg *msg)
{
    const struct callee_prefix *p = arg;
    void *any = msg;
    struct cm_node_proto *node = any;

    if (info != &cm_node_info || !cm_map_find(&p->functions, cm_call_key(p->m->scratch, node)))
        return CM_OK;
    node->op_type = prefixed(p->m->findings->arena, p->side->prefix, node->op_type);
    cm_msg_set(msg, CM_NODE_OP_TYPE);
    return CM_OK;
}

static enum cm_status prefix_functions(struct merge *m, struct side *side)
{
    struct callee_prefix p = {.m = m, .side = side};

    if (!side->prefix.size || !side->model->functions.count)
        return CM_OK;
    p.functions = cm_functions_by_key(m->scratch, side->model);
    CM_TRY(cm_message_walk(&cm_model_info, side->model, prefix_call, &p));
    for (size_t i = 0; i < side->model->functions.count; i++) {
        struct cm_function_proto *f = &side->model->functions.items[i];
        f->name = prefixed(m->findings->arena, side->prefix, f->name);
        cm_msg_set(&f->msg, CM_FUNCTION_NAME);
    }
    return CM_OK;
}

/* ---- joining ---- */

static bool rename_value(void *arg, struct cm_str *name)
{
    const struct definer *d = arg;
    const uint64_t pair = cm_map_get(&d->side->connected, *name, 0);
    const struct cm_str to = pair ? prefixed(d->m->findings->arena, d->m->first.prefix,
                                             d->m->options->map[pair - 1].output)
                                  : prefixed(d->m->findings->arena, d->side->prefix, *name);

    if (cm_str_equal(to, *name))
        return false;
    *name = to;
    return true;
}

static enum cm_status rename_node(void *arg, const struct cm_message_info *info, struct cm_msg *msg)
{
    const struct definer *d = arg;
    void *any = msg;
    struct cm_node_proto *node = any;

    if (info == &cm_node_info && node->name.size) {
        node->name = prefixed(d->m->findings->arena, d->side->prefix, node->name);
        cm_msg_set(msg, CM_NODE_NAME);
    }
    return CM_OK;
}

static enum cm_status rename_side(struct merge *m, struct side *side)
{
    struct definer d = {m, side};
    struct cm_graph_proto *graph;

    CM_TRY(prefix_functions(m, side));
    CM_TRY(cm_edit_model_names(side->model, rename_value, &d));
    if (!side->prefix.size)
        return CM_OK;
    for (size_t at = 0; (graph = cm_model_next_graph(side->model, &at));)
        CM_TRY(cm_message_walk(&cm_graph_info, graph, rename_node, &d));
    return CM_OK;
}

/* Appends the items of `from`, those for which test (in which i counts) is true. */
#define APPEND_WHERE(m, owner, field, to, from, test)                                              \
    do {                                                                                           \
        (to)->items = cm_list_extended_by((m)->findings->arena, (to)->items, (to)->count,          \
                                          (from)->count, sizeof *(to)->items);                     \
        const size_t before_ = (to)->count;                                                        \
        for (size_t i = 0; i < (from)->count; i++)                                                 \
            if (test)                                                                              \
                (to)->items[(to)->count++] = (from)->items[i];                                     \
        if ((to)->count > before_)                                                                 \
            cm_msg_set(owner, field);                                                              \
    } while (0)

/* Names were changed already: connected inputs are told by the names that they have now. */
static void join_values(struct merge *m, const struct cm_name_set *fed, const bool *was_connected)
{
    struct cm_graph_proto *a = m->first.model->graph, *b = m->second.model->graph;
    struct cm_value_infos hidden = {0};
    struct cm_name_set known = {.arena = m->scratch};
    size_t kept = 0;

    APPEND_WHERE(m, &a->msg, CM_GRAPH_INPUT, &a->input, &b->input, !was_connected[i]);
    APPEND_WHERE(m, &a->msg, CM_GRAPH_INITIALIZER, &a->initializer, &b->initializer,
                 !cm_name_set_has(fed, b->initializer.items[i].name));
    APPEND_WHERE(m, &a->msg, CM_GRAPH_SPARSE_INITIALIZER, &a->sparse_initializer,
                 &b->sparse_initializer,
                 !b->sparse_initializer.items[i].values ||
                     !cm_name_set_has(fed, b->sparse_initializer.items[i].values->name));
    APPEND_WHERE(m, &a->msg, CM_GRAPH_VALUE_INFO, &a->value_info, &b->value_info,
                 !cm_name_set_has(fed, b->value_info.items[i].name));
    APPEND_WHERE(m, &a->msg, CM_GRAPH_QUANTIZATION_ANNOTATION, &a->quantization_annotation,
                 &b->quantization_annotation,
                 !cm_name_set_has(fed, b->quantization_annotation.items[i].tensor_name));
    for (size_t i = 0; i < a->value_info.count; i++)
        cm_name_set_add(&known, a->value_info.items[i].name);
    for (size_t i = 0; i < b->output.count; i++)
        cm_name_set_add(&known, b->output.items[i].name);
    hidden.items = CM_NEW_ARRAY(m->scratch, struct cm_value_info_proto, a->output.count);
    for (size_t i = 0; i < a->output.count; i++) {
        if (!cm_name_set_has(fed, a->output.items[i].name))
            a->output.items[kept++] = a->output.items[i];
        else if (!cm_name_set_has(&known, a->output.items[i].name))
            hidden.items[hidden.count++] = a->output.items[i];
    }
    a->output.count = kept;
    if (fed->count)
        cm_msg_set(&a->msg, CM_GRAPH_OUTPUT);
    APPEND_WHERE(m, &a->msg, CM_GRAPH_VALUE_INFO, &a->value_info, &hidden, true);
    APPEND_WHERE(m, &a->msg, CM_GRAPH_OUTPUT, &a->output, &b->output, true);
    if (!a->output.count)
        cm_msg_clear(&a->msg, CM_GRAPH_OUTPUT);
}

static void join_model(struct merge *m, const bool *common)
{
    struct cm_model_proto *a = m->first.model, *b = m->second.model;

    APPEND_WHERE(m, &a->graph->msg, CM_GRAPH_NODE, &a->graph->node, &b->graph->node, true);
    APPEND_WHERE(m, &a->graph->msg, CM_GRAPH_METADATA_PROPS, &a->graph->metadata_props,
                 &b->graph->metadata_props,
                 !cm_entries_get(&a->graph->metadata_props, b->graph->metadata_props.items[i].key));
    APPEND_WHERE(m, &a->msg, CM_MODEL_OPSET_IMPORT, &a->opset_import, &b->opset_import,
                 !find_opset(&a->opset_import, b->opset_import.items[i].domain));
    APPEND_WHERE(m, &a->msg, CM_MODEL_METADATA_PROPS, &a->metadata_props, &b->metadata_props,
                 !cm_entries_get(&a->metadata_props, b->metadata_props.items[i].key));
    APPEND_WHERE(m, &a->msg, CM_MODEL_TRAINING_INFO, &a->training_info, &b->training_info, true);
    APPEND_WHERE(m, &a->msg, CM_MODEL_FUNCTIONS, &a->functions, &b->functions, !common[i]);
    APPEND_WHERE(m, &a->msg, CM_MODEL_CONFIGURATION, &a->configuration, &b->configuration, true);
    if (b->ir_version > a->ir_version) {
        cm_findings_note(m->findings, "the IR version is %lld, that of the second model",
                         (long long)b->ir_version);
        a->ir_version = b->ir_version;
        cm_msg_set(&a->msg, CM_MODEL_IR_VERSION);
    }
    a->graph->name = cm_arena_printf(m->findings->arena, "%.*s_%.*s", CM_STR_FMT(a->graph->name),
                                     CM_STR_FMT(b->graph->name));
    cm_msg_set(&a->graph->msg, CM_GRAPH_NAME);
}

/* Values in files of another folder are taken from where they are. */
struct adoption {
    struct cm_external_files *files;
    struct cm_error *err;
};

static enum cm_status adopt(void *arg, struct cm_tensor_proto *proto)
{
    const struct adoption *from = arg;
    struct cm_tensor tensor;
    bool aligned;

    if (proto->data_location != CM_LOCATION_EXTERNAL)
        return CM_OK;
    CM_TRY(cm_tensor_proto_view(proto, from->files, &tensor, &aligned, from->err));
    cm_tensor_proto_replace(proto, &tensor, NULL);
    return CM_OK;
}

enum cm_status cm_edit_merge(struct cm_model_file *file, struct cm_model_file *second,
                             const struct cm_merge_options *options, struct cm_arena *scratch,
                             struct cm_findings *findings, struct cm_error *err)
{
    struct merge m = {.first = {.model = &file->model, .prefix = options->prefix1},
                      .second = {.model = &second->model, .prefix = options->prefix2},
                      .options = options,
                      .scratch = scratch,
                      .findings = findings};
    struct cm_name_set fed = {.arena = scratch};

    if (!file->model.graph || !second->model.graph)
        return cm_fail(err, CM_BAD_MODEL, "a model has no graph");
    check_map(&m);
    CM_TRY(define_side(&m, &m.first));
    CM_TRY(define_side(&m, &m.second));
    check_clashes(&m);
    check_opsets(&m);
    check_metadata(&m, &file->model.metadata_props, &second->model.metadata_props, "model");
    check_metadata(&m, &file->model.graph->metadata_props, &second->model.graph->metadata_props,
                   "graph");
    const bool *common = common_functions(&m);
    CM_TRY(cm_findings_fail(findings, err));
    if (!cm_str_equal(file->folder, second->folder))
        CM_TRY(cm_model_each_tensor(&second->model, adopt, &(struct adoption){second->files, err}));
    bool *was_connected = CM_NEW_ARRAY(scratch, bool, second->model.graph->input.count);
    for (size_t i = 0; i < second->model.graph->input.count; i++)
        was_connected[i] =
            cm_map_find(&m.second.connected, second->model.graph->input.items[i].name) != NULL;
    for (size_t i = 0; i < options->n_map; i++)
        cm_name_set_add(&fed, prefixed(scratch, options->prefix1, options->map[i].output));
    CM_TRY(rename_side(&m, &m.first));
    CM_TRY(rename_side(&m, &m.second));
    join_values(&m, &fed, was_connected);
    join_model(&m, common);
    return CM_OK;
}
