/* cameo info --json. */
// SPDX-License-Identifier: Apache-2.0
#include "cli.h"

static void put_value(struct cli_json *json, const struct cameo_value_info *value)
{
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "name", value->name);
    cli_json_text(json, "type", value->type);
    if (value->dtype != CAMEO_UNDEFINED)
        cli_json_string(json, "dtype", cameo_dtype_name(value->dtype));
    if (value->rank >= 0) {
        cli_json_open(json, "shape", '[');
        for (int i = 0; i < value->rank; i++) {
            if (value->dims[i].size >= 0)
                cli_json_int(json, NULL, value->dims[i].size);
            else if (value->dims[i].symbol.size)
                cli_json_text(json, NULL, value->dims[i].symbol);
            else
                cli_json_null(json, NULL);
        }
        cli_json_close(json, ']');
    }
    cli_json_bool(json, "has_default", value->has_default);
    if (value->doc_string.size)
        cli_json_text(json, "doc_string", value->doc_string);
    cli_json_close(json, '}');
}

typedef const struct cameo_value_info *value_at_fn(const struct cameo_model *model, size_t index);

static void put_values(struct cli_json *json, const char *key, const struct cameo_model *model,
                       value_at_fn *at)
{
    const struct cameo_value_info *value;

    cli_json_open(json, key, '[');
    for (size_t i = 0; (value = at(model, i)) != NULL; i++)
        put_value(json, value);
    cli_json_close(json, ']');
}

static void put_initializers(struct cli_json *json, const struct cameo_model *model)
{
    const struct cameo_initializer *t;

    cli_json_open(json, "initializers", '[');
    for (size_t i = 0; (t = cameo_model_initializer(model, i)) != NULL; i++) {
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "name", t->name);
        cli_json_string(json, "dtype", cameo_dtype_name(t->dtype));
        cli_json_open(json, "shape", '[');
        for (size_t k = 0; k < t->rank; k++)
            cli_json_int(json, NULL, t->dims[k]);
        cli_json_close(json, ']');
        cli_json_original(json, t->original, t->folding);
        cli_json_int(json, "elements", t->elements);
        cli_json_count(json, "bytes", t->bytes);
        cli_json_bool(json, "sparse", t->sparse);
        cli_json_bool(json, "state", t->is_state);
        if (t->is_external)
            cli_json_text(json, "external", t->location);
        if (t->training >= 0)
            cli_json_int(json, "training", t->training);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void put_operators(struct cli_json *json, const struct cameo_model *model)
{
    const struct cameo_operator *row;

    cli_json_open(json, "operators", '[');
    for (size_t i = 0; (row = cameo_model_operator(model, i)) != NULL; i++) {
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "domain", row->domain);
        cli_json_text(json, "name", row->name);
        cli_json_count(json, "count", row->count);
        cli_json_count(json, "in_graph", row->in_graph);
        cli_json_count(json, "in_nested", row->in_nested);
        cli_json_count(json, "in_functions", row->in_functions);
        cli_json_count(json, "in_training", row->in_training);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void put_functions(struct cli_json *json, const struct cameo_model *model)
{
    const struct cameo_function *f;

    cli_json_open(json, "functions", '[');
    for (size_t i = 0; (f = cameo_model_function(model, i)) != NULL; i++) {
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "domain", f->domain);
        cli_json_text(json, "name", f->name);
        cli_json_text(json, "overload", f->overload);
        cli_json_count(json, "inputs", f->input_count);
        cli_json_count(json, "outputs", f->output_count);
        cli_json_count(json, "attributes", f->attribute_count);
        cli_json_count(json, "nodes", f->node_count);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

/* A list, not an object: keys may repeat in a file. */
static void put_entries(struct cli_json *json, const char *key, const struct cameo_entry *entries,
                        size_t count)
{
    cli_json_open(json, key, '[');
    for (size_t i = 0; i < count; i++) {
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "key", entries[i].key);
        cli_json_text(json, "value", entries[i].value);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void put_training(struct cli_json *json, const struct cameo_model *model)
{
    const struct cameo_training *t;

    cli_json_open(json, "training", '[');
    for (size_t i = 0; (t = cameo_model_training(model, i)) != NULL; i++) {
        cli_json_open(json, NULL, '{');
        cli_json_count(json, "initialization_nodes", t->initialization_node_count);
        cli_json_count(json, "algorithm_nodes", t->algorithm_node_count);
        cli_json_open(json, "inputs", '[');
        for (size_t k = 0; k < t->input_count; k++)
            put_value(json, t->inputs[k]);
        cli_json_close(json, ']');
        cli_json_open(json, "outputs", '[');
        for (size_t k = 0; k < t->output_count; k++)
            put_value(json, t->outputs[k]);
        cli_json_close(json, ']');
        cli_json_open(json, "states", '[');
        for (size_t k = 0; k < t->state_count; k++)
            cli_json_text(json, NULL, t->states[k]);
        cli_json_close(json, ']');
        put_entries(json, "initialization_binding", t->initialization_bindings,
                    t->initialization_binding_count);
        put_entries(json, "update_binding", t->update_bindings, t->update_binding_count);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void put_opsets(struct cli_json *json, const struct cameo_model *model)
{
    const struct cameo_opset *opset;

    cli_json_open(json, "opsets", '[');
    for (size_t i = 0; (opset = cameo_model_opset(model, i)) != NULL; i++) {
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "domain", opset->domain);
        cli_json_int(json, "version", opset->version);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void put_external_files(struct cli_json *json, const struct cameo_model *model)
{
    const struct cameo_external_file *file;

    cli_json_open(json, "external_files", '[');
    for (size_t i = 0; (file = cameo_model_external_file(model, i)) != NULL; i++) {
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "location", file->location);
        cli_json_count(json, "tensors", file->tensor_count);
        cli_json_count(json, "bytes", file->bytes);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void put_weights(struct cli_json *json, const char *key, const struct cameo_weights *weights)
{
    cli_json_open(json, key, '{');
    cli_json_count(json, "tensors", weights->tensor_count);
    cli_json_count(json, "count", weights->count);
    cli_json_count(json, "bytes", weights->bytes);
    cli_json_close(json, '}');
}

static void put_header(struct cli_json *json, const struct cameo_summary *s)
{
    cli_json_int(json, "ir_version", s->ir_version);
    cli_json_text(json, "producer_name", s->producer_name);
    cli_json_text(json, "producer_version", s->producer_version);
    cli_json_text(json, "domain", s->domain);
    cli_json_int(json, "model_version", s->model_version);
    cli_json_text(json, "doc_string", s->doc_string);
    cli_json_text(json, "graph", s->graph_name);
    cli_json_text(json, "graph_doc_string", s->graph_doc_string);
    cli_json_count(json, "parameters", s->parameter_count);
    cli_json_count(json, "parameter_bytes", s->parameter_bytes);
    cli_json_count(json, "training_parameters", s->training_parameter_count);
    cli_json_count(json, "training_parameter_bytes", s->training_parameter_bytes);
    put_weights(json, "constant_parameters", &s->constant_weights);
    put_weights(json, "attribute_parameters", &s->attribute_weights);
    put_weights(json, "nested_parameters", &s->nested_weights);
    cli_json_count(json, "nodes", s->node_count);
    cli_json_count(json, "nested_nodes", s->nested_node_count);
    cli_json_count(json, "function_nodes", s->function_node_count);
    cli_json_count(json, "training_nodes", s->training_node_count);
}

static void put_costs(struct cli_json *json, const struct cameo_costs *costs)
{
    if (!costs)
        return;
    cli_json_open(json, "costs", '{');
    cli_json_real(json, "flops", costs->flops);
    cli_json_count(json, "activation_bytes", costs->activation_bytes);
    cli_json_count(json, "peak_bytes", costs->peak_bytes);
    cli_json_count(json, "unknown", costs->unknown_count);
    cli_json_count(json, "left_out", costs->left_out);
    cli_json_bool(json, "has_bodies", costs->has_bodies);
    cli_json_open(json, "sizes", '[');
    for (size_t i = 0; i < costs->size_count; i++) {
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "name", costs->sizes[i]->symbol);
        cli_json_int(json, "size", costs->sizes[i]->size);
        cli_json_bool(json, "assumed", costs->sizes[i]->assumed);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    cli_json_open(json, "operators", '[');
    for (size_t i = 0; i < costs->operator_count; i++) {
        const struct cameo_cost *row = costs->operators[i];
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "domain", row->domain);
        cli_json_text(json, "name", row->op);
        cli_json_count(json, "nodes", row->node_count);
        cli_json_real(json, "flops", row->flops);
        cli_json_count(json, "output_bytes", row->output_bytes);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    cli_json_close(json, '}');
}

void cli_info_json(const char *path, const struct cameo_model *model,
                   const struct cameo_costs *costs)
{
    const struct cameo_summary *s = cameo_model_summary(model);
    struct cli_json json = {.to = stdout};

    cli_json_open(&json, NULL, '{');
    cli_json_string(&json, "model", path);
    put_header(&json, s);
    put_opsets(&json, model);
    put_values(&json, "inputs", model, cameo_model_input);
    put_values(&json, "outputs", model, cameo_model_output);
    put_initializers(&json, model);
    put_external_files(&json, model);
    put_operators(&json, model);
    put_costs(&json, costs);
    put_functions(&json, model);
    put_training(&json, model);
    put_entries(&json, "metadata", cameo_model_metadata(model, 0), s->metadata_count);
    cli_json_close(&json, '}');
}
