"""Simulations: the real engine on a virtual clock, in a separate process, over a copy of the plan.

`python -m wakeful.simulation` reads a job (`app.simulation_job`) from its standard input and writes the result to its
standard output. It contacts nothing: actions, agents and checks are replaced by what the ledger recorded.
"""
