/* Graphs, functions, training and models as text, and the printer's entry points. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/syntax_names.h"
#include "onnx/syntax_print.h"
#include "onnx/wire.h"

enum { STEP = 3 }; /* columns a level is indented by */

static void print_values(struct cm_printer *p, const struct cm_value_infos *values)
{
    cm_put(p, "(", 1);
    for (size_t i = 0; cm_put_next(p, i, values->count); i++)
        cm_print_value(p, &values->items[i]);
    cm_put(p, ")", 1);
}

/* Between the items of the list after a graph's outputs: ONNX's printer keeps them on one line. */
static void separate(struct cm_printer *p, bool *any)
{
    if (p->upstream) {
        cm_put_text(p, *any ? ", " : "<");
    } else {
        cm_put_text(p, *any ? ",\n" : "<\n");
        cm_put_spaces(p, p->indent + STEP);
    }
    *any = true;
}

static void print_declarations(struct cm_printer *p, const struct cm_graph_proto *graph)
{
    bool any = false;

    for (size_t i = 0; i < graph->initializer.count && p->status == CM_OK; i++) {
        separate(p, &any);
        cm_print_tensor(p, &graph->initializer.items[i], true);
    }
    for (size_t i = 0; i < graph->sparse_initializer.count && !p->upstream && p->status == CM_OK;
         i++) {
        separate(p, &any);
        cm_print_sparse(p, &graph->sparse_initializer.items[i]);
    }
    for (size_t i = 0; i < graph->value_info.count && p->status == CM_OK; i++) {
        separate(p, &any);
        cm_print_value(p, &graph->value_info.items[i]);
    }
}

static void print_graph_head(struct cm_printer *p, const struct cm_graph_proto *graph)
{
    if (!p->upstream && cm_print_notes(p, &cm_graph_info, graph, CM_NOTES_GRAPH))
        cm_put(p, " ", 1);
    cm_put_name(p, graph->name);
    cm_put(p, " ", 1);
    print_values(p, &graph->input);
    cm_put_text(p, " => ");
    print_values(p, &graph->output);
}

/* A graph stands where an attribute's value does, so its first line is not indented but its nodes
 * and its end are. */
void cm_print_graph(struct cm_printer *p, const struct cm_graph_proto *graph)
{
    if (!cm_print_enter(p))
        return;
    print_graph_head(p, graph);
    const int outer = p->indent;
    p->indent += STEP;
    const bool declares = graph->initializer.count || graph->value_info.count ||
                          (graph->sparse_initializer.count && !p->upstream);
    if (!declares || p->upstream)
        cm_put(p, " ", 1);
    if (declares) {
        cm_put(p, "\n", 1);
        cm_put_spaces(p, p->indent);
        print_declarations(p, graph);
        if (!p->upstream) {
            cm_put(p, "\n", 1);
            cm_put_spaces(p, p->indent);
        }
        cm_put_text(p, ">\n");
        cm_put_spaces(p, p->upstream ? 0 : outer);
    }
    cm_put_text(p, "{\n");
    cm_print_nodes(p, &graph->node);
    p->indent = outer;
    cm_put_spaces(p, p->indent);
    cm_put(p, "}", 1);
    p->depth--;
}

/* The present ones of these fields, in this order, as a header of its own lines. */
static void print_header(struct cm_printer *p, const struct cm_message_info *info, const void *msg,
                         const int *order, size_t count)
{
    const struct cm_msg *const head = msg;
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        if (!cm_msg_has(head, order[i]))
            continue;
        cm_put_text(p, any ? ",\n   " : "<\n   ");
        cm_print_field(p, info, msg, order[i]);
        any = true;
    }
    if (any)
        cm_put_text(p, "\n>\n");
}

static void print_upstream_function_header(struct cm_printer *p,
                                           const struct cm_function_proto *function)
{
    cm_put_text(p, "<\n  domain: ");
    cm_put_quoted(p, function->domain);
    if (function->overload.size) {
        cm_put_text(p, ",\n  overload: ");
        cm_put_quoted(p, function->overload);
    }
    cm_put_text(p, ",\n  opset_import: [");
    for (size_t i = 0; i < function->opset_import.count; i++) {
        if (i)
            cm_put(p, ",", 1);
        cm_put_quoted(p, function->opset_import.items[i].domain);
        cm_put_text(p, " : ");
        cm_put_int64(p, function->opset_import.items[i].version);
    }
    cm_put_text(p, "]\n>\n");
}

static void print_upstream_parameters(struct cm_printer *p,
                                      const struct cm_function_proto *function)
{
    for (size_t i = 0; i < function->attribute.count; i++) {
        cm_put(p, i ? "," : "<", 1);
        cm_put_str(p, function->attribute.items[i]);
    }
    if (function->attribute.count)
        cm_put(p, ">", 1);
}

static void print_parameters(struct cm_printer *p, const struct cm_function_proto *function)
{
    bool any = false;

    for (size_t i = 0; i < function->attribute.count && p->status == CM_OK; i++) {
        cm_put_text(p, any ? ", " : "<");
        cm_put_word(p, function->attribute.items[i]);
        any = true;
    }
    for (size_t i = 0; i < function->attribute_proto.count && p->status == CM_OK; i++) {
        cm_put_text(p, any ? ", " : "<");
        cm_print_attribute(p, &function->attribute_proto.items[i]);
        any = true;
    }
    if (any)
        cm_put_text(p, "> ");
}

static void print_formals(struct cm_printer *p, const struct cm_strs *names)
{
    cm_put(p, "(", 1);
    for (size_t i = 0; cm_put_next(p, i, names->count); i++)
        cm_put_name(p, names->items[i]);
    cm_put(p, ")", 1);
}

static void print_function(struct cm_printer *p, const struct cm_function_proto *function)
{
    static const int order[] = {CM_FUNCTION_DOMAIN, CM_FUNCTION_OVERLOAD, CM_FUNCTION_OPSET_IMPORT,
                                CM_FUNCTION_DOC_STRING, CM_FUNCTION_METADATA_PROPS};
    bool any = false;

    if (p->upstream)
        print_upstream_function_header(p, function);
    else
        print_header(p, &cm_function_info, function, order, CM_COUNT(order));
    cm_put_word(p, function->name);
    cm_put(p, " ", 1);
    if (p->upstream)
        print_upstream_parameters(p, function);
    else
        print_parameters(p, function);
    print_formals(p, &function->input);
    cm_put_text(p, " => ");
    print_formals(p, &function->output);
    cm_put_text(p, "\n");
    p->indent += STEP;
    for (size_t i = 0; i < function->value_info.count && !p->upstream && p->status == CM_OK; i++) {
        if (!any)
            cm_put_spaces(p, p->indent);
        separate(p, &any);
        cm_print_value(p, &function->value_info.items[i]);
    }
    if (any) {
        cm_put(p, "\n", 1);
        cm_put_spaces(p, p->indent);
        cm_put_text(p, ">\n");
    }
    cm_put_text(p, "{\n");
    cm_print_nodes(p, &function->node);
    p->indent -= STEP;
    cm_put(p, "}", 1);
}

static void print_training(struct cm_printer *p, const struct cm_training_proto *training)
{
    static const int order[] = {CM_TRAINING_INITIALIZATION, CM_TRAINING_INITIALIZATION_BINDING,
                                CM_TRAINING_ALGORITHM, CM_TRAINING_UPDATE_BINDING};
    bool any = false;

    cm_put_text(p, "training {\n");
    p->indent += STEP;
    for (size_t i = 0; i < CM_COUNT(order); i++) {
        if (!cm_msg_has(&training->msg, order[i]))
            continue;
        if (any)
            cm_put_text(p, ",\n");
        cm_put_spaces(p, p->indent);
        cm_print_field(p, &cm_training_info, training, order[i]);
        any = true;
    }
    p->indent -= STEP;
    cm_put_text(p, any ? "\n}" : "}");
}

static const int model_order[] = {
    CM_MODEL_IR_VERSION,       CM_MODEL_OPSET_IMPORT,   CM_MODEL_PRODUCER_NAME,
    CM_MODEL_PRODUCER_VERSION, CM_MODEL_DOMAIN,         CM_MODEL_MODEL_VERSION,
    CM_MODEL_DOC_STRING,       CM_MODEL_METADATA_PROPS, CM_MODEL_CONFIGURATION,
};

static void print_model_header(struct cm_printer *p, const struct cm_model_proto *model)
{
    if (!p->upstream) {
        print_header(p, &cm_model_info, model, model_order, CM_COUNT(model_order));
        /* The graph's own header would be taken for the model's. */
        if (!(model->msg.has & CM_NOTES_MODEL) && model->graph->msg.has & CM_NOTES_GRAPH)
            cm_put_text(p, "<opset_import: []>\n");
        return;
    }
    cm_put_text(p, "<\n   ir_version: ");
    cm_put_int64(p, model->ir_version);
    cm_put_text(p, ",\n   ");
    cm_print_field(p, &cm_model_info, model, CM_MODEL_OPSET_IMPORT);
    for (size_t i = 2; i < CM_COUNT(model_order); i++) {
        if (!cm_msg_has(&model->msg, model_order[i]) || model_order[i] == CM_MODEL_CONFIGURATION)
            continue;
        cm_put_text(p, ",\n   ");
        cm_print_field(p, &cm_model_info, model, model_order[i]);
    }
    cm_put_text(p, "\n>\n");
}

static void print_model(struct cm_printer *p, const struct cm_model_proto *model)
{
    static const struct cm_graph_proto no_graph;

    if (!model->graph && !p->upstream) {
        cm_print_fail(p, CM_BAD_MODEL, "a model without a graph has no text form");
        return;
    }
    print_model_header(p, model);
    cm_print_graph(p, model->graph ? model->graph : &no_graph);
    for (size_t i = 0; i < model->functions.count && p->status == CM_OK; i++) {
        cm_put_text(p, "\n");
        print_function(p, &model->functions.items[i]);
    }
    for (size_t i = 0; i < model->training_info.count && !p->upstream && p->status == CM_OK; i++) {
        cm_put_text(p, "\n");
        print_training(p, &model->training_info.items[i]);
    }
}

/* Fields that a newer ONNX may have added are kept in the file's bytes only. */
static enum cm_status refuse_unknown(void *arg, const struct cm_message_info *info,
                                     struct cm_msg *msg)
{
    struct cm_wire wire = cm_wire_over(msg->source);
    struct cm_wire_field field;

    while (wire.at < wire.end && cm_wire_next(&wire, &field) == CM_WIRE_OK)
        if (cm_message_field(info, field.number) < 0)
            return cm_fail(arg, CM_UNSUPPORTED, "field %u of %s is unknown and has no text form",
                           (unsigned)field.number, info->name);
    return CM_OK;
}

static enum cm_status begin(struct cm_printer *p, const struct cm_syntax_options *options,
                            cm_text_write_fn *write, void *to, struct cm_error *err,
                            const struct cm_message_info *info, const void *msg)
{
    memset(p, 0, sizeof *p);
    p->write = write;
    p->to = to;
    p->err = err;
    p->upstream = options && options->upstream;
    p->elide = options ? options->elide : 0;
    if (p->upstream)
        return CM_OK;
    /* The walk is for those who change messages, too; this visitor only looks. */
    const enum cm_status status =
        cm_message_walk(info, (void *)(uintptr_t)msg, refuse_unknown, err);
    /* That is the walk's own word, without a sentence. */
    return status == CM_LIMIT ? cm_fail(err, CM_LIMIT, "messages are nested too deep") : status;
}

enum cm_status cm_syntax_print_model(const struct cm_model_proto *model,
                                     const struct cm_syntax_options *options,
                                     cm_text_write_fn *write, void *to, struct cm_error *err)
{
    struct cm_printer p;

    CM_TRY(begin(&p, options, write, to, err, &cm_model_info, model));
    print_model(&p, model);
    if (!p.upstream)
        cm_put(&p, "\n", 1);
    return cm_print_end(&p);
}

enum cm_status cm_syntax_print_graph(const struct cm_graph_proto *graph,
                                     const struct cm_syntax_options *options,
                                     cm_text_write_fn *write, void *to, struct cm_error *err)
{
    struct cm_printer p;

    CM_TRY(begin(&p, options, write, to, err, &cm_graph_info, graph));
    cm_print_graph(&p, graph);
    if (!p.upstream)
        cm_put(&p, "\n", 1);
    return cm_print_end(&p);
}

enum cm_status cm_syntax_print_function(const struct cm_function_proto *function,
                                        const struct cm_syntax_options *options,
                                        cm_text_write_fn *write, void *to, struct cm_error *err)
{
    struct cm_printer p;

    CM_TRY(begin(&p, options, write, to, err, &cm_function_info, function));
    print_function(&p, function);
    if (!p.upstream)
        cm_put(&p, "\n", 1);
    return cm_print_end(&p);
}

enum cm_status cm_syntax_print_node(const struct cm_node_proto *node,
                                    const struct cm_syntax_options *options,
                                    cm_text_write_fn *write, void *to, struct cm_error *err)
{
    struct cm_printer p;

    CM_TRY(begin(&p, options, write, to, err, &cm_node_info, node));
    p.indent = p.upstream ? STEP : 0;
    cm_print_node(&p, node);
    return cm_print_end(&p);
}
