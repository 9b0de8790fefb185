"""The waiting page of `GET /status`, in a headless Chromium with JavaScript switched off, in every phase that it can show.

The browser comes as people come: through something of the app's that adds the token, which a browser cannot. A picture of
each phase is left in target/web/."""

import http.server
import os
import pathlib
import re
import threading
import unittest

from browser import Browser
from front import ROOT, Front, ask
from proxy import Proxy

PICTURES = ROOT / "target" / "web"
ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
MOST_BYTES = 15_000
SIZES = {"390x844": (390, 844), "1280x800": (1280, 800)}

# scene, status, state, and what a person has to read
PHASES = [
    ("asleep", 503, "asleep", ""),
    ("starting", 202, "starting", ""),
    ("stopping", 202, "stopping_will_start", ""),
    ("will_start", 202, "will_start", ""),
    ("gate_closed", 403, "gate_closed", "closed for the audit"),
    ("no_capacity", 503, "no_capacity", "AWS has no machine"),
    ("fault", 503, "fault", "VcpuLimitExceeded"),
    ("full", 429, "full", ""),
    ("unknown", 503, "unknown", ""),
    ("no_node", 503, "no_node", ""),
]
# Seconds until the page looks again, where the answer has no `retry_after_seconds`: sooner would change nothing.
SELDOM = 60

# All of axe's rules but one: `meta-refresh` asks for no refresh at all, and without a script a page has no other way to go
# on. What the rule is about, that a reader loses a place or an entry, this page has not: a few lines and one button.
RULES = "axe.run({rules: {'meta-refresh': {enabled: false}}})"

LOOK = """(() => {
    const all = (what) => [...document.querySelectorAll(what)];
    const refresh = document.querySelector('meta[http-equiv=refresh i]');
    const bar = document.querySelector('progress');
    return {
        states: all('main').map((main) => main.dataset.state), lang: document.documentElement.lang, title: document.title,
        headings: all('h1').map((h1) => h1.innerText), text: document.body.innerText, scripts: all('script').length,
        buttons: all('button').map((button) => button.innerText), links: all('a').map((a) => a.href),
        refresh: refresh && refresh.content,
        progress: bar && {value: bar.value, max: bar.max, position: bar.position},
        is_wide: document.documentElement.scrollWidth > innerWidth,
    };
})()"""


class Target:
    """The app, to which people are taken once the node is ready."""

    def __init__(self):
        self.headers, seen = [], self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                seen.headers.append((self.path, dict(self.headers.items())))
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(b"<!doctype html><title>the app</title>")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        # With what has to be escaped in a page.
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/talk?a=1&b=2"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for name, start in (
            ("target", Target), ("front", lambda: Front(REVEILLE_TARGET_URL=cls.target.url)),
            ("proxy", lambda: Proxy(cls.front)), ("browser", Browser),
        ):
            setattr(cls, name, start())
            cls.addClassCleanup(getattr(cls, name).close)
        cls.url = cls.proxy.url + "/status"
        cls.axe = pathlib.Path(os.environ["AXE"]).read_text(encoding="utf-8")

    def tab(self, **settings):
        tab = self.browser.tab(**settings)
        self.addCleanup(tab.close)
        return tab

    def look(self, tab, url=None):
        tab.open(url or self.url)
        return tab.value(LOOK)

    def test_each_phase_is_shown_without_javascript(self):
        for scene, status, state, said in PHASES:
            with self.subTest(scene):
                getattr(self.front, scene)()
                told = self.front.status()
                self.assertEqual((told.status, told.state), (status, state), told)
                page = ask(self.url, headers={"Accept": ACCEPT})
                self.assert_is_page(page, told)
                tab = self.tab()
                seen = self.look(tab)
                self.assert_reads_well(seen, state, said)
                if state not in ("no_node", "unknown"):
                    self.assertRegex(seen["text"], f"Node {self.front.node} of [a-z]+: [a-z ]+[.]")
                self.assertEqual(tab.requests, [self.url], "nothing else is asked for, of nobody")
                self.assertEqual(tab.told, [entry for entry in tab.told if f"status of {status}" in entry])
                again = told.json.get("retry_after_seconds", SELDOM)
                self.assertEqual(seen["refresh"], f"{again}; url=status")
                in_words = f"every {again} seconds" if again < 120 else f"in about {again // 60} minutes"
                self.assertIn(in_words, seen["text"])
                self.assertEqual(seen["buttons"], ["Wake it"] if state == "asleep" else [])

    def assert_is_page(self, page, told):
        self.assertEqual((page.status, page.headers["Retry-After"]), (told.status, told.headers["Retry-After"]))
        wanted = {
            "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
        }
        self.assertEqual({name: page.headers[name] for name in wanted}, wanted)
        policy = [part.split() for part in page.headers["Content-Security-Policy"].split(";")]
        self.assertIn(["default-src", "'none'"], policy)
        self.assertFalse([part for part in policy if part[0].startswith("script-src")], policy)
        self.assertLess(len(page.body), MOST_BYTES)

    def assert_reads_well(self, seen, state, said=""):
        self.assertEqual((seen["states"], seen["scripts"], len(seen["headings"])), ([state], 0, 1), seen)
        self.assertTrue(seen["title"] and seen["lang"] and seen["headings"][0], seen)
        self.assertIn(said, seen["text"])
        for slip in ("null", "undefined", "{", "}", "Some("):
            self.assertNotIn(slip, seen["text"])
        self.assertEqual(seen["progress"] is not None, state in ("starting", "stopping_will_start"), seen)

    def test_each_phase_is_accessible_and_fits_a_phone(self):
        for scene, _, state, _ in PHASES + [("ready", 200, "ready", "")]:
            getattr(self.front, scene)()
            for dark in (False, True):
                for name, size in SIZES.items():
                    with self.subTest(scene, dark=dark, size=name):
                        # Its scripts are axe's: the page has none. The page that is left at once stands still for that.
                        tab = self.tab(scripts=True, size=size, dark=dark)
                        seen = self.open_still(tab) if state == "ready" else self.look(tab)
                        self.assertEqual(seen["states"], [state])
                        self.assertFalse(seen["is_wide"], "nothing has to be scrolled to the side")
                        tab.picture(PICTURES / f"{scene}-{name}{'-dark' if dark else ''}.png")
                        tab.value(self.axe)
                        found = tab.value(RULES)
                        # Where axe cannot tell a contrast it says so; a plain page gives it nothing to be unsure of.
                        faults = found["violations"] + found["incomplete"]
                        self.assertEqual([(fault["id"], [node["html"] for node in fault["nodes"]]) for fault in faults], [])
                        self.assertGreater(len(found["passes"]), 5)

    def open_still(self, tab):
        """The ready page without its way on, which would be taken before anybody has looked."""
        page = ask(self.url, headers={"Accept": ACCEPT})
        still, count = cut_refresh(page.body.decode())
        self.assertEqual(count, 1, page)
        tab.open("about:blank")
        frame = tab.send("Page.getFrameTree")["frameTree"]["frame"]["id"]
        tab.send("Page.setDocumentContent", frameId=frame, html=still)
        return tab.value(LOOK)

    def test_progress_is_told_against_the_boot_time(self):
        self.front.starting()
        seen = self.look(self.tab())["progress"]
        told = self.front.status().json["ready_in_seconds"]
        self.assertEqual(seen["max"] - seen["value"], told, "what is left of the boot")
        self.assertEqual(seen["value"], 10, "what has passed of it")
        self.front.pass_seconds(20)
        later = self.look(self.tab())["progress"]
        self.assertEqual((later["max"], later["value"]), (seen["max"], seen["value"] + 20))
        # Longer than the boot time, and not ready yet: never full, and never back.
        checks = {"instance": self.front.node, "status_ok_seconds": 300}
        self.front.admin("POST", "config", checks)
        self.addCleanup(self.front.admin, "POST", "config", checks | {"status_ok_seconds": 60})
        self.front.starting()
        self.front.pass_seconds(100)
        late = self.look(self.tab())["progress"]
        self.assertTrue(later["value"] < late["value"] < late["max"], (later, late))

    def test_a_person_wakes_the_node_waits_and_is_taken_to_the_app(self):
        self.front.asleep()
        tab, asked, met = self.tab(), len(self.proxy.seen), len(self.target.headers)
        self.assert_reads_well(self.look(tab), "asleep")
        self.assertEqual(self.front.calls("StartInstances"), [], "a look starts nothing")
        tab.click("button")
        self.assert_reads_well(tab.value(LOOK), "starting")
        self.assertEqual(len(self.front.calls("StartInstances")), 1)
        self.front.pass_seconds(180)
        tab.wait_for(lambda: len(self.target.headers) > met)
        self.assertEqual(self.proxy.seen[asked:], [("GET", "/status"), ("POST", "/wake"), ("GET", "/status")])
        tab.wait_for(lambda: self.target.url in tab.requests)
        path, headers = self.target.headers[met]
        self.assertEqual((path, headers.get("Referer"), headers.get("Authorization")), ("/talk?a=1&b=2", None, None))

    def test_the_page_of_one_node_stays_with_it(self):
        self.front.asleep()
        tab, asked = self.tab(), len(self.proxy.seen)
        self.assert_reads_well(self.look(tab, self.url + "?node=gpu-1"), "asleep")
        tab.click("button")
        tab.wait_for(lambda: len(self.proxy.seen) >= asked + 3)
        self.assertEqual(self.proxy.seen[asked + 2], ("GET", "/status?node=gpu-1"), "and not with the default pool")
        self.assertIn(f"wake#{self.front.node}", self.front.item(), "it is this node that was woken")

    def test_whoever_does_not_go_by_itself_finds_a_link(self):
        self.front.ready()
        seen = self.open_still(self.tab())
        self.assert_reads_well(seen, "ready")
        self.assertEqual(seen["links"], [self.target.url])
        _, _, content = ask(self.url, headers={"Accept": ACCEPT}).body.decode().partition("0; url=")
        self.assertTrue(content.startswith(self.target.url.replace("&", "&amp;")), content[:80])

    def test_without_a_target_the_page_says_that_the_node_is_ready(self):
        with Front() as front:
            proxy = Proxy(front)
            self.addCleanup(proxy.close)
            front.ready()
            self.assert_is_page(ask(proxy.url + "/status", headers={"Accept": ACCEPT}), front.status())
            tab = self.tab()
            seen = self.look(tab, proxy.url + "/status")
            self.assert_reads_well(seen, "ready")
            self.assertEqual((seen["refresh"], seen["links"]), (None, []))
            tab.picture(PICTURES / "ready-no-target-1280x800.png")

    def test_what_others_wrote_is_shown_as_text(self):
        reason = """<script>document.title = "x"</script><img src="http://192.0.2.1/a.png" onerror='x'>&amp;"'"""
        self.front.gate_closed(reason)
        tab = self.tab(scripts=True)
        seen = self.look(tab)
        self.assert_reads_well(seen, "gate_closed", reason)
        self.assertNotEqual(seen["title"], "x")
        self.assertEqual(tab.requests, [self.url])

    def test_only_who_prefers_a_page_gets_one(self):
        self.front.asleep()
        rows = [
            (ACCEPT, True), ("text/html", True), ("TEXT/HTML;charset=utf-8", True),
            ("application/json;q=0.5, text/html", True), ("text/html;q=0.9, */*;q=0.8", True),
            (None, False), ("*/*", False), ("application/json", False), ("application/json, text/html", False),
            ("application/json, text/html;q=0.5", False), ("text/html;q=0", False), ("text/html;q=0, */*", False),
            ("text/plain", False), (";;q=,", False),
        ]
        for accept, is_page in rows:
            with self.subTest(accept):
                answer = self.front.status(**({"Accept": accept} if accept else {}))
                kind = "text/html; charset=utf-8" if is_page else "application/json"
                self.assertEqual((answer.status, answer.headers["Content-Type"]), (503, kind))
        refused = [
            ("GET", "/status", {"Authorization": "Bearer wrong"}, 401), ("GET", "/status?pool=a+b", {}, 400),
            ("GET", "/status?pool=%3Cb%3E", {}, 400), ("GET", "/status?node=nobody", {}, 404), ("GET", "/wake", {}, 405),
        ]
        for method, path, headers, status in refused:
            with self.subTest(path, status=status):
                answer = self.front.ask(method, path, **{"Accept": ACCEPT} | headers)
                self.assertEqual((answer.status, answer.headers["Content-Type"]), (status, "application/problem+json"))
        rows = [("POST", "/wake", "text/html; charset=utf-8"), ("PUT", "/leases/call-1", "application/json")]
        for method, path, kind in rows:
            answer = self.front.ask(method, path, Accept=ACCEPT)
            self.assertEqual((answer.status, answer.headers["Content-Type"]), (202, kind))


def cut_refresh(page):
    return re.subn(r"<meta http-equiv=\"?refresh\"?[^>]*>", "", page, flags=re.IGNORECASE)


if __name__ == "__main__":
    unittest.main()
