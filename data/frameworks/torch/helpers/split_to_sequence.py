def split_to_sequence(x, split, axis, keep):
    if split is None:
        return [*(x.split(1, axis) if keep else x.unbind(axis))]
    return [*x.split(split, axis)]
