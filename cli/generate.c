/* The manual page and the completions, from the tables of the subcommands. */
// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

#include <string.h>

/* Roff takes a leading dot or quote, backslashes and hyphens as its own. */
static void put_roff(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\\')
            fputs("\\e", stdout);
        else if (text[i] == '-')
            fputs("\\-", stdout);
        else if ((text[i] == '.' || text[i] == '\'') && (i == 0 || text[i - 1] == '\n'))
            printf("\\&%c", text[i]);
        else
            putchar(text[i]);
    }
}

static void put_roff_text(const char *text)
{
    put_roff(text, strlen(text));
}

static void man_option(const char *brief, const char *name, const char *argument, const char *help)
{
    fputs(".TP\n", stdout);
    if (brief) {
        fputs("\\fB", stdout);
        put_roff_text(brief);
        fputs("\\fR, ", stdout);
    }
    fputs("\\fB", stdout);
    put_roff_text(name);
    fputs("\\fR", stdout);
    if (argument)
        printf(" \\fI%s\\fR", argument);
    putchar('\n');
    put_roff_text(help);
    putchar('\n');
}

static void man_command(const struct cli_command *command)
{
    printf(".SS \"cameo %s ", command->name);
    put_roff_text(command->usage);
    fputs("\"\n", stdout);
    put_roff_text(command->details);
    putchar('\n');
    for (const struct cli_option *option = cli_shown_option(command->options); option;
         option = cli_shown_option(option + 1))
        man_option(option->brief, option->name, option->argument, option->help);
    fputs(".PP\nExit status: ", stdout);
    put_roff_text(command->exits);
    fputs(".\n.PP\n.nf\n.RS\n", stdout);
    put_roff_text(command->examples);
    fputs("\n.RE\n.fi\n", stdout);
}

static void generate_man(void)
{
    printf(".TH CAMEO 1 \"\" \"cameo %s\" \"User Commands\"\n", cameo_version_string());
    puts(".SH NAME\ncameo \\- check, run, differentiate, train and save ONNX models");
    puts(".SH SYNOPSIS\n.B cameo\n\\fISUBCOMMAND\\fR [\\fIOPTION\\fR]... \\fIMODEL\\fR...\n.br\n.B "
         "cameo help\n"
         "[\\fISUBCOMMAND\\fR]\n.br\n.B cameo \\-\\-version");
    puts(".SH DESCRIPTION\nResults go to standard output, everything else to standard error. A "
         "model is a binary\n"
         "ONNX file or, when its name ends in \\fI.onnxtxt\\fR or \\fI.mlir\\fR, its text form or "
         "a\n"
         "module of the ONNX dialect of MLIR.");
    puts(".SH SUBCOMMANDS");
    for (size_t i = 0; i < cli_command_count; i++)
        man_command(cli_commands[i]);
    puts(".SH EXIT STATUS\n.TP\n.B 0\nyes: done, or the model is fine\n.TP\n.B 1\n"
         "no: the model is broken, has what is not supported, or passes a limit\n.TP\n.B 2\n"
         "wrong usage, or a file that is not there\n.TP\n.B 3\n"
         "the machine failed: reading, writing or memory\n.TP\n.B 130\nstopped by the user");
}

static void generate_bash(void)
{
    puts("# bash completion for cameo");
    puts("_cameo()\n{\n    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD "
         "- 1]}");
    puts("    local options=\n    COMPREPLY=()\n    if [[ $COMP_CWORD -eq 1 ]]; then");
    fputs("        COMPREPLY=($(compgen -W 'help --help --version", stdout);
    for (size_t i = 0; i < cli_command_count; i++)
        printf(" %s", cli_commands[i]->name);
    puts("' -- \"$current\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in");
    fputs("    help)\n        COMPREPLY=($(compgen -W '", stdout);
    for (size_t i = 0; i < cli_command_count; i++)
        printf("%s%s", i ? " " : "", cli_commands[i]->name);
    puts("' -- \"$current\"))\n        return\n        ;;");
    for (size_t i = 0; i < cli_command_count; i++) {
        printf("    %s) options='", cli_commands[i]->name);
        for (const struct cli_option *option = cli_shown_option(cli_commands[i]->options); option;
             option = cli_shown_option(option + 1))
            printf("%s%s%s ", option->brief ? option->brief : "", option->brief ? " " : "",
                   option->name);
        puts("--help' ;;");
    }
    puts("    esac\n    case $before in");
    for (size_t i = 0; i < cli_command_count; i++) {
        for (const struct cli_option *option = cli_shown_option(cli_commands[i]->options); option;
             option = cli_shown_option(option + 1)) {
            if (option->kind == CLI_SIZE || option->kind == CLI_COUNT)
                printf("    %s) return ;;\n", option->name);
        }
    }
    puts("    esac\n    if [[ $current == -* ]]; then");
    puts("        COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n    else");
    puts("        compopt -o filenames 2>/dev/null\n"
         "        mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n    fi\n}");
    puts("complete -F _cameo cameo");
}

/* Inside single quotes and an option description, where brackets and colons have a meaning. */
static void put_zsh(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (strchr("[]:\\", *text))
            printf("\\%c", *text);
        else
            putchar(*text == '\n' ? ' ' : *text);
    }
}

static void zsh_option(const char *name, const struct cli_option *option)
{
    printf(" \\\n            '%s[", name);
    put_zsh(option->help);
    putchar(']');
    if (option->argument)
        printf(":%s:%s", option->argument,
               option->kind == CLI_SIZE || option->kind == CLI_COUNT ? "" : "_files");
    putchar('\'');
}

static void generate_zsh(void)
{
    puts("#compdef cameo\n\n_cameo() {\n    local -a commands\n    commands=(");
    for (size_t i = 0; i < cli_command_count; i++) {
        printf("        '%s:", cli_commands[i]->name);
        put_zsh(cli_commands[i]->summary);
        puts("'");
    }
    puts("        'help:all about a subcommand'\n    )");
    puts("    if (( CURRENT == 2 )); then\n        _describe 'subcommand' commands\n"
         "        _arguments '--help[help]' '--version[the version]'\n        return\n    fi");
    puts("    local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n    case $command in");
    puts("        help)\n            _describe 'subcommand' commands\n            ;;");
    for (size_t i = 0; i < cli_command_count; i++) {
        printf("        %s)\n            _arguments", cli_commands[i]->name);
        for (const struct cli_option *option = cli_shown_option(cli_commands[i]->options); option;
             option = cli_shown_option(option + 1)) {
            if (option->brief)
                zsh_option(option->brief, option);
            zsh_option(option->name, option);
        }
        puts(" \\\n            '--help[this text]' \\\n            '*:model:_files'\n            "
             ";;");
    }
    puts("    esac\n}\n\n_cameo \"$@\"");
}

int cli_generate(const char *what)
{
    if (strcmp(what, "man") == 0)
        generate_man();
    else if (strcmp(what, "bash") == 0)
        generate_bash();
    else if (strcmp(what, "zsh") == 0)
        generate_zsh();
    else {
        cli_complain("--generate makes man, bash or zsh, not '%s'", what);
        return CLI_USAGE;
    }
    return CLI_YES;
}
