/* MLIR's C interface in fewer words: names, walking, and making operations. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_MLIR_MODULE_IR_H
#define CM_MLIR_MODULE_IR_H

#include <mlir-c/IR.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

MlirStringRef cm_ir_text(const char *text);
bool cm_ir_is(MlirOperation op, const char *name);
bool cm_ir_name_starts(MlirOperation op, const char *with);

/* Does its result lie in the memory of its first operand, whose aligned address it has? */
bool cm_ir_keeps_address(MlirOperation op);

/* The operations of one or more names below `root`, in order; malloc'd. */
struct cm_ir_list {
    MlirOperation *items;
    size_t count, room;
    bool failed; /* memory ran out */
};

/* `names` ends with NULL; a name that ends with a dot stands for a dialect. */
struct cm_ir_list cm_ir_find(MlirOperation root, const char *const *names);
void cm_ir_list_release(struct cm_ir_list *list);

/* What a new operation is made of; results without a type are inferred. */
struct cm_ir_new {
    const char *name;
    MlirLocation where;
    const MlirValue *operands;
    size_t n_operands;
    const MlirType *results;
    size_t n_results;
    const MlirNamedAttribute *attributes;
    size_t n_attributes;
    MlirBlock *successors;
    size_t n_successors;
    MlirRegion *regions; /* which it takes */
    size_t n_regions;
};

MlirOperation cm_ir_make(const struct cm_ir_new *parts);
/* The same, put before `next`; its first result, where it has one. */
MlirValue cm_ir_put(MlirOperation next, const struct cm_ir_new *parts);
/* An operation of operands and one result alone, before `next`. */
MlirValue cm_ir_compute(MlirOperation next, const char *name, const MlirValue *operands, size_t n,
                        MlirType result);
MlirNamedAttribute cm_ir_attribute(MlirContext context, const char *name, MlirAttribute value);
MlirAttribute cm_ir_parse(MlirContext context, const char *text);

/* A constant of type index, before `next`. */
MlirValue cm_ir_index(MlirOperation next, int64_t value);
/* func.call with a result of this type, before `next`. */
MlirValue cm_ir_call_of(MlirOperation next, const char *callee, const MlirValue *operands, size_t n,
                        MlirType result);
/* The same with operands and results of type index. */
MlirValue cm_ir_call(MlirOperation next, const char *callee, const MlirValue *operands, size_t n,
                     bool has_result);
/* Declares a private function of `n` times index in `module`, unless it has one of that name. */
void cm_ir_declare(MlirModule module, const char *name, size_t n, bool has_result);

#endif
