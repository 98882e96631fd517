def feature_vectorizer(inputs, sizes):
    """Columns side by side, cut or filled up to declared widths."""
    out = []
    for i, x in enumerate(inputs):
        x = x.astype(jnp.float32)
        x = x.reshape(x.shape[0], -1) if x.ndim > 1 else x.reshape(1, -1)
        size = sizes[i] if i < len(sizes) else x.shape[1]
        out.append(jnp.pad(x, ((0, 0), (0, max(size - x.shape[1], 0))))[:, :size])
    return jnp.concatenate(out, 1)
