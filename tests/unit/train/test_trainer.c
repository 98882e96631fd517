/* Training info executed: what PyTorch computed, simultaneous assignment, several entries,
 * initialization, failures that change nothing, saving that changes values only. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/model_case.h"
#include "onnx/tensor_data.h"
#include "train_case.h"

#include <math.h>

/* ---- cases computed elsewhere ---- */

enum { NUMBERS_MAX = 200, INPUTS_MAX = 4, SCALARS_MAX = 8 };

static struct cm_model_file *open_model(struct cm_arena *arena, const char *name)
{
    struct cm_model_file *file = NULL;
    struct cm_error err = {0};
    const struct cm_str path =
        cm_arena_printf(arena, "%s/models/training_%s.onnx", TESTS_DIR, name);

    CHECK_OK(cm_model_open(arena, path.data, NULL, &file, &err), &err);
    return file;
}

static void check_close(const char *what, size_t i, double actual, double expected)
{
    if (!(fabs(actual - expected) <= 1e-4 * fmax(1, fabs(expected))))
        fail_msg("%s[%zu] is %.9g, expected %.9g", what, i, actual, expected);
}

struct expectation {
    struct cm_str json;
    struct cm_arrays data;
    const char *scalars[3], *variables[14];
};

static void check_scalars(const struct expectation *e, const struct cm_trainer_scalar *scalars,
                          size_t n_scalars, size_t step)
{
    double expected[NUMBERS_MAX];

    for (size_t s = 0; e->scalars[s]; s++) {
        bool found = false;

        CHECK(train_numbers(e->json, e->scalars[s], expected, NUMBERS_MAX) > step);
        for (size_t i = 0; i < n_scalars; i++)
            if (cm_str_is(scalars[i].name, e->scalars[s])) {
                check_close(e->scalars[s], step, scalars[i].value, expected[step]);
                found = true;
            }
        CHECK(found);
    }
}

static void follow_with(struct cm_arena *arena, const char *name, struct expectation *e,
                        struct cm_trainer *trainer)
{
    struct cm_trainer_scalar scalars[SCALARS_MAX];
    const struct cm_tensor *in[INPUTS_MAX];
    struct cm_error err = {0};
    double expected[NUMBERS_MAX];

    e->json = case_read(arena,
                        cm_arena_printf(arena, "%s/models/training/%s.json", TESTS_DIR, name).data);
    CHECK_OK(cm_arrays_open(
                 arena, cm_arena_printf(arena, "%s/models/training/%s.npz", TESTS_DIR, name).data,
                 NULL, &e->data, &err),
             &err);
    CHECK(cm_trainer_scalar_count(trainer) <= SCALARS_MAX);
    if (strstr(e->json.data, "\"init\": true"))
        CHECK_OK(cm_trainer_initialize(trainer, &err), &err);
    for (size_t step = 0; step < 14; step++) {
        train_batch(arena, trainer, &e->data, (int64_t)step * 16, 16, in);
        CHECK_OK(cm_trainer_step(trainer, in, scalars, &err), &err);
        check_scalars(e, scalars, cm_trainer_scalar_count(trainer), step);
    }
    for (size_t v = 0; e->variables[v]; v++) {
        const size_t count = train_numbers(e->json, e->variables[v], expected, NUMBERS_MAX);
        const int index = cm_trainer_state_find(trainer, cm_str(e->variables[v]));

        CHECK(index >= 0);
        CHECK_INT(cm_tensor_count(cm_trainer_state(trainer, (size_t)index)), count);
        for (size_t i = 0; i < count; i++)
            check_close(e->variables[v], i, train_value(trainer, e->variables[v], (int64_t)i),
                        expected[i]);
    }
}

/* In whole steps, and in steps of two halves. */
static void follow(struct cm_arena *arena, const char *name, struct expectation *e)
{
    const struct cm_trainer_options halves = {.threads = 1, .check_finite = true, .split = true};
    struct cm_trainer *split = NULL;
    struct cm_error err = {0};

    follow_with(arena, name, e, train_open(arena, open_model(arena, name)));
    CHECK_OK(cm_trainer_new(arena, open_model(arena, name), &halves, &split, &err), &err);
    CHECK(cm_trainer_parameter_count(split) >= 2);
    follow_with(arena, name, e, split);
}

static void follow_linreg(struct cm_arena *arena)
{
    struct expectation e = {.scalars = {"loss"}, .variables = {"W", "b"}};
    follow(arena, "linreg_sgd", &e);
}

static void follow_penalty(struct cm_arena *arena)
{
    struct expectation e = {.scalars = {"loss", "pen"}, .variables = {"W1", "W2"}};
    follow(arena, "gradient_penalty", &e);
}

static void follow_mlp(struct cm_arena *arena)
{
    struct expectation e = {.scalars = {"loss"}, .variables = {"W1", "b1", "W2", "b2"}};
    follow(arena, "mlp_adam_initialized", &e);
}

static void follow_softmax(struct cm_arena *arena)
{
    struct expectation e = {.scalars = {"loss"}, .variables = {"W", "b", "VW", "Vb"}};
    follow(arena, "softmax_momentum_standard", &e);
}

void test_trainer__linear_regression_follows_pytorch(void)
{
    check_in_arena(follow_linreg);
}

void test_trainer__second_order_gradient_penalty_follows_pytorch(void)
{
    check_in_arena(follow_penalty);
}

void test_trainer__adam_after_initialization_follows_pytorch(void)
{
    check_in_arena(follow_mlp);
}

void test_trainer__momentum_operator_follows_pytorch(void)
{
    check_in_arena(follow_softmax);
}

/* ---- assignment ---- */

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17, \"ai.onnx.preview.training\" : 1]>\n"

static void swap(struct cm_arena *arena)
{
    struct cm_trainer *trainer = train_of(
        arena, HEAD "g (float[1] x) => (float[1] y) <float[1] a = {1}, float[1] b = {2}>\n"
                    "{ y = Add(x, a) }\n"
                    "training { algorithm: step () => (float[1] a, float[1] b, float[1] c)\n"
                    "           <float[1] c = {3}> { }\n"
                    ", update_binding: [\"a\": \"b\", \"b\": \"c\", \"c\": \"a\"] }\n");
    struct cm_error err = {0};

    CHECK_INT(cm_trainer_input_count(trainer), 0);
    for (int i = 0; i < 2; i++)
        CHECK_OK(cm_trainer_step(trainer, NULL, NULL, &err), &err);
    CHECK(train_value(trainer, "a", 0) == 3);
    CHECK(train_value(trainer, "b", 0) == 1);
    CHECK(train_value(trainer, "c", 0) == 2);
    CHECK_INT(cm_trainer_steps(trainer), 2);
}

void test_trainer__variables_can_change_places(void)
{
    check_in_arena(swap);
}

static void share(struct cm_arena *arena)
{
    struct cm_trainer *trainer =
        train_of(arena, HEAD "g (float[2] x) => (float[2] y) <float[2] a = {1, 2}, float[2] b = "
                             "{3, 4}>\n{ y = Add(x, a) }\n"
                             "training { algorithm: step () => (float[2] n) { n = Add(a, b) },\n"
                             "update_binding: [\"a\": \"n\", \"b\": \"n\"] }\n");
    struct cm_error err = {0};

    CHECK_OK(cm_trainer_step(trainer, NULL, NULL, &err), &err);
    CHECK(train_value(trainer, "a", 1) == 6 && train_value(trainer, "b", 1) == 6);
    CHECK_OK(cm_trainer_step(trainer, NULL, NULL, &err), &err);
    CHECK(train_value(trainer, "a", 0) == 8 && train_value(trainer, "b", 0) == 8);
}

void test_trainer__one_value_may_go_to_two_variables(void)
{
    check_in_arena(share);
}

/* The loss is finite, and so is what the update reads. */
static void diverged(struct cm_arena *arena)
{
    struct cm_trainer *trainer = train_of(
        arena, HEAD "g (float[1] x) => (float[1] y) <float[1] a = {1}, float[1] b = {3}>\n"
                    "{ y = Mul(x, a) }\n"
                    "training { algorithm: s (float[1] z) => (float[1] a_new, float loss)\n"
                    "<float[1] big = {3e38}> { p = Mul(a, big)\n a_new = Add(p, z)\n"
                    "  loss = ReduceSum<keepdims = 0>(z) },\n"
                    "update_binding: [\"a\": \"a_new\"] }\n");
    float one = 1;
    const struct cm_tensor fed = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(1), &one);
    const struct cm_tensor *const in[] = {&fed};
    struct cm_error err = {0};

    CHECK_OK(cm_trainer_step(trainer, in, NULL, &err), &err);
    CHECK(train_value(trainer, "a", 0) > 1e38);
    CHECK_FAILS(cm_trainer_step(trainer, in, NULL, &err), CM_DIVERGED, &err,
                "step 2: training diverged: the update made 'a' not finite; the state is the one "
                "after this step");
    CHECK_INT(cm_trainer_steps(trainer), 2);
    CHECK(train_value(trainer, "a", 0) > 1e300);
}

void test_trainer__an_update_that_overflows_says_that_it_was_made(void)
{
    check_in_arena(diverged);
}

static const char two_entries[] =
    HEAD "g (float[1] x) => (float[1] y) <float[1] a = {1}, float[1] b = {10}>\n"
         "{ y = Mul(x, a) }\n"
         "training { algorithm: first () => (float[1] a_new, float sum_a)\n"
         "{ a_new = Add(a, a)\n sum_a = ReduceSum<keepdims = 0>(a_new) },\n"
         "update_binding: [\"a\": \"a_new\"] }\n"
         "training { algorithm: second (float[1] z) => (float[1] b_new, float loss)\n"
         "{ q = Div(a, z)\n b_new = Add(b, q)\n loss = ReduceSum<keepdims = 0>(b_new) },\n"
         "update_binding: [\"b\": \"b_new\"] }\n";

static void consecutive(struct cm_arena *arena)
{
    struct cm_trainer *trainer = train_of(arena, two_entries);
    float one = 1, zero = 0;
    const struct cm_tensor fine = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(1), &one);
    const struct cm_tensor bad = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(1), &zero);
    const struct cm_tensor *in[1] = {&fine};
    struct cm_trainer_scalar scalars[2];
    struct cm_error err = {0};

    CHECK_INT(cm_trainer_input_count(trainer), 1);
    CHECK_STR(cm_trainer_input(trainer, 0)->name, "z");
    CHECK_INT(cm_trainer_scalar_count(trainer), 2);
    CHECK_STR(cm_trainer_scalar_name(trainer, (size_t)cm_trainer_loss(trainer)), "loss");
    CHECK_OK(cm_trainer_step(trainer, in, scalars, &err), &err);
    CHECK(train_value(trainer, "a", 0) == 2 && train_value(trainer, "b", 0) == 12);
    CHECK(scalars[0].value == 2 && scalars[1].value == 12);
    in[0] = &bad;
    CHECK_FAILS(cm_trainer_step(trainer, in, scalars, &err), CM_DIVERGED, &err,
                "step 2, training_info[1]: 'loss' is not finite, first made by");
    CHECK(strstr(err.text, "(Div)"));
    CHECK(train_value(trainer, "a", 0) == 2 && train_value(trainer, "b", 0) == 12);
    in[0] = &fine;
    CHECK_OK(cm_trainer_step(trainer, in, scalars, &err), &err);
    CHECK(train_value(trainer, "a", 0) == 4 && train_value(trainer, "b", 0) == 16);
}

void test_trainer__an_entry_sees_what_the_one_before_wrote_and_a_failure_undoes_both(void)
{
    check_in_arena(consecutive);
}

/* Between convolution and pooling a backend keeps the tensor in an order of its own. */
static const char overflowing[] =
    HEAD "g (float[1,16,8,8] x) => (float y) <float w = {3e38}, int64[4] many = {16,16,3,3}>\n"
         "{ q = Expand(w, many)\n a = Conv(x, q)\n"
         "  b = MaxPool<kernel_shape = [2, 2]>(a)\n y = ReduceMean<keepdims = 0>(b) }\n"
         "training { algorithm: t () => (float w_new, float loss)\n"
         "{ loss = Identity(y)\n w_new = Add(w, y) }, update_binding: [\"w\": \"w_new\"] }\n";

static void overflow(struct cm_arena *arena)
{
    struct cm_trainer *trainer = train_of(arena, overflowing);
    static float numbers[16 * 8 * 8];
    const struct cm_tensor x = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(1, 16, 8, 8), numbers);
    const struct cm_tensor *in[1] = {&x};
    struct cm_trainer_scalar scalars[2];
    struct cm_error err = {0};

    for (size_t i = 0; i < CM_COUNT(numbers); i++)
        numbers[i] = 2;
    CHECK_FAILS(cm_trainer_step(trainer, in, scalars, &err), CM_DIVERGED, &err, "(Conv)");
}

void test_trainer__infinity_is_found_where_it_is_made_in_any_layout(void)
{
    check_in_arena(overflow);
}

static void missing_feed(struct cm_arena *arena)
{
    struct cm_trainer *trainer = train_of(arena, two_entries);
    const struct cm_tensor *in[1] = {NULL};
    struct cm_error err = {0};

    CHECK_FAILS(cm_trainer_step(trainer, in, NULL, &err), CM_BAD_ARGUMENT, &err,
                "input 'z' is missing");
    CHECK(train_value(trainer, "a", 0) == 1);
}

void test_trainer__what_is_not_fed_is_named(void)
{
    check_in_arena(missing_feed);
}

/* ---- initialization ---- */

static void initialize(struct cm_arena *arena)
{
    struct cm_trainer *trainer = train_of(
        arena, HEAD "g (float[1] x) => (float[1] y) <float[1] a = {1}, float[1] b = {5}, float[1] "
                    "k = {100}>\n{ y = Add(x, a) }\n"
                    "training { initialization: first () => (float[1] a0)\n"
                    "{ a0 = Add(b, k) }, initialization_binding: [\"a\": \"a0\"],\n"
                    "algorithm: step () => (float[1] b_new) { b_new = Add(b, a) },\n"
                    "update_binding: [\"b\": \"b_new\"] }\n"
                    "training { initialization: second () => (float[1] a) { a = Neg(b) },\n"
                    "initialization_binding: [\"b\": \"a\"] }\n");
    struct cm_error err = {0};

    CHECK_INT(cm_trainer_state_count(trainer), 2);
    CHECK_OK(cm_trainer_step(trainer, NULL, NULL, &err), &err);
    CHECK(train_value(trainer, "b", 0) == 6);
    CHECK_OK(cm_trainer_initialize(trainer, &err), &err);
    /* From the stored values, not from those of the step before. */
    CHECK(train_value(trainer, "a", 0) == 105);
    CHECK(train_value(trainer, "b", 0) == -5);
}

void test_trainer__initialization_starts_from_stored_values_and_may_read_them(void)
{
    check_in_arena(initialize);
}

/* ---- what cannot be trained ---- */

static void blockers(struct cm_arena *arena)
{
    struct cm_error err = {0};
    const char *model =
        HEAD "g (float[2] x) => (float[2] y) <float[2] a = {1, 2}>\n{ y = Add(x, a) }\n"
             "training { algorithm: step () => (float[3] wide) <float[3] v = {1, 2, 3}>\n"
             "{ wide = Neg(v) },\n"
             "update_binding: [\"a\": \"wide\", \"nobody\": \"wide\", \"v\": \"nothing\"] }\n"
             "training { algorithm: step () => (float[2] n) { n = Mystery(a) },\n"
             "update_binding: [\"a\": \"n\"] }\n";

    CHECK_FAILS(train_try(arena, model, &err), CM_BAD_MODEL, &err, "for 5 reasons");
    CHECK(strstr(err.text, "'nobody' is not an initializer"));
    CHECK(strstr(err.text, "'nothing' is not an output"));
    CHECK(strstr(err.text, "'wide' is float[3], but 'a' is float[2]"));
    CHECK(strstr(err.text, "'a' is assigned twice"));
    CHECK(strstr(err.text, "Mystery"));
}

void test_trainer__everything_in_the_way_is_named_at_once(void)
{
    check_in_arena(blockers);
}

static void old_form(struct cm_arena *arena)
{
    struct cm_error err = {0};

    CHECK_FAILS(train_try(arena,
                          HEAD "g (float[1] x) => (float[1] y) <float[1] a = {1}>\n"
                               "{ y = Add(x, a) }\n"
                               "training { algorithm: step (float[1] x2) => (float[1] n)\n"
                               "{ n = ai.onnx.preview.training.GraphCall<graph_name = \"g\">(x2) "
                               "},\nupdate_binding: [\"a\": \"n\"] }\n",
                          &err),
                CM_UNSUPPORTED, &err, "GraphCall");
    CHECK_FAILS(train_try(arena, HEAD "g (float[1] x) => (float[1] y) { y = Neg(x) }\n", &err),
                CM_BAD_ARGUMENT, &err, "no training info");
}

void test_trainer__the_old_call_form_and_models_without_training_are_refused(void)
{
    check_in_arena(old_form);
}

/* ---- saving ---- */

/* Every byte of the two files is the same, but for the payload of tensors that were bound. */
static void check_only_payload_differs(struct cm_model_file *file, const struct cm_trainer *trainer,
                                       struct cm_str after)
{
    const struct cm_str before = {(const char *)file->mapping.data, file->mapping.size};
    struct cm_model_proto *model = &file->model;
    size_t differing = 0, inside = 0;

    CHECK_INT(after.size, before.size);
    for (size_t i = 0; i < before.size; i++)
        differing += before.data[i] != after.data[i];
    CHECK(differing > 0);
    for (size_t g = 0; g < 2; g++) {
        const struct cm_graph_proto *graph =
            g ? model->training_info.items[0].algorithm : model->graph;

        for (size_t t = 0; t < graph->initializer.count; t++) {
            const struct cm_tensor_proto *tensor = &graph->initializer.items[t];
            const struct cm_str payload =
                tensor->raw_data.size     ? tensor->raw_data
                : tensor->float_data.size ? (struct cm_str){(const char *)tensor->float_data.data,
                                                            tensor->float_data.size}
                                          : (struct cm_str){(const char *)tensor->int64_data.data,
                                                            tensor->int64_data.size};

            if (cm_trainer_state_find(trainer, tensor->name) < 0 || !payload.size)
                continue;
            const size_t at = (size_t)(payload.data - before.data);
            CHECK(at < before.size);
            for (size_t i = 0; i < payload.size; i++)
                inside += before.data[at + i] != after.data[at + i];
        }
    }
    CHECK_INT(inside, differing);
}

static void save(struct cm_arena *arena)
{
    static const char *const names[] = {"linreg_sgd", "gradient_penalty",
                                        "softmax_momentum_standard", "mlp_adam_initialized"};
    const char *folder = case_folder(arena);
    struct cm_error err = {0};

    for (size_t n = 0; n < CM_COUNT(names); n++) {
        struct cm_model_file *file = open_model(arena, names[n]);
        struct cm_trainer *trainer = train_open(arena, file);
        const char *path = case_path(arena, folder, "out.onnx");
        const struct cm_tensor *in[INPUTS_MAX];
        struct cm_arrays data = {0};

        CHECK_OK(cm_arrays_open(
                     arena,
                     cm_arena_printf(arena, "%s/models/training/%s.npz", TESTS_DIR, names[n]).data,
                     NULL, &data, &err),
                 &err);
        for (int64_t step = 0; step < 3; step++) {
            train_batch(arena, trainer, &data, step * 16, 16, in);
            CHECK_OK(cm_trainer_step(trainer, in, NULL, &err), &err);
        }
        CHECK_OK(cm_trainer_save(trainer, arena, file, path, NULL, NULL, &err), &err);
        check_only_payload_differs(file, trainer, case_read(arena, path));
        /* The messages are the file's again: a trainer made now starts where the file does. */
        struct cm_trainer *again = train_open(arena, file);
        struct cm_model_file *saved = NULL;
        CHECK_OK(cm_model_open(arena, path, NULL, &saved, &err), &err);
        struct cm_trainer *later = train_open(arena, saved);
        for (size_t i = 0; i < cm_trainer_state_count(trainer); i++) {
            const struct cm_tensor *now = cm_trainer_state(trainer, i);
            CHECK(memcmp(now->data, cm_trainer_state(later, i)->data, cm_tensor_bytes(now)) == 0);
        }
        CHECK(memcmp(cm_trainer_state(again, 0)->data, cm_trainer_state(later, 0)->data, 4) != 0);
    }
}

void test_trainer__saving_changes_values_and_nothing_else(void)
{
    check_in_arena(save);
}

/* ---- random state ---- */

static const char noisy[] =
    HEAD "g (float[8] x) => (float[8] y) <float[8] a = {0, 0, 0, 0, 0, 0, 0, 0}>\n"
         "{ y = Add(x, a) }\n"
         "training { algorithm: step () => (float[8] n)\n"
         "{ r = RandomNormal<shape = [8]>()\n s = RandomUniform<shape = [8], seed = 3.0>()\n"
         "t = Add(r, s)\n n = Add(a, t) }, update_binding: [\"a\": \"n\"] }\n";

static void resume(struct cm_arena *arena)
{
    struct cm_trainer *first = train_of(arena, noisy), *second = train_of(arena, noisy);
    struct cm_error err = {0};
    struct cm_str random;

    for (int i = 0; i < 3; i++)
        CHECK_OK(cm_trainer_step(first, NULL, NULL, &err), &err);
    CHECK_OK(cm_trainer_random(first, arena, &random, &err), &err);
    CHECK_OK(cm_trainer_set_state(second, 0, cm_trainer_state(first, 0), &err), &err);
    CHECK_OK(cm_trainer_set_random(second, arena, random, &err), &err);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(cm_trainer_step(first, NULL, NULL, &err), &err);
        CHECK_OK(cm_trainer_step(second, NULL, NULL, &err), &err);
        CHECK(memcmp(cm_trainer_state(first, 0)->data, cm_trainer_state(second, 0)->data, 32) == 0);
    }
    random.size--;
    CHECK_FAILS(cm_trainer_set_random(second, arena, random, &err), CM_BAD_ARGUMENT, &err,
                "another training");
}

void test_trainer__random_numbers_go_on_where_another_trainer_left_off(void)
{
    check_in_arena(resume);
}

static void refuse_all(struct cm_arena *arena)
{
    static const char text[] =
        "<ir_version: 8, opset_import: [\"\" : 17]>\n"
        "two (float[4] x) => (float[4] y) <float[4] a = {0,0,0,0}, float[4] b = {0,0,0,0}>\n"
        "{ s = Add(a, b)\n y = Add(x, s) }\n"
        "training { algorithm: one () => (float[4] m) { r = RandomNormal<shape = [4]>()\n"
        "m = Add(a, r) }, update_binding: [\"a\": \"m\"] }\n"
        "training { algorithm: other () => (float[4] n) { r = RandomNormal<shape = [4]>()\n"
        "n = Add(b, r) }, update_binding: [\"b\": \"n\"] }\n";
    struct cm_trainer *first = train_of(arena, text), *second = train_of(arena, text);
    struct cm_error err = {0};
    struct cm_str random, before, after;
    char *wrong;

    CHECK_OK(cm_trainer_step(first, NULL, NULL, &err), &err);
    CHECK_OK(cm_trainer_random(first, arena, &random, &err), &err);
    CHECK_OK(cm_trainer_random(second, arena, &before, &err), &err);
    wrong = cm_arena_alloc(arena, random.size);
    memcpy(wrong, random.data, random.size);
    /* Both entries have parts of one size: the first record of the second is none. */
    memset(wrong + random.size / 2 + 8, 0xff, 8);
    CHECK_FAILS(cm_trainer_set_random(second, arena, (struct cm_str){wrong, random.size}, &err),
                CM_BAD_ARGUMENT, &err, "random state");
    CHECK_OK(cm_trainer_random(second, arena, &after, &err), &err);
    CHECK(before.size == after.size && memcmp(before.data, after.data, before.size) == 0);
    CHECK_OK(cm_trainer_set_random(second, arena, random, &err), &err);
    CHECK_OK(cm_trainer_random(second, arena, &after, &err), &err);
    CHECK(memcmp(random.data, after.data, random.size) == 0);
}

void test_trainer__a_random_state_is_taken_whole_or_not_at_all(void)
{
    check_in_arena(refuse_all);
}

/* Noise times what is fed: a step fails because nothing is, or because that is infinite. */
static const char fed_noise[] =
    HEAD "g (float[2] x) => (float[2] y) <float[2] a = {0, 0}>\n"
         "{ y = Add(x, a) }\n"
         "training { algorithm: step () => (float[2] n)\n"
         "{ r = RandomNormal<shape = [2]>()\n s = RandomUniform<shape = [2], seed = 3.0>()\n"
         "t = Add(r, s)\n n = Mul(x, t) }, update_binding: [\"a\": \"n\"] }\n";

static void fail_between(struct cm_arena *arena)
{
    struct cm_trainer *first = train_of(arena, fed_noise), *second = train_of(arena, fed_noise);
    float ones[] = {1, 1}, far[] = {1, INFINITY};
    const struct cm_tensor fine = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(2), ones);
    const struct cm_tensor bad = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(2), far);
    const struct cm_tensor *in[] = {&fine}, *infinite[] = {&bad}, *none[] = {NULL};
    struct cm_error err = {0};

    for (int i = 0; i < 4; i++) {
        CHECK_OK(cm_trainer_step(first, in, NULL, &err), &err);
        CHECK_OK(cm_trainer_step(second, in, NULL, &err), &err);
        CHECK(memcmp(cm_trainer_state(first, 0)->data, cm_trainer_state(second, 0)->data, 8) == 0);
        CHECK_FAILS(cm_trainer_step(second, none, NULL, &err), CM_BAD_ARGUMENT, &err, "missing");
        CHECK_FAILS(cm_trainer_step(second, infinite, NULL, &err), CM_DIVERGED, &err, "finite");
        CHECK_FAILS(cm_trainer_step(second, none, NULL, &err), CM_BAD_ARGUMENT, &err, "missing");
    }
}

void test_trainer__a_step_that_fails_draws_no_random_numbers(void)
{
    check_in_arena(fail_between);
}

/* ---- evaluating ---- */

static void evaluate(struct cm_arena *arena)
{
    struct cm_trainer *trainer = train_of(
        arena, HEAD "g (float[N,2] x) => (float[N,2] s) <float[2] a = {0, 1}>\n"
                    "{ s = Add(x, a) }\n"
                    "training { algorithm: step (int64[N] label, bool mode) => (float loss,"
                    " float[2] n)\n<float ratio = {0.5}>\n"
                    "{ d, m = Dropout(s, ratio, mode)\n"
                    "loss = SoftmaxCrossEntropyLoss(d, label)\n n = Neg(a) },\n"
                    "update_binding: [\"a\": \"n\"] }\n");
    float x[] = {5, 0, 0, 0, 0, 3};
    int64_t labels[] = {0, 0, 1};
    bool mode = true;
    const struct cm_tensor inputs[] = {cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(3, 2), x),
                                       cm_tensor_borrow(CM_INT64, &CM_SHAPE(3), labels),
                                       cm_tensor_borrow(CM_BOOL, &CM_SCALAR, &mode)};
    const struct cm_tensor *in[3];
    struct cm_trainer_measure measure;
    struct cm_error err = {0};

    CHECK_INT(cm_trainer_input_count(trainer), 3);
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++)
            if (cm_str_is(cm_trainer_input(trainer, i)->name,
                          (const char *const[]){"x", "label", "mode"}[k]))
                in[i] = &inputs[k];
    CHECK_OK(cm_trainer_prepare_evaluation(trainer, &err), &err);
    CHECK_OK(cm_trainer_evaluate(trainer, in, &measure, &err), &err);
    CHECK_INT(measure.samples, 3);
    CHECK_INT(measure.judged, 3);
    CHECK_INT(measure.correct, 2);
    /* log(1 + e^-4), log(1 + e^1) and log(1 + e^-4): nothing was dropped. */
    check_close("loss", 0, measure.loss, (2 * log1p(exp(-4)) + log1p(exp(1))) / 3);
    CHECK(train_value(trainer, "a", 1) == 1);

    const struct cm_datum fed = {.kind = CM_KIND_TENSOR, .tensor = inputs[0]};
    const struct cm_datum *feeds[] = {&fed};
    struct cm_datum out[1] = {{0}};
    CHECK_OK(cm_trainer_prepare_prediction(trainer, &err), &err);
    CHECK_INT(cm_trainer_predict_input_count(trainer), 1);
    CHECK_OK(cm_trainer_step(trainer, in, NULL, &err), &err);
    CHECK_OK(cm_trainer_predict(trainer, feeds, out, &err), &err);
    CHECK(cm_tensor_real(&out[0].tensor, 5) == 2); /* with the new weights: 3 - 1 */
    cm_datum_drop(&out[0]);
}

void test_trainer__evaluation_is_without_dropout_and_counts_hits(void)
{
    check_in_arena(evaluate);
}
