"""APIs of meetings. Times are written as 2023-03-21 15:00:00."""

from __future__ import annotations

from typing import Any

from .api import TIME, ApiError, api_call, filled, parsed
from .calendars import Entries


class MeetingEntries(Entries):
    """Users' meetings."""

    database = "Meeting"

    def meeting(self, token: str, meeting_topic: str, start_time: str, end_time: str) -> str:
        """Return the key of the meeting with that topic, or which starts at that time. Raises ApiError."""
        for time in (start_time, end_time):
            if time:
                parsed(time, TIME)
        if not meeting_topic.strip() and not start_time:
            raise ApiError("Meeting Topic and start_time should not be null both")
        key = self.key_of(token, meeting_topic=meeting_topic, start_time=start_time)
        if key is None:
            about = f"about {meeting_topic}" if meeting_topic else f"at time : {start_time}"
            raise ApiError(f"You have no meeting {about}")
        return key


class AddMeeting(MeetingEntries):
    """Reserve a meeting, with its topic, time, location and attendees."""

    @api_call
    def call(
        self, token: str, meeting_topic: str, start_time: str, end_time: str, location: str, attendees: list[str]
    ) -> str:
        """Reserve the meeting, and return "success". The topic has at most 50 characters, the location 100."""
        start, end = parsed(start_time, TIME), parsed(end_time, TIME)
        topic = filled(meeting_topic, "Meeting Topic should not be null")
        meeting = {"meeting_topic": topic, "start_time": start, "end_time": end}
        return self.add(token, {**meeting, "location": location, "attendees": attendees})


class DeleteMeeting(MeetingEntries):
    """Delete the reservation of a meeting."""

    @api_call
    def call(
        self, token: str, meeting_topic: str, start_time: str, end_time: str, location: str, attendees: list[str]
    ) -> str:
        """Delete the meeting with that topic, or which starts at that time, and return "success"."""
        return self.change(self.meeting(token, meeting_topic, start_time, end_time), None)


class ModifyMeeting(MeetingEntries):
    """Change the reservation of a meeting."""

    @api_call
    def call(
        self, token: str, meeting_topic: str, start_time: str, end_time: str, location: str, attendees: list[str]
    ) -> str:
        """Change the meeting with that topic, or which starts at that time, and return "success"."""
        key = self.meeting(token, meeting_topic, start_time, end_time)
        fields = {"meeting_topic": meeting_topic, "start_time": start_time, "end_time": end_time}
        fields |= {"location": location, "attendees": attendees}
        return self.change(key, {name: value for name, value in fields.items() if value})


class QueryMeeting(MeetingEntries):
    """Query the reservation of a meeting."""

    @api_call
    def call(
        self, token: str, meeting_topic: str, start_time: str, end_time: str, location: str, attendees: list[str]
    ) -> dict[str, Any]:
        """Return the meeting with that topic, or which starts at that time."""
        return self.databases.read(self.database)[self.meeting(token, meeting_topic, start_time, end_time)]
