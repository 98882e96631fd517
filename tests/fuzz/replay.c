/* Gives every file of the named folders to a fuzz target, so that seeds and old crashes are tests.
 */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 16 << 20 };

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
    free(exact);
    return 0;
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
