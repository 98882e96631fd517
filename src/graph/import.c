/* Messages to graphs: names become value numbers, nodes are typed as they are added, bodies of
 * control flow are built when their input types are known, calls of functions find their
 * definition. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/import.h"

#include "graph/builder.h"
#include "graph/module.h"
#include "graph/registry.h"
#include "onnx/tensor_data.h"

/* Names inside a function body: they are not the caller's, so they are kept apart from the graph's.
 * Bodies of control flow in it nest. */
struct scope {
    struct cm_map names; /* an absent operand's name is there with value 0 */
    struct scope *outer;
};

/* What names and versions mean where a node stands. Functions bring their own; bodies inherit. */
struct cm_import_context {
    struct cm_module *module;
    const struct cm_model_proto *model;
    const struct cm_opsets *imports;
    struct cm_map *functions; /* "domain\0name\0overload" to struct cm_function_proto * */
    cm_upgrade_fn *upgrade;
    struct scope *scope; /* inside a function; NULL: names are those of the graphs */
    const struct cm_function_proto *function;
    const struct cm_node *call;
    int depth; /* of nested graphs */
};

enum { NESTING_MAX = 64 };

static struct cm_str function_key(struct cm_arena *arena, struct cm_str domain, struct cm_str name,
                                  struct cm_str overload)
{
    domain = cm_domain_plain(domain);
    struct cm_str key = {NULL, domain.size + name.size + overload.size + 2};
    char *room = cm_arena_alloc(arena, key.size + 1); /* zeroed, so the separators are there */
    if (domain.size)
        memcpy(room, domain.data, domain.size);
    if (name.size)
        memcpy(room + domain.size + 1, name.data, name.size);
    if (overload.size)
        memcpy(room + domain.size + name.size + 2, overload.data, overload.size);
    key.data = room;
    return key;
}

static const struct cm_function_proto *find_function(const struct cm_import_context *context,
                                                     const struct cm_node_proto *proto)
{
    if (!context->functions || context->functions->count == 0)
        return NULL;
    const struct cm_str key =
        function_key(context->module->arena, proto->domain, proto->op_type, proto->overload);
    return (const struct cm_function_proto *)(uintptr_t)cm_map_get(context->functions, key, 0);
}

static int64_t import_version(const struct cm_import_context *context, struct cm_str domain)
{
    domain = cm_domain_plain(domain);
    for (size_t i = 0; i < context->imports->count; i++)
        if (cm_str_equal(cm_domain_plain(context->imports->items[i].domain), domain))
            return context->imports->items[i].version;
    return 0;
}

/* A value by the name a node uses for it. Function bodies are closed: they see their own names, and
 * so do graphs nested in them. */
static cm_value find_value(const struct cm_import_context *context, const struct cm_graph *graph,
                           struct cm_str name)
{
    if (!context->scope)
        return cm_graph_find(graph, name);
    for (const struct scope *scope = context->scope; scope; scope = scope->outer) {
        const uint64_t *found = cm_map_find(&scope->names, name);
        if (found)
            return (cm_value)*found;
    }
    return 0;
}

/* A formal parameter of the function that the call leaves out. */
static bool is_absent(const struct cm_import_context *context, struct cm_str name)
{
    for (const struct scope *scope = context->scope; scope; scope = scope->outer) {
        const uint64_t *found = cm_map_find(&scope->names, name);
        if (found)
            return *found == 0;
    }
    return false;
}

static enum cm_status find_operands(const struct cm_import_context *context,
                                    const struct cm_graph *graph, const struct cm_strs *names,
                                    cm_value **out, struct cm_error *err)
{
    cm_value *values = CM_NEW_ARRAY(context->module->arena, cm_value, names->count);
    for (size_t i = 0; i < names->count; i++) {
        const struct cm_str name = names->items[i];
        values[i] = find_value(context, graph, name);
        if (!values[i] && name.size && !is_absent(context, name))
            return cm_fail(err, CM_BAD_MODEL, "reads '%.*s', which nothing before it defines",
                           CM_STR_FMT(name));
    }
    *out = values;
    return CM_OK;
}

static void define(struct cm_import_context *context, cm_value value, struct cm_str name)
{
    if (!name.size)
        return;
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

/* The attribute a reference stands for: the call's, the function's default, or none. */
static const struct cm_attribute_proto *resolve(const struct cm_import_context *context,
                                                const struct cm_attribute_proto *attr)
{
    if (!attr->ref_attr_name.size)
        return attr;
    if (!context->call)
        return NULL;
    for (size_t i = 0; i < context->call->n_attributes; i++)
        if (cm_str_equal(context->call->attributes[i].name, attr->ref_attr_name))
            return &context->call->attributes[i];
    for (size_t i = 0; i < context->function->attribute_proto.count; i++)
        if (cm_str_equal(context->function->attribute_proto.items[i].name, attr->ref_attr_name))
            return &context->function->attribute_proto.items[i];
    return NULL;
}

/* Schema defaults of the call count too, so that a text body of ours may refer to them. */
static bool resolve_default(const struct cm_import_context *context,
                            const struct cm_attribute_proto *attr, struct cm_attribute_proto *out)
{
    if (!context->call || !context->call->schema)
        return false;
    const struct cm_schema_attr *known =
        cm_schema_find_attr(context->call->schema, attr->ref_attr_name);
    if (!known || !known->preset)
        return false;
    struct cm_arena *arena = context->module->arena;
    const char *name = cm_arena_str(arena, attr->name).data;
    const struct cm_schema_default *preset = known->preset;
    switch (known->kind) {
    case CM_SCHEMA_INT:
        *out = cm_attr_int(arena, name, preset->i);
        return true;
    case CM_SCHEMA_FLOAT:
        *out = cm_attr_float(arena, name, preset->f);
        return true;
    case CM_SCHEMA_STRING:
        *out = cm_attr_str(arena, name, cm_str(preset->s));
        return true;
    case CM_SCHEMA_INTS:
        *out = cm_attr_ints(arena, name, preset->count, preset->ints);
        return true;
    case CM_SCHEMA_FLOATS:
        *out = cm_attr_floats(arena, name, preset->count, preset->floats);
        return true;
    default:
        return false;
    }
}

static void import_attributes(struct cm_import_context *context, const struct cm_node_proto *proto,
                              struct cm_node_spec *spec)
{
    struct cm_arena *arena = context->module->arena;
    spec->attributes = CM_NEW_ARRAY(arena, struct cm_attribute_proto, proto->attribute.count);
    spec->bodies = CM_NEW_ARRAY(arena, struct cm_body_ref, proto->attribute.count);
    for (size_t i = 0; i < proto->attribute.count; i++) {
        const struct cm_attribute_proto *given = &proto->attribute.items[i];
        const struct cm_attribute_proto *attr = resolve(context, given);
        struct cm_attribute_proto *to = &spec->attributes[spec->n_attributes];
        if (!attr) {
            if (resolve_default(context, given, to))
                spec->n_attributes++;
            continue;
        }
        if (attr->g) {
            spec->bodies[spec->n_bodies++] =
                (struct cm_body_ref){.attribute = given->name, .proto = attr->g};
            continue;
        }
        *to = *attr;
        to->name = given->name;
        spec->n_attributes++;
    }
}

/* Operators whose attributes name values: what they name is read, so it becomes operands behind the
 * given ones, in this order. */
static const struct {
    const char *domain, *op_type;
    const char *attributes[4];
} naming[] = {{"ai.onnx.preview.training", "Gradient", {"y", "xs", "zs", NULL}}};

static enum cm_status add_named(const struct cm_import_context *context,
                                const struct cm_graph *graph, struct cm_node_spec *spec,
                                struct cm_error *err)
{
    struct cm_arena *arena = context->module->arena;
    struct cm_strs names = {NULL, 0};
    for (size_t i = 0; i < CM_COUNT(naming); i++) {
        if (!cm_str_is(spec->domain, naming[i].domain) ||
            !cm_str_is(spec->op_type, naming[i].op_type))
            continue;
        for (const char *const *name = naming[i].attributes; *name; name++) {
            for (size_t a = 0; a < spec->n_attributes; a++) {
                const struct cm_attribute_proto *attr = &spec->attributes[a];
                if (!cm_str_is(attr->name, *name))
                    continue;
                if (attr->type == CM_ATTR_STRING)
                    *CM_LIST_ADD(arena, &names) = attr->s;
                for (size_t s = 0; s < attr->strings.count; s++)
                    *CM_LIST_ADD(arena, &names) = attr->strings.items[s];
            }
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
                                  .function = find_function(context, proto)};
    if (!spec->function) {
        spec->version = import_version(context, proto->domain);
        if (!spec->version)
            return cm_fail(err, CM_BAD_MODEL, "domain '%.*s' is not imported",
                           CM_STR_FMT(proto->domain));
    }
    import_attributes(context, proto, spec);
    return add_named(context, graph, spec, err);
}

static enum cm_status import_node(struct cm_import_context *context, struct cm_graph *graph,
                                  struct cm_node *before, const struct cm_node_proto *proto,
                                  struct cm_error *err)
{
    const struct cm_registry *registry = context->module->registry;
    struct cm_node_spec spec;
    CM_TRY(read_node(context, graph, proto, &spec, err));
    const struct cm_schema *from =
        spec.function ? NULL
                      : cm_registry_schema(registry, spec.domain, spec.op_type, spec.version);
    const struct cm_schema *newest =
        from ? cm_registry_schema(registry, spec.domain, spec.op_type, 0) : NULL;
    cm_value *outputs;
    if (from != newest && context->upgrade) {
        struct cm_builder builder = {.graph = graph, .before = before, .err = err};
        spec.original_version = from->since_version;
        outputs = CM_NEW_ARRAY(context->module->arena, cm_value, spec.n_outputs);
        CM_TRY(context->upgrade(&builder, &spec, from, outputs));
        CM_TRY(builder.status);
    } else {
        struct cm_node *node;
        CM_TRY(cm_graph_add_node(graph, before, &spec, &node, err));
        outputs = node->outputs;
    }
    for (size_t i = 0; i < proto->output.count; i++)
        if (outputs[i])
            define(context, outputs[i], proto->output.items[i]);
    return CM_OK;
}

static enum cm_status import_any_node(struct cm_import_context *context, struct cm_graph *graph,
                                      struct cm_node *before, const struct cm_node_proto *proto,
                                      struct cm_error *err)
{
    const enum cm_status status = import_node(context, graph, before, proto, err);
    if (proto->name.size)
        return cm_error_context(err, status, "node '%.*s' (%.*s)", CM_STR_FMT(proto->name),
                                CM_STR_FMT(proto->op_type));
    return cm_error_context(err, status, "node making '%.*s' (%.*s)",
                            CM_STR_FMT(proto->output.count ? proto->output.items[0] : CM_STR("")),
                            CM_STR_FMT(proto->op_type));
}

static enum cm_status import_initializers(struct cm_import_context *context, struct cm_graph *graph,
                                          const struct cm_graph_proto *proto, struct cm_error *err)
{
    struct cm_module *module = context->module;
    for (size_t i = 0; i < proto->initializer.count; i++) {
        const struct cm_tensor_proto *tensor = &proto->initializer.items[i];
        const struct cm_map *here = context->scope ? &context->scope->names : &graph->names;
        const cm_value input = (cm_value)cm_map_get(here, tensor->name, 0);
        if (input) { /* an input with a default: what is fed decides, so nothing is known of it */
            cm_value_get(module, input)->initializer = tensor;
            continue;
        }
        CM_TRY(check_free_here(context, graph, tensor->name, err));
        struct cm_shape shape;
        CM_TRY(cm_error_context(err, cm_tensor_proto_shape(tensor, &shape, err),
                                "initializer '%.*s'", CM_STR_FMT(tensor->name)));
        if (!cm_dtype_is_valid(tensor->data_type))
            return cm_fail(err, CM_BAD_MODEL, "initializer '%.*s' has element type %d",
                           CM_STR_FMT(tensor->name), tensor->data_type);
        const struct cm_tensor view =
            cm_tensor_borrow((enum cm_dtype)tensor->data_type, &shape, NULL);
        const cm_value value = cm_graph_add_constant(graph, CM_STR_NONE, &view);
        struct cm_value_def *def = cm_value_get(module, value);
        def->fact.constant = NULL; /* read when somebody asks */
        def->initializer = tensor;
        define(context, value, tensor->name);
    }
    if (proto->sparse_initializer.count)
        return cm_fail(err, CM_UNSUPPORTED, "sparse initializers cannot be run");
    return CM_OK;
}

static enum cm_status import_outputs(struct cm_import_context *context, struct cm_graph *graph,
                                     const struct cm_graph_proto *proto, struct cm_error *err)
{
    cm_value *outputs = CM_NEW_ARRAY(context->module->arena, cm_value, proto->output.count);
    for (size_t i = 0; i < proto->output.count; i++) {
        outputs[i] = find_value(context, graph, proto->output.items[i].name);
        if (!outputs[i])
            return cm_fail(err, CM_BAD_MODEL, "output '%.*s' is never computed",
                           CM_STR_FMT(proto->output.items[i].name));
    }
    cm_graph_set_outputs(graph, outputs, proto->output.count);
    return CM_OK;
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
    if (context->depth >= NESTING_MAX)
        return cm_fail(err, CM_LIMIT, "graphs nest deeper than %d", NESTING_MAX);
    context->depth++;
    enum cm_status status = import_initializers(context, graph, proto, err);
    for (size_t i = 0; i < proto->node.count && !status; i++)
        status = import_any_node(context, graph, NULL, &proto->node.items[i], err);
    context->depth--;
    CM_TRY(status);
    CM_TRY(import_outputs(context, graph, proto, err));
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
    struct scope *outer = context->scope;
    struct scope inner = {.outer = outer};
    if (outer)
        context->scope = &inner;
    enum cm_status status = CM_OK;
    for (size_t i = 0; i < n_args && !status; i++) {
        status = check_free_here(context, graph, proto->input.items[i].name, err);
        const cm_value value = cm_graph_add_input(graph, CM_STR_NONE, args[i].type);
        cm_value_get(node->module, value)->fact = args[i];
        define(context, value, proto->input.items[i].name);
    }
    body->graph = graph;
    if (!status)
        status = import_graph(context, graph, proto, err);
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
    struct scope scope = {.outer = NULL};
    struct cm_import_context context = {.module = module,
                                        .model = outer ? outer->model : NULL,
                                        .imports = &function->opset_import,
                                        .functions =
                                            call->function && outer ? outer->functions : NULL,
                                        .upgrade = outer ? outer->upgrade : NULL,
                                        .scope = &scope,
                                        .function = function,
                                        .call = call,
                                        .depth = outer ? outer->depth : 0};

    if ((size_t)call->n_inputs > function->input.count ||
        (size_t)call->n_outputs > function->output.count)
        return cm_fail(
            err, CM_BAD_MODEL, "the call has %d inputs and %d outputs, the function %zu and %zu",
            call->n_inputs, call->n_outputs, function->input.count, function->output.count);
    for (size_t i = 0; i < function->input.count; i++)
        *cm_map_insert(&scope.names, module->arena, function->input.items[i], NULL) =
            i < (size_t)call->n_inputs ? actuals[i] : 0;
    module->context = &context;
    module->build_body = build_body; /* a module built by hand had none yet */
    enum cm_status status = CM_OK;
    for (size_t i = 0; i < function->node.count && !status; i++)
        status = import_any_node(&context, graph, before, &function->node.items[i], err);
    module->context = outer;
    CM_TRY(cm_error_context(err, status, "function '%.*s'", CM_STR_FMT(function->name)));
    for (int o = 0; o < call->n_outputs; o++)
        results[o] = (cm_value)cm_map_get(&scope.names, function->output.items[o], 0);
    return CM_OK;
}

/* ---- everything that is missing, in one message ---- */

struct missing {
    struct cm_import_context *context;
    struct cm_map seen;
    struct cm_str list;
    size_t count;
};

static void look_for_missing(struct missing *missing, const struct cm_nodes *nodes, int depth)
{
    struct cm_import_context *context = missing->context;
    struct cm_arena *arena = context->module->arena;

    for (size_t i = 0; i < nodes->count && depth <= NESTING_MAX; i++) {
        const struct cm_node_proto *node = &nodes->items[i];
        for (size_t a = 0; a < node->attribute.count; a++)
            if (node->attribute.items[a].g)
                look_for_missing(missing, &node->attribute.items[a].g->node, depth + 1);
        const int64_t version = import_version(context, node->domain);
        if (find_function(context, node) ||
            cm_registry_schema(context->module->registry, node->domain, node->op_type,
                               version ? version : 1))
            continue;
        const struct cm_str what =
            cm_arena_printf(arena, "%.*s%s%.*s", CM_STR_FMT(node->domain),
                            node->domain.size ? "." : "", CM_STR_FMT(node->op_type));
        bool added;
        cm_map_insert(&missing->seen, arena, what, &added);
        if (!added)
            continue;
        if (missing->count++ < 20)
            missing->list =
                cm_arena_printf(arena, "%.*s%s%s (first in node '%.*s')", (int)missing->list.size,
                                missing->list.size ? missing->list.data : "",
                                missing->list.size ? ", " : "", what.data, CM_STR_FMT(node->name));
    }
}

static enum cm_status list_missing(struct cm_import_context *context, struct cm_error *err)
{
    struct missing missing = {.context = context};
    const struct cm_model_proto *model = context->model;

    look_for_missing(&missing, &model->graph->node, 0);
    for (size_t i = 0; i < model->functions.count; i++) {
        context->imports = &model->functions.items[i].opset_import;
        look_for_missing(&missing, &model->functions.items[i].node, 0);
    }
    context->imports = &model->opset_import;
    if (!missing.count)
        return CM_OK;
    return cm_fail(err, CM_UNSUPPORTED, "%zu operator%s not known at the imported opset: %s",
                   missing.count, missing.count == 1 ? " is" : "s are", missing.list.data);
}

static enum cm_status import_inputs(struct cm_import_context *context, struct cm_graph *graph,
                                    const struct cm_graph_proto *proto, struct cm_error *err)
{
    struct cm_module *module = context->module;
    struct cm_map constants = {0};
    /* Before IR version 4 every initializer had to be listed as an input, so being one says
     * nothing: they are constants. */
    for (size_t i = 0; context->model->ir_version < 4 && i < proto->initializer.count; i++)
        cm_map_insert(&constants, module->arena, proto->initializer.items[i].name, NULL);
    for (size_t i = 0; i < proto->input.count; i++) {
        const struct cm_value_info_proto *info = &proto->input.items[i];
        if (cm_map_find(&constants, info->name))
            continue;
        const struct cm_type *type;
        CM_TRY(check_free(context, graph, info->name, err));
        CM_TRY(cm_error_context(
            err, cm_type_from_proto(module->arena, module->symbols, info->type, &type, err),
            "input '%.*s'", CM_STR_FMT(info->name)));
        const cm_value value = cm_graph_add_input(graph, info->name, type);
        cm_value_get(module, value)->fact.type = cm_value_symbolic(module, value, type);
    }
    return CM_OK;
}

enum cm_status cm_module_import(struct cm_module *module, const struct cm_model_proto *model,
                                const struct cm_import_options *options, struct cm_graph **out,
                                struct cm_error *err)
{
    if (!model->graph)
        return cm_fail(err, CM_BAD_MODEL, "the model has no graph");
    /* The context stays with the module: calls expanded later need the model's functions too. */
    struct cm_map *functions = CM_NEW(module->arena, struct cm_map);
    for (size_t i = 0; i < model->functions.count; i++) {
        const struct cm_function_proto *function = &model->functions.items[i];
        const struct cm_str key =
            function_key(module->arena, function->domain, function->name, function->overload);
        *cm_map_insert(functions, module->arena, key, NULL) = (uint64_t)(uintptr_t)function;
    }
    struct cm_import_context *context = CM_NEW(module->arena, struct cm_import_context);
    *context = (struct cm_import_context){.module = module,
                                          .model = model,
                                          .imports = &model->opset_import,
                                          .functions = functions,
                                          .upgrade = options ? options->upgrade : NULL};
    CM_TRY(list_missing(context, err));
    module->context = context;
    module->build_body = build_body;
    struct cm_graph *graph = cm_graph_new(module, NULL, model->graph->name);
    CM_TRY(import_inputs(context, graph, model->graph, err));
    CM_TRY(import_graph(context, graph, model->graph, err));
    *out = graph;
    return CM_OK;
}
