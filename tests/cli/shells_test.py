"""Completion in real shells, and the manual page: scripts as vpp prints them. Shells that are not there are skipped."""

import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from vpp_process import ENVIRONMENT, Case, main  # noqa: E402

# Loads the script and calls its function with the words of $@, the last one half-typed; prints what is offered.
BASH = """
source ./vpp.bash
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
compopt() { :; }  # bash allows it in a real completion only
_vpp vpp "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
[ ${#COMPREPLY[@]} = 0 ] || printf '%s\\n' "${COMPREPLY[@]}"
"""


def needs(program: str):
    return unittest.skipUnless(shutil.which(program), f"{program} is not installed")


class Shells(Case):
    def setUp(self):
        super().setUp()
        for name in ("plan.toml", "other plan.toml", "notes.txt"):
            (self.folder / name).touch()
        for name in ("runs", "plans.d"):
            (self.folder / name).mkdir()

    def script(self, shell: str) -> str:
        done = self.vpp("completion", shell)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        (self.folder / f"vpp.{shell}").write_text(done.stdout)
        return done.stdout

    def shell(self, *command: str) -> list[str]:
        done = subprocess.run(command, cwd=self.folder, env=ENVIRONMENT, text=True, capture_output=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""), command)
        return done.stdout.splitlines()


# The line as bash splits it, and what must, and must not, be offered.
LINES = [
    (["vpp", ""], ["train", "schedule", "explain"], ["--help", "show"]),
    (["vpp", "tr"], ["train"], ["verify"]),
    (["vpp", "schedule", "s"], ["show", "simulate", "search"], ["check", "plan.toml"]),
    (["vpp", "train", ""], ["plan.toml", "other plan.toml", "runs"], ["notes.txt", "train"]),
    (["vpp", "train", "o"], ["other plan.toml"], ["plan.toml"]),
    (["vpp", "train", "--"], ["--config", "--set", "--log-level", "--help"], ["--world", "plan.toml"]),
    (["vpp", "train", "--config", ""], ["plan.toml"], ["notes.txt"]),
    (["vpp", "data", "info", ""], ["notes.txt", "plan.toml"], ["info"]),
    (["vpp", "run", ""], ["plan.toml", "train", "eval", "verify"], ["notes.txt", "inspect"]),
    (["vpp", "run", "verify", ""], ["plan.toml"], ["notes.txt", "verify"]),
    (["vpp", "run", "plan.toml", "--set", "pipe"], ["pipeline.schedule_type="], ["train.steps="]),
    (["vpp", "train", "--log-level", "w"], ["warn"], ["info"]),
    (["vpp", "train", "--log-level", "=", "w"], ["warn"], ["info"]),
    (["vpp", "train", "--log-level", "="], ["warn", "info"], ["plan.toml"]),
    (["vpp", "train", "plan.toml", "--set", "pipeline.sch"],
     ["pipeline.schedule_type=", "pipeline.schedule_file="], ["pipeline.mode="]),
    (["vpp", "train", "--set", "optimizer.g"], ["optimizer.group[0].lr="], ["optimizer.group.lr="]),
    (["vpp", "train", "--set", "pipeline.schedule_type", "=", "ZERO_BUBBLE_V"], ["ZERO_BUBBLE_V"], ["GPIPE"]),
    (["vpp", "train", "--set", "pipeline.schedule_type", "="], ["GPIPE", "AUTO"], ["plan.toml"]),
    (["vpp", "train", "--set", "train.steps", "=", ""], [], ["GPIPE", "plan.toml"]),
    (["vpp", "train", "--set", "data.shuffle", "=", "true", "--set", "mesh.z"], ["mesh.zero1="], ["true"]),
    (["vpp", "train", "--set", "data.shuffle", "=", "true", ""], ["plan.toml"], ["true"]),
    (["vpp", "inspect", "--world", ""], [], ["plan.toml"]),
    (["vpp", "eval", "plan.toml", "--checkpoint", ""], ["runs"], ["plan.toml"]),
    (["vpp", "schedule", "show", "--schedule", "ZERO_BUBBLE_H"], ["ZERO_BUBBLE_H1", "ZERO_BUBBLE_H2"], ["GPIPE"]),
    (["vpp", "run", ""], ["plan.toml", "other plan.toml"], ["notes.txt"]),
    (["vpp", "schedule", "check", ""], ["notes.txt", "plan.toml"], ["--json"]),
    (["vpp", "completion", ""], ["bash", "zsh", "fish"], ["plan.toml"]),
    (["vpp", "explain", "train.st"], ["train.steps"], ["train.seed"]),
    (["vpp", "explain", "train.steps", ""], [], ["train.steps"]),
    (["vpp", "init", ""], ["gpt-tiny", "own-model"], ["plan.toml"]),
    (["vpp", "init", "manual", ""], ["runs"], ["plan.toml", "gpt-tiny"]),
    (["vpp", "compare", ""], ["runs"], ["plan.toml"]),
    (["vpp", "report", ""], ["runs"], ["plan.toml"]),
    (["vpp", "compare", "--metric", "train/l"], ["train/loss", "train/lr"], ["eval/loss"]),
    (["vpp", "sweep", ""], ["plan.toml"], ["notes.txt"]),
    (["vpp", "sweep", "plan.toml", "--grid", "optimizer.l"], ["optimizer.lr="], ["train.steps="]),
    (["vpp", "nonsense", ""], ["train"], ["plan.toml"]),
]


@needs("bash")
class Bash(Shells):
    def test_what_is_offered(self):
        self.script("bash")
        for words, offered, other in LINES:
            with self.subTest(" ".join(words)):
                found = self.shell("bash", "--norc", "-c", BASH, "bash", *words)
                self.assertLessEqual(set(offered), set(found))
                self.assertFalse(set(other) & set(found), found)
                if not offered:
                    self.assertEqual(found, [])

    def test_a_script_with_a_hole_offers_less(self):
        script = self.script("bash")
        self.assertIn("words trace debug", script)
        (self.folder / "vpp.bash").write_text(script.replace("words trace debug", "nothing trace debug"))
        self.assertEqual(self.shell("bash", "--norc", "-c", BASH, "bash", "vpp", "train", "--log-level", "w"), [])

    def test_it_names_the_function_and_is_sound(self):
        self.script("bash")
        self.assertEqual(self.shell("bash", "--norc", "-c", "source ./vpp.bash && complete -p vpp"),
                         ["complete -F _vpp vpp"])


@needs("zsh")
class Zsh(Shells):
    def test_syntax(self):
        script = self.script("zsh")
        self.assertTrue(script.startswith("#compdef vpp\n"))
        self.shell("zsh", "-f", "-n", "vpp.zsh")
        (self.folder / "broken.zsh").write_text(script + "case $words in\n")
        broken = subprocess.run(["zsh", "-f", "-n", self.folder / "broken.zsh"], capture_output=True)
        self.assertNotEqual(broken.returncode, 0)

    def test_it_is_loaded_by_the_completion_system(self):
        self.script("zsh")
        (self.folder / "vpp.zsh").rename(self.folder / "_vpp")
        found = self.shell("zsh", "-f", "-c", "fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D; "
                           "echo $_comps[vpp]; autoload -Uz +X _vpp && echo loaded")
        self.assertEqual(found, ["_vpp", "loaded"])


@needs("fish")
class Fish(Shells):
    def offered(self, line: str) -> list[str]:
        lines = self.shell("fish", "--no-config", "-c", f"source vpp.fish; complete -C '{line}'")
        return [line.split("\t")[0] for line in lines]

    def test_what_is_offered(self):
        self.script("fish")
        for line, offered, other in (
            ("vpp tr", ["train"], ["verify"]),
            ("vpp schedule s", ["show", "simulate", "search"], ["check"]),
            ("vpp train ", ["plan.toml", "runs/"], ["notes.txt", "train"]),
            ("vpp train --config ", ["plan.toml", "runs/"], ["notes.txt"]),
            ("vpp train --lo", ["--log-level"], ["--set"]),
            ("vpp train --log-level w", ["warn"], ["info"]),
            ("vpp train --set pipeline.schedule_t", ["pipeline.schedule_type="], ["pipeline.mode="]),
            ("vpp train --set pipeline.schedule_type=GP", ["pipeline.schedule_type=GPIPE"], ["GPIPE"]),
            ("vpp explain train.st", ["train.steps"], ["train.seed"]),
            ("vpp schedule check n", ["notes.txt"], ["train"]),
        ):
            with self.subTest(line):
                found = self.offered(line)
                self.assertLessEqual(set(offered), set(found))
                self.assertFalse(set(other) & set(found), found)


class ManPage(Case):
    def page(self) -> str:
        done = self.vpp("man")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    @needs("groff")
    def test_groff_has_nothing_to_warn_of(self):
        def warnings(page: str) -> str:
            return subprocess.run(["groff", "-man", "-Tascii", "-ww", "-rLL=80n", "-z"], input=page, text=True,
                                  capture_output=True, timeout=60).stderr

        self.assertEqual(warnings(self.page()), "")
        self.assertNotEqual(warnings(self.page() + "\\*[nowhere]\n"), "", "the check itself")

    @needs("man")
    def test_man_reads_it(self):
        (self.folder / "vpp.1").write_text(self.page())
        done = subprocess.run(["man", "--warnings", "--local-file", self.folder / "vpp.1"], text=True,
                              capture_output=True, timeout=60, env=ENVIRONMENT | {"MANWIDTH": "80", "LC_ALL": "C"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for text in ("NAME", "vpp schedule check [OPTIONS] FILE", "--log-level", "EXIT STATUS", "plan error"):
            self.assertIn(text, done.stdout)
        self.assertNotIn("\\f", done.stdout)

    def test_it_has_every_command_that_the_help_has(self):
        page = self.page().replace("\\-", "-")
        for command in ("train", "eval", "inspect", "verify", "checkpoint prune", "data order", "explain", "man"):
            self.assertIn(f'.SS "vpp {command} ', page)


if __name__ == "__main__":
    main()
