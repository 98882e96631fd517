/* The walk over a graph, and the function that comes of it. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/lowering/lowering.h"

#include "base/diagnostics.h"
#include "mlir/lowering/lowering_state.h"
#include "mlir/lowering/templates.h"

#include <stdio.h>
#include <string.h>

/* ---- nodes ---- */

static const struct cm_template_text *find_text(struct cm_str name)
{
    return cm_template_find(cm_mlir_templates, cm_mlir_template_count, name);
}

static const struct cm_template_text *find_template(struct cm_str domain, struct cm_str op_type)
{
    char name[200];

    /* Operators of other domains than ai.onnx are in a folder of its name. */
    if (domain.size == 0 || cm_str_is(domain, "ai.onnx"))
        return find_text(op_type);
    snprintf(name, sizeof name, "%.*s/%.*s", CM_STR_FMT(domain), CM_STR_FMT(op_type));
    return find_text(cm_str(name));
}

const struct cm_template_text *cm_mlir_template_of(const struct cm_node *node)
{
    return find_template(node->domain, node->op_type);
}

bool cm_mlir_takes_whole(struct cm_str domain, struct cm_str name)
{
    const struct cm_template_text *found = find_template(domain, name);

    return found && strstr(found->text, "\n@whole\n");
}

bool cm_mlir_holds(const struct cm_mlir_use *use, const struct cm_template_text *text,
                   struct cm_str expression)
{
    struct cm_mlir_use copy = *use;
    struct cm_template_host host = cm_mlir_host;
    host.arg = &copy;
    const struct cm_template_use asked = {
        .text = text, .prefix = CM_STR("when"), .host = &host, .arena = use->lowering->arena};

    return cm_template_holds(&asked, expression);
}

enum cm_status cm_mlir_expand(const struct cm_mlir_use *use, const struct cm_template_text *text,
                              struct cm_error *err)
{
    struct cm_mlir_lowering *l = use->lowering;
    struct cm_mlir_use copy = *use;
    struct cm_template_host host = cm_mlir_host;
    host.arg = &copy;
    const struct cm_template_use expansion = {
        .text = text,
        .prefix = cm_arena_printf(l->arena, "n%zu", ++l->n_uses),
        .host = &host,
        .arena = l->arena,
    };

    return cm_template_expand(&expansion, err);
}

/* A result whose contents are known is a constant: nobody reads what the node computes. */
static bool is_needed(struct cm_mlir_lowering *l, const struct cm_node *node)
{
    bool needed = false;

    for (int i = 0; i < node->n_outputs; i++) {
        const cm_value value = node->outputs[i];
        if (value && cm_mlir_contents(l, value)) {
            cm_mlir_name(l, value);
            continue;
        }
        needed |= value != 0;
    }
    return needed;
}

static enum cm_status lower_node(struct cm_mlir_lowering *l, const struct cm_node *node,
                                 struct cm_error *err)
{
    const struct cm_template_text *text = cm_mlir_template_of(node);

    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i].value)
            CM_TRY(cm_mlir_check_value(l, node->inputs[i].value, err));
    for (int i = 0; i < node->n_outputs; i++)
        if (node->outputs[i])
            CM_TRY(cm_mlir_check_value(l, node->outputs[i], err));
    if (!is_needed(l, node) || (node->outputs[0] && l->is_finished[node->outputs[0]]))
        return CM_OK;
    const bool is_region = cm_mlir_is_region(node);
    if (!text && !is_region)
        return cm_fail(err, CM_UNSUPPORTED, "it is not compiled: there is no template for it");
    const struct cm_str place = cm_mlir_place(l, node);
    cm_mlir_line(l, "// %.*s", CM_STR_FMT(place));
    if (cm_mlir_is_elementwise(l, node))
        return cm_mlir_elementwise(l, node, err);
    if (is_region)
        return cm_mlir_region(l, node, err);
    return cm_mlir_expand(&(struct cm_mlir_use){.lowering = l, .node = node}, text, err);
}

enum cm_status cm_mlir_nodes(struct cm_mlir_lowering *l, struct cm_graph *graph,
                             struct cm_error *err)
{
    enum cm_status status = CM_OK;

    for (struct cm_node *node = graph->first; node; node = node->next) {
        struct cm_error one = {0};
        const int indent = l->indent;
        if (lower_node(l, node, &one) == CM_OK)
            continue;
        l->indent = indent;
        if (l->options->findings && !l->is_told)
            cm_findings_add(l->options->findings, one.status, cm_mlir_describe(l, node), "%s",
                            one.text);
        cm_node_blame(node, one.status, &one);
        l->is_told = false;
        if (status == CM_OK && err)
            *err = one;
        status = status ? status : one.status;
    }
    return status;
}

/* ---- inputs and outputs ---- */

static enum cm_status make_port(struct cm_mlir_lowering *l, cm_value value,
                                struct cm_mlir_port *port, struct cm_error *err)
{
    const struct cm_value_def *def = cm_value_get(l->module, value);
    const struct cm_type *type = def->fact.type;
    size_t bytes = 0;

    CM_TRY(cm_mlir_check_value(l, value, err));
    int64_t *dims = CM_NEW_ARRAY(l->arena, int64_t, (size_t)type->rank + 1);
    struct cm_str *names = CM_NEW_ARRAY(l->arena, struct cm_str, (size_t)type->rank + 1);
    *port = (struct cm_mlir_port){.name = def->name,
                                  .type = type->dtype,
                                  .rank = type->rank,
                                  .dims = dims,
                                  .names = names,
                                  .is_fixed = cm_type_is_concrete(type)};
    int64_t count = 1;
    for (int i = 0; i < type->rank; i++) {
        dims[i] = cm_dim_known(type->dims[i]) ? type->dims[i].value : -1;
        if (!cm_dim_known(type->dims[i]) && type->dims[i].symbol)
            names[i] = cm_symbol_name(cm_module_symbols(l->module), type->dims[i].symbol);
    }
    struct cm_shape shape;
    if (port->is_fixed && cm_type_shape(type, &shape)) {
        if (!cm_shape_count(&shape, &count))
            return cm_fail(err, CM_LIMIT, "'%.*s' has too many elements", CM_STR_FMT(def->name));
        bytes = cm_dtype_info(type->dtype)->bits < 8 ? (size_t)count : 0;
        if (!bytes && !cm_dtype_bytes(type->dtype, count, &bytes))
            return cm_fail(err, CM_LIMIT, "'%.*s' has too many elements", CM_STR_FMT(def->name));
        port->bytes = bytes;
    }
    return CM_OK;
}

/* "%x: memref<1x3xf32>" */
static void put_argument(struct cm_mlir_lowering *l, struct cm_mlir_text *to, const char *word,
                         size_t index, cm_value value)
{
    const struct cm_type *type = cm_mlir_type(l, value);
    const struct cm_str text =
        cm_mlir_type_text(l->arena, "memref", type->dtype, type->rank, type->dims);

    cm_mlir_put(l, to,
                cm_arena_printf(l->arena, ",\n      %%%s%zu: %.*s", word, index, CM_STR_FMT(text)));
}

static void read_input(struct cm_mlir_lowering *l, size_t index, cm_value value)
{
    const struct cm_type *type = cm_mlir_type(l, value);
    const struct cm_str text =
        cm_mlir_type_text(l->arena, "memref", type->dtype, type->rank, type->dims);

    l->names[value] = cm_arena_printf(l->arena, "%%v%u", (unsigned)value);
    cm_mlir_line(l, "%.*s = bufferization.to_tensor %%in%zu restrict : %.*s",
                 CM_STR_FMT(l->names[value]), index, CM_STR_FMT(text));
}

/* One of which the sizes are known when it is there. */
static void hand_over(struct cm_mlir_lowering *l, size_t index, cm_value value)
{
    const struct cm_type *type = cm_mlir_type(l, value);
    const struct cm_str name = cm_mlir_name(l, value);
    const struct cm_str memory =
        cm_mlir_type_text(l->arena, "memref", type->dtype, type->rank, type->dims);

    cm_mlir_line(l, "%%m_out%zu = bufferization.to_memref %.*s read_only : %.*s", index,
                 CM_STR_FMT(name), CM_STR_FMT(memory));
    cm_mlir_line(l,
                 "%%p_out%zu = memref.extract_aligned_pointer_as_index %%m_out%zu : %.*s -> index",
                 index, index, CM_STR_FMT(memory));
    cm_mlir_line(l, "%%shape_out%zu = memref.alloca() : memref<%dxi64>", index, type->rank);
    for (int i = 0; i < type->rank; i++) {
        const struct cm_str size = cm_mlir_size(l, value, i), at = cm_mlir_index(l, i);
        const size_t number = ++l->n_uses;
        cm_mlir_line(l, "%%w%zu = arith.index_cast %.*s : index to i64", number, CM_STR_FMT(size));
        cm_mlir_line(l, "memref.store %%w%zu, %%shape_out%zu[%.*s] : memref<%dxi64>", number, index,
                     CM_STR_FMT(at), type->rank);
    }
    cm_mlir_line(l,
                 "%%at_out%zu = memref.extract_aligned_pointer_as_index %%shape_out%zu : "
                 "memref<%dxi64> -> index",
                 index, index, type->rank);
    const struct cm_str number = cm_mlir_index(l, (int64_t)index),
                        rank = cm_mlir_index(l, type->rank);
    cm_mlir_line(
        l,
        "%%ok_out%zu = func.call @cm_output(%%context, %.*s, %%p_out%zu, %.*s, %%at_out%zu) "
        ": (index, index, index, index, index) -> index",
        index, CM_STR_FMT(number), index, CM_STR_FMT(rank), index);
}

static void write_output(struct cm_mlir_lowering *l, size_t index, cm_value value, bool is_fixed)
{
    const struct cm_type *type = cm_mlir_type(l, value);
    const struct cm_str name = cm_mlir_name(l, value), text = cm_mlir_value_type(l, value);
    const struct cm_str memory =
        cm_mlir_type_text(l->arena, "memref", type->dtype, type->rank, type->dims);

    if (!is_fixed)
        hand_over(l, index, value);
    else
        cm_mlir_line(
            l,
            "bufferization.materialize_in_destination %.*s in restrict writable %%out%zu : "
            "(%.*s, %.*s) -> ()",
            CM_STR_FMT(name), index, CM_STR_FMT(text), CM_STR_FMT(memory));
}

/* The state of random numbers that is no argument comes before all that draws. It may need a
 * weight.
 */
static void begin_random(struct cm_mlir_lowering *l)
{
    struct cm_mlir_text whole = {0};

    if (l->options->n_entries)
        return;
    cm_mlir_put(l, &whole, cm_mlir_own_random(l));
    cm_mlir_put(l, &whole, (struct cm_str){l->body.items, l->body.count});
    l->body = whole;
}

static struct cm_str assemble(struct cm_mlir_lowering *l, const struct cm_mlir_text *arguments)
{
    struct cm_mlir_text out = {0};

    cm_mlir_put(
        l, &out,
        CM_STR("module {\n"
               "  func.func private @cm_output(index, index, index, index, index) -> index\n"));
    cm_mlir_put(l, &out, (struct cm_str){l->head.items, l->head.count});
    cm_mlir_put(l, &out,
                CM_STR("  func.func @cm_main(%context: index, %weights: memref<?xi8>,\n"
                       "      %arena: memref<?xi8>"));
    if (l->random.count && l->options->n_entries)
        cm_mlir_put(l, &out, CM_STR(",\n      " CM_MLIR_RANDOM ": " CM_MLIR_RANDOM_TYPE));
    cm_mlir_put(l, &out, (struct cm_str){arguments->items, arguments->count});
    cm_mlir_put(l, &out, CM_STR(") {\n"));
    cm_mlir_put(l, &out, (struct cm_str){l->constants.items, l->constants.count});
    cm_mlir_put(l, &out, (struct cm_str){l->body.items, l->body.count});
    cm_mlir_put(l, &out, CM_STR("    return\n  }\n}\n"));
    *CM_PUSH(l->arena, &out) = '\0';
    return (struct cm_str){out.items, out.count - 1};
}

enum cm_status cm_mlir_lower(struct cm_graph *graph, const struct cm_mlir_lower_options *options,
                             struct cm_arena *arena, struct cm_mlir_program *out,
                             struct cm_error *err)
{
    struct cm_mlir_lowering l = {.module = graph->module,
                                 .arena = arena,
                                 .options = options,
                                 .indent = 2,
                                 .n_names = cm_module_value_count(graph->module),
                                 .err = err};
    struct cm_mlir_port *inputs = CM_NEW_ARRAY(arena, struct cm_mlir_port, graph->n_inputs + 1);
    struct cm_mlir_port *outputs = CM_NEW_ARRAY(arena, struct cm_mlir_port, graph->n_outputs + 1);
    struct cm_mlir_text arguments = {0};
    enum cm_status status = CM_OK;

    l.names = CM_NEW_ARRAY(arena, struct cm_str, l.n_names + 1);
    l.is_finished = CM_NEW_ARRAY(arena, bool, l.n_names + 1);
    for (size_t i = 0; i < graph->n_inputs; i++) {
        struct cm_error one = {0};

        if (make_port(&l, graph->inputs[i], &inputs[i], &one) == CM_OK) {
            put_argument(&l, &arguments, "in", i, graph->inputs[i]);
            read_input(&l, i, graph->inputs[i]);
            continue;
        }
        const struct cm_str name = cm_value_get(l.module, graph->inputs[i])->name;
        if (options->findings)
            cm_findings_add(options->findings, one.status,
                            cm_arena_printf(arena, "input '%.*s'", CM_STR_FMT(name)), "%s",
                            one.text);
        (void)cm_error_context(&one, one.status, "input '%.*s'", CM_STR_FMT(name));
        if (status == CM_OK && err)
            *err = one;
        status = status ? status : one.status;
    }
    struct cm_error first = {0};
    const enum cm_status nodes = cm_mlir_nodes(&l, graph, &first);
    if (status == CM_OK && nodes && err)
        *err = first;
    if (status || nodes)
        return status ? status : nodes;
    for (size_t i = 0; i < graph->n_outputs; i++) {
        CM_TRY(cm_error_context(err, make_port(&l, graph->outputs[i].value, &outputs[i], err),
                                "output %zu", i));
        if (outputs[i].is_fixed)
            put_argument(&l, &arguments, "out", i, graph->outputs[i].value);
        write_output(&l, i, graph->outputs[i].value, outputs[i].is_fixed);
    }
    if (err && err->status != CM_OK)
        return err->status;
    begin_random(&l);
    cm_mlir_place_weights(&l);
    *out = (struct cm_mlir_program){.text = assemble(&l, &arguments),
                                    .inputs = inputs,
                                    .outputs = outputs,
                                    .n_inputs = graph->n_inputs,
                                    .n_outputs = graph->n_outputs,
                                    .weights = l.weights.items,
                                    .n_weights = l.weights.count,
                                    .weight_bytes = l.weight_bytes,
                                    .kernels = l.kernels.items,
                                    .n_kernels = l.kernels.count,
                                    .random = l.random.items,
                                    .n_random = options->n_entries ? l.random.count : 0};
    return CM_OK;
}
