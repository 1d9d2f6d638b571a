import { Dialog } from "@base-ui/react/dialog";
import type { ReactNode } from "react";
import { Actions, Button } from "./parts.tsx";
import style from "./ui.module.css";

interface OverlayProps {
  title: string;
  open: boolean;
  onClose: () => void;
  children: ReactNode;
}

function Overlay({ title, open, onClose, children, className }: OverlayProps & { className: string | undefined }) {
  return (
    <Dialog.Root open={open} onOpenChange={(isOpen) => { if (!isOpen) onClose(); }}>
      <Dialog.Portal>
        <Dialog.Backdrop className={style.backdrop ?? ""} />
        <Dialog.Popup className={className ?? ""}>
          <Actions>
            <Dialog.Title render={<h1 />}>{title}</Dialog.Title>
          </Actions>
          {children}
          <Actions><Dialog.Close render={<Button look="plain" />}>Close</Dialog.Close></Actions>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

/** A dialog over the page. */
export const Modal = (props: OverlayProps) => <Overlay {...props} className={style.dialog} />;

/** A panel at the side that leaves the list in sight. */
export const Drawer = (props: OverlayProps) => <Overlay {...props} className={style.drawer} />;
