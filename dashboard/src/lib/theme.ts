/** The themes that a person chooses from. */
export type Theme = "system" | "light" | "dark";

const key = "theme";

const prefersDark = (): boolean => matchMedia("(prefers-color-scheme: dark)").matches;

/** The theme that was chosen in this browser. */
export function chosenTheme(): Theme {
  const value = localStorage.getItem(key);
  return value === "light" || value === "dark" ? value : "system";
}

/** Applies and remembers a theme. */
export function chooseTheme(theme: Theme): void {
  if (theme === "system") localStorage.removeItem(key);
  else localStorage.setItem(key, theme);
  document.documentElement.dataset["theme"] =
    theme === "system" ? (prefersDark() ? "dark" : "light") : theme;
}
