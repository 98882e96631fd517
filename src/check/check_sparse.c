/* Sparse tensors: values, indices and dense dimensions that fit together. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "check/checker.h"
#include "onnx/decode.h"
#include "tensor/dtype.h"

/* Reads the int64 elements of a tensor in turn, from whichever field has them. */
struct reader {
    struct cm_str raw;
    struct cm_packed packed;
};

static bool next_index(struct reader *reader, int64_t *index)
{
    uint64_t value;
    bool broken = false;

    if (reader->raw.size >= 8) {
        memcpy(index, reader->raw.data, 8);
        reader->raw.data += 8;
        reader->raw.size -= 8;
        return true;
    }
    if (!cm_varint_next(&reader->packed, &value, &broken))
        return false;
    *index = (int64_t)value;
    return true;
}

/* Tensors may have more data than they need; indices may not. */
static bool has_spare_data(const struct cm_tensor_proto *indices, int64_t count)
{
    uint64_t entries = indices->raw_data.size / 8;

    for (size_t i = 0; i < indices->int64_data.size; i++)
        entries += indices->int64_data.data[i] < 0x80;
    return entries > (uint64_t)count;
}

static bool dense_size(struct cm_checker *c, const struct cm_model_place *place,
                       const struct cm_sparse_proto *sparse, int64_t *size)
{
    *size = 1;
    if (!sparse->dims.count) {
        cm_report(c, CM_RULE_CK60, place, "has no dense dimensions");
        return false;
    }
    for (size_t i = 0; i < sparse->dims.count; i++) {
        if (sparse->dims.items[i] <= 0) {
            cm_report(c, CM_RULE_CK60, place, "dense dimension %zu is %lld, must be positive", i,
                      (long long)sparse->dims.items[i]);
            return false;
        }
        if (*size != INT64_MAX && !cm_dim_mul(*size, sparse->dims.items[i], size)) {
            cm_report(c, CM_RULE_ST17, place, "has more elements than 63 bits can count");
            *size = INT64_MAX;
        }
    }
    return true;
}

static void examine_linear(struct cm_checker *c, const struct cm_model_place *place,
                           struct reader reader, int64_t nnz, int64_t size)
{
    int64_t index;
    int64_t before = -1;

    for (int64_t i = 0; i < nnz && next_index(&reader, &index); i++) {
        if (index < 0 || index >= size) {
            cm_report(c, CM_RULE_CK60, place, "index %lld is %lld, out of range", (long long)i,
                      (long long)index);
            return;
        }
        if (index <= before) {
            cm_report(c, CM_RULE_CK60, place, "index %lld is not greater than the one before",
                      (long long)i);
            return;
        }
        before = index;
    }
}

/* Row i holds one index per dense dimension; rows ascend in dictionary order. */
static void examine_rows(struct cm_checker *c, const struct cm_model_place *place,
                         struct reader reader, int64_t nnz, const struct cm_int64s *dims)
{
    int64_t *before = CM_NEW_ARRAY(c->scratch, int64_t, dims->count);

    for (int64_t i = 0; i < nnz; i++) {
        int order =
            i == 0; /* of this row against the one before: 1 greater, -1 less, 0 equal so far */

        for (size_t k = 0; k < dims->count; k++) {
            int64_t index;

            if (!next_index(&reader, &index))
                return;
            if (index < 0 || index >= dims->items[k]) {
                cm_report(c, CM_RULE_CK60, place, "index %lld,%zu is %lld, out of range",
                          (long long)i, k, (long long)index);
                return;
            }
            if (!order)
                order = (index > before[k]) - (index < before[k]);
            before[k] = index;
        }
        if (order != 1) {
            cm_report(c, CM_RULE_CK60, place, "index row %lld does not come after the one before",
                      (long long)i);
            return;
        }
    }
}

static void examine_indices(struct cm_checker *c, const struct cm_model_place *place,
                            const struct cm_sparse_proto *sparse, int64_t nnz, int64_t size)
{
    const struct cm_tensor_proto *indices = sparse->indices;
    const struct reader reader = {indices->raw_data, indices->int64_data};
    const struct cm_model_place here = CM_PLACE_FIELD(place, ".indices");
    const struct cm_int64s *dims = &indices->dims;

    cm_examine_tensor(c, &here, indices);
    if (indices->data_type != CM_INT64)
        cm_report(c, CM_RULE_CK60, place, "its indices are not int64");
    else if (dims->count != 1 && dims->count != 2)
        cm_report(c, CM_RULE_CK60, place, "its indices have rank %zu, must be 1 or 2", dims->count);
    else if (dims->items[0] != nnz)
        cm_report(c, CM_RULE_CK60, place, "has %lld values but %lld indices", (long long)nnz,
                  (long long)dims->items[0]);
    else if (dims->count == 2 && (uint64_t)dims->items[1] != sparse->dims.count)
        cm_report(c, CM_RULE_CK60, place, "its indices have %lld columns, dense rank is %zu",
                  (long long)dims->items[1], sparse->dims.count);
    else if (indices->data_location == CM_LOCATION_EXTERNAL)
        cm_report(c, CM_RULE_CK60, place, "its indices are external");
    else if (nnz >= 0 && has_spare_data(indices, dims->count == 1 ? nnz : nnz * dims->items[1]))
        cm_report(c, CM_RULE_CK60, place, "its indices have more data than they need");
    else if (dims->count == 1)
        examine_linear(c, place, reader, nnz, size);
    else
        examine_rows(c, place, reader, nnz, &sparse->dims);
}

void cm_examine_sparse(struct cm_checker *c, const struct cm_model_place *place,
                       const struct cm_sparse_proto *sparse)
{
    const struct cm_model_place values = CM_PLACE_FIELD(place, ".values");
    int64_t size;

    if (!sparse->values) {
        cm_report(c, CM_RULE_CK60, place, "has no values");
        return;
    }
    cm_examine_tensor(c, &values, sparse->values);
    if (sparse->values->dims.count != 1) {
        cm_report(c, CM_RULE_CK60, place, "its values have rank %zu, must be 1",
                  sparse->values->dims.count);
        return;
    }
    const int64_t nnz = sparse->values->dims.items[0];
    if (!dense_size(c, place, sparse, &size))
        return;
    if (sparse->indices)
        examine_indices(c, place, sparse, nnz, size);
    else if (nnz != 0)
        cm_report(c, CM_RULE_CK60, place, "has %lld values but no indices", (long long)nnz);
}
