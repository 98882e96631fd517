/* Backends by name. The list of them is generated. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/backend.h"

const struct cm_backend *cm_backend_find(const char *name)
{
    for (size_t i = 0; i < cm_backend_count; i++)
        if (strcmp(cm_backends[i]->name, name) == 0)
            return cm_backends[i];
    return NULL;
}
