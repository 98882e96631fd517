/* The files of a SavedModel: saved_model.pb with one MetaGraphDef, a plain graph without objects,
 * and a bundle of variables. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/keras/bundle_parts.h"
#include "convert/savedmodel/signatures.h"

#include "base/diagnostics.h"

/* ---- saving and restoring, which TensorFlow asks a graph to do itself ---- */

/* A constant list of texts. */
static struct cm_tf_tensor text_list(struct cm_tf_graph *graph, const struct cm_tf_model *model,
                                     bool are_names)
{
    struct cm_bytes bytes = {.arena = graph->arena};
    const int64_t count = (int64_t)model->variables.count;

    for (size_t i = 0; i < model->variables.count; i++)
        cm_bytes_field_text(&bytes, 8,
                            are_names ? model->variables.items[i].handle.node->name : CM_STR(""));
    return cm_tf_literal(graph, CM_TF_STRING, &count, 1, cm_bytes_str(&bytes));
}

static void put_types(struct cm_tf_model *model, struct cm_tf_node *node)
{
    struct cm_arena *arena = model->writer.arena;
    enum cm_tf_type *types = CM_NEW_ARRAY(arena, enum cm_tf_type, model->variables.count + 1);

    for (size_t i = 0; i < model->variables.count; i++)
        types[i] = cm_tf_type_of(model->variables.items[i].tensor.type);
    cm_tf_attr_types(node, CM_STR("dtypes"), types, model->variables.count);
}

struct saver {
    struct cm_str filename, saved, restore;
};

static struct cm_tf_tensor put_filename(struct cm_tf_graph *graph)
{
    struct cm_bytes text = {.arena = graph->arena};
    struct cm_tf_node *node = cm_tf_add(graph, "PlaceholderWithDefault", CM_STR("save/filename"));

    cm_bytes_field_text(&text, 8, CM_STR("model"));
    cm_tf_input(graph, node, cm_tf_literal(graph, CM_TF_STRING, NULL, 0, cm_bytes_str(&text)));
    cm_tf_attr_type(node, CM_STR("dtype"), CM_TF_STRING);
    cm_tf_attr_shape(node, CM_STR("shape"), NULL, 0);
    return cm_tf_output(graph, node, "output", CM_TF_STRING);
}

static struct cm_tf_node *put_restore(struct cm_tf_model *model, struct cm_tf_tensor filename,
                                      struct cm_tf_tensor names, struct cm_tf_tensor slices)
{
    struct cm_tf_graph *graph = &model->graph;
    struct cm_tf_node *node = cm_tf_add(graph, "RestoreV2", CM_STR("save/RestoreV2"));
    struct cm_tf_node *all = cm_tf_add(graph, "NoOp", CM_STR("save/restore_all"));

    cm_tf_input(graph, node, filename);
    cm_tf_input(graph, node, names);
    cm_tf_input(graph, node, slices);
    put_types(model, node);
    for (size_t i = 0; i < model->variables.count; i++) {
        struct cm_tf_variable *variable = &model->variables.items[i];
        const enum cm_tf_type type = cm_tf_type_of(variable->tensor.type);
        const struct cm_tf_tensor value = cm_tf_output(graph, node, "tensors", type);

        variable->assign = cm_tf_add(graph, "AssignVariableOp",
                                     cm_arena_printf(graph->arena, "save/%.*s/Assign",
                                                     CM_STR_ALL(variable->handle.node->name)));
        cm_tf_input(graph, variable->assign, variable->handle);
        cm_tf_input(graph, variable->assign, value);
        cm_tf_attr_type(variable->assign, CM_STR("dtype"), type);
        cm_tf_after(graph, all, variable->assign);
    }
    return all;
}

static struct saver put_saver(struct cm_tf_model *model)
{
    struct cm_tf_graph *graph = &model->graph;
    const struct cm_tf_tensor filename = put_filename(graph);
    const struct cm_tf_tensor names = text_list(graph, model, true);
    const struct cm_tf_tensor slices = text_list(graph, model, false);
    struct cm_tf_node *save = cm_tf_add(graph, "SaveV2", CM_STR("save/SaveV2"));
    struct cm_tf_node *saved = cm_tf_add(graph, "Identity", CM_STR("save/saved"));

    cm_tf_input(graph, save, filename);
    cm_tf_input(graph, save, names);
    cm_tf_input(graph, save, slices);
    put_types(model, save);
    for (size_t i = 0; i < model->variables.count; i++) {
        struct cm_tf_variable *variable = &model->variables.items[i];
        const enum cm_tf_type type = cm_tf_type_of(variable->tensor.type);
        struct cm_tf_node *read = variable->read =
            cm_tf_add(graph, "ReadVariableOp",
                      cm_arena_printf(graph->arena, "save/%.*s/Read",
                                      CM_STR_ALL(variable->handle.node->name)));
        cm_tf_input(graph, read, variable->handle);
        cm_tf_attr_type(read, CM_STR("dtype"), type);
        cm_tf_input(graph, save, cm_tf_output(graph, read, "value", type));
    }
    cm_tf_input(graph, saved, filename);
    cm_tf_attr_type(saved, CM_STR("T"), CM_TF_STRING);
    cm_tf_after(graph, saved, save);
    (void)cm_tf_output(graph, saved, "output", CM_TF_STRING);
    return (struct saver){filename.node->name, saved->name,
                          put_restore(model, filename, names, slices)->name};
}

/* ---- messages ---- */

static struct cm_str with_output(struct cm_arena *arena, struct cm_str node)
{
    return cm_arena_printf(arena, "%.*s:0", CM_STR_ALL(node));
}

static void put_entry(struct cm_bytes *to, unsigned field, struct cm_str key, struct cm_str value)
{
    struct cm_bytes entry = {.arena = to->arena};

    cm_bytes_field_text(&entry, 1, key);
    cm_bytes_field_text(&entry, 2, value);
    cm_bytes_field_text(to, field, cm_bytes_str(&entry));
}

/* SignatureDef. */
static struct cm_str encode_signature(struct cm_arena *arena,
                                      const struct cm_tf_signature *signature)
{
    struct cm_bytes bytes = {.arena = arena};

    for (unsigned kind = 1; kind <= 2; kind++) {
        const size_t count = kind == 1 ? signature->inputs.count : signature->outputs.count;
        for (size_t i = 0; i < count; i++) {
            const struct cm_tf_port *port =
                kind == 1 ? &signature->inputs.items[i] : &signature->outputs.items[i];
            struct cm_bytes info = {.arena = arena};

            cm_bytes_field_text(&info, 1, with_output(arena, port->tensor.node->name));
            cm_bytes_field(&info, 2, (uint64_t)port->tensor.type);
            cm_bytes_field_text(&info, 3, port->shape);
            put_entry(&bytes, kind, port->name, cm_bytes_str(&info));
        }
    }
    cm_bytes_field_text(&bytes, 3, CM_STR("tensorflow/serving/predict"));
    return cm_bytes_str(&bytes);
}

/* VariableDefs, in the collections that say what there is to train. */
static struct cm_str encode_variables(struct cm_tf_model *model, bool trained_only)
{
    struct cm_arena *arena = model->writer.arena;
    struct cm_bytes list = {.arena = arena}, bytes = {.arena = arena};

    for (size_t i = 0; i < model->variables.count; i++) {
        const struct cm_tf_variable *variable = &model->variables.items[i];
        const struct cm_str name = variable->handle.node->name;
        struct cm_bytes def = {.arena = arena};

        if (trained_only && !variable->is_trained)
            continue;
        cm_bytes_field_text(&def, 1, with_output(arena, name));
        cm_bytes_field_text(&def, 2, variable->assign->name);
        cm_bytes_field_text(&def, 3, with_output(arena, variable->read->name));
        cm_bytes_field(&def, 5, 1);
        cm_bytes_field(&def, 7, variable->is_trained);
        cm_bytes_field_text(&list, 1, cm_bytes_str(&def));
    }
    cm_bytes_field_text(&bytes, 2, cm_bytes_str(&list));
    return cm_bytes_str(&bytes);
}

static struct cm_str encode(struct cm_tf_model *model)
{
    struct cm_arena *arena = model->writer.arena;
    struct cm_bytes saved = {.arena = arena}, meta = {.arena = arena}, info = {.arena = arena};
    struct cm_bytes def = {.arena = arena};
    const bool has_variables = model->variables.count;
    const struct saver saver = has_variables ? put_saver(model) : (struct saver){0};

    cm_bytes_field_text(&info, 4, CM_STR("serve"));
    cm_bytes_field_text(&info, 5, CM_STR("2.0.0"));
    cm_bytes_field(&info, 7, 1);
    cm_bytes_field_text(&meta, 1, cm_bytes_str(&info));
    cm_bytes_field_text(&meta, 2, cm_tf_encode(&model->graph, &model->writer.functions));
    if (has_variables) {
        cm_bytes_field_text(&def, 1, with_output(arena, saver.filename));
        cm_bytes_field_text(&def, 2, with_output(arena, saver.saved));
        cm_bytes_field_text(&def, 3, saver.restore);
        cm_bytes_field(&def, 7, 2);
        cm_bytes_field_text(&meta, 3, cm_bytes_str(&def));
        put_entry(&meta, 4, CM_STR("variables"), encode_variables(model, false));
        put_entry(&meta, 4, CM_STR("trainable_variables"), encode_variables(model, true));
    }
    for (size_t i = 0; i < model->signatures.count; i++)
        put_entry(&meta, 5, model->signatures.items[i].name,
                  encode_signature(arena, &model->signatures.items[i]));
    cm_bytes_field(&saved, 1, 1);
    cm_bytes_field_text(&saved, 2, cm_bytes_str(&meta));
    return cm_bytes_str(&saved);
}

/* ---- files ---- */

struct folder {
    struct cm_tf_model *model;
    struct cm_bundle_writing bundle;
    struct cm_str bytes;
};

static enum cm_status fill_folder(void *arg, struct cm_folder_save *folder, struct cm_error *err)
{
    struct folder *f = arg;

    if (f->model->variables.count)
        CM_TRY(cm_bundle_put_files(&f->bundle, folder, CM_STR("variables/variables"), err));
    return cm_folder_put(folder, f->bundle.arena, "saved_model.pb", f->bytes, err);
}

/* The bytes of a filter stay as the model has them, and are read in TensorFlow's order. */
static struct cm_saved_tensor *filter_tensor(struct cm_arena *arena,
                                             const struct cm_tf_variable *variable)
{
    struct cm_saved_tensor *saved = CM_NEW(arena, struct cm_saved_tensor);
    const struct cm_tensor *tensor = &variable->tensor;

    saved->dtype = tensor->type;
    saved->shape = cm_tf_variable_shape(variable);
    struct cm_saved_piece *piece = cm_saved_piece_add(arena, saved, true);
    piece->bytes = (struct cm_str){tensor->data, cm_tensor_bytes(tensor)};
    for (int i = 0; i < saved->shape.rank; i++) {
        const int axis = (int)variable->order.perm[i];
        piece->size[i] = saved->shape.dims[i];
        piece->stride[i] = cm_shape_span(&tensor->shape, axis + 1, tensor->shape.rank);
    }
    return saved;
}

static enum cm_status list_tensors(struct folder *f, struct cm_saved *list, struct cm_error *err)
{
    for (size_t i = 0; i < f->model->variables.count; i++) {
        const struct cm_tf_variable *variable = &f->model->variables.items[i];
        const struct cm_tensor *tensor = &variable->tensor;
        struct cm_saved_tensor *saved;

        if (variable->is_filter)
            saved = filter_tensor(f->bundle.arena, variable);
        else
            CM_TRY(cm_saved_tensor_new(f->bundle.arena, tensor->type, &tensor->shape,
                                       (struct cm_str){tensor->data, cm_tensor_bytes(tensor)},
                                       CM_STR_NONE, &saved, err));
        cm_bundle_add(&f->bundle, variable->handle.node->name, saved);
        (void)cm_saved_add(list, variable->is_trained ? CM_SAVED_WEIGHT : CM_SAVED_OTHER,
                           variable->name, saved);
    }
    return CM_OK;
}

/* How often tensors change their layout while the network serves. */
static void note_transposes(struct cm_tf_model *model, struct cm_saved_texts *notes)
{
    static const char *const others[] = {"train_step/", "evaluate/", "initialize/", "save/"};
    size_t count = 0;

    cm_tf_remove_dead(&model->graph);
    for (size_t i = 0; i < model->graph.nodes.count; i++) {
        const struct cm_tf_node *node = model->graph.nodes.items[i];
        bool is_other = false;
        for (size_t k = 0; k < CM_COUNT(others); k++)
            is_other |= cm_str_starts(node->name, others[k]);
        count += !is_other && cm_str_is(node->op, "Transpose");
    }
    cm_saved_note(model->writer.arena, notes, "serving_default has %zu Transpose%s", count,
                  count == 1 ? "" : "s");
}

static const size_t PROTO_MAX = INT32_MAX; /* bytes of a message that protobuf reads */

static enum cm_status write_model(const struct cm_model_file *file, struct cm_saved *saved,
                                  const char *path, struct cm_findings *findings,
                                  struct cm_saved_texts *notes, struct cm_error *err)
{
    struct cm_arena *arena = saved->arena;
    struct cm_tf_model model = {
        .writer = {.arena = arena, .findings = findings}, .file = file, .graph = {.arena = arena}};
    struct folder folder = {.model = &model,
                            .bundle = {.arena = arena, .saved = saved, .err = err}};

    CM_TRY(cm_tf_find_variables(&model, err));
    CM_TRY(cm_tf_put_signatures(&model, err));
    CM_TRY(cm_findings_fail(findings, err));
    note_transposes(&model, notes);
    folder.bytes = encode(&model);
    if (folder.bytes.size > PROTO_MAX)
        return cm_fail(
            err, CM_UNSUPPORTED,
            "the graph takes %zu bytes with its constants; a SavedModel has room for %zu",
            folder.bytes.size, PROTO_MAX);
    CM_TRY(list_tensors(&folder, saved, err));
    return path ? cm_saved_write_folder(saved, path, fill_folder, &folder, err) : CM_OK;
}

const struct cm_format cm_format_savedmodel = {
    .name = "savedmodel",
    .system = "TensorFlow",
    .what = "a SavedModel: the network with signatures that serve and train it",
    .write_model = write_model,
};
