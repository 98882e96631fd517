/* Rows of the arrays of a data set: where they lie in a mapped file and how they are copied out, in
 * any order, by several threads at once. Not for other folders. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_IO_ROWS_H
#define CM_IO_ROWS_H

#include "base/array.h"
#include "base/file.h"
#include "io/dataset.h"

/* One array. A sample is `elements` numbers of `type`, the first at data + i * stride; from one to
 * the next it is a step in bytes, unless the array is column-major. */
struct cm_rows {
    struct cm_str name;
    enum cm_dtype type;
    struct cm_shape sample;
    int64_t count;       /* samples */
    int64_t elements;    /* of a sample */
    const uint8_t *data; /* borrowed: lives as long as the data set */
    size_t stride;       /* bytes from sample to sample */
    bool big_endian;
    bool column_major;
    struct cm_dataset_view view; /* as it is given out */
    const struct cm_rows *next;  /* samples that follow, of another file; NULL: none */
};

struct cm_rows_list {
    CM_ARRAY(struct cm_rows);
};

/* Adds an array whose first axis counts samples; fails when it has none or cannot be cut there. */
enum cm_status cm_rows_add(struct cm_arena *arena, struct cm_rows_list *list, struct cm_str name,
                           enum cm_dtype type, const struct cm_shape *shape, const uint8_t *data,
                           struct cm_rows **out, struct cm_error *err) CM_MUST_CHECK;
/* Bytes of one sample as the view gives it; false on overflow. */
bool cm_rows_view_bytes(const struct cm_rows *rows, size_t *out);
enum cm_status cm_rows_check_view(const struct cm_rows *rows, const struct cm_dataset_view *view,
                                  struct cm_error *err) CM_MUST_CHECK;
/* Sample i as its view gives it. */
enum cm_status cm_rows_read(const struct cm_rows *rows, int64_t i, void *to,
                            struct cm_error *err) CM_MUST_CHECK;

/* A file of arrays. Its bytes live as long as the arena; what a format unpacks does too. */
struct cm_rows_file {
    struct cm_arena *arena;
    struct cm_str name; /* of an array, where the format has one without a name */
    struct cm_str bytes;
    const char *columns; /* the option; NULL: none */
};

/* The formats. */
typedef enum cm_status cm_rows_fn(const struct cm_rows_file *file, struct cm_rows_list *out,
                                  struct cm_error *err);
cm_rows_fn cm_rows_npz, cm_rows_npy, cm_rows_safetensors, cm_rows_csv, cm_rows_idx;

/* Those that a file has by its ending, as messages list them. */
struct cm_rows_format {
    const char *ending; /* NULL ends the list */
    cm_rows_fn *read;
};
extern const struct cm_rows_format cm_rows_formats[];

/* What --columns says: arrays and the columns that make them. */
struct cm_column_range {
    struct cm_str first, last; /* the same one for a single column */
    bool rest;                 /* all that no other names */
};

struct cm_column_array {
    struct cm_str name;
    enum cm_dtype type; /* CM_UNDEFINED: as the columns are */
    CM_ARRAY(struct cm_column_range);
};

struct cm_column_arrays {
    CM_ARRAY(struct cm_column_array);
};

enum cm_status cm_columns_parse(struct cm_arena *arena, const char *text,
                                struct cm_column_arrays *out, struct cm_error *err) CM_MUST_CHECK;

#endif
