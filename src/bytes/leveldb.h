/* Tables of LevelDB: keys in order, each with a value. TensorFlow's index files are such tables. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BYTES_LEVELDB_H
#define CM_BYTES_LEVELDB_H

#include "base/file.h"

/* Do these bytes end as a table does? */
bool cm_table_is(struct cm_str bytes);

/* key is good for the call only; value stays: it lies in bytes, or in arena. */
typedef enum cm_status cm_table_visit_fn(void *arg, struct cm_str key, struct cm_str value,
                                         struct cm_error *err);

/* Calls visit for each entry, in order. The check sum of every block is looked at, and that keys
 * ascend. */
enum cm_status cm_table_read(struct cm_arena *arena, struct cm_str bytes, cm_table_visit_fn *visit,
                             void *arg, struct cm_error *err) CM_MUST_CHECK;

struct cm_table_entry {
    struct cm_str key, value;
};
/* Writes a table of entries, whose keys must ascend. */
enum cm_status cm_table_write(struct cm_arena *scratch, struct cm_save *save,
                              const struct cm_table_entry *entries, size_t count,
                              struct cm_error *err) CM_MUST_CHECK;

/* A block that snappy packed. */
enum cm_status cm_snappy_unpack(struct cm_arena *arena, struct cm_str packed, struct cm_str *out,
                                struct cm_error *err) CM_MUST_CHECK;

#endif
