"""Cards, piles and text as pixels, and the window that shows them, for both games.

The one module that needs pygame: ``pip install 'deck_of_spies_env[render]'``. It is imported with
the first picture. Pictures are drawn on surfaces of their own, without any display.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from math import cos, pi, sin
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.error import DependencyNotInstalled

from deck_of_spies_env.adapters import RENDER_FPS, RENDER_MODES

if TYPE_CHECKING:
    import pygame

Picture = npt.NDArray[np.uint8]
"""uint8 (H, W, 3), row by row from the top."""

Colour = tuple[int, int, int]
Point = tuple[float, float]
Box = tuple[float, float, float, float]
"""Left, top, width and height."""

FELT, PANEL, FACE = (27, 84, 66), (246, 243, 234), (255, 255, 255)
INK, MUTED, LIGHT, FAINT = (28, 28, 32), (104, 104, 98), (242, 246, 240), (186, 212, 200)
GOLD, GREEN, RED = (255, 200, 40), (34, 140, 70), (196, 36, 44)
_EMPTY, _EDGE, _HIDDEN, _DIM = (74, 124, 104), (150, 150, 144), (46, 66, 118), (178, 198, 188)
_SUIT_COLOURS = {"c": (8, 110, 52), "d": (16, 88, 186), "h": RED, "s": INK, "*": (128, 44, 140)}

CHIP_WIDTH, CHIP_HEIGHT = 32, 20
CHIP_STEP, CHIP_LINE = 35, 23
_FIT = 0.92
"""What does not fit is made smaller by this, until it does."""
_OVERSAMPLING = 2
"""Shapes have no smooth edges until they are drawn this much larger and scaled down."""


def load_pygame() -> Any:
    """The module pygame, without its greeting.

    Raises:
        DependencyNotInstalled: it is missing; the message names the extra.
    """
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame  # noqa: PLC0415 -- optional
    except ImportError as error:
        raise DependencyNotInstalled(
            "pictures and windows need pygame: pip install 'deck_of_spies_env[render]'"
        ) from error
    return pygame


# --- Suits: shapes within -1 ... 1, y downwards ---

_TURN = [2 * pi * step / 60 for step in range(60)]
_STEM = [(0.0, 0.1), (0.4, 1.0), (-0.4, 1.0)]


def _disc(x: float, y: float, radius: float) -> list[Point]:
    return [(x + radius * cos(angle), y + radius * sin(angle)) for angle in _TURN]


def _heart() -> list[Point]:
    upward = [13 * cos(t) - 5 * cos(2 * t) - 2 * cos(3 * t) - cos(4 * t) for t in _TURN]
    return [(0.98 * sin(t) ** 3, -(y + 2.5) / 14.7) for t, y in zip(_TURN, upward, strict=True)]


def _star() -> list[Point]:
    radii = [1.0, 0.42] * 5
    return [(r * sin(k * pi / 5), -r * cos(k * pi / 5)) for k, r in enumerate(radii)]


_SHAPES: dict[str, list[list[Point]]] = {
    "c": [*(_disc(x, y, 0.46) for x, y in ((0, -0.5), (-0.52, 0.2), (0.52, 0.2), (0, 0))), _STEM],
    "d": [[(0, -1), (0.76, 0), (0, 1), (-0.76, 0)]],
    "h": [_heart()],
    "s": [[(x, -0.8 * y - 0.2) for x, y in _heart()], _STEM],
    "*": [_star()],
}
"""The polygons of each suit, and of the Joker's star."""


def _suit_of(card: str) -> str:
    return card[-1]


def rank_text(card: str) -> str:
    """The rank as it stands on a card: ``Th`` -> ``10``; a Joker has none."""
    return "" if card[0] == "*" else card[0].replace("T", "10")


class Canvas:
    """A picture being drawn.

    Coordinates are pixels of the finished picture, from its left top corner; what writes returns
    where its right edge is, so that more can follow.

    Args:
        width, height: of the picture.

    Raises:
        DependencyNotInstalled: pygame is missing.
    """

    def __init__(self, width: int, height: int) -> None:
        self._pygame = load_pygame()
        self._pygame.font.init()
        self.size = (width, height)
        # The depth is given, as it would be that of the display, if there is one.
        large = (width * _OVERSAMPLING, height * _OVERSAMPLING)
        self._surface: pygame.Surface = self._pygame.Surface(large, 0, 32)
        self._surface.fill(FELT)
        # Not shared among pictures: a font dies when anybody quits pygame.
        self._fonts: dict[int, pygame.font.Font] = {}

    def picture(self) -> Picture:
        """The finished picture: uint8 (H, W, 3)."""
        small = self._pygame.transform.smoothscale(self._surface, self.size)
        width, height = self.size
        pixels = np.frombuffer(self._pygame.image.tobytes(small, "RGB"), dtype=np.uint8)
        return pixels.reshape(height, width, 3).copy()

    # --- Shapes and text ---

    def box(
        self, box: Box, fill: Colour | None, *, edge: Colour | None = None, radius: float = 5
    ) -> None:
        """A rectangle with round corners, its edge of two pixels inside of it."""
        rect = tuple(_larger(length) for length in box)
        draw, corner = self._pygame.draw.rect, _larger(radius)
        if fill is not None:
            draw(self._surface, fill, rect, border_radius=corner)
        if edge is not None:
            draw(self._surface, edge, rect, _larger(2), border_radius=corner)

    def text(
        self, x: float, y: float, text: str, size: float, colour: Colour, width: float = 0
    ) -> float:
        """A line of text from its left top corner, smaller than asked if it must fit a width."""
        shown = self._font(size).render(text, True, colour)
        while width and size > 1 and shown.get_width() > width * _OVERSAMPLING:
            size *= _FIT
            shown = self._font(size).render(text, True, colour)
        self._surface.blit(shown, (_larger(x), _larger(y)))
        return x + shown.get_width() / _OVERSAMPLING

    def suit(self, suit: str, centre: Point, radius: float) -> None:
        """A suit's sign, or with ``*`` the Joker's star."""
        x, y = centre
        for shape in _SHAPES[suit]:
            points = [
                ((x + radius * across) * _OVERSAMPLING, (y + radius * down) * _OVERSAMPLING)
                for across, down in shape
            ]
            self._pygame.draw.polygon(self._surface, _SUIT_COLOURS[suit], points)

    # --- Cards ---

    def card(self, x: float, y: float, height: float, card: str) -> None:
        """A card, face up."""
        width, suit = card_width(height), _suit_of(card)
        self.box((x, y, width, height), FACE, edge=_EDGE)
        self.text(x + 0.11 * width, y + 0.08 * height, rank_text(card), 0.38 * height, _ink(card))
        self.suit(suit, (x + 0.6 * width, y + 0.68 * height), 0.21 * height)

    def back(self, x: float, y: float, height: float) -> None:
        """A card, face down."""
        width = card_width(height)
        self.box((x, y, width, height), _HIDDEN, edge=FACE)
        inner = (x + 0.17 * width, y + 0.13 * height, 0.66 * width, 0.74 * height)
        self.box(inner, None, edge=(110, 130, 180), radius=3)

    def place(self, x: float, y: float, height: float) -> None:
        """A place for a pile, with nothing on it."""
        self.box((x, y, card_width(height), height), None, edge=_EMPTY)

    def pile(self, x: float, y: float, height: float, num_cards: int) -> None:
        """A face-down pile: its top, or its place."""
        (self.back if num_cards else self.place)(x, y, height)

    def chip(
        self, x: float, y: float, card: str, scale: float = 1, *, marked: bool, dim: bool
    ) -> None:
        """A small card, CHIP_WIDTH by CHIP_HEIGHT, with a bold edge if it is marked."""
        width, height = CHIP_WIDTH * scale, CHIP_HEIGHT * scale
        self.box((x, y, width, height), _DIM if dim else FACE, radius=3)
        if marked:
            self.box((x - 2, y - 2, width + 4, height + 4), None, edge=GOLD, radius=4)
        rank = rank_text(card)
        self.text(x + 4 * scale, y + 3 * scale, rank, 20 * scale, _ink(card), width=12 * scale)
        at = x + (width - 9 * scale if rank else width / 2)
        self.suit(_suit_of(card), (at, y + height / 2), 6.5 * scale)

    def chips(
        self,
        x: float,
        y: float,
        cards: Sequence[str],
        *,
        width: float,
        height: float = 0,
        marked: Collection[str] = (),
        dim: Collection[str] = (),
    ) -> float:
        """Small cards in lines of a width, smaller if they must fit a height.

        Returns the right edge of the last.
        """
        scale, in_line = 1.0, max(1, int(width // CHIP_STEP))
        while height and -(-len(cards) // in_line) * CHIP_LINE * scale > height:
            scale *= _FIT
            in_line = int(width // (CHIP_STEP * scale))
        end = x
        for number, card in enumerate(cards):
            line, place = divmod(number, in_line)
            left, top = x + place * CHIP_STEP * scale, y + line * CHIP_LINE * scale
            self.chip(left, top, card, scale, marked=card in marked, dim=card in dim)
            end = left + CHIP_WIDTH * scale
        return end

    def _font(self, size: float) -> pygame.font.Font:
        pixels = max(1, round(size * _OVERSAMPLING))
        if pixels not in self._fonts:
            self._fonts[pixels] = self._pygame.font.Font(None, pixels)
        return self._fonts[pixels]


def card_width(height: float) -> float:
    """The width of a card of a height."""
    return round(0.72 * height)


def counted(number: int, thing: str = "card") -> str:
    """A number of things in words: ``1 card``, ``2 cards``."""
    return f"{number} {thing}" + ("" if number == 1 else "s")


def listed(names: Sequence[Any]) -> str:
    """Names in words: ``1, 2 and 3``."""
    words = [str(name) for name in names]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _ink(card: str) -> Colour:
    return _SUIT_COLOURS[_suit_of(card)]


def _larger(length: float) -> int:
    return round(length * _OVERSAMPLING)


# --- The window ---


class Screen:
    """Where an environment's pictures go: to the caller, or into a window.

    There is one window in a process, as pygame has it; whoever draws last is seen. Copies of a
    Screen, pickled ones too, have no window until they draw.

    Args:
        title: of the window.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._clock: Any = None  # while the window is open

    def show(self, render_mode: str | None, draw: Callable[[], Picture]) -> Picture | None:
        """What ``render()`` does where it doesn't return text.

        Args:
            render_mode: ``"rgb_array"`` returns the picture, ``"human"`` shows it and waits as
                long as RENDER_FPS asks for; None warns.
            draw: makes the picture.

        Raises:
            DependencyNotInstalled: pygame is missing.
        """
        if render_mode is None:
            modes = ", ".join(RENDER_MODES)
            gym.logger.warn(f"render() without a render mode: pass render_mode, one of {modes}")
            return None
        picture = draw()
        if render_mode == "human":
            self._display(picture)
            return None
        return picture

    def close(self) -> None:
        """Close the window, if it is open."""
        if self._clock is not None:
            self._clock = None
            load_pygame().display.quit()

    def __reduce__(self) -> tuple[type[Screen], tuple[str]]:
        return type(self), (self._title,)

    def _display(self, picture: Picture) -> None:
        pygame = load_pygame()
        if self._clock is None:
            pygame.display.init()
            self._clock = pygame.time.Clock()
        height, width, _ = picture.shape
        window = pygame.display.get_surface()
        if window is None or window.get_size() != (width, height):  # another one may have shut it
            pygame.display.init()
            window = pygame.display.set_mode((width, height))
        pygame.display.set_caption(self._title)
        window.blit(pygame.surfarray.make_surface(picture.swapaxes(0, 1)), (0, 0))
        pygame.event.pump()
        self._clock.tick(RENDER_FPS)
        pygame.display.flip()
