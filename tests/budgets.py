"""Budgets that end a run by what it has come to, so that no test depends on how fast a machine is."""

from collections.abc import Callable

from rposst_opt.contract import Budget, Limit, Progress


class Until(Budget):
    """Ends a run once it has told what was wanted; after two minutes, it gives up.

    Attributes
    ----------
    told : list of Progress
        All that was told.
    is_content : bool
        Whether that was among it.
    """

    def __init__(self, wanted: Callable[[Progress], bool]) -> None:
        super().__init__(time_limit_seconds=120.0, progress=self._look)
        self.told: list[Progress] = []
        self.is_content = False
        self._wanted = wanted

    def _look(self, progress: Progress) -> None:
        self.told.append(progress)
        self.is_content = self.is_content or self._wanted(progress)

    def reached(self) -> Limit | None:
        return Limit.TIME if self.is_content else super().reached()
