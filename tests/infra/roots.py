"""Roots of Terraform, each in a checkout of its own, on a local AWS."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stage import REPO, Aws, require


@dataclass
class Tool:
    terraform: str
    work: Path
    package: Path
    day: Path | None

    def root(self, folder: str, name: str, aws: Aws, variables: dict[str, Any]) -> "Root":
        """A checkout of its own, initialised, with nothing but its terraform.tfvars.json written into it."""
        checkout = self.work / "applied" / name
        shutil.rmtree(checkout, ignore_errors=True)
        for part in ("infra", "tests/infra/full"):
            shutil.copytree(REPO / part, checkout / part, ignore=shutil.ignore_patterns(".terraform*", "*.tfstate*"))
        root = Root(self, checkout / folder, name, aws)
        shutil.copy(REPO / "tests/infra/terraform.lock.hcl", root.folder / ".terraform.lock.hcl")
        root.write(variables)
        root.run("init", "-lockfile=readonly")
        return root


@dataclass
class Root:
    tool: Tool
    folder: Path
    name: str
    aws: Aws
    ran: int = 0

    def write(self, variables: dict[str, Any]) -> None:
        given = {"package": str(self.tool.package)} | variables
        (self.folder / "terraform.tfvars.json").write_text(json.dumps(given))

    def call(self, command: str, *options: str) -> tuple[int, str]:
        """Its exit code and all that it said."""
        self.ran += 1
        environment = os.environ | {
            "AWS_ENDPOINT_URL": self.aws.url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        # Every call ends, whatever a provider does.
        full = ["timeout", "-k", "10", "240", self.tool.terraform, command, "-no-color", *options]
        ran = subprocess.run(full, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        said = ran.stdout + ran.stderr
        (self.folder.parents[2] / f"{self.ran:02}-{command}.log").write_text(said)
        return ran.returncode, said

    def run(self, command: str, *options: str) -> str:
        code, said = self.call(command, *options)
        require(code == 0, f"{self.name}: terraform {command} ended with {code}:\n{said[-4000:]}")
        return said

    def apply(self) -> str:
        return self.run("apply", "-auto-approve", "-input=false")

    def destroy(self) -> str:
        return self.run("destroy", "-auto-approve", "-input=false")

    def refused(self, command: str, *texts: str) -> str:
        """The command fails, and says each of these."""
        options = ["-auto-approve"] if command == "apply" else []
        code, said = self.call(command, "-input=false", *options)
        require(code == 1, f"{self.name}: terraform {command} ended with {code} and should have been refused:\n{said[-4000:]}")
        words = " ".join(said.split())  # it breaks its messages into lines
        missing = [text for text in texts if text not in words]
        require(not missing, f"{self.name}: the refusal does not say {missing}:\n{said[-4000:]}")
        return said

    def require_no_change(self, when: str) -> None:
        code, said = self.call("plan", "-detailed-exitcode", "-input=false")
        require(code == 0, f"{self.name}: the plan {when} is not empty ({code}):\n{said[-6000:]}")

    def types(self) -> set[str]:
        """Of the resources in the state."""
        state = json.loads((self.folder / "terraform.tfstate").read_text())
        return {one["type"] for one in state["resources"] if one["mode"] == "managed"}
