/* Options as the user types them. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { WORD_MAX = 40 };

/* Edits, a swap of neighbours being one, that turn a into b. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][WORD_MAX + 1];
    const size_t n = strlen(a), m = strlen(b);

    if (n > WORD_MAX || m > WORD_MAX)
        return WORD_MAX;
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);

            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[n % 3][m];
}

const char *cli_suggest(const char *typed, const char *const *candidates, size_t count)
{
    const char *nearest = NULL;
    size_t least = strlen(typed) / 3 + 1;

    for (size_t i = 0; i < count; i++) {
        const size_t edits = distance(typed, candidates[i]);
        const bool begins = strlen(typed) > 2 && !strncmp(typed, candidates[i], strlen(typed));
        const bool same = strcasecmp(typed, candidates[i]) == 0;

        /* Names of a letter or two are all near each other. */
        if (begins || same || (edits <= least && edits < strlen(typed))) {
            nearest = candidates[i];
            least = begins || same ? 0 : edits - (edits > 0);
        }
    }
    return nearest;
}

static bool parse_size(const char *text, size_t *out)
{
    char *end;

    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    if (errno || end == text || text[0] < '0' || text[0] > '9')
        return false;
    int shift = 0;
    if (*end == 'K' || *end == 'M' || *end == 'G')
        shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 30;
    if (end[shift > 0] || number > SIZE_MAX >> shift)
        return false;
    *out = (size_t)number << shift;
    return true;
}

static bool add_text(const struct cli_command *command, const struct cli_option *option,
                     const char *text)
{
    struct cli_texts *texts = option->value;

    if (texts->count == CLI_TEXTS_MAX) {
        cli_complain("%s: %s is given more than %d times", command->name, option->name,
                     CLI_TEXTS_MAX);
        return false;
    }
    texts->items[texts->count++] = text;
    return true;
}

static bool set_option(const struct cli_command *command, const struct cli_option *option,
                       const char *text)
{
    if (option->kind == CLI_FLAG)
        *(bool *)option->value = true;
    else if (option->kind == CLI_TEXT)
        *(const char **)option->value = text;
    else if (option->kind == CLI_TEXTS)
        return add_text(command, option, text);
    else if (!parse_size(text, option->value)) {
        cli_complain("%s: %s needs a number, not '%s'", command->name, option->name, text);
        return false;
    } else if (option->kind == CLI_COUNT && *(const size_t *)option->value == 0) {
        cli_complain("%s: %s needs a number above 0", command->name, option->name);
        return false;
    }
    return true;
}

/* The option that word names: "--name", "--name=value", "-n", "-nvalue". */
static const struct cli_option *find_option(const struct cli_command *command, const char *word)
{
    const size_t size = strcspn(word, "=");

    for (const struct cli_option *option = command->options; option->name; option++) {
        if (strncmp(option->name, word, size) == 0 && !option->name[size])
            return option;
        if (option->brief && strncmp(option->brief, word, 2) == 0 && (!word[2] || option->argument))
            return option;
    }
    return NULL;
}

static void complain_unknown(const struct cli_command *command, const char *word)
{
    const char *names[64];
    size_t count = 0;

    for (const struct cli_option *o = command->options; o->name && count < 63; o++)
        names[count++] = o->name;
    names[count++] = "--help";
    const char *meant = cli_suggest(word, names, count);
    if (meant)
        cli_complain("%s: there is no option '%s', did you mean '%s'?", command->name, word, meant);
    else
        cli_complain("%s: there is no option '%s', 'cameo %s --help' lists them", command->name,
                     word, command->name);
}

static const char *attached_value(const char *word)
{
    if (word[1] != '-')
        return word[2] ? word + 2 : NULL;
    const char *sign = strchr(word, '=');
    return sign ? sign + 1 : NULL;
}

/* Takes the option at argv[at]; returns how many words it was, 0 when it is wrong. */
static int take_option(const struct cli_command *command, int argc, char **argv, int at)
{
    const struct cli_option *option = find_option(command, argv[at]);
    const char *value = attached_value(argv[at]);

    if (!option) {
        complain_unknown(command, argv[at]);
        return 0;
    }
    if (option->kind == CLI_FLAG && value) {
        cli_complain("%s: %s takes no value", command->name, option->name);
        return 0;
    }
    if (option->kind == CLI_FLAG || value)
        return set_option(command, option, value) ? 1 : 0;
    if (at + 1 >= argc) {
        cli_complain("%s: %s needs %s", command->name, option->name, option->argument);
        return 0;
    }
    return set_option(command, option, argv[at + 1]) ? 2 : 0;
}

/* "run net.onnx x.npy": files that are no models come with an option. */
static void complain_surplus(const struct cli_command *command, const char *word)
{
    const struct cli_option *option = command->options;

    while (option->name && strcmp(option->name, "--input") != 0 &&
           strcmp(option->name, "--data") != 0)
        option++;
    if (option->name)
        cli_complain("%s: '%s' is one name too many; after the model, files are given with %s %s",
                     command->name, word, option->name, option->argument);
    else
        cli_complain("%s: '%s' is one name too many", command->name, word);
}

static bool check_operands(const struct cli_command *command, char **argv, int count)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(argv[i], "-") == 0) {
            cli_complain("%s: standard input is not read, give the name of a file", command->name);
            return false;
        }
    }
    if (count < command->min_operands)
        cli_complain("%s: no %s was given, 'cameo %s --help' shows how", command->name,
                     strncmp(command->usage, "DIR", 3) == 0 ? "DIR" : "MODEL", command->name);
    else if (count > command->max_operands)
        complain_surplus(command, argv[command->max_operands]);
    else
        return true;
    return false;
}

int cli_parse(const struct cli_command *command, int argc, char **argv, bool *help)
{
    bool only_operands = false;
    int count = 0;

    for (int at = 0; at < argc;) {
        const char *word = argv[at];

        if (only_operands || word[0] != '-' || !word[1]) {
            argv[count++] = argv[at++];
        } else if (strcmp(word, "--") == 0) {
            only_operands = true;
            at++;
        } else if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            *help = true;
            return 0;
        } else {
            const int words = take_option(command, argc, argv, at);

            if (words == 0)
                return -1;
            at += words;
        }
    }
    return check_operands(command, argv, count) ? count : -1;
}
