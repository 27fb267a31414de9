"""Errors that both games raise."""

from __future__ import annotations


class IllegalActionError(ValueError):
    """An action that the rules do not allow now; nothing has changed."""
