/* The kernels for LSTM, GRU and RNN and their gradients, against the reference kernels. */
// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"
#include "exec/exec_case.h"

#include <math.h>

enum { MOST_RESULTS = 6 };

struct sizes {
    int64_t steps, batch, input, hidden;
};

static const struct sizes some[] = {{1, 1, 1, 1},   {3, 2, 5, 7},    {5, 1, 16, 16},
                                    {4, 3, 17, 33}, {2, 13, 40, 48}, {6, 32, 12, 20},
                                    {3, 2, 9, 130}, {0, 2, 3, 4},    {2, 0, 3, 4}};

static void note_kernel(void *arg, const struct cm_step_report *report)
{
    *(const char **)arg = report->kernel;
}

/* Between -scale and scale; the first elements are not finite where asked for. */
static struct cm_datum *waves(struct cm_arena *arena, const struct cm_shape *shape, double phase,
                              double scale)
{
    struct cm_datum *datum = exec_ramp(arena, shape, 0);
    for (int64_t i = 0; i < cm_tensor_count(&datum->tensor); i++)
        ((float *)datum->tensor.data)[i] =
            (float)(scale * sin(0.7 * (double)(i % 1013) + phase * (double)(1 + i / 1013)));
    return datum;
}

static struct cm_datum *lengths(struct cm_arena *arena, struct sizes s)
{
    struct cm_datum *datum = exec_ramp(arena, &CM_SHAPE(s.batch), 0);
    datum->tensor.type = CM_INT32;
    for (int64_t i = 0; i < s.batch; i++)
        ((int32_t *)datum->tensor.data)[i] = (int32_t)(i * 2 % (s.steps + 1));
    return datum;
}

static size_t run(struct cm_arena *arena, const char *text, const char *backend, int threads,
                  const struct cm_datum *const *in, size_t n_in, size_t n_out, const char *kernel,
                  struct cm_datum *out)
{
    struct cm_session *session =
        exec_of(arena, text, &(struct cm_session_options){.threads = threads, .backend = backend});
    struct cm_error err = {0};
    const char *ran = NULL;
    const struct cm_run_options options = {.step = note_kernel, .step_arg = &ran};
    CHECK_OK(cm_session_run(session, in, n_in, out, n_out, &options, &err), &err);
    CHECK_STRING(ran, kernel);
    return n_out;
}

static void check_near(const struct cm_datum *fast, const struct cm_datum *slow, double scale)
{
    CHECK(cm_shape_equal(&fast->tensor.shape, &slow->tensor.shape));
    for (int64_t i = 0; i < cm_tensor_count(&fast->tensor); i++) {
        const double a = cm_tensor_real(&fast->tensor, i), b = cm_tensor_real(&slow->tensor, i);
        if (!(fabs(a - b) <= 4e-6 * scale) && !(isnan(a) && isnan(b)))
            fail_msg("element %lld is %.9g, expected %.9g", (long long)i, a, b);
    }
}

/* The reference, and each instruction set with 1 and 3 threads, which give the same bits. */
static void agree(struct cm_arena *arena, const char *text, const struct cm_datum *const *in,
                  size_t n_in, size_t n_out, const char *kernel, double scale)
{
    struct cm_datum slow[MOST_RESULTS] = {0};
    run(arena, text, "reference", 1, in, n_in, n_out, "reference", slow);
    for (int machine = CM_PLAIN; machine < CM_MACHINES; machine++) {
        struct cm_datum alone[MOST_RESULTS] = {0}, shared[MOST_RESULTS] = {0};
        cm_machine_limit((enum cm_machine)machine);
        run(arena, text, NULL, 1, in, n_in, n_out, kernel, alone);
        run(arena, text, NULL, 3, in, n_in, n_out, kernel, shared);
        for (size_t o = 0; o < n_out; o++) {
            check_near(&alone[o], &slow[o], scale);
            CHECK(exec_same(&alone[o], &shared[o]));
            cm_datum_drop(&alone[o]);
            cm_datum_drop(&shared[o]);
        }
    }
    cm_machine_limit(CM_MACHINES - 1);
    for (size_t o = 0; o < n_out; o++)
        cm_datum_drop(&slow[o]);
}

/* ---- forward ---- */

struct cell {
    const char *name;
    int64_t gates, states;
};

static const struct cell lstm = {"LSTM", 4, 2}, gru = {"GRU", 3, 1}, rnn = {"RNN", 1, 1};

enum { WITH_BIAS = 1, WITH_LENGTHS = 2, WITH_STATES = 4, WITH_PEEPHOLES = 8, BATCH_FIRST = 16 };

static void forward(struct cm_arena *arena, const struct cell *cell, struct sizes s, int dirs,
                    const char *attributes, unsigned with)
{
    const int64_t rows = cell->gates * s.hidden;
    const bool first = with & BATCH_FIRST;
    const struct cm_shape x =
        first ? CM_SHAPE(s.batch, s.steps, s.input) : CM_SHAPE(s.steps, s.batch, s.input);
    const struct cm_shape state =
        first ? CM_SHAPE(s.batch, dirs, s.hidden) : CM_SHAPE(dirs, s.batch, s.hidden);
    const double small = 1 / sqrt((double)s.hidden);
    const struct cm_datum *in[8] = {waves(arena, &x, 0.1, 1),
                                    waves(arena, &CM_SHAPE(dirs, rows, s.input), 0.2, small),
                                    waves(arena, &CM_SHAPE(dirs, rows, s.hidden), 0.3, small)};
    size_t n = 3;
    if (with & WITH_BIAS)
        in[n++] = waves(arena, &CM_SHAPE(dirs, 2 * rows), 0.4, 0.5);
    if (with & WITH_LENGTHS)
        in[n++] = lengths(arena, s);
    if (with & WITH_STATES)
        in[n++] = waves(arena, &state, 0.5, 1);
    if (with & WITH_STATES && cell->states > 1)
        in[n++] = waves(arena, &state, 0.6, 1);
    if (with & WITH_PEEPHOLES)
        in[n++] = waves(arena, &CM_SHAPE(dirs, 3 * s.hidden), 0.7, 0.5);
    const struct cm_str text = cm_arena_printf(
        arena,
        GRAPH_HEAD "main (float[A,B,C] x, float[D,E,C] w, float[D,E,H] r%s%s%s%s%s) => "
                   "(float[F,G,I,H] y, float[J,K,H] h%s) {\n"
                   "  y, h%s = %s<%s layout = %d>(x, w, r%s%s%s%s%s)}",
        with & WITH_BIAS ? ", float[D,M] b" : "", with & WITH_LENGTHS ? ", int32[N] lens" : "",
        with & WITH_STATES ? ", float[J,K,H] h0" : "",
        with & WITH_STATES && cell->states > 1 ? ", float[J,K,H] c0" : "",
        with & WITH_PEEPHOLES ? ", float[D,P] p" : "", cell->states > 1 ? ", float[J,K,H] c" : "",
        cell->states > 1 ? ", c" : "", cell->name, attributes, first,
        with & WITH_BIAS ? ", b" : ", ", with & WITH_LENGTHS ? ", lens" : ", ",
        with & WITH_STATES ? ", h0" : "", with & WITH_STATES && cell->states > 1 ? ", c0" : "",
        with & WITH_PEEPHOLES ? ", p" : "");
    agree(arena, text.data, in, n, (size_t)cell->states + 1, "cpu", 1);
}

static void usual(struct cm_arena *arena)
{
    for (size_t i = 0; i < CM_COUNT(some); i++) {
        forward(arena, &lstm, some[i], 1, "", WITH_BIAS);
        forward(arena, &lstm, some[i], 2, "direction = \"bidirectional\",", WITH_STATES);
        forward(arena, &gru, some[i], 1, "linear_before_reset = 1,", WITH_BIAS | WITH_STATES);
        forward(arena, &gru, some[i], 2, "direction = \"bidirectional\", linear_before_reset = 1,",
                WITH_BIAS);
        forward(arena, &rnn, some[i], 1, "direction = \"reverse\",", WITH_BIAS | WITH_STATES);
    }
}

void test_recurrent__usual_forms_of_any_size(void)
{
    check_in_arena(usual);
}

static void unusual(struct cm_arena *arena)
{
    const struct sizes s = {4, 3, 17, 33};
    forward(arena, &lstm, s, 1, "clip = 0.4,", WITH_BIAS | WITH_LENGTHS);
    forward(arena, &lstm, s, 2, "direction = \"bidirectional\",",
            WITH_BIAS | WITH_LENGTHS | WITH_STATES | WITH_PEEPHOLES);
    forward(arena, &lstm, s, 1, "input_forget = 1,", BATCH_FIRST | WITH_STATES);
    forward(arena, &lstm, s, 1, "activations = [\"HardSigmoid\", \"Softsign\", \"Affine\"],",
            WITH_BIAS);
    forward(arena, &gru, s, 1, "", WITH_BIAS | WITH_LENGTHS);
    forward(arena, &gru, s, 2, "direction = \"bidirectional\", clip = 0.5,", BATCH_FIRST);
    forward(arena, &gru, s, 1, "linear_before_reset = 1, activations = [\"Sigmoid\", \"Elu\"],",
            WITH_STATES | WITH_LENGTHS);
    forward(arena, &gru, s, 1, "activations = [\"Softplus\", \"ScaledTanh\"],", WITH_BIAS);
    forward(arena, &rnn, s, 2,
            "direction = \"bidirectional\", activations = [\"Relu\", \"LeakyRelu\"],",
            WITH_BIAS | WITH_LENGTHS | BATCH_FIRST);
    forward(arena, &rnn, s, 1, "activations = [\"ThresholdedRelu\"], activation_alpha = [0.1],", 0);
}

void test_recurrent__unusual_forms(void)
{
    check_in_arena(unusual);
}

/* ---- backward ---- */

static void backward(struct cm_arena *arena, const struct cell *cell, struct sizes s, int dirs,
                     const char *attributes)
{
    const int64_t rows = cell->gates * s.hidden;
    const int64_t parts = (cell == &lstm ? 5 : 4) * s.hidden;
    const struct cm_shape y = CM_SHAPE(s.steps, dirs, s.batch, s.hidden);
    const struct cm_shape state = CM_SHAPE(dirs, s.batch, s.hidden);
    const double small = 1 / sqrt((double)s.hidden);
    const struct cm_datum *in[] = {waves(arena, &CM_SHAPE(s.steps, s.batch, s.input), 0.1, 1),
                                   waves(arena, &CM_SHAPE(dirs, rows, s.input), 0.2, small),
                                   waves(arena, &CM_SHAPE(dirs, rows, s.hidden), 0.3, small),
                                   waves(arena, &y, 0.4, 1),
                                   waves(arena, &state, 0.5, 1),
                                   waves(arena, &y, 0.6, 1),
                                   waves(arena, &state, 0.7, 1),
                                   waves(arena, &CM_SHAPE(dirs, s.steps, s.batch, parts), 0.8, 0.9),
                                   waves(arena, &state, 0.9, 1),
                                   waves(arena, &state, 1.0, 1)};
    const size_t n_in = cell == &lstm ? 10 : cell == &gru ? 8 : 7;
    const struct cm_str text = cm_arena_printf(
        arena,
        "<ir_version: 10, opset_import: [\"\" : 28, \"ai.cameo\" : 1]>\n"
        "main (float[T,B,C] x, float[D,E,C] w, float[D,E,H] r, float[T,D,B,H] y, float[D,B,H] h,\n"
        "  float[T,D,B,H] dy, float[D,B,H] dh%s%s) => (float[T,B,C] dx, float[D,E,C] dw,\n"
        "  float[D,E,H] dr, float[D,F] db, float[D,B,H] d0%s) {\n"
        "  dx, dw, dr, db, d0%s = ai.cameo.%sGrad<%s>(x, w, r, y, h, dy, dh%s%s)}",
        cell == &rnn ? "" : ", float[D,T,B,G] kept",
        cell == &lstm ? ", float[D,B,H] c, float[D,B,H] dc" : "",
        cell == &lstm ? ", float[D,B,H] d1" : "", cell == &lstm ? ", d1" : "", cell->name,
        attributes, cell == &rnn ? "" : ", kept", cell == &lstm ? ", c, dc" : "");
    agree(arena, text.data, in, n_in, cell == &lstm ? 6 : 5, "cpu",
          1 + (double)(s.steps * s.batch));
}

static void gradients(struct cm_arena *arena)
{
    for (size_t i = 0; i < CM_COUNT(some); i++) {
        backward(arena, &lstm, some[i], 1, "direction = \"forward\"");
        backward(arena, &lstm, some[i], 2, "direction = \"bidirectional\"");
        backward(arena, &gru, some[i], 1, "direction = \"reverse\"");
        backward(arena, &gru, some[i], 2, "direction = \"bidirectional\"");
        backward(arena, &rnn, some[i], 1, "direction = \"forward\"");
        backward(arena, &rnn, some[i], 2,
                 "direction = \"bidirectional\", activations = [\"Relu\", \"Tanh\"]");
    }
}

void test_recurrent__gradients_of_any_size(void)
{
    check_in_arena(gradients);
}

/* Large enough for a team, with a number that is none and one that is too large. */
static void large(struct cm_arena *arena)
{
    const struct sizes s = {3, 9, 20, 160};
    forward(arena, &lstm, s, 1, "", WITH_BIAS | WITH_STATES);
    forward(arena, &gru, s, 2, "direction = \"bidirectional\",", WITH_BIAS);
    backward(arena, &lstm, s, 2, "direction = \"bidirectional\"");
    backward(arena, &gru, s, 1, "direction = \"reverse\"");
    struct cm_datum *x = waves(arena, &CM_SHAPE(2, 3, 4), 0.1, 1);
    ((float *)x->tensor.data)[5] = NAN;
    ((float *)x->tensor.data)[9] = INFINITY;
    const struct cm_datum *in[] = {x, waves(arena, &CM_SHAPE(1, 80, 4), 0.2, 1),
                                   waves(arena, &CM_SHAPE(1, 80, 20), 0.3, 1)};
    agree(arena,
          GRAPH_HEAD
          "main (float[A,B,C] x, float[D,E,C] w, float[D,E,H] r) => (float[A,D,B,H] y) {\n"
          "  y = LSTM(x, w, r)}",
          in, 3, 1, "cpu", 1);
}

void test_recurrent__threads_and_numbers_that_are_none(void)
{
    check_in_arena(large);
}
