def to_float8(x, dtype, saturate):
    """The nearest number of eight bits; what is too large becomes the largest one."""
    x = x.float()
    if not saturate:
        large = torch.finfo(dtype).max
        step = 2.0 ** (
            math.floor(math.log2(large)) - (1 if "e5m2" in str(dtype) else 2)
        )
        beyond = x.abs() > large + (step if "e4m3" in str(dtype) else step) / 2
        special = math.inf if dtype == torch.float8_e5m2 else math.nan
        over = torch.where(x.isnan(), x, torch.copysign(torch.tensor(special), x))
        x = torch.where(beyond, over, x)
        return torch.where(beyond, over, x).to(dtype)
    most = torch.finfo(dtype).max
    if dtype in (torch.float8_e4m3fnuz, torch.float8_e5m2fnuz):
        x = torch.where(x.isinf(), torch.copysign(torch.tensor(most), x), x)
    return x.clamp(-most, most).to(dtype)
