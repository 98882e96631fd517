/* Tokenizer: strings as rows of tokens, what a pattern matches or what separators leave between
 * them, filled up to the length of the longest row. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "base/number.h"
#include "graph/op.h"
#include "ops/common/move.h"
#include "ops/text/letter_case.h"
#include "ops/text/regex.h"

/* Places that all searches of one run may visit: enough for a few passes over any text, and for
 * short texts whatever the pattern. */
enum { WORK_PER_BYTE = 1024, LEAST_WORK = 1 << 28 };

static const struct cm_str row_start = {"\x02", 1}, row_end = {"\x03", 1};

/* By single letters: with the separator "" or the pattern "." */
static bool splits_letters(const struct cm_node *node)
{
    const struct cm_strs separators = cm_node_strs(node, "separators");
    if (cm_node_attr(node, "separators"))
        return separators.count == 1 && separators.items[0].size == 0;
    return cm_str_is(cm_node_str(node, "tokenexp"), ".");
}

/* Its separators, or its one pattern. */
static struct cm_strs patterns_of(const struct cm_node *node, struct cm_str *tokenexp)
{
    if (cm_node_attr(node, "separators"))
        return cm_node_strs(node, "separators");
    *tokenexp = cm_node_str(node, "tokenexp");
    return (struct cm_strs){tokenexp, 1};
}

static enum cm_status check_attributes(struct cm_infer *in)
{
    const int64_t least = cm_node_int(in->node, "mincharnum");
    struct cm_str tokenexp;
    if (least < 1)
        return cm_infer_fail(in, "attribute 'mincharnum' is %lld, must be at least 1",
                             (long long)least);
    if (!cm_node_attr(in->node, "separators") && !cm_node_str(in->node, "tokenexp").size)
        return cm_infer_fail(in, "needs attribute 'separators' or 'tokenexp'");
    if (splits_letters(in->node) && least > 1)
        return cm_infer_fail(in, "attribute 'mincharnum' is %lld, but tokens are single letters",
                             (long long)least);
    const struct cm_strs patterns = patterns_of(in->node, &tokenexp);
    if (patterns.count == 0)
        return cm_infer_fail(in, "attribute 'separators' is empty");
    if (splits_letters(in->node))
        return CM_OK;
    struct cm_regex *regex = CM_NEW(in->arena, struct cm_regex);
    for (size_t i = 0; i < patterns.count; i++)
        CM_TRY(cm_regex_compile(patterns.items[i], regex, in->err));
    return CM_OK;
}

static enum cm_status tokenizer_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_dim dims[3] = {CM_DIM_ANY, CM_DIM_ANY, CM_DIM_ANY};
    CM_TRY(check_attributes(in));
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, CM_STRING, CM_RANK_UNKNOWN, NULL);
    CM_TRY(cm_infer_rank(in, 0, 1, 2));
    cm_type_copy_dims(dims, x);
    return cm_infer_set_tensor(in, 0, CM_STRING, x->rank + 1, dims);
}

/* ---- rows of tokens ---- */

struct token {
    int64_t row;
    struct cm_str text;
};

struct tokens {
    size_t count, room;
    struct token *items; /* by row, then by place */
};

static enum cm_status add_token(struct cm_call *call, struct tokens *to, int64_t row,
                                struct cm_str text)
{
    if (to->count == to->room) {
        const size_t room = to->room ? 2 * to->room : 64;
        size_t bytes;
        struct token *items =
            cm_size_mul(room, sizeof *items, &bytes) ? cm_realloc(to->items, bytes) : NULL;
        if (!items)
            return cm_call_fail(call, CM_NO_MEMORY, "no memory for %zu tokens", room);
        to->items = items;
        to->room = room;
    }
    to->items[to->count++] = (struct token){row, text};
    return CM_OK;
}

/* Whether text has at least so many letters; it is UTF-8. */
static bool has_letters(struct cm_str text, int64_t least)
{
    for (size_t i = 0; i < text.size && least > 0; i++)
        least -= (text.data[i] & 0xc0) != 0x80;
    return least <= 0;
}

static struct cm_str between(struct cm_str text, size_t from, size_t to)
{
    return (struct cm_str){text.data + from, to - from};
}

/* Where the letter at `at` ends; past the end of the text, one further. */
static size_t after_letter(struct cm_str text, size_t at)
{
    uint32_t letter;
    if (at >= text.size)
        return at + 1;
    return at + cm_utf8_get(between(text, at, text.size), &letter);
}

struct search {
    struct cm_call *call;
    struct cm_regex *regex;
    void *memory;
    int64_t work, least;
};

static enum cm_status find(struct search *s, struct cm_str text, size_t from,
                           struct cm_regex_part *part, bool *found)
{
    *found = false;
    if (from > text.size)
        return CM_OK;
    return cm_regex_find(s->regex, text, from, s->memory, &s->work, part, found, s->call->err);
}

/* What the pattern matches. A match with too few letters is none; the search goes on one letter
 * behind its start. */
static enum cm_status take_matches(struct search *s, const struct token *from, struct tokens *to)
{
    const struct cm_str text = from->text;
    if (!has_letters(text, s->least))
        return CM_OK;
    for (size_t at = 0;;) {
        struct cm_regex_part part;
        bool found;
        CM_TRY(find(s, text, at, &part, &found));
        if (!found)
            return CM_OK;
        const struct cm_str match = between(text, part.start, part.end);
        const bool long_enough = has_letters(match, s->least);
        if (long_enough)
            CM_TRY(add_token(s->call, to, from->row, match));
        at = long_enough ? part.end : after_letter(text, part.start);
    }
}

/* What is between the matches of the pattern. A separator of no letters takes the letter behind it
 * with it. */
static enum cm_status take_rests(struct search *s, const struct token *from, struct tokens *to)
{
    const struct cm_str text = from->text;
    for (size_t at = 0;;) {
        struct cm_regex_part part;
        bool found;
        CM_TRY(find(s, text, at, &part, &found));
        const size_t end = found ? part.start : text.size;
        if (at <= end && has_letters(between(text, at, end), s->least))
            CM_TRY(add_token(s->call, to, from->row, between(text, at, end)));
        if (!found)
            return CM_OK;
        at = part.end > part.start ? part.end : after_letter(text, part.start);
    }
}

static enum cm_status take_letters(struct search *s, const struct token *from, struct tokens *to)
{
    for (size_t at = 0; at < from->text.size;) {
        const size_t end = after_letter(from->text, at);
        CM_TRY(add_token(s->call, to, from->row, between(from->text, at, end)));
        at = end;
    }
    return CM_OK;
}

typedef enum cm_status take_fn(struct search *s, const struct token *from, struct tokens *to);

/* Replaces each token by what it consists of. */
static enum cm_status divide(struct search *s, struct tokens *tokens, take_fn *take)
{
    struct tokens next = {0};
    enum cm_status status = CM_OK;
    for (size_t i = 0; i < tokens->count && !status; i++)
        status = take(s, &tokens->items[i], &next);
    cm_free(tokens->items);
    *tokens = next;
    return status;
}

static enum cm_status divide_by_patterns(struct search *s, struct tokens *tokens)
{
    const struct cm_node *node = s->call->node;
    struct cm_str tokenexp;
    const struct cm_strs patterns = patterns_of(node, &tokenexp);
    s->regex = s->call->scratch;
    for (size_t i = 0; i < patterns.count; i++) {
        CM_TRY(cm_regex_compile(patterns.items[i], s->regex, s->call->err));
        cm_free(s->memory);
        s->memory = cm_malloc(cm_regex_find_scratch(s->regex));
        if (!s->memory)
            return cm_call_fail(s->call, CM_NO_MEMORY, "no memory for its pattern");
        CM_TRY(divide(s, tokens, cm_node_attr(node, "separators") ? take_rests : take_matches));
    }
    return CM_OK;
}

static enum cm_status whole_strings(struct cm_call *call, struct tokens *out, int64_t *bytes)
{
    const struct cm_str *xs = call->in[0]->data;
    for (int64_t i = 0; i < cm_tensor_count(call->in[0]); i++) {
        if (!cm_str_is_utf8(xs[i]))
            return cm_call_fail(call, CM_BAD_ARGUMENT, "string %lld is not UTF-8", (long long)i);
        const struct cm_str text = xs[i].data ? xs[i] : CM_STR("");
        CM_TRY(add_token(call, out, i, text));
        *bytes += (int64_t)text.size;
    }
    return CM_OK;
}

/* ---- the result ---- */

static enum cm_status hold_pad(struct cm_call *call, struct cm_tensor *y, struct cm_str *pad)
{
    const struct cm_str given = cm_node_str(call->node, "pad_value");
    struct cm_buffer *buffer;
    CM_TRY(cm_buffer_new(given.size + 1, &buffer, call->err));
    const enum cm_status status = cm_buffer_hold(y->buffer, buffer, call->err);
    if (given.size)
        memcpy(cm_buffer_data(buffer), given.data, given.size);
    *pad = (struct cm_str){cm_buffer_data(buffer), given.size};
    cm_buffer_drop(buffer);
    return status;
}

static enum cm_status write_rows(struct cm_call *call, const struct tokens *tokens)
{
    const struct cm_tensor *x = call->in[0];
    const bool mark = cm_node_int(call->node, "mark") != 0;
    struct cm_shape shape = x->shape;
    struct cm_str pad;
    int64_t longest = 0;
    for (size_t i = 0, n = 0; i < tokens->count; i++) {
        n = i > 0 && tokens->items[i].row == tokens->items[i - 1].row ? n + 1 : 1;
        longest = (int64_t)n > longest ? (int64_t)n : longest;
    }
    if (longest > 0 && mark)
        longest += 2;
    if (!cm_shape_insert(&shape, shape.rank, longest))
        return cm_call_fail_rank(call);
    CM_TRY(cm_call_allocate(call, 0, CM_STRING, &shape));
    struct cm_tensor *y = &call->out_datum[0]->tensor;
    if (cm_tensor_count(y) == 0)
        return CM_OK;
    CM_TRY(cm_move_hold(y, x, call->err));
    CM_TRY(hold_pad(call, y, &pad));
    struct cm_str *ys = y->data;
    size_t next = 0;
    for (int64_t row = 0; row < cm_tensor_count(x); row++, ys += longest) {
        int64_t n = 0;
        if (mark)
            ys[n++] = row_start;
        while (next < tokens->count && tokens->items[next].row == row)
            ys[n++] = tokens->items[next++].text;
        if (mark)
            ys[n++] = row_end;
        while (n < longest)
            ys[n++] = pad;
    }
    return CM_OK;
}

static enum cm_status tokenizer_prepare(struct cm_call *call)
{
    const int rank = call->in[0]->shape.rank;
    if (rank != 1 && rank != 2)
        return cm_call_fail(call, CM_BAD_ARGUMENT, "input 0 has rank %d, needs 1 or 2", rank);
    cm_call_scratch(call, sizeof(struct cm_regex));
    return CM_OK;
}

static enum cm_status tokenizer_run(struct cm_call *call)
{
    struct search s = {.call = call, .least = cm_node_int(call->node, "mincharnum")};
    struct tokens tokens = {0};
    int64_t bytes = 0;
    enum cm_status status = whole_strings(call, &tokens, &bytes);
    s.work = LEAST_WORK + (bytes < INT64_MAX / WORK_PER_BYTE / 2 ? bytes * WORK_PER_BYTE : 0);
    if (!status)
        status = splits_letters(call->node) ? divide(&s, &tokens, take_letters)
                                            : divide_by_patterns(&s, &tokens);
    if (!status)
        status = write_rows(call, &tokens);
    cm_free(s.memory);
    cm_free(tokens.items);
    return status;
}

CM_OP_IN(microsoft, "com.microsoft", Tokenizer, .infer = tokenizer_infer,
         .prepare = tokenizer_prepare, .run = tokenizer_run, .grad = cm_grad_none,
         .effects = CM_OUTPUT_SIZE_AT_RUN);
