import { type ButtonHTMLAttributes, type ReactNode, Suspense, useState } from "react";

/**
 * A button whose list or menu is loaded when a person comes near it, and opens with a click: most
 * people only read what the button shows.
 */
export function LazyPopup({
  load,
  children,
  ...button
}: Omit<ButtonHTMLAttributes<HTMLButtonElement>, "children"> & {
  load: () => Promise<unknown>;
  /** The content of the button, and what takes its place once it was clicked: open from the start. */
  children: readonly [face: ReactNode, popup: ReactNode];
}) {
  const [face, popup] = children;
  const [isOpened, setOpened] = useState(false);
  const closed = (
    <button
      type="button"
      {...button}
      onPointerEnter={() => void load()}
      onFocus={() => void load()}
      onClick={() => setOpened(true)}
    >
      {face}
    </button>
  );
  return isOpened ? <Suspense fallback={closed}>{popup}</Suspense> : closed;
}
