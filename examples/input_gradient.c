/* Gradients without training: input_gradient. A controller looks for the push u that brings a cart,
 * whose next state a model predicts, to where it should be: it asks the model for the derivative of
 * the cost by u, and goes downhill. */
// SPDX-License-Identifier: Apache-2.0
#include <cameo.h>

#include <stdio.h>
#include <string.h>

/* Position and speed after a push; the cost is the distance from position 1 at rest. */
static const char cart[] =
    "<ir_version: 8, opset_import: [\"\" : 17]>\n"
    "cart (float[2] state, float[1] u) => (float cost)\n"
    "<float[2,2] drift = {1, 0, 0.5, 0.9}, float[1,2] push = {0.2, 0.6}, float[2] goal = {1, 0}>\n"
    "{ moved = MatMul(state, drift)\n"
    "  pushed = MatMul(u, push)\n"
    "  soft = Tanh(pushed)\n"
    "  next = Add(moved, soft)\n"
    "  error = Sub(next, goal)\n"
    "  square = Mul(error, error)\n"
    "  cost = ReduceSum<keepdims = 0>(square) }\n";

static enum cameo_status control(struct cameo_session *session, struct cameo_error *err)
{
    static const int64_t two[] = {2}, one[] = {1};
    const float state[2] = {0.5f, 0.4f};
    float u = 0, cost = 0, slope = 0;
    const struct cameo_tensor states = cameo_tensor_of(CAMEO_FLOAT, 1, two, state, sizeof state);
    const struct cameo_tensor us = cameo_tensor_of(CAMEO_FLOAT, 1, one, &u, sizeof u);
    const struct cameo_tensor costs = cameo_tensor_of(CAMEO_FLOAT, 0, NULL, &cost, sizeof cost);
    const struct cameo_tensor slopes = cameo_tensor_of(CAMEO_FLOAT, 1, one, &slope, sizeof slope);
    const struct cameo_feed feeds[] = {cameo_feed_tensor("state", &states),
                                       cameo_feed_tensor("u", &us)};
    /* Results land in the controller's own memory: nothing is allocated from here on. */
    struct cameo_fetch fetches[] = {cameo_fetch_tensor("cost", &costs),
                                    cameo_fetch_tensor("gradient.u", &slopes)};

    for (int i = 0; i < 40; i++) {
        const enum cameo_status status =
            cameo_session_run(session, feeds, 2, fetches, 2, NULL, err);

        if (status != CAMEO_OK)
            return status;
        if (i % 13 == 0)
            printf("u %+.3f  cost %.4f  slope %+.4f\n", (double)u, (double)cost, (double)slope);
        u -= 0.5f * slope;
    }
    return CAMEO_OK;
}

int main(void)
{
    static const char *const by[] = {"u"};
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model = NULL, *gradient = NULL;
    struct cameo_session *session = NULL;
    struct cameo_error err;

    options.format = CAMEO_FORMAT_TEXT;
    enum cameo_status status = cameo_model_load_memory(cart, strlen(cart), &options, &model, &err);
    if (status == CAMEO_OK)
        status = cameo_model_gradient(model, "cost", by, 1, false, &gradient, &err);
    if (status == CAMEO_OK)
        status = cameo_session_new(gradient, NULL, &session, &err);
    if (status == CAMEO_OK)
        status = control(session, &err);
    if (status != CAMEO_OK)
        fprintf(stderr, "%s\n", err.message);
    cameo_session_free(session);
    cameo_model_free(gradient);
    cameo_model_free(model);
    return status != CAMEO_OK;
}
