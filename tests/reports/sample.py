"""Campaigns to render: a rich one as a night would leave it, an empty one, and hostile text."""

from __future__ import annotations

import random
from dataclasses import replace

from fuzz.explanation import Explanation, SegmentNote, Snapshot, Step
from fuzz.records import Campaign, Cell, ErrorKind, Finding, Held, SeededFault, Survey, Totals, ValueRow
from oracle.verdict import ExecutorInfo
from tenferro_ref.program import dumps, parse

DTYPES = ("F32", "F64", "I32", "I64", "Bool", "C32", "C64")
FLOATS, NUMBERS = ("F32", "F64"), ("F32", "F64", "I32", "I64", "C32", "C64")
INEXACT = ("F32", "F64", "C32", "C64")
OPS: dict[str, dict[str, tuple[str, ...]]] = {
    "elementwise": {
        **dict.fromkeys(("Add", "Multiply", "Negate", "Divide", "Abs", "Sign"), NUMBERS),
        **dict.fromkeys(("Maximum", "Minimum", "Clamp"), ("F32", "F64", "I32", "I64")),
        **dict.fromkeys(("Compare", "Select"), DTYPES),
        **dict.fromkeys(("Exp", "Log", "Sin", "Cos", "Tanh", "Sqrt", "Rsqrt", "Pow", "Expm1", "Log1p"), INEXACT),
        "Conj": ("C32", "C64"),
    },
    "structural": dict.fromkeys(("Transpose", "Reshape", "BroadcastInDim", "Convert", "Tril", "Triu"), DTYPES),
    "reduction": {"ReduceSum": NUMBERS, "ReduceProd": NUMBERS, "ReduceMax": FLOATS, "ReduceMin": FLOATS},
    "indexing": dict.fromkeys(("Gather", "Scatter", "Slice", "Pad", "Concatenate", "Reverse"), DTYPES),
    "contraction": {"DotGeneral": NUMBERS},
    "extension": {"Extension": FLOATS},
}
XLA, OLD, NEW = "pjrt:xla-cpu-pjrt", "pjrt:fastatomstruct-xla-cpu", "pjrt:lammps-jax-pjrt-cpu"
NATIVE = ("native", "native:segmented", "native:no-passes")
PLUGINS = (f"{XLA}@parity", f"{XLA}@defaults", f"{OLD}@parity", f"{NEW}@parity")
PROGRAMS = 2000

#: What two compilers left.
SURVEYS = (
    Survey(PLUGINS[0], 60, {"dot f32": 12, "dot f64": 1, "fusion f32 kLoop": 40, "while tuple": 1, "add u32": 7}),
    Survey(PLUGINS[3], 63, {"dot f32": 10, "fusion f32 kCustom": 9, "fusion f32 kLoop": 31, "add u32": 7}),
)

#: One kind that an executor got wrong, one that no program had to raise.
ERRORS = (
    ErrorKind(
        "AxisOutOfBounds", 12, {"axis out of range: Transpose": 7, "own axis out of range: Reverse": 5, "never: Slice": 0},
        {PLUGINS[0]: {"pass": 11, "mismatch": 1}, NATIVE[0]: {"pass": 12}},
    ),
    ErrorKind("AxisRoleConflict", 0, {"axis contracted and batch: DotGeneral": 0}, {}),
)  # fmt: skip

MODULE = """module @"max" {
  func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.maximum %arg0, %arg1 : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
"""
PROGRAM = """graph (%0: F32[2], %1: F32[2]) -> (%2) slots 3 {
  %2 = Maximum(%0, %1) : F32[2]
}
"""


def finding(**changes: object) -> Finding:
    """A known finding about Maximum in the defaults lane, changed as asked."""
    base = Finding(
        signature=f"Maximum | F32 | expected nan, got finite | {XLA}@defaults | fast min/max",
        title="Maximum loses NaN",
        verdict="mismatch",
        executor=f"{XLA}@defaults",
        also=(),
        op="Maximum",
        dtype="F32",
        value_class="expected nan, got finite",
        attribution="fast min/max",
        known="0001-fast-min-max",
        programs=37,
        instructions=1,
        original_instructions=12,
        reduce_seconds=3.2,
        program_text=PROGRAM,
        program_json=dumps(parse(PROGRAM)),
        stablehlo=MODULE,
        inputs=(("%0 F32[2]", "[1.0, nan]"), ("%1 F32[2]", "[2.0, 0.5]")),
        values=(
            ValueRow("%2", "[0]", "[2.0, 2.0]", "2.0", False),
            ValueRow("%2", "[1]", "nan (certain)", "0.5 (0x3f000000)", True),
        ),
        reason="output %2 at [1]: expected nan, observed 0.5",
        explanation=Explanation(
            "No tolerance is involved.",
            (Step("%2 = Maximum(%0, %1)", "F32[2]", "[1]", "nan", "nan"),),
            "xla",
            ("A product may go unrounded into an addition (FMA).",),
            (1,),
            (2,),
            (
                Snapshot("HLO before optimisation", (), "HloModule max"),
                Snapshot("HLO after optimisation", (), "HloModule min"),
            ),
            (SegmentNote("fused", ("%2 = Maximum(%0, %1)",), True, ("%0", "%1")),),
        ),
        first_program=12,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def rich() -> Campaign:
    """Two new disagreements (one is a crash), two known ones, two executors that are absent, 49 ops."""
    rng = random.Random(7)
    findings = (
        finding(),
        finding(
            signature=f"Log+Exp | F32 | expected inf, got finite | {OLD}@parity | rewrite: algsimp",
            title="log(exp(x)) is rewritten to x, which hides the overflow of exp",
            executor=f"{OLD}@parity",
            also=(f"{NEW}@parity",),
            op="Log",
            value_class="expected inf, got finite",
            attribution="rewrite: algsimp",
            known="",
            programs=9,
            instructions=2,
            original_instructions=31,
            reduce_seconds=8.71,
            program_text="graph (%0: F32[1]) -> (%2) slots 3 {\n  %1 = Exp(%0) : F32[1]\n  %2 = Log(%1) : F32[1]\n}\n",
            stablehlo=MODULE.replace("maximum %arg0, %arg1", "log %0").replace("max", "log_exp"),
            inputs=(("%0 F32[1]", "[89.0]"),),
            values=(ValueRow("%2", "[0]", "inf (exactly)", "89.0 (0x42b20000)", True),),
            reason="output %2 at [0]: the enclosure is {inf}, observed 89.0\nwith algsimp disabled the same plugin answers inf",
        ),
        finding(
            signature=f"Scatter | I64 | died | {NEW}@parity | ",
            title="An empty Scatter aborts the process",
            verdict="crash",
            executor=f"{NEW}@parity",
            op="Scatter",
            dtype="I64",
            value_class="",
            attribution="",
            known="",
            programs=2,
            original_instructions=64,
            reduce_seconds=41.0,
            program_text="graph (%0: I64[0], %1: I64[0, 1], %2: I64[0]) -> (%3) slots 4 {\n  %3 = Scatter(%0, %1, %2) : I64[0]\n}\n",
            inputs=(("%0 I64[0]", "[]"), ("%1 I64[0, 1]", "[]"), ("%2 I64[0]", "[]")),
            values=(),
            reason="worker died: signal SIGABRT\nF0000 dynamic_update.cc:88] Check failed: index_vector_dim < rank (1 vs. 0)",
        ),
        finding(
            signature=f"Divide | I32 | expected finite, got finite | {XLA}@parity | native",
            title="I32 minimum divided by -1 wraps",
            executor=f"{XLA}@parity",
            op="Divide",
            dtype="I32",
            value_class="expected finite, got finite",
            attribution="constant folding",
            known="0003-int-min-division",
            programs=4,
            instructions=1,
            original_instructions=7,
            program_text=PROGRAM.replace("Maximum", "Divide").replace("F32", "I32"),
            stablehlo=MODULE.replace("maximum", "divide").replace("f32", "i32"),
        ),
    )
    wrong = {(f.op, f.dtype, e): f for f in findings for e in (f.executor, *f.also)}
    cells = []
    for group, ops in OPS.items():
        for op, dtypes in ops.items():
            for dtype in dtypes:
                programs = rng.randint(20, 420)
                for executor in (*NATIVE, *PLUGINS):
                    verdicts, beside = {"pass": programs}, dict[str, int]()
                    ulp: float | None = 0.0 if executor in NATIVE else round(2 ** rng.uniform(-1, 9), 1)
                    if (op, dtype, executor) in wrong:
                        cause = wrong[op, dtype, executor]
                        verdicts = {"pass": programs - cause.programs, cause.verdict: cause.programs}
                    elif executor in PLUGINS and (op == "Extension" or (dtype == "C32" and group == "indexing")):
                        verdicts, ulp = {"unsupported": programs}, None
                    elif op == "Pow" and dtype == "C64" and executor in PLUGINS:
                        verdicts, ulp = {"undecided": programs}, None
                    elif op == "Add" and dtype == "F32" and executor == f"{XLA}@defaults":
                        verdicts, beside = {"pass": programs - 6}, {"mismatch": 6}  # programs with a Maximum in them
                    elif op == "ReduceProd" and dtype == "I64" and executor == NATIVE[2]:
                        continue
                    examples = {verdict: rng.randrange(PROGRAMS) for verdict in verdicts}
                    ulps = {"0 0": 3, "+0 1": 70, "-8 4": 5, "+-3 21": 1} if op == "Exp" and executor in PLUGINS else {}
                    held = Held(1000, 990, 950)
                    cells.append(Cell(op, dtype, executor, verdicts, ulp, group, beside, {}, examples, ulps, held))
    return Campaign(
        seed=20261120,
        started="2026-11-20T22:00:03Z",
        command="tenferro-ref parity --programs 2000 --seed 20261120 --executors native,pjrt --out parity-report",
        programs=PROGRAMS,
        seconds={"total": 171.3, "generate": 3.4, "check": 121.5, "reduce": 40.1, "report": 1.9},
        executors=(
            *(ExecutorInfo(n, True, facts=(("passes", "none" if "no-" in n else "all"),)) for n in NATIVE),
            *(_plugin(n) for n in PLUGINS),
            ExecutorInfo("jax", False, "jax is not installed: pip install tenferro-ref[jax]"),
            ExecutorInfo("iree", False, "iree is not installed: pip install tenferro-ref[iree]"),
        ),
        totals=(*map(_native_totals, NATIVE), *(_plugin_totals(n, findings, rng) for n in PLUGINS)),
        cells=tuple(cells),
        findings=findings,
        generator={
            "instructions: 1-4": 611, "instructions: 5-9": 702, "instructions: 10-19": 498, "instructions: 20-200": 189,
            "rank: 0": 310, "rank: 1": 620, "rank: 2": 480, "rank: 3": 350, "rank: 4-6": 240,
            "values: NaN": 402, "values: infinity": 388, "values: negative zero": 512, "values: subnormal": 297,
            "extents: 0": 121, "extents: 1": 640, "extents: prime": 733, "extents: > 16384": 14,
            "pair: Exp > Log": 70, "pair: Log > Exp": 3, "changed by: TransposeFolding": 9,
        },
        environment=(
            ("Python", "3.11.9"), ("NumPy", "2.4.0"), ("tenferro-ref", "0.1.0"),
            ("machine", "x86_64, 2 cores, avx512f"), ("system", "Linux 6.1, glibc 2.36"),
        ),
        surveys=SURVEYS,
        errors=ERRORS,
        again="tenferro-ref fuzz program --seed 20261120",
    )  # fmt: skip


def _plugin(name: str) -> ExecutorInfo:
    lane = name.partition("@")[2]
    facts = (
        (
            "file",
            f"site-packages/{name.partition(':')[2].partition('@')[0].replace('-', '_')}/pjrt_c_api_cpu_plugin.so",
        ),
        ("sha256", "9f2c5b7d0e4a1c8893b0f6d27e5a41c09d8e3b76a1f4c2d05e97b8a36c1d4f20"),
        ("PJRT API", "0.106"),
        ("platform", "cpu"),
        ("lane", lane),
        ("options", "xla_cpu_enable_fast_min_max=false" if lane == "parity" else "(the plugin's own)"),
    )
    return ExecutorInfo(name, True, facts=facts)


def _native_totals(name: str) -> Totals:
    seconds = {"execute": 5.1, "compare": 0.8}
    return Totals(name, {"pass": PROGRAMS}, 213_480, 213_480, 0, 0.0, seconds)


def _plugin_totals(name: str, findings: tuple[Finding, ...], rng: random.Random) -> Totals:
    wrong: dict[str, int] = {}
    for f in findings:
        if name in (f.executor, *f.also):
            wrong[f.verdict] = wrong.get(f.verdict, 0) + f.programs
    rest = PROGRAMS - sum(wrong.values())
    widths = []
    for _ in range(1500):
        width = max(-1.0, rng.gauss(3.2, 3.0))
        distance = 0.0 if rng.random() < 0.45 or width < 0 else float(int(2 ** rng.uniform(-1, width)))
        widths.append((width, distance))
    widths += [(-float("inf"), 0.0)] * 200 + ([(2.0, 4096.0), (3.1, 900.0)] if wrong else [])
    return Totals(
        name,
        {"pass": rest - 160, "unsupported": 121, "undecided": 39, **wrong},
        elements=198_211,
        decided=191_034,
        forgiven=412,
        worst_ulp=4096.0 if wrong else 511.0,
        seconds={"lower": 2.1, "compile": 74.2, "execute": 3.3, "compare": 9.4},
        widths=tuple(widths),
    )


def clean() -> Campaign:
    """Everything agrees."""
    campaign = rich()
    totals = tuple(replace(t, verdicts={"pass": PROGRAMS}) for t in campaign.totals)
    cells = tuple(replace(c, verdicts={"pass": sum(c.verdicts.values())}) for c in campaign.cells)
    executors = tuple(i for i in campaign.executors if i.available)
    return replace(campaign, executors=executors, totals=totals, cells=cells, findings=())


def known_only() -> Campaign:
    """The findings that docs/findings/ describes and nothing else."""
    campaign = clean()
    findings = tuple(f for f in rich().findings if f.known)
    totals = tuple(t for t in rich().totals if t.executor != f"{OLD}@parity" and t.executor != f"{NEW}@parity")
    return replace(campaign, findings=findings, totals=totals)


def empty() -> Campaign:
    """No program, no executor, nothing."""
    return Campaign(1, "2026-11-20T22:00:03Z", "tenferro-ref parity", 0, {}, (), (), (), (), {}, ())


SHORT = "2000 programs were checked, at least 20000 are asked for"
ABSENT = "executor pjrt:* took no part: it was not selected"
MUTANTS = (
    SeededFault("tanh-is-sin", "emitter", True, 12, "loader"),
    SeededFault("flag-one-too-early", "reclaim", True, 40, "native-nopasses"),
    SeededFault("bound-without-sign", "reclaim", True, 7, "native-nopasses"),
    SeededFault("no-fold", "reclaim", False, 2000),
    SeededFault("order-of-a-set", "reclaim", False, 0, equivalent=True),
)


def short() -> Campaign:
    """Everything agrees, on fewer programs and executors than were asked for; and a seeded fault was not seen."""
    return replace(clean(), vacuous=(SHORT, ABSENT), mutants=MUTANTS)


EVIL = "</script></title><script>window.evil = 1</script><img src=x onerror='window.evil = 1'>\"'&`| {{ 7*7 }}"


def hostile() -> Campaign:
    """Markup, control characters, bidirectional overrides, lone surrogates and 5 MB of text in every string there is."""
    nasty = EVIL + "\x00\x1b[31m\u202egnp.exe\ud800 ünïcödé 張量 🙂 \r\n" + "x" * 3000
    info = ExecutorInfo(f"pjrt:{EVIL}@{EVIL}", True, facts=((EVIL, nasty), ("file", "/tmp/" + "d/" * 500)))
    absent = ExecutorInfo(EVIL, False, reason=nasty)
    bad = finding(
        signature=nasty, title=nasty, verdict=EVIL, executor=info.name, also=(EVIL,), op=EVIL, dtype=EVIL,
        value_class=nasty, attribution=nasty, known="", program_text="%0 = Add(%0)\n" * 200_000,
        stablehlo="a" * 2_500_000, inputs=((nasty, nasty * 20),),
        values=tuple(ValueRow(nasty, EVIL, nasty, nasty, i == 99) for i in range(100)), reason=nasty,
        explanation=Explanation(
            nasty, (Step(nasty, EVIL, nasty, nasty, nasty),), nasty, (nasty,), (0, 10**9), (7,), (Snapshot(nasty, (nasty,), nasty * 20),),
            (SegmentNote(nasty, (nasty,), True, (nasty,)),),
        ),
        unconfirmed=nasty,
    )  # fmt: skip
    widths = ((float("nan"), 1.0), (float("inf"), float("inf")), (1000.0, 0.0), (-1000.0, 1e300))
    return Campaign(
        seed=0, started=nasty, command=nasty, programs=1, seconds={nasty: 1.0, "total": 1e9},
        executors=(info, absent),
        totals=(Totals(info.name, {"pass": 3, EVIL: 1}, 9, 9, 0, float("inf"), {nasty: 2.0}, widths),),
        cells=(Cell(EVIL, EVIL, info.name, {"pass": 3, EVIL: 1}, float("inf"), EVIL, {EVIL: 1}, {nasty: 1}, {EVIL: 7}, {nasty: 1, "+9 99": 2}),),
        findings=(bad, replace(bad, known="../../etc/passwd\" onclick='x"), bad),
        generator={nasty: 3, EVIL + ": " + EVIL: 0}, environment=((nasty, nasty),), vacuous=(nasty, EVIL),
        mutants=(SeededFault(nasty, nasty, True, 1, nasty), SeededFault(EVIL, EVIL, False, 2, EVIL)),
        surveys=(Survey(nasty, 1, {nasty: 1, "": 3, EVIL: 2}), Survey(EVIL, 2, {"dot f32": 1})),
        again=nasty, errors=(ErrorKind(nasty, 3, {nasty: 3, EVIL: 0}, {EVIL: {EVIL: 1, "crash": 2}}), ErrorKind(EVIL, 0, {}, {})),
    )  # fmt: skip


def many() -> Campaign:
    """200 findings."""
    return replace(
        rich(),
        findings=tuple(
            finding(
                signature=f"Maximum | F32 | {i}", title=f"Finding number {i}", known="" if i % 2 else f"{i:04d}-page"
            )
            for i in range(200)
        ),
    )
