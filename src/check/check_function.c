/* Functions of the model: signature, body, imports, and whether calls fit. */
// SPDX-License-Identifier: Apache-2.0
#include "check/checker.h"
#include "schema/schema.h"

static size_t key_length(struct cm_str domain, struct cm_str name, struct cm_str overload)
{
    return cm_domain_normal(domain).size + name.size + overload.size + 2;
}

static struct cm_str write_key(char *out, struct cm_str domain, struct cm_str name,
                               struct cm_str overload)
{
    const struct cm_str parts[] = {cm_domain_normal(domain), name, overload};
    size_t size = 0;

    for (size_t i = 0; i < CM_COUNT(parts); i++) {
        if (i)
            out[size++] = '\0';
        if (parts[i].size)
            memcpy(out + size, parts[i].data, parts[i].size);
        size += parts[i].size;
    }
    return (struct cm_str){out, size};
}

const struct cm_function_proto *cm_called_function(struct cm_checker *c,
                                                   const struct cm_node_proto *node)
{
    if (!c->functions.count ||
        key_length(node->domain, node->op_type, node->overload) > c->key_size)
        return NULL;
    const uint64_t found = cm_map_get(
        &c->functions, write_key(c->key, node->domain, node->op_type, node->overload), 0);
    return found ? &c->model->functions.items[found - 1] : NULL;
}

/* name -> 1, or 2 + index of the default. Returns a name that is there twice. */
static struct cm_str map_attributes(struct cm_checker *c, const struct cm_function_proto *function,
                                    struct cm_map *out)
{
    struct cm_str twice = CM_STR_NONE;
    bool added;

    for (size_t i = 0; i < function->attribute.count; i++)
        *cm_map_insert(out, c->scratch, function->attribute.items[i], NULL) = 1;
    for (size_t i = 0; i < function->attribute_proto.count; i++) {
        const struct cm_str name = function->attribute_proto.items[i].name;

        *cm_map_insert(out, c->scratch, name, &added) = i + 2;
        if (!added)
            twice = name;
    }
    return twice;
}

static void examine_distinct(struct cm_checker *c, const struct cm_model_place *here,
                             const struct cm_strs *names, const char *what)
{
    struct cm_map seen = {0};

    for (size_t i = 0; i < names->count; i++) {
        if (!cm_map_add(&seen, c->scratch, names->items[i]))
            cm_report(c, CM_RULE_CK72, here, "has two %s '%.*s'", what,
                      CM_STR_FMT(names->items[i]));
    }
}

static void examine_signature(struct cm_checker *c, const struct cm_model_place *here,
                              const struct cm_function_proto *function)
{
    if (!function->name.size)
        cm_report(c, CM_RULE_CK71, here, "has no name");
    if (!cm_msg_has(&function->msg, CM_FUNCTION_DOMAIN))
        cm_report(c, CM_RULE_CK71, here, "has no domain");
    examine_distinct(c, here, &function->input, "inputs");
    examine_distinct(c, here, &function->output, "outputs");
    examine_distinct(c, here, &function->attribute, "attributes");
    if (function->attribute_proto.count)
        cm_report_newer(c, here, 9, "attribute defaults of functions");
    if (function->overload.size)
        cm_report_newer(c, here, 10, "overloads");
    if (function->value_info.count)
        cm_report_newer(c, here, 10, "value_info of functions");
    if (function->metadata_props.count)
        cm_report_newer(c, here, 10, "metadata of parts of a model");
    cm_report_repeated_keys(c, CM_RULE_ST5, here, &function->metadata_props);
    cm_examine_imports(c, here, &function->opset_import);
}

/* Under the function's import and under the model's an operator must be the same. */
static void examine_versions(struct cm_checker *c, const struct cm_model_place *here,
                             const struct cm_function_proto *function,
                             const struct cm_imports *model_imports)
{
    for (size_t i = 0; i < function->node.count; i++) {
        const struct cm_node_proto *node = &function->node.items[i];
        const struct cm_model_place at = CM_PLACE_NODE(here, node, i);
        int64_t ours, models;

        if (!cm_imports_find(c->imports, node->domain, &ours))
            continue; /* told when the node is examined */
        /* To ONNX's checker -1 is no import at all. */
        if (ours == -1)
            cm_report(c, CM_RULE_CK74, &at, "its domain '%.*s' is imported in version -1",
                      CM_STR_FMT(node->domain));
        if (!cm_imports_find(model_imports, node->domain, &models) || models == -1 ||
            ours == models)
            continue;
        const struct cm_schema *a = cm_schema_find(node->domain, node->op_type, ours);
        const struct cm_schema *b = cm_schema_find(node->domain, node->op_type, models);
        if ((a || b) && (!a || !b || a->since_version != b->since_version))
            cm_report(c, CM_RULE_CK74, &at,
                      "version %lld of its domain, imported by the function, and %lld, imported "
                      "elsewhere, define it differently",
                      (long long)ours, (long long)models);
    }
}

static void examine_results(struct cm_checker *c, const struct cm_model_place *here,
                            const struct cm_function_proto *function)
{
    struct cm_map seen = {0};

    for (size_t i = 0; i < function->output.count; i++) {
        if (!cm_scope_find(c->scope, function->output.items[i]))
            cm_report(c, CM_RULE_ST13, here, "defines its output '%.*s' nowhere",
                      CM_STR_FMT(function->output.items[i]));
    }
    for (size_t i = 0; i < function->value_info.count; i++) {
        const struct cm_value_info_proto *info = &function->value_info.items[i];
        const struct cm_model_place at = CM_PLACE_VALUE(here, "value_info", info->name, i, info);

        if (!cm_map_add(&seen, c->scratch, info->name))
            cm_report(c, CM_RULE_ST8, &at, "there is another entry for the same name");
        else if (!cm_scope_find(c->scope, info->name))
            cm_report(c, CM_RULE_ST8, &at, "the function defines no such value");
        if (info->type)
            cm_examine_type(c, CM_RULE_ST8, &at, info->type, false);
    }
}

void cm_examine_function(struct cm_checker *c, const struct cm_model_place *up, size_t index,
                         const struct cm_function_proto *function,
                         const struct cm_imports *model_imports)
{
    const struct cm_model_place here = CM_PLACE(up, "function", function->name, index);
    struct cm_scope *outer = c->scope;
    const struct cm_imports *outer_imports = c->imports;
    struct cm_scope scope = {0};
    struct cm_imports imports = {0};
    struct cm_map attributes = {0};

    cm_imports_fill(c, &imports, &function->opset_import);
    c->function = function;
    c->scope = &scope;
    c->imports = &imports;
    c->attributes = &attributes;
    cm_scope_enter(&scope);
    examine_signature(c, &here, function);
    const struct cm_str twice = map_attributes(c, function, &attributes);
    if (twice.size)
        cm_report(c, CM_RULE_ST13, &here, "declares the attribute '%.*s' twice", CM_STR_FMT(twice));
    c->unlooked = true;
    for (size_t i = 0; i < function->attribute_proto.count; i++)
        cm_examine_attribute(c, &here, i, &function->attribute_proto.items[i]);
    c->unlooked = false;
    for (size_t i = 0; i < function->input.count; i++)
        cm_scope_add(c, function->input.items[i], CM_DEF_INPUT);
    if (!(c->flags & CM_CHECK_SKIP_OPSETS))
        examine_versions(c, &here, function, model_imports);
    cm_examine_nodes(c, &here, CM_NESTED_GRAPH, &function->node);
    examine_results(c, &here, function);
    c->function = NULL;
    c->scope = outer;
    c->imports = outer_imports;
    c->attributes = NULL;
}

void cm_map_functions(struct cm_checker *c)
{
    const struct cm_model_proto *model = c->model;
    bool added;

    c->function_attributes = CM_NEW_ARRAY(c->scratch, struct cm_map, model->functions.count);
    for (size_t i = 0; i < model->functions.count; i++) {
        const struct cm_function_proto *function = &model->functions.items[i];
        const struct cm_model_place here = CM_PLACE(NULL, "function", function->name, i);
        const size_t size = key_length(function->domain, function->name, function->overload);
        char *key = cm_arena_alloc(c->scratch, size);

        uint64_t *slot = cm_map_insert(
            &c->functions, c->scratch,
            write_key(key, function->domain, function->name, function->overload), &added);
        if (added)
            *slot = i + 1;
        else if (c->ir_version >= 8)
            cm_report(c, CM_RULE_CK70, &here,
                      "another function has the same domain, name and overload");
        c->key_size = size > c->key_size ? size : c->key_size;
        map_attributes(c, function, &c->function_attributes[i]);
    }
    c->key = cm_arena_alloc(c->scratch, c->key_size);
}

void cm_examine_functions(struct cm_checker *c)
{
    enum { MOST = 10000 };
    const struct cm_model_proto *model = c->model;
    struct cm_imports imports = {0};

    if (!model->functions.count)
        return;
    if (c->ir_version < 8) {
        cm_report_newer(c, NULL, 8, "functions");
        return;
    }
    if (model->functions.count > MOST)
        cm_report(c, CM_RULE_CK70, NULL, "has %zu functions, at most %d are allowed",
                  model->functions.count, MOST);
    /* What the model does not import, the first function that does decides for all. */
    for (size_t i = model->functions.count; i-- > 0;)
        cm_imports_fill(c, &imports, &model->functions.items[i].opset_import);
    cm_imports_fill(c, &imports, &model->opset_import);
    for (size_t i = 0; i < model->functions.count; i++)
        cm_examine_function(c, NULL, i, &model->functions.items[i], &imports);
    cm_examine_call_graph(c);
}
