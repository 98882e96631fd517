/* Loads a model and says what goes in, what comes out and what it is made of: describe MODEL */
// SPDX-License-Identifier: Apache-2.0
#include <cameo.h>

#include <stdio.h>

static void print_value(const char *label, const struct cameo_value_info *value)
{
    printf("%-8s %s: %s", label, value->name.data, value->type.data);
    for (int i = 0; i < value->rank; i++) {
        if (value->dims[i].size < 0)
            printf(" (axis %d is free)", i);
    }
    printf("%s\n", value->has_default ? " (has a default)" : "");
}

/* In a file the domain of ONNX's own operators is usually empty. */
static void print_opset(const struct cameo_opset *opset)
{
    printf("opset    %s %lld\n", opset->domain.size ? opset->domain.data : "ai.onnx",
           (long long)opset->version);
}

static void print_model(const struct cameo_model *model)
{
    const struct cameo_summary *summary = cameo_model_summary(model);

    printf("graph    %s, IR version %lld\n", summary->graph_name.data,
           (long long)summary->ir_version);
    for (size_t i = 0; i < summary->opset_count; i++)
        print_opset(cameo_model_opset(model, i));
    for (size_t i = 0; i < summary->input_count; i++)
        print_value("input", cameo_model_input(model, i));
    for (size_t i = 0; i < summary->output_count; i++)
        print_value("output", cameo_model_output(model, i));
    for (size_t i = 0; i < summary->operator_count; i++)
        printf("operator %s (%zu)\n", cameo_model_operator(model, i)->name.data,
               cameo_model_operator(model, i)->count);
    for (size_t i = 0; i < summary->function_count; i++)
        printf("function %s (%zu nodes)\n", cameo_model_function(model, i)->name.data,
               cameo_model_function(model, i)->node_count);
    for (size_t i = 0; i < summary->external_file_count; i++)
        printf("file     %s (%zu tensors)\n", cameo_model_external_file(model, i)->location.data,
               cameo_model_external_file(model, i)->tensor_count);
    for (size_t i = 0; i < summary->metadata_count; i++)
        printf("metadata %s = %s\n", cameo_model_metadata(model, i)->key.data,
               cameo_model_metadata(model, i)->value.data);
    for (size_t i = 0; i < summary->training_count; i++) {
        const struct cameo_training *training = cameo_model_training(model, i);

        for (size_t k = 0; k < training->update_binding_count; k++)
            printf("training %s becomes %s\n", training->update_bindings[k].key.data,
                   training->update_bindings[k].value.data);
        for (size_t k = 0; k < training->input_count; k++)
            print_value("feed", training->inputs[k]);
    }
    printf("weights  %llu in %llu bytes\n", (unsigned long long)summary->parameter_count,
           (unsigned long long)summary->parameter_bytes);
}

int main(int argc, char **argv)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model;
    struct cameo_error err;

    if (argc != 2) {
        fprintf(stderr, "usage: describe MODEL (libcameo %s)\n", cameo_version_string());
        return 2;
    }
    options.copy_files = true; /* others may write to the file while we look at it */
    if (cameo_model_load(argv[1], &options, &model, &err) != CAMEO_OK) {
        fprintf(stderr, "%s: %s\n", cameo_status_name(err.status), err.message);
        return 1;
    }
    print_model(model);
    cameo_model_free(model);
    return 0;
}
