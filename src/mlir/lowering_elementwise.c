/* Elementwise operators: one linalg.generic over the result, whose body is the template.
 *
 * An operand whose size of an axis is surely that of the result, or surely 1, is read by an affine
 * map. Where that is known only when it runs, its element is fetched at an index that is computed.
 */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/lowering_state.h"

#include <stdio.h>
#include <string.h>

bool cm_mlir_is_elementwise(const struct cm_mlir_template *text)
{
    return text && strstr(text->text, "\n@elementwise") != NULL;
}

enum axis_reading { AXIS_SAME, AXIS_ONE, AXIS_MAYBE_ONE };

static enum axis_reading reading_of(struct cm_dim dim, struct cm_dim result)
{
    if (cm_dim_known(dim))
        return dim.value == 1 && !(cm_dim_known(result) && result.value == 1) ? AXIS_ONE
                                                                              : AXIS_SAME;
    return cm_dim_same(dim, result) ? AXIS_SAME : AXIS_MAYBE_ONE;
}

struct element_loop {
    struct cm_mlir_lowering *l;
    const struct cm_node *node;
    const struct cm_type *result;
    bool is_fetched[64]; /* by operand */
};

/* The axis of an operand that is axis `axis` of the result; below 0: it has none. */
static int operand_axis(const struct cm_type *operand, const struct cm_type *result, int axis)
{
    return axis - (result->rank - operand->rank);
}

/* The size of an axis that is not a number: that of an operand which surely has it, else computed.
 */
static struct cm_str result_size(struct element_loop *loop, int axis)
{
    struct cm_mlir_lowering *l = loop->l;
    struct cm_str size = CM_STR_NONE;

    for (int i = 0; i < loop->node->n_inputs; i++) {
        const cm_value value = cm_node_input(loop->node, i);
        if (!value)
            continue;
        const struct cm_type *type = cm_mlir_type(l, value);
        const int at = operand_axis(type, loop->result, axis);
        if (at >= 0 && reading_of(type->dims[at], loop->result->dims[axis]) == AXIS_SAME)
            return cm_mlir_size(l, value, at);
    }
    for (int i = 0; i < loop->node->n_inputs; i++) {
        const cm_value value = cm_node_input(loop->node, i);
        if (!value)
            continue;
        const int at = operand_axis(cm_mlir_type(l, value), loop->result, axis);
        if (at < 0 || cm_mlir_type(l, value)->dims[at].value == 1)
            continue;
        const struct cm_str other = cm_mlir_size(l, value, at);
        if (!size.size) {
            size = other;
            continue;
        }
        const size_t number = ++l->n_uses;
        const struct cm_str one = cm_mlir_index(l, 1);
        const struct cm_str is_one = cm_arena_printf(l->arena, "%%o%zu", number);
        const struct cm_str both = cm_arena_printf(l->arena, "%%b%zu", number);
        cm_mlir_line(l, "%.*s = arith.cmpi eq, %.*s, %.*s : index", CM_STR_FMT(is_one),
                     CM_STR_FMT(size), CM_STR_FMT(one));
        cm_mlir_line(l, "%.*s = arith.select %.*s, %.*s, %.*s : index", CM_STR_FMT(both),
                     CM_STR_FMT(is_one), CM_STR_FMT(other), CM_STR_FMT(size));
        size = both;
    }
    return size.size ? size : cm_mlir_index(l, 1);
}

static struct cm_str empty_result(struct element_loop *loop, cm_value result)
{
    struct cm_mlir_lowering *l = loop->l;
    struct cm_str sizes = CM_STR("");

    for (int i = 0; i < loop->result->rank; i++) {
        if (cm_dim_known(loop->result->dims[i]))
            continue;
        const struct cm_str size = result_size(loop, i);
        sizes = cm_arena_printf(l->arena, "%.*s%s%.*s", (int)sizes.size, sizes.data,
                                sizes.size ? ", " : "", CM_STR_FMT(size));
    }
    const struct cm_str name = cm_arena_printf(l->arena, "%%e%zu", ++l->n_uses);
    const struct cm_str type = cm_mlir_value_type(l, result);
    cm_mlir_line(l, "%.*s = tensor.empty(%.*s) : %.*s", CM_STR_FMT(name), (int)sizes.size,
                 sizes.data, CM_STR_FMT(type));
    return name;
}

struct short_text {
    char text[CM_MLIR_LINE - 256];
    size_t size;
};

static void add(struct short_text *to, const char *text, size_t size)
{
    if (to->size + size < sizeof to->text) {
        memcpy(to->text + to->size, text, size);
        to->size += size;
        to->text[to->size] = '\0';
    }
}

static void add_text(struct short_text *to, const char *text)
{
    add(to, text, strlen(text));
}

/* "affine_map<(d0, d1) -> (d0, 0)>" */
static void add_map(struct short_text *maps, const struct element_loop *loop,
                    const struct cm_type *operand)
{
    char part[32];

    if (maps->size)
        add_text(maps, ", ");
    add_text(maps, "affine_map<(");
    for (int i = 0; i < loop->result->rank; i++) {
        snprintf(part, sizeof part, "%sd%d", i ? ", " : "", i);
        add_text(maps, part);
    }
    add_text(maps, ") -> (");
    for (int i = 0; i < operand->rank; i++) {
        const int axis = i + loop->result->rank - operand->rank;
        const bool is_one = reading_of(operand->dims[i], loop->result->dims[axis]) == AXIS_ONE;
        snprintf(part, sizeof part, is_one ? "%s0" : "%sd%d", i ? ", " : "", axis);
        add_text(maps, part);
    }
    add_text(maps, ")>");
}

static bool must_fetch(const struct cm_type *operand, const struct cm_type *result)
{
    for (int i = 0; i < operand->rank; i++)
        if (reading_of(operand->dims[i], result->dims[i + result->rank - operand->rank]) ==
            AXIS_MAYBE_ONE)
            return true;
    return false;
}

/* The element of an operand that is read at an index which is computed. */
static struct cm_str fetch(struct element_loop *loop, cm_value value)
{
    struct cm_mlir_lowering *l = loop->l;
    const struct cm_type *type = cm_mlir_type(l, value);
    struct short_text indices = {0};

    for (int i = 0; i < type->rank; i++) {
        const int axis = i + loop->result->rank - type->rank;
        const size_t number = ++l->n_uses;
        const struct cm_str zero = cm_mlir_index(l, 0), one = cm_mlir_index(l, 1);
        const struct cm_str size = cm_mlir_size(l, value, i);
        char name[40];
        cm_mlir_line(l, "%%p%zu = linalg.index %d : index", number, axis);
        cm_mlir_line(l, "%%q%zu = arith.cmpi eq, %.*s, %.*s : index", number, CM_STR_FMT(size),
                     CM_STR_FMT(one));
        cm_mlir_line(l, "%%r%zu = arith.select %%q%zu, %.*s, %%p%zu : index", number, number,
                     CM_STR_FMT(zero), number);
        snprintf(name, sizeof name, "%s%%r%zu", i ? ", " : "", number);
        add_text(&indices, name);
    }
    const struct cm_str name = cm_arena_printf(l->arena, "%%x%zu", ++l->n_uses);
    const struct cm_str of = cm_mlir_name(l, value), text = cm_mlir_value_type(l, value);
    cm_mlir_line(l, "%.*s = tensor.extract %.*s[%s] : %.*s", CM_STR_FMT(name), CM_STR_FMT(of),
                 indices.text, CM_STR_FMT(text));
    return name;
}

/* An element of a half as f32; other elements stay. */
static struct cm_str widened(struct cm_mlir_lowering *l, struct cm_str name, enum cm_dtype type)
{
    if (type != CM_FLOAT16 && type != CM_BFLOAT16)
        return name;
    const struct cm_str wide = cm_arena_printf(l->arena, "%%w%zu", ++l->n_uses);
    cm_mlir_line(l, "%.*s = arith.extf %.*s : %s to f32", CM_STR_FMT(wide), CM_STR_FMT(name),
                 cm_mlir_scalar(type));
    return wide;
}

/* The template of a node on elements. Halves are computed in f32 and rounded once, unless it takes
 * them as they are stored. */
static enum cm_status expand_element(struct cm_mlir_lowering *l, const struct cm_node *node,
                                     const struct cm_str *inputs, struct cm_str result,
                                     struct cm_error *err)
{
    const struct cm_mlir_template *text = cm_mlir_template_of(node);
    const enum cm_dtype type = cm_mlir_type(l, cm_node_output(node, 0))->dtype;
    struct cm_str *given = CM_NEW_ARRAY(l->arena, struct cm_str, (size_t)node->n_inputs + 1);
    const struct cm_mlir_use use = {.lowering = l,
                                    .node = node,
                                    .is_scalar = true,
                                    .is_wide = !strstr(text->text, "\n@elementwise stored"),
                                    .inputs = given,
                                    .outputs = &result};
    const bool is_half = use.is_wide && (type == CM_FLOAT16 || type == CM_BFLOAT16);

    for (int i = 0; i < node->n_inputs; i++) {
        const cm_value value = cm_node_input(node, i);
        given[i] =
            value && use.is_wide ? widened(l, inputs[i], cm_mlir_type(l, value)->dtype) : inputs[i];
    }
    const struct cm_str rounded = result;
    if (is_half)
        result = cm_arena_printf(l->arena, "%%w%zu", ++l->n_uses);
    CM_TRY(cm_mlir_expand(&use, text, err));
    if (is_half)
        cm_mlir_line(l, "%.*s = arith.truncf %.*s : f32 to %s", CM_STR_FMT(rounded),
                     CM_STR_FMT(result), cm_mlir_scalar(type));
    return CM_OK;
}

static enum cm_status write_body(struct element_loop *loop, const struct cm_str *inputs,
                                 struct cm_str *fetched, struct cm_error *err)
{
    struct cm_mlir_lowering *l = loop->l;
    const struct cm_str result = cm_arena_printf(l->arena, "%%y%zu", ++l->n_uses);

    for (int i = 0; i < loop->node->n_inputs; i++) {
        const cm_value value = cm_node_input(loop->node, i);
        fetched[i] = value && loop->is_fetched[i] ? fetch(loop, value) : inputs[i];
    }
    CM_TRY(expand_element(l, loop->node, fetched, result, err));
    cm_mlir_line(l, "linalg.yield %.*s : %s", CM_STR_FMT(result),
                 cm_mlir_scalar(loop->result->dtype));
    return CM_OK;
}

enum cm_status cm_mlir_elementwise(struct cm_mlir_lowering *l, const struct cm_node *node,
                                   struct cm_error *err)
{
    const cm_value out = cm_node_output(node, 0);
    struct element_loop loop = {.l = l, .node = node, .result = cm_mlir_type(l, out)};
    struct short_text maps = {0}, ins = {0}, in_types = {0}, args = {0};
    const size_t count = (size_t)node->n_inputs;
    struct cm_str *names = CM_NEW_ARRAY(l->arena, struct cm_str, count + 1);
    struct cm_str *fetched = CM_NEW_ARRAY(l->arena, struct cm_str, count + 1);
    const size_t number = ++l->n_uses;

    if (count > sizeof loop.is_fetched)
        return cm_fail(err, CM_UNSUPPORTED, "%zu operands are more than are compiled", count);
    for (int i = 0; i < node->n_inputs; i++) {
        const cm_value value = cm_node_input(node, i);
        if (!value)
            continue;
        const struct cm_type *type = cm_mlir_type(l, value);
        const struct cm_str of = cm_mlir_name(l, value), text = cm_mlir_value_type(l, value);
        loop.is_fetched[i] = must_fetch(type, loop.result);
        if (loop.is_fetched[i])
            continue;
        names[i] = cm_arena_printf(l->arena, "%%a%zu_%d", number, i);
        add_map(&maps, &loop, type);
        if (ins.size) {
            add_text(&ins, ", ");
            add_text(&in_types, ", ");
        }
        add(&ins, of.data, of.size);
        add(&in_types, text.data, text.size);
        add(&args, names[i].data, names[i].size);
        add_text(&args, ": ");
        add_text(&args, cm_mlir_scalar(type->dtype));
        add_text(&args, ", ");
    }
    add_map(&maps, &loop, loop.result);
    const struct cm_str empty = empty_result(&loop, out), name = cm_mlir_name(l, out);
    const struct cm_str type = cm_mlir_value_type(l, out);
    struct short_text parallel = {0};
    for (int i = 0; i < loop.result->rank; i++)
        add_text(&parallel, i ? ", \"parallel\"" : "\"parallel\"");
    cm_mlir_line(l, "%.*s = linalg.generic {indexing_maps = [%s],", CM_STR_FMT(name), maps.text);
    cm_mlir_line(l, "    iterator_types = [%s]}", parallel.text);
    if (ins.size)
        cm_mlir_line(l, "    ins(%s : %s)", ins.text, in_types.text);
    cm_mlir_line(l, "    outs(%.*s : %.*s) {", CM_STR_FMT(empty), CM_STR_FMT(type));
    cm_mlir_line(l, "^bb0(%s%%o%zu: %s):", args.text, number, cm_mlir_scalar(loop.result->dtype));
    l->indent++;
    CM_TRY(write_body(&loop, names, fetched, err));
    l->indent--;
    cm_mlir_line(l, "} -> %.*s", CM_STR_FMT(type));
    return CM_OK;
}
