"""Writes manifest.json: the architecture that the programs are built for, and each zip's hash as Lambda has it."""

import base64
import hashlib
import json
import sys
import zipfile
from pathlib import Path

# ELF's e_machine.
ARCHITECTURES = {62: "x86_64", 183: "arm64"}


def architecture(zipped: Path) -> str:
    with zipfile.ZipFile(zipped) as zip_file:
        head = zip_file.read("bootstrap")[:20]
    machine = int.from_bytes(head[18:20], "little")
    if head[:4] != b"\x7fELF" or machine not in ARCHITECTURES:
        raise SystemExit(f"manifest: {zipped} holds no Linux program for x86-64 or arm64")
    return ARCHITECTURES[machine]


def manifest(folder: Path, functions: list[str]) -> dict[str, object]:
    zips = {name: folder / name / "bootstrap.zip" for name in functions}
    built = {architecture(path) for path in zips.values()}
    if len(built) != 1:
        raise SystemExit(f"manifest: the zips are built for {' and '.join(sorted(built))}")
    hashes = {name: hashlib.sha256(path.read_bytes()).digest() for name, path in zips.items()}
    named = {name: {"sha256": base64.b64encode(hash_).decode()} for name, hash_ in hashes.items()}
    return {"architecture": built.pop(), "functions": named}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "manifest.json").write_text(json.dumps(manifest(folder, sys.argv[2:]), indent=2) + "\n")
