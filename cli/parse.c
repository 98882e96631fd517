/* Options as the user types them. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { WORD_MAX = 40 };

/* A parse under way: which options were given, with what text and in which spelling. */
struct parse {
    const struct cli_command *command;
    const char *texts[CLI_OPTIONS_MAX]; /* NULL: not given */
    bool in_full[CLI_OPTIONS_MAX];      /* as "--output", not as "-o" or by an old name */
};

const struct cli_option *cli_shown_option(const struct cli_option *option)
{
    while (option->name && option->kind == CLI_OLD)
        option++;
    return option->name ? option : NULL;
}

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
    const char *names[CLI_OPTIONS_MAX + 1];
    size_t count = 0;

    for (const struct cli_option *o = cli_shown_option(command->options); o;
         o = cli_shown_option(o + 1))
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

/* The option that replaced an old spelling; old itself when it is none. */
static const struct cli_option *replacement(const struct cli_command *command,
                                            const struct cli_option *old)
{
    if (old->kind != CLI_OLD)
        return old;
    cli_complain("%s: the option %s is now called %s", command->name, old->name, old->help);
    return find_option(command, old->help);
}

/* The row of an old spelling that has the same name as option, or NULL. */
static const struct cli_option *old_meaning(const struct cli_option *option)
{
    for (const struct cli_option *o = option + 1; o->name; o++)
        if (o->kind == CLI_OLD && strcmp(o->name, option->name) == 0)
            return o;
    return NULL;
}

static bool give_option(struct parse *p, const struct cli_option *option, const char *text,
                        bool in_full);

/* A second text for an option that takes one. Where its name had another meaning before, the text
 * that came with the full name has that meaning: "-o out.onnx --output scores". */
static bool give_again(struct parse *p, const struct cli_option *option, const char *text,
                       bool in_full)
{
    const size_t row = (size_t)(option - p->command->options);
    const struct cli_option *const old = old_meaning(option);
    const char *const before = p->texts[row];

    if (!old || in_full == p->in_full[row]) {
        cli_complain("%s: %s is given twice, as '%s' and as '%s'", p->command->name, option->name,
                     before, text);
        return false;
    }
    if (!in_full && !set_option(p->command, option, text))
        return false;
    if (!in_full) {
        p->texts[row] = text;
        p->in_full[row] = false;
    }
    return give_option(p, replacement(p->command, old), in_full ? text : before, true);
}

static bool give_option(struct parse *p, const struct cli_option *option, const char *text,
                        bool in_full)
{
    const size_t row = (size_t)(option - p->command->options);
    const bool once = option->kind != CLI_FLAG && option->kind != CLI_TEXTS;

    if (once && p->texts[row] && strcmp(p->texts[row], text) != 0)
        return give_again(p, option, text, in_full);
    p->texts[row] = text;
    p->in_full[row] = in_full;
    return set_option(p->command, option, text);
}

/* Takes the option at argv[at]; returns how many words it was, 0 when it is wrong. */
static int take_option(struct parse *p, int argc, char **argv, int at)
{
    const struct cli_command *const command = p->command;
    const struct cli_option *const named = find_option(command, argv[at]);
    const char *value = attached_value(argv[at]);

    if (!named) {
        complain_unknown(command, argv[at]);
        return 0;
    }
    const struct cli_option *const option = replacement(command, named);
    const bool in_full = option == named && argv[at][1] == '-';
    if (option->kind == CLI_FLAG && value) {
        cli_complain("%s: %s takes no value", command->name, option->name);
        return 0;
    }
    if (option->kind == CLI_FLAG || value)
        return give_option(p, option, value, in_full) ? 1 : 0;
    if (at + 1 >= argc) {
        cli_complain("%s: %s needs %s", command->name, option->name, option->argument);
        return 0;
    }
    return give_option(p, option, argv[at + 1], in_full) ? 2 : 0;
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
    struct parse parse = {.command = command};
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
            const int words = take_option(&parse, argc, argv, at);

            if (words == 0)
                return -1;
            at += words;
        }
    }
    return check_operands(command, argv, count) ? count : -1;
}
