/* Measures a model on a data set: evaluate MODEL DATA [METRICS]
 *
 * The array of the data that no input of the model is named after is the truth. */
// SPDX-License-Identifier: Apache-2.0
#include <cameo.h>

#include <stdio.h>

static int fail(const struct cameo_error *err)
{
    fprintf(stderr, "%s\n", err->message);
    return 1;
}

int main(int argc, char **argv)
{
    struct cameo_evaluate_options options = CAMEO_EVALUATE_OPTIONS_INIT;
    struct cameo_stream_options stream = CAMEO_STREAM_OPTIONS_INIT;
    struct cameo_evaluation *evaluation = NULL;
    struct cameo_dataset *dataset = NULL;
    struct cameo_model *model = NULL;
    const struct cameo_metric *metric;
    struct cameo_error err;
    int code = 0;

    if (argc < 3) {
        fprintf(stderr, "usage: evaluate MODEL DATA [METRICS]\n");
        return 2;
    }
    options.metrics = argc > 3 ? argv[3] : NULL; /* NULL: those that fit */
    options.stream = &stream;
    stream.batch_size = 64; /* a data set larger than memory is no trouble */
    if (cameo_model_load(argv[1], NULL, &model, &err) != CAMEO_OK ||
        cameo_dataset_open(argv[2], NULL, &dataset, &err) != CAMEO_OK ||
        cameo_model_evaluate(model, dataset, &options, &evaluation, &err) != CAMEO_OK)
        code = fail(&err);
    for (size_t i = 0; evaluation && (metric = cameo_evaluation_metric(evaluation, i)); i++)
        printf("%s %.4g\n", metric->name, metric->value);
    cameo_evaluation_free(evaluation);
    cameo_dataset_free(dataset);
    cameo_model_free(model);
    return code;
}
