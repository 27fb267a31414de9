"""Measurements of this project: speed beside other libraries, and the strength of its recipe."""
