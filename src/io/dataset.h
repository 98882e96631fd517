/* Data to train on: named arrays whose first axis counts samples, read a batch at a time. Files are
 * mapped or streamed, never loaded whole; the order of an epoch follows from a seed alone. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_IO_DATASET_H
#define CM_IO_DATASET_H

#include "tensor/tensor.h"

struct cm_dataset;

/* One array of the set: the type and shape of a sample (without the first axis). */
struct cm_dataset_field {
    struct cm_str name;
    enum cm_dtype type;
    struct cm_shape sample;
};

struct cm_dataset_options {
    /* CSV: "x=a,b,c y=label", which columns make which array. NULL: all but the last are "x", the
     * last is "y". first..last takes a range, * those that are left, x:double=.. sets the type;
     * names with blanks go in double quotes. IDX: "x=images y=labels" is what NULL means. */
    const char *columns;
    unsigned flags; /* CM_FOLLOW_LINKS: files in a folder may be behind links */
};

/* Several as one: the samples of each path follow those of the path before it. All must have the
 * same arrays, with samples of the same types and shapes. The name of a path tells its format:
 * .npz, .npy, .safetensors, .csv, a folder of .npy files, or IDX files (a folder with one pair or
 * with train-images.. and train-labels.., or "images:labels"). Every array must have the same
 * number of samples. Files are mapped; what must be unpacked (deflated arrays, CSV) is written once
 * to a temporary file when it is large. */
enum cm_status cm_dataset_open(const char *const *paths, size_t count,
                               const struct cm_dataset_options *options, struct cm_dataset **out,
                               struct cm_error *err) CM_MUST_CHECK;
/* An array in memory, which stays where it is and must outlive the data set. */
struct cm_dataset_array {
    struct cm_str name;
    enum cm_dtype type;
    struct cm_shape shape; /* its first axis counts samples */
    const void *data;
    size_t stride;     /* bytes from sample to sample, each of them dense; 0: all is dense */
    bool column_major; /* all of it, and dense */
};
enum cm_status cm_dataset_of_arrays(const struct cm_dataset_array *arrays, size_t count,
                                    struct cm_dataset **out, struct cm_error *err) CM_MUST_CHECK;
void cm_dataset_close(struct cm_dataset *dataset);
size_t cm_dataset_field_count(const struct cm_dataset *dataset);
const struct cm_dataset_field *cm_dataset_field(const struct cm_dataset *dataset, size_t i);
int cm_dataset_find(const struct cm_dataset *dataset, struct cm_str name); /* -1: none */
int64_t cm_dataset_samples(const struct cm_dataset *dataset);
struct cm_str cm_dataset_columns(const struct cm_dataset *dataset); /* the option, or "" */

/* How a field is to be given instead, for a model that wants it so: values converted (a number that
 * the type cannot hold exactly is an error when it is met, floats are rounded), the sample's shape
 * another one of as many elements, (value - mean) / std unless std is 0. */
struct cm_dataset_view {
    enum cm_dtype type;
    struct cm_shape sample;
    double mean, std;
};

/* Counts for feeds made afterwards, and shows in cm_dataset_field. */
enum cm_status cm_dataset_present(struct cm_dataset *dataset, size_t i,
                                  const struct cm_dataset_view *view,
                                  struct cm_error *err) CM_MUST_CHECK;

/* The type that field i has in its file, whatever its view. */
enum cm_dtype cm_dataset_stored_type(const struct cm_dataset *dataset, size_t i);

/* One sample of field i as its view gives it; to has room for that. */
enum cm_status cm_dataset_read(const struct cm_dataset *dataset, size_t i, int64_t sample, void *to,
                               struct cm_error *err) CM_MUST_CHECK;

enum cm_last_batch {
    CM_LAST_SHORT, /* what is left */
    CM_LAST_DROP,  /* none */
    CM_LAST_WRAP,  /* filled up from the beginning of the same epoch's order */
};

struct cm_feed_options {
    int64_t batch_size;
    bool shuffle;
    uint64_t seed;
    enum cm_last_batch last;
    bool endless;  /* with a number of steps: goes on with the next epoch in the middle of a batch,
                      as if the data were repeated */
    bool prefetch; /* the next batch is read on a thread of its own meanwhile */
};

/* Where a feed stands: all of it, so that a checkpoint can go on from here. The order of an epoch
 * follows from the seed and its number. */
struct cm_feed_position {
    uint64_t epoch;
    int64_t sample; /* of the epoch's order, the next to be given; the number of samples at its end
                     */
};

struct cm_feed;
enum cm_status cm_feed_new(struct cm_dataset *dataset, const struct cm_feed_options *options,
                           struct cm_feed **out, struct cm_error *err) CM_MUST_CHECK;
void cm_feed_free(struct cm_feed *feed);
/* The next batch: one tensor per field, borrowed until the next call. *n is 0 at the end of an
 * epoch (then the next call begins the next one), never when endless. After a failure only
 * cm_feed_seek and cm_feed_free are of use. */
enum cm_status cm_feed_next(struct cm_feed *feed, const struct cm_tensor **batch, int64_t *n,
                            struct cm_error *err) CM_MUST_CHECK;
struct cm_feed_position
cm_feed_position(const struct cm_feed *feed); /* after the batch given last */
enum cm_status cm_feed_seek(struct cm_feed *feed, struct cm_feed_position position,
                            struct cm_error *err) CM_MUST_CHECK;
int64_t cm_feed_batches(const struct cm_feed *feed); /* per epoch */

#endif
