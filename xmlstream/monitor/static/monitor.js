// The page of a run. All text from the run is inserted as text (textContent), never as markup.
"use strict";
(() => {
  const MOST_SLICES = 1000;
  const GROWING_OVER = 8;
  const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
  const SVG = "http://www.w3.org/2000/svg";
  const at = id => document.getElementById(id);
  const run = { id: null, state: "starting", what: "", slices: [], last: null, closed: [], findings: [], whole: new Set(), questions: [] };
  let charts = [];
  let asideShown = -1;
  let drawing = false;

  // Numbers and words.

  const count = n => n.toLocaleString("en");
  const brief = n => n < 10000 ? count(n)
    : n.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 3 });
  const counted = (n, word) => `${brief(n)} ${word}${n === 1 ? "" : "s"}`;
  const span = s => s < 1 ? `${Math.round(s * 1000)} ms` : s < 90 ? `${s.toFixed(1)} s`
    : s < 5400 ? `${Math.round(s / 60)} min` : s < 172800 ? `${(s / 3600).toFixed(1)} h` : `${Math.round(s / 86400)} days`;

  const size = n => n < 1e6 ? `${Math.round(n / 1e3)} kB` : n < 1e9 ? `${Math.round(n / 1e6)} MB` : `${(n / 1e9).toFixed(2)} GB`;
  const PROCESSES = [["driver", "driver"], ["java", "Java"], ["java_heap", "Java's heap"], ["workers", "Python workers"]];
  const taken = memory => ["driver", "java", "workers"].reduce((sum, name) => sum + (memory?.[name] ?? 0), 0);

  // A timestamp is not broken at its hyphens, but after the comma that follows it.
  const MOMENT = /(\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-]\d\d:\d\d)?)?)/;
  const unbroken = text => String(text).split(MOMENT).flatMap((part, i) => {
    if (i % 2 === 0) return i && part.startsWith(",") ? [",", document.createElement("wbr"), part.slice(1)] : [part];
    const moment = document.createElement("span");
    moment.className = "whole";
    moment.textContent = part;
    return [moment];
  }).filter(part => part !== "");

  const clock = time => new Date(time).toLocaleTimeString("en", { hourCycle: "h23" });
  const day = time => new Date(time).toDateString() === new Date().toDateString() ? "" : `${new Date(time).toISOString().slice(0, 10)} `;
  const when = at => `slice ${at.slice} (${day(at.time)}${clock(at.time)})`;

  function element(name, text, attributes = {}) {
    const made = document.createElement(name);
    if (text !== undefined) made.append(...unbroken(text));
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  function row(...cells) {
    const made = element("tr");
    made.append(...cells);
    return made;
  }

  function list(target, items, none) {
    const made = (items.length ? items : [none]).map(([text, tone]) => element("li", text, tone ? { class: tone } : {}));
    const same = [...at(target).children];
    // Unchanged items stay, so that a selection, or reading aloud, is not interrupted.
    if (made.length !== same.length || made.some((one, i) => !one.isEqualNode(same[i]))) at(target).replaceChildren(...made);
  }

  // Events.

  function onSlice(slice) {
    run.slices.push(slice);
    if (run.slices.length > MOST_SLICES) run.slices.shift();
    run.last = slice;
  }

  function onState(event) {
    if (run.id !== null && run.id !== event.run) location.reload();
    if (run.state === "starting" && event.state !== "starting" && !document.querySelector("#plan svg")) location.reload();
    Object.assign(run, { id: event.run, state: event.state, what: event.what, questions: event.questions ?? [] });
    showQuestions();
    if (over()) events.close();
  }

  const over = () => run.state === "ended" || run.state === "failed";

  // Display.

  function showState(connected = true) {
    const ends = run.last?.closed ? "ended: all of the input was read" : "ended";
    const [text, tone] = run.state === "failed" ? [`failed: ${run.what}`, "bad"]
      : run.state === "ended" ? [ends, "good"]
      : !connected ? ["no answer; trying again", "late"]
      : run.state === "starting" ? ["starting", "late"]
      : run.state === "recorded" ? ["read from its checkpoint", "late"] : ["running", "good"];
    if (at("state").textContent !== text) at("state").textContent = text;
    at("state").className = `state ${tone}`;
  }

  function showFigures() {
    const { last } = run;
    if (!last) return;
    const { totals } = last;
    const ago = Math.max(0, (Date.now() - Date.parse(last.time)) / 1000);
    const figures = [
      ["slices", count(totals.slices)], ["items in", brief(totals.items_in)], ["tuples out", brief(totals.tuples_out)],
      ["tuples kept", brief(totals.kept)], ["punctuations held", brief(totals.held)],
      ["set aside", count(totals.set_aside)], ["last slice took", span(last.seconds)],
      ...(last.exact === false ? [["result", "not exact", "late"]] : []),
      ...(taken(last.memory) ? [["memory", size(taken(last.memory))]] : []),
      ...(over() || !last.time ? [] : [["last slice", `${span(ago)} ago`]]),
    ];
    at("figures").replaceChildren(...figures.map(([name, value, tone]) => {
      const pair = element("div", undefined, tone ? { class: tone } : {});
      pair.append(element("dt", name), element("dd", value));
      return pair;
    }));
  }

  function isGrowing(name) {
    const tail = run.slices.slice(-GROWING_OVER - 1).map(s => s.operators.find(o => o.name === name)?.kept ?? 0);
    return tail.length > GROWING_OVER && tail.every((kept, i) => !i || kept > tail[i - 1]);
  }

  function showPlan() {
    const { last } = run;
    if (!last) return;
    const put = (key, text, tone = "") => {
      const found = document.querySelector(`#plan [data-key="${CSS.escape(key)}"]`);
      if (!found) return;
      found.textContent = text;
      found.setAttribute("class", tone);
    };
    for (const now of last.operators) {
      const flow = last.totals.operators[now.name] ?? { tuples_in: 0, tuples_out: 0, purged: 0, overdue: 0, punctuations_out: 0 };
      const growing = isGrowing(now.name);
      put(`${now.name} tuples`, `${brief(flow.tuples_in)} in · ${brief(flow.tuples_out)} out`);
      put(`${now.name} sent`, counted(flow.punctuations_out, "punctuation"));
      const marks = [...(flow.overdue ? [`${brief(flow.overdue)} overdue`] : []), ...(growing ? ["growing"] : [])];
      put(`${now.name} kept`, [`${brief(now.kept)} now · ${brief(flow.purged)} purged`, ...marks].join(", "),
        marks.length ? "late" : "");
      put(`${now.name} held`, counted(now.punctuations_held, "punctuation"));
    }
  }

  // How long an input has sent no punctuation, if that is longer than a moment.
  const since = r => r.last_sent?.time ? (Date.now() - Date.parse(r.last_sent.time)) / 1000 : null;
  const silence = r => over() ? "" : !r.last_sent ? "; it has sent no punctuation yet"
    : since(r) > 3 ? `; its last punctuation came ${span(Math.round(since(r)))} ago, in slice ${r.last_sent.slice}` : "";

  function showWaiting() {
    const lacks = run.closed.flatMap(axis => axis.rows.filter(r => r.lacks).map(r =>
      [`${r.input}: ${r.attribute} ${r.lacks} is not closed, but others have closed it; missing: ${r.missing.slice(0, 3).join(", ")}${silence(r)}`, "late"]));
    const silent = run.closed.flatMap(axis => axis.rows.filter(r => r.closed === "nothing yet" && !r.lacks).map(r =>
      [`${r.input} has not closed any ${r.attribute} yet`, ""]));
    const kept = over() ? "nothing: the run has ended" : "nothing: no input lags behind the others";
    list("lacking", [...lacks, ...silent], [run.closed.length ? kept : "nothing is known yet", ""]);
    showQuestions();
  }

  function showQuestions() {
    const names = [...new Set([...run.closed.flatMap(axis => axis.rows.map(r => r.attribute)), ...run.questions])];
    for (const select of document.querySelectorAll("#ask select")) {
      const chosen = select.value;
      if (names.join() !== [...select.options].map(o => o.value).join()) {
        select.replaceChildren(...names.map(name => element("option", name, { value: name })));
        if (names.includes(chosen)) select.value = chosen;
      }
    }
    at("ask").hidden = !names.length;
    at("and").hidden = document.querySelectorAll("#ask .pair").length >= Math.min(names.length, 8);
  }

  let heldFetched = 0;

  async function showHeld(again = false) {
    // The kept rows are read from files: every few seconds, and once more after the last slice.
    if (!again && Date.now() - heldFetched < 3000) return;
    heldFetched = Date.now();
    const report = await (await fetch("waiting.json")).json();
    const needs = found => found.filter(n => n.missing.length).map(n =>
      `${n.source} must send ${n.missing.slice(0, 3).join(", ")}${n.missing.length > 3 ? ` and ${n.missing.length - 3} more` : ""}`)
      .join("; ") || "no missing punctuation is known";
    at("held").replaceChildren(...report.waits.filter(w => w.count).map(w => {
      const made = element("details", undefined, w.blocks ? { open: "" } : {});
      const verb = w.blocks ? (w.count === 1 ? "waits" : "wait") : "are kept for later tuples";
      made.append(element("summary", `${w.operator}: ${count(w.count)} ${w.what} ${verb}`
        + (w.since ? `, ${w.count === 1 ? "" : "the oldest "}since ${when(w.since)}` : "")));
      const items = element("ul");
      for (const one of w.examples) {
        const key = Object.entries(one.key).map(([k, v]) => `${k}=${v}`).join(", ") || "the only group";
        const came = one.since ? `, since ${when(one.since)}` : "";
        items.append(element("li", `${key}${came}: ${needs(one.needs)}`, { class: "late" }));
      }
      if (w.count > w.examples.length) items.append(element("li", `and ${count(w.count - w.examples.length)} more`));
      made.append(items);
      return made;
    }));
    setTimeout(() => { if (Date.now() - heldFetched >= 3500 && !document.hidden && !over()) showHeld(true); }, 4000);
  }

  function bar(bars, [low, high]) {
    const made = document.createElementNS(SVG, "svg");
    made.setAttribute("viewBox", "0 0 1000 16");
    made.setAttribute("preserveAspectRatio", "none");
    made.setAttribute("aria-hidden", "true");
    const rect = (from, to, looks) => {
      const x = Math.max(0, Math.min(1000, 1000 * (from - low) / (high - low)));
      const end = Math.max(0, Math.min(1000, 1000 * (to - low) / (high - low)));
      if (end <= x && !(from >= low && to <= high)) return;
      const one = document.createElementNS(SVG, "rect");
      for (const [k, v] of Object.entries({ x, y: 1, width: Math.max(end - x, 2), height: 14, class: looks })) {
        one.setAttribute(k, v);
      }
      made.append(one);
    };
    rect(low, high, "track");
    for (const [from, to] of bars) rect(from ?? -Infinity, to ?? Infinity, "closed");
    return made;
  }

  function showClosed() {
    if (!run.closed.length) return;
    const value = (axis, x) => axis.scale === "time" ? new Date(x).toISOString().replace(".000Z", "Z")
      : x.toLocaleString("en", { maximumFractionDigits: axis.whole[1] - axis.whole[0] > 20 ? 0 : 3 });
    at("axes").replaceChildren(...run.closed.map((axis, i) => {
      const key = `${axis.attribute} ${i}`;
      const extent = run.whole.has(key) ? axis.whole : axis.edge;
      const table = element("table", undefined, { class: "axis" });
      const caption = element("caption", `${axis.attribute} `);
      const cut = axis.edge[0] > axis.whole[0];
      if (cut) {
        const button = element("button", "whole axis", { type: "button", "aria-pressed": run.whole.has(key) });
        button.addEventListener("click", () => {
          run.whole.has(key) ? run.whole.delete(key) : run.whole.add(key);
          showClosed();
          at("axes").querySelectorAll("table")[i].querySelector("button")?.focus();
        });
        caption.append(button);
      }
      table.append(caption);
      const line = (name, bars, words, lacks, looks, sent) => {
        const cell = element("td", undefined, { class: "bar" });
        cell.append(bar(bars, extent));
        const made = row(element("th", name, { scope: "row" }), cell, element("td", words));
        made.append(element("td", lacks ? `lacks ${lacks}` : "", lacks ? { class: "late" } : {}));
        made.append(element("td", sent?.time ? `last sent in slice ${sent.slice}` : "", { class: "pale sent" }));
        if (looks) made.className = looks;
        table.append(made);
      };
      for (const r of axis.rows) {
        const name = r.attribute === axis.attribute ? r.input : `${r.input}.${r.attribute}`;
        line(name, r.bars, r.closed, r.lacks, r.lacks ? "lags" : "", r.last_sent);
      }
      if (axis.rows.length > 1) line("all inputs", axis.meet.bars, axis.meet.closed, "", "meet");
      const ends = element("div", undefined, { class: "ends" });
      if (axis.scale === "text") ends.append(element("span", axis.values.slice(0, 1).join()), element("span", axis.values.slice(-1).join()));
      else ends.append(element("span", value(axis, extent[0])), element("span", value(axis, extent[1])));
      const cell = element("td", undefined, { class: "bar" });
      cell.append(ends);
      table.append(row(element("th"), cell));
      return table;
    }));
  }

  function showCharts() {
    const { slices } = run;
    if (!slices.length) return;
    const x = slices.map(s => s.slice);
    const keeping = [...new Set(slices.flatMap(s => s.operators.filter(o => o.kept).map(o => o.name)))];
    const holding = [...new Set(slices.flatMap(s => s.operators.filter(o => o.punctuations_held).map(o => o.name)))];
    const of = (names, field) => names.map(n => slices.map(s => s.operators.find(o => o.name === n)?.[field] ?? 0));
    const processes = PROCESSES.filter(([name]) => slices.some(s => s.memory?.[name]));
    const shown = [
      ["Tuples kept", keeping, of(keeping, "kept"), brief],
      ["Punctuations held", holding, of(holding, "punctuations_held"), brief],
      ["Per second", ["items in", "tuples out"],
        [slices.map(s => s.items_in / s.seconds), slices.map(s => s.tuples_out / s.seconds)], brief],
      ["Time of a slice", ["seconds"], [slices.map(s => s.seconds)], span],
      ["Memory", processes.map(([, words]) => words), processes.map(([name]) => slices.map(s => s.memory?.[name] ?? null)), size],
    ].filter(([, names]) => names.length);
    const shape = shown.map(([title, names]) => [title, ...names].join()).join(";") + matchMedia("(prefers-color-scheme:dark)").matches;
    if (shape !== charts.shape) {
      const css = getComputedStyle(document.documentElement);
      const colour = name => css.getPropertyValue(`--${name}`).trim();
      const palette = ["tuple", "mend", "good", "late", "bad", "pale"].map(colour);
      const axis = { stroke: colour("pale"), grid: { stroke: colour("edge"), width: 0.5 }, ticks: { show: false } };
      at("charts").replaceChildren();
      charts = shown.map(([title, names, , format]) => {
        const place = element("div", undefined, { class: "chart" });
        place.append(element("h3", title));
        at("charts").append(place);
        const tick = v => v === null || v === undefined ? "–" : format(v);
        return new uPlot({
          width: place.clientWidth || 600, height: 170, cursor: { points: { size: 6 } },
          scales: {
            x: { time: false, range: (_, first, last) => [first, Math.max(last, first + 1)] },
            y: { range: (_, low, high) => [0, high > 0 ? high * 1.05 : 1] },
          },
          axes: [{ ...axis, size: 28, incrs: WHOLE }, { ...axis, size: 64, values: (_, ticks) => ticks.map(tick) }],
          series: [{ label: "slice" }, ...names.map((label, i) => ({
            label, stroke: palette[i % palette.length], width: 1.6, dash: i >= palette.length ? [4, 3] : undefined,
            value: (_, v) => tick(v),
          }))],
        }, [x, ...names.map(() => x)], place);
      });
      charts.shape = shape;
    }
    charts.forEach((chart, i) => chart.setData([x, ...shown[i][2]]));
  }

  // A dead letter is the text of an item, or a kept tuple with values by name.
  const asideWords = what => typeof what === "string" ? what
    : Object.entries(what).map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ");

  async function showAside() {
    const total = run.last?.totals.set_aside ?? 0;
    if (total === asideShown || !total) return;
    asideShown = total;
    const letters = await (await fetch("aside.json")).json();
    const table = element("table", undefined, { class: "letters" });
    const head = element("thead");
    head.append(row(...["from", "why", "where", "what"].map(text => element("th", text))));
    table.append(head, ...letters.map(one => row(
      element("td", one.source ?? ""), element("td", one.reason ?? one.kind ?? ""),
      element("td", [one.document, one.line && `line ${one.line}`].filter(Boolean).join(", ")),
      element("td", asideWords(one.element ?? one.raw ?? one.tuple ?? one), { class: "element" }))));
    const title = letters.length ? `${count(total)} in this run; the last ones:` : `${count(total)} in this run; none of them was kept.`;
    at("letters").replaceChildren(element("p", title), ...(letters.length ? [table] : []));
  }

  function show() {
    drawing = false;
    showState();
    showFigures();
    showPlan();
    showCharts();
    showAside();
    showHeld();
    list("findings", run.findings.map(f => [`${f.source}: ${f.what}`, "late"]), ["No findings in the sources.", ""]);
  }

  function soon() {
    if (!drawing) {
      drawing = true;
      requestAnimationFrame(show);
    }
  }

  at("ask").addEventListener("submit", async submit => {
    submit.preventDefault();
    const query = new URLSearchParams([...document.querySelectorAll("#ask .pair")].flatMap(pair => [
      ["attribute", pair.querySelector("select").value], ["value", pair.querySelector("input").value]]));
    const answer = await (await fetch(`key.json?${query}`)).json();
    const out = answer.result ? [answer.result.out
      ? [`it is out, and final${answer.result.since ? ` since slice ${answer.result.since.slice}` : ""}`, "good"]
      : ["its results are not final yet", "late"]] : [];
    const held = Object.entries(answer.result?.held ?? {}).map(([name, n]) => [`${name} holds ${counted(n, "row")} of it`, ""]);
    const needs = answer.result ? answer.result.needs.map(n => n.missing.length
      ? [`${n.source} must still send ${n.missing.join(", ")}`, "late"]
      : [`${n.source} has closed it${n.sent ? ` in slice ${n.sent.slice}` : ""}${n.holds ? `, ${n.holds}` : ""}`, "good"])
      : answer.rows?.map(r => r.closed ? [`${r.input} has closed it${r.holds ? `, ${r.holds}` : ""}`, "good"] : [`${r.input} must still send ${r.missing}`, "late"]);
    list("answer", answer.what ? [[answer.what, "bad"]] : [...out, ...held, ...needs], ["", ""]);
  });

  at("and").addEventListener("click", () => {
    const pairs = document.querySelectorAll("#ask .pair");
    const more = pairs[pairs.length - 1].cloneNode(true);
    more.querySelectorAll("[id]").forEach(one => one.removeAttribute("id"));
    more.querySelector("input").value = "";
    more.querySelector("select").selectedIndex = Math.min(pairs.length, at("attribute").options.length - 1);
    pairs[pairs.length - 1].after(" and ", more);
    showQuestions();
    more.querySelector("input").focus();
  });

  const events = new EventSource("events");
  const on = (kind, take) => events.addEventListener(kind, event => {
    take(JSON.parse(event.data));
    soon();
  });
  on("slice", onSlice);
  on("state", onState);
  on("findings", found => { run.findings = found; });
  on("closed", axes => {
    run.closed = axes;
    showClosed();
    showWaiting();
  });
  events.onerror = () => { if (!over()) showState(false); };
  setInterval(() => {
    if (over()) return;
    showFigures();
    if (run.closed.length) showWaiting();
  }, 1000);
  addEventListener("resize", () => charts.forEach(chart =>
    chart.setSize({ width: chart.root.parentElement.clientWidth, height: 170 })));
  matchMedia("(prefers-color-scheme:dark)").addEventListener("change", soon);
})();
