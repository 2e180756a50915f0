"""Benchmarks: ``python -m benchmarks NAME [--json FILE]``, counted from outside, on a durable server."""
