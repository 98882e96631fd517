/* Metrics of predictions: worked out by hand, and bounds that hold. */
// SPDX-License-Identifier: Apache-2.0
#include "evaluate/metrics.h"
#include "train/train_case.h"

#include <math.h>

static const struct cm_metrics_options usual = {.class_axis = 1, .ignored = -100};

static struct cm_tensor floats(struct cm_shape shape, float *data)
{
    return cm_tensor_borrow(CM_FLOAT, &shape, data);
}

static struct cm_tensor ints(struct cm_shape shape, int64_t *data)
{
    return cm_tensor_borrow(CM_INT64, &shape, data);
}

static double value_of(const struct cm_metrics_result *result, const char *name)
{
    for (size_t i = 0; i < result->count; i++)
        if (strcmp(result->items[i].name, name) == 0)
            return result->items[i].value;
    fail_msg("there is no metric '%s'", name);
    return 0;
}

static void near(double a, double b)
{
    if (!(fabs(a - b) < 1e-12))
        fail_msg("%.17g is not %.17g", a, b);
}

static void close_metrics(void *what)
{
    cm_metrics_free(what);
}

static struct cm_metrics *metrics(struct cm_arena *arena, const struct cm_metrics_options *options)
{
    struct cm_metrics *made = NULL;
    struct cm_error err = {0};

    CHECK_OK(cm_metrics_new(options, &made, &err), &err);
    cm_arena_defer(arena, close_metrics, made);
    return made;
}

/* Pixels: (1, 2, 3) scores over two classes of three positions, in an axis that is not the last. */
static void positions(struct cm_arena *arena)
{
    struct cm_metrics_options options = usual;
    struct cm_metrics_result result;
    struct cm_error err = {0};

    options.names = "accuracy,confusion";
    struct cm_metrics *m = metrics(arena, &options);
    const struct cm_tensor scores =
        floats(CM_SHAPE(1, 2, 3), (float[]){.9f, .2f, .1f, .1f, .8f, .9f});
    const struct cm_tensor labels = ints(CM_SHAPE(1, 3), (int64_t[]){0, 0, 1});

    CHECK_OK(cm_metrics_add(m, NULL, &scores, &labels, 1, &err), &err);
    CHECK_OK(cm_metrics_result(m, arena, &result, &err), &err);
    near(value_of(&result, "accuracy"), 2.0 / 3);
    CHECK_INT(result.n_classes, 2);
    CHECK_INT(result.confusion[1], 1); /* 0 taken for 1 */
    CHECK_INT(result.confusion[2], 0);
}

void test_metrics__classes_may_be_on_any_axis(void)
{
    check_in_arena(positions);
}

/* Labels alone, which come one by one and not in order. */
static void labels_alone(struct cm_arena *arena)
{
    struct cm_metrics_options options = usual;
    struct cm_metrics_result result;
    struct cm_error err = {0};

    options.names = "accuracy,f1-macro,confusion";
    struct cm_metrics *m = metrics(arena, &options);
    for (int64_t i = 0; i < 100; i++) {
        const struct cm_tensor chosen = ints(CM_SHAPE(1), (int64_t[]){50 - i});
        const struct cm_tensor truth = ints(CM_SHAPE(1), (int64_t[]){i % 2 ? 50 - i : 1000});

        CHECK_OK(cm_metrics_add(m, &chosen, NULL, &truth, 1, &err), &err);
    }
    CHECK_OK(cm_metrics_result(m, arena, &result, &err), &err);
    near(value_of(&result, "accuracy"), 0.5);
    near(value_of(&result, "f1"), 50.0 / 101);
    CHECK_INT(result.n_classes, 101);
    CHECK_INT(result.classes[0].label, -49);
    CHECK_INT(result.classes[100].actual, 50);
    uint64_t taken = 0;
    for (size_t k = 0; k < 101; k++)
        taken += result.confusion[100 * 101 + k];
    CHECK_INT(taken, 50);
}

void test_metrics__labels_need_not_be_known_before(void)
{
    check_in_arena(labels_alone);
}

static void shapes_change(struct cm_arena *arena)
{
    struct cm_metrics *m = metrics(arena, &usual);
    const struct cm_tensor one = floats(CM_SHAPE(2, 1), (float[]){1, 2});
    const struct cm_tensor two = floats(CM_SHAPE(2, 2), (float[]){1, 2, 3, 4});
    struct cm_error err = {0};

    CHECK_OK(cm_metrics_add(m, NULL, &one, &one, 2, &err), &err);
    CHECK_FAILS(cm_metrics_add(m, NULL, &two, &two, 2, &err), CM_BAD_ARGUMENT, &err, "changes");
    CHECK_FAILS(cm_metrics_add(m, NULL, &two, &one, 2, &err), CM_BAD_ARGUMENT, &err, "changes");
}

void test_metrics__predictions_keep_their_shape(void)
{
    check_in_arena(shapes_change);
}

/* Multi-output regressions: each column by itself, as in scikit-learn. */
static void columns(struct cm_arena *arena)
{
    struct cm_metrics_options options = usual;
    struct cm_metrics_result result;
    struct cm_error err = {0};

    options.names = "mae,mse,rmse,r2";
    struct cm_metrics *m = metrics(arena, &options);
    const struct cm_tensor predicted = floats(CM_SHAPE(3, 2), (float[]){0, 2, -1, 2, 8, -5});
    const struct cm_tensor truth = floats(CM_SHAPE(3, 2), (float[]){.5f, 1, -1, 1, 7, -6});

    CHECK_OK(cm_metrics_add(m, NULL, &predicted, &truth, 2, &err), &err);
    const struct cm_tensor last_predicted = floats(CM_SHAPE(1, 2), (float[]){8, -5});
    const struct cm_tensor last_truth = floats(CM_SHAPE(1, 2), (float[]){7, -6});
    CHECK_OK(cm_metrics_add(m, NULL, &last_predicted, &last_truth, 1, &err), &err);
    CHECK_OK(cm_metrics_result(m, arena, &result, &err), &err);
    near(value_of(&result, "mae"), 0.75);
    near(value_of(&result, "mse"), 17.0 / 24);
    near(value_of(&result, "rmse"), (sqrt(1.25 / 3) + 1) / 2);
    near(value_of(&result, "r2"), 0.5 * ((1 - 1.25 / (217.0 / 6)) + (1 - 3 / (98.0 / 3))));
}

void test_metrics__columns_of_a_regression_count_alike(void)
{
    check_in_arena(columns);
}

/* ---- ranking ---- */

static double score_of(int i, bool *positive)
{
    const double score = fmod(i * 0.6180339887498949, 1.0);

    *positive = fmod(i * 0.7548776662466927, 1.0) < score * score;
    return score;
}

/* All pairs, one by one. */
static double area_by_pairs(int count)
{
    double higher = 0, pairs = 0;

    for (int i = 0; i < count; i++)
        for (int k = 0; k < count; k++) {
            bool a, b;
            const double x = score_of(i, &a), y = score_of(k, &b);

            if (!a || b)
                continue;
            pairs++;
            higher += x > y ? 1 : x == y ? 0.5 : 0;
        }
    return higher / pairs;
}

static double area_of(int count, size_t most, double *bound)
{
    struct cm_ranking ranking = {0};
    struct cm_error err = {0};

    for (int i = 0; i < count; i++) {
        bool positive;
        const double score = score_of(i, &positive);

        CHECK_OK(cm_ranking_add(&ranking, score, positive, most, &err), &err);
    }
    const double area = cm_ranking_area(&ranking, bound, NULL);
    CHECK(ranking.capacity <= most);
    cm_ranking_release(&ranking);
    return area;
}

void test_metrics__few_scores_are_ranked_exactly(void)
{
    double bound;

    near(area_of(700, 1000, &bound), area_by_pairs(700));
    near(bound, 0);
}

void test_metrics__many_scores_are_ranked_within_the_bound(void)
{
    const double exact = area_by_pairs(3000);
    double bound;
    const double area = area_of(3000, 256, &bound);

    CHECK(bound > 0 && bound < 0.01);
    CHECK(fabs(area - exact) <= bound);
}

void test_metrics__equal_scores_need_no_room(void)
{
    struct cm_ranking ranking = {0};
    struct cm_error err = {0};
    double bound;

    for (int i = 0; i < 10000; i++)
        CHECK_OK(cm_ranking_add(&ranking, i % 3, i % 3 == 2, 64, &err), &err);
    near(cm_ranking_area(&ranking, &bound, NULL), 1);
    near(bound, 0);
    cm_ranking_release(&ranking);
}
