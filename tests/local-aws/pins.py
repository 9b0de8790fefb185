"""Refuses to start on packages other than the pinned ones. Import it before moto."""

import importlib.metadata
import pathlib
import re

# The launcher replaces methods of moto and calls private functions of botocore.
MUST_MATCH = ("moto", "boto3", "botocore")


def check() -> None:
    requirements = pathlib.Path(__file__).with_name("requirements.txt").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([A-Za-z0-9_-]+)==(\S+)$", requirements, re.MULTILINE))
    for name in MUST_MATCH:
        found = _version(name)
        if found != pinned[name]:
            raise SystemExit(
                f"local AWS: {name} is {found}, wanted {pinned[name]}: run tests/local-aws/install.sh and set "
                "PYTHONPATH to the absolute path of .tools/python"
            )


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


check()
