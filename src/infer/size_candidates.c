/* Which sizes to try where a node was refused. */
// SPDX-License-Identifier: Apache-2.0
#include "infer/open_sizes.h"

#include "base/number.h"
#include "graph/dims/dim_math.h"

enum { MENTIONED_MAX = 24, TRIED_MAX = 1 << 20 };

/* Sizes that people give to things. */
static const int64_t usual[] = {1,   2,   3,    4,    5,    6,    7,    8,    10,   12,    16,
                                20,  24,  28,   30,   32,   40,   48,   50,   56,   64,    80,
                                96,  100, 112,  128,  160,  192,  200,  224,  256,  288,   299,
                                300, 320, 384,  400,  416,  448,  480,  512,  576,  640,   768,
                                784, 800, 1000, 1024, 1280, 1536, 2048, 4096, 8000, 16000, 32000};

static void add_candidate(struct cm_size_candidates *c, int64_t size)
{
    if (size < 1 || size > TRIED_MAX || c->count == CM_SIZE_CANDIDATES_MAX)
        return;
    for (size_t i = 0; i < c->count; i++)
        if (c->items[i] == size)
            return;
    c->items[c->count++] = size;
}

static void mention(struct cm_size_candidates *c, int64_t size)
{
    if (c->count < MENTIONED_MAX)
        add_candidate(c, size);
}

static void mention_type(struct cm_size_candidates *c, const struct cm_type *type)
{
    struct cm_dim product = CM_DIM(1);

    for (int i = 0; i < type->rank; i++) {
        if (cm_dim_known(type->dims[i]))
            mention(c, type->dims[i].value);
        product = cm_dim_product(NULL, product, type->dims[i]);
    }
    if (type->rank > 1 && cm_dim_known(product))
        mention(c, product.value);
}

/* Numbers that a short list holds, and their product: the target of a Reshape. */
static void mention_contents(struct cm_size_candidates *c, struct cm_module *module, cm_value value)
{
    const struct cm_known *known = cm_value_get(module, value)->fact.known;
    const struct cm_tensor *constant = NULL;
    struct cm_error ignored = {0};
    int64_t product = 1;

    if (!known && (cm_value_constant(module, value, &constant, &ignored) || !constant ||
                   constant->shape.rank > 1 || cm_tensor_count(constant) > CM_MAX_RANK ||
                   (constant->type != CM_INT64 && constant->type != CM_INT32)))
        return;
    const size_t count = known ? known->count : (size_t)cm_tensor_count(constant);
    for (size_t i = 0; i < count && i < CM_MAX_RANK; i++) {
        const int64_t number = !known                      ? cm_tensor_int(constant, (int64_t)i)
                               : known->items[i].is_number ? known->items[i].number
                                                           : 0;
        if (number < 1)
            continue;
        mention(c, number);
        if (!cm_int64_mul(product, number, &product))
            return;
    }
    mention(c, product);
}

/* Sizes that the operands of the refused node have. */
static void mention_operands(const struct cm_node *refused, struct cm_size_candidates *c)
{
    struct cm_module *module = refused->module;

    for (int i = 0; i < refused->n_inputs; i++) {
        const cm_value value = refused->inputs[i].value;

        if (!value || cm_value_get(module, value)->fact.type->kind != CM_KIND_TENSOR)
            continue;
        mention_type(c, cm_value_get(module, value)->fact.type);
        mention_contents(c, module, value);
    }
}

void cm_size_candidates(const struct cm_node *refused, int64_t size, struct cm_size_candidates *out)
{
    struct cm_size_candidates seen = {.count = 0};

    out->count = 0;
    mention_operands(refused, &seen);
    for (size_t i = 0; i < seen.count; i++)
        if (seen.items[i] != 1) /* fits, by broadcasting, where nothing was meant */
            add_candidate(out, seen.items[i]);
    for (size_t a = 0; a < seen.count; a++) {
        for (size_t b = 0; b < seen.count && out->count < CM_SIZE_CANDIDATES_MAX / 2; b++) {
            int64_t scaled;

            if (a == b)
                continue;
            if (cm_int64_mul(size, seen.items[b], &scaled) && scaled % seen.items[a] == 0)
                add_candidate(out, scaled / seen.items[a]);
            add_candidate(out, size + seen.items[b] - seen.items[a]);
        }
    }
    for (size_t i = 0; i < CM_COUNT(usual); i++)
        add_candidate(out, usual[i]);
}
