/* A pattern becomes steps of a machine that is in many places at once (Thompson's construction).
 * Jumps are relative, so a piece can be moved to make room for a step before it. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/text/regex.h"

#include <string.h>

enum { CLASS, SPLIT, JUMP, AT_START, AT_END, AT_WORD_EDGE, FOUND };
enum { MOST_DEPTH = 200, MOST_REPEATS = 1000, MOST_WORK = 1 << 24, LAST_LETTER = 0x10ffff };

struct parser {
    struct cm_str pattern;
    size_t at;
    int depth;
    int64_t work; /* steps written and moved, those dropped again too */
    struct cm_regex *out;
    struct cm_error *err;
};

/* The code point at *at, which moves on; bytes that are no UTF-8 count as U+FFFD. */
static uint32_t next_letter(struct cm_str text, size_t *at)
{
    const uint8_t *s = (const uint8_t *)text.data + *at;
    const size_t left = text.size - *at;
    const int more = s[0] < 0x80   ? 0
                     : s[0] < 0xc2 ? -1
                     : s[0] < 0xe0 ? 1
                     : s[0] < 0xf0 ? 2
                     : s[0] < 0xf5 ? 3
                                   : -1;
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    *at += 1;
    if (more == 0)
        return s[0];
    if (more < 0 || (size_t)more >= left)
        return 0xfffd;
    uint32_t letter = s[0] & (0x3fu >> more);
    for (int i = 1; i <= more; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0xfffd;
        letter = letter << 6 | (s[i] & 0x3fu);
    }
    if (letter < least[more] || letter > LAST_LETTER || (letter >= 0xd800 && letter < 0xe000))
        return 0xfffd;
    *at += (size_t)more;
    return letter;
}

static bool more(const struct parser *p)
{
    return p->at < p->pattern.size;
}

static char peek(const struct parser *p)
{
    return more(p) ? p->pattern.data[p->at] : '\0';
}

static bool take(struct parser *p, const char *word)
{
    const size_t n = strlen(word);
    if (p->pattern.size - p->at < n || memcmp(p->pattern.data + p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

static enum cm_status bad(struct parser *p, enum cm_status status, const char *why)
{
    return cm_fail(p->err, status, "pattern '%.*s': %s at byte %zu", CM_STR_FMT(p->pattern), why,
                   p->at);
}

/* Is there room for so many more steps, and may that many be moved? */
static enum cm_status afford(struct parser *p, int32_t steps, int32_t moves)
{
    p->work += moves;
    if (steps > CM_REGEX_STEPS - p->out->n_steps || p->work > MOST_WORK)
        return bad(p, CM_LIMIT, "it is too long");
    return CM_OK;
}

static enum cm_status emit(struct parser *p, struct cm_regex_step step)
{
    CM_TRY(afford(p, 1, 1));
    p->out->steps[p->out->n_steps++] = step;
    return CM_OK;
}

/* Makes room for a step before the piece that starts at `at`. */
static enum cm_status emit_before(struct parser *p, int32_t at, struct cm_regex_step step)
{
    CM_TRY(afford(p, 1, p->out->n_steps - at));
    CM_TRY(emit(p, step));
    memmove(&p->out->steps[at + 1], &p->out->steps[at],
            (size_t)(p->out->n_steps - 1 - at) * sizeof step);
    p->out->steps[at] = step;
    return CM_OK;
}

static enum cm_status add_range(struct parser *p, uint32_t from, uint32_t to)
{
    if (p->out->n_ranges == CM_REGEX_RANGES)
        return bad(p, CM_LIMIT, "its classes are too long");
    p->out->ranges[p->out->n_ranges++] = (struct cm_regex_range){from, to};
    return CM_OK;
}

/* ---- classes ---- */

struct named {
    const char *name;
    struct cm_regex_range ranges[4]; /* ends with {0, 0} */
};

/* \d, \s, \w and the names of [[:name:]]. */
/* clang-format off */
static const struct named letters[] = {
    {"d", {{'0', '9'}}},
    {"s", {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}}},
    {"w", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
};
static const struct named names[] = {
    {"[:alnum:]", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
    {"[:alpha:]", {{'A', 'Z'}, {'a', 'z'}}},
    {"[:ascii:]", {{1, 0x7f}}},
    {"[:blank:]", {{'\t', '\t'}, {' ', ' '}}},
    {"[:digit:]", {{'0', '9'}}},
    {"[:graph:]", {{'!', '~'}}},
    {"[:lower:]", {{'a', 'z'}}},
    {"[:print:]", {{' ', '~'}}},
    {"[:punct:]", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
    {"[:space:]", {{'\t', '\r'}, {' ', ' '}}},
    {"[:upper:]", {{'A', 'Z'}}},
    {"[:word:]", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
    {"[:xdigit:]", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
};
/* clang-format on */

static enum cm_status add_named(struct parser *p, const struct named *set, bool negated)
{
    uint32_t next = 0;
    for (int i = 0; i < 4 && set->ranges[i].to; i++) {
        if (!negated)
            CM_TRY(add_range(p, set->ranges[i].from, set->ranges[i].to));
        else if (set->ranges[i].from > next)
            CM_TRY(add_range(p, next, set->ranges[i].from - 1));
        next = set->ranges[i].to + 1;
    }
    return negated ? add_range(p, next, LAST_LETTER) : CM_OK;
}

/* \d and its kin; *found tells whether it was one. */
static enum cm_status parse_perl_class(struct parser *p, bool *found)
{
    *found = false;
    if (peek(p) != '\\' || p->pattern.size - p->at < 2)
        return CM_OK;
    const char c = p->pattern.data[p->at + 1];
    for (size_t i = 0; i < CM_COUNT(letters); i++) {
        const char lower = letters[i].name[0], upper = (char)(lower - 'a' + 'A');
        if (c != lower && c != upper)
            continue;
        *found = true;
        p->at += 2;
        return add_named(p, &letters[i], c == upper);
    }
    return CM_OK;
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* What follows \x: two digits, or any number in braces. */
static enum cm_status parse_hex(struct parser *p, uint32_t *out)
{
    const bool braces = take(p, "{");
    int n = 0;
    *out = 0;
    for (; (braces || n < 2) && hex(peek(p)) >= 0 && *out <= LAST_LETTER; n++)
        *out = *out * 16 + (uint32_t)hex(p->pattern.data[p->at++]);
    if (n == 0 || (!braces && n < 2) || *out > LAST_LETTER || (braces && !take(p, "}")))
        return bad(p, CM_BAD_MODEL, "an invalid character code");
    return CM_OK;
}

/* One letter, escaped or not. */
static enum cm_status parse_letter(struct parser *p, uint32_t *out)
{
    static const char from[] = "aftnrv", to[] = "\a\f\t\n\r\v";
    if (!take(p, "\\")) {
        *out = next_letter(p->pattern, &p->at);
        return CM_OK;
    }
    if (!more(p))
        return bad(p, CM_BAD_MODEL, "nothing after a backslash");
    const char c = peek(p);
    const char *known = memchr(from, c, sizeof from - 1);
    if (known || c == 'x') {
        p->at++;
        *out = known ? (uint32_t)to[known - from] : 0;
        return known ? CM_OK : parse_hex(p, out);
    }
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
        return bad(p, CM_UNSUPPORTED, "an escape that is not supported");
    *out = next_letter(p->pattern, &p->at);
    return CM_OK;
}

static enum cm_status parse_class_item(struct parser *p)
{
    uint32_t from, to;
    bool found;
    for (size_t i = 0; i < CM_COUNT(names); i++)
        if (take(p, names[i].name))
            return add_named(p, &names[i], false);
    CM_TRY(parse_perl_class(p, &found));
    if (found)
        return CM_OK;
    CM_TRY(parse_letter(p, &from));
    to = from;
    if (peek(p) == '-' && p->at + 1 < p->pattern.size && p->pattern.data[p->at + 1] != ']') {
        p->at++;
        CM_TRY(parse_letter(p, &to));
    }
    if (to < from)
        return bad(p, CM_BAD_MODEL, "a range that ends before it begins");
    return add_range(p, from, to);
}

static enum cm_status parse_class(struct parser *p)
{
    const int32_t first = p->out->n_ranges;
    const bool negated = take(p, "^");
    bool any = false;
    while (!any || peek(p) != ']') { /* a bracket that comes first is a letter */
        if (!more(p))
            return bad(p, CM_BAD_MODEL, "a character class without its closing bracket");
        CM_TRY(parse_class_item(p));
        any = true;
    }
    p->at++;
    return emit(p, (struct cm_regex_step){CLASS, negated, first, p->out->n_ranges});
}

/* ---- the rest of the grammar ---- */

static enum cm_status parse_choice(struct parser *p);

static enum cm_status parse_group(struct parser *p)
{
    if (take(p, "?P<") || take(p, "?<")) {
        while (more(p) && peek(p) != '>')
            p->at++;
        if (!take(p, ">"))
            return bad(p, CM_BAD_MODEL, "a group name without its end");
    } else if (peek(p) == '?' && !take(p, "?:")) {
        return bad(p, CM_UNSUPPORTED, "a kind of group that is not supported");
    }
    if (++p->depth > MOST_DEPTH)
        return bad(p, CM_LIMIT, "groups are nested too deep");
    CM_TRY(parse_choice(p));
    p->depth--;
    return take(p, ")") ? CM_OK : bad(p, CM_BAD_MODEL, "a group without its closing parenthesis");
}

static enum cm_status parse_atom(struct parser *p)
{
    const int32_t first = p->out->n_ranges;
    uint32_t letter;
    bool found;
    if (take(p, "("))
        return parse_group(p);
    if (take(p, "["))
        return parse_class(p);
    if (take(p, "^") || take(p, "\\A"))
        return emit(p, (struct cm_regex_step){.op = AT_START});
    if (take(p, "$") || take(p, "\\z"))
        return emit(p, (struct cm_regex_step){.op = AT_END});
    if (take(p, "\\b"))
        return emit(p, (struct cm_regex_step){.op = AT_WORD_EDGE});
    if (take(p, "\\B"))
        return emit(p, (struct cm_regex_step){.op = AT_WORD_EDGE, .negated = true});
    if (peek(p) == '*' || peek(p) == '+' || peek(p) == '?')
        return bad(p, CM_BAD_MODEL, "nothing to repeat");
    if (take(p, ".")) {
        CM_TRY(add_range(p, '\n', '\n'));
        return emit(p, (struct cm_regex_step){CLASS, true, first, p->out->n_ranges});
    }
    CM_TRY(parse_perl_class(p, &found));
    if (!found) {
        CM_TRY(parse_letter(p, &letter));
        CM_TRY(add_range(p, letter, letter));
    }
    return emit(p, (struct cm_regex_step){CLASS, false, first, p->out->n_ranges});
}

/* {n}, {n,}, {n,m}; most -1: without end. False when it is something else: a letter. */
static bool parse_counts(struct parser *p, int *least, int *most)
{
    const size_t start = p->at;
    int values[2] = {-1, -1}, n = 0;
    p->at++;
    for (; n < 2; n++) {
        while (peek(p) >= '0' && peek(p) <= '9' && values[n] <= MOST_REPEATS)
            values[n] = (values[n] < 0 ? 0 : values[n]) * 10 + (p->pattern.data[p->at++] - '0');
        if (n == 1 || !take(p, ","))
            break;
    }
    if (values[0] < 0 || !take(p, "}")) {
        p->at = start;
        return false;
    }
    *least = values[0];
    *most = n == 0 ? values[0] : values[1];
    return true;
}

/* Another copy of the piece of `size` steps at `from`: jumps are relative, classes are shared. */
static enum cm_status emit_copy(struct parser *p, int32_t from, int32_t size)
{
    CM_TRY(afford(p, size, size + 1));
    memcpy(&p->out->steps[p->out->n_steps], &p->out->steps[from],
           (size_t)size * sizeof *p->out->steps);
    p->out->n_steps += size;
    return CM_OK;
}

/* The piece from step `at` to the last one, again and again. It is read once, however often it is
 * repeated: repeats of repeats would multiply. */
static enum cm_status repeat(struct parser *p, int32_t at, int least, int most)
{
    const int32_t size = p->out->n_steps - at;
    const int copies = most < 0 ? (least > 0 ? least : 1) : most;
    int32_t first = at;
    if (copies == 0)
        p->out->n_steps = at;
    for (int i = 0; i < copies; i++) {
        const bool endless = most < 0 && i == copies - 1;
        const struct cm_regex_step skip = {SPLIT, false, 1, size + (endless ? 2 : 1)};
        if (i >= least && i == 0) {
            CM_TRY(emit_before(p, at, skip));
            first++;
        } else if (i >= least) {
            CM_TRY(emit(p, skip));
        }
        if (i > 0)
            CM_TRY(emit_copy(p, first, size));
        if (endless && i >= least)
            CM_TRY(emit(p, (struct cm_regex_step){JUMP, false, -size - 1, 0}));
        else if (endless)
            CM_TRY(emit(p, (struct cm_regex_step){SPLIT, false, -size, 1}));
    }
    return CM_OK;
}

static enum cm_status parse_repeated(struct parser *p)
{
    const int32_t at = p->out->n_steps;
    int least, most;
    CM_TRY(parse_atom(p));
    if (take(p, "*"))
        least = 0, most = -1;
    else if (take(p, "+"))
        least = 1, most = -1;
    else if (take(p, "?"))
        least = 0, most = 1;
    else if (peek(p) != '{' || !parse_counts(p, &least, &most))
        return CM_OK;
    if (least > MOST_REPEATS || most > MOST_REPEATS || (most >= 0 && most < least))
        return bad(p, CM_BAD_MODEL, "an invalid repeat count");
    CM_TRY(repeat(p, at, least, most));
    take(p, "?"); /* as few as possible: the same when all must match */
    if (peek(p) == '*' || peek(p) == '+' || peek(p) == '?')
        return bad(p, CM_BAD_MODEL, "a repeat of a repeat");
    return CM_OK;
}

static enum cm_status parse_choice(struct parser *p)
{
    const int32_t at = p->out->n_steps;
    while (more(p) && peek(p) != '|' && peek(p) != ')')
        CM_TRY(parse_repeated(p));
    if (!take(p, "|"))
        return CM_OK;
    const int32_t size = p->out->n_steps - at;
    CM_TRY(emit_before(p, at, (struct cm_regex_step){SPLIT, false, 1, size + 2}));
    const int32_t jump = p->out->n_steps;
    CM_TRY(emit(p, (struct cm_regex_step){.op = JUMP}));
    if (++p->depth > MOST_DEPTH)
        return bad(p, CM_LIMIT, "it has too many choices");
    CM_TRY(parse_choice(p));
    p->depth--;
    p->out->steps[jump].a = p->out->n_steps - jump;
    return CM_OK;
}

enum cm_status cm_regex_compile(struct cm_str pattern, struct cm_regex *out, struct cm_error *err)
{
    struct parser p = {.pattern = pattern, .out = out, .err = err};
    out->n_steps = out->n_ranges = 0;
    if (!cm_str_is_utf8(pattern))
        return bad(&p, CM_BAD_MODEL, "it is not UTF-8");
    CM_TRY(parse_choice(&p));
    if (more(&p))
        return bad(&p, CM_BAD_MODEL, "a closing parenthesis without an opening one");
    return emit(&p, (struct cm_regex_step){.op = FOUND});
}

/* ---- matching ---- */

/* The places the machine is in: each step once. */
struct places {
    int32_t count;
    int32_t *list;
    int32_t *seen; /* per step: the round in which it was added */
};

size_t cm_regex_scratch(const struct cm_regex *regex)
{
    return (size_t)regex->n_steps * 4 * sizeof(int32_t) + 64;
}

/* What holds between two letters. */
struct between {
    bool start, end, edge;
};

static bool is_word(struct cm_str text, size_t at)
{
    const char c = at < text.size ? text.data[at] : ' ';
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static struct between between_at(struct cm_str text, size_t at)
{
    const bool before = at > 0 && is_word(text, at - 1);
    return (struct between){at == 0, at == text.size, before != is_word(text, at)};
}

static bool holds(const struct cm_regex_step *s, struct between here)
{
    return (s->op == AT_START && here.start) || (s->op == AT_END && here.end) ||
           (s->op == AT_WORD_EDGE && here.edge != s->negated);
}

/* Adds a step and all that follow from it without reading a letter. */
static void enter(const struct cm_regex *r, struct places *to, int32_t round, int32_t first,
                  struct between here, int32_t *stack)
{
    int32_t n = 0;
    if (to->seen[first] == round)
        return;
    to->seen[first] = round;
    stack[n++] = first;
    while (n > 0) {
        const int32_t at = stack[--n];
        const struct cm_regex_step *s = &r->steps[at];
        int32_t next[2] = {-1, -1};
        if (s->op == JUMP || s->op == SPLIT)
            next[0] = at + s->a;
        if (s->op == SPLIT)
            next[1] = at + s->b;
        if (holds(s, here))
            next[0] = at + 1;
        if (s->op == CLASS || s->op == FOUND)
            to->list[to->count++] = at;
        for (int i = 0; i < 2; i++) {
            if (next[i] < 0 || to->seen[next[i]] == round)
                continue;
            to->seen[next[i]] = round;
            stack[n++] = next[i];
        }
    }
}

static bool in_class(const struct cm_regex *r, const struct cm_regex_step *s, uint32_t letter)
{
    for (int32_t i = s->a; i < s->b; i++)
        if (letter >= r->ranges[i].from && letter <= r->ranges[i].to)
            return !s->negated;
    return s->negated;
}

bool cm_regex_matches(const struct cm_regex *r, struct cm_str text, void *scratch)
{
    int32_t *memory = scratch;
    struct places now = {0, memory, memory + r->n_steps};
    struct places then = {0, memory + 2 * r->n_steps, now.seen};
    int32_t *stack = memory + 3 * r->n_steps;
    int32_t round = 1;
    memset(now.seen, 0, (size_t)r->n_steps * sizeof(int32_t));
    enter(r, &now, round, 0, between_at(text, 0), stack);
    for (size_t at = 0; at < text.size && now.count > 0;) {
        const uint32_t letter = next_letter(text, &at);
        if (round == INT32_MAX) { /* rounds are told apart by number */
            memset(now.seen, 0, (size_t)r->n_steps * sizeof(int32_t));
            round = 0;
        }
        const struct between here = between_at(text, at);
        round++;
        then.count = 0;
        for (int32_t i = 0; i < now.count; i++)
            if (r->steps[now.list[i]].op == CLASS && in_class(r, &r->steps[now.list[i]], letter))
                enter(r, &then, round, now.list[i] + 1, here, stack);
        const struct places swap = now;
        now = then;
        then = swap;
    }
    for (int32_t i = 0; i < now.count; i++)
        if (r->steps[now.list[i]].op == FOUND)
            return true;
    return false;
}

/* ---- finding ---- */

size_t cm_regex_find_scratch(const struct cm_regex *regex)
{
    return 2 * (size_t)regex->n_steps * sizeof(size_t) + cm_regex_scratch(regex);
}

/* Places, and where in the text the attempt began that led to each: in order, earliest first, since
 * they are entered in the order of the places they come from and a new attempt comes last. Of two
 * attempts that meet at one step the earlier one stays. */
struct attempts {
    struct places places;
    size_t *starts;
};

static void enter_attempt(const struct cm_regex *r, struct attempts *to, int32_t round,
                          int32_t first, size_t start, struct between here, int32_t *stack)
{
    const int32_t before = to->places.count;
    enter(r, &to->places, round, first, here, stack);
    for (int32_t i = before; i < to->places.count; i++)
        to->starts[i] = start;
}

/* Notes the best end that has been reached and drops what can only be worse: attempts that began
 * later. Returns whether something was found before. */
static bool note_found(const struct cm_regex *r, struct attempts *now, size_t at, bool found,
                       struct cm_regex_part *best)
{
    for (int32_t i = 0; i < now->places.count; i++) {
        if (r->steps[now->places.list[i]].op != FOUND)
            continue;
        if (!found || now->starts[i] <= best->start)
            *best = (struct cm_regex_part){now->starts[i], at};
        found = true;
        break; /* those behind began later, or at the same place and end here too */
    }
    while (found && now->places.count > 0 && now->starts[now->places.count - 1] > best->start)
        now->places.count--;
    return found;
}

enum cm_status cm_regex_find(const struct cm_regex *r, struct cm_str text, size_t from,
                             void *scratch, int64_t *work, struct cm_regex_part *out, bool *found,
                             struct cm_error *err)
{
    size_t *starts = scratch;
    int32_t *memory = (int32_t *)(void *)(starts + 2 * r->n_steps);
    struct attempts now = {{0, memory, memory + r->n_steps}, starts};
    struct attempts then = {{0, memory + 2 * r->n_steps, now.places.seen}, starts + r->n_steps};
    int32_t *stack = memory + 3 * r->n_steps;
    int32_t round = 1;
    *found = false;
    memset(now.places.seen, 0, (size_t)r->n_steps * sizeof(int32_t));
    for (size_t at = from;;) {
        const struct between here = between_at(text, at);
        if (!*found)
            enter_attempt(r, &now, round, 0, at, here, stack);
        *found = note_found(r, &now, at, *found, out);
        *work -= now.places.count + 1;
        if (*work < 0)
            return cm_fail(err, CM_LIMIT, "searching for its pattern takes too long");
        if (at >= text.size || (*found && now.places.count == 0))
            return CM_OK;
        const uint32_t letter = next_letter(text, &at);
        if (round == INT32_MAX) {
            memset(now.places.seen, 0, (size_t)r->n_steps * sizeof(int32_t));
            round = 0;
        }
        round++;
        then.places.count = 0;
        const struct between next = between_at(text, at);
        for (int32_t i = 0; i < now.places.count; i++) {
            const int32_t step = now.places.list[i];
            if (r->steps[step].op == CLASS && in_class(r, &r->steps[step], letter))
                enter_attempt(r, &then, round, step + 1, now.starts[i], next, stack);
        }
        const struct attempts swap = now;
        now = then;
        then = swap;
    }
}
