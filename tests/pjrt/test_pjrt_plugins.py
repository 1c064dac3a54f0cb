"""The client on every installed CPU plugin: data goes in and comes out unchanged, programs run, errors are clear."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tenferro_ref.dtype import ENGINE_DTYPES, DType
from tenferro_ref.errors import PjrtCall
from tenferro_ref.pjrt import Client, TensorSpec

pytestmark = pytest.mark.once


MLIR = {
    "F32": "f32",
    "F64": "f64",
    "I32": "i32",
    "I64": "i64",
    "Bool": "i1",
    "C32": "complex<f32>",
    "C64": "complex<f64>",
}
SHAPES = ((), (1,), (5,), (0,), (2, 3), (0, 3), (3, 0), (2, 3, 4), (2, 0, 4), (1, 3, 1), (2, 3, 4, 5), (2, 1, 0, 3))


def mlir(spec: TensorSpec) -> str:
    return f"tensor<{''.join(f'{n}x' for n in spec[1])}{MLIR[spec[0].name]}>"


def array(dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """Distinct values (so far as the dtype has them) in C order."""
    n = np.arange(1, int(np.prod(shape)) + 1)
    values = n % 3 == 0 if dtype is DType.Bool else n - 1j * n**2 if dtype.is_complex else n
    return np.asarray(values).astype(dtype.numpy).reshape(shape)


def strided(dtype: DType, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    """Arrays of one type with all kinds of strides."""
    x = array(dtype, shape)
    yield x
    yield x.copy(order="F")  # np.asfortranarray would make a scalar a vector
    yield array(dtype, shape[::-1]).T
    if shape:
        yield x[::-1]
        yield x[..., ::-1]
        yield array(dtype, (*shape[:-1], 2 * shape[-1]))[..., ::2]
        yield array(dtype, (3 * shape[0], *shape[1:]))[::-3]
        yield np.broadcast_to(array(dtype, shape[:-1])[..., None], shape)
    packed = np.zeros(shape, [("pad", "u1"), ("value", dtype.numpy)])
    packed["value"] = x
    yield packed["value"]
    read_only = x.copy()
    read_only.flags.writeable = False
    yield read_only


@pytest.mark.parametrize("dtype", [d for d in DType if not d.is_float or d.bits > 8], ids=str)
def test_round_trip(client: Client, dtype: DType) -> None:
    for shape in SHAPES:
        for x in strided(dtype, shape):
            with client.put(x) as buffer:
                assert buffer.spec == (dtype, shape)
                got = buffer.numpy()
            np.testing.assert_array_equal(got, x, strict=True)
            assert got.flags.f_contiguous


def test_upload_is_done_when_the_call_returns(client: Client) -> None:
    x = np.ones((300, 200))
    with client.put(x) as buffer:
        x[:] = 7
        assert (buffer.numpy() == 1).all()


def test_all_dtypes_through_a_program(client: Client) -> None:
    specs: list[TensorSpec] = [(dtype, (2, 3, 4)) for dtype in ENGINE_DTYPES] + [(DType.F32, ()), (DType.I64, (0, 5))]
    results = [(dtype, shape[::-1]) for dtype, shape in specs]
    arguments = ", ".join(f"%a{i}: {mlir(spec)}" for i, spec in enumerate(specs))
    body = [
        f"%r{i} = stablehlo.transpose %a{i}, dims = {list(reversed(range(len(spec[1]))))} : ({mlir(spec)}) -> {mlir(r)}"
        for i, (spec, r) in enumerate(zip(specs, results, strict=True))
    ]
    types = ", ".join(map(mlir, results))
    values = ", ".join(f"%r{i}" for i in range(len(specs)))
    text = "\n".join([f"func.func public @main({arguments}) -> ({types}) {{", *body, f"return {values} : {types}", "}"])
    with client.compile(text, parameters=specs, results=results) as executable:
        assert executable.results == tuple(results)
        for pick in range(8):
            inputs = [list(strided(*spec))[pick if spec[1] else 0] for spec in specs]
            for got, x in zip(executable.run(inputs), inputs, strict=True):
                np.testing.assert_array_equal(got, x.T, strict=True)
                assert got.flags.f_contiguous


DOT = """
func.func public @main(%a: tensor<4x3x5xf64>, %b: tensor<4x5x2xf64>) -> tensor<4x3x2xf64> {
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1]
    : (tensor<4x3x5xf64>, tensor<4x5x2xf64>) -> tensor<4x3x2xf64>
  return %0 : tensor<4x3x2xf64>
}
"""
DOT_TYPES: list[TensorSpec] = [(DType.F64, (4, 3, 5)), (DType.F64, (4, 5, 2))]


def dot_inputs(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    # small integers: exact in every order of summation
    return [np.asfortranarray(rng.integers(-8, 9, shape).astype(float)) for _, shape in DOT_TYPES]


def test_batched_dot(client: Client) -> None:
    with client.compile(DOT, parameters=DOT_TYPES) as executable:
        assert executable.results == ((DType.F64, (4, 3, 2)),)
        for seed in range(20):
            a, b = dot_inputs(seed)
            np.testing.assert_array_equal(executable.run([a, b])[0], a @ b)


def test_one_executable_from_many_threads(client: Client) -> None:
    def check(seed: int) -> bool:
        a, b = dot_inputs(seed)
        return bool((executable.run([a, b])[0] == a @ b).all())

    with client.compile(DOT, parameters=DOT_TYPES) as executable, ThreadPoolExecutor(4) as pool:
        assert all(pool.map(check, range(100)))


def test_buffers_outlive_an_execution(client: Client) -> None:
    a, b = dot_inputs(1)
    with client.compile(DOT, parameters=DOT_TYPES) as executable, client.put(a) as left, client.put(b) as right:
        for _ in range(3):
            (out,) = executable.execute([left, right])
            np.testing.assert_array_equal(out.numpy(), a @ b)
            out.close()
        np.testing.assert_array_equal(left.numpy(), a)


def test_donated_input_stays_usable(client: Client) -> None:
    text = """
    func.func public @main(%a: tensor<64xf32> {tf.aliasing_output = 0 : i32}) -> tensor<64xf32> {
      %0 = stablehlo.add %a, %a : tensor<64xf32>
      return %0 : tensor<64xf32>
    }
    """
    x = np.arange(64, dtype=np.float32)
    with client.compile(text, parameters=[(DType.F32, (64,))]) as executable, client.put(x) as buffer:
        for _ in range(2):
            (out,) = executable.execute([buffer])
            np.testing.assert_array_equal(out.numpy(), 2 * x)
            out.close()
        np.testing.assert_array_equal(buffer.numpy(), x)
        np.testing.assert_array_equal(executable.run([x])[0], 2 * x)
    assert x[1] == 1


def test_program_without_arguments_or_results(client: Client) -> None:
    with client.compile("func.func public @main() { return }", parameters=[], results=[]) as executable:
        assert executable.run([]) == []


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("this is no program", "."),
        ("", "."),
        ("func.func public @main() -> tensor<f32> { return }", "return"),
        ("func.func public @main() { %0 = stablehlo.no_such_op : tensor<f32>\n return }", "no_such_op"),
        ("func.func public @main(%a: tensor<?xf32>) -> tensor<?xf32> { return %a : tensor<?xf32> }", "."),
    ],
)
def test_bad_program(client: Client, text: str, detail: str) -> None:
    with pytest.raises(PjrtCall, match=detail) as caught:
        client.compile(text, parameters=[])
    assert caught.value.call == "PJRT_Client_Compile"
    assert caught.value.code in ("UNKNOWN", "INVALID_ARGUMENT", "UNIMPLEMENTED")


def test_unknown_flag(client: Client) -> None:
    with pytest.raises(PjrtCall, match="xla_no_such_flag") as caught:
        client.compile(DOT, {"xla_no_such_flag": True}, parameters=DOT_TYPES)
    assert caught.value.code == "INVALID_ARGUMENT"


def test_wrong_results_are_told(client: Client) -> None:
    with pytest.raises(PjrtCall, match=r"result 0 is F64\[4,3,2\], expected F64\[4,2,3\]"):
        client.compile(DOT, parameters=DOT_TYPES, results=[(DType.F64, (4, 2, 3))])


def test_serialised_executable(client: Client) -> None:
    a, b = dot_inputs(3)
    with client.compile(DOT, parameters=DOT_TYPES) as executable:
        data = executable.serialize()
    with client.deserialize(data) as again:
        np.testing.assert_array_equal(again.run([a, b])[0], a @ b)


def test_events_of_real_buffers(client: Client) -> None:
    with client.put(np.ones(3)) as buffer, buffer.ready_event() as event:
        event.wait(5)
        assert event.ready()


def test_what_a_client_says(client: Client) -> None:
    assert client.platform_name == "cpu"
    assert {device.kind for device in client.devices} == {"cpu"}
    assert client.host_layout is (client.plugin.ref.name != "xla081")
    assert client.knows("xla_cpu_use_fusion_emitters") is (client.plugin.ref.name != "lam115")
    assert not client.knows("xla_no_such_flag")
