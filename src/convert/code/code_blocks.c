/* Parts of a network that occur several times become classes. A part is what reads the tensors
 * below one number of a list of modules, "layers.3."; parts are alike if their lines are, with
 * other tensors, and if their layers differ in numbers only, which become arguments. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/code/code_state.h"

#include <string.h>

enum { LINES_MIN = 2, PARTS_MAX = 4096, ARGS_MAX = 12 };

struct part {
    struct cm_str path; /* "layers.3" */
    size_t first, last; /* lines */
    size_t tail;        /* lines after the last that could belong to it */
    bool is_wrong;      /* its lines are not one piece of straight code */
    struct cm_str key;  /* parts are alike if it is equal */
    struct cm_code_lines lines;
    CM_ARRAY(struct cm_str) inputs; /* references */
    CM_ARRAY(size_t) outputs;       /* variables */
    bool is_call;                   /* its last line calls a class now */
    struct cm_str made;
};

struct finding {
    struct cm_code *code;
    CM_ARRAY(struct part) parts;
    struct cm_map by_path; /* index + 1 */
    size_t *defined;       /* by variable: the line, plus 1 */
    size_t *last_use;
};

/* ---- which part a path is in ---- */

static struct cm_str number_path(struct cm_str path)
{
    size_t begin = 0;

    for (size_t i = 0; i <= path.size; i++) {
        if (i < path.size && path.data[i] != '.')
            continue;
        const struct cm_str part = {path.data + begin, i - begin};
        if (begin && cm_code_is_number(part))
            return i < path.size ? (struct cm_str){path.data, i} : CM_STR_NONE;
        begin = i + 1;
    }
    return CM_STR_NONE;
}

static struct cm_str path_of(const struct cm_code *code, char kind, size_t number)
{
    return kind == CM_CODE_LAYER ? code->layers.items[number].path
                                 : code->tensors.items[number].path;
}

static bool is_layer_path(const struct cm_code *code, struct cm_str path)
{
    return cm_map_find(&code->layer_of, path) != NULL;
}

/* The part that a reference belongs to; NULL: none. */
static struct part *part_of(struct finding *f, char kind, size_t number)
{
    const struct cm_str path = number_path(path_of(f->code, kind, number));
    bool added;

    if (!path.size || is_layer_path(f->code, path) || f->parts.count == PARTS_MAX)
        return NULL;
    uint64_t *index = cm_map_insert(&f->by_path, f->code->arena, path, &added);
    if (added) {
        *CM_PUSH(f->code->arena, &f->parts) = (struct part){.path = path, .first = SIZE_MAX};
        *index = f->parts.count;
    }
    return &f->parts.items[*index - 1];
}

/* ---- lines ---- */

static bool is_straight(const struct cm_code_line *line)
{
    return line->indent == 0 && !cm_str_starts(line->text, "return ") &&
           !(line->text.size && line->text.data[line->text.size - 1] == ':') &&
           cm_code_assignment(line->text).count;
}

static void drop_gone(struct cm_code *code)
{
    size_t left = 0;

    for (size_t i = 0; i < code->lines.count; i++)
        if (!code->lines.items[i].is_gone)
            code->lines.items[left++] = code->lines.items[i];
    code->lines.count = left;
}

static void find_uses(struct finding *f)
{
    struct cm_code *code = f->code;

    memset(f->defined, 0, code->vars.count * sizeof *f->defined);
    memset(f->last_use, 0, code->vars.count * sizeof *f->last_use);
    for (size_t i = 0; i < code->lines.count; i++) {
        const struct cm_str text = code->lines.items[i].text;
        const struct cm_code_assignment to = cm_code_assignment(text);

        for (size_t at = 0; at < text.size;) {
            size_t number;
            char kind;
            if (!cm_code_read_ref(text, &at, &kind, &number))
                at++;
            else if (kind == CM_CODE_VAR)
                f->last_use[number] = i;
        }
        for (size_t t = 0; t < to.count; t++)
            f->defined[to.targets[t]] = f->defined[to.targets[t]] ? SIZE_MAX : i + 1;
    }
}

static void find_parts(struct finding *f)
{
    struct cm_code *code = f->code;

    for (size_t i = 0; i < code->lines.count; i++) {
        const struct cm_code_line *line = &code->lines.items[i];
        struct part *one = NULL;

        for (size_t at = 0; at < line->text.size;) {
            size_t number;
            char kind;
            if (!cm_code_read_ref(line->text, &at, &kind, &number)) {
                at++;
                continue;
            }
            struct part *part = kind == CM_CODE_VAR ? NULL : part_of(f, kind, number);
            if (!part)
                continue;
            if (part->first == SIZE_MAX)
                part->first = i;
            part->last = i;
            if (!is_straight(line) || (one && one->path.data != part->path.data))
                part->is_wrong = true;
            one = part;
        }
    }
}

/* Does the line read a variable that lines from first on assign? */
static bool depends(const struct finding *f, struct cm_str text, size_t first)
{
    for (size_t at = 0; at < text.size;) {
        size_t number;
        char kind;
        if (!cm_code_read_ref(text, &at, &kind, &number))
            at++;
        else if (kind == CM_CODE_VAR && f->defined[number] > first)
            return true;
    }
    return false;
}

static bool has_part(struct finding *f, struct cm_str text)
{
    for (size_t at = 0; at < text.size;) {
        size_t number;
        char kind;
        if (!cm_code_read_ref(text, &at, &kind, &number))
            at++;
        else if (kind != CM_CODE_VAR && part_of(f, kind, number))
            return true;
    }
    return false;
}

/* What all parts share but the first computes, such as a mask, goes in front of it. */
static void hoist(struct finding *f, struct part *part)
{
    struct cm_code_lines *lines = &f->code->lines;

    for (size_t i = part->first + 1; i < part->last; i++) {
        const struct cm_code_line line = lines->items[i];
        const struct cm_code_assignment to = cm_code_assignment(line.text);

        if (!is_straight(&line) || to.count != 1 || f->last_use[to.targets[0]] <= part->last ||
            has_part(f, line.text))
            continue;
        /* Its own target is defined after first; what it reads must not be. */
        if (depends(f, to.value, part->first))
            continue;
        memmove(lines->items + part->first + 1, lines->items + part->first,
                (i - part->first) * sizeof line);
        lines->items[part->first] = line;
        part->first++;
        find_uses(f);
    }
}

/* Lines after the last one that only go on with what the part computes. */
static void find_tail(struct finding *f, struct part *part)
{
    const struct cm_code_lines *lines = &f->code->lines;

    for (size_t i = part->last + 1; i < lines->count; i++) {
        const struct cm_code_line *line = &lines->items[i];
        bool is_plain = is_straight(line) && depends(f, line->text, part->first);

        for (size_t at = 0; at < line->text.size && is_plain;) {
            size_t number;
            char kind;
            if (!cm_code_read_ref(line->text, &at, &kind, &number))
                at++;
            else if (kind == CM_CODE_LAYER ||
                     (kind == CM_CODE_TENSOR && f->code->tensors.items[number].is_parameter))
                is_plain = false;
        }
        if (!is_plain)
            return;
        part->tail++;
    }
}

static struct cm_str list_of(const struct part *part)
{
    return cm_str_before_last(part->path, '.');
}

static void settle_ranges(struct finding *f)
{
    for (size_t i = 0; i < f->parts.count; i++)
        if (!f->parts.items[i].is_wrong)
            hoist(f, &f->parts.items[i]);
    for (size_t i = 0; i < f->parts.count; i++)
        find_tail(f, &f->parts.items[i]);
    for (size_t i = 0; i < f->parts.count; i++) {
        struct part *part = &f->parts.items[i];
        size_t tail = part->tail;
        for (size_t k = 0; k < f->parts.count; k++)
            if (cm_str_equal(list_of(&f->parts.items[k]), list_of(part)) &&
                f->parts.items[k].tail < tail)
                tail = f->parts.items[k].tail;
        part->tail = part->tail < tail ? part->tail : tail;
    }
    for (size_t i = 0; i < f->parts.count; i++) {
        struct part *part = &f->parts.items[i];
        size_t tail = part->tail;
        for (size_t k = 0; k < f->parts.count; k++)
            if (cm_str_equal(list_of(&f->parts.items[k]), list_of(part)) &&
                f->parts.items[k].tail < tail)
                tail = f->parts.items[k].tail;
        part->last += tail;
    }
    for (size_t i = 0; i < f->parts.count; i++)
        for (size_t k = 0; k < f->parts.count; k++) {
            struct part *a = &f->parts.items[i], *b = &f->parts.items[k];
            if (i != k && a->first <= b->last && b->first <= a->last)
                a->is_wrong = b->is_wrong = true;
        }
}

/* ---- what a part is ---- */

/* The text of how a layer is made, with '#' for numbers. */
static struct cm_str skeleton(struct cm_code *code, struct cm_str made)
{
    struct cm_code_text out = {0};

    for (size_t i = 0; i < made.size; i++) {
        const char c = made.data[i], before = i ? made.data[i - 1] : ' ';
        const bool is_digit = c >= '0' && c <= '9';
        if (is_digit && (before == '(' || before == ' ' || before == '=')) {
            *CM_PUSH(code->arena, &out) = '#';
            while (i + 1 < made.size && made.data[i + 1] >= '0' && made.data[i + 1] <= '9')
                i++;
        } else {
            *CM_PUSH(code->arena, &out) = c;
        }
    }
    return cm_code_text_str(&out);
}

static size_t input_of(struct finding *f, struct part *part, struct cm_str ref)
{
    for (size_t i = 0; i < part->inputs.count; i++)
        if (cm_str_equal(part->inputs.items[i], ref))
            return i;
    *CM_PUSH(f->code->arena, &part->inputs) = ref;
    return part->inputs.count - 1;
}

static void describe_tensor(struct finding *f, struct part *part, struct cm_code_text *key,
                            char kind, size_t number)
{
    struct cm_code *code = f->code;
    const struct cm_str rest = cm_str_from(path_of(code, kind, number), part->path.size + 1);

    /* A module that is a list itself has no names for what is in it. */
    if (rest.size && rest.data[0] >= '0' && rest.data[0] <= '9')
        part->is_wrong = true;
    cm_code_putf(code, key, "<%.*s ", CM_STR_ALL(rest));
    if (kind == CM_CODE_LAYER) {
        cm_code_put(code, key, skeleton(code, code->layers.items[number].made));
    } else {
        const struct cm_code_tensor *tensor = &code->tensors.items[number];
        cm_code_putf(code, key, "%d %d %d", (int)tensor->dtype, tensor->is_parameter,
                     tensor->is_turned);
        for (int a = 0; a < tensor->shape.rank; a++)
            cm_code_putf(code, key, " %lld", (long long)tensor->shape.dims[a]);
    }
    cm_code_putf(code, key, ">");
}

/* Which of the variables that a line assigns it is. */
static size_t place_in(const struct cm_code *code, size_t line, size_t var)
{
    const struct cm_code_assignment to = cm_code_assignment(code->lines.items[line].text);
    size_t place = 0;

    while (place < to.count && to.targets[place] != var)
        place++;
    return place;
}

static void describe(struct finding *f, struct part *part)
{
    struct cm_code *code = f->code;
    struct cm_code_text key = {0};

    for (size_t i = part->first; i <= part->last && !part->is_wrong; i++) {
        const struct cm_code_line *line = &code->lines.items[i];
        const struct cm_code_assignment to = cm_code_assignment(line->text);

        if (!is_straight(line)) {
            part->is_wrong = true;
            return;
        }
        for (size_t t = 0; t < to.count; t++) {
            if (f->defined[to.targets[t]] == SIZE_MAX)
                part->is_wrong = true; /* it is assigned more than once */
            if (f->last_use[to.targets[t]] > part->last)
                *CM_PUSH(code->arena, &part->outputs) = to.targets[t];
        }
        for (size_t at = 0; at < line->text.size;) {
            const size_t begin = at;
            size_t number;
            char kind;
            if (!cm_code_read_ref(line->text, &at, &kind, &number)) {
                *CM_PUSH(code->arena, &key) = line->text.data[at++];
                continue;
            }
            const struct cm_str ref = {line->text.data + begin, at - begin};
            const size_t where = kind == CM_CODE_VAR ? f->defined[number] : 0;
            if (kind != CM_CODE_VAR && part_of(f, kind, number) == part)
                describe_tensor(f, part, &key, kind, number);
            else if (where > part->first && where <= part->last + 1)
                cm_code_putf(code, &key, "<line %zu, %zu>", where - 1 - part->first,
                             place_in(code, where - 1, number));
            else
                cm_code_putf(code, &key, "<input %zu>", input_of(f, part, ref));
        }
        cm_code_putf(code, &key, "\n");
    }
    for (size_t i = 0; i < part->outputs.count; i++) {
        const size_t line = f->defined[part->outputs.items[i]] - 1;
        cm_code_putf(code, &key, "out %zu, %zu\n", line - part->first,
                     place_in(code, line, part->outputs.items[i]));
    }
    part->key = cm_code_text_str(&key);
    if (part->last + 1 - part->first < LINES_MIN || !part->outputs.count || part->outputs.count > 8)
        part->is_wrong = true;
}

/* ---- classes ---- */

/* "layers" of "enc.layers.3" as a name of a class: "Layer". */
static struct cm_str class_name(struct cm_code *code, const struct part *part)
{
    const struct cm_str list = list_of(part), word = cm_str_after_last(list, '.');
    char text[64];
    size_t size = 0;
    bool raise = true;

    for (size_t i = 0; i < word.size && size < 60; i++) {
        char c = word.data[i];
        if (c == '_' || (c >= '0' && c <= '9')) {
            raise = true;
            continue;
        }
        text[size++] = raise && c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
        raise = false;
    }
    if (size > 3 && text[size - 1] == 's' && text[size - 2] != 's')
        size--;
    if (size < 2)
        return CM_STR("Block");
    return cm_code_identifier(code->arena, (struct cm_str){text, size});
}

/* The text with references to inputs and to the variables of the part replaced. */
static struct cm_str in_class(struct cm_code *code, const struct part *part,
                              const struct cm_code_class *class, struct cm_str text)
{
    struct cm_code_text out = {0};

    for (size_t at = 0; at < text.size;) {
        const size_t begin = at;
        size_t number, input = 0;
        char kind;
        if (!cm_code_read_ref(text, &at, &kind, &number)) {
            *CM_PUSH(code->arena, &out) = text.data[at++];
            continue;
        }
        const struct cm_str ref = {text.data + begin, at - begin};
        while (input < part->inputs.count && !cm_str_equal(part->inputs.items[input], ref))
            input++;
        cm_code_put(code, &out,
                    input < part->inputs.count
                        ? cm_code_ref(code, CM_CODE_VAR, class->inputs.items[input])
                        : ref);
    }
    return cm_code_text_str(&out);
}

static struct cm_str input_hint(struct cm_code *code, struct cm_str ref)
{
    size_t at = 0, number;
    char kind;

    if (!cm_code_read_ref(ref, &at, &kind, &number) || kind != CM_CODE_VAR)
        return CM_STR("shared");
    return code->vars.items[number].hint;
}

static void make_class(struct finding *f, struct part *part, size_t number)
{
    struct cm_code *code = f->code;
    struct cm_code_class *class = &code->classes.items[number];
    struct cm_code_text result = {0};

    class->name = cm_code_unique(code, &code->names, class_name(code, part));
    class->prefix = cm_arena_printf(code->arena, "%.*s.", CM_STR_ALL(part->path));
    for (size_t i = 0; i < part->inputs.count; i++)
        *CM_PUSH(code->arena, &class->inputs) =
            cm_code_new_var(code, i ? input_hint(code, part->inputs.items[i]) : CM_STR("x"));
    for (size_t i = part->first; i <= part->last; i++)
        *CM_PUSH(code->arena, &class->lines) =
            (struct cm_code_line){.text = in_class(code, part, class, code->lines.items[i].text)};
    cm_code_putf(code, &result, "return ");
    for (size_t i = 0; i < part->outputs.count; i++) {
        cm_code_putf(code, &result, i ? ", " : "");
        cm_code_put(code, &result, cm_code_ref(code, CM_CODE_VAR, part->outputs.items[i]));
    }
    *CM_PUSH(code->arena, &class->lines) = (struct cm_code_line){.text = cm_code_text_str(&result)};
}

/* The layers below a path, in the order of their numbers. */
static bool is_below(struct cm_str path, struct cm_str prefix)
{
    return path.size > prefix.size && memcmp(path.data, prefix.data, prefix.size) == 0;
}

/* The layer of another part that is what a layer of the first part is there. */
static const struct cm_code_layer *same_layer(const struct cm_code *code,
                                              const struct cm_code_class *class,
                                              const struct part *part, size_t layer)
{
    const struct cm_str rest = cm_str_from(code->layers.items[layer].path, class->prefix.size);
    const struct cm_str path =
        cm_arena_printf(code->arena, "%.*s.%.*s", CM_STR_ALL(part->path), CM_STR_ALL(rest));
    const uint64_t *found = cm_map_find(&code->layer_of, path);

    return found ? &code->layers.items[*found - 1] : NULL;
}

/* The numbers in how a layer is made, one after the other; *at begins at 0. */
static struct cm_str next_number(struct cm_str made, size_t *at)
{
    for (; *at < made.size; ++*at) {
        const char c = made.data[*at], before = *at ? made.data[*at - 1] : ' ';
        if (c < '0' || c > '9' || (before != '(' && before != ' ' && before != '='))
            continue;
        const size_t begin = *at;
        while (*at < made.size && made.data[*at] >= '0' && made.data[*at] <= '9')
            ++*at;
        return (struct cm_str){made.data + begin, *at - begin};
    }
    return CM_STR_NONE;
}

/* What a number is, by its place: "stride" of "stride=2", "inputs", "outputs". */
static struct cm_str argument_hint(struct cm_str made, size_t begin)
{
    size_t from = begin;

    if (begin && made.data[begin - 1] == '=') {
        from = begin - 1;
        while (from && made.data[from - 1] != ' ' && made.data[from - 1] != '(')
            from--;
        return (struct cm_str){made.data + from, begin - 1 - from};
    }
    return begin && made.data[begin - 1] == '(' ? CM_STR("inputs") : CM_STR("outputs");
}

struct column {
    struct cm_str *values; /* by part of the class */
    struct cm_str name;
};

struct columns {
    CM_ARRAY(struct column);
};

/* The name of a number that differs between parts; empty: it is the same in all. */
static struct cm_str column_name(struct finding *f, struct columns *columns, size_t number,
                                 size_t n_members, struct cm_str *values, struct cm_str hint,
                                 struct cm_map *names)
{
    size_t same = 1;

    (void)number;
    while (same < n_members && cm_str_equal(values[same], values[0]))
        same++;
    if (same == n_members)
        return CM_STR_NONE;
    for (size_t c = 0; c < columns->count; c++) {
        size_t m = 0;
        while (m < n_members && cm_str_equal(columns->items[c].values[m], values[m]))
            m++;
        if (m == n_members)
            return columns->items[c].name;
    }
    const struct cm_str name = cm_code_unique(f->code, names, hint);
    *CM_PUSH(f->code->arena, columns) = (struct column){values, name};
    return name;
}

/* Numbers in which the layers of the parts differ become arguments of the class. */
static void find_arguments(struct finding *f, size_t number, struct part **members,
                           size_t n_members, struct columns *columns)
{
    struct cm_code *code = f->code;
    struct cm_code_class *class = &code->classes.items[number];
    struct cm_map names = {0};

    class->made = CM_NEW_ARRAY(code->arena, struct cm_code_made, code->layers.count + 1);
    for (size_t l = 0; l < code->layers.count; l++) {
        const struct cm_code_layer *layer = &code->layers.items[l];
        struct cm_code_text how = {0};
        size_t done = 0;

        if (!is_below(layer->path, class->prefix) || !layer->made.size)
            continue;
        size_t *ats = CM_NEW_ARRAY(code->arena, size_t, n_members);
        for (size_t at = 0;;) {
            struct cm_str *values = CM_NEW_ARRAY(code->arena, struct cm_str, n_members);
            const struct cm_str first = next_number(layer->made, &at);
            for (size_t m = 0; m < n_members; m++) {
                const struct cm_code_layer *other = same_layer(code, class, members[m], l);
                if (other)
                    values[m] = next_number(other->made, &ats[m]);
            }
            if (!first.size)
                break;
            const size_t begin = at - first.size;
            const struct cm_str name = column_name(f, columns, number, n_members, values,
                                                   argument_hint(layer->made, begin), &names);
            cm_code_put(code, &how, (struct cm_str){layer->made.data + done, begin - done});
            cm_code_put(code, &how, name.size ? name : first);
            done = at;
        }
        cm_code_put(code, &how, cm_str_from(layer->made, done));
        class->made[class->n_made++] = (struct cm_code_made){l, cm_code_text_str(&how)};
    }
    for (size_t c = 0; c < columns->count; c++)
        *CM_PUSH(code->arena, &class->args) = columns->items[c].name;
}

/* The layer that the part is in the model itself. */
static size_t add_block(struct finding *f, const struct part *part, struct cm_str made)
{
    struct cm_code *code = f->code;
    struct cm_code_layer block = {.path = part->path, .made = made, .is_block = true};
    const struct cm_str prefix = cm_arena_printf(code->arena, "%.*s.", CM_STR_ALL(part->path));

    block.tensors = CM_NEW_ARRAY(code->arena, size_t, code->tensors.count + 1);
    for (size_t t = 0; t < code->tensors.count; t++)
        if (is_below(code->tensors.items[t].path, prefix) && code->tensors.items[t].is_used)
            block.tensors[block.n_tensors++] = t;
    *CM_PUSH(code->arena, &code->layers) = block;
    return code->layers.count - 1;
}

static void replace_part(struct finding *f, const struct part *part, size_t block)
{
    struct cm_code *code = f->code;
    struct cm_code_text call = {0};

    for (size_t i = 0; i < part->outputs.count; i++) {
        cm_code_putf(code, &call, i ? ", " : "");
        cm_code_put(code, &call, cm_code_ref(code, CM_CODE_VAR, part->outputs.items[i]));
    }
    cm_code_putf(code, &call, " = ");
    cm_code_put(code, &call, cm_code_ref(code, CM_CODE_LAYER, block));
    cm_code_putf(code, &call, "(");
    for (size_t i = 0; i < part->inputs.count; i++) {
        cm_code_putf(code, &call, i ? ", " : "");
        cm_code_put(code, &call, part->inputs.items[i]);
    }
    cm_code_putf(code, &call, ")");
    for (size_t i = part->first; i <= part->last; i++)
        code->lines.items[i].is_gone = true;
    code->lines.items[part->last].is_gone = false;
    code->lines.items[part->last].text = cm_code_text_str(&call);
}

static void put_class(struct finding *f, struct part **members, size_t n_members)
{
    struct cm_code *code = f->code;
    struct columns columns = {0};
    const size_t number = code->classes.count;

    *CM_PUSH(code->arena, &code->classes) = (struct cm_code_class){0};
    make_class(f, members[0], number);
    find_arguments(f, number, members, n_members, &columns);
    for (size_t m = 0; m < n_members; m++) {
        struct cm_code_text made = {0};

        cm_code_putf(code, &made, "%.*s(", CM_STR_ALL(code->classes.items[number].name));
        for (size_t c = 0; c < columns.count; c++)
            cm_code_putf(code, &made, "%s%.*s", c ? ", " : "",
                         CM_STR_ALL(columns.items[c].values[m]));
        cm_code_putf(code, &made, ")");
        members[m]->is_call = true;
        members[m]->made = cm_code_text_str(&made);
        replace_part(f, members[m], add_block(f, members[m], members[m]->made));
    }
}

/* ---- parts one after the other become a loop ---- */

/* The parts of a list in their order; 0: some number is missing. */
static size_t parts_of_list(struct finding *f, struct cm_str list, struct part **out)
{
    size_t count = 0;

    for (size_t i = 0; i < f->parts.count; i++)
        if (cm_str_equal(list_of(&f->parts.items[i]), list))
            out[count++] = NULL;
    for (size_t i = 0; i < f->parts.count; i++) {
        struct part *part = &f->parts.items[i];
        int64_t number;
        if (!cm_str_equal(list_of(part), list))
            continue;
        if (!part->is_call || !cm_str_to_int64(cm_str_after_last(part->path, '.'), &number) ||
            number < 0 || (size_t)number >= count || out[number])
            return 0;
        out[number] = part;
    }
    return count;
}

/* The input of each part that is what the one before it gives, all other inputs being the same;
 * SIZE_MAX: there is none. */
static size_t carried_input(struct finding *f, struct part **parts, size_t count)
{
    size_t carried = SIZE_MAX;

    for (size_t i = 0; i < count; i++) {
        if (parts[i]->outputs.count != 1 || parts[i]->inputs.count != parts[0]->inputs.count)
            return SIZE_MAX;
        for (size_t line = i ? parts[i - 1]->last + 1 : parts[0]->last; line < parts[i]->last;
             line++)
            if (!f->code->lines.items[line].is_gone)
                return SIZE_MAX;
        if (i + 1 < count && f->last_use[parts[i]->outputs.items[0]] > parts[i + 1]->last)
            return SIZE_MAX;
        for (size_t k = 0; i && k < parts[i]->inputs.count; k++) {
            const struct cm_str input = parts[i]->inputs.items[k];
            const struct cm_str before =
                cm_code_ref(f->code, CM_CODE_VAR, parts[i - 1]->outputs.items[0]);
            if (cm_str_equal(input, parts[0]->inputs.items[k]))
                continue;
            if (!cm_str_equal(input, before) || (carried != SIZE_MAX && carried != k))
                return SIZE_MAX;
            carried = k;
        }
    }
    return carried;
}

static void put_loop(struct finding *f, struct part **parts, size_t count, size_t carried)
{
    struct cm_code *code = f->code;
    const struct cm_str list = list_of(parts[0]);
    struct cm_str hint = cm_code_identifier(code->arena, cm_str_after_last(list, '.'));
    struct cm_code_text call = {0};

    if (hint.size > 2 && hint.data[hint.size - 1] == 's')
        hint.size--;
    const struct cm_str one = cm_code_ref(code, CM_CODE_VAR, cm_code_new_var(code, hint)),
                        x = cm_code_ref(code, CM_CODE_VAR, cm_code_new_var(code, CM_STR("x"))),
                        last = cm_code_ref(code, CM_CODE_VAR, parts[count - 1]->outputs.items[0]);
    *CM_PUSH(code->arena, &code->layers) = (struct cm_code_layer){.path = list, .is_list = true};
    const struct cm_str from = cm_code_ref(code, CM_CODE_LAYER, code->layers.count - 1);

    cm_code_putf(code, &call, "%.*s = %.*s(", CM_STR_ALL(x), CM_STR_ALL(one));
    for (size_t k = 0; k < parts[0]->inputs.count; k++) {
        cm_code_putf(code, &call, k ? ", " : "");
        cm_code_put(code, &call, k == carried ? x : parts[0]->inputs.items[k]);
    }
    cm_code_putf(code, &call, ")");
    const struct cm_code_line lines[] = {
        {.text = cm_arena_printf(code->arena, "%.*s = %.*s", CM_STR_ALL(x),
                                 CM_STR_ALL(parts[0]->inputs.items[carried]))},
        {.text =
             cm_arena_printf(code->arena, "for %.*s in %.*s:", CM_STR_ALL(one), CM_STR_ALL(from))},
        {.text = cm_code_text_str(&call), .indent = 4},
        {.text = cm_arena_printf(code->arena, "%.*s = %.*s", CM_STR_ALL(last), CM_STR_ALL(x))},
    };
    /* Every part has two lines at least, and one is left: there is room. */
    size_t at = parts[0]->last;
    for (size_t i = 0; i < count; i++)
        code->lines.items[parts[i]->last].is_gone = true;
    at -= at - parts[0]->first < 1 ? at - parts[0]->first : 1;
    for (size_t i = 0; i < CM_COUNT(lines); i++)
        code->lines.items[at + i] = lines[i];
}

static void find_loops(struct finding *f)
{
    struct part **parts = CM_NEW_ARRAY(f->code->arena, struct part *, f->parts.count + 1);
    struct cm_map done = {0};

    for (size_t i = 0; i < f->parts.count; i++) {
        const struct cm_str list = list_of(&f->parts.items[i]);
        if (!cm_map_add(&done, f->code->arena, list))
            continue;
        const size_t count = parts_of_list(f, list, parts);
        const size_t carried = count > 1 ? carried_input(f, parts, count) : SIZE_MAX;
        if (carried != SIZE_MAX)
            put_loop(f, parts, count, carried);
    }
}

void cm_code_find_blocks(struct cm_code *code)
{
    struct finding f = {.code = code};
    struct cm_map done = {0};

    drop_gone(code);
    f.defined = CM_NEW_ARRAY(code->arena, size_t, code->vars.count + 1);
    f.last_use = CM_NEW_ARRAY(code->arena, size_t, code->vars.count + 1);
    find_uses(&f);
    find_parts(&f);
    settle_ranges(&f);
    struct part **members = CM_NEW_ARRAY(code->arena, struct part *, f.parts.count + 1);
    for (size_t i = 0; i < f.parts.count; i++)
        if (!f.parts.items[i].is_wrong)
            describe(&f, &f.parts.items[i]);
    for (size_t i = 0; i < f.parts.count; i++) {
        struct part *part = &f.parts.items[i];
        size_t count = 0;

        if (part->is_wrong || !part->key.size || !cm_map_add(&done, code->arena, part->key))
            continue;
        for (size_t k = i; k < f.parts.count; k++)
            if (!f.parts.items[k].is_wrong && cm_str_equal(f.parts.items[k].key, part->key))
                members[count++] = &f.parts.items[k];
        if (count > 1)
            put_class(&f, members, count);
    }
    find_loops(&f);
}
