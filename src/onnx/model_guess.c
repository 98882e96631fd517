/* What a file that is no ONNX model may be instead, by its first bytes. */
// SPDX-License-Identifier: Apache-2.0
#include "onnx/model_save.h"
#include "onnx/syntax.h"

#define MAGIC(bytes) (bytes), sizeof(bytes) - 1

/* Magic bytes at a place, and what they stand for. */
static const struct {
    size_t at;
    const char *bytes;
    size_t size;
    const char *what;
} magics[] = {
    {0, MAGIC("version https://git-lfs"),
     "a Git LFS pointer: 'git lfs pull' fetches the file it stands for"},
    {0, MAGIC("PK\x03\x04"),
     "a zip archive, as PyTorch saves models: export it to ONNX, or unpack "
     "it"},
    {0, MAGIC("\x1f\x8b"), "compressed with gzip: unpack it first"},
    {0, MAGIC("BZh"), "compressed with bzip2: unpack it first"},
    {0,
     MAGIC("\xfd"
           "7zXZ"),
     "compressed with xz: unpack it first"},
    {0, MAGIC("\x28\xb5\x2f\xfd"), "compressed with zstd: unpack it first"},
    {0,
     MAGIC("\x89"
           "HDF\r\n\x1a\n"),
     "an HDF5 file, as Keras saves models: export it to ONNX"},
    {4, MAGIC("TFL3"), "a TensorFlow Lite model: export it to ONNX"},
    {4, MAGIC("ORTM"), "a model in ONNX Runtime's own format: use the .onnx file it was made from"},
    {8, MAGIC("{\""), "a safetensors file, which holds arrays and no graph"},
    {0, MAGIC("GGUF"), "a GGUF file"},
    {0, MAGIC("\x93NUMPY"), "a NumPy array"},
    {0, MAGIC("\x80\x02"), "a Python pickle, as PyTorch saves models: export it to ONNX"},
    {0, MAGIC("\x80\x03"), "a Python pickle: export the model to ONNX"},
    {0, MAGIC("\x80\x04"), "a Python pickle: export the model to ONNX"},
    {0,
     MAGIC("\x7f"
           "ELF"),
     "machine code: a library (.so) that 'cameo compile' wrote is run by 'cameo run' and measured "
     "by 'cameo bench', an object is linked to a program; all else needs the model it was made of"},
    {0, MAGIC("!<arch>\n"),
     "an archive of objects, which is linked to a program: take the model it was made of"},
    {0, MAGIC("\0asm"),
     "a module of WebAssembly, which a browser runs: take the model it was made of"},
    {0, MAGIC("\x89PNG"), "an image"},
};

static struct cm_str skip_blanks(struct cm_str bytes)
{
    while (bytes.size &&
           (bytes.data[0] == ' ' || (bytes.data[0] >= '\t' && bytes.data[0] <= '\r'))) {
        bytes.data++;
        bytes.size--;
    }
    return bytes;
}

static bool begins(struct cm_str bytes, const char *text)
{
    for (size_t i = 0; text[i]; i++) {
        const char c = i < bytes.size ? bytes.data[i] : 0;

        if ((c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) != text[i])
            return false;
    }
    return true;
}

/* Printable, as far as one looks. */
static bool is_text(struct cm_str bytes)
{
    const size_t look = bytes.size < 512 ? bytes.size : 512;

    for (size_t i = 0; i < look; i++) {
        const unsigned char c = (unsigned char)bytes.data[i];

        if ((c < ' ' && (c < '\t' || c > '\r')) || c == 127)
            return false;
    }
    return true;
}

const char *cm_model_guess(struct cm_str bytes)
{
    for (size_t i = 0; i < CM_COUNT(magics); i++) {
        if (bytes.size >= magics[i].at + magics[i].size &&
            memcmp(bytes.data + magics[i].at, magics[i].bytes, magics[i].size) == 0)
            return magics[i].what;
    }
    if (!is_text(bytes))
        return NULL;
    bytes = skip_blanks(cm_syntax_skip_mark(bytes));
    if (begins(bytes, "<!doctype") || begins(bytes, "<html") || begins(bytes, "<?xml"))
        return "a web page: the download went wrong";
    if (begins(bytes, "<ir_version") || begins(bytes, "<opset_import"))
        return "ONNX's text form: give it a name that ends in .onnxtxt";
    if (begins(bytes, "module") || begins(bytes, "func.func") ||
        begins(bytes, "\"builtin.module\""))
        return "a module of MLIR: give it a name that ends in .mlir";
    if (begins(bytes, "{") || begins(bytes, "["))
        return "JSON";
    return bytes.size ? "a text file" : NULL;
}
