"""Secrets are taken out of text and events in every form that programs commonly give them."""

from __future__ import annotations

import base64
import html
import json
import os
import re
import shlex
import subprocess
import urllib.parse
from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from handiwork.events.observation import CmdOutputObservation
from handiwork.log.redaction.redactor import Pieces, Redactor

TOKEN = "ghp_Zq3/+vT9é&x\"k\\7 w'$e"
KEY = "\n".join(["-----BEGIN KEY-----", *(f"{n}bAzR7kQ0mWx{n}TqLp8sVd{n}" for n in range(12)), "-----END KEY-----"])


@cache
def redactor(**secrets: str) -> Redactor:
    made = Redactor()
    made.learn(secrets)
    return made


def inside_base64(secret: bytes, before: bytes, after: bytes, alphabet: bytes = b"+/") -> tuple[str, str]:
    """Return a longer base64 text with the secret in it, and the part of it that only the secret makes."""
    text = base64.b64encode(before + secret + after, alphabet).decode()
    first, last = -(-8 * len(before) // 6), 8 * (len(before) + len(secret)) // 6
    return text, text[first:last]


def encodings(secret: str) -> Iterator[str]:
    """Give the forms of a secret that must never be seen."""
    data = secret.encode()
    yield secret
    for ascii_only in (True, False):
        once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]
        yield json.dumps(json.dumps(once, ensure_ascii=ascii_only))[1:-1]
    yield from (urllib.parse.quote(secret), urllib.parse.quote(secret, safe=""), urllib.parse.quote_plus(secret))
    yield from (data.hex(), data.hex().upper(), data.hex(" "), data.hex(":"))
    yield "".join(f"%{byte:02X}" for byte in data)
    yield "".join(f"\\x{byte:02x}" for byte in data)
    yield html.escape(secret)
    yield from (shlex.quote(secret), repr(secret)[1:-1])
    for alphabet in (b"+/", b"-_"):
        for before in (b"", b"a", b"ab"):
            yield inside_base64(data, before, b"", alphabet)[1]


unhurried = settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
SECRETS = [
    TOKEN,
    "hunter2222",
    "AKIAIOSFODNN7EXAMPLEKEY0123456789abcdefghijklmnop",
    '\\\\""//++==',
    "пароль-日本🔑",
    "a b\tc\nd\re",
]
secrets = st.sampled_from(SECRETS)
ordinary = st.text(alphabet=st.sampled_from("abc xyz0189+/=%\\\"'\n-_:&;"), max_size=60)


def cut(text: str, places: list[int]) -> list[str]:
    at = sorted({place % (len(text) + 1) for place in places})
    return [text[start:end] for start, end in zip([0, *at], [*at, len(text)], strict=True)]


def shown(pieces: Pieces, text: list[str]) -> str:
    return "".join([*map(pieces.feed, text), pieces.end()])


@pytest.mark.parametrize("form", list(encodings(TOKEN)))
def test_a_secret_is_named_where_it_stood(form: str):
    clear = redactor(TOKEN=TOKEN).text(f"before {form} after")
    assert clear.startswith("before ")
    assert clear.endswith(" after")
    assert len(clear) <= len("before ''\\\\\\\\\\\\[secret TOKEN]\\\\\\\\\\ after"), "little but the quotes is left"


@unhurried
@given(
    secret=secrets, before=ordinary, after=ordinary, places=st.lists(st.integers(0, 4000), max_size=12), data=st.data()
)
def test_however_a_text_is_cut_no_form_comes_through(
    secret: str, before: str, after: str, places: list[int], data: st.DataObject
):
    form = data.draw(st.sampled_from(list(encodings(secret))))
    assume(form not in before + after)
    clear = shown(redactor(NAME=secret).pieces(), cut(before + form + after, places))
    assert form not in clear
    assert "[secret NAME]" in clear


@unhurried
@given(
    secret=secrets, before=st.binary(max_size=20), after=st.binary(max_size=20), places=st.lists(st.integers(0, 4000))
)
def test_it_is_found_inside_a_longer_base64_text_at_every_alignment(
    secret: str, before: bytes, after: bytes, places: list[int]
):
    text, own = inside_base64(secret.encode(), before, after)
    assert own not in shown(redactor(NAME=secret).pieces(), cut(text, places))


def test_it_is_found_in_base64_whose_lines_are_broken():
    wrapped = base64.encodebytes(KEY.encode()).decode()
    for text in (wrapped, wrapped.replace("\n", "\r\n"), json.dumps(wrapped)):
        assert redactor(KEY=KEY).text(text).strip('\r\n="\\rn') == "[secret KEY]"


@unhurried
@given(text=st.text(), places=st.lists(st.integers(0, 4000)))
def test_a_text_without_secrets_is_unchanged(text: str, places: list[int]):
    made = redactor(TOKEN=TOKEN, KEY=KEY)
    assert made.text(text) == text
    assert shown(made.pieces(), cut(text, places)) == text


def test_ordinary_text_is_not_held_back():
    pieces = redactor(TOKEN=TOKEN, KEY=KEY).pieces()
    assert pieces.feed("Building the project: 3 files.\n") == "Building the project: 3 files.\n"


def test_what_may_become_a_secret_is_held_back_until_it_is_known():
    pieces = redactor(TOKEN=TOKEN).pieces()
    assert pieces.feed(f"key: {TOKEN[:9]}") == "key: "
    assert pieces.feed(" is another one" + "." * 1000).startswith(f"{TOKEN[:9]} is another one")


def printed(command: str, secret: str) -> str:
    """What bash prints for a command that has the secret as $S and some more text before it as $T."""
    variables = {"S": secret, "T": f"before {secret} after", "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    run = subprocess.run(["bash", "-c", command], env=variables, capture_output=True, check=True)
    return (run.stdout + run.stderr).decode()


def leaked(secret: str, text: str) -> list[str]:
    """Return the pieces of the secret, of six characters, that are in the text."""
    return [piece for at in range(len(secret) - 5) if (piece := secret[at : at + 6]) in text]


SHELL_FORMS = [
    "printf '%q\n' \"$S\"",
    "declare -p S",
    'A=([1]="$S"); declare -p A; declare -px; declare -A B=([x]="$S"); declare -p B',
    'X="$S"; set',
    'alias x="$S"; alias -p',
    'set -x; : "$S"',
    'printf "%s\n" "${S@Q}" "${S@A}"',
    'trap -- "$S" EXIT; trap -p; trap - EXIT',
    'python3 -c \'import os, shlex; print(shlex.quote(os.environ["S"]), repr(os.environ["S"]))\'',
]


@pytest.mark.parametrize("command", SHELL_FORMS)
@pytest.mark.parametrize(
    "secret", [TOKEN, "it's'a''token", "'quoted\\'and\"more`$x!'", "two\nlines\tand\x1b\aé'", "all\\back\\\\slash"]
)
def test_it_is_found_as_shells_quote_it(command: str, secret: str):
    text = printed(command, secret)
    clear = redactor(NAME=secret).text(text)
    assert "[secret NAME]" in clear
    assert leaked(secret, clear) == []
    rest = secret.replace("'", "'\\''")
    assert rest not in clear


DUMPS = [
    *(
        "xxd",
        "xxd -u",
        "xxd -p",
        "xxd -g 1",
        "xxd -i",
        "xxd -c 8",
        "hexdump -C",
        "od -t x1",
        "od -An -t x1",
        "od -t x1z",
    ),
    *("od -A x -t x1", "od -v -A d -t x1z", "xxd -c 8 -g 4"),
]


@pytest.mark.parametrize("command", DUMPS)
@pytest.mark.parametrize("secret", [TOKEN, KEY, "hunter2222", "AKIAIOSFODNN7EXAMPLEKEY0123456789abcdefghijklmnop"])
@pytest.mark.parametrize("whole", ["T", "S"])
def test_it_is_found_in_hex_dumps(command: str, secret: str, whole: str):
    text = printed(f'printf %s "${whole}" | {command}', secret)
    clear = redactor(NAME=secret).text(text)
    assert clear.count("[secret NAME]") == 1
    assert leaked(secret, clear) == []
    digits = re.sub(r"\W", "", clear).lower()
    assert secret.encode()[:4].hex() not in digits
    assert secret.encode()[-4:].hex() not in digits
    assert shown(redactor(NAME=secret).pieces(), cut(text, list(range(0, len(text), 97)))) == clear


def test_of_two_secrets_that_begin_alike_the_longer_one_is_taken_out_whole():
    made = redactor(SHORT="abcdefgh1", LONG="abcdefgh1ijklmnop")
    assert made.text("abcdefgh1ijklmnop, abcdefgh1") == "[secret LONG], [secret SHORT]"
    assert shown(made.pieces(), ["abcdefgh1", "ijklmnop"]) == "[secret LONG]"


def test_a_line_of_a_key_is_taken_out_on_its_own():
    assert redactor(KEY=KEY).text(f"first: {KEY.splitlines()[3]}\n-----BEGIN KEY-----") == (
        "first: [secret KEY]\n-----BEGIN KEY-----"
    )


@unhurried
@given(secret=secrets, text=st.text(max_size=20))
def test_the_json_of_an_event_stays_json(secret: str, text: str):
    event = {"type": "X", "id": 1, "content": f"{text}{secret}\\{secret[1:]}", "more": [{secret: [1, secret]}]}
    clear = json.loads(redactor(NAME=secret).json(json.dumps(event, ensure_ascii=False)))
    assert secret not in clear["content"]
    assert clear["more"] == [{"[secret NAME]": [1, "[secret NAME]"]}]


LINES = "user=admin\npass=hunter22\nkey=QX7"


@pytest.mark.parametrize("secret", [LINES, LINES.replace("\n", "\r\n")])
@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r\r\n"])
def test_its_lines_may_end_differently_where_it_is_shown(secret: str, line_break: str):
    made = redactor(NAME=secret)
    other = LINES.replace("\n", line_break)
    for form in (other, json.dumps(other)[1:-1], json.dumps(json.dumps(other)[1:-1])[1:-1], urllib.parse.quote(other)):
        text, clear = f"out: {form}{line_break}end", f"out: [secret NAME]{line_break}end"
        assert made.text(text) == clear
        assert json.loads(made.json(json.dumps({"type": "X", "content": text})))["content"] == clear
        assert shown(made.pieces(), list(text)) == clear
        for at in range(len(text)):
            assert shown(made.pieces(), [text[:at], text[at:]]) == clear


def test_what_only_the_json_of_an_event_shows_is_taken_out_too():
    event = {"type": "X", "content": "out: pass=hunter\n22 end", "more": {"pass=hunter\n22": 1}}
    clear = redactor(NAME="pass=hunter\r22").json(json.dumps(event))
    assert json.loads(clear) == {"type": "X", "content": "out: [secret NAME] end", "more": {"[secret NAME]": 1}}


@pytest.mark.parametrize("shown", [5, 8, 12, 20])
def test_nothing_is_left_of_a_secret_through_which_an_output_was_cut(shown: int):
    made = redactor(TOKEN=TOKEN)
    half = CmdOutputObservation(
        command="x",
        exit_code=0,
        content=f"begin {TOKEN[:shown]}",
        tail=f"{TOKEN[-shown:]} end",
        size=99999,
        blob="0" * 64,
    )
    clear = made.ends(half)
    assert isinstance(clear, CmdOutputObservation)
    assert (clear.content, clear.tail) == ("begin ", " end")
    whole = half.model_copy(update={"content": "begin", "tail": "end"})
    assert made.ends(whole) is whole
