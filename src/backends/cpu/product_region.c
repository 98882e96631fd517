/* Product regions: a matrix product and the elementwise operators after it, which change each block
 * of rows and columns while it is in the cache, by the loops that the operators name. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/product_plan.h"
#include "backends/product_body.h"
#include "graph/backend.h"

/* ---- reading the body ---- */

/* Which of the values so far it is: 0 the product, i + 1 what follower i gives; -1: none. */
static int number_of(const struct cm_graph *body, cm_value value)
{
    int number = 0;
    for (const struct cm_node *node = cm_body_product(body); node; node = node->next, number++)
        if (node->outputs[0] == value)
            return number;
    return -1;
}

static bool read_extent(struct cm_call *call, const struct cm_product_plan *plan,
                        const struct cm_tensor *x, struct cm_product_operand *out)
{
    static const enum cm_product_extent extents[] = {[CM_BODY_NUMBER] = CM_PRODUCT_NUMBER,
                                                     [CM_BODY_COLUMN] = CM_PRODUCT_COLUMN,
                                                     [CM_BODY_WHOLE] = CM_PRODUCT_WHOLE,
                                                     [CM_BODY_OTHER] = CM_PRODUCT_ABSENT};
    out->extent = extents[cm_body_extent(&x->shape, &call->out[0]->shape, plan->column_axis)];
    return out->extent != CM_PRODUCT_ABSENT ||
           cm_call_decline(call, "an operand after the product repeats in another way");
}

static bool read_operand(struct cm_call *call, const struct cm_product_plan *plan, cm_value value,
                         struct cm_product_operand *out, enum cm_dtype *type)
{
    const struct cm_graph *body = cm_body_of(call->node);
    const struct cm_tensor *constant = NULL;
    *type = CM_UNDEFINED;
    if (!value)
        return true;
    const int number = number_of(body, value), place = cm_body_place(body, value);
    *type = cm_value_get(body->module, value)->fact.type->dtype;
    *out = (struct cm_product_operand){.place = number};
    if (number >= 0 && number <= plan->n_followers) {
        out->extent = CM_PRODUCT_VALUE;
        return true;
    }
    out->place = place;
    if (place >= 0)
        return read_extent(call, plan, call->in[place], out);
    if (cm_value_constant(body->module, value, &constant, NULL) || !constant ||
        cm_shape_elements(&constant->shape) != 1)
        return cm_call_decline(call, "an operand after the product is computed in the region");
    out->extent = CM_PRODUCT_NUMBER;
    out->constant = constant->data;
    return true;
}

static bool read_follower(struct cm_call *call, struct cm_product_plan *plan,
                          const struct cm_node *node)
{
    enum cm_dtype types[CM_PRODUCT_FOLLOWER_OPERANDS];
    if (plan->n_followers == CM_PRODUCT_FOLLOWERS)
        return cm_call_decline(call, "more than %d operators follow the product",
                               CM_PRODUCT_FOLLOWERS);
    struct cm_product_follower *follower = &plan->followers[plan->n_followers];
    if (!node->op || !node->op->elementwise || !cm_node_is_current(node) || node->n_outputs != 1 ||
        node->n_inputs > CM_PRODUCT_FOLLOWER_OPERANDS)
        return cm_call_decline(call, "%s follows the product", cm_node_describe(node).text);
    follower->n_in = node->n_inputs;
    for (int i = 0; i < node->n_inputs; i++) {
        if (!read_operand(call, plan, cm_node_input(node, i), &follower->in[i], &types[i]))
            return false;
        plan->reads_columns |= follower->in[i].extent == CM_PRODUCT_COLUMN;
        if (types[i] != CM_FLOAT && types[i] != CM_UNDEFINED)
            return cm_call_decline(call, "an operand is of type %s", cm_dtype_name(types[i]));
    }
    if (!node->op->elementwise(node, types, CM_FLOAT, &follower->loop))
        return cm_call_decline(call, "%s has no loop of floats", cm_node_describe(node).text);
    plan->n_followers++;
    return true;
}

/* The input of the body that an addition right after the product adds, as large as the result or
 * one row; -1: none. */
static int added_first(const struct cm_graph *body, const struct cm_node *product)
{
    const struct cm_node *next = product->next;
    if (!next || !(cm_body_is(next, "Add") || cm_body_is(next, "Sum")) || next->n_inputs != 2)
        return -1;
    const cm_value x = cm_node_input(next, 0), y = cm_node_input(next, 1);
    return x == product->outputs[0]   ? cm_body_place(body, y)
           : y == product->outputs[0] ? cm_body_place(body, x)
                                      : -1;
}

/* An addition right after the product is part of it. */
static bool join_addition(struct cm_call *call, struct cm_product_plan *plan,
                          const struct cm_graph *body)
{
    struct cm_product_operand added;
    const int place = plan->d < 0 ? added_first(body, cm_body_product(body)) : -1;
    if (place < 0 || call->in[place]->type != CM_FLOAT ||
        !read_extent(call, plan, call->in[place], &added) || added.extent == CM_PRODUCT_NUMBER)
        return false;
    plan->d = place;
    plan->gemm.d_row = added.extent == CM_PRODUCT_WHOLE ? plan->gemm.n : 0;
    return true;
}

bool cm_product_places(struct cm_call *call, const struct cm_node *product, int *in)
{
    const struct cm_graph *body = product == call->node ? NULL : cm_body_of(call->node);
    for (int i = 0; i < 3; i++) {
        const cm_value value = body ? cm_body_operand(body, i) : cm_node_input(product, i);
        in[i] = body ? cm_body_place(body, value) : value ? i : -1;
        if (value ? in[i] < 0 : i < 2)
            return cm_call_decline(call, "an operand of the product is part of the region");
    }
    return true;
}

bool cm_product_read_followers(struct cm_call *call, struct cm_product_plan *plan)
{
    const struct cm_graph *body = cm_body_of(call->node);
    plan->first_follower = join_addition(call, plan, body) ? 1 : 0;
    for (const struct cm_node *node = cm_body_product(body)->next; node; node = node->next)
        if (!read_follower(call, plan, node))
            return false;
    return body->last->outputs[0] == body->outputs[0].value ||
           cm_call_decline(call, "the result is not that of the last operator");
}

/* NULL after declining. */
static struct cm_product_plan *read_region(struct cm_call *call)
{
    const struct cm_graph *body = cm_body_of(call->node);
    const struct cm_node *product = cm_body_product(body);
    int in[3];
    if (!product || !(cm_body_is(product, "MatMul") || cm_body_is(product, "Gemm")) ||
        body->n_outputs != 1 || call->n_out != 1) {
        cm_call_decline(call, "the group does not begin with a matrix product");
        return NULL;
    }
    if (!cm_product_places(call, product, in))
        return NULL;
    if (call->in[in[1]]->shape.rank < 2) {
        cm_call_decline(call, "the right operand of the product is a vector");
        return NULL;
    }
    struct cm_product_plan *plan = cm_product_plan_new(call, product, in);
    return plan && cm_product_read_followers(call, plan) ? plan : NULL;
}

static bool accepts(struct cm_call *call)
{
    const struct cm_product_plan *plan = read_region(call);
    return plan && cm_product_plan_suits(call, plan);
}

static bool accepts_any(struct cm_call *call)
{
    return read_region(call) != NULL;
}

/* ---- running it ---- */

static const float *operand_at(const struct cm_product_finish *f,
                               const struct cm_product_operand *operand, const float *const *values,
                               int64_t row, int64_t column)
{
    const bool is_read = operand->extent != CM_PRODUCT_VALUE && operand->place >= 0;
    const float *data = operand->constant ? operand->constant
                        : is_read         ? f->call->in[operand->place]->data
                                          : NULL;
    switch (operand->extent) {
    case CM_PRODUCT_ABSENT:
        return NULL;
    case CM_PRODUCT_VALUE:
        return values[operand->place];
    case CM_PRODUCT_NUMBER:
        return data;
    case CM_PRODUCT_COLUMN:
        return data + column;
    case CM_PRODUCT_WHOLE:
        break;
    }
    return data + f->first + row * f->plan->gemm.n + column;
}

/* Every follower for so many elements of a row, or of rows that lie one after the other. */
static void finish_elements(const struct cm_product_finish *f, int64_t row, int64_t column,
                            int64_t count, float *c)
{
    const struct cm_product_plan *plan = f->plan;
    float between[CM_PRODUCT_FOLLOWERS][CM_SGEMM_MOST_COLUMNS];
    const float *values[CM_PRODUCT_FOLLOWERS + 1] = {c, c}; /* an addition that was joined */
    for (int i = plan->first_follower; i < plan->n_followers; i++) {
        const struct cm_product_follower *follower = &plan->followers[i];
        const void *in[CM_PRODUCT_FOLLOWER_OPERANDS];
        int64_t step[CM_PRODUCT_FOLLOWER_OPERANDS];
        for (int j = 0; j < follower->n_in; j++) {
            in[j] = operand_at(f, &follower->in[j], values, row, column);
            step[j] = follower->in[j].extent != CM_PRODUCT_NUMBER;
        }
        float *out = i + 1 == plan->n_followers ? c : between[i];
        follower->loop.run(
            &follower->loop,
            &(struct cm_elements){
                .count = count, .n_in = follower->n_in, .in = in, .step = step, .out = out});
        values[i + 1] = out;
    }
}

/* Every follower of some elements before the next ones; what they give on the way is in the cache.
 */
void cm_product_finish(const void *arg, int64_t row, int64_t rows, int64_t column, int64_t columns,
                       float *c, int64_t c_row)
{
    const struct cm_product_finish *f = arg;
    const bool as_one = columns == c_row && !f->plan->reads_columns;
    const int64_t count = as_one ? rows * columns : columns;
    for (int64_t r = row; r < row + (as_one ? 1 : rows); r++, c += c_row)
        for (int64_t at = 0; at < count; at += CM_SGEMM_MOST_COLUMNS)
            finish_elements(f, r, column + at,
                            count - at < CM_SGEMM_MOST_COLUMNS ? count - at : CM_SGEMM_MOST_COLUMNS,
                            c + at);
}

/* What is added right after the product and as large as the result is read before that is written,
 * element by element. */
static enum cm_sharing share(const struct cm_node *node, int output, int input)
{
    const struct cm_graph *body = cm_body_of(node);
    const struct cm_node *product = cm_body_product(body);
    const cm_value x = body->inputs[input];
    const bool has_addend = cm_body_is(product, "Gemm") && cm_node_input(product, 2);
    if (output != 0 || has_addend || added_first(body, product) != input ||
        cm_value_get(body->module, x)->n_uses != 1)
        return CM_SHARE_NOTHING;
    const struct cm_type *added = cm_value_get(body->module, x)->fact.type;
    const struct cm_type *y = cm_value_get(body->module, body->outputs[0].value)->fact.type;
    return added->rank == y->rank ? CM_SHARE_OVERWRITE : CM_SHARE_NOTHING;
}

#define PRODUCT                                                                                    \
    .prepare = cm_product_plan_prepare, .run = cm_product_plan_run, .share = share,                \
    .layouts = CM_LAYOUT_CHOSEN

CM_KERNEL_AT_IN(cpu, 1, "ai.cameo", ProductRegion, .label = "float product", .accepts = accepts,
                PRODUCT);
CM_KERNEL_AT_IN(cpu, CM_TURN_LAST, "ai.cameo", ProductRegion, .label = "any float product",
                .accepts = accepts_any, PRODUCT);
