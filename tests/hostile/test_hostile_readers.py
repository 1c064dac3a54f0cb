"""Every reader of what comes from outside, given damaged input: a typed error or a value, in time, and within memory.

`TENFERRO_HOSTILE_INPUTS` says how many inputs each reader gets: 200 by default, 100,000 at night (`tox run -e hostile`). They follow
from the seed of the run; what once broke is in `broke/READER`, and is given first.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import random
import resource
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from fuzz import records
from fuzz.cli.golden import Index
from fuzz.findings import bundle, corpus, known
from fuzz.findings.bundle import Facts
from fuzz.generate.batches import check_settings
from oracle.peers import ExternalExecutor, NativeExecutor
from oracle.peers.peer import Peer
from tenferro_ref.dims import InputDim
from tenferro_ref.errors import FormatError, TenferroError
from tenferro_ref.files import decode
from tenferro_ref.isolation import wire
from tenferro_ref.isolation.reader import Reader
from tenferro_ref.pjrt.discovery import ref_of_path
from tenferro_ref.pjrt.serialized import MAGIC, header_of
from tenferro_ref.program import GraphBuilder, dumps, loads, parse, print_program, to_exec
from tenferro_ref.tensor import load_npz, save_npz
from tests.hostile.attacks import finding, program
from tests.hostile.forked import Forked
from tests.hostile.mutations import (
    Mutation,
    archive_changed,
    bytes_changed,
    json_changed,
    msgpack_changed,
    mutated,
    sealed_changed,
    words_changed,
)
from tests.hostile.test_hostile_modules import SOUND
from tests.libraries import module_or_skip
from tests.reports import sample

pytestmark = pytest.mark.once

COUNT = int(os.environ.get("TENFERRO_HOSTILE_INPUTS", "200"))
#: Seconds of processor time that one input may take, and MiB that the process may grow by over all of them.
SECONDS, MIB = 10.0, 1024
TEXT = (words_changed, bytes_changed)
JSON = (json_changed, json_changed, *TEXT)
ROOT = Path(__file__).parents[2]
BROKE = Path(__file__).with_name("broke")


@dataclass(frozen=True)
class Case:
    """A reader with sound inputs of it, and how they are damaged."""

    seeds: Callable[[], list[bytes]]
    read: Callable[[bytes], object]
    mutations: tuple[Mutation, ...] = TEXT


@cache
def folder() -> Path:
    """Kept if something fails, as pytest keeps what it made: the input that did is in it."""
    return Path(tempfile.mkdtemp(prefix="tenferro-readers-"))


def at(name: str, data: bytes) -> Path:
    path = folder() / name
    path.write_bytes(data)
    return path


def programs() -> list[bytes]:
    b = GraphBuilder("p")
    x = b.input("F64", (InputDim(0, 0), 3))
    graphs = [program().program, b.build((x * 2.0).sum([0]), x.transpose((1, 0)))]
    return [dumps(p).encode() for p in (*graphs, to_exec(graphs[0]))]


def texts() -> list[bytes]:
    return [print_program(loads(text.decode())).encode() for text in programs()]


def npz() -> list[bytes]:
    save_npz(folder() / "s.npz", {"in0": np.arange(6.0).reshape(2, 3), "in1": np.ones(3, np.int32)})
    return [(folder() / "s.npz").read_bytes()]


def bundles() -> list[bytes]:
    bundle.write_bundle(folder() / "b", finding(), NativeExecutor(), program(), ())
    return [(folder() / "b" / "environment.json").read_bytes()]


def executables() -> list[bytes]:
    header = {"plugin": "p", "plugin_sha256": "0" * 64, "cpu": "c", "parameters": [["F64", [2, 3]]], "results": None}
    content = json.dumps(header).encode() + b"\nmachine code"
    return [b"%s %s\n%s" % (MAGIC, hashlib.sha256(content).hexdigest().encode(), content)]


def replies() -> list[bytes]:
    error = {"kind": "ShapeMismatch", "op": "Add", "lhs": [2], "rhs": [3], "message": "m"}
    return [json.dumps({"error": error}).encode(), b'{"error": {"kind": "Mine", "axis": 1, "message": "x"}}']


def messages() -> list[bytes]:
    array = wire.pack(np.arange(6.0).reshape(2, 3))
    packed = {"output_sets": [[array]], "seconds": {"execute": 0.5}}
    error = {"error": {"kind": "RankMismatch", "facts": {"op": "Add", "expected": 1, "actual": 2}}}
    return [bytes(msgpack.packb(message)) for message in (packed, error)]


def read_message(data: bytes) -> object:
    """As a worker's answer is read: what `Worker` turns into the death of the worker is a typed error here."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(len(data).to_bytes(8, "big") + data[: 1 << 16])
        theirs.close()
        try:
            message = wire.Channel(ours).receive()
            return wire.unpack_error(message["error"]) if "error" in message else wire.output_sets(message)
        except (EOFError, ConnectionError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise FormatError(where="answer", detail=str(error)) from None


def read_bundle(data: bytes) -> object:
    at("b/environment.json", data)
    return bundle.read_bundle(folder() / "b")


def read_side_file(data: bytes) -> object:
    at("p.toml", data)
    return ref_of_path(at("p.so", b""))


def short(value: Any) -> Any:
    """The same tree with at most two elements in each list: every field is there, and an input costs a millisecond."""
    if isinstance(value, dict):
        return {key: short(inner) for key, inner in value.items()}
    return [short(inner) for inner in value[:2]] if isinstance(value, list) else value


def campaigns() -> list[bytes]:
    return [json.dumps(short(json.loads(records.dumps(c())))).encode() for c in (sample.empty, sample.short)]


def rules() -> list[bytes]:
    """The builds and the first rules."""
    return [b"[[known]]".join(known.DEFAULT_RULES.read_bytes().split(b"[[known]]")[:6])]


SIDE = b'platform = "cpu"\npriority = 3\n[client_options]\nn = 3\n[compile_options]\nb = true\n[environment]\nA = "b"\n'
GOLDEN = {"tenferro_golden": 1, "seed": 1, "model": "numpy", "versions": [["a", "b"]], "programs": 3, "cases": []}

READERS = {
    "program JSON": Case(programs, lambda data: loads(decode(data, "p")), JSON),
    "program text": Case(texts, lambda data: parse(decode(data, "p"))),
    "npz": Case(npz, lambda data: load_npz(at("r.npz", data), "in"), (archive_changed, bytes_changed)),
    "campaign record": Case(
        campaigns, lambda data: records.load(at("c.json", data)), JSON
    ),
    "seeded faults": Case(
        lambda: [b'{"name": "f", "place": "p", "killed": true, "programs": 3}\n' * 2],
        lambda data: records.load_mutants(at("m.jsonl", data)),
    ),
    "known findings": Case(rules, lambda data: known.load_known.__wrapped__(at("k.toml", data))),
    "corpus": Case(
        lambda: [p.read_bytes() for p in sorted((ROOT / "tests" / "corpus").glob("*.toml"))[:6]],
        lambda data: corpus.load(at("0001-x.toml", data)),
    ),
    "bundle": Case(bundles, read_bundle, JSON),
    "bundle facts": Case(bundles, lambda data: records.from_json(Facts, decode(data, "e")), JSON),
    "golden index": Case(
        lambda: [json.dumps(GOLDEN).encode()], lambda data: records.from_json(Index, decode(data, "i")), JSON
    ),
    "generator words": Case(
        lambda: [b"instructions=5-20", b"ops=Exp,Log", b"dtypes=F32,C64", b"rare=Reverse:I32", b"invalid=1/8", b"elements=64"],
        lambda data: check_settings([decode(data, "w")]),
    ),
    "executor names": Case(
        lambda: [b"pjrt:xla-cpu-pjrt@parity", b"native:passes=A/B+fusion=3", b"external:sh -c x", b"native-without:X"],
        lambda data: Peer.parse(decode(data, "n")),
    ),
    "plugin TOML": Case(lambda: [SIDE], read_side_file),
    "executables": Case(executables, header_of, (sealed_changed, bytes_changed)),
    "external replies": Case(replies, lambda data: ExternalExecutor("true")._refusal(data), JSON),
    "worker messages": Case(messages, read_message, (msgpack_changed, bytes_changed)),
}  # fmt: skip


def attack(name: str, case: Case, rng: random.Random, count: int) -> Counter[str]:
    """Give the reader so many inputs; how they ended."""
    ends: Counter[str] = Counter()
    seeds, before = case.seeds(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in seeds:
        case.read(seed)
    old = [path.read_bytes() for path in sorted((BROKE / name.replace(" ", "-")).glob("*"))]

    def inputs() -> Iterator[bytes]:
        yield from old
        for _ in range(count):
            yield mutated(rng, seeds, case.mutations)

    for data in inputs():
        start = time.process_time()  # another process may have the core
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                case.read(data)
            ends["read"] += 1
        except TenferroError as error:
            str(error)
            ends[error.kind] += 1
        except Exception as error:
            kept = folder() / hashlib.sha256(data).hexdigest()[:12]
            kept.write_bytes(data)
            raise AssertionError(
                f"{name}: {type(error).__name__}: {error}; the input is {kept}: {data[:200]!r}"
            ) from error
        assert time.process_time() - start < SECONDS, data[:200]
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < MIB, f"{name}: {grown:.0f} MiB"
    print(f"{name}: {count} inputs, {grown:.0f} MiB more, {dict(ends)}")
    return ends


@pytest.mark.parametrize("name", READERS)
def test_reader(name: str, rng: random.Random) -> None:
    ends = attack(name, READERS[name], rng, COUNT)
    assert ends.total() >= COUNT


@pytest.mark.parametrize("form", ["text", "bytecode", "portable"])
def test_reader_of_modules(form: str, rng: random.Random) -> None:
    """MLIR may end the process that reads; that `Reader` replaces its own is in `test_hostile_modules`."""
    module_or_skip("jaxlib")
    with Reader() as reader:
        seed = SOUND.encode() if form == "text" else reader.serialized(reader.source(SOUND, "sound"), form)
    mutations = TEXT if form == "text" else (bytes_changed,)
    # a sound one takes milliseconds; of some damaged bytecode MLIR makes no end
    with Forked(seconds=0.5) as read:
        ends = attack(f"StableHLO {form}", Case(lambda: [seed], read, mutations), rng, COUNT)
        print(f"StableHLO {form}: {read.deaths} processes ended")
    assert ends["FormatError"]
