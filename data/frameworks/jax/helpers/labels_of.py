# needs: concrete
def labels_of(places, labels, dtype):
    """Class labels by their places."""
    if dtype is object:
        return np.array([labels[i] for i in concrete(places).tolist()], dtype=object)
    return jnp.array(labels, dtype=dtype)[places] if labels else places.astype(dtype)
