/* Scores as a matrix. */
// SPDX-License-Identifier: Apache-2.0
#include "evaluate/predictions.h"

static bool same_keys(const struct cm_tensor *a, const struct cm_tensor *b)
{
    const int64_t count = cm_tensor_count(a);

    if (a->type != b->type || cm_tensor_count(b) != count)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (a->type == CM_STRING ? !cm_str_equal(((const struct cm_str *)a->data)[i],
                                                 ((const struct cm_str *)b->data)[i])
                                 : cm_tensor_int(a, i) != cm_tensor_int(b, i))
            return false;
    return true;
}

enum cm_status cm_score_matrix(const struct cm_datum *value, struct cm_tensor *out,
                               const struct cm_tensor **keys, struct cm_error *err)
{
    *keys = NULL;
    if (value->kind == CM_KIND_TENSOR) {
        *out = cm_tensor_borrow(value->tensor.type, &value->tensor.shape, value->tensor.data);
        return CM_OK;
    }
    if (value->kind != CM_KIND_SEQUENCE || !value->n_items || value->items->kind != CM_KIND_MAP)
        return cm_fail(err, CM_UNSUPPORTED, "is neither a tensor nor a sequence of maps");
    *keys = &value->items->tensor;
    const int64_t columns = cm_tensor_count(*keys);
    const struct cm_shape shape = {2, {(int64_t)value->n_items, columns}};
    CM_TRY(cm_tensor_new(columns ? value->items->items->tensor.type : CM_FLOAT, &shape, out, err));
    for (size_t r = 0; r < value->n_items; r++) {
        const struct cm_datum *map = &value->items[r];

        if (map->kind != CM_KIND_MAP || !same_keys(&map->tensor, *keys)) {
            cm_tensor_drop(out);
            return cm_fail(err, CM_UNSUPPORTED, "is a sequence of maps that differ in their keys");
        }
        for (int64_t c = 0; c < columns; c++) {
            const struct cm_tensor *item = &map->items[c].tensor;

            if (!cm_dtype_is_real(item->type) || cm_tensor_count(item) != 1) {
                cm_tensor_drop(out);
                return cm_fail(err, CM_UNSUPPORTED, "is a sequence of maps of other than numbers");
            }
            cm_tensor_set_real(out, (int64_t)r * columns + c, cm_tensor_real(item, 0));
        }
    }
    return CM_OK;
}
