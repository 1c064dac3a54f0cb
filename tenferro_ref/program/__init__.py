"""Programs: `GraphProgram`, `ExecProgram`, how they are built, checked, written and read."""

from tenferro_ref.program.builder import GraphBuilder
from tenferro_ref.program.json_form import dumps, load, loads
from tenferro_ref.program.lowering_view import InstructionView, LoweringView
from tenferro_ref.program.program import (
    ExecInstruction,
    ExecProgram,
    GraphProgram,
    Instruction,
    Program,
    infer_types,
    last_use,
    to_exec,
)
from tenferro_ref.program.text_form import parse, print_program
from tenferro_ref.program.value import Value

__all__ = [
    "ExecInstruction",
    "ExecProgram",
    "GraphBuilder",
    "GraphProgram",
    "Instruction",
    "InstructionView",
    "LoweringView",
    "Program",
    "Value",
    "dumps",
    "infer_types",
    "last_use",
    "load",
    "loads",
    "parse",
    "print_program",
    "to_exec",
]
