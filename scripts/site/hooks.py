"""The hooks of mkdocs: pages made at build time, and links that hold in the repository as well as on the site.

README.md is the first page, CONTRIBUTING.md and the reference are further ones. A file of the repository to which a
page links gets a page of its own with the file's text, so that the site is complete without the repository.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # mkdocs loads this file by its path

from scripts.site import reference  # noqa: E402 - after the path

DOCS = "docs"
FROM_THE_ROOT = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md"}
LINK = re.compile(r"(\]\()([^()\s#:]+)((?:#[^()\s]*)?\))")
"""A link to a path, in groups: before it, the path, and behind it."""
MARK = re.compile(r"^<!-- [\w ]+:.*-->\n", re.MULTILINE)
"""The marks of code blocks, which are for the tests."""
LANGUAGES = {".py": "python", ".tsx": "tsx", ".toml": "toml", ".md": "markdown", ".json": "json", ".yaml": "yaml"}


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are made at build time."""
    made = {site: (ROOT / path).read_text() for path, site in FROM_THE_ROOT.items()} | reference.pages()
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    texts = {file.src_uri: file.content_string for file in files.documentation_pages()}
    for source in sorted({path for page, text in texts.items() for path in _linked(page, text)}):
        page = File.generated(config, _page_of(source), content=_listing(source))
        page.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(page)
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the text of a page without the tests' marks, and with links that hold on the site."""
    if page.file.src_uri.startswith(("source/", "reference/")):
        return markdown
    here = posixpath.dirname(page.file.src_uri) or "."

    def on_the_site(link: re.Match[str]) -> str:
        path = _in_repository(page.file.src_uri, link[2])
        return f"{link[1]}{posixpath.relpath(_page_of(path), here)}{link[3]}"

    return LINK.sub(on_the_site, MARK.sub("", markdown))


def _in_repository(page: str, link: str) -> str:
    """Return the path in the repository that a page of the site links to."""
    if page in FROM_THE_ROOT.values():
        return posixpath.normpath(link)
    return posixpath.normpath(posixpath.join(DOCS, posixpath.dirname(page), link))


def _page_of(path: str) -> str:
    """Return the page, or the picture, of the site for a path of the repository."""
    if path in FROM_THE_ROOT:
        return FROM_THE_ROOT[path]
    return path.removeprefix(f"{DOCS}/") if path.startswith(f"{DOCS}/") else f"source/{path}.md"


def _linked(page: str, text: str) -> Iterator[str]:
    """Yield the paths of the repository, outside of docs/, that a page links to and that are there."""
    if page.startswith("reference/"):
        return
    for link in LINK.finditer(text):
        path = _in_repository(page, link[2])
        if _page_of(path).startswith("source/") and (ROOT / path).exists():
            yield path


def _listing(path: str) -> str:
    """Return a page with a file's text, or with the texts of a folder's files."""
    source = ROOT / path
    files = [source] if source.is_file() else sorted(file for file in source.iterdir() if file.is_file())
    return "\n\n".join([f"# {path}", *(_block(file, alone=source.is_file()) for file in files)])


def _block(file: Path, *, alone: bool) -> str:
    text = file.read_text()
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    title = "" if alone else f"## {file.name}\n\n"
    return f"{title}{fence}{LANGUAGES.get(file.suffix, 'text')}\n{text.rstrip()}\n{fence}"
