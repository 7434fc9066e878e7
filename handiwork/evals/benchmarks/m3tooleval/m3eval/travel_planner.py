"""Tools to plan a journey: flights, hotels and their cost. The tables are in travel_tables.json."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

TABLES = Path(__file__).with_name("travel_tables.json")


def find_flights(from_location: str, to_location: str, date: str) -> list[dict[str, Any]]:
    """Find the flights from one location to another on a date, in the format YYYY-MM-DD.

    Each flight is a dictionary: {"from_location": "A", "to_location": "B", "date": "2023-12-25", "price": 450}. Raises
    ValueError for an unknown location.
    """
    start, goal = _location(from_location), _location(to_location)
    return [
        flight
        for flight in _tables()["flights"]
        if (_bare(flight["from_location"]), _bare(flight["to_location"]), flight["date"]) == (start, goal, date)
    ]


def book_hotel(location: str, *preferences: str) -> list[dict[str, Any]]:
    """Find the hotels at a location that meet all preferences, such as "wifi", "pool" and "gym".

    Each hotel is a dictionary: {"location": "A", "preferences": ["wifi", "pool"], "price_per_night": 120, "rating": 4}.
    Raises ValueError for an unknown location.
    """
    place = _location(location)
    hotels = (hotel for hotel in _tables()["hotels"] if _bare(hotel["location"]) == place)
    return [hotel for hotel in hotels if set(preferences) <= set(hotel["preferences"])]


def budget_calculator(flight_price: float, hotel_price_per_night: float, num_nights: int) -> float:
    """Calculate the cost of a flight and of a hotel for a number of nights together."""
    return flight_price + num_nights * hotel_price_per_night


@lru_cache(maxsize=1)
def _tables() -> dict[str, Any]:
    return json.loads(TABLES.read_text(encoding="utf-8"))


def _bare(name: str) -> str:
    """Return a location's name without the quotation marks that the tables write around it."""
    return name.strip('"')


def _location(name: str) -> str:
    known = sorted({_bare(place) for place in _tables()["LOC"]})
    if _bare(name) not in known:
        raise ValueError(f"there is no location {name}: there are {', '.join(known)}")
    return _bare(name)
