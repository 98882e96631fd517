# SPDX-License-Identifier: Apache-2.0
"""Sessions: options, cancelling, Ctrl-C, threads, profiles."""

import os
import resource
import subprocess
import sys
import threading
import time
import unittest

import numpy

import cameo

ADD = """<ir_version: 8, opset_import: ["" : 17]>
add (float[N] x) => (float[N] y) { y = Add(x, x) }"""

# Turns of a loop: hours of them for a large n.
LOOP = """<ir_version: 8, opset_import: ["" : 17]>
loop (int64 n, float[4] x) => (float[4] y) {
    yes = Constant <value = bool {1}> ()
    y = Loop (n, yes, x) <body = turn (int64 i, bool go, float[4] v) => (bool on, float[4] w) {
        on = Identity (go)
        w = Sin (v)
    }>
}"""

LONG = {"n": numpy.array(1 << 60), "x": numpy.ones(4, numpy.float32)}
SHORT = {"n": numpy.array(2), "x": numpy.ones(4, numpy.float32)}

INTERRUPTED = f"""
import os, signal, sys, threading, time
import numpy, cameo
session = cameo.Session({LOOP!r})
x = numpy.ones(4, numpy.float32)
long, short = {{"n": numpy.array(1 << 60), "x": x}}, {{"n": numpy.array(2), "x": x}}
session.run(None, short)
handler = signal.getsignal(signal.SIGINT)
sent = []
def send():
    time.sleep(0.3)
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
for call in (lambda: session.run(None, long), lambda: session.run(None, long, cameo.Cancel())):
    threading.Thread(target=send).start()
    try:
        call()
        sys.exit("it ended by itself")
    except KeyboardInterrupt:
        late = time.monotonic() - sent[-1]
    assert late < 1, late
    assert numpy.allclose(session.run(None, short)[0], numpy.sin(numpy.sin(x)))
    assert signal.getsignal(signal.SIGINT) is handler

# A handler of the program's own: it is called, and where it raises nothing, the run was cancelled.
calls = []
signal.signal(signal.SIGINT, lambda *args: calls.append(1))
for cancel in (None, cameo.Cancel()):
    threading.Thread(target=send).start()
    try:
        session.run(None, long, cancel)
        sys.exit("it ended by itself")
    except cameo.CancelledError:
        pass
    session.run(None, short, cancel) # which the signal has not used up
assert calls == [1, 1]
signal.signal(signal.SIGINT, handler)

# A run on another thread goes on when the main thread is interrupted, and ends by its Cancel.
cancel, outcome = cameo.Cancel(), []
def work():
    try:
        session.run(None, long, cancel)
    except cameo.Error as error:
        outcome.append(type(error))
worker = threading.Thread(target=work)
worker.start()
threading.Thread(target=send).start()
try:
    worker.join()
    sys.exit("the thread ended by itself")
except KeyboardInterrupt:
    pass
assert not outcome
cancel.set()
for _ in range(50):
    time.sleep(0 if outcome else 0.1)
assert outcome == [cameo.CancelledError], outcome
assert numpy.allclose(session.run(None, short)[0], numpy.sin(numpy.sin(x)))

# The thread that forks is the child's main thread.
def forks():
    session.run(None, short)
    child = os.fork()
    if child == 0:
        status = 1
        signal.alarm(30)
        threading.Thread(target=send).start()
        try:
            session.run(None, long)
        except KeyboardInterrupt:
            status = 0
        finally:
            os._exit(status)
    outcome.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
worker = threading.Thread(target=forks)
worker.start()
worker.join()
assert outcome[-1] == 0, outcome
print("usable")
"""


class CancelTest(unittest.TestCase):
    def test_ctrl_c(self):
        # Later interpreters warn of every fork beside threads.
        done = subprocess.run([sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", INTERRUPTED],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "usable\n", ""))

    def test_a_cancel_that_is_set(self):
        session, cancel = cameo.Session(LOOP), cameo.Cancel()
        cancel.set()
        with self.assertRaises(cameo.CancelledError):
            session.run(None, SHORT, cancel)
        cancel.clear()
        self.assertEqual(session.run(None, SHORT, cancel)[0].shape, (4,))
        with self.assertRaisesRegex(TypeError, "cameo.Cancel"):
            session.run(None, SHORT, "now")

    def test_from_another_thread(self):
        session, cancel = cameo.Session(LOOP), cameo.Cancel()
        threading.Timer(0.1, cancel.set).start()
        began = time.monotonic()
        with self.assertRaises(cameo.CancelledError):
            session.run(None, LONG, cancel)
        self.assertLess(time.monotonic() - began, 10)


class RunTest(unittest.TestCase):
    def test_many_threads_at_once(self):
        session = cameo.Session(ADD)
        wrong = []

        def work(number):
            x = numpy.full(100 + number, number, numpy.float32)
            for _ in range(200):
                y, = session.run(None, {"x": x})
                if y.shape != x.shape or (y != 2 * number).any():
                    wrong.append(number)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_the_lock_is_released(self):
        session, cancel = cameo.Session(LOOP), cameo.Cancel()
        worker = threading.Thread(target=lambda: self.assertRaises(cameo.CancelledError, session.run, None, LONG, cancel))
        worker.start()
        count = sum(1 for _ in range(100_000))
        self.assertTrue(worker.is_alive())
        cancel.set()
        worker.join()
        self.assertEqual(count, 100_000)

    def test_options_that_make_no_sense(self):
        for options, error in [({"backend": "abacus"}, cameo.ArgumentError), ({"without": "nothing"}, cameo.Error),
                               ({"threads": "many"}, TypeError), ({"speed": 1}, TypeError)]:
            with self.subTest(options=options), self.assertRaises(error):
                cameo.Session(ADD, **options)

    def test_many_inputs_and_outputs(self):
        names = [f"x{i}" for i in range(9)]
        session = cameo.Session(f"""<ir_version: 8, opset_import: ["" : 17]>
many ({', '.join(f'float {name}' for name in names)}) => ({', '.join(f'float y{i}' for i in range(9))}) {{
    {' '.join(f'y{i} = Neg(x{i})' for i in range(9))}
}}""")
        feeds = {name: numpy.array(i, numpy.float32) for i, name in enumerate(names)}
        self.assertEqual([float(y) for y in session.run(None, feeds)], [-i for i in range(9)])
        self.assertEqual([float(y) for y in session.run(["y8", "y0", "y8"], feeds)], [-8, 0, -8])

    def test_values_of_a_run_outlive_the_session(self):
        y, = cameo.Session(ADD).run(None, {"x": [1, 2]})
        self.assertEqual(y.tolist(), [2, 4])

    def test_a_dict_that_changes_as_it_is_read(self):
        feeds = {}

        class Evil:
            def __array__(self, dtype=None, copy=None):
                feeds.clear()
                return numpy.ones(2, numpy.float32)
        feeds["x"] = Evil()
        self.assertEqual(cameo.Session(ADD).run(None, feeds)[0].tolist(), [2, 2])

    def test_profile(self):
        rows = cameo.Session(ADD).profile({"x": [1, 2]})
        self.assertEqual([row["op"] for row in rows], ["Add"])
        self.assertEqual(set(rows[0]), {"node", "domain", "op", "kernel", "declined", "depth", "begin_ns", "end_ns",
                                        "live_bytes", "id", "flops"})
        self.assertLessEqual(rows[0]["begin_ns"], rows[0]["end_ns"])
        self.assertIn(1, {row["depth"] for row in cameo.Session(LOOP, without="regions").profile(SHORT)})

    def test_all_that_cannot_run_is_listed(self):
        model = cameo.load(ADD.replace("Add", "my.One").replace('"" : 17', '"" : 17, "my" : 1'))
        with self.assertRaises(cameo.Error) as caught:
            cameo.Session(model)
        found, = caught.exception.findings
        self.assertEqual((found.rule, found.severity), ("run", "violation"))
        self.assertIn("my.One", found.place)

    def test_all_that_is_wrong_with_feeds_is_listed(self):
        with self.assertRaises(cameo.ArgumentError) as caught:
            cameo.Session(ADD).run(None, {"x": numpy.zeros(2), "q": numpy.zeros(2)})
        wrong, unknown = caught.exception.findings
        self.assertEqual((wrong.rule, wrong.value, wrong.reason), ("run", "x", "input 'x' is of type double, needs float"))
        self.assertEqual(wrong.help, "in NumPy, .astype('float32') makes it so")
        self.assertIn("there is no input 'q'", unknown.reason)

    def test_memory_does_not_grow(self):
        session = cameo.Session(ADD)
        x = numpy.ones(100, numpy.float32)
        room = {"y": numpy.empty(100, numpy.float32)}

        def calls(count):
            for _ in range(count):
                session.run(None, {"x": x})
                session.run(["y"], {"x": [1, 2]})
                session.run_into(room, {"x": x})
                try:
                    session.run(["z"], {"x": x})
                except cameo.ArgumentError:
                    pass
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        before = calls(1000)
        self.assertLess(calls(int(os.environ.get("CAMEO_CALLS", 5000))) - before, 2048)


if __name__ == "__main__":
    unittest.main()
