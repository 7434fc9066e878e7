"""Read, change, compare and write pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter

from examples.image_tools.regions import Box, Picture


def read_picture(path: str | Path) -> Picture:
    """Return a picture from a file in any format that Pillow reads. Raises OSError."""
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def write_picture(picture: Picture, path: str | Path) -> None:
    """Write a picture into a file, in the format of its suffix. Raises OSError, ValueError."""
    Image.fromarray(picture).save(path)


def blur_outside(picture: Picture, box: Box, radius: float = 6.0) -> Picture:
    """Return the picture with everything outside of a box blurred, to draw the eye to the box."""
    blurred = np.array(Image.fromarray(picture).filter(ImageFilter.GaussianBlur(radius)))
    inside = np.s_[box.top : box.bottom, box.left : box.right]
    blurred[inside] = picture[inside]
    return blurred


def mean_difference(one: Picture, other: Picture) -> float:
    """Return the mean absolute difference of two pictures of the same size, from 0 to 255."""
    return float(np.abs(one.astype(int) - other.astype(int)).mean())
