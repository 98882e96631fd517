/* What the files of io/ share about the formats of array files. Not for other folders. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_IO_ARRAY_FORMATS_H
#define CM_IO_ARRAY_FORMATS_H

#include "base/file.h"
#include "bytes/zip.h"
#include "io/arrays.h"
#include "io/safetensors.h"

/* What a .npy header says. */
struct cm_npy_header {
    enum cm_dtype type;
    struct cm_shape shape;
    bool column_major;
    size_t width;       /* bytes of one element in the file */
    bool wide_text;     /* strings of UTF-32, not of bytes */
    size_t data_offset; /* where the elements begin */
    size_t data_size;
};

/* Enough bytes for every header that we accept. */
enum { CM_NPY_HEADER_MAX = 1 << 16 };

/* bytes is the beginning of a file of size total. */
enum cm_status cm_npy_read_header(struct cm_str bytes, size_t total, struct cm_npy_header *out,
                                  struct cm_error *err) CM_MUST_CHECK;
/* The elements as a tensor that lives as long as arena; it may stay a view into data. */
enum cm_status cm_npy_read_data(struct cm_arena *arena, const struct cm_npy_header *header,
                                const uint8_t *data, struct cm_tensor *out,
                                struct cm_error *err) CM_MUST_CHECK;

/* The tensor as NumPy can hold it: the bytes before its elements, and the elements, both in
 * scratch or the tensor's own memory. */
struct cm_npy_image {
    struct cm_str header, data;
};
enum cm_status cm_npy_image(struct cm_arena *scratch, const struct cm_tensor *tensor,
                            struct cm_npy_image *out, struct cm_error *err) CM_MUST_CHECK;

/* A tensor with memory that arena gives back at its end. */
enum cm_status cm_arrays_tensor(struct cm_arena *arena, enum cm_dtype type,
                                const struct cm_shape *shape, struct cm_tensor *out,
                                struct cm_error *err) CM_MUST_CHECK;
/* Adds a tensor that lives as long as arena. */
void cm_arrays_add(struct cm_arena *arena, struct cm_arrays *arrays, struct cm_str name,
                   const struct cm_tensor *tensor);

/* Is an array of this name to be loaded, being one of count in its file? If not, it is listed. */
bool cm_arrays_wants(struct cm_arena *arena, const struct cm_arrays_options *options,
                     struct cm_str name, size_t count, struct cm_arrays *out);

/* A member of an .npz file: a .npy file, perhaps deflated. */
struct cm_npz_member {
    size_t count;       /* of the file's members */
    struct cm_str name; /* without its ending */
    struct cm_zip_member zip;
};

typedef enum cm_status cm_npz_visit_fn(void *arg, const struct cm_npz_member *member,
                                       struct cm_error *err);

/* Calls visit for each member, in the order of the directory. limit as in cm_arrays_options. arena
 * is for scratch. */
enum cm_status cm_npz_walk(struct cm_arena *arena, struct cm_str bytes, size_t limit,
                           cm_npz_visit_fn *visit, void *arg, struct cm_error *err) CM_MUST_CHECK;
/* The array's own header, of which the beginning is unpacked: the sizes in the directory are
 * believed only when both agree. */
enum cm_status cm_npz_header(struct cm_arena *scratch, const struct cm_npz_member *member,
                             struct cm_npy_header *out, struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_npz_parse(struct cm_arena *arena, struct cm_str bytes,
                            const struct cm_arrays_options *options, struct cm_arrays *out,
                            struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_npz_write(struct cm_arena *scratch, struct cm_save *save,
                            const struct cm_array *items, size_t count,
                            struct cm_error *err) CM_MUST_CHECK;

enum cm_status cm_safetensors_parse(struct cm_arena *arena, struct cm_str bytes,
                                    const struct cm_arrays_options *options, struct cm_arrays *out,
                                    struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_safetensors_write(struct cm_arena *scratch, struct cm_save *save,
                                    const struct cm_array *items, size_t count,
                                    struct cm_error *err) CM_MUST_CHECK;

#endif
