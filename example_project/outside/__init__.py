"""The outside world: a mail server, a partner's webhook endpoint, a courier and a bank's rates.

They are real servers on loopback in a process of their own, with a journal of their own.  The shop
knows only their addresses.
"""
