"""The benchmark harness: configs, runs, results, tracking and figures.

It knows a method only by the contract of :mod:`lumberjack_bench.methods`. Nothing is imported here,
so that commands which only look at results start at once.
"""
