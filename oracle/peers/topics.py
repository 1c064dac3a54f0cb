"""What the names of executors and lanes mean: `tenferro-ref help executors`, `help lanes`, docs/reference/names.md."""

from __future__ import annotations

from oracle.peers.lanes import DEFAULT_LANE, LANES, ON_PLATFORM

EXECUTORS = {
    "native": "the reference, segmented",
    "native-unsegmented": "the same, one instruction after the other",
    "native-nopasses": "the same, compiled without passes",
    "native-fused": "the same, every run of elementwise instructions computed block by block, contractions with the transposes that they read",
    "native-decomposed": "the same, with all passes: contractions as batched matrix products",
    "native-contracted": "the same, and the executor takes these together again, in one call of the backend",
    "native-without:PASS": "the same, compiled without one pass",
    "native-drawn": "the same, with passes and options drawn with each program; native-drawn:2, native-drawn:3: with others",
    "native-rewritten": "the same on an equal program, written another way; its results must have the same bits",
    "native-reloaded": "the same on what is read of the module that is written of a program: StableHLO out and in; "
    "or of the one that a case came with, without its inputs",
    "native-algebras": "the same without passes, and the part of the program that has a meaning over other algebras, held to their definitions",
    "native:OPTION+OPTION": "chosen options: passes=A/B, fusion=N, block=N, unsegmented, no-reclaim, unchecked, keep-reused, contracts, "
    "and those of the next lines",
    "native:as-json": "the program is written as JSON and read again; as-text: as text",
    "native:as-exec-json": "the compiled program is, with its types, last uses and shape guards; as-exec-text: as text",
    "native:as-normal": "the normal form of the program",
    "native:as-values": "the program as the front end builds it: with operators, slices, methods and functions",
    "native:strided": "inputs with other strides: C order, axes backwards, slices, odd addresses, one element for many",
    "native:filed": "inputs are written into a file and read again",
    "native:sized": "integers in place of symbolic extents, before the program is compiled",
    "native:symbolic": "symbols in place of the extents of the inputs, each of its own, as far as the rules allow",
    "native:twice": "the program is run twice, and must give the same bits",
    "native:semiring": "the engine of the algebras over the standard one, for programs all of whose ops it has; "
    "semiring-required: without its fast path",
    "native:reread": "a module is read again without its inputs, from bytecode, and what is written of that once more",
    "native:warm": "the same executor has run something else before: the program at other extents, or another program and other values; and has been asked for inputs that do not fit",
    "pjrt": "the PJRT plugin of TENFERRO_PJRT_PLUGIN",
    "pjrt:gpu": "the PJRT plugin of TENFERRO_PJRT_GPU_PLUGIN",
    "pjrt:PATH_OR_PACKAGE[@LANE]": "a PJRT plugin in a lane",
    "pjrt-reloaded:PATH_OR_PACKAGE[@LANE]": "the same, run from its own serialised executable",
    "pjrt-rewritten:PATH_OR_PACKAGE[@LANE]": "the same on an equal program, held to the enclosures of the original one",
    "pjrt-kernels:PATH_OR_PACKAGE[@LANE]": "the same; ops that StableHLO has no form for are custom calls of our kernels",
    "jax": "JAX on its own client, compiled",
    "jax-eager": "JAX on its own client, op by op",
    "interpreter": "the StableHLO interpreter of jaxlib",
    "iree": "IREE on llvm-cpu",
    "run-hlo-module": "OpenXLA's tool of TENFERRO_XLA_RUN_HLO_MODULE, one process a program",
    "external:COMMAND": "a command, one process a program (FORMATS 3)",
    "external-served:COMMAND": "a command that is kept running, a line a program (FORMATS 3)",
    "derivative-adjoint": "check of derivative rules: the two inner products of jvp and vjp",
    "derivative-differences": "check of derivative rules: difference quotients, bounded by second derivatives",
    "derivative-jax": "check of derivative rules: JAX's derivative",
    "all": "every one that is installed; what is missing is listed with its reason, as is a plugin for another platform than the CPU, whose "
    "device this machine may lack: name it",
}


def executors() -> dict[str, str]:
    """Names and meanings; those of installed plugins are listed by `tenferro-ref plugins`."""
    return EXECUTORS


def lanes() -> dict[str, str]:
    """Names of sets of compile options, with the options."""
    default = {DEFAULT_LANE: " (the default)"}
    shown = {name: ", ".join(f"{k}={v}" for k, v in options.items()) for name, options in LANES.items()}
    also = "; ".join(
        f"on {platform} also {k}={v}" for platform, options in ON_PLATFORM.items() for k, v in options.items()
    )
    return {
        name: (f"{words}; {also}" if words else "the plugin's own defaults") + default.get(name, "")
        for name, words in shown.items()
    }
