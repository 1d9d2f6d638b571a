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

// The menu is longer than the window: the current page is shown in it.
const here = menu.querySelector("[aria-current]");
if (here !== null && wide.matches) menu.scrollTop = Math.max(0, here.offsetTop - menu.clientHeight / 3);

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

/** Shows the same request in one language at a time, the one that was chosen last. */
function languageTabs() {
  const labels = { sh: "curl", ts: "TypeScript", python: "Python" };
  const frames = [...document.querySelectorAll("article .code")].filter(({ firstChild }) => labels[firstChild.dataset.language]);
  if (frames.length < 2) return;
  const list = document.createElement("div");
  list.className = "tabs";
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", "Language");
  const tabs = frames.map((frame, index) => {
    const tab = document.createElement("button");
    tab.type = "button";
    tab.setAttribute("role", "tab");
    tab.id = `language-${index}`;
    frame.id = `request-${index}`;
    tab.setAttribute("aria-controls", frame.id);
    frame.setAttribute("role", "tabpanel");
    frame.setAttribute("aria-labelledby", tab.id);
    tab.textContent = labels[frame.firstChild.dataset.language];
    tab.addEventListener("click", () => choose(index));
    return tab;
  });
  const choose = (chosen) => {
    for (const [index, tab] of tabs.entries()) {
      tab.setAttribute("aria-selected", String(index === chosen));
      tab.tabIndex = index === chosen ? 0 : -1;
      frames[index].hidden = index !== chosen;
    }
    localStorage.setItem("docs-language", tabs[chosen].textContent);
  };
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const next = (tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length;
    choose(next);
    tabs[next].focus();
  });
  list.append(...tabs);
  frames[0].before(list);
  choose(Math.max(0, tabs.findIndex(({ textContent }) => textContent === localStorage.getItem("docs-language"))));
}
if (document.body.classList.contains("languages")) languageTabs();
if ("signedIn" in document.body.dataset && document.getElementById("try")) import(new URL("try.js", script));

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
