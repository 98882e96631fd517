/* The table of TensorFlow's operators:
 *
 *     ConcatV2 values:N*T axis:Tidx -> output:T ; N=int T=type:* Tidx=type:i32,i64
 *
 * N*T: as many as the attribute N says; *T: of the types that the list T has; a type by its name
 * is always that one. Behind a type's attribute stand the types that kernels take, and after a
 * slash its default. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/framework_texts.h"
#include "convert/savedmodel/tf_rows.h"

#include <string.h>

static struct cm_str next_word(struct cm_str *rest, char end)
{
    size_t size = 0;

    while (size < rest->size && rest->data[size] != end)
        size++;
    const struct cm_str word = {rest->data, size};
    *rest = cm_str_from(*rest, size + (size < rest->size));
    return word;
}

static struct cm_tf_arg read_arg(struct cm_str word)
{
    struct cm_tf_arg arg = {.name = next_word(&word, ':')};
    const char *star = word.size ? memchr(word.data, '*', word.size) : NULL;

    arg.is_list = star == word.data;
    if (star && !arg.is_list)
        arg.number = next_word(&word, '*');
    else if (star)
        word = cm_str_from(word, 1);
    arg.type = cm_tf_type_named(word);
    if (!arg.type)
        arg.type_attr = word;
    return arg;
}

static struct cm_tf_attr_fact read_attr(struct cm_str word)
{
    static const char *const kinds[] = {"int",   "float", "bool",  "text",    "type",
                                        "types", "ints",  "shape", "function"};
    struct cm_tf_attr_fact fact = {.name = next_word(&word, '=')};
    const int kind = cm_str_place(next_word(&word, ':'), kinds, CM_COUNT(kinds));

    fact.kind = kind < 0 ? CM_TF_ATTR_OTHER : (enum cm_tf_attr_kind)kind;
    struct cm_str types = next_word(&word, '/');
    fact.preset = cm_tf_type_named(word);
    if (cm_str_is(types, "*"))
        fact.types = UINT64_MAX;
    while (types.size)
        fact.types |= UINT64_C(1) << (unsigned)cm_tf_type_named(next_word(&types, ','));
    return fact;
}

static struct cm_tf_op *read_operator(struct cm_arena *arena, struct cm_str line)
{
    struct cm_tf_op *op = CM_NEW(arena, struct cm_tf_op);
    enum { OPERANDS, RESULTS, ATTRIBUTES } part = OPERANDS;

    op->name = next_word(&line, ' ');
    while (line.size) {
        const struct cm_str word = next_word(&line, ' ');

        if (cm_str_is(word, "->"))
            part = RESULTS;
        else if (cm_str_is(word, ";"))
            part = ATTRIBUTES;
        else if (part == OPERANDS && op->n_in < CM_TF_ARGS)
            op->in[op->n_in++] = read_arg(word);
        else if (part == RESULTS && op->n_out < CM_TF_ARGS)
            op->out[op->n_out++] = read_arg(word);
        else if (part == ATTRIBUTES && op->n_attrs < CM_TF_ATTRS)
            op->attrs[op->n_attrs++] = read_attr(word);
    }
    return op;
}

/* All lines of the table, each read when its operator is first asked for. */
static void list_operators(struct cm_tf_writer *writer)
{
    const struct cm_template_text *text =
        cm_framework_text("tensorflow", CM_STR("lib"), CM_STR("operators"));
    struct cm_str rest = text ? (struct cm_str){text->text, text->size} : CM_STR_NONE;

    while (rest.size) {
        const struct cm_str line = next_word(&rest, '\n');
        struct cm_str words = line;
        const struct cm_str name = next_word(&words, ' ');

        if (line.size && line.data[0] != '/')
            *cm_map_insert(&writer->operators, writer->arena, name, NULL) =
                CM_ADDRESS(read_operator(writer->arena, line));
    }
}

const struct cm_tf_op *cm_tf_operator(struct cm_tf_writer *writer, struct cm_str name)
{
    if (!writer->operators.count)
        list_operators(writer);
    return (const struct cm_tf_op *)(uintptr_t)cm_map_get(&writer->operators, name, 0);
}
