/* Graphs, functions, training and models of the text form, and the parser's entry points. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "onnx/syntax.h"
#include "onnx/syntax_parse.h"

struct values {
    CM_ARRAY(struct cm_value_info_proto);
};

struct tensors {
    CM_ARRAY(struct cm_tensor_proto);
};

static enum cm_status expect_arrow(struct cm_lexer *lex)
{
    if (cm_lex_peek(lex) != '=')
        return cm_lex_expected(lex, "'=>'");
    lex->at++;
    return cm_lex_expect(lex, '>');
}

/* Values up to the closing parenthesis. With initializers each may be followed by = and its
 * default. */
static enum cm_status parse_values(struct cm_lexer *lex, struct values *values,
                                   struct tensors *initializers)
{
    CM_TRY(cm_lex_expect(lex, '('));
    if (cm_lex_take(lex, ')'))
        return CM_OK;
    do {
        struct cm_value_info_proto *const value = CM_ADD(lex, values);
        CM_TRY(cm_parse_value(lex, value));
        if (initializers && cm_lex_take(lex, '=')) {
            struct cm_tensor_proto *const tensor = CM_ADD(lex, initializers);
            tensor->name = value->name;
            cm_msg_set(&tensor->msg, CM_TENSOR_NAME);
            CM_TRY(cm_parse_tensor_data(lex, value->type, tensor));
        }
    } while (cm_lex_take(lex, ','));
    return cm_lex_expect(lex, ')');
}

/* A tensor's notes become those of a value, which has fewer. */
static enum cm_status take_notes(struct cm_lexer *lex, const struct cm_tensor_proto *from,
                                 struct cm_value_info_proto *to)
{
    if (from->msg.has &
        ~(CM_BIT(CM_TENSOR_DOC_STRING) | CM_BIT(CM_TENSOR_METADATA_PROPS) | CM_BIT(CM_TENSOR_NAME)))
        return cm_lex_expected(lex, "'=' and data");
    to->doc_string = from->doc_string;
    to->metadata_props = from->metadata_props;
    if (cm_msg_has(&from->msg, CM_TENSOR_DOC_STRING))
        cm_msg_set(&to->msg, CM_VALUE_INFO_DOC_STRING);
    if (cm_msg_has(&from->msg, CM_TENSOR_METADATA_PROPS))
        cm_msg_set(&to->msg, CM_VALUE_INFO_METADATA_PROPS);
    return CM_OK;
}

/* [type] name [notes], and = data where it is an initializer. */
static enum cm_status parse_declaration(struct cm_lexer *lex, struct values *values,
                                        struct tensors *initializers)
{
    struct cm_value_info_proto value = {0};
    struct cm_tensor_proto tensor = {0};

    if (cm_at_type(lex)) {
        value.type = CM_NEW(lex->arena, struct cm_type_proto);
        cm_msg_set(&value.msg, CM_VALUE_INFO_TYPE);
        CM_TRY(cm_parse_type(lex, value.type));
    }
    CM_TRY(cm_lex_name(lex, "a name", &value.name));
    cm_msg_set(&value.msg, CM_VALUE_INFO_NAME);
    tensor.name = value.name;
    cm_msg_set(&tensor.msg, CM_TENSOR_NAME);
    CM_TRY(cm_parse_notes(lex, &cm_tensor_info, &tensor, CM_NOTES_TENSOR));
    if (initializers && cm_lex_take(lex, '=')) {
        CM_TRY(cm_parse_tensor_data(lex, value.type, &tensor));
        *CM_ADD(lex, initializers) = tensor;
        return CM_OK;
    }
    CM_TRY(take_notes(lex, &tensor, &value));
    *CM_ADD(lex, values) = value;
    return CM_OK;
}

static enum cm_status parse_declarations(struct cm_lexer *lex, struct cm_graph_proto *out,
                                         struct tensors *initializers)
{
    struct values values = {0};
    struct {
        CM_ARRAY(struct cm_sparse_proto);
    } sparse = {0};

    if (!cm_lex_take(lex, '<') || cm_lex_take(lex, '>'))
        return CM_OK;
    do {
        if (cm_at_sparse(lex))
            CM_TRY(cm_parse_sparse(lex, CM_ADD(lex, &sparse)));
        else
            CM_TRY(parse_declaration(lex, &values, initializers));
    } while (cm_lex_take(lex, ','));
    CM_SET_LIST(out, value_info, CM_GRAPH_VALUE_INFO, values);
    CM_SET_LIST(out, sparse_initializer, CM_GRAPH_SPARSE_INITIALIZER, sparse);
    return cm_lex_expect(lex, '>');
}

enum cm_status cm_parse_graph(struct cm_lexer *lex, struct cm_graph_proto *out)
{
    struct values inputs = {0}, outputs = {0};
    struct tensors initializers = {0};

    CM_TRY(cm_lex_enter(lex));
    CM_TRY(cm_parse_notes(lex, &cm_graph_info, out, CM_NOTES_GRAPH));
    CM_TRY(cm_lex_name(lex, "the name of a graph", &out->name));
    cm_msg_set(&out->msg, CM_GRAPH_NAME);
    CM_TRY(parse_values(lex, &inputs, &initializers));
    CM_TRY(expect_arrow(lex));
    CM_TRY(parse_values(lex, &outputs, NULL));
    CM_TRY(parse_declarations(lex, out, &initializers));
    CM_TRY(cm_parse_nodes(lex, &out->node));
    CM_SET_LIST(out, input, CM_GRAPH_INPUT, inputs);
    CM_SET_LIST(out, output, CM_GRAPH_OUTPUT, outputs);
    CM_SET_LIST(out, initializer, CM_GRAPH_INITIALIZER, initializers);
    if (out->node.count)
        cm_msg_set(&out->msg, CM_GRAPH_NODE);
    lex->depth--;
    return CM_OK;
}

/* <name, name = default, ..> */
static enum cm_status parse_parameters(struct cm_lexer *lex, struct cm_function_proto *out)
{
    struct {
        CM_ARRAY(struct cm_str);
    } names = {0};
    struct {
        CM_ARRAY(struct cm_attribute_proto);
    } defaults = {0};

    if (!cm_lex_take(lex, '<'))
        return CM_OK;
    do {
        struct cm_attribute_proto attribute = {0};
        bool bare;
        CM_TRY(cm_parse_attribute(lex, &attribute, &bare));
        if (bare)
            *CM_ADD(lex, &names) = attribute.name;
        else
            *CM_ADD(lex, &defaults) = attribute;
    } while (cm_lex_take(lex, ','));
    CM_SET_LIST(out, attribute, CM_FUNCTION_ATTRIBUTE, names);
    CM_SET_LIST(out, attribute_proto, CM_FUNCTION_ATTRIBUTE_PROTO, defaults);
    return cm_lex_expect(lex, '>');
}

/* The names of a function's inputs or outputs; those with a type or notes are value infos as well.
 */
static enum cm_status parse_formals(struct cm_lexer *lex, struct cm_strs *out, struct values *infos)
{
    struct values values = {0};

    CM_TRY(parse_values(lex, &values, NULL));
    out->items = CM_NEW_ARRAY(lex->arena, struct cm_str, values.count);
    out->count = values.count;
    for (size_t i = 0; i < values.count; i++) {
        out->items[i] = values.items[i].name;
        if (values.items[i].msg.has != CM_BIT(CM_VALUE_INFO_NAME))
            *CM_ADD(lex, infos) = values.items[i];
    }
    return CM_OK;
}

static enum cm_status parse_function_body(struct cm_lexer *lex, struct cm_function_proto *out)
{
    struct values infos = {0};

    CM_TRY(parse_parameters(lex, out));
    CM_TRY(parse_formals(lex, &out->input, &infos));
    CM_TRY(expect_arrow(lex));
    CM_TRY(parse_formals(lex, &out->output, &infos));
    if (cm_lex_take(lex, '<') && !cm_lex_take(lex, '>')) {
        do {
            CM_TRY(parse_declaration(lex, &infos, NULL));
        } while (cm_lex_take(lex, ','));
        CM_TRY(cm_lex_expect(lex, '>'));
    }
    CM_TRY(cm_parse_nodes(lex, &out->node));
    CM_SET_LIST(out, value_info, CM_FUNCTION_VALUE_INFO, infos);
    if (out->input.count)
        cm_msg_set(&out->msg, CM_FUNCTION_INPUT);
    if (out->output.count)
        cm_msg_set(&out->msg, CM_FUNCTION_OUTPUT);
    if (out->node.count)
        cm_msg_set(&out->msg, CM_FUNCTION_NODE);
    return CM_OK;
}

static enum cm_status parse_function(struct cm_lexer *lex, struct cm_function_proto *out)
{
    CM_TRY(cm_parse_notes(lex, &cm_function_info, out, CM_NOTES_FUNCTION));
    CM_TRY(cm_lex_name(lex, "the name of a function", &out->name));
    cm_msg_set(&out->msg, CM_FUNCTION_NAME);
    return parse_function_body(lex, out);
}

/* training { initialization: graph, algorithm: graph, .. }; the brace tells it from a function of
 * that name. */
static bool at_training(struct cm_lexer *lex)
{
    return cm_str_is(cm_lex_peek_word(lex), "training") && cm_lex_peek_after_word(lex) == '{';
}

static enum cm_status parse_training(struct cm_lexer *lex, struct cm_training_proto *out)
{
    cm_lex_take_word(lex, "training");
    CM_TRY(cm_lex_expect(lex, '{'));
    if (cm_lex_take(lex, '}'))
        return CM_OK;
    return cm_parse_fields(lex, &cm_training_info, out, UINT32_MAX, '}');
}

static enum cm_status parse_model(struct cm_lexer *lex, struct cm_model_proto *out)
{
    struct {
        CM_ARRAY(struct cm_function_proto);
    } functions = {0};
    struct {
        CM_ARRAY(struct cm_training_proto);
    } training = {0};

    CM_TRY(cm_parse_notes(lex, &cm_model_info, out, CM_NOTES_MODEL));
    out->graph = CM_NEW(lex->arena, struct cm_graph_proto);
    cm_msg_set(&out->msg, CM_MODEL_GRAPH);
    CM_TRY(cm_parse_graph(lex, out->graph));
    while (cm_lex_peek(lex) >= 0) {
        if (at_training(lex))
            CM_TRY(parse_training(lex, CM_ADD(lex, &training)));
        else
            CM_TRY(parse_function(lex, CM_ADD(lex, &functions)));
    }
    CM_SET_LIST(out, functions, CM_MODEL_FUNCTIONS, functions);
    CM_SET_LIST(out, training_info, CM_MODEL_TRAINING_INFO, training);
    return CM_OK;
}

struct cm_str cm_syntax_skip_mark(struct cm_str text)
{
    const bool marked = text.size >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0;
    return marked ? (struct cm_str){text.data + 3, text.size - 3} : text;
}

static struct cm_lexer lexer_over(struct cm_str text, struct cm_arena *arena, struct cm_error *err)
{
    text = cm_syntax_skip_mark(text);
    const char *const start = text.data ? text.data : "";

    return (struct cm_lexer){&cm_lex_onnx, start, start, start + text.size, arena, err, 0};
}

static enum cm_status expect_end(struct cm_lexer *lex)
{
    return cm_lex_peek(lex) < 0 ? CM_OK : cm_lex_expected(lex, "the end");
}

enum cm_status cm_syntax_parse_model(struct cm_str text, struct cm_arena *arena,
                                     struct cm_model_proto *out, struct cm_error *err)
{
    struct cm_lexer lex = lexer_over(text, arena, err);

    memset(out, 0, sizeof *out);
    return parse_model(&lex, out);
}

enum cm_status cm_syntax_parse_graph(struct cm_str text, struct cm_arena *arena,
                                     struct cm_graph_proto *out, struct cm_error *err)
{
    struct cm_lexer lex = lexer_over(text, arena, err);

    memset(out, 0, sizeof *out);
    CM_TRY(cm_parse_graph(&lex, out));
    return expect_end(&lex);
}

enum cm_status cm_syntax_parse_function(struct cm_str text, struct cm_arena *arena,
                                        struct cm_function_proto *out, struct cm_error *err)
{
    struct cm_lexer lex = lexer_over(text, arena, err);

    memset(out, 0, sizeof *out);
    CM_TRY(parse_function(&lex, out));
    return expect_end(&lex);
}

enum cm_status cm_syntax_parse_node(struct cm_str text, struct cm_arena *arena,
                                    struct cm_node_proto *out, struct cm_error *err)
{
    struct cm_lexer lex = lexer_over(text, arena, err);

    memset(out, 0, sizeof *out);
    CM_TRY(cm_parse_node(&lex, out));
    return expect_end(&lex);
}
