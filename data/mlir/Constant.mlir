// Its contents are known wherever it is read, so nothing is computed here; strings alone are left.
@refuse "constants of this type are not compiled"
