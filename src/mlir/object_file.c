/* Reading an object file in ELF's form: how much of it is loaded, and which symbols it wants. */
// SPDX-License-Identifier: Apache-2.0
#define _POSIX_C_SOURCE 200809L
#include "mlir/produce.h"

#include <elf.h>
#include <string.h>

/* size bytes at offset, copied to where they are aligned; false past the end. */
static bool take(struct cm_str object, uint64_t offset, void *to, size_t size)
{
    if (offset > object.size || object.size - offset < size)
        return false;
    memcpy(to, object.data + offset, size);
    return true;
}

/* Where an address has 32 bits the fields have too, in the same order but for those of symbols.
 * All are read as if they had 64. */

static bool head_of(struct cm_str object, Elf64_Ehdr *out)
{
    Elf32_Ehdr narrow;

    if (!take(object, 0, &narrow, sizeof narrow) || memcmp(narrow.e_ident, ELFMAG, SELFMAG) != 0 ||
        narrow.e_ident[EI_DATA] != ELFDATA2LSB)
        return false;
    if (narrow.e_ident[EI_CLASS] == ELFCLASS64)
        return take(object, 0, out, sizeof *out);
    memcpy(out->e_ident, narrow.e_ident, sizeof out->e_ident);
    out->e_shoff = narrow.e_shoff;
    out->e_shnum = narrow.e_shnum;
    return narrow.e_ident[EI_CLASS] == ELFCLASS32;
}

static bool is_wide(const Elf64_Ehdr *head)
{
    return head->e_ident[EI_CLASS] == ELFCLASS64;
}

static bool section_at(struct cm_str object, const Elf64_Ehdr *head, size_t i, Elf64_Shdr *out)
{
    Elf32_Shdr narrow;

    if (i >= head->e_shnum || head->e_shoff >= object.size)
        return false;
    if (is_wide(head))
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

static size_t symbol_bytes(const Elf64_Ehdr *head)
{
    return is_wide(head) ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

static bool symbol_at(struct cm_str object, const Elf64_Ehdr *head, uint64_t offset, Elf64_Sym *out)
{
    Elf32_Sym narrow;

    if (is_wide(head))
        return take(object, offset, out, sizeof *out);
    if (!take(object, offset, &narrow, sizeof narrow))
        return false;
    *out = (Elf64_Sym){.st_name = narrow.st_name, .st_shndx = narrow.st_shndx};
    return true;
}

static void list_undefined(struct cm_str object, const Elf64_Ehdr *head, const Elf64_Shdr *symbols,
                           const Elf64_Shdr *names, struct cm_arena *arena,
                           struct cm_object_facts *out)
{
    const size_t step = symbol_bytes(head);
    struct {
        struct cm_str *items;
        size_t count, capacity;
    } list = {0};

    for (uint64_t at = step; at + step <= symbols->sh_size; at += step) {
        Elf64_Sym symbol;

        if (!symbol_at(object, head, symbols->sh_offset + at, &symbol))
            break;
        const uint64_t name = names->sh_offset + symbol.st_name;
        if (symbol.st_shndx != SHN_UNDEF || !symbol.st_name || name >= object.size)
            continue;
        const char *text = object.data + name;
        const struct cm_str found = {text, strnlen(text, object.size - (size_t)name)};
        if (!cm_str_is(found, "_GLOBAL_OFFSET_TABLE_")) /* the linker's */
            *CM_PUSH(arena, &list) = found;
    }
    out->undefined = list.items;
    out->n_undefined = list.count;
}

bool cm_object_read(struct cm_str object, struct cm_arena *arena, struct cm_object_facts *out)
{
    Elf64_Ehdr head;
    Elf64_Shdr section, names;

    *out = (struct cm_object_facts){0};
    if (!head_of(object, &head))
        return false;
    out->is_narrow = !is_wide(&head);
    for (size_t i = 0; section_at(object, &head, i, &section); i++) {
        if (section.sh_flags & SHF_ALLOC)
            out->bytes += section.sh_size;
        if (section.sh_type == SHT_SYMTAB && section_at(object, &head, section.sh_link, &names))
            list_undefined(object, &head, &section, &names, arena, out);
    }
    return true;
}
