#!/usr/bin/env python3
"""Writes the seeds of fuzz_image: one small picture in every form that a decoder must know.

The picture is 6 by 4 pixels, red 40 * x, green 60 * y, blue 255 - 40 * x; tests/unit/codec compares with
that. Needs Pillow, which nothing else here does; the files are committed.
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import struct

from PIL import Image

WIDTH, HEIGHT = 6, 4
OUT = pathlib.Path(__file__).parent / "corpus" / "fuzz_image"


def picture():
    image = Image.new("RGB", (WIDTH, HEIGHT))
    for y in range(HEIGHT):
        for x in range(WIDTH):
            image.putpixel((x, y), (40 * x, 60 * y, 255 - 40 * x))
    return image


def bmp(bits, coding, extra, data):
    offset = 54 + len(extra)
    header = struct.pack("<2sIHHI", b"BM", offset + len(data), 0, 0, offset)
    info = struct.pack("<IiiHHIIiiII", 40, WIDTH, HEIGHT, 1, bits, coding, len(data), 0, 0, 0, 0)
    return header + info + extra + data


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    rgb = picture()
    gray = rgb.convert("L")
    alpha = rgb.convert("RGBA")
    alpha.putalpha(gray)
    saved = {
        "rgb.png": (rgb, {}),
        "gray.png": (gray, {}),
        "alpha.png": (alpha, {}),
        "palette.png": (rgb.quantize(24), {}),
        "bits.png": (gray.point(lambda v: 255 * (v > 100), "1"), {}),
        "rgb.jpg": (rgb, {"quality": 100, "subsampling": 0}),
        "halved.jpg": (rgb, {"quality": 90, "subsampling": 2}),
        "progressive.jpg": (rgb, {"quality": 100, "subsampling": 0, "progressive": True}),
        "gray.jpg": (gray, {"quality": 100}),
        "cmyk.jpg": (rgb.convert("CMYK"), {"quality": 100, "subsampling": 0}),
        "lossless.webp": (rgb, {"lossless": True, "exact": True}),
        "alpha.webp": (alpha, {"lossless": True, "exact": True}),
        "lossy.webp": (rgb, {"quality": 90}),
        "rgb.jp2": (rgb, {}),
        "gray.j2k": (gray, {"no_jp2": True}),
        "tiles.jp2": (rgb, {"tile_size": (4, 4)}),
        "rgb.tif": (rgb, {}),
        "lzw.tif": (rgb, {"compression": "tiff_lzw"}),
        "alpha.tif": (alpha, {}),
        "gray.tif": (gray, {"compression": "tiff_adobe_deflate"}),
        "rgb.bmp": (rgb, {}),
        "alpha.bmp": (alpha, {}),
        "palette.bmp": (rgb.quantize(24), {}),
        "bits.bmp": (gray.point(lambda v: 255 * (v > 100), "1"), {}),
        "rgb.ppm": (rgb, {}),
        "gray.pgm": (gray, {}),
        "bits.pbm": (gray.point(lambda v: 255 * (v > 100), "1"), {}),
    }
    for name, (image, options) in saved.items():
        form = {"jpg": "JPEG", "jp2": "JPEG2000", "j2k": "JPEG2000", "tif": "TIFF", "pgm": "PPM", "pbm": "PPM"}
        kind = name.split(".")[1]
        image.save(OUT / name, form.get(kind, kind.upper()), **options)
    numbers = " ".join(str(v) for pixel in rgb.getdata() for v in pixel)
    (OUT / "text.ppm").write_text(f"P3 # as text\n{WIDTH} {HEIGHT} 255\n{numbers}\n")
    (OUT / "text.pbm").write_text("P1 6 4\n010101\n101010\n010101\n101010\n")
    colours = bytes(v for i in range(256) for v in (255 - i, i, i, 0))
    runs = b"\x06\x28\0\0" + b"\0\x03\x01\x02\x03\0\x03\x05\0\0" + b"\0\x02\x02\x01" + b"\x01\x07\0\x01"
    (OUT / "runs8.bmp").write_bytes(bmp(8, 1, colours, runs))
    runs = b"\x06\x12\0\0" + b"\0\x05\x12\x34\x50\0\x01\x70\0\0" + b"\x06\xff\0\x01"
    (OUT / "runs4.bmp").write_bytes(bmp(4, 2, colours[:64], runs))
    words = b"".join(struct.pack("<H", 5 * x << 11 | 15 * y << 5 | x) for y in range(HEIGHT) for x in range(WIDTH))
    masks = struct.pack("<3I", 0xF800, 0x7E0, 0x1F)
    (OUT / "masks.bmp").write_bytes(bmp(16, 3, masks, words))


if __name__ == "__main__":
    main()
