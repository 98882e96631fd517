// Elements as another type.
@elementwise stored
@do cast_element("%input", elem(input), elem(output), attr("saturate") != 0, attr("round_mode"), "%output")
