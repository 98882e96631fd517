/* What the files that read HDF5 share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BYTES_HDF5_PARTS_H
#define CM_BYTES_HDF5_PARTS_H

#include "base/array.h"
#include "bytes/hdf5.h"

#define CM_HDF5_NONE UINT64_MAX /* an address that leads nowhere */

struct cm_hdf5 {
    struct cm_arena *arena;
    struct cm_str bytes, file;
    uint64_t spent, budget; /* bytes looked at: each part of a file may be read a few times */
    struct cm_map heaps;    /* global heaps that were read, by address, to an index + 1 */
    CM_ARRAY(struct cm_hdf5_heap) heap_list;
    struct cm_error *err;
};

/* Bytes that are read one after the other; beyond the end they are zeros, and cut is set. */
struct cm_hdf5_cursor {
    const char *at, *end;
    bool cut;
};

enum cm_status cm_hdf5_broken(const struct cm_hdf5 *h, const char *what);
/* size bytes at an address of the file, counted. */
enum cm_status cm_hdf5_at(struct cm_hdf5 *h, uint64_t address, uint64_t size,
                          struct cm_hdf5_cursor *out) CM_MUST_CHECK;
uint64_t cm_hdf5_get(struct cm_hdf5_cursor *c, int size); /* a number of 1 to 8 bytes */
struct cm_str cm_hdf5_take(struct cm_hdf5_cursor *c, uint64_t size);

/* An element type. */
struct cm_hdf5_type {
    enum cm_dtype dtype; /* CM_UNDEFINED: none of ours; CM_STRING: texts */
    uint64_t size;       /* of an element */
    bool is_long;        /* texts that are stored apart, in a global heap */
    bool is_opaque;      /* bytes without a meaning, as h5py stores bfloat16 */
};

void cm_hdf5_read_type(struct cm_hdf5_cursor *c, struct cm_hdf5_type *out);
/* false: it is no shape that can be read. */
bool cm_hdf5_read_space(struct cm_hdf5_cursor *c, struct cm_shape *out);
/* The value of an attribute, or an array of texts: data has the elements. */
enum cm_status cm_hdf5_value(struct cm_hdf5 *h, const struct cm_hdf5_type *type,
                             const struct cm_shape *shape, struct cm_str data,
                             const struct cm_item **out, uint64_t *written) CM_MUST_CHECK;

struct cm_hdf5_link {
    struct cm_str name;
    uint64_t address;
};

/* What the messages of an object say. */
struct cm_hdf5_facts {
    struct cm_hdf5 *h;
    struct cm_hdf5_object *object;
    struct cm_hdf5_type type;
    struct cm_shape shape;
    bool has_type, has_shape, has_layout, has_table;
    unsigned layout; /* 0 in the message itself, 1 in one piece, 2 in chunks */
    struct cm_str inside;
    uint64_t address, size, tree, heap;
    uint64_t chunk[CM_MAX_RANK + 1];
    unsigned n_chunk;
    bool is_deflated;
    CM_ARRAY(struct cm_hdf5_link) links;
};

struct cm_hdf5_cursor cm_hdf5_over(struct cm_str bytes);
enum cm_status cm_hdf5_read_header(struct cm_hdf5_facts *p, uint64_t address) CM_MUST_CHECK;
enum cm_status cm_hdf5_unsupported(const struct cm_hdf5_facts *p, const char *what);

#endif
