// Sets the theme before the first paint; a file of its own, since the policy allows no inline script.
document.documentElement.dataset.theme = localStorage.getItem("theme")
  || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
