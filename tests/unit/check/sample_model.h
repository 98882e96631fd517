/* A model that breaks no rule, with a bit of everything the checker looks at, for tests to break.
 */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TESTS_SAMPLE_MODEL_H
#define CM_TESTS_SAMPLE_MODEL_H

#include "onnx/messages.h"

/* Main graph 'g': x, c -> y, with initializers 'w' (float[2]) and 's' (sparse). Nodes: 0 'add'
 * (Add) h = x + w, 1 'const' (Constant) k, 2 'if' (If) i, 3 'call' (local F) f, 4 'sum' (Sum) y.
 * Function 'F'; training_info[0] with the graphs 'start' and 'step', whose nodes are 0 'grad'
 * (Gradient) dw and 1 'sub' (Sub) w_next. */
struct cm_model_proto *sample_model(struct cm_arena *arena);

struct cm_node_proto *sample_node(struct cm_arena *arena, struct cm_nodes *nodes, const char *name,
                                  const char *op, const char *inputs, const char *outputs);
/* Words separated by blanks; "-" is an empty name. */
struct cm_strs sample_words(struct cm_arena *arena, const char *words);
struct cm_attribute_proto *sample_attribute(struct cm_arena *arena, struct cm_node_proto *node,
                                            const char *name, int32_t type);
/* A float tensor of rank 1 with zeros as raw data. */
void sample_tensor(struct cm_arena *arena, struct cm_tensor_proto *tensor, const char *name,
                   int64_t size);
void sample_value(struct cm_arena *arena, struct cm_value_infos *list, const char *name,
                  int32_t elem_type, int rank, int64_t size);
void sample_entry(struct cm_arena *arena, struct cm_entries *list, const char *key,
                  const char *value);
void sample_opset(struct cm_arena *arena, struct cm_opsets *list, const char *domain,
                  int64_t version);

#endif
