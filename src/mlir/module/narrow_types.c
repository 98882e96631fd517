/* In LLVM's dialect, float16 and bfloat16 that the target cannot convert become integers of 16
 * bits: all that is done to them by now is moving. Left as floats, LLVM would make arithmetic of
 * what looks at their bits, and that needs a runtime library. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/module/ir.h"
#include "mlir/module/mlir_build.h"

#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <stdlib.h>
#include <string.h>

static void add_to_type(MlirStringRef piece, void *text)
{
    cm_mlir_string_add(text, piece.data, piece.length);
}

/* The type with integers in it; null: it has no such floats. */
static MlirType with_integers(const struct cm_mlir_build *build, MlirType type)
{
    struct cm_mlir_string old = {0}, new = {0};
    MlirType result = {0};
    bool changed = false;

    mlirTypePrint(type, add_to_type, &old);
    for (const char *at = old.data; at && *at;) {
        const bool brain = strncmp(at, "bf16", 4) == 0;

        if (brain || (strncmp(at, "f16", 3) == 0 && !build->has_f16)) {
            cm_mlir_string_add(&new, "i16", 3);
            at += brain ? 4 : 3;
            changed = true;
        } else {
            cm_mlir_string_add(&new, at++, 1);
        }
    }
    if (changed && !old.failed && !new.failed)
        result = mlirTypeParseGet(build->context, cm_ir_text(new.data));
    free(old.data);
    free(new.data);
    return result;
}

static void change_value(const struct cm_mlir_build *build, MlirValue value)
{
    const MlirType type = mlirValueGetType(value);
    const MlirType element = mlirTypeIsAVector(type) ? mlirShapedTypeGetElementType(type) : type;

    if (mlirTypeIsABF16(element) || (mlirTypeIsAF16(element) && !build->has_f16))
        mlirValueSetType(value, with_integers(build, type));
}

/* The bits of a constant. */
static MlirAttribute bits_of(MlirType type, MlirAttribute value)
{
    if (mlirAttributeIsADenseElements(value)) {
        const MlirType old = mlirAttributeGetType(value);
        const int64_t count = mlirElementsAttrGetNumElements(value);
        const bool splat = mlirDenseElementsAttrIsSplat(value);
        int64_t dims[8];
        const intptr_t rank = mlirShapedTypeGetRank(old);

        for (intptr_t i = 0; i < rank && i < 8; i++)
            dims[i] = mlirShapedTypeGetDimSize(old, i);
        if (rank > 8)
            return value;
        const MlirType shaped =
            mlirTypeIsAVector(old)
                ? mlirVectorTypeGet(rank, dims, type)
                : mlirRankedTensorTypeGet(rank, dims, type, mlirAttributeGetNull());
        return mlirDenseElementsAttrRawBufferGet(shaped, splat ? 2 : (size_t)count * 2,
                                                 mlirDenseElementsAttrGetRawData(value));
    }
    if (!mlirAttributeIsAFloat(value))
        return value;
    const MlirType scalar = mlirAttributeGetType(value);
    const MlirAttribute one = mlirDenseElementsAttrGet(
        mlirRankedTensorTypeGet(0, NULL, scalar, mlirAttributeGetNull()), 1, &value);
    const uint16_t *raw = mlirDenseElementsAttrGetRawData(one);
    return mlirIntegerAttrGet(type, *raw);
}

static void change_attribute(const struct cm_mlir_build *build, MlirOperation op, const char *name)
{
    const MlirAttribute old = mlirOperationGetAttributeByName(op, cm_ir_text(name));

    if (mlirAttributeIsNull(old) || !mlirAttributeIsAType(old))
        return;
    const MlirType type = with_integers(build, mlirTypeAttrGetValue(old));
    if (!mlirTypeIsNull(type))
        mlirOperationSetAttributeByName(op, cm_ir_text(name), mlirTypeAttrGet(type));
}

static void change_constant(const struct cm_mlir_build *build, MlirOperation op)
{
    const MlirAttribute old = mlirOperationGetAttributeByName(op, cm_ir_text("value"));
    const MlirType type = mlirAttributeIsNull(old) ? (MlirType){0} : mlirAttributeGetType(old);

    if (mlirTypeIsNull(type))
        return;
    const MlirType element = mlirTypeIsAShaped(type) ? mlirShapedTypeGetElementType(type) : type;
    if (mlirTypeIsABF16(element) || (mlirTypeIsAF16(element) && !build->has_f16))
        mlirOperationSetAttributeByName(op, cm_ir_text("value"),
                                        bits_of(mlirIntegerTypeGet(build->context, 16), old));
}

static MlirWalkResult change(MlirOperation op, void *data)
{
    static const char *const types[] = {"elem_type", "function_type", "global_type"};
    const struct cm_mlir_build *build = data;

    if (cm_ir_is(op, "llvm.mlir.constant") || cm_ir_is(op, "llvm.mlir.global"))
        change_constant(build, op);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        change_attribute(build, op, types[i]);
    for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
        change_value(build, mlirOperationGetResult(op, i));
    for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
        for (MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r));
             !mlirBlockIsNull(block); block = mlirBlockGetNextInRegion(block))
            for (intptr_t i = 0; i < mlirBlockGetNumArguments(block); i++)
                change_value(build, mlirBlockGetArgument(block, i));
    return MlirWalkResultAdvance;
}

bool cm_mlir_move_as_integers(struct cm_mlir_build *build)
{
    const struct cm_mlir_bytes text = build->job->text;
    const MlirOperation module = mlirModuleGetOperation(build->module);
    bool has_some = false;

    for (size_t i = 0; i + 3 <= text.size && !has_some; i++)
        has_some = memcmp(text.data + i, "f16", 3) == 0;
    if (!has_some)
        return true;
    mlirOperationWalk(module, change, build, MlirWalkPreOrder);
    return cm_mlir_build_passes(build, "canonicalize") &&
           (mlirOperationVerify(module) ||
            cm_mlir_build_fail(build, "float16 cannot be moved as integers"));
}
