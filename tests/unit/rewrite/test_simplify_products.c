/* The pass simplify: products whose batch axes are flattened and unfolded again. */
// SPDX-License-Identifier: Apache-2.0
#include "simplify_case.h"

#define LEAVES(text, operators) check_pass(arena, cm_pass_simplify, text, operators)

/* As an Einsum is written by tf2onnx: batch axes first, then one of length 1, shapes by arithmetic.
 */
#define EINSUM                                                                                     \
    "<int64[2] batch = {0, 1}, int64[1] last = {-1}, int64[1] left = {-1}, int64[1] two = {2},"    \
    " int64[1] one = {1}>"                                                                         \
    "{ sa = Shape(a) ba = Gather(sa, batch) na = ReduceProd(ba) ka = Gather(sa, last)"             \
    "  ta = Concat<axis = 0>(na, left, ka) fa = Reshape(a, ta)"                                    \
    "  sb = Shape(b) bb = Gather(sb, batch) nb = ReduceProd(bb) kb = Gather(sb, last)"             \
    "  tb = Concat<axis = 0>(nb, left, kb) fb = Reshape(b, tb) tr = Transpose<perm = [0,2,1]>(fb)" \
    "  p = MatMul(fa, tr) m = Max(ba, bb) ra = Gather(sa, two) cb = Gather(sb, two)"               \
    "  ty = Concat<axis = 0>(m, ra, cb, one) y = Reshape(p, ty) }"

static void unfolded(struct cm_arena *arena)
{
    struct cm_graph *graph = LEAVES("main (float[N,M,5,7] a, float[N,M,4,7] b) => (y) " EINSUM,
                                    "Transpose MatMul Reshape");
    const struct cm_int64s perm = cm_node_ints(graph->first, "perm");
    CHECK_INT(perm.count, 4);
    CHECK_INT(perm.items[2], 3);
    CHECK_INT(perm.items[3], 2);
    /* an axis of length 1 within the operands */
    LEAVES(
        "main (float[N,M,5,7] x, float[N,M,4,7] z) => (y) "
        "<int64[1] ax = {3}, int64[1] az = {2}, int64[3] fx = {-1, 5, 7}, int64[3] fz = {-1, 4, 7},"
        " int64[4] out = {-1, 3, 5, 4}>"
        "{ a = Unsqueeze(x, ax) b = Unsqueeze(z, az) c = Reshape(a, fx) d = Reshape(b, fz)"
        "  t = Transpose<perm = [0,2,1]>(d) p = MatMul(c, t) y = Reshape(p, out) }",
        "Reshape Reshape Transpose MatMul Reshape"); /* M is not known to be 3 */
    LEAVES(
        "main (float[N,3,5,7] x, float[N,3,4,7] z) => (y) "
        "<int64[1] ax = {3}, int64[1] az = {2}, int64[3] fx = {-1, 5, 7}, int64[3] fz = {-1, 4, 7},"
        " int64[4] out = {-1, 3, 5, 4}>"
        "{ a = Unsqueeze(x, ax) b = Unsqueeze(z, az) c = Reshape(a, fx) d = Reshape(b, fz)"
        "  t = Transpose<perm = [0,2,1]>(d) p = MatMul(c, t) y = Reshape(p, out) }",
        "Transpose MatMul");
}

void test_simplify_products__flattened_batches_are_unfolded(void)
{
    check_in_arena(unfolded);
}

static void kept(struct cm_arena *arena)
{
    /* the result stays flat */
    LEAVES("main (float[2,3,5,7] a, float[2,3,7,4] b) => (y) "
           "<int64[3] fa = {-1, 5, 7}, int64[3] fb = {-1, 7, 4}, int64[2] out = {-1, 4}>"
           "{ c = Reshape(a, fa) d = Reshape(b, fb) p = MatMul(c, d) y = Reshape(p, out) }",
           "Reshape Reshape MatMul Reshape");
    /* the same number of batches, another order */
    LEAVES("main (float[2,3,5,7] a, float[3,2,7,4] b) => (y) "
           "<int64[3] fa = {-1, 5, 7}, int64[3] fb = {-1, 7, 4}, int64[4] out = {2, 3, 5, 4}>"
           "{ c = Reshape(a, fa) d = Reshape(b, fb) p = MatMul(c, d) y = Reshape(p, out) }",
           "Reshape Reshape MatMul Reshape");
    /* what the flat product is, is read elsewhere too */
    LEAVES("main (float[2,3,5,7] a, float[2,3,7,4] b) => (y, p) "
           "<int64[3] fa = {-1, 5, 7}, int64[3] fb = {-1, 7, 4}, int64[4] out = {2, 3, 5, 4}>"
           "{ c = Reshape(a, fa) d = Reshape(b, fb) p = MatMul(c, d) y = Reshape(p, out) }",
           "Reshape Reshape MatMul Reshape");
    /* a batch that ends within an axis */
    LEAVES("main (float[2,15,7] a, float[2,3,7,4] b) => (y) "
           "<int64[3] fa = {-1, 5, 7}, int64[3] fb = {-1, 7, 4}, int64[4] out = {2, 3, 5, 4}>"
           "{ c = Reshape(a, fa) d = Reshape(b, fb) p = MatMul(c, d) y = Reshape(p, out) }",
           "Reshape Reshape MatMul Reshape");
}

void test_simplify_products__what_does_not_fit_stays(void)
{
    check_in_arena(kept);
}
