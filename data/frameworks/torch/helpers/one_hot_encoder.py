def one_hot_encoder(x, categories, zeros):
    place = {c: i for i, c in enumerate(categories)}
    rows = x.flatten().tolist()
    out = torch.zeros(len(rows), len(categories))
    for i, value in enumerate(rows):
        if value in place:
            out[i, place[value]] = 1.0
        elif not zeros:
            raise ValueError(f"{value!r} is no category")
    return out.reshape(*x.shape, -1)
