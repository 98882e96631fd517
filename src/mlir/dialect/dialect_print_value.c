/* Values of the ONNX dialect: names of ONNX to those of MLIR, operands and their types. */
// SPDX-License-Identifier: Apache-2.0
#include "mlir/dialect/dialect_print.h"

static const struct cm_dialect_value *dialect_find(const struct cm_dialect_out *o,
                                                   const struct cm_dialect_scope *scope,
                                                   struct cm_str name)
{
    static const struct cm_dialect_value none = {{"%none", 5}, {"none", 4}};

    for (; name.size && scope; scope = scope->outer) {
        const uint64_t found = cm_map_get(&scope->names, name, 0);
        if (found)
            return &o->values.items[found - 1];
    }
    return name.size ? NULL : &none;
}

bool cm_dialect_knows(const struct cm_dialect_scope *scope, struct cm_str name)
{
    for (; scope; scope = scope->outer)
        if (cm_map_find(&scope->names, name))
            return true;
    return false;
}

void cm_dialect_define(struct cm_dialect_out *o, struct cm_dialect_scope *scope, struct cm_str name,
                       struct cm_str ssa, struct cm_str type)
{
    *CM_PUSH(o->arena, &o->values) = (struct cm_dialect_value){ssa, type};
    *cm_map_insert(&scope->names, o->arena, name, NULL) = o->values.count;
}

void cm_dialect_put_line(struct cm_dialect_out *o)
{
    cm_put_text(&o->pen, "\n");
    cm_put_spaces(&o->pen, o->pen.indent);
}

static void put_each(struct cm_dialect_out *o, const struct cm_dialect_scope *scope,
                     const struct cm_strs *names, bool types)
{
    for (size_t i = 0; i < names->count && o->pen.status == CM_OK; i++) {
        const struct cm_dialect_value *const value = dialect_find(o, scope, names->items[i]);
        if (i)
            cm_put_text(&o->pen, ", ");
        cm_put_str(&o->pen, types ? value->type : value->ssa);
    }
}

void cm_dialect_put_operands(struct cm_dialect_out *o, const struct cm_dialect_scope *scope,
                             const struct cm_strs *names)
{
    cm_put_text(&o->pen, "(");
    put_each(o, scope, names, false);
    cm_put_text(&o->pen, ")");
}

void cm_dialect_put_types(struct cm_dialect_out *o, const struct cm_dialect_scope *scope,
                          const struct cm_strs *names)
{
    cm_put_text(&o->pen, "(");
    put_each(o, scope, names, true);
    cm_put_text(&o->pen, ")");
}

void cm_dialect_put_end(struct cm_dialect_out *o, const struct cm_dialect_scope *scope,
                        const char *name, const struct cm_strs *names)
{
    cm_dialect_put_line(o);
    if (o->options->generic) {
        cm_put_text(&o->pen, "\"onnx.");
        cm_put_text(&o->pen, name);
        cm_put_text(&o->pen, "\"");
        cm_dialect_put_operands(o, scope, names);
        cm_put_text(&o->pen, " : ");
        cm_dialect_put_types(o, scope, names);
        cm_put_text(&o->pen, " -> ()");
        return;
    }
    cm_put_text(&o->pen, "onnx.");
    cm_put_text(&o->pen, name);
    if (!names->count)
        return;
    cm_put_text(&o->pen, " ");
    put_each(o, scope, names, false);
    cm_put_text(&o->pen, " : ");
    put_each(o, scope, names, true);
}
