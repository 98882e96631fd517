# ImageDecoder: pixels of an image, and what is said when there can be none.
# SPDX-License-Identifier: Apache-2.0
try() {
    echo "\$ cameo $*"
    "$CAMEO" "$@" 2>&1
    echo "[$?]"
}
# model FILE FORMAT: a model that holds the bytes of FILE.
model() {
    numbers=$(od -An -v -tu1 "$1" | tr -s ' \n' ',,' | sed -e 's/^,//' -e 's/,$//')
    cat <<END
<ir_version: 9, opset_import: ["" : 20]>
picture () => (uint8[h,w,c] y)
<uint8[$(wc -c <"$1")] x = {$numbers}>
{
    y = ImageDecoder<pixel_format: string = "$2">(x)
}
END
}
images=$TESTS/fuzz/corpus/fuzz_image
model "$images/gray.pgm" RGB >gray.onnxtxt
try run gray.onnxtxt
model "$images/rgb.bmp" Grayscale >bmp.onnxtxt
try run bmp.onnxtxt
echo '-- no image'
printf 'hello' >hello.txt
model hello.txt RGB >hello.onnxtxt
try run hello.onnxtxt
echo '-- no codec'
model "$images/rgb.png" BGR >png.onnxtxt
CAMEO_CODECS=off try run png.onnxtxt
CAMEO_CODECS=off "$CAMEO" --version | grep libpng
CAMEO_CODECS=/nowhere.so try run png.onnxtxt
echo '-- more pixels than there may be, and more than memory'
printf 'BM\0\0\0\0\0\0\0\0\066\0\0\0\050\0\0\0\0\0\1\0\0\0\1\0\1\0\010\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1' >large.bmp
model large.bmp RGB >large.onnxtxt
try run large.onnxtxt
printf 'BM\0\0\0\0\0\0\0\0\066\0\0\0\050\0\0\0\0\020\0\0\0\020\0\0\1\0\010\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1' >wide.bmp
model wide.bmp RGB >wide.onnxtxt
try run wide.onnxtxt --memory 1000000
