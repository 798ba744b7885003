#!/usr/bin/env python3
"""A program starts wherever its sections fall: here its code ends just before the end of a page.

page_end_test.py COMPILER LINK_OPTION...
"""

import pathlib
import re
import subprocess
import sys
import tempfile

PAGE_BYTES = 4096
LINE_BYTES = 64  # a multiple of what a large constant and the code behind it are aligned to
SOURCE = """
__thread char counter;
const char constants[CONSTANTS] = {1};
int main() { return counter + constants[0] - 1; }
__asm__(".text\\n.skip " NOTHING "\\n");
"""


def linked(folder: pathlib.Path, command: list[str], constants: int, nothing: int) -> pathlib.Path:
    program = folder / f"program_{constants}_{nothing}"
    sizes = [f"-DCONSTANTS={constants}", f'-DNOTHING="{nothing}"']
    subprocess.run([command[0], *sizes, folder / "main.c", "-o", program, *command[1:]], check=True)
    return program


def data_start(program: pathlib.Path) -> int:
    """The address behind the code where thread-local variables and constant data begin."""
    headers = subprocess.run(["readelf", "-lW", program], check=True, capture_output=True, text=True).stdout
    return int(re.search(r"GNU_RELRO\s+\S+\s+(0x[0-9a-f]+)", headers)[1], 16)


def main() -> int:
    command = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "main.c").write_text(SOURCE)
        missing = (PAGE_BYTES - 4 - data_start(linked(folder, command, LINE_BYTES, LINE_BYTES))) % PAGE_BYTES
        nothing = missing % LINE_BYTES
        program = linked(folder, command, LINE_BYTES + missing - nothing, LINE_BYTES + nothing)
        start = data_start(program)
        ended = subprocess.run([program], capture_output=True, text=True)
    if ended.returncode != 0:
        print(f"a program with data from {start:#x} on ended with {ended.returncode}: {ended.stderr}")
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main())
