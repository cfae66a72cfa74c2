import marimo

__generated_with = "0.25.2"
app = marimo.App()


@app.cell
def _():
    import marimo as mo

    return (mo,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    # A first test, from a table to a new model

    A benchmark of 24 tasks takes hours for every model. Which four of them, with which weights, say
    nearly the same? This notebook chooses them, looks at what is proved of the choice and how far it is
    off on models that it has not seen, scores new models with intervals, and ends with the objective
    behind all that: k-of-N, and a moment of play against its antagonist.

    It needs `pip install '.[figures]'`, in a checkout of the repository.
    """)
    return


@app.cell
def _():
    import dataclasses

    import numpy as np
    import pandas as pd

    import rposst_opt as ro
    from rposst_opt import analysis, plots
    from rposst_opt.unseen.error_bars import intervals, leave_out

    return analysis, dataclasses, intervals, leave_out, np, pd, plots, ro


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## The table

    The table comes with the package and is made up: scores in percent of 30 language models that do not
    exist. A table of your own is read by `ro.read_results("results.csv").results`. A row is a test
    case, here a task; a column is a policy, here a model.
    """)
    return


@app.cell
def _(ro):
    table = ro.sample_results()
    table.iloc[:6, :6]
    return (table,)


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Choosing a test

    Four tasks are to be chosen, and weights for them, so that the weighted mean of four results is
    close to the plain mean of all 24. Close is meant for the worst of the models: by default the mean
    error of the worst 1 % of them counts, which among 30 models is the error of the worst one.
    """)
    return


@app.cell
def _(ro, table):
    problem = ro.Problem.from_results(table, size=4)
    problem
    return (problem,)


@app.cell
def _(problem, ro):
    solution = ro.solve(problem, certificate=True)
    test = solution.test
    test.to_frame().round(4)
    return solution, test


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## What is proved

    The solver says that no other four tasks, with whatever weights, have a smaller error on the worst
    of these models. It has left a certificate, and the checker of certificates knows no solver: it
    accounts for every set of four tasks. Errors are in percentage points, as the table is.
    """)
    return


@app.cell
def _(pd, problem, ro, solution):
    verification = ro.verify_certificate(problem, solution.certificate)
    pd.Series(
        {
            "sets of four tasks": problem.n_tuples,
            "of them accounted for": verification.n_checked,
            "error on the worst model": problem.scale.error_in_file_units(solution.objective),
            "proved for every test": problem.scale.error_in_file_units(verification.bound),
        },
        name="value",
    ).round(3).to_frame()
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    This is a proof about the table. It says nothing of a model that is not in it, and there the test is
    off by more: cases and weights were chosen to suit the models that are.
    """)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Models that it has not seen

    So leave each model out in turn, choose tasks and weights again without it, and see how far the new
    test is off on it. The column `mean_error` has the mean error on the model that a test has not seen,
    with a 95 % interval from `low` to `high`; `tuned_mean` is what its own weights are off by on the
    models that it was made with. Tests are made by RPOSST (here by its quick search) and, to compare,
    by drawing tasks at random from strata; the full score is estimated by the test's own weights, or by
    ridge regression on the models of the table.
    """)
    return


@app.cell
def _(ro, table):
    validation = ro.validate(
        table,
        [2, 4, 6],
        selections=["rposst", "stratified"],
        estimators=["weights", "ridge"],
    )
    columns = ["size", "selection", "estimator", "tuned_mean", "mean_error", "low", "high", "worst_error"]
    alike = validation.summary[validation.summary["kind"] == "alike"]
    alike[columns].round(2)
    return (validation,)


@app.cell
def _(plots, validation):
    plots.validation(validation.summary)
    return


@app.cell
def _(ro, validation):
    ro.recommend(validation).sentence
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    The lower panel is harder: there the strongest models are held out together, and a test that was
    made without them has to speak of models that are better than all that it knows.
    """)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## Scoring new models

    Four more models come along, and only the four chosen tasks are run on them. The tests without each
    model of the table tell how far off a score may be: an interval at a level of 90 % is the score,
    plus and minus what these tests are off by (the jackknife). It is meant for models like those of the
    table, and for no others.
    """)
    return


@app.cell
def _(intervals, leave_out, pd, ro, table, test):
    new_models = ro.sample_results(new_models=True)
    four_results = new_models.loc[list(test.case_names)]
    left_out = leave_out(table.to_numpy(), size=4, purpose=ro.Purpose(), backend="exact", options={})
    found = intervals(test, left_out, four_results, level=0.9)
    scored = pd.DataFrame(
        {
            "score": found.scores,
            "low": found.low,
            "high": found.high,
            "all 24 tasks": new_models.mean(),
        }
    )
    scored.round(1)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    The last column is what nobody would know in earnest, since it takes all 24 tasks. Here it lies in
    each of the four intervals; four are too few to tell whether 90 % of them do.
    """)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## How many tasks?

    Every dot is the best test of its size, and proved to be: its error on the worst of the models that
    it was tuned on, on a scale where the table goes from 0 to 1. On new models the error falls more
    slowly, as the table above shows.
    """)
    return


@app.cell
def _(analysis, plots, problem):
    sizes = analysis.size_curve(problem, range(1, 9))
    plots.size_curve(sizes)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## How wide a tail?

    A tail fraction of 0 asks for the worst model alone, and 1 for the mean of all. In between it is the
    mean of the worst share of models (CVaR). Each test is the best one for its tail, so what it gains
    there it pays for elsewhere.
    """)
    return


@app.cell
def _(analysis, plots, problem):
    tails = analysis.sweep(problem, tail_fractions=[0, 0.1, 0.2, 0.3, 0.5, 0.7, 1])
    plots.sweep(tails)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## k-of-N: what a loss weighs

    Draw N models at random, and let an antagonist keep the k of them on which the test does worst. The
    mean loss of these, in exact expectation over all draws, is the k-of-N objective. It gives every
    loss a weight by its rank alone, and k and N say how fast the weights fall: with k = N nothing is
    thrown away, and all weigh the same; with one of ten the six worst of thirty have nine tenths of all
    weight. On the left is what the worst share of losses weighs together, on the right each loss.
    """)
    return


@app.cell
def _(analysis, plots, ro, table):
    pairs = [(1, 1), (1, 3), (1, 10), (3, 10), (10, 100)]
    profiles = [analysis.tail_profile(ro.KOfN(k, n), table.shape[1]) for k, n in pairs]
    plots.tail_profile(*profiles, labels=[f"{k} of {n}" for k, n in pairs])
    return pairs, profiles


@app.cell
def _(pairs, pd, profiles):
    weights_of_losses = pd.DataFrame(
        {f"{k} of {n}": profile["weight"] for (k, n), profile in zip(pairs, profiles, strict=True)}
    )
    weights_of_losses.index = profiles[0]["rank"]
    weights_of_losses.head(6).round(3)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    The test from above again: the more models are drawn, the more the worst of them counts. Dashed is
    the mean of the worst k/N of the models (CVaR), which k-of-N is never above, and which it tends to
    where k and N grow together.
    """)
    return


@app.cell
def _(analysis, plots, problem, test):
    drawn = analysis.k_of_n_table(problem, test, ks=[1, 2, 5], ns=[5, 6, 8, 10, 15, 20, 30, 50])
    plots.k_of_n_table(drawn)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    ## A moment of play against the antagonist

    Now with six draws, of which the antagonist keeps two. The test begins with equal weights on its
    four tasks. This is one round: six models, drawn with repetition, and the two on which the test is
    farthest off.
    """)
    return


@app.cell
def _(dataclasses, np, pd, problem, ro, table, test):
    game = dataclasses.replace(problem, measure=ro.KOfN(2, 6))
    equal = game.test(cases=test.case_names, weights=np.full(4, 1 / 4))
    losses = game.scale.error_in_file_units(game.losses(equal))
    rng = np.random.default_rng(2023)
    draw = rng.integers(game.n_scenarios, size=6)
    kept = np.argsort(-losses[draw], kind="stable")[:2]
    a_round = pd.DataFrame({"model": table.columns[draw], "loss": losses[draw].round(2), "kept": ""})
    a_round.loc[kept, "kept"] = "yes"
    a_round
    return draw, equal, game, kept, losses, rng


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    One round is luck. The mean of many rounds comes close to the objective, which is worked out exactly
    and without a draw.
    """)
    return


@app.cell
def _(draw, equal, game, kept, losses, np, pd, rng):
    many_draws = rng.integers(game.n_scenarios, size=(20_000, 6))
    two_worst = np.sort(losses[many_draws], axis=1)[:, -2:]
    pd.Series(
        {
            "this round": losses[draw][kept].mean(),
            "mean of 20,000 rounds": two_worst.mean(),
            "objective": game.scale.error_in_file_units(game.objective(equal)),
        },
        name="loss of the two that are kept",
    ).round(2).to_frame()
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    The test answers by regret matching+. In every round the antagonist plays all draws at once, in
    expectation, and the test shifts weight to the tasks by which it would have lost less. What both
    have done so far proves a bound on what any weights on these four tasks can reach, and the best
    weights and the bound close in on each other.
    """)
    return


@app.cell
def _(analysis, game, plots, test):
    rounds = analysis.closing_in(game, test.case_names, rounds=300)
    plots.closing_in(rounds, labels=test.case_names)
    return


@app.cell(hide_code=True)
def _(mo):
    mo.md(r"""
    The same with sliders for k and N, and with you as the antagonist, is a page that two commands make:

    ```
    rposst sample --out results.csv
    rposst explore results.csv --size 4 --out explore.html
    ```
    """)
    return


if __name__ == "__main__":
    app.run()
