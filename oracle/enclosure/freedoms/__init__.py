"""Freedoms: what a platform may do beyond one IEEE rounding an operation. One file a freedom: its bound, its proof, its
code.

The rules of ops (`arithmetic`, `sums`, `functions`, `complexes`) are those of IEEE arithmetic. Where a freedom may
act, a rule calls the function of that freedom, which joins to the bounds what the platform may give instead, or
returns them as they are where the model does not permit it. Nothing outside this package asks what a model permits
(`test_enclosure_freedoms.py`).

=================== ==============================================================================
`flush`             subnormals may be read or written as zeros
`contraction`       a product may go unrounded into an addition (FMA)
`reciprocals`       a quotient may be a product with the rounded reciprocal of its divisor
`gathering`         factors of chains of products, quotients and roots may be grouped otherwise
`merging`           nested sums may be one sum, and a contraction may start from an addend
`excess`            results of narrow floats may go on unrounded, in F32
`conversion`        a result in BF16 that is converted to F32, or in 8 bits to F16, may go there unrounded
`accumulators`      a contraction of narrow floats may be added up in F64, or in their own format
`zeros`             a sum of zeros may start from -0
`contraction_zeros` a contraction of zeros may, where other sums do not
`conjugates`        a Conj may be taken to the operands, which changes the sign of an imaginary zero
`limits`            a function may be computed by parts, which give NaN where C99 Annex G names a value
`cuts`              the sign of a zero need not say on which side of a branch cut a number is
`approximations`    a quotient or square root in F32 may be approximated
`tf32`              a contraction in F32 may read 11 bits of its operands
`addends`           a sum of products may start from an addend, as a contraction may
`restarts`          a reduction may take in its initial value several times
`real`              a result may be what it is before rounding
=================== ==============================================================================

A rewrite that overflows or underflows where the program does not, that makes finite what is certainly an infinity, or that
loses a NaN is none of these: its result stays outside, and is a finding. The one exception is a complex factor or divisor
of one (`gathering`), whose other factor Annex G has for an infinity before and after.
"""
