"""vpp checkpoint and vpp export: exit codes and texts, on a run of three checkpoints that is damaged in every way."""

import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from vpp_process import DIGITS, ROOT, Case, main  # noqa: E402

PYTHON = os.environ.get("VPP_PYTHON", "")


class Run(Case):
    """A run of six steps, saved after every second; trained once for all tests and copied."""

    trained: pathlib.Path | None = None

    @classmethod
    def tearDownClass(cls):
        if cls.trained:
            shutil.rmtree(cls.trained, ignore_errors=True)
            cls.trained = None

    def setUp(self):
        super().setUp()
        self.config = self.plan(DIGITS + '[checkpoint]\nevery = 2\nkeep = 100\n[run]\ndir = "run"\n')
        self.run_folder = self.folder / "run"
        if Run.trained is None or not Run.trained.exists():
            done = self.vpp("train", self.config, "--set", "train.steps=6", ranks=2)
            self.assertEqual(done.returncode, 0, done.stderr)
            Run.trained = pathlib.Path(str(self.folder) + "-trained")
            shutil.copytree(self.run_folder, Run.trained)
        else:
            shutil.copytree(Run.trained, self.run_folder)

    def checkpoint(self, step: int) -> pathlib.Path:
        return self.run_folder / "checkpoints" / f"step-{step:08d}"

    def flip(self, step: int, name: str = "shard-00001.safetensors") -> None:
        path = self.checkpoint(step) / name
        data = bytearray(path.read_bytes())
        data[-100] ^= 1
        path.write_bytes(data)

    def good(self, *arguments: str) -> str:
        done = self.vpp(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def bad(self, code: int, *arguments: str) -> str:
        done = self.vpp(*arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("vpp: error"), 1, done.stderr)
        return done.stdout + done.stderr

    def steps(self) -> list[int]:
        return sorted(int(path.name[5:]) for path in (self.run_folder / "checkpoints").glob("step-*"))


class Look(Run):
    def test_list_names_what_train_goes_on_from(self):
        for where in ("run", "run/", "run/checkpoints", self.config):
            lines = self.good("checkpoint", "list", where).splitlines()
            self.assertIn("3 checkpoints", lines[0])
            self.assertEqual([line.split()[0] for line in lines[2:5]], ["6", "4", "2"])
            self.assertIn("looks whole; train goes on from here", lines[2])
            self.assertEqual(sum("goes on from here" in line for line in lines), 1)

    def test_list_heeds_the_plans_resume(self):
        anew = ("checkpoint", "list", self.config, "--set", "checkpoint.resume=no")
        self.assertIn('checkpoint.resume = "no": train begins anew', self.good(*anew))
        self.assertIsNone(json.loads(self.good(*anew, "--json"))["resumed"])

    def test_list_sees_damage_and_left_overs(self):
        self.flip(6)
        (self.checkpoint(4) / "manifest.json").unlink()
        (self.run_folder / "checkpoints/.tmp-step-00000008-x\x1b[2J").mkdir()
        (self.run_folder / "set-aside/step-00000009").mkdir(parents=True)
        quick = json.loads(self.good("checkpoint", "list", "run", "--json"))
        self.assertEqual([entry["whole"] for entry in quick["checkpoints"]], [True, False, True])
        done = json.loads(self.good("checkpoint", "list", "--config", self.config, "--verify", "--json"))
        self.assertEqual([entry["step"] for entry in done["checkpoints"]], [6, 4, 2])
        self.assertEqual([entry["whole"] for entry in done["checkpoints"]], [False, False, True])
        self.assertEqual(done["checkpoints"][2]["samples"], 64)
        self.assertEqual(done["resumed"], "run/checkpoints/step-00000002")
        self.assertEqual(len(done["set_aside"]), 1)
        self.assertEqual(len(done["left_overs"]), 1)
        text = self.good("checkpoint", "list", "run", "--verify")
        self.assertIn("DAMAGED, so skipped: run/checkpoints/step-00000006/shard-00001.safetensors: damaged", text)
        self.assertIn("has no manifest.json", text)
        self.assertNotIn("\x1b", text)

    def test_what_list_says_is_what_train_does(self):
        self.flip(6)
        self.assertIn("goes on from here", self.good("checkpoint", "list", "run", "--verify").splitlines()[3])
        done = self.vpp("train", self.config, "--set", "train.steps=5", ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("resumed after step 4", done.stderr)

    def test_a_newer_one_behind_a_link_is_not_passed_over(self):
        link, archive = self.checkpoint(6), self.folder / "archive"
        archive.mkdir()
        shutil.move(link, archive)
        link.symlink_to(archive / link.name)
        why = ("run/checkpoints/step-00000006: is a symbolic link, and a checkpoint of a run is a folder in its place; "
               "move that folder back here, or the link away")
        lines = self.good("checkpoint", "list", "run").splitlines()
        self.assertIn("CANNOT BE READ HERE, so no older one is taken: " + why, lines[2])
        self.assertFalse(any("goes on from here" in line for line in lines))
        self.assertIn("DAMAGED: " + why, self.bad(65, "checkpoint", "verify", "run"))
        self.assertIn(": whole, ", self.good("checkpoint", "verify", str(link)))
        train = ("train", self.config, "--set", "train.steps=8")
        done = self.vpp(*train, ranks=2)
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn(why + "; no older checkpoint is taken in place of one that may be whole", done.stderr)
        link.unlink()
        shutil.move(archive / link.name, link)
        done = self.vpp(*train, ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("resumed after step 6", done.stderr)

    def test_metrics_of_another_run_are_no_past_of_this_one(self):
        def steps_told(folder: pathlib.Path) -> list[int]:
            return [json.loads(line)["step"] for line in (folder / "metrics.jsonl").read_text().splitlines()]

        other = self.folder / "other"
        shutil.copytree(self.run_folder, other)
        done = self.vpp("train", self.config, "--set", f"checkpoint.resume={self.checkpoint(4)}", "--set",
                        "run.dir=other", "--set", "train.steps=6", ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(set(steps_told(other)), {5, 6})
        (other / "metrics.jsonl").write_text('{"event":"eval","step":0,"loss":0.01}\n')
        done = self.vpp("train", self.config, "--set", "checkpoint.resume=no", "--set", "run.dir=other", "--set",
                        "train.steps=2", ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(0, steps_told(other))
        self.assertIn(2, steps_told(other))

    def test_verify_reads_every_byte(self):
        self.assertEqual(self.good("checkpoint", "verify", "run").count("whole, 2 shards"), 3)
        self.flip(4)
        text = self.bad(65, "checkpoint", "verify", "run")
        self.assertIn("step-00000006: whole", text)
        self.assertIn("step-00000004: DAMAGED: run/checkpoints/step-00000004/shard-00001.safetensors: damaged", text)
        self.assertIn("1 of 3 checkpoints damaged", text)
        self.assertIn("whole", self.good("checkpoint", "verify", str(self.checkpoint(6))))

    def test_verify_names_each_kind_of_damage(self):
        shard = self.checkpoint(6) / "shard-00000.safetensors"
        whole = shard.read_bytes()

        def said(*expected: str) -> None:
            text = self.bad(65, "checkpoint", "verify", str(self.checkpoint(6)))
            for part in expected:
                self.assertIn(part, text)

        shard.write_bytes(whole[:1000])
        said("shard-00000.safetensors: cut off at byte 1000")
        shard.unlink()
        said("shard-00000.safetensors: is missing",
             "1 of 1 checkpoint damaged, of which 1 only in part in this folder")
        shard.symlink_to(self.checkpoint(4) / shard.name)
        said("is a symbolic link")
        shard.unlink()
        shard.write_bytes(whole)
        (self.checkpoint(6) / "more\x1b[31m").write_text("x")
        said("more?[31m: is not in the manifest's list")

    def test_show(self):
        shown = json.loads(self.good("checkpoint", "show", "run", "--json"))
        self.assertEqual((shown["step"], shown["samples"], len(shown["shards"])), (6, 192, 2))
        names = {tensor["name"]: tensor for tensor in shown["tensors"]}
        weight = next(tensor for name, tensor in names.items() if name.startswith("model.") and name.endswith("weight"))
        size = 4
        for dim in weight["shape"]:
            size *= dim
        self.assertEqual(weight["bytes"], size)
        self.assertIn("optimizer." + weight["name"][6:] + ".exp_avg", names)
        self.assertIn("threads", shown["facts"])
        text = self.good("checkpoint", "show", str(self.checkpoint(4)), "--tensors")
        self.assertIn("step 4, 128 samples", text)
        self.assertIn(weight["name"] + "  float32 [", text)
        plan = self.good("checkpoint", "show", "run", "--plan")
        self.assertEqual(plan, shown["plan"])
        self.assertIn("[pipeline]", plan)

    def write_later_version(self, manifest: pathlib.Path, text: str) -> None:
        """With the checksum that vpp wants to see."""
        text = text.replace('"format_version": 1', '"format_version": 2')
        manifest.write_text(text)
        said = self.bad(65, "checkpoint", "verify", str(manifest.parent))
        right, wrong = re.search("its checksum is ([0-9a-f]+), it says ([0-9a-f]+)", said).groups()
        manifest.write_text(text.replace(wrong, right))

    def test_show_says_what_it_passes_over_and_takes_nothing_for_what_may_be_whole(self):
        manifest = self.checkpoint(6) / "manifest.json"
        text = manifest.read_text()
        manifest.unlink()
        done = self.vpp("checkpoint", "show", "run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("step 4, 128 samples", done.stdout)
        self.assertEqual(done.stderr, "vpp: note: skipped: run/checkpoints/step-00000006 is not a checkpoint: it has "
                                      "no manifest.json; name a folder like checkpoints/step-00000050\n")
        self.write_later_version(manifest, text)
        for more in ((), ("--plan",), ("--json",)):
            self.assertIn("; no older checkpoint is taken in place of one that may be whole",
                          self.bad(65, "checkpoint", "show", "run", *more))
        self.assertIn("step 4, 128 samples", self.good("checkpoint", "show", str(self.checkpoint(4))))

    def test_wrong_places(self):
        self.assertIn("is not there", self.bad(66, "checkpoint", "list", "nowhere"))
        self.bad(66, "checkpoint", "list", "nowhere.toml")
        self.assertIn("no folder 'checkpoints'", self.bad(66, "checkpoint", "list", "."))
        self.assertIn("there is no checkpoint in", self.bad(66, "checkpoint", "verify", self.config,
                                                            "--set", "run.dir=other"))
        self.bad(2, "checkpoint")
        self.bad(2, "checkpoint", "list")
        self.bad(2, "checkpoint", "prune", "run")
        self.bad(2, "checkpoint", "prune", "run", "--keep", "0")
        self.bad(2, "checkpoint", "prune", str(self.checkpoint(6)), "--keep", "1")


class Prune(Run):
    def test_dry_run_deletes_nothing(self):
        text = self.good("checkpoint", "prune", "run", "--keep", "1", "--keep-best", "2", "--dry-run")
        self.assertIn("no checkpoint has a validation loss (train.eval_every), so --keep-best keeps none", text)
        self.assertEqual(text.count("would delete"), 2)
        self.assertEqual(self.steps(), [2, 4, 6])

    def test_prune(self):
        text = self.good("checkpoint", "prune", self.config, "--keep", "1", "--keep-every", "2")
        self.assertEqual(self.steps(), [2, 4, 6])
        text = self.good("checkpoint", "prune", self.config, "--keep", "1", "--keep-every", "4")
        self.assertIn("deletes run/checkpoints/step-00000002", text)
        self.assertEqual(self.steps(), [4, 6])
        self.assertEqual([path.name for path in (self.run_folder / "checkpoints").glob(".*")], [])

    def test_the_best_ones_stay(self):
        for rate, steps in ((0.003, 4), (20, 6)):
            done = self.vpp("train", self.config, "--set", "run.dir=other", "--set", "train.eval_every=2",
                            "--set", f"optimizer.lr={rate}", "--set", f"train.steps={steps}", ranks=2)
            self.assertEqual(done.returncode, 0, done.stderr)
        losses = {line["step"]: line["loss"] for line in self.metrics("other") if line["event"] == "eval"}
        best = min((2, 4, 6), key=losses.get)
        self.assertNotEqual(best, 6, "at such a rate the newest is not the best one")
        text = self.good("checkpoint", "prune", "other", "--keep", "1", "--keep-best", "1")
        self.assertNotIn("keeps none", text)
        self.assertIn(f"keeps   other/checkpoints/step-{best:08d}", text)
        self.assertEqual(sorted(path.name for path in (self.folder / "other/checkpoints").glob("step-*")),
                         [f"step-{best:08d}", "step-00000006"])

    def test_damaged_ones_do_not_count(self):
        self.flip(6)
        text = self.good("checkpoint", "prune", "run", "--keep", "1")
        self.assertIn("counts for nothing", text)
        self.assertEqual(self.steps(), [4, 6])

    def test_a_running_job_keeps_its_folder(self):
        with (self.run_folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write("process 7 on host\n")
            lock.flush()
            self.assertIn("is held by process 7", self.bad(73, "checkpoint", "prune", "run", "--keep", "1"))
            self.assertEqual(self.steps(), [2, 4, 6])
            self.good("checkpoint", "prune", "run", "--keep", "1", "--dry-run")
        self.good("checkpoint", "prune", "run", "--keep", "1")
        self.assertEqual(self.steps(), [6])

    def test_a_running_job_keeps_checkpoints_that_are_behind_a_link(self):
        real = self.folder / "disk/checkpoints"
        real.parent.mkdir()
        shutil.move(self.run_folder / "checkpoints", real)
        (self.run_folder / "checkpoints").symlink_to(real)
        more = ("train", self.config, "--set", "train.steps=8")
        self.assertEqual(self.vpp(*more, ranks=2).returncode, 0)
        with (real / ".lock").open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for arguments in (("checkpoint", "prune", "disk", "--keep", "1"),
                              ("checkpoint", "prune", "run", "--keep", "1")):
                self.assertIn("checkpoints/.lock is held by process ", self.bad(73, *arguments))
            self.assertEqual(self.vpp(*more, ranks=2).returncode, 73)
            self.assertEqual(self.steps(), [2, 4, 6, 8])
        self.good("checkpoint", "prune", "disk", "--keep", "1")
        self.assertEqual(self.steps(), [8])


class Export(Run):
    def loss(self, *arguments: str) -> str:
        one = ("--set", "pipeline.num_stages=1")
        return str(json.loads(self.good("eval", self.config, "--json", *one, *arguments))["loss"])

    def test_the_whole_circle_has_the_checkpoints_bits(self):
        text = self.good("export", self.config, "--safetensors", "w.safetensors", "--torchscript", "m.pt")
        self.assertIn("after step 6", text)
        expected = self.loss()
        self.assertEqual(self.loss("--initial-weights", "--set", f"model.file={self.folder}/m.pt"), expected)
        for source in ("w.safetensors", "run/checkpoints/step-00000006"):
            key = ("--set", f"model.init_from={self.folder / source}")
            self.assertEqual(self.loss("--initial-weights", *key), expected)
            text = self.good("eval", self.config, "--set", "pipeline.num_stages=1", "--initial-weights", *key)
            self.assertIn(f", the weights of {self.folder / source}, ", text)
        self.assertNotEqual(self.loss("--initial-weights"), expected)
        text = self.good("eval", self.config, "--set", "pipeline.num_stages=1", "--initial-weights")
        self.assertIn(", the weights of the model file, ", text)
        self.assertNotEqual(self.loss("--checkpoint", "run/checkpoints/step-00000004"), expected)

    def test_json_of_a_folder_whose_name_is_no_utf8(self):
        odd = os.fsdecode(os.fsencode(self.folder) + b"/d\xff")
        shutil.copytree(self.run_folder, odd)
        newest = odd + "/checkpoints/step-00000006"
        one = ("--set", "pipeline.num_stages=1", "--json")
        for command in (["checkpoint", "show", newest, "--json"],
                        ["eval", self.config, *one, "--checkpoint", newest],
                        ["export", self.config, *one, "--checkpoint", newest, "--safetensors", odd + "/w.safetensors"],
                        ["inspect", odd + "/plan.toml", "--json"]):
            self.assertIn("d\ufffd", json.dumps(json.loads(self.good(*command)), ensure_ascii=False), command)

    def test_training_starts_from_a_file(self):
        self.good("export", self.config, "--safetensors", "w.safetensors", "--torchscript", "m.pt")
        bits = []
        for name, *settings in (("a", f"model.init_from={self.folder}/w.safetensors"),
                                ("b", f"model.init_from={self.checkpoint(6)}", "pipeline.num_stages=1"),
                                ("c", f"model.file={self.folder}/m.pt"), ("d",)):
            settings += [f"run.dir={name}", "train.steps=2"]
            arguments = [item for setting in settings for item in ("--set", setting)]
            done = self.vpp("train", self.config, *arguments, ranks=1 if name == "b" else 2)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual("starting with the weights of" in done.stderr, name in "ab", done.stderr)
            bits.append(self.bits(name))
        self.assertEqual(bits[0], bits[1])
        self.assertEqual(bits[0], bits[2])
        self.assertNotEqual(bits[0], bits[3])
        done = self.vpp("train", self.config, "--set", "run.dir=a", "--set", "model.init_from=gone.safetensors",
                        "--set", "train.steps=3", ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("model.init_from is for a first start", done.stderr)
        done = self.vpp("verify", self.config, "--set", f"model.init_from={self.folder}/w.safetensors", "--steps", "2",
                        ranks=2)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_folder_with_an_index_under_a_wrappers_names(self):
        self.good("export", self.config, "--safetensors", "w.safetensors")
        data = (self.folder / "w.safetensors").read_bytes()
        begin = 8 + int.from_bytes(data[:8], "little")
        header = {"module." + name: entry for name, entry in json.loads(data[8:begin]).items() if name[0] != "_"}
        text = json.dumps(header).encode()
        shards = self.folder / "shards"
        shards.mkdir()
        (shards / "one.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data[begin:])
        index = shards / "model.safetensors.index.json"
        index.write_text(json.dumps({"metadata": {}, "weight_map": {name: "one.safetensors" for name in header}}))
        key = ("--initial-weights", "--set", f"model.init_from={shards}")
        self.assertEqual(self.loss(*key), self.loss())
        done = self.vpp("export", self.config, *key, "--safetensors", "v.safetensors")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the file's names have 'module.' in front of the model's", done.stderr)
        again = (self.folder / "v.safetensors").read_bytes()
        self.assertEqual(again[8 + int.from_bytes(again[:8], "little"):], data[begin:])

    def test_pythons_torch_reads_both(self):
        if not PYTHON:
            self.skipTest("VPP_PYTHON names no interpreter")
        self.good("export", self.config, "--safetensors", "w.safetensors", "--torchscript", "m.pt")
        done = subprocess.run([PYTHON, "-W", "ignore", "-c", READ_BOTH], cwd=self.folder, capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("equal", done.stdout)

    def test_a_tied_weight_is_written_once(self):
        plan = (str(ROOT / "configs/quickstart.toml"), "--set", f"model.file={ROOT}/models/out/gpt_tied.pt",
                "--set", "data.sequence_length=16", "--initial-weights")
        self.good("export", *plan, "--safetensors", "w.safetensors", "--torchscript", "m.pt")
        data = (self.folder / "w.safetensors").read_bytes()
        header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
        ties = {name: owner for name, owner in header["__metadata__"].items() if owner in header}
        self.assertGreater(len(ties), 0)
        self.assertEqual([name for name in ties if name in header], [])
        one = ("--set", "pipeline.num_stages=1", "--batches", "1", "--json")
        losses = [json.loads(self.good("eval", *plan, *one, *more))["loss"] for more in (
            (), ("--set", f"model.init_from={self.folder}/w.safetensors"), ("--set", f"model.file={self.folder}/m.pt"))]
        self.assertEqual([str(losses[0])] * 3, [str(loss) for loss in losses])
        if PYTHON:
            code = f"import torch; s = torch.jit.load('m.pt').state_dict(); print({list(ties.items())!r}, " \
                   f"all(s[a].data_ptr() == s[b].data_ptr() for a, b in {list(ties.items())!r}))"
            done = subprocess.run([PYTHON, "-W", "ignore", "-c", code], cwd=self.folder, capture_output=True, text=True)
            self.assertTrue(done.stdout.endswith("True\n"), done.stdout + done.stderr)

    def test_names_without_the_prefix_of_a_wrapper(self):
        if not PYTHON:
            self.skipTest("VPP_PYTHON names no interpreter")
        inside = ROOT / "models/out/gpt_tied.pt"
        code = f"""
import torch
class Wrapper(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.m = torch.jit.load({str(inside)!r})
    def forward(self, tokens, targets):
        return self.m(tokens, targets)
torch.jit.script(Wrapper()).save("wrapper.pt")
"""
        (self.folder / "wrap.py").write_text(code)
        subprocess.run([PYTHON, "-W", "ignore", "wrap.py"], cwd=self.folder, check=True)

        def export(model: pathlib.Path, *more: str) -> subprocess.CompletedProcess:
            return self.vpp("export", str(ROOT / "configs/quickstart.toml"), "--set", f"model.file={model}", "--set",
                            "data.sequence_length=16", "--initial-weights", *more)

        wrapper, hint = self.folder / "wrapper.pt", "all names begin with 'm.', as a wrapper's do; --strip-prefix m."
        self.assertNotIn("--strip-prefix", export(inside, "--safetensors", "plain.safetensors").stderr)
        said = export(wrapper, "--safetensors", "whole.safetensors").stderr
        self.assertIn(hint + " writes them as the model inside knows them", said)
        done = export(wrapper, "--safetensors", "inside.safetensors", "--strip-prefix", "m")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(hint, done.stderr)
        plain, whole, inner = ((self.folder / f"{name}.safetensors").read_bytes() for name in
                               ("plain", "whole", "inside"))
        self.assertEqual(inner, plain, "names and ties of the model inside")
        self.assertNotEqual(whole, plain)
        done = export(inside, "--safetensors", "none.safetensors", "--strip-prefix", "blocks.")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--strip-prefix blocks.: these names do not begin with it: '", done.stderr)
        self.assertFalse((self.folder / "none.safetensors").exists())
        done = export(inside, "--torchscript", "none.pt", "--strip-prefix", "blocks.")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--strip-prefix is for --safetensors; TorchScript keeps the model's names", done.stderr)

    def test_stages_with_files_of_their_own(self):
        plan = str(ROOT / "configs/two_towers.toml")
        settings = ("--set", "run.dir=towers", "--set", "train.steps=2", "--set", "train.eval_every=0")
        done = self.vpp("train", plan, *settings, ranks=4)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.good("export", plan, *settings, "--torchscript", "stages", "--safetensors", "w.safetensors")
        files = sorted(path.name for path in (self.folder / "stages").iterdir())
        self.assertEqual(files, ["head.pt", "lower.pt", "mix.pt", "upper.pt"])
        own = [item for i, name in enumerate(("upper", "lower", "mix", "head"))
               for item in ("--set", f"pipeline.stage[{i}].file={self.folder}/stages/{name}.pt")]
        expected = json.loads(self.good_on(4, "eval", plan, *settings, "--json"))["loss"]
        exported = json.loads(self.good_on(4, "eval", plan, *settings, *own, "--initial-weights", "--json"))["loss"]
        self.assertEqual(str(exported), str(expected))

    def good_on(self, ranks: int, *arguments: str) -> str:
        done = self.vpp(*arguments, ranks=ranks)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_refusals(self):
        self.bad(2, "export", self.config)
        self.bad(2, "export", self.config, "--safetensors", "w", "--checkpoint", "c", "--initial-weights")
        (self.folder / "w.safetensors").write_text("mine")
        self.assertIn("is there already", self.bad(73, "export", self.config, "--safetensors", "w.safetensors"))
        self.assertEqual((self.folder / "w.safetensors").read_text(), "mine")
        self.good("export", self.config, "--safetensors", "w.safetensors", "--overwrite")
        self.assertIn("--safetensors and --torchscript both write ./s; name two files",
                      self.bad(2, "export", self.config, "--safetensors", "./s", "--torchscript", "s", "--overwrite"))
        self.assertFalse((self.folder / "s").exists())
        self.assertIn("make it first", self.bad(73, "export", self.config, "--safetensors", "none/w.safetensors"))
        self.assertIn("train first", self.bad(66, "export", self.config, "--safetensors", "v", "--set", "run.dir=x"))
        self.assertIn("has no", self.bad(65, "export", self.config, "--safetensors", "v", "--set",
                                         f"model.file={ROOT}/models/out/vgg.pt"))
        self.flip(6)
        self.assertIn("damaged", self.bad(65, "export", self.config, "--torchscript", "v", "--checkpoint",
                                          str(self.checkpoint(6))))
        self.assertEqual([path.name for path in self.folder.glob("*.tmp*")], [])
        self.assertEqual([path.name for path in self.folder.glob("v*")], [])

    def test_damaged_and_unfit_files_are_refused_at_the_start(self):
        self.good("export", self.config, "--safetensors", "w.safetensors")
        file = self.folder / "w.safetensors"
        data = bytearray(file.read_bytes())
        data[-20] ^= 1
        file.write_bytes(data)
        settings = ("--set", f"model.init_from={file}", "--set", "run.dir=new")
        done = self.vpp("train", self.config, *settings, ranks=2)
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("damaged", done.stderr)
        done = self.vpp("train", self.config, *settings, "--set", "model.init_from=gone", ranks=2)
        self.assertEqual(done.returncode, 66, done.stderr)


# The tensors of both files, by PyTorch alone; safetensors is read by hand, as its format page has it.
READ_BOTH = """
import json, struct, torch
data = open("w.safetensors", "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
assert header.pop("__metadata__")["format"] == "pt"
model = torch.jit.load("m.pt")
state = model.state_dict()
assert sorted(state) == sorted(header), (sorted(state), sorted(header))
for name, entry in header.items():
    begin, end = entry["data_offsets"]
    stored = data[8 + size + begin:8 + size + end]
    tensor = state[name].contiguous()
    assert list(tensor.shape) == entry["shape"], name
    assert tensor.numpy().tobytes() == stored, name
outputs = model(torch.zeros(4, 1, 8, 8))
print(len(header), "tensors are equal", type(outputs).__name__)
"""


if __name__ == "__main__":
    main()
