/* Training steps and gradients as plain models: they compute what the trainer computes; and the
 * judge of gradients judges. */
// SPDX-License-Identifier: Apache-2.0
#include "train_case.h"

#include "exec/session.h"
#include "graph/eval.h"
#include "graph/import.h"
#include "train/gradcheck.h"
#include "train/prepare/prepare.h"
#include "train/step.h"
#include "versions/upgrade.h"

#include <math.h>

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.preview.training\" : 1]>\n"

enum { ROOM = 32 };

/* A model run on floats: values has one number per input, results one per output. */
struct plain {
    struct cm_model_file *file;
    struct cm_graph *graph;
    double in[ROOM], out[ROOM];
};

static void import_plain(struct cm_arena *arena, struct plain *plain)
{
    const struct cm_import_options options = {.upgrade = cm_upgrade_node};
    struct cm_error err = {0};

    CHECK_OK(cm_module_import(cm_module_new(arena, &(struct cm_module_options){0}),
                              &plain->file->model, &options, &plain->graph, &err),
             &err);
    CHECK(plain->graph->n_inputs <= ROOM && plain->graph->n_outputs <= ROOM);
}

static struct cm_str input_name(const struct plain *plain, size_t i)
{
    return plain->file->model.graph->input.items[i].name;
}

static double *input(struct plain *plain, const char *name)
{
    for (size_t i = 0; i < plain->graph->n_inputs; i++)
        if (cm_str_is(input_name(plain, i), name))
            return &plain->in[i];
    fail_msg("there is no input %s", name);
    return NULL;
}

static double output(const struct plain *plain, const char *name)
{
    const struct cm_graph_proto *graph = plain->file->model.graph;
    for (size_t i = 0; i < graph->output.count; i++)
        if (cm_str_is(graph->output.items[i].name, name))
            return plain->out[i];
    fail_msg("there is no output %s", name);
    return NAN;
}

/* Every input is one number, repeated over its shape; every output is read at its first element. */
static void run_plain(struct cm_arena *arena, struct plain *plain)
{
    struct cm_datum in[ROOM] = {0}, out[ROOM] = {0};
    const struct cm_datum *given[ROOM];
    struct cm_error err = {0};

    for (size_t i = 0; i < plain->graph->n_inputs; i++) {
        const struct cm_type *type =
            cm_value_get(plain->graph->module, plain->graph->inputs[i])->fact.type;
        struct cm_shape shape = {.rank = type->rank};
        for (int d = 0; d < type->rank; d++)
            shape.dims[d] = cm_dim_known(type->dims[d]) ? type->dims[d].value : 1;
        in[i].kind = CM_KIND_TENSOR;
        CHECK_OK(cm_tensor_new(type->dtype, &shape, &in[i].tensor, &err), &err);
        for (int64_t e = 0; e < cm_tensor_count(&in[i].tensor); e++) {
            if (type->dtype == CM_INT64)
                ((int64_t *)in[i].tensor.data)[e] = (int64_t)plain->in[i];
            else if (type->dtype == CM_BOOL)
                ((uint8_t *)in[i].tensor.data)[e] = plain->in[i] != 0;
            else
                ((float *)in[i].tensor.data)[e] = (float)plain->in[i];
        }
        given[i] = &in[i];
    }
    (void)arena;
    CHECK_OK(cm_graph_eval(plain->graph, given, plain->graph->n_inputs, out, NULL, &err), &err);
    for (size_t o = 0; o < plain->graph->n_outputs; o++) {
        plain->out[o] = cm_tensor_real(&out[o].tensor, 0);
        cm_datum_drop(&out[o]);
    }
    for (size_t i = 0; i < plain->graph->n_inputs; i++)
        cm_datum_drop(&in[i]);
}

static void no_foreign(const struct cm_graph *graph)
{
    for (const struct cm_node *node = graph->first; node; node = node->next)
        CHECK(!node->domain.size);
}

/* ---- steps ---- */

/* The second entry reads what the first wrote, and the inference graph over it. */
static void entries(struct cm_arena *arena)
{
    struct cm_error err = {0};
    struct plain step = {0};
    const struct cm_step_options options = {.portable = true};
    struct cm_model_file *file = train_model(
        arena, HEAD "g (float[1] x) => (float[1] y) <float[1] a = {1}, float[1] b = {10}>\n"
                    "{ y = Mul(x, a) }\n"
                    "training { algorithm: first () => (float[1] a_new, float sum_a)\n"
                    "{ a_new = Add(a, a)\n sum_a = ReduceSum<keepdims = 0>(a_new) },\n"
                    "update_binding: [\"a\": \"a_new\"] }\n"
                    "training { algorithm: second () => (float[1] b_new, float loss)\n"
                    "{ b_new = Add(b, y)\n loss = ReduceSum<keepdims = 0>(b_new) },\n"
                    "update_binding: [\"b\": \"b_new\"] }\n");

    CHECK_OK(cm_step_model(arena, file, &options, &step.file, &err), &err);
    import_plain(arena, &step);
    CHECK_INT(step.graph->n_inputs, 3);
    *input(&step, "a") = 1;
    *input(&step, "b") = 10;
    *input(&step, "x") = 3;
    run_plain(arena, &step);
    CHECK(output(&step, "a.next") == 2);
    CHECK(output(&step, "b.next") == 16);
    CHECK(output(&step, "sum_a") == 2);
    CHECK(output(&step, "loss") == 16);
}

void test_step__entries_follow_each_other(void)
{
    check_in_arena(entries);
}

static void swap(struct cm_arena *arena)
{
    struct cm_error err = {0};
    struct plain step = {0};
    const struct cm_step_options options = {.portable = false};
    struct cm_model_file *file = train_model(
        arena, HEAD "g (float[1] x) => (float[1] y) <float[1] a = {1}, float[1] b = {2}>\n"
                    "{ y = Add(x, a) }\n"
                    "training { algorithm: step () => (float[1] p, float[1] q)\n"
                    "{ p = Identity(b)\n q = Identity(a) },\n"
                    "update_binding: [\"a\": \"p\", \"b\": \"q\"] }\n");

    CHECK_OK(cm_step_model(arena, file, &options, &step.file, &err), &err);
    import_plain(arena, &step);
    *input(&step, "a") = 1;
    *input(&step, "b") = 2;
    run_plain(arena, &step);
    CHECK(output(&step, "a.next") == 2);
    CHECK(output(&step, "b.next") == 1);
}

void test_step__variables_may_swap(void)
{
    check_in_arena(swap);
}

/* a.next is on the way, and a value that is fed is called b.next. */
static void names(struct cm_arena *arena)
{
    struct cm_error err = {0};
    struct plain step = {0};
    const struct cm_step_options options = {.portable = false};
    struct cm_model_file *file = train_model(
        arena, HEAD
        "g (float[1] x) => (float[1] y) <float[1] a = {1}, float[1] b = {2}>\n"
        "{ y = Add(x, a) }\n"
        "training { algorithm: step (float[1] \"b.next\") => (float[1] p, float[1] q)\n"
        "{ \"a.next\" = Add(b, \"b.next\")\n p = Mul(\"a.next\", b)\n q = Add(a, \"b.next\") },\n"
        "update_binding: [\"a\": \"p\", \"b\": \"q\"] }\n");

    CHECK_OK(cm_step_model(arena, file, &options, &step.file, &err), &err);
    import_plain(arena, &step);
    *input(&step, "a") = 1;
    *input(&step, "b") = 2;
    *input(&step, "b.next") = 3;
    run_plain(arena, &step);
    CHECK(output(&step, "a.next") == 10);
    CHECK(step.out[1] == 4);
}

void test_step__a_value_on_the_way_leaves_its_name_to_the_variable(void)
{
    check_in_arena(names);
}

/* Kept, dropped: y is x w / (1 - ratio) or 0. */
static void mask(struct cm_arena *arena)
{
    struct cm_error err = {0};
    struct cm_prepare_report report;
    struct cm_prepare_options prepare = CM_PREPARE_OPTIONS;
    const struct cm_step_options options = {.portable = true};
    struct plain step = {0};
    struct cm_model_file *file = train_model(arena, "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                                    "d (float[n] x) => (float[n] y)\n"
                                                    "<float[1] w = {1}, float ratio = {0.75}>\n"
                                                    "{ h = Mul (x, w) y = Dropout (h, ratio) }");

    prepare.loss = "mse";
    prepare.optimizer = "sgd";
    prepare.lr = 0.125;
    CHECK_OK(cm_prepare(arena, file, &prepare, &report, &err), &err);
    CHECK_OK(cm_step_model(arena, file, &options, &step.file, &err), &err);
    import_plain(arena, &step);
    no_foreign(step.graph);
    *input(&step, "w") = 1;
    *input(&step, "x") = 1;
    run_plain(arena, &step);
    CHECK(output(&step, "loss") == 0 && output(&step, "w.next") == 1);
    *input(&step, "mask_1") = 1;
    run_plain(arena, &step);
    CHECK(output(&step, "loss") == 16);      /* 4 squared */
    CHECK(output(&step, "w.next") == 1 - 4); /* 0.125 * 2 * 4 * 4 */
    CHECK(output(&step, "training.step.next") == 1);
}

void test_step__masks_are_fed(void)
{
    check_in_arena(mask);
}

static void untrained(struct cm_arena *arena)
{
    struct cm_error err = {0};
    const struct cm_step_options options = {.portable = true};
    struct cm_model_file *out,
        *file = train_model(arena, "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                   "d (float[n] x) => (float[n] y) { y = Neg (x) }");

    CHECK_FAILS(cm_step_model(arena, file, &options, &out, &err), CM_BAD_ARGUMENT, &err,
                "carries no training");
}

void test_step__needs_a_model_that_carries_its_training(void)
{
    check_in_arena(untrained);
}

/* ---- gradients ---- */

static const char product[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                              "p (float[n] x) => (float[n] y)\n"
                              "<float[1] w = {3}, float[1] v = {5}>\n"
                              "{ h = Mul (x, w) q = Mul (h, h) y = Relu (q) }";

static void gradients(struct cm_arena *arena)
{
    struct cm_error err = {0};
    const struct cm_step_options options = {.portable = true};
    const struct cm_str wrt[] = {CM_STR("x"), CM_STR("w"), CM_STR("h"), CM_STR("v")};
    struct plain made = {0};
    struct cm_model_file *file = train_model(arena, product);

    CHECK_OK(cm_grad_model(arena, file, CM_STR("y"), wrt, 2, &options, &made.file, &err), &err);
    import_plain(arena, &made);
    no_foreign(made.graph);
    *input(&made, "x") = 2;
    *input(&made, "w") = 3;
    run_plain(arena, &made);
    CHECK(output(&made, "y") == 36);
    CHECK(output(&made, "gradient.x") == 36); /* 2 x w w */
    CHECK(output(&made, "gradient.w") == 24);
    CHECK_OK(cm_grad_model(arena, file, CM_STR("q"), wrt + 2, 2, &options, &made.file, &err), &err);
    import_plain(arena, &made);
    *input(&made, "x") = 2;
    run_plain(arena, &made);
    CHECK(output(&made, "gradient.h") == 12);
    CHECK(output(&made, "gradient.v") == 0); /* no path: zeros */
    CHECK_FAILS(cm_grad_model(arena, file, CM_STR("no"), wrt, 2, &options, &made.file, &err),
                CM_BAD_ARGUMENT, &err, "no value 'no'");
}

void test_step__gradients_by_inputs_weights_and_what_is_between(void)
{
    check_in_arena(gradients);
}

/* ---- judging ---- */

static void judged(struct cm_arena *arena)
{
    struct cm_error err = {0};
    const struct cm_gradcheck_options options = {.seed = 3};
    struct cm_gradcheck_row *rows;
    size_t count;

    CHECK_OK(cm_gradcheck(arena, train_model(arena, product), &options, &rows, &count, &err), &err);
    CHECK_INT(count, 3);
    for (size_t i = 0; i < count; i++) {
        CHECK(rows[i].worst < 1e-7);
        CHECK_INT(rows[i].reached, !cm_str_is(rows[i].name, "v"));
        CHECK(rows[i].reached == (rows[i].numeric != 0));
    }
    /* The gradient of Floor is none, but steps as narrow as these look like a slope from both
     * sides: the judge must see it. */
    float x = 2;
    const struct cm_tensor at = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(1), &x);
    const struct cm_gradcheck_feed feed = {CM_STR("x"), &at};
    const struct cm_gradcheck_options fed = {.feeds = &feed, .n_feeds = 1};
    CHECK_OK(cm_gradcheck(arena,
                          train_model(arena, "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                             "f (float[1] x) => (float[1] y) <float k = {1e9}>\n"
                                             "{ s = Mul (x, k) y = Floor (s) }"),
                          &fed, &rows, &count, &err),
             &err);
    CHECK(cm_str_is(rows[0].name, "x"));
    CHECK(rows[0].worst > 0.9 && rows[0].kinks == 0);
    CHECK(rows[0].below != 0 && rows[0].above != 0);
    CHECK_FAILS(
        cm_gradcheck(arena,
                     train_model(arena,
                                 "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                 "f (float[1] x) => (float[1] y) { r = RandomUniformLike (x)\n"
                                 " y = Mul (x, r) }"),
                     &fed, &rows, &count, &err),
        CM_UNSUPPORTED, &err, "is random");
}

void test_step__gradients_are_judged_by_differences(void)
{
    check_in_arena(judged);
}
