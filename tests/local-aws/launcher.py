#!/usr/bin/env python3
"""Starts a local AWS on 127.0.0.1: moto with a virtual clock and what else README.md lists."""

import argparse
import email.utils
import os
import socket
import sys
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# Both are read when moto is imported. The default images take most of a second to load and
# again for each RunInstances; an instance may name any image without them.
os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"
os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")

import pins  # noqa: E402, F401  (before moto)
import clock  # noqa: E402, I001
from gateway import Gateway  # noqa: E402
from protocols import Answer, LostAnswer, Request  # noqa: E402
from world import World  # noqa: E402


class Handler(BaseHTTPRequestHandler):
    """HTTP/1.1 with connections kept open, as the SDKs expect; werkzeug's server closes them."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # the answer leaves in one piece
    gateway: Gateway
    clock: clock.VirtualClock

    def date_time_string(self, timestamp: float | None = None) -> str:
        """The `Date` of an answer. STS tells what time it is at AWS; of the others an SDK whose own clock is the real one
        would think that it is wrong, and ask once more for what was refused."""
        if timestamp is None and "/sts/aws4_request" in self.headers.get("authorization", ""):
            timestamp = self.clock.now_ms / 1000
        return email.utils.formatdate(timestamp, usegmt=True)

    def handle_aws(self) -> None:
        if "transfer-encoding" in self.headers:
            self.close_connection = True
            self.send_error(411)
            return
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        url = urllib.parse.urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, urllib.parse.unquote(url.path), url.query, headers, body)
        try:
            self._send(self.gateway.handle(request))
        except LostAnswer:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = handle_aws

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers.items():
            if name.lower() not in ("date", "server", "connection"):
                self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)
        self.wfile.flush()

    def log_message(self, *_args: object) -> None:
        """Quiet: /local-aws/calls is the log."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512  # tests open hundreds of connections at once

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is no fault of the server."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def exit_with_stdin() -> None:
    """Ends the process when the parent is gone, however it ended."""

    def wait() -> None:
        while sys.stdin.buffer.read(4096):
            pass
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 picks a free one (default)")
    parser.add_argument("--region", default="us-east-1", help="of calls that name none")
    parser.add_argument("--now", default=clock.DEFAULT_START, help="RFC 3339 time the clock begins with")
    parser.add_argument("--managed-policies", action="store_true", help="know AWS's own IAM policies (half a second)")
    parser.add_argument("--exit-with-stdin", action="store_true", help="exit when standard input closes")
    return parser.parse_args()


def main() -> None:
    chosen = arguments()
    if chosen.managed_policies:
        os.environ["MOTO_IAM_LOAD_MANAGED_POLICIES"] = "true"  # read whenever an account is made
    world = World(clock.parse_rfc3339(chosen.now))
    Handler.clock = world.clock
    Handler.gateway = Gateway(world, chosen.region)
    server = Server(("127.0.0.1", chosen.port), Handler)
    if chosen.exit_with_stdin:
        exit_with_stdin()
    print(f"listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
