/* Which tensors are trained, and why: what the user says, what the file records, what layers do
 * with them, and where gradients go. */
// SPDX-License-Identifier: Apache-2.0
#include "train/prepare/trainables.h"

#include "autodiff/backward.h"
#include "graph/function.h"
#include "onnx/tensor_data.h"
#include "train/training_graph.h"

#include <math.h>

/* PyTorch's newer exporter notes the kind of an initializer beside its type. */
static const char kind_key[] = "pkg.torch.export.graph_signature.InputSpec.kind";

/* ---- patterns ---- */

struct pattern {
    regex_t compiled;
    bool is_compiled;
};

static void free_pattern(void *what)
{
    struct pattern *pattern = what;

    if (pattern->is_compiled)
        regfree(&pattern->compiled);
}

const regex_t *cm_preparation_pattern(struct cm_preparation *p, const char *option,
                                      const char *text)
{
    char why[200];

    if (!text)
        return NULL;
    struct pattern *pattern = CM_NEW(p->arena, struct pattern);
    cm_arena_defer(p->arena, free_pattern, pattern);
    const int code = regcomp(&pattern->compiled, text, REG_EXTENDED | REG_NOSUB);
    pattern->is_compiled = code == 0;
    if (pattern->is_compiled)
        return &pattern->compiled;
    regerror(code, &pattern->compiled, why, sizeof why);
    cm_preparation_block(p, "%s '%.100s' is not a regular expression: %s", option, text, why);
    return NULL;
}

static bool matches(const struct cm_preparation *p, const regex_t *pattern, struct cm_str name)
{
    return regexec(pattern, cm_arena_str(p->arena, name).data, 0, NULL, 0) == 0;
}

bool cm_preparation_matches(const struct cm_preparation *p, const regex_t *pattern,
                            struct cm_str name)
{
    if (!pattern || matches(p, pattern, name))
        return pattern != NULL;
    const struct cm_original *original = cm_originals_find(p->originals, name);
    for (size_t i = 0; original && i < original->names.count; i++)
        if (matches(p, pattern, original->names.items[i]))
            return true;
    return original && original->module.size &&
           matches(p, pattern,
                   cm_arena_printf(p->arena, "%.*s.%.*s", (int)original->module.size,
                                   original->module.data, (int)name.size, name.data));
}

/* ---- what there is ---- */

struct records {
    struct cm_map kinds; /* names of values to enum cm_recorded */
    bool any;
};

static void record(struct records *records, struct cm_arena *arena, struct cm_str name,
                   const struct cm_entries *entries)
{
    const struct cm_str kind = cm_entries_find(entries, kind_key);

    if (!kind.size)
        return;
    records->any = true;
    *cm_map_insert(&records->kinds, arena, name, NULL) =
        cm_str_is(kind, "PARAMETER") ? CM_RECORDED_PARAMETER : CM_RECORDED_OTHER;
}

static void read_records(struct cm_preparation *p, struct records *records)
{
    const struct cm_graph_proto *graph = p->model->graph;
    const struct cm_value_infos *const lists[] = {&graph->value_info, &graph->input};

    for (size_t l = 0; l < CM_COUNT(lists); l++)
        for (size_t i = 0; i < lists[l]->count; i++)
            record(records, p->arena, lists[l]->items[i].name, &lists[l]->items[i].metadata_props);
    for (size_t i = 0; i < graph->initializer.count; i++)
        record(records, p->arena, graph->initializer.items[i].name,
               &graph->initializer.items[i].metadata_props);
}

/* What options, type and records say; how it is used is seen later. */
static void consider(struct cm_preparation *p, struct cm_trainables *list,
                     struct cm_trainable candidate)
{
    const struct cm_tensor_proto *tensor = candidate.tensor;
    const struct cm_str name = candidate.name;
    const bool is_float = cm_dtype_is_float(tensor->data_type);
    const bool frozen = cm_preparation_matches(p, p->freeze, name);
    const bool named = p->options->plan ? cm_map_get(&p->planned, name, 0) != 0
                                        : cm_preparation_matches(p, p->train, name);
    const char *reason = NULL;

    list->named += named;
    list->frozen += frozen;
    if (candidate.is_constant && (!is_float || (tensor->dims.count == 0 && !named)))
        return; /* a number somebody wrote down, not a weight */
    candidate.has_no_gradient = named && !is_float;
    if (!is_float)
        reason = named ? "it holds integers, which have no gradient" : "it holds no floats";
    else if (p->options->plan && !named)
        reason = "no optimizer group has it";
    else if (p->train && !named)
        reason = "train does not match it";
    else if (frozen)
        reason = "freeze matches it";
    else if (!named && cm_value_is_statistic(p->inference->module, candidate.value))
        reason = "running statistics";
    else if (!named && candidate.recorded == CM_RECORDED_OTHER)
        reason = "the file calls it a buffer or constant";
    else if (!named && tensor->dims.count == 0 && !candidate.recorded)
        reason = "a scalar constant";
    candidate.named = named;
    candidate.reason = reason;
    candidate.trained = reason == NULL;
    *CM_PUSH(p->arena, list) = candidate;
}

/* Rows of a table that a framework looked up with constant indices, each of them once, are trained
 * as the table would be. Where a row was looked up several times, they are no longer one. */
static bool is_rows(struct cm_preparation *p, const struct cm_tensor_proto *proto)
{
    const struct cm_original *original = cm_originals_find(p->originals, proto->name);
    struct cm_tensor tensor;
    struct cm_map rows = {0};
    bool apart = true;

    if (!original || original->folding != CM_FOLDED_ROWS || !original->is_parameter ||
        cm_tensor_proto_load(proto, p->file->files, &tensor, NULL))
        return false;
    const int64_t count = cm_tensor_count(&tensor);
    const int64_t columns = count ? tensor.shape.dims[tensor.shape.rank - 1] : 1;
    const size_t size = (size_t)columns * cm_dtype_size(tensor.type);
    for (int64_t i = 0; i < count / columns && apart; i++)
        cm_map_insert(&rows, p->arena,
                      (struct cm_str){(const char *)tensor.data + (size_t)i * size, size}, &apart);
    cm_tensor_drop(&tensor);
    return apart;
}

void cm_trainables_gather(struct cm_preparation *p, struct cm_trainables *list)
{
    const struct cm_graph *graph = p->inference;
    const cm_value n_values = (cm_value)cm_module_value_count(graph->module);
    struct records records = {0};

    read_records(p, &records);
    list->records_kinds = records.any;
    list->frozen = p->left_frozen;
    for (cm_value v = 1; v < n_values; v++) {
        const struct cm_value_def *def = cm_value_get(graph->module, v);

        if (def->graph != graph || def->role != CM_ROLE_INITIALIZER || !def->initializer)
            continue;
        uint64_t kind = cm_map_get(&records.kinds, def->name, CM_RECORDED_NOTHING);
        if (kind == CM_RECORDED_NOTHING && is_rows(p, def->initializer))
            kind = CM_RECORDED_PARAMETER;
        consider(p, list,
                 (struct cm_trainable){.tensor = def->initializer,
                                       .name = def->name,
                                       .value = v,
                                       .recorded = (enum cm_recorded)kind});
    }
    for (const struct cm_node *node = graph->first; node; node = node->next) {
        const struct cm_tensor_proto *tensor = cm_node_constant(p->arena, node);

        if (!tensor || node->n_outputs == 0)
            continue;
        const struct cm_str name = cm_preparation_name_of(p, node->outputs[0]);
        if (!name.size) /* an upgrade's, or a function's that stays */
            continue;
        list->numbers_apart = !records.any;
        consider(
            p, list,
            (struct cm_trainable){
                .tensor = tensor, .name = name, .value = node->outputs[0], .is_constant = true});
    }
}

/* ---- the usual choice ---- */

static bool counts(const struct cm_trainable *candidate)
{
    return candidate->recorded == CM_RECORDED_PARAMETER || candidate->is_learned;
}

static bool any_learned(const struct cm_trainables *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (counts(&list->items[i]))
            return true;
    return false;
}

static void leave(struct cm_trainable *candidate, const char *reason)
{
    candidate->trained = false;
    candidate->reason = reason;
}

/* In a model without layers, what is applied to its inputs is what there is to train: of
 * initializers, else of constants. */
static void leave_unapplied(struct cm_trainables *list)
{
    bool any = false;

    for (size_t i = 0; i < list->count; i++)
        any = any ||
              (list->items[i].trained && list->items[i].is_applied && !list->items[i].is_constant);
    for (size_t i = 0; i < list->count; i++) {
        struct cm_trainable *candidate = &list->items[i];

        if (candidate->trained && (!candidate->is_applied || (any && candidate->is_constant)))
            leave(candidate, candidate->use ? candidate->use : "nothing reads it");
    }
}

/* Infinities mask; so do numbers that stand for them. */
static bool is_finite(const struct cm_preparation *p, const struct cm_trainable *candidate)
{
    const double huge = candidate->tensor->data_type == CM_FLOAT16 ? HUGE_VAL : 1e30;
    struct cm_tensor tensor;
    bool finite = true;

    if (cm_tensor_proto_load(candidate->tensor, p->file->files, &tensor, NULL))
        return true; /* what is broken is said elsewhere */
    const int64_t count = cm_tensor_count(&tensor);
    if (tensor.type == CM_FLOAT)
        for (int64_t i = 0; i < count && finite; i++)
            finite = fabsf(((const float *)tensor.data)[i]) < (float)huge;
    else
        for (int64_t i = 0; i < count && finite; i++)
            finite = fabs(cm_tensor_real(&tensor, i)) < huge;
    cm_tensor_drop(&tensor);
    return finite;
}

static void leave_others(struct cm_trainables *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct cm_trainable *candidate = &list->items[i];

        if (candidate->trained && !counts(candidate))
            leave(candidate, candidate->use ? candidate->use : "nothing reads it");
    }
}

void cm_trainables_choose(struct cm_preparation *p, struct cm_trainables *list)
{
    if (!p->train && !p->options->plan) {
        cm_trainables_look(p, list, false);
        if (!any_learned(list)) /* then its weights are in Constant nodes, if anywhere */
            cm_trainables_look(p, list, true);
        if (any_learned(list)) {
            leave_others(list);
        } else if (list->records_kinds) {
            leave_others(list);
        } else {
            leave_unapplied(list);
        }
    }
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].trained && !list->items[i].named && !is_finite(p, &list->items[i]))
            leave(&list->items[i], "it holds infinities or NaN");
}

/* ---- where gradients go ---- */

/* Nodes on the way that nobody can differentiate, all of them. */
static void list_missing(struct cm_preparation *p, cm_value y, const cm_value *xs, size_t n_xs)
{
    struct cm_node **path;
    const size_t count = cm_autodiff_path(p->inference->module, y, xs, n_xs, &path);

    for (size_t i = 0; i < count; i++) {
        const struct cm_node *node = path[i];
        bool floats = false;
        for (int o = 0; o < node->n_outputs; o++) {
            const struct cm_type *type = cm_preparation_type(p, node->outputs[o]);
            floats = floats || (type && cm_dtype_is_float(type->dtype));
        }
        if (floats && !(node->op && node->op->grad) && !cm_node_has_function(node))
            cm_preparation_block(p, "%s: no gradient is known for it", cm_node_describe(node).text);
    }
}

static const char *reason_to_train(const struct cm_preparation *p,
                                   const struct cm_trainable *candidate)
{
    if (p->options->plan)
        return "an optimizer group has it";
    if (p->train)
        return "train matches it";
    if (candidate->recorded == CM_RECORDED_PARAMETER)
        return "the file calls it a parameter";
    return candidate->is_learned ? candidate->use : "a gradient reaches it";
}

/* The values of candidates that the loss depends on; the others are left. */
static size_t find_values(struct cm_preparation *p, struct cm_trainables *list, cm_value loss,
                          cm_value *xs)
{
    const bool *needed = cm_preparation_needed(p, loss);
    size_t count = 0;

    for (size_t i = 0; i < list->count; i++) {
        struct cm_trainable *candidate = &list->items[i];

        if (candidate->trained && needed[candidate->value]) {
            cm_value_get(p->inference->module, candidate->value)->is_state =
                true; /* bodies read it as a value now */
            xs[count++] = candidate->value;
        } else if (candidate->trained) {
            leave(candidate, "the loss does not depend on it");
        }
    }
    return count;
}

/* All that the plan lists must be there. */
static void check_planned(struct cm_preparation *p, const struct cm_trainables *list)
{
    struct cm_map found = {0};

    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].named)
            cm_map_insert(&found, p->arena, list->items[i].name, NULL);
    for (size_t i = 0; i < p->options->plan->n_weights; i++) {
        const struct cm_str name = p->options->plan->weights[i].name;

        if (!cm_map_find(&found, name))
            cm_preparation_block(p, "the optimizer has '%.*s', which the model does not have",
                                 CM_STR_FMT(name));
    }
}

enum { NEAR_MAX = 3 };

struct near_name {
    struct cm_str name;
    size_t distance;
};

/* How far a word is from a name, or from the part of it between dots that is nearest. */
static size_t distance_to(struct cm_str name, struct cm_str word)
{
    size_t least = cm_str_distance(name, word);

    for (size_t begin = 0, i = 0; i <= name.size; i++) {
        if (i < name.size && name.data[i] != '.')
            continue;
        const size_t distance =
            cm_str_distance((struct cm_str){name.data + begin, i - begin}, word);
        least = distance < least ? distance : least;
        begin = i + 1;
    }
    return least;
}

static void keep_nearest(struct near_name *nearest, struct cm_str name, struct cm_str word)
{
    if (!name.size)
        return;
    struct near_name one = {name, distance_to(name, word)};

    for (size_t i = 0; i < NEAR_MAX; i++)
        if (!nearest[i].name.size || one.distance < nearest[i].distance) {
            const struct near_name next = nearest[i];

            nearest[i] = one;
            one = next;
        }
}

/* The pattern without what means something in an expression. */
static struct cm_str pattern_word(struct cm_arena *arena, const char *pattern)
{
    char *text = cm_arena_alloc(arena, strlen(pattern) + 1);
    size_t size = 0;

    for (; *pattern; pattern++)
        if (!strchr("^$\\()[]{}*+?|", *pattern))
            text[size++] = *pattern;
    return (struct cm_str){text, size};
}

/* A pattern that matches nothing is a mistake: says which names are near. */
static void block_pattern(struct cm_preparation *p, const struct cm_trainables *list,
                          const char *option, const char *pattern)
{
    const struct cm_str word = pattern_word(p->arena, pattern);
    struct near_name nearest[NEAR_MAX] = {{.distance = 0}};
    struct cm_str text = CM_STR("");

    for (size_t i = 0; i < list->count; i++) {
        const struct cm_trainable *candidate = &list->items[i];
        const struct cm_original *original = cm_originals_find(p->originals, candidate->name);

        if (!cm_dtype_is_float(candidate->tensor->data_type) || !candidate->tensor->dims.count)
            continue;
        const bool named = original && original->names.count;
        keep_nearest(nearest, named ? original->names.items[0] : candidate->name, word);
    }
    for (size_t i = 0; i < NEAR_MAX && nearest[i].name.size; i++)
        text = cm_arena_printf(p->arena, "%s%s'%.*s'", cm_str_text(text), i ? ", " : "; there are ",
                               CM_STR_FMT(nearest[i].name));
    cm_preparation_block(p, "%s '%.100s' matches no initializer%s", option, pattern,
                         cm_str_text(text));
}

static void check_patterns(struct cm_preparation *p, const struct cm_trainables *list)
{
    if (p->options->plan)
        check_planned(p, list);
    if (p->train && !list->named)
        block_pattern(p, list, "train", p->options->train);
    if (p->freeze && !list->frozen)
        block_pattern(p, list, "freeze", p->options->freeze);
}

/* The forward pass with its loss, differentiated by all that might be trained: where nothing comes
 * out, there is nothing to train. */
enum cm_status cm_trainables_follow(struct cm_preparation *p)
{
    struct cm_trainables *list = p->candidates;
    cm_value *xs = CM_NEW_ARRAY(p->arena, cm_value, list->count);
    cm_value *grads = CM_NEW_ARRAY(p->arena, cm_value, list->count);

    check_patterns(p, list);
    if (!p->loss)
        return CM_OK;
    const size_t n_xs = find_values(p, list, p->loss, xs), known = p->report->findings.violations;
    list_missing(p, p->loss, xs, n_xs);
    if (p->report->findings.violations > known)
        return CM_OK;
    if (cm_prepared_step_differentiate(p, p->loss, xs, n_xs, grads)) {
        cm_preparation_block(p, "%s", p->err->text);
        return CM_OK;
    }
    for (size_t i = 0, x = 0; i < list->count; i++) {
        struct cm_trainable *candidate = &list->items[i];

        if (!candidate->trained)
            continue;
        candidate->has_no_gradient = !grads[x++];
        if (!candidate->has_no_gradient)
            candidate->reason = reason_to_train(p, candidate);
        else
            leave(candidate, list->is_quantized ? "no gradient reaches it through quantized values"
                                                : "no gradient reaches it");
    }
    list->followed = true;
    return CM_OK;
}

/* ---- the report ---- */

static void check_type(struct cm_preparation *p, const struct cm_trainable *candidate)
{
    const enum cm_dtype dtype = (enum cm_dtype)candidate->tensor->data_type;
    struct cm_error broken = {0};

    if (cm_tensor_proto_check(candidate->tensor, &broken))
        cm_preparation_block(p, "'%.*s': %s", CM_STR_FMT(candidate->name), broken.text);
    if (dtype != CM_FLOAT && dtype != CM_DOUBLE && dtype != CM_FLOAT16)
        cm_preparation_block(p, "'%.*s' is %s, which Gradient cannot differentiate by; freeze it",
                             CM_STR_FMT(candidate->name), cm_dtype_name(dtype));
}

static void tell_of_named(struct cm_preparation *p, const struct cm_trainables *list, bool trains)
{
    for (size_t i = 0; (p->options->train || p->options->plan) && i < list->count; i++) {
        const struct cm_trainable *candidate = &list->items[i];

        if (p->options->plan && candidate->named && !candidate->trained) {
            cm_preparation_note(p, "'%.*s' stays as it is, although the optimizer has it: %s",
                                CM_STR_FMT(candidate->name), candidate->reason);
            continue;
        }
        if (!candidate->has_no_gradient)
            continue;
        if (trains) /* an expression that means the weights may match more than them */
            cm_preparation_note(p, "'%.*s' is not trained: %s", CM_STR_FMT(candidate->name),
                                candidate->reason);
        else
            cm_preparation_block(p, "'%.*s' cannot be trained: %s", CM_STR_FMT(candidate->name),
                                 candidate->reason);
    }
}

void cm_trainables_report(struct cm_preparation *p, struct cm_trainables *list)
{
    size_t trained = 0;

    p->report->choices = CM_NEW_ARRAY(p->arena, struct cm_prepare_choice, list->count);
    for (size_t i = 0; i < list->count; i++) {
        const struct cm_trainable *candidate = &list->items[i];

        if (candidate->is_constant && !candidate->trained)
            continue;
        const char *reason = candidate->reason
                                 ? candidate->reason
                                 : "it would be trained, but the model has problems (listed)";
        const struct cm_original_texts texts =
            cm_originals_texts(p->originals, p->arena, candidate->name);
        p->report->choices[p->report->n_choices++] =
            (struct cm_prepare_choice){.name = candidate->name,
                                       .trained = candidate->trained,
                                       .reason = cm_str(reason),
                                       .original = texts.original,
                                       .folding = texts.folding};
        trained += candidate->trained;
        if (candidate->trained)
            check_type(p, candidate);
    }
    if (!list->followed)
        return;
    if (!trained)
        cm_findings_put(
            &p->report->findings,
            &(struct cm_finding){.status = CM_UNSUPPORTED,
                                 .severity = CM_VIOLATION,
                                 .rule = "untrained",
                                 .reason = cm_arena_printf(
                                     p->arena,
                                     "there is nothing to train: of %zu initializers, no gradient "
                                     "reaches one that may change",
                                     p->report->n_choices)});
    tell_of_named(p, list, trained);
}
