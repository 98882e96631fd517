/* Folders of Orbax. Manifest and nodes of OCDBT get their envelope here, or a check sum would end
 * every attempt. */
// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"
#include "in_folder.h"
#include "target.h"
#include "touch_saved.h"

extern const struct cm_format cm_format_orbax;

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
enum { ENVELOPED = 3 };

static const char *const folders[] = {"d", "params.a", "params.b", "params.b/c",
                                      "opt_state.0.mu.a"};

/* Magic, length, version 0, not compressed, body, check sum. */
static size_t wrap(size_t number, const uint8_t *body, size_t size, uint8_t *out)
{
    const uint64_t length = 14 + size + 4;

    if (number >= ENVELOPED)
        return 0;
    memcpy(out, number == 0 ? "\x0c\xdb\x3a\x2a" : "\x0c\xdb\x20\xde", 4);
    memcpy(out + 4, &length, 8);
    out[12] = out[13] = 0;
    memcpy(out + 14, body, size);
    const uint32_t sum = cm_crc32c(0, out, 14 + size);
    memcpy(out + 14 + size, &sum, 4);
    return length;
}

static void run_input(const uint8_t *data, size_t size)
{
    static const struct in_folder_names all = {names, CM_COUNT(names), folders, CM_COUNT(folders),
                                               wrap};
    const char *folder = in_folder(&all, data, size);

    if (folder)
        touch_saved(&cm_format_orbax, folder);
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    .mutate = mutate_records,
    .memory_base = 2 * FUZZ_MIB,
    .memory_per_byte = 1024,
};
