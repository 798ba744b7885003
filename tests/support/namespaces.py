"""Hosts made from namespaces: real TCP between them, links that are slow or cut, hosts that die. One machine plays all.

A wire (a network, mount and process namespace with a bridge) joins hosts, each with a network and a host name of its
own and a folder of its own under one path: no disk is shared but for what the machine has anyway. Every process of a
network is a child of its wire and dies with it, and the wire dies with the test: nothing is left behind, not even by
SIGKILL. Bandwidth is limited by tbf; delay is made by netem where the kernel has it, else by delay_relay.py."""

import contextlib
import functools
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import time

RELAY = pathlib.Path(__file__).resolve().parent / "delay_relay.py"
DEVICE = "eth0"
SUBNET = "10.77.0.0/24"
# Both hosts have this device with the same address, as with Docker's docker0: who takes it for a way finds itself.
DECOY = "decoy0"


class Unavailable(Exception):
    """This machine allows no namespaces, or lacks a tool; the text says why."""


def shell(*lines: str) -> list[str]:
    return ["sh", "-ec", "\n".join(lines)]


def checked(command: list[str], what: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except OSError as error:
        raise Unavailable(f"{what}: {error}") from None
    if done.returncode:
        raise Unavailable(f"{what}: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout


def descendants(pid: int) -> list[int]:
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *descendants(child)]
    return found


def namespace(pid: int, kind: str = "net") -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}")
    except OSError:
        return ""


class Host:
    def __init__(self, network: "Network", number: int):
        self.network, self.number = network, number
        self.name, self.address = f"host{number}", f"10.77.0.{number}"
        self.folder = network.folder / self.name  # what it sees as network.here
        self.kept = None
        self.cut_mark = network.folder / f"{self.name}.cut"
        self.pid = 0  # of the process that keeps its namespaces, as the wire counts

    def enter(self) -> list[str]:
        """The words before a command that runs on this host."""
        return [*self.network.enter(), *self.enter_from_wire()]

    def enter_from_wire(self) -> list[str]:
        return ["nsenter", "-t", str(self.pid), "--net", "--uts", "--mount", f"--wdns={self.network.here}"]

    def run(self, *command: str, timeout: float = 30) -> str:
        return checked([*self.enter(), *command], f"{self.name}: {shlex.join(command)}")

    def processes(self) -> list[int]:
        """All that run on it, as the machine counts them, but for the one that keeps its namespaces."""
        numbers = (int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit())
        return [pid for pid in numbers if pid != self.keeper and namespace(pid) == self.network_id]

    def ranks(self) -> dict[int, int]:
        """The processes of its ranks."""
        found = {}
        for pid in self.processes():
            with contextlib.suppress(OSError):
                for variable in pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    if variable.startswith(b"OMPI_COMM_WORLD_RANK="):
                        found[int(variable.partition(b"=")[2])] = pid
        return found

    def kill(self) -> None:
        """All its processes at once; its kernel closes their connections."""
        while processes := self.processes():  # one may just start another
            for pid in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def cut(self) -> None:
        """From now on its packets vanish; no connection is reset."""
        self.cut_mark.touch()
        self.network.set_link(self, up=False)

    def mend(self) -> None:
        self.network.set_link(self, up=True)
        self.cut_mark.unlink()

    def lose_power(self) -> None:
        """Nobody is left, and nobody closes a connection."""
        self.cut()
        self.kill()


class Network:
    """`with Network(folder, hosts=2) as network`. Raises Unavailable.

    delay_ms: one way; rate_mbit: of each host's sending; None: as fast as it goes."""

    def __init__(self, folder: pathlib.Path, hosts: int = 2, delay_ms: float = 0, rate_mbit: float | None = None):
        self.folder, self.delay_ms, self.rate_mbit = folder, delay_ms, rate_mbit
        self.here = folder / "here"
        self.hosts = [Host(self, number) for number in range(1, hosts + 1)]
        self.relay = None
        self.wire = None

    def __enter__(self) -> "Network":
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        """The end of the wire's first process is the end of all that is in it."""
        kept = [host.kept for host in self.hosts if host.kept is not None]
        for process in [self.wire, *kept, self.relay]:
            if process is not None:
                process.kill()
                process.communicate()

    def enter(self) -> list[str]:
        user = ["--user", "--preserve-credentials"] if self.is_own_user else []
        return ["nsenter", "-t", str(self.inside), *user, "--net", "--mount", "--pid"]

    def start(self) -> None:
        for tool in ("unshare", "nsenter", "setpriv", "ip", "tc"):
            if shutil.which(tool) is None:
                raise Unavailable(f"there is no {tool} in PATH")
        for host in self.hosts:
            host.folder.mkdir()
        self.here.mkdir()
        self.hosts_file = self.folder / "etc_hosts"
        self.hosts_file.write_text("127.0.0.1 localhost\n" +
                                   "".join(f"{host.address} {host.name}\n" for host in self.hosts))
        self.start_wire()
        # A bridge hands on what comes in, whatever comes in first.
        self.in_wire("ip link set lo up", "ip link add bridge type bridge", "ip link set bridge up",
                     f"mount --bind {shlex.quote(str(self.hosts_file))} /etc/hosts")
        for host in self.hosts:
            self.start_host(host)
        self.has_netem = self.delay_ms > 0 and subprocess.run(
            [*self.enter(), "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"],
            capture_output=True).returncode == 0
        if self.delay_ms > 0 and not self.has_netem:
            self.join_by_relay()
        else:
            self.join_by_bridge()
        for host in self.hosts:
            self.shape(host)
        self.write_agent()

    def keep(self, begin: list[str], *lines: str) -> subprocess.Popen:
        """A process that does nothing but hold namespaces; children that others left are not kept as zombies."""
        process = subprocess.Popen([*begin, *shell("trap '' CHLD", *lines, "echo $$", "exec sleep infinity")],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = process.stdout.readline()
        if not line:
            process.wait()
            raise Unavailable(f"{shlex.join(begin[:8])} ...: {process.stderr.read().strip()}")
        process.inside = int(line)
        return process

    def start_wire(self) -> None:
        self.is_own_user = os.geteuid() != 0
        user = ["--user", "--map-root-user"] if self.is_own_user else []
        self.wire = self.keep(["setpriv", "--pdeathsig", "KILL", "unshare", *user, "--net", "--mount", "--pid",
                               "--fork", "--kill-child", "--mount-proc"])
        self.inside = descendants(self.wire.pid)[0]

    def start_host(self, host: Host) -> None:
        kept = self.keep([*self.enter(), "unshare", "--net", "--uts", "--mount"], f"hostname {host.name}",
                         f"mount --bind {shlex.quote(str(host.folder))} {shlex.quote(str(self.here))}",
                         "ip link set lo up")
        host.pid = kept.inside
        # nsenter into a process namespace stays outside and waits for its child.
        host.keeper = descendants(kept.pid)[0]
        host.network_id = namespace(host.keeper)
        host.kept = kept

    def in_wire(self, *lines: str) -> None:
        checked([*self.enter(), *shell(*lines)], "the wire")

    def join_by_bridge(self) -> None:
        for host in self.hosts:
            self.in_wire(f"ip link add port{host.number} type veth peer name {DEVICE} netns {host.pid}",
                         f"ip link set port{host.number} master bridge up")
            host.run(*shell(f"ip address add {host.address}/24 dev {DEVICE}", f"ip link set {DEVICE} up"))

    def join_by_relay(self) -> None:
        """Each host gets a tun device; what comes out of one goes into another later."""
        if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
            raise Unavailable("the kernel has no netem, and /dev/net/tun cannot be opened")
        words = [f"{host.pid}:{host.address}" for host in self.hosts]
        self.relay = subprocess.Popen([*self.enter(), sys.executable, "-B", str(RELAY), DEVICE,
                                       str(self.delay_ms / 1e3), *words], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)
        if self.relay.stdout.readline() != "ready\n":
            raise Unavailable(f"the relay between tun devices: {self.relay.stderr.read().strip()}")
        for host in self.hosts:
            host.run(*shell(f"ip address add {host.address}/24 dev {DEVICE}", f"ip link set {DEVICE} mtu 9000 up"))

    def shape(self, host: Host) -> None:
        rate = f"{self.rate_mbit:g}mbit" if self.rate_mbit else ""
        if self.has_netem:
            host.run(*shell(f"tc qdisc add dev {DEVICE} root netem limit 100000 delay {self.delay_ms:g}ms" +
                            (f" rate {rate}" if rate else "")))
        elif rate:
            host.run(*shell(f"tc qdisc add dev {DEVICE} root tbf rate {rate} burst 128kb latency 100ms"))

    def set_link(self, host: Host, up: bool) -> None:
        if self.relay is not None:
            self.relay.stdin.write(f"{'mend' if up else 'cut'} {host.address}\n")
            self.relay.stdin.flush()
        else:  # the far end: the host's own would take its routes away, and its sends would fail at once
            self.in_wire(f"ip link set port{host.number} {'up' if up else 'down'}")

    def megabits_per_s(self, mebibytes: int = 4) -> float:
        """From the first host to the second."""
        serve = """
import socket, sys
listener = socket.create_server((sys.argv[1], 4568))
print("ready", flush=True)
peer = listener.accept()[0]
while peer.recv(1 << 20): pass
peer.send(b"x")
"""
        ask = """
import socket, sys, time
begin = time.perf_counter()
peer = socket.create_connection((sys.argv[1], 4568))
size = int(sys.argv[2]) << 20
peer.sendall(bytes(size))
peer.shutdown(socket.SHUT_WR)
peer.recv(1)
print(8e-6 * size / (time.perf_counter() - begin))
"""
        return float(self.converse(serve, ask, str(mebibytes)))

    def add_decoys(self) -> None:
        for host in self.hosts:
            host.run(*shell(f"ip link add {DECOY} type veth peer name decoy1", "ip link set decoy1 up",
                            f"ip address add 172.17.0.1/16 dev {DECOY}",
                            f"ip link set {DECOY} up"))

    def write_agent(self) -> None:
        """What mpirun takes for ssh. Like ssh it hands on no variables, and ends with 255 when what it runs was lost,
        but for a host that cannot be reached: then it waits."""
        self.agent = self.folder / "agent"
        cases = "\n".join(f"{host.name} | {host.address}) pid={host.pid} cut={host.cut_mark} ;;" for host in self.hosts)
        self.agent.write_text(f"""#!/bin/sh
case $1 in
{cases}
*) echo "no such host: $1" >&2; exit 1 ;;
esac
shift
env -i PATH="$PATH" HOME="$HOME" nsenter -t $pid --net --uts --mount --wdns={shlex.quote(str(self.here))} sh -c "$*"
code=$?
[ $code -ge 128 ] || exit $code
[ -e "$cut" ] && exec sleep infinity
exit 255
""")
        self.agent.chmod(0o755)

    def slots(self, ranks: int = 1) -> str:
        return ",".join(f"{host.name}:{ranks}" for host in self.hosts)

    def round_trip_ms(self) -> float:
        """Of a byte over TCP between the first two hosts, the smallest of some."""
        serve = """
import socket, sys
listener = socket.create_server((sys.argv[1], 4567))
print("ready", flush=True)
peer = listener.accept()[0]
while data := peer.recv(16): peer.send(data)
"""
        ask = """
import socket, sys, time
peer = socket.create_connection((sys.argv[1], 4567))
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
best = 1e9
for _ in range(20):
    begin = time.perf_counter()
    peer.send(b"x")
    peer.recv(16)
    best = min(best, time.perf_counter() - begin)
print(1e3 * best)
"""
        return float(self.converse(serve, ask))

    def converse(self, serve: str, ask: str, *words: str) -> str:
        """What the program `ask` on the first host prints; `serve` runs on the second."""
        python, second = [sys.executable, "-c"], self.hosts[1]
        server = subprocess.Popen([*second.enter(), *python, serve, second.address], stdout=subprocess.PIPE, text=True)
        try:
            server.stdout.readline()
            return self.hosts[0].run(*python, ask, second.address, *words)
        finally:
            server.kill()
            server.communicate()


@functools.cache
def why_not(delay_ms: float = 0) -> str | None:
    """Why no hosts, or none with a delay between them, can be made here; None: they can."""
    import tempfile
    with tempfile.TemporaryDirectory(prefix="vpp-hosts-") as folder:
        try:
            with Network(pathlib.Path(folder), delay_ms=delay_ms):
                return None
        except Unavailable as error:
            return str(error)


if __name__ == "__main__":  # a look at what this machine can do
    import tempfile
    for delay in (0, 2, 20):
        with tempfile.TemporaryDirectory() as place:
            start = time.monotonic()
            with Network(pathlib.Path(place), delay_ms=delay) as network:
                made = time.monotonic() - start
                print(f"{delay} ms: made in {made:.2f} s, netem: {network.has_netem}, a round trip takes "
                      f"{network.round_trip_ms():.3f} ms, {network.megabits_per_s(64):.0f} Mbit/s")
