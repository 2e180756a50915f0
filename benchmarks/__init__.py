"""Benchmarks: ``python -m benchmarks NAME``, counted from outside, on a durable server, beside peers.

``core`` measures, ``suite`` holds one file for each benchmark, ``contenders`` one for each queue that takes
part: this project and its peers, each in an environment of its own.
"""
