/* Where a training is that came from elsewhere: epoch and samples, which no state variable holds,
 * are told true in what a trainer saves (docs/training-information.md). */
// SPDX-License-Identifier: Apache-2.0
#include "api/training.h"

#include "convert/transfer/hold.h"

#define POSITION CM_HOLD_PREFIX "position"

/* Entries that are others while the model is saved. */
struct exchanged {
    struct cm_entries *place, before;
};

static void put_back(void *what)
{
    const struct exchanged *exchanged = what;

    *exchanged->place = exchanged->before;
}

/* Adds to a number of the map. */
static void advance(struct cm_arena *arena, struct cm_item *map, const char *key, uint64_t by)
{
    int64_t number = 0;

    for (size_t i = 0; i < map->entries.count; i++) {
        struct cm_item_entry *entry = &map->entries.items[i];

        if (!entry->key || !cm_str_is(entry->key->text, key))
            continue;
        (void)cm_item_is_int(entry->value, &number);
        entry->value = cm_item_int(arena, (int64_t)((uint64_t)number + by));
        return;
    }
    cm_item_put(arena, map, key, cm_item_int(arena, (int64_t)by));
}

void cm_api_tell_position(const struct cameo_trainer *trainer, struct cm_arena *arena,
                          struct cm_arena *scratch)
{
    const struct cm_trainer_progress done = cm_trainer_progress(trainer->trainer);
    const struct cm_model_proto *model = &trainer->model->file->model;

    for (size_t i = 0; i < model->training_info.count; i++) {
        struct cm_graph_proto *graph = model->training_info.items[i].algorithm;
        const struct cm_str text =
            graph ? cm_entries_find(&graph->metadata_props, POSITION) : CM_STR_NONE;
        struct cm_item *position;

        if (!text.size || !done.samples || cm_item_parse_json(arena, text, &position, NULL) ||
            position->kind != CM_ITEM_MAP)
            continue;
        if (cm_item_get(position, "epoch")) /* else nobody knows how many there were before */
            advance(arena, position, "epoch", done.epochs);
        advance(arena, position, "samples", done.samples);
        struct exchanged *exchanged = CM_NEW(scratch, struct exchanged);
        struct cm_entries fresh = graph->metadata_props;
        *exchanged = (struct exchanged){&graph->metadata_props, graph->metadata_props};
        fresh.items = cm_list_extended_by(arena, fresh.items, fresh.count, 0, sizeof *fresh.items);
        cm_hold_set(arena, &graph->msg, CM_GRAPH_METADATA_PROPS, &fresh, POSITION, position);
        cm_arena_defer(scratch, put_back, exchanged);
        graph->metadata_props = fresh;
    }
}
