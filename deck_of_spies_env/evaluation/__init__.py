"""Judging agents: banks of deals, matches on the same deals, statistics and reports.

>>> from deck_of_spies_env.evaluation import evaluate
>>> print(evaluate(my_policy, deals=2000).ladder())

``evaluate`` judges a policy of one's own, see ``policies``. Each module is imported by its own
name; ``columns``, ``matches``, ``partial``, ``runs``, ``seeds`` and ``tables`` do without the
``evaluate`` extra, the others need it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deck_of_spies_env.evaluation.policies import Evaluation, evaluate

__all__ = ["Evaluation", "evaluate"]


def __getattr__(name: str) -> Any:
    """Import what judges policies when it's asked for, as it needs the ``evaluate`` extra."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.policies"), name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{name} needs {error.name}: pip install 'deck_of_spies_env[evaluate]'", name=error.name
        ) from error
