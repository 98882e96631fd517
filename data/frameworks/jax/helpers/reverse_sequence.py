def reverse_sequence(x, lengths, time_axis, batch_axis):
    x = jnp.moveaxis(x, (time_axis, batch_axis), (0, 1))
    place = jnp.arange(x.shape[0])[:, None]
    place = jnp.where(place < lengths, lengths - 1 - place, place)
    place = place.reshape(place.shape + (1,) * (x.ndim - 2))
    return jnp.moveaxis(
        jnp.take_along_axis(x, place, 0), (0, 1), (time_axis, batch_axis)
    )
