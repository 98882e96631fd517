/* The generated half of the schema module: what tools/gen_schema writes and schema.c searches. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_SCHEMA_SCHEMA_TABLE_H
#define CM_SCHEMA_SCHEMA_TABLE_H

#include "schema/schema.h"

struct cm_schema_domain {
    const char *name; /* "" for ai.onnx */
    int first, last;  /* opset versions */
};

/* The versions of one operator: count rows from first on, newest first. An empty slot has count 0.
 */
struct cm_schema_slot {
    uint16_t first, count;
};

struct cm_schema_table {
    const struct cm_schema *rows;
    size_t row_count;
    const struct cm_schema_domain *domains;
    size_t domain_count;
    /* Open addressing, linear probing. The key's hash is FNV-1a (32 bits) over the domain, a zero
     * byte and the name. No operator lies more than probe_limit slots from its place. */
    const struct cm_schema_slot *slots;
    size_t slot_count; /* a power of two */
    size_t probe_limit;
    size_t longest_name;
};

extern const struct cm_schema_table cm_schema_table;

#endif
