/* If, Loop and Scan: bodies become functions, which are given what they read from outside. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/savedmodel/tf_rows.h"

#include "graph/clone.h"
#include "graph/op.h"

#include <string.h>

bool cm_tf_is_control_flow(struct cm_str domain, struct cm_str op_type)
{
    return (!domain.size || cm_str_is(domain, "ai.onnx")) &&
           (cm_str_is(op_type, "If") || cm_str_is(op_type, "Loop") || cm_str_is(op_type, "Scan"));
}

/* ---- functions ---- */

static struct cm_tf_scope begin_function(const struct cm_tf_scope *outer, const char *what)
{
    struct cm_tf_writer *writer = outer->writer;
    struct cm_tf_graph *graph = CM_NEW(writer->arena, struct cm_tf_graph);

    *graph = (struct cm_tf_graph){
        .arena = writer->arena,
        .is_function = true,
        .name = cm_arena_printf(writer->arena, "%s_%zu", what, writer->functions.count)};
    *CM_PUSH(writer->arena, &writer->functions) = graph;
    return (struct cm_tf_scope){.writer = writer, .module = outer->module, .graph = graph};
}

static void give(struct cm_tf_scope *function, struct cm_tf_tensor tensor)
{
    *CM_PUSH(function->graph->arena, &function->graph->results) = tensor;
    tensor.node->uses++;
}

/* The results of a body, once its nodes are there. */
static enum cm_status give_values(struct cm_tf_scope *function, const struct cm_graph *body,
                                  size_t first, size_t count, struct cm_error *err)
{
    for (size_t i = first; i < first + count; i++) {
        const struct cm_tf_tensor tensor = cm_tf_value(function, body->outputs[i].value);
        if (!tensor.node)
            return cm_fail(err, CM_UNSUPPORTED, "result %zu of its body cannot be expressed", i);
        give(function, tensor);
    }
    return CM_OK;
}

/* Tensors of the graph around that the bodies of a node read. */
struct captured {
    cm_value *values;
    size_t count;
};

static enum cm_status put_captured(struct cm_tf_scope *scope, struct cm_tf_node *node,
                                   const struct captured *captured, struct cm_error *err)
{
    for (size_t i = 0; i < captured->count; i++) {
        const struct cm_tf_tensor tensor = cm_tf_value(scope, captured->values[i]);
        if (!tensor.node)
            return cm_fail(err, CM_UNSUPPORTED, "its body reads what cannot be expressed");
        cm_tf_input(scope->graph, node, tensor);
    }
    return CM_OK;
}

static void take_captured(struct cm_tf_scope *outer, struct cm_tf_scope *function,
                          const struct captured *captured)
{
    for (size_t i = 0; i < captured->count; i++)
        cm_tf_set_value(
            function, captured->values[i],
            cm_tf_argument(function->graph, cm_tf_value(outer, captured->values[i]).type));
}

/* ---- nodes with functions ---- */

static struct cm_str shape_of(struct cm_tf_scope *scope, cm_value value)
{
    const struct cm_type *type = cm_value_get(scope->module, value)->fact.type;
    int64_t dims[CM_MAX_RANK];

    for (int i = 0; i < type->rank; i++)
        dims[i] = type->dims[i].value;
    return cm_tf_shape(scope->graph->arena, dims, type->rank);
}

static void put_types(struct cm_tf_graph *graph, struct cm_tf_node *node, const char *attr,
                      const struct cm_tf_tensor *tensors, size_t count)
{
    enum cm_tf_type *types = CM_NEW_ARRAY(graph->arena, enum cm_tf_type, count + 1);

    for (size_t i = 0; i < count; i++)
        types[i] = tensors[i].type;
    cm_tf_attr_types(node, cm_str(attr), types, count);
}

static bool is_random(const struct cm_node *node)
{
    for (size_t i = 0; i < node->n_bodies; i++)
        if (node->bodies[i].graph && cm_graph_has_effect(node->bodies[i].graph, CM_RANDOM))
            return true;
    return false;
}

static struct cm_str own_name(const struct cm_tf_scope *scope)
{
    return cm_arena_printf(scope->graph->arena, "%.*s%.*s", CM_STR_ALL(scope->label),
                           CM_STR_ALL(scope->at));
}

/* ---- If ---- */

static enum cm_status put_branch(struct cm_tf_scope *scope, const struct cm_node *node,
                                 const char *attribute, const struct captured *captured,
                                 struct cm_tf_node *to, const char *attr, struct cm_tf_graph **out,
                                 struct cm_error *err)
{
    struct cm_graph *body = cm_node_body(node, attribute);
    struct cm_tf_scope function = begin_function(scope, "branch");

    if (!body)
        return cm_fail(err, CM_UNSUPPORTED, "its body '%s' has no types", attribute);
    take_captured(scope, &function, captured);
    CM_TRY(cm_tf_nodes(&function, body, err));
    CM_TRY(give_values(&function, body, 0, body->n_outputs, err));
    cm_tf_attr_function(to, cm_str(attr), function.graph->name);
    *out = function.graph;
    return CM_OK;
}

static enum cm_status put_if(struct cm_tf_scope *scope, const struct cm_node *node,
                             struct cm_error *err)
{
    struct cm_arena *arena = scope->graph->arena;
    struct captured captured = {.count = 0};
    struct cm_tf_graph *then_branch, *else_branch;
    enum cm_status status = CM_OK;
    const struct cm_str name = own_name(scope);
    const struct cm_str condition = cm_tf_value_name(scope, cm_node_input(node, 0));

    captured.count = cm_node_captured(node, arena, &captured.values);
    const size_t use = ++scope->writer->n_uses;
    cm_tf_linef(scope, &status, err, "%%n%zu_condition = Reshape(%.*s, i32 [])", use,
                CM_STR_ALL(condition));
    CM_TRY(status);
    struct cm_tf_node *to = cm_tf_add(scope->graph, is_random(node) ? "If" : "StatelessIf", name);
    const struct cm_tf_tensor flag =
        cm_tf_find(scope, cm_arena_printf(arena, "%%n%zu_condition", use));
    cm_tf_input(scope->graph, to, flag);
    CM_TRY(put_captured(scope, to, &captured, err));
    CM_TRY(put_branch(scope, node, "then_branch", &captured, to, "then_branch", &then_branch, err));
    CM_TRY(put_branch(scope, node, "else_branch", &captured, to, "else_branch", &else_branch, err));
    cm_tf_attr_type(to, CM_STR("Tcond"), flag.type);
    put_types(scope->graph, to, "Tin", then_branch->arguments.items, then_branch->arguments.count);
    put_types(scope->graph, to, "Tout", then_branch->results.items, then_branch->results.count);
    struct cm_str *shapes = CM_NEW_ARRAY(arena, struct cm_str, (size_t)node->n_outputs + 1);
    for (size_t i = 0; i < then_branch->results.count; i++) {
        const struct cm_tf_tensor made =
            cm_tf_output(scope->graph, to, "output", then_branch->results.items[i].type);
        const cm_value value = cm_node_output(node, (int)i);
        shapes[i] = value ? shape_of(scope, value) : cm_tf_shape(arena, NULL, -1);
        if (value)
            cm_tf_set_value(scope, value, made);
    }
    cm_tf_attr_shapes(to, CM_STR("output_shapes"), shapes, then_branch->results.count);
    return CM_OK;
}

/* ---- Loop and Scan ---- */

/* What is carried from iteration to iteration, in this order: the iteration, their number, the
 * condition; states; lists of what is stacked; what Scan goes over; what is captured. */
struct loop {
    struct cm_tf_scope *scope;
    const struct cm_node *node;
    struct cm_graph *body;
    struct captured captured;
    bool is_scan;
    size_t use;      /* prefix of names */
    size_t n_states; /* of the node */
    size_t n_stacked;
    size_t n_scanned;
    CM_ARRAY(struct cm_tf_tensor) carried;
    CM_ARRAY(struct cm_str) shapes;
    enum cm_status status;
    struct cm_error *err;
};

#define LINE(l, to, ...) cm_tf_linef((to), &(l)->status, (l)->err, __VA_ARGS__)

static struct cm_str local(const struct loop *l, const char *what, size_t i)
{
    return cm_arena_printf(l->scope->graph->arena, "%%n%zu_%s%zu", l->use, what, i);
}

static int64_t listed(const struct loop *l, const char *attribute, size_t i)
{
    const struct cm_int64s list = cm_node_ints(l->node, attribute);

    return i < list.count ? list.items[i] : 0;
}

static void carry(struct loop *l, struct cm_str name, struct cm_str shape)
{
    const struct cm_tf_tensor tensor = cm_tf_find(l->scope, name);

    if (l->status != CM_OK)
        return;
    if (!tensor.node) {
        l->status = cm_fail(l->err, CM_UNSUPPORTED, "what it reads cannot be expressed");
        return;
    }
    *CM_PUSH(l->scope->graph->arena, &l->carried) = tensor;
    *CM_PUSH(l->scope->graph->arena, &l->shapes) = shape;
}

/* The value of the body that result i of the body is. */
static const struct cm_type *stacked_type(const struct loop *l, size_t i)
{
    const size_t first = l->n_states + (l->is_scan ? 0 : 1);

    return cm_value_get(l->scope->module, l->body->outputs[first + i].value)->fact.type;
}

/* The shape of an element as a literal: "i32 [2, -1]". */
static struct cm_str element_shape(const struct loop *l, const struct cm_type *type)
{
    struct cm_arena *arena = l->scope->graph->arena;
    struct cm_str text = CM_STR("i32 [");

    if (type->rank == CM_RANK_UNKNOWN)
        return CM_STR("i32 -1");
    for (int i = 0; i < type->rank; i++)
        text = cm_arena_printf(arena, "%.*s%s%lld", CM_STR_ALL(text), i ? ", " : "",
                               (long long)type->dims[i].value);
    return cm_arena_printf(arena, "%.*s]", CM_STR_ALL(text));
}

static struct cm_str input_name(const struct loop *l, size_t i)
{
    return cm_tf_value_name(l->scope, cm_node_input(l->node, (int)i));
}

/* How many iterations there are, at most. */
static void put_count(struct loop *l)
{
    const struct cm_node *node = l->node;
    const struct cm_str count = local(l, "count", 0), go = local(l, "go", 0);

    if (l->is_scan) {
        const size_t first = l->n_states;
        const struct cm_str scanned = input_name(l, first);
        LINE(l, l->scope, "%%n%zu_sizes = Shape(%.*s) {out_type: i64}", l->use,
             CM_STR_ALL(scanned));
        LINE(l, l->scope, "%.*s = GatherV2(%%n%zu_sizes, i32 %lld, i32 0)", CM_STR_ALL(count),
             l->use, (long long)listed(l, "scan_input_axes", 0));
    } else if (cm_node_input(node, 0)) {
        LINE(l, l->scope, "%.*s = Reshape(%.*s, i32 [])", CM_STR_ALL(count),
             CM_STR_ALL(input_name(l, 0)));
    } else {
        LINE(l, l->scope, "%.*s = Identity(i64 9223372036854775807)", CM_STR_ALL(count));
    }
    if (!l->is_scan && cm_node_input(node, 1))
        LINE(l, l->scope, "%.*s = Reshape(%.*s, i32 [])", CM_STR_ALL(go),
             CM_STR_ALL(input_name(l, 1)));
    else
        LINE(l, l->scope, "%.*s = Identity(bool true)", CM_STR_ALL(go));
}

static void begin_carried(struct loop *l)
{
    struct cm_arena *arena = l->scope->graph->arena;
    const struct cm_str scalar = cm_tf_shape(arena, NULL, 0), any = cm_tf_shape(arena, NULL, -1);
    const size_t first = l->is_scan ? 0 : 2;

    put_count(l);
    LINE(l, l->scope, "%.*s = Identity(i64 0)", CM_STR_ALL(local(l, "at", 0)));
    carry(l, local(l, "at", 0), scalar);
    carry(l, local(l, "count", 0), scalar);
    carry(l, local(l, "go", 0), scalar);
    for (size_t i = 0; i < l->n_states; i++)
        carry(l, input_name(l, first + i), any);
    for (size_t i = 0; i < l->n_stacked; i++) {
        const struct cm_type *type = stacked_type(l, i);
        const char *name = cm_tf_type_name(cm_tf_type_of(type->dtype));
        LINE(l, l->scope, "%.*s = EmptyTensorList(%.*s, -1) {element_dtype: %s}",
             CM_STR_ALL(local(l, "list", i)), CM_STR_ALL(element_shape(l, type)), name);
        carry(l, local(l, "list", i), scalar);
    }
    for (size_t i = 0; i < l->n_scanned; i++)
        carry(l, input_name(l, l->n_states + i), any);
    for (size_t i = 0; i < l->captured.count; i++)
        carry(l, cm_tf_value_name(l->scope, l->captured.values[i]), any);
}

/* A function of all that is carried, under the names that it has outside. */
static struct cm_tf_scope carried_function(struct loop *l, const char *what)
{
    struct cm_tf_scope function = begin_function(l->scope, what);

    for (size_t i = 0; i < l->carried.count; i++)
        (void)cm_tf_argument(function.graph, l->carried.items[i].type);
    return function;
}

static struct cm_str put_condition(struct loop *l)
{
    struct cm_tf_scope function = carried_function(l, "condition");
    const struct cm_tf_tensor *arguments = function.graph->arguments.items;

    cm_tf_define(&function, CM_STR("%i"), arguments[0]);
    cm_tf_define(&function, CM_STR("%n"), arguments[1]);
    cm_tf_define(&function, CM_STR("%go"), arguments[2]);
    function.at = CM_STR("goes_on");
    LINE(l, &function, "%%inside = Less(%%i, %%n)");
    LINE(l, &function, "%%both = LogicalAnd(%%inside, %%go)");
    if (l->status == CM_OK)
        give(&function, cm_tf_find(&function, CM_STR("%both")));
    return function.graph->name;
}

/* What Scan's body reads in this iteration: one slice. */
static void put_slices(struct loop *l, struct cm_tf_scope *function,
                       const struct cm_tf_tensor *scanned)
{
    LINE(l, function, "%%last = Sub(%%count, i64 1)");
    LINE(l, function, "%%back = Sub(%%last, %%i)");
    for (size_t i = 0; i < l->n_scanned; i++) {
        const cm_value value = l->body->inputs[l->n_states + i];
        const struct cm_type *type =
            cm_value_get(l->scope->module, cm_node_input(l->node, (int)(l->n_states + i)))
                ->fact.type;
        int64_t axis = listed(l, "scan_input_axes", i);

        axis += axis < 0 && type->rank > 0 ? type->rank : 0;
        cm_tf_define(function, CM_STR("%scanned"), scanned[i]);
        LINE(l, function, "%.*s = GatherV2(%%scanned, %s, i32 %lld)",
             CM_STR_ALL(cm_tf_value_name(function, value)),
             listed(l, "scan_input_directions", i) ? "%back" : "%i", (long long)axis);
    }
}

static struct cm_str put_body(struct loop *l)
{
    struct cm_tf_scope function = carried_function(l, "body");
    const struct cm_tf_tensor *arguments = function.graph->arguments.items;
    const size_t states = 3, lists = states + l->n_states, scanned = lists + l->n_stacked;
    const size_t captured = scanned + l->n_scanned, first = l->is_scan ? 0 : 2;

    function.at = CM_STR("loop");
    cm_tf_define(&function, CM_STR("%i"), arguments[0]);
    cm_tf_define(&function, CM_STR("%count"), arguments[1]);
    if (!l->is_scan) {
        cm_tf_set_value(&function, l->body->inputs[0], arguments[0]);
        cm_tf_set_value(&function, l->body->inputs[1], arguments[2]);
    }
    for (size_t i = 0; i < l->n_states; i++)
        cm_tf_set_value(&function, l->body->inputs[first + i], arguments[states + i]);
    for (size_t i = 0; i < l->captured.count; i++)
        cm_tf_set_value(&function, l->captured.values[i], arguments[captured + i]);
    if (l->is_scan)
        put_slices(l, &function, arguments + scanned);
    LINE(l, &function, "%%next = AddV2(%%i, i64 1)");
    if (l->status == CM_OK)
        l->status = cm_tf_nodes(&function, l->body, l->err);
    if (l->status != CM_OK)
        return CM_STR_NONE;
    give(&function, cm_tf_find(&function, CM_STR("%next")));
    give(&function, arguments[1]);
    if (l->is_scan) {
        give(&function, arguments[2]);
    } else {
        function.at = CM_STR("go");
        cm_tf_define(&function, CM_STR("%wanted"),
                     cm_tf_value(&function, l->body->outputs[0].value));
        LINE(l, &function, "%%go = Reshape(%%wanted, i32 [])");
        if (l->status != CM_OK)
            return CM_STR_NONE;
        give(&function, cm_tf_find(&function, CM_STR("%go")));
    }
    const size_t own = l->is_scan ? 0 : 1;
    if (l->status == CM_OK)
        l->status = give_values(&function, l->body, own, l->n_states, l->err);
    for (size_t i = 0; i < l->n_stacked; i++) {
        const struct cm_str item =
            cm_tf_value_name(&function, l->body->outputs[own + l->n_states + i].value);
        cm_tf_define(&function, CM_STR("%list"), arguments[lists + i]);
        LINE(l, &function, "%%longer = TensorListPushBack(%%list, %.*s)", CM_STR_ALL(item));
        if (l->status == CM_OK)
            give(&function, cm_tf_find(&function, CM_STR("%longer")));
    }
    for (size_t i = scanned; i < l->carried.count && l->status == CM_OK; i++)
        give(&function, arguments[i]);
    return function.graph->name;
}

/* A stacked result, its new axis put where Scan wants it. */
static void put_stacked(struct loop *l, size_t i, struct cm_tf_tensor list, cm_value value)
{
    const struct cm_type *type = stacked_type(l, i);
    const struct cm_str list_name = local(l, "stack", i), raw = local(l, "raw", i);
    const struct cm_str turned = local(l, "turned", i), name = cm_tf_value_name(l->scope, value);
    const bool is_back = l->is_scan && listed(l, "scan_output_directions", i);
    int64_t axis = l->is_scan ? listed(l, "scan_output_axes", i) : 0;

    axis += axis < 0 ? type->rank + 1 : 0;
    cm_tf_define(l->scope, list_name, list);
    LINE(l, l->scope, "%.*s = TensorListStack(%.*s, %.*s) {element_dtype: %s}",
         CM_STR_ALL(is_back || axis ? raw : name), CM_STR_ALL(list_name),
         CM_STR_ALL(element_shape(l, type)), cm_tf_type_name(cm_tf_type_of(type->dtype)));
    if (is_back)
        LINE(l, l->scope, "%.*s = ReverseV2(%.*s, i32 [0])", CM_STR_ALL(axis ? turned : name),
             CM_STR_ALL(raw));
    if (!axis)
        return;
    struct cm_str order = CM_STR("");
    for (int64_t a = 0; a <= type->rank; a++)
        order =
            cm_arena_printf(l->scope->graph->arena, "%.*s%s%lld", CM_STR_ALL(order), a ? ", " : "",
                            (long long)(a < axis    ? a + 1
                                        : a == axis ? 0
                                                    : a));
    LINE(l, l->scope, "%.*s = Transpose(%.*s, i32 [%.*s])", CM_STR_ALL(name),
         CM_STR_ALL(is_back ? turned : raw), CM_STR_ALL(order));
}

static enum cm_status put_loop(struct cm_tf_scope *scope, const struct cm_node *node, bool is_scan,
                               struct cm_error *err)
{
    struct loop l = {.scope = scope,
                     .node = node,
                     .body = cm_node_body(node, "body"),
                     .is_scan = is_scan,
                     .use = ++scope->writer->n_uses,
                     .err = err};
    const struct cm_str name = own_name(scope);

    if (!l.body)
        return cm_fail(err, CM_UNSUPPORTED, "its body has no types");
    l.n_scanned = is_scan ? (size_t)cm_node_int(node, "num_scan_inputs") : 0;
    l.n_states = l.body->n_inputs - (is_scan ? l.n_scanned : 2);
    l.n_stacked = l.body->n_outputs - l.n_states - (is_scan ? 0 : 1);
    l.captured.count = cm_node_captured(node, scope->graph->arena, &l.captured.values);
    begin_carried(&l);
    CM_TRY(l.status);
    struct cm_tf_node *to =
        cm_tf_add(scope->graph, is_random(node) ? "While" : "StatelessWhile", name);
    for (size_t i = 0; i < l.carried.count; i++)
        cm_tf_input(scope->graph, to, l.carried.items[i]);
    put_types(scope->graph, to, "T", l.carried.items, l.carried.count);
    cm_tf_attr_function(to, CM_STR("cond"), put_condition(&l));
    cm_tf_attr_function(to, CM_STR("body"), put_body(&l));
    cm_tf_attr_shapes(to, CM_STR("output_shapes"), l.shapes.items, l.shapes.count);
    cm_tf_attr_int(to, CM_STR("parallel_iterations"), 10);
    for (size_t i = 0; i < l.carried.count && l.status == CM_OK; i++) {
        const struct cm_tf_tensor made =
            cm_tf_output(scope->graph, to, "output", l.carried.items[i].type);
        if (i < 3 || i - 3 >= l.n_states + l.n_stacked)
            continue;
        const cm_value value = cm_node_output(node, (int)i - 3);
        if (value && i - 3 < l.n_states)
            cm_tf_set_value(scope, value, made);
        else if (value)
            put_stacked(&l, i - 3 - l.n_states, made, value);
    }
    return l.status;
}

enum cm_status cm_tf_control_flow(struct cm_tf_scope *scope, const struct cm_node *node,
                                  struct cm_error *err)
{
    return cm_str_is(node->op_type, "If")
               ? put_if(scope, node, err)
               : put_loop(scope, node, cm_str_is(node->op_type, "Scan"), err);
}
