#!/usr/bin/env python3
# Puts the libraries of others that the Python package needs beside it: tools/gather_libraries.py FOLDER
# SPDX-License-Identifier: Apache-2.0
"""usage: gather_libraries.py [--onednn FILE] [--licences FOLDER] FOLDER

FOLDER is the package as it goes into a wheel. What its module of image codecs is linked to is copied beside it, and so are
oneDNN (FILE, or out of the package onednn-cpu-gomp where that is installed) and the OpenMP runtime it needs. What every
Linux has stays out. Licences of what is copied go to the other FOLDER, where they are known. A library that nothing can be
found out about is left where it is: on this machine the package finds it there.
"""

import argparse
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys

# What a wheel for any Linux may expect: https://peps.python.org/pep-0600/
EVERYWHERE = re.compile(r"(?:linux-vdso|ld-linux.*|lib(?:c|m|dl|rt|pthread|gcc_s|stdc\+\+))\.so[.0-9]*$")


def needed(path):
    """{name: path} of the shared libraries that a file is linked to, and of those that these are."""
    lines = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    found = dict(re.findall(r"^\s*(\S+) => (/\S+)", lines, re.M))
    return {name: where for name, where in found.items() if not EVERYWHERE.match(os.path.basename(name))}


def owner(path):
    """The package of the system that a file came with, and where its licence is; (None, None) if that is not known."""
    # The same file may be known under /lib and under /usr/lib, or by a link to it.
    places = [os.path.realpath(path), path]
    places += [place[4:] if place.startswith("/usr/") else "/usr" + place for place in places]
    for command, licences in ((["dpkg", "-S"], ("/usr/share/doc/{}/copyright",)),
                              (["rpm", "-qf", "--qf", "%{NAME}:"], ("/usr/share/licenses/{}", "/usr/share/doc/{}"))):
        for place in places if shutil.which(command[0]) else ():
            done = subprocess.run([*command, place], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            name = done.stdout.partition(":")[0]
            for licence in licences:
                if done.returncode == 0 and os.path.exists(licence.format(name)):
                    return name, licence.format(name)
    return None, None


def packaged_onednn():
    """oneDNN and its licences out of Python's package, where it is installed."""
    try:
        files = importlib.metadata.files("onednn-cpu-gomp") or []
    except importlib.metadata.PackageNotFoundError:
        return None, []
    found = {file.name: os.path.realpath(file.locate()) for file in files}
    licences = [found[name] for name in ("LICENSE", "THIRD-PARTY-PROGRAMS") if name in found]
    return found.get("libdnnl.so.3"), licences


def copy_licence(source, name, folder):
    if folder and os.path.isdir(source):
        shutil.copytree(source, os.path.join(folder, name), dirs_exist_ok=True)
    elif folder:
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        shutil.copy(source, os.path.join(folder, name))


def gather(path, options):
    """Copies what a file in the folder needs."""
    for name, where in sorted(needed(path).items()):
        package, licence = owner(where)
        if not package:
            print(f"-- wheel: {name} stays outside: {where} belongs to no package, so its licence is not known")
        elif os.path.dirname(where) != os.path.realpath(options.folder):
            shutil.copy(os.path.realpath(where), os.path.join(options.folder, name))
            copy_licence(licence, package, options.licences)
            print(f"-- wheel: {name} of {package} is inside")


def note_mlir(path, options):
    """The module for MLIR has a part of MLIR inside; the rest, which is large, stays where the system has it."""
    for name, where in sorted(needed(path).items()):
        package, licence = owner(where)
        if package and name.startswith("libMLIR"):
            copy_licence(licence, package, options.licences)
            print(f"-- wheel: compiling models needs {name} of {package} where the wheel is used")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--onednn")
    parser.add_argument("--licences")
    options = parser.parse_args()
    for name in sorted(os.listdir(options.folder)):
        path = os.path.join(options.folder, name)
        if name.startswith("libcameo_codecs.so"):
            gather(path, options)
        elif name.startswith("libcameo_mlir.so"):
            note_mlir(path, options)
    onednn, licences = (options.onednn, []) if options.onednn else packaged_onednn()
    if onednn:
        into = os.path.join(options.folder, os.path.basename(onednn))
        shutil.copy(onednn, into)
        for licence in licences:
            copy_licence(licence, "onednn", options.licences)
        gather(into, options)
        print(f"-- wheel: {os.path.basename(onednn)} (oneDNN) is inside")
    else:
        print("-- wheel: oneDNN is not inside (package onednn-cpu-gomp is not installed): the system's is used where there "
              "is one, and models run many times slower where there is none")
    return 0


if __name__ == "__main__":
    sys.exit(main())
