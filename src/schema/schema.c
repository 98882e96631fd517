/* Lookup in the generated operator tables, and questions to a schema. */
// SPDX-License-Identifier: Apache-2.0
#include "schema/schema.h"

#include "schema/schema_table.h"

/* Longer than any operator name; what is longer cannot be a slip of the pen. */
enum { SUGGEST_ROOM = 64 };

static struct cm_str normal_domain(struct cm_str domain)
{
    return cm_str_is(domain, "ai.onnx") ? CM_STR("") : domain;
}

static uint32_t fnv1a(uint32_t hash, struct cm_str bytes)
{
    for (size_t i = 0; i < bytes.size; i++)
        hash = (hash ^ (unsigned char)bytes.data[i]) * UINT32_C(16777619);
    return hash;
}

/* Names from a file may be megabytes long, so length decides before anything is read. */
static const struct cm_schema_slot *find_slot(struct cm_str domain, struct cm_str name)
{
    const struct cm_schema_table *const table = &cm_schema_table;

    if (name.size > table->longest_name || !cm_schema_domain_known(domain))
        return NULL;
    uint32_t hash = fnv1a(UINT32_C(2166136261), domain);
    hash = fnv1a(hash, (struct cm_str){"", 1});
    hash = fnv1a(hash, name);
    for (size_t i = 0; i <= table->probe_limit; i++) {
        const struct cm_schema_slot *const slot =
            &table->slots[(hash + i) & (table->slot_count - 1)];
        if (slot->count == 0)
            return NULL;
        const struct cm_schema *const row = &table->rows[slot->first];
        if (cm_str_is(name, row->name) && cm_str_is(domain, row->domain))
            return slot;
    }
    return NULL;
}

const struct cm_schema *cm_schema_find(struct cm_str domain, struct cm_str name, int64_t opset)
{
    const struct cm_schema_slot *const slot = find_slot(normal_domain(domain), name);

    for (size_t i = 0; slot && i < slot->count; i++) {
        const struct cm_schema *const row = &cm_schema_table.rows[slot->first + i];
        if (row->since_version <= opset)
            return row;
    }
    return NULL;
}

const struct cm_schema *cm_schema_newest(struct cm_str domain, struct cm_str name)
{
    return cm_schema_find(domain, name, INT64_MAX);
}

size_t cm_schema_count(void)
{
    return cm_schema_table.row_count;
}

const struct cm_schema *cm_schema_at(size_t index)
{
    return index < cm_schema_table.row_count ? &cm_schema_table.rows[index] : NULL;
}

static const struct cm_schema_domain *find_domain(struct cm_str domain)
{
    for (size_t i = 0; i < cm_schema_table.domain_count; i++) {
        if (cm_str_is(domain, cm_schema_table.domains[i].name))
            return &cm_schema_table.domains[i];
    }
    return NULL;
}

bool cm_schema_domain_known(struct cm_str domain)
{
    return find_domain(normal_domain(domain)) != NULL;
}

int64_t cm_schema_newest_opset(struct cm_str domain)
{
    const struct cm_schema_domain *const found = find_domain(normal_domain(domain));

    return found ? found->last : 0;
}

/* Copies name in lower case; its size is at most SUGGEST_ROOM. */
static struct cm_str lowered(struct cm_str name, char *room)
{
    for (size_t i = 0; i < name.size; i++) {
        const char c = name.data[i];
        room[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    return (struct cm_str){room, name.size};
}

/* Case costs nothing, an edit costs two, a wrong domain one: the right domain wins a tie. */
const struct cm_schema *cm_schema_suggest(struct cm_str domain, struct cm_str name)
{
    const struct cm_str wanted_domain = normal_domain(domain);
    char wanted_room[SUGGEST_ROOM], known_room[SUGGEST_ROOM];
    const struct cm_schema *best = NULL;

    if (name.size == 0 || name.size > SUGGEST_ROOM)
        return NULL;
    const struct cm_str wanted = lowered(name, wanted_room);
    size_t best_cost = 2 * (1 + name.size / 4) + 2;
    for (size_t i = 0; i < cm_schema_table.row_count; i++) {
        const struct cm_schema *const row = &cm_schema_table.rows[i];
        const struct cm_str known = cm_str(row->name);
        const bool newest = i == 0 || strcmp(row->name, row[-1].name) != 0 ||
                            strcmp(row->domain, row[-1].domain) != 0;
        const size_t apart =
            known.size > wanted.size ? known.size - wanted.size : wanted.size - known.size;
        if (!newest || known.size > SUGGEST_ROOM || 2 * apart >= best_cost)
            continue;
        const bool elsewhere = !cm_str_is(wanted_domain, row->domain);
        const size_t distance = cm_str_distance(wanted, lowered(known, known_room));
        const size_t cost = 2 * distance + elsewhere;
        if (cost < best_cost && (!elsewhere || distance == 0)) { /* else it is a coincidence */
            best_cost = cost;
            best = row;
        }
    }
    return best;
}

static const struct cm_schema_param *param_at(const struct cm_schema_param *params, size_t count,
                                              size_t index)
{
    if (index < count)
        return &params[index];
    return count > 0 && params[count - 1].kind == CM_PARAM_VARIADIC ? &params[count - 1] : NULL;
}

const struct cm_schema_param *cm_schema_input(const struct cm_schema *schema, size_t index)
{
    return param_at(schema->inputs, schema->input_count, index);
}

const struct cm_schema_param *cm_schema_output(const struct cm_schema *schema, size_t index)
{
    return param_at(schema->outputs, schema->output_count, index);
}

static bool count_is_legal(size_t count, int least, int most, uint64_t legal)
{
    if (count < (size_t)least || (most != CM_SCHEMA_UNBOUNDED && count > (size_t)most))
        return false;
    return legal == 0 || (count < 64 && (legal >> count & 1));
}

bool cm_schema_allows_inputs(const struct cm_schema *schema, size_t count)
{
    return count_is_legal(count, schema->min_inputs, schema->max_inputs, schema->legal_inputs);
}

bool cm_schema_allows_outputs(const struct cm_schema *schema, size_t count)
{
    return count_is_legal(count, schema->min_outputs, schema->max_outputs, schema->legal_outputs);
}

/* A user's schema need not be sorted, and the longest list has 21 entries. */
const struct cm_schema_attr *cm_schema_find_attr(const struct cm_schema *schema, struct cm_str name)
{
    for (size_t i = 0; i < schema->attr_count; i++) {
        if (cm_str_is(name, schema->attrs[i].name))
            return &schema->attrs[i];
    }
    return NULL;
}

const struct cm_type_set *cm_schema_types_of(const struct cm_schema *schema,
                                             const struct cm_schema_param *param)
{
    return &schema->types[param->type].set;
}

bool cm_type_set_allows(const struct cm_type_set *set, enum cm_type_form form, enum cm_dtype key,
                        enum cm_dtype element)
{
    if ((unsigned)element >= 64)
        return false;
    for (size_t i = 0; i < set->row_count; i++) {
        const struct cm_type_row *const row = &set->rows[i];
        if (row->form == form && row->key == key && (row->elements & CM_TYPE_BIT(element)))
            return true;
    }
    return false;
}

bool cm_type_set_allows_tensor(const struct cm_type_set *set, enum cm_dtype element)
{
    return cm_type_set_allows(set, CM_FORM_TENSOR, CM_UNDEFINED, element);
}

/* What stands before and after an element's name; keyed: the map's key comes between. */
static const struct {
    const char *before, *after;
    bool keyed;
} form_texts[] = {
    [CM_FORM_TENSOR] = {"", "", false},
    [CM_FORM_SPARSE_TENSOR] = {"sparse_tensor(", ")", false},
    [CM_FORM_SEQ] = {"seq(", ")", false},
    [CM_FORM_OPTIONAL] = {"optional(", ")", false},
    [CM_FORM_OPTIONAL_SEQ] = {"optional(seq(", "))", false},
    [CM_FORM_MAP] = {"map(", ")", true},
    [CM_FORM_SEQ_MAP] = {"seq(map(", "))", true},
};

void cm_type_set_print(const struct cm_type_set *set, char *out, size_t size)
{
    static const char more[] = " and more";
    const size_t room = size > sizeof more ? size - sizeof more : size; /* kept for that */
    size_t used = 0;

    if (size > 0)
        out[0] = '\0';
    for (size_t i = 0; i < set->row_count; i++) {
        const struct cm_type_row *const row = &set->rows[i];
        for (int type = 1; type < CM_DTYPE_COUNT; type++) {
            if (!(row->elements & CM_TYPE_BIT(type)))
                continue;
            const bool keyed = form_texts[row->form].keyed;
            const int length = snprintf(
                out + used, room - used, "%s%s%s%s%s%s", used > 0 ? ", " : "",
                form_texts[row->form].before, keyed ? cm_dtype_name(row->key) : "",
                keyed ? ", " : "", cm_dtype_name((enum cm_dtype)type), form_texts[row->form].after);
            if (length < 0 || (size_t)length >= room - used) { /* the last one is not whole */
                snprintf(out + used, size - used, "%s", room < size ? more : "");
                return;
            }
            used += (size_t)length;
        }
    }
}
