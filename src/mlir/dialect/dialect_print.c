/* Models as modules of the ONNX dialect: their graph, functions and training are functions of MLIR.
 */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/dialect/dialect_print.h"
#include "base/array.h"
#include "mlir/dialect/dialect_names.h"
#include "onnx/syntax_names.h"

/* Names that a function uses and nothing in it has defined by then; they become arguments. */
struct free_names {
    struct cm_dialect_out *o;
    struct cm_map seen;
    CM_ARRAY(struct cm_str) names;
    bool needs_none;
};

static void use_names(struct free_names *f, const struct cm_dialect_scope *scope,
                      const struct cm_strs *names)
{
    for (size_t i = 0; i < names->count; i++) {
        bool added = false;
        if (!names->items[i].size)
            f->needs_none = true;
        else if (!cm_dialect_knows(scope, names->items[i]))
            cm_map_insert(&f->seen, f->o->arena, names->items[i], &added);
        if (added)
            *CM_PUSH(f->o->arena, &f->names) = names->items[i];
    }
}

static void use_graph(struct free_names *f, const struct cm_dialect_scope *outer,
                      const struct cm_graph_proto *graph, int depth);

static void define_name(struct free_names *f, struct cm_dialect_scope *scope, struct cm_str name)
{
    if (name.size)
        *cm_map_insert(&scope->names, f->o->arena, name, NULL) = 1;
}

static void use_nodes(struct free_names *f, struct cm_dialect_scope *scope,
                      const struct cm_nodes *nodes, int depth)
{
    for (size_t i = 0; i < nodes->count; i++) {
        const struct cm_node_proto *const node = &nodes->items[i];
        const struct cm_graph_proto *graph;

        use_names(f, scope, &node->input);
        for (size_t g = 0; (graph = cm_node_subgraph(node, g)); g++)
            use_graph(f, scope, graph, depth + 1);
        for (size_t n = 0; n < node->output.count; n++)
            define_name(f, scope, node->output.items[n]);
    }
}

static void use_graph(struct free_names *f, const struct cm_dialect_scope *outer,
                      const struct cm_graph_proto *graph, int depth)
{
    struct cm_dialect_scope scope = {.outer = outer};
    const struct cm_strs outputs = cm_dialect_names_of(f->o, &graph->output);

    if (depth > CM_SYNTAX_DEPTH)
        return; /* printing refuses it */
    for (size_t i = 0; i < graph->input.count; i++)
        define_name(f, &scope, graph->input.items[i].name);
    for (size_t i = 0; i < graph->initializer.count; i++)
        define_name(f, &scope, graph->initializer.items[i].name);
    for (size_t i = 0; i < graph->sparse_initializer.count; i++)
        if (graph->sparse_initializer.items[i].values)
            define_name(f, &scope, graph->sparse_initializer.items[i].values->name);
    use_nodes(f, &scope, &graph->node, depth);
    use_names(f, &scope, &outputs);
}

/* A function while it is printed. */
struct function {
    struct cm_dialect_out *o;
    struct cm_dialect_scope scope;
    struct free_names free;
    struct cm_map initializers; /* to 1 + their index */
    bool any;                   /* argument or result of the list that is printed */
};

static void begin_function(struct function *f, const char *visibility, struct cm_str symbol)
{
    struct cm_printer *const pen = &f->o->pen;

    f->o->next_result = f->o->next_argument = 0;
    cm_dialect_put_line(f->o);
    cm_put_text(pen, "func.func ");
    cm_put_text(pen, visibility);
    cm_put_text(pen, "@");
    cm_dialect_put_symbol(f->o, symbol);
    cm_put_text(pen, "(");
}

static void next_in_list(struct function *f, const char *open)
{
    cm_put_text(&f->o->pen, f->any ? ", " : open);
    f->any = true;
}

static void put_free_arguments(struct function *f)
{
    for (size_t i = 0; i < f->free.names.count && f->o->pen.status == CM_OK; i++) {
        const struct cm_str name = f->free.names.items[i];
        struct cm_dialect_dict dict = {f->o, "onnx.", false};

        next_in_list(f, "");
        cm_dialect_put_argument(f->o, &f->scope, name);
        cm_put_text(&f->o->pen, " ");
        cm_dialect_put_key(&dict, "name");
        cm_dialect_put_quoted(f->o, name);
        cm_dialect_put_key_str(&dict, CM_STR("outer"));
        cm_dialect_end(&dict);
    }
    cm_put_text(&f->o->pen, ")");
    f->any = false;
}

static void begin_body(struct function *f)
{
    struct cm_dialect_out *const o = f->o;

    cm_put_text(&o->pen, " {");
    o->pen.indent += CM_DIALECT_STEP;
    if (f->free.needs_none) {
        cm_dialect_put_line(o);
        cm_put_text(&o->pen, "%none = \"onnx.NoValue\"() {value} : () -> none");
    }
}

static void end_body(struct function *f)
{
    f->o->pen.indent -= CM_DIALECT_STEP;
    cm_dialect_put_line(f->o);
    cm_put_text(&f->o->pen, "}");
}

/* The type of a value that the body gives as a result: printed types are those of operations. */
static struct cm_str given_type(struct function *f, const struct cm_graph_proto *graph,
                                struct cm_str name)
{
    if (!name.size)
        return CM_STR("none");
    const uint64_t initializer = cm_map_get(&f->initializers, name, 0);
    return initializer ? cm_dialect_tensor_type(f->o, &graph->initializer.items[initializer - 1])
                       : cm_dialect_type_of(f->o, &f->scope, name);
}

static void put_signature(struct function *f, const struct cm_graph_proto *graph)
{
    struct cm_dialect_out *const o = f->o;
    const size_t *const matched = cm_dialect_match_inputs(o, graph);

    for (size_t i = 0; i < graph->input.count && o->pen.status == CM_OK; i++) {
        const struct cm_value_info_proto *const value = &graph->input.items[i];
        struct cm_dialect_dict dict = {o, "onnx.", false};

        if (matched[i])
            continue;
        next_in_list(f, "");
        const struct cm_str type = cm_dialect_put_argument(o, &f->scope, value->name);
        cm_put_text(&o->pen, " ");
        cm_dialect_put_declared(&dict, value, type);
        cm_dialect_end(&dict);
    }
    put_free_arguments(f);
    for (size_t i = 0; graph->output.count && i < graph->initializer.count; i++)
        *cm_map_insert(&f->initializers, o->arena, graph->initializer.items[i].name, NULL) = i + 1;
    for (size_t i = 0; i < graph->output.count && o->pen.status == CM_OK; i++) {
        const struct cm_value_info_proto *const value = &graph->output.items[i];
        struct cm_dialect_dict dict = {o, "onnx.", false};
        const struct cm_str type = given_type(f, graph, value->name);

        next_in_list(f, " -> (");
        cm_put_str(&o->pen, type);
        cm_put_text(&o->pen, " ");
        cm_dialect_put_declared(&dict, value, type);
        cm_dialect_end(&dict);
    }
    cm_put_text(&o->pen, f->any ? ")" : "");
}

/* Training uses what the main graph has: its initializers come with their types. */
static void note_initializers(struct function *f, const struct cm_graph_proto *graph)
{
    struct cm_arena *const arena = f->o->arena;

    cm_dialect_note_graph(f->o, &f->scope, graph);
    for (size_t i = 0; i < graph->initializer.count; i++) {
        const struct cm_tensor_proto *const tensor = &graph->initializer.items[i];
        if (!cm_map_find(&f->free.seen, tensor->name))
            continue;
        struct cm_type_proto *const type = CM_NEW(arena, struct cm_type_proto);
        type->tensor_type = CM_NEW(arena, struct cm_tensor_type_proto);
        type->tensor_type->elem_type = tensor->data_type;
        type->tensor_type->shape = CM_NEW(arena, struct cm_shape_proto);
        type->tensor_type->shape->dim.count = tensor->dims.count;
        type->tensor_type->shape->dim.items =
            CM_NEW_ARRAY(arena, struct cm_dim_proto, tensor->dims.count);
        for (size_t d = 0; d < tensor->dims.count; d++) {
            type->tensor_type->shape->dim.items[d].dim_value = tensor->dims.items[d];
            cm_msg_set(&type->tensor_type->shape->dim.items[d].msg, CM_DIM_VALUE);
        }
        *cm_map_insert(&f->scope.types, arena, tensor->name, NULL) = (uint64_t)(uintptr_t)type;
    }
}

/* A graph as a function; without a graph, a declaration. */
struct graph_function {
    struct cm_str symbol;
    const char *visibility;
    const struct cm_graph_proto *graph, *typed;
    const struct cm_training_proto *training; /* of which it is a part */
    size_t index;
    const char *role;
    int binding;
};

static void put_graph_function(struct cm_dialect_out *o, const struct graph_function *g)
{
    struct function f = {.o = o, .free = {.o = o}};
    struct cm_dialect_dict dict = {o, "onnx.", false};
    static const struct cm_graph_proto nothing;
    const struct cm_graph_proto *const graph = g->graph ? g->graph : &nothing;

    use_graph(&f.free, NULL, graph, 0);
    if (g->training && o->model->graph)
        note_initializers(&f, o->model->graph);
    cm_dialect_note_graph(o, &f.scope, g->typed ? g->typed : graph);
    begin_function(&f, g->visibility, g->symbol);
    put_signature(&f, graph);
    cm_put_text(&o->pen, " attributes ");
    if (g->training) {
        cm_dialect_put_key(&dict, "training");
        cm_put_uint64(&o->pen, g->index);
        cm_dialect_put_key(&dict, "role");
        cm_dialect_put_quoted(o, cm_str(g->role));
        cm_dialect_put_fields(&dict, &cm_training_info, g->training, ~CM_BIT(g->binding));
    }
    cm_dialect_put_graph_notes(&dict, graph);
    cm_dialect_end(&dict);
    if (!g->graph)
        return; /* a declaration */
    begin_body(&f);
    cm_dialect_put_body(o, &f.scope, graph, g->typed, "Return");
    end_body(&f);
}

static void put_name_attribute(struct cm_dialect_out *o, struct cm_str name)
{
    struct cm_dialect_dict dict = {o, "onnx.", false};

    cm_put_text(&o->pen, " ");
    cm_dialect_put_key(&dict, "name");
    cm_dialect_put_quoted(o, name);
    cm_dialect_end(&dict);
}

static void put_function(struct cm_dialect_out *o, const struct cm_function_proto *function,
                         const struct cm_function_proto *typed, struct cm_str symbol)
{
    struct function f = {.o = o, .free = {.o = o}};
    struct cm_dialect_dict dict = {o, "onnx.", false};
    struct cm_dialect_scope inside = {0};

    for (size_t i = 0; i < function->input.count; i++)
        define_name(&f.free, &inside, function->input.items[i]);
    use_nodes(&f.free, &inside, &function->node, 0);
    use_names(&f.free, &inside, &function->output);
    o->opsets = &function->opset_import;
    cm_dialect_note_types(o, &f.scope, &(typed ? typed : function)->value_info);
    begin_function(&f, "private ", symbol);
    for (size_t i = 0; i < function->input.count && o->pen.status == CM_OK; i++) {
        next_in_list(&f, "");
        cm_dialect_put_argument(o, &f.scope, function->input.items[i]);
        put_name_attribute(o, function->input.items[i]);
    }
    put_free_arguments(&f);
    for (size_t i = 0; i < function->output.count && o->pen.status == CM_OK; i++) {
        next_in_list(&f, " -> (");
        cm_put_str(&o->pen, cm_dialect_type_of(o, &f.scope, function->output.items[i]));
        put_name_attribute(o, function->output.items[i]);
    }
    cm_put_text(&o->pen, f.any ? ") attributes " : " attributes ");
    cm_dialect_put_key_str(&dict, CM_STR("function"));
    cm_dialect_put_fields(&dict, &cm_function_info, function,
                          CM_BIT(CM_FUNCTION_INPUT) | CM_BIT(CM_FUNCTION_OUTPUT) |
                              CM_BIT(CM_FUNCTION_NODE));
    cm_dialect_end(&dict);
    begin_body(&f);
    cm_dialect_put_nodes(o, &f.scope, &function->node, typed ? &typed->node : NULL);
    if (o->pen.status == CM_OK)
        cm_dialect_put_end(o, &f.scope, "Return", &function->output);
    end_body(&f);
    o->opsets = &o->model->opset_import;
}

static void put_training(struct cm_dialect_out *o, size_t i, const struct cm_training_proto *typed)
{
    const struct cm_training_proto *const training = &o->model->training_info.items[i];
    const struct graph_function parts[] = {
        {cm_arena_printf(o->arena, "training.%zu.initialization", i), "private ",
         training->initialization, typed ? typed->initialization : NULL, training, i,
         "initialization", CM_TRAINING_INITIALIZATION_BINDING},
        {cm_arena_printf(o->arena, "training.%zu.algorithm", i), "private ", training->algorithm,
         typed ? typed->algorithm : NULL, training, i, "algorithm", CM_TRAINING_UPDATE_BINDING},
    };

    for (size_t n = 0; n < CM_COUNT(parts) && o->pen.status == CM_OK; n++)
        put_graph_function(o, &parts[n]);
}

static void put_module(struct cm_dialect_out *o)
{
    const struct cm_model_proto *const model = o->model, *const typed = o->options->typed;
    struct cm_dialect_dict dict = {o, "onnx.", false};

    cm_put_text(&o->pen, "module attributes ");
    if (!cm_msg_has(&model->msg, CM_MODEL_IR_VERSION) &&
        !cm_msg_has(&model->msg, CM_MODEL_OPSET_IMPORT))
        cm_dialect_put_key_str(&dict, CM_STR("model")); /* it was not another program */
    cm_dialect_put_fields(&dict, &cm_model_info, model,
                          CM_BIT(CM_MODEL_GRAPH) | CM_BIT(CM_MODEL_TRAINING_INFO) |
                              CM_BIT(CM_MODEL_FUNCTIONS));
    cm_dialect_end(&dict);
    cm_put_text(&o->pen, " {");
    o->pen.indent = CM_DIALECT_STEP;
    if (model->graph) {
        const struct graph_function main = {.symbol = CM_STR("main_graph"),
                                            .visibility = "",
                                            .graph = model->graph,
                                            .typed = typed ? typed->graph : NULL};
        put_graph_function(o, &main);
        cm_dialect_put_line(o);
        cm_put_text(&o->pen, "\"onnx.EntryPoint\"() {func = @main_graph} : () -> ()");
    }
    for (size_t i = 0; i < model->functions.count && o->pen.status == CM_OK; i++)
        put_function(o, &model->functions.items[i],
                     typed && i < typed->functions.count ? &typed->functions.items[i] : NULL,
                     cm_arena_printf(o->arena, "function.%zu.%.*s", i,
                                     CM_STR_FMT(model->functions.items[i].name)));
    for (size_t i = 0; i < model->training_info.count && o->pen.status == CM_OK; i++)
        put_training(
            o, i, typed && i < typed->training_info.count ? &typed->training_info.items[i] : NULL);
    cm_put_text(&o->pen, "\n}\n");
}

enum cm_status cm_dialect_print(const struct cm_model_proto *model,
                                const struct cm_dialect_options *options, struct cm_arena *scratch,
                                cm_text_write_fn *write, void *to, struct cm_error *err)
{
    static const struct cm_dialect_options defaults;
    struct cm_dialect_out *const o = CM_NEW(scratch, struct cm_dialect_out);

    o->pen = (struct cm_printer){.write = write, .to = to, .err = err};
    o->arena = scratch;
    o->options = options ? options : &defaults;
    o->model = model;
    o->opsets = &model->opset_import;
    put_module(o);
    return cm_print_end(&o->pen);
}
