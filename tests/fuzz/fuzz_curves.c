/* Any bytes as the log of a training: read, then drawn as SVG and for a terminal. The first byte
 * says how. */
// SPDX-License-Identifier: Apache-2.0
#include "cli.h"
#include "curve.h"
#include "in_file.h"
#include "short_of_memory.h"
#include "target.h"

#include <stdint.h>
#include <stdlib.h>

/* What is wrong with a log is told to the user; here nobody listens. */
void cli_complain(const char *format, ...)
{
    (void)format;
}

void cameo_remove_unfinished(void)
{
}

int cli_leave(int code)
{
    return code;
}

static void draw(const struct curves *curves, uint8_t how, FILE *to)
{
    const struct curve **list = malloc((curves->count + 1) * sizeof *list);
    const struct curve_panel panel = {
        .title = "a<b&c", .curves = list, .count = curves->count, .log_scale = how & 1};
    const double windows[] = {0, -1, 1, 1000};
    const struct curve_drawing drawing = {
        .title = "log", .panels = &panel, .count = 1, .window = windows[how >> 1 & 3]};

    if (!list)
        return;
    for (size_t i = 0; i < curves->count; i++)
        list[i] = &curves->items[i];
    if (curves->count) {
        curve_write_svg(to, &drawing);
        curve_print(to, list[0], 20 + (how >> 3 & 7) * 10, 3 + (how >> 6), how >> 5 & 1);
    }
    free(list);
}

static void run_input(const uint8_t *data, size_t size)
{
    static FILE *nowhere;
    struct curves curves = {0};
    const char *path = size ? in_file(data + 1, size - 1) : NULL;

    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    if (path && nowhere && curves_read(&curves, path, "run ") == CLI_YES)
        draw(&curves, data[0], nowhere);
    curves_free(&curves);
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    .mutate = mutate_text,
    .memory_base = 2 * FUZZ_MIB,
    .memory_per_byte = 1024,
};
