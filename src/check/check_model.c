/* The checker's entry points: a whole model, or one message with what surrounds it. */
// SPDX-License-Identifier: Apache-2.0
#include "check/checker.h"
#include "schema/schema.h"

/* Steps that all Gradient nodes of a model together may take when looking for what depends on what.
 */
enum { WALK_BUDGET = 20 * 1000 * 1000 };

struct run {
    struct cm_checker checker;
    struct cm_arena scratch;
    struct cm_scope scope;
    struct cm_imports imports;
};

static struct cm_checker *run_begin(struct run *run, struct cm_arena *arena,
                                    struct cm_findings *out)
{
    *run = (struct run){.checker = {.arena = arena, .findings = out, .walk_budget = WALK_BUDGET}};
    cm_arena_init(&run->scratch, arena->guard);
    run->checker.scratch = &run->scratch;
    run->checker.scope = &run->scope;
    run->checker.imports = &run->imports;
    return &run->checker;
}

static enum cm_status run_end(struct run *run)
{
    cm_arena_release(&run->scratch);
    return CM_OK;
}

static void examine_ir_version(struct cm_checker *c, const struct cm_model_proto *model)
{
    if (model->ir_version == 0)
        cm_report(c, CM_RULE_CK2, NULL, "has no IR version");
    else if (model->ir_version > CM_IR_NEWEST || model->ir_version < 0)
        cm_report(c, CM_RULE_CK2, NULL, "its IR version is %lld, the newest known is %d",
                  (long long)model->ir_version, CM_IR_NEWEST);
}

static void examine_model_imports(struct cm_checker *c, struct cm_imports *imports,
                                  const struct cm_model_proto *model)
{
    int64_t version;

    if (model->ir_version >= 3 && !model->opset_import.count)
        cm_report(c, CM_RULE_CK5, NULL, "imports no operator set");
    if (model->ir_version < 3 && model->opset_import.count)
        cm_report(c, CM_RULE_CK5, NULL, "imports operator sets, which IR version %lld cannot",
                  (long long)model->ir_version);
    cm_examine_imports(c, NULL, &model->opset_import);
    cm_imports_fill(c, imports, &model->opset_import);
    if (model->opset_import.count && !cm_imports_find(imports, CM_STR(""), &version))
        cm_report(c, CM_RULE_ST2, NULL, "does not import the default domain");
    if (model->ir_version < 3 && !model->opset_import.count)
        *cm_map_insert(&imports->versions, c->scratch, CM_STR(""), NULL) = 1;
}

enum cm_status cm_check_model(const struct cm_model_proto *model, struct cm_external_files *files,
                              unsigned flags, struct cm_arena *arena, struct cm_findings *out,
                              struct cm_error *err)
{
    struct run run;
    *out = (struct cm_findings){.arena = arena, .what = "the model is not legal ONNX"};
    struct cm_checker *c = run_begin(&run, arena, out);

    (void)err;
    c->files = files;
    c->flags = flags;
    c->model = model;
    c->ir_version = model->ir_version;
    examine_ir_version(c, model);
    cm_report_repeated_keys(c, CM_RULE_CK3, NULL, &model->metadata_props);
    examine_model_imports(c, &run.imports, model);
    cm_examine_configurations(c);
    cm_map_functions(c);
    const size_t mark = cm_scope_enter(c->scope);
    if (model->graph)
        cm_examine_open_graph(c, NULL, CM_MAIN_GRAPH, model->graph);
    else
        cm_report(c, CM_RULE_CK6, NULL, "has no graph");
    cm_examine_training(c);
    cm_scope_leave(c->scope, mark);
    cm_examine_functions(c);
    return run_end(&run);
}

void cm_check_add_inferred(const struct cm_model_proto *model, unsigned flags,
                           const struct cm_findings *inferred, struct cm_findings *findings)
{
    struct run run;
    struct cm_checker *c = run_begin(&run, findings->arena, findings);

    c->flags = flags;
    c->model = model;
    cm_place_inferred(c, inferred);
    (void)run_end(&run);
}

static struct cm_checker *message_begin(struct run *run, const struct cm_check_context *context,
                                        struct cm_arena *arena, struct cm_findings *out)
{
    *out = (struct cm_findings){.arena = arena, .what = "the model is not legal ONNX"};
    struct cm_checker *c = run_begin(run, arena, out);

    c->files = context->files;
    c->flags = context->flags;
    c->ir_version = context->ir_version ? context->ir_version : CM_IR_NEWEST;
    cm_imports_fill(c, &run->imports, &context->imports);
    if (!context->imports.count)
        *cm_map_insert(&run->imports.versions, c->scratch, CM_STR(""), NULL) =
            (uint64_t)cm_schema_newest_opset(CM_STR(""));
    return c;
}

enum cm_status cm_check_message(const struct cm_message_info *info, const void *message,
                                const struct cm_check_context *context, struct cm_arena *arena,
                                struct cm_findings *out, struct cm_error *err)
{
    struct run run;
    struct cm_checker *c = message_begin(&run, context, arena, out);

    (void)err;
    if (info == &cm_graph_info) {
        cm_examine_graph(c, NULL, CM_MAIN_GRAPH, message);
    } else if (info == &cm_node_info) {
        c->names_ignored = true;
        cm_scope_enter(c->scope);
        cm_examine_node(c, &CM_PLACE_NODE(NULL, (const struct cm_node_proto *)message, SIZE_MAX),
                        message);
    } else if (info == &cm_attribute_info) {
        cm_scope_enter(c->scope);
        cm_examine_attribute(c, NULL, SIZE_MAX, message);
    } else if (info == &cm_tensor_info) {
        const struct cm_tensor_proto *tensor = message;
        cm_examine_tensor(c, &CM_PLACE(NULL, "tensor", tensor->name, SIZE_MAX), tensor);
    } else if (info == &cm_sparse_info) {
        const struct cm_sparse_proto *sparse = message;
        const struct cm_str name = sparse->values ? sparse->values->name : CM_STR_NONE;
        cm_examine_sparse(c, &CM_PLACE(NULL, "sparse tensor", name, SIZE_MAX), sparse);
    } else if (info == &cm_function_info) {
        cm_examine_function(c, NULL, SIZE_MAX, message, &run.imports);
    } else {
        assert(info == &cm_value_info_info);
        const struct cm_value_info_proto *value = message;
        cm_examine_value_info(c, &CM_PLACE(NULL, "value_info", value->name, SIZE_MAX), value, true);
    }
    return run_end(&run);
}
