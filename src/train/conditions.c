/* What a run depends on, as text, and where two runs differ. */
// SPDX-License-Identifier: Apache-2.0
#include "train/conditions.h"

#include "base/crowd.h"
#include "base/machine.h"
#include "train/trainer_parts.h"

#include <inttypes.h>

/* ---- notes ---- */

void cm_notes_add(struct cm_arena *arena, struct cm_notes *notes, const char *key,
                  struct cm_str value)
{
    *CM_PUSH(arena, notes) = (struct cm_note){cm_str(key), value};
}

struct cm_str cm_notes_find(const struct cm_notes *notes, struct cm_str key)
{
    for (size_t i = 0; i < notes->count; i++)
        if (cm_str_equal(notes->items[i].key, key))
            return notes->items[i].value;
    return CM_STR_NONE;
}

/* ---- conditions ---- */

static const char *instruction_set(void)
{
#if defined(__x86_64__)
    static const char *const names[] = {
        [CM_PLAIN] = "sse2", [CM_AVX2] = "avx2", [CM_AVX512] = "avx512"};

    return names[cm_this_machine()];
#elif defined(__aarch64__)
    return "aarch64";
#else
    return "other";
#endif
}

/* Which passes there are follows from the version. */
static struct cm_str passes(struct cm_arena *arena, const struct cm_trainer_options *options)
{
    const char *with = options->with_passes, *without = options->without_passes;

    return cm_arena_printf(arena, "all%s%s%s%s", with ? " with " : "", with ? with : "",
                           without ? " without " : "", without ? without : "");
}

void cm_conditions_add_trainer(struct cm_arena *arena, struct cm_notes *to,
                               const struct cm_trainer *trainer)
{
    const struct cm_trainer_options *options = &trainer->options;
    const int threads = options->threads > 0 ? options->threads : cm_cores();
    const char *backend = options->backend_versions;

    cm_notes_add(arena, to, "cameo", cm_str(CM_VERSION_STRING));
    cm_notes_add(arena, to, "instructions", cm_str(instruction_set()));
    cm_notes_add(arena, to, "backend", cm_str(backend ? backend : "reference"));
    cm_notes_add(arena, to, "threads", cm_arena_printf(arena, "%d", threads));
    cm_notes_add(arena, to, "passes", passes(arena, options));
    cm_notes_add(arena, to, "seed", cm_arena_printf(arena, "%" PRIu64, options->seed));
}

/* The seed is a condition already where the trainer has the same. */
static struct cm_str order(struct cm_arena *arena, const struct cm_trainer *trainer,
                           const struct cm_feed_options *feed)
{
    if (!feed->shuffle || feed->seed == trainer->options.seed)
        return cm_str(feed->shuffle ? "shuffled" : "as stored");
    return cm_arena_printf(arena, "shuffled with seed %" PRIu64, feed->seed);
}

void cm_conditions_add_data(struct cm_arena *arena, struct cm_notes *to,
                            const struct cm_trainer *trainer, const struct cm_feeder *feeder)
{
    static const char *const last[] = {
        [CM_LAST_SHORT] = "short", [CM_LAST_DROP] = "drop", [CM_LAST_WRAP] = "wrap"};
    const struct cm_feed_options *feed = cm_feeder_settled(feeder);

    cm_notes_add(arena, to, "samples",
                 cm_arena_printf(arena, "%" PRId64, cm_feeder_samples(feeder)));
    cm_notes_add(arena, to, "batch size", cm_arena_printf(arena, "%" PRId64, feed->batch_size));
    cm_notes_add(arena, to, "order", order(arena, trainer, feed));
    cm_notes_add(arena, to, "last batch", cm_str(feed->endless ? "endless" : last[feed->last]));
}

/* ---- differences ---- */

enum cm_status cm_conditions_compare(const struct cm_notes *was, const struct cm_notes *now,
                                     const struct cm_resume_options *options, struct cm_error *err)
{
    static const struct cm_resume_options strict;
    const struct cm_resume_options *o = options ? options : &strict;
    char list[CM_ERROR_SIZE - 200] = "";
    size_t used = 0;

    for (size_t i = 0; i < now->count; i++) {
        const struct cm_str key = now->items[i].key, value = now->items[i].value;
        const struct cm_str old = cm_notes_find(was, key);

        if (!old.data)
            return cm_fail(err, CM_BAD_ARGUMENT,
                           "the checkpoint does not record the condition '%.*s': another kind of "
                           "run wrote it",
                           CM_STR_FMT(key));
        if (cm_str_equal(old, value))
            continue;
        if (o->difference)
            o->difference(o->difference_arg, key.data, old.data, value.data);
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used,
                                     "%s%.*s was %.80s, now it is %.80s", used ? "; " : "",
                                     CM_STR_FMT(key), old.data, value.data);
    }
    if (!used || o->anyway)
        return CM_OK;
    return cm_fail(err, CM_BAD_ARGUMENT,
                   "the checkpoint was written under other conditions, the result would not be "
                   "that of one run: %s",
                   list);
}
