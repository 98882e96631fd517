/* Data sets, whatever their bytes are: the first byte says whether the rest claims to be CSV, CSV
 * with columns (up to the first NUL), IDX, .npz or .safetensors, and from 5 on which of the formats
 * that have an ending. Every sample is read. */
// SPDX-License-Identifier: Apache-2.0
#include "io/rows.h"
#include "target.h"

enum { SAMPLES_READ = 1000, SAMPLE_SIZE = 1 << 16 };

struct input {
    uint8_t kind;
    struct cm_str bytes;
    struct cm_error err;
};

static enum cm_status parse(struct input *input, struct cm_arena *arena, struct cm_rows_list *rows)
{
    static cm_rows_fn *const first[] = {cm_rows_csv, cm_rows_csv, cm_rows_idx, cm_rows_npz,
                                        cm_rows_safetensors};
    struct cm_rows_file file = {.arena = arena, .name = CM_STR("x"), .bytes = input->bytes};
    const size_t kind = input->kind;
    size_t formats = 0;

    const char *end =
        kind == 0 && file.bytes.size ? memchr(file.bytes.data, 0, file.bytes.size) : NULL;
    if (end) {
        file.columns = file.bytes.data;
        file.bytes = cm_str_from(file.bytes, (size_t)(end + 1 - file.bytes.data));
    }
    while (cm_rows_formats[formats].ending)
        formats++;
    cm_rows_fn *read = kind < CM_COUNT(first)
                           ? first[kind]
                           : cm_rows_formats[(kind - CM_COUNT(first)) % formats].read;
    return read(&file, rows, &input->err);
}

static void read_all(struct cm_rows *rows, struct cm_error *err)
{
    static _Alignas(16) uint8_t room[SAMPLE_SIZE];
    const struct cm_dataset_view wanted = {CM_FLOAT, rows->sample, 1, 3};

    for (int pass = 0; pass < 2; pass++) {
        size_t size;

        for (int64_t i = 0; i < rows->count && i < SAMPLES_READ; i++)
            if (cm_rows_view_bytes(rows, &size) && size <= sizeof room)
                (void)!cm_rows_read(rows, rows->count - 1 - i, room, err);
        if (cm_rows_check_view(rows, &wanted, err) != CM_OK)
            break;
        rows->view = wanted;
    }
}

static enum cm_status open_all(struct cm_guard *guard, void *arg)
{
    struct input *input = arg;
    struct cm_rows_list rows = {0};
    struct cm_arena arena;

    cm_arena_init(&arena, guard);
    if (parse(input, &arena, &rows) == CM_OK)
        for (size_t i = 0; i < rows.count; i++)
            read_all(&rows.items[i], &input->err);
    cm_arena_release(&arena);
    return CM_OK;
}

static void run_input(const uint8_t *data, size_t size)
{
    if (size == 0)
        return;
    struct input input = {.kind = data[0], .bytes = {(const char *)data + 1, size - 1}};
    (void)!cm_guarded((size_t)256 << 20, &input.err, open_all, &input);
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    .mutate = mutate_file,
    .choice_bytes = 1,
    .memory_base = 2 * FUZZ_MIB,
    .memory_per_byte = 1024,
};
