"""What a sandbox needs to find the proxy by itself: a socket, certificates, and variables that programs look at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PORT = 3128
"""Of the sandbox's own loopback, where a forwarder listens for what is to go to the proxy."""

SOCKET = "/run/handiwork/proxy"
"""Where the proxy's socket is, inside."""

CERTIFICATES = "/run/handiwork/certificates.pem"
"""Where the certificates are that this machine trusts, inside."""

_STORES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
# urllib, pip, curl, git, wget and apt look at one case, others at the other.
_PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
_CERTIFICATES = (
    *("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    *("GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS"),
)


def find_certificates(environment: Mapping[str, str]) -> Path | None:
    """Return the file of the certificates that this machine trusts, if there is one in the usual places."""
    places = (environment.get("SSL_CERT_FILE"), *_STORES)
    return next((Path(place) for place in places if place and Path(place).is_file()), None)


def server_arguments() -> list[str]:
    """Return what the action server inside is told, so that it forwards to the socket."""
    return ["--forward", str(PORT), SOCKET]


def variables(certificates: bool) -> dict[str, str]:
    """Return the environment with which programs inside go through the proxy; with the machine's certificates."""
    # A name that is not in no_proxy is resolved by the proxy; the sandbox's own services are not to be asked for there.
    own = "localhost,127.0.0.1,0.0.0.0,sandbox"
    proxies = dict.fromkeys(_PROXIES, f"http://127.0.0.1:{PORT}")
    trusted = dict.fromkeys(_CERTIFICATES, CERTIFICATES) if certificates else {}
    return {**proxies, "no_proxy": own, "NO_PROXY": own, "NODE_USE_ENV_PROXY": "1", **trusted}
