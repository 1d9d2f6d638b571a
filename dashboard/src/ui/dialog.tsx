import { Dialog } from "@base-ui/react/dialog";
import { type ReactNode, useRef } from "react";
import style from "./ui.module.css";

/** What is shown over the page, while it is open. */
export interface OverlayProps {
  title: string;
  open: boolean;
  onClose: () => void;
  children: ReactNode;
  /** Shown in the head beside the title: a state, or buttons that belong to the whole. */
  head?: ReactNode;
  /** Closed by its buttons only, and not by Esc or a click outside: for what is shown once. */
  keepOpen?: boolean;
}

const fields = "form :is(input, select, textarea)";

/** The ways of closing that happen by mistake. */
const accidents: readonly string[] = ["escape-key", "outside-press", "focus-out"];

/**
 * Shows a layer over the page that keeps the focus until it is closed, and then returns it. Its
 * head stays in sight while its body scrolls.
 */
export function Overlay({
  title,
  open,
  onClose,
  children,
  head,
  keepOpen = false,
  className,
}: OverlayProps & { className: string | undefined }) {
  const body = useRef<HTMLDivElement>(null);
  /** The first field of a form has the focus, but on phones, where that would open the keyboard. */
  const firstField = (how: string): HTMLElement | true =>
    (how === "touch" ? null : body.current?.querySelector<HTMLElement>(fields)) ?? true;
  return (
    <Dialog.Root
      open={open}
      disablePointerDismissal={keepOpen}
      onOpenChange={(isOpen, { reason }) => {
        if (!isOpen && !(keepOpen && accidents.includes(reason))) onClose();
      }}
    >
      <Dialog.Portal>
        <Dialog.Backdrop className={style.backdrop ?? ""} />
        <Dialog.Popup className={className ?? ""} initialFocus={firstField}>
          <div className={style.overlayHead}>
            {/* biome-ignore lint/a11y/useHeadingContent: the title is its content. */}
            <Dialog.Title render={<h1 />}>{title}</Dialog.Title>
            {head}
            <Dialog.Close className={style.close} aria-label="Close">
              <svg viewBox="0 0 24 24" aria-hidden="true">
                <path
                  d="M6 6l12 12M18 6L6 18"
                  stroke="currentColor"
                  strokeWidth="1.8"
                  strokeLinecap="round"
                />
              </svg>
            </Dialog.Close>
          </div>
          <div className={style.overlayBody} ref={body}>
            {children}
          </div>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
