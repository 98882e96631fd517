/* cameo evaluate: how good a model is on a data set. */
// SPDX-License-Identifier: Apache-2.0
#include "stream.h"
#include "training_names.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *metrics, *loss, *output, *target, *class_axis, *ignore, *classes;

enum { LABELS_MAX = 4096, MATRIX_MAX = 30 };

static int64_t labels[LABELS_MAX];

/* A whole number, or several parted by commas; returns how many, 0 for nonsense. */
static size_t read_numbers(const char *text, int64_t *out, size_t room)
{
    for (size_t count = 0; count < room;) {
        char *end;

        errno = 0;
        out[count++] = strtoll(text, &end, 10);
        if (end == text || errno || (*end && *end != ','))
            return 0;
        if (!*end)
            return count;
        text = end + 1;
    }
    return 0;
}

static bool read_number(const char *name, const char *text, int64_t *out)
{
    if (!text || read_numbers(text, out, 1) == 1)
        return true;
    cli_complain("evaluate: %s is '%s', expected a whole number", name, text);
    return false;
}

/* ---- text ---- */

static size_t class_count(const struct cameo_evaluation *e)
{
    size_t count = 0;

    while (cameo_evaluation_class(e, count))
        count++;
    return count;
}

static double part(uint64_t some, uint64_t all)
{
    return all ? (double)some / (double)all : 0;
}

static void put_classes(const struct cameo_evaluation *e)
{
    const struct cameo_class_count *c;

    printf("\n%10s %10s %10s %10s %10s\n", "class", "samples", "precision", "recall", "f1");
    for (size_t i = 0; (c = cameo_evaluation_class(e, i)) && i < MATRIX_MAX; i++)
        printf("%10lld %10llu %10.4f %10.4f %10.4f\n", (long long)c->label,
               (unsigned long long)c->actual, part(c->correct, c->predicted),
               part(c->correct, c->actual), part(2 * c->correct, c->actual + c->predicted));
}

static void put_matrix(const struct cameo_evaluation *e)
{
    const size_t count = class_count(e);

    if (cameo_evaluation_confused(e, 0, 0) < 0)
        return;
    if (count > MATRIX_MAX) {
        printf("\nconfusion: %zu classes, use --json to see all of it\n", count);
        return;
    }
    printf("\nconfusion: a row for each class, a column for what it was taken for\n%10s", "");
    for (size_t k = 0; k < count; k++)
        printf(" %7lld", (long long)cameo_evaluation_class(e, k)->label);
    for (size_t i = 0; i < count; i++) {
        printf("\n%10lld", (long long)cameo_evaluation_class(e, i)->label);
        for (size_t k = 0; k < count; k++)
            printf(" %7lld", (long long)cameo_evaluation_confused(e, i, k));
    }
    putchar('\n');
}

static void put_text(const struct cameo_evaluation *e)
{
    const struct cameo_metric *m;
    const char *note;
    char number[CLI_NUMBER_SIZE];
    const size_t count = class_count(e);

    for (size_t i = 0; (note = cameo_evaluation_note(e, i)); i++)
        cli_complain("note: %s", note);
    printf("%-12s %s\n", "samples", cli_number(number, (uint64_t)cameo_evaluation_samples(e)));
    for (size_t i = 0; (m = cameo_evaluation_metric(e, i)); i++) {
        printf("%-12s ", m->name);
        if (isnan(m->value))
            printf("undefined");
        else
            printf("%.6g", m->value);
        if (m->bound > 0)
            printf(" +- %.1g", m->bound);
        printf(*m->average ? "  (%s)\n" : "%s\n", m->average);
    }
    if (count > 0 && count <= MATRIX_MAX && (!metrics || cameo_evaluation_confused(e, 0, 0) >= 0))
        put_classes(e);
    put_matrix(e);
}

/* ---- JSON ---- */

static void put_real(struct cli_json *to, const char *key, double number)
{
    if (isfinite(number))
        cli_json_real(to, key, number);
    else
        cli_json_null(to, key);
}

static void put_json(const struct cameo_evaluation *e)
{
    struct cli_json to = {.to = stdout};
    const size_t count = class_count(e);
    const struct cameo_metric *m;
    const char *note;
    char key[64];

    cli_json_open(&to, NULL, '{');
    cli_json_int(&to, "samples", cameo_evaluation_samples(e));
    cli_json_open(&to, "metrics", '{');
    for (size_t i = 0; (m = cameo_evaluation_metric(e, i)); i++) {
        const bool averaged = *m->average && strcmp(m->average, "class 1") != 0;

        snprintf(key, sizeof key, "%s%s%s", m->name, averaged ? "-" : "",
                 averaged ? m->average : "");
        put_real(&to, key, m->value);
    }
    cli_json_close(&to, '}');
    if (count) {
        cli_json_open(&to, "classes", '[');
        for (size_t i = 0; i < count; i++) {
            const struct cameo_class_count *c = cameo_evaluation_class(e, i);

            cli_json_open(&to, NULL, '{');
            cli_json_int(&to, "label", c->label);
            cli_json_count(&to, "samples", c->actual);
            cli_json_count(&to, "predicted", c->predicted);
            cli_json_count(&to, "correct", c->correct);
            cli_json_close(&to, '}');
        }
        cli_json_close(&to, ']');
    }
    if (cameo_evaluation_confused(e, 0, 0) >= 0) {
        cli_json_open(&to, "confusion", '[');
        for (size_t i = 0; i < count; i++) {
            cli_json_open(&to, NULL, '[');
            for (size_t k = 0; k < count; k++)
                cli_json_int(&to, NULL, cameo_evaluation_confused(e, i, k));
            cli_json_close(&to, ']');
        }
        cli_json_close(&to, ']');
    }
    cli_json_open(&to, "notes", '[');
    for (size_t i = 0; (note = cameo_evaluation_note(e, i)); i++)
        cli_json_string(&to, NULL, note);
    cli_json_close(&to, ']');
    cli_json_close(&to, '}');
}

/* ---- all of it ---- */

static int evaluate(struct cameo_evaluate_options *options)
{
    struct cameo_evaluation *evaluation;
    struct cameo_error err;

    options->metrics = metrics;
    options->loss = loss;
    options->output = output;
    options->target = target;
    options->stream = &cli_stream.options;
    if (cameo_model_evaluate(cli_stream.model, cli_stream.dataset, options, &evaluation, &err) !=
        CAMEO_OK)
        return cli_stream_fail(&err);
    cli_stream_clear();
    if (cli_as_json)
        put_json(evaluation);
    else
        put_text(evaluation);
    cameo_evaluation_free(evaluation);
    return cli_flush(stdout, "standard output");
}

static int evaluate_main(char **operands, int count)
{
    struct cameo_evaluate_options options = CAMEO_EVALUATE_OPTIONS_INIT;

    (void)count;
    if (!read_number("--class-axis", class_axis, &options.class_axis) ||
        !read_number("--ignore", ignore, &options.ignored))
        return CLI_USAGE;
    if (classes) {
        options.classes = labels;
        options.class_count = read_numbers(classes, labels, LABELS_MAX);
        if (!options.class_count) {
            cli_complain("evaluate: --classes is '%s', expected whole numbers parted by commas",
                         classes);
            return CLI_USAGE;
        }
    }
    int code = cli_stream_open("evaluate", operands[0]);
    if (code == CLI_YES)
        code = evaluate(&options);
    cli_stream_close();
    return code;
}

static const struct cli_option options[] = {
    {"--data", "-d", "FILE", "what to judge by: .npz, .npy, .safetensors, .csv, IDX, a folder",
     CLI_TEXTS, &cli_stream.data},
    {"--metrics", "-m", "NAME,..",
     "loss, accuracy, top-5, confusion, precision, recall, f1, f1-macro,\n"
     "f1-micro, f1-weighted, auc, mae, mse, rmse, r2; those that fit otherwise",
     CLI_TEXT, &metrics},
    {"--loss", NULL, "LOSS", CAMEO_LOSS_HELP "; that of the model's training otherwise", CLI_TEXT,
     &loss},
    {"--of", NULL, "NAME", "which output of the model is judged, when there are several", CLI_TEXT,
     &output},
    {"--output", NULL, NULL, "--of", CLI_OLD, NULL},
    {"--target", NULL, "NAME", "which array of the data holds the truth; the one left over",
     CLI_TEXT, &target},
    {"--class-axis", NULL, "N", "which axis of scores is over classes (1; -1: the last)", CLI_TEXT,
     &class_axis},
    {"--classes", NULL, "N,..", "labels that the columns of scores stand for (0,1,..)", CLI_TEXT,
     &classes},
    {"--ignore", NULL, "N", "a label that does not count (-100)", CLI_TEXT, &ignore},
    {"--json", NULL, NULL, "results as JSON", CLI_FLAG, &cli_as_json},
    CLI_SARIF_OPTION,
    CLI_STREAM_OPTIONS,
    {0},
};

CLI_COMMAND(
    evaluate, evaluate_main, "MODEL --data FILE [OPTION]...", "measure a model on a data set",
    "Runs the model over the data, batch by batch, and compares what it predicts with the truth:\n"
    "the array that no input is named after, or the one that --target names. Whole numbers as\n"
    "truth and a score for each class make a classifier, numbers of the same shape a regression.\n"
    "Metrics are defined as in scikit-learn, losses as in PyTorch. The model is not changed.",
    "cameo evaluate trained.onnx --data test.npz # the loss of its training, accuracy, F1, AUC\n"
    "cameo evaluate forest.onnx -d test.csv --columns 'X=*,y=label' -m accuracy,confusion\n"
    "cameo evaluate net.onnx -d test.npz --loss cross-entropy -m loss,top-1,top-5 --json",
    "0 if it was measured, 1 if the model or the data does not allow it,\n"
    "  130 if it was stopped",
    options, 1, 1);
