/* Modules of the ONNX dialect as models. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/dialect/dialect_read.h"
#include "mlir/dialect/dialect.h"
#include "onnx/syntax_names.h"
#include "schema/schema.h"

static struct cm_str symbol_of(const struct cm_dialect_op *function)
{
    const struct cm_dialect_attr *const name = cm_dialect_get(&function->attrs, "sym_name");

    return name && name->kind == CM_DIALECT_ATTR_STRING ? name->text : CM_STR_NONE;
}

/* The generic form has attributes of arguments and results in lists beside the types. */
static void join_attributes(struct cm_dialect_reader *r, struct cm_dialect_op *function)
{
    struct cm_dialect_region *const body = function->regions.count ? function->regions.items : NULL;
    const struct cm_dialect_attr *const of_arguments =
        cm_dialect_get(&function->attrs, "arg_attrs");
    const struct cm_dialect_attr *const of_results = cm_dialect_get(&function->attrs, "res_attrs");

    if (body && !body->ops.count)
        function->regions.count = 0; /* so the generic form writes a declaration */

    for (size_t i = 0; of_arguments && body && i < of_arguments->items.count; i++)
        if (i < body->arguments.count)
            body->arguments.items[i].attrs = of_arguments->items.items[i].entries;
    const struct cm_dialect_attr *const type = cm_dialect_get(&function->attrs, "function_type");
    for (size_t i = 0; type && i < type->type.results.count; i++) {
        struct cm_dialect_argument *const one = CM_PUSH(r->arena, &function->outputs);
        *one = (struct cm_dialect_argument){.type = type->type.results.items[i]};
        if (of_results && i < of_results->items.count)
            one->attrs = of_results->items.items[i].entries;
    }
}

static enum cm_status read_main(struct cm_dialect_reader *r, const struct cm_dialect_op *function)
{
    struct cm_model_proto *const model = r->model;

    if (!function->regions.count)
        return cm_dialect_refuse(r, function->at, CM_BAD_MODEL, "the function has no body");
    model->graph = CM_NEW(r->arena, struct cm_graph_proto);
    cm_msg_set(&model->msg, CM_MODEL_GRAPH);
    CM_TRY(cm_dialect_read_graph(r, NULL, function->regions.items, function, &function->attrs,
                                 "onnx.", model->graph));
    if (r->foreign && !cm_msg_has(&model->graph->msg, CM_GRAPH_NAME)) {
        model->graph->name = symbol_of(function);
        cm_msg_set(&model->graph->msg, CM_GRAPH_NAME);
    }
    return CM_OK;
}

static struct cm_strs names_of(struct cm_dialect_reader *r, const struct cm_value_infos *values)
{
    struct cm_strs out = {CM_NEW_ARRAY(r->arena, struct cm_str, values->count), values->count};

    for (size_t i = 0; i < values->count; i++)
        out.items[i] = values->items[i].name;
    return out;
}

/* A function is read as a graph of which little is kept. */
static enum cm_status read_function(struct cm_dialect_reader *r,
                                    const struct cm_dialect_op *function,
                                    struct cm_function_proto *out)
{
    static const char *const own[] = {"function", NULL};
    static const struct cm_dialect_entries nothing;
    const struct cm_opsets *const before = r->opsets;
    struct cm_graph_proto graph = {0};

    CM_TRY(cm_dialect_read_fields(
        r, &cm_function_info, &function->attrs, "onnx.",
        ~(CM_BIT(CM_FUNCTION_INPUT) | CM_BIT(CM_FUNCTION_OUTPUT) | CM_BIT(CM_FUNCTION_NODE)), own,
        out));
    if (!function->regions.count)
        return cm_dialect_refuse(r, function->at, CM_BAD_MODEL, "the function has no body");
    r->opsets = &out->opset_import;
    CM_TRY(cm_dialect_read_graph(r, NULL, function->regions.items, function, &nothing, "onnx.",
                                 &graph));
    r->opsets = before;
    if (graph.initializer.count || graph.sparse_initializer.count)
        return cm_dialect_refuse(r, function->at, CM_BAD_MODEL,
                                 "a function of a model cannot have initializers: give constants "
                                 "the attribute 'onnx.output'");
    out->input = names_of(r, &graph.input);
    out->output = names_of(r, &graph.output);
    out->node = graph.node;
    if (out->input.count)
        cm_msg_set(&out->msg, CM_FUNCTION_INPUT);
    if (out->output.count)
        cm_msg_set(&out->msg, CM_FUNCTION_OUTPUT);
    if (out->node.count)
        cm_msg_set(&out->msg, CM_FUNCTION_NODE);
    return CM_OK;
}

static enum cm_status read_training(struct cm_dialect_reader *r,
                                    const struct cm_dialect_op *function,
                                    const struct cm_dialect_attr *number)
{
    struct cm_model_proto *const model = r->model;
    const struct cm_dialect_attr *const role = cm_dialect_get(&function->attrs, "onnx.role");
    const bool first = role && cm_str_is(role->text, "initialization");
    const int graph_field = first ? CM_TRAINING_INITIALIZATION : CM_TRAINING_ALGORITHM;
    const int field = first ? CM_TRAINING_INITIALIZATION_BINDING : CM_TRAINING_UPDATE_BINDING;
    const struct cm_dialect_attr *const binding = cm_dialect_get(
        &function->attrs, first ? "onnx.initialization_binding" : "onnx.update_binding");
    int64_t index;

    CM_TRY(cm_dialect_read_int(r, number, &index));
    if (index < 0 || (uint64_t)index > model->training_info.count)
        return cm_dialect_refuse(r, number->at, CM_BAD_MODEL,
                                 "training %lld does not follow the one before", (long long)index);
    if ((uint64_t)index == model->training_info.count) {
        CM_LIST_ADD(r->arena, &model->training_info);
        cm_msg_set(&model->msg, CM_MODEL_TRAINING_INFO);
    }
    struct cm_training_proto *const out = &model->training_info.items[index];
    if (cm_msg_has(&out->msg, graph_field) || cm_msg_has(&out->msg, field))
        return cm_dialect_refuse(r, number->at, CM_BAD_MODEL,
                                 "training %lld has two functions of one role", (long long)index);
    if (binding)
        CM_TRY(cm_dialect_read_field(r, &cm_training_info, field, binding, out));
    if (!function->regions.count)
        return CM_OK;
    struct cm_graph_proto *const graph = CM_NEW(r->arena, struct cm_graph_proto);
    *(first ? &out->initialization : &out->algorithm) = graph;
    cm_msg_set(&out->msg, graph_field);
    return cm_dialect_read_graph(r, NULL, function->regions.items, function, &function->attrs,
                                 "onnx.", graph);
}

/* Names that arguments and results have, so that others are made different. */
static void take_names(struct cm_dialect_reader *r, const struct cm_dialect_op *function)
{
    const struct cm_dialect_arguments *const lists[] = {
        function->regions.count ? &function->regions.items[0].arguments : NULL, &function->outputs};

    r->taken = (struct cm_map){0};
    for (size_t l = 0; r->foreign && l < CM_COUNT(lists); l++) {
        for (size_t i = 0; lists[l] && i < lists[l]->count; i++) {
            const struct cm_dialect_attr *const name =
                cm_dialect_get(&lists[l]->items[i].attrs, "onnx.name");
            if (name)
                cm_map_insert(&r->taken, r->arena, name->text, NULL);
        }
    }
}

static enum cm_status read_functions(struct cm_dialect_reader *r, const struct cm_dialect_ops *ops)
{
    const struct cm_dialect_op *entry = NULL;
    struct cm_str main = CM_STR_NONE;
    size_t n_functions = 0;

    for (size_t i = 0; i < ops->count; i++) {
        const struct cm_dialect_op *const op = &ops->items[i];
        const struct cm_dialect_attr *const func = cm_dialect_get(&op->attrs, "func");

        if (cm_str_is(op->name, "onnx.EntryPoint") && func) {
            main = func->text;
            if (entry)
                return cm_dialect_refuse(r, op->at, CM_UNSUPPORTED,
                                         "modules of several entry points are not supported");
            entry = op;
        }
        n_functions += cm_dialect_get(&op->attrs, "onnx.function") != NULL;
    }
    if (n_functions) {
        r->model->functions.items = CM_NEW_ARRAY(r->arena, struct cm_function_proto, n_functions);
        cm_msg_set(&r->model->msg, CM_MODEL_FUNCTIONS);
    }
    for (size_t i = 0; i < ops->count; i++) {
        struct cm_dialect_op *const op = &ops->items[i];
        const struct cm_dialect_attr *const training = cm_dialect_get(&op->attrs, "onnx.training");

        if (cm_str_is(op->name, "onnx.EntryPoint"))
            continue;
        if (!cm_str_is(op->name, "func.func"))
            return cm_dialect_refuse(r, op->at, CM_UNSUPPORTED,
                                     "expected a function but found operation '%.*s'",
                                     CM_STR_FMT(op->name));
        join_attributes(r, op);
        take_names(r, op);
        if (cm_dialect_get(&op->attrs, "onnx.function"))
            CM_TRY(read_function(r, op, &r->model->functions.items[r->model->functions.count++]));
        else if (training)
            CM_TRY(read_training(r, op, training));
        else if (!r->model->graph && (!main.size || cm_str_equal(main, symbol_of(op))))
            CM_TRY(read_main(r, op));
        else
            return cm_dialect_refuse(r, op->at, CM_UNSUPPORTED,
                                     "function '%.*s' is neither the entry point nor a function or "
                                     "training of the model",
                                     CM_STR_FMT(symbol_of(op)));
    }
    return CM_OK;
}

/* Opsets that the text does not name: the newest in which all operators have the forms it uses. */
static enum cm_status choose_opsets(struct cm_dialect_reader *r)
{
    struct cm_model_proto *const model = r->model;

    for (size_t i = 0; i < r->ranges.count; i++) {
        const struct cm_dialect_range *const range = &r->ranges.items[i];
        const int64_t newest = cm_schema_newest_opset(range->domain);
        struct cm_opset_proto *const opset = CM_LIST_ADD(r->arena, &model->opset_import);

        if (range->first > range->last)
            return cm_fail(r->tree.lex.err, CM_BAD_MODEL,
                           "no opset has both %.*s, which is there from opset %lld on, and %.*s in "
                           "the form that ended with opset %lld",
                           CM_STR_FMT(range->needs_first), (long long)range->first,
                           CM_STR_FMT(range->needs_last), (long long)range->last);
        opset->domain = range->domain;
        opset->version = range->last < newest ? range->last : newest ? newest : 1;
        cm_msg_set(&opset->msg, CM_OPSET_DOMAIN);
        cm_msg_set(&opset->msg, CM_OPSET_VERSION);
        cm_msg_set(&model->msg, CM_MODEL_OPSET_IMPORT);
    }
    return CM_OK;
}

static enum cm_status read_module(struct cm_dialect_reader *r)
{
    struct cm_dialect_ops *const top = &r->tree.ops;
    const bool wrapped = top->count == 1 && cm_str_is(top->items[0].name, "builtin.module");
    const struct cm_dialect_op *const module = wrapped ? top->items : NULL;
    struct cm_model_proto *const model = r->model;
    static const char *const own[] = {"model", NULL}; /* of one that has neither of those below */
    enum { FOREIGN_IR = 10 }; /* knows all that ONNX-MLIR writes, and most readers know it */

    if (wrapped)
        CM_TRY(cm_dialect_read_fields(
            r, &cm_model_info, &module->attrs, "onnx.",
            ~(CM_BIT(CM_MODEL_GRAPH) | CM_BIT(CM_MODEL_FUNCTIONS) | CM_BIT(CM_MODEL_TRAINING_INFO)),
            own, model));
    r->opsets = &model->opset_import;
    r->foreign = !cm_msg_has(&model->msg, CM_MODEL_IR_VERSION) &&
                 !cm_msg_has(&model->msg, CM_MODEL_OPSET_IMPORT) &&
                 !(wrapped && cm_dialect_get(&module->attrs, "onnx.model"));
    if (!wrapped)
        CM_TRY(read_functions(r, top));
    else if (module->regions.count)
        CM_TRY(read_functions(r, &module->regions.items[0].ops));
    if (!r->foreign)
        return CM_OK;
    if (!model->graph)
        return cm_fail(r->tree.lex.err, CM_BAD_MODEL, "the text has no function");
    model->ir_version = FOREIGN_IR;
    cm_msg_set(&model->msg, CM_MODEL_IR_VERSION);
    return choose_opsets(r);
}

enum cm_status cm_dialect_parse(struct cm_str text, struct cm_arena *arena,
                                struct cm_model_proto *out, struct cm_error *err)
{
    struct cm_dialect_reader *const r = CM_NEW(arena, struct cm_dialect_reader);

    *out = (struct cm_model_proto){0};
    r->arena = arena;
    r->model = out;
    CM_TRY(cm_dialect_parse_tree(text, arena, &r->tree, err));
    return read_module(r);
}

bool cm_dialect_is_text(struct cm_str bytes)
{
    static const char *const beginnings[] = {"module", "builtin.module", "func.func",
                                             "\"builtin.module\"", "\"func.func\""};
    struct cm_lexer lex = {.rules = &cm_dialect_lex,
                           .start = bytes.data,
                           .at = bytes.data,
                           .end = bytes.data + bytes.size};

    cm_lex_peek(&lex);
    const struct cm_str rest = {lex.at, (size_t)(lex.end - lex.at)};
    for (size_t i = 0; i < CM_COUNT(beginnings); i++)
        if (cm_str_starts(rest, beginnings[i]))
            return true;
    return false;
}
