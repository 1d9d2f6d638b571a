import style from "./ui.module.css";

/** How long it is shown what was done. */
const shownMs = 6_000;

const place = Object.assign(document.createElement("div"), {
  className: style.toast,
  ariaLive: "polite",
});
let end: ReturnType<typeof setTimeout> | undefined;

const clear = (): void => place.replaceChildren();

/** The button that takes back what was done. */
function undoButton(undo: () => void): HTMLButtonElement {
  const button = Object.assign(document.createElement("button"), {
    type: "button",
    textContent: "Undo",
  });
  button.addEventListener("click", () => {
    clear();
    undo();
  });
  return button;
}

/**
 * Says over the page what was done, for a few seconds or until Esc is pressed, with a button where
 * one call takes it back.
 */
export function say(text: string, undo?: () => void): void {
  if (!place.isConnected) {
    document.body.append(place);
    addEventListener("keydown", ({ key }) => {
      if (key === "Escape") clear();
    });
  }
  clearTimeout(end);
  end = setTimeout(clear, shownMs);
  // A frame later, when assistive technology knows the place that changes.
  requestAnimationFrame(() =>
    place.replaceChildren(text, ...(undo === undefined ? [] : [undoButton(undo)])),
  );
}
