"""A package folder as `make package` writes it, of programs that are built already: package.py BUILT FOLDER

For the applied test, which takes the debug builds: stripped, and zipped with fixed dates, so that the same program always
gives the same hash."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

from manifest import manifest

FUNCTIONS = ["wake", "idle-check", "uptime-alarm", "budget-guard"]
EXECUTABLE = 0o100755 << 16


def zipped(program: Path, target: Path) -> None:
    entry = zipfile.ZipInfo("bootstrap", date_time=(2026, 11, 30, 0, 0, 0))
    entry.create_system = 3  # Unix, whose rights are the ones below
    entry.external_attr = EXECUTABLE
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(entry, program.read_bytes(), zipfile.ZIP_DEFLATED, compresslevel=1)


def package(built: Path, folder: Path) -> Path:
    for name in FUNCTIONS:
        made = folder / name
        made.mkdir(parents=True, exist_ok=True)
        # Stripped as the release build is: with its symbols a debug build is larger than Lambda takes.
        subprocess.run(["strip", "-o", made / "bootstrap", built / name], check=True)
        zipped(made / "bootstrap", made / "bootstrap.zip")
    (folder / "manifest.json").write_text(json.dumps(manifest(folder, FUNCTIONS), indent=2) + "\n")
    return folder


if __name__ == "__main__":
    package(Path(sys.argv[1]), Path(sys.argv[2]))
