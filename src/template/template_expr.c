/* Expressions of templates: evaluated as they are read, since a template is short and used once a
 * node. The branch that a condition excludes is read without effect (skip). */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "template/template_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct expr_reader {
    struct cm_template_run *run;
    struct cm_str text;
    size_t at;
    int skip; /* > 0: read only */
    int depth;
};

static struct cm_term read_choice(struct expr_reader *e);

static void wrong(struct expr_reader *e, const char *what)
{
    cm_template_wrong(e->run, "%s in '%.*s'", what, CM_STR_FMT(e->text));
}

static void skip_space(struct expr_reader *e)
{
    while (e->at < e->text.size && e->text.data[e->at] == ' ')
        e->at++;
}

static bool accept(struct expr_reader *e, const char *token)
{
    const size_t size = strlen(token);

    skip_space(e);
    if (e->text.size - e->at < size || memcmp(e->text.data + e->at, token, size) != 0)
        return false;
    if (cm_template_is_name(token[size - 1]) && e->at + size < e->text.size &&
        cm_template_is_name(e->text.data[e->at + size]))
        return false;
    e->at += size;
    return true;
}

static void expect(struct expr_reader *e, const char *token)
{
    char what[40];

    if (accept(e, token))
        return;
    snprintf(what, sizeof what, "'%s' is missing", token);
    wrong(e, what);
}

bool cm_term_is_true(const struct cm_term *term)
{
    switch (term->kind) {
    case CM_TERM_NONE:
        return false;
    case CM_TERM_INT:
        return term->i != 0;
    case CM_TERM_FLOAT:
        return term->f != 0;
    case CM_TERM_TEXT:
        return term->text.size != 0;
    case CM_TERM_LIST:
        return term->count != 0;
    case CM_TERM_VALUE:
        return true;
    }
    return false;
}

struct cm_str cm_term_print(struct cm_template_run *run, const struct cm_term *term)
{
    struct cm_arena *arena = run->use->arena;

    switch (term->kind) {
    case CM_TERM_INT:
        return cm_arena_printf(arena, "%" PRId64, term->i);
    case CM_TERM_FLOAT:
        return run->use->host->print_float(run, term->f);
    case CM_TERM_TEXT:
    case CM_TERM_VALUE:
        return term->text;
    case CM_TERM_NONE:
        cm_template_wrong(run, "an absent value is put in");
        break;
    case CM_TERM_LIST: {
        struct cm_str *parts = CM_NEW_ARRAY(arena, struct cm_str, term->count + 1);
        size_t size = 0, at = 0;
        for (size_t i = 0; i < term->count; i++) {
            parts[i] = cm_term_print(run, &term->items[i]);
            size += parts[i].size + 2;
        }
        char *text = CM_NEW_ARRAY(arena, char, size + 1);
        for (size_t i = 0; i < term->count; i++) {
            if (i) {
                memcpy(text + at, ", ", 2);
                at += 2;
            }
            if (parts[i].size)
                memcpy(text + at, parts[i].data, parts[i].size);
            at += parts[i].size;
        }
        return (struct cm_str){text, at};
    }
    }
    return CM_STR_NONE;
}

int64_t cm_template_whole(double value)
{
    if (!(value > -0x1p63))
        return isnan(value) ? 0 : INT64_MIN;
    return value < 0x1p63 ? (int64_t)value : INT64_MAX;
}

static bool is_number(const struct cm_term *term)
{
    return term->kind == CM_TERM_INT || term->kind == CM_TERM_FLOAT;
}

static double number(const struct cm_term *term)
{
    return term->kind == CM_TERM_INT ? (double)term->i : term->f;
}

static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* Arithmetic on sizes from a file: it wraps rather than overflows. */
static int64_t whole(char op, int64_t a, int64_t b)
{
    switch (op) {
    case '+':
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case '-':
        return (int64_t)((uint64_t)a - (uint64_t)b);
    case '*':
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case '/':
        return floor_divide(a, b);
    default:
        return a - b * floor_divide(a, b);
    }
}

static struct cm_term join(struct expr_reader *e, const struct cm_term *a, const struct cm_term *b)
{
    struct cm_arena *arena = e->run->use->arena;

    if (a->kind == CM_TERM_LIST && b->kind == CM_TERM_LIST) {
        struct cm_term *items = CM_NEW_ARRAY(arena, struct cm_term, a->count + b->count + 1);
        for (size_t i = 0; i < a->count; i++)
            items[i] = a->items[i];
        for (size_t i = 0; i < b->count; i++)
            items[a->count + i] = b->items[i];
        return (struct cm_term){.kind = CM_TERM_LIST, .items = items, .count = a->count + b->count};
    }
    const struct cm_str left = cm_term_print(e->run, a), right = cm_term_print(e->run, b);
    char *text = CM_NEW_ARRAY(arena, char, left.size + right.size + 1);
    if (left.size)
        memcpy(text, left.data, left.size);
    if (right.size)
        memcpy(text + left.size, right.data, right.size);
    return cm_term_text((struct cm_str){text, left.size + right.size});
}

/* An unknown size makes all that is computed from it unknown. */
static struct cm_term arithmetic(struct expr_reader *e, char op, const struct cm_term *a,
                                 const struct cm_term *b)
{
    if (e->skip || e->run->status != CM_OK)
        return CM_TERM_ABSENT;
    if (op == '+' && !(is_number(a) && is_number(b)) && a->kind != CM_TERM_NONE &&
        b->kind != CM_TERM_NONE)
        return join(e, a, b);
    if (a->kind == CM_TERM_NONE || b->kind == CM_TERM_NONE)
        return CM_TERM_ABSENT;
    if (op == '*' && a->kind == CM_TERM_LIST && b->kind == CM_TERM_INT) {
        struct cm_term all = {.kind = CM_TERM_LIST};
        for (int64_t i = 0; i < b->i && i < 1000; i++)
            all = join(e, &all, a);
        return all;
    }
    if (!is_number(a) || !is_number(b)) {
        wrong(e, "arithmetic needs numbers");
        return CM_TERM_ABSENT;
    }
    if (a->kind == CM_TERM_INT && b->kind == CM_TERM_INT) {
        if ((op == '/' || op == '%') && (b->i == 0 || b->i == -1)) {
            if (b->i == 0)
                wrong(e, "division by zero");
            return cm_term_int(b->i == 0 || op == '%' ? 0 : whole('-', 0, a->i));
        }
        return cm_term_int(whole(op, a->i, b->i));
    }
    const double x = number(a), y = number(b);
    double f = 0;
    switch (op) {
    case '+':
        f = x + y;
        break;
    case '-':
        f = x - y;
        break;
    case '*':
        f = x * y;
        break;
    case '/':
        f = x / y;
        break;
    default:
        f = fmod(x, y);
        break;
    }
    return (struct cm_term){.kind = CM_TERM_FLOAT, .f = f};
}

static bool same(const struct cm_term *a, const struct cm_term *b)
{
    if (is_number(a) && is_number(b))
        return number(a) == number(b);
    if (a->kind != b->kind)
        return false;
    if (a->kind == CM_TERM_LIST) {
        bool equal = a->count == b->count;
        for (size_t i = 0; i < a->count && equal; i++)
            equal = same(&a->items[i], &b->items[i]);
        return equal;
    }
    return a->kind == CM_TERM_NONE || cm_str_equal(a->text, b->text);
}

static bool contains(const struct cm_term *list, const struct cm_term *item)
{
    for (size_t i = 0; i < list->count; i++)
        if (same(&list->items[i], item))
            return true;
    return false;
}

/* ---- functions that need no host ---- */

static struct cm_term make_range(struct expr_reader *e, const struct cm_term *args, size_t count)
{
    const int64_t begin = count > 1 ? args[0].i : 0, end = args[count > 1 ? 1 : 0].i;
    const size_t size = end > begin ? (size_t)(end - begin) : 0;

    if (size > 65536) {
        wrong(e, "the range is too long");
        return CM_TERM_ABSENT;
    }
    struct cm_term *items = CM_NEW_ARRAY(e->run->use->arena, struct cm_term, size + 1);
    for (size_t i = 0; i < size; i++)
        items[i] = cm_term_int(begin + (int64_t)i);
    return (struct cm_term){.kind = CM_TERM_LIST, .items = items, .count = size};
}

static struct cm_term make_chars(struct expr_reader *e, struct cm_str text)
{
    struct cm_term *items = CM_NEW_ARRAY(e->run->use->arena, struct cm_term, text.size + 1);

    for (size_t i = 0; i < text.size; i++)
        items[i] = cm_term_text((struct cm_str){text.data + i, 1});
    return (struct cm_term){.kind = CM_TERM_LIST, .items = items, .count = text.size};
}

static struct cm_term join_with(struct expr_reader *e, const struct cm_term *list,
                                const struct cm_term *between)
{
    struct cm_term all = cm_term_text(CM_STR(""));

    for (size_t i = 0; i < list->count; i++) {
        if (i)
            all = join(e, &all, between);
        all = join(e, &all, &list->items[i]);
    }
    return all;
}

static struct cm_term fold(struct expr_reader *e, char op, const struct cm_term *list)
{
    struct cm_term sum = cm_term_int(op == '*');

    for (size_t i = 0; i < list->count; i++)
        sum = arithmetic(e, op, &sum, &list->items[i]);
    return sum;
}

static struct cm_term call(struct expr_reader *e, struct cm_str name, const struct cm_term *args,
                           size_t count)
{
    struct cm_template_run *run = e->run;
    const struct cm_term *a = count > 0 ? &args[0] : NULL, *b = count > 1 ? &args[1] : NULL;
    const bool is_list = count == 1 && a->kind == CM_TERM_LIST;

    if (cm_str_is(name, "range") && count && a->kind == CM_TERM_INT &&
        (count == 1 || b->kind == CM_TERM_INT))
        return make_range(e, args, count);
    if (cm_str_is(name, "len") && is_list)
        return cm_term_int((int64_t)a->count);
    if (cm_str_is(name, "sum") && is_list)
        return fold(e, '+', a);
    if (cm_str_is(name, "product") && is_list)
        return fold(e, '*', a);
    if (cm_str_is(name, "join") && count == 2 && a->kind == CM_TERM_LIST)
        return join_with(e, a, b);
    if (cm_str_is(name, "chars") && count == 1 && a->kind == CM_TERM_TEXT)
        return make_chars(e, a->text);
    if (cm_str_is(name, "quote") && count == 1 && a->kind == CM_TERM_TEXT)
        return cm_term_text(cm_arena_printf(run->use->arena, "\"%.*s\"", CM_STR_ALL(a->text)));
    if (cm_str_is(name, "known") && count == 1)
        return cm_term_int(a->kind != CM_TERM_NONE);
    if (cm_str_is(name, "fresh") && count == 0)
        return cm_term_text(cm_template_fresh(run, "t"));
    if ((cm_str_is(name, "min") || cm_str_is(name, "max")) && count == 2) {
        if (!is_number(a) || !is_number(b))
            return CM_TERM_ABSENT;
        return (number(a) < number(b)) == cm_str_is(name, "min") ? *a : *b;
    }
    if ((cm_str_is(name, "sin") || cm_str_is(name, "cos")) && count == 1 && is_number(a))
        return (struct cm_term){.kind = CM_TERM_FLOAT,
                                .f = cm_str_is(name, "sin") ? sin(number(a)) : cos(number(a))};
    if (cm_str_is(name, "float") && count == 1 && is_number(a))
        return (struct cm_term){.kind = CM_TERM_FLOAT, .f = number(a)};
    if (cm_str_is(name, "int") && count == 1 && is_number(a))
        return cm_term_int(a->kind == CM_TERM_INT ? a->i : cm_template_whole(a->f));

    bool known = true;
    const struct cm_term out =
        run->use->host->call(run->use->host->arg, run, name, args, count, &known);
    if (!known)
        cm_template_wrong(run, "'%.*s' is not a function of such arguments, in '%.*s'",
                          CM_STR_FMT(name), CM_STR_FMT(e->text));
    return out;
}

/* ---- reading ---- */

/* A text whose %names are those of the program. goes_on: something is joined to its end. */
static struct cm_str with_names(struct expr_reader *e, struct cm_str text, bool goes_on)
{
    struct cm_term out = cm_term_text(CM_STR(""));
    size_t done = 0;

    for (size_t i = 0; i + 1 < text.size;) {
        if (text.data[i] != '%' || !cm_template_is_name(text.data[i + 1])) {
            i++;
            continue;
        }
        size_t end = i + 1;
        while (end < text.size && cm_template_is_name(text.data[end]))
            end++;
        const struct cm_term before = cm_term_text((struct cm_str){text.data + done, i - done}),
                             name = cm_term_text(
                                 cm_template_name(e->run, (struct cm_str){text.data + i, end - i},
                                                  goes_on && end == text.size));
        out = join(e, &out, &before);
        out = join(e, &out, &name);
        done = i = end;
    }
    if (!done)
        return text;
    const struct cm_term rest = cm_term_text((struct cm_str){text.data + done, text.size - done});
    return join(e, &out, &rest).text;
}

static struct cm_term read_text(struct expr_reader *e)
{
    const size_t begin = ++e->at;

    while (e->at < e->text.size && e->text.data[e->at] != '"')
        e->at++;
    const struct cm_str text = {e->text.data + begin, e->at - begin};
    expect(e, "\"");
    const size_t after = e->at;
    skip_space(e);
    const bool goes_on = e->at < e->text.size && e->text.data[e->at] == '+';
    e->at = after;
    return cm_term_text(with_names(e, text, goes_on));
}

static struct cm_term read_number(struct expr_reader *e)
{
    const size_t begin = e->at;
    bool is_float = false;

    while (e->at < e->text.size) {
        const char c = e->text.data[e->at];
        if (c == '.' || c == 'e')
            is_float = true;
        else if (!(c >= '0' && c <= '9') &&
                 !(c == '-' && e->at > begin && e->text.data[e->at - 1] == 'e'))
            break;
        e->at++;
    }
    const struct cm_str text = {e->text.data + begin, e->at - begin};
    struct cm_term term = {.kind = is_float ? CM_TERM_FLOAT : CM_TERM_INT};
    if (is_float ? !cm_str_to_double(text, &term.f) : !cm_str_to_int64(text, &term.i))
        wrong(e, "a number cannot be read");
    return term;
}

struct term_list {
    CM_ARRAY(struct cm_term);
};

/* [x for i in LIST if CONDITION]; x was read without effect, and begins at begin. */
static struct cm_term read_each(struct expr_reader *e, size_t begin)
{
    struct term_list out = {0};

    skip_space(e);
    const size_t start = e->at;
    while (e->at < e->text.size && cm_template_is_name(e->text.data[e->at]))
        e->at++;
    const struct cm_str name = {e->text.data + start, e->at - start};
    expect(e, "in");
    const struct cm_term list = read_choice(e);
    const size_t after = e->at;
    size_t end = after, condition = 0;
    if (accept(e, "if")) {
        condition = e->at;
        e->skip++;
        read_choice(e);
        e->skip--;
        end = e->at;
    }
    if (!e->skip && e->run->status == CM_OK && list.kind != CM_TERM_LIST)
        wrong(e, "'for' goes over a list");
    for (size_t i = 0; i < list.count && !e->skip && e->run->status == CM_OK; i++) {
        cm_template_set(e->run, e->run->scope, name, list.items[i]);
        if (condition) {
            e->at = condition;
            const struct cm_term holds = read_choice(e);
            if (!cm_term_is_true(&holds))
                continue;
        }
        e->at = begin;
        *CM_PUSH(e->run->use->arena, &out) = read_choice(e);
    }
    e->at = end;
    return (struct cm_term){.kind = CM_TERM_LIST, .items = out.items, .count = out.count};
}

/* Terms up to the closing bracket, which is read too. */
static struct cm_term read_list(struct expr_reader *e, const char *close)
{
    struct term_list out = {0};

    if (accept(e, close))
        return (struct cm_term){.kind = CM_TERM_LIST};
    for (;;) {
        const size_t begin = e->at, fresh = e->run->fresh;
        e->skip++;
        read_choice(e);
        e->skip--;
        if (!out.count && accept(e, "for")) {
            const struct cm_term each = read_each(e, begin);
            expect(e, close);
            return each;
        }
        e->at = begin;
        e->run->fresh = fresh;
        *CM_PUSH(e->run->use->arena, &out) = read_choice(e);
        if (e->run->status != CM_OK || accept(e, close))
            break;
        expect(e, ",");
    }
    return (struct cm_term){.kind = CM_TERM_LIST, .items = out.items, .count = out.count};
}

static struct cm_term read_named(struct expr_reader *e)
{
    const size_t begin = e->at;
    struct cm_term term = CM_TERM_ABSENT;

    while (e->at < e->text.size && cm_template_is_name(e->text.data[e->at]))
        e->at++;
    const struct cm_str name = {e->text.data + begin, e->at - begin};
    if (cm_str_is(name, "none"))
        return term;
    if (cm_str_is(name, "true") || cm_str_is(name, "false"))
        return cm_term_int(cm_str_is(name, "true"));
    if (accept(e, "(")) {
        const struct cm_term args = read_list(e, ")");
        return e->skip || e->run->status != CM_OK ? term : call(e, name, args.items, args.count);
    }
    if (e->skip)
        return term;
    const struct cm_term *variable = cm_template_variable(e->run->scope, name);
    if (variable)
        return *variable;
    if (!e->run->use->host->name(e->run->use->host->arg, name, &term))
        cm_template_wrong(e->run, "nothing is called '%.*s'", CM_STR_FMT(name));
    return term;
}

static struct cm_term read_primary(struct expr_reader *e)
{
    skip_space(e);
    if (e->at >= e->text.size) {
        wrong(e, "something is missing at the end");
        return CM_TERM_ABSENT;
    }
    const char c = e->text.data[e->at];
    if (c == '"')
        return read_text(e);
    if (c >= '0' && c <= '9')
        return read_number(e);
    if (cm_template_is_name(c))
        return read_named(e);
    if (accept(e, "[")) {
        return read_list(e, "]");
    }
    if (accept(e, "(")) {
        const struct cm_term term = read_choice(e);
        expect(e, ")");
        return term;
    }
    wrong(e, "an expression cannot be read");
    e->at = e->text.size;
    return CM_TERM_ABSENT;
}

/* [i], [i:], [:j] and [i:j]; below zero counts from the end. */
static struct cm_term read_index(struct expr_reader *e, struct cm_term of)
{
    const int64_t size = (int64_t)of.count;
    int64_t begin = 0, end = size;
    bool is_slice = false;

    if (!accept(e, ":")) {
        const struct cm_term first = read_choice(e);
        begin = first.i < 0 ? first.i + size : first.i;
        is_slice = accept(e, ":");
    } else {
        is_slice = true;
    }
    if (is_slice && !accept(e, "]")) {
        const struct cm_term last = read_choice(e);
        end = last.i < 0 ? last.i + size : last.i;
        expect(e, "]");
    } else if (!is_slice) {
        expect(e, "]");
    }
    if (e->skip || e->run->status != CM_OK || of.kind == CM_TERM_NONE)
        return CM_TERM_ABSENT;
    if (of.kind != CM_TERM_LIST || begin < 0 || end > size || begin > end ||
        (!is_slice && begin >= size)) {
        wrong(e, "an index is not inside its list");
        return CM_TERM_ABSENT;
    }
    if (!is_slice)
        return of.items[begin];
    return (struct cm_term){
        .kind = CM_TERM_LIST, .items = of.items + begin, .count = (size_t)(end - begin)};
}

static struct cm_term read_unary(struct expr_reader *e)
{
    if (++e->depth > CM_TEMPLATE_DEPTH) {
        wrong(e, "an expression is too deep");
        e->at = e->text.size;
        return CM_TERM_ABSENT;
    }
    struct cm_term term;
    if (accept(e, "-")) {
        const struct cm_term zero = cm_term_int(0), of = read_unary(e);
        term = arithmetic(e, '-', &zero, &of);
    } else {
        term = read_primary(e);
        while (e->run->status == CM_OK && accept(e, "["))
            term = read_index(e, term);
    }
    e->depth--;
    return term;
}

static struct cm_term read_product(struct expr_reader *e)
{
    struct cm_term term = read_unary(e);

    for (;;) {
        const char op = accept(e, "*") ? '*' : accept(e, "/") ? '/' : accept(e, "%") ? '%' : 0;
        if (!op || e->run->status != CM_OK)
            return term;
        const struct cm_term other = read_unary(e);
        term = arithmetic(e, op, &term, &other);
    }
}

static struct cm_term read_sum(struct expr_reader *e)
{
    struct cm_term term = read_product(e);

    for (;;) {
        const char op = accept(e, "+") ? '+' : accept(e, "-") ? '-' : 0;
        if (!op || e->run->status != CM_OK)
            return term;
        const struct cm_term other = read_product(e);
        term = arithmetic(e, op, &term, &other);
    }
}

static struct cm_term read_comparison(struct expr_reader *e)
{
    static const char *const ops[] = {"==", "!=", "<=", ">=", "<", ">", "in"};
    const struct cm_term a = read_sum(e);
    size_t op = 0;

    while (op < 7 && !accept(e, ops[op]))
        op++;
    if (op == 7)
        return a;
    const struct cm_term b = read_sum(e);
    switch (op) {
    case 0:
        return cm_term_int(same(&a, &b));
    case 1:
        return cm_term_int(!same(&a, &b));
    case 6:
        return cm_term_int(contains(&b, &a));
    default:
        break;
    }
    /* What is not known is not smaller, nor larger. */
    if (!is_number(&a) || !is_number(&b))
        return cm_term_int(0);
    const double x = number(&a), y = number(&b);
    return cm_term_int(op == 2 ? x <= y : op == 3 ? x >= y : op == 4 ? x < y : x > y);
}

static struct cm_term read_not(struct expr_reader *e)
{
    if (!accept(e, "not"))
        return read_comparison(e);
    const struct cm_term term = read_not(e);
    return cm_term_int(!cm_term_is_true(&term));
}

static struct cm_term read_and(struct expr_reader *e)
{
    struct cm_term term = read_not(e);

    while (accept(e, "and")) {
        const bool decided = !cm_term_is_true(&term);
        e->skip += decided;
        const struct cm_term other = read_not(e);
        e->skip -= decided;
        term = cm_term_int(!decided && cm_term_is_true(&other));
    }
    return term;
}

static struct cm_term read_or(struct expr_reader *e)
{
    struct cm_term term = read_and(e);

    while (accept(e, "or")) {
        const bool decided = cm_term_is_true(&term);
        e->skip += decided;
        const struct cm_term other = read_and(e);
        e->skip -= decided;
        term = cm_term_int(decided || cm_term_is_true(&other));
    }
    return term;
}

/* CONDITION ? THIS : THAT */
static struct cm_term read_choice(struct expr_reader *e)
{
    const struct cm_term condition = read_or(e);

    if (!accept(e, "?"))
        return condition;
    const bool holds = cm_term_is_true(&condition);
    e->skip += !holds;
    const struct cm_term yes = read_choice(e);
    e->skip -= !holds;
    expect(e, ":");
    e->skip += holds;
    const struct cm_term no = read_choice(e);
    e->skip -= holds;
    return holds ? yes : no;
}

struct cm_term cm_template_eval(struct cm_template_run *run, struct cm_str text)
{
    struct expr_reader e = {.run = run, .text = text};
    const struct cm_term term = read_choice(&e);

    skip_space(&e);
    if (run->status == CM_OK && e.at != text.size)
        wrong(&e, "something is left over");
    return term;
}
