/* The pickle machine, as files of torch.save and of torch.distributed.checkpoint need it: opcodes
 * move values, names of classes stay names, nothing is called. What a few known names would have
 * made (dictionaries, tensors, arrays and numbers of NumPy) becomes a plain value; everything else
 * is an object with what it was called with and its state. Not for other formats. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_PICKLE_H
#define CM_CONVERT_PICKLE_H

#include "convert/torch_file.h"

struct cm_pickle;

/* What a persistent id stands for. */
typedef enum cm_status cm_pickle_persistent_fn(struct cm_pickle *pickle, const struct cm_item *id,
                                               struct cm_item **out, struct cm_error *err);

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
    struct {
        struct cm_pickle_view *items;
        size_t count, capacity;
    } views;
    /* pickle.c's own */
    struct {
        struct cm_item **items;
        size_t count, capacity;
    } stack, memo;
    struct {
        size_t *items;
        size_t count, capacity;
    } marks;
    size_t made; /* items and entries so far */
};

enum cm_status cm_pickle_run(struct cm_pickle *pickle, struct cm_item **out,
                             struct cm_error *err) CM_MUST_CHECK;

/* ---- between pickle.c, pickle_call.c and torch_file.c ---- */

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
typedef enum cm_status cm_pickle_call_fn(struct cm_pickle_call *call, struct cm_item **out);
static inline const struct cm_item *cm_pickle_argument(const struct cm_pickle_call *call,
                                                       size_t index)
{
    return cm_item_at(call->arguments, index);
}
enum cm_status cm_pickle_bad_arguments(const struct cm_pickle_call *call);
bool cm_pickle_read_shape(const struct cm_item *list, struct cm_shape *out);
cm_pickle_call_fn cm_torch_call_tensor, cm_torch_call_nested, cm_torch_call_refused;
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

/* A storage: an object whose `tensor` is all of it, in a row. bytes.data NULL: it comes later. */
enum cm_status cm_torch_storage(struct cm_pickle *pickle, struct cm_str name, enum cm_dtype dtype,
                                int64_t count, struct cm_str bytes, struct cm_item **out,
                                struct cm_error *err) CM_MUST_CHECK;
/* Says where a view's bytes are, once its storage has them. */
void cm_torch_place_view(struct cm_saved_tensor *tensor, const struct cm_saved_tensor *storage);

/* PyTorch's element types: "torch.float32" or "torch.FloatStorage"; CM_UNDEFINED: none of them. */
enum cm_dtype cm_torch_dtype(struct cm_str name);
/* And back, without the "torch."; NULL: it has none. Types without a storage of their own are
 * bytes there. */
const char *cm_torch_dtype_name(enum cm_dtype dtype);
const char *cm_torch_storage_name(enum cm_dtype dtype);

#endif
