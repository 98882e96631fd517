/* Gives every file of the named folders to a fuzz target, so that seeds and old crashes are tests,
 * and to its mutator. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

enum { MOST = 16 << 20, MUTANTS = 4, MORE = 4096 };

/* Stands in for libFuzzer's: one byte more, or another one. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    if (size < max_size && (!size || data[0] % 2)) {
        data[size] = 0xff;
        return size + 1;
    }
    if (size)
        data[size / 2] ^= 0x10;
    return size;
}

/* Changes the input without running it: mutators must not fail on any seed, and give the same
 * result for the same seed. */
static int change(const uint8_t *data, size_t size)
{
    uint8_t *first = malloc(size + MORE), *second = malloc(size + MORE);
    int failed = !first || !second;

    for (unsigned seed = 1; !failed && seed <= MUTANTS; seed++) {
        memcpy(first, data, size);
        memcpy(second, data, size);
        const size_t made = LLVMFuzzerCustomMutator(first, size, size + MORE, seed);
        const size_t again = LLVMFuzzerCustomMutator(second, size, size + MORE, seed);
        failed = made > size + MORE || made != again || memcmp(first, second, made) != 0;
    }
    free(first);
    free(second);
    return failed;
}

static int replay(const char *path, uint8_t *buffer)
{
    FILE *const file = fopen(path, "rb");

    if (!file) {
        perror(path);
        return -1;
    }
    const size_t size = fread(buffer, 1, MOST, file);
    const int failed = ferror(file);
    fclose(file);
    if (failed)
        return -1;
    /* A copy of the exact size lets the address sanitizer see a read past the end. */
    uint8_t *const exact = malloc(size + (size == 0));
    if (!exact)
        return -1;
    for (size_t i = 0; i < size; i++)
        exact[i] = buffer[i];
    printf("%s: %zu bytes\n", path, size);
    fflush(stdout);
    LLVMFuzzerTestOneInput(exact, size);
    const int changed = change(exact, size);
    if (changed)
        fprintf(stderr, "%s: a change of it is not repeatable\n", path);
    free(exact);
    return changed ? -1 : 0;
}

static int replay_folder(const char *folder, uint8_t *buffer, int *count)
{
    DIR *const dir = opendir(folder);
    int status = 0;

    if (!dir) {
        perror(folder);
        return -1;
    }
    for (const struct dirent *entry; (entry = readdir(dir));) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (replay(path, buffer) != 0)
            status = -1;
        else
            ++*count;
    }
    closedir(dir);
    return status;
}

int main(int argc, char **argv)
{
    uint8_t *const buffer = malloc(MOST);
    int count = 0, failed = 0;

    if (!buffer)
        return 3;
    for (int i = 1; i < argc; i++)
        failed += replay_folder(argv[i], buffer, &count) != 0;
    free(buffer);
    printf("# counts: %d passed, %d failed\n", count, failed);
    return failed != 0;
}
