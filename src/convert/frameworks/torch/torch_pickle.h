/* Tensors and storages of PyTorch in pickles. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_TORCH_PICKLE_H
#define CM_CONVERT_TORCH_PICKLE_H

#include "bytes/pickle.h"

/* The names that PyTorch's pickles call. */
extern const struct cm_pickle_known cm_torch_pickle_names[];
extern const size_t cm_torch_pickle_name_count;

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
