"use strict";

// A game to play as the antagonist: N scenarios are drawn, you charge k of them, and the test's maker, who plays regret
// matching+, learns from what you charged.
const Game = (() => {
  const { colour, number } = Charts;
  const byId = (id) => document.getElementById(id);
  let data;
  let seed = 0;
  let random;
  let state;

  // mulberry32: the same games in every browser
  function generator(start) {
    let a = start;
    return () => {
      a = (a + 0x6d2b79f5) | 0;
      let t = Math.imul(a ^ (a >>> 15), 1 | a);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
  }

  function drawScenario() {
    let left = random();
    const { probability } = data.scenarios;
    for (let scenario = 0; scenario < probability.length; scenario += 1) {
      left -= probability[scenario];
      if (left < 0) return scenario;
    }
    return probability.length - 1;
  }

  const uniform = () => data.weights.map(() => 1 / data.weights.length);
  const average = (list) => list.reduce((sum, value) => sum + value, 0) / list.length;

  function begin() {
    seed += 1;
    random = generator(seed);
    const n = Number(byId("game-n").value);
    const most = Math.max(...Object.keys(data.game[n]).map(Number));
    const k = Math.min(Number(byId("game-k").value), most);
    byId("game-k").replaceChildren(
      ...Object.keys(data.game[n]).map((choice) => new Option(choice, choice, false, Number(choice) === k)),
    );
    state = {
      k,
      n,
      weights: uniform(),
      regrets: data.weights.map(() => 0),
      weighted: data.weights.map(() => 0), // Σ t w_t
      rounds: 0,
      yours: [],
      best: [],
      history: [],
      picked: new Set(),
    };
    deal();
  }

  function restart() {
    begin();
    show();
  }

  function deal() {
    const losses = Explorer.lossesOf(state.weights);
    state.hand = Array.from({ length: state.n }, () => {
      const scenario = drawScenario();
      return { scenario, loss: losses[scenario] };
    });
    state.picked.clear();
  }

  const worstOfHand = () => Measures.worstFirst(state.hand.map((card) => card.loss)).slice(0, state.k);

  // What each case would have cost, less what the test paid, averaged over the charged scenarios: the regrets' change.
  function learn(places) {
    const scores = Explorer.scoresOf(state.weights);
    const gains = data.weights.map(() => 0);
    for (const place of places) {
      const { scenario } = state.hand[place];
      const policy = data.scenarios.policy[scenario];
      const slope = Measures.slopeOf(data.loss, scores[policy] - data.scenarios.score[scenario]);
      data.rows.forEach((row, x) => {
        gains[x] -= (slope * (row[policy] - scores[policy])) / places.length;
      });
    }
    state.regrets = state.regrets.map((regret, x) => Math.max(regret + gains[x], 0));
    const total = state.regrets.reduce((sum, regret) => sum + regret, 0);
    state.weights = total > 0 ? state.regrets.map((regret) => regret / total) : uniform();
  }

  function charge(places) {
    const lossAt = (place) => state.hand[place].loss;
    state.rounds += 1;
    state.weighted = state.weighted.map((sum, x) => sum + state.rounds * state.weights[x]);
    state.yours.push(average(places.map(lossAt)));
    state.best.push(average(worstOfHand().map(lossAt)));
    state.history.push({ charged: average(state.yours), value: valueOf(averageWeights()) });
    learn(places);
    deal();
  }

  function averageWeights() {
    const total = (state.rounds * (state.rounds + 1)) / 2;
    return total > 0 ? state.weighted.map((sum) => sum / total) : uniform();
  }

  const valueOf = (weights) =>
    Measures.value(Measures.kOfN(state.k, state.n), Explorer.lossesOf(weights), data.scenarios.probability);

  // What is shown

  function chart() {
    const rounds = state.history.map((_, place) => place + 1);
    const least = data.game[state.n][state.k];
    const series = (key, name, look) => ({
      x: rounds,
      y: state.history.map((entry) => entry[key]),
      name,
      mode: rounds.length < 40 ? "lines+markers" : "lines",
      line: look,
      hovertemplate: `round %{x}: %{y:.6~g}<extra>${name}</extra>`,
    });
    return {
      traces: [
        series("charged", "your average charge", { color: colour("orange"), width: 2 }),
        series("value", "worth of the maker's average test", { color: colour("blue"), width: 2.5 }),
        {
          x: [0.5, Math.max(rounds.length, 10)],
          y: [least, least],
          name: "the best possible test",
          mode: "lines",
          line: { color: colour("green"), width: 2, dash: "dash" },
          hovertemplate: "the best possible test: %{y:.6~g}<extra></extra>",
        },
      ],
      layout: {
        xaxis: { title: { text: "round" }, range: [0.5, Math.max(rounds.length, 10) + 0.5] },
        yaxis: { title: { text: "loss" }, rangemode: "tozero" },
      },
    };
  }

  function cardButton(card, place) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "card-button";
    button.setAttribute("aria-pressed", String(state.picked.has(place)));
    const lines = [
      ["name", data.policies[data.scenarios.policy[card.scenario]]],
      ["target", data.targets[data.scenarios.target[card.scenario]]],
      ["loss", number(card.loss, 4)],
    ];
    for (const [kind, text] of lines) {
      const line = document.createElement("span");
      line.className = kind;
      line.textContent = text;
      button.append(line);
    }
    button.dataset.scenario = String(card.scenario);
    button.addEventListener("click", () => {
      if (state.picked.has(place)) state.picked.delete(place);
      else if (state.picked.size < state.k) state.picked.add(place);
      show();
      byId("cards").children[place].focus();
    });
    return button;
  }

  function weightRow(name, weight, averaged) {
    const row = document.createElement("tr");
    for (const [text, kind] of [
      [name, "name"],
      [number(weight, 4), "number"],
      [number(averaged, 4), "number"],
    ]) {
      const cell = document.createElement("td");
      cell.textContent = text;
      cell.className = kind;
      row.append(cell);
    }
    row.dataset.value = String(weight);
    return row;
  }

  function show() {
    tellState();
    Charts.paint("chart-game");
  }

  function tellState() {
    byId("cards").replaceChildren(...state.hand.map(cardButton));
    byId("charge").disabled = state.picked.size !== state.k;
    byId("charge").textContent = `Charge these (${state.picked.size} of ${state.k})`;
    const averaged = averageWeights();
    byId("maker").replaceChildren(...state.weights.map((weight, x) => weightRow(data.cases[x], weight, averaged[x])));
    const { say } = Explorer;
    say("game-rounds", state.rounds);
    say("game-yours", state.rounds ? average(state.yours) : NaN);
    say("game-perfect", state.rounds ? average(state.best) : NaN);
    say("game-value", valueOf(averaged));
    say("game-least", data.game[state.n][state.k]);
  }

  function playWorst(rounds) {
    for (let round = 0; round < rounds; round += 1) charge(worstOfHand());
    show();
  }

  function start(page) {
    data = page.explorer;
    byId("game-n").replaceChildren(
      ...Object.keys(data.game).map((n) => new Option(n, n, false, Number(n) === data.gameStart.n)),
    );
    byId("game-k").replaceChildren(new Option(data.gameStart.k, data.gameStart.k));
    byId("game-n").addEventListener("change", restart);
    byId("game-k").addEventListener("change", restart);
    byId("restart").addEventListener("click", restart);
    byId("pick-worst").addEventListener("click", () => {
      state.picked = new Set(worstOfHand());
      show();
    });
    byId("charge").addEventListener("click", () => {
      charge([...state.picked]);
      show();
    });
    byId("play-many").addEventListener("click", () => playWorst(100));
    Charts.add("chart-game", chart);
    begin();
    tellState();
  }

  return { start };
})();
