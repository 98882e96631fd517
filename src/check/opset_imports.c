/* Which version of which operator set is in force. */
// SPDX-License-Identifier: Apache-2.0
#include "check/checker.h"
#include "schema/schema.h"

struct cm_str cm_domain_normal(struct cm_str domain)
{
    return cm_str_is(domain, "ai.onnx") ? CM_STR("") : domain;
}

/* Of a domain imported twice the last import counts, as in ONNX's checker. */
void cm_imports_fill(struct cm_checker *c, struct cm_imports *imports,
                     const struct cm_opsets *opsets)
{
    for (size_t i = 0; i < opsets->count; i++) {
        const struct cm_str domain = cm_domain_normal(opsets->items[i].domain);

        *cm_map_insert(&imports->versions, c->scratch, domain, NULL) =
            (uint64_t)opsets->items[i].version;
    }
}

bool cm_imports_find(const struct cm_imports *imports, struct cm_str domain, int64_t *version)
{
    const uint64_t *found = cm_map_find(&imports->versions, cm_domain_normal(domain));

    if (found)
        *version = (int64_t)*found;
    return found != NULL;
}

static void examine_version(struct cm_checker *c, const struct cm_model_place *place,
                            const struct cm_opset_proto *opset)
{
    const int64_t newest = cm_schema_newest_opset(opset->domain);

    if (opset->version > INT32_MAX || opset->version < INT32_MIN)
        cm_report(c, CM_RULE_CK4, place, "version %lld does not fit 32 bits",
                  (long long)opset->version);
    else if (opset->version < 1)
        cm_report(c, CM_RULE_ST2, place, "version %lld is below 1", (long long)opset->version);
    else if (newest > 0 && opset->version > newest)
        cm_report(c, CM_RULE_ST2, place, "version %lld is newer than %lld, the newest known",
                  (long long)opset->version, (long long)newest);
}

void cm_examine_imports(struct cm_checker *c, const struct cm_model_place *place,
                        const struct cm_opsets *opsets)
{
    struct cm_map seen = {0};
    bool added;

    for (size_t i = 0; i < opsets->count; i++) {
        const struct cm_str domain = cm_domain_normal(opsets->items[i].domain);
        const struct cm_model_place here =
            CM_PLACE(place, place ? ".opset_import" : "opset_import", domain, i);

        cm_map_insert(&seen, c->scratch, domain, &added);
        if (c->function && cm_str_is(opsets->items[i].domain, "ai.onnx"))
            cm_report(c, CM_RULE_ST3, &here, "imports 'ai.onnx'; write '' for it in a function");
        if (!added)
            cm_report(c, CM_RULE_ST2, &here, "the domain is imported twice");
        examine_version(c, &here, &opsets->items[i]);
    }
}
