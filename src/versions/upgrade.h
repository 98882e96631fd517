/* Brings nodes of older operator versions to the newest, so that the rest of the house knows one
 * version of each operator. Every change of an operator from one version to the next is a row: a
 * step that rewrites the node, or the statement that nothing changes. A change without a row is
 * refused by name; nothing is passed through in the hope that it means the same.
 *
 * What cannot be said in the newest version (a mode that was taken out) is refused with the reason.
 * The file's own bytes are never touched: this is about the working copy. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_VERSIONS_UPGRADE_H
#define CM_VERSIONS_UPGRADE_H

#include "graph/builder.h"

/* A cm_upgrade_fn (graph/import.h): give it to cm_module_import as options.upgrade. */
enum cm_status cm_upgrade_node(struct cm_builder *builder, struct cm_node_spec *spec,
                               const struct cm_schema *from, cm_value *outputs);

/* A cm_adopts_fn: the operators that ONNX Runtime adds to ai.onnx, where its optimizer and model
 * builder, and converters long ago, use them without saying so, and those of com.microsoft.nchwc.
 * They become the standard operators they stand for. */
bool cm_upgrade_adopts(struct cm_str domain, struct cm_str op_type);

enum cm_upgrade_kind {
    CM_UPGRADE_MISSING, /* no row: nodes of older versions are refused */
    CM_UPGRADE_SAME,    /* more types or attributes, old nodes mean what they meant */
    CM_UPGRADE_CHANGED, /* a step rewrites the node */
};

/* What is known of the change that made version `to` of an operator out of the one before it. */
enum cm_upgrade_kind cm_upgrade_known(struct cm_str domain, struct cm_str op, int to);

#endif
