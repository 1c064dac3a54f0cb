"""Programs: how they are built, checked, printed and read, before compilation (`GraphProgram`) and after (`ExecProgram`)."""

from tenferro_ref.program.builder import GraphBuilder
from tenferro_ref.program.json_form import dumps, load, loads
from tenferro_ref.program.lowering_view import InstructionView, LoweringView
from tenferro_ref.program.normal_form import normal_form
from tenferro_ref.program.program import (
    ExecProgram,
    GraphProgram,
    Instruction,
    Program,
    ResolvedTypes,
    infer_types,
    last_use,
    to_exec,
)
from tenferro_ref.program.text_form import parse, print_program
from tenferro_ref.program.value import Value
