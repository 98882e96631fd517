/* Reading, replacing and saving values; writing models; checking them. */
// SPDX-License-Identifier: Apache-2.0
#include "base/folder.h"
#include "cameo.h"
#include "check.h"

#define MODELS TESTS_DIR "/models/"

struct bytes {
    unsigned char data[1 << 16];
    size_t size;
};

static int keep(void *to, const void *piece, size_t size)
{
    struct bytes *bytes = to;

    if (size > sizeof bytes->data - bytes->size)
        return 1;
    memcpy(bytes->data + bytes->size, piece, size);
    bytes->size += size;
    return 0;
}

static void read_file(const char *path, struct bytes *out)
{
    FILE *file = fopen(path, "rb");

    assert_non_null(file);
    out->size = fread(out->data, 1, sizeof out->data, file);
    fclose(file);
}

static struct cameo_model *load(const char *path)
{
    struct cameo_error err;
    struct cameo_model *model;

    if (cameo_model_load(path, NULL, &model, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    return model;
}

static void write_model(const struct cameo_model *model, struct bytes *out)
{
    struct cameo_error err;

    out->size = 0;
    if (cameo_model_write(model, NULL, keep, out, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
}

static bool same(const struct bytes *a, const struct bytes *b)
{
    return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

/* The first and last byte that differ in two of the same size; false when none does. */
static bool changed_span(const struct bytes *a, const struct bytes *b, size_t *from, size_t *to)
{
    bool any = false;

    CHECK_INT(a->size, b->size);
    for (size_t i = 0; i < a->size; i++) {
        if (a->data[i] == b->data[i])
            continue;
        *from = any ? *from : i;
        *to = i;
        any = true;
    }
    return any;
}

static size_t find(const struct cameo_model *model, const char *name)
{
    size_t index = SIZE_MAX;

    CHECK(cameo_model_find_initializer(model, name, &index));
    return index;
}

void test_write__an_untouched_model_gives_its_bytes(void)
{
    static const char *const names[] = {"linear",  "branches", "functions", "every_field",
                                        "foreign", "unpacked", "elements",  "sparse"};
    static struct bytes before, after;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];

        snprintf(path, sizeof path, MODELS "%s.onnx", names[i]);
        struct cameo_model *model = load(path);
        read_file(path, &before);
        write_model(model, &after);
        if (!same(&before, &after))
            fail_msg("%s: other bytes", names[i]);
        cameo_model_free(model);
    }
}

void test_initializer__raw_and_typed_values_read_alike(void)
{
    struct cameo_model *model = load(MODELS "linear.onnx");
    float weight[6], bias[3];

    CHECK_INT(cameo_model_read_initializer(model, find(model, "W"), weight, sizeof weight, NULL),
              0);
    CHECK_INT(cameo_model_read_initializer(model, find(model, "B"), bias, sizeof bias, NULL), 0);
    for (int i = 0; i < 6; i++)
        CHECK(weight[i] == (float)i);
    for (int i = 0; i < 3; i++)
        CHECK(bias[i] == (float)(i + 1));
    cameo_model_free(model);
}

/* The edit promise, for values in raw_data (W) and in float_data (B). */
void test_initializer__a_change_changes_its_span_and_nothing_else(void)
{
    static const char *const names[] = {"W", "B"};
    static struct bytes before, after;

    for (size_t i = 0; i < 2; i++) {
        struct cameo_model *model = load(MODELS "linear.onnx");
        const size_t index = find(model, names[i]);
        const size_t size = (size_t)cameo_model_initializer(model, index)->bytes;
        float values[6], back[6] = {0};
        size_t from = 0, to = 0;

        for (size_t k = 0; k < 6; k++)
            values[k] = -100.0f - (float)k;
        write_model(model, &before);
        CHECK_INT(cameo_model_set_initializer(model, index, values, size, NULL), CAMEO_OK);
        write_model(model, &after);
        CHECK(changed_span(&before, &after, &from, &to));
        CHECK(to - from < size);
        CHECK_INT(cameo_model_read_initializer(model, index, back, size, NULL), CAMEO_OK);
        CHECK(memcmp(values, back, size) == 0);
        cameo_model_free(model);
    }
}

static bool takes_part(const struct cameo_initializer *row)
{
    return !row->sparse && row->dtype != CAMEO_STRING;
}

void test_initializer__values_of_every_type_survive_being_set_and_written(void)
{
    static struct bytes written;
    struct cameo_model *model = load(MODELS "elements.onnx"), *again;
    const struct cameo_initializer *row;
    unsigned char values[256], back[256];
    struct cameo_error err;
    size_t set = 0;

    for (size_t i = 0; (row = cameo_model_initializer(model, i)) != NULL; i++) {
        if (!takes_part(row))
            continue;
        CHECK(row->bytes <= sizeof values);
        if (cameo_model_read_initializer(model, i, values, (size_t)row->bytes, &err) ||
            cameo_model_set_initializer(model, i, values, (size_t)row->bytes, &err))
            fail_msg("%s: %s", row->name.data, err.message);
        set++;
    }
    CHECK_INT(set, 2 * (CAMEO_FLOAT6E3M2 - 1)); /* typed and raw, all but strings */
    write_model(model, &written);
    if (cameo_model_load_memory(written.data, written.size, NULL, &again, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    cameo_model_free(model);
    model = load(MODELS "elements.onnx");
    for (size_t i = 0; (row = cameo_model_initializer(model, i)) != NULL; i++) {
        if (!takes_part(row))
            continue;
        CHECK_INT(cameo_model_read_initializer(model, i, values, (size_t)row->bytes, NULL), 0);
        if (cameo_model_read_initializer(again, i, back, (size_t)row->bytes, &err))
            fail_msg("%s: %s", row->name.data, err.message);
        if (memcmp(values, back, (size_t)row->bytes) != 0)
            fail_msg("%s: other values after a round trip", row->name.data);
    }
    cameo_model_free(again);
    cameo_model_free(model);
}

void test_initializer__wrong_sizes_and_kinds_are_refused(void)
{
    struct cameo_model *model = load(MODELS "linear.onnx");
    float values[6] = {0};
    struct cameo_error err;

    CHECK_INT(cameo_model_set_initializer(model, find(model, "W"), values, 4, &err),
              CAMEO_BAD_ARGUMENT);
    CHECK_STRING(err.message, "initializer 'W' has 24 bytes of values, but 4 bytes were passed");
    CHECK_INT(cameo_model_read_initializer(model, 9, values, 4, &err), CAMEO_BAD_ARGUMENT);
    cameo_model_free(model);

    model = load(MODELS "strings.onnx");
    CHECK_INT(cameo_model_read_initializer(model, 0, values, 4, &err), CAMEO_UNSUPPORTED);
    cameo_model_free(model);
}

void test_initializer__missing_external_data_is_reported(void)
{
    struct cameo_model *model = load(MODELS "external.onnx");
    float values[4];
    struct cameo_error err;

    CHECK(cameo_model_read_initializer(model, 0, values, sizeof values, &err) != CAMEO_OK);
    CHECK(strstr(err.message, "weights.bin") != NULL);
    cameo_model_free(model);
}

void test_save__external_and_inline_keep_the_values(void)
{
    struct cameo_save_options options = CAMEO_SAVE_OPTIONS_INIT;
    struct cameo_save_report report = CAMEO_SAVE_REPORT_INIT;
    struct folder folder;
    char outside[FOLDER_PATH_SIZE], inside[FOLDER_PATH_SIZE];
    float values[6];
    struct cameo_error err;

    folder_make(&folder);
    folder_path(&folder, "outside.onnx", outside);
    folder_path(&folder, "inside.onnx", inside);
    struct cameo_model *model = load(MODELS "linear.onnx");
    options.placement = CAMEO_PLACE_EXTERNAL;
    options.external_name = "weights.bin";
    options.threshold = 20;
    options.alignment = 64;
    if (cameo_model_save(model, outside, &options, &report, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    cameo_model_free(model);
    CHECK_INT(report.moved_out, 1);
    CHECK_INT(report.external_files, 1);
    CHECK_STRING(report.external_name, "weights.bin");
    CHECK(!report.forced_external);
    CHECK_INT(folder_count(&folder), 2);

    model = load(outside);
    CHECK(cameo_model_initializer(model, find(model, "W"))->is_external);
    CHECK(!cameo_model_initializer(model, find(model, "B"))->is_external);
    CHECK_INT(cameo_model_read_initializer(model, find(model, "W"), values, sizeof values, NULL),
              0);
    CHECK(values[5] == 5.0f);
    options.placement = CAMEO_PLACE_INLINE;
    options.external_name = NULL;
    options.threshold = options.alignment = 0;
    if (cameo_model_save(model, inside, &options, &report, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    CHECK_INT(report.moved_in, 1);
    cameo_model_free(model);

    model = load(inside);
    CHECK_INT(cameo_model_summary(model)->external_file_count, 0);
    CHECK_INT(cameo_model_read_initializer(model, find(model, "W"), values, sizeof values, NULL),
              0);
    CHECK(values[5] == 5.0f);
    cameo_model_free(model);
    folder_remove(&folder);
}

void test_save__a_changed_external_tensor_goes_to_a_new_file(void)
{
    struct cameo_save_options options = CAMEO_SAVE_OPTIONS_INIT;
    struct folder folder;
    char path[FOLDER_PATH_SIZE];
    float values[6] = {6, 5, 4, 3, 2, 1};
    struct cameo_error err;

    folder_make(&folder);
    folder_path(&folder, "m.onnx", path);
    struct cameo_model *model = load(MODELS "linear.onnx");
    options.placement = CAMEO_PLACE_EXTERNAL;
    options.threshold = 1;
    if (cameo_model_save(model, path, &options, NULL, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    cameo_model_free(model);

    model = load(path);
    CHECK_INT(cameo_model_external_file(model, 0)->tensor_count, 2);
    CHECK_INT(cameo_model_set_initializer(model, find(model, "W"), values, sizeof values, NULL), 0);
    CHECK(!cameo_model_initializer(model, find(model, "W"))->is_external);
    CHECK_INT(cameo_model_external_file(model, 0)->tensor_count, 1);
    if (cameo_model_save(model, path, NULL, NULL, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    cameo_model_free(model);

    model = load(path);
    float weight[6], bias[3];
    CHECK_INT(cameo_model_summary(model)->external_file_count, 2);
    CHECK_INT(cameo_model_read_initializer(model, find(model, "W"), weight, sizeof weight, NULL),
              0);
    CHECK_INT(cameo_model_read_initializer(model, find(model, "B"), bias, sizeof bias, NULL), 0);
    CHECK(memcmp(weight, values, sizeof weight) == 0);
    CHECK(bias[2] == 3.0f);
    cameo_model_free(model);
    folder_remove(&folder);
}

void test_save__wrong_options_are_refused(void)
{
    struct cameo_save_options options = CAMEO_SAVE_OPTIONS_INIT;
    struct cameo_save_report report = {0};
    struct cameo_model *model = load(MODELS "linear.onnx");
    struct cameo_error err;

    options.alignment = 48;
    CHECK_INT(cameo_model_save(model, "x.onnx", &options, NULL, &err), CAMEO_BAD_ARGUMENT);
    CHECK_STRING(err.message, "alignment 48 is not a power of two");
    CHECK_INT(cameo_model_save(model, "", NULL, NULL, &err), CAMEO_BAD_ARGUMENT);
    CHECK_INT(cameo_model_save(model, "x.onnx", NULL, &report, &err), CAMEO_BAD_ARGUMENT);
    CHECK_INT(cameo_model_save(model, "/nowhere/at/all.onnx", NULL, NULL, &err) != CAMEO_OK, 1);
    CHECK(strstr(err.message, "/nowhere/at") != NULL);
    cameo_model_free(model);
}

static int refuse(void *to, const void *piece, size_t size)
{
    (void)to;
    (void)piece;
    (void)size;
    return 1;
}

void test_write__a_writer_can_refuse(void)
{
    struct cameo_write_options options = CAMEO_WRITE_OPTIONS_INIT;
    struct cameo_model *model = load(MODELS "linear.onnx");
    struct cameo_error err;

    CHECK_INT(cameo_model_write(model, NULL, refuse, NULL, &err), CAMEO_IO);
    options.format = CAMEO_FORMAT_TEXT;
    CHECK_INT(cameo_model_write(model, &options, refuse, NULL, &err), CAMEO_IO);
    CHECK(strstr(err.message, "the writer refused") != NULL);
    cameo_model_free(model);
}

void test_write__text_reads_back_and_can_be_shortened(void)
{
    static struct bytes text, again;
    struct cameo_write_options write = CAMEO_WRITE_OPTIONS_INIT;
    struct cameo_load_options read = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model = load(MODELS "training_mlp_adam_initialized.onnx"), *copy;
    struct cameo_error err;

    write.format = CAMEO_FORMAT_TEXT;
    text.size = again.size = 0;
    if (cameo_model_write(model, &write, keep, &text, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    read.format = CAMEO_FORMAT_TEXT;
    if (cameo_model_load_memory(text.data, text.size, &read, &copy, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    CHECK_INT(cameo_model_summary(copy)->training_count, 1);
    if (cameo_model_write(copy, &write, keep, &again, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    CHECK(same(&text, &again));
    cameo_model_free(copy);

    again.size = 0;
    write.elide = 2;
    if (cameo_model_write(model, &write, keep, &again, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    CHECK(again.size < text.size);
    cameo_model_free(model);
}

void test_check__findings_outlive_the_model(void)
{
    static const char text[] = "<ir_version: 10, opset_import: [\"\" : 21]>\n"
                               "g (float[2] x) => (float[2] y) { y = Add(x, ghost) }";
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_findings *findings;
    struct cameo_model *model;
    struct cameo_error err;

    options.format = CAMEO_FORMAT_TEXT;
    if (cameo_model_load_memory(text, sizeof text - 1, &options, &model, &err) != CAMEO_OK)
        fail_msg("%s", err.message);
    CHECK_INT(cameo_model_check(model, NULL, &findings, &err), CAMEO_OK);
    cameo_model_free(model);
    CHECK_INT(cameo_findings_violations(findings), 1);
    CHECK_STRING(cameo_findings_at(findings, 0)->rule.data, "CK15");
    CHECK_INT(cameo_findings_at(findings, 0)->severity, CAMEO_VIOLATION);
    CHECK(strstr(cameo_findings_at(findings, 0)->reason.data, "'ghost'") != NULL);
    CHECK(strstr(cameo_findings_at(findings, 0)->place.data, "Add") != NULL);
    CHECK(cameo_findings_at(findings, cameo_findings_count(findings)) == NULL);
    CHECK(!cameo_findings_cut(findings));
    cameo_findings_free(findings);
    cameo_findings_free(NULL);
}

void test_check__strict_turns_warnings_into_violations(void)
{
    struct cameo_check_options options = CAMEO_CHECK_OPTIONS_INIT;
    struct cameo_findings *plain, *strict;
    struct cameo_model *model = load(MODELS "elements.onnx");

    CHECK_INT(cameo_model_check(model, &options, &plain, NULL), CAMEO_OK);
    options.strict = true;
    CHECK_INT(cameo_model_check(model, &options, &strict, NULL), CAMEO_OK);
    CHECK_INT(cameo_findings_violations(plain), 0);
    CHECK_INT(cameo_findings_count(plain), 1); /* a string that is not UTF-8; no tensor is amiss */
    CHECK_INT(cameo_findings_violations(strict), cameo_findings_count(plain));
    cameo_findings_free(plain);
    cameo_findings_free(strict);
    cameo_model_free(model);
}
