def one_hot(indices, depth, values, axis):
    depth = int(depth)
    indices = jnp.where(indices < 0, indices + depth, indices)
    shape = [1] * (indices.ndim + 1)
    shape[axis] = depth
    places = jnp.arange(depth).reshape(shape)
    return jnp.where(jnp.expand_dims(indices, axis) == places, values[1], values[0])
