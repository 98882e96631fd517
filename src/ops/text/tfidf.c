/* TfIdfVectorizer: how often runs of tokens from a list occur, tokens of a run being up to some
 * distance apart. The list is a tree of tokens, kept as one hash table of (parent, token). */
// SPDX-License-Identifier: Apache-2.0
#include "base/map.h"
#include "base/number.h"
#include "graph/op.h"

enum mode { COUNTS, PRESENCE, BOTH };

/* A token after another: number `slot + 1` in the tree, 0 being the root. */
struct branch {
    bool used;
    uint32_t parent;
    int64_t token; /* in the pool */
    int64_t gram;  /* which entry of the list ends here, counted from 1; 0: none */
};

struct tfidf {
    enum mode mode;
    int64_t least, most, skips, size;
    struct cm_int64s numbers, places; /* places: ngram_indexes */
    struct cm_strs strings;
    struct cm_floats weights;
    size_t slots; /* a power of two */
    struct branch branches[];
};

static enum cm_status read_mode(const struct cm_node *node, enum mode *out, struct cm_error *err)
{
    static const char *const names[] = {"TF", "IDF", "TFIDF"};
    const struct cm_str mode = cm_node_str(node, "mode");
    for (int i = 0; i < 3; i++) {
        if (cm_str_is(mode, names[i])) {
            *out = (enum mode)i;
            return CM_OK;
        }
    }
    return cm_fail(err, CM_BAD_MODEL, "mode '%.*s' is not known", CM_STR_FMT(mode));
}

/* Columns of the result: one more than the largest place. */
static enum cm_status read_size(const struct cm_node *node, int64_t *out, struct cm_error *err)
{
    const struct cm_int64s places = cm_node_ints(node, "ngram_indexes");
    const size_t weights = cm_node_floats(node, "weights").count;
    *out = 0;
    for (size_t i = 0; i < places.count; i++) {
        if (places.items[i] < 0 || places.items[i] > INT32_MAX)
            return cm_fail(err, CM_BAD_MODEL,
                           "attribute 'ngram_indexes' contains %lld, which is out of range",
                           (long long)places.items[i]);
        *out = places.items[i] >= *out ? places.items[i] + 1 : *out;
    }
    if (weights && weights != places.count)
        return cm_fail(err, CM_BAD_MODEL, "there are %zu weights and %zu ngram_indexes", weights,
                       places.count);
    return CM_OK;
}

static enum cm_status tfidf_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const int64_t least = cm_node_int(in->node, "min_gram_length");
    const int64_t most = cm_node_int(in->node, "max_gram_length");
    const bool text = x->dtype == CM_STRING;
    enum mode mode;
    int64_t size;
    CM_TRY(read_mode(in->node, &mode, in->err));
    CM_TRY(read_size(in->node, &size, in->err));
    if (least < 1 || most < least || most > INT32_MAX ||
        cm_node_int(in->node, "max_skip_count") < 0)
        return cm_infer_fail(
            in,
            "attribute 'min_gram_length', 'max_gram_length' or 'max_skip_count' is out of range");
    if (cm_node_has_attr(in->node, text ? "pool_int64s" : "pool_strings") &&
        !cm_node_has_attr(in->node, text ? "pool_strings" : "pool_int64s"))
        return cm_infer_fail(in, "input 0 and the pool are not of the same type");
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, CM_FLOAT, CM_RANK_UNKNOWN, NULL);
    CM_TRY(cm_infer_rank(in, 0, 0, 2));
    const struct cm_dim dims[2] = {x->rank == 2 ? x->dims[0] : CM_DIM(size), CM_DIM(size)};
    return cm_infer_set_tensor(in, 0, CM_FLOAT, x->rank == 2 ? 2 : 1, dims);
}

/* A token as bytes, whatever it is. */
static struct cm_str pool_token(const struct tfidf *t, int64_t i)
{
    if (t->strings.count)
        return t->strings.items[i];
    return (struct cm_str){(const char *)&t->numbers.items[i], sizeof(int64_t)};
}

/* The slot of a token after a parent, or the free one where it would be. */
static size_t find(const struct tfidf *t, uint32_t parent, struct cm_str token)
{
    size_t slot =
        (size_t)(cm_hash(token) + (uint64_t)parent * UINT64_C(0x9e3779b97f4a7c15)) & (t->slots - 1);
    while (t->branches[slot].used && (t->branches[slot].parent != parent ||
                                      !cm_str_equal(pool_token(t, t->branches[slot].token), token)))
        slot = (slot + 1) & (t->slots - 1);
    return slot;
}

static void plant(struct tfidf *t, int64_t first, int64_t length, int64_t gram)
{
    uint32_t parent = 0;
    size_t slot = 0;
    for (int64_t i = first; i < first + length; i++) {
        slot = find(t, parent, pool_token(t, i));
        if (!t->branches[slot].used)
            t->branches[slot] = (struct branch){true, parent, i, 0};
        parent = (uint32_t)slot + 1;
    }
    t->branches[slot].gram = gram;
}

/* ngram_counts says where in the pool the grams of each length begin. */
static enum cm_status plant_all(struct cm_call *call, struct tfidf *t, int64_t total)
{
    const struct cm_int64s starts = cm_node_ints(call->node, "ngram_counts");
    int64_t gram = 1;
    for (size_t i = 0; i < starts.count; i++) {
        const int64_t from = starts.items[i], length = (int64_t)i + 1;
        const int64_t to = i + 1 < starts.count ? starts.items[i + 1] : total;
        if (from < 0 || to < from || to > total)
            return cm_call_fail(call, CM_BAD_MODEL, "ngram_counts does not fit a pool of %lld",
                                (long long)total);
        for (int64_t at = from; at + length <= to; at += length, gram++) {
            if ((size_t)gram > t->places.count)
                return cm_call_fail(call, CM_BAD_MODEL, "there are fewer ngram_indexes than grams");
            if (length >= t->least && length <= t->most)
                plant(t, at, length, gram);
        }
    }
    return CM_OK;
}

static enum cm_status tfidf_prepare(struct cm_call *call)
{
    const struct cm_node *node = call->node;
    const struct cm_int64s numbers = cm_node_ints(node, "pool_int64s");
    const struct cm_strs strings = cm_node_strs(node, "pool_strings");
    const bool text = call->in[0]->type == CM_STRING;
    const size_t total = text ? strings.count : numbers.count;
    size_t slots = 2;
    if (total > UINT32_MAX / 4)
        return cm_call_fail(call, CM_LIMIT, "its pool is too large");
    while (slots < 2 * total)
        slots *= 2;
    struct tfidf *t = cm_call_state(call, sizeof *t + slots * sizeof t->branches[0]);
    CM_TRY(read_mode(node, &t->mode, call->err));
    CM_TRY(read_size(node, &t->size, call->err));
    t->slots = slots;
    t->least = cm_node_int(node, "min_gram_length");
    t->most = cm_node_int(node, "max_gram_length");
    t->skips = cm_node_int(node, "max_skip_count");
    t->places = cm_node_ints(node, "ngram_indexes");
    t->weights = cm_node_floats(node, "weights");
    if (text)
        t->strings = strings;
    else
        t->numbers = numbers;
    return plant_all(call, t, (int64_t)total);
}

static struct cm_str token_at(const struct cm_tensor *x, int64_t i, int64_t *number)
{
    if (x->type == CM_STRING)
        return ((const struct cm_str *)x->data)[i];
    *number = cm_tensor_int(x, i);
    return (struct cm_str){(const char *)number, sizeof *number};
}

/* Grams that begin at `start` of a row whose elements end at `end`, tokens `distance` apart. */
static void count_from(const struct tfidf *t, const struct cm_tensor *x, int64_t start, int64_t end,
                       int64_t distance, int64_t least, float *y)
{
    uint32_t parent = 0;
    int64_t length = 1;
    for (int64_t at = start; length <= t->most; length++) {
        int64_t number;
        const struct branch *b = &t->branches[find(t, parent, token_at(x, at, &number))];
        if (!b->used)
            return;
        if (length >= least && b->gram)
            y[t->places.items[b->gram - 1]] += 1;
        parent = (uint32_t)(b - t->branches) + 1;
        if (distance >= end - at)
            return;
        at += distance;
    }
}

static void count_row(const struct tfidf *t, const struct cm_tensor *x, int64_t first,
                      int64_t width, float *y)
{
    int64_t least = t->least;
    for (int64_t distance = 1; distance - 1 <= t->skips; distance++) {
        if (least > 1 && distance > (width - 1) / (least - 1))
            return; /* no gram is short enough any more */
        for (int64_t i = 0; i < width - distance * (least - 1); i++)
            count_from(t, x, first + i, first + width, distance, least, y);
        if (least == 1 && ++least > t->most) /* single tokens have no distance: once is enough */
            return;
    }
}

static enum cm_status tfidf_run(struct cm_call *call)
{
    const struct tfidf *t = call->state;
    const struct cm_tensor *x = call->in[0];
    const bool batched = x->shape.rank == 2;
    const int64_t rows = batched ? x->shape.dims[0] : 1;
    const int64_t width = x->shape.rank ? x->shape.dims[x->shape.rank - 1] : 1;
    float *y = call->out[0]->data;
    for (int64_t row = 0; row < rows; row++, y += t->size) {
        for (int64_t i = 0; i < t->size; i++)
            y[i] = 0;
        count_row(t, x, row * width, width, y);
        for (int64_t i = 0; i < t->size && t->mode == PRESENCE; i++)
            y[i] = y[i] > 0;
        if (t->mode == COUNTS || t->weights.count == 0)
            continue;
        for (int64_t i = 0; i < t->size && (size_t)i < t->weights.count; i++)
            y[i] *= t->weights.items[i];
    }
    return CM_OK;
}

CM_OP(TfIdfVectorizer, .infer = tfidf_infer, .prepare = tfidf_prepare, .run = tfidf_run,
      .grad = cm_grad_none);
