/* Tensors found by their names: as they are, without what wrappers put before them, and as another
 * framework spells them. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/match/match.h"

enum { ROUNDS_MAX = 6, SEVERAL = 0 };

/* ---- spellings ---- */

static bool is_separator(char c)
{
    return c == '.' || c == '/' || c == ':';
}

/* What wrappers of modules put before names; the last ones anywhere in them. */
static const char *const front[] = {"module.", "model.", "params/", "batch_stats/"};
static const char *const anywhere[] = {"_orig_mod.", "_fsdp_wrapped_module.",
                                       "_checkpoint_wrapped_module.", "_forward_module."};

static size_t skip_any(struct cm_str rest, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cm_str_starts(rest, words[i]))
            return strlen(words[i]);
    return 0;
}

static struct cm_str unwrap(struct cm_arena *arena, struct cm_str name)
{
    char *text = cm_arena_alloc(arena, name.size + 1);
    bool at_front = true;
    size_t size = 0;

    for (size_t i = 0; i < name.size;) {
        const struct cm_str rest = cm_str_from(name, i);
        const bool begins = i == 0 || is_separator(name.data[i - 1]);
        const size_t skip = begins ? skip_any(rest, anywhere, CM_COUNT(anywhere)) : 0;
        const size_t more = at_front && !skip ? skip_any(rest, front, CM_COUNT(front)) : 0;

        if (skip + more == 0) {
            at_front = false;
            text[size++] = name.data[i++];
        }
        i += skip + more;
    }
    return (struct cm_str){text, size};
}

struct spelling {
    const char *end, *is;
};

/* What TensorFlow calls the reading of a variable, by the operation that reads it. */
static const struct spelling readings[] = {
    {".Cast.ReadVariableOp", ".weight"},
    {".MatMul.ReadVariableOp", ".weight"},
    {".Tensordot.ReadVariableOp", ".weight"},
    {".Conv1D.ReadVariableOp", ".weight"},
    {".Conv2D.ReadVariableOp", ".weight"},
    {".Conv3D.ReadVariableOp", ".weight"},
    {".convolution.ReadVariableOp", ".weight"},
    {".depthwise.ReadVariableOp", ".weight"},
    {".embedding_lookup", ".weight"},
    {".BiasAdd.ReadVariableOp", ".bias"},
    {".Reshape.ReadVariableOp", ".bias"},
    {".Add.ReadVariableOp", ".bias"},
    {".add.ReadVariableOp", ".bias"},
    {".FusedBatchNormV3.ReadVariableOp", ".mean"},
    {".FusedBatchNormV3.ReadVariableOp_1", ".var"},
    {".batchnorm.mul.ReadVariableOp", ".weight"},
    {".ReadVariableOp_1", ".bias"},
    {".ReadVariableOp", ".weight"},
};

/* The last part of a name. */
static const struct spelling words[] = {
    {"kernel", "weight"},    {"gamma", "weight"},      {"scale", "weight"},
    {"embedding", "weight"}, {"embeddings", "weight"}, {"w", "weight"},
    {"W", "weight"},         {"beta", "bias"},         {"b", "bias"},
    {"moving_mean", "mean"}, {"running_mean", "mean"}, {"moving_variance", "var"},
    {"running_var", "var"},  {"moving_var", "var"},    {"variance", "var"},
};

static struct cm_str cut(struct cm_str text, size_t from, size_t to)
{
    return (struct cm_str){text.data + from, to - from};
}

struct cm_str cm_match_layer(struct cm_str key)
{
    return cm_str_before_last(key, '.');
}

static bool is_number(struct cm_str text)
{
    return text.size > 0 && cm_str_digits_at_end(text) == text.size;
}

/* "fc1_1" to "fc1", in every part; in place. */
static struct cm_str untrace(char *text, size_t size)
{
    size_t end = 0, kept = 0;

    for (size_t begin = 0; begin < size; begin = end + 1) {
        size_t stop;

        for (end = begin; end < size && text[end] != '.'; end++)
            ;
        for (stop = end; stop > begin && text[stop - 1] >= '0' && text[stop - 1] <= '9'; stop--)
            ;
        if (stop < end && stop > begin + 1 && text[stop - 1] == '_')
            stop--;
        else
            stop = end;
        memmove(text + kept, text + begin, stop - begin);
        kept += stop - begin;
        if (end < size)
            text[kept++] = '.';
    }
    return (struct cm_str){text, kept};
}

struct cm_str cm_match_key(struct cm_arena *arena, struct cm_str name, bool is_traced)
{
    name = unwrap(arena, name);
    char *text = cm_arena_alloc(arena, name.size + 16);
    size_t size = 0;

    for (size_t i = 0; i < name.size; i++)
        if (!is_separator(name.data[i]))
            text[size++] = name.data[i];
        else if (size && text[size - 1] != '.')
            text[size++] = '.';
    struct cm_str key = {text, size};
    if (is_number(cm_str_after_last(key, '.')) && cm_str_ends(name, ":0"))
        key = cm_match_layer(key);
    for (size_t i = 0; i < CM_COUNT(readings); i++)
        if (cm_str_ends(key, readings[i].end)) {
            const size_t at = key.size - strlen(readings[i].end);

            key.size = at + strlen(readings[i].is);
            memcpy(text + at, readings[i].is, strlen(readings[i].is));
            break;
        }
    if (is_traced)
        key = untrace(text, key.size);
    const struct cm_str word = cm_str_after_last(key, '.');
    const size_t last = key.size - word.size;
    for (size_t i = 0; i < CM_COUNT(words); i++)
        if (cm_str_is(word, words[i].end)) {
            memcpy(text + last, words[i].is, strlen(words[i].is)); /* there is room for 16 more */
            key.size = last + strlen(words[i].is);
            break;
        }
    return key;
}

/* ---- names that meet ---- */

enum spelled { AS_IT_IS, UNWRAPPED, AS_KEY, AS_TRACED_KEY, SPELLINGS };

static const char *const told[] = {"by name", "by name without wrappers",
                                   "by name, spelled otherwise", "by name, spelled otherwise"};

static struct cm_str spell(struct cm_matching *m, enum spelled how, struct cm_str name,
                           bool is_target)
{
    switch (how) {
    case AS_IT_IS:
        return name;
    case UNWRAPPED:
        return unwrap(m->arena, name);
    default:
        return cm_match_key(m->arena, name, how == AS_TRACED_KEY && is_target);
    }
}

/* The names of one side that are not matched yet, spelled; to index + 1, or SEVERAL. */
struct names {
    struct cm_str *keys; /* by index; empty: it is matched */
    size_t count;
    struct cm_map map;
};

static void add_name(struct cm_matching *m, struct names *names, size_t i, struct cm_str key)
{
    bool added;

    names->keys[i] = key;
    uint64_t *place = cm_map_insert(&names->map, m->arena, key, &added);
    *place = added ? i + 1 : SEVERAL;
}

static void collect(struct cm_matching *m, enum spelled how, struct names *targets,
                    struct names *sources)
{
    *targets = (struct names){.count = m->targets.count};
    *sources = (struct names){.count = m->sources.count};
    targets->keys = CM_NEW_ARRAY(m->arena, struct cm_str, targets->count);
    sources->keys = CM_NEW_ARRAY(m->arena, struct cm_str, sources->count);
    for (size_t i = 0; i < targets->count; i++)
        if (!m->targets.items[i].parts.count)
            add_name(m, targets, i, spell(m, how, m->targets.items[i].name, true));
    for (size_t i = 0; i < sources->count; i++)
        if (!m->sources.items[i].uses)
            add_name(m, sources, i, spell(m, how, m->sources.items[i].name, false));
}

static size_t meet(struct cm_matching *m, enum spelled how)
{
    struct names targets, sources;
    size_t found = 0;

    collect(m, how, &targets, &sources);
    for (size_t i = 0; i < targets.count; i++) {
        const struct cm_str key = targets.keys[i];
        const uint64_t source = key.size ? cm_map_get(&sources.map, key, SEVERAL) : SEVERAL;

        if (source && cm_map_get(&targets.map, key, SEVERAL))
            found +=
                cm_match_accept(m, &m->targets.items[i], &m->sources.items[source - 1], told[how]);
    }
    return found;
}

/* Prefixes of `these` behind which a name of `those` follows, counted. */
static void count_prefixes(struct cm_matching *m, const struct names *these,
                           const struct names *those, struct cm_map *counts, struct cm_str *best,
                           uint64_t *most)
{
    for (size_t i = 0; i < these->count; i++) {
        const struct cm_str key = these->keys[i];

        for (size_t end = 1; end + 1 < key.size; end++) {
            if (!is_separator(key.data[end - 1]) ||
                !cm_map_get(&those->map, cut(key, end, key.size), SEVERAL))
                continue;
            const struct cm_str prefix = cut(key, 0, end);
            const uint64_t count = ++*cm_map_insert(counts, m->arena, prefix, NULL);
            if (count > *most) {
                *most = count;
                *best = prefix;
            }
        }
    }
}

/* The one prefix, of either side, without which most names meet. */
static size_t meet_without_prefix(struct cm_matching *m, enum spelled how)
{
    struct names targets, sources;
    struct cm_map counts[2] = {{0}};
    struct cm_str best[2] = {CM_STR_NONE, CM_STR_NONE};
    uint64_t most[2] = {0, 0};
    size_t found = 0;

    collect(m, how, &targets, &sources);
    count_prefixes(m, &targets, &sources, &counts[0], &best[0], &most[0]);
    count_prefixes(m, &sources, &targets, &counts[1], &best[1], &most[1]);
    const bool of_sources = most[1] > most[0];
    const struct names *these = of_sources ? &sources : &targets;
    const struct names *those = of_sources ? &targets : &sources;
    const struct cm_str prefix = best[of_sources];
    if (!prefix.size)
        return 0;
    const struct cm_str told_prefix = cm_arena_printf(
        m->arena, "%s without '%.*s'", told[how == UNWRAPPED ? AS_IT_IS : how], CM_STR_FMT(prefix));
    for (size_t i = 0; i < these->count; i++) {
        const struct cm_str key = these->keys[i];

        if (key.size <= prefix.size || memcmp(key.data, prefix.data, prefix.size) != 0)
            continue;
        const uint64_t other = cm_map_get(&those->map, cut(key, prefix.size, key.size), SEVERAL);
        if (other)
            found += cm_match_accept(m, &m->targets.items[of_sources ? other - 1 : i],
                                     &m->sources.items[of_sources ? i : other - 1],
                                     cm_str_text(told_prefix));
    }
    return found;
}

void cm_match_by_name(struct cm_matching *m)
{
    for (enum spelled how = AS_IT_IS; how < SPELLINGS; how++) {
        (void)meet(m, how);
        for (int round = 0; how > AS_IT_IS && round < ROUNDS_MAX; round++)
            if (!meet_without_prefix(m, how))
                break;
    }
}
