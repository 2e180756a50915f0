"""Real worker processes, real signals, a real database that goes away."""
