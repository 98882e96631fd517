/* Product regions as one primitive: a convolution or matrix product with bias, activations and a
 * residual as post-operations. A Swish that ends one after a convolution is our own pass over the
 * result: it takes half the time. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/dnnl_product.h"

#include "backends/product_body.h"
#include "base/parallel.h"
#include "graph/backend.h"
#include "graph/eval.h"
#include "tensor/finite.h"
#include "tensor/layout.h"

#include <math.h>

/* ---- reading the body ---- */

static const struct {
    const char *op;
    cm_dnnl_accept_fn *accept;
} products[] = {
    {"Conv", cm_dnnl_accept_conv},
    {"ConvTranspose", cm_dnnl_accept_conv_transpose},
    {"Gemm", cm_dnnl_accept_gemm},
    {"MatMul", cm_dnnl_accept_matmul},
};

/* Functions with at most one parameter, an attribute. */
static const struct {
    const char *op;
    enum cm_dnnl_function function;
    const char *attribute;
} functions[] = {
    {"Elu", CM_DNNL_ELU, "alpha"},         {"HardSwish", CM_DNNL_HARDSWISH, NULL},
    {"LeakyRelu", CM_DNNL_RELU, "alpha"},  {"Mish", CM_DNNL_MISH, NULL},
    {"Relu", CM_DNNL_RELU, NULL},          {"Sigmoid", CM_DNNL_LOGISTIC, NULL},
    {"Softplus", CM_DNNL_SOFT_RELU, NULL}, {"Swish", CM_DNNL_SWISH, "alpha"},
    {"Tanh", CM_DNNL_TANH, NULL},
};

/* Sum is Add of any number. */
static bool is_sum_of_two(const struct cm_node *node)
{
    return cm_body_is(node, "Add") || (cm_body_is(node, "Sum") && node->n_inputs == 2);
}

/* Is the value one number that can never change? */
static bool read_number(const struct cm_graph *body, cm_value value, float *out)
{
    const struct cm_tensor *tensor = cm_value_get(body->module, value)->fact.constant;
    if (!tensor || tensor->type != CM_FLOAT || cm_shape_elements(&tensor->shape) != 1)
        return false;
    memcpy(out, tensor->data, sizeof *out);
    return true;
}

/* A walk along the chain that follows the product. */
struct chain_walk {
    struct cm_call *call;
    const struct cm_graph *body;
    struct cm_dnnl_product *product;
    bool at_1;      /* channels are axis 1; else the last */
    cm_value value; /* what the chain has come to */
};

static bool add_follower(struct chain_walk *walk, struct cm_dnnl_follower follower)
{
    struct cm_dnnl_product *product = walk->product;
    if (product->n_followers == CM_DNNL_MOST_POSTS)
        return cm_call_decline(walk->call, "more than %d operators follow the product",
                               CM_DNNL_MOST_POSTS);
    product->followers[product->n_followers++] = follower;
    return true;
}

static bool add_function(struct chain_walk *walk, enum cm_dnnl_function function, float a, float b)
{
    return add_follower(walk, (struct cm_dnnl_follower){.function = function, .a = a, .b = b});
}

static bool is_operand_of_product(const struct cm_dnnl_product *product, int place)
{
    return place == product->in[0] || place == product->in[1] || place == product->in[2];
}

static bool read_add(struct chain_walk *walk, cm_value other)
{
    struct cm_dnnl_follower follower = {.adds = true, .place = cm_body_place(walk->body, other)};
    float number;
    if (read_number(walk->body, other, &number))
        return add_function(walk, CM_DNNL_LINEAR, 1, number);
    if (follower.place < 0)
        return cm_call_decline(walk->call, "the chain adds a value that the chain computes");
    const struct cm_shape *y = &walk->call->out[0]->shape;
    follower.extent =
        cm_body_extent(&walk->call->in[follower.place]->shape, y, walk->at_1 ? 1 : y->rank - 1);
    if (follower.extent == CM_BODY_OTHER)
        return cm_call_decline(walk->call, "oneDNN cannot repeat the operand of Add that way");
    if (is_operand_of_product(walk->product, follower.place))
        return cm_call_decline(walk->call, "the chain adds an operand of the product");
    return add_follower(walk, follower);
}

static bool read_mul(struct chain_walk *walk, cm_value other)
{
    float number;
    return read_number(walk->body, other, &number)
               ? add_function(walk, CM_DNNL_LINEAR, number, 0)
               : cm_call_decline(walk->call,
                                 "the chain multiplies by a value that is not a constant number");
}

static bool read_clip(struct chain_walk *walk, const struct cm_node *node)
{
    float limits[2] = {-INFINITY, INFINITY};
    for (int i = 0; i < 2; i++) {
        const cm_value limit = cm_node_input(node, i + 1);
        if (limit && !read_number(walk->body, limit, &limits[i]))
            return cm_call_decline(walk->call, "a limit of Clip is not constant");
    }
    if (!(limits[0] <= limits[1]))
        return cm_call_decline(walk->call, "the limits of Clip exclude everything");
    return add_function(walk, CM_DNNL_CLIP, limits[0], limits[1]);
}

/* x * Sigmoid(x): the node after this one closes it. */
static bool is_gate(const struct chain_walk *walk, const struct cm_node *node)
{
    const struct cm_node *next = node->next;
    if (!cm_body_is(node, "Sigmoid") || !next || !cm_body_is(next, "Mul"))
        return false;
    const cm_value a = cm_node_input(next, 0), b = cm_node_input(next, 1);
    return (a == walk->value && b == node->outputs[0]) ||
           (b == walk->value && a == node->outputs[0]);
}

static bool read_node(struct chain_walk *walk, const struct cm_node *node)
{
    const cm_value first = cm_node_input(node, 0);
    const cm_value other = first == walk->value ? cm_node_input(node, 1) : first;
    if (is_sum_of_two(node))
        return read_add(walk, other);
    if (cm_body_is(node, "Mul"))
        return read_mul(walk, other);
    if (cm_body_is(node, "Clip"))
        return read_clip(walk, node);
    if (cm_body_is(node, "Gelu")) {
        const bool by_tanh = cm_str_is(cm_node_str(node, "approximate"), "tanh");
        return add_function(walk, by_tanh ? CM_DNNL_GELU_TANH : CM_DNNL_GELU_ERF, 0, 0);
    }
    if (cm_body_is(node, "HardSigmoid"))
        return add_function(walk, CM_DNNL_LINEAR, cm_node_float(node, "alpha"),
                            cm_node_float(node, "beta")) &&
               add_function(walk, CM_DNNL_CLIP, 0, 1);
    for (size_t i = 0; i < CM_COUNT(functions); i++)
        if (cm_body_is(node, functions[i].op))
            return add_function(
                walk, functions[i].function,
                functions[i].attribute ? cm_node_float(node, functions[i].attribute) : 0, 0);
    return cm_call_decline(walk->call, "oneDNN has no post-operation for %.*s",
                           (int)node->op_type.size, node->op_type.data);
}

/* Does the node read the chain's value, and give one result that goes on? */
static bool is_link(const struct chain_walk *walk, const struct cm_node *node)
{
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i].value == walk->value)
            return node->n_outputs == 1 && node->outputs[0];
    return false;
}

static bool read_chain(struct chain_walk *walk, const struct cm_node *product)
{
    walk->value = product->outputs[0];
    for (const struct cm_node *node = product->next; node; node = node->next) {
        if (!is_link(walk, node))
            return cm_call_decline(walk->call, "the operators after the product are not a chain");
        if (is_gate(walk, node)) {
            node = node->next;
            if (!add_function(walk, CM_DNNL_SWISH, 1, 0))
                return false;
        } else if (!read_node(walk, node)) {
            return false;
        }
        walk->value = node->outputs[0];
    }
    return walk->value == walk->body->outputs[0].value ||
           cm_call_decline(walk->call, "the operators after the product are not a chain");
}

static bool read_product(struct cm_call *call, const struct cm_graph *body,
                         struct cm_dnnl_product *out)
{
    *out = (struct cm_dnnl_product){
        .node = cm_body_product(body), .in = {-1, -1, -1}, .turned = cm_body_turns(body)};
    for (int i = 0; i < 3; i++) {
        const cm_value value = cm_body_operand(body, i);
        out->in[i] = cm_body_place(body, value);
        if (value && out->in[i] < 0)
            return cm_call_decline(call, "an operand of the product is part of the region");
    }
    if (out->in[0] < 0 || out->in[1] < 0)
        return cm_call_decline(call, "an operand of the product is absent");
    return true;
}

/* ---- NaN ---- */

/* Where operands hold what is not finite and the primitive would lose NaN, the body runs node by
 * node. (Finite operands whose products overflow to infinities of both signs still lose it.) */
static bool is_finite(const struct cm_call *call)
{
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i] && !cm_call_is_constant(call, i) && !cm_tensor_is_finite(call->in[i]))
            return false;
    return true;
}

static bool has_finite_constants(struct cm_call *call)
{
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i] && cm_call_is_constant(call, i) && call->in[i]->data &&
            !cm_tensor_is_finite(call->in[i]))
            return cm_call_decline(call, "constant input %d is not finite", i);
    return true;
}

/* Input i, plain; a new reference or a copy. */
static enum cm_status plain_input(struct cm_call *call, int i, struct cm_datum *out)
{
    const struct cm_tensor *x = call->in[i];
    out->kind = CM_KIND_TENSOR;
    CM_TRY(cm_tensor_new(x->type, &x->shape, &out->tensor, call->err));
    if (x->layout)
        return x->layout->reorder(x, &out->tensor, call->err);
    memcpy(out->tensor.data, x->data, cm_tensor_bytes(x));
    return CM_OK;
}

static enum cm_status give_result(struct cm_call *call, const struct cm_tensor *result)
{
    struct cm_tensor *y = call->out[0];
    if (y->layout)
        return y->layout->reorder(result, y, call->err);
    memcpy(y->data, result->data, cm_tensor_bytes(y));
    return CM_OK;
}

enum { MOST_OPERANDS = 3 + CM_DNNL_MOST_POSTS };

struct body_run {
    struct cm_call *call;
    const struct cm_datum *in[MOST_OPERANDS];
    struct cm_datum out;
};

/* The guard under which the graph was compiled is gone when it runs. */
static enum cm_status eval_body(struct cm_guard *guard, void *arg)
{
    struct body_run *r = arg;
    const struct cm_eval_options options = {.guard = guard};
    return cm_graph_eval(r->call->node->bodies[0].graph, r->in, (size_t)r->call->n_in, &r->out,
                         &options, r->call->err);
}

static enum cm_status run_body(struct cm_call *call)
{
    struct cm_datum in[MOST_OPERANDS] = {0};
    struct body_run r = {.call = call};
    enum cm_status status = CM_OK;
    for (int i = 0; i < call->n_in && !status; i++) {
        status = plain_input(call, i, &in[i]);
        r.in[i] = &in[i];
    }
    if (!status)
        status = cm_guarded(0, call->err, eval_body, &r);
    if (!status)
        status = give_result(call, &r.out.tensor);
    for (int i = 0; i < call->n_in; i++)
        cm_datum_drop(&in[i]);
    cm_datum_drop(&r.out);
    return status;
}

/* ---- a last step of our own ---- */

struct region_call {
    void *work; /* oneDNN's part */
    bool loses_nan;
    struct cm_element_loop last; /* run NULL: none */
};

/* Takes a Swish from the end of what follows. */
static void take_last(const struct cm_node *node, struct cm_dnnl_product *product,
                      struct cm_element_loop *last)
{
    const enum cm_dtype type = CM_FLOAT;
    *last = (struct cm_element_loop){.run = NULL};
    if (cm_body_is(product->node, "Conv") && cm_body_is(node, "Swish") &&
        product->n_followers > 0 && node->op && node->op->elementwise &&
        node->op->elementwise(node, &type, type, last))
        product->n_followers--;
}

struct last_pass {
    const struct cm_element_loop *loop;
    float *y;
};

static void run_last(void *arg, int64_t begin, int64_t end)
{
    const struct last_pass *pass = arg;
    const void *in[] = {pass->y + begin};
    const int64_t step[] = {1};
    pass->loop->run(
        pass->loop,
        &(struct cm_elements){
            .count = end - begin, .n_in = 1, .in = in, .step = step, .out = pass->y + begin});
}

/* Padding of a layout is zeros, and stays so. */
static void finish_result(const struct cm_call *call, const struct cm_element_loop *loop)
{
    enum { GRAIN = 1 << 13 }; /* elements */
    const struct cm_tensor *y = call->out[0];
    struct last_pass pass = {loop, y->data};
    const size_t bytes = y->layout ? y->layout->bytes : cm_tensor_bytes(y);
    cm_parallel((int64_t)(bytes / sizeof(float)), GRAIN, run_last, &pass);
}

/* ---- the kernel ---- */

static bool region_accepts(struct cm_call *call)
{
    const struct cm_graph *body = cm_body_of(call->node);
    const struct cm_node *first = cm_body_product(body);
    cm_dnnl_accept_fn *accept = NULL;
    struct cm_dnnl_product product;
    for (size_t i = 0; first && i < CM_COUNT(products); i++)
        if (cm_body_is(first, products[i].op))
            accept = products[i].accept;
    if (!accept || body->n_outputs != 1 || call->n_out != 1 || call->n_in > MOST_OPERANDS)
        return cm_call_decline(
            call, "the group is not a product and a chain of operators after the product");
    struct chain_walk walk = {.call = call,
                              .body = body,
                              .product = &product,
                              .at_1 = cm_str_starts(first->op_type, "Conv")};
    struct region_call made;
    if (!cm_dnnl_suits(call) || !read_product(call, body, &product) || !read_chain(&walk, first))
        return false;
    take_last(body->last, &product, &made.last);
    if (!accept(call, &product))
        return false;
    made.work = call->state;
    made.loses_nan = cm_dnnl_loses_nan(call);
    if (made.loses_nan && !has_finite_constants(call))
        return false;
    *(struct region_call *)cm_call_state(call, sizeof made) = made;
    return true;
}

static enum cm_status region_prepare(struct cm_call *call)
{
    const struct region_call *made = call->state;
    return cm_dnnl_prepare_state(call, made->work, 0);
}

static enum cm_status region_run(struct cm_call *call)
{
    const struct region_call *made = call->state;
    if (made->loses_nan && !is_finite(call))
        return run_body(call);
    CM_TRY(cm_dnnl_run_state(call, made->work));
    if (made->last.run)
        finish_result(call, &made->last);
    return CM_OK;
}

/* A residual may become the result: what is added and has as many axes as the result. (A bias with
 * as many elements has not, and is read all along.) */
static enum cm_sharing region_share(const struct cm_node *node, int output, int input)
{
    const struct cm_graph *body = cm_body_of(node);
    if (output != 0 || (size_t)input >= body->n_inputs)
        return CM_SHARE_NOTHING;
    const struct cm_value_def *def = cm_value_get(body->module, body->inputs[input]);
    const struct cm_type *y = cm_value_get(body->module, body->outputs[0].value)->fact.type;
    const bool is_added = def->n_uses == 1 && def->uses->node && is_sum_of_two(def->uses->node);
    return is_added && def->fact.type->rank == y->rank ? CM_SHARE_OVERWRITE : CM_SHARE_NOTHING;
}

CM_KERNEL_IN(onednn, "ai.cameo", ProductRegion, .label = "oneDNN product",
             .accepts = region_accepts, .prepare = region_prepare, .run = region_run,
             .share = region_share, .layouts = CM_LAYOUT_CHOSEN);
