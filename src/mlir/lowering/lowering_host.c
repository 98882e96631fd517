/* What templates can ask of the node they are expanded for; docs/mlir-templates.md has the list. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/lowering/let.h"
#include "mlir/lowering/lowering_state.h"
#include "mlir/lowering/templates.h"
#include "template/template_run.h"

#include <stdio.h>
#include <string.h>

/* ---- operands and results by the names of the schema ---- */

static struct cm_term value_term(const struct cm_mlir_use *use, cm_value value,
                                 const struct cm_str *scalars, int index)
{
    if (!value)
        return CM_TERM_ABSENT;
    return (struct cm_term){.kind = CM_TERM_VALUE,
                            .i = value,
                            .text = use->is_scalar ? scalars[index]
                                                   : cm_mlir_name(use->lowering, value)};
}

/* Finds the parameter of a name; a variadic one is a list. */
static bool find_param(const struct cm_mlir_use *use, const struct cm_schema_param *params,
                       size_t count, int given, bool is_input, struct cm_str name,
                       struct cm_term *out)
{
    const struct cm_str *scalars = is_input ? use->inputs : use->outputs;

    for (size_t p = 0; p < count; p++) {
        if (!cm_str_is(name, params[p].name))
            continue;
        const int first = (int)p;
        if (params[p].kind != CM_PARAM_VARIADIC) {
            const cm_value value =
                is_input ? cm_node_input(use->node, first) : cm_node_output(use->node, first);
            *out = value_term(use, value, scalars, first);
            return true;
        }
        const size_t size = given > first ? (size_t)(given - first) : 0;
        struct cm_term *items = CM_NEW_ARRAY(use->lowering->arena, struct cm_term, size + 1);
        for (size_t i = 0; i < size; i++) {
            const int at = first + (int)i;
            const cm_value value =
                is_input ? cm_node_input(use->node, at) : cm_node_output(use->node, at);
            items[i] = value_term(use, value, scalars, at);
        }
        *out = (struct cm_term){.kind = CM_TERM_LIST, .items = items, .count = size};
        return true;
    }
    return false;
}

static bool host_name(void *arg, struct cm_str name, struct cm_term *out)
{
    const struct cm_mlir_use *use = arg;
    const struct cm_schema *schema = use->node->schema;

    if (cm_str_is(name, "pure")) {
        *out = cm_term_int(use->lowering->options->is_pure);
        return true;
    }
    /* An operator may call a result as it calls an operand: the result is then NAME_out. */
    if (find_param(use, schema->inputs, schema->input_count, use->node->n_inputs, true, name, out))
        return true;
    if (find_param(use, schema->outputs, schema->output_count, use->node->n_outputs, false, name,
                   out))
        return true;
    const struct cm_str suffix = CM_STR("_out");
    if (name.size > suffix.size && cm_str_ends(name, "_out")) {
        name.size -= suffix.size;
        return find_param(use, schema->outputs, schema->output_count, use->node->n_outputs, false,
                          name, out);
    }
    return false;
}

/* ---- attributes and contents as terms ---- */

static struct cm_term float_term(double f)
{
    return (struct cm_term){.kind = CM_TERM_FLOAT, .f = f};
}

static struct cm_term list_term(struct cm_arena *arena, size_t count, struct cm_term **items)
{
    *items = CM_NEW_ARRAY(arena, struct cm_term, count + 1);
    return (struct cm_term){.kind = CM_TERM_LIST, .items = *items, .count = count};
}

/* The contents of a tensor as one list, rows one after the other. */
static struct cm_term contents_term(struct cm_arena *arena, const struct cm_tensor *tensor)
{
    const enum cm_dtype_class kind = cm_dtype_info(tensor->type)->kind;
    struct cm_term *items;
    const struct cm_term list = list_term(arena, (size_t)cm_tensor_count(tensor), &items);

    for (size_t i = 0; i < list.count; i++)
        items[i] = kind == CM_CLASS_FLOAT ? float_term(cm_tensor_real(tensor, (int64_t)i))
                                          : cm_term_int(cm_tensor_int(tensor, (int64_t)i));
    return list;
}

static struct cm_term attribute(const struct cm_mlir_use *use, struct cm_template_run *run,
                                struct cm_str name)
{
    struct cm_arena *arena = use->lowering->arena;
    const char *text = cm_arena_str(arena, name).data;
    const struct cm_schema *schema = use->node->schema;
    struct cm_term *items, list = CM_TERM_ABSENT;

    for (size_t i = 0; i < schema->attr_count; i++) {
        if (strcmp(schema->attrs[i].name, text) != 0)
            continue;
        if (!cm_node_has_attr(use->node, text))
            return list;
        switch (schema->attrs[i].kind) {
        case CM_SCHEMA_INT:
            return cm_term_int(cm_node_int(use->node, text));
        case CM_SCHEMA_FLOAT:
            return float_term((double)cm_node_float(use->node, text));
        case CM_SCHEMA_STRING:
            return cm_term_text(cm_node_str(use->node, text));
        case CM_SCHEMA_INTS: {
            const struct cm_int64s ints = cm_node_ints(use->node, text);
            list = list_term(arena, ints.count, &items);
            for (size_t k = 0; k < ints.count; k++)
                items[k] = cm_term_int(ints.items[k]);
            return list;
        }
        case CM_SCHEMA_FLOATS: {
            const struct cm_floats floats = cm_node_floats(use->node, text);
            list = list_term(arena, floats.count, &items);
            for (size_t k = 0; k < floats.count; k++)
                items[k] = float_term((double)floats.items[k]);
            return list;
        }
        case CM_SCHEMA_STRINGS: {
            const struct cm_strs strs = cm_node_strs(use->node, text);
            list = list_term(arena, strs.count, &items);
            for (size_t k = 0; k < strs.count; k++)
                items[k] = cm_term_text(strs.items[k]);
            return list;
        }
        case CM_SCHEMA_TENSOR: {
            struct cm_tensor tensor = {0};
            struct cm_error err = {0};
            if (cm_node_tensor(use->node, text, &tensor, &err) != CM_OK) {
                cm_template_refuse(run, "%s", err.text);
                return list;
            }
            if (tensor.type == CM_STRING)
                cm_template_refuse(run, "strings are not compiled");
            else
                list = contents_term(arena, &tensor);
            cm_tensor_drop(&tensor);
            return list;
        }
        default:
            return list;
        }
    }
    cm_template_wrong(run, "there is no attribute '%s'", text);
    return list;
}

/* ---- functions of one value ---- */

static struct cm_term dims_term(const struct cm_mlir_use *use, const struct cm_type *type)
{
    struct cm_term *items;
    const struct cm_term list = list_term(use->lowering->arena, (size_t)type->rank, &items);

    for (int i = 0; i < type->rank; i++)
        items[i] = cm_dim_known(type->dims[i]) ? cm_term_int(type->dims[i].value) : CM_TERM_ABSENT;
    return list;
}

static struct cm_term size_term(const struct cm_mlir_use *use, cm_value value, int64_t axis)
{
    return cm_term_text(cm_mlir_size(use->lowering, value, (int)axis));
}

/* Sizes as names of indices: of all axes, or of those alone that are not numbers. */
static struct cm_term sizes_term(const struct cm_mlir_use *use, cm_value value, bool unknown_only)
{
    const struct cm_type *type = cm_mlir_type(use->lowering, value);
    struct cm_term *items, list = list_term(use->lowering->arena, (size_t)type->rank, &items);

    list.count = 0;
    for (int i = 0; i < type->rank; i++)
        if (!unknown_only || !cm_dim_known(type->dims[i]))
            items[list.count++] = size_term(use, value, i);
    return list;
}

/* The element type that arithmetic sees: f32 for halves that are widened around a template. */
static enum cm_dtype seen_type(const struct cm_mlir_use *use, const struct cm_type *type)
{
    const bool is_half = type->dtype == CM_FLOAT16 || type->dtype == CM_BFLOAT16;

    return use->is_wide && is_half ? CM_FLOAT : type->dtype;
}

static bool of_value(const struct cm_mlir_use *use, struct cm_str name, cm_value value,
                     struct cm_term *out)
{
    struct cm_mlir_lowering *l = use->lowering;
    const struct cm_type *type = cm_mlir_type(l, value);

    if (cm_str_is(name, "rank"))
        *out = cm_term_int(type->rank);
    else if (cm_str_is(name, "dims"))
        *out = dims_term(use, type);
    else if (cm_str_is(name, "type"))
        *out = cm_term_text(cm_mlir_value_type(l, value));
    else if (cm_str_is(name, "memory"))
        *out = cm_term_text(
            cm_mlir_type_text(l->arena, "memref", type->dtype, type->rank, type->dims));
    else if (cm_str_is(name, "elem"))
        *out = cm_term_text(cm_str(cm_mlir_element(seen_type(use, type))));
    else if (cm_str_is(name, "scalar"))
        *out = cm_term_text(cm_str(cm_mlir_scalar(seen_type(use, type))));
    else if (cm_str_is(name, "bits"))
        *out = cm_term_int(cm_dtype_info(seen_type(use, type))->bits);
    else if (cm_str_is(name, "is_float"))
        *out = cm_term_int(cm_mlir_scalar(type->dtype)[0] != 'i');
    else if (cm_str_is(name, "is_unsigned"))
        *out = cm_term_int(cm_mlir_element(type->dtype)[0] == 'u');
    else if (cm_str_is(name, "sizes"))
        *out = sizes_term(use, value, false);
    else if (cm_str_is(name, "unknown_sizes"))
        *out = sizes_term(use, value, true);
    else if (cm_str_is(name, "const")) {
        const struct cm_tensor *tensor = cm_mlir_contents(l, value);
        *out = tensor && cm_tensor_count(tensor) <= 65536 ? contents_term(l->arena, tensor)
                                                          : CM_TERM_ABSENT;
    } else
        return false;
    return true;
}

/* ---- the rest ---- */

/* tensor(DIMS, "f32"), memref(DIMS, "f32"): a type; sizes that are not numbers are unknown. */
static struct cm_term type_term(const struct cm_mlir_use *use, struct cm_str word,
                                const struct cm_term *dims, struct cm_str scalar)
{
    struct cm_str text = cm_arena_printf(use->lowering->arena, "%.*s<", CM_STR_FMT(word));

    for (size_t i = 0; i < dims->count; i++)
        text = dims->items[i].kind == CM_TERM_INT
                   ? cm_arena_printf(use->lowering->arena, "%.*s%lldx", (int)text.size, text.data,
                                     (long long)dims->items[i].i)
                   : cm_arena_printf(use->lowering->arena, "%.*s?x", (int)text.size, text.data);
    /* "u8" and the like are for @let: a type of MLIR has no sign. */
    if (scalar.size && scalar.data[0] == 'u')
        scalar =
            cm_arena_printf(use->lowering->arena, "i%.*s", (int)scalar.size - 1, scalar.data + 1);
    return cm_term_text(cm_arena_printf(use->lowering->arena, "%.*s%.*s>", (int)text.size,
                                        text.data, CM_STR_FMT(scalar)));
}

/* kernel("cameo_product_f32", 12): declares it, all arguments index; kernel(NAME, ["index", "f32"])
 * names their types; kernel(NAME, 2, "index") gives one back. */
static struct cm_term kernel_term(const struct cm_mlir_use *use, struct cm_template_run *run,
                                  struct cm_str name, const struct cm_term *arguments, bool gives)
{
    struct cm_mlir_lowering *l = use->lowering;
    const struct cm_str symbol = cm_arena_printf(l->arena, "@%.*s", CM_STR_FMT(name));
    const bool are_named = arguments->kind == CM_TERM_LIST;
    const int64_t count = are_named ? (int64_t)arguments->count : arguments->i;

    for (size_t i = 0; i < l->kernels.count; i++)
        if (cm_str_equal(l->kernels.items[i], name))
            return cm_term_text(symbol);
    *CM_PUSH(l->arena, &l->kernels) = cm_arena_str(l->arena, name);
    cm_mlir_put(l, &l->head,
                cm_arena_printf(l->arena, "  func.func private %.*s(", CM_STR_FMT(symbol)));
    for (int64_t i = 0; i < count; i++) {
        if (i)
            cm_mlir_put(l, &l->head, CM_STR(", "));
        cm_mlir_put(l, &l->head,
                    are_named ? cm_term_print(run, &arguments->items[i]) : CM_STR("index"));
    }
    cm_mlir_put(l, &l->head, gives ? CM_STR(") -> index\n") : CM_STR(")\n"));
    return cm_term_text(symbol);
}

/* size_from(x, i, VALUES): the size of an axis of x before x is there: a number, or that of an axis
 * of another value which is surely the same; none where there is no such axis. */
static struct cm_term size_from(const struct cm_mlir_use *use, cm_value value, int axis,
                                const struct cm_term *others)
{
    const struct cm_dim dim = cm_mlir_type(use->lowering, value)->dims[axis];

    if (cm_dim_known(dim))
        return cm_term_text(cm_mlir_index(use->lowering, dim.value));
    for (size_t i = 0; i < others->count; i++) {
        const struct cm_term *other = &others->items[i];
        const struct cm_type *type =
            other->kind == CM_TERM_VALUE ? cm_mlir_type(use->lowering, (cm_value)other->i) : NULL;
        for (int k = 0; type && k < type->rank; k++)
            if (cm_dim_same(dim, type->dims[k]))
                return size_term(use, (cm_value)other->i, k);
    }
    return CM_TERM_ABSENT;
}

static struct cm_term host_call(void *arg, struct cm_template_run *run, struct cm_str name,
                                const struct cm_term *args, size_t count, bool *known)
{
    const struct cm_mlir_use *use = arg;
    const struct cm_term *a = count > 0 ? &args[0] : NULL, *b = count > 1 ? &args[1] : NULL;
    struct cm_term out = CM_TERM_ABSENT;

    if (cm_str_is(name, "has") && count == 1)
        return cm_term_int(a->kind == CM_TERM_VALUE);
    if (cm_str_is(name, "attr") && count == 1 && a->kind == CM_TERM_TEXT)
        return attribute(use, run, a->text);
    if (cm_mlir_literal_call(run, name, args, count, &out))
        return out;
    if (cm_str_is(name, "place") && count == 0)
        return cm_term_text(cm_mlir_place(use->lowering, use->node));
    if (cm_str_is(name, "kernel") && count >= 2 && a->kind == CM_TERM_TEXT)
        return kernel_term(use, run, a->text, b, count > 2);
    if ((cm_str_is(name, "tensor") || cm_str_is(name, "memref")) && count == 2 &&
        a->kind == CM_TERM_LIST && b->kind == CM_TERM_TEXT)
        return type_term(use, name, a, b->text);
    if (count && a->kind == CM_TERM_VALUE) {
        const cm_value value = (cm_value)a->i;
        const int rank = cm_mlir_type(use->lowering, value)->rank;
        if (count == 1 && of_value(use, name, value, &out))
            return out;
        if (count == 1 && cm_str_is(name, "finish"))
            return cm_mlir_finish(use->lowering, value);
        if (count == 2 && b->kind == CM_TERM_VALUE && cm_str_is(name, "regroup"))
            return cm_mlir_regroup(use->lowering, value, (cm_value)b->i);
        const bool is_axis = count >= 2 && b->kind == CM_TERM_INT && b->i >= 0 && b->i < rank;
        if (count == 2 && is_axis && cm_str_is(name, "size"))
            return size_term(use, value, b->i);
        if (count == 2 && is_axis && cm_str_is(name, "dim"))
            return dims_term(use, cm_mlir_type(use->lowering, value)).items[b->i];
        if (count == 3 && is_axis && cm_str_is(name, "size_from") && args[2].kind == CM_TERM_LIST)
            return size_from(use, value, (int)b->i, &args[2]);
        /* same(x, i, y, j): are the two sizes surely equal? */
        if (count == 4 && is_axis && cm_str_is(name, "same") && args[2].kind == CM_TERM_VALUE) {
            const struct cm_type *other = cm_mlir_type(use->lowering, (cm_value)args[2].i);
            return cm_term_int(args[3].i >= 0 && args[3].i < other->rank &&
                               cm_dim_same(cm_mlir_type(use->lowering, value)->dims[b->i],
                                           other->dims[args[3].i]));
        }
    }
    *known = cm_mlir_body_call(use, run, name, args, count, &out) ||
             cm_mlir_table_call(use, run, name, args, count, &out) ||
             cm_mlir_random_call(use, name, args, count, &out) ||
             cm_mlir_panels_call(use, name, args, count, &out);
    return out;
}

static void host_emit(void *arg, struct cm_str line)
{
    struct cm_mlir_lowering *l = ((const struct cm_mlir_use *)arg)->lowering;

    for (int i = 0; i < l->indent; i++)
        cm_mlir_put(l, &l->body, CM_STR("  "));
    cm_mlir_put(l, &l->body, line);
    cm_mlir_put(l, &l->body, CM_STR("\n"));
}

static const struct cm_template_text *host_macro(void *arg, struct cm_str name)
{
    (void)arg;
    return cm_template_find(cm_mlir_templates, cm_mlir_template_count, name);
}

const struct cm_template_host cm_mlir_host = {
    .sigil = "%",
    .macro = host_macro,
    .name = host_name,
    .call = host_call,
    .emit = host_emit,
    .directive = cm_mlir_directive,
    .print_float = cm_mlir_print_float,
};
