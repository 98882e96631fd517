/* Weights where they lie: packed from any address, copied for nobody but those who need it. */
// SPDX-License-Identifier: Apache-2.0
#include "exec_case.h"

#include "backends/onednn/dnnl.h"
#include "base/machine.h"
#include "base/memory.h"
#include "exec/program.h"
#include "onnx/syntax.h"

enum { ROOM = 48 << 20 };

/* Puts the contents of every float initializer, which count up and down, at `shift` bytes past an
 * aligned address of room. */
static void fill_weights(struct cm_model_proto *model, char *room, size_t shift)
{
    size_t at = 0;
    for (size_t i = 0; i < model->graph->initializer.count; i++) {
        struct cm_tensor_proto *proto = &model->graph->initializer.items[i];
        size_t count = 1;
        if (proto->data_type != CM_FLOAT)
            continue;
        for (size_t d = 0; d < proto->dims.count; d++)
            count *= (size_t)proto->dims.items[d];
        CHECK(at + count * sizeof(float) + 2 * CM_TENSOR_ALIGNMENT <= ROOM);
        char *to = room + at + shift;
        for (size_t k = 0; k < count; k++) {
            const float value = (float)((k * 37 + i) % 23) / 16.0F - 0.5F;
            memcpy(to + k * sizeof value, &value, sizeof value);
        }
        cm_msg_clear(&proto->msg, CM_TENSOR_FLOAT_DATA);
        proto->float_data = (struct cm_packed){0};
        proto->raw_data = (struct cm_str){to, count * sizeof(float)};
        cm_msg_set(&proto->msg, CM_TENSOR_RAW_DATA);
        at += (count * sizeof(float) + shift) / CM_TENSOR_ALIGNMENT * CM_TENSOR_ALIGNMENT +
              2 * CM_TENSOR_ALIGNMENT;
    }
}

static void free_room(void *room)
{
    cm_free(room);
}

static struct cm_graph *graph_at(struct cm_arena *arena, const char *text, size_t shift)
{
    struct cm_model_proto *model = CM_NEW(arena, struct cm_model_proto);
    struct cm_graph *graph = NULL;
    struct cm_error err = {0};
    char *room = cm_malloc_on_pages(CM_TENSOR_ALIGNMENT, ROOM);
    CHECK(room);
    cm_arena_defer(arena, free_room, room);
    CHECK_OK(cm_syntax_parse_model(cm_str(text), arena, model, &err), &err);
    fill_weights(model, room, shift);
    CHECK_OK(cm_module_import(cm_module_new(arena, NULL), model, NULL, &graph, &err), &err);
    return graph;
}

#define HEAD(inputs, outputs) GRAPH_HEAD "main (" inputs ") => (" outputs ")\n"
#define PRODUCT(rows, weights, node)                                                               \
    HEAD("float[" rows ",64] x", "float[" rows ",48] y")                                           \
    "<float[" weights "] w = {0}, float[48] b = {0}> { " node " }"

/* Every way to read a weight; input x is float, of as many elements as it takes. */
static const struct {
    const char *text;
    int64_t x[4];
    int rank;
    bool copied; /* somebody reads it row by row, as numbers */
} cases[] = {
    {PRODUCT("1", "64,48", "y = MatMul(x, w)"), {1, 64}, 2, false},
    {PRODUCT("7", "64,48", "y = MatMul(x, w)"), {7, 64}, 2, false},
    {PRODUCT("1", "48,64", "y = Gemm <transB = 1> (x, w, b)"), {1, 64}, 2, false},
    {PRODUCT("7", "48,64", "z = Gemm <transB = 1> (x, w, b) y = Relu(z)"), {7, 64}, 2, false},
    {PRODUCT("200", "64,48", "z = MatMul(x, w) y = Add(z, b)"), {200, 64}, 2, false},
    {HEAD("float[1,8,6,6] x", "float[1,40,6,6] y") "<float[40,8,3,3] w = {0}> "
                                                   "{ y = Conv <pads = [1, 1, 1, 1]> (x, w) }",
     {1, 8, 6, 6},
     4,
     false},
    {HEAD("float[3,2,20] x",
          "float[3,1,2,20] y") "<float[1,80,20] w = {0}, float[1,80,20] r = {0}> "
                               "{ y = LSTM <hidden_size = 20> (x, w, r) }",
     {3, 2, 20},
     3,
     false},
    {HEAD("float[3,2,20] x", "float[4,30] y, float[3,2,20] z") "<float[90,30] w = {0},\n"
                                                               " int64[4] at = {0, -1, 40, 7}> { y "
                                                               "= Gather(w, at) z = Neg(x) }",
     {3, 2, 20},
     3,
     false},
    {HEAD("float[40,50] x", "float[40,50] y") "<float[40,50] w = {0}> { y = Add(x, w) }",
     {40, 50},
     2,
     false /* no weight: aligned when it was loaded */},
    {HEAD("float[5,64] x", "float[5,48] y") "<float[64,48] w = {0}> "
                                            "{ y = Einsum <equation = \"ij,jk->ik\"> (x, w) }",
     {5, 64},
     2,
     true},
    {HEAD("float[5,64] x", "float[5,48] y, float[64,48] w") "<float[64,48] w = {0}> "
                                                            "{ y = MatMul(x, w) }",
     {5, 64},
     2,
     false},
    {HEAD("float[5,64] x",
          "float[5,48] y") "<float[64,48] w = {0}> { s = ReduceMax <keepdims = 0> (x)\n"
                           " q = Greater(s, s) y = If (q) <then_branch = t () => (float[5,48] u) { "
                           "u = MatMul(x, w) },\n"
                           " else_branch = e () => (float[5,48] v) { m = MatMul(x, w) v = Neg(m) "
                           "}> }",
     {5, 64},
     2,
     false},
    /* Only data tells how many rows the product has. */
    {HEAD("float[9,64] x",
          "float[K,48] y") "<float[64,48] w = {0}, int64[1] axis = {1}, float zero = {0}>\n"
                           "{ r = ReduceSum <keepdims = 0> (x, axis) t = Greater(r, zero) e = "
                           "Compress <axis = 0> (x, t)\n"
                           "  y = MatMul(e, w) }",
     {9, 64},
     2,
     true},
};

static void compare(struct cm_arena *arena, size_t c, const char *backend, size_t shift,
                    size_t *copied)
{
    const struct cm_session_options options = {.threads = 1, .backend = backend};
    /* Without `merge`, which reads such small weights. */
    static const char passes[] = "simplify,patterns,fold,inference,transposes,regions";
    struct cm_session *sessions[2];
    struct cm_shape shape = {.rank = cases[c].rank};
    struct cm_error err = {0};
    memcpy(shape.dims, cases[c].x, sizeof cases[c].x);
    struct cm_datum *x = exec_ramp(arena, &shape, -1);
    for (int s = 0; s < 2; s++)
        sessions[s] =
            exec_open_after(arena, graph_at(arena, cases[c].text, s ? shift : 0), passes, &options);
    for (int run = 0; run < 3; run++) {
        struct cm_datum out[2][2] = {0};
        const size_t n_out = strstr(cases[c].text, "y,") ? 2 : 1;
        for (int s = 0; s < 2; s++)
            CHECK_OK(cm_session_run(sessions[s], INPUTS(x), 1, out[s], n_out, NULL, &err), &err);
        for (size_t o = 0; o < n_out; o++) {
            if (!exec_same(&out[0][o], &out[1][o]))
                fail_msg("case %zu, output %zu differs where weights are off by %zu", c, o, shift);
            cm_datum_drop(&out[0][o]);
            cm_datum_drop(&out[1][o]);
        }
    }
    struct cm_session_memory memory;
    CHECK_OK(cm_session_measure(sessions[0], INPUTS(x), 1, NULL, &memory, &err), &err);
    CHECK_INT(memory.aligned, 0);
    CHECK_OK(cm_session_measure(sessions[1], INPUTS(x), 1, NULL, &memory, &err), &err);
    *copied = memory.aligned;
}

static void same_bits(struct cm_arena *arena)
{
    static const char *const backends[] = {NULL, "cpu", "reference"};
    enum { REFERENCE = 2 };
    for (size_t c = 0; c < CM_COUNT(cases); c++)
        for (size_t b = 0; b < CM_COUNT(backends); b++)
            for (size_t shift = 1; shift < 4; shift++) {
                size_t copied;
                compare(arena, c, backends[b], shift, &copied);
                /* oneDNN's code that moves weights takes odd addresses where it has AVX-512. */
                if (!backends[b] && !cases[c].copied && copied && cm_dnnl_found().version[0] &&
                    cm_this_machine() >= CM_AVX512)
                    fail_msg("case %zu: %zu bytes were copied to be aligned", c, copied);
                if (cases[c].copied || (c == 0 && b == REFERENCE))
                    if (copied != 64 * 48 * sizeof(float))
                        fail_msg("case %zu, backend %zu: %zu bytes were copied", c, b, copied);
            }
}

void test_weights__unaligned_ones_give_the_same_bits_and_are_not_copied(void)
{
    check_in_arena(same_bits);
}

/* ---- the first run and later ones ---- */

static void run_to(struct cm_session *session, const struct cm_datum *x, struct cm_datum *out)
{
    struct cm_error err = {0};
    memset(out, 0, sizeof *out);
    CHECK_OK(cm_session_run(session, INPUTS(x), 1, out, 1, NULL, &err), &err);
}

static void compare_runs(struct cm_arena *arena, int m, int n, int k, bool turned)
{
    const struct cm_session_options options = {.threads = m % 2 ? 1 : 3, .backend = "cpu"};
    const struct cm_str text =
        cm_arena_printf(arena,
                        GRAPH_HEAD "main (float[%d,%d] x) => (float[%d,%d] y)\n"
                                   "<float[%d,%d] w = {0}, float[%d] b = {0}>\n"
                                   "{ z = Gemm <transB = %d, alpha = 0.75> (x, w, b) y = Relu(z) }",
                        m, k, m, n, turned ? n : k, turned ? k : n, n, turned);
    struct cm_session *session = exec_open_after(arena, graph_at(arena, text.data, (size_t)(k % 4)),
                                                 "fold,regions", &options);
    const struct cm_datum *x = exec_ramp(arena, &CM_SHAPE(m, k), -1.3);
    struct cm_datum first, later;
    const size_t before = cm_packed_bytes(session);
    run_to(session, x, &first);
    const bool waited = cm_packed_bytes(session) == before;
    for (int run = 0; run < 2; run++) {
        run_to(session, x, &later);
        if (!exec_same(&first, &later))
            fail_msg("%d x %d x %d%s: run %d differs", m, n, k, turned ? ", turned" : "", run + 1);
        cm_datum_drop(&later);
    }
    cm_datum_drop(&first);
    CHECK(waited);
    CHECK(cm_packed_bytes(session) > before);
}

static void packed_later(struct cm_arena *arena)
{
    static const int sizes[][2] = {{1, 1},  {1, 70},   {15, 64},   {16, 17},  {33, 8},
                                   {48, 7}, {300, 65}, {20, 5000}, {272, 129}};
    for (int machine = 0; machine < CM_MACHINES; machine++) {
        cm_machine_limit((enum cm_machine)machine);
        for (size_t i = 0; i < CM_COUNT(sizes); i++)
            for (int m = 1; m <= 13; m += 4)
                for (int turned = 0; turned < 2; turned++)
                    compare_runs(arena, m, sizes[i][0], sizes[i][1], turned && sizes[i][1] > 1);
    }
    cm_machine_limit((enum cm_machine)(CM_MACHINES - 1));
}

void test_weights__a_first_run_that_packs_nothing_gives_the_bits_of_later_ones(void)
{
    check_in_arena(packed_later);
}

static void packed_in_pieces(struct cm_arena *arena)
{
    for (int turned = 0; turned < 2; turned++)
        compare_runs(arena, 3, 1507, 1601, turned); /* 9.7 MB */
}

void test_weights__large_ones_are_packed_piece_by_piece(void)
{
    check_in_arena(packed_in_pieces);
}

/* Two weights of 10 MB are packed by two runs, one of 20 MB by the 34th. */
static void packed_over_runs(struct cm_arena *arena)
{
    enum { SMALL = 10, LARGE = 20, MB = 1000000, RUNS = 36, SPARED = 33 };
    const struct cm_session_options options = {.threads = 2, .backend = "cpu"};
    const char *text = GRAPH_HEAD "main (float[1,1600] x) => (float[1,3200] y)\n"
                                  "<float[1600,1600] u = {0}, float[1600,1600] v = {1},\n"
                                  " float[1600,3200] w = {0}>\n"
                                  "{ a = MatMul(x, u) b = MatMul(a, v) y = MatMul(b, w) }";
    struct cm_session *session =
        exec_open_after(arena, graph_at(arena, text, 1), "fold,merge,regions", &options);
    const struct cm_datum *x = exec_ramp(arena, &CM_SHAPE(1, 1600), -1.3);
    struct cm_datum first, later;
    run_to(session, x, &first);
    CHECK_INT(cm_packed_bytes(session), 0);
    for (size_t run = 2; run <= RUNS; run++) {
        run_to(session, x, &later);
        CHECK(exec_same(&first, &later));
        cm_datum_drop(&later);
        const size_t most = run == 2 ? SMALL : run <= SPARED ? 2 * SMALL : 2 * SMALL + LARGE;
        CHECK(cm_packed_bytes(session) >= (most - 1) * MB);
        CHECK(cm_packed_bytes(session) <= (most + 2) * MB);
    }
    cm_datum_drop(&first);
}

void test_weights__no_run_packs_much_before_it_pays(void)
{
    check_in_arena(packed_over_runs);
}

/* Weights of several sizes and backends take turns in the memory that they share. */
static void share_memory(struct cm_arena *arena)
{
    const struct cm_session_options options = {.threads = 2};
    const char *text =
        GRAPH_HEAD "main (float[2,16,9,9] x) => (float[2,40,9,9] y)\n"
                   "<float[48,16,3,3] v = {0}, float[40,48,1,1] w = {0}, float[40,1,3,3] u = {0}>\n"
                   "{ a = Conv <pads = [1, 1, 1, 1]> (x, v) b = Relu(a) c = Conv(b, w)\n"
                   "y = Conv <group = 40, pads = [1, 1, 1, 1]> (c, u) }";
    for (size_t offset = 0; offset < 4; offset++) {
        struct cm_session *session =
            exec_open_after(arena, graph_at(arena, text, offset), "fold,regions", &options);
        const struct cm_datum *x = exec_ramp(arena, &CM_SHAPE(2, 16, 9, 9), -1.3);
        struct cm_datum first, later;
        run_to(session, x, &first);
        CHECK_INT(cm_packed_bytes(session), 0);
        for (int run = 0; run < 2; run++) {
            run_to(session, x, &later);
            CHECK(exec_same(&first, &later));
            cm_datum_drop(&later);
        }
        cm_datum_drop(&first);
        const bool packs = cm_dnnl_found().version[0] != '\0'; /* nobody else packs those */
        CHECK_INT(cm_packed_bytes(session) > 0, packs);
    }
}

void test_weights__those_of_convolutions_are_packed_by_the_second_run(void)
{
    check_in_arena(share_memory);
}
