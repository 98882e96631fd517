/* StringConcat and StringSplit. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "ops/common/move.h"
#include "ops/text/letter_case.h"

/* ---- StringConcat ---- */

/* Where the two operands of a broadcast are, element by element of the result. */
struct pairs {
    struct cm_shape shape;
    int64_t a_strides[CM_MAX_RANK], b_strides[CM_MAX_RANK], index[CM_MAX_RANK];
    int64_t a, b;
};

static void begin_pairs(const struct cm_call *call, struct pairs *out)
{
    *out = (struct pairs){.shape = call->out[0]->shape};
    cm_broadcast_strides(&call->in[0]->shape, &out->shape, out->a_strides);
    cm_broadcast_strides(&call->in[1]->shape, &out->shape, out->b_strides);
}

static void next_pair(struct pairs *pairs)
{
    for (int i = pairs->shape.rank - 1; i >= 0; i--) {
        pairs->a += pairs->a_strides[i];
        pairs->b += pairs->b_strides[i];
        if (++pairs->index[i] < pairs->shape.dims[i])
            return;
        pairs->a -= pairs->a_strides[i] * pairs->shape.dims[i];
        pairs->b -= pairs->b_strides[i] * pairs->shape.dims[i];
        pairs->index[i] = 0;
    }
}

static char *append(char *text, struct cm_str part)
{
    if (part.size)
        memcpy(text, part.data, part.size);
    return text + part.size;
}

static enum cm_status concat_run(struct cm_call *call)
{
    const struct cm_str *as = call->in[0]->data, *bs = call->in[1]->data;
    struct cm_tensor *z = call->out[0];
    struct cm_str *zs = z->data;
    const int64_t n = cm_tensor_count(z);
    struct cm_buffer *buffer;
    struct pairs pairs;
    size_t bytes = 0;

    begin_pairs(call, &pairs);
    for (int64_t i = 0; i < n; i++, next_pair(&pairs))
        if (!cm_size_add(bytes, as[pairs.a].size, &bytes) ||
            !cm_size_add(bytes, bs[pairs.b].size, &bytes))
            return cm_call_fail(call, CM_LIMIT, "its strings are too long");
    CM_TRY(cm_buffer_new(bytes, &buffer, call->err));
    const enum cm_status status = cm_buffer_hold(z->buffer, buffer, call->err);
    char *text = cm_buffer_data(buffer);
    begin_pairs(call, &pairs);
    for (int64_t i = 0; i < n && !status; i++, next_pair(&pairs)) {
        char *const start = text;
        text = append(append(text, as[pairs.a]), bs[pairs.b]);
        zs[i] = (struct cm_str){start, (size_t)(text - start)};
    }
    cm_buffer_drop(buffer);
    return status;
}

CM_OP(StringConcat, .infer = cm_infer_broadcast, .run = concat_run, .grad = cm_grad_none);

/* ---- StringSplit ---- */

static enum cm_status split_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    struct cm_dim dims[CM_MAX_RANK + 1];
    CM_TRY(cm_infer_set_tensor(in, 1, CM_INT64, x->rank, x->dims));
    if (x->rank == CM_RANK_UNKNOWN)
        return cm_infer_set_tensor(in, 0, CM_STRING, CM_RANK_UNKNOWN, NULL);
    if (x->rank)
        cm_type_copy_dims(dims, x);
    dims[x->rank] = CM_DIM_ANY;
    return cm_infer_set_tensor(in, 0, CM_STRING, x->rank + 1, dims);
}

static bool is_space(uint32_t letter)
{
    return (letter >= 0x09 && letter <= 0x0d) || (letter >= 0x1c && letter <= 0x20) ||
           letter == 0x85 || letter == 0xa0 || letter == 0x1680 ||
           (letter >= 0x2000 && letter <= 0x200a) || letter == 0x2028 || letter == 0x2029 ||
           letter == 0x202f || letter == 0x205f || letter == 0x3000;
}

static struct cm_str skip(struct cm_str text, size_t size)
{
    return (struct cm_str){text.data + size, text.size - size};
}

/* Bytes of text before the first letter that is white space, or is not. A byte that is no UTF-8 is
 * no white space. */
static size_t span(struct cm_str text, bool space)
{
    size_t size = 0;
    while (size < text.size) {
        uint32_t letter;
        const size_t step = cm_utf8_get(skip(text, size), &letter);
        if ((is_space(letter) && (step > 1 || letter < 0x80)) != space)
            break;
        size += step;
    }
    return size;
}

struct splitter {
    struct cm_str delimiter; /* empty: white space */
    int64_t limit;           /* of splits */
};

/* The parts of text, between white space; into parts unless that is NULL. Returns how many. */
static int64_t split_at_spaces(const struct splitter *splitter, struct cm_str text,
                               struct cm_str *parts)
{
    int64_t n = 0;
    for (text = skip(text, span(text, true)); text.size > 0; n++) {
        const size_t size = n < splitter->limit ? span(text, false) : text.size;
        if (parts)
            parts[n] = (struct cm_str){text.data, size};
        text = skip(text, size);
        text = skip(text, span(text, true));
    }
    return n;
}

static size_t find(struct cm_str text, struct cm_str what)
{
    for (size_t at = 0; what.size <= text.size && at <= text.size - what.size; at++) {
        const char *next = memchr(text.data + at, what.data[0], text.size - what.size - at + 1);
        if (!next)
            break;
        at = (size_t)(next - text.data);
        if (memcmp(next, what.data, what.size) == 0)
            return at;
    }
    return text.size;
}

static int64_t split_at_delimiter(const struct splitter *splitter, struct cm_str text,
                                  struct cm_str *parts)
{
    for (int64_t n = 0;; n++) {
        const size_t size = n < splitter->limit ? find(text, splitter->delimiter) : text.size;
        if (parts)
            parts[n] = (struct cm_str){text.data, size};
        if (size == text.size)
            return n + 1;
        text = skip(text, size + splitter->delimiter.size);
    }
}

static int64_t split(const struct splitter *splitter, struct cm_str text, struct cm_str *parts)
{
    if (!text.data)
        text = CM_STR("");
    return splitter->delimiter.size ? split_at_delimiter(splitter, text, parts)
                                    : split_at_spaces(splitter, text, parts);
}

static enum cm_status split_prepare(struct cm_call *call)
{
    struct splitter *splitter = cm_call_state(call, sizeof *splitter);
    const int64_t limit =
        cm_node_has_attr(call->node, "maxsplit") ? cm_node_int(call->node, "maxsplit") : -1;
    splitter->delimiter = cm_node_str(call->node, "delimiter");
    splitter->limit = limit < 0 ? INT64_MAX : limit;
    return CM_OK;
}

static enum cm_status split_run(struct cm_call *call)
{
    const struct splitter *splitter = call->state;
    const struct cm_tensor *x = call->in[0];
    const struct cm_str *xs = x->data;
    const int64_t n = cm_tensor_count(x);
    struct cm_shape shape = x->shape;
    int64_t most = 0;

    for (int64_t i = 0; i < n; i++) {
        const int64_t count = split(splitter, xs[i], NULL);
        most = count > most ? count : most;
    }
    if (!cm_shape_insert(&shape, shape.rank, most))
        return cm_call_fail_rank(call);
    CM_TRY(cm_call_allocate(call, 0, CM_STRING, &shape));
    if (call->n_out > 1)
        CM_TRY(cm_call_allocate(call, 1, CM_INT64, &x->shape));
    struct cm_datum *parts = call->out_datum[0];
    struct cm_datum *counts = call->n_out > 1 ? call->out_datum[1] : NULL;
    for (int64_t i = 0; i < n; i++) {
        /* What is not written stays the empty string that a new tensor has. */
        struct cm_str *to = parts ? (struct cm_str *)parts->tensor.data + i * most : NULL;
        const int64_t count = split(splitter, xs[i], to);
        if (counts)
            ((int64_t *)counts->tensor.data)[i] = count;
    }
    return parts ? cm_move_hold(&parts->tensor, x, call->err) : CM_OK;
}

CM_OP(StringSplit, .infer = split_infer, .prepare = split_prepare, .run = split_run,
      .grad = cm_grad_none, .effects = CM_OUTPUT_SIZE_AT_RUN);
