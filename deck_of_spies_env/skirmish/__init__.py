"""Skirmish: 54 cards, two to four players who commit cards at the same time."""
