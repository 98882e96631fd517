/* Objects by their bytes: ELF of 32 and 64 bits, and WebAssembly. */
// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include "mlir/toolchain/produce.h"

#include <elf.h>
#include <string.h>

/* One of each: a head, three sections (none, symbols, names) of which the last is loaded, two
 * symbols beside the empty one, and names. */
#define OBJECT(bits)                                                                               \
    static struct {                                                                                \
        Elf##bits##_Ehdr head;                                                                     \
        Elf##bits##_Shdr sections[3];                                                              \
        Elf##bits##_Sym symbols[4];                                                                \
        char names[48];                                                                            \
    } object##bits = {                                                                             \
        .head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS##bits, ELFDATA2LSB},                    \
                 .e_shoff = sizeof(Elf##bits##_Ehdr),                                              \
                 .e_shnum = 3},                                                                    \
        .sections = {{0},                                                                          \
                     {.sh_type = SHT_SYMTAB,                                                       \
                      .sh_offset = sizeof(Elf##bits##_Ehdr) + 3 * sizeof(Elf##bits##_Shdr),        \
                      .sh_size = 4 * sizeof(Elf##bits##_Sym),                                      \
                      .sh_link = 2},                                                               \
                     {.sh_flags = SHF_ALLOC,                                                       \
                      .sh_offset = sizeof(Elf##bits##_Ehdr) + 3 * sizeof(Elf##bits##_Shdr) +       \
                                   4 * sizeof(Elf##bits##_Sym),                                    \
                      .sh_size = 48}},                                                             \
        .symbols = {{0},                                                                           \
                    {.st_name = 1, .st_shndx = SHN_UNDEF},                                         \
                    {.st_name = 8, .st_shndx = 1},                                                 \
                    {.st_name = 12, .st_shndx = SHN_UNDEF}},                                       \
        .names = "\0memcpy\0run\0_GLOBAL_OFFSET_TABLE_"}

OBJECT(32);
OBJECT(64);

static void read_elf(struct cm_arena *arena)
{
    const struct cm_str objects[] = {{(const char *)&object32, sizeof object32},
                                     {(const char *)&object64, sizeof object64}};
    struct cm_object_facts facts;

    for (size_t i = 0; i < 2; i++) {
        CHECK(cm_object_read(objects[i], arena, &facts));
        CHECK_INT(facts.bytes, 48);
        CHECK_INT(facts.is_narrow, i == 0);
        CHECK_INT(facts.n_undefined, 1); /* what it has and what the linker makes does not count */
        CHECK(facts.n_undefined == 1 && cm_str_is(facts.undefined[0], "memcpy"));
        for (size_t size = 0; size < objects[i].size;
             size++) /* cut short: less is found, no more */
            CHECK(!cm_object_read((struct cm_str){objects[i].data, size}, arena, &facts) ||
                  facts.n_undefined <= 2);
    }
}

void test_object_file__functions_that_elf_wants_are_listed(void)
{
    check_in_arena(read_elf);
}

static void read_wasm(struct cm_arena *arena)
{
    static const char bytes[] = "\0asm\1\0\0\0"
                                "\2\x2f\4"
                                "\3env\4expf\0\1"      /* a function */
                                "\3env\6memory\2\0\1"  /* a memory */
                                "\3env\2sp\3\x7f\1"    /* a global */
                                "\3env\1t\1\x70\1\1\2" /* a table */
                                "\12\3abc\13\2de";     /* code and data */
    struct cm_object_facts facts;

    CHECK(cm_object_read((struct cm_str){bytes, sizeof bytes - 1}, arena, &facts));
    CHECK_INT(facts.bytes, 5);
    CHECK_INT(facts.n_undefined, 1);
    CHECK(facts.n_undefined == 1 && cm_str_is(facts.undefined[0], "expf"));
    for (size_t size = 0; size < sizeof bytes - 1; size++)
        CHECK(!cm_object_read((struct cm_str){bytes, size}, arena, &facts) ||
              facts.n_undefined <= 1);
    CHECK(!cm_object_read(CM_STR("!<arch>\n"), arena, &facts));
}

void test_object_file__functions_that_webassembly_imports_are_listed(void)
{
    check_in_arena(read_wasm);
}
