# A process that runs a network again when asked to, so that several can be measured in turns.
# SPDX-License-Identifier: Apache-2.0
import json
import subprocess


class Side:
    """A process that runs a network when asked to."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.times = []
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError(self.process.communicate()[1].strip()[-300:] or "it ended")

    def run(self, count):
        print(count, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.communicate()[1].strip()[-300:] or "it ended")
        times = [float(word) for word in line.split()]
        self.times += times
        return times

    def close(self):
        self.process.stdin.close()
        text = self.process.stdout.read()
        self.process.wait()
        return json.loads(text)
