/* Tensors of the model: which are parameters, and what the framework calls them. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/code/code_state.h"

#include "convert/transfer/export_saved.h"
#include "graph/op.h"
#include "onnx/tensor_data.h"

enum { INSIDE_MAX = 8, PATH_MAX_PARTS = 32, MOVES_MAX = 6 };

/* ---- names ---- */

static bool is_taken(const struct cm_code *code, struct cm_str part)
{
    for (size_t i = 0; code->to->taken[i]; i++)
        if (cm_str_is(part, code->to->taken[i]))
            return true;
    return false;
}

/* A part of a path as the framework can have it: an identifier that is free, or a number below
 * another part. */
static struct cm_str path_part(struct cm_code *code, struct cm_str part, bool is_first)
{
    if (cm_code_is_number(part) && !is_first)
        return part;
    if (!cm_code_is_identifier(part) || part.data[0] == '_')
        part = cm_code_identifier(code->arena, part);
    return is_taken(code, part) ? cm_arena_printf(code->arena, "%.*s_", CM_STR_ALL(part)) : part;
}

enum { PATH_FREE, PATH_TENSOR, PATH_MODULE };

/* "enc.layers.0.weight": dots part modules only where all parts are names as people give them. */
static struct cm_str unique_path(struct cm_code *code, struct cm_str name)
{
    struct cm_str parts[PATH_MAX_PARTS], path = CM_STR_NONE;
    size_t count = 0;

    for (size_t begin = 0, i = 0; i <= name.size && count < PATH_MAX_PARTS; i++) {
        if (i < name.size && name.data[i] != '.')
            continue;
        parts[count++] = (struct cm_str){name.data + begin, i - begin};
        begin = i + 1;
    }
    for (size_t i = 0; i < count; i++)
        if (!cm_code_is_identifier(parts[i]) && !(i && cm_code_is_number(parts[i])))
            count = 0;
    if (!count || count == PATH_MAX_PARTS || cm_code_is_number(parts[count - 1])) {
        parts[0] = cm_code_identifier(code->arena, name);
        count = 1;
    }
    for (size_t i = 0; i < count; i++) {
        const bool is_last = i + 1 == count;
        struct cm_str part = path_part(code, parts[i], i == 0), whole;

        for (unsigned n = 2;; n++) {
            whole = path.size ? cm_arena_printf(code->arena, "%.*s.%.*s", CM_STR_ALL(path),
                                                CM_STR_ALL(part))
                              : part;
            const uint64_t is = cm_map_get(&code->paths, whole, PATH_FREE);
            if (is == PATH_FREE || (is == PATH_MODULE && !is_last))
                break;
            part = cm_arena_printf(code->arena, "%.*s_%u",
                                   CM_STR_ALL(path_part(code, parts[i], false)), n);
        }
        path = whole;
        *cm_map_insert(&code->paths, code->arena, path, NULL) = is_last ? PATH_TENSOR : PATH_MODULE;
    }
    return path;
}

/* ---- contents ---- */

static void store(enum cm_dtype type, void *to, int64_t i, const struct cm_tensor *from)
{
    switch (type) {
    case CM_FLOAT:
        ((float *)to)[i] = (float)cm_tensor_real(from, i);
        break;
    case CM_UINT8:
    case CM_INT8:
        ((uint8_t *)to)[i] = (uint8_t)cm_tensor_int(from, i);
        break;
    case CM_INT16:
        ((int16_t *)to)[i] = (int16_t)cm_tensor_int(from, i);
        break;
    case CM_INT32:
        ((int32_t *)to)[i] = (int32_t)cm_tensor_int(from, i);
        break;
    default:
        ((int64_t *)to)[i] = cm_tensor_int(from, i);
        break;
    }
}

/* The elements in the type that the framework holds them in, in memory of the arena. */
static struct cm_tensor held_contents(struct cm_code *code, const struct cm_tensor *from)
{
    const enum cm_dtype type = code->to->types[from->type].held;
    const int64_t count = cm_tensor_count(from);
    void *bytes = cm_arena_alloc_array(code->arena, (size_t)count + 1, cm_dtype_size(type));

    for (int64_t i = 0; i < count; i++)
        store(type, bytes, i, from);
    return cm_tensor_borrow(type, &from->shape, bytes);
}

static enum cm_status save_tensor(struct cm_code *code, struct cm_code_tensor *tensor,
                                  const struct cm_tensor *contents)
{
    struct cm_tensor held = *contents;

    if (code->to->types[contents->type].held != contents->type)
        held = held_contents(code, contents);
    const struct cm_str bytes = {held.data, cm_tensor_bytes(&held)};
    CM_TRY(cm_saved_tensor_new(code->arena, held.type, &tensor->shape, bytes, code->file->path,
                               &tensor->saved, code->err));
    if (!tensor->is_turned)
        return CM_OK;
    struct cm_saved_tensor *turned = CM_NEW(code->arena, struct cm_saved_tensor);
    *turned = *tensor->saved;
    turned->pieces.items = NULL;
    turned->pieces.count = turned->pieces.capacity = 0;
    struct cm_saved_piece *piece = cm_saved_piece_add(code->arena, turned, true);
    piece->bytes = bytes;
    piece->file = code->file->path;
    for (int a = 0; a < 2; a++)
        piece->size[a] = tensor->shape.dims[a];
    piece->stride[0] = 1;
    piece->stride[1] = tensor->shape.dims[0];
    tensor->saved = turned;
    return CM_OK;
}

/* The bytes of an initializer where they lie. */
static enum cm_status view(struct cm_code *code, const struct cm_tensor_proto *proto,
                           const struct cm_tensor **out)
{
    struct cm_tensor *tensor = CM_NEW(code->arena, struct cm_tensor);
    bool aligned;

    CM_TRY(cm_tensor_proto_view(proto, code->file->files, tensor, &aligned, code->err));
    cm_tensor_defer(code->arena, tensor);
    *out = tensor;
    return CM_OK;
}

static enum cm_status take_contents(struct cm_code *code, struct cm_code_tensor *tensor)
{
    const struct cm_value_def *def = cm_value_get(code->module, tensor->value);
    const struct cm_tensor *viewed;

    if (tensor->contents || tensor->saved)
        return CM_OK;
    if (def->initializer && !def->fact.constant) {
        CM_TRY(view(code, def->initializer, &viewed));
        return save_tensor(code, tensor, viewed);
    }
    return CM_OK;
}

/* ---- parameters ---- */

struct reads {
    bool is_learned, is_statistic, is_applied;
};

/* How nodes read an initializer, through nodes that only move its elements. */
static struct reads reads_of(struct cm_code *code, cm_value value, int depth)
{
    struct reads reads = {0};

    for (const struct cm_use *use = cm_value_get(code->module, value)->uses; use; use = use->next) {
        const struct cm_op *op = use->node ? use->node->op : NULL;
        const char *duty = op ? cm_operand_duty(op, use->index) : NULL;

        if (duty && (strcmp(duty, "mean") == 0 || strcmp(duty, "var") == 0))
            reads.is_statistic = true;
        else if (duty)
            reads.is_learned = true;
        else if (op && op->elementwise)
            reads.is_applied = true;
        if (!duty && op && depth < MOVES_MAX && cm_node_output(use->node, 0) &&
            (op->values.kept || op->values.is_copy ||
             op->values.picked_from & (1u << (use->index & 31))))
            reads.is_learned |= reads_of(code, use->node->outputs[0], depth + 1).is_learned;
    }
    return reads;
}

static bool is_trained(struct cm_code *code, cm_value value, const struct cm_tensor_proto *proto)
{
    const struct cm_original *original = cm_originals_find(code->originals, proto->name);
    const struct reads reads = reads_of(code, value, 0);
    const enum cm_dtype dtype = (enum cm_dtype)proto->data_type;

    if (dtype != CM_FLOAT && dtype != CM_DOUBLE && dtype != CM_FLOAT16 && dtype != CM_BFLOAT16)
        return false;
    if (cm_map_find(&code->moved, proto->name) && !reads.is_statistic)
        return true;
    if (code->originals->n_recorded) /* the file says which tensors are parameters */
        return original && original->names.count && original->is_parameter;
    if (reads.is_statistic || !proto->dims.count)
        return false;
    return reads.is_learned;
}

static void name_tensor(struct cm_code *code, struct cm_code_tensor *tensor,
                        const struct cm_tensor_proto *proto)
{
    struct cm_parts parts;
    struct cm_str name = proto->name;
    size_t n_aliases;

    if (cm_original_parts(code->arena, code->originals, code->file->model.graph, proto, &parts,
                          &n_aliases) &&
        parts.count == 1 + n_aliases) {
        const struct cm_part *part = &parts.items[0];
        const bool is_whole =
            cm_parts_are_whole(&(struct cm_parts){.items = parts.items, .count = 1});
        const bool is_turned = part->rank == 2 && part->source_rank == 2 && part->axes[0] == 1;
        if (is_whole || is_turned)
            name = part->source;
        tensor->is_turned = is_turned && code->to->turned_format;
        /* What has its inputs first is a kernel to frameworks that have it so. */
        if (is_turned && !tensor->is_turned && cm_str_ends(name, ".weight"))
            name = cm_arena_printf(code->arena, "%.*s.kernel",
                                   CM_STR_ALL(cm_str_before_last(name, '.')));
    }
    if (tensor->is_turned) {
        const int64_t first = tensor->shape.dims[0];
        tensor->shape.dims[0] = tensor->shape.dims[1];
        tensor->shape.dims[1] = first;
    }
    tensor->path = unique_path(code, name);
}

static size_t add_tensor(struct cm_code *code, cm_value value)
{
    bool added;
    uint64_t *number = cm_map_insert_number(&code->tensor_of, code->arena, value, &added);

    if (added) {
        *CM_PUSH(code->arena, &code->tensors) = (struct cm_code_tensor){.value = value};
        *number = code->tensors.count;
    }
    return (size_t)*number - 1;
}

/* ---- tensors that an exporter merged ---- */

/* Does it hold one value throughout? Such tensors are merged because they begin alike; others are
 * tied. */
static bool is_one_value(const struct cm_tensor *tensor)
{
    const size_t size = cm_dtype_size(tensor->type), bytes = cm_tensor_bytes(tensor);
    const char *data = tensor->data;

    return size && bytes > size && memcmp(data, data + size, bytes - size) == 0;
}

/* Each layer gets a tensor of its own, under the name that the network had for it. */
static enum cm_status untie(struct cm_code *code, cm_value value,
                            const struct cm_tensor_proto *proto, struct cm_map *parts,
                            struct cm_error *err)
{
    const struct cm_original *original = cm_originals_find(code->originals, proto->name);
    const struct cm_tensor *contents;

    if (!original || original->names.count < 2)
        return CM_OK;
    CM_TRY(view(code, proto, &contents));
    if (!is_one_value(contents))
        return CM_OK;
    struct cm_use *next;
    for (struct cm_use *use = cm_value_get(code->module, value)->uses; use; use = next) {
        const struct cm_origin *origin = use->node ? use->node->origin : NULL;
        next = use->next;
        if (!origin || !origin->proto || use->index < 0)
            continue;
        const struct cm_str meant =
            cm_originals_meant(code->originals, proto->name, origin->proto, (size_t)use->index);
        const uint64_t *whole = cm_map_find_number(&code->tensor_of, value);
        if (!meant.size || (whole && cm_str_equal(meant, code->tensors.items[*whole - 1].path)))
            continue;
        bool added;
        uint64_t *own = cm_map_insert(parts, code->arena, meant, &added);
        if (added) {
            cm_value made;
            CM_TRY(cm_graph_copy_constant(code->graph, CM_STR_NONE, contents, &made, err));
            *own = made;
            struct cm_value_def *def = cm_value_get(code->module, made);
            struct cm_code_tensor tensor = {.value = made,
                                            .dtype = contents->type,
                                            .shape = contents->shape,
                                            .is_parameter = original->is_parameter};
            tensor.path = unique_path(code, meant);
            const size_t number = add_tensor(code, made);
            code->tensors.items[number] = tensor;
            CM_TRY(save_tensor(code, &code->tensors.items[number], contents));
            def->is_state = true;
        }
        cm_use_redirect(code->module, use, (cm_value)*own);
    }
    return CM_OK;
}

/* What the training of the model updates is a parameter. */
static void list_moved(struct cm_code *code)
{
    const struct cm_model_proto *model = &code->file->model;

    for (size_t i = 0; i < model->training_info.count; i++)
        for (size_t b = 0; b < model->training_info.items[i].update_binding.count; b++)
            cm_map_add(&code->moved, code->arena,
                       model->training_info.items[i].update_binding.items[b].key);
}

enum cm_status cm_code_take_tensors(struct cm_code *code, struct cm_error *err)
{
    struct cm_map parts = {0};
    const struct cm_graph_proto *graph = code->file->model.graph;

    list_moved(code);
    for (size_t i = 0; i < graph->initializer.count; i++) {
        const struct cm_tensor_proto *proto = &graph->initializer.items[i];
        const cm_value value = cm_graph_find(code->graph, proto->name);
        struct cm_value_def *def = value ? cm_value_get(code->module, value) : NULL;
        struct cm_code_tensor tensor = {.value = value};

        if (!def || def->initializer != proto || def->role == CM_ROLE_INPUT)
            continue;
        CM_TRY(cm_tensor_proto_shape(proto, &tensor.shape, err));
        tensor.dtype = (enum cm_dtype)proto->data_type;
        tensor.is_parameter = is_trained(code, value, proto);
        name_tensor(code, &tensor, proto);
        /* Passes must not compute with what training changes, nor with the statistics of layers. */
        def->is_state = tensor.is_parameter || reads_of(code, value, 0).is_statistic;
        const size_t number = add_tensor(code, value);
        code->tensors.items[number] = tensor;
        if (def->is_state)
            CM_TRY(take_contents(code, &code->tensors.items[number]));
        if (tensor.is_parameter && !tensor.is_turned)
            CM_TRY(untie(code, value, proto, &parts, err));
    }
    return CM_OK;
}

/* Constants of a few elements that hold the same are one tensor. */
static cm_value first_alike(struct cm_code *code, cm_value value)
{
    const struct cm_tensor *contents = cm_code_contents(code, value);

    if (!contents || contents->type == CM_STRING || cm_tensor_count(contents) > INSIDE_MAX)
        return value;
    const struct cm_str nested = cm_code_nested(code->arena, contents);
    const struct cm_str key = cm_arena_printf(code->arena, "%d %d %.*s", (int)contents->type,
                                              contents->shape.rank, CM_STR_ALL(nested));
    bool added;
    uint64_t *first = cm_map_insert(&code->alike, code->arena, key, &added);
    if (added)
        *first = value;
    return (cm_value)*first;
}

size_t cm_code_tensor(struct cm_code *code, cm_value value)
{
    const uint64_t *known = cm_map_find_number(&code->tensor_of, value);

    return known ? (size_t)*known - 1 : add_tensor(code, first_alike(code, value));
}

/* The tensor that a value is, if it is one of the file's that is in a module: "fc1.weight". */
static struct cm_code_tensor *named_tensor(struct cm_code *code, cm_value value, size_t *number)
{
    const uint64_t *found = cm_map_find_number(&code->tensor_of, value);

    if (!found || !code->tensors.items[*found - 1].saved)
        return NULL;
    *number = (size_t)*found - 1;
    return &code->tensors.items[*number];
}

/* Tensors of the model in a module of this path. */
static size_t count_in(const struct cm_code *code, struct cm_str module)
{
    size_t count = 0;

    for (size_t i = 0; i < code->tensors.count; i++) {
        const struct cm_str path = code->tensors.items[i].path;
        count += path.size > module.size && path.data[module.size] == '.' &&
                 memcmp(path.data, module.data, module.size) == 0;
    }
    return count;
}

int64_t cm_code_layer(struct cm_code *code, const struct cm_code_held *held, size_t count)
{
    size_t *tensors = CM_NEW_ARRAY(code->arena, size_t, count + 1);
    struct cm_code_layer layer = {.tensors = tensors};
    bool added;

    for (size_t i = 0; i < count; i++) {
        size_t number;
        if (!held[i].value)
            continue;
        const struct cm_code_tensor *tensor = named_tensor(code, held[i].value, &number);
        if (!tensor || tensor->is_turned != held[i].is_turned ||
            !cm_str_equal(cm_str_after_last(tensor->path, '.'), held[i].name))
            return -1;
        const struct cm_str module = cm_str_before_last(tensor->path, '.');
        if (!module.size || (layer.path.size && !cm_str_equal(layer.path, module)))
            return -1;
        layer.path = module;
        layer.tensors[layer.n_tensors++] = number;
    }
    if (!layer.path.size || count_in(code, layer.path) != layer.n_tensors)
        return -1;
    uint64_t *number = cm_map_insert(&code->layer_of, code->arena, layer.path, &added);
    if (added) {
        *CM_PUSH(code->arena, &code->layers) = layer;
        *number = code->layers.count;
    }
    return (int64_t)*number - 1;
}

/* ---- recurrent layers, whose tensors an exporter put together ---- */

/* The tensors of the network by their names, as a checkpoint has them. */
static const struct cm_saved_tensor *network_tensor(struct cm_code *code, struct cm_str name)
{
    if (!code->has_network) {
        struct cm_saved_texts notes = {0};
        struct cm_error ignored = {0};
        struct cm_saved *saved;

        code->has_network = true;
        if (cm_gather(code->arena, code->file,
                      (struct cm_gathering){.originals = true, .notes = &notes}, &saved,
                      &ignored) != CM_OK)
            return NULL;
        code->network = cm_saved_index(code->arena, saved);
    }
    return code->network.saved ? cm_saved_tensor_of(&code->network, "", name) : NULL;
}

/* The tensor of this name, which is part of what an initializer holds. */
static bool gate_tensor(struct cm_code *code, struct cm_str name, bool is_parameter, size_t *number)
{
    const struct cm_saved_tensor *saved = network_tensor(code, name);
    bool added;

    if (!saved)
        return false;
    uint64_t *known = cm_map_insert(&code->gate_tensors, code->arena, name, &added);
    if (added) {
        struct cm_code_tensor tensor = {.dtype = saved->dtype,
                                        .shape = saved->shape,
                                        .is_parameter = is_parameter,
                                        .path = unique_path(code, name)};
        tensor.saved = CM_NEW(code->arena, struct cm_saved_tensor);
        *tensor.saved = *saved;
        *CM_PUSH(code->arena, &code->tensors) = tensor;
        *known = code->tensors.count - 1;
    }
    *number = (size_t)*known;
    return cm_str_equal(code->tensors.items[*number].path, name);
}

/* PyTorch's order: weight_ih, weight_hh, bias_ih, bias_hh, then the other direction's. */
static int gate_rank(struct cm_str name)
{
    const int other = cm_str_ends(name, "_reverse") ? 4 : 0;

    return other + (cm_str_contains(name, "weight_ih")   ? 0
                    : cm_str_contains(name, "weight_hh") ? 1
                    : cm_str_contains(name, "bias_ih")   ? 2
                                                         : 3);
}

size_t cm_code_gates(struct cm_code *code, const cm_value *values, size_t count, size_t *tensors,
                     int64_t *layer)
{
    struct cm_code_layer made = {.tensors = CM_NEW_ARRAY(code->arena, size_t, 8)};
    size_t n = 0;
    bool added;

    *layer = -1;
    for (size_t v = 0; v < count; v++) {
        const struct cm_value_def *def = values[v] ? cm_value_get(code->module, values[v]) : NULL;
        const struct cm_original *original =
            def && def->initializer ? cm_originals_find(code->originals, def->initializer->name)
                                    : NULL;
        if (!def)
            continue;
        if (!original || original->folding != CM_FOLDED_GATES)
            return 0;
        for (size_t i = 0; i < original->names.count; i++, n++) {
            if (n == 8 || !gate_tensor(code, original->names.items[i], def->is_state, &tensors[n]))
                return 0;
            for (size_t k = n; k && gate_rank(code->tensors.items[tensors[k]].path) <
                                        gate_rank(code->tensors.items[tensors[k - 1]].path);
                 k--) {
                const size_t other = tensors[k];
                tensors[k] = tensors[k - 1];
                tensors[k - 1] = other;
            }
        }
    }
    if (!n)
        return 0;
    made.path = cm_str_before_last(code->tensors.items[tensors[0]].path, '.');
    memcpy(made.tensors, tensors, n * sizeof *tensors);
    made.n_tensors = n;
    if (!made.path.size || count_in(code, made.path) != n ||
        !cm_str_ends(code->tensors.items[tensors[0]].path, ".weight_ih_l0"))
        return n;
    uint64_t *number = cm_map_insert(&code->layer_of, code->arena, made.path, &added);
    if (added) {
        *CM_PUSH(code->arena, &code->layers) = made;
        *number = code->layers.count;
    }
    *layer = (int64_t)*number - 1;
    return n;
}

/* The contents of a tensor that lines read. */
static enum cm_status settle(struct cm_code *code, struct cm_code_tensor *tensor)
{
    if (tensor->saved)
        return CM_OK;
    const struct cm_value_def *def = cm_value_get(code->module, tensor->value);
    const struct cm_tensor *contents = cm_code_contents(code, tensor->value);

    if (!contents)
        return cm_fail(code->err, CM_BAD_MODEL, "the contents of '%.*s' cannot be read",
                       CM_STR_FMT(def->name));
    tensor->dtype = contents->type;
    if (!cm_code_type(code, contents->type) && contents->type != CM_STRING)
        return cm_fail(code->err, CM_UNSUPPORTED, "%s has no type for elements of type %s",
                       code->to->system, cm_dtype_name(contents->type));
    if (!tensor->path.size) {
        const bool has_name = def->name.size && !cm_original_is_made_up(def->name);

        tensor->path = unique_path(code, has_name ? def->name : CM_STR("constant"));
        tensor->shape = contents->shape;
    }
    /* What lies in a module is that of one part of several: it stays with the weights. */
    const bool is_in_module = cm_str_contains(tensor->path, ".");
    if (contents->type == CM_STRING ||
        (cm_tensor_count(contents) <= INSIDE_MAX && !tensor->is_turned && !is_in_module)) {
        tensor->is_inside = true;
        tensor->contents = contents;
        return CM_OK;
    }
    return save_tensor(code, tensor, contents);
}

enum cm_status cm_code_settle_tensors(struct cm_code *code, struct cm_error *err)
{
    for (size_t i = 0; i < code->tensors.count; i++) {
        struct cm_code_tensor *tensor = &code->tensors.items[i];
        struct cm_error why = {0};

        if (!tensor->is_used)
            continue;
        code->err = &why;
        if (settle(code, tensor) != CM_OK) {
            const struct cm_str name =
                tensor->value ? cm_value_get(code->module, tensor->value)->name : tensor->path;
            cm_findings_unsupported(code->options->findings,
                                    cm_arena_printf(code->arena, "tensor '%.*s'", CM_STR_FMT(name)),
                                    "%s", why.text);
        }
    }
    code->err = err;
    return CM_OK;
}
