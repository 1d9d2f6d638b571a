import { Menu } from "@base-ui/react/menu";
import style from "./ui.module.css";

/** What can be done with a row, behind one button, so that it covers no column. */
export function RowMenu({
  label,
  actions,
}: {
  /** Names the row: `Actions of Night watch`. */
  label: string;
  actions: readonly (readonly [name: string, act: () => void])[];
}) {
  return (
    <Menu.Root>
      <Menu.Trigger className={style.close} aria-label={label}>
        <svg viewBox="0 0 24 24" aria-hidden="true">
          <path
            d="M5 12h.01M12 12h.01M19 12h.01"
            stroke="currentColor"
            strokeWidth="3"
            strokeLinecap="round"
          />
        </svg>
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
