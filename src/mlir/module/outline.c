/* Each nest of loops becomes a function of its own. In one function LLVM takes time that grows
 * faster than its size; equal nests, as networks repeat them, become one function; and addresses
 * that are arguments can be promised not to overlap, which spares loops the question. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/module/ir.h"
#include "mlir/module/mlir_build.h"

#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OPERATIONS = 600, MOST_ARGUMENTS = 48 };

/* A function that was made: its text without its own name, to find an equal one. */
struct part {
    char *text, name[32];
};

struct outline {
    struct cm_mlir_build *build;
    struct part *parts;
    size_t count, room;
    MlirOperation unit;
    MlirValue values[MOST_ARGUMENTS];    /* that the unit takes from around it */
    MlirValue fixed[4 * MOST_ARGUMENTS]; /* constants, which it gets its own of */
    size_t n_values, n_fixed;
    bool failed, too_many;
};

/* ---- which operations ---- */

static MlirWalkResult weigh(MlirOperation op, void *data)
{
    int *room = data;

    *room -= cm_ir_is(op, "func.call") || cm_ir_is(op, "scf.while") ? MOST_OPERATIONS : 1;
    return *room < 0 ? MlirWalkResultInterrupt : MlirWalkResultAdvance;
}

static bool is_unit(MlirOperation op)
{
    int room = MOST_OPERATIONS;

    if (mlirOperationGetNumResults(op) > 0)
        return false;
    if (cm_ir_name_starts(op, "linalg."))
        return !cm_ir_is(op, "linalg.yield");
    if (!cm_ir_is(op, "scf.for") && !cm_ir_is(op, "scf.if"))
        return false;
    mlirOperationWalk(op, weigh, &room, MlirWalkPreOrder);
    return room > 0;
}

/* ---- what it takes from around it ---- */

static MlirOperation maker_of(MlirValue value)
{
    return mlirValueIsAOpResult(value)
               ? mlirOpResultGetOwner(value)
               : mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value));
}

static bool is_from_outside(const struct outline *o, MlirValue value)
{
    for (MlirOperation op = maker_of(value); !mlirOperationIsNull(op);
         op = mlirOperationGetParentOperation(op))
        if (mlirOperationEqual(op, o->unit))
            return false;
    return true;
}

static bool is_fixed(MlirValue value)
{
    return mlirValueIsAOpResult(value) &&
           (cm_ir_is(mlirOpResultGetOwner(value), "arith.constant") ||
            cm_ir_is(mlirOpResultGetOwner(value), "memref.get_global"));
}

static void add_value(struct outline *o, MlirValue value)
{
    const bool fixed = is_fixed(value);
    MlirValue *list = fixed ? o->fixed : o->values;
    size_t *count = fixed ? &o->n_fixed : &o->n_values;

    for (size_t i = 0; i < *count; i++)
        if (mlirValueEqual(list[i], value))
            return;
    if (*count == (fixed ? sizeof o->fixed / sizeof o->fixed[0] : MOST_ARGUMENTS))
        o->too_many = true;
    else
        list[(*count)++] = value;
}

static MlirWalkResult collect(MlirOperation op, void *data)
{
    struct outline *o = data;

    for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
        if (is_from_outside(o, mlirOperationGetOperand(op, i)))
            add_value(o, mlirOperationGetOperand(op, i));
    return MlirWalkResultAdvance;
}

/* The buffer that a memref is a part of; null: it is not known. Views of the arena that one unit
 * uses live at one time, so they are buffers apart. */
static MlirValue buffer_of(const struct outline *o, MlirValue value)
{
    while (mlirValueIsAOpResult(value)) {
        const MlirOperation maker = mlirOpResultGetOwner(value);

        if (cm_ir_is(maker, "memref.view") || cm_ir_is(maker, "memref.get_global"))
            return value;
        if (!cm_ir_keeps_address(maker))
            return (MlirValue){0};
        value = mlirOperationGetOperand(maker, 0);
    }
    return mlirOperationEqual(maker_of(value), o->build->main) ? value : (MlirValue){0};
}

static bool are_apart(const struct outline *o)
{
    MlirValue buffers[MOST_ARGUMENTS];
    size_t count = 0;

    for (size_t i = 0; i < o->n_values; i++) {
        if (!mlirTypeIsAMemRef(mlirValueGetType(o->values[i])))
            continue;
        const MlirValue buffer = buffer_of(o, o->values[i]);
        for (size_t k = 0; k < count; k++)
            if (mlirValueEqual(buffers[k], buffer))
                return false;
        if (!buffer.ptr)
            return false;
        buffers[count++] = buffer;
    }
    return true;
}

/* ---- the function ---- */

struct change {
    const struct outline *o;
    MlirBlock block;
    const MlirValue *own; /* of the fixed ones */
};

static MlirWalkResult use_arguments(MlirOperation op, void *data)
{
    const struct change *change = data;
    const struct outline *o = change->o;

    for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const MlirValue value = mlirOperationGetOperand(op, i);

        for (size_t k = 0; k < o->n_values; k++)
            if (mlirValueEqual(o->values[k], value))
                mlirOperationSetOperand(op, i, mlirBlockGetArgument(change->block, (intptr_t)k));
        for (size_t k = 0; k < o->n_fixed; k++)
            if (mlirValueEqual(o->fixed[k], value))
                mlirOperationSetOperand(op, i, change->own[k]);
    }
    return MlirWalkResultAdvance;
}

/* A function that holds the unit, not yet in the module. */
static MlirOperation make_function(struct outline *o, const MlirType *types)
{
    const MlirContext context = o->build->context;
    const MlirLocation where = mlirOperationGetLocation(o->unit);
    MlirLocation places[MOST_ARGUMENTS];
    MlirValue own[4 * MOST_ARGUMENTS];

    for (size_t i = 0; i < o->n_values; i++)
        places[i] = where;
    const MlirBlock block = mlirBlockCreate((intptr_t)o->n_values, types, places);
    for (size_t i = 0; i < o->n_fixed; i++) {
        const MlirOperation copy = mlirOperationClone(mlirOpResultGetOwner(o->fixed[i]));

        mlirBlockAppendOwnedOperation(block, copy);
        own[i] = mlirOperationGetResult(copy, 0);
    }
    mlirOperationRemoveFromParent(o->unit);
    mlirBlockAppendOwnedOperation(block, o->unit);
    mlirBlockAppendOwnedOperation(
        block, cm_ir_make(&(struct cm_ir_new){.name = "func.return", .where = where}));
    struct change change = {o, block, own};
    mlirOperationWalk(o->unit, use_arguments, &change, MlirWalkPreOrder);
    MlirRegion region = mlirRegionCreate();
    mlirRegionAppendOwnedBlock(region, block);
    const MlirType type = mlirFunctionTypeGet(context, (intptr_t)o->n_values, types, 0, NULL);
    const MlirNamedAttribute attributes[] = {
        cm_ir_attribute(context, "sym_name", mlirStringAttrGet(context, cm_ir_text("part"))),
        cm_ir_attribute(context, "sym_visibility",
                        mlirStringAttrGet(context, cm_ir_text("private"))),
        cm_ir_attribute(context, "function_type", mlirTypeAttrGet(type))};
    return cm_ir_make(&(struct cm_ir_new){.name = "func.func",
                                          .where = where,
                                          .attributes = attributes,
                                          .n_attributes = 3,
                                          .regions = &region,
                                          .n_regions = 1});
}

static void add_to_part(MlirStringRef piece, void *text)
{
    cm_mlir_string_add(text, piece.data, piece.length);
}

static char *print_part(MlirOperation function, bool apart)
{
    struct cm_mlir_string text = {0};
    const MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();

    mlirOpPrintingFlagsUseLocalScope(flags);
    cm_mlir_string_add(&text, apart ? "apart " : "", apart ? 6 : 0);
    mlirOperationPrintWithFlags(function, flags, add_to_part, &text);
    mlirOpPrintingFlagsDestroy(flags);
    if (text.failed) {
        free(text.data);
        return NULL;
    }
    return text.data;
}

/* The part with this text: one that is there, or a new one that takes `function` and `text`. */
static const char *part_of(struct outline *o, MlirOperation function, char *text, bool apart)
{
    for (size_t i = 0; i < o->count; i++)
        if (strcmp(o->parts[i].text, text) == 0) {
            mlirOperationDestroy(function);
            free(text);
            return o->parts[i].name;
        }
    if (o->count == o->room) {
        const size_t room = o->room ? 2 * o->room : 64;
        struct part *parts = realloc(o->parts, room * sizeof *parts);

        if (!parts) {
            mlirOperationDestroy(function);
            free(text);
            return NULL;
        }
        o->parts = parts;
        o->room = room;
    }
    struct part *part = &o->parts[o->count];
    part->text = text;
    snprintf(part->name, sizeof part->name, "%s%zu", apart ? CM_MLIR_APART : CM_MLIR_PART,
             o->count++);
    mlirOperationSetAttributeByName(function, cm_ir_text("sym_name"),
                                    mlirStringAttrGet(o->build->context, cm_ir_text(part->name)));
    mlirBlockInsertOwnedOperation(mlirModuleGetBody(o->build->module), 0, function);
    return part->name;
}

static void call_part(struct outline *o, MlirOperation unit)
{
    MlirType types[MOST_ARGUMENTS];
    const MlirOperation next = mlirOperationGetNextInBlock(unit);

    o->unit = unit;
    o->n_values = o->n_fixed = 0;
    o->too_many = false;
    mlirOperationWalk(unit, collect, o, MlirWalkPreOrder);
    if (o->too_many || mlirOperationIsNull(next))
        return;
    for (size_t i = 0; i < o->n_values; i++)
        types[i] = mlirValueGetType(o->values[i]);
    const bool apart = are_apart(o);
    const MlirOperation function = make_function(o, types);
    char *text = print_part(function, apart);
    const char *name = text ? part_of(o, function, text, apart) : NULL;
    if (name)
        cm_ir_call(next, name, o->values, o->n_values, false);
    else
        o->failed = true;
}

static void outline_block(struct outline *o, MlirBlock block);

static void outline_regions(struct outline *o, MlirOperation op)
{
    for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
        for (MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r));
             !mlirBlockIsNull(block); block = mlirBlockGetNextInRegion(block))
            outline_block(o, block);
}

static void outline_block(struct outline *o, MlirBlock block)
{
    MlirOperation next;

    for (MlirOperation op = mlirBlockGetFirstOperation(block);
         !mlirOperationIsNull(op) && !o->failed; op = next) {
        next = mlirOperationGetNextInBlock(op);
        if (is_unit(op))
            call_part(o, op);
        else
            outline_regions(o, op);
    }
}

bool cm_mlir_outline(struct cm_mlir_build *build)
{
    struct outline *o = calloc(1, sizeof *o);
    bool done = o != NULL;

    if (done) {
        o->build = build;
        outline_regions(o, build->main);
        done = !o->failed;
        for (size_t i = 0; i < o->count; i++)
            free(o->parts[i].text);
        free(o->parts);
    }
    free(o);
    return done || cm_mlir_build_fail(build, "memory ran out");
}
