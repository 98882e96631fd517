/* Trees of JAX, taken apart. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/jax/flax_state.h"

#include "convert/frameworks/jax/optax.h"

enum part {
    ELSE,
    WEIGHTS,
    BUFFERS,
    AVERAGES,
    OPTIMIZER,
    STEP,
    EPOCH,
    RANDOM,
};

/* What users call the parts of their trees. */
static const struct {
    const char *key;
    enum part part;
} parts[] = {
    {"params", WEIGHTS},
    {"batch_stats", BUFFERS},
    {"opt_state", OPTIMIZER},
    {"optimizer", OPTIMIZER},
    {"optimizer_state", OPTIMIZER},
    {"opt", OPTIMIZER},
    {"ema_params", AVERAGES},
    {"params_ema", AVERAGES},
    {"ema", AVERAGES},
    {"step", STEP},
    {"global_step", STEP},
    {"epoch", EPOCH},
    {"rng", RANDOM},
    {"rngs", RANDOM},
    {"key", RANDOM},
    {"dropout_rng", RANDOM},
    {"dropout_key", RANDOM},
    {"prng_key", RANDOM},
};

struct deferred {
    struct cm_item *kept;
    const struct cm_item *state;
    struct cm_str path;
};

struct taking {
    struct cm_saved *saved;
    struct cm_arena *arena;
    struct cm_map names;  /* of tensors taken */
    struct cm_str prefix; /* of the weights: "params/" */
    bool has_params;
    size_t visited;
    CM_ARRAY(struct deferred) optimizers; /* taken when the weights are known */
    struct cm_error *err;
};

static enum part part_of(struct cm_str key)
{
    for (size_t i = 0; i < CM_COUNT(parts); i++)
        if (cm_str_is(key, parts[i].key))
            return parts[i].part;
    return ELSE;
}

static bool is_tree(const struct cm_item *item)
{
    return item->kind == CM_ITEM_MAP || item->kind == CM_ITEM_LIST;
}

static struct cm_str join(struct cm_arena *arena, struct cm_str path, struct cm_str key)
{
    return path.size ? cm_arena_printf(arena, "%.*s/%.*s", CM_STR_ALL(path), CM_STR_ALL(key))
                     : cm_arena_str(arena, key);
}

/* The path of the first 'params' that is a tree, looked for a few levels deep. */
static bool find_params(struct cm_arena *arena, const struct cm_item *tree, struct cm_str path,
                        int depth, struct cm_str *out)
{
    const struct cm_item *params = cm_item_get(tree, "params");

    if (params && is_tree(params)) {
        *out = join(arena, path, CM_STR("params"));
        return true;
    }
    for (size_t i = 0; depth > 0 && i < cm_item_count(tree); i++) {
        const struct cm_str key = cm_item_key(arena, tree, i);

        if (part_of(key) != OPTIMIZER && is_tree(tree->entries.items[i].value) &&
            find_params(arena, tree->entries.items[i].value, join(arena, path, key), depth - 1,
                        out))
            return true;
    }
    return false;
}

static enum cm_status take_tensor(struct taking *t, enum cm_saved_role role, struct cm_str name,
                                  struct cm_saved_tensor *tensor)
{
    if (!cm_map_add(&t->names, t->arena,
                    cm_arena_printf(t->arena, "%d/%.*s", (int)role, CM_STR_ALL(name))))
        return cm_fail(t->err, CM_BAD_MODEL, "two tensors have the name '%.*s'", CM_STR_FMT(name));
    cm_saved_add(t->saved, role, name, tensor);
    return CM_OK;
}

/* All tensors of a tree; *strange: something else is in it, too. */
static enum cm_status take_tensors(struct taking *t, const struct cm_item *tree,
                                   enum cm_saved_role role, struct cm_str path, int depth,
                                   bool *strange)
{
    if (depth > CM_ITEM_DEPTH_MAX || ++t->visited > CM_ITEM_WALK_MAX)
        return cm_fail(t->err, CM_LIMIT, "the tree is too large or nested too deep");
    if (tree->kind == CM_ITEM_TENSOR)
        return take_tensor(t, role, path, tree->tensor);
    if (!is_tree(tree))
        *strange = true;
    for (size_t i = 0; i < cm_item_count(tree); i++)
        CM_TRY(take_tensors(t, tree->entries.items[i].value, role,
                            join(t->arena, path, cm_item_key(t->arena, tree, i)), depth + 1,
                            strange));
    return CM_OK;
}

static bool has_tensor(const struct cm_item *item, int depth, size_t *visited)
{
    if (item->kind == CM_ITEM_TENSOR)
        return item->tensor->shape.rank > 0;
    for (size_t i = 0; depth < CM_ITEM_DEPTH_MAX && is_tree(item) && i < item->entries.count; i++)
        if (++*visited > CM_ITEM_WALK_MAX ||
            has_tensor(item->entries.items[i].value, depth + 1, visited))
            return true;
    return false;
}

static const struct cm_item *mark(struct cm_arena *arena, const char *what, struct cm_str prefix)
{
    return cm_item_text(arena, cm_arena_printf(arena, "=%s:%.*s", what, CM_STR_ALL(prefix)));
}

/* A collection: its tensors under one mark, or each for itself where it has other values, too. */
static enum cm_status take_collection(struct taking *t, const struct cm_item *tree, enum part part,
                                      struct cm_str path, const struct cm_item **kept)
{
    static const struct {
        enum cm_saved_role role;
        const char *mark;
    } roles[] = {[WEIGHTS] = {CM_SAVED_WEIGHT, "weights"},
                 [BUFFERS] = {CM_SAVED_BUFFER, "buffers"},
                 [AVERAGES] = {CM_SAVED_AVERAGE, "averages"}};
    struct cm_str name = path;
    bool strange = false;

    if (part == AVERAGES && t->prefix.size) /* known by the names of the weights */
        name = (struct cm_str){t->prefix.data, t->prefix.size - 1};
    if (!is_tree(tree) || !tree->entries.count) {
        *kept = cm_jax_keep(t->saved, tree, path, roles[part].role);
        return CM_OK;
    }
    CM_TRY(take_tensors(t, tree, roles[part].role, name, 0, &strange));
    if (strange)
        cm_saved_unknown(t->saved, "%.*s has values other than tensors", CM_STR_FMT(path));
    *kept = mark(t->arena, roles[part].mark, name);
    return CM_OK;
}

static void tell(struct taking *t, struct cm_str path, const struct cm_item *value)
{
    cm_saved_tell(t->saved, cm_arena_str(t->arena, path).data, value);
}

static enum cm_status take_part(struct taking *t, const struct cm_item *item, enum part part,
                                struct cm_str path, int depth, const struct cm_item **kept);

static enum cm_status take_parts(struct taking *t, const struct cm_item *tree, struct cm_str path,
                                 int depth, const struct cm_item **kept)
{
    struct cm_item *out = cm_item_new(t->arena, tree->kind);

    if (depth > CM_ITEM_DEPTH_MAX)
        return cm_fail(t->err, CM_LIMIT, "the tree is nested too deep");
    for (size_t i = 0; i < tree->entries.count; i++) {
        const struct cm_item_entry *entry = &tree->entries.items[i];
        const struct cm_str key = cm_item_key(t->arena, tree, i);
        const struct cm_item *value;

        CM_TRY(
            take_part(t, entry->value, part_of(key), join(t->arena, path, key), depth + 1, &value));
        cm_item_set(t->arena, out, entry->key, value);
    }
    *kept = out;
    return CM_OK;
}

static enum cm_status take_part(struct taking *t, const struct cm_item *item, enum part part,
                                struct cm_str path, int depth, const struct cm_item **kept)
{
    const bool tree = is_tree(item) && item->entries.count;
    struct cm_str below;
    size_t visited = 0;

    if (part == OPTIMIZER && tree) {
        struct cm_item *later = cm_item_new(t->arena, CM_ITEM_NONE);

        *kept = later;
        *CM_PUSH(t->arena, &t->optimizers) = (struct deferred){later, item, path};
        return CM_OK;
    }
    if (part == STEP && !tree) {
        *kept = cm_jax_keep_count(t->saved, item, path, &t->saved->step);
        return CM_OK;
    }
    if (part == EPOCH && cm_item_is_int(item, &t->saved->epoch)) {
        *kept = cm_jax_keep(t->saved, item, path, CM_SAVED_OTHER);
        return CM_OK;
    }
    if (part == RANDOM && has_tensor(item, 0, &visited)) {
        *kept = cm_jax_keep(t->saved, item, path, CM_SAVED_RANDOM);
        return CM_OK;
    }
    if (part == WEIGHTS || part == BUFFERS || part == AVERAGES)
        return take_collection(t, item, part, path, kept);
    if (tree && (find_params(t->arena, item, path, 2, &below) || (!t->has_params && depth == 0)))
        return take_parts(t, item, path, depth, kept);
    enum part kind = WEIGHTS;
    if (t->has_params)
        kind = BUFFERS;
    if (has_tensor(item, 0, &visited)) {
        if (item->kind != CM_ITEM_TENSOR)
            return take_collection(t, item, kind, path, kept);
        *kept =
            cm_jax_keep(t->saved, item, path, t->has_params ? CM_SAVED_BUFFER : CM_SAVED_WEIGHT);
        return CM_OK;
    }
    if (!is_tree(item) || item->entries.count)
        tell(t, path, item);
    *kept = cm_jax_keep(t->saved, item, path, CM_SAVED_OTHER);
    return CM_OK;
}

enum cm_status cm_jax_take_tree(struct cm_saved *saved, const struct cm_item *tree,
                                struct cm_error *err)
{
    struct taking t = {.saved = saved, .arena = saved->arena, .err = err};
    struct cm_item *fact = cm_item_new(t.arena, CM_ITEM_MAP);
    const struct cm_item *kept;
    struct cm_str params;

    if (!is_tree(tree) || !tree->entries.count)
        return cm_fail(err, CM_BAD_MODEL, "it holds no tree of tensors");
    t.has_params = find_params(t.arena, tree, CM_STR_NONE, 3, &params);
    if (t.has_params)
        t.prefix = cm_arena_printf(t.arena, "%.*s/", CM_STR_ALL(params));
    CM_TRY(take_parts(&t, tree, CM_STR_NONE, 0, &kept));
    for (size_t i = 0; i < t.optimizers.count; i++) {
        const struct deferred *later = &t.optimizers.items[i];

        *later->kept = i ? *cm_jax_keep(saved, later->state, later->path, CM_SAVED_OTHER)
                         : *cm_optax_take(saved, later->state, later->path, t.prefix);
        if (i)
            cm_saved_unknown(saved, "%.*s is the state of a second optimizer",
                             CM_STR_FMT(later->path));
    }
    cm_item_put(t.arena, fact, "step", cm_item_int(t.arena, saved->step));
    cm_item_put(t.arena, fact, "tree", kept);
    cm_saved_tell(saved, "jax.tree", fact);
    return CM_OK;
}
