"use strict";

// The report's own charts; what is optimised, proved or judged in them are the package's numbers.
const Report = (() => {
  const { colour, plain, tick, ticks, number } = Charts;
  const byId = (id) => document.getElementById(id);
  const COLOURS = "Cividis"; // told apart by all eyes, and in grey
  const FEW = 40; // as many names fit on an axis

  // The result matrix, and above it the chosen cases alone.

  function matrixChart({ policies, cases, results, range, chosen, weights }) {
    const narrow = Charts.narrow("chart-matrix");
    const columns = policies.map((_, place) => place);
    const hover = (rows) => rows.map((x) => policies.map((policy) => `${plain(cases[x])}<br>${plain(policy)}`));
    const heat = (rows, settings) => ({
      type: "heatmap",
      x: columns,
      y: rows.map((_, place) => place),
      z: rows.map((x) => results[x]),
      text: hover(rows),
      coloraxis: "coloraxis",
      hovertemplate: "%{text}<br>result %{z:.6~g}<extra></extra>",
      ...settings,
    });
    const all = cases.map((_, place) => place);
    const labels = (names) => ticks(names, narrow ? 12 : 22);
    const marked = {
      type: "scatter",
      mode: "markers",
      x: chosen.map(() => policies.length - 0.5),
      y: chosen,
      text: chosen.map((x, place) => `${plain(cases[x])}<br>chosen, weight ${number(weights[place], 4)}`),
      marker: { symbol: "arrow-left", size: 12, color: colour("orange") },
      cliponaxis: false,
      showlegend: false,
      hovertemplate: "%{text}<extra></extra>",
    };
    const outlines = chosen.map((x) => ({
      type: "rect",
      x0: -0.5,
      x1: policies.length - 0.5,
      y0: x - 0.5,
      y1: x + 0.5,
      line: { color: colour("orange"), width: 1.5 },
    }));
    const named = cases.length <= FEW;
    // In pixels: names of the chosen cases stay apart, however many other cases there are.
    const top = Math.min(18 * Math.max(chosen.length, 3), 18 * FEW);
    const below = Math.max(250, named ? 20 * cases.length : Math.min(14 * cases.length, 640));
    const split = below / (top + below);
    return {
      traces: [heat(all, {}), heat(chosen, { yaxis: "y2", xaxis: "x2" }), marked],
      layout: {
        height: 170 + top + below,
        margin: { t: 30, r: narrow ? 78 : 92 }, // at the right, for the bar of colours
        shapes: outlines,
        coloraxis: {
          colorscale: COLOURS,
          cmin: range[0],
          cmax: range[1],
          colorbar: { thickness: 10, outlinewidth: 0, title: { text: "result" }, len: 0.9 },
        },
        xaxis: {
          title: { text: "policies, best mean result first" },
          tickvals: policies.length <= FEW && !narrow ? columns : [],
          ticktext: policies.length <= FEW && !narrow ? labels(policies) : [],
          tickangle: -60,
          showgrid: false,
          zeroline: false,
          range: [-0.5, policies.length - 0.5],
        },
        xaxis2: { matches: "x", anchor: "y2", showticklabels: false, ticks: "", showgrid: false, zeroline: false },
        yaxis: {
          title: { text: named ? "" : "test cases" },
          domain: [0, split - 0.04],
          tickvals: named ? all : [],
          ticktext: named ? labels(cases) : [],
          range: [cases.length - 0.5, -0.5],
          showgrid: false,
          zeroline: false,
        },
        yaxis2: {
          domain: [split, 1],
          anchor: "x2",
          tickvals: chosen.length <= FEW ? chosen.map((_, place) => place) : [],
          ticktext: chosen.length <= FEW ? labels(chosen.map((x) => cases[x])) : [],
          range: [chosen.length - 0.5, -0.5],
          showgrid: false,
          zeroline: false,
        },
      },
    };
  }

  // Scores and ranks, for one target at a time.

  const target = () => Number(byId("target").value);

  function scoresChart({ policies, small, smallRanks, full }, targets) {
    const { score, ranks } = full[target()];
    const aim = tick(targets[target()], Charts.narrow("chart-scores") ? 18 : 24);
    const ends = [Measures.least, Measures.largest].map((end) => end([end(score), end(small)]));
    return {
      traces: [
        {
          x: ends,
          y: ends,
          mode: "lines",
          name: "no error",
          line: { color: colour("faint"), dash: "dot" },
          hoverinfo: "skip",
        },
        {
          x: score,
          y: small,
          text: policies.map(
            (policy, j) => `${plain(policy)}<br>full test: rank ${ranks[j]}, small test: rank ${smallRanks[j]}`,
          ),
          mode: "markers",
          name: "policy",
          marker: { color: colour("blue"), size: 8, opacity: 0.75, line: { width: 1, color: colour("card") } },
          hovertemplate: "%{text}<br>full score %{x:.6~g}, small test %{y:.6~g}<extra></extra>",
        },
      ],
      layout: {
        showlegend: false,
        xaxis: { title: { text: `full test's score (${aim})` } },
        yaxis: { title: { text: "small test's score" } },
      },
    };
  }

  function cell(row, text, kind = "") {
    const made = document.createElement("td");
    made.textContent = text;
    made.className = kind;
    row.append(made);
  }

  const shift = (by) => (by === 0 ? "=" : by > 0 ? `▲ ${by}` : `▼ ${-by}`);

  function showRanking({ policies, small, smallRanks, full }) {
    const { score, ranks, words } = full[target()];
    byId("ranking-words").textContent = words;
    const order = policies.map((_, j) => j).sort((i, j) => ranks[i] - ranks[j] || smallRanks[i] - smallRanks[j]);
    byId("ranking").replaceChildren(
      ...order.map((j) => {
        const row = document.createElement("tr");
        cell(row, policies[j], "name");
        cell(row, number(score[j], 5), "number");
        cell(row, ranks[j], "number");
        cell(row, number(small[j], 5), "number");
        cell(row, smallRanks[j], "number");
        const up = ranks[j] - smallRanks[j];
        cell(row, shift(up), up === 0 ? "number" : up > 0 ? "number up" : "number down");
        return row;
      }),
    );
  }

  // Losses, worst first, over the share of scenarios, and how much each counts.

  function lossesChart({ names, loss, probability, weight, tail, objective, seen }) {
    const middle = tail.map((end, place) => end - probability[place] / 2);
    const density = weight.map((value, place) => value / probability[place]);
    return {
      traces: [
        Charts.columns({
          x: middle,
          y: loss,
          width: probability,
          text: names.map(
            (name, place) =>
              `${plain(name)}<br>loss ${number(loss[place])}<br>weight ${number(weight[place], 4)}, ` +
              `${number(density[place], 3)} times its probability`,
          ),
          name: "loss",
          colour: colour("blue"),
          opacity: 0.6,
          hovertemplate: "%{text}<extra></extra>",
        }),
        {
          x: [0, 1],
          y: [objective, objective],
          name: `objective ${number(objective)}`,
          mode: "lines",
          line: { color: colour("ink"), width: 1.5, dash: "dash" },
          hoverinfo: "skip", // it would answer for the bars near its ends
        },
        {
          x: [0, ...tail],
          y: [density[0], ...density],
          yaxis: "y2",
          name: "how many times a scenario counts",
          mode: "lines",
          line: { shape: "vh", color: colour("orange"), width: 2 },
          fill: "tozeroy",
          fillcolor: colour("shade"),
          hoverinfo: "skip",
        },
      ],
      layout: {
        bargap: 0,
        hovermode: Charts.columnsHover(loss.length),
        xaxis: {
          title: { text: "share of scenarios, worst first" },
          range: [0, byId("losses-all").checked ? 1 : seen],
        },
        yaxis: { title: { text: "loss" }, rangemode: "tozero" },
        yaxis2: {
          title: { text: "counts so many times" },
          overlaying: "y",
          side: "right",
          tickmode: "auto",
          nticks: 6,
          rangemode: "tozero",
          showgrid: false,
        },
        margin: { r: 56 },
      },
    };
  }

  // The run: what was found and what was proved.

  const band = (x, y, name, look) => ({
    x,
    y,
    name,
    mode: "lines+markers",
    line: { width: 2, ...look },
    marker: { size: 5 },
    hovertemplate: `%{x:.6~g}: %{y:.6~g}<extra>${name}</extra>`,
  });

  function runChart({ milliseconds, objective, bound }) {
    const isLong = milliseconds.at(-1) >= 10_000;
    const time = isLong ? milliseconds.map((each) => each / 1000) : milliseconds;
    return {
      traces: [
        band(time, bound, "proved bound", { color: colour("green"), shape: "hv" }),
        band(time, objective, "best test so far", { color: colour("blue"), shape: "hv" }),
      ],
      layout: {
        xaxis: { title: { text: isLong ? "seconds" : "milliseconds" }, rangemode: "tozero" },
        yaxis: { title: { text: "objective" } },
      },
    };
  }

  function roundsChart({ round, best, bound, objective }) {
    const line = (y, name, look, extra = {}) => ({ ...band(round, y, name, look), mode: "lines", ...extra });
    const floor = bound[Math.min(bound.length - 1, 9)];
    const spread = Math.max(best[0] - bound[bound.length - 1], 1e-12);
    return {
      traces: [
        line(objective, "this round", { color: colour("faint"), width: 1 }),
        line(bound, "proved bound", { color: colour("green") }),
        line(best, "best round", { color: colour("blue") }, { fill: "tonexty", fillcolor: colour("shade") }),
      ],
      layout: {
        xaxis: { title: { text: "rounds of regret matching+" }, type: "log", dtick: 1 },
        yaxis: {
          title: { text: "objective" },
          range: [Math.max(floor, best[best.length - 1] - 2 * spread), best[0] + 0.6 * spread],
        },
      },
    };
  }

  function caseList(cases) {
    const lines = ticks(cases.slice(0, 8), 40);
    return [...lines, ...(cases.length > 8 ? [`and ${cases.length - 8} more`] : [])].join("<br>");
  }

  // The best test for each size, or for each budget, and a whisker down to what is proved; the report's own is marked.
  function bestTests({ at, objective, bound, tests, own }, hover, line = {}) {
    return {
      x: at,
      y: objective,
      error_y: {
        type: "data",
        symmetric: false,
        array: at.map(() => 0),
        arrayminus: objective.map((value, place) => (bound[place] === null ? 0 : value - bound[place])),
        color: colour("faint"),
      },
      text: tests.map(caseList),
      mode: "lines+markers",
      line: { color: colour("blue"), width: 2, ...line },
      marker: {
        size: at.map((value) => (value === own ? 13 : 8)),
        color: at.map((value) => colour(value === own ? "orange" : "blue")),
      },
      hovertemplate: `${hover}: %{y:.6~g}<br>%{text}<extra></extra>`,
    };
  }

  function sizesChart({ size, ...rest }) {
    return {
      traces: [bestTests({ at: size, ...rest }, "%{x} cases")],
      layout: {
        xaxis: { title: { text: "test cases in the small test" }, tickvals: size },
        yaxis: { title: { text: "objective" }, rangemode: "tozero" },
      },
    };
  }

  function budgetsChart({ budget, ...rest }) {
    const wide = budget[0] > 0 && budget[budget.length - 1] > 20 * budget[0];
    return {
      traces: [bestTests({ at: budget, ...rest }, "a budget of %{x:.6~g}", { shape: "hv" })],
      layout: {
        xaxis: { title: { text: "budget" }, type: wide ? "log" : "linear" },
        yaxis: { title: { text: "objective" }, rangemode: "tozero" },
      },
    };
  }

  // The best ways on held-out policies, from the top; the one in which the report's test was made is marked.

  function unseenChart({ chart, ways, mean, low, high, tuned, own }) {
    const places = mean.map((_, place) => place);
    const narrow = Charts.narrow(chart);
    const label = ([selection, estimator]) => `${tick(selection)},${narrow ? "<br>" : " "}${tick(estimator)}`;
    const reach = (place, end) => (end[place] === null ? 0 : Math.abs(end[place] - mean[place]));
    const interval = (place) => (low[place] === null ? "" : `, ${number(low[place], 3)} to ${number(high[place], 3)}`);
    const told = (place) =>
      `${plain(ways[place].join(", "))}<br>held out ${number(mean[place], 3)}${interval(place)}` +
      `<br>tuned ${number(tuned[place], 3)}`;
    const dots = (name, shown, x, marker, more = {}) => ({
      x: shown.map((place) => x[place]),
      y: shown,
      text: shown.map(told),
      mode: "markers",
      name,
      marker,
      hovertemplate: "%{text}<extra></extra>",
      ...more,
    });
    const errors = (name, shown, hue) =>
      dots(name, shown, mean, { size: 10, color: colour(hue) }, {
        error_x: {
          type: "data",
          symmetric: false,
          array: shown.map((place) => reach(place, high)),
          arrayminus: shown.map((place) => reach(place, low)),
          color: colour(hue),
          thickness: 1.5,
        },
      });
    const open = { symbol: "diamond-open", size: 8, color: colour("soft"), line: { width: 1.5 } };
    return {
      traces: [
        dots("tuned", places, tuned, open),
        errors("held out", places.filter((place) => place !== own), "blue"),
        ...(own === null ? [] : [errors("as here", [own], "orange")]),
      ],
      layout: {
        height: 130 + (narrow ? 36 : 28) * places.length,
        xaxis: { title: { text: "mean error" }, rangemode: "tozero" },
        yaxis: {
          tickvals: places,
          ticktext: ways.map(label),
          range: [places.length - 0.5, -0.5],
          zeroline: false,
        },
      },
    };
  }

  // Each section's charts are started with the page's data.

  const startResults = ({ matrix }) => Charts.add("chart-matrix", () => matrixChart(matrix));

  function startScores({ scores, targets }) {
    Charts.add("chart-scores", () => scoresChart(scores, targets));
    showRanking(scores);
    byId("target").addEventListener("change", () => {
      showRanking(scores);
      Charts.paint("chart-scores");
    });
  }

  function startLosses({ losses }) {
    Charts.add("chart-losses", () => lossesChart(losses));
    for (const choice of document.getElementsByName("losses")) {
      choice.addEventListener("change", () => Charts.paint("chart-losses"));
    }
  }

  const startSizes = ({ sizes }) => Charts.add("chart-sizes", () => sizesChart(sizes));

  const startBudgets = ({ budgets }) => Charts.add("chart-budgets", () => budgetsChart(budgets));

  function startRun({ run, rounds }) {
    Charts.add("chart-run", () => runChart(run));
    Charts.add("chart-rounds", () => roundsChart(rounds));
  }

  const startUnseen = ({ unseen }) => unseen.forEach((part) => Charts.add(part.chart, () => unseenChart(part)));

  return { startResults, startScores, startLosses, startSizes, startBudgets, startRun, startUnseen };
})();
