/* Builds the training of a tiny regression by hand, trains it, and takes it away again.
 *
 * training_info: y = w * x, told by four points that w is 3. */
// SPDX-License-Identifier: Apache-2.0
#include <cameo.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char line[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                           "line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {0}>\n"
                           "{ y = MatMul(x, w) }\n";

/* Nodes of an algorithm read values of the model: x, y and w. */
static const char step[] =
    "step (float[N,1] t) => (float loss, float[1,1] w_new) <float rate = {0.01}>\n"
    "{\n"
    "    e = Sub(y, t)\n"
    "    s = Mul(e, e)\n"
    "    loss = ReduceMean<keepdims = 0>(s)\n"
    "    g = ai.onnx.preview.training.Gradient<xs = [\"w\"], zs = [\"x\", \"t\"], y = \"loss\">"
    "(w, x, t)\n"
    "    d = Mul(rate, g)\n"
    "    w_new = Sub(w, d)\n"
    "}\n";

static const char start[] = "start () => (float[1,1] one) { one = Constant<value = "
                            "float[1,1] {1}>() }\n";

struct bytes {
    char data[4096];
    size_t size;
};

static int collect(void *to, const void *piece, size_t size)
{
    struct bytes *b = to;

    if (size > sizeof b->data - b->size)
        return 1;
    memcpy(b->data + b->size, piece, size);
    b->size += size;
    return 0;
}

static void must(enum cameo_status status, const struct cameo_error *err)
{
    if (status == CAMEO_OK)
        return;
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

static void build(struct cameo_model *model)
{
    struct cameo_findings *findings;
    struct cameo_error err;
    size_t entry;

    must(cameo_model_add_training(model, &entry, &err), &err);
    must(cameo_model_set_training_graph(model, entry, CAMEO_GRAPH_INITIALIZATION, start, &err),
         &err);
    must(cameo_model_bind_training(model, entry, CAMEO_GRAPH_INITIALIZATION, "w", "one", &err),
         &err);
    must(cameo_model_set_training_graph(model, entry, CAMEO_GRAPH_ALGORITHM, step, &err), &err);
    must(cameo_model_bind_training(model, entry, CAMEO_GRAPH_ALGORITHM, "w", "w_nwe", &err), &err);
    must(cameo_model_check_training(model, entry, NULL, &findings, &err), &err);
    for (size_t i = 0; i < cameo_findings_count(findings); i++)
        printf("%s: %s\n", cameo_findings_at(findings, i)->place.data,
               cameo_findings_at(findings, i)->reason.data);
    cameo_findings_free(findings);
    must(cameo_model_bind_training(model, entry, CAMEO_GRAPH_ALGORITHM, "w", "w_new", &err), &err);
    printf("%zu entry, %zu nodes in its algorithm\n", cameo_model_summary(model)->training_count,
           cameo_model_training(model, entry)->algorithm_node_count);
}

static void train(struct cameo_model *model)
{
    const float x[] = {1, 2, 3, 4}, t[] = {3, 6, 9, 12};
    const int64_t dims[] = {4, 1};
    const struct cameo_tensor xs = cameo_tensor_of(CAMEO_FLOAT, 2, dims, x, sizeof x);
    const struct cameo_tensor ts = cameo_tensor_of(CAMEO_FLOAT, 2, dims, t, sizeof t);
    const struct cameo_feed feeds[] = {cameo_feed_tensor("x", &xs), cameo_feed_tensor("t", &ts)};
    struct cameo_trainer *trainer;
    struct cameo_error err;
    double loss = 0;
    float w;

    must(cameo_trainer_new(model, NULL, &trainer, &err), &err);
    must(cameo_trainer_initialize(trainer, &err), &err);
    for (int i = 0; i < 20; i++) {
        must(cameo_trainer_step(trainer, feeds, 2, &loss, &err), &err);
        if (i % 5 == 0)
            printf("step %d: loss %.4f\n", i, loss);
    }
    must(cameo_trainer_read_variable(trainer, cameo_trainer_find_variable(trainer, "w"), &w,
                                     sizeof w, &err),
         &err);
    printf("w is %.3f\n", (double)w);
    cameo_trainer_free(trainer);
}

int main(void)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    static struct bytes before, between, after;
    struct cameo_model *text, *model;
    struct cameo_error err;

    options.format = CAMEO_FORMAT_TEXT;
    must(cameo_model_load_memory(line, sizeof line - 1, &options, &text, &err), &err);
    must(cameo_model_write(text, NULL, collect, &before, &err), &err);
    cameo_model_free(text);
    must(cameo_model_load_memory(before.data, before.size, NULL, &model, &err), &err);
    build(model);
    must(cameo_model_write(model, NULL, collect, &between, &err), &err);
    train(model);
    must(cameo_model_remove_training(model, 0, &err), &err);
    must(cameo_model_write(model, NULL, collect, &after, &err), &err);
    printf("%s bytes with training, %s without\n", between.size > before.size ? "more" : "no more",
           after.size == before.size && memcmp(after.data, before.data, after.size) == 0
               ? "the same as before"
               : "others than before");
    cameo_model_free(model);
    return 0;
}
