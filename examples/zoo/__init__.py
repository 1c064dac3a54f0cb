"""Functions of the kind people write in JAX: `ZOO` has them by name, each with arrays to call it with."""

from zoo import arrays, control, learning, mathematics, networks

ZOO = {**networks.ZOO, **learning.ZOO, **control.ZOO, **mathematics.ZOO, **arrays.ZOO}
