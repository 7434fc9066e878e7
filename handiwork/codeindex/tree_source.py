"""Blocks of languages other than Python by their tree-sitter grammars, which also read files with errors.

The nodes at the top of a file are blocks, as are those in namespaces, modules and branches of the preprocessor. Types
(classes, structs, interfaces, enums, traits) are classes, and the functions and types in them are blocks too, as are
the functions in an object that a JavaScript module exports or a variable is set to, and the definitions that PHP makes
under a condition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
        "compact_constructor_declaration destructor_declaration operator_declaration conversion_operator_declaration "
        "indexer_declaration event_declaration method_elem"
    ),
    "CLASS": (
        "class_declaration abstract_class_declaration class interface_declaration enum_declaration "
        "type_alias_declaration record_declaration annotation_type_declaration type_spec type_alias struct_item "
        "enum_item trait_item union_item type_item impl_item struct_specifier union_specifier enum_specifier "
        "class_specifier type_definition alias_declaration trait_declaration struct_declaration delegate_declaration "
        "concept_definition"
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
    "interface_body object_type body_statement field_declaration_list global_statement singleton_class "
    "foreign_mod_item labeled_statement else_clause else_if_clause colon_block ERROR"
)
_WRAPPERS = frozenset({"export_statement", "template_declaration", "expression_statement"})
"""Nodes that stand for the one definition in them."""

_COMMENTS = frozenset({"comment", "line_comment", "block_comment"})
_SKIPPED = _names(
    "php_tag text empty_statement access_specifier identifier qualified_identifier namespace_identifier "
    "namespace_name constant visibility_modifier string_literal string hash_bang_line inner_attribute_item"
)
_IMPORTING = frozenset({"require", "require_relative", "load", "autoload"})
_FUNCTION_VALUES = _names(
    "arrow_function function_expression generator_function function func_literal closure_expression "
    "anonymous_function lambda_expression lambda"
)
_FIELDS = frozenset({"field_definition", "public_field_definition", "pair"})
"""Members of classes and objects that may be set to a function."""
_SPECIFIERS = frozenset({"struct_specifier", "union_specifier", "enum_specifier", "class_specifier"})
_MEMBERS: frozenset[BlockType] = frozenset({"METHOD", "CLASS"})
"""The blocks in a type: fields and the like are found with it."""
_DEFINITIONS: frozenset[BlockType] = frozenset({"FUNCTION", "CLASS"})
"""The blocks in a condition."""
_EXPORTED = re.compile(rb"\s*(?:\([^()]*\)\s*)?(?P<name>\w+(?:::\w+)*)\s*(?:final\s*)?(?P<base>:(?!:)[^;{]*\{)?")
"""Follows the macro in the header of a class, which may have arguments."""

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

    def _children(self, parent: Node, owner: str, depth: int, kinds: frozenset[BlockType] | None = None) -> None:
        """Read the nodes in ``parent``: all blocks, or those of some ``kinds``, named after their ``owner``."""
        comments: list[Node] = []
        attribute: Node | None = None
        for node in parent.children:
            if len(self._blocks) > BLOCKS:
                return
            if node.type in _COMMENTS:
                if comments and node.start_point[0] > comments[-1].end_point[0] + 1:
                    comments = []
                comments.append(node)
                continue
            if node.type == "attribute_item":  # Rust's attributes precede their item
                attribute = attribute or node
                continue
            self._node(attribute or node, node, comments, owner, depth, kinds)
            comments, attribute = [], None

    def _node(
        self,
        begin: Node,
        node: Node,
        comments: Sequence[Node],
        owner: str,
        depth: int,
        kinds: frozenset[BlockType] | None,
    ) -> None:
        inner = _unwrapped(node)
        if self._is_container(inner):
            if depth < _DEEPEST:
                self._children(inner.child_by_field_name("body") or inner, owner, depth + 1, kinds)
            return
        is_empty = inner.type == "expression_statement" and not inner.named_child_count
        if is_empty or inner.type in _SKIPPED or not inner.is_named:
            return
        kind = self._kind(inner, is_member=kinds == _MEMBERS)
        if node.type == "export_statement" and node.child_by_field_name("source") is not None:
            kind = "IMPORT"
        name = self._name(inner)[:NAME] if kind in ("FUNCTION", "CLASS", "METHOD", "ASSIGNMENT") else ""
        if owner and name:
            name = f"{owner}.{name}"
        elif kind == "METHOD" and (receiver := inner.child_by_field_name("receiver")) is not None:
            name = f"{self._text(_receiver_type(receiver))}.{name}"
        if kinds is None or kind in kinds:
            first, last = begin.start_point[0] + 1, _last_row(node) + 1
            is_definition = kind in ("FUNCTION", "CLASS", "METHOD")
            prototype = collapse(self._prototype(node, inner))[:PROTOTYPE] if is_definition else ""
            self._blocks.append(Block(kind, first, last, name, prototype, self._docstring(comments, first)))
        if depth < _DEEPEST:
            self._inside(inner, kind, name, owner, depth + 1)

    def _inside(self, node: Node, kind: BlockType, name: str, owner: str, depth: int) -> None:
        """Read the blocks in a type, in objects of JavaScript, and in conditions of PHP."""
        if kind == "CLASS" and (body := _body(node)) is not None:
            self._children(body, name or owner, depth, _MEMBERS)
        elif kind == "CONDITIONAL" and self._language == "php":
            self._children(node, owner, depth, _DEFINITIONS)
        elif self._language in ("javascript", "typescript", "tsx"):
            for key, value in _objects(node):
                prefix = self._text(key).strip("\"'") if key is not None else "default"
                self._children(value, f"{owner}.{prefix}" if owner else prefix, depth, _MEMBERS)

    def _is_container(self, node: Node) -> bool:
        if node.type == "type_declaration":  # Go's groups of types
            return True
        return node.type in _CONTAINERS or (node.type == "module" and self._language in ("typescript", "tsx"))

    def _kind(self, node: Node, *, is_member: bool) -> BlockType:
        kind = "CLASS" if node.type == "module" else _KINDS.get(node.type, "OTHER")
        if node.type == "call":
            method = node.child_by_field_name("method")
            return "IMPORT" if method is not None and self._text(method) in _IMPORTING else "OTHER"
        if node.type == "property_declaration" and self._language == "csharp":
            return "METHOD"
        if node.type in _FIELDS and _function_value(node) is not None:
            return "METHOD"
        if self._exported_class(node) is not None:
            return "CLASS"
        if node.type in ("declaration", "field_declaration") and _has_declarator(
            node, "function_declarator", "operator_cast"
        ):
            kind = "FUNCTION"
        if kind == "ASSIGNMENT" and _function_value(node) is not None:
            kind = "FUNCTION"
        if kind == "ASSIGNMENT" and node.type == "declaration" and _body(node) is not None:
            kind = "CLASS"  # struct { ... } origin;
        if kind == "FUNCTION" and (is_member or _has_declarator(node, "qualified_identifier")):
            kind = "METHOD"
        return kind

    def _exported_class(self, node: Node) -> re.Match[bytes] | None:
        """Return the name of a class that C++'s grammar takes for something else: class EXPORT Stack : Base { ... }."""
        if node.type not in ("function_definition", "declaration") or not _is_exported_class(node):
            return None
        name = _EXPORTED.match(self._source, node.child_by_field_name("type").end_byte, node.end_byte)
        return name if name and (node.type == "function_definition" or name["base"]) else None

    def _name(self, node: Node) -> str:
        if exported := self._exported_class(node):
            return exported["name"].decode("utf-8", "replace")
        match node.type:
            case "impl_item":
                while (inner := node.child_by_field_name("type")) is not None:
                    node = inner
                return self._text(node)
            case "destructor_declaration":
                return f"~{self._text(node.child_by_field_name('name'))}"
            case "operator_declaration":
                return f"operator {self._text(node.child_by_field_name('operator'))}"
            case "conversion_operator_declaration":
                return f"operator {self._text(node.child_by_field_name('type'))}"
            case "indexer_declaration":
                return "this"
            case "field_definition" | "pair":
                key = node.child_by_field_name("property") or node.child_by_field_name("key")
                return self._text(key).strip("\"'")
            case "const_declaration" | "var_declaration" | "variable_declaration" | "lexical_declaration":
                return ", ".join(self._text(name) for name in _declared(node)) or self._declarator(node)
            case _:
                return self._declarator(node)

    def _declarator(self, node: Node) -> str:
        """Return the name in a node, through its declarators: C's stand around the name."""
        fields = ("declarator", "name") if self._language in ("c", "cpp") else _NAMES
        top = node
        while node.type not in ("qualified_identifier", "operator_cast"):
            following = next((child for field in fields if (child := node.child_by_field_name(field))), None)
            if following is None and node.type in ("reference_declarator", "parenthesized_declarator"):
                following = next(reversed(node.named_children), None)
            if following is None:
                break
            node = following
        if node == top:
            return ""
        cast = node
        while cast is not None and cast.type == "qualified_identifier":
            cast = cast.child_by_field_name("name")
        if cast is not None and cast.type == "operator_cast":  # operator bool() const
            end = cast.child_by_field_name("declarator").start_byte
            return collapse(self._source[node.start_byte : end].decode("utf-8", "replace"))
        return collapse(self._text(node))

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
    """Return the definition in an export, a template, an expression statement or a declaration of a type."""
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
    if node.type in ("declaration", "field_declaration"):  # C's struct point { ... } origin;
        specifier = node.child_by_field_name("type")
        if specifier is not None and specifier.type in _SPECIFIERS and specifier.child_by_field_name("body"):
            return specifier if specifier.child_by_field_name("name") else node
    if node.type == "type_declaration" and all(child.type != "(" for child in node.children):
        return next((child for child in node.named_children if child.type in _KINDS), node)
    return node


def _is_exported_class(node: Node) -> bool:
    """Return whether a definition has the keyword of a class and is no function."""
    kind = node.child_by_field_name("type")
    is_function = _has_declarator(node, "function_declarator", "operator_cast")
    return kind is not None and kind.type in _SPECIFIERS and not is_function


def _body(node: Node) -> Node | None:
    """Return the body of a definition, between its braces or behind its header."""
    body = node.child_by_field_name("body")
    if body is None and (value := _function_value(node)) is not None:
        body = value.child_by_field_name("body") or value.child_by_field_name("block")
    if body is not None:
        return body
    match node.type:
        case "declaration" | "type_definition" | "field_declaration":
            parts = (child for child in node.named_children if child.type != "init_declarator")
            return next((inner for part in parts if (inner := part.child_by_field_name("body"))), None)
        case "type_spec":
            inner = node.child_by_field_name("type")
            return inner if inner is not None and inner.type in ("struct_type", "interface_type") else None
        case "macro_definition":
            name = node.child_by_field_name("name")
            return None if name is None else name.next_sibling
        case "property_declaration" | "indexer_declaration" | "event_declaration":
            return node.child_by_field_name("accessors") or node.child_by_field_name("value")
        case _:
            return None


def _function_value(node: Node) -> Node | None:
    """Return the function that a variable or a member is set to."""
    values = [node.child_by_field_name("right"), node.child_by_field_name("value")]
    values += [child.child_by_field_name("value") for child in node.named_children]
    return next((value for value in map(_single, values) if value is not None and _is_function(value)), None)


def _single(value: Node | None) -> Node | None:
    """Return the only one of a list of Go's values."""
    return value.named_children[0] if value and value.type == "expression_list" and value.named_children else value


def _is_function(value: Node) -> bool:
    if value.type == "call" and value.child_by_field_name("block") is not None:
        method = value.child_by_field_name("method")
        return method is not None and method.text in (b"lambda", b"proc")
    return value.type in _FUNCTION_VALUES


def _objects(node: Node) -> Iterator[tuple[Node | None, Node]]:
    """Yield the objects that a node of JavaScript exports or sets names to, each with the node of its name."""
    for one in (node, *node.named_children):
        value = one.child_by_field_name("value") or one.child_by_field_name("right")
        if value is not None and value.type == "object":
            fields = ("name", "left", "key", "property")
            yield next((key for field in fields if (key := one.child_by_field_name(field))), None), value


def _declared(node: Node) -> list[Node]:
    """Return the names in a declaration of constants or variables."""
    specs = [spec for child in node.named_children for spec in (child, *_listed(child))]
    return [name for spec in specs for name in spec.children_by_field_name("name") if name.is_named]


def _listed(node: Node) -> list[Node]:
    return node.named_children if node.type == "var_spec_list" else []


def _receiver_type(receiver: Node) -> Node:
    """Return the name of the type in a receiver of Go, through its pointer and without its type parameters."""
    node = receiver
    while (inner := node.child_by_field_name("type") or next(iter(node.named_children), None)) is not None:
        node = inner
    return node


def _has_declarator(node: Node, *kinds: str) -> bool:
    """Return whether a declarator is of one of the kinds, through the pointers and references around it."""
    for _ in range(_DEEPEST):
        following = node.child_by_field_name("declarator")
        if following is None:
            following = next((child for child in node.named_children if child.type.endswith("declarator")), None)
        if following is None:
            return False
        if following.type in kinds:
            return True
        node = following
    return False


def _last_row(node: Node) -> int:
    """Return the row of the node's last character: some nodes end with their newline."""
    row, column = node.end_point[0], node.end_point[1]
    return row - 1 if column == 0 and row > node.start_point[0] else row
