"""The forge and the repository on it that a remote's address means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from handiwork.errors import HandiworkError
from handiwork.session.pull_request.forge import Forge, GitHub, GitLab
from handiwork.settings import ForgeSettings, settings_file

FORGES: dict[str, type[Forge]] = {"github": GitHub, "gitlab": GitLab}
VARIABLES = {"github": "GITHUB_TOKEN", "gitlab": "GITLAB_TOKEN"}
"""The environment variables with the tokens."""

_PUBLIC = {"github.com": "github", "gitlab.com": "gitlab"}
_SSH_HOSTS = {"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com"}
"""Hosts that take SSH at the port of HTTPS."""
_SCP = re.compile(r"(?:[^@/\s]+@)?([A-Za-z0-9.-]+):(?!/)(.+)")
"""The short form of an SSH address: git@HOST:OWNER/NAME.git."""
_SEGMENT = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.][A-Za-z0-9_.-]*")


class UnknownForgeError(HandiworkError):
    """The remote is not a repository of a forge that Handiwork knows; the text names the remedy."""

    status = 409


@dataclass(frozen=True)
class Target:
    """The repository ``path`` of the forge whose pages are at ``web``; ``host`` is that of the remote's address.

    ``own`` tells whether the user's variable of this kind of forge is meant for this host.
    """

    kind: str
    host: str
    web: str
    path: str
    own: bool

    @property
    def variable(self) -> str:
        """The environment variable that such a forge's token has."""
        return VARIABLES[self.kind]

    @property
    def noun(self) -> str:
        """The forge's word for a request."""
        return FORGES[self.kind].noun

    def forge(self, token: str) -> Forge:
        """Return the client of the repository."""
        return FORGES[self.kind](self.web, self.path, token)


def target_of(address: str, known: dict[str, ForgeSettings]) -> Target:
    """Return the repository at a remote's address, whose credentials are ignored. Raises UnknownForgeError.

    ``known`` are the user's own forges by host. Other hosts are known by their names: github and gitlab, or a part of
    the name that is one of these.
    """
    host, path = _split(address)
    host = _SSH_HOSTS.get(host, host)
    if (own := known.get(host)) is not None:
        kind, web = own.kind, (own.url or f"https://{host}").rstrip("/")
        path = path.removeprefix(urlsplit(web).path.strip("/")).strip("/")
    elif (kind := _PUBLIC.get(host) or _kind_by_name(host)) is not None:
        web = f"https://{host}"
    else:
        raise UnknownForgeError(
            f"{host} is neither GitHub nor GitLab by its name: if it is one, write into {settings_file()}:\n"
            f'[forges."{host}"]\nkind = "gitlab"  # or "github"\nurl = "https://{host}"'
        )
    segments = path.removesuffix(".git").split("/")
    fits = len(segments) == 2 if kind == "github" else len(segments) >= 2
    if not fits or not all(map(_SEGMENT.fullmatch, segments)):
        raise UnknownForgeError(f"the remote's address names no repository of {host}: it should end with OWNER/NAME")
    return Target(kind, host, web, "/".join(segments), own is not None or host in _PUBLIC)


def _split(address: str) -> tuple[str, str]:
    """Return host and path of an address; the host has the port only if the address is HTTP's."""
    no_forge = UnknownForgeError(
        "the remote is not on a forge: a pull request needs one with an address like https://HOST/OWNER/NAME.git"
    )
    if "://" not in address:
        if match := _SCP.fullmatch(address):
            return match[1].lower(), match[2].strip("/")
        raise no_forge
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise no_forge from None
    if not host or not re.fullmatch(r"[a-z0-9.-]+", host) or parts.scheme not in ("http", "https", "ssh", "git"):
        raise no_forge
    if parts.query or parts.fragment:
        raise no_forge
    is_web = parts.scheme in ("http", "https") and port not in (None, 80, 443)
    return f"{host}:{port}" if is_web else host, parts.path.strip("/")


def _kind_by_name(host: str) -> str | None:
    name = host.partition(":")[0]
    labels = {part for label in name.split(".") for part in label.split("-")}
    if name.endswith(".ghe.com"):
        return "github"
    if "." not in name:
        return None  # an alias in the user's settings of SSH
    return next((kind for kind in FORGES if kind in labels), None)
