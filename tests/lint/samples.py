"""Samples for lint.py: a good tree that every rule accepts, and changes to it that a rule must catch.

What a rule must not find is spelled so that lint.py does not find it in this file.
"""

import pathlib
import tempfile
from collections.abc import Callable

GOOD = {
    "lib/base/error.hpp": "#pragma once\n",
    "lib/base/error.cpp": '#include "base/error.hpp"\n\n#include <string>\n',
    "lib/base/CMakeLists.txt": "vpp_module(base SOURCES error.cpp)\n",
    "lib/plan/reader.cpp": '#include <toml++/toml.h>\n#include "base/error.hpp"\n',
    "lib/plan/CMakeLists.txt": "vpp_module(plan\n  SOURCES reader.cpp\n  DEPS base)\n",
    "lib/graph/graph.hpp": '#pragma once\n#include "base/error.hpp"\n',
    "lib/graph/jit_graph.hpp": "#pragma once\n#include <torch/csrc/jit/ir/ir.h>\n",
    "lib/graph/reader.cpp": '#include "graph/jit_graph.hpp"\nnamespace {\nint read(int place) {\n}  // namespace\n',
    "lib/graph/writer.cpp": "int read(int place);\nnamespace {\nusing Text = R\"(\nint read(1)\n)\"\n}  // namespace\n",
    "lib/graph/CMakeLists.txt": "vpp_module(graph SOURCES lines.cpp reader.cpp writer.cpp)\n",
    "lib/comm/wire.cpp": "#include <mpi.h>\n",
    "lib/comm/CMakeLists.txt": "vpp_module(comm SOURCES wire.cpp)\n",
    "lib/graph/lines.cpp": 'int main() {\n    throw Error(kind, path + ": is a \\"folder\\", "  // which?\n'
    '                "and no file (got " + what + ")");\n    check(is_there, "a broken invariant has no test");\n}\n',
    "lib/report/lines.hpp": '#pragma once\n#include "graph/graph.hpp"\n',
    "app/main.cpp": '#include "commands/train.hpp"\n#include <CLI/CLI.hpp>\n#include "base/error.hpp"\n',
    "app/commands/train.hpp": "#pragma once\n",
    "app/commands/train.cpp": 'const char* ranks = getenv("RANKS");\n',
    "app/CMakeLists.txt": "add_executable(vpp main.cpp commands/train.cpp)\n",
    "tests/unit/base/error_test.cpp": "// Skips, and says so.\n",
    "tests/unit/base/CMakeLists.txt": "vpp_unit_tests(base SOURCES error_test.cpp)\n",
    "tests/unit/plan/reader_test.cpp": "// " + "DIS" + "ABLED_later: issue #12.\n",
    "tests/unit/plan/CMakeLists.txt": "vpp_unit_tests(plan SOURCES reader_test.cpp)\n",
    "tests/unit/graph/reader_test.cpp": "\n",
    "tests/unit/graph/writer_test.cpp": "\n",
    "tests/unit/graph/lines_test.cpp": 'EXPECT_EQ(text, "a.txt: is a \\"folder\\", and "\n  "no file (got 1)");\n',
    "tests/unit/graph/CMakeLists.txt": "vpp_unit_tests(graph\n  SOURCES"
    " lines_test.cpp reader_test.cpp writer_test.cpp)\n",
    "tests/unit/comm/wire_test.cpp": "\n",
    "tests/unit/comm/CMakeLists.txt": "vpp_unit_tests(comm SOURCES wire_test.cpp)\n",
    "tests/fuzz/seeds/plan/damaged.toml": "\u00e4 " + "TO" + "DO\n",
    "models/out/gpt.pt": "x" * (1 << 21),
    ".venv/lib/left.cpp": "// " + "TO" + "DO \u00e4\n",
    "build-asan/lib/left.cpp": "// " + "TO" + "DO\n",
    "README.md": "A line of prose may be long. " * 8 + "\n",
}

# rule -> changes to the good tree, each of which it must catch.
BAD: dict[str, list[dict[str, str]]] = {
    "layers": [
        {"lib/base/error.hpp": '#pragma once\n#include "plan/plan.hpp"\n'},
        {"lib/base/error.hpp": '#pragma once\n  #  include "app/main.hpp"\n'},
        {"lib/base/error.hpp": '#pragma once\n#include "bytes.hpp"\n'},
        {"lib/utils/text.hpp": "#pragma once\n"},
    ],
    "headers": [
        {"lib/graph/reader.cpp": "#include <torch/torch.h>\n"},
        {"tests/unit/graph/reader_test.cpp": "#include <torch/script.h>\n"},
        {"app/main.cpp": "#include <torch/csrc/jit/ir/ir.h>\n"},
        {"app/main.cpp": '#include "graph/jit_graph.hpp"\n'},
        {
            "lib/graph/jit_graph.hpp": "#pragma once\n#include <torch/csrc/autograd/function.h>\n",
            "app/main.cpp": '#include "graph/jit_graph.hpp"\n',
        },
        {"lib/comm/wire.hpp": "#pragma once\n#include <mpi.h>\n"},
        {"lib/graph/reader.cpp": "#include <nccl.h>\n"},
        {"lib/plan/plan.hpp": "#pragma once\n#include <toml++/toml.h>\n"},
        {"lib/plan/reader.cpp": "#include <CLI/CLI.hpp>\n"},
        {"lib/base/error.cpp": "#include <c10/util/Exception.h>\n"},
        {"lib/base/error.cpp": "#include <ATen/core/Tensor.h>\n"},
        {"lib/graph/graph.hpp": "#pragma once\n#include <ATen/core/Tensor.h>\n"},
        {"lib/report/lines.hpp": '#pragma once\n#include "graph/jit_graph.hpp"\n'},
    ],
    "pragma_once": [{"lib/base/error.hpp": "// No guard.\n"}],
    "twin_tests": [{"lib/base/glob.cpp": "\n"}],
    "cmake_lists": [
        {"lib/base/CMakeLists.txt": "vpp_module(base SOURCES more_error.cpp)\n"},
        {"tests/unit/base/CMakeLists.txt": "vpp_unit_tests(base SOURCES)\n"},
        {"app/CMakeLists.txt": "add_executable(vpp main.cpp train.cpp)\n"},
    ],
    "ascii_only": [{"lib/base/error.hpp": "#pragma once\n// na\u00efve\n"}, {"README.md": "a \u2192 b\n"}],
    "columns": [{"app/main.cpp": "/" * 121 + "\n"}, {"scripts/build": "#" * 121 + "\n"}],
    "file_lines": [{"app/main.cpp": "\n" * 601}],
    "left_overs": [
        {"app/main.cpp": "// " + "TO" + "DO: later\n"},
        {"scripts/build": "# " + "FIX" + "ME\n"},
        {"models/gpt.py": "# " + "XX" + "X\n"},
    ],
    "environment": [
        {"lib/base/error.cpp": 'auto home = std::getenv("HOME");\n'},
        {"lib/base/error.cpp": "::environ;\n"},
    ],
    "unique_names": [
        {f"lib/base/{name}.cpp": f"namespace {{\n{line}\n}}  // namespace\n" for name in ("error", "glob")}
        for line in ("struct Place {};", "constexpr int kMost = 8;", "std::string text(int number) {")
    ]
    + [
        {
            "lib/base/error.hpp": "#pragma once\nstd::string text(int number);\n",
            "lib/base/error.cpp": "namespace {\nstd::string text(int number) {\n}  // namespace\n",
        },
        {
            "lib/base/error.cpp": "namespace {\nconstexpr Step kThere{1}, kBack{2};\n}  // namespace\n",
            "lib/base/glob.cpp": "namespace {\nenum Way : int { kAway, kBack };\n}  // namespace\n",
        },
    ],
    "unique_types": [
        {
            f"lib/base/{name}.hpp": "#pragma once\nnamespace vpp {\nclass Place;\nstruct Place {\n};\n}  // namespace\n"
            for name in ("error", "glob")
        }
    ],
    "tested_messages": [
        {"tests/unit/graph/lines_test.cpp": 'EXPECT_EQ(text, "a.txt: is a \\"folder\\"");\n'},
        {"app/main.cpp": 'problems_.push_back({"the mesh has no such axis", place});\n'},
        {"lib/base/error.cpp": 'void f() {\n    refuse("too " + (is_long ? "long a name" : "short"));\n}\n'},
    ],
    "disabled_tests": [
        {"tests/unit/base/error_test.cpp": "TEST(Error, " + "DIS" + "ABLED_throws) {}\n"},
        {"tests/unit/base/CMakeLists.txt": "SOURCES error_test.cpp\nPROPERTIES DIS" + "ABLED TRUE\n"},
    ],
    "file_sizes": [{"models/data.bin": "x" * ((1 << 20) + 1)}],
    "machine_paths": [{"README.md": "See /" + "home/me/vpp.\n"}, {"configs/a.toml": 'file = "/' + 'work/a.pt"\n'}],
}


Violations = Callable[[pathlib.Path, list[str]], list[str]]


def run(violations: Violations, rules: list[str], files: dict[str, str]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        return violations(pathlib.Path(folder), rules)


def self_test(violations: Violations, rules: list[str]) -> int:
    problems = [f"the good tree is refused: {line}" for line in run(violations, rules, GOOD)]
    problems += [f"the rule {rule} has no bad sample" for rule in rules if not BAD.get(rule)]
    for rule, samples in BAD.items():
        for change in samples:
            if not any(f"[{rule}]" in line for line in run(violations, rules, GOOD | change)):
                problems.append(f"the rule {rule} does not catch {change}")
    print("\n".join(problems) or f"{sum(map(len, BAD.values()))} bad samples caught by {len(rules)} rules")
    return 1 if problems else 0
