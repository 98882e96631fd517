/* Copies of models that are changed while the original stays, and values seen where they lie. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api_case.h"
#include "base/folder.h"
#include "cameo.h"
#include "check.h"

#include <stdlib.h>

#define MODELS TESTS_DIR "/models/"

/* ---- what a model says ---- */

struct bytes {
    char *data;
    size_t size, room;
};

static int take(void *to, const void *data, size_t size)
{
    struct bytes *b = to;

    if (b->room - b->size < size) {
        b->room = 2 * b->room + size;
        b->data = realloc(b->data, b->room);
        assert_non_null(b->data);
    }
    memcpy(b->data + b->size, data, size);
    b->size += size;
    return 0;
}

/* Its bytes, then its text where it has one, which is made of the structs: a change that is not
 * marked as one shows there alone. */
static struct bytes all_of(const struct cameo_model *model)
{
    struct cameo_write_options options = CAMEO_WRITE_OPTIONS_INIT;
    struct cameo_error err;
    struct bytes b = {0};

    OK(cameo_model_write(model, &options, take, &b, &err));
    const size_t binary = b.size;
    options.format = CAMEO_FORMAT_TEXT;
    if (cameo_model_write(model, &options, take, &b, &err) != CAMEO_OK)
        b.size = binary;
    return b;
}

static void check_same(const struct cameo_model *model, const struct bytes *before)
{
    struct bytes now = all_of(model);

    CHECK_INT(now.size, before->size);
    CHECK(memcmp(now.data, before->data, now.size) == 0);
    free(now.data);
}

static struct cameo_model *load(const char *path)
{
    struct cameo_model *model = NULL;
    struct cameo_error err;

    OK(cameo_model_load(path, NULL, &model, &err));
    return model;
}

static struct cameo_model *copy_of(const struct cameo_model *model)
{
    struct cameo_model *copy = NULL;
    struct cameo_error err;

    OK(cameo_model_copy(model, &copy, &err));
    return copy;
}

/* ---- changes ---- */

static const char net[] =
    "<ir_version: 6, opset_import: [\"\" : 11, \"my\" : 1]>\n"
    "net (float[N,4] x, bool c) => (float[N,2] y)\n"
    "<float[4,2] w = {1,2,3,4,5,6,7,8}, float[2] b = {1,2}>\n"
    "{\n"
    "    h = MatMul(x, w)\n"
    "    [plus] s = Add(h, b)\n"
    "    z = If (c) <then_branch = yes () => (float[N,2] p) { p = Mul(s, b) },\n"
    "                else_branch = no () => (float[N,2] q) { q = my.Twice(s) }>\n"
    "    y = Squeeze <axes = [0]> (u)\n"
    "    u = Unsqueeze <axes = [0]> (z)\n"
    "}\n"
    "<domain: \"my\", opset_import: [\"\" : 11]>\n"
    "Twice (v) => (r) { r = Add(v, v) }\n";

static void change_infer(struct cameo_model *model)
{
    struct cameo_error err;

    OK(cameo_model_infer(model, NULL, NULL, &err));
}

static void change_opset(struct cameo_model *model)
{
    struct cameo_error err;

    OK(cameo_model_convert(model, NULL, NULL, &err));
}

static void change_names(struct cameo_model *model)
{
    struct cameo_renaming names[3] = {CAMEO_RENAMING_INIT, CAMEO_RENAMING_INIT,
                                      CAMEO_RENAMING_INIT};
    struct cameo_error err;

    names[0].from = "*";
    names[0].to = "renamed.*";
    names[1].kind = CAMEO_RENAME_NODE;
    names[1].from = "plus";
    names[1].to = "sum";
    names[2].kind = CAMEO_RENAME_DIM;
    names[2].from = "N";
    names[2].to = "rows";
    OK(cameo_model_rename(model, names, 3, NULL, &err));
}

static void change_values(struct cameo_model *model)
{
    const float values[] = {8, 7, 6, 5, 4, 3, 2, 1};
    struct cameo_error err;
    size_t index;

    CHECK(cameo_model_find_initializer(model, "w", &index));
    OK(cameo_model_set_initializer(model, index, values, sizeof values, &err));
}

static void change_shapes(struct cameo_model *model)
{
    struct cameo_reshaping shape = CAMEO_RESHAPING_INIT;
    struct cameo_error err;

    shape.name = "x";
    shape.dims = "3,4";
    OK(cameo_model_set_shapes(model, &shape, 1, NULL, &err));
}

static void change_parts(struct cameo_model *model)
{
    static const char *const names[] = {"s"};
    struct cameo_error err;

    OK(cameo_model_expose(model, names, 1, NULL, &err));
    OK(cameo_model_extract(model, NULL, 0, names, 1, NULL, &err));
}

static void change_training(struct cameo_model *model)
{
    struct cameo_prepare_options options = CAMEO_PREPARE_OPTIONS_INIT;
    struct cameo_error err;

    OK(cameo_model_extract(model, NULL, 0, (const char *const[]){"s"}, 1, NULL, &err));
    options.loss = "mse";
    options.optimizer = "adam";
    OK(cameo_model_prepare(model, &options, NULL, &err));
}

static void change_declared(struct cameo_model *model)
{
    struct cameo_error err;

    OK(cameo_model_erase_shapes(model, true, &err));
}

typedef void change_fn(struct cameo_model *model);
static change_fn *const changes[] = {change_infer,  change_opset, change_names,    change_values,
                                     change_shapes, change_parts, change_training, change_declared};
enum { CHANGES = sizeof changes / sizeof *changes };

static void change_each_way(const struct cameo_model *model)
{
    struct bytes before = all_of(model);

    for (size_t i = 0; i < CHANGES; i++) {
        struct cameo_model *copy = copy_of(model);

        check_same(copy, &before);
        changes[i](copy);
        struct bytes changed = all_of(copy);
        CHECK(changed.size != before.size || memcmp(changed.data, before.data, before.size) != 0);
        free(changed.data);
        check_same(model, &before);
        cameo_model_free(copy);
        check_same(model, &before);
    }
    free(before.data);
}

/* What was loaded as text, saved and loaded again is binary, of which clean messages keep bytes. */
void test_copies__are_changed_and_the_original_is_not(void)
{
    struct cameo_model *model = load_text(net);
    struct bytes binary = {0};
    struct cameo_model *again = NULL;
    struct cameo_error err;

    change_each_way(model);
    OK(cameo_model_write(model, NULL, take, &binary, &err));
    OK(cameo_model_load_memory(binary.data, binary.size, NULL, &again, &err));
    change_each_way(again);
    cameo_model_free(again);
    cameo_model_free(model);
    free(binary.data);
}

void test_copies__have_copies_and_describe_themselves(void)
{
    struct cameo_model *model = load_text(net);
    struct cameo_model *first = copy_of(model), *second;
    struct cameo_error err;
    float values[8];
    size_t index;

    change_values(first);
    second = copy_of(first);
    change_names(second);
    CHECK_STRING(cameo_model_input(second, 0)->name.data, "renamed.x");
    CHECK_STRING(cameo_model_input(first, 0)->name.data, "x");
    CHECK_INT(cameo_model_summary(second)->parameter_count, 10);
    CHECK(cameo_model_find_initializer(second, "renamed.w", &index));
    OK(cameo_model_read_initializer(second, index, values, sizeof values, &err));
    CHECK(values[0] == 8.0f);
    OK(cameo_model_read_initializer(model, 0, values, sizeof values, &err));
    CHECK(values[0] == 1.0f);
    cameo_model_free(second);
    cameo_model_free(first);
    cameo_model_free(model);
}

static const char *const files[] = {"linear",  "external", "strings",      "sparse",  "functions",
                                    "foreign", "branches", "tensor_forms", "unpacked"};

void test_copies__of_files_are_saved_as_the_files_are(void)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[300];

        snprintf(path, sizeof path, MODELS "%s.onnx", files[i]);
        struct cameo_model *model = load(path);
        struct bytes before = all_of(model);
        struct cameo_model *copy = copy_of(model);

        check_same(copy, &before);
        change_declared(copy);
        check_same(model, &before);
        cameo_model_free(copy);
        cameo_model_free(model);
        free(before.data);
    }
}

/* The model, all of its values in another file. */
static struct cameo_model *load_outside(const struct folder *folder)
{
    struct cameo_save_options options = CAMEO_SAVE_OPTIONS_INIT;
    struct cameo_model *model = load_text(net);
    struct cameo_error err;
    char path[FOLDER_PATH_SIZE];

    folder_path(folder, "net.onnx", path);
    options.placement = CAMEO_PLACE_EXTERNAL;
    options.threshold = 1;
    OK(cameo_model_save(model, path, &options, NULL, &err));
    cameo_model_free(model);
    return load(path);
}

void test_copies__read_and_replace_values_in_external_files(void)
{
    struct folder folder;

    folder_make(&folder);
    struct cameo_model *model = load_outside(&folder), *copy = copy_of(model);
    struct cameo_error err;
    const struct cameo_initializer *row;
    size_t outside = 0;

    for (size_t i = 0; (row = cameo_model_initializer(model, i)) != NULL; i++) {
        unsigned char *a = calloc(1, row->bytes + 1), *b = calloc(1, row->bytes + 1);

        CHECK(row->is_external);
        outside++;
        OK(cameo_model_read_initializer(copy, i, a, row->bytes, &err));
        OK(cameo_model_read_initializer(model, i, b, row->bytes, &err));
        CHECK(memcmp(a, b, row->bytes) == 0);
        a[0] ^= 1;
        OK(cameo_model_set_initializer(copy, i, a, row->bytes, &err));
        CHECK(!cameo_model_initializer(copy, i)->is_external && row->is_external);
        OK(cameo_model_read_initializer(model, i, a, row->bytes, &err));
        CHECK(memcmp(a, b, row->bytes) == 0);
        free(a);
        free(b);
    }
    CHECK_INT(outside, 2);
    CHECK_INT(cameo_model_summary(model)->external_file_count, 1);
    CHECK_INT(cameo_model_summary(copy)->external_file_count, 0);
    cameo_model_free(copy);
    cameo_model_free(model);
    folder_remove(&folder);
}

/* ---- views ---- */

/* The values of a view, and that they are those that reading gives. */
static struct cameo_value *view_of(const struct cameo_model *model, size_t index)
{
    const struct cameo_initializer *row = cameo_model_initializer(model, index);
    struct cameo_value *value = NULL;
    struct cameo_error err;

    OK(cameo_model_view_initializer(model, index, &value, &err));
    CHECK_INT(cameo_value_dtype(value), row->dtype);
    CHECK_INT(cameo_value_rank(value), row->rank);
    CHECK_INT(cameo_value_count(value), row->elements);
    CHECK(cameo_value_mutable_data(value) == NULL);
    if (row->dtype != CAMEO_STRING) {
        unsigned char *read = calloc(1, row->bytes + 1);
        CHECK_INT(cameo_value_bytes(value), row->bytes);
        OK(cameo_model_read_initializer(model, index, read, row->bytes, &err));
        CHECK(memcmp(read, cameo_value_data(value), row->bytes) == 0);
        free(read);
    }
    return value;
}

void test_views__hold_what_reading_gives_in_every_form(void)
{
    static const char *const forms[] = {"tensor_forms", "unpacked", "elements", "linear"};
    size_t seen = 0;

    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        char path[300];
        const struct cameo_initializer *row;

        snprintf(path, sizeof path, MODELS "%s.onnx", forms[f]);
        struct cameo_model *model = load(path);
        for (size_t i = 0; (row = cameo_model_initializer(model, i)) != NULL; i++) {
            if (row->sparse || row->elements < 0)
                continue;
            cameo_value_free(view_of(model, i));
            seen++;
        }
        cameo_model_free(model);
    }
    CHECK(seen > 20);
}

void test_views__of_raw_bytes_lie_in_the_callers_memory(void)
{
    struct cameo_model *text = load_text(net), *model = NULL;
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct bytes binary = {0};
    struct cameo_error err;
    size_t inside = 0;

    /* Where raw_data begins depends on what is before it: of eight places, some are aligned. */
    for (size_t shift = 0; shift < 8; shift++) {
        struct cameo_renaming names = CAMEO_RENAMING_INIT;
        struct cameo_model *copy = copy_of(text);
        char name[16];

        snprintf(name, sizeof name, "%.*s", (int)shift + 1, "aaaaaaaaaaaa");
        names.from = "plus";
        names.kind = CAMEO_RENAME_NODE;
        names.to = name;
        OK(cameo_model_rename(copy, &names, 1, NULL, &err));
        binary.size = 0;
        OK(cameo_model_write(copy, NULL, take, &binary, &err));
        cameo_model_free(copy);
        options.borrow_bytes = true;
        OK(cameo_model_load_memory(binary.data, binary.size, &options, &model, &err));
        struct cameo_value *value = view_of(model, 0);
        const char *data = cameo_value_data(value);
        inside += data >= binary.data && data < binary.data + binary.size;
        cameo_value_free(value);
        cameo_model_free(model);
    }
    CHECK_INT(inside, 2); /* of floats, every fourth */
    free(binary.data);
    cameo_model_free(text);
}

void test_views__of_a_mapped_file_are_the_same_memory_each_time(void)
{
    struct folder folder;

    folder_make(&folder);
    struct cameo_model *saved = load_outside(&folder), *copy = copy_of(saved);
    struct cameo_value *a = view_of(saved, 0), *b = view_of(saved, 0), *c = view_of(copy, 0);
    CHECK(cameo_value_data(a) == cameo_value_data(b));
    CHECK(cameo_value_data(a) == cameo_value_data(c));
    CHECK((uintptr_t)cameo_value_data(a) % 4096 == 0); /* where a save puts it in its file */
    change_values(copy);
    struct cameo_value *d = view_of(copy, 0);
    CHECK(cameo_value_data(a) != cameo_value_data(d));
    CHECK(*(const float *)cameo_value_data(a) == 1.0f);
    CHECK(*(const float *)cameo_value_data(d) == 8.0f);
    cameo_value_free(a);
    cameo_value_free(b);
    cameo_value_free(c);
    cameo_value_free(d);
    cameo_model_free(copy);
    cameo_model_free(saved);
    folder_remove(&folder);
}

void test_views__of_strings_are_there_and_of_sparse_tensors_are_not(void)
{
    struct cameo_model *strings = load(MODELS "strings.onnx"), *sparse = load(MODELS "sparse.onnx");
    const struct cameo_initializer *row;
    struct cameo_value *value = NULL;
    struct cameo_error err;
    size_t texts = 0, refused = 0;

    for (size_t i = 0; (row = cameo_model_initializer(strings, i)) != NULL; i++) {
        if (row->dtype != CAMEO_STRING)
            continue;
        value = view_of(strings, i);
        for (int64_t k = 0; k < cameo_value_count(value); k++)
            CHECK(cameo_value_string(value, k).data != NULL);
        cameo_value_free(value);
        texts++;
    }
    for (size_t i = 0; (row = cameo_model_initializer(sparse, i)) != NULL; i++) {
        if (!row->sparse)
            continue;
        value = (struct cameo_value *)(uintptr_t)&err;
        REFUSED(cameo_model_view_initializer(sparse, i, &value, &err), CAMEO_UNSUPPORTED,
                "holds a sparse tensor");
        CHECK(value == NULL);
        refused++;
    }
    CHECK(texts > 0 && refused > 0);
    REFUSED(cameo_model_view_initializer(strings, 1000, &value, &err), CAMEO_BAD_ARGUMENT,
            "there is no initializer 1000");
    cameo_model_free(strings);
    cameo_model_free(sparse);
}

void test_views__of_values_that_are_not_there_are_refused(void)
{
    static const char missing[] =
        "<ir_version: 8, opset_import: [\"\" : 17]>\n"
        "m () => (float[2] y) <float[2] w = [\"location\": \"nowhere.bin\"]> { y = Identity(w) }";
    struct cameo_model *model = load_text(missing);
    struct cameo_value *value = NULL;
    struct cameo_error err;

    CHECK(cameo_model_view_initializer(model, 0, &value, &err) != CAMEO_OK);
    CHECK(value == NULL && err.message[0]);
    cameo_model_free(model);
}
