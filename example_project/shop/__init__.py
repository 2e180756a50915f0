"""Habit & Lustre, a shop for crystals.  Placing an order enqueues jobs in the order's own transaction."""
