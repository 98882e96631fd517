/* Inputs made up through the public header. */
// SPDX-License-Identifier: Apache-2.0
#include "api/lend.h"
#include "cameo.h"
#include "check.h"

static const char net[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                          "net (float[batch,3] x, float[batch,D] z) => (float[batch,4] y)\n"
                          "<float[4] w = {1, 2, 3, 4}, float[3,4] v = {1,1,1,1,1,1,1,1,1,1,1,1}>\n"
                          "{ a = MatMul(x, v) b = Mul(z, w) y = Add(a, b) }\n";

struct things {
    struct cameo_model *model;
    struct cameo_session *session;
    struct cameo_error err;
};

static struct things open_net(void)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct things t = {0};

    options.format = CAMEO_FORMAT_TEXT;
    if (cameo_model_load_memory(net, strlen(net), &options, &t.model, &t.err) != CAMEO_OK ||
        cameo_session_new(t.model, NULL, &t.session, &t.err) != CAMEO_OK)
        fail_msg("%s", t.err.message);
    return t;
}

static void close_net(struct things *t)
{
    cameo_session_free(t->session);
    cameo_model_free(t->model);
}

void test_made_inputs__can_be_run_and_say_which_sizes_were_open(void)
{
    struct things t = open_net();
    struct cameo_made_inputs *made;
    struct cameo_fetch fetch = fetch_index(0);
    size_t count;

    CHECK_INT(cameo_session_make_inputs(t.session, NULL, NULL, 0, &made, &t.err), CAMEO_OK);
    CHECK_STRING(cameo_made_inputs_refusal(made), "");
    CHECK_STRING(cameo_made_inputs_size(made, 0)->symbol.data, "batch");
    CHECK_INT(cameo_made_inputs_size(made, 0)->size, 1);
    CHECK_STRING(cameo_made_inputs_size(made, 1)->symbol.data, "D");
    CHECK_STRING(cameo_made_inputs_size(made, 1)->input.data, "z");
    CHECK_INT(cameo_made_inputs_size(made, 1)->axis, 1);
    CHECK_INT(cameo_made_inputs_size(made, 1)->size, 4);
    CHECK(!cameo_made_inputs_size(made, 2));
    const struct cameo_feed *feeds = cameo_made_inputs_feeds(made, &count);
    CHECK_INT(count, 2);
    CHECK_INT(cameo_session_run(t.session, feeds, count, &fetch, 1, NULL, &t.err), CAMEO_OK);
    CHECK_INT(cameo_value_count(fetch.value), 4);
    cameo_value_free(fetch.value);
    cameo_made_inputs_free(made);
    close_net(&t);
}

void test_made_inputs__take_the_sizes_of_what_is_fed(void)
{
    static const float values[6] = {1, 2, 3, 4, 5, 6};
    static const int64_t dims[2] = {2, 3};
    const struct cameo_feed given = cameo_feed_tensor("x", lend(CAMEO_FLOAT, 2, dims, values, 24));
    struct things t = open_net();
    struct cameo_made_inputs *made;
    size_t count;

    CHECK_INT(cameo_session_make_inputs(t.session, NULL, &given, 1, &made, &t.err), CAMEO_OK);
    const struct cameo_feed *feeds = cameo_made_inputs_feeds(made, &count);
    CHECK_INT(count, 1);
    CHECK_INT(feeds[0].index, 1);
    CHECK_INT(cameo_value_dims(feeds[0].value)[0], 2);
    cameo_made_inputs_free(made);
    close_net(&t);
}

void test_made_inputs__sizes_can_be_set(void)
{
    const struct cameo_size size = {sizeof(struct cameo_size), "batch", 5};
    const int64_t dims[2] = {5, 4};
    const struct cameo_input_shape shape = {sizeof(struct cameo_input_shape), "z", 2, dims};
    struct cameo_make_options options = CAMEO_MAKE_OPTIONS_INIT;
    struct things t = open_net();
    struct cameo_made_inputs *made;
    size_t count;

    options.sizes = &size;
    options.size_count = 1;
    options.shapes = &shape;
    options.shape_count = 1;
    CHECK_INT(cameo_session_make_inputs(t.session, &options, NULL, 0, &made, &t.err), CAMEO_OK);
    CHECK(!cameo_made_inputs_size(made, 0));
    const struct cameo_feed *feeds = cameo_made_inputs_feeds(made, &count);
    CHECK_INT(cameo_value_dims(feeds[0].value)[0], 5);
    cameo_made_inputs_free(made);
    options.shapes =
        &(const struct cameo_input_shape){sizeof(struct cameo_input_shape), "q", 2, dims};
    CHECK_INT(cameo_session_make_inputs(t.session, &options, NULL, 0, &made, &t.err),
              CAMEO_NOT_FOUND);
    CHECK(strstr(t.err.message, "no input 'q'"));
    options.shape_count = 0;
    options.sizes = &(const struct cameo_size){sizeof(struct cameo_size), "batch", -1};
    CHECK_INT(cameo_session_make_inputs(t.session, &options, NULL, 0, &made, &t.err),
              CAMEO_BAD_ARGUMENT);
    close_net(&t);
}
