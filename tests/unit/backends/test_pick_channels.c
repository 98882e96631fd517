/* Channels picked at every place of an image with channels last, against the reference kernels. */
// SPDX-License-Identifier: Apache-2.0
#include "kernel_case.h"

#include "backends/onednn/dnnl.h"

/* What the channels of a convolution's result become; %d: its channels. */
static const char *nodes;

static void agree(struct cm_arena *arena)
{
    static const int channels[] = {12, 24, 132};
    const char *kernels = cm_dnnl_found().version[0] ? "cpu" : "reference";
    for (size_t i = 0; i < CM_COUNT(channels); i++)
        for (int batch = 1; batch <= 2; batch++) {
            const int c = channels[i];
            const struct cm_str graph =
                cm_arena_printf(arena,
                                "g (float[%d,3,9,8] x, float[%d,3,3,3] w) => (y)"
                                " { c = Conv(x, w) %s }",
                                batch, c, nodes);
            check_kernels(arena, &(struct kernel_case){.graph = graph.data,
                                                       .kernels = kernels,
                                                       .tolerance = 1e-5,
                                                       .any_bits = true,
                                                       .passes = true});
        }
}

#define INTS(name, list) name " = Constant<value_ints = " list ">() "
#define SHUFFLE(split, perm)                                                                       \
    INTS("s", split)                                                                               \
    "a = Reshape(c, s) t = Transpose<perm = " perm                                                 \
    ">(a) " INTS("d", "[0,-1,7,6]") "j = Reshape(t, d) "
#define EXCHANGE "[0,2,1,3,4]"

static void check_nodes(const char *text)
{
    nodes = text;
    check_in_arena(agree);
}

void test_pick_channels__shuffles(void)
{
    check_nodes(SHUFFLE("[0,2,-1,7,6]", EXCHANGE) "y = Identity(j)");
    check_nodes(SHUFFLE("[0,3,-1,7,6]", EXCHANGE) "y = Identity(j)");
    check_nodes(SHUFFLE("[0,-1,4,7,6]", EXCHANGE) "y = Identity(j)");
}

void test_pick_channels__slices_of_shuffles(void)
{
    check_nodes(SHUFFLE("[0,2,-1,7,6]", EXCHANGE) INTS("b", "[0]") INTS("e", "[6]")
                    INTS("x1", "[1]") "y = Slice(j, b, e, x1)");
    check_nodes(SHUFFLE("[0,2,-1,7,6]", EXCHANGE) INTS("b", "[5]") INTS("e", "[999]")
                    INTS("x1", "[1]") "y = Slice(j, b, e, x1)");
    check_nodes(SHUFFLE("[0,4,-1,7,6]", EXCHANGE) INTS("b", "[-7]") INTS("e", "[-1]")
                    INTS("x1", "[1]") "y = Slice(j, b, e, x1)");
}

void test_pick_channels__any_list(void)
{
    check_nodes(INTS("i", "[3, -1, 0, 0, 7]") "y = Gather<axis = 1>(c, i)");
    check_nodes(INTS("i", "[11]") "y = Gather<axis = 1>(c, i)");
}
