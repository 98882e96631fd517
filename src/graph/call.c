/* What kernels call: each goes to the engine that runs them. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/op.h"

void *cm_call_state(struct cm_call *call, size_t size)
{
    call->state = call->engine->state(call, size);
    return call->state;
}

void cm_call_scratch(struct cm_call *call, size_t size)
{
    call->engine->scratch(call, size);
}

void cm_call_defer(struct cm_call *call, cm_cleanup_fn *fn, void *what)
{
    call->engine->defer(call, fn, what);
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

struct cm_random *cm_call_random(struct cm_call *call)
{
    return call->engine->random(call);
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

bool cm_call_decline(struct cm_call *call, const char *format, ...)
{
    char text[CM_ERROR_SIZE / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cm_fail(call->err, CM_UNSUPPORTED, "%s", text);
    return false;
}
