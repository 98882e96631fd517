/* Tensors as container formats store them: pieces of mapped files, perhaps packed, that are read as
 * if they were one row of elements. Bytes stay in the files until they are wanted. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BYTES_SAVED_TENSOR_H
#define CM_BYTES_SAVED_TENSOR_H

#include "base/array.h"
#include "base/file.h"
#include "tensor/tensor.h"

enum cm_packing { CM_PACKED_NOT, CM_PACKED_ZSTD, CM_PACKED_ZLIB, CM_PACKED_GZIP };

/* A part of a tensor that lies in one place: a box of it, or a run of its elements in row-major
 * order. Pieces may overlap only where they hold the same. */
struct cm_saved_piece {
    struct cm_str bytes; /* in a mapped file (or in memory); its size was checked to hold all that
                            size and stride reach, unless it is packed */
    enum cm_packing packing; /* of bytes as a whole; unpacked they are unpacked_size bytes */
    size_t unpacked_size;
    int64_t offset; /* of the first element in bytes, or in what they unpack to; in elements */
    bool is_run;    /* elements first[0] .. first[0] + size[0] of the tensor, laid out in a row */
    int64_t *first; /* by axis of the tensor (one of a run): where the box begins */
    int64_t *size;
    int64_t *stride;    /* in elements of bytes, 0 or more; NULL: dense in row-major order */
    struct cm_str file; /* that it came from, beside the checkpoint's path; for people */
};

/* Where mapped files are in memory. */
struct cm_saved_mapped {
    CM_ARRAY(struct cm_str);
};

struct cm_saved_tensor {
    enum cm_dtype dtype;
    struct cm_shape shape; /* its count was checked (cm_shape_count) */
    CM_ARRAY(struct cm_saved_piece) pieces;
    bool zero_elsewhere; /* elements in none of the pieces are 0; else the pieces cover it */
    /* Two tensors with the same key share their memory in the framework (tied); 0: nobody knows. */
    uint64_t storage;
    /* The mapped files that it may lie in, whose memory is given back as it is read; NULL: none. */
    const struct cm_saved_mapped *home;
};

/* A dense tensor in one piece; refuses one whose bytes do not have the size that it needs. */
enum cm_status cm_saved_tensor_new(struct cm_arena *arena, enum cm_dtype dtype,
                                   const struct cm_shape *shape, struct cm_str bytes,
                                   struct cm_str file, struct cm_saved_tensor **out,
                                   struct cm_error *err) CM_MUST_CHECK;
/* A tensor of one element and no axes: a number, rounded to the type; or the bytes of one. */
struct cm_saved_tensor *cm_saved_scalar(struct cm_arena *arena, enum cm_dtype dtype, double value);
struct cm_saved_tensor *cm_saved_int(struct cm_arena *arena, int64_t value);
/* Zeros in the shape and type of a tensor. */
struct cm_saved_tensor *cm_saved_zeros(struct cm_arena *arena, const struct cm_saved_tensor *like);
/* Adds a piece with room for its first, size and stride (zeroed; stride NULL unless wanted). */
struct cm_saved_piece *cm_saved_piece_add(struct cm_arena *arena, struct cm_saved_tensor *tensor,
                                          bool with_stride);
/* Do the pieces lie inside the tensor, have the bytes they need, and cover all of it? Readers call
 * it for each tensor of more than one piece, or of a piece they did not get from
 * cm_saved_tensor_new. */
enum cm_status cm_saved_tensor_check(struct cm_arena *scratch, const struct cm_saved_tensor *tensor,
                                     struct cm_error *err) CM_MUST_CHECK;

/* Elements [first, first + count) in row-major order, as bytes of the tensor's own type. Needs no
 * memory beside out but for packed pieces, of which the last one unpacked is kept in `reader`
 * (zeroed at first, released by the caller). */
struct cm_saved_reader {
    const struct cm_saved_piece *unpacked;
    uint8_t *bytes;
};
void cm_saved_reader_release(struct cm_saved_reader *reader);
enum cm_status cm_saved_tensor_read(struct cm_saved_reader *reader,
                                    const struct cm_saved_tensor *tensor, int64_t first,
                                    int64_t count, void *out, struct cm_error *err) CM_MUST_CHECK;
/* All of it that lies in mapped files is no longer needed in memory. */
void cm_saved_tensor_forget(const struct cm_saved_tensor *tensor);
/* How many bytes to read at a time, so that few pages of mapped files are in memory at once. More
 * for a tensor whose neighbouring elements lie apart: each part goes through all of the source. */
size_t cm_saved_tensor_part(const struct cm_saved_tensor *tensor);
/* Hands the bytes of elements to `sink`, part by part; or writes them to what is being saved. */
typedef enum cm_status cm_saved_sink_fn(void *arg, const void *bytes, size_t size,
                                        struct cm_error *err);
enum cm_status cm_saved_elements_each(const struct cm_saved_tensor *tensor, int64_t first,
                                      int64_t count, cm_saved_sink_fn *sink, void *arg,
                                      struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_saved_elements_write(struct cm_save *save, const struct cm_saved_tensor *tensor,
                                       int64_t first, int64_t count,
                                       struct cm_error *err) CM_MUST_CHECK;
/* All of a tensor. */
enum cm_status cm_saved_tensor_write(struct cm_save *save, const struct cm_saved_tensor *tensor,
                                     struct cm_error *err) CM_MUST_CHECK;
/* What a packed piece holds, unpacked_size bytes. */
enum cm_status cm_unpack(const struct cm_saved_piece *piece, uint8_t *out,
                         struct cm_error *err) CM_MUST_CHECK;
/* The one element of a scalar as a number. */
bool cm_saved_tensor_number(const struct cm_saved_tensor *tensor, double *out);

#endif
