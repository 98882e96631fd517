/* Any bytes as a module of the ONNX dialect: what can be read can be printed, and what was printed
 * reads back as the same. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/dialect/dialect.h"
#include "onnx/descriptor.h"
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
    struct cm_model_proto model, again;
    struct cm_arena arena;

    cm_arena_init(&arena, guard);
    const enum cm_status status = cm_dialect_parse(input->text, &arena, &model, &input->err);
    for (int generic = 0; status == CM_OK && generic < 2; generic++) {
        const struct cm_dialect_options options = {.generic = generic};
        struct sheet text = {.arena = &arena};
        fuzz_require(cm_dialect_print(&model, &options, &arena, write_sheet, &text, &input->err) ==
                     CM_OK);
        fuzz_require(cm_dialect_parse((struct cm_str){text.items, text.count}, &arena, &again,
                                      &input->err) == CM_OK);
        fuzz_require(cm_message_equal(&cm_model_info, &model, &again, &arena, NULL));
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
    .mutate = mutate_dialect,
    .most_bytes = 8 * FUZZ_KIB,
    .memory_base = 2 * FUZZ_MIB,
    .memory_per_byte = 1024,
};
