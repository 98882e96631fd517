def gather_nd(x, indices, batch_dims):
    batch = jnp.indices(indices.shape[:-1], sparse=True)[:batch_dims]
    index = [indices[..., i] for i in range(indices.shape[-1])]
    return jnp.asarray(x)[(*batch, *index)]
