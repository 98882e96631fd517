/* MLIR's C interface in fewer words. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/module/ir.h"

#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

MlirStringRef cm_ir_text(const char *text)
{
    return mlirStringRefCreateFromCString(text);
}

static MlirStringRef name_of(MlirOperation op)
{
    return mlirIdentifierStr(mlirOperationGetName(op));
}

bool cm_ir_is(MlirOperation op, const char *name)
{
    return mlirStringRefEqual(name_of(op), cm_ir_text(name));
}

bool cm_ir_name_starts(MlirOperation op, const char *with)
{
    const MlirStringRef name = name_of(op);
    const size_t size = strlen(with);

    return name.length >= size && memcmp(name.data, with, size) == 0;
}

bool cm_ir_keeps_address(MlirOperation op)
{
    static const char *const names[] = {"memref.subview",          "memref.cast",
                                        "memref.reinterpret_cast", "memref.collapse_shape",
                                        "memref.expand_shape",     "memref.transpose",
                                        "memref.reshape"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (cm_ir_is(op, names[i]))
            return true;
    return false;
}

/* ---- walking ---- */

struct search {
    struct cm_ir_list found;
    const char *const *names;
};

static bool matches(MlirOperation op, const char *name)
{
    const size_t size = strlen(name);

    return name[size - 1] == '.' ? cm_ir_name_starts(op, name) : cm_ir_is(op, name);
}

static void add_found(struct cm_ir_list *list, MlirOperation op)
{
    if (list->count == list->room) {
        const size_t room = list->room ? 2 * list->room : 64;
        MlirOperation *items = realloc(list->items, room * sizeof *items);

        if (!items) {
            list->failed = true;
            return;
        }
        list->items = items;
        list->room = room;
    }
    list->items[list->count++] = op;
}

static MlirWalkResult visit(MlirOperation op, void *data)
{
    struct search *search = data;

    for (const char *const *name = search->names; *name; name++)
        if (matches(op, *name)) {
            add_found(&search->found, op);
            break;
        }
    return MlirWalkResultAdvance;
}

struct cm_ir_list cm_ir_find(MlirOperation root, const char *const *names)
{
    struct search search = {.names = names};

    mlirOperationWalk(root, visit, &search, MlirWalkPreOrder);
    return search.found;
}

void cm_ir_list_release(struct cm_ir_list *list)
{
    free(list->items);
    *list = (struct cm_ir_list){0};
}

/* ---- making ---- */

MlirOperation cm_ir_make(const struct cm_ir_new *parts)
{
    MlirOperationState state = mlirOperationStateGet(cm_ir_text(parts->name), parts->where);

    mlirOperationStateAddOperands(&state, (intptr_t)parts->n_operands, parts->operands);
    mlirOperationStateAddResults(&state, (intptr_t)parts->n_results, parts->results);
    mlirOperationStateAddAttributes(&state, (intptr_t)parts->n_attributes, parts->attributes);
    mlirOperationStateAddSuccessors(&state, (intptr_t)parts->n_successors, parts->successors);
    mlirOperationStateAddOwnedRegions(&state, (intptr_t)parts->n_regions, parts->regions);
    return mlirOperationCreate(&state);
}

MlirValue cm_ir_put(MlirOperation next, const struct cm_ir_new *parts)
{
    const MlirOperation op = cm_ir_make(parts);

    mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(next), next, op);
    return mlirOperationGetNumResults(op) > 0 ? mlirOperationGetResult(op, 0) : (MlirValue){0};
}

MlirValue cm_ir_compute(MlirOperation next, const char *name, const MlirValue *operands, size_t n,
                        MlirType result)
{
    return cm_ir_put(next, &(struct cm_ir_new){.name = name,
                                               .where = mlirOperationGetLocation(next),
                                               .operands = operands,
                                               .n_operands = n,
                                               .results = &result,
                                               .n_results = 1});
}

MlirNamedAttribute cm_ir_attribute(MlirContext context, const char *name, MlirAttribute value)
{
    return mlirNamedAttributeGet(mlirIdentifierGet(context, cm_ir_text(name)), value);
}

MlirAttribute cm_ir_parse(MlirContext context, const char *text)
{
    return mlirAttributeParseGet(context, cm_ir_text(text));
}

MlirValue cm_ir_index(MlirOperation next, int64_t value)
{
    const MlirContext context = mlirOperationGetContext(next);
    const MlirType index = mlirIndexTypeGet(context);
    const MlirNamedAttribute attribute =
        cm_ir_attribute(context, "value", mlirIntegerAttrGet(index, value));

    return cm_ir_put(next, &(struct cm_ir_new){.name = "arith.constant",
                                               .where = mlirOperationGetLocation(next),
                                               .results = &index,
                                               .n_results = 1,
                                               .attributes = &attribute,
                                               .n_attributes = 1});
}

static MlirValue put_call(MlirOperation next, const char *callee, const MlirValue *operands,
                          size_t n, const MlirType *results, size_t n_results)
{
    const MlirContext context = mlirOperationGetContext(next);
    const MlirNamedAttribute attribute =
        cm_ir_attribute(context, "callee", mlirFlatSymbolRefAttrGet(context, cm_ir_text(callee)));

    return cm_ir_put(next, &(struct cm_ir_new){.name = "func.call",
                                               .where = mlirOperationGetLocation(next),
                                               .operands = operands,
                                               .n_operands = n,
                                               .results = results,
                                               .n_results = n_results,
                                               .attributes = &attribute,
                                               .n_attributes = 1});
}

MlirValue cm_ir_call_of(MlirOperation next, const char *callee, const MlirValue *operands, size_t n,
                        MlirType result)
{
    return put_call(next, callee, operands, n, &result, 1);
}

MlirValue cm_ir_call(MlirOperation next, const char *callee, const MlirValue *operands, size_t n,
                     bool has_result)
{
    const MlirType index = mlirIndexTypeGet(mlirOperationGetContext(next));

    return put_call(next, callee, operands, n, &index, has_result);
}

static bool has_symbol(MlirModule module, const char *name)
{
    const MlirSymbolTable table = mlirSymbolTableCreate(mlirModuleGetOperation(module));
    const bool found = !mlirOperationIsNull(mlirSymbolTableLookup(table, cm_ir_text(name)));

    mlirSymbolTableDestroy(table);
    return found;
}

void cm_ir_declare(MlirModule module, const char *name, size_t n, bool has_result)
{
    char text[256];
    int used;

    if (has_symbol(module, name))
        return;
    used = snprintf(text, sizeof text, "func.func private @%s(", name);
    for (size_t i = 0; i < n; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%sindex", i ? ", " : "");
    snprintf(text + used, sizeof text - (size_t)used, ")%s", has_result ? " -> index" : "");
    const MlirOperation function =
        mlirOperationCreateParse(mlirModuleGetContext(module), cm_ir_text(text), cm_ir_text(name));
    mlirBlockInsertOwnedOperation(mlirModuleGetBody(module), 0, function);
}
