"""The manifest says what the zips are, and refuses what is no program."""

import base64
import hashlib
import tempfile
import unittest
import zipfile
from pathlib import Path

from manifest import manifest

X86, ARM = 62, 183


def folder_with(programs: dict[str, bytes]) -> Path:
    folder = Path(tempfile.mkdtemp())
    for name, program in programs.items():
        (folder / name).mkdir()
        with zipfile.ZipFile(folder / name / "bootstrap.zip", "w") as zipped:
            zipped.writestr("bootstrap", program)
    return folder


def elf(machine: int) -> bytes:
    return b"\x7fELF" + bytes(14) + machine.to_bytes(2, "little") + bytes(40)


class Manifest(unittest.TestCase):
    def test_names_the_architecture_and_each_hash(self):
        for machine, name in ((X86, "x86_64"), (ARM, "arm64")):
            folder = folder_with({"wake": elf(machine)})
            made = manifest(folder, ["wake"])
            zipped = (folder / "wake" / "bootstrap.zip").read_bytes()
            hash_ = base64.b64encode(hashlib.sha256(zipped).digest()).decode()
            self.assertEqual(made, {"architecture": name, "functions": {"wake": {"sha256": hash_}}})

    def test_refuses_two_architectures(self):
        folder = folder_with({"wake": elf(X86), "idle-check": elf(ARM)})
        with self.assertRaisesRegex(SystemExit, "arm64 and x86_64"):
            manifest(folder, ["wake", "idle-check"])

    def test_refuses_what_is_no_program(self):
        for program in (b"#!/bin/sh\n", b"\x7fELF" + bytes(40), b""):
            with self.assertRaisesRegex(SystemExit, "no Linux program"):
                manifest(folder_with({"wake": program}), ["wake"])


if __name__ == "__main__":
    unittest.main()
