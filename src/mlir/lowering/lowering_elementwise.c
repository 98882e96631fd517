/* Elementwise operators, and regions of them: one linalg.generic over the result, whose body is the
 * template, or those of all nodes of the region.
 *
 * An operand whose size of an axis is surely that of the result, or surely 1, is read by an affine
 * map. Where that is known only when it runs, its element is fetched at an index that is computed.
 * Constants of one element are written into the body.
 */
// SPDX-License-Identifier: Apache-2.0
#include "graph/op.h"
#include "mlir/lowering/lowering_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What follows "@elementwise" in its line: "stored", "when EXPRESSION"; false: there is none. */
static bool find_directive(const struct cm_template_text *text, struct cm_str *rest)
{
    static const char word[] = "\n@elementwise";
    const char *at = text ? strstr(text->text, word) : NULL;

    if (!at)
        return false;
    at += sizeof word - 1;
    *rest = (struct cm_str){at, strcspn(at, "\n")};
    return true;
}

bool cm_mlir_is_region(const struct cm_node *node)
{
    return node->op && node->op->effects & CM_REGION;
}

static bool is_all_elementwise(struct cm_mlir_lowering *l, const struct cm_graph *graph)
{
    for (const struct cm_node *node = graph->first; node; node = node->next)
        if (!cm_mlir_is_elementwise(l, node))
            return false;
    return true;
}

bool cm_mlir_is_elementwise(struct cm_mlir_lowering *l, const struct cm_node *node)
{
    if (cm_mlir_is_region(node))
        return is_all_elementwise(l, node->bodies[0].graph);
    const struct cm_template_text *text = cm_mlir_template_of(node);
    const struct cm_mlir_use use = {.lowering = l, .node = node};
    struct cm_str rest;

    if (!find_directive(text, &rest))
        return false;
    const char *when = cm_arena_str(l->arena, rest).data;
    when = strstr(when, " when ");
    return !when || cm_mlir_holds(&use, text, cm_str(when + 6));
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
    const struct cm_type *result; /* the first; others have its shape */
    struct cm_str *scalars; /* by operand: the name of its element, where an operand of MLIR */
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

static void add(struct cm_mlir_lowering *l, struct cm_mlir_text *to, const char *format, ...)
    CM_PRINTF(3, 4);

static void add(struct cm_mlir_lowering *l, struct cm_mlir_text *to, const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    const int size = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (size >= 0 && (size_t)size < sizeof text)
        cm_mlir_put(l, to, (struct cm_str){text, (size_t)size});
    else if (l->err && l->err->status == CM_OK)
        cm_fail(l->err, CM_LIMIT, "a part of the program is too long");
}

/* "affine_map<(d0, d1) -> (d0, 0)>" */
static void add_map(struct cm_mlir_text *maps, const struct element_loop *loop,
                    const struct cm_type *operand)
{
    struct cm_mlir_lowering *l = loop->l;

    add(l, maps, "%saffine_map<(", maps->count ? ", " : "");
    for (int i = 0; i < loop->result->rank; i++)
        add(l, maps, "%sd%d", i ? ", " : "", i);
    add(l, maps, ") -> (");
    for (int i = 0; i < operand->rank; i++) {
        const int axis = i + loop->result->rank - operand->rank;
        if (reading_of(operand->dims[i], loop->result->dims[axis]) == AXIS_ONE)
            add(l, maps, "%s0", i ? ", " : "");
        else
            add(l, maps, "%sd%d", i ? ", " : "", axis);
    }
    add(l, maps, ")>");
}

static bool must_fetch(const struct cm_type *operand, const struct cm_type *result)
{
    for (int i = 0; i < operand->rank; i++)
        if (reading_of(operand->dims[i], result->dims[i + result->rank - operand->rank]) ==
            AXIS_MAYBE_ONE)
            return true;
    return false;
}

/* An axis whose size is not known before it runs is 1 or that of the result: else elements would be
 * read that are not there. */
static void check_axes(struct element_loop *loop, cm_value value)
{
    struct cm_mlir_lowering *l = loop->l;
    const struct cm_type *type = cm_mlir_type(l, value);
    const struct cm_str place = cm_mlir_place(l, loop->node);

    for (int i = 0; i < type->rank; i++) {
        const int axis = i + loop->result->rank - type->rank;
        const struct cm_dim dim = loop->result->dims[axis];
        if (reading_of(type->dims[i], dim) != AXIS_MAYBE_ONE)
            continue;
        const size_t number = ++l->n_uses;
        const struct cm_str size = cm_mlir_size(l, value, i), one = cm_mlir_index(l, 1);
        const struct cm_str whole =
            cm_dim_known(dim) ? cm_mlir_index(l, dim.value) : result_size(loop, axis);
        cm_mlir_line(l, "%%u%zu = arith.cmpi eq, %.*s, %.*s : index", number, CM_STR_FMT(size),
                     CM_STR_FMT(one));
        cm_mlir_line(l, "%%f%zu = arith.cmpi eq, %.*s, %.*s : index", number, CM_STR_FMT(size),
                     CM_STR_FMT(whole));
        cm_mlir_line(l, "%%h%zu = arith.ori %%u%zu, %%f%zu : i1", number, number, number);
        cm_mlir_line(l, "cf.assert %%h%zu, \"%.*s: the sizes of its operands do not match\"",
                     number, CM_STR_FMT(place));
    }
}

/* The element of an operand that is read at an index which is computed. */
static struct cm_str fetch(struct element_loop *loop, cm_value value)
{
    struct cm_mlir_lowering *l = loop->l;
    const struct cm_type *type = cm_mlir_type(l, value);
    struct cm_mlir_text indices = {0};

    for (int i = 0; i < type->rank; i++) {
        const int axis = i + loop->result->rank - type->rank;
        const size_t number = ++l->n_uses;
        const struct cm_str zero = cm_mlir_index(l, 0), one = cm_mlir_index(l, 1);
        const struct cm_str size = cm_mlir_size(l, value, i);
        cm_mlir_line(l, "%%p%zu = linalg.index %d : index", number, axis);
        cm_mlir_line(l, "%%q%zu = arith.cmpi eq, %.*s, %.*s : index", number, CM_STR_FMT(size),
                     CM_STR_FMT(one));
        cm_mlir_line(l, "%%r%zu = arith.select %%q%zu, %.*s, %%p%zu : index", number, number,
                     CM_STR_FMT(zero), number);
        add(l, &indices, "%s%%r%zu", i ? ", " : "", number);
    }
    const struct cm_str name = cm_arena_printf(l->arena, "%%x%zu", ++l->n_uses);
    const struct cm_str of = cm_mlir_name(l, value), text = cm_mlir_value_type(l, value);
    cm_mlir_line(l, "%.*s = tensor.extract %.*s[%.*s] : %.*s", CM_STR_FMT(name), CM_STR_FMT(of),
                 (int)indices.count, indices.items, CM_STR_FMT(text));
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

static bool takes_stored(const struct cm_template_text *text)
{
    struct cm_str rest;

    return find_directive(text, &rest) && cm_str_starts(rest, " stored");
}

/* The template of a node on elements. Halves are computed in f32 and rounded once, unless it takes
 * them as they are stored. */
static enum cm_status expand_element(struct cm_mlir_lowering *l, const struct cm_node *node,
                                     const struct cm_str *inputs, struct cm_str result,
                                     struct cm_error *err)
{
    const struct cm_template_text *text = cm_mlir_template_of(node);
    const enum cm_dtype type = cm_mlir_type(l, cm_node_output(node, 0))->dtype;
    struct cm_str *given = CM_NEW_ARRAY(l->arena, struct cm_str, (size_t)node->n_inputs + 1);
    const struct cm_mlir_use use = {.lowering = l,
                                    .node = node,
                                    .is_scalar = true,
                                    .is_wide = !takes_stored(text),
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

/* The one element of a constant, as a name. */
static struct cm_str element_constant(struct cm_mlir_lowering *l, const struct cm_tensor *tensor)
{
    const struct cm_str name = cm_arena_printf(l->arena, "%%k%zu", ++l->n_uses);
    const struct cm_str text = cm_mlir_element_text(l, tensor, 0);

    cm_mlir_line(l, "%.*s = arith.constant %.*s%s%s", CM_STR_FMT(name), CM_STR_FMT(text),
                 tensor->type == CM_BOOL ? "" : " : ",
                 tensor->type == CM_BOOL ? "" : cm_mlir_scalar(tensor->type));
    return name;
}

/* A constant of one element; NULL: the value is something else. */
static const struct cm_tensor *single_constant(struct cm_mlir_lowering *l, cm_value value)
{
    const struct cm_tensor *tensor = cm_mlir_contents(l, value);

    return tensor && cm_tensor_count(tensor) == 1 && cm_dtype_info(tensor->type)->bits >= 8 ? tensor
                                                                                            : NULL;
}

/* Names of elements of values in a region's body. */
struct element_name {
    cm_value value;
    struct cm_str name;
};

struct element_names {
    CM_ARRAY(struct element_name);
};

static struct cm_str element_of(struct cm_mlir_lowering *l, struct element_names *names,
                                cm_value value)
{
    for (size_t i = names->count; i-- > 0;)
        if (names->items[i].value == value)
            return names->items[i].name;
    const struct cm_tensor *constant = single_constant(l, value);
    const struct cm_str name = constant ? element_constant(l, constant) : CM_STR_NONE;
    *CM_PUSH(l->arena, names) = (struct element_name){value, name};
    return name;
}

static enum cm_status expand_region(struct cm_mlir_lowering *l, const struct cm_node *region,
                                    const struct cm_str *scalars, struct cm_str *results,
                                    struct cm_error *err)
{
    const struct cm_graph *graph = region->bodies[0].graph;
    struct element_names names = {0};

    for (size_t i = 0; i < graph->n_inputs; i++)
        *CM_PUSH(l->arena, &names) = (struct element_name){graph->inputs[i], scalars[i]};
    for (const struct cm_node *node = graph->first; node; node = node->next) {
        struct cm_str *inputs = CM_NEW_ARRAY(l->arena, struct cm_str, (size_t)node->n_inputs + 1);
        const struct cm_str result = cm_arena_printf(l->arena, "%%y%zu", ++l->n_uses);
        for (int i = 0; i < node->n_inputs; i++)
            if (cm_node_input(node, i))
                inputs[i] = element_of(l, &names, cm_node_input(node, i));
        enum cm_status status = expand_element(l, node, inputs, result, err);
        if (status != CM_OK)
            return cm_node_blame(node, status, err);
        *CM_PUSH(l->arena, &names) = (struct element_name){cm_node_output(node, 0), result};
    }
    for (size_t o = 0; o < graph->n_outputs; o++)
        results[o] = element_of(l, &names, graph->outputs[o].value);
    return CM_OK;
}

bool cm_mlir_is_single(struct cm_mlir_lowering *l, cm_value value)
{
    return single_constant(l, value) != NULL;
}

enum cm_status cm_mlir_elements(struct cm_mlir_lowering *l, const struct cm_node *node,
                                struct cm_str *scalars, struct cm_str *results,
                                struct cm_error *err)
{
    for (int i = 0; i < node->n_inputs; i++) {
        const cm_value value = cm_node_input(node, i);
        if (value && !scalars[i].size)
            scalars[i] = element_constant(l, single_constant(l, value));
    }
    if (cm_mlir_is_region(node))
        return expand_region(l, node, scalars, results, err);
    results[0] = cm_arena_printf(l->arena, "%%y%zu", ++l->n_uses);
    return expand_element(l, node, scalars, results[0], err);
}

static enum cm_status write_body(struct element_loop *loop, struct cm_error *err)
{
    struct cm_mlir_lowering *l = loop->l;
    const int count = loop->node->n_outputs;
    struct cm_str *results = CM_NEW_ARRAY(l->arena, struct cm_str, (size_t)count + 1);
    struct cm_mlir_text yields = {0}, types = {0};

    for (int i = 0; i < loop->node->n_inputs; i++) {
        const cm_value value = cm_node_input(loop->node, i);
        if (value && !loop->scalars[i].size && !single_constant(l, value))
            loop->scalars[i] = fetch(loop, value);
    }
    CM_TRY(cm_mlir_elements(l, loop->node, loop->scalars, results, err));
    for (int o = 0; o < count; o++) {
        add(l, &yields, "%s%.*s", o ? ", " : "", CM_STR_FMT(results[o]));
        add(l, &types, "%s%s", o ? ", " : "",
            cm_mlir_scalar(cm_mlir_type(l, loop->node->outputs[o])->dtype));
    }
    cm_mlir_line(l, "linalg.yield %.*s : %.*s", (int)yields.count, yields.items, (int)types.count,
                 types.items);
    return CM_OK;
}

/* Lists of the operation's head: what it reads and writes, with types and names of elements. */
struct element_head {
    struct cm_mlir_text maps, ins, in_types, outs, out_types, args;
};

static void add_operand(struct element_loop *loop, struct element_head *head, int i, size_t number)
{
    struct cm_mlir_lowering *l = loop->l;
    const cm_value value = cm_node_input(loop->node, i);
    const struct cm_type *type = cm_mlir_type(l, value);
    const struct cm_str of = cm_mlir_name(l, value), text = cm_mlir_value_type(l, value);
    const char *comma = head->ins.count ? ", " : "";

    loop->scalars[i] = cm_arena_printf(l->arena, "%%a%zu_%d", number, i);
    add_map(&head->maps, loop, type);
    add(l, &head->ins, "%s%.*s", comma, CM_STR_FMT(of));
    add(l, &head->in_types, "%s", comma);
    cm_mlir_put(l, &head->in_types, text);
    add(l, &head->args, "%.*s: %s, ", CM_STR_FMT(loop->scalars[i]), cm_mlir_scalar(type->dtype));
}

static void add_result(struct element_loop *loop, struct element_head *head, int o, size_t number)
{
    struct cm_mlir_lowering *l = loop->l;
    const cm_value value = loop->node->outputs[o];
    const struct cm_str empty = empty_result(loop, value), text = cm_mlir_value_type(l, value);
    const char *comma = o ? ", " : "";

    add_map(&head->maps, loop, loop->result);
    add(l, &head->outs, "%s%.*s", comma, CM_STR_FMT(empty));
    add(l, &head->out_types, "%s", comma);
    cm_mlir_put(l, &head->out_types, text);
    add(l, &head->args, "%s%%o%zu_%d: %s", comma, number, o,
        cm_mlir_scalar(cm_mlir_type(l, value)->dtype));
    if (loop->node->n_outputs > 1)
        l->names[value] = cm_arena_printf(l->arena, "%%g%zu#%d", number, o);
}

/* One line, however long. */
static void put_line(struct cm_mlir_lowering *l, const char *before,
                     const struct cm_mlir_text *list, const char *between,
                     const struct cm_mlir_text *types, const char *after)
{
    struct cm_mlir_text *to = &l->body;

    for (int i = 0; i < l->indent; i++)
        cm_mlir_put(l, to, CM_STR("  "));
    cm_mlir_put(l, to, cm_str(before));
    cm_mlir_put(l, to, (struct cm_str){list->items, list->count});
    cm_mlir_put(l, to, cm_str(between));
    if (types)
        cm_mlir_put(l, to, (struct cm_str){types->items, types->count});
    cm_mlir_put(l, to, cm_str(after));
    cm_mlir_put(l, to, CM_STR("\n"));
}

enum cm_status cm_mlir_elementwise(struct cm_mlir_lowering *l, const struct cm_node *node,
                                   struct cm_error *err)
{
    struct element_loop loop = {.l = l, .node = node, .result = cm_mlir_type(l, node->outputs[0])};
    const size_t number = ++l->n_uses;
    struct element_head head = {0};
    struct cm_mlir_text parallel = {0};

    loop.scalars = CM_NEW_ARRAY(l->arena, struct cm_str, (size_t)node->n_inputs + 1);
    for (int i = 0; i < node->n_inputs; i++) {
        const cm_value value = cm_node_input(node, i);
        if (!value || single_constant(l, value))
            continue;
        if (must_fetch(cm_mlir_type(l, value), loop.result))
            check_axes(&loop, value);
        else
            add_operand(&loop, &head, i, number);
    }
    for (int o = 0; o < node->n_outputs; o++)
        add_result(&loop, &head, o, number);
    for (int i = 0; i < loop.result->rank; i++)
        add(l, &parallel, "%s\"parallel\"", i ? ", " : "");
    const bool is_one = node->n_outputs == 1;
    const struct cm_str name =
        is_one ? cm_mlir_name(l, node->outputs[0])
               : cm_arena_printf(l->arena, "%%g%zu:%d", number, node->n_outputs);
    const struct cm_str begin =
        cm_arena_printf(l->arena, "%.*s = linalg.generic {indexing_maps = [", CM_STR_FMT(name));
    put_line(l, cm_str_text(begin), &head.maps, "],", NULL, "");
    put_line(l, "    iterator_types = [", &parallel, "]}", NULL, "");
    if (head.ins.count)
        put_line(l, "    ins(", &head.ins, " : ", &head.in_types, ")");
    put_line(l, "    outs(", &head.outs, " : ", &head.out_types, ") {");
    put_line(l, "^bb0(", &head.args, "):", NULL, "");
    l->indent++;
    CM_TRY(write_body(&loop, err));
    l->indent--;
    put_line(l, is_one ? "} -> " : "} -> (", &head.out_types, is_one ? "" : ")", NULL, "");
    return CM_OK;
}

/* ---- regions ---- */

/* The name of a value as a tensor of another value's type; that one's own where it has been told
 * already, to whoever reads it later. */
static struct cm_str renamed(struct cm_mlir_lowering *l, cm_value from, cm_value to)
{
    const struct cm_str name = cm_mlir_name(l, from), have = cm_mlir_value_type(l, from);
    const struct cm_str want = cm_mlir_value_type(l, to), told = l->names[to];

    if (!told.size && cm_str_equal(have, want))
        return name;
    const struct cm_str cast = told.size ? told : cm_arena_printf(l->arena, "%%t%zu", ++l->n_uses);
    cm_mlir_line(l, "%.*s = tensor.cast %.*s : %.*s to %.*s", CM_STR_FMT(cast), CM_STR_FMT(name),
                 CM_STR_FMT(have), CM_STR_FMT(want));
    return cast;
}

enum cm_status cm_mlir_region(struct cm_mlir_lowering *l, const struct cm_node *node,
                              struct cm_error *err)
{
    struct cm_graph *graph = node->bodies[0].graph;

    for (size_t i = 0; i < graph->n_inputs; i++) {
        const cm_value outside = cm_node_input(node, (int)i), inside = graph->inputs[i];
        l->names[inside] = renamed(l, outside, inside);
        /* Weights are known in the body too, so that they can be packed. */
        if (!cm_value_get(l->module, outside)->is_state)
            cm_value_get(l->module, inside)->fact.constant = cm_mlir_contents(l, outside);
    }
    CM_TRY(cm_mlir_nodes(l, graph, err));
    for (size_t o = 0; o < graph->n_outputs; o++)
        l->names[node->outputs[o]] = renamed(l, graph->outputs[o].value, node->outputs[o]);
    return CM_OK;
}
