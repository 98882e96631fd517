/* Arithmetic of float16 and bfloat16: in float32, rounded after each operation. Where a target has
 * no instructions for their conversions LLVM would call functions of its runtime library, which a
 * program here has to do without: they are spelled in integers instead. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/module/ir.h"
#include "mlir/module/mlir_build.h"

#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <string.h>

/* Shifted into place a float16 is a float32 that is 2^112 too small, subnormal ones too. */
static const char f16_to_f32[] =
    "func.func private @" CM_MLIR_CONVERT "f16_to_f32(%h: i16) -> f32 {\n"
    "  %w = arith.extui %h : i16 to i32\n"
    "  %c7fff = arith.constant 0x7fff : i32\n"
    "  %c8000 = arith.constant 0x8000 : i32\n"
    "  %c7c00 = arith.constant 0x7c00 : i32\n"
    "  %c13 = arith.constant 13 : i32\n"
    "  %c16 = arith.constant 16 : i32\n"
    "  %ones = arith.constant 0x7f800000 : i32\n"
    "  %scale = arith.constant 0x77800000 : f32\n"
    "  %m = arith.andi %w, %c7fff : i32\n"
    "  %s = arith.andi %w, %c8000 : i32\n"
    "  %sign = arith.shli %s, %c16 : i32\n"
    "  %small = arith.shli %m, %c13 : i32\n"
    "  %f = arith.bitcast %small : i32 to f32\n"
    "  %g = arith.mulf %f, %scale : f32\n"
    "  %number = arith.bitcast %g : f32 to i32\n"
    "  %other = arith.ori %small, %ones : i32\n"
    "  %is_other = arith.cmpi uge, %m, %c7c00 : i32\n"
    "  %bits = arith.select %is_other, %other, %number : i32\n"
    "  %signed = arith.ori %bits, %sign : i32\n"
    "  %r = arith.bitcast %signed : i32 to f32\n"
    "  return %r : f32\n"
    "}\n";

/* To the nearest, ties to even. Adding 0.5 makes the float unit round what becomes subnormal. */
static const char f32_to_f16[] =
    "func.func private @" CM_MLIR_CONVERT "f32_to_f16(%x: f32) -> i16 {\n"
    "  %b = arith.bitcast %x : f32 to i32\n"
    "  %low = arith.constant 0x7fffffff : i32\n"
    "  %top = arith.constant 0x80000000 : i32\n"
    "  %one = arith.constant 1 : i32\n"
    "  %c13 = arith.constant 13 : i32\n"
    "  %c16 = arith.constant 16 : i32\n"
    "  %large = arith.constant 0x47800000 : i32\n"
    "  %infinite = arith.constant 0x7f800000 : i32\n"
    "  %least = arith.constant 0x38800000 : i32\n"
    "  %half = arith.constant 0.5 : f32\n"
    "  %half_bits = arith.constant 0x3f000000 : i32\n"
    "  %rebias = arith.constant 0xc8000fff : i32\n"
    "  %inf16 = arith.constant 0x7c00 : i32\n"
    "  %nan16 = arith.constant 0x7e00 : i32\n"
    "  %u = arith.andi %b, %low : i32\n"
    "  %s = arith.andi %b, %top : i32\n"
    "  %sign = arith.shrui %s, %c16 : i32\n"
    "  %is_nan = arith.cmpi ugt, %u, %infinite : i32\n"
    "  %over = arith.select %is_nan, %nan16, %inf16 : i32\n"
    "  %f = arith.bitcast %u : i32 to f32\n"
    "  %t = arith.addf %f, %half : f32\n"
    "  %tb = arith.bitcast %t : f32 to i32\n"
    "  %sub = arith.subi %tb, %half_bits : i32\n"
    "  %shifted = arith.shrui %u, %c13 : i32\n"
    "  %odd = arith.andi %shifted, %one : i32\n"
    "  %n0 = arith.addi %u, %rebias : i32\n"
    "  %n1 = arith.addi %n0, %odd : i32\n"
    "  %normal = arith.shrui %n1, %c13 : i32\n"
    "  %is_large = arith.cmpi uge, %u, %large : i32\n"
    "  %is_small = arith.cmpi ult, %u, %least : i32\n"
    "  %r0 = arith.select %is_small, %sub, %normal : i32\n"
    "  %r1 = arith.select %is_large, %over, %r0 : i32\n"
    "  %r2 = arith.ori %r1, %sign : i32\n"
    "  %r = arith.trunci %r2 : i32 to i16\n"
    "  return %r : i16\n"
    "}\n";

/* Rounded to odd, so that rounding it once more is as if it had been rounded once. */
static const char f64_to_odd[] =
    "func.func private @" CM_MLIR_CONVERT "f64_to_odd(%x: f64) -> f32 {\n"
    "  %one = arith.constant 1 : i32\n"
    "  %zero = arith.constant 0 : i32\n"
    "  %n = arith.truncf %x : f64 to f32\n"
    "  %back = arith.extf %n : f32 to f64\n"
    "  %bits = arith.bitcast %n : f32 to i32\n"
    "  %a = math.absf %back : f64\n"
    "  %e = math.absf %x : f64\n"
    "  %beyond = arith.cmpf ogt, %a, %e : f64\n"
    "  %inexact = arith.cmpf one, %back, %x : f64\n"
    "  %down = arith.select %beyond, %one, %zero : i32\n"
    "  %sticky = arith.select %inexact, %one, %zero : i32\n"
    "  %b0 = arith.subi %bits, %down : i32\n"
    "  %b1 = arith.ori %b0, %sticky : i32\n"
    "  %r = arith.bitcast %b1 : i32 to f32\n"
    "  return %r : f32\n"
    "}\n";

static void add_function(struct cm_mlir_build *build, const char *text, bool *there)
{
    if (!*there)
        mlirBlockInsertOwnedOperation(
            mlirModuleGetBody(build->module), 0,
            mlirOperationCreateParse(build->context, cm_ir_text(text), cm_ir_text("floats")));
    *there = true;
}

struct conversions {
    bool widen, narrow, odd; /* which functions are there */
};

static void convert(struct cm_mlir_build *build, MlirOperation op, struct conversions *used)
{
    const MlirContext context = build->context;
    const MlirType i16 = mlirIntegerTypeGet(context, 16), f32 = mlirF32TypeGet(context);
    MlirValue value = mlirOperationGetOperand(op, 0);
    const MlirType from = mlirValueGetType(value);
    const MlirType to = mlirValueGetType(mlirOperationGetResult(op, 0));

    if (mlirTypeIsAF16(from) && (mlirTypeIsAF32(to) || mlirTypeIsAF64(to)) && !build->has_f16) {
        add_function(build, f16_to_f32, &used->widen);
        value = cm_ir_compute(op, "arith.bitcast", &value, 1, i16);
        value = cm_ir_call_of(op, CM_MLIR_CONVERT "f16_to_f32", &value, 1, f32);
        if (mlirTypeIsAF64(to))
            value = cm_ir_compute(op, "arith.extf", &value, 1, to);
    } else if ((mlirTypeIsAF16(to) && !build->has_f16) ||
               (mlirTypeIsABF16(to) && mlirTypeIsAF64(from))) {
        if (mlirTypeIsAF64(from)) {
            add_function(build, f64_to_odd, &used->odd);
            value = cm_ir_call_of(op, CM_MLIR_CONVERT "f64_to_odd", &value, 1, f32);
        } else if (!mlirTypeIsAF32(from)) {
            return;
        }
        if (mlirTypeIsABF16(to)) {
            value = cm_ir_compute(op, "arith.truncf", &value, 1, to);
        } else {
            add_function(build, f32_to_f16, &used->narrow);
            value = cm_ir_call_of(op, CM_MLIR_CONVERT "f32_to_f16", &value, 1, i16);
            value = cm_ir_compute(op, "arith.bitcast", &value, 1, to);
        }
    } else {
        return;
    }
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), value);
    mlirOperationDestroy(op);
}

bool cm_mlir_convert_floats(struct cm_mlir_build *build)
{
    static const char *const names[] = {"arith.extf", "arith.truncf", NULL};
    struct conversions used = {0};

    if (!cm_mlir_build_passes(build, "math-legalize-to-f32,arith-emulate-unsupported-floats{"
                                     "source-types=bf16,f16 target-type=f32}"))
        return false;
    struct cm_ir_list found = cm_ir_find(mlirModuleGetOperation(build->module), names);
    const bool done = !found.failed || cm_mlir_build_fail(build, "memory ran out");
    for (size_t i = 0; done && i < found.count; i++)
        convert(build, found.items[i], &used);
    cm_ir_list_release(&found);
    return done;
}
