"""Processes that end with the block that they serve; MiniStack as one of them, on loopback."""

import contextlib
import ctypes
import http.client
import ipaddress
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

Process = subprocess.Popen[bytes]
START_SECONDS = 60
LISTEN = "0A"
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Server:
    port: int
    session: int

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextlib.contextmanager
def ministack(work: Path, aws: dict[str, str]) -> Iterator[Server]:
    """With IAM in force: `aws` holds the keys of its root."""
    port = free_port()
    own = {
        "BIND_HOST": "127.0.0.1",  # all interfaces without it; the next two would listen on all whatever it says
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "GATEWAY_PORT": str(port),
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",  # what it gives to the functions
        "MINISTACK_REGION": aws["AWS_REGION"],
        "AUTH": "true",
        "TMPDIR": str(work),
        "STATE_DIR": str(work / "state"),
        "S3_DATA_DIR": str(work / "s3"),
    }
    command = [sys.executable, "-m", "ministack"]
    environment = {**os.environ, **aws, **own}
    with (work / "ministack.log").open("w") as log, session(command, work, log, environment) as process:
        wait_until_it_answers(process, port)
        yield Server(port, process.pid)


@contextlib.contextmanager
def session(
    command: list[str], folder: Path, log: TextIO, environment: dict[str, str] | None = None
) -> Iterator[Process]:
    """A process in a session of its own, which ends with the block, and with it whatever it has started."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=die_with_parent,
    )
    try:
        yield process
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def die_with_parent() -> None:
    """For a parent that is killed and runs no `finally`."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_it_answers(process: Process, port: int) -> None:
    until = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < until:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/_ministack/health")
            if connection.getresponse().status == 200:
                return
        except OSError:
            time.sleep(0.2)
    raise SystemExit(f"wiring: MiniStack does not answer: see target/wiring/ministack.log (exit {process.poll()})")


def listeners(session: int) -> set[str]:
    """The addresses on which the processes of a session listen, as ADDRESS:PORT."""
    sockets = {link for process in processes(session) for link in open_files(process) if link.startswith("socket:")}
    found = set()
    for table in ("tcp", "tcp6"):
        for row in Path("/proc/net", table).read_text().splitlines()[1:]:
            local, state, inode = (row.split()[column] for column in (1, 3, 9))
            if state == LISTEN and f"socket:[{inode}]" in sockets:
                found.add(local)
    return {f"{address(local)}:{int(local.split(':')[1], 16)}" for local in found}


def processes(session: int) -> list[Path]:
    # The name, in brackets, may hold spaces; the session is the fourth field after it.
    return [stat.parent for stat in Path("/proc").glob("[0-9]*/stat") if session_of(stat) == session]


def session_of(stat: Path) -> int | None:
    with contextlib.suppress(OSError):
        return int(stat.read_text().rpartition(")")[2].split()[3])
    return None


def open_files(process: Path) -> list[str]:
    links = []
    with contextlib.suppress(OSError):
        for entry in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                links.append(os.readlink(entry))
    return links


def address(local: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Of a row of /proc/net/tcp: words of 32 bits, each with its lowest byte first."""
    raw = bytes.fromhex(local.split(":")[0])
    packed = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    found = ipaddress.ip_address(packed)
    return getattr(found, "ipv4_mapped", None) or found


def beyond_loopback(addresses: set[str]) -> set[str]:
    return {one for one in addresses if not ipaddress.ip_address(one.rpartition(":")[0]).is_loopback}
