"""A package of built programs is what `make package` would have written, and the same each time."""

import json
import shutil
import tempfile
import unittest
import zipfile
from pathlib import Path

import manifest
import package


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


if __name__ == "__main__":
    unittest.main()
