# needs: split
def split_to_sequence(x, sizes, axis, keep):
    if sizes is None:
        parts = jnp.split(x, x.shape[axis], axis)
        return parts if keep else [part.squeeze(axis) for part in parts]
    return split(x, sizes, axis)
