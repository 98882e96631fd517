/* What tests of data sets share. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_DATASET_CASE_H
#define CM_TESTS_DATASET_CASE_H

#include "base/folder.h"
#include "io/dataset.h"

/* Writes a file of these bytes into folder; returns its path in buffer of FOLDER_PATH_SIZE. */
char *dataset_file(const struct folder *folder, const char *name, const void *bytes, size_t size,
                   char *buffer);
/* Writes x (float, samples of 2: i, -i) and y (int64: i * 10) with n samples, by the ending of
 * name. */
char *dataset_pair(const struct folder *folder, const char *name, int64_t n, char *buffer);
/* Opens what must be fine. */
struct cm_dataset *dataset_open(const char *path, const char *columns);
/* Opening must fail with this. */
void dataset_refused(const char *path, const char *columns, enum cm_status status,
                     const char *part);
/* Values of one field, in file order, as numbers; the count must be n. */
void dataset_values(struct cm_dataset *dataset, size_t field, double *values, int64_t n);

#endif
