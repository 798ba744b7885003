"""The CUDA parts are built from what set-up installs alone: a machine may have a toolkit's headers where every compiler
looks. Arguments: a C++ compiler, and the folders of CUDA's and NCCL's headers."""

import pathlib
import subprocess
import sys
import unittest

COMPILER, *FOLDERS = sys.argv[1:]
SOURCE = "#include <cuda_runtime_api.h>\n#include <nccl.h>\n"


def headers(folders: list[str]) -> list[str]:
    listed = subprocess.run([COMPILER, "-x", "c++", "-M", "-", *(f"-I{folder}" for folder in folders)], input=SOURCE,
                            capture_output=True, text=True)
    if listed.returncode != 0:
        raise AssertionError(listed.stderr)
    return listed.stdout.replace("\\\n", " ").split()[2:]


class Headers(unittest.TestCase):
    def test_none_is_of_a_toolkit(self):
        if not any((pathlib.Path(folder) / "crt/host_defines.h").exists() for folder in FOLDERS):
            self.skipTest("scripts/setup could not install CUDA's headers")
        found = headers(FOLDERS)
        self.assertTrue(any(path.endswith("/nccl.h") for path in found))
        for path in found:
            of_wheels = any(path.startswith(folder) for folder in FOLDERS)
            self.assertTrue(of_wheels or path.startswith(("/usr/include/", "/usr/lib/")), path)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
