/* Views with gaps that are taken for tensors without. MLIR 19 casts a view of another's rows, whose
 * stride it does not know, to a memref without a layout, whose stride it does not know either, and
 * holds that the two are equal: where unknown sizes are involved, elements are copied instead. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/module/ir.h"
#include "mlir/module/mlir_build.h"

#include <mlir-c/AffineMap.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <stdlib.h>

static bool is_dense(MlirType type)
{
    return mlirAffineMapIsIdentity(mlirMemRefTypeGetAffineMap(type));
}

static bool hides_gaps(MlirOperation cast)
{
    const MlirType from = mlirValueGetType(mlirOperationGetOperand(cast, 0));
    const MlirType to = mlirValueGetType(mlirOperationGetResult(cast, 0));

    return mlirTypeIsAMemRef(from) && mlirTypeIsAMemRef(to) && !is_dense(from) && is_dense(to);
}

static bool copy_instead(MlirOperation cast)
{
    const MlirContext context = mlirOperationGetContext(cast);
    const MlirLocation where = mlirOperationGetLocation(cast);
    const MlirValue from = mlirOperationGetOperand(cast, 0);
    const MlirType type = mlirValueGetType(mlirOperationGetResult(cast, 0));
    const MlirType index = mlirIndexTypeGet(context);
    const intptr_t rank = mlirShapedTypeGetRank(type);
    MlirValue *sizes = calloc((size_t)rank + 1, sizeof *sizes);
    int32_t unknown = 0;

    if (!sizes)
        return false;
    for (intptr_t i = 0; i < rank; i++)
        if (mlirShapedTypeIsDynamicDim(type, i)) {
            const MlirValue operands[] = {from, cm_ir_index(cast, i)};
            sizes[unknown++] = cm_ir_compute(cast, "memref.dim", operands, 2, index);
        }
    const int32_t segments[] = {unknown, 0};
    const MlirNamedAttribute attribute =
        cm_ir_attribute(context, "operandSegmentSizes", mlirDenseI32ArrayGet(context, 2, segments));
    const MlirValue room = cm_ir_put(cast, &(struct cm_ir_new){.name = "memref.alloc",
                                                               .where = where,
                                                               .operands = sizes,
                                                               .n_operands = (size_t)unknown,
                                                               .results = &type,
                                                               .n_results = 1,
                                                               .attributes = &attribute,
                                                               .n_attributes = 1});
    const MlirValue pair[] = {from, room};
    cm_ir_put(cast, &(struct cm_ir_new){
                        .name = "memref.copy", .where = where, .operands = pair, .n_operands = 2});
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(cast, 0), room);
    mlirOperationDestroy(cast);
    free(sizes);
    return true;
}

bool cm_mlir_fill_gaps(struct cm_mlir_build *build)
{
    static const char *const names[] = {"memref.cast", NULL};
    struct cm_ir_list found = cm_ir_find(mlirModuleGetOperation(build->module), names);
    bool done = !found.failed;

    for (size_t i = 0; i < found.count && done; i++)
        if (hides_gaps(found.items[i]))
            done = copy_instead(found.items[i]);
    cm_ir_list_release(&found);
    return done || cm_mlir_build_fail(build, "memory ran out");
}
