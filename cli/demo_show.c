/* What `cameo demo` shows: headings, the commands it runs, a guess, where to go next. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "demo_show.h"
#include "demo_digits.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WORDS_MAX = 32, COLUMNS = 78, BAR = 30 };

/* ---- time and style ---- */

static double started, heading_at;

static double seconds(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

/* Colours only for people: not into files, nor where they asked for none. */
static const char *style(const char *code)
{
    const char *none = getenv("NO_COLOR");

    return isatty(STDOUT_FILENO) == 1 && !(none && *none) ? code : "";
}

#define BOLD  style("\033[1m")
#define DIM   style("\033[2m")
#define GREEN style("\033[32m")
#define PLAIN style("\033[0m")

int demo_begin(void)
{
    started = seconds();
    printf("This trains a network from nothing. Each $ is a command that you can type too.\n");
    return cli_flush(stdout, "standard output");
}

void demo_heading(int number, const char *title)
{
    printf("\n%s%d  %s%s\n", BOLD, number, title, PLAIN);
    heading_at = seconds();
}

void demo_time(void)
{
    const double took = seconds() - heading_at;

    if (took >= 0.1)
        printf("%s  %.1f s%s\n", DIM, took, PLAIN);
}

/* ---- commands ---- */

/* A word as a shell takes it. */
static void put_word(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_./=+,:@%";

    if (*word && !word[strspn(word, plain)]) {
        fputs(word, stdout);
        return;
    }
    putchar('\'');
    for (const char *at = word; *at;) {
        const size_t size = strcspn(at, "'");

        cli_put_text(stdout, at, size);
        at += size;
        if (*at)
            fputs("'\\''", stdout), at++;
    }
    putchar('\'');
}

/* Words that fit a terminal's width, the rest on lines that a shell joins. */
static void put_words(const char *const *words, int count)
{
    int column = 0;

    printf("%s$", DIM);
    for (int i = 0; i < count; i++) {
        /* an option stays with its value */
        const bool pair = words[i][0] == '-' && i + 1 < count && words[i + 1][0] != '-';
        const int size = (int)(strlen(words[i]) + (pair ? strlen(words[i + 1]) + 1 : 0));

        if (column + size + 4 > COLUMNS && i > 0) {
            printf(" \\\n   ");
            column = 3;
        }
        putchar(' ');
        put_word(words[i]);
        if (pair) {
            putchar(' ');
            put_word(words[++i]);
        }
        column += size + 1;
    }
    printf("%s\n", PLAIN);
}

void demo_show_folder(const char *folder)
{
    printf("%s$ mkdir ", DIM);
    put_word(folder);
    fputs(" && cd ", stdout);
    put_word(folder);
    printf("%s\n", PLAIN);
}

/* A command's options are as it finds them when nothing is given: the demo runs some twice. */
static void reset_options(const struct cli_command *command)
{
    for (const struct cli_option *option = command->options; option->name; option++)
        switch (option->kind) {
        case CLI_FLAG:
            *(bool *)option->value = false;
            break;
        case CLI_TEXT:
            *(const char **)option->value = NULL;
            break;
        case CLI_TEXTS:
            ((struct cli_texts *)option->value)->count = 0;
            break;
        case CLI_SIZE:
        case CLI_COUNT:
            *(size_t *)option->value = 0;
            break;
        case CLI_OLD:
            break;
        }
}

/* Parsing moves words about, and what it finds points into them: text lives on, words need not. */
static int run_words(const struct cli_command *command, char **words, int count)
{
    bool help = false;

    reset_options(command);
    const int operands = cli_parse(command, count, words, &help);
    return operands < 0 ? CLI_USAGE : command->main(words, operands);
}

int demo_command(const char *name, ...)
{
    const struct cli_command *command = cli_find_command(name);
    const char *shown[WORDS_MAX] = {"cameo", name};
    char *words[WORDS_MAX], room[1024];
    size_t used = 0;
    int count = 0;
    va_list list;

    if (!command) {
        cli_complain("demo: there is no subcommand '%s'", name);
        return CLI_USAGE;
    }
    va_start(list, name);
    for (const char *word; count < WORDS_MAX - 2 && (word = va_arg(list, const char *)); count++) {
        const size_t size = strlen(word) + 1;

        if (size > sizeof room - used)
            break;
        words[count] = memcpy(room + used, word, size);
        shown[count + 2] = words[count];
        used += size;
    }
    va_end(list);
    put_words(shown, count + 2);
    int code = cli_flush(stdout, "standard output");
    if (code == CLI_YES)
        code = run_words(command, words, count);
    fflush(stdout);
    return code;
}

/* ---- the guess ---- */

static void put_bar(double share, bool unicode)
{
    const int cells = (int)(share * BAR + 0.5);

    if (cells)
        putchar(' ');
    for (int i = 0; i < cells; i++)
        fputs(unicode ? "█" : "#", stdout);
}

/* The lines of the image, without the newlines. */
static char *draw_image(const float *image, bool unicode, char **lines, int count)
{
    char *text = NULL, *at;
    size_t size = 0;
    FILE *to = cli_open_text(&text, &size);

    for (int i = 0; i < count; i++)
        lines[i] = "";
    demo_digit_print(to, image, 0, unicode);
    cli_close_text(to);
    at = text;
    for (int i = 0; i < count && *at; i++) {
        lines[i] = at;
        at += strcspn(at, "\n");
        if (*at)
            *at++ = '\0';
    }
    return text;
}

void demo_show_guess(const float *image, const struct cameo_value *probability, int64_t truth)
{
    const bool unicode = cli_terminal_has_braille();
    enum { LINES = DEMO_SIDE / 2, CLASSES = 10 };
    char *lines[LINES];
    char *text = draw_image(image, unicode, lines, LINES);
    int64_t best = 0;

    for (int64_t i = 1; i < cameo_value_count(probability); i++)
        if (cameo_value_real(probability, i) > cameo_value_real(probability, best))
            best = i;
    for (int64_t i = 0; i < CLASSES; i++) {
        const double share = cameo_value_real(probability, i);
        const int64_t line = i - (CLASSES - LINES) / 2;

        if (line >= 0 && line < LINES && *lines[line])
            printf("    %s", lines[line]);
        else
            printf("%*s", DEMO_SIDE + 4, "");
        printf("    %s%lld %5.1f %%", i == best ? GREEN : "", (long long)i, 100 * share);
        put_bar(share, unicode);
        printf("%s\n", i == best ? PLAIN : "");
    }
    printf("\n  It says %s%lld%s", BOLD, (long long)best, PLAIN);
    if (best == truth)
        printf(", and that is right.\n");
    else
        printf("; it was drawn as %lld.\n", (long long)truth);
    free(text);
}

/* ---- the end ---- */

void demo_end(const char *folder, double accuracy)
{
    printf("\n%sDone in %.1f s: it reads %.1f %% of digits that it was not trained on.%s\n", BOLD,
           seconds() - started, 100 * accuracy, PLAIN);
    printf("\nLook at curve.svg, and go on in the folder:\n\n  cd ");
    put_word(folder);
    printf("\n"
           "  cameo print --elide 4 digits.onnxtxt\n"
           "      the model as text, its training included\n"
           "  cameo train trained.onnx --data train.npz -o better.onnx\n"
           "      one more pass: the optimizer goes on where it was\n"
           "  cameo train net.onnx --data train.npz --loss cross-entropy \\\n"
           "      --optimizer adamw --epochs 2 -o tuned.onnx\n"
           "      a model without training info, as your own may be\n"
           "  cameo help train\n"
           "      all that training can do\n");
}
