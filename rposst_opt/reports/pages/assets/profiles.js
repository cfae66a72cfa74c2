"use strict";

// What every solver had, and when: the objectives of its tests, which the package scores, and the bounds that it claims.
const Profiles = (() => {
  const { colour, plain } = Charts;
  const CHART = "chart-profiles";
  const HUES = ["blue", "orange", "green", "red", "soft"];
  const SIGNS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "pentagon", "star"];
  const SHORTEST = 1e-3; // seconds; what took less is drawn there: logarithms know no zero
  const MOST_SHOWN = 4; // times as far above the best test as the lowest bound is below it: poor first tests lie outside

  const known = (values) => values.filter((value) => value !== null);
  const only = (values, shown) => values.filter((_, place) => shown[place]);

  // As many solvers can be told apart as there are hues times signs: hues and signs are of different number.
  const look = (place) => ({ hue: colour(HUES[place % HUES.length]), sign: SIGNS[place % SIGNS.length] });

  function lines(profile, place) {
    const { hue, sign } = look(place);
    const x = profile.seconds.map((second) => Math.max(second, SHORTEST));
    const shared = (kind) => ({
      legendgroup: profile.solver,
      name: plain(profile.solver),
      hovertemplate: `${plain(profile.solver)}<br>%{x:.3~g} s: ${kind} %{y:.6~g}<extra></extra>`,
    });
    const line = (y, kind, dash) => ({
      ...shared(kind),
      x,
      y,
      mode: "lines",
      showlegend: false,
      line: { shape: "hv", color: hue, width: dash === "solid" ? 2 : 1.5, dash },
    });
    const answer = (y, kind, symbol, legend) => ({
      ...shared(kind),
      x: only(x, profile.isEnd),
      y: only(y, profile.isEnd),
      mode: "markers",
      showlegend: legend,
      marker: { symbol, size: 9, color: hue, line: { width: 1.5, color: hue } },
    });
    return [
      line(profile.bound, "claimed bound", "dash"),
      line(profile.objective, "best test", "solid"),
      answer(profile.bound, "claimed bound", `${sign}-open`, false),
      answer(profile.objective, "best test", sign, true),
    ];
  }

  // Numbers that a fact refutes.
  function crosses(profiles) {
    const refuted = profiles.flatMap(({ solver, seconds, bound, isRefuted }) =>
      seconds.map((second, at) => ({ solver, x: Math.max(second, SHORTEST), y: bound[at], isRefuted: isRefuted[at] })),
    );
    const shown = refuted.filter(({ y, isRefuted }) => isRefuted && y !== null);
    return {
      x: shown.map(({ x }) => x),
      y: shown.map(({ y }) => y),
      text: shown.map(({ solver }) => plain(solver)),
      mode: "markers",
      name: "refuted",
      showlegend: shown.length > 0,
      marker: { symbol: "x-thin", size: 12, line: { width: 3, color: colour("ink") } },
      hovertemplate: "%{text}<br>refuted<extra></extra>",
    };
  }

  function range(profiles) {
    const objectives = known(profiles.flatMap(({ objective }) => objective));
    const bounds = known(profiles.flatMap(({ bound }) => bound));
    if (objectives.length === 0) return {};
    const best = Measures.least(objectives);
    const low = Measures.least([best, ...bounds]);
    const high = Measures.largest([...objectives, ...bounds]);
    if (!(low < best)) return {};
    const top = Math.min(high, best + MOST_SHOWN * (best - low));
    const rim = 0.05 * (top - low);
    return { range: [low - rim, top + rim] };
  }

  function chart(profiles) {
    return {
      traces: [...profiles.flatMap(lines), crosses(profiles)],
      layout: {
        height: 420 + 20 * Math.ceil(profiles.length / (Charts.narrow(CHART) ? 2 : 5)),
        xaxis: { title: { text: "seconds since it was asked" }, type: "log" },
        yaxis: { title: { text: "objective and bound" }, ...range(profiles) },
      },
    };
  }

  function start({ profiles }) {
    if (profiles.length > 0) Charts.add(CHART, () => chart(profiles));
  }

  return { start };
})();
