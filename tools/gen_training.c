/* Writes the tables of losses and optimizers from data/training/: gen_training TABLE.c NAMES.h
 * RULES.h FILE...
 *
 * A file has a header of lines "word: values" and then functions in ONNX's text form. A line of a
 * function may begin with conditions in brackets, "[amsgrad !nesterov]"; the library keeps the
 * lines whose conditions hold and reads what is left (src/train/formula.c). */
// SPDX-License-Identifier: Apache-2.0
#include "gen_reader.h"

enum { MAX_RULES = 64, MAX_LINES = 64, LINE_SIZE = 1024, LIST_WIDTH = 64 };

enum kind { LOSS, OPTIMIZER, ALL, KINDS };

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
    const char *keys[24];
} kinds[KINDS] = {
    [LOSS] = {"data/training/losses/",
              {"order", "target", "contains", "reads", "threshold", "weights", "number",
               "setting"}},
    [OPTIMIZER] = {"data/training/optimizers/",
                   {"order",        "name",   "title",      "setting",     "defaults",
                    "state",        "torch",  "keras",      "optax",       "variant",
                    "refuse",       "number", "decay",      "decoupled",   "torch-group",
                    "torch-counts", "whole",  "keras-runs", "tensorflow1", "epsilon",
                    "ort"}},
    [ALL] = {"data/training/all/", {"order"}},
};

static const char *const arithmetics[] = {"torch", "keras", "optax", "ort", NULL};

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
        if (!inside && !strstr(r.at, ") => (")) { /* a signature is one line */
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
    static const char *const targets[] = {"same", "classes", "sequences", NULL};
    static const char *const target_constants[] = {"CM_TARGET_SAME", "CM_TARGET_CLASSES",
                                                   "CM_TARGET_SEQUENCES"};
    static const char *const contents[] = {"softmax", "sigmoid", NULL};
    static const char *const content_constants[] = {"CM_CONTAINS_SOFTMAX", "CM_CONTAINS_SIGMOID"};
    static const char *const weights[] = {"classes", "positives", NULL};
    static const char *const weight_constants[] = {"CM_WEIGHTS_CLASSES", "CM_WEIGHTS_POSITIVES"};
    struct reader r = value_of(rule, "target");

    text_print(
        out, "    {.name = \"%s\", .target = %s, .numbers = numbers_%zu, .settings = settings_%zu",
        rule->name, choice(&r, targets, target_constants), number, number);
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
    if (line_of(rule, "weights")) {
        r = value_of(rule, "weights");
        text_print(out, ", .weights = %s", choice(&r, weights, weight_constants));
    }
    text_print(out, ",\n     .functions =");
    write_text(out, rule->functions.data);
    text_print(out, "},\n");
}

/* ---- optimizers ---- */

/* " lr=1e-3 momentum=0" as rows. */
static void write_settings(struct text *out, struct reader *r)
{
    text_print(out, "(const struct cm_rule_number[]){");
    while (!at_end(r)) {
        char *const name = word(r);
        expect(r, '=');
        const size_t size = strcspn(r->at, " ");
        char *const number = copy(r->at, size);
        check_double(r, number);
        text_print(out, "{\"%s\", %s}, ", name, number);
        r->at += size;
        free(name);
        free(number);
    }
    text_print(out, "{0, 0}}");
}

/* The part up to the next space, or empty. */
static char *part(struct reader *r)
{
    skip_spaces(r);
    const size_t size = strcspn(r->at, " ");
    char *const out = copy(r->at, size);

    r->at += size;
    return out;
}

static void write_preset(struct text *out, struct reader *r)
{
    char *const name = part(r);

    text_print(out, "{\"%s\", ", name);
    write_settings(out, r);
    text_print(out, "}, ");
    free(name);
}

static void write_defaults(struct text *out, struct reader *r)
{
    char *const like = part(r);
    size_t i = 0;

    while (arithmetics[i] && strcmp(arithmetics[i], like) != 0)
        i++;
    if (!arithmetics[i])
        die(r, "unknown arithmetic '%s'", like);
    text_print(out, "[%zu] = ", i);
    write_settings(out, r);
    text_print(out, ", ");
    free(like);
}

/* "exp_avg exp_avg when=amsgrad keras=m,Adam" */
static void write_state(struct text *out, struct reader *r)
{
    static const char *const keys[] = {"when", "shape", "begins", "keras", "optax", "ort", NULL};
    char *const name = part(r), *const slot = part(r);

    if (!*slot)
        die(r, "a state has a name and PyTorch's word for it");
    text_print(out, "{.name = \"%s\", .slot = \"%s\"", name, slot);
    while (!at_end(r)) {
        char *const key = word(r);
        size_t i = 0;
        while (keys[i] && strcmp(keys[i], key) != 0)
            i++;
        if (!keys[i])
            die(r, "unknown word '%s'", key);
        expect(r, '=');
        char *const value = part(r);
        for (char *p = value; i == 0 && *p; p++)
            *p = *p == '+' ? ' ' : *p; /* several conditions */
        text_print(out, ", .%s = \"%s\"", key, value);
        free(key);
        free(value);
    }
    text_print(out, "}, ");
    free(name);
    free(slot);
}

/* A word, and the rest of the line as one text. */
static void write_pair(struct text *out, struct reader *r)
{
    char *const first = part(r);

    skip_spaces(r);
    text_print(out, "{\"%s\", \"%s\"}, ", first, r->at);
    free(first);
}

/* "adamw AdamW decays" */
static void write_keras(struct text *out, struct reader *r)
{
    char *const word_ = part(r), *const class_ = part(r), *const decays = part(r);

    text_print(out, "{\"%s\", \"%s\", %s}, ", word_, class_, *decays ? "true" : "false");
    free(word_);
    free(class_);
    free(decays);
}

/* "amsgrad count amsgrad=1 after=2" */
static void write_optax(struct text *out, struct reader *r)
{
    static const struct {
        const char *word, *member;
    } words[] = {{"count", "counts"},        {"amsgrad", "amsgrad"}, {"centered", "centered"},
                 {"momentum", "momentum"},   {"after", "after"},     {"decay", "decay"},
                 {"may_decay", "may_decay"}, {"trace", "may_trace"}};
    const size_t count = sizeof words / sizeof *words;
    char *const name = part(r);

    text_print(out, "{.name = \"%s\"", name);
    while (!at_end(r)) {
        char *const key = word(r);
        size_t i = 0;
        while (i < count && strcmp(words[i].word, key) != 0)
            i++;
        if (i == count)
            die(r, "unknown word '%s'", key);
        long long value = 1;
        if (*r->at == '=') {
            expect(r, '=');
            value = integer(r, 0, 9);
        }
        text_print(out, ", .%s = %lld", words[i].member, value);
        free(key);
    }
    text_print(out, "}, ");
    free(name);
}

/* "[nesterov !optax] sentence" */
static void write_refusal(struct text *out, struct reader *r)
{
    expect(r, '[');
    const char *const end = strchr(r->at, ']');
    if (!end)
        die(r, "expected ']'");
    text_print(out, "{\"%.*s\", \"%s\"}, ", (int)(end - r->at), r->at, end + 2);
}

typedef void write_line_fn(struct text *out, struct reader *r);

static const struct {
    const char *key, *member, *type;
    write_line_fn *write;
} members[] = {
    {"name", "presets", "struct cm_optimizer_preset", write_preset},
    {"state", "states", "struct cm_optimizer_state", write_state},
    {"torch", "torch", "struct cm_optimizer_words", write_pair},
    {"ort", "ort", "struct cm_optimizer_words", write_pair},
    {"keras", "keras", "struct cm_optimizer_keras", write_keras},
    {"optax", "optax", "struct cm_optimizer_optax", write_optax},
    {"variant", "variants", "struct cm_optimizer_words", write_pair},
    {"refuse", "refusals", "struct cm_optimizer_words", write_refusal},
};

/* Lines that are read where they are used. */
static const struct {
    const char *key, *member;
} texts[] = {
    {"decoupled", "decoupled"},   {"torch-group", "torch_group"}, {"torch-counts", "torch_counts"},
    {"keras-runs", "keras_runs"}, {"epsilon", "epsilon_alike"},
};

static void write_lines(struct text *out, const struct rule *rule, const char *key,
                        write_line_fn *write)
{
    for (size_t i = 0; i < rule->line_count; i++) {
        struct reader r = {rule->path, rule->lines[i].number, rule->lines[i].value};
        if (strcmp(rule->lines[i].key, key) == 0)
            write(out, &r);
    }
}

static void write_optimizer(struct text *out, const struct rule *rule, size_t number)
{
    const struct reader title = value_of(rule, "title");

    text_print(out, "    {.name = \"%s\", .title = \"%s\", .numbers = numbers_%zu,\n", rule->name,
               title.at, number);
    if (line_of(rule, "decay"))
        text_print(out, "     .decays_itself = true,\n");
    if (line_of(rule, "whole"))
        text_print(out, "     .needs_whole = true,\n");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (line_of(rule, texts[i].key))
            text_print(out, "     .%s = \"%s\",\n", texts[i].member,
                       line_of(rule, texts[i].key)->value);
    if (line_of(rule, "tensorflow1")) {
        struct reader r = value_of(rule, "tensorflow1");
        text_print(out, "     .tensorflow1 = ");
        write_settings(out, &r);
        text_print(out, ",\n");
    }
    text_print(out, "     .defaults = {");
    write_lines(out, rule, "defaults", write_defaults);
    text_print(out, "},\n");
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        text_print(out, "     .%s = (const %s[]){", members[i].member, members[i].type);
        write_lines(out, rule, members[i].key, members[i].write);
        text_print(out, "{0}},\n");
    }
    text_print(out, "     .functions =");
    write_text(out, rule->functions.data);
    text_print(out, "},\n");
}

static void write_table(struct text *out)
{
    text_print(out, "/* Made by tools/gen_training.c from data/training/. */\n"
                    "#include \"train/rules.h\"\n\n");
    for (size_t i = 0; i < rule_count; i++)
        if (rules[i].kind != ALL)
            write_numbers(out, &rules[i], i, "number");
    for (size_t i = 0; i < rule_count; i++)
        if (rules[i].kind == LOSS)
            write_numbers(out, &rules[i], i, "setting");
    text_print(out, "\nconst struct cm_loss_rule cm_loss_rules[] = {\n");
    for (size_t i = 0; i < rule_count; i++)
        if (rules[i].kind == LOSS)
            write_loss(out, &rules[i], i);
    text_print(out, "    {0}};\n\nconst struct cm_optimizer_rule cm_optimizer_rules[] = {\n"
                    "    [CM_RULE_UNKNOWN] = {.name = \"unknown\", .title = \"unknown\",\n"
                    "     .torch_group = \"lr momentum dampening betas=beta1,beta2 eps=epsilon \"\n"
                    "                    \"weight_decay nesterov amsgrad maximize centered\"},\n");
    for (size_t i = 0; i < rule_count; i++)
        if (rules[i].kind == OPTIMIZER)
            write_optimizer(out, &rules[i], i);
    text_print(out, "    {0}};\n");
    for (size_t i = 0; i < rule_count; i++)
        if (rules[i].kind == ALL) {
            text_print(out, "\nconst char cm_rules_for_all_%s[] =", rules[i].name);
            write_text(out, rules[i].functions.data);
            text_print(out, ";\n");
        }
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

/* The presets of all optimizers, "and" or "or" before the last. */
static void write_optimizers(struct text *out, const char *macro, const char *last_word)
{
    const char *names[256];
    size_t count = 0;

    for (size_t i = 0; i < rule_count; i++)
        for (size_t k = 0; k < rules[i].line_count; k++)
            if (rules[i].kind == OPTIMIZER && strcmp(rules[i].lines[k].key, "name") == 0 &&
                count < 256)
                names[count++] = rules[i].lines[k].value;
    struct list list = {out, 0, last_word[0] == 'o' ? LIST_WIDTH : 0};
    text_print(out, "#define %s \"", macro);
    for (size_t i = 0; i < count; i++) {
        char item[200];
        if (i + 1 == count && count > 1)
            list_add(&list, "", last_word);
        snprintf(item, sizeof item, "%.*s%s", (int)strcspn(names[i], " "), names[i],
                 i + 2 < count ? "," : "");
        list_add(&list, "", item);
    }
    text_print(out, "\"\n");
}

/* Does the rule's own framework say a default for the setting? */
static bool has_setting(const struct rule *rule, const char *setting)
{
    const struct line *defaults = line_of(rule, "defaults");
    const size_t size = strlen(setting);

    for (const char *at = defaults ? defaults->value : ""; (at = strstr(at, setting)); at++)
        if (at[-1] == ' ' && at[size] == '=')
            return true;
    return false;
}

/* The presets that have a setting, "of adam, adamw". */
static void write_owners(struct text *out, const char *macro, const char *setting)
{
    struct list list = {out, 0, LIST_WIDTH};
    const char *comma = "";

    text_print(out, "#define %s \"", macro);
    list_add(&list, "", "of");
    for (size_t i = 0; i < rule_count; i++)
        for (size_t k = 0; k < rules[i].line_count; k++) {
            char item[200];

            if (rules[i].kind != OPTIMIZER || strcmp(rules[i].lines[k].key, "name") != 0 ||
                !has_setting(&rules[i], setting))
                continue;
            const char *name = rules[i].lines[k].value;
            snprintf(item, sizeof item, "%.*s", (int)strcspn(name, " "), name);
            list_add(&list, comma, item);
            comma = ",";
        }
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
    write_optimizers(out, "CAMEO_OPTIMIZER_NAMES", "and");
    write_optimizers(out, "CAMEO_OPTIMIZER_HELP", "or");
    write_owners(out, "CAMEO_MOMENTUM_HELP", "momentum");
    write_owners(out, "CAMEO_BETA1_HELP", "beta1");
    write_owners(out, "CAMEO_BETA2_HELP", "beta2");
    text_print(out, "\n#endif\n");
}

/* Which optimizers there are, and the settings that only some of them have. */
static void write_rules(struct text *out)
{
    const char *seen[MAX_LINES];
    size_t count = 0;

    text_print(out, "/* Made by tools/gen_training.c from data/training/. */\n"
                    "#ifndef CM_TRAINING_RULES_H\n#define CM_TRAINING_RULES_H\n\n"
                    "enum cm_update_rule {\n    CM_RULE_UNKNOWN,\n");
    for (size_t i = 0; i < rule_count; i++) {
        if (rules[i].kind != OPTIMIZER)
            continue;
        text_print(out, "    CM_RULE_");
        for (const char *p = rules[i].name; *p; p++)
            text_print(out, "%c", *p == '-' ? '_' : toupper((unsigned char)*p));
        text_print(out, ",\n");
    }
    text_print(out, "    CM_RULES\n};\n\n#define CM_OWN_SETTINGS(X)");
    for (size_t i = 0; i < rule_count; i++)
        for (size_t k = 0; k < rules[i].line_count; k++) {
            const struct line *line = &rules[i].lines[k];
            size_t s = 0;
            if (rules[i].kind != OPTIMIZER || strcmp(line->key, "setting") != 0)
                continue;
            while (s < count && strcmp(seen[s], line->value) != 0)
                s++;
            if (s < count || count == MAX_LINES)
                continue;
            seen[count++] = line->value;
            text_print(out, " X(%s)", line->value);
        }
    text_print(out, "\n\n#endif\n");
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
    struct text table = {0}, names = {0}, enums = {0};

    if (argc < 5) {
        fputs("usage: gen_training TABLE.c NAMES.h RULES.h data/training/FOLDER/NAME.txt...\n",
              stderr);
        return 2;
    }
    for (int i = 4; i < argc; i++) {
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
    write_rules(&enums);
    write_file(argv[3], &enums);
    return 0;
}
