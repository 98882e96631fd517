/* Nests of loops before they are loops. LLVM makes vectors of the innermost one, where neighbours
 * in memory follow each other and no turn waits for the one before: a sum along a row of floats
 * does. Such a nest gets a parallel loop as its innermost; the order of what is summed stays. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/module/ir.h"
#include "mlir/module/mlir_build.h"

#include <mlir-c/AffineExpr.h>
#include <mlir-c/AffineMap.h>
#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LOOPS = 16 };

/* ---- copies ---- */

static bool is_plain(MlirType type)
{
    return mlirAffineMapIsIdentity(mlirMemRefTypeGetAffineMap(type));
}

static MlirAttribute repeat_text(MlirContext context, const char *item, size_t count)
{
    struct cm_mlir_string text = {0};
    MlirAttribute result = {0};

    cm_mlir_string_add(&text, "[", 1);
    for (size_t i = 0; i < count; i++) {
        cm_mlir_string_add(&text, i ? ", " : "", i ? 2 : 0);
        cm_mlir_string_add(&text, item, strlen(item));
    }
    cm_mlir_string_add(&text, "]", 1);
    if (!text.failed)
        result = cm_ir_parse(context, text.data);
    free(text.data);
    return result;
}

/* linalg.generic that gives each element on. */
static bool copy_by_loops(MlirOperation copy)
{
    const MlirContext context = mlirOperationGetContext(copy);
    const MlirLocation where = mlirOperationGetLocation(copy);
    const MlirValue operands[] = {mlirOperationGetOperand(copy, 0),
                                  mlirOperationGetOperand(copy, 1)};
    const MlirType type = mlirValueGetType(operands[0]);
    const intptr_t rank = mlirShapedTypeGetRank(type);
    const MlirAttribute map = mlirAffineMapAttrGet(mlirAffineMapMultiDimIdentityGet(context, rank));
    const MlirAttribute maps[] = {map, map};
    const MlirAttribute kinds =
        repeat_text(context, "#linalg.iterator_type<parallel>", (size_t)rank);
    const MlirType element = mlirShapedTypeGetElementType(type);
    const MlirType types[] = {element, element};
    const MlirLocation places[] = {where, where};

    if (mlirAttributeIsNull(kinds))
        return false;
    const MlirBlock body = mlirBlockCreate(2, types, places);
    const MlirValue moved = mlirBlockGetArgument(body, 0);
    mlirBlockAppendOwnedOperation(
        body, cm_ir_make(&(struct cm_ir_new){
                  .name = "linalg.yield", .where = where, .operands = &moved, .n_operands = 1}));
    MlirRegion region = mlirRegionCreate();
    mlirRegionAppendOwnedBlock(region, body);
    const MlirNamedAttribute attributes[] = {
        cm_ir_attribute(context, "indexing_maps", mlirArrayAttrGet(context, 2, maps)),
        cm_ir_attribute(context, "iterator_types", kinds),
        cm_ir_attribute(context, "operandSegmentSizes", cm_ir_parse(context, "array<i32: 1, 1>"))};
    cm_ir_put(copy, &(struct cm_ir_new){.name = "linalg.generic",
                                        .where = where,
                                        .operands = operands,
                                        .n_operands = 2,
                                        .attributes = attributes,
                                        .n_attributes = 3,
                                        .regions = &region,
                                        .n_regions = 1});
    mlirOperationDestroy(copy);
    return true;
}

bool cm_mlir_copy_by_loops(struct cm_mlir_build *build)
{
    static const char *const names[] = {"memref.copy", NULL};
    struct cm_ir_list found = cm_ir_find(mlirModuleGetOperation(build->module), names);
    bool done = !found.failed;

    for (size_t i = 0; done && i < found.count; i++) {
        const MlirType from = mlirValueGetType(mlirOperationGetOperand(found.items[i], 0));
        const MlirType to = mlirValueGetType(mlirOperationGetOperand(found.items[i], 1));

        if (mlirTypeIsAMemRef(from) && mlirTypeIsAMemRef(to) && (!is_plain(from) || !is_plain(to)))
            done = copy_by_loops(found.items[i]);
    }
    cm_ir_list_release(&found);
    return done || cm_mlir_build_fail(build, "memory ran out");
}

/* ---- order ---- */

struct nest {
    MlirOperation op;
    MlirAttribute maps, kinds;
    intptr_t n_loops, n_operands, n_inputs;
};

static bool read_nest(MlirOperation op, struct nest *out)
{
    *out = (struct nest){.op = op,
                         .maps = mlirOperationGetAttributeByName(op, cm_ir_text("indexing_maps")),
                         .kinds = mlirOperationGetAttributeByName(op, cm_ir_text("iterator_types")),
                         .n_operands = mlirOperationGetNumOperands(op)};
    const MlirAttribute segments =
        mlirOperationGetAttributeByName(op, cm_ir_text("operandSegmentSizes"));
    if (mlirAttributeIsNull(out->maps) || mlirAttributeIsNull(out->kinds) ||
        mlirAttributeIsNull(segments) || mlirOperationGetNumResults(op) > 0)
        return false;
    out->n_loops = mlirArrayAttrGetNumElements(out->kinds);
    out->n_inputs = mlirDenseI32ArrayGetElement(segments, 0);
    return out->n_loops > 1 && out->n_loops <= MOST_LOOPS &&
           mlirArrayAttrGetNumElements(out->maps) == out->n_operands;
}

static void add_to_text(MlirStringRef piece, void *text)
{
    cm_mlir_string_add(text, piece.data, piece.length);
}

static bool is_parallel(const struct nest *nest, intptr_t loop)
{
    struct cm_mlir_string text = {0};

    mlirAttributePrint(mlirArrayAttrGetElement(nest->kinds, loop), add_to_text, &text);
    const bool found = text.data && strstr(text.data, "parallel");
    free(text.data);
    return found;
}

/* By how much `expr` grows with one step of `loop`; -1: not by a constant. */
static int64_t step_of(MlirAffineExpr expr, intptr_t loop)
{
    if (!mlirAffineExprIsFunctionOfDim(expr, loop))
        return 0;
    if (mlirAffineExprIsADim(expr))
        return 1;
    if (!mlirAffineExprIsABinary(expr))
        return -1;
    const MlirAffineExpr left = mlirAffineBinaryOpExprGetLHS(expr);
    const MlirAffineExpr right = mlirAffineBinaryOpExprGetRHS(expr);
    if (mlirAffineExprIsAAdd(expr)) {
        const int64_t a = step_of(left, loop), b = step_of(right, loop);
        return a < 0 || b < 0 ? -1 : a + b;
    }
    if (mlirAffineExprIsAMul(expr) && mlirAffineExprIsAConstant(right)) {
        const int64_t a = step_of(left, loop);
        return a < 0 ? -1 : a * mlirAffineConstantExprGetValue(right);
    }
    return -1;
}

/* How an operand moves with `loop`: 0 not at all or to the neighbour, else farther. */
static int cost_of_operand(const struct nest *nest, intptr_t operand, intptr_t loop)
{
    const MlirAffineMap map =
        mlirAffineMapAttrGetValue(mlirArrayAttrGetElement(nest->maps, operand));
    const intptr_t rank = mlirAffineMapGetNumResults(map);

    for (intptr_t i = 0; i + 1 < rank; i++)
        if (step_of(mlirAffineMapGetResult(map, i), loop) != 0)
            return 1;
    const int64_t step = rank ? step_of(mlirAffineMapGetResult(map, rank - 1), loop) : 0;
    return step != 0 && step != 1;
}

/* A loop whose turns wait for each other is worse than one that reads in steps. */
static int cost_of(const struct nest *nest, intptr_t loop)
{
    int cost = is_parallel(nest, loop) ? 0 : 4;

    for (intptr_t i = 0; i < nest->n_operands; i++)
        cost += cost_of_operand(nest, i, loop) * (i < nest->n_inputs ? 2 : 5);
    return cost;
}

/* The loop that should be the innermost; the last one where that is as good. */
static intptr_t best_loop(const struct nest *nest)
{
    intptr_t best = nest->n_loops - 1;

    for (intptr_t i = nest->n_loops - 2; i >= 0; i--)
        if (cost_of(nest, i) < cost_of(nest, best))
            best = i;
    return best;
}

/* Loop numbers in the body follow. */
static bool renumber_body(MlirOperation op, const intptr_t *place)
{
    static const char *const names[] = {"linalg.index", NULL};
    struct cm_ir_list found = cm_ir_find(op, names);
    const bool done = !found.failed;

    for (size_t i = 0; i < found.count; i++) {
        const MlirAttribute dim =
            mlirOperationGetAttributeByName(found.items[i], cm_ir_text("dim"));
        const int64_t loop = mlirIntegerAttrGetValueInt(dim);

        mlirOperationSetAttributeByName(
            found.items[i], cm_ir_text("dim"),
            mlirIntegerAttrGet(mlirAttributeGetType(dim), (int64_t)place[loop]));
    }
    cm_ir_list_release(&found);
    return done;
}

/* Makes `inner` the innermost loop; the others keep their order. */
static bool reorder(const struct nest *nest, intptr_t inner)
{
    const MlirContext context = mlirOperationGetContext(nest->op);
    intptr_t place[MOST_LOOPS];
    MlirAffineExpr moved[MOST_LOOPS];
    MlirAttribute kinds[MOST_LOOPS];
    MlirAttribute *maps = calloc((size_t)nest->n_operands, sizeof *maps);

    if (!maps)
        return false;
    for (intptr_t i = 0; i < nest->n_loops; i++) {
        place[i] = i < inner ? i : i > inner ? i - 1 : nest->n_loops - 1;
        moved[i] = mlirAffineDimExprGet(context, place[i]);
        kinds[place[i]] = mlirArrayAttrGetElement(nest->kinds, i);
    }
    const MlirAffineMap change = mlirAffineMapGet(context, nest->n_loops, 0, nest->n_loops, moved);
    for (intptr_t i = 0; i < nest->n_operands; i++) {
        const MlirAffineMap map = mlirAffineMapAttrGetValue(mlirArrayAttrGetElement(nest->maps, i));
        const intptr_t rank = mlirAffineMapGetNumResults(map);
        MlirAffineExpr *exprs = calloc((size_t)rank + 1, sizeof *exprs);

        if (!exprs) {
            free(maps);
            return false;
        }
        for (intptr_t k = 0; k < rank; k++)
            exprs[k] = mlirAffineExprCompose(mlirAffineMapGetResult(map, k), change);
        maps[i] = mlirAffineMapAttrGet(mlirAffineMapGet(context, nest->n_loops, 0, rank, exprs));
        free(exprs);
    }
    mlirOperationSetAttributeByName(nest->op, cm_ir_text("indexing_maps"),
                                    mlirArrayAttrGet(context, nest->n_operands, maps));
    mlirOperationSetAttributeByName(nest->op, cm_ir_text("iterator_types"),
                                    mlirArrayAttrGet(context, nest->n_loops, kinds));
    free(maps);
    return renumber_body(nest->op, place);
}

bool cm_mlir_order_loops(struct cm_mlir_build *build)
{
    static const char *const names[] = {"linalg.generic", NULL};

    struct cm_ir_list found = cm_ir_find(mlirModuleGetOperation(build->module), names);
    bool done = !found.failed;
    for (size_t i = 0; done && i < found.count; i++) {
        struct nest nest;

        if (!read_nest(found.items[i], &nest))
            continue;
        const intptr_t inner = best_loop(&nest);
        if (inner != nest.n_loops - 1)
            done = reorder(&nest, inner);
    }
    cm_ir_list_release(&found);
    return done || cm_mlir_build_fail(build, "memory ran out");
}
