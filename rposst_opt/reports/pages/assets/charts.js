"use strict";

// How every chart of a page is drawn: colours from the style sheet, redrawn when the theme changes and for printing.
const Charts = (() => {
  const makers = new Map(); // id of an element -> what makes its traces and its layout
  const root = document.documentElement;
  const config = (id) => ({
    responsive: true,
    displaylogo: false,
    displayModeBar: !narrow(id),
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
  });

  const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();

  // Plotly reads a little HTML in its labels; names are shown as they are.
  const plain = (text) =>
    String(text).replace(/[&<>]/g, (character) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[character]);
  // Names begin alike and end in what tells them apart more often than not: the middle goes.
  const shorten = (text, most = 18) => {
    const letters = [...String(text)];
    if (letters.length <= most) return String(text);
    const ending = Math.floor((most - 1) / 2);
    return `${letters.slice(0, most - 1 - ending).join("")}…${letters.slice(letters.length - ending).join("")}`;
  };
  const tick = (text, most) => plain(shorten(text, most));
  // Labels of an axis: names that differ have labels that differ, which are longer where they must be.
  const ticks = (names, most) => {
    const lengths = names.map(() => most);
    for (;;) {
      const labels = names.map((name, place) => shorten(name, lengths[place]));
      const first = new Map();
      labels.forEach((label, place) => first.has(label) || first.set(label, names[place]));
      const shared = new Set(labels.filter((label, place) => first.get(label) !== names[place]));
      if (shared.size === 0) return labels.map(plain);
      labels.forEach((label, place) => {
        if (shared.has(label)) lengths[place] += 1;
      });
    }
  };
  const number = (value, digits = 6) => {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
    return String(Number(value.toPrecision(digits))).replace("-", "−");
  };

  function axis(settings) {
    return {
      gridcolor: colour("grid"),
      zerolinecolor: colour("grid"),
      linecolor: colour("faint"),
      tickcolor: colour("faint"),
      automargin: true,
      ticklabeloverflow: "allow", // margins make room for labels; to look for those beyond them takes long
      exponentformat: "power",
      ...settings,
    };
  }

  // Enough for most labels and one line of a legend: a chart that asks for more of a margin is drawn twice.
  function margin(traces, { showlegend }) {
    const legend = showlegend !== false && traces.filter((trace) => trace.showlegend !== false).length > 1;
    return { l: 70, r: 20, t: legend ? 48 : 30, b: 54 };
  }

  function layout(traces, settings) {
    const axes = Object.fromEntries(
      Object.entries({ xaxis: {}, yaxis: {}, ...settings })
        .filter(([key]) => /^[xy]axis/.test(key))
        .map(([key, value]) => [key, axis(value)]),
    );
    return {
      font: { family: "system-ui, sans-serif", size: 12, color: colour("ink") },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("faint"), activecolor: colour("ink") },
      hoverlabel: {
        align: "left",
        namelength: -1,
        bgcolor: colour("card"),
        bordercolor: colour("faint"),
        font: { color: colour("ink") },
      },
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", bgcolor: "rgba(0,0,0,0)" },
      hovermode: "closest",
      dragmode: false, // a finger that scrolls the page must not zoom a chart
      ...settings,
      ...axes,
      margin: { ...margin(traces, settings), ...settings.margin },
    };
  }

  // Columns side by side, or, where there are so many that a browser would take seconds, their outline.
  const MOST_COLUMNS = 300;
  function columns({ width, colour: fill, opacity = 1, ...settings }) {
    if (settings.x.length <= MOST_COLUMNS) {
      const marker = { color: fill, line: { width: 0 } };
      return { type: "bar", textposition: "none", width, marker, opacity, ...settings };
    }
    const outline = { mode: "lines", line: { shape: "hvh", color: fill, width: 1 }, fill: "tozeroy", fillcolor: fill };
    return { ...outline, opacity, ...settings };
  }
  const columnsHover = (count) => (count <= MOST_COLUMNS ? "closest" : "x");

  function paint(id) {
    const element = document.getElementById(id);
    const made = makers.get(id)();
    // A browser lays paper out after its last chance to resize a chart.
    const width = root.classList.contains("printing") ? { width: element.clientWidth } : { autosize: true };
    return Plotly.react(element, made.traces, { ...layout(made.traces, made.layout), ...width }, config(id));
  }

  const add = (id, make) => makers.set(id, make);

  const paintAll = () => [...makers.keys()].forEach(paint);

  // What can be seen first, and then the others one by one, so that the page answers in between.
  function open() {
    const near = (id) => document.getElementById(id).getBoundingClientRect().top < 1.2 * innerHeight;
    const first = [...makers.keys()].filter(near);
    const later = [...makers.keys()].filter((id) => !first.includes(id));
    first.forEach(paint);
    root.dataset.ready = String(Math.round(performance.now()));
    const next = () => {
      if (later.length === 0) {
        root.dataset.drawn = String(Math.round(performance.now()));
        return;
      }
      paint(later.shift());
      setTimeout(next);
    };
    setTimeout(next);
  }
  const narrow = (id) => document.getElementById(id).clientWidth < 520;

  // The theme is the system's until somebody presses the button; paper is light.

  function useTheme(theme) {
    root.dataset.theme = theme;
    paintAll();
  }

  function followTheme() {
    const system = matchMedia("(prefers-color-scheme: dark)");
    let chosen = false;
    let onScreen;
    document.getElementById("theme").addEventListener("click", () => {
      chosen = true;
      useTheme(root.dataset.theme === "dark" ? "light" : "dark");
    });
    system.addEventListener("change", () => {
      if (!chosen) useTheme(system.matches ? "dark" : "light");
    });
    addEventListener("beforeprint", () => {
      onScreen = root.dataset.theme;
      root.classList.add("printing");
      useTheme("light");
    });
    addEventListener("afterprint", () => {
      root.classList.remove("printing");
      useTheme(onScreen);
    });
  }

  return { add, paint, open, columns, columnsHover, colour, plain, tick, ticks, shorten, number, narrow, followTheme };
})();
