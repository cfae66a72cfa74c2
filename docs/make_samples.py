"""Make the tables of `rposst sample`: made-up scores of made-up models, by a few skills and a seed.

Usage: python docs/make_samples.py

A model has three skills, of which size and family explain a part. A task asks for a mixture of them, is easy or hard,
and may be guessed. What a skill does not explain is noise. Nothing here was measured on anything that exists.
"""

from pathlib import Path

import numpy as np
import pandas as pd

FOLDER = Path(__file__).parent.parent / "rposst_opt/samples"
SEED = 2023
SKILLS = ("general", "reasoning", "knowledge")

# Tasks by category: the name, minutes of a run, what a guess gets, in percent, and how easy it is (log odds).
TASKS = {
    "math": [
        ("arithmetic-word-problems", 12, 0, 1.0),
        ("unit-conversion", 4, 0, 1.2),
        ("linear-equations", 8, 0, 0.5),
        ("geometry-figures", 15, 25, -0.6),
        ("probability-puzzles", 10, 0, -0.4),
        ("olympiad-problems", 45, 0, -2.0),
    ],
    "code": [
        ("function-from-docstring", 20, 0, 0.6),
        ("bug-repair", 30, 0, -0.4),
        ("unit-test-writing", 25, 0, 0.1),
        ("sql-from-question", 15, 0, 0.5),
        ("output-prediction", 6, 0, 0.2),
        ("repository-edits", 60, 0, -1.8),
    ],
    "knowledge": [
        ("world-capitals", 3, 0, 1.8),
        ("medical-exam", 10, 25, -0.2),
        ("law-exam", 12, 25, -0.5),
        ("chemistry-facts", 6, 25, -0.1),
        ("history-dates", 5, 0, 0.3),
        ("rare-trivia", 8, 0, -1.2),
    ],
    "language": [
        ("reading-comprehension", 9, 25, 0.9),
        ("summary-faithfulness", 18, 50, 0.2),
        ("translation-rare-languages", 14, 0, -0.7),
        ("instruction-following", 16, 0, 0.4),
        ("coreference", 5, 50, 0.5),
        ("long-document-questions", 40, 0, -0.8),
    ],
}
LOADINGS = {  # what a category asks for, before each task goes its own way
    "math": (0.6, 1.0, 0.1),
    "code": (0.7, 0.8, 0.2),
    "knowledge": (0.5, 0.0, 1.1),
    "language": (1.0, 0.3, 0.4),
}
SIZES = {"1b": -0.7, "3b": -0.2, "8b": 0.2, "30b": 0.6, "70b": 0.9}
FAMILIES = ("alder", "birch", "cedar", "elm", "hazel", "larch", "maple", "oak", "rowan", "willow")
N_TUNING, N_NEW = 30, 4

N_LEVELS, N_RUNS, N_EPISODES = 16, 4, 25
AGENTS = ("anchor", "beacon", "compass", "drift")
STEPS = (1, 2, 4, 8, 16)  # millions of steps of training
KINDS_OF_LEVEL = ("maze", "jump", "chase", "stack")


def models(rng: np.random.Generator) -> pd.DataFrame:
    """Skills of all models, a row each: a part is the size's, a part the family's."""
    names = [f"{family}-{size}" for family in FAMILIES for size in SIZES]
    chosen = sorted(rng.choice(len(names), N_TUNING + N_NEW, replace=False))
    of_family = {family: rng.normal(0, 0.4, len(SKILLS)) for family in FAMILIES}
    rows = {}
    for name in (names[place] for place in chosen):
        family, size = name.split("-")
        rows[name] = SIZES[size] + of_family[family] + rng.normal(0, 0.3, len(SKILLS))
    return pd.DataFrame.from_dict(rows, orient="index", columns=list(SKILLS))


def scores(skills: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Scores in percent, a row per task."""
    rows = {}
    for category, tasks in TASKS.items():
        for name, _, guess, easiness in tasks:
            loadings = np.array(LOADINGS[category]) * rng.lognormal(0, 0.25, len(SKILLS))
            chance = 1 / (1 + np.exp(-(skills.to_numpy() @ loadings + easiness)))
            rows[name] = guess + (100 - guess) * chance + rng.normal(0, 2.5, len(skills))
    table = pd.DataFrame.from_dict(rows, orient="index", columns=skills.index)
    return table.clip(0, 100).round(1)


def cases() -> pd.DataFrame:
    """What a task costs, and its category."""
    rows = [(name, cost, category) for category, tasks in TASKS.items() for name, cost, _, _ in tasks]
    return pd.DataFrame(rows, columns=["case", "cost", "group"])


def long_form(results: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """The same scores, a row each, in the order of models; some that nobody has run are not there."""
    rows = [(model, task, score) for model, column in results.items() for task, score in column.items()]
    gaps = set(rng.choice(len(rows), size=len(rows) // 40, replace=False).tolist())
    kept = [row for place, row in enumerate(rows) if place not in gaps]
    return pd.DataFrame(kept, columns=["model", "task", "score"])


def runs(rng: np.random.Generator) -> pd.DataFrame:
    """Success rates of checkpoints on levels, several runs of each, in percent: four agents as they learn."""
    rows = []
    levels = [f"{kind}-{number}" for kind in KINDS_OF_LEVEL for number in range(1, N_LEVELS // len(KINDS_OF_LEVEL) + 1)]
    hardness = rng.normal(0.5, 1.2, len(levels))
    talent = rng.normal(0, 0.6, (len(AGENTS), len(KINDS_OF_LEVEL)))
    for agent, gifts in zip(AGENTS, talent, strict=True):
        for steps in STEPS:
            of_kind = 0.9 * np.log2(steps) - 1.2 + gifts + rng.normal(0, 0.3, len(KINDS_OF_LEVEL))
            for level, hard in zip(levels, hardness, strict=True):
                able = of_kind[KINDS_OF_LEVEL.index(level.split("-")[0])] - hard + rng.normal(0, 0.3)
                won = rng.binomial(N_EPISODES, 1 / (1 + np.exp(-able)), N_RUNS)
                for run, share in enumerate(100 * won / N_EPISODES, start=1):
                    rows.append((level, f"{agent}-{steps}m", run, share))
    return pd.DataFrame(rows, columns=["level", "checkpoint", "run", "success"])


def samples() -> dict[str, str]:
    """The files, by name, as text."""
    rng = np.random.default_rng(SEED)
    all_models = scores(models(rng), rng)
    held_out = rng.choice(all_models.columns.to_numpy(), N_NEW, replace=False)
    results, new = all_models.drop(columns=held_out), all_models[sorted(held_out)]
    return {
        "results.csv": results.to_csv(index_label="task", lineterminator="\n"),
        "new_models.csv": new.to_csv(index_label="task", lineterminator="\n"),
        "cases.csv": cases().to_csv(index=False, lineterminator="\n"),
        "long.csv": long_form(results, rng).to_csv(index=False, lineterminator="\n"),
        "runs.csv": runs(rng).to_csv(index=False, lineterminator="\n", float_format="%g"),
    }


if __name__ == "__main__":
    for name, text in samples().items():
        (FOLDER / name).write_text(text)
