/* Access to what was gathered at load. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include "graph/module.h"
#include "models/model_notes.h"

#define ROW(rows, count) (index < (count) ? &(rows)[index] : NULL)

const struct cameo_summary *cameo_model_summary(const struct cameo_model *model)
{
    return &model->summary;
}

const struct cameo_opset *cameo_model_opset(const struct cameo_model *model, size_t index)
{
    return ROW(model->opsets, model->summary.opset_count);
}

const struct cameo_entry *cameo_model_metadata(const struct cameo_model *model, size_t index)
{
    return ROW(model->metadata, model->summary.metadata_count);
}

const struct cameo_value_info *cameo_model_input(const struct cameo_model *model, size_t index)
{
    return ROW(model->inputs, model->summary.input_count);
}

const struct cameo_value_info *cameo_model_output(const struct cameo_model *model, size_t index)
{
    return ROW(model->outputs, model->summary.output_count);
}

const struct cameo_initializer *cameo_model_initializer(const struct cameo_model *model,
                                                        size_t index)
{
    return ROW(model->initializers, model->summary.initializer_count);
}

const struct cameo_operator *cameo_model_operator(const struct cameo_model *model, size_t index)
{
    return ROW(model->operators, model->summary.operator_count);
}

const struct cameo_function *cameo_model_function(const struct cameo_model *model, size_t index)
{
    return ROW(model->functions, model->summary.function_count);
}

const struct cameo_training *cameo_model_training(const struct cameo_model *model, size_t index)
{
    return ROW(model->trainings, model->summary.training_count);
}

const struct cameo_external_file *cameo_model_external_file(const struct cameo_model *model,
                                                            size_t index)
{
    return ROW(model->external_files, model->summary.external_file_count);
}

bool cameo_model_find_initializer(const struct cameo_model *model, const char *name, size_t *index)
{
    const uint64_t *found = name ? cm_map_find(&model->by_name, cm_str(name)) : NULL;

    if (found && index)
        *index = (size_t)*found;
    return found != NULL;
}

/* ---- notes ---- */

static enum cm_status make_notes(void *arg, struct cm_arena *scratch, struct cm_error *err)
{
    struct cameo_model *model = arg;
    struct cm_findings found = {.arena = scratch};

    (void)err;
    if (model->has_notes)
        return CM_OK;
    cm_model_notes(&model->file->model, scratch, &found);
    model->notes = cm_api_notes(&model->arena, &found, &model->note_count);
    model->has_notes = true;
    return CM_OK;
}

void cm_api_saw_order(struct cameo_model *model, const struct cm_module *module)
{
    const struct cm_model_proto *proto = &model->file->model;

    if (!cm_module_had(module, CM_HAD_LATER_NODES) && !cm_module_channel_block(module) &&
        !proto->functions.count && !proto->training_info.count)
        model->has_notes = true;
}

const struct cameo_text *cameo_model_note(const struct cameo_model *model, size_t index)
{
    if (!model || cm_api_call(model, make_notes, (void *)(uintptr_t)model, NULL) != CAMEO_OK)
        return NULL;
    return index < model->note_count ? &model->notes[index] : NULL;
}
