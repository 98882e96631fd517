/* Data of other languages as plain values: what pickles, JSON, YAML and msgpack hold. Nothing in it
 * was ever executed.
 *
 * Items form a graph, not a tree: a pickle may refer to one item many times, or to the one around
 * it. Who walks deep counts what it visits (CM_ITEM_WALK_MAX) and how deep it is
 * (CM_ITEM_DEPTH_MAX). */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BYTES_ITEM_H
#define CM_BYTES_ITEM_H

#include "base/arena.h"
#include "base/array.h"

enum { CM_ITEM_DEPTH_MAX = 64, CM_ITEM_WALK_MAX = 4000000 };

enum cm_item_kind {
    CM_ITEM_NONE,
    CM_ITEM_BOOL,
    CM_ITEM_INT,
    CM_ITEM_REAL,
    CM_ITEM_TEXT,
    CM_ITEM_BYTES,
    CM_ITEM_LIST, /* lists, tuples and sets */
    CM_ITEM_MAP,
    CM_ITEM_TENSOR,
    CM_ITEM_OBJECT /* of a class that is not known: its name, what it was called with, its state */
};

struct cm_item;
struct cm_saved_tensor;
struct cm_shape;

struct cm_item_entry {
    const struct cm_item *key; /* NULL in a list */
    const struct cm_item *value;
};

struct cm_item {
    enum cm_item_kind kind;
    bool truth;
    int64_t number;
    double real;
    struct cm_str text; /* of texts and bytes; of an object its class, "torch.optim.adamw.AdamW";
                           of an integer past 64 bits its digits, the kind being CM_ITEM_TEXT */
    CM_ARRAY(struct cm_item_entry)
    entries;                        /* of lists, maps; of an object what it was called with */
    const struct cm_item *state;    /* of an object: what BUILD gave it; NULL: nothing */
    struct cm_saved_tensor *tensor; /* of a tensor */
};

extern const struct cm_item cm_item_none;

struct cm_item *cm_item_new(struct cm_arena *arena, enum cm_item_kind kind);
struct cm_item *cm_item_int(struct cm_arena *arena, int64_t value);
struct cm_item *cm_item_real(struct cm_arena *arena, double value);
struct cm_item *cm_item_bool(struct cm_arena *arena, bool value);
struct cm_item *cm_item_text(struct cm_arena *arena, struct cm_str text); /* borrowed */
/* In the C locale. */
struct cm_item *cm_item_printf(struct cm_arena *arena, const char *format, ...) CM_PRINTF(2, 3);
struct cm_item *cm_item_tensor(struct cm_arena *arena, struct cm_saved_tensor *tensor);
/* Lists of them. */
struct cm_item *cm_item_ints(struct cm_arena *arena, const int64_t *values, size_t count);
struct cm_item *cm_item_reals(struct cm_arena *arena, const double *values, size_t count);
struct cm_item *cm_item_texts(struct cm_arena *arena, const struct cm_str *texts, size_t count);
void cm_item_append(struct cm_arena *arena, struct cm_item *list, const struct cm_item *value);
void cm_item_set(struct cm_arena *arena, struct cm_item *map, const struct cm_item *key,
                 const struct cm_item *value); /* added, without looking whether it is there */
void cm_item_put(struct cm_arena *arena, struct cm_item *map, const char *key,
                 const struct cm_item *value); /* the same with a text as key, borrowed */

/* The value of a text key in a map, or in the state of an object; NULL when item is neither (or
 * NULL) or has no such key. Where a key occurs twice, the last counts. */
const struct cm_item *cm_item_get(const struct cm_item *item, const char *key);
const struct cm_item *cm_item_at(const struct cm_item *list, size_t index); /* or NULL */
/* cm_item_path(item, "optim.sched.name"): keys parted by dots. */
const struct cm_item *cm_item_path(const struct cm_item *item, const char *path);
size_t cm_item_count(const struct cm_item *item); /* entries of a list or map; otherwise 0 */

/* Numbers: integers, reals and bools; tensors of one element too. false: it is none, or NULL. */
bool cm_item_is_real(const struct cm_item *item, double *out);
bool cm_item_is_int(const struct cm_item *item, int64_t *out);
bool cm_item_is_bool(const struct cm_item *item, bool *out);
bool cm_item_is_text(const struct cm_item *item, struct cm_str *out);
double cm_item_real_or(const struct cm_item *item, double otherwise);
double cm_item_get_real(const struct cm_item *item, const char *key, double otherwise);
/* The text that an item is, or that is under a key; empty where there is none. */
struct cm_str cm_item_text_or_none(const struct cm_item *item);
struct cm_str cm_item_get_text(const struct cm_item *item, const char *key);
/* The key of an entry of a map, as JSON where it is not a text; of a list its number. */
struct cm_str cm_item_key(struct cm_arena *arena, const struct cm_item *item, size_t index);
/* A list of sizes, none of them negative; the map that flax makes of a list counts as one. false:
 * it is no shape, or one with too many elements. */
bool cm_item_is_shape(const struct cm_item *item, struct cm_shape *out);
/* Entry `index` of a list, or of the map that flax makes of a list ("0", "1", ..); NULL: it is not
 * there. */
const struct cm_item *cm_item_nth(const struct cm_item *list, size_t index);
/* Is it an object of this class; with only the last part of the name? */
bool cm_item_is_a(const struct cm_item *item, const char *class_name);

/* As JSON, cut with "..." after about `most` bytes (0: whole, and then depth and size are limited
 * all the same); tensors as {"tensor": "float", "shape": [..]}, objects as {"class": .., ..}. */
struct cm_str cm_item_json(struct cm_arena *arena, const struct cm_item *item, size_t most);

/* JSON text as an item: all of JSON, numbers without a point that fit as integers, NaN and Infinity
 * as Python writes them. Texts may stay views into `text`. */
enum cm_status cm_item_parse_json(struct cm_arena *arena, struct cm_str text, struct cm_item **out,
                                  struct cm_error *err) CM_MUST_CHECK;

#endif
