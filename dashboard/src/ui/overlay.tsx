import { Suspense, lazy } from "react";
import type { OverlayProps } from "./dialog.tsx";
import style from "./ui.module.css";

// Loaded with the first dialog that opens: it is a sixth of what the first page would load.
const Overlay = lazy(async () => ({ default: (await import("./dialog.tsx")).Overlay }));

const opened = (props: OverlayProps, className: string | undefined) =>
  props.open ? (
    <Suspense fallback={null}>
      <Overlay {...props} className={className} />
    </Suspense>
  ) : null;

/** A dialog over the page. */
export const Modal = (props: OverlayProps) => opened(props, style.dialog);

/** A panel at the side that leaves the list in sight. */
export const Drawer = (props: OverlayProps) => opened(props, style.drawer);
