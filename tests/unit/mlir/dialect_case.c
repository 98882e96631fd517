/* What tests of the ONNX dialect share. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/dialect_case.h"
#include "base/array.h"

#include "onnx/descriptor.h"

struct sheet {
    struct cm_arena *arena;
    CM_ARRAY(char);
};

static enum cm_status write_sheet(void *to, const void *bytes, size_t size, struct cm_error *err)
{
    struct sheet *const sheet = to;

    (void)err;
    while (sheet->capacity - sheet->count < size + 1)
        sheet->items = cm_arena_grow(sheet->arena, sheet->items, &sheet->capacity, 1);
    memcpy(sheet->items + sheet->count, bytes, size);
    sheet->count += size;
    sheet->items[sheet->count] = 0;
    return CM_OK;
}

struct cm_str dialect_print(struct cm_arena *arena, const struct cm_model_proto *model,
                            const struct cm_dialect_options *options)
{
    struct sheet sheet = {.arena = arena};
    struct cm_error err;

    CHECK_OK(cm_dialect_print(model, options, arena, write_sheet, &sheet, &err), &err);
    return (struct cm_str){sheet.items, sheet.count};
}

struct cm_model_proto *dialect_model(struct cm_arena *arena, const char *text)
{
    struct cm_model_proto *const model = CM_NEW(arena, struct cm_model_proto);
    struct cm_error err;

    CHECK_OK(cm_syntax_parse_model(cm_str(text), arena, model, &err), &err);
    return model;
}

struct cm_model_proto *dialect_parse(struct cm_arena *arena, struct cm_str text)
{
    struct cm_model_proto *const model = CM_NEW(arena, struct cm_model_proto);
    struct cm_error err;

    CHECK_OK(cm_dialect_parse(text, arena, model, &err), &err);
    return model;
}

void dialect_check_round(struct cm_arena *arena, const struct cm_model_proto *model,
                         const char *name)
{
    const struct cm_dialect_options forms[] = {{.generic = false}, {.generic = true}};

    for (size_t i = 0; i < CM_COUNT(forms); i++) {
        const struct cm_str text = dialect_print(arena, model, &forms[i]);
        struct cm_model_proto again;
        struct cm_error err = {.text = ""};
        struct cm_str where = CM_STR_NONE;

        const enum cm_status status = cm_dialect_parse(text, arena, &again, &err);
        const bool equal =
            status == CM_OK && cm_message_equal(&cm_model_info, model, &again, arena, &where);
        if (!equal)
            fprintf(stderr, "%s: %s %.*s\n", name, err.text, CM_STR_FMT(where));
        CHECK(equal);
        CHECK_STR(dialect_print(arena, &again, &forms[i]), text.data);
    }
}
