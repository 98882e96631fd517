/* Random numbers for templates. A node draws those of its stream: the first of seed 0 in every run,
 * or, in a training step, those that follow what the steps before have drawn. */
// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"
#include "graph/op.h"
#include "mlir/lowering_state.h"
#include "mlir/template_run.h"

static bool has_seed(const struct cm_node *node)
{
    return cm_node_has_attr(node, "seed");
}

/* draws(normal, count): the numbers that a node with a seed draws first, as a constant. */
static struct cm_term draws_term(const struct cm_mlir_use *use, struct cm_template_run *run,
                                 bool normal, int64_t count)
{
    enum { MOST = 1 << 22 };
    struct cm_mlir_lowering *l = use->lowering;
    struct cm_random *random = CM_NEW(l->arena, struct cm_random);

    if (count < 0 || count > MOST) {
        cm_template_refuse(run, "%lld random numbers with a seed are more than are compiled",
                           (long long)count);
        return CM_TERM_ABSENT;
    }
    double *numbers = CM_NEW_ARRAY(l->arena, double, (size_t)count + 1);
    cm_node_seed_random(use->node, 0, use->node->stream, random);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = normal ? cm_random_normal(random) : cm_random_uniform(random);
    struct cm_tensor *tensor = CM_NEW(l->arena, struct cm_tensor);
    *tensor = cm_tensor_borrow(CM_DOUBLE, &CM_SHAPE(count), numbers);
    return cm_term_text(cm_mlir_constant(l, cm_mlir_place(l, use->node), tensor));
}

/* ---- a state ----
 *
 * Word 0 is the seed. A node without a seed of its own has one word, how far it is; one with a seed
 * has the words of its generator, how many of them are used up, and the normal number that is left
 * over with a word that says whether there is one. lib/twister.mlir knows the order. */

static size_t add_words(struct cm_mlir_lowering *l, const struct cm_node *node)
{
    struct cm_random *random = CM_NEW(l->arena, struct cm_random);

    if (!l->random.count)
        *CM_PUSH(l->arena, &l->random) = 0;
    const size_t first = l->random.count;
    if (!has_seed(node)) {
        *CM_PUSH(l->arena, &l->random) = 0;
        return first;
    }
    cm_node_seed_random(node, 0, node->stream, random);
    for (int i = 0; i < CM_MT_WORDS; i++)
        *CM_PUSH(l->arena, &l->random) = random->mt[i];
    *CM_PUSH(l->arena, &l->random) = random->mt_next;
    *CM_PUSH(l->arena, &l->random) = 0;
    *CM_PUSH(l->arena, &l->random) = 0;
    return first;
}

/* A node in a body that is put in twice is one node all the same. */
static size_t word_of(const struct cm_mlir_use *use)
{
    struct cm_mlir_lowering *l = use->lowering;
    const uint32_t stream = use->node->stream;

    for (size_t i = 0; i < l->streams.count; i++)
        if (l->streams.items[i].stream == stream)
            return l->streams.items[i].word;
    const size_t word = add_words(l, use->node);
    *CM_PUSH(l->arena, &l->streams) = (struct cm_mlir_stream){stream, word};
    return word;
}

/* The entry of the training that the node is of, and its number there: nodes of one entry come
 * after those of the entry before. */
static size_t entry_of(const struct cm_mlir_use *use, uint32_t *stream)
{
    const struct cm_mlir_lower_options *options = use->lowering->options;
    size_t entry = 0;

    *stream = use->node->stream;
    while (entry + 1 < options->n_entries && *stream > options->entries[entry].streams)
        *stream -= (uint32_t)options->entries[entry++].streams;
    return entry;
}

bool cm_mlir_random_call(const struct cm_mlir_use *use, struct cm_template_run *run,
                         struct cm_str function, const struct cm_term *args, size_t count,
                         struct cm_term *out)
{
    const struct cm_mlir_lower_options *options = use->lowering->options;
    uint32_t stream;
    const size_t entry = entry_of(use, &stream);

    if (cm_str_is(function, "draws") && count == 2 && args[1].kind == CM_TERM_INT)
        *out = draws_term(use, run, cm_term_is_true(&args[0]), args[1].i);
    else if (count)
        return false;
    else if (cm_str_is(function, "seeded"))
        *out = cm_term_int(has_seed(use->node));
    else if (cm_str_is(function, "stream"))
        *out = cm_term_int(stream);
    else if (cm_str_is(function, "keeps_random"))
        *out = cm_term_int(options->n_entries > 0);
    else if (cm_str_is(function, "random_state"))
        *out = cm_term_text(CM_STR(CM_MLIR_RANDOM));
    else if (cm_str_is(function, "random_word"))
        *out = cm_term_int((int64_t)word_of(use));
    else if (cm_str_is(function, "seed_offset") && options->n_entries)
        *out = cm_term_int((int64_t)options->entries[entry].seed);
    else
        return false;
    return true;
}
