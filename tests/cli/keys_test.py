"""What is said of the keys of a plan: vpp explain, the reference page, and the JSON Schema against real plans."""

import copy
import json
import pathlib
import re
import subprocess
import sys
import tomllib
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from vpp_process import FULL, ROOT, Case, main  # noqa: E402

PAGE = ROOT / "configs/REFERENCE.md"
# Reads {"schema": ..., "plans": [...]}; prints for every plan the places of what the schema refuses.
VALIDATOR = """
import json, sys, jsonschema
given = json.load(sys.stdin)
jsonschema.Draft202012Validator.check_schema(given["schema"])
validator = jsonschema.Draft202012Validator(given["schema"])
found = [[error.json_path for error in validator.iter_errors(plan)] for plan in given["plans"]]
print(json.dumps(found))
"""

PLAN = """
[model]
file = "m.pt"
[data]
kind = "tokens"
train = ["a.bin"]
[optimizer]
betas = [0.9, 0.95]
[[optimizer.group]]
match = ["*.bias"]
"""
# Changes of PLAN by --set, and whether each breaks it for the reader and for the schema alike.
CHANGES = [
    ("train.steps=5", True), ("train.steps=0", False), ("train.steps=1.5", False), ("train.steps='5'", False),
    ("train.stepps=5", False), ("nothing.at_all=1", False), ("model.file=5", False), ("model.file=''", False),
    ("pipeline.schedule_type=1F1B", True), ("pipeline.schedule_type=SIMPLE_1F1B", True),
    ("pipeline.schedule_type=1FB1", False), ("data.kind=cifar10", True), ("data.kind=cifar", False),
    ("data.kind=synthetic", True),
    ("optimizer.betas=[0.9, 1.0]", False), ("optimizer.betas=[0.9]", False), ("optimizer.betas=[0, 0.5]", True),
    ("optimizer.momentum=1", False), ("lr_schedule.gamma=0", False), ("lr_schedule.gamma=0.1", True),
    ("optimizer.group[0].lr=0.1", True), ("optimizer.group[0].rate=0.1", False), ("optimizer.group=[{lr=1}]", False),
    ("pipeline.virtual_chunks=auto", True), ("pipeline.virtual_chunks=many", False),
    ("pipeline.memory_limit='8GiB'", True), ("pipeline.memory_limit='8 apples'", False),
    ("pipeline.memory_limit=0.5", False), ("pipeline.search.seed=3", True), ("pipeline.search.seed=-3", False),
    ("data.train={a='a.npy'}", True), ("data.train={a=1}", False), ("data.train='a.bin'", False),
    ("data.shuffle=1", False), ("train.accumulate=1", True), ("train.accumulate=2", True),
    ("train.accumulate=0", False), ("model.freeze=['*']", True), ("mesh.tp=2", False),
    ("mesh.device=tpu", False), ("loss.kind=mse", False), ("loss={kind='mse', target='y'}", True),
    ("model.init=[{}]", False), ("model.init=[{match=['*'], kind='ones'}]", True),
    ("eval.metrics=['accuracy']", True), ("data.fields={x='float32[3]'}", True), ("pipeline.cost_file=''", True),
]


def checks_python() -> str:
    """The interpreter that scripts/setup made for checks like these; empty when it is not there."""
    script = f"source {ROOT}/scripts/paths.sh && echo $vpp_checks_python"
    path = pathlib.Path(subprocess.run(["bash", "-c", script], text=True, capture_output=True).stdout.strip())
    return str(path) if path.exists() else ""


class Explain(Case):
    def test_a_key(self):
        done = self.vpp("explain", "train.precision")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, """train.precision
  Element type of the computation; parameters stay as they are.

  type      word
  default   "fp32"
  words     fp32, bf16, fp16

    [train]
    precision = "bf16"
""")

    def test_sections_and_all(self):
        self.assertIn("moves = 20000000", self.vpp("explain", "pipeline.search").stdout)
        everything = self.vpp("explain").stdout
        for line in everything.splitlines():
            self.assertLessEqual(len(line), 80)
        self.assertIn("[[pipeline.stage]]", everything)

    def test_words_come_from_the_registries(self):
        listed = json.loads(self.vpp("schedule", "list", "--json").stdout)
        said = self.vpp("explain", "pipeline.schedule_type").stdout
        for kind in listed:
            self.assertEqual(kind["name"] in said, kind["trains"], kind)

    def test_unknown_keys(self):
        for question, answer in {
            "pipeline.num_stage": "did you mean 'pipeline.num_stages'?",
            "shared_modules": "leave it out: tied parameters are found in the model",
            "GPIPE": "it is a word of pipeline.schedule_type",
            "gradient_accumulation": "did you mean train.accumulate?",
            "zero_optimization.stage": "did you mean mesh.zero1? Replicas share the optimizer's state then; their "
                                       "weights and gradients stay whole",
        }.items():
            done = self.vpp("explain", question)
            self.assertEqual((done.returncode, done.stdout), (2, ""), question)
            self.assertEqual(done.stderr, f"vpp: error: a plan has no key '{question}'; {answer}\n")


class Cuda(Case):
    def test_its_words_are_there_with_its_parts(self):
        plan = self.plan(PLAN)
        for setting in ("mesh.device=cuda", "mesh.transport=nccl"):
            said = self.vpp("data", "order", plan, "--set", "no.such_key=1", "--set", setting).stderr
            self.assertEqual("is not compiled in: VPP_CUDA" in said, not self.has_cuda_parts(), said)
            key = setting.partition("=")[0]
            self.assertEqual("not yet" in self.vpp("explain", key).stdout, not self.has_cuda_parts(), key)


class Reference(Case):
    def page(self) -> str:
        done = self.vpp("explain", "--markdown")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def page_without_cuda_parts(self) -> str:
        page = self.page()
        for others, word in (("`auto`, `cpu`", "cuda"), ("`auto`, `mpi`", "nccl")):
            page = page.replace(f"- words: {others}, `{word}`\n",
                                f"- words: {others}\n- not yet: {word} (is not compiled in: VPP_CUDA)\n")
        return page

    def test_the_page_in_the_repository_is_current(self):
        self.assertEqual(PAGE.read_text(), self.page_without_cuda_parts(),
                         "write it anew:  build/vpp explain --markdown > configs/REFERENCE.md")

    def test_a_page_that_is_not_would_be_seen(self):
        for old, new in (("- default: `\"1F1B\"`", "- default: `\"GPIPE\"`"), ("### `train.steps`\n", "")):
            self.assertIn(old, self.page())
            self.assertNotEqual(PAGE.read_text(), self.page().replace(old, new))

    def test_links_lead_to_headings(self):
        page = self.page()
        headings = {re.sub(r"[^a-z0-9_-]", "", heading) for heading in re.findall(r"^## (.*)$", page, re.M)}
        links = re.findall(r"\]\(#([^)]*)\)", page)
        self.assertEqual(set(links), headings)
        self.assertIn("configs/REFERENCE.md", (ROOT / "README.md").read_text())


@unittest.skipUnless(checks_python(), "the package jsonschema is not installed; scripts/setup does it")
class Schema(Case):
    def refused(self, *plans: dict) -> list[list[str]]:
        """The places in each plan that the schema refuses."""
        schema = json.loads(self.vpp("schema").stdout)
        done = subprocess.run([checks_python(), "-c", VALIDATOR], input=json.dumps({"schema": schema, "plans": plans}),
                              text=True, capture_output=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_all_plans_of_the_repository_fit(self):
        files = sorted([*ROOT.glob("configs/*.toml"), *ROOT.glob("tests/cuts/*.toml")])
        self.assertGreater(len(files), 9)
        plans = [tomllib.loads(file.read_text()) for file in files]
        for file, places in zip(files, self.refused(*plans), strict=True):
            self.assertEqual(places, [], file)

    def test_broken_plans_are_refused_at_their_places(self):
        good = tomllib.loads(PLAN)
        broken, places = [], []

        def add(place: str, *path: str, value: object = None) -> None:
            plan = copy.deepcopy(good)
            table = plan
            for part in path[:-1]:
                table = table.setdefault(part, {})
            if value is None:
                del table[path[-1]]
            else:
                table[path[-1]] = value
            broken.append(plan)
            places.append(place)

        add("$.train", "train", "stepps", value=3)
        add("$.train.steps", "train", "steps", value=0)
        add("$.optimizer.betas[1]", "optimizer", "betas", value=[0.5, 1.0])
        add("$.pipeline.mode", "pipeline", "mode", value="EAGER")
        add("$.model", "model", "file")
        add("$", "model")
        add("$", "data")
        add("$", "extra", value={})
        add("$.pipeline.stage[0]", "pipeline", "stage", value=[{"name": "a", "inputs": ["x"]}])
        self.assertEqual(self.refused(good), [[]])
        self.assertEqual(self.refused(*broken), [[place] for place in places])

    def test_a_plan_of_own_stages_needs_no_model(self):
        plan = tomllib.loads(PLAN)
        del plan["model"]
        plan["pipeline"] = {"stage": [{"name": "a", "file": "a.pt", "inputs": ["x"], "outputs": ["y"]}]}
        self.assertEqual(self.refused(plan), [[]])

    def test_schema_and_reader_agree(self):
        plan = self.plan(PLAN)

        def mistakes(*settings: str) -> str:
            """What the reader says beside one mistake, so that rules between keys are never looked at."""
            words = [word for setting in ("no.such_key=1", *settings) for word in ("--set", setting)]
            done = self.vpp("data", "order", plan, *words)
            self.assertEqual(done.returncode, 78)
            return done.stderr

        one_mistake = mistakes()
        for setting, good in CHANGES if FULL else CHANGES[::3]:
            with self.subTest(setting):
                said = mistakes(setting)
                self.assertEqual(said == one_mistake, good, said)
        plans = [changed(tomllib.loads(PLAN), setting) for setting, _ in CHANGES]
        for (setting, good), places in zip(CHANGES, self.refused(*plans), strict=True):
            self.assertEqual(not places, good, f"{setting}: {places}")

    def test_every_default_is_a_value_that_reads_back(self):
        """Every default of the schema, written into a plan, changes nothing of it."""
        schema = json.loads(self.vpp("schema").stdout)
        plan = tomllib.loads(PLAN)
        written = 0
        for path, value in defaults(schema):
            if path[0] == "loss" or path[:2] in (("optimizer", "group"), ("data", "transform")):
                continue
            table = plan
            for part in path[:-1]:
                table = table.setdefault(part, {})
            if path[-1] not in table:
                table[path[-1]] = value
                written += 1
        self.assertGreater(written, 50)
        self.assertEqual(self.refused(plan), [[]])


def changed(plan: dict, setting: str) -> dict:
    """The plan with a --set argument applied as vpp does it: the value as TOML, else as a text."""
    name, text = setting.split("=", 1)
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    parts = [int(part) if part.isdigit() else part for part in re.findall(r"\w+", name)]
    table = plan
    for part in parts[:-1]:
        table = table[part] if isinstance(part, int) else table.setdefault(part, {})
    table[parts[-1]] = value
    return plan


def defaults(schema: dict, above: tuple = ()) -> list[tuple[tuple, object]]:
    found = []
    for name, below in schema.get("properties", {}).items():
        path = (*above, name)
        if "default" in below:
            found.append((path, below["default"]))
        found += defaults(below.get("items", below) if isinstance(below.get("items", below), dict) else {}, path)
    return found


if __name__ == "__main__":
    main()
