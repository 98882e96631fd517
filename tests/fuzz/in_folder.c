/* One folder, its files written anew for each input. */
// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE
#include "in_folder.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_FILE = UINT16_MAX, MORE = 64 };

static char folder[IN_FOLDER_PATH];
static const struct in_folder_names *made;

static const char *path_of(const char *name)
{
    static char path[256];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void remove_files(void)
{
    for (size_t i = 0; i < made->file_count; i++)
        unlink(path_of(made->files[i]));
}

static void remove_folder(void)
{
    remove_files();
    for (size_t i = made->folder_count; i-- > 0;)
        rmdir(path_of(made->folders[i]));
    rmdir(folder);
}

bool in_folder_make(char path[IN_FOLDER_PATH])
{
    static const char *const places[] = {"/dev/shm", "/tmp"};

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(path, IN_FOLDER_PATH, "%s/cameo-fuzz-XXXXXX", places[i]);
        if (mkdtemp(path))
            return true;
    }
    return false;
}

static bool make_folder(const struct in_folder_names *names)
{
    if (!in_folder_make(folder))
        return false;
    for (size_t i = 0; i < names->folder_count; i++)
        mkdir(path_of(names->folders[i]), 0700);
    made = names;
    atexit(remove_folder);
    return true;
}

static void put(size_t number, const uint8_t *bytes, size_t size)
{
    static uint8_t room[MOST_FILE + MORE];
    FILE *file = fopen(path_of(made->files[number]), "wb");

    if (!file)
        return;
    const size_t wrapped = made->wrap ? made->wrap(number, bytes, size, room) : 0;
    if (wrapped)
        (void)!fwrite(room, 1, wrapped, file);
    else if (size)
        (void)!fwrite(bytes, 1, size, file);
    fclose(file);
}

const char *in_folder(const struct in_folder_names *names, const uint8_t *data, size_t size)
{
    if (!made && !make_folder(names))
        return NULL;
    remove_files();
    while (size >= 3) {
        const size_t told = data[1] + 256U * data[2];
        const size_t has = told < size - 3 ? told : size - 3;

        put(data[0] % names->file_count, data + 3, has);
        data += 3 + has;
        size -= 3 + has;
    }
    return folder;
}
