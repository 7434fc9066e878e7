"""33 tools for images, texts, sounds and facts. Each returns a dictionary; its docstring names the keys.

The models and services behind the tools are not on this machine: a call returns placeholders, which other tools take.
So a program shows which calls it makes, in which order and with which arguments, and nothing else.
"""

from __future__ import annotations

from typing import Any


class Placeholder(str):
    """Stands for a value that a tool would return."""


def _outputs(tool: str, *keys: str) -> dict[str, Any]:
    return {key: Placeholder(f"<{key} of {tool}>") for key in keys}


def text_generation(text: str) -> dict[str, Any]:
    """Continue a text prompt with the words that most likely follow it. Key: text."""
    return _outputs("text_generation", "text")


def text_summarization(text: str) -> dict[str, Any]:
    """Summarize a paragraph in a few sentences. Key: text."""
    return _outputs("text_summarization", "text")


def text_classification(text: str) -> dict[str, Any]:
    """Classify a text, for example as positive or negative by its sentiment. Key: text."""
    return _outputs("text_classification", "text")


def question_answering(text: str, question: str) -> dict[str, Any]:
    """Answer a question about a text, from that text. Key: text."""
    return _outputs("question_answering", "text")


def image_generation(text: str) -> dict[str, Any]:
    """Generate an image that shows what a text describes. Key: image."""
    return _outputs("image_generation", "image")


def image_captioning(image: Any) -> dict[str, Any]:
    """Describe an image by a caption. Key: text."""
    return _outputs("image_captioning", "text")


def optical_character_recognition(image: Any) -> dict[str, Any]:
    """Read the text that is written in an image. Key: text."""
    return _outputs("optical_character_recognition", "text")


def image_classification(image: Any) -> dict[str, Any]:
    """Classify the subject of an image into one of the 1000 categories of ImageNet, such as cat. Key: text."""
    return _outputs("image_classification", "text")


def image_editing(image: Any, prompt: str) -> dict[str, Any]:
    """Edit an image by an instruction, for example replace or remove a thing in it. Key: image."""
    return _outputs("image_editing", "image")


def object_detection(image: Any) -> dict[str, Any]:
    """Detect the objects in an image, each with its bounding box and label. Keys: image, objects."""
    return _outputs("object_detection", "image", "objects")


def image_segmentation(image: Any) -> dict[str, Any]:
    """Segment an image into objects, each with its mask and label. Keys: image, objects."""
    return _outputs("image_segmentation", "image", "objects")


def automatic_speech_recognition(audio: Any) -> dict[str, Any]:
    """Transcribe the speech in an audio file. Key: text."""
    return _outputs("automatic_speech_recognition", "text")


def visual_question_answering(image: Any, question: str) -> dict[str, Any]:
    """Answer a question about an image. Key: text."""
    return _outputs("visual_question_answering", "text")


def image_crop(image: Any, object: Any) -> dict[str, Any]:  # noqa: A002 - the plans name it so
    """Crop an image to an object, or to the four coordinates of a bounding box. Key: image."""
    return _outputs("image_crop", "image")


def image_crop_left(image: Any) -> dict[str, Any]:
    """Crop an image to its left part. Key: image."""
    return _outputs("image_crop_left", "image")


def image_crop_right(image: Any) -> dict[str, Any]:
    """Crop an image to its right part. Key: image."""
    return _outputs("image_crop_right", "image")


def image_crop_top(image: Any) -> dict[str, Any]:
    """Crop an image to its top part. Key: image."""
    return _outputs("image_crop_top", "image")


def image_crop_bottom(image: Any) -> dict[str, Any]:
    """Crop an image to its bottom part. Key: image."""
    return _outputs("image_crop_bottom", "image")


def background_blur(image: Any, object: Any) -> dict[str, Any]:  # noqa: A002 - the plans name it so
    """Blur an image except for one or several objects in the foreground. Key: image."""
    return _outputs("background_blur", "image")


def color_pop(image: Any, object: Any) -> dict[str, Any]:  # noqa: A002 - the plans name it so
    """Make an image black and white except for one or several objects, which keep their colour. Key: image."""
    return _outputs("color_pop", "image")


def count(objects: Any) -> dict[str, Any]:
    """Count the objects of a list. Key: number."""
    return _outputs("count", "number")


def tag(image: Any, objects: Any) -> dict[str, Any]:
    """Draw the bounding boxes and labels of a list of objects on an image. Key: image."""
    return _outputs("tag", "image")


def select_object(objects: Any, object_name: str) -> dict[str, Any]:
    """Select the object with a name from a list of objects. Key: object."""
    return _outputs("select_object", "object")


def emoji(image: Any, object: Any, emoji: str) -> dict[str, Any]:  # noqa: A002 - the plans name it so
    """Put an emoji in the place of one or several objects of an image, such as smiling_face or ghost. Key: image."""
    return _outputs("emoji", "image")


def get_date_fact(date: str) -> dict[str, Any]:
    """Tell an interesting fact about a date, written as month/day. Key: text."""
    return _outputs("get_date_fact", "text")


def get_year_fact(year: Any) -> dict[str, Any]:
    """Tell an interesting fact about a year. Key: text."""
    return _outputs("get_year_fact", "text")


def get_math_fact(number: Any) -> dict[str, Any]:
    """Tell an interesting fact about a number in mathematics. Key: text."""
    return _outputs("get_math_fact", "text")


def get_trivia_fact(number: Any) -> dict[str, Any]:
    """Tell a piece of trivia about a number. Key: text."""
    return _outputs("get_trivia_fact", "text")


def love_calculator(first_name: str, second_name: str) -> dict[str, Any]:
    """Calculate how well two people, by their first names, would suit each other as a couple. Key: number."""
    return _outputs("love_calculator", "number")


def get_location(city: str) -> dict[str, Any]:
    """Look up the geographical coordinates of a city or an address. Keys: lon, lat."""
    return _outputs("get_location", "lon", "lat")


def search_movie(movie_title: str, movie_year: Any) -> dict[str, Any]:
    """Look up a movie by its title and year: genre, director and the like. Key: text."""
    return _outputs("search_movie", "text")


def get_weather(lon: Any, lat: Any) -> dict[str, Any]:
    """Look up the weather forecast at geographical coordinates. Key: objects."""
    return _outputs("get_weather", "objects")


def wikipedia_simple_search(text: str) -> dict[str, Any]:
    """Search Wikipedia and return a summary of the best page. Key: text."""
    return _outputs("wikipedia_simple_search", "text")
