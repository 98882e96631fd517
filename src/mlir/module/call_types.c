/* Kernels in C take addresses and sizes as intptr_t, the program passes an index of 64 bits. Where
 * an address has fewer, the arguments of such calls are cut and what they give is widened. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/module/mlir_build.h"

enum { MOST_ARGUMENTS = 64 };

static LLVMValueRef cast(LLVMBuilderRef builder, LLVMValueRef value, LLVMTypeRef type)
{
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind
               ? LLVMBuildIntCast2(builder, value, type, true, "")
               : value;
}

/* The call with the types that the function has now that its definition is there. */
static bool call_again(struct cm_mlir_build *build, LLVMValueRef call, LLVMValueRef function)
{
    const LLVMTypeRef type = LLVMGlobalGetValueType(function);
    const unsigned count = LLVMCountParamTypes(type);
    LLVMTypeRef types[MOST_ARGUMENTS];
    LLVMValueRef arguments[MOST_ARGUMENTS];

    if (count > MOST_ARGUMENTS || count != LLVMGetNumArgOperands(call))
        return cm_mlir_build_fail(build, "a kernel is called with %u arguments, and has %u",
                                  LLVMGetNumArgOperands(call), count);
    const LLVMBuilderRef builder = LLVMCreateBuilderInContext(build->llvm);
    LLVMPositionBuilderBefore(builder, call);
    LLVMGetParamTypes(type, types);
    for (unsigned i = 0; i < count; i++)
        arguments[i] = cast(builder, LLVMGetOperand(call, i), types[i]);
    const LLVMValueRef result = LLVMBuildCall2(builder, type, function, arguments, count, "");
    if (LLVMGetTypeKind(LLVMTypeOf(call)) != LLVMVoidTypeKind)
        LLVMReplaceAllUsesWith(call, cast(builder, result, LLVMTypeOf(call)));
    LLVMInstructionEraseFromParent(call);
    LLVMDisposeBuilder(builder);
    return true;
}

static bool match_calls_of(struct cm_mlir_build *build, LLVMValueRef function)
{
    LLVMUseRef next;

    for (LLVMUseRef use = LLVMGetFirstUse(function); use; use = next) {
        const LLVMValueRef user = LLVMGetUser(use);

        next = LLVMGetNextUse(use);
        if (LLVMIsACallInst(user) && LLVMGetCalledValue(user) == function &&
            LLVMGetCalledFunctionType(user) != LLVMGlobalGetValueType(function) &&
            !call_again(build, user, function))
            return false;
    }
    return true;
}

bool cm_mlir_match_calls(struct cm_mlir_build *build)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(build->code); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f) && !match_calls_of(build, f))
            return false;
    return true;
}
