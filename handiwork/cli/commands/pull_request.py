"""``handiwork pull-request``: shows the request that a session's changes make, and opens it."""

from __future__ import annotations

import getpass
import json
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict

from rich.text import Text

from handiwork.cli.commands.sessions import find
from handiwork.cli.errors import say
from handiwork.cli.terminal.jsonlines import write_json
from handiwork.cli.terminal.sanitize import plain
from handiwork.cli.terminal.view import print_lines, terminal_console
from handiwork.errors import Exit
from handiwork.llm.catalog.keys import keys_file
from handiwork.log.store import Store
from handiwork.paths import data_dir
from handiwork.session.pull_request import ForgeTokens, Proposal, no_token, open_request, propose
from handiwork.session.pull_request.forge import Draft, TokenError
from handiwork.settings import SettingsError
from handiwork.workspace.files.names import quoted


async def pull_request(
    session: str | None,
    title: str | None,
    body: str | None,
    base: str | None,
    draft: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> Exit:
    """Show the request, ask, and open it; or print the one that is open. Raises SettingsError, TokenError, ForgeError.

    With ``dry_run`` nothing is opened. With ``as_json`` or ``yes`` the user is not asked.
    """
    if title is not None and not title.strip():
        raise SettingsError("--title is empty: give a title, or leave it out for the session's")
    asks = not as_json and sys.stdin.isatty() and sys.stdout.isatty()
    async with Store.open(data_dir()) as store:
        log, tokens = await find(store, session), ForgeTokens()
        proposal = await propose(data_dir(), log, tokens)
        if proposal.account is None and not dry_run:
            if not asks:
                raise TokenError(proposal.problem) if proposal.problem else no_token(proposal.target)
            await _ask_token(tokens, proposal)
            proposal = await propose(data_dir(), log, tokens)
        text = proposal.body if body is None else body
        request = Draft((title or proposal.title).strip(), text, (base or proposal.base).strip(), draft)
        if dry_run and as_json:
            fields = {"repository": proposal.target.path, "files": proposal.files, "warnings": proposal.warnings}
            write_json(json.dumps({"host": proposal.target.host, **fields, **asdict(request)}, ensure_ascii=False))
            return Exit.FINISHED
        if not as_json:
            print_lines(terminal_console(), _preview(proposal, request))
        if dry_run:
            say(f"nothing was sent{f'; {proposal.problem}' if proposal.problem else ''}")
            return Exit.FINISHED
        if not (as_json or yes):
            if not asks:
                raise SettingsError("the command asks before it sends, which needs a terminal: add --yes")
            if not _confirm(f"Open this {proposal.target.noun}? [y/n] "):
                say("nothing was sent")
                return Exit.FAILED
        opened = await open_request(store, data_dir(), log, tokens, request)
    if as_json:
        fields = {"branch": opened.branch, "created": opened.created, "warnings": opened.warnings}
        write_json(json.dumps({**asdict(opened.request), **fields}))
    else:
        if not opened.created:
            say(f"this {opened.target.noun} was open already; its title and text stay, and its branch has the changes")
        for warning in opened.warnings:
            if warning not in proposal.warnings:
                say(warning)
        sys.stdout.write(f"{plain(opened.request.url)}\n")
    return Exit.FINISHED


async def _ask_token(tokens: ForgeTokens, proposal: Proposal) -> None:
    """Ask for a token until the forge accepts it. Raises TokenError if the user enters none."""
    target = proposal.target
    if proposal.problem:
        say(proposal.problem)
    while True:
        try:
            with _ended_by_ctrl_c():
                token = getpass.getpass(f"Token for {target.host} (not shown; empty to stop): ")
        except EOFError:
            token = ""
        if not token.strip():
            raise no_token(target)
        try:
            await tokens.give(target, token, keep=False)
        except TokenError as error:
            say(str(error))
            continue
        if _confirm(f"Keep it in {keys_file()}, which only you can read? [y/n] "):
            await tokens.give(target, token, keep=True)
        return


def _preview(proposal: Proposal, request: Draft) -> list[Text]:
    target = proposal.target
    where = f"{target.path} on {target.host}"
    account = f" as {plain(proposal.account)}" if proposal.account else ""
    kind = f"draft {target.noun}" if request.unfinished else target.noun
    return [
        Text(f"{kind} for {plain(request.base) or 'the default branch'} of {where}{account}", "dim"),
        Text(plain(request.title), "bold"),
        *(Text(line) for line in plain(request.body).split("\n")),
        Text(),
        *(Text(f"changed   {quoted(path)}") for path in proposal.files),
        *(Text(plain(warning), "yellow") for warning in proposal.warnings),
    ]


def _confirm(question: str) -> bool:
    with _ended_by_ctrl_c():
        sys.stdout.write(question)
        sys.stdout.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")


@contextmanager
def _ended_by_ctrl_c() -> Generator[None]:
    """Raise KeyboardInterrupt for Ctrl-C while the event loop waits for an answer: its own handler would wait too."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
