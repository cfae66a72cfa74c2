"""What do the names in a table speak of: test cases, policies, results, or repetitions of them?"""

import re
from collections.abc import Sequence
from enum import StrEnum

SAMPLE = 200  # names that are looked at, spread evenly
MOST = 0.8  # of the names must speak of the same thing


class Kind(StrEnum):
    """What a name can speak of."""

    CASE = "test case"
    POLICY = "policy"
    RESULT = "result"
    REPETITION = "repetition"


WORDS = {
    Kind.CASE: (
        "benchmark case challenge dataset doc document env environment evaluation example exam game instance item "
        "level map opponent problem prompt puzzle query question sample scenario subtask task test track"
    ),
    Kind.POLICY: (
        "agent algo algorithm approach bot candidate checkpoint competitor engine learner llm method model participant "
        "player policy solver strategy student submission system team"
    ),
    Kind.RESULT: "result return reward score value",
    Kind.REPETITION: "attempt episode iteration rep repeat repetition replica replicate run seed trial",
}
KIND_OF = {word: kind for kind, words in WORDS.items() for word in words.split()}
KIND_OF |= {f"{before} case": Kind.CASE for before in ("test", "use")}
ABBREVIATIONS = {"q": Kind.CASE}  # in names with numbers, and weaker than a word
INDEX_WORDS = {"", "id", "idx", "index", "key", "name", "no", "nr", "number", "row", "unnamed"}
NUMBERED = re.compile(r"\s*(.*?[^\W\d_])[\W_]*\d+\s*", re.DOTALL)


def kind_of(name: str) -> Kind | None:
    """What a heading such as ``Test cases`` or ``model_id`` speaks of, if it is one of the words that are known.

    >>> kind_of("Test cases"), kind_of("model_id"), kind_of("Policies"), kind_of("item-7")
    (<Kind.CASE: 'test case'>, <Kind.POLICY: 'policy'>, <Kind.POLICY: 'policy'>, None)
    """
    words = _words(name)
    while len(words) > 1 and words[-1] in INDEX_WORDS:
        words = words[:-1]
    return KIND_OF.get(" ".join(words))


def is_index_word(name: str) -> bool:
    """Whether a heading says no more than that names or numbers stand below."""
    words = _words(name)
    return words[0] in INDEX_WORDS and all(word in INDEX_WORDS or word.isdecimal() for word in words)


def kind_of_names(names: Sequence[str]) -> tuple[Kind | None, bool]:
    """What numbered names such as ``item-0017`` or ``model 3`` speak of, and whether by a word rather than a letter.

    >>> kind_of_names(["item-0", "item-1"]), kind_of_names(["q1", "q2"]), kind_of_names(["pong", "tennis"])
    ((<Kind.CASE: 'test case'>, True), (<Kind.CASE: 'test case'>, False), (None, False))
    """
    sample = names[:: max(1, len(names) // SAMPLE)]
    stems = [match[1] for match in map(NUMBERED.fullmatch, sample) if match is not None]
    for kind in (Kind.CASE, Kind.POLICY):
        by_word = sum(kind_of(stem) is kind for stem in stems)
        by_letter = sum(ABBREVIATIONS.get(stem.lower()) is kind for stem in stems)
        if max(2, MOST * len(sample)) <= by_word + by_letter:
            return kind, by_word >= by_letter
    return None, False


def _words(name: str) -> list[str]:
    words = re.sub(r"[\W_]+", " ", name.lower()).split()
    return [*words[:-1], _singular(words[-1])] if words else [""]


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and word[:-1] in {*KIND_OF, *INDEX_WORDS} else word
