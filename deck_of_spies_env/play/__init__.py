"""Both games for a person at a terminal: ``python -m deck_of_spies_env.play``.

The one package that needs Textual: ``pip install 'deck_of_spies_env[play]'``. See ``docs/play.md``.
"""
