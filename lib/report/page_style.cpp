#include "report/page_style.hpp"

namespace vpp {

const char* const kPageStyle = R"css(
:root {
  color-scheme: light dark;
  --bg: #f4f5f7; --card: #ffffff; --ink: #1b2430; --soft: #5b6776; --line: #e1e5ea; --idle: #edf0f3; --accent: #1f6feb;
  --c0: #1f6feb; --c1: #d9480f; --c2: #2b8a3e; --c3: #9c36b5; --c4: #b08900; --c5: #0b8a8f; --c6: #c2255c;
    --c7: #5f6f81;
  --F: #6ea8fe; --B: #63c17a; --I: #4fc3b8; --W: #f2b54a; --on-box: #10202f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --bg: #0f141a; --card: #182029; --ink: #e6ebf1; --soft: #97a3b2; --line: #2a3440; --idle: #202a35;
      --accent: #6ea8fe;
    --c0: #6ea8fe; --c1: #ff8f5a; --c2: #69db7c; --c3: #d58cf0; --c4: #ffd166; --c5: #4dd4d9; --c6: #ff80aa;
      --c7: #9fb0c2;
    --F: #5b93e6; --B: #55b06c; --I: #43b0a6; --W: #dba23e; --on-box: #0b1218;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1360px; margin: 0 auto; padding: 28px 24px 56px; }
h1 { font-size: 24px; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 34px 0 12px; }
p, .note { margin: 0 0 10px; color: var(--soft); max-width: 90ch; overflow-wrap: anywhere; }
p.failure { color: var(--c1); font-weight: 600; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(230px, 1fr)); gap: 12px; margin: 18px 0; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 14px 16px; }
.cards .card b { display: block; font-size: 22px; line-height: 1.3; font-weight: 600; white-space: nowrap; }
.cards .card span { color: var(--soft); font-size: 13px; }
main > .card { margin-bottom: 12px; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(480px, 100%), 1fr)); gap: 16px; }
figure { margin: 0; position: relative; }
figcaption { font-weight: 600; margin-bottom: 8px; }
figcaption small { font-weight: 400; color: var(--soft); margin-left: 6px; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
.scroll { overflow-x: auto; }
.scroll svg.step { min-width: 760px; }
svg text { font: 12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: var(--soft); }
svg text.box { font-size: 11px; fill: var(--on-box); pointer-events: none; }
.grid { stroke: var(--line); stroke-width: 1; }
.hair { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 3 3; }
.curve path { fill: none; stroke: currentColor; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round; }
.curve circle { fill: currentColor; }
.curve.faint path { stroke-width: 1; opacity: .35; }
.curve.dotted path { stroke-dasharray: 5 4; stroke-width: 1.4; }
.c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); } .c3 { color: var(--c3); }
.c4 { color: var(--c4); } .c5 { color: var(--c5); } .c6 { color: var(--c6); } .c7 { color: var(--c7); }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 8px 0 0; padding: 0;
  font-size: 13px; }
.legend li { color: var(--soft); overflow-wrap: anywhere; }
.legend i { display: inline-block; width: 18px; height: 0; border-top: 3px solid; margin-right: 7px;
  vertical-align: middle; }
.legend li.c0 i { color: var(--c0); } .legend li.c1 i { color: var(--c1); } .legend li.c2 i { color: var(--c2); }
.legend li.c3 i { color: var(--c3); } .legend li.c4 i { color: var(--c4); } .legend li.c5 i { color: var(--c5); }
.legend li.c6 i { color: var(--c6); } .legend li.c7 i { color: var(--c7); }
.legend li.dotted i { border-top-style: dashed; }
.legend li.swatch i { width: 14px; height: 12px; border: 0; border-radius: 3px; }
.idle { fill: var(--idle); }
.F { fill: var(--F); } .B { fill: var(--B); } .I { fill: var(--I); } .W { fill: var(--W); }
svg .F, svg .B, svg .I, svg .W { stroke: var(--card); stroke-width: 1; }
.k1 { filter: brightness(.88); } .k2 { filter: brightness(.77); } .k3 { filter: brightness(.66); }
.swatch.F i { background: var(--F); } .swatch.B i { background: var(--B); }
.swatch.I i { background: var(--I); } .swatch.W i { background: var(--W); }
.message { fill: var(--soft); opacity: .6; }
figure table { margin-top: 14px; }
table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 7px 14px 7px 0; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere; }
th { color: var(--soft); font-weight: 500; white-space: nowrap; }
tr:last-child td { border-bottom: 0; }
td.number, th.number { text-align: right; white-space: nowrap; }
td:has(> .key) { min-width: 16ch; }
code, pre { font: 13px/1.45 ui-monospace, "SF Mono", Menlo, "DejaVu Sans Mono", monospace; }
pre { margin: 10px 0 0; overflow: auto; max-height: 560px; white-space: pre; }
.bar { display: inline-block; height: 12px; border-radius: 3px; vertical-align: middle; min-width: 2px; }
.track { display: flex; background: var(--idle); border-radius: 3px; height: 14px; width: 100%;
  min-width: 140px; overflow: hidden; }
.track i { display: block; height: 100%; }
.track .forward { background: var(--F); } .track .backward { background: var(--B); }
.track .transfer { background: var(--W); }
.track .state { background: var(--c0); } .track .acts { background: var(--c1); } .track .busy { background: var(--c2); }
details summary { cursor: pointer; font-weight: 600; overflow-wrap: anywhere; }
.key { display: inline-block; width: 10px; height: 10px; border-radius: 50%; background: currentColor;
  margin-right: 8px; }
.tip { position: absolute; pointer-events: none; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; padding: 7px 10px; font-size: 12.5px; box-shadow: 0 4px 16px rgba(0, 0, 0, .18);
  display: none; z-index: 2; white-space: nowrap; }
.tip div { display: flex; justify-content: space-between; gap: 14px; }
@media print { body { background: #fff; } .card { break-inside: avoid; } }
)css";

// Written without the characters that XML has markup of, so that strict readers take the page too.
const char* const kPageScript = R"js(
"use strict";
(function () {
  function shown(value, quantity) {
    if (value === null) { return "not a number"; }
    if (quantity === 2) {
      var names = ["B", "KiB", "MiB", "GiB", "TiB"], level = 0;
      while (Math.abs(value) >= 1024) { if (level === 4) { break; } value /= 1024; level += 1; }
      return value.toFixed(level ? 1 : 0) + " " + names[level];
    }
    if (quantity === 3) { return (100 * value).toFixed(1) + " %"; }
    if (quantity === 1) {
      var kinds = ["", " K", " M", " G", " T", " P"], place = 0;
      while (Math.abs(value) >= 1000) { if (place === 5) { break; } value /= 1000; place += 1; }
      return parseFloat(value.toPrecision(4)) + kinds[place];
    }
    return String(parseFloat(value.toPrecision(5)));
  }
  function nearest(xs, at) {
    var low = 0, high = xs.length - 1;
    while (high - low >= 2) {
      var middle = (low + high) >> 1;
      if (xs[middle] >= at) { high = middle; } else { low = middle; }
    }
    return Math.abs(xs[high] - at) >= Math.abs(xs[low] - at) ? low : high;
  }
  document.querySelectorAll("figure.chart").forEach(function (figure) {
    var svg = figure.querySelector("svg"), hair = svg.querySelector(".hair");
    var box = svg.getAttribute("data-box").split(" ").map(Number);
    var curves = Array.from(svg.querySelectorAll("[data-x]")).map(function (group) {
      return {
        name: group.getAttribute("data-name"), colour: group.getAttribute("class").split(" ")[1],
        x: JSON.parse(group.getAttribute("data-x")), y: JSON.parse(group.getAttribute("data-y"))
      };
    });
    var tip = document.createElement("div");
    tip.className = "tip";
    figure.appendChild(tip);
    function line(label, text, colour) {
      var row = document.createElement("div");
      var left = document.createElement("span"), right = document.createElement("b");
      left.textContent = label;
      right.textContent = text;
      if (colour) { left.className = colour; }
      row.appendChild(left);
      row.appendChild(right);
      tip.appendChild(row);
    }
    svg.addEventListener("mousemove", function (event) {
      var frame = svg.getBoundingClientRect(), scale = frame.width / 640;
      var place = Math.min(Math.max((event.clientX - frame.left) / scale, box[0]), box[1]);
      var step = box[2] + (place - box[0]) / (box[1] - box[0]) * (box[3] - box[2]);
      var own = curves.map(function (curve) { return nearest(curve.x, step); });
      var best = 0;
      curves.forEach(function (curve, i) {
        var closer = Math.abs(curves[best].x[own[best]] - step) > Math.abs(curve.x[own[i]] - step);
        if (closer) { best = i; }
      });
      var at = curves[best].x[own[best]];
      var left = box[0] + (box[3] > box[2] ? (at - box[2]) / (box[3] - box[2]) * (box[1] - box[0]) : 0);
      hair.setAttribute("x1", left);
      hair.setAttribute("x2", left);
      hair.setAttribute("visibility", "visible");
      tip.textContent = "";
      line("step", String(at), "");
      curves.forEach(function (curve, i) {
        var near = curve.x[own[i]];
        line(curve.name + (near === at ? "" : " (step " + near + ")"), shown(curve.y[own[i]], box[4]), curve.colour);
      });
      tip.style.display = "block";
      var wanted = left * scale + svg.offsetLeft + frame.left - figure.getBoundingClientRect().left + 14;
      var most = figure.clientWidth - tip.offsetWidth - 6;
      tip.style.left = Math.max(6, Math.min(wanted, most)) + "px";
      tip.style.top = "44px";
    });
    svg.addEventListener("mouseleave", function () {
      hair.setAttribute("visibility", "hidden");
      tip.style.display = "none";
    });
  });
}());
)js";

}  // namespace vpp
