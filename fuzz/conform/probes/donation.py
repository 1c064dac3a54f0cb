"""Donation: an argument whose memory a result may reuse is gone afterwards, unless the caller keeps it."""

from __future__ import annotations

import numpy as np

from fuzz.conform.probes.session import F32_4, SUM, Fails, Lacks, Session, X, Y, refused, same_bits
from fuzz.conform.probes.table import probe
from tenferro_ref.errors import PjrtCall

#: The first argument may become the result.
ALIASED = SUM.replace("%arg0: tensor<4xf32>", "%arg0: tensor<4xf32> {tf.aliasing_output = 0 : i32}")


def _deleted(s: Session, raw: int) -> bool:
    return bool(s.api.call("Buffer_IsDeleted", buffer=raw).is_deleted)


@probe("donation", "the result of a program with a donated argument is right")
def _(s: Session) -> None:
    with s.compile(ALIASED, F32_4, F32_4) as executable, s.client.put(X) as x, s.client.put(Y) as y:
        (got,) = s.results(executable, x, y)
        same_bits(got, X + Y, "x + y")
        same_bits(y.numpy(), Y, "the argument that is not donated")


@probe("donation", "a donated argument is deleted, and no longer an argument")
def _(s: Session) -> None:
    s.need("Buffer_IsDeleted")
    with s.compile(ALIASED, F32_4, F32_4) as executable, s.client.put(X) as x, s.client.put(Y) as y:
        s.results(executable, x, y)
        if not _deleted(s, x.raw):
            raise Lacks("the plugin copies: the argument is still there")
        refused(lambda: s.finish(s.execute(executable, [x.raw, y.raw])[1]), "the donated buffer again")


@probe("donation", "non_donatable_input_indices keeps the argument")
def _(s: Session) -> None:
    s.need("Buffer_IsDeleted")
    with s.compile(ALIASED, F32_4, F32_4) as executable, s.client.put(X) as x, s.client.put(Y) as y:
        for _ in range(3):
            (got,) = s.results(executable, x, y, keep=(0, 1))
            same_bits(got, X + Y, "x + y")
        if _deleted(s, x.raw):
            raise Fails("the argument is deleted all the same")
        same_bits(x.numpy(), X, "the argument afterwards")


@probe("donation", "the same buffer donated and read in one call is refused, or the result is right")
def _(s: Session) -> None:
    with s.compile(ALIASED, F32_4, F32_4) as executable, s.client.put(X) as x:
        try:
            made, done = s.execute(executable, [x.raw, x.raw])
        except PjrtCall as error:
            if not error.code:
                raise
            return
        s.finish(done)
        same_bits(s.download(made[0], np.empty_like(X)), X + X, "x + x")
        s.api.destroy("Buffer", made[0])
