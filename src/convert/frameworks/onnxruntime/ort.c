/* Checkpoints of ONNX Runtime Training: a flatbuffer with weights, moments and properties. What the
 * optimizer does is in optimizer_model.onnx beside it. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/frameworks/onnxruntime/ort.h"

#include "bytes/flatbuffer.h"
#include "convert/saved_item.h"
#include "onnx/model_file.h"

static bool is_ort(struct cm_str head)
{
    return head.size >= 8 && memcmp(head.data + 4, CM_ORT_MAGIC, 4) == 0;
}

/* The checkpoint: PATH, or in a folder 'checkpoint', or else the first file that is one. */
static bool find_file(struct cm_saved_place *place, struct cm_str *out)
{
    static const char usual[] = "checkpoint";

    *out = place->file.size ? place->file : cm_str(usual);
    if (place->file.size || cm_place_has(place, *out))
        return is_ort(cm_place_head(place, *out));
    for (size_t i = 0; i < place->names.count; i++) {
        *out = place->names.items[i];
        if (!memchr(out->data, '/', out->size) && is_ort(cm_place_head(place, *out)))
            return true;
    }
    return false;
}

static int recognize(struct cm_saved_place *place)
{
    struct cm_str file;

    return find_file(place, &file) ? 2 : 0;
}

/* ---- the flatbuffer ---- */

struct ort {
    struct cm_saved_place *place;
    struct cm_saved *saved;
    struct cm_arena *arena;
    struct cm_str file, outside; /* bytes of NAME.data */
    struct cm_flatbuffer buffer;
    bool is_nominal;
    struct cm_error *err;
};

static enum cm_status broken(struct ort *o)
{
    return cm_fail(o->err, CM_BAD_MODEL, "a position in it leads out of the file");
}

static enum cm_status read_tensor(struct ort *o, struct cm_fb_table table,
                                  struct cm_saved_tensor **out)
{
    const struct cm_fb_vector dims = cm_fb_vector(table, CM_ORT_DIMS, 8);
    const struct cm_fb_vector raw = cm_fb_vector(table, CM_ORT_RAW, 1);
    const int64_t type = cm_fb_int(table, CM_ORT_TYPE, 4, 0);
    const int64_t outside = cm_fb_int(table, CM_ORT_OUTSIDE, 8, -1);
    struct cm_str bytes = {(const char *)o->buffer.bytes + raw.at, raw.count};
    struct cm_shape shape = {.rank = (int)dims.count};
    int64_t count;
    size_t need;

    if (o->buffer.broken)
        return broken(o);
    if (dims.count > CM_MAX_RANK || !cm_dtype_is_valid(type))
        return cm_fail(o->err, CM_BAD_MODEL, "it has %zu axes and elements of type %lld",
                       dims.count, (long long)type);
    for (size_t d = 0; d < dims.count; d++)
        memcpy(&shape.dims[d], o->buffer.bytes + dims.at + 8 * d, 8);
    if (!cm_shape_count(&shape, &count) || !cm_dtype_bytes((enum cm_dtype)type, count, &need))
        return cm_fail(o->err, CM_BAD_MODEL, "its shape is wrong");
    if (outside >= 0) {
        if ((uint64_t)outside > o->outside.size || need > o->outside.size - (uint64_t)outside)
            return cm_fail(o->err, CM_BAD_MODEL, "%.*s.data has %zu bytes, needs %zu at %lld",
                           CM_STR_FMT(o->file), o->outside.size, need, (long long)outside);
        bytes = (struct cm_str){o->outside.data + outside, need};
    }
    return cm_saved_tensor_new(o->arena, (enum cm_dtype)type, &shape, bytes, o->file, out, o->err);
}

static enum cm_status read_named(struct ort *o, struct cm_fb_table table, struct cm_str name,
                                 struct cm_saved_tensor **out)
{
    return cm_error_context(o->err, read_tensor(o, table, out), "tensor '%.*s'", CM_STR_FMT(name));
}

static enum cm_status read_weights(struct ort *o, struct cm_fb_table module, int field)
{
    const struct cm_fb_vector list = cm_fb_vector(module, field, 4);

    for (size_t i = 0; i < list.count; i++) {
        const struct cm_fb_table table = cm_fb_entry(list, i);
        const struct cm_str name = cm_fb_text(table, CM_ORT_TENSOR_NAME);
        struct cm_saved_tensor *tensor;

        if (o->buffer.broken)
            return broken(o);
        if (o->is_nominal)
            continue;
        CM_TRY(read_named(o, table, name, &tensor));
        cm_saved_add(o->saved, CM_SAVED_WEIGHT, name, tensor);
    }
    return o->buffer.broken ? broken(o) : CM_OK;
}

const struct cm_optimizer_state *cm_ort_state(enum cm_update_rule rule, size_t number)
{
    const struct cm_optimizer_state *state = cm_optimizer_rules[rule].states;

    for (; state && state->name; state++)
        if (state->ort && number-- == 0)
            return state;
    return NULL;
}

/* The rule with so many states; else one that needs none. */
static enum cm_update_rule rule_of(size_t states)
{
    for (enum cm_update_rule rule = CM_RULE_UNKNOWN + 1; rule < CM_RULES; rule++)
        if (states && cm_ort_state(rule, states - 1) && !cm_ort_state(rule, states))
            return rule;
    return cm_optimizer_stateless();
}

static enum cm_status read_state(struct ort *o, struct cm_fb_table state,
                                 struct cm_saved_group *group)
{
    const struct cm_str weight = cm_fb_text(state, CM_ORT_STATE_OF);
    const struct cm_fb_vector momentums = cm_fb_vector(state, CM_ORT_MOMENTUMS, 4);
    const enum cm_update_rule rule = rule_of(momentums.count);

    *CM_PUSH(o->arena, &group->names) = weight;
    for (size_t i = 0; i < momentums.count; i++) {
        const struct cm_fb_table table = cm_fb_entry(momentums, i);
        const struct cm_str slot = cm_fb_text(table, CM_ORT_TENSOR_NAME);
        const char *meaning = NULL;
        struct cm_saved_tensor *tensor;

        CM_TRY(read_named(o, table, weight, &tensor));
        for (size_t k = 0; cm_ort_state(rule, k); k++)
            if (cm_str_is(slot, cm_ort_state(rule, k)->ort))
                meaning = cm_ort_state(rule, k)->slot;
        /* SGD keeps one, which it does not use. */
        if (!meaning && (momentums.count != 1 || !cm_str_is(slot, "momentum0")))
            cm_saved_unknown(o->saved, "weight '%.*s' has a moment '%.*s'", CM_STR_FMT(weight),
                             CM_STR_FMT(slot));
        cm_saved_add_slot(o->saved, weight, slot, meaning, tensor);
        o->saved->rule = rule;
    }
    return o->buffer.broken ? broken(o) : CM_OK;
}

static enum cm_status read_groups(struct ort *o, struct cm_fb_table root)
{
    const struct cm_fb_vector groups = cm_fb_vector(root, CM_ORT_GROUPS, 4);
    struct cm_saved *saved = o->saved;

    for (size_t g = 0; g < groups.count; g++) {
        const struct cm_fb_table table = cm_fb_entry(groups, g);
        const struct cm_fb_vector states = cm_fb_vector(table, CM_ORT_STATES, 4);
        struct cm_saved_group *group = cm_saved_add_group(saved);
        struct cm_item *said = cm_item_new(o->arena, CM_ITEM_MAP);
        const int64_t step = cm_fb_int(table, CM_ORT_STEP, 8, 0);

        if (o->buffer.broken)
            return broken(o);
        saved->has_optimizer = true;
        if (saved->step < 0)
            saved->step = step;
        cm_item_put(o->arena, said, "group_name",
                    cm_item_text(o->arena, cm_fb_text(table, CM_ORT_GROUP_NAME)));
        group->said = said;
        group->settings.step_offset = step - saved->step;
        group->settings.initial_lr = cm_fb_float(table, CM_ORT_INITIAL_RATE);
        for (size_t i = 0; i < states.count; i++)
            CM_TRY(read_state(o, cm_fb_entry(states, i), group));
    }
    return o->buffer.broken ? broken(o) : CM_OK;
}

static enum cm_status read_properties(struct ort *o, struct cm_fb_table bag)
{
    struct cm_item *all = cm_item_new(o->arena, CM_ITEM_MAP);

    for (int kind = CM_ORT_INTS; kind <= CM_ORT_STRINGS; kind++) {
        const struct cm_fb_vector list = cm_fb_vector(bag, kind, 4);

        for (size_t i = 0; i < list.count; i++) {
            const struct cm_fb_table table = cm_fb_entry(list, i);
            const struct cm_str name = cm_fb_text(table, CM_ORT_PROPERTY_NAME);
            const struct cm_item *value =
                kind == CM_ORT_INTS
                    ? cm_item_int(o->arena, cm_fb_int(table, CM_ORT_PROPERTY_VALUE, 8, 0))
                : kind == CM_ORT_FLOATS
                    ? cm_item_real(o->arena, cm_fb_float(table, CM_ORT_PROPERTY_VALUE))
                    : cm_item_text(o->arena, cm_fb_text(table, CM_ORT_PROPERTY_VALUE));

            if (o->buffer.broken)
                return broken(o);
            cm_item_set(o->arena, all, cm_item_text(o->arena, name), value);
        }
    }
    (void)cm_item_is_int(cm_item_get(all, "epoch"), &o->saved->epoch);
    if (all->entries.count)
        cm_saved_tell(o->saved, "ort.properties", all);
    return o->buffer.broken ? broken(o) : CM_OK;
}

/* ---- the optimizer's model ---- */

/* Sets what the attribute of an optimizer's operator is; true: it tells the optimizer. */
static bool set_from_words(const char *words, const struct cm_attribute_proto *is,
                           struct cm_plan_group *group)
{
    struct cm_rule_word word;
    char setting[64];
    bool tells = false;

    for (const char *at = words; cm_rule_word_next(&at, &word);) {
        if (!cm_str_equal(is->name, word.key))
            continue;
        snprintf(setting, sizeof setting, "%.*s", CM_STR_FMT(word.value));
        const struct cm_group_field *field = cm_group_field_find(setting);
        if (field)
            cm_group_field_set(group, field, field->is_flag ? (double)is->i : (double)is->f);
        tells = tells || word.key.data == words;
    }
    return tells;
}

/* Attributes of its nodes that say how weights are updated, whatever the operators are called. */
static bool set_from_attribute(struct cm_saved *saved, const struct cm_attribute_proto *is,
                               struct cm_plan_group *group)
{
    bool tells = false;

    for (enum cm_update_rule rule = CM_RULE_UNKNOWN + 1; rule < CM_RULES; rule++)
        for (const struct cm_optimizer_words *row = cm_optimizer_rules[rule].ort; row->name; row++)
            tells = set_from_words(row->words, is, group) || tells;
    if (cm_str_is(is->name, "max_norm"))
        saved->clip = (struct cm_plan_clip){CM_CLIP_GLOBAL, (double)is->f};
    else if (cm_str_is(is->name, "correct_bias") && is->i == 0)
        cm_saved_unknown(saved, "the optimizer does not correct the bias of its moments");
    return tells;
}

static enum cm_status read_optimizer_model(struct ort *o)
{
    static const char name[] = "optimizer_model.onnx";
    struct cm_saved *saved = o->saved;
    struct cm_plan_group is = CM_PLAN_GROUP;
    struct cm_model_file *model;
    struct cm_str bytes;
    bool is_known = false;

    if (cm_place_map(o->place, cm_str(name), &bytes, NULL)) {
        cm_saved_missing(saved,
                         "beta1, beta2, epsilon and the weight decay: they are in '%s', which is "
                         "not beside the checkpoint; give \"betas\", \"epsilon\" and "
                         "\"weight_decay\" with --set",
                         name);
        return CM_OK;
    }
    CM_TRY(cm_error_context(o->err, cm_model_parse(o->arena, bytes, NULL, &model, o->err), name));
    const struct cm_graph_proto *graph = model->model.graph;
    for (size_t n = 0; graph && n < graph->node.count; n++)
        for (size_t a = 0; a < graph->node.items[n].attribute.count; a++)
            if (set_from_attribute(saved, &graph->node.items[n].attribute.items[a], &is)) {
                is_known = true;
                saved->optimizer = graph->node.items[n].op_type;
            }
    if (isnan(saved->clip.limit))
        saved->clip = (struct cm_plan_clip){CM_CLIP_GLOBAL, 0};
    if (!is_known && !cm_ort_state(saved->rule, 0)) {
        saved->rule = cm_optimizer_stateless();
        saved->optimizer = cm_str(cm_optimizer_rules[saved->rule].ort->name);
        is.momentum = is.weight_decay = 0;
    }
    for (size_t g = 0; g < saved->groups.count; g++) {
        struct cm_plan_group *group = &saved->groups.items[g].settings;
        const struct cm_plan_group before = *group;

        *group = is;
        group->initial_lr = before.initial_lr;
        group->step_offset = before.step_offset;
        group->decoupled = is_known ? 1 : -1;
        group->amsgrad = is_known ? 0 : -1;
    }
    return CM_OK;
}

static enum cm_status read_buffer(struct ort *o)
{
    const struct cm_fb_table root = cm_fb_root(&o->buffer);
    const struct cm_fb_table module = cm_fb_child(root, CM_ORT_MODULE);
    const int64_t version = cm_fb_int(root, CM_ORT_FORMAT, 4, 0);

    if (o->buffer.broken)
        return broken(o);
    if (version < 1 || version > CM_ORT_VERSION)
        return cm_fail(o->err, CM_UNSUPPORTED, "version %lld of the format is not read",
                       (long long)version);
    o->is_nominal = cm_fb_int(module, CM_ORT_IS_NOMINAL, 1, 0);
    if (cm_fb_int(module, CM_ORT_IS_EXTERNAL, 1, 0)) {
        const struct cm_str name = cm_arena_printf(o->arena, "%.*s.data", CM_STR_ALL(o->file));

        CM_TRY(cm_place_map(o->place, name, &o->outside, o->err));
    }
    if (o->is_nominal)
        cm_saved_missing(o->saved,
                         "the weights: the checkpoint is nominal, it has only their names");
    CM_TRY(read_weights(o, module, CM_ORT_TRAINED));
    CM_TRY(read_weights(o, module, CM_ORT_FROZEN));
    CM_TRY(read_groups(o, root));
    return read_properties(o, cm_fb_child(root, CM_ORT_PROPERTIES));
}

static enum cm_status read(struct cm_saved_place *place, struct cm_saved *saved,
                           struct cm_error *err)
{
    struct ort o = {.place = place, .saved = saved, .arena = saved->arena, .err = err};
    struct cm_str bytes;

    if (!find_file(place, &o.file))
        return cm_fail(err, CM_BAD_MODEL, "it is not a checkpoint of ONNX Runtime Training");
    CM_TRY(cm_place_map(place, o.file, &bytes, err));
    o.buffer = (struct cm_flatbuffer){.bytes = (const uint8_t *)bytes.data, .size = bytes.size};
    CM_TRY(read_buffer(&o));
    if (!saved->has_optimizer)
        return CM_OK;
    saved->arithmetic = CM_LIKE_ORT;
    saved->schedule_known = CM_SCHEDULE_UNKNOWN;
    cm_saved_missing(saved, "the learning rate: ONNX Runtime stores only what its schedule began "
                            "with; give it with --lr, or as \"lr\" with --set");
    cm_saved_missing(saved, "how the learning rate goes on: ONNX Runtime stores no schedule; give "
                            "\"rates\" or \"schedule\" with --set if it is not constant");
    return read_optimizer_model(&o);
}

const struct cm_format cm_format_onnxruntime = {
    .name = "onnxruntime",
    .system = "ONNX Runtime Training",
    .what = "checkpoint",
    .recognize = recognize,
    .read = read,
    .write = cm_ort_write,
};
