/* Messages to graphs: names become value numbers, nodes are typed as they are added, bodies of
 * control flow are built when their input types are known, calls of functions find their
 * definition. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/import_context.h"

#include "graph/builder.h"
#include "graph/called_functions.h"
#include "graph/node_order.h"
#include "graph/registry.h"
#include "onnx/defined_names.h"
#include "onnx/tensor_data.h"

/* A value by the name a node uses for it. Function bodies are closed: they see their own names, and
 * so do graphs nested in them. */
static cm_value find_value(const struct cm_import_context *context, const struct cm_graph *graph,
                           struct cm_str name)
{
    if (!context->scope)
        return cm_graph_find(graph, name);
    for (const struct cm_import_scope *scope = context->scope; scope; scope = scope->outer) {
        const uint64_t *found = cm_map_find(&scope->names, name);
        if (found)
            return (cm_value)*found;
    }
    return 0;
}

/* A formal parameter of the function that the call leaves out. */
static bool is_absent(const struct cm_import_context *context, struct cm_str name)
{
    for (const struct cm_import_scope *scope = context->scope; scope; scope = scope->outer) {
        const uint64_t *found = cm_map_find(&scope->names, name);
        if (found)
            return *found == 0;
    }
    return false;
}

static enum cm_status find_operands(struct cm_import_context *context, const struct cm_graph *graph,
                                    const struct cm_strs *names, cm_value **out,
                                    struct cm_error *err)
{
    cm_value *values = CM_NEW_ARRAY(context->module->arena, cm_value, names->count);
    for (size_t i = 0; i < names->count; i++) {
        const struct cm_str name = names->items[i];
        if (name.size && cm_import_is_poisoned(context, graph, name))
            return cm_fail(err, CM_BAD_MODEL, "reads '%.*s', which could not be computed",
                           CM_STR_FMT(name));
        values[i] = find_value(context, graph, name);
        if (values[i] || !name.size || is_absent(context, name))
            continue;
        context->misses_name = true;
        return cm_fail(err, CM_BAD_MODEL, "reads '%.*s', which nothing before it defines",
                       CM_STR_FMT(name));
    }
    *out = values;
    return CM_OK;
}

static void tell_name(const struct cm_import_context *context, struct cm_str name, cm_value value)
{
    if (context->told && context->told->defines && context->owner)
        context->told->defines(context->told->defines_arg, context->owner, name, value);
}

void cm_import_define(struct cm_import_context *context, cm_value value, struct cm_str name)
{
    if (!name.size)
        return;
    tell_name(context, name, value);
    if (context->scope)
        *cm_map_insert(&context->scope->names, context->module->arena, name, NULL) = value;
    else
        cm_value_set_name(context->module, value, name);
}

static enum cm_status check_free(const struct cm_import_context *context,
                                 const struct cm_graph *graph, struct cm_str name,
                                 struct cm_error *err)
{
    if (name.size && find_value(context, graph, name))
        return cm_fail(err, CM_BAD_MODEL, "'%.*s' is defined twice", CM_STR_FMT(name));
    return CM_OK;
}

/* Inputs and initializers of a body may hide a name of a graph around: against ONNX's rules, but
 * its own checker lets it pass, and what it means is clear. */
static enum cm_status check_free_here(const struct cm_import_context *context,
                                      const struct cm_graph *graph, struct cm_str name,
                                      struct cm_error *err)
{
    const struct cm_map *here = context->scope ? &context->scope->names : &graph->names;
    if (name.size && cm_map_find(here, name))
        return cm_fail(err, CM_BAD_MODEL, "'%.*s' is defined twice", CM_STR_FMT(name));
    return CM_OK;
}

/* What attributes name is read, so it becomes operands behind the given ones, in this order. */
static enum cm_status add_named(struct cm_import_context *context, const struct cm_graph *graph,
                                struct cm_node_spec *spec, struct cm_error *err)
{
    struct cm_arena *arena = context->module->arena;
    struct cm_strs names = {NULL, 0};
    const char *const *naming = cm_naming_attributes(spec->domain, spec->op_type);
    for (; naming && *naming; naming++) {
        for (size_t a = 0; a < spec->n_attributes; a++) {
            const struct cm_attribute_proto *attr = &spec->attributes[a];
            if (!cm_str_is(attr->name, *naming))
                continue;
            if (attr->type == CM_ATTR_STRING)
                *CM_LIST_ADD(arena, &names) = attr->s;
            for (size_t s = 0; s < attr->strings.count; s++)
                *CM_LIST_ADD(arena, &names) = attr->strings.items[s];
        }
    }
    if (names.count == 0)
        return CM_OK;
    cm_value *named;
    CM_TRY(find_operands(context, graph, &names, &named, err));
    cm_value *all = CM_NEW_ARRAY(arena, cm_value, spec->n_inputs + names.count);
    memcpy(all, spec->inputs, spec->n_inputs * sizeof *all);
    memcpy(all + spec->n_inputs, named, names.count * sizeof *all);
    spec->inputs = all;
    spec->n_inputs += names.count;
    return CM_OK;
}

/* The node as the builder takes it. */
static enum cm_status read_node(struct cm_import_context *context, struct cm_graph *graph,
                                const struct cm_node_proto *proto, struct cm_node_spec *spec,
                                struct cm_error *err)
{
    struct cm_arena *arena = context->module->arena;
    cm_value *inputs = NULL;
    CM_TRY(find_operands(context, graph, &proto->input, &inputs, err));
    bool *wanted = CM_NEW_ARRAY(arena, bool, proto->output.count);
    for (size_t i = 0; i < proto->output.count; i++) {
        wanted[i] = proto->output.items[i].size != 0;
        CM_TRY(check_free(context, graph, proto->output.items[i], err));
    }
    *spec = (struct cm_node_spec){.domain = proto->domain,
                                  .op_type = proto->op_type,
                                  .overload = proto->overload,
                                  .name = proto->name,
                                  .inputs = inputs,
                                  .n_inputs = proto->input.count,
                                  .n_outputs = proto->output.count,
                                  .wanted = wanted,
                                  .function = cm_import_find_function(context, proto)};
    if (!spec->function) {
        spec->version = cm_import_version(context, proto->domain);
        if (!spec->version) {
            cm_import_is_missing(context, proto);
            return cm_fail(err, CM_BAD_MODEL, "domain '%.*s' is not imported",
                           CM_STR_FMT(proto->domain));
        }
    }
    cm_import_attributes(context, proto, spec);
    return add_named(context, graph, spec, err);
}

/* Did one node become one node, with the same operands and results? */
static bool is_one_for_one(const struct cm_node *made, const struct cm_node *before,
                           const struct cm_node_proto *proto, const cm_value *given,
                           const cm_value *outputs)
{
    if (made->next != before)
        return false;
    for (size_t i = 0; i < proto->input.count; i++)
        if (cm_node_input(made, (int)i) != given[i])
            return false;
    for (size_t o = 0; o < proto->output.count; o++)
        if (cm_node_output(made, (int)o) != outputs[o])
            return false;
    return true;
}

/* What was made, between after and before, remembers what it was made of: given were its operands,
 * outputs are what the file's are now. from: the file's version; NULL: it is adopted. */
static void set_origin(struct cm_graph *graph, const struct cm_node *after,
                       const struct cm_node *before, const struct cm_node_proto *proto,
                       const struct cm_schema *from, const cm_value *given, const cm_value *outputs)
{
    struct cm_node *made = after ? after->next : graph->first;
    if (!made || made == before)
        return;
    for (size_t i = 0; i < proto->attribute.count; i++)
        if (proto->attribute.items[i].ref_attr_name.size)
            return; /* means nothing outside its function */
    if ((from || made->function) && is_one_for_one(made, before, proto, given, outputs))
        cm_node_set_origin(made, proto);
    else
        cm_group_set_origin(made, before, proto, from ? from->since_version : 0, given, outputs);
}

static enum cm_status import_node(struct cm_import_context *context, struct cm_graph *graph,
                                  struct cm_node *before, const struct cm_node_proto *proto,
                                  struct cm_error *err)
{
    struct cm_node_spec spec;
    CM_TRY(read_node(context, graph, proto, &spec, err));
    struct cm_operator found = {0};
    if (!spec.function)
        found = cm_module_operator(context->module, cm_domain_plain(spec.domain), spec.op_type,
                                   spec.version);
    const struct cm_schema *from = found.schema;
    /* A deprecated version says no more than that. In a model that is judged, results get the types
     * of the version before it, as ONNX's inference gives them. */
    if (from && from->deprecated && context->upgrade && cm_import_judges(context)) {
        const struct cm_schema *last =
            cm_module_operator(context->module, cm_domain_plain(spec.domain), spec.op_type,
                               from->since_version - 1)
                .schema;
        from = last ? last : from;
    }
    const bool adopted = !from && !spec.function && cm_import_adopts(context, proto);
    if (!from && !spec.function && !adopted)
        cm_import_is_missing(context, proto);
    if (from && found.op && found.op->effects & CM_REGION)
        return cm_fail(err, CM_BAD_MODEL, "regions are made in memory, a file cannot hold one");
    const struct cm_node *after = before ? before->prev : graph->last;
    if (from && cm_import_judges(context))
        CM_TRY(cm_import_judge_operands(context, proto, &spec, from, err));
    const cm_value *given = spec.inputs;
    const size_t n_given = spec.n_inputs; /* more where attributes name values */
    cm_value *outputs;
    if (adopted || (from != found.newest && context->upgrade)) {
        struct cm_builder builder = {.graph = graph, .before = before, .err = err};
        spec.original_version = from ? from->since_version : 0;
        outputs = CM_NEW_ARRAY(context->module->arena, cm_value, spec.n_outputs);
        CM_TRY(context->upgrade(&builder, &spec, from, outputs));
        CM_TRY(builder.status);
    } else {
        struct cm_node *node;
        CM_TRY(cm_graph_add_node(graph, before, &spec, &node, err));
        outputs = node->outputs;
    }
    /* Of another domain, others read and write its tensors in a form of their own. */
    const bool has_own_form = adopted && cm_domain_plain(proto->domain).size;
    if (n_given == proto->input.count && !has_own_form)
        set_origin(graph, after, before, proto, from, given, outputs);
    if (cm_import_judges(context))
        CM_TRY(cm_import_judge_results(context, proto, from, outputs, err));
    for (size_t i = 0; i < proto->output.count; i++)
        if (outputs[i])
            cm_import_define(context, outputs[i], proto->output.items[i]);
    if (context->told && context->told->built)
        context->told->built(context->told->built_arg, proto, graph, context->call, given, outputs);
    return CM_OK;
}

/* The reason without the operator that cm_graph_add_node puts before it: the place names it. */
static const char *plain_reason(const char *text, struct cm_str op_type)
{
    const bool same = op_type.size && strncmp(text, op_type.data, op_type.size) == 0 &&
                      strncmp(text + op_type.size, ": ", 2) == 0;
    return same ? text + op_type.size + 2 : text;
}

static enum cm_status import_graph(struct cm_import_context *context, struct cm_graph *graph,
                                   const struct cm_graph_proto *proto, struct cm_error *err);

/* The branches of an If that failed before it came to them, for what they have to say. Bodies with
 * inputs have types only their node could tell. */
static enum cm_status visit_branches(struct cm_import_context *context, struct cm_graph *graph,
                                     const struct cm_node_proto *node, struct cm_error *err)
{
    for (size_t a = 0; a < node->attribute.count; a++) {
        const struct cm_graph_proto *body = node->attribute.items[a].g;
        if (!body || body->input.count || !cm_import_visits(context, body))
            continue;
        const struct cm_import_place place = {node, node->attribute.items[a].name, context->place};
        struct cm_import_scope *outer = context->scope;
        struct cm_import_scope inner = {.outer = outer, .id = cm_import_next_scope(context)};
        context->place = &place;
        context->scope = outer ? &inner : NULL;
        cm_import_begin(context);
        const enum cm_status status =
            import_graph(context, cm_graph_new(context->module, graph, body->name), body, err);
        context->scope = outer;
        context->place = place.outer;
        if (status && !cm_import_may_go_on(context, status))
            return status; /* else it is told: a body fails as a whole when a part of it did */
    }
    return CM_OK;
}

/* The name cannot be made, or is made twice: then neither value is meant for certain. */
static void poison(struct cm_import_context *context, struct cm_graph *graph, struct cm_str name)
{
    const cm_value known = context->scope ? 0 : (cm_value)cm_map_get(&graph->names, name, 0);
    if (known)
        cm_value_set_name(context->module, known, CM_STR_NONE);
    cm_import_poison(context, graph, name);
}

/* Leaves a node out that could not be built, and tells why, where the rest may still be looked at.
 */
static enum cm_status leave_out(struct cm_import_context *context, struct cm_graph *graph,
                                const struct cm_node_proto *proto, enum cm_status status,
                                struct cm_error *err)
{
    const struct cm_str what = cm_import_name_node(context->module->arena, proto);
    if (!cm_import_may_go_on(context, status))
        return cm_error_context(err, status, "%s", cm_str_text(what));
    cm_import_note_failure(context, status, what, plain_reason(err->text, proto->op_type), proto);
    for (size_t i = 0; i < proto->output.count; i++)
        if (!cm_import_stand_in(context, graph, proto->output.items[i]))
            poison(context, graph, proto->output.items[i]);
    return visit_branches(context, graph, proto, err);
}

static bool has_bodies(const struct cm_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++)
        for (size_t a = 0; a < nodes->items[i].attribute.count; a++)
            if (nodes->items[i].attribute.items[a].g)
                return true;
    return false;
}

static enum cm_status find_order(struct cm_import_context *context, const struct cm_nodes *nodes,
                                 const size_t **out, struct cm_error *err)
{
    struct cm_arena scratch;
    struct cm_node_order order;
    cm_arena_init(&scratch, context->module->arena->guard);
    const enum cm_status status =
        cm_node_order(context->module->arena, &scratch, nodes, &order, err);
    cm_arena_release(&scratch);
    *out = order.items;
    if (order.items)
        context->module->had |= CM_HAD_LATER_NODES;
    return status;
}

/* The nodes of a graph or function, each after those it reads. Whether they are in order is asked
 * when a name is missing; with bodies, whose names are looked for further in, before the first.
 * Sorting leaves nodes before the first that reads a later one where they are. */
static enum cm_status import_nodes(struct cm_import_context *context, struct cm_graph *graph,
                                   struct cm_node *before, const struct cm_nodes *nodes,
                                   struct cm_error *err)
{
    const struct cm_node_proto *outer = context->node;
    const size_t *order = NULL;
    bool asked = has_bodies(nodes);
    if (asked)
        CM_TRY(find_order(context, nodes, &order, err));
    for (size_t i = 0; i < nodes->count; i++) {
        const struct cm_node_proto *proto = &nodes->items[order ? order[i] : i];
        cm_import_begin(context);
        context->node = proto;
        context->misses_name = false;
        const enum cm_status status = import_node(context, graph, before, proto, err);
        context->node = outer;
        if (status && context->misses_name && !asked) {
            asked = true;
            CM_TRY(find_order(context, nodes, &order, err));
            if (order) {
                i--; /* another node stands here now */
                continue;
            }
        }
        if (status)
            CM_TRY(leave_out(context, graph, proto, status, err));
    }
    return CM_OK;
}

/* The model's graph or one that continues it, rather than a body? */
static bool is_outermost(const struct cm_import_context *context, const struct cm_graph *graph)
{
    return !graph->parent || (context->inner && context->options &&
                              context->options->inner_graphs[context->inner - 1] == graph);
}

static enum cm_status import_initializer(struct cm_import_context *context, struct cm_graph *graph,
                                         const struct cm_tensor_proto *tensor, struct cm_error *err)
{
    struct cm_module *module = context->module;
    const struct cm_map *here = context->scope ? &context->scope->names : &graph->names;
    const cm_value known = (cm_value)cm_map_get(here, tensor->name, 0);
    struct cm_value_def *input = known ? cm_value_get(module, known) : NULL;
    if (!input || input->role != CM_ROLE_INPUT || input->initializer)
        CM_TRY(check_free_here(context, graph, tensor->name, err));
    struct cm_shape shape;
    CM_TRY(cm_tensor_proto_shape(tensor, &shape, err));
    if (!cm_dtype_is_valid(tensor->data_type))
        return cm_fail(err, CM_BAD_MODEL, "it has element type %d", tensor->data_type);
    if (!input && context->options && context->options->opens && is_outermost(context, graph) &&
        context->options->opens(context->options->opens_arg, tensor)) {
        const struct cm_tensor like =
            cm_tensor_borrow((enum cm_dtype)tensor->data_type, &shape, NULL);
        const cm_value opened =
            cm_graph_add_input(graph, tensor->name, cm_type_of_tensor(module->arena, &like));
        input = cm_value_get(module, opened);
    }
    if (input) { /* an input with a default: what is fed decides, so nothing is known of it */
        if (input->fact.type->kind != CM_KIND_TENSOR ||
            (int32_t)input->fact.type->dtype != tensor->data_type)
            return cm_fail(err, CM_BAD_MODEL,
                           "it has one type as input and another as initializer");
        input->initializer = tensor;
        return CM_OK;
    }
    const struct cm_tensor view = cm_tensor_borrow((enum cm_dtype)tensor->data_type, &shape, NULL);
    const cm_value value = cm_graph_add_constant(graph, CM_STR_NONE, &view);
    struct cm_value_def *def = cm_value_get(module, value);
    def->fact.constant = NULL; /* read when somebody asks */
    def->initializer = tensor;
    cm_import_define(context, value, tensor->name);
    return CM_OK;
}

/* The value of this name cannot be made: goes on without it where that is wanted. */
static enum cm_status give_up(struct cm_import_context *context, struct cm_graph *graph,
                              const char *kind, struct cm_str name, const void *subject,
                              enum cm_status status, struct cm_error *err)
{
    if (!status)
        return CM_OK;
    if (!cm_import_may_go_on(context, status))
        return cm_error_context(err, status, "%s '%.*s'", kind, CM_STR_FMT(name));
    cm_import_note_failure(
        context, status,
        cm_arena_printf(context->module->arena, "%s '%.*s'", kind, CM_STR_FMT(name)), err->text,
        subject);
    poison(context, graph, name);
    return CM_OK;
}

/* A sparse initializer is what a Constant of the same sparse tensor gives. */
static enum cm_status import_sparse(struct cm_import_context *context, struct cm_graph *graph,
                                    struct cm_sparse_proto *sparse, struct cm_error *err)
{
    struct cm_arena *arena = context->module->arena;
    struct cm_attribute_proto *attribute = CM_NEW(arena, struct cm_attribute_proto);
    struct cm_node *node;
    if (!sparse->values)
        return cm_fail(err, CM_BAD_MODEL, "it has no values");
    CM_TRY(check_free_here(context, graph, sparse->values->name, err));
    *attribute = cm_attr_sparse(arena, "sparse_value", sparse);
    const struct cm_node_spec spec = {
        .op_type = CM_STR("Constant"), .n_outputs = 1, .attributes = attribute, .n_attributes = 1};
    CM_TRY(cm_graph_add_node(graph, NULL, &spec, &node, err));
    cm_import_define(context, node->outputs[0], sparse->values->name);
    return CM_OK;
}

static enum cm_status import_initializers(struct cm_import_context *context, struct cm_graph *graph,
                                          const struct cm_graph_proto *proto,
                                          const struct cm_map *hidden, struct cm_error *err)
{
    for (size_t i = 0; i < proto->initializer.count; i++) {
        const struct cm_tensor_proto *tensor = &proto->initializer.items[i];
        if (hidden && cm_map_find(hidden, tensor->name))
            continue;
        cm_import_begin(context);
        const enum cm_status status = import_initializer(context, graph, tensor, err);
        CM_TRY(give_up(context, graph, "initializer", tensor->name, tensor, status, err));
    }
    for (size_t i = 0; i < proto->sparse_initializer.count; i++) {
        struct cm_sparse_proto *sparse = &proto->sparse_initializer.items[i];
        const struct cm_str name = sparse->values ? sparse->values->name : CM_STR("");
        if (hidden && cm_map_find(hidden, name))
            continue;
        cm_import_begin(context);
        const enum cm_status status = import_sparse(context, graph, sparse, err);
        CM_TRY(give_up(context, graph, "sparse initializer", name, sparse, status, err));
    }
    return CM_OK;
}

/* Those of graphs around the model's, but for names that it defines itself. */
static enum cm_status import_around(struct cm_import_context *context, struct cm_graph *graph,
                                    const struct cm_graph_proto *own, struct cm_error *err)
{
    const struct cm_import_options *options = context->options;
    if (!options || !options->n_around)
        return CM_OK;
    const struct cm_map hidden = cm_graph_defined(context->module->arena, own);
    for (size_t i = 0; i < options->n_around; i++)
        CM_TRY(import_initializers(context, graph, options->around[i], &hidden, err));
    return CM_OK;
}

static enum cm_status import_outputs(struct cm_import_context *context, struct cm_graph *graph,
                                     const struct cm_graph_proto *proto, struct cm_error *err)
{
    cm_value *outputs = CM_NEW_ARRAY(context->module->arena, cm_value, proto->output.count);
    cm_import_begin(context);
    for (size_t i = 0; i < proto->output.count; i++) {
        if (cm_import_is_poisoned(context, graph, proto->output.items[i].name))
            return cm_fail(err, CM_BAD_MODEL, "output '%.*s' could not be computed",
                           CM_STR_FMT(proto->output.items[i].name));
        outputs[i] = find_value(context, graph, proto->output.items[i].name);
        if (!outputs[i])
            return cm_fail(err, CM_BAD_MODEL, "output '%.*s' is never computed",
                           CM_STR_FMT(proto->output.items[i].name));
    }
    cm_graph_set_outputs(graph, outputs, proto->output.count);
    return CM_OK;
}

static const struct cm_type *without_sizes(struct cm_module *module, const struct cm_type *type)
{
    struct cm_dim *dims = CM_NEW_ARRAY(module->arena, struct cm_dim, (size_t)type->rank);

    for (int i = 0; i < type->rank; i++)
        dims[i] = CM_DIM_ANY;
    return cm_type_tensor(module->arena, type->dtype, type->rank, dims);
}

/* Declared types of results, kept by name until the node that makes them is added. */
static enum cm_status note_declared(struct cm_import_context *context, struct cm_graph *graph,
                                    const struct cm_value_infos *infos, struct cm_error *err)
{
    struct cm_module *module = context->module;
    for (size_t i = 0; i < infos->count; i++) {
        const struct cm_value_info_proto *info = &infos->items[i];
        const cm_value value = find_value(context, graph, info->name);
        if (!value || !info->type || cm_value_get(module, value)->graph != graph)
            continue;
        const struct cm_type *type;
        if (cm_type_from_proto(module->arena, module->symbols, info->type, &type, err))
            continue; /* the checker's business; a hint we cannot read is no hint */
        struct cm_value_def *def = cm_value_get(module, value);
        if (context->options && context->options->ranks_only && type->kind == CM_KIND_TENSOR &&
            type->rank > 0)
            type = without_sizes(module, type);
        def->declared = type;
        const struct cm_type *both = cm_type_meet(module->arena, def->fact.type, type);
        if (both && !cm_type_equal(both, def->fact.type)) {
            const struct cm_fact fact = {both, def->fact.constant, def->fact.known};
            cm_value_set_fact(module, value, &fact);
        }
    }
    return cm_graph_retype(graph, err);
}

static enum cm_status import_graph(struct cm_import_context *context, struct cm_graph *graph,
                                   const struct cm_graph_proto *proto, struct cm_error *err)
{
    const void *owner = context->owner;
    if (context->depth >= CM_NESTING_MAX)
        return cm_fail(err, CM_LIMIT, "graphs nest deeper than %d", CM_NESTING_MAX);
    context->depth++;
    struct cm_import_declared declared = {.infos = {&proto->value_info, &proto->output}};
    struct cm_import_declared *outer = context->declared;
    context->declared = &declared;
    context->owner = proto;
    cm_map_reserve(&graph->names, context->module->arena,
                   proto->input.count + proto->initializer.count + proto->node.count);
    enum cm_status status = import_initializers(context, graph, proto, NULL, err);
    if (!status && !graph->parent)
        status = import_around(context, graph, proto, err);
    if (!status)
        status = import_nodes(context, graph, NULL, &proto->node, err);
    context->depth--;
    context->declared = outer;
    context->owner = owner;
    CM_TRY(status);
    if (!is_outermost(context, graph) || !context->options || !context->options->partial)
        CM_TRY(import_outputs(context, graph, proto, err));
    if (cm_import_judges(context)) {
        cm_import_judge_declared(context, graph, &proto->value_info, "value_info");
        cm_import_judge_declared(context, graph, &proto->output, "output");
        return CM_OK;
    }
    CM_TRY(note_declared(context, graph, &proto->value_info, err));
    return note_declared(context, graph, &proto->output, err);
}

static enum cm_status build_body(struct cm_import_context *context, struct cm_node *node,
                                 struct cm_body_ref *body, const struct cm_fact *args,
                                 size_t n_args, struct cm_error *err)
{
    const struct cm_graph_proto *proto = body->proto;
    struct cm_graph *graph = cm_graph_new(node->module, node->graph, proto->name);
    if (proto->input.count != n_args)
        return cm_fail(err, CM_BAD_MODEL, "body '%.*s' has %zu inputs, needs %zu",
                       CM_STR_FMT(body->attribute), proto->input.count, n_args);
    graph->owner = node;
    struct cm_import_scope *outer = context->scope;
    struct cm_import_scope inner = {.outer = outer, .id = cm_import_next_scope(context)};
    if (outer)
        context->scope = &inner;
    const void *owner = context->owner;
    enum cm_status status = CM_OK;
    context->owner = proto;
    for (size_t i = 0; i < n_args && !status; i++) {
        status = check_free_here(context, graph, proto->input.items[i].name, err);
        if (cm_import_judges(context))
            cm_import_judge_argument(context, &proto->input.items[i], args[i].type);
        const cm_value value = cm_graph_add_input(graph, CM_STR_NONE, args[i].type);
        cm_value_get(node->module, value)->fact = args[i];
        cm_import_define(context, value, proto->input.items[i].name);
    }
    context->owner = owner;
    body->graph = graph;
    cm_import_visits(context, proto);
    const struct cm_import_place place = {context->node, body->attribute, context->place};
    if (context->node)
        context->place = &place;
    if (!status)
        status = import_graph(context, graph, proto, err);
    context->place = place.outer;
    context->scope = outer;
    if (status)
        body->graph = NULL;
    return cm_error_context(err, status, "body '%.*s'", CM_STR_FMT(body->attribute));
}

enum cm_status cm_import_function(struct cm_graph *graph, struct cm_node *before,
                                  const struct cm_function_proto *function,
                                  const struct cm_node *call, const cm_value *actuals,
                                  cm_value *results, struct cm_error *err)
{
    struct cm_module *module = graph->module;
    struct cm_import_context *outer = module->context;
    struct cm_import_scope scope = {.outer = NULL};
    struct cm_import_declared declared = {.infos = {&function->value_info, NULL}};
    struct cm_import_context context = {.module = module,
                                        .model = outer ? outer->model : NULL,
                                        .imports = &function->opset_import,
                                        .functions =
                                            call->function && outer ? outer->functions : NULL,
                                        .upgrade = outer ? outer->upgrade : NULL,
                                        .adopts = outer ? outer->adopts : NULL,
                                        .told = call->function && outer ? outer->told : NULL,
                                        .scope = &scope,
                                        .function = function,
                                        .call = call,
                                        .depth = outer ? outer->depth : 0,
                                        .declared = &declared,
                                        .owner = call->function ? function : NULL,
                                        /* our own bodies succeed or fail as a whole */
                                        .report = call->function && outer ? outer->report : NULL};

    if ((size_t)call->n_inputs > function->input.count ||
        (size_t)call->n_outputs > function->output.count)
        return cm_fail(
            err, CM_BAD_MODEL, "the call has %d inputs and %d outputs, the function %zu and %zu",
            call->n_inputs, call->n_outputs, function->input.count, function->output.count);
    for (size_t i = 0; i < function->input.count; i++)
        *cm_map_insert(&scope.names, module->arena, function->input.items[i], NULL) =
            i < (size_t)call->n_inputs ? actuals[i] : 0;
    for (size_t i = 0; i < (size_t)call->n_inputs; i++)
        if (actuals[i])
            tell_name(&context, function->input.items[i], actuals[i]);
    scope.id = cm_import_next_scope(&context);
    module->context = &context;
    module->build_body = build_body; /* a module built by hand had none yet */
    const enum cm_status status = import_nodes(&context, graph, before, &function->node, err);
    module->context = outer;
    CM_TRY(cm_error_context(err, status, "function '%.*s'", CM_STR_FMT(function->name)));
    for (int o = 0; o < call->n_outputs; o++) {
        const struct cm_str name = function->output.items[o];
        results[o] = (cm_value)cm_map_get(&scope.names, name, 0);
        if (!results[o] && cm_import_is_poisoned(&context, graph, name))
            return cm_fail(err, CM_BAD_MODEL, "output '%.*s' could not be computed",
                           CM_STR_FMT(name));
    }
    return CM_OK;
}

static enum cm_status import_inputs(struct cm_import_context *context, struct cm_graph *graph,
                                    const struct cm_graph_proto *proto, struct cm_error *err)
{
    struct cm_module *module = context->module;
    struct cm_map constants = {0};
    /* Before IR version 4 every initializer had to be listed as an input, so being one says
     * nothing: they are constants. */
    const bool none = context->model->ir_version < 4 || context->options->constant_defaults;
    for (size_t i = 0; none && i < proto->initializer.count; i++)
        cm_map_insert(&constants, module->arena, proto->initializer.items[i].name, NULL);
    for (size_t i = 0; i < proto->input.count; i++) {
        const struct cm_value_info_proto *info = &proto->input.items[i];
        if (cm_map_find(&constants, info->name))
            continue;
        const struct cm_type *type;
        cm_import_begin(context);
        enum cm_status status = check_free(context, graph, info->name, err);
        if (!status)
            status = cm_type_from_proto(module->arena, module->symbols, info->type, &type, err);
        CM_TRY(give_up(context, graph, "input", info->name, info, status, err));
        if (status)
            continue;
        const cm_value value = cm_graph_add_input(graph, info->name, type);
        cm_value_get(module, value)->fact.type = cm_value_symbolic(module, value, type);
    }
    return CM_OK;
}

size_t cm_import_parts(const struct cm_import_context *context,
                       const struct cm_graph_proto *parts[2])
{
    const struct cm_graph_proto *appended = context->options ? context->options->appended : NULL;
    parts[0] = context->model->graph;
    parts[1] = appended;
    return appended ? 2 : 1;
}

/* Each reads names of the model's graph as a body would. */
static enum cm_status import_inner(struct cm_import_context *context, struct cm_graph *graph,
                                   struct cm_error *err)
{
    const struct cm_import_options *options = context->options;
    for (size_t i = 0; i < options->n_inner; i++) {
        struct cm_graph *inner = cm_graph_new(context->module, graph, options->inner[i]->name);
        options->inner_graphs[i] = inner;
        context->inner = i + 1;
        CM_TRY(import_inputs(context, inner, options->inner[i], err));
        CM_TRY(import_graph(context, inner, options->inner[i], err));
    }
    context->inner = 0;
    return CM_OK;
}

enum cm_status cm_module_import(struct cm_module *module, const struct cm_model_proto *model,
                                const struct cm_import_options *options, struct cm_graph **out,
                                struct cm_error *err)
{
    static const struct cm_import_options usual;
    if (!model->graph)
        return cm_fail(err, CM_BAD_MODEL, "the model has no graph");
    options = options ? options : &usual;
    /* The context stays with the module: calls expanded later need the model's functions too. */
    struct cm_map *functions = CM_NEW(module->arena, struct cm_map);
    *functions = cm_functions_by_key(module->arena, model);
    struct cm_import_context *context = CM_NEW(module->arena, struct cm_import_context);
    *context = (struct cm_import_context){.module = module,
                                          .model = model,
                                          .imports = &model->opset_import,
                                          .functions = functions,
                                          .upgrade = options->upgrade,
                                          .adopts = options->adopts,
                                          .options = options,
                                          .told = options};
    struct cm_error unread;
    err = err ? err : &unread;
    CM_TRY(cm_import_measure(context, err));
    struct cm_findings own = {.arena = module->arena};
    struct cm_import_report report = {.findings = options->findings ? options->findings : &own,
                                      .judge = options->judge,
                                      .lists_unsupported = options->lists_unsupported};
    context->report = &report;
    if (!report.judge || report.lists_unsupported) /* what nobody knows is not wrong */
        cm_import_list_missing(context);
    module->context = context;
    module->model = model;
    module->counts.imports++;
    module->build_body = build_body;
    struct cm_graph *graph = cm_graph_new(module, NULL, model->graph->name);
    const struct cm_graph_proto *parts[2];
    const size_t n_parts = cm_import_parts(context, parts);
    enum cm_status status = CM_OK;
    for (size_t i = 0; i < n_parts && !status; i++) {
        status = import_inputs(context, graph, parts[i], err);
        if (!status)
            status = import_graph(context, graph, parts[i], err);
    }
    if (!status)
        status = import_inner(context, graph, err);
    const bool ended = status && !cm_import_is_listed(status);
    if (status && !ended)
        cm_import_note_failure(context, status, CM_STR(""), err->text, NULL);
    context->report = NULL; /* bodies that are expanded later fail where they are wanted */
    context->options = context->told = NULL;
    *out = graph;
    if (ended || options->partial)
        return ended ? status : CM_OK;
    const enum cm_status listed = cm_findings_fail(report.findings, err);
    return listed ? listed : status;
}
