// The page of a run. All text from the run is inserted as text (textContent), never as markup.
"use strict";
(() => {
  const MOST_SLICES = 1000;
  const GROWING_OVER = 8;
  const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
  const SVG = "http://www.w3.org/2000/svg";
  const at = id => document.getElementById(id);
  const run = { id: null, state: "starting", over: false, stands: null, labels: {}, questions: [],
    slices: [], last: null, closed: [], findings: [], whole: new Set(), waiting: null };
  let charts = [];
  let asideShown = -1;
  let drawing = false;

  // Numbers and words.

  const count = n => n.toLocaleString("en");
  const brief = n => n < 10000 ? count(n)
    : n.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 3 });
  const counted = (n, word) => `${brief(n)} ${word}${n === 1 ? "" : "s"}`;
  const span = s => s < 1 ? `${Math.round(s * 1000)} ms` : s < 10 ? `${s.toFixed(1)} s` : s < 90 ? `${Math.round(s)} s`
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
  const hour = time => `${day(time)}${clock(time).slice(0, 5)}`;
  const ago = time => Math.max(0, (Date.now() - Date.parse(time)) / 1000);
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
    const { state, over, stands, labels, questions } = event;
    Object.assign(run, { id: event.run, ended: event.at, state, over, stands, labels, questions });
    showQuestions();
    fetchWaiting(true);
    if (over) events.close();
  }

  const goesOn = () => run.state === "running" || run.state === "recorded";
  const label = name => run.labels[name] ?? name;

  // Display.

  const icon = colour => `data:image/svg+xml,${encodeURIComponent(
    `<svg xmlns="${SVG}" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="${colour}"/></svg>`)}`;
  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  function showState(connected = true) {
    const stands = !connected ? { text: "no answer; trying again", tone: "late" }
      : (goesOn() && run.waiting?.stands) || run.stands;
    if (!stands) return;
    const text = stands.time ? `${stands.text} ${stands.word} ${hour(stands.time)}` : stands.text;
    if (at("state").textContent !== text) at("state").textContent = text;
    at("state").className = `state ${stands.tone}`;
    const shown = icon(colour(stands.tone === "plain" ? "pale" : stands.tone));
    if (at("icon").href !== shown) at("icon").href = shown;
  }

  function card(name, tone, value, ...below) {
    const made = element("div", undefined, { class: tone });
    made.append(element("dt", name), element("dd", value, { class: "large" }));
    for (const one of below) {
      const more = element("dd");
      more.append(one);
      made.append(more);
    }
    return made;
  }

  function chips(results) {
    const made = document.createDocumentFragment();
    const shown = results.slice(0, 24);
    for (const one of shown) {
      const words = one.last_out ? `${counted(one.tuples_out, "tuple")}, the last at ${clock(one.last_out)}` : "no tuple yet";
      const mark = !goesOn() ? "" : one.waits.length ? "○ " : "● ";
      made.append(element("span", mark + one.name, { class: `chip ${goesOn() ? one.waits.length ? "late" : "good" : ""}`, title: words }));
    }
    if (results.length > shown.length) made.append(`and ${results.length - shown.length} more`);
    return made;
  }

  const rowsOf = cause => `${cause.what}${cause.results.length ? ` of ${cause.results.join(", ")}` : ""}`;

  function showCards() {
    const { waiting, last } = run;
    if (!waiting || !last) return;
    const results = waiting.results ?? [];
    const behind = waiting.causes.filter(cause => cause.behind);
    const answering = results.filter(one => !one.waits.length).length;
    const { held } = waiting;
    const rows = `${held} ${goesOn() ? "" : "still "}wait${/^1 [^,]*$/.test(held) ? "s" : ""}`;
    const oldest = behind.map(cause => cause.since?.time).filter(Boolean).sort()[0];
    const exact = last.exact === false ? [card("Result", "late", "not exact", "overdue tuples were purged")] : [];
    const sources = [...new Set(behind.map(cause => cause.input))];
    const last_out = results.map(one => one.last_out).filter(Boolean).sort().at(-1);
    const out = last_out ? `${counted(last.totals.tuples_out, "tuple")} out, the last at ${day(last_out)}${clock(last_out)}` : "no tuple is out yet";
    at("cards").replaceChildren(...exact, ...(goesOn() ? [
      card("Answering", behind.length ? answering || !waiting.late ? "late" : "bad" : "good",
        results.length > 1 ? `${answering} of ${results.length} results` : answering ? "yes" : "no", chips(results), out),
      card("Behind", behind.length ? "late" : "good", behind.length ? (oldest ? span(Math.round(ago(oldest))) : "yes") : "no",
        behind.length && oldest ? `the oldest row that waits came at ${hour(oldest)}` : held ? `${rows} for the next punctuation` : "nothing waits"),
      card("Waits for", behind.length ? "late" : "good", sources.length > 3 ? `${sources.length} inputs` : sources.join(", ") || "nothing",
        behind.length === 1 ? rowsOf(behind[0]) : behind.length ? rows : "no input lags behind the others"),
    ] : [
      card("Results", "", count(results.length), chips(results)),
      card("Tuples out", "", brief(last.totals.tuples_out), `of ${brief(last.totals.items_in)} items`),
      card("Left", held ? "late" : "", held ? rows : "nothing waits",
        held && waiting.causes.length ? `for ${[...new Set(waiting.causes.map(cause => cause.source))].join(", ")}` : "in the checkpoint"),
    ]));
  }

  function showFigures() {
    const { last } = run;
    if (!last) return;
    const { totals } = last;
    const first = last.slice - totals.slices + 1;
    const figures = [
      [first ? `slices, from ${count(first)} on` : "slices", count(totals.slices)], ["items in", brief(totals.items_in)], ["tuples out", brief(totals.tuples_out)],
      ["tuples kept", brief(totals.kept)], ["punctuations held", brief(totals.held)], ["set aside", count(totals.set_aside)],
      ...(taken(last.memory) ? [["memory", size(taken(last.memory))]] : []),
    ];
    at("figures").replaceChildren(...figures.map(([name, value]) => {
      const pair = element("div");
      pair.append(element("dt", name), element("dd", value));
      return pair;
    }));
    const came = last.time ? goesOn() ? `, ${span(ago(last.time))} ago` : `, at ${day(last.time)}${clock(last.time)}` : "";
    const where = { duckdb: " in process", spark: " on Spark" }[last.engine] ?? "";
    at("pulse").textContent = `slice ${last.slice} took ${span(last.seconds)}${where}${came}`;
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
    for (const cause of run.waiting?.causes ?? []) {
      document.querySelector(`#plan [data-operator="${CSS.escape(cause.source)}"] .card`)?.classList.toggle("late-edge", cause.behind);
    }
  }

  // On a telephone the operators stand one above the other, as text that can be read, in place of the picture.
  function showStack() {
    const stack = at("stack");
    if (!matchMedia("(max-width: 45rem)").matches) return;
    stack.replaceChildren(...[...document.querySelectorAll("#plan [data-operator]")].map(operator => {
      const lines = new Map();
      for (const text of operator.querySelectorAll("text")) {
        const words = text.lastChild?.textContent.trim();
        if (words) lines.set(text.getAttribute("y"), [...(lines.get(text.getAttribute("y")) ?? []), words]);
      }
      const card = element("li", undefined, { class: operator.querySelector(".late-edge, .late") ? "late" : "" });
      card.append(...[...lines.values()].map((words, i) => element(i ? "div" : "strong", words.join(" "))));
      return card;
    }));
  }

  function showWaiting() {
    const causes = run.waiting?.causes ?? [];
    const known = new Set([...causes.flatMap(cause => [cause.source, cause.input]), ...(run.waiting?.sources ?? []).map(one => one.name)]);
    const rows = run.closed.flatMap(axis => axis.rows).filter(r => !known.has(r.input));
    const lacks = rows.filter(r => r.lacks).map(r => [`${r.input}: ${r.attribute} ${r.lacks} is not closed, but others have `
      + `closed it; missing: ${r.missing.slice(0, 3).join(", ")}${run.over ? "" : lastSent(r.last_sent?.time)}`, "late"]);
    const silent = rows.filter(r => r.closed === "nothing yet" && !r.lacks).map(r => [`${r.input} has not closed any ${r.attribute} yet`, ""]);
    const none = run.over ? "nothing: the run has ended" : "nothing: no input lags behind the others";
    list("lacking", [...lacks, ...silent], [run.closed.length ? none : "nothing is known yet", ""]);
    at("lacking").hidden = causes.length > 0 && !lacks.length && !silent.length;
    showQuestions();
  }

  function lastSent(time) {
    if (!time) return run.closed.length ? "" : "; it has sent no punctuation yet";
    const [until, word] = goesOn() ? [Date.now(), "ago"] : [Date.parse(run.ended), "before the end"];
    const seconds = (until - Date.parse(time)) / 1000;
    return seconds > 3 ? `; its last punctuation came ${span(Math.round(seconds))} ${word}` : "";
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

  let fetched = 0;

  // The server reads the kept rows from files: every few seconds, and once more after the last slice.
  async function fetchWaiting(again = false) {
    if (!again && (Date.now() - fetched < 3000 || document.hidden || run.over)) return;
    fetched = Date.now();
    try {
      run.waiting = await (await fetch("waiting.json")).json();
    } catch {
      return; // the server has gone, or comes again
    }
    showSources();
    showHeld();
    showOperate();
    soon();
  }

  const soFarWords = one => one.closed ? "the input has ended, and all answers are out" : `as of ${when(one)}, ${one.origin}`;
  const isNumber = text => text === "null" || /^-?[\d.]+(E-?\d+)?$/i.test(text);
  const shownOf = {};

  // The server computes them: only while they are on the screen, every few seconds, and only after another slice.
  async function fetchRows(section, title, words) {
    const { top, bottom } = at(section).getBoundingClientRect();
    const before = shownOf[section] ??= { time: 0, slice: null };
    if (document.hidden || bottom < 0 || top > innerHeight || Date.now() - before.time < 5000) return;
    if (!run.last || before.slice === run.last.slice) return;
    before.time = Date.now();
    let found;
    try {
      found = await (await fetch(`${section}.json`)).json();
    } catch {
      return; // the server has gone, or comes again
    }
    before.slice = found.results[0]?.slice ?? null;
    const made = found.results.map(one => {
      const table = element("table");
      const looks = one.columns.map((_, i) => one.rows.every(cells => isNumber(cells[i])) ? { class: "number" } : {});
      if (one.rows.length) table.append(row(...one.columns.map((name, i) => element("th", name, { scope: "col", ...looks[i] }))));
      table.append(...one.rows.map(cells => row(...cells.map((cell, i) => element("td", cell.replace(/(:\d\d)\.0+(?=Z?$)/, "$1"), looks[i])))));
      const block = element("div", undefined, { class: "result", tabindex: "0", role: "region", "aria-label": `${title} ${one.result}` });
      block.append(...(one.result ? [element("h3", one.result)] : []), element("p", words(one), { class: "pale" }), table);
      if (one.more) block.append(element("p", `and ${count(one.more)} more`, { class: "pale" }));
      return block;
    });
    at(section).querySelector(".results").replaceChildren(...(made.length ? made : [element("p", found.what ?? "No slice yet.")]));
  }

  function fetchResults() {
    fetchRows("last-rows", "Last rows", one => one.rows.length ? one.words : `nothing to show yet ${one.words}`);
    fetchRows("so-far", "Answers so far", soFarWords);
  }

  const spoken = key => Object.entries(key).map(([k, v]) => `${k}=${v}`).join(", ") || "the only group";
  const few = texts => texts.slice(0, 3).join(", ") + (texts.length > 3 ? ` and ${texts.length - 3} more` : "");
  const needs = found => found.filter(n => n.missing.length).map(n => `${n.source} must send ${few(n.missing)}`).join("; ") || "no missing punctuation is known";
  const oldestOf = one => `${spoken(one.key)}${one.since ? `, since ${when(one.since)}` : ""}`;

  function held(w, oldest = oldestOf) {
    const verb = w.blocks ? (w.count === 1 ? "waits" : "wait") : "kept for later tuples";
    const first = w.examples.length ? `; ${w.count === 1 ? "" : "the oldest: "}${oldest(w.examples[0])}` : "";
    return element("li", `${label(w.operator)}: ${count(w.count)} ${w.what} ${verb}${first}`);
  }

  function examples(w) {
    const more = w.count > w.examples.length ? [element("li", `and ${count(w.count - w.examples.length)} more`)] : [];
    return [element("li", `${label(w.operator)}: ${count(w.count)} ${w.what}`), ...w.examples.map(one => element("li", `${oldestOf(one)}: ${needs(one.needs)}`)), ...more];
  }

  function folded(key, summary, items, opened) {
    const made = element("details", undefined, { class: "rest", "data-key": key, ...(opened.has(key) ? { open: "" } : {}) });
    const inside = element("ul");
    inside.append(...items);
    made.append(element("summary", summary), inside);
    return made;
  }

  // What rules have closed of each source that they punctuate.
  function showSources() {
    const sources = run.waiting.sources ?? [];
    const behind = name => run.waiting.causes.some(cause => cause.input === name && cause.behind);
    list("sources", sources.map(one => [`${one.name}: ${one.closed.length ? `${behind(one.name) ? "behind" : "up to date"}: ${one.closed.join(", ")}` : "nothing is closed yet"}`
      + ` (${one.rules.join("; ")})${one.next.length && !run.over ? `; next answer with ${one.next[0]}` : ""}`,
    behind(one.name) ? "late" : one.closed.length ? "good" : ""]), ["", ""]);
    at("sources").hidden = !sources.length;
  }

  function showHeld() {
    const { waits, causes } = run.waiting;
    const opened = new Set([...document.querySelectorAll("#held details[open]")].map(one => one.dataset.key));
    const isFor = (w, cause) => w.blocks && w.examples[0]?.needs.some(n => n.source === cause.source && n.rule === cause.rule && n.missing.length);
    const made = causes.map(cause => {
      const since = cause.since ? `, since ${hour(cause.since.time)}` : "";
      const name = `${cause.input || cause.source}${cause.rule ? ` (${cause.rule})` : ""}`;
      const must = cause.next ? `next answer with ${cause.next}` : `${cause.lacks.length ? `lacks ${cause.lacks.join("; ")}; ` : ""}must send ${cause.missing.join(", ")}${run.over ? "" : lastSent(cause.last_sent)}`
        + (cause.senders.length ? `; it waits for ${few(cause.senders)}` : "");
      const rows = waits.filter(w => isFor(w, cause));
      const block = element("div", undefined, { class: `cause ${cause.behind ? "late" : ""}` });
      block.append(element("h3", `${name}${since}: ${rowsOf(cause)}`), element("p", must),
        folded(name, rows.length > 1 ? `in ${rows.length} operators` : "its oldest rows", rows.length > 1 ? rows.map(w => held(w)) : examples(rows[0]), opened));
      return block;
    });
    const other = waits.filter(w => w.count && w.blocks && !causes.some(cause => isFor(w, cause)));
    const kept = waits.filter(w => w.count && !w.blocks);
    const total = some => count(some.reduce((sum, w) => sum + w.count, 0));
    if (other.length) {
      made.push(folded("other", `other rows that wait: ${total(other)}`, other.map(w => held(w, one => `${oldestOf(one)}: ${needs(one.needs)}`)), opened));
    }
    if (kept.length) made.push(folded("kept", `rows kept for later tuples: ${total(kept)}`, kept.map(w => held(w)), opened));
    if (made.length !== at("held").children.length || made.some((one, i) => !one.isEqualNode(at("held").children[i]))) at("held").replaceChildren(...made);
  }

  // A form for each source that rows wait for; one that is there stays, with what was typed.
  function showOperate() {
    const { operated, causes, declared } = run.waiting;
    const silent = operated ? causes.filter(cause => !cause.rule) : [];
    const forms = [...at("operate").children];
    for (const form of forms) if (!silent.some(cause => cause.source === form.dataset.source)) form.remove();
    for (const cause of silent) {
      if (!forms.some(form => form.dataset.source === cause.source)) at("operate").append(operateForm(cause));
    }
    list("declared", declared.map(d => [`${d.source} ${d.punctuation || [...(d.added ?? []).map(s => `+${s}`), ...(d.removed ?? []).map(s => `-${s}`)].join(" ")}`
      + `: declared by ${d.by} at ${day(d.time)}${clock(d.time)}${d.waits ? "; it waits for the next slice" : ""}`, d.waits ? "late" : ""]), ["", ""]);
    at("declared").hidden = !declared.length;
  }

  function operateForm({ source, missing }) {
    const form = element("form", undefined, { "data-source": source, autocomplete: "off" });
    const field = (name, attributes) => element("input", undefined, { name, "aria-label": `${name} for ${source}`, required: "", ...attributes });
    const output = element("output");
    form.append(`In the place of ${source}: `, field("punctuation", { value: missing[0] ?? "", maxlength: "2000", size: "24" }), " ",
      field("by", { placeholder: "your name", maxlength: "200", autocomplete: "username" }), " ",
      field("token", { type: "password", placeholder: "token", autocomplete: "current-password" }), " ", element("button", "Declare"), " ", output);
    form.addEventListener("submit", async submit => {
      submit.preventDefault();
      const { punctuation, by, token } = form.elements;
      const response = await fetch("declare", { method: "POST",
        headers: { "Content-Type": "application/json", "X-Xmlstream-Operate": encodeURIComponent(token.value) },
        body: JSON.stringify({ source, punctuation: punctuation.value, by: by.value }) });
      const isJson = response.headers.get("Content-Type")?.startsWith("application/json");
      output.textContent = response.ok ? "declared" : isJson ? (await response.json()).what : await response.text();
      output.className = response.ok ? "good" : "bad";
      fetchWaiting(true);
    });
    return form;
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
    const byRule = new Set((run.waiting?.sources ?? []).map(one => one.name));
    const behind = new Set((run.waiting?.causes ?? []).filter(cause => cause.behind).map(cause => cause.input));
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
        made.append(element("td", lacks ? `lacks ${lacks}` : "", lacks ? { class: looks ? "late" : "pale" } : {}));
        made.append(element("td", sent?.time ? `last sent at ${day(sent.time)}${clock(sent.time)}` : "", { class: "pale sent" }));
        if (looks) made.className = looks;
        table.append(made);
      };
      for (const r of axis.rows) {
        const name = r.attribute === axis.attribute ? r.input : `${r.input}.${r.attribute}`;
        const isLate = r.lacks && (!byRule.has(r.input) || behind.has(r.input));
        line(name, r.bars, r.closed, r.lacks, isLate ? "lags" : "", r.last_sent);
      }
      if (axis.rows.length > 1) line("all inputs", axis.meet.bars, axis.meet.closed, "", "meet");
      const ends = element("div", undefined, { class: "ends" });
      if (axis.scale === "text") ends.append(element("span", axis.values.slice(0, 1).join()), element("span", axis.values.slice(-1).join()));
      else ends.append(element("span", value(axis, extent[0])), element("span", value(axis, extent[1])));
      const cell = element("td", undefined, { class: "bar" });
      cell.append(ends);
      // One source that has closed all up to a value fills the bar, whose ends would say nothing.
      if (axis.rows.length > 1 || axis.rows[0].bars.some(([from]) => from !== null)) table.append(row(element("td"), cell));
      return table;
    }));
  }

  // The five highest lines of some operators by their labels, and the sum of all others.
  const MOST_LINES = 5;
  const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 2]];
  const HEIGHT = () => innerWidth < 720 ? 96 : 150;

  function lines(slices, field) {
    const found = new Map();
    slices.forEach((slice, i) => slice.operators.forEach(one => {
      if (!one[field]) return;
      const name = label(one.name);
      if (!found.has(name)) found.set(name, slices.map(() => 0));
      found.get(name)[i] += one[field];
    }));
    const sorted = [...found].sort(([, a], [, b]) => Math.max(...b) - Math.max(...a));
    const rest = sorted.slice(MOST_LINES + (sorted.length === MOST_LINES + 1 ? 1 : 0));
    const shown = sorted.slice(0, rest.length ? MOST_LINES : sorted.length);
    if (rest.length) shown.push([`${rest.length} others`, slices.map((_, i) => rest.reduce((sum, [, values]) => sum + values[i], 0))]);
    return [shown.map(([name]) => name), shown.map(([, values]) => values)];
  }

  function showCharts() {
    const { slices } = run;
    if (!slices.length) return;
    const x = slices.map(s => s.slice);
    const processes = PROCESSES.filter(([name]) => slices.some(s => s.memory?.[name]));
    const shown = [
      ["Tuples kept", ...lines(slices, "kept"), brief],
      ["Per second", ["items in", "tuples out"],
        [slices.map(s => s.items_in / s.seconds), slices.map(s => s.tuples_out / s.seconds)], brief],
      ["Punctuations held", ...lines(slices, "punctuations_held"), brief],
      ["Time of a slice", ["seconds"], [slices.map(s => s.seconds)], span],
      ["Memory", processes.map(([, words]) => words), processes.map(([name]) => slices.map(s => s.memory?.[name] ?? null)), size],
    ].filter(([, names]) => names.length);
    const shape = shown.map(([title, names]) => [title, ...names].join()).join(";") + matchMedia("(prefers-color-scheme:dark)").matches;
    if (shape !== charts.shape) {
      const palette = [1, 2, 3, 4, 5].map(i => colour(`line-${i}`));
      const looks = i => i < MOST_LINES ? { stroke: palette[i], width: 2, dash: DASHES[i] } : { stroke: colour("pale"), width: 1.2 };
      const axis = { stroke: colour("pale"), grid: { stroke: colour("edge"), width: 0.5 }, ticks: { show: false } };
      const borders = ["solid", "dashed", "dotted", "double", "dashed", "solid"];
      at("charts").replaceChildren();
      charts = shown.map(([title, names, , format]) => {
        const place = element("div", undefined, { class: names.length > 1 ? "chart" : "chart small" });
        place.append(element("h3", title));
        at("charts").append(place);
        const tick = v => v === null || v === undefined ? "" : format(v);
        return new uPlot({
          width: place.clientWidth || 340, height: HEIGHT(), cursor: { points: { size: 6 } },
          legend: { show: names.length > 1, markers: { width: 2, dash: (_, i) => borders[i - 1] } },
          scales: {
            x: { time: false, range: () => [run.slices[0].slice, Math.max(run.last.slice, run.slices[0].slice + 1)] },
            y: { range: (_, low, high) => [0, high > 0 ? high * 1.05 : 1] },
          },
          axes: [{ ...axis, size: 26, incrs: WHOLE }, { ...axis, size: 58, space: 24, values: (_, ticks) => ticks.map(tick) }],
          series: [{ label: "slice" }, ...names.map((name, i) => ({ label: name, ...looks(i), value: (_, v) => tick(v) }))],
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
    showCards();
    showFigures();
    showPlan();
    showStack();
    showWaiting();
    showCharts();
    showAside();
    fetchWaiting();
    fetchResults();
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
    const soFar = (answer.result?.so_far ?? []).slice(0, 3).map(tuple => [`so far${answer.result.undecided ? ", undecided" : ""}: ${asideWords(tuple)}`, ""]);
    const needs = answer.result ? answer.result.needs.map(n => n.missing.length
      ? [`${n.source} must still send ${n.missing.join(", ")}`, "late"]
      : [`${n.source} has closed it${n.sent ? ` in slice ${n.sent.slice}` : ""}${n.holds ? `, ${n.holds}` : ""}`, "good"])
      : answer.rows?.map(r => r.closed ? [`${r.input} has closed it${r.holds ? `, ${r.holds}` : ""}`, "good"] : [`${r.input} must still send ${r.missing}`, "late"]);
    list("answer", answer.what ? [[answer.what, "bad"]] : [...out, ...held, ...soFar, ...needs], ["", ""]);
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
  });
  events.onerror = () => { if (!run.over) showState(false); };
  setInterval(() => {
    if (run.over || events.readyState !== EventSource.OPEN) return;
    showFigures();
    showCards();
    if (run.closed.length) showWaiting();
    fetchWaiting();
    fetchResults();
  }, 1000);
  at("size").addEventListener("click", () => {
    const full = document.querySelector(".picture").classList.toggle("full");
    at("size").setAttribute("aria-pressed", full);
  });
  addEventListener("scroll", fetchResults, { passive: true });
  addEventListener("resize", () => charts.forEach(chart =>
    chart.setSize({ width: chart.root.parentElement.clientWidth, height: HEIGHT() })));
  matchMedia("(prefers-color-scheme:dark)").addEventListener("change", soon);
})();
