def mel_weight_matrix(bins, length, rate, low, high):
    """Triangles over the frequencies of a Fourier transform, even on the mel scale."""

    def mel(hertz):
        return 2595.0 * math.log10(1.0 + hertz / 700.0)

    step = (mel(high) - mel(low)) / (bins + 2)
    places = [
        math.floor(
            (length + 1) * 700.0 * (10 ** ((mel(low) + i * step) / 2595.0) - 1) / rate
        )
        for i in range(bins + 2)
    ]
    out = np.zeros((length // 2 + 1, bins), np.float32)
    for i in range(bins):
        left, top, right = places[i : i + 3]
        if top == left:
            out[top, i] = 1
        for j in range(left, top + 1):
            if top > left:
                out[j, i] = (j - left) / (top - left)
        for j in range(top, right):
            if right > top:
                out[j, i] = (right - j) / (right - top)
    return jnp.array(out)
