"use strict";
// Charts, and tables that are sorted by what a reader clicks on. The file asks nobody for anything.

function drawCharts() {
  // Where the page was made with too little memory, it has no Vega.
  if (!window.vegaEmbed) return [];
  return Array.from(document.querySelectorAll("script.spec"), (spec) =>
    // `ast`: expressions are interpreted, so the page can forbid code from text.
    vegaEmbed(spec.previousElementSibling, JSON.parse(spec.textContent), {
      mode: "vega-lite",
      actions: false, ast: true, defaultStyle: false, renderer: "svg", tooltip: { disableDefaultStyle: true },
    }).catch((error) => console.error(error)));
}

// Numbers first, then texts; cells that know nothing come last in either direction.
function keyOf(row, place) {
  const cell = row.cells[place];
  const text = cell.dataset.value ?? cell.textContent.trim();
  const number = Number(text);
  if (text === "" || text === "-") return [2, ""];
  return cell.dataset.value !== undefined && !Number.isNaN(number) ? [0, number] : [1, text];
}

function compared([rankA, a], [rankB, b], sign) {
  if (rankA === 2 || rankB === 2) return rankA - rankB;
  if (rankA !== rankB) return sign * (rankA - rankB);
  if (rankA === 1) return sign * a.localeCompare(b, undefined, { numeric: true });
  return a === b ? 0 : a < b ? -sign : sign;
}

function sort(heading) {
  const place = heading.cellIndex;
  const body = heading.closest("table").tBodies[0];
  const isUp = heading.getAttribute("aria-sort") !== "ascending";
  for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", isUp ? "ascending" : "descending");
  const keyed = Array.from(body.rows, (row) => [keyOf(row, place), row]);
  keyed.sort(([a], [b]) => compared(a, b, isUp ? 1 : -1));
  body.append(...keyed.map(([, row]) => row));
}

function makeSortable(table) {
  if (table.tBodies[0].rows.length < 2) return;
  for (const heading of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => sort(heading));
  }
}

function makeTabs(tabs) {
  const panels = Array.from(tabs.children);
  const list = document.createElement("div");
  list.setAttribute("role", "tablist");
  const buttons = panels.map((panel, place) => {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", id: `${panel.id}-name`, textContent: panel.firstElementChild.textContent });
    button.setAttribute("role", "tab");
    button.setAttribute("aria-controls", panel.id);
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", button.id);
    button.addEventListener("click", () => select(place));
    return button;
  });
  function select(chosen) {
    buttons.forEach((button, place) => {
      button.setAttribute("aria-selected", String(place === chosen));
      button.tabIndex = place === chosen ? 0 : -1;
      panels[place].hidden = place !== chosen;
    });
    // A chart takes its width when the window changes, and had none while it was hidden.
    window.dispatchEvent(new Event("resize"));
  }
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = (buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length;
    buttons[next].focus();
    select(next);
  });
  list.append(...buttons);
  tabs.prepend(list);
  tabs.classList.add("live");
  select(0);
}

async function copy(button) {
  const code = button.previousElementSibling;
  try {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
  } catch {
    // Not allowed: whoever reads it can copy what is selected.
    getSelection().selectAllChildren(code);
  }
}

document.querySelectorAll("table").forEach(makeSortable);
for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", () => copy(button));
}
// Drawn before their tabs are hidden: a chart is as wide as the room that it finds.
Promise.allSettled(drawCharts()).then(() => document.querySelectorAll(".tabs").forEach(makeTabs));
