/* Lists of findings, and the sentence that sums one up. */
// SPDX-License-Identifier: Apache-2.0
#include "base/diagnostics.h"

#include <stdio.h>
#include <string.h>

/* All of a text; CM_STR_FMT is for names. */
#define WHOLE(s) (int)(s).size, ((s).data ? (s).data : "")

/* Place and reason as texts of the list, which both the finding and the list of what was seen use;
 * false: they are there already. Without a place the message that it is about tells two apart. */
static bool keep_texts(struct cm_findings *list, const struct cm_finding *finding,
                       struct cm_str *place, struct cm_str *reason)
{
    const void *const subject = finding->place.size ? NULL : finding->subject;
    const size_t middle = finding->place.size + 1, end = middle + finding->reason.size + 1;
    char *const texts = cm_arena_alloc(list->arena, end + sizeof subject); /* zeroed */

    if (finding->place.size)
        memcpy(texts, finding->place.data, finding->place.size);
    if (finding->reason.size)
        memcpy(texts + middle, finding->reason.data, finding->reason.size);
    memcpy(texts + end, &subject, sizeof subject);
    *place = (struct cm_str){texts, finding->place.size};
    *reason = (struct cm_str){texts + middle, finding->reason.size};
    return cm_map_add(&list->seen, list->arena, (struct cm_str){texts, end + sizeof subject});
}

struct cm_finding *cm_findings_put(struct cm_findings *list, const struct cm_finding *finding)
{
    struct cm_arena *arena = list->arena;
    const bool is_full = list->count == CM_FINDINGS_MAX;
    struct cm_str place, reason;

    if (!is_full && !keep_texts(list, finding, &place, &reason))
        return NULL;
    list->total++;
    list->violations += finding->severity == CM_VIOLATION;
    if (is_full)
        return NULL;
    struct cm_finding *item = CM_PUSH(arena, list);
    *item = *finding;
    item->rule = finding->rule ? finding->rule : list->rule ? list->rule : "run";
    item->help = finding->help ? finding->help : "";
    item->place = place;
    cm_map_insert(&list->places, arena, item->place, NULL);
    item->reason = reason;
    item->node = cm_arena_str(arena, finding->node);
    item->op_type = cm_arena_str(arena, finding->op_type);
    item->value = cm_arena_str(arena, finding->value);
    return item;
}

struct cm_finding *cm_findings_add_args(struct cm_findings *list, enum cm_status status,
                                        struct cm_str place, const char *format, va_list args)
{
    char reason[CM_ERROR_SIZE];

    vsnprintf(reason, sizeof reason, format, args);
    return cm_findings_put(list, &(struct cm_finding){.status = status,
                                                      .severity = CM_VIOLATION,
                                                      .place = place,
                                                      .reason = cm_str(reason)});
}

struct cm_finding *cm_findings_add(struct cm_findings *list, enum cm_status status,
                                   struct cm_str place, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    struct cm_finding *item = cm_findings_add_args(list, status, place, format, args);
    va_end(args);
    return item;
}

void cm_findings_refuse(struct cm_findings *list, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    cm_findings_add_args(list, CM_BAD_ARGUMENT, CM_STR_NONE, format, args);
    va_end(args);
}

bool cm_findings_has(const struct cm_findings *list, struct cm_str place)
{
    return cm_map_find(&list->places, place) != NULL;
}

void cm_findings_unsupported(struct cm_findings *list, struct cm_str place, const char *format, ...)
{
    va_list args;

    if (cm_findings_has(list, place))
        return;
    va_start(args, format);
    cm_findings_add_args(list, CM_UNSUPPORTED, place, format, args);
    va_end(args);
}

void cm_findings_judge(struct cm_findings *list, const char *rule, const void *subject,
                       const char *format, ...)
{
    char reason[CM_ERROR_SIZE];
    va_list args;

    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    cm_findings_put(list, &(struct cm_finding){.status = CM_BAD_MODEL,
                                               .severity = CM_VIOLATION,
                                               .rule = rule,
                                               .reason = cm_str(reason),
                                               .subject = subject});
}

void cm_findings_note_args(struct cm_findings *list, const char *format, va_list args)
{
    char text[CM_ERROR_SIZE];

    vsnprintf(text, sizeof text, format, args);
    cm_findings_put(list, &(struct cm_finding){.severity = CM_NOTE, .reason = cm_str(text)});
}

void cm_findings_note(struct cm_findings *list, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    cm_findings_note_args(list, format, args);
    va_end(args);
}

void cm_findings_merge(struct cm_findings *list, const struct cm_findings *from,
                       struct cm_str place)
{
    for (size_t i = 0; i < from->count; i++) {
        struct cm_finding item = from->items[i];

        if (place.size && item.place.size)
            item.place =
                cm_arena_printf(list->arena, "%.*s: %.*s", WHOLE(place), WHOLE(item.place));
        else if (place.size)
            item.place = place;
        cm_findings_put(list, &item);
    }
}

void cm_findings_raise(struct cm_findings *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].severity != CM_WARNING)
            continue;
        list->items[i].severity = CM_VIOLATION;
        list->violations++;
    }
}

const struct cm_finding *cm_findings_next(const struct cm_findings *list, enum cm_severity severity,
                                          size_t *index)
{
    while (*index < list->count) {
        const struct cm_finding *item = &list->items[(*index)++];

        if (item->severity == severity)
            return item;
    }
    return NULL;
}

struct cm_str cm_finding_sentence(struct cm_arena *arena, const struct cm_finding *finding)
{
    return cm_arena_printf(arena, "%.*s%s%.*s", WHOLE(finding->place),
                           finding->place.size ? ": " : "", WHOLE(finding->reason));
}

struct headline {
    char text[160];
};

static struct headline headline_of(const struct cm_findings *list)
{
    struct headline line;

    snprintf(line.text, sizeof line.text, "%s, for %zu reasons",
             list->what ? list->what : "the model cannot run", list->violations);
    return line;
}

struct cm_str cm_findings_headline(struct cm_arena *arena, const struct cm_findings *list)
{
    return cm_arena_str(arena, cm_str(headline_of(list).text));
}

enum cm_status cm_findings_fail(const struct cm_findings *list, struct cm_error *err)
{
    char text[CM_ERROR_SIZE - 150], more[40] = "";
    enum cm_status status = CM_OK;
    const struct cm_finding *item;
    size_t used = 0, shown = 0;

    for (size_t i = 0; (item = cm_findings_next(list, CM_VIOLATION, &i)) != NULL; shown++) {
        const size_t room = sizeof text - used;

        if (!shown)
            status = item->status;
        const int size =
            snprintf(text + used, room, "%s%.*s%s%.*s", shown ? "; " : "", WHOLE(item->place),
                     item->place.size ? ": " : "", WHOLE(item->reason));
        if (size < 0 || (size_t)size >= room) {
            if (shown) /* half a sentence after whole ones says nothing */
                text[used] = 0;
            else
                shown++;
            break;
        }
        used += (size_t)size;
    }
    if (!list->violations)
        return CM_OK;
    if (list->violations == 1)
        return cm_fail(err, status, "%s", text);
    if (shown < list->violations)
        snprintf(more, sizeof more, "; and %zu more", list->violations - shown);
    return cm_fail(err, status, "%s: %s%s", headline_of(list).text, text, more);
}
