"""What stands before the wake function on the way in: one that adds the token, one that checks a signature as AWS does."""

import hashlib
import hmac
import http.server
import threading
import urllib.parse

from front import TOKEN, ask


class Proxy:
    """Hands requests on to `front` with its token, where `admits` (of method, path, headers and body) lets them."""

    def __init__(self, front, admits=lambda *_: True):
        proxy, self.seen = self, []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                proxy.hand_on(self, front, admits)

            do_POST = do_PUT = do_DELETE = do_GET

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def hand_on(self, handler, front, admits):
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        self.seen.append((handler.command, handler.path))
        if not admits(handler.command, handler.path, handler.headers, body):
            status, headers, text = 403, {"Content-Type": "application/json"}, b'{"Message":"Forbidden"}'
        else:
            kept = {name: value for name, value in handler.headers.items() if name in ("Accept", "Content-Type")}
            kept["Authorization"] = f"Bearer {TOKEN}"
            answer = ask(front.url + handler.path, handler.command, body or None, kept)
            status, headers, text = answer.status, answer.headers, answer.body
        handler.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("connection", "content-length", "date", "server"):
                handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def is_signed_by(key, secret, region):
    """AWS Signature Version 4, by AWS's own description and without botocore, which the example signs with."""

    def admits(method, path, headers, body):
        scheme, _, fields = (headers.get("Authorization") or "").partition(" ")
        fields = dict(field.strip().split("=", 1) for field in fields.split(",") if "=" in field)
        if scheme != "AWS4-HMAC-SHA256" or not {"Credential", "SignedHeaders", "Signature"} <= fields.keys():
            return False
        at, names = headers.get("X-Amz-Date", ""), fields["SignedHeaders"].split(";")
        scope = f"{at[:8]}/{region}/lambda/aws4_request"
        url = urllib.parse.urlsplit(path)
        query = sorted(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        canonical = "\n".join([
            method, urllib.parse.quote(url.path), urllib.parse.urlencode(query, quote_via=urllib.parse.quote),
            *(f"{name}:{' '.join((headers.get(name) or '').split())}" for name in names), "", ";".join(names),
            hashlib.sha256(body).hexdigest(),
        ])
        text = "\n".join(["AWS4-HMAC-SHA256", at, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        derived = f"AWS4{secret}".encode()
        for part in scope.split("/"):
            derived = hmac.digest(derived, part.encode(), "sha256")
        signature = hmac.new(derived, text.encode(), "sha256").hexdigest()
        return (
            fields["Credential"] == f"{key}/{scope}" and {"host", "x-amz-date"} <= set(names)
            and hmac.compare_digest(signature, fields["Signature"])
        )

    return admits
