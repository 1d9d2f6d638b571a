import { Suspense, createContext, lazy, useContext } from "react";
import { Button } from "./button.tsx";
import type { OverlayProps } from "./dialog.tsx";
import style from "./ui.module.css";

// Loaded with the first dialog that opens: it is a sixth of what the first page would load.
const Overlay = lazy(async () => ({ default: (await import("./dialog.tsx")).Overlay }));

/** Closes the dialog or panel around; undefined on the page itself. */
const Dismissal = createContext<(() => void) | undefined>(undefined);

const opened = (props: OverlayProps, className: string | undefined) =>
  props.open ? (
    <Suspense fallback={null}>
      <Dismissal value={props.onClose}>
        <Overlay {...props} className={className} />
      </Dismissal>
    </Suspense>
  ) : null;

/** The button beside the action of a dialog; nothing on the page itself, which cannot be closed. */
export function Cancel({ label = "Cancel" }: { label?: string | undefined }) {
  const dismiss = useContext(Dismissal);
  if (dismiss === undefined) return null;
  return (
    <Button look="plain" onClick={dismiss}>
      {label}
    </Button>
  );
}

/** A dialog over the page. */
export const Modal = (props: OverlayProps) => opened(props, style.dialog);

/** A panel at the side that leaves the list in sight. */
export const Drawer = (props: OverlayProps) => opened(props, style.drawer);
