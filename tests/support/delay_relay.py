"""Hands IP packets between hosts after a delay: delay_relay.py DEVICE SECONDS PID:ADDRESS ...

Makes a tun device in the network namespace of each process; what a host sends leaves the relay so many seconds
later, in order. Lines on stdin: "cut ADDRESS" (packets from and to it vanish) and "mend ADDRESS". For kernels without
netem."""

import collections
import contextlib
import ctypes
import fcntl
import os
import select
import struct
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
CLONE_NEWNET = 0x40000000
LARGEST = 65536
AT_ONCE = 64  # packets read before others are looked after


def enter(network: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(network, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def open_tun(pid: str, device: str) -> int:
    with open(f"/proc/{pid}/ns/net") as network:
        enter(network.fileno())
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TUN | IFF_NO_PI))
    return tun


def packed(address: str) -> bytes:
    return bytes(map(int, address.split(".")))


def main() -> None:
    device, delay = sys.argv[1], float(sys.argv[2])
    ends = {}  # by address
    for word in sys.argv[3:]:
        pid, address = word.split(":")
        ends[packed(address)] = open_tun(pid, device)
    with contextlib.suppress(OSError):  # a delay that does not depend on who else wants the cores
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    print("ready", flush=True)
    cut = set()
    waiting = collections.deque()  # (when, from, to, packet), in order since all wait equally long
    while True:
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, origin, target, packet = waiting.popleft()
            if origin not in cut and target not in cut:
                with contextlib.suppress(OSError):  # the host is gone, or its device is full or down: a packet is lost
                    os.write(ends[target], packet)
        rest = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for ready in select.select([0, *ends.values()], [], [], rest)[0]:
            if ready == 0:
                if not (line := os.read(0, 4096).decode()):
                    return
                for word, address in map(str.split, line.splitlines()):
                    (cut.add if word == "cut" else cut.discard)(packed(address))
                continue
            with contextlib.suppress(OSError):
                for _ in range(AT_ONCE):
                    packet = os.read(ready, LARGEST)
                    origin, target = packet[12:16], packet[16:20]
                    if packet[0] >> 4 == 4 and target in ends:
                        waiting.append((time.monotonic() + delay, origin, target, packet))


if __name__ == "__main__":
    main()
