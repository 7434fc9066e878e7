"""APIs that look something up: history, stocks, the web, texts, images and sounds, and the APIs themselves."""

from __future__ import annotations

import inspect
import math
import re
from collections import Counter
from typing import Any

from .api import DATE, Api, ApiError, api_call, filled, parsed

K1, B, COMMON, RESULTS = 1.5, 0.75, 0.25, 2
"""The parameters of BM25: a word of most pages has COMMON of the mean weight. And the pages that a search finds."""
LANGUAGES = {"english": "en", "french": "fr", "german": "de", "spanish": "es", "chinese": "zh-cn", "italian": "it"}
"""Languages by other names than their codes."""


class QueryHistoryToday(Api):
    """Query what happened on a day of the year."""

    @api_call
    def call(self, date: str) -> list[str]:
        """Return the events of a date, such as 03-21."""
        year = date if date.count("-") == 2 else f"2000-{date.strip()}"
        day, history = parsed(year, DATE)[5:], self.databases.read("History")
        if day not in history:
            raise ApiError("The date is not in the database.")
        return [", ".join(f"{name}: {value.strip()}" for name, value in event.items()) for event in history[day]]


class QueryStock(Api):
    """Query the price of a stock on a date."""

    @api_call
    def call(self, stock_code: str, date: str) -> float:
        """Return the price of the stock with that code, such as AAPL, on a date such as 2023-03-21."""
        code, stocks = filled(stock_code, "The stock code cannot be empty.").upper(), self.databases.read("Stock")
        day = parsed(date, DATE)
        if code not in stocks:
            raise ApiError("The stock code does not exist.")
        if day not in stocks[code]:
            raise ApiError("The stock price of this date is not maintained.")
        return stocks[code][day]


class Wiki(Api):
    """Search a keyword in Wikipedia."""

    @api_call
    def call(self, keyword: str) -> dict[str, str]:
        """Return the article: {"url": ADDRESS, "summary": TEXT}."""
        article = self.databases.read("Wiki").get(_key(keyword))
        if article is None:
            raise ApiError("Keyword not found.")
        return {"url": article["url"], "summary": article["summary"]}


class SearchEngine(Api):
    """Search the web for a keyword."""

    @api_call
    def call(self, keyword: str) -> list[dict[str, str]]:
        """Return the two best pages: [{"title": TITLE, "url": ADDRESS, "abstract": TEXT}]."""
        database = self.databases.read("SearchEngine")
        documents: list[Counter[str]] = [Counter(tokens) for tokens in database["tokenized_documents"]]
        having = Counter(word for one in documents for word in one)
        weights = {word: _weight(len(documents), number) for word, number in having.items()}
        least = COMMON * sum(weights.values()) / len(weights)
        mean = sum(sum(one.values()) for one in documents) / len(documents)
        scores = [0.0] * len(documents)
        for word in re.findall(r"\w+|[^\w\s]", keyword.lower()):
            weight = weights.get(word, 0.0)
            for number, one in enumerate(documents):
                norm = K1 * (1 - B + B * sum(one.values()) / mean)
                scores[number] += (weight if weight >= 0 else least) * one[word] * (K1 + 1) / (one[word] + norm)
        best = sorted(range(len(documents)), key=lambda number: -scores[number])[:RESULTS]
        return [database["raw_documents"][number] for number in best]


class Dictionary(Api):
    """Search a word in the dictionary."""

    @api_call
    def call(self, keyword: str) -> list[dict[str, Any]]:
        """Return the meanings of the word: [{"partOfSpeech": KIND, "definitions": [{"definition": TEXT}]}]."""
        meanings = self.databases.read("Dictionary").get(_key(keyword))
        if meanings is None:
            raise ApiError("The word is not in the dictionary.")
        return meanings


class Translate(Api):
    """Translate a text into another language."""

    @api_call
    def call(self, src: str, src_lang: str = "auto", tgt_lang: str = "en") -> str:
        """Return the translation of ``src``; languages are written as codes, such as en and fr."""
        language = LANGUAGES.get(tgt_lang.strip().lower(), tgt_lang.strip().lower())
        translations: dict[str, str] = self.databases.read("Translate").get(language, {})
        text = filled(src, "The text cannot be empty.").lower()
        if text not in translations:
            raise ApiError("The service of translations cannot be reached.")
        return translations[text]


class DocumentQA(Api):
    """Answer a question on a document by its address."""

    @api_call
    def call(self, url: str, question: str) -> str:
        """Return the answer to a question on the document at an address that ends with .txt."""
        documents = self.databases.read("QuestionAnswering")
        if not url.strip().endswith(".txt"):
            raise ApiError("The url must end with .txt.")
        if url.strip() not in documents:
            raise ApiError("The document does not exist.")
        for known in documents[url.strip()]:
            if known["question"].lower() == question.strip().lower():
                return known["answer"]
        return "The question is too difficult to answer."


class ImageCaption(Api):
    """Describe an image by its address."""

    @api_call
    def call(self, url: str) -> str:
        """Return the caption of the image at an address that ends with .jpg, .jpeg or .png."""
        if not url.strip().endswith((".jpg", ".jpeg", ".png")):
            raise ApiError("The url must end with .jpg, .jpeg or .png.")
        for image in self.databases.read("ImageCaptioning"):
            if image["url"] == url.strip():
                return image["caption"]
        raise ApiError("The image does not exist.")


class SpeechRecognition(Api):
    """Transcribe a recording of speech by its address."""

    @api_call
    def call(self, url: str) -> str:
        """Return the words in the recording at an address that ends with .wav."""
        recordings = self.databases.read("SpeechRecognition")
        if not url.strip().endswith(".wav"):
            raise ApiError("The url must end with .wav.")
        if url.strip() not in recordings:
            raise ApiError("The recording does not exist.")
        return recordings[url.strip()]


class ToolSearcher(Api):
    """Search the APIs themselves for the one that fits keywords."""

    @api_call
    def call(self, keywords: str) -> dict[str, Any] | list[dict[str, Any]]:
        """Return the name, description and parameters of the best API, with GetUserToken if it needs a token."""
        from . import __all__ as names
        from . import __dict__ as members

        tools = [_described(members[name]) for name in names if name != type(self).__name__]
        words = set(re.findall(r"[a-z]+", keywords.lower()))
        best = max(tools, key=lambda tool: len(words & _words(tool)) / math.sqrt(len(_words(tool))))
        if "token" in best["input_parameters"]:
            return [_described(members["GetUserToken"]), best]
        return best


def _weight(documents: int, having: int) -> float:
    return math.log(documents - having + 0.5) - math.log(having + 0.5)


def _key(keyword: str) -> str:
    return keyword.replace("_", " ").strip().lower()


def _described(api: type[Api]) -> dict[str, Any]:
    parameters = inspect.signature(getattr(api, "call")).parameters  # noqa: B009 - each API has its own
    return {
        "name": api.__name__,
        "description": inspect.getdoc(api),
        "input_parameters": [name for name in parameters if name != "self"],
    }


def _words(tool: dict[str, Any]) -> set[str]:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", tool["name"])
    return set(re.findall(r"[a-z]+", f"{name} {tool['description']}".lower()))
