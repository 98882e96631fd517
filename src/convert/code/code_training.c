/* The training of a model: its loss as lines of a function, and the optimizer as the framework has
 * it. */
// SPDX-License-Identifier: Apache-2.0
#include "convert/code/code_training.h"

#include "graph/import.h"
#include "lower/lower.h"

#include <string.h>

/* ---- which value is the loss ---- */

static struct cm_str attribute_text(const struct cm_node_proto *node, const char *name)
{
    for (size_t i = 0; i < node->attribute.count; i++)
        if (cm_str_is(node->attribute.items[i].name, name))
            return node->attribute.items[i].s;
    return CM_STR_NONE;
}

static const struct cm_graph_proto *algorithm_of(const struct cm_model_proto *model,
                                                 struct cm_str *loss)
{
    for (size_t i = 0; i < model->training_info.count; i++) {
        const struct cm_graph_proto *graph = model->training_info.items[i].algorithm;

        for (size_t n = 0; graph && n < graph->node.count; n++)
            if (cm_str_is(graph->node.items[n].domain, "ai.onnx.preview.training")) {
                *loss = attribute_text(&graph->node.items[n], "y"); /* what is differentiated */
                if (loss->size)
                    return graph;
            }
    }
    return NULL;
}

/* ---- the loss alone ---- */

struct cut {
    struct cm_code *code;
    struct cm_map inference; /* names of values that the inference graph computes */
    struct cm_map seen;      /* values */
    struct cm_map cuts;      /* names to values + 1 */
};

/* The value of the inference graph that a value is, "logits" for its copy in training,
 * "logits.training"; empty: it is none. */
static struct cm_str inference_name(const struct cut *cut, cm_value value)
{
    const struct cm_value_def *def = cm_value_get(cut->code->module, value);
    struct cm_str name = def->name;

    if (cm_str_ends(name, ".training"))
        name.size -= strlen(".training");
    return name.size && cm_map_find(&cut->inference, name) ? name : CM_STR_NONE;
}

static cm_value cut_value(struct cut *cut, struct cm_str name, const struct cm_type *type)
{
    bool added;
    uint64_t *value = cm_map_insert(&cut->cuts, cut->code->arena, name, &added);

    if (added)
        *value = cm_graph_add_input(
            cut->code->graph,
            cm_arena_printf(cut->code->arena, "%.*s" CM_CODE_CUT, CM_STR_ALL(name)), type);
    return (cm_value)*value;
}

/* Walks back from a value; what the inference graph computes becomes an input. */
static void walk(struct cut *cut, struct cm_node *node, int depth)
{
    for (int i = 0; i < node->n_inputs; i++) {
        const cm_value value = node->inputs[i].value;
        bool added;

        if (!value || depth > 10000)
            continue;
        const struct cm_value_def *def = cm_value_get(cut->code->module, value);
        const struct cm_str name = inference_name(cut, value);
        if (name.size) {
            cm_node_set_input(node, i, cut_value(cut, name, def->fact.type));
            continue;
        }
        cm_map_insert_number(&cut->seen, cut->code->arena, value, &added);
        if (added && def->node)
            walk(cut, def->node, depth + 1);
    }
}

static enum cm_status import_loss(struct cm_code *code, const struct cm_graph_proto *algorithm,
                                  struct cm_str loss, struct cm_error *err)
{
    const struct cm_module_options options = {.registry = code->options->registry,
                                              .files = code->file->files};
    const struct cm_import_options import = {.constant_defaults = true,
                                             .partial = true,
                                             .appended = algorithm,
                                             .findings = code->options->findings};
    const struct cm_graph_proto *graph = code->file->model.graph;
    const struct cm_lower_options lower = {
        .table = &cm_code_passes, .keep_operators = true, .pass = {.training = true}};
    struct cut cut = {.code = code};

    code->module = cm_module_new(code->arena, &options);
    CM_TRY(cm_lower_import_as(code->module, &code->file->model, &import, &code->graph, err));
    code->originals = cm_originals_read(code->arena, graph);
    const cm_value value = cm_graph_find(code->graph, loss);
    if (!value || !cm_value_get(code->module, value)->node)
        return cm_fail(err, CM_UNSUPPORTED, "the loss '%.*s' is computed by no node",
                       CM_STR_FMT(loss));
    for (size_t n = 0; n < graph->node.count; n++)
        for (size_t o = 0; o < graph->node.items[n].output.count; o++)
            if (graph->node.items[n].output.items[o].size)
                cm_map_add(&cut.inference, code->arena, graph->node.items[n].output.items[o]);
    walk(&cut, cm_value_get(code->module, value)->node, 0);
    cm_graph_set_outputs(code->graph, &value, 1);
    cm_graph_remove_dead(code->graph);
    CM_TRY(cm_graph_retype(code->graph, err));
    return cm_lower_graph(code->graph, &lower, err);
}

/* The inputs that the lines read, by their names in the model: results of the model first. */
static void list_inputs(struct cm_code *code, struct cm_code_training *out)
{
    const struct cm_graph_proto *graph = code->file->model.graph;

    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < code->graph->n_inputs; i++) {
            const cm_value value = code->graph->inputs[i];
            struct cm_str name = cm_value_get(code->module, value)->name;
            const struct cm_str ref = cm_code_value(code, value);
            size_t at = 0, number;
            char kind;

            const bool is_cut = cm_str_ends(name, CM_CODE_CUT);
            if (!cm_code_read_ref(ref, &at, &kind, &number) || kind != CM_CODE_VAR ||
                !code->vars.items[number].uses || is_cut != (pass == 0))
                continue;
            if (is_cut)
                name.size -= strlen(CM_CODE_CUT);
            struct cm_code_fed fed = {.name = name, .var = number, .output = -1};
            for (size_t o = 0; is_cut && o < graph->output.count; o++)
                if (cm_str_equal(graph->output.items[o].name, name))
                    fed.output = (int)o;
            if (is_cut && fed.output < 0)
                out->is_inside = true;
            *CM_PUSH(code->arena, &out->fed) = fed;
        }
}

/* The loss is a function by itself: tensors of the model are out of its reach. */
static enum cm_status refuse_tensors(const struct cm_code *code, struct cm_error *err)
{
    for (size_t i = 0; i < code->lines.count; i++) {
        const struct cm_str text = code->lines.items[i].text;
        size_t number;
        char kind;

        for (size_t at = 0; at < text.size; at++) {
            size_t end = at;
            if (text.data[at] == CM_CODE_TENSOR && cm_code_read_ref(text, &end, &kind, &number))
                return cm_fail(err, CM_UNSUPPORTED,
                               "the loss reads the tensor '%.*s', which the model does not return",
                               CM_STR_FMT(code->tensors.items[number].path));
        }
    }
    return CM_OK;
}

enum cm_status cm_code_training_loss(const struct cm_code *model, struct cm_code_training *out,
                                     struct cm_error *err)
{
    struct cm_code *code = CM_NEW(model->arena, struct cm_code);
    struct cm_code_options *options = CM_NEW(model->arena, struct cm_code_options);
    struct cm_findings *findings = CM_NEW(model->arena, struct cm_findings);
    struct cm_str loss = CM_STR_NONE;
    const struct cm_graph_proto *algorithm = algorithm_of(&model->file->model, &loss);

    *out = (struct cm_code_training){0};
    if (!algorithm)
        return cm_fail(err, CM_NOT_FOUND, "the model has no training info with a gradient");
    *options = *model->options;
    *findings = (struct cm_findings){.arena = model->arena, .rule = "export"};
    options->findings = findings;
    *code = (struct cm_code){.arena = model->arena,
                             .to = model->to,
                             .options = options,
                             .file = model->file,
                             .lists = CM_NEW(model->arena, struct cm_map),
                             .is_function = true,
                             .err = err};
    CM_TRY(import_loss(code, algorithm, loss, err));
    findings->count = findings->total = findings->violations = 0; /* of what the loss needs not */
    CM_TRY(cm_code_make_lines(code, err));
    CM_TRY(cm_findings_fail(findings, err));
    CM_TRY(refuse_tensors(code, err));
    list_inputs(code, out);
    out->loss = code;
    return CM_OK;
}
