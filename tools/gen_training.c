/* Writes the tables of losses and optimizers from data/training/: gen_training OUT.c OUT.h FILE...
 *
 * A file has a header of lines "word: values" and then functions in ONNX's text form. A line of a
 * function may begin with conditions in brackets, "[amsgrad !nesterov]"; the library keeps the
 * lines whose conditions hold and reads what is left (src/train/formula.c). */
// SPDX-License-Identifier: Apache-2.0
#include "gen_reader.h"

enum { MAX_RULES = 64, MAX_LINES = 64, LINE_SIZE = 1024, LIST_WIDTH = 64 };

enum kind { LOSS, KINDS };

struct line {
    const char *key, *value;
    size_t number;
};

struct rule {
    const char *path;
    char *name; /* of the file, without its ending */
    enum kind kind;
    struct line lines[MAX_LINES];
    size_t line_count;
    long long order;
    struct text functions;
};

static struct rule rules[MAX_RULES];
static size_t rule_count;

static const struct {
    const char *folder;
    const char *keys[16];
} kinds[KINDS] = {
    [LOSS] = {"data/training/losses/",
              {"order", "target", "contains", "reads", "threshold", "number"}},
};

/* ---- reading ---- */

static struct rule *add_rule(const char *path)
{
    struct rule *rule = &rules[rule_count++];
    const struct reader r = {.path = path};

    if (rule_count > MAX_RULES)
        die(&r, "there are more than %d files", MAX_RULES);
    for (size_t k = 0; k < KINDS; k++) {
        const char *found = strstr(path, kinds[k].folder);
        const size_t size = strlen(path);
        if (!found || size < 5 || strcmp(path + size - 4, ".txt") != 0)
            continue;
        const char *name = found + strlen(kinds[k].folder);
        *rule = (struct rule){.path = path, .kind = (enum kind)k};
        rule->name = copy(name, strlen(name) - 4);
        return rule;
    }
    die(&r, "expected a file NAME.txt below data/training/");
    return NULL;
}

/* "number: half 0.5" */
static void add_line(struct rule *rule, struct reader *r)
{
    const char *colon = strchr(r->at, ':');
    const char *const *keys = kinds[rule->kind].keys;

    if (!colon || colon[1] != ' ')
        die(r, "expected 'word: values' or a function");
    char *const key = copy(r->at, (size_t)(colon - r->at));
    size_t k = 0;
    while (keys[k] && strcmp(keys[k], key) != 0)
        k++;
    if (!keys[k])
        die(r, "unknown word '%s'", key);
    if (rule->line_count == MAX_LINES)
        die(r, "the header has more than %d lines", MAX_LINES);
    rule->lines[rule->line_count++] =
        (struct line){keys[k], copy(colon + 2, strlen(colon + 2)), r->line};
    free(key);
}

/* Comments and indentation go; lines stay apart, because conditions are per line. */
static void read_rule(struct rule *rule)
{
    struct reader r = {.path = rule->path};
    FILE *const file = fopen(rule->path, "r");
    char line[LINE_SIZE];
    bool inside = false;

    if (!file)
        die(&r, "%s", strerror(errno));
    while (fgets(line, sizeof line, file)) {
        r.line++;
        size_t size = strlen(line);
        if (size + 1 == sizeof line)
            die(&r, "the line is too long");
        while (size && isspace((unsigned char)line[size - 1]))
            line[--size] = '\0';
        for (r.at = line; *r.at == ' ';)
            r.at++;
        if (!*r.at || *r.at == '#')
            continue;
        if (!inside && !strstr(r.at, ") => (")) {
            add_line(rule, &r);
            continue;
        }
        inside = strcmp(r.at, "}") != 0;
        text_print(&rule->functions, "%s\n", r.at);
    }
    if (ferror(file) || inside)
        die(&r, "the last function does not end");
    fclose(file);
    if (!rule->functions.size)
        die(&r, "there is no function");
}

static const struct line *line_of(const struct rule *rule, const char *key)
{
    for (size_t i = 0; i < rule->line_count; i++)
        if (strcmp(rule->lines[i].key, key) == 0)
            return &rule->lines[i];
    return NULL;
}

static struct reader value_of(const struct rule *rule, const char *key)
{
    const struct line *line = line_of(rule, key);
    struct reader r = {.path = rule->path};

    if (!line)
        die(&r, "there is no line '%s: ..'", key);
    r.line = line->number;
    r.at = line->value;
    return r;
}

static void check_double(struct reader *r, const char *text)
{
    char *end;

    errno = 0;
    (void)strtod(text, &end);
    if (end == text || *end || errno)
        die(r, "'%s' is not a number", text);
}

static int by_order(const void *a, const void *b)
{
    const struct rule *x = a, *y = b;

    if (x->kind != y->kind)
        return (int)x->kind - (int)y->kind;
    return x->order < y->order ? -1 : x->order > y->order ? 1 : strcmp(x->name, y->name);
}

/* ---- writing ---- */

/* The text of functions as a C string, a line a line. */
static void write_text(struct text *out, const char *text)
{
    while (*text) {
        const char *end = strchr(text, '\n');
        text_print(out, "\n     \"");
        for (; text < end; text++)
            text_print(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
        text_print(out, "\\n\"");
        text = end + 1;
    }
}

/* Rows of names and numbers. */
static void write_numbers(struct text *out, const struct rule *rule, size_t number, const char *key)
{
    text_print(out, "static const struct cm_rule_number %ss_%zu[] = {", key, number);
    for (size_t i = 0; i < rule->line_count; i++) {
        struct reader r = {rule->path, rule->lines[i].number, rule->lines[i].value};
        if (strcmp(rule->lines[i].key, key) != 0)
            continue;
        char *const name = word(&r);
        skip_spaces(&r);
        check_double(&r, r.at);
        text_print(out, "{\"%s\", %s}, ", name, r.at);
        free(name);
    }
    text_print(out, "{0, 0}};\n");
}

static const char *choice(struct reader *r, const char *const *words, const char *const *constants)
{
    for (size_t i = 0; words[i]; i++)
        if (strcmp(words[i], r->at) == 0)
            return constants[i];
    die(r, "unknown value '%s'", r->at);
    return NULL;
}

static void write_loss(struct text *out, const struct rule *rule, size_t number)
{
    static const char *const targets[] = {"same", "classes", NULL};
    static const char *const target_constants[] = {"CM_TARGET_SAME", "CM_TARGET_CLASSES"};
    static const char *const contents[] = {"softmax", "sigmoid", NULL};
    static const char *const content_constants[] = {"CM_CONTAINS_SOFTMAX", "CM_CONTAINS_SIGMOID"};
    struct reader r = value_of(rule, "target");

    text_print(out, "    {.name = \"%s\", .target = %s, .numbers = numbers_%zu", rule->name,
               choice(&r, targets, target_constants), number);
    if (line_of(rule, "contains")) {
        r = value_of(rule, "contains");
        text_print(out, ", .contains = %s", choice(&r, contents, content_constants));
    }
    if (line_of(rule, "reads"))
        text_print(out, ", .reads = \"%s\"", line_of(rule, "reads")->value);
    if (line_of(rule, "threshold")) {
        r = value_of(rule, "threshold");
        check_double(&r, r.at);
        text_print(out, ", .is_binary = true, .threshold = %s", r.at);
    }
    text_print(out, ",\n     .functions =");
    write_text(out, rule->functions.data);
    text_print(out, "},\n");
}

static void write_table(struct text *out)
{
    text_print(out, "/* Made by tools/gen_training.c from data/training/. */\n"
                    "#include \"train/rules.h\"\n\n");
    for (size_t i = 0; i < rule_count; i++)
        write_numbers(out, &rules[i], i, "number");
    text_print(out, "\nconst struct cm_loss_rule cm_loss_rules[] = {\n");
    for (size_t i = 0; i < rule_count; i++)
        if (rules[i].kind == LOSS)
            write_loss(out, &rules[i], i);
    text_print(out, "    {0}};\n");
}

/* A list of names in lines of at most so many characters: a string that goes into a help text. */
struct list {
    struct text *out;
    size_t used, width;
};

static void list_add(struct list *list, const char *before, const char *name)
{
    const size_t size = strlen(name);

    text_print(list->out, "%s", before);
    if (list->used && list->width && list->used + 1 + size > list->width) {
        text_print(list->out, "\\n");
        list->used = 0;
    } else if (list->used) {
        text_print(list->out, " ");
        list->used++;
    }
    text_print(list->out, "%s", name);
    list->used += size;
}

static void write_losses(struct text *out, const char *macro, size_t width, const char *const *more)
{
    struct list list = {out, 0, width};
    char item[200];

    text_print(out, "#define %s \"", macro);
    for (size_t i = 0; i < rule_count; i++) {
        if (rules[i].kind != LOSS)
            continue;
        const bool last = (i + 1 == rule_count || rules[i + 1].kind != LOSS) && !more[0];
        snprintf(item, sizeof item, "%s%s", rules[i].name, last ? "" : ",");
        list_add(&list, "", item);
    }
    for (size_t i = 0; more[i]; i++)
        list_add(&list, "", more[i]);
    text_print(out, "\"\n");
}

static void write_names(struct text *out)
{
    static const char *const files[] = {"FILE.onnx,", "output:NAME", NULL};
    static const char *const none[] = {NULL};

    text_print(out, "/* Made by tools/gen_training.c from data/training/. */\n"
                    "#ifndef CAMEO_TRAINING_NAMES_H\n#define CAMEO_TRAINING_NAMES_H\n\n");
    write_losses(out, "CAMEO_LOSS_NAMES", 0, none);
    write_losses(out, "CAMEO_LOSS_HELP", LIST_WIDTH, files);
    text_print(out, "\n#endif\n");
}

/* A header that says the same stays as it is, so that nothing is compiled again. */
static void write_file(const char *path, const struct text *text)
{
    struct reader r = {.path = path};
    FILE *file = fopen(path, "rb");

    if (file) {
        char *const old = grow(NULL, text->size + 1);
        const bool same = fread(old, 1, text->size + 1, file) == text->size &&
                          memcmp(old, text->data, text->size) == 0;
        free(old);
        fclose(file);
        if (same)
            return;
    }
    file = fopen(path, "wb");
    if (!file || fwrite(text->data, 1, text->size, file) != text->size || fclose(file))
        die(&r, "cannot be written");
}

int main(int argc, char **argv)
{
    struct text table = {0}, names = {0};

    if (argc < 4) {
        fputs("usage: gen_training OUT.c OUT.h data/training/FOLDER/NAME.txt...\n", stderr);
        return 2;
    }
    for (int i = 3; i < argc; i++) {
        struct rule *rule = add_rule(argv[i]);
        read_rule(rule);
        struct reader r = value_of(rule, "order");
        rule->order = integer(&r, 1, 1000);
        expect_end(&r);
    }
    qsort(rules, rule_count, sizeof *rules, by_order);
    write_table(&table);
    write_names(&names);
    write_file(argv[1], &table);
    write_file(argv[2], &names);
    return 0;
}
