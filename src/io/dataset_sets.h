/* What a data set is inside. Not for other folders. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_IO_DATASET_SETS_H
#define CM_IO_DATASET_SETS_H

#include "io/rows.h"

struct cm_dataset {
    struct cm_arena arena;
    struct cm_rows_list rows;
    struct cm_dataset_field *fields; /* one per row list item, as its view gives it */
    int64_t samples;
    struct cm_str columns; /* the option */
};

#endif
