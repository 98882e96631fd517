/* Work and memory of a run, found from shapes. */
// SPDX-License-Identifier: Apache-2.0
#include "cameo.h"
#include "check.h"

#include <string.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != CAMEO_OK)                                                                    \
            fail_msg("%s: %s", #call, err.message);                                                \
    } while (0)

static const struct cameo_costs *count(struct cameo_model **model, const char *text,
                                       const char *symbol, int64_t number)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_size size = CAMEO_SIZE_INIT;
    const struct cameo_costs *costs;
    struct cameo_error err;

    options.format = CAMEO_FORMAT_TEXT;
    size.symbol = symbol;
    size.size = number;
    OK(cameo_model_load_memory(text, strlen(text), &options, model, &err));
    OK(cameo_model_costs(*model, &size, symbol != NULL, &costs, &err));
    return costs;
}

static const char net[] = "<ir_version: 8, opset_import: [\"\" : 17, \"f\" : 1]>\n"
                          "m (float[N,4] x) => (float[N,5] y)\n"
                          "<float[4,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},\n"
                          " float[3,5] v = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}>\n"
                          "{ h = MatMul(x, w)  a = Relu(h)  y = f.Product(a, v) }\n"
                          "<domain: \"f\", opset_import: [\"\" : 17]>\n"
                          "Product (p, q) => (r) { r = MatMul(p, q) }\n";

void test_costs__count_products_functions_included(void)
{
    struct cameo_model *model;
    const struct cameo_costs *costs = count(&model, net, "N", 2);

    CHECK(costs->flops == 2 * 2 * 4 * 3 + 2 * 2 * 3 * 5);
    CHECK_INT(costs->operator_count, 3);
    CHECK_STRING(costs->operators[0]->op.data, "Product");
    CHECK(costs->operators[0]->flops == 60);
    CHECK_INT(costs->size_count, 1);
    CHECK(!costs->sizes[0]->assumed);
    cameo_model_free(model);
}

void test_costs__know_what_lives_at_once(void)
{
    struct cameo_model *model;
    const struct cameo_costs *costs = count(&model, net, NULL, 0);

    CHECK(costs->sizes[0]->assumed && costs->sizes[0]->size == 1);
    CHECK_INT(costs->activation_bytes, 4 * (3 + 3 + 5));
    /* a, y, and r inside the function, which is y under another name */
    CHECK_INT(costs->peak_bytes, 4 * (3 + 5 + 5));
    CHECK_INT(costs->unknown_count, 0);
    cameo_model_free(model);
}

void test_costs__say_what_is_not_known(void)
{
    static const char text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                               "m (float[4] x) => (int64[1,n] y, float[4] z)\n"
                               "{ y = NonZero(x)  z = NoSuchOperator(x) }\n";
    struct cameo_model *model;
    const struct cameo_costs *costs = count(&model, text, NULL, 0);
    struct cameo_size size = CAMEO_SIZE_INIT;
    struct cameo_error err;

    CHECK_INT(costs->unknown_count, 1);
    CHECK_INT(costs->left_out, 1);
    size.symbol = "M";
    size.size = 3;
    CHECK_INT(cameo_model_costs(model, &size, 1, &costs, &err), CAMEO_NOT_FOUND);
    cameo_model_free(model);
}
