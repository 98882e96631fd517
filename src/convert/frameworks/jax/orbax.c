/* Folders of Orbax: a tree of arrays, which lie in folders of their own or in an OCDBT store.
 *
 * A folder of steps (CheckpointManager) has one such folder, or several by name, for each step. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/jax/orbax.h"

#include "base/array.h"
#include "bytes/msgpack.h"
#include "bytes/ocdbt.h"
#include "bytes/zarr.h"
#include "convert/frameworks/jax/flax_state.h"

/* ---- which folders ---- */

struct roots {
    CM_ARRAY(struct cm_str);
};

/* The step in a path: its first part that is a number, or ends with _ and one; -1: none. */
static int64_t step_in(struct cm_str path, size_t *end)
{
    size_t begin = 0;

    for (size_t i = 0; i <= path.size; i++) {
        int64_t number;

        if (i < path.size && path.data[i] != '/')
            continue;
        size_t digits = i;
        while (digits > begin && path.data[digits - 1] >= '0' && path.data[digits - 1] <= '9')
            digits--;
        if ((digits == begin || path.data[digits - 1] == '_') &&
            cm_str_to_int64((struct cm_str){path.data + digits, i - digits}, &number)) {
            *end = i;
            return number;
        }
        begin = i + 1;
    }
    *end = 0;
    return -1;
}

/* The folder that a file makes one of Orbax's; false: it makes none. */
static bool marks_root(struct cm_str name, struct cm_str *root)
{
    const struct cm_str last = cm_str_after_last(name, '/'), folder = cm_str_before_last(name, '/');

    *root = folder;
    if (cm_str_contains(name, "ocdbt.process_") || cm_str_contains(name, ".orbax-checkpoint-tmp"))
        return false;
    if (cm_str_is(last, "_METADATA") || cm_str_is(last, "manifest.ocdbt"))
        return true;
    *root = cm_str_before_last(folder, '/');
    return folder.size && (cm_str_is(last, ".zarray") || cm_str_is(last, "zarr.json"));
}

/* Those of the newest step. */
static int64_t find_roots(const struct cm_saved_place *place, struct roots *roots)
{
    struct cm_map seen = {0};
    int64_t newest = -1;
    struct cm_str root;
    size_t end;

    *roots = (struct roots){0};
    for (size_t i = 0; i < place->names.count; i++)
        if (marks_root(place->names.items[i], &root)) {
            const int64_t step = step_in(root, &end);

            if (step < newest)
                continue;
            if (step > newest)
                roots->count = 0;
            newest = step;
            if (cm_map_add(&seen, place->arena, root))
                *CM_PUSH(place->arena, roots) = root;
        }
    return newest;
}

static int recognize(struct cm_saved_place *place)
{
    struct roots roots;

    if (place->file.size)
        return 0;
    find_roots(place, &roots);
    return roots.count ? 2 : 0;
}

struct array {
    struct cm_str name;
    struct cm_saved_tensor *tensor;
    bool used;
};

/* ---- arrays of one folder ---- */

struct store {
    struct cm_saved_place *place;
    struct cm_ocdbt values; /* of an OCDBT store */
    struct cm_map by_key;   /* key -> 1 + number in values */
    bool is_ocdbt;
    struct cm_zarr_store zarr;
    struct cm_map arrays; /* name -> 1 + number of its tensor */
    CM_ARRAY(struct array) list;
};

static enum cm_status get(void *arg, struct cm_str key, bool *found, struct cm_str *bytes,
                          struct cm_str *file, struct cm_error *err)
{
    struct store *store = arg;

    if (store->is_ocdbt) {
        const uint64_t number = cm_map_get(&store->by_key, key, 0);

        *found = number != 0;
        if (*found) {
            *bytes = store->values.items[number - 1].bytes;
            *file = store->values.items[number - 1].file;
        }
        return CM_OK;
    }
    *found = cm_place_has(store->place, key);
    if (!*found)
        return CM_OK;
    *file = cm_arena_str(store->place->arena, key);
    return cm_place_map(store->place, key, bytes, err);
}

static enum cm_status add_array(struct store *store, struct cm_str key, struct cm_error *err)
{
    struct cm_arena *arena = store->place->arena;
    const bool three = cm_str_ends(key, "/zarr.json");
    struct cm_saved_tensor *tensor;
    struct cm_str bytes, file;
    bool found;

    if (!three && !cm_str_ends(key, "/.zarray"))
        return CM_OK;
    const struct cm_str name = cm_str_before_last(key, '/');
    CM_TRY(get(store, key, &found, &bytes, &file, err));
    CM_TRY(cm_zarr_read(arena, &store->zarr, name, bytes, three ? 3 : 2, &tensor, err));
    *CM_PUSH(arena, &store->list) = (struct array){name, tensor, false};
    *cm_map_insert(&store->arrays, arena, name, NULL) = store->list.count;
    return CM_OK;
}

static enum cm_status map_file(void *place, struct cm_str name, struct cm_str *out,
                               struct cm_error *err)
{
    return cm_place_map(place, name, out, err);
}

static enum cm_status open_store(struct store *store, struct cm_saved_place *place,
                                 struct cm_error *err)
{
    *store = (struct store){.place = place,
                            .is_ocdbt = cm_place_has(place, CM_STR("manifest.ocdbt")),
                            .zarr = {.get = get, .pieces_left = CM_ZARR_PIECES_MAX}};
    store->zarr.arg = store;
    if (!store->is_ocdbt) {
        for (size_t i = 0; i < place->names.count; i++)
            CM_TRY(add_array(store, place->names.items[i], err));
        return CM_OK;
    }
    const struct cm_ocdbt_files files = {map_file, place};
    CM_TRY(cm_ocdbt_read(place->arena, &files, &store->values, err));
    for (size_t i = 0; i < store->values.count; i++)
        *cm_map_insert(&store->by_key, place->arena, store->values.items[i].key, NULL) = i + 1;
    for (size_t i = 0; i < store->values.count; i++)
        CM_TRY(add_array(store, store->values.items[i].key, err));
    return CM_OK;
}

/* ---- the tree of one folder ---- */

struct planting {
    struct cm_arena *arena;
    struct store *store;
    struct cm_item *root;
    struct cm_map at; /* path of keys -> its map */
};

/* The map at a path, made where it is not there yet; NULL: something else is there. */
static struct cm_item *map_at(struct planting *p, struct cm_str path, struct cm_item *above,
                              struct cm_str key)
{
    bool added;
    uint64_t *known = cm_map_insert(&p->at, p->arena, path, &added);

    if (added) {
        struct cm_item *map = cm_item_new(p->arena, CM_ITEM_MAP);

        *known = (uint64_t)(uintptr_t)map;
        cm_item_set(p->arena, above, cm_item_text(p->arena, key), map);
    }
    return (struct cm_item *)(uintptr_t)*known;
}

static enum cm_status plant(struct planting *p, const struct cm_str *keys, size_t count,
                            const struct cm_item *value, struct cm_error *err)
{
    struct cm_str path = CM_STR_NONE;
    struct cm_item *map = p->root;
    bool added = false;

    for (size_t i = 0; map && i < count; i++) {
        path = cm_arena_printf(p->arena, "%.*s/%.*s", CM_STR_ALL(path), CM_STR_ALL(keys[i]));
        if (i + 1 < count)
            map = map_at(p, path, map, keys[i]);
        else
            (void)cm_map_insert(&p->at, p->arena, path, &added); /* 0: no map */
    }
    if (!map || !added)
        return cm_fail(err, CM_BAD_MODEL, "the tree has two values at '%.*s'", CM_STR_FMT(path));
    cm_item_set(p->arena, map, cm_item_text(p->arena, keys[count - 1]), value);
    return CM_OK;
}

static const struct cm_item *array_named(struct store *store, struct cm_str name)
{
    const uint64_t number = cm_map_get(&store->arrays, name, 0);

    if (!number)
        return NULL;
    store->list.items[number - 1].used = true;
    return cm_item_tensor(store->place->arena, store->list.items[number - 1].tensor);
}

/* A leaf of _METADATA; strings are kept in a file of their own. */
static enum cm_status leaf(struct planting *p, const struct cm_item *about, struct cm_str name,
                           const struct cm_item *strings, const struct cm_item **out,
                           struct cm_error *err)
{
    const struct cm_str type =
        cm_item_text_or_none(cm_item_path(about, "value_metadata.value_type"));

    *out = array_named(p->store, name);
    if (*out)
        return CM_OK;
    if (cm_str_is(type, "string"))
        *out = cm_item_get(strings, cm_arena_str(p->arena, name).data);
    else if (cm_str_is(type, "Dict") || cm_str_is(type, "List") || cm_str_is(type, "Tuple"))
        *out = cm_item_new(p->arena, CM_ITEM_MAP);
    else if (cm_str_is(type, "None") || cm_str_is(type, "NamedTuple"))
        *out = &cm_item_none;
    return *out ? CM_OK
                : cm_fail(err, CM_BAD_MODEL, "_METADATA lists '%.*s' (%.*s), which is not there",
                          CM_STR_FMT(name), CM_STR_FMT(type));
}

static enum cm_status tree_of_metadata(struct planting *p, const struct cm_item *tree,
                                       const struct cm_item *strings, struct cm_error *err)
{
    struct cm_str keys[CM_ITEM_DEPTH_MAX];

    for (size_t i = 0; i < cm_item_count(tree); i++) {
        const struct cm_item *about = tree->entries.items[i].value, *value;
        const struct cm_item *path = cm_item_get(about, "key_metadata");
        const size_t count = cm_item_count(path);
        struct cm_str name = CM_STR_NONE;

        if (!count || count > CM_ITEM_DEPTH_MAX)
            return cm_fail(err, CM_BAD_MODEL, "_METADATA has an entry without keys");
        for (size_t k = 0; k < count; k++) {
            const struct cm_item *key = cm_item_get(cm_item_at(path, k), "key");

            if (!key)
                return cm_fail(err, CM_BAD_MODEL, "_METADATA has an entry without keys");
            if (!cm_item_is_text(key, &keys[k]))
                keys[k] = cm_item_json(p->arena, key, 100);
            name = cm_arena_printf(p->arena, "%.*s%s%.*s", CM_STR_ALL(name), k ? "." : "",
                                   CM_STR_ALL(keys[k]));
        }
        CM_TRY(leaf(p, about, name, strings, &value, err));
        CM_TRY(plant(p, keys, count, value, err));
    }
    return CM_OK;
}

/* Without _METADATA the names of arrays are all there is: keys joined by dots. */
static enum cm_status tree_of_names(struct planting *p, struct cm_error *err)
{
    struct cm_str keys[CM_ITEM_DEPTH_MAX];

    for (size_t i = 0; i < p->store->list.count; i++) {
        const struct cm_str name = p->store->list.items[i].name;
        size_t count = 0, begin = 0;

        if (p->store->list.items[i].used)
            continue;
        for (size_t at = 0; at <= name.size && count < CM_ITEM_DEPTH_MAX; at++)
            if (at == name.size || name.data[at] == '.') {
                keys[count++] = (struct cm_str){name.data + begin, at - begin};
                begin = at + 1;
            }
        CM_TRY(plant(p, keys, count, array_named(p->store, name), err));
    }
    return CM_OK;
}

/* Older versions keep the tree as msgpack, with "PLACEHOLDER://NAME" where arrays are. */
static const struct cm_item *fill_placeholders(struct store *store, const struct cm_item *tree)
{
    static const char mark[] = "PLACEHOLDER://";
    struct cm_arena *arena = store->place->arena;
    struct cm_str text;

    if (cm_item_is_text(tree, &text) && cm_str_starts(text, mark)) {
        const struct cm_item *array = array_named(store, cm_str_from(text, sizeof mark - 1));

        return array ? array : tree;
    }
    if (tree->kind != CM_ITEM_MAP && tree->kind != CM_ITEM_LIST)
        return tree;
    struct cm_item *filled = cm_item_new(arena, tree->kind);
    for (size_t i = 0; i < tree->entries.count; i++)
        cm_item_set(arena, filled, tree->entries.items[i].key,
                    fill_placeholders(store, tree->entries.items[i].value));
    return filled;
}

static enum cm_status read_root(struct cm_saved_place *place, struct cm_saved *saved,
                                const struct cm_item **out, struct cm_error *err)
{
    struct cm_item *metadata, *strings, *aggregate;
    struct store store;
    struct cm_str bytes;

    CM_TRY(open_store(&store, place, err));
    CM_TRY(cm_place_json(place, CM_STR("_METADATA"), &metadata, err));
    CM_TRY(cm_place_json(place, CM_STR("_strings.json"), &strings, err));
    struct planting p = {
        .arena = place->arena, .store = &store, .root = cm_item_new(place->arena, CM_ITEM_MAP)};
    const struct cm_item *tree = cm_item_get(metadata, "tree_metadata");
    const struct cm_item *custom = cm_item_get(metadata, "custom_metadata");

    *out = p.root;
    if (tree)
        CM_TRY(tree_of_metadata(&p, tree, strings, err));
    else if (cm_place_has(place, CM_STR("checkpoint")) &&
             cm_msgpack_is_map(cm_place_head(place, CM_STR("checkpoint")))) {
        CM_TRY(cm_place_map(place, CM_STR("checkpoint"), &bytes, err));
        CM_TRY(cm_msgpack_read(place->arena, bytes, CM_STR("checkpoint"), &aggregate, err));
        *out = fill_placeholders(&store, aggregate);
    } else
        CM_TRY(tree_of_names(&p, err));
    for (size_t i = 0; i < store.list.count; i++)
        if (!store.list.items[i].used)
            cm_saved_unknown(saved, "array '%.*s' is in no place of the tree",
                             CM_STR_FMT(store.list.items[i].name));
    if (custom && custom->kind != CM_ITEM_NONE)
        cm_saved_tell(saved, CM_ORBAX_CUSTOM, custom);
    return CM_OK;
}

/* ---- beside the tree ---- */

/* Files of JSON that lie beside it in the folder of a step: FOLDER/metadata, metrics/metrics. */
static enum cm_status tell_beside(struct cm_saved_place *place, struct cm_saved *saved,
                                  struct cm_str step, struct cm_error *err)
{
    struct cm_saved_place below = step.size ? cm_place_below(place, step) : *place;

    for (size_t i = 0; i < below.names.count; i++) {
        const struct cm_str name = below.names.items[i], folder = cm_str_before_last(name, '/');
        struct cm_item *item;

        if (!folder.size || memchr(folder.data, '/', folder.size) ||
            (!cm_str_is(cm_str_after_last(name, '/'), "metadata") &&
             !cm_str_is(cm_str_after_last(name, '/'), "metrics")))
            continue;
        CM_TRY(cm_place_json(&below, name, &item, err));
        cm_saved_tell(saved, cm_arena_str(saved->arena, folder).data, item);
        if (saved->epoch < 0)
            (void)cm_item_is_int(cm_item_get(item, "epoch"), &saved->epoch);
    }
    return CM_OK;
}

static enum cm_status read(struct cm_saved_place *place, struct cm_saved *saved,
                           struct cm_error *err)
{
    struct cm_item *all = cm_item_new(saved->arena, CM_ITEM_MAP);
    const struct cm_item *tree = NULL;
    struct roots roots;
    const int64_t step = find_roots(place, &roots);
    size_t end = 0;

    for (size_t i = 0; i < roots.count; i++) {
        const struct cm_str root = roots.items[i];
        struct cm_saved_place below = root.size ? cm_place_below(place, root) : *place;

        const enum cm_status status = read_root(&below, saved, &tree, err);

        CM_TRY(root.size ? cm_error_context(err, status, "%.*s", CM_STR_FMT(root)) : status);
        cm_item_set(saved->arena, all, cm_item_text(saved->arena, cm_str_after_last(root, '/')),
                    tree);
        (void)step_in(root, &end);
    }
    if (!tree)
        return cm_fail(err, CM_BAD_MODEL, "it is not a folder of Orbax");
    CM_TRY(cm_jax_take_tree(saved, roots.count > 1 ? all : tree, err));
    CM_TRY(cm_orbax_take_settings(saved, err));
    if (saved->step < 0)
        saved->step = step;
    return step < 0 ? CM_OK
                    : tell_beside(place, saved, (struct cm_str){roots.items[0].data, end}, err);
}

const struct cm_format cm_format_orbax = {
    .name = "orbax",
    .system = "JAX",
    .what = "Orbax folder",
    .recognize = recognize,
    .read = read,
    .write = cm_orbax_write,
};
