"""Terraform on a copy of the modules."""

import json
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server import session

ROOT = Path(__file__).resolve().parents[2]
# Ends by itself long before, unless a call has no answer.
CALL_SECONDS = 240


@dataclass(frozen=True)
class Terraform:
    program: str
    folder: Path

    @classmethod
    def on_a_copy(cls, program: str, work: Path, variables: dict[str, Any]) -> "Terraform":
        """On a copy, so that no state lies among the sources."""
        folder = work / "tests/wiring"
        folder.mkdir(parents=True)
        shutil.copytree(ROOT / "infra", work / "infra", ignore=shutil.ignore_patterns(".terraform*", "*.tfstate*"))
        shutil.copy(ROOT / "tests/wiring/main.tf", folder)
        # Held to the hash that is committed: another archive is refused.
        shutil.copy(ROOT / "tests/infra/terraform.lock.hcl", folder / ".terraform.lock.hcl")
        (folder / "terraform.tfvars.json").write_text(json.dumps(variables))
        made = cls(program, folder)
        made.run("init", "-lockfile=readonly")
        return made

    def run(self, verb: str, *arguments: str) -> str:
        command = [self.program, verb, "-no-color", *arguments]
        path = self.folder / f"{verb}.log"
        with path.open("w") as log, session(command, self.folder, log) as process:
            try:
                code = process.wait(CALL_SECONDS)
            except subprocess.TimeoutExpired as late:
                raise SystemExit(f"wiring: terraform {verb} did not end within {CALL_SECONDS} s: see {path}") from late
        said = path.read_text()
        if code != 0:
            raise SystemExit(f"wiring: terraform {verb} failed:\n{said[-4000:]}")
        return said

    def timed(self, verb: str, done: str) -> tuple[int, float]:
        """How many resources were `added` or `destroyed`, and how long that took."""
        began = time.monotonic()
        said = self.run(verb, "-auto-approve", "-input=false")
        found = re.search(rf"^\w+ complete! Resources:.*?(\d+) {done}", said, re.MULTILINE)
        return int(found[1]) if found else 0, time.monotonic() - began

    def outputs(self) -> dict[str, Any]:
        return {name: output["value"] for name, output in json.loads(self.run("output", "-json")).items()}

    def changes(self) -> dict[str, list[str]]:
        """What a plan would change, by the resource's type."""
        found: dict[str, list[str]] = {}
        for line in self.run("plan", "-json", "-input=false").splitlines():
            event = json.loads(line)
            if event["type"] == "planned_change":
                resource = event["change"]["resource"]
                found.setdefault(resource["resource_type"], []).append(resource["addr"])
        return found
