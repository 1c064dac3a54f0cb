"""Names of executors: taken apart and put together, and what lanes make of a plugin."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.peers import LANES, OTHERS, Peer, Pool, lane_options, native_variants
from oracle.peers.lanes import Options
from oracle.peers.peer import FAMILIES
from tenferro_ref.errors import UsageError
from tenferro_ref.pjrt import PluginRef
from tests.plugins import ONE_BUILD, plugin_or_skip

pytestmark = pytest.mark.once


@st.composite
def peers(draw: st.DrawFn) -> Peer:
    family = draw(st.sampled_from([*FAMILIES, "odd"]))
    variant = draw(st.sampled_from(FAMILIES[family].variants)) if family in FAMILIES else ""
    lane = draw(st.sampled_from(["", *LANES, "no-such-lane"])) if family == "pjrt" else ""
    return Peer(family, variant, draw(st.text(alphabet="aZ0/.@:-+= é")), lane)


@given(peers())
def test_a_printed_peer_is_parsed_to_itself(peer: Peer) -> None:
    assert Peer.parse(str(peer)) == peer


@pytest.mark.parametrize(
    ("name", "peer"),
    [
        *((e.name, None) for e in native_variants()),
        *((name, None) for name in OTHERS),
        ("native:passes=DotDecomposer+unsegmented", Peer("native", build="passes=DotDecomposer+unsegmented")),
        ("native-without:DotDecomposer", Peer("native", "without", "DotDecomposer")),
        ("pjrt", Peer("pjrt")),
        ("pjrt@fast", Peer("pjrt", lane="fast")),
        ("pjrt:xla-cpu-pjrt@no-algsimp", Peer("pjrt", build="xla-cpu-pjrt", lane="no-algsimp")),
        ("pjrt:/a@b/c.so@fast", Peer("pjrt", build="/a@b/c.so", lane="fast")),
        ("jax-eager", Peer("jax", "eager")),
        ("external:ssh me@there engine:1 -x", Peer("external", build="ssh me@there engine:1 -x")),
    ],
)
def test_names_of_the_command_line(name: str, peer: Peer | None) -> None:
    assert str(Peer.parse(name)) == name
    assert peer is None or Peer.parse(name) == peer


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("native-slow", "unknown executor"),
        ("native:block=3+block=4", "'block=4' says again what is said before it"),
        ("native-fused:fusion=0", "known are native-fused; options follow native: only"),
        ("native-drawn:4", "known are native-drawn, native-drawn:2, native-drawn:3; options follow native: only"),
        ("native-without:Nothing", "no pass 'Nothing'"),
        ("jax-fast", "unknown executor"),
        ("jax:1", "unknown executor"),
        ("pjrt-fast:xla081", "unknown executor"),
        ("pjrt:/there/x.so@fats", "unknown lane 'fats'; known: parity"),
        ("external-x:true", "unknown executor"),
        ("someone", "unknown executor 'someone'; known: native"),
        ("natve", r"unknown executor .*; did you mean 'native'\?"),
        ("jax-eagr", r"unknown executor .*; did you mean 'jax-eager'\?"),
        ("native-without:TransposeFoldin", r"no pass .*; did you mean 'TransposeFolding'\?"),
        ("pjrt:/there/x.so@defalts", r"unknown lane .*; did you mean 'defaults'\?"),
    ],
)
def test_what_is_no_name(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Pool().make(name)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("native", ""),
        ("pjrt:xla081@fast", ""),
        ("pjrt:/there/x.so@fast", "load the library '/there/x.so'"),
        ("external:engine --fast", "run the command 'engine --fast'"),
    ],
)
def test_code_that_a_name_runs(name: str, code: str) -> None:
    assert Peer.parse(name).code == code


def test_flags_of_a_lane_are_those_that_the_client_has() -> None:
    flag = "xla_cpu_use_fusion_emitters"
    assert lane_options("fast", "cpu", lambda name, value: True) == LANES["fast"]
    without = lane_options("fast", "cpu", lambda name, value: name != flag)
    assert without == {k: v for k, v in LANES["fast"].items() if k != flag}
    precise = {"xla_allow_excess_precision": False}
    assert lane_options("fast", "cuda", lambda name, value: True) == {"xla_backend_optimization_level": 0, **precise}
    assert lane_options("parity", "cuda", lambda name, value: True) == precise
    assert lane_options("defaults", "cuda", lambda name, value: True) == {}
    for platform in ("", "fake"):  # a plugin that does not say "cpu" is not XLA's for the CPU
        assert lane_options("fast", platform, lambda name, value: True) == {"xla_backend_optimization_level": 0}
    with pytest.raises(UsageError, match="unknown lane"):
        lane_options("fats", "cpu", lambda name, value: True)


@pytest.mark.parametrize("name", ONE_BUILD)
def test_a_plugin_under_another_name_gets_the_same_options(name: str, tmp_path: Path, pool: Pool) -> None:
    renamed = tmp_path / "another.so"
    renamed.symlink_to(plugin_or_skip(name).path)
    options = [pool.make(f"pjrt:{plugin}@fast").options for plugin in (name, renamed)]  # type: ignore[attr-defined]
    assert options[0] == options[1]
    assert ("xla_cpu_use_fusion_emitters" in options[0]) is (name != "lam115")


@pytest.mark.parametrize(
    ("platform", "model", "options"),
    [("cuda", "cuda", {"xla_allow_excess_precision": False}), ("tpu", "xla", {}), ("numpy", "xla", {})],
)
def test_a_plugin_is_held_to_the_arithmetic_of_what_its_client_calls_itself(
    platform: str, model: str, options: Options, fake_library: Path
) -> None:
    ref = PluginRef("fake", str(fake_library), "test", environment={"FAKE_PJRT_MODE": f"calls_itself:{platform}"})
    with closing(Pool()) as pool:
        executor = pool.pjrt(ref, "parity")
        executor.open()
        assert (executor.build.partition(",")[0], executor.model) == (platform, model)
        assert executor.options == options
