/* What is worth knowing and no failure, told to the function that a model was given for it. */
// SPDX-License-Identifier: Apache-2.0
#include "api/running.h"

#include "backends/onednn/dnnl.h"
#include "graph/backend.h"
#include "schema/schema.h"

#include <stdarg.h>

void cameo_model_set_log(struct cameo_model *model, cameo_log_fn *log, void *arg)
{
    model->log = (struct cm_api_log){log, arg};
}

void cm_api_log(const struct cameo_model *model, enum cameo_log_level level, const char *format,
                ...)
{
    char text[2048];
    va_list args;

    if (!model->log.fn)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    model->log.fn(model->log.arg, level, text);
}

static void log_libraries(const struct cameo_model *model)
{
    const struct cm_dnnl_found found = cm_dnnl_found();

    if (found.version[0])
        cm_api_log(model, CAMEO_LOG_INFO, "oneDNN %s is used, from %s", found.version, found.path);
    else
        cm_api_log(model, CAMEO_LOG_WARNING, "oneDNN is not used: %s", found.why);
}

void cm_api_log_ready(const struct cameo_model *model, const char *what, const char *backend)
{
    const struct cm_backend *named = backend ? cm_backend_find(backend) : NULL;
    const struct cameo_text *note;

    if (!model->log.fn)
        return;
    if (!backend || (named && named->version))
        log_libraries(model);
    for (size_t i = 0; i < model->summary.opset_count; i++) {
        const struct cameo_opset *opset = &model->opsets[i];
        const int64_t newest = cm_schema_newest_opset(cm_str(opset->domain.data));

        if (newest && opset->version > newest)
            cm_api_log(model, CAMEO_LOG_WARNING,
                       "the model imports opset %lld of '%s'; its operators are read as of %lld, "
                       "the newest that is known",
                       (long long)opset->version,
                       opset->domain.size ? opset->domain.data : "ai.onnx", (long long)newest);
    }
    for (size_t i = 0; (note = cameo_model_note(model, i)) != NULL; i++)
        cm_api_log(model, CAMEO_LOG_WARNING, "%s", note->data);
    cm_api_log(model, CAMEO_LOG_DEBUG, "%s is ready: %zu nodes in the file", what,
               model->summary.node_count);
}

void cm_api_log_step(const struct cameo_model *model, const struct cameo_step *step)
{
    if (step->declined[0])
        cm_api_log(model, CAMEO_LOG_DEBUG, "node '%s' (%s) is computed by %s: %s", step->node.data,
                   step->op.data, step->kernel, step->declined);
    else
        cm_api_log(model, CAMEO_LOG_DEBUG, "node '%s' (%s) is computed by %s", step->node.data,
                   step->op.data, step->kernel);
}

void cm_api_log_saved(const struct cameo_model *model, const char *path,
                      const struct cm_save_report *report)
{
    cm_api_log(model, CAMEO_LOG_INFO, "model '%s' is written, %llu bytes and %llu beside it", path,
               (unsigned long long)report->model_bytes, (unsigned long long)report->external_bytes);
    if (report->forced_external)
        cm_api_log(model, CAMEO_LOG_WARNING,
                   "a binary file holds less than 2 GiB: %zu tensors went to '%s'",
                   report->moved_out, report->external_name);
    if (report->old_left)
        cm_api_log(model, CAMEO_LOG_WARNING,
                   "%zu files that the model formerly used were left, the first is '%s'",
                   report->old_left, report->old_name);
}
