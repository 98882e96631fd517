// Its keys or its values are strings.
@refuse "strings are not compiled"
