// tenferro-ref report
"use strict";
// What a page can do beyond being read: filter, sort, choose a dtype, step through findings, copy. It works without this file.
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const filter = $("#filter");
  const controls = $("#controls");
  const table = $("#support");
  const findings = all("#findings tr.finding");
  const say = (text) => { $("#status").textContent = text; };
  const PROBLEMS = ["disagree-new", "disagree-known", "crash"];

  document.documentElement.classList.add("scripted");

  // --- matrix and filter; what is chosen is kept in the address

  function update() {
    const wanted = filter.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const match = (text) => wanted.every((word) => text.toLowerCase().includes(word));
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
        row.hidden = !match(row.dataset.row) || (form.has("problems") && !problem);
        shown += !row.hidden;
      }
      for (const body of all("tbody", table)) body.hidden = !$("tr.op:not([hidden])", body);
      $("#shown").textContent = `${shown} of ${rows.length} operations`;
    }
    for (const row of findings) row.hidden = !match(row.textContent);
    $("#no-match").hidden = findings.length === 0 || findings.some((row) => !row.hidden);
  }
  function remember() {
    const form = controls ? new FormData(controls) : new FormData();
    const chosen = new URLSearchParams({ q: filter.value.trim(), dtype: form.get("dtype") ?? "", number: form.get("number") ?? "", problems: form.get("problems") ?? "" });
    for (const [key, value] of [...chosen]) if (!value || value === "programs") chosen.delete(key);
    history.replaceState(null, "", `?${chosen}${location.hash}`);
  }
  function recall() {
    const chosen = new URLSearchParams(location.search);
    filter.value = chosen.get("q") ?? "";
    for (const input of all("input[type=radio]", controls ?? filter)) if (chosen.get(input.name) === input.value) input.checked = true;
    const problems = controls && $("[name=problems]", controls);
    if (problems) problems.checked = chosen.has("problems");
  }
  if (filter) {
    const changed = () => { update(); remember(); };
    filter.addEventListener("input", changed);
    controls?.addEventListener("input", changed);
    controls?.addEventListener("submit", (event) => event.preventDefault());
    recall();
    update();
  }

  // --- tables: a click on a heading sorts, a second one the other way round

  function sort(head) {
    const at = head.cellIndex, body = head.closest("table").tBodies[0];
    const down = head.getAttribute("aria-sort") !== "descending" && head.classList.contains("n") || head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const words = (row) => row.cells[at]?.textContent.trim().replaceAll(",", "") ?? "";
    const compare = (a, b) => words(a).localeCompare(words(b), "en", { numeric: true });
    body.append(...[...body.rows].sort((a, b) => (down ? compare(b, a) : compare(a, b))));
  }
  for (const head of all("table.sortable thead th")) {
    const button = document.createElement("button");
    button.className = "sort";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(head));
  }

  // --- findings: from row to row, from page to page

  function step(by) {
    const page = $(by > 0 ? "a[rel=next]" : "a[rel=prev]");
    const list = findings.filter((row) => !row.hidden);
    if (!findings.length && page) { location.href = page.href; return; }
    const at = list.findIndex((row) => row.contains(document.activeElement));
    const next = list[at < 0 ? (by > 0 ? 0 : list.length - 1) : Math.min(Math.max(at + by, 0), list.length - 1)];
    if (!next) { say("No finding"); return; }
    $("a", next).focus({ preventScroll: true });
    next.scrollIntoView({ block: "center" });
  }

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
    c: () => {
      const button = $('[data-copy$="-run"]', location.hash && document.getElementById(location.hash.slice(1)) || document);
      if (button) copy(button);
    },
    "/": () => { filter?.focus(); filter?.select(); },
    "?": () => help.showModal(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && filter && document.activeElement === filter) {
      filter.value = "";
      filter.blur();
      update();
      remember();
      return;
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
})();
