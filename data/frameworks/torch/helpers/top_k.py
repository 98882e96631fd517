def top_k(x, k, axis, largest):
    """The k largest or smallest, of equal ones those in front."""
    order = torch.sort(x, dim=axis, descending=largest, stable=True)
    return order.values.narrow(axis, 0, k), order.indices.narrow(axis, 0, k)
