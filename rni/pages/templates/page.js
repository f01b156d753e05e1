"use strict";
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
document.documentElement.classList.add("js");

// figures open large
const zoom = document.getElementById("zoom"), large = zoom.querySelector("img");
for (const opener of all(".enlarge"))
  opener.addEventListener("click", event => {
    event.preventDefault();
    const image = opener.querySelector("img");
    large.src = image.src;
    large.alt = image.alt;
    zoom.setAttribute("aria-label", image.alt);
    zoom.showModal();
  });
zoom.addEventListener("click", () => zoom.close());

// the contents follow the reader
const nav = document.querySelector("nav"), contents = document.getElementById("contents");
const links = new Map(all("a", nav).map(link => [document.getElementById(link.hash.slice(1)), link]));
const label = contents.querySelector("summary");
const narrow = matchMedia("(max-width: 52rem)");
const fold = () => { contents.open = !narrow.matches; };
narrow.addEventListener("change", fold);
fold();

// on a narrow page the panels of a figure stand below each other
const drawn = (name, attributes) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};
const stack = () => {
  for (const image of narrow.matches ? all(".enlarge:not(.stacked) img[data-panels]") : []) {
    const stacked = document.createElement("span"), { src: href, alt } = image;
    stacked.className = "stack";
    stacked.setAttribute("role", "img");
    stacked.setAttribute("aria-label", alt);
    for (const viewBox of image.dataset.panels.split(";")) {
      const panel = drawn("svg", { viewBox });
      panel.append(drawn("image", { href, width: image.getAttribute("width"), height: image.getAttribute("height") }));
      stacked.append(panel);
    }
    image.after(stacked);
    image.parentElement.classList.add("stacked");
  }
};
narrow.addEventListener("change", stack);
stack();

nav.addEventListener("click", event => { if (event.target.closest("a")) fold(); });
const seen = new Set();
const observer = new IntersectionObserver(entries => {
  for (const { target, isIntersecting } of entries) seen[isIntersecting ? "add" : "delete"](target);
  const current = links.get([...links.keys()].findLast(target => seen.has(target)));
  if (!current) return;
  for (const link of links.values()) link.removeAttribute("aria-current");
  current.setAttribute("aria-current", "location");
  label.textContent = `Contents: ${current.textContent}`;
  if (!narrow.matches) nav.scrollTop = current.offsetTop - nav.clientHeight / 2;
}, { rootMargin: "0px 0px -75% 0px" });
for (const target of links.keys()) observer.observe(target);

// claims are searched and filtered
const filters = document.getElementById("filters");
if (filters) {
  const { search, verdict, origin, section } = filters.elements;
  const shown = filters.querySelector("output");
  const rows = all("#all-claims tbody tr").map(row => ({ row, text: row.textContent.toLowerCase() }));
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/);
    let count = 0;
    for (const { row, text } of rows) {
      row.hidden = !(words.every(word => text.includes(word))
        && [verdict, origin, section].every(({ name, value }) => !value || value === row.dataset[name]));
      count += !row.hidden;
    }
    shown.textContent = `${count} of ${rows.length} claims shown`;
  };
  filters.addEventListener("input", apply);
  filters.addEventListener("submit", event => event.preventDefault());
  filters.addEventListener("reset", () => setTimeout(apply));  // the fields are empty only after this event
  for (const tile of all("a.tile"))
    tile.addEventListener("click", () => {
      filters.reset();
      verdict.value = tile.dataset.verdict;
      origin.value = tile.dataset.origin;
      apply();
    });
  filters.hidden = false;
  apply();
}

// tables are sorted by a click on a heading
for (const table of all("table.sortable")) {
  const body = table.tBodies[0], headings = all("th", table.tHead);
  const value = cell => cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
  const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b
    : typeof a === "number" ? -1 : typeof b === "number" ? 1 : a.localeCompare(b);  // numbers before what is missing
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = heading.ariaSort === "ascending";
      for (const each of headings) each.removeAttribute("aria-sort");
      heading.ariaSort = down ? "descending" : "ascending";
      const rows = [...body.rows].map(row => [value(row.cells[column]), row]);
      rows.sort(([a], [b]) => down ? compare(b, a) : compare(a, b));
      body.append(...rows.map(([, row]) => row));
    });
  });
}

// texts are copied by a click
document.addEventListener("click", async event => {
  const button = event.target.closest(".copy");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.text);
  } catch {  // not allowed here: the old way
    const area = document.createElement("textarea");
    area.value = button.dataset.text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  button.textContent = "copied";
  setTimeout(() => { button.textContent = "copy"; }, 2000);
});
