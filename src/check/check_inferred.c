/* Findings of inference: each is found again in the model by the address of its message, so that
 * its place is spelled as those of all other findings are. */
// SPDX-License-Identifier: Apache-2.0
#include "check/checker.h"

struct placing {
    struct cm_checker *c;
    const struct cm_finding *items;
    size_t *next;           /* by item: 1 + the next item about the same message; 0: none */
    struct cm_map subjects; /* address -> 1 + the first item about it */
};

/* Does it say something of the model, rather than of us? */
static bool is_of_the_model(const struct cm_finding *item)
{
    return item->status == CM_BAD_MODEL || item->status == CM_BAD_ARGUMENT;
}

static void report_item(struct placing *p, const struct cm_finding *item,
                        const struct cm_model_place *place)
{
    for (size_t i = 0; i < cm_check_rule_count(); i++)
        if (strcmp(cm_check_rule_at(i)->id, item->rule) == 0)
            cm_report(p->c, (enum cm_rule)i, place, "%.*s", CM_STR_FMT(item->reason));
}

static void report_at(struct placing *p, const struct cm_model_place *place)
{
    uint64_t *first = cm_map_find_number(&p->subjects, CM_ADDRESS(place->subject));

    for (size_t i = first ? (size_t)*first : 0; i; i = p->next[i - 1])
        report_item(p, &p->items[i - 1], place);
    if (first)
        *first = 0; /* said once, should two places hold one message */
}

static void visit_nodes(struct placing *p, const struct cm_model_place *up,
                        const struct cm_nodes *nodes);

static void visit_values(struct placing *p, const struct cm_model_place *up, const char *what,
                         const struct cm_value_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++)
        report_at(p, &CM_PLACE_VALUE(up, what, infos->items[i].name, i, &infos->items[i]));
}

static void visit_graph(struct placing *p, const struct cm_model_place *up,
                        const struct cm_graph_proto *graph)
{
    struct cm_model_place here = CM_PLACE(up, "graph", graph->name, SIZE_MAX);

    here.subject = graph;
    report_at(p, &here);
    here.subject = NULL;
    visit_values(p, &here, "input", &graph->input);
    for (size_t i = 0; i < graph->initializer.count; i++) {
        const struct cm_tensor_proto *tensor = &graph->initializer.items[i];
        report_at(p, &CM_PLACE_VALUE(&here, "initializer", tensor->name, i, tensor));
    }
    for (size_t i = 0; i < graph->sparse_initializer.count; i++) {
        const struct cm_sparse_proto *sparse = &graph->sparse_initializer.items[i];
        const struct cm_str name = sparse->values ? sparse->values->name : CM_STR_NONE;
        report_at(p, &CM_PLACE_VALUE(&here, "sparse_initializer", name, i, sparse));
    }
    visit_nodes(p, &here, &graph->node);
    visit_values(p, &here, "output", &graph->output);
    visit_values(p, &here, "value_info", &graph->value_info);
}

static void visit_attributes(struct placing *p, const struct cm_model_place *up,
                             const struct cm_attribute_proto *attributes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (attributes[i].g)
            visit_graph(p, &CM_PLACE(up, "attribute", attributes[i].name, i), attributes[i].g);
}

static void visit_nodes(struct placing *p, const struct cm_model_place *up,
                        const struct cm_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++) {
        const struct cm_model_place here = CM_PLACE_NODE(up, &nodes->items[i], i);

        report_at(p, &here);
        visit_attributes(p, &here, nodes->items[i].attribute.items,
                         nodes->items[i].attribute.count);
    }
}

static void visit_entry(struct placing *p, size_t index, const struct cm_training_proto *entry)
{
    const struct cm_model_place here = CM_PLACE(NULL, "training_info", CM_STR_NONE, index);
    const struct cm_entries *first = &entry->initialization_binding;
    const struct cm_entries *later = &entry->update_binding;

    if (entry->initialization)
        visit_graph(p, &CM_PLACE_FIELD(&here, ".initialization"), entry->initialization);
    if (entry->algorithm)
        visit_graph(p, &CM_PLACE_FIELD(&here, ".algorithm"), entry->algorithm);
    for (size_t i = 0; i < first->count; i++)
        report_at(p, &CM_PLACE_ENTRY(&here, ".initialization_binding", i, &first->items[i]));
    for (size_t i = 0; i < later->count; i++)
        report_at(p, &CM_PLACE_ENTRY(&here, ".update_binding", i, &later->items[i]));
}

/* Lists the items by what they are about, in their order, but for what is known to be wrong. */
static void map_subjects(struct placing *p, size_t count)
{
    struct cm_arena *arena = p->c->scratch;

    p->next = CM_NEW_ARRAY(arena, size_t, count);
    for (size_t i = count; i-- > 0;) {
        const struct cm_finding *item = &p->items[i];
        const uint64_t key = CM_ADDRESS(item->subject);

        if (!item->subject || !is_of_the_model(item) ||
            cm_map_find_number(&p->c->findings->blamed, key))
            continue;
        uint64_t *first = cm_map_insert_number(&p->subjects, arena, key, NULL);
        p->next[i] = (size_t)*first;
        *first = i + 1;
    }
}

void cm_place_inferred(struct cm_checker *c, const struct cm_findings *inferred)
{
    const struct cm_model_proto *model = c->model;
    struct placing p = {.c = c, .items = inferred->items};

    map_subjects(&p, inferred->count);
    for (size_t i = 0; i < inferred->count; i++)
        if (!p.items[i].subject && is_of_the_model(&p.items[i]))
            report_item(&p, &p.items[i], NULL);
    c->findings->total += inferred->total - inferred->count;
    c->findings->violations += inferred->total - inferred->count;
    if (!p.subjects.count)
        return;
    if (model->graph)
        visit_graph(&p, NULL, model->graph);
    for (size_t i = 0; i < model->training_info.count; i++)
        visit_entry(&p, i, &model->training_info.items[i]);
    for (size_t i = 0; i < model->functions.count; i++) {
        const struct cm_function_proto *function = &model->functions.items[i];
        const struct cm_model_place here = CM_PLACE(NULL, "function", function->name, i);

        visit_attributes(&p, &here, function->attribute_proto.items,
                         function->attribute_proto.count);
        visit_nodes(&p, &here, &function->node);
        visit_values(&p, &here, "value_info", &function->value_info);
    }
}
