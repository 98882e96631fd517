/* Data sets and the inputs of a trainer: who feeds whom, batches that are fixed, what does not fit.
 */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/model_case.h"
#include "train/feeder.h"
#include "train_case.h"

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17]>\n"

/* A model that reads x and t, which are of these types. */
static struct cm_trainer *reader(struct cm_arena *arena, const char *x, const char *t)
{
    return train_of(arena,
                    cm_arena_printf(arena,
                                    HEAD "g (%s x) => (float y) <float w = {0}>\n"
                                         "{ y = ReduceSum<keepdims = 0>(x) }\n"
                                         "training { algorithm: step (%s t) => (float n)\n"
                                         "{ c = Cast<to = 1>(t)\n s = ReduceSum<keepdims = 0>(c)\n"
                                         " n = Add(y, s) }, update_binding: [\"w\": \"n\"] }\n",
                                    x, t)
                        .data);
}

static void close_dataset(void *what)
{
    cm_dataset_close(what);
}

static struct cm_dataset *csv(struct cm_arena *arena, const char *columns)
{
    const char *path = case_path(arena, case_folder(arena), "data.csv");
    const struct cm_dataset_options options = {.columns = columns};
    static const char text[] = "a,b,c\n1,2,10\n3,4,11\n5,6,12\n7,8,13\n9,10,14\n";
    struct cm_dataset *dataset = NULL;
    struct cm_error err = {0};

    case_write(path, text, sizeof text - 1);
    CHECK_OK(cm_dataset_open(&path, 1, &options, &dataset, &err), &err);
    cm_arena_defer(arena, close_dataset, dataset);
    return dataset;
}

static void shapes(struct cm_arena *arena)
{
    struct cm_trainer *trainer = reader(arena, "float[N,1,2]", "int64[N]");
    const struct cm_feeder_options options = {.feed = {.batch_size = 2}};
    struct cm_dataset *dataset = csv(arena, "x=a,b label=c");
    const struct cm_tensor *const *in = NULL;
    struct cm_feeder *feeder = NULL;
    struct cm_error err = {0};
    int64_t rows;

    CHECK_OK(cm_feeder_new(trainer, dataset, &options, &feeder, &err), &err);
    CHECK_OK(cm_feeder_next(feeder, &in, &rows, &err), &err);
    CHECK_INT(rows, 2);
    CHECK(cm_shape_equal(&in[0]->shape, &CM_SHAPE(2, 1, 2)));
    CHECK(in[0]->type == CM_FLOAT && cm_tensor_real(in[0], 3) == 4);
    CHECK(cm_shape_equal(&in[1]->shape, &CM_SHAPE(2)));
    CHECK(in[1]->type == CM_INT64 && cm_tensor_int(in[1], 1) == 11);
    CHECK_OK(cm_trainer_step(trainer, in, NULL, &err), &err);
    CHECK(train_value(trainer, "w", 0) == 1 + 2 + 3 + 4 + 10 + 11);
    cm_feeder_free(feeder);
}

void test_feeder__samples_take_the_type_and_shape_that_an_input_wants(void)
{
    check_in_arena(shapes);
}

static void fixed(struct cm_arena *arena)
{
    struct cm_trainer *trainer = reader(arena, "float[2,2]", "float[2]");
    struct cm_feeder_options options = {.feed = {.batch_size = 0}};
    struct cm_dataset *dataset = csv(arena, "x=a,b t=c");
    struct cm_feeder *feeder = NULL;
    struct cm_error err = {0};

    CHECK_FAILS(cm_feeder_new(trainer, dataset, &options, &feeder, &err), CM_BAD_ARGUMENT, &err,
                "takes batches of 2 rows, and 5 samples leave a shorter one");
    options.feed.last = CM_LAST_DROP;
    CHECK_OK(cm_feeder_new(trainer, dataset, &options, &feeder, &err), &err);
    CHECK_INT(cm_feeder_facts(feeder)->feed.batch_size, 2);
    CHECK_INT(cm_feeder_facts(feeder)->batches, 2);
    cm_feeder_free(feeder);
    options.feed.batch_size = 3;
    CHECK_FAILS(cm_feeder_new(trainer, dataset, &options, &feeder, &err), CM_BAD_ARGUMENT, &err,
                "takes batches of 2 rows, not of 3");
}

void test_feeder__a_batch_that_the_model_fixes_is_the_batch(void)
{
    check_in_arena(fixed);
}

static void wrong(struct cm_arena *arena)
{
    struct cm_trainer *trainer = reader(arena, "float[N,3]", "float");
    const struct cm_feeder_options options = {.feed = {.batch_size = 2}};
    struct cm_dataset *dataset = csv(arena, "x=a,b t=c");
    struct cm_feeder *feeder = NULL;
    struct cm_error err = {0};

    CHECK_FAILS(cm_feeder_new(trainer, dataset, &options, &feeder, &err), CM_BAD_ARGUMENT, &err,
                "for 2 reasons");
    CHECK(strstr(err.text, "samples of 'x' are 2, but input 'x' takes 3"));
    CHECK(strstr(err.text, "input 't' is a scalar"));
}

void test_feeder__everything_that_does_not_fit_is_named_at_once(void)
{
    check_in_arena(wrong);
}
