/* Folders for tests, made where the system keeps temporary files. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "folder.h"

#include "check.h"

#include <dirent.h>
#include <ftw.h>
#include <unistd.h>

void folder_make(struct folder *folder)
{
    const char *base = getenv("TMPDIR");

    snprintf(folder->path, sizeof folder->path, "%.200s/cameo-test-XXXXXX", base ? base : P_tmpdir);
    CHECK(mkdtemp(folder->path) != NULL);
}

static int remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts, (void)kind, (void)place;
    return remove(path);
}

void folder_remove(struct folder *folder)
{
    CHECK_INT(nftw(folder->path, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

char *folder_path(const struct folder *folder, const char *name, char *buffer)
{
    snprintf(buffer, FOLDER_PATH_SIZE, "%s/%s", folder->path, name);
    return buffer;
}

void folder_write(const struct folder *folder, const char *name, const char *text)
{
    char path[FOLDER_PATH_SIZE];
    FILE *file = fopen(folder_path(folder, name, path), "wb");

    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK_INT(fclose(file), 0);
}

bool folder_holds(const struct folder *folder, const char *name, const char *text)
{
    char path[FOLDER_PATH_SIZE], bytes[256];
    FILE *file = fopen(folder_path(folder, name, path), "rb");

    if (!file)
        return false;
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    return size == strlen(text) && memcmp(bytes, text, size) == 0;
}

int folder_count(const struct folder *folder)
{
    DIR *stream = opendir(folder->path);
    int count = 0;

    CHECK(stream != NULL);
    for (const struct dirent *entry; (entry = readdir(stream));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(stream);
    return count;
}
