import { Dialog } from "@base-ui/react/dialog";
import type { ReactNode } from "react";
import { Actions, Button } from "./parts.tsx";
import style from "./ui.module.css";

/** What is shown over the page, while it is open. */
export interface OverlayProps {
  title: string;
  open: boolean;
  onClose: () => void;
  children: ReactNode;
}

/** A layer over the page that keeps the focus until it is closed, and then gives it back. */
export function Overlay({
  title,
  open,
  onClose,
  children,
  className,
}: OverlayProps & { className: string | undefined }) {
  return (
    <Dialog.Root
      open={open}
      onOpenChange={(isOpen) => {
        if (!isOpen) onClose();
      }}
    >
      <Dialog.Portal>
        <Dialog.Backdrop className={style.backdrop ?? ""} />
        <Dialog.Popup className={className ?? ""}>
          <Actions>
            {/* biome-ignore lint/a11y/useHeadingContent: the title is its content. */}
            <Dialog.Title render={<h1 />}>{title}</Dialog.Title>
          </Actions>
          {children}
          <Actions>
            <Dialog.Close render={<Button look="plain" />}>Close</Dialog.Close>
          </Actions>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
