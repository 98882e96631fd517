/* Types and typed names as text. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/syntax_lex.h"
#include "onnx/syntax_names.h"
#include "onnx/syntax_print.h"
#include "tensor/dtype.h"

static void print_element(struct cm_printer *p, int32_t type)
{
    if (!p->upstream && type != CM_UNDEFINED && !cm_dtype_is_valid(type))
        cm_print_fail(p, CM_UNSUPPORTED, "element type %d has no name in the text form", (int)type);
    cm_put_text(p, cm_dtype_is_valid(type) ? cm_dtype_name((enum cm_dtype)type) : "undefined");
}

static void print_denotation(struct cm_printer *p, struct cm_str denotation)
{
    if (p->upstream || denotation.size == 0)
        return;
    cm_put_text(p, " : ");
    cm_put_quoted(p, denotation);
}

static void print_shape(struct cm_printer *p, const struct cm_shape_proto *shape)
{
    if (!shape) {
        cm_put_text(p, "[]");
        return;
    }
    if (shape->dim.count == 0)
        return;
    for (size_t i = 0; i < shape->dim.count && p->status == CM_OK; i++) {
        const struct cm_dim_proto *const dim = &shape->dim.items[i];
        cm_put(p, i ? "," : "[", 1);
        if (cm_msg_has(&dim->msg, CM_DIM_VALUE))
            cm_put_int64(p, dim->dim_value);
        else if (cm_msg_has(&dim->msg, CM_DIM_PARAM))
            cm_put_word(p, dim->dim_param);
        else
            cm_put(p, "?", 1);
        print_denotation(p, dim->denotation);
    }
    cm_put(p, "]", 1);
}

static bool is_dotted(struct cm_str name)
{
    size_t start = 0;

    for (size_t i = 0; i <= name.size; i++) {
        if (i < name.size && name.data[i] != '.')
            continue;
        if (!cm_lex_is_word((struct cm_str){name.data + start, i - start}))
            return false;
        start = i + 1;
    }
    return true;
}

static void put_dotted(struct cm_printer *p, struct cm_str name)
{
    if (p->upstream || (name.size && is_dotted(name)))
        cm_put_str(p, name);
    else
        cm_put_quoted(p, name);
}

static void print_opaque(struct cm_printer *p, const struct cm_opaque_type_proto *type)
{
    cm_put_text(p, "opaque(");
    if (type->domain.size) {
        put_dotted(p, type->domain);
        cm_put(p, ",", 1);
    }
    if (type->name.size || (type->domain.size && !p->upstream)) {
        if (type->domain.size && !p->upstream)
            cm_put_word(p, type->name);
        else
            put_dotted(p, type->name);
    }
    cm_put(p, ")", 1);
}

static void print_map(struct cm_printer *p, const struct cm_map_type_proto *type)
{
    cm_put_text(p, "map(");
    print_element(p, type->key_type);
    if (type->value_type || p->upstream)
        cm_put_text(p, ", ");
    if (type->value_type)
        cm_print_type(p, type->value_type);
    cm_put(p, ")", 1);
}

static void print_wrapped(struct cm_printer *p, const char *word,
                          const struct cm_wrap_type_proto *type)
{
    cm_put_text(p, word);
    cm_put(p, "(", 1);
    if (type->elem_type)
        cm_print_type(p, type->elem_type);
    cm_put(p, ")", 1);
}

void cm_print_type(struct cm_printer *p, const struct cm_type_proto *type)
{
    if (!cm_print_enter(p))
        return;
    if (type->tensor_type) {
        print_element(p, type->tensor_type->elem_type);
        print_shape(p, type->tensor_type->shape);
    } else if (type->sequence_type) {
        print_wrapped(p, "seq", type->sequence_type);
    } else if (type->map_type) {
        print_map(p, type->map_type);
    } else if (type->optional_type) {
        print_wrapped(p, "optional", type->optional_type);
    } else if (type->sparse_tensor_type) {
        cm_put_text(p, "sparse_tensor(");
        print_element(p, type->sparse_tensor_type->elem_type);
        print_shape(p, type->sparse_tensor_type->shape);
        cm_put(p, ")", 1);
    } else if (type->opaque_type) {
        print_opaque(p, type->opaque_type);
    } else if (!p->upstream) {
        cm_put_text(p, "untyped");
    }
    print_denotation(p, type->denotation);
    p->depth--;
}

void cm_print_value(struct cm_printer *p, const struct cm_value_info_proto *value)
{
    if (value->type)
        cm_print_type(p, value->type);
    if (value->type || p->upstream)
        cm_put(p, " ", 1);
    cm_put_name(p, value->name);
    if (p->upstream)
        return;
    if (value->msg.has & CM_NOTES_VALUE)
        cm_put(p, " ", 1);
    cm_print_notes(p, &cm_value_info_info, value, CM_NOTES_VALUE);
}
