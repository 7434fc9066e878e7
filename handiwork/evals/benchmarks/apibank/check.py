"""API-Bank's check of a call: whether its arguments and its result are those that the dialogue recorded.

The rules are those of the method ``check_api_call_correctness`` of upstream's APIs. Two are changed, as upstream's
recorded results do not pass them: the deletion of a meeting is compared by its start (upstream reads a field that no
meeting has), and the output is not compared if upstream's own API draws it at random (AppointmentRegistration) or never
finds the recorded question (DocumentQA). Texts are compared without the white space around them and times in their
usual form, which upstream does for some of the APIs only.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from handiwork.evals.benchmarks.apibank import apis
from handiwork.evals.benchmarks.apibank.apis.api import DATE, TIME, Databases, parsed

TOPICS = {
    **dict.fromkeys(("AddAgenda", "ModifyAgenda", "QueryAgenda"), ("content", ("time", "location"))),
    **dict.fromkeys(("AddReminder", "ModifyReminder", "QueryReminder"), ("content", ("time",))),
    **dict.fromkeys(
        ("AddMeeting", "ModifyMeeting", "QueryMeeting"),
        ("meeting_topic", ("token", "start_time", "end_time", "location", "attendees")),
    ),
}
"""The APIs with a text that is compared by its words, and the arguments that must be the same beside it."""
OVERLAP = 0.5
"""The share of common words, of all words of two texts, that the texts must exceed."""

DELETIONS = {"DeleteAgenda": "time", "DeleteReminder": "time", "DeleteAlarm": "time", "DeleteMeeting": "start_time"}
"""The deletions that are right if they succeed at the same time."""

BY_OUTPUT = ("Dictionary", "SearchEngine", "ToolSearcher", "Wiki")
"""The APIs of which only the results are compared."""
BY_INPUT = ("AppointmentRegistration", "DocumentQA", "RegisterUser")
"""The APIs of whose outputs only the presence is compared."""

CASELESS = (
    *("AddScene", "DeleteScene", "ModifyScene", "QueryScene", "CancelTimedSwitch", "TimedSwitch"),
    *("EmergencyKnowledge", "SymptomSearch", "QueryHealthData", "RecordHealthData"),
    *("PlayMusic", "QueryStock", "SendEmail", "Translate"),
)
"""The APIs whose texts are compared without upper and lower case."""

RENAMED = {"device_id": "name"}
"""The arguments that the dialogues name as older APIs did."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call with its arguments, and its result if it has been carried out."""

    name: str
    input: Mapping[str, Any] = field(default_factory=dict[str, Any])
    output: Any = None
    exception: str | None = None


class MemoryDatabases(Databases):
    """The databases of a folder with changes that stay in memory; calls are not recorded."""

    def __init__(self, folder: Path, changed: Mapping[str, Any] | None = None) -> None:
        super().__init__(folder, None)
        self.changed: dict[str, Any] = dict(changed or {})

    def read(self, name: str) -> Any:
        """Return a database as it is now."""
        return copy.deepcopy(self.changed[name]) if name in self.changed else super().read(name)

    def write(self, name: str, content: Any) -> None:
        """Replace a database, in memory."""
        self.changed[name] = content

    def copy(self) -> MemoryDatabases:
        """Return databases with the same content whose changes are their own."""
        return MemoryDatabases(self.folder, self.changed)


def calls_in(turns: Sequence[Mapping[str, Any]]) -> list[RecordedCall]:
    """Return the calls of a dialogue's turns."""
    calls: list[RecordedCall] = []
    for turn in turns:
        if turn["role"] == "API":
            result = turn["result"]
            arguments = cast("Mapping[str, Any]", result["input"] or {})
            renamed = {RENAMED.get(name, name): value for name, value in arguments.items()}
            calls.append(RecordedCall(turn["api_name"], renamed, result["output"], result["exception"]))
    return calls


def run(call: RecordedCall, databases: Databases) -> RecordedCall:
    """Carry out a call; one that no API takes has no result but its exception."""
    if call.name not in apis.__all__:
        return RecordedCall(call.name, call.input, None, f"there is no API {call.name}")
    try:
        result = getattr(apis, call.name)(databases).call(**call.input)
    except TypeError as error:
        return RecordedCall(call.name, call.input, None, str(error))
    return RecordedCall(call.name, result["input"], result["output"], result["exception"])


def replay(call: RecordedCall, databases: Databases) -> None:
    """Carry out a recorded call; the token or id that it returned then is the one in the databases."""
    returned = run(call, databases).output
    if call.name == "RegisterUser" and returned is not None and call.output is not None:
        accounts = databases.read("Account")
        accounts[call.input["username"]]["token"] = call.output["token"]
        databases.write("Account", accounts)
    if call.name == "AppointmentRegistration" and returned is not None and call.output is not None:
        appointments = databases.read("Appointments")
        appointments[call.output] = appointments.pop(returned)
        databases.write("Appointments", appointments)


def is_right(call: RecordedCall, gold: RecordedCall, databases: Databases) -> bool:
    """Return whether a call of an agent, which may have any arguments, is the recorded one once it is carried out."""
    if call.name != gold.name:
        return False
    try:
        return accepts(run(call, databases), gold)
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError):
        return False


def accepts(made: RecordedCall, gold: RecordedCall) -> bool:
    """Return whether a call that was carried out is the recorded one."""
    name = gold.name
    if name in DELETIONS and made.output == gold.output == "success":
        return made.input.get(DELETIONS[name]) == gold.input.get(DELETIONS[name])
    if name in TOPICS:
        topic, others = TOPICS[name]
        texts = [str(call.input.get(topic)) for call in (made, gold)]
        same_input = _overlap(*map(str.lower, texts) if name.endswith("Reminder") else texts) > OVERLAP and all(
            made.input.get(other) == gold.input.get(other) for other in others
        )
    else:
        same_input = name in BY_OUTPUT or name in DELETIONS or _same(name, made.input, gold.input)
    if name in BY_INPUT:
        same_output = (made.output is None) is (gold.output is None)
    else:
        same_output = _same(name, made.output, gold.output)
    return same_input and same_output and made.exception == gold.exception


def _overlap(made: str, gold: str) -> float:
    words, wanted = set(made.split()), set(gold.split())
    return len(words & wanted) / len(words | wanted) if words | wanted else 1.0


def _same(name: str, made: Any, gold: Any) -> bool:
    return _plain(made, name in CASELESS) == _plain(gold, name in CASELESS)


def _plain(value: Any, caseless: bool) -> Any:
    """Return a value in the form in which it is compared: lists of objects in any order, times in one form."""
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value)
        return {key: _plain(item, caseless) for key, item in items.items()}
    if isinstance(value, (list, tuple)):
        plain = [_plain(item, caseless) for item in cast("Sequence[Any]", value)]
        return sorted(plain, key=str) if all(isinstance(item, dict) for item in plain) else plain
    if not isinstance(value, str):
        return round(value, 2) if isinstance(value, float) else value
    text = value.strip()
    for form in (TIME, DATE):
        try:
            return parsed(text, form)
        except ValueError:
            pass
    return text.lower() if caseless else text
