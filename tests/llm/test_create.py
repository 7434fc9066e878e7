"""Models from their names."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from handiwork.llm.create import create
from handiwork.llm.errors import AuthenticationError, LLMError
from handiwork.llm.openai_compatible.model import ChatLLM
from handiwork.llm.pydantic_ai.model import ProviderLLM
from handiwork.llm.retry import Patience
from handiwork.llm.scripted.script import Reply
from handiwork.llm.types import LLM, Message
from tests.llm.standin import QUICK, StandIn

ASK = [Message.text("user", "go")]
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "HANDIWORK_API_KEY")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("anthropic:claude-sonnet-4-6", "ANTHROPIC_API_KEY"),
        ("openai:gpt-4o", "OPENAI_API_KEY"),
        ("openrouter:x/y", "OPENROUTER_API_KEY"),
    ],
)
def test_a_missing_key_is_named(name: str, key: str) -> None:
    with pytest.raises(AuthenticationError, match=f"{name} needs a key or address: Set the `{key}`"):
        create(name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpt-4o", "names no provider"),
        ("local:nope", "There is no local model 'nope'"),
        ("qwen3:8b", '"qwen3" is no provider: write the model .* or give --base-url'),
    ],
)
def test_a_name_that_means_nothing_says_so_in_one_line(name: str, words: str) -> None:
    with pytest.raises(LLMError, match=words) as caught:
        create(name)
    assert "\n" not in str(caught.value)


def test_a_local_model_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(LLMError, match=r"pip install 'handiwork\[local\]'"):
        create("local:qwen2.5-coder-1.5b")


def test_a_base_url_that_is_none_says_so() -> None:
    with pytest.raises(LLMError, match="must begin with http"):
        create("any", base_url="localhost:8000")


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "socks5://127.0.0.1:9"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
async def test_a_server_on_this_machine_is_reached_past_a_proxy(
    server: StandIn, host: str, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, proxy)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    server.replies = [Reply(content="hello")]
    address = server.base_url.replace("127.0.0.1", host)
    llm = create("any", base_url=address, patience=Patience(attempts=1))
    try:
        assert (await llm.complete(ASK)).content == "hello"
    finally:
        await llm.close()


@pytest.mark.parametrize("name", ["any", "anthropic:any"])
async def test_a_proxy_that_cannot_be_used_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks://127.0.0.1:9/")  # as GNOME sets it
    with pytest.raises(LLMError, match=r"all_proxy.* cannot be used: Unknown scheme .*; make it http://HOST:PORT"):
        await create(name, base_url="https://models.example.org/v1").complete(ASK)


@pytest.mark.parametrize("name", ["any", "openai:any", "anthropic:any"])
@pytest.mark.parametrize(
    ("base_url", "reason"),
    [
        ("http://localhost:80o0/v1", "Port could not be cast"),
        ("http://::1:8000/v1", "no host or no port"),
        ("http://", "no host or no port"),
        ("ftp://x", "must begin with http"),
    ],
)
def test_a_base_url_to_which_nothing_can_be_sent_is_refused_with_the_reason(
    name: str, base_url: str, reason: str
) -> None:
    with pytest.raises(LLMError, match=f'the base URL "{base_url}" .*{reason}'):
        create(name, base_url=base_url)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("anthropic:claude-sonnet-4-6", ProviderLLM),
        ("openai:gpt-4o", ProviderLLM),
        ("openai-chat:gpt-4o", ChatLLM),
        ("openrouter:x/y", ChatLLM),
    ],
)
async def test_providers_of_chat_completions_share_one_class(name: str, kind: type) -> None:
    llm = create(name, api_key="sk-test")
    assert isinstance(llm, kind)
    assert llm.name == name
    await llm.close()


@pytest.mark.parametrize("name", ["qwen2.5-coder:7b", "openai:qwen2.5-coder:7b", "ollama:qwen2.5-coder:7b"])
async def test_with_a_base_url_any_name_is_a_model_of_that_server(
    server: StandIn, chat: Callable[..., LLM], name: str
) -> None:
    server.replies = [Reply(content="x")]
    await chat(name).complete(ASK)
    assert server.requests[0]["model"] == "qwen2.5-coder:7b"


async def test_only_our_own_key_goes_to_a_base_url(
    server: StandIn, chat: Callable[..., LLM], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    server.replies = [Reply(content="x")]
    await chat().complete(ASK)
    monkeypatch.setenv("HANDIWORK_API_KEY", "hw-key")
    await chat().complete(ASK)
    await chat(api_key="given").complete(ASK)
    assert server.keys == ["Bearer none", "Bearer hw-key", "Bearer given"]


async def test_a_deployment_on_azure_is_asked_at_its_own_address_with_its_own_header(
    server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.base_url.removesuffix("/v1"))
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-key")
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
    server.replies = [Reply(content="fine")]
    llm = create("azure:gpt-4o", patience=QUICK)
    completion = await llm.complete(ASK)
    await llm.close()
    assert (completion.content, server.keys) == ("fine", ["azure-key"])


@pytest.mark.parametrize(
    ("arguments", "libraries"),
    [
        ("'any', base_url='http://127.0.0.1:1/v1'", {"openai", "anthropic", "pydantic_ai", "genai_prices", "httpx2"}),
        ("'anthropic:claude-sonnet-4-6', api_key='sk-test'", {"openai"}),
    ],
)
def test_creating_a_model_loads_no_library_that_it_does_not_need(arguments: str, libraries: set[str]) -> None:
    code = (
        "import sys, handiwork.llm.create as c\n"
        f"llm = c.create({arguments})\n"
        f"assert not {libraries} & set(sys.modules), {libraries} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
