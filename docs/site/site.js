// Search, theme, copy buttons and the menu of small screens. The pages can be read without it.
const input = document.getElementById("search");
const results = document.getElementById("results");
const menu = document.getElementById("menu");
// The site is at /docs of a gateway, or in a folder of another server: addresses begin at this file.
const script = document.currentScript.src;
let search;

const wide = matchMedia("(min-width: 900px)");
const placeMenu = () => (menu.open = wide.matches);
wide.addEventListener("change", placeMenu);
placeMenu();

document.getElementById("theme").addEventListener("click", () => {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  localStorage.setItem("theme", theme);
});

for (const block of document.querySelectorAll("pre")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  const frame = document.createElement("div");
  frame.className = "code";
  block.replaceWith(frame);
  frame.append(block, button);
}

/** Loads the index with the first character; all files come from where the page does. */
async function loadSearch() {
  const [{ default: MiniSearch }, { createSearch }, response] = await Promise.all([
    import(new URL("minisearch.js", script)), import(new URL("search.js", script)), fetch(new URL("../search.json", script)),
  ]);
  return createSearch(MiniSearch, await response.json());
}

globalThis.searchEngine = () => (search ??= loadSearch());

async function show() {
  const query = input.value.trim();
  if (query === "") return hide();
  const found = (await searchEngine()).search(query).slice(0, 12);
  if (query !== input.value.trim()) return;
  results.replaceChildren(...found.map(({ id, title, page }) => {
    const item = document.createElement("li");
    item.setAttribute("role", "option");
    const link = document.createElement("a");
    link.href = new URL(id, new URL("..", script));
    const place = document.createElement("span");
    place.textContent = page;
    link.append(title, place);
    item.append(link);
    return item;
  }));
  if (found.length === 0) {
    const item = document.createElement("li");
    item.setAttribute("role", "option");
    item.textContent = "Nothing was found";
    results.append(item);
  }
  results.hidden = false;
  input.setAttribute("aria-expanded", "true");
}

function hide() {
  results.hidden = true;
  input.setAttribute("aria-expanded", "false");
}

input.addEventListener("input", show);
input.addEventListener("keydown", (event) => {
  if (event.key === "Escape") hide();
  if (event.key === "ArrowDown") results.querySelector("a")?.focus();
  if (event.key === "Enter") results.querySelector("a")?.click();
});
results.addEventListener("keydown", (event) => {
  const links = [...results.querySelectorAll("a")];
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape") { hide(); input.focus(); }
  if (step === undefined) return;
  event.preventDefault();
  (links[links.indexOf(document.activeElement) + step] ?? input).focus();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || /^(?:INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
  event.preventDefault();
  input.focus();
});
document.addEventListener("click", (event) => { if (!event.target.closest(".search")) hide(); });
