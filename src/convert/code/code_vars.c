/* Variables of the generated code, and what lines read. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/code/code_state.h"

#include <stdarg.h>

void cm_code_put(struct cm_code *code, struct cm_code_text *text, struct cm_str more)
{
    CM_PUSH_ALL(code->arena, text, more.data, more.size);
}

void cm_code_putf(struct cm_code *code, struct cm_code_text *text, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const struct cm_str more = cm_arena_vprintf(code->arena, format, args);
    va_end(args);
    cm_code_put(code, text, more);
}

size_t cm_code_new_var(struct cm_code *code, struct cm_str hint)
{
    *CM_PUSH(code->arena, &code->vars) = (struct cm_code_var){.hint = hint};
    return code->vars.count - 1;
}

struct cm_str cm_code_ref(struct cm_code *code, char kind, size_t number)
{
    return cm_arena_printf(code->arena, "%c%zu%c", kind, number, CM_CODE_END);
}

bool cm_code_read_ref(struct cm_str text, size_t *at, char *kind, size_t *number)
{
    size_t i = *at;

    if (i >= text.size || (text.data[i] != CM_CODE_VAR && text.data[i] != CM_CODE_TENSOR &&
                           text.data[i] != CM_CODE_LAYER))
        return false;
    *kind = text.data[i++];
    *number = 0;
    while (i < text.size && text.data[i] != CM_CODE_END)
        *number = *number * 10 + (size_t)(text.data[i++] - '0');
    *at = i + 1;
    return true;
}

const struct cm_type *cm_code_type_of(const struct cm_code *code, cm_value value)
{
    return cm_value_get(code->module, value)->fact.type;
}

const char *cm_code_type(const struct cm_code *code, enum cm_dtype dtype)
{
    return dtype < CM_DTYPE_COUNT ? code->to->types[dtype].text : NULL;
}

const struct cm_tensor *cm_code_contents(struct cm_code *code, cm_value value)
{
    const struct cm_value_def *def = cm_value_get(code->module, value);
    const struct cm_tensor *tensor = NULL;

    if (def->is_state || def->fact.type->kind != CM_KIND_TENSOR)
        return NULL;
    if (def->fact.constant)
        return def->fact.constant;
    if (def->role == CM_ROLE_INITIALIZER &&
        cm_value_constant(code->module, value, &tensor, code->err) != CM_OK)
        return NULL;
    return tensor;
}

/* A name that a person might have chosen: the last part of one that was not made up by an exporter,
 * else what computes it. */
static struct cm_str hint_of(struct cm_code *code, cm_value value)
{
    const struct cm_value_def *def = cm_value_get(code->module, value);
    const struct cm_str name = def->name;

    if (cm_code_is_identifier(name) && name.size <= 24 &&
        (!cm_original_is_made_up(name) || !def->node))
        return cm_arena_str(code->arena, name);
    if (def->node) {
        struct cm_str hint = cm_code_identifier(code->arena, def->node->op_type);
        char *text = CM_NEW_ARRAY(code->arena, char, hint.size + 1);

        for (size_t i = 0; i < hint.size; i++)
            text[i] = hint.data[i] >= 'A' && hint.data[i] <= 'Z' ? (char)(hint.data[i] + 32)
                                                                 : hint.data[i];
        return cm_code_identifier(code->arena, (struct cm_str){text, hint.size});
    }
    return cm_code_identifier(code->arena, name);
}

struct cm_str cm_code_value(struct cm_code *code, cm_value value)
{
    const struct cm_value_def *def = cm_value_get(code->module, value);

    if (def->is_state || cm_code_contents(code, value)) {
        const size_t number = cm_code_tensor(code, value);
        const struct cm_str ref = cm_code_ref(code, CM_CODE_TENSOR, number);

        return code->tensors.items[number].is_turned
                   ? cm_arena_printf(code->arena, code->to->turned_format, cm_str_text(ref))
                   : ref;
    }
    bool added;
    uint64_t *number = cm_map_insert_number(&code->var_of, code->arena, value, &added);
    if (added) {
        *number = cm_code_new_var(code, hint_of(code, value)) + 1;
        code->vars.items[*number - 1].value = value;
    }
    return cm_code_ref(code, CM_CODE_VAR, (size_t)*number - 1);
}

struct cm_str cm_code_unique(struct cm_code *code, struct cm_map *names, struct cm_str hint)
{
    struct cm_str name = hint;

    for (unsigned n = 2; !cm_map_add(names, code->arena, name); n++)
        name = cm_arena_printf(code->arena, "%.*s_%u", CM_STR_ALL(hint), n);
    return name;
}

struct cm_str cm_code_named(struct cm_code *code, struct cm_str text)
{
    struct cm_code_text out = {0};
    size_t done = 0;

    for (size_t at = 0; at < text.size;) {
        const size_t begin = at;
        size_t number;
        char kind;

        if (!cm_code_read_ref(text, &at, &kind, &number)) {
            at++;
            continue;
        }
        cm_code_put(code, &out, (struct cm_str){text.data + done, begin - done});
        done = at;
        if (kind == CM_CODE_TENSOR) {
            cm_code_put(code, &out, code->to->tensor(code, number));
            continue;
        }
        if (kind == CM_CODE_LAYER) {
            cm_code_put(code, &out, code->to->layer(code, code->layers.items[number].path));
            continue;
        }
        struct cm_code_var *var = &code->vars.items[number];
        if (!var->name.size)
            var->name = cm_code_unique(code, &code->names, var->hint);
        cm_code_put(code, &out, var->name);
    }
    cm_code_put(code, &out, (struct cm_str){text.data + done, text.size - done});
    return cm_code_text_str(&out);
}
