/* Turns the operator facts of data/ into one C file of tables: gen_schema OUT.c IN.txt... */
// SPDX-License-Identifier: Apache-2.0
#include "gen_operator_file.h"

enum { INTERN_ROOM = 16384 };

struct slot {
    size_t first, count; /* rows of one operator */
};

/* Arrays are emitted once for each distinct content, under the name found here. */
struct interned {
    const char *element_type;
    char *content, *name;
};

static struct interned interned[INTERN_ROOM]; /* open addressing */
static size_t interned_count;
static struct text arrays;

/* By enum form. */
static const char *const forms[] = {
    "CM_FORM_TENSOR",       "CM_FORM_SPARSE_TENSOR", "CM_FORM_SEQ",     "CM_FORM_OPTIONAL",
    "CM_FORM_OPTIONAL_SEQ", "CM_FORM_MAP",           "CM_FORM_SEQ_MAP",
};

/* Order of the rows: domain (the default one first), name, newest version first. */
static int compare_keys(const struct op *a, const struct op *b)
{
    const int by_domain = strcmp(domain_key(a->domain), domain_key(b->domain));

    return by_domain ? by_domain : strcmp(a->name, b->name);
}

static int compare_ops(const void *left, const void *right)
{
    const struct op *const a = left, *const b = right;
    const int by_key = compare_keys(a, b);

    return by_key ? by_key : (a->version < b->version) - (a->version > b->version);
}

static uint32_t fnv1a(uint32_t hash, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT32_C(16777619);
    return hash;
}

/* The hash of an operator's key, as schema.c computes it. */
static uint32_t hash_op(const struct op *op)
{
    const char *const domain = domain_key(op->domain);
    uint32_t hash = fnv1a(UINT32_C(2166136261), domain, strlen(domain));

    hash = fnv1a(hash, "", 1);
    return fnv1a(hash, op->name, strlen(op->name));
}

/* The name of a constant array with this content; NULL for an empty one. */
static const char *intern(const char *element_type, const struct text *content)
{
    char name[32];
    size_t at;

    if (content->size == 0)
        return NULL;
    at = fnv1a(UINT32_C(2166136261), content->data, content->size) % INTERN_ROOM;
    while (interned[at].content) {
        if (!strcmp(interned[at].content, content->data) &&
            !strcmp(interned[at].element_type, element_type))
            return interned[at].name;
        at = (at + 1) % INTERN_ROOM;
    }
    if (++interned_count == INTERN_ROOM / 2)
        die(NULL, "too many distinct lists");
    const int size = snprintf(name, sizeof(name), "list_%zu", interned_count);
    interned[at] = (struct interned){element_type, copy(content->data, content->size),
                                     copy(name, (size_t)size)};
    text_print(&arrays, "static const %s %s[] = {%s};\n", element_type, name, content->data);
    return interned[at].name;
}

static const char *params_array(struct op *op, const struct params *params)
{
    struct text list = {0};

    for (size_t i = 0; i < params->count; i++) {
        const struct param *const p = &params->items[i];
        text_print(&list, "{\"%s\", %zu, %s, %s, %d, %s}, ", p->name, resolve_type(op, p), p->kind,
                   p->diff, p->min_arity, p->mixed ? "true" : "false");
    }
    const char *const name = intern("struct cm_schema_param", &list);
    free(list.data);
    return name;
}

static const char *types_array(const struct op *op)
{
    struct text list = {0};

    for (size_t i = 0; i < op->type_count; i++) {
        const struct type *const type = &op->types[i];
        struct text rows = {0};
        for (size_t k = 0; k < type->row_count; k++)
            text_print(&rows, "{%s, (enum cm_dtype)%d, UINT64_C(0x%llx)}, ",
                       forms[type->rows[k].form], type->rows[k].key,
                       (unsigned long long)type->rows[k].elements);
        text_print(&list, "{\"%s\", {%s, %zu}, %s}, ", type->name,
                   intern("struct cm_type_row", &rows), type->row_count,
                   type->fixed ? "true" : "false");
        free(rows.data);
    }
    const char *const name = intern("struct cm_schema_type", &list);
    free(list.data);
    return name;
}

static const char *attrs_array(const struct op *op)
{
    struct text list = {0};

    for (size_t i = 0; i < op->attr_count; i++) {
        const struct attr *const attr = &op->attrs[i];
        struct text preset = {0};
        if (attr->preset)
            text_print(&preset, "{%s}", attr->preset);
        const char *const array = intern("struct cm_schema_default", &preset);
        text_print(&list, "{\"%s\", (enum cm_schema_attr_kind)%d, %s, %s}, ", attr->name,
                   attr->kind, attr->required ? "true" : "false", array ? array : "NULL");
        free(preset.data);
    }
    const char *const name = intern("struct cm_schema_attr", &list);
    free(list.data);
    return name;
}

static void write_list(struct text *out, const char *member, const char *count_member,
                       const char *array, size_t count)
{
    if (count > 0)
        text_print(out, "     .%s = %s, .%s = %zu,\n", member, array, count_member, count);
}

static void write_row(struct text *out, struct op *op)
{
    /* The parameters first: they complete the list of types. */
    const char *const in = params_array(op, &op->in);
    const char *const outputs = params_array(op, &op->out);

    text_print(out, "    {.domain = \"%s\", .name = \"%s\", .since_version = %d,\n",
               domain_key(op->domain), op->name, op->version);
    if (op->deprecated)
        text_print(out, "     .deprecated = true,\n");
    if (op->experimental)
        text_print(out, "     .experimental = true,\n");
    if (op->determinism)
        text_print(out, "     .determinism = %s,\n", op->determinism);
    write_list(out, "inputs", "input_count", in, op->in.count);
    write_list(out, "outputs", "output_count", outputs, op->out.count);
    text_print(out,
               "     .min_inputs = %d, .max_inputs = %d, .min_outputs = %d, .max_outputs = %d,\n",
               op->in.least, op->in.most, op->out.least, op->out.most);
    if (op->in.legal | op->out.legal)
        text_print(out, "     .legal_inputs = UINT64_C(%llu), .legal_outputs = UINT64_C(%llu),\n",
                   (unsigned long long)op->in.legal, (unsigned long long)op->out.legal);
    write_list(out, "attrs", "attr_count", attrs_array(op), op->attr_count);
    write_list(out, "types", "type_count", types_array(op), op->type_count);
    write_list(out, "bodies", "body_count", intern("int", &op->bodies.list), op->bodies.count);
    write_list(out, "context_bodies", "context_body_count", intern("int", &op->context_bodies.list),
               op->context_bodies.count);
    text_print(out, "     .infers_shape = %d, .propagates_values = %d},\n", op->infers_shape,
               op->propagates_values);
}

/* Fills slots; returns the furthest any operator lies from its place. */
static size_t fill_slots(struct slot *slots, size_t room)
{
    size_t furthest = 0;

    for (size_t i = 0; i < op_count;) {
        size_t end = i + 1, at = hash_op(&ops[i]) & (room - 1), distance = 0;
        while (end < op_count && compare_keys(&ops[i], &ops[end]) == 0)
            end++;
        for (; slots[at].count; distance++)
            at = (at + 1) & (room - 1);
        slots[at] = (struct slot){i, end - i};
        furthest = distance > furthest ? distance : furthest;
        i = end;
    }
    return furthest;
}

static void write_tables(struct text *out)
{
    size_t room = 16, longest = 0;

    while (room < op_count)
        room *= 2;
    struct slot *const slots = calloc(room, sizeof(slots[0]));
    if (!slots)
        die(NULL, "out of memory");
    const size_t furthest = fill_slots(slots, room);
    text_print(out, "static const struct cm_schema_slot slots[%zu] = {\n", room);
    for (size_t i = 0; i < room; i++) {
        if (slots[i].count)
            text_print(out, "    [%zu] = {%zu, %zu},\n", i, slots[i].first, slots[i].count);
    }
    free(slots);
    text_print(out, "};\n\nstatic const struct cm_schema_domain domains[] = {\n");
    for (size_t i = 0; i < domain_count; i++)
        text_print(out, "    {\"%s\", %d, %d},\n", domain_key(&domains[i]), domains[i].first,
                   domains[i].last);
    for (size_t i = 0; i < op_count; i++)
        longest = strlen(ops[i].name) > longest ? strlen(ops[i].name) : longest;
    text_print(out,
               "};\n\nconst struct cm_schema_table cm_schema_table = {\n"
               "    .rows = rows, .row_count = %zu,\n"
               "    .domains = domains, .domain_count = %zu,\n"
               "    .slots = slots, .slot_count = %zu, .probe_limit = %zu,\n"
               "    .longest_name = %zu,\n};\n",
               op_count, domain_count, room, furthest, longest);
}

static void write_file(const char *path, const struct text *rows, const struct text *tables)
{
    FILE *const file = fopen(path, "wb");
    const struct reader r = {path, 0, NULL};

    if (!file)
        die(&r, "cannot write: %s", strerror(errno));
    fprintf(file, "/* Facts of every operator version. Written by gen_schema; do not edit. */\n"
                  "// SPDX-License-Identifier: Apache-2.0\n"
                  "#include \"schema/schema_table.h\"\n\n");
    fwrite(arrays.data, 1, arrays.size, file);
    fprintf(file, "\nstatic const struct cm_schema rows[] = {\n");
    fwrite(rows->data, 1, rows->size, file);
    fprintf(file, "};\n\n");
    fwrite(tables->data, 1, tables->size, file);
    const bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed) {
        remove(path);
        die(&r, "cannot write: %s", strerror(errno));
    }
}

static char *read_file(const char *path)
{
    const struct reader r = {path, 0, NULL};
    FILE *const file = fopen(path, "rb");
    struct text out = {0};
    char block[65536];
    size_t size;

    if (!file)
        die(&r, "cannot read: %s", strerror(errno));
    text_add(&out, "", 0);
    while ((size = fread(block, 1, sizeof(block), file)) > 0)
        text_add(&out, block, size);
    if (ferror(file))
        die(&r, "cannot read: %s", strerror(errno));
    fclose(file);
    if (strlen(out.data) != out.size)
        die(&r, "holds a zero byte");
    return out.data;
}

int main(int argc, char **argv)
{
    struct text rows = {0}, tables = {0};

    if (argc < 3) {
        fprintf(stderr, "usage: gen_schema OUT.c IN.txt...\n");
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        char *const data = read_file(argv[i]);
        parse_file(argv[i], data);
        free(data);
    }
    if (op_count == 0 || op_count > UINT16_MAX)
        die(NULL, "%zu operator versions cannot make a table", op_count);
    qsort(ops, op_count, sizeof(ops[0]), compare_ops);
    for (size_t i = 1; i < op_count; i++) {
        const struct reader r = {ops[i].path, ops[i].line, NULL};
        if (compare_ops(&ops[i - 1], &ops[i]) == 0)
            die(&r, "%s %d is declared twice", ops[i].name, ops[i].version);
    }
    for (size_t i = 0; i < op_count; i++)
        write_row(&rows, &ops[i]);
    write_tables(&tables);
    write_file(argv[1], &rows, &tables);
    return 0;
}
