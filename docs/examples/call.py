"""One call on a node, from entry to its end. Python's standard library; botocore too where the URL is behind AWS_IAM.

In an app:

    with Call(url, bearer(token)) as call:    # waits until a node is ready and takes a lease
        talk(call.address)                    # a thread renews it; call.lost is set if it was lost

By hand, as call.sh, with the same exits; without TOKEN it signs, with credentials and region as the AWS tools take them:

    URL=https://… TOKEN=… python3 call.py COMMAND…
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid


class NoNode(Exception):
    """There is no node, and why."""


def bearer(token):
    """For REVEILLE_ACCESS=token."""
    return lambda method, url, body: {"Authorization": f"Bearer {token}"}


def signed(region):
    """For REVEILLE_ACCESS=iam: AWS Signature Version 4."""
    import botocore.session
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest

    session = botocore.session.get_session()
    signer = SigV4Auth(session.get_credentials(), "lambda", region or session.get_config_variable("region"))

    def headers(method, url, body):
        request = AWSRequest(method, url, data=body)
        signer.add_auth(request)
        return dict(request.headers)

    return headers


class Call:
    def __init__(self, url, headers, wait_seconds=90, ttl_seconds=120):
        self.url, self.headers, self.wait_seconds, self.ttl_seconds = url.rstrip("/"), headers, wait_seconds, ttl_seconds
        self.path = f"/leases/call-{uuid.uuid4()}"
        self.node = self.address = None
        self.over, self.lost = threading.Event(), threading.Event()

    def __enter__(self):
        try:
            answer = self.wait()
        except BaseException:
            # A call that has hung up waits no longer: no node is started for it.
            self.ask("DELETE", self.path)
            raise
        self.node, self.address = answer["node"], answer.get("address")
        self.renewing = threading.Thread(target=self.renew, daemon=True)
        self.renewing.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.renewing.join()
        self.ask("DELETE", self.path)

    def wait(self):
        gives_up = time.monotonic() + self.wait_seconds
        status, pause, answer = self.ask("POST", "/wake")
        while True:
            if status == 200:
                status, pause, answer = self.ask("PUT", self.path, {"ttl_seconds": self.ttl_seconds})
                if status == 200:
                    return answer
            # 0: no answer. Each of these may be another one in a moment; asking again is safe.
            if status not in (0, 202, 429, 502, 503) or time.monotonic() + pause > gives_up:
                raise NoNode(f"no node ({status}): {json.dumps(answer)}")
            time.sleep(pause)
            status, pause, answer = self.ask("GET", "/status")

    def renew(self):
        while not self.over.wait(self.ttl_seconds / 3):
            status, _, _ = self.ask("PUT", self.path, {"ttl_seconds": self.ttl_seconds, "renew": True})
            # After anything else the next one is in time still.
            if status in (409, 410):
                self.lost.set()
                return

    def ask(self, method, path, body=None):
        """The status, the seconds to wait before asking again, and the answer."""
        data = None if body is None else json.dumps(body).encode()
        headers = self.headers(method, self.url + path, data) | {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.status, *read(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, *read(error)
        except OSError as error:
            return 0, 5, str(error)


def read(response):
    text = response.read().decode()
    pause = int(response.headers.get("Retry-After", 5))
    return pause, json.loads(text) if text else {}


def main(command):
    token, region = os.environ.get("TOKEN"), os.environ.get("AWS_REGION")
    limits = {name: int(os.environ[name.upper()]) for name in ("wait_seconds", "ttl_seconds") if name.upper() in os.environ}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    try:
        with Call(os.environ["URL"], bearer(token) if token else signed(region), **limits) as call:
            environment = os.environ | {"NODE": call.node, "ADDRESS": call.address or ""}
            with subprocess.Popen(command, env=environment) as process:
                try:
                    while not call.lost.is_set():
                        try:
                            return process.wait(timeout=1)
                        except subprocess.TimeoutExpired:
                            pass
                finally:
                    process.terminate()
            print("the lease was lost: begin again", file=sys.stderr)
            return 75
    except NoNode as why:
        print(why, file=sys.stderr)
        return 69


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit("usage: URL=… TOKEN=… python3 call.py COMMAND…")
    sys.exit(main(sys.argv[1:]))
