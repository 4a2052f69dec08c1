"""What the machine itself can do in the same minute: loopback echoes and syncs of its disk."""

from __future__ import annotations

import os
import select
import socket
import tempfile
import time
from multiprocessing import Process, Queue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

ECHO_BYTES = 64
BLOCK_BYTES = 4096


def echo_server(ports: Queue[int], cpu: int) -> None:
    """Answers every message with itself, one epoll loop, until its parent ends it."""
    os.sched_setaffinity(0, {cpu})
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    ports.put(listener.getsockname()[1])
    poller = select.epoll()
    poller.register(listener.fileno(), select.EPOLLIN)
    peers: dict[int, socket.socket] = {}
    while True:
        for descriptor, _ in poller.poll():
            if descriptor == listener.fileno():
                peer, _ = listener.accept()
                peers[peer.fileno()] = peer
                poller.register(peer.fileno(), select.EPOLLIN)
            else:
                data = peers[descriptor].recv(65_536)
                if data:
                    peers[descriptor].send(data)
                else:
                    poller.unregister(descriptor)
                    peers.pop(descriptor).close()


def echoes_per_s(connections: int, seconds: float, cpus: tuple[int, int]) -> float:
    """Round trips of 64 bytes a second, one in flight on each connection, a Python epoll server."""
    ports: Queue[int] = Queue()
    server = Process(target=echo_server, args=(ports, cpus[0]), daemon=True)
    server.start()
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpus[1]})
    try:
        port = ports.get(timeout=10)
        peers = [socket.create_connection(("127.0.0.1", port)) for _ in range(connections)]
        by_descriptor = {peer.fileno(): peer for peer in peers}
        poller = select.epoll()
        for peer in peers:
            poller.register(peer.fileno(), select.EPOLLIN)
            peer.send(bytes(ECHO_BYTES))
        count = 0
        started = time.perf_counter()
        while time.perf_counter() < started + seconds:
            for descriptor, _ in poller.poll():
                peer = by_descriptor[descriptor]
                peer.recv(65_536)
                peer.send(bytes(ECHO_BYTES))
                count += 1
        took = time.perf_counter() - started
        for peer in peers:
            peer.close()
        return count / took
    finally:
        os.sched_setaffinity(0, mine)
        server.terminate()
        server.join()


def syncs_per_s(directory: Path, seconds: float) -> float:
    """`fdatasync` after each 4 KiB written over blocks that were written before."""
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        descriptor = file.fileno()
        blocks = 1024
        os.pwrite(descriptor, bytes(blocks * BLOCK_BYTES), 0)
        os.fdatasync(descriptor)
        block = os.urandom(BLOCK_BYTES)
        count = 0
        started = time.perf_counter()
        while (took := time.perf_counter() - started) < seconds:
            os.pwrite(descriptor, block, count % blocks * BLOCK_BYTES)
            os.fdatasync(descriptor)
            count += 1
        return count / took
