"""Custom calls on every plugin: what a handler gets and gives, and that nothing wrong with it ends the process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tenferro_ref.dtype import DType
from tenferro_ref.errors import InvalidArgument, PjrtCall, UnsupportedOp
from tenferro_ref.pjrt import Client, ffi
from tenferro_ref.pjrt.ffi import Dictionary, Operand, Scalar, Signature, Text, Vector
from tests.pjrt.conftest import MakeClient
from tests.pjrt.test_pjrt_plugins import MLIR, array, mlir

pytestmark = pytest.mark.once

F32 = Operand(DType.F32)
ANY = Signature(None, None)
_NAMES = itertools.count()
X = np.arange(6, dtype=np.float32).reshape(2, 3)
SPEC = (DType.F32, (2, 3))


def called(
    client: Client,
    function: Callable[..., Sequence[Any]],
    signature: Signature = ANY,
    attributes: str = "",
    inputs: Sequence[np.ndarray] = (X,),
    result: tuple[DType, tuple[int, ...]] = SPEC,
) -> np.ndarray:
    """What a program gives that does nothing but call the function."""
    name = f"test{next(_NAMES)}"
    ffi.register(client, name, signature, function)
    specs = [(DType.of(x), x.shape) for x in inputs]
    arguments = ", ".join(f"%a{i}: {mlir(spec)}" for i, spec in enumerate(specs))
    text = f"""
    func.func public @main({arguments}) -> {mlir(result)} {{
      %0 = stablehlo.custom_call @{name}({", ".join(f"%a{i}" for i in range(len(specs)))})
        {{api_version = 4 : i32, backend_config = {{{attributes}}}}} : ({", ".join(map(mlir, specs))}) -> {mlir(result)}
      return %0 : {mlir(result)}
    }}
    """
    with client.compile(text, parameters=specs, results=[result]) as executable:
        return executable.run(list(inputs))[0]


@pytest.mark.parametrize("dtype", MLIR)
def test_arrays_go_in_and_come_out(client: Client, dtype: str) -> None:
    for shape in ((), (3,), (2, 3), (2, 0, 4), (2, 3, 4)):
        x = array(DType[dtype], shape)
        got = called(client, lambda a: [a.T], inputs=[x], result=(DType[dtype], shape[::-1]))
        np.testing.assert_array_equal(got, x.T, strict=True)


def test_attributes_of_every_kind(client: Client) -> None:
    seen: dict[str, Any] = {}

    def function(x: np.ndarray, **attributes: Any) -> list[np.ndarray]:
        seen.update(attributes)
        assert not x.flags.writeable
        return [x + attributes["d"]["by"]]

    kinds = {
        "i": Scalar("int64"), "b": Scalar("bool"), "f": Scalar("float32"), "h": Scalar("int8"), "s": Text(),
        "v": Vector("float64"), "none": Vector("int32"), "d": Dictionary({"by": Scalar("float32"), "in": Dictionary({})}),
    }  # fmt: skip
    got = called(
        client,
        function,
        Signature((Operand(DType.F32, 2),), (Operand(rank=2),), kinds),
        'i = -5 : i64, b = true, f = 2.5 : f32, h = -128 : i8, s = "a\\22\\\\b", v = array<f64: 1.0, -0.5>, none = array<i32>, '
        "d = {by = 10.0 : f32, in = {}}",
    )
    np.testing.assert_array_equal(got, X + 10)
    assert (seen["i"], seen["b"], seen["f"], seen["h"], seen["s"]) == (-5, True, 2.5, -128, 'a"\\b')
    np.testing.assert_array_equal(seen["v"], [1.0, -0.5])
    assert (seen["none"].shape, seen["d"]) == ((0,), {"by": 10.0, "in": {}})


def copy(x: np.ndarray, **_: Any) -> list[np.ndarray]:
    return [x]


@pytest.mark.parametrize(
    ("signature", "attributes", "detail"),
    [
        (Signature((), None), "", "arguments: the program gives 1, the signature has 0"),
        (Signature(None, (F32, F32)), "", "results: the program gives 1, the signature has 2"),
        (Signature((Operand(DType.F64),), None), "", r"argument 0: the program gives F32\[2, 3\], .* F64 of rank any"),
        (Signature((Operand(rank=1),), None), "", "any dtype of rank 1"),
        (Signature(None, (Operand(DType.I32, 2),)), "", "result 0: .* I32 of rank 2"),
        (Signature(None, None, {"k": Scalar("int64")}), "", r"attributes: the program gives \[\], the signature has \['k'\]"),
        (ANY, "k = 1 : i64", r"the program gives \['k'\], the signature has \[\]"),
        (Signature(None, None, {"k": Scalar("int64")}), "k = 1 : i32", "attribute 'k': the program gives int32"),
        (Signature(None, None, {"k": Scalar("int64")}), 'k = "x"', "attribute 'k': the program gives string"),
        (Signature(None, None, {"k": Text()}), "k = {}", "attribute 'k': the program gives dictionary"),
        (Signature(None, None, {"k": Vector("int64")}), "k = array<i32: 1>", "attribute 'k': the program gives int32"),
        (
            Signature(None, None, {"k": Dictionary({"m": Text()})}), "k = {m = 1 : i32}",
            "attribute 'k': entry 'm': the program gives scalar",
        ),
    ],
)  # fmt: skip
def test_a_program_that_is_not_of_the_signature(
    client: Client, signature: Signature, attributes: str, detail: str
) -> None:
    with pytest.raises(PjrtCall, match=detail) as caught:
        called(client, copy, signature, attributes)
    assert caught.value.code == "INVALID_ARGUMENT"


def test_a_dtype_that_the_engine_has_not(client: Client) -> None:
    name = f"test{next(_NAMES)}"
    ffi.register(client, name, ANY, lambda: [np.full(3, 2, ml_dtypes.float8_e5m2)])
    text = f"""
    func.func public @main() -> tensor<f32> {{
      %0 = stablehlo.custom_call @{name}() {{api_version = 4 : i32}} : () -> tensor<3xf8E5M2>
      %1 = stablehlo.constant dense<0.0> : tensor<f32>
      %2 = stablehlo.convert %0 : (tensor<3xf8E5M2>) -> tensor<3xf32>
      %3 = stablehlo.reduce(%2 init: %1) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
      return %3 : tensor<f32>
    }}
    """
    with client.compile(text, parameters=[]) as executable:
        assert executable.run([])[0] == 6


def raising(error: BaseException) -> Callable[..., list[np.ndarray]]:
    def function(x: np.ndarray) -> list[np.ndarray]:
        raise error

    return function


@pytest.mark.parametrize(
    ("function", "code", "detail"),
    [
        (lambda x: [], "INVALID_ARGUMENT", "the function gave 0, the program has 1"),
        (lambda x: [x.astype(np.float64)], "INVALID_ARGUMENT", r"result 0: the function gave float64\[2, 3\], .* float32\[2, 3\]"),
        (lambda x: [x.T], "INVALID_ARGUMENT", r"float32\[3, 2\]"),
        (lambda x: [x.tolist()], "INVALID_ARGUMENT", "the function gave list"),
        (lambda x: 3, "INTERNAL", "TypeError"),
        (lambda: [], "INTERNAL", "TypeError"),
        (raising(ValueError("with a \0 and a \udc80")), "INTERNAL", "ValueError: with a"),
        (raising(MemoryError()), "RESOURCE_EXHAUSTED", "out of memory"),
        (raising(KeyboardInterrupt()), "INTERNAL", "KeyboardInterrupt"),
        (raising(UnsupportedOp("it", "no")), "UNIMPLEMENTED", "it"),
        (raising(InvalidArgument("it", "x", "no")), "INVALID_ARGUMENT", "it: x: no"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_function_is_an_error_of_the_execution(
    client: Client, function: Callable[..., Any], code: str, detail: str
) -> None:
    for _ in range(2):
        with pytest.raises(PjrtCall, match=detail) as caught:
            called(client, function)
        assert caught.value.code == code
    np.testing.assert_array_equal(called(client, copy), X)


def test_a_second_function_takes_the_place_of_the_first(client: Client) -> None:
    spec = [(DType.F32, (2, 3))]
    text = """
    func.func public @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %0 = stablehlo.custom_call @replaced(%a) {api_version = 4 : i32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
      return %0 : tensor<2x3xf32>
    }
    """
    ffi.register(client, "replaced", ANY, copy)
    with client.compile(text, parameters=spec) as executable:
        np.testing.assert_array_equal(executable.run([X])[0], X)
        ffi.register(client, "replaced", ANY, lambda x: [-x])
        np.testing.assert_array_equal(executable.run([X])[0], -X)


def test_a_call_of_nobody_is_refused_at_compile_time(client: Client) -> None:
    text = """
    func.func public @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %0 = stablehlo.custom_call @nobody(%a) {api_version = 4 : i32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
      return %0 : tensor<2x3xf32>
    }
    """
    with pytest.raises(PjrtCall, match="nobody"):
        client.compile(text, parameters=[SPEC])


def test_a_plugin_without_the_extension(fake_client: MakeClient) -> None:
    with pytest.raises(UnsupportedOp, match="no FFI extension"):
        ffi.register(fake_client(), "f", ANY, copy)
