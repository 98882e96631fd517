/* Tables of LevelDB: blocks of entries, a block that lists them, a footer that finds it.
 *
 * An entry is the length that its key shares with the one before, the lengths of the rest of the
 * key and of the value, and those two. A block ends with the places where keys are whole, and their
 * count; behind it are a byte that says how it is packed and a check sum. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/leveldb.h"

#include "base/array.h"
#include "base/crc32c.h"
#include "base/number.h"
#include "base/varint.h"
#include "bytes/byte_buffer.h"

enum {
    FOOTER_SIZE = 48,
    TRAILER_SIZE = 5,
    RESTART_EVERY = 16,
    BLOCK_SIZE = 4096, /* of what we write, about */
    KEYS_PER_BYTE = 64 /* keys together, decoded, may have so many bytes per byte of the file */
};
#define MAGIC UINT64_C(0xdb4775248b80fb57)

static uint32_t get32(const char *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof value);
    return value;
}

bool cm_table_is(struct cm_str bytes)
{
    uint64_t magic;

    if (bytes.size < FOOTER_SIZE)
        return false;
    memcpy(&magic, bytes.data + bytes.size - sizeof magic, sizeof magic);
    return magic == MAGIC;
}

/* ---- reading ---- */

/* Bytes that are read one number after the other. */
struct cursor {
    const uint8_t *at, *end;
};

static struct cursor over(struct cm_str bytes)
{
    const uint8_t *at = (const uint8_t *)(bytes.data ? bytes.data : "");

    return (struct cursor){at, at + (bytes.data ? bytes.size : 0)};
}

static bool get_varint(struct cursor *from, uint64_t *value)
{
    return cm_varint_get(&from->at, from->end, value) == CM_VARINT_OK;
}

struct table {
    struct cm_arena *arena;
    struct cm_str bytes;
    size_t blocks; /* bytes of blocks read so far */
    size_t keys;   /* and of keys */
    struct cm_bytes key, last;
    bool has_last;
    cm_table_visit_fn *visit;
    void *arg;
    struct cm_error *err;
};

static enum cm_status broken(const struct table *table, const char *what)
{
    return cm_fail(table->err, CM_BAD_MODEL, "it is not a valid table: %s", what);
}

static enum cm_status read_block(struct table *table, uint64_t offset, uint64_t size,
                                 struct cm_str *out)
{
    const struct cm_str bytes = table->bytes;

    if (bytes.size < TRAILER_SIZE || offset > bytes.size - TRAILER_SIZE ||
        size > bytes.size - TRAILER_SIZE - offset)
        return broken(table, "a block lies outside of the file");
    table->blocks += (size_t)size + TRAILER_SIZE;
    if (table->blocks > bytes.size)
        return broken(table, "its blocks overlap");
    const char *data = bytes.data + offset;
    const uint32_t crc = cm_crc32c(0, data, (size_t)size + 1);
    if (cm_crc32c_masked(crc) != get32(data + size + 1))
        return cm_fail(table->err, CM_BAD_MODEL,
                       "the check sum of the block at byte %llu is wrong: the file is damaged",
                       (unsigned long long)offset);
    *out = (struct cm_str){data, (size_t)size};
    if (data[size] == 1)
        return cm_snappy_unpack(table->arena, *out, out, table->err);
    return data[size] == 0 ? CM_OK : broken(table, "a block is packed in an unknown way");
}

struct entry {
    uint64_t shared;
    struct cm_str rest, value;
};

static bool read_entry(struct cursor *at, struct entry *out)
{
    uint64_t sizes[2];

    if (!get_varint(at, &out->shared) || !get_varint(at, &sizes[0]) || !get_varint(at, &sizes[1]))
        return false;
    const size_t left = (size_t)(at->end - at->at);
    if (sizes[0] > left || sizes[1] > left - sizes[0])
        return false;
    out->rest = (struct cm_str){(const char *)at->at, (size_t)sizes[0]};
    out->value = (struct cm_str){out->rest.data + sizes[0], (size_t)sizes[1]};
    at->at += sizes[0] + sizes[1];
    return true;
}

/* The entries of a block, without the list of whole keys behind them. */
static enum cm_status entries_of(const struct table *table, struct cm_str block, struct cursor *out)
{
    if (block.size < 4)
        return broken(table, "a block is too short");
    const uint64_t restarts = get32(block.data + block.size - 4);
    if (restarts > (block.size - 4) / 4)
        return broken(table, "a block is too short");
    block.size -= 4 + 4 * (size_t)restarts;
    *out = over(block);
    return CM_OK;
}

static enum cm_status next_key(struct table *table, const struct entry *entry)
{
    if (entry->shared > table->key.count)
        return broken(table, "a key shares more than the one before it has");
    table->key.count = (size_t)entry->shared;
    table->keys += table->key.count + entry->rest.size;
    if (table->keys / KEYS_PER_BYTE > table->bytes.size)
        return cm_fail(table->err, CM_LIMIT, "its keys are far larger than the file");
    cm_bytes_text(&table->key, entry->rest);
    return CM_OK;
}

static enum cm_status visit_block(struct table *table, struct cm_str block)
{
    struct cursor at;

    CM_TRY(entries_of(table, block, &at));
    table->key.count = 0;
    while (at.at < at.end) {
        struct entry entry;

        if (!read_entry(&at, &entry))
            return broken(table, "an entry is cut");
        CM_TRY(next_key(table, &entry));
        const struct cm_str key = cm_bytes_str(&table->key);
        const struct cm_str last = cm_bytes_str(&table->last);
        if (table->has_last && cm_str_compare(last, key) >= 0)
            return broken(table, "its keys are not in order");
        CM_TRY(table->visit(table->arg, key, entry.value, table->err));
        table->last.count = 0;
        cm_bytes_text(&table->last, key);
        table->has_last = true;
    }
    return CM_OK;
}

enum cm_status cm_table_read(struct cm_arena *arena, struct cm_str bytes, cm_table_visit_fn *visit,
                             void *arg, struct cm_error *err)
{
    struct table table = {.arena = arena,
                          .bytes = bytes,
                          .key.arena = arena,
                          .last.arena = arena,
                          .visit = visit,
                          .arg = arg,
                          .err = err};
    struct cm_str index, block;
    uint64_t handle[4];

    if (!cm_table_is(bytes))
        return broken(&table, "it does not end as one");
    struct cursor at = over(
        (struct cm_str){bytes.data + bytes.size - FOOTER_SIZE, FOOTER_SIZE - sizeof(uint64_t)});
    for (size_t i = 0; i < CM_COUNT(handle); i++)
        if (!get_varint(&at, &handle[i]))
            return broken(&table, "its footer is broken");
    CM_TRY(read_block(&table, handle[0], handle[1], &block)); /* of other facts: none are needed */
    CM_TRY(read_block(&table, handle[2], handle[3], &index));
    CM_TRY(entries_of(&table, index, &at));
    while (at.at < at.end) {
        struct entry entry;

        if (!read_entry(&at, &entry))
            return broken(&table, "its list of blocks is cut");
        struct cursor value = over(entry.value);
        if (!get_varint(&value, &handle[0]) || !get_varint(&value, &handle[1]))
            return broken(&table, "its list of blocks is broken");
        CM_TRY(read_block(&table, handle[0], handle[1], &block));
        CM_TRY(visit_block(&table, block));
    }
    return CM_OK;
}

/* ---- writing ---- */

struct block {
    struct cm_bytes bytes;
    CM_ARRAY(uint32_t) restarts;
    size_t entries;
    struct cm_str last;
};

static void put_entry(struct cm_arena *arena, struct block *block, struct cm_str key,
                      struct cm_str value)
{
    size_t shared = 0;

    if (block->entries++ % RESTART_EVERY == 0)
        *CM_PUSH(arena, &block->restarts) = (uint32_t)block->bytes.count;
    else
        while (shared < key.size && shared < block->last.size &&
               key.data[shared] == block->last.data[shared])
            shared++;
    cm_bytes_varint(&block->bytes, shared);
    cm_bytes_varint(&block->bytes, key.size - shared);
    cm_bytes_varint(&block->bytes, value.size);
    if (key.size > shared)
        cm_bytes_put(&block->bytes, key.data + shared, key.size - shared);
    cm_bytes_put(&block->bytes, value.data, value.size);
    block->last = key;
}

/* Writes and empties it; handle gets its place, as the list of blocks has it. */
static enum cm_status write_block(struct cm_arena *arena, struct cm_save *save, struct block *block,
                                  struct cm_str *handle, struct cm_error *err)
{
    uint8_t *place = cm_arena_alloc(arena, 20);
    size_t size = cm_varint_put(place, save->written);

    if (block->restarts.count == 0)
        *CM_PUSH(arena, &block->restarts) = 0;
    cm_bytes_put(&block->bytes, block->restarts.items, 4 * block->restarts.count);
    const uint32_t count = (uint32_t)block->restarts.count;
    cm_bytes_put(&block->bytes, &count, sizeof count);
    size += cm_varint_put(place + size, block->bytes.count);
    *handle = (struct cm_str){(const char *)place, size};
    cm_bytes_put(&block->bytes, "", 1); /* not packed */
    const uint32_t crc = cm_crc32c_masked(cm_crc32c(0, block->bytes.items, block->bytes.count));
    cm_bytes_put(&block->bytes, &crc, sizeof crc);
    CM_TRY(cm_save_write(save, block->bytes.items, block->bytes.count, err));
    block->bytes.count = block->restarts.count = block->entries = 0;
    return CM_OK;
}

enum cm_status cm_table_write(struct cm_arena *scratch, struct cm_save *save,
                              const struct cm_table_entry *entries, size_t count,
                              struct cm_error *err)
{
    struct block block = {.bytes.arena = scratch}, index = {.bytes.arena = scratch};
    struct cm_str handle, meta;
    char footer[FOOTER_SIZE] = {0};
    const uint64_t magic = MAGIC;

    for (size_t i = 0; i < count; i++) {
        put_entry(scratch, &block, entries[i].key, entries[i].value);
        if (block.bytes.count < BLOCK_SIZE && i + 1 < count)
            continue;
        CM_TRY(write_block(scratch, save, &block, &handle, err));
        put_entry(scratch, &index, entries[i].key, handle);
    }
    CM_TRY(write_block(scratch, save, &block, &meta, err)); /* an empty one */
    CM_TRY(write_block(scratch, save, &index, &handle, err));
    memcpy(footer, meta.data, meta.size);
    memcpy(footer + meta.size, handle.data, handle.size);
    memcpy(footer + sizeof footer - sizeof magic, &magic, sizeof magic);
    return cm_save_write(save, footer, sizeof footer, err);
}

/* ---- snappy ---- */

/* Literals, and copies of what came before; the low two bits of a tag tell which. */
enum cm_status cm_snappy_unpack(struct cm_arena *arena, struct cm_str packed, struct cm_str *out,
                                struct cm_error *err)
{
    struct cursor at = over(packed);
    uint64_t whole;
    size_t done = 0;

    if (!get_varint(&at, &whole) || whole / 64 > packed.size)
        return cm_fail(err, CM_BAD_MODEL, "a block packed by snappy has an impossible size");
    uint8_t *bytes = cm_arena_alloc(arena, (size_t)whole + 1);
    while (at.at < at.end) {
        const unsigned tag = *at.at++, kind = tag & 3;
        /* bytes behind the tag: of a long literal its length, of a copy how far back */
        const unsigned extra = kind == 0   ? (tag >> 2 < 60 ? 0 : (tag >> 2) - 59)
                               : kind == 3 ? 4
                                           : kind;
        uint64_t number = 0;
        if (extra > (size_t)(at.end - at.at))
            break;
        memcpy(&number, at.at, extra);
        at.at += extra;
        if (kind == 0) {
            const uint64_t size = (extra ? number : tag >> 2) + 1;
            if (size > (size_t)(at.end - at.at) || size > whole - done)
                break;
            memcpy(bytes + done, at.at, (size_t)size);
            at.at += size;
            done += (size_t)size;
            continue;
        }
        const size_t size = kind == 1 ? 4 + (tag >> 2 & 7) : 1 + (tag >> 2);
        const uint64_t back = kind == 1 ? number | (uint64_t)(tag >> 5) << 8 : number;
        if (back == 0 || back > done || size > whole - done)
            break;
        for (size_t i = 0; i < size; i++, done++)
            bytes[done] = bytes[done - back]; /* may overlap: repeats */
    }
    if (at.at < at.end || done != whole)
        return cm_fail(err, CM_BAD_MODEL, "a block packed by snappy is broken");
    *out = (struct cm_str){(const char *)bytes, done};
    return CM_OK;
}
