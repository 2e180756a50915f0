"""The benchmarks, one file each; ``__main__`` lists them."""
