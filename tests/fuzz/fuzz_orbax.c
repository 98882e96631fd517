/* Folders of Orbax out of one input: records of a file's number, its size in two bytes, its bytes.
 * Manifest and nodes of OCDBT get their envelope here, or a check sum would end every attempt. */
// SPDX-License-Identifier: Apache-2.0
#define _DEFAULT_SOURCE
#include "base/crc32c.h"
#include "touch_saved.h"

#include <sys/stat.h>
#include <unistd.h>

extern const struct cm_format cm_format_orbax;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {
    "manifest.ocdbt",
    "d/0",
    "d/1",
    "_METADATA",
    "params.a/.zarray",
    "params.a/0",
    "params.a/0.0",
    "params.a/1",
    "params.b/zarr.json",
    "params.b/c/0",
    "opt_state.0.mu.a/.zarray",
    "opt_state.0.mu.a/0",
    "checkpoint",
    "_strings.json",
};
enum { ENVELOPED = 3, COUNT = sizeof names / sizeof names[0] };

static char folder[] = "/tmp/cameo-fuzz-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[256];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void remove_files(void)
{
    for (size_t i = 0; i < COUNT; i++)
        unlink(path_of(names[i]));
}

static void remove_folder(void)
{
    static const char *const below[] = {"d",        "params.a",         "params.b/c",
                                        "params.b", "opt_state.0.mu.a", ""};

    remove_files();
    for (size_t i = 0; i < sizeof below / sizeof below[0]; i++)
        rmdir(path_of(below[i]));
}

static bool make_folder(void)
{
    static const char *const below[] = {"d", "params.a", "params.b", "params.b/c",
                                        "opt_state.0.mu.a"};

    if (!mkdtemp(folder))
        return false;
    for (size_t i = 0; i < sizeof below / sizeof below[0]; i++)
        mkdir(path_of(below[i]), 0700);
    atexit(remove_folder);
    return true;
}

/* Magic, length, version 0, not compressed, body, check sum. */
static size_t wrap(bool is_manifest, const uint8_t *body, size_t size, uint8_t *out)
{
    const uint64_t length = 14 + size + 4;

    memcpy(out, is_manifest ? "\x0c\xdb\x3a\x2a" : "\x0c\xdb\x20\xde", 4);
    memcpy(out + 4, &length, 8);
    out[12] = out[13] = 0;
    memcpy(out + 14, body, size);
    const uint32_t sum = cm_crc32c(0, out, 14 + size);
    memcpy(out + 14 + size, &sum, 4);
    return length;
}

static void put(size_t number, const uint8_t *bytes, size_t size)
{
    static uint8_t room[65536 + 32];
    FILE *file = fopen(path_of(names[number]), "wb");

    if (!file)
        return;
    if (number < ENVELOPED) {
        size = wrap(number == 0, bytes, size, room);
        bytes = room;
    }
    if (size)
        (void)!fwrite(bytes, 1, size, file);
    fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool ready;

    ready = ready || make_folder();
    if (!ready)
        return 0;
    remove_files();
    while (size >= 3) {
        const size_t number = data[0] % COUNT, told = data[1] + 256U * data[2];
        const size_t has = told < size - 3 ? told : size - 3;

        put(number, data + 3, has);
        data += 3 + has;
        size -= 3 + has;
    }
    touch_saved(&cm_format_orbax, folder);
    return 0;
}
