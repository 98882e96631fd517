/* Files of arrays, whatever their bytes are: the first byte says which format the rest claims to
 * be. */
// SPDX-License-Identifier: Apache-2.0
#include "io/arrays.h"
#include "target.h"
#include "tensor/budget.h"

static volatile unsigned kept; /* so that nothing is optimized away */

struct input {
    struct cm_str bytes;
    enum cm_array_format format;
    enum cm_kind kind;
    bool some; /* arrays of one name only */
    struct cm_budget budget;
    struct cm_error err;
};

/* Touches every byte, so that sanitizers see a view that goes too far. */
static unsigned sum(const struct cm_datum *datum)
{
    const size_t size = datum->tensor.data ? cm_tensor_bytes(&datum->tensor) : 0;
    const uint8_t *bytes = datum->tensor.data;
    unsigned total = 0;

    for (size_t i = 0; i < size; i++)
        total += bytes[i];
    if (datum->tensor.type == CM_STRING && datum->tensor.data)
        for (int64_t i = 0; i < cm_tensor_count(&datum->tensor); i++) {
            const struct cm_str text = ((const struct cm_str *)datum->tensor.data)[i];
            for (size_t c = 0; c < text.size; c++)
                total += (uint8_t)text.data[c];
        }
    for (size_t i = 0; i < datum->n_items; i++)
        total += sum(&datum->items[i]);
    return total;
}

static enum cm_status parse(struct cm_guard *guard, void *arg)
{
    struct input *input = arg;
    const struct cm_str wanted = CM_STR("a");
    struct cm_arrays_options options = {.format = input->format, .kind = input->kind};
    struct cm_arrays arrays;
    struct cm_arena arena;

    cm_arena_init(&arena, guard);
    cm_budget_enter(&input->budget, guard);
    if (input->some) {
        options.names = &wanted;
        options.n_names = 1;
    }
    if (cm_arrays_parse(&arena, input->bytes, &options, &arrays, &input->err) == CM_OK)
        for (size_t i = 0; i < arrays.count; i++)
            kept += sum(&arrays.items[i].value);
    cm_arena_release(&arena);
    return CM_OK;
}

static void run_input(const uint8_t *data, size_t size)
{
    static const enum cm_kind kinds[] = {CM_KIND_TENSOR, CM_KIND_SEQUENCE, CM_KIND_OPTIONAL,
                                         CM_KIND_MAP};

    if (size == 0)
        return;
    struct input input = {.bytes = {(const char *)data + 1, size - 1},
                          .format = (enum cm_array_format)(CM_ARRAYS_NPY + data[0] % 4),
                          .kind = kinds[data[0] / 4 % 4],
                          .some = data[0] / 16 % 2};
    (void)!cm_guarded((size_t)64 << 20, &input.err, parse, &input);
    cm_budget_leave(&input.budget);
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    .mutate = mutate_file,
    .choice_bytes = 1,
    .memory_base = 2 * FUZZ_MIB,
    .memory_per_byte = 1024,
};
