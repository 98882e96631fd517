/* A node and what it needs beside it, written down. Steps between versions (upgrade_step.h) emit
 * helping nodes of the newest version into a graph that hangs under the working copy; each of them
 * is then converted itself. */
// SPDX-License-Identifier: Apache-2.0
#include "models/opset_nodes.h"

#include "graph/function.h"
#include "graph/registry.h"
#include "onnx/tensor_data.h"
#include "versions/upgrade.h"
#include "versions/upgrade_step.h"

#include <string.h>

enum { DEPTH_MAX = 16 };

int64_t cm_target_version(const struct cm_opsets *targets, struct cm_str domain)
{
    for (size_t i = 0; i < targets->count; i++)
        if (cm_str_equal(cm_domain_plain(targets->items[i].domain), cm_domain_plain(domain)))
            return targets->items[i].version;
    return 0;
}

/* ---- names ---- */

static struct cm_str fresh_name(struct cm_node_writer *w, struct cm_str op)
{
    struct cm_str name;
    bool added = false;
    for (size_t i = 0; !added; i++) {
        name =
            i ? cm_arena_printf(w->arena, "%.*s_%.*s_%zu", CM_STR_FMT(w->base), CM_STR_FMT(op), i)
              : cm_arena_printf(w->arena, "%.*s_%.*s", CM_STR_FMT(w->base), CM_STR_FMT(op));
        cm_map_insert(w->taken, w->arena, name, &added);
    }
    *CM_PUSH(w->arena, &w->fresh) = name;
    return name;
}

static struct cm_str *find_name(struct cm_node_writer *w, cm_value value)
{
    const uint64_t *found = cm_map_find_number(&w->names, value);
    return found ? (struct cm_str *)(uintptr_t)*found : NULL;
}

static void set_name(struct cm_node_writer *w, cm_value value, struct cm_str name)
{
    struct cm_str *kept = CM_NEW(w->arena, struct cm_str);
    *kept = name;
    *cm_map_insert_number(&w->names, w->arena, value, NULL) = CM_ADDRESS(kept);
}

static void forget_name(struct cm_node_writer *w, cm_value value)
{
    *cm_map_insert_number(&w->names, w->arena, value, NULL) = 0;
}

static void set_text(struct cm_msg *msg, int field, struct cm_str *member, struct cm_str value)
{
    *member = value;
    if (value.size)
        cm_msg_set(msg, field);
}

static void set_names(struct cm_msg *msg, int field, struct cm_strs *member, struct cm_str *names,
                      size_t count)
{
    *member = (struct cm_strs){names, count};
    cm_msg_set(msg, field);
}

static void set_attributes(struct cm_node_proto *node, struct cm_attribute_proto *items,
                           size_t count)
{
    node->attribute.items = items;
    node->attribute.count = count;
    cm_msg_set(&node->msg, CM_NODE_ATTRIBUTE);
}

/* A constant that a step made: a Constant node, or an initializer where the opset's Constant does
 * not have the type. */
static enum cm_status add_constant(struct cm_node_writer *w, cm_value value, struct cm_str name)
{
    const struct cm_tensor *tensor;
    const int64_t opset = cm_target_version(w->targets, CM_STR(""));
    const struct cm_schema *schema = cm_schema_find(CM_STR(""), CM_STR("Constant"), opset);

    CM_TRY(cm_value_constant(w->module, value, &tensor, w->err));
    if (!tensor)
        return cm_fail(w->err, CM_UNSUPPORTED, "needs a value that has no name");
    struct cm_attribute_proto *attr = CM_NEW(w->arena, struct cm_attribute_proto);
    *attr = cm_attr_tensor(w->arena, "value", tensor);
    set_name(w, value, name);
    *CM_PUSH(w->arena, &w->constants) = value;
    if (schema &&
        cm_type_set_allows_tensor(cm_schema_types_of(schema, &schema->outputs[0]), tensor->type)) {
        struct cm_node_proto *node = CM_PUSH(w->arena, &w->nodes);
        struct cm_str *output = CM_NEW(w->arena, struct cm_str);
        *output = name;
        *node = (struct cm_node_proto){0};
        set_text(&node->msg, CM_NODE_OP_TYPE, &node->op_type, CM_STR("Constant"));
        set_attributes(node, attr, 1);
        set_names(&node->msg, CM_NODE_OUTPUT, &node->output, output, 1);
        return CM_OK;
    }
    if (w->in_function || w->in_bodies)
        return cm_fail(w->err, CM_UNSUPPORTED,
                       "needs a constant of %s, which a function cannot have before opset 9",
                       cm_dtype_name(tensor->type));
    struct cm_tensor_proto *initializer = CM_PUSH(w->arena, &w->initializers);
    *initializer = *attr->t;
    set_text(&initializer->msg, CM_TENSOR_NAME, &initializer->name, name);
    return CM_OK;
}

static enum cm_status name_of(struct cm_node_writer *w, cm_value value, struct cm_str *out)
{
    const struct cm_str *known = value ? find_name(w, value) : NULL;
    *out = known ? *known : value ? fresh_name(w, CM_STR("constant")) : CM_STR_NONE;
    return !value || known ? CM_OK : add_constant(w, value, *out);
}

static struct cm_str name_result(struct cm_node_writer *w, cm_value value, struct cm_str op)
{
    const struct cm_str *known = find_name(w, value);
    if (known)
        return *known;
    const struct cm_str name = fresh_name(w, op);
    set_name(w, value, name);
    return name;
}

static enum cm_status add_copy(struct cm_node_writer *w, cm_value from, struct cm_str to)
{
    struct cm_str name;
    CM_TRY(name_of(w, from, &name));
    *CM_PUSH(w->arena, &w->nodes) = cm_identity_proto(w->arena, name, to);
    return CM_OK;
}

/* ---- forms ---- */

static enum cm_status write_node(struct cm_node_writer *w, struct cm_graph *graph,
                                 const struct cm_node_spec *spec, const struct cm_schema *from,
                                 const cm_value *outputs, const struct cm_node_proto *origin,
                                 bool *same);

/* A cast to the type that its operand has, as bodies for every type hold, gives its operand. */
static bool is_no_cast(struct cm_node_writer *w, const struct cm_node *node)
{
    const cm_value x = cm_node_input(node, 0);
    return cm_str_is(node->op_type, "Cast") && !node->domain.size && node->n_outputs == 1 &&
           !find_name(w, node->outputs[0]) && find_name(w, x) &&
           cm_type_equal(cm_value_get(w->module, x)->fact.type,
                         cm_value_get(w->module, node->outputs[0])->fact.type);
}

static enum cm_status write_built(struct cm_node_writer *w, struct cm_node *node)
{
    if (is_no_cast(w, node)) {
        set_name(w, node->outputs[0], *find_name(w, cm_node_input(node, 0)));
        return CM_OK;
    }
    const struct cm_node_spec spec = cm_node_spec_of(node, w->arena);
    return write_node(w, node->graph, &spec, node->schema, node->outputs, NULL, NULL);
}

static void write_info(struct cm_node_writer *w, cm_value value, struct cm_str name,
                       struct cm_value_info_proto *out)
{
    *out = (struct cm_value_info_proto){0};
    set_text(&out->msg, CM_VALUE_INFO_NAME, &out->name, name);
    out->type = CM_NEW(w->arena, struct cm_type_proto);
    cm_type_to_proto(w->arena, cm_module_symbols(w->module),
                     cm_value_get(w->module, value)->fact.type, out->type);
    cm_msg_set(&out->msg, CM_VALUE_INFO_TYPE);
}

/* A body that was made here. Constants that it names are its own. */
static enum cm_status write_graph(struct cm_node_writer *w, const struct cm_graph *graph,
                                  struct cm_graph_proto *out)
{
    const struct cm_node_writer outer = *w;

    memset(&w->nodes, 0, sizeof w->nodes);
    w->in_bodies++;
    out->input.items = CM_NEW_ARRAY(w->arena, struct cm_value_info_proto, graph->n_inputs);
    out->input.count = graph->n_inputs;
    for (size_t i = 0; i < graph->n_inputs; i++)
        write_info(w, graph->inputs[i], name_result(w, graph->inputs[i], CM_STR("in")),
                   &out->input.items[i]);
    for (struct cm_node *node = graph->first; node; node = node->next)
        CM_TRY(write_built(w, node));
    out->output.items = CM_NEW_ARRAY(w->arena, struct cm_value_info_proto, graph->n_outputs);
    out->output.count = graph->n_outputs;
    for (size_t o = 0; o < graph->n_outputs; o++) {
        const cm_value value = graph->outputs[o].value;
        const struct cm_str name = fresh_name(w, CM_STR("out"));
        CM_TRY(add_copy(w, value, name));
        write_info(w, value, name, &out->output.items[o]);
    }
    set_text(&out->msg, CM_GRAPH_NAME, &out->name, graph->name.size ? graph->name : CM_STR("body"));
    out->node = (struct cm_nodes){w->nodes.items, w->nodes.count};
    cm_msg_set(&out->msg, CM_GRAPH_NODE);
    cm_msg_set(&out->msg, CM_GRAPH_INPUT);
    cm_msg_set(&out->msg, CM_GRAPH_OUTPUT);
    while (w->constants.count > outer.constants.count)
        forget_name(w, w->constants.items[--w->constants.count]);
    memcpy(&w->nodes, &outer.nodes, sizeof w->nodes);
    w->in_bodies--;
    return CM_OK;
}

static enum cm_status write_body_attribute(struct cm_node_writer *w, const struct cm_body_ref *body,
                                           const struct cm_node_proto *origin,
                                           struct cm_attribute_proto *out)
{
    for (size_t i = 0; origin && i < origin->attribute.count; i++)
        if (origin->attribute.items[i].g && origin->attribute.items[i].g == body->proto) {
            *out = origin->attribute.items[i];
            return CM_OK;
        }
    const struct cm_graph_proto *proto = body->proto;
    *out = (struct cm_attribute_proto){.type = CM_ATTR_GRAPH};
    set_text(&out->msg, CM_ATTRIBUTE_NAME, &out->name, body->attribute);
    cm_msg_set(&out->msg, CM_ATTRIBUTE_TYPE);
    cm_msg_set(&out->msg, CM_ATTRIBUTE_G);
    if (proto && cm_map_find_number(w->file_graphs, CM_ADDRESS(proto))) {
        out->g = (struct cm_graph_proto *)(uintptr_t)proto;
        return CM_OK;
    }
    if (!body->graph)
        return cm_fail(w->err, CM_UNSUPPORTED, "body '%.*s' could not be built",
                       CM_STR_FMT(body->attribute));
    out->g = CM_NEW(w->arena, struct cm_graph_proto);
    return write_graph(w, body->graph, out->g);
}

/* What the attribute says in the file, where no step touched it: it may refer to one of a function.
 */
static const struct cm_attribute_proto *as_given(const struct cm_attribute_proto *attr,
                                                 const struct cm_node_spec *spec,
                                                 const struct cm_node_proto *origin)
{
    for (size_t i = 0; origin && i < spec->n_attributes; i++)
        if (cm_str_equal(spec->attributes[i].name, attr->name) &&
            memcmp(&spec->attributes[i], attr, sizeof *attr) == 0)
            for (size_t k = 0; k < origin->attribute.count; k++)
                if (cm_str_equal(origin->attribute.items[k].name, attr->name))
                    return &origin->attribute.items[k];
    return attr;
}

static enum cm_status write_form(struct cm_node_writer *w, const struct cm_version_form *form,
                                 const struct cm_node_spec *given,
                                 const struct cm_node_proto *origin)
{
    const struct cm_node_spec *spec = &form->spec;
    struct cm_node_proto made = {0};
    struct cm_str *inputs = CM_NEW_ARRAY(w->arena, struct cm_str, spec->n_inputs);
    struct cm_str *outputs = CM_NEW_ARRAY(w->arena, struct cm_str, spec->n_outputs);
    const size_t count = spec->n_attributes + spec->n_bodies;
    struct cm_attribute_proto *attributes =
        CM_NEW_ARRAY(w->arena, struct cm_attribute_proto, count);

    if (origin)
        made = *origin;
    for (size_t i = 0; i < spec->n_inputs; i++)
        CM_TRY(name_of(w, spec->inputs[i], &inputs[i]));
    for (size_t o = 0; o < spec->n_outputs; o++)
        outputs[o] =
            form->outputs[o] ? name_result(w, form->outputs[o], spec->op_type) : CM_STR_NONE;
    for (size_t i = 0; i < spec->n_attributes; i++)
        attributes[i] = *as_given(&spec->attributes[i], given, origin);
    for (size_t i = 0; i < spec->n_bodies; i++)
        CM_TRY(
            write_body_attribute(w, &spec->bodies[i], origin, &attributes[spec->n_attributes + i]));
    if (!origin || !cm_str_equal(origin->op_type, spec->op_type))
        set_text(&made.msg, CM_NODE_OP_TYPE, &made.op_type, spec->op_type);
    if (!origin)
        set_text(&made.msg, CM_NODE_DOMAIN, &made.domain, cm_domain_plain(spec->domain));
    set_names(&made.msg, CM_NODE_INPUT, &made.input, inputs, spec->n_inputs);
    set_names(&made.msg, CM_NODE_OUTPUT, &made.output, outputs, spec->n_outputs);
    if (count || (origin && origin->attribute.count))
        set_attributes(&made, attributes, count);
    *CM_PUSH(w->arena, &w->nodes) = made;
    return CM_OK;
}

static bool is_unchanged(const struct cm_version_form *form, const struct cm_node_spec *given,
                         const struct cm_graph *helpers)
{
    const struct cm_node_spec *spec = &form->spec;
    size_t n_inputs = given->n_inputs;

    while (n_inputs > spec->n_inputs && !given->inputs[n_inputs - 1])
        n_inputs--;
    if (!form->schema || helpers->first || spec->n_inputs != n_inputs ||
        spec->n_outputs != given->n_outputs || spec->n_attributes != given->n_attributes ||
        !cm_str_equal(spec->op_type, given->op_type))
        return false;
    for (size_t i = 0; i < spec->n_inputs; i++)
        if (spec->inputs[i] != given->inputs[i])
            return false;
    for (size_t i = 0; i < spec->n_attributes; i++)
        if (memcmp(&spec->attributes[i], &given->attributes[i], sizeof *spec->attributes) != 0)
            return false;
    return true;
}

static struct cm_node_spec copy_spec(struct cm_arena *arena, const struct cm_node_spec *from)
{
    struct cm_node_spec copy = *from;
    copy.attributes = CM_NEW_ARRAY(arena, struct cm_attribute_proto, from->n_attributes);
    if (from->n_attributes)
        memcpy(copy.attributes, from->attributes, from->n_attributes * sizeof *copy.attributes);
    return copy;
}

/* Results that helping nodes give take the names that the node's have; what has a name already is
 * copied at the end. */
static enum cm_status take_names(struct cm_node_writer *w, const cm_value *outputs,
                                 const cm_value *results, size_t count, struct cm_str op,
                                 bool *copied)
{
    for (size_t o = 0; o < count; o++) {
        copied[o] = false;
        if (!outputs[o] || results[o] == outputs[o])
            continue;
        if (!results[o])
            return cm_fail(w->err, CM_UNSUPPORTED, "output %zu has no counterpart", o);
        const struct cm_str name = name_result(w, outputs[o], op);
        const struct cm_value_def *def = cm_value_get(w->module, results[o]);
        copied[o] = find_name(w, results[o]) != NULL;
        if (!copied[o] && def->role == CM_ROLE_INITIALIZER)
            CM_TRY(add_constant(w, results[o], name));
        else if (!copied[o])
            set_name(w, results[o], name);
    }
    return CM_OK;
}

static enum cm_status write_copies(struct cm_node_writer *w, const cm_value *outputs,
                                   const cm_value *results, size_t count, const bool *copied)
{
    for (size_t o = 0; o < count; o++)
        if (copied[o])
            CM_TRY(add_copy(w, results[o], *find_name(w, outputs[o])));
    return CM_OK;
}

static enum cm_status write_as_version(struct cm_node_writer *w, struct cm_graph *graph,
                                       const struct cm_node_spec *given,
                                       const struct cm_schema *from, const cm_value *outputs,
                                       const struct cm_node_proto *origin, bool *same)
{
    struct cm_graph *helpers = cm_graph_new(w->module, graph, CM_STR_NONE);
    struct cm_builder builder = {.graph = helpers, .err = w->err};
    struct cm_node_spec spec = copy_spec(w->arena, given);
    struct cm_version_form form = {0};
    cm_value *results = CM_NEW_ARRAY(w->arena, cm_value, given->n_outputs);
    bool *copied = CM_NEW_ARRAY(w->arena, bool, given->n_outputs);
    const int64_t opset = cm_target_version(w->targets, given->domain);

    for (size_t o = 0; o < given->n_outputs; o++)
        results[o] = outputs[o];
    if (!opset)
        return cm_fail(w->err, CM_UNSUPPORTED, "operator %s of domain '%s' is not imported",
                       from->name, from->domain);
    CM_TRY(cm_convert_node(&builder, &spec, from, opset, results, &form));
    if (same && is_unchanged(&form, given, helpers)) {
        *same = true;
        return CM_OK;
    }
    CM_TRY(take_names(w, outputs, results, given->n_outputs, given->op_type, copied));
    struct cm_node *node = helpers->first;
    if (form.schema) {
        for (; node && form.after; node = node->next) {
            CM_TRY(write_built(w, node));
            if (node == form.after) {
                node = node->next;
                break;
            }
        }
        CM_TRY(write_form(w, &form, given, origin));
    }
    for (; node; node = node->next)
        CM_TRY(write_built(w, node));
    if (origin && !w->how.size)
        w->how = form.notes;
    return write_copies(w, outputs, results, given->n_outputs, copied);
}

/* ---- function bodies ---- */

static bool is_operator(const struct cm_node *node, void *arg)
{
    return node->schema && cm_str_is(node->op_type, arg) && !node->n_bodies;
}

static enum cm_status write_as_body(struct cm_node_writer *w, struct cm_graph *graph,
                                    const struct cm_node_spec *given, const struct cm_schema *from,
                                    const cm_value *outputs)
{
    struct cm_graph *body = cm_graph_new(w->module, graph, CM_STR_NONE);
    struct cm_builder builder = {.graph = body, .err = w->err};
    struct cm_node_spec spec = copy_spec(w->arena, given);
    const size_t n = given->n_outputs;
    cm_value *results = CM_NEW_ARRAY(w->arena, cm_value, n);
    bool *copied = CM_NEW_ARRAY(w->arena, bool, n);
    size_t kept = 0;

    CM_TRY(cm_upgrade_node(&builder, &spec, from, results));
    for (size_t o = 0; o < n; o++)
        if (results[o])
            results[kept++] = results[o];
    cm_graph_set_outputs(body, results, kept);
    struct cm_node *node = body->first;
    while (node) {
        struct cm_node *before = node->prev;
        if (!is_operator(node, (void *)(uintptr_t)from->name)) {
            node = node->next;
            continue;
        }
        CM_TRY(cm_graph_inline(node, w->err));
        node = before ? before->next : body->first;
        if (++kept > DEPTH_MAX + n)
            return cm_fail(w->err, CM_UNSUPPORTED, "function bodies nest too deep");
    }
    cm_graph_remove_dead(body);
    kept = 0;
    for (size_t o = 0; o < n; o++)
        results[o] = outputs[o] ? body->outputs[kept++].value : 0;
    CM_TRY(take_names(w, outputs, results, n, given->op_type, copied));
    for (node = body->first; node; node = node->next)
        CM_TRY(write_built(w, node));
    if (!w->how.size)
        w->how = CM_STR("written as its function body");
    return write_copies(w, outputs, results, n, copied);
}

static bool has_body(const struct cm_node_writer *w, const struct cm_node_spec *spec)
{
    const struct cm_registry *registry = cm_module_registry(w->module);
    const struct cm_op *op = cm_registry_op(registry, spec->domain, spec->op_type);
    return (op && op->body) || cm_registry_body(registry, spec->domain, spec->op_type);
}

/* Neither the version nor the body can be written: both reasons. */
static void combine(struct cm_error *err, const struct cm_error *first)
{
    const struct cm_error second = *err;
    *err = (struct cm_error){0};
    (void)!cm_fail(err, CM_UNSUPPORTED, "%s; its function body cannot be written: %s", first->text,
                   second.text);
}

static enum cm_status write_node(struct cm_node_writer *w, struct cm_graph *graph,
                                 const struct cm_node_spec *spec, const struct cm_schema *from,
                                 const cm_value *outputs, const struct cm_node_proto *origin,
                                 bool *same)
{
    const size_t nodes = w->nodes.count, initializers = w->initializers.count;

    if (!from)
        return cm_fail(w->err, CM_UNSUPPORTED, "calls a function");
    if (w->depth >= DEPTH_MAX)
        return cm_fail(w->err, CM_UNSUPPORTED, "older forms nest too deep");
    w->depth++;
    enum cm_status status = write_as_version(w, graph, spec, from, outputs, origin, same);
    if ((status == CM_UNSUPPORTED || status == CM_BAD_MODEL) && !spec->n_bodies &&
        has_body(w, spec)) {
        const struct cm_error first = *w->err;
        w->nodes.count = nodes;
        w->initializers.count = initializers;
        *w->err = (struct cm_error){0};
        if (write_as_body(w, graph, spec, from, outputs) == CM_OK)
            status = CM_OK;
        else
            combine(w->err, &first);
    }
    w->depth--;
    return status;
}

/* ---- nodes of the file ---- */

/* The attribute that a reference stands for in this call: its own, or the function's default. */
static const struct cm_attribute_proto *resolve(const struct cm_attribute_proto *attr,
                                                const struct cm_node *call)
{
    if (!attr->ref_attr_name.size || !call)
        return attr;
    for (size_t i = 0; i < call->n_attributes; i++)
        if (cm_str_equal(call->attributes[i].name, attr->ref_attr_name))
            return &call->attributes[i];
    const struct cm_function_proto *function = call->function;
    for (size_t i = 0; function && i < function->attribute_proto.count; i++)
        if (cm_str_equal(function->attribute_proto.items[i].name, attr->ref_attr_name))
            return &function->attribute_proto.items[i];
    return NULL;
}

static void read_attributes(struct cm_node_writer *w, const struct cm_node_proto *proto,
                            const struct cm_node *call, struct cm_node_spec *spec)
{
    const size_t count = proto->attribute.count;

    spec->attributes = CM_NEW_ARRAY(w->arena, struct cm_attribute_proto, count);
    spec->bodies = CM_NEW_ARRAY(w->arena, struct cm_body_ref, count);
    for (size_t i = 0; i < count; i++) {
        const struct cm_attribute_proto *given = &proto->attribute.items[i];
        const struct cm_attribute_proto *attr = resolve(given, call);
        if (!attr)
            continue;
        if (attr->g) {
            spec->bodies[spec->n_bodies++] =
                (struct cm_body_ref){.attribute = given->name, .proto = attr->g};
            continue;
        }
        spec->attributes[spec->n_attributes] = *attr;
        spec->attributes[spec->n_attributes++].name = given->name;
    }
}

enum cm_status cm_write_converted(struct cm_node_writer *w, const struct cm_node_proto *proto,
                                  const struct cm_schema *from, const struct cm_node_record *record,
                                  bool *same)
{
    bool *wanted = CM_NEW_ARRAY(w->arena, bool, proto->output.count);
    struct cm_node_spec spec = {.domain = proto->domain,
                                .op_type = proto->op_type,
                                .name = proto->name,
                                .inputs = record->inputs,
                                .n_inputs = proto->input.count,
                                .n_outputs = proto->output.count,
                                .wanted = wanted};

    *same = false;
    w->names = (struct cm_map){0};
    w->constants.count = 0;
    w->how = CM_STR_NONE;
    w->depth = w->in_bodies = 0;
    w->base = proto->output.count ? proto->output.items[0] : proto->name;
    read_attributes(w, proto, record->call, &spec);
    for (size_t i = 0; i < proto->input.count; i++)
        if (record->inputs[i])
            set_name(w, record->inputs[i], proto->input.items[i]);
    for (size_t o = 0; o < proto->output.count; o++) {
        wanted[o] = proto->output.items[o].size != 0;
        if (record->outputs[o] && wanted[o])
            set_name(w, record->outputs[o], proto->output.items[o]);
    }
    return write_node(w, record->graph, &spec, from, record->outputs, proto, same);
}
