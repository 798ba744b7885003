"""Models that cannot be used, made by PyTorch itself: the exit code and the whole message of each."""

import hashlib
import json
import pathlib
import struct
import subprocess
import sys
import zipfile
from typing import Dict, List, Tuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import numpy  # noqa: E402
import torch  # noqa: E402
from tiny_model import ARRAYS_PLAN, LENGTHS_PLAN, PLAN, Net, Trims, save_arrays, save_tokens  # noqa: E402
from vpp_process import Case, main  # noqa: E402


@torch.jit.interface
class Step(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pass


class Interface(torch.nn.Module):
    """Calls modules whose classes its code does not say."""

    step: Step

    def __init__(self):
        super().__init__()
        self.step = Net()
        self.steps = torch.nn.ModuleList([Net(), Net()])
        self.named = torch.nn.ModuleDict({"first": Net()})

    def forward(self, x):
        last: Step = self.steps[-1]
        first: Step = self.named["first"]
        return self.step.forward(first.forward(last.forward(x)))


class InterfaceByData(Interface):
    def forward(self, x):
        chosen: Step = self.steps[int(x.sum() > 0)]
        return chosen.forward(x)


class Masked(Net):
    """Nothing trained goes into what it gives for zeros."""

    def forward(self, x):
        if bool((x == 0).all()):
            return torch.zeros_like(x)
        return self.fc(x)


class Made(torch.nn.Module):
    """Its weight is made by code while the file is loaded."""

    def __init__(self):
        super().__init__()
        self.register_buffer("made", torch.ones(4))

    @torch.jit.export
    def __getstate__(self):
        return 4

    @torch.jit.export
    def __setstate__(self, size: int):
        self.training = True
        self.made = torch.ones([size])

    def forward(self, x):
        return x * self.made


class Scaling(torch.nn.Module):
    """With a weight beside it that is in the file."""

    def __init__(self):
        super().__init__()
        self.made = Made()
        self.bias = torch.nn.Parameter(torch.ones(4))

    def forward(self, x):
        return self.made(x) + self.bias


@torch.jit.script
class Box:
    def __init__(self, held: torch.Tensor):
        self.held = held

    def get(self) -> torch.Tensor:
        return self.held


class Boxed(torch.nn.Module):
    """A tensor of it is in an object of a class of its own."""

    def __init__(self):
        super().__init__()
        self.box = Box(torch.ones(4))

    def forward(self, x):
        return x * self.box.get()


@torch.jit.script
class Scale:
    def __init__(self, by: float):
        self.by = by


class Scaled(torch.nn.Module):
    """Has objects by the number of dims, as layers of einops do, and in a list."""

    scales: Dict[int, Scale]
    others: List[Scale]
    from_list: torch.jit.Final[bool]

    def __init__(self, from_list: bool):
        super().__init__()
        self.scales, self.others, self.from_list = {2: Scale(2.0), 3: Scale(3.0)}, [Scale(4.0)], from_list
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x):
        by = self.others[0].by if self.from_list else self.scales[x.dim()].by
        return self.fc(x * by)


def twice(self, given: Tuple[torch.Tensor], made: torch.Tensor) -> torch.Tensor:
    return made * 2


class Listed(torch.nn.Module):
    """Its result, out of a list, is its argument where x is not zero."""

    def forward(self, h, x):
        if bool(x.abs().sum() > 0):
            g = [h]
        else:
            g = [h + 1]
        return g[0]


class Skipped(torch.nn.Module):
    """Its result is its argument where x is not zero."""

    def forward(self, h, x):
        if bool(x.abs().sum() > 0):
            g = h
        else:
            g = h + 1
        return g


class Around(torch.nn.Module):
    """What is in the middle gives a tensor that stages send beside its own argument."""

    def __init__(self, middle: torch.nn.Module):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.middle = middle
        self.last = torch.nn.Linear(4, 4)

    def forward(self, x):
        h = self.first(x)
        g = self.middle(h, x)
        return self.last(h) + g


class Spread(torch.nn.Module):
    """Its elements lie beside each other in memory, or apart, where x is not zero."""

    def __init__(self, beside: bool):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)
        self.at_zero, self.change = (2, -1) if beside else (1, 1)

    def forward(self, x):
        h = self.fc(x).flatten()
        step = self.at_zero + self.change * int(x.abs().sum() > 0)
        return torch.cat([h, h])[::step][: h.size(0)]


class Gather(torch.nn.Module):
    """Its result is its argument where its elements lie beside each other."""

    def forward(self, h):
        return h.contiguous()


class Gathered(torch.nn.Module):
    """Two tensors, which are one in some microbatches."""

    def __init__(self, beside: bool):
        super().__init__()
        self.first = Spread(beside)
        self.middle = Gather()

    def forward(self, x):
        h = self.first(x)
        g = self.middle(h)
        return (h * 2 + g).view(-1, 4)


class Sums(torch.nn.Module):
    """A loss, and an output that is not by sample."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x, y):
        out = self.fc(x)
        return torch.nn.functional.mse_loss(out, y), out.sum(0)


class Lookup(torch.nn.Module):
    """Its gradient is sparse."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(8, 4, sparse=True)

    def forward(self, x):
        return self.table(x)


class Packed(torch.nn.Module):
    """Takes each sequence at its own length, which no zeros are."""

    def __init__(self):
        super().__init__()
        self.gru = torch.nn.GRU(4, 6, num_layers=2, batch_first=True)
        self.head = torch.nn.Linear(6, 4)

    def forward(self, x, lengths):
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return self.head(torch.tanh(self.gru(packed)[1][1]))


class Attention(torch.nn.Module):
    """PyTorch's own layers: in evaluation they take ways of their own, and give no weights of the attention."""

    def __init__(self):
        super().__init__()
        later = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
        self.decoder = torch.nn.TransformerDecoderLayer(4, 2, 8, batch_first=True)
        layer = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.register_buffer("later", later)
        self.register_buffer("mask", torch.zeros(5, 5).masked_fill(later, float("-inf")))

    def forward(self, x):
        return self.encoder(self.decoder(x, x, tgt_mask=self.later), mask=self.mask)


def with_a_second_directory(archive: bytes, left_out: str) -> bytes:
    """Behind the end of the archive, as its comment, stands a directory that lacks a file. Some readers take that."""
    end = archive[-22:]
    size, offset = struct.unpack("<II", end[12:20])
    directory, rest, count = b"", archive[offset : offset + size], 0
    while rest:
        lengths = struct.unpack("<HHH", rest[28:34])
        length = 46 + sum(lengths)
        if not rest[46 : 46 + lengths[0]].decode().endswith(left_out):
            directory, count = directory + rest[:length], count + 1
        rest = rest[length:]
    place = len(archive)
    second = end[:8] + struct.pack("<HHIIH", count, count, len(directory), place, 0)
    return archive[:-2] + struct.pack("<H", len(directory) + len(second)) + directory + second


class Models(Case):
    def setUp(self):
        super().setUp()
        self.path = self.folder / "model.pt"
        torch.manual_seed(1)

    def save(self, model: torch.nn.Module) -> None:
        torch.jit.script(model).save(str(self.path))

    def refused(self, message: str, *arguments: str, plan: str = PLAN, ranks: int = 0) -> None:
        done = self.vpp(*(arguments or ("inspect",)), self.plan(plan), ranks=ranks)
        self.assertEqual(done.returncode, 65, done.stdout + done.stderr)
        self.assertIn(message, done.stderr)

    def rewritten(self, changes: dict[str, bytes]) -> bytes:
        """The model's records, stored anew, some with other contents."""
        with zipfile.ZipFile(self.path) as archive:
            entries = [(name, archive.read(name)) for name in archive.namelist()]
        with zipfile.ZipFile(self.path, "w") as archive:
            for name, data in entries:
                archive.writestr(name, changes.get(name.partition("/")[2], data))
        return self.path.read_bytes()

    def test_a_loss_without_a_gradient(self):
        self.save(Masked())
        save_arrays(self.folder, 0)
        x = numpy.load(self.folder / "x.npy")
        x[2:4] = 0
        numpy.save(self.folder / "x.npy", x)
        self.refused("stage 0, B of microbatch 1: the loss of this microbatch has no gradient", "train",
                     plan=ARRAYS_PLAN.replace('kind = "arrays"', 'kind = "arrays"\nshuffle = false'), ranks=1)

    def test_an_interface(self):
        self.save(Interface())
        done = self.vpp("inspect", self.plan(PLAN), "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        modules = [op["module"] for op in json.loads(done.stdout)["training"]["graph"]["ops"]]
        self.assertEqual([name for name in dict.fromkeys(modules) if name and name != "loss"],
                         ["steps.1.fc", "named.first.fc", "step.fc"])
        self.save(InterfaceByData())
        self.refused("the model calls 'forward' through the interface Step")
        self.refused(" at models_test.py:")
        self.refused(", where the data may choose the module, so no stage could have it; call each under an if")

    def test_a_max_norm_that_scripting_leaves_out(self):
        plan = self.plan(PLAN.replace('x = "float32[4]"', 'x = "int64[2] < 5"'))
        said = "torch.jit.script leaves max_norm out, so rows keep the norm that training gives them"
        for norm in (0.5, None):
            self.save(torch.nn.Sequential(torch.nn.Embedding(5, 2, max_norm=norm), torch.nn.Flatten()))
            done = self.vpp("train", plan, "--set", "model.inputs=['x']", "--set", f"run.dir=norm{norm}")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(f"{said}, other than in Python: 0;" in done.stderr, norm is not None, done.stderr)

    def test_weights_that_are_not_in_the_file(self):
        self.save(Scaling())
        trust = hashlib.sha256(self.path.read_bytes()).hexdigest()
        self.refused("model.pt: the weight 'made.made' cannot be read: it has no record of its own in the file",
                     "train", "--set", f"model.trust_sha256=['{trust}']")

    def test_a_record_that_is_shorter_than_its_weight(self):
        self.save(Net())
        self.rewritten({"data/0": bytes(8)})
        self.refused("cannot be read: its record is too short", "train")

    def test_a_weight_that_begins_before_its_record(self):
        self.save(Net())
        with zipfile.ZipFile(self.path) as archive:
            data = archive.read(next(name for name in archive.namelist() if name.endswith("/data.pkl")))
        at_zero, before = b"K\x00(", b"J" + struct.pack("<i", -4) + b"("
        self.assertIn(at_zero, data)
        self.rewritten({"data.pkl": data.replace(at_zero, before)})
        self.refused("cannot be read: it has a negative offset, size or stride", "train")

    def test_a_tensor_of_an_object(self):
        self.save(Boxed())
        self.refused("the tensor 'held' is an attribute of an object that is no module; make it a parameter or buffer "
                     "of a module")

    def test_objects_by_number(self):
        self.save(Scaled(False))
        done = self.vpp("inspect", self.plan(PLAN))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.save(Scaled(True))
        self.refused("the attribute 'others' of the model of type List[__torch__.Scale] cannot be used in a pipeline; "
                     "trace the model instead")

    def test_hooks_around_forward(self):
        model = Net()
        model.register_forward_hook(twice)
        self.save(model)
        self.refused("the model has a hook of its own around forward ('twice'), which is not supported")

    def test_an_archive_of_two_directories(self):
        self.save(Net())
        self.path.write_bytes(with_a_second_directory(self.rewritten({}), "/constants.pkl"))
        self.refused("model.pt: LibTorch reads other records than the archive's directory names; export it again")

    def test_outputs_that_are_not_by_sample(self):
        self.save(Sums())
        lines = ['[model]\nfile = "model.pt"\n[data]\nkind = "arrays"']
        for table in ("train", "val"):
            lines += [f"[data.{table}]", 'x = "x.npy"', 'y = "x.npy"']
        numpy.save(self.folder / "x.npy", numpy.zeros((8, 4), "float32"))
        self.refused("no output of the model has samples along dim 0 (output1 [4] for a microbatch of 2)", "eval",
                     "--outputs", "out", "--initial-weights",
                     plan="\n".join(lines) + "\n" + PLAN[PLAN.index("[pipeline]") :])

    def test_a_sparse_gradient(self):
        self.save(Lookup())
        self.refused("the gradient of table.weight is sparse, which the fused optimizers cannot take; export the "
                     "model with sparse=False", "train", plan=PLAN.replace('x = "float32[4]"', 'x = "int64[] < 8"'))

    def test_tensors_that_are_one_in_some_microbatches_only(self):
        save_arrays(self.folder, num_zeros=4)
        plan = ARRAYS_PLAN.replace("num_stages = 1", 'split_method = "MANUAL"')
        # Made in the stage that makes the argument too, and in one that receives it.
        for points in (["middle"], ["first", "middle"]):
            for model, what in ((Gathered(True), "it is"), (Gathered(False), "it is no longer")):
                with self.subTest(what, points=points):
                    self.save(model)
                    split = f"MANUAL\"\nsplit_points = {points}"
                    done = self.vpp("train", self.plan(plan.replace("MANUAL\"", split)), ranks=len(points) + 1)
                    self.assertEqual(done.returncode, 65, done.stdout + done.stderr)
                    self.assertRegex(
                        done.stderr,
                        r"the value '\d+' of the op aten::contiguous in 'middle' is not as it was when the model was "
                        rf"prepared: {what} the same tensor as '\d+' of the op aten::slice in 'first', most likely "
                        "since LibTorch laid that out otherwise in memory; a model whose values change their form "
                        "between microbatches cannot be cut there")

    def test_a_branch_that_may_give_its_argument(self):
        plan = PLAN.replace("num_stages = 1", "split_method = \"MANUAL\"\nsplit_points = ['middle']")
        for middle, result in ((Skipped(), "'g'"), (Listed(), r"what op \d+ \(aten::__getitem__ of 'middle'\) gives")):
            name = type(middle).__name__
            with self.subTest(name):
                self.save(Around(middle))
                done = self.vpp("train", self.plan(plan), ranks=2)
                self.assertEqual(done.returncode, 78, done.stderr)
                self.assertRegex(
                    done.stderr,
                    f"the model cannot be cut after 'middle': {result} may be the same tensor as what op 0 "
                    r"\(aten::linear of 'first'\) gives, as the data have it, and both are used behind it; the nearest "
                    "legal cuts are ",
                )
                # Where only one of the two goes over, it may be either.
                done = self.vpp("train", self.plan(plan.replace("middle", "first")), "--set", f"run.dir={name}",
                                ranks=2)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_attention_with_masks_is_cut_anywhere(self):
        self.save(Attention())
        text = PLAN.replace("float32[4]", "float32[5, 4]").replace("num_stages = 1", "num_stages = 2")
        plan = self.plan(text.replace("samples = 16", "samples = 32\nval_split = 0.5"))
        shown = self.vpp("inspect", plan)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertNotIn("in evaluation too", shown.stderr + shown.stdout)
        done = self.vpp("verify", plan, "--cuts", "random:8", "--steps", "2", ranks=2)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, "[1-9] figures of evaluations")


class Weightless(Case):
    """A GPT of 22 B parameters, exported without them."""

    PLAN = """[model]
file = "gpt_22B.pt"
[data]
kind = "synthetic"
samples = 100000
[data.fields]
tokens = "int64[2048] < 51200"
targets = "int64[2048] < 51200"
[pipeline]
num_stages = 8
num_microbatches = 64
smallest_unsplittable_units = ["Block"]
"""

    def setUp(self):
        super().setUp()
        script = pathlib.Path(__file__).resolve().parents[2] / "models/weightless.py"
        subprocess.run([sys.executable, "-B", script, "22B", "--out", self.folder], check=True)

    def test_is_planned_for_more_ranks_than_there_are(self):
        self.assertLess((self.folder / "gpt_22B.pt").stat().st_size, 2**20)
        done = self.vpp("inspect", self.plan(self.PLAN), "--world", "512", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        page = json.loads(done.stdout)["inspection"]
        # Two embeddings, a head, 12 d^2 + 13 d a layer, and the last norm.
        layers, d, words, positions = 48, 6144, 51200, 2048
        self.assertEqual(page["num_parameters"], (2 * words + positions) * d + layers * (12 * d * d + 13 * d) + 2 * d)
        self.assertEqual((page["num_ranks"], page["pp"], page["dp"]), (512, 8, 64))

    def test_is_not_trained_without_values(self):
        done = self.vpp("train", self.plan(self.PLAN), "--set", "train.steps=1", ranks=8)
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn("the model file has no values for 'token_embedding.weight', 'position_embedding.weight', "
                      "'blocks.0.ln1.weight' and 578 more; add [[model.init]] tables", done.stderr)

    def test_is_not_exported_without_values(self):
        net = torch.nn.Linear(4, 4)
        net.weight = torch.nn.Parameter(torch.zeros(1).expand(4, 4))
        torch.jit.script(net).save(str(self.folder / "small.pt"))
        plan = self.plan(self.PLAN.replace("gpt_22B", "small"))
        arguments = ["export", plan, "--initial-weights", "--safetensors", "out.safetensors"]
        done = self.vpp(*arguments)
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn("the model file has no values for 'weight'; add [[model.init]] tables", done.stderr)
        self.assertFalse((self.folder / "out.safetensors").exists())
        done = self.vpp(*arguments, "--set", 'model.init=[{match=["weight"], kind="normal"}]')
        self.assertEqual(done.returncode, 0, done.stderr)


class Lengths(Case):
    PLAN = LENGTHS_PLAN.replace("num_stages = 1", "num_stages = 2").replace("steps = 1", "steps = 3")

    def setUp(self):
        super().setUp()
        torch.manual_seed(1)
        torch.jit.script(Packed()).save(str(self.folder / "model.pt"))
        random = numpy.random.default_rng(1)
        numpy.save(self.folder / "x.npy", random.standard_normal((16, 7, 4)).astype(numpy.float32))
        numpy.save(self.folder / "y.npy", random.standard_normal((16, 4)).astype(numpy.float32))
        numpy.save(self.folder / "lengths.npy", random.integers(1, 8, 16))

    def test_sequences_of_their_own_lengths_are_cut_anywhere(self):
        done = self.vpp("verify", self.plan(self.PLAN), "--cuts", "random:12", ranks=2)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("12 layouts", done.stdout)

    def test_samples_may_be_twelve_times_as_long_as_the_first(self):
        torch.jit.script(Trims(32)).save(str(self.folder / "model.pt"))
        save_tokens(self.folder, [2] * 12 + [24, 2, 1, 24])
        plan = self.plan(self.PLAN.replace("[data]", "[data]\nshuffle = false").replace("steps = 3", "steps = 5"))
        for ranks in (2, 4):
            done = self.vpp("verify", plan, "--set", f"pipeline.num_stages={ranks}", "--steps", "5", ranks=ranks)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("bitwise equal: all of it", done.stdout)


if __name__ == "__main__":
    main()
