"""Judging agents: banks of deals, matches on the same deals, statistics and reports.

Each module is imported by its own name; only ``matches``, ``seeds`` and ``values`` do without the
``evaluate`` extra.
"""
