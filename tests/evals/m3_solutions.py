"""Solves the tasks of M3ToolEval with the tools of the code base: run in a workspace that has it.

Reads the tasks as JSON lines, and writes a line for each with its name and the answer's repr. All numbers, names and
messages come from a task's instruction.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import Any

from m3eval.browser import WebBrowser
from m3eval.dna_sequencer import (
    count_nucleotides,
    find_max_nucleotide,
    is_valid_dna_sequence,
    reverse_transcribe_mrna_to_dna,
    transcribe_dna_to_mrna,
    translate_mrna_to_amino_acid,
)
from m3eval.message_decoder import (
    caesar_decode,
    convert_hex_to_ascii,
    maximum_value,
    minimum_value,
    reverse_string,
    string_length,
)
from m3eval.trade_calculator import (
    calculate_tariff,
    calculator,
    convert_currency,
    estimate_final_value,
    find_maximum,
    find_minimum,
)
from m3eval.travel_planner import book_hotel, budget_calculator, find_flights


def decoded(text: str, *, reverse: bool = True) -> list[str]:
    """The messages of a task, each decoded with its shift, or with the only one."""
    messages = re.findall(r"'([0-9a-f]+)'", text)
    shifts = [int(shift) for shift in re.findall(r"\d+", re.search(r"shifts? of ([\d, and]+)", text)[1])]
    plain = [convert_hex_to_ascii(message) for message in messages]
    plain = [reverse_string(one) for one in plain] if reverse else plain
    return [caesar_decode(one, shifts[number % len(shifts)]) for number, one in enumerate(plain)]


def sequences(text: str) -> list[str]:
    return re.findall(r"'([A-Z]+)'", text)


def most_common(sequence: str) -> tuple[str, int]:
    return find_max_nucleotide(*[part for pair in count_nucleotides(sequence).items() for part in pair])


def translated(sequence: str) -> str:
    return translate_mrna_to_amino_acid(transcribe_dna_to_mrna(sequence))


def traded(price: float, rate: float, tariff: float) -> float:
    converted = convert_currency(price, rate)
    return estimate_final_value(converted, calculate_tariff(converted, tariff))


def trade(compute: Callable[[list[float]], Any]) -> Callable[[str], Any]:
    """A solution that computes with the numbers of the task, in their order."""
    return lambda text: compute([float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)])


def journey(*wishes: tuple[str, ...], best: str = "", without: str = "") -> Callable[[str], Any]:
    """A solution that takes the cheapest flight and hotel of each leg, with the wishes for the leg, or for all legs.

    In the locations ``best`` the hotel with the highest rating is taken.
    """

    def solve(text: str) -> float:
        place = re.search(r'(?:at|starting from) "(\w)"', text)[1]
        legs = re.findall(r'to "(\w)" on ([\d-]+)', text)
        nights = [int(number) for number in re.findall(r"(\d+) nights", text)]
        total = 0.0
        for number, (goal, date) in enumerate(legs):
            flight = min(find_flights(place, goal, date), key=lambda one: one["price"])
            hotels = [
                hotel
                for hotel in book_hotel(goal, *wishes[number % len(wishes)])
                if without not in hotel["preferences"]
            ]
            chosen = (
                max(hotels, key=lambda one: one["rating"])
                if goal in best
                else min(hotels, key=lambda one: one["price_per_night"])
            )
            total += budget_calculator(flight["price"], chosen["price_per_night"], nights[number])
            place = goal
        return total

    return solve


def first_offers(text: str) -> float:
    """The budget with the first flight and the first hotel, for a task that asks for none in particular."""
    (goal, date), nights = re.search(r'to "(\w)" on ([\d-]+)', text).groups(), re.search(r"(\d+) nights", text)[1]
    flight, hotel = find_flights('"E"', goal, date)[0], book_hotel(goal, "wifi", "pool")[0]
    return budget_calculator(flight["price"], hotel["price_per_night"], int(nights))


def site() -> dict[str, str]:
    """The text of each page of the web site, read by clicking and scrolling."""
    browser, texts = WebBrowser(), {}
    waiting = ["/"]
    while waiting:
        url = waiting.pop()
        view = browser.view() if url == "/" else browser.click_url(url)
        if view == "[URL not found.]":
            waiting += [url.replace("_", "-")] if "_" in url else []
            continue
        text = view
        while not (view := browser.scroll_down()).startswith("[Reached the bottom"):
            text += "\n" + view
        texts[url] = text
        waiting += [link for link in re.findall(r"\[Clickable '([^']+)'\]", text) if link not in texts]
    return texts


def price(item: str) -> str:
    page = next(text for text in PAGES.values() if f"Item: {item}\n" in text)
    return re.findall(r"\$([\d.]+)", page)[-1]


def total(text: str) -> float:
    prices = " + ".join(price(item) for item in re.search(r"\[(.+?)\]", text)[1].split(", "))
    return calculator(f"({prices}) * 0.9" if "discount" in text else prices)


def person(field: str) -> Callable[[str], str]:
    """A solution that reads a field of the page of the person that the task is about."""

    def solve(text: str) -> str:
        name = re.search(r" of ([A-Z]\w+ [A-Z]\w+)\.", text)[1]
        page = next(text for text in PAGES.values() if f"{name} of " in text)
        return re.search(field, page)[1].strip()

    return solve


def people(text: str) -> int:
    department = re.search(r"in the (.+) Department", text)[1]
    return sum(f" of {department} Department" in page for page in PAGES.values())


def owner(text: str) -> str:
    number = re.search(r"number is (.+?)\?", text)[1]
    page = next(page for page in PAGES.values() if f"Phone: {number}" in page)
    return re.search(r"(\w+ \w+) of .+ Department", page)[1]


PAGES = site()

SOLUTIONS: dict[str, Callable[[str], Any]] = {
    "full_alien_message_decoding": lambda text: decoded(text)[0],
    "shortest_caesar_decoded_message": lambda text: minimum_value(*map(string_length, decoded(text))),
    "longest_decoded_string": lambda text: maximum_value(*map(string_length, decoded(text))),
    "specific_decoded_character": lambda text: decoded(text)[0],
    "hex_caesar_combined_decoding": lambda text: decoded(text, reverse=False)[0],
    "multi_step_decoding_challenge": lambda text: decoded(text)[0],
    "length_based_decoding_puzzle": lambda text: next(
        one for one in decoded(text, reverse=False) if string_length(one) == 5
    ),
    "maximum_value_decoding": lambda text: maximum_value(*map(int, decoded(text))),
    "find_most_common_nucleotide_and_transcribe": lambda text: transcribe_dna_to_mrna(
        3 * most_common(sequences(text)[0])[0]
    ),
    "validate_transcribe_translate": lambda text: (
        translated(sequences(text)[0]) if is_valid_dna_sequence(sequences(text)[0]) else "Invalid DNA sequence"
    ),
    "reverse_transcribe_count_max_nucleotide": lambda text: most_common(
        reverse_transcribe_mrna_to_dna(sequences(text)[0])
    )[0],
    "transcribe_translate_amino_acid_length": lambda text: len(translated(sequences(text)[0]).split("-")),
    "reverse_transcribe_palindrome_check": lambda text: count_nucleotides(
        reverse_transcribe_mrna_to_dna(sequences(text)[0])
    ),
    "validate_find_longest_valid_sequence": lambda text: max(
        filter(is_valid_dna_sequence, sequences(text)), key=string_length
    ),
    "transcribe_translate_find_amino_acid": lambda text: "Methionine" in translated(sequences(text)[0]),
    "find_most_common_nucleotide_combined_sequence": lambda text: most_common("".join(sequences(text))),
    "estimate_final_value": trade(lambda n: traded(n[0], 1, n[1])),
    "interstellar_trade_transaction": trade(lambda n: traded(n[0] * n[1], n[2], n[3])),
    "taxed_commodity_export": trade(lambda n: traded(n[0] * n[1], n[2], n[3])),
    "best_trade_route_selection": trade(
        lambda n: find_minimum(*[traded(n[0], rate, tariff) for rate, tariff in zip(n[2::3], n[3::3], strict=True)])
    ),
    "most_profitable_conversion_rate": trade(
        lambda n: find_maximum(*[traded(n[0] * n[4], rate, n[5]) for rate in n[1:4]])
    ),
    "bulk_trade_quantity_discount": trade(lambda n: traded(n[6] * n[1] * (1 - n[3] / 100), n[4], n[5])),
    "comparative_profit_analysis": trade(
        lambda n: find_maximum(traded(n[0] * n[3], n[1], n[2]), traded(n[4] * n[7], n[5], n[6]))
    ),
    "fluctuating_conversion_rates_impact": trade(
        lambda n: [traded(n[0] * units, rate, n[1]) for units, rate in zip(n[2:5], n[5:8], strict=True)]
    ),
    "optimal_trade_route_multiple_commodities": trade(
        lambda n: find_maximum(*[traded(n[at] * n[at + 1], n[at + 2], n[at + 3]) for at in (1, 6, 11)])
    ),
    "seasonal_price_fluctuation_impact": trade(lambda n: [traded(each * n[3], n[4], n[5]) for each in n[:3]]),
    "balancing_multiple_trade_offers": trade(
        lambda n: traded(n[1] * n[2], n[3], n[4]) - traded(n[6] * n[7], n[8], n[9])
    ),
    "dynamic_pricing_strategy": trade(
        lambda n: [
            traded(n[0] * units * (1 + change / 100), n[6], n[7])
            for units, change in zip(n[3:6], (n[1], 0, -n[2]), strict=True)
        ]
    ),
    "quantity_tariff_tradeoff": trade(
        lambda n: find_maximum(traded(n[1] * n[6], n[7], n[2]), traded(n[4] * n[6], n[7], n[5]))
    ),
    "optimizing_bulk_purchase_discounts": trade(
        lambda n: find_maximum(
            *[
                traded(units * each * (1 - n[0] / 100 * (units >= n[1])), n[6], n[7])
                for units in n[4:6]
                for each in n[2:4]
            ]
        )
    ),
    "currency_fluctuation_hedging": trade(
        lambda n: find_minimum(*[traded(n[0] * n[1], rate, n[5]) for rate in n[2:5]])
    ),
    "variable_tariff_profit_maximization": trade(
        lambda n: find_maximum(*[traded(n[0] * n[at], n[7], n[at + 1]) for at in (1, 3, 5)])
    ),
    "long_term_vs_short_term_trade_decisions": trade(
        lambda n: [
            traded(n[0] * n[1], n[2], n[3]),
            traded(n[0] * n[1] * (1 + n[4] / 100), n[2] - n[6], n[3] + n[5]),
        ]
    ),
    "plan_trip_to_0": first_offers,
    "cheapest_new_york_trip": journey(()),
    "luxury_tokyo_trip": journey((), best="ABCDE"),
    "budget_trip_to_paris": journey(()),
    "new_york_trip_with_specific_preferences": journey(("gym",), without="pool"),
    "london_business_trip": journey(("wifi",)),
    "last_minute_tokyo_trip": journey(()),
    "new_york_holiday_season": journey(("gym", "pool")),
    "multi_city_business_trip": journey(("wifi",)),
    "leisure_multi_city_trip": journey(()),
    "three_city_european_tour": journey(("wifi",)),
    "adventure_trip": journey(("pool",), (), ("gym",)),
    "cultural_exploration_tour": journey(("wifi",), best="D"),
    "leisure_and_business_combo": journey(("wifi", "gym"), ("pool",), ("wifi", "gym")),
    "grand_tour_vacation": journey((), best="ABCDE"),
    "price_of": lambda text: float(price(re.search(r"price of (.+?)\.", text)[1])),
    "total_price_of_selected_items": total,
    "email_of": person(r"Email: (\S+)"),
    "department_of": person(r" of (.+) Department"),
    "phone_number_of": person(r"Phone: (\S+)"),
    "expertise_of": person(r"Expertise: (\S+)"),
    "people_in": people,
    "match_phone_number_to_person": owner,
}
"""The solutions by the beginning of the task's name."""

for line in sys.stdin:
    task = json.loads(line)
    name = task["name"].rpartition("/")[2]
    solve = SOLUTIONS.get(name) or next(solution for start, solution in SOLUTIONS.items() if name.startswith(start))
    print(json.dumps({"name": task["name"], "answer": repr(solve(task["instruction"]))}))  # noqa: T201
