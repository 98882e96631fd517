/* HDF5 files: from the superblock through groups to arrays. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/hdf5_parts.h"

#include "base/number.h"

enum { DEPTH_MAX = 64, TREE_DEPTH_MAX = 16 };

/* ---- trees ---- */

/* Both kinds of tree: of names, whose leaves are tables; and of chunks. A key comes before each
 * child. */
typedef enum cm_status leaf_fn(struct cm_hdf5_facts *p, struct cm_hdf5_cursor key,
                               uint64_t address);

static enum cm_status walk_tree(struct cm_hdf5_facts *p, uint64_t address, unsigned kind,
                                uint64_t key_size, int depth, leaf_fn *leaf)
{
    struct cm_hdf5_cursor c;

    CM_TRY(cm_hdf5_at(p->h, address, 24, &c));
    if (depth > TREE_DEPTH_MAX || !cm_str_is(cm_hdf5_take(&c, 4), "TREE") ||
        cm_hdf5_get(&c, 1) != kind)
        return cm_hdf5_broken(p->h, "a tree is not where it should be");
    const uint64_t level = cm_hdf5_get(&c, 1), count = cm_hdf5_get(&c, 2);
    CM_TRY(cm_hdf5_at(p->h, address + 24, count * (key_size + 8), &c));
    for (uint64_t i = 0; i < count; i++) {
        const struct cm_hdf5_cursor key = cm_hdf5_over(cm_hdf5_take(&c, key_size));
        const uint64_t child = cm_hdf5_get(&c, 8);

        if (level > 0)
            CM_TRY(walk_tree(p, child, kind, key_size, depth + 1, leaf));
        else
            CM_TRY(leaf(p, key, child));
    }
    return CM_OK;
}

/* A table of names, which lie in the group's heap: p->inside. */
static enum cm_status read_names(struct cm_hdf5_facts *p, struct cm_hdf5_cursor key,
                                 uint64_t address)
{
    enum { ENTRY_SIZE = 40 };
    struct cm_hdf5_cursor c;

    (void)key;
    CM_TRY(cm_hdf5_at(p->h, address, 8, &c));
    if (!cm_str_is(cm_hdf5_take(&c, 4), "SNOD"))
        return cm_hdf5_broken(p->h, "a table of names is not where it should be");
    cm_hdf5_get(&c, 2);
    const uint64_t count = cm_hdf5_get(&c, 2);
    CM_TRY(cm_hdf5_at(p->h, address + 8, count * ENTRY_SIZE, &c));
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t at = cm_hdf5_get(&c, 8), object = cm_hdf5_get(&c, 8);
        const uint64_t cache = cm_hdf5_get(&c, 4);

        cm_hdf5_take(&c, ENTRY_SIZE - 20);
        if (cache == 2) /* a link to a name */
            continue;
        const char *name = at < p->inside.size ? p->inside.data + at : NULL;
        const char *end = name ? memchr(name, 0, p->inside.size - (size_t)at) : NULL;
        if (!end)
            return cm_hdf5_broken(p->h, "a name is not where it should be");
        p->h->spent += (uint64_t)(end - name);
        *CM_PUSH(p->h->arena, &p->links) =
            (struct cm_hdf5_link){{name, (size_t)(end - name)}, object};
    }
    return CM_OK;
}

static enum cm_status read_table(struct cm_hdf5_facts *p)
{
    struct cm_hdf5_cursor c;

    CM_TRY(cm_hdf5_at(p->h, p->heap, 32, &c));
    if (!cm_str_is(cm_hdf5_take(&c, 4), "HEAP"))
        return cm_hdf5_broken(p->h, "a group's names are missing");
    cm_hdf5_get(&c, 4);
    const uint64_t size = cm_hdf5_get(&c, 8);
    cm_hdf5_get(&c, 8);
    const uint64_t address = cm_hdf5_get(&c, 8);
    CM_TRY(cm_hdf5_at(p->h, address, size, &c));
    p->inside = cm_hdf5_take(&c, size);
    return walk_tree(p, p->tree, 0, 8, 0, read_names);
}

/* ---- arrays ---- */

static enum cm_status read_chunk(struct cm_hdf5_facts *p, struct cm_hdf5_cursor key,
                                 uint64_t address)
{
    struct cm_saved_tensor *tensor = p->object->tensor;
    const uint64_t size = cm_hdf5_get(&key, 4), mask = cm_hdf5_get(&key, 4);
    struct cm_saved_piece *piece = cm_saved_piece_add(p->h->arena, tensor, true);
    struct cm_hdf5_cursor c;
    uint64_t stride = 1;

    for (int d = tensor->shape.rank - 1; d >= 0; d--) {
        piece->stride[d] = (int64_t)stride;
        if (!cm_size_mul(stride, p->chunk[d], &stride) || stride > (uint64_t)1 << 40)
            return cm_hdf5_broken(p->h, "a chunk is too large");
    }
    for (int d = 0; d < tensor->shape.rank; d++) {
        const uint64_t first = cm_hdf5_get(&key, 8), dim = (uint64_t)tensor->shape.dims[d];

        if (first >= dim)
            return cm_hdf5_broken(p->h, "a chunk lies outside of its array");
        piece->first[d] = (int64_t)first;
        piece->size[d] = (int64_t)(p->chunk[d] < dim - first ? p->chunk[d] : dim - first);
    }
    CM_TRY(cm_hdf5_at(p->h, address, size, &c));
    piece->bytes = cm_hdf5_take(&c, size);
    piece->file = p->h->file;
    if (p->is_deflated && !(mask & 1)) {
        piece->packing = CM_PACKED_ZLIB;
        piece->unpacked_size = (size_t)stride * (size_t)p->type.size;
        if (piece->unpacked_size / 1032 > size + 64)
            return cm_hdf5_broken(p->h, "a chunk cannot become as large as it should");
    }
    return CM_OK;
}

static enum cm_status read_chunks(struct cm_hdf5_facts *p)
{
    const int rank = p->shape.rank;

    if ((int)p->n_chunk != rank + 1 || p->chunk[rank] != p->type.size)
        return cm_hdf5_broken(p->h, "an array's chunks do not fit");
    struct cm_saved_tensor *tensor = p->object->tensor =
        CM_NEW(p->h->arena, struct cm_saved_tensor);
    tensor->dtype = p->type.dtype;
    tensor->shape = p->shape;
    CM_TRY(walk_tree(p, p->tree, 1, 16 + 8 * (uint64_t)rank, 0, read_chunk));
    return cm_saved_tensor_check(p->h->arena, tensor, p->h->err);
}

static bool is_called_bfloat16(const struct cm_hdf5_object *object)
{
    const struct cm_hdf5_attribute *type = cm_hdf5_attribute(object, "dtype");
    struct cm_str name;

    return type && cm_item_is_text(type->value, &name) && cm_str_is(name, "bfloat16");
}

static enum cm_status read_array(struct cm_hdf5_facts *p)
{
    struct cm_hdf5_cursor c = {0};
    uint64_t written;
    size_t need;

    if (p->type.is_opaque && p->type.size == 2 && is_called_bfloat16(p->object))
        p->type.dtype = CM_BFLOAT16;
    if (p->type.dtype == CM_UNDEFINED)
        return CM_OK;
    if (p->layout == 2 && p->type.dtype != CM_STRING)
        return read_chunks(p);
    if (p->layout == 2)
        return CM_OK;
    if (!cm_size_mul((size_t)cm_shape_elements(&p->shape), (size_t)p->type.size, &need))
        return cm_hdf5_broken(p->h, "an array is too large");
    if (p->layout == 1) {
        if (p->address == CM_HDF5_NONE && need > 0)
            return cm_hdf5_unsupported(p, "was never filled with values");
        CM_TRY(cm_hdf5_at(p->h, need ? p->address : 0, need, &c));
        p->inside = cm_hdf5_take(&c, need);
    }
    if (p->inside.size < need)
        return cm_hdf5_broken(p->h, "an array is cut");
    p->inside.size = need;
    if (p->type.dtype == CM_STRING)
        return cm_hdf5_value(p->h, &p->type, &p->shape, p->inside, &p->object->texts, &written);
    return cm_saved_tensor_new(p->h->arena, p->type.dtype, &p->shape, p->inside, p->h->file,
                               &p->object->tensor, p->h->err);
}

/* ---- the whole file ---- */

static int by_name(const void *a, const void *b)
{
    return cm_str_compare((*(struct cm_hdf5_object *const *)a)->name,
                          (*(struct cm_hdf5_object *const *)b)->name);
}

static enum cm_status read_object(struct cm_hdf5 *h, struct cm_hdf5_object *object, int depth)
{
    struct cm_hdf5_facts p = {.h = h, .object = object};

    if (depth > DEPTH_MAX)
        return cm_fail(h->err, CM_LIMIT, "its groups are nested more than %d deep", DEPTH_MAX);
    CM_TRY(cm_error_context(h->err, cm_hdf5_read_header(&p, object->address), "'/%.*s'",
                            CM_STR_FMT(object->path)));
    if (p.has_table)
        CM_TRY(read_table(&p));
    object->is_group |= p.links.count > 0;
    if (!object->is_group && p.has_type && p.has_shape && p.has_layout)
        return cm_error_context(h->err, read_array(&p), "'/%.*s'", CM_STR_FMT(object->path));
    for (size_t i = 0; i < p.links.count; i++) {
        const struct cm_hdf5_link *link = &p.links.items[i];
        struct cm_hdf5_object *child = CM_NEW(h->arena, struct cm_hdf5_object);

        h->spent += object->path.size + link->name.size;
        *child = (struct cm_hdf5_object){.name = link->name, .address = link->address};
        child->path = object->path.size
                          ? cm_arena_printf(h->arena, "%.*s/%.*s", CM_STR_ALL(object->path),
                                            CM_STR_ALL(link->name))
                          : link->name;
        *CM_PUSH(h->arena, &object->children) = child;
        CM_TRY(read_object(h, child, depth + 1));
    }
    if (object->children.count)
        qsort(object->children.items, object->children.count, sizeof *object->children.items,
              by_name);
    return CM_OK;
}

#define SIGNATURE "\x89HDF\r\n\x1a\n"

bool cm_hdf5_is(struct cm_str head)
{
    return cm_str_starts(head, SIGNATURE);
}

enum cm_status cm_hdf5_read(struct cm_arena *arena, struct cm_str bytes, struct cm_str file,
                            struct cm_hdf5_object **root, struct cm_error *err)
{
    struct cm_hdf5 h = {.arena = arena, .bytes = bytes, .file = file, .err = err};
    struct cm_hdf5_cursor c;

    h.budget = 4 * (uint64_t)bytes.size + 4096;
    if (!cm_hdf5_is(bytes))
        return cm_hdf5_broken(&h, "it does not begin as one");
    CM_TRY(cm_hdf5_at(&h, 8, bytes.size < 104 ? bytes.size - 8 : 96, &c));
    const uint64_t version = cm_hdf5_get(&c, 1);
    if (version > 3)
        return cm_fail(err, CM_UNSUPPORTED, "HDF5 files of version %u are not read",
                       (unsigned)version);
    cm_hdf5_take(&c, version < 2 ? 4 : 0);
    const uint64_t sizes = cm_hdf5_get(&c, 2);
    if (c.cut)
        return cm_hdf5_broken(&h, "it is cut");
    if (sizes != 0x0808)
        return cm_fail(err, CM_UNSUPPORTED,
                       "HDF5 files with addresses of other sizes than 8 bytes "
                       "are not read");
    cm_hdf5_take(&c, version == 0 ? 9 : version == 1 ? 13 : 1);
    const uint64_t base = cm_hdf5_get(&c, 8);
    if (base != 0)
        return cm_fail(err, CM_UNSUPPORTED, "HDF5 files that begin elsewhere are not read");
    cm_hdf5_take(&c, version < 2 ? 32 : 16); /* to the root, past the offset of its name */
    *root = CM_NEW(arena, struct cm_hdf5_object);
    **root = (struct cm_hdf5_object){.address = cm_hdf5_get(&c, 8)};
    if (c.cut)
        return cm_hdf5_broken(&h, "it is cut");
    return read_object(&h, *root, 0);
}

const struct cm_hdf5_object *cm_hdf5_child(const struct cm_hdf5_object *group, const char *name)
{
    for (size_t i = 0; group && i < group->children.count; i++)
        if (cm_str_is(group->children.items[i]->name, name))
            return group->children.items[i];
    return NULL;
}

const struct cm_hdf5_object *cm_hdf5_find(const struct cm_hdf5_object *root, struct cm_str path)
{
    while (root && path.size) {
        const char *slash = memchr(path.data, '/', path.size);
        const struct cm_str name = {path.data, slash ? (size_t)(slash - path.data) : path.size};
        const struct cm_hdf5_object *child = NULL;

        for (size_t i = 0; name.size && i < root->children.count && !child; i++)
            if (cm_str_equal(root->children.items[i]->name, name))
                child = root->children.items[i];
        if (name.size)
            root = child;
        const size_t used = name.size + (slash ? 1 : 0);
        path = cm_str_from(path, used);
    }
    return root;
}

const struct cm_hdf5_attribute *cm_hdf5_attribute(const struct cm_hdf5_object *object,
                                                  const char *name)
{
    for (size_t i = 0; object && i < object->attributes.count; i++)
        if (cm_str_is(object->attributes.items[i].name, name))
            return &object->attributes.items[i];
    return NULL;
}
