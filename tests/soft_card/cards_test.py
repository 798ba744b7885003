"""Jobs on soft cards: what goes otherwise than on the CPU. VPP_BINARY is vpp with soft cards, VPP_SOFT_CARDS says how
many there are."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import torch  # noqa: E402
from tiny_model import ARRAYS_PLAN, LENGTHS_PLAN, PLAN, Trims, save_arrays, save_tokens  # noqa: E402
from vpp_process import DIGITS, ROOT, Case  # noqa: E402

QUICK = ("--set", "run.dir=run", "--set", "train.steps=8")


class LooksUp(torch.nn.Module):
    """Looks up a row that its table has not got, unless all that it is given is zero."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4, bias=False)
        self.table = torch.nn.Embedding(4, 4)

    def forward(self, x):
        y = self.fc(x)
        return self.table((y.abs().sum(1) > 0).long() * 7) + y


class Grows(torch.nn.Module):
    """Takes 26 MB and gives them back, then 45 MB."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x):
        y = self.fc(x)
        small = y.detach().repeat(1, 400_000).amax(1)
        return y + small.unsqueeze(1) + y.detach().repeat(1, 700_000).amax(1).unsqueeze(1)


class GrowsByStep(torch.nn.Module):
    """Holds 13 MB for a moment, and in every step so many bytes more for each sample."""

    def __init__(self, more: int):
        super().__init__()
        self.more = more // 16
        self.first = torch.nn.Linear(4, 4)
        self.last = torch.nn.Linear(4, 4)
        self.register_buffer("steps", torch.zeros(1))

    def forward(self, x):
        y = self.first(x)
        self.steps.add_(1)
        wide = y.detach().repeat(1, 200_000 + self.more * int(self.steps))
        return self.last(y + wide.amax(1).unsqueeze(1))


class Resizes(torch.nn.Module):
    """Ops whose backward passes on cards LibTorch has no exact kernel for; `last` is one more of them."""

    def __init__(self, last: torch.nn.Module):
        super().__init__()
        self.first = torch.nn.Conv2d(2, 6, 3, padding=1)
        self.pool = torch.nn.AdaptiveAvgPool2d((3, 2))
        self.up = torch.nn.Upsample(scale_factor=2.0, mode="bilinear", align_corners=False)
        self.last = last
        self.out = torch.nn.Conv2d(6, 3, 3)

    def forward(self, x):
        return self.out(self.last(self.up(self.pool(self.first(x)))))


class Warps(torch.nn.Module):
    """Ops of which one runs on the host when a card computes."""

    def __init__(self):
        super().__init__()
        self.flow = torch.nn.Conv2d(6, 2, 1)

    def forward(self, x):
        x = torch._C._nn._upsample_bilinear2d_aa(x, (8, 6), False)
        return torch.nn.functional.grid_sample(x, self.flow(x).tanh().permute(0, 2, 3, 1), align_corners=True)


class Casts(torch.nn.Module):
    """Turns autocast off for a layer that a pipeline's last rank has."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.last = torch.nn.Linear(4, 4)

    def forward(self, x):
        x = torch.tanh(self.first(x))
        with torch.autocast("cuda", enabled=False):
            return self.last(x.float())


class CastsOfTheHost(Casts):
    """The same for the CPU, where a card does not look."""

    def forward(self, x):
        x = torch.tanh(self.first(x))
        with torch.autocast("cpu", enabled=False):
            return self.last(x.float())


class Recurs(torch.nn.Module):
    """Layers that LibTorch has kernels of their own for on cards."""

    def __init__(self):
        super().__init__()
        self.long = torch.nn.LSTM(4, 6, 2, batch_first=True)
        self.gated = torch.nn.GRU(6, 5, batch_first=True)
        self.norm = torch.nn.RMSNorm(5)
        self.out = torch.nn.Linear(5, 4)

    def forward(self, x):
        x = self.gated(self.long(x.unsqueeze(1).repeat(1, 3, 1))[0])[0]
        return self.out(self.norm(x[:, -1]))


IMAGES = """
[model]
file = "model.pt"
[loss]
kind = "cross_entropy"
target = "label"
[data]
kind = "synthetic"
samples = 32
[data.fields]
x = "float32[2,7,5]"
label = "int64[6,4] < 3"
[pipeline]
num_stages = 2
num_microbatches = 2
[train]
steps = 2
global_batch_size = 8
"""


class Cards(Case):
    def train(self, *settings: str, ranks: int = 2, cards: int = 4, text: str = DIGITS, profile: str = "",
              **environment: str):
        return self.vpp("train", self.plan(text), *QUICK, *(word for one in settings for word in ("--set", one)),
                        *(("--profile", profile) if profile else ()), ranks=ranks,
                        environment={"VPP_SOFT_CARDS": str(cards)} | environment)

    def events(self, run: str, step: int) -> list[dict]:
        return json.loads((self.folder / run / f"profile/trace-step{step}.json").read_text())["traceEvents"]

    def card_lanes(self, run: str, step: int) -> set[str]:
        lanes = {event["args"]["name"] for event in self.events(run, step) if event["name"] == "thread_name"}
        return {lane for lane in lanes if lane.startswith("card: ")}

    def test_replicas_and_shared_cards_by_mpi_that_takes_cards(self):
        done = self.vpp("verify", self.plan(DIGITS), "--steps", "3", "--set", "mesh.dp=2", "--set",
                        "mesh.bucket_bytes=2048", ranks=4,
                        environment={"VPP_SOFT_CARDS": "1", "VPP_SOFT_MPI_TAKES_CARDS": "1"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("bitwise equal: all of it", done.stdout)

    def test_ranks_that_share_a_card_go_by_mpi_and_are_told_so_where_nccl_is_asked_for(self):
        self.assertEqual(self.train(cards=1).returncode, 0)
        done = self.train("mesh.transport=nccl", "run.dir=other", cards=1)
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn("rank 0 and rank 1", done.stderr)

    def test_no_kernel_is_loaded_while_messages_are_under_way(self):
        plan = self.plan((ROOT / "configs/quickstart.toml").read_text().replace('"../models', f'"{ROOT}/models'))
        words = ["train", plan, "--set", "train.steps=2", "--set", "train.eval_every=1", "--set",
                 "train.eval_batches=2", "--set", "lr_schedule.warmup_steps=1", "--set",
                 "pipeline.schedule_type=ZERO_BUBBLE_V", "--set", "pipeline.virtual_chunks=2"]
        for name, environment, told in (
                ("late", {"VPP_SOFT_CARD_LOADS_LATE": "1"}, ""),
                ("lazy", {"CUDA_MODULE_LOADING": "LAZY", "CUDA_DEVICE_MAX_CONNECTIONS": "1"},
                 "CUDA_MODULE_LOADING=LAZY, CUDA_DEVICE_MAX_CONNECTIONS=1"),
                ("trial", {"PYTORCH_TUNABLEOP_ENABLED": "1", "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
                 "vpp: PYTORCH_TUNABLEOP_ENABLED is not followed"),
                ("same", {"CUDA_MODULE_LOADING": "EAGER"}, "")):
            with self.subTest(name):
                done = self.vpp(*words, "--set", f"run.dir={name}", ranks=4, environment=environment)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual("not followed" in done.stderr, bool(told))
                self.assertIn(told, done.stderr)
                self.assertEqual("vpp: PYTORCH_NO_CUDA_MEMORY_CACHING is not followed" in done.stderr, name == "trial")

    def test_memory_that_is_not_of_libtorchs_own_allocator_is_refused(self):
        done = self.train(PYTORCH_CUDA_ALLOC_CONF="expandable_segments:False,backend:cudaMallocAsync")
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn("PYTORCH_CUDA_ALLOC_CONF has backend:cudaMallocAsync, and vpp counts on LibTorch's own "
                      "allocator; leave that out", done.stderr)

    def test_how_ranks_send_changes_no_bit(self):
        aware = {"VPP_SOFT_MPI_TAKES_CARDS": "1"}
        told = self.folder / "nccl.conf"
        told.write_text("# of the site\nNCCL_MAX_CTAS=32\nNCCL_DEBUG=WARN\n")
        for name, transport, environment, way in (
                ("nccl", "nccl", {}, "from card to card by NCCL"),
                ("told", "nccl", {"NCCL_CONF_FILE": str(told)}, "from card to card by NCCL"),
                ("host", "mpi", {}, "through the host's memory by MPI"),
                ("aware", "mpi", aware, "from card to card by MPI"),
                ("off", "mpi", aware | {"OMPI_MCA_opal_cuda_support": "0"}, "through the host's memory by MPI")):
            with self.subTest(name):
                done = self.train(f"mesh.transport={transport}", f"run.dir={name}", **environment)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"values go {way}", done.stdout + done.stderr)
                self.assertEqual("NCCL follows its environment in place of vpp (NCCL_MAX_CTAS=32)" in done.stderr,
                                 name == "told", done.stderr)
                self.assertEqual(self.bits(name), self.bits("nccl"))
        self.assertEqual(self.train("run.dir=other", "train.seed=3").returncode, 0)
        self.assertNotEqual(self.bits("other"), self.bits("nccl"))

    def test_an_op_that_fails_on_a_card_is_said_late_unless_each_kernel_is_waited_for(self):
        torch.jit.script(LooksUp()).save(str(self.folder / "model.pt"))
        save_arrays(self.folder, num_zeros=4)
        plan = self.plan(ARRAYS_PLAN.replace("num_stages = 1", "num_stages = 2").replace("steps = 1", "steps = 3"))
        words = ["train", plan, "--set", "run.dir=run", "--set"]
        said = "the model fails: an op on the card was given what it cannot take, most often an index out of range"
        for transport in ("nccl", "nccl", "mpi"):  # it is noticed now here, now there
            with self.subTest(transport):
                done = self.vpp(*words, f"mesh.transport={transport}", ranks=2)
                self.assertEqual(done.returncode, 65, done.stderr)
                self.assertRegex(done.stderr, "soft card: .*index out of range")
                self.assertRegex(done.stderr, r"vpp: error: rank \d: (stage \d, .*: )?" + said)
        waited = {"CUDA_LAUNCH_BLOCKING": "1"}
        done = self.vpp(*words, "mesh.transport=auto", ranks=2, environment=waited)
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("rank 1: stage 1, F of microbatch 0: " + said, done.stderr)
        done = self.vpp(*words, "mesh.transport=nccl", ranks=2, environment=waited)
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn("rank 0 waits for each kernel (CUDA_LAUNCH_BLOCKING=1)", done.stderr)

    def expect_same_bits(self, last: torch.nn.Module):
        """Of a model that ends in `last`, on two cards as on one, however values go."""
        torch.jit.script(Resizes(last)).save(str(self.folder / "model.pt"))
        plan = self.plan(IMAGES)
        for transport in ("nccl", "mpi"):
            done = self.vpp("verify", plan, "--steps", "2", "--set", f"mesh.transport={transport}", ranks=2)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("bitwise equal: all of it", done.stdout)
        return self.vpp("inspect", plan).stdout

    def test_backward_passes_without_an_exact_kernel_of_libtorch_have_another(self):
        page = self.expect_same_bits(torch.nn.Sequential(torch.nn.ReplicationPad2d(2),
                                                         torch.nn.AdaptiveMaxPool2d((8, 6))))
        self.assertNotIn("runs on the host", page)

    def test_ops_without_any_exact_kernel_for_cards_run_on_the_host(self):
        page = self.expect_same_bits(Warps())
        self.assertIn("aten::_upsample_bilinear2d_aa in 'last' runs on the host in its backward pass", page)

    def test_layers_with_kernels_for_cards_alone_are_those_of_the_cpu(self):
        torch.jit.script(Recurs()).save(str(self.folder / "model.pt"))
        norms = []
        for device, ranks in (("cuda", 2), ("cpu", 1)):
            done = self.vpp("train", self.plan(PLAN), *QUICK, "--set", f"mesh.device={device}", "--set",
                            f"run.dir={device}", "--set", f"pipeline.num_stages={ranks}", ranks=ranks)
            self.assertEqual(done.returncode, 0, done.stderr)
            norms.append([line["grad_norm"] for line in self.metrics(device) if line["event"] == "step"])
        self.assertEqual(len(norms[0]), 8)
        for on_card, on_cpu in zip(*norms):
            self.assertAlmostEqual(on_card, on_cpu, delta=1e-5 * on_cpu)

    def test_autocast_in_a_model_is_that_of_its_device_on_every_rank(self):
        code = torch.jit.script(Casts())
        losses = {}
        for name in ("cuda", "cpu"):
            model = code if name == "cuda" else torch.jit.script(CastsOfTheHost())
            model.load_state_dict(code.state_dict())
            model.save(str(self.folder / "model.pt"))
            settings = ("--set", "train.precision=bf16", "--set", "train.global_batch_size=8")
            done = self.vpp("verify", self.plan(PLAN), *settings, "--set", "pipeline.num_stages=2", ranks=2)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for ranks in (1, 2):
                run = f"{name}{ranks}"
                done = self.vpp("train", self.plan(PLAN), *settings, "--set", f"pipeline.num_stages={ranks}",
                                "--set", f"run.dir={run}", ranks=ranks)
                self.assertEqual(done.returncode, 0, done.stderr)
                losses[run] = self.bits(run)
        self.assertEqual(losses["cuda1"], losses["cuda2"])
        self.assertEqual(losses["cpu1"], losses["cpu2"])
        self.assertNotEqual(losses["cuda1"], losses["cpu1"], "on a card nothing is turned off there")

    def test_memory_of_a_card_that_runs_out(self):
        plan = (ROOT / "configs/quickstart.toml").read_text().replace('"../models', f'"{ROOT}/models')
        for num_bytes, position in ((1_000_000, ""), (7_000_000, "stage 0, F of microbatch 1: ")):
            done = self.train("lr_schedule.warmup_steps=1", text=plan, ranks=4, VPP_SOFT_CARD_BYTES=str(num_bytes))
            self.assertEqual(done.returncode, 71, done.stderr)
            self.assertRegex(done.stderr, "rank [0-3]: " + position.replace("0", "[0-3]").replace("1", r"\d") +
                             "the device has no memory left: CUDA out of memory. Tried to allocate 2.00 MiB")
            self.assertIn("use more stages, smaller microbatches", done.stderr)
            self.assertEqual("(this rank's tensors take " in done.stderr, position != "", done.stderr)

    def test_on_cards_that_are_nearly_full_no_schedule_stands_still(self):
        """Both numbers stood still, until the deadline, when links held up cards in spite of it."""
        plan = (ROOT / "configs/quickstart.toml").read_text().replace('"../models', f'"{ROOT}/models')
        settings = ("pipeline.schedule_type=ZERO_BUBBLE_V", "pipeline.virtual_chunks=2", "lr_schedule.warmup_steps=1",
                    "train.eval_every=0", "run.deadline_floor_s=60")
        bits = set()
        for num_bytes in (34_000_000, 35_000_000, 1_000_000_000):
            done = self.train(*settings, f"run.dir=v{num_bytes}", text=plan, ranks=4,
                              VPP_SOFT_CARD_BYTES=str(num_bytes))
            self.assertEqual(done.returncode, 0, done.stderr)
            is_full = num_bytes < 1_000_000_000
            self.assertEqual("; stages send through the host until there is room; use" in done.stderr, is_full)
            bits.add(tuple(self.bits(f"v{num_bytes}")))
        self.assertEqual(len(bits), 1)

    def test_memory_is_not_taken_while_messages_are_under_way(self):
        """Whoever takes some waits for all that its card does; this stood still in step 2, and with replicas."""
        wide = torch.nn.Sequential(torch.nn.Linear(4, 700_000), torch.nn.ReLU(), torch.nn.Linear(700_000, 4))
        torch.jit.script(wide).save(str(self.folder / "model.pt"))
        settings = ("model.inputs=['x']", "pipeline.num_stages=2", "pipeline.num_microbatches=4",
                    "run.deadline_floor_s=20", "run.deadline_factor=1", "train.steps=7")
        for dp, graphs in ((1, "false"), (1, "true"), (2, "true")):
            with self.subTest(dp=dp, graphs=graphs):
                layout = (f"mesh.dp={dp}", f"pipeline.cuda_graphs={graphs}", f"train.global_batch_size={16 * dp}")
                done = self.train(*settings, *layout, f"run.dir=w{dp}{graphs}", text=PLAN, ranks=2 * dp,
                                  VPP_SOFT_CARD_MEMORY_WAITS="1")
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_behind_an_evaluation_that_took_memory_a_step_goes_through_the_host(self):
        """The evaluation records its ops behind step 6, and gives back first what the steps have."""
        for every, is_moved in (("6", False), ("0", True)):
            done = self.train("mesh.transport=nccl", f"train.eval_every={every}", f"run.dir=every{every}",
                              profile="6..7")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("card: SEND_F to PP 1", self.card_lanes(f"every{every}", 6))
            self.assertEqual("card: SEND_F to PP 1" in self.card_lanes(f"every{every}", 7), is_moved)
            self.assertEqual("card: SEND_B to PP 0" in self.card_lanes(f"every{every}", 7), is_moved)

    def test_nccl_that_does_not_start_is_no_rank_that_is_lost(self):
        done = self.train("mesh.transport=nccl", VPP_SOFT_NCCL_STARTS="0")
        self.assertEqual(done.returncode, 66, done.stderr)
        self.assertIn("NCCL has failed while starting", done.stderr)

    def test_memory_that_nccl_does_not_get_is_no_rank_that_is_lost(self):
        done = self.train("mesh.transport=nccl", VPP_SOFT_NCCL_FULL="1")
        self.assertEqual(done.returncode, 71, done.stderr)
        self.assertIn("NCCL has no memory left on the card while ", done.stderr)
        self.assertIn(": Failed to CUDA calloc 4194304 bytes; use fewer stages a rank or smaller microbatches",
                      done.stderr)

    def test_a_save_that_is_waited_for_has_the_bytes_of_one_in_the_background(self):
        shards = {}
        for background in ("true", "false"):
            run = f"run.dir=saved_{background}"
            done = self.train(run, "train.steps=3", f"checkpoint.background={background}")
            self.assertEqual(done.returncode, 0, done.stderr)
            listed = sorted((self.folder / f"saved_{background}/checkpoints").glob("step-*3/shard-*"))
            self.assertEqual(len(listed), 2)
            # The id of the save stands in the header.
            shards[background] = [data[8 + int.from_bytes(data[:8], "little"):] for data in
                                  (path.read_bytes() for path in listed)]
        self.assertEqual(shards["true"], shards["false"])

    def test_memory_for_shapes_that_grow_is_not_taken_while_messages_are_under_way(self):
        """Ops are replayed by then; this stood still when links held up cards in spite of it."""
        torch.jit.script(Trims(256)).save(str(self.folder / "model.pt"))
        drawn = torch.randint(1, 12000, (32,), generator=torch.Generator().manual_seed(1)).tolist()
        save_tokens(self.folder, [1000] * 72 + [12000] * 8 + [1000] * 16 + drawn)
        settings = ("train.steps=16", "train.global_batch_size=8", "pipeline.num_microbatches=8",
                    "pipeline.num_stages=2",
                    "pipeline.schedule_type=ZERO_BUBBLE_V", "pipeline.virtual_chunks=2", "run.deadline_floor_s=20",
                    "run.deadline_factor=1")
        for transport in ("nccl", "mpi"):
            done = self.train(*settings, f"mesh.transport={transport}", f"run.dir={transport}",
                              text=LENGTHS_PLAN.replace("[data]", "[data]\nshuffle = false"), profile="15..16",
                              VPP_SOFT_CARD_MEMORY_WAITS="1")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("card: SEND_F to PP 1", self.card_lanes(transport, 16), "copied beside computing")
            self.assertEqual("values go from stage to stage through the host, which is slower" in done.stderr,
                             transport == "nccl", done.stderr)
        self.assertEqual(self.bits("nccl"), self.bits("mpi"))

    def test_a_card_without_room_for_weights_or_their_casts_names_the_stage(self):
        wide = torch.nn.Sequential(torch.nn.Linear(4, 3000), torch.nn.Linear(3000, 3000), torch.nn.Linear(3000, 4))
        torch.jit.script(wide).save(str(self.folder / "model.pt"))
        for num_bytes, where in ((30_000_000, "its weights"), (50_000_000, "before its first action")):
            done = self.train("model.inputs=['x']", "train.precision=bf16", ranks=1, text=PLAN,
                              VPP_SOFT_CARD_BYTES=str(num_bytes))
            self.assertEqual(done.returncode, 71, done.stderr)
            self.assertIn(f"stage 0, {where}: the device has no memory left: CUDA out of memory.", done.stderr)

    def test_memory_that_is_met_only_without_what_was_kept_is_said(self):
        torch.jit.script(Grows()).save(str(self.folder / "model.pt"))
        settings = ("train.steps=2", "train.global_batch_size=8")
        for num_bytes, times in ((64_000_000, 1), (90_000_000, 0)):
            done = self.train(*settings, ranks=1, text=PLAN, VPP_SOFT_CARD_BYTES=str(num_bytes))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr.count("step 1: cards were full 1 time, and what was kept"), times, done.stderr)
            self.assertNotIn("step 2: cards were full", done.stderr)

    def test_steps_that_all_take_new_memory_are_said_once(self):
        settings = ("mesh.dp=2", "train.global_batch_size=8", "pipeline.num_microbatches=1",
                    "pipeline.cuda_graphs=false", "train.steps=20")
        for more, times in ((1_000_000, 1), (0, 0)):
            torch.jit.script(GrowsByStep(more)).save(str(self.folder / "model.pt"))
            done = self.train(*settings, f"run.dir=more{more}", text=PLAN)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr.count("steps took new memory"), times, done.stderr)
            self.assertEqual(done.stderr.count("step 16: each of the last 16 steps"), times, done.stderr)

    def test_a_trace_has_lanes_of_cards(self):
        moved = {"card: SEND_F to PP 1", "card: RECV_F from PP 0", "card: SEND_B to PP 0", "card: RECV_B from PP 1"}
        aware = {"VPP_SOFT_MPI_TAKES_CARDS": "1"}
        for way, transport, environment, expected in (("nccl", "nccl", {}, moved), ("host", "mpi", {}, moved),
                                                      ("aware", "mpi", aware, set())):
            with self.subTest(way):
                done = self.train(f"mesh.transport={transport}", f"run.dir={way}", profile="5..6", **environment)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.card_lanes(way, 6), {"card: computing"} | expected)
                on_card = [event["name"].split()[0] for event in self.events(way, 6) if event.get("cat") == "card"]
                for kind in ("F", "B"):
                    self.assertEqual(on_card.count(kind), 8, on_card)

    def test_cards_that_do_not_start_are_not_taken_for_none(self):
        broken = {"VPP_SOFT_CARDS": "-1"}
        said = "CUDA does not start (system not yet initialized); look at nvidia-smi, or set mesh.device = \"cpu\""
        for device in ("auto", "cuda"):
            settings = ("--set", "pipeline.num_stages=1", "--set", f"mesh.device={device}")
            done = self.vpp("train", self.plan(DIGITS), *QUICK, *settings, environment=broken)
            self.assertEqual(done.returncode, 66, done.stderr)
            self.assertIn(said, done.stderr)
        self.assertRegex(self.vpp("doctor", environment=broken).stdout, r"problem +cards +CUDA does not start")
        for device in ("auto", "cuda", "cpu"):
            done = self.vpp("inspect", self.plan(DIGITS), "--set", f"mesh.device={device}", environment=broken)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(f"vpp: no card is known: {said}" in done.stderr, device != "cpu", done.stderr)

    def test_doctor_and_inspect_know_the_cards(self):
        said = self.vpp("doctor").stdout
        self.assertIn("4 GPUs (soft card, 8.0 GiB)", said)
        said = self.vpp("doctor", self.plan(DIGITS)).stdout
        self.assertRegex(said, r"activations 0\s+B", "they lie on the cards")
        shown = self.vpp("inspect", self.plan(DIGITS), environment={"VPP_SOFT_CARD_BYTES": "200000"}).stdout
        self.assertRegex(shown, r"may want [0-9.]+ \w+ on card")


if __name__ == "__main__":
    unittest.main(verbosity=2)
