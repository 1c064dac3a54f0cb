"""The sweep of many arguments: the native executor has nothing outside, and what is wrong for few arguments is found and named."""

from dataclasses import replace

import numpy as np
import pytest

from oracle.case import Case
from oracle.peers import Execution, NativeExecutor, Pool
from tenferro_ref import ops
from tenferro_ref.dtype import DType
from tests.libraries import module_or_skip
from tools.sweep import Form, arguments, forms, main, sweep

pytestmark = pytest.mark.once


class WrongOfOne(NativeExecutor):
    """Gives 2 for the exponential of 0.5, and of nothing else."""

    def run(self, case: Case) -> Execution:
        made = super().run(case)
        (out,) = made.outputs
        wrong = np.where(case.inputs[0] == 0.5, out.dtype.type(2), out)
        return replace(made, outputs=(wrong,))


def test_a_result_that_is_wrong_for_few_arguments_is_found(pool: Pool) -> None:
    ((page, words, occasion),) = sweep(
        WrongOfOne(), Form((ops.Exp(),), DType.F16), 3000, np.random.default_rng(1), pool
    )
    assert page == ""
    assert words.startswith("Exp | F16 | expected finite, got other finite |")
    assert occasion.endswith("as of 0.5")


@pytest.mark.parametrize("dtype", [DType.F32, DType.BF16, DType.F4E2M1FN, DType.C32, DType.I8, DType.Bool], ids=str)
def test_the_native_executor_is_inside(dtype: DType, pool: Pool) -> None:
    rng = np.random.default_rng(2)
    found = [kind for form in forms([dtype], pairs=False) for kind in sweep(NativeExecutor(), form, 200, rng, pool)]
    assert found == []


@pytest.mark.parametrize("dtype", DType, ids=str)
def test_arguments_are_of_the_dtype_and_many_kinds(dtype: DType) -> None:
    array = arguments(dtype, 4000, np.random.default_rng(3))
    assert (array.dtype, array.shape) == (dtype.numpy, (4000,))
    assert len({v.tobytes() for v in array}) >= min(2**dtype.bits, 100)


def test_an_executor_that_dies_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """StableHLO's interpreter at an integer division by zero (finding 0024)."""
    module_or_skip("jax")
    assert main(["--executor", "interpreter", "--dtype", "I8", "--op", "Divide", "--arguments", "50"]) == 0
    (line,) = capsys.readouterr().out.splitlines()[1:]
    assert line.startswith("0024-interpreter-integer-division-by-zero  Divide | I8 | WorkerDied")


def test_the_command_names_what_it_was_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--dtype", "F32", "--op", "Exp", "--pairs", "--arguments", "50"]) == 0
    assert capsys.readouterr().out == "native, 50 arguments, seed 0\n"
    assert main(["--executor", "nonsense"]) == 2
    assert capsys.readouterr().err.startswith("error: unknown executor 'nonsense'")
    with pytest.raises(SystemExit, match="2"):
        main(["--op", "nonsense"])
    assert "invalid choice: 'nonsense'" in capsys.readouterr().err
