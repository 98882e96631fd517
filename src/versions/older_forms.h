/* Nodes of the newest version of their operator in the form that an older version has, where that
 * takes no other nodes: constants become attributes, or something is left out. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_VERSIONS_OLDER_FORMS_H
#define CM_VERSIONS_OLDER_FORMS_H

#include "graph/import.h"

/* Changes form, which describes node as it stands, into one legal under this opset of ai.onnx.
 * False where there is none here, form being as it was. */
bool cm_older_form(const struct cm_node *node, int64_t opset, struct cm_arena *arena,
                   struct cm_node_form *form);

#endif
