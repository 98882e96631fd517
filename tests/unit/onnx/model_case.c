/* Models in folders, for tests. */
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "onnx/model_case.h"

#include "onnx/encode.h"
#include "onnx/tensor_data.h"

#include <dirent.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *where)
{
    (void)facts, (void)kind, (void)where;
    return remove(path);
}

static void remove_folder(void *path)
{
    nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *case_folder(struct cm_arena *arena)
{
    const char *base = getenv("TMPDIR");
    char *path = (char *)(uintptr_t)cm_arena_printf(arena, "%s/cameo-test-XXXXXX",
                                                    base && *base ? base : "/tmp")
                     .data;
    CHECK(mkdtemp(path) != NULL);
    cm_arena_defer(arena, remove_folder, path);
    return path;
}

const char *case_path(struct cm_arena *arena, const char *folder, const char *name)
{
    return cm_arena_printf(arena, "%s/%s", folder, name).data;
}

void case_write(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL);
    CHECK(fwrite(bytes, 1, size, file) == size);
    CHECK(fclose(file) == 0);
}

struct cm_str case_read(struct cm_arena *arena, const char *path)
{
    struct cm_error err;
    struct cm_mapping mapping;
    CHECK_OK(cm_file_map(path, true, &mapping, &err), &err);
    const struct cm_str copy =
        cm_arena_str(arena, (struct cm_str){(const char *)mapping.data, mapping.size});
    cm_mapping_release(&mapping);
    return copy;
}

bool case_exists(const char *path)
{
    struct stat facts;
    return lstat(path, &facts) == 0;
}

size_t case_count_files(const char *folder)
{
    DIR *dir = opendir(folder);
    size_t count = 0;
    CHECK(dir != NULL);
    for (const struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

static float value_at(struct cm_str name, size_t i)
{
    unsigned seed = 17;
    for (size_t k = 0; k < name.size; k++)
        seed = seed * 31 + (unsigned char)name.data[k];
    return (float)((seed + 7 * i) % 1000) / 8;
}

static void set_name(struct cm_tensor_proto *tensor, const char *name)
{
    tensor->name = cm_str(name);
    cm_msg_set(&tensor->msg, CM_TENSOR_NAME);
}

void case_tensor(struct cm_arena *arena, struct cm_tensor_proto *tensor, const char *name, size_t n)
{
    float *values = CM_NEW_ARRAY(arena, float, n);
    const struct cm_tensor from = cm_tensor_borrow(CM_FLOAT, &CM_SHAPE((int64_t)n), values);
    struct cm_error err;

    set_name(tensor, name);
    for (size_t i = 0; i < n; i++)
        values[i] = value_at(tensor->name, i);
    CHECK_OK(cm_tensor_proto_store(tensor, arena, &from, &err), &err);
}

static void add_key(struct cm_arena *arena, struct cm_tensor_proto *tensor, const char *key,
                    struct cm_str value)
{
    struct cm_entry_proto *entry = CM_LIST_ADD(arena, &tensor->external_data);
    entry->key = cm_str(key);
    entry->value = value;
    cm_msg_set(&entry->msg, CM_ENTRY_KEY);
    cm_msg_set(&entry->msg, CM_ENTRY_VALUE);
    cm_msg_set(&tensor->msg, CM_TENSOR_EXTERNAL_DATA);
}

void case_outside(struct cm_arena *arena, struct cm_tensor_proto *tensor, const char *location,
                  long long offset, long long length)
{
    cm_msg_clear(&tensor->msg, CM_TENSOR_RAW_DATA);
    tensor->data_location = CM_LOCATION_EXTERNAL;
    cm_msg_set(&tensor->msg, CM_TENSOR_DATA_LOCATION);
    add_key(arena, tensor, "location", cm_str(location));
    add_key(arena, tensor, "offset", cm_arena_printf(arena, "%lld", offset));
    if (length >= 0)
        add_key(arena, tensor, "length", cm_arena_printf(arena, "%lld", length));
}

static struct cm_tensor_proto *add_initializer(struct cm_arena *arena, struct cm_graph_proto *graph,
                                               const char *name, size_t n)
{
    struct cm_tensor_proto *tensor = CM_LIST_ADD(arena, &graph->initializer);
    cm_msg_set(&graph->msg, CM_GRAPH_INITIALIZER);
    case_tensor(arena, tensor, name, n);
    return tensor;
}

static struct cm_attribute_proto *add_attribute(struct cm_arena *arena, struct cm_nodes *nodes,
                                                const char *op, const char *name, int type)
{
    struct cm_node_proto *node = CM_LIST_ADD(arena, nodes);
    struct cm_attribute_proto *attribute = CM_LIST_ADD(arena, &node->attribute);
    node->op_type = cm_str(op);
    cm_msg_set(&node->msg, CM_NODE_OP_TYPE);
    cm_msg_set(&node->msg, CM_NODE_ATTRIBUTE);
    attribute->name = cm_str(name);
    attribute->type = type;
    cm_msg_set(&attribute->msg, CM_ATTRIBUTE_NAME);
    cm_msg_set(&attribute->msg, CM_ATTRIBUTE_TYPE);
    return attribute;
}

static void add_typed_and_strings(struct cm_arena *arena, struct cm_graph_proto *graph)
{
    static const uint8_t varints[] = {1, 2, 3};
    static struct cm_str words[] = {{"one", 3}, {"two", 3}};
    struct cm_tensor_proto *tensor = add_initializer(arena, graph, "typed", 3);

    tensor->data_type = CM_INT64;
    cm_msg_clear(&tensor->msg, CM_TENSOR_RAW_DATA);
    tensor->int64_data = (struct cm_packed){varints, sizeof varints};
    cm_msg_set(&tensor->msg, CM_TENSOR_INT64_DATA);

    tensor = add_initializer(arena, graph, "float_data", 400);
    tensor->float_data =
        (struct cm_packed){(const uint8_t *)tensor->raw_data.data, tensor->raw_data.size};
    cm_msg_clear(&tensor->msg, CM_TENSOR_RAW_DATA);
    cm_msg_set(&tensor->msg, CM_TENSOR_FLOAT_DATA);

    tensor = add_initializer(arena, graph, "strings", 2);
    tensor->data_type = CM_STRING;
    cm_msg_clear(&tensor->msg, CM_TENSOR_RAW_DATA);
    tensor->string_data = (struct cm_strs){words, 2};
    cm_msg_set(&tensor->msg, CM_TENSOR_STRING_DATA);
}

static void add_sparse(struct cm_arena *arena, struct cm_graph_proto *graph)
{
    struct cm_sparse_proto *sparse = CM_LIST_ADD(arena, &graph->sparse_initializer);
    int64_t *indices = CM_NEW_ARRAY(arena, int64_t, 500);
    const struct cm_tensor from = cm_tensor_borrow(CM_INT64, &CM_SHAPE(500), indices);
    struct cm_error err;

    cm_msg_set(&graph->msg, CM_GRAPH_SPARSE_INITIALIZER);
    sparse->values = CM_NEW(arena, struct cm_tensor_proto);
    sparse->indices = CM_NEW(arena, struct cm_tensor_proto);
    case_tensor(arena, sparse->values, "sparse", 500);
    for (int i = 0; i < 500; i++)
        indices[i] = 2 * i;
    set_name(sparse->indices, "indices");
    CHECK_OK(cm_tensor_proto_store(sparse->indices, arena, &from, &err), &err);
    sparse->dims.items = CM_NEW_ARRAY(arena, int64_t, 1);
    sparse->dims.items[0] = 1000;
    sparse->dims.count = 1;
    cm_msg_set(&sparse->msg, CM_SPARSE_VALUES);
    cm_msg_set(&sparse->msg, CM_SPARSE_INDICES);
    cm_msg_set(&sparse->msg, CM_SPARSE_DIMS);
}

static void add_function(struct cm_arena *arena, struct cm_model_proto *model)
{
    struct cm_function_proto *function = CM_LIST_ADD(arena, &model->functions);
    struct cm_attribute_proto *branch =
        add_attribute(arena, &function->node, "If", "then_branch", CM_ATTR_GRAPH);

    cm_msg_set(&model->msg, CM_MODEL_FUNCTIONS);
    cm_msg_set(&function->msg, CM_FUNCTION_NODE);
    branch->g = CM_NEW(arena, struct cm_graph_proto);
    cm_msg_set(&branch->msg, CM_ATTRIBUTE_G);
    add_initializer(arena, branch->g, "branch", 700);
}

static void add_training(struct cm_arena *arena, struct cm_model_proto *model)
{
    struct cm_training_proto *training = CM_LIST_ADD(arena, &model->training_info);

    cm_msg_set(&model->msg, CM_MODEL_TRAINING_INFO);
    training->initialization = CM_NEW(arena, struct cm_graph_proto);
    training->algorithm = CM_NEW(arena, struct cm_graph_proto);
    cm_msg_set(&training->msg, CM_TRAINING_INITIALIZATION);
    cm_msg_set(&training->msg, CM_TRAINING_ALGORITHM);
    add_initializer(arena, training->initialization, "start", 600);
    add_initializer(arena, training->algorithm, "momentum", 600);
}

void case_model(struct cm_arena *arena, struct cm_model_proto *model)
{
    *model = (struct cm_model_proto){.ir_version = 9};
    cm_msg_set(&model->msg, CM_MODEL_IR_VERSION);
    model->graph = CM_NEW(arena, struct cm_graph_proto);
    cm_msg_set(&model->msg, CM_MODEL_GRAPH);
    add_initializer(arena, model->graph, "W", 1000);
    add_initializer(arena, model->graph, "b", 10);
    add_initializer(arena, model->graph, "empty", 0);
    add_typed_and_strings(arena, model->graph);
    add_sparse(arena, model->graph);
    struct cm_attribute_proto *constant =
        add_attribute(arena, &model->graph->node, "Constant", "value", CM_ATTR_TENSOR);
    cm_msg_set(&model->graph->msg, CM_GRAPH_NODE);
    constant->t = CM_NEW(arena, struct cm_tensor_proto);
    cm_msg_set(&constant->msg, CM_ATTRIBUTE_T);
    case_tensor(arena, constant->t, "constant", 512);
    add_function(arena, model);
    add_training(arena, model);
}

void case_save(struct cm_arena *arena, const struct cm_model_proto *model, const char *path)
{
    struct cm_error err;
    struct cm_str bytes;
    CHECK_OK(cm_encode(&cm_model_info, model, arena, &bytes, &err), &err);
    case_write(path, bytes.data, bytes.size);
}

const char *case_external_model(struct cm_arena *arena, const char *folder, const char *name,
                                const char *location, size_t n, size_t offset)
{
    struct cm_model_proto model = {.ir_version = 9};
    struct cm_graph_proto graph = {0};
    const char *path = case_path(arena, folder, name);

    cm_msg_set(&model.msg, CM_MODEL_IR_VERSION);
    cm_msg_set(&model.msg, CM_MODEL_GRAPH);
    model.graph = &graph;
    struct cm_tensor_proto *tensor = add_initializer(arena, &graph, "W", n);
    char *data = cm_arena_alloc(arena, offset + n * sizeof(float));
    memcpy(data + offset, tensor->raw_data.data, tensor->raw_data.size);
    case_write(case_path(arena, folder, location), data, offset + n * sizeof(float));
    case_outside(arena, tensor, location, (long long)offset, (long long)(n * sizeof(float)));
    case_save(arena, &model, path);
    return path;
}

struct tally {
    struct cm_model_file *file;
    size_t tensors, external;
};

static enum cm_status check_tensor(void *arg, struct cm_tensor_proto *proto)
{
    struct tally *tally = arg;
    struct cm_tensor tensor;
    struct cm_error err;

    tally->tensors++;
    tally->external += proto->data_location == CM_LOCATION_EXTERNAL;
    CHECK_OK(cm_tensor_proto_load(proto, tally->file->files, &tensor, &err), &err);
    for (int64_t i = 0; i < cm_tensor_count(&tensor); i++) {
        if (tensor.type == CM_FLOAT)
            CHECK(((float *)tensor.data)[i] == value_at(proto->name, (size_t)i));
        else if (tensor.type == CM_INT64)
            CHECK_INT(cm_tensor_int(&tensor, i), cm_str_is(proto->name, "typed") ? i + 1 : 2 * i);
        else
            CHECK_STR(((struct cm_str *)tensor.data)[i], i ? "two" : "one");
    }
    cm_tensor_drop(&tensor);
    return CM_OK;
}

void case_check(struct cm_model_file *file, size_t external)
{
    struct tally tally = {.file = file};
    CHECK_INT(cm_model_each_tensor(&file->model, check_tensor, &tally), CM_OK);
    CHECK_INT(tally.tensors, 12);
    CHECK_INT(tally.external, external);
}
