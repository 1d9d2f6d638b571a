import type { ReactNode } from "react";
import { Menu } from "@base-ui/react/menu";
import style from "./ui.module.css";

/** The name of a row, and what can be done with it. */
export interface RowMenuProps {
  /** Names the row: `Actions of Night watch`. */
  label: string;
  actions: readonly (readonly [name: string, act: () => void])[];
  /** What the button shows; absent shows three dots. */
  face?: ReactNode;
  className?: string | undefined;
}

/** The menu itself, open from the start. */
export function RowMenuPopup({ label, actions, face, className }: RowMenuProps) {
  return (
    <Menu.Root defaultOpen>
      <Menu.Trigger className={className ?? ""} aria-label={label}>
        {face}
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Positioner className={style.menuPlace ?? ""} align="end" sideOffset={4}>
          <Menu.Popup className={style.menu ?? ""}>
            {actions.map(([name, act]) => (
              <Menu.Item key={name} className={style.menuItem ?? ""} onClick={act}>
                {name}
              </Menu.Item>
            ))}
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  );
}
