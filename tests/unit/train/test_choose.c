/* Which tensors are trained by default: models of a few nodes that show each rule. */
// SPDX-License-Identifier: Apache-2.0
#include "train_case.h"

#include "findings.h"
#include "onnx/tensor_data.h"
#include "train/prepare/prepare.h"

#include <stdlib.h>

struct outcome {
    struct cm_model_file *file;
    struct cm_prepare_report report;
};

static struct cm_prepare_options usual(void)
{
    struct cm_prepare_options options = CM_PREPARE_OPTIONS;
    options.loss = "output:y";
    options.optimizer = "sgd";
    return options;
}

/* The text with numbers for each ~, as many as the shape before it says. */
static const char *spelled_out(struct cm_arena *arena, const char *text)
{
    const size_t room = 100 * strlen(text) + 1;
    char *out = cm_arena_alloc(arena, room);
    size_t used = 0;

    for (const char *at = text; *at; at++) {
        if (*at != '~') {
            out[used++] = *at;
            continue;
        }
        const char *shape = at;
        int count = 1;
        while (*shape != '[')
            shape--;
        for (char *end; *shape != ']'; shape = end)
            count *= (int)strtol(shape + 1, &end, 10);
        for (int i = 0; i < count; i++)
            used += (size_t)snprintf(out + used, room - used, "%s%d", i ? ", " : "{", i % 7 - 2);
        out[used++] = '}';
    }
    out[used] = 0;
    return out;
}

static struct outcome prepared_with(struct cm_arena *arena, const char *text,
                                    struct cm_prepare_options options)
{
    struct cm_error err = {0};
    struct outcome outcome = {.file = train_model(arena, spelled_out(arena, text))};

    CHECK_OK(cm_prepare(arena, outcome.file, &options, &outcome.report, &err), &err);
    return outcome;
}

static struct outcome prepared(struct cm_arena *arena, const char *text)
{
    return prepared_with(arena, text, usual());
}

static const struct cm_prepare_choice *find(const struct outcome *o, const char *name)
{
    for (size_t i = 0; i < o->report.n_choices; i++)
        if (cm_str_is(o->report.choices[i].name, name))
            return &o->report.choices[i];
    return NULL;
}

/* The trained ones, no others: names separated by blanks, in any order. */
static void check_trained(const struct outcome *o, const char *names)
{
    size_t expected = 0, trained = 0;

    for (const char *at = names; *at;) {
        const size_t size = strcspn(at, " ");
        char name[100];

        snprintf(name, sizeof name, "%.*s", (int)size, at);
        const struct cm_prepare_choice *choice = find(o, name);
        if (!choice || !choice->trained)
            fail_msg("%s is not trained: %s", name, choice ? choice->reason.data : "not listed");
        expected++;
        at += size + (at[size] == ' ');
    }
    for (size_t i = 0; i < o->report.n_choices; i++)
        trained += o->report.choices[i].trained;
    CHECK_INT(trained, expected);
}

static void check_left(const struct outcome *o, const char *name, const char *reason)
{
    const struct cm_prepare_choice *choice = find(o, name);

    if (!choice)
        fail_msg("nothing is said of %s", name);
    CHECK(!choice->trained);
    if (!strstr(choice->reason.data, reason))
        fail_msg("%s: %s", name, choice->reason.data);
}

static bool is_said(const struct outcome *o, const char *words)
{
    for (size_t i = 0; i < count_reasons(&o->report.findings, CM_NOTE); i++)
        if (strstr(nth_reason(&o->report.findings, CM_NOTE, i), words))
            return true;
    return false;
}

#define HEAD "<ir_version: 8, opset_import: [\"\" : 17]>\n"

/* ---- constants of the computation ---- */

static void attention(struct cm_arena *arena)
{
    const struct outcome o = prepared(
        arena, HEAD
        "m (float[N,3,2] x) => (float[N,3,2] y)\n"
        "<float[2,2] q = ~, float[2,2] k = ~, float[1,3,3] mask = "
        "{0,-3.4e38,-3.4e38,0,0,-3.4e38,0,0,0},\n"
        " float[1,3,3] bias = {1,2,3,4,5,6,7,8,9}, float[1] scale = {0.7}, float[2] b = {0,0}>\n"
        "{ a = MatMul (x, q) c = MatMul (x, k) t = Transpose <perm = [0,2,1]> (c)\n"
        "  s = MatMul (a, t) u = Mul (s, scale) v = Add (u, mask) w = Add (v, bias)\n"
        "  p = Softmax (w) z = MatMul (p, a) y = Add (z, b) }");

    check_trained(&o, "q k b");
    check_left(&o, "mask", "added to attention scores");
    check_left(&o, "bias", "added to attention scores");
    check_left(&o, "scale", "a single number");
}

void test_choose__masks_and_scales_of_attention_are_no_parameters(void)
{
    check_in_arena(attention);
}

static void inputs(struct cm_arena *arena)
{
    const struct outcome o =
        prepared(arena, HEAD
                 "m (float[N,3,2,2] x) => (float[N,3,2,2] y)\n"
                 "<float[3,1,1] mean = {1,2,3}, float[3,1,1] std = {1,2,3}, float[3,3,1,1] w = ~,\n"
                 " float[3] b = ~, float[3,1,1] gamma = {1,2,3}, float[2,1,1,1] samples = {1,2}>\n"
                 "{ c = Sub (x, mean) n = Div (c, std) h = Conv (n, w, b) g = Mul (h, gamma)\n"
                 "  y = Mul (g, samples) }");

    check_trained(&o, "w b gamma");
    check_left(&o, "mean", "applied to an input");
    check_left(&o, "std", "applied to an input");
    check_left(&o, "samples", "differs from sample to sample");
}

void test_choose__what_normalizes_an_input_is_no_parameter(void)
{
    check_in_arena(inputs);
}

static void recurrent(struct cm_arena *arena)
{
    const struct outcome o =
        prepared(arena, HEAD "m (float[4,N,2] x) => (float[4,1,N,3] y)\n"
                             "<float[1,12,2] w = ~, float[1,12,3] r = ~, float[1,24] b = ~, "
                             "float[1,1,3] h = ~, float[1,1,3] c = ~>\n"
                             "{ y, l, e = LSTM <hidden_size = 3> (x, w, r, b, , h, c) }");

    check_trained(&o, "w r b");
    check_left(&o, "h", "LSTM reads it");
    check_left(&o, "c", "LSTM reads it");
}

void test_choose__initial_states_are_no_parameters(void)
{
    check_in_arena(recurrent);
}

static void tables(struct cm_arena *arena)
{
    const struct outcome o = prepared(
        arena, HEAD
        "m (int64[N,3] x) => (float[N,3,2] y)\n"
        "<float[9,2] words = ~, float[9,2] places = ~, float[9,2] angles = ~, float[2,2] w = ~,\n"
        " float[2] frequencies = {1, 0.1}, int64[1,3] at = {0,1,2}>\n"
        "{ e = Gather (words, x) p = Gather (places, at) h = Add (e, p)\n"
        "  q = MatMul (h, w) c = Gather (angles, x) r = Mul (q, c)\n"
        "  f = Cast <to = 1> (at) g = Constant <value = int64[1] {-1}> ()\n"
        "  u = Unsqueeze (f, g) v = Mul (u, frequencies) s = Sin (v) y = Add (r, s) }");

    check_trained(&o, "words places w");
    check_left(&o, "angles", "only multiply what others have learned");
    check_left(&o, "frequencies", "Mul reads it, not as a weight");
}

void test_choose__embeddings_are_parameters_and_rotary_angles_are_none(void)
{
    check_in_arena(tables);
}

static void looked_up(struct cm_arena *arena)
{
    const struct outcome o =
        prepared(arena, HEAD "m (int64[N] x) => (float[N,2] y) <float[9,2] words = ~>\n"
                             "{ y = Gather (words, x) }");

    check_trained(&o, "words");
}

void test_choose__a_table_whose_rows_are_the_prediction_is_a_parameter(void)
{
    check_in_arena(looked_up);
}

static void infinite(struct cm_arena *arena)
{
    const struct outcome o = prepared(arena, HEAD "m (float[N,2] x) => (float[N,2] y)\n"
                                                  "<float[2,2] w = ~, float[2] limit = {0, -inf}>\n"
                                                  "{ h = MatMul (x, w) y = Add (h, limit) }");

    check_trained(&o, "w");
    check_left(&o, "limit", "infinities");
}

void test_choose__tensors_with_infinities_are_no_parameters(void)
{
    check_in_arena(infinite);
}

/* ---- Constant nodes ---- */

static void constants(struct cm_arena *arena)
{
    struct outcome o =
        prepared(arena, HEAD "m (float[N,2] x) => (float[N,2] y) <float[2,2] w = ~>\n"
                             "{ c = Constant <value = float[2] {3, 4}> ()\n"
                             "  h = MatMul (x, w) y = Add (h, c) }");
    check_trained(&o, "w");
    o = prepared(arena, HEAD "m (float[N,2] x) => (float[N,2] y)\n"
                             "{ c = Constant <value = float[2] {3, 4}> ()\n"
                             "  w = Constant <value = float[2,2] {1, 2, 3, 4}> ()\n"
                             "  n = Constant <value = float[2] {1, 1}> ()\n"
                             "  z = Sub (x, n) h = MatMul (z, w) y = Add (h, c) }");
    check_trained(&o, "c w");
    CHECK(is_said(&o, "'w', held in a Constant node, is now an initializer"));
}

void test_choose__constant_nodes_hold_weights_only_where_nothing_else_does(void)
{
    check_in_arena(constants);
}

/* ---- what the file records ---- */

static void record_kind(struct cm_arena *arena, struct cm_model_file *file, const char *name,
                        const char *kind)
{
    for (size_t i = 0; i < file->model.graph->initializer.count; i++) {
        struct cm_tensor_proto *tensor = &file->model.graph->initializer.items[i];

        if (!cm_str_is(tensor->name, name))
            continue;
        struct cm_entry_proto *entry = CM_LIST_ADD(arena, &tensor->metadata_props);
        entry->key = CM_STR("pkg.torch.export.graph_signature.InputSpec.kind");
        entry->value = cm_str(kind);
    }
}

static void recorded(struct cm_arena *arena)
{
    struct cm_error err = {0};
    const struct cm_prepare_options options = usual();
    struct outcome o = {
        .file = train_model(
            arena,
            spelled_out(
                arena, HEAD
                "m (float[N,4,2] x) => (float[N,4,2] y)\n"
                "<float[2,2] a = ~, float[2,2] b = ~, float[4,2] places = ~, float[4,2] folded = "
                "~, float logit = "
                "{1}>\n"
                "{ h = MatMul (x, a) i = MatMul (h, b) p = Add (i, places) f = Add (p, folded)\n"
                "  y = Mul (f, logit) }"))};

    record_kind(arena, o.file, "a", "PARAMETER");
    record_kind(arena, o.file, "b", "BUFFER");
    record_kind(arena, o.file, "places", "PARAMETER");
    record_kind(arena, o.file, "logit", "PARAMETER");
    CHECK_OK(cm_prepare(arena, o.file, &options, &o.report, &err), &err);
    check_trained(&o, "a places logit");
    check_left(&o, "b", "the file calls it a buffer");
    check_left(&o, "folded", "the exporter computed it");
}

void test_choose__the_kind_that_the_file_records_decides(void)
{
    check_in_arena(recorded);
}

/* ---- normalization in groups ---- */

static const char grouped[] =
    HEAD "m (float[N,4,2] x) => (float[N,4,2] y)\n"
         "<float[4,4,1] w = ~, float[2] one = {1,1}, float[2] zero = {0,0}, float[4,1] gamma = "
         "{1,1,1,1}, float[4,1] beta = {0,0,0,0},\n"
         " int64[3] apart = {0,2,-1}, int64[3] whole = {-1,4,2}, float[4] scale = {1,1,1,1}, "
         "float[4] shift = {0,0,0,0}>\n"
         "{ c = Conv (x, w) r = Reshape (c, apart) n = InstanceNormalization (r, one, zero)\n"
         "  s = Reshape (n, whole) g = Mul (s, gamma) b = Add (g, beta)\n"
         "  y = InstanceNormalization (b, scale, shift) }";

static void groups(struct cm_arena *arena)
{
    const struct outcome o = prepared(arena, grouped);

    check_trained(&o, "w gamma beta scale shift");
    check_left(&o, "one", "plain ones and zeros");
    check_left(&o, "zero", "plain ones and zeros");
}

void test_choose__ones_and_zeros_of_a_group_normalization_stay(void)
{
    check_in_arena(groups);
}

/* ---- merged tensors ---- */

static const char merged[] =
    HEAD "m (float[N,2] x) => (float[N,2] y)\n"
         "<float[2,2] v = ~, float[2,2] w = ~, float[2] zero = {0, 0}, float[2] tied = {1, 2}>\n"
         "{ a = MatMul (x, v) b = Add (a, zero) c = Add (b, tied) d = Relu (c)\n"
         "  [second] e = MatMul (d, w) [add] f = Add (e, zero) y = Add (f, tied) }";

static void apart(struct cm_arena *arena)
{
    struct cm_prepare_options options = usual();
    struct outcome o = prepared(arena, merged);

    check_trained(&o, "v w zero zero.add tied");
    CHECK(is_said(&o, "'zero' holds one repeated value for 2 tensors that the exporter merged"));
    options.keep_tied = true;
    o = prepared_with(arena, merged, options);
    check_trained(&o, "v w zero tied");
    CHECK_INT(count_reasons(&o.report.findings, CM_NOTE), 0);
    options = usual();
    options.freeze = "zero";
    o = prepared_with(arena, merged, options);
    check_trained(&o, "v w tied");
    CHECK_INT(o.file->model.graph->initializer.count, 4); /* as it was */
}

void test_choose__tensors_of_one_repeated_value_are_trained_apart(void)
{
    check_in_arena(apart);
}

/* PyTorch's older exporter writes a copy for each tensor that it merged; what reads one name is one
 * tensor. */
static void copied(struct cm_arena *arena)
{
    const struct outcome o = prepared(
        arena, HEAD "m (float[N,2] x) => (float[N,2] y)\n"
                    "<float[2,2] w = ~, float[2] zero = {0, 0}, float[2] one = {1, 1}>\n"
                    "{ bias = Identity (zero) mean = Identity (zero) var = Identity (one)\n"
                    "  a = MatMul (x, w) b = Add (a, zero) c = MatMul (b, w) d = Add (c, zero)\n"
                    "  e = MatMul (d, w) f = Add (e, bias)\n"
                    "  y = BatchNormalization (f, one, bias, mean, var) }");

    check_trained(&o, "w zero bias one");
    check_left(&o, "mean", "running statistics");
    check_left(&o, "var", "running statistics");
    CHECK_INT(o.file->model.graph->node.count, 7); /* the copies are gone */
    CHECK_INT(o.file->model.training_info.items[0].update_binding.count, 4 + 2 + 1);
}

void test_choose__copies_tell_which_tensors_were_merged(void)
{
    check_in_arena(copied);
}

/* Scale and shift of a BatchNormalization begin as its statistics do. */
static void statistics(struct cm_arena *arena)
{
    const struct outcome o =
        prepared(arena, HEAD "m (float[N,2] x) => (float[N,2] y)\n"
                             "<float[2,2] w = ~, float[2] zero = {0, 0}, float[2] one = {1, 1}>\n"
                             "{ a = MatMul (x, w)\n"
                             "  [bn] y = BatchNormalization (a, one, zero, zero, one) }");

    check_trained(&o, "w zero one");
    check_left(&o, "zero.bn", "running statistics");
    check_left(&o, "one.bn", "running statistics");
}

void test_choose__statistics_are_taken_out_of_what_is_trained(void)
{
    check_in_arena(statistics);
}

/* Nobody knows what reads it beside the prediction, so that keeps what it has. */
static void unknown(struct cm_arena *arena)
{
    const struct outcome o =
        prepared(arena, "<ir_version: 8, opset_import: [\"\" : 17, \"my\" : 1]>\n"
                        "m (float[N,2] x) => (float[N,2] y, float[N,2] z)\n"
                        "<float[2,2] w = ~, float[2] zero = {0, 0}>\n"
                        "{ a = MatMul (x, w) [add] y = Add (a, zero) z = my.Unknown (a, zero) }");

    check_trained(&o, "w zero.add");
    CHECK(cm_str_is(o.file->model.graph->node.items[2].input.items[1], "zero"));
    CHECK(cm_str_is(o.file->model.graph->node.items[1].input.items[1], "zero.add"));
}

void test_choose__nodes_that_nobody_knows_keep_what_they_read(void)
{
    check_in_arena(unknown);
}

/* Exporters put gates in another order by cutting and joining: c is behind nine parts of a and b.
 */
static void parts(struct cm_arena *arena)
{
    const struct outcome o =
        prepared(arena, HEAD "m (float[N,10] x) => (float[N,2] y)\n"
                             "<float[1,2] a = ~, float[1,2] b = ~, float[1,2] c = ~>\n"
                             "{ w = Concat <axis = 0> (a, b, a, b, a, b, a, b, a, c)\n"
                             "  y = MatMul (x, w) }");

    check_trained(&o, "a b c");
}

void test_choose__a_tensor_counts_once_however_many_parts_are_joined(void)
{
    check_in_arena(parts);
}

/* tf2onnx hands the weights of a recurrent layer from turn to turn; one that changes is a state. */
static void kept(struct cm_arena *arena)
{
    const struct outcome o = prepared(
        arena, HEAD "m (float[2,2] x) => (float[2,2] y)\n"
                    "<float[2,2] w = ~, float[2] b = ~, float[2,2] s = ~, int64 n = {3}>\n"
                    "{ y, w9, b9, s9 = Loop (n, , x, w, b, s) <body = turn\n"
                    "  (int64 i, bool go, float[2,2] h, float[2,2] v, float[2] c, float[2,2] t)\n"
                    "  => (bool go1, float[2,2] h1, float[2,2] v1, float[2] c1, float[2,2] t1)\n"
                    "  { go1 = Identity (go) p = MatMul (h, v) q = Add (p, c) r = MatMul (q, t)\n"
                    "    h1 = Tanh (r) v1 = Identity (v) c1 = Identity (c) t1 = Mul (t, t) }> }");

    check_trained(&o, "w b");
}

void test_choose__weights_that_a_loop_hands_on_are_parameters(void)
{
    check_in_arena(kept);
}

/* ---- bodies ---- */

static void bodies(struct cm_arena *arena)
{
    const struct outcome o =
        prepared(arena, HEAD "m (bool c, float[N,2] x) => (float[N,2] y) <float[2,2] w = ~>\n"
                             "{ h = MatMul (x, w)\n"
                             "  y = If (c) <then_branch = a () => (float[N,2] t) <float[2] b = {1, "
                             "2}> { t = Add (h, b) },\n"
                             "              else_branch = o () => (float[N,2] e) { k = Constant "
                             "<value = float[2] {3, 4}> () e = Mul (h, k) }> }");

    check_trained(&o, "w b");
}

void test_choose__constants_in_bodies_stay_constants(void)
{
    check_in_arena(bodies);
}
