import { Menu } from "@base-ui/react/menu";
import { type RowMenuProps, ThreeDots } from "./row-menu.tsx";
import style from "./ui.module.css";

/** The menu itself, open from the start. */
export function RowMenuPopup({
  label,
  actions,
  face = <ThreeDots />,
  className = style.close,
}: RowMenuProps) {
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
