"""A task for the real Inspect, and models that answer it without a network; Inspect itself loads this file."""

from typing import Any

from harness_process import QUESTION, knows
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelAPI, ModelOutput, modelapi
from inspect_ai.scorer import Score, accuracy, match, mean, scorer

N_SAMPLES = 8
IDS: tuple[int | str, ...] = (
    0,
    1,
    2,
    3,
    "q4",
    "odd*",
    "od[d",
    "user:7",
)  # with signs that stand for others, and a colon
FAILS_ON = 3


class Knowing(ModelAPI):  # type: ignore[misc]  # Inspect is not looked into
    async def generate(self, input: list[Any], *_: Any, **__: Any) -> ModelOutput:
        number = int(input[-1].text.removeprefix(QUESTION))
        if self.model_name == "failing" and number == FAILS_ON:
            raise ValueError("this model fails")
        return ModelOutput.from_content(self.model_name, "yes" if knows(self.model_name, number) else "no")


def points() -> Any:
    async def score(state: Any, target: Any) -> Score:
        return Score(value={"size": len(state.output.completion) + state.epoch / 10, "short": len(target.text) < 9})

    return score


@task  # type: ignore[untyped-decorator]
def knowing() -> Task:
    samples = [Sample(id=IDS[i], input=f"{QUESTION} {i}", target="yes") for i in range(N_SAMPLES)]
    return Task(dataset=MemoryDataset(samples), scorer=[match(), points_scorer()])


points_scorer = scorer(metrics={"size": [mean()], "short": [accuracy()]}, name="points")(points)
modelapi(name="knowing")(Knowing)
