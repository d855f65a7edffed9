"""A model of the protocol by which nodes share runs, explored exhaustively: `python -m protocol`.

Two nodes share one store. Each transaction is one action, named after the function in the code; between two actions
anything may happen: time passes, the other node acts, a process dies, the server's clock is stepped. A node that does
not act while time passes is one that froze, and when it acts again it still believes what it last knew. So freezes of
any length and at any point, and stale knowledge, need no code of their own.

`state` has the store and what each node believes, `actions` what they do, `laws` what must hold, `broken` variants
without one protection each, of which the laws must notice every one. `explorer` visits all states that can be reached.
The number of instants, crashes and clock steps is bounded; time and freezes are not.

What the model assumes: a transaction is atomic and is never lost (L7 has tests of its own); nothing comes between the
check of the lease and the first effect of an attempt, because no lease can protect against that; an attempt ends well,
or with its node; the clock is stepped further than all leases together. Runs that could not be ended, and asking
targets for results, are left to the random worlds.
"""
