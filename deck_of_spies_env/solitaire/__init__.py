"""Deck of Spies, the solitaire."""
