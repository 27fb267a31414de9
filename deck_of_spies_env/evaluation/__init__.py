"""Judging agents: banks of deals, matches on the same deals, statistics and reports.

Each module is imported by its own name; only ``matches`` and ``seeds`` do without the ``evaluate``
extra.
"""
