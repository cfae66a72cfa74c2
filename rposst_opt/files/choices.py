"""The words by which a caller chooses how a table is read. They stand alone, so that help need not wait for pandas."""

from enum import StrEnum


class Side(StrEnum):
    """Where the test cases of a wide table are."""

    ROWS = "rows"
    COLUMNS = "columns"

    @property
    def other(self) -> "Side":
        """Where its policies are."""
        return Side.COLUMNS if self is Side.ROWS else Side.ROWS


class Missing(StrEnum):
    """What to do about missing cells."""

    ERROR = "error"
    DROP_CASES = "drop-cases"
    DROP_POLICIES = "drop-policies"
    DROP = "drop"
    FILL = "fill"
