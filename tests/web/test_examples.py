"""The examples and the lines of docs/calls.md, each run as it is written."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from front import PLACES, ROOT, TOKEN, Front, ends_with_its_parent
from proxy import Proxy, is_signed_by

EXAMPLES = {
    "call.sh": ["sh", str(ROOT / "docs/examples/call.sh")],
    "call.py": [sys.executable, str(ROOT / "docs/examples/call.py")],
}
# The command of a call: says what it was given, and goes on until it is told to end.
TALK = 'echo "$NODE $ADDRESS" >"$0/begun"; read word <"$0/end"; exit "$word"'
KEY, SECRET, REGION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "eu-central-1"


def until(what, seconds=30):
    """Waits for what another process brings about."""
    gives_up = time.monotonic() + seconds
    while not (found := what()):
        if time.monotonic() > gives_up:
            raise AssertionError(f"not within {seconds} s")
        time.sleep(0.05)
    return found


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.front = Front()
        cls.addClassCleanup(cls.front.close)

    def call(self, name, url=None, **variables):
        """The example as a process of its own, its command waiting in a new folder."""
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        place = pathlib.Path(place.name)
        os.mkfifo(place / "end")
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME") if name in os.environ}
        variables = kept | {"URL": url or self.front.url, "TOKEN": TOKEN, "TTL_SECONDS": "10", "no_proxy": "*"} | variables
        process = subprocess.Popen(
            [*EXAMPLES[name], "sh", "-c", TALK, str(place)],
            env={name: value for name, value in variables.items() if value},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            preexec_fn=lambda: ends_with_its_parent(signal.SIGTERM),
        )
        self.addCleanup(end_all, process)
        return process, place

    def leases(self):
        """The ends of the leases that the ledger has for the node."""
        leases = self.front.item().get(f"leases#{self.front.node}", {"M": {}})["M"]
        return [lease["M"]["until"]["S"] for lease in leases.values()]

    def begun(self, place):
        """The node starts, and becomes ready; then the call begins."""
        until(lambda: self.front.calls("StartInstances"))
        self.front.pass_seconds(120)
        return until(lambda: (place / "begun").is_file() and (place / "begun").read_text())

    def test_a_call_waits_for_its_node_holds_it_and_lets_it_go(self):
        for name in EXAMPLES:
            with self.subTest(name):
                self.front.asleep()
                self.goes_through(*self.call(name))

    def goes_through(self, process, place):
        said = self.begun(place)
        [node] = self.front._nodes()
        self.assertEqual(said.split(), [node["InstanceId"], node["PrivateIpAddress"]])
        [given] = self.leases()
        self.front.pass_seconds(5)
        [renewed] = until(lambda: [end for end in self.leases() if end > given])
        self.assertEqual(len(self.front.calls("StartInstances")), 1)
        (place / "end").write_text("7\n")
        _, errors = process.communicate(timeout=30)
        self.assertEqual((process.returncode, errors), (7, ""), "the command's own exit")
        self.assertEqual(self.leases(), [], f"the lease that was to last until {renewed} is ended")

    def test_a_call_behind_aws_iam_is_signed(self):
        self.front.asleep()
        proxy = Proxy(self.front, is_signed_by(KEY, SECRET, REGION))
        self.addCleanup(proxy.close)
        identity = {"TOKEN": "", "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": REGION}
        self.goes_through(*self.call("call.py", proxy.url, **identity))
        self.assertIn("DELETE", [method for method, _ in proxy.seen])
        process, _ = self.call("call.py", proxy.url, **identity | {"AWS_SECRET_ACCESS_KEY": "another"})
        _, errors = process.communicate(timeout=30)
        self.assertEqual((process.returncode, errors), (69, 'no node (403): {"Message": "Forbidden"}\n'))

    def test_a_call_without_a_node_is_told_why_at_once(self):
        rows = [
            ("gate_closed", "closed for the audit"), ("no_capacity", "InsufficientInstanceCapacity"),
            ("fault", "VcpuLimitExceeded"),
        ]
        for name in EXAMPLES:
            for scene, why in rows:
                with self.subTest(name, scene=scene):
                    getattr(self.front, scene)()
                    process, place = self.call(name)
                    _, errors = process.communicate(timeout=30)
                    self.assertEqual((process.returncode, why in errors), (69, True), errors)
                    self.assertEqual((self.leases(), (place / "begun").exists()), ([], False))

    def test_a_call_waits_no_longer_than_it_is_told(self):
        for name in EXAMPLES:
            with self.subTest(name):
                self.front.asleep()
                process, _ = self.call(name, WAIT_SECONDS="6")
                _, errors = process.communicate(timeout=30)
                self.assertEqual((process.returncode, "starting" in errors), (69, True), errors)

    def test_a_call_whose_node_is_full_waits_and_hangs_up(self):
        for name in EXAMPLES:
            with self.subTest(name):
                self.front.full()
                process, place = self.call(name, WAIT_SECONDS="6")
                _, errors = process.communicate(timeout=30)
                self.assertEqual((process.returncode, '"full"' in errors), (69, True), errors)
                self.assertEqual((len(self.leases()), (place / "begun").exists()), (PLACES, False))

    def test_a_call_that_loses_its_lease_is_ended(self):
        for name in EXAMPLES:
            with self.subTest(name):
                self.front.asleep()
                process, place = self.call(name)
                self.begun(place)
                # An hour without a renewal, as after a laptop was closed; another call has cleared it away.
                self.front.pass_seconds(3600)
                self.front.lease("another")
                _, errors = process.communicate(timeout=30)
                self.assertEqual((process.returncode, errors), (75, "the lease was lost: begin again\n"))

    def test_a_call_that_is_broken_off_lets_its_node_go(self):
        for name in EXAMPLES:
            with self.subTest(name):
                self.front.asleep()
                process, place = self.call(name)
                self.begun(place)
                self.assertEqual(len(self.leases()), 1)
                process.send_signal(signal.SIGTERM)
                _, errors = process.communicate(timeout=30)
                self.assertEqual((process.returncode, errors, self.leases()), (130, "", []))

    def test_the_token_is_on_no_command_line(self):
        self.front.asleep()
        process, _ = self.call("call.sh")
        seen = set()
        while process.poll() is None and not self.front.calls("StartInstances"):
            for line in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    seen |= {text for text in line.read_text(errors="replace").split("\0") if TOKEN in text}
                except OSError:
                    pass
        self.assertEqual(seen, set())

    def test_the_lines_of_the_docs_are_a_call(self):
        self.front.asleep()
        text = (ROOT / "docs" / "calls.md").read_text(encoding="utf-8")
        [block] = re.findall(r"^```sh\n(curl.*?)^```", text, re.MULTILINE | re.DOTALL)
        lines = re.split(r"\n(?=curl)", block.strip())
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        # As written, but that curl says the status too.
        pathlib.Path(home.name, ".curlrc").write_text('silent\nwrite-out = " %{http_code}"\n')
        variables = {"CURL_HOME": home.name, "URL": self.front.url, "TOKEN": TOKEN, "no_proxy": "*"}
        seen = []
        for line in lines:
            run = subprocess.run(
                ["sh", "-c", line], capture_output=True, text=True, timeout=30,
                env=variables | {"PATH": os.environ["PATH"]},
            )
            state = re.search(r'"state":"(\w+)"', run.stdout)
            seen.append((int(run.stdout.split()[-1]), state and state[1], len(self.leases())))
            self.front.pass_seconds(60)
        wanted = [(202, "starting", 0), (200, "ready", 0), (200, "leased", 1), (200, "leased", 1), (204, None, 0)]
        self.assertEqual(seen, wanted)


def end_all(process):
    """The example and its command, whatever is left of them."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.communicate()


if __name__ == "__main__":
    unittest.main()
