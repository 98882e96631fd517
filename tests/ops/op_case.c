/* Blocks of text become operator cases. */
// SPDX-License-Identifier: Apache-2.0
#include "op_case.h"
#include "base/array.h"

#include "case_value.h"
#include "onnx/syntax.h"
#include "schema/schema.h"

/* Lines of a block that belong together, as one text. */
struct item {
    struct cm_str text;
    int line;
};

struct block {
    CM_ARRAY(struct item);
};

static struct cm_str take_line(struct case_reader *reader)
{
    const char *end = reader->rest.size ? memchr(reader->rest.data, '\n', reader->rest.size) : NULL;
    const size_t size = end ? (size_t)(end - reader->rest.data) : reader->rest.size;
    const struct cm_str line = {reader->rest.data, size};
    const size_t used = end ? size + 1 : size;

    reader->rest = (struct cm_str){reader->rest.data + used, reader->rest.size - used};
    reader->line++;
    return line;
}

/* Brackets opened and not closed, strings left out. */
static int open_brackets(struct cm_str text)
{
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < text.size; i++) {
        const char c = text.data[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted)
            depth += (strchr("([{", c) && c) - (strchr(")]}", c) && c);
    }
    return depth;
}

/* Lines up to the next blank one. A line goes on in those that start with a space, and until its
 * brackets are closed. */
static void take_block(struct case_reader *reader, struct cm_arena *arena, struct block *out)
{
    while (reader->rest.size) {
        const bool indented = reader->rest.data[0] == ' ' || reader->rest.data[0] == '\t';
        const int number = reader->line;
        const struct cm_str line = take_line(reader);
        struct item *last = out->count ? &out->items[out->count - 1] : NULL;
        const bool inside = last && open_brackets(last->text) > 0;
        if (case_trim(line).size == 0 && !inside) {
            if (out->count)
                return;
            continue;
        }
        if (line.size && line.data[0] == '#')
            continue;
        if (last && (indented || inside))
            last->text.size = (size_t)(line.data + line.size - last->text.data);
        else
            *CM_PUSH(arena, out) = (struct item){line, number};
    }
}

/* The first word of text; rest is what follows. */
static struct cm_str first_word(struct cm_str text, struct cm_str *rest)
{
    size_t n = 0;
    text = case_trim(text);
    while (n < text.size && !strchr(" \t\n<", text.data[n]))
        n++;
    *rest = case_trim((struct cm_str){text.data + n, text.size - n});
    return (struct cm_str){text.data, n};
}

static bool is_name_char(char c)
{
    return c == '_' || c == '.' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

/* Does an attribute begin here: a name, then "=" or ":"? */
static bool begins_attribute(struct cm_str text)
{
    size_t n = 0;
    while (n < text.size && is_name_char(text.data[n]))
        n++;
    if (n == 0)
        return false;
    while (n < text.size && text.data[n] == ' ')
        n++;
    return n < text.size &&
           (text.data[n] == ':' ||
            (text.data[n] == '=' && !(n + 1 < text.size && text.data[n + 1] == '>')));
}

/* ONNX's text form wants commas between attributes; ours may leave them out. */
static struct cm_str with_commas(struct cm_arena *arena, struct cm_str text)
{
    char *room = cm_arena_alloc(arena, 2 * text.size + 1);
    size_t n = 0;
    int depth = 0;
    bool quoted = false;
    char last = ',';
    for (size_t i = 0; i < text.size; i++) {
        const char c = text.data[i];
        const bool gap = i > 0 && strchr(" \t\n", text.data[i - 1]);
        if (!quoted && depth == 0 && gap && !strchr(",=:", last) &&
            begins_attribute((struct cm_str){text.data + i, text.size - i}))
            room[n++] = ',';
        if (quoted && c == '\\' && i + 1 < text.size)
            room[n++] = text.data[i++];
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted)
            depth += (strchr("([{", c) && c) - (strchr(")]}", c) && c);
        room[n++] = text.data[i];
        if (!strchr(" \t\n", c))
            last = c;
    }
    return (struct cm_str){room, n};
}

/* "alpha=1" means 1.0 where the schema says float. */
static void fit_to_schema(struct cm_arena *arena, const struct cm_schema *schema,
                          struct cm_attribute_proto *attribute)
{
    const struct cm_schema_attr *known =
        schema ? cm_schema_find_attr(schema, attribute->name) : NULL;
    if (!known)
        return;
    if (known->kind == CM_SCHEMA_FLOAT && attribute->type == CM_ATTR_INT) {
        attribute->type = CM_ATTR_FLOAT;
        attribute->f = (float)attribute->i;
        cm_msg_clear(&attribute->msg, CM_ATTRIBUTE_I);
        cm_msg_set(&attribute->msg, CM_ATTRIBUTE_F);
    } else if (known->kind == CM_SCHEMA_FLOATS && attribute->type == CM_ATTR_INTS) {
        attribute->type = CM_ATTR_FLOATS;
        attribute->floats.count = attribute->ints.count;
        attribute->floats.items = CM_NEW_ARRAY(arena, float, attribute->ints.count);
        for (size_t i = 0; i < attribute->ints.count; i++)
            attribute->floats.items[i] = (float)attribute->ints.items[i];
        cm_msg_clear(&attribute->msg, CM_ATTRIBUTE_INTS);
        cm_msg_set(&attribute->msg, CM_ATTRIBUTE_FLOATS);
    }
}

static enum cm_status read_operator(struct cm_str text, struct cm_arena *arena, struct op_case *out,
                                    struct cm_error *err)
{
    struct cm_str attributes;
    const struct cm_str name = first_word(text, &attributes);
    size_t dot = name.size;

    while (dot > 0 && name.data[dot - 1] != '.')
        dot--;
    out->op_type = (struct cm_str){name.data + dot, name.size - dot};
    out->domain = (struct cm_str){name.data, dot ? dot - 1 : 0};
    if (cm_str_is(out->domain, "ai.onnx"))
        out->domain = CM_STR("");
    if (attributes.size && attributes.data[0] == '<' && attributes.data[attributes.size - 1] == '>')
        attributes = (struct cm_str){attributes.data + 1, attributes.size - 2};
    attributes = with_commas(arena, attributes);
    if (attributes.size) {
        const struct cm_str node =
            cm_arena_printf(arena, "y = Op <%.*s> ()", (int)attributes.size, attributes.data);
        CM_TRY(cm_error_context(err, cm_syntax_parse_node(node, arena, &out->node, err),
                                "attributes '%.*s'", CM_STR_FMT(attributes)));
    }
    const struct cm_schema *schema = out->opset
                                         ? cm_schema_find(out->domain, out->op_type, out->opset)
                                         : cm_schema_newest(out->domain, out->op_type);
    for (size_t i = 0; i < out->node.attribute.count; i++)
        fit_to_schema(arena, schema, &out->node.attribute.items[i]);
    out->node.domain = out->domain;
    out->node.op_type = out->op_type;
    return CM_OK;
}

static enum cm_status read_number(struct cm_str text, double *out, struct cm_error *err)
{
    if (!cm_str_to_double(text, out) || *out < 0)
        return cm_fail(err, CM_BAD_ARGUMENT, "'%.*s' is no number", CM_STR_FMT(text));
    return CM_OK;
}

/* "grad off", "grad own", "grad tol 1e-3", "grad of x w" */
static enum cm_status read_grad(struct cm_str text, struct cm_arena *arena, struct op_case *out,
                                struct cm_error *err)
{
    struct cm_str rest;
    const struct cm_str word = first_word(text, &rest);
    if (cm_str_is(word, "tol"))
        return read_number(rest, &out->grad_tol, err);
    if (cm_str_is(word, "of")) {
        while (rest.size)
            *CM_PUSH(arena, &out->grad_of) = first_word(rest, &rest);
        return CM_OK;
    }
    if (cm_str_is(word, "own"))
        out->own_types = true;
    else
        out->grad = false;
    return CM_OK;
}

/* Lines that set how a case is judged; *is_option is false when this is none. */
static enum cm_status read_option(struct cm_str text, struct cm_arena *arena, struct op_case *out,
                                  bool *is_option, struct cm_error *err)
{
    struct cm_str rest, more;
    const struct cm_str word = first_word(text, &rest), second = first_word(rest, &more);
    const bool off = cm_str_is(rest, "off"), tol = cm_str_is(second, "tol");
    double number = 0;

    *is_option = true;
    if (cm_str_is(word, "grad") &&
        (off || tol || cm_str_is(second, "of") || cm_str_is(rest, "own")))
        return read_grad(rest, arena, out, err);
    if (cm_str_is(word, "grad2") && off)
        out->second = false;
    else if (cm_str_is(word, "body") && off)
        out->body = false;
    else if (cm_str_is(word, "body") && tol)
        return read_number(more, &out->body_tol, err);
    else if (cm_str_is(word, "unknown") && off)
        out->unknown = false;
    else if (cm_str_is(word, "rank") && cm_str_is(rest, "known"))
        out->rankless = false;
    else if (cm_str_is(word, "tol") && !more.size)
        return read_number(rest, &out->tol, err);
    else if (cm_str_is(word, "opset") && cm_str_to_int64(rest, &out->opset))
        return CM_OK;
    else if (cm_str_is(word, "seed") && cm_str_to_double(rest, &number) && number >= 0)
        out->seed = (uint64_t)number;
    else
        *is_option = false;
    return CM_OK;
}

static struct case_value *find_value(struct case_values *values, struct cm_str name)
{
    for (size_t i = 0; i < values->count; i++)
        if (values->items[i].name.size && cm_str_equal(values->items[i].name, name))
            return &values->items[i];
    return NULL;
}

static enum cm_status read_value_line(struct cm_str text, struct cm_arena *arena,
                                      struct case_values *values, struct cm_error *err)
{
    struct case_value value = {0};
    struct cm_str rest;

    text = case_trim(text);
    const bool outer = text.size && text.data[0] == '&';
    if (outer)
        text = (struct cm_str){text.data + 1, text.size - 1};
    const struct cm_str name = first_word(text, &rest);
    struct case_value *before = find_value(values, name);
    if (cm_str_is(name, "-") && !rest.size) {
        *CM_PUSH(arena, values) = value;
        return CM_OK;
    }
    if (before && !rest.size) {
        value = *before;
        value.again = true;
        *CM_PUSH(arena, values) = value;
        return CM_OK;
    }
    if (before)
        return cm_fail(err, CM_BAD_ARGUMENT, "'%.*s' is given twice", CM_STR_FMT(name));
    CM_TRY(cm_error_context(err, case_value_read(rest, arena, &value, err), "'%.*s'",
                            CM_STR_FMT(name)));
    value.name = name;
    value.outer = outer;
    *CM_PUSH(arena, values) = value;
    return CM_OK;
}

/* Operands, then "=>" and results, or "!" and parts of the message. Without either the last value
 * is the only result. */
static enum cm_status read_values(const struct block *block, size_t first, struct cm_arena *arena,
                                  struct op_case *out, struct cm_error *err)
{
    bool results = false;

    for (size_t i = first; i < block->count; i++) {
        const struct cm_str text = case_trim(block->items[i].text);
        bool is_option;
        CM_TRY(read_option(text, arena, out, &is_option, err));
        if (is_option)
            continue;
        if (cm_str_is(text, "=>")) {
            results = true;
        } else if (text.data[0] == '!') {
            *CM_PUSH(arena, &out->refusals) =
                case_trim((struct cm_str){text.data + 1, text.size - 1});
        } else {
            CM_TRY(cm_error_context(
                err, read_value_line(text, arena, results ? &out->outputs : &out->inputs, err),
                "line %d", block->items[i].line));
        }
    }
    if (out->refusals.count)
        return CM_OK;
    if (!results && out->inputs.count) {
        *CM_PUSH(arena, &out->outputs) = out->inputs.items[--out->inputs.count];
        if (out->outputs.items[0].again)
            return cm_fail(err, CM_BAD_ARGUMENT, "the result needs a name of its own");
    }
    if (!out->outputs.count)
        return cm_fail(err, CM_BAD_ARGUMENT, "nothing is said about the result");
    for (size_t i = 0; i < out->inputs.count; i++)
        if (!out->inputs.items[i].type && out->inputs.items[i].name.size)
            return cm_fail(err, CM_BAD_ARGUMENT, "operand '%.*s' has no value",
                           CM_STR_FMT(out->inputs.items[i].name));
    return CM_OK;
}

enum cm_status case_next(struct case_reader *reader, struct cm_arena *arena, struct op_case *out,
                         bool *found, struct cm_error *err)
{
    struct block block = {0};
    size_t first = 0;

    *out = (struct op_case){.file = reader->file,
                            .grad = true,
                            .second = true,
                            .body = true,
                            .unknown = true,
                            .rankless = true,
                            .tol = -1,
                            .grad_tol = -1,
                            .body_tol = -1};
    take_block(reader, arena, &block);
    *found = block.count != 0;
    for (; first < block.count; first++) {
        bool is_option;
        out->line = block.items[first].line;
        CM_TRY(read_option(block.items[first].text, arena, out, &is_option, err));
        if (!is_option)
            break;
    }
    if (first == block.count)
        return *found ? cm_fail(err, CM_BAD_ARGUMENT, "no operator is named") : CM_OK;
    CM_TRY(read_operator(block.items[first].text, arena, out, err));
    return read_values(&block, first + 1, arena, out, err);
}
