"""Names of elements that trigger acts which cannot be undone, in English, German, French and Spanish."""

from __future__ import annotations

import re
from collections.abc import Iterable

_VERB_LIST = """
    delete remove erase destroy discard wipe purge trash uninstall deactivate terminate revoke unsubscribe resign
    buy pay purchase donate checkout withdraw send resend submit publish confirm approve authorize authorise overwrite
    merge deploy tweet
    löschen lösche entfernen entferne kaufen bestellen bezahlen zahlen zahlungspflichtig senden absenden abschicken
    schicken veröffentlichen kündigen abbestellen stornieren unterschreiben unterzeichnen bestätigen überweisen buchen
    spenden
    supprimer effacer retirer acheter payer commander envoyer publier résilier désabonner désinscrire signer confirmer
    valider réserver
    eliminar borrar quitar comprar pagar pedir enviar publicar firmar confirmar donar reservar suscribirse
"""
_VERBS = frozenset(_VERB_LIST.split())
"""Words that count anywhere in a name."""
_IMPERATIVE_LIST = """
    order post book reserve bid share transfer reply release register subscribe accept agree sell trade charge refund
    empty invite block ban report
"""
_IMPERATIVES = frozenset(_IMPERATIVE_LIST.split())
"""Words that are nouns too ("Order history"): they count if a button's name begins with them, or is that one word."""
_PHRASES = re.compile(
    r"\b(?:place|complete|finish)\b.*\b(?:order|purchase|payment)\b|\bcheck out\b|\bsign (?!in\b|out\b)|^sign$"
    r"|\bclose\b.*\baccount\b|\bcancel (?=\S)|\bclear (?=all\b|history\b|data\b)|\bannuler (?=\S)|\bcancelar (?=\S)",
    re.IGNORECASE,
)
"""Verbs that mean something else alone: "Cancel" closes a dialog, "Cancel subscription" does not."""
_DISMISSAL_LIST = """
    cancel close no back dismiss keep
    abbrechen schließen nein zurück annuler fermer non retour cancelar cerrar volver
"""
_DISMISSALS = frozenset(_DISMISSAL_LIST.split())
_SEARCHES = re.compile(r"search|find|filter|query|look ?up|such|recherch|busca", re.IGNORECASE)
_LETTER_OR_DIGIT = re.compile(r"[a-z0-9\u00c0-\u024f]", re.IGNORECASE)
_OTHER_LETTER = re.compile(
    r"[^\W\d_a-zA-Z\u00aa\u00b2\u00b3\u00b5\u00b9-\u00be\u00c0-\u02ff\u1e00-\u1eff\u2070-\u218b\u2460-\u249b]"
)
"""A letter of another script; fractions, raised and circled digits are none."""
_DIRECTIONS = re.compile(r"[<>‹›«»←→↑↓▲▼◀▶+−–…☰⋮-]+")


def names_irreversible_act(names: Iterable[str], *, link: bool = False) -> bool:
    """Return whether one of an element's names is that of such an act; a ``link`` counts by clear verbs alone."""
    return any(_names_act(name, link) for name in names)


def is_understood(names: Iterable[str]) -> bool:
    """Return whether one of the names has only Latin letters and numbers, or is a sign of a direction."""
    return any(
        (_LETTER_OR_DIGIT.search(name) and not _OTHER_LETTER.search(name)) or _DIRECTIONS.fullmatch(name.strip())
        for name in names
    )


def dismisses(names: Iterable[str]) -> bool:
    """Return whether the names are those of a button that closes a dialog and declines its question."""
    return any((words := _words(name)) and words[0] in _DISMISSALS for name in names)


def asks_for_search(words: Iterable[str]) -> bool:
    """Return whether the words of a form's only box say that it searches."""
    return any(_SEARCHES.search(text) for text in words)


def address_names_irreversible_act(path: str) -> bool:
    """Return whether a part of an address begins with a verb of such an act, or one of its query is such a verb."""
    address, _, query = path.casefold().partition("?")
    # Pages of merge requests only show them; the act on one is the part "merge".
    parts = (part for part in re.split(r"[/&=;#]", address) if not re.match(r"merge[_-]requests?\b", part))
    begun = [re.split(r"[._-]", part)[0] for part in parts]
    return not _VERBS.isdisjoint([*begun, *re.split(r"[/?&=;#]", query)])


def _names_act(name: str, link: bool) -> bool:
    words = _words(name)
    if not words:
        return False
    begins = words[0] in _IMPERATIVES and (not link or len(words) == 1)
    return begins or not _VERBS.isdisjoint(words) or _PHRASES.search(name) is not None


def _words(name: str) -> list[str]:
    return re.findall(r"[^\W_]+", name.casefold())
