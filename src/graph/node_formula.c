/* Emitting nodes from formulas in text: a recursive descent that emits as it reads. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/node_formula.h"

#include <math.h>
#include <stdarg.h>

enum {
    MOST_NAMES = 96,
    MOST_FUNCTIONS = 32,
    MOST_ARGUMENTS = 12,
    MOST_ATTRIBUTES = 16,
    NAME_SIZE = 64,
    TEXT_SIZE = 4096,
};

/* A value, or a number that becomes a scalar once its element type is known. */
struct term {
    cm_value value;
    double number;
    bool is_number;
};

struct named_term {
    struct cm_str name;
    struct term term;
};

/* "name(a, b) = a * b", read anew at each call. */
struct function {
    struct cm_str name;
    const char *parameters, *body;
};

/* What a formula has named so far. It is apart from the formula, which begins as zeros: these
 * tables are larger than most formulas need. */
struct formula_names {
    struct named_term names[MOST_NAMES];
    struct function functions[MOST_FUNCTIONS];
};

struct formula {
    struct cm_builder *build;
    const struct cm_node *node; /* NULL: none */
    struct cm_grad *grad;       /* of a gradient rule; else NULL */
    struct cm_body *body;       /* of a body; else NULL */
    const char *at;
    struct formula_names *known;
    int n_names, n_functions;
};

#define VALUE(v)  ((struct term){.value = (v)})
#define NUMBER(n) ((struct term){.number = (n), .is_number = true})

static struct term expression(struct formula *f);

/* ---- Reading ---- */

static void wrong(struct formula *f)
{
    cm_builder_fail(f->build, CM_UNSUPPORTED, "cannot read the formula at '%.40s'", f->at);
    f->at = "";
}

static char next(struct formula *f)
{
    while (*f->at == ' ' || *f->at == '\n')
        f->at++;
    return *f->at;
}

static bool take(struct formula *f, char c)
{
    if (next(f) != c)
        return false;
    f->at++;
    return true;
}

static void need(struct formula *f, char c)
{
    if (!take(f, c))
        wrong(f);
}

/* "->" before the names of results */
static bool at_arrow(const struct formula *f)
{
    return f->at[0] == '-' && f->at[1] == '>';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return (c >= '0' && c <= '9') || c == '.';
}

/* A name of a value, an attribute or an operator: "ai.cameo::GeluGrad". */
static struct cm_str read_name(struct formula *f)
{
    next(f);
    const char *const begin = f->at;
    while (is_letter(*f->at) || is_digit(*f->at) || (f->at[0] == ':' && f->at[1] == ':') ||
           (f->at[0] == ':' && f->at > begin && f->at[-1] == ':'))
        f->at++;
    if (f->at == begin)
        wrong(f);
    return (struct cm_str){begin, (size_t)(f->at - begin)};
}

/* What stands between quotes. The first quote has been read. */
static struct cm_str read_quoted(struct formula *f)
{
    const char *const begin = f->at;
    f->at += strcspn(begin, "'");
    const struct cm_str text = {begin, (size_t)(f->at - begin)};
    need(f, '\'');
    return text;
}

static double read_number(struct formula *f)
{
    const char *const begin = f->at;
    double number = 0;
    while (is_digit(*f->at) || *f->at == 'e' ||
           (f->at > begin && f->at[-1] == 'e' && (*f->at == '-' || *f->at == '+')))
        f->at++;
    if (!cm_str_to_double((struct cm_str){begin, (size_t)(f->at - begin)}, &number))
        wrong(f);
    return number;
}

/* ---- Names ---- */

/* Is `name` the gradient of a value called `of`: dX of X, d_input of input? */
static bool is_gradient_of(struct cm_str name, const char *of)
{
    const size_t lead = of[0] >= 'A' && of[0] <= 'Z' ? 1 : 2;
    return name.size > lead && name.data[0] == 'd' && (lead == 1 || name.data[1] == '_') &&
           cm_str_is((struct cm_str){name.data + lead, name.size - lead}, of);
}

static void remember(struct formula *f, struct cm_str name, struct term term)
{
    if (f->n_names == MOST_NAMES)
        wrong(f);
    else
        f->known->names[f->n_names++] = (struct named_term){name, term};
}

static cm_value input(const struct formula *f, int i)
{
    return f->grad ? cm_grad_input(f->grad, i) : cm_body_input(f->body, i);
}

/* Of the node's operands and results, in a rule or a body. */
static bool find_operand(struct formula *f, struct cm_str name, cm_value *out)
{
    const struct cm_schema *schema = f->grad || f->body ? f->node->schema : NULL;
    for (int i = 0; schema && i < schema->input_count; i++)
        if (cm_str_is(name, schema->inputs[i].name))
            return *out = input(f, i), true;
    for (int o = 0; f->grad && o < schema->output_count; o++) {
        if (cm_str_is(name, schema->outputs[o].name))
            return *out = cm_grad_output(f->grad, o), true;
        if (is_gradient_of(name, schema->outputs[o].name)) {
            *out = cm_grad_incoming(f->grad, o);
            remember(f, name, VALUE(*out)); /* zeros are emitted once */
            return true;
        }
    }
    return false;
}

static const struct cm_schema_attr *find_attribute(const struct formula *f, struct cm_str name)
{
    return f->node && f->node->schema ? cm_schema_find_attr(f->node->schema, name) : NULL;
}

static struct term attribute_term(struct formula *f, const struct cm_schema_attr *attribute)
{
    switch (attribute->kind) {
    case CM_SCHEMA_INT:
        return NUMBER((double)cm_node_int(f->node, attribute->name));
    case CM_SCHEMA_FLOAT:
        return NUMBER((double)cm_node_float(f->node, attribute->name));
    case CM_SCHEMA_INTS: {
        const struct cm_int64s list = cm_node_ints(f->node, attribute->name);
        return VALUE(cm_build_int64s(f->build, list.count, list.items));
    }
    default:
        wrong(f);
        return NUMBER(0);
    }
}

static struct term find(struct formula *f, struct cm_str name)
{
    cm_value value;
    if (cm_str_is(name, "inf") || cm_str_is(name, "nan"))
        return NUMBER(cm_str_is(name, "inf") ? INFINITY : NAN);
    for (int i = f->n_names - 1; i >= 0; i--)
        if (cm_str_equal(f->known->names[i].name, name))
            return f->known->names[i].term;
    if (find_operand(f, name, &value))
        return VALUE(value);
    const struct cm_schema_attr *attribute = find_attribute(f, name);
    if (attribute)
        return attribute_term(f, attribute);
    enum cm_dtype dtype;
    if (cm_str_is(name, "none"))
        return VALUE(0);
    if (cm_dtype_parse(name, &dtype))
        return NUMBER((int)dtype);
    wrong(f);
    return NUMBER(0);
}

/* ---- Emitting ---- */

/* The term as a value: a number gets the element type of `neighbour`. */
static cm_value as_value(struct formula *f, struct term term, cm_value neighbour)
{
    if (!term.is_number)
        return term.value;
    if (neighbour)
        return cm_build_scalar_like(f->build, neighbour, term.number);
    wrong(f);
    return 0;
}

static struct term join(struct formula *f, char op, struct term a, struct term b)
{
    if (a.is_number && b.is_number)
        return NUMBER(op == '+'   ? a.number + b.number
                      : op == '-' ? a.number - b.number
                      : op == '*' ? a.number * b.number
                                  : a.number / b.number);
    if ((op == '+' || op == '-') && !b.is_number && !b.value)
        return a; /* an absent operand */
    if (op == '+' && !a.is_number && !a.value)
        return b;
    const cm_value left = as_value(f, a, b.value), right = as_value(f, b, a.value);
    return VALUE(cm_build(f->build, &(struct cm_emission){.op = op == '+'   ? "Add"
                                                                : op == '-' ? "Sub"
                                                                : op == '*' ? "Mul"
                                                                            : "Div",
                                                          CM_INPUTS(left, right)}));
}

/* ---- Calls ---- */

static int64_t read_integer(struct formula *f)
{
    const double number = expression(f).number;
    return number >= 0x1p63 ? INT64_MAX : (int64_t)number;
}

/* "[1, -1, axis]", "[0, 2 to 4]": both ends are in it, and nothing where the last is before the
 * first. */
static size_t read_list(struct formula *f, int64_t *items)
{
    size_t count = 0;
    need(f, '[');
    while (next(f) && *f->at != ']') {
        const int64_t first = read_integer(f);
        int64_t last = first;
        if (next(f) == 't') {
            f->at += strlen("to");
            last = read_integer(f);
        }
        for (int64_t i = 0; i <= last - first && count < CM_MAX_RANK; i++)
            items[count++] = first + i;
        if (!take(f, ','))
            break;
    }
    need(f, ']');
    return count;
}

/* The node's own attribute; false where it has none. */
static bool copy_attribute(struct formula *f, struct cm_str name, const char *as,
                           struct cm_attribute_proto *out)
{
    struct cm_arena *arena = cm_builder_arena(f->build);
    const struct cm_schema_attr *attribute = find_attribute(f, name);
    if (!attribute || !cm_node_has_attr(f->node, attribute->name))
        return false;
    if (attribute->kind == CM_SCHEMA_INT) {
        *out = cm_attr_int(arena, as, cm_node_int(f->node, attribute->name));
    } else if (attribute->kind == CM_SCHEMA_FLOAT) {
        *out = cm_attr_float(arena, as, cm_node_float(f->node, attribute->name));
    } else if (attribute->kind == CM_SCHEMA_STRING) {
        *out = cm_attr_str(arena, as, cm_node_str(f->node, attribute->name));
    } else {
        const struct cm_int64s list = cm_node_ints(f->node, attribute->name);
        *out = cm_attr_ints(arena, as, list.count, list.items);
    }
    return true;
}

static const struct cm_schema *schema_of(struct cm_str op)
{
    struct cm_str domain = CM_STR_NONE;
    const char *const colons = memchr(op.data, ':', op.size);
    if (colons) {
        domain = (struct cm_str){op.data, (size_t)(colons - op.data)};
        op = (struct cm_str){colons + 2, op.size - domain.size - 2};
    }
    return cm_schema_newest(domain, op);
}

/* "axis=1", "perm=[0, 2, 1]", "mode='linear'", "alpha=0.5", "to=dtype", "axis" or "axis?" */
static bool read_attribute(struct formula *f, struct cm_str op, struct cm_attribute_proto *out)
{
    struct cm_arena *arena = cm_builder_arena(f->build);
    const struct cm_str name = read_name(f);
    const char *const as = cm_str_text(cm_arena_str(arena, name));
    int64_t items[CM_MAX_RANK];
    if (take(f, '?') && !cm_node_attr(f->node, as))
        return false;
    if (!take(f, '='))
        return copy_attribute(f, name, as, out);
    const char *const begin = f->at;
    if (is_letter(next(f))) {
        const struct cm_str other = read_name(f);
        if (find_attribute(f, other))
            return copy_attribute(f, other, as, out);
        f->at = begin; /* a number that the formula has a name for */
    }
    if (*f->at == '[') {
        const size_t count = read_list(f, items);
        *out = cm_attr_ints(arena, as, count, items);
    } else if (take(f, '\'')) {
        *out = cm_attr_str(arena, as, read_quoted(f));
    } else {
        const double number = expression(f).number;
        const struct cm_schema *schema = schema_of(op);
        const struct cm_schema_attr *meant = schema ? cm_schema_find_attr(schema, name) : NULL;
        *out = meant && meant->kind == CM_SCHEMA_FLOAT ? cm_attr_float(arena, as, (float)number)
                                                       : cm_attr_int(arena, as, (int64_t)number);
    }
    return true;
}

/* "*": what the node has of the attributes that `op` knows. */
static size_t copy_attributes(struct formula *f, struct cm_str op, struct cm_attribute_proto *out)
{
    const struct cm_schema *schema = schema_of(op);
    size_t count = 0;
    for (size_t i = 0; schema && i < schema->attr_count && count < MOST_ATTRIBUTES; i++) {
        const struct cm_attribute_proto *given = cm_node_attr(f->node, schema->attrs[i].name);
        if (given)
            out[count++] = *given;
    }
    return count;
}

static size_t read_attributes(struct formula *f, struct cm_str name, struct cm_attribute_proto *out)
{
    size_t count = 0;
    if (!take(f, '<'))
        return 0;
    do {
        if (take(f, '*'))
            count = copy_attributes(f, name, out);
        else if (count < MOST_ATTRIBUTES)
            count += read_attribute(f, name, &out[count]);
        else
            wrong(f);
    } while (take(f, ','));
    need(f, '>');
    return count;
}

/* What stands in parentheses; "" between commas is an absent operand. */
static size_t read_arguments(struct formula *f, struct term *out)
{
    size_t count = 0;
    need(f, '(');
    do {
        if (count == MOST_ARGUMENTS)
            wrong(f);
        else
            out[count++] = next(f) == ',' ? VALUE(0) : expression(f);
    } while (take(f, ','));
    need(f, ')');
    return count;
}

/* The argument whose type the numbers get. */
static cm_value neighbour_of(const struct formula *f, const struct term *arguments, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct cm_type *type = cm_builder_type(f->build, arguments[i].value);
        if (type && type->dtype != CM_BOOL)
            return arguments[i].value;
    }
    return 0;
}

/* A call whose results are several, or one. */
static cm_value call_operator(struct formula *f, struct cm_str name, size_t n_outputs,
                              cm_value *outputs)
{
    struct cm_attribute_proto attributes[MOST_ATTRIBUTES];
    struct term arguments[MOST_ARGUMENTS];
    cm_value inputs[MOST_ARGUMENTS];
    char op[NAME_SIZE];
    const size_t n_attributes = read_attributes(f, name, attributes);
    size_t count = read_arguments(f, arguments);
    const cm_value neighbour = neighbour_of(f, arguments, count);
    for (size_t i = 0; i < count; i++)
        inputs[i] = as_value(f, arguments[i], neighbour);
    while (count > 0 && !inputs[count - 1])
        count--; /* operands that are absent at the end */
    snprintf(op, sizeof op, "%.*s", CM_STR_FMT(name));
    return cm_build(f->build, &(struct cm_emission){.op = op,
                                                    .inputs = inputs,
                                                    .n_inputs = count,
                                                    .attributes = attributes,
                                                    .n_attributes = n_attributes,
                                                    .n_outputs = n_outputs,
                                                    .outputs = outputs});
}

/* Casts and typed numbers; false where the name is another one. */
static bool call_conversion(struct formula *f, struct cm_str name, struct term *out)
{
    struct term arguments[MOST_ARGUMENTS] = {{0}};
    enum cm_dtype dtype;
    const bool named = cm_dtype_parse(name, &dtype);
    if (!named && !cm_str_is(name, "like") && !cm_str_is(name, "cast"))
        return false;
    read_arguments(f, arguments);
    const struct term x = arguments[0], y = arguments[1];
    const struct cm_type *type = cm_builder_type(f->build, y.value);
    if (named && x.is_number)
        *out = VALUE(cm_build_scalar(f->build, dtype, x.number));
    else if (named)
        *out = VALUE(cm_build_cast(f->build, x.value, dtype));
    else if (y.is_number)
        *out = VALUE(as_value(f, y, x.value));
    else
        *out = VALUE(type ? cm_build_cast(f->build, x.value, type->dtype) : x.value);
    return true;
}

static bool wants_result(const struct formula *f, struct cm_str name)
{
    const struct cm_schema *schema = f->body ? f->node->schema : NULL;
    for (int o = 0; schema && o < schema->output_count; o++)
        if (cm_str_is(name, schema->outputs[o].name))
            return cm_body_wants(f->body, o);
    return false;
}

/* What is known before the nodes run: "given(axis)", "wants(Y)", "rank(x)", "dtype(x)"; false where
 * the name is another one. */
static bool call_question(struct formula *f, struct cm_str name, struct term *out)
{
    const bool given = cm_str_is(name, "given"), wants = cm_str_is(name, "wants");
    const bool rank = cm_str_is(name, "rank");
    if (!given && !wants && !rank && !cm_str_is(name, "dtype"))
        return false;
    need(f, '(');
    if (wants) {
        *out = NUMBER(wants_result(f, read_name(f)));
    } else if (given) {
        const struct cm_str copy = cm_arena_str(cm_builder_arena(f->build), read_name(f));
        *out = NUMBER(cm_node_attr(f->node, cm_str_text(copy)) != NULL);
    } else {
        const struct cm_type *type = cm_builder_type(f->build, expression(f).value);
        *out = NUMBER(!type ? (rank ? CM_RANK_UNKNOWN : 0) : rank ? type->rank : (int)type->dtype);
    }
    need(f, ')');
    return true;
}

static struct term statements(struct formula *f);

/* A call of one of the formula's own functions; false where the name is another one. */
static bool call_function(struct formula *f, struct cm_str name, struct term *out)
{
    struct term arguments[MOST_ARGUMENTS];
    int i = f->n_functions - 1;
    while (i >= 0 && !cm_str_equal(f->known->functions[i].name, name))
        i--;
    if (i < 0)
        return false;
    const size_t count = read_arguments(f, arguments);
    const char *const after = f->at;
    const int n_names = f->n_names;
    f->at = f->known->functions[i].parameters;
    for (size_t k = 0; k < count && !f->build->status; k++) {
        remember(f, read_name(f), arguments[k]);
        take(f, ',');
    }
    f->at = f->known->functions[i].body;
    *out = take(f, '{') ? statements(f) : expression(f);
    f->at = after;
    f->n_names = n_names;
    return true;
}

/* ---- Expressions ---- */

static struct term factor(struct formula *f)
{
    int64_t items[CM_MAX_RANK];
    struct term term;
    if (is_digit(next(f)))
        return NUMBER(read_number(f));
    if (take(f, '-')) {
        term = factor(f);
        return term.is_number
                   ? NUMBER(-term.number)
                   : VALUE(cm_build(f->build,
                                    &(struct cm_emission){.op = "Neg", CM_INPUTS(term.value)}));
    }
    if (take(f, '(')) {
        term = expression(f);
        need(f, ')');
        return term;
    }
    if (*f->at == '[') {
        const size_t count = read_list(f, items);
        return VALUE(cm_build_int64s(f->build, count, items));
    }
    const struct cm_str name = read_name(f);
    if (next(f) != '(' && *f->at != '<')
        return find(f, name);
    if (call_function(f, name, &term) || call_conversion(f, name, &term) ||
        call_question(f, name, &term))
        return term;
    return VALUE(call_operator(f, name, 1, NULL));
}

static struct term product(struct formula *f)
{
    struct term term = factor(f);
    while (next(f) == '*' || *f->at == '/') {
        const char op = *f->at++;
        term = join(f, op, term, factor(f));
    }
    return term;
}

static struct term sum(struct formula *f)
{
    struct term term = product(f);
    while (next(f) == '+' || (*f->at == '-' && !at_arrow(f))) {
        const char op = *f->at++;
        term = join(f, op, term, product(f));
    }
    return term;
}

/* "mode == 'linear'", "rank(x) == 2" */
static bool read_equality(struct formula *f, bool *out)
{
    const char *const begin = f->at;
    const struct cm_schema_attr *attribute =
        is_letter(next(f)) ? find_attribute(f, read_name(f)) : NULL;
    const bool is_text = attribute && attribute->kind == CM_SCHEMA_STRING;
    if (is_text && next(f) == '=' && f->at[1] == '=') {
        f->at += 2;
        need(f, '\'');
        *out = cm_str_equal(cm_node_str(f->node, attribute->name), read_quoted(f));
        return true;
    }
    f->at = begin;
    return false;
}

static struct term comparison(struct formula *f)
{
    bool equal;
    if (read_equality(f, &equal))
        return NUMBER(equal);
    const struct term left = sum(f);
    if (next(f) != '=' || f->at[1] != '=')
        return left;
    f->at += 2;
    return NUMBER(left.number == sum(f).number);
}

/* Passes over the branch of a choice that is not taken. */
static void skip_branch(struct formula *f)
{
    int depth = 0, choices = 0;
    for (; *f->at; f->at++) {
        const char c = *f->at;
        const bool is_colon = c == ':' && f->at[1] != ':' && f->at[-1] != ':';
        if (depth == 0 && (strchr(";,)]}>", c) || at_arrow(f) || (is_colon && choices == 0)))
            return;
        if (c == '\'')
            f->at += 1 + strcspn(f->at + 1, "'");
        choices += depth > 0 ? 0 : c == '?' ? 1 : is_colon ? -1 : 0;
        depth += strchr("([{<", c) ? 1 : strchr(")]}>", c) ? -1 : 0;
    }
}

/* "c ? x : y": the other branch emits nothing. A number counts as yes unless it is 0, a value if it
 * is there. */
static struct term expression(struct formula *f)
{
    struct term term = comparison(f);
    if (!take(f, '?'))
        return term;
    const bool yes = term.is_number ? term.number != 0 : term.value != 0;
    if (!yes)
        skip_branch(f);
    else
        term = expression(f);
    need(f, ':');
    if (yes)
        skip_branch(f);
    else
        term = expression(f);
    return term;
}

/* ---- Statements ---- */

/* A name of an operand's gradient or of a body's result is handed over at once. */
static void assign(struct formula *f, struct cm_str name, struct term term)
{
    const struct cm_schema *schema = f->grad || f->body ? f->node->schema : NULL;
    remember(f, name, term);
    for (int i = 0; f->grad && i < schema->input_count; i++)
        if (is_gradient_of(name, schema->inputs[i].name))
            f->build->status = cm_grad_set(f->grad, i, as_value(f, term, 0));
    for (int o = 0; f->body && o < schema->output_count; o++)
        if (cm_str_is(name, schema->outputs[o].name))
            f->build->status = cm_body_return(f->body, o, as_value(f, term, 0));
}

/* "name(a, b) = " is a definition, whose body is left for calls to read. */
static bool read_definition(struct formula *f)
{
    const char *const begin = f->at;
    if (is_letter(next(f))) {
        struct function function = {.name = read_name(f)};
        if (take(f, '(')) {
            function.parameters = f->at;
            while (*f->at && *f->at != ')' && (is_letter(*f->at) || *f->at == ',' || *f->at == ' '))
                f->at++;
            if (take(f, ')') && next(f) == '=' && f->at[1] != '=' &&
                f->n_functions < MOST_FUNCTIONS) {
                function.body = ++f->at;
                f->known->functions[f->n_functions++] = function;
                const char end = next(f) == '{' ? '}' : ';';
                while (*f->at && *f->at != end)
                    f->at++;
                take(f, '}');
                return true;
            }
        }
    }
    f->at = begin;
    return false;
}

/* The names before '='; none if the statement is an expression alone. */
static size_t read_targets(struct formula *f, struct cm_str *names)
{
    const char *const begin = f->at;
    size_t count = 0;
    do {
        if (!is_letter(next(f)) || count == MOST_ARGUMENTS)
            break;
        names[count++] = read_name(f);
    } while (take(f, ','));
    if (next(f) == '=' && f->at[1] != '=') {
        f->at++;
        return count;
    }
    f->at = begin;
    return 0;
}

static struct term statement(struct formula *f)
{
    struct cm_str names[MOST_ARGUMENTS];
    cm_value values[MOST_ARGUMENTS] = {0};
    const size_t count = read_targets(f, names);
    struct term term = {0};
    if (count > 1)
        call_operator(f, read_name(f), count, values);
    else
        term = expression(f);
    for (size_t i = 0; i < count && !f->build->status; i++)
        assign(f, names[i], count > 1 ? VALUE(values[i]) : term);
    return term;
}

/* Up to the end, a closing brace or the names of results. */
static struct term statements(struct formula *f)
{
    struct term last = {0};
    while (!f->build->status && next(f) && *f->at != '}' && !at_arrow(f)) {
        if (!read_definition(f))
            last = statement(f);
        if (!f->build->status && next(f) && *f->at != '}' && !at_arrow(f))
            need(f, ';');
    }
    return f->build->status ? VALUE(0) : last;
}

/* "x, axes:" */
static void read_values(struct formula *f, const cm_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        remember(f, read_name(f), VALUE(values[i]));
        need(f, i + 1 < count ? ',' : ':');
    }
}

cm_value cm_build_formula(struct cm_builder *build, const struct cm_node *node, const char *text,
                          const cm_value *values, size_t count)
{
    struct formula_names known;
    struct formula f = {.build = build, .node = node, .at = text, .known = &known};
    read_values(&f, values, count);
    const struct term last = statements(&f);
    return build->status ? 0 : as_value(&f, last, 0);
}

static void run_formulas(struct formula f, const cm_value *values, size_t count, cm_value *results,
                         size_t n_results)
{
    struct formula_names known;
    f.known = &known;
    read_values(&f, values, count);
    statements(&f);
    for (size_t i = 0; i < n_results; i++) {
        results[i] = 0;
        if (i == 0)
            need(&f, '-');
        need(&f, i == 0 ? '>' : ',');
        if (!f.build->status)
            results[i] = as_value(&f, find(&f, read_name(&f)), 0);
    }
}

void cm_build_formulas(struct cm_builder *build, const struct cm_node *node, const char *text,
                       const cm_value *values, size_t count, cm_value *results, size_t n_results)
{
    run_formulas((struct formula){.build = build, .node = node, .at = text}, values, count, results,
                 n_results);
}

void cm_body_formulas(struct cm_body *b, const char *text, const cm_value *values, size_t count,
                      cm_value *results, size_t n_results)
{
    run_formulas((struct formula){.build = &b->build, .node = b->node, .body = b, .at = text},
                 values, count, results, n_results);
}

/* All statements of a rule or a body, whose text is made by printf. */
static enum cm_status run_text(struct formula f, const char *format, va_list args)
{
    char text[TEXT_SIZE];
    struct formula_names known;
    const int size = cm_vformat(text, sizeof text, format, args);
    f.known = &known;
    f.at = text;
    if (size < 0 || (size_t)size >= sizeof text)
        wrong(&f);
    statements(&f);
    return f.build->status;
}

enum cm_status cm_grad_formula(struct cm_grad *g, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const enum cm_status status =
        run_text((struct formula){.build = &g->build, .node = g->node, .grad = g}, format, args);
    va_end(args);
    return status;
}

enum cm_status cm_body_formula(struct cm_body *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const enum cm_status status =
        run_text((struct formula){.build = &b->build, .node = b->node, .body = b}, format, args);
    va_end(args);
    return status;
}
