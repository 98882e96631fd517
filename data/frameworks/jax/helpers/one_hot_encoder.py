# needs: concrete
def one_hot_encoder(x, categories, zeros):
    place = {c: i for i, c in enumerate(categories)}
    rows = concrete(x).flatten().tolist()
    out = np.zeros((len(rows), len(categories)), np.float32)
    for i, value in enumerate(rows):
        if value in place:
            out[i, place[value]] = 1.0
        elif not zeros:
            raise ValueError(f"{value!r} is no category")
    return jnp.array(out).reshape(*x.shape, -1)
