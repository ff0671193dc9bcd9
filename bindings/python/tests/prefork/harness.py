"""Runs a real server, and collects the IDs that its workers answer."""

import array
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy
import pytest

# The modules of the service, before those that the tests were given.
PATH = [Path(__file__).parent, *filter(None, [os.environ.get("PYTHONPATH")])]
WORKERS = 4
IDS = 1_000_000
DEADLINE = 60.0


def program(name):
    """The path of a program, from this environment or from the system."""
    beside = Path(sys.executable).with_name(name)
    path = str(beside) if beside.exists() else shutil.which(name)
    if path is None and os.environ.get("RINGFLAKE_REQUIRE_SERVERS"):
        pytest.fail(f"{name} is not installed")
    return path or pytest.skip(f"{name} is not installed")


def eventually(what, condition):
    """Waits until the condition returns something true, and returns that."""
    end = time.monotonic() + DEADLINE
    while not (value := condition()):
        assert time.monotonic() < end, f"timed out waiting until {what}"
        time.sleep(0.01)
    return value


class Process:
    """A process that ends with the test, and what it wrote."""

    def __init__(self, directory, *command, **environment):
        self.log = Path(directory, f"{Path(command[0]).name}.log")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=directory,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, PATH)), **environment},
                start_new_session=True,
            )

    def wait_for(self, socket):
        """Waits until it listens there."""

        def listens():
            assert self.process.poll() is None, self.output()
            return socket.exists()

        eventually(f"{self.log.stem} listens", listens)

    def signal(self, number):
        self.process.send_signal(number)

    def output(self):
        return self.log.read_text(errors="replace")

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        try:
            self.signal(signal.SIGTERM)
            self.process.wait(60)
        finally:
            # Workers that outlived the master. The group has this test's processes only.
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
            if kind is not None:
                print(f"--- {self.log.name}\n{self.output()}")


class Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket, so that no test needs a free port."""

    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Lost(Exception):
    """A request without a whole answer, because its worker was killed."""

    def __init__(self, partial=b""):
        self.partial = partial


def get(path, count):
    """The body of one answer of the service at this socket."""
    connection = Connection(path)
    try:
        connection.request("GET", f"/?{count}")
        answer = connection.getresponse()
        body = answer.read()
    except http.client.IncompleteRead as error:
        raise Lost(error.partial) from error
    except (OSError, http.client.HTTPException) as error:
        raise Lost from error
    finally:
        connection.close()
    assert answer.status == 200, body
    return body


class Collector:
    """Asks a server from several threads at once, and keeps every ID."""

    def __init__(self, request):
        self.request = request
        self.count = 400
        self.lock = threading.Lock()
        self.batches = []
        self.total = 0
        self.workers = set()
        self.failure = None
        self.is_over = False
        self.threads = [threading.Thread(target=self.run) for _ in range(2 * WORKERS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        for thread in self.threads:
            thread.join()

    def run(self):
        while not self.is_over and self.failure is None:
            try:
                body = self.request(self.count)
            except Lost as lost:
                body = lost.partial
                # The master may be replacing its workers.
                time.sleep(0.01)
            except BaseException as error:
                self.failure = error
                return
            self.add(body)

    def add(self, body):
        words = array.array("Q", body[: len(body) // 8 * 8])
        if not words:
            return
        with self.lock:
            self.workers.add(words[0])
            self.batches.append(numpy.array(words[1:], dtype=numpy.uint64))
            self.total += len(words) - 1

    def wait(self, what, condition):
        def holds():
            if self.failure is not None:
                raise self.failure
            return condition()

        return eventually(what, holds)

    def new_workers(self, count, known):
        """Waits until so many workers have answered that are not among the known ones."""

        def found():
            with self.lock:
                new = self.workers - known
            return new if len(new) >= count else None

        return self.wait(f"{count} new workers answer", found)


def kill_and_reload(server, request, master_ids, is_worker):
    """Kills workers, reloads the server, and checks that no ID came twice."""
    with Collector(request) as ids:
        first = ids.new_workers(WORKERS, set())
        os.kill(max(first), signal.SIGKILL)
        replaced = ids.new_workers(1, first) | first

        server.signal(signal.SIGHUP)
        reloaded = ids.new_workers(WORKERS, replaced)
        ids.wait("the old workers end", lambda: not any(map(is_worker, replaced)))
        os.kill(max(filter(is_worker, reloaded)), signal.SIGKILL)
        ids.new_workers(1, replaced | reloaded)

        ids.count = 10_000
        ids.wait(f"{IDS} IDs are there", lambda: ids.total >= IDS)
    assert server.process.poll() is None
    of_master = numpy.fromfile(master_ids, dtype=numpy.uint64)
    assert len(of_master) >= 1_000
    every = numpy.concatenate([of_master, *ids.batches])
    assert len(numpy.unique(every)) == len(every), "an ID was issued twice"
    print(f"{len(every)} IDs from {len(ids.workers)} workers, no two alike")


def is_child_of(master):
    """Whether a process is a child of this one, or of one of its children, and runs."""

    def parent(pid):
        try:
            state, ppid = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if state == "Z" else int(ppid)

    return lambda pid: parent(pid) is not None and master in (parent(pid), parent(parent(pid)))
