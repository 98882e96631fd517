/* What a run of a model takes, for callers. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "evaluate/costs.h"

struct costs_call {
    const struct cameo_model *model;
    const struct cameo_size *sizes;
    size_t n_sizes;
    struct cameo_costs *made;
};

static struct cameo_costs *translate(struct cm_arena *arena, const struct cm_costs *from)
{
    struct cameo_costs *out = CM_NEW(arena, struct cameo_costs);
    const size_t n = from->operators.count, m = from->sizes.count;
    struct cameo_cost *rows = CM_NEW_ARRAY(arena, struct cameo_cost, n);
    struct cameo_assumed_size *sizes = CM_NEW_ARRAY(arena, struct cameo_assumed_size, m);
    const struct cameo_cost **row_list = CM_NEW_ARRAY(arena, const struct cameo_cost *, n);
    const struct cameo_assumed_size **size_list =
        CM_NEW_ARRAY(arena, const struct cameo_assumed_size *, m);

    for (size_t i = 0; i < n; i++) {
        const struct cm_cost *row = &from->operators.items[i];

        rows[i] = (struct cameo_cost){cm_api_view(row->domain), cm_api_view(row->op),
                                      row->node_count, row->flops, row->output_bytes};
        row_list[i] = &rows[i];
    }
    for (size_t i = 0; i < m; i++) {
        const struct cm_assumed_size *size = &from->sizes.items[i];

        sizes[i] =
            (struct cameo_assumed_size){cm_api_view(size->symbol), size->size, size->assumed};
        size_list[i] = &sizes[i];
    }
    *out = (struct cameo_costs){
        .flops = from->flops,
        .activation_bytes = from->activation_bytes,
        .peak_bytes = from->peak_bytes,
        .unknown_count = from->unknown_count,
        .left_out = from->left_out,
        .has_bodies = from->has_bodies,
        .operator_count = n,
        .operators = row_list,
        .size_count = m,
        .sizes = size_list,
    };
    return out;
}

static enum cm_status count(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    struct costs_call *call = arg;
    struct cm_arena *arena = &((struct cameo_model *)(uintptr_t)call->model)->arena;
    struct cm_given_size *sizes = CM_NEW_ARRAY(scratch, struct cm_given_size, call->n_sizes);
    struct cm_costs costs;

    for (size_t i = 0; i < call->n_sizes; i++) {
        struct cameo_size size = CAMEO_SIZE_INIT;

        CM_TRY(cm_api_item(&size, sizeof size, call->sizes, i, err));
        sizes[i] = (struct cm_given_size){cm_str(size.symbol), size.size};
    }
    CM_TRY(cm_costs_count(arena, scratch, call->model->file, sizes, call->n_sizes, &costs, err));
    call->made = translate(arena, &costs);
    return CM_OK;
}

enum cameo_status cameo_model_costs(const struct cameo_model *model, const struct cameo_size *sizes,
                                    size_t size_count, const struct cameo_costs **out,
                                    struct cameo_error *err)
{
    CM_API_NEED(model, err);
    CM_API_NEED_ALL(sizes, size_count, err);
    CM_API_NEED(out, err);
    struct costs_call call = {.model = model, .sizes = sizes, .n_sizes = size_count};
    const enum cameo_status status = cm_api_call(model, count, &call, err);

    *out = status == CAMEO_OK ? call.made : NULL;
    return status;
}
