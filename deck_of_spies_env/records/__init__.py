"""Records of games: what was played, one game a line of JSON, to keep, read and replay.

The format is described in ``docs/records.md``.
"""

from __future__ import annotations

from deck_of_spies_env.records.format import (
    FORMAT,
    GameRecord,
    RecordError,
    SkirmishRecord,
    SkirmishResult,
    SolitaireRecord,
    SolitaireResult,
)
from deck_of_spies_env.records.playing import (
    deal_lines,
    deal_recorder,
    record_deals,
    record_of_actions,
    record_tables,
    table_lines,
    table_recorder,
)
from deck_of_spies_env.records.replays import SkirmishPosition, SolitairePosition, replay
from deck_of_spies_env.records.storage import (
    RecordWarning,
    read_records,
    record_writer,
    write_records,
)

__all__ = [
    "FORMAT",
    "GameRecord",
    "RecordError",
    "RecordWarning",
    "SkirmishPosition",
    "SkirmishRecord",
    "SkirmishResult",
    "SolitairePosition",
    "SolitaireRecord",
    "SolitaireResult",
    "deal_lines",
    "deal_recorder",
    "read_records",
    "record_deals",
    "record_of_actions",
    "record_tables",
    "record_writer",
    "replay",
    "table_lines",
    "table_recorder",
    "write_records",
]
