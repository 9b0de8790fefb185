"""The package folder that the Terraform module takes: package.py BUILT FOLDER [--level N]

BUILT holds the four programs, by their names or as NAME/bootstrap. FOLDER gets of each NAME/bootstrap and
NAME/bootstrap.zip, and manifest.json. The programs are stripped of symbols and of the tables by which a stack is unwound:
a panic aborts, so nothing ever unwinds one, and the tables are a tenth of a program. (A debug build, packed for a test, then
aborts too.) Dates are fixed, so that on one machine the same program gives the same hash."""

import argparse
import json
import struct
import subprocess
import zipfile
from pathlib import Path

from manifest import manifest

FUNCTIONS = ["wake", "idle-check", "uptime-alarm", "budget-guard"]
EXECUTABLE = 0o100755 << 16
UNWIND_SECTIONS = [".eh_frame", ".eh_frame_hdr", ".gcc_except_table"]
PT_NULL, PT_GNU_EH_FRAME = 0, 0x6474E550


class Elf:
    """The headers of an ELF64 file, as elf.h has them."""

    def __init__(self, data: bytearray):
        self.data = data
        programs, sections = struct.unpack_from("<QQ", data, 0x20)
        program_size, program_count, section_size, section_count, names = struct.unpack_from("<5H", data, 0x36)
        self.programs = [programs + n * program_size for n in range(program_count)]
        self.sections = [sections + n * section_size for n in range(section_count)]
        self.names = self.place(self.sections[names])[0]

    def kind(self, program: int) -> int:
        return struct.unpack_from("<I", self.data, program)[0]

    def name(self, section: int) -> str:
        at = self.names + struct.unpack_from("<I", self.data, section)[0]
        return self.data[at : self.data.index(0, at)].decode()

    def place(self, section: int) -> tuple[int, int]:
        """Where its bytes stand, and how many they are."""
        return struct.unpack_from("<QQ", self.data, section + 0x18)


def lean(program: Path, target: Path) -> None:
    """A copy without symbols, and with zeros for its unwind tables: nothing else is moved, and zeros take no room in a zip.
    Who asks for a backtrace all the same finds no header that leads to them."""
    made = target.with_name(target.name + ".made")
    subprocess.run(["strip", "-o", made, program], check=True)
    elf = Elf(bytearray(made.read_bytes()))
    for section in elf.sections:
        if elf.name(section) in UNWIND_SECTIONS:
            at, size = elf.place(section)
            elf.data[at : at + size] = bytes(size)
    for header in elf.programs:
        if elf.kind(header) == PT_GNU_EH_FRAME:
            struct.pack_into("<I", elf.data, header, PT_NULL)
    made.write_bytes(elf.data)
    made.replace(target)


def zipped(program: Path, target: Path, level: int) -> None:
    entry = zipfile.ZipInfo("bootstrap", date_time=(2026, 11, 30, 0, 0, 0))
    entry.create_system = 3  # Unix, whose rights are the ones below
    entry.external_attr = EXECUTABLE
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(entry, program.read_bytes(), zipfile.ZIP_DEFLATED, compresslevel=level)


def package(built: Path, folder: Path, level: int = 1) -> Path:
    for name in FUNCTIONS:
        made = folder / name
        made.mkdir(parents=True, exist_ok=True)
        program = built / name
        lean(program / "bootstrap" if program.is_dir() else program, made / "bootstrap")
        zipped(made / "bootstrap", made / "bootstrap.zip", level)
    (folder / "manifest.json").write_text(json.dumps(manifest(folder, FUNCTIONS), indent=2) + "\n")
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("built", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--level", type=int, default=1, choices=range(1, 10), help="of the zips; 9 is the smallest")
    given = parser.parse_args()
    package(given.built, given.folder, given.level)
