#!/usr/bin/env python3
"""Checks the laws of the project that no compiler checks: layers, headers, twin tests, words, sizes.

lint.py [--root FOLDER] [--rule NAME]   prints every violation; exit 1 when there is one
lint.py --list                          the names of the rules
lint.py --self-test                     every rule must catch its bad samples and accept the good tree (samples.py)
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator

LAYERS = (
    "base plan mesh schedule data device graph program comm stage optim checkpoint examples help report compare launch "
    "engine app"
).split()  # a file includes its own module and modules to its left
TORCH_FREE = {"base", "plan", "mesh", "schedule", "data", "checkpoint", "help", "report", "compare", "launch"}
PLAIN_HEADERS = {  # values that every front end can make
    "lib/data/fields.hpp", "lib/graph/graph.hpp", "lib/graph/input_trial.hpp", "lib/graph/scripted_module.hpp"
}
TORCH = re.compile(r"torch/|ATen/|c10/|caffe2/|cuda|nccl|mpi\.h$")
# Headers that stay in few places: pattern, the files that may include it, in words.
CONFINED = [
    (r"torch/(torch|script|all|extension)\.h$", r"$^", "nowhere: narrow headers compile three times as fast"),
    (r"torch/csrc/jit/", r"lib/(graph|stage)/|tests/", "only in graph and stage"),
    (r"(mpi|nccl)\.h$", r"lib/comm/[^/]*\.cpp$|tests/", "only in sources of comm"),
    (r"toml\+\+", r"lib/plan/[^/]*\.cpp$", "only in sources of plan"),
    (r"CLI/", r"app/", "only in app"),
]
# What other modules do not reach through headers either: each takes seconds to compile.
INSIDE = ("torch/csrc/jit/", "torch/csrc/autograd/function.h")
CODE = {".cpp", ".hpp", ".cu", ".cuh", ".py"}
SKIPPED_FOLDERS = {"runs", "__pycache__", "models/out", "models/data"}
MAX_COLUMNS, MAX_LINES, MAX_BYTES = 120, 600, 1 << 20
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')


class Tree:
    """The files of a checkout by path, texts read once; build folders and what set-up makes are left out."""

    def __init__(self, root: pathlib.Path) -> None:
        self.sizes: dict[str, int] = {}
        self.texts: dict[str, str] = {}
        tops = self._tops(root)
        for folder, folders, files in os.walk(root):
            here = pathlib.PurePosixPath(pathlib.Path(folder).relative_to(root).as_posix())
            folders[:] = [f for f in folders if not self._is_skipped(here / f)]
            if here == pathlib.PurePosixPath() and tops:  # what its user makes there is none of the project's
                folders[:], files = ([name for name in names if name in tops] for names in (folders, files))
            for name in files:
                path = str(here / name)
                self.sizes[path] = (root / path).lstat().st_size
                if self._is_text(path):
                    self.texts[path] = (root / path).read_text("utf-8", errors="replace")
        self._includes: dict[str, list[tuple[int, bool, str]]] = {}

    @staticmethod
    def _tops(root: pathlib.Path) -> set[str]:
        """The project's files and folders at the top; none: not a checkout, or git is not there."""
        if not (root / ".git").exists() or not shutil.which("git"):
            return set()
        listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True, text=True)
        return {path.split("/")[0] for path in listed.stdout.split("\0") if path}

    @staticmethod
    def _is_skipped(folder: pathlib.PurePosixPath) -> bool:
        top_build = len(folder.parts) == 1 and folder.name.startswith("build")
        hidden = folder.name.startswith(".") and folder.name != ".ci"
        return top_build or hidden or folder.name in SKIPPED_FOLDERS or str(folder) in SKIPPED_FOLDERS

    def _is_text(self, path: str) -> bool:
        return "/seeds/" not in path and self.sizes[path] <= MAX_BYTES

    def code(self, *tops: str) -> Iterator[tuple[str, str]]:
        """Code files below these folders, all of them by default."""
        for path, text in self.texts.items():
            if pathlib.PurePosixPath(path).suffix in CODE and (not tops or path.startswith(tops)):
                yield path, text

    def lines(self, *tops: str) -> Iterator[tuple[str, int, str]]:
        """Lines of all text files below these folders."""
        for path, text in self.texts.items():
            if not tops or path.startswith(tops):
                for number, line in enumerate(text.splitlines(), 1):
                    yield path, number, line

    def includes(self, path: str) -> list[tuple[int, bool, str]]:
        """(line, is a header of the project, name) of every include of a file."""
        if path not in self._includes:
            found = ((n, INCLUDE.match(line)) for n, line in enumerate(self.texts[path].splitlines(), 1))
            self._includes[path] = [(n, m[1] == '"', m[2]) for n, m in found if m]
        return self._includes[path]

    def reached(self, path: str) -> dict[str, str]:
        """Every outside header that a file includes, itself or through headers of the project -> which of them."""
        seen, outside, queue = {path}, {}, [path]
        while queue:
            file = queue.pop()
            for _, is_ours, name in self.includes(file):
                target = f"lib/{name}"
                if not is_ours:
                    outside.setdefault(name, file)
                elif target in self.texts and target not in seen:
                    seen.add(target)
                    queue.append(target)
        return outside


def module_of(path: str) -> str | None:
    """The layer that a file belongs to; None for files outside of lib and app."""
    parts = path.split("/")
    if parts[0] == "app":
        return "app"
    return parts[1] if parts[0] == "lib" and len(parts) > 2 else None


Found = Iterator[tuple[str, int, str]]  # path, line (0 = the whole file), what is wrong


def layers(tree: Tree) -> Found:
    """An include goes to the own module or to the left."""
    for path, _ in tree.code("lib/", "app/"):
        module = module_of(path)
        if module is None or module not in LAYERS:
            yield path, 0, f"it lies in no known module ({' < '.join(LAYERS)})"
            continue
        for line, is_ours, name in tree.includes(path):
            if not is_ours:
                continue
            target = name.split("/")[0]
            if module == "app" and f"app/{name}" in tree.texts:
                continue
            if target not in LAYERS or "/" not in name:
                yield path, line, f'"{name}" has no module in front; write "module/file.hpp"'
            elif LAYERS.index(target) > LAYERS.index(module):
                yield path, line, f"{module} includes {target}/, which stands to its right"


def headers(tree: Tree) -> Found:
    """Outside headers stay where the design confines them, also through other headers."""
    for path, _ in tree.code("lib/", "app/", "tests/"):
        for line, is_ours, name in tree.includes(path):
            for pattern, allowed, words in CONFINED:
                if not is_ours and re.match(pattern, name) and not re.match(allowed, path):
                    yield path, line, f"<{name}> is included {words}"
        module = module_of(path)
        if module is None:
            continue
        for name, through in tree.reached(path).items():
            origin = "" if through == path else f" (through {through})"
            if (module in TORCH_FREE or path in PLAIN_HEADERS) and TORCH.match(name):
                yield path, 0, f"it may not see torch, CUDA, NCCL or MPI, but reaches <{name}>{origin}"
            elif origin and name.startswith(INSIDE) and module not in ("graph", "stage"):
                yield path, 0, f"it reaches <{name}>{origin}, which stays inside graph and stage"


def pragma_once(tree: Tree) -> Found:
    """Every header begins with #pragma once."""
    for path, text in tree.code():
        if path.endswith((".hpp", ".cuh")) and not text.startswith("#pragma once\n"):
            yield path, 1, "the first line is not #pragma once"


def twin_tests(tree: Tree) -> Found:
    """lib/<module>/<file>.cpp has tests/unit/<module>/<file>_test.cpp; x_cuda.cpp and x_none.cpp share x_test.cpp."""
    for path, _ in tree.code("lib/"):
        if path.endswith((".cpp", ".cu")):
            twin = re.sub(r"^lib/(.*?)(_cuda|_none)?\.(cpp|cu)$", r"tests/unit/\1_test.cpp", path)
            if twin not in tree.texts:
                yield path, 0, f"it has no twin test {twin}"


def cmake_lists(tree: Tree) -> Found:
    """A source of lib, app or tests/unit is named in the CMakeLists.txt of its module."""
    for path, _ in tree.code("lib/", "app/", "tests/unit/"):
        if not path.endswith((".cpp", ".cu")):
            continue
        depth = {"lib": 2, "app": 1, "tests": 3}[path.split("/")[0]]
        folder, name = "/".join(path.split("/")[:depth]), "/".join(path.split("/")[depth:])
        if name not in re.split(r"[\s()]+", tree.texts.get(f"{folder}/CMakeLists.txt", "")):
            yield path, 0, f"{folder}/CMakeLists.txt does not list it"


def ascii_only(tree: Tree) -> Found:
    """Texts are plain ASCII, without tabs in code."""
    for path, number, line in tree.lines():
        if not line.isascii():
            yield path, number, f"not ASCII: {next(c for c in line if not c.isascii())!r}"


def columns(tree: Tree) -> Found:
    """No line is longer than the limit; prose and licence texts excepted."""
    for path, number, line in tree.lines():
        if len(line) > MAX_COLUMNS and not path.endswith(".md"):
            yield path, number, f"{len(line)} columns (at most {MAX_COLUMNS})"


def file_lines(tree: Tree) -> Found:
    """No code file is longer than the limit."""
    for path, text in tree.code():
        if text.count("\n") > MAX_LINES:
            yield path, 0, f"{text.count(chr(10))} lines (at most {MAX_LINES}); is it still one idea?"


def left_overs(tree: Tree) -> Found:
    """No note of unfinished work: it is finished, refused by name, or an issue."""
    words = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3)) + r")\b")
    for path, number, line in tree.lines("lib/", "app/", "tests/", "scripts/", "models/", ".ci/"):
        if found := words.search(line):
            yield path, number, f"left over: {found[1]}"


def environment(tree: Tree) -> Found:
    """Only app reads the environment; that of another process is a file."""
    for path, text in tree.code("lib/"):
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(r"(?<!/)\b(secure_getenv|getenv|setenv|putenv|environ)\b", line.split("//")[0]):
                yield path, number, "environment below app; take the value as an argument"


SOURCES_TOGETHER = re.compile(r"(lib/\w+|tests/unit/\w+|app)/[\w/]*\.cpp$")
RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL)
TYPE = re.compile(r"(?:struct|class|enum class|enum) (\w+)(?=[ ;{:])")
ENUMERATOR = re.compile(r"\b(k[A-Z]\w*)(?=[ ,=}])")
CONSTANT = re.compile(r"\b(k[A-Z]\w*)(?=\[| =|\{)")
FUNCTION = re.compile(r"(?:\[\[\w+\]\] )?(?=\w)(?!using\b|namespace\b|TEST|[A-Z_]+\()[\w:<>,*& ]+[ *&](\w+)\(")


def unnamed_definitions(text: str) -> Iterator[tuple[int, str]]:
    """(line, name) of types, constants, plain enumerators and functions that unnamed namespaces define."""
    inside = False
    plain = RAW_STRING.sub(lambda raw: "\n" * raw[0].count("\n"), text)
    for number, line in enumerate(plain.splitlines(), 1):
        if line.startswith(("namespace {", "}  // namespace")):
            inside = line.startswith("namespace {")
        elif inside and (found := TYPE.match(line) or FUNCTION.match(line)):
            yield number, found[1]
            if re.match(r"enum (?!class)", line):
                yield from ((number, name) for name in ENUMERATOR.findall(line.partition("{")[2]))
        elif inside and re.match(r"(constexpr|const|inline|static)\b", line):
            yield from ((number, name) for name in CONSTANT.findall(line))


def unique_names(tree: Tree) -> Found:
    """Names in unnamed namespaces are unique among the sources that are compiled together, and among their headers."""
    first: dict[tuple[str, str], str] = {}
    for path, text in sorted(tree.code("lib/")):
        for line in text.splitlines() if path.endswith(".hpp") else ():
            if found := FUNCTION.match(line):
                first.setdefault((path.rpartition("/")[0], found[1]), path)
    for path, text in sorted(tree.texts.items()):
        together = SOURCES_TOGETHER.match(path)
        for number, name in unnamed_definitions(text) if together else ():
            other = first.setdefault((together[1], name), path)
            if other != path:
                yield path, number, f"{other} has a {name} too; the module's sources are compiled together"


def unique_types(tree: Tree) -> Found:
    """A type of a header has a name of its own: of two, the linker would take the functions of one for both."""
    first: dict[tuple[str, str], str] = {}
    for path, text in sorted(tree.code("lib/", "app/")):
        namespaces = [""]
        for number, line in enumerate(text.splitlines() if path.endswith(".hpp") else (), 1):
            if opened := re.match(r"namespace ([\w:]+) \{", line):
                namespaces.append(opened[1])
            elif line.startswith("}  // namespace"):
                namespaces.pop()
            elif (found := TYPE.match(line)) and not line.endswith(";"):
                other = first.setdefault((namespaces[-1], found[1]), path)
                if other != path:
                    yield path, number, f"{other} has a {found[1]} too"


# Calls whose texts users read: errors and what they are made of, warnings, notes. A broken invariant (check) is none.
MESSAGE_CALL = re.compile(
    r"(^|[.>:])(Error|refuse\w*|damaged\w*|bad_message|not_as_probed|throw_errno|wrong_type|\w*problem|\w*fail(ed)?"
    r"|require|warn|info|(problems|findings|warnings|notes)_?\.(push_back|emplace_back|add))$|^add$"
)
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
CODE_TOKEN = re.compile(
    rf"""R"(\w*)\(.*?\)\1"|//[^\n]*|(?P<text>{LITERAL}(\s*{LITERAL})*)|(?<!\w)'(?:[^'\\]|\\.)+'"""
    r"|(?P<call>[\w.>:-]*)\(|\)",
    re.DOTALL,
)
SHORTEST, WINDOW = 6, 20  # what a message must have to be looked for; characters in a row that a test must have of it
# Messages that no test brings about, a piece of each.
UNTESTED = {
    "the operating system or a disk fails": ("cannot map", "cannot close", "make a pipe", "start a process"),
    "it takes another MPI library, or an MPI that stalls at its start": (
        "this MPI library cannot be called from two threads", "for all ranks to open their transport"
    ),
    "it takes another zip library, or a class of one that is not LibTorch's": (
        "the archive's directory is damaged", "has no graph"
    ),
    "it takes seconds, and 100 MB of names": ("a shard header of",),
    "it takes a text of 2 GB": ("and the index holds lengths up to",),
    "another program writes the file between two reads": ("the table changes while it is read",),
}


def plain_text(literals: str) -> str:
    """The text of literals that stand one behind the other, and all else as it is."""
    return re.sub(r"\\(.)", r"\1", re.sub(r'(?<!\\)"\s*[frR]*"', "", literals))


def message_texts(code: str) -> Iterator[tuple[int, str]]:
    """(line, longest literal) of every call that says something to users, without punctuation at the ends."""
    calls: list[tuple[int, list[str]]] = []  # those that are open: line, 0 for a call that says nothing; its literals
    for token in CODE_TOKEN.finditer(code):
        if token["call"] is not None:
            line = code.count("\n", 0, token.start("call")) + 1
            calls.append((line if MESSAGE_CALL.search(token["call"]) else 0, []))
        elif token[0] == ")" and calls:
            line, texts = calls.pop()
            if line and texts:
                yield line, max(texts, key=len)
        elif token["text"]:
            text = plain_text(token["text"]).strip(" :;,.()'\"\n")
            if len(text) >= SHORTEST and (says := [texts for line, texts in calls if line]):
                says[-1].append(text)


def windows(text: str) -> Iterator[str]:
    return (text[i : i + WINDOW] for i in range(max(1, len(text) - WINDOW + 1)))


def tested_messages(tree: Tree) -> Found:
    """What an error or a warning says stands in a test: of its longest literal so many characters in a row."""
    messages = [(path, *found) for path, code in tree.code("lib/", "app/") for found in message_texts(code)]
    untested = [piece for pieces in UNTESTED.values() for piece in pieces]
    wanted = {window for _, _, text in messages for window in windows(text)}
    tests = plain_text("\n".join(t for p, t in tree.texts.items() if re.match("tests/(?!lint/)", p)))
    found = {window for window in windows(tests) if window in wanted}
    found |= {window for window in wanted if len(window) < WINDOW and window in tests}
    for path, line, text in messages:
        if found.isdisjoint(windows(text)) and not any(piece in text for piece in untested):
            yield path, line, f'no test has the text "{text}"'


def disabled_tests(tree: Tree) -> Found:
    """A disabled test names its issue on its line or the one before."""
    mark = re.compile(r"\b" + "DIS" + r"ABLED(_\w|\s+(TRUE|ON|1)\b)")
    for path, text in tree.texts.items():
        lines = text.splitlines() if path.startswith("tests/") else []
        for number, line in enumerate(lines, 1):
            if mark.search(line) and not re.search(r"issue #?\d+|#\d+", "\n".join(lines[max(number - 2, 0) : number])):
                yield path, number, "disabled without the number of an issue"


def file_sizes(tree: Tree) -> Found:
    """Data and models are made at set-up, never committed."""
    for path, size in tree.sizes.items():
        if size > MAX_BYTES:
            yield path, 0, f"{size} bytes (at most {MAX_BYTES})"


def machine_paths(tree: Tree) -> Found:
    """No path of one person's machine."""
    pattern = re.compile(r"(?<![\w.$}*)-])/(home|root|Users|work|workspace|scratch)/[\w.]")
    for path, number, line in tree.lines():
        if found := pattern.search(line):
            yield path, number, f"a path of one machine: {line[found.start() : found.start() + 40]}"


RULES: dict[str, Callable[[Tree], Found]] = {
    rule.__name__: rule
    for rule in (
        layers,
        headers,
        pragma_once,
        twin_tests,
        cmake_lists,
        ascii_only,
        columns,
        file_lines,
        left_overs,
        environment,
        unique_names,
        unique_types,
        tested_messages,
        disabled_tests,
        file_sizes,
        machine_paths,
    )
}


def violations(root: pathlib.Path, rules: list[str]) -> list[str]:
    tree = Tree(root)
    return [
        f"{path}:{line}: [{name}] {what}" if line else f"{path}: [{name}] {what}"
        for name in rules
        for path, line, what in RULES[name](tree)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--rule", choices=RULES, action="append", help="only this rule; may be repeated")
    parser.add_argument("--list", action="store_true", help="print the names of the rules")
    parser.add_argument("--self-test", action="store_true", help="try every rule on samples")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(RULES))
        return 0
    if arguments.self_test:
        import samples

        return samples.self_test(violations, list(RULES))
    found = violations(arguments.root, arguments.rule or list(RULES))
    print("\n".join(found) if found else "lint: nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())
