/* The attributes of recurrent operators. */
// SPDX-License-Identifier: Apache-2.0
#include "graph/recurrent_form.h"

static const struct activation {
    const char *name;  /* in lower case: exporters differ */
    int n_parameters;  /* of alpha, beta */
    float alpha, beta; /* defaults */
} activations[CM_ACTIVATIONS] = {
    [CM_ACT_RELU] = {"relu", 0, 0, 0},
    [CM_ACT_TANH] = {"tanh", 0, 0, 0},
    [CM_ACT_SIGMOID] = {"sigmoid", 0, 0, 0},
    [CM_ACT_SOFTSIGN] = {"softsign", 0, 0, 0},
    [CM_ACT_SOFTPLUS] = {"softplus", 0, 0, 0},
    [CM_ACT_LEAKY_RELU] = {"leakyrelu", 1, 0.01F, 0},
    [CM_ACT_THRESHOLDED_RELU] = {"thresholdedrelu", 1, 1, 0},
    [CM_ACT_ELU] = {"elu", 1, 1, 0},
    [CM_ACT_HARD_SIGMOID] = {"hardsigmoid", 2, 0.2F, 0.5F},
    [CM_ACT_AFFINE] = {"affine", 2, 1, 0},
    [CM_ACT_SCALED_TANH] = {"scaledtanh", 2, 1, 1},
};

int cm_activation_parameters(enum cm_activation kind)
{
    return kind < CM_ACTIVATIONS ? activations[kind].n_parameters : 0;
}

static enum cm_activation find_activation(struct cm_str name)
{
    for (int i = 0; i < CM_ACTIVATIONS; i++) {
        const struct cm_str known = cm_str(activations[i].name);
        if (known.size != name.size)
            continue;
        bool same = true;
        for (size_t c = 0; c < name.size; c++)
            same = same && known.data[c] == (name.data[c] | 32);
        if (same)
            return (enum cm_activation)i;
    }
    return CM_ACT_UNKNOWN;
}

void cm_recurrent_form(const struct cm_node *node, int n_activations,
                       const enum cm_activation *usual, struct cm_recurrent_form *out)
{
    const struct cm_str direction = cm_node_str(node, "direction");
    /* Not with its default, which would need memory: it is what is usual. */
    const struct cm_attribute_proto *list = cm_node_attr(node, "activations");
    const struct cm_strs names = list ? list->strings : (struct cm_strs){NULL, 0};
    const struct cm_floats alphas = cm_node_floats(node, "activation_alpha");
    const struct cm_floats betas = cm_node_floats(node, "activation_beta");
    size_t alpha = 0, beta = 0; /* each list is consumed by the activations that take one */
    *out = (struct cm_recurrent_form){.directions = cm_str_is(direction, "bidirectional") ? 2 : 1,
                                      .reverse = {cm_str_is(direction, "reverse"), true},
                                      .batch_first = cm_node_int(node, "layout") != 0,
                                      .has_clip = cm_node_attr(node, "clip") != NULL};
    out->clip = out->has_clip ? cm_node_float(node, "clip") : 0;
    for (int i = 0; i < out->directions * n_activations; i++) {
        struct cm_recurrent_activation *a = &out->activations[i / n_activations][i % n_activations];
        const bool given = (size_t)i < names.count;
        *a = (struct cm_recurrent_activation){.kind = usual[i % n_activations]};
        if (given) {
            a->name = names.items[i];
            a->kind = find_activation(a->name);
        }
        if (a->kind == CM_ACT_UNKNOWN)
            continue;
        const struct activation *known = &activations[a->kind];
        a->alpha = known->alpha;
        a->beta = known->beta;
        if (known->n_parameters > 0 && alpha < alphas.count)
            a->alpha = alphas.items[alpha++];
        if (known->n_parameters > 1 && beta < betas.count)
            a->beta = betas.items[beta++];
    }
}

enum cm_status cm_recurrent_check_length(int64_t length, int64_t most, struct cm_error *err)
{
    if (length < 0 || length > most)
        return cm_fail(err, CM_BAD_ARGUMENT,
                       "a sequence length is %lld, must be 0 to %lld, the sequence length of X",
                       (long long)length, (long long)most);
    return CM_OK;
}
