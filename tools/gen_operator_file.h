/* Reads the files of operator facts (data/) into memory, strictly: whatever the grammar does not
 * allow ends the program with file and line. Inline, so that a generator is one file to compile. */
// SPDX-License-Identifier: Apache-2.0
#ifndef CM_TOOLS_GEN_OPERATOR_FILE_H
#define CM_TOOLS_GEN_OPERATOR_FILE_H

#include "gen_reader.h"

#include <limits.h>
#include <stdint.h>

enum { MAX_TYPES = 32, MAX_ROWS = 16, MAX_GROUPS = 64, MAX_DOMAINS = 32, MAX_COUNT = 63 };
enum { UNBOUNDED = INT_MAX };

struct type_row {
    int form; /* enum form */
    int key;
    uint64_t elements;
};

struct type {
    char *name;
    struct type_row rows[MAX_ROWS];
    size_t row_count;
    bool fixed;
};

struct group {
    char *name;
    uint64_t elements;
};

struct domain {
    char *name; /* as in the file */
    int first, last;
};

struct param {
    char *name, *type;
    const char *kind, *diff; /* constants of the library's enumerations */
    int min_arity;
    bool mixed;
    size_t line;
};

/* Types are resolved when the block is complete: the constraints come last. */
struct params {
    struct param *items;
    size_t count;
    int least, most;
    uint64_t legal;
};

struct attr {
    char *name;
    int kind;
    bool required;
    char *preset; /* C initializer of a struct cm_schema_default, or NULL */
};

struct versions {
    struct text list; /* "9, 13" */
    size_t count;
    int last;
};

struct op {
    const struct domain *domain;
    char *name;
    int version;
    bool deprecated, experimental, infers_shape, propagates_values;
    const char *determinism;
    struct params in, out;
    struct attr *attrs;
    size_t attr_count;
    struct type types[MAX_TYPES];
    size_t type_count;
    struct versions bodies, context_bodies;
    int stage; /* of the last line read */
    size_t line;
    const char *path;
};

static struct domain domains[MAX_DOMAINS];
static size_t domain_count;
static struct op *ops;
static size_t op_count, op_room;

// clang-format off
/* Numbered as TensorProto.DataType. */
static const char *const elements[] = {
    "", "float", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool",
    "float16", "double", "uint32", "uint64", "complex64", "complex128", "bfloat16",
    "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4", "int4",
    "float4e2m1", "float8e8m0", "uint2", "int2", "float6e2m3", "float6e3m2",
};

/* Numbered as AttributeProto.AttributeType. */
enum attr_kind { FLOAT = 1, INT = 2, STRING = 3, FLOATS = 6, INTS = 7, STRINGS = 8 };
static const char *const attr_kinds[] = {
    "", "float", "int", "string", "tensor", "graph", "floats", "ints", "strings", "tensors",
    "graphs", "sparse_tensor", "sparse_tensors", "type_proto", "type_protos",
};
// clang-format on

/* In the order of the library's enum cm_type_form. */
enum form { TENSOR, SPARSE_TENSOR, SEQ, OPTIONAL, OPTIONAL_SEQ, MAP, SEQ_MAP };

/* The lines of a block, in the order they must come in. */
enum stage { IN, OUT, COUNTS, ATTR, TYPE, BODY, CONTEXT_BODY, RULES };
static const char *const stages[] = {
    "in", "out", "counts", "attr", "type", "body", "context_body", "rules",
};

static inline size_t find_name(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (names[i][0] && !strcmp(names[i], name))
            return i;
    }
    return count;
}

/* The default domain's name is empty in every lookup. */
static inline const char *domain_key(const struct domain *domain)
{
    return strcmp(domain->name, "ai.onnx") ? domain->name : "";
}

static inline uint64_t element_set(struct reader *r, const char *name, const struct group *groups)
{
    const size_t count = sizeof(elements) / sizeof(elements[0]);
    const size_t index = find_name(elements, count, name);

    if (index < count)
        return UINT64_C(1) << index;
    for (size_t i = 0; groups && groups[i].name; i++) {
        if (!strcmp(groups[i].name, name))
            return groups[i].elements;
    }
    die(r, "'%s' is neither an element type nor a group", name);
    return 0;
}

static inline int wrapped(struct reader *r, const char *wrapper, int inner)
{
    if (!strcmp(wrapper, "seq") && inner == TENSOR)
        return SEQ;
    if (!strcmp(wrapper, "seq") && inner == MAP)
        return SEQ_MAP;
    if (!strcmp(wrapper, "optional") && inner == TENSOR)
        return OPTIONAL;
    if (!strcmp(wrapper, "optional") && inner == SEQ)
        return OPTIONAL_SEQ;
    die(r, "'%s' cannot wrap what is in it", wrapper);
    return TENSOR;
}

static inline struct type_row map_row(struct reader *r)
{
    const size_t count = sizeof(elements) / sizeof(elements[0]);
    char *const key = word(r);
    const size_t index = find_name(elements, count, key);

    if (index == count)
        die(r, "'%s' is no element type", key);
    expect(r, ',');
    char *const value = word(r);
    const struct type_row row = {MAP, (int)index, element_set(r, value, NULL)};
    free(key);
    free(value);
    return row;
}

/* float, seq(float), optional(seq(all4)), map(int64, float), tensor(int64).. */
static inline struct type_row parse_type(struct reader *r, const struct group *groups, int depth)
{
    struct type_row row = {TENSOR, 0, 0};
    char *const name = word(r);

    if (!accept(r, '(')) {
        row.elements = element_set(r, name, groups);
        free(name);
        return row;
    }
    if (depth == 0)
        die(r, "type is nested too deeply");
    if (!strcmp(name, "map")) {
        row = map_row(r);
    } else if (!strcmp(name, "tensor") || !strcmp(name, "sparse_tensor")) {
        char *const inner = word(r);
        row.form = name[0] == 't' ? TENSOR : SPARSE_TENSOR;
        row.elements = element_set(r, inner, groups);
        free(inner);
    } else {
        row = parse_type(r, groups, depth - 1);
        row.form = wrapped(r, name, row.form);
    }
    expect(r, ')');
    free(name);
    return row;
}

static inline void add_row(struct reader *r, struct type *type, struct type_row row)
{
    size_t i = 0;

    while (i < type->row_count && (type->rows[i].form != row.form || type->rows[i].key != row.key))
        i++;
    if (i == MAX_ROWS)
        die(r, "too many kinds of types");
    if (i == type->row_count)
        type->rows[type->row_count++] = (struct type_row){row.form, row.key, 0};
    if (type->rows[i].elements & row.elements)
        die(r, "a type of '%s' is listed twice", type->name);
    type->rows[i].elements |= row.elements;
}

static inline struct type *add_type(struct reader *r, struct op *op, char *name)
{
    for (size_t i = 0; i < op->type_count; i++) {
        if (!strcmp(op->types[i].name, name))
            die(r, "type '%s' is declared twice", name);
    }
    if (op->type_count == MAX_TYPES)
        die(r, "too many types");
    struct type *const type = &op->types[op->type_count++];
    type->name = name;
    return type;
}

static inline void parse_constraint(struct reader *r, struct op *op, const struct group *groups)
{
    struct type *const type = add_type(r, op, word(r));

    expect(r, ':');
    do
        add_row(r, type, parse_type(r, groups, 3));
    while (!at_end(r));
}

static inline void parse_group(struct reader *r, struct group *groups)
{
    size_t i = 0;

    while (groups[i].name)
        i++;
    if (i + 1 == MAX_GROUPS)
        die(r, "too many groups");
    char *const name = word(r);
    uint64_t set = 0;
    expect(r, ':');
    do {
        char *const member = word(r);
        set |= element_set(r, member, groups);
        free(member);
    } while (!at_end(r));
    groups[i] = (struct group){name, set};
}

/* The index of the type a parameter names, which is added if it is spelled out. */
static inline size_t resolve_type(struct op *op, const struct param *param)
{
    struct reader r = {op->path, param->line, param->type};

    for (size_t i = 0; i < op->type_count; i++) {
        if (!strcmp(op->types[i].name, param->type))
            return i;
    }
    if (!strchr(param->type, '('))
        die(&r, "no type '%s' is declared below", param->type);
    const struct type_row row = parse_type(&r, NULL, 3);
    struct type *const type = add_type(&r, op, param->type);
    add_row(&r, type, row);
    type->fixed = true;
    return op->type_count - 1;
}

static inline void parse_param(struct reader *r, struct params *params)
{
    if (params->most == UNBOUNDED)
        die(r, "nothing can follow a variadic parameter");
    params->items = grow(params->items, (params->count + 1) * sizeof(params->items[0]));
    struct param *const param = &params->items[params->count++];
    *param = (struct param){.name = word(r), .line = r->line, .kind = "CM_PARAM_SINGLE"};
    expect(r, ':');
    skip_spaces(r);
    const char *const start = r->at;
    r->at += strcspn(start, " ");
    param->type = copy(start, (size_t)(r->at - start));

    if (accept_word(r, "D"))
        param->diff = "CM_DIFF_YES";
    else if (accept_word(r, "N"))
        param->diff = "CM_DIFF_NO";
    else if (accept_word(r, "U"))
        param->diff = "CM_DIFF_UNKNOWN";
    else
        die(r, "expected D, N or U before '%.40s'", r->at);
    if (accept_word(r, "variadic")) {
        param->kind = "CM_PARAM_VARIADIC";
        param->min_arity = (int)integer(r, 0, MAX_COUNT);
        param->mixed = accept_word(r, "mixed");
        params->least = (int)params->count - 1 + param->min_arity;
        params->most = UNBOUNDED;
    } else if (accept_word(r, "optional")) {
        param->kind = "CM_PARAM_OPTIONAL";
        params->most++;
    } else {
        params->least = ++params->most;
    }
}

static inline void parse_counts(struct reader *r, struct op *op)
{
    struct params *const params = accept_word(r, "in") ? &op->in : &op->out;

    if (params == &op->out && !accept_word(r, "out"))
        die(r, "expected 'in' or 'out' before '%.40s'", r->at);
    if (params->legal)
        die(r, "counts are given twice");
    const int most = params->most < MAX_COUNT ? params->most : MAX_COUNT;
    do
        params->legal |= UINT64_C(1) << integer(r, params->least, most);
    while (!at_end(r));
}

/* A string in our quotes, which become C's: the escapes are \" \\ and \xNN. */
static inline void parse_string(struct reader *r, struct text *out)
{
    expect(r, '"');
    text_add(out, "\"", 1);
    while (*r->at != '"') {
        const char *const c = r->at;
        if (*c == '\0')
            die(r, "string does not end");
        if (*c == '\\' && c[1] == 'x' && isxdigit((unsigned char)c[2]) &&
            isxdigit((unsigned char)c[3]) && (c[2] != '0' || c[3] != '0')) {
            /* Closed and reopened, or C would take following digits into the escape. */
            text_print(out, "%.4s\"\"", c);
            r->at += 4;
        } else if (*c == '\\' && (c[1] == '"' || c[1] == '\\')) {
            text_add(out, c, 2);
            r->at += 2;
        } else if (*c == '\\') {
            die(r, "unknown escape '%.4s'", c);
        } else {
            text_add(out, c, 1);
            r->at++;
        }
    }
    r->at++;
    text_add(out, "\"", 1);
}

static inline void parse_float(struct reader *r, struct text *out)
{
    char *end;

    skip_spaces(r);
    const float value = strtof(r->at, &end);
    if (end == r->at || value != value || value - value != 0.0f)
        die(r, "expected a finite number before '%.40s'", r->at);
    r->at = end;
    /* Hexadecimal, so that no compiler rounds it again. */
    text_print(out, "%af", (double)value);
}

static inline void parse_scalar(struct reader *r, int kind, struct text *out)
{
    if (kind == FLOAT || kind == FLOATS)
        parse_float(r, out);
    else if (kind == INT || kind == INTS)
        text_print(out, "INT64_C(%lld)", integer(r, -LLONG_MAX, LLONG_MAX));
    else
        parse_string(r, out);
}

static inline char *parse_preset(struct reader *r, int kind)
{
    static const char *const list_types[] = {"float", "int64_t", "char *const"};
    struct text out = {0};

    if (kind == FLOAT || kind == INT || kind == STRING) {
        text_print(&out, kind == FLOAT ? ".f = " : kind == INT ? ".i = " : ".s = ");
        parse_scalar(r, kind, &out);
    } else if (kind == FLOATS || kind == INTS || kind == STRINGS) {
        struct text items = {0};
        size_t count = 0;

        expect(r, '[');
        while (!accept(r, ']')) {
            if (count++ > 0) {
                expect(r, ',');
                text_print(&items, ", ");
            }
            parse_scalar(r, kind, &items);
        }
        if (count > 0)
            text_print(&out, ".%s = (const %s[]){%s}, ", attr_kinds[kind],
                       list_types[kind - FLOATS], items.data);
        text_print(&out, ".count = %zu", count);
        free(items.data);
    } else {
        die(r, "a %s cannot have a default", attr_kinds[kind]);
    }
    return out.data;
}

static inline void parse_attr(struct reader *r, struct op *op)
{
    const size_t count = sizeof(attr_kinds) / sizeof(attr_kinds[0]);
    struct attr attr = {.name = word(r)};

    expect(r, ':');
    char *const kind = word(r);
    attr.kind = (int)find_name(attr_kinds, count, kind);
    if ((size_t)attr.kind == count)
        die(r, "'%s' is no kind of attribute", kind);
    free(kind);
    if (op->attr_count > 0 && strcmp(op->attrs[op->attr_count - 1].name, attr.name) >= 0)
        die(r, "attribute '%s' must come before '%s'", attr.name,
            op->attrs[op->attr_count - 1].name);
    if (accept(r, '='))
        attr.preset = parse_preset(r, attr.kind);
    else
        attr.required = accept_word(r, "required");
    op->attrs = grow(op->attrs, (op->attr_count + 1) * sizeof(op->attrs[0]));
    op->attrs[op->attr_count++] = attr;
}

static inline void parse_versions(struct reader *r, struct versions *versions)
{
    if (versions->count)
        die(r, "versions are given twice");
    do {
        versions->last = (int)integer(r, versions->last + 1, INT_MAX);
        text_print(&versions->list, "%s%d", versions->count++ ? ", " : "", versions->last);
    } while (!at_end(r));
}

static inline void parse_rules(struct reader *r, struct op *op)
{
    op->infers_shape = accept_word(r, "shape");
    op->propagates_values = accept_word(r, "value");
    if (!op->infers_shape && !op->propagates_values)
        die(r, "expected 'shape' or 'value' before '%.40s'", r->at);
}

static inline void parse_member(struct reader *r, struct op *op, const struct group *groups)
{
    const size_t count = sizeof(stages) / sizeof(stages[0]);
    char *const name = word(r);
    const size_t stage = find_name(stages, count, name);

    if (stage == count)
        die(r, "'%s' is no part of an operator", name);
    if ((int)stage < op->stage)
        die(r, "'%s' must come before '%s'", name, stages[op->stage]);
    free(name);
    op->stage = (int)stage;
    switch ((enum stage)stage) {
    case IN:
        parse_param(r, &op->in);
        break;
    case OUT:
        parse_param(r, &op->out);
        break;
    case COUNTS:
        parse_counts(r, op);
        break;
    case ATTR:
        parse_attr(r, op);
        break;
    case TYPE:
        parse_constraint(r, op, groups);
        break;
    case BODY:
        parse_versions(r, &op->bodies);
        break;
    case CONTEXT_BODY:
        parse_versions(r, &op->context_bodies);
        break;
    case RULES:
        parse_rules(r, op);
        break;
    }
    expect_end(r);
}

static inline struct op *parse_head(struct reader *r, const struct domain *domain)
{
    if (op_count == op_room) {
        op_room = op_room ? op_room * 2 : 1024;
        ops = grow(ops, op_room * sizeof(ops[0]));
    }
    struct op *const op = &ops[op_count++];
    *op = (struct op){.domain = domain, .name = word(r), .line = r->line, .path = r->path};
    op->version = (int)integer(r, domain->first, domain->last);
    op->deprecated = accept_word(r, "deprecated");
    op->experimental = accept_word(r, "experimental");
    op->determinism = accept_word(r, "random")         ? "CM_RANDOM_OUTPUT"
                      : accept_word(r, "maybe_random") ? "CM_RANDOM_UNDECIDED"
                                                       : NULL;
    expect_end(r);
    return op;
}

static inline const struct domain *parse_domain(struct reader *r)
{
    if (domain_count == MAX_DOMAINS)
        die(r, "too many domains");
    struct domain *const domain = &domains[domain_count];
    domain->name = word(r);
    for (size_t i = 0; i < domain_count; i++) {
        if (!strcmp(domains[i].name, domain->name))
            die(r, "domain '%s' was given before", domain->name);
    }
    domain->first = (int)integer(r, 1, INT_MAX - 1);
    domain->last = (int)integer(r, domain->first, INT_MAX - 1);
    expect_end(r);
    domain_count++;
    return domain;
}

static inline void parse_file(const char *path, char *data)
{
    struct group groups[MAX_GROUPS] = {0};
    struct reader r = {path, 0, data};
    const struct domain *domain = NULL;
    struct op *op = NULL;

    for (char *line = data; line;) {
        char *const end = strchr(line, '\n');
        if (end)
            *end = '\0';
        const bool indented = *line == ' ';
        r.at = line;
        r.line++;
        line = end ? end + 1 : NULL;
        if (strpbrk(r.at, "\t\r"))
            die(&r, "tab or carriage return");
        if (*r.at == '#')
            continue;
        if (at_end(&r)) {
            op = NULL;
        } else if (indented) {
            if (!op)
                die(&r, "indented line outside an operator");
            parse_member(&r, op, groups);
        } else if (op) {
            die(&r, "expected an empty line between operators");
        } else if (!domain) {
            if (!accept_word(&r, "domain"))
                die(&r, "the first line must name the domain");
            domain = parse_domain(&r);
        } else if (accept_word(&r, "group")) {
            parse_group(&r, groups);
        } else {
            op = parse_head(&r, domain);
        }
    }
    for (size_t i = 0; groups[i].name; i++)
        free(groups[i].name);
    if (!domain)
        die(&r, "names no domain");
}

#endif
