/* TensorFlow checkpoints, written: one file of data, its index, and the graph of objects.
 *
 * A training that came from a checkpoint keeps its graph, and the variables their keys; for others
 * one is made (bundle_grow.c). */
// SPDX-License-Identifier: Apache-2.0
#include "base/array.h"
#include "convert/frameworks/keras/bundle_parts.h"

#include "base/crc32c.h"
#include "base/folder_save.h"
#include "base/memory.h"
#include "base/number.h"
#include "bytes/byte_buffer.h"
#include "bytes/leveldb.h"
#include "convert/frameworks/keras/keras_optimizer.h"
#include "onnx/wire.h"

enum { STRING_TYPE = 7 };

void cm_bundle_add(struct cm_bundle_writing *w, struct cm_str key,
                   const struct cm_saved_tensor *tensor)
{
    *CM_PUSH(w->arena, &w->outputs) = (struct cm_bundle_output){.key = key, .tensor = tensor};
}

const struct cm_saved_tensor *cm_bundle_scalar(struct cm_bundle_writing *w, enum cm_dtype dtype,
                                               double value)
{
    int64_t whole;

    if (dtype != CM_INT64)
        return cm_saved_scalar(w->arena, dtype, value);
    return cm_saved_int(w->arena, cm_int64_from(value, &whole) ? whole : INT64_MAX);
}

double cm_bundle_step(const struct cm_saved *saved)
{
    return (double)(saved->step < 0 ? 0 : saved->step) *
           (double)(saved->accumulate > 1 ? saved->accumulate : 1);
}

/* ---- with the graph that was read ---- */

/* Shapes are not known before roles are; every variable counts as one of a single number unless its
 * role says otherwise, which only a slot of a hand-written optimizer needs. */
static const struct cm_shape *shape_of_key(const void *arg, struct cm_str key)
{
    static const struct cm_shape number = {0, {0}}, other = {1, {1}};
    const struct cm_item *numbers = arg;
    double value;

    for (size_t i = 0; i < cm_item_count(numbers); i++) {
        struct cm_str known;
        if (cm_item_is_text(numbers->entries.items[i].key, &known) && cm_str_equal(known, key) &&
            cm_item_is_real(numbers->entries.items[i].value, &value))
            return &number;
    }
    return &other;
}

static const struct cm_saved_tensor *number_kept(struct cm_bundle_writing *w,
                                                 const struct cm_item *numbers, struct cm_str key,
                                                 struct cm_str name)
{
    const struct cm_item *value = cm_item_get(numbers, cm_arena_str(w->arena, key).data);
    double number;

    if (!value || !cm_item_is_real(value, &number))
        return cm_keras_kept(w->arena, value);
    if ((cm_str_is(name, "step") || cm_str_is(name, "global_step")) && w->saved->step >= 0)
        number = (double)w->saved->step;
    return cm_bundle_scalar(w, value->kind == CM_ITEM_REAL ? CM_FLOAT : CM_INT64, number);
}

static double setting_of(const struct cm_plan_group *group, struct cm_str path)
{
    return cm_str_ends(path, "beta_1")     ? group->beta1
           : cm_str_ends(path, "momentum") ? group->momentum
           : cm_str_ends(path, "decay")    ? 0
                                           : group->beta2;
}

/* The tensor of a variable of the graph; NULL: it is not there any more. */
static const struct cm_saved_tensor *variable_tensor(struct cm_bundle_writing *w,
                                                     const struct cm_bundle_node *node,
                                                     const struct cm_bundle_variable *variable,
                                                     const struct cm_item *numbers)
{
    const struct cm_saved *saved = w->saved;
    const struct cm_plan_group *group =
        saved->groups.count ? &saved->groups.items[0].settings : NULL;

    switch (variable->use) {
    case CM_USE_SLOT: {
        const char *meaning = cm_keras_meaning(
            saved->rule, variable->slot.size ? variable->slot : CM_STR("momentum"));
        return meaning ? cm_saved_tensor_of(&w->index, meaning, variable->name) : NULL;
    }
    case CM_USE_AVERAGE:
        return cm_saved_tensor_of(&w->index, "average", variable->name);
    case CM_USE_STEP:
        return cm_bundle_scalar(w, CM_INT64, cm_bundle_step(saved));
    case CM_USE_RATE:
        return group ? cm_bundle_scalar(w, CM_FLOAT, group->lr) : NULL;
    case CM_USE_SETTING:
        return group ? cm_bundle_scalar(w, CM_FLOAT, setting_of(group, node->path)) : NULL;
    default: {
        const struct cm_saved_tensor *tensor = cm_saved_tensor_of(&w->index, "", variable->name);
        return tensor ? tensor : number_kept(w, numbers, node->key, variable->name);
    }
    }
}

static enum cm_status add_objects(struct cm_bundle_writing *w, const struct cm_bundle_graph *graph)
{
    const struct cm_item *numbers = cm_saved_fact(w->saved, "tensorflow.variables");
    struct cm_bundle_roles roles;
    size_t weights = 0, used = 0;

    cm_bundle_roles(w->arena, graph, shape_of_key, numbers, &roles);
    for (size_t i = 0; i < graph->count; i++) {
        struct cm_bundle_node *node = &graph->nodes[i];
        const struct cm_bundle_variable *variable = &roles.variables[i];

        if (variable->use == CM_USE_NONE)
            continue;
        const struct cm_saved_tensor *tensor = variable_tensor(w, node, variable, numbers);
        if (!tensor && variable->use == CM_USE_WEIGHT)
            return cm_fail(w->err, CM_NOT_FOUND, "variable '%.*s' is missing",
                           CM_STR_FMT(variable->name));
        if (tensor)
            cm_bundle_add(w, node->key, tensor);
        else
            node->key = CM_STR_NONE; /* not written; its object stays */
        used += tensor && variable->use == CM_USE_WEIGHT;
    }
    for (size_t i = 0; i < w->saved->entries.count; i++)
        weights += w->saved->entries.items[i].role == CM_SAVED_WEIGHT ||
                   w->saved->entries.items[i].role == CM_SAVED_BUFFER;
    return used < weights
               ? cm_fail(w->err, CM_UNSUPPORTED,
                         "%zu weights are not in the objects that TensorFlow had", weights - used)
               : CM_OK;
}

/* ---- files ---- */

static int by_key(const void *a, const void *b)
{
    return cm_str_compare(((const struct cm_bundle_output *)a)->key,
                          ((const struct cm_bundle_output *)b)->key);
}

/* A tensor on its way to the file. */
struct flow {
    struct cm_save *save;
    struct cm_bundle_output *output;
};

static enum cm_status put_part(void *arg, const void *bytes, size_t size, struct cm_error *err)
{
    const struct flow *flow = arg;

    flow->output->crc = cm_crc32c(flow->output->crc, bytes, size);
    flow->output->size += size;
    return cm_save_write(flow->save, bytes, size, err);
}

/* A text: its length, the check sum of that, its bytes. */
static enum cm_status write_text(struct cm_save *save, struct cm_bundle_output *output,
                                 struct cm_error *err)
{
    uint8_t head[14];
    const uint32_t length = (uint32_t)output->text.size;
    const size_t size = cm_varint_put(head, length);
    const uint32_t crc = cm_crc32c(0, &length, sizeof length);
    const uint32_t stored = cm_crc32c_masked(crc);

    memcpy(head + size, &stored, sizeof stored);
    output->crc = cm_crc32c(cm_crc32c(crc, &stored, sizeof stored), output->text.data, length);
    output->size = size + sizeof stored + length;
    CM_TRY(cm_save_write(save, head, size + sizeof stored, err));
    return cm_save_write(save, output->text.data, length, err);
}

static enum cm_status write_data(void *arg, struct cm_save *save, struct cm_error *err)
{
    const struct cm_bundle_writing *w = arg;

    for (size_t i = 0; i < w->outputs.count; i++) {
        struct cm_bundle_output *output = &w->outputs.items[i];
        const struct cm_saved_tensor *tensor = output->tensor;
        struct flow flow = {save, output};

        output->offset = save->written;
        CM_TRY(tensor ? cm_saved_elements_each(tensor, 0, cm_shape_elements(&tensor->shape),
                                               put_part, &flow, err)
                      : write_text(save, output, err));
    }
    return CM_OK;
}

/* BundleEntryProto. */
static struct cm_str describe(struct cm_bundle_writing *w, const struct cm_bundle_output *output)
{
    struct cm_bytes shape = {.arena = w->arena}, entry = {.arena = w->arena};

    for (int i = 0; output->tensor && i < output->tensor->shape.rank; i++) {
        struct cm_bytes dim = {.arena = w->arena};

        cm_bytes_field(&dim, 1, (uint64_t)output->tensor->shape.dims[i]);
        cm_bytes_field_text(&shape, 2, cm_bytes_str(&dim));
    }
    cm_bytes_field(&entry, 1,
                   output->tensor ? cm_bundle_type(output->tensor->dtype) : (uint64_t)STRING_TYPE);
    cm_bytes_field_text(&entry, 2, cm_bytes_str(&shape));
    if (output->offset)
        cm_bytes_field(&entry, 4, output->offset);
    cm_bytes_field(&entry, 5, output->size);
    cm_bytes_number(&entry, 6 << 3 | CM_WIRE_FIXED32, 1);
    cm_bytes_number(&entry, cm_crc32c_masked(output->crc), 4);
    return cm_bytes_str(&entry);
}

static enum cm_status write_index(void *arg, struct cm_save *save, struct cm_error *err)
{
    static const char header[] = "\x08\x01\x1a\x02\x08\x01"; /* one file of data, version 1 */
    struct cm_bundle_writing *w = arg;
    const size_t count = w->outputs.count + 1;
    struct cm_table_entry *entries = CM_NEW_ARRAY(w->arena, struct cm_table_entry, count);

    entries[0] = (struct cm_table_entry){CM_STR(""), {header, sizeof header - 1}};
    for (size_t i = 1; i < count; i++)
        entries[i] = (struct cm_table_entry){w->outputs.items[i - 1].key,
                                             describe(w, &w->outputs.items[i - 1])};
    return cm_table_write(w->arena, save, entries, count, err);
}

static enum cm_status check_outputs(struct cm_bundle_writing *w)
{
    qsort(w->outputs.items, w->outputs.count, sizeof *w->outputs.items, by_key);
    for (size_t i = 0; i < w->outputs.count; i++) {
        const struct cm_bundle_output *output = &w->outputs.items[i];

        if (i && cm_str_equal(output->key, output[-1].key))
            return cm_fail(w->err, CM_BAD_MODEL, "two variables are called '%.*s'",
                           CM_STR_FMT(output->key));
        if (output->tensor && !cm_bundle_type(output->tensor->dtype))
            return cm_fail(w->err, CM_UNSUPPORTED, "TensorFlow has no type %s ('%.*s')",
                           cm_dtype_name(output->tensor->dtype), CM_STR_FMT(output->key));
    }
    return CM_OK;
}

enum cm_status cm_bundle_put_files(struct cm_bundle_writing *w, struct cm_folder_save *folder,
                                   struct cm_str prefix, struct cm_error *err)
{
    const char *data =
        cm_arena_printf(w->arena, "%.*s.data-00000-of-00001", CM_STR_ALL(prefix)).data;
    const char *index = cm_arena_printf(w->arena, "%.*s.index", CM_STR_ALL(prefix)).data;

    CM_TRY(check_outputs(w));
    CM_TRY(cm_saved_put_file(w->saved, folder, data, write_data, w, err));
    return cm_saved_put_file(w->saved, folder, index, write_index, w, err);
}

static enum cm_status write_folder(void *arg, struct cm_folder_save *folder, struct cm_error *err)
{
    struct cm_bundle_writing *w = arg;
    const long long number = w->saved->step < 0 ? 1 : (long long)w->saved->step;

    CM_TRY(cm_bundle_put_files(w, folder, cm_arena_printf(w->arena, "ckpt-%lld", number), err));
    return cm_folder_put(folder, w->arena, "checkpoint",
                         cm_arena_printf(w->arena,
                                         "model_checkpoint_path: \"ckpt-%lld\"\n"
                                         "all_model_checkpoint_paths: \"ckpt-%lld\"\n",
                                         number, number),
                         err);
}

enum cm_status cm_bundle_write(const struct cm_saved *saved, const char *path, struct cm_error *err)
{
    struct cm_bundle_writing w = {.arena = saved->arena, .saved = saved, .err = err};
    struct cm_bundle_graph graph;

    w.index = cm_saved_index(w.arena, saved);
    if (saved->has_optimizer &&
        cm_bundle_graph_from_item(w.arena, cm_saved_fact(saved, "tensorflow.objects"), &graph))
        CM_TRY(add_objects(&w, &graph));
    else
        CM_TRY(cm_bundle_grow(&w, &graph));
    *CM_PUSH(w.arena, &w.outputs) = (struct cm_bundle_output){
        .key = CM_STR(CM_BUNDLE_GRAPH_KEY), .text = cm_bundle_graph_encode(w.arena, &graph)};
    return cm_saved_write_folder(saved, path, write_folder, &w, err);
}
