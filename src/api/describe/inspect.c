/* Access to what was gathered at load. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

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
