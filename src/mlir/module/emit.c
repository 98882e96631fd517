/* LLVM's part of a build: the target, and from MLIR's LLVM dialect to bytes. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/module/mlir_build.h"
#include "mlir/module/mlir_entry.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <mlir-c/Target/LLVMIR.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cm_mlir_start_targets(void)
{
    LLVMInitializeAllTargetInfos();
    LLVMInitializeAllTargets();
    LLVMInitializeAllTargetMCs();
    LLVMInitializeAllAsmPrinters();
    LLVMInitializeAllAsmParsers();
}

char *cm_mlir_targets(void)
{
    struct cm_mlir_string text = {0};

    cm_mlir_start_targets();
    for (LLVMTargetRef target = LLVMGetFirstTarget(); target; target = LLVMGetNextTarget(target)) {
        const char *name = LLVMGetTargetName(target);

        cm_mlir_string_add(&text, name, strlen(name));
        cm_mlir_string_add(&text, "\n", 1);
    }
    return text.data;
}

/* ---- target ---- */

/* What every machine of a kind that runs an operating system has, where nothing else is said:
 * LLVM's own default for RISC-V has no floats. There linkers shorten code, of which clang's part is
 * written for that: all of it has to be, or calls in the rest miss what has moved. */
static const char *usual_features(const struct cm_mlir_build *build)
{
    const struct cm_mlir_job *job = build->job;

    if (strncmp(build->triple, "riscv", 5) != 0)
        return "";
    return job->cpu[0] || job->features[0] || strncmp(build->triple, "riscv64", 7) != 0
               ? "+relax"
               : "+m,+a,+f,+d,+c,+relax";
}

/* Adds to a list with commas. */
static void add_features(struct cm_mlir_string *list, const char *more)
{
    if (*more && list->size)
        cm_mlir_string_add(list, ",", 1);
    cm_mlir_string_add(list, more, strlen(more));
}

/* float16 is converted by instructions on every aarch64; on x86-64 since F16C. */
static bool converts_f16(const struct cm_mlir_build *build, const char *cpu, const char *features)
{
    static const char *const with_f16c[] = {"x86-64-v3", "x86-64-v4",      "haswell",
                                            "skylake",   "skylake-avx512", "znver1",
                                            "znver2",    "znver3",         "znver4"};
    bool found = strstr(features, "+f16c") || strstr(features, "+zfh");

    for (size_t i = 0; i < sizeof with_f16c / sizeof with_f16c[0]; i++)
        found = found || strcmp(cpu, with_f16c[i]) == 0;
    return found || strncmp(build->triple, "aarch64", 7) == 0;
}

static LLVMTargetMachineRef make_machine(struct cm_mlir_build *build, LLVMTargetRef target)
{
    const struct cm_mlir_job *job = build->job;
    const bool native = strcmp(job->cpu, "native") == 0;
    char *cpu = native ? LLVMGetHostCPUName() : NULL;
    char *host = native ? LLVMGetHostCPUFeatures() : NULL;
    struct cm_mlir_string features = {0};

    if (host)
        add_features(&features, host);
    add_features(&features, job->features);
    add_features(&features, usual_features(build));
    if (features.failed) {
        free(features.data);
        LLVMDisposeMessage(cpu);
        LLVMDisposeMessage(host);
        return NULL;
    }
    build->has_f16 = converts_f16(build, job->cpu, features.data);
    const LLVMTargetMachineOptionsRef options = LLVMCreateTargetMachineOptions();
    LLVMTargetMachineOptionsSetCPU(options, cpu ? cpu : job->cpu);
    LLVMTargetMachineOptionsSetFeatures(options, features.data);
    LLVMTargetMachineOptionsSetCodeGenOptLevel(options, LLVMCodeGenLevelDefault);
    LLVMTargetMachineOptionsSetRelocMode(options, job->position_independent ? LLVMRelocPIC
                                                                            : LLVMRelocStatic);
    if (strstr(features.data, "+d") && strncmp(build->triple, "riscv64", 7) == 0)
        LLVMTargetMachineOptionsSetABI(options, "lp64d");
    const LLVMTargetMachineRef machine =
        LLVMCreateTargetMachineWithOptions(target, build->triple, options);
    LLVMDisposeTargetMachineOptions(options);
    free(features.data);
    LLVMDisposeMessage(cpu);
    LLVMDisposeMessage(host);
    return machine;
}

bool cm_mlir_choose_target(struct cm_mlir_build *build)
{
    const char *wanted = build->job->triple;
    LLVMTargetRef target = NULL;
    char *error = NULL;

    build->triple = wanted[0] ? LLVMNormalizeTargetTriple(wanted) : LLVMGetDefaultTargetTriple();
    if (LLVMGetTargetFromTriple(build->triple, &target, &error)) {
        cm_mlir_build_fail(build, "'%s': %s", build->triple, error);
        LLVMDisposeMessage(error);
        return false;
    }
    build->machine = make_machine(build, target);
    if (!build->machine)
        return cm_mlir_build_fail(build, "LLVM cannot generate code for '%s'", build->triple);
    const LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(build->machine);
    build->layout = LLVMCopyStringRepOfTargetData(layout);
    build->pointer_bits = 8 * LLVMPointerSize(layout);
    const bool is_big = LLVMByteOrder(layout) == LLVMBigEndian;
    LLVMDisposeTargetData(layout);
    return !is_big || cm_mlir_build_fail(build,
                                         "'%s' has the highest byte of a number first, weights "
                                         "have the lowest there",
                                         build->triple);
}

/* ---- from the dialect to one module ---- */

static void on_llvm_diagnostic(LLVMDiagnosticInfoRef info, void *data)
{
    struct cm_mlir_build *build = data;
    char *text;

    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError)
        return;
    text = LLVMGetDiagInfoDescription(info);
    cm_mlir_build_fail(build, "%s", text);
    LLVMDisposeMessage(text);
}

/* NULL: it failed. The module belongs to the context of the build. */
static LLVMModuleRef read_bitcode(struct cm_mlir_build *build, const struct cm_mlir_bytes *bitcode)
{
    /* The reader takes what follows the last byte for granted: a copy ends with a zero. */
    const LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(bitcode->data, bitcode->size, "bitcode");
    LLVMModuleRef other = NULL;
    char *error = NULL;

    if (LLVMParseIRInContext(build->llvm, buffer, &other, &error)) {
        cm_mlir_build_fail(build, "%s", error);
        LLVMDisposeMessage(error);
        return NULL;
    }
    LLVMSetTarget(other, build->triple); /* clang spells some triples with a version */
    LLVMSetDataLayout(other, build->layout);
    return other;
}

/* Takes `from`, which may be NULL. */
static bool link_into(struct cm_mlir_build *build, LLVMModuleRef into, LLVMModuleRef from)
{
    return from &&
           (!LLVMLinkModules2(into, from) || cm_mlir_build_fail(build, "modules cannot be linked"));
}

/* A constant of the glue's, whose declaration it replaces. */
static LLVMValueRef define_constant(struct cm_mlir_build *build, const char *name,
                                    LLVMValueRef content)
{
    const LLVMValueRef declared = LLVMGetNamedGlobal(build->code, name);
    const LLVMValueRef global = LLVMAddGlobal(build->code, LLVMTypeOf(content), "");

    LLVMSetInitializer(global, content);
    LLVMSetGlobalConstant(global, true);
    if (declared) {
        LLVMReplaceAllUsesWith(declared, global);
        LLVMDeleteGlobal(declared);
    }
    LLVMSetValueName2(global, name, strlen(name));
    return global;
}

static void add_constants(struct cm_mlir_build *build)
{
    const struct cm_mlir_bytes weights = build->job->weights;
    const LLVMTypeRef wide = LLVMInt64TypeInContext(build->llvm);

    define_constant(build, "cm_arena_bytes",
                    LLVMConstInt(wide, (unsigned long long)build->out->arena_bytes, true));
    if (weights.size == 0)
        return;
    const LLVMValueRef global =
        define_constant(build, "cm_weights",
                        LLVMConstStringInContext2(build->llvm, weights.data, weights.size, true));
    LLVMSetAlignment(global, 64);
}

static bool is_exported(const struct cm_mlir_job *job, const char *name)
{
    for (size_t i = 0; i < job->n_exported; i++)
        if (strcmp(job->exported[i], name) == 0)
            return true;
    return false;
}

static void hide_if_local(const struct cm_mlir_job *job, LLVMValueRef global)
{
    size_t length;
    const char *name = LLVMGetValueName2(global, &length);

    if (!LLVMIsDeclaration(global) && !is_exported(job, name))
        LLVMSetLinkage(global, LLVMInternalLinkage);
}

static void hide_all(struct cm_mlir_build *build)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(build->code); f; f = LLVMGetNextFunction(f))
        hide_if_local(build->job, f);
    for (LLVMValueRef g = LLVMGetFirstGlobal(build->code); g; g = LLVMGetNextGlobal(g))
        hide_if_local(build->job, g);
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static LLVMAttributeRef attribute(const struct cm_mlir_build *build, const char *name)
{
    return LLVMCreateEnumAttribute(build->llvm, LLVMGetEnumAttributeKindForName(name, strlen(name)),
                                   0);
}

static void promise_distinct(const struct cm_mlir_build *build, LLVMValueRef function)
{
    for (unsigned i = 0; i < LLVMCountParams(function); i++)
        if (LLVMGetTypeKind(LLVMTypeOf(LLVMGetParam(function, i))) == LLVMPointerTypeKind)
            LLVMAddAttributeAtIndex(function, i + 1, attribute(build, "noalias"));
}

/* The buffers of a nest of loops do not overlap where that is known; it stays in the function it
 * was put into. Of cm_main that cannot be said: the glue reaches the arena by its own address too.
 */
static void describe_functions(struct cm_mlir_build *build)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(build->code); f; f = LLVMGetNextFunction(f)) {
        size_t length;
        const char *name = LLVMGetValueName2(f, &length);
        const bool apart = starts(name, CM_MLIR_APART);
        const LLVMAttributeIndex of_function = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;

        if (apart)
            promise_distinct(build, f);
        if (starts(name, CM_MLIR_CONVERT))
            LLVMAddAttributeAtIndex(f, of_function, attribute(build, "alwaysinline"));
        if (apart || starts(name, CM_MLIR_PART))
            LLVMAddAttributeAtIndex(f, of_function, attribute(build, "noinline"));
        /* The kernels that call it use the widest vectors too, where LLVM is shy of them. */
        if (starts(name, CM_MLIR_FINISH))
            LLVMAddAttributeAtIndex(
                f, of_function,
                LLVMCreateStringAttribute(build->llvm, "prefer-vector-width", 19, "512", 3));
    }
}

/* rint is in every C library, roundeven in few; both round ties to even. */
static void name_known_functions(struct cm_mlir_build *build)
{
    static const char *const types[] = {"f32", "f64"};
    const LLVMTypeRef floats[] = {LLVMFloatTypeInContext(build->llvm),
                                  LLVMDoubleTypeInContext(build->llvm)};
    const unsigned rint = LLVMLookupIntrinsicID("llvm.rint", 9);

    for (size_t i = 0; i < 2; i++) {
        char name[32];

        snprintf(name, sizeof name, "llvm.roundeven.%s", types[i]);
        const LLVMValueRef found = LLVMGetNamedFunction(build->code, name);
        LLVMTypeRef type = floats[i];
        if (found)
            LLVMReplaceAllUsesWith(found, LLVMGetIntrinsicDeclaration(build->code, rint, &type, 1));
    }
}

static bool optimize(struct cm_mlir_build *build, LLVMModuleRef code, const char *passes)
{
    const LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    const LLVMErrorRef error = LLVMRunPasses(code, passes, build->machine, options);

    LLVMDisposePassBuilderOptions(options);
    if (!error)
        return !build->error.size;
    char *text = LLVMGetErrorMessage(error);
    cm_mlir_build_fail(build, "%s", text);
    LLVMDisposeErrorMessage(text);
    return false;
}

/* ---- kernels ---- */

/* Local functions that nothing calls are dropped before the first is optimized: most of a file. */
static void keep_called(const struct cm_mlir_build *build, LLVMModuleRef kernels)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(kernels); f; f = LLVMGetNextFunction(f)) {
        size_t length;

        if (!LLVMIsDeclaration(f) &&
            !LLVMGetNamedFunction(build->code, LLVMGetValueName2(f, &length)))
            LLVMSetLinkage(f, LLVMInternalLinkage);
    }
}

/* Kernels are tuned by hand, and not helped by what O3 does to them but size. They are optimized
 * apart from the program, which calls them with numbers that it knows: copies of them for those
 * numbers would cost more than they gain. */
static bool add_kernels(struct cm_mlir_build *build)
{
    const struct cm_mlir_job *job = build->job;
    LLVMModuleRef kernels = NULL;

    for (size_t i = 0; i < job->n_kernels; i++) {
        const LLVMModuleRef one = read_bitcode(build, &job->kernels[i]);

        if (kernels ? !link_into(build, kernels, one) : !one)
            return false;
        kernels = kernels ? kernels : one;
    }
    if (!kernels)
        return true;
    keep_called(build, kernels);
    return optimize(build, kernels, "default<O2>") && link_into(build, build->code, kernels);
}

/* ---- bytes ---- */

static bool give_bytes(struct cm_mlir_build *build, const char *data, size_t size)
{
    build->out->bytes = malloc(size + 1);
    if (!build->out->bytes)
        return cm_mlir_build_fail(build, "memory ran out");
    memcpy(build->out->bytes, data, size);
    build->out->bytes[size] = '\0';
    build->out->size = size;
    return true;
}

static bool write_code(struct cm_mlir_build *build)
{
    const LLVMCodeGenFileType type =
        build->job->form == CM_MLIR_OBJECT ? LLVMObjectFile : LLVMAssemblyFile;
    LLVMMemoryBufferRef buffer = NULL;
    char *error = NULL;

    if (LLVMTargetMachineEmitToMemoryBuffer(build->machine, build->code, type, &error, &buffer)) {
        cm_mlir_build_fail(build, "%s", error);
        LLVMDisposeMessage(error);
        return false;
    }
    const bool done = give_bytes(build, LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
    LLVMDisposeMemoryBuffer(buffer);
    return done;
}

static bool write_text(struct cm_mlir_build *build)
{
    char *text = LLVMPrintModuleToString(build->code);
    const bool done = give_bytes(build, text, strlen(text));

    LLVMDisposeMessage(text);
    return done;
}

bool cm_mlir_emit(struct cm_mlir_build *build)
{
    build->stage = "generating code";
    build->llvm = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(build->llvm, on_llvm_diagnostic, build);
    build->code = mlirTranslateModuleToLLVMIR(mlirModuleGetOperation(build->module), build->llvm);
    if (!build->code)
        return cm_mlir_build_fail(build, "the program cannot be translated to LLVM");
    LLVMSetTarget(build->code, build->triple);
    LLVMSetDataLayout(build->code, build->layout);
    describe_functions(build);
    name_known_functions(build);
    if (build->job->glue.size &&
        !link_into(build, build->code, read_bitcode(build, &build->job->glue)))
        return false;
    if (!cm_mlir_match_calls(build))
        return false;
    add_constants(build);
    hide_all(build);
    if (!optimize(build, build->code, "default<O3>") || !add_kernels(build) ||
        !cm_mlir_match_calls(build))
        return false;
    hide_all(build);
    return build->job->form == CM_MLIR_LLVM ? write_text(build) : write_code(build);
}
