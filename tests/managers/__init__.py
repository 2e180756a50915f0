"""The verbs, one file for each."""
