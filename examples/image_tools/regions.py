"""Find parts of a picture by their colour."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.uint8]
Mask = NDArray[np.bool_]


class Box(NamedTuple):
    """A rectangle of pixels; ``right`` and ``bottom`` are the first ones outside of it."""

    left: int
    top: int
    right: int
    bottom: int


def colour_mask(picture: Picture, channel: int, margin: int = 60) -> Mask:
    """Return the pixels where one colour (0 red, 1 green, 2 blue) is brighter than both others by a margin."""
    levels = picture.astype(int)
    others = np.delete(levels, channel, axis=2).max(axis=2)
    return levels[:, :, channel] - others > margin


def largest_region(mask: Mask) -> Mask:
    """Return the largest connected group of the mask's pixels. Raises ValueError for an empty mask."""
    if not mask.any():
        raise ValueError("the mask has no pixel: choose a smaller margin")
    labels = np.where(mask, np.arange(1, mask.size + 1).reshape(mask.shape), 0)
    while True:
        padded = np.pad(labels, 1)
        neighbours = [padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]]
        spread = np.where(mask, np.maximum.reduce([labels, *neighbours]), 0)
        if np.array_equal(spread, labels):
            break
        labels = spread
    values, counts = np.unique(labels[mask], return_counts=True)
    return labels == values[counts.argmax()]


def bounding_box(mask: Mask) -> Box:
    """Return the smallest rectangle around the mask's pixels. Raises ValueError for an empty mask."""
    rows, columns = np.nonzero(mask)
    if not rows.size:
        raise ValueError("the mask has no pixel")
    return Box(int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1)
