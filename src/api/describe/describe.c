/* What a model is made of, gathered once while it is loaded. */
// SPDX-License-Identifier: Apache-2.0
#include "api/api.h"

#include "base/array.h"
#include "graph/originals.h"
#include "onnx/tensor_data.h"
#include "onnx/type_text.h"

/* Sums over hostile sizes stop at the largest number instead of wrapping. */
static void add_up(uint64_t *sum, uint64_t more)
{
    *sum = more > UINT64_MAX - *sum ? UINT64_MAX : *sum + more;
}

static enum cameo_dtype dtype_of(int32_t code)
{
    return cm_dtype_is_valid(code) ? (enum cameo_dtype)code : CAMEO_UNDEFINED;
}

static enum cameo_kind kind_of(const struct cm_type_proto *type)
{
    return !type                      ? CAMEO_KIND_NONE
           : type->tensor_type        ? CAMEO_KIND_TENSOR
           : type->sparse_tensor_type ? CAMEO_KIND_SPARSE
           : type->sequence_type      ? CAMEO_KIND_SEQUENCE
           : type->optional_type      ? CAMEO_KIND_OPTIONAL
           : type->map_type           ? CAMEO_KIND_MAP
           : type->opaque_type        ? CAMEO_KIND_OPAQUE
                                      : CAMEO_KIND_NONE;
}

void cm_describe_value(struct cm_arena *arena, const struct cm_value_info_proto *from,
                       struct cameo_value_info *out)
{
    const struct cm_tensor_type_proto *tensor = from->type ? from->type->tensor_type : NULL;
    const struct cm_str type = cm_type_text(arena, from->type, ",");

    if (from->type && from->type->sparse_tensor_type)
        tensor = from->type->sparse_tensor_type;
    *out = (struct cameo_value_info){
        .name = cm_api_text(arena, from->name),
        .type = {type.data, type.size},
        .doc_string = cm_api_text(arena, from->doc_string),
        .rank = -1,
        .kind = kind_of(from->type),
    };
    if (tensor)
        out->dtype = dtype_of(tensor->elem_type);
    /* A rank past INT_MAX would need a file of its size times two; it stays unknown. */
    if (!tensor || !tensor->shape || tensor->shape->dim.count > INT32_MAX)
        return;
    struct cameo_dim *dims = CM_NEW_ARRAY(arena, struct cameo_dim, tensor->shape->dim.count);
    out->rank = (int)tensor->shape->dim.count;
    out->dims = dims;
    for (int i = 0; i < out->rank; i++) {
        const struct cm_dim_proto *dim = &tensor->shape->dim.items[i];
        const bool fixed = cm_msg_has(&dim->msg, CM_DIM_VALUE) && dim->dim_value >= 0;

        dims[i].size = fixed ? dim->dim_value : -1;
        dims[i].symbol = cm_api_text(arena, dim->dim_param);
    }
}

static struct cameo_value_info *describe_values(struct cameo_model *model,
                                                const struct cm_value_infos *from)
{
    struct cameo_value_info *values =
        CM_NEW_ARRAY(&model->arena, struct cameo_value_info, from->count);

    for (size_t i = 0; i < from->count; i++)
        cm_describe_value(&model->arena, &from->items[i], &values[i]);
    return values;
}

static void mark_defaults(struct cameo_model *model)
{
    const struct cm_value_infos *inputs = &model->file->model.graph->input;

    for (size_t i = 0; i < inputs->count; i++) {
        const uint64_t *index = cm_map_find(&model->by_name, inputs->items[i].name);

        model->inputs[i].has_default = index && model->initializers[*index].training < 0;
    }
}

static void measure(const struct cm_tensor_proto *proto, int64_t *elements, uint64_t *bytes)
{
    struct cm_shape shape;

    *elements = -1;
    *bytes = 0;
    if (cm_tensor_proto_shape(proto, &shape, NULL) != CM_OK)
        return;
    *elements = cm_shape_elements(&shape);
    if (cm_tensor_proto_bytes(proto, bytes, NULL) != CM_OK)
        *bytes = 0;
}

static void describe_dense(struct cm_arena *arena, const struct cm_tensor_proto *proto,
                           struct cameo_initializer *out)
{
    struct cm_external_place place = {0};

    out->name = cm_api_text(arena, proto->name);
    out->dtype = dtype_of(proto->data_type);
    out->rank = proto->dims.count;
    out->dims = proto->dims.items;
    out->doc_string = cm_api_text(arena, proto->doc_string);
    out->original = out->folding = (struct cameo_text){"", 0};
    out->is_external = proto->data_location == CM_LOCATION_EXTERNAL;
    if (out->is_external && cm_external_place(proto, &place, NULL) != CM_OK)
        place.location = CM_STR_NONE;
    out->location = cm_api_text(arena, place.location);
    measure(proto, &out->elements, &out->bytes);
}

static void describe_sparse(struct cm_arena *arena, const struct cm_sparse_proto *proto,
                            struct cameo_initializer *out)
{
    uint64_t bytes;
    int64_t ignored;

    out->elements = -1;
    out->name = out->location = out->doc_string = (struct cameo_text){"", 0};
    out->original = out->folding = (struct cameo_text){"", 0};
    if (proto->values)
        describe_dense(arena, proto->values, out);
    if (proto->indices) {
        measure(proto->indices, &ignored, &bytes);
        add_up(&out->bytes, bytes);
    }
    out->sparse = true;
    out->rank = proto->dims.count;
    out->dims = proto->dims.items;
}

/* What the framework calls the initializers of the inference graph, which come first. */
static void describe_originals(struct cameo_model *model, const struct cm_graph_proto *graph)
{
    struct cm_arena *arena = &model->arena;
    const struct cm_originals *originals = cm_originals_read(arena, graph);

    for (size_t i = 0; i < graph->initializer.count; i++) {
        const struct cm_original_texts texts =
            cm_originals_texts(originals, arena, graph->initializer.items[i].name);

        model->initializers[i].original = cm_api_text(arena, texts.original);
        model->initializers[i].folding = cm_api_text(arena, texts.folding);
    }
}

/* The initializers of one graph; training is the entry it belongs to, or -1. */
static void describe_initializers(struct cameo_model *model, struct cm_graph_proto *graph,
                                  int training)
{
    struct cameo_summary *summary = &model->summary;
    const size_t dense = graph->initializer.count;

    for (size_t i = 0; i < dense + graph->sparse_initializer.count; i++) {
        const size_t index = summary->initializer_count++;
        struct cameo_initializer *row = &model->initializers[index];
        bool added;

        row->training = training;
        if (i < dense) {
            model->slots[index].proto = &graph->initializer.items[i];
            describe_dense(&model->arena, &graph->initializer.items[i], row);
        } else {
            describe_sparse(&model->arena, &graph->sparse_initializer.items[i - dense], row);
        }
        add_up(training < 0 ? &summary->parameter_count : &summary->training_parameter_count,
               row->elements > 0 ? (uint64_t)row->elements : 0);
        add_up(training < 0 ? &summary->parameter_bytes : &summary->training_parameter_bytes,
               row->bytes);
        const struct cm_str name = {row->name.data, row->name.size};
        uint64_t *first = cm_map_insert(&model->by_name, &model->arena, name, &added);
        if (added)
            *first = index;
    }
}

static void describe_all_initializers(struct cameo_model *model)
{
    struct cm_model_proto *proto = &model->file->model;
    size_t count = 0;

    if (proto->graph)
        count = proto->graph->initializer.count + proto->graph->sparse_initializer.count;
    for (size_t i = 0; i < proto->training_info.count; i++) {
        const struct cm_graph_proto *algorithm = proto->training_info.items[i].algorithm;
        if (algorithm)
            count += algorithm->initializer.count + algorithm->sparse_initializer.count;
    }
    model->initializers = CM_NEW_ARRAY(&model->arena, struct cameo_initializer, count);
    model->slots = CM_NEW_ARRAY(&model->arena, struct cm_api_slot, count);
    if (proto->graph) {
        describe_initializers(model, proto->graph, -1);
        describe_originals(model, proto->graph);
    }
    for (size_t i = 0; i < proto->training_info.count; i++) {
        struct cm_graph_proto *algorithm = proto->training_info.items[i].algorithm;
        if (algorithm)
            describe_initializers(model, algorithm, (int)i);
    }
}

struct external_list {
    struct cm_arena *arena;
    struct cm_map *seen; /* location to index */
    CM_ARRAY(struct cameo_external_file);
};

static enum cm_status note_external(void *arg, struct cm_tensor_proto *tensor)
{
    struct external_list *list = arg;
    struct cm_external_place place;
    int64_t elements;
    uint64_t bytes;
    bool added;

    if (tensor->data_location != CM_LOCATION_EXTERNAL ||
        cm_external_place(tensor, &place, NULL) != CM_OK)
        return CM_OK;
    uint64_t *index = cm_map_insert(list->seen, list->arena, place.location, &added);
    if (added) {
        *index = list->count;
        *CM_PUSH(list->arena, list) =
            (struct cameo_external_file){.location = cm_api_text(list->arena, place.location)};
    }
    measure(tensor, &elements, &bytes);
    list->items[*index].tensor_count++;
    add_up(&list->items[*index].bytes, bytes);
    return CM_OK;
}

static void describe_header(struct cameo_model *model)
{
    const struct cm_model_proto *proto = &model->file->model;
    struct cm_arena *arena = &model->arena;
    struct cameo_summary *summary = &model->summary;

    summary->ir_version = proto->ir_version;
    summary->model_version = proto->model_version;
    summary->producer_name = cm_api_text(arena, proto->producer_name);
    summary->producer_version = cm_api_text(arena, proto->producer_version);
    summary->domain = cm_api_text(arena, proto->domain);
    summary->doc_string = cm_api_text(arena, proto->doc_string);
    summary->graph_name = cm_api_text(arena, proto->graph ? proto->graph->name : CM_STR_NONE);
    summary->graph_doc_string =
        cm_api_text(arena, proto->graph ? proto->graph->doc_string : CM_STR_NONE);
    summary->metadata_count = proto->metadata_props.count;
    model->metadata = cm_api_entries(arena, &proto->metadata_props);
    summary->opset_count = proto->opset_import.count;
    model->opsets = CM_NEW_ARRAY(arena, struct cameo_opset, summary->opset_count);
    for (size_t i = 0; i < summary->opset_count; i++) {
        model->opsets[i].domain = cm_api_text(arena, proto->opset_import.items[i].domain);
        model->opsets[i].version = proto->opset_import.items[i].version;
    }
}

static void describe_functions(struct cameo_model *model)
{
    const struct cm_model_proto *proto = &model->file->model;
    struct cm_arena *arena = &model->arena;

    model->summary.function_count = proto->functions.count;
    model->functions = CM_NEW_ARRAY(arena, struct cameo_function, proto->functions.count);
    for (size_t i = 0; i < proto->functions.count; i++) {
        const struct cm_function_proto *from = &proto->functions.items[i];

        model->functions[i] = (struct cameo_function){
            .domain = cm_api_text(arena, from->domain),
            .name = cm_api_text(arena, from->name),
            .overload = cm_api_text(arena, from->overload),
            .doc_string = cm_api_text(arena, from->doc_string),
            .input_count = from->input.count,
            .output_count = from->output.count,
            .attribute_count = from->attribute.count + from->attribute_proto.count,
            .node_count = cm_count_nodes(&from->node),
        };
    }
}

enum cm_status cm_describe_model(struct cameo_model *model, struct cm_arena *scratch,
                                 struct cm_error *err)
{
    struct cm_model_proto *proto = &model->file->model;
    struct cm_map seen = {0};
    struct external_list external = {.arena = &model->arena, .seen = &seen};

    if (proto->training_info.count > INT32_MAX)
        return cm_fail(err, CM_LIMIT, "%zu entries of training_info", proto->training_info.count);
    describe_header(model);
    describe_all_initializers(model);
    if (proto->graph) {
        model->summary.input_count = proto->graph->input.count;
        model->summary.output_count = proto->graph->output.count;
        model->inputs = describe_values(model, &proto->graph->input);
        model->outputs = describe_values(model, &proto->graph->output);
        mark_defaults(model);
    }
    describe_functions(model);
    cm_describe_operators(model, scratch);
    cm_describe_weights(model);
    cm_describe_training(model, scratch);
    CM_TRY(cm_model_each_tensor(proto, note_external, &external));
    model->external_files = external.items;
    model->summary.external_file_count = external.count;
    return CM_OK;
}
