#!/usr/bin/env python3
# Checks the rules of the house: format, layers, lone headers, banned functions, licence lines.
# SPDX-License-Identifier: Apache-2.0
"""usage: lint.py [CHECK...]

Each violation is printed as file:line: reason. Each check counts as one in the last line,
`N passed, N failed`; one that cannot be made here says `skip` and why, and is not counted.
"""

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import exports
import growable_arrays
import long_macros
import operator_names
import prose
import check_training_docs as training_docs_tables
import wrap_markdown

ROOT = Path(__file__).resolve().parent.parent
C_FOLDERS = ("include", "src", "cli", "examples", "tests", "bench", "tools", "python")
# Unbounded, locale-dependent or stack-eating.
BANNED = "sprintf vsprintf strcpy strcat strtok atoi atol atof gets alloca".split()
# The library returns a status; what it does not do is print or end the process.
MAY_READ_ENVIRONMENT = ("cli/demo_show.c", "cli/cmd_plot.c", "cli/braille.c")  # NO_COLOR, COLUMNS, the language
BANNED_IN_LIBRARY = "printf vprintf puts putchar perror exit _Exit quick_exit abort".split()
# Memory comes from cm_malloc and its kin in the library, from cli_alloc and its kin in the command: the first note
# what fails, the second never return NULL. Modules that are opened at run time cannot call them. A line of a log
# that memory is too short for does not end a training (train_report.c).
RAW_MEMORY = "malloc calloc realloc reallocarray strdup strndup asprintf vasprintf open_memstream aligned_alloc " \
             "posix_memalign memalign".split()
MAY_ALLOCATE = ("src/base/memory.c", "src/mlir/module", "src/mlir/runtime", "src/kernels", "src/codec/module",
                "cli/checked_memory.c", "cli/spare_memory.c", "cli/train_report.c")
LONGEST = 800
WIDEST = 130  # of Python; most lines end by 120
PUBLIC = {path.name for path in (ROOT / "include").glob("*.h")}
GENERATED = {"training_names.h", "training_rules.h", "message_structs.h"}  # by tools/gen_training.c and gen_messages.c
WARNINGS = ("-Wall -Wextra -Wpedantic -Wshadow -Wvla -Wmissing-prototypes -Wconversion "
            "-Werror").split()


def files(*suffixes, folders=C_FOLDERS):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in suffixes and "__pycache__" not in path.parts:
                yield path


def place(path, line, reason):
    return f"{path.relative_to(ROOT)}:{line}: {reason}"


def read(path):
    return path.read_text(encoding="utf-8", errors="replace")


def code_only(text):
    """The text with comments and the insides of literals blanked, line numbers kept."""
    def blank(match):
        found = match.group(0)
        if found[0] in "\"'":
            return found[0] + " " * (len(found) - 2) + found[0]
        return re.sub(r"[^\n]", " ", found)
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text,
                  flags=re.S)


def lines_with(pattern, text):
    for match in re.finditer(pattern, text):
        yield text.count("\n", 0, match.start()) + 1, match


def in_parallel(work, items):
    with ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        return [line for lines in pool.map(work, items) for line in lines]


# Checks: each returns a list of violations.

def check_format():
    """clang-format would change nothing"""
    paths = [str(p) for p in files(".c", ".h")]
    found = []
    for at in range(0, len(paths), 50):
        done = subprocess.run(["clang-format", "--dry-run", "-Werror", *paths[at:at + 50]],
                              stderr=subprocess.PIPE, text=True, cwd=ROOT)
        seen = set()
        for match in re.finditer(r"^(.*?):(\d+):\d+: error:", done.stderr, re.M):
            if match.group(1) not in seen:
                seen.add(match.group(1))
                found.append(place(Path(match.group(1)), match.group(2), "not as clang-format has it"))
        if done.returncode and not seen:
            found.append(done.stderr.strip() or "clang-format failed")
    return found


def read_layers():
    """{folder: folders it may include}, from src/layers.txt."""
    layers = {}
    for line in read(ROOT / "src/layers.txt").splitlines():
        line = line.split("#")[0].strip()
        if line:
            folder, _, allowed = line.partition(":")
            layers[folder.strip()] = set(allowed.split())
    return layers


def includes(path):
    for number, line in enumerate(read(path).splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match.group(1), match.group(2)


def check_layers():
    """folders include only what src/layers.txt allows"""
    layers = read_layers()
    found = []
    for path in files(".c", ".h", folders=("src",)):
        folder = path.relative_to(ROOT / "src").parts[0]
        if folder not in layers:
            found.append(place(path, 1, f"folder '{folder}' is not in src/layers.txt"))
            continue
        for number, kind, name in includes(path):
            if kind == "<":
                if name in PUBLIC:
                    found.append(place(path, number, f'{name} is included as "{name}"'))
                continue
            if name in PUBLIC:
                if folder != "api":
                    found.append(place(path, number, f"only api/ may include {name}"))
                continue
            if name in GENERATED:
                continue
            if "/" not in name:
                found.append(place(path, number, f'"{name}" is not rooted at src/'))
                continue
            target = name.split("/")[0]
            if target != folder and target not in layers[folder] and "*" not in layers[folder]:
                found.append(place(path, number, f"{folder}/ may not include {target}/"))
            if folder == target == "backends" and path.relative_to(ROOT / "src").parts[1] != \
                    name.split("/")[1] and name.count("/") > 1:
                found.append(place(path, number, "a backend may not include another"))
    return found


def check_public():
    """cli/ and examples/ see the public headers only"""
    found = []
    for folder in ("cli", "examples"):
        for path in files(".c", ".h", folders=(folder,)):
            for number, _, name in includes(path):
                inside = (ROOT / "src" / name).exists()
                if inside or "/" in name and (ROOT / "src" / name.split("/")[0]).is_dir() \
                        and not name.startswith("sys/"):
                    found.append(place(path, number, f"{folder}/ may not include {name}"))
    return found


def compile_alone(path, *flags, language="c"):
    done = subprocess.run(["c++" if language == "c++" else "cc", "-x", language, "-fsyntax-only",
                           "-Wall", "-Wextra", "-Wpedantic", "-Werror", *flags, "-Isrc", "-Iinclude",
                           "-Ibuild/generated", "-Itests/unit", "-Icli", "-Wno-unused-function",
                           "-"],
                          input=f'#include "{path}"\n', stderr=subprocess.PIPE, text=True, cwd=ROOT)
    if done.returncode == 0:
        return []
    first = next((l for l in done.stderr.splitlines() if "error" in l), done.stderr.strip())
    first = re.sub(r"^.*?error: ", "", first)
    return [place(path, 1, f"does not compile alone ({' '.join(flags)}): {first}")]


def module_includes():
    """where the headers of MLIR are, as the build found them; nothing where it has none"""
    for entry in json.loads(read(ROOT / "build/compile_commands.json")):
        words = shlex.split(entry["command"])
        if "src/mlir/module/" in entry["file"] and "-isystem" in words:
            at = words.index("-isystem")
            return words[at:at + 2]
    return []


def check_headers():
    """every header compiles alone"""
    mlir, python = module_includes(), sysconfig.get_path("include")
    apart = [ROOT / "python"] + ([] if mlir else [ROOT / "src/mlir/module"])
    found = in_parallel(lambda path: compile_alone(path, "-std=c17", *mlir),
                        (path for path in files(".h") if not any(map(path.is_relative_to, apart))))
    if os.path.exists(os.path.join(python, "Python.h")):
        for path in files(".h", folders=("python",)):
            found += compile_alone(path, "-std=c17", "-isystem", python, "-DPy_LIMITED_API=0x030B0000")
    return found


def check_public_header():
    """public headers are C99 and C++17 clean"""
    found = []
    for path in files(".h", folders=("include",)):
        found += compile_alone(path, "-std=c99", "-pedantic-errors")
        found += compile_alone(path, "-std=c++17", "-pedantic-errors", language="c++")
    return found


def check_version():
    """cameo.h has the version of the file VERSION"""
    path = ROOT / "include/cameo.h"
    if not path.exists():
        return []
    parts = re.findall(r"#define CAMEO_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", read(path))
    wanted = read(ROOT / "VERSION").strip()
    if ".".join(parts) == wanted:
        return []
    return [place(path, 1, f"has version {'.'.join(parts)}, VERSION says {wanted}")]


def check_warnings():
    """gcc and clang have nothing to say"""
    commands = json.loads(read(ROOT / "build/compile_commands.json"))
    jobs = []
    for entry in commands:
        path = Path(entry["file"])
        # Generated files and files that went away since are not judged.
        if path.is_relative_to(ROOT / "build") or not path.exists():
            continue
        words = shlex.split(entry["command"])[1:]
        flags = [w for w in words if w.startswith(("-I", "-D", "-U", "-std", "-f"))
                 and not w.startswith(("-fvect-cost-model", "-falign-"))]  # clang knows others
        flags += [part for at, w in enumerate(words) if w == "-isystem" for part in words[at:at + 2]]
        if path.is_relative_to(ROOT / "tests"):
            flags.append("-Wno-missing-prototypes")
        if "-Wno-pedantic" in words:  # the Python extension: see cmake/python.cmake
            flags += [w for w in words if w.startswith("-Wno-")]
        jobs += [(path, [compiler, *WARNINGS, *flags]) for compiler in ("gcc", "clang")]

    def compile_one(job):
        path, command = job
        done = subprocess.run([*command, "-O2", "-S", "-o", os.devnull, str(path)],
                              stderr=subprocess.PIPE, text=True, cwd=ROOT / "build")
        found = re.findall(r"^(.*?):(\d+):\d+: (?:fatal )?error: (.*)$", done.stderr, re.M)
        if done.returncode and not found:
            found = [(str(path), 1, done.stderr.strip())]
        return [place((ROOT / "build" / name).resolve(), line, f"{command[0]}: {reason}")
                if (ROOT / "build" / name).resolve().is_relative_to(ROOT)
                else f"{name}:{line}: {command[0]}: {reason}" for name, line, reason in found]

    return list(dict.fromkeys(in_parallel(compile_one, jobs)))


def check_banned():
    """no banned functions"""
    everywhere = re.compile(r"\b(" + "|".join(BANNED) + r")\s*\(")
    library = re.compile(r"(?<!->)(?<!\.)\b(?:(" + "|".join(BANNED_IN_LIBRARY) +
                         r")\s*\(|fprintf\s*\(\s*(stdout|stderr)\b)")
    found = []
    for path in files(".c", ".h"):
        text = code_only(read(path))
        for number, match in lines_with(everywhere, text):
            found.append(place(path, number, f"{match.group(1)} is banned"))
        if path.is_relative_to(ROOT / "src"):
            for number, match in lines_with(library, text):
                name = match.group(1) or "fprintf to " + match.group(2)
                found.append(place(path, number, f"the library may not call {name}"))
    return found


def check_environment():
    """paths come from the environment by secure_getenv"""
    plain = re.compile(r"(?<!\w)getenv\s*\(")
    return [place(path, number, "getenv is for how the terminal looks: use secure_getenv")
            for path in files(".c", ".h", folders=("src", "cli"))
            if str(path.relative_to(ROOT)) not in MAY_READ_ENVIRONMENT
            for number, _ in lines_with(plain, code_only(read(path)))]


def check_memory():
    """src/ and cli/ allocate through functions that note or end on failure"""
    raw = re.compile(r"(?<![\w>.])(" + "|".join(RAW_MEMORY) + r")\s*\(")
    return [place(path, number, f"{match.group(1)} may return NULL unnoticed: use "
                  + ("cm_malloc and its kin" if path.is_relative_to(ROOT / "src") else "cli_alloc and its kin"))
            for path in files(".c", ".h", folders=("src", "cli"))
            if not str(path.relative_to(ROOT)).startswith(MAY_ALLOCATE)
            for number, match in lines_with(raw, code_only(read(path)))]


def check_terminal():
    """cli/ prints text that came from files through cli_put_text and its kin, never raw"""
    raw = re.compile(r"\b(?:printf|fprintf|fputs|puts|fwrite)\s*\([^;]*?(?:\.|->)(?:data|message)\b(?!\.)")
    return [place(path, number, "text from a file goes to a terminal as it is")
            for path in files(".c", folders=("cli",))
            for number, _ in lines_with(raw, code_only(read(path)))]


# What returns a view of text that it made in an arena, with a zero byte at the end.
MADE = re.compile(r"\b(?:cm_arena_printf|cm_arena_str|cm_type_print|cm_path_join|cm_path_folder|cm_json_quote|"
                  r"cm_import_name_node|cm_glue_\w+|print_dims|list_outputs|place_of|flags_of)\s*$")
# Functions of libc that read a string up to its zero byte.
TO_THE_END = re.compile(r"(?:str(?!n)\w+|regcomp|regexec|f?open(?:at|dir)?|l?stat|access|unlink|rename|mkdir)$")
AS_STRING = re.compile(r"format specifies|incompatible pointer types (?:passing 'const short|initializing '(?:const )?char|"
                       r"assigning to '(?:const )?char|returning 'const short)|pointer type mismatch")


def opening(text, at):
    """Where the bracket that is open at text[at] was opened; -1: nowhere in this statement."""
    depth = 0
    for i in range(at - 1, -1, -1):
        depth += (text[i] in ")]") - (text[i] in "([")
        if depth < 0:
            return i
        if text[i] in ";" and depth == 0:
            break
    return -1


def views_taken_for_strings(text, line, column, printed):
    """Each `X.data` from there to the end of the argument that may have no zero byte at its end."""
    at = sum(len(row) + 1 for row in text.split("\n")[:line - 1]) + column - 1
    statement = text[max(text.rfind(mark, 0, at) for mark in ";{}"):text.find(";", at)]
    for match in re.finditer(r"(\)|[\w\].>)-]*[\w\]])(?:\.|->)data\b", text[at:text.find(";", at)]):
        view, end = match.group(1), at + match.end()
        depth = [text[at:at + match.start()].count(c) for c in "()"]
        if text[at:at + match.start()].count(",") and depth[0] == depth[1]:
            return  # the next argument
        if view.endswith(")"):
            if not MADE.search(text[:opening(text, at + match.start(1))]):
                yield "what a function returns", end
            continue
        called = re.search(r"(\w*)\s*$", text[:max(opening(text, at), 0)]).group(1)
        before = text[max(0, at - 100):at]
        if printed:
            fine = re.search(r"(?:\(int\)[^;]*|\bshown),\s*$", before)
        elif TO_THE_END.match(called):
            fine = False
        else:
            near = statement if called not in ("", "for", "if", "while") else text[max(0, at - 300):end + 300]
            fine = view + ".size" in near or view + "->size" in near or text[end:end + 3].strip().startswith("+")
            fine = fine and "cameo_text" not in statement or called == "cm_lex_fail_at"  # which takes a position
        if not fine:
            yield f"'{view}'", end
        return


def check_views():
    """a view (struct cm_str) is taken for a string only through cm_str_text, and printed with its length"""
    if not shutil.which("clang"):
        raise Skipped("clang is not installed")
    jobs = []
    for entry in json.loads(read(ROOT / "build/compile_commands.json")):
        path = Path(entry["file"])
        if path.is_relative_to(ROOT / "src") and path.exists():
            words = shlex.split(entry["command"])
            flags = [w for w in words if w.startswith(("-I", "-D", "-U", "-std"))]
            flags += [part for at, w in enumerate(words) if w == "-isystem" for part in words[at:at + 2]]
            jobs.append((path, flags))

    def look(job):
        path, flags = job
        done = subprocess.run(["clang", "-fsyntax-only", "-Wno-everything", "-Wincompatible-pointer-types", "-Wformat",
                               "-Wpointer-type-mismatch", "-ferror-limit=0", "-fno-caret-diagnostics", f"-I{folder}", *flags,
                               str(path)], stderr=subprocess.PIPE, text=True, cwd=ROOT / "build")
        found = []
        for name, line, column, said in re.findall(r"^(.*?):(\d+):(\d+): warning: (.*)$", done.stderr, re.M):
            name = (ROOT / "build" / name).resolve()
            if AS_STRING.search(said) and "'const short *" in said and name.is_relative_to(ROOT):
                for view, _ in views_taken_for_strings(code_only(read(name)), int(line), int(column), "format" in said):
                    found.append(place(name, line, f"data of {view} may have no zero byte at its end"))
        return found

    # With a view whose data is of another type than char, a compiler tells where one is taken for a string.
    with tempfile.TemporaryDirectory() as folder:
        text = read(ROOT / "src/base/text.h")
        at = text.index("struct cm_str {")
        text = text[:at] + text[at:].replace("const char *data", "const short *data", 1)
        text = re.sub(r"\(s\)\.data : \"\"", "(const char *)(s).data : \"\"", text)
        text = text.replace("return text.data", "return (const char *)text.data")
        (Path(folder) / "base").mkdir()
        (Path(folder) / "base/text.h").write_text(text)
        return sorted(set(in_parallel(look, jobs)))


def check_inputs():
    """cli/ notes what it reads: models through cli_load_model, arrays through cameo_arrays_load with a limit"""
    raw = re.compile(r"\b(cameo_model_load|cameo_arrays_open)\s*\(")
    return [place(path, number, f"{match.group(1)} leaves the file unnoted or without a limit")
            for path in files(".c", folders=("cli",)) if path.name != "read_files.c"
            for number, match in lines_with(raw, code_only(read(path)))]


# Who may open files for writing, beside /proc: see struct cm_save and struct cm_stream in base/file.h.
WRITERS = {"src/base/file_save.c": "whole files and files that grow",
           "src/base/file_lock.c": "a lock, with a process id",
           "src/io/spool.c": "a temporary file without a name",
           "src/mlir/toolchain/tool.c": "a temporary folder of its own",
           "python/cameo/callbacks.py": "a log, line by line, after the first has replaced the old one"}


def python_writes(text):
    """Lines of a Python file that open a file for writing."""
    def mode(call, at):
        given = [word.value for word in call.keywords if word.arg == "mode"] + call.args[at:at + 1]
        return given[0].value if given and isinstance(given[0], ast.Constant) else "?" if given else "r"
    for call in ast.walk(ast.parse(text)):
        if not isinstance(call, ast.Call):
            continue
        function = call.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        owner = getattr(getattr(function, "value", None), "id", "")
        if (isinstance(function, ast.Name) and name == "open" and set(mode(call, 1)) - set("rbt") or
                name in ("write_text", "write_bytes", "touch", "mkstemp", "NamedTemporaryFile", "savez", "tofile") or
                (owner, name) in (("os", "open"), ("os", "fdopen"), ("io", "open"), ("shutil", "copy"),
                                  ("shutil", "copyfile"), ("shutil", "move"), ("numpy", "save"))):
            yield call.lineno


def check_writing():
    """files are written through cm_save and cm_stream (cli_output in cli/, write_file in Python), whole or not at all"""
    flags = re.compile(r"\bO_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND|TMPFILE)\b|"
                       r"\b(?:creat(?:64)?|mkstemps?|mkostemps?|tmpfile|tmpnam|tempnam|freopen|truncate)\s*\(|"
                       r"\b(?:SYS|__NR)_(?:open|openat|creat)\b|"
                       r"\b(?:ofstream|fstream|filebuf|raw_fd_ostream|ToolOutputFile)\b")
    opens = re.compile(r"\b(?:fopen|fopen64|fdopen|popen)\s*\([^;]*")
    reads = re.compile(r'[(,]\s*"r[be]*"\s*\)|\(\s*"/proc/')  # the mode, or a file that is none
    found = [place(path, number, "opens a file for writing") for path in files(".py", folders=("python/cameo",))
             if str(path.relative_to(ROOT)) not in WRITERS for number in python_writes(read(path))]
    for path in files(".c", ".h", ".cc", ".cpp", ".hpp", ".cu", folders=("src", "cli", "python/ext")):
        if str(path.relative_to(ROOT)) in WRITERS:
            continue
        text = read(path)
        code = code_only(text)
        lines = [number for number, _ in lines_with(flags, code)]
        lines += [number for number, match in lines_with(opens, code)
                  if not reads.search(text[match.start():match.end()])]
        found += [place(path, number, "opens a file for writing") for number in sorted(set(lines))]
    return found


def check_threads():
    """threads are started by cm_thread_start, which knows which signals they block"""
    raw = re.compile(r"\b(pthread_create|pthread_sigmask|sigprocmask|thrd_create)\s*\(")
    return [place(path, number, f"{match.group(1)} beside cm_thread_start")
            for path in files(".c", folders=("src", "cli")) if path != ROOT / "src/base/thread.c"
            for number, match in lines_with(raw, code_only(read(path)))]


def check_shapes():
    """ranks grow through cm_shape_insert, and kernels that size their outputs read scalars checked"""
    grows = re.compile(r"\bshape(?:->|\.)rank\s*(?:\+\+|\+=)|dims\[[^\]]*(?:->|\.)rank\+\+\]|"
                       r"struct cm_shape \w+ = \{\s*\.rank = [^,}]*rank \+|"
                       r"\bshape(?:->|\.)rank = [^;]*rank \+")
    reads = re.compile(r"\bcm_tensor_(?:int|real)\([^;]*?, 0\)|\*\(const \w+ \*\)[\w>.\[\]-]*\bdata\b")
    found = []
    for path in files(".c", folders=("src",)):
        text = code_only(read(path))
        if path.parent.name != "tensor":
            found += [place(path, number, "a rank grows without cm_shape_insert")
                      for number, _ in lines_with(grows, text)]
        if path.is_relative_to(ROOT / "src/ops") and "CM_OUTPUT_SIZE_AT_RUN" in text:
            found += [place(path, number, "a scalar is read without cm_call_int, _real or _bool")
                      for number, _ in lines_with(reads, text)]
    return found


def check_licence():
    """every source names its licence"""
    found = []
    sources = list(files(".c", ".h", ".py", ".sh", ".cmake",
                         folders=C_FOLDERS + ("cmake", "docs")))
    sources += [ROOT / "CMakeLists.txt", ROOT / "Makefile", ROOT / ".ci/run"]
    for path in sources:
        relative = path.relative_to(ROOT)
        if relative.parts[:2] == ("tests", "cli"):
            continue
        head = read(path).splitlines()[:30]
        if not head:
            found.append(place(path, 1, "is empty"))
        elif not any("SPDX-License-Identifier: Apache-2.0" in line for line in head):
            found.append(place(path, 1, "no SPDX line near the top"))
        elif path.suffix in (".c", ".h") and not head[0].startswith(("/*", "#!")):
            found.append(place(path, 1, "does not open with a line saying what it holds"))
    return found


def check_length():
    """no file is too long (one that says `table` in its first line may be, and cameo.h, which is the whole API)"""
    found = []
    for path in files(".c", ".h", ".py", ".sh"):
        lines = read(path).splitlines()
        whole = "table" in lines[0].lower() or place(path, 1, "").startswith("include/cameo.h")
        if len(lines) > LONGEST and not whole:
            found.append(place(path, len(lines), f"is longer than {LONGEST} lines"))
    return found


def check_names():
    """file names are lower case, say something, and are unique, apart from tests"""
    seen = {}
    found = []
    for path in files(".c", ".h", folders=("include", "src", "cli", "tests")):
        key = path.name, path.is_relative_to(ROOT / "tests")
        if not re.fullmatch(r"[a-z0-9_]+", path.stem):
            found.append(place(path, 1, "a file name is lower_snake"))
        if path.stem in ("utils", "util", "misc", "helpers", "common"):
            found.append(place(path, 1, f"'{path.stem}' does not say what the file holds"))
        if key in seen:
            found.append(place(path, 1, f"same name as {seen[key].relative_to(ROOT)}"))
        seen[key] = path
    return found


def check_tags():
    """struct and enum tags that files share are unique across the library"""
    seen = {}
    found = []
    for path in files(".c", ".h", folders=("include", "src")):
        text = code_only(read(path))
        for number, match in lines_with(r"(?m)^(?:struct|enum|union) (cm_\w+|cameo_\w+) *\{", text):
            tag = match.group(1)
            if tag in seen:
                found.append(place(path, number, f"'{tag}' is also {seen[tag]}"))
            seen[tag] = f"{path.relative_to(ROOT)}:{number}"
    return found


def check_comments():
    """a note of work left names an issue; no spaces at line ends"""
    found = []
    word = "TO" + "DO"
    for path in files(".c", ".h", ".py", ".sh", ".cmake", folders=C_FOLDERS + ("cmake",)):
        for number, match in lines_with(rf"\b({word}\b(?!\(#\d+\))|FIX" r"ME\b|XX" r"X\b)",
                                        read(path)):
            found.append(place(path, number, f"{match.group(1)} without an issue"))
        for number, _ in lines_with(r"[ \t]+\n", read(path)):
            found.append(place(path, number, "ends with spaces"))
    return found


def undocumented(path, body, inside=""):
    """Public classes and functions of a module without a docstring, nested ones too."""
    for node in body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) or node.name.startswith("_") or node.name == "main":
            continue
        # A property says what it is by its name, an overload by the function it belongs to.
        plain = not any(getattr(mark, "id", getattr(mark, "attr", "")) in ("overload", "setter", "property")
                        for mark in node.decorator_list)
        if plain and not ast.get_docstring(node):
            yield place(path, node.lineno, f"{inside}{node.name} has no docstring")
        if isinstance(node, ast.ClassDef) and not node.bases:  # of one with a base, the base's methods tell
            yield from undocumented(path, node.body, node.name + ".")


def check_python():
    """the Python package has docstrings, and lines that fit"""
    found = []
    for path in files(".py", ".pyi", folders=("python",)):
        text = read(path)
        found += [place(path, number, f"is longer than {WIDEST} characters")
                  for number, line in enumerate(text.splitlines(), 1) if len(line) > WIDEST and "tests" not in path.parts]
        if path.suffix == ".py" and path.is_relative_to(ROOT / "python/cameo"):
            tree = ast.parse(text)
            found += [] if ast.get_docstring(tree) else [place(path, 1, "the module has no docstring")]
            # What cameo itself exports out of the others is checked by python/tests/test_package.py.
            found += undocumented(path, tree.body) if not path.name.startswith("_") else []
    return found


def check_operator_names():
    """outside ops/, rewrite/, versions/, models/ and backends/ no operator is known by its name"""
    names = operator_names.read_names(sorted((ROOT / "data").glob("*.txt")))
    found = [place(Path(operator_names.__file__), 1, f"the check is wrong: {wrong}")
             for wrong in operator_names.check_examples(names)]
    for top in ("src", "cli"):
        for path in files(".c", ".h", folders=(top,)):
            found += [place(path, line, reason) for line, reason in
                      operator_names.find_comparisons(read(path), operator_names.folder_of(path.relative_to(ROOT)), names)]
    return found


class Skipped(Exception):
    """A check that cannot be made here. It counts neither as passed nor as failed."""


def checked_by(tool, path, otherwise):
    """Asks a tool with --check, whose exit code 2 says that it cannot know; path is what it judges."""
    python = ROOT / "build/venv/bin/python3"
    done = subprocess.run([str(python) if python.exists() else sys.executable,
                           str(ROOT / "tools" / tool), "--check"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, cwd=ROOT)
    if done.returncode == 2:
        raise Skipped(done.stdout.strip())
    if done.returncode == 0:
        return []
    print(done.stdout.strip()[-4000:])
    return [place(ROOT / path, 1, otherwise)]


def generated_by(tool):
    return checked_by(tool, f"tools/{tool}", "finds its files out of date: run `make gen`")


def check_abi():
    """exported symbols, layouts and numbers are those of data/abi.list"""
    return checked_by("abi.py", "data/abi.list", "the binary interface is another: see `make abi-update`")


def check_schemas():
    """data/ has the operators of the onnx package"""
    return generated_by("gen_operators.py")


def check_operators():
    """docs/operators.md says what there is of each operator"""
    return generated_by("gen_operator_docs.py")


def check_words():
    """messages are plain English (tools/list_messages.py lists them)"""
    return [place(ROOT / path, number, reason) for path, number, reason in prose.messages()]


def check_exports():
    """functions that headers of src/ declare are needed from there; data/exports.baseline only shrinks"""
    return [place(path, 1, reason) for path, reason in exports.findings()]


def check_prose():
    """no sentence more that has to be decoded (tools/prose.py; docs/glossary.md has the words)"""
    return list(prose.violations())


def check_dialect():
    """mlir-tblgen accepts the description of the ONNX dialect made from data/"""
    return checked_by("gen_dialect.py", "tools/gen_dialect.py", "mlir-tblgen refuses what it makes")


def check_gradients():
    """docs/gradients.md says how each operator is differentiated"""
    return generated_by("gen_gradient_docs.py")


def check_levels():
    """docs/core-operators.md has the levels of data/levels.list"""
    return generated_by("gen_core_docs.py")


def check_training():
    """docs/training.md has the losses and optimizers of data/training/, with their rates and states"""
    return [place(ROOT / "docs/training.md", line, why) for line, why in training_docs_tables.compare()]


def pages():
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def anchors(path):
    """Of the headings of a page, as GitHub makes them."""
    heads = re.findall(r"^#+ +(.*)$", read(path), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def broken_links(path, text):
    for line, match in lines_with(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text):
        target, anchor = match.groups()
        if target.startswith(("http:", "https:")):
            continue
        page = path.parent / target if target else path
        if not page.exists():
            yield place(path, line, f"there is no {target}")
        elif anchor and anchor not in anchors(page):
            yield place(path, line, f"{target or path.name} has no heading #{anchor}")


def missing_files(path, text):
    """Paths in backticks that begin with a folder of ours; NAME stands for any."""
    tops = "bench cli cmake data docs examples include src tests tools".split()
    for line, match in lines_with(r"`((?:%s)/[\w./-]*\w)`" % "|".join(tops), text):
        if "NAME" not in match.group(1) and not (ROOT / match.group(1)).exists():
            yield place(path, line, f"there is no {match.group(1)}")


def unknown_options(path, text, known):
    for line, match in lines_with(r"(?<![\w-])--[a-z][a-z0-9-]+(?![\w/-])", text):
        if match.group(0) not in known:
            yield place(path, line, f"nothing takes {match.group(0)}")


def markdown_files():
    listed = subprocess.run(["git", "ls-files", "*.md"], stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout.split()
    return [ROOT / name for name in listed] or pages()


def check_markdown():
    """paragraphs of Markdown files are wrapped (tools/wrap_markdown.py wraps them)"""
    return [place(path, 1, f"is not wrapped: run `tools/wrap_markdown.py {path.relative_to(ROOT)}`")
            for path in markdown_files() if wrap_markdown.wrap(path.read_text()) != path.read_text()]


def check_docs():
    """what the documentation links to, names and types is there"""
    sources = [*(ROOT / "cli").glob("*.c"), *(ROOT / "cli").glob("*.h"), ROOT / "Makefile"]
    sources += [*(ROOT / "tools").iterdir(), *(ROOT / "bench").glob("*.py")]
    sources += [path for folder in ("tests", "python") for path in (ROOT / folder).rglob("*.py")]
    ours = "\n".join(read(source) for source in sources if source.is_file())
    known = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", ours))
    known |= {"--preset", "--build", "--test-dir", "--install", "--prefix", "--libs", "--cflags"}
    found = []
    for path in pages():
        text = read(path)
        found += [*broken_links(path, text), *missing_files(path, text),
                  *unknown_options(path, text, known)]
    return found


# What pieces of code in the documentation may use without declaring it.
SNIPPETS = """#include <cameo_dlpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
struct cameo_model *model, *before, *after;
struct cameo_session *session;
struct cameo_trainer *trainer;
struct cameo_dataset *data;
struct cameo_batches *batches, *others;
struct cameo_value *value;
struct cameo_error err;
const struct cameo_feed *feeds;
size_t n;
double scalars[8];
"""


def snippet_program(block):
    """A piece of code as a program: functions and whole programs as they are, the rest in one."""
    if "int main(" in block:
        return block
    outside, inside, into = [], [], None
    lines = block.splitlines()
    for at, line in enumerate(lines):
        if into is None and re.match(r"static [^=;]*\)$", line) and lines[at + 1:at + 2] == ["{"]:
            into = outside
        (inside if into is None else outside).append(line)
        if line == "}":
            into = None
    return SNIPPETS + "\n".join(outside) + "\nvoid snippet(void);\nvoid snippet(void)\n{\n" + \
        "\n".join(inside) + "\n}\n"


def check_snippets():
    """C in docs/api.md and docs/running.md compiles"""
    found = []
    for path in (ROOT / "docs/api.md", ROOT / "docs/running.md"):
        text = read(path)
        for number, match in lines_with(r"(?s)```c\n(.*?)```", text):
            done = subprocess.run(["cc", "-std=c99", "-fsyntax-only", "-Wall", "-Werror", "-Wno-unused",
                                   "-Iinclude", "-x", "c", "-"], input=snippet_program(match.group(1)),
                                  stderr=subprocess.PIPE, text=True, cwd=ROOT)
            errors = re.findall(r"error: (.*)", done.stderr)
            found += [place(path, number, f"does not compile: {error}") for error in errors[:3]]
    return found


CHECKS = {name[6:]: check for name, check in {**vars(growable_arrays), **vars(long_macros), **globals()}.items()
          if name.startswith("check_")}


def main(wanted):
    unknown = [name for name in wanted if name not in CHECKS]
    if unknown:
        print(f"lint: no check '{unknown[0]}'; there are: {' '.join(CHECKS)}", file=sys.stderr)
        return 2
    passed = failed = 0
    for name in wanted or CHECKS:
        check = CHECKS[name]
        try:
            violations = check()
        except Skipped as reason:
            print(f"skip {name}: {check.__doc__}: {reason}")
            continue
        for violation in violations:
            print(violation)
        print(f"{'FAIL' if violations else 'ok':4} {name}: {check.__doc__}" +
              (f" ({len(violations)} violations)" if violations else ""))
        failed += bool(violations)
        passed += not violations
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
