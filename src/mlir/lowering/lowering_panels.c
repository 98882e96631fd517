/* Weights in panels, the layout that kernels in C read fastest: what is constant is packed when a
 * model is compiled, not each time that it runs. */
// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernels.h"
#include "mlir/lowering/lowering_state.h"

#include <string.h>

/* As cameo_pack_f32 has them. */
enum { GROUPS, LINES, DEPTH, LINE, STEP, WIDE, PANEL_SIZES };

/* What is packed already: two nodes may read the same weights. */
struct cm_mlir_panels {
    const void *data;
    int64_t sizes[PANEL_SIZES];
    struct cm_term term;
};

/* [the name of a constant, its elements] */
static struct cm_term packed_term(struct cm_mlir_lowering *l, cm_value value,
                                  const struct cm_tensor *from, const int64_t *sizes)
{
    const int64_t panels = sizes[GROUPS] * ((sizes[LINES] + sizes[WIDE] - 1) / sizes[WIDE]);
    const int64_t count = panels * sizes[WIDE] * sizes[DEPTH];
    float *data = CM_NEW_ARRAY(l->arena, float, (size_t)count + 1);
    struct cm_tensor *tensor = CM_NEW(l->arena, struct cm_tensor);
    struct cm_term *items = CM_NEW_ARRAY(l->arena, struct cm_term, 2);

    cameo_pack_f32((intptr_t)from->data, (intptr_t)data, sizes[GROUPS], sizes[LINES], sizes[DEPTH],
                   sizes[LINE], sizes[STEP], sizes[WIDE]);
    *tensor = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE(count), data);
    items[0] = cm_term_text(cm_mlir_constant(l, cm_value_get(l->module, value)->name, tensor));
    items[1] = cm_term_int(count);
    return (struct cm_term){.kind = CM_TERM_LIST, .items = items, .count = 2};
}

/* panels(x, GROUPS, LINES, K, LINE, STEP, WIDE): none where the contents are not known, or somebody
 * else brings them. */
bool cm_mlir_panels_call(const struct cm_mlir_use *use, struct cm_str function,
                         const struct cm_term *args, size_t count, struct cm_term *out)
{
    struct cm_mlir_lowering *l = use->lowering;
    struct cm_mlir_panels asked = {0};
    const cm_value value = count ? (cm_value)args[0].i : 0;

    if (!cm_str_is(function, "panels") || count != PANEL_SIZES + 1 || args[0].kind != CM_TERM_VALUE)
        return false;
    *out = CM_TERM_ABSENT;
    for (int i = 0; i < PANEL_SIZES; i++) {
        if (args[i + 1].kind != CM_TERM_INT || args[i + 1].i <= 0)
            return true;
        asked.sizes[i] = args[i + 1].i;
    }
    const struct cm_tensor *tensor = l->options->keeps_weights ? NULL : cm_mlir_contents(l, value);
    if (!tensor || tensor->type != CM_FLOAT ||
        cm_tensor_count(tensor) != asked.sizes[GROUPS] * asked.sizes[LINES] * asked.sizes[DEPTH])
        return true;
    asked.data = tensor->data;
    for (size_t i = 0; i < l->panels.count; i++)
        if (l->panels.items[i].data == asked.data &&
            memcmp(l->panels.items[i].sizes, asked.sizes, sizeof asked.sizes) == 0) {
            *out = l->panels.items[i].term;
            return true;
        }
    *out = asked.term = packed_term(l, value, tensor, asked.sizes);
    *CM_PUSH(l->arena, &l->panels) = asked;
    return true;
}
