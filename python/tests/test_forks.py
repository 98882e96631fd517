# SPDX-License-Identifier: Apache-2.0
"""Processes: children of fork, interpreters that end with work in hand, sub-interpreters."""

import multiprocessing
import os
import signal
import sys
import unittest

import numpy

import cameo
from test_package import run_python

SQUARE = """<ir_version: 8, opset_import: ["" : 17]>
g (float[N,N] x) => (float[N,N] y) { a = MatMul(x, x)
    b = Relu(a)
    y = MatMul(b, x) }"""


def in_child(work):
    """The exit status of a child of fork that does the work: 0 where it returned True."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # ends a child that waits for ever
        status = 1
        try:
            status = 0 if work() else 1
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


SESSION = None


def run_in_worker(seed):
    """What a worker of multiprocessing does with a session of its parent."""
    x = numpy.random.default_rng(seed).random((64, 64), numpy.float32)
    return float(SESSION.run(None, {"x": x})[0].sum())


class ImportTest(unittest.TestCase):
    def test_a_fork_waits_for_an_import(self):
        done = run_python("""import os, signal, sys, threading, time
sys.setswitchinterval(1e-4)
thread = threading.Thread(target=__import__, args=("cameo",))
thread.start()
while "cameo._cameo" not in sys.modules:
    pass
child = os.fork()
if child == 0:
    signal.alarm(30)
    import cameo
    cameo.load('<ir_version: 8, opset_import: ["" : 17]> g (float[N] x) => (float[N] y) { y = Add(x, x) }')
    os._exit(0)
thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))""")
        self.assertEqual(done.stdout, "0\n", done.stderr)


class ForkTest(unittest.TestCase):
    def setUp(self):
        self.model = cameo.load(SQUARE)
        self.x = numpy.random.default_rng(1).random((200, 200), numpy.float32)

    def run_model(self, session):
        return session.run(None, {"x": self.x})[0]

    def agrees(self, session, want):
        """A child has fewer threads, which may choose another order of sums."""
        return numpy.allclose(self.run_model(session), want, rtol=1e-5)

    def test_a_session_goes_on_in_a_child(self):
        session = cameo.Session(self.model, threads=4)
        want = self.run_model(session)
        for _ in range(3):
            self.assertEqual(in_child(lambda: self.agrees(session, want)), 0)
        self.assertTrue((self.run_model(session) == want).all())

    def test_a_child_opens_sessions_of_its_own(self):
        want = self.run_model(cameo.Session(self.model, threads=4))
        self.assertEqual(in_child(lambda: self.agrees(cameo.Session(self.model, threads=3), want)), 0)

    def test_a_child_of_a_child(self):
        session = cameo.Session(self.model, threads=4)
        want = self.run_model(session)
        self.assertEqual(in_child(lambda: in_child(lambda: self.agrees(session, want)) == 0
                                  and self.agrees(session, want)), 0)

    def test_a_child_frees_what_it_was_given(self):
        held = [cameo.Session(self.model, threads=4)]
        self.run_model(held[0])

        def drop():
            held.clear()
            return True
        self.assertEqual(in_child(drop), 0)
        self.run_model(held[0])

    def test_workers_of_multiprocessing(self):
        global SESSION
        SESSION = cameo.Session(self.model, threads=2)
        want = [run_in_worker(seed) for seed in range(8)]
        context = multiprocessing.get_context("fork")
        with context.Pool(3) as pool:
            self.assertEqual(pool.map_async(run_in_worker, range(8)).get(120), want)


PROLOGUE = f"""
import threading, time, numpy, cameo
model = cameo.load('''{SQUARE}''')
x = numpy.ones((300, 300), numpy.float32)
"""


class ExitTest(unittest.TestCase):
    def check(self, code, *options):
        done = run_python(PROLOGUE + code, *options)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_with_sessions_and_arrays_alive(self):
        self.check("session = cameo.Session(model, threads=3); y = session.run(None, {'x': x})[0]; model._other = model")

    def test_while_threads_compute(self):
        self.check("""
session = cameo.Session(model, threads=2)
def work():
    while True:
        session.run(None, {'x': x})
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.5)
""")

    def test_in_development_mode(self):
        self.check("y = model.run(x=x)['y']; del model; y.sum()", "-X", "dev")


class SubinterpreterTest(unittest.TestCase):
    def test_is_refused_or_works(self):
        done = run_python("""
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import cameo
for _ in range(3):
    made = interpreters.create()
    try:
        interpreters.run_string(made, '''
import cameo
try:
    cameo.load(b"nothing")
except cameo.ModelError as error:
    pass
''')
    except interpreters.RunFailedError as error:
        print(error)
    interpreters.destroy(made)
cameo.libraries()
""" if sys.version_info < (3, 13) else """
import _interpreters as interpreters
import cameo
for _ in range(3):
    made = interpreters.create('legacy')
    failed = interpreters.exec(made, '''
import cameo
try:
    cameo.load(b"nothing")
except cameo.ModelError as error:
    pass
''')
    if failed:
        print(failed)
    interpreters.destroy(made)
cameo.libraries()
""")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for line in done.stdout.splitlines():  # one with an interpreter lock of its own
            self.assertIn("does not support loading in subinterpreters", line)


if __name__ == "__main__":
    unittest.main()
