/* Which inputs hold labels, and whether the data keeps to the classes there are. */
// SPDX-License-Identifier: Apache-2.0
#include "train/labels.h"

#include "base/memory.h"
#include "train/trainer_parts.h"

/* ---- what is a label ---- */

static bool is_integer(const struct cm_type *type)
{
    if (type->kind != CM_KIND_TENSOR)
        return false;
    const enum cm_dtype_class kind = cm_dtype_info(type->dtype)->kind;
    return kind == CM_CLASS_SIGNED || kind == CM_CLASS_UNSIGNED;
}

/* A graph that is looked through: the main one, a body, a function as it is called. */
struct place {
    const struct cm_graph *graph;
    const struct cm_node *node; /* whose body it is; NULL: the main graph */
    size_t body;                /* which of its bodies */
    const struct place *outer;
};

/* What the node around a body gives to its input, number for number; 0: nobody knows. A function
 * is given its inputs; some operators hand slices of theirs to a body. */
static cm_value given_to(const struct place *place, cm_value input)
{
    const struct cm_node *node = place->node;
    const struct cm_graph *graph = place->graph;
    size_t i = 0;

    while (i < graph->n_inputs && graph->inputs[i] != input)
        i++;
    if (i >= graph->n_inputs || i >= (size_t)node->n_inputs)
        return 0;
    if (node->function) { /* which has no input for what is not given */
        for (int k = 0; k < node->n_inputs; k++)
            if (node->inputs[k].value && i-- == 0)
                return node->inputs[k].value;
        return 0;
    }
    const int sliced =
        node->op && node->op->bodies.sliced ? node->op->bodies.sliced(node, place->body, i) : -1;
    return sliced >= 0 ? node->inputs[sliced].value : 0;
}

/* The input of the main graph whose numbers value holds, or NULL. */
static const struct cm_value_def *source(const struct place *place, cm_value value)
{
    const struct cm_module *module = place->graph->module;

    for (;;) {
        const struct cm_value_def *def = cm_value_get(module, value);

        if (!is_integer(def->fact.type))
            return NULL;
        if (def->node && def->node->op && def->node->op->values.kept &&
            def->node->outputs[0] == value && cm_node_input(def->node, 0)) {
            value = def->node->inputs[0].value;
            continue;
        }
        while (place && place->graph != def->graph)
            place = place->outer;
        if (def->role != CM_ROLE_INPUT || !place)
            return NULL;
        if (!place->node)
            return def;
        value = given_to(place, value);
        if (!value)
            return NULL;
        place = place->outer;
    }
}

static bool is_same(const struct cm_label_rule *a, const struct cm_label_rule *b)
{
    return cm_str_equal(a->input, b->input) && a->classes == b->classes &&
           a->ignores == b->ignores && a->ignored == b->ignored;
}

static void note(struct cm_trainer *trainer, const struct place *place, const struct cm_node *node)
{
    const struct cm_module *module = place->graph->module;
    const struct cm_class_labels *of = node->op->scores.labels;
    const struct cm_type *scores = cm_value_get(module, cm_node_input(node, of->scores))->fact.type;
    const struct cm_value_def *labels = source(place, cm_node_input(node, of->labels));
    const int axis = of->class_axis;

    if (!labels || scores->kind != CM_KIND_TENSOR || scores->rank <= axis ||
        !cm_dim_known(scores->dims[axis]) || scores->dims[axis].value < 1)
        return;
    const bool ignores = of->ignored && cm_node_has_attr(node, of->ignored);
    const struct cm_label_rule rule = {.input = labels->name,
                                       .classes = scores->dims[axis].value,
                                       .ignores = ignores,
                                       .ignored = ignores ? cm_node_int(node, of->ignored) : 0};
    for (size_t i = 0; i < trainer->labels.count; i++)
        if (is_same(&trainer->labels.items[i], &rule))
            return;
    *CM_PUSH(trainer->arena, &trainer->labels) = rule;
}

/* Nesting and calls are limited where graphs are built. */
static void look_through(struct cm_trainer *trainer, const struct place *place)
{
    for (const struct cm_node *node = place->graph->first; node; node = node->next) {
        const struct cm_class_labels *of = node->op ? node->op->scores.labels : NULL;

        if (of && cm_node_input(node, of->scores) && cm_node_input(node, of->labels))
            note(trainer, place, node);
        for (size_t b = 0; b < node->n_bodies; b++)
            if (node->bodies[b].graph)
                look_through(trainer, &(const struct place){node->bodies[b].graph, node, b, place});
        if (node->function && node->instance)
            look_through(trainer, &(const struct place){node->instance, node, 0, place});
    }
}

void cm_labels_note(struct cm_trainer *trainer, const struct cm_graph *graph)
{
    look_through(trainer, &(const struct place){.graph = graph});
}

/* ---- what the data has ---- */

struct search {
    const struct cm_label_rule *rule;
    int64_t row, label; /* the first that is wrong */
    uint64_t wrong;
};

static void look(struct search *s, int64_t row, const struct cm_tensor *labels)
{
    const struct cm_label_rule *rule = s->rule;
    const int64_t count = cm_tensor_count(labels);

    for (int64_t i = 0; i < count; i++) {
        const int64_t label = labels->type == CM_INT64 ? ((const int64_t *)labels->data)[i]
                                                       : cm_tensor_int(labels, i);

        if ((label >= 0 && label < rule->classes) || (rule->ignores && label == rule->ignored))
            continue;
        if (s->wrong++ == 0) {
            s->row = row;
            s->label = label;
        }
    }
}

static void tell(const struct search *s, struct cm_str field, struct cm_findings *findings)
{
    const struct cm_label_rule *rule = s->rule;
    char but[60] = "", more[60] = "";

    if (rule->ignores)
        snprintf(but, sizeof but, ", and %lld for none", (long long)rule->ignored);
    if (s->wrong > 1)
        snprintf(more, sizeof more, "; %llu labels are outside in all",
                 (unsigned long long)s->wrong);
    cm_findings_refuse(
        findings,
        "row %lld of '%.*s' (counted from 0) has the label %lld, but classes are 0 to %lld%s%s",
        (long long)s->row, CM_STR_FMT(field), (long long)s->label, (long long)rule->classes - 1,
        but, more);
}

static enum cm_status search_rows(struct search *s, const struct cm_dataset *dataset, size_t field,
                                  struct cm_tensor *labels, struct cm_error *err)
{
    const int64_t rows = cm_dataset_samples(dataset);

    for (int64_t row = 0; row < rows; row++) {
        CM_TRY(cm_dataset_read(dataset, field, row, labels->data, err));
        look(s, row, labels);
    }
    return CM_OK;
}

void cm_labels_check(const struct cm_trainer *trainer, size_t input,
                     const struct cm_dataset *dataset, size_t field, struct cm_findings *findings)
{
    const struct cm_dataset_field *as = cm_dataset_field(dataset, field);

    for (size_t i = 0; i < trainer->labels.count; i++) {
        struct search s = {.rule = &trainer->labels.items[i]};
        struct cm_tensor labels = {0};
        struct cm_error err = {0};

        if (!cm_str_equal(s.rule->input, trainer->inputs.items[input].name))
            continue;
        enum cm_status status = cm_tensor_new(as->type, &as->sample, &labels, &err);
        if (status == CM_OK)
            status = search_rows(&s, dataset, field, &labels, &err);
        cm_tensor_drop(&labels);
        if (status)
            cm_findings_add(findings, status, CM_STR_NONE, "%s", err.text);
        else if (s.wrong)
            tell(&s, as->name, findings);
    }
}
