/* How often the dear things were done in a module, for tests that say how often they may be. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_GRAPH_MODULE_COUNTS_H
#define CM_GRAPH_MODULE_COUNTS_H

#include <stddef.h>

struct cm_module;

struct cm_module_counts {
    size_t imports;     /* of models */
    size_t derivatives; /* of values of its graphs; those inside bodies belong to them */
};
struct cm_module_counts *cm_module_counts(struct cm_module *module);

#endif
