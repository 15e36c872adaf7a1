"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const slider = document.getElementById("size");
  const place = (scale, value) => {
    const [low, high, start, end, log] = scale;
    const f = log ? Math.log10 : (v) => v;
    return start + ((end - start) * (f(value) - f(low))) / (f(high) - f(low));
  };
  const inside = (scale, value) => Math.min(Math.max(value, scale[0]), scale[1]);
  const charts = {};
  for (const svg of document.querySelectorAll("svg[data-role]")) {
    charts[JSON.parse(svg.dataset.role)] = { svg: svg, label: svg.getAttribute("aria-label") };
  }

  function element(svg, name, attributes, text) {
    const made = document.createElementNS(svg.namespaceURI, name);
    for (const key of Object.keys(attributes)) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  // Axes of a figure at the size shown: [low, high, start, end, log] of both scales, [value, text] of the ticks.
  function axes(chart, frame) {
    chart.x = frame.x;
    chart.y = frame.y;
    const left = frame.x[2], right = frame.x[3], bottom = frame.y[2];
    const across = [], up = [];
    for (const [value, text] of frame.xt) {
      const at = place(frame.x, value).toFixed(1);
      across.push(element(chart.svg, "line", { class: "axis", x1: at, x2: at, y1: bottom, y2: bottom + 4 }));
      across.push(element(chart.svg, "text", { class: "tick", x: at, y: bottom + 17, "text-anchor": "middle" }, text));
    }
    for (const [value, text] of frame.yt) {
      const at = place(frame.y, value);
      up.push(element(chart.svg, "line", { class: "grid", x1: left, x2: right, y1: at.toFixed(1), y2: at.toFixed(1) }));
      const beside = { class: "tick", x: left - 6, y: (at + 4).toFixed(1), "text-anchor": "end" };
      up.push(element(chart.svg, "text", beside, text));
    }
    chart.svg.querySelector(".x-ticks").replaceChildren(...across);
    chart.svg.querySelector(".y-ticks").replaceChildren(...up);
    const level = chart.svg.querySelector(".level");
    if (level) for (const end of ["y1", "y2"]) level.setAttribute(end, place(frame.y, 0).toFixed(1));
  }

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

  function points(chart, xs, ys) {
    chart.svg.querySelectorAll(".point").forEach((dot, i) => {
      const known = xs[i] !== null && ys[i] !== null;
      dot.setAttribute("visibility", known ? "visible" : "hidden");
      if (!known) return;
      const x = inside(chart.x, xs[i]), y = inside(chart.y, ys[i]);
      dot.classList.toggle("beyond", x !== xs[i] || y !== ys[i]);
      dot.setAttribute("cx", place(chart.x, x).toFixed(1));
      dot.setAttribute("cy", place(chart.y, y).toFixed(1));
      const row = data.rows[i], a = data.observed[i], b = data.predicted[now][i];
      dot.dataset.tip = "row " + row + ": observed " + a + ", predicted " + b + ", residual " + (a - b).toPrecision(3);
    });
  }

  function lines(chart, xs, chains) {
    chart.svg.querySelector(".none").setAttribute("visibility", xs.length ? "hidden" : "visible");
    chart.svg.querySelectorAll(".chain").forEach((line, c) => {
      const ys = chains[c] || [];
      const at = (y, t) => place(chart.x, xs[t]).toFixed(1) + "," + place(chart.y, y).toFixed(1);
      line.setAttribute("points", ys.map(at).join(" "));
    });
  }

  function relabel(texts) {
    for (const name of Object.keys(charts)) {
      const chart = charts[name];
      chart.svg.setAttribute("aria-label", chart.label.replace(/\d[\d,]* columns?\b/, texts.name)
        .replace(/Fit: .*$/, "Fit: " + texts.fit));
    }
  }

  let now = data.shown;
  function show(index) {
    now = index;
    const texts = data.tables[index];
    document.getElementById("size-now").textContent = texts.name;
    slider.setAttribute("aria-valuetext", texts.name);
    for (const spot of document.querySelectorAll("[data-text]")) spot.textContent = texts[spot.dataset.text];
    fill("t-columns", texts.columns);
    fill("t-stand-ins", texts.stand_ins);
    fill("t-residuals", texts.residuals);
    fill("t-cooling", texts.cooling);
    document.getElementById("no-stand-ins").hidden = texts.stand_ins.length > 0;
    document.getElementById("some-stand-ins").hidden = texts.stand_ins.length === 0;
    for (const name of Object.keys(charts)) axes(charts[name], data.frames[index][name]);
    const predicted = data.predicted[index];
    points(charts.prediction, data.observed, predicted);
    points(charts.residual, predicted, predicted.map((p, i) => (p === null ? null : data.observed[i] - p)));
    const cooling = data.cooling[index];
    for (const name of ["energy", "acceptance"]) {
      if (charts[name]) lines(charts[name], cooling.temperature, cooling[name]);
    }
    relabel(texts);
  }

  slider.value = String(data.shown); // a browser may restore another value after a reload
  slider.addEventListener("input", () => show(Number(slider.value)));
  show(data.shown);

  const tip = document.getElementById("tip");
  document.addEventListener("pointermove", (event) => {
    const target = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
    tip.hidden = !target;
    if (!target) return;
    tip.textContent = target.dataset.tip;
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
