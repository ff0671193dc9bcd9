"""Generators that are made before gunicorn, uWSGI and Celery fork their workers."""

import shutil
import tempfile
from pathlib import Path

import pytest
from harness import WORKERS, Lost, Process, get, is_child_of, kill_and_reload, program

PRELOAD = ["--preload", "--config", "python:gunicorn_hooks"]
# What a server writes when a worker is killed is its own; none of this may come from us.
COMPLAINTS = ("Traceback", "panicked", "ringflake", "Warning")


@pytest.fixture
def directory():
    """A directory with a short path, as Unix sockets need it."""
    path = Path(tempfile.mkdtemp(prefix="ids-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def environment(directory):
    """The settings of the service."""
    return {
        "PREFORK_DATA_DIR": str(directory / "data"),
        "PREFORK_MASTER_IDS": str(directory / "master"),
    }


def check_output(server):
    lines = [line for line in server.output().splitlines() if any(map(line.__contains__, COMPLAINTS))]
    assert lines == []


def run(server, socket, environment):
    with server:
        server.wait_for(socket)
        kill_and_reload(
            server,
            lambda count: get(socket, count),
            environment["PREFORK_MASTER_IDS"],
            is_child_of(server.process.pid),
        )
    check_output(server)


@pytest.mark.parametrize(
    "options",
    [[*PRELOAD], [*PRELOAD, "--threads", "4"], []],
    ids=["preload", "preload-threads", "each"],
)
def test_gunicorn_workers_share_no_id(directory, environment, options):
    socket = directory / "socket"
    server = Process(
        directory, program("gunicorn"), "service:application", *options,
        "--bind", f"unix:{socket}", "--no-control-socket", "--workers", WORKERS, **environment,
    )
    run(server, socket, environment)


@pytest.mark.parametrize(
    "options", [[], ["--enable-threads"], ["--lazy-apps"]], ids=["prefork", "threads", "lazy"]
)
def test_uwsgi_workers_share_no_id(directory, environment, options):
    socket = directory / "socket"
    server = Process(
        directory, program("uwsgi"), "--master", "--die-on-term", "--need-app", *options,
        "--http-socket", socket, "--module", "service", "--processes", WORKERS,
        "--disable-logging", **environment,
    )
    run(server, socket, environment)


def test_celery_workers_share_no_id(directory, environment):
    celery = pytest.importorskip("celery")
    redis = pytest.importorskip("redis")
    socket = directory / "redis"
    environment["PREFORK_REDIS"] = str(socket)
    broker = Process(
        directory, program("redis-server"), "--port", 0, "--unixsocket", socket, "--save", "",
    )
    with broker:
        broker.wait_for(socket)
        client = celery.Celery(broker=f"redis+socket://{socket}")

        def request(count):
            client.send_task("batch", [count])
            with redis.Redis(unix_socket_path=str(socket)) as answers:
                answer = answers.blpop("answers", timeout=1)
            if answer is None:
                raise Lost
            return answer[1]

        worker = Process(
            directory, program("celery"), "--app", "tasks", "worker", "--pool", "prefork",
            "--concurrency", WORKERS, "--without-gossip", "--without-mingle", **environment,
        )
        with worker:
            kill_and_reload(
                worker, request, environment["PREFORK_MASTER_IDS"], is_child_of(worker.process.pid)
            )
