/* Drawing random numbers. */
// SPDX-License-Identifier: Apache-2.0
#include "ops/random/draws.h"

#include "tensor/line.h"

enum cm_status cm_draws_dtype(struct cm_infer *in, enum cm_dtype otherwise, enum cm_dtype *out)
{
    const struct cm_schema *schema = in->node->schema;
    const bool given = cm_node_has_attr(in->node, "dtype");
    const int64_t code = given ? cm_node_int(in->node, "dtype") : (int64_t)otherwise;
    *out = (enum cm_dtype)code;
    if (!cm_dtype_is_valid(code))
        return cm_infer_fail(in, "attribute 'dtype' is %lld, which is not an element type",
                             (long long)code);
    if (!cm_type_set_allows_tensor(cm_schema_types_of(schema, cm_schema_output(schema, 0)), *out))
        return cm_infer_fail(in, "its result cannot be %s, %s", cm_dtype_name(*out),
                             given ? "which attribute 'dtype' names"
                                   : "the type of its input; attribute 'dtype' sets another");
    return CM_OK;
}

static double rounded(enum cm_dtype type, double value)
{
    float narrow = (float)value;
    if (type == CM_DOUBLE)
        return value;
    if (type != CM_FLOAT)
        cm_line_round(type, 1, &narrow);
    return (double)narrow;
}

double cm_draws_next(const struct cm_draws *draws, struct cm_random *random, enum cm_dtype type)
{
    const double drawn = rounded(type, draws->draw(random));
    const double scaled = rounded(type, drawn * rounded(type, draws->scale));
    return rounded(type, scaled + rounded(type, draws->shift));
}
