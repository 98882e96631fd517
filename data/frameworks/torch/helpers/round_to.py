def round_to(x, name, mode="nearest"):
    """The nearest number of a format that has few; ties go to the even one."""
    x = x.float()
    if name == "float8e8m0":
        exponent = torch.floor(torch.log2(x.abs()))
        low = torch.exp2(exponent)
        up = {"up": x > low, "down": x < 0}.get(mode, x >= 1.5 * low)
        return torch.where(x.isnan(), x, torch.where(up, 2 * low, low)).clamp(2.0**-127)
    bits, bias = {"float4e2m1": (1, 1), "float6e2m3": (3, 1), "float6e3m2": (2, 3)}[
        name
    ]
    most = {"float4e2m1": 6.0, "float6e2m3": 7.5, "float6e3m2": 28.0}[name]
    size = x.abs().clamp(max=most)
    exponent = torch.floor(torch.log2(size.clamp(min=2.0 ** (1 - bias))))
    step = torch.exp2(exponent - bits)
    out = torch.copysign(torch.round(size / step) * step, x).clamp(-most, most)
    return torch.where(x.isnan(), torch.full_like(x, -0.0), out)
