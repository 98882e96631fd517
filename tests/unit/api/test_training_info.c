/* Training info made, changed and taken away by hand. */
// SPDX-License-Identifier: Apache-2.0
#include "cameo.h"
#include "check.h"

static const char line[] = "<ir_version: 6, opset_import: [\"\" : 17]>\n"
                           "line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {0}>\n"
                           "{ y = MatMul(x, w) }\n";
static const char plain_step[] = "step () => (float[1,1] w_new) { w_new = Neg(w) }";
static const char gradient_step[] =
    "step () => (float[1,1] g) { s = ReduceSum(y)\n"
    "g = ai.onnx.preview.training.Gradient<xs = [\"w\"], zs = [\"x\"], y = \"s\">(w, x) }";

#define OK(call)                                                                                   \
    do {                                                                                           \
        struct cameo_error err;                                                                    \
        if ((call) != CAMEO_OK)                                                                    \
            fail_msg("%s: %s", #call, err.message);                                                \
    } while (0)

#define FAILS(call, wanted, part)                                                                  \
    do {                                                                                           \
        struct cameo_error err;                                                                    \
        CHECK_INT((call), (wanted));                                                               \
        if (!strstr(err.message, (part)))                                                          \
            fail_msg("'%s' is not in '%s'", (part), err.message);                                  \
    } while (0)

struct text {
    char data[8192];
    size_t size;
};

static int collect(void *to, const void *bytes, size_t size)
{
    struct text *text = to;

    CHECK(size < sizeof text->data - text->size);
    memcpy(text->data + text->size, bytes, size);
    text->size += size;
    text->data[text->size] = 0;
    return 0;
}

static struct cameo_model *load_text(const char *text)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model = NULL;

    options.format = CAMEO_FORMAT_TEXT;
    OK(cameo_model_load_memory(text, strlen(text), &options, &model, &err));
    return model;
}

/* As a file would have it, so that there are bytes to keep. */
static struct cameo_model *load_bytes(const char *source, struct text *bytes)
{
    struct cameo_model *text = load_text(source), *model = NULL;

    bytes->size = 0;
    OK(cameo_model_write(text, NULL, collect, bytes, &err));
    cameo_model_free(text);
    OK(cameo_model_load_memory(bytes->data, bytes->size, NULL, &model, &err));
    return model;
}

static void same_bytes(const struct cameo_model *model, const struct text *wanted)
{
    static struct text now;

    now.size = 0;
    OK(cameo_model_write(model, NULL, collect, &now, &err));
    CHECK_INT(now.size, wanted->size);
    CHECK(memcmp(now.data, wanted->data, now.size) == 0);
}

void test_training_info__an_entry_that_came_and_went_leaves_the_bytes_as_they_were(void)
{
    static struct text bytes;
    char model_text[400];
    size_t entry = 9;

    snprintf(model_text, sizeof model_text, "%s", line);
    model_text[strlen("<ir_version: ")] = '8';
    struct cameo_model *model = load_bytes(model_text, &bytes);
    OK(cameo_model_add_training(model, &entry, &err));
    CHECK_INT(entry, 0);
    OK(cameo_model_set_training_graph(model, 0, CAMEO_GRAPH_ALGORITHM, gradient_step, &err));
    CHECK_INT(cameo_model_summary(model)->opset_count, 2);
    CHECK_STRING(cameo_model_opset(model, 1)->domain.data, "ai.onnx.preview.training");
    CHECK_INT(cameo_model_training(model, 0)->algorithm_node_count, 2);
    OK(cameo_model_remove_training(model, 0, &err));
    CHECK_INT(cameo_model_summary(model)->training_count, 0);
    same_bytes(model, &bytes);
    cameo_model_free(model);
}

void test_training_info__the_first_entry_raises_an_old_ir_version(void)
{
    struct cameo_model *model = load_text(line);

    CHECK_INT(cameo_model_summary(model)->ir_version, 6);
    OK(cameo_model_add_training(model, NULL, &err));
    CHECK_INT(cameo_model_summary(model)->ir_version, 7);
    cameo_model_free(model);
}

void test_training_info__bindings_are_added_changed_and_removed(void)
{
    struct cameo_model *model = load_text(line);
    const struct cameo_note two[] = {{sizeof two[0], {"a", 1}, {"b", 1}},
                                     {sizeof two[0], {"c", 1}, {"d", 1}}};

    OK(cameo_model_add_training(model, NULL, &err));
    OK(cameo_model_bind_training(model, 0, CAMEO_GRAPH_ALGORITHM, "w", "u", &err));
    OK(cameo_model_bind_training(model, 0, CAMEO_GRAPH_ALGORITHM, "w", "v", &err));
    CHECK_INT(cameo_model_training(model, 0)->update_binding_count, 1);
    CHECK_STRING(cameo_model_training(model, 0)->update_bindings[0].value.data, "v");
    OK(cameo_model_set_training_bindings(model, 0, CAMEO_GRAPH_INITIALIZATION, two, 2, &err));
    CHECK_INT(cameo_model_training(model, 0)->initialization_binding_count, 2);
    OK(cameo_model_bind_training(model, 0, CAMEO_GRAPH_INITIALIZATION, "a", NULL, &err));
    CHECK_STRING(cameo_model_training(model, 0)->initialization_bindings[0].key.data, "c");
    FAILS(cameo_model_bind_training(model, 0, CAMEO_GRAPH_INITIALIZATION, "a", NULL, &err),
          CAMEO_NOT_FOUND, "does not bind 'a'");
    OK(cameo_model_set_training_bindings(model, 0, CAMEO_GRAPH_INITIALIZATION, NULL, 0, &err));
    CHECK_INT(cameo_model_training(model, 0)->initialization_binding_count, 0);
    cameo_model_free(model);
}

void test_training_info__a_graph_reads_back_as_it_was_written(void)
{
    struct cameo_model *model = load_text(line), *other = load_text(line);
    static struct text text, again;

    OK(cameo_model_add_training(model, NULL, &err));
    OK(cameo_model_set_training_graph(model, 0, CAMEO_GRAPH_ALGORITHM, plain_step, &err));
    text.size = again.size = 0;
    OK(cameo_model_write_training_graph(model, 0, CAMEO_GRAPH_ALGORITHM, collect, &text, &err));
    OK(cameo_model_set_training_graph(model, 0, CAMEO_GRAPH_ALGORITHM, text.data, &err));
    OK(cameo_model_write_training_graph(model, 0, CAMEO_GRAPH_ALGORITHM, collect, &again, &err));
    CHECK_STRING(again.data, text.data);
    OK(cameo_model_copy_training_graph(model, 0, CAMEO_GRAPH_INITIALIZATION, other, &err));
    cameo_model_free(other);
    const struct cameo_graph *graph;
    OK(cameo_model_graph(model, CAMEO_GRAPH_INITIALIZATION, 0, &graph, &err));
    CHECK_STRING(cameo_graph_node(graph, 0)->op_type.data, "MatMul");
    OK(cameo_model_set_training_graph(model, 0, CAMEO_GRAPH_INITIALIZATION, NULL, &err));
    FAILS(cameo_model_write_training_graph(model, 0, CAMEO_GRAPH_INITIALIZATION, collect, &text,
                                           &err),
          CAMEO_NOT_FOUND, "has no initialization graph");
    cameo_model_free(model);
}

void test_training_info__of_several_entries_one_goes_and_the_others_keep_their_bytes(void)
{
    static struct text both, one;
    struct cameo_model *model = load_text(line);

    for (size_t i = 0; i < 2; i++) {
        OK(cameo_model_add_training(model, NULL, &err));
        OK(cameo_model_bind_training(model, i, CAMEO_GRAPH_ALGORITHM, i ? "second" : "w", "n",
                                     &err));
    }
    both.size = one.size = 0;
    OK(cameo_model_write(model, NULL, collect, &both, &err));
    OK(cameo_model_remove_training(model, 1, &err));
    OK(cameo_model_write(model, NULL, collect, &one, &err));
    cameo_model_free(model);
    struct cameo_model *again = NULL;
    OK(cameo_model_load_memory(both.data, both.size, NULL, &again, &err));
    OK(cameo_model_remove_training(again, 1, &err));
    same_bytes(again, &one);
    FAILS(cameo_model_remove_training(again, 1, &err), CAMEO_NOT_FOUND, "entry 1");
    cameo_model_free(again);
}

void test_training_info__what_is_wrong_is_told_and_changes_nothing(void)
{
    struct cameo_model *model = load_text(line);
    struct cameo_findings *findings = NULL;

    OK(cameo_model_add_training(model, NULL, &err));
    OK(cameo_model_set_training_graph(model, 0, CAMEO_GRAPH_ALGORITHM, plain_step, &err));
    FAILS(cameo_model_set_training_graph(model, 0, CAMEO_GRAPH_ALGORITHM, "step (", &err),
          CAMEO_BAD_MODEL, "algorithm: line 1");
    CHECK_INT(cameo_model_training(model, 0)->algorithm_node_count, 1);
    FAILS(cameo_model_set_training_graph(model, 0, CAMEO_GRAPH_MAIN, plain_step, &err),
          CAMEO_BAD_ARGUMENT, "expected CAMEO_GRAPH_INITIALIZATION");
    OK(cameo_model_bind_training(model, 0, CAMEO_GRAPH_ALGORITHM, "v", "w_new", &err));
    OK(cameo_model_check_training(model, 0, NULL, &findings, &err));
    CHECK_INT(cameo_findings_violations(findings), 1);
    CHECK_STRING(cameo_findings_at(findings, 0)->rule.data, "TR4");
    cameo_findings_free(findings);
    OK(cameo_model_bind_training(model, 0, CAMEO_GRAPH_ALGORITHM, "v", NULL, &err));
    OK(cameo_model_bind_training(model, 0, CAMEO_GRAPH_ALGORITHM, "w", "w_new", &err));
    OK(cameo_model_check_training(model, 0, NULL, &findings, &err));
    CHECK_INT(cameo_findings_violations(findings), 0);
    cameo_findings_free(findings);
    FAILS(cameo_model_check_training(model, 1, NULL, &findings, &err), CAMEO_NOT_FOUND, "entry 1");
    cameo_model_free(model);
}
