/* Inference: what rules call, and the running of a rule for a node of a graph. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/function.h"
#include "graph/module.h"

const struct cm_type *cm_infer_type(const struct cm_infer *in, int i)
{
    return i < in->n_in ? in->in[i].type : NULL;
}

const struct cm_tensor *cm_infer_constant(const struct cm_infer *in, int i)
{
    if (!cm_infer_type(in, i))
        return NULL;
    if (in->in[i].constant || !in->find_constant)
        return in->in[i].constant;
    return in->find_constant((struct cm_infer *)(uintptr_t)in, i);
}

enum { KNOWN_MAX = 4096 }; /* longer tensors are data, not shapes */

static const struct cm_known *known_of_constant(struct cm_infer *in, const struct cm_tensor *tensor)
{
    const enum cm_dtype_class kind = cm_dtype_info(tensor->type)->kind;
    const int64_t count = cm_tensor_count(tensor);
    if (tensor->shape.rank > 1 || count > KNOWN_MAX || !tensor->data ||
        (kind != CM_CLASS_SIGNED && kind != CM_CLASS_UNSIGNED))
        return NULL;
    struct cm_known *known = CM_NEW(in->arena, struct cm_known);
    struct cm_quantity *items = CM_NEW_ARRAY(in->arena, struct cm_quantity, (size_t)count);
    for (int64_t i = 0; i < count; i++)
        items[i] = (struct cm_quantity){cm_tensor_int(tensor, i), 0, true};
    *known = (struct cm_known){tensor->shape.rank, (size_t)count, items};
    return known;
}

bool cm_infer_known(struct cm_infer *in, int i, struct cm_known *out)
{
    const struct cm_type *type = cm_infer_type(in, i);
    if (!type || type->kind != CM_KIND_TENSOR)
        return false;
    const struct cm_known *known = in->in[i].known;
    if (!known) {
        const struct cm_tensor *constant = cm_infer_constant(in, i);
        known = constant ? known_of_constant(in, constant) : NULL;
    }
    if (known) {
        *out = *known;
        return true;
    }
    /* Even of unknown contents the length may be known: that many unknowns. */
    if (type->rank < 0 || type->rank > 1 || (type->rank == 1 && !cm_dim_known(type->dims[0])))
        return false;
    const int64_t count = type->rank == 1 ? type->dims[0].value : 1;
    if (count > KNOWN_MAX)
        return false;
    *out = (struct cm_known){type->rank, (size_t)count,
                             CM_NEW_ARRAY(in->arena, struct cm_quantity, (size_t)count)};
    return true;
}

enum cm_status cm_infer_set(struct cm_infer *in, int o, const struct cm_type *type)
{
    if (o < in->n_out)
        in->out[o].type = type;
    return CM_OK;
}

enum cm_status cm_infer_set_tensor(struct cm_infer *in, int o, enum cm_dtype dtype, int rank,
                                   const struct cm_dim *dims)
{
    if (rank > CM_MAX_RANK)
        return cm_infer_fail(in, "its result would have rank %d, the limit is %d", rank,
                             CM_MAX_RANK);
    for (int i = 0; i < rank; i++)
        if (dims[i].value > CM_MAX_DIM)
            return cm_infer_fail(in, "dimension %d of its result would be %lld", i,
                                 (long long)dims[i].value);
    if (o < in->n_out)
        in->out[o].type = cm_type_tensor(in->arena, dtype, rank, dims);
    return CM_OK;
}

void cm_infer_set_known(struct cm_infer *in, int o, int rank, size_t count,
                        const struct cm_quantity *items)
{
    if (o >= in->n_out || count > KNOWN_MAX)
        return;
    struct cm_known *known = CM_NEW(in->arena, struct cm_known);
    struct cm_quantity *copy = CM_NEW_ARRAY(in->arena, struct cm_quantity, count);
    for (size_t i = 0; i < count; i++)
        copy[i] = items[i];
    *known = (struct cm_known){rank, count, copy};
    in->out[o].known = known;
}

enum cm_status cm_infer_fail(struct cm_infer *in, const char *format, ...)
{
    char text[CM_ERROR_SIZE / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return cm_fail(in->err, CM_BAD_MODEL, "%s", text);
}

enum cm_status cm_infer_rank(struct cm_infer *in, int i, int least, int most)
{
    const struct cm_type *type = cm_infer_type(in, i);
    char needs[40];
    if (!type || type->rank == CM_RANK_UNKNOWN || (type->rank >= least && type->rank <= most))
        return CM_OK;
    if (most == CM_MAX_RANK)
        snprintf(needs, sizeof needs, "%d or more", least);
    else if (least == 0)
        snprintf(needs, sizeof needs, "%d or less", most);
    else if (least == most)
        snprintf(needs, sizeof needs, "%d", least);
    else
        snprintf(needs, sizeof needs, "%d %s %d", least, most == least + 1 ? "or" : "to", most);
    const struct cm_schema *schema = in->node->schema;
    if (schema && i < schema->input_count)
        return cm_infer_fail(in, "input %d '%s' has rank %d, needs %s", i, schema->inputs[i].name,
                             type->rank, needs);
    return cm_infer_fail(in, "input %d has rank %d, needs %s", i, type->rank, needs);
}

enum cm_status cm_infer_list(struct cm_infer *in, int i)
{
    const struct cm_type *type = cm_infer_type(in, i);
    if (type && type->kind == CM_KIND_TENSOR && type->rank > 1)
        return cm_infer_fail(in, "input %d has rank %d, needs 1", i, type->rank);
    return CM_OK;
}

enum cm_status cm_infer_number(struct cm_infer *in, int i)
{
    const struct cm_type *type = cm_infer_type(in, i);
    if (!type || type->kind != CM_KIND_TENSOR || type->rank < 1)
        return CM_OK;
    if (type->rank > 1)
        return cm_infer_fail(in, "input %d has rank %d, must be a scalar", i, type->rank);
    if (cm_dim_known(type->dims[0]) && type->dims[0].value != 1)
        return cm_infer_fail(in, "input %d has %lld elements, must have 1", i,
                             (long long)type->dims[0].value);
    return CM_OK;
}

enum cm_status cm_infer_axis(struct cm_infer *in, int64_t axis, int rank, bool may_be_rank,
                             int *out)
{
    if (may_be_rank && axis == rank) {
        *out = rank;
        return CM_OK;
    }
    if (!cm_axis_fix(axis, rank, out))
        return cm_infer_fail(in, "axis %lld is out of range for rank %d", (long long)axis, rank);
    return CM_OK;
}

enum cm_status cm_infer_body(struct cm_infer *in, const char *name, const struct cm_fact *args,
                             size_t n_args, struct cm_fact *outs, size_t n_outs)
{
    const int index = cm_node_body_index(in->node, name);
    if (index < 0)
        return cm_infer_fail(in, "body '%s' is missing", name);
    return in->infer_body(in, (size_t)index, args, n_args, outs, n_outs);
}

enum cm_status cm_infer_like_input(struct cm_infer *in)
{
    for (int o = 0; o < in->n_out; o++)
        CM_TRY(cm_infer_set(in, o, cm_infer_type(in, 0)));
    return CM_OK;
}

enum cm_status cm_infer_broadcast_as(struct cm_infer *in, enum cm_dtype dtype)
{
    struct cm_dim dims[CM_MAX_RANK];
    int rank = 0;

    for (int i = 0; i < in->n_in; i++) {
        const struct cm_type *type = cm_infer_type(in, i);
        if (!type)
            continue;
        if (type->rank == CM_RANK_UNKNOWN)
            return cm_infer_set_tensor(in, 0, dtype, CM_RANK_UNKNOWN, NULL);
        if (type->rank > rank) {
            const int shift = type->rank - rank;
            memmove(dims + shift, dims, (size_t)rank * sizeof dims[0]);
            for (int d = 0; d < shift; d++)
                dims[d] = CM_DIM(1);
            rank = type->rank;
        }
        for (int d = 0; d < type->rank; d++) {
            struct cm_dim *to = &dims[rank - type->rank + d];
            if (!cm_dim_broadcast(*to, type->dims[d], to))
                return cm_infer_fail(in,
                                     "input %d has %lld where another has %lld: neither equal "
                                     "nor 1, so they do not broadcast",
                                     i, (long long)type->dims[d].value, (long long)to->value);
        }
    }
    return cm_infer_set_tensor(in, 0, dtype, rank, dims);
}

enum cm_status cm_infer_broadcast(struct cm_infer *in)
{
    return cm_infer_broadcast_as(in, cm_infer_type(in, 0)->dtype);
}

enum cm_status cm_infer_broadcast_bool(struct cm_infer *in)
{
    return cm_infer_broadcast_as(in, CM_BOOL);
}

/* ---- a rule's run for a node of a graph ---- */

static const struct cm_tensor *find_constant(struct cm_infer *in, int i)
{
    const struct cm_tensor *constant = NULL;
    const enum cm_status status =
        cm_value_constant(in->node->module, cm_node_input(in->node, i), &constant, in->err);
    if (status && !in->status)
        in->status = status;
    return constant;
}

static enum cm_status infer_body(struct cm_infer *in, size_t index, const struct cm_fact *args,
                                 size_t n_args, struct cm_fact *outs, size_t n_outs)
{
    struct cm_node *node = (struct cm_node *)(uintptr_t)in->node;
    struct cm_module *module = node->module;
    struct cm_body_ref *body = &node->bodies[index];

    if (!body->graph) {
        if (!module->build_body)
            return cm_fail(in->err, CM_BAD_MODEL, "body '%.*s' is missing",
                           CM_STR_FMT(body->attribute));
        CM_TRY(module->build_body(module->context, node, body, args, n_args, in->err));
    } else {
        if (body->graph->n_inputs != n_args)
            return cm_infer_fail(in, "body '%.*s' has %zu inputs, needs %zu",
                                 CM_STR_FMT(body->attribute), body->graph->n_inputs, n_args);
        for (size_t i = 0; i < n_args; i++)
            cm_value_set_fact(module, body->graph->inputs[i], &args[i]);
        CM_TRY(cm_graph_retype(body->graph, in->err));
    }
    if (body->graph->n_outputs != n_outs)
        return cm_infer_fail(in, "body '%.*s' has %zu outputs, needs %zu",
                             CM_STR_FMT(body->attribute), body->graph->n_outputs, n_outs);
    for (size_t i = 0; i < n_outs; i++)
        outs[i] = cm_value_get(module, body->graph->outputs[i].value)->fact;
    return CM_OK;
}

/* A rule need not look at every body; those it did not are typed by what they declare. */
static enum cm_status build_remaining(struct cm_node *node, struct cm_error *err)
{
    struct cm_module *module = node->module;
    for (size_t i = 0; i < node->n_bodies; i++) {
        struct cm_body_ref *body = &node->bodies[i];
        if (body->graph || !body->proto || !module->build_body)
            continue;
        const struct cm_value_infos *inputs = &body->proto->input;
        struct cm_fact *args = CM_NEW_ARRAY(module->arena, struct cm_fact, inputs->count);
        for (size_t j = 0; j < inputs->count; j++)
            CM_TRY(cm_type_from_proto(module->arena, module->symbols, inputs->items[j].type,
                                      &args[j].type, err));
        CM_TRY(module->build_body(module->context, node, body, args, inputs->count, err));
    }
    return CM_OK;
}

/* Without a rule of its own an operator's types are those of its body. */
static enum cm_status infer_by_function(struct cm_node *node, struct cm_infer *in)
{
    if (!cm_node_has_function(node))
        return cm_fail(in->err, CM_UNSUPPORTED,
                       "neither an inference rule nor a function body is known for it");
    node->instance = NULL; /* made for other types */
    CM_TRY(cm_node_instantiate(node, in->err));
    size_t next = 0;
    for (int o = 0; o < in->n_out; o++)
        if (node->outputs[o])
            in->out[o] = cm_value_get(node->module, node->instance->outputs[next++].value)->fact;
    return CM_OK;
}

const struct cm_type *cm_value_symbolic(struct cm_module *module, cm_value value,
                                        const struct cm_type *type)
{
    struct cm_dim dims[CM_MAX_RANK];
    bool unknown = false;
    if (type->kind != CM_KIND_TENSOR)
        return type;
    for (int i = 0; i < type->rank; i++) {
        dims[i] = type->dims[i];
        if (cm_dim_known(dims[i]) || dims[i].symbol)
            continue;
        dims[i].symbol = cm_symbol_unnamed(module->symbols, value, i);
        unknown = true;
    }
    return unknown ? cm_type_tensor(module->arena, type->dtype, type->rank, dims) : type;
}

static enum cm_status store_fact(struct cm_node *node, int o, struct cm_fact fact,
                                 struct cm_error *err)
{
    struct cm_module *module = node->module;
    struct cm_value_def *def = cm_value_get(module, node->outputs[o]);
    if (!fact.type)
        return cm_fail(err, CM_UNSUPPORTED, "its rule says nothing about output %d", o);
    CM_TRY(cm_node_check_result(node, o, fact.type, err));
    if (def->declared) {
        /* What the file declares may say more (a symbol); where the two disagree, the computed type
         * is right. */
        const struct cm_type *both = cm_type_meet(module->arena, fact.type, def->declared);
        if (both)
            fact.type = both;
    }
    fact.type = cm_value_symbolic(module, node->outputs[o], fact.type);
    cm_value_set_fact(module, node->outputs[o], &fact);
    return CM_OK;
}

enum { FEW = 16 };

enum cm_status cm_node_infer(struct cm_node *node, struct cm_error *err)
{
    struct cm_module *module = node->module;
    struct cm_fact few_in[FEW], few_out[FEW];
    const size_t n_in = (size_t)node->n_inputs, n_out = (size_t)node->n_outputs;
    struct cm_fact *in_facts =
        n_in <= FEW ? few_in : CM_NEW_ARRAY(module->arena, struct cm_fact, n_in);
    struct cm_fact *out_facts =
        n_out <= FEW ? few_out : CM_NEW_ARRAY(module->arena, struct cm_fact, n_out);
    struct cm_infer in = {.node = node,
                          .arena = module->arena,
                          .symbols = module->symbols,
                          .in = in_facts,
                          .out = out_facts,
                          .n_in = node->n_inputs,
                          .n_out = node->n_outputs,
                          .infer_body = infer_body,
                          .find_constant = find_constant,
                          .err = err};

    memset(out_facts, 0, n_out * sizeof *out_facts);
    for (size_t i = 0; i < n_in; i++) {
        const cm_value value = node->inputs[i].value;
        in_facts[i] = value ? cm_value_get(module, value)->fact : (struct cm_fact){0};
        if (value && cm_value_get(module, value)->is_state)
            in_facts[i].constant = NULL;
    }
    const bool has_rule = node->op && node->op->infer && !node->function;
    enum cm_status status = has_rule ? node->op->infer(&in) : infer_by_function(node, &in);
    if (!status)
        status = in.status;
    CM_TRY(cm_node_outside(status, err));
    CM_TRY(build_remaining(node, err));
    if (module->computes_contents)
        cm_node_infer_contents(node, out_facts);
    for (int o = 0; o < node->n_outputs; o++)
        if (node->outputs[o])
            CM_TRY(store_fact(node, o, out_facts[o], err));
    return CM_OK;
}
