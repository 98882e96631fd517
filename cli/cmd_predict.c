/* cameo predict: what a model says about a data set, to a file. */
// SPDX-License-Identifier: Apache-2.0
#include "stream.h"

#include <string.h>

static const char *out_path, *outputs;

static int predict(void)
{
    struct cameo_predict_options options = CAMEO_PREDICT_OPTIONS_INIT;
    struct cameo_prediction report = CAMEO_PREDICTION_INIT;
    struct cameo_error err;
    char number[CLI_NUMBER_SIZE];

    options.outputs = outputs;
    options.stream = &cli_stream.options;
    if (cameo_model_predict(cli_stream.model, cli_stream.dataset, out_path, &options, &report,
                            &err) != CAMEO_OK)
        return cli_stream_fail(&err);
    cli_stream_clear();
    if (*report.note)
        cli_complain("note: %s", report.note);
    printf("wrote ");
    cli_put_text(stdout, out_path, strlen(out_path));
    printf(": %zu output%s of %s sample%s\n", report.output_count,
           report.output_count == 1 ? "" : "s", cli_number(number, (uint64_t)report.samples),
           report.samples == 1 ? "" : "s");
    return cli_flush(stdout, "standard output");
}

static int predict_main(char **operands, int count)
{
    (void)count;
    if (!out_path) {
        cli_complain("predict: no file to write was given, add -o FILE");
        return CLI_USAGE;
    }
    int code = cli_stream_open("predict", operands[0]);
    if (code == CLI_YES)
        code = cli_may_write("predict: -o", out_path);
    if (code == CLI_YES)
        code = cli_check_writable(out_path);
    if (code == CLI_YES)
        code = predict();
    cli_stream_close();
    return code;
}

static const struct cli_option options[] = {
    {"--data", "-d", "FILE", "what to predict for: .npz, .npy, .safetensors, .csv, IDX, a folder",
     CLI_TEXTS, &cli_stream.data},
    {"--output", "-o", "FILE", "the file of predictions: .npz, .npy, .safetensors or .csv",
     CLI_TEXT, &out_path},
    {"--out", NULL, NULL, "--output", CLI_OLD, NULL},
    {"--outputs", NULL, "NAME,..", "these outputs of the model; all of them otherwise", CLI_TEXT,
     &outputs},
    CLI_STREAM_OPTIONS,
    {0},
};

CLI_COMMAND(
    predict, predict_main, "MODEL --data FILE -o FILE [OPTION]...",
    "run a model over a data set, write what it predicts",
    "Arrays of the data go to the inputs of the same names, batch by batch; what the model\n"
    "outputs for each sample goes to a file, as arrays named after outputs or as columns\n"
    "of text. A data set may be larger than memory. Scores that come as a sequence\n"
    "of maps, as scikit-learn's converter writes them, become a matrix.",
    "cameo predict net.onnx --data new.npz -o predictions.npz\n"
    "cameo predict forest.onnx -d new.csv --columns 'X=*' -o predictions.csv # as text\n"
    "cameo predict net.onnx -d new.npz --outputs probabilities -o p.npy # one array",
    "0 if it was written, 1 if the model or the data does not allow it,\n"
    "  130 if it was stopped",
    options, 1, 1);
