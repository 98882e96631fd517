/* Values for inputs that nobody gave. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_case.h"
#include "infer/invent.h"

static struct cm_datum *invent(struct cm_arena *arena, const char *text, bool both_signs)
{
    struct cm_graph *graph = graph_of(arena, text, NULL);
    struct cm_size_input *inputs = CM_NEW_ARRAY(arena, struct cm_size_input, graph->n_inputs);
    bool *wanted = CM_NEW_ARRAY(arena, bool, graph->n_inputs);
    struct cm_datum *values = cm_data_new(arena, graph->n_inputs);
    const struct cm_invent_options options = {
        .sizes = {.inputs = inputs, .batch = 1}, .wanted = wanted, .both_signs = both_signs};
    struct cm_open_sizes sizes;
    struct cm_error err = {0};

    for (size_t i = 0; i < graph->n_inputs; i++)
        inputs[i].is_open = wanted[i] = true;
    CHECK_OK(cm_invent(graph, &options, &sizes, values, &err), &err);
    return values;
}

/* The smallest and largest element of an input. */
static void range(const struct cm_datum *datum, double *low, double *high)
{
    *low = *high = cm_tensor_real(&datum->tensor, 0);
    for (int64_t i = 0; i < cm_tensor_count(&datum->tensor); i++) {
        const double x = cm_tensor_real(&datum->tensor, i);
        *low = x < *low ? x : *low;
        *high = x > *high ? x : *high;
    }
}

static void indices(struct cm_arena *arena)
{
    const struct cm_datum *values = invent(
        arena,
        GRAPH_HEAD "g (float[50,3] table, int64[1,400] ids, float[1,400] real, int64[400] k)\n"
                   " => (float[] y, float[] z, float[400,7] s)\n"
                   "{ a = Constant<value_ints = [1]>() b = Constant<value_ints = [9]>()\n"
                   "  w = Squeeze(ids) u = Slice(w, a, b) y = Gather(table, u)\n"
                   "  i = Cast<to = 7>(real) z = Gather<axis = 1>(table, i)\n"
                   "  d = Constant<value_int = 7>() v = Constant<value_ints = [0, 1]>()\n"
                   "  o = OneHot(k, d, v) s = Cast<to = 1>(o) }",
        false);
    double low, high;

    range(&values[1], &low, &high);
    CHECK(low >= 0 && low < 10 && high > 40 && high < 50);
    range(&values[2], &low, &high); /* floats that become positions */
    CHECK(low == 0 && high == 2);
    range(&values[3], &low, &high);
    CHECK(low == 0 && high == 1);
    range(&values[0], &low, &high);
    CHECK(low >= 0 && high < 1 && high > 0.9);
}

void test_invent__integers_stay_within_what_they_point_at(void)
{
    check_in_arena(indices);
}

static void named(struct cm_arena *arena)
{
    const struct cm_datum *values =
        invent(arena,
               GRAPH_HEAD "g (int64[1,9] attention_mask, int64 sr, int64[1] lengths,\n"
                          "   float[1,T] x, uint8[1,3,8,8] image, float[2,2] z) => (int64[1,9] y)\n"
                          "{ y = Neg(attention_mask) }",
               true);
    double low, high;

    range(&values[0], &low, &high);
    CHECK(low == 1 && high == 1);
    CHECK_INT(cm_tensor_int(&values[1].tensor, 0), 16000);
    CHECK_INT(cm_tensor_int(&values[2].tensor, 0), 16);
    range(&values[4], &low, &high);
    CHECK(low < 30 && high > 220);
    range(&values[3], &low, &high);
    CHECK(low < -0.04 && high > 0.04);
    for (int64_t i = 0; i < 16; i++) {
        const double x = cm_tensor_real(&values[3].tensor, i);
        CHECK((x > 0.04 && x < 1.06) || (x < -0.04 && x > -1.06));
    }
}

void test_invent__names_tell_masks_rates_and_lengths(void)
{
    check_in_arena(named);
}

static void strings(struct cm_arena *arena)
{
    const struct cm_datum *values =
        invent(arena,
               "<ir_version: 10, opset_import: [\"\" : 21, \"ai.onnx.ml\" : 3]>\n"
               "g (string[6,1] x, seq(float[2]) s) => (float[] y)\n"
               "{ y = ai.onnx.ml.OneHotEncoder<cats_strings = [\"cat\", \"dog\"]>(x) }",
               false);

    for (int i = 0; i < 6; i++) {
        const struct cm_str word = ((const struct cm_str *)values[0].tensor.data)[i];
        CHECK(cm_str_is(word, "cat") || cm_str_is(word, "dog"));
    }
    CHECK_INT(values[1].kind, CM_KIND_SEQUENCE);
    CHECK_INT(values[1].n_items, 2);
    CHECK_INT(cm_tensor_count(&values[1].items[1].tensor), 2);
}

void test_invent__strings_are_words_that_their_reader_knows(void)
{
    check_in_arena(strings);
}

static void large(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_of(
        arena,
        GRAPH_HEAD "g (float[1000] x, float[1000000,1000000,1000000,9] h) => (float[1000] y)\n"
                   "{ y = Neg(x) }",
        NULL);
    const struct cm_size_input inputs[2] = {{.is_open = true}, {.is_open = true}};
    struct cm_invent_options options = {.sizes = {.inputs = inputs, .batch = 1},
                                        .wanted = (const bool[]){true, false},
                                        .memory_limit = 3999};
    struct cm_datum *values = cm_data_new(arena, 2);
    struct cm_open_sizes sizes;
    struct cm_error err = {0};

    CHECK_FAILS(cm_invent(graph, &options, &sizes, values, &err), CM_LIMIT, &err,
                "the inputs would pass the memory limit of 3999 bytes");
    options.memory_limit = 4000;
    CHECK_OK(cm_invent(graph, &options, &sizes, values, &err), &err);
    options.memory_limit = 0;
    options.wanted = (const bool[]){false, true};
    CHECK_FAILS(cm_invent(graph, &options, &sizes, values, &err), CM_LIMIT, &err, "limit");
}

void test_invent__values_stay_within_the_memory_limit(void)
{
    check_in_arena(large);
}

static void maps(struct cm_arena *arena)
{
    struct cm_graph *graph = graph_of(
        arena, GRAPH_HEAD "g (map(int64, float) m, float[2] x) => (float[2] y) { y = Neg(x) }",
        NULL);
    const struct cm_size_input inputs[2] = {{.is_open = true}, {.is_open = true}};
    const struct cm_invent_options options = {.sizes = {.inputs = inputs, .batch = 1},
                                              .wanted = (const bool[]){true, true}};
    struct cm_datum *values = cm_data_new(arena, 2);
    struct cm_open_sizes sizes;
    struct cm_error err = {0};

    CHECK_FAILS(cm_invent(graph, &options, &sizes, values, &err), CM_BAD_ARGUMENT, &err,
                "input 'm' cannot be made up, it must be given");
}

void test_invent__maps_are_refused(void)
{
    check_in_arena(maps);
}
