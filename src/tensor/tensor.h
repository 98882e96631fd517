/* Run-time values: tensors over reference-counted buffers, and the sequences, optionals and maps
 * ONNX builds from them. A tensor is a small struct that points at bytes; copying the struct copies
 * a view, and whoever keeps one takes a reference with cm_tensor_keep. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TENSOR_TENSOR_H
#define CM_TENSOR_TENSOR_H

#include "base/arena.h"
#include "base/status.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

/* Bytes with a reference count. Safe to keep and drop from several threads. */
struct cm_buffer;

typedef void cm_buffer_free_fn(void *owner);

enum { CM_TENSOR_ALIGNMENT = 64 };

/* Where buffers come from, so that a run can count what its kernels make and use it again. */
struct cm_buffer_source {
    enum cm_status (*get)(void *arg, size_t size, struct cm_buffer **out, struct cm_error *err);
    void *arg;
};
/* From now on the buffers that this thread makes come from source, borrowed until the next call;
 * NULL: from the heap. Returns the one before. */
const struct cm_buffer_source *cm_buffer_enter(const struct cm_buffer_source *source);

/* size bytes, aligned, not zeroed; reference count 1. */
enum cm_status cm_buffer_new(size_t size, struct cm_buffer **out,
                             struct cm_error *err) CM_MUST_CHECK;
/* Wraps bytes owned by someone else; free_owner(owner) is called when the last reference goes (may
 * be NULL). */
enum cm_status cm_buffer_wrap(void *data, size_t size, cm_buffer_free_fn *free_owner, void *owner,
                              struct cm_buffer **out, struct cm_error *err) CM_MUST_CHECK;
void *cm_buffer_data(const struct cm_buffer *buffer);
struct cm_buffer *cm_buffer_keep(struct cm_buffer *buffer); /* NULL stays NULL */
void cm_buffer_drop(struct cm_buffer *buffer);
/* Holds other alive for as long as buffer lives: string elements pointing into another tensor. */
enum cm_status cm_buffer_hold(struct cm_buffer *buffer, struct cm_buffer *other,
                              struct cm_error *err) CM_MUST_CHECK;

/* A mark for whoever may hand out bytes for writing: these are only to be read. */
void cm_buffer_protect(struct cm_buffer *buffer);
bool cm_buffer_is_protected(const struct cm_buffer *buffer); /* NULL is not */
/* May the one who asks, and holds a reference, write without anybody noticing? */
bool cm_buffer_is_sole(const struct cm_buffer *buffer);

struct cm_layout; /* how elements lie in memory when not row-major; known to backends alone */

struct cm_tensor {
    enum cm_dtype type;
    void *data;               /* row-major and dense when layout is NULL; NULL before allocation */
    struct cm_buffer *buffer; /* what keeps data alive; NULL when borrowed for the call */
    const struct cm_layout *layout; /* NULL: plain */
    struct cm_shape shape;          /* last: most of its room is never touched */
};

/* A fresh tensor with memory for its elements (strings empty, nothing else initialized). */
enum cm_status cm_tensor_new(enum cm_dtype type, const struct cm_shape *shape,
                             struct cm_tensor *out, struct cm_error *err) CM_MUST_CHECK;
/* Views caller's memory without taking it. */
struct cm_tensor cm_tensor_borrow(enum cm_dtype type, const struct cm_shape *shape, void *data);
void cm_tensor_keep(struct cm_tensor *tensor); /* takes a reference to its buffer */
void cm_tensor_drop(struct cm_tensor *tensor); /* gives it back and zeroes the struct */
void cm_tensor_defer(struct cm_arena *arena, struct cm_tensor *tensor); /* when arena ends */
enum cm_status cm_tensor_copy(const struct cm_tensor *from, struct cm_tensor *out,
                              struct cm_error *err) CM_MUST_CHECK; /* deep, plain layout */

/* Clears the bits of the last byte that no element uses. In all tensors but those that callers lend
 * they are zero, so that equal tensors have equal bytes and no file gets what was in memory. */
void cm_tensor_clear_padding(const struct cm_tensor *tensor);
bool cm_tensor_has_padding(const struct cm_tensor *tensor); /* are there such bits? */
bool cm_tensor_padding_is_clear(const struct cm_tensor *tensor);

int64_t cm_tensor_count(const struct cm_tensor *tensor);
size_t cm_tensor_bytes(const struct cm_tensor *tensor); /* stored, sub-byte types packed */
/* Element i of an integer or bool tensor as int64; of any real number tensor as double. */
int64_t cm_tensor_int(const struct cm_tensor *tensor, int64_t i);
double cm_tensor_real(const struct cm_tensor *tensor, int64_t i);
/* Which axes of a tensor of this rank a Reduce operator reduces. axes: its operand, NULL if it is
 * absent; without axes all are reduced, none with noop. False if an axis, *wrong, is out of range
 * or listed twice. */
bool cm_tensor_reduced_axes(const struct cm_tensor *axes, bool noop, int rank, bool *reduced,
                            int64_t *wrong);
/* Sets element i of a tensor of real numbers, rounded to what its type holds; NaN is 0 in integers.
 */
void cm_tensor_set_real(const struct cm_tensor *tensor, int64_t i, double value);

enum cm_kind {
    CM_KIND_NONE, /* an optional without content, an absent input */
    CM_KIND_TENSOR,
    CM_KIND_SPARSE,
    CM_KIND_SEQUENCE,
    CM_KIND_MAP,
    CM_KIND_OPTIONAL,
    CM_KIND_OPAQUE,
};

/* Any run-time value. An optional with content is that content; without, CM_KIND_NONE. A map is two
 * parallel lists: keys (a tensor of integers or strings) and items. */
struct cm_datum {
    enum cm_kind kind;
    struct cm_datum *items; /* sequence, map: owned, one by one or through list */
    size_t n_items;
    struct cm_list *list; /* NULL: items are this datum's alone; else they are not to be changed */
    struct cm_buffer *room;  /* what such items lie in; NULL: memory of their own, or a list's */
    struct cm_tensor tensor; /* tensor; map: its keys */
};

void cm_datum_drop(struct cm_datum *datum); /* drops what it holds and zeroes the struct */
void cm_datum_defer(struct cm_arena *arena, struct cm_datum *datum); /* when arena ends */
/* A second datum sharing the same buffers. */
enum cm_status cm_datum_share(const struct cm_datum *from, struct cm_datum *out,
                              struct cm_error *err) CM_MUST_CHECK;
/* Gives a datum items of its own, to be changed one by one. */
enum cm_status cm_datum_separate(struct cm_datum *datum, struct cm_error *err) CM_MUST_CHECK;
bool cm_datum_has_strings(const struct cm_datum *datum); /* wherever they are in it */

/* Makes *out a sequence with room for count items, none of them there yet: fill items[n_items] and
 * count n_items up. They must own their bytes. What fails halfway can be dropped. */
enum cm_status cm_sequence_new(size_t count, struct cm_datum *out,
                               struct cm_error *err) CM_MUST_CHECK;
/* Adds item to such a sequence, a reference or, if it only borrows its bytes, a copy; there must be
 * room. */
enum cm_status cm_sequence_add(struct cm_datum *sequence, const struct cm_datum *item,
                               struct cm_error *err) CM_MUST_CHECK;
/* Makes *out what from becomes with item before `position` of it, at most n_items; from stays as it
 * is. At either end that costs, most of the time, the same however long it is. */
enum cm_status cm_sequence_insert(const struct cm_datum *from, size_t position,
                                  const struct cm_datum *item, struct cm_datum *out,
                                  struct cm_error *err) CM_MUST_CHECK;
/* Makes *out what from becomes without the item at position; from stays as it is. At either end
 * that costs, most of the time, the same however long it is. */
enum cm_status cm_sequence_erase(const struct cm_datum *from, size_t position, struct cm_datum *out,
                                 struct cm_error *err) CM_MUST_CHECK;
/* count empty data, dropped with the arena whatever happens. */
struct cm_datum *cm_data_new(struct cm_arena *arena, size_t count);

#endif
