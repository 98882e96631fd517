/* serving_default, train_step, evaluate and initialize. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/savedmodel/signatures.h"

#include "base/diagnostics.h"
#include "graph/import.h"
#include "lower/lower.h"
#include "onnx/tensor_data.h"
#include "train/step.h"
#include "train/training_graph.h"

/* ---- variables ---- */

static bool is_float(const struct cm_tensor_proto *proto)
{
    switch (proto->data_type) {
    case CM_FLOAT:
    case CM_DOUBLE:
    case CM_FLOAT16:
    case CM_BFLOAT16:
        return true;
    default:
        return false;
    }
}

static enum cm_status add_variable(struct cm_tf_model *model, const struct cm_tensor_proto *proto,
                                   struct cm_error *err)
{
    struct cm_arena *arena = model->writer.arena;
    struct cm_tensor tensor;
    bool added;
    uint64_t *place = cm_map_insert(&model->variable_places, arena, proto->name, &added);

    if (!added)
        return CM_OK;
    *place = model->variables.count;
    CM_TRY(cm_error_context(err, cm_tensor_proto_load(proto, model->file->files, &tensor, err),
                            "initializer '%.*s'", CM_STR_FMT(proto->name)));
    struct cm_tensor *kept = CM_NEW(arena, struct cm_tensor);
    *kept = tensor;
    cm_tensor_defer(arena, kept);
    *CM_PUSH(arena, &model->variables) =
        (struct cm_tf_variable){.name = proto->name, .tensor = *kept};
    return CM_OK;
}

/* Which initializers training changes. */
static void list_bound(const struct cm_model_proto *model, struct cm_arena *arena,
                       struct cm_map *out)
{
    for (size_t k = 0; k < model->training_info.count; k++) {
        const struct cm_training_proto *entry = &model->training_info.items[k];
        const struct cm_entries *const bindings[] = {&entry->update_binding,
                                                     &entry->initialization_binding};

        for (size_t b = 0; b < CM_COUNT(bindings); b++)
            for (size_t i = 0; i < bindings[b]->count; i++)
                (void)cm_map_add(out, arena, bindings[b]->items[i].key);
    }
}

static enum cm_status add_from(struct cm_tf_model *model, const struct cm_graph_proto *graph,
                               const struct cm_map *bound, bool is_inference, struct cm_error *err)
{
    for (size_t i = 0; graph && i < graph->initializer.count; i++) {
        const struct cm_tensor_proto *proto = &graph->initializer.items[i];
        const bool is_bound = cm_map_find(bound, proto->name);

        if (!is_bound && !(is_inference && is_float(proto) && proto->dims.count))
            continue;
        CM_TRY(add_variable(model, proto, err));
        struct cm_tf_variable *variable =
            &model->variables.items[cm_map_get(&model->variable_places, proto->name, 0)];
        variable->is_trained |= is_inference && is_float(proto) &&
                                (is_bound || !model->file->model.training_info.count);
    }
    return CM_OK;
}

/* ---- filters ---- */

static struct cm_tf_variable *variable_called(const struct cm_tf_model *model, struct cm_str name)
{
    const uint64_t *place = cm_map_find(&model->variable_places, name);

    return place ? &model->variables.items[*place] : NULL;
}

static void make_filter(struct cm_tf_model *model, struct cm_tf_variable *variable)
{
    struct cm_arena *arena = model->writer.arena;
    const int rank = variable->tensor.shape.rank;
    int64_t *order = CM_NEW_ARRAY(arena, int64_t, (size_t)rank);
    int64_t *back = CM_NEW_ARRAY(arena, int64_t, (size_t)rank);

    for (int i = 0; i < rank; i++) {
        order[i] = i < rank - 2 ? i + 2 : rank - 1 - i;
        back[order[i]] = i;
    }
    variable->is_filter = true;
    variable->order = (struct cm_tf_order){order, rank};
    variable->back = (struct cm_tf_order){back, rank};
}

/* Weights of convolutions over two and three axes, and the states that belong to them: "W.exp_avg".
 */
static void find_filters(struct cm_tf_model *model)
{
    const struct cm_graph_proto *graph = model->file->model.graph;

    for (size_t i = 0; graph && i < graph->node.count; i++) {
        const struct cm_node_proto *node = &graph->node.items[i];
        if ((!cm_str_is(node->op_type, "Conv") && !cm_str_is(node->op_type, "ConvTranspose")) ||
            node->domain.size || node->input.count < 2)
            continue;
        struct cm_tf_variable *weight = variable_called(model, node->input.items[1]);
        if (!weight || weight->is_filter || weight->tensor.shape.rank < 4 ||
            weight->tensor.shape.rank > 5)
            continue;
        make_filter(model, weight);
    }
    for (size_t i = 0; i < model->variables.count; i++) {
        struct cm_tf_variable *state = &model->variables.items[i];
        const struct cm_tf_variable *weight =
            variable_called(model, cm_str_before_last(state->name, '.'));
        if (weight && weight->is_filter && !state->is_filter &&
            cm_shape_equal(&weight->tensor.shape, &state->tensor.shape))
            make_filter(model, state);
    }
}

struct cm_shape cm_tf_variable_shape(const struct cm_tf_variable *variable)
{
    struct cm_shape shape = variable->tensor.shape;

    for (int i = 0; variable->is_filter && i < shape.rank; i++)
        shape.dims[i] = variable->tensor.shape.dims[variable->order.perm[i]];
    return shape;
}

/* ---- variables in the graph ---- */

static void put_variable(struct cm_tf_model *model, struct cm_tf_variable *variable)
{
    struct cm_tf_graph *graph = &model->graph;
    struct cm_tf_node *node = cm_tf_add(graph, "VarHandleOp", variable->name);

    const struct cm_shape shape = cm_tf_variable_shape(variable);

    cm_tf_attr_type(node, CM_STR("dtype"), cm_tf_type_of(variable->tensor.type));
    cm_tf_attr_shape(node, CM_STR("shape"), shape.dims, shape.rank);
    cm_tf_attr_text(node, CM_STR("shared_name"), node->name);
    variable->handle = cm_tf_output(graph, node, "resource", CM_TF_RESOURCE);
}

enum cm_status cm_tf_find_variables(struct cm_tf_model *model, struct cm_error *err)
{
    const struct cm_model_proto *proto = &model->file->model;
    struct cm_map bound = {0};

    list_bound(proto, model->writer.arena, &bound);
    CM_TRY(add_from(model, proto->graph, &bound, true, err));
    for (size_t k = 0; k < proto->training_info.count; k++)
        CM_TRY(add_from(model, proto->training_info.items[k].algorithm, &bound, false, err));
    find_filters(model);
    for (size_t i = 0; i < model->variables.count; i++) {
        struct cm_tf_variable *variable = &model->variables.items[i];
        if (!cm_tf_type_of(variable->tensor.type))
            return cm_fail(err, CM_UNSUPPORTED, "TensorFlow has no type for %s: variable '%.*s'",
                           cm_dtype_name(variable->tensor.type), CM_STR_FMT(variable->name));
        put_variable(model, variable);
    }
    return CM_OK;
}

static bool is_variable(void *arg, const struct cm_tensor_proto *initializer)
{
    return cm_map_find(&((const struct cm_tf_model *)arg)->variable_places, initializer->name);
}

/* ---- a signature ---- */

struct part {
    struct cm_tf_model *model;
    struct cm_graph *graph;
    struct cm_tf_scope scope;
    struct cm_tf_signature *signature;
    CM_ARRAY(struct cm_tf_node *) reads;
    CM_ARRAY(struct cm_tf_node *) writes;
    struct cm_error *err;
};

static struct cm_str labelled(const struct part *p, struct cm_str name)
{
    return cm_arena_printf(p->model->writer.arena, "%.*s%.*s", CM_STR_ALL(p->scope.label),
                           CM_STR_ALL(name));
}

static void read_variable(struct part *p, cm_value value, const struct cm_tf_variable *variable)
{
    struct cm_tf_graph *graph = &p->model->graph;
    const enum cm_tf_type type = cm_tf_type_of(variable->tensor.type);
    struct cm_tf_node *node =
        cm_tf_add(graph, "ReadVariableOp",
                  labelled(p, cm_arena_printf(graph->arena, "%.*s/Read",
                                              CM_STR_ALL(variable->handle.node->name))));

    cm_tf_input(graph, node, variable->handle);
    cm_tf_attr_type(node, CM_STR("dtype"), type);
    *CM_PUSH(graph->arena, &p->reads) = node;
    struct cm_tf_tensor tensor = cm_tf_output(graph, node, "value", type);
    if (variable->is_filter)
        tensor = cm_tf_transposed(graph, tensor, &variable->back, node->name);
    cm_tf_set_value(&p->scope, value, tensor);
}

static struct cm_str value_shape(const struct part *p, cm_value value)
{
    const struct cm_type *type = cm_value_get(p->graph->module, value)->fact.type;
    int64_t dims[CM_MAX_RANK] = {0};

    for (int i = 0; i < type->rank; i++)
        dims[i] = type->dims[i].value;
    return cm_tf_shape(p->model->writer.arena, dims, type->rank);
}

static void add_port(struct part *p, bool is_output, struct cm_str name, struct cm_tf_tensor tensor,
                     struct cm_str shape)
{
    struct cm_arena *arena = p->model->writer.arena;
    /* A key of a signature is UTF-8; other names give way to that of the node. */
    const bool is_text = name.size && cm_str_is_utf8(name);
    const struct cm_tf_port port = {is_text ? name : tensor.node->name, tensor, shape};

    tensor.node->uses++;
    if (is_output)
        *CM_PUSH(arena, &p->signature->outputs) = port;
    else
        *CM_PUSH(arena, &p->signature->inputs) = port;
}

static void refuse(struct part *p, const char *what, struct cm_str name, const char *why)
{
    cm_findings_add(p->model->writer.findings, CM_UNSUPPORTED,
                    cm_arena_printf(p->model->writer.arena, "%s '%.*s'", what, CM_STR_FMT(name)),
                    "%s", why);
}

static void put_input(struct part *p, cm_value value)
{
    struct cm_tf_graph *graph = &p->model->graph;
    const struct cm_value_def *def = cm_value_get(p->graph->module, value);
    const struct cm_type *type = def->fact.type;
    int64_t dims[CM_MAX_RANK] = {0};

    if (type->kind != CM_KIND_TENSOR || !cm_tf_type_of(type->dtype)) {
        refuse(p, "input", def->name,
               type->kind != CM_KIND_TENSOR ? "sequences, optionals and maps are not written to a "
                                              "SavedModel yet"
                                            : "TensorFlow has no type for its elements");
        return;
    }
    struct cm_tf_node *node = cm_tf_add(graph, "Placeholder", labelled(p, def->name));
    for (int i = 0; i < type->rank; i++)
        dims[i] = type->dims[i].value;
    cm_tf_attr_type(node, CM_STR("dtype"), cm_tf_type_of(type->dtype));
    cm_tf_attr_shape(node, CM_STR("shape"), dims, type->rank);
    const struct cm_tf_tensor tensor =
        cm_tf_output(graph, node, "output", cm_tf_type_of(type->dtype));
    cm_tf_set_value(&p->scope, value, tensor);
    add_port(p, false, def->name, tensor, value_shape(p, value));
}

static void put_inputs(struct part *p)
{
    for (size_t i = 0; i < p->graph->n_inputs; i++) {
        const cm_value value = p->graph->inputs[i];
        const struct cm_tf_variable *variable =
            variable_called(p->model, cm_value_get(p->graph->module, value)->name);

        if (variable)
            read_variable(p, value, variable);
        else
            put_input(p, value);
    }
}

/* A variable changes once all were read: the new value follows from the old ones. */
static void write_variable(struct part *p, const struct cm_tf_variable *variable,
                           struct cm_tf_tensor tensor)
{
    struct cm_tf_graph *graph = &p->model->graph;
    if (variable->is_filter)
        tensor = cm_tf_transposed(graph, tensor, &variable->order,
                                  labelled(p, variable->handle.node->name));
    struct cm_tf_node *node =
        cm_tf_add(graph, "AssignVariableOp",
                  labelled(p, cm_arena_printf(graph->arena, "%.*s/Assign",
                                              CM_STR_ALL(variable->handle.node->name))));

    cm_tf_input(graph, node, variable->handle);
    cm_tf_input(graph, node, tensor);
    cm_tf_attr_type(node, CM_STR("dtype"), tensor.type);
    *CM_PUSH(graph->arena, &p->writes) = node;
}

static struct cm_tf_node *after_all(struct part *p, struct cm_tf_node *const *nodes, size_t count,
                                    const char *name)
{
    struct cm_tf_node *all = cm_tf_add(&p->model->graph, "NoOp", labelled(p, cm_str(name)));

    for (size_t i = 0; i < count; i++)
        cm_tf_after(&p->model->graph, all, nodes[i]);
    return all;
}

/* An output under a name of its own, once everything is written. */
static void put_output(struct part *p, struct cm_str name, struct cm_tf_tensor tensor,
                       struct cm_str shape, struct cm_tf_node *done)
{
    struct cm_tf_graph *graph = &p->model->graph;
    struct cm_tf_node *node = cm_tf_add(graph, "Identity", labelled(p, name));

    cm_tf_input(graph, node, tensor);
    if (done)
        cm_tf_after(graph, node, done);
    cm_tf_attr_type(node, CM_STR("T"), tensor.type);
    add_port(p, true, name, cm_tf_output(graph, node, "output", tensor.type), shape);
}

struct assignment { /* the variable that output i of a graph is for; NULL: it is a result */
    const struct cm_tf_variable *variable;
    struct cm_str name;
};

static enum cm_status put_outputs(struct part *p, const struct assignment *assignments)
{
    struct cm_tf_graph *graph = &p->model->graph;
    struct cm_tf_node *read = NULL, *done = NULL;
    const int64_t no_dims[1] = {0};
    size_t n_results = 0;

    for (size_t i = 0; i < p->graph->n_outputs; i++) {
        const struct cm_tf_tensor tensor = cm_tf_value(&p->scope, p->graph->outputs[i].value);
        if (!tensor.node)
            refuse(p, "output", assignments[i].name, "it cannot be expressed");
        else if (assignments[i].variable)
            write_variable(p, assignments[i].variable, tensor);
    }
    if (p->model->writer.findings->violations)
        return CM_OK; /* listed, and told at the end */
    if (p->writes.count) {
        read = after_all(p, p->reads.items, p->reads.count, "all_read");
        for (size_t i = 0; i < p->writes.count; i++)
            cm_tf_after(graph, p->writes.items[i], read);
        done = after_all(p, p->writes.items, p->writes.count, "all_written");
    }
    for (size_t i = 0; i < p->graph->n_outputs; i++) {
        const cm_value value = p->graph->outputs[i].value;
        if (assignments[i].variable)
            continue;
        put_output(p, assignments[i].name, cm_tf_value(&p->scope, value), value_shape(p, value),
                   done);
        n_results++;
    }
    if (!n_results && done) /* a signature has an output */
        put_output(p, CM_STR("done"),
                   cm_tf_literal(graph, CM_TF_BOOL, no_dims, 0, (struct cm_str){"\1", 1}),
                   cm_tf_shape(graph->arena, no_dims, 0), done);
    return CM_OK;
}

/* graph under a signature; assignments: by output. */
static enum cm_status put_signature(struct cm_tf_model *model, const char *name, const char *label,
                                    struct cm_graph *graph, const struct assignment *assignments,
                                    struct cm_error *err)
{
    struct part p = {.model = model,
                     .graph = graph,
                     .scope = {.writer = &model->writer,
                               .module = graph->module,
                               .graph = &model->graph,
                               .label = cm_str(label)},
                     .err = err};
    struct cm_error ignored = {0};

    p.signature = CM_PUSH(model->writer.arena, &model->signatures);
    *p.signature = (struct cm_tf_signature){.name = cm_str(name)};
    put_inputs(&p);
    /* What cannot be expressed is in the findings. */
    if (cm_tf_nodes(&p.scope, graph, &ignored) == CM_OK || model->writer.findings->violations)
        return put_outputs(&p, assignments);
    *err = ignored;
    return err->status;
}

static struct assignment *results_of(struct cm_tf_model *model, const struct cm_graph *graph)
{
    struct assignment *out =
        CM_NEW_ARRAY(model->writer.arena, struct assignment, graph->n_outputs + 1);

    for (size_t i = 0; i < graph->n_outputs; i++)
        out[i].name = cm_value_get(graph->module, graph->outputs[i].value)->name;
    return out;
}

/* ---- graphs ---- */

static struct cm_module *new_module(struct cm_tf_model *model)
{
    const struct cm_module_options options = {.registry = model->file->registry,
                                              .files = model->file->files};

    return cm_module_new(model->writer.arena, &options);
}

/* Operators without a row give way to their bodies, and finally to core operators. */
static enum cm_status lower(struct cm_tf_model *model, struct cm_graph *graph, struct cm_error *err)
{
    const struct cm_lower_options options = {
        .table = &cm_compile_passes,
        .passes = {.without = "inference,transposes,regions"},
        .pass = {.training = true, .keeps = cm_tf_has_row, .findings = model->writer.findings},
        .findings = model->writer.findings,
    };

    return cm_lower_graph(graph, &options, err);
}

static enum cm_status import(struct cm_tf_model *model, const struct cm_model_proto *proto,
                             struct cm_graph **out, struct cm_error *err)
{
    const struct cm_import_options options = {.findings = model->writer.findings,
                                              .constant_defaults = true,
                                              .opens = is_variable,
                                              .opens_arg = model};

    CM_TRY(cm_lower_import_as(new_module(model), proto, &options, out, err));
    return lower(model, *out, err);
}

static enum cm_status put_serving(struct cm_tf_model *model, struct cm_error *err)
{
    const struct cm_graph_proto *proto = model->file->model.graph;
    struct cm_graph *graph;

    CM_TRY(import(model, &model->file->model, &graph, err));
    struct assignment *results = results_of(model, graph);
    for (size_t i = 0; i < graph->n_outputs && i < proto->output.count; i++)
        results[i].name = proto->output.items[i].name;
    return put_signature(model, "serving_default", "", graph, results, err);
}

static enum cm_status put_step(struct cm_tf_model *model, struct cm_error *err)
{
    const struct cm_step_options options = {0};
    struct cm_model_file *step;
    struct cm_graph *graph;
    struct cm_str name;

    CM_TRY(cm_step_model(model->writer.arena, model->file, &options, &step, err));
    CM_TRY(import(model, &step->model, &graph, err));
    struct assignment *results = results_of(model, graph);
    for (size_t i = 0; i < graph->n_outputs && i < step->model.graph->output.count; i++) {
        name = results[i].name = step->model.graph->output.items[i].name;
        if (!cm_str_ends(name, ".next"))
            continue;
        name.size -= 5;
        results[i].variable = variable_called(model, name);
    }
    return put_signature(model, "train_step", "train_step/", graph, results, err);
}

/* The scalars of a training entry that need no gradient. */
static enum cm_status list_scalars(struct cm_tf_model *model, const struct cm_graph *graph,
                                   const struct cm_training_proto *entry,
                                   const struct cm_findings *found, struct cm_distinct_names *names,
                                   cm_value *values, struct cm_error *err)
{
    struct cm_arena *arena = model->writer.arena;
    struct cm_map bound = {0};
    cm_value value;

    for (size_t i = 0; i < entry->update_binding.count; i++)
        (void)cm_map_add(&bound, arena, entry->update_binding.items[i].value);
    for (size_t i = 0; entry->algorithm && i < entry->algorithm->output.count; i++) {
        const struct cm_str name = entry->algorithm->output.items[i].name;
        bool has_gradient = false;

        if (cm_map_find(&bound, name))
            continue;
        CM_TRY(cm_training_find(graph, found, &name, 1, &value, err));
        const bool *needed = cm_training_needed(graph, arena, &value, 1, NULL, true);
        for (const struct cm_node *node = graph->first; node; node = node->next)
            has_gradient |=
                cm_str_is(node->op_type, "Gradient") && cm_node_is_needed(node, needed, NULL);
        const size_t before = names->names.count;
        if (!has_gradient && cm_distinct_names_add(names, name) == before)
            values[before] = value;
    }
    return CM_OK;
}

static enum cm_status put_evaluation(struct cm_tf_model *model, size_t k, struct cm_error *err)
{
    struct cm_arena *arena = model->writer.arena;
    const struct cm_training_proto *entry = &model->file->model.training_info.items[k];
    struct cm_findings found = {.arena = arena};
    const struct cm_training_source source = {new_module(model), &model->file->model, k,
                                              &model->variable_places, &found};
    struct cm_distinct_names names = {.arena = arena};
    struct cm_graph *whole, *graph;
    cm_value *sources;

    CM_TRY(cm_training_import(&source, &whole, err));
    cm_value *values =
        CM_NEW_ARRAY(arena, cm_value, entry->algorithm ? entry->algorithm->output.count + 1 : 1);
    CM_TRY(list_scalars(model, whole, entry, &found, &names, values, err));
    if (!names.names.count)
        return CM_OK;
    const struct cm_cut cut = {
        .graph = whole, .outputs = values, .n_outputs = names.names.count, .evaluate = true};
    CM_TRY(cm_cut_copy(&cut, &graph, &sources, err));
    CM_TRY(lower(model, graph, err));
    struct assignment *results = results_of(model, graph);
    for (size_t i = 0; i < graph->n_outputs; i++)
        results[i].name = names.names.items[i];
    return put_signature(model, k ? cm_arena_printf(arena, "evaluate_%zu", k).data : "evaluate",
                         "evaluate/", graph, results, err);
}

static enum cm_status put_initialization(struct cm_tf_model *model, size_t k, struct cm_error *err)
{
    struct cm_arena *arena = model->writer.arena;
    const struct cm_training_proto *entry = &model->file->model.training_info.items[k];
    struct cm_findings found = {.arena = arena};
    const struct cm_training_source source = {new_module(model), &model->file->model, k,
                                              &model->variable_places, &found};
    const struct cm_entries *bindings = &entry->initialization_binding;
    struct cm_graph *graph;

    CM_TRY(cm_training_import_initialization(&source, &graph, err));
    cm_value *values = CM_NEW_ARRAY(arena, cm_value, bindings->count + 1);
    struct assignment *results = CM_NEW_ARRAY(arena, struct assignment, bindings->count + 1);
    for (size_t i = 0; i < bindings->count; i++) {
        CM_TRY(cm_training_find(graph, &found, &bindings->items[i].value, 1, &values[i], err));
        results[i] = (struct assignment){variable_called(model, bindings->items[i].key),
                                         bindings->items[i].value};
    }
    cm_graph_set_outputs(graph, values, bindings->count);
    cm_graph_remove_dead(graph);
    CM_TRY(lower(model, graph, err));
    return put_signature(model, k ? cm_arena_printf(arena, "initialize_%zu", k).data : "initialize",
                         "initialize/", graph, results, err);
}

enum cm_status cm_tf_put_signatures(struct cm_tf_model *model, struct cm_error *err)
{
    const struct cm_model_proto *proto = &model->file->model;

    CM_TRY(put_serving(model, err));
    if (!proto->training_info.count)
        return CM_OK;
    CM_TRY(cm_error_context(err, put_step(model, err), "train_step"));
    for (size_t k = 0; k < proto->training_info.count; k++) {
        const struct cm_training_proto *entry = &proto->training_info.items[k];
        CM_TRY(cm_error_context(err, put_evaluation(model, k, err), "evaluate"));
        if (entry->initialization && entry->initialization_binding.count)
            CM_TRY(cm_error_context(err, put_initialization(model, k, err), "initialize"));
    }
    return CM_OK;
}
