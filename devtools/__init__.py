"""What dev.py, the tests, the demo and the benchmarks share. Never installed with the package."""
