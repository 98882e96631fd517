/* Files of torch.save, zip and legacy, as items and back. A pickle is data: opcodes move values,
 * names of classes become names, nothing is called. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_CONVERT_TORCH_FILE_H
#define CM_CONVERT_TORCH_FILE_H

#include "base/file.h"
#include "convert/format.h"

/* By the first bytes: a zip (which may be another's), or the legacy form? */
bool cm_torch_is_file(struct cm_str head);

/* What was saved. Tensors become CM_ITEM_TENSOR with their storage, offset and strides; parameters
 * too. Dictionaries, ordered or not, become maps, tuples and lists lists, numbers of NumPy numbers,
 * torch.Size a list, torch.dtype and torch.device objects; everything else an object. `file` is the
 * name for people. */
enum cm_status cm_torch_read(struct cm_arena *arena, struct cm_str bytes, struct cm_str file,
                             struct cm_item **out, struct cm_error *err) CM_MUST_CHECK;
/* The same of a file of a checkpoint. */
enum cm_status cm_torch_read_file(struct cm_saved_place *place, struct cm_str name,
                                  struct cm_item **out, struct cm_error *err) CM_MUST_CHECK;
/* A bare pickle, of any protocol up to 5, without tensors. */
enum cm_status cm_pickle_read(struct cm_arena *arena, struct cm_str bytes, struct cm_item **out,
                              struct cm_error *err) CM_MUST_CHECK;

/* torch.save's zip of an item, written to what save has open. `stem` is the folder in it,
 * "checkpoint". Maps, lists, texts, numbers, bools, none and tensors only; a list whose first entry
 * was made with cm_item_tuple is a tuple (CM_ITEM_LIST with truth set). Texts as keys, and
 * integers. What is wide and strided is gathered while it is written. */
enum cm_status cm_torch_write(struct cm_save *save, const char *stem, const struct cm_item *item,
                              struct cm_error *err) CM_MUST_CHECK;

#endif
