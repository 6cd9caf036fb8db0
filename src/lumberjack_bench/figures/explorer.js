// Draws what explorer.py gathered. The choice stands in the address, so that a picture can be linked to:
// #dataset=adult&metric=roc_auc&methods=lumberjack,snr
"use strict";
(() => {
  const root = document.getElementById("explorer");
  const find = (selector) => root.querySelector(selector);
  const data = JSON.parse(find(".data").textContent);
  const WIDTH = 860, HEIGHT = 430, LEFT = 64, RIGHT = 600, TOP = 44, BOTTOM = 380, NAME_GAP = 15;
  const INK = "#222222", GREY = "#6E6E6E", PALE = "#E4E4E4";
  const choice = {
    dataset: Object.keys(data.datasets)[0],
    metric: data.metric in data.metrics ? data.metric : Object.keys(data.metrics)[0],
    methods: new Set(Object.keys(data.methods)),
  };

  function element(name, attributes = {}, children = []) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  function html(name, properties = {}, children = []) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  // --- the choice, the controls and the address ---

  function readAddress() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    if (wanted.get("dataset") in data.datasets) choice.dataset = wanted.get("dataset");
    if (wanted.get("metric") in data.metrics) choice.metric = wanted.get("metric");
    if (!wanted.has("metric")) pickMeasured();
    if (wanted.has("methods")) {
      choice.methods = new Set(wanted.get("methods").split(",").filter((name) => name in data.methods));
    }
    find("[name=dataset]").value = choice.dataset;
    find("[name=metric]").value = choice.metric;
    for (const box of root.querySelectorAll("[type=checkbox]")) box.checked = choice.methods.has(box.value);
  }

  // Classes and numbers are measured differently: go to a metric that the data set has.
  function pickMeasured() {
    const measured = new Set(data.curves.filter((curve) => curve.dataset === choice.dataset).map((curve) => curve.metric));
    if (!measured.has(choice.metric)) choice.metric = Object.keys(data.metrics).find((name) => measured.has(name));
  }

  function writeAddress() {
    const known = Object.keys(data.methods);
    const chosen = known.filter((name) => choice.methods.has(name));
    const parts = [`dataset=${encodeURIComponent(choice.dataset)}`, `metric=${encodeURIComponent(choice.metric)}`];
    if (chosen.length < known.length) parts.push(`methods=${chosen.map(encodeURIComponent).join(",")}`);
    try {
      history.replaceState(null, "", `#${parts.join("&")}`);
    } catch {
      // A notebook's frame has no address of its own.
    }
  }

  function pick(change) {
    change();
    writeAddress();
    readAddress();
    show();
  }

  function addControls() {
    for (const name of ["dataset", "metric"]) {
      const select = find(`[name=${name}]`);
      for (const [value, { title }] of Object.entries(data[`${name}s`])) select.append(new Option(title, value));
      select.addEventListener("change", () => pick(() => {
        choice[name] = select.value;
        if (name === "dataset") pickMeasured();
      }));
    }
    for (const [name, method] of Object.entries(data.methods)) {
      const box = html("input", { type: "checkbox", value: name });
      box.addEventListener("change", () => pick(() => choice.methods[box.checked ? "add" : "delete"](name)));
      find("fieldset").append(html("label", {}, [box, sample(method), ` ${method.label}`]));
    }
    find("[name=all]").addEventListener("click", () => pick(() => { choice.methods = new Set(Object.keys(data.methods)); }));
    find("[name=none]").addEventListener("click", () => pick(() => { choice.methods = new Set(); }));
    window.addEventListener("hashchange", () => { readAddress(); show(); });
  }

  // --- lines and markers ---

  function line(points, { colour, width, kind, isDoubted }) {
    const dashes = kind === "majority" ? "2 3" : isDoubted ? "8 4" : "none";
    return element("polyline", {
      points: points.map((point) => point.join(",")).join(" "),
      fill: "none", stroke: colour, "stroke-width": width, "stroke-dasharray": dashes,
    });
  }

  function marker([x, y], { colour, marker: outline, isDoubted }, title = "") {
    return element("path", {
      d: outline, transform: `translate(${x} ${y}) scale(8)`, fill: isDoubted ? "#FFFFFF" : colour,
      stroke: colour, "stroke-width": 1.4, "vector-effect": "non-scaling-stroke",
    }, title ? [element("title", {}, [title])] : []);
  }

  function sample(method) {
    const parts = [line([[0, 6], [26, 6]], method)];
    if (method.marker) parts.push(marker([13, 6], method));
    return element("svg", { width: 26, height: 12, style: "display: inline; width: 26px" }, parts);
  }

  // --- the picture ---

  // Limits of the axis: all means, and bands no further than the means are apart; a far-off majority class is left out.
  function limits(curves) {
    const others = curves.filter((curve) => curve.kind !== "majority");
    const means = (others.length ? others : curves).flatMap((curve) => curve.points.map(([, mean]) => mean));
    let low = Math.min(...means), high = Math.max(...means);
    const span = high - low || Math.abs(high) / 10 || 1;
    for (const [, mean, lower, upper] of others.flatMap((curve) => curve.kind === "private" ? curve.points : [])) {
      if (lower === null) continue;
      low = Math.min(low, Math.max(lower, mean - span));
      high = Math.max(high, Math.min(upper, mean + span));
    }
    const room = (high - low) / 2 || span;
    const near = curves.map((curve) => last(curve)).filter((mean) => mean >= low - room && mean <= high + room);
    low = Math.min(low, ...near);
    high = Math.max(high, ...near);
    const margin = 0.05 * (high - low || span);
    return [low - margin, high + margin];
  }

  function last(curve) {
    return curve.points[curve.points.length - 1][1];
  }

  function ticks(low, high) {
    const power = 10 ** Math.floor(Math.log10((high - low) / 5));
    const step = power * [1, 2, 2.5, 5, 10].find((factor) => (high - low) / (power * factor) <= 6);
    const found = [];
    for (let i = Math.ceil(low / step); i * step <= high; i++) found.push(Number((i * step).toPrecision(10)));
    return found;
  }

  // Moves names apart, in the order of their heights: downwards, then up again from the lower edge.
  function spread(heights) {
    const placed = [...heights];
    for (let i = 1; i < placed.length; i++) placed[i] = Math.max(placed[i], placed[i - 1] + NAME_GAP);
    for (let i = placed.length - 1, limit = BOTTOM; i >= 0; i--, limit -= NAME_GAP) placed[i] = Math.min(placed[i], limit);
    return placed;
  }

  function draw(curves, budgets) {
    const { title, source } = data.datasets[choice.dataset];
    const metric = data.metrics[choice.metric];
    const [low, high] = limits(curves);
    const [first, final] = [Math.log2(budgets[0]), Math.log2(budgets[budgets.length - 1])];
    const inside = RIGHT - LEFT - 30;
    const x = (eps) => LEFT + 15 + (final > first ? (Math.log2(eps) - first) / (final - first) : 0.5) * inside;
    const y = (value) => BOTTOM - (value - low) / (high - low) * (BOTTOM - TOP);
    const clip = (height) => Math.min(Math.max(height, TOP), BOTTOM);
    const text = (where, content, look = {}) => element("text", { x: where[0], y: where[1], fill: INK, ...look }, [content]);
    const parts = [
      text([LEFT, 16], title, { "font-weight": "bold", "font-size": 15 }),
      text([LEFT, 34], source, { fill: GREY }),
      text([(LEFT + RIGHT) / 2, HEIGHT - 8], "Privacy budget ε", { "text-anchor": "middle" }),
      text([0, 0], metric.title + (metric.sign < 0 ? " (less is better)" : ""),
        { transform: `translate(14 ${(TOP + BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle", class: "axis" }),
    ];
    const decimals = Math.max(...ticks(low, high).map((value) => (String(value).split(".")[1] || "").length));
    for (const value of ticks(low, high)) {
      parts.push(line([[LEFT, y(value)], [RIGHT, y(value)]], { colour: PALE, width: 1 }));
      parts.push(text([LEFT - 6, y(value) + 4], value.toFixed(decimals), { "text-anchor": "end" }));
    }
    for (const eps of budgets) {
      parts.push(line([[x(eps), BOTTOM], [x(eps), BOTTOM + 5]], { colour: GREY, width: 1 }));
      parts.push(text([x(eps), BOTTOM + 19], String(eps), { "text-anchor": "middle" }));
    }
    parts.push(line([[LEFT, TOP], [LEFT, BOTTOM], [RIGHT, BOTTOM]], { colour: GREY, width: 1 }));
    for (const curve of curves.filter((curve) => curve.kind !== "private")) {
      const height = y(last(curve));
      if (height === clip(height)) parts.push(line([[LEFT, height], [RIGHT, height]], curve));
    }
    for (const curve of curves.filter((curve) => curve.kind === "private")) {
      const sure = curve.points.filter(([, , lower]) => lower !== null);
      const band = [...sure.map((p) => [x(p[0]), clip(y(p[3]))]), ...sure.map((p) => [x(p[0]), clip(y(p[2]))]).reverse()];
      // A single budget has no band yet but a line.
      const look = sure.length > 1 ? { fill: curve.colour } : { stroke: curve.colour, "stroke-width": 2 };
      parts.push(element("polygon", { points: band.join(" "), opacity: sure.length > 1 ? 0.14 : 0.5, ...look }));
    }
    // The best method last and on top; curves come best first.
    for (const curve of curves.filter((curve) => curve.kind === "private").reverse()) {
      const places = curve.points.map(([eps, mean]) => [x(eps), y(mean)]);
      const dots = curve.points.map((point, i) => marker(places[i], curve, `${curve.label}, ε = ${point[0]}: ${interval(point)}`));
      parts.push(element("g", { class: "curve", "data-method": curve.method }, [line(places, curve), ...dots]));
    }
    const ordered = [...curves].sort((a, b) => last(b) - last(a));
    const heights = spread(ordered.map((curve) => clip(y(last(curve)))));
    ordered.forEach((curve, i) => {
      const from = curve.kind === "private" ? x(curve.points[curve.points.length - 1][0]) : RIGHT;
      parts.push(element("g", { opacity: 0.6 },
        [line([[from, clip(y(last(curve)))], [RIGHT + 12, heights[i]]], { colour: curve.colour, width: 0.8 })]));
      const off = last(curve) < low ? ` ${round(last(curve))} ↓` : last(curve) > high ? ` ${round(last(curve))} ↑` : "";
      parts.push(line([[RIGHT + 12, heights[i]], [RIGHT + 36, heights[i]]], curve));
      if (curve.marker) parts.push(marker([RIGHT + 24, heights[i]], curve));
      parts.push(text([RIGHT + 42, heights[i] + 4], curve.label + off,
        { class: "name", "font-weight": curve.isOurs ? "bold" : "normal" }));
    });
    const height = Math.max(HEIGHT, (heights[heights.length - 1] || 0) + 12);
    const top = Math.min(0, (heights[0] || 0) - 12);
    return element("svg", {
      viewBox: `0 ${top} ${WIDTH} ${height - top}`, role: "img", "font-size": 12.5,
      "font-family": "DejaVu Sans, sans-serif", "aria-label": `${metric.title} against privacy budget on ${title}`,
    }, parts);
  }

  // --- the same in numbers ---

  function round(value) {
    return Math.abs(value) < 100 ? value.toFixed(4) : value.toFixed(0);
  }

  function interval([, mean, lower, upper]) {
    return lower === null ? round(mean) : `${round(mean)} [${round(lower)}, ${round(upper)}]`;
  }

  function numbers(curves, budgets) {
    const { sign } = data.metrics[choice.metric];
    const at = (curve, eps) => curve.points.find((point) => point[0] === eps || point[0] === null);
    const best = budgets.map((eps) => Math.max(...curves
      .filter((curve) => curve.kind === "private" && at(curve, eps)).map((curve) => sign * at(curve, eps)[1])));
    const head = ["", ...budgets.map((eps) => `ε = ${eps}`)].map((title) => html("th", {}, [title]));
    const rows = curves.map((curve) => html("tr", {}, [html("td", {}, [curve.label]), ...budgets.map((eps, i) => {
      const point = at(curve, eps);
      const isBest = point && curve.kind === "private" && sign * point[1] === best[i];
      return html("td", {}, point ? [isBest ? html("b", {}, [interval(point)]) : interval(point)] : []);
    })]));
    return [html("thead", {}, [html("tr", {}, head)]), html("tbody", {}, rows)];
  }

  function show() {
    const present = data.curves
      .filter((curve) => curve.dataset === choice.dataset && curve.metric === choice.metric)
      .map((curve) => ({ ...curve, ...data.methods[curve.method], method: curve.method }));
    const curves = present.filter((curve) => choice.methods.has(curve.method));
    const found = curves.flatMap((curve) => curve.points.map(([eps]) => eps)).filter((eps) => eps !== null);
    const budgets = found.length ? [...new Set(found)].sort((a, b) => a - b) : [1];
    find(".picture").replaceChildren(...(curves.length ? [draw(curves, budgets)] : []));
    find("table").replaceChildren(...(curves.length ? numbers(curves, budgets) : []));
    const lacking = Object.entries(data.methods)
      .filter(([name]) => choice.methods.has(name) && !curves.some((curve) => curve.method === name))
      .map(([, method]) => method.label);
    const notes = [];
    if (!choice.methods.size) notes.push("No method is picked.");
    if (lacking.length) notes.push(`Without a value here: ${lacking.join(", ")}.`);
    if (curves.length) {
      notes.push(`Mean over repetitions; bands and brackets: ${data.metrics[choice.metric].interval}. Bold: best private mean.`);
      notes.push("Dashed, hollow: guarantee not believed as claimed (†). Horizontal: not private.");
    }
    find(".note").textContent = notes.join(" ");
  }

  addControls();
  readAddress();
  show();
})();
