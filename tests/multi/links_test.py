"""Hosts with TCP between them and a disk each, over links that are slow, thin or cut: a job has the bits of one host on
two and on three of them; who loses a host or a link says so in time, and goes on later. Hosts are made by
tests/support/namespaces.py. `--all`: every bandwidth with every delay."""

import itertools
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import namespaces  # noqa: E402
from run_state import tensors  # noqa: E402
from vpp_process import DIGITS, ENVIRONMENT, VPP, Case, main  # noqa: E402

ALL = "--all" in sys.argv
WHY_NOT = namespaces.why_not()
# One way in milliseconds; Mbit/s of each host.
DELAYS_MS, RATES_MBIT = (0, 2, 20), (None, 100, 10)
LINKS = list(itertools.product(DELAYS_MS, RATES_MBIT)) if ALL else [(0, None), (0, 100), (2, None), (20, None)]
DEADLINE_S = 3
# `vpp run` gives an mpirun that waits for lost hosts ten seconds behind the end of its own ranks.
GRACE_S = 10 + 5
STEPS = 40


class Links(Case):
    def setUp(self):
        if WHY_NOT:
            self.skipTest(f"no hosts can be made from namespaces here: {WHY_NOT}")
        super().setUp()
        self.config = self.plan(DIGITS)

    def network(self, name: str = "net", **settings) -> namespaces.Network:
        """Hosts whose folders lie in one of this name."""
        if reason := namespaces.why_not(2 if settings.get("delay_ms") else 0):
            self.skipTest(f"no such hosts can be made here: {reason}")
        (self.folder / name).mkdir()
        network = namespaces.Network(self.folder / name, **settings)
        self.addCleanup(network.__exit__)
        return network.__enter__()

    def words(self, *settings: str, command: str = "train") -> list[str]:
        return [command, self.config, *(word for setting in ("run.dir=run", *settings) for word in ("--set", setting))]

    def line(self, network, words: list[str], *options: str) -> list[str]:
        """`vpp run` on the first host, a rank on each."""
        return [*network.hosts[0].enter(), "env", f"OMPI_MCA_plm_rsh_agent={network.agent}",
                "OMPI_MCA_mpi_yield_when_idle=1", VPP, "run", *(options or ("--host", network.slots())), *words]

    def run_on(self, network, words: list[str], *options: str) -> subprocess.CompletedProcess:
        done = subprocess.run(self.line(network, words, *options), env=ENVIRONMENT, text=True, capture_output=True,
                              timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def start_on(self, network, words: list[str]) -> subprocess.Popen:
        out, err = (self.folder / "out").open("w"), (self.folder / "err").open("w")
        self.addCleanup(out.close)
        self.addCleanup(err.close)
        job = subprocess.Popen(self.line(network, words), env=ENVIRONMENT, stdout=out, stderr=err)
        self.addCleanup(job.communicate)
        self.addCleanup(job.kill)
        return job

    def error(self) -> str:
        return (self.folder / "err").read_text()

    def run_folder(self, host) -> str:
        return str(host.folder.relative_to(self.folder) / "run")

    def wait_for_step(self, network, job, step: int) -> None:
        end = time.monotonic() + 60
        while len(self.bits(self.run_folder(network.hosts[0]))) < step:
            self.assertIsNone(job.poll(), self.error())
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def whole(self, *settings: str, name: str = "whole", ranks: int = 2) -> tuple[list, dict]:
        """Losses and weights of one host."""
        (self.folder / name).mkdir()
        done = subprocess.run(self.command(tuple(self.words(*settings)), ranks), cwd=self.folder / name,
                              env=ENVIRONMENT, text=True, capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        losses = self.bits(f"{name}/run")
        return losses, tensors(self.folder / name / f"run/checkpoints/step-{len(losses):08}")

    def found(self, network) -> tuple[list, dict]:
        """Losses, and the weights of all hosts' shards together."""
        losses = self.bits(self.run_folder(network.hosts[0]))
        weights = {}
        for host in network.hosts:
            checkpoint = host.folder / f"run/checkpoints/step-{len(losses):08}"
            self.assertEqual(len(list(checkpoint.glob("shard-*"))), 1, "each host has a disk of its own")
            weights |= tensors(checkpoint)
        return losses, weights


class Bits(Links):
    def test_all_hosts_know_the_job_of_vpp_run(self):
        network = self.network()
        self.run_on(network, self.words("train.steps=2"))
        jobs = {(self.folder / self.run_folder(host) / ".lock").read_text().splitlines()[1] for host in network.hosts}
        self.assertEqual(len(jobs), 1, jobs)

    def test_on_two_hosts_they_are_those_of_one(self):
        settings = ("train.steps=8",)
        expected = self.whole(*settings)
        self.assertNotEqual(self.whole(*settings, "train.seed=7", name="other"), expected, "the control")
        for delay, rate in LINKS:
            with self.subTest(delay_ms=delay, rate_mbit=rate):
                network = self.network(f"{delay}-{rate}", delay_ms=delay, rate_mbit=rate)
                trip = network.round_trip_ms()
                self.assertGreater(trip, 2 * delay)
                self.assertLess(trip, 2 * delay + 20)
                if rate:
                    self.assertLess(network.megabits_per_s(), 1.2 * rate)
                self.run_on(network, self.words(*settings))
                self.assertEqual(self.found(network), expected)
                network.__exit__()

    def test_on_three_hosts_with_a_delay(self):
        settings = ("train.steps=5", "pipeline.num_stages=3", "pipeline.schedule_type=INTERLEAVED_1F1B",
                    "pipeline.virtual_chunks=2", "pipeline.num_microbatches=6", "train.global_batch_size=24")
        network = self.network(hosts=3, delay_ms=2)
        self.run_on(network, self.words(*settings))
        self.assertEqual(self.found(network), self.whole(*settings, ranks=3))

    def test_verify(self):
        network = self.network(delay_ms=2, rate_mbit=100)
        done = self.run_on(network, [*self.words(command="verify"), "--steps", "2"])
        self.assertIn("bitwise equal", done.stdout)

    def test_a_hostfile_and_the_interface_that_joins_the_hosts(self):
        network = self.network()
        network.add_decoys()
        (network.hosts[0].folder / "hosts").write_text("".join(f"{host.name} slots=1\n" for host in network.hosts))
        for interface in (namespaces.DEVICE, namespaces.SUBNET):
            done = self.run_on(network, self.words("train.steps=2", "checkpoint.resume=no"), "--hostfile", "hosts",
                               "--interface", interface)
            self.assertIn(f"--mca btl_tcp_if_include {interface} --mca oob_tcp_if_include {interface} ", done.stderr)
        self.assertEqual(len(self.bits(self.run_folder(network.hosts[0]))), 2)


class Losses(Links):
    settings = ("checkpoint.every=10", f"run.deadline_floor_s={DEADLINE_S}", "run.deadline_factor=1")

    def expect_end(self, network, job, start: float, pattern: str) -> None:
        self.assertEqual(job.wait(120), 75, self.error())
        seconds = time.monotonic() - start
        self.assertLess(seconds, DEADLINE_S + GRACE_S, self.error())
        self.assertRegex(self.error(), pattern)
        for host in network.hosts:
            self.assertFalse(host.ranks(), f"{host.name}: nobody is left behind")
        print(f"it ended after {seconds:.1f} s with a deadline of {DEADLINE_S} s", flush=True)

    def expect_resume(self, network) -> None:
        """The same command goes on to the bits of a run that nothing happened to."""
        steps = f"train.steps={len(self.bits(self.run_folder(network.hosts[0]))) // 10 * 10 + 10}"
        done = self.run_on(network, self.words(*self.settings, steps))
        self.assertIn("resumed after step ", done.stderr)
        self.assertEqual(self.found(network), self.whole(*self.settings, steps))

    def running(self, **settings):
        network = self.network(**settings)
        job = self.start_on(network, self.words(*self.settings, "train.steps=1000000"))
        self.wait_for_step(network, job, 25)
        return network, job

    def test_a_host_that_is_killed(self):
        network, job = self.running()
        start = time.monotonic()
        network.hosts[1].kill()
        self.expect_end(network, job, start, "rank 1 is silent|mpirun has lost another host")
        self.expect_resume(network)

    def test_a_host_without_power(self):
        network, job = self.running()
        start = time.monotonic()
        network.hosts[1].lose_power()
        self.expect_end(network, job, start, "rank 1 is silent")
        network.hosts[1].mend()
        self.expect_resume(network)

    def test_the_host_of_mpirun_without_power(self):
        network, job = self.running()
        start = time.monotonic()
        network.hosts[0].lose_power()
        while network.hosts[1].ranks():
            self.assertLess(time.monotonic() - start, DEADLINE_S + GRACE_S)
            time.sleep(0.05)
        job.wait(10)
        network.hosts[0].mend()
        self.expect_resume(network)

    def test_a_link_that_is_cut(self):
        for name, settings in (("bridge", {}), ("relay", {"delay_ms": 2})):
            with self.subTest(name):
                network, job = self.running(name=name, **settings)
                start = time.monotonic()
                network.hosts[1].cut()
                self.expect_end(network, job, start, r"vpp: error: rank 0: .*has waited \d.\d s for rank 1 to .*rank 1 "
                                                     r"is silent \(stopped, ended or unreachable")
                self.assertIn("mpirun still waited for other hosts 10 s after", self.error())
                network.hosts[1].mend()
                if name == "bridge":
                    self.expect_resume(network)


if __name__ == "__main__":
    sys.argv = [argument for argument in sys.argv if argument != "--all"]
    main()
