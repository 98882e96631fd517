/* Any bytes as a model that becomes code of another framework: nothing of the model but names as
 * identifiers and texts as literals is in it. */
// SPDX-License-Identifier: Apache-2.0
#include "base/diagnostics.h"
#include "convert/code/code.h"
#include "onnx/decode.h"
#include "target.h"

#include <stdlib.h>

enum { NODES = 2000 };

struct input {
    struct cm_str bytes;
    struct cm_error err;
};

/* Printable ASCII, and every literal ends in its line; docstrings have three quotes twice. */
static bool is_sound(struct cm_str text)
{
    bool in_text = false;

    for (size_t i = 0; i < text.size; i++) {
        const char c = text.data[i];
        if (c == '\n' && in_text)
            return false;
        if (c != '\n' && (c < 0x20 || c > 0x7e))
            return false;
        if (c == '\\' && in_text)
            i++;
        else if (c == '"')
            in_text = !in_text;
    }
    return !in_text;
}

static enum cm_status whole_way(struct cm_guard *guard, void *arg)
{
    struct input *input = arg;
    struct cm_arena arena;
    struct cm_model_file file = {.arena = &arena};
    struct cm_str text;

    cm_arena_init(&arena, guard);
    if (!cm_decode(&cm_model_info, input->bytes, &arena, &file.model, &input->err))
        for (size_t f = 0; f < cm_code_framework_count; f++) {
            struct cm_findings findings = {.arena = &arena, .rule = "export"};
            const struct cm_code_options options = {
                .to = cm_code_frameworks[f], .findings = &findings, .node_budget = NODES};
            if (!cm_code_text(&arena, &file, &options, &text, &input->err))
                fuzz_require(is_sound(text));
        }
    cm_arena_release(&arena);
    return CM_OK;
}

static void run_input(const uint8_t *data, size_t size)
{
    struct input input = {.bytes = {(const char *)data, size}};
    (void)!cm_guarded((size_t)256 << 20, &input.err, whole_way, &input);
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    .mutate = mutate_model,
    .most_bytes = 8 * FUZZ_KIB,
    .memory_base = 16 * FUZZ_MIB,
    .memory_per_byte = 16384,
};
