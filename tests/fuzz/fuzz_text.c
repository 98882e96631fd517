/* Any bytes as the text of a model: what can be read can be printed, and what was printed reads
 * back as the same. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/descriptor.h"
#include "onnx/syntax.h"
#include "target.h"

struct input {
    struct cm_str text;
    struct cm_error err;
};

static enum cm_status write_sheet(void *to, const void *bytes, size_t size, struct cm_error *err)
{
    (void)err;
    sheet_add(to, (struct cm_str){bytes, size});
    return CM_OK;
}

static enum cm_status check(struct cm_guard *guard, void *arg)
{
    struct input *const input = arg;
    struct cm_arena arena;
    struct cm_model_proto model, again;
    const struct cm_syntax_options upstream = {.upstream = true, .elide = 3};

    cm_arena_init(&arena, guard);
    struct sheet text = {.arena = &arena}, other = {.arena = &arena};
    const enum cm_status status = cm_syntax_parse_model(input->text, &arena, &model, &input->err);
    if (status == CM_OK) {
        fuzz_require(cm_syntax_print_model(&model, NULL, write_sheet, &text, &input->err) == CM_OK);
        fuzz_require(cm_syntax_parse_model((struct cm_str){text.items, text.count}, &arena, &again,
                                           &input->err) == CM_OK);
        fuzz_require(cm_message_equal(&cm_model_info, &model, &again, &arena, NULL));
        fuzz_require(cm_syntax_print_model(&model, &upstream, write_sheet, &other, &input->err) ==
                     CM_OK);
    }
    cm_arena_release(&arena);
    return status;
}

static void run_input(const uint8_t *data, size_t size)
{
    struct input input = {.text = {(const char *)data, size}};
    const enum cm_status status = cm_guarded((size_t)256 << 20, &input.err, check, &input);

    fuzz_require(status == CM_OK || input.err.text[0]);
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    .mutate = mutate_syntax,
    .most_bytes = 8 * FUZZ_KIB,
    .memory_base = 2 * FUZZ_MIB,
    .memory_per_byte = 1024,
};
