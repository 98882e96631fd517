/* Help, from the tables of the subcommands. */
// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

#include <string.h>

void cli_print_help(void)
{
    puts("cameo reads ONNX models, checks them, runs them, differentiates them, trains them and "
         "writes\n"
         "them back.\n");
    puts("usage: cameo SUBCOMMAND [OPTION]... MODEL\n");
    for (size_t i = 0; i < cli_command_count; i++)
        printf("  %-10s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    puts("\n  cameo help SUBCOMMAND    all about it, with examples");
    puts("  cameo --version          the version, and the libraries in use");
    puts("  cameo demo               a tour: data, a model, its training, in some seconds");
}

/* Example lines as "  command", with what it does in a column of its own. */
static void print_examples(const char *examples)
{
    size_t width = 0;

    for (const char *line = examples; *line;) {
        const char *note = strstr(line, " # ");
        const size_t size = strcspn(line, "\n");

        if (note && (size_t)(note - line) < size && (size_t)(note - line) > width)
            width = (size_t)(note - line);
        line += size + (line[size] == '\n');
    }
    for (const char *line = examples; *line;) {
        const size_t size = strcspn(line, "\n");
        const char *note = strstr(line, " # ");
        const size_t command = note && (size_t)(note - line) < size ? (size_t)(note - line) : size;

        printf("  %-*.*s", (int)width, (int)command, line);
        if (command < size)
            printf("   %.*s", (int)(size - command - 3), note + 3);
        putchar('\n');
        line += size + (line[size] == '\n');
    }
}

/* "-o, --output FILE" */
static void option_name(char *name, size_t size, const struct cli_option *option)
{
    snprintf(name, size, "%s%s%s%s%s", option->brief ? option->brief : "",
             option->brief ? ", " : "", option->name, option->argument ? " " : "",
             option->argument ? option->argument : "");
}

/* One option; further lines of its help stand below the first. */
static void print_option(const char *name, const char *help, int width)
{
    printf("  %-*s ", width, name);
    for (;;) {
        const size_t size = strcspn(help, "\n");

        printf("%.*s\n", (int)size, help);
        if (!help[size])
            break;
        help += size + 1;
        printf("  %*s ", width, "");
    }
}

void cli_print_command_help(const struct cli_command *command)
{
    char name[64];
    int width = 20;

    printf("usage: cameo %s %s\n\n%s\n\noptions\n", command->name, command->usage,
           command->details);
    for (const struct cli_option *option = cli_shown_option(command->options); option;
         option = cli_shown_option(option + 1)) {
        option_name(name, sizeof name, option);
        width = (int)strlen(name) > width ? (int)strlen(name) : width;
    }
    for (const struct cli_option *option = cli_shown_option(command->options); option;
         option = cli_shown_option(option + 1)) {
        option_name(name, sizeof name, option);
        print_option(name, option->help, width);
    }
    print_option("-h, --help", "this text", width);
    puts("\nexamples");
    print_examples(command->examples);
    printf("\nexit codes\n"
           "  %s,\n"
           "  2 for wrong usage or a file that is not there, 3 if the machine failed\n",
           command->exits);
}
