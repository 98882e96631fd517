/* The list of findings: rule rows, and spelling out places and reasons. */
// SPDX-License-Identifier: Apache-2.0
#include "base/number.h"
#include "base/printable.h"
#include "check/checker.h"
#include "tensor/dtype.h"

static const struct cm_check_rule rules[] = {
#define CM_RULE_ROW(id, severities, text, help) {#id, severities, text, help},
    CM_CHECK_RULES(CM_RULE_ROW)
#undef CM_RULE_ROW
};

size_t cm_check_rule_count(void)
{
    return CM_COUNT(rules);
}

const struct cm_check_rule *cm_check_rule_at(size_t index)
{
    return &rules[index];
}

enum { PLACE_SIZE = 1024, REASON_SIZE = 1024, PLACES_SHOWN = 7 };

/* A text of bounded size; what does not fit is dropped. */
struct line {
    char text[PLACE_SIZE];
    size_t size;
};

static void CM_PRINTF(2, 3) append(struct line *line, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const int n = vsnprintf(line->text + line->size, sizeof line->text - line->size, format, args);
    va_end(args);
    if (n > 0)
        line->size = cm_min_size(line->size + (size_t)n, sizeof line->text - 1);
}

static void append_place(struct line *line, const struct cm_model_place *place)
{
    if (line->size && place->what[0] != '.')
        append(line, ", ");
    append(line, "%s", place->what);
    if (place->name.size)
        append(line, " '%.*s'", CM_STR_FMT(place->name));
    else if (place->index != SIZE_MAX && place->op.data)
        append(line, " %zu", place->index);
    else if (place->index != SIZE_MAX)
        append(line, "[%zu]", place->index);
    if (place->op.size)
        append(line, " (%.*s)", CM_STR_FMT(place->op));
}

static struct line spell_place(const struct cm_model_place *place)
{
    const struct cm_model_place *shown[PLACES_SHOWN];
    size_t count = 0;
    struct line line = {.size = 0};

    for (; place && count < PLACES_SHOWN; place = place->up)
        shown[count++] = place;
    if (place)
        append(&line, "...");
    while (count)
        append_place(&line, shown[--count]);
    if (!line.size)
        append(&line, "model");
    return line;
}

/* Names come from the file and go to a terminal or a log: each byte of what must not is '?'. */
static struct cm_str printable(struct cm_arena *arena, const char *text, size_t size)
{
    char *copy = cm_arena_alloc(arena, size + 1);

    for (size_t i = 0; i < size;) {
        const struct cm_str rest = {text + i, size - i};
        const size_t hidden = cm_str_unprintable(rest);
        const size_t step = hidden ? hidden : cm_str_character(rest);

        if (hidden)
            memset(copy + i, '?', step);
        else
            memcpy(copy + i, text + i, step);
        i += step;
    }
    return (struct cm_str){copy, size};
}

/* The node and the value that a place is at. */
static void name_parts(struct cm_arena *arena, const struct cm_model_place *place,
                       struct cm_finding *out)
{
    for (; place; place = place->up) {
        if (place->is_value && !out->value.size)
            out->value =
                printable(arena, place->name.data, cm_min_size(place->name.size, PLACE_SIZE));
        if (!place->op.data)
            continue;
        out->node = printable(arena, place->name.data, cm_min_size(place->name.size, PLACE_SIZE));
        out->op_type = printable(arena, place->op.data, cm_min_size(place->op.size, PLACE_SIZE));
        return;
    }
}

/* Does a finding of the rule say, as a warning, what inference would refuse? */
static bool speaks_for_inference(const struct cm_check_rule *row)
{
    const enum cm_rule rule = (enum cm_rule)(row - rules);

    return rule == CM_RULE_ST12 || rule == CM_RULE_ST13 || rule == CM_RULE_ST17 ||
           rule == CM_RULE_ST26;
}

static void blame(struct cm_checker *c, const struct cm_model_place *place)
{
    for (; place; place = place->up)
        if (place->subject)
            cm_map_insert_number(&c->findings->blamed, c->arena, CM_ADDRESS(place->subject), NULL);
}

/* accepted: by ONNX Runtime. */
static void report(struct cm_checker *c, enum cm_rule rule, const struct cm_model_place *place,
                   bool accepted, const char *format, va_list args)
{
    const struct cm_check_rule *row = &rules[c->unlooked ? CM_RULE_ST13 : rule];
    const enum cm_severity usual =
        c->flags & CM_CHECK_STRICT ? row->strict_severity : row->severity;
    const bool excused = accepted && c->flags & CM_CHECK_FOR_RUNTIME;
    const enum cm_severity severity = excused ? CM_NOTE : usual;
    char reason[REASON_SIZE];

    if (usual == CM_VIOLATION || speaks_for_inference(row))
        blame(c, place);
    if (c->findings->count == CM_FINDINGS_MAX) {
        cm_findings_put(c->findings, &(struct cm_finding){.severity = severity}); /* is counted */
        return;
    }
    const int told = vsnprintf(reason, sizeof reason, format, args);
    size_t n = told < 0 ? 0 : cm_min_size((size_t)told, sizeof reason - 1);
    if (accepted) {
        const int more = snprintf(reason + n, sizeof reason - n, "; ONNX Runtime accepts this%s",
                                  excused ? "" : ", and so does --tool ort");
        n = more < 0 ? n : cm_min_size(n + (size_t)more, sizeof reason - 1);
    }
    const struct line line = spell_place(place);
    struct cm_finding finding = {.status = severity == CM_VIOLATION ? CM_BAD_MODEL : CM_OK,
                                 .severity = severity,
                                 .rule = row->id,
                                 .place = printable(c->scratch, line.text, line.size),
                                 .reason = printable(c->scratch, reason, n),
                                 .help = row->help,
                                 .subject = place ? place->subject : NULL};
    name_parts(c->scratch, place, &finding);
    cm_findings_put(c->findings, &finding);
}

void cm_report(struct cm_checker *c, enum cm_rule rule, const struct cm_model_place *place,
               const char *format, ...)
{
    va_list args;

    va_start(args, format);
    report(c, rule, place, false, format, args);
    va_end(args);
}

void cm_report_accepted(struct cm_checker *c, enum cm_rule rule, const struct cm_model_place *place,
                        bool accepted, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    report(c, rule, place, accepted, format, args);
    va_end(args);
}

static bool repeated_before(const struct cm_entries *entries, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (cm_str_equal(entries->items[i].key, entries->items[index].key))
            return true;
    }
    return false;
}

void cm_report_repeated_keys(struct cm_checker *c, enum cm_rule rule,
                             const struct cm_model_place *place, const struct cm_entries *entries)
{
    enum { FEW = 16 };
    struct cm_map seen = {0};

    for (size_t i = 0; i < entries->count; i++) {
        bool added;

        if (entries->count <= FEW)
            added = !repeated_before(entries, i);
        else
            cm_map_insert(&seen, c->scratch, entries->items[i].key, &added);
        if (!added)
            cm_report(c, rule, place, "the key '%.*s' occurs twice",
                      CM_STR_FMT(entries->items[i].key));
    }
}

void cm_report_newer(struct cm_checker *c, const struct cm_model_place *place, int needs,
                     const char *feature)
{
    static const char *const known[] = {"sparse initializers",
                                        "optional types",
                                        "sparse tensor types",
                                        "functions",
                                        "attribute defaults of functions",
                                        "overloads",
                                        "value_info of functions",
                                        "metadata of parts of a model",
                                        "multi-device settings",
                                        "quantization annotations"};

    if (c->ir_version >= needs)
        return;
    for (size_t i = 0; i < CM_COUNT(known); i++) {
        if (strcmp(known[i], feature) != 0)
            continue;
        if (c->features_seen >> i & 1)
            return;
        c->features_seen |= UINT64_C(1) << i;
    }
    cm_report(c, CM_RULE_ST4, place, "%s need IR version %d, the model says %lld", feature, needs,
              (long long)c->ir_version);
}

void cm_report_newer_dtype(struct cm_checker *c, const struct cm_model_place *place, int32_t type)
{
    if (!cm_dtype_is_valid(type))
        return;
    const struct cm_dtype_info *info = cm_dtype_info((enum cm_dtype)type);
    if (c->ir_version >= info->since_ir || (c->dtypes_seen >> type & 1))
        return;
    c->dtypes_seen |= UINT64_C(1) << type;
    cm_report(c, CM_RULE_ST4, place, "the type %s needs IR version %d, the model says %lld",
              info->name, info->since_ir, (long long)c->ir_version);
}
