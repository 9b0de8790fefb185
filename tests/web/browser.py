"""Headless Chromium, steered over its own pipe (the DevTools protocol): no port, no client library, loopback only."""

import base64
import collections
import json
import os
import pathlib
import select
import subprocess
import tempfile
import time

SECONDS = 30
# No sandbox, since CI is root and loads only the page under test. Nothing but loopback is found by any name or address,
# and Chromium's own services ask for nothing.
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--proxy-server=http://127.0.0.1:9", "--proxy-bypass-list=<-loopback>;127.0.0.1", "--force-color-profile=srgb",
    "--remote-debugging-pipe", "--lang=en-GB",
]


class Browser:
    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self.out = os.pipe()
        self.into, theirs_out = os.pipe()

        def at_3_and_4():
            # They may lie on each other's place.
            low, high = os.dup2(theirs_in, 98), os.dup2(theirs_out, 99)
            os.dup2(low, 3)
            os.dup2(high, 4)

        program, profile = os.environ.get("CHROMIUM", "chromium"), f"--user-data-dir={self.profile.name}/profile"
        with open(pathlib.Path(self.profile.name, "stderr"), "wb") as log:
            self.process = subprocess.Popen(
                [program, *FLAGS, profile, "about:blank"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=at_3_and_4, close_fds=False,
                start_new_session=True,
            )
        os.close(theirs_in)
        os.close(theirs_out)
        self.count, self.rest, self.events = 0, b"", collections.deque()

    def close(self):
        for end in (self.out, self.into):
            os.close(end)
        # It ends with its pipe.
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.profile.cleanup()

    def send(self, method, session=None, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params} | ({"sessionId": session} if session else {})
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        wanted, gives_up = self.count, time.monotonic() + SECONDS
        while True:
            message = self.read(gives_up)
            if message.get("id") == wanted:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def read(self, gives_up):
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.into], [], [], max(0, gives_up - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser did not answer")
            data = os.read(self.into, 1 << 20)
            if not data:
                raise RuntimeError(f"the browser ended: {pathlib.Path(self.profile.name, 'stderr').read_text()[-2000:]}")
            self.rest += data
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def tab(self, **settings):
        context = self.send("Target.createBrowserContext")["browserContextId"]
        target = self.send("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Tab(self, session, context, **settings)


class Tab:
    """A page with no memory of others; `requests` is every request that it has made, in order."""

    def __init__(self, browser, session, context, scripts=False, size=(1280, 800), dark=False):
        self.browser, self.session, self.context = browser, session, context
        self.requests, self.told = [], []
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setScriptExecutionDisabled", value=not scripts)
        width, height = size
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setDeviceMetricsOverride", **screen)
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def send(self, method, **params):
        return self.browser.send(method, self.session, **params)

    def open(self, url):
        self.sort()
        loaded = self.loads
        error = self.send("Page.navigate", url=url).get("errorText")
        if error:
            raise RuntimeError(f"{url}: {error}")
        self.wait_for(lambda: self.loads > loaded)

    loads = 0

    def wait_for(self, what, seconds=SECONDS):
        """Reads what the browser tells until `what` holds."""
        gives_up = time.monotonic() + seconds
        self.sort()
        while not (found := what()):
            self.browser.events.append(self.browser.read(gives_up))
            self.sort()
        return found

    def sort(self):
        for event in list(self.browser.events):
            if event.get("sessionId") != self.session:
                continue
            self.browser.events.remove(event)
            method, params = event["method"], event["params"]
            if method == "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            elif method == "Page.loadEventFired":
                self.loads += 1
            elif method == "Log.entryAdded":
                self.told.append(params["entry"]["text"])

    def value(self, expression):
        """What an expression of the harness's gives; the page's own scripts do not run for that."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def click(self, what):
        """A person's click in the middle of an element, and the page that it leads to."""
        box = self.value(f"document.querySelector('{what}').getBoundingClientRect().toJSON()")
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        loaded = self.loads
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.wait_for(lambda: self.loads > loaded)

    def picture(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))

    def close(self):
        self.browser.send("Target.disposeBrowserContext", browserContextId=self.context)
