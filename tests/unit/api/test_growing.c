/* Structs that say their size: callers compiled with an older, shorter header and with a newer,
 * longer one, in arrays too; and what a tensor may say of its memory. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api_case.h"
#include "api/lend.h"
#include "check.h"

static const char sum[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                          "g (float[N] a, float[N] b) => (float[N] y, float[N] z)\n"
                          "{ y = Add(a, b)\n  z = Sub(a, b) }\n";
static const float as[] = {1, 2, 3}, bs[] = {10, 20, 30};
static const int64_t three[] = {3};

static struct cameo_session *open_session(const char *text, const struct cameo_registry *registry,
                                          struct cameo_model **model)
{
    struct cameo_session_options options = CAMEO_SESSION_OPTIONS_INIT;
    struct cameo_session *session = NULL;
    struct cameo_error err;

    *model = load_text(text);
    options.registry = registry;
    options.threads = 1;
    OK(cameo_session_new(*model, &options, &session, &err));
    return session;
}

/* ---- older and newer callers ---- */

/* A tensor as a header without devices and deleters would have it, and a feed without tensors. */
struct old_tensor {
    size_t struct_size;
    enum cameo_dtype dtype;
    int rank;
    const int64_t *dims, *strides;
    void *data;
    size_t bytes;
};

struct old_feed {
    size_t struct_size;
    const char *name;
    size_t index;
    const struct cameo_value *value;
};

/* Members that this library does not know. */
struct new_tensor {
    struct cameo_tensor tensor;
    uint64_t more[3];
};

struct new_feed {
    struct cameo_feed feed;
    uint64_t more[2];
};

struct new_fetch {
    struct cameo_fetch fetch;
    uint64_t more[5];
};

void test_growing__a_tensor_of_an_older_header_is_read_as_far_as_it_goes(void)
{
    struct cameo_model *model;
    struct cameo_session *session = open_session(sum, NULL, &model);
    struct old_tensor a[] = {
        {sizeof(struct old_tensor), CAMEO_FLOAT, 1, three, NULL, (void *)(uintptr_t)as, sizeof as},
        {(size_t)-1, CAMEO_STRING, -1, NULL, NULL, NULL, 77}};
    const struct cameo_feed feeds[] = {
        cameo_feed_tensor("a", (const struct cameo_tensor *)(const void *)a),
        cameo_feed_tensor("b", lend(CAMEO_FLOAT, 1, three, bs, sizeof bs))};
    struct cameo_fetch fetch = cameo_fetch_value("y");
    struct cameo_error err;

    OK(cameo_session_run(session, feeds, 2, &fetch, 1, NULL, &err));
    CHECK(cameo_value_real(fetch.value, 2) == 33);
    cameo_value_free(fetch.value);
    cameo_session_free(session);
    cameo_model_free(model);
}

void test_growing__shorter_feeds_lie_as_far_apart_as_the_first_says(void)
{
    struct cameo_model *model;
    struct cameo_session *session = open_session(sum, NULL, &model);
    struct cameo_value *a, *b;
    struct cameo_fetch fetch = cameo_fetch_value("y");
    struct cameo_error err;

    OK(cameo_value_new(CAMEO_FLOAT, 1, three, &a, &err));
    OK(cameo_value_new(CAMEO_FLOAT, 1, three, &b, &err));
    cameo_value_set_real(a, 1, 5);
    cameo_value_set_real(b, 1, 7);
    const struct old_feed feeds[] = {{sizeof(struct old_feed), "a", 0, a},
                                     {sizeof(struct old_feed), NULL, 1, b}};
    OK(cameo_session_run(session, (const struct cameo_feed *)(const void *)feeds, 2, &fetch, 1,
                         NULL, &err));
    CHECK(cameo_value_real(fetch.value, 1) == 12);
    cameo_value_free(fetch.value);
    cameo_value_free(a);
    cameo_value_free(b);
    cameo_session_free(session);
    cameo_model_free(model);
}

void test_growing__longer_structs_are_read_and_written_in_their_place(void)
{
    struct cameo_model *model;
    struct cameo_session *session = open_session(sum, NULL, &model);
    struct new_tensor tensors[2];
    struct new_feed feeds[2];
    struct new_fetch fetches[2];
    struct cameo_error err;

    memset(tensors, 0xa5, sizeof tensors);
    memset(feeds, 0xa5, sizeof feeds);
    memset(fetches, 0xa5, sizeof fetches);
    for (size_t i = 0; i < 2; i++) {
        tensors[i].tensor = cameo_tensor_of(CAMEO_FLOAT, 1, three, i ? bs : as, sizeof as);
        tensors[i].tensor.struct_size = sizeof tensors[i];
        feeds[i].feed = cameo_feed_tensor(i ? "b" : "a", &tensors[i].tensor);
        feeds[i].feed.struct_size = sizeof feeds[i];
        fetches[i].fetch = cameo_fetch_value(i ? "z" : "y");
        fetches[i].fetch.struct_size = sizeof fetches[i];
    }
    OK(cameo_session_run(session, &feeds[0].feed, 2, &fetches[0].fetch, 2, NULL, &err));
    CHECK(cameo_value_real(fetches[0].fetch.value, 1) == 22);
    CHECK(cameo_value_real(fetches[1].fetch.value, 1) == -18);
    CHECK(fetches[0].more[0] == UINT64_C(0xa5a5a5a5a5a5a5a5));
    CHECK(cameo_feed_at(&feeds[0].feed, 1) == &feeds[1].feed);
    for (size_t i = 0; i < 2; i++)
        cameo_value_free(fetches[i].fetch.value);
    cameo_session_free(session);
    cameo_model_free(model);
}

void test_growing__a_struct_that_does_not_say_its_size_is_refused(void)
{
    struct cameo_model *model;
    struct cameo_session *session = open_session(sum, NULL, &model);
    struct cameo_feed feed = cameo_feed_tensor("a", lend(CAMEO_FLOAT, 1, three, as, sizeof as));
    struct cameo_tensor tensor = *feed.tensor;
    struct cameo_fetch fetch = cameo_fetch_value("y");
    struct cameo_error err;

    feed.struct_size = 0;
    CHECK_INT(cameo_session_run(session, &feed, 1, &fetch, 1, NULL, &err), CAMEO_BAD_ARGUMENT);
    CHECK_STRING(err.message, "the first struct of an array has struct_size 0; make it with its "
                              "_INIT macro");
    feed.struct_size = sizeof feed;
    tensor.struct_size = 0;
    feed.tensor = &tensor;
    CHECK_INT(cameo_session_run(session, &feed, 1, &fetch, 1, NULL, &err), CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "input 'a': a struct has struct_size 0"));
    feed.tensor = NULL;
    CHECK_INT(cameo_session_run(session, &feed, 1, &fetch, 1, NULL, &err), CAMEO_BAD_ARGUMENT);
    CHECK_STRING(err.message,
                 "the run cannot begin, for 2 reasons: input 'a': there is neither a value nor a "
                 "tensor; input 'b' is missing, needs float[N]");
    fetch.struct_size = offsetof(struct cameo_fetch, value);
    CHECK_INT(cameo_session_run(session, NULL, 0, &fetch, 1, NULL, &err), CAMEO_BAD_ARGUMENT);
    CHECK(strstr(err.message, "make it with CAMEO_FETCH_INIT"));
    cameo_session_free(session);
    cameo_model_free(model);
}

/* Operands and attributes with members at their end that this library does not know. */
struct new_operand {
    struct cameo_operand operand;
    uint64_t more;
};

struct new_attribute {
    struct cameo_attribute attribute;
    uint64_t more;
};

static enum cameo_status mix(struct cameo_call *call, void *arg)
{
    /* A caller that wants nothing but type and shape. */
    struct cameo_tensor a = CAMEO_TENSOR_INIT, b = CAMEO_TENSOR_INIT, y = CAMEO_TENSOR_INIT;

    (void)arg;
    b.struct_size = offsetof(struct cameo_tensor, bytes);
    b.bytes = 99;
    if (!cameo_call_input(call, 0, &a) || !cameo_call_input(call, 1, &b) ||
        !cameo_call_output(call, 0, &y) || b.bytes != 99)
        return cameo_call_fail(call, CAMEO_BAD_ARGUMENT, "an operand is missing");
    for (int64_t i = 0; i < cameo_tensor_count(&a); i++)
        ((float *)y.data)[i] = ((const float *)a.data)[i] * cameo_call_float(call, "left") +
                               ((const float *)b.data)[i] * cameo_call_float(call, "right");
    return CAMEO_OK;
}

void test_growing__an_operator_registers_with_longer_operands_and_attributes(void)
{
    static const char *const names[] = {"a", "b"}, *const factors[] = {"left", "right"};
    struct new_operand operands[2];
    struct new_attribute attributes[2];
    struct cameo_custom_operator op = CAMEO_CUSTOM_OPERATOR_INIT;
    struct cameo_registry *registry;
    struct cameo_model *model;
    struct cameo_error err;

    memset(operands, 0xa5, sizeof operands);
    memset(attributes, 0xa5, sizeof attributes);
    for (size_t i = 0; i < 2; i++) {
        operands[i].operand = (struct cameo_operand)CAMEO_OPERAND_INIT;
        operands[i].operand.struct_size = sizeof operands[i];
        operands[i].operand.name = names[i];
        attributes[i].attribute = (struct cameo_attribute)CAMEO_ATTRIBUTE_INIT;
        attributes[i].attribute.struct_size = sizeof attributes[i];
        attributes[i].attribute.name = factors[i];
        attributes[i].attribute.kind = CAMEO_ATTRIBUTE_FLOAT;
        attributes[i].attribute.has_default = true;
        attributes[i].attribute.f = i ? 2 : 3;
    }
    op.domain = "my";
    op.name = "Mix";
    op.inputs = &operands[0].operand;
    op.input_count = 2;
    op.outputs = &operands[0].operand;
    op.output_count = 1;
    op.attributes = &attributes[0].attribute;
    op.attribute_count = 2;
    op.run = mix;
    OK(cameo_registry_new(&registry, &err));
    OK(cameo_registry_add(registry, &op, &err));
    struct cameo_session *session =
        open_session("<ir_version: 8, opset_import: [\"\" : 17, \"my\" : 1]>\n"
                     "g (float[N] a, float[N] b) => (float[N] y) { y = my.Mix(a, b) }\n",
                     registry, &model);
    const struct cameo_feed feeds[] = {
        cameo_feed_tensor("a", lend(CAMEO_FLOAT, 1, three, as, sizeof as)),
        cameo_feed_tensor("b", lend(CAMEO_FLOAT, 1, three, bs, sizeof bs))};
    struct cameo_fetch fetch = cameo_fetch_value("y");
    OK(cameo_session_run(session, feeds, 2, &fetch, 1, NULL, &err));
    CHECK(cameo_value_real(fetch.value, 2) == 3 * 3 + 2 * 30);
    cameo_value_free(fetch.value);
    cameo_session_free(session);
    cameo_registry_free(registry);
    cameo_model_free(model);
}

struct new_size {
    struct cameo_size size;
    uint64_t more;
};

struct new_shape {
    struct cameo_input_shape shape;
    uint64_t more;
};

void test_growing__sizes_and_shapes_of_inputs_may_be_longer(void)
{
    static const int64_t four_by_five[] = {4, 5};
    struct new_size sizes[2];
    struct new_shape shapes[2];
    struct cameo_make_options options = CAMEO_MAKE_OPTIONS_INIT;
    struct cameo_made_inputs *made;
    struct cameo_model *model;
    struct cameo_session *session =
        open_session("<ir_version: 8, opset_import: [\"\" : 17]>\n"
                     "g (float[N] a, float[M] b, float[K,L] c, float[P,Q] d) => (float[N] y)\n"
                     "{ y = Neg(a) }\n",
                     NULL, &model);
    struct cameo_error err;
    size_t count;

    memset(sizes, 0xa5, sizeof sizes);
    memset(shapes, 0xa5, sizeof shapes);
    for (size_t i = 0; i < 2; i++) {
        sizes[i].size = (struct cameo_size){sizeof sizes[i], i ? "M" : "N", i ? 7 : 6};
        shapes[i].shape =
            (struct cameo_input_shape){sizeof shapes[i], i ? "d" : "c", 2, four_by_five};
    }
    options.sizes = &sizes[0].size;
    options.size_count = 2;
    options.shapes = &shapes[0].shape;
    options.shape_count = 2;
    OK(cameo_session_make_inputs(session, &options, NULL, 0, &made, &err));
    const struct cameo_feed *feeds = cameo_made_inputs_feeds(made, &count);
    CHECK_INT(count, 4);
    CHECK_INT(cameo_value_dims(cameo_feed_at(feeds, 0)->value)[0], 6);
    CHECK_INT(cameo_value_dims(cameo_feed_at(feeds, 1)->value)[0], 7);
    CHECK_INT(cameo_value_dims(cameo_feed_at(feeds, 2)->value)[1], 5);
    CHECK_INT(cameo_value_dims(cameo_feed_at(feeds, 3)->value)[0], 4);
    cameo_made_inputs_free(made);
    cameo_session_free(session);
    cameo_model_free(model);
}

/* ---- what a tensor says of its memory ---- */

static const char negation[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                               "g (float[2,3] x) => (float[2,3] y) { y = Neg(x) }\n";

static enum cameo_status negate(struct cameo_session *session, const struct cameo_tensor *x,
                                const struct cameo_tensor *into, double out[6],
                                struct cameo_error *err)
{
    const struct cameo_feed feed = cameo_feed_tensor("x", x);
    struct cameo_fetch fetch = cameo_fetch_tensor("y", into);
    const enum cameo_status status = cameo_session_run(session, &feed, 1, &fetch, 1, NULL, err);

    for (int64_t i = 0; status == CAMEO_OK && !into && i < 6; i++)
        out[i] = cameo_value_real(fetch.value, i);
    cameo_value_free(fetch.value);
    return status;
}

void test_growing__a_feed_with_strides_is_gathered(void)
{
    /* A matrix of 4 columns; x is its transposed part, every second row of it, or one row again. */
    static const float wide[12] = {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23};
    static const int64_t dims[] = {2, 3}, transposed[] = {1, 4}, spread[] = {8, 1},
                         again[] = {0, 1}, dense[] = {3, 1};
    struct cameo_model *model;
    struct cameo_session *session = open_session(negation, NULL, &model);
    struct cameo_tensor x = cameo_tensor_of(CAMEO_FLOAT, 2, dims, wide, sizeof wide);
    struct cameo_error err;
    double y[6];

    x.strides = transposed;
    OK(negate(session, &x, NULL, y, &err));
    CHECK(y[0] == 0 && y[1] == -10 && y[2] == -20 && y[3] == -1 && y[5] == -21);
    x.strides = spread;
    OK(negate(session, &x, NULL, y, &err));
    CHECK(y[2] == -2 && y[3] == -20 && y[5] == -22);
    x.strides = again;
    OK(negate(session, &x, NULL, y, &err));
    CHECK(y[2] == -2 && y[3] == 0 && y[5] == -2);
    x.strides = dense;
    x.bytes = 24;
    OK(negate(session, &x, NULL, y, &err));
    CHECK(y[5] == -11);
    cameo_session_free(session);
    cameo_model_free(model);
}

void test_growing__memory_that_cannot_be_used_is_refused_in_a_sentence(void)
{
    static const float wide[12];
    static const int64_t dims[] = {2, 3}, back[] = {-1, 1}, far[] = {INT64_MAX, 1},
                         spread[] = {8, 1};
    struct cameo_model *model;
    struct cameo_session *session = open_session(negation, NULL, &model);
    struct cameo_tensor x = cameo_tensor_of(CAMEO_FLOAT, 2, dims, wide, 40), into;
    struct cameo_error err;
    float room[24];

    x.strides = spread; /* reaches the 11th element, of which 40 bytes hold 10 */
    CHECK_INT(negate(session, &x, NULL, NULL, &err), CAMEO_BAD_ARGUMENT);
    CHECK_STRING(err.message, "input 'x': its memory has 40 bytes, its shape 2x3 needs 44");
    x.strides = back;
    CHECK_INT(negate(session, &x, NULL, NULL, &err), CAMEO_BAD_ARGUMENT);
    CHECK_STRING(err.message, "input 'x': its strides are negative or overflow");
    x.strides = far;
    CHECK_INT(negate(session, &x, NULL, NULL, &err), CAMEO_BAD_ARGUMENT);
    x.strides = NULL;
    x.bytes = 24;
    x.device = CAMEO_DEVICE_CUDA;
    CHECK_INT(negate(session, &x, NULL, NULL, &err), CAMEO_UNSUPPORTED);
    CHECK_STRING(err.message, "input 'x': its memory is on device 1, and only memory of the CPU "
                              "can be used");
    x.device = CAMEO_DEVICE_CPU;
    into = cameo_tensor_of(CAMEO_FLOAT, 2, dims, room, sizeof room);
    into.strides = spread;
    CHECK_INT(negate(session, &x, &into, NULL, &err), CAMEO_UNSUPPORTED);
    CHECK(strstr(err.message, "memory for output 'y' has strides"));
    into.strides = NULL;
    into.bytes = 24;
    OK(negate(session, &x, &into, NULL, &err));
    cameo_session_free(session);
    cameo_model_free(model);
}

static void count_call(void *arg)
{
    ++*(int *)arg;
}

void test_growing__memory_is_let_go_after_a_run_that_succeeds(void)
{
    static const int64_t dims[] = {2, 3};
    static const float values[6];
    struct cameo_model *model;
    struct cameo_session *session = open_session(negation, NULL, &model);
    struct cameo_tensor x = cameo_tensor_of(CAMEO_FLOAT, 2, dims, values, 20);
    struct cameo_error err;
    int freed = 0;
    double y[6];

    x.deleter = count_call;
    x.deleter_arg = &freed;
    CHECK_INT(negate(session, &x, NULL, y, &err), CAMEO_BAD_ARGUMENT);
    CHECK_INT(freed, 0);
    x.bytes = 24;
    OK(negate(session, &x, NULL, y, &err));
    CHECK_INT(freed, 1);
    cameo_session_free(session);
    cameo_model_free(model);
}
