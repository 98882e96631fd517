/* HDF5 files as Keras has them: groups, arrays and attributes.
 *
 * libhdf5 is not used: it opens files, not bytes in a mapped file or in a zip, it copies what it
 * reads, and it was not made for files of strangers. What Keras and h5py write is a small part of
 * HDF5, and arrays that lie in one piece are views into the file here. What is not read says so:
 * offsets of other sizes than 8, groups and attributes in fractal heaps (more than 8 attributes, or
 * groups made with track_order), filters other than deflate, external and virtual data. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BYTES_HDF5_H
#define CM_BYTES_HDF5_H

#include "base/array.h"
#include "base/file.h"
#include "base/map.h"
#include "bytes/item.h"
#include "bytes/saved_tensor.h"

struct cm_hdf5_attribute {
    struct cm_str name;
    const struct cm_item *value; /* texts, numbers, lists of them; none: of another kind */
    uint64_t written;            /* of a text that is stored apart: grows in the order of writing */
};

struct cm_hdf5_object {
    struct cm_str name, path; /* "/layers/dense"; of the root empty */
    uint64_t address;
    bool is_group;
    CM_ARRAY(struct cm_hdf5_object *) children; /* sorted by name */
    CM_ARRAY(struct cm_hdf5_attribute) attributes;
    struct cm_saved_tensor *tensor; /* of an array; NULL: of a type that is not read */
    const struct cm_item *texts;    /* of an array of texts */
};

bool cm_hdf5_is(struct cm_str head);
/* All objects of the file; file is its name for people. */
enum cm_status cm_hdf5_read(struct cm_arena *arena, struct cm_str bytes, struct cm_str file,
                            struct cm_hdf5_object **root, struct cm_error *err) CM_MUST_CHECK;
/* The child, or NULL; the attribute, or NULL. */
const struct cm_hdf5_object *cm_hdf5_child(const struct cm_hdf5_object *group, const char *name);
const struct cm_hdf5_object *cm_hdf5_find(const struct cm_hdf5_object *root, struct cm_str path);
const struct cm_hdf5_attribute *cm_hdf5_attribute(const struct cm_hdf5_object *object,
                                                  const char *name);

/* ---- writing ---- */

/* An array to write, under a path of groups that come into being; or with no tensor a group. */
struct cm_hdf5_output {
    struct cm_str path; /* "layers/dense/vars/0" */
    const struct cm_saved_tensor *tensor;
    struct cm_str name; /* attribute "name" of it; empty: none */
};
/* Writes a file of outputs to what save has open, as h5py would: version 0. Paths must differ. */
enum cm_status cm_hdf5_write(struct cm_arena *scratch, struct cm_save *save,
                             const struct cm_hdf5_output *outputs, size_t count,
                             struct cm_error *err) CM_MUST_CHECK;

#endif
