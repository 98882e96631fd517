/* The algorithm of a model that is being prepared: names, constants, states, bindings; and training
 * info as it is written. */
// SPDX-License-Identifier: Apache-2.0
#include "train/prepare/preparation.h"

#include "base/diagnostics.h"
#include "graph/import.h"
#include "graph/op.h"
#include "lower/lower.h"
#include "models/write_model.h"
#include "onnx/tensor_data.h"
#include "train/training_graph.h"

enum { DEPTH_MAX = 64, IN_GRAPH = 1, IN_BODY = 2 };

/* ---- names ---- */

static void take(struct cm_preparation *p, struct cm_str name)
{
    if (name.size)
        cm_map_insert(&p->taken, p->arena, name, NULL);
}

static void take_graph(struct cm_preparation *p, const struct cm_graph_proto *graph, int depth)
{
    for (size_t i = 0; i < graph->input.count; i++)
        take(p, graph->input.items[i].name);
    for (size_t i = 0; i < graph->initializer.count; i++)
        take(p, graph->initializer.items[i].name);
    for (size_t i = 0; i < graph->node.count; i++) {
        const struct cm_node_proto *node = &graph->node.items[i];
        struct cm_graph_proto *body;

        for (size_t o = 0; o < node->output.count; o++)
            take(p, node->output.items[o]);
        for (size_t b = 0; depth < DEPTH_MAX && (body = cm_node_subgraph(node, b)); b++)
            take_graph(p, body, depth + 1);
    }
}

void cm_preparation_take_names(struct cm_preparation *p)
{
    take_graph(p, p->model->graph, 0);
}

struct cm_str cm_preparation_name(struct cm_preparation *p, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    struct cm_str name = cm_arena_str(p->arena, cm_str(text));
    for (size_t n = 1;; n++) {
        if (cm_map_add(&p->taken, p->arena, name))
            return name;
        name = cm_arena_printf(p->arena, "%s_%zu", text, n);
    }
}

/* ---- what is said ---- */

void cm_preparation_note(struct cm_preparation *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    cm_findings_note_args(&p->report->findings, format, args);
    va_end(args);
}

void cm_preparation_block(struct cm_preparation *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    cm_findings_add_args(&p->report->findings, p->is_misused ? CM_BAD_ARGUMENT : CM_UNSUPPORTED,
                         CM_STR_NONE, format, args);
    va_end(args);
}

enum cm_status cm_preparation_verdict(struct cm_preparation *p)
{
    return cm_findings_fail(&p->report->findings, p->err);
}

/* ---- the working copy ---- */

/* What stands in the way of the import, after what was known before. */
static enum cm_status block_import(struct cm_preparation *p, enum cm_status status)
{
    if (status == CM_OK)
        return CM_OK;
    cm_findings_merge(&p->report->findings, p->findings, CM_STR_NONE);
    if (!p->findings->count)
        cm_findings_add(&p->report->findings, status, CM_STR_NONE, "%s", p->err->text);
    return cm_preparation_verdict(p);
}

enum cm_status cm_preparation_import(struct cm_preparation *p)
{
    const struct cm_module_options module = {.files = p->file->files,
                                             .registry = p->file->registry};
    p->findings = CM_NEW(p->arena, struct cm_findings);
    p->findings->arena = p->arena;
    p->findings->rule = "prepare";
    const struct cm_import_options options = {
        .findings = p->findings, .constant_defaults = true, .partial = true};

    return block_import(p, cm_lower_import_as(cm_module_new(p->arena, &module), p->model, &options,
                                              &p->inference, p->err));
}

enum cm_status cm_preparation_require_all(struct cm_preparation *p)
{
    const struct cm_value_infos *outputs = &p->model->graph->output;

    CM_TRY(block_import(p, cm_findings_fail(p->findings, p->err)));
    for (size_t i = 0; i < outputs->count; i++)
        CM_TRY(cm_preparation_require(p, outputs->items[i].name));
    return CM_OK;
}

enum cm_status cm_preparation_require(struct cm_preparation *p, struct cm_str name)
{
    if (cm_graph_find(p->inference, name))
        return CM_OK;
    CM_TRY(block_import(p, cm_findings_fail(p->findings, p->err)));
    return cm_fail(p->err, CM_BAD_MODEL, "nothing computes '%.*s'", CM_STR_FMT(name));
}

void cm_preparation_begin(struct cm_preparation *p)
{
    struct cm_module *module = p->inference->module;

    p->build = (struct cm_builder){.graph = cm_graph_new(module, p->inference, CM_STR("training")),
                                   .err = p->err};
    p->reset = cm_graph_new(module, NULL, CM_STR("reset"));
    cm_clone_init(&p->moved, module);
    p->moved.alike = true;
}

/* ---- values ---- */

cm_value cm_preparation_call(struct cm_preparation *p, cm_value value, struct cm_str name)
{
    if (value)
        cm_value_set_name(p->inference->module, value, name);
    return value;
}

cm_value cm_preparation_term(struct cm_preparation *p, struct cm_str hint, const char *word,
                             cm_value value)
{
    return cm_preparation_call(p, value, cm_preparation_name(p, "%.*s.%s", CM_STR_FMT(hint), word));
}

cm_value cm_preparation_cast(struct cm_preparation *p, cm_value value, enum cm_dtype dtype)
{
    return cm_emit_with(p, "Cast", CM_ATTRIBUTES(cm_attr_int(p->arena, "to", dtype)), value);
}

struct cm_str cm_preparation_name_of(const struct cm_preparation *p, cm_value value)
{
    return value ? cm_value_get(p->inference->module, value)->name : CM_STR_NONE;
}

const struct cm_type *cm_preparation_type(const struct cm_preparation *p, cm_value value)
{
    return value ? cm_value_get(p->inference->module, value)->fact.type : NULL;
}

/* Where the number of this name and type is noted, 0 until it is made. The place moves when another
 * number is noted. */
static cm_value *preparation_number(struct cm_preparation *p, const char *name, enum cm_dtype dtype)
{
    for (size_t i = 0; i < p->scalars.count; i++)
        if (strcmp(p->scalars.items[i].name, name) == 0 && p->scalars.items[i].dtype == dtype)
            return &p->scalars.items[i].value;
    struct cm_prepared_scalar *added = CM_PUSH(p->arena, &p->scalars);
    *added = (struct cm_prepared_scalar){name, dtype, 0};
    return &added->value;
}

cm_value cm_preparation_scalar(struct cm_preparation *p, const char *name, enum cm_dtype dtype,
                               double value)
{
    cm_value *made = preparation_number(p, name, dtype);

    if (*made)
        return *made;
    const struct cm_str called =
        dtype == CM_FLOAT ? cm_preparation_name(p, "training.%s", name)
                          : cm_preparation_name(p, "training.%s.%s", name, cm_dtype_name(dtype));
    return *made = cm_preparation_call(p, cm_build_scalar(&p->build, dtype, value), called);
}

cm_value cm_preparation_tensor(struct cm_preparation *p, struct cm_graph *graph,
                               const struct cm_tensor_proto *from, struct cm_str name)
{
    struct cm_tensor_proto *tensor = CM_NEW(p->arena, struct cm_tensor_proto);
    struct cm_tensor none = {.type = (enum cm_dtype)from->data_type};

    if (!p->build.status)
        p->build.status = cm_tensor_proto_check(from, p->err);
    if (!p->build.status)
        p->build.status = cm_tensor_proto_shape(from, &none.shape, p->err);
    if (p->build.status)
        return 0;
    *tensor = *from;
    tensor->name = name;
    cm_msg_set(&tensor->msg, CM_TENSOR_NAME);
    const cm_value value = cm_graph_add_constant(graph, name, &none);
    struct cm_value_def *def = cm_value_get(graph->module, value);
    def->fact.constant = NULL; /* read when somebody asks */
    def->initializer = tensor;
    return value;
}

void cm_preparation_add(struct cm_preparation *p, cm_value value, struct cm_str instead,
                        bool in_body)
{
    *CM_PUSH(p->arena, &p->added) = value;
    if (instead.size)
        *cm_map_insert(&p->gone, p->arena, instead, NULL) = in_body ? IN_BODY : IN_GRAPH;
}

void cm_preparation_give(struct cm_preparation *p, cm_value value)
{
    *CM_PUSH(p->arena, &p->outputs) = value;
}

void cm_preparation_bind(struct cm_preparation *p, cm_value state, cm_value next)
{
    *CM_PUSH(p->arena, &p->updates) = (struct cm_prepared_binding){state, next};
    cm_preparation_give(p, next);
}

/* ---- who needs what ---- */

const bool *cm_preparation_needed(struct cm_preparation *p, cm_value y)
{
    const struct cm_graph *algorithm = p->build.graph;
    bool *needed =
        cm_training_needed(algorithm ? algorithm : p->inference, p->arena, &y, 1, NULL, false);

    if (algorithm)
        cm_training_need(p->inference, NULL, false, needed);
    needed[0] = false;
    return needed;
}

/* ---- what was changed of the inference graph ---- */

void cm_node_proto_read(struct cm_arena *arena, struct cm_node_proto *node, size_t input,
                        struct cm_str name)
{
    struct cm_strs in = {CM_NEW_ARRAY(arena, struct cm_str, node->input.count), node->input.count};

    memcpy(in.items, node->input.items, in.count * sizeof *in.items);
    in.items[input] = name;
    node->input = in;
    cm_msg_set(&node->msg, CM_NODE_INPUT);
}

/* Nodes of the file read what those that were made of them read by now. */
static void write_readers(struct cm_preparation *p, cm_value value)
{
    const struct cm_value_def *def = cm_value_get(p->inference->module, value);
    struct cm_nodes *nodes = &p->model->graph->node;

    for (const struct cm_use *use = def->uses; use; use = use->next) {
        const struct cm_node *first = use->node;

        if (use->graph != p->inference || !first || !first->origin)
            continue;
        (void)cm_node_in_group(use->node, &first);
        struct cm_node_proto *node = &nodes->items[first->origin->proto - nodes->items];
        for (size_t i = 0; i < node->input.count; i++)
            if (cm_origin_operand(first, i) == value &&
                !cm_str_equal(node->input.items[i], def->name))
                cm_node_proto_read(p->arena, node, i, def->name);
    }
}

/* What became an initializer goes from where it was. */
static void drop_gone(struct cm_preparation *p, struct cm_graph_proto *graph, int depth)
{
    const uint64_t here = depth ? IN_BODY : IN_GRAPH;
    struct cm_node_proto *nodes = CM_NEW_ARRAY(p->arena, struct cm_node_proto, graph->node.count);
    struct cm_tensor_proto *tensors =
        CM_NEW_ARRAY(p->arena, struct cm_tensor_proto, graph->initializer.count);
    size_t n_nodes = 0, n_tensors = 0;

    for (size_t i = 0; i < graph->node.count; i++) {
        const struct cm_node_proto *node = &graph->node.items[i];
        struct cm_graph_proto *body;

        for (size_t b = 0; depth < DEPTH_MAX && (body = cm_node_subgraph(node, b)); b++)
            drop_gone(p, body, depth + 1);
        if (node->output.count != 1 || cm_map_get(&p->gone, node->output.items[0], 0) != here)
            nodes[n_nodes++] = *node;
    }
    for (size_t i = 0; i < graph->initializer.count; i++)
        if (cm_map_get(&p->gone, graph->initializer.items[i].name, 0) != here)
            tensors[n_tensors++] = graph->initializer.items[i];
    if (n_nodes != graph->node.count) {
        graph->node = (struct cm_nodes){nodes, n_nodes};
        cm_msg_set(&graph->msg, CM_GRAPH_NODE);
    }
    if (n_tensors != graph->initializer.count) {
        graph->initializer.items = tensors;
        graph->initializer.count = n_tensors;
        cm_msg_set(&graph->msg, CM_GRAPH_INITIALIZER);
    }
}

/* Writes what was added to the inference graph, and what was taken out of it, into the model. */
static void write_inference(struct cm_preparation *p)
{
    struct cm_graph_proto *graph = p->model->graph;

    for (size_t i = 0; i < p->added.count; i++)
        write_readers(p, p->added.items[i]);
    if (p->gone.count)
        drop_gone(p, graph, 0);
    if (!p->added.count)
        return;
    graph->initializer.items =
        cm_list_extended_by(p->arena, graph->initializer.items, graph->initializer.count,
                            p->added.count, sizeof *graph->initializer.items);
    for (size_t i = 0; i < p->added.count; i++)
        graph->initializer.items[graph->initializer.count++] =
            *cm_value_get(p->inference->module, p->added.items[i])->initializer;
    cm_msg_set(&graph->msg, CM_GRAPH_INITIALIZER);
}

/* ---- the result ---- */

/* Whatever is written has a name that the model has nothing else of. */
static void name_rest(struct cm_preparation *p, const struct cm_graph *graph)
{
    for (const struct cm_node *node = graph->first; node; node = node->next) {
        const struct cm_node *first;

        if (cm_node_in_group(node, &first))
            continue;
        for (int i = 0; i < node->n_inputs; i++)
            if (node->inputs[i].value && !cm_preparation_name_of(p, node->inputs[i].value).size)
                cm_preparation_term(p, graph->name, "constant", node->inputs[i].value);
        for (int o = 0; o < node->n_outputs; o++)
            if (node->outputs[o] && !cm_preparation_name_of(p, node->outputs[o]).size)
                cm_preparation_term(p, graph->name, "value", node->outputs[o]);
        for (size_t b = 0; b < node->n_bodies; b++)
            name_rest(p, node->bodies[b].graph);
    }
}

static enum cm_status write_graph(struct cm_preparation *p, struct cm_graph *graph,
                                  const cm_value *outputs, size_t n_outputs,
                                  struct cm_graph_proto **out)
{
    const size_t imports = p->model->opset_import.count;

    *out = CM_NEW(p->arena, struct cm_graph_proto);
    cm_graph_set_outputs(graph, outputs, n_outputs);
    CM_TRY(cm_write_inner_graph(graph, p->arena, &p->model->opset_import, *out, p->err));
    if (p->model->opset_import.count != imports)
        cm_msg_set(&p->model->msg, CM_MODEL_OPSET_IMPORT);
    return CM_OK;
}

static void write_bindings(struct cm_preparation *p, const struct cm_prepared_bindings *bindings,
                           struct cm_entries *out)
{
    out->count = bindings->count;
    out->items = CM_NEW_ARRAY(p->arena, struct cm_entry_proto, out->count);
    for (size_t i = 0; i < out->count; i++) {
        struct cm_entry_proto *entry = &out->items[i];

        entry->key = cm_preparation_name_of(p, bindings->items[i].state);
        entry->value = cm_preparation_name_of(p, bindings->items[i].next);
        cm_msg_set(&entry->msg, CM_ENTRY_KEY);
        cm_msg_set(&entry->msg, CM_ENTRY_VALUE);
    }
}

enum cm_status cm_preparation_write(struct cm_preparation *p)
{
    struct cm_training_proto *training = CM_NEW(p->arena, struct cm_training_proto);

    CM_TRY(p->build.status);
    if (cm_preparation_rewrites(p))
        name_rest(p, p->inference);
    else
        write_inference(p);
    name_rest(p, p->build.graph);
    name_rest(p, p->reset);
    CM_TRY(cm_raise(p));
    CM_TRY(
        write_graph(p, p->build.graph, p->outputs.items, p->outputs.count, &training->algorithm));
    cm_msg_set(&training->msg, CM_TRAINING_ALGORITHM);
    if (p->resets.count) {
        CM_TRY(
            write_graph(p, p->reset, p->resets.items, p->resets.count, &training->initialization));
        write_bindings(p, &p->reset_bindings, &training->initialization_binding);
        cm_msg_set(&training->msg, CM_TRAINING_INITIALIZATION);
        cm_msg_set(&training->msg, CM_TRAINING_INITIALIZATION_BINDING);
    }
    write_bindings(p, &p->updates, &training->update_binding);
    if (p->updates.count)
        cm_msg_set(&training->msg, CM_TRAINING_UPDATE_BINDING);
    p->model->training_info.items = training;
    p->model->training_info.count = 1;
    cm_msg_set(&p->model->msg, CM_MODEL_TRAINING_INFO);
    struct cm_prepared_training *made = CM_NEW(p->arena, struct cm_prepared_training);
    *made = (struct cm_prepared_training){p->inference, p->build.graph, p->reset,
                                          cm_prepared_step_keep(p)};
    p->report->made = made;
    return CM_OK;
}

/* ---- what there is so far ---- */

static void add_once(cm_value *list, size_t *count, cm_value value)
{
    size_t i = 0;

    while (i < *count && list[i] != value)
        i++;
    if (value && i == *count)
        list[(*count)++] = value;
}

/* The prediction, or all that the file lists before that is chosen; then what of the algorithm
 * nothing reads yet. */
static cm_value *list_ends(struct cm_preparation *p, size_t *count)
{
    const struct cm_value_infos *listed = &p->model->graph->output;
    cm_value *list =
        CM_NEW_ARRAY(p->arena, cm_value, listed->count + p->outputs.count + p->n_weights + 3);

    *count = 0;
    for (size_t i = 0; !p->inference->n_outputs && i < listed->count; i++)
        add_once(list, count, cm_graph_find(p->inference, listed->items[i].name));
    for (size_t i = 0; i < p->inference->n_outputs; i++)
        add_once(list, count, p->inference->outputs[i].value);
    if (!p->build.graph)
        return list;
    add_once(list, count, p->loss ? p->loss : cm_clone_of(&p->moved, p->read));
    for (size_t i = 0; i < p->outputs.count; i++)
        add_once(list, count, p->outputs.items[i]);
    for (size_t i = 0; i < p->n_weights; i++)
        add_once(list, count, p->weights[i].gradient);
    return list;
}

enum cm_status cm_preparation_show(struct cm_preparation *p)
{
    static const struct cm_write_options options = {.fresh = true, .untouched = true};
    struct cm_write_report report;
    struct cm_model_file *written;
    struct cm_clone clone;
    struct cm_graph *graph;
    size_t count;

    CM_TRY(cm_preparation_verdict(p));
    if (!p->inference || p->model->training_info.count)
        return CM_OK; /* the messages are what there is */
    CM_TRY(p->build.status);
    const struct cm_prepared_training both = {.inference = p->inference,
                                              .algorithm = p->build.graph};
    CM_TRY(cm_training_join(&both, NULL, &clone, &graph, p->err));
    cm_value *ends = list_ends(p, &count);
    for (size_t i = 0; i < count; i++)
        ends[i] = cm_clone_operand(&clone, graph, p->inference, ends[i]);
    cm_graph_set_outputs(graph, ends, count);
    CM_TRY(cm_write_model(graph, p->file, &options, p->arena, &written, &report, p->err));
    p->file->model = written->model;
    return CM_OK;
}
