/* Cases as graphs of one operator. */
// SPDX-License-Identifier: Apache-2.0
#include "op_graph.h"

#include "graph/import.h"
#include "onnx/tensor_data.h"
#include "schema/schema.h"
#include "versions/upgrade.h"

const char *const telling_names[TELLINGS] = {
    [TELL_SHAPES] = "shapes known",     [TELL_SYMBOLS] = "shapes symbolic",
    [TELL_RANKS] = "only ranks known",  [TELL_TYPES] = "ranks unknown",
    [TELL_CONTENTS] = "contents known", [TELL_WEIGHTS] = "all but one operand constant",
};

const struct cm_type *op_told_type(struct cm_arena *arena, struct cm_symbols *symbols,
                                   const struct cm_tensor *tensor, enum telling telling)
{
    struct cm_dim dims[CM_MAX_RANK];

    if (telling == TELL_TYPES)
        return cm_type_tensor(arena, tensor->type, CM_RANK_UNKNOWN, NULL);
    for (int i = 0; i < tensor->shape.rank; i++) {
        dims[i] = CM_DIM(tensor->shape.dims[i]);
        if (telling == TELL_RANKS)
            dims[i] = CM_DIM_ANY;
        if (telling == TELL_SYMBOLS)
            dims[i] = (struct cm_dim){
                CM_DIM_UNKNOWN,
                cm_symbol_named(
                    symbols, cm_arena_printf(arena, "size%lld", (long long)tensor->shape.dims[i]))};
    }
    return cm_type_tensor(arena, tensor->type, tensor->shape.rank, dims);
}

static void add_input(struct cm_arena *arena, struct cm_symbols *symbols,
                      const struct case_value *value, enum telling telling,
                      struct cm_graph_proto *graph)
{
    struct cm_value_info_proto *info = CM_LIST_ADD(arena, &graph->input);
    const struct cm_type *type = value->type;

    if (type->kind == CM_KIND_TENSOR && value->datum.kind == CM_KIND_TENSOR)
        type = op_told_type(arena, symbols, &value->datum.tensor, telling);
    info->name = value->name;
    info->type = CM_NEW(arena, struct cm_type_proto);
    cm_type_to_proto(arena, symbols, type, info->type);
}

static enum cm_status add_operands(const struct op_case *from, enum telling telling,
                                   struct cm_arena *arena, struct cm_graph_proto *graph,
                                   struct op_graph *out, struct cm_error *err)
{
    struct cm_symbols *symbols = cm_symbols_new(arena);
    struct cm_strs *names = &graph->node.items[0].input;

    names->items = CM_NEW_ARRAY(arena, struct cm_str, from->inputs.count);
    names->count = 0;
    out->feeds = CM_NEW_ARRAY(arena, const struct cm_datum *, from->inputs.count + 1);
    out->values = CM_NEW_ARRAY(arena, const struct case_value *, from->inputs.count);
    for (size_t i = 0; i < from->inputs.count; i++) {
        const struct case_value *value = &from->inputs.items[i];
        if (!value->outer)
            names->items[names->count++] = value->name;
        if (!value->name.size || value->again)
            continue;
        if ((telling == TELL_CONTENTS || (telling == TELL_WEIGHTS && i > 0)) &&
            value->datum.kind == CM_KIND_TENSOR) {
            struct cm_tensor_proto *tensor = CM_LIST_ADD(arena, &graph->initializer);
            tensor->name = value->name;
            CM_TRY(cm_tensor_proto_store(tensor, arena, &value->datum.tensor, err));
            continue;
        }
        add_input(arena, symbols, value, telling, graph);
        out->feeds[out->n_feeds] = &value->datum;
        out->values[out->n_feeds++] = value;
    }
    return CM_OK;
}

/* A case that must be refused says nothing of results: as many as the operator must have. */
static void add_results(const struct op_case *from, struct cm_arena *arena,
                        struct cm_graph_proto *graph)
{
    struct cm_strs *names = &graph->node.items[0].output;
    const struct cm_schema *schema = cm_schema_newest(from->domain, from->op_type);
    const size_t least = schema && schema->min_outputs > 0 ? (size_t)schema->min_outputs : 1;
    const size_t count = from->refusals.count ? least : from->outputs.count;

    names->items = CM_NEW_ARRAY(arena, struct cm_str, count);
    names->count = count;
    for (size_t o = 0; o < count; o++) {
        const struct cm_str name = from->refusals.count ? cm_arena_printf(arena, "result %zu", o)
                                                        : from->outputs.items[o].name;
        names->items[o] = name;
        if (name.size)
            CM_LIST_ADD(arena, &graph->output)->name = name;
    }
}

static void import_domain(struct cm_arena *arena, struct cm_model_proto *model,
                          struct cm_str domain, int64_t version)
{
    struct cm_opset_proto *import = CM_LIST_ADD(arena, &model->opset_import);
    import->domain = domain;
    import->version = version ? version : cm_schema_newest_opset(domain);
    cm_msg_set(&import->msg, CM_OPSET_VERSION);
}

enum cm_status op_graph_build(const struct op_case *from, enum telling telling,
                              struct cm_arena *arena, struct op_graph *out, struct cm_error *err)
{
    struct cm_model_proto *model = CM_NEW(arena, struct cm_model_proto);
    struct cm_graph_proto *graph = model->graph = CM_NEW(arena, struct cm_graph_proto);
    const bool plain = from->domain.size == 0;

    *out = (struct op_graph){.from = from};
    import_domain(arena, model, CM_STR(""), plain ? from->opset : 0);
    if (!plain)
        import_domain(arena, model, from->domain, from->opset);
    *CM_LIST_ADD(arena, &graph->node) = from->node;
    CM_TRY(add_operands(from, telling, arena, graph, out, err));
    add_results(from, arena, graph);
    struct cm_module *module = cm_module_new(arena, &(struct cm_module_options){0});
    const struct cm_import_options options = {.upgrade = cm_upgrade_node};
    CM_TRY(cm_module_import(module, model, &options, &out->graph, err));
    out->node = out->graph->last;
    return CM_OK;
}

enum cm_status op_graph_run(const struct op_graph *graph, bool by_bodies, struct cm_arena *arena,
                            struct cm_datum **out, struct cm_error *err)
{
    const struct cm_eval_options options = {.seed = graph->from->seed, .prefer_bodies = by_bodies};
    *out = cm_data_new(arena, graph->graph->n_outputs);
    return cm_graph_eval(graph->graph, graph->feeds, graph->graph->n_inputs, *out, &options, err);
}
