/* Tensor contents in files beside the model. Locations come from the model and are confined to its
 * folder; offsets and lengths are checked against the file; each file is mapped once. Any
 * number of threads may ask for them. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_ONNX_EXTERNAL_H
#define CM_ONNX_EXTERNAL_H

#include "base/file.h"
#include "onnx/messages.h"

/* The keys of an external tensor, parsed. */
struct cm_external_place {
    struct cm_str location;
    uint64_t offset;
    uint64_t length;
    bool has_length;
};

/* Refuses: no location, repeated keys, offset or length that are not plain numbers. Unknown keys
 * are left alone. */
enum cm_status cm_external_place(const struct cm_tensor_proto *proto, struct cm_external_place *out,
                                 struct cm_error *err) CM_MUST_CHECK;

struct cm_external_files;

/* Unmapped at the end of arena, which is not needed for more: files may be opened when no guard is
 * there. folder is the model's, "" for one in memory: nothing can be opened then. flags as for
 * cm_file_open_beneath; copy as for cm_file_map. */
struct cm_external_files *cm_external_files_new(struct cm_arena *arena, struct cm_str folder,
                                                unsigned flags, bool copy);
/* The bytes of an external tensor: need is what its type and shape call for; a length that differs
 * is refused. */
enum cm_status cm_external_view(struct cm_external_files *files,
                                const struct cm_tensor_proto *proto, uint64_t need,
                                struct cm_str *out, struct cm_error *err) CM_MUST_CHECK;

/* The same wherever the place came from, its length not looked at: is the file there, and does it
 * reach far enough? */
enum cm_status cm_external_range(struct cm_external_files *files,
                                 const struct cm_external_place *place, uint64_t need,
                                 struct cm_str *out, struct cm_error *err) CM_MUST_CHECK;

/* A whole file by its location, and what tells it from others; opens it when that was not done
 * before. */
/* The ranges of all files that are mapped, the model's own among them, in arena. */
struct cm_mapped_ranges {
    struct cm_str *items;
    size_t count;
};
struct cm_mapped_ranges cm_external_ranges(struct cm_arena *arena,
                                           const struct cm_external_files *files);
/* The model's own file, borrowed; it may be a copy, or none. */
void cm_external_set_model(struct cm_external_files *files, const struct cm_mapping *mapping);
/* Contents that were copied: see cm_mapped_forget. */
void cm_external_forget(const struct cm_external_files *files, const void *bytes, size_t size);

struct cm_external_file {
    struct cm_str bytes;
    uint64_t device, inode;
};
enum cm_status cm_external_file(struct cm_external_files *files, struct cm_str location,
                                struct cm_external_file *out, struct cm_error *err) CM_MUST_CHECK;

#endif
