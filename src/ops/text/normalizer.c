/* StringNormalizer: strings without the stop words among them, in one case. */
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "base/number.h"
#include "graph/op.h"
#include "ops/text/letter_case.h"

static enum cm_status normalizer_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const struct cm_dim dims[] = {CM_DIM(1), CM_DIM_ANY};
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, CM_STRING, CM_RANK_UNKNOWN, NULL);
    CM_TRY(cm_infer_rank(in, 0, 1, 2));
    if (x->rank == 2 && cm_dim_known(x->dims[0]) && x->dims[0].value != 1)
        return cm_infer_fail(in, "the first axis of input 0 has length %lld, needs 1",
                             (long long)x->dims[0].value);
    return cm_infer_set_tensor(in, 0, CM_STRING, x->rank, &dims[2 - x->rank]);
}

struct normalizer {
    enum cm_letter_case change, compare; /* of the results; of words that are looked up */
    size_t n_words;
    struct cm_str *words; /* sorted */
};

static int compare_words(const void *a, const void *b)
{
    return cm_str_compare(*(const struct cm_str *)a, *(const struct cm_str *)b);
}

static enum cm_status read_words(struct cm_call *call, struct normalizer *head)
{
    const struct cm_strs words = cm_node_strs(call->node, "stopwords");
    size_t bytes = sizeof *head + words.count * sizeof(struct cm_str);
    for (size_t i = 0; i < words.count; i++)
        bytes += cm_letter_case(words.items[i], head->compare, NULL);
    struct normalizer *state = cm_call_state(call, bytes);
    *state = *head;
    state->n_words = words.count;
    state->words = (struct cm_str *)(void *)(state + 1);
    char *text = (char *)(state->words + words.count);
    for (size_t i = 0; i < words.count; i++) {
        const size_t size = cm_letter_case(words.items[i], head->compare, text);
        state->words[i] = (struct cm_str){text, size};
        text += size;
    }
    if (words.count)
        qsort(state->words, words.count, sizeof *state->words, compare_words);
    return CM_OK;
}

static enum cm_status normalizer_prepare(struct cm_call *call)
{
    const struct cm_str action = cm_node_str(call->node, "case_change_action");
    struct normalizer head = {0};
    if (cm_str_is(action, "LOWER"))
        head.change = CM_CASE_LOWER;
    else if (cm_str_is(action, "UPPER"))
        head.change = CM_CASE_UPPER;
    else if (!cm_str_is(action, "NONE"))
        return cm_call_fail(
            call, CM_BAD_MODEL,
            "attribute 'case_change_action' is '%.*s', expected 'LOWER', 'UPPER' or 'NONE'",
            CM_STR_FMT(action));
    head.compare = cm_node_int(call->node, "is_case_sensitive") ? CM_CASE_KEEP : CM_CASE_LOWER;
    return read_words(call, &head);
}

/* What one run needs beside its result. */
struct work {
    char *word;    /* the longest string with its case changed */
    uint8_t *keep; /* per element of x */
    int64_t kept;
    size_t bytes; /* of all results */
};

static enum cm_status choose(struct cm_call *call, const struct normalizer *state,
                             struct work *work)
{
    const struct cm_str *xs = call->in[0]->data;
    const int64_t n = cm_tensor_count(call->in[0]);
    size_t longest = 1;
    for (int64_t i = 0; i < n; i++) {
        const size_t size = cm_letter_case(xs[i], state->compare, NULL);
        longest = size > longest ? size : longest;
    }
    work->word = cm_malloc(longest);
    work->keep = cm_malloc((size_t)n + 1);
    if (!work->word || !work->keep)
        return cm_call_fail(call, CM_NO_MEMORY, "no memory for %lld marks", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        const struct cm_str word = {work->word, cm_letter_case(xs[i], state->compare, work->word)};
        work->keep[i] = !state->n_words ||
                        !bsearch(&word, state->words, state->n_words, sizeof word, compare_words);
        if (!work->keep[i])
            continue;
        work->kept++;
        if (!cm_size_add(work->bytes, cm_letter_case(xs[i], state->change, NULL), &work->bytes))
            return cm_call_fail(call, CM_LIMIT, "its strings are too long");
    }
    return CM_OK;
}

static enum cm_status write(struct cm_call *call, const struct normalizer *state,
                            const struct work *work)
{
    const struct cm_tensor *x = call->in[0];
    const struct cm_str *xs = x->data;
    struct cm_shape shape = x->shape;
    struct cm_buffer *buffer;
    shape.dims[shape.rank - 1] = work->kept ? work->kept : 1; /* the empty string if none is left */
    CM_TRY(cm_call_allocate(call, 0, CM_STRING, &shape));
    struct cm_tensor *y = &call->out_datum[0]->tensor;
    struct cm_str *ys = y->data;
    CM_TRY(cm_buffer_new(work->bytes, &buffer, call->err));
    const enum cm_status status = cm_buffer_hold(y->buffer, buffer, call->err);
    char *text = cm_buffer_data(buffer);
    const int64_t n = status ? 0 : cm_tensor_count(x);
    for (int64_t i = 0; i < n; i++) {
        if (!work->keep[i])
            continue;
        const size_t size = cm_letter_case(xs[i], state->change, text);
        *ys++ = (struct cm_str){text, size};
        text += size;
    }
    cm_buffer_drop(buffer);
    return status;
}

static enum cm_status normalizer_run(struct cm_call *call)
{
    const struct normalizer *state = call->state;
    const struct cm_shape *x = &call->in[0]->shape;
    struct work work = {0};
    if (x->rank != 1 && !(x->rank == 2 && x->dims[0] == 1))
        return cm_call_fail(call, CM_BAD_ARGUMENT,
                            "input 0 must be a vector or a matrix of one row");
    enum cm_status status = choose(call, state, &work);
    if (!status)
        status = write(call, state, &work);
    cm_free(work.word);
    cm_free(work.keep);
    return status;
}

CM_OP(StringNormalizer, .infer = normalizer_infer, .prepare = normalizer_prepare,
      .run = normalizer_run, .grad = cm_grad_none, .effects = CM_OUTPUT_SIZE_AT_RUN);
