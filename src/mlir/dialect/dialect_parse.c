/* Operations of MLIR's text: all in the generic form, and in their own the few that ONNX-MLIR
 * writes so. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/dialect/dialect_tree.h"
#include "onnx/syntax.h"

static enum cm_status parse_ops(struct cm_lexer *lex, int depth, const char *end,
                                struct cm_dialect_ops *out);

/* `loc(..)` says where an operation came from; nothing is kept of it. */
static enum cm_status skip_location(struct cm_lexer *lex)
{
    struct cm_str inside;

    if (!cm_lex_take_word(lex, "loc"))
        return CM_OK;
    CM_TRY(cm_dialect_expect(lex, "("));
    return cm_dialect_skip_to(lex, '(', ')', &inside);
}

static bool is_ssa(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '.' || c == '-';
}

/* "%5", then separator and a number where there is one: "#1" of an operand, ":2" of results. */
static enum cm_status parse_ssa(struct cm_lexer *lex, const char *separator, size_t otherwise,
                                struct cm_dialect_ssa *out)
{
    if (cm_lex_peek(lex) != '%')
        return cm_lex_expected(lex, "a value such as %0");
    out->at = lex->at++;
    const char *const start = lex->at;
    while (lex->at < lex->end && is_ssa((unsigned char)*lex->at))
        lex->at++;
    out->name = (struct cm_str){start, (size_t)(lex->at - start)};
    out->index = otherwise;
    if (!out->name.size)
        return cm_lex_expected(lex, "a name after '%'");
    if (!separator || !cm_dialect_take(lex, separator))
        return CM_OK;
    struct cm_number_text number;
    int64_t value;
    const char *const at = lex->at;
    CM_TRY(cm_dialect_number(lex, &number));
    if (!cm_str_to_int64(number.text, &value) || value < 0 || value > 1 << 20)
        return cm_lex_fail_at(lex, at, CM_BAD_MODEL, "this is not a number of results");
    out->index = (size_t)value;
    return CM_OK;
}

static enum cm_status parse_operands(struct cm_lexer *lex, struct cm_dialect_ssas *out)
{
    do {
        struct cm_dialect_ssa ssa;
        CM_TRY(parse_ssa(lex, "#", 0, &ssa));
        *CM_PUSH(lex->arena, out) = ssa;
    } while (cm_dialect_take(lex, ","));
    return CM_OK;
}

static enum cm_status parse_types(struct cm_lexer *lex, const char *end,
                                  struct cm_dialect_types *out)
{
    if (end && cm_dialect_take(lex, end))
        return CM_OK;
    do {
        struct cm_dialect_type type;
        CM_TRY(cm_dialect_parse_type(lex, &type));
        *CM_PUSH(lex->arena, out) = type;
    } while (cm_dialect_take(lex, ","));
    return end ? cm_dialect_expect(lex, end) : CM_OK;
}

/* `T` or `(T, ..)` */
static enum cm_status parse_result_types(struct cm_lexer *lex, struct cm_dialect_types *out)
{
    if (cm_dialect_take(lex, "("))
        return parse_types(lex, ")", out);
    struct cm_dialect_type type;
    CM_TRY(cm_dialect_parse_type(lex, &type));
    *CM_PUSH(lex->arena, out) = type;
    return CM_OK;
}

/* `%arg0: T {..}, ..` up to the closing parenthesis; without_names: `T {..}, ..` */
static enum cm_status parse_arguments(struct cm_lexer *lex, bool names,
                                      struct cm_dialect_arguments *out)
{
    if (cm_dialect_take(lex, ")"))
        return CM_OK;
    do {
        struct cm_dialect_argument argument = {0};
        if (names) {
            CM_TRY(parse_ssa(lex, NULL, 1, &argument.ssa));
            CM_TRY(cm_dialect_expect(lex, ":"));
        }
        CM_TRY(cm_dialect_parse_type(lex, &argument.type));
        if (cm_lex_peek(lex) == '{')
            CM_TRY(cm_dialect_parse_dict(lex, &argument.attrs));
        CM_TRY(skip_location(lex));
        *CM_PUSH(lex->arena, out) = argument;
    } while (cm_dialect_take(lex, ","));
    return cm_dialect_expect(lex, ")");
}

/* `{ ^bb0(..): .. }` */
static enum cm_status parse_region(struct cm_lexer *lex, int depth, struct cm_dialect_op *op)
{
    struct cm_dialect_region region = {0};

    if (depth >= CM_SYNTAX_DEPTH)
        return cm_lex_fail_at(lex, lex->at, CM_LIMIT, "regions are nested more than %d deep",
                              CM_SYNTAX_DEPTH);
    cm_lex_peek(lex);
    region.at = lex->at;
    CM_TRY(cm_dialect_expect(lex, "{"));
    if (cm_dialect_take(lex, "^")) {
        lex->at += cm_lex_peek_word(lex).size;
        if (cm_dialect_take(lex, "("))
            CM_TRY(parse_arguments(lex, true, &region.arguments));
        CM_TRY(cm_dialect_expect(lex, ":"));
    }
    CM_TRY(parse_ops(lex, depth + 1, "}", &region.ops));
    *CM_PUSH(lex->arena, &op->regions) = region;
    return CM_OK;
}

/* "name"(%1) <{..}> ({..}) {..} : (T) -> T */
static enum cm_status parse_generic(struct cm_lexer *lex, int depth, struct cm_dialect_op *op)
{
    struct cm_dialect_types operand_types = {0};

    CM_TRY(cm_dialect_string(lex, &op->name));
    CM_TRY(cm_dialect_expect(lex, "("));
    if (!cm_dialect_take(lex, ")")) {
        CM_TRY(parse_operands(lex, &op->operands));
        CM_TRY(cm_dialect_expect(lex, ")"));
    }
    if (cm_lex_peek(lex) == '[')
        return cm_lex_fail_at(lex, lex->at, CM_UNSUPPORTED,
                              "branches between blocks are not supported");
    if (cm_dialect_take(lex, "<")) {
        CM_TRY(cm_dialect_parse_dict(lex, &op->attrs));
        CM_TRY(cm_dialect_expect(lex, ">"));
    }
    if (cm_dialect_take(lex, "(")) {
        do {
            CM_TRY(parse_region(lex, depth, op));
        } while (cm_dialect_take(lex, ","));
        CM_TRY(cm_dialect_expect(lex, ")"));
    }
    if (cm_lex_peek(lex) == '{')
        CM_TRY(cm_dialect_parse_dict(lex, &op->attrs));
    CM_TRY(cm_dialect_expect(lex, ":"));
    CM_TRY(cm_dialect_expect(lex, "("));
    const char *const types_at = lex->at;
    CM_TRY(parse_types(lex, ")", &operand_types));
    if (operand_types.count != op->operands.count)
        return cm_lex_fail_at(lex, types_at, CM_BAD_MODEL, "%zu types for %zu operands",
                              operand_types.count, op->operands.count);
    CM_TRY(cm_dialect_expect(lex, "->"));
    return parse_result_types(lex, &op->result_types);
}

static struct cm_dialect_entry *add_entry(struct cm_lexer *lex, struct cm_dialect_op *op,
                                          const char *key, enum cm_dialect_attr_kind kind)
{
    struct cm_dialect_entry *const entry = CM_PUSH(lex->arena, &op->attrs);

    *entry = (struct cm_dialect_entry){
        .key = cm_str(key), .at = op->at, .value = {.kind = kind, .at = lex->at}};
    return entry;
}

static enum cm_status parse_module(struct cm_lexer *lex, int depth, struct cm_dialect_op *op)
{
    struct cm_str symbol;

    op->name = CM_STR("builtin.module");
    if (cm_lex_peek(lex) == '@')
        CM_TRY(cm_dialect_symbol(lex, &symbol));
    if (cm_lex_take_word(lex, "attributes"))
        CM_TRY(cm_dialect_parse_dict(lex, &op->attrs));
    return parse_region(lex, depth, op);
}

static enum cm_status parse_function(struct cm_lexer *lex, int depth, struct cm_dialect_op *op)
{
    struct cm_dialect_arguments arguments = {0};
    struct cm_str symbol;

    op->name = CM_STR("func.func");
    if (!cm_lex_take_word(lex, "private") && !cm_lex_take_word(lex, "nested"))
        cm_lex_take_word(lex, "public");
    CM_TRY(cm_dialect_symbol(lex, &symbol));
    add_entry(lex, op, "sym_name", CM_DIALECT_ATTR_STRING)->value.text = symbol;
    CM_TRY(cm_dialect_expect(lex, "("));
    CM_TRY(parse_arguments(lex, cm_lex_peek(lex) == '%', &arguments));
    if (cm_dialect_take(lex, "->")) {
        if (cm_dialect_take(lex, "(")) {
            CM_TRY(parse_arguments(lex, false, &op->outputs));
        } else {
            struct cm_dialect_argument *const one = CM_PUSH(lex->arena, &op->outputs);
            *one = (struct cm_dialect_argument){0};
            CM_TRY(cm_dialect_parse_type(lex, &one->type));
        }
    }
    if (cm_lex_take_word(lex, "attributes"))
        CM_TRY(cm_dialect_parse_dict(lex, &op->attrs));
    CM_TRY(skip_location(lex));
    if (cm_lex_peek(lex) != '{')
        return CM_OK; /* a declaration */
    CM_TRY(parse_region(lex, depth, op));
    op->regions.items[0].arguments = arguments;
    return CM_OK;
}

/* onnx.Constant dense<..> : T, or onnx.Constant {..} : T */
static enum cm_status parse_constant(struct cm_lexer *lex, struct cm_dialect_op *op)
{
    struct cm_dialect_attr value;

    op->name = CM_STR("onnx.Constant");
    if (cm_lex_peek(lex) == '{')
        CM_TRY(cm_dialect_parse_dict(lex, &op->attrs));
    if (!cm_dialect_take(lex, ":")) {
        CM_TRY(cm_dialect_parse_attr(lex, &value));
        if (value.kind != CM_DIALECT_ATTR_DENSE && value.kind != CM_DIALECT_ATTR_RESOURCE)
            return cm_lex_fail_at(lex, value.at, CM_BAD_MODEL, "expected dense values");
        add_entry(lex, op, "value", value.kind)->value = value;
        *CM_PUSH(lex->arena, &op->result_types) = value.type;
        return CM_OK;
    }
    return parse_result_types(lex, &op->result_types);
}

/* onnx.Return %1, %2 : T, T */
static enum cm_status parse_return(struct cm_lexer *lex, struct cm_dialect_op *op)
{
    struct cm_dialect_types types = {0};

    if (cm_lex_peek(lex) == '{')
        CM_TRY(cm_dialect_parse_dict(lex, &op->attrs));
    if (cm_lex_peek(lex) != '%')
        return CM_OK;
    CM_TRY(parse_operands(lex, &op->operands));
    CM_TRY(cm_dialect_expect(lex, ":"));
    return parse_types(lex, NULL, &types);
}

static enum cm_status parse_own_form(struct cm_lexer *lex, int depth, struct cm_dialect_op *op)
{
    const struct cm_str word = cm_lex_peek_word(lex);

    lex->at += word.size;
    if (cm_str_is(word, "module") || cm_str_is(word, "builtin.module"))
        return parse_module(lex, depth, op);
    if (cm_str_is(word, "func.func") || cm_str_is(word, "func"))
        return parse_function(lex, depth, op);
    if (cm_str_is(word, "onnx.Constant"))
        return parse_constant(lex, op);
    if (cm_str_is(word, "return") || cm_str_is(word, "func.return") ||
        cm_str_is(word, "onnx.Return") || cm_str_is(word, "onnx.Yield")) {
        op->name = cm_str_is(word, "onnx.Yield") ? word : CM_STR("onnx.Return");
        return parse_return(lex, op);
    }
    lex->at = op->at;
    if (!word.size)
        return cm_lex_expected(lex, "an operation");
    return cm_lex_fail_at(lex, op->at, CM_UNSUPPORTED,
                          "operation '%.*s' is not known in a form of its own; the generic form "
                          "(mlir-opt --mlir-print-op-generic) of ONNX operators is read",
                          CM_STR_FMT(word));
}

static enum cm_status parse_op(struct cm_lexer *lex, int depth, struct cm_dialect_op *op)
{
    if (cm_lex_peek(lex) == '%') {
        do {
            struct cm_dialect_ssa ssa;
            CM_TRY(parse_ssa(lex, ":", 1, &ssa));
            *CM_PUSH(lex->arena, &op->results) = ssa;
        } while (cm_dialect_take(lex, ","));
        CM_TRY(cm_dialect_expect(lex, "="));
    }
    const int next = cm_lex_peek(lex);
    size_t results = 0;

    op->at = lex->at;
    if (next == '"')
        CM_TRY(parse_generic(lex, depth, op));
    else
        CM_TRY(parse_own_form(lex, depth, op));
    for (size_t i = 0; i < op->results.count; i++)
        results += op->results.items[i].index;
    if (results && results != op->result_types.count)
        return cm_lex_fail_at(lex, op->at, CM_BAD_MODEL,
                              "operation has %zu results but types for %zu", results,
                              op->result_types.count);
    return skip_location(lex);
}

/* `#loc = loc(..)` before or after the module. */
static enum cm_status skip_alias(struct cm_lexer *lex)
{
    const char *const at = lex->at++;
    const struct cm_str word = cm_lex_peek_word(lex);

    lex->at += word.size;
    if (*at == '#' && cm_dialect_take(lex, "=") && cm_str_is(cm_lex_peek_word(lex), "loc"))
        return skip_location(lex);
    return cm_lex_fail_at(lex, at, CM_UNSUPPORTED, "alias '%c%.*s' is not supported", *at,
                          CM_STR_FMT(word));
}

static enum cm_status parse_ops(struct cm_lexer *lex, int depth, const char *end,
                                struct cm_dialect_ops *out)
{
    for (;;) {
        struct cm_dialect_op op = {0};
        const int next = cm_lex_peek(lex);

        if (end ? cm_dialect_take(lex, end) : next < 0 || next == '{')
            return CM_OK;
        if (depth == 0 && (next == '#' || next == '!')) {
            CM_TRY(skip_alias(lex));
            continue;
        }
        if (next == '^')
            return cm_lex_fail_at(lex, lex->at, CM_UNSUPPORTED,
                                  "regions of several blocks are not supported");
        CM_TRY(parse_op(lex, depth, &op));
        *CM_PUSH(lex->arena, out) = op;
    }
}

static enum cm_status resource_key(struct cm_lexer *lex, struct cm_str *out)
{
    *out = cm_lex_peek_word(lex);
    if (out->size)
        lex->at += out->size;
    else
        CM_TRY(cm_dialect_string(lex, out));
    return cm_dialect_expect(lex, ":");
}

/* {-# dialect_resources: { builtin: { name: "0x..", .. } } #-} */
static enum cm_status parse_resources(struct cm_lexer *lex, struct cm_dialect_tree *tree)
{
    struct cm_str section, dialect, name, inside;

    while (!cm_dialect_take(lex, "#-}")) {
        CM_TRY(resource_key(lex, &section));
        CM_TRY(cm_dialect_expect(lex, "{"));
        if (!cm_str_is(section, "dialect_resources")) {
            CM_TRY(cm_dialect_skip_to(lex, '{', '}', &inside));
            cm_dialect_take(lex, ",");
            continue;
        }
        while (!cm_dialect_take(lex, "}")) {
            CM_TRY(resource_key(lex, &dialect));
            CM_TRY(cm_dialect_expect(lex, "{"));
            while (!cm_dialect_take(lex, "}")) {
                struct cm_str *const bytes = CM_NEW(lex->arena, struct cm_str);
                CM_TRY(resource_key(lex, &name));
                CM_TRY(cm_dialect_string(lex, bytes));
                *cm_map_insert(&tree->resources, lex->arena, name, NULL) =
                    (uint64_t)(uintptr_t)bytes;
                cm_dialect_take(lex, ",");
            }
            cm_dialect_take(lex, ",");
        }
        cm_dialect_take(lex, ",");
    }
    return CM_OK;
}

enum cm_status cm_dialect_parse_tree(struct cm_str text, struct cm_arena *arena,
                                     struct cm_dialect_tree *out, struct cm_error *err)
{
    text = cm_syntax_skip_mark(text);
    *out = (struct cm_dialect_tree){
        .lex = {.rules = &cm_dialect_lex,
                .start = text.data,
                .at = text.data,
                .end = text.data + text.size,
                .arena = arena,
                .err = err},
    };
    CM_TRY(parse_ops(&out->lex, 0, NULL, &out->ops));
    if (cm_dialect_take(&out->lex, "{-#"))
        CM_TRY(parse_resources(&out->lex, out));
    return cm_lex_peek(&out->lex) < 0 ? CM_OK : cm_lex_expected(&out->lex, "the end of the text");
}
