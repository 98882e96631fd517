/* A tensor of fixed size that a loop carries is written back where it was: its buffer is then made
 * once, before the loop, where it would be allocated in each turn. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/module/ir.h"
#include "mlir/module/mlir_build.h"

#include <mlir-c/BuiltinTypes.h>

static bool comes_from(MlirValue value, const char *name)
{
    return mlirValueIsAOpResult(value) && cm_ir_is(mlirOpResultGetOwner(value), name);
}

/* Is the value `carried`, changed where it lies? Then nothing need be written back, and doing so
 * all the same would read what is being written. */
static bool is_in_place(MlirValue value, MlirValue carried, int depth)
{
    if (mlirValueEqual(value, carried))
        return true;
    if (!mlirValueIsAOpResult(value) || depth == 0)
        return false;
    const MlirOperation op = mlirOpResultGetOwner(value);
    const intptr_t result = mlirOpResultGetResultNumber(value);
    intptr_t operand = -1;
    if (cm_ir_is(op, "tensor.insert") || cm_ir_is(op, "tensor.insert_slice") ||
        comes_from(value, "bufferization.materialize_in_destination"))
        operand = 1;
    else if (cm_ir_is(op, "scf.for")) /* bounds and step come first */
        operand = 3 + result;
    else if (cm_ir_name_starts(op, "linalg."))
        operand = mlirOperationGetNumOperands(op) - mlirOperationGetNumResults(op) + result;
    else if (cm_ir_is(op, "scf.if")) {
        bool both = true;
        for (intptr_t i = 0; i < 2 && both; i++) {
            const MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, i));
            both = !mlirBlockIsNull(block) &&
                   is_in_place(mlirOperationGetOperand(mlirBlockGetTerminator(block), result),
                               carried, depth - 1);
        }
        return both;
    }
    return operand >= 0 && operand < mlirOperationGetNumOperands(op) &&
           is_in_place(mlirOperationGetOperand(op, operand), carried, depth - 1);
}

enum { MOST_STEPS = 60 }; /* from a value back to what a loop carries */

/* Operand `i` of the terminator goes into the buffer of `carried`. */
static void write_back(MlirOperation terminator, intptr_t i, MlirValue carried)
{
    const MlirValue value = mlirOperationGetOperand(terminator, i);
    const MlirType type = mlirValueGetType(value);
    const MlirValue operands[] = {value, carried};

    if (!mlirTypeIsARankedTensor(type) || !mlirShapedTypeHasStaticShape(type) ||
        !mlirTypeEqual(type, mlirValueGetType(carried)) ||
        comes_from(value, "bufferization.materialize_in_destination") ||
        is_in_place(value, carried, MOST_STEPS))
        return;
    mlirOperationSetOperand(
        terminator, i,
        cm_ir_compute(terminator, "bufferization.materialize_in_destination", operands, 2, type));
}

static MlirBlock body_of(MlirOperation loop, intptr_t region)
{
    return mlirRegionGetFirstBlock(mlirOperationGetRegion(loop, region));
}

static void carry_for(MlirOperation loop)
{
    const MlirBlock body = body_of(loop, 0);
    const MlirOperation yield = mlirBlockGetTerminator(body);

    for (intptr_t i = 0; i < mlirOperationGetNumOperands(yield); i++)
        write_back(yield, i, mlirBlockGetArgument(body, i + 1));
}

/* The argument of the second region that is argument `i` of the first, passed on; null: none. */
static MlirValue passed_on(MlirOperation loop, intptr_t i)
{
    const MlirValue wanted = mlirBlockGetArgument(body_of(loop, 0), i);
    const MlirOperation condition = mlirBlockGetTerminator(body_of(loop, 0));

    for (intptr_t k = 1; k < mlirOperationGetNumOperands(condition); k++) {
        const MlirValue value = mlirOperationGetOperand(condition, k);

        if (mlirValueEqual(value, wanted) ||
            (comes_from(value, "bufferization.materialize_in_destination") &&
             mlirValueEqual(mlirOperationGetOperand(mlirOpResultGetOwner(value), 1), wanted)))
            return mlirBlockGetArgument(body_of(loop, 1), k - 1);
    }
    return (MlirValue){0};
}

static void carry_while(MlirOperation loop)
{
    const MlirBlock before = body_of(loop, 0);
    const MlirOperation condition = mlirBlockGetTerminator(before);
    const MlirOperation yield = mlirBlockGetTerminator(body_of(loop, 1));

    for (intptr_t i = 1; i < mlirOperationGetNumOperands(condition); i++)
        if (i - 1 < mlirBlockGetNumArguments(before) &&
            mlirValueIsAOpResult(mlirOperationGetOperand(condition, i)))
            write_back(condition, i, mlirBlockGetArgument(before, i - 1));
    for (intptr_t i = 0; i < mlirOperationGetNumOperands(yield); i++) {
        const MlirValue carried = passed_on(loop, i);

        if (carried.ptr)
            write_back(yield, i, carried);
    }
}

bool cm_mlir_carry_in_place(struct cm_mlir_build *build)
{
    static const char *const names[] = {"scf.for", "scf.while", NULL};
    struct cm_ir_list found = cm_ir_find(build->main, names);
    const bool done = !found.failed || cm_mlir_build_fail(build, "memory ran out");

    for (size_t i = 0; i < found.count; i++) {
        if (cm_ir_is(found.items[i], "scf.for"))
            carry_for(found.items[i]);
        else
            carry_while(found.items[i]);
    }
    cm_ir_list_release(&found);
    return done;
}
