/* Which tensor of a checkpoint is which of a model: names, layouts, gates, values, what exporters
 * merged. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "convert/match/match.h"
#include "onnx/tensor_data.h"

struct world {
    struct cm_arena *arena;
    struct cm_model_file *file;
    struct cm_saved *saved;
    struct cm_matching *matching;
};

/* Numbers that look random and are the same for a seed. */
static float noise(uint64_t seed)
{
    seed = (seed + 1) * 0x9e3779b97f4a7c15u;
    seed ^= seed >> 29;
    seed *= 0xbf58476d1ce4e5b9u;
    return (float)(seed >> 40) / (float)(1 << 24) - 0.5F;
}

/* What the text declares between < and > becomes an initializer of zeros. */
static void add_initializers(struct world *w)
{
    struct cm_graph_proto *graph = w->file->model.graph;

    for (size_t i = 0; i < graph->value_info.count; i++) {
        const struct cm_value_info_proto *value = &graph->value_info.items[i];
        const struct cm_tensor_type_proto *type = value->type->tensor_type;
        struct cm_tensor_proto *tensor = CM_LIST_ADD(w->arena, &graph->initializer);
        struct cm_shape shape = {.rank = (int)type->shape->dim.count};
        struct cm_error err = {0};

        for (int d = 0; d < shape.rank; d++)
            shape.dims[d] = type->shape->dim.items[d].dim_value;
        const struct cm_tensor zeros = cm_tensor_borrow(
            CM_FLOAT, &shape, CM_NEW_ARRAY(w->arena, float, (size_t)cm_shape_elements(&shape)));
        CHECK_OK(cm_tensor_proto_store(tensor, w->arena, &zeros, &err), &err);
        tensor->name = value->name;
        cm_msg_set(&tensor->msg, CM_TENSOR_NAME);
    }
}

static void begin(struct world *w, struct cm_arena *arena, const char *model)
{
    struct cm_error err = {0};
    const struct cm_load_options text = {.format = CM_FORMAT_TEXT};

    w->arena = arena;
    CHECK_OK(cm_model_parse(arena, cm_str(model), &text, &w->file, &err), &err);
    add_initializers(w);
    w->saved = cm_saved_new(arena, CM_STR("test"));
    w->saved->system = w->saved->format = "test";
}

/* Element i is noise(seed + i). */
static struct cm_saved_tensor *add(struct world *w, const char *name, struct cm_shape shape,
                                   uint64_t seed)
{
    const int64_t count = cm_shape_elements(&shape);
    float *numbers = CM_NEW_ARRAY(w->arena, float, (size_t)count);
    struct cm_saved_tensor *tensor;
    struct cm_error err = {0};

    for (int64_t i = 0; i < count; i++)
        numbers[i] = noise(seed + (uint64_t)i);
    CHECK_OK(cm_saved_tensor_new(w->arena, CM_FLOAT, &shape,
                                 (struct cm_str){(const char *)numbers, (size_t)count * 4},
                                 CM_STR(""), &tensor, &err),
             &err);
    (void)cm_saved_add(w->saved, CM_SAVED_WEIGHT, cm_str(name), tensor);
    return tensor;
}

/* An initializer of the model gets the values that parts make of the checkpoint's, with some noise:
 * as if they had been trained since. */
static void hold_values(struct world *w, const char *name, uint64_t seed, bool transposed)
{
    for (size_t i = 0; i < w->file->model.graph->initializer.count; i++) {
        struct cm_tensor_proto *tensor = &w->file->model.graph->initializer.items[i];
        struct cm_error err = {0};
        struct cm_shape shape;

        if (!cm_str_is(tensor->name, name))
            continue;
        CHECK_OK(cm_tensor_proto_shape(tensor, &shape, &err), &err);
        const int64_t rows = shape.dims[0], columns = shape.rank > 1 ? shape.dims[1] : 1;
        float *numbers = CM_NEW_ARRAY(w->arena, float, (size_t)(rows * columns));
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++)
                numbers[r * columns + c] =
                    noise(seed + (uint64_t)(transposed ? c * rows + r : r * columns + c)) +
                    0.2F * noise(99 + (uint64_t)(r * columns + c));
        const struct cm_tensor values = cm_tensor_borrow(CM_FLOAT, &shape, numbers);
        CHECK_OK(cm_tensor_proto_store(tensor, w->arena, &values, &err), &err);
        return;
    }
    fail_msg("no initializer %s", name);
}

static void match(struct world *w, const char *map)
{
    struct cm_error err = {0};

    w->matching = CM_NEW(w->arena, struct cm_matching);
    w->matching->arena = w->arena;
    w->matching->file = w->file;
    w->matching->saved = w->saved;
    CHECK_OK(cm_match(w->matching, cm_str(map), &err), &err);
}

static void check_match(const struct world *w, const char *name, const char *source,
                        const char *how)
{
    const struct cm_match_target *target = cm_match_find_target(w->matching, cm_str(name));

    CHECK(target != NULL);
    if (!source) {
        CHECK(target->parts.count == 0);
        return;
    }
    CHECK(target->parts.count > 0);
    CHECK_STR(target->parts.items[0].source, source);
    if (!cm_str_is(target->how, how))
        fail_msg("%s was found %.*s", name, CM_STR_FMT(target->how));
}

/* ---- names ---- */

static const char two[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                          "net (float[n,3] x) => (float[n,2] y)\n"
                          "<float[3,4] a, float[4] b, float[4,2] c, float[2] d>\n"
                          "{ h = MatMul (x, a)\n i = Add (h, b)\n j = Relu (i)\n"
                          "  k = MatMul (j, c)\n y = Add (k, d) }";

static void prefixes(struct cm_arena *arena)
{
    static const char model[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                "net (float[n,3] x) => (float[n,4] y)\n"
                                "<float[4,3] \"m.fc.weight\", float[4] \"m.fc.bias\">\n"
                                "{ y = Gemm<transB: int = 1> (x, \"m.fc.weight\", \"m.fc.bias\") }";
    struct world w = {0};

    begin(&w, arena, model);
    (void)add(&w, "module._orig_mod.fc.weight", CM_SHAPE(4, 3), 0);
    (void)add(&w, "module._orig_mod.fc.bias", CM_SHAPE(4), 50);
    match(&w, NULL);
    check_match(&w, "m.fc.weight", "module._orig_mod.fc.weight", "by name without 'm.'");
    check_match(&w, "m.fc.bias", "module._orig_mod.fc.bias", "by name without 'm.'");
}

void test_match__wrappers_and_prefixes_are_left_out_of_names(void)
{
    check_in_arena(prefixes);
}

static void spellings(struct cm_arena *arena)
{
    static const struct {
        const char *name, *key;
        bool is_traced;
    } rows[] = {
        {"params/bn1/scale", "bn1.weight", false},
        {"bn1.running_mean", "bn1.mean", false},
        {"bn1/moving_variance:0", "bn1.var", false},
        {"mlp_1/fc1_1/Cast/ReadVariableOp:0", "mlp.fc1.weight", true},
        {"mlp_1/dense_1_2/BiasAdd/ReadVariableOp:0", "mlp.dense_1.bias", true},
        {"module.layers.0.weight", "layers.0.weight", false},
        {"a._fsdp_wrapped_module.b.bias", "a.b.bias", false},
        {"w", "weight", false},
        {"", "", true},
        {"...", "", true},
    };

    for (size_t i = 0; i < CM_COUNT(rows); i++)
        CHECK_STR(cm_match_key(arena, cm_str(rows[i].name), rows[i].is_traced), rows[i].key);
}

void test_match__names_of_all_frameworks_become_one_spelling(void)
{
    check_in_arena(spellings);
}

static void rules(struct cm_arena *arena)
{
    struct world w = {0};

    begin(&w, arena, two);
    (void)add(&w, "first.x", CM_SHAPE(3, 4), 0);
    (void)add(&w, "first.y", CM_SHAPE(4), 20);
    (void)add(&w, "second.c", CM_SHAPE(4, 2), 30);
    (void)add(&w, "second.d", CM_SHAPE(2), 40);
    match(&w, "# by hand\n a = first.x\nb = first.y\n/^([cd])$/ = second.\\1\nz = first.x\nb\n"
              "/(/ = x\n");
    check_match(&w, "a", "first.x", "by --map");
    check_match(&w, "b", "first.y", "by --map");
    check_match(&w, "c", "second.c", "by --map");
    check_match(&w, "d", "second.d", "by --map");
    CHECK(w.matching->problems.count == 3);
    CHECK_STR(w.matching->problems.items[0].reason,
              "--map, line 5: the model has no initializer 'z'");
}

void test_match__rules_of_the_user_come_first_and_are_checked(void)
{
    check_in_arena(rules);
}

/* ---- layouts ---- */

static void check_layout(struct cm_arena *arena, struct cm_shape from, struct cm_shape to,
                         size_t count, const char *word)
{
    struct cm_parts layouts[CM_LAYOUTS_MAX];

    CHECK(cm_layouts(arena, CM_STR("s"), &from, &to, layouts) == count);
    if (count)
        CHECK(strcmp(cm_layout_word(&layouts[0]), word) == 0);
}

static void layouts(struct cm_arena *arena)
{
    check_layout(arena, CM_SHAPE(3, 4), CM_SHAPE(3, 4), 1, "");
    check_layout(arena, CM_SHAPE(3, 4), CM_SHAPE(4, 3), 1, ", transposed");
    check_layout(arena, CM_SHAPE(4, 4), CM_SHAPE(4, 4), 2, "");
    check_layout(arena, CM_SHAPE(3, 5, 2, 8), CM_SHAPE(8, 2, 3, 5), 1, ", transposed");
    check_layout(arena, CM_SHAPE(3, 3, 8, 1), CM_SHAPE(8, 1, 3, 3), 1, ", transposed");
    check_layout(arena, CM_SHAPE(7), CM_SHAPE(1, 7, 1, 1), 1, "");
    check_layout(arena, CM_SHAPE(6, 2, 5), CM_SHAPE(6, 10), 1, ", reshaped");
    check_layout(arena, CM_SHAPE(6, 10), CM_SHAPE(6, 2, 5), 1, ", reshaped");
    check_layout(arena, CM_SHAPE(6, 10), CM_SHAPE(7, 9), 0, "");
    check_layout(arena, CM_SHAPE(6, 10), CM_SHAPE(4, 15), 0, "");
}

void test_layouts__what_exporters_do_to_a_tensor(void)
{
    check_in_arena(layouts);
}

/* A reshape gives the elements in their order. */
static void reshaped(struct cm_arena *arena)
{
    const struct cm_shape from = CM_SHAPE(6, 10), to = CM_SHAPE(12, 5);
    struct cm_parts layouts[CM_LAYOUTS_MAX];
    struct world w = {0};
    struct cm_saved_reader reader = {0};
    struct cm_saved_tensor *gathered;
    struct cm_error err = {0};
    float got[60];

    begin(&w, arena, two);
    (void)add(&w, "s", from, 7);
    match(&w, NULL);
    CHECK(cm_layouts(arena, CM_STR("s"), &from, &to, layouts) == 1);
    CHECK_OK(cm_parts_gather(arena, &layouts[0], &to, CM_FLOAT, cm_match_tensor, w.matching,
                             &gathered, &err),
             &err);
    CHECK_OK(cm_saved_tensor_read(&reader, gathered, 0, 60, got, &err), &err);
    for (uint64_t i = 0; i < 60; i++)
        CHECK(got[i] == noise(7 + i));
}

void test_layouts__a_reshape_keeps_the_order_of_elements(void)
{
    check_in_arena(reshaped);
}

/* ---- values ---- */

static void values(struct cm_arena *arena)
{
    static const char model[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                "net (float[n,8] x) => (float[n,8] y)\n"
                                "<float[8,8] a, float[8,8] b, float[8,24] c>\n"
                                "{ h = MatMul (x, a)\n i = MatMul (h, b)\n y = MatMul (i, c) }";
    struct world w = {0};

    begin(&w, arena, model);
    (void)add(&w, "one", CM_SHAPE(8, 8), 1000);
    (void)add(&w, "two", CM_SHAPE(8, 8), 2000);
    (void)add(&w, "three", CM_SHAPE(24, 8), 3000);
    hold_values(&w, "a", 2000, true);
    hold_values(&w, "b", 1000, false);
    hold_values(&w, "c", 3000, true);
    match(&w, NULL);
    CHECK_STR(cm_match_find_target(w.matching, CM_STR("a"))->parts.items[0].source, "two");
    CHECK(cm_match_find_target(w.matching, CM_STR("a"))->parts.items[0].axes[0] == 1);
    CHECK_STR(cm_match_find_target(w.matching, CM_STR("b"))->parts.items[0].source, "one");
    CHECK(cm_match_find_target(w.matching, CM_STR("b"))->parts.items[0].axes[0] == 0);
    CHECK_STR(cm_match_find_target(w.matching, CM_STR("c"))->parts.items[0].source, "three");
}

void test_match__values_tell_renamed_and_turned_tensors(void)
{
    check_in_arena(values);
}

static void unlike(struct cm_arena *arena)
{
    static const char model[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                "net (float[n,8] x) => (float[n,8] y)\n"
                                "<float[8,8] a, float[8,8] b>\n"
                                "{ h = MatMul (x, a)\n y = MatMul (h, b) }";
    struct world w = {0};

    begin(&w, arena, model);
    (void)add(&w, "one", CM_SHAPE(8, 8), 1000);
    (void)add(&w, "two", CM_SHAPE(8, 8), 2000);
    hold_values(&w, "a", 5000, false);
    hold_values(&w, "b", 6000, false);
    match(&w, NULL);
    check_match(&w, "a", NULL, NULL);
    check_match(&w, "b", NULL, NULL);
}

void test_match__nothing_is_guessed_where_values_are_unlike(void)
{
    check_in_arena(unlike);
}

/* A square weight whose values say nothing any more: its name does. */
static void square(struct cm_arena *arena)
{
    static const char model[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                "net (float[n,8] x) => (float[n,8] y)\n"
                                "<float[8,8] \"m.fc.weight\">\n"
                                "{ t = Transpose (\"m.fc.weight\")\n y = MatMul (x, t) }";
    struct world w = {0};

    begin(&w, arena, model);
    (void)add(&w, "fc.weight", CM_SHAPE(8, 8), 1000);
    hold_values(&w, "m.fc.weight", 5000, false);
    match(&w, NULL);
    check_match(&w, "m.fc.weight", "fc.weight", "by name without 'm.'");
    CHECK(cm_match_find_target(w.matching, CM_STR("m.fc.weight"))->parts.items[0].axes[0] == 0);
}

void test_match__a_weight_that_kept_its_name_is_not_turned(void)
{
    check_in_arena(square);
}

/* q, k and v in one tensor of the model, and in one of the framework. */
static void merged(struct cm_arena *arena)
{
    static const char model[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                "net (float[n,8] x) => (float[n,8] y, float[n,16] z)\n"
                                "<float[8,8] a, float[8,16] b>\n"
                                "{ y = MatMul (x, a)\n z = MatMul (x, b) }";
    struct world w = {0};

    begin(&w, arena, model);
    (void)add(&w, "qkv", CM_SHAPE(24, 8), 1000);
    (void)add(&w, "left", CM_SHAPE(8, 8), 5000);
    (void)add(&w, "right", CM_SHAPE(8, 8), 6000);
    hold_values(&w, "a", 1000 + 64, true); /* rows 8 to 16 of qkv */
    float *both = CM_NEW_ARRAY(arena, float, 128);
    for (uint64_t r = 0; r < 8; r++)
        for (uint64_t c = 0; c < 8; c++) {
            both[r * 16 + c] = noise(6000 + r * 8 + c);
            both[r * 16 + 8 + c] = noise(5000 + r * 8 + c);
        }
    const struct cm_shape shape = CM_SHAPE(8, 16);
    const struct cm_tensor tensor = cm_tensor_borrow(CM_FLOAT, &shape, both);
    struct cm_error err = {0};
    CHECK_OK(
        cm_tensor_proto_store(&w.file->model.graph->initializer.items[1], arena, &tensor, &err),
        &err);
    match(&w, NULL);
    const struct cm_match_target *a = cm_match_find_target(w.matching, CM_STR("a"));
    const struct cm_match_target *b = cm_match_find_target(w.matching, CM_STR("b"));
    CHECK(a->parts.count == 1);
    CHECK_STR(a->parts.items[0].source, "qkv");
    CHECK(a->parts.items[0].from[0] == 8 && a->parts.items[0].size[0] == 8);
    CHECK(b->parts.count == 2);
    CHECK_STR(b->parts.items[0].source, "right");
    CHECK_STR(b->parts.items[1].source, "left");
    CHECK(b->parts.items[1].at[1] == 8);
}

void test_match__values_tell_what_was_merged_or_split(void)
{
    check_in_arena(merged);
}

/* ---- the graph ---- */

static void neighbours(struct cm_arena *arena)
{
    struct world w = {0};

    begin(&w, arena, two);
    (void)add(&w, "fc1.weight", CM_SHAPE(4, 3), 0);
    (void)add(&w, "fc1.bias", CM_SHAPE(4), 20);
    (void)add(&w, "fc2.weight", CM_SHAPE(2, 4), 30);
    (void)add(&w, "fc2.bias", CM_SHAPE(2), 40);
    match(&w, "b = fc1.bias\nd = fc2.bias\n");
    check_match(&w, "a", "fc1.weight", "by its layer, transposed");
    check_match(&w, "c", "fc2.weight", "by its layer, transposed");
}

void test_match__the_weight_beside_a_known_bias_is_of_its_layer(void)
{
    check_in_arena(neighbours);
}

static void norms(struct cm_arena *arena)
{
    static const char model[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                "net (float[n,2,4] x) => (float[n,3,4] y)\n"
                                "<float[3,2,1] k, float[3] s, float[3] o, float[3] m, float[3] v>\n"
                                "{ h = Conv (x, k)\n y = BatchNormalization (h, s, o, m, v) }";
    struct world w = {0};

    begin(&w, arena, model);
    (void)add(&w, "conv.weight", CM_SHAPE(3, 2, 1), 0);
    (void)add(&w, "bn.weight", CM_SHAPE(3), 10);
    (void)add(&w, "bn.bias", CM_SHAPE(3), 20);
    (void)add(&w, "bn.running_mean", CM_SHAPE(3), 30);
    (void)add(&w, "bn.running_var", CM_SHAPE(3), 40);
    match(&w, NULL);
    check_match(&w, "s", "bn.weight", "by the only layer that fits");
    check_match(&w, "m", "bn.running_mean", "by the only layer that fits");
    check_match(&w, "v", "bn.running_var", "by the only layer that fits");
    check_match(&w, "k", "conv.weight", "the only one left that fits");
}

void test_match__statistics_go_where_the_norm_reads_them(void)
{
    check_in_arena(norms);
}

/* ---- gates ---- */

static void gates(struct cm_arena *arena)
{
    static const char model[] =
        "<ir_version: 8, opset_import: [\"\" : 17]>\n"
        "net (float[s,n,3] x) => (float[s,2,n,2] y)\n"
        "<float[2,8,3] w, float[2,8,2] r, float[2,16] b>\n"
        "{ y = LSTM<hidden_size: int = 2, direction: string = \"bidirectional\"> (x, w, r, b) }";
    static const int order[] = {0, 3, 1, 2}; /* i o f c out of i f c o */
    struct world w = {0};
    struct cm_saved_reader reader = {0};
    struct cm_saved_tensor *gathered;
    struct cm_error err = {0};
    float got[48];

    begin(&w, arena, model);
    (void)add(&w, "rnn.weight_ih_l0", CM_SHAPE(8, 3), 100);
    (void)add(&w, "rnn.weight_hh_l0", CM_SHAPE(8, 2), 200);
    (void)add(&w, "rnn.bias_ih_l0", CM_SHAPE(8), 300);
    (void)add(&w, "rnn.bias_hh_l0", CM_SHAPE(8), 400);
    (void)add(&w, "rnn.weight_ih_l0_reverse", CM_SHAPE(8, 3), 500);
    (void)add(&w, "rnn.weight_hh_l0_reverse", CM_SHAPE(8, 2), 600);
    (void)add(&w, "rnn.bias_ih_l0_reverse", CM_SHAPE(8), 700);
    (void)add(&w, "rnn.bias_hh_l0_reverse", CM_SHAPE(8), 800);
    match(&w, NULL);
    const struct cm_match_target *weights = cm_match_find_target(w.matching, CM_STR("w"));
    const struct cm_match_target *bias = cm_match_find_target(w.matching, CM_STR("b"));
    CHECK(weights->parts.count == 8 && bias->parts.count == 16);
    CHECK_OK(cm_parts_gather(arena, &weights->parts, &weights->shape, CM_FLOAT, cm_match_tensor,
                             w.matching, &gathered, &err),
             &err);
    CHECK_OK(cm_saved_tensor_read(&reader, gathered, 0, 48, got, &err), &err);
    for (uint64_t d = 0; d < 2; d++)
        for (uint64_t row = 0; row < 8; row++)
            for (uint64_t c = 0; c < 3; c++)
                CHECK(got[(d * 8 + row) * 3 + c] ==
                      noise(100 + 400 * d + ((uint64_t)order[row / 2] * 2 + row % 2) * 3 + c));
    CHECK_OK(cm_parts_gather(arena, &bias->parts, &bias->shape, CM_FLOAT, cm_match_tensor,
                             w.matching, &gathered, &err),
             &err);
    CHECK_OK(cm_saved_tensor_read(&reader, gathered, 0, 32, got, &err), &err);
    for (uint64_t row = 0; row < 8; row++)
        CHECK(got[8 + row] == noise(400 + (uint64_t)order[row / 2] * 2 + row % 2));
}

void test_match__gates_of_both_directions_are_put_in_order(void)
{
    check_in_arena(gates);
}

/* Keras: kernels turned, one bias; the other half of B is a constant then. */
static void one_bias(struct cm_arena *arena)
{
    static const char model[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                "net (float[s,n,3] x) => (float[s,1,n,2] y)\n"
                                "<float[1,8,3] w, float[1,8,2] r, float[1,16] b>\n"
                                "{ y = LSTM<hidden_size: int = 2> (x, w, r, b) }";
    static const int order[] = {0, 3, 1, 2};
    struct world w = {0};
    struct cm_saved_reader reader = {0};
    struct cm_saved_tensor *gathered;
    struct cm_error err = {0};
    float got[24];

    begin(&w, arena, model);
    (void)add(&w, "lstm/kernel", CM_SHAPE(3, 8), 100);
    (void)add(&w, "lstm/recurrent_kernel", CM_SHAPE(2, 8), 200);
    (void)add(&w, "lstm/bias", CM_SHAPE(8), 300);
    match(&w, NULL);
    const struct cm_match_target *weights = cm_match_find_target(w.matching, CM_STR("w"));
    const struct cm_match_target *bias = cm_match_find_target(w.matching, CM_STR("b.input"));
    CHECK(weights->parts.count == 4 && bias && bias->parts.count == 4);
    CHECK_OK(cm_parts_gather(arena, &weights->parts, &weights->shape, CM_FLOAT, cm_match_tensor,
                             w.matching, &gathered, &err),
             &err);
    CHECK_OK(cm_saved_tensor_read(&reader, gathered, 0, 24, got, &err), &err);
    for (uint64_t row = 0; row < 8; row++)
        for (uint64_t c = 0; c < 3; c++)
            CHECK(got[row * 3 + c] == noise(100 + c * 8 + (uint64_t)order[row / 2] * 2 + row % 2));
    CHECK_OK(cm_parts_gather(arena, &bias->parts, &bias->shape, CM_FLOAT, cm_match_tensor,
                             w.matching, &gathered, &err),
             &err);
    CHECK_OK(cm_saved_tensor_read(&reader, gathered, 0, 8, got, &err), &err);
    for (uint64_t row = 0; row < 8; row++)
        CHECK(got[row] == noise(300 + (uint64_t)order[row / 2] * 2 + row % 2));
    CHECK(w.file->model.graph->node.count == 2);
    CHECK_STR(w.file->model.graph->node.items[0].output.items[0], "b");
}

void test_match__one_bias_of_a_recurrent_layer_leaves_the_other_constant(void)
{
    check_in_arena(one_bias);
}

/* ---- what was merged, what is tied ---- */

static void copies(struct cm_arena *arena)
{
    static const char model[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                "net (float[n,4] x) => (float[n,4] y)\n"
                                "<float[4] \"l.0.bias\">\n"
                                "{ \"l.1.bias\" = Identity (\"l.0.bias\")\n"
                                "  h = Add (x, \"l.0.bias\")\n y = Add (h, \"l.1.bias\") }";
    struct world w = {0};

    begin(&w, arena, model);
    (void)add(&w, "l.0.bias", CM_SHAPE(4), 0);
    (void)add(&w, "l.1.bias", CM_SHAPE(4), 10);
    match(&w, NULL);
    check_match(&w, "l.0.bias", "l.0.bias", "by name");
    check_match(&w, "l.1.bias", "l.1.bias", "by name");
    CHECK(w.file->model.graph->node.count == 2);
    CHECK(w.file->model.graph->initializer.count == 2);
}

void test_match__copies_of_an_initializer_become_tensors_of_their_own(void)
{
    check_in_arena(copies);
}

static void tied(struct cm_arena *arena)
{
    static const char model[] = "<ir_version: 8, opset_import: [\"\" : 17]>\n"
                                "net (int64[n] x) => (float[n,9] y)\n"
                                "<float[9,6] table, float[6,9] head>\n"
                                "{ h = Gather (table, x)\n y = MatMul (h, head) }";
    struct world w = {0};

    begin(&w, arena, model);
    (void)add(&w, "wte.weight", CM_SHAPE(9, 6), 0);
    hold_values(&w, "table", 0, false);
    hold_values(&w, "head", 0, true);
    match(&w, NULL);
    CHECK(cm_match_find_target(w.matching, CM_STR("head"))->parts.count == 1);
    cm_match_tie(w.matching);
    CHECK(cm_match_find_target(w.matching, CM_STR("head"))->is_tied);
    CHECK(w.file->model.graph->initializer.count == 1);
    CHECK(w.file->model.graph->node.count == 3);
    CHECK_STR(w.file->model.graph->node.items[0].op_type, "Transpose");
    CHECK_STR(w.file->model.graph->node.items[0].output.items[0], "head");
}

void test_match__two_initializers_of_one_weight_are_tied(void)
{
    check_in_arena(tied);
}
