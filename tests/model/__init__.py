"""The verbs against a model: what section "states" promises, in plain Python, compared after every step."""
