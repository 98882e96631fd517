/* What kernels call: each goes to the engine that runs them. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/op.h"

#include "base/memory.h"
#include "base/number.h"
#include "base/random.h"
#include "schema/schema.h"

void *cm_call_state(struct cm_call *call, size_t size)
{
    call->state = call->engine->state(call, size);
    return call->state;
}

_Alignas(CM_TENSOR_ALIGNMENT) unsigned char cm_no_scratch[CM_TENSOR_ALIGNMENT];

void cm_call_scratch(struct cm_call *call, size_t size)
{
    call->engine->scratch(call, size);
}

void cm_call_defer(struct cm_call *call, cm_cleanup_fn *fn, void *what)
{
    call->engine->defer(call, fn, what);
}

void *cm_kept_state_get(struct cm_kept_state **states, const struct cm_session_state *kind)
{
    const size_t bytes =
        cm_round_up(sizeof(struct cm_kept_state) + kind->size, CM_TENSOR_ALIGNMENT);
    struct cm_kept_state *kept = *states;
    while (kept && kept->kind != kind)
        kept = kept->next;
    if (kept)
        return kept->state;
    kept = cm_malloc_aligned(CM_TENSOR_ALIGNMENT, bytes);
    if (!kept)
        return NULL;
    memset(kept, 0, bytes);
    kept->kind = kind;
    kept->next = *states;
    if (kind->init)
        kind->init(kept->state);
    *states = kept;
    return kept->state;
}

void cm_kept_states_free(struct cm_kept_state **states)
{
    while (*states) {
        struct cm_kept_state *kept = *states;
        *states = kept->next;
        if (kept->kind->release)
            kept->kind->release(kept->state);
        cm_free(kept);
    }
}

void *cm_call_session_state(struct cm_call *call, const struct cm_session_state *kind)
{
    return call->engine->session_state(call, kind);
}

void cm_call_want_layout(struct cm_call *call, int i, const struct cm_layout *layout)
{
    call->engine->want_layout(call, i, layout);
}

void cm_call_give_layout(struct cm_call *call, int o, const struct cm_layout *layout)
{
    call->engine->give_layout(call, o, layout);
}

enum cm_status cm_call_allocate(struct cm_call *call, int o, enum cm_dtype dtype,
                                const struct cm_shape *shape)
{
    return call->engine->allocate(call, o, dtype, shape);
}

enum cm_status cm_call_run_body(struct cm_call *call, size_t body, const struct cm_datum *const *in,
                                size_t n_in, struct cm_datum *out, size_t n_out)
{
    return call->engine->run_body(call, body, in, n_in, out, n_out);
}

/* Absent: *out is NULL. */
static enum cm_status one_element(struct cm_call *call, int i, const struct cm_tensor **out)
{
    const struct cm_tensor *x = i < call->n_in ? call->in[i] : NULL;

    *out = x;
    if (!x || (cm_tensor_count(x) == 1 && x->data))
        return CM_OK;
    return cm_call_fail(call, CM_BAD_ARGUMENT, "input %d has %lld elements, must have 1", i,
                        (long long)cm_tensor_count(x));
}

enum cm_status cm_call_int(struct cm_call *call, int i, int64_t *out)
{
    const struct cm_tensor *x;

    CM_TRY(one_element(call, i, &x));
    if (x)
        *out = cm_tensor_int(x, 0);
    return CM_OK;
}

enum cm_status cm_call_real(struct cm_call *call, int i, double *out)
{
    const struct cm_tensor *x;

    CM_TRY(one_element(call, i, &x));
    if (x)
        *out = cm_tensor_real(x, 0);
    return CM_OK;
}

enum cm_status cm_call_bool(struct cm_call *call, int i, bool *out)
{
    const struct cm_tensor *x;

    CM_TRY(one_element(call, i, &x));
    if (x && x->type != CM_BOOL)
        return cm_call_fail(call, CM_BAD_ARGUMENT, "input %d is %s, must be bool", i,
                            cm_dtype_name(x->type));
    if (x)
        *out = cm_tensor_int(x, 0) != 0;
    return CM_OK;
}

enum cm_status cm_datum_bool(const struct cm_datum *datum, bool *out, struct cm_error *err)
{
    const struct cm_tensor *x = &datum->tensor;

    if (datum->kind != CM_KIND_TENSOR || x->type != CM_BOOL || cm_tensor_count(x) != 1 || !x->data)
        return cm_fail(err, CM_BAD_ARGUMENT, "a condition must be a single boolean");
    *out = cm_tensor_int(x, 0) != 0;
    return CM_OK;
}

enum cm_status cm_call_fail_rank(struct cm_call *call)
{
    return cm_call_fail(call, CM_LIMIT, "its result would have rank %d, the limit is %d",
                        CM_MAX_RANK + 1, CM_MAX_RANK);
}

struct cm_random *cm_call_random(struct cm_call *call)
{
    return call->engine->random(call);
}

void cm_node_seed_random(const struct cm_node *node, uint64_t seed, uint64_t stream,
                         struct cm_random *out)
{
    const struct cm_attribute_proto *given = cm_node_attr(node, "seed");
    if (!given) {
        cm_random_seed_philox(out, seed, stream);
        return;
    }
    /* An integer for Dropout, a float for the generators; one that is no sane number counts as 0.
     */
    const bool sane = given->f > -0x1p62F && given->f < 0x1p62F;
    const int64_t number = given->type != CM_ATTR_FLOAT ? given->i : sane ? (int64_t)given->f : 0;
    cm_random_seed_numpy(out, (uint32_t)number);
}

enum cm_status cm_call_fail(struct cm_call *call, enum cm_status status, const char *format, ...)
{
    char text[CM_ERROR_SIZE / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return cm_fail(call->err, status, "%s", text);
}

bool cm_call_is_constant(const struct cm_call *call, int i)
{
    const cm_value value = cm_node_input(call->node, i);
    const struct cm_value_def *def = value ? cm_value_get(call->node->module, value) : NULL;
    return def && !def->is_state && (def->role == CM_ROLE_INITIALIZER || def->fact.constant);
}

bool cm_call_decline(struct cm_call *call, const char *format, ...)
{
    char text[CM_ERROR_SIZE / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!call->err || call->err->status != CM_NO_MEMORY) /* that one is not to be hidden */
        cm_fail(call->err, CM_UNSUPPORTED, "%s", text);
    return false;
}

struct cm_operand_text cm_call_describe(const struct cm_call *call, const struct cm_tensor *tensor)
{
    const struct cm_schema *schema = call->node->schema;
    const struct cm_schema_param *param = NULL;
    struct cm_operand_text out;
    int i = 0, o = 0;
    while (i < call->n_in && call->in[i] != tensor)
        i++;
    while (o < call->n_out && call->out[o] != tensor)
        o++;
    const bool is_result = i == call->n_in && o < call->n_out;
    const char *kind = is_result ? "result" : "operand";
    const int place = is_result ? o : i;
    if (schema && (is_result || i < call->n_in))
        param = (is_result ? cm_schema_output : cm_schema_input)(schema, (size_t)place);
    if (i == call->n_in && !is_result)
        snprintf(out.text, sizeof out.text, "an operand");
    else if (param && param->kind != CM_PARAM_VARIADIC)
        snprintf(out.text, sizeof out.text, "%s '%s'", kind, param->name);
    else
        snprintf(out.text, sizeof out.text, "%s %d", kind, place);
    return out;
}

bool cm_call_decline_type(struct cm_call *call, const struct cm_tensor *tensor)
{
    return cm_call_decline(call, "%s is %s", cm_call_describe(call, tensor).text,
                           cm_dtype_name(tensor->type));
}

bool cm_call_decline_empty(struct cm_call *call, const struct cm_tensor *tensor)
{
    return cm_call_decline(call, "%s is empty", cm_call_describe(call, tensor).text);
}
