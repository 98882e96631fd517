/* Importing a model to judge it: types are held against the operator's version in the file and
 * against what the file declares, and what cannot be built is replaced by what is declared of it,
 * so that the nodes behind it are looked at too. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/import_context.h"

enum { FEW = 16 };

/* A node as the file has it, for cm_node_conforms alone. uses and outputs are the caller's. */
static struct cm_node node_of_file(struct cm_import_context *context,
                                   const struct cm_node_proto *proto,
                                   const struct cm_schema *schema)
{
    return (struct cm_node){.module = context->module,
                            .schema = schema,
                            .domain = proto->domain,
                            .op_type = proto->op_type,
                            .name = proto->name,
                            .n_inputs = (int)proto->input.count,
                            .n_outputs = (int)proto->output.count};
}

enum cm_status cm_import_judge_operands(struct cm_import_context *context,
                                        const struct cm_node_proto *proto,
                                        const struct cm_node_spec *spec,
                                        const struct cm_schema *from, struct cm_error *err)
{
    const size_t n_in = proto->input.count, n_out = proto->output.count;
    struct cm_arena *arena = context->module->arena;
    struct cm_use few_uses[FEW];
    cm_value few_outputs[FEW];
    struct cm_node node = node_of_file(context, proto, from);

    if (n_in > INT_MAX || n_out > INT_MAX)
        return CM_OK; /* refused when it is added */
    node.inputs = n_in <= FEW ? few_uses : CM_NEW_ARRAY(arena, struct cm_use, n_in);
    node.outputs = n_out <= FEW ? few_outputs : CM_NEW_ARRAY(arena, cm_value, n_out);
    node.attributes = spec->attributes;
    node.n_attributes = spec->n_attributes;
    node.bodies = spec->bodies;
    node.n_bodies = (uint32_t)spec->n_bodies;
    for (size_t i = 0; i < n_in; i++)
        node.inputs[i].value = spec->inputs[i];
    for (size_t o = 0; o < n_out; o++)
        node.outputs[o] = spec->wanted[o]; /* only whether there is one is asked */
    const enum cm_status status = cm_node_conforms(&node, err);
    if (status)
        context->report->rule = "TY1";
    return status;
}

/* ---- declared types ---- */

static const struct cm_value_info_proto *find_declared(struct cm_import_context *context,
                                                       struct cm_str name)
{
    struct cm_import_declared *declared = context->declared;
    struct cm_arena *arena = context->report->findings->arena;

    if (!declared || !name.size)
        return NULL;
    for (size_t l = 0; l < CM_COUNT(declared->infos) && !declared->filled; l++) {
        const struct cm_value_infos *infos = declared->infos[l];

        for (size_t i = 0; infos && i < infos->count; i++)
            if (infos->items[i].type) /* the last one wins: an output over a value info */
                *cm_map_insert(&declared->names, arena, infos->items[i].name, NULL) =
                    (uint64_t)(uintptr_t)&infos->items[i];
    }
    declared->filled = true;
    return (const struct cm_value_info_proto *)(uintptr_t)cm_map_get(&declared->names, name, 0);
}

/* NULL for a type that cannot be read, which is the checker's business. */
static const struct cm_type *read_type(struct cm_import_context *context,
                                       const struct cm_value_info_proto *info)
{
    struct cm_module *module = context->module;
    const struct cm_type *type = NULL;
    struct cm_error ignored = {0};

    if (!info || !info->type ||
        cm_type_from_proto(module->arena, module->symbols, info->type, &type, &ignored))
        return NULL;
    return type;
}

/* What both say, or NULL after adding the contradiction to the list. */
static const struct cm_type *meet(struct cm_import_context *context, const char *kind,
                                  const struct cm_value_info_proto *info,
                                  const struct cm_type *declared, const struct cm_type *type,
                                  struct cm_str who)
{
    struct cm_module *module = context->module;
    struct cm_arena *arena = context->report->findings->arena;
    const struct cm_type *both = cm_type_meet(module->arena, type, declared);

    if (both)
        return both;
    const bool told = context->report->told;
    context->report->told = false;
    context->report->rule = "TY3";
    cm_import_note_failure(
        context, CM_BAD_MODEL, cm_arena_printf(arena, "%s '%.*s'", kind, CM_STR_FMT(info->name)),
        cm_arena_printf(arena, "is declared %s, but %s %s",
                        cm_type_print(arena, module->symbols, declared).data, cm_str_text(who),
                        cm_type_print(arena, module->symbols, type).data)
            .data,
        info);
    context->report->told = told;
    return NULL;
}

/* What is declared of the value adds to what is known of it. */
static void declare(struct cm_import_context *context, cm_value value,
                    const struct cm_value_info_proto *info, const char *kind, struct cm_str who)
{
    const struct cm_type *declared = read_type(context, info);
    struct cm_value_def *def = cm_value_get(context->module, value);
    const struct cm_type *both =
        declared ? meet(context, kind, info, declared, def->fact.type, who) : NULL;

    if (!both || def->role != CM_ROLE_COMPUTED)
        return;
    def->declared = declared;
    if (!cm_type_equal(both, def->fact.type)) {
        const struct cm_fact fact = {both, def->fact.constant, def->fact.known};
        cm_value_set_fact(context->module, value, &fact);
    }
}

/* Is the info among the outputs, rather than the value infos, of what is imported? */
static const char *kind_of(const struct cm_import_context *context,
                           const struct cm_value_info_proto *info)
{
    const struct cm_value_infos *outputs = context->declared->infos[1];

    return outputs && info >= outputs->items && info < outputs->items + outputs->count
               ? "output"
               : "value_info";
}

enum cm_status cm_import_judge_results(struct cm_import_context *context,
                                       const struct cm_node_proto *proto,
                                       const struct cm_schema *from, const cm_value *outputs,
                                       struct cm_error *err)
{
    const struct cm_node node = node_of_file(context, proto, from);

    for (size_t o = 0; o < proto->output.count; o++) {
        const struct cm_value_info_proto *info = find_declared(context, proto->output.items[o]);

        if (!outputs[o])
            continue;
        const struct cm_type *type = cm_value_get(context->module, outputs[o])->fact.type;
        const enum cm_status status = cm_node_check_result(&node, (int)o, type, err);
        if (status) {
            context->report->rule = "TY1";
            return status;
        }
        if (info)
            declare(context, outputs[o], info, kind_of(context, info),
                    cm_arena_printf(context->report->findings->arena, "%s computes",
                                    cm_import_name_node(context->module->arena, proto).data));
    }
    return CM_OK;
}

void cm_import_judge_declared(struct cm_import_context *context, struct cm_graph *graph,
                              const struct cm_value_infos *infos, const char *kind)
{
    for (size_t i = 0; i < infos->count; i++) {
        const struct cm_map *here = context->scope ? &context->scope->names : &graph->names;
        const cm_value value = (cm_value)cm_map_get(here, infos->items[i].name, 0);

        if (value && cm_value_get(context->module, value)->role != CM_ROLE_COMPUTED)
            declare(context, value, &infos->items[i], kind, CM_STR("it is"));
    }
}

static bool is_one_element(const struct cm_type *type)
{
    return type->rank == 0 ||
           (type->rank == 1 && (!cm_dim_known(type->dims[0]) || type->dims[0].value == 1));
}

/* Exporters write a scalar (the number of an iteration, the condition) as a list of one and the
 * other way round, and every runtime takes both. */
static bool differ_in_rank_only(const struct cm_type *a, const struct cm_type *b)
{
    return a->kind == CM_KIND_TENSOR && b->kind == CM_KIND_TENSOR && a->dtype == b->dtype &&
           is_one_element(a) && is_one_element(b);
}

void cm_import_judge_argument(struct cm_import_context *context,
                              const struct cm_value_info_proto *input, const struct cm_type *type)
{
    const struct cm_type *declared = read_type(context, input);

    if (declared && type && !differ_in_rank_only(declared, type))
        (void)meet(context, "input", input, declared, type, CM_STR("it is given"));
}

bool cm_import_stand_in(struct cm_import_context *context, struct cm_graph *graph,
                        struct cm_str name)
{
    if (!cm_import_judges(context))
        return false;
    const struct cm_type *type = read_type(context, find_declared(context, name));
    const struct cm_map *here = context->scope ? &context->scope->names : &graph->names;

    if (!type || cm_map_find(here, name))
        return false;
    cm_import_define(context, cm_graph_add_stand_in(graph, type), name);
    return true;
}
