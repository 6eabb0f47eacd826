// Draws the figures of a page: their JSON stands in the page or is fetched, and Plotly draws it.
"use strict";

const source = document.querySelector("[data-figures]");
const places = [...document.querySelectorAll("[data-figure]")];
const rest = document.getElementById("rest"); // closed on a phone until it is asked for
const highlighter = document.querySelector("[data-highlight]");
for (const { style, dataset } of places) style.minHeight = dataset.height ? `${dataset.height}px` : "";
let figures = null;
let etag = null;

// Colours are those of the style sheet, by name: "var(--first)".
function coloured(value) {
  if (Array.isArray(value)) return value.map(coloured);
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, coloured(one)]));
  }
  const name = typeof value === "string" ? value.match(/^var\((--\w+)\)$/) : null;
  return name === null ? value : colour(name[1]);
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function axis(given) {
  return {
    gridcolor: colour("--line"), zerolinecolor: colour("--text"), zerolinewidth: 1.5,
    automargin: true, separatethousands: true, exponentformat: "none", ...given,
  };
}

// Without a mouse the buttons are always shown, so the legend is below them and the plot.
function layout(given) {
  const touch = matchMedia("(hover: none)").matches;
  return {
    height: 360, margin: { l: 50, r: 10, t: touch ? 50 : 40, b: 45 }, hovermode: "closest",
    paper_bgcolor: "transparent", plot_bgcolor: "transparent",
    font: { color: colour("--text"), family: "system-ui, sans-serif", size: 13 },
    modebar: { bgcolor: colour("--panel"), color: colour("--faint"), activecolor: colour("--text") },
    legend: {
      orientation: "h", yref: touch ? "container" : "paper", y: touch ? 0 : 1, yanchor: "bottom",
      font: { size: 12 },
    },
    ...given, xaxis: axis(given.xaxis), yaxis: axis(given.yaxis),
  };
}

function settings(name) {
  const svg = {
    name: "svg", title: "Download as SVG", icon: Plotly.Icons.disk,
    click: (place) => Plotly.downloadImage(place, { format: "svg", filename: name }),
  };
  return {
    responsive: true, displaylogo: false, toImageButtonOptions: { filename: name },
    modeBarButtonsToAdd: [svg], modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  };
}

async function draw() {
  if (figures === null || rest?.open === false) return;
  for (const place of places) {
    const name = place.dataset.figure, figure = figures[name];
    place.closest("figure").hidden = figure === undefined;
    if (figure === undefined) continue;
    place.querySelector(":scope > p")?.remove();
    await Plotly.react(place, coloured(figure.data), layout(coloured(figure.layout)), settings(name));
    if (!place.dataset.isDrawn) listen(place);
    place.dataset.isDrawn = "yes";
  }
  if (highlighter?.value) highlight(highlighter.value);
}

function listen(place) {
  if (!["parameters", "moved"].includes(place.dataset.figure)) return;
  place.on("plotly_hover", ({ points }) => highlight(points[0].text ?? points[0].data.name, true));
  place.on("plotly_unhover", () => highlight(highlighter === null ? "" : highlighter.value));
}

// Makes all but the parameters of this name pale, in both figures of the parameters.
function highlight(text, whole = false) {
  const wanted = text.toLowerCase();
  const opacity = (name) => {
    const its = name.toLowerCase();
    return (whole ? its === wanted : its.includes(wanted)) ? 1 : 0.12;
  };
  for (const place of places.filter((one) => one.dataset.isDrawn)) {
    if (place.dataset.figure === "parameters") {
      Plotly.restyle(place, { opacity: place.data.map((trace) => opacity(trace.name)) });
    } else if (place.dataset.figure === "moved") {
      Plotly.restyle(place, { "marker.opacity": [place.data[0].text.map(opacity)] });
    }
  }
}

async function load() {
  const headers = etag === null ? {} : { "If-None-Match": etag };
  const response = await fetch(source.dataset.figures, { headers, cache: "no-store" });
  if (!response.ok) return;
  etag = response.headers.get("ETag");
  figures = await response.json();
}

function begin() {
  highlighter?.addEventListener("input", () => highlight(highlighter.value));
  rest?.addEventListener("toggle", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
}

// What the owner reads first is painted before the script of 5 MB is asked for, and the figures
// come at the same time.
async function afterPaint() {
  const script = document.createElement("script");
  script.src = source.dataset.plotly;
  const loaded = new Promise((resolve) => script.addEventListener("load", resolve));
  document.head.append(script);
  await Promise.all([load(), loaded]);
  begin();
  document.addEventListener("refreshed", () => load().then(draw));
}

const own = document.getElementById("figures");
if (own !== null) {
  figures = JSON.parse(own.textContent);
  begin();
} else if (rest?.open === false) rest.addEventListener("toggle", afterPaint, { once: true });
else if (source !== null) {
  new PerformanceObserver((_, observer) => {
    observer.disconnect();
    afterPaint();
  }).observe({ type: "paint", buffered: true });
}
