// The nearest whole number, halves to even: past 2^23 (or 2^52) there are whole numbers only, so that
// adding and subtracting it rounds, as vector code on every machine.
@elementwise
@let ${elem(X)} %a = abs(%X)
@let ${elem(X)} %rounded = (%a + ${elem(X) == "f64" ? "4503599627370496.0" : "8388608"}) - ${elem(X) == "f64" ? "4503599627370496.0" : "8388608"}
@let ${elem(X)} %near = %a < ${elem(X) == "f64" ? "4503599627370496.0" : "8388608"} ? %rounded : %a
@let ${elem(X)} %Y = copysign(%near, %X)
