"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const slider = document.getElementById("size");

  function fill(id, rows) {
    const table = document.getElementById(id);
    if (!table) return;
    const names = Number(table.dataset.names);
    const body = document.createElement("tbody");
    for (const row of rows) {
      const line = body.insertRow();
      row.forEach((text, i) => {
        const cell = document.createElement(i === 0 ? "th" : "td");
        if (i === 0) cell.scope = "row";
        if (i < names) cell.className = "name";
        cell.textContent = text;
        line.appendChild(cell);
      });
    }
    table.tBodies[0].replaceWith(body);
  }

  function show(index) {
    const texts = data.tables[index];
    document.getElementById("size-now").textContent = texts.name;
    slider.setAttribute("aria-valuetext", texts.name);
    for (const spot of document.querySelectorAll("[data-text]")) spot.textContent = texts[spot.dataset.text];
    for (const name of Object.keys(texts)) if (Array.isArray(texts[name])) fill("t-" + name, texts[name]);
    document.getElementById("no-stand-ins").hidden = texts.stand_ins.length > 0;
    document.getElementById("some-stand-ins").hidden = texts.stand_ins.length === 0;
    for (const figure of document.querySelectorAll("[data-follow]")) {
      figure.hidden = Number(figure.dataset.follow) !== index;
    }
  }

  slider.value = String(data.shown); // a browser may restore another value after a reload
  slider.addEventListener("input", () => show(Number(slider.value)));
  show(data.shown);

  // What is closed is printed, too.
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details.part:not([open])")];
    for (const part of closed) part.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const part of closed) part.open = false;
  });

  // Texts under the pointer: of areas (children of a group) the one that is hit, of a series of marks the nearest.
  const REACH = 12;
  const centres = new WeakMap();
  function marksOf(series) {
    if (!centres.has(series)) {
      const found = [...series.getAttribute("d").matchAll(/M(-?[\d.]+) (-?[\d.]+)/g)];
      centres.set(series, found.map((m) => [Number(m[1]), Number(m[2])]));
    }
    return centres.get(series);
  }
  function tipText(element, i) {
    const [form, columns] = data.tips[Number(element.dataset.tips)];
    return form.replace(/\{(\d)\}/g, (_, c) => {
      const column = data.columns[columns[c]];
      return typeof column === "string" ? column : column[i];
    });
  }
  function textAt(event) {
    const svg = event.target instanceof Element ? event.target.closest("svg.chart") : null;
    if (!svg) return null;
    const frame = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / frame.width;
    const x = (event.clientX - frame.left) * scale, y = (event.clientY - frame.top) * scale;
    let best = null, reach = REACH * scale;
    for (const series of svg.querySelectorAll("path[data-tips]")) {
      marksOf(series).forEach(([a, b], i) => {
        const away = Math.hypot(a - x, b - y);
        if (away < reach) [best, reach] = [[series, i], away];
      });
    }
    const group = event.target.closest("g[data-tips]");
    if (!best && group) best = [group, [...group.children].indexOf(event.target)];
    return best && tipText(best[0], best[1]);
  }

  const tip = document.getElementById("tip");
  document.addEventListener("pointermove", (event) => {
    const text = textAt(event);
    tip.hidden = text === null;
    if (text === null) return;
    tip.textContent = text;
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = Math.max(8, Math.min(event.clientX + 14, room)) + "px";
    const below = event.clientY + 18;
    const fits = below + tip.offsetHeight < window.innerHeight;
    tip.style.top = (fits ? below : event.clientY - tip.offsetHeight - 10) + "px";
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") tip.hidden = true;
  });
})();
