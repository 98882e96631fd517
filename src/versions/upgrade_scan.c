/* Scan of version 8, which ran a batch of sequences, as a Scan over the batch whose body is a Scan
 * over one sequence. */
// SPDX-License-Identifier: Apache-2.0
#include "versions/upgrade_step.h"

/* Inputs: lengths of the sequences (may be absent), N states, M scan inputs; all but the lengths
 * have the batch as their first axis, scan inputs the sequence as their second. */
struct scan {
    struct cm_upgrade *up;
    struct cm_builder build; /* inside the outer body; so cm_emit works on this struct */
    size_t n_states, n_scans, n_outputs;
    bool has_lengths;
    cm_value length;  /* inside: of this sequence, shape (1) */
    cm_value longest; /* inside: of the scan inputs, shape (1) */
};

static enum cm_status read_counts(struct scan *scan)
{
    struct cm_upgrade *up = scan->up;
    const int64_t m = cm_node_int(&up->node, "num_scan_inputs");
    const size_t operands = up->spec->n_inputs - 1;
    if (m < 1 || (uint64_t)m > operands)
        return cm_upgrade_fail(up, CM_BAD_MODEL,
                               "attribute 'num_scan_inputs' is %lld, but the node has %zu operands",
                               (long long)m, operands);
    scan->n_scans = (size_t)m;
    scan->n_states = operands - scan->n_scans;
    scan->n_outputs = up->spec->n_outputs;
    scan->has_lengths = cm_upgrade_input(up, 0) != 0;
    if (scan->n_outputs < scan->n_states)
        return cm_upgrade_fail(up, CM_BAD_MODEL, "has %zu states but %zu outputs", scan->n_states,
                               scan->n_outputs);
    for (size_t i = 1; i <= operands; i++)
        if (!cm_upgrade_input(up, i))
            return cm_upgrade_fail(up, CM_BAD_MODEL, "input %zu is absent", i);
    return CM_OK;
}

/* What one sample of this input looks like. */
static enum cm_status add_sample(struct scan *scan, size_t input, cm_value *out)
{
    const struct cm_type *type = cm_upgrade_type(scan->up, input);
    struct cm_arena *arena = cm_upgrade_arena(scan->up);
    if (type->rank == 0)
        return cm_upgrade_fail(scan->up, CM_BAD_MODEL, "input %zu has no batch axis", input);
    const struct cm_type *sample =
        type->rank == CM_RANK_UNKNOWN
            ? type
            : cm_type_tensor(arena, type->dtype, type->rank - 1, type->dims + 1);
    *out = cm_graph_add_input(scan->build.graph, CM_STR_NONE, sample);
    return CM_OK;
}

/* With lengths, the sequence is cut; else it is taken whole. */
static cm_value cut(struct scan *scan, cm_value sequence)
{
    if (!scan->has_lengths)
        return sequence;
    const cm_value zero = cm_emit_int64s(scan, 0);
    return cm_emit(scan, "Slice", sequence, zero, scan->length, zero);
}

/* And the result is filled up with zeros. */
static cm_value fill(struct scan *scan, cm_value result)
{
    if (!scan->has_lengths)
        return result;
    struct cm_arena *arena = cm_upgrade_arena(scan->up);
    const cm_value zero = cm_emit_int64s(scan, 0);
    const cm_value rest = cm_emit(scan, "Sub", scan->longest, scan->length);
    const cm_value pads =
        cm_emit_with(scan, "Concat", CM_ATTRIBUTES(cm_attr_int(arena, "axis", 0)), zero, rest);
    return cm_emit(scan, "Pad", result, pads, 0, zero);
}

static enum cm_status add_inner(struct scan *scan, const cm_value *operands, cm_value *results)
{
    struct cm_upgrade *up = scan->up;
    struct cm_arena *arena = cm_upgrade_arena(up);
    struct cm_attribute_proto *attributes = CM_NEW_ARRAY(arena, struct cm_attribute_proto, 2);
    const struct cm_int64s directions = cm_node_ints(&up->node, "directions");
    attributes[0] = cm_attr_int(arena, "num_scan_inputs", (int64_t)scan->n_scans);
    attributes[1] =
        cm_attr_ints(arena, "scan_input_directions", directions.count, directions.items);
    const struct cm_node_spec spec = {.domain = up->spec->domain,
                                      .op_type = up->spec->op_type,
                                      .name = up->spec->name,
                                      .inputs = operands,
                                      .n_inputs = scan->n_states + scan->n_scans,
                                      .n_outputs = scan->n_outputs,
                                      .attributes = attributes,
                                      .n_attributes = directions.count ? 2 : 1,
                                      .bodies = up->spec->bodies,
                                      .n_bodies = up->spec->n_bodies,
                                      .original_version = 8};
    struct cm_node *node;
    CM_TRY(scan->build.status);
    CM_TRY(cm_graph_add_node(scan->build.graph, NULL, &spec, &node, scan->build.err));
    for (size_t o = 0; o < scan->n_outputs; o++)
        results[o] = o < scan->n_states ? node->outputs[o] : fill(scan, node->outputs[o]);
    return scan->build.status;
}

static enum cm_status build_body(struct scan *scan)
{
    struct cm_upgrade *up = scan->up;
    struct cm_arena *arena = cm_upgrade_arena(up);
    const size_t n = scan->n_states + scan->n_scans;
    cm_value *operands = CM_NEW_ARRAY(arena, cm_value, n);
    cm_value *results = CM_NEW_ARRAY(arena, cm_value, scan->n_outputs);

    if (scan->has_lengths) {
        cm_value length;
        CM_TRY(add_sample(scan, 0, &length));
        scan->length = cm_emit(scan, "Reshape", length, cm_emit_int64s(scan, 1));
    }
    for (size_t i = 0; i < n; i++)
        CM_TRY(add_sample(scan, i + 1, &operands[i]));
    if (scan->has_lengths)
        scan->longest = cm_emit_with(scan, "Shape", CM_ATTRIBUTES(cm_attr_int(arena, "end", 1)),
                                     operands[scan->n_states]);
    for (size_t i = scan->n_states; i < n; i++)
        operands[i] = cut(scan, operands[i]);
    CM_TRY(add_inner(scan, operands, results));
    cm_graph_set_outputs(scan->build.graph, results, scan->n_outputs);
    return CM_OK;
}

enum cm_status cm_upgrade_scan_8(struct cm_upgrade *up)
{
    struct scan scan = {.up = up};
    CM_TRY(read_counts(&scan));
    struct cm_graph *body = cm_graph_new(up->build.graph->module, up->build.graph, CM_STR("batch"));
    scan.build = (struct cm_builder){.graph = body, .err = up->build.err};
    up->build.status = build_body(&scan);
    CM_TRY(up->build.status);
    const size_t skip = scan.has_lengths ? 0 : 1;
    const cm_value first =
        cm_build(&up->build, &(struct cm_emission){
                                 .op = "Scan",
                                 .inputs = up->spec->inputs + skip,
                                 .n_inputs = up->spec->n_inputs - skip,
                                 CM_ATTRIBUTES(cm_attr_int(cm_upgrade_arena(up), "num_scan_inputs",
                                                           (int64_t)(up->spec->n_inputs - skip))),
                                 .body_graphs = &body,
                                 .body_names = (const char *const[]){"body"},
                                 .n_bodies = 1,
                                 .n_outputs = scan.n_outputs,
                                 .outputs = up->outputs,
                             });
    up->done = first != 0;
    return up->build.status;
}
