"use strict";
// Every text is set as text, never as HTML: it comes from agents.
const LINES = 14, LETTERS = 1800;
const byId = (id) => document.getElementById(id);
const rows = [...document.querySelectorAll("#rollouts tbody tr")];
let last = null;

function element(name, className, text) {
  const box = document.createElement(name);
  if (className) box.className = className;
  if (text !== undefined) box.textContent = text;
  return box;
}

function folded(className, text) {
  const box = element("div", className);
  let cut = -1;
  for (let line = 0; line < LINES; line++) {
    cut = text.indexOf("\n", cut + 1);
    if (cut < 0) break;
  }
  if (cut < 0 || cut > LETTERS) cut = LETTERS;
  const rest = text.slice(cut).replace(/^\n|\n$/g, "");
  if (rest.length < 200 && rest.split("\n").length < 4) {
    box.append(element("pre", "", text));
    return box;
  }
  const more = element("details");
  more.append(element("summary", "", `${rest.split("\n").length} more lines, ${rest.length} characters`));
  more.append(element("pre", "", rest));
  box.append(element("pre", "", text.slice(0, cut)), more);
  return box;
}

function article(moment) {
  const box = element("article", (moment.subtask ? "within " : "") + (moment.bad ? "bad" : ""));
  const step = moment.step ? `Step ${moment.step}: ` : "";
  const within = moment.subtask ? ` (subtask ${moment.subtask})` : "";
  if (moment.kind) box.append(element("h3", "", `${step}${moment.who}: ${moment.kind}${within}`));
  if (moment.thought) box.append(folded("thought", moment.thought));
  if (moment.does) box.append(folded("does", moment.does));
  if (moment.sees) box.append(folded("sees", moment.sees));
  if (moment.note) box.append(element("div", "note", moment.note));
  return box;
}

function filter() {
  const query = byId("search").value.toLowerCase();
  const choices = ["outcome", "group", "benchmark", "agent"].map((name) => [name, byId(name)?.value ?? ""]);
  for (const row of rows) {
    row.hidden = !(row.textContent.toLowerCase().includes(query)
      && choices.every(([name, value]) => !value || row.dataset[name] === value));
  }
  byId("shown").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length}`;
}

function point(link, number) {
  if (number === undefined) link.removeAttribute("href");
  else link.href = `#rollout-${number}`;
}

function read(number) {
  const record = JSON.parse(byId(`data-${number}`).textContent);
  const visible = [...rows.keys()].filter((one) => !rows[one].hidden || one === number);
  point(byId("previous"), visible[visible.indexOf(number) - 1]);
  point(byId("next"), visible[visible.indexOf(number) + 1]);
  byId("name").textContent = record.name;
  const facts = { outcome: record.ended, why: record.why, answer: record.answer };
  if (!record.ended.startsWith("right")) facts["expected answer"] = record.expected;
  facts.flaky = record.flaky;
  facts.file = record.file;
  if (record.details !== "{}") facts["how it was scored"] = record.details;
  byId("facts").replaceChildren(...Object.entries(facts).filter(([, text]) => text).flatMap(([name, text]) => {
    const holds = element("dd");
    holds.append(folded("", text));
    return [element("dt", "", name), holds];
  }));
  const moments = record.moments.map(article);
  if (!moments.length) moments.push(element("p", "", "No trajectory was kept."));
  byId("moments").replaceChildren(...moments);
}

function show() {
  const number = Number(/^#rollout-(\d+)$/.exec(location.hash)?.[1] ?? -1);
  const exists = number in rows;
  byId("overview").hidden = exists;
  byId("rollout").hidden = !exists;
  if (exists) {
    last = number;
    read(number);
    scrollTo(0, 0);
    byId("name").focus({ preventScroll: true });
  } else if (last !== null) {
    rows[last].querySelector("a").focus({ preventScroll: true });
    rows[last].scrollIntoView({ block: "center" });
  }
}

byId("filters").addEventListener("submit", (event) => event.preventDefault());
byId("filters").addEventListener("input", filter);
addEventListener("hashchange", show);
filter();
show();
