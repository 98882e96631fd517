/* What training info stands for as typed graphs: what is imported, what a part of it holds. */
// SPDX-License-Identifier: Apache-2.0
#include "train/training_graph.h"

#include "autodiff/gradient_nodes.h"
#include "base/diagnostics.h"
#include "graph/op.h"
#include "train_case.h"

#define HEAD                                                                                       \
    "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.preview.training\" : 1, \"own\" : 1, "    \
    "\"foreign\" : 1]>\n"

static struct cm_graph *import(struct cm_arena *arena, const char *text, const char *variable,
                               struct cm_findings *found)
{
    const struct cm_model_file *file = train_model(arena, text);
    const struct cm_module_options options = {.files = file->files};
    struct cm_map *variables = CM_NEW(arena, struct cm_map);
    struct cm_error err = {0};
    struct cm_graph *graph;

    cm_map_insert(variables, arena, cm_str(variable), NULL);
    found->arena = arena;
    const struct cm_training_source source = {.module = cm_module_new(arena, &options),
                                              .model = &file->model,
                                              .variables = variables,
                                              .findings = found};
    CHECK_OK(cm_training_import(&source, &graph, &err), &err);
    return graph;
}

static cm_value find(const struct cm_graph *graph, const char *name)
{
    const cm_value value = cm_graph_find(graph, cm_str(name));

    CHECK(value);
    return value;
}

static struct cm_graph *copy(const struct cm_cut *cut, cm_value **sources)
{
    struct cm_error err = {0};
    struct cm_graph *graph;

    CHECK_OK(cm_cut_copy(cut, &graph, sources, &err), &err);
    return graph;
}

static const char net[] =
    HEAD "g (float[N,2] x, float[2] shift) => (float[N,2] y)\n"
         "<float[2] shift = {1, 1}, float[2] w = {1, 2}>\n"
         "{ h = Mul(x, w)\n  y = Add(h, shift) }\n"
         "training { algorithm: step (float[N,2] t) => (float loss, float[2] w_new)\n"
         "<float rate = {0.5}>\n"
         "{ d = Sub(y, t)\n  loss = ReduceSumSquare<keepdims = 0>(d)\n"
         "  g = ai.onnx.preview.training.Gradient<xs = [\"w\"], zs = [\"x\", \"t\"], y = \"loss\">"
         "(w, x, t)\n  m = Mul(g, rate)\n  w_new = Sub(w, m) },\n"
         "update_binding: [\"w\": \"w_new\"] }\n";

/* Variables are inputs with a default, other inputs with one are constants. */
static void parts(struct cm_arena *arena)
{
    struct cm_findings found = {0};
    const struct cm_graph *graph = import(arena, net, "w", &found);
    const cm_value gradient = find(graph, "g"), loss = find(graph, "loss");
    const cm_value w_new = find(graph, "w_new");
    cm_value *sources;

    CHECK_INT(found.total, 0);
    CHECK_INT(graph->n_inputs, 3);
    CHECK(cm_value_is_variable(graph->module, find(graph, "w")));
    CHECK(cm_value_get(graph->module, find(graph, "shift"))->role == CM_ROLE_INITIALIZER);
    const struct cm_node *node = cm_value_get(graph->module, gradient)->node;
    CHECK(cm_node_is_gradient(node) && cm_gradient_of(node, 0) == find(graph, "w"));

    const struct cm_graph *step =
        copy(&(struct cm_cut){.graph = graph, .outputs = &w_new, .n_outputs = 1}, &sources);
    CHECK_INT(step->n_inputs, 3);
    CHECK(sources[0] == find(graph, "w") && sources[1] == find(graph, "x"));
    CHECK_INT(step->n_nodes, graph->n_nodes);
    CHECK(step->outputs[0].value == find(step, "w_new") && find(step, "w_new") != w_new);

    const struct cm_graph *forward =
        copy(&(struct cm_cut){.graph = graph, .outputs = &loss, .n_outputs = 1}, &sources);
    CHECK_INT(forward->n_nodes, 4);

    /* The gradient is fed: nothing that leads to it is left, nor the batch. */
    const struct cm_given_value given = {gradient,
                                         cm_value_get(graph->module, gradient)->fact.type};
    const struct cm_graph *update = copy(
        &(struct cm_cut){
            .graph = graph, .outputs = &w_new, .n_outputs = 1, .given = &given, .n_given = 1},
        &sources);
    CHECK_INT(update->n_nodes, 2);
    CHECK_INT(update->n_inputs, 2);
    CHECK(sources[0] == find(graph, "w") && sources[1] == gradient);
    CHECK(update->inputs[1] == find(update, "g"));
}

void test_training_graph__parts_have_what_leads_to_their_outputs(void)
{
    check_in_arena(parts);
}

/* In training mode: Dropout by its operand, in a body too, BatchNormalization by its attribute. */
static void settled(struct cm_arena *arena)
{
    static const char text[] =
        HEAD "g (float[N,2] x, bool mode) => (float[N,2] y)\n"
             "<float[2] s = {1, 1}, float[2] b = {0, 0}, float[2] m = {0, 0}, float[2] v = {1, 1},"
             " float ratio = {0.5}, bool yes = {1}>\n"
             "{ n, m_new, v_new = BatchNormalization<training_mode = 1>(x, s, b, m, v)\n"
             "  d = Dropout(n, ratio, mode)\n"
             "  y = If(yes) <then_branch = t () => (float[N,2] a) { a = Dropout(d, ratio, yes) },"
             " else_branch = e () => (float[N,2] c) { c = Neg(d) }> }\n"
             "training { algorithm: step () => (float[2] m_next) { m_next = Identity(m_new) },\n"
             "update_binding: [\"m\": \"m_next\"] }\n";
    struct cm_findings found = {0};
    const struct cm_graph *graph = import(arena, text, "m", &found);
    const cm_value outputs[] = {find(graph, "y"), find(graph, "m_next")};
    struct cm_cut cut = {.graph = graph, .outputs = outputs, .n_outputs = 1, .evaluate = true};
    cm_value *sources;

    const struct cm_graph *evaluated = copy(&cut, &sources);
    CHECK_INT(evaluated->n_inputs, 2); /* m and x, nobody asks for the mode */
    const struct cm_node *norm = cm_value_get(graph->module, find(evaluated, "n"))->node;
    CHECK(cm_node_int(norm, "training_mode") == 0 && norm->n_outputs == 1);
    CHECK(!cm_node_input(cm_value_get(graph->module, find(evaluated, "d"))->node, 2));
    const struct cm_graph *then =
        cm_node_body(cm_value_get(graph->module, find(evaluated, "y"))->node, "then_branch");
    CHECK(cm_str_is(then->first->op_type, "Dropout") && !cm_node_input(then->first, 2));

    cut.n_outputs = 2; /* who wants the new statistics has them */
    norm = cm_value_get(graph->module, find(copy(&cut, &sources), "n"))->node;
    CHECK(cm_node_int(norm, "training_mode") == 1 && norm->n_outputs == 3);
    cut.evaluate = false;
    CHECK_INT(copy(&cut, &sources)->n_inputs, 3);
}

void test_training_graph__evaluation_behaves_as_inference(void)
{
    check_in_arena(settled);
}

/* z cannot be built, which is in the way of a prediction and of nothing else. */
static void unknown(struct cm_arena *arena)
{
    static const char text[] =
        HEAD "g (float[2] x) => (float[2] y, float[2] z) <float[2] a = {1, 2}>\n"
             "{ y = Mul(x, a)\n  p = foreign.Mystery(x)\n  z = Neg(p) }\n"
             "training { algorithm: step () => (float loss, float[2] n)\n"
             "{ loss = ReduceSum<keepdims = 0>(y)\n  n = Neg(a) },\n"
             "update_binding: [\"a\": \"n\"] }\n";
    struct cm_trainer *trainer = train_of(arena, text);
    float x[] = {3, 4};
    const struct cm_tensor fed = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(2), x);
    const struct cm_tensor *in[] = {&fed};
    struct cm_trainer_scalar scalar;
    struct cm_trainer_measure measure;
    struct cm_error err = {0};

    CHECK_OK(cm_trainer_step(trainer, in, &scalar, &err), &err);
    CHECK(scalar.value == 11);
    CHECK_OK(cm_trainer_prepare_evaluation(trainer, &err), &err);
    CHECK_OK(cm_trainer_evaluate(trainer, in, &measure, &err), &err);
    CHECK(measure.loss == -11);
    CHECK_FAILS(cm_trainer_prepare_prediction(trainer, &err), CM_UNSUPPORTED, &err, "Mystery");
}

void test_training_graph__what_nobody_needs_may_be_unknown(void)
{
    check_in_arena(unknown);
}

/* y is the inference graph's and the algorithm's: neither is taken for the other. */
static void twice(struct cm_arena *arena)
{
    struct cm_error err = {0};

    CHECK_FAILS(train_try(arena,
                          HEAD "g (float[2] x) => (float[2] y) <float[2] a = {1, 2}>\n"
                               "{ y = Mul(x, a) }\n"
                               "training { algorithm: step () => (float[2] n)\n"
                               "{ y = Neg(a)\n  n = Neg(y) }, update_binding: [\"a\": \"n\"] }\n",
                          &err),
                CM_BAD_MODEL, &err, "'y' is defined twice");
}

void test_training_graph__a_name_means_one_value(void)
{
    check_in_arena(twice);
}

/* What trains otherwise inside a function of the model is switched off too. */
static void in_function(struct cm_arena *arena)
{
    static const char text[] =
        HEAD "g (float[64] x) => (float[64] y) <float a = {1}>\n{ y = own.noisy(x) }\n"
             "<domain: \"own\", opset_import: [\"\" : 17]>\n"
             "noisy (v) => (r)\n{ ratio = Constant<value = float {0.5}>()\n"
             "  on = Constant<value = bool {1}>()\n  r = Dropout(v, ratio, on) }\n"
             "training { algorithm: step () => (float loss, float n)\n"
             "{ loss = ReduceSum<keepdims = 0>(y)\n  n = Neg(a) },\n"
             "update_binding: [\"a\": \"n\"] }\n";
    struct cm_trainer *trainer = train_of(arena, text);
    float x[64];
    const struct cm_tensor fed = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(64), x);
    const struct cm_tensor *in[] = {&fed};
    struct cm_trainer_scalar scalar;
    struct cm_trainer_measure measure;
    struct cm_error err = {0};

    for (size_t i = 0; i < CM_COUNT(x); i++)
        x[i] = (float)(i + 1);
    CHECK_OK(cm_trainer_step(trainer, in, &scalar, &err), &err);
    CHECK(scalar.value != 2080);
    CHECK_OK(cm_trainer_prepare_evaluation(trainer, &err), &err);
    CHECK_OK(cm_trainer_evaluate(trainer, in, &measure, &err), &err);
    CHECK(measure.loss == 2080);
}

void test_training_graph__evaluation_reaches_into_functions(void)
{
    check_in_arena(in_function);
}
