/* Checking what a model holds of its training beside training_info: modes of nodes, metadata. */
// SPDX-License-Identifier: Apache-2.0
#include "api/checking.h"

#include "check/check.h"
#include "convert/transfer/hold.h"
#include "models/inference_modes.h"

void cm_api_check_held(const struct cm_model_file *file, unsigned flags,
                       struct cm_findings *findings)
{
    struct cm_findings found = {.arena = findings->arena};
    struct cm_modes modes;

    cm_modes_find(found.arena, file, &modes);
    for (size_t i = 0; i < modes.nodes.count; i++)
        cm_findings_judge(&found, "ST30", modes.nodes.items[i], "the node is in training mode");
    cm_hold_check(found.arena, file, &found);
    if (found.count)
        cm_check_add_inferred(&file->model, flags, &found, findings);
}
