"use strict";
// What the page can do beyond being read: filter, choose a dtype, step through findings, copy. It works without this file.
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const filter = $("#filter");
  const controls = $("#controls");
  const table = $("#support");
  const cards = all("details.card");
  const searched = new Map(cards.map((card) => [card, ($("summary", card).textContent + $(".facts", card).textContent).toLowerCase()]));
  const say = (text) => { $("#status").textContent = text; };
  const PROBLEMS = ["disagree-new", "disagree-known", "crash"];

  document.documentElement.classList.add("scripted");

  // --- matrix and filter

  function update() {
    const wanted = filter.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const match = (text) => wanted.every((word) => text.includes(word));
    if (table) {
      const form = new FormData(controls);
      const dtype = form.get("dtype");
      const columns = new Set(form.getAll("column"));
      table.classList.toggle("one", dtype !== "");
      table.dataset.number = form.get("number");
      for (const cell of all("[data-column]", table)) cell.hidden = !columns.has(cell.dataset.column);
      let shown = 0;
      const rows = all("tr.op", table);
      for (const row of rows) {
        let problem = false;
        for (const c of all(".c", row)) {
          c.hidden = dtype !== "" && c.dataset.dtype !== dtype;
          problem ||= !c.hidden && !c.closest("td").hidden && PROBLEMS.includes(c.dataset.verdict);
        }
        row.hidden = !match(row.dataset.row.toLowerCase()) || (form.has("problems") && !problem);
        shown += !row.hidden;
      }
      for (const body of all("tbody", table)) body.hidden = !$("tr.op:not([hidden])", body);
      $("#shown").textContent = `${shown} of ${rows.length} operations`;
    }
    for (const card of cards) card.hidden = !match(searched.get(card));
    $("#no-match").hidden = cards.length === 0 || cards.some((card) => !card.hidden);
  }
  filter.addEventListener("input", update);
  controls?.addEventListener("input", update);
  controls?.addEventListener("submit", (event) => event.preventDefault());

  // --- findings

  const visible = () => cards.filter((card) => !card.hidden);
  function step(by) {
    const list = visible();
    const at = list.findIndex((card) => card.contains(document.activeElement));
    const next = list[at < 0 ? (by > 0 ? 0 : list.length - 1) : Math.min(Math.max(at + by, 0), list.length - 1)];
    if (!next) return say("No finding");
    $("summary", next).focus({ preventScroll: true });
    next.scrollIntoView({ block: "start" });
  }
  function toggleAll() {
    const open = visible().some((card) => !card.open);
    for (const card of visible()) card.open = open;
    if ($("#expand")) $("#expand").textContent = open ? "Close all" : "Open all";
  }
  function follow() {
    const target = document.getElementById(location.hash.slice(1));
    if (!target?.matches("details.card")) return;
    if (target.hidden) { filter.value = ""; update(); }
    target.open = true;
    target.scrollIntoView({ block: "start" });
  }
  $("#expand")?.addEventListener("click", toggleAll);
  addEventListener("hashchange", follow);

  // --- copy: pages opened from disk may not be let near the clipboard, so fall back to a selection

  function select(element) {
    const range = document.createRange();
    range.selectNodeContents(element);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  }
  async function copy(button) {
    const source = document.getElementById(button.dataset.copy);
    let done = false;
    try {
      await navigator.clipboard.writeText(source.textContent);
      done = true;
    } catch {
      select(source);
      done = document.execCommand("copy");
    }
    button.textContent = done ? "Copied" : "Selected: press Ctrl+C";
    say(button.textContent);
    setTimeout(() => { button.textContent = "Copy"; }, 1600);
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) copy(button);
  });

  // --- keyboard

  const help = $("#help");
  $("#help-button").addEventListener("click", () => help.showModal());
  const keys = {
    j: () => step(1),
    k: () => step(-1),
    e: toggleAll,
    c: () => {
      const card = cards.find((each) => each.contains(document.activeElement));
      const button = card && $('[data-copy$="-py"]', card);
      if (button) { card.open = true; copy(button); }
    },
    "/": () => { filter.focus(); filter.select(); },
    "?": () => help.showModal(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && document.activeElement === filter) {
      filter.value = "";
      filter.blur();
      return update();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (event.target.closest("input:not([type=radio], [type=checkbox]), textarea, select")) return;
    const action = keys[event.key];
    if (action) { event.preventDefault(); action(); }
  });

  // --- paper shows everything

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("details:not([open])").filter((each) => !each.matches(".columns"));
    for (const each of opened) each.open = true;
  });
  addEventListener("afterprint", () => { for (const each of opened) each.open = false; });

  update();
  follow();
})();
