/* What tests of array files share. */
// SPDX-License-Identifier: Apache-2.0
#include "io/array_case.h"

#include "base/file.h"
#include "check.h"

struct cm_str array_bytes(struct cm_arena *arena, const char *path)
{
    struct cm_mapping mapping;
    struct cm_error err;

    CHECK_OK(cm_file_map(path, true, &mapping, &err), &err);
    const struct cm_str bytes =
        cm_arena_str(arena, (struct cm_str){(const char *)mapping.data, mapping.size});
    cm_mapping_release(&mapping);
    return bytes;
}

enum cm_status array_parse(struct cm_arena *arena, struct cm_str bytes, enum cm_array_format format,
                           struct cm_arrays *out, struct cm_error *err)
{
    const struct cm_arrays_options options = {.format = format};
    return cm_arrays_parse(arena, bytes, &options, out, err);
}

const struct cm_tensor *array_one(struct cm_arena *arena, const char *path)
{
    struct cm_arrays arrays;
    struct cm_error err;

    CHECK_OK(cm_arrays_open(arena, path, NULL, &arrays, &err), &err);
    CHECK_INT(arrays.count, 1);
    CHECK_INT(arrays.items[0].value.kind, CM_KIND_TENSOR);
    return &arrays.items[0].value.tensor;
}

void check_ramp(const struct cm_tensor *tensor, enum cm_dtype type, int rank, int64_t count)
{
    CHECK_INT(tensor->type, type);
    CHECK_INT(tensor->shape.rank, rank);
    CHECK_INT(cm_tensor_count(tensor), count);
    for (int64_t i = 0; i < count; i++) {
        const double expected = type == CM_BOOL ? i != 0 : (double)i;
        CHECK(cm_tensor_real(tensor, i) == expected);
    }
}
