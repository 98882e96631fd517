def labels_of(places, labels, dtype):
    """Class labels by their places."""
    found = [labels[i] if labels else i for i in places.tolist()]
    if dtype is object:
        return np.array(found, dtype=object)
    return torch.tensor(found, dtype=dtype)
