/* Which buffers get places in the arena before the program runs, and calls for all others. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/module/arena_places.h"
#include "mlir/module/ir.h"
#include "mlir/module/lifetime.h"
#include "mlir/module/mlir_build.h"

#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <stdlib.h>

static const char *const allocations[] = {"memref.alloc", "memref.alloca", NULL};

/* Bytes of an element in memory; 0: a type that no buffer has. */
static int64_t element_bytes(MlirType type)
{
    int64_t bits = 0;

    if (mlirTypeIsAIndex(type))
        bits = CM_MLIR_INDEX_BITS;
    else if (mlirTypeIsAInteger(type))
        bits = mlirIntegerTypeGetWidth(type);
    else if (mlirTypeIsAFloat(type))
        bits = mlirFloatTypeGetWidth(type);
    else if (mlirTypeIsAComplex(type))
        return 2 * element_bytes(mlirComplexTypeGetElementType(type));
    for (int64_t bytes = 1; bits > 0 && bytes <= 16; bytes *= 2)
        if (bits <= 8 * bytes)
            return bytes;
    return 0;
}

/* Bytes of the sizes in the type alone: those that are not known count as 1. -1: too many. */
static int64_t static_bytes(MlirType type)
{
    int64_t bytes = element_bytes(mlirShapedTypeGetElementType(type));

    for (intptr_t i = 0; i < mlirShapedTypeGetRank(type); i++)
        if (!mlirShapedTypeIsDynamicDim(type, i) &&
            __builtin_mul_overflow(bytes, mlirShapedTypeGetDimSize(type, i), &bytes))
            return -1;
    return bytes;
}

static bool can_be_viewed(MlirType type)
{
    return mlirAffineMapIsIdentity(mlirMemRefTypeGetAffineMap(type)) &&
           mlirAttributeIsNull(mlirMemRefTypeGetMemorySpace(type));
}

/* The allocation becomes a view of the arena at `offset`. */
static void replace_by_view(struct cm_mlir_build *build, MlirOperation allocation, MlirValue offset)
{
    const MlirType type = mlirValueGetType(mlirOperationGetResult(allocation, 0));
    const size_t n_sizes = (size_t)mlirOperationGetNumOperands(allocation);
    MlirValue operands[2 + 64];

    operands[0] = build->arguments[CM_MLIR_ARENA];
    operands[1] = offset;
    for (size_t i = 0; i < n_sizes; i++)
        operands[2 + i] = mlirOperationGetOperand(allocation, (intptr_t)i);
    const MlirValue view = cm_ir_compute(allocation, "memref.view", operands, 2 + n_sizes, type);
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(allocation, 0), view);
    mlirOperationDestroy(allocation);
}

/* ---- places ---- */

/* A list of those that can have one, in `out`, with their lifetimes. */
static bool find_planned(struct cm_mlir_build *build, const struct cm_ir_list *found,
                         const struct cm_mlir_order *order, MlirOperation *out,
                         struct cm_mlir_place *places, size_t *count)
{
    struct cm_mlir_lifetime life;

    for (size_t i = 0; i < found->count; i++) {
        const MlirType type = mlirValueGetType(mlirOperationGetResult(found->items[i], 0));

        if (!mlirShapedTypeHasStaticShape(type) || !can_be_viewed(type))
            continue;
        if (!cm_mlir_lifetime_find(order, found->items[i], &life))
            return cm_mlir_build_fail(build, "memory ran out");
        const int64_t bytes = static_bytes(type);
        if (bytes < 0)
            return cm_mlir_build_fail(build, "a buffer is larger than any memory");
        if (life.escapes)
            continue;
        out[*count] = found->items[i];
        places[*count] = (struct cm_mlir_place){life.first, life.last, bytes, 0};
        if (life.last < 0) /* nobody uses it */
            places[*count].first = 0, places[*count].bytes = 0;
        *count += 1;
    }
    return true;
}

static bool plan_fixed(struct cm_mlir_build *build, const struct cm_ir_list *found,
                       const struct cm_mlir_order *order)
{
    MlirOperation *ops = calloc(found->count + 1, sizeof *ops);
    struct cm_mlir_place *places = calloc(found->count + 1, sizeof *places);
    const int64_t most = build->pointer_bits == 32 ? INT32_MAX : INT64_MAX / 2;
    size_t count = 0;
    bool done = ops && places;

    if (!done)
        cm_mlir_build_fail(build, "memory ran out");
    done = done && find_planned(build, found, order, ops, places, &count);
    if (done && !cm_mlir_place_all(places, count, most, &build->out->arena_bytes))
        done = cm_mlir_build_fail(build, "the buffers need more than %lld bytes", (long long)most);
    for (size_t i = 0; done && i < count; i++)
        replace_by_view(build, ops[i], cm_ir_index(ops[i], places[i].offset));
    free(ops);
    free(places);
    return done;
}

/* ---- calls ---- */

static MlirValue address_of(MlirOperation next, MlirValue memory)
{
    const MlirType index = mlirIndexTypeGet(mlirOperationGetContext(next));

    return cm_ir_compute(next, "memref.extract_aligned_pointer_as_index", &memory, 1, index);
}

static MlirValue compute(MlirOperation next, const char *name, MlirValue a, MlirValue b)
{
    const MlirType index = mlirIndexTypeGet(mlirOperationGetContext(next));
    const MlirValue operands[] = {a, b};

    return cm_ir_compute(next, name, operands, 2, index);
}

/* What cm_allocate gives lies in the arena too, behind the planned part: a view at its distance. */
static bool allocate_by_call(struct cm_mlir_build *build, MlirOperation allocation)
{
    const MlirType type = mlirValueGetType(mlirOperationGetResult(allocation, 0));
    const int64_t bytes = static_bytes(type);

    if (bytes < 0 || !can_be_viewed(type) || mlirOperationGetNumOperands(allocation) > 64)
        return cm_mlir_build_fail(build, "a buffer has a type that cannot be allocated");
    MlirValue size = cm_ir_index(allocation, bytes);
    /* Sizes may come from data: what overflows must not look small. */
    for (intptr_t i = 0; i < mlirOperationGetNumOperands(allocation); i++) {
        const MlirValue factors[] = {size, mlirOperationGetOperand(allocation, i)};
        size = cm_ir_call(allocation, "cm_times", factors, 2, true);
    }
    const MlirValue operands[] = {build->arguments[CM_MLIR_CONTEXT], size};
    const MlirValue address = cm_ir_call(allocation, "cm_allocate", operands, 2, true);
    const MlirValue base = address_of(allocation, build->arguments[CM_MLIR_ARENA]);
    replace_by_view(build, allocation, compute(allocation, "arith.subi", address, base));
    build->out->arena_is_fixed = false;
    return true;
}

static void release_by_call(struct cm_mlir_build *build, MlirOperation next, MlirValue memory)
{
    const MlirValue operands[] = {build->arguments[CM_MLIR_CONTEXT], address_of(next, memory)};

    cm_ir_call(next, "cm_release", operands, 2, false);
}

/* Buffers of sizes that are computed, which die in the block that makes them. */
static bool allocate_stretches(struct cm_mlir_build *build, const struct cm_mlir_order *order)
{
    struct cm_ir_list found = cm_ir_find(build->main, allocations);
    bool done = !found.failed;

    for (size_t i = 0; done && i < found.count; i++) {
        struct cm_mlir_lifetime life;

        done = cm_mlir_lifetime_find(order, found.items[i], &life);
        if (!done || life.escapes || life.leaves || mlirOperationIsNull(life.until))
            continue;
        const MlirOperation next = mlirOperationGetNextInBlock(life.until);
        if (mlirOperationIsNull(next))
            continue;
        release_by_call(build, next, mlirOperationGetResult(found.items[i], 0));
        done = allocate_by_call(build, found.items[i]);
    }
    cm_ir_list_release(&found);
    return done || cm_mlir_build_fail(build, "memory ran out");
}

/* Those that loops carry or branches give: MLIR finds who owns them when. */
static bool allocate_owned(struct cm_mlir_build *build)
{
    static const char *const names[] = {"memref.alloc", "memref.alloca", "memref.dealloc", NULL};
    const MlirOperation module = mlirModuleGetOperation(build->module);
    struct cm_ir_list found = cm_ir_find(module, allocations);
    const bool none = !found.failed && found.count == 0;

    cm_ir_list_release(&found);
    if (none)
        return true;
    if (!cm_mlir_build_passes(build, "buffer-deallocation-pipeline,convert-bufferization-to-memref,"
                                     "inline,canonicalize,cse"))
        return false;
    found = cm_ir_find(module, names);
    bool done = !found.failed || cm_mlir_build_fail(build, "memory ran out");
    for (size_t i = 0; done && i < found.count; i++) {
        if (cm_ir_is(found.items[i], "memref.dealloc")) {
            release_by_call(build, found.items[i], mlirOperationGetOperand(found.items[i], 0));
            mlirOperationDestroy(found.items[i]);
        } else {
            done = allocate_by_call(build, found.items[i]);
        }
    }
    cm_ir_list_release(&found);
    return done;
}

bool cm_mlir_plan_arena(struct cm_mlir_build *build)
{
    struct cm_ir_list found = cm_ir_find(build->main, allocations);
    struct cm_mlir_order order = {0};
    bool done = !found.failed && cm_mlir_order_init(&order, build->main);

    if (!done)
        cm_mlir_build_fail(build, "memory ran out");
    cm_ir_declare(build->module, "cm_allocate", 2, true);
    cm_ir_declare(build->module, "cm_release", 2, false);
    cm_ir_declare(build->module, "cm_times", 2, true);
    build->out->arena_is_fixed = true;
    done = done && plan_fixed(build, &found, &order) && allocate_stretches(build, &order) &&
           allocate_owned(build);
    cm_mlir_order_release(&order);
    cm_ir_list_release(&found);
    return done;
}
