"""Tensors at the boundary of a program, and their `.npz` files (FORMATS 2).

`Tensor` is the user's: its data may be a strided view (transpose, slice, reverse, broadcast). What goes into a program is
`materialize`d: dense, column-major. Inside a program values are plain column-major arrays.
"""

from __future__ import annotations

import io
import lzma
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tenferro_ref import memory
from tenferro_ref.dtype import DType
from tenferro_ref.errors import FormatError, InvalidArgument
from tenferro_ref.files import write_atomically
from tenferro_ref.ops import TensorType
from tenferro_ref.placement import HOST, Placement

Array: TypeAlias = NDArray[np.generic]


@dataclass(frozen=True, eq=False, slots=True)
class Tensor:
    """A tensor; `data` may have any strides and is never written to."""

    data: Array

    @classmethod
    def of(cls, data: Tensor | Array | Sequence[object] | complex, dtype: DType | None = None) -> Tensor:
        """From anything NumPy understands.

        Raises
        ------
        InvalidArgument
            The data is no array, a masked one, or of a dtype that the engine does not know.
        PlacementMismatch
            The data is on a device.
        """
        if isinstance(data, Tensor):
            return data
        HOST.admit("Tensor", "data", data)
        if dtype is not None and not isinstance(dtype, DType):
            raise InvalidArgument(op="Tensor", argument="dtype", detail=f"{dtype!r} is no DType")
        try:
            array = np.asarray(data, None if dtype is None else dtype.numpy)
        except (ValueError, TypeError, OverflowError) as error:  # rows of several lengths, words, beyond the range
            raise InvalidArgument(op="Tensor", argument="data", detail=str(error)) from None
        if isinstance(data, np.ma.MaskedArray):
            detail = "a masked array, whose mask would be lost: x.filled(0) puts a number where it masks"
            raise InvalidArgument(op="Tensor", argument="data", detail=detail)
        array = native(array)
        try:
            DType.of(array)
        except KeyError:
            raise InvalidArgument(
                op="Tensor", argument="dtype", detail=f"{array.dtype} is none of the dtypes"
            ) from None
        return cls(array)

    @property
    def placement(self) -> Placement:
        """Where it is: a tensor of this kind is on the host, one on a device is a `pjrt.Buffer`."""
        return HOST

    @property
    def dtype(self) -> DType:
        """Dtype of the elements."""
        return DType.of(self.data)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the axes."""
        return self.data.shape

    @property
    def type(self) -> TensorType:
        """Dtype and shape."""
        return TensorType(self.dtype, self.data.shape)

    def transpose(self, perm: Sequence[int]) -> Tensor:
        """View with axis i taken from axis `perm[i]`."""
        return Tensor(self.data.transpose(tuple(perm)))

    def reverse(self, axes: Sequence[int]) -> Tensor:
        """View with the elements of `axes` in reverse order."""
        return Tensor(np.asarray(np.flip(self.data, tuple(axes))))  # of rank 0 it is a scalar

    def broadcast_to(self, shape: Sequence[int]) -> Tensor:
        """View of a larger shape, right-aligned as in NumPy, with zero strides."""
        return Tensor(np.broadcast_to(self.data, tuple(shape)))

    def __getitem__(self, index: slice | int | tuple[slice | int, ...]) -> Tensor:
        return Tensor(np.asarray(self.data[index]))

    def materialize(self) -> Array:
        """The dense column-major array."""
        return column_major(self.data)

    def same_bits(self, other: Tensor) -> bool:
        """Same dtype, shape and bits: NaN payloads and signs of zero count."""
        return same_bits(self.data, other.data)

    def __repr__(self) -> str:
        return f"Tensor({self.type})"


def listed(program: str, inputs: object) -> list[Any]:
    """The inputs of a program; an array alone is none of them, but would be taken for its rows.

    Raises
    ------
    InvalidArgument
        They are no sequence.
    """
    if isinstance(inputs, Sequence) and not isinstance(inputs, str | bytes):
        return list(inputs)
    detail = f"expected a list of arrays, one for each input of the program, got {type(inputs).__name__}"
    raise InvalidArgument(op=program, argument="inputs", detail=detail)


def column_major(array: Array) -> Array:
    """`array` itself if it is dense and column-major, else such a copy.

    NumPy calls one element dense whatever its strides are, but computes it by other code where they are not those of a dense
    array (measured: `np.power`, NumPy 2.4 with AVX-512).
    """
    if array.size == 1 and any(stride != array.itemsize for stride in array.strides):
        return array.copy(order="F")
    return array if array.flags.f_contiguous else np.asfortranarray(array)


def native(array: Array) -> Array:
    """`array` itself, or if its bytes are in the other order a copy with the same numbers in the machine's."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def same_bits(a: Array, b: Array) -> bool:
    """Same dtype, shape and bits."""
    return a.dtype == b.dtype and a.shape == b.shape and column_major(a).tobytes("F") == column_major(b).tobytes("F")


def type_of(array: Array) -> TensorType:
    """Dtype and shape of an array."""
    return TensorType(DType.of(array), array.shape)


#: What the zip and npy readers raise for damaged, encrypted, foreign or deceitful files.
_DAMAGE = (
    ValueError,
    EOFError,
    KeyError,
    RuntimeError,  # NotImplementedError among them
    SyntaxError,
    TypeError,
    OverflowError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    tokenize.TokenError,
)


_KNOWN = frozenset(dtype.numpy for dtype in DType)


#: Bytes that an array may have beyond what is due: its header, and what the caller tells better than this reader.
_SMALL = 1 << 20
#: Bytes that hold any header: NumPy reads none that is longer.
_HEADER = 1 << 14


def _read_npy(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: float) -> Array:
    """One array; the size that its header declares is checked before anything that large is allocated."""
    npy = np.lib.format
    with archive.open(member) as file:
        written = file.read(_HEADER)
        # NumPy does not read the dtype that it writes for F8E5M2
        header = io.BytesIO(written.replace(b"'descr': '<f1'", b"'descr': '|V1'", 1))
        version = npy.read_magic(header)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read_header(header)
        if math.prod(shape) * dtype.itemsize > member.file_size and not dtype.hasobject:
            raise ValueError(f"{member.filename} declares {shape} of {dtype} in {member.file_size} bytes")
        if member.file_size > most + _SMALL:
            raise ValueError(f"{member.filename} has {shape} of {dtype}, which is larger than what is due")
        begin = header.tell()
        head = header.getvalue()[:begin]
        if head != written[:begin]:
            plain: Array = npy.read_array(io.BytesIO(head + written[begin:] + file.read()), allow_pickle=False)
            return plain
    with archive.open(member) as file:
        array: Array = npy.read_array(file, allow_pickle=False)
    return array


def load_arrays(path: str | Path, due: Mapping[str, float] | None = None) -> dict[str, Array]:
    """Arrays of a `.npz` file by name, column-major.

    Parameters
    ----------
    due
        Bytes that each array should have, if that is known; what is much larger, or has no name here, is refused unread: a
        small file can hold a thousand times its size.

    Raises
    ------
    FormatError
        The file cannot be read, is no `.npz`, needs pickle, or has an array of a foreign dtype.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
            if len(members) != len(archive.infolist()):
                raise ValueError("two members have one name")
            if sum(member.file_size for member in members.values()) > memory.limit() // 2:
                raise MemoryError
            arrays = {
                name: _read_npy(archive, member, math.inf if due is None else due.get(name.partition(".")[0], 0))
                for name, member in members.items()
            }
    except OSError as error:
        raise FormatError(where=str(path), detail=f"cannot be read: {error.strerror or error}") from None
    except _DAMAGE as error:
        reason = "pickled objects are refused" if "Object arrays" in str(error) else str(error)
        raise FormatError(where=str(path), detail=f"not an .npz of plain arrays: {reason}") from None
    except MemoryError:
        raise FormatError(where=str(path), detail="declares more data than fits in memory") from None
    arrays = {name: native(array) for name, array in arrays.items()}
    for name, array in sorted(arrays.items()):
        # NumPy writes what only `ml_dtypes` knows as plain bytes: the reader must know the dtype
        if array.dtype not in _KNOWN and (array.dtype.names or array.dtype.str not in ("|V1", "|V2")):
            raise FormatError(where=f"{path}: {name}", detail=f"dtype {array.dtype} is none of the dtypes")
        _check_bools(array, f"{path}: {name}")
    return {name: column_major(array) for name, array in arrays.items()}


def _check_bools(array: Array, where: str) -> None:
    """Refuse bytes other than 0 and 1: one executor takes them for true, another one computes with them."""
    if array.dtype == bool and array.view(np.uint8).max(initial=0) > 1:
        raise FormatError(where=where, detail="a byte of a Bool is neither 0 nor 1")


def load_npz(path: str | Path, prefix: str, types: Sequence[TensorType] | None = None) -> list[Array]:
    """Arrays `{prefix}0`, `{prefix}1`, ... of a `.npz` file, column-major; `{prefix}0.F8E4M3FN` is of that dtype.

    Parameters
    ----------
    types
        What types they should have, if that is known: a `.npz` keeps BF16 and other dtypes that NumPy lacks as plain bytes.
        Whether they have them is the caller's to check, except that nothing much larger is read.

    Raises
    ------
    FormatError
        As `load_arrays`, or the file has other names, or values that the dtype lacks.
    """
    due = None if types is None else {f"{prefix}{i}": bytes_of(t) for i, t in enumerate(types)}
    arrays = load_arrays(path, due)
    entries = {_told(entry)[0]: entry for entry in arrays}
    expected = [f"{prefix}{i}" for i in range(len(arrays))]
    if set(entries) != set(expected):
        due_names = expected if types is None else [f"{prefix}{i}" for i in range(len(types))]
        raise FormatError(where=str(path), detail=f"has {sorted(arrays)}, expected the names {due_names}")
    listed = []
    for i, name in enumerate(expected):
        array, told, where = arrays[entries[name]], _told(entries[name])[1], f"{path}: {entries[name]}"
        dtype = told or (types[i].dtype if types is not None and i < len(types) else _ONLY.get(array.dtype.str))
        listed.append(array if dtype is None else _as(dtype, array, where))
        if told is not None and listed[i].dtype != told.numpy:
            raise FormatError(where, f"dtype {array.dtype} is not that of its name")
        if listed[i].dtype not in _KNOWN:
            how = (
                f"; name it {name}.F8E4M3FN, or whatever dtype it is"
                if array.dtype.kind == "V" and types is None
                else ""
            )
            raise FormatError(where, f"dtype {array.dtype} is none of the dtypes{how}")
        _check_bools(listed[i], where)
    return listed


#: What only one dtype is kept as of those that NumPy lacks.
_ONLY = {"|V2": DType.BF16}


def _told(entry: str) -> tuple[str, DType | None]:
    """The name of an array, and the dtype that its name in the file tells: `in0.BF16`."""
    name, _, dtype = entry.partition(".")
    return (name, DType[dtype]) if dtype in DType.__members__ else (entry, None)


def _as(dtype: DType, array: Array, where: str) -> Array:
    """An array of `dtype`, where its elements are kept as plain bytes, or integers of few bits as wider ones; else itself.

    Raises
    ------
    FormatError
        An integer has more bits.
    """
    few = dtype.bits in (2, 4, 6)
    if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
        # the other bits of such a byte mean nothing
        return np.asarray(array.view(np.uint8) & (2**dtype.bits - 1) if few else array).view(dtype.numpy)
    if few and array.dtype == (np.uint8 if dtype.is_unsigned else np.int8) and dtype.is_int:
        low, high = dtype.limits
        if array.min(initial=low) < low or array.max(initial=low) > high:
            raise FormatError(where, f"it has values outside of {dtype}, which goes from {low} to {high}")
        return array.astype(dtype.numpy)
    return array


def bytes_of(type_: TensorType) -> float:
    """Bytes of an array of this type; infinity where an extent is not known."""
    return math.prod(type_.static_shape) * type_.dtype.itemsize if type_.is_static else math.inf


def save_npz(path: str | Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays, Fortran-ordered, to a `.npz` file; nothing is left behind if that fails.

    NumPy would write F8E5M2 as a float of one byte, which it does not read.

    Raises
    ------
    OutputError
        The file cannot be written.
    """
    buffer = io.BytesIO()
    plain = {n: a.view("V1") if a.dtype.str == "<f1" else a for n, a in arrays.items()}
    np.savez(buffer, **{name: column_major(a) for name, a in plain.items()})  # type: ignore[arg-type]
    write_atomically(path, buffer.getvalue())
