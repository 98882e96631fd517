/* cameo demo: a whole training from nothing, each step with the command that does it. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include "demo_digits.h"
#include "demo_model.h"
#include "demo_show.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRAINING = 8000, VALIDATION = 1000, SHOWN = 4, FOLDERS_MAX = 100 };

static const char *asked_folder;
static size_t seed, epochs, threads;

/* ---- the folder ---- */

static int folder_failed(const char *folder)
{
    const int why = errno;

    cli_complain("demo: cannot make the folder '%s': %s", folder, strerror(why));
    return cli_errno_code(why);
}

static bool is_empty(const char *folder)
{
    DIR *list = cli_or_absent(opendir(folder));
    const struct dirent *entry;
    bool empty = list != NULL;

    while (list && (entry = readdir(list)))
        empty = empty && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
    if (list)
        closedir(list);
    return empty;
}

/* Nothing that is there already is written over. */
static int make_folder(char *folder, size_t size)
{
    for (int i = 1; !asked_folder && i < FOLDERS_MAX; i++) {
        snprintf(folder, size, i > 1 ? "cameo-demo-%d" : "cameo-demo", i);
        if (mkdir(folder, 0777) == 0)
            return CLI_YES;
        if (errno != EEXIST)
            return folder_failed(folder);
    }
    if (!asked_folder)
        return folder_failed(folder);
    if ((size_t)snprintf(folder, size, "%s", asked_folder) >= size) {
        cli_complain("demo: the name of the folder is too long");
        return CLI_USAGE;
    }
    if (mkdir(folder, 0777) == 0)
        return CLI_YES;
    const int why = errno;
    if (why == EEXIST && is_empty(folder))
        return CLI_YES;
    errno = why;
    if (why != EEXIST)
        return folder_failed(folder);
    cli_complain("demo: '%s' is there already and not an empty folder", folder);
    return CLI_USAGE;
}

static int enter_folder(char *folder, size_t size)
{
    const int code = make_folder(folder, size);

    if (code != CLI_YES)
        return code;
    if (chdir(folder) != 0) {
        cli_complain("demo: cannot go to the folder '%s': %s", folder, strerror(errno));
        return CLI_MACHINE;
    }
    return CLI_YES;
}

/* ---- data and model ---- */

/* Seeds of the two sets and of the unseen image must differ whatever the user's is. */
static int make_set(const char *path, int64_t count, uint64_t part, struct demo_digits *digits)
{
    struct cameo_error err;
    uint64_t bytes = 0;
    char number[CLI_NUMBER_SIZE], size[CLI_NUMBER_SIZE];

    if (demo_digits_make(digits, count, seed * 3 + part, &err) != CAMEO_OK)
        return cli_fail(&err);
    if (demo_digits_save(digits, path, "image", "label", &err) != CAMEO_OK) {
        demo_digits_free(digits);
        return cli_fail(&err);
    }
    cli_file_size(path, &bytes);
    printf("  %-15s %6s images with their labels, %s\n", path, cli_number(number, (uint64_t)count),
           cli_bytes(size, bytes));
    return CLI_YES;
}

static void show_some(const struct demo_digits *digits)
{
    const float *all = cameo_value_data(digits->images), *shown[SHOWN];

    for (int i = 0; i < SHOWN; i++)
        shown[i] = all + (size_t)i * DEMO_PIXELS;
    demo_digits_print(stdout, shown, SHOWN, 2, cli_terminal_has_braille());
    for (int i = 0; i < SHOWN; i++)
        printf("%*lld", i ? DEMO_SIDE + 1 : DEMO_SIDE / 2 + 2,
               (long long)cameo_value_integer(digits->labels, i));
    putchar('\n');
}

static int make_data(void)
{
    struct demo_digits digits;
    int code = make_set("train.npz", TRAINING, 0, &digits);

    if (code != CLI_YES)
        return code;
    demo_digits_free(&digits);
    code = make_set("validate.npz", VALIDATION, 1, &digits);
    if (code != CLI_YES)
        return code;
    putchar('\n');
    show_some(&digits);
    demo_digits_free(&digits);
    return CLI_YES;
}

static int make_model(void)
{
    static const char path[] = "digits.onnxtxt";
    struct cli_output output;
    char number[CLI_NUMBER_SIZE];
    int code = cli_output_begin(&output, path);

    if (code != CLI_YES)
        return code;
    demo_model_write(output.to, seed);
    code = cli_output_end(&output, CLI_YES);
    if (code != CLI_YES)
        return code;
    printf("  %s is ONNX as text, a network of %s weights:\n\n"
           "  image > Conv > Relu > MaxPool > Conv > Relu > MaxPool > Gemm > Softmax\n\n"
           "  Its training info, a part of the ONNX standard, says how to train it:\n"
           "  random weights to begin with, cross-entropy, its Gradient, then Adam.\n",
           path, cli_number(number, (uint64_t)demo_model_weights()));
    return demo_command("check", "digits.onnxtxt", NULL);
}

/* ---- training ---- */

/* A network as small as this gains little from a second thread, and one gives the same numbers
 * wherever the demo runs. */
static int train(void)
{
    char epochs_text[24], threads_text[24], seed_text[24];

    snprintf(epochs_text, sizeof epochs_text, "%zu", epochs);
    snprintf(threads_text, sizeof threads_text, "%zu", threads);
    snprintf(seed_text, sizeof seed_text, "%zu", seed);
    return demo_command("train", "digits.onnxtxt", "--init", "--data", "train.npz", "--validate",
                        "validate.npz", "--batch-size", "64", "--epochs", epochs_text, "--seed",
                        seed_text, "--threads", threads_text, "--log", "log.jsonl", "-o",
                        "trained.onnx", NULL);
}

static int plot(void)
{
    int code = demo_command("plot", "log.jsonl", "--only", "loss", NULL);

    if (code == CLI_YES)
        code = demo_command("plot", "log.jsonl", "--log-scale", "-o", "curve.svg", NULL);
    if (code == CLI_YES)
        printf("  curve.svg has the loss, the accuracy and the learning rate as a picture\n");
    return code;
}

/* The last of the validations, from the log. */
static int read_accuracy(double *accuracy)
{
    struct cameo_curves *curves;
    struct cameo_curve curve;
    struct cameo_error err;

    if (cameo_curves_new(&curves, &err) != CAMEO_OK)
        return cli_fail(&err);
    const enum cameo_status status = cameo_curves_read(curves, "log.jsonl", NULL, &err);
    *accuracy = 0;
    for (size_t i = 0; cameo_curves_at(curves, i, &curve); i++)
        if (strcmp(curve.name.data, "validation_accuracy") == 0 && curve.count)
            *accuracy = curve.values[curve.count - 1];
    cameo_curves_free(curves);
    return status == CAMEO_OK ? CLI_YES : cli_fail(&err);
}

/* ---- the guess ---- */

static int guess(const struct cameo_value *image, int64_t truth)
{
    const struct cameo_feed feed = cameo_feed_value("image", image);
    struct cameo_fetch fetch = cameo_fetch_value("probability");
    struct cameo_session *session = NULL;
    struct cameo_model *model = NULL;
    struct cameo_error err;
    int code = CLI_YES;

    if (cli_load_model("net.onnx", NULL, &model, &err) != CAMEO_OK ||
        cameo_session_new(model, NULL, &session, &err) != CAMEO_OK ||
        cameo_session_run(session, &feed, 1, &fetch, 1, NULL, &err) != CAMEO_OK)
        code = cli_fail(&err);
    else
        demo_show_guess(cameo_value_data(image), fetch.value, truth);
    cameo_value_free(fetch.value);
    cameo_session_free(session);
    cameo_model_free(model);
    return code;
}

/* One image of a set that is in neither file, and its label. Gives an exit code. */
static int draw_unseen(struct cameo_value **image, int64_t *label)
{
    const int64_t dims[] = {1, 1, DEMO_SIDE, DEMO_SIDE};
    struct demo_digits digits;
    struct cameo_error err;

    if (demo_digits_make(&digits, 10, seed * 3 + 2, &err) != CAMEO_OK)
        return cli_fail(&err);
    *label = cameo_value_integer(digits.labels, 0);
    enum cameo_status status = cameo_value_new(CAMEO_FLOAT, 4, dims, image, &err);
    if (status == CAMEO_OK)
        memcpy(cameo_value_mutable_data(*image), cameo_value_data(digits.images),
               cameo_value_bytes(*image));
    demo_digits_free(&digits);
    return status == CAMEO_OK ? CLI_YES : cli_fail(&err);
}

static int run_unseen(void)
{
    static const char *const names[] = {"image"};
    struct cameo_value *image;
    struct cameo_error err;
    int64_t label = 0;
    int code = draw_unseen(&image, &label);

    if (code != CLI_YES)
        return code;
    const struct cameo_value *const values[] = {image};
    if (cameo_arrays_save("unseen.npy", names, values, 1, &err) != CAMEO_OK)
        code = cli_fail(&err);
    if (code == CLI_YES)
        code = demo_command("run", "net.onnx", "--input", "image=unseen.npy", NULL);
    if (code == CLI_YES) {
        putchar('\n');
        code = guess(image, label);
    }
    cameo_value_free(image);
    return code;
}

/* ---- the walk ---- */

static int walk(const char *folder)
{
    static const struct {
        const char *title;
        int (*act)(void);
    } steps[] = {
        {"Data: digits as a hand draws them, made up from a seed", make_data},
        {"A model that carries its own training", make_model},
        {"Train it", train},
        {"How the loss went", plot},
        {"Without its training, it is a model for any ONNX runtime", NULL},
        {"A digit that it has never seen", run_unseen},
    };

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        demo_heading((int)i + 1, steps[i].title);
        if (i == 0)
            demo_show_folder(folder);
        const int code = steps[i].act
                             ? steps[i].act()
                             : demo_command("strip", "trained.onnx", "-o", "net.onnx", NULL);
        if (code != CLI_YES)
            return code;
        demo_time();
        if (cli_reader_gone)
            return CLI_YES;
    }
    return CLI_YES;
}

static int demo_main(char **operands, int count)
{
    char folder[4096];
    double accuracy = 0;

    (void)operands;
    (void)count;
    if (!epochs)
        epochs = 8;
    if (!threads)
        threads = 1;
    int code = enter_folder(folder, sizeof folder);
    if (code == CLI_YES)
        code = demo_begin();
    if (code == CLI_YES)
        code = walk(folder);
    if (code != CLI_YES || cli_reader_gone)
        return code;
    code = read_accuracy(&accuracy);
    if (code == CLI_YES)
        demo_end(folder, accuracy);
    return code;
}

static const struct cli_option options[] = {
    {"--dir", NULL, "DIR", "a new or empty folder for its files (cameo-demo)", CLI_TEXT,
     &asked_folder},
    {"--seed", NULL, "N", "seed of the digits and of the first weights (0)", CLI_SIZE, &seed},
    {"--epochs", NULL, "N", "passes over the data (8)", CLI_SIZE, &epochs},
    {"--threads", NULL, "N", "threads (1: the network is small)", CLI_SIZE, &threads},
    {0},
};

CLI_COMMAND(demo, demo_main, "[--dir DIR] [--seed N] [--epochs N]",
            "train a small network from nothing, step by step",
            "Draws a set of digits, writes a small network that carries its own training, trains\n"
            "it, shows the curve, saves it, and lets it read a digit. Every step shows the\n"
            "command that does it. All files stay in a new folder, to play with.",
            "cameo demo # takes some seconds\n"
            "cameo demo --seed 7 --dir seven # other digits, other weights",
            "0 if all went well, 130 if it was stopped", options, 0, 0);
