/* Contents of small results, computed while they are typed: where every operand is a constant, the
 * node is run. Rules say what follows from symbols; this says what follows from numbers, whatever
 * the operator and the rank. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/eval.h"
#include "graph/module.h"

enum { ELEMENTS_MAX = 256, OPERANDS_MAX = 16 }; /* what is larger is data, not sizes */

static bool is_small(const struct cm_type *type)
{
    struct cm_shape shape;
    int64_t count;
    return type && cm_type_shape(type, &shape) && cm_shape_count(&shape, &count) &&
           count <= ELEMENTS_MAX;
}

/* A tensor of the module, which the arena drops. */
static struct cm_tensor *new_tensor(struct cm_module *module)
{
    struct cm_tensor *tensor = CM_NEW(module->arena, struct cm_tensor);
    cm_tensor_defer(module->arena, tensor);
    return tensor;
}

/* What shape arithmetic has found, where all of it is numbers. */
static bool tensor_of_known(struct cm_module *module, const struct cm_fact *fact,
                            const struct cm_tensor **out)
{
    const struct cm_known *known = fact->known;
    const enum cm_dtype type = fact->type->dtype;
    struct cm_error ignored = {0};
    struct cm_shape shape;
    if (!known || (type != CM_INT64 && type != CM_INT32) || !cm_type_shape(fact->type, &shape))
        return false;
    for (size_t i = 0; i < known->count; i++)
        if (!known->items[i].is_number)
            return false;
    struct cm_tensor *tensor = new_tensor(module);
    if (cm_tensor_new(type, &shape, tensor, &ignored))
        return false;
    for (size_t i = 0; i < known->count; i++) {
        if (type == CM_INT64)
            ((int64_t *)tensor->data)[i] = known->items[i].number;
        else
            ((int32_t *)tensor->data)[i] = (int32_t)known->items[i].number;
    }
    *out = tensor;
    return true;
}

static bool find_operand(struct cm_module *module, cm_value value, struct cm_datum *out)
{
    const struct cm_value_def *def = cm_value_get(module, value);
    const struct cm_tensor *tensor = NULL;
    struct cm_error ignored = {0};
    if (!is_small(def->fact.type) || cm_value_constant(module, value, &tensor, &ignored) != CM_OK ||
        (!tensor && !tensor_of_known(module, &def->fact, &tensor)) || !tensor->data)
        return false;
    *out = (struct cm_datum){.kind = CM_KIND_TENSOR, .tensor = *tensor};
    return true;
}

static bool may_run(const struct cm_node *node)
{
    return node->op && node->op->run && !node->function && node->n_bodies == 0 &&
           node->n_inputs > 0 && node->n_inputs <= OPERANDS_MAX &&
           node->n_outputs <= OPERANDS_MAX && cm_node_is_current(node) &&
           !(node->op->effects & (CM_RANDOM | CM_REPLACED | CM_REGION));
}

/* Are there operands, and may each of them be found? */
static bool has_constants_only(const struct cm_node *node)
{
    bool any = false;
    for (int i = 0; i < node->n_inputs; i++) {
        const cm_value value = node->inputs[i].value;
        const struct cm_value_def *def = value ? cm_value_get(node->module, value) : NULL;
        if (def && !((def->fact.constant || def->fact.known || def->role == CM_ROLE_INITIALIZER) &&
                     is_small(def->fact.type)))
            return false;
        any = any || def;
    }
    return any;
}

static bool may_keep(const struct cm_node *node, const struct cm_fact *facts)
{
    const bool sized_at_run = node->op->effects & CM_OUTPUT_SIZE_AT_RUN;
    for (int o = 0; o < node->n_outputs; o++)
        if (node->outputs[o] &&
            (facts[o].constant || !facts[o].type || facts[o].type->kind != CM_KIND_TENSOR ||
             facts[o].type->dtype == CM_STRING || (!sized_at_run && !is_small(facts[o].type))))
            return false;
    return true;
}

static void run(struct cm_node *node, struct cm_fact *facts)
{
    struct cm_module *module = node->module;
    struct cm_datum operands[OPERANDS_MAX] = {0}, results[OPERANDS_MAX] = {0};
    const struct cm_datum *given[OPERANDS_MAX] = {0};
    struct cm_error ignored = {0};

    for (int i = 0; i < node->n_inputs; i++) {
        const cm_value value = node->inputs[i].value;
        if (value && !find_operand(module, value, &operands[i]))
            return;
        given[i] = value ? &operands[i] : NULL;
    }
    if (cm_op_eval(node, given, results, &ignored) != CM_OK)
        return; /* it fails in every run, which is said there */
    for (int o = 0; o < node->n_outputs; o++) {
        if (!node->outputs[o])
            continue;
        struct cm_tensor *kept = new_tensor(module);
        *kept = results[o].tensor; /* its reference */
        facts[o].constant = kept;
        facts[o].type = cm_type_of_tensor(module->arena, kept);
    }
}

void cm_node_infer_contents(struct cm_node *node, struct cm_fact *facts)
{
    if (may_run(node) && has_constants_only(node) && may_keep(node, facts))
        run(node, facts);
}
