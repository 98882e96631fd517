/* The program: finds the subcommand and runs it. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "cli.h"
#include "short_of_memory.h"

#include <signal.h>
#include <string.h>

const struct cli_command *cli_find_command(const char *name)
{
    for (size_t i = 0; i < cli_command_count; i++) {
        if (strcmp(cli_commands[i]->name, name) == 0)
            return cli_commands[i];
    }
    return NULL;
}

static int unknown(const char *what, const char *typed)
{
    const char *names[64];
    size_t count = 0;

    for (; count < cli_command_count && count < 62; count++)
        names[count] = cli_commands[count]->name;
    names[count++] = "--help";
    names[count++] = "--version";
    const char *meant = cli_suggest(typed, names, count);
    if (meant)
        cli_complain("there is no %s '%s', did you mean '%s'?", what, typed, meant);
    else
        cli_complain("there is no %s '%s', 'cameo --help' lists what there is", what, typed);
    return CLI_USAGE;
}

static int run_command(const struct cli_command *command, int argc, char **argv)
{
    bool help = false;
    const int count = cli_parse(command, argc, argv, &help);

    if (help) {
        cli_print_command_help(command);
        return CLI_YES;
    }
    if (count < 0)
        return CLI_USAGE;
    cli_bound_memory();
    cli_watch_files();
    cli_watch_signals();
    const int code = cli_sarif_begin();
    return code == CLI_YES ? cli_sarif_end(command->main(argv, count)) : code;
}

static int run_help(int argc, char **argv)
{
    if (argc == 0 || strcmp(argv[0], "help") == 0 || strcmp(argv[0], "--help") == 0) {
        cli_print_help();
        return CLI_YES;
    }
    if (argc > 1) {
        cli_complain("help: '%s' is one name too many", argv[1]);
        return CLI_USAGE;
    }
    const struct cli_command *command = cli_find_command(argv[0]);
    if (!command)
        return unknown("subcommand", argv[0]);
    cli_print_command_help(command);
    return CLI_YES;
}

/* "cameo net.onnx": what is to be done with it? */
static int no_subcommand(const char *word)
{
    uint64_t bytes;

    if (word[0] == '-' || !cli_file_size(word, &bytes))
        return unknown(word[0] == '-' ? "option" : "subcommand", word);
    cli_complain("say what to do with %s, as in 'cameo info %s'; 'cameo --help' lists the "
                 "subcommands",
                 word, word);
    return CLI_USAGE;
}

static int run(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "--help";

    if (strcmp(word, "-V") == 0)
        word = "--version";

    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
        return run_help(argc > 2 ? argc - 2 : 0, argv + 2);
    if (strcmp(word, "--version") == 0 && argc > 2) {
        cli_complain("--version takes no more words, not '%s'", argv[2]);
        return CLI_USAGE;
    }
    if (strcmp(word, "--version") == 0) {
        printf("cameo %s\n", cameo_version_string());
        cli_print_libraries(stdout);
        return CLI_YES;
    }
    if (strcmp(word, "--generate") == 0 && argc == 3)
        return cli_generate(argv[2]);
    const struct cli_command *command = cli_find_command(word);
    if (!command)
        return no_subcommand(word);
    return run_command(command, argc - 2, argv + 2);
}

volatile sig_atomic_t cli_reader_gone;

static void note_reader_gone(int number)
{
    (void)number;
    cli_reader_gone = 1;
}

int main(int argc, char **argv)
{
    const struct sigaction gone = {.sa_handler = note_reader_gone};

    sigaction(SIGPIPE, &gone, NULL); /* for every write, not only for the first */
    signal(SIGXFSZ, SIG_IGN); /* a file past the limit is a write that fails, told like any other */
    cli_watch_libraries();
    const int code = run(argc, argv);
    const int flushed = cli_flush(stdout, "standard output");

    return cli_leave(flushed > code ? flushed : code);
}
