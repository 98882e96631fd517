/* What libFuzzer calls to change a model: chooses what is changed, and how often. */
// SPDX-License-Identifier: Apache-2.0
#include "mutate_model.h"

#include "onnx/decode.h"
#include "onnx/encode.h"

#include <float.h>
#include <math.h>

/* libFuzzer's own mutations of bytes. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t size, const uint8_t *other,
                                 size_t other_size, uint8_t *out, size_t max_out, unsigned seed);

/* ---- chance ---- */

static uint64_t next(struct mutation *m)
{
    m->random += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    uint64_t z = m->random;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

size_t mutation_draw(struct mutation *m, size_t below)
{
    return (size_t)(next(m) % below);
}

bool mutation_chance(struct mutation *m, unsigned percent)
{
    return mutation_draw(m, 100) < percent;
}

int64_t mutation_number(struct mutation *m)
{
    static const int64_t edges[] = {-2,
                                    -3,
                                    -4,
                                    7,
                                    8,
                                    10,
                                    16,
                                    63,
                                    64,
                                    65,
                                    127,
                                    128,
                                    255,
                                    256,
                                    1000,
                                    4096,
                                    65535,
                                    65536,
                                    INT32_MAX,
                                    INT32_MIN,
                                    INT64_C(1) << 31,
                                    INT64_C(1) << 32,
                                    INT64_C(1) << 40,
                                    INT64_C(1) << 62,
                                    INT64_MAX / 2 + 1,
                                    INT64_MAX - 1,
                                    INT64_MAX,
                                    INT64_MIN,
                                    INT64_MIN + 1};

    if (mutation_chance(m, 70))
        return (int64_t)mutation_draw(m, 7) - 1;
    return edges[mutation_draw(m, CM_COUNT(edges))];
}

float mutation_real(struct mutation *m)
{
    static const float edges[] = {-0.0f,   NAN,    INFINITY, -INFINITY, FLT_MAX, -FLT_MAX,
                                  FLT_MIN, 1e-30f, 1e10f,    -1e10f,    3e9f,    1e19f};

    if (mutation_chance(m, 70))
        return (float)mutation_draw(m, 13) * 0.5f - 2;
    return edges[mutation_draw(m, CM_COUNT(edges))];
}

int32_t mutation_dtype(struct mutation *m)
{
    if (mutation_chance(m, 50)) {
        static const int32_t usual[] = {CM_FLOAT, CM_INT64, CM_INT32, CM_DOUBLE, CM_BOOL, CM_UINT8};
        return usual[mutation_draw(m, CM_COUNT(usual))];
    }
    return mutation_chance(m, 2) ? (int32_t)mutation_number(m)
                                 : (int32_t)mutation_draw(m, CM_DTYPE_COUNT);
}

struct cm_str mutation_name(struct mutation *m)
{
    if (!m->names.count || mutation_chance(m, 4))
        return CM_STR_NONE;
    return m->names.items[mutation_draw(m, m->names.count)];
}

struct cm_str mutation_new_name(struct mutation *m)
{
    return cm_arena_printf(m->arena, "_%zx", mutation_draw(m, 1 << 20));
}

void *mutation_copy(struct mutation *m, const struct cm_message_info *info, const void *msg)
{
    struct cm_error err;
    struct cm_str bytes;
    void *copy = cm_arena_alloc(m->arena, info->size);

    if (cm_encode(info, msg, m->arena, &bytes, &err) ||
        cm_decode(info, bytes, m->arena, copy, &err))
        return NULL;
    return copy;
}

/* ---- what there is ---- */

static void collect_nodes(struct mutation *m, struct cm_nodes *nodes, struct cm_msg *owner,
                          int field)
{
    *CM_PUSH(m->arena, &m->lists) = (struct node_list){nodes, owner, field};
    for (size_t i = 0; i < nodes->count; i++)
        for (size_t o = 0; o < nodes->items[i].output.count; o++)
            if (nodes->items[i].output.items[o].size)
                *CM_PUSH(m->arena, &m->names) = nodes->items[i].output.items[o];
}

static void collect_graph(struct mutation *m, struct cm_graph_proto *graph)
{
    *CM_PUSH(m->arena, &m->graphs) = graph;
    collect_nodes(m, &graph->node, &graph->msg, CM_GRAPH_NODE);
    for (size_t i = 0; i < graph->input.count; i++)
        *CM_PUSH(m->arena, &m->names) = graph->input.items[i].name;
    for (size_t i = 0; i < graph->initializer.count; i++)
        *CM_PUSH(m->arena, &m->names) = graph->initializer.items[i].name;
}

static enum cm_status collect(void *arg, const struct cm_message_info *info, struct cm_msg *msg)
{
    struct mutation *m = arg;

    if (info == &cm_graph_info) {
        collect_graph(m, (struct cm_graph_proto *)msg);
    } else if (info == &cm_function_info) {
        struct cm_function_proto *function = (struct cm_function_proto *)msg;
        collect_nodes(m, &function->node, msg, CM_FUNCTION_NODE);
        for (size_t i = 0; i < function->input.count; i++)
            *CM_PUSH(m->arena, &m->names) = function->input.items[i];
    } else if (info == &cm_node_info) {
        *CM_PUSH(m->arena, &m->nodes) = (struct cm_node_proto *)msg;
    } else if (info == &cm_tensor_info) {
        *CM_PUSH(m->arena, &m->tensors) = (struct cm_tensor_proto *)msg;
    } else if (info == &cm_value_info_info) {
        *CM_PUSH(m->arena, &m->infos) = (struct cm_value_info_proto *)msg;
    }
    return CM_OK;
}

/* ---- the model itself ---- */

static bool mutate_versions(struct mutation *m)
{
    struct cm_model_proto *model = m->model;
    const size_t what = mutation_draw(m, 4);

    if (what == 0) {
        model->ir_version =
            mutation_chance(m, 90) ? 3 + (int64_t)mutation_draw(m, 11) : mutation_number(m);
        cm_msg_set(&model->msg, CM_MODEL_IR_VERSION);
    } else if (what == 1) { /* some targets take their options from it */
        model->model_version =
            mutation_chance(m, 80) ? (int64_t)mutation_draw(m, 1 << 18) : mutation_number(m);
        cm_msg_set(&model->msg, CM_MODEL_MODEL_VERSION);
    } else if (model->opset_import.count) {
        struct cm_opset_proto *opset =
            &model->opset_import.items[mutation_draw(m, model->opset_import.count)];
        const int64_t newest = cm_schema_newest_opset(opset->domain);
        opset->version = newest > 0 && mutation_chance(m, 95)
                             ? 1 + (int64_t)mutation_draw(m, (size_t)newest)
                             : mutation_number(m);
        cm_msg_set(&opset->msg, CM_OPSET_VERSION);
    } else {
        return false;
    }
    return true;
}

/* Outputs and inputs of graphs: twice, gone, of another name, one more. */
static bool mutate_interface(struct mutation *m)
{
    if (!m->graphs.count)
        return false;
    struct cm_graph_proto *graph = m->graphs.items[mutation_draw(m, m->graphs.count)];
    const bool outputs = mutation_chance(m, 60);
    struct cm_value_infos *list = outputs ? &graph->output : &graph->input;
    const size_t what = mutation_draw(m, 3);

    if (what == 0 && list->count) {
        list->count--;
    } else if (what == 1 && list->count) {
        struct cm_value_info_proto *info = &list->items[mutation_draw(m, list->count)];
        info->name = mutation_name(m);
        cm_msg_set(&info->msg, CM_VALUE_INFO_NAME);
        return true;
    } else {
        struct cm_value_info_proto *info = CM_LIST_ADD(m->arena, list);
        if (list->count > 1 && mutation_chance(m, 60))
            *info = list->items[mutation_draw(m, list->count - 1)];
        info->name = outputs || mutation_chance(m, 20) ? mutation_name(m) : mutation_new_name(m);
        cm_msg_set(&info->msg, CM_VALUE_INFO_NAME);
        if (!info->type) {
            info->type = mutation_type(m);
            cm_msg_set(&info->msg, CM_VALUE_INFO_TYPE);
        }
    }
    cm_msg_set(&graph->msg, outputs ? CM_GRAPH_OUTPUT : CM_GRAPH_INPUT);
    return true;
}

/* Initializers: gone, made an input, one more. */
static bool mutate_initializers(struct mutation *m)
{
    if (!m->graphs.count)
        return false;
    struct cm_graph_proto *graph = m->graphs.items[mutation_draw(m, m->graphs.count)];

    if (graph->initializer.count && mutation_chance(m, 40)) {
        graph->initializer.count--;
    } else {
        struct cm_tensor_proto *tensor = CM_LIST_ADD(m->arena, &graph->initializer);
        tensor->name = mutation_chance(m, 15) ? mutation_name(m) : mutation_new_name(m);
        cm_msg_set(&tensor->msg, CM_TENSOR_NAME);
        mutation_fill_tensor(m, tensor, mutation_dtype(m), false);
    }
    cm_msg_set(&graph->msg, CM_GRAPH_INITIALIZER);
    return true;
}

/* ---- what libFuzzer calls ---- */

static void change_once(struct mutation *m)
{
    static bool (*const changes[])(struct mutation *) = {
        mutate_operator, mutate_attribute, mutate_attribute, mutate_attribute,
        mutate_wire,     mutate_wire,      mutate_nodes,     mutate_new_node,
        mutate_tensor,   mutate_tensor,    mutate_tensor,    mutate_info,
        mutate_info,     mutate_versions,  mutate_interface, mutate_initializers,
    };

    m->lists.count = m->nodes.count = m->graphs.count = m->tensors.count = 0;
    m->infos.count = m->names.count = 0;
    if (cm_message_walk(&cm_model_info, m->model, collect, m))
        return;
    for (int tries = 0; tries < 8; tries++)
        if (changes[mutation_draw(m, CM_COUNT(changes))](m))
            return;
}

struct job {
    struct cm_str bytes, other;
    uint8_t *out;
    size_t room, made; /* made 0: none */
    uint64_t seed;
    struct cm_error err;
};

/* Nodes of another model, their names with them: they meet where names agree. */
static void take_nodes(struct mutation *m, const struct cm_model_proto *other)
{
    struct cm_graph_proto *graph = m->model->graph;
    const struct cm_graph_proto *from = other->graph;

    if (!graph || !from)
        return;
    for (size_t i = 0; i < from->node.count; i++) {
        *CM_LIST_ADD(m->arena, &graph->node) = from->node.items[i];
        cm_msg_set(&graph->msg, CM_GRAPH_NODE);
    }
    for (size_t i = 0; i < from->initializer.count; i++) {
        *CM_LIST_ADD(m->arena, &graph->initializer) = from->initializer.items[i];
        cm_msg_set(&graph->msg, CM_GRAPH_INITIALIZER);
    }
    for (size_t i = 0; i < from->output.count; i++) {
        *CM_LIST_ADD(m->arena, &graph->output) = from->output.items[i];
        cm_msg_set(&graph->msg, CM_GRAPH_OUTPUT);
    }
}

static enum cm_status mutate(struct cm_guard *guard, void *arg)
{
    struct job *job = arg;
    struct cm_arena arena;
    struct cm_model_proto model = {0}, other = {0};
    struct mutation m = {.arena = &arena, .random = job->seed, .model = &model};
    struct cm_str written;

    cm_arena_init(&arena, guard);
    enum cm_status status = cm_decode(&cm_model_info, job->bytes, &arena, &model, &job->err);
    if (!status && job->other.size) {
        status = cm_decode(&cm_model_info, job->other, &arena, &other, &job->err);
        if (!status)
            take_nodes(&m, &other);
    }
    if (!status) {
        size_t changes = 1;
        while (changes < 6 && mutation_chance(&m, 45))
            changes++;
        while (changes-- > 0)
            change_once(&m);
        status = cm_encode(&cm_model_info, &model, &arena, &written, &job->err);
    }
    if (!status && written.size <= job->room) {
        memcpy(job->out, written.data, written.size);
        job->made = written.size;
    }
    cm_arena_release(&arena);
    return status;
}

static size_t run(struct job *job)
{
    (void)!cm_guarded((size_t)256 << 20, &job->err, mutate, job);
    return job->made;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    if (seed % 8 == 0) /* the decoder is not to be forgotten */
        return LLVMFuzzerMutate(data, size, max_size);
    uint8_t *copy = malloc(size + 1); /* the result is written over what is read */
    if (!copy)
        return LLVMFuzzerMutate(data, size, max_size);
    if (size)
        memcpy(copy, data, size);
    struct job job = {
        .bytes = {(const char *)copy, size}, .out = data, .room = max_size, .seed = seed};
    const size_t made = run(&job);
    free(copy);
    return made ? made : LLVMFuzzerMutate(data, size, max_size);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *data, size_t size, const uint8_t *other,
                                 size_t other_size, uint8_t *out, size_t max_out, unsigned seed)
{
    struct job job = {.bytes = {(const char *)data, size},
                      .other = {(const char *)other, other_size},
                      .out = out,
                      .room = max_out,
                      .seed = seed};
    return run(&job);
}
