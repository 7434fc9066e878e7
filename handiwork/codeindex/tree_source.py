"""Blocks of languages other than Python by their tree-sitter grammars, which also read files with errors.

The nodes at the top of a file are blocks, as are those in namespaces, modules and branches of the preprocessor. Types
(classes, structs, interfaces, enums, traits) are classes, and the functions and types in them are blocks too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from handiwork.codeindex.blocks import BLOCKS, NAME, PROTOTYPE, Block, BlockType, collapse
from handiwork.sandbox.inside.syntax.check import parser_of

Node = Any
"""A tree-sitter node; the wheels of grammars and parser are an extra, which the type checker lacks."""

LANGUAGES = frozenset({"javascript", "typescript", "tsx", "java", "go", "rust", "c", "cpp", "ruby", "php", "csharp"})

_DEEPEST = 20
"""Namespaces and classes within each other that are read."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TYPES: dict[BlockType, str] = {
    "FUNCTION": (
        "function_declaration generator_function_declaration function_signature function_definition function_item "
        "function_signature_item local_function_statement macro_definition preproc_function_def method "
        "singleton_method"
    ),
    "METHOD": (
        "method_definition method_signature abstract_method_signature method_declaration constructor_declaration "
        "compact_constructor_declaration destructor_declaration operator_declaration"
    ),
    "CLASS": (
        "class_declaration abstract_class_declaration class interface_declaration enum_declaration "
        "type_alias_declaration record_declaration annotation_type_declaration type_declaration struct_item enum_item "
        "trait_item union_item type_item impl_item struct_specifier union_specifier enum_specifier class_specifier "
        "type_definition alias_declaration trait_declaration struct_declaration delegate_declaration concept_definition"
    ),
    "ASSIGNMENT": (
        "lexical_declaration variable_declaration const_declaration var_declaration const_item static_item "
        "assignment assignment_expression augmented_assignment operator_assignment preproc_def declaration"
    ),
    "IMPORT": (
        "import_statement import_declaration use_declaration "
        "extern_crate_declaration preproc_include using_declaration using_directive namespace_use_declaration "
        "include_expression include_once_expression require_expression require_once_expression"
    ),
    "CONDITIONAL": (
        "if_statement for_statement for_in_statement foreach_statement for_each_statement switch_statement if unless "
        "if_modifier unless_modifier for case"
    ),
}
_KINDS: dict[str, BlockType] = {node: kind for kind, nodes in _TYPES.items() for node in nodes.split()}
_CONTAINERS = _names(
    "internal_module ambient_declaration statement_block mod_item declaration_list linkage_specification "
    "namespace_definition namespace_declaration file_scoped_namespace_declaration compound_statement preproc_ifdef "
    "preproc_if preproc_else preproc_elif preproc_elifdef enum_body enum_body_declarations class_body "
    "interface_body object_type body_statement field_declaration_list global_statement ERROR"
)
_WRAPPERS = frozenset({"export_statement", "template_declaration", "expression_statement"})
"""Nodes that stand for the one definition in them."""

_COMMENTS = frozenset({"comment", "line_comment", "block_comment"})
_SKIPPED = _names(
    "php_tag text empty_statement access_specifier identifier qualified_identifier namespace_identifier "
    "namespace_name constant visibility_modifier string_literal string hash_bang_line inner_attribute_item"
)
_IMPORTING = frozenset({"require", "require_relative", "load", "autoload"})
_FUNCTION_VALUES = frozenset({"arrow_function", "function_expression", "generator_function", "function"})
_NAMES = ("name", "declarator", "type", "left", "path")


def tree_blocks(language: str, text: str) -> list[Block] | None:
    """Return the blocks of a file, None if no grammar of its language is installed."""
    parser = parser_of(language) if language in LANGUAGES else None
    if parser is None:
        return None
    return _Reader(language, text.encode("utf-8", "replace")).read(parser)


class _Reader:
    def __init__(self, language: str, source: bytes) -> None:
        self._language, self._source = language, source
        self._blocks: list[Block] = []

    def read(self, parser: Any) -> list[Block]:
        self._children(parser.parse(self._source).root_node, "", 0)
        return self._blocks

    def _children(self, parent: Node, owner: str, depth: int) -> None:
        comments: list[Node] = []
        attribute: Node | None = None
        for node in parent.children:
            if len(self._blocks) >= BLOCKS:
                return
            if node.type in _COMMENTS:
                if comments and node.start_point[0] > comments[-1].end_point[0] + 1:
                    comments = []
                comments.append(node)
                continue
            if node.type == "attribute_item":  # Rust's attributes precede their item
                attribute = attribute or node
                continue
            self._node(attribute or node, node, comments, owner, depth)
            comments, attribute = [], None

    def _node(self, begin: Node, node: Node, comments: Sequence[Node], owner: str, depth: int) -> None:
        inner = _unwrapped(node)
        if self._is_container(inner):
            if depth < _DEEPEST:
                self._children(inner.child_by_field_name("body") or inner, owner, depth + 1)
            return
        if inner.type in _SKIPPED or not inner.is_named:
            return
        kind = self._kind(inner, owner)
        if node.type == "export_statement" and node.child_by_field_name("source") is not None:
            kind = "IMPORT"
        if owner and kind not in ("METHOD", "CLASS"):
            return  # fields and the like are found with their class
        name = self._name(inner)[:NAME] if kind in ("FUNCTION", "CLASS", "METHOD", "ASSIGNMENT") else ""
        if owner and name:
            name = f"{owner}.{name}"
        elif kind == "METHOD" and (receiver := inner.child_by_field_name("receiver")) is not None:
            name = f"{self._text(receiver).strip('()*& ').split()[-1].lstrip('*&')}.{name}"
        first, last = begin.start_point[0] + 1, _last_row(node) + 1
        if kind in ("FUNCTION", "CLASS", "METHOD"):
            prototype = collapse(self._prototype(node, inner))[:PROTOTYPE]
            self._blocks.append(Block(kind, first, last, name, prototype, self._docstring(comments, first)))
        else:
            self._blocks.append(Block(kind, first, last, name, "", self._docstring(comments, first)))
        body = _body(inner)
        if kind == "CLASS" and body is not None and depth < _DEEPEST:
            self._children(body, name or owner, depth + 1)

    def _is_container(self, node: Node) -> bool:
        return node.type in _CONTAINERS or (node.type == "module" and self._language in ("typescript", "tsx"))

    def _kind(self, node: Node, owner: str) -> BlockType:
        kind = "CLASS" if node.type == "module" else _KINDS.get(node.type, "OTHER")
        if node.type == "call":
            method = node.child_by_field_name("method")
            return "IMPORT" if method is not None and self._text(method) in _IMPORTING else "OTHER"
        if node.type in ("declaration", "field_declaration") and _descend(node, "function_declarator") is not None:
            kind = "FUNCTION"
        if kind == "ASSIGNMENT" and _function_value(node) is not None:
            kind = "FUNCTION"
        if kind == "ASSIGNMENT" and node.type == "declaration" and _body(node) is not None:
            kind = "CLASS"  # struct point { ... } origin;
        if kind == "FUNCTION" and (owner or self._is_qualified(node)):
            kind = "METHOD"
        return kind

    def _is_qualified(self, node: Node) -> bool:
        declarator = _descend(node, "function_declarator")
        inner = declarator.child_by_field_name("declarator") if declarator is not None else None
        return inner is not None and inner.type == "qualified_identifier"

    def _name(self, node: Node) -> str:
        if node.type == "impl_item":
            return self._text(node.child_by_field_name("type")).partition("<")[0]
        if node.type in ("type_declaration", "const_declaration", "var_declaration", "variable_declaration"):
            specs = [child for child in node.named_children if child.child_by_field_name("name") is not None]
            if specs:
                return ", ".join(self._text(spec.child_by_field_name("name")) for spec in specs)
        if node.type == "lexical_declaration":
            return ", ".join(
                self._text(child.child_by_field_name("name"))
                for child in node.named_children
                if child.type == "variable_declarator"
            )
        fields = ("declarator", "name") if self._language in ("c", "cpp") else _NAMES
        top = node
        while node.type != "qualified_identifier":
            following = next((child for field in fields if (child := node.child_by_field_name(field))), None)
            if following is None:
                break
            node = following
        return "" if node == top else collapse(self._text(node))

    def _prototype(self, outer: Node, node: Node) -> str:
        """Return the text before the definition's body."""
        body = _body(node)
        end = outer.end_byte if body is None else body.start_byte
        text = self._source[outer.start_byte : end].decode("utf-8", "replace")
        if body is None and self._language == "ruby":
            text = text.partition("\n")[0]
        return text.rstrip(" \n{=;")

    def _docstring(self, comments: Sequence[Node], line: int) -> str:
        """Return the text of the comments that end on the line before the block, without their marks."""
        if not comments or _last_row(comments[-1]) + 1 < line - 3:
            return ""
        lines = [line for comment in comments for line in self._text(comment).split("\n")]
        stripped = (line.strip().strip("/*!#").strip() for line in lines)
        return "\n".join(line for line in stripped if line)

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _unwrapped(node: Node) -> Node:
    """Return the definition in an export, a template or an expression statement."""
    for _ in range(_DEEPEST):
        if node.type not in _WRAPPERS:
            break
        fields = ("declaration", "definition")
        inner = next((child for field in fields if (child := node.child_by_field_name(field))), None)
        if inner is None:
            inner = next((c for c in reversed(node.named_children) if c.type in _KINDS or c.type in _WRAPPERS), None)
        if inner is None and node.type == "expression_statement" and node.named_child_count:
            inner = node.named_children[0]
            if inner.type not in ("internal_module", "call"):
                break
        if inner is None:
            break
        node = inner
    return node


def _body(node: Node) -> Node | None:
    """Return the body of a definition, between its braces or behind its header."""
    body = node.child_by_field_name("body")
    if body is None and (value := _function_value(node)) is not None:
        body = value.child_by_field_name("body")
    if body is None and node.type in ("declaration", "type_definition", "field_declaration", "type_declaration"):
        for child in node.named_children:
            inner = child.child_by_field_name("body") or child.child_by_field_name("type")
            if inner is not None and inner.named_child_count and child.type not in ("init_declarator",):
                return inner
    return body


def _function_value(node: Node) -> Node | None:
    """Return the function that a variable is set to, in JavaScript and its kin."""
    if node.type == "assignment_expression":
        values = [node.child_by_field_name("right")]
    else:
        values = [child.child_by_field_name("value") for child in node.named_children]
    return next((value for value in values if value is not None and value.type in _FUNCTION_VALUES), None)


def _descend(node: Node, kind: str) -> Node | None:
    """Return the declarator of a kind, through the pointers and references around it."""
    for _ in range(_DEEPEST):
        following = node.child_by_field_name("declarator")
        if following is None:
            following = next((child for child in node.named_children if child.type.endswith("declarator")), None)
        if following is None or following.type == kind:
            return following
        node = following
    return None


def _last_row(node: Node) -> int:
    """Return the row of the node's last character: some nodes end with their newline."""
    row, column = node.end_point[0], node.end_point[1]
    return row - 1 if column == 0 and row > node.start_point[0] else row
