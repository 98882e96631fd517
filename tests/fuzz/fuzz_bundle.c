/* Checkpoints of TensorFlow out of one input: a count of entries, each with the length of its key,
 * that of its value in two bytes, and both; what is left is the file of data. The table is made
 * here, or check sums would end every attempt; without entries the bytes are the index itself. */
// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE
#include "bytes/leveldb.h"
#include "in_folder.h"
#include "target.h"
#include "touch_saved.h"

#include <unistd.h>

extern const struct cm_format cm_format_tensorflow;

static char folder[IN_FOLDER_PATH];

struct input {
    const uint8_t *data;
    size_t size;
    char index[128], shard[128];
    struct cm_error err;
};

static void remove_folder(void)
{
    static const char *const names[] = {"c.index", "c.data-00000-of-00001"};
    char path[128];

    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void put(const char *path, const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");

    if (!file)
        return;
    if (size)
        (void)!fwrite(bytes, 1, size, file);
    fclose(file);
}

static int by_key(const void *a, const void *b)
{
    return cm_str_compare(((const struct cm_table_entry *)a)->key,
                          ((const struct cm_table_entry *)b)->key);
}

static enum cm_status make_index(struct cm_guard *guard, void *arg)
{
    struct input *input = arg;
    struct cm_table_entry entries[256];
    struct cm_save save = {0};
    struct cm_arena arena;
    size_t count = 0;

    const size_t wanted = input->data[0];
    input->data++;
    input->size--;
    while (count < wanted && input->size >= 3) {
        const size_t key = input->data[0], value = input->data[1] + 256U * input->data[2];

        if (key + value > input->size - 3)
            break;
        const char *at = (const char *)input->data + 3;
        entries[count++] = (struct cm_table_entry){{at, key}, {at + key, value}};
        input->data += 3 + key + value;
        input->size -= 3 + key + value;
    }
    cm_arena_init(&arena, guard);
    qsort(entries, count, sizeof *entries, by_key);
    if (!cm_save_begin(&save, input->index, &input->err) &&
        !cm_table_write(&arena, &save, entries, count, &input->err))
        (void)!cm_save_commit(&save, &input->err);
    cm_save_abandon(&save);
    cm_arena_release(&arena);
    return CM_OK;
}

static void run_input(const uint8_t *data, size_t size)
{
    static bool ready;
    struct input input = {.data = data, .size = size};

    if (!ready) {
        ready = in_folder_make(folder);
        atexit(remove_folder);
    }
    if (!ready || size == 0)
        return;
    snprintf(input.index, sizeof input.index, "%s/c.index", folder);
    snprintf(input.shard, sizeof input.shard, "%s/c.data-00000-of-00001", folder);
    if (data[0])
        (void)!cm_guarded((size_t)64 << 20, &input.err, make_index, &input);
    else
        put(input.index, data + 1, size - 1);
    put(input.shard, input.data, input.size);
    touch_saved(&cm_format_tensorflow, folder);
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    .mutate = mutate_entries,
    .memory_base = 2 * FUZZ_MIB,
    .memory_per_byte = 1024,
};
