"""Settings with which programs in a sandbox find the proxy: a socket, certificates and variables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PORT = 3128
"""Port on the sandbox's own loopback on which the forwarder to the proxy listens."""

SOCKET = "/run/handiwork/proxy"
"""The proxy's socket inside."""

CERTIFICATES = "/run/handiwork/certificates.pem"
"""This machine's trusted certificates inside."""

_STORES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
# urllib, pip, curl, git, wget and apt read one case, others the other.
_PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
_CERTIFICATES = (
    *("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS"),
)


def find_certificates(environment: Mapping[str, str]) -> Path | None:
    """Return the file of this machine's trusted certificates, if one of the usual files exists."""
    candidates = (environment.get("SSL_CERT_FILE"), *_STORES)
    return next((Path(candidate) for candidate in candidates if candidate and Path(candidate).is_file()), None)


def server_arguments() -> list[str]:
    """Return the arguments that make the action server inside forward to the socket."""
    return ["--forward", str(PORT), SOCKET]


def variables(certificates: bool) -> dict[str, str]:
    """Return the environment that makes programs inside use the proxy, and optionally the machine's certificates."""
    # The proxy resolves all names outside no_proxy; it must not be asked for the sandbox's own services.
    local_hosts = "localhost,127.0.0.1,0.0.0.0,sandbox"
    proxies = dict.fromkeys(_PROXIES, f"http://127.0.0.1:{PORT}")
    trusted = dict.fromkeys(_CERTIFICATES, CERTIFICATES) if certificates else {}
    return {**proxies, "no_proxy": local_hosts, "NO_PROXY": local_hosts, "NODE_USE_ENV_PROXY": "1", **trusted}
