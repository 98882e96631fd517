/* Lines of templates: directives, names and insertions. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "template/template_run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const struct cm_template_text *cm_template_find(const struct cm_template_text *texts, size_t count,
                                                struct cm_str name)
{
    for (size_t i = 0; i < count; i++)
        if (cm_str_is(name, texts[i].name))
            return &texts[i];
    return NULL;
}

/* ---- for hosts ---- */

struct cm_str cm_template_fresh(struct cm_template_run *run, const char *hint)
{
    return cm_arena_printf(run->use->arena, "%s%.*s_%s_%zu", run->use->host->sigil,
                           CM_STR_ALL(run->use->prefix), hint, ++run->fresh);
}

static void template_emit(struct cm_template_run *run, struct cm_str line)
{
    if (run->status == CM_OK)
        run->use->host->emit(run->use->host->arg, line);
}

void cm_template_emitf(struct cm_template_run *run, const char *format, ...)
{
    char text[2048];
    va_list args;

    va_start(args, format);
    const int size = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (size < 0 || (size_t)size >= sizeof text)
        cm_template_wrong(run, "a line is too long");
    else
        template_emit(run, (struct cm_str){text, (size_t)size});
}

void cm_template_wrong(struct cm_template_run *run, const char *format, ...)
{
    char text[600];
    va_list args;

    if (run->status != CM_OK)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    run->status = cm_fail(run->err, CM_UNSUPPORTED, "template '%s', line %zu: %s", run->text->name,
                          run->line, text);
}

void cm_template_refuse(struct cm_template_run *run, const char *format, ...)
{
    char text[600];
    va_list args;

    if (run->status != CM_OK)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    run->status = cm_fail(run->err, CM_UNSUPPORTED, "%s", text);
}

/* ---- variables and names ---- */

struct cm_term *cm_template_variable(struct cm_template_scope *scope, struct cm_str name)
{
    for (size_t i = scope->count; i-- > 0;)
        if (cm_str_equal(scope->items[i].name, name))
            return &scope->items[i].term;
    return NULL;
}

void cm_template_set(struct cm_template_run *run, struct cm_template_scope *scope,
                     struct cm_str name, struct cm_term term)
{
    struct cm_term *old = cm_template_variable(scope, name);

    if (old) {
        *old = term;
        return;
    }
    *CM_PUSH(run->use->arena, scope) =
        (struct cm_template_variable){cm_arena_str(run->use->arena, name), term};
}

struct cm_str cm_template_name(struct cm_template_run *run, struct cm_str name, bool is_part)
{
    struct cm_term term;

    if (name.size && name.data[0] == '%') {
        name.data++;
        name.size--;
    }
    /* A macro has its arguments and names of its own. None of them is an operand of its caller by
     * chance. */
    if (run->use->host->own)
        is_part = false; /* its names are whole */
    if (!is_part && !run->scope->caller && run->use->host->name(run->use->host->arg, name, &term) &&
        term.kind == CM_TERM_VALUE)
        return term.text;
    if (run->use->host->own)
        return run->use->host->own(run->use->host->arg, run->scope->prefix, name);
    return cm_arena_printf(run->use->arena, "%s%.*s_%.*s", run->use->host->sigil,
                           CM_STR_ALL(run->scope->prefix), CM_STR_ALL(name));
}

/* ---- lines ---- */

struct text_out {
    CM_ARRAY(char);
};

static void put(struct cm_template_run *run, struct text_out *out, struct cm_str text)
{
    for (size_t i = 0; i < text.size; i++)
        *CM_PUSH(run->use->arena, out) = text.data[i];
}

/* The end of ${..}, whose inside begins at i; brackets of all kinds and texts nest. */
static size_t closing(struct cm_str line, size_t i)
{
    int depth = 0;
    bool in_text = false;

    for (; i < line.size; i++) {
        const char c = line.data[i];
        if (c == '"')
            in_text = !in_text;
        else if (!in_text && (c == '(' || c == '[' || c == '{'))
            depth++;
        else if (!in_text && (c == ')' || c == ']' || (c == '}' && depth)))
            depth--;
        else if (!in_text && c == '}')
            return i;
    }
    return line.size;
}

/* Texts in quotes keep their % signs. */
struct cm_str cm_template_substitute(struct cm_template_run *run, struct cm_str line)
{
    struct text_out out = {0};
    bool in_text = false;

    for (size_t i = 0; i < line.size && run->status == CM_OK;) {
        const char c = line.data[i];
        if (c == '$' && i + 1 < line.size && line.data[i + 1] == '{') {
            const size_t end = closing(line, i + 2);
            if (end == line.size) {
                cm_template_wrong(run, "'${' has no '}'");
                break;
            }
            const struct cm_term term =
                cm_template_eval(run, (struct cm_str){line.data + i + 2, end - i - 2});
            put(run, &out, cm_term_print(run, &term));
            i = end + 1;
        } else if (c == '%' && !in_text && i + 1 < line.size &&
                   cm_template_is_name(line.data[i + 1])) {
            size_t end = i + 1;
            while (end < line.size && cm_template_is_name(line.data[end]))
                end++;
            const bool is_part =
                end + 1 < line.size && line.data[end] == '$' && line.data[end + 1] == '{';
            put(run, &out, cm_template_name(run, (struct cm_str){line.data + i, end - i}, is_part));
            i = end;
        } else {
            if (c == '"')
                in_text = !in_text;
            *CM_PUSH(run->use->arena, &out) = c;
            i++;
        }
    }
    return (struct cm_str){out.items, out.count};
}

/* The text of a template by lines; a line that ends in a backslash goes on in the next. */
struct template_line {
    struct cm_str text;
    size_t number;
};

struct line_list {
    CM_ARRAY(struct template_line);
};

static struct cm_str trim(struct cm_str text)
{
    while (text.size && (text.data[0] == ' ' || text.data[0] == '\t')) {
        text.data++;
        text.size--;
    }
    while (text.size && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
        text.size--;
    return text;
}

static void split_lines(struct cm_template_run *run, struct line_list *lines)
{
    struct cm_str rest = {run->text->text, run->text->size};
    size_t number = 0;

    while (rest.size) {
        const char *end = memchr(rest.data, '\n', rest.size);
        size_t size = end ? (size_t)(end - rest.data) : rest.size;
        struct cm_str line = {rest.data, size};
        const size_t first = ++number;
        rest.data += size + (end ? 1 : 0);
        rest.size -= size + (end ? 1 : 0);
        while (line.size && line.data[line.size - 1] == '\\' && rest.size) {
            end = memchr(rest.data, '\n', rest.size);
            size = end ? (size_t)(end - rest.data) : rest.size;
            const struct cm_str more = trim((struct cm_str){rest.data, size});
            line = cm_arena_printf(run->use->arena, "%.*s %.*s", (int)line.size - 1, line.data,
                                   (int)more.size, more.data);
            rest.data += size + (end ? 1 : 0);
            rest.size -= size + (end ? 1 : 0);
            number++;
        }
        *CM_PUSH(run->use->arena, lines) = (struct template_line){line, first};
    }
}

bool cm_template_directive(struct cm_str line, const char *name, struct cm_str *rest)
{
    const size_t size = strlen(name);

    line = trim(line);
    if (line.size <= size || line.data[0] != '@' || memcmp(line.data + 1, name, size) != 0 ||
        (line.size > size + 1 && cm_template_is_name(line.data[size + 1])))
        return false;
    *rest = trim((struct cm_str){line.data + size + 1, line.size - size - 1});
    return true;
}

/* The first of @else, @elif and @end that belongs to the block that begins at i; count: none. */
static size_t block_end(const struct line_list *lines, size_t i)
{
    struct cm_str rest;
    int depth = 0;

    for (; i < lines->count; i++) {
        const struct cm_str line = lines->items[i].text;
        if (cm_template_directive(line, "if", &rest) || cm_template_directive(line, "for", &rest))
            depth++;
        else if (depth && cm_template_directive(line, "end", &rest))
            depth--;
        else if (!depth && (cm_template_directive(line, "end", &rest) ||
                            cm_template_directive(line, "else", &rest) ||
                            cm_template_directive(line, "elif", &rest)))
            return i;
    }
    return lines->count;
}

static void run_lines(struct cm_template_run *run, const struct line_list *lines, size_t begin,
                      size_t end);

/* @if at line i; returns the line of its @end. */
static size_t run_if(struct cm_template_run *run, const struct line_list *lines, size_t i,
                     struct cm_str condition)
{
    bool done = false;

    for (;;) {
        const size_t next = block_end(lines, i + 1);
        if (next == lines->count) {
            cm_template_wrong(run, "@if has no @end");
            return next;
        }
        run->line = lines->items[i].number;
        bool holds = !done;
        if (!done && condition.size) {
            const struct cm_term term = cm_template_eval(run, condition);
            holds = cm_term_is_true(&term);
        }
        if (holds)
            run_lines(run, lines, i + 1, next);
        done |= holds;
        i = next;
        if (!cm_template_directive(lines->items[i].text, "elif", &condition)) {
            struct cm_str rest;
            if (cm_template_directive(lines->items[i].text, "end", &rest))
                return i;
            condition = CM_STR_NONE;
        }
    }
}

/* "i in EXPRESSION" */
static size_t run_for(struct cm_template_run *run, const struct line_list *lines, size_t i,
                      struct cm_str head)
{
    const size_t end = block_end(lines, i + 1);
    size_t size = 0;

    while (size < head.size && cm_template_is_name(head.data[size]))
        size++;
    const struct cm_str name = {head.data, size};
    struct cm_str list = trim((struct cm_str){head.data + size, head.size - size});
    if (end == lines->count || !name.size || !cm_str_starts(list, "in ")) {
        cm_template_wrong(run, "@for NAME in LIST needs all of these, and an @end");
        return end;
    }
    list.data += 3;
    list.size -= 3;
    const struct cm_term items = cm_template_eval(run, list);
    if (run->status == CM_OK && items.kind != CM_TERM_LIST)
        cm_template_wrong(run, "@for goes over a list");
    for (size_t k = 0; k < items.count && run->status == CM_OK; k++) {
        cm_template_set(run, run->scope, name, items.items[k]);
        run_lines(run, lines, i + 1, end);
    }
    return end;
}

static void run_text(struct cm_template_run *run, const struct cm_template_text *text,
                     struct cm_template_scope *scope)
{
    const struct cm_template_text *outer = run->text;
    struct cm_template_scope *outer_scope = run->scope;
    const size_t line = run->line;
    struct line_list lines = {0};

    run->text = text;
    run->scope = scope;
    split_lines(run, &lines);
    run_lines(run, &lines, 0, lines.count);
    if (run->status == CM_OK) {
        run->text = outer;
        run->scope = outer_scope;
        run->line = line;
    }
}

/* "range_check(indices, 0)": the macro "lib/range_check", whose first line that is not a comment is
 * "@macro NAME, .." */
static void run_macro(struct cm_template_run *run, struct cm_str call)
{
    const char *open = call.size ? memchr(call.data, '(', call.size) : NULL;

    if (!open || call.data[call.size - 1] != ')') {
        cm_template_wrong(run, "@do MACRO(ARGUMENT, ..) needs its parentheses");
        return;
    }
    const size_t size = (size_t)(open - call.data);
    const struct cm_str name = cm_arena_printf(run->use->arena, "lib/%.*s", (int)size, call.data);
    const struct cm_template_text *text = run->use->host->macro(run->use->host->arg, name);
    if (!text) {
        cm_template_wrong(run, "there is no macro '%.*s'", (int)size, call.data);
        return;
    }
    const struct cm_term args = cm_template_eval(
        run, cm_arena_printf(run->use->arena, "[%.*s]", (int)(call.size - size - 2), open + 1));
    if (run->status != CM_OK)
        return;
    if (++run->depth > CM_TEMPLATE_DEPTH) {
        cm_template_wrong(run, "macros use each other too deeply");
        return;
    }
    struct cm_template_scope scope = {.prefix = cm_arena_printf(run->use->arena, "%.*s_m%zu",
                                                                CM_STR_ALL(run->use->prefix),
                                                                ++run->fresh),
                                      .caller = run->scope};
    for (size_t i = 0; i < args.count; i++)
        *CM_PUSH(run->use->arena, &scope) = (struct cm_template_variable){
            cm_arena_printf(run->use->arena, "%zu", i), args.items[i]};
    run_text(run, text, &scope);
    run->depth--;
}

/* The first of "a, b", which is taken away from them. */
static struct cm_str next_name(struct cm_str *names)
{
    size_t size = 0;

    while (size < names->size && names->data[size] != ',')
        size++;
    const struct cm_str name = trim((struct cm_str){names->data, size});
    names->data += size + (size < names->size);
    names->size -= size + (size < names->size);
    return name;
}

/* "a, b": names of the arguments, which were given by number. */
static void name_arguments(struct cm_template_run *run, struct cm_str names)
{
    size_t index = 0;

    while (names.size) {
        if (index >= run->scope->count) {
            cm_template_wrong(run, "the macro is given %zu arguments and has more", index);
            return;
        }
        run->scope->items[index++].name = next_name(&names);
    }
    if (index != run->scope->count)
        cm_template_wrong(run, "the macro is given %zu arguments and has %zu", run->scope->count,
                          index);
}

/* "a, b": variables of a macro that become variables of its caller. */
static void run_give(struct cm_template_run *run, struct cm_str names)
{
    while (names.size) {
        const struct cm_str name = next_name(&names);
        const struct cm_term *term = cm_template_variable(run->scope, name);
        if (!term || !run->scope->caller) {
            cm_template_wrong(run, "@give is for variables of a macro, and '%.*s' is not one",
                              CM_STR_FMT(name));
            return;
        }
        cm_template_set(run, run->scope->caller, name, *term);
    }
}

static void run_set(struct cm_template_run *run, struct cm_str text)
{
    const char *equals = text.size ? memchr(text.data, '=', text.size) : NULL;

    if (!equals) {
        cm_template_wrong(run, "@set NAME = EXPRESSION needs its '='");
        return;
    }
    const size_t size = (size_t)(equals - text.data);
    cm_template_set(run, run->scope, trim((struct cm_str){text.data, size}),
                    cm_template_eval(run, (struct cm_str){equals + 1, text.size - size - 1}));
}

static void run_lines(struct cm_template_run *run, const struct line_list *lines, size_t begin,
                      size_t end)
{
    for (size_t i = begin; i < end && run->status == CM_OK; i++) {
        const struct cm_str line = lines->items[i].text, bare = trim(line);
        struct cm_str rest;
        run->line = lines->items[i].number;
        if (!bare.size || cm_str_starts(bare, "//"))
            continue;
        if (bare.data[0] != '@' || bare.size < 2) {
            template_emit(run, cm_template_substitute(run, line));
        } else if (cm_template_directive(line, "if", &rest)) {
            i = run_if(run, lines, i, rest);
        } else if (cm_template_directive(line, "for", &rest)) {
            i = run_for(run, lines, i, rest);
        } else if (cm_template_directive(line, "set", &rest)) {
            run_set(run, rest);
        } else if (cm_template_directive(line, "do", &rest)) {
            run_macro(run, rest);
        } else if (cm_template_directive(line, "macro", &rest)) {
            name_arguments(run, rest);
        } else if (cm_template_directive(line, "give", &rest)) {
            run_give(run, rest);
        } else if (cm_template_directive(line, "refuse", &rest)) {
            const struct cm_term why = cm_template_eval(run, rest);
            const struct cm_str text = cm_term_print(run, &why);
            cm_template_refuse(run, "%.*s", CM_STR_FMT(text));
        } else if (!run->use->host->directive(run->use->host->arg, run, line)) {
            cm_template_wrong(run, "'%.*s' is not a directive", CM_STR_FMT(bare));
        }
    }
}

enum cm_status cm_template_expand(const struct cm_template_use *use, struct cm_error *err)
{
    struct cm_template_run run = {.use = use, .err = err, .text = use->text};
    struct cm_template_scope scope = {.prefix = use->prefix};

    run_text(&run, use->text, &scope);
    return run.status;
}

bool cm_template_holds(const struct cm_template_use *use, struct cm_str expression)
{
    struct cm_error err = {0};
    struct cm_template_scope scope = {.prefix = use->prefix};
    struct cm_template_run run = {.use = use, .err = &err, .text = use->text, .scope = &scope};
    const struct cm_term term = cm_template_eval(&run, expression);

    return run.status == CM_OK && cm_term_is_true(&term);
}
