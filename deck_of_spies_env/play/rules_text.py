"""The rules in short, for the screen; ``docs/rules.md`` and ``docs/skirmish.md`` have them all."""

from __future__ import annotations

RULES = {
    "Deck of Spies": """\
[b]Aim.[/b] Twelve Key Spies (J, Q, K) come at you, last of 36 spies. Own seven or more of them \
(what a win takes stands on the table) when the last spy has been dealt with.

[b]Each turn[/b] you face the top spy with your hand. Ace counts 1, J 11, Q 12, K 13.

[b]Counter (c).[/b] Cards that total the spy's value or more, none of which could be spared. The \
spy is gone, to the Spy Discard; a Key Spy is lost with it.

[b]Recruit (r).[/b] The same, but all cards in the spy's suit, or with the Ace of that suit among \
them, which makes the others count as that suit and may itself be to spare. The spy joins your \
deck.

[b]Assassinate (a).[/b] Only if your whole hand is below the spy, and then you must: give up one \
of your four Aces, the Double Agents, for good. Your hand is discarded and drawn anew. With no \
Ace left in hand, Draw Deck or Draw Discard you lose at once.

[b]Retire (t), or pass (p).[/b] After a counter or a recruit, two to four cards of one rank that \
are left in hand may leave your deck for good. Weak cards gone, the strong ones return sooner.

[b]Draw.[/b] You keep what you did not play and draw up to a full hand. What you played lies in \
the Draw Discard, which is shuffled into a new Draw Deck when that runs out.

[b]Spies[/b] come in three tiers: 5 to 7, then 8 to 10, then J to K, each shuffled.""",
    "Skirmish": """\
[b]Aim.[/b] Hold the most points when somebody runs out of cards. 2 to 10 count their number, A \
1, J 11, Q 12, K 13, a Joker (★) 0. Suits do not matter.

[b]Each round[/b] everybody commits one of three hand cards in secret. All are shown at once, and \
one player takes them, the pot:

- A Joker among them: War among all players.
- An Ace and a King or Queen: the Ace takes the pot, unless there is a Jack, which then takes it. \
Several Jacks, or without a Jack several Aces, go to War.
- Else the highest card; those tied for it go to War.

[b]War.[/b] Each of those who fight stakes two cards face down (one at a table of four) from the \
Supply, and commits a hand card. The highest sum takes the pot and keeps its own War cards; those \
of the others go to the Graveyard. A Joker counts as the best other card of its pile. In a tie \
the tied add a card each.

[b]Supply.[/b] You draw up to three cards. When your Supply is empty, what you captured is \
shuffled and becomes your Supply.

[b]The end.[/b] Whoever has no cards left at all is out, and ends the game; the others count.""",
}
"""Title of a game -> text with markup."""
