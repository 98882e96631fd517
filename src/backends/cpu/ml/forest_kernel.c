/* Operators that are forests, by compiled trees. */
// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/ml/forest_engine.h"
#include "graph/backend.h"

struct forest_state {
    struct cm_forest *forest;
    double model[]; /* that of the rule */
};

static bool accepts(struct cm_call *call)
{
    (void)call;
    return true;
}

static enum cm_status prepare(struct cm_call *call)
{
    const struct cm_forest_rule *rule = call->op->arg;
    struct forest_state *state = cm_call_state(call, sizeof *state + rule->size);
    CM_TRY(rule->begin(call, state->model));
    return cm_forest_prepare(call, rule->read, state->model, &state->forest);
}

static enum cm_status run(struct cm_call *call)
{
    const struct cm_forest_rule *rule = call->op->arg;
    const struct forest_state *state = call->state;
    struct cm_forest_use use = {call, state->model};
    cm_forest_run(call, state->forest, rule->finish, &use);
    return CM_OK;
}

#define FOREST .label = "compiled trees", .accepts = accepts, .prepare = prepare, .run = run

CM_KERNEL_IN(cpu, "ai.onnx.ml", TreeEnsemble, FOREST);
CM_KERNEL_IN(cpu, "ai.onnx.ml", TreeEnsembleClassifier, FOREST);
CM_KERNEL_IN(cpu, "ai.onnx.ml", TreeEnsembleRegressor, FOREST);
