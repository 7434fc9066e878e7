"""Operations on the pull request of a session's changes, and on the token that the forge takes."""

from __future__ import annotations

from handiwork.llm.catalog.keys import keys_file
from handiwork.server.operations import Operation, OperationCall
from handiwork.server.schemas.pull_request import (
    ForgeAccount,
    ForgeToken,
    NewPullRequest,
    OpenPullRequest,
    PullRequestProposal,
)
from handiwork.session.pull_request import find_target, open_request, propose
from handiwork.session.pull_request.forge import Draft
from handiwork.workspace.files.names import quoted


async def propose_pull_request(call: OperationCall[None, None]) -> PullRequestProposal:
    """Return the pull request that the session's changes would make, for the user to edit."""
    supervisor = call.supervisor
    found = await propose(supervisor.data, await call.log(), supervisor.forge_tokens)
    return PullRequestProposal.model_validate(
        {
            "forge": found.target.kind,
            "noun": found.target.noun,
            "host": found.target.host,
            "repository": found.target.path,
            "variable": found.target.variable if found.target.own else "",
            "account": found.account,
            "problem": found.problem,
            "title": found.title,
            "body": found.body,
            "base": found.base,
            "bases": list(found.bases),
            "files": [quoted(path) for path in found.files],
            "warnings": list(found.warnings),
        }
    )


async def open_pull_request(call: OperationCall[None, NewPullRequest]) -> OpenPullRequest:
    """Push a branch with the session's changes and open a pull request, or return the one that is open."""
    supervisor, body = call.supervisor, call.body
    draft = Draft(body.title, body.body, body.base.strip(), body.draft)
    opened = await open_request(supervisor.store, supervisor.data, await call.log(), supervisor.forge_tokens, draft)
    return OpenPullRequest(
        noun=opened.target.noun,
        number=opened.request.number,
        url=opened.request.url,
        branch=opened.branch,
        created=opened.created,
        warnings=list(opened.warnings),
    )


async def take_forge_token(call: OperationCall[None, ForgeToken]) -> ForgeAccount:
    """Use a token for the forge of the session's workspace, or keep it; one that the forge refuses is an error."""
    target = await find_target(await call.log())
    account = await call.supervisor.forge_tokens.give(target, call.body.token, keep=call.body.keep)
    return ForgeAccount(account=account, file=str(keys_file()) if call.body.keep else None)


_AT = "/api/sessions/{session}/pull-request"
OPERATIONS = (
    Operation("GET", _AT, propose_pull_request, PullRequestProposal),
    Operation("POST", _AT, open_pull_request, OpenPullRequest, body=NewPullRequest),
    Operation("POST", f"{_AT}/token", take_forge_token, ForgeAccount, body=ForgeToken),
)
