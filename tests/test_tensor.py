"""Tensors at the boundary, and their `.npz` files."""

from __future__ import annotations

import contextlib
import io
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tenferro_ref.dtype import ENGINE_DTYPES, NARROW_FLOATS, DType
from tenferro_ref.errors import FormatError, InvalidArgument, OutputError
from tenferro_ref.ops import TensorType
from tenferro_ref.tensor import Tensor, column_major, load_npz, same_bits, save_npz, type_of

# --- tensors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", list(ENGINE_DTYPES))
def test_a_tensor_knows_its_type(dtype: DType) -> None:
    tensor = Tensor.of(np.zeros((2, 0, 3), dtype.numpy))
    assert tensor.type == TensorType(dtype, (2, 0, 3))
    assert tensor.dtype is dtype
    assert tensor.shape == (2, 0, 3)
    assert Tensor.of(tensor) is tensor


@pytest.mark.parametrize(("data", "dtype"), [([1], 5), ([1], "F64"), (300, DType.I8)])
def test_what_is_no_dtype_or_beyond_one_is_refused(data: object, dtype: Any) -> None:
    with pytest.raises(InvalidArgument):
        Tensor.of(data, dtype)  # type: ignore[arg-type]


def test_of_takes_what_numpy_takes() -> None:
    assert Tensor.of([[1.0, 2.0]]).type == TensorType(DType.F64, (1, 2))
    assert Tensor.of(3).type == TensorType(DType.I64, ())
    assert Tensor.of(True).dtype is DType.Bool
    assert Tensor.of([1, 2], DType.C32).dtype is DType.C32


@pytest.mark.parametrize("foreign", ["longdouble", "object", "U1"])
def test_foreign_dtypes_are_refused(foreign: str) -> None:
    with pytest.raises(InvalidArgument, match="none of the dtypes") as caught:
        Tensor.of(np.zeros(1, foreign))
    assert caught.value.argument == "dtype"


@given(hnp.arrays(np.float64, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0), elements=st.floats()), st.data())
def test_views_materialise_to_what_they_show(array: np.ndarray, data: st.DataObject) -> None:
    tensor, before = Tensor.of(array), array.tobytes()
    perm = data.draw(st.permutations(range(array.ndim)))
    views = [
        (tensor.transpose(perm), array.transpose(perm)),
        (tensor.reverse(perm[:2]), np.flip(array, tuple(perm[:2]))),
        (tensor.broadcast_to((2, *array.shape)), np.broadcast_to(array, (2, *array.shape))),
    ]
    if array.ndim:
        views.append((tensor[1:], array[1:]))
        views.append((tensor[::-2], array[::-2]))
    for view, expected in views:
        dense = view.materialize()
        assert type(dense) is np.ndarray  # of rank 0, too
        assert dense.flags.f_contiguous
        assert dense.shape == expected.shape
        assert dense.tobytes("F") == expected.tobytes("F")
    assert array.tobytes() == before


def test_bytes_in_the_other_order_are_read(tmp_path: Path) -> None:
    numbers = np.arange(6.0).reshape(2, 3)
    foreign = numbers.astype(">f8")
    np.savez(tmp_path / "x.npz", in0=foreign)
    (loaded,) = load_npz(tmp_path / "x.npz", "in")
    for array in (Tensor.of(foreign).materialize(), loaded):
        assert array.dtype.isnative
        assert np.array_equal(array, numbers)


def test_a_mask_is_not_lost() -> None:
    with pytest.raises(InvalidArgument, match="masked"):
        Tensor.of(np.ma.array([1.0, 2.0], mask=[False, True]))


def test_a_dense_column_major_array_is_not_copied() -> None:
    array = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    assert column_major(array) is array
    assert column_major(np.ascontiguousarray(array)).flags.f_contiguous


def test_one_element_has_the_strides_of_a_dense_array() -> None:
    """NumPy calls it dense with any strides, and computes it otherwise (0.5 ** 1.7088965 in F32 is one ULP off)."""
    for view in (np.arange(4.0)[::-1][:1], np.zeros((5, 7))[:1, 3:4], np.broadcast_to(1.0, (1, 1))):
        dense = column_major(view)
        assert np.array_equal(dense, view)
        assert dense.strides == (8,) * view.ndim
    x, y = np.float32([0.5]), np.float32([1.7088965])
    assert same_bits(np.power(x, y), np.power(*(column_major(np.repeat(a, 2)[::-1][:1]) for a in (x, y))))


def test_bits_are_compared_not_values() -> None:
    assert not same_bits(np.array(0.0), np.array(-0.0))
    assert same_bits(np.array(np.nan), np.array(np.nan))
    assert not same_bits(np.array([0x7FF8000000000001], np.uint64).view(np.float64), np.array([np.nan]))
    assert not same_bits(np.zeros((2, 3)), np.zeros((3, 2)))
    assert not same_bits(np.zeros(2, np.float32), np.zeros(1))
    assert same_bits(np.arange(6).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3)))
    assert Tensor.of([1.0]).same_bits(Tensor.of([1.0]))


def test_type_of() -> None:
    assert type_of(np.zeros((1, 2), np.complex64)) == TensorType(DType.C32, (1, 2))


# --- npz --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", list(ENGINE_DTYPES))
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 3), (2, 1, 4)])
def test_round_trip(tmp_path: Path, dtype: DType, shape: tuple[int, ...]) -> None:
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype.numpy)
    save_npz(tmp_path / "t.npz", {"in0": array, "in1": array.T})
    back = load_npz(tmp_path / "t.npz", "in")
    assert len(back) == 2
    assert same_bits(back[0], array)
    assert same_bits(back[1], array.T)
    assert all(a.flags.f_contiguous for a in back)


@pytest.mark.parametrize("dtype", [np.uint8, DType.F8E5M2.numpy])
def test_what_looks_like_a_header_is_data(tmp_path: Path, dtype: Any) -> None:
    array = np.frombuffer(b"xx'descr': '<f1'yy", np.uint8).view(dtype)
    save_npz(tmp_path / "t.npz", {"in0": array})
    (back,) = load_npz(tmp_path / "t.npz", "in", [type_of(array)])
    assert same_bits(back, array)


def test_a_truth_value_is_0_or_1(tmp_path: Path) -> None:
    for array in (np.array([0, 1, 2], np.uint8).view(bool), np.array([0, 255], np.uint8).view("V1")):
        np.savez(tmp_path / "t.npz", in0=array)
        with pytest.raises(FormatError, match="neither 0 nor 1"):
            load_npz(tmp_path / "t.npz", "in", [TensorType(DType.Bool, array.shape)])


def test_a_structure_is_no_float(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", in0=np.zeros(3, [("a", "u1"), ("b", "u1")]))
    with pytest.raises(FormatError, match="none of the dtypes"):
        load_npz(tmp_path / "t.npz", "in", [TensorType(DType.BF16, (3,))])


def test_nothing_is_a_program_without_inputs(tmp_path: Path) -> None:
    save_npz(tmp_path / "t.npz", {})
    assert load_npz(tmp_path / "t.npz", "in") == []


@pytest.mark.parametrize("dtype", [d for d in DType if d.bits <= 8])
def test_arrays_of_few_bits_come_back_given_their_type(dtype: DType, tmp_path: Path) -> None:
    """NumPy writes F8E5M2 as a float of one byte, which it does not read; the others as plain bytes."""
    array = np.array([0, 1, 1, 0]).astype(dtype.numpy)
    save_npz(tmp_path / "t.npz", {"in0": array})
    (back,) = load_npz(tmp_path / "t.npz", "in", [TensorType(dtype, (4,))])
    assert same_bits(back, array)


@pytest.mark.parametrize("dtype", sorted(NARROW_FLOATS | {DType.I4, DType.U2}, key=str))
def test_a_name_tells_the_dtype_where_nothing_else_does(dtype: DType, tmp_path: Path) -> None:
    array = np.array([[1, 2], [3, 1]]).astype(dtype.numpy)
    np.savez(tmp_path / "t.npz", **{f"in0.{dtype}": array})
    (back,) = load_npz(tmp_path / "t.npz", "in")
    assert same_bits(back, array)


def test_two_bytes_are_bf16(tmp_path: Path) -> None:
    array = np.array([1, -2.5]).astype(DType.BF16.numpy)
    np.savez(tmp_path / "t.npz", in0=array)
    assert same_bits(load_npz(tmp_path / "t.npz", "in")[0], array)


def test_a_name_that_tells_another_dtype_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", **{"in0.BF16": np.zeros(2)})
    with pytest.raises(FormatError, match=r"in0\.BF16: dtype float64 is not that of its name"):
        load_npz(tmp_path / "t.npz", "in")


@pytest.mark.parametrize("dtype", [DType.I2, DType.I4, DType.U2, DType.U4])
def test_integers_of_few_bits_may_be_wider_in_the_file(dtype: DType, tmp_path: Path) -> None:
    array = np.array(dtype.limits)
    wide = np.uint8 if dtype.is_unsigned else np.int8
    np.savez(tmp_path / "t.npz", in0=array.astype(wide))
    assert same_bits(load_npz(tmp_path / "t.npz", "in", [TensorType(dtype, (2,))])[0], array.astype(dtype.numpy))
    np.savez(tmp_path / "t.npz", in0=array.astype(wide) + wide(1))
    with pytest.raises(FormatError, match=f"in0: it has values outside of {dtype}"):
        load_npz(tmp_path / "t.npz", "in", [TensorType(dtype, (2,))])


def test_bits_beside_an_element_mean_nothing(tmp_path: Path) -> None:
    for bits in (np.array([0xFE, 0x0E], np.uint8), np.array(0xFE, np.uint8)):
        np.savez(tmp_path / "t.npz", in0=bits.view("V1"))
        (back,) = load_npz(tmp_path / "t.npz", "in", [TensorType(DType.I4, bits.shape)])
        assert same_bits(back, np.full(bits.shape, -2).astype(DType.I4.numpy))


def test_numpy_reads_what_is_written_of_f8e5m2(tmp_path: Path) -> None:
    array = np.array([1, -2.5]).astype(DType.F8E5M2.numpy)
    save_npz(tmp_path / "t.npz", {"out0": array})
    assert same_bits(np.load(tmp_path / "t.npz")["out0"].view(DType.F8E5M2.numpy), array)


def test_written_fortran_ordered_and_read_in_either_order(tmp_path: Path) -> None:
    array = np.arange(6.0).reshape(2, 3)
    save_npz(tmp_path / "f.npz", {"in0": array})
    with zipfile.ZipFile(tmp_path / "f.npz") as archive:
        assert b"'fortran_order': True" in archive.read("in0.npy")
    np.savez_compressed(tmp_path / "c.npz", in0=np.ascontiguousarray(array))
    assert same_bits(load_npz(tmp_path / "f.npz", "in")[0], load_npz(tmp_path / "c.npz", "in")[0])


def test_ten_and_more_arrays_keep_their_order(tmp_path: Path) -> None:
    save_npz(tmp_path / "t.npz", {f"out{i}": np.array(float(i)) for i in reversed(range(12))})
    assert [float(a) for a in load_npz(tmp_path / "t.npz", "out")] == list(range(12))


class Bomb:
    """Unpickling it would be noticed."""

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return (_explode, ("pickled code ran",))


def _explode(message: str) -> None:
    raise AssertionError(message)


def _npy(header: str, body: bytes = b"") -> bytes:
    text = header.encode("latin1")
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


def _zip(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def _saved(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _single(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def _encrypted() -> bytes:
    data = bytearray(_saved(in0=np.zeros(1)))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    return bytes(data)


GOOD = _saved(in0=np.arange(4.0))
HEADER = "{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n"
MALFORMED: dict[str, tuple[bytes, str]] = {
    "empty file": (b"", "not a zip file"),
    "text": (b"{}", "not a zip file"),
    "a pickle": (pickle.dumps(Bomb()), "not a zip file"),
    "one npy": (_single(np.zeros(2)), "not a zip file"),
    "truncated": (GOOD[:-30], "not a zip file"),
    "start cut off": (GOOD[40:], ""),
    "object array": (_saved(in0=np.array([Bomb()], dtype=object)), "pickled objects are refused"),
    "object array beside a plain one": (_saved(in0=np.zeros(1), in1=np.array([{}])), "pickled objects are refused"),
    "a member that is a pickle": (_zip(in0=pickle.dumps(Bomb())), "magic string"),
    "an empty member": (_zip(in0=b""), "not an .npz"),
    "other names": (_saved(x=np.zeros(1)), "expected the names"),
    "positional names": (_saved(arr_0=np.zeros(1)), "expected the names"),
    "a gap in the names": (_saved(in0=np.zeros(1), in2=np.zeros(1)), "expected the names"),
    "outputs": (_saved(out0=np.zeros(1)), "expected the names"),
    "bytes of an unknown dtype": (_saved(in0=np.zeros(1, "V1")), "is none of the dtypes; name it in0.F8E4M3FN"),
    "strings": (_saved(in0=np.array(["a"])), "is none of the dtypes"),
    "structured": (_saved(in0=np.zeros(1, "f8,i4")), "is none of the dtypes"),
    "header is no dict": (_zip(in0=_npy("[]\n")), "not an .npz"),
    "header runs code": (_zip(in0=_npy("__import__('os').abort()\n")), "not an .npz"),
    "header unfinished": (_zip(in0=_npy("{'descr': ")), "not an .npz"),
    "unknown version": (_zip(in0=b"\x93NUMPY\x09\x00" + b"\0" * 20), "not an .npz"),
    "negative shape": (_zip(in0=_npy(HEADER.format(descr="<f8", shape="(-1,)"), b"\0" * 8)), ""),
    "more declared than there is": (_zip(in0=_npy(HEADER.format(descr="<f8", shape="(10**12,)"))), ""),
    "a terabyte declared": (
        _zip(in0=_npy(HEADER.format(descr="<f8", shape="(137438953472,)"), b"\0" * 99)),
        "declares",
    ),
    "beyond 64 bits declared": (_zip(in0=_npy(HEADER.format(descr="<f8", shape=f"({2**70},)"))), "declares"),
    "encrypted": (_encrypted(), "encrypted"),
    "deflate damaged": (_zip(in0=_single(np.arange(999.0))).replace(b"\0\0", b"\1\7"), ""),
}


@pytest.mark.parametrize("name", list(MALFORMED))
def test_malformed_archives_are_format_errors(tmp_path: Path, name: str) -> None:
    content, words = MALFORMED[name]
    path = tmp_path / "t.npz"
    path.write_bytes(content)
    with pytest.raises(FormatError) as caught:
        load_npz(path, "in")
    message = str(caught.value)
    assert message.startswith(str(path))
    assert words in message
    assert len(message.splitlines()) == 1


def test_one_name_twice(tmp_path: Path) -> None:
    archive = zipfile.ZipFile(tmp_path / "t.npz", "w")
    archive.writestr("in0.npy", _single(np.array(1.0)))
    with pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("in0.npy", _single(np.array(2.0)))
    archive.close()
    with pytest.raises(FormatError, match="two members have one name"):
        load_npz(tmp_path / "t.npz", "in")


def test_a_zip_bomb_is_refused_before_it_unfolds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenferro_ref.memory.limit", lambda: 2 << 20)
    np.savez_compressed(tmp_path / "t.npz", in0=np.zeros(1 << 18))  # 2 MiB in 2 KiB
    assert (tmp_path / "t.npz").stat().st_size < 1 << 14
    with pytest.raises(FormatError, match="more data than fits in memory"):
        load_npz(tmp_path / "t.npz", "in")


@pytest.mark.parametrize("name", ["missing.npz", ".", "nul\0byte"])
def test_what_cannot_be_opened(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError):
        load_npz(tmp_path / name, "in")


@given(st.data())
def test_any_damage_is_a_format_error_or_goes_unnoticed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(data.draw(st.sampled_from([GOOD, _zip(in0=_single(np.arange(4.0)))])))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        if data.draw(st.booleans()):
            content[at] = data.draw(st.integers(0, 255))
        else:
            del content[at : at + data.draw(st.integers(1, 9))]
            if not content:
                break
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    path.write_bytes(content)
    with contextlib.suppress(FormatError):
        load_npz(path, "in")


def test_nothing_is_left_behind_where_writing_fails(tmp_path: Path) -> None:
    (tmp_path / "t.npz").mkdir()
    with pytest.raises(OutputError):
        save_npz(tmp_path / "t.npz", {"in0": np.zeros(1)})
    assert [p.name for p in tmp_path.iterdir()] == ["t.npz"]
