"""WebArena's checks of its sites after an agent has ended: upstream's program_html.

The rules are those of HTMLContentEvaluator in upstream's evaluation_harness/evaluators.py, and its functions those of
helper_functions.py (https://github.com/web-arena-x/webarena). Pages are opened in the agent's browser, in a separate
tab, and so with its cookies. Upstream's functions call a shop's interface from outside; here the page calls it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from pydantic import JsonValue

from handiwork.errors import BrowserError, SandboxError
from handiwork.evals.benchmarks.webarena.evaluators import match_contents
from handiwork.sandbox.base import Sandbox

SETTLE = 3.0
"""Seconds to wait after a page has loaded, as upstream does: some pages fill themselves afterwards."""

_SHOP = """const at = %s + '/rest/';
  const token = await (await fetch(at + 'default/V1/integration/admin/token', {
    method: 'POST', headers: {'Content-Type': 'application/json'},
    body: JSON.stringify({username: 'admin', password: 'admin1234'})})).json();
  const get = async (path) => {
    const answer = await fetch(at + path, {headers: {Authorization: 'Bearer ' + token}});
    if (answer.status !== 200) throw new Error(path + ' answered ' + answer.status);
    return answer.json();
  };
  """

_LATEST_ORDER = (
    "V1/orders?searchCriteria[sortOrders][0][field]=created_at"
    "&searchCriteria[sortOrders][0][direction]=DESC&searchCriteria[pageSize]=1"
)

_ROLE = """const names = [...document.querySelectorAll("td[data-label='Account'] span.gl-avatar-labeled-sublabel")];
  const place = names.findIndex((one) => one.outerText === '@' + %s);
  return document.querySelectorAll('td.col-max-role span')[place].outerText;"""


async def program_html(task: Mapping[str, Any], sandbox: Sandbox, urls: Mapping[str, str], settle: float) -> float:
    """Score the pages of a task. ``urls`` are the sites' addresses, ``settle`` is seconds.

    Raises BrowserError if a page cannot be opened.
    """
    for target in task["eval"]["program_html"]:
        text = await _page_text(target, sandbox, urls, settle)
        if not match_contents(target["required_contents"], text):
            return 0.0
    return 1.0


async def _page_text(target: Mapping[str, Any], sandbox: Sandbox, urls: Mapping[str, str], settle: float) -> str:
    """Return the text that a target's locator finds on its page, "" if it finds nothing."""
    locator = target["locator"].strip()
    if locator.startswith("func:shopping_get_sku_latest_review_"):
        return await _review(*_call(locator), sandbox, urls)
    url = await _url(target["url"], sandbox, urls)
    if not locator:
        body = "return document.documentElement.outerHTML;"
    elif locator.startswith("func:"):
        _, account = _call(locator)
        body = _ROLE % json.dumps(account)
    else:
        actions = "".join(f"{action};" for action in target.get("prep_actions", ()))
        body = f"try {{ {actions} }} catch (error) {{}} return ({locator});"
    waiting = 0 if url is None else 1000 * settle
    expression = f"""async () => {{
      await new Promise((done) => setTimeout(done, {waiting}));
      try {{ return [await (async () => {{ {body} }})()]; }} catch (error) {{ return []; }}
    }}"""
    value: JsonValue = None
    try:
        if url is None:
            value = await sandbox.browser("evaluate", expression=expression)
        elif isinstance(answer := await sandbox.browser("visit", url=url, expression=expression), dict):
            value = answer["value"]
    except BrowserError:
        if url == target["url"]:
            raise
        return ""  # it is the agent's last page, or derived from its address
    # Values are formatted as in Python: null is "None", as upstream's data expect.
    return str(value[0]) if isinstance(value, list) and value and value[0] != "" else ""


async def _url(text: str, sandbox: Sandbox, urls: Mapping[str, str]) -> str | None:
    """Return the address of a target's page, None for the agent's open page."""
    if text == "last":
        return None
    if not text.startswith("func:"):
        return text
    name, _ = _call(text)
    if name == "shopping_get_latest_order_url":
        body = f"return Number((await get({json.dumps(_LATEST_ORDER)})).items[0].increment_id);"
        return f"{urls['shopping']}/sales/order/view/order_id/{await _ask_shop(body, sandbox, urls)}/"
    if name == "reddit_get_post_url":
        state = await sandbox.browser("state")
        return post_url(str(state["url"]) if isinstance(state, dict) else "")
    raise ValueError(f"{name} is no known way to find an address")


def post_url(url: str) -> str:
    """Return the address of the post that a page of Reddit's site belongs to, else the page's own address."""
    parts = urlsplit(url)
    path = parts.path.split("/")
    if len(path) < 4 or path[1] != "f":
        return url
    return f"{parts.scheme}://{parts.netloc}/f/{path[2]}/{path[3]}/"


async def _review(name: str, sku: str, sandbox: Sandbox, urls: Mapping[str, str]) -> str:
    part = {
        "shopping_get_sku_latest_review_author": "last.nickname",
        "shopping_get_sku_latest_review_rating": "String(last.ratings[0].percent)",
    }[name]
    path = json.dumps(f"V1/products/{sku}/reviews")
    body = f"const last = (await get({path})).at(-1); return last ? {part} : '';"
    return str(await _ask_shop(body, sandbox, urls))


async def _ask_shop(body: str, sandbox: Sandbox, urls: Mapping[str, str]) -> Any:
    """Return the answer of the shop's interface. Raises SandboxError if it does not answer."""
    call = f"await (async () => {{ {_SHOP % json.dumps(urls['shopping'])} {body} }})()"
    expression = f"async () => {{ try {{ return [{call}]; }} catch (error) {{ return error.message; }} }}"
    answer = await sandbox.browser("visit", url=urls["shopping"], expression=expression)
    value = answer.get("value") if isinstance(answer, dict) else None
    if not isinstance(value, list):
        raise SandboxError(f"{urls['shopping']}/rest does not answer as the shop's interface: {value}")
    return value[0]


def _call(text: str) -> tuple[str, str]:
    """Return a function's name and its last text argument, from ``func:name(__page__, 'argument')``."""
    match = re.fullmatch(r"func:(\w+)\((?:__page__, )?(?:'([^']*)')?\)", text)
    if match is None:
        raise ValueError(f"{text} is no call of a function that is known")
    return match[1], match[2] or ""
