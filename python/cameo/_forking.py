# What happens to the import of the package when another thread forks.
# SPDX-License-Identifier: Apache-2.0
"""A process that is forked while another thread imports a package does not have that thread, and its own import would wait
for it. So forking waits until the import is done. A fork that began before this module did is told by the lock: nobody took
it. Then the child forgets the half of the package that it has, and imports it anew."""

import importlib
import os
import sys
import threading

_importing = threading.RLock()


def _release() -> None:
    try:
        _importing.release()
    except RuntimeError:
        pass  # the fork began before the lock was there


def _in_child() -> None:
    global _importing
    whole = True
    try:
        _importing.release()
    except RuntimeError:
        whole = False
        _importing = threading.RLock()
    # Python's own locks of modules: the thread that has one may be on its last line, or lost.
    locks = getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})
    for name in {*sys.modules, *locks}:
        if name.split(".")[0] == __package__:
            locks.pop(name, None)
            if not whole:
                sys.modules.pop(name, None)


def imported() -> None:
    """The import is over: forking need not wait any more."""
    _importing.release()


_importing.acquire()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=lambda: _importing.acquire(), after_in_parent=_release, after_in_child=_in_child)
