"""What the tests of docs/adding-*.md share: changes that a page shows, applied to copies of files, compiled as the build
compiles their kin, and linked with the rest of a command."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import re
import shlex
import shutil
import subprocess


def run(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, **more)
    assert done.returncode == 0, f"{shlex.join(words)[:300]}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def refused(*words, **more):
    """What a command says that refuses something."""
    done = subprocess.run(words, capture_output=True, text=True, **more)
    assert done.returncode in (1, 2), f"{shlex.join(words)[:300]}: exit {done.returncode}"
    return done.stderr


def apply(root, work, change):
    """The files of the tree, copied and changed."""
    files = re.findall(r"^\+\+\+ b/(\S+)", change, re.M)
    for name in files:
        os.makedirs(os.path.dirname(os.path.join(work, name)), exist_ok=True)
        if os.path.exists(os.path.join(root, name)) and not os.path.exists(os.path.join(work, name)):
            shutil.copy(os.path.join(root, name), os.path.join(work, name))
    run("git", "apply", "-", cwd=work, input=change)
    return files


def compile_file(root, build, work, name, commands):
    """The object of a changed file: with the flags of the file that the build knows by its path or else by its name
    alone, as a generated file lies in another folder in each build; or else of the nearest one."""
    path = os.path.join(root, name)

    def likeness(known):
        return known == path, os.path.basename(known) == os.path.basename(path), len(os.path.commonpath([known, path]))
    like = commands[max(commands, key=likeness)]
    made, words = os.path.join(work, os.path.basename(name) + ".o"), shlex.split(like)
    words[words.index("-o") + 1] = made
    words[words.index("-c") + 1] = os.path.join(work, name)
    words.insert(words.index("-o"), "-I" + os.path.join(work, "src"))
    late = ["-I" + os.path.join(root, "src"), "-I" + os.path.dirname(path)]
    words = [word for word in words if word not in late] + late
    run(*words, cwd=build)
    return made


def link(build, work, objects):
    """A command of these objects, which are found before those of the library; those that the command has itself are
    left out."""
    lines = run("ninja", "-t", "commands", "cameo", cwd=build).splitlines()
    words = shlex.split(lines[-1].removeprefix(": && ").removesuffix(" && :"))
    own = {os.path.basename(made) for made in objects}
    words = [word for word in words if not (word.endswith(".o") and os.path.basename(word) in own)]
    out = words.index("-o")
    words[out + 1:out + 2] = [os.path.join(work, "cameo"), *objects]
    run(*words, cwd=build)
    return os.path.join(work, "cameo")


def changes_of(root, page):
    """The ```diff blocks of a page of docs/."""
    with open(os.path.join(root, "docs", page), encoding="utf-8") as file:
        return re.findall(r"```diff\n(.*?)```", file.read(), re.S)


def commands_of(build):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        return {row["file"]: row["command"] for row in json.load(file)}
