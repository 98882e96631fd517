/* Graphs before and after a pass. */
// SPDX-License-Identifier: Apache-2.0
#include "before_after.h"

#include "tensor/half.h"

#include <ctype.h>
#include <math.h>

/* From -1 to 1, the same for the same name and element on every machine. */
static double noise(struct cm_str name, int64_t i)
{
    uint64_t x = 0x9e3779b97f4a7c15u * (uint64_t)(i + 1);
    for (size_t c = 0; c < name.size; c++)
        x = (x ^ (uint64_t)(unsigned char)name.data[c]) * 0xbf58476d1ce4e5b9u;
    x ^= x >> 31;
    x *= 0x94d049bb133111ebu;
    x ^= x >> 29;
    return (double)(x >> 11) * 0x1p-52 - 1;
}

static void fill(struct cm_tensor *tensor, struct cm_str name)
{
    const enum cm_dtype_class kind = cm_dtype_info(tensor->type)->kind;
    for (int64_t i = 0; i < cm_tensor_count(tensor); i++) {
        const double number = noise(name, i);
        const double value = name.data[0] == 'V' ? 1.25 + number : number;
        if (tensor->type == CM_DOUBLE) {
            ((double *)tensor->data)[i] = value;
        } else if (tensor->type == CM_FLOAT) {
            ((float *)tensor->data)[i] = (float)value;
        } else if (kind == CM_CLASS_FLOAT) {
            const float narrow = (float)value;
            cm_narrow_store(tensor->type, tensor->data, i, 1, &narrow);
        } else if (tensor->type == CM_INT64) {
            ((int64_t *)tensor->data)[i] = (int64_t)(number * 10);
        } else {
            CHECK_INT(cm_dtype_size(tensor->type), 1);
            ((uint8_t *)tensor->data)[i] = number > 0;
        }
    }
}

static void new_tensor(struct cm_graph *graph, cm_value value, struct cm_tensor *out)
{
    const struct cm_value_def *def = cm_value_get(graph->module, value);
    struct cm_shape shape = {.rank = def->fact.type->rank};
    struct cm_error err = {0};
    for (int a = 0; a < shape.rank; a++) /* a symbol stands for 3 */
        shape.dims[a] = cm_dim_known(def->fact.type->dims[a]) ? def->fact.type->dims[a].value : 3;
    CHECK_OK(cm_tensor_new(def->fact.type->dtype, &shape, out, &err), &err);
    fill(out, def->name);
}

struct cm_graph *before_after_graph(struct cm_arena *arena, const char *text)
{
    struct cm_graph *graph = graph_of(arena, text, NULL);
    struct cm_error err = {0};
    for (size_t i = 0; i < graph->n_inputs; i++) {
        struct cm_tensor tensor;
        if (!isupper((unsigned char)cm_value_get(graph->module, graph->inputs[i])->name.data[0]))
            continue;
        new_tensor(graph, graph->inputs[i], &tensor);
        const cm_value constant = cm_graph_add_constant(graph, CM_STR_NONE, &tensor);
        cm_tensor_drop(&tensor);
        cm_value_replace(graph->module, graph->inputs[i], constant);
    }
    CHECK_OK(cm_graph_retype(graph, &err), &err);
    return graph;
}

const char *before_after_operators(struct cm_arena *arena, const struct cm_graph *graph)
{
    const char *text = "";
    for (const struct cm_node *node = graph->first; node; node = node->next) {
        text = cm_arena_printf(arena, "%s%s%.*s", text, *text ? " " : "", CM_STR_FMT(node->op_type))
                   .data;
        for (size_t i = 0; i < node->n_bodies; i++)
            text = cm_arena_printf(arena, "%s(%s)", text,
                                   before_after_operators(arena, node->bodies[i].graph))
                       .data;
    }
    return text;
}

static void check_order(struct cm_graph *graph)
{
    const struct cm_marks places = cm_marks_begin(graph->module);
    uint32_t place = 1;
    for (struct cm_node *node = graph->first; node; node = node->next)
        cm_mark_set(&places, node, place++);
    for (struct cm_node *node = graph->first; node; node = node->next)
        for (int i = 0; i < node->n_inputs; i++) {
            if (!node->inputs[i].value)
                continue;
            const struct cm_value_def *def = cm_value_get(graph->module, node->inputs[i].value);
            if (def->node && def->graph == graph &&
                cm_mark_get(&places, def->node) >= cm_mark_get(&places, node))
                fail_msg("%s stands before what it reads", cm_node_describe(node).text);
        }
}

static void run(struct cm_arena *arena, struct cm_graph *graph, struct cm_datum *out)
{
    const struct cm_datum **in = CM_NEW_ARRAY(arena, const struct cm_datum *, graph->n_inputs);
    struct cm_datum *data = cm_data_new(arena, graph->n_inputs);
    struct cm_error err = {0};
    for (size_t i = 0; i < graph->n_inputs; i++) {
        data[i].kind = CM_KIND_TENSOR;
        new_tensor(graph, graph->inputs[i], &data[i].tensor);
        in[i] = &data[i];
    }
    check_order(graph);
    CHECK_OK(cm_graph_eval(graph, in, graph->n_inputs, out, NULL, &err), &err);
}

void before_after_same(struct cm_arena *arena, struct cm_graph *before, struct cm_graph *after,
                       double tolerance)
{
    CHECK_INT(after->n_outputs, before->n_outputs);
    struct cm_datum *expected = cm_data_new(arena, before->n_outputs);
    struct cm_datum *actual = cm_data_new(arena, before->n_outputs);
    run(arena, before, expected);
    run(arena, after, actual);
    for (size_t o = 0; o < before->n_outputs; o++) {
        const struct cm_value_def *old = cm_value_get(before->module, before->outputs[o].value);
        const struct cm_value_def *new = cm_value_get(after->module, after->outputs[o].value);
        const struct cm_tensor *a = &expected[o].tensor, *b = &actual[o].tensor;
        CHECK(cm_str_equal(old->name, new->name));
        CHECK_INT(b->type, a->type);
        CHECK_INT(new->fact.type->dtype, a->type);
        CHECK(cm_shape_equal(&a->shape, &b->shape));
        if (tolerance == 0) {
            CHECK(!memcmp(a->data, b->data, cm_tensor_bytes(a)));
            continue;
        }
        double largest = 0;
        for (int64_t i = 0; i < cm_tensor_count(a); i++)
            largest = fmax(largest, fabs(cm_tensor_real(a, i)));
        for (int64_t i = 0; i < cm_tensor_count(a); i++)
            if (!(fabs(cm_tensor_real(a, i) - cm_tensor_real(b, i)) <= tolerance * largest))
                fail_msg("output %zu element %lld is %.9g, expected %.9g", o, (long long)i,
                         cm_tensor_real(b, i), cm_tensor_real(a, i));
    }
}

void before_after_check(struct cm_arena *arena, const struct before_after *c)
{
    struct cm_graph *before = before_after_graph(arena, c->text);
    struct cm_graph *after = before_after_graph(arena, c->text);
    struct cm_error err = {0};
    CHECK_OK(c->pass(after, &c->options, &err), &err);
    CHECK_STRING(before_after_operators(arena, after), c->expected);
    before_after_same(arena, before, after, c->tolerance);
}
