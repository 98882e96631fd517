/* MurmurHash3: 32 bits of hash for each element, by its bytes. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/op.h"

#include <string.h>

static enum cm_status hash_infer(struct cm_infer *in)
{
    const struct cm_type *x = cm_infer_type(in, 0);
    const enum cm_dtype type = cm_node_int(in->node, "positive") ? CM_UINT32 : CM_INT32;
    return cm_infer_set_tensor(in, 0, type, x->rank, x->dims);
}

static uint32_t rotate(uint32_t v, int by)
{
    return v << by | v >> (32 - by);
}

/* What four bytes, or the last few, bring into the hash. */
static uint32_t scrambled(uint32_t word)
{
    return rotate(word * 0xcc9e2d51u, 15) * 0x1b873593u;
}

/* The variant for 32-bit machines of Austin Appleby's function. */
static uint32_t murmur(const unsigned char *bytes, size_t size, uint32_t seed)
{
    uint32_t hash = seed;
    size_t at = 0;
    for (; size - at >= 4; at += 4) {
        uint32_t word;
        memcpy(&word, bytes + at, sizeof word); /* the host is little-endian */
        hash = rotate(hash ^ scrambled(word), 13) * 5 + 0xe6546b64u;
    }
    uint32_t rest = 0;
    for (size_t i = size; i > at; i--)
        rest = rest << 8 | bytes[i - 1];
    hash ^= scrambled(rest);
    hash ^= (uint32_t)size;
    hash = (hash ^ hash >> 16) * 0x85ebca6bu;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
    return hash ^ hash >> 16;
}

/* The result is written bit for bit, whether its type is signed or not. */
static enum cm_status hash_run(struct cm_call *call)
{
    const struct cm_tensor *x = call->in[0];
    const uint32_t seed = (uint32_t)cm_node_int(call->node, "seed");
    const size_t width = (size_t)cm_dtype_info(x->type)->bits / 8;
    uint32_t *y = call->out[0]->data;
    for (int64_t i = 0; i < cm_tensor_count(x); i++) {
        if (x->type == CM_STRING) {
            const struct cm_str text = ((const struct cm_str *)x->data)[i];
            y[i] = murmur((const unsigned char *)text.data, text.size, seed);
        } else {
            y[i] = murmur((const unsigned char *)x->data + (size_t)i * width, width, seed);
        }
    }
    return CM_OK;
}

CM_OP_IN(microsoft, "com.microsoft", MurmurHash3, .infer = hash_infer, .run = hash_run,
         .grad = cm_grad_none, .cost.work = cm_work_linear);
