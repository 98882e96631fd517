/* The archive format: a magic line, then members, each behind a head of 60 bytes of text and at an
 * even offset. The first member, "/", is the table of symbols: their number, the offset of the
 * member that defines each (both big endian), their names. "//" holds long names. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/toolchain/ar.h"

#include <stdio.h>
#include <string.h>

enum { MAGIC_SIZE = 8, HEAD_SIZE = 60, SHORT_NAME = 15 };

static size_t even(size_t size)
{
    return size + (size & 1);
}

static void put_head(char *to, const char *name, size_t size)
{
    char head[HEAD_SIZE + 32]; /* sizes are below 10 digits */

    snprintf(head, sizeof head, "%-16s%-12s%-6s%-6s%-8s%-10zu`\n", name, "0", "0", "0", "644",
             size);
    memcpy(to, head, HEAD_SIZE);
}

static void put_number(char *to, size_t number)
{
    for (int i = 0; i < 4; i++)
        to[i] = (char)(number >> (24 - 8 * i) & 255);
}

static bool is_long(const struct cm_ar_member *member)
{
    return strlen(member->name) > SHORT_NAME;
}

struct sizes {
    size_t symbols, symbol_bytes; /* number of symbols, bytes of their table */
    size_t name_bytes;            /* of the table of names; 0: none is long */
    size_t first;                 /* offset of the first member */
    size_t whole;
};

static struct sizes measure(const struct cm_ar_member *members, size_t count)
{
    struct sizes s = {.symbol_bytes = 4};

    for (size_t i = 0; i < count; i++) {
        s.symbols += members[i].n_symbols;
        for (size_t k = 0; k < members[i].n_symbols; k++)
            s.symbol_bytes += 4 + strlen(members[i].symbols[k]) + 1;
        if (is_long(&members[i]))
            s.name_bytes += strlen(members[i].name) + 2;
        s.whole += HEAD_SIZE + even(members[i].bytes.size);
    }
    s.first = MAGIC_SIZE + HEAD_SIZE + even(s.symbol_bytes) +
              (s.name_bytes ? HEAD_SIZE + even(s.name_bytes) : 0);
    s.whole += s.first;
    return s;
}

/* Both tables; gives what follows them. */
static char *put_tables(char *at, const struct cm_ar_member *members, size_t count,
                        const struct sizes *s)
{
    size_t offset = s->first;
    char *names;

    put_head(at, "/", s->symbol_bytes);
    put_number(at + HEAD_SIZE, s->symbols);
    at += HEAD_SIZE + 4;
    names = at + 4 * s->symbols;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < members[i].n_symbols; k++, at += 4) {
            const size_t size = strlen(members[i].symbols[k]) + 1;

            put_number(at, offset);
            memcpy(names, members[i].symbols[k], size);
            names += size;
        }
        offset += HEAD_SIZE + even(members[i].bytes.size);
    }
    at = names + (s->symbol_bytes & 1);
    if (!s->name_bytes)
        return at;
    put_head(at, "//", s->name_bytes);
    at += HEAD_SIZE;
    for (size_t i = 0; i < count; i++)
        if (is_long(&members[i])) {
            const size_t size = strlen(members[i].name);

            memcpy(at, members[i].name, size);
            memcpy(at + size, "/\n", 2);
            at += size + 2;
        }
    if (s->name_bytes & 1)
        *at++ = '\n';
    return at;
}

enum cm_status cm_ar_write(const struct cm_ar_member *members, size_t count, struct cm_arena *arena,
                           struct cm_str *out, struct cm_error *err)
{
    const struct sizes s = measure(members, count);
    size_t long_name = 0;

    if (s.whole > UINT32_MAX)
        return cm_fail(err, CM_LIMIT, "an archive of %zu bytes is more than 4 GiB", s.whole);
    char *data = cm_arena_alloc(arena, s.whole);
    memcpy(data, "!<arch>\n", MAGIC_SIZE);
    char *at = put_tables(data + MAGIC_SIZE, members, count, &s);
    for (size_t i = 0; i < count; i++) {
        char name[32];

        if (is_long(&members[i]))
            snprintf(name, sizeof name, "/%zu", long_name);
        else
            snprintf(name, sizeof name, "%s/", members[i].name);
        long_name += is_long(&members[i]) ? strlen(members[i].name) + 2 : 0;
        put_head(at, name, members[i].bytes.size);
        if (members[i].bytes.size)
            memcpy(at + HEAD_SIZE, members[i].bytes.data, members[i].bytes.size);
        at += HEAD_SIZE + members[i].bytes.size;
        if (members[i].bytes.size & 1)
            *at++ = '\n';
    }
    *out = (struct cm_str){data, s.whole};
    return CM_OK;
}
