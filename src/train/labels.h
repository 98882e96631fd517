/* Labels that no class has, found before the first step. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TRAIN_LABELS_H
#define CM_TRAIN_LABELS_H

#include "io/dataset.h"
#include "train/trainer.h"

struct cm_findings;
struct cm_graph;

/* Notes which inputs of graph a loss reads as class numbers, and how many classes there are, while
 * its losses are still nodes of it. */
void cm_labels_note(struct cm_trainer *trainer, const struct cm_graph *graph);

/* Looks at every sample of the field that will feed this input, if that holds labels. */
void cm_labels_check(const struct cm_trainer *trainer, size_t input,
                     const struct cm_dataset *dataset, size_t field, struct cm_findings *findings);

#endif
