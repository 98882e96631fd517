/* Files of arrays: NumPy's .npy and .npz, .safetensors, and ONNX's .pb messages, as named values
 * and back. Files are mapped and values stay views into them where alignment allows, so opening
 * costs little whatever the size; what must be converted (compressed, column-major, text) is
 * copied.
 *
 * Every byte is checked: sizes against the file before anything is allocated, compressed sizes
 * against what deflate can reach. Refused with a reason: big-endian numbers, pickled objects,
 * structured types, types that ONNX has not. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_IO_ARRAYS_H
#define CM_IO_ARRAYS_H

#include "base/arena.h"
#include "base/array.h"
#include "tensor/tensor.h"

struct cm_array {
    struct cm_str name; /* "" in .npy, which has none */
    struct cm_datum value;
    bool unread; /* listed only: see cm_arrays_options.names */
};

struct cm_arrays {
    CM_ARRAY(struct cm_array);
};

enum cm_array_format {
    CM_ARRAYS_BY_NAME, /* by the ending of the path */
    CM_ARRAYS_NPY,
    CM_ARRAYS_NPZ,
    CM_ARRAYS_SAFETENSORS,
    CM_ARRAYS_PB,
};

struct cm_arrays_options {
    enum cm_array_format format;
    enum cm_kind kind; /* .pb does not say what it holds; CM_KIND_NONE: a tensor */
    bool copy;         /* read the file into memory instead of mapping it */
    size_t limit;      /* bytes that unpacking may take; 0: what the file's size allows */
    /* Only arrays of these names are loaded, the others are listed without a value. NULL: all are
     * loaded. */
    const struct cm_str *names;
    size_t n_names;
    bool or_alone; /* and one that is alone in its file */
};

/* The format that the ending of path stands for; CM_ARRAYS_BY_NAME: none. */
enum cm_array_format cm_arrays_format(const char *path);

/* Values live as long as arena, which drops them. options may be NULL. */
enum cm_status cm_arrays_open(struct cm_arena *arena, const char *path,
                              const struct cm_arrays_options *options, struct cm_arrays *out,
                              struct cm_error *err) CM_MUST_CHECK;
/* The same from memory, which must outlive arena. The format must be given. */
enum cm_status cm_arrays_parse(struct cm_arena *arena, struct cm_str bytes,
                               const struct cm_arrays_options *options, struct cm_arrays *out,
                               struct cm_error *err) CM_MUST_CHECK;

/* Writes path, whole or not at all. .npy and .pb hold one value; .npy, .npz and .safetensors hold
 * tensors. Types that NumPy has not are widened in .npy and .npz: narrow floats to float32, narrow
 * integers to bytes. scratch is free for reuse afterwards. */
enum cm_status cm_arrays_save(struct cm_arena *scratch, const char *path,
                              const struct cm_array *items, size_t count,
                              struct cm_error *err) CM_MUST_CHECK;
/* The same for a file whose name we chose, in the user's folder: refuses a link of that name. */
enum cm_status cm_arrays_save_inside(struct cm_arena *scratch, const char *path,
                                     const struct cm_array *items, size_t count,
                                     struct cm_error *err) CM_MUST_CHECK;

#endif
