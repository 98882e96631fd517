/* SavedModels of TensorFlow, read back from their bytes. */
// SPDX-License-Identifier: Apache-2.0
#include "base/diagnostics.h"
#include "base/folder.h"
#include "check.h"
#include "convert/format.h"
#include "convert/savedmodel/tf_rows.h"
#include "onnx/wire.h"
#include "train/prepare/prepare.h"

#include <stdio.h>
#include <unistd.h>

extern const struct cm_format cm_format_savedmodel;

/* ---- messages ---- */

/* Field `number` of a message, the one after *at of those that it has; false: there is no other. */
static bool next_field(struct cm_str message, uint32_t number, struct cm_wire *at,
                       struct cm_wire_field *out)
{
    if (!at->at)
        *at = cm_wire_over(message);
    while (at->at < at->end) {
        CHECK_INT(cm_wire_next(at, out), CM_WIRE_OK);
        if (out->number == number)
            return true;
    }
    return false;
}

static struct cm_str text_of(const struct cm_wire_field *field)
{
    return (struct cm_str){(const char *)field->data, field->size};
}

static struct cm_str first(struct cm_str message, uint32_t number)
{
    struct cm_wire at = {0};
    struct cm_wire_field field;

    return next_field(message, number, &at, &field) ? text_of(&field) : CM_STR_NONE;
}

/* ---- a model, written ---- */

static struct cm_model_file *parse(struct cm_arena *arena, const char *text)
{
    const struct cm_load_options options = {.format = CM_FORMAT_TEXT};
    struct cm_model_file *file;
    struct cm_error err = {0};

    CHECK_OK(cm_model_parse(arena, cm_str(text), &options, &file, &err), &err);
    return file;
}

/* The MetaGraphDef of what was written. */
static struct cm_str written(struct cm_arena *arena, const struct cm_model_file *file)
{
    struct cm_saved *saved = cm_saved_new(arena, CM_STR(""));
    struct cm_findings findings = {.arena = arena};
    struct cm_saved_texts notes = {0};
    struct cm_error err = {0};
    struct folder folder;
    char path[FOLDER_PATH_SIZE], name[FOLDER_PATH_SIZE];
    static char bytes[1 << 20];

    folder_make(&folder);
    folder_path(&folder, "tf", path);
    CHECK_OK(cm_format_savedmodel.write_model(file, saved, path, &findings, &notes, &err), &err);
    FILE *from = fopen(folder_path(&folder, "tf/saved_model.pb", name), "rb");
    CHECK(from != NULL);
    const size_t size = fread(bytes, 1, sizeof bytes, from);
    fclose(from);
    CHECK(access(folder_path(&folder, "tf/variables/variables.index", name), R_OK) == 0 ||
          !saved->entries.count);
    folder_remove(&folder);
    return first(cm_arena_str(arena, (struct cm_str){bytes, size}), 2);
}

/* "name = Op(operand, ..)" for each node, as GraphDef has them. */
static struct cm_str dumped(struct cm_arena *arena, struct cm_str meta)
{
    struct cm_bytes out = {.arena = arena};
    struct cm_wire nodes = {0};
    struct cm_wire_field node, input;
    const struct cm_str graph = first(meta, 2);

    while (next_field(graph, 1, &nodes, &node)) {
        const struct cm_str message = text_of(&node);
        struct cm_wire inputs = {0};
        const char *between = "";

        cm_bytes_text(&out, first(message, 1));
        cm_bytes_text(&out, CM_STR(" = "));
        cm_bytes_text(&out, first(message, 2));
        cm_bytes_text(&out, CM_STR("("));
        while (next_field(message, 3, &inputs, &input)) {
            cm_bytes_text(&out, cm_str(between));
            cm_bytes_text(&out, text_of(&input));
            between = ", ";
        }
        cm_bytes_text(&out, CM_STR(")\n"));
    }
    cm_bytes_put(&out, "", 1);
    return (struct cm_str){out.items, out.count - 1};
}

/* ---- */

static void writes_nodes(struct cm_arena *arena)
{
    static const char net[] =
        "<ir_version: 10, opset_import: [\"\" : 17]>\n"
        "net (float[n, 2] x) => (float[n, 3] y)\n"
        "<float[2,3] w = {1, 2, 3, 4, 5, 6}, float[3] b = {7, 8, 9}>\n"
        "{ [product] m = MatMul (x, w) [sum] s = Add (m, b) [end] y = Relu (s) }";
    static const char wanted[] =
        "w = VarHandleOp()\n"
        "b = VarHandleOp()\n"
        "x = Placeholder()\n"
        "w/Read = ReadVariableOp(w)\n"
        "b/Read = ReadVariableOp(b)\n"
        "product = MatMul(x, w/Read)\n"
        "sum = AddV2(product, b/Read)\n"
        "end = Relu(sum)\n"
        "y = Identity(end)\n"
        "save/filename = PlaceholderWithDefault(Const)\n"
        "Const = Const()\n"
        "Const_1 = Const()\n"
        "Const_2 = Const()\n"
        "save/SaveV2 = SaveV2(save/filename, Const_1, Const_2, save/w/Read, "
        "save/b/Read)\n"
        "save/saved = Identity(save/filename, ^save/SaveV2)\n"
        "save/w/Read = ReadVariableOp(w)\n"
        "save/b/Read = ReadVariableOp(b)\n"
        "save/RestoreV2 = RestoreV2(save/filename, Const_1, Const_2)\n"
        "save/restore_all = NoOp(^save/w/Assign, ^save/b/Assign)\n"
        "save/w/Assign = AssignVariableOp(w, save/RestoreV2)\n"
        "save/b/Assign = AssignVariableOp(b, save/RestoreV2:1)\n";
    const struct cm_str meta = written(arena, parse(arena, net));

    CHECK_STR(dumped(arena, meta), wanted);
    CHECK_STR(first(first(meta, 1), 4), "serve");
    CHECK_STR(first(first(meta, 5), 1), "serving_default");
}

void test_saved_model__nodes_are_those_of_the_rows(void)
{
    check_in_arena(writes_nodes);
}

static void trains(struct cm_arena *arena)
{
    static const char net[] = "<ir_version: 10, opset_import: [\"\" : 17]>\n"
                              "net (float[n, 2] x) => (float[n, 3] y)\n"
                              "<float[2,3] w = {1, 2, 3, 4, 5, 6}> { y = MatMul (x, w) }";
    static const char *const names[] = {"serving_default", "train_step", "evaluate", "initialize"};
    struct cm_prepare_options options = CM_PREPARE_OPTIONS;
    struct cm_prepare_report report;
    struct cm_error err = {0};
    struct cm_wire at = {0};
    struct cm_wire_field field;
    size_t count = 0;

    options.loss = "mse";
    options.optimizer = "sgd";
    struct cm_model_file *file = parse(arena, net);
    CHECK_OK(cm_prepare(arena, file, &options, &report, &err), &err);
    const struct cm_str meta = written(arena, file), text = dumped(arena, meta);
    while (next_field(meta, 5, &at, &field)) {
        CHECK(count < CM_COUNT(names));
        CHECK_STR(first(text_of(&field), 1), names[count++]);
    }
    /* All reads come before the first write, and the loss after the last one. */
    CHECK(cm_str_contains(text, "train_step/all_read = NoOp(^train_step/"));
    CHECK(cm_str_contains(text, "train_step/w/Assign = AssignVariableOp(w, "));
    CHECK(cm_str_contains(text, ", ^train_step/all_read)"));
    CHECK(cm_str_contains(text, "train_step/loss"));
    CHECK(cm_str_contains(text, ", ^train_step/all_written)"));
}

void test_saved_model__a_model_with_training_has_four_signatures(void)
{
    check_in_arena(trains);
}

/* ---- layout ---- */

static size_t count_of(struct cm_str text, const char *part)
{
    const size_t size = strlen(part);
    size_t count = 0;

    for (size_t i = 0; i + size <= text.size; i++)
        count += memcmp(text.data + i, part, size) == 0;
    return count;
}

static void lays_out(struct cm_arena *arena)
{
    static const char net[] =
        "<ir_version: 10, opset_import: [\"\" : 17]>\n"
        "net (float[1, 2, 8, 8] x) => (float[1, 2, 6, 6] y)\n"
        "<float[2, 2, 1, 1] v = {1, 2, 3, 4}, float[2, 2, 1, 1] w = {5, 6, 7, 8},\n"
        " float[2] b = {1, 2}>\n"
        "{ c = Conv (x, v, b) r = Relu (c) s = Add (r, c)\n"
        "  p = MaxPool <kernel_shape = [3, 3]> (s) y = Conv (p, w) }";
    const struct cm_str text = dumped(arena, written(arena, parse(arena, net)));

    CHECK_INT(count_of(text, " = Conv2D("), 2);
    CHECK_INT(count_of(text, " = MaxPool("), 1);
    CHECK_INT(count_of(text, " = Transpose("), 2);
}

void test_saved_model__a_network_of_convolutions_is_transposed_twice(void)
{
    check_in_arena(lays_out);
}

/* ---- names ---- */

static bool is_legal(struct cm_str name)
{
    for (size_t i = 0; i < name.size; i++) {
        const char c = name.data[i];
        const bool is_plain =
            (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!is_plain && (!i || !strchr("_./-", c)))
            return false;
    }
    return name.size && name.size < 200 && name.data[name.size - 1] != '/';
}

static void makes_safe(struct cm_arena *arena)
{
    static const char *const hostile[] = {
        "",       "a",      "A",      "a",        "/a",           "//a//b/", "^a", "a:0",
        "_x",     "x\ny",   "\"x\"",  "\xd0\xb0", "%v1",          "${x}",    "-",  ".",
        "import", "a\\b>c", "a b",    "\x01\x02", "a_1",          "A_1",     "a/", "Const",
        "x)(",    "[1, 2]", "{T: x}", "\xff\xfe", "\xe2\x80\xae", "a'b",
    };
    struct cm_map taken = {0}, seen = {0};
    char *longest = CM_NEW_ARRAY(arena, char, 10001);

    for (size_t i = 0; i < CM_COUNT(hostile); i++) {
        const struct cm_str name = cm_tf_safe_name(arena, &taken, cm_str(hostile[i]));
        char *small = CM_NEW_ARRAY(arena, char, name.size + 1);
        CHECK(is_legal(name));
        for (size_t k = 0; k < name.size; k++)
            small[k] = (char)(name.data[k] | (name.data[k] >= 'A' && name.data[k] <= 'Z' ? 32 : 0));
        CHECK(cm_map_add(&seen, arena, (struct cm_str){small, name.size}));
    }
    memset(longest, 'q', 10000);
    CHECK(is_legal(cm_tf_safe_name(arena, &taken, (struct cm_str){longest, 10000})));
    CHECK(is_legal(cm_tf_safe_name(arena, &taken, (struct cm_str){longest, 9999})));
}

void test_saved_model__names_are_legal_and_differ(void)
{
    check_in_arena(makes_safe);
}

/* No text of the model becomes a line: a key of a string stays the contents of a constant. */
static void keeps_texts(struct cm_arena *arena)
{
    static const char net[] = "<ir_version: 10, opset_import: [\"\" : 20]>\n"
                              "net (string[n] x) => (bool[n] \"y{ = Const()\")\n"
                              "{ [\"a) {b: %v1\"] \"y{ = Const()\" =\n"
                              "  RegexFullMatch <pattern = \"[)] .T: f32, %v1 = x\"> (x) }";
    const struct cm_str text = dumped(arena, written(arena, parse(arena, net)));

    CHECK_INT(count_of(text, "RegexFullMatch("), 1);
    CHECK_INT(count_of(text, "\n"), 4);
}

void test_saved_model__texts_of_the_model_stay_texts(void)
{
    check_in_arena(keeps_texts);
}

/* ---- refusals ---- */

static void lists_all(struct cm_arena *arena)
{
    static const char net[] = "<ir_version: 10, opset_import: [\"\" : 17, \"ai.onnx.ml\" : 3]>\n"
                              "net (float[2] x) => (float[2] y, int64 n)\n"
                              "{ [one] s = SequenceConstruct (x, x) [two] n = SequenceLength (s)\n"
                              "  y = Relu (x) }";
    struct cm_saved *saved = cm_saved_new(arena, CM_STR(""));
    struct cm_findings findings = {.arena = arena};
    struct cm_saved_texts notes = {0};
    struct cm_error err = {0};

    CHECK_INT(cm_format_savedmodel.write_model(parse(arena, net), saved, "/nonexistent/tf",
                                               &findings, &notes, &err),
              CM_UNSUPPORTED);
    CHECK_INT(findings.violations, 2);
    CHECK(cm_str_contains(findings.items[0].place, "'one'"));
    CHECK(cm_str_contains(findings.items[1].place, "'two'"));
}

void test_saved_model__all_that_cannot_be_expressed_is_listed(void)
{
    check_in_arena(lists_all);
}
