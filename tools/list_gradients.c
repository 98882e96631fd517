/* Prints the sections of docs/gradients.md that the library writes, one for each operator. */
// SPDX-License-Identifier: Apache-2.0
#include "cameo.h"
#include "graph/registry.h"

#include <stdio.h>

static int put(void *to, const void *bytes, size_t size)
{
    return fwrite(bytes, 1, size, to) != size;
}

/* Some deprecated operators still do; of others every version is rewritten. */
static bool runs(const struct cm_schema *schema)
{
    const struct cm_op *op =
        cm_registry_op(cm_registry_builtin(), cm_str(schema->domain), cm_str(schema->name));

    return op && op->run;
}

int main(void)
{
    int failures = 0;

    for (size_t i = 0; i < cm_schema_count(); i++) {
        const struct cm_schema *schema = cm_schema_at(i);
        const char *domain = *schema->domain ? schema->domain : "ai.onnx";
        struct cameo_error err;
        if (schema != cm_schema_newest(cm_str(schema->domain), cm_str(schema->name)) ||
            (schema->deprecated && !runs(schema)))
            continue;
        printf("@%s\n", domain);
        if (cameo_operator_gradient(domain, schema->name, 0, put, stdout, &err) == CAMEO_OK)
            continue;
        fprintf(stderr, "%s.%s: %s\n", domain, schema->name, err.message);
        failures++;
    }
    return failures || ferror(stdout) || fflush(stdout) ? 1 : 0;
}
