/* Writes the lists that `make` finds by scanning: operators, kernels, commands, tests, bodies,
 * templates, rows of frameworks, levels. It runs in the project's root and takes paths relative to
 * it, so that no name in a list depends on where the checkout stands. */
// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    char *data; /* always ends with a NUL that is not counted */
    size_t size, room;
};

struct entry {
    char symbol[192];          /* what the list refers to; twice the same stops the build */
    char domain[64], name[80]; /* of operators */
    char scope[80], turn[16];  /* of kernels */
    const char *level;         /* of operators in the table of levels */
    const char *path;
    size_t line;
};

struct list {
    struct entry *items;
    size_t count, room;
};

_Noreturn static void die(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

static void *grow(void *block, size_t size)
{
    void *const grown = realloc(block, size);

    if (!grown)
        die("scan: out of memory");
    return grown;
}

static void text_add(struct text *text, const char *bytes, size_t size)
{
    if (text->size + size + 1 > text->room) {
        text->room = (text->size + size + 1) * 2;
        text->data = grow(text->data, text->room);
    }
    memcpy(text->data + text->size, bytes, size);
    text->size += size;
    text->data[text->size] = '\0';
}

static void text_print(struct text *text, const char *format, ...)
{
    char line[1024];
    va_list args;

    va_start(args, format);
    const int size = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (size < 0 || (size_t)size >= sizeof(line))
        die("scan: a generated line is too long");
    text_add(text, line, (size_t)size);
}

static bool read_file(const char *path, struct text *out)
{
    FILE *const file = fopen(path, "rb");
    char block[4096];
    size_t got;

    *out = (struct text){0};
    text_add(out, "", 0);
    if (!file)
        return false;
    while ((got = fread(block, 1, sizeof(block), file)) > 0)
        text_add(out, block, got);
    if (ferror(file))
        die("%s: %s", path, strerror(errno));
    fclose(file);
    return true;
}

/* Leaves a file that already says the same alone, so that nothing after it is rebuilt. */
static void write_if_changed(const char *path, const struct text *text)
{
    struct text old;
    const bool same = read_file(path, &old) && old.size == text->size &&
                      memcmp(old.data, text->data, text->size) == 0;

    free(old.data);
    if (same)
        return;
    FILE *const file = fopen(path, "wb");
    if (!file)
        die("%s: %s", path, strerror(errno));
    const bool written = fwrite(text->data, 1, text->size, file) == text->size;
    if (fclose(file) != 0 || !written)
        die("%s: cannot write", path);
}

static struct entry *list_add(struct list *list, const char *symbol, const char *path, size_t line)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct entry *const old = &list->items[i];
        if (strcmp(old->symbol, symbol) == 0)
            die("%s:%zu: %s is already defined at %s:%zu", path, line, symbol, old->path,
                old->line);
    }
    if (list->count == list->room) {
        list->room = list->room * 2 + 64;
        list->items = grow(list->items, list->room * sizeof(*list->items));
    }
    struct entry *const entry = &list->items[list->count++];
    entry->path = path;
    entry->line = line;
    if (strlen(symbol) >= sizeof(entry->symbol))
        die("%s:%zu: name is too long", path, line);
    snprintf(entry->symbol, sizeof(entry->symbol), "%s", symbol);
    entry->domain[0] = entry->name[0] = '\0';
    return entry;
}

/* Copies the identifier at *at, spaces before it skipped; false when there is none. */
static bool take_word(const char **at, char *word, size_t room)
{
    const char *p = *at;
    size_t size = 0;

    while (isspace((unsigned char)*p))
        p++;
    if (!isalpha((unsigned char)*p) && *p != '_')
        return false;
    while (isalnum((unsigned char)p[size]) || p[size] == '_')
        size++;
    if (size >= room)
        return false;
    memcpy(word, p, size);
    word[size] = '\0';
    *at = p + size;
    return true;
}

static bool take_digits(const char **at, char *digits, size_t room)
{
    const size_t spaces = strspn(*at, " \n"), size = strspn(*at + spaces, "0123456789");

    if (!size || size >= room)
        return false;
    memcpy(digits, *at + spaces, size);
    digits[size] = '\0';
    *at += spaces + size;
    return true;
}

static bool take_char(const char **at, char c)
{
    const char *p = *at;

    while (isspace((unsigned char)*p))
        p++;
    if (*p != c)
        return false;
    *at = p + 1;
    return true;
}

static bool take_string(const char **at, char *string, size_t room)
{
    if (!take_char(at, '"'))
        return false;
    const size_t size = strcspn(*at, "\"\n");
    if (size >= room)
        return false;
    memcpy(string, *at, size);
    string[size] = '\0';
    *at += size;
    return take_char(at, '"');
}

/* What a macro at the start of a line defines. Its arguments may be broken over lines. */
struct macro {
    const char *name;   /* with its parenthesis */
    const char *prefix; /* of the symbol it defines */
    /* The arguments that are read: s scope, t turn, d "domain", n name. */
    const char *arguments;
    bool has_turns; /* the symbol ends with the turn, 0 where no argument says it */
};

/* Reads one argument into the entry; false when it is not of its kind. */
static bool take_argument(const char **at, char kind, struct entry *out)
{
    switch (kind) {
    case 's':
        return take_word(at, out->scope, sizeof(out->scope));
    case 't':
        return take_word(at, out->turn, sizeof(out->turn)) ||
               take_digits(at, out->turn, sizeof(out->turn));
    case 'd':
        return take_string(at, out->domain, sizeof(out->domain));
    default:
        return take_word(at, out->name, sizeof(out->name));
    }
}

static void scan_macro(const struct macro *macro, const char *path, const char *text,
                       struct list *list)
{
    size_t line = 1;

    for (const char *p = text; *p; line++) {
        if (strncmp(p, macro->name, strlen(macro->name)) == 0) {
            const char *at = p + strlen(macro->name);
            struct entry read = {.domain = "ai.onnx", .turn = "0"};
            char symbol[288];
            for (const char *kind = macro->arguments; *kind; kind++)
                if (!take_argument(&at, *kind, &read) || (kind[1] && !take_char(&at, ',')))
                    die("%s:%zu: cannot read the name in %s..)", path, line, macro->name);
            snprintf(symbol, sizeof(symbol), "%s%s%s%s%s%s", macro->prefix, read.scope,
                     *read.scope ? "_" : "", read.name, macro->has_turns ? "_" : "",
                     macro->has_turns ? read.turn : "");
            struct entry *const entry = list_add(list, symbol, path, line);
            memcpy(entry->domain, read.domain, sizeof(read.domain));
            memcpy(entry->name, read.name, sizeof(read.name));
            memcpy(entry->scope, read.scope, sizeof(read.scope));
            memcpy(entry->turn, read.turn, sizeof(read.turn));
        }
        const char *const end = strchr(p, '\n');
        p = end ? end + 1 : p + strlen(p);
    }
}

/* Whether a line of the text starts with the word and a space. */
static bool has_line(const char *text, const char *word)
{
    const size_t size = strlen(word);

    for (const char *p = text; p; p = strchr(p, '\n')) {
        p += *p == '\n';
        if (strncmp(p, word, size) == 0 && p[size] == ' ')
            return true;
    }
    return false;
}

/* An operator must be in the table of facts of its domain; an operator nobody can name is dead. */
static void check_known(const struct list *list, char **tables, int table_count)
{
    struct text texts[16] = {0};
    char line[80];

    if (table_count > 16)
        die("scan: more than 16 tables");
    for (int i = 0; i < table_count; i++)
        if (!read_file(tables[i], &texts[i]))
            die("%s: %s", tables[i], strerror(errno));
    for (size_t k = 0; k < list->count; k++) {
        const struct entry *const entry = &list->items[k];
        bool known = false;
        snprintf(line, sizeof(line), "domain %s", entry->domain);
        for (int i = 0; i < table_count; i++)
            known |= has_line(texts[i].data, line) && has_line(texts[i].data, entry->name);
        if (!known)
            die("%s:%zu: no operator %s in the tables of domain %s", entry->path, entry->line,
                entry->name, entry->domain);
    }
    for (int i = 0; i < table_count; i++)
        free(texts[i].data);
}

static void print_list(struct text *out, const struct list *list, const char *type,
                       const char *array, const char *count)
{
    for (size_t i = 0; i < list->count; i++)
        text_print(out, "extern const struct %s %s;\n", type, list->items[i].symbol);
    text_print(out, "\nconst struct %s *const %s[] = {\n", type, array);
    for (size_t i = 0; i < list->count; i++)
        text_print(out, "    &%s,\n", list->items[i].symbol);
    text_print(out, "    0,\n};\nconst size_t %s = %zu;\n", count, list->count);
}

static struct list scan_files(const struct macro *macros, size_t macro_count, char **paths,
                              int path_count)
{
    struct list list = {0};

    for (int i = 0; i < path_count; i++) {
        struct text text;
        if (!read_file(paths[i], &text))
            die("%s: %s", paths[i], strerror(errno));
        for (size_t m = 0; m < macro_count; m++)
            scan_macro(&macros[m], paths[i], text.data, &list);
        free(text.data);
    }
    return list;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t size = strlen(text), end_size = strlen(end);

    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

/* The tables of facts come first; they end in .txt. */
static void make_ops(struct text *out, char **paths, int count)
{
    static const struct macro macros[] = {
        {"CM_OP(", "cm_op_", "n", false},
        {"CM_OP_IN(", "cm_op_", "sdn", false},
    };
    int tables = 0;

    while (tables < count && ends_with(paths[tables], ".txt"))
        tables++;
    struct list list = scan_files(macros, 2, paths + tables, count - tables);
    if (tables > 0)
        check_known(&list, paths, tables);
    text_print(out, "#include \"graph/op.h\"\n\n");
    print_list(out, &list, "cm_op", "cm_op_list", "cm_op_count");
    free(list.items);
}

/* Numbers before the word that stands for the last turn. */
static int by_turn(const void *a, const void *b)
{
    const struct entry *const x = a, *const y = b;
    const int order = strcmp(x->turn, y->turn);

    return order ? order : strcmp(x->symbol, y->symbol);
}

/* The names in data/backends.list, one a line, in their order. */
static struct list read_backends(const char *path)
{
    struct list list = {0};
    struct text text;
    size_t line = 0;

    if (!read_file(path, &text))
        die("%s: %s", path, strerror(errno));
    for (const char *at = text.data; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        char name[80], symbol[192];
        line++;
        if (!take_word(&at, name, sizeof(name)))
            continue;
        snprintf(symbol, sizeof(symbol), "cm_backend_%s", name);
        memcpy(list_add(&list, symbol, path, line)->name, name, sizeof(name));
    }
    free(text.data);
    return list;
}

static bool has_name(const struct list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return true;
    return false;
}

static void print_kernels_of(struct text *out, const char *backend, const struct list *kernels)
{
    text_print(out, "\nconst struct cm_kernel *const cm_kernels_%s[] = {\n", backend);
    for (size_t i = 0; i < kernels->count; i++)
        if (strcmp(kernels->items[i].scope, backend) == 0)
            text_print(out, "    &%s,\n", kernels->items[i].symbol);
    text_print(out, "    0,\n};\n");
}

/* The list of backends comes first. */
static void make_kernels(struct text *out, char **paths, int count)
{
    static const struct macro kernel_macros[] = {
        {"CM_KERNEL(", "cm_kernel_", "sn", true},
        {"CM_KERNEL_IN(", "cm_kernel_", "sdn", true},
        {"CM_KERNEL_AT(", "cm_kernel_", "stn", true},
        {"CM_KERNEL_AT_IN(", "cm_kernel_", "stdn", true},
    };
    static const struct macro backend_macro = {"CM_BACKEND(", "cm_backend_", "n", false};
    struct list backends = read_backends(paths[0]);
    struct list kernels = scan_files(kernel_macros, 4, paths + 1, count - 1);
    struct list defined = scan_files(&backend_macro, 1, paths + 1, count - 1);

    for (size_t i = 0; i < defined.count; i++)
        if (!has_name(&backends, defined.items[i].name))
            die("%s:%zu: %s does not list the backend '%s'", defined.items[i].path,
                defined.items[i].line, paths[0], defined.items[i].name);
    for (size_t i = 0; i < kernels.count; i++)
        if (!has_name(&defined, kernels.items[i].scope))
            die("%s:%zu: no line CM_BACKEND(%s, ..) defines the backend", kernels.items[i].path,
                kernels.items[i].line, kernels.items[i].scope);
    qsort(kernels.items, kernels.count, sizeof(*kernels.items), by_turn);
    text_print(out, "#include \"graph/backend.h\"\n\n");
    for (size_t i = 0; i < kernels.count; i++)
        text_print(out, "extern const struct cm_kernel %s;\n", kernels.items[i].symbol);
    for (size_t i = 0; i < backends.count; i++) {
        if (!has_name(&defined, backends.items[i].name))
            die("%s:%zu: no line CM_BACKEND(%s, ..) defines it", paths[0], backends.items[i].line,
                backends.items[i].name);
        print_kernels_of(out, backends.items[i].name, &kernels);
    }
    print_list(out, &backends, "cm_backend", "cm_backends", "cm_backend_count");
    free(backends.items);
    free(kernels.items);
    free(defined.items);
}

static void make_commands(struct text *out, char **paths, int count)
{
    static const struct macro macros[] = {{"CLI_COMMAND(", "cli_command_", "n", false},
                                          {"CLI_COMMAND_AS(", "cli_command_", "n", false}};
    struct list list = scan_files(macros, 2, paths, count);

    text_print(out, "#include <stddef.h>\n\n#include \"cli.h\"\n\n");
    print_list(out, &list, "cli_command", "cli_commands", "cli_command_count");
    free(list.items);
}

/* Lines `void test_name(void)`; anything else that begins like a test is a mistake worth telling.
 */
static void scan_tests(const char *path, const char *text, struct list *list)
{
    size_t line = 1;

    for (const char *p = text; *p; line++) {
        if (strncmp(p, "void test_", 10) == 0) {
            const char *at = p + 5;
            char name[160], nothing[8];
            if (!take_word(&at, name, sizeof(name)) || !take_char(&at, '(') ||
                !take_word(&at, nothing, sizeof(nothing)) || strcmp(nothing, "void") != 0 ||
                !take_char(&at, ')'))
                die("%s:%zu: a test is written `void test_thing__sentence(void)`", path, line);
            if (!take_char(&at, ';'))
                list_add(list, name, path, line);
        }
        const char *const end = strchr(p, '\n');
        p = end ? end + 1 : p + strlen(p);
    }
    if (list->count == 0)
        die("%s:1: holds no test", path);
}

/* Counts for the summary are printed here: cmocka's own lines differ between its versions. A
 * skipped test leaves by longjmp and is counted as neither. */
static void make_tests(struct text *out, char **paths, int count)
{
    struct list list = {0};
    struct text text;

    if (count != 1 || !read_file(paths[0], &text))
        die("scan: tests needs one readable file");
    scan_tests(paths[0], text.data, &list);
    text_print(out, "#include <setjmp.h>\n#include <stdarg.h>\n#include <stddef.h>\n"
                    "#include <stdint.h>\n#include <stdio.h>\n"
                    "#include <stdlib.h>\n#include <cmocka.h>\n\n"
                    "static int finished;\n\n");
    for (size_t i = 0; i < list.count; i++)
        text_print(out,
                   "void %s(void);\nstatic void run_%zu(void **state)\n{\n"
                   "    (void)state;\n    %s();\n    finished++;\n}\n\n",
                   list.items[i].symbol, i, list.items[i].symbol);
    text_print(out, "int main(int argc, char **argv)\n{\n"
                    "    const char *const filter =\n"
                    "        argc > 1 ? argv[1] : getenv(\"CAMEO_TEST_FILTER\");\n"
                    "    const struct CMUnitTest tests[] = {\n");
    for (size_t i = 0; i < list.count; i++)
        text_print(out, "        {\"%s\", run_%zu, NULL, NULL, NULL},\n", list.items[i].symbol, i);
    text_print(out, "    };\n\n    if (filter)\n        cmocka_set_test_filter(filter);\n"
                    "    const int failed = cmocka_run_group_tests(tests, NULL, NULL);\n"
                    "    printf(\"# counts: %%d passed, %%d failed\\n\", finished, failed);\n"
                    "    return failed != 0;\n}\n");
    free(text.data);
    free(list.items);
}

/* Comments and indentation are for people: what is read at run time has neither. */
static void strip_text(struct text *text)
{
    size_t kept = 0;

    for (size_t k = 0; k < text->size;) {
        const char *const line = text->data + k;
        const char *const end = strchr(line, '\n');
        const size_t size = end ? (size_t)(end - line) + 1 : strlen(line);
        const size_t spaces = strspn(line, " ");
        k += size;
        if (line[spaces] == '#')
            continue;
        memmove(text->data + kept, line + spaces, size - spaces);
        kept += size - spaces;
    }
    text->size = kept;
    text->data[kept] = '\0';
}

/* Numbers rather than literals: a compiler need not take a literal past 4095 characters. */
static void embed_text(struct text *out, const char *symbol, int index, const char *path,
                       const struct text *text)
{
    text_print(out, "static const char %s_%d[] = {\n", symbol, index);
    for (size_t k = 0; k < text->size; k++) {
        const unsigned char c = (unsigned char)text->data[k];
        if (c == 0 || c > 126)
            die("%s: byte %zu is not plain text", path, k);
        text_print(out, "%u,%s", (unsigned)c, k % 24 == 23 ? "\n" : "");
    }
    text_print(out, "0};\n");
}

/* Files that the library holds whole, as rows {name, text, size} of a table. */
struct embedding {
    const char *mode, *header, *symbol, *type, *array, *count;
    const char *folder; /* names are paths below it; NULL: they are names of files */
    bool stripped;      /* of comments and indentation; else lines stay, as messages count them */
    bool has_extensions;
};
static const struct embedding embeddings[] = {
    {"bodies", "graph/bodies.h", "body", "cm_embedded_body", "cm_embedded_bodies",
     "cm_embedded_body_count", NULL, true, false},
    {"templates", "mlir/lowering/templates.h", "template", "cm_template_text", "cm_mlir_templates",
     "cm_mlir_template_count", "data/mlir/", false, false},
    {"frameworks", "convert/framework_texts.h", "framework", "cm_template_text",
     "cm_framework_texts", "cm_framework_text_count", "data/frameworks/", false, false},
    /* C that is compiled for other machines */
    {"sources", "mlir/lowering/glue.h", "source", "cm_mlir_source", "cm_mlir_sources",
     "cm_mlir_source_count", "src/", false, true},
};

static void embedded_name(const struct embedding *kind, const char *path, char *name, size_t room)
{
    const size_t size = kind->folder ? strlen(kind->folder) : 0;
    const char *const slash = strrchr(path, '/');

    if (kind->folder && strncmp(path, kind->folder, size) != 0)
        die("%s: the path does not begin with %s; run scan in the project's root", path,
            kind->folder);
    snprintf(name, room, "%s", kind->folder ? path + size : slash ? slash + 1 : path);
    char *const dot = strrchr(name, '.');
    if (dot && !kind->has_extensions)
        *dot = '\0';
}

static void make_embedded(const struct embedding *kind, struct text *out, char **paths, int count)
{
    text_print(out, "#include \"%s\"\n\n", kind->header);
    for (int i = 0; i < count; i++) {
        struct text text;
        if (!read_file(paths[i], &text))
            die("%s: %s", paths[i], strerror(errno));
        if (kind->stripped)
            strip_text(&text);
        embed_text(out, kind->symbol, i, paths[i], &text);
        free(text.data);
    }
    text_print(out, "\nconst struct %s %s[] = {\n", kind->type, kind->array);
    for (int i = 0; i < count; i++) {
        char name[256];
        embedded_name(kind, paths[i], name, sizeof(name));
        text_print(out, "    {\"%s\", %s_%d, sizeof(%s_%d) - 1},\n", name, kind->symbol, i,
                   kind->symbol, i);
    }
    text_print(out, "    {0, 0, 0},\n};\nconst size_t %s = %d;\n", kind->count, count);
}

static int by_operator(const void *a, const void *b)
{
    const struct entry *const x = a, *const y = b;
    const int order = strcmp(x->name, y->name);

    return order ? order : strcmp(x->domain, y->domain);
}

/* Lines `LEVEL OPERATOR reason` under lines `domain DOMAIN`. */
static void make_levels(struct text *out, char **paths, int count)
{
    static const char *const levels[] = {"core", "function", "fused"};
    static const char *const constants[] = {"CORE", "FUNCTION", "FUSED"};
    struct list list = {0};
    struct text text;
    char domain[64] = "", level[16], name[80], symbol[192], *line;
    size_t number = 0;

    if (count != 1 || !read_file(paths[0], &text))
        die("scan: levels needs one readable file");
    for (char *at = text.data; at;) {
        char rest[8];
        size_t kind = 0;
        line = at;
        at = strchr(line, '\n');
        if (at)
            *at++ = '\0';
        number++;
        if (!*line || *line == '#')
            continue;
        if (sscanf(line, "domain %63s", domain) == 1)
            continue;
        if (sscanf(line, "%15s %79s %7s", level, name, rest) != 3)
            die("%s:%zu: expected `LEVEL OPERATOR reason`", paths[0], number);
        while (kind < 3 && strcmp(level, levels[kind]) != 0)
            kind++;
        if (kind == 3)
            die("%s:%zu: the level is '%s', expected core, function or fused", paths[0], number,
                level);
        snprintf(symbol, sizeof(symbol), "%s::%s", domain, name);
        struct entry *const entry = list_add(&list, symbol, paths[0], number);
        snprintf(entry->name, sizeof(entry->name), "%s", name);
        snprintf(entry->domain, sizeof(entry->domain), "%s",
                 strcmp(domain, "ai.onnx") == 0 ? "" : domain);
        entry->level = constants[kind];
    }
    qsort(list.items, list.count, sizeof(*list.items), by_operator);
    text_print(out, "#include \"schema/levels.h\"\n\nconst struct cm_level_row cm_levels[] = {\n");
    for (size_t i = 0; i < list.count; i++)
        text_print(out, "    {\"%s\", \"%s\", CM_LEVEL_%s},\n", list.items[i].domain,
                   list.items[i].name, list.items[i].level);
    text_print(out, "};\nconst size_t cm_level_count = %zu;\n", list.count);
    free(text.data);
    free(list.items);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*make)(struct text *out, char **paths, int count);
    } modes[] = {
        {"ops", make_ops},     {"kernels", make_kernels}, {"commands", make_commands},
        {"tests", make_tests}, {"levels", make_levels},
    };
    struct text out = {0};
    bool known = false;

    if (argc >= 3) {
        text_print(&out, "/* Generated by tools/scan.c; edit what it scans instead. */\n");
        for (size_t i = 0; i < sizeof(embeddings) / sizeof(embeddings[0]); i++) {
            if (strcmp(argv[1], embeddings[i].mode) != 0)
                continue;
            make_embedded(&embeddings[i], &out, argv + 3, argc - 3);
            known = true;
        }
        for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
            if (strcmp(argv[1], modes[i].name) != 0)
                continue;
            modes[i].make(&out, argv + 3, argc - 3);
            known = true;
        }
    }
    if (known) {
        write_if_changed(argv[2], &out);
        free(out.data);
        return 0;
    }
    fputs("usage: scan ops|kernels|commands|tests|bodies|sources|templates|frameworks|levels OUT.c "
          "FILE...\n",
          stderr);
    return 2;
}
