/* Trees of JAX, put together again. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/jax/flax_state.h"

#include "base/number.h"
#include "bytes/numpy_types.h"
#include "convert/frameworks/jax/optax.h"

struct making {
    const struct cm_saved *saved;
    struct cm_arena *arena;
    struct cm_map entries; /* role, name and slot of optax -> 1 + number */
    int64_t advanced;      /* updates since the tree was read */
    size_t placed;         /* weights */
    struct cm_error *err;
};

static struct cm_str entry_key(struct cm_arena *arena, enum cm_saved_role role, struct cm_str name,
                               struct cm_str slot)
{
    return cm_arena_printf(arena, "%d:%.*s:%.*s", (int)role, CM_STR_ALL(slot), CM_STR_ALL(name));
}

static const struct cm_saved_entry *find(const struct making *m, enum cm_saved_role role,
                                         struct cm_str name, struct cm_str slot)
{
    const uint64_t found = cm_map_get(&m->entries, entry_key(m->arena, role, name, slot), 0);

    return found ? &m->saved->entries.items[found - 1] : NULL;
}

static void list_entries(struct making *m)
{
    for (size_t i = 0; i < m->saved->entries.count; i++) {
        const struct cm_saved_entry *entry = &m->saved->entries.items[i];
        const char *slot = cm_optax_slot(entry->meaning, m->saved->rule);
        const struct cm_str word = slot ? cm_str(slot) : entry->slot;

        *cm_map_insert(&m->entries, m->arena,
                       entry_key(m->arena, entry->role, entry->name,
                                 entry->role == CM_SAVED_SLOT ? word : CM_STR_NONE),
                       NULL) = i + 1;
    }
}

/* ---- trees out of names ---- */

/* A tree that grows by paths. */
struct growing {
    struct cm_item *root;
    struct cm_map at; /* path -> its map, as a pointer */
};

/* Puts a value at a path of the tree; the maps on the way there are made. */
static enum cm_status plant(struct making *m, struct growing *g, struct cm_str path,
                            const struct cm_item *value)
{
    struct cm_item *map = g->root;
    size_t begin = 0;
    bool added;

    for (size_t i = 0; i < path.size; i++) {
        if (path.data[i] != '/')
            continue;
        const struct cm_str here = {path.data, i};
        uint64_t *known = cm_map_insert(&g->at, m->arena, here, &added);

        if (added) {
            struct cm_item *below = cm_item_new(m->arena, CM_ITEM_MAP);

            *known = (uint64_t)(uintptr_t)below;
            cm_item_set(m->arena, map,
                        cm_item_text(m->arena, (struct cm_str){path.data + begin, i - begin}),
                        below);
        }
        map = (struct cm_item *)(uintptr_t)*known;
        if (!map)
            return cm_fail(m->err, CM_BAD_MODEL,
                           "'%.*s' is the name of a tensor and begins that of another",
                           CM_STR_FMT(here));
        begin = i + 1;
    }
    (void)cm_map_insert(&g->at, m->arena, path, &added); /* 0: a leaf */
    if (!added)
        return cm_fail(m->err, CM_BAD_MODEL, "two tensors have a name that begins with '%.*s'",
                       CM_STR_FMT(path));
    cm_item_set(m->arena, map, cm_item_text(m->arena, cm_str_from(path, begin)), value);
    return CM_OK;
}

/* The path of a name below a prefix; false: it is not below it. Names of other frameworks have dots
 * where JAX has slashes. */
static bool path_of(struct making *m, struct cm_str name, struct cm_str prefix, struct cm_str *path)
{
    if (prefix.size) {
        if (name.size <= prefix.size + 1 || memcmp(name.data, prefix.data, prefix.size) != 0 ||
            name.data[prefix.size] != '/')
            return false;
        *path = cm_str_from(name, prefix.size + 1);
        return true;
    }
    *path = name.size ? name : CM_STR("");
    if (name.size && !memchr(name.data, '/', name.size)) {
        char *text = cm_arena_alloc(m->arena, name.size + 1);

        for (size_t i = 0; i < name.size; i++)
            text[i] = name.data[i] == '.' ? '/' : name.data[i];
        path->data = text;
    }
    return true;
}

static bool is_in_group(const struct cm_map *names, int group, struct cm_str name)
{
    return group < 0 || cm_map_get(names, name, 0);
}

static enum cm_status tree_of(struct making *m, enum cm_saved_role role, struct cm_str prefix,
                              const struct cm_item **out)
{
    struct growing g = {.root = cm_item_new(m->arena, CM_ITEM_MAP)};
    struct cm_str path;

    for (size_t i = 0; i < m->saved->entries.count; i++) {
        const struct cm_saved_entry *entry = &m->saved->entries.items[i];

        if (entry->role != role || !path_of(m, entry->name, prefix, &path))
            continue;
        CM_TRY(plant(m, &g, path, cm_item_tensor(m->arena, entry->tensor)));
        m->placed += role == CM_SAVED_WEIGHT;
    }
    *out = g.root;
    return CM_OK;
}

static enum cm_status slots_of(struct making *m, struct cm_str slot, int group,
                               struct cm_str prefix, const struct cm_item **out)
{
    struct growing g = {.root = cm_item_new(m->arena, CM_ITEM_MAP)};
    struct cm_map names = {0};
    struct cm_str path;

    if (group >= 0 && (size_t)group < m->saved->groups.count)
        for (size_t i = 0; i < m->saved->groups.items[group].names.count; i++)
            *cm_map_insert(&names, m->arena, m->saved->groups.items[group].names.items[i], NULL) =
                1;
    for (size_t i = 0; i < m->saved->entries.count; i++) {
        const struct cm_saved_entry *weight = &m->saved->entries.items[i];

        if (weight->role != CM_SAVED_WEIGHT || !path_of(m, weight->name, prefix, &path))
            continue;
        const struct cm_saved_entry *entry = find(m, CM_SAVED_SLOT, weight->name, slot);
        const struct cm_item *value =
            !is_in_group(&names, group, weight->name) ? cm_item_new(m->arena, CM_ITEM_MAP)
            : entry                                   ? cm_item_tensor(m->arena, entry->tensor)
                    : cm_item_tensor(m->arena, cm_saved_zeros(m->arena, weight->tensor));
        CM_TRY(plant(m, &g, path, value));
    }
    *out = g.root;
    return CM_OK;
}

/* ---- marks ---- */

/* The text up to the next colon, which is skipped. */
static struct cm_str field(struct cm_str *text)
{
    const char *colon = memchr(text->data, ':', text->size);
    const size_t size = colon ? (size_t)(colon - text->data) : text->size;
    const struct cm_str out = {text->data, size};

    *text =
        (struct cm_str){text->data + size + (colon != NULL), text->size - size - (colon != NULL)};
    return out;
}

static bool number_of(struct making *m, struct cm_str type, double value,
                      const struct cm_item **out)
{
    enum cm_dtype dtype;
    int64_t whole;

    if (cm_str_is(type, "int")) {
        if (!cm_int64_from(value, &whole))
            return false;
        *out = cm_item_int(m->arena, whole);
        return true;
    }
    if (!cm_numpy_dtype(type, &dtype) || cm_dtype_info(dtype)->kind == CM_CLASS_COMPLEX)
        return false;
    *out = cm_item_tensor(m->arena, cm_saved_scalar(m->arena, dtype, value));
    return true;
}

static enum cm_status fill_mark(struct making *m, struct cm_str mark, const struct cm_item **out)
{
    struct cm_str rest = cm_str_from(mark, 1);
    const struct cm_str what = field(&rest);
    int64_t number;
    double real;

    if (cm_str_is(what, "weights"))
        return tree_of(m, CM_SAVED_WEIGHT, rest, out);
    if (cm_str_is(what, "buffers"))
        return tree_of(m, CM_SAVED_BUFFER, rest, out);
    if (cm_str_is(what, "averages"))
        return tree_of(m, CM_SAVED_AVERAGE, rest, out);
    const struct cm_str first = field(&rest);
    if (cm_str_is(what, "slots") && cm_str_to_int64(field(&rest), &number)) {
        if (rest.size && rest.data[rest.size - 1] == '/')
            rest.size--;
        return slots_of(m, first, (int)number, rest, out);
    }
    if (cm_str_is(what, "count") && cm_str_to_int64(rest, &number) &&
        cm_int64_add(number, m->advanced, &number) && number_of(m, first, (double)number, out))
        return CM_OK;
    if (cm_str_is(what, "number") && cm_str_to_double(rest, &real) &&
        number_of(m, first, real, out))
        return CM_OK;
    if (cm_str_is(what, "rate") && cm_str_to_int64(first, &number)) {
        const struct cm_str type = field(&rest);
        const double now = number >= 0 && (size_t)number < m->saved->groups.count
                               ? m->saved->groups.items[number].settings.lr
                               : NAN;

        if (cm_str_to_double(rest, &real) && number_of(m, type, isnan(now) ? real : now, out))
            return CM_OK;
    }
    if (cm_str_is(what, "kept") && cm_str_to_int64(first, &number)) {
        const struct cm_saved_entry *entry = find(m, (enum cm_saved_role)number, rest, CM_STR_NONE);

        if (!entry)
            return cm_fail(m->err, CM_NOT_FOUND,
                           "the tensor '%.*s' of the training that was read is not there anymore",
                           CM_STR_FMT(rest));
        m->placed += number == CM_SAVED_WEIGHT;
        *out = cm_item_tensor(m->arena, entry->tensor);
        return CM_OK;
    }
    return cm_fail(m->err, CM_BAD_MODEL, "the fact 'jax.tree' has '%.*s', which is not understood",
                   CM_STR_FMT(mark));
}

static enum cm_status fill(struct making *m, const struct cm_item *kept, int depth,
                           const struct cm_item **out)
{
    const struct cm_item *plain = cm_item_get(kept, "=");
    struct cm_str text;

    if (depth > CM_ITEM_DEPTH_MAX)
        return cm_fail(m->err, CM_LIMIT, "the fact 'jax.tree' is nested too deep");
    *out = plain ? plain : kept;
    if (cm_item_is_text(kept, &text) && cm_str_starts(text, "="))
        return fill_mark(m, text, out);
    if (plain || (kept->kind != CM_ITEM_MAP && kept->kind != CM_ITEM_LIST))
        return CM_OK;
    struct cm_item *filled = cm_item_new(m->arena, kept->kind);
    for (size_t i = 0; i < kept->entries.count; i++) {
        const struct cm_item *value;

        if (cm_str_starts(cm_item_text_or_none(kept->entries.items[i].key), "opt") && depth < 2 &&
            !m->saved->has_optimizer)
            continue; /* only the weights are wanted */
        CM_TRY(fill(m, kept->entries.items[i].value, depth + 1, &value));
        cm_item_set(m->arena, filled, kept->entries.items[i].key, value);
    }
    *out = filled;
    return CM_OK;
}

/* Puts all tensors of a role under `key`; where their names begin with it already, as they do in
 * JAX, it is not repeated. Nothing where there are none. */
static void put_collection(struct making *m, struct cm_item *tree, enum cm_saved_role role,
                           const char *key, const char *mark)
{
    const size_t size = strlen(key);
    size_t count = 0, named = 0;

    for (size_t i = 0; i < m->saved->entries.count; i++) {
        const struct cm_saved_entry *entry = &m->saved->entries.items[i];

        if (entry->role != role)
            continue;
        count++;
        named += cm_str_starts(entry->name, key) && entry->name.size > size &&
                 entry->name.data[size] == '/';
    }
    if (count)
        cm_item_put(m->arena, tree, key,
                    cm_item_printf(m->arena, "=%s:%s", mark, named == count ? key : ""));
}

/* flax's TrainState, for what comes from elsewhere; without an optimizer only the variables. */
static const struct cm_item *train_state(struct making *m)
{
    const struct cm_saved *saved = m->saved;
    struct cm_item *tree = cm_item_new(m->arena, CM_ITEM_MAP);
    struct cm_str weights = CM_STR_NONE;

    if (saved->has_optimizer)
        cm_item_put(m->arena, tree, "step",
                    cm_item_printf(m->arena, "=count:int32:%lld",
                                   (long long)(saved->step < 0 ? 0 : saved->step)));
    put_collection(m, tree, CM_SAVED_WEIGHT, "params", "weights");
    put_collection(m, tree, CM_SAVED_BUFFER, "batch_stats", "buffers");
    if (cm_item_is_text(cm_item_get(tree, "params"), &weights))
        weights = cm_str_from(weights, 9); /* "=weights:" */
    if (saved->has_optimizer)
        cm_item_put(m->arena, tree, "opt_state", cm_optax_state(m->arena, saved, weights));
    return tree;
}

enum cm_status cm_jax_tree(struct cm_arena *arena, const struct cm_saved *saved,
                           const struct cm_item **out, struct cm_error *err)
{
    struct making m = {.saved = saved, .arena = arena, .err = err};
    const struct cm_item *kept = NULL;
    size_t weights = 0;
    int64_t step;

    list_entries(&m);
    for (size_t i = 0; i < saved->facts.count; i++)
        if (cm_str_is(saved->facts.items[i].key, "jax.tree")) {
            kept = cm_item_get(saved->facts.items[i].value, "tree");
            if (cm_item_is_int(cm_item_get(saved->facts.items[i].value, "step"), &step) &&
                step >= 0 && saved->step >= 0)
                m.advanced = saved->step - step; /* fits: neither is negative */
        }
    CM_TRY(fill(&m, kept ? kept : train_state(&m), 0, out));
    for (size_t i = 0; i < saved->entries.count; i++)
        weights += saved->entries.items[i].role == CM_SAVED_WEIGHT;
    if (m.placed < weights)
        return cm_fail(err, CM_BAD_MODEL,
                       "%zu of %zu weights have no place in the tree that the training was read "
                       "from",
                       weights - m.placed, weights);
    return CM_OK;
}
