/* What the subcommands share: tables that describe options to the parser, the help, the manual and
 * the completions alike; printing of text that came from a file; exit codes. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "cameo.h"

#include <signal.h>
#include <stdio.h>

#if defined(__GNUC__)
#define CLI_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define CLI_NORETURN            __attribute__((noreturn))
#else
#define CLI_NORETURN
#define CLI_PRINTF(text, first)
#endif

/* Exit codes. Numbers grow with how little the user could help it, so the worst of several is their
 * maximum. */
enum { CLI_YES = 0, CLI_NO = 1, CLI_USAGE = 2, CLI_MACHINE = 3, CLI_CANCELLED = 130 };

enum cli_kind {
    CLI_FLAG,  /* value is a bool * */
    CLI_TEXT,  /* const char ** */
    CLI_TEXTS, /* struct cli_texts *: given any number of times */
    CLI_SIZE,  /* size_t *; K, M and G multiply by 1024 */
    CLI_COUNT, /* the same, above 0: 0 in it means that it was not given */
    CLI_OLD,   /* an old spelling; help names the option that replaced it. It still works, and the
                  user is told the new name. Neither help nor completions show it. If another row
                  has the same name, that row is meant unless it is given twice. */
};

enum { CLI_TEXTS_MAX = 256, CLI_OPTIONS_MAX = 128 };

struct cli_texts {
    const char *items[CLI_TEXTS_MAX];
    size_t count;
};

struct cli_option {
    const char *name;     /* "--json"; NULL ends a table */
    const char *brief;    /* "-o", or NULL */
    const char *argument; /* "FILE", or NULL for flags */
    const char *help;
    enum cli_kind kind;
    void *value;
};

struct cli_command {
    const char *name;
    int (*main)(char **operands, int count);
    const char *usage;    /* what follows the name */
    const char *summary;  /* one line, lower case */
    const char *details;  /* sentences */
    const char *examples; /* lines, each a command and what it does after " # " */
    const char *exits;    /* what 0 and 1 mean here */
    const struct cli_option *options;
    int min_operands, max_operands;
};

/* The build scans cli/ for lines that begin with this and lists them in cli_commands. */
#define CLI_COMMAND(name, main, usage, summary, ...)                                               \
    const struct cli_command cli_command_##name = {#name, main, usage, summary, __VA_ARGS__}
/* The same for a name that is no identifier: "set-shape". */
#define CLI_COMMAND_AS(symbol, name, main, usage, summary, ...)                                    \
    const struct cli_command cli_command_##symbol = {name, main, usage, summary, __VA_ARGS__}

extern const struct cli_command *const cli_commands[];
extern const size_t cli_command_count;

const struct cli_command *cli_find_command(const char *name);
/* A line for each library of others: its version and where it was found, or why it is not used. */
void cli_print_libraries(FILE *to);

/* Sets what the options point at and gathers the operands at the front of argv. Returns their
 * number, or -1 after saying on stderr what is wrong. --help sets *help. */
int cli_parse(const struct cli_command *command, int argc, char **argv, bool *help);

/* The first option of a table, and the one after it, that help and completions show; NULL at the
 * end. */
const struct cli_option *cli_shown_option(const struct cli_option *option);

/* The closest of the candidates to what was typed, or NULL when none is near. */
const char *cli_suggest(const char *typed, const char *const *candidates, size_t count);

void cli_print_help(void);
void cli_print_command_help(const struct cli_command *command);
/* what is man, bash or zsh. */
int cli_generate(const char *what);

extern bool cli_as_json; /* --json was given */
/* Prints err after "cameo: " on stderr; gives the exit code of its status. */
int cli_fail(const struct cameo_error *err);
int cli_exit_code(enum cameo_status status);
/* The exit code of a system call that failed with this errno: a name that cannot be right is wrong
 * usage, all else is the machine. */
int cli_errno_code(int why);
enum { CLI_LINES_MAX = 200 }; /* of a list of complaints; the rest is counted */
/* The same of a call that may have found several reasons: all of them, a line each, and with
 * --json an object of them on stdout. findings may be NULL. */
int cli_refuse(const struct cameo_findings *findings, const struct cameo_error *err);
/* --sarif was given: a log of all findings goes to this file. main begins and ends it, the others
 * do nothing without it. A finding is about the model that was loaded last. */
extern const char *cli_sarif_path;
#define CLI_SARIF_OPTION                                                                           \
    {                                                                                              \
        "--sarif", NULL, "FILE",                                                                   \
            "also write the findings to FILE as SARIF 2.1.0, for CI services", CLI_TEXT,           \
            &cli_sarif_path                                                                        \
    }
int cli_sarif_begin(void);
void cli_sarif_about(const char *path);
void cli_sarif_add(const struct cameo_finding *finding);
void cli_sarif_failed(void);
int cli_sarif_end(int code); /* with the exit code, and gives it */
/* The findings of the call that failed last, where its options name this as their place. */
extern struct cameo_findings *cli_found;
/* The same with these, which are freed. */
int cli_fail_found(const struct cameo_error *err);
/* The same of a call that lists nothing, with what keeps the model from running. */
int cli_fail_model(const struct cameo_model *model, const struct cameo_error *err);
/* "place: reason", a line. */
void cli_put_finding(FILE *to, const struct cameo_finding *finding);
/* A line below it that says what to do, if that is known. */
void cli_put_help(FILE *to, const struct cameo_finding *finding);
/* A note on stderr for each opset that is newer than what we know: what changed in it, if anything,
 * nobody here can tell. And one for each rule of ONNX that the model breaks without harm. */
void cli_note_newer(const struct cameo_model *model);
/* "cameo: <sentence>" on stderr. */
void cli_complain(const char *format, ...) CLI_PRINTF(1, 2);

/* Memory of the command: none of these returns NULL. Where there is no memory they end the command
 * with a sentence and CLI_MACHINE. free() gives it back. */
void *cli_alloc(size_t count, size_t size); /* zeroed */
/* items, of which count of *room are used, moved to where there is room for one more. */
void *cli_grow(void *items, size_t count, size_t *room, size_t size);
char *cli_copy(const char *text);
/* A stream that writes to memory; its text is there once it is closed. */
FILE *cli_open_text(char **text, size_t *size);
void cli_close_text(FILE *to);
/* What fopen or opendir returned, where NULL would mean that there is no such file: lack of memory
 * ends the command instead. */
void *cli_or_absent(void *opened);
CLI_NORETURN void cli_no_memory(void);

/* The program at the other end of a pipe has had enough: no failure, but no use to go on either. */
extern volatile sig_atomic_t cli_reader_gone;

/* Set by Ctrl-C, SIGTERM and SIGHUP from now on; a save that is given it ends without leaving
 * anything behind. NULL when there is no memory: then they end the program as ever. */
struct cameo_cancel *cli_stop_on_signal(void);
/* From now on the signals that end the program remove half-written files first. */
void cli_watch_signals(void);
/* For signal handlers: ends the program as the signal does, without half-written files. */
void cli_end_by_signal(int number);

/* What was given, in this call or before, or else the memory that this machine has left, or less
 * where a control group or ulimit -v says so, less a reserve that keeps the machine usable: a run
 * that wants more ends with a sentence instead of taking the machine down. */
size_t cli_memory_limit(size_t given);
/* Has the system refuse what passes all that there is, swap included: whatever is counted nowhere
 * else ends with a sentence too. To be called once, before any work. */
void cli_bound_memory(void);

/* From now on a mapped file that is cut short by others ends the program with a sentence that names
 * it, not with a signal. */
void cli_watch_files(void);

/* A text file to be written, whole or not at all: begin says what is wrong and gives the exit code,
 * what is printed to `to` is in the file after end, which keeps the old file unless code is CLI_YES
 * and all could be written. Gives the exit code, after saying what is wrong. */
struct cli_output {
    FILE *to;
    struct cameo_file *file;
    struct cameo_error err; /* of the first write that failed */
};
int cli_output_begin(struct cli_output *out, const char *path);
int cli_output_end(struct cli_output *out, int code);

/* Says once that writing to name failed with errno; gives the exit code. */
int cli_broken(const char *name);
int cli_flush(FILE *to, const char *name);
/* Both are there and are one file, whatever they are called. */
bool cli_same_file(const char *a, const char *b);
bool cli_file_size(const char *path, uint64_t *bytes);

/* Files that are read are noted: NULL is none, a folder stands for the files in it, IMAGES:LABELS
 * for both. */
void cli_reads(const char *path);
void cli_reads_all(const struct cli_texts *paths); /* the same for each */
/* Is it, by its name, a library that 'cameo compile' wrote? */
bool cli_is_library(const char *path);
/* cameo_model_load, and notes the model and its external files. */
enum cameo_status cli_load_model(const char *path, const struct cameo_load_options *options,
                                 struct cameo_model **out, struct cameo_error *err);
/* Refuses to write over a file that was noted, with the exit code; what is the output, "train:
 * --log". To be asked of every output, before the first is written. path may be NULL. */
int cli_may_write(const char *what, const char *path);
/* Refuses a folder that holds a file that was noted. */
int cli_may_write_in(const char *what, const char *folder);
/* The same for a model: a save writes beside its file and renames, so it may replace a model. */
int cli_may_save(const char *what, const char *path);
/* Refuses a file of a folder whose name the command made up, where a symbolic link has that name:
 * the person who made the link would choose which file is written. A pipe of that name is refused
 * too: writing would wait for a reader. */
int cli_may_write_file_of_folder(const char *what, const char *path);
/* Is there a pipe, a terminal or a device of this name? */
bool cli_is_stream(const char *path);
/* Could a file of this name be written? To be asked before work whose result goes there: says what
 * is wrong, and gives the exit code. path may be NULL. */
int cli_check_writable(const char *path);

/* Does the user's locale say UTF-8? Then there are characters of braille. */
bool cli_terminal_has_braille(void);

/* Text from a file, with control characters and bytes that are not UTF-8 as \xNN, so that no model
 * can play tricks with a terminal. Returns the columns it took. */
size_t cli_put_text(FILE *to, const char *data, size_t size);
size_t cli_text_width(struct cameo_text text);
void cli_put_line(FILE *to, struct cameo_text text); /* and a new line */
/* A piece of text that has lines: the same, but ends of lines and tabs stay. */
void cli_put_lines(FILE *to, const char *data, size_t size);
/* The same, and blanks up to width columns. */
void cli_put_padded(FILE *to, struct cameo_text text, size_t width);
/* Up to limit columns, the rest as "...". */
void cli_put_short(FILE *to, struct cameo_text text, size_t limit);

/* What the framework calls an initializer, with what its exporter made of it: "transposed
 * a.weight", "computed from a, b", "in a"; and blanks up to width columns. The columns that this
 * takes, 0: there is no such name. */
void cli_put_original(FILE *to, struct cameo_text original, struct cameo_text folding,
                      size_t width);
size_t cli_original_width(struct cameo_text original, struct cameo_text folding);

/* The length of the UTF-8 sequence at data, 0 if it is none. */
size_t cli_utf8_length(const unsigned char *data, size_t size);

/* "1,234,567" and "1.2 MiB"; text holds 32 bytes. Return text. */
const char *cli_number(char *text, uint64_t number);
const char *cli_bytes(char *text, uint64_t bytes);

enum { CLI_NUMBER_SIZE = 32 };

/* A string of JSON. Bytes that are no UTF-8 become U+FFFD, one each: JSON has no other way to hold
 * them. */
void cli_put_quoted(FILE *to, const char *data, size_t size);
/* JSON with two blanks a level. A key is NULL inside a list. */
struct cli_json {
    FILE *to;
    int depth;
    bool filled; /* something was written on this level */
    bool flat;   /* all in one line */
};

void cli_json_open(struct cli_json *json, const char *key, char bracket);
void cli_json_close(struct cli_json *json, char bracket);
void cli_json_text(struct cli_json *json, const char *key, struct cameo_text text);
/* "original" and "folding" of an initializer, where it has them. */
void cli_json_original(struct cli_json *json, struct cameo_text original,
                       struct cameo_text folding);
void cli_json_string(struct cli_json *json, const char *key, const char *text);
void cli_json_int(struct cli_json *json, const char *key, int64_t number);
void cli_json_count(struct cli_json *json, const char *key, uint64_t number);
void cli_json_real(struct cli_json *json, const char *key, double number);
void cli_json_null(struct cli_json *json, const char *key);
void cli_json_bool(struct cli_json *json, const char *key, bool value);

void cli_json_finding(struct cli_json *json, const struct cameo_finding *finding);
/* Members of an object that is open, the same for all commands: counts and the list. */
void cli_json_findings(struct cli_json *json, const struct cameo_findings *findings);

/* The whole of `cameo info --json`. */
void cli_info_json(const char *path, const struct cameo_model *model,
                   const struct cameo_costs *costs);

#endif
