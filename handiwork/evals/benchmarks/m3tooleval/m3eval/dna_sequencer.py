"""Tools for sequences of plant DNA: validate, count, transcribe and translate."""

from __future__ import annotations

from typing import Any

TO_MRNA = {"A": "U", "C": "G", "G": "C", "T": "A"}
TO_DNA = {mrna: dna for dna, mrna in TO_MRNA.items()}

AMINO_ACIDS = {"AUG": "Methionine", "UUU": "Phenylalanine", "UUC": "Phenylalanine"}
"""The amino acids of the known codons."""
UNKNOWN = "X"


def count_nucleotides(dna_sequence: str) -> dict[str, int]:
    """Count the occurrences of each nucleotide in a DNA sequence, in the order of their first occurrence."""
    return {nucleotide: dna_sequence.count(nucleotide) for nucleotide in dict.fromkeys(dna_sequence)}


def transcribe_dna_to_mrna(dna_sequence: str) -> str:
    """Transcribe a DNA sequence to mRNA."""
    return "".join(TO_MRNA.get(nucleotide, nucleotide) for nucleotide in dna_sequence)


def translate_mrna_to_amino_acid(mrna_sequence: str) -> str:
    """Translate an mRNA sequence to a chain of amino acids, joined by "-"; X is an unknown one."""
    chain: list[str] = []
    while mrna_sequence:
        codon, mrna_sequence = mrna_sequence[:3], mrna_sequence[3:]
        chain.append(AMINO_ACIDS.get(codon, UNKNOWN))
    return "-".join(chain)


def find_max_nucleotide(*args: Any) -> tuple[str, int]:
    """Return the nucleotide with the highest count, and the count.

    The arguments are nucleotides and their counts by turns: ("A", 2, "C", 5). Of equal counts the first one wins.
    """
    pairs = list(zip(args[0::2], args[1::2]))  # noqa: B905 - Python 3.9 has no strict=
    return max(pairs, key=lambda pair: pair[1])


def is_valid_dna_sequence(dna_sequence: str) -> bool:
    """Check that a DNA sequence has no other letters than A, C, G and T."""
    return all(nucleotide in TO_MRNA for nucleotide in dna_sequence)


def reverse_transcribe_mrna_to_dna(mrna_sequence: str) -> str:
    """Reverse transcribe an mRNA sequence to DNA."""
    return "".join(TO_DNA.get(nucleotide, nucleotide) for nucleotide in mrna_sequence)
