"""``python -m deck_of_spies_env.play``."""

from __future__ import annotations

import sys

from deck_of_spies_env.play.command import main

if __name__ == "__main__":
    sys.exit(main())
