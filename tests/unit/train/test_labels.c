/* Labels that no class has, found when the data meets the trainer. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/model_case.h"
#include "train/feeder.h"
#include "train_case.h"

#include <math.h>

/* Scores for some classes, labels of some type, and how the loss is made from them. */
static struct cm_trainer *classifier(struct cm_arena *arena, const char *classes, const char *label,
                                     const char *loss)
{
    return train_of(arena, cm_arena_printf(arena,
                                           "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                           "g (float[N,%s] x) => (float[N,%s] y) <float w = {1}>\n"
                                           "{ y = Mul(x, w) }\n"
                                           "training { algorithm: step (%s label) => (float loss)\n"
                                           "{ %s }, update_binding: [\"w\": \"loss\"] }\n",
                                           classes, classes, label, loss)
                               .data);
}

static void close_dataset(void *what)
{
    cm_dataset_close(what);
}

static struct cm_dataset *csv(struct cm_arena *arena, const char *text)
{
    const char *path = case_path(arena, case_folder(arena), "data.csv");
    const struct cm_dataset_options options = {.columns = "x=a,b,c label=label"};
    struct cm_dataset *dataset = NULL;
    struct cm_error err = {0};

    case_write(path, text, strlen(text));
    CHECK_OK(cm_dataset_open(&path, 1, &options, &dataset, &err), &err);
    cm_arena_defer(arena, close_dataset, dataset);
    return dataset;
}

static enum cm_status meet(const struct cm_trainer *trainer, struct cm_dataset *dataset,
                           struct cm_error *err)
{
    const struct cm_feeder_options options = {.feed = {.batch_size = 2}};
    struct cm_feeder *feeder = NULL;
    const enum cm_status status = cm_feeder_new(trainer, dataset, &options, &feeder, err);

    if (status == CM_OK)
        cm_feeder_free(feeder);
    return status;
}

static const char plain[] = "loss = SoftmaxCrossEntropyLoss(y, label)";
static const char good[] = "a,b,c,label\n1,2,3,0\n1,2,3,2\n1,2,3,1\n";
static const char far[] = "a,b,c,label\n1,2,3,0\n1,2,3,2\n1,2,3,3\n1,2,3,-1\n";

static void outside(struct cm_arena *arena)
{
    struct cm_trainer *trainer = classifier(arena, "3", "int64[N]", plain);
    struct cm_error err = {0};

    CHECK_OK(meet(trainer, csv(arena, good), &err), &err);
    CHECK_FAILS(meet(trainer, csv(arena, far), &err), CM_BAD_ARGUMENT, &err,
                "row 2 of 'label' (counted from 0) has the label 3, but classes are 0 to 2; "
                "2 labels are outside in all");
}

void test_labels__one_that_no_class_has_is_named_before_the_first_step(void)
{
    check_in_arena(outside);
}

static void ignored(struct cm_arena *arena)
{
    struct cm_trainer *trainer = classifier(
        arena, "3", "int64[N]",
        "p = LogSoftmax(y) loss = NegativeLogLikelihoodLoss<ignore_index = -1>(p, label)");
    struct cm_error err = {0};

    CHECK_OK(meet(trainer, csv(arena, "a,b,c,label\n1,2,3,0\n1,2,3,-1\n"), &err), &err);
    CHECK_FAILS(meet(trainer, csv(arena, far), &err), CM_BAD_ARGUMENT, &err,
                "row 2 of 'label' (counted from 0) has the label 3, but classes are 0 to 2, and -1 "
                "for none");
    CHECK(!strstr(err.text, "in all"));
}

void test_labels__the_one_that_is_ignored_is_allowed(void)
{
    check_in_arena(ignored);
}

static void followed(struct cm_arena *arena)
{
    static const char *const losses[] = {
        "l = Cast<to = 7>(label) f = Constant<value_ints = [-1]>() k = Reshape(l, f) "
        "loss = SoftmaxCrossEntropyLoss(y, k)",
        "k = Cast<to = 7>(label) loss = SoftmaxCrossEntropyLoss(y, k)"};
    static const char *const types[] = {"uint8[N,1]", "int32[N]"};
    struct cm_error err = {0};

    for (size_t i = 0; i < 2; i++) {
        struct cm_trainer *trainer = classifier(arena, "3", types[i], losses[i]);

        CHECK_OK(meet(trainer, csv(arena, good), &err), &err);
        CHECK_FAILS(meet(trainer, csv(arena, "a,b,c,label\n1,2,3,0\n1,2,3,3\n"), &err),
                    CM_BAD_ARGUMENT, &err, "row 1 of 'label' (counted from 0) has the label 3");
    }
}

void test_labels__they_are_followed_through_casts_and_reshapes(void)
{
    check_in_arena(followed);
}

static void inside(struct cm_arena *arena)
{
    static const char *const losses[] = {
        "c = Constant<value = bool {1}>() loss = If(c)<\n"
        "then_branch = t () => (float p) { p = SoftmaxCrossEntropyLoss(y, label) },\n"
        "else_branch = e () => (float q) { q = ReduceMean<keepdims = 0>(y) }>",
        /* a row at a time: scores (3), a label () */
        "costs = Scan<num_scan_inputs = 2, body = b (float[3] s, int64 k) => (float c) {\n"
        "axis = Constant<value_ints = [0]>() s2 = Unsqueeze(s, axis) k2 = Unsqueeze(k, axis)\n"
        "c = SoftmaxCrossEntropyLoss(s2, k2) }>(y, label)\n"
        "loss = ReduceMean<keepdims = 0>(costs)"};
    struct cm_error err = {0};

    for (size_t i = 0; i < CM_COUNT(losses); i++) {
        struct cm_trainer *trainer = classifier(arena, "3", "int64[N]", losses[i]);

        CHECK_OK(meet(trainer, csv(arena, good), &err), &err);
        CHECK_FAILS(meet(trainer, csv(arena, far), &err), CM_BAD_ARGUMENT, &err,
                    "row 2 of 'label' (counted from 0) has the label 3");
    }
}

void test_labels__they_are_followed_into_bodies(void)
{
    check_in_arena(inside);
}

static const char function_loss[] =
    "<ir_version: 9, opset_import: [\"\" : 18, \"my\" : 1]>\n"
    "g (float[N,3] x) => (float[N,3] y) <float w = {1}>\n"
    "{ y = Mul(x, w) }\n"
    "<domain: \"my\", opset_import: [\"\" : 18, \"my\" : 1]>\n"
    "outer (labels, unused, scores) => (loss) { loss = my.inner(scores, labels) }\n"
    "<domain: \"my\", opset_import: [\"\" : 18]>\n"
    "inner (scores, labels) => (loss)\n"
    "{ same = Identity(labels) loss = SoftmaxCrossEntropyLoss(scores, same) }\n"
    "training { algorithm: step (int64[N] label) => (float loss)\n"
    "{ loss = my.outer(label, , y) }, update_binding: [\"w\": \"loss\"] }\n";

static void called(struct cm_arena *arena)
{
    struct cm_trainer *trainer = train_of(arena, function_loss);
    struct cm_error err = {0};

    CHECK_OK(meet(trainer, csv(arena, good), &err), &err);
    CHECK_FAILS(meet(trainer, csv(arena, far), &err), CM_BAD_ARGUMENT, &err,
                "row 2 of 'label' (counted from 0) has the label 3");
}

void test_labels__they_are_followed_into_functions(void)
{
    check_in_arena(called);
}

static void unknown(struct cm_arena *arena)
{
    struct cm_error err = {0};

    /* How many classes there are is seen when it runs; a number computed from labels is none. */
    CHECK_OK(meet(classifier(arena, "C", "int64[N]", plain), csv(arena, far), &err), &err);
    CHECK_OK(meet(classifier(arena, "3", "int64[N]",
                             "one = Constant<value_int = 1>() k = Add(label, one) "
                             "loss = SoftmaxCrossEntropyLoss(y, k)"),
                  csv(arena, far), &err),
             &err);
}

void test_labels__what_cannot_be_known_is_left_to_the_step(void)
{
    check_in_arena(unknown);
}

static void together(struct cm_arena *arena)
{
    struct cm_trainer *trainer = classifier(arena, "4", "int64[N]", plain);
    struct cm_error err = {0};

    CHECK_FAILS(meet(trainer, csv(arena, "a,b,c,label\n1,2,3,4\n"), &err), CM_BAD_ARGUMENT, &err,
                "for 2 reasons");
    CHECK(strstr(err.text, "samples of 'x' are 3, but input 'x' takes 4"));
    CHECK(strstr(err.text, "row 0 of 'label' (counted from 0) has the label 4"));
    CHECK_FAILS(meet(trainer, csv(arena, "a,b,c,label\n1,2,3,1.5\n"), &err), CM_BAD_ARGUMENT, &err,
                "1.5");
}

void test_labels__they_are_told_with_all_else_that_does_not_fit(void)
{
    check_in_arena(together);
}

/* Two rows of three positions, classes last; of the six labels two count. */
static void not_counted(struct cm_arena *arena)
{
    static const float scores[2][3][2] = {{{2, 0}, {1, 0}, {0, 0}}, {{0, 0}, {0, 3}, {5, 0}}};
    static const int64_t labels[2][3] = {{0, -100, -100}, {-100, 0, -100}};
    const struct cm_shape shape = CM_SHAPE(2, 3, 2), rows = CM_SHAPE(2, 3);
    const struct cm_tensor feeds[2] = {cm_tensor_borrow(CM_FLOAT, &shape, (void *)scores),
                                       cm_tensor_borrow(CM_INT64, &rows, (void *)labels)};
    struct cm_prepare_options options = train_with("cross-entropy", "sgd", 1);
    struct cm_model_file *file =
        train_model(arena, "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                           "m (float[N,3,2] x) => (float[N,3,2] y) <float[2] w = {0, 0}>\n"
                           "{ y = Add (x, w) }");
    struct cm_prepare_report report;
    struct cm_trainer_scalar scalars[4];
    struct cm_error err = {0};
    const struct cm_tensor *in[2];

    options.class_axis = -1;
    CHECK_OK(cm_prepare(arena, file, &options, &report, &err), &err);
    struct cm_trainer *trainer = train_open(arena, file);
    for (size_t i = 0; i < 2; i++)
        in[i] = &feeds[cm_str_is(cm_trainer_input(trainer, i)->name, "target")];
    CHECK_OK(cm_trainer_step(trainer, in, scalars, &err), &err);
    CHECK_STR(scalars[0].name, "loss");
    CHECK(fabs(scalars[0].value - (log1p(exp(-2)) + log1p(exp(3))) / 2) < 1e-6);
    CHECK_STR(scalars[1].name, "accuracy");
    CHECK(scalars[1].value == 0.5);
    const double slope = (1 / (1 + exp(-2)) - 1 + 1 / (1 + exp(3)) - 1) / 2;
    CHECK(fabs(train_value(trainer, "w", 0) + slope) < 1e-6);
}

void test_labels__of_minus_100_do_not_count_in_prepared_losses(void)
{
    check_in_arena(not_counted);
}
