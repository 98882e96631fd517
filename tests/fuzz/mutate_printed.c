/* Changes of models that are written as text: half of them by their tokens, half by their messages,
 * printed again. What is printed is read further than any change of tokens. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/dialect/dialect.h"
#include "mutate.h"
#include "onnx/decode.h"
#include "onnx/encode.h"
#include "onnx/syntax.h"

typedef enum cm_status parse_fn(struct cm_str text, struct cm_arena *arena,
                                struct cm_model_proto *out, struct cm_error *err);
typedef enum cm_status print_fn(struct chance *c, const struct cm_model_proto *model,
                                struct sheet *sheet, struct cm_error *err);

static enum cm_status write_sheet(void *to, const void *bytes, size_t size, struct cm_error *err)
{
    (void)err;
    sheet_add(to, (struct cm_str){bytes, size});
    return CM_OK;
}

static enum cm_status print_syntax(struct chance *c, const struct cm_model_proto *model,
                                   struct sheet *sheet, struct cm_error *err)
{
    (void)c;
    return cm_syntax_print_model(model, NULL, write_sheet, sheet, err);
}

static enum cm_status print_dialect(struct chance *c, const struct cm_model_proto *model,
                                    struct sheet *sheet, struct cm_error *err)
{
    const struct cm_dialect_options options = {.generic = chance_percent(c, 25)};

    return cm_dialect_print(model, &options, c->arena, write_sheet, sheet, err);
}

/* The bytes of the model that a text is; none: it is no model. */
static struct cm_str as_bytes(struct chance *c, struct cm_str text, parse_fn *parse)
{
    struct cm_model_proto model = {0};
    struct cm_error err = {0};
    struct cm_str bytes;

    if (!text.size || parse(text, c->arena, &model, &err) ||
        cm_encode(&cm_model_info, &model, c->arena, &bytes, &err))
        return CM_STR_NONE;
    return bytes;
}

static struct cm_str change_model(struct chance *c, struct cm_str text, parse_fn *parse,
                                  print_fn *print)
{
    const struct cm_str bytes = as_bytes(c, text, parse), other = c->other;
    struct sheet sheet = {.arena = c->arena};
    struct cm_model_proto model = {0};
    struct cm_error err = {0};

    if (!bytes.size)
        return CM_STR_NONE;
    c->other = as_bytes(c, other, parse);
    const struct cm_str made = mutate_model(c, bytes);
    c->other = other;
    if (!made.size || cm_decode(&cm_model_info, made, c->arena, &model, &err) ||
        print(c, &model, &sheet, &err))
        return CM_STR_NONE;
    return sheet_text(&sheet);
}

static struct cm_str change_text(struct chance *c, struct cm_str text, parse_fn *parse,
                                 print_fn *print)
{
    const struct cm_str made =
        chance_percent(c, 50) ? change_model(c, text, parse, print) : CM_STR_NONE;

    return made.size ? made : mutate_text(c, text);
}

struct cm_str mutate_syntax(struct chance *c, struct cm_str bytes)
{
    return change_text(c, bytes, cm_syntax_parse_model, print_syntax);
}

struct cm_str mutate_dialect(struct chance *c, struct cm_str bytes)
{
    return change_text(c, bytes, cm_dialect_parse, print_dialect);
}
