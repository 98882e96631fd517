/* How each node is written, the functions that takes, and the model around them. */
// SPDX-License-Identifier: Apache-2.0
#include "models/write_model.h"

#include "base/array.h"
#include "graph/called_functions.h"
#include "graph/function.h"
#include "graph/import.h"
#include "graph/registry.h"
#include "models/feed_draws.h"
#include "models/kept_parts.h"
#include "onnx/encode.h"
#include "rewrite/pass.h"
#include "versions/older_forms.h"
#include "versions/portable.h"
#include "versions/upgrade.h"

enum { IR_OF_FUNCTIONS = 8, NAMED_OPERATORS = 5 };

struct writer {
    struct cm_arena *arena;
    const struct cm_graph *graph;
    const struct cm_write_options *options;
    struct cm_opsets targets; /* the versions to write under; domains not listed: any */
    struct cm_str raised_for; /* the node that the last raise was for */
    struct cm_map by_body;    /* the bytes of a function without name: its number, from 1 */
    struct cm_map taken;      /* names of functions in our domain */
    size_t copies;            /* nodes that give outputs their names */
    CM_ARRAY(struct cm_function_proto) functions;
};

static bool is_region(const struct cm_node *node)
{
    return node->op && node->op->effects & CM_REGION;
}

/* Operators that others do not know. */
static bool is_foreign(struct cm_str domain)
{
    return cm_str_is(domain, "ai.cameo") || cm_str_starts(domain, "ai.onnx.preview");
}

static int64_t target(const struct writer *w, struct cm_str domain)
{
    return cm_opsets_version(&w->targets, domain);
}

/* ---- how a node is written ---- */

enum way {
    AS_IT_CAME,
    AS_A_GROUP_CAME,
    AS_IT_STANDS,
    IN_AN_OLDER_FORM,
    AS_A_CALL,
    IN_NO_WAY,
};

/* Does the node mean under `version` of its domain what it meant in the file? */
static bool origin_holds(const struct cm_node *node, int64_t version)
{
    return cm_operator_means_same(cm_module_registry(node->module), node->domain, node->op_type,
                                  node->original_version, version);
}

/* Is the node one of several that an upgrade made of one, which can be written as that one? */
static bool fits_as_a_group(const struct writer *w, const struct cm_node *node)
{
    const struct cm_registry *registry = cm_module_registry(node->module);
    const struct cm_node *first;

    if (!w->options->untouched || !cm_node_in_group(node, &first))
        return false;
    const struct cm_origin *origin = node->origin;
    const struct cm_str domain = cm_domain_plain(origin->proto->domain);
    const struct cm_str op_type = origin->proto->op_type;
    const int64_t version = target(w, domain);
    const struct cm_schema *schema =
        version ? cm_registry_schema(registry, domain, op_type, version) : NULL;
    return schema ? schema->since_version == origin->version /* a deprecated one too */
                        || (origin->version && cm_operator_means_same(registry, domain, op_type,
                                                                      origin->version, version))
                  : !origin->version || !version;
}

/* Was the node brought here by upgrades that change no node? Then what it is now can be held
 * against the version it is to be written in, with the types it has now. */
static bool is_unchanged(const struct cm_node *node)
{
    return origin_holds(node, node->schema->since_version);
}

static bool fits_as_it_came(const struct cm_node *node, int64_t version)
{
    return cm_node_has_origin(node) && origin_holds(node, version) &&
           (!is_unchanged(node) || cm_portable_version(node, version) <= version);
}

static void find_form(const struct cm_node *node, struct cm_node_form *form)
{
    *form = (struct cm_node_form){.n_inputs = (size_t)node->n_inputs,
                                  .attributes = node->attributes,
                                  .n_attributes = node->n_attributes};
}

static bool can_write(struct writer *w, const struct cm_graph *graph, int depth);

/* node->instance, as simple as it gets. */
static enum cm_status instantiate(struct writer *w, struct cm_node *node, struct cm_error *err)
{
    if (node->instance)
        return CM_OK;
    CM_TRY(cm_node_instantiate(node, err));
    return w->options->tidy ? w->options->tidy(w->options->tidy_arg, node->instance, true, err)
                            : CM_OK;
}

/* Is there a body, of which all can be written? */
static bool can_call(struct writer *w, struct cm_node *node, int depth)
{
    struct cm_error ignored = {0};

    return !w->options->portable && depth < CM_CALL_DEPTH && cm_node_has_function(node) &&
           instantiate(w, node, &ignored) == CM_OK && can_write(w, node->instance, depth + 1);
}

static enum way choose(struct writer *w, struct cm_node *node, int depth)
{
    const int64_t version = target(w, node->domain);
    struct cm_node_form form;

    if (is_region(node))
        return AS_A_CALL;
    if (fits_as_a_group(w, node))
        return AS_A_GROUP_CAME;
    if (node->function || !node->schema || !version)
        return cm_node_has_origin(node) ? AS_IT_CAME : AS_IT_STANDS;
    if (fits_as_it_came(node, version))
        return AS_IT_CAME;
    if (cm_portable_version(node, version) <= version)
        return AS_IT_STANDS;
    find_form(node, &form);
    if (cm_older_form(node, version, w->arena, &form))
        return IN_AN_OLDER_FORM;
    return can_call(w, node, depth) ? AS_A_CALL : IN_NO_WAY;
}

static bool can_write(struct writer *w, const struct cm_graph *graph, int depth)
{
    for (struct cm_node *node = NULL; (node = cm_graph_next_node(graph, node));)
        if (choose(w, node, depth) == IN_NO_WAY)
            return false;
    return true;
}

/* Raises the versions that nodes cannot do without; true where one was. */
static bool raise_targets(struct writer *w, const struct cm_graph *graph)
{
    bool raised = false;

    for (struct cm_node *node = NULL; (node = cm_graph_next_node(graph, node));) {
        if (choose(w, node, 0) != IN_NO_WAY)
            continue;
        struct cm_opset_proto *import = cm_opsets_find(&w->targets, node->domain);
        import->version = cm_portable_version(node, import->version);
        if (!node->domain.size)
            w->raised_for = cm_arena_str(w->arena, cm_str(cm_node_describe(node).text));
        raised = true;
    }
    return raised;
}

/* ---- functions ---- */

static void set_text(struct cm_msg *msg, int field, struct cm_str *member, struct cm_str text)
{
    *member = text;
    cm_msg_set(msg, field);
}

/* "Mul_Add_Relu": the operators of a body, the first of them where there are many. */
static struct cm_str name_body(struct writer *w, const struct cm_graph *body)
{
    struct cm_str name = CM_STR_NONE;
    size_t count = 0;

    for (const struct cm_node *node = body->first; node && count < NAMED_OPERATORS;
         node = node->next, count++)
        name = cm_arena_printf(w->arena, "%.*s%s%.*s", CM_STR_FMT(name), count ? "_" : "",
                               CM_STR_FMT(node->op_type));
    if (body->n_nodes > count)
        name =
            cm_arena_printf(w->arena, "%.*s_and_%zu_more", CM_STR_FMT(name), body->n_nodes - count);
    return name;
}

static struct cm_str free_name(struct writer *w, struct cm_str wanted)
{
    struct cm_str name = wanted;
    bool added = false;

    for (size_t n = 2;; n++) {
        cm_map_insert(&w->taken, w->arena, name, &added);
        if (added)
            return name;
        name = cm_arena_printf(w->arena, "%.*s_%zu", CM_STR_FMT(wanted), n);
    }
}

static cm_form_fn form_of;

/* The name of the function that is body; the first body of its kind is written. */
static enum cm_status call_body(struct writer *w, const struct cm_graph *body, struct cm_str wanted,
                                struct cm_str *name, struct cm_error *err)
{
    const struct cm_export_options options = {.form = form_of, .form_arg = w};
    const int64_t opset = target(w, CM_STR(""));
    struct cm_function_proto function = {0};
    struct cm_str bytes;

    CM_TRY(cm_graph_export_function(body, w->arena, &options, opset, &function, err));
    CM_TRY(cm_encode(&cm_function_info, &function, w->arena, &bytes, err));
    uint64_t *number = cm_map_insert(&w->by_body, w->arena, bytes, NULL);
    if (!*number) {
        set_text(&function.msg, CM_FUNCTION_NAME, &function.name, free_name(w, wanted));
        set_text(&function.msg, CM_FUNCTION_DOMAIN, &function.domain, CM_STR(CM_FUNCTIONS_DOMAIN));
        *CM_PUSH(w->arena, &w->functions) = function;
        *number = w->functions.count;
    }
    *name = w->functions.items[*number - 1].name;
    return CM_OK;
}

/* A call gives what the body needs and takes what it gives: nothing that is absent. */
static void leave_out_absent(struct writer *w, struct cm_node_form *form)
{
    cm_value *inputs = CM_NEW_ARRAY(w->arena, cm_value, form->n_inputs);
    cm_value *outputs = CM_NEW_ARRAY(w->arena, cm_value, form->n_outputs);
    size_t n_in = 0, n_out = 0;

    for (size_t i = 0; i < form->n_inputs; i++)
        if (form->inputs[i])
            inputs[n_in++] = form->inputs[i];
    for (size_t o = 0; o < form->n_outputs; o++)
        if (form->outputs[o])
            outputs[n_out++] = form->outputs[o];
    form->inputs = inputs;
    form->outputs = outputs;
    form->n_inputs = n_in;
    form->n_outputs = n_out;
}

static enum cm_status form_call(struct writer *w, const struct cm_node *node,
                                struct cm_node_form *form, struct cm_error *err)
{
    const bool region = is_region(node);
    const struct cm_graph *body = region ? node->bodies[0].graph : node->instance;

    CM_TRY(call_body(w, body, region ? name_body(w, body) : node->op_type, &form->op_type, err));
    form->domain = CM_STR(CM_FUNCTIONS_DOMAIN);
    form->overload = CM_STR_NONE;
    form->version = 1;
    form->n_attributes = 0;
    form->without_bodies = true;
    if (!region)
        leave_out_absent(w, form);
    return CM_OK;
}

/* The file's operands and results as they are now; what was an attribute there is none. */
static void form_origin(struct writer *w, const struct cm_node *node, struct cm_node_form *form)
{
    const struct cm_node_proto *origin = node->origin->proto;
    const bool is_group = node->origin->n_nodes > 0;
    size_t n_out = origin->output.count;

    for (int o = (int)n_out; !is_group && o < node->n_outputs; o++)
        if (node->outputs[o] && cm_value_get(node->module, node->outputs[o])->n_uses)
            n_out = (size_t)o + 1;
    cm_value *inputs = CM_NEW_ARRAY(w->arena, cm_value, origin->input.count);
    cm_value *outputs = CM_NEW_ARRAY(w->arena, cm_value, n_out);
    for (size_t i = 0; i < origin->input.count; i++)
        inputs[i] = cm_origin_operand(node, i);
    for (size_t o = 0; o < n_out; o++)
        outputs[o] = cm_origin_result(node, o);
    form->inputs = inputs;
    form->n_inputs = origin->input.count;
    form->outputs = outputs;
    form->n_outputs = n_out;
    form->origin = origin;
    form->n_nodes = node->origin->n_nodes;
}

/* The version that the operator of a group's origin is written under. */
static int64_t group_version(const struct writer *w, const struct cm_origin *origin)
{
    const int64_t version = target(w, cm_domain_plain(origin->proto->domain));

    return version ? version : origin->version;
}

static enum cm_status form_of(void *arg, const struct cm_node *node, struct cm_node_form *form,
                              struct cm_error *err)
{
    struct writer *w = arg;
    const int64_t version = target(w, node->domain);

    if (version)
        form->version = version;
    switch (choose(w, (struct cm_node *)(uintptr_t)node, 0)) { /* all it makes was made before */
    case AS_IT_CAME:
        form_origin(w, node, form);
        return CM_OK;
    case AS_A_GROUP_CAME:
        form_origin(w, node, form);
        form->version = group_version(w, node->origin);
        return CM_OK;
    case AS_IT_STANDS:
        return CM_OK;
    case IN_AN_OLDER_FORM:
        (void)cm_older_form(node, version, w->arena, form);
        return CM_OK;
    case AS_A_CALL:
        return form_call(w, node, form, err);
    case IN_NO_WAY:
        break;
    }
    return cm_fail(err, CM_UNSUPPORTED, "%s cannot be written under opset %lld",
                   cm_node_describe(node).text, (long long)version);
}

/* ---- portable graphs ---- */

static bool must_go(const struct cm_node *node)
{
    return is_region(node) || node->function || is_foreign(node->domain);
}

static enum cm_status inline_foreign(struct writer *w, struct cm_graph *graph, struct cm_error *err)
{
    struct cm_node *node = graph->first;

    while (node) {
        struct cm_node *before = node->prev;
        const bool must = must_go(node);
        if ((must || choose(w, node, 0) == IN_NO_WAY) && cm_node_has_function(node)) {
            const enum cm_status status = cm_graph_inline(node, err);
            if (status && status != CM_UNSUPPORTED)
                return status;
            if (!status) {
                node = before ? before->next : graph->first;
                continue;
            }
        }
        for (size_t b = 0; b < node->n_bodies; b++)
            if (node->bodies[b].graph)
                CM_TRY(inline_foreign(w, node->bodies[b].graph, err));
        node = node->next;
    }
    return CM_OK;
}

struct left {
    struct cm_arena *arena;
    bool feeds_draws;
    struct cm_str list;
    size_t count;
};

enum { LEFT_TOLD = 20 };

static void list_left(struct left *left, const struct cm_graph *graph)
{
    for (const struct cm_node *node = NULL; (node = cm_graph_next_node(graph, node));) {
        const bool draws = node->graph != graph && left->feeds_draws && cm_node_draws(node);

        if ((draws || must_go(node)) && left->count++ < LEFT_TOLD)
            left->list = cm_arena_printf(
                left->arena, "%.*s%s%s%s", CM_STR_FMT(left->list), left->list.size ? "; " : "",
                cm_node_describe(node).text,
                draws ? " (random inside a body, where its draws cannot be fed)" : "");
    }
}

static enum cm_status make_portable(struct writer *w, struct cm_graph *graph, struct cm_error *err)
{
    struct left left = {.arena = w->arena, .feeds_draws = w->options->feeds_draws};

    CM_TRY(inline_foreign(w, graph, err));
    cm_graph_remove_dead(graph);
    if (w->options->tidy)
        CM_TRY(w->options->tidy(w->options->tidy_arg, graph, false, err));
    list_left(&left, graph);
    if (left.count)
        return cm_fail(err, CM_UNSUPPORTED, "%zu node%s no form of standard operators: %.*s",
                       left.count, left.count == 1 ? " has" : "s have", CM_STR_FMT(left.list));
    return w->options->feeds_draws ? cm_feed_draws(graph, err) : CM_OK;
}

/* ---- counting ---- */

static size_t count_nodes(struct writer *w, const struct cm_graph *graph, bool inlined, int depth)
{
    size_t count = 0;

    for (struct cm_node *node = graph->first; node; node = node->next) {
        if (is_region(node)) {
            count += inlined ? count_nodes(w, node->bodies[0].graph, true, depth) : 1;
            continue;
        }
        if (inlined && !w->options->portable && depth < CM_CALL_DEPTH &&
            choose(w, node, depth) == AS_A_CALL) {
            count += count_nodes(w, node->instance, true, depth + 1);
            continue;
        }
        count++;
        for (size_t b = 0; b < node->n_bodies; b++)
            if (node->bodies[b].graph)
                count += count_nodes(w, node->bodies[b].graph, inlined, depth);
    }
    return count;
}

/* ---- the file ---- */

/* What the file imports, ai.onnx no older than what new nodes are written for. */
static void set_targets(struct writer *w, const struct cm_opsets *imports)
{
    for (size_t i = 0; i < imports->count; i++)
        *CM_LIST_ADD(w->arena, &w->targets) = imports->items[i];
    struct cm_opset_proto *onnx = cm_opsets_find(&w->targets, CM_STR(""));
    if (!onnx)
        onnx = CM_LIST_ADD(w->arena, &w->targets);
    if (onnx->version < CM_PORTABLE_OPSET)
        onnx->version = CM_PORTABLE_OPSET;
}

/* Outputs keep the names that the file gives them, whatever their values are called by now. */
static void name_outputs(struct writer *w, const struct cm_value_infos *written,
                         struct cm_graph_proto *out)
{
    struct cm_map given = {0}; /* a file may list an output twice */

    for (size_t o = 0; o < out->output.count; o++)
        if (cm_str_equal(written->items[o].name, out->output.items[o].name))
            cm_map_insert(&given, w->arena, written->items[o].name, NULL);
    if (given.count == out->output.count)
        return;
    out->node.items = cm_list_extended_by(w->arena, out->node.items, out->node.count,
                                          out->output.count, sizeof *out->node.items);
    for (size_t o = 0; o < out->output.count; o++) {
        if (!cm_map_add(&given, w->arena, out->output.items[o].name))
            continue;
        out->node.items[out->node.count++] =
            cm_identity_proto(w->arena, written->items[o].name, out->output.items[o].name);
        w->copies++;
    }
}

/* The file's graph with the nodes and constants of the working one; from NULL: that alone. */
static enum cm_status write_graph(struct writer *w, const struct cm_graph_proto *from,
                                  struct cm_opsets *imports, struct cm_graph_proto **out,
                                  struct cm_error *err)
{
    const struct cm_export_options options = {form_of, w, from ? &from->output : NULL};
    struct cm_graph_proto fresh = {0}, *graph = CM_NEW(w->arena, struct cm_graph_proto);

    CM_TRY(cm_graph_export(w->graph, w->arena, &options, &fresh, imports, err));
    *out = graph;
    if (!from) {
        *graph = fresh;
        return CM_OK;
    }
    if (fresh.output.count != from->output.count)
        return cm_fail(err, CM_BAD_ARGUMENT, "the graph has %zu outputs, the file's %zu",
                       fresh.output.count, from->output.count);
    *graph = *from;
    graph->node = fresh.node;
    graph->initializer.items = fresh.initializer.items;
    graph->initializer.count = fresh.initializer.count;
    cm_msg_set(&graph->msg, CM_GRAPH_NODE);
    cm_msg_set(&graph->msg, CM_GRAPH_INITIALIZER);
    if (graph->sparse_initializer.count) { /* they became nodes of the working graph */
        graph->sparse_initializer.count = 0;
        cm_msg_set(&graph->msg, CM_GRAPH_SPARSE_INITIALIZER);
    }
    name_outputs(w, &fresh.output, graph);
    cm_keep_what_holds(w->graph, w->arena, graph);
    return CM_OK;
}

/* ---- the model's own functions ---- */

/* Those that are called, then those made here. */
static void write_functions(struct writer *w, const struct cm_model_proto *from,
                            struct cm_model_proto *model)
{
    const size_t all = from->functions.count;
    const bool *keep = cm_called_functions(w->arena, from, &model->graph->node);
    size_t count = 0;

    model->functions.items =
        CM_NEW_ARRAY(w->arena, struct cm_function_proto, all + w->functions.count);
    for (size_t i = 0; i < all; i++)
        if (keep[i])
            model->functions.items[count++] = from->functions.items[i];
    if (count != all || w->functions.count || (all && w->options->fresh))
        cm_msg_set(&model->msg, CM_MODEL_FUNCTIONS);
    for (size_t i = 0; i < w->functions.count; i++)
        model->functions.items[count++] = w->functions.items[i];
    model->functions.count = count;
}

/* Names that functions of the file have in our domain: it may have been written here. */
static void take_names(struct writer *w, const struct cm_model_proto *from)
{
    for (size_t i = 0; i < from->functions.count; i++)
        if (cm_str_is(from->functions.items[i].domain, CM_FUNCTIONS_DOMAIN))
            cm_map_insert(&w->taken, w->arena, from->functions.items[i].name, NULL);
}

/* The versions it was written under; imports of our own that nothing needs any more go. */
static void write_imports(struct writer *w, const struct cm_opsets *from,
                          struct cm_model_proto *model)
{
    struct cm_opsets *imports = &model->opset_import;
    bool changed = w->options->fresh || imports->count != from->count;
    size_t kept = 0;

    for (size_t i = 0; i < imports->count; i++) {
        struct cm_opset_proto *import = &imports->items[i];
        const struct cm_str domain = cm_domain_plain(import->domain);
        const int64_t version = target(w, domain);
        if (is_foreign(domain) && !cm_nodes_use_domain(&model->graph->node, domain) &&
            !model->functions.count) {
            changed = true;
            continue;
        }
        if (version && version != import->version) {
            import->version = version;
            cm_msg_set(&import->msg, CM_OPSET_VERSION);
        }
        imports->items[kept++] = *import;
    }
    imports->count = kept;
    if (changed)
        cm_msg_set(&model->msg, CM_MODEL_OPSET_IMPORT);
}

static void write_ir_version(const struct writer *w, int64_t opset_before,
                             struct cm_model_proto *model)
{
    const struct cm_opset_proto *onnx = cm_opsets_find(&model->opset_import, CM_STR(""));
    int64_t needed = w->functions.count ? IR_OF_FUNCTIONS : 0;

    if (onnx && onnx->version > opset_before && needed < cm_ir_of_opset(onnx->version))
        needed = cm_ir_of_opset(onnx->version);
    if (model->ir_version >= needed)
        return;
    model->ir_version = needed;
    cm_msg_set(&model->msg, CM_MODEL_IR_VERSION);
}

/* What the model says beside its graph: what the file says, or that we wrote it. */
static void begin_model(struct writer *w, const struct cm_model_file *file,
                        struct cm_model_file *made)
{
    struct cm_model_proto *model = &made->model;

    *made = (struct cm_model_file){
        .arena = w->arena, .files = file->files, .path = file->path, .folder = file->folder};
    if (w->options->fresh) {
        set_text(&model->msg, CM_MODEL_PRODUCER_NAME, &model->producer_name, CM_STR("cameo"));
        model->ir_version = file->model.ir_version;
        cm_msg_set(&model->msg, CM_MODEL_IR_VERSION);
        cm_msg_set(&model->msg, CM_MODEL_GRAPH);
        return;
    }
    *model = file->model;
    model->opset_import = (struct cm_opsets){NULL, 0};
    for (size_t i = 0; i < file->model.opset_import.count; i++)
        *CM_LIST_ADD(w->arena, &model->opset_import) = file->model.opset_import.items[i];
}

enum cm_status cm_write_model(struct cm_graph *graph, const struct cm_model_file *file,
                              const struct cm_write_options *options, struct cm_arena *arena,
                              struct cm_model_file **out, struct cm_write_report *report,
                              struct cm_error *err)
{
    const struct cm_opset_proto *onnx = cm_opsets_find(&file->model.opset_import, CM_STR(""));
    struct writer w = {.arena = arena, .graph = graph, .options = options};
    struct cm_model_file *made = CM_NEW(arena, struct cm_model_file);
    struct cm_model_proto *model = &made->model;
    const int64_t opset_before = onnx ? onnx->version : 0;

    *report =
        (struct cm_write_report){.opset_before = opset_before, .ir_before = file->model.ir_version};
    cm_graph_remove_dead(graph);
    set_targets(&w, &file->model.opset_import);
    take_names(&w, &file->model);
    report->nodes = count_nodes(&w, graph, false, 0);
    if (options->portable)
        CM_TRY(make_portable(&w, graph, err));
    while (raise_targets(&w, graph))
        ; /* a version that was raised may make others necessary */
    report->nodes_inlined = count_nodes(&w, graph, true, 0);
    begin_model(&w, file, made);
    CM_TRY(write_graph(&w, options->fresh ? NULL : file->model.graph, &model->opset_import,
                       &model->graph, err));
    write_functions(&w, &file->model, model);
    write_imports(&w, &file->model.opset_import, model);
    write_ir_version(&w, options->fresh ? 0 : opset_before, model);
    onnx = cm_opsets_find(&model->opset_import, CM_STR(""));
    report->opset = onnx ? onnx->version : 0;
    report->ir = model->ir_version;
    report->nodes += w.copies;
    report->nodes_inlined += w.copies;
    report->raised_for = w.raised_for;
    report->functions = w.functions.count;
    *out = made;
    return CM_OK;
}

enum cm_status cm_write_inner_graph(const struct cm_graph *graph, struct cm_arena *arena,
                                    struct cm_opsets *imports, struct cm_graph_proto *out,
                                    struct cm_error *err)
{
    const struct cm_write_options options = {.untouched = true,
                                             .portable = true}; /* no functions */
    struct writer w = {.arena = arena, .graph = graph, .options = &options, .targets = *imports};
    const struct cm_export_options how = {.form = form_of, .form_arg = &w};

    return cm_graph_export(graph, arena, &how, out, imports, err);
}

/* The lowest version of ai.onnx, from the target on, that the node has a form under. */
static int64_t lowest_version(struct writer *w, struct cm_node *node)
{
    struct cm_opset_proto *import = cm_opsets_find(&w->targets, CM_STR(""));
    const int64_t version = import->version;

    while (choose(w, node, 0) == IN_NO_WAY && import->version < cm_portable_version(node, version))
        import->version++;
    const int64_t found = import->version;
    import->version = version;
    return found;
}

static void find_needed(struct writer *w, const struct cm_graph *graph, int64_t *needed,
                        struct cm_str *needed_by)
{
    for (struct cm_node *node = NULL; (node = cm_graph_next_node(graph, node));) {
        const int64_t least = node->domain.size ? 0 : lowest_version(w, node);
        *needed_by = least > *needed ? node->op_type : *needed_by;
        *needed = least > *needed ? least : *needed;
    }
}

enum cm_status cm_write_function(const struct cm_graph *graph, struct cm_arena *arena,
                                 const struct cm_opsets *imports, int64_t opset,
                                 struct cm_function_proto *out, int64_t *needed,
                                 struct cm_str *needed_by, struct cm_error *err)
{
    const struct cm_write_options options = {.portable = true}; /* no functions */
    struct writer w = {.arena = arena, .graph = graph, .options = &options};
    const struct cm_export_options how = {.form = form_of, .form_arg = &w};

    set_targets(&w, imports);
    cm_opsets_find(&w.targets, CM_STR(""))->version = opset;
    *needed = opset;
    find_needed(&w, graph, needed, needed_by);
    return *needed > opset ? CM_OK : cm_graph_export_function(graph, arena, &how, opset, out, err);
}
