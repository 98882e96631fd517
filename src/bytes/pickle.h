/* The pickle machine: opcodes move values, names of classes stay names, nothing is called. What a
 * few known names would have made (dictionaries, arrays and numbers of NumPy, and what a framework
 * lists) becomes a plain value; everything else is an object with what it was called with and its
 * state. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BYTES_PICKLE_H
#define CM_BYTES_PICKLE_H

#include "base/array.h"
#include "bytes/item.h"
#include "bytes/saved_tensor.h"

struct cm_pickle;
struct cm_pickle_call;

/* What a persistent id stands for. */
typedef enum cm_status cm_pickle_persistent_fn(struct cm_pickle *pickle, const struct cm_item *id,
                                               struct cm_item **out, struct cm_error *err);

/* What calling a name would have made. */
typedef enum cm_status cm_pickle_call_fn(struct cm_pickle_call *call, struct cm_item **out);
struct cm_pickle_known {
    const char *module; /* what Python 2 called otherwise has its new name here */
    const char *name;
    cm_pickle_call_fn *call;
};

/* A tensor whose storage has no bytes yet. */
struct cm_pickle_view {
    struct cm_saved_tensor *tensor;
    const struct cm_saved_tensor *storage;
};

struct cm_pickle {
    struct cm_arena *arena;
    struct cm_str bytes;
    size_t at;                           /* where it begins; then where it ended */
    struct cm_str file;                  /* that tensors are said to come from */
    cm_pickle_persistent_fn *persistent; /* NULL: there are none */
    void *arg;                           /* for persistent */
    const struct cm_pickle_known *known; /* names of a framework, besides Python's and NumPy's */
    size_t n_known;
    CM_ARRAY(struct cm_pickle_view) views;
    /* pickle.c's own */
    CM_ARRAY(struct cm_item *) stack, memo;
    CM_ARRAY(size_t) marks;
    size_t made; /* items and entries so far */
};

enum cm_status cm_pickle_run(struct cm_pickle *pickle, struct cm_item **out,
                             struct cm_error *err) CM_MUST_CHECK;

/* ---- for those who know names ---- */

/* Counts what was made; all items of the machine are made here. */
struct cm_item *cm_pickle_item(struct cm_pickle *pickle, enum cm_item_kind kind);
/* The name of something, never called: an object with truth set; `number` is its row of known
 * names.
 */
struct cm_item *cm_pickle_name(struct cm_pickle *pickle, struct cm_str module, struct cm_str name);
/* What calling a name with a list of arguments would have made. */
enum cm_status cm_pickle_call(struct cm_pickle *pickle, const struct cm_item *function,
                              const struct cm_item *arguments, struct cm_item **out,
                              struct cm_error *err) CM_MUST_CHECK;
struct cm_pickle_call {
    struct cm_pickle *pickle;
    const struct cm_item *function;
    const struct cm_item *arguments; /* a list */
    int depth;
    struct cm_error *err;
};
static inline const struct cm_item *cm_pickle_argument(const struct cm_pickle_call *call,
                                                       size_t index)
{
    return cm_item_at(call->arguments, index);
}
enum cm_status cm_pickle_bad_arguments(const struct cm_pickle_call *call);
/* A whole number that is not negative? Not a tensor of one element, whose bytes may come later. */
bool cm_pickle_is_count(const struct cm_item *item, int64_t *out);
bool cm_pickle_read_shape(const struct cm_item *list, struct cm_shape *out);
/* list(..), tuple(..), set(..), torch.Size(..), deque(.., most): the first argument as a list. */
cm_pickle_call_fn cm_pickle_call_list;
/* int(x), str(x), bytes(x), bytearray(x) of what is plain already; and functions that give their
 * first argument back: parameters, arrays of a device. */
cm_pickle_call_fn cm_pickle_call_first;
/* A call of another name inside this call. */
enum cm_status cm_pickle_call_inner(struct cm_pickle_call *call, const struct cm_item *function,
                                    const struct cm_item *arguments,
                                    struct cm_item **out) CM_MUST_CHECK;
/* BUILD: gives an object its state. */
enum cm_status cm_pickle_build(struct cm_pickle *pickle, struct cm_item *object,
                               const struct cm_item *state, struct cm_error *err) CM_MUST_CHECK;
/* Is it a tuple or list of at least so many entries? */
bool cm_pickle_is_list(const struct cm_item *item, size_t least);

enum { CM_PICKLE_LONG_MAX = 256 }; /* bytes of an integer */
/* Decimal digits of a little-endian two's complement number of 1 to CM_PICKLE_LONG_MAX bytes. */
struct cm_str cm_pickle_digits(struct cm_arena *arena, struct cm_str bytes);
/* Python's escapes: in a string, which is bytes, all of them; in a unicode text, which is written
 * in Latin-1, those of characters only. */
enum cm_status cm_pickle_unescape(struct cm_arena *arena, struct cm_str in, bool is_string,
                                  struct cm_str *out, struct cm_error *err) CM_MUST_CHECK;

#endif
