#!/usr/bin/env python3
# Reads every ELF file of a build, an installed tree or a wheel: what the loader searches, and what must be hardened.
# SPDX-License-Identifier: Apache-2.0
"""usage: elf.py [--ours NAME]... [--static FILE]... FOLDER|WHEEL...

Every ELF file below a FOLDER (or inside a WHEEL) must search absolute folders and $ORIGIN only: an empty or relative
element of RUNPATH means the working folder, where anybody may have put a library. Files whose name matches NAME are ours
and must be hardened too. A static library FILE must be compiled with control-flow protection in every member. The last line
counts the checks.
"""

import argparse
import fnmatch
import os
import struct
import sys
import zipfile

PT_DYNAMIC, PT_INTERP, PT_GNU_STACK, PT_GNU_RELRO = 2, 3, 0x6474E551, 0x6474E552
DT_STRTAB, DT_SYMTAB, DT_RPATH, DT_FLAGS, DT_RUNPATH, DT_FLAGS_1, DT_BIND_NOW = 5, 6, 15, 30, 29, 0x6FFFFFFB, 24
DF_BIND_NOW, DF_1_NOW, DF_1_PIE, EXECUTABLE = 8, 1, 0x08000000, 1
SHT_NOTE, NT_GNU_PROPERTY_TYPE_0 = 7, 5
# The property and the bits of it that say that code is ready for control-flow protection, by machine (e_machine).
CONTROL_FLOW = {62: (0xC0000002, 3), 183: (0xC0000000, 1)}  # x86: IBT and SHSTK; aarch64: BTI


class Elf:
    """A 64-bit little-endian ELF file: the parts of it that a loader obeys."""

    def __init__(self, data):
        self.data = data
        self.machine, = struct.unpack_from("<H", data, 18)
        phoff, shoff = struct.unpack_from("<QQ", data, 32)
        phsize, phnum, shsize, shnum = struct.unpack_from("<HHHH", data, 54)
        self.segments = [struct.unpack_from("<IIQQQQ", data, phoff + i * phsize) for i in range(phnum)]
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + i * shsize) for i in range(shnum)]
        self.dynamic = []
        for kind, _, offset, _, _, size in self.segments:
            if kind == PT_DYNAMIC:
                self.dynamic = [struct.unpack_from("<QQ", data, at) for at in range(offset, offset + size, 16)]
                self.dynamic = self.dynamic[:[tag for tag, _ in self.dynamic].index(0)]

    def offset(self, address):
        for kind, _, offset, start, _, size in self.segments:
            if kind == 1 and start <= address < start + size:
                return offset + address - start
        raise ValueError(f"address {address:#x} is in no segment")

    def tag(self, wanted, otherwise=0):
        return next((value for tag, value in self.dynamic if tag == wanted), otherwise)

    def string(self, at):
        start = self.offset(self.tag(DT_STRTAB)) + at
        return self.data[start:self.data.index(0, start)].decode()

    def searched(self):
        """Elements of RUNPATH and RPATH."""
        return [part for tag, value in self.dynamic if tag in (DT_RPATH, DT_RUNPATH)
                for part in self.string(value).split(":")]

    def segment(self, wanted):
        return next((segment for segment in self.segments if segment[0] == wanted), None)

    def uses(self, name):
        """Does the table of strings of the dynamic symbols have a name that contains this?"""
        start = self.offset(self.tag(DT_STRTAB))
        return name in self.data[start:start + self.tag(10)]

    def control_flow(self):
        """Is all code in it marked as ready for control-flow protection? None: unknown for the machine."""
        if self.machine not in CONTROL_FLOW:
            return None
        wanted, bits = CONTROL_FLOW[self.machine]
        for section in self.sections:
            kind, offset, size = section[1], section[4], section[5]
            at, end = offset, offset + size
            while kind == SHT_NOTE and at + 16 <= end:
                name_size, size, note = struct.unpack_from("<III", self.data, at)
                inside, at = at + 12 + (name_size + 3) // 4 * 4, at + 12 + (name_size + 3) // 4 * 4 + (size + 7) // 8 * 8
                while note == NT_GNU_PROPERTY_TYPE_0 and inside + 8 <= at:
                    property, length = struct.unpack_from("<II", self.data, inside)
                    if property == wanted and struct.unpack_from("<I", self.data, inside + 8)[0] & bits == bits:
                        return True
                    inside += 8 + (length + 7) // 8 * 8
        return False


def is_elf(data):
    return data[:6] == b"\x7fELF\x02\x01"


def unsafe_paths(elf):
    """Elements of RUNPATH that are relative to something other than the file itself."""
    for part in elf.searched():
        if not part.startswith("/") and part.split("/")[0] not in ("$ORIGIN", "${ORIGIN}"):
            yield f"searches '{part}' for libraries, which is relative to the working folder"


def weaknesses(elf):
    """What a hardened file lacks."""
    stack = elf.segment(PT_GNU_STACK)
    if not (elf.tag(DT_FLAGS) & DF_BIND_NOW or elf.tag(DT_FLAGS_1) & DF_1_NOW or elf.tag(DT_BIND_NOW, None) is not None):
        yield "has no relocations bound at start"
    if not elf.segment(PT_GNU_RELRO):
        yield "has no read-only relocations"
    if not stack or stack[1] & EXECUTABLE:
        yield "has no stack that cannot be run"
    if not elf.uses(b"__stack_chk_fail\0"):
        yield "has no stack protector"
    if not elf.uses(b"_chk\0"):
        yield "has no checked functions of libc"
    if elf.segment(PT_INTERP) and not elf.tag(DT_FLAGS_1) & DF_1_PIE:
        yield "has no addresses of its own choice"


def contents(place):
    """(name, bytes) of each ELF file below a folder or inside a wheel."""
    if os.path.isfile(place):
        with zipfile.ZipFile(place) as wheel:
            for name in wheel.namelist():
                data = wheel.read(name)
                if is_elf(data):
                    yield f"{place}: {name}", data
        return
    for folder, folders, names in os.walk(place):
        # Other people's packages, and builds of other kinds, which have a test of their own.
        folders[:] = [name for name in folders if not name.endswith("venv")
                      and not os.path.exists(os.path.join(folder, name, "CMakeCache.txt"))]
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                head = file.read(64)
                if is_elf(head) and head[16] in (2, 3):  # programs and shared objects
                    yield path, head + file.read()


def members(path):
    """(name, bytes) of each member of a static library."""
    with open(path, "rb") as file:
        data = file.read()
    at = 8
    while at + 60 <= len(data):
        size = int(data[at + 48:at + 58])
        member = data[at + 60:at + 60 + size]
        if is_elf(member):
            yield f"{path}: member at byte {at}", member
        at += 60 + size + size % 2


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--ours", action="append", default=[])
    parser.add_argument("--static", action="append", default=[])
    parser.add_argument("places", nargs="+")
    options = parser.parse_args()
    passed, wrong, hardened = 0, [], 0
    for place in options.places:
        for name, data in contents(place):
            elf = Elf(data)
            reasons = list(unsafe_paths(elf))
            if any(fnmatch.fnmatch(os.path.basename(name), pattern) for pattern in options.ours):
                reasons += weaknesses(elf)
                hardened += 1
            wrong += [f"{name} {reason}" for reason in reasons]
            passed += not reasons
    for path in options.static:
        bare = [name for name, data in members(path) if Elf(data).control_flow() is False]
        wrong += [f"{name} has no control-flow protection" for name in bare[:5]]
        passed += not bare
    if passed + len(wrong) == 0 or options.ours and not hardened:
        wrong.append(f"there is no ELF file to read in {' '.join(options.places)}")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"# counts: {passed} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
