"""Stand-ins for GitHub and GitLab on loopback: their APIs with their own error bodies, and git over HTTP.

They answer as the real ones do to the requests that Handiwork sends, and refuse requests that the real ones refuse.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

Access = Literal["write", "read", "none"]
Answer = tuple[int, Any]

WORDS = "standin"
"""A part of every stand-in's tokens, for searches."""
_DOCS = {"documentation_url": "https://docs.github.com/rest"}


@dataclass
class Account:
    """A user by the ``login``; a token may have less ``scope`` than its user has ``access``."""

    login: str
    access: Access = "write"
    scope: Access = "write"


@dataclass
class Standin:
    """A forge with one repository, ``octo/greeter``, whose default branch is main."""

    kind: Literal["github", "gitlab"]
    repositories: Path
    path: str = "octo/greeter"
    accounts: dict[str, Account] = field(default_factory=dict[str, Account])
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    seen: list[tuple[str, str, dict[str, str]]] = field(default_factory=list[tuple[str, str, dict[str, str]]])
    broken: dict[str, int] = field(default_factory=dict[str, int])
    """Statuses that all requests of a method to the API get, with a page that is no JSON."""
    url: str = ""

    @property
    def host(self) -> str:
        return self.url.partition("://")[2]

    @property
    def bare(self) -> Path:
        """The bare repository that pushes go to."""
        return self.repositories / f"{self.path}.git"

    @property
    def address(self) -> str:
        """The address of the repository."""
        return f"{self.url}/{self.path}.git"

    @property
    def settings(self) -> str:
        """The lines of a settings file that make the forge known."""
        return f'[forges."{self.host}"]\nkind = "{self.kind}"\nurl = "{self.url}"\n'

    def add(self, login: str, access: Access = "write", scope: Access = "write") -> str:
        """Add an account and return its token."""
        prefix = "ghp_" if self.kind == "github" else "glpat-"
        token = f"{prefix}{WORDS}{len(self.accounts):04}{login}0123456789abcdef"
        self.accounts[token] = Account(login, access, scope)
        return token

    def branch(self, name: str) -> str:
        """Return the commit of a branch, "" without one."""
        command = ["git", "--git-dir", str(self.bare), "rev-parse", "--quiet", "--verify", f"refs/heads/{name}"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    def ahead(self, head: str, base: str) -> int:
        """Return the number of commits that ``head`` has and ``base`` lacks."""
        command = ["git", "--git-dir", str(self.bare), "rev-list", "--count", f"refs/heads/{base}..refs/heads/{head}"]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@contextmanager
def serve(kind: Literal["github", "gitlab"], folder: Path, path: str = "octo/greeter") -> Generator[Standin]:
    """Run a stand-in whose repository has a file greeting.txt in one commit on main."""
    forge = Standin(kind, folder / "repositories", path)
    source = folder / "source"
    source.mkdir(parents=True)
    (source / "greeting.txt").write_text("hello\n")
    identity = ("-c", "user.name=Octo", "-c", "user.email=octo@example.org")
    for command in (("init", "-q", "-b", "main"), ("add", "-A"), (*identity, "commit", "-qm", "first")):
        subprocess.run(["git", *command], cwd=source, check=True)
    subprocess.run(["git", "clone", "-q", "--bare", str(source), str(forge.bare)], check=True)
    subprocess.run(["git", "--git-dir", str(forge.bare), "config", "http.receivepack", "true"], check=True)

    class Handler(_Handler):
        pass

    Handler.forge = forge
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    forge.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield forge
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    forge: Standin
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
        pass

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def _handle(self) -> None:
        forge, parts = self.forge, urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        forge.seen.append((self.command, self.path, headers))
        body = self._body(headers)
        if re.search(r"\.git/(info/refs|git-receive-pack|git-upload-pack)$", parts.path):
            self._git(parts.path, parts.query, headers, body)
            return
        prefix = "/api/v3" if forge.kind == "github" else "/api/v4"
        if (status := forge.broken.get(self.command)) or not parts.path.startswith(prefix):
            self._send(status or 404, b"<html>something else</html>", "text/html")
            return
        answers = _github if forge.kind == "github" else _gitlab
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        fields: dict[str, Any] = json.loads(body) if body else {}
        status, content = answers(forge, self.command, parts.path.removeprefix(prefix), query, fields, headers)
        self._send(status, json.dumps(content).encode(), "application/json; charset=utf-8")

    def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(headers.get("content-length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _send(self, status: int, body: bytes, kind: str, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _git(self, path: str, query: str, headers: dict[str, str], body: bytes) -> None:
        """Answer as git http-backend does, to those that may push."""
        forge = self.forge
        user = "x-access-token" if forge.kind == "github" else "oauth2"
        scheme, _, given = headers.get("authorization", "").partition(" ")
        name, _, token = base64.b64decode(given).decode().partition(":") if scheme == "Basic" else ("", "", "")
        account = forge.accounts.get(token)
        if account is None or name != user:
            self._send(401, b"Authentication required\n", "text/plain", **{"www-authenticate": 'Basic realm="forge"'})
            return
        if not account.access == account.scope == "write":
            text = f"Permission to {forge.path}.git denied to {account.login}.\n"
            self._send(403, text.encode(), "text/plain; charset=utf-8")
            return
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(forge.repositories),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "REMOTE_USER": account.login,
            "CONTENT_TYPE": headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": headers.get("content-encoding", ""),
            "GIT_PROTOCOL": headers.get("git-protocol", ""),
        }
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=environment, stdout=subprocess.PIPE, check=True
        ).stdout
        head, _, content = done.partition(b"\r\n\r\n")
        found = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(found.pop("Status", "200").split()[0])
        kind = found.pop("Content-Type", "text/plain")
        self._send(status, content, kind, **{name.lower(): value for name, value in found.items()})


def _github(
    forge: Standin, method: str, path: str, query: dict[str, str], fields: dict[str, Any], headers: dict[str, str]
) -> Answer:
    """Answer as GitHub's REST API, version 2022-11-28."""
    account = forge.accounts.get(headers.get("authorization", "").removeprefix("Bearer "))
    if account is None:
        return 401, {"message": "Bad credentials", **_DOCS, "status": "401"}
    missing = 404, {"message": "Not Found", **_DOCS, "status": "404"}
    if "application/vnd.github+json" not in headers.get("accept", "") or not headers.get("user-agent"):
        return 415, {"message": "Unsupported 'Accept' header", **_DOCS, "status": "415"}
    at = f"/repos/{forge.path}"
    match method, path:
        case "GET", "/user":
            return 200, {"login": account.login, "id": 1, "type": "User"}
        case _ if account.access == "none" or not path.startswith(at):
            return missing
        case "GET", _ if path == at:
            may = {"admin": False, "maintain": False, "push": account.access == "write", "triage": False, "pull": True}
            return 200, {"full_name": forge.path, "default_branch": "main", "private": True, "permissions": may}
        case "GET", _ if path.startswith(f"{at}/branches/"):
            name = unquote(path.removeprefix(f"{at}/branches/"))
            if not forge.branch(name):
                return 404, {"message": "Branch not found", **_DOCS, "status": "404"}
            return 200, {"name": name, "commit": {"sha": forge.branch(name)}, "protected": False}
        case "GET", _ if path == f"{at}/pulls":
            owner = forge.path.partition("/")[0]
            return 200, [
                {**request, "head": {**request["head"], "sha": forge.branch(request["head"]["ref"])}}
                for request in forge.requests
                if query.get("head") in (None, f"{owner}:{request['head']['ref']}")
                and query.get("base") in (None, request["base"]["ref"])
                and query.get("state", "open") in ("all", request["state"])
            ]
        case "POST", _ if path == f"{at}/pulls":
            return _open_pull(forge, account, fields)
        case _:
            return missing


def _open_pull(forge: Standin, account: Account, fields: dict[str, Any]) -> Answer:
    def invalid(**error: str) -> Answer:
        errors = [{"resource": "PullRequest", **error}]
        return 422, {"message": "Validation Failed", "errors": errors, **_DOCS, "status": "422"}

    if account.scope != "write":
        return 403, {"message": "Resource not accessible by personal access token", **_DOCS, "status": "403"}
    head, base, owner = fields.get("head", ""), fields.get("base", ""), forge.path.partition("/")[0]
    if not fields.get("title"):
        return invalid(code="missing_field", field="title")
    if len(fields["title"]) > 256:
        return invalid(code="custom", field="title", message="title is too long (maximum is 256 characters)")
    for name, branch in (("head", head), ("base", base)):
        if not forge.branch(branch):
            return invalid(field=name, code="invalid")
    if any((found["head"]["ref"], found["base"]["ref"]) == (head, base) for found in forge.requests):
        return invalid(code="custom", message=f"A pull request already exists for {owner}:{head}.")
    if not forge.ahead(head, base):
        return invalid(code="custom", message=f"No commits between {base} and {head}")
    number = len(forge.requests) + 1
    request = {
        "number": number,
        "html_url": f"{forge.url}/{forge.path}/pull/{number}",
        "state": "open",
        "title": fields["title"],
        "body": fields.get("body"),
        "draft": fields.get("draft", False),
        "user": {"login": account.login},
        "head": {"ref": head, "sha": forge.branch(head)},
        "base": {"ref": base},
    }
    forge.requests.append(request)
    return 201, request


def _gitlab(
    forge: Standin, method: str, path: str, query: dict[str, str], fields: dict[str, Any], headers: dict[str, str]
) -> Answer:
    """Answer as GitLab's REST API, version 4."""
    account = forge.accounts.get(headers.get("authorization", "").removeprefix("Bearer "))
    if account is None:
        return 401, {"message": "401 Unauthorized"}
    at = f"/projects/{forge.path.replace('/', '%2F')}"
    match method, path:
        case "GET", "/user":
            return 200, {"username": account.login, "id": 1, "state": "active"}
        case _ if account.access == "none" or not path.startswith(at):
            return 404, {"message": "404 Project Not Found"}
        case "GET", _ if path == at:
            level = {"access_level": 40 if account.access == "write" else 20, "notification_level": 3}
            may = {"project_access": None, "group_access": level}
            return 200, {"path_with_namespace": forge.path, "default_branch": "main", "permissions": may}
        case "GET", _ if path.startswith(f"{at}/repository/branches/"):
            name = unquote(path.removeprefix(f"{at}/repository/branches/"))
            if not forge.branch(name):
                return 404, {"message": "404 Branch Not Found"}
            return 200, {"name": name, "commit": {"id": forge.branch(name)}, "protected": False}
        case "GET", _ if path == f"{at}/merge_requests":
            return 200, [
                {**request, "sha": forge.branch(request["source_branch"])}
                for request in forge.requests
                if query.get("source_branch") in (None, request["source_branch"])
                and query.get("target_branch") in (None, request["target_branch"])
                and query.get("state", "all") in ("all", request["state"])
            ]
        case "POST", _ if path == f"{at}/merge_requests":
            return _open_merge(forge, account, fields)
        case _:
            return 404, {"error": "404 Not Found"}


def _open_merge(forge: Standin, account: Account, fields: dict[str, Any]) -> Answer:
    if account.scope != "write":
        error = "The request requires higher privileges than provided by the access token."
        return 403, {"error": "insufficient_scope", "error_description": error, "scope": "api"}
    head, base = fields.get("source_branch", ""), fields.get("target_branch", "")
    if missing := [name for name in ("title", "source_branch", "target_branch") if not fields.get(name)]:
        return 400, {"error": ", ".join(f"{name} is missing" for name in missing)}
    for request in forge.requests:
        if (request["source_branch"], request["target_branch"]) == (head, base):
            exists = f"Another open merge request already exists for this source branch: !{request['iid']}"
            return 409, {"message": [exists]}
    if not forge.branch(base):
        return 400, {"message": {"base": [f"Target branch {base} does not exist"]}}
    iid = len(forge.requests) + 1
    request = {
        "id": 1000 + iid,
        "iid": iid,
        "web_url": f"{forge.url}/{forge.path}/-/merge_requests/{iid}",
        "state": "opened",
        "title": fields["title"],
        "description": fields.get("description"),
        "draft": fields["title"].startswith("Draft: "),
        "author": {"username": account.login},
        "source_branch": head,
        "target_branch": base,
        "sha": forge.branch(head),
    }
    forge.requests.append(request)
    return 201, request
