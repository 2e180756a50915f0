"""Who logs in."""

BOSS = "boss"
"""May do everything."""

VIEWER = "viewer"
"""Staff that may view jobs, and nothing else."""

PASSWORD = "crystal clear"

SESSIONS = "sessions.json"
"""The file in the shop's folder that has a session's key for each, so that not every test logs in anew."""
