"""The worker: processes, and what runs in them.

    supervisor   forks, waits, signals; single-threaded; never connects to the database
    keeper       one process: renews the leases of all children, rescues, promotes, prunes, listens
    child        N processes: claim, run, settle (``engine``), on M threads and an event loop (``runners``)
    board        the shared memory through which they tell each other what is held and what was decided

A child that runs a C call for a minute cannot renew its leases, so it does not have to: it writes
into its board what it holds, and the keeper renews exactly that.
"""
