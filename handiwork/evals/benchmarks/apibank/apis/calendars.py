"""APIs of a user's agenda, reminders and alarms. Times are written as 2023-03-21 15:00:00."""

from __future__ import annotations

from typing import Any

from .api import TIME, Api, ApiError, api_call, filled, next_key, parsed


class Entries(Api):
    """Entries of a database that belong to users."""

    database = ""

    def add(self, token: str, entry: dict[str, Any]) -> str:
        """Add an entry of the user with the token."""
        entries = self.databases.read(self.database)
        entries[next_key(entries)] = {**entry, "username": self.username(token)}
        self.databases.write(self.database, entries)
        return "success"

    def key_of(self, token: str, **fields: str) -> str | None:
        """Return the key of the user's first entry that has one of these fields, None if there is none."""
        username = self.username(token)
        wanted = {name: value for name, value in fields.items() if value}
        for key, entry in self.databases.read(self.database).items():
            if entry["username"] == username and any(entry[name] == value for name, value in wanted.items()):
                return key
        return None

    def change(self, key: str, fields: dict[str, Any] | None) -> str:
        """Change fields of an entry, or delete it."""
        entries = self.databases.read(self.database)
        if fields is None:
            del entries[key]
        else:
            entries[key].update(fields)
        self.databases.write(self.database, entries)
        return "success"


class AgendaEntries(Entries):
    """The items of users' agendas."""

    database = "Agenda"

    def item(self, token: str, content: str, time: str) -> str:
        """Return the key of the item with that content, or at that time. Raises ApiError."""
        if time:
            parsed(time, TIME)
        key = self.key_of(token, content=content, time=time)
        if key is None:
            about = f"about {content}" if content else f"at time : {time}"
            raise ApiError(f"You have no agenda {about}")
        return key


class AddAgenda(AgendaEntries):
    """Add an item to a user's agenda, with its content, time and location."""

    @api_call
    def call(self, token: str, content: str, time: str, location: str) -> str:
        """Add the item, and return "success"."""
        parsed(time, TIME)
        filled(content, "Content should not be null")
        return self.add(token, {"content": content, "time": time, "location": location})


class DeleteAgenda(AgendaEntries):
    """Delete an item of a user's agenda."""

    @api_call
    def call(self, token: str, content: str, time: str, location: str) -> str:
        """Delete the item with that content, or at that time, and return "success"."""
        return self.change(self.item(token, content, time), None)


class ModifyAgenda(AgendaEntries):
    """Change the time and location of an item of a user's agenda."""

    @api_call
    def call(self, token: str, content: str, time: str, location: str) -> str:
        """Give the item with that content a new time and location, and return "success"."""
        key = self.item(token, content, time)
        return self.change(key, {"content": content, "time": time, "location": location})


class QueryAgenda(AgendaEntries):
    """Query an item of a user's agenda."""

    @api_call
    def call(self, token: str, content: str, time: str, location: str) -> dict[str, Any]:
        """Return the item with that content, or at that time."""
        return self.databases.read(self.database)[self.item(token, content, time)]


class ReminderEntries(Entries):
    """Users' reminders."""

    database = "Reminder"

    def reminder(self, token: str, content: str, time: str) -> str:
        """Return the key of the reminder with that content, or at that time. Raises ApiError."""
        parsed(time, TIME)
        filled(content, "Content should not be null")
        key = self.key_of(token, content=content, time=time)
        if key is None:
            raise ApiError(f"You have no reminder about {content} or at time : {time}")
        return key


class AddReminder(ReminderEntries):
    """Add a reminder for a user, with its content and time."""

    @api_call
    def call(self, token: str, content: str, time: str) -> str:
        """Add the reminder, and return "success"."""
        parsed(time, TIME)
        filled(content, "Content should not be null")
        return self.add(token, {"content": content, "time": time})


class DeleteReminder(ReminderEntries):
    """Delete a reminder of a user."""

    @api_call
    def call(self, token: str, content: str, time: str) -> str:
        """Delete the reminder with that content, or at that time, and return "success"."""
        return self.change(self.reminder(token, content, time), None)


class ModifyReminder(ReminderEntries):
    """Change a reminder of a user."""

    @api_call
    def call(self, token: str, content: str, time: str) -> str:
        """Give the reminder with that content a new time, or the one at that time a new content: "success"."""
        return self.change(self.reminder(token, content, time), {"content": content, "time": time})


class QueryReminder(ReminderEntries):
    """Query a reminder of a user."""

    @api_call
    def call(self, token: str, content: str, time: str) -> dict[str, Any]:
        """Return the reminder with that content, or at that time."""
        return self.databases.read(self.database)[self.reminder(token, content, time)]


class AlarmEntries(Entries):
    """Users' alarm clocks."""

    database = "Alarm"

    def alarm(self, token: str, time: str) -> str:
        """Return the key of the alarm at that time. Raises ApiError."""
        parsed(time, TIME)
        key = self.key_of(token, time=time)
        if key is None:
            raise ApiError(f"You have no alarm clock at time : {time}")
        return key


class AddAlarm(AlarmEntries):
    """Set an alarm for a user."""

    @api_call
    def call(self, token: str, time: str) -> str:
        """Set an alarm at that time, and return "success"."""
        parsed(time, TIME)
        return self.add(token, {"time": time})


class DeleteAlarm(AlarmEntries):
    """Delete an alarm of a user."""

    @api_call
    def call(self, token: str, time: str) -> str:
        """Delete the alarm at that time, and return "success"."""
        return self.change(self.alarm(token, time), None)


class ModifyAlarm(AlarmEntries):
    """Move an alarm of a user to another time."""

    @api_call
    def call(self, token: str, from_time: str, to_time: str) -> str:
        """Move the alarm at ``from_time`` to ``to_time``, and return "success"."""
        parsed(to_time, TIME)
        return self.change(self.alarm(token, from_time), {"time": to_time})


class QueryAlarm(AlarmEntries):
    """Query an alarm of a user."""

    @api_call
    def call(self, token: str, time: str) -> dict[str, Any]:
        """Return the alarm at that time."""
        return self.databases.read(self.database)[self.alarm(token, time)]
