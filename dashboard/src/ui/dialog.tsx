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
  /** Leaves what is beside it usable, where the window has room for both. */
  beside?: boolean;
}

const fields = "form :is(input, select, textarea)";

/** Windows that have room for a list and a panel beside each other. */
const roomy = "(min-width: 1440px)";

/** The ways of closing that happen by mistake. */
const accidents: readonly string[] = ["escape-key", "outside-press", "focus-out"];

/**
 * Shows a layer over the page that keeps the focus until it is closed, and then returns it; or
 * beside it, without keeping the focus. Its head stays in sight while its body scrolls.
 */
export function Overlay({
  title,
  open,
  onClose,
  children,
  head,
  keepOpen = false,
  beside = false,
  className,
}: OverlayProps & { className: string | undefined }) {
  const body = useRef<HTMLDivElement>(null);
  const isBeside = beside && matchMedia(roomy).matches;
  /** The first field of a form has the focus, but on phones, where that would open the keyboard. */
  const firstField = (how: string): HTMLElement | true =>
    (how === "touch" ? null : body.current?.querySelector<HTMLElement>(fields)) ?? true;
  return (
    <Dialog.Root
      open={open}
      modal={!isBeside}
      disablePointerDismissal={keepOpen || isBeside}
      onOpenChange={(isOpen, { reason }) => {
        if (!isOpen && !(keepOpen && accidents.includes(reason))) onClose();
      }}
    >
      <Dialog.Portal>
        {isBeside ? null : <Dialog.Backdrop className={style.backdrop ?? ""} />}
        <Dialog.Popup
          className={className ?? ""}
          data-beside={isBeside || undefined}
          initialFocus={firstField}
        >
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
