/* Registered operators whose body or gradient is a text: written once, or made for each use. */
// SPDX-License-Identifier: Apache-2.0
#include "api/custom.h"

#include "graph/function.h"
#include "onnx/syntax.h"

/* A node as the maker of a text sees it. */
struct cameo_use {
    const struct cm_node *node;
    struct cm_arena *arena;
    struct cm_str text;
    struct cm_error *err, *exhausted;
    bool told; /* a reason is noted */
};

/* ---- making ---- */

/* The function for this node, by asking for its text. */
static enum cm_status make(const struct cm_custom *custom, cameo_use_fn *maker,
                           const struct cm_node *node, const struct cm_function_proto **out,
                           struct cm_error *err)
{
    struct cm_arena *arena = cm_module_arena(node->module);
    struct cm_error exhausted = {0};
    struct cameo_use use = {.node = node, .arena = arena, .err = err, .exhausted = &exhausted};
    const enum cameo_status status = maker(&use, custom->arg);

    cm_custom_resume(arena, &exhausted);
    if (status != CAMEO_OK)
        return use.told ? (enum cm_status)status
                        : cm_fail(err, (enum cm_status)status, "the function that makes it failed");
    if (!use.text.data)
        return cm_fail(err, CM_BAD_ARGUMENT, "the function that makes it gave no text");
    struct cm_function_proto *function = CM_NEW(arena, struct cm_function_proto);
    CM_TRY(cm_syntax_parse_function(use.text, arena, function, err));
    *out = function;
    return CM_OK;
}

enum cm_status cm_custom_body(struct cm_body *b)
{
    const struct cm_custom *custom = b->node->op->arg;
    const struct cm_function_proto *function;
    enum cm_status status = make(custom, custom->make_body, b->node, &function, b->build.err);

    if (status == CM_OK && function->input.count < (size_t)b->node->n_inputs)
        status = cm_fail(b->build.err, CM_BAD_ARGUMENT, "it has %zu inputs, the node %d",
                         function->input.count, b->node->n_inputs);
    if (status == CM_OK && function->output.count < (size_t)b->node->n_outputs)
        status = cm_fail(b->build.err, CM_BAD_ARGUMENT, "it has %zu outputs, the node %d",
                         function->output.count, b->node->n_outputs);
    if (status)
        return cm_error_context(b->build.err, status, "its body");
    cm_value *actuals = CM_NEW_ARRAY(cm_builder_arena(&b->build), cm_value, function->input.count);
    cm_value *results = CM_NEW_ARRAY(cm_builder_arena(&b->build), cm_value, function->output.count);
    for (int i = 0; i < b->node->n_inputs; i++)
        actuals[i] = cm_body_input(b, i);
    CM_TRY(cm_function_apply(&b->build, function, b->node, actuals, results));
    for (int o = 0; o < b->node->n_outputs; o++)
        CM_TRY(cm_body_return(b, o, results[o]));
    return CM_OK;
}

/* ---- gradients ---- */

/* The operand of this name among the params of one side, or SIZE_MAX. What a variadic one stands
 * for is called NAME_0, NAME_1 and so on. */
static size_t operand_called(const struct cm_schema_param *params, size_t count, struct cm_str name)
{
    for (size_t i = 0; i < count; i++) {
        const struct cm_str own = cm_str(params[i].name);
        int64_t number;

        if (cm_str_equal(own, name))
            return i;
        if (params[i].kind != CM_PARAM_VARIADIC || name.size < own.size + 2 ||
            memcmp(name.data, own.data, own.size) != 0 || name.data[own.size] != '_')
            continue;
        const struct cm_str rest = {name.data + own.size + 1, name.size - own.size - 1};
        if (cm_str_to_int64(rest, &number) && number >= 0 && number < 1000)
            return i + (size_t)number;
    }
    return SIZE_MAX;
}

/* "d_x" is the gradient of x. */
static bool is_gradient(struct cm_str name, struct cm_str *of)
{
    if (name.size < 3 || name.data[0] != 'd' || name.data[1] != '_')
        return false;
    *of = (struct cm_str){name.data + 2, name.size - 2};
    return true;
}

enum cm_status cm_custom_check_gradient(const struct cm_custom *custom,
                                        const struct cm_function_proto *gradient,
                                        struct cm_error *err)
{
    const struct cm_schema *schema = &custom->schema;

    for (size_t i = 0; i < gradient->input.count; i++) {
        const struct cm_str name = gradient->input.items[i];
        struct cm_str of;

        if (operand_called(schema->inputs, schema->input_count, name) == SIZE_MAX &&
            operand_called(schema->outputs, schema->output_count, name) == SIZE_MAX &&
            (!is_gradient(name, &of) ||
             operand_called(schema->outputs, schema->output_count, of) == SIZE_MAX))
            return cm_fail(err, CM_BAD_ARGUMENT,
                           "it takes '%.*s', which is neither an operand nor 'd_' followed by the "
                           "name of an output",
                           CM_STR_FMT(name));
    }
    for (size_t i = 0; i < gradient->output.count; i++) {
        const struct cm_str name = gradient->output.items[i];
        struct cm_str of;

        if (!is_gradient(name, &of) ||
            operand_called(schema->inputs, schema->input_count, of) == SIZE_MAX)
            return cm_fail(err, CM_BAD_ARGUMENT,
                           "it gives '%.*s', expected 'd_' followed by the name of an input",
                           CM_STR_FMT(name));
    }
    return CM_OK;
}

static cm_value gradient_input(struct cm_grad *g, const struct cm_schema *schema,
                               struct cm_str name)
{
    struct cm_str of = CM_STR_NONE;
    size_t at = operand_called(schema->inputs, schema->input_count, name);

    if (at != SIZE_MAX)
        return cm_grad_input(g, (int)at);
    at = operand_called(schema->outputs, schema->output_count, name);
    if (at != SIZE_MAX) {
        const cm_value output = cm_grad_output(g, (int)at);
        return output ? output : cm_grad_extra_output(g, (int)at);
    }
    if (!is_gradient(name, &of))
        return 0;
    at = operand_called(schema->outputs, schema->output_count, of);
    return at == SIZE_MAX ? 0 : cm_grad_incoming(g, (int)at);
}

static enum cm_status apply_gradient(struct cm_grad *g, const struct cm_custom *custom,
                                     const struct cm_function_proto *function)
{
    const struct cm_schema *schema = &custom->schema;
    struct cm_arena *arena = cm_builder_arena(&g->build);
    cm_value *actuals = CM_NEW_ARRAY(arena, cm_value, function->input.count);
    cm_value *results = CM_NEW_ARRAY(arena, cm_value, function->output.count);

    for (size_t i = 0; i < function->input.count; i++)
        actuals[i] = gradient_input(g, schema, function->input.items[i]);
    CM_TRY(g->build.status);
    CM_TRY(cm_function_apply(&g->build, function, g->node, actuals, results));
    for (size_t o = 0; o < function->output.count; o++) {
        struct cm_str of = CM_STR_NONE;

        if (!is_gradient(function->output.items[o], &of))
            continue;
        const size_t at = operand_called(schema->inputs, schema->input_count, of);
        if (at < (size_t)g->node->n_inputs && cm_grad_wants(g, (int)at))
            CM_TRY(cm_grad_set(g, (int)at, results[o]));
    }
    return CM_OK;
}

enum cm_status cm_custom_grad(struct cm_grad *g)
{
    const struct cm_custom *custom = g->node->op->arg;
    const struct cm_function_proto *function = custom->gradient;
    enum cm_status status = CM_OK;

    if (!function) {
        status = make(custom, custom->make_gradient, g->node, &function, g->build.err);
        if (status == CM_OK)
            status = cm_custom_check_gradient(custom, function, g->build.err);
    }
    if (status == CM_OK)
        status = apply_gradient(g, custom, function);
    return cm_error_context(g->build.err, status, "its gradient");
}

/* ---- what makers call ---- */

static const struct cm_type *type_of(const struct cameo_use *use, size_t input)
{
    const cm_value value = input < (size_t)use->node->n_inputs ? use->node->inputs[input].value : 0;
    return value ? cm_value_get(use->node->module, value)->fact.type : NULL;
}

size_t cameo_use_input_count(const struct cameo_use *use)
{
    return (size_t)use->node->n_inputs;
}

size_t cameo_use_output_count(const struct cameo_use *use)
{
    return (size_t)use->node->n_outputs;
}

bool cameo_use_wants(const struct cameo_use *use, size_t output)
{
    return output < (size_t)use->node->n_outputs && use->node->outputs[output];
}

enum cameo_dtype cameo_use_dtype(const struct cameo_use *use, size_t input)
{
    return cm_custom_dtype(type_of(use, input));
}

int cameo_use_rank(const struct cameo_use *use, size_t input)
{
    return cm_custom_rank(type_of(use, input));
}

int64_t cameo_use_dim(const struct cameo_use *use, size_t input, int axis)
{
    return cm_custom_dim(type_of(use, input), axis);
}

int64_t cameo_use_int(const struct cameo_use *use, const char *name)
{
    return cm_node_int(use->node, name);
}

float cameo_use_float(const struct cameo_use *use, const char *name)
{
    return cm_node_float(use->node, name);
}

static void copy_text(struct cm_arena *arena, void *arg)
{
    struct cm_str *text = arg;
    *text = cm_arena_str(arena, *text);
}

/* Empty when there is no memory: what is made of it is thrown away. */
struct cameo_text cameo_use_string(const struct cameo_use *use, const char *name)
{
    struct cm_str text = cm_node_str(use->node, name);

    if (cm_custom_keep(use->arena, copy_text, &text, use->exhausted))
        text = CM_STR("");
    return (struct cameo_text){text.data, text.size};
}

const int64_t *cameo_use_ints(const struct cameo_use *use, const char *name, size_t *count)
{
    return cm_custom_ints(use->node, name, count);
}

const float *cameo_use_floats(const struct cameo_use *use, const char *name, size_t *count)
{
    return cm_custom_floats(use->node, name, count);
}

enum cameo_status cameo_use_give(struct cameo_use *use, const char *text)
{
    if (!text)
        return cameo_use_fail(use, CAMEO_BAD_ARGUMENT, "its text is missing");
    struct cm_str copy = cm_str(text);
    const enum cm_status status = cm_custom_keep(use->arena, copy_text, &copy, use->exhausted);
    if (status == CM_OK)
        use->text = copy;
    return (enum cameo_status)status;
}

enum cameo_status cameo_use_fail(struct cameo_use *use, enum cameo_status status,
                                 const char *reason)
{
    use->told = true;
    return (enum cameo_status)cm_fail(use->err, (enum cm_status)status, "%s",
                                      reason ? reason : "no reason was given");
}
