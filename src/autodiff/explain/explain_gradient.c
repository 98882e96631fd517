/* How one operator is differentiated, as a section of docs/gradients.md. */
// SPDX-License-Identifier: Apache-2.0
#include "autodiff/explain/explain_gradient.h"

#include "autodiff/explain/gradient_notes.h"
#include "autodiff/explain/operator_gradient.h"
#include "graph/op.h"
#include "graph/registry.h"
#include "schema/schema.h"

#include <stdarg.h>

/* A graph of more nodes than this is not shown. */
enum { SHOWN_NODES = 60 };

struct section {
    const char *domain, *name; /* as asked for */
    int64_t opset;
    cm_import_fn *import;
    cm_text_write_fn *write;
    void *to;
    struct cm_arena *arena;
    const struct cm_schema *schema, *asked; /* the newest version, and that of the opset */
    struct cm_str entry;
    enum cm_status status;
    struct cm_error *err;
};

/* Remembers the first failure. */
CM_PRINTF(2, 3) static void say(struct section *s, const char *format, ...)
{
    char text[2048];
    va_list args;

    va_start(args, format);
    const int size = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (s->status == CM_OK)
        s->status = s->write(s->to, text,
                             (size_t)size < sizeof text ? (size_t)size : sizeof text - 1, s->err);
}

/* ---- which operator ---- */

static const char *domain_name(const struct cm_schema *schema)
{
    return *schema->domain ? schema->domain : "ai.onnx";
}

/* Without a domain: ai.onnx before the others, in the order of the table. "domain.Name" works too.
 */
static const struct cm_schema *find_newest(const char *domain, const char *name)
{
    const char *dot = strrchr(name, '.');

    if (!domain && dot)
        return cm_schema_newest((struct cm_str){name, (size_t)(dot - name)}, cm_str(dot + 1));
    if (domain)
        return cm_schema_newest(cm_str(domain), cm_str(name));
    for (size_t i = 0; i < cm_schema_count(); i++)
        if (strcmp(cm_schema_at(i)->name, name) == 0)
            return cm_schema_at(i);
    return NULL;
}

static enum cm_status find_operator(struct section *s)
{
    s->schema = find_newest(s->domain, s->name);
    if (!s->schema) {
        const struct cm_schema *near = cm_schema_suggest(cm_str(s->domain), cm_str(s->name));
        const struct cm_str known =
            near ? cm_arena_printf(s->arena, "; did you mean '%s' of domain '%s'?", near->name,
                                   domain_name(near))
                 : CM_STR("");
        return cm_fail(s->err, CM_NOT_FOUND, "there is no operator '%s'%s%s%s%s", s->name,
                       s->domain ? " in domain '" : "", s->domain ? s->domain : "",
                       s->domain ? "'" : "", cm_str_text(known));
    }
    const int64_t newest = cm_schema_newest_opset(cm_str(s->schema->domain));
    if (s->opset > newest)
        return cm_fail(s->err, CM_NOT_FOUND,
                       "opset %lld of domain '%s' is not known; the newest known is %lld",
                       (long long)s->opset, domain_name(s->schema), (long long)newest);
    s->asked = s->opset
                   ? cm_schema_find(cm_str(s->schema->domain), cm_str(s->schema->name), s->opset)
                   : s->schema;
    if (s->opset < 0 || !s->asked)
        return cm_fail(s->err, CM_NOT_FOUND, "opset %lld of domain '%s' has no operator '%s'",
                       (long long)s->opset, domain_name(s->schema), s->schema->name);
    s->entry = cm_gradient_entry(s->arena, cm_str(domain_name(s->schema)), cm_str(s->schema->name));
    return CM_OK;
}

/* ---- what there is to say ---- */

enum way { WAY_RULE, WAY_BODY, WAY_NONE, WAY_REPLACED };

static bool allows_float(const struct cm_schema *schema, const struct cm_schema_param *param)
{
    const struct cm_type_set *set = cm_schema_types_of(schema, param);

    for (size_t r = 0; r < set->row_count; r++)
        for (int type = 1; type < CM_DTYPE_COUNT; type++)
            if ((set->rows[r].elements & CM_TYPE_BIT(type)) &&
                cm_dtype_info((enum cm_dtype)type)->kind == CM_CLASS_FLOAT)
                return true;
    return false;
}

static bool gives_floats(const struct cm_schema *schema)
{
    for (size_t o = 0; o < schema->output_count; o++)
        if (allows_float(schema, &schema->outputs[o]))
            return true;
    return false;
}

static bool takes_floats(const struct cm_schema *schema)
{
    for (size_t i = 0; i < schema->input_count; i++)
        if (allows_float(schema, &schema->inputs[i]))
            return true;
    return false;
}

static enum way find_way(const struct cm_schema *schema)
{
    const struct cm_op *op =
        cm_registry_op(cm_registry_builtin(), cm_str(schema->domain), cm_str(schema->name));

    if (op && op->effects & CM_REPLACED)
        return WAY_REPLACED;
    if (op && op->grad)
        return op->grad == cm_grad_none ? WAY_NONE : WAY_RULE;
    return gives_floats(schema) && schema->input_count && !(op && op->effects & CM_REGION)
               ? WAY_BODY
               : WAY_NONE;
}

static void say_lines(struct section *s, const char *keyword, const char *format)
{
    struct cm_str lines = s->entry, line;

    while (cm_gradient_line(&lines, keyword, &line))
        say(s, format, (int)line.size, line.data);
}

static bool has_line(const struct section *s, const char *keyword)
{
    struct cm_str lines = s->entry, line;

    return cm_gradient_line(&lines, keyword, &line);
}

static void say_version(struct section *s, enum way way)
{
    static const char *const ways[] = {
        [WAY_RULE] = "a gradient rule of its own",
        [WAY_BODY] = "differentiated through its function body",
        [WAY_NONE] = "no gradient, on purpose",
        [WAY_REPLACED] = "replaced before anything runs",
    };

    say(s, "## %s%s%s\n\n", *s->schema->domain ? s->schema->domain : "",
        *s->schema->domain ? "." : "", s->schema->name);
    say(s, "Version %d: %s.\n", s->schema->since_version, ways[way]);
    if (s->opset && s->asked != s->schema)
        say(s,
            "Opset %lld has version %d, which is upgraded to version %d when a model is loaded.\n",
            (long long)s->opset, s->asked->since_version, s->schema->since_version);
    say(s, "\n");
}

static void say_names(struct section *s, const char *head, const struct cm_operand_names *names,
                      const char *more)
{
    if (!names->count && !*more)
        return;
    say(s, "- %s: ", head);
    for (size_t i = 0; i < names->count; i++)
        say(s, "%s`%.*s`", i ? ", " : "", CM_STR_FMT(names->items[i]));
    say(s, "%s%s.\n", names->count && *more ? ", " : "", more);
}

static bool lists(const struct cm_operand_names *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (cm_str_is(list->items[i], name))
            return true;
    return false;
}

/* Operands that are no floats, be it in every use or in the example. */
static void find_whole(struct section *s, const struct cm_operand_names *in_example,
                       struct cm_operand_names *out)
{
    for (size_t i = 0; i < s->schema->input_count; i++) {
        const struct cm_schema_param *param = &s->schema->inputs[i];
        if (!allows_float(s->schema, param) || lists(in_example, param->name))
            *CM_PUSH(s->arena, out) = cm_str(param->name);
    }
}

static void say_none(struct section *s)
{
    if (has_line(s, "none"))
        say_lines(s, "none", "%.*s.\n");
    else if (!gives_floats(s->schema))
        say(s, "Its results are integers, booleans or strings, which have no derivative.\n");
    else if (!takes_floats(s->schema))
        say(s, "It reads no floating-point operand, so there is nothing to differentiate by.\n");
}

static struct cm_str example_of(const struct section *s)
{
    struct cm_str lines = s->entry, example = CM_STR_NONE;

    cm_gradient_line(&lines, "case", &example);
    return example;
}

static enum cm_status say_graph(struct section *s, const struct cm_graph_proto *graph, size_t nodes)
{
    if (nodes > SHOWN_NODES) {
        say(s, "\nFor one use of it that is a graph of %zu nodes, too long to show here.\n", nodes);
        return s->status;
    }
    say(s, "\n```\n");
    CM_TRY(s->status);
    CM_TRY(cm_syntax_print_graph(graph, &(struct cm_syntax_options){0}, s->write, s->to, s->err));
    say(s, "```\n");
    return s->status;
}

static enum cm_status say_gradient(struct section *s)
{
    struct cm_operator_gradient gradient;
    struct cm_operand_names whole = {0};

    CM_TRY(cm_operator_gradient(s->arena, s->schema, example_of(s), s->import, &gradient, s->err));
    say_lines(s, "is", "    %.*s\n");
    if (has_line(s, "is"))
        say(s, "\n");
    find_whole(s, &gradient.whole, &whole);
    if (has_line(s, "smooth"))
        say(s, "- Smooth wherever it is defined.\n");
    say_lines(s, "at", has_line(s, "smooth") ? "- At %.*s.\n" : "- Not smooth: at %.*s.\n");
    say_lines(s, "note", "- %.*s.\n");
    say_names(s, "No gradient, being integers, booleans or strings", &whole, "");
    say_names(s, "No gradient", &gradient.without, "");
    say_names(s, "Kept from the forward pass", &gradient.kept,
              gradient.keeps_more        ? "values inside it"
              : gradient.kept.count == 0 ? "nothing"
                                         : "");
    return say_graph(s, &gradient.graph, gradient.nodes);
}

/* Of operators of our own: what the others' gradients mean when they use one. */
static enum cm_status say_definition(struct section *s)
{
    struct cm_graph_proto graph = {0};
    size_t nodes;

    CM_TRY(cm_operator_definition(s->arena, s->schema, example_of(s), s->import, &graph, &nodes,
                                  s->err));
    if (!nodes)
        return s->status;
    say(s, "Defined by standard operators:\n");
    return say_graph(s, &graph, nodes);
}

enum cm_status cm_explain_gradient(const char *domain, const char *name, int64_t opset,
                                   cm_import_fn *import, struct cm_arena *scratch,
                                   cm_text_write_fn *write, void *to, struct cm_error *err)
{
    struct section section = {.domain = domain,
                              .name = name,
                              .opset = opset,
                              .import = import,
                              .arena = scratch,
                              .write = write,
                              .to = to,
                              .err = err};
    struct section *s = &section;

    CM_TRY(find_operator(s));
    const enum way way = find_way(s->schema);
    say_version(s, way);
    if (way == WAY_NONE || way == WAY_REPLACED)
        say_none(s);
    if (strcmp(s->schema->domain, "ai.cameo") == 0 && !has_line(s, "none"))
        return say_definition(s);
    return way == WAY_RULE || way == WAY_BODY ? say_gradient(s) : s->status;
}
