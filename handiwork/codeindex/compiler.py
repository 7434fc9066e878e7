"""Makes documents of blocks, and turns a query into one of tantivy, over the fields of the documents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import tantivy
from tantivy import Occur, Query

from handiwork.codeindex.blocks import TYPES, Vocabulary, code_of, identifiers, room_for, sub_words
from handiwork.codeindex.query import Group, Occurrence, QueryError, QueryNode, Term, parse_query
from handiwork.codeindex.workers import IndexedBlock

STEMMED, PLAIN = "handiwork_stemmed", "handiwork_plain"
"""Tokenizers: words between blanks in lower case, of the first also only the stem."""

CODE = 50_000
"""Maximum characters of a block's code that the index keeps; the rest is cut off."""

Matching = Literal["exact", "prefixes", "nearest", "anywhere"]
MATCHINGS: tuple[Matching, ...] = get_args(Matching)
"""What a word matches: itself, also identifiers that begin with it, or each of its sub-words in any field.

"nearest" needs one of all words in a block, as the model of a search often guesses a name that is not quite right.
"anywhere" also drops the type, the path and the lines, which it guesses too.
"""

_SHORTEST, _LONGEST_WORD = 3, 255
_PLACES = ("type", "file_path", "lines")
"""Fields that say where to look instead of what for."""
_OCCURRENCES: dict[Occurrence, Occur] = {"should": Occur.Should, "must": Occur.Must, "must_not": Occur.MustNot}
_NAME_WEIGHT, _DOCSTRING_WEIGHT, _PATH_WEIGHT, _PREFIX_WEIGHT = 3.0, 1.0, 0.5, 1.0
"""How much more, or less, a word counts in a block's name, docstring or file path than in its text.

The words of a query share the weight of names: else one word of a description, like "a", that is some block's name
counts more than all others together. perf.retrieval measures the weights.
"""


def make_schema() -> tantivy.Schema:
    """Return the fields of a document, which is a block.

    ``words`` has the sub-words of its text in order, ``names`` each identifier and sub-word once, ``name``,
    ``prototype``, ``docstring`` and ``path`` their sub-words and identifiers, ``defined`` those of the name without the
    classes around it. ``payload`` is the result of a search. One document has a ``generation`` alone: the name of the
    list of files that belongs to all others.
    """
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("file_path", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("type", tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("first", indexed=True, fast=True)
    builder.add_unsigned_field("last", indexed=True, fast=True)
    builder.add_text_field("words", tokenizer_name=STEMMED, index_option="position")
    builder.add_text_field("names", tokenizer_name=PLAIN, index_option="basic")
    for name in ("name", "defined", "prototype", "docstring", "path"):
        builder.add_text_field(name, tokenizer_name=PLAIN, index_option="position")
    builder.add_text_field("generation", tokenizer_name="raw", index_option="basic")
    builder.add_bytes_field("payload", stored=True)
    return builder.build()


def make_documents(
    path: str, lines: Sequence[str], blocks: Sequence[IndexedBlock], vocabulary: Vocabulary
) -> Iterator[tantivy.Document]:
    """Yield the documents of a file's blocks; all their code is not much more than the file."""

    def searchable(text: str) -> str:
        return f"{vocabulary.spaced(text)} {vocabulary.names(text)}"

    path_words, room = searchable(path), room_for("\n".join(lines))
    for block, words, names in blocks:
        document = tantivy.Document()
        document.add_text("file_path", path)
        document.add_text("type", block.type)
        document.add_unsigned("first", block.first)
        document.add_unsigned("last", block.last)
        document.add_text("words", words)
        document.add_text("names", names)
        document.add_text("name", searchable(block.name))
        document.add_text("defined", searchable(block.name.rpartition(".")[2]))
        document.add_text("prototype", searchable(block.prototype))
        document.add_text("docstring", searchable(block.docstring))
        document.add_text("path", path_words)
        code = code_of(lines, block)[: min(CODE, max(room, 0))]
        room -= len(code)
        document.add_bytes("payload", json.dumps([path, *block, code]).encode())
        yield document


def register_tokenizers(index: tantivy.Index) -> None:
    """Give an opened index the tokenizers of its fields."""
    for name, filters in ((STEMMED, [tantivy.Filter.stemmer("english")]), (PLAIN, [])):
        builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
        for one in (tantivy.Filter.remove_long(_LONGEST_WORD), tantivy.Filter.lowercase(), *filters):
            builder = builder.filter(one)
        index.register_tokenizer(name, builder.build())


def compile_query(
    index: tantivy.Index, text: str, folders: Sequence[str] = (), *, root: str = "", matching: Matching = "exact"
) -> Query:
    """Return tantivy's query, for one of MATCHINGS.

    Only blocks of files below one of the ``folders`` match; without any, all do. ``root`` is the absolute path of the
    tree. Raises QueryError.
    """
    node = parse_query(text)
    node = _nearest(node, matching == "anywhere") if matching in ("nearest", "anywhere") else node
    query = _Compiler(index, root, matching == "prefixes", _NAME_WEIGHT / max(1, _words(node))).node(node)
    if not folders:
        return query
    below = [Query.regex_query(index.schema, "file_path", f"{re.escape(folder)}/.*") for folder in folders]
    place = Query.const_score_query(Query.boolean_query([(Occur.Should, one) for one in below]), 0.0)
    return Query.boolean_query([(Occur.Must, query), (Occur.Must, place)])


class _Compiler:
    def __init__(self, index: tantivy.Index, root: str, prefixes: bool, name_weight: float) -> None:
        self._index, self._schema, self._root, self._prefixes = index, index.schema, root, prefixes
        self._name_weight = name_weight

    def node(self, node: QueryNode) -> Query:
        query = self._group(node) if isinstance(node, Group) else self._term(node)
        return query if node.boost == 1.0 else Query.boost_query(query, node.boost)

    def _group(self, group: Group) -> Query:
        clauses = [(_OCCURRENCES[occurrence], self.node(node)) for occurrence, node in group.clauses]
        if all(occurrence == "must_not" for occurrence, _ in group.clauses):
            clauses.append((Occur.Must, Query.term_set_query(self._schema, "type", list(TYPES))))
        return Query.boolean_query(clauses)

    def _term(self, term: Term) -> Query:
        match term.field:
            case "type":
                return self._type(term)
            case "lines":
                return self._lines(term)
            case "file_path":
                return self._path(term)
            case "name" | "prototype" | "docstring" as field:
                return self._in_field(field, term)
            case _:
                return self._in_text(term)

    def _type(self, term: Term) -> Query:
        if term.kind not in ("word", "phrase", "wildcard"):
            raise QueryError(f"type: takes one of the types, like type: CLASS: they are {', '.join(TYPES)}.")
        pattern = re.sub(r"(\.\*)+", ".*", term.text) if term.kind == "wildcard" else re.escape(term.text.strip())
        kinds = [kind for kind in TYPES if re.fullmatch(pattern, kind, re.IGNORECASE)]
        if not kinds:
            named = "that fits" if term.kind == "wildcard" else repr(term.text)
            raise QueryError(f"There is no type {named}: the types are {', '.join(TYPES)}.")
        return Query.term_set_query(self._schema, "type", kinds)

    def _lines(self, term: Term) -> Query:
        bounds = term.text if term.kind == "range" else f"{term.text} TO {term.text}"
        low, _, high = bounds.partition(" TO ")
        if not low.isdecimal() or len(low) > 9 or (term.kind not in ("range", "word")):
            raise QueryError(
                f"lines: takes a number or a range, like lines: 12 or lines:[10 TO 20], not {term.text!r}."
            )
        if high != "*" and int(high) < int(low):
            raise QueryError("The range of lines has no line: the smaller number stands first, as in lines:[10 TO 20].")
        unsigned = tantivy.FieldType.Unsigned
        clauses = [Query.range_query(self._schema, "last", unsigned, lower_bound=int(low))]
        if high != "*":
            clauses.append(Query.range_query(self._schema, "first", unsigned, upper_bound=int(high)))
        return Query.boolean_query([(Occur.Must, clause) for clause in clauses])

    def _path(self, term: Term) -> Query:
        """Match the whole path, a part of it that begins after a slash, or words of it in their order."""
        if term.kind in ("wildcard", "regex"):
            pattern = term.text.removeprefix(re.escape("./")).removeprefix(re.escape(f"{self._root}/"))
            return self._regex("file_path", f"(.*/)?({pattern})")
        path = self._relative(term.text.strip().removeprefix("./"))
        phrase = self._phrase("path", path, term.slop)
        whole = Query.term_query(self._schema, "file_path", path)
        return Query.boolean_query([(Occur.Should, whole), (Occur.Should, phrase)])

    def _relative(self, path: str) -> str:
        """Return a path in the tree; of an absolute one elsewhere, as in a copy, the end that is an indexed file."""
        if self._root and path.startswith(f"{self._root}/"):
            return path.removeprefix(self._root).strip("/")
        if path.startswith("/"):
            searcher, parts = self._index.searcher(), path.strip("/").split("/")
            ends = ("/".join(parts[start:]) for start in range(len(parts)))
            return next((end for end in ends if searcher.doc_freq("file_path", end)), path.strip("/"))
        return path.strip("/")

    def _in_field(self, field: str, term: Term) -> Query:
        if term.kind == "fuzzy":
            return Query.fuzzy_term_query(self._schema, field, term.text.lower(), term.slop)
        if term.kind in ("wildcard", "regex"):
            return self._regex(field, term.text.lower())
        words = identifiers(term.text)
        if term.kind == "word" and len(words) == 1 and self._prefixes:
            return self._regex(field, f"{re.escape(words[0].lower())}.*")
        return self._phrase(field, term.text, term.slop)

    def _in_text(self, term: Term) -> Query:
        if term.kind == "fuzzy":
            return Query.fuzzy_term_query(self._schema, "names", term.text.lower(), term.slop)
        if term.kind in ("wildcard", "regex"):
            return self._regex("names", term.text.lower())
        clauses = [self._stemmed(term.text, term.slop)]
        words = identifiers(term.text)
        if len(words) == 1:
            whole = Query.term_query(self._schema, "defined", words[0].lower())
            clauses.append(Query.boost_query(whole, self._name_weight))
        if len(words) == 1 and self._prefixes:
            prefix = self._regex("names", f"{re.escape(words[0].lower())}.*")
            clauses.append(Query.boost_query(prefix, _PREFIX_WEIGHT))
        if term.field is None:
            for field, weight in (("docstring", _DOCSTRING_WEIGHT), ("path", _PATH_WEIGHT)):
                clauses.append(Query.boost_query(self._phrase(field, term.text, term.slop), weight))
        return Query.boolean_query([(Occur.Should, clause) for clause in clauses])

    def _stemmed(self, text: str, slop: int) -> Query:
        """Return the phrase of a text's sub-words, by tantivy's own stemmer."""
        words = _parts(text)
        if not words:
            return Query.empty_query()
        return self._index.parse_query(f'words:"{" ".join(words)}"' + (f"~{slop}" if slop and len(words) > 1 else ""))

    def _phrase(self, field: str, text: str, slop: int) -> Query:
        words: list[str | tuple[int, str]] = [word.lower() for word in _parts(text)]
        if not words:
            return Query.empty_query()
        if len(words) == 1:
            return Query.term_query(self._schema, field, str(words[0]))
        return Query.phrase_query(self._schema, field, words, slop)

    def _regex(self, field: str, pattern: str) -> Query:
        if len(pattern) > 200:
            raise QueryError("A wildcard or regular expression may have 200 characters.")
        try:
            return Query.regex_query(self._schema, field, pattern)
        except ValueError as error:
            raise QueryError(f"The regular expression /{pattern}/ cannot be read: {error}.") from None


def _nearest(node: QueryNode, anywhere: bool) -> QueryNode:
    """Return a query for any of the sub-words of a query's words, in any field, that keeps its other conditions.

    ``anywhere`` drops the conditions on the place.
    """
    words, conditions = list[QueryNode](), list[tuple[Occurrence, QueryNode]]()
    _divide(node, words, conditions)
    if not words:
        return node
    any_word = Group(tuple(("should", word) for word in dict.fromkeys(words)))
    kept = [condition for condition in conditions if condition[0] == "must_not" or not anywhere]
    return Group((("must", any_word), *kept))


def _divide(node: QueryNode, words: list[QueryNode], conditions: list[tuple[Occurrence, QueryNode]]) -> None:
    if isinstance(node, Group):
        if all(isinstance(inner, Term) and inner.field in _PLACES for _, inner in node.clauses):
            conditions.append(("must", node))
            return
        for occurrence, inner in node.clauses:
            if occurrence == "must_not":
                conditions.append((occurrence, inner))
            else:
                _divide(inner, words, conditions)
    elif node.field in _PLACES:
        conditions.append(("must", node))
    else:
        if node.kind in ("word", "phrase", "wildcard"):
            parts = [part for part in _parts(node.text) if len(part) >= _SHORTEST]
            words += [Term(None, "word", part, boost=node.boost) for part in parts]
        if node.kind not in ("word", "phrase"):
            words.append(node)


def _words(node: QueryNode) -> int:
    """Return the number of words that may be in a block's name, without those that must not be in the block."""
    if isinstance(node, Group):
        return sum(_words(clause) for occurrence, clause in node.clauses if occurrence != "must_not")
    return node.kind == "word" and node.field in (None, "text")


def _parts(text: str) -> Sequence[str]:
    """Return the sub-words of a text; underscores alone are none."""
    return [part for word in identifiers(text) for part in sub_words(word)]
