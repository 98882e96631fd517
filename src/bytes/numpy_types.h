/* Types of arrays as NumPy calls them: files of many formats name them so. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BYTES_NUMPY_TYPES_H
#define CM_BYTES_NUMPY_TYPES_H

#include "tensor/dtype.h"

/* The type of an array by its name, "float32", or by its code, "<f4". */
bool cm_numpy_dtype(struct cm_str name, enum cm_dtype *out);
/* The type by its code without the byte order, "f4". */
bool cm_numpy_dtype_of(struct cm_str code, enum cm_dtype *out);
const char *cm_numpy_name(enum cm_dtype dtype);     /* "float32"; NULL: NumPy has none */
const char *cm_numpy_code(enum cm_dtype dtype);     /* "<f4"; of ml_dtypes the name */
const char *cm_numpy_own_code(enum cm_dtype dtype); /* "<f4"; NULL: NumPy alone has none */

#endif
