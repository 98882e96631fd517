/* Lines as a person would leave them: a line whose variables are not read goes, and a value that is
 * read once, in the next line, goes into that line where there is room. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/code/code_state.h"

#include <string.h>

/* A line after inlining, with its indentation, and how deep its brackets nest. */
enum { WIDTH = 80, NESTING = 3, PASSES = 8 };

/* ---- what a line assigns ---- */

struct cm_code_assignment cm_code_assignment(struct cm_str text)
{
    struct cm_code_assignment out = {0};
    size_t at = 0;
    char kind;

    for (;;) {
        size_t number;
        if (out.count == CM_COUNT(out.targets) || !cm_code_read_ref(text, &at, &kind, &number) ||
            kind != CM_CODE_VAR)
            break;
        out.targets[out.count++] = number;
        if (text.size - at > 3 && memcmp(text.data + at, " = ", 3) == 0) {
            out.value = cm_str_from(text, at + 3);
            return out;
        }
        if (text.size - at < 2 || memcmp(text.data + at, ", ", 2) != 0)
            break;
        at += 2;
    }
    out.count = 0;
    return out;
}

static bool is_head(struct cm_str text)
{
    return text.size && text.data[text.size - 1] == ':';
}

static void use_layer(struct cm_code *code, struct cm_code_layer *layer)
{
    layer->is_used = true;
    for (size_t t = 0; t < layer->n_tensors; t++)
        code->tensors.items[layer->tensors[t]].is_used = true;
    for (size_t l = 0; layer->is_list && l < code->layers.count; l++) {
        struct cm_code_layer *block = &code->layers.items[l];
        if (block->is_block && cm_str_equal(cm_str_before_last(block->path, '.'), layer->path))
            use_layer(code, block);
    }
}

static void count_lines(struct cm_code *code, const struct cm_code_lines *lines)
{
    for (size_t i = 0; i < lines->count; i++) {
        const struct cm_code_line *line = &lines->items[i];
        const struct cm_code_assignment to = cm_code_assignment(line->text);

        if (line->is_gone)
            continue;
        for (size_t t = 0; t < to.count; t++) {
            code->vars.items[to.targets[t]].defs++;
            code->vars.items[to.targets[t]].uses--; /* which is counted below */
        }
        for (size_t at = 0; at < line->text.size;) {
            size_t number;
            char kind;

            if (!cm_code_read_ref(line->text, &at, &kind, &number))
                at++;
            else if (kind == CM_CODE_VAR)
                code->vars.items[number].uses++;
            else if (kind == CM_CODE_LAYER)
                use_layer(code, &code->layers.items[number]);
            else
                code->tensors.items[number].is_used = true;
        }
    }
}

static void count(struct cm_code *code)
{
    for (size_t v = 0; v < code->vars.count; v++)
        code->vars.items[v].defs = code->vars.items[v].uses = 0;
    for (size_t t = 0; t < code->tensors.count; t++)
        code->tensors.items[t].is_used = false;
    for (size_t l = 0; l < code->layers.count; l++)
        code->layers.items[l].is_used = false;
    count_lines(code, &code->lines);
}

/* ---- dead lines ---- */

static bool remove_dead(struct cm_code *code)
{
    bool changed = false;

    count(code);
    for (size_t i = code->lines.count; i-- > 0;) {
        struct cm_code_line *line = &code->lines.items[i];
        const struct cm_code_assignment to = cm_code_assignment(line->text);
        size_t read = 0;

        if (line->is_gone || !to.count || is_head(line->text))
            continue;
        for (size_t t = 0; t < to.count; t++)
            read += code->vars.items[to.targets[t]].uses;
        if (read)
            continue;
        line->is_gone = changed = true;
    }
    return changed;
}

/* ---- inlining ---- */

struct shape_of_text {
    int depth;         /* of its brackets */
    bool has_operator; /* a space outside of brackets and texts */
    bool has_comma;    /* outside of them */
};

static struct shape_of_text look(struct cm_str text)
{
    struct shape_of_text out = {0};
    bool in_text = false;
    int depth = 0;

    for (size_t i = 0; i < text.size; i++) {
        const char c = text.data[i];
        if (c == '\\' && in_text)
            i++;
        else if (c == '"')
            in_text = !in_text;
        else if (in_text)
            continue;
        else if (c == '(' || c == '[' || c == '{')
            out.depth = ++depth > out.depth ? depth : out.depth;
        else if (c == ')' || c == ']' || c == '}')
            depth--;
        else if (depth == 0 && c == ' ')
            out.has_operator = true;
        else if (depth == 0 && c == ',')
            out.has_comma = true;
    }
    out.has_operator |= text.size && (text.data[0] == '-' || text.data[0] == '~');
    return out;
}

/* How wide a text is with names as they probably are. */
static size_t width_of(const struct cm_code *code, struct cm_str text)
{
    size_t width = 0;

    for (size_t at = 0; at < text.size;) {
        size_t number;
        char kind;

        if (!cm_code_read_ref(text, &at, &kind, &number)) {
            width++;
            at++;
        } else if (kind == CM_CODE_VAR) {
            width += code->vars.items[number].hint.size + 1;
        } else if (kind == CM_CODE_LAYER) {
            width += code->layers.items[number].path.size + 6;
        } else {
            width += code->tensors.items[number].path.size + 6;
        }
    }
    return width;
}

/* Is what stands there an argument, an element or all of a value, so that operators in it need no
 * parentheses? */
static bool is_whole(struct cm_str text, size_t begin, size_t end)
{
    const struct cm_str before = {text.data, begin};
    const bool opens = cm_str_ends(before, "(") || cm_str_ends(before, ", ") ||
                       cm_str_ends(before, " = ") || cm_str_is(before, "return ");
    const bool is_keyword = cm_str_ends(before, "=") && !cm_str_ends(before, " =");

    if (!opens && !is_keyword)
        return false;
    return end == text.size || text.data[end] == ')' || text.data[end] == ',';
}

/* The text with its only reference to a variable replaced; empty: that cannot be. */
static struct cm_str put_in(struct cm_code *code, struct cm_str text, size_t var,
                            struct cm_str value, struct shape_of_text shape)
{
    struct cm_code_text out = {0};

    for (size_t at = 0; at < text.size;) {
        const size_t begin = at;
        size_t number;
        char kind;

        if (!cm_code_read_ref(text, &at, &kind, &number)) {
            at++;
            continue;
        }
        if (kind != CM_CODE_VAR || number != var)
            continue;
        const bool wraps = shape.has_operator && !is_whole(text, begin, at);
        const bool is_number = value.size && value.data[0] >= '0' && value.data[0] <= '9';
        if (is_number && at < text.size && text.data[at] == '.')
            return CM_STR_NONE;
        cm_code_put(code, &out, (struct cm_str){text.data, begin});
        cm_code_put(code, &out, wraps ? CM_STR("(") : CM_STR(""));
        cm_code_put(code, &out, value);
        cm_code_put(code, &out, wraps ? CM_STR(")") : CM_STR(""));
        cm_code_put(code, &out, cm_str_from(text, at));
        return cm_code_text_str(&out);
    }
    return CM_STR_NONE;
}

static bool may_move_into(struct cm_str text)
{
    return !cm_str_starts(text, "while ") && !cm_str_starts(text, "elif ") &&
           !cm_str_contains(text, " for ") && !cm_str_contains(text, "lambda") &&
           !cm_str_contains(text, " if ");
}

static size_t next_line(const struct cm_code *code, size_t i)
{
    while (++i < code->lines.count && code->lines.items[i].is_gone)
        ;
    return i;
}

static bool inline_short(struct cm_code *code)
{
    bool changed = false;

    count(code);
    for (size_t i = 0; i < code->lines.count; i++) {
        struct cm_code_line *line = &code->lines.items[i];
        const struct cm_code_assignment to = cm_code_assignment(line->text);
        const size_t n = next_line(code, i);

        if (line->is_gone || to.count != 1 || n == code->lines.count)
            continue;
        struct cm_code_line *next = &code->lines.items[n];
        const struct cm_code_var *var = &code->vars.items[to.targets[0]];
        const struct shape_of_text shape = look(to.value);
        if (var->defs != 1 || var->uses != 1 || next->indent != line->indent || shape.has_comma ||
            !may_move_into(next->text) || cm_str_contains(to.value, " for ") ||
            cm_str_contains(to.value, " if "))
            continue;
        const struct cm_str joined = put_in(code, next->text, to.targets[0], to.value, shape);
        if (!joined.size || look(joined).depth > NESTING ||
            width_of(code, joined) + (size_t)next->indent > WIDTH)
            continue;
        next->text = joined;
        line->is_gone = changed = true;
    }
    return changed;
}

void cm_code_remove_dead(struct cm_code *code)
{
    for (int pass = 0; pass < 64 && remove_dead(code); pass++)
        ;
}

void cm_code_note_live(struct cm_code *code)
{
    for (size_t v = 0; v < code->vars.count; v++)
        code->vars.items[v].is_live = code->vars.items[v].uses > 0;
}

static void inline_all(struct cm_code *code)
{
    for (int pass = 0; pass < PASSES && inline_short(code); pass++)
        ;
}

void cm_code_tidy(struct cm_code *code)
{
    const struct cm_code_lines main = code->lines;

    for (size_t i = 0; i < code->classes.count; i++) {
        code->lines = code->classes.items[i].lines;
        inline_all(code);
        code->classes.items[i].lines = code->lines;
    }
    code->lines = main;
    inline_all(code);
    count(code);
    for (size_t i = 0; i < code->classes.count; i++)
        count_lines(code, &code->classes.items[i].lines);
}
