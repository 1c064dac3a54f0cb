"""A reduced program drawn as a graph, from its inputs at the top to its outputs: laid out in layers (Sugiyama) by grandalf."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from grandalf.graphs import Edge, Graph, Vertex
from grandalf.layouts import SugiyamaLayout
from grandalf.routing import route_with_lines

from tenferro_ref.errors import TenferroError
from tenferro_ref.program import Program, loads

#: Values of a program that is drawn; a larger one is no picture any more.
MAX_NODES = 60
_HEIGHT, _LETTER, _APART, _MARGIN = 40, 7.4, 18, 8


@dataclass
class Node:
    """A value: an input, or what an instruction gives. `x`, `y` are its middle; grandalf writes `xy`."""

    label: str
    type: str
    slug: str
    w: float
    h: float = _HEIGHT
    xy: tuple[float, float] = (0, 0)

    @property
    def x(self) -> float:
        return self.xy[0]

    @property
    def y(self) -> float:
        return self.xy[1]


@dataclass(frozen=True, slots=True)
class Drawing:
    """Nodes, and edges as the points of their lines, inside a box that begins at 0, 0."""

    nodes: tuple[Node, ...]
    edges: tuple[str, ...]
    width: float
    height: float
    words: str


class _Line:
    points: list[tuple[float, float]]

    def setpath(self, points: list[tuple[float, float]]) -> None:
        self.points = points


def drawing(program_json: str, guilty: Collection[int] = ()) -> Drawing | None:
    """The picture of a program in its JSON form.

    Parameters
    ----------
    guilty
        Slots of the instruction that is marked.

    Returns
    -------
    Drawing or None
        None for a text that is no program, and for one with more than `MAX_NODES` values.
    """
    try:
        program = loads(program_json)
    except TenferroError:
        return None
    if not 0 < len(program.input_slots) + len(program.instructions) <= MAX_NODES:
        return None
    nodes = _nodes(program, guilty)
    vertices = {slot: Vertex(node) for slot, node in nodes.items()}
    for vertex in vertices.values():
        vertex.view = vertex.data
    # an instruction with several results is one node, under the first
    first = {s: i.output_slots[0] for i in program.instructions for s in i.output_slots}
    pairs = {(first.get(s, s), i.output_slots[0]) for i in program.instructions for s in i.input_slots}
    edges = []
    for source, target in sorted(pairs):
        edges.append(Edge(vertices[source], vertices[target]))
        edges[-1].view = _Line()
    return _laid_out(Graph(list(vertices.values()), edges), list(nodes.values()), edges)


def _nodes(program: Program, guilty: Collection[int]) -> dict[int, Node]:
    """By the (first) slot that each writes."""
    types = program.slot_types
    found = {}
    for slot in program.input_slots:
        found[slot] = _node(f"%{slot} input", str(types[slot]), "input")
    for ins in program.instructions:
        slot = ins.output_slots[0]
        slug = "guilty" if slot in guilty else "output" if slot in program.output_slots else "inner"
        found[slot] = _node(f"%{slot} {ins.op.name}", str(types[slot]), slug)
    return found


def _node(label: str, type_: str, slug: str) -> Node:
    type_ = type_ if len(type_) <= 28 else type_[:27] + "…"
    return Node(label, type_, slug, max(len(label), len(type_)) * _LETTER + 16)


def _laid_out(graph: Any, nodes: list[Node], edges: list[Any]) -> Drawing:
    """Components beside each other, the largest first."""
    left = float(_MARGIN)
    for component in sorted(graph.C, key=lambda c: -len(c.sV)):
        layout = SugiyamaLayout(component)
        layout.route_edge, layout.xspace, layout.yspace = route_with_lines, _APART, 26
        layout.init_all()
        layout.draw()
        own = [vertex.data for vertex in component.sV]
        shift = left - min(n.x - n.w / 2 for n in own)
        top = _MARGIN - min(n.y - n.h / 2 for n in own)
        for node in own:
            node.xy = (node.x + shift, node.y + top)
        for edge in component.sE:
            edge.view.points = [(x + shift, y + top) for x, y in edge.view.points]
        left = max(n.x + n.w / 2 for n in own) + _APART
    height = max(n.y + n.h / 2 for n in nodes) + _MARGIN
    words = f"The program as a graph: {', '.join(node.label for node in nodes)}"
    lines = tuple(" ".join(f"{x:.0f},{y:.0f}" for x, y in edge.view.points) for edge in edges)
    return Drawing(tuple(nodes), lines, round(left - _APART + _MARGIN), round(height), words)


def slots_written(text: str, lines: Collection[int]) -> frozenset[int]:
    """Slots that the instructions in these lines of a program's text write."""
    found = (re.match(r"\s*%(\d+)", line) for n, line in enumerate(text.split("\n")) if n in lines)
    return frozenset(int(match[1]) for match in found if match)
