"""The log filter as one writes it in Python: gzip, json and one regular expression; prints TIMES BYTES NANOSECONDS."""

import base64
import gzip
import json
import re
import sys
import time

LINE = re.compile(
    r'"(?P<method>GET|POST|PUT|PATCH|DELETE) (?P<path>/v1/calls[^ "]*)[^"]*" '
    r'(?P<status>101|2\d\d|499|50[234]) \S+(?: "[^"]*" "(?P<agent>[^"]*)")?'
)
NOISE = re.compile(r"health|uptime|pingdom|bot\b|crawl|spider", re.IGNORECASE)


def wakes(data):
    """Whether a line of the batch is a call, and how many bytes were inflated."""
    text = gzip.decompress(base64.b64decode(data))
    for event in json.loads(text)["logEvents"]:
        found = LINE.search(event["message"])
        if found and not NOISE.search(found["agent"] or ""):
            return True, len(text)
    return False, len(text)


def main():
    with open(sys.argv[1], encoding="ascii") as file:
        data = file.read()
    times = int(sys.argv[2])
    began = time.perf_counter_ns()
    for _ in range(times):
        found, size = wakes(data)
    print(times, size, time.perf_counter_ns() - began)
    sys.exit(found)


if __name__ == "__main__":
    main()
