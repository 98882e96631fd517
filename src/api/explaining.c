/* How operators are differentiated, for callers. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include "autodiff/explain/explain_gradient.h"
#include "lower/lower.h"

struct explain_call {
    const char *domain, *name;
    int64_t opset;
    struct cm_api_writer writer;
};

static enum cm_status explain(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    struct explain_call *call = arg;

    return cm_explain_gradient(call->domain, call->name, call->opset, cm_lower_import_as, scratch,
                               cm_api_write, &call->writer, err);
}

enum cameo_status cameo_operator_gradient(const char *domain, const char *name, int64_t opset,
                                          cameo_write_fn *write, void *to, struct cameo_error *err)
{
    CM_API_NEED(name, err);
    CM_API_NEED(write, err);
    struct explain_call call = {domain, name, opset, {write, to}};

    return cm_api_call(NULL, explain, &call, err);
}
