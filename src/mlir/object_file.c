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

static bool section_at(struct cm_str object, const Elf64_Ehdr *head, size_t i, Elf64_Shdr *out)
{
    return i < head->e_shnum && head->e_shoff < object.size &&
           take(object, head->e_shoff + i * sizeof *out, out, sizeof *out);
}

static void list_undefined(struct cm_str object, const Elf64_Shdr *symbols, const Elf64_Shdr *names,
                           struct cm_arena *arena, struct cm_object_facts *out)
{
    struct {
        struct cm_str *items;
        size_t count, capacity;
    } list = {0};

    for (uint64_t at = sizeof(Elf64_Sym); at + sizeof(Elf64_Sym) <= symbols->sh_size;
         at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;

        if (!take(object, symbols->sh_offset + at, &symbol, sizeof symbol))
            break;
        const uint64_t name = names->sh_offset + symbol.st_name;
        if (symbol.st_shndx != SHN_UNDEF || !symbol.st_name || name >= object.size)
            continue;
        const char *text = object.data + name;
        *CM_PUSH(arena, &list) = (struct cm_str){text, strnlen(text, object.size - (size_t)name)};
    }
    out->undefined = list.items;
    out->n_undefined = list.count;
}

bool cm_object_read(struct cm_str object, struct cm_arena *arena, struct cm_object_facts *out)
{
    Elf64_Ehdr head;
    Elf64_Shdr section, names;

    *out = (struct cm_object_facts){0};
    if (!take(object, 0, &head, sizeof head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB)
        return false;
    for (size_t i = 0; section_at(object, &head, i, &section); i++) {
        if (section.sh_flags & SHF_ALLOC)
            out->bytes += section.sh_size;
        if (section.sh_type == SHT_SYMTAB && section_at(object, &head, section.sh_link, &names))
            list_undefined(object, &section, &names, arena, out);
    }
    return true;
}
