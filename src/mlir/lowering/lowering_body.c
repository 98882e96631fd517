/* What templates of control flow ask about the bodies of their node. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/op.h"
#include "mlir/lowering/lowering_state.h"

#include <string.h>

/* What a value is under its first name. */
static cm_value original(const struct cm_mlir_lowering *l, cm_value value)
{
    const struct cm_node *node = cm_value_get(l->module, value)->node;

    while (node && node->op && node->op->values.is_copy && cm_node_input(node, 0)) {
        value = cm_node_input(node, 0);
        node = cm_value_get(l->module, value)->node;
    }
    return value;
}

/* The values of a body as terms: their names may be used in lines, and their types asked for.
 * Results are told by their first names, so that a template sees which inputs are handed on; those
 * that are computed have a name once the nodes are there. */
static struct cm_term value_list(struct cm_mlir_lowering *l, struct cm_template_run *run,
                                 const struct cm_graph *body, bool is_input)
{
    const size_t count = is_input ? body->n_inputs : body->n_outputs;
    struct cm_term *items = CM_NEW_ARRAY(l->arena, struct cm_term, count + 1);

    for (size_t i = 0; i < count; i++) {
        const cm_value value = is_input ? body->inputs[i] : original(l, body->outputs[i].value);
        struct cm_error err = {0};
        if (cm_mlir_check_value(l, value, &err) != CM_OK) {
            cm_template_refuse(run, "%s", err.text);
            return CM_TERM_ABSENT;
        }
        /* A result gets its name where its node is lowered. */
        const bool is_named = is_input || l->names[value].size || cm_mlir_contents(l, value);
        items[i] = (struct cm_term){.kind = CM_TERM_VALUE,
                                    .i = value,
                                    .text = is_named ? cm_mlir_name(l, value) : CM_STR("")};
    }
    return (struct cm_term){.kind = CM_TERM_LIST, .items = items, .count = count};
}

/* The lines of all nodes of a body, which may read its inputs by their names from here on. How deep
 * bodies lie in each other is limited where a model is read. */
static void put_nodes(struct cm_mlir_lowering *l, struct cm_template_run *run,
                      struct cm_graph *body)
{
    struct cm_error err = {0};

    l->indent++;
    if (cm_mlir_nodes(l, body, &err) != CM_OK) {
        cm_template_refuse(run, "%s", err.text);
        l->is_told = true;
    }
    l->indent--;
}

bool cm_mlir_body_call(const struct cm_mlir_use *use, struct cm_template_run *run,
                       struct cm_str function, const struct cm_term *args, size_t count,
                       struct cm_term *out)
{
    struct cm_mlir_lowering *l = use->lowering;

    /* A tensor that a loop over elements computes: it is not a view of another one. */
    if (cm_str_is(function, "is_computed") && count == 1 && args[0].kind == CM_TERM_VALUE) {
        const struct cm_node *node = cm_value_get(l->module, (cm_value)args[0].i)->node;
        *out = cm_term_int(node && cm_mlir_is_elementwise(l, node));
        return true;
    }
    const bool is_input = cm_str_is(function, "body_inputs");
    const bool is_result = cm_str_is(function, "body_results");
    if ((!is_input && !is_result && !cm_str_is(function, "body")) || count != 1 ||
        args[0].kind != CM_TERM_TEXT)
        return false;
    struct cm_graph *body = cm_node_body(use->node, cm_arena_str(l->arena, args[0].text).data);
    *out = CM_TERM_ABSENT;
    if (!body)
        cm_template_refuse(run, "its body '%.*s' has no types", CM_STR_FMT(args[0].text));
    else if (is_input || is_result)
        *out = value_list(l, run, body, is_input);
    else
        put_nodes(l, run, body);
    return true;
}
