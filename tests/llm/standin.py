"""A stand-in for model servers: the protocols of OpenAI, Anthropic and Google, streamed, faults on demand.

By hand: ``python tests/llm/standin.py --port N --script FILE`` answers from a script of JSON lines. The reply is
the one whose index is the number of assistant messages in the request; a line with "error" is answered once
with HTTP 500 and then skipped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from handiwork.llm.retry import Patience
from handiwork.llm.scripted.script import Reply, read_script

Json = dict[str, Any]
QUICK = Patience(silence=20.0, deadline=60.0, pause=0.01)
"""For tests: no long pauses between attempts."""
KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")


@dataclass
class Refusal:
    """Answer with a status other than 200."""

    status: int
    body: Json | str = ""
    headers: dict[str, str] = field(default_factory=dict[str, str])


@dataclass
class Stream:
    """Answer with these events (objects become data lines, strings go out as they are), then end like ``end``.

    "done" sends [DONE], "close" only ends the body, "abort" breaks the connection, "hang" sends nothing more.
    """

    events: list[Json | str]
    end: Literal["done", "close", "abort", "hang"] = "done"
    pause: float = 0.0


def chunk(delta: Json | None = None, finish: str | None = None, **rest: Any) -> Json:
    """One chunk of a chat completion."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"object": "chat.completion.chunk", "model": "standin-1", "choices": choices, **rest}


def text(content: str, finish: str | None = "stop", usage: Json | None = None) -> list[Json | str]:
    """The chunks of an answer that is text."""
    pieces = [chunk({"content": piece}) for piece in content.splitlines(keepends=True)]
    end = [chunk({}, finish)] if finish else []
    return [chunk({"role": "assistant"}), *pieces, *end, *([chunk(usage=usage)] if usage else [])]


def answer(reply: Reply, position: int) -> Stream:
    """A scripted reply as a stream."""
    events = text(reply.content, finish=None)
    for number, call in enumerate(reply.tool_calls):
        head = {"index": number, "id": f"call_{position}_{number}", "type": "function"}
        events.append(chunk({"tool_calls": [{**head, "function": {"name": call.name, "arguments": ""}}]}))
        for piece in (call.text[:5], call.text[5:]):
            events.append(chunk({"tool_calls": [{"index": number, "function": {"arguments": piece}}]}))
    events.append(chunk({}, "tool_calls" if reply.tool_calls else "stop"))
    used = reply.usage
    usage: Json = {
        "prompt_tokens": used.input + used.cache_read + used.cache_write,
        "completion_tokens": used.output,
        "prompt_tokens_details": {"cached_tokens": used.cache_read, "cache_write_tokens": used.cache_write},
    }
    if reply.cost:
        usage["cost"] = reply.cost
    events.append(chunk(usage=usage))
    return Stream(events, pause=reply.delay / len(events))


def disorder(messages: list[Json], alternating: bool) -> str:
    """Return what a strict template has against a conversation, "" for nothing."""
    talk = messages[1:] if messages and messages[0]["role"] == "system" else messages
    waiting: list[str] = []
    before = ""
    users_turn = True
    for message in talk:
        role, calls = message["role"], message.get("tool_calls", [])
        if not message.get("content") and not calls:
            return f"a message of role {role} is empty"
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                return "a tool message answers no tool call before it"
            waiting.remove(message["tool_call_id"])
        elif waiting:
            return "a tool call has no answer"
        elif role == "system":
            return "System message must be at the beginning."
        elif role == before or (alternating and not calls and (role == "user") != users_turn):
            return "After the optional system message, conversation roles must alternate user/assistant/user/..."
        users_turn = users_turn if role == "tool" or calls else not users_turn
        if not all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in calls):
            return "the arguments of a tool call are no object"
        waiting += [call["id"] for call in calls]
        before = role if role != "tool" else ""
    if waiting or not talk or talk[0]["role"] != "user" or talk[-1]["role"] not in ("user", "tool"):
        return "the conversation does not begin and end with the user or a tool"
    return ""


class StandIn:
    """The server: ``planned`` answers come first, one a request; after them ``replies`` by position.

    Chat completions are refused with 400 where a strict template would: no empty messages, every tool call
    answered, no two neighbours of one role. ``alternating`` demands more, as Mistral's templates do: that user and
    assistant alternate even with tool calls and their answers taken out.
    """

    def __init__(self, replies: Iterable[Reply | str] = ()) -> None:
        self.replies = [Reply(content=reply) if isinstance(reply, str) else reply for reply in replies]
        self.planned: deque[Refusal | Stream] = deque()
        self.pages: dict[str, Json] = {}
        self.vector: Callable[[str], list[float]] = lambda text: [float(len(text)), 1.0]
        self.longest: tuple[int, Refusal] | None = None
        self.requests: list[Json] = []
        self.keys: list[str] = []
        self.arrived = asyncio.Event()
        self.disconnected = asyncio.Event()
        self.connections: set[tuple[str, int]] = set()
        self.port = 0
        self.alternating = False
        self._errors_met: set[int] = set()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/chat/completions", self._complete, methods=["POST"]),
                Route("/openai/deployments/{name}/chat/completions", self._complete, methods=["POST"]),
                Route("/v1/messages", self._complete, methods=["POST"]),
                Route("/v1/responses", self._complete, methods=["POST"]),
                Route("/v1beta/models/{model}:streamGenerateContent", self._complete, methods=["POST"]),
                Route("/v1/embeddings", self._embed, methods=["POST"]),
                Route("/{path:path}", self._page),
            ]
        )

    async def _page(self, request: Request) -> Response:
        page = self.pages.get(request.url.path)
        return JSONResponse(page if page is not None else {"error": "no such page"}, 404 if page is None else 200)

    async def _embed(self, request: Request) -> Response:
        body: Json = json.loads(await request.body())
        self.requests.append(body)
        plan = self.planned.popleft() if self.planned else None
        if self.longest is not None and max(map(len, body["input"])) > self.longest[0]:
            plan = self.longest[1]
        if isinstance(plan, Refusal):
            return Response(plan.body if isinstance(plan.body, str) else json.dumps(plan.body), plan.status)
        vectors = [{"index": n, "embedding": self.vector(text)} for n, text in enumerate(body["input"])]
        answer = {"object": "list", "data": vectors[::-1], "usage": {"prompt_tokens": 7, "total_tokens": 7}}
        return Response(json.dumps(answer, indent=2), media_type="application/json")  # of many lines, like OpenAI's

    async def _complete(self, request: Request) -> Response:
        body: Json = json.loads(await request.body())
        self.requests.append(body)
        self.keys.append(next((request.headers[key] for key in KEY_HEADERS if key in request.headers), ""))
        if request.client is not None:
            self.connections.add((request.client.host, request.client.port))
        self.arrived.set()
        plan = self._answer(body.get("messages", []), chat=request.url.path == "/v1/chat/completions")
        if isinstance(plan, Refusal):
            content = plan.body if isinstance(plan.body, str) else json.dumps(plan.body)
            return Response(content, plan.status, plan.headers, "application/json")
        return StreamingResponse(self._send(plan, request), media_type="text/event-stream")

    def _answer(self, messages: list[Json], *, chat: bool) -> Refusal | Stream:
        if chat and (fault := disorder(messages, self.alternating)):
            return Refusal(400, {"error": {"message": fault}})
        return self.planned.popleft() if self.planned else self._scripted(messages)

    def _scripted(self, messages: list[Json]) -> Refusal | Stream:
        answered = sum(message["role"] == "assistant" for message in messages)
        for position, reply in enumerate(self.replies):
            if answered == 0 and position not in self._errors_met:
                if reply.error is None:
                    return answer(reply, position)
                self._errors_met.add(position)
                return Refusal(500, {"error": {"message": reply.error}})
            answered -= reply.error is None
        return Refusal(400, {"error": {"message": f"the script has {len(self.replies)} replies, all are used"}})

    async def _send(self, plan: Stream, request: Request) -> AsyncIterator[str]:
        for event in plan.events:
            await asyncio.sleep(plan.pause)
            if isinstance(event, str):
                yield event
            else:
                kind = f"event: {event['type']}\n" if "type" in event else ""
                yield f"{kind}data: {json.dumps(event)}\n\n"
        if plan.end == "done":
            yield "data: [DONE]\n\n"
        elif plan.end == "abort":
            raise ConnectionAbortedError("broken on purpose")
        elif plan.end == "hang":
            while (await request.receive())["type"] != "http.disconnect":
                pass
            self.disconnected.set()


@asynccontextmanager
async def serving(standin: StandIn, port: int = 0) -> AsyncGenerator[StandIn]:
    """Serve on loopback in this event loop; port 0 takes a free one."""
    listener = socket.create_server(("127.0.0.1", port))
    standin.port = listener.getsockname()[1]
    config = uvicorn.Config(standin.app(), log_level="critical", lifespan="off")
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    # Started and ended without Server.serve(), which takes over the signals and sleeps 0.2 s at the end.
    await server.startup(sockets=[listener])
    try:
        yield standin
    finally:
        for listening in server.servers:
            listening.close()
        for connection in list(server.server_state.connections):
            connection.shutdown()
        running = list(server.server_state.tasks)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        listener.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--script", type=Path, required=True)
    arguments = parser.parse_args()
    uvicorn.run(StandIn(read_script(arguments.script)).app(), port=arguments.port, log_level="warning")


if __name__ == "__main__":
    main()
