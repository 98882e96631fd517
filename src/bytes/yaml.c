/* Events of libyaml, put together to items. */
// SPDX-License-Identifier: Apache-2.0
#include "bytes/yaml.h"

#include "base/array.h"
#include "base/library.h"
#include "base/map.h"

#include <math.h>
#include <pthread.h>

/* ---- libyaml's interface as far as we use it; the same in all of 0.1 and 0.2 ---- */

struct yaml_mark {
    size_t index, line, column;
};

/* The beginning of its parser; the rest is its own. */
union yaml_parser {
    struct {
        int error;
        const char *problem;
        size_t problem_offset;
        int problem_value;
        struct yaml_mark problem_mark;
    } head;
    uint64_t room[512]; /* it has 480 bytes */
};

enum event_kind {
    NO_EVENT,
    STREAM_START,
    STREAM_END,
    DOCUMENT_START,
    DOCUMENT_END,
    ALIAS,
    SCALAR,
    SEQUENCE_START,
    SEQUENCE_END,
    MAPPING_START,
    MAPPING_END
};

union yaml_event {
    struct {
        int kind;
        union {
            struct {
                const char *anchor;
            } alias;
            struct {
                const char *anchor, *tag, *value;
                size_t length;
                int plain_implicit, quoted_implicit, style;
            } scalar;
            struct {
                const char *anchor, *tag;
            } start;
        } data;
    } head;
    uint64_t room[64]; /* it has 104 bytes */
};

static struct {
    struct cm_library library;
    bool usable;
    int (*initialize)(union yaml_parser *parser);
    void (*set_input)(union yaml_parser *parser, const unsigned char *input, size_t size);
    int (*parse)(union yaml_parser *parser, union yaml_event *event);
    void (*event_delete)(union yaml_event *event);
    void (*parser_delete)(union yaml_parser *parser);
} yaml;

static void open_yaml(void)
{
    static const char *const names[] = {"libyaml-0.so.2", NULL};
    static const struct cm_symbol symbols[] = {
        {"yaml_parser_initialize", &yaml.initialize},
        {"yaml_parser_set_input_string", &yaml.set_input},
        {"yaml_parser_parse", &yaml.parse},
        {"yaml_event_delete", &yaml.event_delete},
        {"yaml_parser_delete", &yaml.parser_delete},
    };

    yaml.usable = cm_library_open("CAMEO_YAML", names, &yaml.library) &&
                  cm_library_find(&yaml.library, symbols, CM_COUNT(symbols));
}

/* ---- reading ---- */

struct reading {
    struct cm_arena *arena;
    struct cm_map anchors; /* name to number in items */
    CM_ARRAY(struct cm_item *) named;
    size_t visited;
    struct cm_error *err;
    union yaml_event event; /* the current one; freed before the next */
    union yaml_parser parser;
};

static void release(void *what)
{
    struct reading *reading = what;

    yaml.event_delete(&reading->event);
    yaml.parser_delete(&reading->parser);
}

static enum cm_status next(struct reading *reading)
{
    yaml.event_delete(&reading->event);
    memset(&reading->event, 0, sizeof reading->event);
    if (yaml.parse(&reading->parser, &reading->event))
        return CM_OK;
    const char *problem = reading->parser.head.problem;
    return cm_fail(reading->err, CM_BAD_MODEL, "line %zu: %s",
                   reading->parser.head.problem_mark.line + 1, problem ? problem : "not YAML");
}

/* An integer that fits, with '_' between digits; in base 16 and 8 too. */
static bool is_int(struct cm_str text, int64_t *out)
{
    char digits[32];
    size_t size = 0;

    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] != '_') {
            if (size + 1 >= sizeof digits)
                return false;
            digits[size++] = text.data[i];
        }
    digits[size] = 0;
    if (size > 2 && digits[0] == '0' && digits[1] == 'x') {
        char *end;
        *out = (int64_t)strtoull(digits + 2, &end, 16);
        return *end == 0 && size < 18;
    }
    const size_t sign = digits[0] == '+';
    return size > sign && cm_str_to_int64((struct cm_str){digits + sign, size - sign}, out);
}

static struct cm_item *plain_scalar(struct cm_arena *arena, struct cm_str text)
{
    static const struct {
        const char *word;
        enum cm_item_kind kind;
        double value;
    } words[] = {
        {"", CM_ITEM_NONE, 0},
        {"~", CM_ITEM_NONE, 0},
        {"null", CM_ITEM_NONE, 0},
        {"Null", CM_ITEM_NONE, 0},
        {"NULL", CM_ITEM_NONE, 0},
        {"true", CM_ITEM_BOOL, 1},
        {"True", CM_ITEM_BOOL, 1},
        {"TRUE", CM_ITEM_BOOL, 1},
        {"false", CM_ITEM_BOOL, 0},
        {"False", CM_ITEM_BOOL, 0},
        {"FALSE", CM_ITEM_BOOL, 0},
        {"yes", CM_ITEM_BOOL, 1},
        {"no", CM_ITEM_BOOL, 0},
        {"on", CM_ITEM_BOOL, 1},
        {"off", CM_ITEM_BOOL, 0},
        {".inf", CM_ITEM_REAL, HUGE_VAL},
        {"-.inf", CM_ITEM_REAL, -HUGE_VAL},
        {".nan", CM_ITEM_REAL, NAN},
    };
    struct cm_item *item = cm_item_text(arena, text);
    int64_t number;
    double real;

    for (size_t i = 0; i < CM_COUNT(words); i++) {
        if (cm_str_is(text, words[i].word)) {
            item->kind = words[i].kind;
            item->truth = words[i].value == 1;
            item->real = words[i].value;
            return item;
        }
    }
    if (is_int(text, &number)) {
        item->kind = CM_ITEM_INT;
        item->number = number;
    } else if (text.size && (text.data[0] <= '9' || text.data[0] == '.') &&
               cm_str_to_double(text, &real)) {
        item->kind = CM_ITEM_REAL;
        item->real = real;
    }
    return item;
}

static void name_item(struct reading *reading, const char *anchor, struct cm_item *item)
{
    if (!anchor)
        return;
    *CM_PUSH(reading->arena, &reading->named) = item;
    *cm_map_insert(&reading->anchors, reading->arena, cm_arena_str(reading->arena, cm_str(anchor)),
                   NULL) = reading->named.count;
}

/* The item that the current event begins. */
static enum cm_status read_item(struct reading *reading, int depth, struct cm_item **out)
{
    const union yaml_event *event = &reading->event;

    if (depth > CM_ITEM_DEPTH_MAX || ++reading->visited > CM_ITEM_WALK_MAX)
        return cm_fail(reading->err, CM_LIMIT, "it is nested too deeply, or too large");
    switch (event->head.kind) {
    case ALIAS: {
        const uint64_t number =
            cm_map_get(&reading->anchors, cm_str(event->head.data.alias.anchor), 0);
        if (number == 0)
            return cm_fail(reading->err, CM_BAD_MODEL, "the alias '%.100s' has no anchor",
                           event->head.data.alias.anchor);
        *out = reading->named.items[number - 1];
        return CM_OK;
    }
    case SCALAR: {
        const struct cm_str value =
            cm_arena_str(reading->arena, (struct cm_str){event->head.data.scalar.value,
                                                         event->head.data.scalar.length});
        *out = event->head.data.scalar.plain_implicit && !event->head.data.scalar.tag
                   ? plain_scalar(reading->arena, value)
                   : cm_item_text(reading->arena, value);
        name_item(reading, event->head.data.scalar.anchor, *out);
        return CM_OK;
    }
    case SEQUENCE_START:
    case MAPPING_START: {
        const bool is_map = event->head.kind == MAPPING_START;
        struct cm_item *all = *out =
            cm_item_new(reading->arena, is_map ? CM_ITEM_MAP : CM_ITEM_LIST);
        name_item(reading, event->head.data.start.anchor, all);
        for (;;) {
            struct cm_item *key = NULL, *value;
            CM_TRY(next(reading));
            if (event->head.kind == (is_map ? MAPPING_END : SEQUENCE_END))
                return CM_OK;
            if (is_map) {
                CM_TRY(read_item(reading, depth + 1, &key));
                CM_TRY(next(reading));
            }
            CM_TRY(read_item(reading, depth + 1, &value));
            cm_item_set(reading->arena, all, key, value);
        }
    }
    default:
        return cm_fail(reading->err, CM_BAD_MODEL, "it has no value where one is expected");
    }
}

enum cm_status cm_item_parse_yaml(struct cm_arena *arena, struct cm_str text, struct cm_item **out,
                                  struct cm_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct reading *reading = CM_NEW(arena, struct reading);

    pthread_once(&once, open_yaml);
    if (!yaml.usable)
        return cm_fail(err, cm_library_status(&yaml.library),
                       "it is YAML, and libyaml is not available (%s); install libyaml-0-2",
                       yaml.library.why);
    reading->arena = arena;
    reading->err = err;
    if (!yaml.initialize(&reading->parser))
        return cm_fail(err, CM_NO_MEMORY, "no memory to read YAML");
    cm_arena_defer(arena, release, reading);
    yaml.set_input(&reading->parser, (const unsigned char *)text.data, text.size);
    enum cm_status status;
    do
        status = next(reading);
    while (status == CM_OK && (reading->event.head.kind == STREAM_START ||
                               reading->event.head.kind == DOCUMENT_START));
    if (status == CM_OK && reading->event.head.kind == STREAM_END)
        *out = cm_item_new(arena, CM_ITEM_NONE);
    else if (status == CM_OK)
        status = read_item(reading, 0, out);
    cm_arena_forget(arena, release, reading);
    release(reading);
    return status;
}
