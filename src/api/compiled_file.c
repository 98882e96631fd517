/* A library that cannot be loaded: what it is instead of a compiled model for this machine. The
 * loader's own words for one of another processor are that there is no such file. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "api/running.h"

#include "base/file.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

static const char *name_machine(unsigned machine, unsigned char class)
{
    static const struct {
        unsigned machine;
        const char *name;
    } rows[] = {
        {EM_X86_64, "x86_64"},   {EM_386, "i386"},      {EM_AARCH64, "aarch64"},
        {EM_ARM, "arm"},         {EM_PPC64, "powerpc64"}, {EM_S390, "s390x"},
        {EM_LOONGARCH, "loongarch"},
    };

    if (machine == EM_RISCV)
        return class == ELFCLASS64 ? "riscv64" : "riscv32";
    for (size_t i = 0; i < CM_COUNT(rows); i++)
        if (rows[i].machine == machine)
            return rows[i].name;
    return "another processor";
}

/* The header of the file that this code lies in. */
static const ElfW(Ehdr) *own_header(void)
{
    static const char here;
    Dl_info mine;

    return dladdr(&here, &mine) ? mine.dli_fbase : NULL;
}

enum cm_status cm_api_refuse_library(const char *path, const char *reason, struct cm_error *err)
{
    const ElfW(Ehdr) *own = own_header();
    struct cm_mapping file = {0};
    Elf64_Ehdr head = {0};

    CM_TRY(cm_file_map(path, false, &file, err));
    memcpy(&head, file.data, file.size < sizeof head ? file.size : sizeof head);
    cm_mapping_release(&file);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        return cm_fail(err, CM_BAD_ARGUMENT, "%.600s: is not a library", path);
    /* The machine is at the same place in both classes. */
    if (own && (head.e_machine != own->e_machine ||
                head.e_ident[EI_CLASS] != own->e_ident[EI_CLASS] ||
                head.e_ident[EI_DATA] != own->e_ident[EI_DATA]))
        return cm_fail(err, CM_UNSUPPORTED, "%.600s: is compiled for %s, this machine is %s", path,
                       name_machine(head.e_machine, head.e_ident[EI_CLASS]),
                       name_machine(own->e_machine, own->e_ident[EI_CLASS]));
    return cm_fail(err, CM_UNSUPPORTED, "%.600s: cannot be loaded: %.300s", path,
                   reason ? reason : "the loader does not say why");
}
