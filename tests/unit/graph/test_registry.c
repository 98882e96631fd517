/* A user's operator, registered at run time as ours are: schema, rule, kernel, gradient, bodies. */
// SPDX-License-Identifier: Apache-2.0
#include "autodiff/backward.h"
#include "graph/registry.h"
#include "graph_case.h"

static const struct cm_type_row floats_row = {CM_FORM_TENSOR, CM_UNDEFINED,
                                              CM_TYPE_BIT(CM_FLOAT) | CM_TYPE_BIT(CM_DOUBLE)};
static const struct cm_schema_type types[] = {{"T", {&floats_row, 1}, false}};
static const struct cm_schema_param operand[] = {
    {.name = "X", .kind = CM_PARAM_SINGLE, .min_arity = 1}};
static const struct cm_schema_default two = {.f = 2};
static const struct cm_schema_attr factor[] = {{"factor", CM_SCHEMA_FLOAT, false, &two}};

#define SCHEMA(title, version)                                                                     \
    {                                                                                              \
        .domain = "test.ops", .name = (title), .since_version = (version), .inputs = operand,      \
        .input_count = 1, .min_inputs = 1, .max_inputs = 1, .outputs = operand, .output_count = 1, \
        .min_outputs = 1, .max_outputs = 1, .attrs = factor, .attr_count = 1, .types = types,      \
        .type_count = 1                                                                            \
    }

static const struct cm_schema scale_schema = SCHEMA("Scale", 1);
static const struct cm_schema scale_schema_3 = SCHEMA("Scale", 3);
static const struct cm_schema shift_schema = SCHEMA("ScaleShift", 1);

static size_t runs;

static enum cm_status scale_run(struct cm_call *call)
{
    const float by = cm_node_float(call->node, "factor");
    const float *x = call->in[0]->data;
    float *y = call->out[0]->data;

    runs++;
    if (call->in[0]->type != CM_FLOAT)
        return cm_call_fail(call, CM_UNSUPPORTED, "no kernel for %s",
                            cm_dtype_name(call->in[0]->type));
    for (int64_t i = 0; i < cm_tensor_count(call->in[0]); i++)
        y[i] = x[i] * by;
    return CM_OK;
}

static enum cm_status scale_grad(struct cm_grad *g)
{
    const cm_value dy = cm_grad_incoming(g, 0);
    const cm_value by = cm_emit_scalar_like(g, dy, (double)cm_node_float(g->node, "factor"));
    return cm_grad_set(g, 0, cm_emit(g, "Mul", dy, by));
}

/* Depends on the attribute: doubling is an addition, and there is none for a factor of 0. */
static enum cm_status scale_body(struct cm_body *b)
{
    const double by = (double)cm_node_float(b->node, "factor");
    const cm_value x = cm_body_input(b, 0);

    if (by == 0)
        return cm_body_decline(b, "the factor is 0");
    if (by == 2)
        return cm_body_return(b, 0, cm_emit(b, "Add", x, x));
    return cm_body_return(b, 0, cm_emit(b, "Mul", x, cm_emit_scalar_like(b, x, by)));
}

static const struct cm_op scale = {.domain = "test.ops",
                                   .name = "Scale",
                                   .infer = cm_infer_like_input,
                                   .run = scale_run,
                                   .grad = scale_grad,
                                   .body = scale_body};

static struct cm_registry *new_registry(struct cm_arena *arena)
{
    struct cm_registry *registry = cm_registry_new(arena);
    struct cm_error err = {0};

    CHECK_OK(cm_registry_add(registry, &scale_schema, &scale, &err), &err);
    return registry;
}

#define USER_HEAD "<ir_version: 10, opset_import: [\"\" : 28, \"test.ops\" : 1]>\n"

static const char model[] = USER_HEAD "main (float[2] x) => (float[2] y) {\n"
                                      "  a = test.ops.Scale <factor = 3.0> (x)\n"
                                      "  y = test.ops.Scale(a)\n"
                                      "}";

static void run(struct cm_arena *arena)
{
    struct cm_registry *registry = new_registry(arena);
    cm_registry_freeze(registry);
    struct cm_graph *graph =
        graph_of(arena, model, &(struct cm_module_options){.registry = registry});
    const struct cm_eval_options by_bodies = {.prefer_bodies = true};

    runs = 0;
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, -2)), 6, -12);
    CHECK_INT(runs, 2);
    graph_check(arena, graph, INPUTS(FLOATS(arena, 1, -2)), &by_bodies, (const float[]){6, -12}, 2);
    CHECK_INT(runs, 2); /* the kernel was left alone */
    struct cm_error err = {0};
    CHECK_OK(cm_graph_inline(graph->last, &err), &err);
    CHECK_STR(graph->last->op_type, "Add");
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, -2)), 6, -12);
    CHECK_FAILS(graph_try(arena, model, NULL, &err), CM_UNSUPPORTED, &err, "test.ops.Scale");
}

void test_registry__a_users_operator_runs_by_kernel_and_by_body(void)
{
    check_in_arena(run);
}

static void declines(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_of(arena,
                                      USER_HEAD "main (float[2] x) => (float[2] y) {\n"
                                                "  y = test.ops.Scale <factor = 0.0> (x)\n"
                                                "}",
                                      &(struct cm_module_options){.registry = new_registry(arena)});
    const size_t before = graph->n_nodes;
    struct cm_error err = {0};

    CHECK_FAILS(cm_graph_inline(graph->first, &err), CM_UNSUPPORTED, &err, "the factor is 0");
    CHECK_INT(graph->n_nodes, before);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, -2)), 0, 0);
}

void test_registry__a_body_may_decline_and_say_why(void)
{
    check_in_arena(declines);
}

static void differentiate(struct cm_arena *arena)
{
    struct cm_graph *graph =
        graph_of(arena, model, &(struct cm_module_options){.registry = new_registry(arena)});
    struct cm_error err = {0};
    cm_value gradient = 0;

    CHECK_OK(cm_autodiff(graph, graph->outputs[0].value, 0, graph->inputs, 1, &gradient, &err),
             &err);
    CHECK(gradient);
    cm_graph_set_outputs(graph, &gradient, 1);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, -2)), 6, 6);
}

void test_registry__a_users_gradient_is_used(void)
{
    check_in_arena(differentiate);
}

static void text_body(struct cm_arena *arena)
{
    struct cm_registry *registry = new_registry(arena);
    struct cm_error err = {0};
    CHECK_OK(cm_registry_add(registry, &shift_schema, NULL, &err), &err);
    const struct cm_str text =
        CM_STR("<domain: \"test.ops\", opset_import: [\"\" : 28, \"test.ops\" : 1]>\n"
               "ScaleShift <factor> (X) => (Y) {\n"
               "  scaled = test.ops.Scale <factor: float = @factor> (X)\n"
               "  one = Constant <value_float = 1.0> ()\n"
               "  Y = Add(scaled, one)\n"
               "}");
    CHECK_OK(cm_registry_add_body(registry, text, &err), &err);
    CHECK_FAILS(cm_registry_add_body(registry, text, &err), CM_BAD_ARGUMENT, &err,
                "'ScaleShift' has a body already");
    CHECK_FAILS(cm_registry_add_body(registry, CM_STR("no function"), &err), CM_BAD_MODEL, &err,
                "line 1");
    struct cm_graph *graph =
        graph_of(arena,
                 USER_HEAD "main (float[2] x) => (float[2] y) {\n"
                           "  a = test.ops.ScaleShift <factor = 5.0> (x)\n"
                           "  y = test.ops.ScaleShift(a)\n" /* the schema's default: 2 */
                           "}",
                 &(struct cm_module_options){.registry = registry});
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, -2)), 13, -17);

    cm_value gradient = 0; /* through the body, as there is no rule */
    CHECK_OK(cm_autodiff(graph, graph->outputs[0].value, 0, graph->inputs, 1, &gradient, &err),
             &err);
    cm_graph_set_outputs(graph, &gradient, 1);
    CHECK_GIVES(arena, graph, INPUTS(FLOATS(arena, 1, -2)), 10, 10);
}

void test_registry__a_text_body_may_import_two_opsets(void)
{
    check_in_arena(text_body);
}

static void refusals(struct cm_arena *arena)
{
    struct cm_registry *registry = new_registry(arena);
    struct cm_error err = {0};

    CHECK_FAILS(cm_registry_add(registry, &scale_schema, &scale, &err), CM_BAD_ARGUMENT, &err,
                "Scale version 1 is registered already");
    CHECK_FAILS(cm_registry_add(registry, &shift_schema, &scale, &err), CM_BAD_ARGUMENT, &err,
                "the operator is called 'Scale', its schema 'ScaleShift'");
    CHECK_FAILS(cm_registry_add(registry, cm_schema_newest(CM_STR(""), CM_STR("Relu")), NULL, &err),
                CM_BAD_ARGUMENT, &err, "Relu version 14 is registered already");
    cm_registry_freeze(registry);
    CHECK_FAILS(cm_registry_add(registry, &shift_schema, NULL, &err), CM_BAD_ARGUMENT, &err,
                "frozen");
    CHECK_FAILS(cm_registry_add_body(registry, CM_STR(""), &err), CM_BAD_ARGUMENT, &err, "frozen");
    CHECK(!cm_registry_schema(registry, CM_STR("test.ops"), CM_STR("ScaleShift"), 0));
}

void test_registry__a_frozen_registry_and_a_version_twice_are_refused(void)
{
    check_in_arena(refusals);
}

static void versions(struct cm_arena *arena)
{
    struct cm_registry *registry = new_registry(arena);
    const struct cm_str domain = CM_STR("test.ops"), name = CM_STR("Scale");
    struct cm_error err = {0};

    CHECK_OK(cm_registry_add(registry, &scale_schema_3, NULL, &err), &err);
    CHECK(cm_registry_schema(registry, domain, name, 1) == &scale_schema);
    CHECK(cm_registry_schema(registry, domain, name, 2) == &scale_schema);
    CHECK(cm_registry_schema(registry, domain, name, 3) == &scale_schema_3);
    CHECK(cm_registry_schema(registry, domain, name, 0) == &scale_schema_3);
    CHECK(cm_registry_op(registry, domain, name) == &scale);
    CHECK(cm_registry_op(registry, CM_STR("ai.onnx"), CM_STR("Relu")) ==
          cm_registry_op(registry, CM_STR(""), CM_STR("Relu")));
    CHECK(cm_registry_op(registry, CM_STR(""), CM_STR("Relu")));
    CHECK(!cm_registry_op(registry, CM_STR(""), name));
    CHECK(!cm_registry_op(cm_registry_builtin(), domain, name));
}

void test_registry__the_version_in_force_is_found(void)
{
    check_in_arena(versions);
}

/* ONNX defines 49 operators of its newest opset as functions too; each has a body here. */
void test_registry__every_function_of_onnx_has_a_body(void)
{
    const struct cm_registry *registry = cm_registry_builtin();
    size_t functions = 0;

    for (size_t i = 0; i < cm_schema_count(); i++) {
        const struct cm_schema *schema = cm_schema_at(i);
        const struct cm_str domain = cm_str(schema->domain), name = cm_str(schema->name);
        if (schema != cm_schema_newest(domain, name) || schema->deprecated ||
            schema->body_count + schema->context_body_count == 0 || cm_str_is(domain, "ai.cameo"))
            continue;
        const struct cm_op *op = cm_registry_op(registry, domain, name);
        functions++;
        if (!(op && op->body) && !cm_registry_body(registry, domain, name))
            fail_msg("%s has no body", schema->name);
    }
    CHECK(functions >= 49);
}
