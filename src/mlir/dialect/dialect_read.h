/* What the files that make a model of MLIR's tree tell each other. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_DIALECT_READ_H
#define CM_MLIR_DIALECT_READ_H

#include "base/array.h"
#include "mlir/dialect/dialect_tree.h"
#include "onnx/descriptor.h"

/* Opsets of a domain in which all operators met so far have their forms. */
struct cm_dialect_range {
    struct cm_str domain;
    int64_t first, last;
    struct cm_str needs_first, needs_last; /* operators */
};

struct cm_dialect_reader {
    struct cm_dialect_tree tree;
    struct cm_arena *arena;
    struct cm_model_proto *model;
    const struct cm_opsets *opsets; /* of the function that is read; NULL: it names none */
    bool foreign;        /* another program wrote the text: names and versions are not in it */
    uint64_t filled;     /* bytes of tensors that a single element stands for */
    struct cm_map taken; /* names of the function that is read */
    CM_ARRAY(struct cm_dialect_range) ranges;
};

enum cm_status cm_dialect_refuse(const struct cm_dialect_reader *r, const char *at,
                                 enum cm_status status, const char *format, ...) CM_PRINTF(4, 5);

enum cm_status cm_dialect_read_int(struct cm_dialect_reader *r, const struct cm_dialect_attr *attr,
                                   int64_t *out) CM_MUST_CHECK;
enum cm_status cm_dialect_read_str(struct cm_dialect_reader *r, const struct cm_dialect_attr *attr,
                                   struct cm_str *out) CM_MUST_CHECK;
/* A number of this kind? */
bool cm_dialect_is_real(const struct cm_dialect_attr *attr);

/* By the rows of onnx/descriptor.h. */
enum cm_status cm_dialect_read_field(struct cm_dialect_reader *r,
                                     const struct cm_message_info *info, int field,
                                     const struct cm_dialect_attr *attr, void *msg) CM_MUST_CHECK;
enum cm_status cm_dialect_read_message(struct cm_dialect_reader *r,
                                       const struct cm_message_info *info,
                                       const struct cm_dialect_attr *attr, void *msg) CM_MUST_CHECK;
/* All entries whose keys begin with prefix, of which the first part is one of the fields allowed or
 * one of others (ends with NULL). */
enum cm_status cm_dialect_read_fields(struct cm_dialect_reader *r,
                                      const struct cm_message_info *info,
                                      const struct cm_dialect_entries *entries, const char *prefix,
                                      uint32_t allowed, const char *const *others,
                                      void *msg) CM_MUST_CHECK;

/* What a value is declared as, beside the type printed for it (NULL: none is). */
enum cm_status cm_dialect_read_declared(struct cm_dialect_reader *r,
                                        const struct cm_dialect_entries *entries,
                                        const char *prefix, const struct cm_dialect_type *printed,
                                        struct cm_value_info_proto *out) CM_MUST_CHECK;

/* Dense values into a tensor, which gets dims, type and values; storage: "typed", "none" or empty,
 * where the values are to be kept. */
enum cm_status cm_dialect_read_dense(struct cm_dialect_reader *r,
                                     const struct cm_dialect_attr *attr, struct cm_str storage,
                                     struct cm_tensor_proto *out) CM_MUST_CHECK;
/* Type and dims alone. */
enum cm_status cm_dialect_read_tensor_type(struct cm_dialect_reader *r, const char *at,
                                           const struct cm_dialect_type *type,
                                           struct cm_tensor_proto *out) CM_MUST_CHECK;
/* Dense values (NULL: none) with what is said beside them (may be NULL). */
enum cm_status cm_dialect_read_tensor(struct cm_dialect_reader *r,
                                      const struct cm_dialect_attr *dense,
                                      const struct cm_dialect_entries *notes,
                                      struct cm_tensor_proto *out) CM_MUST_CHECK;

/* Names of ONNX for values of MLIR: those of a region, and of regions around it. */
struct cm_dialect_names {
    const struct cm_dialect_names *outer;
    struct cm_map values; /* to addresses of struct cm_strs */
    struct cm_map wanted; /* "5" or "5#1" to addresses of struct cm_str: results of the function */
};

enum cm_status cm_dialect_name_of(struct cm_dialect_reader *r, const struct cm_dialect_names *names,
                                  const struct cm_dialect_ssa *ssa,
                                  struct cm_str *out) CM_MUST_CHECK;
void cm_dialect_name_values(struct cm_dialect_reader *r, struct cm_dialect_names *names,
                            struct cm_str ssa, struct cm_strs values);
/* A name for a value that has none in the text: its name there, made different from others. */
struct cm_str cm_dialect_new_name(struct cm_dialect_reader *r, const struct cm_dialect_names *names,
                                  struct cm_str ssa, size_t index, size_t count);

enum cm_status cm_dialect_read_node(struct cm_dialect_reader *r, struct cm_dialect_names *names,
                                    const struct cm_dialect_op *op,
                                    struct cm_node_proto *out) CM_MUST_CHECK;

/* A region as a graph: notes are the entries with this prefix; for a function, op has its results,
 * else NULL. */
enum cm_status cm_dialect_read_graph(struct cm_dialect_reader *r,
                                     const struct cm_dialect_names *outer,
                                     const struct cm_dialect_region *region,
                                     const struct cm_dialect_op *function,
                                     const struct cm_dialect_entries *notes, const char *prefix,
                                     struct cm_graph_proto *out) CM_MUST_CHECK;

#endif
