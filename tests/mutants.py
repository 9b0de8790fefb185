#!/usr/bin/env python3
"""Tests that bite: every mutant of the rules and the step machines against the tests of the core.

cargo-mutants lists the mutants. It would build once for each; here one build holds them all: in a scratch copy each function
becomes a `match crate::mutant()` with one arm for each mutant of it, and an environment variable picks the arm. A mutant whose
arm does not compile is dropped as unviable. What is known of a mutant is kept in target/mutants/known.jsonl: a run that was
broken off goes on, and after a change only what it touched and what was missed is run again.

usage: mutants.py CARGO_MUTANTS [PATTERN]   PATTERN: only the mutants whose name has it
"""

import concurrent.futures
import functools
import hashlib
import json
import os
import re
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "target" / "mutants"
TREE = OUT / "tree"
KNOWN = OUT / "known.jsonl"
GLOBS = ["shared/src/decide/**", "shared/src/run/**"]
AT_ONCE = 2
# A mutant that loops is caught by the processor time it takes, which other work on the machine does not lengthen.
LIMIT_TIMES, LIMIT_PLUS = 5, 5
# So many binaries take nearly all of the time: the laws, and the runs over many days.
SLOW = 6
WANTED_SHARE = 95.0

SELECT = """
/// The mutant that this run is about, zero for none, asked for by this function; REVEILLE_REACHED names a file of those asking.
pub fn mutant(function: u32) -> u32 {
    use std::collections::BTreeSet;
    use std::sync::{Mutex, OnceLock};
    static MUTANT: OnceLock<(u32, Option<(String, Mutex<BTreeSet<u32>>)>)> = OnceLock::new();
    let (number, reached) = MUTANT.get_or_init(|| {
        let number = std::env::var("REVEILLE_MUTANT").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
        (number, std::env::var("REVEILLE_REACHED").ok().map(|file| (file, Mutex::default())))
    });
    if let Some((file, known)) = reached && known.lock().expect("no test holds it").insert(function) {
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file).expect("a file");
        std::io::Write::write_all(&mut file, format!("{function}\\n").as_bytes()).expect("a line");
    }
    *number
}
"""
# What is no brace of the code: comments, strings, characters.
TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|\br(?P<hashes>#*)".*?"(?P=hashes)|"(?:\\.|[^"\\])*"|' r"'(?:\\[^']+|[^'\\])'|[{}]", re.DOTALL
)


@dataclass
class Mutant:
    number: int
    name: str
    file: str
    function: tuple[int, int]
    at: tuple[int, int]
    replacement: str
    key: str
    # By what number its function asks: that of the function's first mutant.
    asked_by: int = 0


@dataclass
class Binary:
    path: Path
    seconds: float
    reached: set[int]


def listed(tool: str) -> list[Mutant]:
    files = [arg for glob in GLOBS for arg in ("-f", glob)]
    command = [tool, "mutants", "--list", "--json", "-p", "reveille", *files]
    found = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    # Rules first: they are what the rest rests on.
    found.sort(key=lambda one: (GLOBS[0][:-2] not in one["file"], one["file"]))
    return [mutant_of(number, one) for number, one in enumerate(found, 1)]


def mutant_of(number: int, one: dict) -> Mutant:
    text = source(one["file"])
    function, at = offsets(text, one["function"]["span"]), offsets(text, one["span"])
    within = (at[0] - function[0], at[1] - function[0])
    what = (one["file"], one["function"]["function_name"], text[slice(*function)], within, one["replacement"])
    key = hashlib.sha256(repr(what).encode()).hexdigest()[:16]
    return Mutant(number, one["name"], one["file"], function, at, one["replacement"], key)


@functools.cache
def source(file: str) -> str:
    # Read once: who edits meanwhile moves no span.
    return (ROOT / file).read_text()


def offsets(text: str, span: dict) -> tuple[int, int]:
    starts = [0, *(newline.end() for newline in re.finditer("\n", text))]
    start, end = (starts[span[side]["line"] - 1] + span[side]["column"] - 1 for side in ("start", "end"))
    return start, end


def body_of(function: str) -> int:
    """Where the brace stands that opens the function's body: the one its last brace closes."""
    opened: list[int] = []
    last = 0
    for token in TOKEN.finditer(function):
        if token.group() == "{":
            opened.append(token.start())
        elif token.group() == "}":
            last = opened.pop()
    return last


def rewritten(file: str, mutants: list[Mutant]) -> tuple[str, list[tuple[int, int, Mutant]]]:
    """The file with an arm for each mutant, and the lines of each arm."""
    text = source(file)
    spans = sorted({mutant.function for mutant in mutants})
    # A function within a function is changed in the copies of the outer one's body.
    outer = [one for one in spans if not any(two != one and two[0] <= one[0] and one[1] <= two[1] for two in spans)]
    out, arms, done = "", [], 0
    for start, end in outer:
        body = start + body_of(text[start:end])
        head = text[start:body]
        opened, closed = ("Box::new({", "})" + boxed(head)) if "-> impl " in head else ("{", "}")
        within = [one for one in mutants if start <= one.function[0] and one.function[1] <= end]
        out += text[done:body] + f"{{ match crate::mutant({within[0].number}) {{\n"
        for mutant in within:
            mutant.asked_by = within[0].number
            first = out.count("\n") + 1
            changed = text[body : mutant.at[0]] + mutant.replacement + text[mutant.at[1] : end]
            out += f"{mutant.number} => {opened}\n{changed}\n{closed},\n"
            arms.append((first, out.count("\n"), mutant))
        out += f"_ => {opened}\n{text[body:end]}\n{closed}\n}} }}"
        done = end
    return out + text[done:], arms


def boxed(head: str) -> str:
    # Two bodies of one `impl Trait` are two types.
    kind = head.split("-> impl ")[1].removesuffix(" ").removesuffix(" + '_")
    return f" as Box<dyn {kind} + '_>"


def write(path: Path, content: bytes) -> None:
    # Unchanged files keep their time, so that cargo builds only what changed.
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def copy_tree() -> None:
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    files = [name for name in names if (ROOT / name).is_file()]
    for old in [path for path in TREE.rglob("*") if path.is_file()]:
        if str(old.relative_to(TREE)) not in files:
            old.unlink()
    for name in files:
        if not name.startswith("shared/src/") or not name.endswith(".rs"):
            write(TREE / name, (ROOT / name).read_bytes())


def write_mutants(mutants: list[Mutant]) -> dict[str, list[tuple[int, int, Mutant]]]:
    arms = {}
    for path in sorted((ROOT / "shared" / "src").rglob("*.rs")):
        file = str(path.relative_to(ROOT))
        text, arms[file] = rewritten(file, [one for one in mutants if one.file == file])
        write(TREE / file, (text + (SELECT if file == "shared/src/lib.rs" else "")).encode())
    return arms


def cargo(*args: str) -> list[dict]:
    env = {**os.environ, "CARGO_TARGET_DIR": str(OUT / "build"), "RUSTFLAGS": "-Awarnings"}
    # The laws are heavy: to optimise pays. Overflow is checked all the same, as in any test build.
    env |= {"CARGO_PROFILE_DEV_OPT_LEVEL": "1", "CARGO_PROFILE_DEV_DEBUG": "0", "CARGO_INCREMENTAL": "0"}
    command = ["nice", "-n", "10", "cargo", *args, "-p", "reveille", "--locked", "--message-format=json"]
    done = subprocess.run(command, cwd=TREE, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode and not any(one["reason"] == "compiler-message" for one in messages):
        sys.exit(done.stderr)
    return messages


def refused(messages: list[dict], arms: dict[str, list[tuple[int, int, Mutant]]]) -> list[Mutant]:
    """The mutants whose arm the compiler refused."""
    found = {}
    for message in (one["message"] for one in messages if one["reason"] == "compiler-message"):
        if message["level"] != "error" or not message["spans"]:
            continue
        spans = [(span["file_name"], span["line_start"]) for span in message["spans"]]
        hit = [arm for file, line in spans for arm in arms.get(file, []) if arm[0] <= line <= arm[1]]
        if not hit:
            sys.exit("an error outside every mutant:\n" + message["rendered"])
        found[hit[0][2].number] = hit[0][2]
    return list(found.values())


def viable(mutants: list[Mutant], known: dict[str, str]) -> list[Mutant]:
    left = [mutant for mutant in mutants if known.get(mutant.key) != "unviable"]
    while True:
        arms = write_mutants(left)
        bad = refused(cargo("check", "--lib"), arms)
        if not bad:
            return left
        print(f"{len(bad)} mutants do not compile", flush=True)
        for mutant in bad:
            remember(mutant, "unviable", "")
            known[mutant.key] = "unviable"
        left = [mutant for mutant in left if mutant not in bad]


def test_binaries() -> list[Path]:
    return [Path(one["executable"]) for one in cargo("test", "--no-run") if one.get("executable")]


def run(binary: Path, limit: int, env: dict[str, str]) -> str:
    # Shrinking makes a failure smaller and no surer.
    env = {**os.environ, "PROPTEST_MAX_SHRINK_ITERS": "0", "RUST_BACKTRACE": "0", **env}
    bounded = f'ulimit -c 0; ulimit -v 6000000; ulimit -S -t {limit}; exec nice -n 10 "$@"'
    command = ["sh", "-c", bounded, "-", str(binary), "--test-threads=1"]
    pipe = subprocess.Popen(
        command, cwd=TREE / "shared", env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    with pipe:
        for line in pipe.stdout:
            # One failure is enough.
            if line.startswith("test ") and line.endswith("FAILED\n"):
                pipe.kill()
                return "caught"
    if pipe.returncode in (-24, -9):  # SIGXCPU, SIGKILL
        return "timeout"
    return "caught" if pipe.returncode else "missed"


def baseline(paths: list[Path]) -> list[Binary]:
    """The binaries, the quickest first, each with the functions that its tests reach."""
    binaries = []
    file = OUT / "reached"
    for path in paths:
        file.unlink(missing_ok=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        if run(path, 600, {"REVEILLE_REACHED": str(file)}) != "missed":
            sys.exit(f"without a mutant {path.name} fails already")
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        reached = {int(line) for line in file.read_text().splitlines()} if file.exists() else set()
        binaries.append(Binary(path, seconds, reached))
    print(f"no mutant: {len(binaries)} binaries pass in {sum(one.seconds for one in binaries):.1f} s", flush=True)
    return sorted(binaries, key=lambda one: one.seconds)


def verdict(mutant: Mutant, binaries: list[Binary]) -> str:
    for binary in binaries:
        if mutant.asked_by in binary.reached:
            limit = int(binary.seconds * LIMIT_TIMES) + LIMIT_PLUS
            result = run(binary.path, limit, {"REVEILLE_MUTANT": str(mutant.number)})
            if result != "missed":
                return result
    return "missed"


def tests_hash() -> str:
    """Changes with anything that might catch what was missed."""
    files = sorted(path for path in (ROOT / "shared").rglob("*.rs"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def remember(mutant: Mutant, result: str, tests: str) -> None:
    with KNOWN.open("a") as file:
        file.write(json.dumps({"key": mutant.key, "result": result, "tests": tests, "name": mutant.name}) + "\n")


def read_known(tests: str) -> dict[str, str]:
    lines = [json.loads(line) for line in KNOWN.read_text().splitlines()] if KNOWN.exists() else []
    newest = {one["key"]: one for one in lines}
    return {key: one["result"] for key, one in newest.items() if one["result"] != "missed" or one["tests"] == tests}


def judge(mutants: list[Mutant], known: dict[str, str], tests: str) -> None:
    left = [mutant for mutant in mutants if mutant.key not in known]
    if not left:
        return
    binaries = baseline(test_binaries())
    # The quick ones catch nearly all; what they miss goes to the laws.
    for wave in (binaries[: -SLOW], binaries[-SLOW:]):
        left = passed(left, wave, known, tests)
    for mutant in left:
        known[mutant.key] = "missed"
        remember(mutant, "missed", tests)


def passed(mutants: list[Mutant], binaries: list[Binary], known: dict[str, str], tests: str) -> list[Mutant]:
    """Those that no test of these binaries has caught."""
    began, left = time.monotonic(), []
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        running = {pool.submit(verdict, mutant, binaries): mutant for mutant in mutants}
        for count, done in enumerate(concurrent.futures.as_completed(running), 1):
            mutant, result = running[done], done.result()
            if result == "missed":
                left.append(mutant)
            else:
                known[mutant.key] = result
                remember(mutant, result, tests)
            if result != "caught":
                print(f"{result if result == 'timeout' else 'passes so far'}: {mutant.name}", flush=True)
            if count % 25 == 0:
                minutes = (time.monotonic() - began) / count * (len(mutants) - count) / 60
                print(f"{count} of {len(mutants)}, {minutes:.0f} minutes left", flush=True)
    return left


def report(mutants: list[Mutant], known: dict[str, str]) -> float:
    named = {word: [one.name for one in mutants if known[one.key] == word] for word in RESULTS}
    for word, names in named.items():
        (OUT / f"{word}.txt").write_text("".join(name + "\n" for name in names))
    counts = " ".join(f"{word}={len(named[word])}" for word in RESULTS)
    share = 100 * (len(named["caught"]) + len(named["timeout"])) / max(1, len(mutants) - len(named["unviable"]))
    print(f"mutants={len(mutants)} {counts} share={share:.1f}%")
    return share


RESULTS = ["unviable", "caught", "timeout", "missed"]


def main() -> int:
    tool, pattern = sys.argv[1], "".join(sys.argv[2:3])
    TREE.mkdir(parents=True, exist_ok=True)
    mutants, tests = listed(tool), tests_hash()
    known = read_known(tests)
    copy_tree()
    meant = [one for one in viable(mutants, known) if pattern in one.name]
    judge(meant, known, tests)
    return 0 if report([one for one in mutants if pattern in one.name], known) >= WANTED_SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
