/* Tar archives and YAML, of which NeMo's files are made. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/tar.h"
#include "bytes/yaml.h"
#include "check.h"

enum { BLOCK = 512 };

/* A header with its sum, before a file of `size` bytes. */
static void put_header(char *block, const char *name, const char *size, char kind)
{
    unsigned sum = 0;

    memcpy(block, name, strlen(name));
    memcpy(block + 124, size, strlen(size));
    memset(block + 148, ' ', 8);
    block[156] = kind;
    memcpy(block + 257, "ustar", 6);
    for (int i = 0; i < BLOCK; i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06o", sum);
}

static void lists(struct cm_arena *arena)
{
    char *bytes = cm_arena_alloc(arena, 8 * BLOCK);
    struct cm_str archive = {bytes, 8 * BLOCK};
    struct cm_tar tar = {0};
    struct cm_error err;

    put_header(bytes, "./", "00000000000", '5');
    put_header(bytes + BLOCK, "././@LongLink", "00000000005", 'L');
    memcpy(bytes + 2 * BLOCK, "./ab", 4);
    put_header(bytes + 3 * BLOCK, "./a", "00000000003", '0');
    memcpy(bytes + 4 * BLOCK, "xyz", 3);
    CHECK(cm_tar_is_file(archive));
    CHECK_OK(cm_tar_list(arena, archive, &tar, &err), &err);
    CHECK_INT(tar.count, 1);
    CHECK_STR(tar.items[0].name, "ab");
    CHECK_STR(tar.items[0].bytes, "xyz");

    bytes[3 * BLOCK]++;
    CHECK_FAILS(cm_tar_list(arena, archive, &tar, &err), CM_BAD_MODEL, &err,
                "the header at byte 1536 of the archive is broken");
    memset(bytes, 0, 8 * BLOCK);
    put_header(bytes, "big", "77777777777", '0');
    CHECK_FAILS(cm_tar_list(arena, archive, &tar, &err), CM_BAD_MODEL, &err,
                "the file 'big' of 8589934591 bytes is larger than the archive");
}

void test_tar__files_are_views_and_sizes_are_checked(void)
{
    check_in_arena(lists);
}

static void yaml(struct cm_arena *arena)
{
    struct cm_item *item;
    struct cm_error err;
    const enum cm_status status = cm_item_parse_yaml(
        arena,
        CM_STR("a: &x 0.5\nb: [1, 0x10, yes, null, '1', 1_000, -2e-3]\nc: {d: *x, e: text}\n"),
        &item, &err);

    if (status == CM_UNSUPPORTED) { /* libyaml is not there */
        CHECK(strstr(err.text, "install libyaml-0-2") != NULL);
        return;
    }
    CHECK_OK(status, &err);
    CHECK_STR(cm_item_json(arena, item, 0),
              "{\"a\": 0.5, \"b\": [1, 16, true, null, \"1\", 1000, -0.002], \"c\": {\"d\": 0.5, "
              "\"e\": \"text\"}}");
    CHECK_FAILS(cm_item_parse_yaml(arena, CM_STR("a: [1, 2\nb: 3"), &item, &err), CM_BAD_MODEL,
                &err, "line 2");
    CHECK_FAILS(cm_item_parse_yaml(arena, CM_STR("a: *nobody"), &item, &err), CM_BAD_MODEL, &err,
                "the alias 'nobody' has no anchor");
    CHECK_OK(cm_item_parse_yaml(arena, CM_STR(""), &item, &err), &err);
    CHECK_INT(item->kind, CM_ITEM_NONE);
}

void test_tar__yaml_becomes_plain_data(void)
{
    check_in_arena(yaml);
}
