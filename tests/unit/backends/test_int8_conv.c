/* Convolutions of codes against the reference kernel: the same bits, whatever the processor has. */
// SPDX-License-Identifier: Apache-2.0
#include "int8_case.h"

struct conv_form {
    int64_t x[4], w[4]; /* shapes */
    const char *attributes;
};

static const struct conv_form forms[] = {
    {{1, 1, 1, 1}, {1, 1, 1, 1}, ""},
    {{2, 3, 9, 7}, {5, 3, 3, 3}, "<pads = [1, 1, 1, 1]>"},                      /* copied */
    {{1, 3, 20, 20}, {33, 3, 7, 7}, "<pads = [3, 3, 3, 3], strides = [2, 2]>"}, /* copied */
    {{1, 5, 9, 9}, {4, 5, 2, 3}, "<dilations = [2, 2], pads = [1, 0, 2, 3]>"},  /* copied, apart */
    {{2, 16, 6, 11}, {40, 16, 3, 3}, "<pads = [1, 1, 1, 1]>"},
    {{1, 32, 13, 13}, {70, 32, 1, 1}, ""},
    {{1, 32, 13, 13}, {17, 32, 1, 1}, "<strides = [2, 2]>"},
    {{1, 20, 9, 9}, {8, 20, 3, 3}, "<auto_pad = \"SAME_UPPER\", strides = [2, 2]>"},
    {{1, 20, 9, 9}, {8, 20, 4, 4}, "<auto_pad = \"SAME_LOWER\">"},
    {{1, 20, 9, 9}, {8, 20, 4, 4}, "<auto_pad = \"VALID\">"},
    {{1, 24, 8, 8}, {36, 6, 3, 3}, "<group = 4, pads = [1, 1, 1, 1]>"},
    {{1, 40, 8, 9}, {40, 1, 3, 3}, "<group = 40, pads = [1, 1, 1, 1]>"}, /* alone */
    {{2, 7, 8, 9}, {7, 1, 5, 5}, "<group = 7, pads = [2, 2, 2, 2], strides = [2, 1]>"},
    {{1, 6, 8, 9}, {12, 1, 3, 3}, "<group = 6>"},
    {{1, 64, 20, 4}, {96, 64, 3, 1}, "<dilations = [3, 1], pads = [3, 0, 3, 0]>"},
};

static struct cm_datum *numbers(struct cm_arena *arena, int64_t count)
{
    struct cm_datum *datum = bytes(arena, CM_INT8, &CM_SHAPE(count * 4), 9);
    datum->tensor.type = CM_INT32;
    datum->tensor.shape = CM_SHAPE(count);
    for (int64_t i = 0; i < count; i++)
        ((int32_t *)datum->tensor.data)[i] = (int32_t)(i * 7919 % 20011) - 10000;
    return datum;
}

/* zeros: 0: of the weights 0; 1: one for each channel. */
static void try_form(struct cm_arena *arena, const struct conv_form *f, int pair, int zeros)
{
    const enum cm_dtype left = pair & 1 ? CM_INT8 : CM_UINT8, right = pair & 2 ? CM_INT8 : CM_UINT8;
    const char *const a = pair & 1 ? "int8" : "uint8", *const b = pair & 2 ? "int8" : "uint8";
    const struct cm_shape one = {0}, channels = CM_SHAPE(f->w[0]);
    const struct cm_shape x = CM_SHAPE(f->x[0], f->x[1], f->x[2], f->x[3]);
    const struct cm_shape w = CM_SHAPE(f->w[0], f->w[1], f->w[2], f->w[3]);
    struct cm_datum *middle = bytes(arena, right, &one, 6);
    *(uint8_t *)middle->tensor.data = pair & 2 ? 0 : 128;
    const struct cm_datum *const in[] = {bytes(arena, left, &x, 1),
                                         bytes(arena, CM_FLOAT, &one, 2),
                                         bytes(arena, left, &one, 3),
                                         bytes(arena, right, &w, 4),
                                         bytes(arena, CM_FLOAT, &channels, 5),
                                         zeros ? bytes(arena, right, &channels, 6) : middle,
                                         bytes(arena, CM_FLOAT, &one, 7),
                                         bytes(arena, left, &one, 8),
                                         numbers(arena, f->w[0])};
    agree(arena,
          cm_arena_printf(arena,
                          GRAPH_HEAD
                          "main (%s[N,C,H,W] x, float xs, %s xz, %s[O,I,K,L] w, float[O] ws, "
                          "%s%s wz, float ys, %s yz, int32[O] b) => (%s[N,O,P,Q] y) "
                          "{y = QLinearConv%s(x, xs, xz, w, ws, wz, ys, yz, b)}",
                          a, a, b, b, zeros ? "[O]" : "", a, a, f->attributes)
              .data,
          in, CM_COUNT(in), "cpu");
    const struct cm_datum *const raw[] = {in[0], in[3], in[2], in[5]};
    agree(arena,
          cm_arena_printf(arena,
                          GRAPH_HEAD "main (%s[N,C,H,W] x, %s[O,I,K,L] w, %s xz, %s%s wz) => "
                                     "(int32[N,O,P,Q] y) {y = ConvInteger%s(x, w, xz, wz)}",
                          a, b, a, b, zeros ? "[O]" : "", f->attributes)
              .data,
          raw, CM_COUNT(raw), "cpu");
}

/* Zero points of weights that are known to be 0. */
static void try_centered(struct cm_arena *arena, const struct conv_form *f)
{
    const struct cm_shape one = {0};
    const struct cm_datum *const in[] = {
        bytes(arena, CM_UINT8, &CM_SHAPE(f->x[0], f->x[1], f->x[2], f->x[3]), 1),
        bytes(arena, CM_FLOAT, &one, 2),
        bytes(arena, CM_UINT8, &one, 3),
        bytes(arena, CM_INT8, &CM_SHAPE(f->w[0], f->w[1], f->w[2], f->w[3]), 4),
        bytes(arena, CM_FLOAT, &CM_SHAPE(f->w[0]), 5),
        bytes(arena, CM_FLOAT, &one, 7)};
    agree(arena,
          cm_arena_printf(arena,
                          GRAPH_HEAD "main (uint8[N,C,H,W] x, float xs, uint8 xz, int8[O,I,K,L] w, "
                                     "float[O] ws, float ys) => (int8[N,O,P,Q] y) <int8 wz = {0}> "
                                     "{y = QLinearConv%s(x, xs, xz, w, ws, wz, ys, wz)}",
                          f->attributes)
              .data,
          in, CM_COUNT(in), "cpu");
    const struct cm_datum *const raw[] = {in[0], in[3], in[2]};
    agree(arena,
          cm_arena_printf(arena,
                          GRAPH_HEAD "main (uint8[N,C,H,W] x, int8[O,I,K,L] w, uint8 xz) => "
                                     "(int32[N,O,P,Q] y) {y = ConvInteger%s(x, w, xz)}",
                          f->attributes)
              .data,
          raw, CM_COUNT(raw), "cpu");
}

static void all_forms(struct cm_arena *arena)
{
    for (size_t i = 0; i < CM_COUNT(forms); i++) {
        try_centered(arena, &forms[i]);
        for (int pair = 0; pair < 4; pair++)
            for (int zeros = 0; zeros < 2; zeros++)
                try_form(arena, &forms[i], pair, zeros);
    }
}

void test_int8_conv__windows_groups_and_types(void)
{
    check_in_arena(all_forms);
}

/* Layouts go from one to the next, and back where somebody reads the result as it is. */
static void chain(struct cm_arena *arena)
{
    const struct cm_shape one = {0};
    const struct cm_datum *const in[] = {
        bytes(arena, CM_UINT8, &CM_SHAPE(1, 8, 6, 6), 1), bytes(arena, CM_FLOAT, &one, 2),
        bytes(arena, CM_UINT8, &one, 3), bytes(arena, CM_INT8, &CM_SHAPE(8, 8, 3, 3), 4),
        bytes(arena, CM_INT8, &one, 5)};
    agree(arena,
          GRAPH_HEAD "main (uint8[1,8,6,6] x, float s, uint8 z, int8[8,8,3,3] w, int8 wz) => "
                     "(uint8[1,8,6,6] y) {"
                     "a = QLinearConv<pads = [1, 1, 1, 1]>(x, s, z, w, s, wz, s, z) "
                     "b = QLinearConv<pads = [1, 1, 1, 1]>(a, s, z, w, s, wz, s, z) "
                     "c = Max(a, b) "
                     "y = QLinearConv<pads = [1, 1, 1, 1]>(c, s, z, w, s, wz, s, z)}",
          in, CM_COUNT(in), "cpu");
}

void test_int8_conv__one_after_the_other(void)
{
    check_in_arena(chain);
}

/* MaxPool of codes, signed and not. */
static void pools(struct cm_arena *arena)
{
    static const char *const attributes[] = {
        "<kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]>",
        "<kernel_shape = [2, 3], ceil_mode = 1, strides = [2, 2]>",
        "<kernel_shape = [2, 2], dilations = [2, 1]>",
        "<kernel_shape = [3, 2], auto_pad = \"SAME_UPPER\", strides = [2, 2]>"};
    for (int is_signed = 0; is_signed < 2; is_signed++)
        for (size_t i = 0; i < CM_COUNT(attributes); i++) {
            const char *const type = is_signed ? "int8" : "uint8";
            const struct cm_datum *const in[] = {
                bytes(arena, is_signed ? CM_INT8 : CM_UINT8, &CM_SHAPE(2, 70, 9, 8), 1)};
            agree(arena,
                  cm_arena_printf(arena,
                                  GRAPH_HEAD "main (%s[N,C,H,W] x) => (%s[N,C,P,Q] y) "
                                             "{y = MaxPool%s(x)}",
                                  type, type, attributes[i])
                      .data,
                  in, 1, "cpu");
        }
}

void test_int8_conv__pooling_between_them(void)
{
    check_in_arena(pools);
}
