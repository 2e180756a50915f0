"""What all benchmarks measure with: a server, databases, processes, lanes that alternate, results."""
