/* TensorFlow checkpoints, written: one file of data, its index, and the graph of objects.
 *
 * A training that came from a checkpoint keeps its graph, and the variables their keys. Otherwise
 * weights are children of "model" by their names, and an optimizer is what Keras's are, lists of
 * variables; Keras finds the weights through the list of those it trains. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/bundle.h"

#include "base/crc32c.h"
#include "base/folder_save.h"
#include "base/memory.h"
#include "convert/keras_optimizer.h"
#include "convert/leveldb.h"
#include "onnx/wire.h"

enum { PIECE = 1 << 20, STRING_TYPE = 7 };

/* A variable to write. */
struct output {
    struct cm_str key;
    const struct cm_saved_tensor *tensor;
    struct cm_str text; /* instead: a text */
    uint64_t offset, size;
    uint32_t crc;
};

struct writing {
    struct cm_arena *arena;
    const struct cm_saved *saved;
    struct {
        struct output *items;
        size_t count, capacity;
    } outputs;
    struct cm_map tensors; /* "meaning weight", " weight": entry + 1 */
    struct cm_error *err;
};

static const struct cm_item *fact(const struct cm_saved *saved, const char *key)
{
    for (size_t i = 0; i < saved->facts.count; i++)
        if (cm_str_is(saved->facts.items[i].key, key))
            return saved->facts.items[i].value;
    return NULL;
}

static void add(struct writing *w, struct cm_str key, const struct cm_saved_tensor *tensor)
{
    *CM_PUSH(w->arena, &w->outputs) = (struct output){.key = key, .tensor = tensor};
}

static const struct cm_saved_tensor *scalar(struct writing *w, enum cm_dtype dtype, double value)
{
    union {
        int64_t whole;
        float real;
    } *room = cm_arena_alloc(w->arena, sizeof *room);
    struct cm_saved_tensor *tensor = NULL;

    if (dtype == CM_INT64)
        room->whole = (int64_t)value;
    else
        room->real = (float)value;
    const struct cm_str bytes = {(const char *)room, cm_dtype_size(dtype)};
    return cm_saved_tensor_new(w->arena, dtype, &CM_SCALAR, bytes, CM_STR("memory"), &tensor, NULL)
               ? NULL
               : tensor;
}

static double step_of(const struct cm_saved *saved)
{
    return (double)(saved->step < 0 ? 0 : saved->step) *
           (double)(saved->accumulate > 1 ? saved->accumulate : 1);
}

/* ---- which tensor ---- */

static void index_tensors(struct writing *w)
{
    for (size_t i = 0; i < w->saved->entries.count; i++) {
        const struct cm_saved_entry *entry = &w->saved->entries.items[i];
        const char *kind = entry->role == CM_SAVED_SLOT      ? entry->meaning
                           : entry->role == CM_SAVED_AVERAGE ? "average"
                                                             : "";
        if (!kind)
            continue;
        uint64_t *found = cm_map_insert(
            &w->tensors, w->arena,
            cm_arena_printf(w->arena, "%s %.*s", kind, (int)entry->name.size, entry->name.data),
            NULL);
        if (!*found || entry->role == CM_SAVED_MASTER)
            *found = i + 1;
    }
}

static const struct cm_saved_tensor *tensor_of(struct writing *w, const char *kind,
                                               struct cm_str name)
{
    const uint64_t found = cm_map_get(
        &w->tensors, cm_arena_printf(w->arena, "%s %.*s", kind, (int)name.size, name.data), 0);

    return found ? w->saved->entries.items[found - 1].tensor : NULL;
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

static const struct cm_saved_tensor *number_kept(struct writing *w, const struct cm_item *numbers,
                                                 struct cm_str key, struct cm_str name)
{
    const struct cm_item *value = cm_item_get(numbers, cm_arena_str(w->arena, key).data);
    double number;

    if (!value || !cm_item_is_real(value, &number))
        return cm_keras_kept(w->arena, value);
    if ((cm_str_is(name, "step") || cm_str_is(name, "global_step")) && w->saved->step >= 0)
        number = (double)w->saved->step;
    return scalar(w, value->kind == CM_ITEM_REAL ? CM_FLOAT : CM_INT64, number);
}

static double setting_of(const struct cm_plan_group *group, struct cm_str path)
{
    return cm_str_ends(path, "beta_1")     ? group->beta1
           : cm_str_ends(path, "momentum") ? group->momentum
           : cm_str_ends(path, "decay")    ? 0
                                           : group->beta2;
}

/* The tensor of a variable of the graph; NULL: it is not there any more. */
static const struct cm_saved_tensor *variable_tensor(struct writing *w,
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
        return meaning ? tensor_of(w, meaning, variable->name) : NULL;
    }
    case CM_USE_AVERAGE:
        return tensor_of(w, "average", variable->name);
    case CM_USE_STEP:
        return scalar(w, CM_INT64, step_of(saved));
    case CM_USE_RATE:
        return group ? scalar(w, CM_FLOAT, group->lr) : NULL;
    case CM_USE_SETTING:
        return group ? scalar(w, CM_FLOAT, setting_of(group, node->path)) : NULL;
    default: {
        const struct cm_saved_tensor *tensor = tensor_of(w, "", variable->name);
        return tensor ? tensor : number_kept(w, numbers, node->key, variable->name);
    }
    }
}

static enum cm_status add_objects(struct writing *w, const struct cm_bundle_graph *graph)
{
    const struct cm_item *numbers = fact(w->saved, "tensorflow.variables");
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
            add(w, node->key, tensor);
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

/* ---- with a graph of our own ---- */

struct growing {
    struct {
        struct cm_bundle_node *items;
        size_t count, capacity;
    } nodes;
    struct cm_map paths; /* of nodes, to their number */
};

static size_t new_child(struct writing *w, struct growing *g, size_t above, struct cm_str name)
{
    *CM_PUSH(w->arena, &g->nodes) = (struct cm_bundle_node){0};
    const size_t node = g->nodes.count - 1;
    *CM_PUSH(w->arena, &g->nodes.items[above].children) = (struct cm_bundle_child){name, node};
    return node;
}

/* The object at a path below "model": parts are parted by '/', or by '.' where there is none. */
static size_t object_at(struct writing *w, struct growing *g, size_t model, struct cm_str name)
{
    const char part = memchr(name.data, '/', name.size) ? '/' : '.';
    size_t node = model, begin = 0;

    for (size_t i = 0; i <= name.size; i++) {
        if (i < name.size && name.data[i] != part)
            continue;
        bool added;
        uint64_t *found = cm_map_insert(&g->paths, w->arena, (struct cm_str){name.data, i}, &added);
        if (added)
            *found = new_child(w, g, node, (struct cm_str){name.data + begin, i - begin});
        node = (size_t)*found;
        begin = i + 1;
    }
    return node;
}

static void set_variable(struct writing *w, struct growing *g, size_t node, struct cm_str path,
                         struct cm_str full_name, const struct cm_saved_tensor *tensor)
{
    g->nodes.items[node].full_name = full_name;
    g->nodes.items[node].key =
        cm_arena_printf(w->arena, "%.*s" CM_BUNDLE_SUFFIX, (int)path.size, path.data);
    add(w, g->nodes.items[node].key, tensor);
}

/* The names of Keras's lists of slots. */
static const char *list_of(const struct cm_saved *saved, const char *word)
{
    static const char *const names[][2] = {{"momentum", "_momentums"},
                                           {"velocity", "_velocities"},
                                           {"velocity_hat", "_velocity_hats"},
                                           {"accumulator", "_accumulators"},
                                           {"average_gradient", "_average_gradients"},
                                           {"average", "_model_variables_moving_average"}};

    if (saved->rule == CM_RULE_SGD && strcmp(word, "momentum") == 0)
        return "momentums";
    for (size_t i = 0; i < CM_COUNT(names); i++)
        if (strcmp(names[i][0], word) == 0)
            return names[i][1];
    return "_slots";
}

static void add_child(struct writing *w, struct growing *g, size_t above, size_t number,
                      size_t node)
{
    *CM_PUSH(w->arena, &g->nodes.items[above].children) =
        (struct cm_bundle_child){cm_arena_printf(w->arena, "%zu", number), node};
}

static enum cm_status grow_optimizer(struct writing *w, struct growing *g, size_t model)
{
    const struct cm_saved *saved = w->saved;
    const struct cm_saved_group *group = &saved->groups.items[0];
    const struct cm_keras_optimizer *known = cm_keras_optimizer(saved->optimizer);
    const char *name = known ? known->name : "optimizer";
    struct cm_keras_run runs[5];

    if (saved->groups.count != 1)
        return cm_fail(w->err, CM_UNSUPPORTED,
                       "optimizers of Keras have one group of weights, this one has %zu",
                       saved->groups.count);
    const size_t optimizer = new_child(w, g, 0, CM_STR("optimizer"));
    const size_t variables = new_child(w, g, optimizer, CM_STR("_variables"));
    const size_t trained = new_child(w, g, optimizer, CM_STR("_trainable_variables"));
    const size_t step = new_child(w, g, optimizer, CM_STR("_iterations"));
    size_t n = 0;

    set_variable(w, g, step, CM_STR("optimizer/_iterations"),
                 cm_arena_printf(w->arena, "%s/iteration", name),
                 scalar(w, CM_INT64, step_of(saved)));
    add_child(w, g, variables, n++, step);
    if (saved->schedule_known == CM_SCHEDULE_NONE || saved->schedule.count == 0) {
        const size_t rate = new_child(w, g, optimizer, CM_STR("_learning_rate"));
        set_variable(w, g, rate, CM_STR("optimizer/_learning_rate"),
                     cm_arena_printf(w->arena, "%s/learning_rate", name),
                     scalar(w, CM_FLOAT, group->settings.lr));
        add_child(w, g, variables, n++, rate);
    }
    for (size_t i = 0; i < group->names.count; i++)
        add_child(w, g, trained, i, object_at(w, g, model, group->names.items[i]));
    const size_t n_runs = cm_keras_runs(saved, runs);
    for (size_t r = 0; r < n_runs; r++)
        for (size_t k = 0; k < CM_COUNT(runs[r].words) && runs[r].words[k]; k++) {
            const char *word = runs[r].words[k],
                       *meaning = cm_keras_meaning(saved->rule, cm_str(word));
            const size_t list = new_child(w, g, optimizer, cm_str(list_of(saved, word)));
            size_t stride = 1;
            while (stride < CM_COUNT(runs[r].words) && runs[r].words[stride])
                stride++;

            for (size_t i = 0; i < group->names.count; i++) {
                const struct cm_str weight = group->names.items[i];
                const struct cm_saved_tensor *tensor =
                    tensor_of(w, meaning ? meaning : word, weight);
                const size_t number = n + i * stride + k;
                if (!tensor)
                    return cm_fail(w->err, CM_NOT_FOUND, "'%.*s' has no %s", CM_STR_FMT(weight),
                                   word);
                const size_t node = new_child(w, g, list, cm_arena_printf(w->arena, "%zu", i));
                add_child(w, g, variables, number, node);
                set_variable(w, g, node,
                             cm_arena_printf(w->arena, "optimizer/_variables/%zu", number),
                             cm_arena_printf(w->arena, "%s/%.*s_%s", name, (int)weight.size,
                                             weight.data, word),
                             tensor);
            }
            if (k + 1 == stride)
                n += stride * group->names.count;
        }
    return CM_OK;
}

static enum cm_status grow(struct writing *w, struct cm_bundle_graph *graph)
{
    const struct cm_saved *saved = w->saved;
    struct growing g = {0};

    *CM_PUSH(w->arena, &g.nodes) = (struct cm_bundle_node){0};
    const size_t model = new_child(w, &g, 0, CM_STR("model"));
    for (size_t i = 0; i < saved->entries.count; i++) {
        const struct cm_saved_entry *entry = &saved->entries.items[i];

        if ((entry->role != CM_SAVED_WEIGHT && entry->role != CM_SAVED_BUFFER) || !entry->name.size)
            continue;
        const size_t node = object_at(w, &g, model, entry->name);
        if (!g.nodes.items[node].key.size)
            set_variable(
                w, &g, node,
                cm_arena_printf(w->arena, "model/%.*s", (int)entry->name.size, entry->name.data),
                entry->name, tensor_of(w, "", entry->name));
    }
    if (saved->has_optimizer && saved->groups.count)
        CM_TRY(grow_optimizer(w, &g, model));
    const size_t counter = new_child(w, &g, 0, CM_STR("save_counter"));
    set_variable(w, &g, counter, CM_STR("save_counter"), CM_STR("save_counter"),
                 scalar(w, CM_INT64, 1));
    *graph = (struct cm_bundle_graph){g.nodes.items, g.nodes.count};
    return CM_OK;
}

/* ---- files ---- */

static int by_key(const void *a, const void *b)
{
    return cm_str_compare(((const struct output *)a)->key, ((const struct output *)b)->key);
}

static enum cm_status write_tensor(struct writing *w, struct cm_save *save, struct output *output,
                                   uint8_t *piece)
{
    const struct cm_saved_tensor *tensor = output->tensor;
    struct cm_saved_reader reader = {.mapped = w->saved->mapped.items,
                                     .n_mapped = w->saved->mapped.count};
    const size_t width = cm_dtype_size(tensor->dtype);
    const int64_t count = cm_shape_elements(&tensor->shape), some = (int64_t)(PIECE / width);
    enum cm_status status = CM_OK;

    for (int64_t first = 0; first < count && !status; first += some) {
        const int64_t now = some < count - first ? some : count - first;
        const size_t size = (size_t)now * width;

        status = cm_saved_tensor_read(&reader, tensor, first, now, piece, w->err);
        if (!status) {
            output->crc = cm_crc32c(output->crc, piece, size);
            output->size += size;
            status = cm_save_write(save, piece, size, w->err);
        }
    }
    cm_saved_tensor_forget(&reader, tensor);
    cm_saved_reader_release(&reader);
    return status;
}

/* A text: its length, the check sum of that, its bytes. */
static enum cm_status write_text(struct writing *w, struct cm_save *save, struct output *output)
{
    uint8_t head[14];
    const uint32_t length = (uint32_t)output->text.size;
    const size_t size = cm_wire_put_varint(head, length);
    const uint32_t crc = cm_crc32c(0, &length, sizeof length);
    const uint32_t stored = cm_table_checksum(crc);

    memcpy(head + size, &stored, sizeof stored);
    output->crc = cm_crc32c(cm_crc32c(crc, &stored, sizeof stored), output->text.data, length);
    output->size = size + sizeof stored + length;
    CM_TRY(cm_save_write(save, head, size + sizeof stored, w->err));
    return cm_save_write(save, output->text.data, length, w->err);
}

static enum cm_status write_data(struct writing *w, struct cm_save *save)
{
    uint8_t *piece = cm_arena_alloc(w->arena, PIECE);

    for (size_t i = 0; i < w->outputs.count; i++) {
        struct output *output = &w->outputs.items[i];

        output->offset = save->written;
        CM_TRY(output->tensor ? write_tensor(w, save, output, piece) : write_text(w, save, output));
    }
    return CM_OK;
}

struct message {
    char *items;
    size_t count, capacity;
};

static void put_number(struct writing *w, struct message *to, unsigned tag, uint64_t value)
{
    uint8_t bytes[10];
    const size_t size = cm_wire_put_varint(bytes, value);

    if (tag)
        *CM_PUSH(w->arena, to) = (char)tag;
    for (size_t i = 0; i < size; i++)
        *CM_PUSH(w->arena, to) = (char)bytes[i];
}

/* BundleEntryProto. */
static struct cm_str describe(struct writing *w, const struct output *output)
{
    struct message shape = {0}, entry = {0};

    for (int i = 0; output->tensor && i < output->tensor->shape.rank; i++) {
        struct message dim = {0};

        put_number(w, &dim, 8, (uint64_t)output->tensor->shape.dims[i]);
        put_number(w, &shape, 18, dim.count);
        for (size_t b = 0; b < dim.count; b++)
            *CM_PUSH(w->arena, &shape) = dim.items[b];
    }
    put_number(w, &entry, 8,
               output->tensor ? cm_bundle_type(output->tensor->dtype) : (uint64_t)STRING_TYPE);
    put_number(w, &entry, 18, shape.count);
    for (size_t b = 0; b < shape.count; b++)
        *CM_PUSH(w->arena, &entry) = shape.items[b];
    if (output->offset)
        put_number(w, &entry, 32, output->offset);
    put_number(w, &entry, 40, output->size);
    *CM_PUSH(w->arena, &entry) = 53;
    const uint32_t crc = cm_table_checksum(output->crc);
    for (int i = 0; i < 4; i++)
        *CM_PUSH(w->arena, &entry) = (char)(crc >> 8 * i);
    return (struct cm_str){entry.items, entry.count};
}

static enum cm_status write_index(struct writing *w, struct cm_save *save)
{
    static const char header[] = "\x08\x01\x1a\x02\x08\x01"; /* one file of data, version 1 */
    const size_t count = w->outputs.count + 1;
    struct cm_table_entry *entries = CM_NEW_ARRAY(w->arena, struct cm_table_entry, count);

    entries[0] = (struct cm_table_entry){CM_STR(""), {header, sizeof header - 1}};
    for (size_t i = 1; i < count; i++)
        entries[i] = (struct cm_table_entry){w->outputs.items[i - 1].key,
                                             describe(w, &w->outputs.items[i - 1])};
    return cm_table_write(w->arena, save, entries, count, w->err);
}

typedef enum cm_status fill_fn(struct writing *w, struct cm_save *save);

static void abandon_file(void *save)
{
    cm_save_abandon(save);
}

static void abandon_folder(void *folder)
{
    cm_folder_abandon(folder);
}

static enum cm_status write_file(struct writing *w, struct cm_folder_save *folder, const char *name,
                                 const atomic_bool *cancel, fill_fn *fill)
{
    struct cm_save *save = CM_NEW(w->arena, struct cm_save);
    const char *path;

    CM_TRY(cm_folder_file(folder, w->arena, name, &path, w->err));
    CM_TRY(cm_save_begin(save, path, w->err));
    cm_arena_defer(w->arena, abandon_file, save);
    save->cancel = cancel;
    CM_TRY(fill(w, save));
    return cm_save_commit(save, w->err);
}

static enum cm_status check_outputs(struct writing *w)
{
    qsort(w->outputs.items, w->outputs.count, sizeof *w->outputs.items, by_key);
    for (size_t i = 0; i < w->outputs.count; i++) {
        const struct output *output = &w->outputs.items[i];

        if (i && cm_str_equal(output->key, output[-1].key))
            return cm_fail(w->err, CM_BAD_MODEL, "two variables are called '%.*s'",
                           CM_STR_FMT(output->key));
        if (output->tensor && !cm_bundle_type(output->tensor->dtype))
            return cm_fail(w->err, CM_UNSUPPORTED, "TensorFlow has no type %s ('%.*s')",
                           cm_dtype_name(output->tensor->dtype), CM_STR_FMT(output->key));
    }
    return CM_OK;
}

enum cm_status cm_bundle_write(const struct cm_saved *saved, const char *path,
                               const struct cm_write_options *options, struct cm_error *err)
{
    struct writing w = {.arena = saved->arena, .saved = saved, .err = err};
    struct cm_folder_save *folder = CM_NEW(w.arena, struct cm_folder_save);
    const atomic_bool *cancel = options ? options->cancel : NULL;
    struct cm_bundle_graph graph;

    index_tensors(&w);
    if (saved->has_optimizer &&
        cm_bundle_graph_from_item(w.arena, fact(saved, "tensorflow.objects"), &graph))
        CM_TRY(add_objects(&w, &graph));
    else
        CM_TRY(grow(&w, &graph));
    *CM_PUSH(w.arena, &w.outputs) = (struct output){
        .key = CM_STR(CM_BUNDLE_GRAPH_KEY), .text = cm_bundle_graph_encode(w.arena, &graph)};
    CM_TRY(check_outputs(&w));
    const struct cm_str name =
        cm_arena_printf(w.arena, "ckpt-%lld", saved->step < 0 ? 1LL : (long long)saved->step);
    CM_TRY(cm_folder_begin(folder, path, err));
    cm_arena_defer(w.arena, abandon_folder, folder);
    CM_TRY(write_file(&w, folder,
                      cm_arena_printf(w.arena, "%s.data-00000-of-00001", name.data).data, cancel,
                      write_data));
    CM_TRY(write_file(&w, folder, cm_arena_printf(w.arena, "%s.index", name.data).data, cancel,
                      write_index));
    CM_TRY(cm_folder_put(folder, w.arena, "checkpoint",
                         cm_arena_printf(w.arena,
                                         "model_checkpoint_path: \"%s\"\n"
                                         "all_model_checkpoint_paths: \"%s\"\n",
                                         name.data, name.data),
                         err));
    return cm_folder_commit(folder, err);
}
