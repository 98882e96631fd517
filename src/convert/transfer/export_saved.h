/* A model's weights and training as another framework saves them. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_EXPORT_SAVED_H
#define CM_CONVERT_EXPORT_SAVED_H

#include "convert/format.h"
#include "convert/match/parts.h"
#include "graph/originals.h"
#include "onnx/model_file.h"

struct cm_checkpoint_export {
    const char *to;            /* name of a format */
    bool weights_only;         /* no optimizer */
    const atomic_bool *cancel; /* NULL: none */
};

struct cm_export_report {
    const struct cm_format *format;
    const struct cm_saved *saved; /* what was written */
    struct cm_saved_texts notes;  /* sentences: what the receiver must know or set himself */
};

/* Gathers and writes; path NULL: only gathers, and tells what would be written. A format of another
 * framework than the training came from gets the tensors as the graph has them, and the optimizer
 * if its arithmetic is expressible there. */
enum cm_status cm_export(struct cm_arena *arena, const struct cm_model_file *file, const char *path,
                         const struct cm_checkpoint_export *options,
                         struct cm_export_report *report, struct cm_error *err) CM_MUST_CHECK;

/* ---- the parts of it; not for other folders ---- */

/* Frameworks that call and lay out tensors alike, and compute alike. */
enum cm_family { CM_FAMILY_NONE, CM_FAMILY_TORCH, CM_FAMILY_KERAS, CM_FAMILY_JAX, CM_FAMILY_ORT };
/* Of a system by its name: "PyTorch Lightning"; NULL, and Cameo's own: none. */
enum cm_family cm_family_of(const char *system);

/* export_tensors.c: `as_graph` leaves tensors as they are in the graph, under the framework's name
 * where one tensor of the framework became one of the graph; `own_names` calls them as the graph
 * does. */
struct cm_gathering {
    bool as_graph, own_names;
    bool optimizer; /* is written too */
    bool originals; /* under the names and in the layouts that PyTorch's exporters recorded .. */
    struct cm_saved_texts *notes; /* .. and what is left out: sentences */
};
/* What the model holds as if a framework had saved it: weights under the framework's names with the
 * exporter's changes undone, slots, groups, schedule, position. For a model that was never
 * imported: its initializers by their own names, the optimizer as prepare wrote it. Bytes stay the
 * model's. What the optimizer is may be unknown: then has_optimizer is false, and `missing` says
 * so. */
enum cm_status cm_gather(struct cm_arena *arena, const struct cm_model_file *file,
                         struct cm_gathering how, struct cm_saved **out,
                         struct cm_error *err) CM_MUST_CHECK;

/* export_originals.c: how an initializer is made of tensors of the network that was exported;
 * false: that is not known, or cannot be undone. The last n_aliases parts are further names of the
 * first.
 */
bool cm_original_parts(struct cm_arena *arena, const struct cm_originals *originals,
                       const struct cm_graph_proto *graph, const struct cm_tensor_proto *proto,
                       struct cm_parts *out, size_t *n_aliases);
/* Does the network save a tensor that is this initializer, or that it was made of? */
enum cm_belonging { CM_BELONGS_NOT, CM_BELONGS, CM_BELONGS_PERHAPS };
enum cm_belonging cm_original_belongs(const struct cm_originals *originals, struct cm_str name);
/* One sentence for each key of the network that is not written. written: initializers that are
 * written under their own names; keys: all that is. */
void cm_note_originals(struct cm_arena *arena, const struct cm_originals *originals,
                       const struct cm_graph_proto *graph, const struct cm_map *written,
                       const struct cm_map *keys, struct cm_saved_texts *notes);

/* export_fit.c: the optimizer as the framework of `to` has it: slots under its words. Fails with
 * the reason where its arithmetic cannot be had there. */
enum cm_status cm_export_fit(struct cm_saved *saved, const struct cm_format *format,
                             enum cm_family to, struct cm_saved_texts *notes,
                             struct cm_error *err) CM_MUST_CHECK;

/* export_prepared.c: the optimizer of a model that was prepared with flags, from the names that its
 * numbers have; weights: names of initializers. false: it was not. */
bool cm_export_prepared(struct cm_arena *arena, const struct cm_model_file *file,
                        const struct cm_training_proto *training, const struct cm_map *weights,
                        struct cm_saved *saved);
/* Which slot, in PyTorch's words, a state variable of such a model is, and of which weight; NULL:
 * none. */
const char *cm_prepared_slot(struct cm_str state, struct cm_str *weight);

#endif
