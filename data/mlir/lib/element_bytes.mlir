// Gives `bytes` of an element of type T.
@macro T
@set bytes = T == "f64" or T == "i64" or T == "u64" ? 8 : T == "f32" or T == "i32" or T == "u32" ? 4 : T == "i8" or T == "u8" ? 1 : 2
@give bytes
