/* HDF5 files as h5py writes them: version 0, a table of names for each group, arrays in one piece.
 *
 * Everything gets its address first, in the order in which it is then written: a group is its
 * header, its tree, its heap of names and its tables, and then its members; an array is its header
 * and its bytes. Texts of attributes lie together in one heap at the end. */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "bytes/byte_buffer.h"
#include "bytes/hdf5.h"

#include "base/memory.h"
#include "base/number.h"

enum {
    SUPERBLOCK_SIZE = 96,
    TABLE_MAX = 8, /* names to a table: twice the superblock's leaf K */
    TREE_MAX = 32, /* children of a node: twice its internal K */
    TABLE_SIZE = 8 + TABLE_MAX * 40,
    TREE_SIZE = 24 + TREE_MAX * 8 + (TREE_MAX + 1) * 8,
    HEAP_HEAD = 32,
    TEXTS_LEAST = 4096
};

struct node {
    struct cm_str name;
    CM_ARRAY(struct node *) children; /* in the order of the outputs, later by name */
    const struct cm_saved_tensor *tensor;
    struct cm_str attribute; /* its "name" */
    size_t text;             /* number of that in the heap of texts */
    uint64_t address, tree, heap, tables, data, data_size;
    size_t n_trees, n_tables, names_size;
};

struct writing {
    struct cm_arena *arena;
    struct cm_save *save;
    struct node root;
    CM_ARRAY(struct cm_str) texts;
    uint64_t texts_at, texts_size, end;
    struct cm_map paths; /* to nodes */
    struct cm_bytes out;
    struct cm_error *err;
};

/* ---- the tree ---- */

static struct node *member(struct writing *w, struct node *group, struct cm_str name,
                           struct cm_str path)
{
    bool added;
    uint64_t *found = cm_map_insert(&w->paths, w->arena, path, &added);

    if (!added)
        return (struct node *)(uintptr_t)*found;
    struct node *node = CM_NEW(w->arena, struct node);
    node->name = name;
    *CM_PUSH(w->arena, &group->children) = node;
    *found = (uint64_t)(uintptr_t)node;
    return node;
}

static void add_output(struct writing *w, const struct cm_hdf5_output *output)
{
    struct node *node = &w->root;
    size_t begin = 0;

    for (size_t i = 0; i <= output->path.size; i++)
        if (i == output->path.size || output->path.data[i] == '/') {
            if (i > begin)
                node = member(w, node, (struct cm_str){output->path.data + begin, i - begin},
                              (struct cm_str){output->path.data, i});
            begin = i + 1;
        }
    node->tensor = output->tensor;
    node->attribute = output->name;
    if (output->name.size) {
        node->text = w->texts.count + 1;
        *CM_PUSH(w->arena, &w->texts) = output->name;
    }
}

/* ---- messages ---- */

static void put(struct writing *w, uint64_t value, size_t size)
{
    cm_bytes_number(&w->out, value, size);
}

static void put_text(struct writing *w, struct cm_str text)
{
    cm_bytes_text(&w->out, text);
}

static void pad_to(struct writing *w, size_t begin, size_t size)
{
    cm_bytes_pad(&w->out, begin, size);
}

/* The head of a message; its contents follow, up to end_message. */
static size_t begin_message(struct writing *w, unsigned kind)
{
    put(w, kind, 2);
    put(w, 0, 6);
    return w->out.count;
}

static void end_message(struct writing *w, size_t begin)
{
    const size_t size = cm_round_up(w->out.count - begin, 8);

    pad_to(w, begin, size);
    w->out.items[begin - 6] = (char)size;
    w->out.items[begin - 5] = (char)(size >> 8);
}

/* How floats lie in their bits: where exponent and mantissa begin, how long they are, the bias. */
static const struct {
    enum cm_dtype dtype;
    unsigned sign, exponent_at, exponent, mantissa, bias;
} floats[] = {{CM_FLOAT, 31, 23, 8, 23, 127},
              {CM_DOUBLE, 63, 52, 11, 52, 1023},
              {CM_FLOAT16, 15, 10, 5, 10, 15}};

static bool put_type(struct writing *w, enum cm_dtype dtype)
{
    const unsigned size = (unsigned)cm_dtype_size(dtype);
    const enum cm_dtype_class kind = cm_dtype_info(dtype)->kind;

    for (size_t i = 0; i < CM_COUNT(floats); i++)
        if (floats[i].dtype == dtype) {
            put(w, 0x11, 1);
            put(w, 0x20 | floats[i].sign << 8, 3);
            put(w, size, 4);
            put(w, (uint64_t)(8 * size) << 16, 4);
            put(w, floats[i].exponent_at, 1);
            put(w, floats[i].exponent, 1);
            put(w, floats[i].mantissa << 8, 2);
            put(w, floats[i].bias, 4);
            return true;
        }
    if (dtype == CM_BFLOAT16) { /* bytes without a meaning, as h5py has it */
        put(w, 0x15, 1);
        put(w, 8, 3);
        put(w, size, 4);
        put(w, 0, 8);
        return true;
    }
    put(w, 0x10, 1);
    put(w, kind == CM_CLASS_SIGNED ? 8 : 0, 3);
    put(w, size, 4);
    put(w, (uint64_t)(8 * size) << 16, 4);
    return kind == CM_CLASS_SIGNED || kind == CM_CLASS_UNSIGNED || kind == CM_CLASS_BOOL;
}

static void put_space(struct writing *w, const struct cm_shape *shape)
{
    put(w, 1, 1);
    put(w, (uint64_t)shape->rank, 7);
    for (int i = 0; i < shape->rank; i++)
        put(w, (uint64_t)shape->dims[i], 8);
}

/* An attribute whose value is a text in the heap of texts. */
static void put_attribute(struct writing *w, const char *name, size_t text)
{
    const size_t begin = begin_message(w, 12), length = strlen(name) + 1;

    put(w, 1, 2);
    put(w, length, 2);
    put(w, 20, 2); /* of the type */
    put(w, 8, 2);  /* of the shape */
    put_text(w, cm_str(name));
    pad_to(w, begin, 8 + cm_round_up(length, 8));
    put(w, 0x19, 1); /* texts of any length, in UTF-8 */
    put(w, 0x0101, 3);
    put(w, 16, 4);
    put(w, 0x10, 4); /* whose letters are bytes */
    put(w, 1, 4);
    put(w, 8 << 16, 8);
    put_space(w, &CM_SCALAR);
    put(w, text ? w->texts.items[text - 1].size : 0, 4);
    put(w, text ? w->texts_at : 0, 8);
    put(w, text, 4);
    end_message(w, begin);
}

/* ---- objects ---- */

static enum cm_status put_header(struct writing *w, const struct node *node)
{
    const size_t begin = w->out.count;
    unsigned messages = 0;
    size_t at;

    put(w, 1, 16); /* version; what follows is filled in below */
    if (node->tensor) {
        at = begin_message(w, 1);
        put_space(w, &node->tensor->shape);
        end_message(w, at);
        at = begin_message(w, 3);
        if (!put_type(w, node->tensor->dtype))
            return cm_fail(w->err, CM_UNSUPPORTED, "HDF5 files of Keras have no tensors of %s",
                           cm_dtype_name(node->tensor->dtype));
        end_message(w, at);
        at = begin_message(w, 5); /* no value for what was never written */
        put(w, 0x01020202, 8);
        end_message(w, at);
        at = begin_message(w, 8);
        put(w, 0x0103, 2);
        put(w, node->data_size ? node->data : UINT64_MAX, 8);
        put(w, node->data_size, 8);
        end_message(w, at);
        messages = 4;
    } else {
        at = begin_message(w, 17);
        put(w, node->tree, 8);
        put(w, node->heap, 8);
        end_message(w, at);
        messages = 1;
    }
    if (node->text) {
        put_attribute(w, node->tensor ? "dtype" : "name", node->text);
        messages++;
    }
    const size_t size = w->out.count - begin - 16;
    char *head = w->out.items + begin;
    head[2] = (char)messages;
    head[4] = 1; /* one link leads here */
    memcpy(head + 8, &(uint32_t){(uint32_t)size}, 4);
    return CM_OK;
}

static size_t header_size(const struct node *node)
{
    const size_t attribute = 8 + 8 + 8 + 24 + 8 + 16;
    const size_t type =
        node->tensor && (node->tensor->dtype == CM_FLOAT || node->tensor->dtype == CM_DOUBLE ||
                         node->tensor->dtype == CM_FLOAT16)
            ? 24
            : 16;

    return 16 + (node->text ? attribute : 0) +
           (node->tensor ? 8 + 8 + 8 * (size_t)node->tensor->shape.rank + 8 + type + 8 + 8 + 8 + 24
                         : 8 + 16);
}

static int by_name(const void *a, const void *b)
{
    return cm_str_compare((*(struct node *const *)a)->name, (*(struct node *const *)b)->name);
}

static uint64_t take(struct writing *w, size_t size)
{
    const uint64_t at = w->end;

    w->end += cm_round_up(size, 8);
    return at;
}

/* Nodes of a tree whose lowest level has so many leaves. */
static size_t trees_for(size_t leaves)
{
    size_t nodes = 0;

    do {
        leaves = (leaves + TREE_MAX - 1) / TREE_MAX;
        nodes += leaves ? leaves : 1;
    } while (leaves > 1);
    return nodes;
}

/* Gives everything its address. Members keep their order, which readers take for that of layers. */
static void place(struct writing *w, struct node *node)
{
    node->address = take(w, header_size(node));
    if (node->tensor) {
        node->data_size =
            cm_dtype_size(node->tensor->dtype) * (uint64_t)cm_shape_elements(&node->tensor->shape);
        node->data = take(w, (size_t)node->data_size);
        return;
    }
    node->names_size = 8;
    for (size_t i = 0; i < node->children.count; i++)
        node->names_size += cm_round_up(node->children.items[i]->name.size + 1, 8);
    node->n_tables = (node->children.count + TABLE_MAX - 1) / TABLE_MAX;
    node->n_trees = trees_for(node->n_tables);
    node->tree = take(w, node->n_trees * TREE_SIZE); /* its root is the first */
    node->heap = take(w, HEAP_HEAD + node->names_size);
    node->tables = take(w, node->n_tables * TABLE_SIZE);
    for (size_t i = 0; i < node->children.count; i++)
        place(w, node->children.items[i]);
}

/* ---- groups ---- */

static void put_tree_node(struct writing *w, unsigned level, size_t count, uint64_t left,
                          uint64_t right)
{
    put_text(w, CM_STR("TREE"));
    put(w, 0, 1);
    put(w, level, 1);
    put(w, count, 2);
    put(w, left, 8);
    put(w, right, 8);
}

/* One level after the other from the root down; a node's last key is that of its last table. */
static void put_trees(struct writing *w, const struct node *node, const uint64_t *last_names)
{
    size_t sizes[16], levels = 0, count = node->n_tables, first = 0;

    do {
        count = (count + TREE_MAX - 1) / TREE_MAX;
        sizes[levels++] = count ? count : 1;
    } while (count > 1);
    size_t span = 1; /* tables below a child */
    for (size_t l = 1; l < levels; l++)
        span *= TREE_MAX;
    for (size_t level = levels; level-- > 0; span /= TREE_MAX) {
        const size_t below = level ? sizes[level - 1] : node->n_tables;

        for (size_t i = 0; i < sizes[level]; i++) {
            const size_t begin = w->out.count, child = i * TREE_MAX;
            const size_t n = cm_min_size(TREE_MAX, below > child ? below - child : 0);
            const uint64_t self = node->tree + (first + i) * TREE_SIZE;

            put_tree_node(w, (unsigned)level, n, i ? self - TREE_SIZE : UINT64_MAX,
                          i + 1 < sizes[level] ? self + TREE_SIZE : UINT64_MAX);
            put(w, child ? last_names[child * span - 1] : 0, 8);
            for (size_t c = child; c < child + n; c++) {
                const size_t table = cm_min_size((c + 1) * span, node->n_tables);

                put(w,
                    level ? node->tree + (first + sizes[level] + c) * TREE_SIZE
                          : node->tables + c * TABLE_SIZE,
                    8);
                put(w, last_names[table - 1], 8);
            }
            pad_to(w, begin, TREE_SIZE);
        }
        first += sizes[level];
    }
}

static void put_group(struct writing *w, const struct node *node)
{
    const size_t count = node->children.count;
    struct node **sorted = CM_NEW_ARRAY(w->arena, struct node *, count + 1);
    uint64_t *offsets = CM_NEW_ARRAY(w->arena, uint64_t, count + 1);
    uint64_t *last_names = CM_NEW_ARRAY(w->arena, uint64_t, node->n_tables + 1);

    if (count) {
        memcpy(sorted, node->children.items, count * sizeof *sorted);
        qsort(sorted, count, sizeof *sorted, by_name);
    }
    uint64_t at = 8;
    for (size_t i = 0; i < count; i++) {
        offsets[i] = at;
        at += cm_round_up(sorted[i]->name.size + 1, 8);
        last_names[i / TABLE_MAX] = offsets[i];
    }
    put_trees(w, node, last_names);
    put_text(w, CM_STR("HEAP"));
    put(w, 0, 4);
    put(w, node->names_size, 8);
    put(w, 1, 8); /* nothing is free */
    put(w, node->heap + HEAP_HEAD, 8);
    put(w, 0, 8);
    for (size_t i = 0; i < count; i++) {
        const size_t begin = w->out.count;
        put_text(w, sorted[i]->name);
        pad_to(w, begin, cm_round_up(sorted[i]->name.size + 1, 8));
    }
    for (size_t t = 0; t < node->n_tables; t++) {
        const size_t begin = w->out.count, first = t * TABLE_MAX;
        const size_t some = cm_min_size(TABLE_MAX, count - first);

        put_text(w, CM_STR("SNOD"));
        put(w, 1, 2);
        put(w, some, 2);
        for (size_t i = first; i < first + some; i++) {
            put(w, offsets[i], 8);
            put(w, sorted[i]->address, 8);
            put(w, 0, 24);
        }
        pad_to(w, begin, TABLE_SIZE);
    }
}

/* ---- writing ---- */

static enum cm_status flush(struct writing *w)
{
    const enum cm_status status = cm_save_write(w->save, w->out.items, w->out.count, w->err);

    w->out.count = 0;
    return status;
}

static enum cm_status write_node(struct writing *w, const struct node *node)
{
    CM_TRY(cm_error_context(w->err, put_header(w, node), "'%.*s'", CM_STR_FMT(node->name)));
    if (!node->tensor)
        put_group(w, node);
    CM_TRY(flush(w));
    if (node->tensor) {
        CM_TRY(cm_saved_tensor_write(w->save, node->tensor, w->err));
        return cm_save_align(w->save, 8, w->err);
    }
    for (size_t i = 0; i < node->children.count; i++)
        CM_TRY(write_node(w, node->children.items[i]));
    return CM_OK;
}

static void put_texts(struct writing *w)
{
    const size_t begin = w->out.count;

    put_text(w, CM_STR("GCOL"));
    put(w, 1, 4);
    put(w, w->texts_size, 8);
    for (size_t i = 0; i < w->texts.count; i++) {
        const size_t at = w->out.count;

        put(w, i + 1, 2);
        put(w, 0, 6);
        put(w, w->texts.items[i].size, 8);
        put_text(w, w->texts.items[i]);
        pad_to(w, at, 16 + cm_round_up(w->texts.items[i].size, 8));
    }
    const uint64_t left = w->texts_size - (w->out.count - begin);
    put(w, 0, 8);
    put(w, left, 8); /* free, with these 16 bytes */
    pad_to(w, begin, (size_t)w->texts_size);
}

static void put_superblock(struct writing *w)
{
    put_text(w, CM_STR("\x89HDF\r\n\x1a\n"));
    put(w, 0, 5);
    put(w, 0x0808, 3);
    put(w, TABLE_MAX / 2, 2);
    put(w, TREE_MAX / 2, 2);
    put(w, 0, 4);
    put(w, 0, 8);
    put(w, UINT64_MAX, 8);
    put(w, w->end, 8);
    put(w, UINT64_MAX, 8);
    put(w, 0, 8);
    put(w, w->root.address, 8);
    put(w, 1, 8);
    put(w, w->root.tree, 8);
    put(w, w->root.heap, 8);
}

enum cm_status cm_hdf5_write(struct cm_arena *scratch, struct cm_save *save,
                             const struct cm_hdf5_output *outputs, size_t count,
                             struct cm_error *err)
{
    struct writing w = {
        .arena = scratch, .save = save, .end = SUPERBLOCK_SIZE, .out.arena = scratch, .err = err};

    for (size_t i = 0; i < count; i++)
        add_output(&w, &outputs[i]);
    if (w.texts.count > 65000)
        return cm_fail(err, CM_UNSUPPORTED, "more than 65000 layers are not written");
    place(&w, &w.root);
    w.texts_size = 16 + 16;
    for (size_t i = 0; i < w.texts.count; i++)
        w.texts_size += 16 + cm_round_up(w.texts.items[i].size, 8);
    if (w.texts_size < TEXTS_LEAST)
        w.texts_size = TEXTS_LEAST;
    w.texts_at = take(&w, (size_t)w.texts_size);
    put_superblock(&w);
    CM_TRY(write_node(&w, &w.root));
    put_texts(&w);
    return flush(&w);
}
