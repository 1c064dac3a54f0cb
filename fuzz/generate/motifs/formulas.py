"""Formulas: expressions of elementwise ops that compilers rewrite, written as text; each is grown and recognised from that text.

In a formula a letter is an operand, a number a constant, `%` Remainder, a function its op. All operands have one type.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from fuzz.generate.describe import maker
from fuzz.generate.growth import Estimate, Growth
from fuzz.generate.motifs.table import MOTIFS, Motif
from fuzz.generate.shapes import shape_of
from fuzz.generate.values.recipes import Recipe
from tenferro_ref import ops
from tenferro_ref.dtype import INEXACT, DType
from tenferro_ref.ops import DEFAULT_POLICY, INTEGER_FAULTS, CompareDir, Op, Policy
from tenferro_ref.program import GraphProgram, Value

#: By the numbers that they are for: floats and complex numbers, floats, integers that wrap.
FORMULAS: dict[str, tuple[str, ...]] = {
    domain: tuple(line.strip() for line in text.replace(";", "\n").splitlines() if line.strip())
    for domain, text in {
        "inexact": """
            log(exp(a)); exp(log(a)); log1p(expm1(a)); expm1(log1p(a)); exp(exp(a)); exp(log1p(a)); expm1(a) + 1
            exp(a) * exp(b); exp(a) / exp(b); exp(a) - a; exp(a) - 1; a * exp(a); a / exp(a); 1 / exp(a); exp(-a)
            log(a + 1); log(a * b); log(a) + log(b); log(a) - log(b); log(pow(a, b)); log(pow(a, 2)); exp(a * log(b))
            sqrt(a * a); sqrt(a) * sqrt(b); sqrt(a) / sqrt(b); sqrt(a) * sqrt(a); a / sqrt(a); a * sqrt(a); 1 / sqrt(a)
            a * rsqrt(a); rsqrt(a) * rsqrt(b); log(sqrt(a)); log(rsqrt(a)); rsqrt(a * a); a / rsqrt(b)
            pow(pow(a, 2), 0.5); pow(pow(a, 0.5), 2); pow(pow(a, b), 2); pow(a, 2) * pow(a, 3); pow(a, 2); pow(a, 3)
            pow(a, -1); pow(a, 0.5); pow(a, 0.3333333333333333); pow(a, 1) + pow(a, 0); pow(exp(a), b); pow(2, a)
            1 / pow(a, b); a / pow(b, 2); pow(a, sqrt(a)); sin(a) / cos(a); sin(-a); cos(-a); tanh(log(a)); -(a * tanh(a))
            sin(a) * sin(a) + cos(a) * cos(a); 1 / (1 + exp(-a)); log(exp(a) + exp(b)); (exp(a) - 1) / exp(a)
            1 / (1 / a); a / a; a - a; a / 3; a * 0; (a * b) / b; (a / b) * b; (a / b) / b; a / (b / a); (a / b) / (b / a)
            (a * 2) / 2; (a * 10) / 10; (a + b) - b; (a - b) + b; a * b + a; a * b + a * b; a * b - a * b; a * (a * a)
            (a + b) * (a - b); a * 2 + a * -1; a * 0.5 + a * 0.5; (a * 3) * 0.3333333333333333; a / (a + a); a - (a - a)
            -(-a); a + -a; a - -a; -a - b; -(a - b); -(a + a); -a * -b; a + a * a; a - a * a; conj(a) * a; conj(a * b); conj(conj(a))""",
        "real": """
            abs(abs(a)); abs(-a); abs(a * a); abs(exp(a)); sqrt(abs(a)); sqrt(pow(a, 2)); rsqrt(pow(abs(a), -2)); rsqrt(pow(abs(a), 2));
            1 / sqrt(pow(abs(a), -2)); sqrt(pow(exp(a), 2)); sign(a) * abs(a); a / abs(a); sign(sign(a))
            max(a, -a); min(a, abs(a)); max(a, min(a, b)); min(max(a, b), a); max(a, 0) - max(-a, 0); max(exp(a), 0)
            clamp(max(a, b), a, b); max(clamp(a, b, b), b); clamp(clamp(a, -1, 1), -2, 0.5); min(max(a, -1), 1)
            select(a > b, a, b); select(a < b, a, b); select(a == a, a, b); select(a == b, a, b); select(a >= b, b, a)
            select(a > 0, a, -a); select(a == 0, b, b / a); a % a; a % (a * a); a % (a % a); a % abs(a); a % 1; (a % b) % b""",
        "integer": """
            abs(a * a); abs(-a); abs(a - b); max(a, -a); sign(a * a); -(-a); a + -a; -a - b; a + a * -1; -(a * -1)
            (a * b) / b; (a / b) * b; a - (a / b) * b; (a / b) / b; a / -1; -a / b; (a * 2) / 2; (a * 4) / 2; a / 2; a / 8; a / 7
            (a * 2) * 4; (a * 65536) * 65536; (a * 16) % 16; a * 3 + a * 5; (a + b) - b; (a - b) + b; max(a + 1, a); min(a - 1, a)
            select(a + 1 > a, a, b); select(a - b < 0, a, b); (a % b) % b; a % 4; a % -1; abs(a) % 2; abs(a) / 8; select(abs(a) < 0, a, b); pow(a, 2); pow(2, a); (a * a) % b""",
    }.items()
}
_FUNCTIONS: dict[str, type[Op]] = {
    "max": ops.Maximum, "min": ops.Minimum,
    **{op.__name__.lower(): op for op in (
        ops.Exp, ops.Expm1, ops.Log, ops.Log1p, ops.Sin, ops.Cos, ops.Tanh, ops.Sqrt, ops.Rsqrt, ops.Pow, ops.Conj, ops.Abs,
        ops.Sign, ops.Clamp, ops.Select,
    )},
}  # fmt: skip
_OPERATORS: dict[type[ast.AST], type[Op]] = {
    ast.Add: ops.Add, ast.Sub: ops.Subtract, ast.Mult: ops.Multiply, ast.Div: ops.Divide, ast.Mod: ops.Remainder,
}  # fmt: skip
_DIRECTIONS: dict[type[ast.AST], CompareDir] = {
    ast.Eq: CompareDir.Eq, ast.Lt: CompareDir.Lt, ast.GtE: CompareDir.Ge, ast.Gt: CompareDir.Gt,
}  # fmt: skip
#: Which dtypes a domain has.
_DOMAINS: dict[str, Callable[[DType], bool]] = {
    "inexact": lambda dtype: dtype in INEXACT, "real": lambda dtype: dtype.is_float, "integer": lambda dtype: dtype.is_int,
}  # fmt: skip
#: Classes of the numbers that a formula works on, with a percentage: integers that wrap, numbers for which a part of it overflows
#: or is NaN; the others are values of the program.
_CLASSES: dict[str, tuple[float, tuple[str, ...]]] = {
    "inexact": (24, ("special", "wide", "knees", "sprinkled")), "real": (24, ("special", "wide", "knees", "zeros")),
    "integer": (60, ("powers", "special", "bits", "small")),
}  # fmt: skip


class Term(NamedTuple):
    """A part of a formula: an op on other terms, or a leaf."""

    op: type[Op] | None
    operands: tuple[Term, ...] = ()
    leaf: str | float = ""
    direction: CompareDir | None = None

    def parts(self) -> Iterator[Term]:
        """The term and all below it."""
        yield self
        for operand in self.operands:
            yield from operand.parts()


def term_of(formula: str) -> Term:
    """The term that a formula says."""
    return _term(ast.parse(formula, mode="eval").body)


def _term(node: ast.AST) -> Term:
    match node:
        case ast.Name(letter):
            return Term(None, leaf=letter)
        case ast.Constant(float() | int() as number):
            return Term(None, leaf=float(number))
        case ast.UnaryOp(ast.USub(), ast.Constant(float() | int() as number)):
            return Term(None, leaf=-float(number))
        case ast.UnaryOp(ast.USub(), operand):
            return Term(ops.Negate, (_term(operand),))
        case ast.BinOp(left, operator, right):
            return Term(_OPERATORS[type(operator)], (_term(left), _term(right)))
        case ast.Compare(left, [operator], [right]):
            return Term(ops.Compare, (_term(left), _term(right)), direction=_DIRECTIONS[type(operator)])
        case ast.Call(ast.Name(function), operands):
            return Term(_FUNCTIONS[function], tuple(map(_term, operands)))
    raise ValueError(ast.unparse(node))


def ops_of(term: Term) -> tuple[type[Op], ...]:
    """The ops of a term, each once; Constant if it has a number."""
    return tuple(dict.fromkeys(t.op or ops.Constant for t in term.parts() if t.op or isinstance(t.leaf, float)))


# --- growing ----------------------------------------------------------------------------------------------------------


def grow(g: Growth, term: Term, domain: str) -> None:
    """Append a formula on values of the program, or on numbers of a class; nothing if the program has no such dtype."""
    known = [g.dtypes_of(op) for op in ops_of(term) if op is not ops.Constant]
    dtypes = [d for d in g.config.dtypes if _DOMAINS[domain](d) and all(d in admitted for admitted in known)]
    if not dtypes:
        return
    share, kinds = _CLASSES[domain]
    if g.choices.chance(share):
        kind = g.choices.choose(kinds)
        a = g.fresh(g.dtype(dtypes), g.shape(), Recipe(kind, g.choices.integer(2)))
    else:
        a = g.operand(dtypes)
    b = g.like(a) if any(part.leaf == "b" for part in term.parts()) else a
    once = g.choices.chance(50)  # what occurs twice is computed once, and its result used twice
    _grown(g, term, {"a": a, "b": b}, {} if once else None)


def _grown(g: Growth, term: Term, letters: Mapping[str, Value], known: dict[Term, Value] | None) -> Value:
    if known is not None and term in known:
        return known[term]
    a = letters["a"]
    if term.op is not None:
        operands = [_grown(g, operand, letters, known) for operand in term.operands]
        if not _takes_scalars(term):
            operands = [x if x.shape == a.shape else g.apply(ops.BroadcastInDim(shape_of(a), ()), x) for x in operands]
        op = term.op() if term.direction is None else ops.Compare(term.direction)
        value = g.apply(op, *operands)
    elif isinstance(term.leaf, str):
        value = letters[term.leaf]
    else:
        value = g.apply(_number(term.leaf, a.dtype), estimate=Estimate(term.leaf > 0, 4))
        if shape_of(a) and g.choices.chance(40) and g.has(ops.BroadcastInDim):
            value = g.apply(ops.BroadcastInDim(shape_of(a), ()), value)
    if known is not None:
        known[term] = value
    return value


def _takes_scalars(term: Term) -> bool:
    """Whether the op takes an operand of rank 0 beside a tensor."""
    return len(term.operands) == 2 and term.op in ops.ARITHMETIC


def _size(term: Term) -> int:
    """How many instructions the formula takes at most, but for broadcasts that may be left out."""
    broadcasts = [
        t for part in term.parts() if not _takes_scalars(part) for t in part.operands if isinstance(t.leaf, float)
    ]
    return len(broadcasts) + sum(t.op is not None or isinstance(t.leaf, float) for t in term.parts())


def _number(number: float, dtype: DType) -> ops.Constant:
    """The constant of a number; an integer that a dtype lacks wraps."""
    return ops.Constant.of(np.array([int(number) if dtype.is_int else number]).astype(dtype.numpy)[0], dtype)


# --- recognising ------------------------------------------------------------------------------------------------------


def found(program: GraphProgram, term: Term, domain: str) -> bool:
    """Whether the program computes the formula, on numbers of its domain."""
    roots = [ins.output_slots[0] for ins in program.instructions if type(ins.op) is term.op]
    return any(_DOMAINS[domain](program.slot_types[slot].dtype) and _matches(program, term, slot, {}) for slot in roots)


def _matches(program: GraphProgram, term: Term, slot: int, letters: dict[str, int]) -> bool:
    if isinstance(term.leaf, str) and term.op is None:
        return letters.setdefault(term.leaf, slot) == slot
    ins = maker(program, slot)
    if ins is not None and isinstance(ins.op, ops.BroadcastInDim):
        return _matches(program, term, ins.input_slots[0], letters)
    if ins is None or type(ins.op) is not (term.op or ops.Constant):
        return False
    if isinstance(ins.op, ops.Constant) and isinstance(term.leaf, float):
        return ins.op == _number(term.leaf, ins.op.dtype)
    if isinstance(ins.op, ops.Compare) and ins.op.dir is not term.direction:
        return False
    return all(_matches(program, t, s, letters) for t, s in zip(term.operands, ins.input_slots, strict=True))


# --- the table --------------------------------------------------------------------------------------------------------


def _enter_formula(formula: str, domain: str) -> None:
    term = term_of(formula)
    used, name = ops_of(term), formula if domain != "integer" else f"{formula} of integers"
    faults = domain == "integer" and not INTEGER_FAULTS.keys().isdisjoint(used)
    policy = Policy(integer_faults="stablehlo") if faults else DEFAULT_POLICY
    MOTIFS[name] = Motif(
        name,
        domain,
        used,
        _size(term),
        1,
        partial(grow, term=term, domain=domain),
        lambda case: found(case.program, term, domain),
        policy,
    )


for _domain, _formulas in FORMULAS.items():
    for _formula in _formulas:
        _enter_formula(_formula, _domain)
