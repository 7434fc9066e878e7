"""APIs of a smart home: scenes of devices, switches with a timer, music."""

from __future__ import annotations

from typing import Any

from .api import TIME, Api, ApiError, api_call, filled, parsed

FIRST_DEVICE = 10000021
"""The number of the first device of the database; a switch takes a device's number for its name."""


class Scenes(Api):
    """Scenes by their names; upper and lower case are the same."""

    def named(self, name: str, *, is_known: bool) -> str:
        """Return the key of a scene that must be known, or must not. Raises ApiError."""
        key = filled(name, "Scene name cannot be empty.").lower()
        if (key in self.databases.read("Scenes")) is not is_known:
            raise ApiError("The scene does not exist." if is_known else "Scene name already exists.")
        return key

    def change(self, key: str, devices: list[dict[str, str]] | None) -> str:
        """Set the devices of a scene, or delete it. Raises ApiError."""
        scenes = self.databases.read("Scenes")
        if devices is None:
            del scenes[key]
        else:
            names = [device.get("name") for device in devices]
            if not all(names) or any("description" not in device for device in devices):
                raise ApiError("Invalid device format.")
            if len(set(names)) < len(names):
                raise ApiError("Device ID cannot be duplicated.")
            scenes[key] = devices
        self.databases.write("Scenes", scenes)
        return "success"


class AddScene(Scenes):
    """Add a scene, with its name and its devices."""

    @api_call
    def call(self, name: str, devices: list[dict[str, str]]) -> str:
        """Add the scene; a device is {"name": "light", "description": "Smart light in the kitchen"}: "success"."""
        return self.change(self.named(name, is_known=False), devices)


class DeleteScene(Scenes):
    """Delete a scene by its name."""

    @api_call
    def call(self, name: str) -> str:
        """Delete the scene, and return "success"."""
        return self.change(self.named(name, is_known=True), None)


class ModifyScene(Scenes):
    """Change the devices of a scene."""

    @api_call
    def call(self, name: str, devices: list[dict[str, str]]) -> str:
        """Replace the devices of the scene, and return "success"."""
        return self.change(self.named(name, is_known=True), devices)


class QueryScene(Scenes):
    """Query the devices of a scene by its name."""

    @api_call
    def call(self, name: str) -> list[dict[str, str]]:
        """Return the devices of the scene."""
        return self.databases.read("Scenes")[self.named(name, is_known=True)]


class Switches(Api):
    """Switches with a timer, by the device's name or number."""

    def device(self, name: str) -> str:
        """Return the name of a device. Raises ApiError."""
        key = filled(str(name), "Name cannot be empty.").lower()
        devices = list(self.databases.read("TimeSwitch"))
        number = int(key) - FIRST_DEVICE if key.isdecimal() else -1
        if 0 <= number < len(devices):
            return devices[number]
        return next((device for device in devices if device.lower() == key), key)


class TimedSwitch(Switches):
    """Switch a device on or off at a set time."""

    @api_call
    def call(self, name: str, time: str, on: bool) -> str:
        """Set the timer of the device: True switches it on, False off. Return "success"."""
        key, moment, timers = self.device(name), parsed(time, TIME), self.databases.read("TimeSwitch")
        others: list[dict[str, Any]] = [timer for timer in timers.get(key, []) if timer["time"] != moment]
        timers[key] = [*others, {"time": moment, "on": on}]
        self.databases.write("TimeSwitch", timers)
        return "success"


class CancelTimedSwitch(Switches):
    """Cancel the timer of a device."""

    @api_call
    def call(self, name: str, time: str) -> str:
        """Cancel the timer of the device that is set to that time, and return "success"."""
        key, moment, timers = self.device(name), parsed(time, TIME), self.databases.read("TimeSwitch")
        if key not in timers:
            raise ApiError("The device does not exist.")
        rest = [timer for timer in timers[key] if timer["time"] != moment]
        if len(rest) == len(timers[key]):
            raise ApiError("time does not exist.")
        timers[key] = rest
        self.databases.write("TimeSwitch", timers)
        return "success"


class PlayMusic(Api):
    """Play a piece of music."""

    @api_call
    def call(self, music_name: str) -> str:
        """Return the address that makes the player play the piece."""
        return f"music://{filled(music_name, 'Music name cannot be empty.').lower()}"
