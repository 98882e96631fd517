/* A buffer has many names: views of it, what an operation on memrefs gives, the values that loops
 * and branches pass on, and its address as a number. They are followed from the allocation on; the
 * uses of all of them make the lifetime. Where a use lies deeper than the allocation, the whole
 * operation around it counts: a loop may come back to it. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/module/lifetime.h"

#include "mlir/module/ir.h"

#include <mlir-c/BuiltinTypes.h>
#include <stdlib.h>

/* ---- order ---- */

static struct cm_mlir_numbered *slot_of(const struct cm_mlir_order *order, const void *op)
{
    size_t at = ((size_t)op >> 4) * 0x9E3779B97F4A7C15u % order->n_slots;

    while (order->slots[at].op && order->slots[at].op != op)
        at = (at + 1) % order->n_slots;
    return &order->slots[at];
}

static MlirWalkResult count_one(MlirOperation op, void *data)
{
    (void)op;
    *(size_t *)data += 1;
    return MlirWalkResultAdvance;
}

static MlirWalkResult number_start(MlirOperation op, void *data)
{
    struct cm_mlir_order *order = data;

    *slot_of(order, op.ptr) = (struct cm_mlir_numbered){op.ptr, order->next, order->next};
    order->next++;
    return MlirWalkResultAdvance;
}

/* After its regions: the end of an operation is the last number given in it. */
static MlirWalkResult number_end(MlirOperation op, void *data)
{
    struct cm_mlir_order *order = data;
    struct cm_mlir_numbered *own = slot_of(order, op.ptr);
    const MlirOperation parent = mlirOperationGetParentOperation(op);

    if (mlirOperationIsNull(parent))
        return MlirWalkResultAdvance;
    struct cm_mlir_numbered *around = slot_of(order, parent.ptr);
    if (around->op && around->end < own->end)
        around->end = own->end;
    return MlirWalkResultAdvance;
}

bool cm_mlir_order_init(struct cm_mlir_order *order, MlirOperation root)
{
    size_t count = 0;

    mlirOperationWalk(root, count_one, &count, MlirWalkPreOrder);
    *order = (struct cm_mlir_order){.n_slots = 2 * count + 3};
    order->slots = calloc(order->n_slots, sizeof *order->slots);
    if (!order->slots)
        return false;
    mlirOperationWalk(root, number_start, order, MlirWalkPreOrder);
    mlirOperationWalk(root, number_end, order, MlirWalkPostOrder);
    return true;
}

void cm_mlir_order_release(struct cm_mlir_order *order)
{
    free(order->slots);
}

/* ---- names ---- */

struct names {
    const struct cm_mlir_order *order;
    MlirOperation allocation;
    struct cm_mlir_lifetime *life;
    MlirValue *values; /* those before `done` have been followed */
    size_t count, done, room;
    bool failed;
};

static bool is_memory(MlirValue value)
{
    const MlirType type = mlirValueGetType(value);

    return mlirTypeIsAMemRef(type) || mlirTypeIsAUnrankedMemRef(type);
}

static bool is_number(MlirValue value)
{
    const MlirType type = mlirValueGetType(value);

    return mlirTypeIsAIndex(type) || mlirTypeIsAInteger(type);
}

static void add_name(struct names *names, MlirValue value)
{
    for (size_t i = 0; i < names->count; i++)
        if (mlirValueEqual(names->values[i], value))
            return;
    if (names->count == names->room) {
        const size_t room = names->room ? 2 * names->room : 16;
        MlirValue *values = realloc(names->values, room * sizeof *values);

        if (!values) {
            names->failed = true;
            return;
        }
        names->values = values;
        names->room = room;
    }
    names->values[names->count++] = value;
}

static void add_result(struct names *names, MlirOperation op, intptr_t i)
{
    if (i >= 0 && i < mlirOperationGetNumResults(op))
        add_name(names, mlirOperationGetResult(op, i));
}

static void add_argument(struct names *names, MlirOperation op, intptr_t region, intptr_t i)
{
    const MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, region));

    if (!mlirBlockIsNull(block) && i >= 0 && i < mlirBlockGetNumArguments(block))
        add_name(names, mlirBlockGetArgument(block, i));
}

static bool is_inside(MlirOperation op, MlirOperation around)
{
    for (; !mlirOperationIsNull(op); op = mlirOperationGetParentOperation(op))
        if (mlirOperationEqual(op, around))
            return true;
    return false;
}

static bool is_loop(MlirOperation op)
{
    return cm_ir_is(op, "scf.for") || cm_ir_is(op, "scf.while");
}

/* What a region hands to the operation around it. */
static void follow_terminator(struct names *names, MlirOperation op, intptr_t operand)
{
    const MlirOperation around = mlirOperationGetParentOperation(op);

    if (cm_ir_name_starts(around, "func.") ||
        (is_loop(around) && is_inside(names->allocation, around))) {
        names->life->escapes = true;
    } else if (cm_ir_is(op, "scf.condition")) {
        add_result(names, around, operand - 1);
        add_argument(names, around, 1, operand - 1);
    } else if (cm_ir_is(around, "scf.while")) {
        add_argument(names, around, 0, operand);
    } else if (cm_ir_is(around, "scf.for")) {
        add_result(names, around, operand);
        add_argument(names, around, 0, operand + 1);
    } else {
        add_result(names, around, operand);
    }
}

/* An operation that is not known better gives each of its memrefs, and its regions' too. */
static void follow_any(struct names *names, MlirOperation op)
{
    for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
        if (is_memory(mlirOperationGetResult(op, i)))
            add_result(names, op, i);
    for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++) {
        const MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r));
        const intptr_t count = mlirBlockIsNull(block) ? 0 : mlirBlockGetNumArguments(block);

        for (intptr_t i = 0; i < count; i++)
            if (is_memory(mlirBlockGetArgument(block, i)))
                add_argument(names, op, r, i);
    }
}

/* An address is a number: what is computed from it may be an address too. */
static void follow_address(struct names *names, MlirOperation op, intptr_t operand)
{
    if (cm_ir_is(op, "memref.store") && operand == 0)
        names->life->escapes = true;
    else if (cm_ir_name_starts(op, "arith.") && !cm_ir_is(op, "arith.cmpi"))
        for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++)
            if (is_number(mlirOperationGetResult(op, i)))
                add_result(names, op, i);
}

static void follow_use(struct names *names, MlirOperation op, intptr_t operand, bool is_address)
{
    if (mlirOperationGetNumSuccessors(op) > 0)
        names->life->escapes = true;
    else if (cm_ir_is(op, "scf.yield") || cm_ir_is(op, "scf.condition") ||
             cm_ir_is(op, "func.return"))
        follow_terminator(names, op, operand);
    else if (cm_ir_is(op, "scf.for") && operand >= 3) {
        add_result(names, op, operand - 3);
        add_argument(names, op, 0, operand - 2);
    } else if (cm_ir_is(op, "scf.while"))
        add_argument(names, op, 0, operand);
    else if (is_address)
        follow_address(names, op, operand);
    else if (cm_ir_is(op, "memref.extract_aligned_pointer_as_index"))
        add_result(names, op, 0);
    else
        follow_any(names, op);
}

/* ---- lifetime ---- */

/* The operation around `op`, or it itself, that lies in `block`; null: it is not in there. */
static MlirOperation lift(MlirOperation op, MlirBlock block)
{
    while (!mlirOperationIsNull(op) && !mlirBlockIsNull(mlirOperationGetBlock(op)) &&
           !mlirBlockEqual(mlirOperationGetBlock(op), block))
        op = mlirOperationGetParentOperation(op);
    return mlirOperationIsNull(op) || mlirBlockIsNull(mlirOperationGetBlock(op))
               ? (MlirOperation){0}
               : op;
}

static void extend(struct names *names, MlirOperation user)
{
    struct cm_mlir_lifetime *life = names->life;
    const struct cm_mlir_numbered *place;
    MlirOperation around = names->allocation;
    MlirOperation own = lift(user, mlirOperationGetBlock(around));

    if (!mlirOperationIsNull(own)) {
        place = slot_of(names->order, own.ptr);
        if (mlirOperationIsNull(life->until) ||
            slot_of(names->order, life->until.ptr)->end < place->end)
            life->until = own;
        if (place->start < life->first)
            life->first = place->start;
    }
    for (; mlirOperationIsNull(own); own = lift(user, mlirOperationGetBlock(around))) {
        around = mlirOperationGetParentOperation(around);
        life->leaves = true;
        life->first = slot_of(names->order, names->allocation.ptr)->start;
        if (mlirOperationIsNull(around) || mlirBlockIsNull(mlirOperationGetBlock(around))) {
            life->escapes = true;
            return;
        }
    }
    place = slot_of(names->order, own.ptr);
    if (place->end > life->last)
        life->last = place->end;
}

bool cm_mlir_lifetime_find(const struct cm_mlir_order *order, MlirOperation allocation,
                           struct cm_mlir_lifetime *out)
{
    struct names names = {.order = order, .allocation = allocation, .life = out};

    *out = (struct cm_mlir_lifetime){.first = INT64_MAX, .last = -1};
    add_name(&names, mlirOperationGetResult(allocation, 0));
    while (names.done < names.count && !names.failed && !out->escapes) {
        const MlirValue value = names.values[names.done++];
        const bool is_address = !is_memory(value);

        for (MlirOpOperand use = mlirValueGetFirstUse(value); !mlirOpOperandIsNull(use);
             use = mlirOpOperandGetNextUse(use)) {
            const MlirOperation user = mlirOpOperandGetOwner(use);

            extend(&names, user);
            follow_use(&names, user, (intptr_t)mlirOpOperandGetOperandNumber(use), is_address);
        }
    }
    free(names.values);
    return !names.failed;
}
