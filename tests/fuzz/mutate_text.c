/* Changes of text by its tokens: words, numbers, strings, brackets with what is in them, lines. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "mutate.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum token_kind { TOKEN_SPACE, TOKEN_WORD, TOKEN_NUMBER, TOKEN_STRING, TOKEN_MARK };

struct token {
    struct cm_str text;
    enum token_kind kind;
};

struct tokens {
    CM_ARRAY(struct token);
};

enum { MOST_TOKENS = 1 << 16, MOST_TEXT = 1 << 20 };

/* ---- reading ---- */

static bool is_word(char letter)
{
    return isalnum((unsigned char)letter) || strchr("_.$%@!#^", letter) || (letter & 0x80);
}

static size_t token_end(struct cm_str text, size_t at, enum token_kind *kind)
{
    const char first = text.data[at];
    size_t end = at + 1;

    if (isspace((unsigned char)first)) {
        *kind = TOKEN_SPACE;
        while (end < text.size && isspace((unsigned char)text.data[end]) && text.data[end] != '\n')
            end++;
    } else if (first == '"' || first == '\'') {
        *kind = TOKEN_STRING;
        while (end < text.size && text.data[end] != first)
            end += text.data[end] == '\\' && end + 1 < text.size ? 2 : 1;
        end += end < text.size;
    } else if (isdigit((unsigned char)first) ||
               (first == '-' && end < text.size && isdigit((unsigned char)text.data[end]))) {
        *kind = TOKEN_NUMBER;
        while (end < text.size &&
               (isdigit((unsigned char)text.data[end]) || strchr(".eE", text.data[end])))
            end++;
    } else if (first && is_word(first)) {
        *kind = TOKEN_WORD;
        while (end < text.size && text.data[end] && is_word(text.data[end]))
            end++;
    } else {
        *kind = TOKEN_MARK;
    }
    return end;
}

static void read_tokens(struct chance *c, struct cm_str text, struct tokens *out)
{
    for (size_t at = 0; at < text.size && out->count < MOST_TOKENS;) {
        enum token_kind kind;
        const size_t end = token_end(text, at, &kind);

        *CM_PUSH(c->arena, out) = (struct token){str_part(text, at, end - at), kind};
        at = end;
    }
}

/* A token of this kind, of any kind where there is none. */
static size_t some_token(struct chance *c, const struct tokens *tokens, enum token_kind kind)
{
    const size_t from = chance_draw(c, tokens->count);

    for (size_t i = 0; i < tokens->count; i++)
        if (tokens->items[(from + i) % tokens->count].kind == kind)
            return (from + i) % tokens->count;
    return from;
}

/* The tokens from an opening bracket to the one that closes it; false: there is none. */
static bool some_group(struct chance *c, const struct tokens *tokens, size_t *from, size_t *to)
{
    static const char opening[] = "([{<", closing[] = ")]}>";
    const size_t begin = chance_draw(c, tokens->count);

    for (size_t i = 0; i < tokens->count; i++) {
        const size_t at = (begin + i) % tokens->count;
        const struct token *open = &tokens->items[at];
        const char *which = open->kind == TOKEN_MARK ? strchr(opening, open->text.data[0]) : NULL;
        int depth = 0;

        for (size_t k = at; which && *which && k < tokens->count; k++) {
            if (tokens->items[k].kind != TOKEN_MARK)
                continue;
            depth += tokens->items[k].text.data[0] == *which;
            depth -= tokens->items[k].text.data[0] == closing[which - opening];
            if (depth)
                continue;
            *from = at;
            *to = k + 1;
            return true;
        }
    }
    return false;
}

/* ---- changes ---- */

/* Tokens [from, to) become others. */
static void replace(struct chance *c, struct tokens *tokens, size_t from, size_t to,
                    const struct token *by, size_t count)
{
    const size_t rest = tokens->count - to, total = from + count + rest;
    struct token *made = CM_NEW_ARRAY(c->arena, struct token, total + 1);

    if (from)
        memcpy(made, tokens->items, from * sizeof *made);
    if (count)
        memcpy(made + from, by, count * sizeof *made);
    if (rest)
        memcpy(made + from + count, tokens->items + to, rest * sizeof *made);
    *tokens = (struct tokens){.items = made, .count = total, .capacity = total + 1};
}

static struct cm_str new_number(struct chance *c)
{
    if (chance_percent(c, 70))
        return cm_arena_printf(c->arena, "%lld", (long long)chance_number(c));
    return cm_arena_printf(c->arena, "%g", (double)chance_real(c));
}

static struct cm_str new_string(struct chance *c, struct cm_str now)
{
    static const char *const odd[] = {"\\n",     "\\\"", "\\\\", "\\u0041",   "\\xff",
                                      "\\u202e", "\n",   "\t",   "0x00000000"};
    const struct cm_str inside = str_part(now, 1, now.size > 1 ? now.size - 2 : 0);
    const struct cm_str word =
        chance_percent(c, 60) ? chance_word(c) : cm_str(odd[chance_draw(c, CM_COUNT(odd))]);

    return chance_percent(c, 50)
               ? cm_arena_printf(c->arena, "\"%.*s\"", CM_STR_FMT(word))
               : cm_arena_printf(c->arena, "\"%.*s%.*s\"", CM_STR_FMT(inside), CM_STR_FMT(word));
}

/* A token becomes another of its kind. */
static void change_token(struct chance *c, struct tokens *tokens, const struct tokens *from)
{
    static const enum token_kind kinds[] = {TOKEN_WORD,   TOKEN_WORD,   TOKEN_WORD, TOKEN_NUMBER,
                                            TOKEN_NUMBER, TOKEN_STRING, TOKEN_MARK};
    struct token *token =
        &tokens->items[some_token(c, tokens, kinds[chance_draw(c, CM_COUNT(kinds))])];

    if (chance_percent(c, 50)) {
        *token = from->items[some_token(c, from, token->kind)];
    } else if (token->kind == TOKEN_WORD) {
        token->text = chance_word(c);
    } else if (token->kind == TOKEN_NUMBER) {
        token->text = new_number(c);
    } else if (token->kind == TOKEN_STRING) {
        token->text = new_string(c, token->text);
    } else {
        static const char marks[] = "()[]{}<>,:;=-*x?\"'#\n";
        token->text = (struct cm_str){&marks[chance_draw(c, sizeof marks - 1)], 1};
    }
}

/* What stands in brackets: gone, empty, twice, in the place of another, many times in itself. */
static bool change_group(struct chance *c, struct tokens *tokens, const struct tokens *from)
{
    size_t begin, end, other, other_end;

    if (!some_group(c, tokens, &begin, &end) || !some_group(c, from, &other, &other_end))
        return false;
    switch (chance_draw(c, 6)) {
    case 0:
        replace(c, tokens, begin, end, NULL, 0);
        break;
    case 1:
        replace(c, tokens, begin + 1, end - 1, NULL, 0);
        break;
    case 2:
        replace(c, tokens, end, end, tokens->items + begin, end - begin);
        break;
    case 3: {
        const struct token open = tokens->items[begin], close = tokens->items[end - 1];
        size_t times = 1 + chance_draw(c, chance_percent(c, 80) ? 3 : 300);
        while (times-- > 0) {
            replace(c, tokens, end, end, &close, 1);
            replace(c, tokens, begin, begin, &open, 1);
            end += 2;
        }
        break;
    }
    default:
        replace(c, tokens, begin, end, from->items + other, other_end - other);
        break;
    }
    return true;
}

/* A line, or what is between two commas: gone, twice, in another place. */
static void change_run(struct chance *c, struct tokens *tokens, const struct tokens *from)
{
    const bool lines = chance_percent(c, 60);
    size_t begin = chance_draw(c, from->count), end = begin;
#define ENDS(t) (lines ? (t).text.data[0] == '\n' : (t).text.data[0] == ',')

    while (begin > 0 && !ENDS(from->items[begin - 1]))
        begin--;
    while (end < from->count && !ENDS(from->items[end]))
        end++;
    end += end < from->count;
    if (from == tokens && chance_percent(c, 40)) {
        replace(c, tokens, begin, end, NULL, 0);
        return;
    }
    size_t to = chance_draw(c, tokens->count);
    while (to > 0 && !ENDS(tokens->items[to - 1]))
        to--;
#undef ENDS
    replace(c, tokens, to, to, from->items + begin, end - begin);
}

static void change_count(struct chance *c, struct tokens *tokens)
{
    const size_t at = chance_draw(c, tokens->count), other = chance_draw(c, tokens->count);
    const struct token token = tokens->items[at];

    switch (chance_draw(c, 3)) {
    case 0:
        replace(c, tokens, at, at + 1, NULL, 0);
        break;
    case 1:
        replace(c, tokens, other, other, &token, 1);
        break;
    default:
        tokens->items[at] = tokens->items[other];
        tokens->items[other] = token;
        break;
    }
}

struct cm_str mutate_text(struct chance *c, struct cm_str bytes)
{
    struct tokens tokens = {0}, others = {0};
    struct sheet sheet = {.arena = c->arena};

    if (bytes.size > MOST_TEXT)
        return CM_STR_NONE;
    read_tokens(c, bytes, &tokens);
    if (c->other.size && c->other.size < MOST_TEXT)
        read_tokens(c, c->other, &others);
    if (!tokens.count)
        return CM_STR_NONE;
    for (size_t times = 1 + chance_draw(c, 3); times > 0 && tokens.count; times--) {
        const struct tokens *from = others.count && chance_percent(c, 60) ? &others : &tokens;
        const size_t what = chance_draw(c, 10);

        if (what < 5)
            change_token(c, &tokens, from);
        else if (what < 7)
            (void)change_group(c, &tokens, from);
        else if (what < 9)
            change_run(c, &tokens, from);
        else
            change_count(c, &tokens);
    }
    for (size_t i = 0; i < tokens.count; i++)
        sheet_add(&sheet, tokens.items[i].text);
    return sheet_text(&sheet);
}
