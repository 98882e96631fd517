def imputer(x, values, replaced):
    """One value, by column, gives way to another."""
    values = torch.tensor(values, dtype=x.dtype, device=x.device)
    gone = x.isnan() if replaced != replaced else x == replaced
    return torch.where(gone, values, x)
