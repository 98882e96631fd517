/* Everything cameo.h offers on one hostile model: loading, describing, reading, checking, writing.
 */
// SPDX-License-Identifier: Apache-2.0
#include "cameo.h"
#include "target.h"

#include <stdlib.h>
#include <string.h>

struct copy {
    uint8_t *data;
    size_t size, room;
};

static int keep(void *to, const void *bytes, size_t size)
{
    struct copy *copy = to;

    if (size > copy->room - copy->size)
        return 1;
    memcpy(copy->data + copy->size, bytes, size);
    copy->size += size;
    return 0;
}

static void set_values(struct cameo_model *model, size_t index, size_t size)
{
    uint8_t *values = malloc(size + 1);

    if (values && cameo_model_read_initializer(model, index, values, size, NULL) == CAMEO_OK &&
        cameo_model_set_initializer(model, index, values, size, NULL) != CAMEO_OK)
        abort();
    free(values);
}

/* Whatever is wrong with a graph, going through it ends. */
static size_t walk(const struct cameo_model *model, const struct cameo_graph *graph)
{
    size_t seen = cameo_graph_edge_count(graph);

    for (size_t n = 0; n < cameo_graph_node_count(graph); n++) {
        const struct cameo_node *node = cameo_graph_node(graph, n);

        for (size_t a = 0; a < node->attribute_count; a++) {
            const struct cameo_node_attribute *attribute = node->attributes[a];
            struct cameo_value *value;

            for (size_t g = 0; g < attribute->graph_count; g++)
                seen += walk(model, attribute->graphs[g]);
            for (size_t i = 0; i < attribute->tensor_count; i++)
                if (cameo_attribute_tensor(model, attribute, i, &value, NULL) == CAMEO_OK)
                    cameo_value_free(value);
        }
    }
    for (size_t e = 0; e < cameo_graph_edge_count(graph); e++) {
        const struct cameo_edge *edge = cameo_graph_edge(graph, e);

        for (size_t r = 0; r < edge->reader_count; r++)
            if (edge->reader_inputs[r] >= edge->readers[r]->input_count)
                abort();
    }
    return seen;
}

static size_t check(const struct cameo_model *model, bool structure_only)
{
    struct cameo_check_options options = CAMEO_CHECK_OPTIONS_INIT;
    const struct cameo_finding *finding;
    struct cameo_findings *findings;

    options.structure_only = structure_only;
    if (cameo_model_check(model, &options, &findings, NULL) != CAMEO_OK)
        return structure_only ? 0 : SIZE_MAX;
    for (size_t i = 0; (finding = cameo_findings_at(findings, i)) != NULL; i++)
        if (!finding->rule.size || !finding->place.size || !finding->reason.size ||
            !finding->help.size)
            abort();
    const size_t violations = cameo_findings_violations(findings);
    cameo_findings_free(findings);
    return violations;
}

/* An untouched model must come out as it went in. */
static void use_model(struct cameo_model *model, const uint8_t *data, size_t size)
{
    struct copy copy = {malloc(size + 1), 0, size};

    if (copy.data && (cameo_model_write(model, NULL, keep, &copy, NULL) != CAMEO_OK ||
                      copy.size != size || memcmp(copy.data, data, size) != 0))
        abort();
    free(copy.data);
    if (check(model, true) > check(model, false)) /* types only add to what is found */
        abort();
    for (int kind = CAMEO_GRAPH_MAIN; kind <= CAMEO_GRAPH_ALGORITHM; kind++) {
        const struct cameo_graph *graph;

        if (cameo_model_graph(model, (enum cameo_graph_kind)kind, 0, &graph, NULL) == CAMEO_OK)
            walk(model, graph);
    }
    for (size_t i = 0; i < cameo_model_summary(model)->initializer_count; i++) {
        const struct cameo_initializer *tensor = cameo_model_initializer(model, i);

        if (tensor->bytes <= size)
            set_values(model, i, (size_t)tensor->bytes);
    }
}

static void run_input(const uint8_t *data, size_t size)
{
    struct cameo_load_options options = CAMEO_LOAD_OPTIONS_INIT;
    struct cameo_model *model;

    options.borrow_bytes = true;
    options.memory_limit = (size_t)256 << 20;
    if (cameo_model_load_memory(data, size, &options, &model, NULL) == CAMEO_OK)
        use_model(model, data, size);
    cameo_model_free(model);
}

const struct fuzz_target fuzz_target = {
    .run = run_input,
    .mutate = mutate_model,
    .most_bytes = 8 * FUZZ_KIB,
    .memory_base = 16 * FUZZ_MIB,
    .memory_per_byte = 4096,
};
