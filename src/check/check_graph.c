/* Graphs: inputs, initializers, order and single assignment of values, outputs, annotations. */
// SPDX-License-Identifier: Apache-2.0
#include "check/checker.h"
#include "graph/node_order.h"

/* A definition that the innermost graph must not repeat; for an algorithm that is also the
 * inference graph around it. */
static bool hides_outer(const struct cm_checker *c, const struct cm_def *def)
{
    return def && def->depth < c->scope->depth && !(def->kind & CM_DEF_LOOSE);
}

/* The name is one of the inference graph, and the algorithm does not see it. */
static bool is_apart(const struct cm_checker *c, const struct cm_def *def)
{
    return c->calls_graph && def && def->depth < c->calls_depth;
}

static void report_hiding(struct cm_checker *c, const struct cm_model_place *place, bool algorithm)
{
    if (algorithm)
        cm_report(c, CM_RULE_TR10, place, "the inference graph defines this name too");
    else
        cm_report(c, CM_RULE_ST6, place, "hides the value of that name in an enclosing graph");
}

static void examine_inputs(struct cm_checker *c, const struct cm_model_place *up,
                           enum cm_graph_role role, const struct cm_graph_proto *graph)
{
    const bool complete = role == CM_MAIN_GRAPH || role == CM_ALGORITHM_GRAPH;

    for (size_t i = 0; i < graph->input.count; i++) {
        const struct cm_value_info_proto *input = &graph->input.items[i];
        const struct cm_model_place here = CM_PLACE_VALUE(up, "input", input->name, i, input);

        cm_examine_value_info(c, &here, input, complete);
        if (cm_scope_find_here(c->scope, input->name))
            cm_report(c, CM_RULE_CK12, &here, "another input of this graph has the same name");
        else if (hides_outer(c, cm_scope_find(c->scope, input->name)) &&
                 !is_apart(c, cm_scope_find(c->scope, input->name)))
            report_hiding(c, &here, role == CM_ALGORITHM_GRAPH);
        cm_scope_add(c, input->name, CM_DEF_INPUT)->type = input->type;
    }
}

/* Takes in one initializer, dense or sparse; NULL if it cannot have a name. */
static struct cm_def *define_initializer(struct cm_checker *c, const struct cm_model_place *here,
                                         enum cm_graph_role role, struct cm_str name, unsigned kind)
{
    if (!name.size) {
        cm_report(c, CM_RULE_CK13, here, "has no name");
        return NULL;
    }
    const struct cm_def *old = cm_scope_find(c->scope, name);
    const bool is_input = old && old->depth == c->scope->depth && (old->kind & CM_DEF_INPUT);

    if (hides_outer(c, old))
        report_hiding(c, here, role == CM_ALGORITHM_GRAPH);
    if (old && old->depth == c->scope->depth && (old->kind & (CM_DEF_INITIALIZER | CM_DEF_SPARSE)))
        cm_report(c, CM_RULE_CK13, here, "another initializer of this graph has the same name");
    if (c->ir_version <= 3 && !is_input)
        cm_report_accepted(c, CM_RULE_CK14, here, role == CM_MAIN_GRAPH,
                           "is not among the graph's inputs, as IR version %lld asks",
                           (long long)c->ir_version);
    if (c->ir_version >= 4 && is_input && role == CM_NESTED_GRAPH)
        cm_report(c, CM_RULE_ST7, here, "is also an input of this nested graph");
    return cm_scope_add(c, name, kind);
}

static void examine_initializers(struct cm_checker *c, const struct cm_model_place *up,
                                 enum cm_graph_role role, const struct cm_graph_proto *graph)
{
    const char *why;

    for (size_t i = 0; i < graph->initializer.count; i++) {
        const struct cm_tensor_proto *tensor = &graph->initializer.items[i];
        const struct cm_model_place here =
            CM_PLACE_VALUE(up, "initializer", tensor->name, i, tensor);
        struct cm_def *def = define_initializer(c, &here, role, tensor->name, CM_DEF_INITIALIZER);

        cm_examine_tensor(c, &here, tensor);
        if (!def)
            continue;
        def->declared = tensor;
        if (def->type &&
            cm_type_conflicts_with_tensor(def->type, tensor->data_type, &tensor->dims, false, &why))
            cm_report(c, CM_RULE_ST18, &here, "the input of the same name has another %s", why);
    }
    if (graph->sparse_initializer.count)
        cm_report_newer(c, up, 6, "sparse initializers");
    for (size_t i = 0; i < graph->sparse_initializer.count; i++) {
        const struct cm_sparse_proto *sparse = &graph->sparse_initializer.items[i];
        const struct cm_str name = sparse->values ? sparse->values->name : CM_STR_NONE;
        const struct cm_model_place here =
            CM_PLACE_VALUE(up, "sparse_initializer", name, i, sparse);
        struct cm_def *def = define_initializer(c, &here, role, name, CM_DEF_SPARSE);

        cm_examine_sparse(c, &here, sparse);
        if (!def)
            continue;
        if (!def->declared)
            def->declared = sparse;
        if (def->type && sparse->values &&
            cm_type_conflicts_with_tensor(def->type, sparse->values->data_type, &sparse->dims, true,
                                          &why))
            cm_report(c, CM_RULE_ST18, &here, "the input of the same name has another %s", why);
    }
}

static bool is_own_result(const struct cm_node_proto *node, struct cm_str name)
{
    for (size_t o = 0; o < node->output.count; o++)
        if (cm_str_equal(node->output.items[o], name))
            return true;
    return false;
}

static void look_ahead(struct cm_checker *c, struct cm_made *made)
{
    struct cm_node_order order;

    made->is_known = true;
    for (size_t i = 0; i < made->nodes->count; i++)
        for (size_t o = 0; o < made->nodes->items[i].output.count; o++)
            cm_map_insert(&made->names, c->scratch, made->nodes->items[i].output.items[o], NULL);
    if (!made->is_body)
        made->can_sort = !cm_node_order(c->scratch, c->scratch, made->nodes, &order, NULL);
}

/* The list of nodes of which a later one makes the name: that of the graph or function at hand, or
 * of the graph of the model around it. */
static const struct cm_made *made_later(struct cm_checker *c, const struct cm_node_proto *node,
                                        struct cm_str name)
{
    for (struct cm_made *made = c->made; made; made = made->outer) {
        if (!made->is_known)
            look_ahead(c, made);
        if (!cm_map_find(&made->names, name))
            continue;
        if (made == c->made)
            return is_own_result(node, name) ? NULL : made;
        return made->can_sort ? made : NULL;
    }
    return NULL;
}

static void examine_reads(struct cm_checker *c, const struct cm_model_place *place,
                          const struct cm_node_proto *node)
{
    for (size_t i = 0; i < node->input.count; i++) {
        const struct cm_str name = node->input.items[i];

        if (!name.size || cm_scope_find(c->scope, name))
            continue;
        const bool in_function = c->function && c->scope->depth == 1;
        const struct cm_made *later = made_later(c, node, name);
        if (later)
            /* ONNX Runtime sorts graphs of the model, but no body of a node or function. */
            cm_report_accepted(c, in_function ? CM_RULE_CK73 : CM_RULE_CK15, place, later->can_sort,
                               "reads '%.*s', which a later node makes: the nodes are not in "
                               "topological order",
                               CM_STR_FMT(name));
        else if (in_function)
            cm_report(c, CM_RULE_CK73, place,
                      "reads '%.*s', which the function does not define before it",
                      CM_STR_FMT(name));
        else
            cm_report(c, CM_RULE_CK15, place, "reads '%.*s', which nothing before it defines",
                      CM_STR_FMT(name));
        if (!c->function)
            *CM_PUSH(c->scratch, &c->unresolved) = name;
    }
}

static void examine_writes(struct cm_checker *c, const struct cm_model_place *place,
                           const struct cm_node_proto *node)
{
    bool any = false;

    for (size_t i = 0; i < node->output.count; i++) {
        const struct cm_str name = node->output.items[i];
        const struct cm_def *old = name.size ? cm_scope_find(c->scope, name) : NULL;

        if (!name.size)
            continue;
        any = true;
        if (old && !is_apart(c, old) &&
            (old->depth == c->scope->depth || !(old->kind & CM_DEF_LOOSE))) {
            const bool in_function = c->function && c->scope->depth == 1;

            cm_report(c, in_function ? CM_RULE_CK73 : CM_RULE_CK16, place,
                      "writes '%.*s', which is already defined", CM_STR_FMT(name));
        }
        struct cm_def *def = cm_scope_add(c, name, CM_DEF_NODE);
        if (!def->producer)
            def->producer = node;
    }
    if (!any && (node->input.count || node->output.count)) /* else CK21 */
        cm_report(c, CM_RULE_ST10, place, "has no output with a name");
}

void cm_examine_nodes(struct cm_checker *c, const struct cm_model_place *up,
                      enum cm_graph_role role, const struct cm_nodes *nodes)
{
    struct cm_made made = {.nodes = nodes, .outer = c->made, .is_body = role == CM_NESTED_GRAPH};
    struct cm_map names = {0};

    c->made = &made;
    for (size_t i = 0; i < nodes->count; i++) {
        const struct cm_node_proto *node = &nodes->items[i];
        const struct cm_model_place here = CM_PLACE_NODE(up, node, i);
        bool added = true;

        if (node->name.size)
            cm_map_insert(&names, c->scratch, node->name, &added);
        if (!added)
            cm_report(c, CM_RULE_ST10, &here, "another node of this graph has the same name");
        examine_reads(c, &here, node);
        cm_examine_node(c, &here, node);
        examine_writes(c, &here, node);
    }
    c->made = made.outer;
}

static void examine_outputs(struct cm_checker *c, const struct cm_model_place *up,
                            enum cm_graph_role role, const struct cm_graph_proto *graph,
                            struct cm_map *outputs)
{
    const bool complete = role == CM_MAIN_GRAPH || role == CM_ALGORITHM_GRAPH;

    for (size_t i = 0; i < graph->output.count; i++) {
        const struct cm_value_info_proto *output = &graph->output.items[i];
        const struct cm_model_place here = CM_PLACE_VALUE(up, "output", output->name, i, output);
        bool added;

        cm_examine_value_info(c, &here, output, complete);
        uint64_t *slot = cm_map_insert(outputs, c->scratch, output->name, &added);
        if (!added)
            cm_report(c, CM_RULE_ST9, &here, "another output of this graph has the same name");
        *slot = i + 1;
        if (!output->name.size)
            continue;
        /* An algorithm continues the inference graph, so what that defines counts. */
        if (!cm_scope_find_here(c->scope, output->name) &&
            !(role == CM_ALGORITHM_GRAPH && cm_scope_find(c->scope, output->name)))
            cm_report(c, CM_RULE_CK17, &here, "nothing in this graph defines it");
    }
}

static void examine_value_infos(struct cm_checker *c, const struct cm_model_place *up,
                                const struct cm_graph_proto *graph, const struct cm_map *outputs)
{
    struct cm_map seen = {0};
    const char *why;

    for (size_t i = 0; i < graph->value_info.count; i++) {
        const struct cm_value_info_proto *info = &graph->value_info.items[i];
        const struct cm_model_place here = CM_PLACE_VALUE(up, "value_info", info->name, i, info);
        const struct cm_def *def = cm_scope_find_here(c->scope, info->name);
        const uint64_t output = cm_map_get(outputs, info->name, 0);
        bool added;

        cm_map_insert(&seen, c->scratch, info->name, &added);
        if (!info->name.size)
            cm_report(c, CM_RULE_ST8, &here, "has no name");
        else if (!added)
            cm_report(c, CM_RULE_ST8, &here, "there is another entry for the same name");
        else if (!def)
            cm_report(c, CM_RULE_ST8, &here, "the graph defines no such value");
        cm_report_repeated_keys(c, CM_RULE_ST5, &here, &info->metadata_props);
        if (!info->type)
            continue;
        cm_examine_type(c, CM_RULE_ST8, &here, info->type, false);
        if (def && def->type && cm_types_conflict(def->type, info->type, &why))
            cm_report(c, CM_RULE_ST8, &here, "the input of the same name has another %s", why);
        if (output && cm_types_conflict(graph->output.items[output - 1].type, info->type, &why))
            cm_report(c, CM_RULE_ST8, &here, "the output of the same name has another %s", why);
    }
}

static void examine_annotations(struct cm_checker *c, const struct cm_model_place *up,
                                const struct cm_graph_proto *graph)
{
    struct cm_map seen = {0};

    if (graph->quantization_annotation.count)
        cm_report_newer(c, up, 5, "quantization annotations");
    for (size_t i = 0; i < graph->quantization_annotation.count; i++) {
        const struct cm_annotation_proto *annotation = &graph->quantization_annotation.items[i];
        const struct cm_entries *entries = &annotation->quant_parameter_tensor_names;
        const struct cm_model_place here =
            CM_PLACE(up, "quantization_annotation", annotation->tensor_name, i);

        if (!cm_map_add(&seen, c->scratch, annotation->tensor_name))
            cm_report(c, CM_RULE_ST19, &here, "there is another annotation for this tensor");
        if (!cm_scope_find(c->scope, annotation->tensor_name))
            cm_report(c, CM_RULE_ST19, &here, "the graph has no such tensor");
        cm_report_repeated_keys(c, CM_RULE_ST19, &here, entries);
        for (size_t k = 0; k < entries->count; k++) {
            const struct cm_entry_proto *entry = &entries->items[k];

            if (!cm_str_is(entry->key, "SCALE_TENSOR") &&
                !cm_str_is(entry->key, "ZERO_POINT_TENSOR"))
                cm_report(c, CM_RULE_ST19, &here, "the key '%.*s' is not known",
                          CM_STR_FMT(entry->key));
            if (!cm_scope_find(c->scope, entry->value))
                cm_report(c, CM_RULE_ST19, &here,
                          "'%.*s' is '%.*s', and the graph has no such tensor",
                          CM_STR_FMT(entry->key), CM_STR_FMT(entry->value));
        }
    }
}

void cm_examine_open_graph(struct cm_checker *c, const struct cm_model_place *up,
                           enum cm_graph_role role, const struct cm_graph_proto *graph)
{
    const struct cm_model_place here = CM_PLACE(up, "graph", graph->name, SIZE_MAX);
    struct cm_map outputs = {0};

    if (!graph->name.size)
        cm_report_accepted(c, CM_RULE_CK10, &here, role == CM_MAIN_GRAPH, "has no name");
    cm_report_repeated_keys(c, CM_RULE_ST5, &here, &graph->metadata_props);
    if (graph->metadata_props.count)
        cm_report_newer(c, &here, 10, "metadata of parts of a model");
    examine_inputs(c, &here, role, graph);
    examine_initializers(c, &here, role, graph);
    cm_examine_nodes(c, &here, role, &graph->node);
    examine_outputs(c, &here, role, graph, &outputs);
    examine_value_infos(c, &here, graph, &outputs);
    examine_annotations(c, &here, graph);
}

void cm_examine_graph(struct cm_checker *c, const struct cm_model_place *up,
                      enum cm_graph_role role, const struct cm_graph_proto *graph)
{
    const size_t mark = cm_scope_enter(c->scope);

    cm_examine_open_graph(c, up, role, graph);
    cm_scope_leave(c->scope, mark);
}
