"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const slider = document.getElementById("size");
  const place = (scale, value) => {
    const [low, high, start, end, log] = scale;
    const f = log ? Math.log10 : (v) => v;
    return start + ((end - start) * (f(value) - f(low))) / (f(high) - f(low));
  };
  const charts = {};
  for (const svg of document.querySelectorAll("svg[data-role]")) {
    charts[JSON.parse(svg.dataset.role)] = {
      svg: svg,
      x: JSON.parse(svg.dataset.x),
      y: JSON.parse(svg.dataset.y),
      label: svg.getAttribute("aria-label"),
    };
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
      dot.setAttribute("cx", place(chart.x, xs[i]).toFixed(1));
      dot.setAttribute("cy", place(chart.y, ys[i]).toFixed(1));
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
        .replace(/Explained .*$/, texts.fit));
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
