"""Faults made by rule: one small change to the syntax tree of one function, and the patch that switches it on.

A *site* is a place in the source where a rule applies. It is known by its function, the rule and the text that changes, so
that edits elsewhere in the file leave it what it is. `patched` swaps the code object of the function for the changed one, and
those of the closures that it has made, so that every reference is broken at once; then it puts the right ones back.
"""

from __future__ import annotations

import ast
import functools
import gc
import hashlib
import importlib
import importlib.util
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any


@dataclass(frozen=True, slots=True)
class Site:
    """One change: in function `function` of `module`, rule `rule` where the source says `before`.

    Attributes
    ----------
    nth
        Which of the places in the function where the rule meets that same text, counted from 0.
    """

    module: str
    function: str
    rule: str
    before: str
    after: str
    nth: int = 0

    @property
    def name(self) -> str:
        """Module, function and rule, and four digits that tell the places apart."""
        digest = hashlib.sha256(f"{self.before}#{self.nth}".encode()).hexdigest()[:4]
        return f"{self.module.removeprefix('tenferro_ref.')}.{self.function}/{self.rule}/{digest}"

    @property
    def key(self) -> str:
        """Function, rule and text: what tells the sites of a module apart, as `equivalents.toml` writes it."""
        return f"{self.function} | {self.rule} | {self.before}" + (f" #{self.nth}" if self.nth else "")

    @property
    def order(self) -> float:
        """A number from 0 to 1 that looks random and depends on nothing but the site."""
        return int(hashlib.sha256(self.name.encode()).hexdigest()[:8], 16) / 2**32


# --- rules: each gives the changed node, or None where it does not apply ----------------------------------------------

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


def _comparison(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return ast.Compare(node.left, [_COMPARISONS[type(node.ops[0])]()], node.comparators)
    return None


def _operator(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return ast.BinOp(node.left, _OPERATORS[type(node.op)](), node.right)
    return None


def _constant(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return ast.Constant(not node.value)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return ast.Constant(node.value + 1)
    return None


def _condition(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.IfExp):
        return ast.IfExp(node.test, node.orelse, node.body)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert | ast.USub):
        return node.operand
    return None


def _logic(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.BoolOp):
        return ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    return None


#: Calls whose first two arguments may change places (or, of the last, must not).
_SYMMETRIC = frozenset({
    "max", "min", "same", "maximum", "minimum", "fmin", "fmax", "logical_and", "logical_or", "isinstance", "hull",
    "broadcast_shapes", "suppress",
})  # fmt: skip


def _order(node: ast.AST) -> ast.AST | None:
    """The first two arguments of a call, the first two entries of a tuple."""
    if isinstance(node, ast.Call) and _called(node) in _SYMMETRIC:
        return None
    if isinstance(node, ast.Call) and len(node.args) > 1 and not any(isinstance(a, ast.Starred) for a in node.args[:2]):
        return ast.Call(node.func, [node.args[1], node.args[0], *node.args[2:]], node.keywords)
    if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load) and len(node.elts) > 1:
        return ast.Tuple([node.elts[1], node.elts[0], *node.elts[2:]], node.ctx)
    return None


def _sorting(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("sorted", "reversed"):
        return ast.Call(ast.Name("list", ast.Load()), node.args[:1], [])
    if isinstance(node, ast.Call) and _called(node) == "argsort" and len(node.args) == 1:  # the inverse permutation
        return node.args[0]
    if isinstance(node, ast.Slice) and isinstance(node.step, ast.UnaryOp):
        return ast.Slice(node.lower, node.upper, None)
    return None


def _called(node: ast.Call) -> str:
    return ast.unparse(node.func).rpartition(".")[2]


def _attributes(node: ast.AST) -> ast.AST | None:
    """The first two keyword arguments of a call get each other's values."""
    if not isinstance(node, ast.Call) or len(node.keywords) < 2:
        return None
    one, other, *rest = node.keywords
    if one.arg is None or other.arg is None or ast.unparse(one.value) == ast.unparse(other.value):
        return None
    swapped = [ast.keyword(one.arg, other.value), ast.keyword(other.arg, one.value)]
    return ast.Call(node.func, node.args, [*swapped, *rest])


def _clamp(node: ast.AST) -> ast.AST | None:
    """What is limited by another value is not."""
    limits = ("min", "max", "minimum", "maximum", "fmin", "fmax", "clip", "clamp")
    if not isinstance(node, ast.Call) or _called(node) not in limits or node.keywords:
        return None
    method = isinstance(node.func, ast.Attribute) and _called(node) == "clip" and len(node.args) == 2
    if method and isinstance(node.func, ast.Attribute):
        return node.func.value
    return node.args[0] if len(node.args) > 1 and not isinstance(node.args[0], ast.Starred) else None


def _bound(node: ast.AST) -> ast.AST | None:
    """A range or a slice ends one too soon."""

    def less(end: ast.expr) -> ast.expr:
        return ast.BinOp(end, ast.Sub(), ast.Constant(1))

    if isinstance(node, ast.Call) and _called(node) == "range" and len(node.args) in (1, 2):
        return ast.Call(node.func, [*node.args[:-1], less(node.args[-1])], [])
    if isinstance(node, ast.Slice) and node.upper is not None and not isinstance(node.upper, ast.Constant):
        return ast.Slice(node.lower, less(node.upper), node.step)
    return None


def _conjugate(node: ast.AST) -> ast.AST | None:
    if not isinstance(node, ast.Call) or _called(node) not in ("conj", "conjugate"):
        return None
    if node.args:
        return node.args[0]
    return node.func.value if isinstance(node.func, ast.Attribute) else None


_NARROWER = {
    "float64": "float32", "complex128": "complex64", "int64": "int32", "uint64": "uint32", "longdouble": "float64",
    "F64": "F32", "C64": "C32", "I64": "I32",
}  # fmt: skip


def _dtype(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Attribute) and node.attr in _NARROWER:
        return ast.Attribute(node.value, _NARROWER[node.attr], node.ctx)
    return None


def _branch(node: ast.AST) -> ast.AST | None:
    """The branch is never taken."""
    return ast.If(ast.Constant(False), node.body, node.orelse) if isinstance(node, ast.If) else None


#: Where a stale result is kept, in the globals of its module.
_STALE = "_stale_results"


def _key(node: ast.AST) -> ast.AST | None:
    """A cached function gives what it gave for other values of its last parameter."""
    function = getattr(node, "cached", None)
    if not isinstance(node, ast.Return) or node.value is None or function is None:
        return None
    names = [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)][:-1]
    kept = ast.parse(
        f"globals().setdefault({_STALE!r}, {{}}).setdefault(({function.name!r}, {', '.join(names)}), None)"
    )
    call = kept.body[0].value  # type: ignore[attr-defined]
    return ast.Return(ast.Call(call.func, [call.args[0], node.value], []))


def _layout(node: ast.AST) -> ast.AST | None:
    """Column-major becomes row-major."""
    return ast.Constant("C") if isinstance(node, ast.Constant) and node.value == "F" else None


RULES: dict[str, Callable[[ast.AST], ast.AST | None]] = {
    "comparison": _comparison,
    "operator": _operator,
    "constant": _constant,
    "condition": _condition,
    "logic": _logic,
    "order": _order,
    "sorting": _sorting,
    "layout": _layout,
    "attributes": _attributes,
    "clamp": _clamp,
    "bound": _bound,
    "conjugate": _conjugate,
    "dtype": _dtype,
    "branch": _branch,
    "key": _key,
}


def _text(node: ast.AST) -> str:
    """How a site shows the node; of a branch its condition."""
    return f"if {ast.unparse(node.test)}" if isinstance(node, ast.If) else ast.unparse(node)


# --- functions and their sites ----------------------------------------------------------------------------------------


def sites(module: str) -> list[Site]:
    """Every place of a module where a rule applies, in the order of the source; the module is read, not imported.

    Raises
    ------
    LookupError
        There is no such module.
    """
    found: list[Site] = []
    for label, function in functions(_parsed(module)).items():
        seen: dict[tuple[str, str], int] = {}
        for node in _places(function):
            for rule, change in RULES.items():
                changed = change(node)
                if changed is not None:
                    before = _text(node)
                    nth = seen[rule, before] = seen.get((rule, before), -1) + 1
                    after = _text(ast.fix_missing_locations(changed))
                    if after != before:  # two equal arguments may be exchanged
                        found.append(Site(module, label, rule, before, after, nth))
    return found


def functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """Functions and methods of a module by name; rows of tables, which are all called `_`, by what their decorators say.

    The first row of an op is called `_(OP)`, one of another table in the same module `TABLE(OP)`. What a function defines
    inside belongs to it.
    """

    def walk(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from walk(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef):
                rows = (ast.unparse(d).partition("(")[2][:-1] for d in node.decorator_list)
                label = f"_({', '.join(rows)})" if node.name == "_" else node.name
                yield prefix + re.sub(r"\bops\.", "", label), node

    found: dict[str, ast.FunctionDef] = {}
    for label, node in walk(tree.body, ""):
        if node.name == "_" and label in found:
            label = label.replace("_(", ast.unparse(node.decorator_list[0]).partition(".")[0] + "(", 1)
        found[label] = node
    return found


def _parsed(module: str) -> ast.Module:
    return ast.parse(_source(module).read_text("utf-8"))


def _source(module: str) -> Path:
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        raise LookupError(f"{module}: there is no such module")
    return Path(spec.origin)


def _places(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Nodes of the function's body: no annotations, defaults, docstrings, messages, raised errors or what decides on them.

    Which programs must be refused is no business of these faults: `tests/fuzz/test_error_parity.py` is about that.
    """

    def walk(node: ast.AST) -> Iterator[ast.AST]:
        if isinstance(node, ast.FunctionDef):  # what it returns is an annotation
            for statement in node.body:
                yield from walk(statement)
            return
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.arguments) or _is_guard(node):
            return
        if isinstance(node, ast.keyword) and node.arg == "strict":
            return
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "cast":
            node = node.args[1]
        if isinstance(node, ast.AnnAssign):
            yield from walk(node.value) if node.value is not None else ()
            return
        yield node
        for child in ast.iter_child_nodes(node):
            yield from walk(child)

    cached = any("cache" in ast.unparse(d) for d in function.decorator_list) and len(function.args.args) > 1
    for statement in function.body:
        for node in walk(statement):
            if cached and isinstance(node, ast.Return):
                node.cached = function  # type: ignore[attr-defined]
            yield node


#: Functions that only raise.
_REFUSALS = frozenset({"reject", "refuse", "_fault"})


def _is_guard(node: ast.AST) -> bool:
    """An `if` that ends with an error, or a call that raises one."""
    if isinstance(node, ast.If) and not node.orelse:
        last = node.body[-1]
        return isinstance(last, ast.Raise) or (isinstance(last, ast.Expr) and _is_guard(last.value))
    return isinstance(node, ast.Call) and ast.unparse(node.func) in _REFUSALS


# --- patches ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Patch:
    """A site's change, ready to be switched on and off.

    Attributes
    ----------
    swaps
        Live functions with their right and their wrong code.
    caches
        Wrappers of `functools.cache`, whose results are of the other code.
    """

    swaps: tuple[tuple[FunctionType, CodeType, CodeType], ...]
    caches: tuple[Any, ...]

    @property
    def codes(self) -> frozenset[CodeType]:
        """The right code of all that changes: a run that enters none of it cannot show the fault."""
        return frozenset(right for _, right, _ in self.swaps)

    def switch(self, *, on: bool) -> None:
        for function, right, wrong in self.swaps:
            function.__code__ = wrong if on else right
            function.__globals__.pop(_STALE, None)
        for cache in self.caches:
            cache.cache_clear()


@functools.cache
def prepare(site: Site) -> Patch:
    """The patch of a site; its module is imported.

    Raises
    ------
    LookupError
        The source no longer has the place.
    """
    file = importlib.import_module(site.module).__file__
    wrong = {right: changed for right, changed in _codes(*_compiled(site)) if right != changed}
    live = (f for f in gc.get_objects() if isinstance(f, FunctionType) and f.__code__.co_filename == file)
    swaps = tuple(
        (f, f.__code__, wrong[f.__code__])
        for f in live
        if f.__code__ in wrong and len(f.__code__.co_freevars) == len(wrong[f.__code__].co_freevars)
    )
    return Patch(swaps, lru_caches())


def lru_caches() -> tuple[Any, ...]:
    """The `functools.cache` and `lru_cache` wrappers of this project."""
    wrappers = [v for v in gc.get_objects() if isinstance(v, functools._lru_cache_wrapper)]
    return tuple(v for v in wrappers if v.__module__.startswith(("tenferro_ref", "oracle")))


def _compiled(site: Site) -> tuple[CodeType, CodeType]:
    """The code of the module as it is and with the change."""
    tree, file = _parsed(site.module), str(_source(site.module))
    right = compile(tree, file, "exec", dont_inherit=True)
    function, change = functions(tree).get(site.function), RULES[site.rule]
    nodes = _places(function) if function else iter(())
    fitting = [n for n in nodes if change(n) is not None and _text(n) == site.before]
    if len(fitting) <= site.nth:
        raise LookupError(f"{site.name}: the source no longer has this place")
    target = fitting[site.nth]

    class Change(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            return ast.copy_location(change(node) or node, node) if node is target else self.generic_visit(node)

    changed = ast.fix_missing_locations(Change().visit(tree))
    return right, compile(changed, file, "exec", dont_inherit=True)


def _codes(right: CodeType, wrong: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Code objects that correspond, those of nested functions included."""
    yield right, wrong
    inner = [[c for c in code.co_consts if isinstance(c, CodeType)] for code in (right, wrong)]
    for a, b in zip(*inner, strict=False):
        if a.co_name == b.co_name:
            yield from _codes(a, b)


@contextmanager
def patched(site: Site) -> Iterator[None]:
    """The change is there inside the block; errors as `prepare`."""
    patch = prepare(site)
    patch.switch(on=True)
    try:
        yield
    finally:
        patch.switch(on=False)


__all__ = ["RULES", "Patch", "Site", "functions", "lru_caches", "patched", "prepare", "sites"]
