/* Random numbers for templates. A node draws those of its stream, one after the other: in a
 * training step those that follow what the steps before have drawn, else the first of seed 0 in
 * every run. Where they stand is in a random state, unless a node draws once in a run and so always
 * the same. */
// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"
#include "graph/op.h"
#include "mlir/lowering/lowering_state.h"
#include "template/template_run.h"

static bool has_seed(const struct cm_node *node)
{
    return cm_node_has_attr(node, "seed");
}

/* Does it draw from the beginning, each time? What is in a body may draw several times in a run. */
static bool draws_once(const struct cm_mlir_use *use)
{
    return !use->lowering->options->n_entries && !use->node->graph->parent;
}

/* draws_are_known(count): are these the first numbers of its seed, and few? A table is eight bytes
 * of the object for each; more are drawn when it runs. */
static bool draws_are_known(const struct cm_mlir_use *use, const struct cm_term *count)
{
    enum { MOST = 4096 };

    return has_seed(use->node) && draws_once(use) && count->kind == CM_TERM_INT && count->i <= MOST;
}

/* draws(normal, count): those numbers, as a constant. */
static struct cm_term draws_term(const struct cm_mlir_use *use, bool normal, int64_t count)
{
    struct cm_mlir_lowering *l = use->lowering;
    struct cm_random *random = CM_NEW(l->arena, struct cm_random);

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

bool cm_mlir_random_call(const struct cm_mlir_use *use, struct cm_str function,
                         const struct cm_term *args, size_t count, struct cm_term *out)
{
    const struct cm_mlir_lower_options *options = use->lowering->options;
    uint32_t stream;
    const size_t entry = entry_of(use, &stream);

    if (cm_str_is(function, "draws") && count == 2 && draws_are_known(use, &args[1]))
        *out = draws_term(use, cm_term_is_true(&args[0]), args[1].i);
    else if (cm_str_is(function, "draws_are_known") && count == 1)
        *out = cm_term_int(draws_are_known(use, &args[0]));
    else if (count)
        return false;
    else if (cm_str_is(function, "seeded"))
        *out = cm_term_int(has_seed(use->node));
    else if (cm_str_is(function, "stream"))
        *out = cm_term_int(stream);
    else if (cm_str_is(function, "keeps_random"))
        *out = cm_term_int(has_seed(use->node) || !draws_once(use));
    else if (cm_str_is(function, "random_state"))
        *out = cm_term_text(CM_STR(CM_MLIR_RANDOM));
    else if (cm_str_is(function, "random_word"))
        *out = cm_term_int((int64_t)word_of(use));
    else if (cm_str_is(function, "seed_offset"))
        *out = cm_term_int(options->n_entries ? (int64_t)options->entries[entry].seed : 0);
    else
        return false;
    return true;
}

struct cm_str cm_mlir_own_random(struct cm_mlir_lowering *l)
{
    struct cm_tensor *words = CM_NEW(l->arena, struct cm_tensor);
    const size_t count = l->random.count;

    if (!count)
        return CM_STR_NONE;
    *words = cm_tensor_borrow(CM_INT64, &CM_SHAPE((int64_t)count), l->random.items);
    const struct cm_str first = cm_mlir_constant(l, CM_STR("random"), words);
    return cm_arena_printf(
        l->arena,
        "    %%random_none = arith.constant 0 : index\n"
        "    %%random_step = arith.constant 1 : index\n"
        "    %%random_end = arith.constant %zu : index\n"
        "    %%random_own = memref.alloc() {alignment = 64 : i64} : memref<%zuxi64>\n"
        "    scf.for %%random_at = %%random_none to %%random_end step %%random_step {\n"
        "      %%random_word = tensor.extract %.*s[%%random_at] : tensor<%zuxi64>\n"
        "      memref.store %%random_word, %%random_own[%%random_at] : memref<%zuxi64>\n"
        "    }\n"
        "    %s = memref.cast %%random_own : memref<%zuxi64> to %s\n",
        count, count, CM_STR_FMT(first), count, count, CM_MLIR_RANDOM, count, CM_MLIR_RANDOM_TYPE);
}
