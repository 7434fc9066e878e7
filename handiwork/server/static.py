"""The web app's files, which ``scripts/web.sh`` builds; every page address returns the same document."""

from __future__ import annotations

import mimetypes
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

FOLDER = Path(__file__).parent / "app"

NOT_BUILT = "The web app is not built: run `make setup`. The API is described by /api/openapi.json.\n"

# The terminal and React set inline styles; scripts come only from the built files.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_FOREVER = "private, max-age=31536000, immutable"


def routes(folder: Path = FOLDER) -> list[Route]:
    """Return the routes of the app in ``folder``; they must come after all others."""
    # Serve only files that exist at the start, so that no path can lead outside the folder.
    files = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*") if file.is_file()}

    async def show(request: Request) -> Response:
        path = str(request.path_params["path"])
        file = files.get(path)
        if file is None and path.partition("/")[0] in ("api", "assets"):
            raise HTTPException(404, "no such path")
        file = file or files.get("index.html")
        if file is None:
            return PlainTextResponse(NOT_BUILT)
        # A build renames each file in assets/ whose content changes.
        caching = _FOREVER if path.startswith("assets/") else "no-cache"
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        return FileResponse(
            file, media_type=kind, headers={"content-security-policy": POLICY, "cache-control": caching}
        )

    return [Route("/{path:path}", show)]
