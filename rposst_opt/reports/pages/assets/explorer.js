"use strict";

// The k-of-N explorer: sliders, tail weights, the weight of each sorted loss, the objective, and the limit.
const Explorer = (() => {
  const { colour, plain, number } = Charts;
  const byId = (id) => document.getElementById(id);
  const MOST_DRAWN = 10000;
  const LIMIT_DRAWN = 20000; // the largest N on the way to the limit
  const settings = { k: 1, n: 10, tailFraction: 0.1, linked: true };
  let data;
  let losses;
  let order;

  const drawn = () => Measures.kOfN(settings.k, settings.n);
  const limit = () => Measures.cvar(settings.tailFraction);
  const objective = (measure) => Measures.value(measure, losses, data.scenarios.probability);

  // Of the losses, worst first.
  function weightsBy(measure) {
    const { probability } = data.scenarios;
    const { weights } = Measures.weigh(measure, order, probability);
    return Measures.shared(weights, order, losses, probability, data.tieTolerance);
  }

  const scenarioName = (scenario) =>
    `${plain(data.policies[data.scenarios.policy[scenario]])}, ${plain(data.targets[data.scenarios.target[scenario]])}`;

  function scoresOf(weights) {
    return data.policies.map((_, policy) =>
      weights.reduce((sum, weight, place) => sum + weight * data.rows[place][policy], 0),
    );
  }

  function lossesOf(weights) {
    const scores = scoresOf(weights);
    return data.scenarios.policy.map((policy, scenario) =>
      Measures.lossOf(data.loss, scores[policy] - data.scenarios.score[scenario]),
    );
  }

  // Charts

  function tailWeightChart() {
    const tails = [];
    for (let i = 0; i <= 400; i += 1) tails.push((i / 400) ** 2); // denser where the tail is
    const curve = (measure, look) => ({
      x: tails,
      y: tails.map(measure.tailWeight),
      name: measure.label,
      mode: "lines",
      line: look,
      hovertemplate: `${measure.label}<br>the worst %{x:.3f} of scenarios weigh %{y:.4f}<extra></extra>`,
    });
    return {
      traces: [
        curve(Measures.mean(), { color: colour("faint"), width: 1.5, dash: "dot" }),
        curve(limit(), { color: colour("orange"), width: 2, dash: "dash" }),
        curve(drawn(), { color: colour("blue"), width: 3 }),
      ],
      layout: {
        xaxis: { title: { text: "u, the worst share of scenarios" }, range: [0, 1] },
        yaxis: { title: { text: "g(u), their weight" }, range: [0, 1.03] },
      },
    };
  }

  function sortedChart() {
    const ranks = order.map((_, place) => place + 1);
    const sorted = order.map((scenario) => losses[scenario]);
    const names = order.map(scenarioName);
    const ours = weightsBy(drawn());
    const theirs = weightsBy(limit());
    const heaviest = Measures.largest(ours);
    const seen = Math.max(
      Math.min(15, ranks.length),
      ours.findLastIndex((weight) => weight > 0.004 * heaviest) + 1,
      theirs.findLastIndex((weight) => weight > 0) + 1,
    );
    const line = (measure, look) => ({
      x: [0.5, ranks.length + 0.5],
      y: [objective(measure), objective(measure)],
      name: measure.label,
      showlegend: false,
      mode: "lines",
      line: look,
      hoverinfo: "skip", // it would answer for the bars near its ends
    });
    return {
      traces: [
        Charts.columns({
          x: ranks,
          y: sorted,
          text: names,
          name: "loss",
          showlegend: false,
          colour: colour("muted"),
          hovertemplate: "%{text}<br>rank %{x}, loss %{y:.6~g}<extra></extra>",
        }),
        line(limit(), { color: colour("orange"), width: 2, dash: "dash" }),
        line(drawn(), { color: colour("blue"), width: 3 }),
        Charts.columns({
          x: ranks,
          y: ours,
          text: names,
          yaxis: "y2",
          name: drawn().label,
          colour: colour("blue"),
          hovertemplate: "%{text}<br>rank %{x}, weight %{y:.6~g}<extra></extra>",
        }),
        {
          x: ranks,
          y: theirs,
          yaxis: "y2",
          name: limit().label,
          mode: "lines",
          line: { color: colour("orange"), width: 2, shape: "hvh", dash: "dash" },
          hovertemplate: `${limit().label}<br>rank %{x}, weight %{y:.6~g}<extra></extra>`,
        },
      ],
      layout: {
        xaxis: { title: { text: "losses, worst first" }, range: [0.5, seen + 0.5], anchor: "y2" },
        yaxis: { title: { text: "loss" }, domain: [0.54, 1], rangemode: "tozero" },
        yaxis2: { title: { text: "weight" }, domain: [0, 0.44], rangemode: "tozero" },
        bargap: 0.15,
        hovermode: Charts.columnsHover(ranks.length),
      },
    };
  }

  const divisor = (a, b) => (b === 0 ? a : divisor(b, a % b));

  // k-of-N and its multiples: the same share, more and more draws.
  function limitPath() {
    const common = divisor(settings.k, settings.n);
    const path = [];
    for (let times = 1; (times * settings.n) / common <= Math.max(LIMIT_DRAWN, settings.n); times *= 2) {
      const [k, n] = [(times * settings.k) / common, (times * settings.n) / common];
      path.push({ k, n, value: objective(Measures.kOfN(k, n)) });
    }
    return path;
  }

  function limitChart() {
    const path = limitPath();
    const share = settings.k / settings.n;
    const end = objective(Measures.cvar(share));
    const draws = path.map((point) => point.n);
    const values = [end, ...path.map((point) => point.value)];
    const middle = (Measures.largest(values) + Measures.least(values)) / 2;
    // Differences by rounding alone are drawn as what they are: a line.
    const reach = Math.max(0.6 * (Measures.largest(values) - Measures.least(values)), 1e-3 * Math.abs(middle), 1e-300);
    return {
      traces: [
        {
          x: [draws[0], draws[draws.length - 1]],
          y: [end, end],
          name: Measures.cvar(share).label,
          mode: "lines",
          line: { color: colour("orange"), width: 2, dash: "dash" },
          hovertemplate: `${Measures.cvar(share).label}: %{y:.6~g}<extra></extra>`,
        },
        {
          x: draws,
          y: path.map((point) => point.value),
          text: path.map((point) => `${point.k}-of-${point.n}`),
          name: "k-of-N with the same k/N",
          mode: "lines+markers",
          line: { color: colour("blue"), width: 2 },
          hovertemplate: "%{text}: %{y:.6~g}<extra></extra>",
        },
      ],
      layout: {
        xaxis: { title: { text: "N" }, type: "log", dtick: 1 },
        yaxis: { title: { text: "objective" }, range: [middle - reach, middle + reach] },
      },
    };
  }

  // Numbers

  function say(id, value) {
    const output = byId(id);
    output.textContent = number(value);
    output.dataset.value = String(value);
  }

  function sayNumbers() {
    const measures = { "k-of-n": drawn(), cvar: limit(), mean: Measures.mean(), worst: Measures.worst() };
    for (const [name, measure] of Object.entries(measures)) {
      byId(`label-${name}`).textContent = measure.label;
      say(`objective-${name}`, objective(measure));
      say(`heaviest-${name}`, weightsBy(measure)[0]);
    }
  }

  function check() {
    const differences = [
      ...data.checks.weights.map(([k, n, tail, weight]) => Measures.kOfN(k, n).tailWeight(tail) - weight),
      ...data.checks.objectives.map(([k, n, value]) => (objective(Measures.kOfN(k, n)) - value) / data.checks.unit),
    ];
    const largest = Measures.largest(differences.map(Math.abs));
    const fine = largest < 1e-9;
    const note = byId("formula-check");
    note.dataset.value = String(largest);
    note.className = fine ? "fine" : "wrong";
    note.textContent = fine
      ? `The formulas in this page were compared with ${differences.length} numbers from the package: ` +
        `they differ by ${number(largest, 2)} at most.`
      : `The formulas in this page differ from the package by ${number(largest, 2)}: do not trust these curves.`;
  }

  // The test's weights, by hand

  function weigh(weights) {
    losses = lossesOf(weights);
    order = Measures.worstFirst(losses);
    weights.forEach((weight, x) => say(`weight-${x}`, weight));
  }

  function weightSlider(name, x) {
    const row = document.createElement("label");
    row.className = "slider";
    const title = document.createElement("span");
    title.textContent = name;
    const slider = Object.assign(document.createElement("input"), { type: "range", min: 0, max: 1, step: 0.001 });
    slider.id = `slider-weight-${x}`;
    slider.addEventListener("input", () => {
      const raw = data.cases.map((_, other) => Number(byId(`slider-weight-${other}`).value));
      const total = raw.reduce((sum, value) => sum + value, 0);
      weigh(raw.map((value) => (total > 0 ? value / total : 1 / raw.length)));
      change({});
    });
    const output = document.createElement("output");
    output.id = `weight-${x}`;
    row.append(title, slider, output);
    return row;
  }

  function resetWeights() {
    data.weights.forEach((weight, x) => {
      byId(`slider-weight-${x}`).value = String(weight);
    });
    weigh(data.weights);
  }

  function offerWeights() {
    byId("weight-sliders").replaceChildren(...data.cases.map(weightSlider));
    byId("best-weights").addEventListener("click", () => {
      resetWeights();
      change({});
    });
    resetWeights();
  }

  // Controls

  function set(change) {
    Object.assign(settings, change);
    settings.n = Math.min(Math.max(1, Math.round(settings.n) || 1), MOST_DRAWN);
    settings.k = Math.min(Math.max(1, Math.round(settings.k) || 1), settings.n);
    if (settings.linked) settings.tailFraction = settings.k / settings.n;
    settings.tailFraction = Math.min(Math.max(0, settings.tailFraction || 0), 1);
    for (const [id, value] of [
      ["k", settings.k],
      ["n", settings.n],
      ["eta", settings.tailFraction],
    ]) {
      const [slider, box] = [byId(`slider-${id}`), byId(`box-${id}`)];
      if (id === "k") slider.max = box.max = String(settings.n);
      if (id === "n") slider.max = String(Math.max(Number(slider.max), settings.n)); // it must not shrink under a thumb
      slider.value = String(value);
      box.value = String(Number(value.toPrecision(6)));
    }
    byId("linked").checked = settings.linked;
    sayNumbers();
  }

  function change(how) {
    set(how);
    for (const id of ["chart-tail-weight", "chart-sorted", "chart-limit"]) Charts.paint(id);
  }

  function listen() {
    const changes = {
      k: (value) => ({ k: value }),
      n: (value) => ({ n: value }),
      eta: (value) => ({ tailFraction: value, linked: false }),
    };
    for (const [id, what] of Object.entries(changes)) {
      byId(`slider-${id}`).addEventListener("input", (event) => change(what(Number(event.target.value))));
      byId(`box-${id}`).addEventListener("change", (event) => change(what(Number(event.target.value))));
    }
    byId("linked").addEventListener("change", (event) => change({ linked: event.target.checked }));
  }

  function start(page) {
    data = page.explorer;
    offerWeights();
    Object.assign(settings, data.settings);
    check();
    Charts.add("chart-tail-weight", tailWeightChart);
    Charts.add("chart-sorted", sortedChart);
    Charts.add("chart-limit", limitChart);
    listen();
    set({});
  }

  return { start, lossesOf, scoresOf, limitPath, scenarioName, say };
})();
