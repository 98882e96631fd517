def sequence_erase(items, position):
    position %= len(items)
    return [*items[:position], *items[position + 1 :]]
