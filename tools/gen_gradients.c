/* Packs the facts about gradients for the library: gen_gradients OUT.c data/gradients/DOMAIN.txt...
 *
 * Comments go, and the pair of bytes that is most frequent becomes one byte, 128 times: English and
 * formulas take half their room so. */
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 128, ROOM = 1 << 20 };

static unsigned char text[ROOM], pairs[PAIRS][2];
static size_t size;

_Noreturn static void die(const char *path, const char *why)
{
    fprintf(stderr, "%s: %s\n", path, why);
    exit(1);
}

static void add(const char *path, const char *bytes, size_t count)
{
    if (size + count > ROOM)
        die(path, "too much text");
    for (size_t i = 0; i < count; i++)
        if ((unsigned char)bytes[i] >= 128)
            die(path, "only ASCII can be packed");
    memcpy(text + size, bytes, count);
    size += count;
}

/* The file's name is its domain. One empty line ends each entry. */
static void read_file(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t length = strlen(name);
    char line[4096];
    FILE *file = fopen(path, "r");

    if (!file || length < 5 || strcmp(name + length - 4, ".txt") != 0)
        die(path, "cannot be read as DOMAIN.txt");
    add(path, "@", 1);
    add(path, name, length - 4);
    add(path, "\n", 1);
    int open = 0;
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#')
            continue;
        if (line[0] != '\n' || open)
            add(path, line, strlen(line));
        open = line[0] != '\n';
    }
    if (open)
        add(path, "\n", 1);
    fclose(file);
}

static void replace_pair(unsigned char first, unsigned char second, unsigned char by)
{
    size_t to = 0;

    for (size_t i = 0; i < size; i++) {
        const int here = i + 1 < size && text[i] == first && text[i + 1] == second;
        text[to++] = here ? by : text[i];
        i += (size_t)here;
    }
    size = to;
}

static void pack(void)
{
    static unsigned counts[256][256];

    for (int pair = 0; pair < PAIRS; pair++) {
        unsigned most = 0;
        memset(counts, 0, sizeof counts);
        for (size_t i = 0; i + 1 < size; i++) {
            const unsigned now = ++counts[text[i]][text[i + 1]];
            if (now > most) {
                most = now;
                pairs[pair][0] = text[i];
                pairs[pair][1] = text[i + 1];
            }
        }
        replace_pair(pairs[pair][0], pairs[pair][1], (unsigned char)(128 + pair));
    }
}

static void write_bytes(FILE *file, const char *head, const unsigned char *bytes, size_t count)
{
    fprintf(file, "%s = {", head);
    for (size_t i = 0; i < count; i++)
        fprintf(file, "%s%d,", i % 20 ? "" : "\n    ", bytes[i]);
    fputs("\n};\n", file);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        die("gen_gradients", "usage: gen_gradients OUT.c data/gradients/DOMAIN.txt...");
    for (int i = 2; i < argc; i++)
        read_file(argv[i]);
    pack();
    FILE *file = fopen(argv[1], "w");
    if (!file)
        die(argv[1], "cannot be written");
    fputs("/* Made by tools/gen_gradients.c. */\n#include \"autodiff/explain/gradient_notes.h\"\n\n"
          "/* clang-format off */\n",
          file);
    write_bytes(file, "const unsigned char cm_gradient_notes[]", text, size);
    fprintf(file, "const size_t cm_gradient_notes_size = %zu;\n", size);
    fputs("const unsigned char cm_gradient_pairs[128][2] = {", file);
    for (int i = 0; i < PAIRS; i++)
        fprintf(file, "%s{%d,%d},", i % 10 ? "" : "\n    ", pairs[i][0], pairs[i][1]);
    fputs("\n};\n", file);
    return ferror(file) || fclose(file) ? 1 : 0;
}
