"""What programs may contain: `Config`, and the dtypes that the generator gives to each op."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from tenferro_ref import ops
from tenferro_ref.dtype import ENGINE_DTYPES, NUMERIC, DType
from tenferro_ref.ops import DEFAULT_POLICY, OPS, CompareDir, Op, Policy

#: How the values of a program are drawn: mostly finite, of all classes, or small integers (`fuzz.generate.values.recipes`).
Regime: TypeAlias = Literal["ordinary", "hostile", "exact"]


@dataclass(frozen=True, slots=True)
class Config:
    """Limits and mix of generated programs.

    Attributes
    ----------
    ops
        Ops to use.
    dtypes
        Dtypes of inputs and constants and targets of Convert; Bool also arises from Compare. An op uses those that it
        admits; integer Divide and Pow, which may fault, are left to programs whose policy defines the result.
    min_instructions, max_instructions
        Length of a program, inclusive.
    usual_instructions
        12 in 100 programs have up to 40 instructions, 2 in 100 up to 64, 1 in 200 up to `max_instructions`. Ignored
        unless it is between the other two.
    max_elements
        Largest tensor.
    big_elements, usual_elements
        Two programs in a hundred come near `big_elements`, the others stay below `usual_elements`; a motif goes beyond both.
    max_rank, usual_rank
        Ranks above `usual_rank` are rare.
    dim_exprs
        A few shapes of Reshape and BroadcastInDim read extents from their operands.
    motifs
        Besides single ops, programs contain sequences that passes and compilers look for (`fuzz.generate.motifs`);
        batches walk through them.
    anchors
        Batches walk through all (op, dtype, reader) triples, one a program (`fuzz.generate.anchors`).
    symbolic
        Percentage of programs in which symbols stand for some extents of the inputs.
    folded
        Percentage of programs in which constants stand for most inputs, for compilers to fold; these programs may be three times as long.
    linalg
        Percentage of programs with one to three ops of the linalg family, in addition to those of the motifs.
    policies
        Percentage of programs under another policy than the engine's; nearly half of them have dtypes that the engine lacks.
    regime
        How the values of all programs are drawn; for None another way for each program.
    weights
        Factors on the chance of an op or motif, by name.
    rare
        Pairs of an op and a dtype with which a fifth of the anchors begin.
    guided
        The mix of a campaign's batches follows what earlier ones have shown (`fuzz.campaign.guide`).
    derivatives
        Share of the programs that are replaced by derivatives (`fuzz.generate.derivatives`).
    invalid
        Share of the programs of a campaign that are replaced by invalid ones (`fuzz.generate.faults.batches`).
    modules
        Share of the programs of a campaign that are replaced by StableHLO modules with operations that programs lack
        (`fuzz.generate.modules`).
    """

    ops: tuple[type[Op], ...] = OPS
    dtypes: tuple[DType, ...] = ENGINE_DTYPES
    min_instructions: int = 1
    max_instructions: int = 200
    usual_instructions: int = 16
    max_elements: int = 1_000_000
    big_elements: int = 50_000
    usual_elements: int = 1_500
    max_rank: int = 7
    usual_rank: int = 4
    max_outputs: int = 16
    dim_exprs: bool = True
    motifs: bool = True
    anchors: bool = True
    symbolic: float = 8
    folded: float = 5
    linalg: float = 5
    policies: float = 14
    regime: Regime | None = None
    weights: tuple[tuple[str, float], ...] = ()
    rare: tuple[tuple[type[Op], DType], ...] = ()
    guided: bool = False
    derivatives: float = 0
    invalid: float = 1 / 20
    modules: float = 0

    @property
    def usual(self) -> int:
        """Length that few programs exceed."""
        least, most = self.min_instructions, self.max_instructions
        return self.usual_instructions if least <= self.usual_instructions <= most else most


#: Dtypes that the engine lacks and that campaigns draw, under StableHLO's policy.
FOREIGN_DTYPES = (DType.I8, DType.I16, DType.U8, DType.U16, DType.U32, DType.U64, DType.F16, DType.BF16)
DEFAULT = Config()
#: What a campaign draws of which nothing narrower is asked: derivatives and modules, too, and more decompositions, of which there are many.
CAMPAIGN = replace(DEFAULT, derivatives=1 / 6, modules=1 / 5, linalg=16)


def may_have(config: Config, dtype: DType) -> bool:
    """Whether a program under StableHLO's policy may have `dtype`: those that the engine lacks, too, unless others are asked for."""
    return dtype in config.dtypes or (config.dtypes == ENGINE_DTYPES and dtype in FOREIGN_DTYPES)


def result_dtype(op: type[Op], dtype: DType) -> DType:
    """The dtype of the result for data operands of `dtype`; Convert gives every one."""
    fixed = {ops.Compare: DType.Bool, ops.ShapeOf: DType.F64}
    return fixed.get(op, dtype.real if op is ops.Abs and dtype.is_complex else dtype)


def result_dtypes(op: type[Op]) -> tuple[DType, ...]:
    """Every dtype that a result of `op` can have under some policy."""
    if op in (ops.Convert, ops.Extension):
        return tuple(DType)
    known = {result_dtype(op, d) for d in op.dtypes | op.stablehlo_dtypes}
    return tuple([d for d in DType if d in known])


def admitted(op: type[Op], dtypes: tuple[DType, ...], policy: Policy = DEFAULT_POLICY) -> tuple[DType, ...]:
    """Those of `dtypes` that the generator gives to the data operands of `op` under a policy."""
    known = NUMERIC if op is ops.Extension else op.dtypes
    if policy.dtypes == "stablehlo":
        known |= op.stablehlo_dtypes
    faults = op in ops.INTEGER_FAULTS and policy.integer_faults == "error"
    return tuple(
        [
            d
            for d in dtypes
            if (
                d in known
                or (
                    policy.dtypes == "stablehlo"
                    and op is not ops.Extension
                    and d.engine in known
                    and (op.unsigned or not d.is_unsigned)
                    and not (op.needs_zero and d is DType.F8E8M0FNU)
                )
            )
            and not (faults and d.is_int)
        ]
    )


def directions(dtype: DType, policy: Policy) -> tuple[CompareDir, ...]:
    """The comparisons that `dtype` has under a policy, Eq alone where its numbers have no order."""
    ordered = not dtype.is_complex and (dtype is not DType.Bool or policy.dtypes == "stablehlo")
    return tuple(CompareDir) if ordered else (CompareDir.Eq,)
