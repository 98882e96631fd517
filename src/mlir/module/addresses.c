/* Addresses of buffers as numbers. MLIR 19 takes the address of a memref.view for that of the
 * memory it is a view of (expand-strided-metadata), so the distance is added here, before it looks.
 */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/module/ir.h"
#include "mlir/module/mlir_build.h"

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
    const MlirType index = mlirIndexTypeGet(mlirOperationGetContext(op));

    for (MlirOperation view = view_of(mlirOperationGetOperand(op, 0)); !mlirOperationIsNull(view);
         view = view_of(mlirOperationGetOperand(op, 0))) {
        const MlirOperation next = mlirOperationGetNextInBlock(op);
        const MlirValue address = mlirOperationGetResult(op, 0);
        /* Its own address is put in last, so that it is not replaced too. */
        const MlirValue shift = mlirOperationGetOperand(view, 1);
        const MlirValue operands[] = {shift, shift};
        const MlirValue sum = cm_ir_compute(next, "arith.addi", operands, 2, index);
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
}
