/* Nodes by themselves: operator, domain, attributes, and what their schema says about them. */
// SPDX-License-Identifier: Apache-2.0
#include "check/checker.h"
#include "graph/node_order.h"
#include "schema/schema.h"

/* Operators that were experimental, are gone, and are let through by ONNX's own checker. */
static bool is_experimental(const struct cm_node_proto *node)
{
    static const char *const names[] = {"ATen",
                                        "Affine",
                                        "ConstantFill",
                                        "Crop",
                                        "DynamicSlice",
                                        "GRUUnit",
                                        "GivenTensorFill",
                                        "ImageScaler",
                                        "ParametricSoftplus",
                                        "Scale",
                                        "ScaledTanh"};

    if (cm_domain_normal(node->domain).size)
        return false;
    return CM_STR_AMONG(node->op_type, names);
}

/* Most nodes have a few attributes, which need no map. */
static bool is_repeated(struct cm_checker *c, const struct cm_node_proto *node, size_t index,
                        struct cm_map *seen)
{
    enum { FEW = 16 };
    const struct cm_str name = node->attribute.items[index].name;

    if (node->attribute.count > FEW) {
        return !cm_map_add(seen, c->scratch, name);
    }
    for (size_t i = 0; i < index; i++) {
        if (cm_str_equal(node->attribute.items[i].name, name))
            return true;
    }
    return false;
}

static void examine_attributes(struct cm_checker *c, const struct cm_model_place *place,
                               const struct cm_node_proto *node)
{
    struct cm_map seen = {0};

    for (size_t i = 0; i < node->attribute.count; i++) {
        const struct cm_attribute_proto *attribute = &node->attribute.items[i];

        if (is_repeated(c, node, i, &seen))
            cm_report(c, CM_RULE_CK23, place, "has two attributes '%.*s'",
                      CM_STR_FMT(attribute->name));
        cm_examine_attribute(c, place, i, attribute);
    }
}

/* ONNX's checker insists on a schema in these domains only. */
static bool is_closed_domain(struct cm_str domain)
{
    return !domain.size || cm_str_is(domain, "ai.onnx.ml") || cm_str_is(domain, "ai.onnx.training");
}

/* Operators that ONNX Runtime's optimizer and model builder put into ai.onnx, where ONNX has none
 * of that name, or only since a later version. */
static bool is_runtime_addition(struct cm_str domain, struct cm_str op_type)
{
    static const char *const names[] = {"LayerNormalization", "SimplifiedLayerNormalization",
                                        "ThresholdedRelu"};

    return !domain.size && CM_STR_AMONG(op_type, names);
}

/* Operators of ONNX Runtime are no matter of ONNX, and we know some of them only. */
static bool is_foreign_domain(struct cm_str domain)
{
    return cm_str_is(domain, "com.microsoft") || cm_str_is(domain, "com.microsoft.nchwc");
}

static void report_unknown(struct cm_checker *c, enum cm_rule rule,
                           const struct cm_model_place *place, const struct cm_node_proto *node,
                           int64_t version)
{
    const struct cm_str domain = cm_domain_normal(node->domain);
    const struct cm_schema *newest = cm_schema_newest(domain, node->op_type);
    const struct cm_str shown = domain.size ? domain : CM_STR("ai.onnx");

    if (is_runtime_addition(domain, node->op_type)) {
        cm_report_accepted(c, rule, place, true,
                           "there is no '%.*s' in version %lld of domain 'ai.onnx', where ONNX "
                           "Runtime's optimizer puts it",
                           CM_STR_FMT(node->op_type), (long long)version);
        return;
    }
    if (newest) {
        cm_report(c, rule, place, "there is no '%.*s' in version %lld of domain '%.*s'",
                  CM_STR_FMT(node->op_type), (long long)version, CM_STR_FMT(shown));
        return;
    }
    /* Guessing compares with every operator, so it is done for what will be shown only. */
    const struct cm_schema *meant =
        c->findings->count < CM_FINDINGS_MAX ? cm_schema_suggest(domain, node->op_type) : NULL;
    if (!meant)
        cm_report(c, rule, place, "there is no operator '%.*s' in domain '%.*s'",
                  CM_STR_FMT(node->op_type), CM_STR_FMT(shown));
    else
        cm_report(c, rule, place,
                  "there is no operator '%.*s' in domain '%.*s'; did you mean '%s%s%s'?",
                  CM_STR_FMT(node->op_type), CM_STR_FMT(shown), meant->domain,
                  meant->domain[0] ? "." : "", meant->name);
}

static void examine_operator(struct cm_checker *c, const struct cm_model_place *place,
                             const struct cm_node_proto *node, int64_t version)
{
    const struct cm_str domain = cm_domain_normal(node->domain);
    const struct cm_function_proto *function = cm_called_function(c, node);
    const struct cm_schema *schema = cm_schema_find(domain, node->op_type, version);

    if (function)
        cm_examine_call(c, place, node, function);
    else if (node->overload.size)
        cm_report(c, CM_RULE_ST13, place, "no function of the model has the overload '%.*s'",
                  CM_STR_FMT(node->overload));
    if (schema && !is_foreign_domain(domain))
        cm_examine_against_schema(c, place, node);
    else if (schema)
        return;
    else if (is_closed_domain(domain) || ((c->flags & CM_CHECK_CUSTOM_DOMAINS) && !function))
        report_unknown(c, CM_RULE_CK24, place, node, version);
    else if (!function && cm_schema_domain_known(domain) && !is_foreign_domain(domain))
        cm_is_graph_call(node) ? cm_examine_graph_call(c, place, node)
                               : report_unknown(c, CM_RULE_ST24, place, node, version);
}

void cm_examine_node(struct cm_checker *c, const struct cm_model_place *place,
                     const struct cm_node_proto *node)
{
    int64_t version;

    if (!node->op_type.size)
        cm_report(c, CM_RULE_CK20, place, "names no operator");
    if (!node->input.count && !node->output.count)
        cm_report(c, CM_RULE_CK21, place, "has neither inputs nor outputs");
    cm_report_repeated_keys(c, CM_RULE_ST5, place, &node->metadata_props);
    if (node->metadata_props.count)
        cm_report_newer(c, place, 10, "metadata of parts of a model");
    if (node->overload.size)
        cm_report_newer(c, place, 10, "overloads");
    if (cm_str_is(node->domain, "ai.onnx"))
        cm_report(c, CM_RULE_ST3, place, "has the domain 'ai.onnx'; write '' for it");
    cm_examine_node_devices(c, place, node);
    examine_attributes(c, place, node);
    if (!node->op_type.size || is_experimental(node))
        return;
    if (!cm_imports_find(c->imports, node->domain, &version)) {
        cm_report(c, c->function ? CM_RULE_CK74 : CM_RULE_CK22, place,
                  "its domain '%.*s' is not imported", CM_STR_FMT(node->domain));
        return;
    }
    examine_operator(c, place, node, version);
    if (cm_str_is(node->op_type, "Gradient") && cm_str_is(node->domain, "ai.onnx.preview.training"))
        cm_examine_gradient(c, place, node);
}
