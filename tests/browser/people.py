"""Who logs in."""

BOSS = "boss"
"""May do everything."""

VIEWER = "viewer"
"""Staff that may view jobs, and nothing else."""

PASSWORD = "crystal clear"
