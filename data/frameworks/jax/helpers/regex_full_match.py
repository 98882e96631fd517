def regex_full_match(x, pattern):
    match = re.compile(pattern).fullmatch
    found = [match(text) is not None for text in x.flatten().tolist()]
    return jnp.array(found, dtype=jnp.bool_).reshape(x.shape)
