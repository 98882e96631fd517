/* Checks while a program runs, and its way out where a call fails. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/module/ir.h"
#include "mlir/module/mlir_build.h"

#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <stdlib.h>
#include <string.h>

static char *copy_text(MlirStringRef text)
{
    char *copy = malloc(text.length + 1);

    if (copy) {
        memcpy(copy, text.data, text.length);
        copy[text.length] = '\0';
    }
    return copy;
}

/* The number of a message: that of an equal one before, or the next. -1: memory ran out. */
static int64_t number_of(struct cm_mlir_product *out, MlirStringRef text)
{
    for (size_t i = 0; i < out->n_messages; i++)
        if (mlirStringRefEqual(cm_ir_text(out->messages[i]), text))
            return (int64_t)i;
    char **messages = realloc(out->messages, (out->n_messages + 1) * sizeof *messages);
    if (!messages)
        return -1;
    out->messages = messages;
    messages[out->n_messages] = copy_text(text);
    return messages[out->n_messages] ? (int64_t)out->n_messages++ : -1;
}

/* cm_require takes numbers only: whether it holds becomes an index. */
static MlirValue holds_as_index(MlirOperation check)
{
    const MlirContext context = mlirOperationGetContext(check);
    const MlirType index = mlirIndexTypeGet(context);
    const MlirValue holds = mlirOperationGetOperand(check, 0);

    return cm_ir_compute(check, "arith.index_castui", &holds, 1, index);
}

bool cm_mlir_number_checks(struct cm_mlir_build *build)
{
    static const char *const names[] = {"cf.assert", NULL};
    struct cm_ir_list found = cm_ir_find(build->main, names);
    bool done = !found.failed;

    if (found.count)
        cm_ir_declare(build->module, "cm_require", 3, true);
    for (size_t i = 0; done && i < found.count; i++) {
        const MlirOperation check = found.items[i];
        const MlirStringRef text =
            mlirStringAttrGetValue(mlirOperationGetAttributeByName(check, cm_ir_text("msg")));
        const int64_t number = number_of(build->out, text);

        done = number >= 0;
        if (!done)
            break;
        const MlirValue operands[] = {build->arguments[CM_MLIR_CONTEXT], holds_as_index(check),
                                      cm_ir_index(check, number)};
        cm_ir_call(check, "cm_require", operands, 3, true);
        mlirOperationDestroy(check);
    }
    cm_ir_list_release(&found);
    return done || cm_mlir_build_fail(build, "memory ran out");
}

/* ---- the way out ---- */

static bool may_fail(MlirOperation call)
{
    static const char *const names[] = {"cm_allocate", "cm_require", "cm_output"};
    const MlirAttribute callee = mlirOperationGetAttributeByName(call, cm_ir_text("callee"));

    if (mlirAttributeIsNull(callee) || mlirOperationGetNumResults(call) != 1)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (mlirStringRefEqual(mlirFlatSymbolRefAttrGetValue(callee), cm_ir_text(names[i])))
            return true;
    return false;
}

/* A block that only returns, at the end of the function. */
static MlirBlock add_exit(struct cm_mlir_build *build)
{
    const MlirBlock block = mlirBlockCreate(0, NULL, NULL);

    mlirBlockAppendOwnedOperation(
        block, cm_ir_make(&(struct cm_ir_new){.name = "func.return",
                                              .where = mlirOperationGetLocation(build->main)}));
    mlirRegionAppendOwnedBlock(mlirOperationGetRegion(build->main, 0), block);
    return block;
}

/* What follows the call moves to a block of its own, which is entered where the call gave not 0. */
static void leave_after(struct cm_mlir_build *build, MlirOperation call, MlirBlock leave)
{
    const MlirContext context = build->context;
    const MlirLocation where = mlirOperationGetLocation(call);
    const MlirBlock block = mlirOperationGetBlock(call);
    const MlirBlock rest = mlirBlockCreate(0, NULL, NULL);
    const MlirType bit = mlirIntegerTypeGet(context, 1);

    mlirRegionInsertOwnedBlockAfter(mlirBlockGetParentRegion(block), block, rest);
    for (MlirOperation op = mlirOperationGetNextInBlock(call), next; !mlirOperationIsNull(op);
         op = next) {
        next = mlirOperationGetNextInBlock(op);
        mlirOperationRemoveFromParent(op);
        mlirBlockAppendOwnedOperation(rest, op);
    }
    const MlirValue zero = cm_ir_index(call, 0);
    const MlirValue sides[] = {mlirOperationGetResult(call, 0), zero};
    const MlirNamedAttribute differs = cm_ir_attribute(
        context, "predicate", mlirIntegerAttrGet(mlirIntegerTypeGet(context, 64), 1));
    const MlirOperation compare = cm_ir_make(&(struct cm_ir_new){.name = "arith.cmpi",
                                                                 .where = where,
                                                                 .operands = sides,
                                                                 .n_operands = 2,
                                                                 .results = &bit,
                                                                 .n_results = 1,
                                                                 .attributes = &differs,
                                                                 .n_attributes = 1});
    mlirBlockAppendOwnedOperation(block, compare);
    const MlirValue passed = mlirOperationGetResult(compare, 0);
    MlirBlock targets[] = {rest, leave};
    const MlirNamedAttribute segments = cm_ir_attribute(
        context, "operandSegmentSizes", cm_ir_parse(context, "array<i32: 1, 0, 0>"));
    mlirBlockAppendOwnedOperation(block, cm_ir_make(&(struct cm_ir_new){.name = "cf.cond_br",
                                                                        .where = where,
                                                                        .operands = &passed,
                                                                        .n_operands = 1,
                                                                        .attributes = &segments,
                                                                        .n_attributes = 1,
                                                                        .successors = targets,
                                                                        .n_successors = 2}));
}

bool cm_mlir_return_early(struct cm_mlir_build *build)
{
    static const char *const names[] = {"func.call", NULL};
    struct cm_ir_list found = cm_ir_find(mlirModuleGetOperation(build->module), names);
    MlirBlock leave = {0};
    bool done = !found.failed || cm_mlir_build_fail(build, "memory ran out");

    for (size_t i = 0; done && i < found.count; i++) {
        if (!may_fail(found.items[i]))
            continue;
        if (!mlirOperationEqual(mlirOperationGetParentOperation(found.items[i]), build->main)) {
            done = cm_mlir_build_fail(build, "a call that may fail is not in the function cm_main");
            break;
        }
        if (mlirBlockIsNull(leave))
            leave = add_exit(build);
        leave_after(build, found.items[i], leave);
    }
    cm_ir_list_release(&found);
    return done;
}
