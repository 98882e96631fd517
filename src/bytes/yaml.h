/* YAML as items, through libyaml, which is opened when a file of it comes. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_BYTES_YAML_H
#define CM_BYTES_YAML_H

#include "bytes/item.h"

/* The first document. Plain scalars become what YAML 1.1 says they are: null, bools, integers,
 * reals; others texts. CM_UNSUPPORTED, with what to install, without libyaml. */
enum cm_status cm_item_parse_yaml(struct cm_arena *arena, struct cm_str text, struct cm_item **out,
                                  struct cm_error *err) CM_MUST_CHECK;

#endif
