/* The pass simplify: views, moves, parts and edges. */
// SPDX-License-Identifier: Apache-2.0
#include "simplify_case.h"

#define LEAVES(text, operators) check_pass(arena, cm_pass_simplify, text, operators)
#define F                       "main (float[N,M] x, float[2,3,4] v, float[1,3,1,4] ones, float[] any) => (y) "

static void same_shapes(struct cm_arena *arena)
{
    LEAVES(F "<int64[2] same = {0, 0}, int64[0] none = {}, int64[2] once = {1, 1}>"
             "{ a = Reshape(x, same) b = Flatten<axis = 1>(a) c = Squeeze(b, none)"
             "  d = Unsqueeze(c, none) e = Expand(d, once) f = Tile(e, once) y = Relu(f) }",
           "Relu");
    LEAVES(F "{ s = Shape(x) a = Reshape(x, s) b = Expand(a, s) y = Relu(b) }", "Relu");
    LEAVES(F "<int64[2] t = {-1, 3}> { a = Reshape(v, t) y = Relu(a) }", "Reshape Relu");
    LEAVES(F "<int64[1] t = {-1}> { a = Reshape(any, t) y = Relu(a) }", "Reshape Relu");
    LEAVES(F "<int64[3] t = {1, 2, 1}> { a = Tile(v, t) y = Relu(a) }", "Tile Relu");
    LEAVES(F "<int64[3] t = {5, 1, 1}> { a = Expand(x, t) y = Relu(a) }", "Expand Relu");
    /* the result can only have the shape of v, but t or z may not fit: that is for the run to say
     */
    LEAVES("main (float[2,3] v, int64[1] t) => (y) { s = Neg(t) a = Expand(v, s) y = Relu(a) }",
           "Neg Expand Relu");
    LEAVES("main (float[2,3] v, float[N,M] z) => (y) { t = Shape(z) a = Expand(v, t) y = Relu(a) }",
           "Shape Expand Relu");
}

void test_simplify_views__what_keeps_the_shape_goes(void)
{
    check_in_arena(same_shapes);
}

static void chains(struct cm_arena *arena)
{
    LEAVES(F "<int64[2] a1 = {6, 4}, int64[2] a2 = {4, 6}, int64[1] a3 = {-1}>"
             "{ a = Reshape(v, a1) b = Reshape(a, a2) c = Reshape(b, a3) y = Relu(c) }",
           "Reshape Relu");
    LEAVES(F "<int64[1] ax = {1}, int64[1] ax2 = {-1}>"
             "{ a = Unsqueeze(x, ax) b = Unsqueeze(a, ax2) c = Squeeze(b, ax) y = Relu(c) }",
           "Reshape Relu");
    LEAVES(F "<int64[1] ax = {1}, int64[2] t = {4, 6}>"
             "{ a = Unsqueeze(v, ax) b = Flatten(a) c = Reshape(b, t) y = Relu(c) }",
           "Reshape Relu");
    /* back to the shape it had */
    LEAVES(F "<int64[1] ax = {1}> { a = Unsqueeze(x, ax) b = Squeeze(a, ax) y = Relu(b) }", "Relu");
    LEAVES(F "<int64[1] flat = {-1}> { a = Reshape(x, flat) s = Shape(x) b = Reshape(a, s)"
             " y = Relu(b) }",
           "Relu");
    /* 0 copies from what is reshaped: 6 is no dimension of v */
    LEAVES(F "<int64[2] a1 = {6, 4}, int64[3] a2 = {0, 2, 2}>"
             "{ a = Reshape(v, a1) b = Reshape(a, a2) y = Relu(b) }",
           "Reshape Relu");
    /* two dimensions of the result are others than those of x */
    LEAVES("main (float[N,M,4] x, float[M,N,4] z) => (y) <int64[1] flat = {-1}>"
           "{ u = Relu(x) t = Shape(z) a = Reshape(u, flat) y = Reshape(a, t) }",
           "Relu Shape Reshape Reshape");
    LEAVES("main (float[0,3] x) => (y) <int64[2] a1 = {3, 0}, int64[2] a2 = {0, 5}>"
           "{ a = Reshape<allowzero = 1>(x, a1) b = Reshape<allowzero = 1>(a, a2) y = Relu(b) }",
           "Reshape Relu");
}

void test_simplify_views__views_of_views_become_one(void)
{
    check_in_arena(chains);
}

/* What refuses some of its inputs goes only where nothing it would refuse can come. */
static void refusals(struct cm_arena *arena)
{
    LEAVES("main (float[N,M] x) => (y) <int64[2] six = {3, 2}, int64[1] flat = {-1}>"
           "{ a = Reshape(x, six) b = Reshape(a, flat) y = Relu(b) }",
           "Reshape Reshape Relu");
    LEAVES("main (float[N,M] x) => (y) <int64[2] six = {3, 2}>"
           "{ a = Reshape(x, six) s = Shape(x) b = Reshape(a, s) y = Relu(b) }",
           "Reshape Shape Reshape Relu");
    LEAVES("main (float[N,6] x) => (y) <int64[3] thirds = {-1, 3, 2}, int64[2] flat = {2, 6}>"
           "{ a = Reshape(x, thirds) b = Reshape(a, flat) y = Relu(b) }",
           "Reshape Relu");
    LEAVES("main (float[N,3] x, float[M] z) => (y) <int64[1] two = {2}>"
           "{ s = Shape(z) t = Concat<axis = 0>(s, two) b = Reshape(x, t) y = Relu(b) }",
           "Shape Concat Reshape Relu");
    LEAVES("main (float[N,1] x, float[1] o) => (y) <int64[1] ax = {1}, int64[2] t = {-1, 2}>"
           "{ a = Squeeze(x, ax) b = Reshape(a, t) y = Relu(b) }",
           "Reshape Relu");
    LEAVES("main (float[3,N,M] x) => (y) <int64[1] zero = {0}, int64[2] t = {-1, 2},"
           " int64[1] one = {1}, int64[3] u = {1, 2, 3}>"
           "{ a = Slice(x, zero, one) b = Reshape(a, u) c = Squeeze(b, zero) d = Reshape(c, t)"
           "  y = Relu(d) }",
           "Slice Reshape Reshape Relu");
}

void test_simplify_views__what_may_refuse_its_input_stays(void)
{
    check_in_arena(refusals);
}

static void transposes(struct cm_arena *arena)
{
    LEAVES(F "{ a = Transpose<perm = [0, 1, 2]>(v) y = Relu(a) }", "Relu");
    LEAVES(F "{ a = Transpose(x) b = Transpose<perm = [1, 0]>(a) y = Relu(b) }", "Relu");
    struct cm_graph *graph =
        LEAVES(F "{ a = Transpose<perm = [1, 2, 0]>(v) b = Transpose<perm = [0, 2, 1]>(a)"
                 " y = Relu(b) }",
               "Transpose Relu");
    const struct cm_int64s perm = cm_node_ints(graph->first, "perm");
    CHECK_INT(perm.items[0], 1);
    CHECK_INT(perm.items[1], 0);
    CHECK_INT(perm.items[2], 2);
    LEAVES(F "{ a = Transpose<perm = [0, 2, 1, 3]>(ones) y = Relu(a) }", "Reshape Relu");
    LEAVES(F "{ a = Transpose<perm = [2, 1, 0, 3]>(ones) y = Relu(a) }", "Relu");
    LEAVES(F "{ a = Transpose(any) y = Relu(a) }", "Transpose Relu");
    LEAVES(F "{ a = Transpose(x) y = Relu(a) }", "Transpose Relu");
}

static void longer_transposes(struct cm_arena *arena)
{
    static const int64_t expected[] = {0, 2, 3, 1};
    struct cm_graph *graph =
        LEAVES("main (float[N,3,M,4] x) => (y) <int64[1] one = {1}, int64[1] two = {2}>"
               "{ a = Unsqueeze(x, one) b = Transpose<perm = [0, 3, 1, 4, 2]>(a)"
               "  c = Squeeze(b, two) y = Relu(c) }",
               "Transpose Relu");
    const struct cm_int64s perm = cm_node_ints(graph->first, "perm");
    CHECK_INT(perm.count, 4);
    for (size_t i = 0; i < perm.count; i++)
        CHECK_INT(perm.items[i], expected[i]);
    LEAVES(F "<int64[3] flat = {4, 3, 1}> { a = Transpose<perm = [3, 0, 1, 2]>(ones)"
             " b = Reshape(a, flat) y = Relu(b) }",
           "Reshape Transpose Relu");
    /* not only axes of length 1 go */
    LEAVES(F "<int64[2] flat = {4, 6}> { a = Transpose<perm = [2, 0, 1]>(v)"
             " b = Reshape(a, flat) y = Relu(b) }",
           "Transpose Reshape Relu");
}

void test_simplify_views__axes_of_length_1_that_go_are_not_moved(void)
{
    check_in_arena(longer_transposes);
}

void test_simplify_views__transposes_cancel_and_merge(void)
{
    check_in_arena(transposes);
}

static void parts(struct cm_arena *arena)
{
    LEAVES(F "<int64[1] zero = {0}, int64[1] far = {9223372036854775807}, int64[1] two = {2}>"
             "{ a = Slice(x, zero, far) b = Split<num_outputs = 1>(a) c = Slice(v, zero, two)"
             "  d = ReduceMax<keepdims = 0>(c) y = Add(b, d) }",
           "ReduceMax Add");
    LEAVES(F "<int64[1] zero = {0}> { s = Shape<end = 1>(x) a = Slice(x, zero, s) y = Relu(a) }",
           "Relu");
    /* reversed: as large, but not the same */
    LEAVES(F "<int64[1] last = {-1}, int64[1] first = {-9223372036854775807},"
             " int64[1] ax = {1}, int64[1] back = {-1}>"
             "{ a = Slice(x, last, first, ax, back) y = Relu(a) }",
           "Slice Relu");
    LEAVES(F "<int64[1] zero = {0}, int64[1] one = {1}> { a = Slice(v, zero, one) y = Relu(a) }",
           "Slice Relu");
    LEAVES(F "<int64[4] none = {0, 0, 0, 0}> { a = Pad(x, none) y = Relu(a) }", "Relu");
    LEAVES(F "<int64[6] shift = {1, 0, 0, -1, 0, 0}> { a = Pad(v, shift) y = Relu(a) }",
           "Pad Relu");
    LEAVES(F "<int64[2] ones2 = {1, 1}> { a, b = Split<axis = 0>(v, ones2) y = Add(a, b) }",
           "Split Add");
}

static void parts_of_parts(struct cm_arena *arena)
{
    LEAVES(F "<int64[1] one = {1}, int64[1] far = {9223372036854775807}, int64[1] ax = {2},"
             " int64[1] back = {-3}, int64[1] last = {-1}>"
             "{ a = Slice(v, one, far, ax) b = Slice(a, back, last, ax) c = Slice(b, one, far, one)"
             "  y = Relu(c) }",
           "Slice Relu");
    LEAVES(F "<int64[2] s = {-1, 0}, int64[2] e = {9223372036854775807, -1}, int64[1] one = {1},"
             " int64[1] two = {2}, int64[1] ax = {-1}>"
             "{ a = Slice(v, s, e) b = Slice(a, two, one, ax) y = Relu(b) }",
           "Slice Relu");
    /* how long the axis is between them is not known, or elements are left out, or it is read */
    LEAVES("main (float[K] x) => (y) <int64[1] one = {1}, int64[1] last = {-1}>"
           "{ a = Slice(x, one, last) b = Slice(a, one, last) y = Relu(b) }",
           "Slice Slice Relu");
    LEAVES(F "<int64[1] zero = {0}, int64[1] far = {100}, int64[1] two = {2}>"
             "{ a = Slice(v, zero, far, two, two) b = Slice(a, two, far, zero) y = Relu(b) }",
           "Slice Slice Relu");
    LEAVES("main (float[6] x) => (y) <int64[1] one = {1}, int64[1] last = {-1}>"
           "{ a = Slice(x, one, last) b = Slice(a, one, last) c = ReduceMax(a) y = Add(b, c) }",
           "Slice Slice ReduceMax Add");
    LEAVES(F "<int64 i = {-1}, int64[1] ax = {-2}>"
             "{ a = Gather<axis = 1>(v, i) b = Unsqueeze(a, ax) y = Relu(b) }",
           "Gather Relu");
    LEAVES(F "<int64 i = {1}, int64[1] ax = {2}>"
             "{ a = Gather<axis = 1>(v, i) b = Unsqueeze(a, ax) y = Relu(b) }",
           "Gather Unsqueeze Relu");
}

void test_simplify_views__parts_of_parts_become_one(void)
{
    check_in_arena(parts_of_parts);
}

void test_simplify_views__parts_that_are_the_whole_go(void)
{
    check_in_arena(parts);
}

/* A file may say of a value what is not so: edited models keep the sizes they had before. */
static void stale_declarations(struct cm_arena *arena)
{
    LEAVES("main (float[K,6] x) => (y)"
           "<float[1,6] a, int64[2] t = {0, 6}, int64 i0 = {0}, int64[1] ax = {0},"
           " int64[2] rest = {2, 3}>"
           "{ a = Relu(x) s = Shape(a) n = Gather(s, i0) n1 = Unsqueeze(n, ax)"
           "  u = Concat<axis = 0>(n1, rest) y = Reshape(a, u) }",
           "Relu Reshape");
    LEAVES("main (float[K,6] x) => (y) <float[K,6] a, int64[2] t = {-1, 6}, int64[2] u = {-1, 3}>"
           "{ b = Relu(x) a = Reshape(b, u) c = Neg(a) y = Reshape(c, t) }",
           "Relu Reshape Neg Reshape");
}

void test_simplify_views__what_a_file_only_declares_is_not_relied_on(void)
{
    check_in_arena(stale_declarations);
}
