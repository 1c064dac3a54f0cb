"""The compiler: `compile_std_to_exec` and its passes, one file a pass (SEMANTICS 4)."""

from tenferro_ref.compiler.pipeline import DECOMPOSED, DEFAULT_PIPELINE, PASSES, compile_std_to_exec, run_passes
from tenferro_ref.compiler.rewrite import Pass, PassResult
