/* Statements as lines of at most 88 columns, broken as formatters of Python break them. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/code/code_state.h"

#include <string.h>

enum { WIDTH = 88, STEP = 4 };

static void put_line(struct cm_code *code, struct cm_code_text *out, int indent, struct cm_str text)
{
    if (text.size)
        cm_code_putf(code, out, "%*s", indent, "");
    cm_code_put(code, out, text);
    cm_code_put(code, out, CM_STR("\n"));
}

/* Goes over a text: depth of brackets, and whether a character is inside a literal. */
struct scan {
    struct cm_str text;
    size_t at;
    int depth;
    bool in_text;
};

/* The next character outside of literals; 0: the end. depth is that after an opening bracket, and
 * that in front of a closing one. */
static char next_char(struct scan *s)
{
    while (s->at < s->text.size) {
        const char c = s->text.data[s->at++];

        if (s->in_text) {
            s->at += c == '\\';
            s->in_text = c != '"';
            continue;
        }
        if (c == '"') {
            s->in_text = true;
            continue;
        }
        if (c == '(' || c == '[' || c == '{')
            s->depth++;
        else if (c == ')' || c == ']' || c == '}')
            s->depth--;
        return c;
    }
    return '\0';
}

/* Where the bracket opens that the text's last one closes; size: there is none at the end. After
 * the last bracket there may be a ":". */
static size_t last_bracket(struct cm_str text, size_t *close)
{
    struct scan s = {.text = text};
    size_t opens[64], open = text.size;
    char c;

    *close = text.size;
    while ((c = next_char(&s))) {
        const size_t at = s.at - 1;
        if ((c == '(' || c == '[' || c == '{') && s.depth <= 64)
            opens[s.depth - 1] = at;
        else if ((c == ')' || c == ']' || c == '}') && s.depth == 0) {
            open = opens[0];
            *close = at;
        }
    }
    for (size_t i = *close + 1; i < text.size; i++)
        if (text.data[i] != ':')
            return text.size;
    return open;
}

static struct cm_str trim(struct cm_str text)
{
    while (text.size && text.data[0] == ' ')
        text = cm_str_from(text, 1);
    while (text.size && text.data[text.size - 1] == ' ')
        text.size--;
    return text;
}

static void put_expression(struct cm_code *code, struct cm_code_text *out, int indent,
                           struct cm_str text, const char *end, int depth);

/* One item to a line, each with its comma. False: there is one item only. */
static bool put_items(struct cm_code *code, struct cm_code_text *out, int indent,
                      struct cm_str body, int depth)
{
    struct scan s = {.text = body};
    size_t begin = 0;
    bool is_list = false;
    char c;

    while ((c = next_char(&s)))
        is_list |= c == ',' && s.depth == 0;
    if (!is_list)
        return false;
    s = (struct scan){.text = body};
    do {
        c = next_char(&s);
        if (c && !(c == ',' && s.depth == 0))
            continue;
        const size_t end = c ? s.at - 1 : body.size;
        const struct cm_str item = trim((struct cm_str){body.data + begin, end - begin});
        if (item.size)
            put_expression(code, out, indent, item, ",", depth);
        begin = s.at;
    } while (c);
    return true;
}

/* Operators of one precedence, the loosest first. */
static const char *const operators[][4] = {
    {" if ", " else ", NULL},
    {" or ", NULL},
    {" and ", NULL},
    {" | ", NULL},
    {" & ", NULL},
    {" + ", " - ", NULL},
    {" * ", " / ", " @ ", NULL},
};

static size_t operator_at(struct cm_str text, size_t i, size_t level)
{
    for (size_t k = 0; k < 4 && operators[level][k]; k++) {
        const size_t size = strlen(operators[level][k]);
        if (text.size - i > size && memcmp(text.data + i, operators[level][k], size) == 0)
            return size;
    }
    return 0;
}

/* The parts between operators, each operator in front of the part it leads. False: there is none.
 */
static bool put_operands(struct cm_code *code, struct cm_code_text *out, int indent,
                         struct cm_str text, int depth)
{
    for (size_t level = 0; level < CM_COUNT(operators); level++) {
        struct scan s = {.text = text};
        size_t begin = 0, found = 0;
        char c;

        while ((c = next_char(&s)))
            found += c == ' ' && s.depth == 0 && operator_at(text, s.at - 1, level);
        if (!found)
            continue;
        s = (struct scan){.text = text};
        while ((c = next_char(&s))) {
            const size_t at = s.at - 1;
            if (c != ' ' || s.depth || !operator_at(text, at, level))
                continue;
            put_expression(code, out, indent, trim((struct cm_str){text.data + begin, at - begin}),
                           "", depth);
            begin = at;
        }
        put_expression(code, out, indent, trim(cm_str_from(text, begin)), "", depth);
        return true;
    }
    return false;
}

static bool fits(int indent, struct cm_str text, size_t more)
{
    return (size_t)indent + text.size + more <= WIDTH;
}

static void put_bracket(struct cm_code *code, struct cm_code_text *out, int indent,
                        struct cm_str head, struct cm_str body, struct cm_str tail, int depth)
{
    put_line(code, out, indent, head);
    if (fits(indent + STEP, body, 0))
        put_line(code, out, indent + STEP, body);
    else if (!put_items(code, out, indent + STEP, body, depth) &&
             !put_operands(code, out, indent + STEP, body, depth))
        put_expression(code, out, indent + STEP, body, "", depth);
    put_line(code, out, indent, tail);
}

static void put_expression(struct cm_code *code, struct cm_code_text *out, int indent,
                           struct cm_str text, const char *end, int depth)
{
    const size_t more = strlen(end);
    size_t close;

    if (fits(indent, text, more) || depth > 30) {
        put_line(code, out, indent, cm_arena_printf(code->arena, "%.*s%s", CM_STR_ALL(text), end));
        return;
    }
    const size_t open = last_bracket(text, &close);
    if (open == text.size || close <= open + 1) {
        put_line(code, out, indent, cm_arena_printf(code->arena, "%.*s%s", CM_STR_ALL(text), end));
        return;
    }
    put_bracket(code, out, indent, (struct cm_str){text.data, open + 1},
                trim((struct cm_str){text.data + open + 1, close - open - 1}),
                cm_arena_printf(code->arena, "%.*s%s", CM_STR_ALL(cm_str_from(text, close)), end),
                depth + 1);
}

/* Where the value of an assignment or a return begins; 0: it is neither. */
static size_t value_begin(struct cm_str text)
{
    struct scan s = {.text = text};
    char c;

    if (cm_str_starts(text, "return "))
        return 7;
    while ((c = next_char(&s)))
        if (c == '=' && s.depth == 0 && s.at < text.size && text.data[s.at] == ' ')
            return s.at + 1;
    return 0;
}

/* Is the value operators between operands, and is the last no call that could be broken? */
static bool has_operator(struct cm_str text)
{
    struct scan s = {.text = text};
    char c;

    while ((c = next_char(&s)))
        if (c == ' ' && s.depth == 0)
            return true;
    return false;
}

void cm_code_statement(struct cm_code *code, struct cm_code_text *out, int indent,
                       struct cm_str text)
{
    const size_t begin = fits(indent, text, 0) ? 0 : value_begin(text);
    size_t close;

    if (begin && has_operator(cm_str_from(text, begin)) &&
        last_bracket(cm_str_from(text, begin), &close) != 0) {
        put_line(code, out, indent, cm_arena_printf(code->arena, "%.*s(", (int)begin, text.data));
        if (fits(indent + STEP, cm_str_from(text, begin), 0))
            put_line(code, out, indent + STEP, cm_str_from(text, begin));
        else if (!put_items(code, out, indent + STEP, cm_str_from(text, begin), 1) &&
                 !put_operands(code, out, indent + STEP, cm_str_from(text, begin), 1))
            put_expression(code, out, indent + STEP, cm_str_from(text, begin), "", 1);
        put_line(code, out, indent, CM_STR(")"));
        return;
    }
    put_expression(code, out, indent, text, "", 0);
}

/* ---- helpers ---- */

/* "# needs: a, b" in the first line of a helper names others. */
static void put_helper(struct cm_code *code, struct cm_code_text *out, struct cm_map *done,
                       struct cm_str name, int depth)
{
    const struct cm_template_text *text = cm_code_text_of(code->to, "helpers", name);
    const struct cm_str mark = CM_STR("# needs: ");

    if (!text || depth > 8 || !cm_map_add(done, code->arena, name))
        return;
    struct cm_str body = {text->text, text->size};
    if (cm_str_starts(body, "# needs: ")) {
        struct cm_str needs = cm_str_from(cm_str_before_first(body, '\n'), mark.size);
        body = cm_str_after_first(body, '\n');
        while (needs.size) {
            struct cm_str one = cm_str_before_first(needs, ',');
            if (!one.size)
                one = needs;
            put_helper(code, out, done, trim(one), depth + 1);
            needs = cm_str_after_first(needs, ',');
        }
    }
    cm_code_put(code, out, CM_STR("\n\n"));
    cm_code_put(code, out, body);
}

void cm_code_helpers(struct cm_code *code, struct cm_code_text *out)
{
    struct cm_map done = {0};

    for (size_t i = 0; i < code->helpers.count; i++)
        put_helper(code, out, &done, code->helpers.items[i], 0);
}
