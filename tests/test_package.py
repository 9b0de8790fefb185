"""A package is the same each time, and its programs run as they did."""

import json
import shutil
import signal
import subprocess
import tempfile
import unittest
import zipfile
from pathlib import Path

import manifest
import package


# The linkage is read-only once it is done.
GNU_RELRO = 0x6474E552


class Package(unittest.TestCase):
    def setUp(self):
        self.work = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.work)
        (self.work / "built").mkdir()
        for name in package.FUNCTIONS:
            shutil.copy(shutil.which("true"), self.work / "built" / name)

    def made(self, name):
        return package.package(self.work / "built", self.work / name)

    def test_each_zip_holds_one_program_that_can_be_run(self):
        folder = self.made("one")
        for name in package.FUNCTIONS:
            with zipfile.ZipFile(folder / name / "bootstrap.zip") as zipped:
                self.assertEqual(["bootstrap"], zipped.namelist())
                self.assertEqual(0o755, zipped.getinfo("bootstrap").external_attr >> 16 & 0o777)
                self.assertEqual((folder / name / "bootstrap").read_bytes(), zipped.read("bootstrap"))

    def test_the_manifest_is_that_of_the_zips(self):
        folder = self.made("one")
        written = json.loads((folder / "manifest.json").read_text())
        self.assertEqual(manifest.manifest(folder, package.FUNCTIONS), written)

    def test_the_same_programs_give_the_same_zips(self):
        both = [self.made(name) for name in ("one", "two")]
        manifests = [(folder / "manifest.json").read_text() for folder in both]
        self.assertEqual(manifests[0], manifests[1])

    def test_a_program_without_its_tables_panics_as_before(self):
        source, program = self.work / "panics.rs", self.work / "panics"
        source.write_text('fn main() { assert!(std::env::args().count() > 1, "told"); println!("ran"); }')
        subprocess.run(["rustc", "-C", "panic=abort", "-C", "strip=symbols", "-o", program, source], check=True)
        lean = self.work / "lean"
        package.lean(program, lean)
        before, after = (package.Elf(bytearray(path.read_bytes())) for path in (program, lean))
        kinds = [package.PT_NULL if kind == package.PT_GNU_EH_FRAME else kind for kind in map(before.kind, before.programs)]
        self.assertEqual(kinds, list(map(after.kind, after.programs)))
        self.assertIn(GNU_RELRO, kinds)
        tables = [after.place(section) for section in after.sections if after.name(section) in package.UNWIND_SECTIONS]
        self.assertTrue(tables)
        for at, size in tables:
            self.assertEqual(bytes(size), bytes(after.data[at : at + size]))
        ran = subprocess.run([lean, "on"], capture_output=True, text=True)
        self.assertEqual((0, "ran\n"), (ran.returncode, ran.stdout))
        for backtrace in ("0", "1", "full"):
            died = subprocess.run([lean], capture_output=True, text=True, env={"RUST_BACKTRACE": backtrace})
            self.assertEqual(-signal.SIGABRT, died.returncode, died.stderr)
            self.assertIn("told", died.stderr)


if __name__ == "__main__":
    unittest.main()
