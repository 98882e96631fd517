/* Memory that goes from one library to another without a copy: a block of this program's is fed
 * with a function that frees it, every second column of a table is fed as it lies, and a result
 * leaves as DLPack, for NumPy, PyTorch or JAX. A log says which kernels ran. */
// SPDX-License-Identifier: Apache-2.0
#include <cameo_dlpack.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char model_text[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                 "g (float[2,2] x, float[2,2] table) => (float[2,2] y)\n"
                                 "{ y = Add(x, table) }\n";

static void free_block(void *block)
{
    puts("the block is freed");
    free(block);
}

static void print_log(void *arg, enum cameo_log_level level, const char *message)
{
    (void)arg;
    if (level == CAMEO_LOG_DEBUG && strncmp(message, "node ", 5) == 0)
        printf("log: %s\n", message);
}

/* The library owns the block from now on. */
static enum cameo_status make_value(struct cameo_value **out, struct cameo_error *err)
{
    static const int64_t dims[] = {2, 2};
    float *block = malloc(4 * sizeof *block);
    struct cameo_tensor tensor = cameo_tensor_of(CAMEO_FLOAT, 2, dims, block, 4 * sizeof *block);

    for (int i = 0; block && i < 4; i++)
        block[i] = (float)i;
    tensor.deleter = free_block;
    tensor.deleter_arg = block;
    const enum cameo_status status = cameo_value_from_tensor(&tensor, out, err);
    if (status != CAMEO_OK)
        free(block); /* it stayed ours */
    return status;
}

static enum cameo_status run_model(struct cameo_session *session, const struct cameo_value *x,
                                   struct cameo_value **out, struct cameo_error *err)
{
    static const float table[2][4] = {{10, 0, 20, 0}, {30, 0, 40, 0}};
    static const int64_t dims[] = {2, 2}, strides[] = {4, 2}; /* in elements */
    struct cameo_tensor columns = cameo_tensor_of(CAMEO_FLOAT, 2, dims, table, sizeof table);
    struct cameo_fetch fetch = cameo_fetch_value("y");

    columns.strides = strides;
    const struct cameo_feed feeds[] = {cameo_feed_value("x", x),
                                       cameo_feed_tensor("table", &columns)};
    const enum cameo_status status = cameo_session_run(session, feeds, 2, &fetch, 1, NULL, err);
    *out = fetch.value;
    return status;
}

int main(void)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_session_options plain = CAMEO_SESSION_OPTIONS_INIT;
    struct DLManagedTensorVersioned *tensor = NULL;
    struct cameo_value *x = NULL, *y = NULL;
    struct cameo_session *session = NULL;
    struct cameo_model *model = NULL;
    struct cameo_error err;

    options.format = CAMEO_FORMAT_TEXT;
    plain.backend = "reference";
    enum cameo_status status =
        cameo_model_load_memory(model_text, strlen(model_text), &options, &model, &err);
    if (status == CAMEO_OK) {
        cameo_model_set_log(model, print_log, NULL);
        status = cameo_session_new(model, &plain, &session, &err);
    }
    if (status == CAMEO_OK)
        status = make_value(&x, &err);
    if (status == CAMEO_OK)
        status = run_model(session, x, &y, &err);
    cameo_value_free(x);
    if (status == CAMEO_OK)
        status = cameo_value_to_dlpack(y, &tensor, &err);
    cameo_value_free(y); /* the tensor holds its memory */
    cameo_session_free(session);
    cameo_model_free(model);
    if (status != CAMEO_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    const float *values = tensor->dl_tensor.data;
    printf("%d axes: %g %g %g %g\n", (int)tensor->dl_tensor.ndim, (double)values[0],
           (double)values[1], (double)values[2], (double)values[3]);
    tensor->deleter(tensor);
    return 0;
}
