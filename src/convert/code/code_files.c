/* Files that all frameworks of Python share: the sample that check.py compares with. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/code/code_files.h"

#include "base/folder_save.h"
#include "io/arrays.h"

#include <string.h>

struct sample_arrays {
    CM_ARRAY(struct cm_array);
};

/* The expression that reads a value back, and its tensors as arrays. */
static void put_datum(struct cm_code *code, struct sample_arrays *arrays, struct cm_code_text *out,
                      const struct cm_datum *datum, const struct cm_type *type, int depth)
{
    const struct cm_type *inner = type && type->elem ? type->elem : type;

    if (datum->kind == CM_KIND_TENSOR) {
        const size_t number = arrays->count;
        const bool is_text = datum->tensor.type == CM_STRING;

        if (is_text) {
            const struct cm_str text = cm_code_nested(code->arena, &datum->tensor);
            cm_code_putf(code, out, "np.array(");
            cm_code_put(code, out, text);
            cm_code_putf(code, out, ", dtype=object)");
            return;
        }
        *CM_PUSH(code->arena, arrays) =
            (struct cm_array){.name = cm_arena_printf(code->arena, "%zu", number), .value = *datum};
        cm_code_putf(code, out, "tensor(data[\"%zu\"], %s)", number,
                     cm_code_type(code, datum->tensor.type));
    } else if (datum->kind == CM_KIND_SEQUENCE && depth < 8) {
        cm_code_putf(code, out, "[");
        for (size_t i = 0; i < datum->n_items; i++) {
            cm_code_putf(code, out, i ? ", " : "");
            put_datum(code, arrays, out, &datum->items[i], inner, depth + 1);
        }
        cm_code_putf(code, out, "]");
    } else if (datum->kind == CM_KIND_MAP && depth < 8) {
        cm_code_putf(code, out, "{");
        for (size_t i = 0; i < datum->n_items; i++) {
            cm_code_putf(code, out, i ? ", " : "");
            cm_code_put(code, out, cm_code_element(code->arena, &datum->tensor, (int64_t)i));
            cm_code_putf(code, out, ": ");
            put_datum(code, arrays, out, &datum->items[i], inner, depth + 1);
        }
        cm_code_putf(code, out, "}");
    } else {
        cm_code_putf(code, out, "None");
    }
}

/* What was fed to an input of the graph; nothing where the run needed it not. */
static const struct cm_datum *fed(const struct cm_code *code, size_t input)
{
    static const struct cm_datum nothing;
    const struct cm_code_sample *sample = code->options->sample;
    const struct cm_str name = cm_value_get(code->module, code->graph->inputs[input])->name;

    for (size_t i = 0; i < sample->n_inputs; i++)
        if (cm_str_equal(sample->names[i], name))
            return &sample->inputs[i];
    return &nothing;
}

static void put_list(struct cm_code *code, struct sample_arrays *arrays, struct cm_code_text *out,
                     bool is_inputs)
{
    const struct cm_code_sample *sample = code->options->sample;
    const size_t count = is_inputs ? code->graph->n_inputs : sample->n_outputs;
    struct cm_code_text line = {0};

    cm_code_putf(code, &line, "%s = [", is_inputs ? "inputs" : "expected");
    for (size_t i = 0; i < count; i++) {
        cm_code_putf(code, &line, i ? ", " : "");
        put_datum(code, arrays, &line, is_inputs ? fed(code, i) : &sample->outputs[i], NULL, 0);
    }
    cm_code_putf(code, &line, "]");
    cm_code_statement(code, out, 4, cm_code_text_str(&line));
}

/* Writes the sample's arrays to check.npz, and adds the statements that read them back:
 * `inputs = [tensor(data["0"], TYPE), ..]` and `expected = [..]`, for a function main of check.py
 * that has defined data, and a function tensor(array, type). */
static enum cm_status write_sample(struct cm_code *code, struct cm_folder_save *folder,
                                   struct cm_code_text *lines, struct cm_error *err)
{
    struct sample_arrays arrays = {0};
    const char *path;

    put_list(code, &arrays, lines, true);
    put_list(code, &arrays, lines, false);
    CM_TRY(cm_folder_file(folder, code->arena, "check.npz", &path, err));
    return cm_arrays_save_inside(code->arena, path, arrays.items, arrays.count, err);
}

enum cm_status cm_code_write_check(struct cm_code *code, struct cm_folder_save *folder,
                                   struct cm_error *err)
{
    const struct cm_template_text *frame = cm_code_text_of(code->to, "files", CM_STR("check"));
    struct cm_code_text sample = {0}, out = {0};

    CM_TRY(write_sample(code, folder, &sample, err));
    const char *mark = strstr(frame->text, "    # SAMPLE\n");
    cm_code_put(code, &out, (struct cm_str){frame->text, (size_t)(mark - frame->text)});
    cm_code_put(code, &out, cm_code_text_str(&sample));
    cm_code_put(code, &out, cm_str(mark + strlen("    # SAMPLE\n")));
    return cm_folder_put(folder, code->arena, "check.py", cm_code_text_str(&out), err);
}

void cm_code_put_notes(struct cm_code *code, struct cm_code_text *out)
{
    for (size_t i = 0; i < code->notes.count; i++)
        cm_code_putf(code, out, "\n%.*s\n",
                     CM_STR_ALL(cm_code_comment(code->arena, code->notes.items[i])));
}

bool cm_code_uses(const struct cm_code_text *text, const char *name)
{
    const size_t size = strlen(name);

    for (size_t i = 1; i + size < text->count; i++)
        if (memcmp(text->items + i, name, size) == 0 &&
            strchr(" ([-,{~!=*", text->items[i - 1]) != NULL)
            return true;
    return false;
}

void cm_code_put_lines(struct cm_code *code, struct cm_code_text *out, int indent)
{
    const struct cm_code_lines *lines = &code->lines;
    const size_t begin = out->count;
    int function = -1; /* the indentation of a function inside whose lines are being put */

    for (size_t i = 0; i < lines->count; i++) {
        const struct cm_code_line *line = &lines->items[i];
        const bool is_function = cm_str_starts(line->text, "def ");
        size_t next = i + 1;

        if (line->is_gone)
            continue;
        const bool ends = function >= 0 && line->indent <= function;
        if (ends || (is_function && out->count > begin))
            cm_code_putf(code, out, "\n");
        if (ends || is_function)
            function = is_function ? line->indent : -1;
        cm_code_statement(code, out, indent + line->indent, cm_code_named(code, line->text));
        while (next < lines->count && lines->items[next].is_gone)
            next++;
        const bool is_head = line->text.size && line->text.data[line->text.size - 1] == ':';
        if (is_head && (next == lines->count || lines->items[next].indent <= line->indent))
            cm_code_statement(code, out, indent + line->indent + 4, CM_STR("pass"));
    }
}

struct cm_str cm_code_part(struct cm_str path, size_t *at)
{
    const size_t begin = *at;

    while (*at < path.size && path.data[*at] != '.')
        ++*at;
    const struct cm_str part = {path.data + begin, *at - begin};
    *at += *at < path.size;
    return part;
}
