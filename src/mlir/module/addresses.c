<<<<<<< HEAD
/* The addresses that functions in C are given. */
=======
/* Addresses of buffers as numbers. MLIR 19 takes the address of a memref.view for that of the
 * memory it is a view of (expand-strided-metadata), so the distance is added here, before it looks.
 */
>>>>>>> native
// SPDX-License-Identifier: Apache-2.0
#include "mlir/module/ir.h"
#include "mlir/module/mlir_build.h"

<<<<<<< HEAD
/* Does it show the memory of its first operand, from the same address on? */
static bool is_other_shape(MlirOperation op)
{
    static const char *const names[] = {
        "memref.cast",         "memref.collapse_shape",   "memref.subview",
        "memref.expand_shape", "memref.reinterpret_cast", "memref.reshape"};
    bool is = false;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        is = is || cm_ir_is(op, names[i]);
    return is;
}

/* The memref.view that the memory comes from; false: it comes from elsewhere. */
static bool find_view(MlirValue memory, MlirOperation *out)
{
    while (mlirValueIsAOpResult(memory)) {
        *out = mlirOpResultGetOwner(memory);
        if (cm_ir_is(*out, "memref.view"))
            return true;
        if (!is_other_shape(*out))
            return false;
        memory = mlirOperationGetOperand(*out, 0);
    }
    return false;
}

/* expand-strided-metadata takes the address of a memref.view for that of its source, and drops the
 * shift: so it is written out before. */
bool cm_mlir_write_out_addresses(struct cm_mlir_build *build)
{
    static const char *const names[] = {"memref.extract_aligned_pointer_as_index", NULL};
    struct cm_ir_list found = cm_ir_find(build->main, names);
    const bool done = !found.failed;

    for (size_t i = 0; i < found.count; i++) {
        const MlirOperation op = found.items[i];
        const MlirValue old = mlirOperationGetResult(op, 0);
        const MlirType index = mlirValueGetType(old);
        MlirOperation view;

        if (!find_view(mlirOperationGetOperand(op, 0), &view))
            continue;
        struct cm_ir_new parts = {
            .where = mlirOperationGetLocation(op), .results = &index, .n_results = 1};
        const MlirValue source = mlirOperationGetOperand(view, 0);
        parts.name = names[0];
        parts.operands = &source;
        parts.n_operands = 1;
        const MlirValue operands[] = {cm_ir_put(op, &parts), mlirOperationGetOperand(view, 1)};
        parts.name = "arith.addi";
        parts.operands = operands;
        parts.n_operands = 2;
        mlirValueReplaceAllUsesOfWith(old, cm_ir_put(op, &parts));
        mlirOperationDestroy(op);
    }
    cm_ir_list_release(&found);
    return done || cm_mlir_build_fail(build, "memory ran out");
=======
#include <mlir-c/BuiltinTypes.h>

/* The view that `value` lies in, passing what keeps its address; null: it is not in one. */
static MlirOperation view_of(MlirValue value)
{
    while (mlirValueIsAOpResult(value)) {
        const MlirOperation maker = mlirOpResultGetOwner(value);

        if (cm_ir_is(maker, "memref.view"))
            return maker;
        if (!cm_ir_keeps_address(maker))
            break;
        value = mlirOperationGetOperand(maker, 0);
    }
    return (MlirOperation){0};
}

static void resolve(MlirOperation op)
{
    const MlirLocation where = mlirOperationGetLocation(op);
    const MlirType index = mlirIndexTypeGet(mlirOperationGetContext(op));

    for (MlirOperation view = view_of(mlirOperationGetOperand(op, 0)); !mlirOperationIsNull(view);
         view = view_of(mlirOperationGetOperand(op, 0))) {
        const MlirOperation next = mlirOperationGetNextInBlock(op);
        const MlirValue address = mlirOperationGetResult(op, 0);
        /* Its own address is put in last, so that it is not replaced too. */
        const MlirValue shift = mlirOperationGetOperand(view, 1);
        const MlirValue operands[] = {shift, shift};
        const MlirValue sum = cm_ir_put(next, &(struct cm_ir_new){.name = "arith.addi",
                                                                  .where = where,
                                                                  .operands = operands,
                                                                  .n_operands = 2,
                                                                  .results = &index,
                                                                  .n_results = 1});
        mlirValueReplaceAllUsesOfWith(address, sum);
        mlirOperationSetOperand(mlirOpResultGetOwner(sum), 0, address);
        mlirOperationSetOperand(op, 0, mlirOperationGetOperand(view, 0));
    }
}

bool cm_mlir_resolve_addresses(struct cm_mlir_build *build)
{
    static const char *const names[] = {"memref.extract_aligned_pointer_as_index", NULL};
    struct cm_ir_list found = cm_ir_find(mlirModuleGetOperation(build->module), names);
    const bool done = !found.failed || cm_mlir_build_fail(build, "memory ran out");

    for (size_t i = 0; i < found.count; i++)
        resolve(found.items[i]);
    cm_ir_list_release(&found);
    return done;
>>>>>>> native
}
