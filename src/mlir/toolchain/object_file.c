/* Reading an object file, in ELF's form or in that of WebAssembly: how much of it is loaded, and
 * which functions it wants. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "base/array.h"
#include "mlir/toolchain/produce.h"

#include <elf.h>
#include <string.h>

struct name_list {
    CM_ARRAY(struct cm_str);
};

/* size bytes at offset, copied to where they are aligned; false past the end. */
static bool take(struct cm_str object, uint64_t offset, void *to, size_t size)
{
    if (offset > object.size || object.size - offset < size)
        return false;
    memcpy(to, object.data + offset, size);
    return true;
}

/* ---- ELF: structs of 32 bits are widened ---- */

static bool is_wide(struct cm_str object)
{
    return object.size > EI_CLASS && object.data[EI_CLASS] == ELFCLASS64;
}

static bool read_head(struct cm_str object, Elf64_Ehdr *out)
{
    Elf32_Ehdr narrow;

    if (is_wide(object))
        return take(object, 0, out, sizeof *out);
    if (!take(object, 0, &narrow, sizeof narrow))
        return false;
    *out = (Elf64_Ehdr){.e_shoff = narrow.e_shoff, .e_shnum = narrow.e_shnum};
    memcpy(out->e_ident, narrow.e_ident, sizeof out->e_ident);
    return true;
}

static bool section_at(struct cm_str object, const Elf64_Ehdr *head, size_t i, Elf64_Shdr *out)
{
    Elf32_Shdr narrow;

    if (i >= head->e_shnum || head->e_shoff >= object.size)
        return false;
    if (is_wide(object))
        return take(object, head->e_shoff + i * sizeof *out, out, sizeof *out);
    if (!take(object, head->e_shoff + i * sizeof narrow, &narrow, sizeof narrow))
        return false;
    *out = (Elf64_Shdr){.sh_type = narrow.sh_type,
                        .sh_flags = narrow.sh_flags,
                        .sh_offset = narrow.sh_offset,
                        .sh_size = narrow.sh_size,
                        .sh_link = narrow.sh_link};
    return true;
}

static bool symbol_at(struct cm_str object, const Elf64_Shdr *symbols, uint64_t i, Elf64_Sym *out)
{
    const size_t size = is_wide(object) ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
    Elf32_Sym narrow;

    if (i >= symbols->sh_size / size || symbols->sh_offset >= object.size)
        return false;
    if (is_wide(object))
        return take(object, symbols->sh_offset + i * size, out, size);
    if (!take(object, symbols->sh_offset + i * size, &narrow, size))
        return false;
    *out = (Elf64_Sym){.st_name = narrow.st_name, .st_shndx = narrow.st_shndx};
    return true;
}

/* Places that every linker makes up. */
static bool is_linkers(struct cm_str name)
{
    return cm_str_starts(name, "_GLOBAL_OFFSET_TABLE") || cm_str_is(name, "_gp_disp");
}

static void list_undefined(struct cm_str object, const Elf64_Shdr *symbols, const Elf64_Shdr *names,
                           struct cm_arena *arena, struct name_list *list)
{
    Elf64_Sym symbol;

    for (uint64_t i = 1; symbol_at(object, symbols, i, &symbol); i++) {
        const uint64_t name = names->sh_offset + symbol.st_name;

        if (symbol.st_shndx != SHN_UNDEF || !symbol.st_name || name < symbol.st_name ||
            name >= object.size)
            continue;
        const char *text = object.data + name;
        const struct cm_str wanted = {text, strnlen(text, object.size - (size_t)name)};
        if (!is_linkers(wanted))
            *CM_PUSH(arena, list) = wanted;
    }
}

static bool read_elf(struct cm_str object, struct cm_arena *arena, struct cm_object_facts *out,
                     struct name_list *list)
{
    Elf64_Ehdr head;
    Elf64_Shdr section, names;

    if (!read_head(object, &head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        (head.e_ident[EI_CLASS] != ELFCLASS64 && head.e_ident[EI_CLASS] != ELFCLASS32) ||
        head.e_ident[EI_DATA] != ELFDATA2LSB)
        return false;
    out->is_narrow = !is_wide(object);
    for (size_t i = 0; section_at(object, &head, i, &section); i++) {
        if (section.sh_flags & SHF_ALLOC)
            out->bytes += section.sh_size;
        if (section.sh_type == SHT_SYMTAB && section_at(object, &head, section.sh_link, &names))
            list_undefined(object, &section, &names, arena, list);
    }
    return true;
}

/* ---- WebAssembly: sections of a number, a size and that many bytes; what is wanted is imported
 * ---- */

enum { WASM_IMPORTS = 2, WASM_CODE = 10, WASM_DATA = 11 };
enum { WASM_FUNCTION, WASM_TABLE, WASM_MEMORY, WASM_GLOBAL, WASM_TAG };

struct wasm_reader {
    struct cm_str bytes;
    size_t at;
    bool failed; /* it ends too early */
};

static unsigned wasm_byte(struct wasm_reader *r)
{
    r->failed = r->failed || r->at >= r->bytes.size;
    return r->failed ? 0 : (unsigned char)r->bytes.data[r->at++];
}

/* Seven bits to a byte, the least first. */
static uint64_t wasm_number(struct wasm_reader *r)
{
    uint64_t number = 0;
    unsigned byte = 128;

    for (unsigned shift = 0; byte & 128 && shift < 64; shift += 7) {
        byte = wasm_byte(r);
        number |= (uint64_t)(byte & 127) << shift;
    }
    return number;
}

static struct cm_str wasm_bytes(struct wasm_reader *r)
{
    const uint64_t size = wasm_number(r);

    if (r->failed || size > r->bytes.size - r->at) {
        r->failed = true;
        return CM_STR_NONE;
    }
    const struct cm_str bytes = {r->bytes.data + r->at, (size_t)size};
    r->at += (size_t)size;
    return bytes;
}

static void skip_limits(struct wasm_reader *r)
{
    const uint64_t flags = wasm_number(r);

    wasm_number(r);
    if (flags & 1)
        wasm_number(r);
}

/* False: it ends too early. */
static bool list_imports(struct cm_str section, struct cm_arena *arena, struct name_list *list)
{
    struct wasm_reader r = {.bytes = section};

    for (uint64_t left = wasm_number(&r); left && !r.failed; left--) {
        wasm_bytes(&r); /* the module that has it */
        const struct cm_str name = wasm_bytes(&r);
        const unsigned kind = wasm_byte(&r);

        if (kind == WASM_TABLE || kind == WASM_GLOBAL || kind == WASM_TAG)
            wasm_byte(&r);
        if (kind == WASM_TABLE || kind == WASM_MEMORY)
            skip_limits(&r);
        else
            wasm_number(&r);
        if (kind == WASM_FUNCTION && !r.failed)
            *CM_PUSH(arena, list) = name;
    }
    return !r.failed;
}

static bool read_wasm(struct cm_str object, struct cm_arena *arena, struct cm_object_facts *out,
                      struct name_list *list)
{
    static const char magic[] = {0, 'a', 's', 'm', 1, 0, 0, 0};
    struct wasm_reader r = {.bytes = object, .at = sizeof magic};

    if (object.size < sizeof magic || memcmp(object.data, magic, sizeof magic) != 0)
        return false;
    while (r.at < object.size && !r.failed) {
        const unsigned number = wasm_byte(&r);
        const struct cm_str section = wasm_bytes(&r);

        if (number == WASM_IMPORTS)
            r.failed = !list_imports(section, arena, list) || r.failed;
        if (number == WASM_CODE || number == WASM_DATA)
            out->bytes += section.size;
    }
    return !r.failed;
}

bool cm_object_read(struct cm_str object, struct cm_arena *arena, struct cm_object_facts *out)
{
    struct name_list list = {0};

    *out = (struct cm_object_facts){0};
    const bool known = read_elf(object, arena, out, &list) || read_wasm(object, arena, out, &list);
    out->undefined = list.items;
    out->n_undefined = list.count;
    return known;
}
