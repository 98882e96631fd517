/* What TrainingInfoProto has no field for, kept in the model all the same:
 * docs/training-information.md is the description. Entries of metadata_props, their values JSON:
 *
 * of the algorithm graph of the training
 *   ai.cameo.training.source     where it came from: {"system", "format", "version"}
 *   ai.cameo.training.optimizer  {"name", "rule", "arithmetic", "groups": [{"names": [..],
 * "initializers":
 *                                [..], settings ..}], "clip": {..}, "accumulate"}
 *   ai.cameo.training.schedule   {"name", "offset", "phases": [..]}
 *   ai.cameo.training.position   {"step": name of the state variable, "epoch", "samples"}
 *   ai.cameo.training.facts      everything else, by key: arguments, random generators, loops, ..
 *   ai.cameo.training.kept       [{"name", "role", "slot", "initializer"}]: tensors that no node
 * reads, initializers of the algorithm: buffers, averages, random states of a tensor
 *   ai.cameo.training.parts      how it is made of the framework's tensors (convert/match/parts.h);
 * written for each that came from a checkpoint ai.cameo.training.slot       of a state variable:
 * {"of": initializer, "slot": the framework's word, "meaning": PyTorch's}
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_HOLD_H
#define CM_CONVERT_HOLD_H

#include "base/diagnostics.h"
#include "convert/match/parts.h"
#include "onnx/model_file.h"

#define CM_HOLD_PREFIX "ai.cameo.training."

/* Sets or replaces one entry of metadata; the value is printed as JSON. */
void cm_hold_set(struct cm_arena *arena, struct cm_msg *msg, int field, struct cm_entries *entries,
                 const char *key, const struct cm_item *value);

/* An initializer of the model that came from a checkpoint. */
void cm_hold_parts(struct cm_arena *arena, struct cm_tensor_proto *tensor,
                   const struct cm_parts *parts);
void cm_hold_slot(struct cm_arena *arena, struct cm_tensor_proto *tensor, struct cm_str of,
                  struct cm_str slot, const char *meaning);

/* A group's initializers, by number of the group in saved. */
struct cm_hold_group {
    struct cm_str *initializers;
    size_t count;
};
/* All of saved but for its tensors, into the algorithm of entry `entry`. `step`: the state variable
 * that counts updates. */
enum cm_status cm_hold_training(struct cm_model_file *file, size_t entry,
                                const struct cm_saved *saved, const struct cm_hold_group *groups,
                                struct cm_str step, struct cm_error *err) CM_MUST_CHECK;

/* The same as one item, {"optimizer": .., "schedule": ..}, for files of other formats that let one
 * add something: what the format itself has no place for. And back: groups, clipping, schedule and
 * counts become those. */
struct cm_item *cm_hold_item(struct cm_arena *arena, const struct cm_saved *saved);
enum cm_status cm_hold_recall(struct cm_saved *saved, const struct cm_item *item,
                              struct cm_error *err) CM_MUST_CHECK;
/* The same as a text of JSON inside another item, under the key "cameo"; NULL, or anything else, is
 * left alone. */
struct cm_item *cm_hold_text(struct cm_arena *arena, const struct cm_saved *saved);
enum cm_status cm_hold_recall_text(struct cm_saved *saved, const struct cm_item *text,
                                   struct cm_error *err) CM_MUST_CHECK;

/* A tensor that no node reads, as an initializer of the algorithm. */
struct cm_contents;
enum cm_status cm_hold_keep(struct cm_model_file *file, size_t entry,
                            const struct cm_saved_entry *what, const struct cm_contents *contents,
                            struct cm_error *err) CM_MUST_CHECK;
struct cm_held_tensor {
    enum cm_saved_role role;
    struct cm_str name, slot, meaning;
    const struct cm_tensor_proto *tensor;
};
enum cm_status cm_hold_read_kept(struct cm_arena *arena, const struct cm_model_file *file,
                                 size_t entry, struct cm_held_tensor **out, size_t *count,
                                 struct cm_error *err) CM_MUST_CHECK;

/* What a model holds, as if a framework had saved it: everything but entries. *out is empty (system
 * NULL) where it holds nothing. */
enum cm_status cm_hold_read(struct cm_arena *arena, const struct cm_model_file *file, size_t entry,
                            struct cm_saved **out, struct cm_error *err) CM_MUST_CHECK;
enum cm_status cm_hold_read_parts(struct cm_arena *arena, const struct cm_tensor_proto *tensor,
                                  struct cm_parts *out, struct cm_error *err) CM_MUST_CHECK;
/* of is empty: it is no slot. */
struct cm_held_slot {
    struct cm_str of, slot, meaning;
};
enum cm_status cm_hold_read_slot(struct cm_arena *arena, const struct cm_tensor_proto *tensor,
                                 struct cm_held_slot *out, struct cm_error *err) CM_MUST_CHECK;

/* Adds everything in the model that begins as ours and is not as described; the subject is the
 * graph or tensor that it is about. */
void cm_hold_check(struct cm_arena *arena, const struct cm_model_file *file,
                   struct cm_findings *findings);

#endif
