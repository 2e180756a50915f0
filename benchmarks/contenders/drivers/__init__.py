"""Programs that use one queue each, run in that queue's own environment; see ``common``."""
