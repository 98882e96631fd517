def sequence_insert(items, item, position):
    position = position % len(items) if position < 0 else position
    return [*items[:position], item, *items[position:]]
