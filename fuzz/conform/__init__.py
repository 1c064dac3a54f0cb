"""Conformance: does a PJRT plugin do what the C API and StableHLO say? Any plugin, by any vendor.

`probes` are small checks of the C API that run in a worker process (`engine`); `cells` are programs of one op at one dtype on
values of one class, judged like any other answer. `run` asks all of them, `record` is what is kept. Pages and badges are
drawn by `reports`.
"""
